# SPDX-License-Identifier: Apache-2.0
"""burrow run, as people run it: real sandboxes from host:latest in a data directory of their own."""
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BURROW = pathlib.Path(os.environ.get("BURROW", ROOT / "build/src/burrow"))

pytestmark = [
    pytest.mark.skipif(not BURROW.exists(), reason="burrow is not built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="sandboxes need root"),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    yield directory
    subprocess.run([BURROW, "detach", "--data", directory], check=False)
    subprocess.run([ROOT / "tools/check-leftovers", "--clear", directory], check=True)


@pytest.fixture
def burrow(data):
    """Runs burrow run with these words; bytes in and out."""
    def run(*words, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL if "input" not in kwargs else None)
        if kwargs["stdin"] is None:
            del kwargs["stdin"]
        return subprocess.run(line(data, *words), capture_output=True, timeout=60, **kwargs)
    return run


@pytest.fixture
def start(data):
    """The same without waiting; ended with the test."""
    started = []

    def begin(*words, **kwargs):
        kwargs = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | kwargs
        started.append(subprocess.Popen(line(data, *words), **kwargs))
        return started[-1]
    yield begin
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


def line(data, *words):
    return [BURROW, "run", "--data", data, "--runtime", "host:latest", *words]


def wait_until(is_true, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.01)


# ---- output and exit ----

def test_no_server_is_started_for_a_run(burrow, data):
    for words in (["--"], ["--local", "--"], ["--json", "--"], ["--tty", "--"]):
        assert burrow(*words, "true").returncode == 0
    assert not {"burrow.sock", "server.log", "server.lock"} & {path.name for path in data.iterdir()}


def test_the_output_and_the_exit_code_are_the_commands(burrow):
    done = burrow("--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 3)


@pytest.mark.parametrize("user", ["root", "1000"])
def test_a_command_can_open_its_own_output_again(burrow, user):
    done = burrow("--user", user, "--", "sh", "-c", "echo a >/dev/stdout; echo b >/dev/stderr; cat /dev/stdin", input=b"c")
    assert (done.stdout, done.stderr, done.returncode) == (b"a\nc", b"b\n", 0)


def test_binary_output_is_exact(burrow):
    done = burrow("--", "python3", "-c", "import os; os.write(1, bytes(range(256)) * 4000)")
    assert done.stdout == bytes(range(256)) * 4000


def test_a_gibibyte_is_neither_lost_nor_changed(start):
    code = "import sys\nblock = bytes(range(251)) * 4180\n" \
           "left = 1 << 30\nwhile left:\n    left -= sys.stdout.buffer.write(block[:left])"
    process = start("--", "python3", "-c", code, stderr=None)
    block = (bytes(range(251)) * 4180)
    seen, total = hashlib.sha1(), 0
    while piece := process.stdout.read1(1 << 20):
        seen.update(piece)
        total += len(piece)
    want, left = hashlib.sha1(), 1 << 30
    while left:
        want.update(block[:left])
        left -= min(left, len(block))
    assert process.wait(60) == 0
    assert total == 1 << 30
    assert seen.hexdigest() == want.hexdigest()


def test_output_goes_to_a_file_opened_for_appending(burrow, tmp_path, data):
    out = tmp_path / "out"
    out.write_text("before\n")
    with out.open("ab") as file:
        subprocess.run(line(data, "--", "echo", "after"), stdout=file, stdin=subprocess.DEVNULL, check=True, timeout=60)
    assert out.read_text() == "before\nafter\n"


def test_a_closed_reader_ends_the_command_by_a_broken_pipe(start):
    process = start("--", "sh", "-c", "while :; do echo y; done")
    assert process.stdout.read(2) == b"y\n"
    process.stdout.close()
    assert process.wait(30) == 128 + signal.SIGPIPE


def test_a_full_disk_under_stdout_is_told(data):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(line(data, "--", "sh", "-c", "while :; do echo y; done"), stdout=full,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 125
    assert done.stderr == b"burrow: relay standard output: No space left on device\n"


def test_closed_standard_fds_harm_nothing(data):
    command = " ".join(f"'{word}'" for word in line(data, "--", "sh", "-c", "echo x; cat; exit 4"))
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        done = subprocess.run(["sh", "-c", f"{command} {closed}"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        assert done.returncode == 4, closed
        assert done.stdout == (b"" if ">&- 2" in closed or closed == ">&-" else b"x\n")


def test_a_background_child_does_not_hold_up_the_end(burrow):
    before = time.monotonic()
    done = burrow("--", "sh", "-c", "sleep 1000 & echo done")
    assert (done.stdout, done.returncode) == (b"done\n", 0)
    assert time.monotonic() - before < 60


@pytest.mark.parametrize("words, code, sentence", [
    (["no-such-command"], 127, "burrow: command 'no-such-command' not found in the sandbox\n"),
    (["/etc/hostname"], 126, None),
    (["/"], 126, None),
])
def test_a_command_that_cannot_run_says_why(burrow, words, code, sentence):
    done = burrow("--", *words)
    assert done.returncode == code
    assert done.stderr.startswith(b"burrow: ") and done.stderr.count(b"\n") == 1
    if sentence:
        assert done.stderr.decode() == sentence


@pytest.mark.parametrize("first, sentence", [
    (b"#!/bin/sh\r\necho fine\r\n", "its lines end with CRLF, and there is no interpreter '/bin/sh\\r'; save it with LF line ends"),
    (b"#! /usr/bin/no-such\x1b[1m -x\n", "its interpreter '/usr/bin/no-such?[1m' is not in the sandbox"),
    (b"#!/usr/bin/" + b"x" * 100 + b"\n", "its interpreter '/usr/bin/" + "x" * 54 + "' is not in the sandbox"),
])
def test_a_script_whose_interpreter_is_missing_says_so(burrow, tmp_path, first, sentence):
    script = tmp_path / "script.sh"
    script.write_bytes(first)
    script.chmod(0o755)
    for command in ("./script.sh", "script.sh"):
        done = burrow("--file", f"script.sh:{script}", "--env", "PATH=/usr/bin:/workspace", "--", command)
        assert (done.stderr.decode(), done.returncode) == (f"burrow: cannot execute '{command}': {sentence}\n", 126)


def test_a_runtime_that_is_not_built_is_made_first_and_why_not_is_told(burrow, data):
    done = burrow("--runtime", "base", "--", "true", env={**os.environ, "BURROW_DEBIAN_MIRROR": "http://127.0.0.1:1/debian"})
    assert done.returncode == 125
    errors = done.stderr.decode().splitlines()
    assert errors[0] == "base:latest: starting" or errors[0].startswith("base:latest: "), errors
    assert "build runtime 'base:latest': " in errors[-1] and "host:latest" in errors[-1], errors
    assert done.stdout == b""


def test_a_signal_becomes_128_and_its_number(burrow):
    assert burrow("--", "sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL
    assert burrow("--", "sh", "-c", "kill -SEGV $$").returncode == 128 + signal.SIGSEGV


# ---- input ----

def test_stdin_streams_in_and_ends(burrow):
    text = os.urandom(3 << 20)
    assert burrow("--", "cat", input=text).stdout == text


def test_stdin_is_passed_on_at_once(start):
    process = start("--", "cat", stdin=subprocess.PIPE)
    for word in (b"one\n", b"two\n"):
        process.stdin.write(word)
        process.stdin.flush()
        assert process.stdout.readline() == word
    process.stdin.close()
    assert process.wait(30) == 0


def test_a_command_that_does_not_read_leaves_the_writer_alone(start):
    process = start("--", "true", stdin=subprocess.PIPE)
    assert process.wait(30) == 0


def test_flags_of_the_callers_fds_stay(data):
    ends = os.pipe()
    try:
        before = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in ends]
        subprocess.run(line(data, "--", "true"), stdin=ends[0], stdout=ends[1], check=True, timeout=60)
        assert [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in ends] == before
    finally:
        os.close(ends[0])
        os.close(ends[1])


# ---- options ----

def test_the_environment_is_what_was_asked_for(burrow):
    env = {"TAKEN": "yours", "SECRET": "no", "PATH": os.environ["PATH"]}
    done = burrow("--env", "A=1", "--env", "B=x=y z", "--env", "TAKEN", "--env", "ABSENT", "--", "env", env=env)
    seen = dict(row.split("=", 1) for row in done.stdout.decode().splitlines())
    assert (seen["A"], seen["B"], seen["TAKEN"]) == ("1", "x=y z", "yours")
    assert "SECRET" not in seen and "ABSENT" not in seen
    assert seen["HOME"] and seen["PATH"]


def test_the_working_directory_is_workspace_or_the_one_named(burrow):
    assert burrow("--", "pwd").stdout == b"/workspace\n"
    assert burrow("--workdir", "/srv/deep/er", "--", "pwd").stdout == b"/srv/deep/er\n"


def test_files_are_put_in_before_the_command_starts(burrow, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\ncat /workspace/sub/data\n")
    script.chmod(0o755)
    (tmp_path / "data").write_bytes(os.urandom(100000))
    done = burrow("--file", f"/workspace/go:{script}", "--file", f"sub/data:{tmp_path / 'data'}", "--", "./go")
    assert done.stdout == (tmp_path / "data").read_bytes()


def test_another_user_runs_it(burrow):
    assert burrow("--user", "1234:2345", "--", "sh", "-c", "echo $(id -u):$(id -g)").stdout == b"1234:2345\n"
    assert burrow("--user", "nobody", "--", "id", "-un").stdout == b"nobody\n"


def test_quiet_shows_nothing_but_keeps_the_exit_code(burrow):
    done = burrow("--quiet", "--", "sh", "-c", "echo out; echo err >&2; exit 5")
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 5)


def test_timestamps_begin_every_line(burrow):
    done = burrow("--timestamps", "--", "sh", "-c", "printf 'a\\nb'; printf 'c\\n\\nlast'")
    lines = done.stdout.decode().split("\n")
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
    assert [re.sub(f"^{stamp}", "", row) for row in lines] == ["a", "bc", "", "last"]
    assert all(re.match(stamp, row) for row in lines)


def test_output_past_the_cap_is_dropped_and_told(burrow):
    done = burrow("--output-cap", "1Ki", "--", "sh", "-c", "head -c 5000000 /dev/zero; echo fine >&2; exit 6")
    assert done.stdout == bytes(1024)
    assert done.returncode == 6
    assert done.stderr == b"fine\nburrow: standard output was cut at the output limit\n"


def test_json_is_one_object_with_everything_in_it(burrow):
    done = burrow("--json", "--", "sh", "-c", "printf 'caf\\303\\251 \\377'; echo err >&2; exit 3")
    assert done.returncode == 3
    assert done.stderr == b""
    said = json.loads(done.stdout)
    assert re.fullmatch(r"sbx_[0-9a-z]{26}", said["sandboxId"])
    assert (said["exitCode"], said["stdout"], said["stderr"], said["cause"]) == (3, "café \ufffd", "err\n", "exit")
    assert 0 <= said["durationMs"] < 60000
    assert said["resources"]["maxRssBytes"] > 0


def test_json_is_bounded(burrow):
    said = json.loads(burrow("--json", "--output-cap", "10", "--", "echo", "0123456789abc").stdout)
    assert said["stdout"] == "0123456789"
    assert said["stdoutTruncated"] is True
    assert "stderrTruncated" not in said


def test_json_tells_a_failure_of_burrow_itself(burrow):
    done = burrow("--json", "--file", "/x:/no/such/file", "--", "true")
    said = json.loads(done.stdout)
    assert done.returncode == said["exitCode"] == 125
    assert said["message"] == "read the file '/no/such/file': No such file or directory"


# ---- limits and their causes ----

def test_a_timeout_ends_everything(burrow):
    done = burrow("--timeout", "300ms", "--", "sh", "-c", "setsid sleep 1000 & trap '' TERM; echo started; sleep 1000")
    assert done.returncode == 124
    assert done.stdout == b"started\n"
    assert done.stderr == b"burrow: the time limit of 300ms was reached\n"


@pytest.mark.parametrize(("option", "asked"), [("memory", "500000Gi"), ("cpu", "1000"), ("max-processes", "4000000"), ("disk", "900000Gi")])
def test_more_than_the_machine_has_is_refused_with_the_figure(burrow, option, asked):
    done = burrow(f"--{option}", asked, "--", "true")
    assert done.returncode == (125 if option == "disk" else 2)  # how large the volume is shows when it is open
    sentence = rf"burrow: {option} {asked} is more than this machine gives one sandbox \(\w+\): ask for less\n"
    assert re.fullmatch(sentence, done.stderr.decode()), done.stderr


def test_the_memory_limit_is_told(burrow):
    done = burrow("--memory", "64Mi", "--json", "--", "python3", "-c", "x = bytearray(300 << 20)")
    said = json.loads(done.stdout)
    assert done.returncode == said["exitCode"] == 137
    assert said["cause"] == "memory"
    assert said["message"] == "the memory limit of 64Mi was reached"


def test_the_process_limit_is_told(burrow):
    done = burrow("--pids", "8", "--", "sh", "-c", "for i in $(seq 30); do sleep 100 & done; wait")
    assert done.returncode != 0
    assert b"burrow: the process limit of 8 was reached\n" in done.stderr


def test_the_disk_limit_is_told(burrow):
    done = burrow("--disk", "16Mi", "--", "sh", "-c", "head -c 100000000 /dev/zero > big")
    assert done.returncode != 0
    assert b"burrow: the disk limit of 16Mi was reached\n" in done.stderr


# ---- signals ----

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_reach_the_command(start, number):
    name = number.name.removeprefix("SIG")
    process = start("--", "sh", "-c", f"trap 'echo got; exit 9' {name}; echo ready; while :; do sleep 0.05; done")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == b"got\n"
    assert process.wait(30) == 9


def test_a_command_that_ignores_signals_ends_at_the_second(start):
    process = start("--", "sh", "-c", "trap 'echo no' INT; echo ready; while :; do sleep 0.05; done")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == b"no\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 128 + signal.SIGKILL


DEAF = "trap 'echo no' TERM; echo ready; while :; do sleep 0.05; done"


def test_a_command_that_ignores_sigterm_ends_after_a_while(start):
    process = start("--", "sh", "-c", DEAF)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == b"no\n"
    assert process.wait(60) == 128 + signal.SIGKILL


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_after_sigterm_ends_it_at_once(start, second):
    process = start("--", "sh", "-c", "trap '' INT; " + DEAF)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == b"no\n"
    process.send_signal(second)
    assert process.stdout.readline() == b""  # nobody was asked
    assert process.wait(30) == 128 + signal.SIGKILL


def test_what_was_started_before_a_sigterm_ends_too(start):
    marker = f"161803{os.getpid()}"
    process = start("--", "sh", "-c", f"trap '' TERM; setsid sleep {marker} & {DEAF}")
    assert process.stdout.readline() == b"ready\n"
    wait_until(lambda: boxed(marker), "the start of the process")
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGKILL
    wait_until(lambda: not boxed(marker), "the end of all processes")


def boxed(marker):
    """Processes of this machine that run in a box with this word in their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def test_a_killed_burrow_leaves_no_process(start):
    marker = f"271828{os.getpid()}"
    process = start("--", "sh", "-c", f"setsid sleep {marker} & echo ready; sleep {marker}")
    assert process.stdout.readline() == b"ready\n"
    wait_until(lambda: len(boxed(marker)) >= 3, "the start of the processes")
    process.kill()
    process.wait()
    wait_until(lambda: not boxed(marker), "the end of all processes")


def test_the_next_run_sweeps_what_a_killed_one_left(start, burrow, data):
    def scratches():
        return [path.name for path in (data / "volume" / "scratch").glob("*")] if (data / "volume").exists() else []
    process = start("--", "sh", "-c", "echo ready; sleep 1000")
    assert process.stdout.readline() == b"ready\n"
    process.kill()
    process.wait()
    assert burrow("--", "true").returncode == 0
    wait_until(lambda: burrow("--", "true").returncode == 0 and not scratches(), "the sweep of the scratch")


# ---- terminals ----

class Terminal:
    """A person's terminal with burrow run --tty in it."""

    def __init__(self, data, *words, rows=33, cols=101):
        self.master, self.slave = pty.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.process = subprocess.Popen(line(data, "--tty", *words), stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.master, text)

    def read_until(self, text, seconds=30):
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{text!r} did not come; seen: {self.seen!r}"
            self.seen += os.read(self.master, 65536)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def terminal(data):
    opened = []

    def open_terminal(*words, **kwargs):
        opened.append(Terminal(data, *words, **kwargs))
        return opened[-1]
    yield open_terminal
    for each in opened:
        each.close()


def test_a_terminal_has_its_size_and_is_restored(terminal):
    person = terminal("--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size; exit 7")
    person.read_until(b"33 101\r\n")
    assert person.process.wait(30) == 7
    assert termios.tcgetattr(person.slave) == person.before


def test_a_terminal_follows_its_size(terminal):
    person = terminal("--", "sh", "-c", "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done")
    person.read_until(b"ready")
    person.resize(44, 55)
    person.read_until(b"44 55")


def test_ctrl_c_on_a_terminal_interrupts_the_command(terminal):
    person = terminal("--", "sh", "-c", "trap 'echo interrupted; exit 8' INT; echo ready; while :; do sleep 0.05; done")
    person.read_until(b"ready")
    person.type(b"\x03")
    person.read_until(b"interrupted")
    assert person.process.wait(30) == 8
    assert termios.tcgetattr(person.slave) == person.before


def test_typing_reaches_an_interactive_shell(terminal):
    person = terminal("--env", "PS1=prompt>", "--", "sh", "-i")
    person.read_until(b"prompt>")
    person.type(b"echo $((6 * 7))\r")
    person.read_until(b"42\r\n")
    person.type(b"\x04")
    assert person.process.wait(30) == 0


def test_a_terminated_burrow_restores_the_terminal(terminal):
    person = terminal("--", "sh", "-c", "echo ready; sleep 1000")
    person.read_until(b"ready")
    person.process.terminate()
    assert person.process.wait(30) == 128 + signal.SIGTERM
    assert termios.tcgetattr(person.slave) == person.before


def test_a_terminal_without_a_terminal_works_too(burrow):
    done = burrow("--tty", "--", "sh", "-c", "test -t 1 && cat", input=b"typed\n")
    assert done.stdout.endswith(b"typed\r\n")
    assert done.returncode == 0


@pytest.mark.parametrize("command", [["bash"], ["bash", "--norc", "-i"], ["sh", "-i"], ["cat"], ["python3"]])
def test_an_interactive_program_ends_with_its_input(burrow, command):
    assert burrow("--tty", "--env", "HOME=/root", "--", *command).returncode == 0


@pytest.mark.parametrize("typed", [b"", b"no line end", b"exit 4\n", b"a\nb"])
def test_input_of_a_terminal_may_end_anywhere(burrow, typed):
    done = burrow("--tty", "--", "sh", "-c", "cat; stty -a >/dev/null; cat; exit 4", input=typed)
    assert done.returncode == 4
    assert typed.rpartition(b"\n")[2] in done.stdout


def test_a_command_that_reads_no_input_is_left_alone_when_it_ends(burrow):
    done = burrow("--tty", "--", "sh", "-c", "sleep 2; echo done; read line; echo read; exit 5")
    assert (done.stdout, done.returncode) == (b"done\r\nread\r\n", 5)


def test_a_command_that_reads_on_after_the_end_of_input_is_hung_up_on(burrow):
    done = burrow("--tty", "--", "sh", "-c", "stty raw; while :; do head -c 1 >/dev/null; done")
    assert done.returncode == 128 + signal.SIGHUP


# ---- what is refused ----

@pytest.mark.parametrize("words, sentence", [
    ([], "run needs a command: burrow run [options] -- COMMAND [ARGUMENT...]"),
    (["--memory", "12Q", "--", "true"],
     "memory '12Q' is not a size: use bytes, or a number with Ki, Mi, Gi, Ti, Pi, Ei (powers of 1024) or k, M, G, T, P, E (powers of 1000) (for example 256Mi)"),
    (["--disk=", "--", "true"], "disk '' is not a size: use bytes, or a number with Ki, Mi, Gi, Ti, Pi, Ei (powers of 1024) or k, M, G, T, P, E (powers of 1000) (for example 256Mi)"),
    (["--timeout", "soon", "--", "true"],
     "timeout 'soon' is not a duration: use numbers with d, h, m, s, ms, us, ns (for example 30s, 1h30m or 7d)"),
    (["--cpu", "many", "--", "true"], "cpu 'many' is not a number of processors: use for example 500m, 0.5 or 2"),
    (["--pids", "-1", "--", "true"], "pids '-1' is out of range: use 0 to 4000000"),
    (["--max-processes", "-1", "--", "true"], "max-processes '-1' is out of range: use 0 to 4000000"),
    (["--memory", "64", "--", "true"], "memory: a sandbox needs at least 4Mi"),
    (["--disk", "64k", "--", "true"], "disk: a sandbox needs at least 1Mi"),
    (["--cpu", "1m", "--", "true"], "cpu: a sandbox needs at least 10m"),
    (["--memory", "15Ei", "--", "true"], "memory '15Ei' is out of range: use 0 to 1Pi"),
    (["--memory", "64MB", "--", "true"],
     "memory '64MB' is not a size: write 64Mi (powers of 1024) or 64M (powers of 1000)"),
    (["--memroy", "1Gi", "--", "true"], "unknown option '--memroy'; did you mean '--memory'?"),
    (["--env", "=x", "--", "true"], "--env '=x' has no name: use KEY=VALUE"),
    (["--env", "=\x1b[31m\x9b", "--", "true"], "--env '=?[31m??' has no name: use KEY=VALUE"),
    (["--file", "x", "--", "true"], "--file 'x' is not PATH:LOCAL (path in the sandbox, colon, local file)"),
    (["--workdir", "here", "--", "true"], "the working directory 'here' does not begin with '/'"),
    (["--tty", "--json", "--", "true"], "--tty goes with neither --json nor --timestamps"),
    (["--runtime"], "option '--runtime' needs a value: NAME"),
])
def test_a_wrong_command_line_gets_one_sentence(burrow, words, sentence):
    done = burrow(*words)
    assert (done.stderr.decode(), done.returncode) == (f"burrow: {sentence}\n", 2)
    assert json.loads(done.stdout)["error"]["message"] == sentence if "--json" in words else done.stdout == b""


def test_an_unknown_runtime_is_named(burrow):
    done = burrow("--runtime", "hots:latest", "--", "true")
    assert done.returncode == 125
    assert b"'hots" in done.stderr and b"host" in done.stderr and done.stderr.count(b"\n") == 1


def test_a_file_that_cannot_be_read_is_named(burrow):
    done = burrow("--file", "/x:/no/such/file", "--", "true")
    assert (done.returncode, done.stderr) == (125, b"burrow: read the file '/no/such/file': No such file or directory\n")
