# SPDX-License-Identifier: Apache-2.0
"""burrow attach on a real terminal (tmux), burrow code and burrow top."""
import contextlib
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time

import pytest

from test_commands import BURROW, PATIENCE, burrow, pytestmark, server, work  # noqa: F401


class Terminal:
    """A window of a tmux server of its own."""

    def __init__(self, socket, environment, command):
        self.tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        words = " ".join(shlex.quote(str(word)) for word in command)
        self.run("new-session", "-d", "-x", "100", "-y", "30", f"trap : INT; {words}; echo ended with $?; sleep 1000", env=environment)

    def run(self, *words, **options):
        return subprocess.run([*self.tmux, *words], check=True, capture_output=True, text=True, **options).stdout

    def type(self, *keys):
        self.run("send-keys", *keys)

    def screen(self):
        return self.run("capture-pane", "-J", "-p", "-S", "-200")

    def wait_for(self, text):
        deadline = time.monotonic() + PATIENCE
        while text not in self.screen():
            assert time.monotonic() < deadline, f"{text!r} is not on:\n{self.screen()}"
            time.sleep(0.05)
        return self.screen()

    def wait_for_prompt(self, text):
        deadline = time.monotonic() + PATIENCE
        while not (text in (screen := self.screen()) and screen.rstrip().endswith("#")):
            assert time.monotonic() < deadline, f"no prompt after {text!r} on:\n{screen}"
            time.sleep(0.05)

    def resize(self, cols, rows):
        """tmux tells its terminal after a while."""
        self.run("resize-window", "-x", str(cols), "-y", str(rows))
        terminal = self.run("list-panes", "-F", "#{pane_tty}").strip()
        deadline = time.monotonic() + PATIENCE
        while subprocess.run(["stty", "-F", terminal, "size"], check=True, capture_output=True, text=True).stdout.split() != [str(rows), str(cols)]:
            assert time.monotonic() < deadline, "tmux did not resize its terminal"
            time.sleep(0.05)

    def close(self):
        subprocess.run([*self.tmux, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def terminal(tmp_path, burrow):  # noqa: F811
    made = []

    def open_one(*words):
        made.append(Terminal(tmp_path / f"tmux{len(made)}", {**burrow.environment, "TERM": "xterm"}, [BURROW, *words]))
        return made[-1]
    yield open_one
    for one in made:
        one.close()


def test_attach_has_a_terminal_that_can_be_left_and_taken_up_again(terminal, burrow, work):  # noqa: F811
    window = terminal("attach", work)
    window.wait_for("Ctrl-P Ctrl-Q leaves")
    window.type("stty size; tty; KEPT=4$((1+1))", "Enter")
    window.wait_for("30 100")
    window.wait_for("/dev/pts")
    window.resize(80, 20)
    window.type("stty size; echo resized", "Enter")
    window.wait_for("20 80")
    window.type("echo be''gun; sleep 1000", "Enter")
    window.wait_for("begun")
    window.type("C-c")
    window.wait_for_prompt("^C")  # what is typed before is thrown away by the interrupt
    window.type("echo after $((3*7)) interrupt", "Enter")
    window.wait_for("after 21 interrupt")
    window.type("C-p", "C-q")
    left = window.wait_for("To come back: burrow attach ")
    window.wait_for("ended with 0")
    id = left.split("To come back: burrow attach ")[1].split()[0]
    again = terminal("attach", id)
    again.type("", "Enter")
    again.type("echo it was $KEPT; exit 3", "Enter")
    again.wait_for("it was 42")
    again.wait_for("ended with 3")


def left_terminal(window):
    """Its id."""
    left = window.wait_for("To come back: burrow attach ")
    return left.split("To come back: burrow attach ")[1].split()[0]


def test_what_a_program_asked_its_terminal_is_not_asked_again(terminal, burrow, work):  # noqa: F811
    window = terminal("attach", work, "--", "bash", "--norc", "-i")
    window.wait_for_prompt("Ctrl-P Ctrl-Q leaves")
    window.type(r"printf '\033[>c\033[6n'; read -rs -d R answer; echo; echo answered $((${#answer}>0))", "Enter")
    window.wait_for("answered 1")  # live, it is
    window.type("C-p", "C-q")
    id = left_terminal(window)
    again = terminal("attach", id)
    again.wait_for_prompt("answered 1")
    again.type("echo after $((6*7))", "Enter")
    screen = again.wait_for("after 42")
    assert re.search(r"# echo after \$\(\(6\*7\)\)\nafter 42\n", screen), screen
    again.type("exit", "Enter")
    again.wait_for("ended with 0")
    ended = terminal("attach", id)  # whose answers nobody in the sandbox would take
    ended.wait_for("ended with 0")
    ended.type("typed here", "Enter")
    screen = ended.wait_for("typed here")
    assert "^[" not in screen and "answered 1" in screen, screen


FULL_SCREEN = r"printf '\033[?1049h\033[?1h\033=\033[?1003;1006h\033[?2004h\033[?25lfull''screen'; sleep 1000"


def modes(window):
    names = ("alternate_on", "cursor_flag", "keypad_cursor_flag", "keypad_flag", "mouse_all_flag", "mouse_sgr_flag")
    return window.run("display-message", "-p", " ".join(f"#{{{name}}}" for name in names)).split()


def test_the_screen_is_given_back_however_attach_ends(terminal, burrow, work):  # noqa: F811
    window = terminal("attach", work)
    window.wait_for_prompt("Ctrl-P Ctrl-Q leaves")
    window.type(FULL_SCREEN, "Enter")
    window.wait_for("fullscreen")
    assert modes(window) == ["1", "0", "1", "1", "1", "1"]
    window.type("C-p", "C-q")
    id = left_terminal(window)
    screen = window.wait_for("ended with 0")
    assert modes(window) == ["0", "1", "0", "0", "0", "0"] and "Ctrl-P Ctrl-Q leaves" in screen and "fullscreen" not in screen
    killed, over = terminal("attach", id), terminal("attach", id)
    for one in (killed, over):
        one.wait_for("fullscreen")
        assert modes(one) == ["1", "0", "1", "1", "1", "1"]
    [pid] = children_of(killed.run("list-panes", "-F", "#{pane_pid}").strip())
    os.kill(int(pid), signal.SIGTERM)
    killed.wait_for("ended with 143")
    burrow("execution", "stop", id, "--force")
    over.wait_for("ended with 137")
    for one in (killed, over):
        assert modes(one) == ["0", "1", "0", "0", "0", "0"], one.screen()


def test_a_key_that_could_leave_is_handed_on_when_no_other_follows(terminal, burrow, work):  # noqa: F811
    window = terminal("attach", work, "--", "bash", "--norc", "-i")
    window.wait_for_prompt("Ctrl-P Ctrl-Q leaves")
    window.type("echo earlier $((6*7))", "Enter")
    window.wait_for_prompt("earlier 42")
    window.type("C-p")
    deadline = time.monotonic() + PATIENCE
    while not (screen := window.screen().rstrip()).endswith("# echo earlier $((6*7))"):
        assert time.monotonic() < deadline, screen
        time.sleep(0.05)
    window.type("C-q", "C-a", "Enter", "exit", "Enter")  # Ctrl-Q alone takes the next key as it is
    assert "To come back" not in window.wait_for("has ended")


def test_other_keys_can_leave(terminal, burrow, work):  # noqa: F811
    window = terminal("attach", work, "--detach-keys", "ctrl-],q", "--", "cat", "-v")
    window.wait_for("Ctrl-] q leaves")
    window.type("C-p", "C-q", "quick", "Enter")
    window.wait_for("^P")
    window.type("C-]", "q")
    id = left_terminal(window)
    window.wait_for("ended with 0")
    burrow("execution", "stop", id, "--force")
    assert "ctrl-p,ctrl-q" in burrow.error("attach", work, "--detach-keys", "ctrl-pq", code=2)


def test_run_has_a_terminal_on_a_server_too(terminal, burrow, server):  # noqa: F811
    window = terminal("run", "--url", f"http://127.0.0.1:{server.port}", "--api-key", server.key, "--tty", "--env", "A=6", "--workdir", "/tmp", "--timeout", "5m",
                      "--", "bash")
    window.wait_for("# ")
    window.type("tty; stty size; echo $((A*7)) in $PWD; exit 3", "Enter")
    screen = window.wait_for("ended with 3")
    assert "/dev/pts" in screen and "30 100" in screen and "42 in /tmp" in screen
    deadline = time.monotonic() + PATIENCE
    while [one for one in burrow.json("list", "--status", "creating,idle,running") if not one.get("name")]:
        assert time.monotonic() < deadline, "its sandbox stayed"


def test_attach_takes_commands_from_a_pipe(burrow, work):  # noqa: F811
    done = burrow("attach", work, input=b"echo $((6*7))\nexit 5\n", code=5)
    assert b"42" in done.stdout
    assert burrow.text("attach", work, "-w", "/tmp", "--", "pwd").split()[-1] == "/tmp"
    assert "there is no sandbox" in burrow.error("attach", "nobody", code=125)
    for _ in range(3):
        burrow("attach", work)  # ends with its input, which ends before the shell reads


def test_attach_says_why_a_command_did_not_run(terminal, burrow, work):  # noqa: F811
    for words, code in ((["--", "nosuchcmd"], 127), (["-u", "nosuchuser", "--", "true"], 126)):
        why = burrow.error("exec", work, *words, code=code)
        assert "nosuch" in why and why.startswith("burrow: "), why
        assert why in burrow.error("attach", work, *words, code=code, input=b"")
        screen = terminal("attach", work, *words).wait_for(f"ended with {code}")
        assert why + "burrow: the terminal in work has ended\n" in screen, screen


def test_code_keeps_what_it_defines(burrow, work):  # noqa: F811
    assert burrow.text("code", work, "x = 20\nprint('hello')\nx + 1") == "hello\n21\n"
    assert burrow.text("code", work, input=b"x * 2\n") == "40\n"
    failed = burrow("code", work, "1/0", code=1)
    assert b"ZeroDivisionError" in failed.stderr and failed.stdout == b""
    assert burrow.text("code", work, "-l", "bash", "cd /tmp; pwd") == "/tmp\n"
    assert burrow.json("code", work, "x")["results"][0]["data"]["text/plain"] == "20"
    assert "cobol" in burrow.error("code", work, "-l", "cobol", "1", code=2)


def test_top_tells_what_is_used(burrow, work, terminal):  # noqa: F811
    burrow("job", "create", work, "--", "sh", "-c", "while :; do :; done")
    job = burrow.json("ps", work)[-1]
    deadline = time.monotonic() + PATIENCE
    burrow("exec", work, "--", "sh", "-c", "head -c 20000000 /dev/urandom >/workspace/large; sync")
    while not [one for one in burrow.json("top") if one["name"] == work and one["diskBytes"] >= 20000000]:
        assert time.monotonic() < deadline, "it has no files"
    # each look tells what is used in between, and not what somebody wrote down of it now and then
    for _ in range(4):
        [told] = [one for one in burrow.json("top") if one["name"] == work]
        assert 50 < told["cpuMillicores"] < 1300 and 0 < told["memoryBytes"] <= told["memoryLimitBytes"] and told["diskLimitBytes"] > 20000000, told
    shown = burrow.text("top")
    assert shown.splitlines()[0].split() == ["ID", "NAME", "STATE", "CPU", "MEMORY", "LIMIT", "DISK", "NETWORK", "OUT"] and work in shown and re.search(r" (19|2\d)\.\d MiB +0 B/s$", shown, re.M)
    window = terminal("top")
    window.wait_for("NETWORK OUT")
    burrow("create", "--name", "came-later")  # the table is drawn anew
    window.wait_for("came-later")
    window.type("C-c")
    window.wait_for("ended with")
    burrow("delete", "came-later", "--confirm")
    burrow("job", "destroy", work, job["id"])


def test_top_tells_what_is_sent(burrow):  # noqa: F811
    burrow("create", "--name", "sends", "--network", "--idle-timeout", "0")
    burrow("job", "create", "sends", "--", "bash", "-c", "while :; do head -c 1000 /dev/zero >/dev/udp/9.9.9.9/4000; sleep 0.01; done")
    try:
        for _ in range(2):
            [told] = [one for one in burrow.json("top") if one["name"] == "sends"]
            assert 1000 < told["egressBytesPerSecond"] < 1000000, told
        assert re.search(r" sends .* [\d.]+ KiB/s$", burrow.text("top"), re.M)
    finally:
        burrow("delete", "sends")


def children_of(parent):
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # gone meanwhile
            if f"\nPPid:\t{parent}\n" in status.read_text():
                found.append(status.parent.name)
    return found


def test_a_terminated_attach_gives_the_terminal_back(terminal, burrow, work):  # noqa: F811
    window = terminal("attach", work)
    window.wait_for("Ctrl-P Ctrl-Q leaves")
    window.wait_for_prompt("#")
    [pane] = window.run("list-panes", "-F", "#{pane_pid} #{pane_tty}").splitlines()
    shell, tty = pane.split()
    [pid] = children_of(shell)
    assert "-icanon" in subprocess.run(["stty", "-aF", tty], capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(pid), signal.SIGTERM)
    left = window.wait_for("ended with 143")
    settings = subprocess.run(["stty", "-aF", tty], capture_output=True, text=True, check=True).stdout.replace(";", " ").split()
    assert {"icanon", "echo", "isig", "opost"} <= set(settings), settings
    id = left.split("To come back: burrow attach ")[1].split()[0]
    assert burrow.json("execution", "get", id)["state"] == "running"
    burrow("execution", "stop", id, "--force")
