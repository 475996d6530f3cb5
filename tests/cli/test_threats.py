# SPDX-License-Identifier: Apache-2.0
"""tests/THREATS.md: every known attack has a row, and every row a test that exists or a part that does not."""
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
KEYS = (TESTS / "threats.txt").read_text().split()
ROW = re.compile(r"^\| (\S+) \| (.+) \| (.+) \|$")
# What 'burrow doctor --attack' carries out: name and threat of each row. test-attack runs each as a test.
TABLE = (TESTS.parent / "src/attack/attack_table.c").read_text().split("attack_table[] = {")[1]
ATTACKS = {row[0]: row[2] for row in re.findall(r'{"([\w-]+)",\s*"([^"]+)",\s*"([^"]+)",\s*ATTACK_', TABLE)}


def rows():
    found = {}
    for line in (TESTS / "THREATS.md").read_text().splitlines():
        row = ROW.match(line)
        if row and row[1] not in ("key", "---"):
            assert row[1] not in found, f"'{row[1]}' has two rows"
            found[row[1]] = row[3]
    return found


def titles(name):
    """What the tests of a file are called, as they print it; 'attack' is the table of attacks."""
    if name == "attack":
        return ATTACKS
    if name.endswith(".py"):
        text = "".join(path.read_text() for path in TESTS.rglob(name)) # suites may have files of one name
        return re.findall(r"^def (test_\w+)", text, re.MULTILINE)
    paths = list(TESTS.rglob(f"{name}.c"))
    assert len(paths) == 1, f"'{name}.c' is there {len(paths)} times"
    found = re.findall(r"^(?:BOX_|CORE_)?TEST(?:_MODES)?\((\w+)\)", paths[0].read_text(), re.MULTILINE)
    return [title.replace("_", " ") for title in found]


def test_every_known_attack_has_a_row():
    assert sorted(KEYS) == sorted(rows())


@pytest.mark.parametrize("key", KEYS)
def test_a_row_names_tests_that_exist_or_the_part_that_does_not(key):
    cell = rows()[key]
    named = re.findall(r"`([^`:]+): ([^`]+)`", cell)
    for name, title in named:
        assert title in titles(name), f"{name} has no test '{title}'"
    rest = re.sub(r"`[^`]+`", "", cell).strip(" ,;")
    assert not rest or re.fullmatch(r"not yet: .+", rest), f"'{rest}' says neither which test nor what is missing"
    assert named or rest


def test_every_attack_in_a_box_has_a_row():
    """The other way round: a test nobody can find from the table is a row that is missing."""
    cells = " ".join(rows().values())
    for path in sorted(TESTS.glob("engine/test-threat-*.c")):
        for title in titles(path.stem):
            assert f"`{path.stem}: {title}`" in cells, f"no row names '{path.stem}: {title}'"


def test_every_row_of_the_table_of_attacks_is_read():
    assert len(ATTACKS) == TABLE.count(".remedy = ") > 40


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_of_the_table_is_named_by_the_threat_that_it_names(name):
    assert f"`attack: {name}`" in rows()[ATTACKS[name]]
