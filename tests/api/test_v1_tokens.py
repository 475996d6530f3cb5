# SPDX-License-Identifier: Apache-2.0
"""Tokens: a secret for one sandbox, and nothing beyond it."""
import re

import pytest

from client import Client, Follower, Raw, check_error, check_problem, pages, until


@pytest.fixture(scope="module")
def boxes(api):
    """Two sandboxes: the one that tokens are for, and another."""
    made = [api.create(), api.create()]
    yield made
    for sandbox in made:
        sandbox.delete()


def tokens(sandbox):
    return f"/api/v1/sandboxes/{sandbox.id}/tokens"


@pytest.fixture(scope="module")
def make(api, boxes):
    def create(by=api, sandbox=boxes[0], **fields):
        answer = by.post(tokens(sandbox), fields)
        assert answer.status == 201, str(answer)
        client = Client(api.port, answer.json["token"])
        client.info = answer.json
        return client
    return create


def executions(sandbox):
    return f"/api/v1/sandboxes/{sandbox.id}/executions"


def test_a_token_is_told_once(api, boxes, make):
    token = make(name="for the browser", expiresInMs="10m")
    info = token.info
    assert re.fullmatch(r"brt_[0-9a-z]{52}", info["token"]) and info["token"].startswith(info["prefix"])
    assert (info["sandboxId"], info["scopes"], info["name"]) == (boxes[0].id, ["read", "run"], "for the browser")
    assert info["expiresAt"] > info["createdAt"]
    items, _ = pages(api, tokens(boxes[0]), 1)
    assert info["id"] in [item["id"] for item in items] and info["token"] not in str(items)
    assert info["id"] not in str(api.get("/api/v1/keys").json)  # it is no key


def test_a_token_opens_its_sandbox(boxes, make):
    token = make()
    started = token.post(executions(boxes[0]), {"command": ["echo", "hello"]})
    assert started.status in (200, 201), str(started)
    assert token.get(executions(boxes[0])).status == 200
    one = f"/api/v1/executions/{started.json['id']}"
    assert token.get(one).status == 200
    assert token.get(f"{one}/output?stream=stdout&follow=true").body == b"hello\n"


def test_a_token_runs_commands_in_its_sandbox_and_nowhere_else(boxes, make):
    token = make()
    ran = token.post("/api/v1/run", {"sandbox": boxes[0].id, "command": ["echo", "hello"]})
    assert (ran.status, ran.json["stdout"]["text"], ran.json["sandboxId"]) == (200, "hello\n", boxes[0].id)
    check_problem(token.post("/api/v1/run", {"sandbox": boxes[1].id, "command": ["true"]}), 404, "not_found")
    for elsewhere in ({}, {"runtime": "host:latest"}, {"snapshot": "some:tag"}):
        check_problem(token.post("/api/v1/run", {**elsewhere, "command": ["true"]}), 403, "forbidden", "'sandbox'")
    check_problem(make(scopes=["read"]).post("/api/v1/run", {"sandbox": boxes[0].id, "command": ["true"]}), 403, "missing_scope")


def test_a_token_opens_nothing_else(api, boxes, make):
    token = make(scopes=["read", "run", "manage"])
    other = boxes[1]
    theirs = api.post(executions(other), {"command": ["true"]}).json["id"]
    check_problem(token.get(executions(other)), 404, "not_found")
    check_problem(token.post(executions(other), {"command": ["true"]}), 404, "not_found")
    check_problem(token.get(f"/api/v1/executions/{theirs}"), 404, "not_found")
    check_problem(token.get(f"/api/v1/executions/{theirs}/output?stream=stdout"), 404, "not_found")
    for path in ("/api/v1/quotas", "/api/v1/runtimes", "/api/v1/system/info", "/api/v1/keys", "/api/v1/snapshots"):
        check_problem(token.get(path), 403, "forbidden", "one sandbox")
    # Vendors' wires know no tokens: not even for the sandbox itself.
    for path in (f"/sandbox/{boxes[0].id}", "/sandbox", f"/fs/list/{boxes[0].id}"):
        check_error(token.get(path), 403, "FORBIDDEN", "one sandbox")


def test_a_token_makes_no_tokens(boxes, make):
    token = make(scopes=["read", "run", "manage"])
    check_problem(token.post(tokens(boxes[0]), {}), 403, "forbidden", "token")
    check_problem(token.delete(f"{tokens(boxes[0])}/{token.info['id']}"), 403, "forbidden")


def test_a_token_has_its_scopes(boxes, make):
    reader = make(scopes=["read"])
    assert reader.get(executions(boxes[0])).status == 200
    check_problem(reader.post(executions(boxes[0]), {"command": ["true"]}), 403, "missing_scope", "'run'")


def test_nobody_gives_a_token_more_than_it_has(api, boxes):
    made = api.post("/api/v1/keys", {"owner": "alice", "scopes": ["read", "manage"]}).json
    alice = Client(api.port, made["key"])
    check_problem(alice.post(tokens(boxes[0]), {}), 404, "not_found")  # the sandbox is not hers
    api.patch(f"/api/v1/keys/{made['id']}", {"scopes": ["read", "manage", "organisation"]})
    check_problem(alice.post(tokens(boxes[0]), {"scopes": ["run"]}), 403, "forbidden", "'run'")
    assert alice.post(tokens(boxes[0]), {}).json["scopes"] == ["read"]
    for scopes in (["admin"], ["read", "organisation"]):
        check_problem(api.post(tokens(boxes[0]), {"scopes": scopes}), 400, "invalid_request")
    api.delete(f"/api/v1/keys/{made['id']}")


@pytest.mark.parametrize("fields, field", [({"expiresInMs": "25h"}, "expiresInMs"), ({"expiresInMs": 1}, "expiresInMs"), ({"scopes": ["fly"]}, "scopes"), ({"scopes": []}, "scopes")])
def test_what_cannot_be_a_token(api, boxes, fields, field):
    check_problem(api.post(tokens(boxes[0]), fields), 400, "invalid_request", field=field)


def test_a_revoked_token_is_refused_at_once(api, boxes, make):
    token = make()
    for _ in range(5):
        assert token.get(executions(boxes[0])).status == 200
    one = f"{tokens(boxes[0])}/{token.info['id']}"
    check_problem(api.delete(f"{tokens(boxes[1])}/{token.info['id']}"), 404, "not_found")  # it is another's
    assert api.delete(one).status == 204
    check_problem(token.get(executions(boxes[0])), 401, "unauthorized")
    check_problem(api.delete(f"{tokens(boxes[0])}/tok_00000000000000000000000000"), 404, "not_found")


def test_tokens_end_with_the_key_that_made_them(api, boxes, make):
    made = api.post("/api/v1/keys", {}).json
    key = Client(api.port, made["key"])
    token = make(by=key)
    assert token.info["createdBy"] == made["id"] and token.get(executions(boxes[0])).status == 200
    api.delete(f"/api/v1/keys/{made['id']}")
    check_problem(token.get(executions(boxes[0])), 401, "unauthorized")


def test_a_token_makes_no_snapshots(api, boxes, make):
    """They outlive the sandbox, and a name with a tag that is taken already would become another thing for everybody."""
    token = make(scopes=["read", "run", "manage"])
    check_problem(token.post(f"/api/v1/sandboxes/{boxes[0].id}/snapshots", {"name": "by-a-token"}), 403, "forbidden", "token")
    assert "by-a-token" not in str(api.get("/api/v1/snapshots").json)


def test_a_token_has_no_more_than_its_key_has_left(api, boxes, make):
    made = api.post("/api/v1/keys", {"owner": "dora", "scopes": ["read", "run", "manage", "organisation"]}).json
    token = make(by=Client(api.port, made["key"]), scopes=["read", "run"])
    path = f"/api/v1/keys/{made['id']}"
    started = token.post(executions(boxes[0]), {"command": ["true"]})
    assert started.status == 201, str(started)
    api.wait_execution(started.json["id"])
    assert api.patch(path, {"scopes": ["read", "organisation"]}).status == 200
    check_problem(token.post(executions(boxes[0]), {"command": ["true"]}), 403, "missing_scope")
    assert token.get(executions(boxes[0])).status == 200
    assert api.patch(path, {"scopes": ["read"]}).status == 200  # which is for what dora owns
    check_problem(token.get(executions(boxes[0])), 404, "not_found")
    api.delete(path)


def test_a_token_has_idempotency_keys_of_its_own(api, boxes, make):
    headers = {"Idempotency-Key": "shared-by-chance"}
    started = make().post(executions(boxes[0]), {"command": ["false"]}, headers=headers)
    assert started.status == 201, str(started)
    api.wait_execution(started.json["id"])
    again = api.post(executions(boxes[0]), {"command": ["true"]}, headers=headers)
    assert again.status == 201 and again.json["id"] != started.json["id"], str(again)
    api.wait_execution(again.json["id"])


def test_tokens_end_with_their_sandbox(api, make):
    sandbox = api.create()
    token = make(sandbox=sandbox)
    assert token.get(executions(sandbox)).status == 200
    sandbox.delete()
    until(lambda: token.get(executions(sandbox)).status == 401, "the token to end")
    check_problem(api.post(tokens(sandbox), {}), 404, "not_found")


def test_who_follows_with_a_revoked_token_is_cut_off(api, boxes, make):
    token = make()
    started = token.post(executions(boxes[0]), {"command": ["sh", "-c", "echo first; exec sleep 1000"]}).json
    path = f"/api/v1/executions/{started['id']}/output?stream=stdout&follow=true"
    raw = Raw(api.port)
    raw.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token.key}\r\n\r\n".encode())
    response = raw.response()
    assert response.status == 200
    Follower(raw, response).wait_for(b"first\n")
    api.delete(f"{tokens(boxes[0])}/{token.info['id']}")
    raw.all()  # returns when the server has closed it
    raw.close()
    api.delete(f"/api/v1/executions/{started['id']}")


def test_a_sandbox_has_so_many_tokens(api):
    sandbox = api.create()
    try:
        answers = [api.post(tokens(sandbox), {}).status for _ in range(101)]
        assert answers == [201] * 100 + [429]
    finally:
        sandbox.delete()
