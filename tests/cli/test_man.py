# SPDX-License-Identifier: Apache-2.0
"""The manual pages tell of every command and every option there is."""
import os
import pathlib
import re
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BURROW = pathlib.Path(os.environ.get("BURROW", TOP / "build/src/burrow"))
MAN = TOP / "docs/man"

pytestmark = pytest.mark.skipif(not BURROW.exists(), reason="burrow is not built")


def help_of(*words):
    return subprocess.run([BURROW, *words, "--help"], capture_output=True, text=True, check=True).stdout


def commands():
    block = help_of().split("Commands:")[1].split("Options:")[0]
    return re.findall(r"^  (\S+)", block, re.M)


def options(*words):
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", help_of(*words), re.M))


def page(name):
    return (MAN / f"{name}.1.scd").read_text()


def test_every_command_is_in_the_manual():
    assert commands()
    for command in commands():
        assert f"*{command}*" in page("burrow")
    for command in ("run", "serve", "key", "runtime", "detach", "repair", "doctor"):
        assert (MAN / f"burrow-{command}.1.scd").exists()


@pytest.mark.parametrize("command", ["run", "doctor", "detach", "repair", "serve"])
def test_every_option_is_in_its_page(command):
    missing = {option for option in options(command) if option not in page(f"burrow-{command}")}
    assert not missing


@pytest.mark.parametrize("action", ["list", "show", "build", "verify", "remove"])
def test_every_option_of_runtime_is_in_its_page(action):
    missing = {option for option in options("runtime", action) if option not in page("burrow-runtime")}
    assert not missing


@pytest.mark.parametrize("action", ["create", "list", "revoke"])
def test_every_option_of_key_is_in_its_page(action):
    missing = {option for option in options("key", action) if option not in page("burrow-key")}
    assert not missing


def test_every_setting_of_the_server_is_in_its_page_with_its_variable_and_default():
    text = help_of("serve").split("options:")[1].split("examples:")[0]
    settings = re.findall(r"(--[a-z-]+) [A-Z:]+\s+(.*?)\[(BURROW_[A-Z_]+)\]", re.sub(r"\s+", " ", text))
    assert len(settings) > 20
    for option, words, variable in settings:
        assert f"*{option}*" in page("burrow-serve")
        assert f"*{variable}*" in page("burrow-serve")
        for default in re.findall(r"\(default (\S+)\)", words):
            assert re.search(rf"(_{re.escape(default)}_|The default, {re.escape(default)},)", page("burrow-serve")), option


def test_run_and_serve_have_the_same_limits():
    """What means the same is called the same and has the same default."""
    def defaults(command):
        text = re.sub(r"\s+", " ", help_of(command).split("options:")[1])
        return dict(re.findall(r"--(memory|cpu|disk|max-processes) [A-Z]+ [^(]*\(default ([0-9A-Za-z]+)", text))
    assert defaults("run") == defaults("serve") == {"memory": "512Mi", "cpu": "1", "disk": "2Gi", "max-processes": "512"}


def test_pages_are_ones_scdoc_takes():
    for path in MAN.glob("*.scd"):
        done = subprocess.run(["scdoc"], stdin=path.open(), capture_output=True, text=True)
        assert done.returncode == 0, f"{path.name}: {done.stderr}"
