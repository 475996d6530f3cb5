# SPDX-License-Identifier: Apache-2.0
"""What a server that is killed leaves, the next one has: sessions, runs, outputs, and the queue."""
import http.client
import threading

import pytest

from aionis import PATIENT, Aionis
from client import together, until
from server import end_process

WAIT = "until [ -e go ]; do sleep 0.02; done"


def again(server):
    server.start()
    return Aionis(server.port, server.key)


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_everything_is_there_again(own_server, how):
    server, aionis = own_server()
    session = aionis.session(metadata={"a": 1})
    aionis.sh(session, "echo kept > file")
    ended = aionis.run(session, "echo", "hi", metadata={"b": 2})
    refused = aionis.run(session, "ls")
    cancelled = aionis.start(session, "sleep", "60")
    aionis.cancel(cancelled, reason="why not")
    cancelled = aionis.wait(cancelled)
    running = [aionis.start(session, "sh", "-c", f"echo begun; {WAIT}; echo {i}", timeout_ms=PATIENT) for i in range(2)]
    for run in running:
        until(lambda run=run: aionis.logs(run)["stdout"], "it to be under way")
    queued = [aionis.start(session, "echo", str(i)) for i in range(4)]
    gone = aionis.start(session, "echo", "never")
    aionis.cancel(gone)
    getattr(server, how)()
    aionis = again(server)

    for record in (ended, refused, cancelled):
        assert aionis.get(record["run_id"]) == record
    assert aionis.artifact(ended["run_id"])["metadata"] == {"b": 2}
    assert aionis.get(gone)["error"] == "canceled_before_execution"
    assert {aionis.get(run)["status"] for run in running} == {"running"}
    assert aionis.sh(session, "cat file; touch go")["output"]["stdout"] == "kept\n"
    assert [aionis.wait(run)["output"]["stdout"] for run in running] == ["begun\n0\n", "begun\n1\n"]
    # On the vendor's server these stay queued for ever.
    assert [aionis.wait(run)["output"]["stdout"] for run in queued] == [f"{i}\n" for i in range(4)]


def test_a_queued_run_can_be_cancelled_after_a_restart(own_server):
    server, aionis = own_server(SANDBOX_EXECUTOR_MAX_CONCURRENCY="1")
    session = aionis.session()
    first = aionis.start(session, "sleep", "60")
    aionis.wait(first, "running")
    queued = [aionis.start(session, "sleep", "60") for _ in range(3)]
    server.kill()
    aionis = again(server)
    for run in [first, *queued]:
        aionis.cancel(run)
        assert aionis.wait(run)["status"] == "canceled"
    assert aionis.run(session, "echo", "alive")["status"] == "succeeded"


def test_a_cancel_that_a_crash_cut_short_is_done(own_server):
    server, aionis = own_server()
    session = aionis.session()
    runs = [aionis.start(session, "sh", "-c", "trap '' TERM; while true; do sleep 1; done", timeout_ms=PATIENT) for _ in range(2)]
    for run in runs:
        aionis.wait(run, "running")
        aionis.cancel(run)
    server.kill()
    aionis = again(server)
    assert {aionis.wait(run)["status"] for run in runs} == {"canceled"}


def test_a_run_whose_box_is_gone_is_over(own_server):
    """As after a crash of the machine. On the vendor's server its processes live on."""
    server, aionis = own_server()
    session = aionis.session()
    run = aionis.start(session, "sh", "-c", f"echo begun; {WAIT}", timeout_ms=PATIENT)
    until(lambda: aionis.logs(run)["stdout"], "it to be under way")
    aionis.run(session, "echo")  # what was before it in the session is on the disk by then
    server.kill()
    for pid in server.box_processes():
        end_process(pid)
    until(lambda: not server.box_processes(), "the box to be gone")
    aionis = again(server)
    record = aionis.wait(run)
    assert (record["status"], record["error"], record["exit_code"]) == ("timeout", "executor_stale_recovered", None)
    assert record["result"] == {"recovery": {"stale_recovered": True, "stale_after_ms": 120000}}
    assert record["result_summary"]["result_preview"] == '{"recovery":{"stale_after_ms":120000,"stale_recovered":true}}'
    assert aionis.logs(run)["stdout"] == "begun\n"


def test_a_client_of_a_server_that_stops_is_told_what_is(own_server):
    """Its run goes on; the next server knows how it ends."""
    server, aionis = own_server()
    session = aionis.session()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(aionis.sh(session, f"touch on; {WAIT}; echo done", timeout_ms=PATIENT)))
    thread.start()
    until(lambda: aionis.sh(session, "ls on")["exit_code"] == 0, "it to be under way")
    server.stop()
    thread.join(60)
    assert answers[0]["status"] == "running"
    aionis = again(server)
    aionis.sh(session, "touch go")
    assert aionis.wait(answers[0]["run_id"])["output"]["stdout"] == "done\n"


def use(aionis, sessions, answers, enough):
    """Runs of all kinds until the server is gone; what it said of them, in `answers`."""
    for i in range(100):
        kind = ("async", "sync", "cancel")[i % 3]
        session = sessions[i % len(sessions)]
        try:
            run = aionis.run(session, "echo", "word") if kind == "sync" else aionis.execute(
                session, *(["sleep", "30"] if kind == "cancel" else ["echo", "word"]), mode="async")["run"]
            if kind == "cancel":
                aionis.cancel(run["run_id"])
            answers.append((kind, run["run_id"]))
        except (OSError, http.client.HTTPException):
            return
        if len(answers) >= enough:
            return


@pytest.mark.parametrize("enough", [2, 5, 11, 23, 47, 95])
def test_a_crash_loses_nothing_that_was_told(own_server, enough):
    """However far each run was just then."""
    server, aionis = own_server()
    sessions, answers = [aionis.session() for _ in range(2)], []
    killer = threading.Thread(target=lambda: (until(lambda: len(answers) >= enough, "enough answers"), server.kill()))
    killer.start()
    together(*[lambda: use(aionis, sessions, answers, 3 * enough) for _ in range(3)])
    killer.join()
    aionis = again(server)
    for kind, run in answers:
        record = aionis.wait(run)
        assert (record["status"], record["output"]["stdout"]) == (("canceled", "") if kind == "cancel" else ("succeeded", "word\n")), record
    until(lambda: aionis.health()["active_runs"] == 0, "nothing to run")
    assert aionis.health()["queue_depth"] == 0
    for session in sessions:
        assert aionis.run(session, "echo")["status"] == "succeeded"
