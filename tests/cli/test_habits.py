# SPDX-License-Identifier: Apache-2.0
"""What somebody types who comes from docker, Agentuity or E2B, and what burrow makes of it."""
import pytest

from test_commands import burrow, pytestmark, server, work  # noqa: F401


# ---- words of other tools ----

@pytest.mark.parametrize("words, way", [
    (["stop", "work"], "burrow pause"), (["kill", "work"], "burrow delete"), (["inspect", "work"], "burrow get"), (["images"], "burrow runtime list"),
    (["start", "work"], "burrow resume"), (["shell", "work"], "burrow attach"), (["connect", "work"], "burrow attach"), (["build", "."], "burrow snapshot build"),
    (["spawn"], "burrow create"), (["pull", "x"], "burrow runtime add"), (["commit", "work"], "burrow snapshot create")])
def test_a_command_of_another_tool_is_answered_with_burrows(burrow, words, way):  # noqa: F811
    assert f"'{way}'" in burrow.error(*words, code=2)


@pytest.mark.parametrize("words, way", [(["exec", "-it", "work", "bash"], "burrow attach"), (["exec", "-t", "work", "bash"], "burrow attach"),
                                        (["run", "-it", "--", "bash"], "--tty"), (["run", "--rm", "--", "true"], "leave it out")])
def test_an_option_of_another_tool_is_answered_with_burrows(burrow, work, words, way):  # noqa: F811
    assert way in burrow.error(*words, code=2)


def test_a_missing_word_is_named(burrow):  # noqa: F811
    assert "burrow: SANDBOX is missing: burrow get" in burrow.error("get", code=2)
    assert "burrow: PORT is missing: burrow port create" in burrow.error("port", "create", "work", code=2)
