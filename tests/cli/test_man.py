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


COMMANDS_PAGE = subprocess.run([BURROW, "help", "--scd"], capture_output=True, text=True).stdout if BURROW.exists() else ""


def test_every_command_is_in_the_manual():
    assert commands()
    for command in commands():
        assert f"*{command}*" in page("burrow")
        assert (MAN / f"burrow-{command}.1.scd").exists() or f"## burrow {command}\n" in COMMANDS_PAGE or f"# {command.upper()}\n" in COMMANDS_PAGE, command
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


def test_exit_codes_are_those_of_the_program():
    """Of burrow itself; what run adds for commands is in its own page."""
    named = dict(re.findall(r"^    (EXIT_\w+) = (\d+),", (TOP / "src/cli/exit.h").read_text(), re.M))
    told = set(re.findall(r"^\|\s+(\d+)$", page("burrow").split("# EXIT STATUS")[1], re.M))
    of_commands = {"EXIT_NOT_RUN", "EXIT_NOT_FOUND", "EXIT_SIGNAL"}
    assert {code for name, code in named.items() if name not in of_commands} | {str(128 + 13)} == told
    status = page("burrow-run").split("# EXIT STATUS")[1]
    for name in of_commands | {"EXIT_TIMEOUT", "EXIT_BURROW"}:
        assert named[name] in status, name


def sections(text):
    """Of burrow-commands(1): the text below each '## burrow NAME'."""
    return dict(re.findall(r"^## (burrow [a-z -]+)\n(.*?)(?=^#|\Z)", text, re.M | re.S))


def test_the_page_of_commands_has_every_command_and_option():
    told = sections(COMMANDS_PAGE)
    shared = COMMANDS_PAGE.split("# OPTIONS OF ALL")[1].split("# COMMANDS")[0]
    checked = 0
    for name in commands():
        if (MAN / f"burrow-{name}.1.scd").exists():
            continue
        blocks = re.split(r"\ncommands:\n", help_of(name))
        inner = re.findall(r"^  (\S+)", blocks[1].split("\n\n")[0], re.M) if len(blocks) > 1 else [""]
        for words in ([name, each] if each else [name] for each in inner):
            section = told[" ".join(["burrow", *words])]
            missing = {option for option in options(*words) if f"*{option}*" not in section and f"*{option}*" not in shared}
            assert not missing, words
            for other in re.findall(r"^also called: (.*)$", help_of(*words), re.M):
                assert f"Also called: *{other}*" in section
            checked += 1
    assert checked > 45 and checked == len(told)


@pytest.mark.parametrize("topic", ["limits", "network", "snapshots"])
def test_topics_name_only_commands_and_options_there_are(topic):
    text = subprocess.run([BURROW, "help", topic], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^  \$ burrow (.*)$", text, re.M)
    assert len(lines) >= 3
    for line in lines:
        words = [word for word in re.split(r"  +", line)[0].split(" -- ")[0].split() if re.fullmatch(r"[a-z-]+", word)]
        known = commands()
        assert words[0] in known, line
        name = words[:2] if "commands:" in help_of(words[0]) else words[:1]
        assert {word for word in words if word.startswith("--")} <= options(*name), line
    for option in re.findall(r"^  (--[a-z-]+)", text, re.M):
        assert option in options("run") | options("create"), option


def test_pages_are_ones_scdoc_takes():
    assert subprocess.run(["scdoc"], input=COMMANDS_PAGE, capture_output=True, text=True).returncode == 0
    for path in MAN.glob("*.scd"):
        done = subprocess.run(["scdoc"], stdin=path.open(), capture_output=True, text=True)
        assert done.returncode == 0, f"{path.name}: {done.stderr}"
