# SPDX-License-Identifier: Apache-2.0
"""How long what has ended is kept: purging keeps up with what came to an end, and goes by the settings of now."""
import contextlib
import os
import re
import sqlite3

import audit
import pytest
from client import until

HOUR = 3600 * 1000


@pytest.fixture
def server(own_server):
    server = own_server(options=["--log-level", "debug"])
    yield server
    server.end()


def change(server, *texts):
    """While it is stopped."""
    with contextlib.closing(sqlite3.connect(server.data / "burrow.db", isolation_level=None)) as database:
        for text in texts:
            database.execute(text)


def age(server, id, hours):
    """As if it had ended that long ago."""
    id = id.removeprefix("sbx_")
    change(server, f"UPDATE sandboxes SET ended_at = ended_at - {hours * HOUR}, created_at = created_at - {hours * HOUR} WHERE id = '{id}'",
           f"UPDATE streams SET expires_at = expires_at - {hours * HOUR}, completed_at = completed_at - {hours * HOUR} WHERE sandbox_id = '{id}'")


def count(server, table, where="1"):
    return audit.rows(server, f"SELECT count(*) FROM {table} WHERE {where}")[0][0]


def test_purging_goes_on_until_it_is_done(server):
    server.client.new_stream()
    server.stop()
    columns = [row[1] for row in audit.rows(server, "PRAGMA table_info(streams)")]
    others = ", ".join(name for name in columns if name not in ("id", "expires_at", "file"))
    change(server, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) INSERT INTO streams (id, file, expires_at, "
           f"{others}) SELECT printf('%026d', i), printf('00/%026d', i), 1, {others} FROM streams, n")
    server.start()
    until(lambda: count(server, "streams", "expires_at = 1") == 0, "all old streams to go")
    told = until(lambda: re.findall(r"old records were removed.* streams=(\d+)", server.log), "the log to say so")
    assert max(map(int, told)) >= 2500, "in one go: the next look would come a minute later"


def test_a_shorter_time_reaches_what_has_ended_already(server):
    old, young = (server.client.create() for _ in range(2))
    for sandbox in (old, young):
        assert sandbox.output("echo one") == "one\n"
        assert sandbox.delete().status == 200
    server.stop()
    age(server, old.id, 2)
    server.options += ["--keep", "1h"]
    server.start()
    until(lambda: count(server, "sandboxes") == 1, "the old one to be forgotten")
    assert count(server, "streams") == 2 and young.id.endswith(audit.rows(server, "SELECT id FROM sandboxes")[0][0])
    audit.check(server)


def test_old_output_of_a_living_sandbox_expires(server):
    sandbox = server.client.create(timeout={"idle": "1h"})
    old, young = sandbox.sh("echo old"), sandbox.sh("echo young")
    server.stop()
    day = 25 * HOUR
    id = old.started["executionId"].removeprefix("exe_")
    change(server, f"UPDATE streams SET completed_at = completed_at - {day} WHERE execution_id = '{id}'")
    server.start()
    until(lambda: count(server, "streams", f"execution_id = '{id}'") == 0, "old output to go")
    state = server.client.execution(old.started["executionId"])
    assert state["status"] == "completed" and state["outputExpired"] is True, "its record stays, and says so"
    assert server.client.get("/stream/" + old.started["stdoutStreamUrl"].rsplit("/", 1)[1], key=None).status == 404
    state = server.client.execution(young.started["executionId"])
    assert "outputExpired" not in state and server.client.read("/stream/" + state["stdoutStreamUrl"].rsplit("/", 1)[1]) == b"young\n"
    audit.check(server)


def test_old_output_gives_way_to_new(own_server):
    """A sandbox has a quarter of it all; the last one is there however large it is."""
    server = own_server(options=["--spool-limit", "4Mi"])
    quiet, loud = server.client.create(), server.client.create()
    first = quiet.sh("echo quiet")
    ran = [loud.sh("head -c 700000 /dev/zero") for _ in range(7)]
    until(lambda: count(server, "streams", "size_bytes = 700000") == 2, "old output to give way")
    until(lambda: [server.client.execution(each.started["executionId"]).get("outputExpired", False) for each in ran] == [True] * 5 + [False] * 2,
          "the records to say so")
    assert server.client.read(first.started["stdoutStreamUrl"]) == b"quiet\n", "another's is older, and stays"
    audit.check(server)
    server.end()


def open_files(server):
    """Of the spool, that are removed."""
    links = []
    for name in os.listdir(f"/proc/{server.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed since
            links.append(os.readlink(f"/proc/{server.pid}/fd/{name}"))
    return [link for link in links if "/spool/" in link and link.endswith("(deleted)")]


def test_removed_output_is_not_kept_open(server):
    sandbox = server.client.create()
    for ran in [sandbox.sh("echo some") for _ in range(5)]:
        for name in ("stdoutStreamUrl", "stderrStreamUrl"):
            id = ran.started[name].rsplit("/", 1)[1]
            assert server.client.delete(f"/stream/{id}").status == 200
    assert sandbox.sh("true").stdout == b""
    until(lambda: not open_files(server), "files to be closed")


def test_one_that_could_not_even_be_recorded_as_failed_can_be_deleted(server):
    """On a full disk: its row says that it is being created, and nobody is at it."""
    run = server.client.create_one_shot("true")
    run.wait_status("terminated")
    server.stop()
    server.start()  # which remembers none that have ended
    change(server, f"UPDATE sandboxes SET state = 'creating', ended_at = 0 WHERE id = '{run.id.removeprefix('sbx_')}'")
    assert server.client.delete(f"/sandbox/{run.id}").status == 200
    assert server.client.sandbox(run.id).status()["status"] == "deleted"
