# SPDX-License-Identifier: Apache-2.0
"""What the server's data takes on the disk, and giving back what nothing uses."""
import subprocess

import pytest
import server as servers
from archives import member, tar_of
from client import check_problem, until

PARTS = {"runtimes", "snapshots", "checkpoints", "sandboxes", "streams", "database", "unused"}
MEGA = 1 << 20


def df(api):
    answer = api.get("/api/v1/system/df")
    assert answer.status == 200, str(answer)
    return answer.data


def part(api, name):
    return df(api)["parts"][name]


def prune(api, **fields):
    answer = api.post("/api/v1/system/prune", fields)
    assert answer.status == 200, str(answer)
    return answer.data


def fill(sandbox, megabytes=20):
    sandbox.output(f"head -c {megabytes * MEGA} /dev/urandom >big-$(ls | wc -l); sync")


@pytest.fixture
def own(own_server):
    server = own_server()
    yield server.client
    server.end()


def test_the_answer(api):
    found = df(api)
    assert set(found) == {"volume", "parts", "usedBytes"} and set(found["parts"]) == PARTS
    assert found["volume"]["bytes"] > found["volume"]["freeBytes"] > 0
    assert all(set(use) == {"count", "bytes"} and use["count"] >= 0 and use["bytes"] >= 0 for use in found["parts"].values())
    assert found["usedBytes"] == sum(use["bytes"] for use in found["parts"].values())
    assert found["parts"]["runtimes"]["count"] >= 1 and found["parts"]["database"]["bytes"] > 0


def test_a_key_is_needed_and_it_must_be_an_admins(api, server):
    for answer in (api.get("/api/v1/system/df", key=None), api.post("/api/v1/system/prune", {}, key=None)):
        check_problem(answer, 401, "unauthorized", "key")
    made = subprocess.run([servers.BURROW, "key", "create", "--data", server.data, "--json", "--name", "plain"], capture_output=True, text=True, check=True)
    import json
    key = next(value for value in json.loads(made.stdout).values() if isinstance(value, str) and value.startswith("brw_"))
    for answer in (api.get("/api/v1/system/df", key=key), api.post("/api/v1/system/prune", {}, key=key)):
        assert answer.status == 403, str(answer)


def test_bad_bodies(api):
    for body in ({"dryRun": "yes"}, {"dryRun": 1}):
        answer = api.post("/api/v1/system/prune", body)
        assert answer.status == 400 and "dryRun" in answer.json["detail"]
    assert api.call("POST", "/api/v1/system/prune", body=b"{", headers={"Content-Type": "application/json"}).status == 400


def test_each_part_grows_with_what_it_is_for(own):
    before = df(own)["parts"]
    sandbox = own.create()
    fill(sandbox)
    assert part(own, "sandboxes")["count"] == before["sandboxes"]["count"] + 1
    until(lambda: part(own, "sandboxes")["bytes"] >= before["sandboxes"]["bytes"] + 20 * MEGA, "the sandbox's files to count")
    assert own.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "one"}).status == 201
    assert part(own, "checkpoints")["count"] == 1 and part(own, "checkpoints")["bytes"] >= 20 * MEGA
    snapshot = own.post(f"/sandbox/{sandbox.id}/snapshot", {}).data["snapshotId"]
    assert part(own, "snapshots")["count"] == 1 and part(own, "snapshots")["bytes"] >= 20 * MEGA
    sandbox.output("seq 100000")
    assert part(own, "streams")["bytes"] > before["streams"]["bytes"]
    own.delete(f"/sandbox/snapshots/{snapshot}")


def test_space_comes_back_when_the_last_user_is_gone(own):
    before = df(own)["volume"]["freeBytes"]
    sandbox = own.create()
    fill(sandbox, 50)
    snapshot = own.post(f"/sandbox/{sandbox.id}/snapshot", {}).data["snapshotId"]
    other = own.create(snapshot=snapshot)
    sandbox.delete()
    assert own.delete(f"/sandbox/snapshots/{snapshot}").status == 200
    assert other.output("stat -c %s big-0") == f"{50 * MEGA}\n", "its layer is still needed"
    assert part(own, "snapshots")["count"] == 0
    other.delete()
    prune(own)
    until(lambda: df(own)["volume"]["freeBytes"] > before - 10 * MEGA, "the space to come back")
    assert part(own, "unused") == {"count": 0, "bytes": 0}


def test_checkpoints_go_with_their_sandbox(own):
    sandbox = own.create()
    fill(sandbox)
    own.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "one"})
    sandbox.delete()
    until(lambda: part(own, "checkpoints")["count"] == 0, "the checkpoint to go")
    prune(own)
    until(lambda: part(own, "unused")["bytes"] == 0, "its layer to go")


def test_pruning_frees_nothing_that_is_used(own):
    sandbox = own.create()
    fill(sandbox)
    own.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "one"})
    snapshot = own.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "kept"}).data["snapshotId"]
    begun = own.post("/sandbox/snapshots/build", {"runtime": "base:latest"}).data
    assert own.put(begun["uploadUrl"], tar_of(member("f", b"x")), key=None).status == 200
    trial = prune(own, dryRun=True)
    assert trial["dryRun"] is True and set(trial["freed"]) == PARTS
    assert trial["freedBytes"] == sum(use["bytes"] for use in trial["freed"].values())
    done = prune(own)
    assert done["dryRun"] is False
    assert sandbox.output("ls") == "big-0\n"
    assert own.post(f"/sandbox/{sandbox.id}/checkpoint/one/restore").status == 200
    assert own.create(snapshot=snapshot).output("ls") == "big-0\n"
    final = own.post(f"/sandbox/snapshots/{begun['snapshotId']}/finalize", {"sizeBytes": 1, "fileCount": 1, "files": []})
    assert final.status == 200, "a build under way is not pruned"
    own.delete(f"/sandbox/snapshots/{snapshot}")
    own.delete(f"/sandbox/snapshots/{begun['snapshotId']}")


def test_pruning_twice_frees_nothing_more(own):
    prune(own)
    assert prune(own)["freedBytes"] == 0
    assert own.post("/api/v1/system/prune").status == 200, "without a body"
