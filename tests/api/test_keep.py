# SPDX-License-Identifier: Apache-2.0
"""How long what has ended is kept: purging keeps up with what came to an end, and goes by the settings of now."""
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
    with sqlite3.connect(server.data / "burrow.db") as database:
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
    most = max(int(number) for number in re.findall(r"old records were removed.* streams=(\d+)", server.log))
    assert most >= 2500, "in one go: the next look would come a minute later"


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
