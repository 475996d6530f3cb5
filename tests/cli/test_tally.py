# SPDX-License-Identifier: Apache-2.0
"""tools/tally: what it counts as passed, failed and skipped."""
import json
import subprocess
from pathlib import Path

TALLY = Path(__file__).parents[2] / "tools" / "tally"


def tally(*logs):
    done = subprocess.run([TALLY, *logs], capture_output=True, text=True)
    return done.stdout.splitlines()[-1], done.returncode


def tap(tmp_path, text):
    log = tmp_path / "x.tap"
    log.write_text(text)
    return log


def meson(tmp_path, **entry):
    log = tmp_path / "x.json"
    log.write_text(json.dumps({"name": "t", "returncode": 0, "result": "OK", **entry}) + "\n")
    return log


def test_cases_are_counted(tmp_path):
    log = tap(tmp_path, "1..4\nok 1 - a\nok 2 - b # SKIP no kernel\nok 3 - c\nok 4\n")
    assert tally(log) == ("3 passed, 0 failed, 1 skipped", 0)


def test_a_failed_case_fails_the_sum(tmp_path):
    assert tally(tap(tmp_path, "ok 1 - a\nnot ok 2 - b\n# why\n1..2\n")) == ("1 passed, 1 failed, 0 skipped", 1)


def test_a_program_cut_short_is_a_failure(tmp_path):
    assert tally(tap(tmp_path, "1..3\nok 1 - a\n")) == ("1 passed, 1 failed, 0 skipped", 1)


def test_silence_is_a_failure(tmp_path):
    assert tally(tap(tmp_path, "")) == ("0 passed, 1 failed, 0 skipped", 1)


def test_a_log_that_is_missing_is_a_failure(tmp_path):
    assert tally(tmp_path / "none.json") == ("0 passed, 1 failed, 0 skipped", 1)


def test_a_log_without_programs_is_a_failure(tmp_path):
    log = tmp_path / "x.json"
    log.write_text("")
    assert tally(log) == ("0 passed, 1 failed, 0 skipped", 1)


def test_a_crash_after_the_last_case_is_a_failure(tmp_path):
    log = meson(tmp_path, stdout="1..1\nok 1 - a\n", returncode=-11, result="FAIL")
    assert tally(log) == ("1 passed, 1 failed, 0 skipped", 1)


def test_running_out_of_time_is_a_failure(tmp_path):
    log = meson(tmp_path, stdout="1..1\nok 1 - a\n", returncode=0, result="TIMEOUT")
    assert tally(log) == ("1 passed, 1 failed, 0 skipped", 1)


def test_nothing_but_skips_is_a_failure(tmp_path):
    assert tally(tap(tmp_path, "1..0 # SKIP not here\n")) == ("0 passed, 0 failed, 1 skipped", 1)
