# SPDX-License-Identifier: Apache-2.0
"""burrow doctor, run as people run it."""
import json
import os
import pathlib
import subprocess
import tempfile

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
