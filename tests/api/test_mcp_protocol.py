# SPDX-License-Identifier: Apache-2.0
"""POST /mcp: messages, revisions, headers, origins, bounds. What tools do is in test_mcp_tools.py."""
import base64
import json
import pathlib
import socket

import pytest

import server as servers
from client import PATIENCE, Raw, until
from mcp import ACCEPT, LEGACY, META, MODERN, Mcp, events, meta

JSON = {"Content-Type": "application/json", "Accept": ACCEPT}


def post(api, message, **headers):
    return api.call("POST", "/mcp", body=json.dumps(message).encode() if not isinstance(message, bytes) else message,
                    headers={**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}})


def request(method, id=1, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def check_fault(answer, status, code, *words, id=1):
    assert answer.status == status, str(answer)
    body = answer.json
    assert body["jsonrpc"] == "2.0" and body["error"]["code"] == code and body.get("id") == id, body
    for word in words:
        assert word in body["error"]["message"], body
    return body["error"]


# ---- who may ----

def test_without_a_key_nobody_is_told_of_oauth(api):
    for headers in ({}, {"Authorization": "Bearer brw_wrong"}):
        answer = api.call("POST", "/mcp", body=b"{}", headers={**JSON, **headers}, key=None)
        check_fault(answer, 401, -32600, id=None)
        assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
                 "/.well-known/oauth-authorization-server"):
        assert api.get(path, key=None).status == 404


def test_pages_of_others_are_refused_whatever_they_know(api):
    for origin in ("https://evil.example", "http://127.0.0.1", "null", "http://localhost:3000"):
        check_fault(post(api, request("ping"), Origin=origin), 403, -32600, origin, id=None)
        answer = api.call("OPTIONS", "/mcp", headers={"Origin": origin}, key=None)
        assert answer.status == 403 and "access-control-allow-origin" not in answer.headers


def test_pages_of_the_server_itself_may_call_where_no_name_can_lead_there(api):
    for name in ("127.0.0.1", "localhost", "[::1]"):
        host = f"{name}:{api.port}"
        assert post(api, request("ping"), Host=host, Origin=f"http://{host}").status == 200
        for origin in (f"https://{host}", f"http://{host}0", f"http://{host}.evil.example", f"http://{name}", f"http://evil.example:{api.port}"):
            check_fault(post(api, request("ping"), Host=host, Origin=origin), 403, -32600, id=None)
    for host in ("evil.example", f"localhost.evil.example:{api.port}", f"127.0.0.1.evil.example:{api.port}"):  # names that lead here
        check_fault(post(api, request("ping"), Host=host, Origin=f"http://{host}"), 403, -32600, id=None)


def test_pages_that_the_operator_named_may_call(tmp_path):
    good = "https://agent.example"
    server = servers.Server(tmp_path / "data", options=("--api-origins", f"{good}, http://localhost:3000"))
    try:
        api = server.start().client
        for origin in (good, "http://localhost:3000"):
            asked = api.call("OPTIONS", "/mcp", headers={"Origin": origin, "Access-Control-Request-Method": "POST",
                                                         "Access-Control-Request-Headers": "authorization,mcp-name"}, key=None)
            assert asked.status == 204 and asked.headers["access-control-allow-origin"] == origin
            allowed = {name.strip().lower() for name in asked.headers["access-control-allow-headers"].split(",")}
            assert {"authorization", "content-type", "accept", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"} <= allowed
            answer = post(api, request("initialize", protocolVersion="2025-11-25"), Origin=origin)
            assert answer.status == 200 and answer.headers["access-control-allow-origin"] == origin and answer.headers["vary"] == "Origin"
            assert "mcp-session-id" in answer.headers["access-control-expose-headers"].lower()
            wrong = api.call("POST", "/mcp", body=b"{}", headers={**JSON, "Origin": origin}, key=None)
            assert wrong.status == 401 and wrong.headers["access-control-allow-origin"] == origin  # so that the page can read it
        for origin in ("https://agent.example.evil", "http://agent.example", "https://agent.example:444", "null", ""):
            assert post(api, request("ping"), Origin=origin).status == 403
            assert api.call("OPTIONS", "/mcp", headers={"Origin": origin, "Access-Control-Request-Method": "POST"}, key=None).status == 403
        server.end()
    finally:
        server.abandon()


def test_there_is_no_stream_of_its_own_and_no_session_to_end(api):
    for method in ("GET", "DELETE", "PUT"):
        answer = api.call(method, "/mcp", headers={"Accept": "text/event-stream"})
        assert answer.status == 405 and "POST" in answer.headers["allow"], str(answer)


# ---- messages ----

@pytest.mark.parametrize("body, code, word", [
    (b"", -32700, "JSON"), (b"{", -32700, "JSON"), (b"\xff", -32700, "JSON"), (b"[" * 1000, -32700, "JSON"),
    (b"7", -32600, "object"), (b"{}", -32600, "jsonrpc"), (b'{"jsonrpc":"1.0","method":"ping"}', -32600, "2.0"),
    (b'{"jsonrpc":"2.0"}', -32600, "method"), (b'{"jsonrpc":"2.0","method":7}', -32600, "method"),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, "id"), (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, "id"),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, "id"), (b"[]", -32600, "messages"),
])
def test_what_is_no_message_is_refused(api, body, code, word):
    check_fault(post(api, body), 400, code, word, id=None)


def test_a_good_id_comes_back_with_the_fault(api):
    check_fault(post(api, {"jsonrpc": "2.0", "id": "seven", "method": "ping", "params": []}), 400, -32602, "params", id="seven")
    long = "x" * 257
    check_fault(post(api, {"jsonrpc": "2.0", "id": long, "method": "ping"}), 400, -32600, "256", id=None)
    for id in (0, -5, 2**53, "", "é", '"\n'):
        assert post(api, {"jsonrpc": "2.0", "id": id, "method": "ping"}).json == {"jsonrpc": "2.0", "id": id, "result": {}}


def test_bodies_are_bounded_and_json(api, server):
    answer = api.call("POST", "/mcp", body=b"{}", headers={"Content-Type": "text/plain"})
    check_fault(answer, 415, -32600, "application/json", id=None)
    with Raw(server.port) as raw:
        raw.send((f"POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\nContent-Type: application/json\r\n"
                 f"Content-Length: {(16 << 20) + 1}\r\n\r\n").encode())
        check_fault(raw.answer("POST"), 413, -32600, id=None)
    fits = json.dumps(request("ping", text="x" * (4 << 20))).encode()
    assert post(api, fits).status == 200


def test_notifications_and_answers_get_202_and_nothing_else(api):
    for message in ({"jsonrpc": "2.0", "method": "notifications/initialized"},
                    {"jsonrpc": "2.0", "method": "notifications/unheard/of", "params": {}},
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 17}},
                    {"jsonrpc": "2.0", "id": 3, "result": {}}, {"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": "no"}}):
        answer = post(api, message)
        assert answer.status == 202 and answer.body == b"", str(answer)


def test_only_one_revision_has_several_messages_in_a_body(api):
    batch = [request("ping", 1), {"jsonrpc": "2.0", "method": "notifications/x"}, request("no/such", 2), 7,
             request("initialize", 3, protocolVersion="2025-03-26"), request("tools/call", 4, name="sandbox_list", arguments={})]
    for headers in ({}, {"MCP_Protocol_Version": "2025-03-26"}):
        answer = post(api, batch, **headers)
        assert answer.status == 200, str(answer)
        by_id = {reply["id"]: reply for reply in answer.json}
        assert by_id[1]["result"] == {} and by_id[2]["error"]["code"] == -32601 and by_id[None]["error"]["code"] == -32600
        assert by_id[3]["error"]["code"] == -32600 and by_id[4]["result"]["isError"] is False and len(answer.json) == 5
    for version in ("2025-06-18", "2025-11-25", MODERN):
        check_fault(post(api, batch, MCP_Protocol_Version=version), 400, -32600, "2025-03-26", id=None)
    assert post(api, [{"jsonrpc": "2.0", "method": "notifications/x"}]).status == 202
    check_fault(post(api, [request("ping", n) for n in range(51)]), 400, -32600, "50", id=None)


def test_answers_are_bounded_and_never_half(api):
    """50 files of a MiB are more than an answer takes: what does not fit says so, and the rest is whole."""
    mcp = Mcp(api, "2025-03-26")
    box = mcp.tool("sandbox_create")["id"]
    try:
        mcp.tool("sandbox_exec", sandbox=box, script="head -c 1048576 /dev/urandom > big; seq 1 100 > small")
        place = f"burrow://sandboxes/{box}/files/workspace/"
        batch = [request("resources/read", n, uri=place + ("small" if n == 49 else "big")) for n in range(50)]
        answer = post(api, batch)
        assert answer.status == 200 and len(answer.body) < 34 << 20
        replies = answer.json
        assert [reply["id"] for reply in replies] == list(range(50))
        whole = [reply for reply in replies if "result" in reply]
        assert 10 < len(whole) < 50 and all(len(base64.b64decode(reply["result"]["contents"][0]["blob"])) == 1 << 20 for reply in whole[:-1])
        assert all("too long" in reply["error"]["message"] for reply in replies if "error" in reply)
    finally:
        mcp.tool("sandbox_destroy", sandbox=box)


def test_answers_that_nobody_reads_are_bounded_together(api, server):
    """A key holds half of what the server has for all bodies and answers (512 MiB), and gets it back with its connections."""
    mcp = Mcp(api)
    box = mcp.tool("sandbox_create")["id"]
    waiting = []
    try:
        mcp.tool("sandbox_exec", sandbox=box, script="head -c 1048576 /dev/urandom > big")
        uri = f"burrow://sandboxes/{box}/files/workspace/big"
        body = json.dumps([request("resources/read", n, uri=uri) for n in range(50)])
        head = f"POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        before, most = memory(server), 0

        def is_refused():
            nonlocal most
            most = max(most, memory(server))
            answer = post(api, request("resources/read", uri=uri))
            if answer.status == 429:
                check_fault(answer, 429, -32603, "wait to be read")
            return answer.status == 429
        for _ in range(24):
            waiting.append(Raw(server.port).send((head + body).encode()))
        until(is_refused, "the key has its share")
        assert most - before < 700 << 20
        assert mcp.tool("sandbox_get", sandbox=box)["id"] == box  # what is short is answered all the same
        for raw in waiting:
            raw.close()
        until(lambda: not is_refused(), "it was given back")
    finally:
        for raw in waiting:
            raw.close()
        mcp.tool("sandbox_destroy", sandbox=box)


def test_lists_that_nobody_reads_count_too(api, server):
    """Answers that need no request of the API are held as long as others."""
    batch = [request("tools/list", n) for n in range(50)]
    size = len(post(api, batch).body)
    body = json.dumps(batch)
    head = f"POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    waiting = []

    def send():
        """The kernel takes little of the answer: short segments make short queues."""
        raw = socket.socket()
        waiting.append(raw)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(PATIENCE)
        raw.connect(("127.0.0.1", server.port))
        raw.sendall((head + body).encode())

    def is_refused():
        return any("wait to be read" in reply["error"]["message"] for reply in post(api, batch).json if "error" in reply)
    try:
        for _ in range((256 << 20) // size + 2):
            send()
        until(is_refused, "the key has its share")
    finally:
        for raw in waiting:
            raw.close()
    until(lambda: not is_refused(), "it was given back")


def memory(server):
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{server.pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) << 10


def test_what_was_asked_for_comes_back_bounded(api):
    mcp = Mcp(api, "2025-11-25")
    answer = mcp.send(mcp.message("resources/read", uri="burrow://" + "x" * (1 << 20)))
    assert answer.json["error"]["code"] == -32002 and len(answer.body) < 4096
    version = "9" * (1 << 20)
    assert len(post(api, request("ping", _meta=meta(version)), MCP_Protocol_Version="9").body) < 4096


# ---- revisions ----

@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_client_is_answered_in_its_revision(api, version):
    mcp = Mcp(api, version)
    assert mcp.hello["protocolVersion"] == version and mcp.hello["serverInfo"]["name"] == "burrow"
    assert mcp.hello["capabilities"] == {"tools": {}, "resources": {}} and "sandbox_run" in mcp.hello["instructions"]
    assert mcp.ask("ping") == {}
    listed = mcp.ask("tools/list")
    assert set(listed) == {"tools"}
    check_fault(mcp.send(mcp.message("server/discover")), 200, -32601, id=mcp.next_id)
    check_fault(mcp.send(mcp.message("logging/setLevel", level="info")), 200, -32601, id=mcp.next_id)


def test_what_initialize_asks_for_is_agreed_on(api):
    for asked in ("2024-11-05", "1900-01-01", "2030-01-01", MODERN):
        answer = post(api, request("initialize", protocolVersion=asked, capabilities={}))
        assert answer.json["result"]["protocolVersion"] == "2025-11-25"
    sessions = {post(api, request("initialize", protocolVersion="2025-06-18")).headers["mcp-session-id"] for _ in range(3)}
    assert len(sessions) == 3
    check_fault(post(api, request("initialize")), 200, -32602, "protocolVersion")
    # some clients ask for it with everything of the new revision around it
    answer = post(api, request("initialize", protocolVersion="2025-11-25", _meta=meta()), MCP_Protocol_Version=MODERN)
    assert answer.json["result"]["protocolVersion"] == "2025-11-25"


def test_a_client_that_names_another_revision_than_agreed_is_borne(api):
    session = post(api, request("initialize", protocolVersion="2025-11-25")).headers["mcp-session-id"]
    assert post(api, request("ping"), Mcp_Session_Id=session, MCP_Protocol_Version=MODERN).json["result"] == {}


def test_the_stateless_revision(api):
    mcp = Mcp(api)
    found = mcp.ask("server/discover")
    assert found["supportedVersions"] == [MODERN, *LEGACY] and found["resultType"] == "complete"
    assert found["_meta"][META + "serverInfo"]["name"] == "burrow" and found["capabilities"] == {"tools": {}, "resources": {}}
    listed = mcp.ask("tools/list")
    assert listed["ttlMs"] > 0 and listed["cacheScope"] == "private"
    assert listed["tools"] == mcp.ask("tools/list")["tools"]
    for method in ("ping", "no/such", "prompts/list", "subscriptions/listen"):
        check_fault(mcp.send(mcp.message(method)), 404, -32601, method, id=mcp.next_id)
    answer = mcp.send(mcp.message("tools/list"))
    assert "mcp-session-id" not in answer.headers


def test_unknown_revisions_are_told_which_there_are(api):
    for version in ("1900-01-01", "2027-01-01", "", "2025-11-25"):
        message = request("tools/list", _meta=meta(version))
        error = check_fault(post(api, message, MCP_Protocol_Version=version, Mcp_Method="tools/list"), 400, -32022)
        assert error["data"] == {"supported": [MODERN, *LEGACY], "requested": version}
    error = check_fault(post(api, request("tools/list"), MCP_Protocol_Version="1900-01-01"), 400, -32022)
    assert error["data"]["requested"] == "1900-01-01"


@pytest.mark.parametrize("taken, put", [
    ({"MCP-Protocol-Version"}, {}), ({"Mcp-Method"}, {}), ({"Mcp-Name"}, {}),
    ((), {"MCP-Protocol-Version": "2025-11-25"}), ((), {"Mcp-Method": "tools/list"}), ((), {"Mcp-Method": "Tools/Call"}),
    ((), {"Mcp-Name": "sandbox_destroy"}), ((), {"Mcp-Name": "=?base64?????=?="}), ((), {"Mcp-Name": "=?base64?c2FuZGJveF9nZXQ=?="}),
])
def test_headers_that_say_something_else_than_the_body(api, taken, put):
    mcp = Mcp(api)
    message = mcp.message("tools/call", name="sandbox_list", arguments={})
    headers = {name: value for name, value in mcp.headers(message).items() if name not in taken} | put
    check_fault(mcp.send(message, headers=headers), 400, -32020, (list(taken) + list(put))[0])


@pytest.mark.parametrize("name, value", (("Mcp-Name", "sandbox_destroy"), ("mcp-name", "sandbox_list"), ("Mcp-Method", "tools/list"), ("MCP-Protocol-Version", "2025-06-18")))
def test_a_header_that_comes_twice_says_nothing(api, name, value):
    """What stands in between may have gone by the other one."""
    mcp = Mcp(api)
    message = mcp.message("tools/call", name="sandbox_list", arguments={})
    with Raw(api.port) as raw:
        body = json.dumps(message)
        lines = [*mcp.headers(message).items(), (name, value), ("Host", "x"), ("Authorization", f"Bearer {api.key}"), ("Content-Length", len(body))]
        raw.send(("POST /mcp HTTP/1.1\r\n" + "".join(f"{key}: {text}\r\n" for key, text in lines) + "\r\n" + body).encode())
        check_fault(raw.answer("POST"), 400, -32020, "more than once", id=None)


def test_a_name_may_come_encoded(api):
    mcp = Mcp(api)
    for uri in ("burrow://sandboxes/ä/files/é", "burrow://sandboxes/x"):
        message = mcp.message("resources/read", uri=uri)
        headers = mcp.headers(message) | {"Mcp-Name": f"=?base64?{base64.b64encode(uri.encode()).decode()}?="}
        check_fault(mcp.send(message, headers=headers), 200, -32602, id=mcp.next_id)


def test_what_every_request_must_say_of_its_client(api):
    mcp = Mcp(api)
    for fields in ({META + "protocolVersion": MODERN}, {META + "protocolVersion": MODERN, META + "clientCapabilities": 7}):
        message = request("tools/list", _meta=fields)
        check_fault(mcp.send(message), 400, -32602, "clientCapabilities")
    check_fault(mcp.send(request("tools/list", _meta={META + "protocolVersion": 7})), 400, -32602, "string")
    check_fault(mcp.send(request("tools/list", _meta=7)), 400, -32602, "_meta")
    check_fault(mcp.send(request("tools/list")), 400, -32602, "protocolVersion")


def test_calls_of_what_is_no_tool_are_faults_of_the_protocol(api):
    for mcp in (Mcp(api), Mcp(api, LEGACY[0])):
        for params in ({"name": "no_such"}, {"name": "Sandbox_Run"}, {"name": "sandbox_run", "arguments": []},
                       {"name": "sandbox_run", "arguments": "x"}):
            check_fault(mcp.send(mcp.message("tools/call", **params)), 200, -32602, id=mcp.next_id)
        check_fault(mcp.send(mcp.message("tools/list", cursor="x")), 200, -32602, "cursor", id=mcp.next_id)


# ---- waiting ----

@pytest.mark.parametrize("version", (MODERN, "2025-11-25"))
def test_progress_comes_while_a_command_runs(api, version):
    mcp = Mcp(api, version)
    message = mcp.message("tools/call", name="sandbox_run", arguments={"script": "sleep 2.5; echo done"}, _meta={"progressToken": "tok-1"})
    answer = mcp.send(message)
    assert answer.headers["content-type"] == "text/event-stream" and answer.headers["x-accel-buffering"] == "no"
    *progress, last = events(answer)
    assert progress and all(note["method"] == "notifications/progress" and note["params"]["progressToken"] == "tok-1" for note in progress)
    seen = [note["params"]["progress"] for note in progress]
    assert seen == sorted(set(seen))
    assert last["id"] == message["id"] and last["result"]["structuredContent"]["stdout"]["text"] == "done\n"


def test_what_is_quick_is_no_stream(api):
    mcp = Mcp(api)
    answer = mcp.send(mcp.message("tools/call", name="sandbox_list", arguments={}, _meta={"progressToken": 7}))
    assert answer.headers["content-type"] == "application/json"


def living(api, label):
    found = api.get(f"/api/v1/sandboxes?selector=mcp%3D{label}").json["items"]
    return [sandbox for sandbox in found if sandbox["state"] not in ("ended", "failed")]


def start(server, mcp, message):
    raw = Raw(server.port)
    body = json.dumps(message)
    headers = {**mcp.headers(message), "Host": "x", "Authorization": f"Bearer {mcp.api.key}", "Content-Length": str(len(body.encode()))}
    raw.send(("POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n" + body).encode())
    return raw


@pytest.mark.parametrize("version", (MODERN, "2025-06-18"))
def test_a_client_that_goes_away_ends_its_one_shot(api, server, version):
    mcp, label = Mcp(api, version), f"gone{version[:4]}"
    message = mcp.message("tools/call", name="sandbox_run", arguments={"script": "sleep 600", "labels": {"mcp": label}})
    with start(server, mcp, message):
        until(lambda: living(api, label), "the one-shot runs")
    until(lambda: not living(api, label), "it ended with its client")


def test_a_client_that_goes_away_ends_nothing_else(api, server, new):
    mcp = Mcp(api)
    id = mcp.tool("sandbox_create")["id"]
    try:
        message = mcp.message("tools/call", name="sandbox_exec", arguments={
            "sandbox": id, "script": "touch /workspace/began; sleep 2; touch /workspace/ended", "waitMs": 60000})
        with start(server, mcp, message):
            until(lambda: api.get(f"/api/v1/sandboxes/{id}/files/stat?path=/workspace/began").status == 200, "it runs")
        until(lambda: api.get(f"/api/v1/sandboxes/{id}/files/stat?path=/workspace/ended").status == 200, "it went on")
    finally:
        mcp.tool("sandbox_destroy", sandbox=id)


def test_a_legacy_client_cancels_by_a_notification_of_its_own_session(api, server):
    mcp, other = Mcp(api, "2025-11-25"), Mcp(api, "2025-11-25")
    message = mcp.message("tools/call", name="sandbox_run", arguments={"script": "sleep 600", "labels": {"mcp": "cancel"}})
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"], "reason": "enough"}}
    with start(server, mcp, message) as raw:
        until(lambda: living(api, "cancel"), "the one-shot runs")
        assert other.send(cancel).status == 202  # the same id in another session
        assert Mcp.send(mcp, cancel, headers=JSON).status == 202  # and in none
        assert len(living(api, "cancel")) == 1
        assert mcp.send(cancel).status == 202
        until(lambda: not living(api, "cancel"), "it was cancelled")
        assert raw.answer("POST").status == 200
