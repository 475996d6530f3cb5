# SPDX-License-Identifier: Apache-2.0
"""docs/internals/seccomp.md names every call of the table once, under a heading that is true of it."""
import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]
HEADINGS = {
    "Only burrow allows": {"ALLOW"},
    "The arguments decide": {"ASK"},
    "Only Docker allows": {"REFUSE", "ABSENT"},
    "Both allow": {"ALLOW"},
    "Both refuse": {"REFUSE", "ABSENT"},
}


def table():
    text = (PROJECT / "src/engine/seccomp_table.h").read_text()
    return {name: kind for kind, name in re.findall(r"\b(ALLOW|ASK|REFUSE|ABSENT)\((\w+)", text[text.index("seccomp_table[] = {"):])}


def page():
    """(heading, call) of every call that is named: in tables by their first column."""
    text = (PROJECT / "docs/internals/seccomp.md").read_text()
    for part in text.split("\n## ")[1:]:
        heading, body = part.split("\n", 1)
        rows = [line.split("|")[1] for line in body.splitlines() if line.startswith("| `")]
        for name in re.findall(r"`(\w+)`", " ".join(rows) if rows else body):
            yield heading, name


def test_every_call_is_named_once():
    named = [name for _, name in page()]
    assert sorted(named) == sorted(table())


def test_every_heading_is_known():
    assert {heading for heading, _ in page()} == set(HEADINGS)


def test_a_call_stands_under_what_the_table_says_of_it():
    kinds = table()
    assert [(heading, name, kinds.get(name)) for heading, name in page() if kinds.get(name) not in HEADINGS[heading]] == []

