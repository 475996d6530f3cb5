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


# ---- known skips ----

TWO_SKIPS = "1..3\nok 1 - a\nok 2 - b on v2 # SKIP no kernel\nok 3 - c on v2 # SKIP no kernel\n"


def with_known(tmp_path, known, text):
    skips = tmp_path / "known"
    skips.write_text(known)
    done = subprocess.run([TALLY, "--skips", skips, tap(tmp_path, text)], capture_output=True, text=True)
    return done.stdout, done.stdout.splitlines()[-1:], done.returncode


def test_known_skips_are_skips(tmp_path):
    _, last, code = with_known(tmp_path, "# why\n\nx: * on v2 | no kernel | always | another machine has it\n", TWO_SKIPS)
    assert (last, code) == (["1 passed, 0 failed, 2 skipped"], 0)


def test_an_unknown_skip_is_a_failure(tmp_path):
    shown, last, code = with_known(tmp_path, "x: b on v2 | no kernel | always | y\n", TWO_SKIPS)
    assert (last, code) == (["1 passed, 1 failed, 1 skipped"], 1)
    assert "FAILED: x: c on v2 (skipped, and not in the list of known skips: no kernel)" in shown


def test_a_known_test_that_skips_for_another_reason_is_a_failure(tmp_path):
    assert with_known(tmp_path, "x: * | no disk | sometimes | y\n", TWO_SKIPS)[1:] == (["1 passed, 2 failed, 0 skipped"], 1)


def test_a_program_that_skips_all_of_it_must_be_known_too(tmp_path):
    assert with_known(tmp_path, "", "1..0 # SKIP not here\n")[1:] == (["0 passed, 1 failed, 0 skipped"], 1)


def test_a_line_that_matches_nothing_is_a_failure_unless_it_says_sometimes(tmp_path):
    shown, last, code = with_known(tmp_path, "x: gone | why | always | y\n", "1..1\nok 1 - a\n")
    assert (last, code) == (["1 passed, 1 failed, 0 skipped"], 1) and "'x: gone | why' matches nothing" in shown
    assert with_known(tmp_path, "x: gone | why | sometimes | y\n", "1..1\nok 1 - a\n")[2] == 0


def test_no_character_but_the_star_is_special_in_a_list(tmp_path):
    assert with_known(tmp_path, "x: b [1] | no. | always | y\n", "1..2\nok 1 - a\nok 2 - b [1] # SKIP no.\n")[2] == 0
    assert with_known(tmp_path, "x: b [1] | no. | sometimes | y\n", "1..2\nok 1 - a\nok 2 - b 1 # SKIP non\n")[2] == 1


def test_a_list_with_a_line_that_is_no_entry_is_refused(tmp_path):
    for line in ("x: b", "x: b | c | often | y", "x: b | c | always | "):
        assert with_known(tmp_path, line + "\n", "1..1\nok 1 - a\n")[2] != 0


def test_what_passes_when_tried_again_is_told(tmp_path):
    first = meson(tmp_path, stdout="1..2\nok 1 - a\nnot ok 2 - b\n", returncode=1, result="FAIL")
    second = tmp_path / "again-x.json"
    for result, last in (("ok", ("2 passed, 0 failed, 0 skipped", 0)), ("not ok", ("1 passed, 1 failed, 0 skipped", 1))):
        second.write_text(json.dumps({"name": "t", "returncode": 0, "result": "OK", "stdout": f"1..2\nok 1 - a\n{result} 2 - b\n"}) + "\n")
        done = subprocess.run([TALLY, "--again", second, first], capture_output=True, text=True)
        assert (done.stdout.splitlines()[-1], done.returncode) == last
        assert ("again: x: t: b: failed, then passed" in done.stdout) == (result == "ok")
    other = second.rename(tmp_path / "again-y.json")  # the same program, built otherwise: says nothing about this one
    assert "FAILED: x: t: b" in subprocess.run([TALLY, "--again", other, first], capture_output=True, text=True).stdout


def test_a_case_that_a_program_tried_again_is_told(tmp_path):
    log = tap(tmp_path, "# again: f.py::b\nok 1 - f.py::b\n1..1\n")
    done = subprocess.run([TALLY, log], capture_output=True, text=True)
    assert "again: x: f.py::b: failed, then passed" in done.stdout and done.returncode == 0


def test_programs_to_try_again_are_named(tmp_path):
    log = meson(tmp_path, stdout="1..1\nnot ok 1 - b\n", returncode=1, result="FAIL")
    assert subprocess.run([TALLY, "--failed", log], capture_output=True, text=True).stdout == "t\n"
    log = meson(tmp_path, stdout="1..1\nnot ok 1 - f.py::b\n", returncode=1, result="FAIL")  # of pytest, which tried it twice
    assert subprocess.run([TALLY, "--failed", log], capture_output=True, text=True).stdout == ""
