# SPDX-License-Identifier: Apache-2.0
"""Keys for tools of models: what a small key may, and every way around it that there is a door for."""
import json
import re

import pytest

from client import Client, Raw, check_problem, until
from mcp import LEGACY, Mcp

KEYS = "/api/v1/keys"


@pytest.fixture
def key(api):
    """Makes keys that end with the test."""
    made = []

    def make(**fields):
        answer = api.post(KEYS, {"name": "small", "scopes": ["read", "run", "manage", "organisation"], **fields})
        assert answer.status == 201, str(answer)
        made.append(answer.json["id"])
        return answer.json
    yield make
    for id in made:
        assert api.delete(f"{KEYS}/{id}").status == 204


@pytest.fixture
def small(api, key):
    """A client with such a key."""
    def make(**fields):
        return Client(api.port, key(**fields)["key"])
    return make


def test_a_key_is_for_the_tools_it_names(api, key, small):
    made = key(tools=["run", "sandbox_output"])
    assert made["tools"] == ["sandbox_run", "sandbox_output"]
    assert api.get(f"{KEYS}/{made['id']}").json["tools"] == ["sandbox_run", "sandbox_output"]
    for mcp in (Mcp(Client(api.port, made["key"])), Mcp(Client(api.port, made["key"]), LEGACY[0])):
        assert [tool["name"] for tool in mcp.ask("tools/list")["tools"]] == ["sandbox_run", "sandbox_output"]
        ran = mcp.tool("sandbox_run", script="seq 1 9000")
        assert ran["exitCode"] == 0 and mcp.tool("sandbox_output", execution=ran["execution"], offset=20000)["text"]
        for name in ("sandbox_list", "sandbox_create", "sandbox_exec", "sandbox_destroy", "sandbox_network", "sandbox_read_file"):
            answer = mcp.send(mcp.message("tools/call", name=name, arguments={}))
            assert answer.json["error"]["code"] == -32602, name  # as if there were none
        assert mcp.ask("resources/list")["resources"] == []
        assert {entry["name"] for entry in mcp.ask("resources/templates/list")["resourceTemplates"]} == {"stdout", "stderr"}


def test_resources_are_no_way_around(api, small):
    whole = Mcp(api)
    id = whole.tool("sandbox_create")["id"]
    try:
        whole.tool("sandbox_write_files", sandbox=id, files=[{"path": "secret", "content": "x"}])
        mcp = Mcp(small(tools=["list", "run"]))
        assert any(entry["uri"].endswith(id) for entry in mcp.ask("resources/list")["resources"])
        for uri in (f"burrow://sandboxes/{id}", f"burrow://sandboxes/{id}/files/workspace/secret"):
            assert mcp.send(mcp.message("resources/read", uri=uri)).json["error"]["code"] == -32602
        # nor are arguments that the tool does not have
        assert "sandbox" in mcp.refused("sandbox_run", sandbox=id, script="cat secret")
    finally:
        whole.tool("sandbox_destroy", sandbox=id)


def paths_of(api):
    for place in ("/openapi.json", "/api/v1/openapi.json"):
        for path, operations in api.get(place).json["paths"].items():
            for method, operation in operations.items():
                if method in ("get", "post", "put", "patch", "delete") and operation.get("security", [{}]) != []:
                    yield method.upper(), path


def test_a_small_key_opens_no_other_door(api, small):
    """Every route of every protocol that takes a key, and the forms in which one can be sent."""
    client, tried = small(tools=["list"]), 0
    for method, path in paths_of(api):
        if "{" in path.split("/")[1] or path in ("/", "/health", "/healthz", "/metrics"):
            continue
        place = re.sub(r"\{[^}]*\}", "sbx_" + "0" * 26, path)
        with_key = client.call(method, place, body=b"{}" if method in ("POST", "PUT", "PATCH") else None,
                               headers={"Content-Type": "application/json"}, may_fail=True)
        if with_key.status == 403 and b"tools of MCP alone" in with_key.body:
            tried += 1
            continue
        without = client.call(method, place, headers={"Content-Type": "application/json"}, key=None, may_fail=True)
        assert with_key.status == without.status, f"{method} {path}: {with_key}"  # open to everybody anyway
    assert tried > 80, tried
    for headers in ({"X-Api-Key": client.key}, {"Authorization": f"Bearer {client.key}"}):
        answer = client.call("GET", "/api/v1/sandboxes", headers=headers, key=None)
        check_problem(answer, 403, "forbidden", "/mcp")
        assert client.call("GET", "/v2/sandboxes", headers=headers, key=None).status in (401, 403)
        assert client.call("POST", "/sandbox", json={}, headers=headers, key=None).status == 403
        assert client.call("POST", "/v1/memory/sandbox/sessions", json={"profile": "default"}, headers=headers, key=None).status in (401, 403)


def test_a_small_key_cannot_make_a_larger_one_or_a_token(api, small):
    client = small(tools=["list", "get"])
    check_problem(client.post(KEYS, {"name": "larger"}), 403, "forbidden")
    check_problem(client.post("/api/v1/sandboxes/x/tokens", {}), 403, "forbidden")
    check_problem(client.get("/api/v1/keys"), 403, "forbidden")


def test_a_narrowed_key_is_narrow_at_once_and_can_be_widened(api, key):
    made = key()
    assert "tools" not in made
    client = Client(api.port, made["key"])
    assert client.get("/api/v1/sandboxes").status == 200
    assert api.patch(f"{KEYS}/{made['id']}", {"tools": ["list"]}).json["tools"] == ["sandbox_list"]
    check_problem(client.get("/api/v1/sandboxes"), 403, "forbidden", "/mcp")
    assert Mcp(client).tool("sandbox_list")["items"] is not None
    assert "tools" not in api.patch(f"{KEYS}/{made['id']}", {"tools": []}).json
    assert client.get("/api/v1/sandboxes").status == 200


def send_batch(api, key, *calls):
    """Several calls in one body, which are answered one after the other; gives the connection."""
    body = json.dumps([{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
                       for id, (name, arguments) in enumerate(calls)])
    return Raw(api.port).send((f"POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
                               f"Content-Length: {len(body)}\r\n\r\n{body}").encode())


@pytest.mark.parametrize("change", ({"tools": ["exec"]}, {"runtimes": ["host:latest"]}, {"network": False}, {"quotas": {"sandboxes": 1}},
                                    {"scopes": ["read", "organisation"]}, None), ids=str)
def test_what_a_key_may_no_more_a_request_that_waits_may_not_either(api, key, change):
    """Also where it is the first thing that the key was ever used for: then its connection was not known for the key's."""
    box = Mcp(api).tool("sandbox_create")["id"]
    made = key(tools=["exec", "run"]) if change else api.post(KEYS, {"name": "small", "tools": ["exec", "run"], "scopes": ["read", "run", "organisation"]}).json
    label = made["id"][-8:]
    try:
        began = f"/api/v1/sandboxes/{box}/files/stat?path=/workspace/{label}"
        with send_batch(api, made["key"], ("sandbox_exec", {"sandbox": box, "script": f"touch {label}; sleep 600", "waitMs": 120000}),
                        ("sandbox_run", {"command": ["true"], "labels": {"narrow": label}})) as raw:
            until(lambda: api.get(began).status == 200, "the first command runs")
            place = f"{KEYS}/{made['id']}"
            assert (api.patch(place, change) if change else api.delete(place)).status in (200, 204)
            assert raw.reader.read() == b""  # cut off, long before anything is answered
        Mcp(api).tool("sandbox_destroy", sandbox=box)  # the command is over, and the second call would come
        assert api.get(f"/api/v1/sandboxes?selector=narrow%3D{label}").json["items"] == []
    finally:
        api.delete(f"/api/v1/sandboxes/{box}")


def test_tools_that_there_are_not_make_no_key(api):
    check_problem(api.post(KEYS, {"tools": ["run", "shell"]}), 400, "invalid_request", "shell", "run_code", field="tools")


def test_runtimes_limits_and_networks_of_a_small_key_hold_in_tools(api, small):
    mcp = Mcp(small(tools=["run", "create", "destroy", "network", "fork"], runtimes=["base:latest"], networkAllow=["example.com:443"],
                    quotas={"sandboxes": 1, "memoryBytes": "256Mi"}))
    assert "runtime 'host:latest'" in mcp.refused("sandbox_run", script="true", runtime="host:latest")
    for network in ({"enabled": True}, {"allow": ["example.org"]}, {"allow": ["example.com:443", "*"]}, {"allow": ["example.com"]},
                    {"allow": ["example.com:443"], "default": "allow"}, {"allow": ["example.com:443"], "observe": True}):
        text = mcp.refused("sandbox_create", runtime="base:latest", network=network)
        assert "your key is" in text and "ask the person" in text, text
    assert "quota_exceeded" in mcp.refused("sandbox_create", runtime="base:latest", limits={"memoryBytes": "1Gi"})
    made = mcp.ask("tools/call", name="sandbox_create", arguments={"runtime": "base:latest", "limits": {"memoryBytes": "64Mi"},
                                                                   "network": {"allow": ["Example.com:443"]}})
    if made["isError"]:  # of a machine without networks: then one without
        made = mcp.ask("tools/call", name="sandbox_create", arguments={"runtime": "base:latest", "limits": {"memoryBytes": "64Mi"}})
    id = made["structuredContent"]["id"]
    try:
        assert "quota_exceeded" in mcp.refused("sandbox_run", script="true", runtime="base:latest")
        for policy in ({"enabled": True, "default": "allow"}, {"enabled": True, "allow": ["10.0.0.0/8"]}, {"enabled": True, "observe": True}):
            assert "your key is" in mcp.refused("sandbox_network", sandbox=id, action="set", policy=policy)
            assert "your key is" in mcp.refused("sandbox_fork", sandbox=id, network=policy)
    finally:
        mcp.tool("sandbox_destroy", sandbox=id)


def test_networks_of_a_key_hold_in_every_protocol(api, key):
    made = key(networkAllow=["example.com:443"])
    client = Client(api.port, made["key"])
    check_problem(client.post("/api/v1/sandboxes", {"network": {"enabled": True}}), 403, "forbidden", "your key is")
    check_problem(client.post("/api/v1/run", {"command": ["true"], "network": {"allow": ["example.org"]}}), 403, "forbidden", "example.org")
    assert client.post("/sandbox", {"network": {"enabled": True}}).status == 403
    none = key(network=False)
    check_problem(Client(api.port, none["key"]).post("/api/v1/sandboxes", {"network": {"allow": ["example.com:443"]}}), 403, "forbidden")
