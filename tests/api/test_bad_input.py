# SPDX-License-Identifier: Apache-2.0
"""Whatever comes over the wire: an answer in the envelope or a closed connection; never a 5xx, never the end of the server."""
import json
import os
import random
import socket
import time

import pytest
from client import PATIENCE, Raw, base64_of, check_error, dump, files_json, together, until

# Every route that takes a JSON body. {id} is a living sandbox.
JSON_ROUTES = [
    ("POST", "/sandbox"), ("POST", "/sandbox/{id}/execute"), ("PATCH", "/sandbox/env/{id}"),
    ("POST", "/sandbox/sandboxes/{id}/jobs"), ("POST", "/fs/{id}"), ("POST", "/fs/mkdir/{id}"), ("POST", "/fs/rm/{id}"),
    ("POST", "/fs/rmdir/{id}"), ("POST", "/stream"), ("POST", "/"), ("POST", "/stream/list"),
    ("POST", "/cli/validate/apt-dependencies"), ("POST", "/cli/auth/ssh-keys"), ("DELETE", "/cli/auth/ssh-keys"),
]
NOT_JSON = [b"{", b"}", b"[", b"nonsense", b"{]", b'{"a":}', b'{"a":1,}', b'{"a" 1}', b"{'a':1}", b'{"a":1}{"b":2}', b'{"a":1} x',
            b'{"a":"\n"}', b'{"a":"\\x"}', b'{"a":01}', b'{"a":.5}', b'{"a":1e}', b'{"a":NaN}', b'{"a":Infinity}', b"\xff\xfe{\0}\0",
            b'{"a":"\xff"}', b'{"a":"\\ud8"}', b'{"a":tru}', b'{"a":"unterminated', b"\0", b'{"a":1}\0', b"\xef\xbb\xbf",
            b'{"a":1,"a":2', b"//x", b"/*x*/{}"]


@pytest.mark.parametrize("method, path", JSON_ROUTES, ids=[f"{m} {p}" for m, p in JSON_ROUTES])
def test_malformed_json_is_refused(api, shared, method, path):
    for body in NOT_JSON:
        answer = api.call(method, path.format(id=shared.id), body=body, headers={"Content-Type": "application/json"})
        assert answer.status == 400, f"{body!r}: {answer}"
        check_error(answer, 400, "INVALID_ARGUMENT")
    assert shared.status()["status"] == "idle"


@pytest.mark.parametrize("method, path", JSON_ROUTES, ids=[f"{m} {p}" for m, p in JSON_ROUTES])
def test_json_that_is_no_object_is_refused(api, shared, method, path):
    for body in (b"[]", b"1", b'"text"', b"true", b"null", b"[{}]"):
        answer = api.call(method, path.format(id=shared.id), body=body)
        check_error(answer, 400, "INVALID_ARGUMENT")


@pytest.mark.parametrize("method, path", JSON_ROUTES, ids=[f"{m} {p}" for m, p in JSON_ROUTES])
def test_depth_is_bounded(api, shared, method, path):
    for open, close in ((b"[", b"]"), (b'{"a":', b"}")):
        deep = b'{"metadata":' + open * 100000 + b"1" + close * 100000 + b"}"
        answer = api.call(method, path.format(id=shared.id), body=deep)
        assert answer.status in (400, 413) and answer.json["success"] is False, str(answer)


def wrong(value):
    """Values of every type but this one's."""
    all = ["text", 5, 1.5, True, [], {}, None]
    kind = type(value)
    return [other for other in all if type(other) is not kind and not (kind is int and isinstance(other, float))]


CREATE = {"runtime": "base:latest", "runtimeId": "srt_x", "snapshot": "x", "name": "x", "description": "x", "projectId": "x",
          "resources": {}, "env": {}, "network": {}, "stream": {}, "timeout": {}, "command": {}, "files": [], "dependencies": [],
          "packages": [], "metadata": {}, "scopes": []}
NESTED = {"resources.memory": "1Gi", "resources.cpu": "1", "resources.disk": "1Gi", "network.enabled": False, "network.port": 3000,
          "stream.stdout": "x", "stream.stderr": "x", "stream.stdin": "x", "stream.timestamps": True, "timeout.idle": "1s",
          "timeout.execution": "1s", "timeout.paused": "1s", "command.mode": "oneshot", "command.exec": [], "command.files": [],
          "scopes[0]": "x", "dependencies[0]": "x", "packages[0]": "x", "files[0]": {}, "files[0].path": "x", "files[0].content": "",
          "command.exec[0]": "x", "env.NAME": "x"}


def nest(path, value):
    for part in reversed(path.replace("[0]", ".[0]").split(".")):
        value = [value] if part == "[0]" else {part: value}
    if path.startswith("command") and path != "command.exec" and isinstance(value["command"], dict):
        value["command"].setdefault("exec", ["true"])
    return value


@pytest.mark.parametrize("path, right", [*CREATE.items(), *NESTED.items()], ids=[*CREATE, *NESTED])
def test_a_wrong_type_is_named_by_its_path(api, path, right):
    for value in wrong(right):
        answer = api.post("/sandbox", nest(path, value))
        if value is None and answer.status in (200, 201):  # null may count as absent
            api.sandbox(answer.data["sandboxId"]).delete()
            continue
        check_error(answer, 400, "INVALID_ARGUMENT", path)


def test_all_faults_are_told_at_once(api):
    answer = api.post("/sandbox", {"name": 1, "resources": {"memory": "lots"}, "files": [{"path": 2, "content": ""}]})
    check_error(answer, 400, "INVALID_ARGUMENT", "name", "resources.memory", "files[0].path")


def test_unknown_fields_are_ignored_everywhere(api):
    answer = api.post("/sandbox", {"colour": "red", "resources": {"gpu": 1}, "timeout": {"never": []}, "x": {"y": [None, {}]},
                                   "command": {"exec": ["true"], "mode": "interactive", "shell": True},
                                   "files": [{"path": "a", "content": "", "mode": "0644"}]})
    sandbox = api.sandbox(answer.data["sandboxId"])
    sandbox.wait_status("idle")
    ran = sandbox.run("true", cwd="/", user="root", unknown=[1])
    assert ran.exit_code == 0
    sandbox.delete()


BAD_SIZES = ["", "lots", "-1", "-1Gi", "1 Gi", "1Gb", "1GiB", "Gi", "0x10", "1e9x", "99999999999999999999Ei", "NaN", "∞", "1,5Gi",
             "1..5Gi", " 1Gi", "1Gi\n"]


@pytest.mark.parametrize("size", BAD_SIZES)
def test_bad_sizes_are_refused(api, size):
    for name in ("memory", "disk"):
        check_error(api.post("/sandbox", {"resources": {name: size}}), 400, "INVALID_ARGUMENT", f"resources.{name}")


@pytest.mark.parametrize("cpu", ["", "fast", "-500m", "500k", "500mm", "m", "1 core", "99999999999999999999", "0.0000000001m"])
def test_bad_cpu_is_refused(api, cpu):
    check_error(api.post("/sandbox", {"resources": {"cpu": cpu}}), 400, "INVALID_ARGUMENT", "resources.cpu")


@pytest.mark.parametrize("size", ["1", "4Ki"])
def test_sizes_in_which_nothing_can_live_are_refused(api, size):
    for name in ("memory", "disk"):
        answer = api.post("/sandbox", {"resources": {name: size}})
        check_error(answer, 400, "INVALID_ARGUMENT", name)


BAD_DURATIONS = ["", "soon", "5", "-5s", "5 s", "5sec", "1w", "s", ".s", "1h-30m", "1.2.3s", "99999999999999999h", "5S", "5s ", " 5s",
                 "1m30", "０s"]


@pytest.mark.parametrize("duration", BAD_DURATIONS)
def test_bad_durations_are_refused(api, shared, duration):
    for name in ("idle", "execution", "paused"):
        check_error(api.post("/sandbox", {"timeout": {name: duration}}), 400, "INVALID_ARGUMENT", f"timeout.{name}")
    check_error(api.post(f"/sandbox/{shared.id}/execute", {"command": ["true"], "timeout": duration}), 400, "INVALID_ARGUMENT",
                "timeout")


@pytest.mark.parametrize("content", ["a", "ab", "abc", "a===", "====", "YQ", "YQ=", "YQ===", "Y Q==", "YQ==\n", "YQ==YQ==", "!!!!",
                                     "YQ-_", "YR==", "\0\0\0\0", "ýýýý"])
def test_bad_base64_is_refused(api, shared, content):
    files = [{"path": "x", "content": content}]
    check_error(api.post("/sandbox", {"files": files}), 400, "INVALID_ARGUMENT", "files[0].content")
    check_error(api.post(f"/fs/{shared.id}", {"files": files}), 400, "INVALID_ARGUMENT", "files[0].content")


@pytest.mark.parametrize("port", [0, 80, 1023, 65536, -1, 1e10])
def test_bad_ports_are_refused(api, port):
    check_error(api.post("/sandbox", {"network": {"port": port}}), 400, "INVALID_ARGUMENT", "network.port")


def test_long_texts_are_refused_or_kept_whole(api):
    for name in ("name", "description", "projectId"):
        for length in (10000, 1000000):
            answer = api.post("/sandbox", {name: "x" * length})
            if answer.status < 300:
                api.sandbox(answer.data["sandboxId"]).delete()
            else:
                check_error(answer, 400, "INVALID_ARGUMENT", name)


def test_nul_in_texts_is_refused(api):
    for name in ("name", "description", "projectId", "runtime"):
        check_error(api.post("/sandbox", {name: "a\0b"}), 400, "INVALID_ARGUMENT", name)


def test_huge_lists_are_refused_or_done(api, shared):
    for body in ({"command": ["x"] * 1000000}, {"command": ["x"], "files": files_json({str(n): "" for n in range(50000)})}):
        answer = api.post(f"/sandbox/{shared.id}/execute", body, timeout=120)
        if answer.status < 300:
            api.wait_execution(answer.data["executionId"])
        else:
            assert answer.status in (400, 413), str(answer)
    answer = api.post("/sandbox", {"env": {f"N{n}": "v" for n in range(200000)}}, timeout=120)
    if answer.status < 300:
        api.sandbox(answer.data["sandboxId"]).delete()
    else:
        assert answer.status in (400, 413), str(answer)
    assert shared.run("true").exit_code == 0


def test_an_environment_too_large_for_a_command_is_said(api, new):
    sandbox = new(env={"BIG": "x" * 100000})
    assert sandbox.output("printf %s \"$BIG\" | wc -c").strip() == "100000"
    answer = api.patch(f"/sandbox/env/{sandbox.id}", {"env": {"BIG": "x" * 3000000}})
    if answer.status == 200:
        ran = api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"]})
        assert ran.status == 400 or api.wait_execution(ran.data["executionId"])["status"] == "failed"
    else:
        check_error(answer, 400, "INVALID_ARGUMENT", "env")


def test_odd_metadata_comes_back_as_it_was(api, new):
    text = '{"big":12345678901234567890123,"small":1e-400,"lone":"\\ud800","esc":"\\u0000\\"\\\\","neg":-0,"deep":[[[[[]]]]]}'
    answer = api.call("POST", "/sandbox", body=f'{{"metadata":{text}}}'.encode())
    assert answer.status in (200, 201, 400), str(answer)
    if answer.status < 300:
        sandbox = api.sandbox(answer.data["sandboxId"])
        raw = api.get(f"/sandbox/{sandbox.id}").body.decode()
        assert "12345678901234567890123" in raw
        sandbox.delete()


# ---- paths and queries ----

@pytest.mark.parametrize("path", ["/nonsense", "/sandbox/x/y/z", "/fs", "/fs/", "/sandbox/execution", "/sandbox/status/",
                                  "/cli", "/.well-known/x", "/sandbox/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..", "/sandbox%2Fx",
                                  "/sandbox/%zz", "/sandbox/%", "/sandbox/%00", "/" + "x" * 4000, "/nothing?", "/*"])
def test_paths_that_lead_nowhere_are_not_found(api, path):
    answer = api.get(path)
    assert answer.status in (400, 404, 405), str(answer)
    assert answer.json["success"] is False and answer.json["message"] and answer.json["code"]


@pytest.mark.parametrize("method, path", [("PUT", "/sandbox"), ("DELETE", "/sandbox"), ("POST", "/sandbox/status/x"), ("PATCH", "/fs/x"),
                                          ("TRACE", "/sandbox"), ("OPTIONS", "/nonsense"), ("PROPFIND", "/"), ("GET", "/sandbox/x/execute")])
def test_wrong_methods_are_refused(api, method, path):
    answer = api.call(method, path)
    assert answer.status in (404, 405, 400, 501), str(answer)
    assert answer.json["success"] is False


@pytest.mark.parametrize("query", ["limit=%zz", "limit=%", "&&&=&", "limit=1&limit=2", "=", "%00=%00", "limit", "limit=", "a" * 7000,
                                   "waitForStatus=" + ",".join(["idle"] * 500), "x=%ff%fe"])
def test_odd_queries_do_no_harm(api, shared, query):
    for path in ("/sandbox", f"/sandbox/{shared.id}", f"/fs/list/{shared.id}"):
        answer = api.get(f"{path}?{query}")
        assert answer.status in (200, 400, 404, 414), str(answer)


# ---- keys ----

def test_without_a_valid_key_nothing_is_told(api, shared):
    same = {"X-Request-Id": "same"}
    answers = [api.get(f"/sandbox/{shared.id}", key=None, headers=same)]
    for header in ("Bearer", "Bearer ", "Bearer x", f"bearer  {api.key}x", f"Basic {base64_of('a:' + api.key)}", api.key, "Bearer " + "x" * 5000,
                   f"Bearer {api.key[:-1]}", f"Bearer {api.key} x", "Bearer \t"):
        answers.append(api.get(f"/sandbox/{shared.id}", key=None, headers={"Authorization": header, **same}))
    for answer in answers:
        check_error(answer, 401, "UNAUTHORIZED")
        assert shared.id not in answer.body.decode()
    assert len({answer.body for answer in answers}) <= 2, "wrong keys can be told apart"  # no key, and a wrong one


def test_a_key_is_asked_for_before_anything_is_looked_at(api):
    for method, path, body in [("POST", "/sandbox", b"{malformed"), ("GET", "/sandbox/sbx_none", None), ("GET", "/sandbox?limit=x", None),
                               ("POST", "/fs/sbx_none", b"x" * 1000000), ("DELETE", "/sandbox/sbx_none", None)]:
        check_error(api.call(method, path, body=body, key=None), 401, "UNAUTHORIZED")


# ---- sizes ----

def test_a_body_beyond_the_limit_is_refused_without_being_read(api):
    with Raw(api.port) as raw:
        raw.send(f"POST /sandbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\nContent-Length: {10 << 30}\r\n\r\n".encode())
        answer = raw.answer("POST")
    assert answer.status == 413 and answer.json["success"] is False


def test_a_body_that_grows_beyond_the_limit_is_refused(api):
    with Raw(api.port) as raw:
        raw.send(f"POST /sandbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        block = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
        for _ in range(100):
            if not raw.send_if_open(block):
                break
        assert b" 413 " in raw.all()[:20]


def test_sixty_megabytes_of_json_are_read(api):
    body = b'{"unknown":"' + b"x" * (60 << 20) + b'"}'
    answer = api.call("POST", "/sandbox", body=body)
    assert answer.status in (200, 201), str(answer)
    api.sandbox(answer.data["sandboxId"]).delete()


def test_the_server_does_not_keep_what_large_bodies_took(api, server):
    body = b'{"unknown":"' + b"x" * (40 << 20) + b'"}'
    together(*[lambda: api.call("POST", "/sandbox/x/execute", body=body) for _ in range(4)])
    until(lambda: resident(server.pid) < 300 << 20, f"the memory to be given back ({resident(server.pid) >> 20} MiB)", 20)


def resident(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.parametrize("head, statuses", [
    (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", {414, 431, 400}),
    (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200000 + b"\r\n\r\n", {431, 400}),
    (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X%d: y\r\n" % n for n in range(2000)) + b"\r\n", {431, 400}),
])
def test_heads_beyond_the_limits_are_refused(api, head, statuses):
    with Raw(api.port) as raw:
        raw.send_if_open(head)
        seen = raw.all()
    assert int(seen.split()[1]) in statuses
    assert b'"success":false' in seen.replace(b" ", b"")


# ---- connections ----

GARBAGE = [
    b"\0" * 1000, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
    b"HELLO\r\n", b"\r\n" * 100, b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\nHost: x\n\n", b"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nX\0Y: z\r\n\r\n", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", b"GET  /  HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET http://evil/nothing HTTP/1.1\r\nHost: x\r\n\r\n", b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_gets_an_answer_or_a_closed_door(api, garbage):
    with Raw(api.port, timeout=30) as raw:
        raw.send(garbage)
        raw.half_close()
        seen = raw.all()
    if seen:
        assert seen.startswith(b"HTTP/1.1 4") or seen.startswith(b"HTTP/1.1 5") and b" 501 " in seen[:20] or b" 505 " in seen[:20], seen[:200]
        assert b" 500 " not in seen[:20] and b" 502 " not in seen[:20] and b" 503 " not in seen[:20]
    assert api.get("/health", key=None).status == 200


def test_pipelined_requests_are_answered_in_order(api, shared):
    ask = f"GET /sandbox/status/{shared.id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n\r\n".encode()
    missing = ask.replace(shared.id.encode(), b"sbx_none")
    with Raw(api.port) as raw:
        raw.send((ask + missing) * 20)
        assert [raw.answer().status for _ in range(40)] == [200, 404] * 20


def test_garbage_after_a_request_does_not_spoil_its_answer(api, shared):
    ask = f"GET /sandbox/status/{shared.id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n\r\n".encode()
    with Raw(api.port) as raw:
        raw.send(ask + b"\0\xffGARBAGE\r\n\r\n" * 10)
        assert raw.answer().data["sandboxId"] == shared.id
        assert b" 400 " in raw.all()[:20]


def test_a_request_hidden_in_a_body_is_not_one(api):
    name = f"smuggled{random.getrandbits(64):x}"
    hidden = f'POST /sandbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\nContent-Length: 40\r\n\r\n{{"name":"{name}"}}'
    for head in (f"POST /nonsense HTTP/1.1\r\nHost: x\r\nContent-Length: {len(hidden)}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 f"POST /nonsense HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\x0bchunked\r\nContent-Length: 4\r\n\r\n",
                 "POST /nonsense HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
                 f"POST /nonsense HTTP/1.1\r\nHost: x\r\nContent-Length: {len(hidden)}\r\n\r\n"):
        with Raw(api.port) as raw:
            raw.send_if_open((head + hidden).encode())
            raw.half_close()
            raw.all()
    assert api.get(f"/sandbox?name={name}").data["total"] == 0


def test_slow_heads_are_cut_and_hold_up_nobody(api, shared):
    slow = [Raw(api.port) for _ in range(200)]
    for raw in slow:
        raw.send(b"GET /sandbox HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    assert shared.run("true").exit_code == 0
    with slow[0] as raw:  # a byte a moment does not help
        raw.socket.settimeout(0.5)
        deadline = time.monotonic() + 40
        seen = b""
        while time.monotonic() < deadline:
            raw.send_if_open(b"x")
            try:
                piece = raw.socket.recv(65536)
                if not piece:
                    break
                seen += piece
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("a head may come as slowly as it likes")
    assert not seen or b" 408 " in seen[:20]
    for raw in slow[1:]:
        raw.close()


def test_a_body_that_never_comes_holds_up_nobody(api, shared):
    waiting = [Raw(api.port) for _ in range(100)]
    for raw in waiting:
        raw.send(f"POST /sandbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\nContent-Length: 100\r\n\r\n{{".encode())
    assert shared.run("true").exit_code == 0
    assert api.create().delete().status == 200
    for raw in waiting:
        raw.reset()


def test_half_closed_connections_get_their_answer(api, shared):
    with Raw(api.port) as raw:
        raw.send(f"GET /sandbox/{shared.id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n\r\n".encode())
        raw.half_close()
        assert raw.answer().data["sandboxId"] == shared.id


def test_a_long_poll_of_a_half_closed_connection_is_answered_or_given_up(sandbox, api):
    id = sandbox.execute("sh", "-c", "until [ -e go ]; do sleep 0.02; done")["executionId"]
    with Raw(api.port) as raw:
        raw.send(f"GET /sandbox/execution/{id}?wait=5m HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n\r\n".encode())
        raw.half_close()
        sandbox.release()
        seen = raw.all()
    assert not seen or b'"executionId"' in seen
    assert api.wait_execution(id)["exitCode"] == 0


def test_connections_are_kept_for_the_next_request(api, shared):
    with Raw(api.port) as raw:
        for _ in range(50):
            raw.send(f"GET /sandbox/status/{shared.id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n\r\n".encode())
            answer = raw.answer()
            assert answer.status == 200
        assert "timeout=" in answer.headers.get("keep-alive", "")


def test_continue_is_said_when_asked_for(api):
    with Raw(api.port) as raw:
        raw.send(f"POST /sandbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\nContent-Length: 2\r\n"
                 "Expect: 100-continue\r\n\r\n".encode())
        assert raw.socket.recv(1000).startswith(b"HTTP/1.1 100 ")
        raw.send(b"{}")
        made = raw.answer("POST").data
    api.sandbox(made["sandboxId"]).delete()


def test_five_hundred_connections_at_once(api, shared):
    raws = [Raw(api.port) for _ in range(500)]
    for raw in raws:
        raw.send(f"GET /sandbox/status/{shared.id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n\r\n".encode())
    assert {raw.answer().status for raw in raws} == {200}
    for raw in raws:
        raw.close()


def test_random_bytes_do_no_harm(api, server):
    noise = random.Random(20240229)
    words = [b"GET ", b"POST ", b"/sandbox", b" HTTP/1.1\r\n", b"Host: x\r\n", b"\r\n", b"Content-Length: ", b"5", b"Transfer-Encoding: chunked\r\n",
             b"{", b"}", b'"', b":", b"\0", b"\xff", b" ", b"Authorization: Bearer " + api.key.encode() + b"\r\n", b"0\r\n\r\n", b"a"]
    for _ in range(300):
        with Raw(api.port) as raw:
            raw.send_if_open(b"".join(noise.choice(words) for _ in range(noise.randrange(1, 60))))
            raw.reset()
    assert server.process.poll() is None
    assert api.get("/health", key=None).status == 200


def test_mutated_requests_do_no_harm(api, server, shared):
    """Bodies that are nearly right, changed at random: 2xx or 4xx, and a word in the envelope."""
    noise = random.Random(1)
    body = dump({"name": "m", "resources": {"memory": "128Mi", "cpu": "500m"}, "env": {"A": "b"}, "timeout": {"idle": "1m"},
                 "files": files_json({"x": "y"}), "command": {"exec": ["true"], "mode": "oneshot"}, "metadata": {"a": [1, 2]}})
    for _ in range(200):
        changed = bytearray(body)
        for _ in range(noise.randrange(1, 4)):
            where = noise.randrange(len(changed))
            changed[where:where + noise.randrange(3)] = bytes([noise.randrange(256) for _ in range(noise.randrange(3))])
        answer = api.call("POST", "/sandbox", body=bytes(changed))
        assert answer.status in (200, 201, 400, 404), str(answer)
        if answer.status < 300:
            api.sandbox(answer.data["sandboxId"]).delete()


def test_a_path_that_takes_other_methods_says_which(api):
    answer = api.put("/sandbox", b"")
    check_error(answer, 405, "METHOD_NOT_ALLOWED", "'/sandbox' takes POST, GET, HEAD, not PUT")
    assert answer.headers["allow"] == "POST, GET, HEAD"
