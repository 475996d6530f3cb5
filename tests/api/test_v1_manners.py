# SPDX-License-Identifier: Apache-2.0
"""Manners of burrow's own API: what every route does without its handler knowing."""
import gzip
import http.client
import threading

import pytest

from client import check_problem, pages, until, waiting_for

INFO = "/api/v1/runtimes"
ORIGIN = "https://app.example.com"


@pytest.fixture(scope="module")
def polite(tmp_path_factory):
    """A server whose operator named an origin and a rate."""
    import server as servers
    server = servers.Server(tmp_path_factory.mktemp("manners") / "data",
                            options=["--api-origins", f"{ORIGIN}, http://localhost:3000", "--api-rate", "1", "--api-burst", "40"])
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


# ---- representation ----


def test_the_same_answer_has_the_same_etag_and_is_not_sent_again(api):
    first, second = api.get(INFO), api.get(INFO)
    tag = first.headers["etag"]
    assert tag == second.headers["etag"] and tag.startswith('"') and first.body == second.body
    for sent in (tag, f'"x", {tag}', "*", f"W/{tag}"):
        answer = api.get(INFO, headers={"If-None-Match": sent})
        assert answer.status == 304 and answer.body == b"" and answer.headers["etag"] == tag, sent
    for sent in ('"x"', tag[:-2] + '"', tag + "x", ""):
        assert api.get(INFO, headers={"If-None-Match": sent}).status == 200, sent
    assert api.get(f"{INFO}?limit=1").headers["etag"] != tag


def test_head_is_answered_wherever_get_is(api):
    for path in (INFO, "/api/v1/system/info", "/api/v1/openapi.json"):
        got, head = api.get(path), api.call("HEAD", path)
        assert head.status == 200 and head.body == b"" and head.headers["content-type"] == "application/json"
        assert head.headers["content-length"] == str(len(got.body)) or path.endswith("info")
    assert api.call("HEAD", "/api/v1/nowhere").status == 404


def test_long_answers_are_compressed_for_those_who_take_it(server, api):
    catalog = server.data / "catalog"
    catalog.mkdir(exist_ok=True)
    files = [catalog / f"many{i}.yaml" for i in range(12)]
    for i, file in enumerate(files):
        file.write_text(f"name: many{i}\ntags: [latest]\ndescription: of this machine\nbuild:\n  kind: host\n")
    try:
        whole = api.get(INFO)
        assert len(whole.body) > 1024 and "content-encoding" not in whole.headers and whole.headers["vary"] == "Accept-Encoding"
        for accept in ("gzip", "deflate, gzip;q=0.5", "*"):
            packed = api.get(INFO, headers={"Accept-Encoding": accept})
            assert packed.headers["content-encoding"] == "gzip" and len(packed.body) < len(whole.body) / 2
            assert gzip.decompress(packed.body) == whole.body
            assert packed.headers["etag"] != whole.headers["etag"]  # other bytes
            again = api.get(INFO, headers={"Accept-Encoding": accept, "If-None-Match": packed.headers["etag"]})
            assert again.status == 304
        for accept in ("", "br", "gzip;q=0", "identity", "x-gzip"):
            assert "content-encoding" not in api.get(INFO, headers={"Accept-Encoding": accept}).headers
        short = api.get(f"{INFO}?limit=1", headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in short.headers
    finally:
        for file in files:
            file.unlink()


def test_failures_are_not_tagged(api):
    answer = api.get("/api/v1/nowhere", headers={"If-None-Match": "*", "Accept-Encoding": "gzip"})
    check_problem(answer, 404, "route_not_found")
    assert "etag" not in answer.headers


# ---- pages of others ----


def test_no_page_may_call_unless_the_operator_says_so(api):
    answer = api.get(INFO, headers={"Origin": ORIGIN})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    check_problem(api.call("OPTIONS", INFO, key=None), 405, "method_not_allowed")


def test_a_page_of_a_named_origin_may_call(polite):
    api = polite.client
    for origin in (ORIGIN, "http://localhost:3000"):
        asked = api.call("OPTIONS", INFO, key=None, headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
        assert asked.status == 204 and asked.headers["access-control-allow-origin"] == origin
        assert "DELETE" in asked.headers["access-control-allow-methods"]
        assert "Idempotency-Key" in asked.headers["access-control-allow-headers"]
        answer = api.get(INFO, headers={"Origin": origin})
        assert answer.headers["access-control-allow-origin"] == origin and "ETag" in answer.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in answer.headers
    refused = api.get(INFO, key=None, headers={"Origin": ORIGIN})
    check_problem(refused, 401, "unauthorized")
    assert refused.headers["access-control-allow-origin"] == ORIGIN  # a page can say why
    for answer in (api.get("/api/v1/nowhere", headers={"Origin": ORIGIN}), api.delete(INFO, headers={"Origin": ORIGIN}), api.get("/api/v1/%00", headers={"Origin": ORIGIN})):
        assert answer.status in (400, 404, 405) and answer.headers["access-control-allow-origin"] == ORIGIN, str(answer)


@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", "https://app.example.com.evil.com", "https://APP.example.com", "*"])
def test_a_page_of_any_other_origin_may_not(polite, origin):
    for answer in (polite.client.get(INFO, headers={"Origin": origin}),
                   polite.client.call("OPTIONS", INFO, key=None, headers={"Origin": origin})):
        assert "access-control-allow-origin" not in answer.headers and answer.headers["vary"]


# ---- how often ----


def test_a_key_is_told_how_much_it_has_left_and_is_refused_then(polite):
    api = polite.client
    answer = api.get(INFO)
    left = int(answer.headers["ratelimit-remaining"])
    assert answer.headers["ratelimit-limit"] == "40" and left < 40 and int(answer.headers["ratelimit-reset"]) >= 1
    refused = None
    for _ in range(400):  # one comes back each second
        answer = api.get(INFO)
        if answer.status == 429:
            refused = answer
            break
    check_problem(refused, 429, "rate_limited")
    assert refused.headers["ratelimit-remaining"] == "0" and int(refused.headers["retry-after"]) >= 1
    assert api.get("/sandbox/runtimes").status == 200  # only this API counts
    assert api.get("/api/v1/openapi.json", key=None).status == 200  # nobody's key


def test_there_is_no_limit_unless_the_operator_says_so(api):
    assert not [name for name in api.get(INFO).headers if name.startswith("ratelimit")]


# ---- the top ----


def test_people_get_a_page_and_programs_json(api):
    for accept in ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"):
        page = api.get("/", key=None, headers={"Accept": accept})
        assert page.status == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
        assert b"/api/v1/openapi.json" in page.body and b"default-src 'none'" in page.headers["content-security-policy"].encode()
    for headers in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        top = api.get("/", key=None, headers=headers).json
        assert top["name"] == "burrow" and top["version"] in page.body.decode()
        for name in ("openapi", "vendorsOpenapi", "health"):
            assert api.get(top[name], key=None).status == 200


def test_streams_are_not_kept_back_by_proxies(sandbox, api):
    started = sandbox.execute("sh", "-c", f"echo now; {waiting_for()}")
    follower = api.follow(started["stdoutStreamUrl"])
    try:
        assert follower.response.getheader("X-Accel-Buffering") == "no"
        assert follower.wait_for(b"now")
    finally:
        follower.close()
        sandbox.delete()



# ---- once ----


@pytest.mark.parametrize("what, count", [("executions", 24), ("sandboxes", 8)])
def test_what_was_asked_for_once_is_there_once_after_a_kill(own_server, what, count):
    """Answered or not, before the server was killed or after: each key has made one thing, and every answer names it."""
    server = own_server()
    path, body = "/api/v1/sandboxes", {"idleTimeoutMs": "1h"}
    if what == "executions":
        path, body = f"{path}/{server.client.post(path, body).json['id']}/executions", {"command": ["true"]}
    keys = [f"key-{number}" for number in range(count)]
    seen = {key: set() for key in keys}

    def send(key, before_kill):
        try:
            answer = server.client.post(path, body, headers={"Idempotency-Key": key})
        except (OSError, http.client.HTTPException):
            assert before_kill
            return
        if answer.status < 300:
            seen[key].add(answer.json["id"])
        else:
            assert answer.status == 409 and answer.json["code"] == "idempotency_pending", str(answer)

    senders = [threading.Thread(target=send, args=(key, True)) for key in keys]
    for sender in senders:
        sender.start()
    until(lambda: sum(map(len, seen.values())) >= 3, "some answers")
    server.kill()
    for sender in senders:
        sender.join()
    server.start()
    for key in keys + keys:
        until(lambda: send(key, False) or seen[key], f"an answer to {key}")
    assert all(len(ids) == 1 for ids in seen.values()), seen
    there, _ = pages(server.client, path, 100)
    made = {id for ids in seen.values() for id in ids}
    # What was being made when the server was killed is there as failed, and nobody was told of it.
    assert made <= {entry["id"] for entry in there} and len(made) == count
    assert {entry["id"] for entry in there if entry.get("state") != "failed"} == made
