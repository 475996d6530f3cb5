# SPDX-License-Identifier: Apache-2.0
"""What was used: by sandbox, key, label and day; told to whom it belongs, and kept when the sandboxes are forgotten."""
import pytest

import server as servers
from client import Client, check_problem, until


def usage(client, query=""):
    answer = client.get(f"/api/v1/usage{query}")
    assert answer.status == 200, str(answer)
    return answer.json["items"]


def make_key(api, owner):
    info = api.post("/api/v1/keys", {"owner": owner}).json
    client = Client(api.port, info["key"])
    client.info = info
    return client


@pytest.fixture(scope="module")
def alice(api):
    client = make_key(api, "usage-alice")
    yield client
    api.delete(f"/api/v1/keys/{client.info['id']}")


def run(client, **fields):
    """A sandbox that has burnt some time in two commands, and has ended."""
    made = client.post("/api/v1/sandboxes", fields)
    assert made.status == 201, str(made)
    id = made.json["id"]
    for script in ("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", "true"):
        ran = client.post("/api/v1/run", {"sandbox": id, "script": script})
        assert ran.status == 200 and ran.json["exitCode"] == 0, str(ran)
    assert client.delete(f"/api/v1/sandboxes/{id}").status in (200, 204)
    return id


@pytest.fixture(scope="module")
def used(alice):
    ids = [run(alice, labels={"team": "blue"}), run(alice, labels={"team": "red"}), run(alice)]
    until(lambda: sum(item["runs"] for item in usage(alice)) == 6 and all(item["cpuMs"] > 0 for item in usage(alice, "?by=sandbox"))
          and len(usage(alice, "?by=sandbox")) == 3, "the use of all to be known")
    return ids


def test_by_sandbox(alice, used):
    items = usage(alice, "?by=sandbox")
    assert {item["sandboxId"] for item in items} == set(used)
    assert all(item["runs"] == 2 and item["cpuMs"] > 0 and item["memoryByteSeconds"] > 0 for item in items)
    assert [item["cpuMs"] for item in items] == sorted((item["cpuMs"] for item in items), reverse=True)
    [one] = usage(alice, f"?by=sandbox&sandboxId={used[0]}")
    assert one["sandboxId"] == used[0]


def test_by_day_key_and_label_are_the_same_sum(alice, used):
    whole = {name: sum(item[name] for item in usage(alice, "?by=sandbox")) for name in ("runs", "cpuMs", "egressBytes")}
    for by in ("day", "key", "label"):
        items = usage(alice, f"?by={by}")
        assert {name: sum(item[name] for item in items) for name in whole} == whole, by
    [key] = usage(alice, "?by=key")
    assert key["keyId"] == alice.info["id"]
    labels = [item["labels"] for item in usage(alice, "?by=label")]
    assert sorted(labels, key=str) == sorted([{"team": "blue"}, {"team": "red"}, {}], key=str)
    assert usage(alice, f"?keyId={alice.info['id']}")[0]["runs"] == 6
    assert whole["egressBytes"] == 0


def test_each_run_of_code_is_a_run_also_of_a_key_without_a_quota(api):
    client = make_key(api, "usage-coder")
    made = client.post("/api/v1/sandboxes", {"runtime": "base"}).json["id"]
    try:
        for _ in range(3):
            ran = client.post(f"/api/v1/sandboxes/{made}/code", {"code": "echo 1", "language": "bash"})
            assert ran.status == 200, str(ran)
    finally:
        client.delete(f"/api/v1/sandboxes/{made}")  # the interpreter that the first has started counts when it has ended
    until(lambda: [item["runs"] for item in usage(api, f"?sandboxId={made}")] == [3], "all three to be known")
    api.delete(f"/api/v1/keys/{client.info['id']}")


def test_days(api, alice, used):
    answer = alice.get("/api/v1/usage").json
    assert answer["by"] == "day" and answer["truncated"] is False and answer["from"].endswith("T00:00:00.000Z")
    day = answer["items"][0]["day"]
    assert usage(alice, f"?from={day}") == answer["items"]
    assert usage(alice, f"?to={day}") == []
    for query, field in (("?from=yesterday", "from"), ("?by=moon", "by"), ("?to=x", "to")):
        check_problem(alice.get(f"/api/v1/usage{query}"), 400, "invalid_request", field=field)


def test_what_others_used_is_theirs(api, alice, used):
    bob = make_key(api, "usage-bob")
    assert usage(bob, "?by=sandbox") == [] and usage(bob) == []
    assert usage(bob, f"?by=sandbox&sandboxId={used[0]}") == []
    assert set(used) <= {item["sandboxId"] for item in usage(api, "?by=sandbox")}
    # Statistics of the vendor's wire are one's own too.
    assert bob.get("/services/stats/x").data["services"]["sandbox"]["totalExecutions"] == 0
    api.delete(f"/api/v1/keys/{bob.info['id']}")


def test_runs_by_anothers_key_are_that_keys(api, alice):
    """The sandbox is alice's, the command was run with the organisation's key."""
    made = alice.post("/api/v1/sandboxes", {}).json["id"]
    assert api.post("/api/v1/run", {"sandbox": made, "command": ["true"]}).status == 200
    until(lambda: usage(api, f"?by=key&sandboxId={made}"), "the run to be counted")
    keys = {item.get("keyId"): item["runs"] for item in usage(api, f"?by=key&sandboxId={made}")}
    assert keys.pop(alice.info["id"], 0) == 0 and list(keys.values()) == [1]
    alice.delete(f"/api/v1/sandboxes/{made}")


def test_disk(alice):
    made = alice.post("/api/v1/sandboxes", {}).json["id"]
    try:
        alice.post("/api/v1/run", {"sandbox": made, "command": ["dd", "if=/dev/urandom", "of=file", "bs=1M", "count=5"]})
        alice.post(f"/api/v1/sandboxes/{made}/executions", {"command": ["sh", "-c", "while :; do :; done"]})  # something to measure
        until(lambda: any(item.get("diskBytes", 0) > 0 for item in usage(alice, f"?by=sandbox&sandboxId={made}")), "its disk to be known")
    finally:
        alice.delete(f"/api/v1/sandboxes/{made}")


def test_use_outlives_the_sandbox_and_the_server(tmp_path):
    server = servers.Server(tmp_path / "data")
    try:
        client = server.start().client
        id = run(client)
        until(lambda: usage(client, f"?sandboxId={id}") and usage(client, f"?sandboxId={id}")[0]["cpuMs"] > 0, "its use to be known")
        before = usage(client, f"?by=sandbox&sandboxId={id}")
        server.kill()
        client = server.start().client
        assert usage(client, f"?by=sandbox&sandboxId={id}") == before
        server.end()
    finally:
        server.abandon()
