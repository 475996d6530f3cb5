# SPDX-License-Identifier: Apache-2.0
"""tests/THREATS.md: every known attack has a row, and every row a test that exists or a part that does not."""
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
KEYS = (TESTS / "threats.txt").read_text().split()
ROW = re.compile(r"^\| (\S+) \| (.+) \| (.+) \|$")


def rows():
    found = {}
    for line in (TESTS / "THREATS.md").read_text().splitlines():
        row = ROW.match(line)
        if row and row[1] not in ("key", "---"):
            assert row[1] not in found, f"'{row[1]}' has two rows"
            found[row[1]] = row[3]
    return found


def titles(name):
    """What the tests of a file are called, as they print it."""
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
