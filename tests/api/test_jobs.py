# SPDX-License-Identifier: Apache-2.0
"""Jobs: commands beside the execution, several at once, stopped by TERM, then KILL."""
import re
import time

import pytest
from client import check_error, nulls, together, until, waiting_for


def path(sandbox, suffix=""):
    return f"/sandbox/sandboxes/{sandbox.id}/jobs{suffix}"


def stop(api, sandbox, job, force=False):
    return api.delete(path(sandbox, f"/{job['jobId']}") + ("?force=true" if force else "")).data


def test_a_job_is_answered_at_once_and_runs_on(sandbox, api):
    job = sandbox.job("sh", "-c", f"echo out; echo err >&2; {waiting_for()}")
    assert re.fullmatch(r"job_[A-Za-z0-9]{20,}", job["jobId"])
    assert job["sandboxId"] == sandbox.id and job["status"] in ("pending", "running")
    assert job["command"] == ["sh", "-c", f"echo out; echo err >&2; {waiting_for()}"]
    assert "exitCode" not in job or job["exitCode"] is None
    assert api.follow(job["stdoutStreamUrl"]).wait_for(b"out\n") and api.follow(job["stderrStreamUrl"]).wait_for(b"err\n")
    assert sandbox.job_state(job["jobId"])["status"] == "running"
    sandbox.release()
    state = sandbox.wait_job(job["jobId"])
    assert (state["status"], state["exitCode"]) == ("completed", 0)
    assert state["startedAt"] <= state["completedAt"]
    assert api.read(job["stdoutStreamUrl"]) == b"out\n" and api.read(job["stderrStreamUrl"]) == b"err\n"


def test_a_code_other_than_zero_is_a_failure(sandbox):
    job = sandbox.wait_job(sandbox.job("sh", "-c", "exit 6")["jobId"])
    assert (job["status"], job["exitCode"]) == ("failed", 6)
    job = sandbox.wait_job(sandbox.job("no-such-command")["jobId"])
    assert (job["status"], job["exitCode"]) == ("failed", 127)
    assert "no-such-command" in job["error"]


def test_jobs_do_not_make_the_sandbox_busy(sandbox, api):
    jobs = [sandbox.job("sleep", "60") for _ in range(5)]
    assert sandbox.status()["status"] == "idle"
    assert sandbox.run("echo", "beside").stdout == b"beside\n"
    started = sandbox.execute("sh", "-c", waiting_for())
    jobs.append(sandbox.job("sleep", "60"))
    assert {sandbox.job_state(job["jobId"])["status"] for job in jobs} == {"running"}
    sandbox.release()
    api.wait_execution(started["executionId"])
    assert {sandbox.job_state(job["jobId"])["status"] for job in jobs} == {"running"}


def test_a_job_ends_with_a_one_shot_sandbox(api):
    made = api.post("/sandbox", {"command": {"exec": ["sh", "-c", "until [ -e go ]; do sleep 0.05; done"], "mode": "oneshot"}}).data
    jobs = f"/sandbox/sandboxes/{made['sandboxId']}/jobs"
    job = api.post(jobs, {"command": ["sh", "-c", "echo begun; sleep 600"]}).data
    reader = api.follow(job["stdoutStreamUrl"])
    assert reader.wait_for(b"begun\n")
    api.post(f"/fs/{made['sandboxId']}", {"files": [{"path": "go", "content": ""}]})
    until(lambda: api.get(f"/sandbox/status/{made['sandboxId']}").data["status"] == "terminated", "the sandbox to end")
    until(lambda: api.get(f"{jobs}/{job['jobId']}").data["status"] == "cancelled", "the job to end with it")
    assert api.read(job["stdoutStreamUrl"]) == b"begun\n"  # a stream that is complete ends


def test_jobs_are_listed_newest_first(sandbox, api):
    ids = [sandbox.job("echo", str(i))["jobId"] for i in range(4)]
    assert [job["jobId"] for job in api.get(path(sandbox)).data["jobs"]] == ids[::-1]
    assert [job["jobId"] for job in api.get(path(sandbox, "?limit=2")).data["jobs"]] == ids[:1:-1]
    assert api.get(path(sandbox, "?limit=0")).data["jobs"] == []
    check_error(api.get(path(sandbox, "?limit=many")), 400, "INVALID_ARGUMENT", "limit")


def test_executions_are_not_among_the_jobs(sandbox, api):
    ran = sandbox.run("true")
    assert api.get(path(sandbox)).data["jobs"] == []
    check_error(api.get(path(sandbox, "/" + ran.state["executionId"].replace("exe_", "job_"))), 404, "JOB_NOT_FOUND")


# ---- stopping ----

def test_a_job_is_asked_to_stop_and_is_cancelled(sandbox, api):
    job = sandbox.job("sh", "-c", "trap 'echo bye; exit 0' TERM; echo on; while :; do sleep 0.02; done")
    output = api.follow(job["stdoutStreamUrl"])
    output.wait_for(b"on\n")
    assert stop(api, sandbox, job)["jobId"] == job["jobId"]
    state = sandbox.wait_job(job["jobId"])
    assert state["status"] == "cancelled"
    assert isinstance(state["exitCode"], int)
    assert output.rest() == b"on\nbye\n"


def test_a_job_that_does_not_listen_is_killed_after_a_while(sandbox, api):
    job = sandbox.job("sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.1; done")
    api.follow(job["stdoutStreamUrl"]).wait_for(b"on\n")
    began = time.monotonic()
    stop(api, sandbox, job)
    state = sandbox.wait_job(job["jobId"])
    assert (state["status"], state["exitCode"]) == ("cancelled", 137)
    assert time.monotonic() > began + 4, "it was not given time"


def test_force_is_at_once(sandbox, api):
    job = sandbox.job("sh", "-c", "trap '' TERM; echo on; setsid sleep 81 & while :; do sleep 0.1; done")
    output = api.follow(job["stdoutStreamUrl"])
    output.wait_for(b"on\n")
    assert stop(api, sandbox, job, force=True)["jobId"] == job["jobId"]
    state = sandbox.wait_job(job["jobId"])
    assert (state["status"], state["exitCode"]) == ("cancelled", 137)
    assert output.rest() == b"on\n"
    assert sandbox.sh("pgrep -x sleep").exit_code == 1


def test_force_after_asking_is_at_once_too(sandbox, api):
    job = sandbox.job("sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.1; done")
    api.follow(job["stdoutStreamUrl"]).wait_for(b"on\n")
    stop(api, sandbox, job)
    stop(api, sandbox, job, force=True)
    assert sandbox.wait_job(job["jobId"])["status"] == "cancelled"


def test_stopping_an_ended_job_returns_it_unchanged(sandbox, api):
    job = sandbox.wait_job(sandbox.job("sh", "-c", "exit 3")["jobId"])
    assert stop(api, sandbox, job) == job
    assert stop(api, sandbox, job, force=True) == job


def test_stopping_one_job_leaves_the_others(sandbox, api):
    jobs = [sandbox.job("sleep", "60") for _ in range(3)]
    started = sandbox.execute("sh", "-c", waiting_for())
    stop(api, sandbox, jobs[1], force=True)
    sandbox.wait_job(jobs[1]["jobId"])
    assert [sandbox.job_state(job["jobId"])["status"] for job in jobs] == ["running", "cancelled", "running"]
    sandbox.release()
    assert api.wait_execution(started["executionId"])["exitCode"] == 0


def test_stopping_at_once_by_many_is_fine(sandbox, api):
    job = sandbox.job("sleep", "60")
    together(*[lambda: stop(api, sandbox, job)] * 5, *[lambda: stop(api, sandbox, job, force=True)] * 5)
    assert sandbox.wait_job(job["jobId"])["status"] == "cancelled"


def test_jobs_die_with_their_sandbox(api):
    sandbox = api.create()
    job = sandbox.job("sh", "-c", "echo on; sleep 60")
    output = api.follow(job["stdoutStreamUrl"])
    output.wait_for(b"on\n")
    sandbox.delete()
    assert output.rest() == b"on\n"
    assert api.read(job["stderrStreamUrl"]) == b""


# ---- streams ----

def test_output_can_be_ignored(sandbox):
    job = sandbox.job("echo", "x", streams={"stdout": "ignore"})
    assert not job.get("stdoutStreamUrl") and job["stderrStreamUrl"]


def test_output_goes_to_a_stream_of_the_users(sandbox, api):
    id = api.new_stream("job output")
    job = sandbox.job("sh", "-c", "echo out; echo err >&2", streams={"stdout": id, "stderr": id})
    assert job["stdoutStreamUrl"] == job["stderrStreamUrl"]
    assert api.read(f"/stream/{id}") == b"out\nerr\n"


# ---- refusals ----

@pytest.mark.parametrize("body, where", [
    ({}, "command"), ({"command": []}, "command"), ({"command": "x"}, "command"), ({"command": [True]}, "command[0]"),
    ({"command": ["x"], "streams": []}, "streams"), ({"command": ["x"], "streams": {"stdout": 1}}, "streams.stdout"),
    ({"command": ["x"], "streams": {"stdout": "stream_none"}}, "stream"),
])
def test_bad_jobs_are_refused_by_field(api, shared, body, where):
    check_error(api.post(path(shared), body), 400, "INVALID_ARGUMENT", where)


def test_unknown_jobs_and_sandboxes_are_not_found(api, sandbox, shared):
    check_error(api.get(path(sandbox, "/job_none")), 404, "JOB_NOT_FOUND")
    check_error(api.delete(path(sandbox, "/job_none")), 404, "JOB_NOT_FOUND")
    job = sandbox.job("sleep", "60")
    check_error(api.get(path(shared, f"/{job['jobId']}")), 404, "JOB_NOT_FOUND")
    check_error(api.delete(path(shared, f"/{job['jobId']}")), 404, "JOB_NOT_FOUND")
    assert sandbox.job_state(job["jobId"])["status"] == "running"
    check_error(api.post("/sandbox/sandboxes/sbx_none/jobs", {"command": ["true"]}), 404, "SANDBOX_NOT_FOUND")
    check_error(api.get("/sandbox/sandboxes/sbx_none/jobs"), 404, "SANDBOX_NOT_FOUND")


def test_a_malformed_force_is_refused(api, sandbox):
    job = sandbox.job("sleep", "60")
    check_error(api.delete(path(sandbox, f"/{job['jobId']}?force=perhaps")), 400, "INVALID_ARGUMENT", "force")


def test_fifty_jobs_at_once(sandbox, api):
    jobs = [job for some in together(*[lambda: [sandbox.job("sh", "-c", waiting_for()) for _ in range(10)]] * 5) for job in some]
    assert len(api.get(path(sandbox, "?limit=100")).data["jobs"]) == 50
    sandbox.release()
    assert {sandbox.wait_job(job["jobId"])["status"] for job in jobs} == {"completed"}
