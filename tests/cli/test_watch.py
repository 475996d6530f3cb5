# SPDX-License-Identifier: Apache-2.0
"""burrow watch: a directory and a sandbox in step, with servers that go away and sandboxes that want more."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from test_commands import BURROW, Cli, PATIENCE, pytestmark, servers  # noqa: F401
from client import until


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A server that tests may stop."""
    server = servers.Server(tmp_path_factory.mktemp("watch") / "data")
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(scope="module")
def burrow(own, tmp_path_factory):
    return Cli(tmp_path_factory.mktemp("watcher"), BURROW_DATA=str(own.data))


class Watch:
    def __init__(self, burrow, directory, sandbox, log, *words):
        self.burrow, self.directory, self.sandbox = burrow, directory, sandbox
        self.log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen([BURROW, "watch", directory, f"{sandbox}:/w", *words], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, env=burrow.environment)

    def inside(self, script):
        return self.burrow.text("exec", self.sandbox, "--", "sh", "-c", f"until [ -d /w ]; do sleep 0.01; done; cd /w; {script}")

    def tree(self):
        """Both sides, as lists of paths and contents."""
        try:
            return self.look()
        except FileNotFoundError:  # it went meanwhile
            return {}

    def look(self):
        here = {}
        for path in sorted(self.directory.rglob("*")):
            name = str(path.relative_to(self.directory))
            here[name] = f"-> {os.readlink(path)}" if path.is_symlink() else "/" if path.is_dir() else path.read_text()
        return here

    def there(self):
        script = ("find . -mindepth 1 | sort | while read -r f; do if [ -L \"$f\" ]; then echo \"$f|-> $(readlink \"$f\")\"; "
                  "elif [ -d \"$f\" ]; then echo \"$f|/\"; else echo \"$f|$(cat \"$f\")\"; fi; done")
        return {line.split("|", 1)[0][2:]: line.split("|", 1)[1] for line in self.inside(script).splitlines()}

    def until(self, wanted):
        def is_there():
            assert self.process.poll() is None, self.log.read_text()
            return self.tree() == wanted and self.there() == wanted
        try:
            until(is_there, "both sides to be in step")
        except AssertionError:
            raise AssertionError(f"wanted {wanted}\nhere {self.tree()}\nthere {self.there()}\n{self.log.read_text()}") from None

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        assert self.process.wait(PATIENCE) == 0, self.log.read_text()
        return self.log.read_text()

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def watch(burrow, tmp_path, request):
    made = []
    name = f"w{abs(hash(request.node.name)) % 100000}"
    burrow("create", "--name", name, "--idle-timeout", "0")
    directory = tmp_path / "here"
    directory.mkdir()

    def start(*words):
        made.append(Watch(burrow, directory, name, tmp_path / f"log{len(made)}", *words))
        return made[-1]
    start.directory, start.name = directory, name
    yield start
    for one in made:
        one.end()
    burrow("delete", name, "--confirm")


def test_what_happens_on_one_side_happens_on_the_other(watch, burrow):
    here = watch.directory
    (here / "mine").write_text("1")
    (here / "both").write_text("same")
    burrow("exec", watch.name, "--", "sh", "-c", "mkdir -p /w/d; printf 2 >/w/d/theirs; printf same >/w/both")
    one = watch()
    both = {"both": "same", "d": "/", "d/theirs": "2", "mine": "1"}
    one.until(both)
    # changes, new ones, links and programs
    (here / "mine").write_text("11")
    one.inside("printf 22 >d/theirs; ln -s theirs d/link; printf x >prog; chmod 755 prog")
    (here / "e/f").mkdir(parents=True)
    (here / "e/f/g").write_text("deep")
    (here / "e/to").symlink_to("f/g")
    both |= {"mine": "11", "d/theirs": "22", "d/link": "-> theirs", "prog": "x", "e": "/", "e/f": "/", "e/f/g": "deep", "e/to": "-> f/g"}
    one.until(both)
    assert os.access(here / "prog", os.X_OK)
    # renames and removals, of trees too
    (here / "mine").rename(here / "renamed")
    one.inside("mv d moved; rm both")
    both = {"renamed": "11", "moved": "/", "moved/theirs": "22", "moved/link": "-> theirs", "prog": "x",
            "e": "/", "e/f": "/", "e/f/g": "deep", "e/to": "-> f/g"}
    one.until(both)
    one.inside("rm -r moved")
    shutil.rmtree(here / "e")
    one.until({"renamed": "11", "prog": "x"})
    assert "stopped; " in one.stop()


def test_what_both_changed_is_kept_twice(watch, burrow):
    (watch.directory / "f").write_text("mine")
    burrow("exec", watch.name, "--", "sh", "-c", "mkdir -p /w; printf theirs >/w/f")
    one = watch("--ignore", "away", "--ignore", "*.o")
    one.until({"f": "mine", "f.sandbox-conflict": "theirs"})
    # what is ignored stays where it is
    (watch.directory / "away").mkdir()
    (watch.directory / "away/config").write_text("x")
    (watch.directory / "a.o").write_text("x")
    one.inside("printf x >b.o; printf done >last")
    until(lambda: (watch.directory / "last").exists(), "the last one to come")
    assert one.inside("ls -A").split() == ["b.o", "f", "f.sandbox-conflict", "last"] and not (watch.directory / "b.o").exists()
    one.stop(signal.SIGTERM)


def test_a_sandbox_makes_nobodys_git_run_what_it_likes(watch, tmp_path):
    subprocess.run(["git", "init", "-q", watch.directory], check=True)
    before = (watch.directory / ".git/config").read_text()
    ran = tmp_path / "ran"
    one = watch()
    one.inside(f"mkdir -p .git/hooks sub/.GIT; printf '[core]\\n\\tfsmonitor = \"touch {ran};false\"\\n' >.git/config; echo x >sub/.GIT/config; echo done >last")
    until(lambda: (watch.directory / "last").exists(), "the last one to come")
    assert (watch.directory / ".git/config").read_text() == before and not (watch.directory / "sub/.GIT").exists()
    subprocess.run(["git", "status"], cwd=watch.directory, check=True, capture_output=True)
    assert not ran.exists()
    one.stop()
    # whoever wants it says so
    two = watch("--git")
    until(lambda: (watch.directory / "sub/.GIT/config").exists(), "what is asked for to come")
    two.stop()


def test_a_hostile_sandbox_writes_nowhere_else(watch, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (watch.directory / "sub").mkdir()
    one = watch("--limit", "1Mi")
    one.until({"sub": "/"})
    one.inside(f"ln -s {outside} out; ln -s ../outside up; mkfifo pipe; printf 'x' >\"$(printf 'e\\033]0;t\\007')\"; ln -s /etc/passwd sub/p; printf ok >last")
    until(lambda: (watch.directory / "last").exists(), "the last one to come")
    for name in ("out", "up", "pipe", "sub/p"):
        assert not os.path.lexists(watch.directory / name), name
    # a link of the user's own in the place of a directory is not walked
    (watch.directory / "sub").rmdir()
    (watch.directory / "sub").symlink_to(outside)
    one.inside("mkdir -p sub; printf evil >sub/f; printf ok >later")
    until(lambda: (watch.directory / "later").exists(), "the last one to come")
    assert list(outside.iterdir()) == []
    assert "\x1b]" not in one.log.read_text()
    # more than may come
    one.inside("head -c 3000000 /dev/zero >big")
    assert one.process.wait(PATIENCE) != 0 and "--limit" in one.log.read_text()
    assert not (watch.directory / "big").exists()


def test_what_changes_without_a_pause_keeps_nothing_back(watch):
    one = watch()
    one.until({})
    # a job: what an execution leaves behind ends with it
    one.burrow("job", "create", watch.name, "--", "sh", "-c", "cd /w; while [ ! -e stop ]; do echo x >>busy; sleep 0.01; done")
    one.inside("echo ok >last")
    until(lambda: (watch.directory / "last").exists(), "what came beside it to come")
    (watch.directory / "stop").write_text("")
    until(lambda: "stop" in one.inside("ls").split(), "what is here to go there")


def test_a_server_that_goes_away_is_waited_for(watch, own):
    (watch.directory / "f").write_text("1")
    one = watch()
    one.until({"f": "1"})
    assert own.stop() == 0
    until(lambda: "trying again" in one.log.read_text(), "the loss to be said")
    (watch.directory / "f").write_text("2")
    (watch.directory / "g").write_text("3")
    own.start()
    one.until({"f": "2", "g": "3"})
    assert "connected again" in one.stop()


def test_a_file_that_was_sent_is_not_read_again(watch, own):
    """Unless it changed there: what a program makes of it comes back."""
    def sizes_read():
        return [int(re.search(r"bytes=(\d+)", line)[1]) for line in own.log.splitlines() if "method=GET" in line and re.search(r"/sandboxes/\{\w+\}/files ", line)]
    one = watch()
    before = sizes_read()
    content = "x" * 1_000_000
    (watch.directory / "large").write_text(content)
    one.until({"large": content})
    (watch.directory / "small").write_text("1")  # and the next round is over when it is there
    one.until({"large": content, "small": "1"})
    one.inside("printf 2 >small")
    one.until({"large": content, "small": "2"})
    until(lambda: len(sizes_read()) > len(before), "the log to say so")
    assert max(sizes_read()[len(before):]) < len(content)
    one.inside("printf y | dd of=large conv=notrunc status=none")  # of the same size
    one.until({"large": "y" + content[1:], "small": "2"})
    until(lambda: max(sizes_read()[len(before):]) >= len(content), "the log to say so")
    (watch.directory / "large").write_text("short")
    one.until({"large": "short", "small": "2"})
    one.stop()


def test_names_that_are_not_utf8_are_kept_on_both_sides(watch):
    """Links with such a name or target cannot be made there, which is said."""
    here, odd = os.fsencode(watch.directory), b"\xe9"
    (watch.directory / "f").write_text("1")
    os.symlink(b"f", here + b"/l" + odd)
    os.symlink(b"f" + odd, here + b"/m")
    one = watch()
    one.inside("until [ -e f ]; do sleep 0.01; done; mkdir d; mv f d/$(printf 'g\\351')")
    until(lambda: os.path.exists(here + b"/d/g" + odd), "what was renamed there to come")
    one.inside("printf 2 >last")
    until(lambda: (watch.directory / "last").exists(), "what came behind it to come")
    assert sorted(os.listdir(here)) == [b"d", b"last", b"l" + odd, b"m"], one.log.read_text()
    assert os.readlink(here + b"/m") == b"f" + odd
    assert one.inside("ls").split() == ["d", "last"] and len(re.findall("left alone: the name '.*' is not UTF-8", one.log.read_text())) == 2
    one.inside("mv d/g* $(printf 'h\\351')")  # which no directory tells of
    until(lambda: os.path.exists(here + b"/h" + odd), "what was renamed there to come")
    one.stop()


def test_what_cannot_be_watched_is_said(burrow, tmp_path):
    assert "there is no sandbox" in burrow.error("watch", tmp_path, "nobody", "--git", "--ignore", "away", "--limit", "1Mi", "--quiet", code=3)
    assert "absolute path" in burrow.error("watch", tmp_path, "nobody:w", code=2)


# ---- directories, files and links in each other's place ----

def replaced(watch):
    (watch.directory / "k/deep").mkdir(parents=True)
    (watch.directory / "k/in").write_text("in")
    (watch.directory / "k/deep/too").write_text("too")
    one = watch()
    one.until({"k": "/", "k/in": "in", "k/deep": "/", "k/deep/too": "too"})
    return one


def test_a_directory_that_became_a_file_there_is_one_here_too(watch):
    one = replaced(watch)
    one.inside("rm -rf k; printf precious >k")
    one.until({"k": "precious"})
    one.inside("rm k; mkdir k; printf back >k/in; printf to >to")
    one.until({"k": "/", "k/in": "back", "to": "to"})
    one.inside("rm -r k; ln -s to k")
    one.until({"k": "-> to", "to": "to"})
    one.inside("rm k; mkdir k; printf again >k/in")
    one.until({"k": "/", "k/in": "again", "to": "to"})
    assert "conflict" not in one.log.read_text() and "left alone" not in one.log.read_text()
    assert "0 conflicts" in one.stop()


def test_a_directory_that_became_a_file_here_is_one_there_too(watch):
    one = replaced(watch)
    k = watch.directory / "k"
    shutil.rmtree(k)
    k.write_text("precious")
    one.until({"k": "precious"})
    k.unlink()
    k.mkdir()
    (k / "in").write_text("back")
    (watch.directory / "to").write_text("to")
    one.until({"k": "/", "k/in": "back", "to": "to"})
    shutil.rmtree(k)
    k.symlink_to("to")
    one.until({"k": "-> to", "to": "to"})
    k.unlink()
    k.mkdir()
    (k / "in").write_text("again")
    one.until({"k": "/", "k/in": "again", "to": "to"})
    assert "0 conflicts" in one.stop()


@pytest.mark.parametrize("kind", ("file", "link"))
def test_a_directory_with_something_new_in_it_is_kept_when_the_other_side_has_something_else(watch, kind):
    """Of the user it stays, and what came in its place is kept beside it; of the sandbox it is kept beside that."""
    one = replaced(watch)
    one.process.send_signal(signal.SIGSTOP)  # both change before either is seen
    (watch.directory / "k/in").write_text("changed")
    (watch.directory / "k/mine").write_text("mine")
    one.inside("rm -rf k; " + ("printf precious >k" if kind == "file" else "ln -s to k; printf to >to"))
    one.process.send_signal(signal.SIGCONT)
    both = {"k.sandbox-conflict": "precious"} if kind == "file" else {"k.sandbox-conflict": "-> to", "to": "to"}
    one.until({**both, "k": "/", "k/in": "changed", "k/mine": "mine"})
    one.inside("mkdir e; printf e >e/in; printf too >e/too")
    one.until({**both, "k": "/", "k/in": "changed", "k/mine": "mine", "e": "/", "e/in": "e", "e/too": "too"})
    one.process.send_signal(signal.SIGSTOP)
    for name in ("k", "e"):
        shutil.rmtree(watch.directory / name)
    if kind == "file":
        (watch.directory / "e").write_text("mine")
    else:
        (watch.directory / "e").symlink_to("to")
    one.inside("mkdir e/new; printf theirs >e/new/in")
    one.process.send_signal(signal.SIGCONT)
    one.until({**both, "e": "mine" if kind == "file" else "-> to", "e.sandbox-conflict": "/", "e.sandbox-conflict/new": "/", "e.sandbox-conflict/new/in": "theirs"})
    assert "2 conflicts" in one.stop()


def test_a_directory_with_something_ignored_in_it_is_not_taken_away(watch):
    """What is not looked at is the user's own too."""
    (watch.directory / "k").mkdir()
    (watch.directory / "k/in").write_text("in")
    one = watch("--ignore", "own")
    one.until({"k": "/", "k/in": "in"})
    (watch.directory / "k/own").write_text("mine")
    one.inside("rm -rf k; printf precious >k")
    until(lambda: one.there() == {"k": "/", "k.sandbox-conflict": "precious"}, "the sandbox's file to be kept beside it")
    until(lambda: one.tree() == {"k": "/", "k/own": "mine", "k.sandbox-conflict": "precious"}, "the same here")
    assert "both sides changed 'k'" in one.log.read_text()
    # the other way round, and a directory that is gone
    one.inside("mkdir e d; printf x >e/in; printf theirs >e/own; printf x >d/in; printf theirs >d/own")
    until(lambda: (one.tree().get("d/in"), one.tree().get("e/in")) == ("x", "x"), "the directories to come")
    for name in ("d", "e"):
        shutil.rmtree(watch.directory / name)
    (watch.directory / "e").write_text("file")
    both = {"k": "/", "k.sandbox-conflict": "precious", "e": "file", "e.sandbox-conflict": "/"}
    until(lambda: one.there() == {**both, "e.sandbox-conflict/own": "theirs", "d": "/", "d/own": "theirs"}, "the sandbox's directory to be kept beside it")
    until(lambda: one.tree() == {**both, "k/own": "mine"}, "the same here")
    one.stop()


def test_a_directory_there_and_a_file_here_are_both_kept(watch, burrow):
    (watch.directory / "k").write_text("mine")
    (watch.directory / "l").symlink_to("k")
    burrow("exec", watch.name, "--", "sh", "-c", "mkdir -p /w/k/deep /w/l; printf precious >/w/k/deep/in; printf x >/w/l/in")
    one = watch()
    one.until({"k": "mine", "k.sandbox-conflict": "/", "k.sandbox-conflict/deep": "/", "k.sandbox-conflict/deep/in": "precious",
               "l": "-> k", "l.sandbox-conflict": "/", "l.sandbox-conflict/in": "x"})
    one.stop()


def test_what_a_link_of_the_users_own_keeps_away_is_not_taken_from_the_sandbox(watch, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (watch.directory / "sub").symlink_to(outside)
    one = watch()
    one.inside("mkdir sub; printf theirs >sub/f; printf ok >last")
    until(lambda: (watch.directory / "last").exists() and "left alone" in one.log.read_text(), "it to be said")
    one.inside("mkdir more; printf ok >more/last")  # everything is looked at once more
    until(lambda: (watch.directory / "more/last").exists(), "the last one to come")
    assert one.inside("cat sub/f") == "theirs" and list(outside.iterdir()) == []
    assert one.log.read_text().count("left alone") == 1 and "in step" not in one.log.read_text()
    (watch.directory / "sub").unlink()
    one.until({"sub": "/", "sub/f": "theirs", "last": "ok", "more": "/", "more/last": "ok"})
    until(lambda: "in step" in one.log.read_text(), "it to be said")
    one.stop()


def test_no_conflict_overwrites_another(watch, burrow):
    def both(number):
        (watch.directory / "f").write_text(f"mine {number}")
        burrow("exec", watch.name, "--", "sh", "-c", f"mkdir -p /w; printf 'theirs {number}' >/w/f")
    kept = {}
    for number, suffix in ((1, ""), (2, "-2"), (3, "-3")):
        both(number)
        one = watch()
        kept[f"f.sandbox-conflict{suffix}"] = f"theirs {number}"
        one.until({"f": f"mine {number}", **kept})
        one.stop()
    both(4)
    burrow("exec", watch.name, "--", "sh", "-c", "printf 'theirs 2' >/w/f")  # is kept already
    one = watch()
    one.until({"f": "mine 4", **kept})
    assert "1 conflicts" in one.stop()
    # nor what the sandbox alone has of that name
    both(5)
    burrow("exec", watch.name, "--", "sh", "-c", "printf own >/w/f.sandbox-conflict-4")
    one = watch()
    one.until({"f": "mine 5", **kept, "f.sandbox-conflict-4": "own", "f.sandbox-conflict-5": "theirs 5"})
    one.stop()


# ---- files that change while they are read ----

@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A server that gives files of more than a mebibyte in parts."""
    server = servers.Server(tmp_path_factory.mktemp("parts") / "data", options=["--file-limit", "1Mi"])
    try:
        server.start()
        yield Cli(tmp_path_factory.mktemp("of parts"), BURROW_DATA=str(server.data))
        server.end()
    finally:
        server.abandon()


@pytest.mark.parametrize("is_there_before", (False, True))
def test_a_large_file_is_taken_when_it_is_calm(parts, tmp_path, is_there_before):
    """Read alone, or with everything else."""
    name, here = f"calm{is_there_before:d}", tmp_path / "here"
    here.mkdir()
    parts("create", "--name", name, "--idle-timeout", "0")
    inside = "mkdir -p /w/d; cd /w/d; truncate -s 512M large; echo begun >begun; until [ -e /stop ]; do echo x >>large; sleep 0.002; done; echo end >>large; echo ended >ended"
    one = None
    try:
        if not is_there_before:
            one = Watch(parts, here, name, tmp_path / "log")
            one.until({})
        parts("job", "create", name, "--", "sh", "-c", inside)
        until(lambda: "begun" in parts.text("exec", name, "--", "sh", "-c", "ls /w/d || true"), "the writing to begin")
        one = one or Watch(parts, here, name, tmp_path / "log")
        until(lambda: (here / "d/begun").exists(), "what is beside it to come")
        one.inside("printf 1 >d/small")
        until(lambda: (here / "d/small").exists(), "what comes later to come")
        assert one.process.poll() is None and not (here / "d/large").exists(), one.log.read_text()
        one.inside("touch /stop; until [ -e d/ended ]; do sleep 0.01; done")
        size = int(one.inside("stat -c %s d/large"))
        until(lambda: (here / "d/large").exists() and (here / "d/large").stat().st_size == size, "the file to come")
        with (here / "d/large").open("rb") as file:
            file.seek(-6, os.SEEK_END)
            assert file.read() == b"x\nend\n"
        until(lambda: "in step" in one.log.read_text(), "it to be said")
        one.stop()
    finally:
        if one:
            one.end()
        parts("delete", name, "--confirm")
