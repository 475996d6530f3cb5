# SPDX-License-Identifier: Apache-2.0
"""Sentences for users have the users' words."""
import pathlib
import re

SRC = pathlib.Path(__file__).resolve().parents[2] / "src"
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def sentences():
    for path in SRC.rglob("*.[ch]"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        for line in text.splitlines():
            if line.lstrip().startswith(("//", "#include")):
                continue
            for literal in LITERAL.findall(line):
                if " " in literal:
                    yield path.relative_to(SRC), literal


def test_messages_say_sandbox_and_never_box():
    """A box is what the kernel holds: a word of the engine's code, not of what it tells."""
    assert [found for found in sentences() if re.search(r"\bbox(es)?\b", found[1], re.I)] == []
