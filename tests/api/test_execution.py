# SPDX-License-Identifier: Apache-2.0
"""Commands in a living sandbox: started, waited for, listed, refused, timed out, cancelled."""
import re

import pytest
from client import Raw, check_error, files_json, nulls, together, until, waiting_for

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
HOLD = ("sh", "-c", waiting_for())


# ---- from start to end ----

def test_the_answer_comes_when_the_command_is_started(sandbox, api):
    started = sandbox.execute(*HOLD)
    assert re.fullmatch(r"exe_[A-Za-z0-9]{20,}", started["executionId"])
    assert started["status"] in ("running", "queued")
    assert "exitCode" not in started and not nulls(started)
    assert started["stdoutStreamUrl"].startswith(api.url) and started["stderrStreamUrl"].startswith(api.url)
    assert sandbox.status()["status"] == "running"
    sandbox.release()
    assert api.wait_execution(started["executionId"])["status"] == "completed"


def test_all_is_told_of_an_ended_execution(sandbox, api):
    ran = sandbox.run("sh", "-c", "exit 7")
    state = ran.state
    assert state["executionId"] == ran.started["executionId"] and state["sandboxId"] == sandbox.id
    assert (state["status"], state["exitCode"], state["type"]) == ("completed", 7, "exec")
    assert state["command"] == ["sh", "-c", "exit 7"]
    assert TIME.fullmatch(state["startedAt"]) and TIME.fullmatch(state["completedAt"])
    assert state["startedAt"] <= state["completedAt"]
    assert isinstance(state["durationMs"], int) and state["durationMs"] >= 0
    assert state["stdoutStreamUrl"] == ran.started["stdoutStreamUrl"]
    assert not nulls(state) and "error" not in state


def test_the_sandbox_is_idle_when_the_execution_has_ended(sandbox, api):
    for _ in range(20):
        sandbox.run("true")
        assert sandbox.status()["status"] == "idle"
    assert sandbox.get()["executions"] == 20


def test_files_stay_from_one_command_to_the_next(sandbox):
    sandbox.sh("mkdir -p d; echo kept >d/f")
    assert sandbox.output("cat d/f") == "kept\n"


def test_a_command_is_words_and_not_a_line(shared):
    words = ["printf", "%s|", "$HOME", "a b", "", "new\nline", "*", "'\"\\", "üñí", "; echo no", "-n", "--"]
    assert shared.run(*words).stdout.decode() == "".join(f"{word}|" for word in words[2:])


def test_a_long_command_is_fine(shared):
    word = "x" * 100000
    assert len(shared.run("echo", *[word] * 10).stdout) == 1000010


def test_a_path_through_a_file_is_the_same_mistake_in_every_request(sandbox, api):
    files = files_json({"/dev/null/x": "A"})
    check_error(api.post(f"/fs/{sandbox.id}", {"files": files}), 400, "INVALID_ARGUMENT", "/dev/null/x")
    check_error(api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"], "files": files}), 400, "INVALID_ARGUMENT", "/dev/null/x")


def test_files_of_the_request_are_written_first(sandbox):
    ran = sandbox.run("cat", "in/a", "/workspace/b", files=files_json({"in/a": "A", "/workspace/b": "B"}))
    assert ran.stdout == b"AB"


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 42", 42), ("kill -KILL $$", 137), ("kill -TERM $$", 143)])
def test_a_command_that_ran_is_completed_whatever_its_code(shared, script, code):
    ran = shared.sh(script)
    assert (ran.status, ran.exit_code) == ("completed", code)


def test_a_command_that_could_not_start_has_failed(shared):
    ran = shared.run("no-such-command", "x")
    assert (ran.status, ran.exit_code) == ("failed", 127)
    assert "no-such-command" in ran.state["error"]
    ran = shared.run("/etc/passwd")
    assert (ran.status, ran.exit_code) == ("failed", 126)
    assert ran.state["error"]
    assert shared.status()["status"] == "idle"


def test_standard_input_is_empty(shared):
    assert shared.run("wc", "-c").stdout == b"0\n"


def test_background_children_do_not_hold_the_end(sandbox):
    ran = sandbox.sh("sleep 60 & echo done")
    assert (ran.stdout, ran.exit_code) == (b"done\n", 0)


# ---- busy ----

def test_a_second_command_is_refused_while_one_runs(sandbox, api):
    started = sandbox.execute(*HOLD)
    answer = api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"]})
    check_error(answer, 409, "SANDBOX_BUSY")
    assert "retry-after" not in answer.headers
    assert len(api.get(f"/sandbox/sandboxes/{sandbox.id}/executions").data["executions"]) == 1
    sandbox.release()
    api.wait_execution(started["executionId"])
    assert sandbox.run("true").exit_code == 0


def test_of_ten_commands_at_once_one_is_started(sandbox, api):
    answers = together(*[lambda: api.post(f"/sandbox/{sandbox.id}/execute", {"command": list(HOLD)})] * 10)
    assert sorted(answer.status for answer in answers) == [200] + [409] * 9 or \
        sorted(answer.status for answer in answers) == [201] + [409] * 9
    sandbox.release()


# ---- waiting ----

def test_a_wait_that_is_too_short_tells_the_present_state(sandbox, api):
    started = sandbox.execute(*HOLD)
    for wait in ("1ms", "50ms", "0s", "0"):
        assert api.execution(started["executionId"], wait=wait)["status"] == "running"
    sandbox.release()


def test_a_wait_of_an_ended_execution_is_answered_at_once(sandbox, api):
    ran = sandbox.run("true")
    assert api.get(f"/sandbox/execution/{ran.state['executionId']}?wait=290s", timeout=20).data["exitCode"] == 0
    assert api.get(f"/sandbox/execution/{ran.state['executionId']}?wait=10h", timeout=20).data["exitCode"] == 0


@pytest.mark.parametrize("wait", ["x", "5", "-1s", "5 m", "1y", "5min", "s", "1.2.3s", "99999999999999999999h"])
def test_a_malformed_wait_is_refused(sandbox, api, wait):
    id = sandbox.run("true").state["executionId"]
    check_error(api.get(f"/sandbox/execution/{id}?wait={wait.replace(' ', '+')}"), 400, "INVALID_ARGUMENT", "wait")


def test_fifty_waits_are_all_answered(sandbox, api):
    id = sandbox.execute("sh", "-c", f"{waiting_for()}; exit 3")["executionId"]
    *answers, _ = together(*[lambda: api.get(f"/sandbox/execution/{id}?wait=5m")] * 50, sandbox.release)
    assert {(answer.data["status"], answer.data["exitCode"]) for answer in answers} == {("completed", 3)}


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_dropped_wait_changes_nothing(sandbox, api, how):
    id = sandbox.execute("sh", "-c", f"{waiting_for()}; echo lived")["executionId"]
    for _ in range(10):
        raw = Raw(api.port)
        raw.send(f"GET /sandbox/execution/{id}?wait=5m HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n\r\n".encode())
        getattr(raw, how)()
    assert api.execution(id)["status"] == "running"
    sandbox.release()
    state = api.wait_execution(id)
    assert state["exitCode"] == 0 and api.read(state["stdoutStreamUrl"]) == b"lived\n"


def test_output_is_complete_when_the_end_is_told(sandbox, api):
    for _ in range(10):
        started = sandbox.execute("sh", "-c", "seq 1 20000")
        api.wait_execution(started["executionId"])
        with Raw(api.port, timeout=20) as raw:  # the end is there too, so no waiting
            raw.send(f"GET {started['stdoutStreamUrl'].removeprefix(api.url)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert raw.answer().body.endswith(b"19999\n20000\n")


# ---- timeouts ----

def test_a_timeout_of_the_sandbox_is_every_commands(new):
    sandbox = new(timeout={"execution": "300ms"})
    ran = sandbox.sh("echo kept; sleep 60")
    assert (ran.status, ran.exit_code, ran.stdout) == ("timeout", 124, b"kept\n")
    assert sandbox.status()["status"] == "idle"
    assert sandbox.run("true").exit_code == 0


def test_a_timeout_of_the_request_comes_first(new):
    sandbox = new(timeout={"execution": "200ms"})
    assert sandbox.sh("sleep 0.5; echo slow", timeout="30s").stdout == b"slow\n"
    sandbox = new(timeout={"execution": "1h"})
    assert sandbox.sh("sleep 60", timeout="200ms").status == "timeout"
    assert sandbox.sh("sleep 0.3", timeout="0").status == "completed"


def test_a_timeout_ends_the_whole_tree(sandbox, server):
    ran = sandbox.sh("setsid sleep 71 & (setsid sleep 72 &); trap '' TERM; sleep 73", timeout="300ms")
    assert ran.status == "timeout"
    assert sandbox.sh("pgrep -x sleep").exit_code == 1


def test_a_timeout_leaves_jobs_alone(sandbox):
    job = sandbox.job("sleep", "60")
    assert sandbox.run("sleep", "61", timeout="200ms").status == "timeout"
    assert sandbox.job_state(job["jobId"])["status"] == "running"


def test_a_stopped_command_times_out_too(sandbox):
    ran = sandbox.sh("kill -STOP $$", timeout="500ms")
    assert (ran.status, ran.exit_code) == ("timeout", 124)


# ---- where output goes ----

def test_output_can_be_ignored(sandbox):
    started = sandbox.execute("sh", "-c", "echo out; echo err >&2", stream={"stdout": "ignore"})
    assert "stdoutStreamUrl" not in started and "stderrStreamUrl" in started


def test_output_goes_to_a_stream_of_the_users(sandbox, api):
    id = api.new_stream("mine")
    ran = sandbox.run("sh", "-c", "echo out; echo err >&2", stream={"stdout": id, "stderr": id})
    assert ran.started["stdoutStreamUrl"] == ran.started["stderrStreamUrl"]
    assert ran.stdout == b"out\nerr\n"
    answer = api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"], "stream": {"stdout": id}})
    check_error(answer, 400, "INVALID_ARGUMENT", "stream")  # it has ended


def test_an_unknown_stream_is_refused(sandbox, api):
    answer = api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"], "stream": {"stdout": "stream_none"}})
    check_error(answer, 400, "INVALID_ARGUMENT", "stream")
    assert sandbox.status()["status"] == "idle"


def test_a_flood_of_output_is_cut_and_said(sandbox, api):
    ran = sandbox.sh("head -c 300000000 /dev/zero | tr '\\0' x; echo end >&2")
    assert (ran.status, ran.exit_code, ran.stderr) == ("completed", 0, b"end\n")
    assert ran.state["outputTruncated"] is True
    assert len(ran.stdout) >= 8 << 20 and not ran.stdout.strip(b"x")


def test_output_that_was_cut_is_still_said_to_be_after_a_delete(new, api):
    sandbox = new()
    started = sandbox.execute("sh", "-c", "head -c 100000000 /dev/zero; touch cut; sleep 600")
    until(lambda: sandbox.read("cut").status == 200, "more output than is kept")
    assert sandbox.delete().status == 200
    state = api.execution(started["executionId"])
    assert state["status"] != "running" and state["outputTruncated"] is True


def test_a_slow_reader_holds_up_nobody(sandbox, api):
    started = sandbox.execute("sh", "-c", "head -c 50000000 /dev/zero")
    with Raw(api.port) as raw:  # asks and never reads
        raw.send(f"GET {started['stdoutStreamUrl'].removeprefix(api.url)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert api.wait_execution(started["executionId"])["exitCode"] == 0
        assert sandbox.run("true").exit_code == 0


# ---- list ----

def test_executions_are_listed_newest_first(sandbox, api):
    ids = [sandbox.run("echo", str(i)).state["executionId"] for i in range(5)]
    listed = api.get(f"/sandbox/sandboxes/{sandbox.id}/executions").data["executions"]
    assert [entry["executionId"] for entry in listed] == ids[::-1]
    assert listed[0]["command"] == ["echo", "4"] and listed[0]["exitCode"] == 0
    listed = api.get(f"/sandbox/sandboxes/{sandbox.id}/executions?limit=2").data["executions"]
    assert [entry["executionId"] for entry in listed] == ids[:-3:-1]
    assert api.get(f"/sandbox/sandboxes/{sandbox.id}/executions?limit=0").data["executions"] == []
    check_error(api.get(f"/sandbox/sandboxes/{sandbox.id}/executions?limit=x"), 400, "INVALID_ARGUMENT", "limit")


def test_jobs_and_file_calls_are_not_executions(sandbox, api):
    sandbox.job("true")
    sandbox.write_all({"x": "y"})
    assert api.get(f"/sandbox/sandboxes/{sandbox.id}/executions").data["executions"] == []
    assert sandbox.get()["executions"] == 0


def test_executions_of_an_ended_sandbox_can_be_listed(api):
    sandbox = api.create_one_shot("echo", "x")
    sandbox.wait_status("terminated")
    [entry] = api.get(f"/sandbox/sandboxes/{sandbox.id}/executions").data["executions"]
    assert entry["executionId"] == sandbox.execution_id and entry["status"] == "completed"


# ---- refusals ----

def test_unknown_executions_are_not_found(api, sandbox):
    for id in ("exe_none", "exe_", "nonsense", sandbox.id):
        check_error(api.get(f"/sandbox/execution/{id}"), 404, "EXECUTION_NOT_FOUND")
    job = sandbox.job("true")
    check_error(api.get(f"/sandbox/execution/{job['jobId']}"), 404, "EXECUTION_NOT_FOUND")
    check_error(api.get(f"/sandbox/execution/{job['jobId'].replace('job_', 'exe_')}"), 404, "EXECUTION_NOT_FOUND")


def test_unknown_sandboxes_are_not_found(api):
    check_error(api.post("/sandbox/sbx_none/execute", {"command": ["true"]}), 404, "SANDBOX_NOT_FOUND")
    check_error(api.get("/sandbox/sandboxes/sbx_none/executions"), 404, "SANDBOX_NOT_FOUND")


def test_a_deleted_sandbox_runs_nothing(api):
    sandbox = api.create()
    sandbox.delete()
    check_error(api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"]}), 404, "SANDBOX_NOT_FOUND")


@pytest.mark.parametrize("body, where", [
    ({}, "command"), ({"command": []}, "command"), ({"command": "true"}, "command"), ({"command": [1]}, "command[0]"),
    ({"command": ["a", None]}, "command[1]"), ({"command": ["a\0"]}, "command[0]"), ({"command": {}}, "command"),
    ({"command": ["true"], "timeout": "soon"}, "timeout"), ({"command": ["true"], "timeout": 5}, "timeout"),
    ({"command": ["true"], "timeout": "-1s"}, "timeout"),
    ({"command": ["true"], "files": [{"path": 1, "content": ""}]}, "files[0].path"),
    ({"command": ["true"], "files": [{"content": ""}]}, "files[0].path"),
    ({"command": ["true"], "files": [{"path": "a", "content": ""}, {"path": "x", "content": "a"}]}, "files[1].content"),
    ({"command": ["true"], "stream": "no"}, "stream"), ({"command": ["true"], "stream": {"timestamps": "yes"}}, "stream.timestamps"),
])
def test_bad_requests_are_refused_by_field(api, shared, body, where):
    check_error(api.post(f"/sandbox/{shared.id}/execute", body), 400, "INVALID_ARGUMENT", where)
    assert shared.status()["status"] == "idle"


# ---- cancelled ----

def test_destroying_the_sandbox_cancels_and_wakes_everybody(api):
    sandbox = api.create()
    started = sandbox.execute("sh", "-c", "echo on; sleep 60")
    api.follow(started["stdoutStreamUrl"]).wait_for(b"on\n")
    *states, out, gone = together(*[lambda: api.get(f"/sandbox/execution/{started['executionId']}?wait=5m").data] * 5,
                                  lambda: api.read(started["stdoutStreamUrl"]), sandbox.delete)
    assert gone.status == 200 and out == b"on\n"
    assert {(state["status"], state["exitCode"]) for state in states} == {("cancelled", 137)}


def test_a_command_that_harms_all_it_can_ends_only_itself(sandbox, server, api):
    other = api.create()
    other.execute("sleep", "60")
    sandbox.sh("kill -9 -1")
    assert sandbox.run("echo", "alive").stdout == b"alive\n"
    assert other.status()["status"] == "running"
    other.delete()
    assert server.process.poll() is None
