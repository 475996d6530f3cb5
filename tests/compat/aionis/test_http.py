# SPDX-License-Identifier: Apache-2.0
"""What every route has in common: bodies, headers, methods, keys, the order of checks."""
import json

import pytest

from aionis import ROUTES, TOP, UUID, check_refused, issues_of
from client import Raw

SESSION = {"session_id": "00000000-0000-4000-8000-000000000000", "action": {"kind": "command", "argv": ["echo"]}}


def raw(aionis, route, body, content_type="application/json", **kwargs):
    headers = {"Content-Type": content_type} if content_type else {}
    return aionis.http.call("POST", TOP + route, body=body, headers=headers, may_fail=True, **kwargs)


# ---- bodies ----

@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("body", [b"null", b"[]", b"[{}]", b'"text"', b"17", b"true"])
def test_a_body_that_is_no_object(aionis, route, body):
    assert issues_of(raw(aionis, route, body)) == [""]


@pytest.mark.parametrize("route", ROUTES)
def test_no_body_at_all(aionis, route):
    assert issues_of(raw(aionis, route, None, None)) == [""]


@pytest.mark.parametrize("route", ROUTES)
def test_a_body_of_plain_text(aionis, route):
    assert issues_of(raw(aionis, route, b"{}", "text/plain")) == [""]


@pytest.mark.parametrize("body", [b"", b"{", b"{}}", b"{'a':1}", b"{\"a\":}", b"\xff", b"{\"a\":\"\xff\"}", b"nul", b"\x00"])
def test_malformed_json_is_the_clients_fault(aionis, body):
    """The vendor's server says 500."""
    for route in ROUTES:
        assert issues_of(raw(aionis, route, body)) == [""]


@pytest.mark.parametrize("body", [{"__proto__": 1}, {"metadata": {"a": [{"__proto__": {}}]}}])
def test_a_prototype_is_refused(aionis, body):
    """The vendor's server says 500."""
    assert issues_of(raw(aionis, "sessions", json.dumps(body).encode())) == [""]


@pytest.mark.parametrize("content_type", ["application/xml", "application/x-www-form-urlencoded", "application/jsonx", None])
def test_another_type_of_content(aionis, content_type):
    """The vendor's server says 500."""
    check_refused(raw(aionis, "sessions", b"{}", content_type), 415, "unsupported_media_type")


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/json;x=y"])
def test_json_however_it_is_announced(aionis, content_type):
    assert raw(aionis, "sessions", b"{}", content_type).status == 200


def test_a_body_over_the_limit(aionis):
    """The vendor's server says 500."""
    body = json.dumps({"metadata": {"a": "x" * (5 << 20)}}).encode()
    answer = aionis.http.post(f"{TOP}sessions", body=body, headers={"Content-Type": "application/json", "X-Request-Id": "mine"}, may_fail=True)
    check_refused(answer, 413, "payload_too_large")
    assert answer.headers["x-request-id"] == "mine"
    chunks = iter([body[:1 << 20], body[1 << 20:]])
    check_refused(raw(aionis, "sessions", chunks), 413, "payload_too_large")


def test_a_body_just_under_the_limit(aionis):
    body = json.dumps({"metadata": {"a": "x" * ((5 << 20) - 100)}}).encode()
    assert raw(aionis, "sessions", body).status == 200


@pytest.mark.parametrize("route", ROUTES)
def test_faults_are_all_told_in_the_order_of_the_fields(aionis, route):
    fields = {
        "sessions": {"metadata": [], "ttl_seconds": "1", "profile": "x", "actor": 1, "scope": 1, "tenant_id": 1},
        "execute": {"metadata": 1, "action": {"argv": [1, "", "a"], "kind": 1}, "timeout_ms": 0, "mode": "x", "decision_id": "x",
                    "planner_run_id": "", "session_id": "x", "actor": "", "project_id": "", "scope": "", "tenant_id": ""},
        "runs/get": {"run_id": "x", "scope": 1, "tenant_id": 1},
        "runs/logs": {"tail_bytes": 0, "run_id": 1, "scope": 1, "tenant_id": 1},
        "runs/artifact": {"bundle_inline": 1, "include_metadata": 1, "include_result": 1, "include_output": "true",
                          "include_action": None, "tail_bytes": 1.5, "run_id": None, "scope": 1, "tenant_id": 1},
        "runs/cancel": {"reason": "", "run_id": "", "actor": 1, "scope": 1, "tenant_id": 1},
    }[route]
    expected = {
        "sessions": ["tenant_id", "scope", "actor", "profile", "ttl_seconds", "metadata"],
        "execute": ["tenant_id", "scope", "project_id", "actor", "session_id", "planner_run_id", "decision_id", "mode", "timeout_ms",
                    "action.kind", "action.argv.0", "action.argv.1", "metadata"],
        "runs/get": ["tenant_id", "scope", "run_id"],
        "runs/logs": ["tenant_id", "scope", "run_id", "tail_bytes"],
        "runs/artifact": ["tenant_id", "scope", "run_id", "tail_bytes", "include_action", "include_output", "include_result",
                          "include_metadata", "bundle_inline"],
        "runs/cancel": ["tenant_id", "scope", "actor", "run_id", "reason"],
    }[route]
    assert issues_of(aionis.post(route, fields)) == expected


@pytest.mark.parametrize("route, missing", [("execute", ["session_id", "action"]), ("runs/get", ["run_id"]), ("runs/logs", ["run_id"]),
                                            ("runs/artifact", ["run_id"]), ("runs/cancel", ["run_id"])])
def test_what_is_needed_is_missed(aionis, route, missing):
    assert issues_of(aionis.post(route, {})) == missing


def test_unknown_fields_are_passed_over(aionis, session):
    assert aionis.run(session, "echo", "hi", unknown={"a": [None]}, argv=1, action2=2)["exit_code"] == 0


def test_of_a_field_that_is_there_twice_the_last_counts(aionis):
    answer = raw(aionis, "sessions", b'{"profile":"x","scope":"a","metadata":{"k":1,"j":2,"k":3},"scope":"b","profile":"restricted"}')
    assert answer.json["scope"] == "b" and answer.json["session"]["profile"] == "restricted"
    assert list(answer.json["session"]["metadata"].items()) == [("k", 3), ("j", 2)]


# ---- headers and methods ----

@pytest.mark.parametrize("query", ["tenant_id=x&a=b", "a=%zz&&=", "%", "&".join(["a"] * 300)])
def test_the_query_is_passed_over(aionis, query):
    assert aionis.post(f"sessions?{query}", {}).json["tenant_id"] == "default"


@pytest.mark.parametrize("path", [f"{TOP}sessions/", f"{TOP}", "/v1/memory/other"])
def test_there_is_nothing_else(aionis, path):
    """A trailing slash is another route."""
    answer = aionis.http.post(path, {}, headers={"X-Request-Id": "mine"}, may_fail=True)
    assert check_refused(answer, 404, "not_found") is None
    assert answer.headers["x-request-id"] == "mine"


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_other_methods(aionis, route, method):
    answer = aionis.http.call(method, TOP + route, {}, may_fail=True)
    assert answer.status in (404, 405)
    assert answer.headers["x-request-id"]


def test_an_id_of_the_request_is_said_back(aionis):
    for sent, back in [("abc", "abc"), ("  a b ", "a b")]:
        assert aionis.post("sessions", {}, headers={"X-Request-Id": sent}).headers["x-request-id"] == back
        assert aionis.post("runs/get", {}, headers={"X-Request-Id": sent}).headers["x-request-id"] == back
    for headers in ({}, {"X-Request-Id": "   "}):
        first, second = (aionis.post("sessions", {}, headers=headers).headers["x-request-id"] for _ in range(2))
        assert UUID.fullmatch(first) and first != second


def test_a_sync_run_says_it_back_too(aionis, session):
    answer = aionis.post("execute", {**SESSION, "session_id": session, "mode": "sync"}, headers={"X-Request-Id": "mine"})
    assert answer.json["run"]["status"] == "succeeded"
    assert answer.headers["x-request-id"] == "mine"


def test_a_connection_serves_many(aionis, server):
    head = f"POST {TOP}sessions HTTP/1.1\r\nHost: x\r\nX-Api-Key: {server.key}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    with Raw(server.port) as connection:
        for _ in range(3):
            assert connection.send(head.encode()).answer("POST").status == 200


# ---- the key ----

@pytest.mark.parametrize("route", ROUTES)
def test_a_key_is_needed(aionis, route):
    """The vendor's server asks for none."""
    for headers in ({}, {"X-Api-Key": "x"}, {"Authorization": "Bearer x"}, {"X-Api-Key": ""}):
        answer = aionis.post(route, {}, headers=headers, key=None)
        check_refused(answer, 401, "unauthorized")


def test_a_key_in_either_header(aionis, server):
    for headers in ({"X-Api-Key": server.key}, {"Authorization": f"Bearer {server.key}"}):
        assert aionis.post("sessions", {}, headers=headers, key=None).status == 200


def test_one_key_is_good_for_every_tenant(aionis):
    assert [aionis.call("sessions", tenant_id=tenant)["tenant_id"] for tenant in ("a", "b")] == ["a", "b"]


# ---- pages of others ----

def test_no_page_may_call_unless_it_is_named(aionis):
    """The vendor's server lets every page."""
    for answer in (aionis.post("sessions", {}, headers={"Origin": "https://evil.example"}),
                   aionis.http.call("OPTIONS", f"{TOP}sessions", headers={"Origin": "https://evil.example"}, key=None)):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_page_that_is_named_may_call(own_server):
    _, aionis = own_server(CORS_ALLOW_ORIGINS="https://a.example, https://b.example:8443")
    for origin in ("https://a.example", "https://b.example:8443"):
        before = aionis.http.call("OPTIONS", f"{TOP}execute", headers={"Origin": origin}, key=None)
        assert before.status == 204
        assert before.headers["access-control-allow-origin"] == origin
        assert before.headers["access-control-allow-methods"] == "GET,POST,OPTIONS"
        assert before.headers["access-control-allow-headers"] == "content-type,x-api-key,x-tenant-id,authorization,x-request-id"
        assert before.headers["access-control-expose-headers"] == "x-request-id"
        assert before.headers["access-control-max-age"] == "600"
        for answer in (aionis.post("sessions", {}, headers={"Origin": origin}), aionis.post("runs/get", {}, headers={"Origin": origin})):
            assert answer.headers["access-control-allow-origin"] == origin
    for origin in ("https://a.example.evil", "https://a.exampl", "http://a.example", "null"):
        assert "access-control-allow-origin" not in aionis.post("sessions", {}, headers={"Origin": origin}).headers


# ---- what is not here ----

@pytest.mark.parametrize("path", ["", "/sandbox-budgets", "/sandbox-budgets/t", "/sandbox-project-budgets/t/p", "/diagnostics/tenant/t",
                                  "/a/b/c/d"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
def test_administration_is_not_part_of_lite(aionis, path, method):
    answer = aionis.http.call(method, f"/v1/admin/control{path}", may_fail=True)
    details = check_refused(answer, 501, "server_only_in_lite")
    assert (details["contract"], details["edition"], details["supported_in_lite"]) == ("lite_error_v1", "lite", False)
    assert {"route", "surface", "route_group", "reason", "unsupported", "fallback_applied"} <= set(details)


# ---- health ----

def test_health_tells_of_the_sandbox(aionis):
    whole = aionis.http.get("/health", key=None).json
    assert whole["ok"] is True
    assert whole["runtime"] == {"edition": "lite", "mode": "local"} and whole["storage"] == {"backend": "lite_sqlite"}
    health = whole["sandbox"]
    assert health == {
        "enabled": True, "mode": "local_process", "queue_depth": health["queue_depth"], "active_runs": health["active_runs"],
        "max_concurrency": 2, "remote_executor_configured": False, "remote_executor_timeout_ms": None,
        "remote_executor_allowlist_count": None, "remote_executor_egress_cidr_count": None, "remote_executor_deny_private_ips": None,
        "remote_executor_mtls_enabled": None, "heartbeat_interval_ms": 5000, "stale_after_ms": 120000, "recovery_poll_interval_ms": 15000,
        "tenant_budget": {"window_hours": 24, "tenant_count": 0}, "remote_egress": {"cidr_count": 0, "deny_private_ips": True},
        "artifact_object_store": {"base_uri_configured": False}}
    assert "/" not in str(whole["sandbox"])


def test_the_routes_are_in_the_openapi_document(aionis):
    paths = aionis.http.get("/openapi.json", key=None).json["paths"]
    for route in ROUTES:
        schema = paths[TOP + route]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert "tenant_id" in schema["properties"]
    assert paths[f"{TOP}execute"]["post"]["requestBody"]["content"]["application/json"]["schema"]["required"] == ["session_id", "action"]
