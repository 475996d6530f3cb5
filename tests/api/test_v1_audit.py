# SPDX-License-Identifier: Apache-2.0
"""The record of changes: everything that was answered, over every wire, and nothing that was not done."""
import pytest

import server as servers
from client import Client, Raw, check_problem, pages


def entries(client, query=""):
    answer = client.get(f"/api/v1/audit{query}")
    assert answer.status == 200, str(answer)
    return answer.json["items"]


def by_request(client, id):
    return entries(client, f"?requestId={id}")


@pytest.fixture(scope="module")
def alice(api):
    info = api.post("/api/v1/keys", {"owner": "alice", "scopes": ["read", "run", "manage", "admin"]}).json
    client = Client(api.port, info["key"])
    client.info = info
    yield client
    api.delete(f"/api/v1/keys/{info['id']}")


def test_every_change_is_there_with_who_and_where(api, alice):
    made = alice.post("/sandbox", {}, headers={"X-Request-Id": "audit-create"})
    id = made.data["sandboxId"]
    [entry] = by_request(api, "audit-create")
    assert (entry["owner"], entry["keyId"]) == ("alice", alice.info["id"])
    assert (entry["front"], entry["method"], entry["route"]) == ("agentuity", "POST", "/sandbox")
    assert entry["subject"] == id and entry["status"] == made.status and entry["peer"].startswith("127.0.0.1:")
    assert made.json and entry["createdAt"].endswith("Z")
    alice.delete(f"/sandbox/{id}", headers={"X-Request-Id": "audit-delete"})
    [entry] = by_request(api, "audit-delete")
    assert (entry["method"], entry["route"], entry["subject"]) == ("DELETE", "/sandbox/{id}", id)


def test_our_own_wire_too(api):
    answer = api.post("/api/v1/keys", {"owner": "carol"}, headers={"X-Request-Id": "audit-key"})
    [entry] = by_request(api, "audit-key")
    assert (entry["route"], entry["subject"], entry["front"]) == ("/api/v1/keys", answer.json["id"], "api")
    assert answer.json["key"] not in str(entry)
    api.delete(f"/api/v1/keys/{answer.json['id']}", headers={"X-Request-Id": "audit-revoke"})
    assert by_request(api, "audit-revoke")[0]["subject"] == answer.json["id"]


def test_what_was_only_looked_at_or_refused_is_not_there(api, alice):
    for method, path in (("GET", "/sandbox"), ("DELETE", "/sandbox/sbx_00000000000000000000000000"), ("POST", "/api/v1/keys/nothing"),
                         ("GET", "/api/v1/audit")):
        api.call(method, path, headers={"X-Request-Id": "audit-nothing"})
    api.post("/sandbox", {}, key="brw_wrong_wrong_wrong_wrong", headers={"X-Request-Id": "audit-nothing"})
    api.post("/api/v1/keys", {"scopes": ["fly"]}, headers={"X-Request-Id": "audit-nothing"})
    assert by_request(api, "audit-nothing") == []


def test_who_has_attached_to_what_is_there(api, alice):
    """Also a GET, and it writes."""
    sandbox = alice.create()
    started = alice.post(f"/api/v1/sandboxes/{sandbox.id}/executions", {"command": ["cat"]}).json
    lines = {"Host": "x", "Authorization": f"Bearer {alice.key}", "X-Request-Id": "audit-attach", "Connection": "Upgrade", "Upgrade": "websocket",
             "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "MDAwMDAwMDAwMDAwMDAwMA=="}
    with Raw(api.port) as raw:
        path = f"/api/v1/executions/{started['id']}/attach"
        raw.send("\r\n".join([f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items()), "", ""]).encode())
        assert raw.response().status == 101
        [entry] = by_request(api, "audit-attach")
    assert (entry["keyId"], entry["route"], entry["subject"]) == (alice.info["id"], "/api/v1/executions/{execution}/attach", started["id"])
    sandbox.delete()


def test_tokens_are_told_apart_from_their_key(api, alice):
    sandbox = alice.create()
    token = alice.post(f"/api/v1/sandboxes/{sandbox.id}/tokens", {}).json
    client = Client(api.port, token["token"])
    client.post(f"/api/v1/sandboxes/{sandbox.id}/executions", {"command": ["true"]}, headers={"X-Request-Id": "audit-token"})
    [entry] = by_request(api, "audit-token")
    assert (entry["keyId"], entry["tokenId"], entry["subject"]) == (alice.info["id"], token["id"], sandbox.id)
    sandbox.delete()


def test_filters_and_pages(api, alice):
    for _ in range(3):
        alice.delete(f"/api/v1/keys/{alice.post('/api/v1/keys', {}).json['id']}")
    mine = entries(api, f"?keyId={alice.info['id']}&limit=100")
    assert len(mine) >= 6 and {entry["owner"] for entry in mine} == {"alice"}
    assert [entry["number"] for entry in mine] == sorted((entry["number"] for entry in mine), reverse=True)
    paged, count = pages(api, f"/api/v1/audit?keyId={alice.info['id']}", 2)
    assert paged[-len(mine):] == mine[-len(paged):] and count > 2
    assert {entry["method"] for entry in entries(api, "?method=DELETE")} == {"DELETE"}
    first = mine[-1]["createdAt"]
    assert all(entry["createdAt"] >= first for entry in entries(api, f"?from={first}"))
    assert entries(api, "?to=2020-01-01T00:00:00Z") == []
    check_problem(api.get("/api/v1/audit?from=yesterday"), 400, "invalid_request", field="from")


def test_one_sees_its_owners_changes_alone(api, alice):
    api.patch("/api/v1/organisation", {})
    assert {entry.get("owner") for entry in entries(alice, "?limit=100")} == {"alice"}
    assert len({entry.get("owner") for entry in entries(api, "?limit=100")}) > 1
    reader = api.post("/api/v1/keys", {"owner": "dave"}).json
    check_problem(Client(api.port, reader["key"]).get("/api/v1/audit"), 403, "missing_scope", "admin")
    api.delete(f"/api/v1/keys/{reader['id']}")


def test_hostile_request_ids_stay_in_their_place(api):
    api.patch("/api/v1/organisation", {}, headers={"X-Request-Id": "x" * 120})
    assert entries(api, "?limit=1")[0]["requestId"] == "x" * 71


def test_nothing_that_was_answered_is_lost_when_the_server_dies(tmp_path):
    server = servers.Server(tmp_path / "data")
    try:
        client = server.start().client
        for i in range(40):
            assert client.patch("/api/v1/organisation", {}, headers={"X-Request-Id": f"before-{i}"}).status == 200
        server.kill()
        client = server.start().client
        assert client.patch("/api/v1/organisation", {}, headers={"X-Request-Id": "after"}).status == 200
        found = [entry["requestId"] for entry in entries(client, "?limit=100")]
        assert found == ["after"] + [f"before-{i}" for i in reversed(range(40))]
        server.end()
    finally:
        server.abandon()
