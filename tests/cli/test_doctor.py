# SPDX-License-Identifier: Apache-2.0
"""burrow doctor, run as people run it."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import pytest

BURROW = pathlib.Path(os.environ.get("BURROW", pathlib.Path(__file__).resolve().parents[2] / "build/src/burrow"))
STATES = {"fine", "degraded", "missing", "unchecked"}

pytestmark = pytest.mark.skipif(not BURROW.exists(), reason="burrow is not built")


def doctor(*options, **kwargs):
    return subprocess.run([BURROW, "doctor", *options], capture_output=True, text=True, timeout=120, **kwargs)


def as_nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


@pytest.fixture
def open_copy():
    """A copy of the program where everybody can reach it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:  # TMPDIR may be closed to others
        os.chmod(directory, 0o755)
        copy = pathlib.Path(directory) / "burrow"
        copy.write_bytes(BURROW.read_bytes())
        copy.chmod(0o755)
        yield copy


def test_json_is_a_list_of_complete_answers():
    done = doctor("--json")
    rows = json.loads(done.stdout)
    assert len(rows) > 20
    for row in rows:
        assert set(row) == {"name", "purpose", "state", "detail", "cost", "fix"}
        assert row["state"] in STATES
        assert row["detail"]
        assert (row["state"] == "fine") == (row["fix"] is None) == (row["cost"] is None)


def test_the_exit_status_says_whether_burrow_can_run():
    done = doctor("--json")
    has_missing = any(row["state"] == "missing" for row in json.loads(done.stdout))
    assert done.returncode == int(has_missing)
    assert doctor().returncode == done.returncode


def test_the_table_names_every_probe_and_ends_with_a_verdict():
    names = [row["name"] for row in json.loads(doctor("--json").stdout)]
    table = doctor().stdout
    for name in names:
        assert f" {name} " in table
    assert table.rstrip().splitlines()[-1].startswith("burrow can")


def test_no_colour_where_there_is_no_terminal():
    assert "\033" not in doctor().stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_without_root_it_says_so_and_what_it_could_not_check(open_copy):
    done = subprocess.run([open_copy, "doctor", "--json"], capture_output=True, text=True, timeout=120,
                          preexec_fn=as_nobody, cwd="/")
    assert done.returncode == 1, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["root"]["state"] == "missing"
    assert "sudo" in rows["root"]["fix"]
    assert rows["overlay"]["state"] == "unchecked"


def test_the_data_directory_is_looked_at_and_not_made(tmp_path):
    missing = tmp_path / "not" / "yet"
    rows = {row["name"]: row for row in json.loads(doctor("--json", "--data", missing).stdout)}
    assert str(missing) in rows["free-space"]["detail"]
    assert not missing.parent.exists()


def test_a_word_too_many_is_named():
    done = doctor("now")
    assert done.returncode == 2
    assert "'now'" in done.stderr


def test_help_has_an_example():
    done = doctor("--help")
    assert done.returncode == 0
    assert "$ sudo burrow doctor" in done.stdout


def attack(*options, without_limits=False):
    environment = {**os.environ, "BURROW_TEST_ATTACK_WITHOUT_LIMITS": "yes" if without_limits else ""}
    return doctor("--attack", *options, env=environment)


@pytest.fixture(scope="module")
def attacked():
    """A data directory with a volume, and everything that one run of the attacks said."""
    with tempfile.TemporaryDirectory() as directory:
        done = attack("--json", "--data", directory)
        yield pathlib.Path(directory), done
        subprocess.run([BURROW, "detach", "--data", directory], check=True, timeout=120)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="sandboxes need root")


@needs_root
def test_attacks_are_told_as_one_json_object(attacked):
    _, done = attacked
    told = json.loads(done.stdout)
    assert len(told["attacks"]) > 40
    for row in told["attacks"]:
        assert set(row) == {"name", "tried", "threat", "way", "verdict", "reason", "remedy"}
        assert row["way"] in {"inside", "between", "outside"}
        assert (row["verdict"] == "held") == (row["reason"] is None)
        assert (row["verdict"] == "open") == (row["remedy"] is not None)
    for verdict in ("held", "open", "not-applicable", "untried"):
        assert told[verdict] == sum(row["verdict"] == verdict for row in told["attacks"])
    assert told["error"] is None
    assert done.stderr == ""


@needs_root
def test_attacks_are_held_here(attacked):
    _, done = attacked
    told = json.loads(done.stdout)
    assert [row for row in told["attacks"] if row["verdict"] not in ("held", "not-applicable")] == []
    assert told["verdict"] == "held"
    assert done.returncode == 0


@needs_root
def test_what_is_open_is_said_with_reason_and_remedy(attacked):
    directory, _ = attacked
    done = attack("--data", directory, without_limits=True)
    assert done.returncode == 3, done.stderr
    lines = done.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("✗ process-limit "))
    assert lines[at + 1].startswith("    open: ") and "the limit is 64" in lines[at + 1]
    assert lines[at + 2].startswith("    fix: ")
    assert " open" in lines[-1]


@needs_root
def test_attacks_leave_nothing_behind(attacked):
    directory, _ = attacked
    assert [*directory.glob("attack-*")] == []


@needs_root
def test_an_interrupted_attack_leaves_nothing_behind(attacked):
    directory, _ = attacked
    for _ in range(5):  # a run may be over before the signal comes
        process = subprocess.Popen([BURROW, "doctor", "--attack", "--json", "--data", directory], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while not [*directory.glob("attack-*")] and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
        if process.returncode == 128 + signal.SIGTERM:
            break
    assert process.returncode == 128 + signal.SIGTERM, err
    assert json.loads(out)["verdict"] in ("untried", "open")
    assert [*directory.glob("attack-*")] == []


@needs_root
def test_attacks_that_cannot_begin_are_told_so(tmp_path):
    done = attack("--json", "--data", tmp_path, "--runtime", "no-such-runtime")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert told["verdict"] == "untried" and told["attacks"] == []
    assert "no-such-runtime" in told["error"] and "no-such-runtime" in done.stderr
