# SPDX-License-Identifier: Apache-2.0
"""Ports of sandboxes over E2B's protocol: by its two headers and by hosts, private ones, and sandboxes that requests wake."""
import pytest

import e2b as protocol
from client import Client, Raw, until
from ports import PORT, SOURCE, WebSocket


@pytest.fixture(scope="module")
def e2b(server):
    return protocol.E2b(server.port, server.key)


@pytest.fixture
def new(e2b):
    made = []

    def create(**fields):
        made.append(e2b.create(timeout=3600, allow_internet_access=False, **fields))
        return made[-1]
    yield create
    for sandbox in made:
        sandbox.kill()


@pytest.fixture(scope="module")
def site(e2b):
    sandbox = e2b.create(timeout=3600, allow_internet_access=False)
    serve(sandbox)
    yield sandbox
    sandbox.kill()


def serve(sandbox):
    answer = sandbox.http("POST", "/files?path=inner_server.py", {"Content-Type": "application/octet-stream"}, body=SOURCE.encode())
    assert answer.status == 200, str(answer)
    sandbox.start(f"exec python3 inner_server.py {PORT} 127.0.0.1").stream.close()
    check = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {PORT}), 5)'"
    until(lambda: sandbox.run(check).end["exitCode"] == 0, "the server in the sandbox to listen")


def ask(sandbox, path="/echo", port=PORT, method="GET", **headers):
    """By the two headers, without anything else."""
    named = {"E2b-Sandbox-Id": sandbox.id, "E2b-Sandbox-Port": str(port), **{k.replace("_", "-"): v for k, v in headers.items()}}
    return sandbox.e2b.call(method, path, headers=named, key=None, may_fail=True)


def seen(answer):
    assert answer.status == 200, str(answer)
    return {name.lower(): value for name, value in answer.json["headers"]}


def check_closed(answer, sandbox, port, status=502):
    assert answer.status == status and answer.json["code"] == status, str(answer)
    assert answer.json["sandboxId"] == sandbox.id and answer.json["port"] == port and answer.json["message"]


def test_any_port_is_reached_by_headers_and_by_host(server, site):
    assert seen(ask(site))["host"] == f"localhost:{PORT}"
    # Their envd has routes of these names: another port is not asked for them.
    for path in ("/files?path=/etc/passwd", "/health", "/v2/sandboxes", "/api/v1/sandboxes"):
        assert ask(site, path).json["path"] == path
    with Raw(server.port) as connection:
        for host in (f"{PORT}-{site.id}.example.com", f"{PORT}-{site.id}.localhost:80"):
            connection.send(f"GET /echo HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert seen(connection.answer())["x-forwarded-host"] == host
        # The same connection asks the API, envd, and the port again.
        connection.send(b"GET /api/v1/sandboxes HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.answer().status == 401
        connection.send(f"GET /health HTTP/1.1\r\nHost: 49983-{site.id}.example.com\r\nX-Access-Token: {site.token}\r\n\r\n".encode())
        assert connection.answer().status == 204
        connection.send(f"GET /echo HTTP/1.1\r\nHost: x\r\nE2B-SANDBOX-ID: {site.id}\r\nE2B-SANDBOX-PORT:{PORT}\r\n\r\n".encode())
        assert seen(connection.answer())["host"] == f"localhost:{PORT}"


def test_websockets_are_passed_on(server, site):
    socket = WebSocket(f"http://127.0.0.1:{server.port}", headers=f"E2b-Sandbox-Id: {site.id}\r\nE2b-Sandbox-Port: {PORT}\r\n")
    assert socket.response.status == 101
    socket.send(b"hello")
    assert socket.receive() == (2, b"hello")
    socket.close()


def test_a_port_in_which_nothing_listens_and_a_sandbox_that_is_gone_are_502(e2b, new, site):
    check_closed(ask(site, port=4000), site, 4000)
    check_closed(ask(site, port=80), site, 80)
    gone = new()
    gone.kill()
    check_closed(ask(gone), gone, PORT)
    for id in ("0" * 26, "nonsense", "../../etc", '"}'):
        answer = e2b.call("GET", "/", headers={"E2b-Sandbox-Id": id, "E2b-Sandbox-Port": "3000"}, key=None, may_fail=True)
        assert answer.status == 502 and answer.json["code"] == 502, (id, str(answer))
    for port in ("0", "65536", "-1", "3000x", "99999999999999999999", ""):
        assert ask(site, port=port).status == 400, port


# ---- private ports ----

def test_private_ports_open_for_their_own_token_alone(e2b, new, site):
    private = new(network={"allowPublicTraffic": False})
    other = new(network={"allowPublicTraffic": False})
    token = private.told["trafficAccessToken"]
    serve(private)
    assert site.told["trafficAccessToken"] is None and token and token != other.told["trafficAccessToken"]
    wrong = [other.told["trafficAccessToken"], private.token, private.token[26:], e2b.key, "", "x", token[:-1], token + "0", token.upper() + " ",
             token[:-1] + ("0" if token[-1] != "0" else "1"), "A" * 4000]
    refused = [ask(private)] + [ask(private, E2b_Traffic_Access_Token=word) for word in wrong]
    refused += [ask(private, X_Burrow_Port_Token=token), ask(private, X_Access_Token=private.token), ask(private, X_API_KEY=e2b.key),
                ask(private, Authorization=f"Bearer {e2b.key}"), ask(private, port=4000)]
    for answer in refused:
        assert answer.status == 403 and answer.json["code"] == 403 and token not in str(answer), str(answer)
    told = seen(ask(private, E2b_Traffic_Access_Token=token))
    assert token not in str(told), "the servers in the sandbox do not see it"
    check_closed(ask(private, port=4000, E2b_Traffic_Access_Token=token), private, 4000)
    # It opens these ports alone.
    assert private.http("GET", "/envs", {"X-Access-Token": token}).status == 401
    assert ask(other, E2b_Traffic_Access_Token=token).status == 403
    # Forks are as private as what they were made of, with a token of their own.
    fork = e2b.post(f"/sandboxes/{private.id}/fork", {"timeout": 600}).json[0]["sandbox"]
    twin = protocol.Sandbox(e2b, fork)
    try:
        assert ask(twin).status == 403 and ask(twin, E2b_Traffic_Access_Token=token).status == 403
        check_closed(ask(twin, E2b_Traffic_Access_Token=fork["trafficAccessToken"]), twin, PORT)
    finally:
        twin.kill()
    # What was private is opened, and shut again.
    assert e2b.put(f"/sandboxes/{private.id}/network", json={"allow_internet_access": False, "allowPublicTraffic": True}).status == 204
    assert ask(private).status == 200
    assert e2b.put(f"/sandboxes/{private.id}/network", json={"allow_internet_access": False, "allowPublicTraffic": False}).status == 204
    assert ask(private).status == 403 and ask(private, E2b_Traffic_Access_Token=token).status == 200


def test_the_token_of_the_traffic_is_the_sandboxes_and_no_keys(api):
    key = api.post("/api/v1/keys", {"scopes": ["read", "run", "manage", "organisation"]}).json
    private = protocol.E2b(api.port, key["key"]).create(timeout=3600, network={"allowPublicTraffic": False})
    path = f"/api/v1/sandboxes/sbx_{private.id}"

    def ended():
        return {one["port"] for one in api.get(f"{path}/ports").json["items"] if one.get("tokenExpiresAt")}

    try:
        made = Client(api.port, key["key"]).post(f"{path}/ports", {"port": PORT, "private": True})
        assert made.status in (200, 201), str(made)
        assert api.delete(f"/api/v1/keys/{key['id']}").status == 204
        until(ended, "the token that the key made to end")
        assert ended() == {PORT}
    finally:
        api.delete(path)


def test_ports_of_others_are_not_opened_by_the_headers(api, e2b):
    """A sandbox of another protocol that exposes nothing, and one private port."""
    sandbox = api.create()
    id = sandbox.id.removeprefix("sbx_")
    named = {"E2b-Sandbox-Id": id, "E2b-Sandbox-Port": "3000"}
    try:
        assert e2b.call("GET", "/", headers=named, key=None, may_fail=True).status == 502
        made = api.post(f"/api/v1/sandboxes/{sandbox.id}/ports", {"port": 3000, "private": True}).json
        assert e2b.call("GET", "/", headers=named, key=None, may_fail=True).status == 403
        opened = e2b.call("GET", "/", headers={**named, "X-Burrow-Port-Token": made["token"]}, key=None, may_fail=True)
        assert opened.status == 502 and "port is not open" in opened.json["message"]
    finally:
        sandbox.delete()


def test_the_host_that_servers_see_is_asked_for(e2b, new):
    sandbox = new(network={"maskRequestHost": "app-${PORT}.example.com:${PORT}"})
    serve(sandbox)
    assert seen(ask(sandbox))["host"] == f"app-{PORT}.example.com:{PORT}"
    for bad in ("a\r\nX-Evil: 1", "a b", "a/b", "é", "a\n", "x" * 256):
        answer = e2b.post("/v2/sandboxes", {"templateID": "base", "network": {"maskRequestHost": bad}})
        assert answer.status == 400 and answer.json["code"] == 400, (bad, str(answer))


# ---- waking ----

def test_requests_wake_a_sandbox_that_resumes_and_no_other(e2b, new):
    waking = new(autoPause=True, autoResume={"enabled": True})
    serve(waking)
    assert e2b.post(f"/sandboxes/{waking.id}/pause").status == 204
    assert e2b.get(f"/sandboxes/{waking.id}").json["state"] == "paused"
    assert ask(waking).status == 200
    told = e2b.get(f"/sandboxes/{waking.id}").json
    assert told["state"] == "running" and told["endAt"] > told["startedAt"]
    still = new(autoPause=True)
    assert e2b.post(f"/sandboxes/{still.id}/pause").status == 204
    check_closed(ask(still), still, PORT)
    assert e2b.get(f"/sandboxes/{still.id}").json["state"] == "paused"
    # Whoever may not enter wakes nobody.
    private = new(autoPause=True, autoResume={"enabled": True}, network={"allowPublicTraffic": False})
    assert e2b.post(f"/sandboxes/{private.id}/pause").status == 204
    assert ask(private).status == 403
    assert e2b.get(f"/sandboxes/{private.id}").json["state"] == "paused"
