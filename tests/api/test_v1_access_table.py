# SPDX-License-Identifier: Apache-2.0
"""Who may what, from the documents that the server makes of its own tables: every route with every scope and every owner, by real keys."""
import http.client
import re

import pytest

from client import PATIENCE, Answer, Client

METHODS = ("get", "put", "post", "delete", "patch")
SCOPES = ("read", "run", "manage", "admin")
NOBODYS = "0" * 26
PREFIXES = {"sandbox": "sbx_", "execution": "exe_", "snapshot": "snp_", "key": "key_", "token": "tok_", "webhook": "whk_", "delivery": "dlv_",
            "checkpoint": "ckpt_", "context": "ctx_"}


def operations(api):
    """(method, path, needed scope) of all that ask for a key, of our own and the vendors' wires."""
    for document in ("/api/v1/openapi.json", "/openapi.json"):
        for path, item in api.get(document, key=None).json["paths"].items():
            for method in METHODS:
                if method in item and item[method].get("security") != []:
                    yield method.upper(), path, item[method].get("x-required-scope")


def fill(path, **values):
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], PREFIXES.get(found[1], "") + NOBODYS), path)


@pytest.fixture(scope="module")
def table(api):
    return list(operations(api))


@pytest.fixture(scope="module")
def keys(api):
    """A key for each set of scopes that matters, of an owner who has nothing."""
    made = {}
    for scopes in [(scope,) for scope in SCOPES] + [tuple(other for other in SCOPES if other != scope) for scope in SCOPES]:
        answer = api.post("/api/v1/keys", {"owner": "nobody-in-particular", "scopes": list(scopes)})
        assert answer.status == 201, str(answer)
        made[scopes] = (Client(api.port, answer.json["key"]), answer.json["id"])
    yield {scopes: client for scopes, (client, _) in made.items()}
    for _, id in made.values():
        api.delete(f"/api/v1/keys/{id}")


def is_scope_refusal(answer):
    if answer.status != 403:
        return False
    text = answer.body.decode()
    return "this needs a key with scope" in text


def begin(client, method, path, body=None):
    """The answer as far as it comes at once: some go on for as long as one listens. Failures are read whole."""
    headers = {"Authorization": f"Bearer {client.key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(client.host, client.port, timeout=PATIENCE)
    try:
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        return Answer(response.status, response.getheaders(), response.read() if response.status >= 400 else b"")
    finally:
        connection.close()


def ask(client, method, path):
    """With a body that no route takes, so that nothing happens where it is let in."""
    return begin(client, method, path, None if method == "GET" else b"[]")


def ask_for(client, method, path):
    return begin(client, method, path, b"{}" if method in ("POST", "PATCH") else None)


def test_every_route_names_a_scope(table):
    assert len(table) > 60
    assert not [row for row in table if row[2] not in SCOPES]


def test_reading_changes_nothing_and_only_administrators_manage_keys(table):
    """The table itself makes sense."""
    for method, path, scope in table:
        if path.startswith("/api/v1/"):
            assert method != "GET" or scope != "run" or path.endswith(("/attach", "/ssh")), (method, path, scope)  # which also writes
            assert method == "GET" or scope != "read" or path.endswith(("/glob", "/grep")), (method, path, scope)
        if re.match(r"/api/v1/(keys|audit)", path) or (method, path) == ("PATCH", "/api/v1/organisation"):
            assert scope == "admin", (method, path, scope)


def test_each_scope_opens_its_routes_and_no_others(table, keys):
    """route x scope: one key with the scope alone is let in, one with all others is not."""
    wrong = []
    for method, path, scope in table:
        target = fill(path)
        for scopes, client in keys.items():
            answer = ask(client, method, target)
            if is_scope_refusal(answer) == (scope in scopes):
                wrong.append(f"{method} {path} needs {scope}, with {'+'.join(scopes)}: {answer}")
    assert not wrong, "\n".join(wrong[:20])


# ---- route x owner ----

@pytest.fixture(scope="module")
def owned(api):
    """One of everything, alice's; and keys of hers, of another's, and of the whole organisation."""
    made = {name: api.post("/api/v1/keys", {"owner": name}).json for name in ("alice", "bob")}
    made["all"] = api.post("/api/v1/keys", {}).json
    clients = {name: Client(api.port, info["key"]) for name, info in made.items()}
    alice = clients["alice"]
    sandbox = alice.create()
    ran = sandbox.sh("echo hello > file; echo hello")
    values = {"sandbox": sandbox.id, "execution": ran.started["executionId"], "id": sandbox.id, "executionId": ran.started["executionId"]}
    values["snapshot"] = values["snapshotId"] = alice.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "hers"}).data["snapshotId"]
    values["token"] = alice.post(f"/api/v1/sandboxes/{sandbox.id}/tokens", {}).json["id"]
    yield clients, values
    sandbox.delete()
    alice.delete(f"/sandbox/snapshots/{values['snapshot']}")
    for info in made.values():
        api.delete(f"/api/v1/keys/{info['id']}")


ENDLESS = {"/api/v1/sandboxes/{sandbox}/files/watch"}  # answers as long as somebody listens
QUERIES = {"/api/v1/sandboxes/{sandbox}/files": "?path=file", "/fs/{id}": "?path=file", "/api/v1/sandboxes/{sandbox}/wait": "?timeoutMs=1",
           "/api/v1/executions/{execution}/output": "?stream=stdout"}


def test_what_is_anothers_is_not_there(table, owned):
    """route x owner, for what names one thing: the owner and the organisation get it, another gets 404."""
    clients, values = owned
    seen = {}
    for method, path, scope in table:
        names = re.findall(r"\{(\w+)\}", path)
        if not names or not set(names) <= set(values) or scope == "admin" or method == "DELETE":
            continue
        target = fill(path, **values) + QUERIES.get(path, "")
        bobs = ask_for(clients["bob"], method, target)
        assert bobs.status in (400, 404, 405, 415, 422, 426), f"{method} {path} for another: {bobs}"
        seen[method, path] = bobs.status
        if method == "GET" and bobs.status == 404 and path not in ENDLESS:
            for name in ("alice", "all"):
                answer = ask_for(clients[name], method, target)
                assert answer.status not in (401, 403, 404), f"{method} {path} for {name}: {answer}"
    assert sum(status == 404 for status in seen.values()) >= 15, seen


@pytest.mark.parametrize("path", ["/api/v1/sandboxes", "/api/v1/executions", "/api/v1/snapshots", "/api/v1/events?sandboxId={sandbox}", "/sandbox", "/sandbox/snapshots",
                                  "/cli/sandbox"])
def test_lists_show_what_is_ones_own(owned, path):
    clients, values = owned
    answers = {name: client.get(fill(path, **values)) for name, client in clients.items()}
    assert answers["alice"].status == 200, str(answers["alice"])
    for name, has_it in (("alice", True), ("all", True), ("bob", False)):
        text = answers[name].body.decode()
        assert any(values[noun] in text for noun in ("sandbox", "execution", "snapshot")) == has_it, f"{path} for {name}: {text[:500]}"


def test_nothing_of_anothers_can_be_ended(table, owned):
    clients, values = owned
    for method, path, scope in table:
        names = re.findall(r"\{(\w+)\}", path)
        if method == "DELETE" and names and set(names) <= set(values) and scope != "admin":
            answer = ask_for(clients["bob"], method, fill(path, **values) + QUERIES.get(path, ""))
            assert answer.status in (400, 404), f"{path}: {answer}"
    assert clients["alice"].get(f"/sandbox/{values['sandbox']}").data["status"] in ("idle", "running")


# ---- route x token ----

def test_a_token_opens_paths_of_its_sandbox_alone(api, table, owned):
    clients, values = owned
    made = clients["alice"].post(f"/api/v1/sandboxes/{values['sandbox']}/tokens", {"scopes": ["read", "run", "manage"]}).json
    token = Client(api.port, made["token"])
    other = clients["alice"].create()
    try:
        for method, path, scope in table:
            if path.startswith("/api/v1/") and ("{sandbox}" in path or "{execution}" in path) or path == "/api/v1/run":
                continue  # a run names its sandbox in the body: test_v1_tokens.py
            answer = ask(token, method, fill(path, **values))
            assert answer.status == 403 and b"a token is for one sandbox" in answer.body, f"{method} {path}: {answer}"
        for method, path, scope in table:
            if not path.startswith("/api/v1/sandboxes/{sandbox}") or scope == "admin":
                continue
            target = fill(path, **{**values, "sandbox": other.id}) + QUERIES.get(path, "")
            answer = ask_for(token, method, target)
            assert answer.status in (400, 403, 404, 405, 415, 422, 426), f"{method} {path}: {answer}"
            assert answer.status != 400 or b"unknown_field" in answer.body or b"invalid_request" in answer.body, f"{method} {path}: {answer}"
    finally:
        other.delete()
