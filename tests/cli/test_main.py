# SPDX-License-Identifier: Apache-2.0
"""burrow itself: version, help, and what it says to a word it does not know."""
import os
import pathlib
import re
import subprocess

import pytest

BURROW = pathlib.Path(os.environ.get("BURROW", pathlib.Path(__file__).resolve().parents[2] / "build/src/burrow"))

pytestmark = pytest.mark.skipif(not BURROW.exists(), reason="burrow is not built")


def burrow(*words):
    return subprocess.run([BURROW, *words], capture_output=True, text=True, timeout=60)


def commands():
    return re.findall(r"^  ([a-z]+) +\S", burrow("--help").stdout.split("Commands:")[1].split("\n\n")[0], re.M)


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
        assert burrow("help", command).stdout == done.stdout


def test_a_misspelled_command_is_answered_with_the_nearest():
    done = burrow("rnu")
    assert (done.returncode, done.stderr) == (2, "burrow: unknown command 'rnu'; did you mean 'run'?\n")


def test_an_unknown_command_is_refused():
    done = burrow("frobnicate")
    assert (done.returncode, done.stderr) == (2, "burrow: unknown command 'frobnicate'; 'burrow --help' lists them\n")
    assert burrow("help", "frobnicate").returncode == 2


def test_it_is_one_static_program():
    file = subprocess.run(["readelf", "-ld", BURROW], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in file and "NEEDED" not in file
