# SPDX-License-Identifier: Apache-2.0
"""What the README says of speed is what was measured."""
import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
README = (TOP / "README.md").read_text()
RESULTS = (TOP / "bench/RESULTS.md").read_text()


def measured(section, row):
    """The p50 of the first such row behind this heading, in ms."""
    after = RESULTS.split(section, 1)[1]
    return float(re.search(rf"^\| {re.escape(row)} \| +([0-9]+) ", after, re.M)[1]) / 1000


@pytest.mark.parametrize("begins, section, row", [
    ("without a sandbox", "## One run of", "posix_spawn"),
    ("in a sandbox made ahead", "## One run of", "library warm"),
    ("one-shot over HTTP", "## The server: one run of", "one-shot"),
    ("`burrow run`", "## One run of", "burrow run"),
])
def test_the_readme_says_what_was_measured(begins, section, row):
    said = float(re.search(rf"^\| {re.escape(begins)}.*\| ([0-9.]+) \|$", README, re.M)[1])
    assert said == pytest.approx(measured(section, row), rel=0.25)
