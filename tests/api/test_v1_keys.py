# SPDX-License-Identifier: Apache-2.0
"""Keys: owners, scopes, restrictions, quotas; nobody gets more than was given; what a key sees."""
import re

import pytest

from client import Client, Raw, check_error, check_problem, pages, together, until

ALL = ["read", "run", "manage", "admin", "organisation"]


@pytest.fixture(scope="module")
def make(api):
    """Makes keys that end with the module: clients, each with its .info."""
    made = []

    def create(by=api, **fields):
        answer = by.post("/api/v1/keys", fields)
        assert answer.status == 201, str(answer)
        client = Client(api.port, answer.json["key"])
        client.info = answer.json
        made.append(client)
        return client
    yield create
    for client in made:
        api.delete(f"/api/v1/keys/{client.info['id']}")


@pytest.fixture(scope="module")
def alice(make):
    return make(owner="alice", name="alice's laptop")


@pytest.fixture(scope="module")
def bob(make):
    return make(owner="bob")


def test_a_key_is_told_once(api, make):
    key = make(name="ci", owner="ci", scopes=["read", "run"], quotas={"sandboxes": 3, "memoryBytes": "1Gi", "cpuMillicores": "2"},
               runtimes=["base"], network=False, expiresInMs="1h")
    info = key.info
    assert re.fullmatch(r"brw_[0-9a-z]{52}", info["key"]) and info["key"].startswith(info["prefix"])
    assert re.fullmatch(r"key_[0-9a-z]{26}", info["id"])
    assert (info["name"], info["owner"], info["scopes"]) == ("ci", "ci", ["read", "run"])
    assert info["quotas"] == {"sandboxes": 3, "memoryBytes": 1 << 30, "cpuMillicores": 2000}
    assert (info["runtimes"], info["network"], info["inUse"]) == (["base"], False, True)
    assert info["expiresAt"] > info["createdAt"]
    again = api.get(f"/api/v1/keys/{info['id']}").json
    assert "key" not in again and again["prefix"] == info["prefix"]
    items, _ = pages(api, "/api/v1/keys", 2)
    mine = [item for item in items if item["id"] == info["id"]]
    assert len(mine) == 1 and "key" not in mine[0]
    assert info["key"] not in str(items)


def test_a_repeated_request_does_not_tell_the_key_again(api, server):
    """Nor is it kept anywhere, as answers of other requests are."""
    first, again = [api.post("/api/v1/keys", {"name": "once"}, headers={"Idempotency-Key": "make-a-key"}).json for _ in range(2)]
    key = first["key"]
    assert again["id"] == first["id"] and again["key"] == key[:12] + "*" * 44
    for file in server.data.glob("burrow.db*"):
        assert key.encode() not in file.read_bytes(), file
    api.delete(f"/api/v1/keys/{first['id']}")


def test_without_a_word_a_key_can_do_what_its_maker_can_but_manage_keys(api, make):
    assert make().info["scopes"] == ["read", "run", "manage", "organisation"]
    assert make(owner="carol").info["scopes"] == ["read", "run", "manage"]


@pytest.mark.parametrize("fields, field", [
    ({"scopes": ["fly"]}, "scopes"), ({"scopes": []}, "scopes"), ({"owner": ""}, "owner"), ({"owner": "x" * 65}, "owner"),
    ({"quotas": {"sandboxes": -1}}, "quotas.sandboxes"), ({"expiresInMs": -1}, "expiresInMs"), ({"runtimes": [""]}, "runtimes[0]"),
])
def test_what_cannot_be_a_key(api, fields, field):
    answer = api.post("/api/v1/keys", fields)
    assert answer.status == 400 and answer.json.get("field", "").startswith(field), str(answer)


def test_a_key_without_an_owner_that_sees_nothing_is_refused(api):
    check_problem(api.post("/api/v1/keys", {"scopes": ["read"]}), 400, "invalid_request", "owner", "organisation")


def test_names_are_plain_text(api):
    check_problem(api.post("/api/v1/keys", {"name": "a\nb"}), 400, "invalid_request", "control characters")
    check_problem(api.post("/api/v1/keys", {"owner": "a\u001bb"}), 400, "invalid_request", "control characters")


# ---- what a key sees ----

def test_a_key_sees_its_owners_sandboxes_and_no_others(api, alice, bob, make):
    mine, theirs = alice.create(), bob.create()
    try:
        assert [item["sandboxId"] for item in alice.get("/sandbox").data["sandboxes"]] == [mine.id]
        assert alice.get("/sandbox").data["total"] == 1
        assert {mine.id, theirs.id} <= {item["sandboxId"] for item in api.get("/sandbox").data["sandboxes"]}
        ran = mine.sh("echo hello")
        assert ran.stdout == b"hello\n"
        for client, status in ((alice, 200), (bob, 404), (api, 200), (make(owner="alice"), 200)):
            assert client.get(f"/sandbox/{mine.id}").status == status
            assert client.get(f"/sandbox/status/{mine.id}").status == status
            assert client.get(f"/sandbox/execution/{ran.started['executionId']}").status == status
            assert client.get(f"/sandbox/sandboxes/{mine.id}/executions").status == status
            assert client.get(f"/sandbox/sandboxes/{mine.id}/events").status == status
            assert client.get(f"/fs/list/{mine.id}").status == status
        assert bob.post(f"/sandbox/{mine.id}/execute", {"command": ["true"]}).status == 404
        assert bob.post(f"/sandbox/{mine.id}/pause").status == 404
        assert bob.delete(f"/sandbox/{mine.id}").status == 404
        assert alice.get(f"/sandbox/{mine.id}").status == 200
        # What the organisation's key does in alice's sandbox is alice's to see.
        done = api.sandbox(mine.id).sh("echo from above")
        assert alice.get(f"/sandbox/execution/{done.started['executionId']}").status == 200
        assert bob.get(f"/sandbox/execution/{done.started['executionId']}").status == 404
    finally:
        mine.delete()
        theirs.delete()


def test_a_name_is_ones_own_before_it_is_anybodys(api, alice):
    """Else whoever may make a sandbox could block the names of those who see all, or be given what was meant for theirs."""
    top = "/api/v1/sandboxes"
    hers = alice.post(top, {"name": "wanted"}).json["id"]
    assert api.get(f"{top}/wanted").json["id"] == hers
    made = api.post(top, {"name": "wanted"})
    assert made.status == 201, str(made)
    assert api.get(f"{top}/wanted").json["id"] == made.json["id"] and alice.get(f"{top}/wanted").json["id"] == hers
    for id in (hers, made.json["id"]):
        api.delete(f"{top}/{id}")


def test_snapshots_and_streams_are_their_owners(api, alice, bob):
    sandbox = alice.create()
    stream = alice.new_stream("notes")
    try:
        snapshot = alice.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "shared-name", "tag": "v1"}).data["snapshotId"]
        other = bob.create()
        try:
            twin = bob.post(f"/sandbox/{other.id}/snapshot", {"name": "shared-name", "tag": "v1"}).data["snapshotId"]
        finally:
            other.delete()
        # Neither took the other's tag, and each finds its own by the name.
        assert alice.get(f"/sandbox/snapshots/{snapshot}").data["tag"] == "v1"
        assert bob.get(f"/sandbox/snapshots/{twin}").data["tag"] == "v1"
        assert bob.get(f"/sandbox/snapshots/{snapshot}").status == 404
        assert [item["snapshotId"] for item in bob.get("/sandbox/snapshots").data["snapshots"]] == [twin]
        assert {snapshot, twin} <= {item["snapshotId"] for item in api.get("/sandbox/snapshots").data["snapshots"]}
        assert bob.delete(f"/sandbox/snapshots/{snapshot}").status == 404
        refused = bob.post("/sandbox", {"snapshot": snapshot})
        assert refused.status in (400, 404), str(refused)
        bob.delete(f"/sandbox/snapshots/{twin}")
        alice.delete(f"/sandbox/snapshots/{snapshot}")
    finally:
        sandbox.delete()
        assert stream


def test_an_idempotency_key_is_its_owners(alice, bob):
    made = [client.post("/sandbox", {}, headers={"Idempotency-Key": "the same"}) for client in (alice, bob, alice)]
    ids = [answer.data["sandboxId"] for answer in made]
    assert ids[0] == ids[2] != ids[1]
    for client, id in zip((alice, bob), ids):
        client.delete(f"/sandbox/{id}")


# ---- scopes ----

def test_a_missing_scope_is_named_in_the_words_of_each_front(make):
    reader = make(owner="alice", scopes=["read"])
    check_error(reader.post("/sandbox", {}), 403, "FORBIDDEN", "scope 'run'")
    check_problem(reader.post("/api/v1/keys", {}), 403, "missing_scope", "scope 'admin'")
    runner = make(owner="alice", scopes=["run"])
    check_problem(runner.get("/api/v1/quotas"), 403, "missing_scope", "scope 'read'")
    check_error(runner.get("/sandbox"), 403, "FORBIDDEN", "scope 'read'")


# ---- nobody gets more than was given ----

def test_a_key_makes_none_mightier_than_itself(api, make):
    lesser = make(owner="alice", scopes=["read", "admin"])
    check_problem(lesser.post("/api/v1/keys", {"scopes": ["read", "run"]}), 403, "forbidden", "scope 'run'")
    check_problem(lesser.post("/api/v1/keys", {"scopes": ["read", "organisation"]}), 403, "forbidden", "scope 'organisation'")
    check_problem(lesser.post("/api/v1/keys", {"scopes": ["read"], "owner": "bob"}), 403, "forbidden", "owner")
    child = make(by=lesser, scopes=["read"])
    assert (child.info["owner"], child.info["createdBy"]) == ("alice", lesser.info["id"])
    # Nor by a change, of itself or of another.
    for key in (lesser, child):
        check_problem(lesser.patch(f"/api/v1/keys/{key.info['id']}", {"scopes": ALL}), 403, "forbidden", "scope")
    mightier = make(owner="alice", scopes=["read", "run", "manage", "admin"])
    check_problem(lesser.patch(f"/api/v1/keys/{mightier.info['id']}", {"scopes": ["read"]}), 403, "forbidden")
    assert "run" in api.get(f"/api/v1/keys/{mightier.info['id']}").json["scopes"]


def test_keys_of_others_are_not_there(make, alice):
    lesser = make(owner="mallory", scopes=["read", "admin"])
    id = alice.info["id"]
    check_problem(lesser.get(f"/api/v1/keys/{id}"), 404, "not_found")
    check_problem(lesser.patch(f"/api/v1/keys/{id}", {"name": "x"}), 404, "not_found")
    check_problem(lesser.delete(f"/api/v1/keys/{id}"), 404, "not_found")
    assert [key["id"] for key in lesser.get("/api/v1/keys").json["items"]] == [lesser.info["id"]]
    assert alice.get("/api/v1/quotas").status == 200


def test_a_bounded_key_makes_none(make):
    for bounds in ({"quotas": {"sandboxes": 1}}, {"runtimes": ["base"]}, {"network": False}):
        bounded = make(owner="alice", scopes=["read", "run", "admin"], **bounds)
        check_problem(bounded.post("/api/v1/keys", {"scopes": ["read"]}), 403, "forbidden", "quotas or restrictions")
        check_problem(bounded.patch(f"/api/v1/keys/{bounded.info['id']}", {"quotas": {"sandboxes": 99}}), 403, "forbidden")


def test_a_key_does_not_outlive_its_maker(make):
    short = make(owner="alice", scopes=["read", "admin"], expiresInMs=3600_000)
    check_problem(short.post("/api/v1/keys", {"scopes": ["read"], "expiresInMs": "2h"}), 403, "forbidden", "outlive")
    assert make(by=short, scopes=["read"]).info["expiresAt"] == short.info["expiresAt"]
    assert short.patch(f"/api/v1/keys/{short.info['id']}", {"expiresInMs": 0}).json["expiresAt"] == short.info["expiresAt"]


def test_a_key_is_changed_and_that_holds_at_once(api, make):
    key = make(owner="alice")
    assert key.get("/api/v1/quotas").status == 200
    path = f"/api/v1/keys/{key.info['id']}"
    changed = api.patch(path, {"scopes": ["run"], "name": "new", "quotas": {"sandboxes": 2}}).json
    assert (changed["scopes"], changed["name"], changed["quotas"]) == (["run"], "new", {"sandboxes": 2})
    check_problem(key.get("/api/v1/quotas"), 403, "missing_scope")
    api.patch(path, {"scopes": ["read"], "quotas": {"memoryBytes": "1Gi"}})
    assert key.get("/api/v1/quotas").json["key"]["limits"] == {"sandboxes": 2, "memoryBytes": 1 << 30}
    assert api.patch(path, {"quotas": {"sandboxes": 0}}).json["quotas"] == {"memoryBytes": 1 << 30}


def test_a_revoked_key_is_refused_at_once(api, make):
    key = make(owner="alice")
    for _ in range(20):  # it is in memory
        assert key.get("/api/v1/quotas").status == 200
    path = f"/api/v1/keys/{key.info['id']}"
    assert api.delete(path).status == 204
    check_problem(key.get("/api/v1/quotas"), 401, "unauthorized")
    assert api.get(path).json["inUse"] is False and "revokedAt" in api.get(path).json
    check_problem(api.delete(path), 409, "conflict")
    check_problem(api.patch(path, {"name": "x"}), 409, "conflict")
    check_problem(api.get("/api/v1/keys/key_00000000000000000000000000"), 404, "not_found")


def test_who_follows_with_a_key_that_may_less_is_cut_off(api, make):
    key = make(owner="alice", scopes=["read", "run"])
    raw = Raw(api.port)
    raw.send(f"GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer {key.key}\r\n\r\n".encode())
    assert raw.response().status == 200
    assert api.patch(f"/api/v1/keys/{key.info['id']}", {"scopes": ["run"]}).status == 200
    raw.all()  # returns when the server has closed it
    raw.close()


def test_an_administrator_of_one_owner_is_none_of_the_machine(make):
    key = make(owner="alice", scopes=["read", "run", "manage", "admin"])
    for path in ("df", "doctor"):
        check_problem(key.get(f"/api/v1/system/{path}"), 403, "forbidden", "organisation")
    check_problem(key.post("/api/v1/system/prune", {"dryRun": True}), 403, "forbidden", "organisation")


def test_a_key_expires(make):
    key = make(owner="alice", expiresInMs=1)
    until(lambda: key.get("/api/v1/quotas").status == 401, "the key to expire")


# ---- restrictions ----

def test_a_key_for_some_runtimes(make):
    key = make(owner="alice", runtimes=["host"])
    check_error(key.post("/sandbox", {}), 403, "FORBIDDEN", "runtime 'base:latest'")


def test_a_key_for_sandboxes_with_some_labels(api, make):
    key = make(selector="team=blue")
    ours, theirs = [api.post("/api/v1/sandboxes", {"labels": {"team": team}}).json["id"] for team in ("blue", "red")]
    try:
        assert [item["id"] for item in key.get("/api/v1/sandboxes").json["items"]] == [ours]
        assert key.get("/api/v1/sandboxes?selector=team%3Dred").json["items"] == []
        assert key.get(f"/api/v1/sandboxes/{ours}").status == 200
        check_problem(key.get(f"/api/v1/sandboxes/{theirs}"), 404, "not_found")
        check_problem(key.post("/api/v1/run", {"sandbox": theirs, "command": ["true"]}), 404, "not_found")
        ran, alien = [by.post(f"/api/v1/sandboxes/{id}/executions", {"command": ["true"]}).json["id"] for by, id in ((key, ours), (api, theirs))]
        assert key.get(f"/api/v1/executions/{ran}").status == 200
        for path in (f"/api/v1/executions/{alien}", f"/api/v1/executions/{alien}/output?stream=stdout"):
            check_problem(key.get(path), 404, "not_found")
        check_problem(key.delete(f"/api/v1/sandboxes/{theirs}"), 404, "not_found")
        # What it makes must be such a sandbox too; and what shows all of them is not for it.
        check_problem(key.post("/api/v1/sandboxes", {"labels": {"team": "red"}}), 403, "forbidden", "team=blue")
        check_problem(key.post("/api/v1/run", {"command": ["true"]}), 403, "forbidden", "team=blue")
        made = key.post("/api/v1/sandboxes", {"labels": {"team": "blue"}})
        assert made.status == 201, str(made)
        assert key.delete(f"/api/v1/sandboxes/{made.json['id']}").status in (200, 204)
        for path in ("/api/v1/executions", "/api/v1/events", "/api/v1/snapshots", "/api/v1/usage", "/sandbox", f"/sandbox/{ours}"):
            answer = key.get(path)
            assert answer.status == 403 and b"some labels alone" in answer.body, f"{path}: {answer}"
        check_problem(key.post(f"/api/v1/sandboxes/{ours}/fork", {"labels": {"team": "red"}}), 403, "forbidden", "team=blue")
        # Nor is one of its own made somebody else's, or the id of another told by its name.
        check_problem(key.patch(f"/api/v1/sandboxes/{ours}", {"labels": {"team": "red"}}), 403, "forbidden", "team=blue")
        assert key.patch(f"/api/v1/sandboxes/{ours}", {"labels": {"tier": "one"}}).status == 200
        api.patch(f"/api/v1/sandboxes/{theirs}", {"name": "of-the-reds"})
        answer = key.get("/api/v1/sandboxes/of-the-reds")
        check_problem(answer, 404, "not_found", "of-the-reds")
        assert theirs.removeprefix("sbx_") not in answer.body.decode()
    finally:
        for id in (ours, theirs):
            api.delete(f"/api/v1/sandboxes/{id}")
    check_problem(api.post("/api/v1/keys", {"selector": "team=("}), 400, "invalid_request")


# ---- quotas ----

def test_quotas_of_a_key(make):
    key = make(owner="alice", quotas={"sandboxes": 2, "memoryBytes": "600Mi", "cpuMillicores": 1500, "diskBytes": "3Gi", "processes": 1100})
    small = {"resources": {"memory": "200Mi", "cpu": "500m", "disk": "1Gi"}}
    first = key.create(**small)
    used = key.get("/api/v1/quotas").json["key"]["used"]
    assert used == {"sandboxes": 1, "memoryBytes": 200 << 20, "cpuMillicores": 500, "diskBytes": 1 << 30, "processes": 512, "runsToday": 0}
    for more, word in (({"memory": "401Mi"}, "memory"), ({"cpu": "1100m"}, "cpu"), ({"disk": "2500Mi"}, "disk")):
        answer = key.post("/sandbox", {"resources": {**small["resources"], **more}})
        assert answer.status == 429 and word in answer.json["message"] and "in use" in answer.json["message"], str(answer)
    answer = key.post("/api/v1/sandboxes", {"limits": {"memoryBytes": "64Mi", "cpuMillicores": 100, "diskBytes": "64Mi", "maxProcesses": 600}})
    assert answer.status == 429 and "quota for processes is 1100: 512 in use, 600 more" in answer.json["detail"], str(answer)
    second = key.create(**small)
    answer = key.post("/sandbox", small)
    assert answer.status == 429 and "quota for sandboxes is 2: 2 in use" in answer.json["message"], str(answer)
    first.delete()
    until(lambda: key.get("/api/v1/quotas").json["key"]["used"]["sandboxes"] == 1, "the count to go down")
    key.create(**small).delete()
    second.delete()
    until(lambda: key.get("/api/v1/quotas").json["key"]["used"]
          == {"sandboxes": 0, "memoryBytes": 0, "cpuMillicores": 0, "diskBytes": 0, "processes": 0, "runsToday": 0}, "nothing to be counted")


def test_what_is_saved_counts_for_the_disk_of_its_key(make):
    key = make(owner="alice", quotas={"diskBytes": "200Mi"})
    small = {"resources": {"memory": "64Mi", "disk": "100Mi"}}
    fill = "head -c 60M /dev/urandom >/workspace/big"

    def used():
        return key.get("/api/v1/quotas").json["key"]["used"]["diskBytes"] >> 20

    made = []
    first = key.create(**small)
    assert first.sh(fill).exit_code == 0
    answer = key.post(f"/api/v1/sandboxes/{first.id}/snapshots", {"name": "saved-1"})
    assert answer.status == 201, str(answer)
    made.append(answer.json["id"])
    assert used() == 160
    first.delete()
    until(lambda: used() == 60, "the sandbox to be counted no more")
    second = key.create(**small)
    assert second.sh(fill).exit_code == 0
    for path in ("snapshots", "checkpoints"):
        refused = key.post(f"/api/v1/sandboxes/{second.id}/{path}", {"name": "saved-2"})
        assert refused.status == 429 and "quota for disk is 200Mi" in refused.json["detail"], str(refused)
    assert used() == 160
    assert key.post("/sandbox", small).status == 429
    assert key.delete(f"/api/v1/snapshots/{made[0]}").status == 204
    assert key.post(f"/api/v1/sandboxes/{second.id}/checkpoints", {"name": "saved-2"}).status == 201
    assert used() == 160
    second.delete()
    until(lambda: used() == 0, "nothing to be counted")


def test_the_use_of_all_is_for_those_who_see_all(api, make):
    alone = make(owner="alice", scopes=["read"]).get("/api/v1/quotas").json
    assert "organisation" not in alone and alone["key"]["used"]["sandboxes"] == 0
    assert "sandboxes" in make(owner="alice", scopes=["read", "organisation"]).get("/api/v1/quotas").json["organisation"]["used"]


def test_the_last_place_is_taken_once(make):
    key = make(owner="alice", quotas={"sandboxes": 2})
    answers = together(*[lambda: key.post("/sandbox", {"resources": {"memory": "64Mi"}}) for _ in range(8)])
    made = [answer.data["sandboxId"] for answer in answers if answer.status == 200 or answer.status == 201]
    assert len(made) == 2, [str(answer) for answer in answers]
    assert all(answer.status == 429 for answer in answers if answer.status >= 400)
    for id in made:
        key.delete(f"/sandbox/{id}")


def test_runs_of_a_day(make):
    key = make(owner="alice", quotas={"runsPerDay": 3})
    sandbox = key.create()
    try:
        answers = together(*[lambda: key.post(f"/sandbox/sandboxes/{sandbox.id}/jobs", {"command": ["true"]}) for _ in range(6)])
        assert sorted(answer.status for answer in answers).count(429) == 3, [str(answer) for answer in answers]
        answer = key.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"]})
        assert answer.status == 429 and "runs per day is 3: 3 in use" in answer.json["message"], str(answer)
        assert key.get("/api/v1/quotas").json["key"]["used"]["runsToday"] == 3
    finally:
        sandbox.delete()


def test_the_organisation_has_ceilings(api, alice, make):
    before = api.get("/api/v1/organisation").json
    assert before["id"].startswith("org_") and before["quotas"] == {}
    now = api.get("/api/v1/quotas").json["organisation"]["used"]["sandboxes"]
    changed = api.patch("/api/v1/organisation", {"quotas": {"sandboxes": now + 1}})
    try:
        assert changed.json["quotas"] == {"sandboxes": now + 1}
        sandbox = alice.create()
        answer = api.post("/sandbox", {})
        assert answer.status == 429 and f"the organisation's quota for sandboxes is {now + 1}" in answer.json["message"], str(answer)
        sandbox.delete()
        check_problem(make(owner="alice", scopes=["read", "admin"]).patch("/api/v1/organisation", {"quotas": {"sandboxes": 0}}),
                      403, "missing_scope", "organisation")
    finally:
        assert api.patch("/api/v1/organisation", {"quotas": {"sandboxes": 0}}).json["quotas"] == {}
    check_problem(alice.patch("/api/v1/organisation", {}), 403, "missing_scope")
