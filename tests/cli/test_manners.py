# SPDX-License-Identifier: Apache-2.0
"""Manners of all commands: one JSON value with --json, failures told in sentences, what a terminal is asked and shown, interrupts; options that no other test uses."""
import json
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import server as servers  # noqa: E402
from client import until  # noqa: E402
from test_commands import BURROW, PATIENCE, Cli, commands, http, pytestmark, work  # noqa: E402,F401
from test_live_commands import Terminal  # noqa: E402
from test_option_use import help_of, options_of  # noqa: E402


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("manners") / "data", options=["--output-limit", "64Ki"])
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(scope="module")
def burrow(server, tmp_path_factory):
    return Cli(tmp_path_factory.mktemp("home"), BURROW_DATA=str(server.data))


@pytest.fixture
def terminal(tmp_path, burrow):
    made = []

    def open_one(line, **more):
        environment = {**burrow.environment, "TERM": "xterm", **more}
        made.append(Terminal(tmp_path / f"tmux{len(made)}", environment, ["sh", "-c", line.replace("burrow", shlex.quote(str(BURROW)))]))
        return made[-1]
    yield open_one
    for one in made:
        one.close()


# ---- --json ----

NO_JSON = {("attach",), ("serve",), ("detach",), ("completion",), ("watch",), ("ssh",), ("ssh-proxy",), ("ssh-config",), ("mcp",)}
# a terminal; a server; what prints nothing; a script for a shell; no end; other protocols


def test_every_command_has_json_but_those_we_know():
    assert {words for words in commands() if "--json" not in options_of(help_of(words))} == NO_JSON


# What a command is given besides --json; made in this order. {x}: something that was made before. None: needs more than a server (other files try it).
LINES = {
    "run": "run -- true", "create": "create --name js --idle-timeout 0", "list": "list", "ls": "ls js /", "get": "get js", "pause": "pause js", "resume": "resume js",
    "exec": "exec js -- echo x", "cp": "cp {file} js:/workspace/a", "try": "try --sandbox js --discard -- true", "fork": "fork js --name js2", "delete": "delete js2", "ps": "ps js", "logs": "logs js",
    "code": "code js 1", "top": "top", "events": "events js", "env": "env js A=1", "wait": "wait js --state idle,running", "stats": "stats",
    "fs cp": "fs cp {file} js:/workspace/b", "fs ls": "fs ls js", "fs mkdir": "fs mkdir js /workspace/d", "fs rmdir": "fs rmdir js /workspace/d",
    "fs rm": "fs rm js /workspace/b", "fs download": "fs download js {folder}/out.tar.gz", "fs upload": "fs upload js {folder}/out.tar.gz",
    "snapshot create": "snapshot create js --name js --tag one", "snapshot list": "snapshot list", "snapshot get": "snapshot get js:one",
    "snapshot tag": "snapshot tag js:one two", "snapshot export": "snapshot export js:two {folder}/s.tar.zst", "snapshot delete": "snapshot delete js:two",
    "snapshot import": "snapshot import {folder}/s.tar.zst --name js3 --tag three", "snapshot build": "snapshot build {folder}/built", "snapshot generate": "snapshot generate",
    "checkpoint create": "checkpoint create js c1", "diff": "diff js c1", "checkpoint list": "checkpoint list js", "checkpoint restore": "checkpoint restore js c1",
    "checkpoint delete": "checkpoint delete js c1", "job create": "job create js -- sleep 1000", "execution list": "execution list js",
    "execution get": "execution get {job}", "execution logs": "execution logs {job}", "job list": "job list js", "job get": "job get js {job}",
    "job logs": "job logs js {job}", "job destroy": "job destroy js {job}", "execution stop": "execution stop {job}",
    "network policy": "network policy js", "network why": "network why js 9.9.9.9:443", "network observe": "network observe js",
    "port create": "port create js 4000", "port list": "port list js", "port delete": "port delete js 4000",
    "system info": "system info", "system df": "system df", "system prune": "system prune --dry-run",
    "context create": "context create here http://127.0.0.1:1", "context list": "context list", "context use": "context use here", "context delete": "context delete here",
    "key create": "key create --name k", "key list": "key list", "key revoke": "key revoke {key}",
    "ssh-key add": "ssh-key add {folder}/key.pub --name laptop", "ssh-key list": "ssh-key list", "ssh-key remove": "ssh-key remove laptop", "runtime list": "runtime list", "runtime show": "runtime show base:latest",
    "runtime verify": None, "runtime remove": None, "runtime export": None, "runtime build": None, "runtime add": None, "repair": None, "doctor": None,
}


def test_every_command_prints_one_json_value(burrow, tmp_path):
    (tmp_path / "file").write_text("x\n")
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "agentuity-snapshot.yaml").write_text("version: 1\nruntime: base:latest\nname: js4\n")
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", tmp_path / "key"], check=True)
    known = {"file": tmp_path / "file", "folder": tmp_path}
    assert {" ".join(words) for words in commands() if words not in NO_JSON} == set(LINES), "a command has no line here"
    for command, line in LINES.items():
        if line is None:
            continue
        words = [word.format(**known) for word in line.split()]
        at = words.index("--") if "--" in words else len(words)
        done = subprocess.run([BURROW, *words[:at], "--json", *words[at:]], capture_output=True, text=True, timeout=PATIENCE, env=burrow.environment,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 0 or command == "execution stop", (line, done.returncode, done.stdout, done.stderr)
        told = json.loads(done.stdout)
        assert isinstance(told, (dict, list)), line
        if command == "job create":
            known["job"] = told["id"]
        if command == "key create":
            known["key"] = told["id"]
        # a failure is one value too, and a sentence on stderr
    failed = subprocess.run([BURROW, "get", "nobody", "--json"], capture_output=True, text=True, env=burrow.environment, timeout=PATIENCE)
    assert failed.returncode == 3 and json.loads(failed.stdout)["error"]["code"] and failed.stderr.startswith("burrow: ")
    nothing = str(tmp_path / "nothing")
    for line in (["runtime", "show", "nobody"], ["runtime", "list", "--sort", "odd"], ["runtime", "remove", "nobody"], ["runtime", "verify", "nobody"], ["runtime", "export", "nobody", "oci:x"],
                 ["key", "revoke", "key_nobody"], ["key", "create", "--scopes", "odd"], ["key", "list", "--data", nothing], ["repair", "--data", nothing], ["doctor", "--json", "odd"],
                 ["list", "--sort", "odd"], ["run", "--runtime", "no-such-one", "--", "true"], ["run", "--local", "--runtime", "no-such-one", "--", "true"]):
        at = line.index("--") if "--" in line else len(line)
        is_said = "--json" in line  # of those that read no options behind a word
        failed = subprocess.run([BURROW, *line[:at], *([] if is_said else ["--json"]), *line[at:]], capture_output=True, text=True, env=burrow.environment, timeout=PATIENCE)
        assert failed.returncode != 0, line
        assert failed.stdout, line
        told = json.loads(failed.stdout)
        sentence = told["error"]["message"] if "error" in told else told["message"]
        assert sentence and (sentence in failed.stderr or line[0] == "run"), (line, failed.stdout, failed.stderr)
    burrow("delete", "js")
    for one in burrow.json("snapshot", "list"):
        burrow("snapshot", "delete", one["id"])


# ---- what is not there ----

def test_an_unknown_sandbox_is_named_by_every_command_that_takes_one(burrow, tmp_path):
    (tmp_path / "file").write_text("x")
    fillers = {"PATH": "/x", "FILE": str(tmp_path / "file"), "NAME": "x", "JOB": "job_x", "PORT": "3000", "CHECKPOINT": "x", "WHERE": "9.9.9.9:1", "HOST[:PORT][/PROTOCOL]": "9.9.9.9:1"}
    tried = 0
    for words in commands():
        usage = next(line for line in help_of(words).splitlines() if line.startswith("usage:")).split()[len(words) + 2:]
        if not usage or usage[0] not in ("SANDBOX", "SANDBOX...", "SANDBOX|EXECUTION", "[SANDBOX]") or words in (("attach",), ("job", "get"), ("job", "logs"), ("job", "destroy")):
            continue
        operands = [fillers.get(word, "x") for word in usage[1:] if not word.startswith(("[", "-")) and word.isupper() and word not in ("COMMAND",)]
        line = [*words, "nobody", *operands, *(["--", "true"] if "COMMAND" in usage else [])]
        done = subprocess.run([BURROW, *line], capture_output=True, text=True, timeout=PATIENCE, env=burrow.environment, stdin=subprocess.DEVNULL)
        assert done.returncode == (125 if words in (("exec",), ("ssh",)) else 3) and "'nobody'" in done.stderr, (line, done.returncode, done.stderr)
        tried += 1
    assert tried > 20
    for line in (["snapshot", "get", "nothing"], ["execution", "get", "exe_nothing"], ["logs", "exe_nothing"], ["job", "get", "x", "job_nothing"], ["snapshot", "delete", "nothing"]):
        assert "nothing" in burrow.error(*line, code=3)


# ---- output ----

def test_output_that_the_server_does_not_keep_is_said_to_be_cut(burrow, work):
    job = burrow.json("job", "create", work, "--", "sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x")
    burrow("wait", job["id"])
    done = burrow("logs", job["id"])
    assert len(done.stdout) < 300000 and b"cut" in done.stderr, done.stderr
    told = subprocess.run([BURROW, "logs", job["id"], "--tail", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=burrow.environment, check=True).stdout
    assert told.startswith(b"xxx"), told[:200]  # what is said to be above is above
    told = burrow.json("exec", work, "--", "sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x")
    assert (len(told["stdout"]) == 300000) != told.get("stdoutTruncated", False)
    for words in (["exec", work], ["run"]):
        # what it writes while nobody takes it is more than is kept
        with subprocess.Popen([BURROW, *words, "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=burrow.environment) as process:
            until_blocked(process.pid)
            out, error = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0 and (len(out) == 3000000) != (b"cut" in error), (words, len(out), error)


@pytest.mark.parametrize("line", ["list", "fs ls WORK / -r", "logs WORK", "events WORK", "runtime list", "exec WORK -- seq 9000", "run -- seq 9000", "fs cp WORK:/many -"])
def test_a_broken_pipe_is_no_failure_that_is_told(burrow, work, line):
    burrow("exec", work, "--", "sh", "-c", "seq 100000 > /many; seq 20000")
    script = f'"$0" {line.replace("WORK", work)} | head -c 1 >/dev/null'
    done = subprocess.run(["bash", "-c", script, BURROW], capture_output=True, timeout=PATIENCE, env=burrow.environment, stdin=subprocess.DEVNULL)
    assert done.stderr == b""


# ---- interrupts ----

@pytest.mark.parametrize("words", [["exec", "work"], ["run"]])
def test_the_second_interrupt_ends_what_ignores_the_first(burrow, work, words):
    script = "trap 'echo no' INT; echo ready; while :; do sleep 0.1; done"
    with subprocess.Popen([BURROW, *words, "--", "bash", "-c", script], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=burrow.environment) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"no\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 128 + signal.SIGKILL


def until_blocked(pid):
    """Until it sleeps in a system call, twice with nothing done between."""
    def look():
        return pathlib.Path(f"/proc/{pid}/syscall").read_text(), pathlib.Path(f"/proc/{pid}/io").read_text()
    deadline, before = time.monotonic() + PATIENCE, None
    while before is None or before != look() or look()[0].startswith("running"):
        assert time.monotonic() < deadline, "it goes on"
        before = look()
        time.sleep(0.2)


def test_an_interrupted_copy_leaves_nothing_half_done(burrow, work):
    with subprocess.Popen([BURROW, "cp", "-", f"{work}:/half"], stdin=subprocess.PIPE, env=burrow.environment) as process:
        process.stdin.write(b"x" * 100000)  # more than a pipe holds: it is read
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    burrow("exec", work, "--", "seq", "100000")  # more than a pipe holds, and nobody reads it
    with subprocess.Popen([BURROW, "logs", work, "-f"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=burrow.environment) as process:
        assert process.stdout.readline()
        until_blocked(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    burrow("exec", work, "--", "test", "!", "-e", "/half")


@pytest.mark.parametrize("line, code", [("watch {here} {work}", 0), ("try --dir {here} --discard -- true", 130), ("snapshot build {here}", 130)])
def test_ctrl_c_ends_what_only_reads_here(burrow, work, tmp_path, line, code):
    """A file that takes hours."""
    (tmp_path / "agentuity-snapshot.yaml").write_text("version: 1\nruntime: base:latest\nfiles:\n  - '**'\n")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(4 << 40)
    process = subprocess.Popen([BURROW, *line.format(here=tmp_path, work=work).split()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=burrow.environment)
    try:
        until(lambda: int(pathlib.Path(f"/proc/{process.pid}/io").read_text().split()[1]) > 10 << 20, "it to read")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == code, process.stderr.read()
    finally:
        process.kill()
        process.communicate()


# ---- a terminal ----

def test_a_terminal_is_asked_before_something_is_deleted(burrow, terminal, tmp_path):
    burrow("create", "--name", "asked")
    window = terminal("burrow delete asked")
    window.wait_for("Delete sandbox 'asked' and all its files?")
    window.type("n", "Enter")
    window.wait_for("ended with")
    assert burrow.json("get", "asked")["name"] == "asked"
    window = terminal("burrow delete asked")
    window.wait_for("Delete sandbox 'asked'")
    window.type("y", "Enter")
    window.wait_for("ended with 0")
    burrow("get", "asked", code=3)
    burrow("create", "--name", "asked")  # also by who sends standard error elsewhere
    window = terminal("burrow delete asked 2>$LOG", LOG=str(tmp_path / "log"))
    window.wait_for("Delete sandbox 'asked' and all its files? [y/N]")
    window.type("n", "Enter")
    window.wait_for("ended with 130")
    burrow("delete", "asked")
    burrow("create", "--name", "unasked")
    terminal("burrow delete unasked --confirm").wait_for("ended with 0")


def test_each_deletion_is_asked_about(burrow, work, terminal, tmp_path):
    """Also where the answer is to be JSON: the question is on standard error."""
    burrow("checkpoint", "create", work, "kept")
    snapshot = burrow.json("snapshot", "create", work, "--name", "kept", "--tag", "kept")["id"]
    (tmp_path / "agentuity-snapshot.yaml").write_text("version: 1\nruntime: base:latest\nname: never-published\n")
    for line, question in ((f"delete {work} --json", f"Delete sandbox '{work}' and all its files?"), ("snapshot delete kept:kept", "Delete snapshot 'kept:kept'?"),
                           (f"checkpoint delete {work} kept", "Delete checkpoint 'kept'?"), ("system prune --json", "Remove what nothing uses?"),
                           ("snapshot build $PLACE --public", "Publish this snapshot to all organisations?")):
        window = terminal(f"burrow {line}", PLACE=str(tmp_path))
        window.wait_for(f"{question} [y/N]")
        window.type("Enter")
        window.wait_for("ended with 130")
    assert burrow.json("get", work)["state"] in ("idle", "running") and burrow.json("snapshot", "get", snapshot)["id"] == snapshot
    assert [one["name"] for one in burrow.json("checkpoint", "list", work)] == ["kept"]
    assert not [one for one in burrow.json("snapshot", "list") if one.get("name") == "never-published"]
    window = terminal(f"burrow checkpoint delete {work} kept")
    window.wait_for("[y/N]")
    window.type("C-c")
    window.wait_for("ended with 130")
    burrow("checkpoint", "delete", work, "kept")
    burrow("snapshot", "delete", snapshot)


def test_colours_are_for_terminals_that_want_them(burrow, work, terminal):
    assert b"\x1b" not in burrow("list").stdout
    for more, has_colours in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        term = "TERM=dumb" if "TERM" in more else "TERM=xterm"
        window = terminal(f"burrow list | cat -v; {term} script -qec 'burrow list' /dev/null | cat -v", **more)
        screen = window.wait_for("ended with")
        assert ("^[[" in screen) == has_colours, (more, screen)


def test_what_takes_long_shows_progress_and_ctrl_c_ends_it(burrow, work, terminal):
    window = terminal(f"(while head -c 100000 /dev/zero; do sleep 0.1; done) | burrow cp - {work}:/slow")
    window.wait_for("/s")
    window.type("C-c")
    window.wait_for("ended with 130")
    assert "iB" not in window.wait_for("ended with").split("ended with")[1]
    burrow("exec", work, "--", "test", "!", "-e", "/slow")


class Slow(threading.Thread):
    """A server that gives and takes 200 KiB at a time, ten times a second, until it is let go."""

    STAT = json.dumps({"kind": "file", "mode": "0644", "path": "/x", "sizeBytes": 1 << 30}).encode()

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.is_over = threading.Event()
        self.start()

    def run(self):
        try:
            while True:
                threading.Thread(target=self.serve, args=(self.socket.accept()[0],), daemon=True).start()
        except OSError:
            pass

    def answer(self, peer, body, length=None, status="200 OK"):
        peer.sendall(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length or len(body)}\r\n\r\n".encode() + body)

    def serve(self, peer):
        with peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            try:
                while (head := peer.recv(65536)):
                    method = head.split()[0]
                    if b"/stat?" in head:
                        is_sent = not re.search(rb"path=(%2F|/)x", head)  # what is to be sent is not there yet
                        self.answer(peer, b'{"title": "none"}' if is_sent else self.STAT, status="404 Not Found" if is_sent else "200 OK")
                    elif b"/system/limits" in head:
                        self.answer(peer, b'{"fileBytes": 1073741824}')
                    elif method == b"POST" and b"/import" not in head:
                        self.answer(peer, b'{"id": "snp_x"}')
                    else:
                        self.trickle(peer, method == b"GET")
            except OSError:
                pass

    def trickle(self, peer, gives):
        if gives:
            self.answer(peer, b"", length=1 << 30)
        while not self.is_over.wait(0.1):
            if gives:
                peer.sendall(b"x" * (200 << 10))
            else:
                assert peer.recv(200 << 10)


@pytest.fixture
def slow():
    server = Slow()
    yield server
    server.is_over.set()
    server.socket.close()


@pytest.mark.parametrize("line", ["cp box:/x taken", "fs download box taken.tar.gz --path /x", "cp large box:/y", "fs upload box large", "cp -r tree box:/y", "snapshot import large",
                                  "snapshot build tree"])
def test_what_takes_long_tells_how_fast_it_is_and_how_long_it_takes(slow, terminal, tmp_path, line):
    (tmp_path / "tree").mkdir()
    for place in ("large", "tree/" + "with-a-name-that-is-longer-than-a-terminal-" * 3):
        with (tmp_path / place).open("wb") as file:
            file.truncate(64 << 20)
    (tmp_path / "tree/agentuity-snapshot.yaml").write_text("version: 1\nruntime: base:latest\nfiles:\n  - 'with*'\n")
    window = terminal(f"cd $PLACE && exec burrow {line}", BURROW_URL=slow.url, PLACE=str(tmp_path))
    screen = window.wait_for(" left")
    shown = [row for row in screen.splitlines() if " left" in row]
    assert len(shown) == 1 and re.search(r"\[[# ]{24}\] [\d.]+ [KM]?i?B of [\d.]+ [MG]iB  [\d.]+ [KM]?i?B/s  .*[\dsmh] left$", shown[0]), screen
    window.type("C-c")
    window.wait_for("ended with 130")
    assert not list(tmp_path.glob("taken*"))


class Making(threading.Thread):
    """A server that makes a runtime: a hundredth further at each question."""

    def __init__(self):
        super().__init__(daemon=True)
        self.percent = 30
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.start()

    def run(self):
        try:
            while True:
                peer, _ = self.socket.accept()
                with peer:
                    peer.recv(65536)
                    self.percent += 1
                    told = {"code": "runtime_not_ready", "detail": f"runtime 'x:latest' is being made (installing packages, {self.percent} %); try again in a moment"}
                    peer.sendall(http(json.dumps(told).encode(), status="503 Service Unavailable"))
        except OSError:
            pass


@pytest.mark.parametrize("line", ["create --runtime x", "run --runtime x -- true"])
def test_a_runtime_that_the_server_makes_shows_how_far_it_is(terminal, line):
    making = Making()
    window = terminal(f"exec burrow {line}", BURROW_URL=making.url)
    screen = window.wait_for(" left")
    assert re.search(r"^\[#{7,} +\] +\d+%  [\d.]+%/s  .*[\dsmh] left  installing packages$", screen, re.M), screen
    window.type("C-c")
    window.wait_for("ended with 1")
    making.socket.close()


def test_a_bar_stays_in_its_line(slow, terminal, tmp_path):
    name = "long-" * 40
    with (tmp_path / name).open("wb") as file:
        file.truncate(64 << 20)
    window = terminal(f"cd $PLACE && exec burrow cp {name} box:/y", BURROW_URL=slow.url, PLACE=str(tmp_path))
    seen, deadline = set(), time.monotonic() + PATIENCE
    while len(seen) < 4:  # it is drawn again and again
        assert time.monotonic() < deadline, seen
        seen |= set(re.findall(r"\] (\S+ \S+) of", window.screen()))
    assert 1 < window.screen().count("long-") < 20, window.screen()
    window.type("C-c")
    window.wait_for("ended with 130")


# ---- options that no other test uses ----

def test_options_of_commands(burrow, work, server, tmp_path):
    assert burrow.text("exec", work, "--no-stdin", "--", "cat", input=b"unread") == ""
    assert burrow.text("run", "--output-limit", "10", "--", "echo", "0123456789abc").startswith("0123456789")
    assert burrow.error("run", "--local", "--network-rate", "nonsense", "--", "true", code=2)
    assert "--network-dns" in burrow.error("run", "--url", f"http://127.0.0.1:{server.port}", "--network-dns", "9.9.9.9", "--", "true", code=2)
    assert burrow.error("run", "--deny", "not a rule", "--", "true", code=2)
    assert "npm" in burrow.error("run", "--package", "typescript", "--", "true", code=2)
    assert "npm" in burrow.error("create", "--package", "typescript", code=2)
    assert "no good" in burrow.error("create", "--dependency", "no good", code=2)
    burrow("create", "--name", "someone", "--user", "nobody")
    assert burrow.text("exec", "someone", "--", "id", "-un") == "nobody\n"
    assert burrow.text("fork", "someone", "--quiet", "--name", "someone2").startswith("sbx_")
    for name in ("someone", "someone2"):
        burrow("delete", name)
    assert burrow.text("code", work, "x = 1\nx", "--in", "one", "--timeout", "1m") == "1\n"
    assert burrow.json("ps", work, "--all")
    burrow("attach", work, "--workdir", "/tmp", "--user", "root", "--", "sh", "-c", "exit 4", input=b"", code=4)
    job = burrow.json("job", "create", work, "--timeout", "1m", "--env", "A=5", "--workdir", "/srv", "--", "sh", "-c", "echo $A; pwd")
    for words in (["job", "logs", work, job["id"], "--follow"], ["execution", "logs", job["id"], "--follow"], ["logs", job["id"], "--follow"]):
        assert burrow.text(*words) == "5\n/srv\n"
    job = burrow.json("job", "create", work, "--", "sleep", "1000")
    burrow("execution", "stop", job["id"], "--force")
    burrow("exec", work, "--", "sh", "-c", "mkdir -p /tree/a; touch /tree/a/b")
    burrow("fs", "rm", work, "/tree", "--recursive")
    assert burrow.json("network", "policy", work, "--deny", "9.9.9.9")["deny"] == ["9.9.9.9"]
    assert burrow.json("runtime", "list", "--sort", "name", "--direction", "desc")[0]["name"] > "m"
    assert burrow.error("runtime", "build", "no-such-one", "--registry", "http://127.0.0.1:1", code=3)
    burrow("system", "prune", "--confirm")
    shown = shlex.split(burrow.text("ssh", work, "--show", "--local", "8080:localhost:80", "--dynamic", "1080", "--tty", "--no-command"))
    assert shown[shown.index("-L") + 1] == "8080:localhost:80" and shown[shown.index("-D") + 1] == "1080" and {"-t", "-N"} <= set(shown)
    assert burrow.json("key", "create", "--name", "e", "--e2b")["key"].startswith("e2b_")
    assert burrow.json("key", "create", "--name", "m", "--tools", "run,exec", "--network-allow", "*.example.com:443")["key"].startswith("brw_")


def test_options_of_snapshots(burrow, work, tmp_path):
    burrow("checkpoint", "create", work, "one")
    burrow("exec", work, "--", "touch", "/workspace/between")
    burrow("checkpoint", "create", work, "two")
    assert "/workspace/between" in burrow.text("diff", work, "--from", "one", "--to", "two")
    made = burrow.json("snapshot", "create", work, "--name", "moved", "--tag", "v1")
    burrow("snapshot", "export", made["id"], tmp_path / "s.tar", "--format", "oci")
    assert (tmp_path / "s.tar").stat().st_size > 0
    burrow("snapshot", "export", made["id"], tmp_path / "s.tar.zst")
    forced = burrow.json("snapshot", "import", tmp_path / "s.tar.zst", "--name", "moved", "--tag", "v2", "--public", "--force")
    assert forced["public"] is True
    for one in (made, forced):
        burrow("snapshot", "delete", one["id"])
    for name in ("two", "one"):
        burrow("checkpoint", "delete", work, name)
