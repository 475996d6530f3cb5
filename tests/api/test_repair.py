# SPDX-License-Identifier: Apache-2.0
"""A database that is missing or damaged: a server says so and touches nothing, and burrow repair makes the best of it."""
import json
import subprocess

import audit
import pytest
import server as servers
from client import PATIENCE

WORDS = "the database 'burrow.db' is missing"


def repair(server, *words):
    return subprocess.run([servers.BURROW, "repair", "--data", server.data, *words], capture_output=True, text=True, timeout=PATIENCE)


def repaired(server, *words):
    done = repair(server, "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(server):
    """What a server says that does not start."""
    server.launch()
    assert server.process.wait(PATIENCE) == 1, server.log
    return server.log


def start(server):
    server.start()
    server.sandbox.client = server.client
    return server


def layers(server):
    return {path.name for path in (server.data / "volume/layers").iterdir()}


@pytest.fixture
def server(own_server):
    """With a snapshot, a checkpoint and a sandbox that has files."""
    server = own_server(options=["--parked-kept", "1", "--parked-one-shot", "1"])
    server.sandbox = server.client.create()
    server.sandbox.output("echo one >file; head -c 100000 /dev/urandom >bulk")
    assert server.client.post(f"/sandbox/{server.sandbox.id}/checkpoint", {"name": "a"}).status == 201
    server.sandbox.output("echo two >file")
    server.snapshot = server.client.post(f"/sandbox/{server.sandbox.id}/snapshot", {"name": "kept"}).data["snapshotId"]
    server.stop()
    yield server
    if server.process.poll() is None:
        audit.check(server)
        server.end()


def test_a_whole_one_stays_as_it_is(server):
    before = (server.data / "burrow.db").read_bytes()
    report = repaired(server)
    assert (report["database"], report["layersKnown"]) == ("whole", 2)
    assert not any(report[name] for name in ("layersFound", "layersLost", "snapshotsFailed", "checkpointsLost", "orphans", "recovered"))
    assert "whole" in repair(server).stdout and before == (server.data / "burrow.db").read_bytes()
    start(server)
    assert server.sandbox.output("cat file") == "two\n"
    done = repair(server)
    assert done.returncode == 1 and f"another server (pid {server.pid})" in done.stderr


def test_a_missing_one_is_not_made_anew_unasked(server):
    away = server.data.with_name("away")
    (server.data / "burrow.db").rename(away)
    there = layers(server)
    assert WORDS in refused(server) and f"burrow repair --data {server.data}" in server.log
    key = subprocess.run([servers.BURROW, "key", "create", "--data", server.data], capture_output=True, text=True, timeout=PATIENCE)
    assert key.returncode == 1 and WORDS in key.stderr
    assert repaired(server, "--dry-run")["database"] == "missing"
    assert not (server.data / "burrow.db").exists() and layers(server) == there
    away.rename(server.data / "burrow.db")
    start(server)
    assert server.sandbox.output("cat file") == "two\n"


@pytest.mark.parametrize("length", [0, 1, 50])
def test_one_that_was_cut_to_nothing_is_not_made_anew_unasked(server, length):
    """As after a power cut: SQLite takes an empty file for a new database, of which no layer is known."""
    path = server.data / "burrow.db"
    whole, there = path.read_bytes(), layers(server)
    path.write_bytes(whole[:length])
    assert "burrow repair" in refused(server)
    assert repaired(server, "--dry-run")["database"] == ("missing" if length < 2 else "damaged")
    assert path.read_bytes() == whole[:length] and layers(server) == there
    if length == 0:
        assert repaired(server)["recovered"] == 3
    else:
        path.write_bytes(whole)
    start(server)


def test_one_that_lost_its_end_keeps_the_rest(server):
    path = server.data / "burrow.db"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 4096)
    report = repaired(server)
    assert report["database"] == "damaged" and sum(table["rows"] for table in report["tables"].values()) > 0, report
    start(server)


def test_files_without_a_database_become_snapshots(server):
    (server.data / "burrow.db").unlink()
    report = repaired(server)
    assert report["database"] == "missing" and report["layersFound"] == 2 and report["recovered"] == 3
    again = repaired(server)  # what was recovered is there, and is not recovered once more
    assert (again["database"], again["orphans"], again["recovered"]) == ("whole", 0, 0)
    server.start()
    names = [entry["name"] for entry in server.client.get("/sandbox/snapshots?limit=100").data["snapshots"]]
    assert len(names) == 3 and all(name.startswith("recovered-") for name in names)
    found = sorted(server.client.create(snapshot=name).output("cat file") for name in names)
    assert found == ["one\n", "two\n", "two\n"]


def test_files_without_a_database_can_be_let_go(server):
    (server.data / "burrow.db").unlink()
    report = repaired(server, "--drop-orphans")
    assert report["recovered"] == 0 and report["orphans"] == 3
    server.start()
    assert not server.client.get("/sandbox/snapshots").data["snapshots"] and not layers(server)


def damage(server):
    """In the middle, page by page, until SQLite notices; the beginning has the tables."""
    path = server.data / "burrow.db"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 8192 * 4096)
        file.write(b"\xa5" * (size // 4))


def test_a_damaged_one(server):
    damage(server)
    before = (server.data / "burrow.db").read_bytes()
    trial = repaired(server, "--dry-run")
    assert trial["database"] == "damaged" and trial["fault"] and trial["keptAs"] is None
    assert (server.data / "burrow.db").read_bytes() == before
    report = repaired(server)
    assert report["database"] == "damaged" and report["tables"] == trial["tables"]
    assert (server.data / report["keptAs"]).read_bytes() == before
    assert repaired(server)["database"] == "whole"
    server.start()
    assert server.client.create().output("echo fine") == "fine\n"
    whole = {name for name, table in report["tables"].items() if table["complete"]}
    if {"snapshots", "layers", "layer_uses"} <= whole:
        assert server.client.create(snapshot=server.snapshot).output("cat file") == "two\n"
    else:
        assert server.client.get("/sandbox/snapshots?limit=100").data["snapshots"], "kept, or recovered"


def test_one_that_is_no_database(server):
    (server.data / "burrow.db").write_bytes(b"not a database" * 1000)
    for name in ("burrow.db-wal", "burrow.db-shm"):
        (server.data / name).unlink(missing_ok=True)
    assert "damaged or is not a database" in refused(server) and "burrow repair" in server.log
    report = repaired(server)
    assert report["database"] == "damaged" and report["recovered"] == 3
    assert not any(table["rows"] for name, table in report["tables"].items() if name != "organisations")
    server.start()


def test_layers_that_are_lost(server):
    for path in (server.data / "volume/layers").iterdir():
        subprocess.run(["btrfs", "--quiet", "subvolume", "delete", path], check=True, stdout=subprocess.DEVNULL)
    report = repaired(server)
    assert (report["layersLost"], report["snapshotsFailed"], report["checkpointsLost"]) == (2, 1, 1)
    server.start()
    assert not server.client.get("/sandbox/snapshots").data["snapshots"]
    server.sandbox.client = server.client
    assert server.sandbox.output("cat file") == "two\n"
