# SPDX-License-Identifier: Apache-2.0
"""Ports of sandboxes that are reached from outside, by ports of this machine."""
import hashlib
import json
import os
import subprocess
import sys
import time

import pytest
import server as servers
from client import PATIENCE, Client, Raw, check_error, check_problem, together, until
from ports import PORT, WebSocket, fetch, is_reached, own_range, place, raw, serve, with_server

TOP = "/api/v1"
MIB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("ports") / "data", options=["--port-range", own_range()])
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(scope="module")
def api(server):
    return server.client


@pytest.fixture(scope="module")
def web(api):
    """The address of a server in a sandbox, for tests that leave it as it was."""
    sandbox = with_server(api.create)
    yield sandbox.made["url"]
    sandbox.delete()


def ports_path(sandbox, port=None):
    return f"{TOP}/sandboxes/{sandbox.id}/ports" + (f"/{port}" if port is not None else "")


def expose(sandbox, **fields):
    answer = sandbox.client.post(ports_path(sandbox), fields)
    assert answer.status == 201, str(answer)
    return answer.json


def headers_of(answer):
    return {name.lower(): value for name, value in answer.json["headers"]}


# ---- addresses ----

def test_a_port_has_an_address_that_a_plain_fetch_reaches(api, new):
    sandbox = with_server(new)
    url = sandbox.made["url"]
    assert url.startswith("http://127.0.0.1:"), url
    told = sandbox.get()
    assert told["url"] == url and told["networkPort"] == PORT and told["networkEnabled"] is False
    listed = {entry["sandboxId"]: entry for entry in api.get("/sandbox?limit=100").data["sandboxes"]}
    assert listed[sandbox.id]["url"] == url
    answer = fetch(url, "/some/path?q=1")
    assert answer.status == 200 and answer.json["path"] == "/some/path?q=1"


@pytest.mark.parametrize("port", [0, 80, 1023, 65536, -1, "3000", 3000.5])
def test_only_high_ports_are_exposed(api, port):
    answer = api.post("/sandbox", {"network": {"port": port}})
    if port == 0:
        assert answer.status == 400 or "url" not in answer.data, str(answer)
        if answer.status < 300:
            api.delete(f"/sandbox/{answer.data['sandboxId']}")
        return
    check_error(answer, 400, "INVALID_ARGUMENT")


def test_a_sandbox_without_a_port_has_no_address(sandbox):
    assert "url" not in sandbox.made and "url" not in sandbox.get() and "networkPort" not in sandbox.get()


def test_there_is_no_way_out(new):
    sandbox = with_server(new)
    # Only its own loopback is there.
    assert sandbox.output("cat /proc/net/dev | tail -n +3 | cut -d: -f1").split() == ["lo"]


def test_a_server_on_the_other_loopback_is_found(new):
    sandbox = new(network={"port": 4000}, timeout={"idle": "1h"})
    serve(sandbox, 4000, "::1")
    assert fetch(sandbox.made["url"]).status == 200


def test_ports_come_and_go_on_a_living_sandbox(api, new):
    sandbox = new()
    serve(sandbox)
    assert api.get(ports_path(sandbox)).json == {"items": []}
    made = expose(sandbox, port=PORT)
    assert made["port"] == PORT and made["protocol"] == "http" and made["private"] is False and "token" not in made
    assert made["url"] == f"http://127.0.0.1:{made['hostPort']}"
    assert api.get(ports_path(sandbox)).json["items"] == [made]
    assert fetch(made["url"]).status == 200
    assert expose(sandbox, port=PORT) == made  # it is exposed already
    assert api.delete(ports_path(sandbox, PORT)).status == 204
    assert not is_reached(made["url"])
    check_problem(api.delete(ports_path(sandbox, PORT)), 404, "not_found")
    assert api.get(ports_path(sandbox)).json == {"items": []}


def test_ports_at_create(api):
    answer = api.post(f"{TOP}/sandboxes", {"ports": [{"port": 3000}, {"port": 3001, "private": True}, {"port": 5432, "protocol": "tcp"}]})
    assert answer.status == 201, str(answer)
    try:
        told = answer.json["ports"]
        assert [port["port"] for port in told] == [3000, 3001, 5432]
        assert told[1]["token"] and told[2]["url"].startswith("tcp://")
        listed = api.get(f"{TOP}/sandboxes/{answer.json['id']}/ports").json["items"]
        assert [{**port, "token": None} for port in listed] == [{**port, "token": None} for port in told]
        assert all("token" not in port for port in listed)  # told once
    finally:
        api.delete(f"{TOP}/sandboxes/{answer.json['id']}")


@pytest.mark.parametrize("body, field", [
    ({"port": 80}, "port"), ({}, "port"), ({"port": 70000}, "port"), ({"port": "x"}, "port"),
    ({"port": 3000, "protocol": "udp"}, "protocol"),
    ({"port": 3000, "protocol": "tcp", "private": True}, "private"),
    ({"all": True, "protocol": "tcp"}, "protocol"), ({"all": True}, "--preview-domain"),
    ({"port": 3000, "expiresInMs": 1000}, "expiresInMs"),
    ({"port": 3000, "private": True, "expiresInMs": -1}, "expiresInMs"),
    ({"port": 3000, "ports": 1}, "ports"),
])
def test_what_cannot_be_exposed_is_said(api, shared_v1, body, field):
    answer = api.post(f"{TOP}/sandboxes/{shared_v1}/ports", body)
    assert answer.status == 400, str(answer)
    assert field in json.dumps(answer.json), answer.json


@pytest.fixture(scope="module")
def shared_v1(api):
    id = api.post(f"{TOP}/sandboxes", {}).json["id"]
    yield id
    api.delete(f"{TOP}/sandboxes/{id}")


def test_another_protocol_is_another_matter(api, sandbox):
    expose(sandbox, port=PORT)
    check_problem(api.post(ports_path(sandbox), {"port": PORT, "protocol": "tcp"}), 409, "already_exists")


def test_a_sandbox_has_so_many(api, sandbox):
    for port in range(3000, 3032):
        expose(sandbox, port=port)
    check_problem(api.post(ports_path(sandbox), {"port": 3032}), 429, "limit_reached")


# ---- what is passed on ----

def test_the_server_sees_the_host_it_expects(web):
    _, port = place(web)
    told = headers_of(fetch(web, headers={"X-Mine": "1", "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}))
    assert told["host"] == f"localhost:{PORT}"
    assert told["x-forwarded-host"] == f"127.0.0.1:{port}"
    assert told["x-forwarded-for"] == "192.0.2.1, 127.0.0.1" and told["x-forwarded-proto"] == "http"
    assert told["x-mine"] == "1"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_methods_and_bodies_arrive(web, method):
    answer = fetch(web, "/echo", method, body=b"a body" if method in ("POST", "PUT", "PATCH") else None)
    assert answer.json["method"] == method
    assert answer.json["body"] == ("a body" if method in ("POST", "PUT", "PATCH") else "")


def test_head_has_no_body(web):
    answer = fetch(web, "/echo", "HEAD")
    assert answer.status == 200 and answer.body == b"" and int(answer.headers["content-length"]) > 0


def test_chunks_go_both_ways(web):
    pieces = [b"x" * 10, b"y" * 100000, b"z"]
    answer = fetch(web, "/count", "POST", body=iter(pieces))
    assert json.loads(answer.body) == {"bytes": 100011, "sha256": hashlib.sha256(b"".join(pieces)).hexdigest()}
    answer = fetch(web, "/chunked")
    assert answer.body == b"one" + b"two" * 5000 + b"three" and answer.headers["transfer-encoding"] == "chunked"


def test_an_answer_may_end_with_its_connection(web):
    assert fetch(web, "/until-close").body == b"to the end"


def test_what_is_between_hops_stays_there(web):
    answer = fetch(web, "/hop")
    assert "x-hop" not in answer.headers and "keep-alive" not in answer.headers and answer.headers["x-stays"] == "1"
    with raw(web) as connection:
        connection.send(b"GET /echo HTTP/1.1\r\nHost: x\r\nConnection: X-Secret, close\r\nX-Secret: 1\r\nTE: trailers\r\nProxy-Authorization: x\r\nX-Kept: 1\r\n\r\n")
        told = headers_of(connection.answer())
    assert told["x-kept"] == "1" and not {"x-secret", "te", "proxy-authorization", "connection"} & told.keys()


def test_a_connection_is_kept_and_so_is_the_servers(web):
    with raw(web) as connection:
        peers = set()
        for _ in range(5):
            connection.send(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
            peers.add(connection.answer().json["peer"])
        assert len(peers) == 1
        # Behind an answer that ends with its connection there is another.
        for path in ("/until-close", "/echo"):
            connection.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert connection.answer().status == 200


def test_requests_that_come_together_are_answered_in_order(web):
    with raw(web) as connection:
        connection.send(b"".join(b"POST /echo?%d HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n%03d" % (i, i) for i in range(50)))
        for i in range(50):
            told = connection.answer().json
            assert told["path"] == f"/echo?{i}" and told["body"] == f"{i:03}"


def test_old_clients_are_answered_in_their_way(web):
    with raw(web) as connection:
        connection.send(b"GET /chunked HTTP/1.0\r\n\r\n")
        answer = connection.all()
    assert b"transfer-encoding" not in answer.lower() and answer.endswith(b"three")


def test_an_expectation_is_met(web):
    with raw(web) as connection:
        connection.send(b"POST /count HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert connection.reader.readline() == b"HTTP/1.1 100 Continue\r\n" and connection.reader.readline() == b"\r\n"
        connection.send(b"hello")
        assert json.loads(connection.answer().body)["bytes"] == 5


def test_answers_on_their_way_only_are_passed_over(web):
    assert fetch(web, "/hints").body == b"ok"


def test_a_client_that_sends_no_more_is_answered(web):
    with raw(web) as connection:
        connection.send(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.half_close()
        assert connection.answer().status == 200


def test_an_early_answer_reaches_its_client(web):
    with raw(web) as connection:
        connection.send(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
        connection.send_if_open(b"x" * 1000)
        assert connection.answer().status == 413


@pytest.mark.parametrize("size", [64 * MIB])
def test_large_bodies_go_both_ways(web, size):
    block = b"u" * MIB
    answer = fetch(web, "/count", "POST", body=(block for _ in range(size // MIB)))
    digest = hashlib.sha256()
    for _ in range(size // MIB):
        digest.update(block)
    assert json.loads(answer.body) == {"bytes": size, "sha256": digest.hexdigest()}
    answer = fetch(web, f"/big?bytes={size}")
    assert len(answer.body) == size and answer.body.count(b"b") == size


def memory_of(pid):
    return int(open(f"/proc/{pid}/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_what_nobody_takes_waits_where_it_is(server, web):
    """A client that does not read holds back the server in the sandbox, not the memory of ours."""
    before = memory_of(server.pid)
    with raw(web) as connection:
        connection.send(b"GET /big?bytes=%d HTTP/1.1\r\nHost: x\r\n\r\n" % (256 * MIB))
        response = connection.response()
        assert response.read(MIB) == b"b" * MIB
        assert fetch(web).status == 200  # meanwhile others are served
        assert memory_of(server.pid) < before + 64 * MIB
        assert sum(len(piece) for piece in iter(lambda: response.read(MIB), b"")) == 255 * MIB


def test_events_come_as_they_are_sent(new):
    sandbox = with_server(new)
    with raw(sandbox.made["url"]) as connection:
        connection.send(b"GET /sse HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
        response = connection.response()
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.read1(100) == b"data: first\n\n"
        assert fetch(sandbox.made["url"], "/go").body == b"ok"
        assert response.read1(100) == b"data: second\n\n"
        assert response.read() == b""


def test_a_websocket_is_passed_on(web):
    socket = WebSocket(web)
    assert socket.response.status == 101 and socket.response.headers["X-Host"] == f"localhost:{PORT}"
    for data in (b"hello", b"m" * 1000, b"l" * 300000):
        socket.send(data)
        assert socket.receive() == (2, data)
    socket.send(b"", opcode=8)
    assert socket.receive() == (8, b"")
    assert socket.raw.all() == b""
    socket.close()


def test_bytes_are_passed_on_as_they_are(new):
    sandbox = new(timeout={"idle": "1h"})
    sandbox.write_all({"echo.py": """
import socket
server = socket.create_server(("127.0.0.1", 5000))
while True:
    client = server.accept()[0]
    client.sendall(b"I speak first\\n")
    data = b""
    while piece := client.recv(65536):
        data += piece
    client.sendall(b"%d:" % len(data) + data[-5:])
    client.close()
"""})
    sandbox.job("python3", "echo.py")
    made = expose(sandbox, port=5000, protocol="tcp")
    until(lambda: is_reached(made["url"]), "the server to listen")
    with raw(made["url"]) as connection:
        assert connection.reader.readline() == b"I speak first\n"
        connection.send(b"\0\r\n" * MIB + b"last.")
        connection.half_close()
        assert connection.all() == b"%d:last." % (3 * MIB + 5)


# ---- when nothing is there ----

@pytest.mark.parametrize("accept, kind", [(None, "text/html"), ("text/html,application/json", "text/html"), ("application/json", "application/json")])
def test_nothing_listens(sandbox, accept, kind):
    url = expose(sandbox, port=PORT)["url"]
    answer = fetch(url, headers={"Accept": accept} if accept else {})
    assert answer.status == 502 and answer.headers["content-type"].startswith(kind)
    assert b"nothing listens on port 3000" in answer.body
    if kind == "application/json":
        assert answer.json["code"] == "nothing_listens" and answer.json["status"] == 502


def test_a_server_that_comes_later_is_reached(sandbox):
    url = expose(sandbox, port=PORT)["url"]
    with raw(url) as connection:
        connection.send(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.answer().status == 502
        serve(sandbox)
        connection.send(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.answer().status == 200


@pytest.mark.parametrize("path", ["/silent", "/garbage", "/two-lengths", "/endless-head", "/unasked-upgrade"])
def test_what_is_no_answer_is_not_passed_on(web, path):
    answer = fetch(web, path)
    assert answer.status == 502 and b"poison" not in answer.body
    assert fetch(web).status == 200


def test_an_answer_that_breaks_off_is_cut(web):
    with raw(web) as connection:
        connection.send(b"GET /cut HTTP/1.1\r\nHost: x\r\n\r\n")
        seen = connection.all()
    assert b"Content-Length: 100" in seen and seen.endswith(b"only this")


def test_a_second_answer_is_nobodys(web):
    with raw(web) as connection:
        for path in (b"/second-answer", b"/echo"):
            connection.send(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)
            assert b"poison" not in connection.answer().body


# ---- hostile heads ----

HOSTILE = {
    "two lengths": b"POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\nabcd",
    "length and chunks": b"POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": b"POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "chunks in disguise": b"POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": b"POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a bare LF": b"GET / HTTP/1.1\nHost: x\n\n",
    "a bare LF in the middle": b"GET / HTTP/1.1\r\nHost: x\r\nX: a\nTransfer-Encoding: chunked\r\n\r\n",
    "a folded header": b"GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
    "a space before the colon": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 4\r\n\r\nabcd",
    "two hosts": b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "a NUL": b"GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n",
    "a signed length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +4\r\n\r\nabcd",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "CONNECT": b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n",
    "too many headers": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    "a head without end": b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100000,
    "a target without end": b"GET /" + b"a" * 100000,
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_could_be_read_in_two_ways_is_refused(web, data):
    with raw(web) as connection:
        connection.send_if_open(data)
        connection.send_if_open(b"GET /hit HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = connection.answer()
        assert 400 <= answer.status < 600 and answer.status != 502, str(answer)
        assert b"HTTP/1.1 200" not in connection.all()
    assert fetch(web).status == 200


@pytest.mark.parametrize("body", [b"zz\r\nabc\r\n", b"3\r\nabcX", b"3\nabc\n0\n\n", b"fffffffffffffffff\r\n"])
def test_a_body_that_goes_bad_ends_both_connections(web, body):
    with raw(web) as connection:
        connection.send(b"POST /count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.send_if_open(body)
        assert b" 200 " not in connection.all()
    assert fetch(web).status == 200


# ---- tokens ----

def test_a_private_port_wants_its_token(api, new):
    sandbox = new(timeout={"idle": "1h"})
    serve(sandbox)
    made = expose(sandbox, port=PORT, private=True, expiresInMs="1h")
    url, token = made["url"], made["token"]
    assert made["private"] and made["tokenExpiresAt"] and "tokenUrl" not in made
    assert token not in api.get(ports_path(sandbox)).body.decode()
    for headers in ({}, {"X-Burrow-Port-Token": ""}, {"X-Burrow-Port-Token": token[:-1] + ("0" if token[-1] != "0" else "1")}):
        answer = fetch(url, headers=headers)
        assert answer.status == 401 and b"private" in answer.body, str(answer)
    assert raw(url).send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").response().reason == "Unauthorized"
    socket = WebSocket(url)
    assert socket.response.status == 401
    socket.close()
    answer = fetch(url, headers={"X-Burrow-Port-Token": token})
    assert answer.status == 200 and "x-burrow-port-token" not in headers_of(answer) and token.encode() not in answer.body
    # A new token is the only one.
    again = expose(sandbox, port=PORT, private=True)
    assert again["url"] == url and again["token"] != token and "tokenExpiresAt" not in again
    assert fetch(url, headers={"X-Burrow-Port-Token": token}).status == 401
    assert fetch(url, headers={"X-Burrow-Port-Token": again["token"]}).status == 200


def test_a_token_expires(sandbox):
    serve(sandbox)
    made = expose(sandbox, port=PORT, private=True, expiresInMs=1)
    headers = {"X-Burrow-Port-Token": made["token"]}
    until(lambda: fetch(made["url"], headers=headers).status == 401, "the token to expire")


def test_a_token_ends_with_the_key_that_made_it(api, new):
    sandbox = new(timeout={"idle": "1h"})
    serve(sandbox)
    keys = [api.post("/api/v1/keys", {"scopes": ["read", "run", "organisation"]}).json for _ in range(2)]
    made = [Client(api.port, key["key"]).post(ports_path(sandbox), {"port": port, "private": True}).json for key, port in zip(keys, (PORT, PORT + 1))]

    def opens(one):
        try:
            return fetch(one["url"], headers={"X-Burrow-Port-Token": one["token"]}).status != 401
        except ConnectionError:
            return True  # it was in, and cut off

    assert opens(made[0]) and opens(made[1])
    with raw(made[0]["url"]) as kept:
        kept.send(f"GET /hit HTTP/1.1\r\nHost: x\r\nX-Burrow-Port-Token: {made[0]['token']}\r\n\r\n".encode())
        assert kept.answer().status == 200
        assert api.delete(f"/api/v1/keys/{keys[0]['id']}").status == 204
        until(lambda: not opens(made[0]), "the token to end")
        assert kept.all() == b""  # who came in by it is cut off
    assert opens(made[1])
    told = {one["port"]: one for one in api.get(ports_path(sandbox)).json["items"]}
    assert told[PORT]["tokenExpiresAt"] and "tokenExpiresAt" not in told[PORT + 1]
    # Narrowed to less than it takes to expose a port, it is no better than none.
    assert api.patch(f"/api/v1/keys/{keys[1]['id']}", {"scopes": ["read", "organisation"]}).status == 200
    until(lambda: not opens(made[1]), "the other token to end")
    again = expose(sandbox, port=PORT, private=True)
    assert opens(again)


# ---- sandboxes that sleep, end, and come back ----

def pause(sandbox):
    assert sandbox.client.post(f"/sandbox/{sandbox.id}/pause").status == 200


def test_a_request_wakes_a_paused_sandbox_and_is_answered(new):
    sandbox = with_server(new)
    url = sandbox.made["url"]
    with raw(url) as kept:
        kept.send(b"GET /hit HTTP/1.1\r\nHost: x\r\n\r\n")
        assert kept.answer().body == b"1"
        pause(sandbox)
        answers = together(*[lambda: fetch(url, "/hit")] * 20)
        assert sorted(int(answer.body) for answer in answers) == list(range(2, 22))  # each exactly once
        assert sandbox.status()["status"] in ("idle", "running")
        assert [event["type"] for event in sandbox.events("?limit=100")].count("resume") == 1
        # A connection from before wakes it too.
        pause(sandbox)
        kept.send(b"GET /hit HTTP/1.1\r\nHost: x\r\n\r\n")
        assert kept.answer().body == b"22"
        assert sandbox.status()["status"] in ("idle", "running")


def test_traffic_is_use(new):
    """One that is asked something all the time outlives another of the same age that is not."""
    asked = new(network={"port": PORT}, timeout={"idle": "3s"})
    other = new(timeout={"idle": "3s"})
    url = asked.made["url"]
    until(lambda: fetch(url).status == 502 and other.status()["status"] == "terminated", "the other one to end")
    assert fetch(url).status == 502  # a server in it would be a use of its own
    asked.wait_status("terminated")
    assert not is_reached(url)


def test_nothing_is_left_of_a_sandbox_that_is_gone(new):
    sandbox = with_server(new)
    url = sandbox.made["url"]
    socket = WebSocket(url)
    with raw(url) as kept:
        kept.send(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
        assert kept.answer().status == 200
        sandbox.delete()
        assert not is_reached(url)
        kept.send_if_open(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP/1.1 200" not in kept.all()
    assert socket.raw.all() == b""
    socket.close()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_addresses_survive_a_restart(own_server, how):
    server = own_server(options=["--port-range", own_range(place=1)])
    sandbox = with_server(server.client.create)
    made = expose(sandbox, port=4000, private=True)
    gone = server.client.create(network={"port": PORT})
    gone.delete()
    getattr(server, how)()
    server.start()
    sandbox.client = server.client
    assert fetch(sandbox.made["url"]).status == 200
    assert sandbox.get()["url"] == sandbox.made["url"]
    listed = {port["port"]: port for port in server.client.get(ports_path(sandbox)).json["items"]}
    assert listed[4000]["hostPort"] == made["hostPort"]
    assert fetch(made["url"]).status == 401
    assert fetch(made["url"], headers={"X-Burrow-Port-Token": made["token"]}).status == 502
    # What was given up rests across a restart too.
    fresh = server.client.create(network={"port": PORT})
    assert fresh.made["url"] not in (gone.made["url"], sandbox.made["url"], made["url"])
    server.end()


def test_a_host_port_rests_before_it_is_handed_out_again(own_server):
    server = own_server(options=["--port-range", own_range(2, place=2)])
    api = server.client
    sandbox = api.create()
    first = expose(sandbox, port=3000)
    second = expose(sandbox, port=3001)
    assert first["hostPort"] != second["hostPort"]
    api.delete(ports_path(sandbox, 3000))
    answer = api.post(ports_path(sandbox), {"port": 3002})
    check_problem(answer, 429, "limit_reached")
    assert "port-range" in answer.json["detail"]
    # A create that cannot have its port leaves nothing.
    before = len(api.get("/sandbox?live=true").data["sandboxes"])
    check_error(api.post("/sandbox", {"network": {"port": 3000}}), 429, "CAPACITY")
    assert len(api.get("/sandbox?live=true").data["sandboxes"]) == before
    server.stop()
    server.options += ["--port-rest", "0"]
    server.start()
    sandbox.client = server.client
    assert expose(sandbox, port=3002)["hostPort"] == first["hostPort"]
    server.end()


def test_a_port_that_somebody_else_has_is_passed_over(own_server):
    import socket
    first = int(own_range(3, place=3).split("-")[0])
    taken = socket.create_server(("127.0.0.1", first))
    server = own_server(options=["--port-range", f"{first}-{first + 2}"])
    assert expose(server.client.create(), port=3000)["hostPort"] == first + 1
    taken.close()
    server.end()


# ---- who may ----

def test_others_see_no_ports(server, api, sandbox):
    expose(sandbox, port=PORT)
    answer = api.post(f"{TOP}/keys", {"name": "reader", "scopes": ["read", "organisation"]})
    assert answer.status == 201, str(answer)
    reader = answer.json["key"]
    assert api.get(ports_path(sandbox), key=reader).status == 200
    assert api.post(ports_path(sandbox), {"port": 3001}, key=reader).status == 403
    assert api.delete(ports_path(sandbox, PORT), key=reader).status == 403
    assert api.get(ports_path(sandbox), key=None).status == 401
    missing = f"{TOP}/sandboxes/sbx_{'0' * 26}/ports"
    for answer in (api.get(missing), api.post(missing, {"port": 3000}), api.delete(f"{missing}/3000")):
        check_problem(answer, 404, "not_found")


def test_the_api_is_not_served_there(web, server):
    """A preview is an origin of its own: neither routes nor keys of the API mean anything there."""
    answer = fetch(web, "/api/v1/sandboxes", headers={"Authorization": f"Bearer {server.key}"})
    assert answer.json["path"] == "/api/v1/sandboxes"  # the guest's own server


# ---- cookies ----

def test_cookies_of_one_port_are_not_sent_to_another(new, web):
    _, mine = place(web)
    other = with_server(new).made["url"]
    answer = fetch(web, "/cookie")
    name = answer.headers["set-cookie"]
    with raw(web) as connection:
        connection.send(b"GET /cookie HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        cookies = [line for line in connection.all().decode().split("\r\n") if line.lower().startswith("set-cookie:")]
    assert cookies == [f"Set-Cookie: burrow-{mine}-a=1; Path=/; HttpOnly", f"Set-Cookie: burrow-{mine}-b=2"], cookies
    sent = {"Cookie": f"burrow-{mine}-a=1; plain=2; burrow-{mine}-b=2"}
    assert headers_of(fetch(web, headers=sent))["cookie"] == "a=1; b=2"
    assert "cookie" not in headers_of(fetch(other, headers=sent))
    assert name


# ---- bounds ----

def test_connections_of_one_port_are_bounded_and_idle_ones_make_room(sandbox):
    web = expose(sandbox, port=PORT)["url"]
    held = []
    try:
        for _ in range(520):
            connection = raw(web)
            connection.send(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
            held.append(connection)
            assert connection.answer().status == 502  # each gets its answer: the oldest goes
        assert fetch(web).status == 502
        assert held[0].all() == b""
    finally:
        for connection in held:
            connection.close()
