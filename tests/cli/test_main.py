# SPDX-License-Identifier: Apache-2.0
"""burrow itself: version, help, and what it says to a word it does not know."""
import os
import pathlib
import re
import subprocess
import tempfile

import pytest

BURROW = pathlib.Path(os.environ.get("BURROW", pathlib.Path(__file__).resolve().parents[2] / "build/src/burrow"))

pytestmark = pytest.mark.skipif(not BURROW.exists(), reason="burrow is not built")


def burrow(*words):
    return subprocess.run([BURROW, *words], capture_output=True, text=True, timeout=60)


def commands():
    return re.findall(r"^  ([a-z]+) +\S", burrow("--help").stdout.split("Commands:")[1].split("Options:")[0], re.M)


def test_it_tells_its_version():
    for words in (["--version"], ["version"]):
        done = burrow(*words)
        assert re.fullmatch(r"burrow \d+\.\d+\.\d+\n", done.stdout)
        assert (done.returncode, done.stderr) == (0, "")


def test_help_lists_the_commands_with_examples():
    for words in (["--help"], ["-h"], ["help"]):
        done = burrow(*words)
        assert done.returncode == 0
        assert "Examples:\n" in done.stdout
    assert {"run", "doctor"} <= set(commands())


def test_without_a_word_it_says_what_it_can_do():
    done = burrow()
    assert done.returncode == 2
    assert done.stderr == burrow("--help").stdout


def test_each_command_has_help_with_usage():
    for command in commands():
        done = burrow(command, "--help")
        assert done.returncode == 0, command
        assert f"usage: burrow {command}" in done.stdout
        told = burrow("help", command).stdout
        if command == "network":  # a topic of this name, which leads to the commands
            assert "'burrow network --help' lists the commands" in told
        else:
            assert told == done.stdout


@pytest.mark.parametrize("words, same", [("help cloud sandbox run", "run --help"), ("help sandbox list", "list --help"), ("help sb fs cp", "fs cp --help"),
                                         ("sandbox help fs cp", "fs cp --help"), ("help cloud sandbox", "help"), ("cloud sandbox --help", "help")])
def test_help_is_found_behind_the_words_of_the_page(words, same):
    done = burrow(*words.split())
    assert (done.returncode, done.stdout) == (0, burrow(*same.split()).stdout)


def test_a_misspelled_command_is_answered_with_the_nearest():
    done = burrow("rnu")
    assert (done.returncode, done.stderr) == (2, "burrow: unknown command 'rnu'; did you mean 'run'?\n")


@pytest.mark.parametrize("words, sentence", [
    (["--json", "list"], "'--json' stands before the command; options come behind it: burrow COMMAND --json"),
    (["sandbox", "-q", "list"], "'-q' stands before the command; options come behind it: burrow COMMAND -q"),
    (["--verison"], "unknown option '--verison'; did you mean '--version'?"),
])
def test_an_option_where_a_command_should_be_is_told_apart(words, sentence):
    done = burrow(*words)
    assert (done.returncode, done.stderr) == (2, f"burrow: {sentence}\n")


def test_who_may_start_no_server_is_told_what_to_do(tmp_path):
    copy = tmp_path / "burrow"
    copy.write_bytes(BURROW.read_bytes())
    copy.chmod(0o755)
    tmp_path.chmod(0o755)
    for above in (tmp_path.parent, tmp_path.parent.parent):
        above.chmod(0o755)
    done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", copy, "list"], env={"HOME": "/nonexistent"}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (5, "burrow: no server is configured, and starting one here needs root\n"
                                              "burrow: next: set BURROW_URL, 'burrow context add' one, or use sudo\n")


def test_an_unknown_command_is_refused():
    done = burrow("frobnicate")
    assert (done.returncode, done.stderr) == (2, "burrow: unknown command 'frobnicate'; 'burrow --help' lists them\n")
    assert burrow("help", "frobnicate").returncode == 2


def test_it_is_one_static_program():
    file = subprocess.run(["readelf", "-ld", BURROW], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in file and "NEEDED" not in file


def as_nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


@pytest.fixture(scope="module")
def copies():
    """The programs where everybody can reach them."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:  # TMPDIR may be closed to others
        os.chmod(directory, 0o755)
        for name in ("burrow", "burrow-server"):
            copy = pathlib.Path(directory) / name
            copy.write_bytes((BURROW.parent / name).read_bytes())
            copy.chmod(0o755)
        yield pathlib.Path(directory)


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
@pytest.mark.parametrize("words, code", [
    (["run", "--", "true"], 125), (["run", "--file", "a:/nonexistent", "--", "true"], 125), (["runtime", "list"], 1),
    (["runtime", "show", "base"], 1), (["runtime", "build", "base"], 1), (["runtime", "verify", "base"], 1),
    (["runtime", "remove", "base"], 1), (["detach"], 1), (["key", "list"], 1), (["key", "create"], 1), (["serve"], 1), (["repair"], 1), (["doctor"], 1)])
def test_without_root_each_command_says_that_it_needs_root(copies, tmp_path, words, code):
    closed = tmp_path / "data"  # as a server's data directory is
    closed.mkdir(mode=0o700)
    done = subprocess.run([copies / "burrow", *words], capture_output=True, text=True, timeout=120, preexec_fn=as_nobody, cwd="/",
                          env={"PATH": os.environ["PATH"], "BURROW_DATA": str(closed)})
    assert (done.stderr, done.returncode) == ("burrow: burrow needs root for now: run it with sudo\n", code)


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_without_root_help_is_still_given(copies):
    for command in commands():
        done = subprocess.run([copies / "burrow", command, "--help"], capture_output=True, text=True, preexec_fn=as_nobody, cwd="/")
        assert (done.returncode, done.stderr) == (0, "")
