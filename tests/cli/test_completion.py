# SPDX-License-Identifier: Apache-2.0
"""Shells complete every command and every option, by the scripts that burrow prints."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BURROW = pathlib.Path(os.environ.get("BURROW", TOP / "build/src/burrow")).absolute()
PATIENCE = 120

pytestmark = pytest.mark.skipif(not BURROW.exists(), reason="burrow is not built")


def output(*words, **more):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True, timeout=PATIENCE, **more).stdout


def listed(*words):
    blocks = re.split(r"(?i)\ncommands:\n", output(BURROW, *words, "--help"))
    return re.findall(r"^  (\S+)", blocks[1].split("\n\n")[0], re.M) if len(blocks) > 1 else []


@pytest.fixture(scope="module")
def tree():
    """What the help says: the words of each command or group, and what may follow them."""
    found = {(): set(listed())}
    for name in found[()]:
        inner = listed(name)
        if inner:
            found[(name,)] = set(inner)
        for words in [(name, each) for each in inner] or [(name,)]:
            text = output(BURROW, *words, "--help").split("\noptions:\n")[1]
            found[(*words, "-")] = set(re.findall(r"^ +(?:-\w, )?(--[a-z0-9-]+)", text, re.M))
    assert len(found) > 60
    return found


def ask_bash(lines):
    """What bash has in COMPREPLY at the end of each line."""
    script = 'source <("$1" completion bash)\n' \
             'while IFS= read -r COMP_LINE; do COMP_POINT=${#COMP_LINE}; _burrow; printf "%s " "${COMPREPLY[@]}"; echo; done\n'
    told = output("bash", "--norc", "-c", script, "bash", BURROW, input="".join(f"{line}\n" for line in lines))
    return [set(line.split()) for line in told.split("\n")[:-1]]


def test_bash_offers_every_command_and_every_option(tree):
    said = ask_bash(f"{BURROW} {' '.join(words)}{'' if '-' in words else ' '}".replace("  ", " ") for words in tree)
    assert len(said) == len(tree)
    for (words, wanted), offered in zip(tree.items(), said):
        assert wanted <= offered, (words, wanted - offered)


def test_only_what_begins_with_what_is_written_is_offered():
    lines = {"del": {"delete"}, "cloud sandbox snapshot exp": {"export"}, "sb files mk": {"mkdir"}, "completion z": {"zsh"},
             "list --sel": {"--selector"}, "exec work -- --": set(), "nothing ": set(), "fs nothing --": set(), "run -- --": set()}
    said = ask_bash(f"{BURROW} {line}" for line in lines)
    assert dict(zip(lines, said)) == lines


def test_no_server_is_started_for_a_completion(tmp_path):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BURROW_DATA": str(tmp_path / "data")}
    assert output(BURROW, "complete", "get", "", env=environment) == ""
    assert not (tmp_path / "data").exists()
    assert output(BURROW, "complete", env=environment) == ""


def test_an_unknown_shell_is_told():
    done = subprocess.run([BURROW, "completion", "tcsh"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and "bash, zsh and fish" in done.stderr and done.stdout == ""


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_offers_them_with_what_they_are(tmp_path):
    home = {**os.environ, "HOME": str(tmp_path), "PATH": f"{BURROW.parent}:{os.environ['PATH']}"}
    told = output("fish", "--no-config", "-c", "burrow completion fish | source; complete -C 'burrow fs mk'; complete -C 'burrow list --sel'", env=home)
    assert re.search(r"^mkdir\tmake a directory$", told, re.M) and re.search(r"^--selector\t", told, re.M)


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_offers_them_with_what_they_are():
    script = '_describe() { print -rl -- "${found[@]}" }; _files() { print files }; compdef() { }\n' \
             'source <($1 completion zsh); for line in "fs mk" "list --sel" "nothing x"; do words=($1 ${=line}); CURRENT=$#words; _burrow; done'
    told = output("zsh", "-f", "-c", script, "zsh", BURROW)
    assert re.search(r"^mkdir:make a directory$", told, re.M) and re.search(r"^--selector:", told, re.M) and told.endswith("files\n")


def test_the_scripts_are_installed():
    wanted = output("meson", "introspect", "--installed", BURROW.parents[1])
    for path in ("bash-completion/completions/burrow", "zsh/site-functions/_burrow", "fish/vendor_completions.d/burrow.fish"):
        assert path in wanted
