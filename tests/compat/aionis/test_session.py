# SPDX-License-Identifier: Apache-2.0
"""Sessions: what they are made of, when they end, and what is in them."""
import datetime
import json

import pytest

from aionis import PATIENT, TIME, UUID, Aionis, Refused, check_refused, issues_of, sandbox_of, session_of
from client import together, until
from server import end_process


def parse(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_what_a_session_says(aionis):
    answer = aionis.call("sessions", tenant_id="t", scope="s", actor="me", profile="default")
    assert list(answer) == ["tenant_id", "scope", "session"]
    session = answer["session"]
    assert list(session) == ["session_id", "profile", "metadata", "expires_at", "created_at", "updated_at"]
    assert UUID.fullmatch(session["session_id"])
    assert (session["profile"], session["metadata"], session["expires_at"]) == ("default", {}, None)
    assert TIME.fullmatch(session["created_at"]) and session["updated_at"] == session["created_at"]


@pytest.mark.parametrize("profile", ["default", "restricted"])
def test_a_profile_is_a_label(aionis, profile):
    session = aionis.call("sessions", profile=profile)["session"]
    assert session["profile"] == profile
    assert aionis.sh(session["session_id"], "echo $((1 + 1))")["output"]["stdout"] == "2\n"


@pytest.mark.parametrize("field, value", [
    ("profile", "other"), ("profile", ""), ("profile", None), ("profile", 1),
    ("ttl_seconds", 0), ("ttl_seconds", -1), ("ttl_seconds", 604801), ("ttl_seconds", 1.5), ("ttl_seconds", "1"), ("ttl_seconds", None),
    ("ttl_seconds", 1e30), ("metadata", None), ("metadata", []), ("metadata", "x"), ("metadata", 1),
])
def test_limits_of_fields(aionis, field, value):
    assert issues_of(aionis.post("sessions", {field: value})) == [field]


@pytest.mark.parametrize("ttl", [1, 604800, 60.0])
def test_an_end_is_told(aionis, ttl):
    session = aionis.call("sessions", ttl_seconds=ttl)["session"]
    lasts = parse(session["expires_at"]) - parse(session["created_at"])
    assert abs(lasts.total_seconds() - ttl) < 1


def test_an_expired_session_runs_nothing(aionis):
    session = aionis.call("sessions", ttl_seconds=1)["session"]
    id_ = session["session_id"]
    run = aionis.run(id_, "echo", "early")["run_id"]

    def is_over():
        try:
            aionis.execute(id_, "echo", "late")
        except Refused as refused:
            return refused
        return None
    refused = until(is_over, "the session to expire")
    assert (refused.status, refused.error) == (409, "sandbox_session_expired")
    assert refused.details == {"session_id": id_, "expires_at": session["expires_at"]}
    # Its sandbox goes; what it ran stays, and so does the answer.
    until(lambda: not is_alive(aionis, id_), "its sandbox to end")
    assert is_over().status == 409
    assert aionis.get(run)["output"]["stdout"] == "early\n"
    assert aionis.logs(run)["stdout"] == "early\n"


def is_alive(aionis, session):
    living = aionis.http.get("/sandbox?live=true&limit=100").data["sandboxes"]
    return sandbox_of(session) in [sandbox["sandboxId"] for sandbox in living]


def test_a_run_may_outlive_its_session(aionis):
    session = aionis.session(ttl_seconds=1)
    run = aionis.start(session, "sh", "-c", "sleep 2; echo done")
    assert aionis.wait(run)["output"]["stdout"] == "done\n"


def test_an_unknown_session(aionis):
    for id_ in ("00000000-0000-4000-8000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"):
        with pytest.raises(Refused) as refused:
            aionis.execute(id_, "echo")
        assert (refused.value.status, refused.value.error) == (404, "sandbox_session_not_found")
        assert refused.value.details == {"session_id": id_, "tenant_id": "default", "scope": "default"}


def test_an_id_in_capitals_is_another_one(aionis, session):
    with pytest.raises(Refused) as refused:
        aionis.execute(session.upper(), "echo")
    assert refused.value.status == 404


def test_a_machine_that_is_full_says_so(own_server):
    _, aionis = own_server(options=["--max-sandboxes", "1"])
    session = aionis.session()
    check_refused(aionis.post("sessions", {}), 429, "sandbox_capacity_exceeded")
    assert aionis.run(session, "echo")["status"] == "succeeded"


# ---- files ----

def test_files_stay_from_run_to_run(aionis, session):
    aionis.sh(session, "echo one > file; mkdir -p d; echo two > d/file")
    assert aionis.sh(session, "cat file d/file; pwd")["output"]["stdout"] == "one\ntwo\n/workspace\n"


def test_files_are_not_seen_from_other_sessions(aionis, session):
    """The vendor's server has one directory for all."""
    aionis.sh(session, "echo secret > /workspace/file; echo secret > /tmp/file; echo secret > /root/file")
    for other in (aionis.session(), aionis.of(tenant_id="b").session(), aionis.of(scope="c").session()):
        client = next(client for client in (aionis, aionis.of(tenant_id="b"), aionis.of(scope="c")) if sees(client, other))
        found = client.sh(other, "cat /workspace/file /tmp/file /root/file; grep -rl secret /workspace /tmp /root 2>/dev/null")
        assert found["output"]["stdout"] == ""


def sees(client, session):
    try:
        client.execute(session, "true")
        return True
    except Refused:
        return False


def test_runs_of_one_session_run_at_once(aionis, session):
    """One waits for what the other writes."""
    run = aionis.start(session, "sh", "-c", "until [ -e go ]; do sleep 0.02; done; echo went", timeout_ms=PATIENT)
    aionis.wait(run, "running")
    aionis.sh(session, "touch go")
    assert aionis.wait(run)["output"]["stdout"] == "went\n"


# ---- rest ----

def test_a_session_that_nobody_uses_keeps_its_files_and_nothing_else(own_server):
    server, aionis = own_server(options=["--idle-timeout", "1s"])
    session = aionis.session()
    aionis.sh(session, "echo kept > file; sleep 600 > /dev/null 2>&1 &")

    def status():
        return aionis.http.get(f"/sandbox/status/{sandbox_of(session)}").data["status"]
    for run in (lambda i: aionis.sh(session, "cat file"), lambda i: aionis.wait(aionis.start(session, "cat", "file"))):
        until(lambda: status() == "suspended", "its box to go")
        runs = together(*[lambda i=i: run(i) for i in range(6)])
        assert {one["output"]["stdout"] for one in runs} == {"kept\n"}
    until(lambda: status() == "suspended", "its box to go")
    server.kill()
    server.start()
    aionis = Aionis(server.port, server.key)
    assert aionis.sh(session, "cat file")["output"]["stdout"] == "kept\n"


def test_a_session_survives_a_crash_of_the_machine(own_server):
    server, aionis = own_server()
    session = aionis.session()
    aionis.sh(session, "echo kept > file; sync")
    server.kill()
    for pid in server.box_processes():
        end_process(pid)
    until(lambda: not server.box_processes(), "the box to be gone")
    server.start()
    aionis = Aionis(server.port, server.key)
    runs = together(*[lambda: aionis.sh(session, "cat file") for _ in range(6)])
    assert {run["output"]["stdout"] for run in runs} == {"kept\n"}


# ---- the other protocol ----

def test_a_session_is_a_sandbox_of_the_other_protocol(aionis, session):
    metadata = {"a": 1}
    id_ = aionis.session(metadata=metadata)
    sandbox = aionis.http.get(f"/sandbox/{sandbox_of(id_)}").data
    assert sandbox["metadata"] == metadata
    assert sandbox_of(session) in [one["sandboxId"] for one in aionis.http.get("/sandbox?live=true&limit=100").data["sandboxes"]]


def statistics(api):
    return api.get("/services/stats/any").data["services"]["sandbox"]["totalExecutions"]


def test_runs_are_executions_of_the_other_protocol(aionis, session):
    api = aionis.http
    before = statistics(api)
    run = aionis.sh(session, "echo out; echo err >&2; exit 3")
    aionis.run(session, "ls")
    executions = api.get(f"/sandbox/sandboxes/{sandbox_of(session)}/executions").data["executions"]
    assert len(executions) == 2
    assert executions[0]["status"] == "failed" and executions[0]["command"] == ["ls"]
    ended = executions[1]
    assert ended["executionId"] == execution_of(run["run_id"])
    assert ended["exitCode"] == 3 and ended["command"] == ["sh", "-c", "echo out; echo err >&2; exit 3"]
    assert api.read(ended["stdoutStreamUrl"]) == b"out\n" and api.read(ended["stderrStreamUrl"]) == b"err\n"
    events = api.get(f"/sandbox/sandboxes/{sandbox_of(session)}/events?limit=100").data["events"]
    assert [event for event in events if ended["executionId"] in json.dumps(event)]
    assert api.get(f"/sandbox/{sandbox_of(session)}").data["executions"] == 2
    assert statistics(api) >= before + 2


def test_a_run_in_every_state_is_an_execution(aionis, session):
    api, wait = aionis.http, "until [ -e go ]; do sleep 0.02; done"

    def status(run):
        return api.execution(execution_of(run))["status"]
    blockers = [aionis.start(session, "sh", "-c", wait, timeout_ms=PATIENT) for _ in range(2)]
    for run in blockers:
        aionis.wait(run, "running")
    queued = [aionis.start(session, "echo", "late") for _ in range(2)]
    assert [status(run) for run in blockers + queued] == ["running", "running", "queued", "queued"]
    aionis.cancel(queued[0])
    aionis.sh(session, "touch go")
    for run in blockers + queued:
        aionis.wait(run)
    late = aionis.run(session, "sleep", "30", timeout_ms=100)["run_id"]
    assert [status(run) for run in [*blockers, *queued, late]] == ["completed", "completed", "cancelled", "completed", "timeout"]
    listed = api.get(f"/sandbox/sandboxes/{sandbox_of(session)}/executions?limit=100").data["executions"]
    assert {execution_of(run) for run in [*blockers, *queued, late]} <= {one["executionId"] for one in listed}
    events = api.get(f"/sandbox/sandboxes/{sandbox_of(session)}/events?limit=100").data["events"]
    for run, types in ((blockers[0], ["lifecycle:started", "lifecycle:completed"]), (queued[0], ["lifecycle:completed"]),
                       (late, ["lifecycle:started", "lifecycle:completed"])):
        assert [event["type"] for event in events if execution_of(run) in json.dumps(event)] == types


def execution_of(run):
    return sandbox_of(run).replace("sbx_", "exe_")


def test_a_sandbox_that_was_deleted_there_is_no_session_any_more(aionis, session):
    run = aionis.start(session, "sleep", "60")
    aionis.wait(run, "running")
    assert aionis.http.delete(f"/sandbox/{sandbox_of(session)}").status == 200
    with pytest.raises(Refused) as refused:
        aionis.execute(session, "echo")
    assert (refused.value.status, refused.value.error) == (404, "sandbox_session_not_found")
    assert aionis.wait(run)["status"] == "canceled"


def test_a_sandbox_of_the_other_protocol_is_no_session(aionis):
    sandbox = aionis.http.create()
    with pytest.raises(Refused) as refused:
        aionis.execute(session_of(sandbox.id), "echo")
    assert refused.value.status == 404
    sandbox.delete()
