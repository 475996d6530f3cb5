# SPDX-License-Identifier: Apache-2.0
"""E2B's control plane and process service, by hand."""
import base64
import gzip
import hashlib
import json
import re
import select
import socket
import subprocess
import time
import urllib.parse

import pytest

import e2b as protocol
from client import PATIENCE, until


@pytest.fixture(scope="module")
def e2b(server):
    return protocol.E2b(server.port, server.key)


@pytest.fixture
def new(e2b):
    made = []

    def create(**fields):
        made.append(e2b.create(**fields))
        return made[-1]
    yield create
    for sandbox in made:
        sandbox.kill()


@pytest.fixture(scope="module")
def shared(e2b):
    sandbox = e2b.create(timeout=3600)
    yield sandbox
    sandbox.kill()


def test_a_sandbox_is_made_used_and_ended(e2b, new):
    sandbox = new(metadata={"a": "1"}, envVars={"GREETING": "hello"})
    told = e2b.get(f"/sandboxes/{sandbox.id}").json
    assert told["state"] == "running" and told["metadata"] == {"a": "1"} and told["templateID"] == "base"
    assert told["envdAccessToken"] == sandbox.token
    done = sandbox.run("echo $GREETING; id -u; pwd; echo $HOME $USER; echo oops >&2; exit 3")
    assert done.out["stdout"] == b"hello\n1000\n/home/user\n/home/user user\n" and done.out["stderr"] == b"oops\n"
    assert done.end == {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}
    assert sandbox.http("GET", "/health").status == 204
    assert sandbox.kill().status == 204
    assert sandbox.http("GET", "/health").status == 502
    again = sandbox.kill()
    assert again.status == 404 and again.json["code"] == 404


def test_the_home_is_the_users_own_whoever_had_it_in_the_template(e2b, new):
    before = new()
    assert before.run("chown 1001:1001 /home/user", headers={"Authorization": "Basic cm9vdDo="}).end["exitCode"] == 0
    kept = e2b.post(f"/sandboxes/{before.id}/snapshots", {"name": "anothers-home"})
    assert kept.status == 201
    after = new(templateID=kept.json["snapshotID"])
    assert after.run("stat -c %u:%g . && touch mine && rm mine").out["stdout"] == b"1000:1000\n"
    assert after.http("POST", "/files?path=mine", {"Content-Type": "application/octet-stream"}, body=b"x").status == 200
    assert e2b.delete(f"/templates/{kept.json['snapshotID']}").status in (200, 204)


def test_a_template_whose_homes_are_shut_makes_sandboxes(e2b, new):
    """As of an image in which the user cannot reach its home: root can."""
    before = new()
    assert before.run("rm -r /home/user && chmod 750 /home", headers={"Authorization": "Basic cm9vdDo="}, cwd="/").end["exitCode"] == 0
    kept = e2b.post(f"/sandboxes/{before.id}/snapshots", {"name": "shut-homes"})
    assert kept.status == 201
    after = new(templateID=kept.json["snapshotID"])
    assert after.run("stat -c %u:%g:%a /home /home/user", headers={"Authorization": "Basic cm9vdDo="}, cwd="/").out["stdout"] == b"0:0:750\n1000:1000:755\n"
    assert e2b.delete(f"/templates/{kept.json['snapshotID']}").status in (200, 204)


# ---- what old clients and the Python one send ----

def test_older_clients_make_connect_and_resume(e2b, new):
    sandbox = new(version="", secure=True, autoPause=False, allow_internet_access=False, timeout=300)
    assert e2b.post(f"/sandboxes/{sandbox.id}/connect", {"timeout": 60}).status == 200
    assert e2b.post(f"/sandboxes/{sandbox.id}/resume", {"timeout": 60}).status == 409
    assert e2b.post(f"/sandboxes/{sandbox.id}/refreshes", {"duration": 3600}).status == 204
    assert e2b.post(f"/sandboxes/{sandbox.id}/pause").status == 204
    assert e2b.post(f"/sandboxes/{sandbox.id}/pause").status == 409
    refused = e2b.post(f"/sandboxes/{sandbox.id}/timeout", {"timeout": 60})
    assert refused.status == 404 and refused.json["code"] == 404
    assert sandbox.id not in [item["sandboxID"] for item in e2b.get("/sandboxes").json]
    assert e2b.post(f"/sandboxes/{sandbox.id}/resume", {"timeout": 60}).status == 201
    # Requests for files that only the token names.
    answer = sandbox.http("POST", "/files?path=old", {"E2b-Sandbox-Id": None, "E2b-Sandbox-Port": None, "Content-Type": "application/octet-stream"}, body=b"1")
    assert answer.status == 200 and answer.json == [{"path": "/home/user/old", "name": "old", "type": "file"}]
    assert sandbox.run("cat old").out["stdout"] == b"1"
    # A pause that keeps the files alone.
    assert e2b.post(f"/sandboxes/{sandbox.id}/pause", {"memory": False}).status == 204
    assert e2b.post(f"/v2/sandboxes/{sandbox.id}/connect", {}).status == 201
    assert sandbox.run("cat old").out["stdout"] == b"1"
    assert sandbox.unary("process.Process/List")["processes"] == []


def test_watchers_are_asked(shared):
    shared.run("mkdir -p asked/sub")
    id = shared.unary("filesystem.Filesystem/CreateWatcher", {"path": "asked", "recursive": True})["watcherId"]
    shared.run("echo 1 > asked/sub/x; rm asked/sub/x")
    seen = []

    def has_all():
        told = shared.unary("filesystem.Filesystem/GetWatcherEvents", {"watcherId": id}).get("events", [])
        seen.extend((event["name"], event["type"]) for event in told)
        return ("sub/x", "EVENT_TYPE_CREATE") in seen and ("sub/x", "EVENT_TYPE_REMOVE") in seen
    until(has_all, "the events")
    assert shared.unary("filesystem.Filesystem/RemoveWatcher", {"watcherId": id}) == {}
    with pytest.raises(protocol.Failed) as failed:
        shared.unary("filesystem.Filesystem/GetWatcherEvents", {"watcherId": id})
    assert failed.value.code == "not_found" and failed.value.status == 404


def test_too_many_watchers_are_refused_and_leave_nothing(e2b, new):
    sandbox = new()
    body = b'{"path": "/tmp"}'
    head = "".join(f"{name}: {value}\r\n" for name, value in {**sandbox.headers, "Content-Type": "application/json", "Content-Length": len(body)}.items())
    request = f"POST /filesystem.Filesystem/CreateWatcher HTTP/1.1\r\nHost: {e2b.host}\r\n{head}\r\n".encode() + body
    made = refused = 0
    with socket.create_connection((e2b.host, e2b.port), timeout=60) as connection:
        for _ in range(100):  # a hundred at a time, without waiting for each
            connection.sendall(request * 100)
            told = b""
            while told.count(b"HTTP/1.1 ") < 100 or not told.endswith(b"}"):
                piece = connection.recv(1 << 16)
                assert piece, "it closed the connection"
                told += piece
            made += told.count(b"HTTP/1.1 200 ")
            refused += told.count(b"HTTP/1.1 429 ")
            assert told.count(b'"resource_exhausted"') == told.count(b"HTTP/1.1 429 ")
    assert 0 < made <= 64 and made + refused == 10000
    assert sandbox.run("echo fine").out["stdout"] == b"fine\n"


def test_commands_are_found_by_tag(shared):
    running = shared.start("read line; echo got $line", tag="the tag")
    listed = shared.unary("process.Process/List")["processes"]
    assert [item["config"]["args"] for item in listed if item.get("tag") == "the tag"] == [["-l", "-c", "read line; echo got $line"]]
    follower = shared.connect(tag="the tag")
    assert follower.pid == running.pid
    shared.send(running.pid, b"x\n")
    assert follower.wait().out["stdout"] == running.wait().out["stdout"] == b"got x\n"
    # One that has just ended still tells how.
    assert shared.connect(pid=running.pid).wait().end["exitCode"] == 0


def test_quiet_commands_show_that_they_live_and_calls_end_in_time(shared):
    running = shared.start("sleep 1000", headers={"Keepalive-Ping-Interval": "1"})
    assert running.step() == {"keepalive": {}}
    with pytest.raises(protocol.Failed) as failed:
        shared.connect(timeout_ms=200, pid=running.pid).wait()
    assert failed.value.code == "deadline_exceeded"
    shared.unary("process.Process/SendSignal", {"process": {"pid": running.pid}, "signal": "SIGNAL_SIGTERM"})
    end = running.wait().end
    assert end["exitCode"] == -1 and not end["exited"] and end["status"] == "signal: terminated"


# ---- what must not be ----

def test_envd_opens_for_its_own_token_alone(e2b, new, shared):
    other = new()
    wrong = [{"X-Access-Token": other.token}, {"X-Access-Token": None}, {"X-Access-Token": e2b.key}, {"X-Access-Token": ""},
             {"X-Access-Token": shared.token[:-1] + ("0" if shared.token[-1] != "0" else "1")}]
    for headers in wrong:
        for call in (lambda: shared.unary("process.Process/List", {}, headers=headers, may_fail=True),
                     lambda: shared.http("GET", "/files?path=/etc/passwd", headers),
                     lambda: shared.http("GET", "/envs", headers)):
            answer = call()
            assert answer.status == 401, (headers, str(answer))
    # With the key as well.
    answer = shared.http("GET", "/files?path=/etc/passwd", {"X-Access-Token": None, "X-API-KEY": e2b.key, "Authorization": f"Bearer {e2b.key}"})
    assert answer.status == 401
    # A token of one names the other by header: the header counts.
    assert shared.http("GET", "/files?path=x", {"E2b-Sandbox-Id": other.id}).status == 401
    # The token opens nothing of the control plane.
    assert e2b.get("/v2/sandboxes", key=shared.token).status == 401


def test_sandboxes_that_are_not_there_answer_502(shared, e2b):
    for headers in ({"E2b-Sandbox-Id": "0" * 26}, {"E2b-Sandbox-Id": "nonsense"}, {"E2b-Sandbox-Id": "../../etc"}):
        for path in ("/health", "/files?path=x", "/envs"):
            answer = shared.http("GET", path, headers)
            assert answer.status == 502 and answer.json["code"] == 502, (headers, path, str(answer))
    assert shared.http("GET", "/health", {"E2b-Sandbox-Port": None}).status == 400
    assert shared.http("GET", "/health", {"E2b-Sandbox-Port": "x"}).status == 400
    assert shared.http("GET", "/", {"E2b-Sandbox-Port": "1"}).status == 502
    # By the name of a host.
    host = {"E2b-Sandbox-Id": None, "E2b-Sandbox-Port": None}
    assert shared.http("GET", "/health", {**host, "Host": f"49983-{shared.id}.example.com"}).status == 204
    assert shared.http("GET", "/health", {**host, "X-Access-Token": None, "Host": f"49983-{'0' * 26}.example.com:80"}).status == 502


def sign(token, path, operation, user="", expiration=None):
    text = f"{path}:{operation}:{user}:{token}" + (f":{expiration}" if expiration is not None else "")
    return "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def test_signatures_open_one_file_for_one_thing_for_their_time(e2b, shared):
    shared.run("echo -n content > signed")
    now = int(time.time())

    def get(method="GET", **parameters):
        query = urllib.parse.urlencode({name: value for name, value in parameters.items() if value is not None})
        return e2b.call(method, f"/files?{query}", key=None, body=b"x" if method == "POST" else None,
                        headers={"Content-Type": "application/octet-stream"} if method == "POST" else {})
    good = sign(shared.token, "signed", "read")
    assert get(path="signed", signature=good).body == b"content"
    timed = sign(shared.token, "signed", "read", "root", now + 600)
    assert get(path="signed", username="root", signature=timed, signature_expiration=now + 600).status == 404  # in /root
    bad = [
        dict(path="other", signature=good), dict(path="signed", signature=good, username="root"),
        dict(path="signed", signature=good[:-1] + "A" if good[-1] != "A" else good[:-1] + "B"),
        dict(path="signed", signature=good, signature_expiration=now + 600), dict(path="signed", signature=""), dict(path="signed"),
        dict(path="signed", signature=sign(shared.token, "signed", "read", "", now - 5), signature_expiration=now - 5),
        dict(path="signed", signature=sign(shared.token, "signed", "read", "", "soon"), signature_expiration="soon"),
        dict(path="signed", signature=sign(shared.token, "signed", "write")), dict(path="signed", signature=sign("", "signed", "read")),
    ]
    for parameters in bad:
        answer = get(**parameters)
        assert answer.status == 401 and answer.json["code"] == 401, (parameters, str(answer))
    assert get("POST", path="signed", signature=good).status == 401
    assert get("POST", path="signed", signature=sign(shared.token, "signed", "write")).status == 200
    assert get(path="signed", signature=good).body == b"x"


def test_messages_that_are_none(shared):
    stream, unary = "process.Process/Start", "process.Process/List"
    whole = protocol.envelope({"process": {"cmd": "true"}})
    bad = [b"", b"\0", whole[:4], whole[:-1], whole + b"x", whole + whole, b"\1" + whole[1:], b"\2" + whole[1:], b"\x7f" + whole[1:],
           b"\0\xff\xff\xff\xff{}", protocol.envelope(b"{"), protocol.envelope(b"[]"), protocol.envelope(b"null"), protocol.envelope(b"\xff\xfe"),
           protocol.envelope(b'{"process":1}'), protocol.envelope({"process": {"cmd": 1}}), protocol.envelope({"process": {"cmd": "x", "args": "y"}}),
           protocol.envelope({"process": {"cmd": "x"}, "pty": {"size": {"cols": -1, "rows": 70000}}}), protocol.envelope({}),
           protocol.envelope({"process": {"cmd": "a\0b"}})]
    for body in bad:
        with pytest.raises(protocol.Failed) as failed:
            next(shared.stream(stream, None, body=body))
        assert failed.value.code == "invalid_argument", (body[:40], str(failed.value))
    with pytest.raises(protocol.Failed) as failed:
        next(shared.stream(stream, None, body=protocol.envelope(b"[" * 100000)))
    assert failed.value.code == "resource_exhausted"
    for body in (b"{", b"[]", b'"x"', b"\xff"):
        answer = shared.unary(unary, body=body, may_fail=True)
        assert answer.status == 400 and answer.json["code"] == "invalid_argument"
    answer = shared.unary(unary, body=b"{}", headers={"Content-Type": "application/proto"}, may_fail=True)
    assert answer.status == 415
    with pytest.raises(protocol.Failed) as failed:
        shared.stream(stream, None, body=whole, headers={"Content-Type": "application/json"})
    assert failed.value.status == 415
    assert shared.unary("process.Process/NoSuch", may_fail=True).json["code"] == "unimplemented"
    running = shared.start("cat")
    for text in ("%%%", "YQ", "YQ==YQ==", "ä"):
        answer = shared.unary("process.Process/SendInput", {"process": {"pid": running.pid}, "input": {"stdin": text}}, may_fail=True)
        assert answer.status == 400 and answer.json["code"] == "invalid_argument"
    for message, code in (({"process": {"pid": running.pid}, "input": {"pty": "YQ=="}}, "internal"), ({"process": {}, "input": {"stdin": ""}}, "unimplemented"),
                          ({"process": {"pid": 4000000000}, "input": {"stdin": ""}}, "not_found"), ({"process": {"pid": -1}}, "invalid_argument")):
        answer = shared.unary("process.Process/SendInput", message, may_fail=True)
        assert answer.json["code"] == code, (message, str(answer))
    shared.unary("process.Process/CloseStdin", {"process": {"pid": running.pid}})
    assert running.wait().end["exitCode"] == 0


def test_a_message_that_is_too_large_is_refused(shared):
    answer = shared.unary("process.Process/List", body=b"x" * (65 << 20), may_fail=True)
    assert answer.status in (413, 429) and answer.json["code"] == "resource_exhausted"


def test_commands_that_cannot_be_run(shared):
    for command, code in (({"cmd": "/no/such/program"}, "invalid_argument"), ({"cmd": "/etc/passwd"}, "invalid_argument")):
        with pytest.raises(protocol.Failed) as failed:
            shared.run(command)
        assert failed.value.code == code
    with pytest.raises(protocol.Failed) as failed:
        shared.run("true", cwd="/no/such")
    assert failed.value.code == "invalid_argument"
    with pytest.raises(protocol.Failed) as failed:
        shared.run("true", cwd="~root/x")
    assert failed.value.code == "invalid_argument"


def test_a_stream_that_is_left_leaves_the_command_running_until_its_time(shared):
    running = shared.start("echo $$ > left; sleep 1000 & wait", timeout_ms=3000)
    running.stream.close()
    assert running.pid in [item["pid"] for item in shared.unary("process.Process/List")["processes"]]
    until(lambda: running.pid not in [item["pid"] for item in shared.unary("process.Process/List")["processes"]], "its time to be over")


def test_input_that_nobody_reads_goes_with_its_client(e2b, new):
    """A process that does not read makes its client wait; what waits takes room that others of the key need."""
    sandbox, mib = new(), 12
    deaf = sandbox.start("sleep 1000", timeout_ms=0)
    waiting = []

    def send(pid):
        body = json.dumps({"process": {"pid": pid}, "input": {"stdin": base64.b64encode(b"x" * (mib << 20)).decode()}}).encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in sandbox.headers.items())
        connection = socket.create_connection(("127.0.0.1", e2b.port), timeout=60)
        try:
            connection.sendall(f"POST /process.Process/SendInput HTTP/1.1\r\nHost: x\r\n{head}Content-Type: application/json\r\n"
                               f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        except OSError:  # it was answered before
            pass
        return connection

    answered = []
    while not answered and len(waiting) < 64:  # more than there is room for
        waiting.append(send(deaf.pid))
        answered = select.select(waiting, [], [], 0)[0]
    if not answered:
        answered = select.select(waiting, [], [], PATIENCE)[0]
    assert answered and answered[0].recv(12) == b"HTTP/1.1 429" and len(waiting) > 2
    for connection in waiting:
        connection.close()
    reader = sandbox.start("cat > /dev/null", timeout_ms=0)

    def is_taken():
        with send(reader.pid) as connection:
            return connection.recv(12) == b"HTTP/1.1 200"
    until(is_taken, "the room to be free again")


def form(parts, boundary="xyz", end=True):
    text = b""
    for name, filename, content in parts:
        extra = f'; filename="{filename}"' if filename is not None else ""
        text += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n\r\n'.encode() + content + b"\r\n"
    return text + (f"--{boundary}--\r\n".encode() if end else b"")


def test_forms_that_are_none(shared):
    type = "multipart/form-data; boundary=xyz"

    def send(body, content_type=type, path=None, **headers):
        return shared.http("POST", "/files" + (f"?path={path}" if path else ""), {"Content-Type": content_type, **headers}, body=body)
    good = form([("note", None, b"skipped"), ("file", "f1", b"one"), ("file", "d/f2", b"\r\n--xy not yet\r\n")])
    assert [item["path"] for item in send(good).json] == ["/home/user/f1", "/home/user/d/f2"]
    assert shared.http("GET", "/files?path=d/f2").body == b"\r\n--xy not yet\r\n"
    packed = gzip.compress(good)
    assert send(packed, **{"Content-Encoding": "gzip"}).status == 200
    bad = [
        (form([("file", "a", b"")], end=False), type), (b"", type), (b"nothing", type), (good, "multipart/form-data"), (good, "text/plain"),
        (good, "multipart/form-data; boundary=" + "x" * 200), (form([("note", None, b"")]), type), (form([("file", None, b"")]), type),
        (form([("file", "same", b"1"), ("file", "./same", b"2")]), type), (form([("file", "~root/x", b"")]), type),
        (b"--xyz\r\n\r\nno head\r\n--xyz--\r\n", type), (b"--xyz\r\n" + b"X: y\r\n" * 3000, type), (b"--xyzz\r\n", type),
    ]
    for body, content_type in bad:
        answer = send(body, content_type)
        assert answer.status in (400, 413, 429), (body[:60], str(answer))
        assert answer.json["code"] == answer.status
    for body in (packed[:-5], b"no gzip", packed[:20] + b"\0\0\0" + packed[23:]):
        assert send(body, **{"Content-Encoding": "gzip"}).status == 400
    assert send(good, **{"Content-Encoding": "br"}).status == 400
    assert send(b"x", "application/octet-stream").status == 400  # without a path
    assert shared.http("GET", "/files?path=same").status == 404
    assert shared.http("GET", "/files?path=/etc/shadow", ).status in (403, 404, 500)


def test_each_file_of_a_form_gets_its_own_bytes_or_none_is_written(shared):
    files = {f"many/{i}": bytes([i]) * size for i, size in enumerate((0, 1, 70_000, 0, 65_536, 3))} | {"many/last": b"\r\n--xy" * 30_000}

    def send(body, **headers):
        return shared.http("POST", "/files", {"Content-Type": "multipart/form-data; boundary=xyz", **headers}, body=body)
    parts = [("file", name, content) for name, content in files.items()]
    parts.insert(3, ("note", None, b"passed over" * 10_000))
    for body, headers in ((form(parts), {}), (gzip.compress(form(parts)), {"Content-Encoding": "gzip"})):
        shared.run("rm -rf many")
        assert [item["path"] for item in send(body, **headers).json] == [f"/home/user/{name}" for name in files]
        assert {name: shared.http("GET", f"/files?path={name}").body for name in files} == files
    # A form is refused when all of it has come, so that a client that still sends hears why.
    rest = ("file", "many/rest", bytes(8 << 20))
    for bad in (form([("file", "many/1", b"other"), ("file", "many/1", b"again"), rest]), form([("file", "many/1", b"other"), rest], end=False)):
        assert send(bad).status == 400
    assert shared.http("GET", "/files?path=many/1").body == b"\1" and shared.http("GET", "/files?path=many/rest").status == 404


def test_parts_of_files_are_told(shared):
    shared.http("POST", "/files?path=parts", {"Content-Type": "application/octet-stream"}, body=b"0123456789")

    def get(range):
        answer = shared.http("GET", "/files?path=parts", {"Range": range})
        return answer.status, answer.body, answer.headers.get("content-range")
    assert get("bytes=2-4") == (206, b"234", "bytes 2-4/10")
    assert get("bytes=7-") == (206, b"789", "bytes 7-9/10")
    assert get("bytes=-3") == (206, b"789", "bytes 7-9/10")
    assert get("bytes=5-100") == (206, b"56789", "bytes 5-9/10")
    for whole in ("bytes=4-2", "lines=1-2", "bytes=x", "bytes=0-1,3-4"):
        assert get(whole)[:2] == (200, b"0123456789"), whole
    assert get("bytes=10-")[0] == 416


def test_files_are_put_together(shared, new):
    def put(name, content):
        assert shared.http("POST", f"/files?path={name}", {"Content-Type": "application/octet-stream"}, body=content).status == 200

    def compose(headers=None, **fields):
        return shared.http("POST", "/files/compose", {"Content-Type": "application/json", **(headers or {})}, body=json.dumps(fields).encode())
    put("c1", b"one"), put("c2", b""), put("c3", b"three" * 50000)
    answer = compose(source_paths=["c1", "c2", "/home/user/c3", "c1"], destination="made/whole")
    assert answer.status == 200 and answer.json == {"path": "/home/user/made/whole", "name": "whole", "type": "file"}, str(answer)
    assert shared.http("GET", "/files?path=made/whole").body == b"one" + b"three" * 50000 + b"one"
    assert [shared.http("GET", f"/files?path={name}").status for name in ("c1", "c2", "c3")] == [404] * 3
    put("c1", b"one")
    assert compose(source_paths=["c1", "missing"], destination="made/other").status == 404
    assert shared.http("GET", "/files?path=c1").body == b"one" and shared.http("GET", "/files?path=made/other").status == 404
    for fields in ({}, {"source_paths": [], "destination": "x"}, {"source_paths": "c1", "destination": "x"}, {"source_paths": ["c1"]},
                   {"source_paths": ["c1"], "destination": "~other/x"}, {"source_paths": ["c1"], "destination": "/tmp"}, {"source_paths": ["/tmp"], "destination": "x"}):
        assert compose(**fields).status == 400, fields
    assert compose(source_paths=["c1"], destination="x", username="a b").status == 401
    assert compose({"X-Access-Token": new().token}, source_paths=["c1"], destination="x").status == 401
    assert compose(source_paths=["c1"], destination="c1").status == 200
    assert shared.http("GET", "/files?path=c1").body == b"one"


def test_create_refuses_what_cannot_be(e2b):
    for body in ({}, {"templateID": 1}, {"templateID": "base", "timeout": 0}, {"templateID": "base", "timeout": -1}, {"templateID": "base", "timeout": "x"},
                 {"templateID": "base", "envVars": {"A": 1}}, {"templateID": "base", "envVars": {"A=B": "1"}}, {"templateID": "base", "metadata": [1]},
                 {"templateID": "base", "autoPauseMemory": False}, {"templateID": "base", "autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}},
                 {"templateID": "base", "mcp": {"x": {}}}, {"templateID": "base", "volumeMounts": [{"name": "v"}]}, {"templateID": "base", "network": {"rules": {"a": []}}},
                 {"templateID": "base", "network": {"allowOut": ["1.1.1.1"], "denyOut": ["8.8.8.8"]}}):
        answer = e2b.post("/v2/sandboxes", body)
        assert answer.status == 400 and answer.json["code"] == 400, (body, str(answer))
    assert e2b.post("/v2/sandboxes", body=b"{").status == 400
    assert e2b.post("/v2/sandboxes", {"templateID": "nowhere"}).status == 404
    for path in ("/sandboxes/x", "/sandboxes/" + "0" * 26, "/sandboxes/%2e%2e"):
        answer = e2b.get(path)
        assert answer.status == 404 and answer.json["code"] == 404
    assert e2b.get("/v2/sandboxes?limit=0").status == 400 and e2b.get("/v2/sandboxes?state=x").status == 400
    assert e2b.get("/v2/sandboxes?nextToken=x").status == 400 and e2b.get("/v2/sandboxes?metadata=%25zz").status == 400
    for path in ("/volumes", "/secrets"):
        answer = e2b.get(path, may_fail=True)
        assert answer.status == 501 and answer.json["code"] == 501
    assert e2b.post("/v2/sandboxes", {"templateID": "base"}, key=None).status == 401


def test_bodies_may_come_in_chunks(e2b):
    text = json.dumps({"templateID": "base"}).encode()
    answer = e2b.post("/v2/sandboxes", body=(text[i:i + 1] for i in range(len(text))), headers={"Content-Type": "application/json"})
    assert answer.status == 201
    assert e2b.delete(f"/sandboxes/{answer.json['sandboxID']}").status == 204


def test_keys_are_spelled_either_way(server, e2b):
    made = subprocess.run([server.burrow, "key", "create", "--e2b", "--data", server.data], check=True, capture_output=True, text=True).stdout.strip()
    assert re.fullmatch(r"e2b_[0-9a-f]{65}", made)
    assert e2b.get("/v2/sandboxes", key=made).status == 200
    bits = int(made[4:], 16)
    usual = "brw_" + "".join("0123456789abcdefghjkmnpqrstvwxyz"[bits >> 5 * i & 31] for i in reversed(range(52)))
    assert e2b.get("/v2/sandboxes", key=usual).status == 200
    assert e2b.get("/v2/sandboxes", key=made[:-1] + ("0" if made[-1] != "0" else "1")).status == 401


# ---- a restart ----

def test_a_command_goes_on_over_a_restart_and_no_byte_is_lost(own_server):
    server = own_server(environment={"BURROW_E2B_RUNTIME": "base:latest"})
    sandbox = protocol.E2b(server.port, server.key).create(timeout=600)
    running = sandbox.start("for i in $(seq 1 2000); do echo $i; done; while [ ! -e go ]; do sleep 0.05; done; seq 2001 4000")
    running.until(b"10\n")
    listen = f"127.0.0.1:{server.port}"
    server.kill()
    running.stream.close()
    server.listen = listen
    server.start()
    sandbox.e2b = protocol.E2b(server.port, server.key)
    again = sandbox.connect(pid=running.pid)
    sandbox.run("touch go")
    assert again.wait().out["stdout"] == b"".join(b"%d\n" % i for i in range(1, 4001))
    assert again.end["exitCode"] == 0
    sandbox.kill()


# ---- networks ----

def network_of(api, sandbox):
    return api.get(f"/api/v1/sandboxes/sbx_{sandbox.id}/network").json


def test_networks_are_ours(api, e2b, new):
    closed = new(allow_internet_access=False)
    assert network_of(api, closed)["enabled"] is False
    assert e2b.get(f"/sandboxes/{closed.id}").json["allowInternetAccess"] is False
    assert e2b.put(f"/sandboxes/{closed.id}/network", json={"allowOut": ["1.1.1.1"]}).status == 204
    told = network_of(api, closed)  # what was named, and no more
    assert (told["enabled"], told["default"], told["allow"]) == (True, "deny", ["1.1.1.1"])
    assert network_of(api, new())["enabled"] is True
    some = new(network={"allowOut": ["1.1.1.1", "example.com"], "denyOut": ["0.0.0.0/0"]})
    told = network_of(api, some)
    assert told["allow"] == ["1.1.1.1", "example.com"] and told["default"] == "deny"
    assert e2b.get(f"/sandboxes/{some.id}").json["network"]["allowOut"] == ["1.1.1.1", "example.com"]
    assert e2b.put(f"/sandboxes/{some.id}/network", json={"denyOut": ["8.8.8.8"]}).status == 204
    told = network_of(api, some)
    assert told["deny"] == ["8.8.8.8"] and told["default"] == "allow" and not told.get("allow")
    assert e2b.put(f"/sandboxes/{some.id}/network", json={"allow_internet_access": False}).status == 204
    told = network_of(api, some)
    assert told["default"] == "deny" and not told.get("allow")


# ---- what it uses ----

def test_metrics_have_a_past_while_something_runs(e2b, new):
    sandbox = new()
    path = f"/sandboxes/{sandbox.id}/metrics"
    assert all(one["timestampUnix"] for one in e2b.get(path).json)
    running = sandbox.start("while sleep 0.1; do :; done", timeout_ms=0)
    told = until(lambda: len(found := e2b.get(path).json) >= 4 and found, "samples to be taken")
    running.stream.close()
    times = [one["timestamp"] for one in told]
    assert times == sorted(times) and len(set(times)) == len(times)
    assert any(one["cpuUsedPct"] > 0 for one in told[:-1]) and all(one["memUsed"] > 0 and one["memTotal"] == told[0]["memTotal"] for one in told)
    middle = told[1]["timestampUnix"]
    assert {one["timestamp"] for one in e2b.get(f"{path}?end={middle}").json} == {one["timestamp"] for one in told if one["timestampUnix"] <= middle}
    assert {one["timestamp"] for one in told[:-1] if one["timestampUnix"] > middle} <= {one["timestamp"] for one in e2b.get(f"{path}?start={middle + 1}").json}
    assert not [one for one in e2b.get(f"{path}?start={middle + 1}").json if one["timestampUnix"] <= middle]
    assert e2b.get(f"{path}?start={middle}&end={middle - 1}").json == [] == e2b.get(f"{path}?end=1").json


def test_a_frame_is_told_by_columns(sandbox):
    """Rows that are too short are filled up; a column without a name is left out."""
    code = ("class DataFrame:\n __module__ = 'pandas.core'\n def head(self, n): return self\n"
            " def to_json(self, **_): return '{\"columns\":[\"a\",2,null,\"c\"],\"index\":[0,1],\"data\":[[1,2,3,4],[5]]}'\nDataFrame()")
    answer = sandbox.http("POST", "/execute", headers={"E2b-Sandbox-Port": "49999"}, json={"code": code})
    result = next(line for line in map(json.loads, answer.body.splitlines()) if line["type"] == "result")
    assert result["data"] == {"a": [1, 5], "2": [2, None], "c": [4, None]}
