# SPDX-License-Identifier: Apache-2.0
"""The vendor's settings by their names, burrow's own in the file, and what stops the start."""
import json
import socket
import sqlite3
import threading

import audit
import pytest

from aionis import ROUTES, TOP, Aionis, Refused, check_refused, issues_of, sandbox_of
from client import Client, together, until

FORWARDED = {"TRUST_PROXY": "true", "TRUSTED_PROXY_CIDRS": "127.0.0.0/8, ::1"}


def refusal(fn):
    with pytest.raises(Refused) as refused:
        fn()
    return refused.value


# ---- what stops the start ----

@pytest.mark.parametrize("settings, words", [
    ({"SANDBOX_EXECUTOR_MODE": "mock"}, "mock"),
    ({"SANDBOX_EXECUTOR_MODE": "http_remote"}, "http_remote"),
    ({"SANDBOX_EXECUTOR_MODE": "docker"}, "there is no executor 'docker'"),
    ({"BURROW_AIONIS_EXECUTOR": "mock"}, "mock"),
    ({"LITE_SANDBOX_PROFILE": "local_process_everything"}, "there is no preset 'local_process_everything'"),
    ({"SANDBOX_ENABLED": "yes"}, "SANDBOX_ENABLED must be true or false, not 'yes'"),
    ({"SANDBOX_ADMIN_ONLY": "1"}, "SANDBOX_ADMIN_ONLY"),
    ({"SANDBOX_ALLOWED_COMMANDS_JSON": "[]"}, "no command may be run"),
    ({"SANDBOX_ALLOWED_COMMANDS_JSON": '[" ", 1]'}, "no command may be run"),
    ({"SANDBOX_ALLOWED_COMMANDS_JSON": "echo"}, "must be a JSON array"),
    ({"SANDBOX_ALLOWED_COMMANDS_JSON": "[echo;ls]"}, "must be a JSON array"),
    ({"SANDBOX_ALLOWED_COMMANDS_JSON": '{"a":1}'}, "must be a JSON array"),
    ({"SANDBOX_EXECUTOR_MAX_CONCURRENCY": "0"}, "SANDBOX_EXECUTOR_MAX_CONCURRENCY"),
    ({"SANDBOX_EXECUTOR_MAX_CONCURRENCY": "17"}, "SANDBOX_EXECUTOR_MAX_CONCURRENCY"),
    ({"SANDBOX_EXECUTOR_MAX_CONCURRENCY": "two"}, "SANDBOX_EXECUTOR_MAX_CONCURRENCY"),
    ({"SANDBOX_EXECUTOR_TIMEOUT_MS": "0"}, "SANDBOX_EXECUTOR_TIMEOUT_MS"),
    ({"SANDBOX_EXECUTOR_TIMEOUT_MS": "600001"}, "SANDBOX_EXECUTOR_TIMEOUT_MS"),
    ({"SANDBOX_EXECUTOR_TIMEOUT_MS": "15s"}, "SANDBOX_EXECUTOR_TIMEOUT_MS"),
    ({"SANDBOX_STDIO_MAX_BYTES": "0"}, "SANDBOX_STDIO_MAX_BYTES"),
    ({"SANDBOX_STDIO_MAX_BYTES": "1048577"}, "SANDBOX_STDIO_MAX_BYTES"),
    ({"SANDBOX_RUN_HEARTBEAT_INTERVAL_MS": "60001"}, "SANDBOX_RUN_HEARTBEAT_INTERVAL_MS"),
    ({"SANDBOX_RUN_HEARTBEAT_INTERVAL_MS": "5000", "SANDBOX_RUN_STALE_AFTER_MS": "5000"}, "must be less than SANDBOX_RUN_STALE_AFTER_MS"),
    ({"SANDBOX_RUN_STALE_AFTER_MS": "0"}, "SANDBOX_RUN_STALE_AFTER_MS"),
    ({"SANDBOX_RUN_STALE_AFTER_MS": "86400001"}, "SANDBOX_RUN_STALE_AFTER_MS"),
    ({"SANDBOX_RUN_RECOVERY_POLL_INTERVAL_MS": "300001"}, "SANDBOX_RUN_RECOVERY_POLL_INTERVAL_MS"),
    ({"SANDBOX_RUN_RECOVERY_BATCH_SIZE": "0"}, "SANDBOX_RUN_RECOVERY_BATCH_SIZE"),
    ({"SANDBOX_RUN_RECOVERY_BATCH_SIZE": "10001"}, "SANDBOX_RUN_RECOVERY_BATCH_SIZE"),
    ({"SANDBOX_RETENTION_DAYS": "soon"}, "SANDBOX_RETENTION_DAYS"),
    ({"SANDBOX_TENANT_BUDGET_WINDOW_HOURS": "0"}, "SANDBOX_TENANT_BUDGET_WINDOW_HOURS"),
    ({"SANDBOX_TENANT_BUDGET_WINDOW_HOURS": "169"}, "SANDBOX_TENANT_BUDGET_WINDOW_HOURS"),
    ({"SANDBOX_TENANT_BUDGET_POLICY_JSON": "["}, "budgets"),
    ({"SANDBOX_TENANT_BUDGET_POLICY_JSON": "[]"}, "budgets"),
    ({"SANDBOX_TENANT_BUDGET_POLICY_JSON": '{"a":1}'}, "budget of 'a'"),
    ({"SANDBOX_TENANT_BUDGET_POLICY_JSON": '{"a":{"daily_run_cap":-1}}'}, "daily_run_cap"),
    ({"SANDBOX_TENANT_BUDGET_POLICY_JSON": '{"a":{"daily_failure_cap":"1"}}'}, "daily_failure_cap"),
    ({"WRITE_RATE_LIMIT_MAX_WAIT_MS": "5001"}, "WRITE_RATE_LIMIT_MAX_WAIT_MS"),
    ({"SANDBOX_WRITE_RATE_LIMIT_RPS": "0"}, "SANDBOX_WRITE_RATE_LIMIT_RPS"),
    ({"RATE_LIMIT_ENABLED": "on"}, "RATE_LIMIT_ENABLED"),
    ({"TRUST_PROXY": "true", "TRUSTED_PROXY_CIDRS": "10.0.0.0/33"}, "10.0.0.0/33"),
    ({"TRUST_PROXY": "true", "TRUSTED_PROXY_CIDRS": "everywhere"}, "everywhere"),
    ({"SANDBOX_ARTIFACT_OBJECT_STORE_BASE_URI": "bucket"}, "no scheme"),
    ({"SANDBOX_RETENTION_DAYS": "0"}, "SANDBOX_RETENTION_DAYS"),
    ({"SANDBOX_RETENTION_DAYS": "1", "SANDBOX_TENANT_BUDGET_WINDOW_HOURS": "25", "SANDBOX_TENANT_BUDGET_POLICY_JSON": '{"*":{}}'},
     "runs must be kept"),
    ({"MEMORY_TENANT_ID": "a b"}, "MEMORY_TENANT_ID 'a b' cannot be a tenant"),
    ({"MEMORY_SCOPE": "tenant:x"}, "MEMORY_SCOPE 'tenant:x' cannot be a scope"),
    ({"CORS_ALLOW_ORIGINS": "*"}, "every page"),
    ({"CORS_ALLOW_ORIGINS": "https://a.example,*"}, "every page"),
])
def test_what_cannot_be_stops_the_start(refused_start, settings, words):
    assert words in refused_start(**settings)


# ---- settings that are seen ----

@pytest.mark.parametrize("text, allowed, refused", [
    ('["echo"]', "echo", "true"),
    ('[" echo ","true",7,""]', "true", "false"),
    ("'[\"echo\",\"true\"]'", "true", "false"),
    ("[echo, true]", "true", "false"),
    (None, "echo", "true"),
])
def test_the_list_of_commands(own_server, text, allowed, refused):
    _, aionis = own_server(SANDBOX_ALLOWED_COMMANDS_JSON=text or "")
    session = aionis.session()
    assert aionis.run(session, allowed)["status"] == "succeeded"
    assert aionis.run(session, refused)["error"] == "sandbox_command_not_allowed"


def test_a_preset_narrows_the_list_unless_there_is_one(own_server):
    _, narrow = own_server(LITE_SANDBOX_PROFILE="local_process_echo", SANDBOX_ALLOWED_COMMANDS_JSON="")
    assert narrow.run(narrow.session(), "true")["error"] == "sandbox_command_not_allowed"
    _, wide = own_server(LITE_SANDBOX_PROFILE="local_process_echo", SANDBOX_ALLOWED_COMMANDS_JSON='["true"]')
    assert wide.run(wide.session(), "true")["status"] == "succeeded"
    assert wide.run(wide.session(), "echo")["error"] == "sandbox_command_not_allowed"


def test_times_sizes_and_names(own_server):
    _, aionis = own_server(SANDBOX_EXECUTOR_TIMEOUT_MS="50", SANDBOX_STDIO_MAX_BYTES="10", SANDBOX_EXECUTOR_MAX_CONCURRENCY="3",
                           MEMORY_TENANT_ID="house", MEMORY_SCOPE="kitchen", SANDBOX_EXECUTOR_WORKDIR=".tmp/sandbox",
                           SANDBOX_RUN_HEARTBEAT_INTERVAL_MS="0", SANDBOX_RUN_STALE_AFTER_MS="7000", SANDBOX_RUN_RECOVERY_POLL_INTERVAL_MS="0",
                           SANDBOX_TENANT_BUDGET_WINDOW_HOURS="2", SANDBOX_TENANT_BUDGET_POLICY_JSON='{"a":{},"*":{"daily_run_cap":0}}')
    answer = aionis.call("sessions")
    assert (answer["tenant_id"], answer["scope"]) == ("house", "kitchen")
    session = answer["session"]["session_id"]
    run = aionis.run(session, "sleep", "30")
    assert (run["status"], run["timeout_ms"]) == ("timeout", 50)
    run = aionis.sh(session, "pwd", timeout_ms=5000)
    assert run["output"] == {"stdout": "/workspace"[:10], "stderr": "", "truncated": True}
    health = aionis.health()
    assert (health["max_concurrency"], health["heartbeat_interval_ms"], health["stale_after_ms"]) == (3, 0, 7000)
    assert health["recovery_poll_interval_ms"] == 0 and health["tenant_budget"] == {"window_hours": 2, "tenant_count": 2}


def test_burrows_own_names_in_the_file(own_server, tmp_path):
    path = tmp_path / "burrow.yaml"
    path.write_text("""
BURROW_AIONIS_COMMANDS: [echo, pwd]
BURROW_AIONIS_TIMEOUT: 20s
BURROW_AIONIS_TENANT: house
BURROW_AIONIS_DIRECTORY: /srv/work
BURROW_AIONIS_CONCURRENCY: 5
BURROW_AIONIS_BUDGETS:
  house: {daily_failure_cap: 1}
""")
    _, aionis = own_server(options=["--config", path], SANDBOX_ALLOWED_COMMANDS_JSON="", BURROW_AIONIS_CONCURRENCY="4")
    session = aionis.session()
    run = aionis.run(session, "pwd")
    assert (run["output"]["stdout"], run["timeout_ms"]) == ("/srv/work\n", 20000)
    assert aionis.health()["max_concurrency"] == 4
    assert aionis.run(session, "ls")["error"] == "sandbox_command_not_allowed"
    assert refusal(lambda: aionis.run(session, "pwd")).error == "sandbox_tenant_budget_failure_cap_exceeded"


def test_the_vendors_name_wins_over_the_file_and_burrows_over_both(own_server, tmp_path):
    path = tmp_path / "burrow.yaml"
    path.write_text("BURROW_AIONIS_TIMEOUT: 1s\nBURROW_AIONIS_TENANT: a\nBURROW_AIONIS_ENABLED: true\n")
    _, aionis = own_server(options=["--config", path], SANDBOX_EXECUTOR_TIMEOUT_MS="2000", MEMORY_TENANT_ID="b", BURROW_AIONIS_TENANT="c")
    answer = aionis.call("sessions")
    assert answer["tenant_id"] == "c"
    assert aionis.run(answer["session"]["session_id"], "echo")["timeout_ms"] == 2000


# ---- turned off, and admins ----

def test_turned_off(own_server):
    _, aionis = own_server(SANDBOX_ENABLED="False", SANDBOX_ALLOWED_COMMANDS_JSON="[]", SANDBOX_ADMIN_ONLY="true")
    for route in ROUTES:
        for body in (b"{}", b"[]", b"{", b""):
            for key in (aionis.http.key, None, "wrong"):
                headers = {"Content-Type": "application/json"}
                answer = aionis.http.call("POST", TOP + route, body=body, headers=headers, key=key, may_fail=True)
                assert check_refused(answer, 400, "sandbox_disabled") is None
    assert aionis.health()["enabled"] is False
    assert aionis.http.create().delete().status == 200


def test_admins_only(own_server):
    _, aionis = own_server(SANDBOX_ADMIN_ONLY="TRUE", ADMIN_TOKEN=" secret ")
    for route in ROUTES:
        for headers in ({}, {"X-Admin-Token": "wrong"}, {"X-Admin-Token": "secret2"}, {"X-Admin-Token": ""}):
            for body in ({}, []):
                assert check_refused(aionis.post(route, body, headers=headers), 401, "unauthorized_admin") is None
        check_refused(aionis.post(route, {}, headers={"X-Admin-Token": "secret"}, key=None), 401, "unauthorized")
    assert aionis.post("sessions", {}, headers={"X-Admin-Token": " secret"}).status == 200
    assert issues_of(aionis.post("runs/get", {}, headers={"X-Admin-Token": "secret"})) == ["run_id"]


def test_admins_only_without_any(own_server):
    _, aionis = own_server(SANDBOX_ADMIN_ONLY="true")
    for route in ROUTES:
        assert check_refused(aionis.post(route, {}, headers={"X-Admin-Token": "x"}), 503, "admin_not_configured") is None


# ---- budgets ----

BUDGETS = {"runs": {"daily_run_cap": 3}, "slow": {"daily_timeout_cap": 1}, "bad": {"daily_failure_cap": 2}, "free": {"daily_run_cap": 0},
           "none": {"daily_run_cap": None}, "*": {"daily_run_cap": 1}}


def test_budgets(own_server):
    _, server = own_server(SANDBOX_TENANT_BUDGET_POLICY_JSON=json.dumps(BUDGETS))

    def client(tenant, scope="default"):
        aionis = server.of(tenant_id=tenant, scope=scope)
        return aionis, aionis.session()

    # Every state counts, in all scopes; it wins over what is wrong with the body.
    aionis, session = client("runs")
    aionis.run(session, "echo")
    aionis.run(session, "ls")
    other, elsewhere = client("runs", "other")
    other.run(elsewhere, "echo")
    found = refusal(lambda: aionis.execute(session, "echo", project_id="p"))
    assert (found.status, found.error, found.answer.headers["retry-after"]) == (429, "sandbox_tenant_budget_run_cap_exceeded", "60")
    expected = {"tenant_id": "runs", "project_id": "p", "metric": "total_runs", "used": 3, "cap": 3, "window_hours": 24, "scope": "default",
                "scope_filter": None, "project_filter": None, "policy_source": "env_tenant_default"}
    assert found.details == expected and list(found.details) == list(expected)
    assert refusal(lambda: other.call("execute", session_id=7)).details == {**expected, "project_id": None, "scope": "other"}
    assert aionis.session()

    # Timeouts; a timeout is a failure too, a cancel is none.
    aionis, session = client("slow")
    aionis.run(session, "ls")
    aionis.run(session, "sleep", "30", timeout_ms=100)
    found = refusal(lambda: aionis.execute(session, "echo"))
    assert (found.error, found.details["metric"], found.details["used"]) == ("sandbox_tenant_budget_timeout_cap_exceeded", "timeout_runs", 1)

    aionis, session = client("bad")
    run = aionis.start(session, "sleep", "30")
    aionis.cancel(run)
    aionis.wait(run)
    aionis.sh(session, "exit 1")
    aionis.run(session, "echo")
    aionis.run(session, "sleep", "30", timeout_ms=100)
    found = refusal(lambda: aionis.execute(session, "echo"))
    assert (found.error, found.details["metric"], found.details["used"]) == ("sandbox_tenant_budget_failure_cap_exceeded", "failed_runs", 2)

    # No cap; and the one of all others.
    for tenant in ("free", "none"):
        aionis, session = client(tenant)
        assert {aionis.run(session, "echo")["status"] for _ in range(3)} == {"succeeded"}
    aionis, session = client("anybody")
    aionis.run(session, "echo")
    assert refusal(lambda: aionis.execute(session, "echo")).details["policy_source"] == "env_global_default"


def test_a_run_that_was_told_to_have_ended_counts(own_server):
    """Also when its end is not recorded yet."""
    server, aionis = own_server(SANDBOX_TENANT_BUDGET_POLICY_JSON='{"*":{"daily_timeout_cap":1}}')
    session = aionis.session()
    run = aionis.start(session, "sleep", "30", timeout_ms=1000)
    until(lambda: audit.rows(server, "SELECT 1 FROM executions WHERE state <> 'queued'"), "it to be recorded as running")
    with audit.writing(server) as end:
        assert aionis.wait(run)["status"] == "timeout"
        threading.Timer(0.3, end).start()
        assert refusal(lambda: aionis.execute(session, "echo")).details["used"] == 1


def test_callers_at_once_do_not_overrun_a_budget(own_server):
    """On the vendor's server they can."""
    _, aionis = own_server(SANDBOX_TENANT_BUDGET_POLICY_JSON='{"*":{"daily_run_cap":10}}')
    session = aionis.session()

    def run(mode):
        try:
            aionis.execute(session, "echo", mode=mode)
            return 200
        except Refused as refused:
            return refused.status
    statuses = together(*[lambda i=i: run("sync" if i % 2 else "async") for i in range(24)])
    assert statuses.count(200) == 10 and statuses.count(429) == 14


def change(server, *statements):
    """In its database, behind its back."""
    with sqlite3.connect(server.data / "burrow.db", timeout=30) as database:
        for statement in statements:
            database.execute(statement)
    database.close()


def test_what_was_run_before_the_window_is_not_counted(own_server):
    server, aionis = own_server(SANDBOX_TENANT_BUDGET_POLICY_JSON='{"*":{"daily_run_cap":2}}', SANDBOX_TENANT_BUDGET_WINDOW_HOURS="2")
    session = aionis.session()
    runs = [aionis.run(session, "echo")["run_id"] for _ in range(2)]
    assert refusal(lambda: aionis.run(session, "echo")).details["window_hours"] == 2
    change(server, f"UPDATE executions SET created_at = created_at - {2 * 3600 * 1000} WHERE created_at = (SELECT min(created_at) FROM executions)")
    assert aionis.run(session, "echo")["status"] == "succeeded"
    assert refusal(lambda: aionis.run(session, "echo")).details["used"] == 2
    assert [aionis.get(run)["status"] for run in runs] == ["succeeded"] * 2


def test_a_budget_that_cannot_be_read_lets_nobody_run(own_server):
    server, aionis = own_server(SANDBOX_TENANT_BUDGET_POLICY_JSON='{"a":{"daily_run_cap":2}}')
    aionis = aionis.of(tenant_id="a")
    session = aionis.session()
    change(server, "ALTER TABLE executions RENAME TO elsewhere")
    found = refusal(lambda: aionis.run(session, "echo"))
    assert (found.status, found.error) == (503, "sandbox_budget_unavailable")
    assert found.details == {"tenant_id": "a", "table": "executions"}
    change(server, "ALTER TABLE elsewhere RENAME TO executions")
    assert aionis.run(session, "echo")["status"] == "succeeded"


# ---- the order of checks ----

def test_the_first_thing_that_is_wrong_is_told(own_server):
    """Body, admin, rate, budget, fields, names, session."""
    _, aionis = own_server(SANDBOX_ADMIN_ONLY="true", ADMIN_TOKEN="boss", SANDBOX_TENANT_BUDGET_POLICY_JSON='{"used":{"daily_run_cap":1}}',
                           SANDBOX_WRITE_RATE_LIMIT_RPS="0.001", SANDBOX_WRITE_RATE_LIMIT_BURST="6", WRITE_RATE_LIMIT_MAX_WAIT_MS="0",
                           **FORWARDED)
    boss = {"X-Admin-Token": "boss"}
    remote = {**boss, "X-Forwarded-For": "192.0.2.1"}
    unknown = "00000000-0000-4000-8000-000000000000"
    action = {"kind": "command", "argv": ["echo"]}
    session = aionis.call("sessions", headers=boss, tenant_id="used")["session"]["session_id"]
    aionis.call("execute", headers=boss, tenant_id="used", session_id=session, mode="sync", action=action)
    expired = aionis.call("sessions", headers=boss, ttl_seconds=1)["session"]["session_id"]

    def check(headers, body, status, error):
        answer = aionis.post("execute", headers={"Content-Type": "application/json", **headers},
                             body=body if isinstance(body, bytes) else json.dumps(body).encode())
        check_refused(answer, status, error)
    check({}, b"{", 400, "invalid_request")
    check({"X-Forwarded-For": "192.0.2.1"}, {"tenant_id": "used", "session_id": 1}, 401, "unauthorized_admin")
    check(remote, {"tenant_id": "used", "session_id": 1}, 429, "sandbox_tenant_budget_run_cap_exceeded")
    check({**remote, "X-Tenant-Id": "used"}, {"tenant_id": 1, "session_id": 1}, 429, "sandbox_tenant_budget_run_cap_exceeded")
    check(remote, {"tenant_id": " ", "session_id": 1, "action": action}, 400, "invalid_request")
    check(remote, {"tenant_id": " ", "scope": " ", "session_id": unknown, "action": action}, 400, "invalid_tenant_id")
    check(remote, {"scope": " ", "session_id": unknown, "action": action}, 400, "invalid_scope")
    until(lambda: aionis.post("execute", {"session_id": expired, "action": action}, headers=boss).status == 409, "the session to expire")
    check(remote, {"scope": "other", "session_id": expired, "action": action}, 404, "sandbox_session_not_found")
    check(remote, {"tenant_id": "used", "session_id": 1}, 429, "rate_limited_sandbox_write")


# ---- retention ----

DAY_MS = 24 * 3600 * 1000


def test_runs_are_kept_for_so_many_days(own_server):
    """The vendor's server keeps them for ever."""
    server, aionis = own_server(SANDBOX_RETENTION_DAYS="2")
    session = aionis.session()
    old, recent = (aionis.run(session, "echo", word)["run_id"] for word in ("old", "recent"))
    server.stop()
    for run, days in ((old, 2.01), (recent, 1.9)):
        age = int(days * DAY_MS)
        change(server, f"UPDATE executions SET created_at = created_at - {age}, started_at = started_at - {age}, ended_at = ended_at - {age} "
                       f"WHERE metadata = '{{}}' AND number = (SELECT {'min' if run == old else 'max'}(number) FROM executions)")
    server.start()
    aionis = Aionis(server.port, server.key)

    def is_gone():
        answer = aionis.post("runs/get", {"run_id": old})
        return answer.status == 404 and check_refused(answer, 404, "sandbox_run_not_found")
    until(is_gone, "what is old to go")
    assert aionis.logs(recent)["stdout"] == "recent\n"
    until(lambda: not any(path.read_bytes() == b"old\n" for path in (server.data / "spool").glob("*/*")), "its output to go")
    assert aionis.run(session, "echo", "new")["output"]["stdout"] == "new\n"


def test_a_session_that_nobody_uses_is_kept_for_so_long(own_server):
    server, aionis = own_server(options=["--idle-timeout", "1s"], SANDBOX_RETENTION_DAYS="1")
    session = aionis.session()
    run = aionis.run(session, "echo", "kept")["run_id"]
    sandbox = f"/sandbox/status/{sandbox_of(session)}"
    until(lambda: aionis.http.get(sandbox).data["status"] == "suspended", "its box to go")
    change(server, f"UPDATE sandboxes SET paused_at = paused_at - {DAY_MS}")
    server.kill()
    server.start()
    aionis = Aionis(server.port, server.key)
    until(lambda: aionis.http.get(sandbox).data["status"] == "terminated", "it to end")
    assert refusal(lambda: aionis.run(session, "echo")).error == "sandbox_session_not_found"
    assert aionis.logs(run)["stdout"] == "kept\n"


# ---- rates ----

def calls(aionis, route, count, address="192.0.2.1", **headers):
    bodies = {"sessions": {"profile": "wrong"}, "runs/get": {}}
    return [aionis.post(route, bodies[route], headers={"X-Forwarded-For": address, **headers}) for _ in range(count)]


def test_loopback_is_never_held_back(own_server):
    _, aionis = own_server(SANDBOX_WRITE_RATE_LIMIT_RPS="1", SANDBOX_WRITE_RATE_LIMIT_BURST="1")
    assert {answer.status for answer in calls(aionis, "sessions", 5)} == {400}


def test_rates(own_server):
    _, aionis = own_server(SANDBOX_WRITE_RATE_LIMIT_RPS="0.01", SANDBOX_WRITE_RATE_LIMIT_BURST="3", SANDBOX_READ_RATE_LIMIT_RPS="0.01",
                           SANDBOX_READ_RATE_LIMIT_BURST="4", ADMIN_TOKEN="boss", **FORWARDED)
    for route, burst, error, waited in (("sessions", 3, "rate_limited_sandbox_write", 200), ("runs/get", 4, "rate_limited_sandbox_read", 0)):
        answers = calls(aionis, route, burst + 1)
        assert [answer.status for answer in answers] == [400] * burst + [429]
        details = check_refused(answers[-1], 429, error)
        assert details["waited_ms"] == waited and 0 < details["retry_after_ms"] <= 100000
        assert int(answers[-1].headers["retry-after"]) == -(-details["retry_after_ms"] // 1000)
        # Others have buckets of their own, and so has an admin.
        assert {answer.status for answer in calls(aionis, route, burst, "2001:db8::1")} == {400}
        assert {answer.status for answer in calls(aionis, route, burst, **{"X-Admin-Token": "boss"})} == {400}
        # It comes before the body, and behind the key.
        assert calls(aionis, route, 1)[0].status == 429
        assert aionis.post(route, {}, headers={"X-Forwarded-For": "192.0.2.1"}, key=None).status == 401
    real = aionis.post("sessions", {}, headers={"X-Real-Ip": "192.0.2.1"})
    assert real.status == 429


def test_a_write_over_the_limit_is_held_back_for_a_moment(own_server):
    _, aionis = own_server(SANDBOX_WRITE_RATE_LIMIT_RPS="20", SANDBOX_WRITE_RATE_LIMIT_BURST="1", **FORWARDED)
    assert {answer.status for answer in calls(aionis, "sessions", 10)} == {400}


def address_of_this_machine():
    """One that is not loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return probe.getsockname()[0]


def test_a_client_from_elsewhere_is_held_back_without_any_proxy(own_server):
    address = address_of_this_machine()
    server, aionis = own_server(listen=f"127.0.0.1:0,{address}:0", SANDBOX_READ_RATE_LIMIT_RPS="0.01", SANDBOX_READ_RATE_LIMIT_BURST="2")
    port = int(server.log.split(f"{address}:")[1].split()[0])
    far = Client(port, server.key, host=address)
    assert [far.post(f"{TOP}runs/get", {}).status for _ in range(3)] == [400, 400, 429]
    # Whoever is not trusted cannot name another address.
    assert far.post(f"{TOP}runs/get", {}, headers={"X-Forwarded-For": "127.0.0.1"}).status == 429
    assert aionis.post("runs/get", {}).status == 400


def test_limits_can_be_turned_off(own_server):
    _, aionis = own_server(RATE_LIMIT_ENABLED="false", SANDBOX_WRITE_RATE_LIMIT_RPS="0.01", SANDBOX_WRITE_RATE_LIMIT_BURST="1", **FORWARDED)
    assert {answer.status for answer in calls(aionis, "sessions", 5)} == {400}


def test_only_a_proxy_that_is_trusted_says_where_a_call_comes_from(own_server):
    _, aionis = own_server(SANDBOX_WRITE_RATE_LIMIT_RPS="0.01", SANDBOX_WRITE_RATE_LIMIT_BURST="1", TRUST_PROXY="true",
                           TRUSTED_PROXY_CIDRS="10.0.0.0/8")
    assert {answer.status for answer in calls(aionis, "sessions", 5)} == {400}


# ---- heartbeat ----

def test_a_run_under_way_is_seen_to_be_alive(own_server):
    _, aionis = own_server(SANDBOX_RUN_HEARTBEAT_INTERVAL_MS="50")
    session = aionis.session()
    run = aionis.start(session, "sleep", "30")
    first = aionis.wait(run, "running")["updated_at"]
    until(lambda: aionis.get(run)["updated_at"] > first, "a heartbeat")
    aionis.cancel(run)
