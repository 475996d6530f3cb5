# SPDX-License-Identifier: Apache-2.0
"""Pause and resume: files, processes and memory are kept, nothing runs meanwhile, and execute wakes."""
import datetime

import pytest
from client import check_error, nulls, together, until, waiting_for


def pause(sandbox, **kwargs):
    return sandbox.client.post(f"/sandbox/{sandbox.id}/pause", **kwargs)


def resume(sandbox, **kwargs):
    return sandbox.client.post(f"/sandbox/{sandbox.id}/resume", **kwargs)


def pause_ok(sandbox):
    answer = pause(sandbox)
    assert answer.status == 200 and answer.json["success"] is True, str(answer)
    return answer.json


def resume_ok(sandbox):
    answer = resume(sandbox)
    assert answer.status == 200, str(answer)
    assert answer.json == {"success": True}


def execute(sandbox, *argv):
    return sandbox.client.post(f"/sandbox/{sandbox.id}/execute", {"command": list(argv)})


def at(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


# ---- the answers ----

def test_the_answer_is_flat_and_without_nulls(sandbox):
    paused = pause_ok(sandbox)
    assert paused["sandboxId"] == sandbox.id
    assert paused["status"] == "suspended"
    assert "data" not in paused and "terminatesAt" not in paused and not nulls(paused)
    assert sandbox.get()["status"] == sandbox.status()["status"] == "suspended"
    resume_ok(sandbox)
    assert sandbox.get()["status"] == "idle"


def test_a_body_and_a_content_type_do_not_matter(sandbox):
    assert pause(sandbox, headers={"Content-Type": "application/json"}).status == 200
    assert resume(sandbox, headers={"Content-Type": "application/json"}, body=b"{}").status == 200


@pytest.mark.parametrize("paused, seconds", [("24h", 86400), ("1h30m", 5400)])
def test_a_paused_timeout_tells_when_it_ends(new, paused, seconds):
    sandbox = new(timeout={"paused": paused})
    answer = pause_ok(sandbox)
    now = datetime.datetime.now(datetime.timezone.utc)
    assert abs((at(answer["terminatesAt"]) - now).total_seconds() - seconds) < 60
    assert answer["terminatesAt"].endswith("Z")


@pytest.mark.parametrize("never", ["0", "0s"])
def test_no_paused_timeout_is_for_ever(new, never):
    sandbox = new(timeout={"paused": never, "idle": "1s"})
    assert "terminatesAt" not in pause_ok(sandbox)
    assert sandbox.get()["timeout"]["paused"] == never
    # What ends an idle sandbox does not end a paused one: the other one, as old as this, has gone.
    other = new(timeout={"idle": "1s"})
    other.wait_status("terminated")
    assert sandbox.status()["status"] == "suspended"


# ---- states ----

def test_only_an_awake_sandbox_is_paused_and_only_a_paused_one_resumed(sandbox):
    check_error(resume(sandbox), 409, "INVALID_STATE")
    pause_ok(sandbox)
    check_error(pause(sandbox), 409, "INVALID_STATE")
    resume_ok(sandbox)
    check_error(resume(sandbox), 409, "INVALID_STATE")


def test_unknown_and_ended_sandboxes_cannot_be_paused_or_resumed(api):
    for verb in ("pause", "resume"):
        check_error(api.post(f"/sandbox/sbx_none/{verb}"), 404, "SANDBOX_NOT_FOUND")
        check_error(api.post(f"/sandbox/sbx_none/{verb}", key=None), 401, "UNAUTHORIZED")
    ended = api.create_one_shot("true")
    ended.wait_status("terminated")
    deleted = api.create()
    deleted.delete()
    for verb in (pause, resume):
        check_error(verb(ended), 404, "SANDBOX_TERMINATED")
        check_error(verb(deleted), 404, "SANDBOX_NOT_FOUND")


def test_a_paused_sandbox_can_be_deleted(api):
    sandbox = api.create()
    sandbox.execute("sleep", "600")
    pause_ok(sandbox)
    assert sandbox.delete().status == 200
    check_error(api.get(f"/sandbox/{sandbox.id}"), 404, "SANDBOX_NOT_FOUND")


def test_a_long_poll_hears_of_pause_and_resume(sandbox):
    state, _ = together(lambda: sandbox.wait_status("suspended"), lambda: pause_ok(sandbox))
    assert state["status"] == "suspended"
    state, _ = together(lambda: sandbox.wait_status("idle"), lambda: resume_ok(sandbox))
    assert state["status"] == "idle"


def test_events_tell_of_pause_and_resume(sandbox):
    pause_ok(sandbox)
    resume_ok(sandbox)
    kinds = [event["type"] for event in sandbox.events()]
    assert kinds.index("pause") < kinds.index("resume")


def test_lists_know_paused_sandboxes(api, new):
    sandbox = new(name="asleep")
    pause_ok(sandbox)
    assert [entry["sandboxId"] for entry in api.get("/sandbox?name=asleep&status=suspended&live=true").data["sandboxes"]] == [sandbox.id]
    assert api.get("/sandbox?name=asleep&status=idle").data["total"] == 0


def test_many_pauses_at_once_are_one_pause(sandbox):
    answers = together(*[lambda: pause(sandbox)] * 6)
    assert sorted(answer.status for answer in answers) == [200] + [409] * 5
    answers = together(*[lambda: resume(sandbox)] * 6)
    assert sorted(answer.status for answer in answers) == [200] + [409] * 5


# ---- what is kept ----

def test_files_stay(sandbox):
    sandbox.write(kept="before")
    sandbox.output("ln -s kept link; mkdir -p deep/er; echo x >/tmp/t")
    pause_ok(sandbox)
    resume_ok(sandbox)
    assert sandbox.output("cat link /tmp/t; ls deep") == "beforex\ner\n"


def test_processes_and_their_memory_stay_and_do_nothing_meanwhile(sandbox):
    job = sandbox.job("sh", "-c", "n=0; while :; do n=$((n+1)); echo $n >count; sleep 0.01; done")
    count = lambda: int(sandbox.read("count").body or b"0")
    until(lambda: sandbox.read("count").status == 200 and count() > 3, "the job to count")
    pause_ok(sandbox)
    seen = [sandbox.read("count").body for _ in range(20)]
    assert len(set(seen)) == 1
    assert sandbox.job_state(job["jobId"])["status"] == "running"
    resume_ok(sandbox)
    until(lambda: count() > int(seen[0] or b"0") + 3, "the job to count on")
    assert count() > int(seen[0] or b"0"), "it went on from where it was"


def test_a_command_that_runs_goes_on_after_the_pause(sandbox):
    started = sandbox.execute("sh", "-c", f"echo begun; {waiting_for()}; echo ended")
    assert sandbox.get()["status"] == "running"
    pause_ok(sandbox)
    assert sandbox.status()["status"] == "suspended"
    sandbox.release()
    assert sandbox.client.execution(started["executionId"])["status"] == "running"
    resume_ok(sandbox)
    ended = sandbox.client.wait_execution(started["executionId"])
    assert (ended["status"], ended["exitCode"]) == ("completed", 0)
    assert sandbox.client.read(started["stdoutStreamUrl"]) == b"begun\nended\n"


def test_files_can_be_read_written_listed_and_removed_meanwhile(sandbox):
    sandbox.write(first="1")
    pause_ok(sandbox)
    assert sandbox.read("first").body == b"1"
    sandbox.write(second="2")
    assert {entry["path"] for entry in sandbox.list()} >= {"first", "second"}
    assert sandbox.client.post(f"/fs/mkdir/{sandbox.id}", {"path": "a/b", "recursive": True}).status == 200
    assert sandbox.client.post(f"/fs/rm/{sandbox.id}", {"path": "first"}).json["found"] is True
    assert sandbox.client.get(f"/fs/download/{sandbox.id}").status == 200
    assert sandbox.status()["status"] == "suspended", "no file call wakes it"
    resume_ok(sandbox)
    assert sandbox.output("ls") == "a\nsecond\n"


def test_variables_can_be_changed_meanwhile(sandbox):
    pause_ok(sandbox)
    assert sandbox.client.patch(f"/sandbox/env/{sandbox.id}", {"env": {"WORD": "new"}}).data["env"] == {"WORD": "new"}
    assert sandbox.output("echo $WORD") == "new\n"


# ---- waking ----

def test_execute_wakes_and_says_so_beside_the_data(sandbox):
    sandbox.write(kept="yes")
    pause_ok(sandbox)
    answer = execute(sandbox, "cat", "kept")
    assert answer.status == 200, str(answer)
    assert answer.json["autoResumed"] is True and "autoResumed" not in answer.json["data"]
    assert answer.data["status"] in ("running", "queued")
    sandbox.client.wait_execution(answer.data["executionId"])
    assert sandbox.client.read(answer.data["stdoutStreamUrl"]) == b"yes"
    assert sandbox.wait_status("idle")["status"] == "idle"
    again = execute(sandbox, "true")
    assert "autoResumed" not in again.json
    sandbox.client.wait_execution(again.data["executionId"])


def test_a_command_frozen_in_the_middle_keeps_its_sandbox_busy(sandbox):
    sandbox.execute("sh", "-c", waiting_for())
    pause_ok(sandbox)
    check_error(execute(sandbox, "true"), 409, "SANDBOX_BUSY")


def test_many_commands_at_once_wake_it_once(sandbox):
    pause_ok(sandbox)
    answers = together(*[lambda: execute(sandbox, "sh", "-c", waiting_for())] * 4)
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409]
    sandbox.release()


def test_a_job_wakes_too(sandbox):
    pause_ok(sandbox)
    job = sandbox.job("true")
    assert sandbox.wait_job(job["jobId"])["status"] == "completed"


# ---- the end of it ----

def test_a_sandbox_that_is_paused_too_long_ends(api):
    sandbox = api.create(timeout={"paused": "1s"})
    paused = pause_ok(sandbox)
    assert sandbox.wait_status("terminated")["status"] == "terminated"
    assert at(sandbox.events()[-1]["createdAt"]) >= at(paused["terminatesAt"])
    assert "paused" in sandbox.events()[-1]["event"]["reason"]
    check_error(resume(sandbox), 404, "SANDBOX_TERMINATED")
    check_error(execute(sandbox, "true"), 404, "SANDBOX_TERMINATED")


def test_resuming_stops_the_clock(api, new):
    sandbox = new(timeout={"paused": "2s"})
    pause_ok(sandbox)
    resume_ok(sandbox)
    other = api.create(timeout={"paused": "2s"})
    pause_ok(other)
    other.wait_status("terminated")
    assert sandbox.status()["status"] == "idle"
    first = at(pause_ok(sandbox)["terminatesAt"])
    assert first > at(other.events()[-1]["createdAt"])


# ---- the server's end ----

@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart_of_the_server_keeps_the_frozen_processes(own_server, how):
    server = own_server()
    sandbox = server.client.create(timeout={"idle": "1h"})
    job = sandbox.job("sh", "-c", f"echo $$ >pid; {waiting_for()}; cat /proc/sys/kernel/random/boot_id >done; cat pid >>done")
    until(lambda: sandbox.read("pid").status == 200 and sandbox.read("pid").body, "the job's pid")
    pause_ok(sandbox)
    getattr(server, how)()
    server.start()
    sandbox = server.client.sandbox(sandbox.id)
    assert sandbox.status()["status"] == "suspended"
    assert sandbox.job_state(job["jobId"])["status"] == "running"
    sandbox.release()
    resume_ok(sandbox)
    assert sandbox.wait_job(job["jobId"])["status"] == "completed"
    assert sandbox.read("done").body.splitlines()[1:] == sandbox.read("pid").body.splitlines()
    server.end()
