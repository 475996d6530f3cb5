# SPDX-License-Identifier: Apache-2.0
"""burrow try: on a copy of a directory and in a fork, with sandboxes that want more than that."""
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import threading

import pytest

from test_commands import BURROW, PATIENCE, burrow, pytestmark, server, work  # noqa: F401
from test_live_commands import terminal  # noqa: F401


@pytest.fixture
def here(tmp_path):
    directory = tmp_path / "here"
    directory.mkdir()
    (directory / "kept").write_text("as it is\n")
    (directory / "changed").write_text("one\ntwo\n")
    (directory / "gone").write_text("x")
    (directory / "sub").mkdir()
    (directory / "sub/inner").write_text("y")
    (directory / "away").symlink_to("/etc/passwd")
    (directory / ".git").mkdir()
    (directory / ".git/config").write_text("[core]\n")
    return directory


def snapshot(directory):
    return {str(path.relative_to(directory)): os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else None
            for path in sorted(directory.rglob("*"))}


CHANGE = "printf 'one\\n2\\n' >changed; rm gone; rm -r sub; mkdir -p new/deep; echo n >new/deep/f; chmod 755 new/deep/f; ln -s f new/deep/l; echo out; exit 3"


def test_what_is_shown_is_applied(burrow, here):  # noqa: F811
    before = snapshot(here)
    told = burrow("try", "--dir", here, "--discard", "--", "sh", "-c", CHANGE, code=3)
    shown = told.stdout.decode()
    assert shown.startswith("out\n") and "discarded 8 changes" in shown
    for line in ("~ changed", "- gone", "- sub/", "- sub/inner", "+ new/", "+ new/deep/f", "+ new/deep/l", "  -two", "  +2"):
        assert f"\n{line}\n" in shown, shown
    assert snapshot(here) == before
    # without a word and without a terminal nothing is applied
    assert b"say --apply or --discard" in burrow("try", "--dir", here, "--", "sh", "-c", CHANGE, code=3).stderr
    assert snapshot(here) == before
    told = burrow.json("try", "--dir", here, "--apply", "--", "sh", "-c", CHANGE, code=3)
    assert told["exitCode"] == 3 and told["applied"] and all(item["applied"] for item in told["changes"])
    assert snapshot(here) == {".git": None, ".git/config": "[core]\n", "away": "/etc/passwd", "changed": "one\n2\n", "kept": "as it is\n",
                              "new": None, "new/deep": None, "new/deep/f": "n\n", "new/deep/l": "f"}
    assert os.access(here / "new/deep/f", os.X_OK)
    assert burrow.json("list") == [] or all(item["state"] in ("ended", "failed") or item.get("name") for item in burrow.json("list"))
    assert "nothing was changed" in burrow.text("try", "--dir", here, "--apply", "--", "true")


def test_a_hostile_copy_writes_nowhere_else(burrow, here, tmp_path):  # noqa: F811
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("safe")
    trick = (f"ln -s {outside} out; ln -s ../outside up; ln -s / top; mkfifo pipe; mkdir d; ln -s d inside; echo x >d/f; "
             "rm -r .git/config; mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; mkdir -p a/.git; echo e >a/.git/config; "
             "printf x >\"$(printf 'esc\\033]0;owned\\007')\"; echo s >suid; chmod 6755 suid; rm changed; ln -s kept changed")
    told = burrow("try", "--dir", here, "--apply", "--", "sh", "-c", trick)
    assert b"\x1b]" not in told.stdout + told.stderr and b"left out" in told.stderr
    for name in ("out", "up", "top", "pipe", ".git/hooks", "a/.git"):
        assert not os.path.lexists(here / name), name
    assert (here / ".git/config").read_text() == "[core]\n" and (outside / "f").read_text() == "safe"
    assert [path.name for path in outside.iterdir()] == ["f"]
    assert os.readlink(here / "inside") == "d" and os.readlink(here / "changed") == "kept" and (here / "d/f").read_text() == "x\n"
    assert (here / "suid").stat().st_mode & 0o7777 == 0o755
    # more than may come back
    assert "--limit" in burrow.error("try", "--dir", here, "--limit", "1Mi", "--apply", "--", "sh", "-c", "head -c 3000000 /dev/zero >big", code=125)
    assert not (here / "big").exists()


def test_no_line_of_what_is_shown_ends_before_its_end(burrow, here):  # noqa: F811
    (here / "long").write_text("line\n" * 30000)
    shown = burrow("try", "--dir", here, "--discard", "--", "sh", "-c", "printf 'begin\\000hidden\\342\\200\\256turned\n' >>long").stdout
    assert b"\n  +begin?hidden???turned\n" in shown, shown[-500:]


def test_what_changed_here_meanwhile_stays(burrow, here, tmp_path):  # noqa: F811
    # the command waits for its input, which comes once the directory has changed
    words = [BURROW, "try", "--dir", here, "--apply", "--", "sh", "-c", "read x; echo theirs >changed; echo theirs >kept; rm gone; echo n >both"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=burrow.environment)
    try:
        until_running(burrow)
        (here / "changed").write_text("mine\n")
        (here / "both").mkdir()
        (here / "gone").write_text("still wanted")
        out, error = process.communicate(b"go\n", timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, (out, error)
    assert (here / "changed").read_text() == "mine\n" and (here / "both").is_dir() and (here / "gone").exists()
    assert (here / "kept").read_text() == "theirs\n"
    assert error.count(b"left alone, changed here meanwhile") == 3 and b"applied 1 of 4" in out


def until_running(burrow):  # noqa: F811
    from client import until
    until(lambda: any(item["state"] == "running" and not item.get("name") for item in burrow.json("list")), "the command to run")


def test_a_directory_exchanged_for_a_link_is_not_walked(burrow, here, tmp_path):  # noqa: F811
    outside = tmp_path / "outside"
    outside.mkdir()
    words = [BURROW, "try", "--dir", here, "--apply", "--force", "--", "sh", "-c", "read x; echo evil >sub/inner"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=burrow.environment)
    try:
        until_running(burrow)
        (here / "sub").rename(tmp_path / "moved")
        (here / "sub").symlink_to(outside)
        process.communicate(b"go\n", timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert list(outside.iterdir()) == [] and (tmp_path / "moved/inner").read_text() == "y"


def test_in_a_fork(burrow, work):  # noqa: F811
    burrow("exec", work, "--", "sh", "-c", "mkdir -p /t/old; echo 1 >/t/a; echo 1 >/t/b; echo 1 >/t/old/c")
    change = "echo 2 >/t/a; rm -r /t/old; mkdir /t/new; echo 3 >/t/new/f; ln -s f /t/new/l"
    look = ("exec", work, "--", "sh", "-c", "cd /t; for f in $(find . | sort); do echo $f $(readlink $f || cat $f 2>/dev/null); done")
    before = burrow.text(*look)
    shown = burrow.text("try", "--sandbox", work, "--discard", "--", "sh", "-c", change)
    assert "~ /t/a" in shown and "+ /t/new/f" in shown and "discarded" in shown
    assert burrow.text(*look) == before
    burrow("try", "--sandbox", work, "--apply", "--", "sh", "-c", change)
    assert burrow.text(*look) == ". \n./a 2\n./b 1\n./new \n./new/f 3\n./new/l f\n".replace(" \n", "\n")
    assert burrow.json("checkpoint", "list", work) == []
    # the same file, changed in both
    told = burrow.json("try", "--sandbox", work, "--apply", "--", "sh", "-c", "echo 9 >/t/b")
    assert [item["path"] for item in told["changes"] if item["applied"]] == ["/t/b"]
    # more than may be taken, though hardly any of it is there
    assert "nothing was applied" in burrow.error("try", "--sandbox", work, "--limit", "1Mi", "--apply", "--", "sh", "-c", "echo 8 >/t/a; truncate -s 3M /t/b", code=125)
    assert burrow.text("exec", work, "--", "cat", "/t/a", "/t/b") == "2\n9\n"
    burrow("exec", work, "--", "rm", "-r", "/t")
    assert "leave one out" in burrow.error("try", "--apply", "--discard", "--", "true", code=2)
    assert "there is no sandbox" in burrow.error("try", "--sandbox", "nobody", "--", "true", code=125)


def test_the_copy_is_as_it_was_asked_for(burrow, here):  # noqa: F811
    script = "ulimit -a >/dev/null; echo $A $(whoami) $(nproc) >told; head -c 999999999 /dev/zero >/full; true"
    burrow("try", "--dir", here, "--memory", "256Mi", "--cpu", "500m", "--disk", "64Mi", "--runtime", "base:latest", "--env", "A=1", "--timeout", "2m",
           "--user", "root", "--quiet", "--force", "--apply", "--", "sh", "-c", script)
    assert (here / "told").read_text() == "1 root 1\n"
    burrow("try", "--dir", here, "--timeout", "1s", "--discard", "--", "sleep", "60", code=124)
    assert "a fork has what its sandbox has" in burrow.error("try", "--sandbox", "x", "--network", "--allow", "example.com:443", "--", "true", code=2)


def nothing_is_left(burrow):  # noqa: F811
    """Neither the copy nor a fork; those of others have names."""
    from client import until
    until(lambda: all(item["state"] in ("ended", "deleted", "failed") or item.get("name") for item in burrow.json("list")), "the copy to be ended")


class Held:
    """The server behind a socket of its own, that holds the answer to a request whose head begins so, until it is let go."""

    def __init__(self, path, server, head):
        self.server, self.head, self.is_met, self.is_free = str(server), head, threading.Event(), threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.relay, args=(near,), daemon=True).start()

    def relay(self, near):
        with near, socket.socket(socket.AF_UNIX) as far:
            far.connect(self.server)
            ends, holds = {near: far, far: near}, False
            while True:
                for one in select.select(list(ends), [], [])[0]:
                    data = one.recv(65536)
                    if not data:
                        return
                    holds = holds or data.startswith(self.head)
                    if one is far and holds:
                        self.is_met.set()
                        self.is_free.wait(PATIENCE)
                        holds = False
                    try:
                        ends[one].sendall(data)
                    except OSError:
                        return

    def close(self):
        self.is_free.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.mark.parametrize("held", ["/sandboxes ", "/sandboxes/{work}/checkpoints ", "/sandboxes/{work}/fork "])
def test_an_interrupt_while_the_copy_is_made_leaves_none(burrow, here, tmp_path, work, held):  # noqa: F811
    """The server has made it, and nobody was told which one it is."""
    head = f"POST /api/v1{held.format(work=work)}".encode()
    where = ["--sandbox", work] if "{work}" in held else ["--dir", here]
    relay = Held(tmp_path / "s", pathlib.Path(burrow.environment["BURROW_DATA"]) / "burrow.sock", head)
    process = subprocess.Popen([BURROW, "try", *where, "--discard", "--", "true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                               env={**burrow.environment, "BURROW_URL": f"unix:{tmp_path}/s"})
    try:
        assert relay.is_met.wait(PATIENCE)
        process.send_signal(signal.SIGINT)
        relay.is_free.set()
        out, error = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
        relay.close()
    assert process.returncode == 130 and b"interrupted" in error, (process.returncode, out, error)
    nothing_is_left(burrow)
    assert burrow.json("checkpoint", "list", work) == []


def test_an_interrupt_at_the_question_leaves_no_copy(terminal, burrow, here, work):  # noqa: F811
    for words in (["--dir", str(here)], ["--sandbox", work]):
        window = terminal("try", *words, "--no-stdin", "--", "sh", "-c", "echo new >changed")
        window.wait_for("? [y/N]")
        window.type("C-c")
        window.wait_for("ended with 0")
        nothing_is_left(burrow)
        assert (here / "changed").read_text() == "one\ntwo\n"
    assert burrow.json("checkpoint", "list", work) == []


def test_on_a_terminal_it_asks(terminal, here):  # noqa: F811
    window = terminal("try", "--dir", str(here), "--no-stdin", "--", "sh", "-c", "echo new >changed")
    window.wait_for("Apply 1 change? [y/N]")
    window.type("n", "Enter")
    window.wait_for("ended with 0")
    assert (here / "changed").read_text() == "one\ntwo\n"
    window = terminal("try", "--dir", str(here), "--no-stdin", "--", "sh", "-c", "echo new >changed")
    window.wait_for("Apply 1 change? [y/N]")
    window.type("y", "Enter")
    window.wait_for("applied 1 of 1 change")
    window.wait_for("ended with 0")
    assert (here / "changed").read_text() == "new\n"
