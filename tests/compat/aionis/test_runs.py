# SPDX-License-Identifier: Apache-2.0
"""Logs, artifacts and cancels of runs in every state, and the queue."""
import hashlib
import threading

import pytest

from aionis import PATIENT, TIME, issues_of, sandbox_of, session_of, stringify
from client import together, until

SOME = "00000000-0000-4000-8000-000000000000"
PARTS = ["action.json", "output.json", "result.json", "summary.json", "metadata.json", "run.json"]
WAIT = "until [ -e go ]; do sleep 0.02; done"


# ---- logs ----

@pytest.mark.parametrize("route", ["runs/logs", "runs/artifact"])
@pytest.mark.parametrize("value", [0, -1, 512001, 1.5, "1", None])
def test_limits_of_the_tail(aionis, route, value):
    assert issues_of(aionis.post(route, {"run_id": SOME, "tail_bytes": value})) == ["tail_bytes"]


def test_what_logs_say(aionis, shared):
    run = aionis.sh(shared, "echo out; echo err >&2; exit 3")["run_id"]
    answer = aionis.call("runs/logs", run_id=run)
    assert list(answer) == ["tenant_id", "scope", "run_id", "status", "logs"]
    assert (answer["run_id"], answer["status"]) == (run, "failed")
    logs = answer["logs"]
    assert list(logs) == ["tail_bytes", "stdout", "stderr", "truncated", "summary"]
    assert (logs["tail_bytes"], logs["stdout"], logs["stderr"], logs["truncated"]) == (65536, "out\n", "err\n", False)
    assert logs["summary"] == {
        "summary_version": "tool_result_summary_v1", "stdout_preview": "out", "stderr_preview": "err", "stdout_chars": 4, "stderr_chars": 4,
        "result_kind": "none", "result_keys": [], "result_preview": None, "exit_code": None, "error": None, "truncated": False,
        "signals": ["stderr_present"]}


@pytest.mark.parametrize("tail, text", [(1, "\n"), (3, "56\n"), (7, "123456\n"), (8, "123456\n"), (512000, "123456\n")])
def test_the_tail_is_of_each_stream(aionis, shared, tail, text):
    run = aionis.sh(shared, "echo 123456; echo 123456 >&2")["run_id"]
    logs = aionis.logs(run, tail_bytes=tail)
    assert (logs["tail_bytes"], logs["stdout"], logs["stderr"], logs["truncated"]) == (tail, text, text, False)
    assert logs["summary"]["stdout_chars"] == 7


@pytest.mark.parametrize("tail, text", [(1, "\ufffd"), (2, "\ufffd\ufffd"), (3, "\ufffd\ufffd\ufffd"), (4, "\U0001f30d"), (5, "\ufffd\U0001f30d"), (6, "é\U0001f30d")])
def test_a_character_that_the_tail_cuts(aionis, shared, tail, text):
    run = aionis.sh(shared, "printf '\\303\\251\\360\\237\\214\\215'")["run_id"]
    assert aionis.logs(run, tail_bytes=tail)["stdout"] == text


def test_the_tail_is_of_what_was_kept(aionis, shared):
    run = aionis.sh(shared, "printf first; head -c 70000 /dev/zero | tr '\\0' x; printf last")["run_id"]
    logs = aionis.logs(run, tail_bytes=512000)
    assert len(logs["stdout"]) == 65536 and logs["stdout"].startswith("firstx") and logs["truncated"] is True
    assert aionis.logs(run, tail_bytes=4)["stdout"] == "xxxx"


def test_logs_of_a_run_that_is_under_way(aionis, session):
    """The vendor's server has nothing before the end."""
    run = aionis.start(session, "sh", "-c", f"echo begun; echo err >&2; {WAIT}; echo done", timeout_ms=PATIENT)
    until(lambda: aionis.logs(run)["stdout"] == "begun\n", "what it wrote to be there")
    assert aionis.call("runs/logs", run_id=run)["status"] == "running"
    record = aionis.get(run)
    assert record["output"] == {"stdout": "", "stderr": "", "truncated": False} and record["result"] == {}
    assert record["exit_code"] is None and record["finished_at"] is None and TIME.fullmatch(record["started_at"])
    aionis.sh(session, "touch go")
    assert aionis.wait(run)["output"]["stdout"] == "begun\ndone\n"


# ---- artifacts ----

def check_bundle(artifact):
    for part in artifact["bundle"]["objects"]:
        assert part["media_type"] == "application/json"
        if "inline" in part:
            text = stringify(part["inline"]).encode()
            assert (part["bytes"], part["sha256"]) == (len(text), hashlib.sha256(text).hexdigest()), part["name"]


def test_what_an_artifact_says(aionis):
    aionis = aionis.of(tenant_id="t", scope="a/b c:é")
    metadata = {"z": 1, "a": ["x", None, True, {"é": "\u2028\u007f"}]}
    run = aionis.run(aionis.session(), "echo", "é", metadata=metadata, project_id="p")
    answer = aionis.call("runs/artifact", run_id=run["run_id"])
    assert list(answer) == ["tenant_id", "scope", "artifact"]
    artifact = answer["artifact"]
    assert list(artifact) == ["artifact_version", "run_id", "session_id", "uri", "project_id", "planner_run_id", "decision_id", "mode", "status",
                              "timeout_ms", "action", "output", "summary", "exit_code", "error", "result", "metadata", "bundle", "started_at",
                              "finished_at", "created_at", "updated_at"]
    assert artifact["artifact_version"] == "sandbox_run_artifact_v2"
    assert artifact["uri"] == f"aionis://t/a/b c:é/sandbox_run/{run['run_id']}"
    for name in ("run_id", "session_id", "project_id", "planner_run_id", "decision_id", "mode", "status", "timeout_ms", "action", "exit_code",
                 "error", "result", "started_at", "finished_at", "created_at", "updated_at"):
        assert artifact[name] == run[name], name
    assert artifact["summary"] == run["result_summary"]
    assert artifact["output"] == {"tail_bytes": 65536, **run["output"]}
    assert stringify(artifact["metadata"]) == stringify(metadata)
    bundle = artifact["bundle"]
    assert list(bundle) == ["manifest_version", "object_store_base_uri", "object_prefix", "generated_at", "objects"]
    assert bundle["manifest_version"] == "sandbox_artifact_bundle_manifest_v1" and bundle["object_store_base_uri"] is None
    assert bundle["object_prefix"] == f"sandbox/t/a%2Fb%20c%3A%C3%A9/{run['run_id']}"
    assert TIME.fullmatch(bundle["generated_at"])
    assert [part["name"] for part in bundle["objects"]] == PARTS
    for part in bundle["objects"]:
        assert list(part) == ["name", "media_type", "bytes", "sha256", "uri", "inline"] and part["uri"] is None
    inline = {part["name"].removesuffix(".json"): part["inline"] for part in bundle["objects"]}
    for name in ("action", "output", "result", "summary", "metadata"):
        assert stringify(inline[name]) == stringify(artifact[name])
    assert list(inline["run"]) == ["run_id", "session_id", "project_id", "tenant_id", "scope", "planner_run_id", "decision_id", "mode", "status",
                                   "timeout_ms", "exit_code", "error", "result_summary", "started_at", "finished_at", "created_at", "updated_at"]
    assert (inline["run"]["tenant_id"], inline["run"]["scope"]) == ("t", "a/b c:é")
    check_bundle(artifact)


@pytest.mark.parametrize("option, key", [("include_action", "action"), ("include_output", "output"), ("include_result", "result"),
                                         ("include_metadata", "metadata")])
def test_parts_can_be_left_out(aionis, shared, option, key):
    run = aionis.run(shared, "echo", "hi")["run_id"]
    artifact = aionis.artifact(run, **{option: False})
    assert key not in artifact and "summary" in artifact and "exit_code" in artifact
    assert [part["name"] for part in artifact["bundle"]["objects"]] == [name for name in PARTS if name != f"{key}.json"]
    check_bundle(artifact)


def test_without_the_objects_themselves(aionis, shared):
    run = aionis.run(shared, "echo", "hi")["run_id"]
    with_, without = aionis.artifact(run), aionis.artifact(run, bundle_inline=False)
    assert all("inline" not in part for part in without["bundle"]["objects"])
    assert [(part["bytes"], part["sha256"]) for part in without["bundle"]["objects"]] == [
        (part["bytes"], part["sha256"]) for part in with_["bundle"]["objects"]]
    assert without["output"] == with_["output"]


@pytest.mark.parametrize("text, canonical", [
    ('{"a":1.0,"b":2.50,"c":-0,"d":1e21,"e":12345678901234567890}', '{"a":1,"b":2.5,"c":0,"d":1e+21,"e":12345678901234567000}'),
    ('{"a":1E2,"b":0.000001,"c":1e-7,"d":123456789012345680000,"e":0.1}', '{"a":100,"b":0.000001,"c":1e-7,"d":123456789012345680000,"e":0.1}'),
    ('{"a":1e999,"b":-1e999,"c":5e-324,"d":1.7976931348623157e308}', '{"a":null,"b":null,"c":5e-324,"d":1.7976931348623157e+308}'),
    ('{"b":1,"10":1,"9":2,"01":3,"-1":4,"4294967295":5,"4294967294":6}', '{"9":2,"10":1,"4294967294":6,"b":1,"01":3,"-1":4,"4294967295":5}'),
    ('{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'),
    ('{ "a" : [ 1 , "\\u0041\\/\\u00e9\\u2028\\u007f\\u0001\\b" ] }', '{"a":[1,"A/é\u2028\x7f\\u0001\\b"]}'),
    ('{"\\ud800":"\\udfff\\ud83c\\udf0d"}', '{"\\ud800":"\\udfff\U0001f30d"}'),
    ('{"":{"":[]},"\\u0000":"\\u0000"}', '{"":{"":[]},"\\u0000":"\\u0000"}'),
])
def test_metadata_is_what_javascript_would_write(aionis, shared, text, canonical):
    body = '{"session_id":"%s","mode":"sync","action":{"kind":"command","argv":["echo"]},"metadata":%s}' % (shared, text)
    answer = aionis.post("execute", body=body.encode(), headers={"Content-Type": "application/json"})
    raw = aionis.post("runs/artifact", {"run_id": answer.json["run"]["run_id"]}).body.decode()
    assert raw.count(f'"metadata":{canonical}') == 1 and f'"inline":{canonical}' in raw
    assert f'"bytes":{len(canonical.encode())},"sha256":"{hashlib.sha256(canonical.encode()).hexdigest()}"' in raw


def test_artifacts_have_places_where_a_store_is_named(own_server):
    _, aionis = own_server(SANDBOX_ARTIFACT_OBJECT_STORE_BASE_URI=" s3://bucket/top// ")
    run = aionis.run(aionis.session(), "echo")["run_id"]
    bundle = aionis.artifact(run)["bundle"]
    assert bundle["object_store_base_uri"] == "s3://bucket/top//"
    assert [part["uri"] for part in bundle["objects"]] == [f"s3://bucket/top/sandbox/default/default/{run}/{name}" for name in PARTS]
    assert aionis.health()["artifact_object_store"] == {"base_uri_configured": True}


def test_an_artifact_in_every_state(aionis, session):
    running = aionis.start(session, "sh", "-c", WAIT, timeout_ms=PATIENT)
    aionis.wait(running, "running")
    blocker = aionis.start(session, "sh", "-c", WAIT, timeout_ms=PATIENT)
    queued = aionis.start(session, "echo", "late")
    states = [aionis.artifact(run) for run in (running, queued)]
    assert [artifact["status"] for artifact in states] == ["running", "queued"]
    assert [artifact["result"] for artifact in states] == [{}, {}] and states[1]["started_at"] is None
    for artifact in states:
        check_bundle(artifact)
    aionis.sh(session, "touch go")
    assert [aionis.wait(run)["status"] for run in (running, blocker, queued)] == ["succeeded"] * 3


# ---- cancel ----

@pytest.mark.parametrize("value", ["", None, 1, "x" * 401, "\U0001f30d" * 201])
def test_limits_of_the_reason(aionis, value):
    assert issues_of(aionis.post("runs/cancel", {"run_id": SOME, "reason": value})) == ["reason"]


def test_what_a_cancel_says(aionis, session):
    run = aionis.start(session, "sh", "-c", "echo before; sleep 60")
    until(lambda: aionis.logs(run)["stdout"], "it to be under way")
    answer = aionis.cancel(run, reason="  enough  ", actor="me")
    assert list(answer) == ["tenant_id", "scope", "run_id", "status", "cancel_requested", "cancel_reason"]
    assert (answer["run_id"], answer["cancel_requested"], answer["cancel_reason"]) == (run, True, "enough")
    assert answer["status"] in ("running", "canceled")
    record = aionis.wait(run)
    assert (record["status"], record["exit_code"], record["error"]) == ("canceled", None, "canceled_by_request")
    assert (record["cancel_requested"], record["cancel_reason"]) == (True, "enough")
    assert record["result"] == {"executor": "local_process", "command": "sh", "argv": ["sh", "-c", "echo before; sleep 60"], "signal": "SIGKILL",
                                "timed_out": False, "canceled": True}
    assert record["output"]["stdout"] == "before\n"


@pytest.mark.parametrize("reason, kept", [("x" * 400, "x" * 400), ("\U0001f30d" * 200, "\U0001f30d" * 200), ("  ", None)])
def test_reasons(aionis, shared, reason, kept):
    run = aionis.run(shared, "echo")["run_id"]
    assert aionis.cancel(run, reason=reason)["cancel_reason"] == kept


def test_cancelling_what_has_ended_leaves_a_mark(aionis, shared):
    before = aionis.sh(shared, "exit 3")
    answer = aionis.cancel(before["run_id"], reason="late")
    assert (answer["status"], answer["cancel_requested"], answer["cancel_reason"]) == ("failed", True, "late")
    after = aionis.get(before["run_id"])
    assert (after["cancel_requested"], after["cancel_reason"]) == (True, "late") and after["updated_at"] >= before["updated_at"]
    same = [name for name in before if name not in ("cancel_requested", "cancel_reason", "updated_at")]
    assert [after[name] for name in same] == [before[name] for name in same]
    assert aionis.cancel(before["run_id"])["cancel_reason"] == "late"
    assert aionis.cancel(before["run_id"], reason="later")["cancel_reason"] == "later"
    assert aionis.get(before["run_id"])["status"] == "failed"


def test_a_sync_run_can_be_cancelled(aionis, session):
    """By whoever learns its id: the other protocol lists it."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(aionis.run(session, "sleep", "600", timeout_ms=PATIENT)))
    thread.start()

    def listed():
        return aionis.http.get(f"/sandbox/sandboxes/{sandbox_of(session)}/executions").data["executions"]
    run = session_of(until(listed, "it to be listed")[0]["executionId"].replace("exe_", "sbx_"))
    aionis.cancel(run, reason="enough")
    thread.join(60)
    assert (answers[0]["run_id"], answers[0]["status"], answers[0]["error"]) == (run, "canceled", "canceled_by_request")
    assert (answers[0]["mode"], answers[0]["cancel_requested"], answers[0]["cancel_reason"]) == ("sync", True, "enough")
    assert aionis.get(run) == answers[0]


def test_a_cancel_leaves_its_mark_when_the_session_is_gone(aionis, session):
    before = aionis.run(session, "echo", "hi")
    aionis.http.delete(f"/sandbox/{sandbox_of(session)}")
    answer = aionis.cancel(before["run_id"], reason="late")
    assert (answer["status"], answer["cancel_reason"]) == ("succeeded", "late")
    after = aionis.get(before["run_id"])
    assert {**after, "updated_at": None} == {**before, "cancel_requested": True, "cancel_reason": "late", "updated_at": None}


def test_a_queued_run_is_cancelled_at_once(aionis, session):
    blockers = [aionis.start(session, "sh", "-c", WAIT, timeout_ms=PATIENT) for _ in range(2)]
    for run in blockers:
        aionis.wait(run, "running")
    queued = aionis.start(session, "sh", "-c", "echo ran > ran")
    until(lambda: aionis.health()["queue_depth"] == 1, "it to wait")
    answer = aionis.cancel(queued, reason="no")
    assert (answer["status"], answer["cancel_reason"]) == ("canceled", "no")
    record = aionis.get(queued)
    assert (record["status"], record["error"], record["result"]) == ("canceled", "canceled_before_execution", {"canceled": True})
    assert record["started_at"] is None and record["finished_at"] and record["exit_code"] is None
    assert aionis.health()["queue_depth"] == 0
    aionis.sh(session, "touch go")
    for run in blockers:
        assert aionis.wait(run)["status"] == "succeeded"
    assert aionis.sh(session, "ls ran")["exit_code"] != 0
    assert aionis.get(queued) == record


@pytest.mark.parametrize("script", ["sleep 60 & sleep 60", "(setsid sleep 60 &); sleep 60", "trap '' TERM; sleep 60 & wait"])
def test_a_cancel_ends_all_that_was_started(aionis, session, script):
    """The vendor's server kills the direct child alone, and waits for the others."""
    run = aionis.start(session, "sh", "-c", f"echo on; {script}")
    until(lambda: aionis.logs(run)["stdout"], "it to be under way")
    aionis.cancel(run)
    assert aionis.wait(run)["status"] == "canceled"
    count = "n=0; for p in /proc/[0-9]*; do [ \"$(cat $p/comm 2>/dev/null)\" = sleep ] && n=$((n+1)); done; echo $n"
    until(lambda: aionis.sh(session, count)["output"]["stdout"] == "0\n", "what was started to be gone")


def test_a_cancel_right_after_the_start_is_never_lost(aionis, session):
    """On the vendor's server it can be: the run goes on to its natural end."""
    for _ in range(60):
        run = aionis.start(session, "sleep", "30")
        answer = aionis.cancel(run)
        assert answer["status"] in ("queued", "running", "canceled")
        record = aionis.wait(run)
        assert (record["status"], record["cancel_requested"]) == ("canceled", True)
        assert record["error"] == ("canceled_by_request" if record["started_at"] else "canceled_before_execution")


def test_cancels_of_many_at_once(aionis, session):
    runs = [aionis.start(session, "sleep", "30") for _ in range(12)]
    together(*[lambda run=run: aionis.cancel(run) for run in runs for _ in range(2)])
    assert {aionis.wait(run)["status"] for run in runs} == {"canceled"}
    assert aionis.run(session, "echo", "alive")["status"] == "succeeded"
    assert aionis.health()["queue_depth"] == 0


# ---- the queue ----

def test_so_many_run_at_once_and_the_others_wait(aionis, session):
    blockers = [aionis.start(session, "sh", "-c", WAIT, timeout_ms=PATIENT) for _ in range(2)]
    for run in blockers:
        aionis.wait(run, "running")
    waiting = [aionis.start(session, "echo", str(i)) for i in range(5)]
    until(lambda: aionis.health()["queue_depth"] == 5, "all to wait")
    assert {aionis.get(run)["status"] for run in waiting} == {"queued"}
    assert aionis.health()["active_runs"] == 2
    # Sync runs do not wait.
    assert aionis.run(session, "echo", "now")["status"] == "succeeded"
    aionis.sh(session, "touch go")
    ended = [aionis.wait(run) for run in waiting]
    assert {run["status"] for run in ended} == {"succeeded"}
    assert aionis.health()["queue_depth"] == 0


def test_the_first_that_waits_is_the_first_that_runs(own_server):
    _, aionis = own_server(SANDBOX_EXECUTOR_MAX_CONCURRENCY="1")
    sessions = [aionis.session() for _ in range(2)]
    runs = [aionis.start(sessions[i % 2], "sh", "-c", f"[ {i} -gt 0 ] || {WAIT}", timeout_ms=PATIENT) for i in range(8)]
    aionis.sh(sessions[0], "touch go")
    ended = [aionis.wait(run) for run in runs]
    times = [when for run in ended for when in (run["started_at"], run["finished_at"])]
    assert times == sorted(times)


def test_a_long_queue_comes_to_its_end(aionis):
    sessions = [aionis.session() for _ in range(3)]
    runs = [aionis.start(sessions[i % 3], "echo", str(i)) for i in range(60)]
    assert [aionis.wait(run)["output"]["stdout"] for run in runs] == [f"{i}\n" for i in range(60)]
    until(lambda: aionis.health()["active_runs"] == 0, "nothing to run")


def test_the_queue_has_an_end(own_server):
    _, aionis = own_server(BURROW_AIONIS_QUEUE="2", SANDBOX_EXECUTOR_MAX_CONCURRENCY="1")
    session = aionis.session()
    first = aionis.start(session, "sh", "-c", WAIT, timeout_ms=PATIENT)
    aionis.wait(first, "running")
    waiting = [aionis.start(session, "echo", "a"), aionis.start(session, "echo", "b")]
    answer = aionis.post("execute", {"session_id": session, "action": {"kind": "command", "argv": ["echo"]}})
    assert (answer.status, answer.json["error"]) == (429, "sandbox_queue_full")
    aionis.sh(session, "touch go")
    assert [aionis.wait(run)["status"] for run in [first, *waiting]] == ["succeeded"] * 3


def test_sync_runs_have_an_end_too(own_server):
    _, aionis = own_server(BURROW_AIONIS_MAX_RUNS="2")
    session = aionis.session()
    runs = [aionis.start(session, "sh", "-c", WAIT, timeout_ms=PATIENT) for _ in range(2)]
    for run in runs:
        aionis.wait(run, "running")
    answer = aionis.post("execute", {"session_id": session, "mode": "sync", "action": {"kind": "command", "argv": ["echo"]}})
    assert (answer.status, answer.json["error"], answer.headers["retry-after"]) == (429, "sandbox_sync_capacity_exceeded", "1")
    for run in runs:
        aionis.cancel(run)
        aionis.wait(run)
    assert aionis.run(session, "echo")["status"] == "succeeded"
