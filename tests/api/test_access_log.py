# SPDX-License-Identifier: Apache-2.0
"""One line in the log for each request, and what a request is called in answers and in the log."""
import json
import re
import subprocess

import pytest
import server as servers
from client import Raw, check_error, until

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def logging(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("log") / "data", options=["--log", "json"])
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


def lines_of(server, request):
    """The lines about one request, once the one of its end is there."""
    def find():
        lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{") and line.endswith("}")]
        found = [line for line in lines if line.get("request") == request]
        return found if any(line["message"] == "request" for line in found) else None
    return until(find, f"request {request} in the log")


def line_of(server, request):
    found = [line for line in lines_of(server, request) if line["message"] == "request"]
    assert len(found) == 1, found
    return found[0]


def named(id):
    return {"X-Request-Id": id}


def test_a_request_is_told_with_who_what_and_how_long(logging):
    client = logging.client
    sandbox = client.create(headers=named("made-1"))
    made = line_of(logging, "made-1")
    assert made["level"] == "info" and (made["method"], made["status"], made["route"]) == ("POST", 201, "/sandbox")
    assert made["sandbox"] == sandbox.id and sandbox.id.startswith("sbx_")
    assert made["key"] and logging.key.startswith(made["key"]) and len(made["key"]) <= 12
    assert made["us"] > 0 and made["bytes"] > 0 and made["whole"] is True and made["peer"].startswith("127.0.0.1:")
    client.get(f"/sandbox/{sandbox.id}", headers=named("got-1"))
    got = line_of(logging, "got-1")
    assert (got["status"], got["route"], got["sandbox"]) == (200, "/sandbox/{id}", sandbox.id)
    started = sandbox.execute("true")
    client.get(f"/sandbox/execution/{started['executionId']}?wait=30s", headers=named("waited-1"))
    assert line_of(logging, "waited-1")["sandbox"] == sandbox.id
    sandbox.delete()


def test_refusals_are_told(logging):
    client = logging.client
    client.get("/sandbox", key=None, headers=named("nobody-1"))
    assert (line := line_of(logging, "nobody-1"))["status"] == 401 and line["key"] is None
    client.get("/sandbox", key="brw_" + "w" * 52, headers=named("wrong-1"))
    assert (line := line_of(logging, "wrong-1"))["status"] == 401 and line["key"] == "brw_" + "w" * 8
    client.get("/no/such/path", headers=named("nothing-1"))
    assert (line := line_of(logging, "nothing-1"))["status"] == 404 and line["route"] is None
    client.call("POST", "/sandbox", body=b"{", headers={**named("broken-1"), "Content-Type": "application/json"})
    assert line_of(logging, "broken-1")["status"] == 400


def test_secrets_are_not_told(logging):
    client = logging.client
    stream = client.new_stream()
    client.put(f"/stream/{stream}", b"hello", headers=named("put-1"))
    client.get(f"/stream/{stream}?offset=1", key=None, headers=named("read-1"))
    assert line_of(logging, "put-1")["route"] == "/stream/{id}" and line_of(logging, "read-1")["bytes"] == 4
    assert stream not in logging.log and stream.removeprefix("stream_") not in logging.log
    assert logging.key not in logging.log.replace("The first key", "")


def test_a_stream_is_told_when_it_ends(logging):
    client = logging.client
    stream = client.new_stream()
    raw = Raw(client.port, client.host)
    raw.send(f"GET /stream/{stream} HTTP/1.1\r\nHost: here\r\nX-Request-Id: follow-1\r\n\r\n".encode())
    assert raw.response().status == 200
    assert "follow-1" not in logging.log
    client.post(f"/stream/{stream}/append", body=b"12345")
    client.post(f"/stream/{stream}/complete")
    assert (line := line_of(logging, "follow-1"))["bytes"] == 5 and line["whole"] is True


def test_a_client_that_leaves_without_an_answer_is_told(logging):
    client = logging.client
    sandbox = client.create()
    started = sandbox.execute("sleep", "600")
    raw = Raw(client.port, client.host)
    raw.send(f"GET /sandbox/execution/{started['executionId']}?wait=280s HTTP/1.1\r\nHost: here\r\nX-Request-Id: left-1\r\n"
             f"Authorization: Bearer {logging.key}\r\n\r\n".encode())
    raw.close()
    line = line_of(logging, "left-1")
    assert line["route"] == "/sandbox/execution/{executionId}"
    assert line["status"] in (200, 499), "answered with what was, or not at all"
    sandbox.delete()


def test_every_answer_says_what_its_request_is_called(api):
    assert api.get("/health", headers=named("my own/7")).headers["x-request-id"] == "my own/7"
    made = {api.get(path).headers["x-request-id"] for path in ("/health", "/sandbox", "/no/such", "/sandbox/sbx_x", "/openapi.json")}
    assert len(made) == 5 and all(UUID.fullmatch(id) for id in made)
    assert UUID.fullmatch(api.get("/health", headers=named("x" * 128)).headers["x-request-id"])
    assert UUID.fullmatch(api.get("/health", headers=named("a\x7fb")).headers["x-request-id"])
    raw = Raw(api.port, api.host)
    raw.send(b"GET /health HTTP/1.1\r\nbroken\r\n\r\n")
    answer = raw.response()
    assert answer.status == 400 and UUID.fullmatch(answer.getheader("X-Request-Id"))


def test_every_failure_says_what_its_request_is_called(api):
    answer = api.get("/sandbox/sbx_x", headers=named("mine-1"))
    check_error(answer, 404, "SANDBOX_NOT_FOUND")
    assert answer.json["requestId"] == "mine-1"
    assert api.get("/api/v1/system/df", key=None, headers=named("mine-2")).json["requestId"] == "mine-2"
    assert api.post("/v1/memory/sandbox/sessions", [], headers=named("mine-3")).json["request_id"] == "mine-3"


def test_a_path_that_takes_another_method_says_so(api):
    for method, path, allowed in (("PUT", "/sandbox", "GET, HEAD, POST"), ("DELETE", "/sandbox/runtimes", "GET, HEAD"),
                                  ("GET", "/list", "POST")):
        answer = api.call(method, path, body=b"")
        check_error(answer, 405, "METHOD_NOT_ALLOWED", path)
        assert set(allowed.split(", ")) <= set(answer.headers["allow"].split(", ")), str(answer.headers)


def test_the_root_says_where_to_look(api):
    assert api.get("/", key=None).json["vendorsOpenapi"] == "/openapi.json"


@pytest.mark.parametrize("words", [["--listen", "nonsense"], ["--region", ""]])
def test_the_last_words_are_json_too(tmp_path, words):
    done = subprocess.run([servers.BURROW, "serve", "--log", "json", "--data", tmp_path / "d", *words], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 2
    line = json.loads(done.stderr)
    assert line["level"] == "error" and line["error"]
