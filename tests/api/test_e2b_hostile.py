# SPDX-License-Identifier: Apache-2.0
"""What callers try by E2B's protocol that the owner of a sandbox, or their own key, does not allow."""
import base64
import hashlib
import http.client
import urllib.parse

import pytest

import e2b as protocol
from client import Client, until


@pytest.fixture
def make(api):
    """Keys that end with the test: clients of E2B's wire, each with .v1 for burrow's own and its .info."""
    made = []

    def create(**fields):
        answer = api.post("/api/v1/keys", fields)
        assert answer.status == 201, str(answer)
        client = protocol.E2b(api.port, answer.json["key"])
        client.info, client.v1 = answer.json, Client(api.port, answer.json["key"])
        made.append(client)
        return client
    yield create
    for client in made:
        api.delete(f"/api/v1/keys/{client.info['id']}")


@pytest.fixture
def bob(make):
    return make(owner="bob", scopes=["read", "run", "manage"])


@pytest.fixture
def box(bob):
    """bob's sandbox."""
    sandbox = bob.create(timeout=600)
    yield sandbox
    bob.v1.delete(f"/api/v1/sandboxes/sbx_{sandbox.id}")


def connected(client, sandbox):
    """The sandbox as another key reaches it."""
    answer = client.post(f"/v2/sandboxes/{sandbox.id}/connect", {"timeout": 600})
    assert answer.status == 200, str(answer)
    return protocol.Sandbox(client, answer.json)


def status_of(sandbox):
    return sandbox.unary("process.Process/List", may_fail=True).status


def signed(token, path):
    """A URL for reading a file, as E2B's clients sign it; nothing in it names the sandbox."""
    digest = hashlib.sha256(f"{path}:read:user:{token}".encode()).digest()
    signature = "v1_" + base64.b64encode(digest).decode().rstrip("=")
    return "/files?" + urllib.parse.urlencode({"path": path, "username": "user", "signature": signature})


def read(client, url):
    return client.call("GET", url, key=None, may_fail=True)


# ---- tokens of envd ----

def test_a_key_that_only_reads_gets_no_token(make, box):
    auditor = make(scopes=["read", "organisation"])
    told = auditor.get(f"/sandboxes/{box.id}")
    assert told.status == 200 and told.json["sandboxID"] == box.id
    assert "envdAccessToken" not in told.json and box.token not in str(told)
    assert auditor.post(f"/v2/sandboxes/{box.id}/connect", {"timeout": 60}).status == 403
    assert auditor.post(f"/sandboxes/{box.id}/resume", {"timeout": 60}).status == 403


def test_a_token_is_its_keys_and_the_same_each_time(make, box):
    other = make(owner="bob", scopes=["read", "run"])
    theirs = connected(other, box)
    assert theirs.token == connected(other, box).token == other.get(f"/sandboxes/{box.id}").json["envdAccessToken"]
    assert theirs.token != box.token
    assert theirs.run("echo here").out["stdout"] == b"here\n"


@pytest.mark.parametrize("forge", [
    lambda own, box: own.token[:52] + box.token[52:],
    lambda own, box: box.id + own.token[26:],
    lambda own, box: box.token[:52] + own.token[52:],
    lambda own, box: box.id + "0" * 26 + box.token[52:],
    lambda own, box: box.id + box.token[52:],
])
def test_a_token_made_of_parts_of_others_opens_nothing(make, box, forge):
    other = make(owner="eve", scopes=["read", "run"])
    own = other.create(timeout=60)
    try:
        forged = protocol.Sandbox(other, {"sandboxID": box.id, "envdAccessToken": forge(own, box)})
        assert status_of(forged) in (401, 502)
    finally:
        own.kill()


def test_a_token_ends_with_its_key_and_with_that_alone(api, make, box):
    other = make(owner="bob", scopes=["read", "run"])
    theirs = connected(other, box)
    assert status_of(theirs) == status_of(box) == 200
    running = theirs.start("sleep 1000")
    assert api.delete(f"/api/v1/keys/{other.info['id']}").status == 204
    assert status_of(theirs) == 401 and status_of(box) == 200
    with pytest.raises(http.client.IncompleteRead):  # what it followed is cut
        running.wait()


def test_a_token_is_worth_what_its_key_may_do_now(api, make, box):
    other = make(owner="alice", scopes=["read", "run", "organisation"])
    theirs = connected(other, box)
    assert theirs.run("true").end["exitCode"] == 0
    assert api.patch(f"/api/v1/keys/{other.info['id']}", {"scopes": ["read", "organisation"]}).status == 200
    assert status_of(theirs) == 200
    with pytest.raises(protocol.Failed) as refused:
        theirs.run("true")
    assert refused.value.code == "permission_denied"
    assert api.patch(f"/api/v1/keys/{other.info['id']}", {"scopes": ["read", "run"]}).status == 200
    assert status_of(theirs) == 401  # bob's box is not there for it any more


def test_a_key_for_some_labels_gets_no_other_sandbox(make, box):
    narrow = make(owner="bob", scopes=["read", "run"], selector="team=a")
    assert narrow.get(f"/sandboxes/{box.id}").status == 404
    assert narrow.post(f"/v2/sandboxes/{box.id}/connect", {"timeout": 60}).status == 404
    assert narrow.delete(f"/sandboxes/{box.id}").status == 404
    assert status_of(box) == 200


def test_labels_that_a_key_is_for_hold_for_tokens_it_has(api, make, box):
    other = make(owner="bob", scopes=["read", "run"])
    theirs = connected(other, box)
    assert api.patch(f"/api/v1/keys/{other.info['id']}", {"selector": "team=a"}).status == 200
    assert status_of(theirs) == 502 and status_of(box) == 200


def test_the_record_names_the_key_whose_token_it_was(api, make, box):
    other = make(scopes=["read", "run", "organisation"])
    connected(other, box).run("true")
    changes = api.get(f"/api/v1/audit?keyId={other.info['id']}&limit=100").json["items"]
    assert any(change["route"].endswith("/process.Process/Start") for change in changes), changes


def test_signed_urls_are_their_keys(api, make, box):
    assert box.run("echo secret >note").end["exitCode"] == 0
    other = make(owner="bob", scopes=["read", "run"])
    theirs = connected(other, box)
    own, lent = (signed(sandbox.token, "/home/user/note") for sandbox in (box, theirs))
    for url in (own, lent):
        assert read(box.e2b, url).body == b"secret\n"
    assert api.delete(f"/api/v1/keys/{other.info['id']}").status == 204
    assert read(box.e2b, lent).status == 401
    assert read(box.e2b, own).body == b"secret\n"


# ---- contexts, which stock clients ask for without a token ----

def ask_context(client, id, method, path="", headers=None, **kwargs):
    headers = {"E2b-Sandbox-Id": id, "E2b-Sandbox-Port": "49999", **(headers or {})}
    return client.call(method, f"/contexts{path}", headers=headers, key=None, may_fail=True, **kwargs)


def make_context(client, id, headers=None):
    return ask_context(client, id, "POST", json={"language": "bash"}, headers=headers)


@pytest.fixture
def stranger(api):
    return protocol.E2b(api.port, None)


@pytest.fixture
def closed(bob, request):
    """Sandboxes of bob's whose ports are not everybody's."""
    if request.param == "private":
        told = bob.create(timeout=600, network={"allowPublicTraffic": False})
        id = told.id
    else:
        made = bob.v1.post("/api/v1/sandboxes", {"runtime": "base"})
        assert made.status == 201, str(made)
        id = made.json["id"].removeprefix("sbx_")
        if request.param == "exposed":
            answer = bob.v1.post(f"/api/v1/sandboxes/sbx_{id}/ports", {"port": 49999})
            assert answer.status in (200, 201), str(answer)
    yield id
    bob.v1.delete(f"/api/v1/sandboxes/sbx_{id}")


@pytest.mark.parametrize("closed", ["private", "own", "exposed"], indirect=True)
def test_contexts_of_a_sandbox_that_is_not_public_need_its_token(bob, stranger, closed):
    made = bob.v1.post(f"/api/v1/sandboxes/sbx_{closed}/contexts", {"language": "bash"})
    assert made.status == 201, str(made)
    id = made.json["id"].removeprefix("ctx_")
    for method, path in (("GET", ""), ("POST", ""), ("POST", f"/{id}/restart"), ("DELETE", f"/{id}")):
        answer = ask_context(stranger, closed, method, path, **({"json": {"language": "bash"}} if method == "POST" and not path else {}))
        assert answer.status == 403, f"{method} {path}: {answer}"
    token = {"X-Access-Token": connected(bob, type("Box", (), {"id": closed})).token}
    assert [one["id"] for one in ask_context(stranger, closed, "GET", headers=token).json] == [id]
    assert ask_context(stranger, closed, "DELETE", f"/{id}", headers=token).status == 200


def test_strangers_find_their_own_contexts_alone(box, stranger):
    token = {"X-Access-Token": box.token}
    own = make_context(stranger, box.id, headers=token).json["id"]
    theirs = make_context(stranger, box.id).json["id"]
    assert [one["id"] for one in ask_context(stranger, box.id, "GET").json] == [theirs]
    assert {one["id"] for one in ask_context(stranger, box.id, "GET", headers=token).json} == {own, theirs}
    assert ask_context(stranger, box.id, "DELETE", f"/{own}").status == 404
    assert ask_context(stranger, box.id, "POST", f"/{own}/restart").status == 404
    assert ask_context(stranger, box.id, "POST", f"/{theirs}/restart").status == 200
    assert ask_context(stranger, box.id, "DELETE", f"/{theirs}").status == 200
    assert ask_context(stranger, box.id, "DELETE", f"/{own}", headers=token).status == 200


def test_strangers_leave_places_for_contexts_to_the_owner(box, stranger):
    made = [make_context(stranger, box.id) for _ in range(8)]
    assert [answer.status for answer in made] == [200] * 8
    refused = make_context(stranger, box.id)
    assert refused.status == 429 and "token" in refused.json["message"], str(refused)
    assert make_context(stranger, box.id, headers={"X-Access-Token": box.token}).status == 200


def test_strangers_use_nobodys_runs(own_server):
    # One on which no key's runs were asked for: the organisation's are read from the database.
    server = own_server(environment={"BURROW_E2B_RUNTIME": "base:latest"})
    key = server.client.post("/api/v1/keys", {"owner": "victor", "quotas": {"runsPerDay": 2}}).json["key"]
    bounded, stranger = protocol.E2b(server.port, key), protocol.E2b(server.port, None)
    sandbox = bounded.create(timeout=600)

    def used():
        quotas = server.client.get("/api/v1/quotas").json["organisation"], Client(server.port, key).get("/api/v1/quotas").json["key"]
        return [one["used"]["runsToday"] for one in quotas]

    for _ in range(4):
        made = make_context(stranger, sandbox.id)
        assert made.status == 200, str(made)
        assert used() == [0, 0]
        assert ask_context(stranger, sandbox.id, "DELETE", f"/{made.json['id']}").status == 200
    assert sandbox.run("true").end["exitCode"] == 0
    assert used() == [1, 1]
    server.end()


def test_what_strangers_change_is_on_record_as_nobodys(api, box, stranger):
    made = make_context(stranger, box.id)
    assert ask_context(stranger, box.id, "POST", f"/{made.json['id']}/restart").status == 200
    assert ask_context(stranger, box.id, "DELETE", f"/{made.json['id']}").status == 200
    changes = [(change["method"], change["route"]) for change in api.get("/api/v1/audit?limit=100").json["items"]
               if change["front"] == "e2b-code" and change["subject"] == box.id and not change.get("keyId") and not change.get("owner")]
    assert changes == [("DELETE", "/contexts/{id}"), ("POST", "/contexts/{id}/restart"), ("POST", "/contexts")]


# ---- runs of a day ----

def test_runs_by_a_token_count_for_its_key(make):
    bounded = make(owner="victor", scopes=["read", "run", "manage"], quotas={"runsPerDay": 2})
    sandbox = bounded.create(timeout=600)
    try:
        assert sandbox.run("true").end["exitCode"] == 0
        answer = sandbox.http("POST", "/execute", headers={"E2b-Sandbox-Port": "49999"}, json={"code": "echo 1", "language": "bash"})
        assert answer.status == 200, str(answer)
        with pytest.raises(protocol.Failed) as refused:
            sandbox.run("true")
        assert refused.value.code == "resource_exhausted" and "runs per day" in refused.value.message
        answer = sandbox.http("POST", "/execute", headers={"E2b-Sandbox-Port": "49999"}, json={"code": "echo 2", "language": "bash"})
        assert answer.status == 429, str(answer)
    finally:
        sandbox.kill()


def test_each_run_of_code_counts(make):
    bounded = make(owner="victor", scopes=["read", "run", "manage"], quotas={"runsPerDay": 3})
    made = bounded.v1.post("/api/v1/sandboxes", {"runtime": "base"}).json["id"]
    try:
        for number in range(3):
            answer = bounded.v1.post(f"/api/v1/sandboxes/{made}/code", {"code": f"echo {number}", "language": "bash"})
            assert answer.status == 200, str(answer)
            assert bounded.v1.get("/api/v1/quotas").json["key"]["used"]["runsToday"] == number + 1
        refused = bounded.v1.post(f"/api/v1/sandboxes/{made}/code", {"code": "echo 4", "language": "bash"})
        assert refused.status == 429, str(refused)
    finally:
        bounded.v1.delete(f"/api/v1/sandboxes/{made}")


def test_runs_of_code_are_remembered_over_a_restart(own_server):
    server = own_server()
    key = server.client.post("/api/v1/keys", {"owner": "victor", "quotas": {"runsPerDay": 3}}).json["key"]

    def run(client):
        return client.post(f"/api/v1/sandboxes/{made}/code", {"code": "echo 1", "language": "bash"}).status

    client = Client(server.port, key)
    made = client.post("/api/v1/sandboxes", {"runtime": "base"}).json["id"]
    assert [run(client) for _ in range(2)] == [200, 200]
    # the interpreter, which is the first, is told of when it has ended; nobody waits for the second to be written down
    until(lambda: [item["runs"] for item in client.get("/api/v1/usage").json["items"]] == [1], "the second to be written down")
    server.kill()
    server.start()
    client = Client(server.port, key)
    assert client.get("/api/v1/quotas").json["key"]["used"]["runsToday"] == 2
    assert [run(client) for _ in range(2)] == [200, 429]
    server.end()
