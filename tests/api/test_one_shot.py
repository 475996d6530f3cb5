# SPDX-License-Identifier: Apache-2.0
"""One-shot runs, with the requests that run() of the stock client makes, in its order and all at once."""
import hashlib
import re
import threading

import audit
import pytest
from client import PATIENCE, Raw, base64_of, check_error, files_json, nulls, together, until, waiting_for


class Run:
    """What run() does: create, then both streams, both polls and the input in parallel."""

    def __init__(self, api, *argv, stdin=None, **fields):
        self.api = api
        stream = fields.pop("stream", {})
        files = fields.pop("command_files", None)
        if stdin is not None:
            stream["stdin"] = api.new_stream("sandbox-stdin-1")
        command = {"exec": list(argv), "mode": "oneshot"} | ({"files": files} if files else {})
        self.made = api.post("/sandbox", {"command": command, "stream": stream, **fields}).data
        self.sandbox = api.sandbox(self.made["sandboxId"])
        calls = {
            "execution": lambda: api.get(f"/sandbox/execution/{self.made['executionId']}?wait=5m").data,
            "status": lambda: api.get(f"/sandbox/status/{self.sandbox.id}"
                                      "?waitForStatus=idle%2Cterminated%2Cfailed&waitMs=300000").data,
        }
        for name in ("stdout", "stderr"):
            if url := self.made.get(f"{name}StreamUrl"):
                calls[name] = lambda url=url: api.read(url + "?v=2")
        if stdin is not None:
            calls["stdin"] = lambda: api.put(f"/stream/{stream['stdin']}", body=stdin)
        results = dict(zip(calls, together(*calls.values())))
        self.execution, self.status = results["execution"], results["status"]
        self.stdout, self.stderr = results.get("stdout"), results.get("stderr")
        self.stdin = results.get("stdin")

    def check(self, status, code):
        """Both polls tell the same end."""
        assert (self.execution["status"], self.execution["exitCode"]) == (status, code), self.execution
        assert (self.status["status"], self.status["exitCode"]) == ("terminated", code), self.status
        return self


# ---- how it ends ----

@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_the_exit_code_is_the_commands(api, code):
    run = Run(api, "sh", "-c", f"echo out; echo err >&2; exit {code}").check("completed", code)
    assert (run.stdout, run.stderr) == (b"out\n", b"err\n")
    assert run.execution["durationMs"] >= 0
    assert not nulls(run.made) and not nulls(run.execution) and not nulls(run.status)


@pytest.mark.parametrize("signal, code", [("KILL", 137), ("TERM", 143), ("SEGV", 139)])
def test_a_signal_is_a_code_above_128(api, signal, code):
    Run(api, "sh", "-c", f"kill -{signal} $$").check("completed", code)


def test_a_command_that_does_not_exist_fails_with_127(api):
    run = Run(api, "no-such-command").check("failed", 127)
    assert "no-such-command" in run.execution["error"]
    assert (run.stdout, run.stderr) == (b"", b"")


def test_a_command_that_cannot_be_executed_fails_with_126(api):
    Run(api, "/etc/passwd").check("failed", 126)
    Run(api, "/home").check("failed", 126)


def test_a_timeout_ends_it_with_124_and_keeps_the_output(api):
    run = Run(api, "sh", "-c", "echo before; sleep 60", timeout={"execution": "300ms"}).check("timeout", 124)
    assert run.stdout == b"before\n"


def test_a_timeout_ends_children_that_left_their_session(api, server):
    before = set(server.box_processes())
    Run(api, "sh", "-c", "setsid sleep 61 & (sleep 62 &) ; wait; sleep 63", timeout={"execution": "300ms"}).check("timeout", 124)
    until(lambda: not [pid for pid in set(server.box_processes()) - before if "sleep" in name_of(pid)], "its children to go")


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read()
    except OSError:
        return ""


def test_a_child_that_holds_the_output_does_not_hold_the_end(api):
    run = Run(api, "sh", "-c", "sleep 60 & echo done").check("completed", 0)
    assert run.stdout == b"done\n"


def test_the_end_is_told_at_one_moment(api):
    """Whoever hears of it first finds everything: code, final status, all output."""
    for number in range(40):
        made = api.create_one_shot("sh", "-c", f"echo {number}")
        state = made.status("terminated", 290000)
        assert (state["status"], state["exitCode"]) == ("terminated", 0)
        execution = api.execution(made.execution_id)
        assert (execution["status"], execution["exitCode"]) == ("completed", 0)
        assert made.get()["exitCode"] == 0
        assert api.read(made.made["stdoutStreamUrl"]) == f"{number}\n".encode()
    for number in range(40):
        made = api.create_one_shot("sh", "-c", f"echo {number}; exit 9")
        assert api.execution(made.execution_id, wait="290s")["exitCode"] == 9
        assert made.status() == {"sandboxId": made.id, "status": "terminated", "exitCode": 9}


def test_it_is_never_idle_and_has_no_code_before_its_end(api):
    made = api.create_one_shot("sh", "-c", f"cd; {waiting_for()}; exit 5")
    assert made.made["status"] in ("creating", "running")
    for _ in range(20):
        state = made.status()
        assert state["status"] in ("creating", "running") and "exitCode" not in state
        assert "exitCode" not in api.execution(made.execution_id)
    assert made.status("idle,terminated,failed", 100)["status"] in ("creating", "running")
    made.release()
    assert made.status("idle,terminated,failed", 290000) == {"sandboxId": made.id, "status": "terminated", "exitCode": 5}


def test_twenty_polls_of_each_kind_are_all_answered(api):
    made = api.create_one_shot("sh", "-c", waiting_for())
    polls = [f"/sandbox/execution/{made.execution_id}?wait=5m"] * 20 + \
            [f"/sandbox/status/{made.id}?waitForStatus=idle,terminated,failed&waitMs=300000"] * 20
    *answers, _ = together(*[lambda path=path: api.get(path) for path in polls], made.release)
    assert {answer.data["exitCode"] for answer in answers} == {0}


def test_a_hundred_runs_at_once_all_end(api):
    def some(thread):
        for number in range(10):
            run = api.create_one_shot("echo", f"{thread}-{number}")
            assert api.wait_execution(run.execution_id)["exitCode"] == 0
            assert api.read(run.made["stdoutStreamUrl"]) == f"{thread}-{number}\n".encode()
        return True
    assert all(together(*[lambda thread=thread: some(thread) for thread in range(10)]))


# ---- afterwards ----

def test_its_record_and_output_stay(api):
    run = Run(api, "sh", "-c", "echo kept; exit 2", name="kept")
    seen = run.sandbox.get()
    assert (seen["status"], seen["exitCode"], seen["mode"]) == ("terminated", 2, "oneshot")
    assert seen["command"] == {"exec": ["sh", "-c", "echo kept; exit 2"], "mode": "oneshot"}
    assert seen["executions"] == 1
    for _ in range(3):
        assert api.read(run.made["stdoutStreamUrl"]) == b"kept\n"


def test_nothing_more_can_be_done_with_it(api):
    sandbox = Run(api, "true").sandbox
    for answer in (
        api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"]}),
        api.post(f"/sandbox/sandboxes/{sandbox.id}/jobs", {"command": ["true"]}),
        api.post(f"/fs/{sandbox.id}", {"files": []}),
        api.get(f"/fs/{sandbox.id}?path=x"),
        api.get(f"/fs/list/{sandbox.id}"),
        api.post(f"/fs/mkdir/{sandbox.id}", {"path": "x", "recursive": True}),
        api.post(f"/fs/rm/{sandbox.id}", {"path": "x"}),
        api.post(f"/fs/rmdir/{sandbox.id}", {"path": "x", "recursive": True}),
        api.get(f"/fs/download/{sandbox.id}?path=."),
    ):
        check_error(answer, 404, "SANDBOX_TERMINATED")


def test_no_box_stays_behind(api, server):
    for _ in range(5):
        Run(api, "true")

    def no_more():
        health = api.get("/health").json
        return len(server.boxes()) <= health["sandboxes"] + health["parked"]
    until(no_more, "the boxes to go")


def test_deleting_it_while_it_runs_cancels_it(api):
    made = api.create_one_shot("sh", "-c", "echo on; sleep 60")
    with_output = api.follow(made.made["stdoutStreamUrl"])
    with_output.wait_for(b"on\n")
    execution, status, errors, gone = together(
        lambda: api.get(f"/sandbox/execution/{made.execution_id}?wait=5m").data,
        lambda: api.get(f"/sandbox/status/{made.id}?waitForStatus=idle,terminated,failed&waitMs=300000").data,
        lambda: api.read(made.made["stderrStreamUrl"]), made.delete)
    assert gone.status == 200 and errors == b""
    assert (execution["status"], execution["exitCode"]) == ("cancelled", 137)
    assert (status["status"], status["exitCode"]) == ("deleted", 137)
    assert with_output.rest() == b"on\n"


# ---- what it is given ----

def test_files_and_environment_are_there(api):
    run = Run(api, "sh", "-c", "cat one two; echo $WORD", files=files_json({"one": "1\n"}),
              command_files=files_json({"two": "2\n"}), env={"WORD": "three"}).check("completed", 0)
    assert run.stdout == b"1\n2\n3\n".replace(b"3", b"three")


def test_limits_are_those_asked_for(api):
    run = Run(api, "python3", "-c", "x = bytearray(300 << 20)", resources={"memory": "64Mi"})
    run.check("completed", 137)


def test_the_name_and_project_can_be_found(api):
    run = Run(api, "true", name="find me", projectId="proj_one_shot", metadata={"a": 1})
    entries = api.get("/sandbox?projectId=proj_one_shot&mode=oneshot").data["sandboxes"]
    assert [entry["sandboxId"] for entry in entries] == [run.sandbox.id]
    assert run.sandbox.get()["metadata"] == {"a": 1}


# ---- output ----

def test_all_bytes_come_unchanged(api):
    run = Run(api, "python3", "-c", "import os; os.write(1, bytes(range(256)) * 100); os.write(2, bytes(range(255, -1, -1)))")
    assert run.stdout == bytes(range(256)) * 100
    assert run.stderr == bytes(range(255, -1, -1))


def test_eight_mebibytes_are_kept_whole(api):
    script = "import sys; block = bytes(range(256)) * 256; [sys.stdout.buffer.write(block) for _ in range(128)]"
    run = Run(api, "python3", "-c", script).check("completed", 0)
    assert len(run.stdout) == 8 << 20
    assert hashlib.sha1(run.stdout).digest() == hashlib.sha1(bytes(range(256)) * (1 << 15)).digest()
    assert not run.execution.get("outputTruncated")


def test_more_than_is_kept_is_cut_and_said(api, server):
    run = Run(api, "sh", "-c", "head -c 200000000 /dev/zero; echo end >&2").check("completed", 0)
    assert run.execution["outputTruncated"] is True
    assert 8 << 20 <= len(run.stdout) < 200000000 and not run.stdout.strip(b"\0")
    assert run.stderr == b"end\n"


def test_ignored_output_has_no_stream(api):
    run = Run(api, "sh", "-c", "echo out; echo err >&2", stream={"stdout": "ignore"})
    assert "stdoutStreamUrl" not in run.made and run.stderr == b"err\n"
    run = Run(api, "sh", "-c", "echo out; echo err >&2", stream={"stdout": "ignore", "stderr": "ignore"}).check("completed", 0)
    assert "stdoutStreamUrl" not in run.made and "stderrStreamUrl" not in run.made


def test_one_stream_for_both_outputs_is_interleaved(api):
    id = api.new_stream("both")
    run = Run(api, "sh", "-c", "for i in 1 2 3; do echo out$i; echo err$i >&2; done", stream={"stdout": id, "stderr": id})
    assert run.made["stdoutStreamUrl"] == run.made["stderrStreamUrl"]
    assert run.made["stdoutStreamUrl"].endswith(id)
    assert run.stdout == b"out1\nerr1\nout2\nerr2\nout3\nerr3\n"


def test_a_stream_of_ones_own_takes_the_output_and_ends_with_it(api):
    id = api.new_stream("mine")
    follower = api.follow(f"/stream/{id}")
    run = Run(api, "echo", "to my stream", stream={"stdout": id})
    assert run.stdout == b"to my stream\n"
    assert follower.rest() == b"to my stream\n"


def test_timestamps_are_put_before_every_line_when_asked(api):
    stamp = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z "
    run = Run(api, "sh", "-c", "echo one; echo; printf three; echo err >&2", stream={"timestamps": True})
    assert re.fullmatch(stamp + rb"one\n" + stamp + rb"\n" + stamp + rb"three", run.stdout), run.stdout
    assert re.fullmatch(stamp + rb"err\n", run.stderr)
    assert Run(api, "echo", "one", stream={"timestamps": False}).stdout == b"one\n"
    assert Run(api, "echo", "one").stdout == b"one\n"


def test_output_can_be_read_before_the_end(api):
    made = api.create_one_shot("sh", "-c", f"echo first; {waiting_for()}; echo second")
    followers = [api.follow(made.made["stdoutStreamUrl"] + suffix) for suffix in ("", "?v=2", "?follow=true")]
    for follower in followers:
        assert follower.wait_for(b"first\n") == b"first\n"
    made.release()
    for follower in followers:
        assert follower.rest() == b"first\nsecond\n"


def test_urls_of_streams_are_absolute_and_as_the_client_came(api):
    raw = Raw(api.port)
    body = b'{"command":{"exec":["echo","x"],"mode":"oneshot"}}'
    raw.send(b"POST /sandbox HTTP/1.1\r\nHost: sandboxes.example:1234\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
             % (api.key.encode(), len(body), body))
    made = raw.answer("POST").data
    assert made["stdoutStreamUrl"].startswith("http://sandboxes.example:1234/")
    assert made["stdoutStreamUrl"] != made["stderrStreamUrl"]
    assert re.search(r"/stream_[A-Za-z0-9]{22,}$", made["stdoutStreamUrl"])


# ---- input ----

def chunks(*pieces):
    yield from pieces


def test_input_reaches_the_command(api):
    run = Run(api, "cat", stdin=chunks(b"hello ", b"world")).check("completed", 0)
    assert run.stdout == b"hello world"
    assert run.stdin.status == 200


def test_input_with_a_length_is_fine_too(api):
    assert Run(api, "cat", stdin=b"counted").stdout == b"counted"


def test_empty_input_is_the_end_at_once(api):
    assert Run(api, "wc", "-c", stdin=b"").stdout == b"0\n"


def test_a_hundred_megabytes_of_input_arrive(api):
    block = bytes(range(256)) * 4096
    run = Run(api, "sha1sum", stdin=chunks(*[block] * 100)).check("completed", 0)
    assert run.stdout.split()[0].decode() == hashlib.sha1(block * 100).hexdigest()


def test_input_that_came_before_the_sandbox_is_read_from_the_start(api):
    id = api.new_stream("early")
    assert api.put(f"/stream/{id}", body=chunks(b"early ", b"bird")).status == 200
    made = api.create_one_shot("cat", stream={"stdin": id})
    assert made.first().stdout == b"early bird"


def test_a_command_waits_for_its_input(api):
    id = api.new_stream("late")
    made = api.create_one_shot("sh", "-c", "echo ready; cat", stream={"stdin": id})
    output = api.follow(made.made["stdoutStreamUrl"])
    output.wait_for(b"ready\n")
    api.put(f"/stream/{id}", body=chunks(b"late"))
    assert output.rest() == b"ready\nlate"


def put_open(api, id):
    """A PUT whose body does not end."""
    raw = Raw(api.port)
    raw.send(f"PUT /stream/{id} HTTP/1.1\r\nHost: {api.host}\r\nAuthorization: Bearer {api.key}\r\n"
             "Transfer-Encoding: chunked\r\n\r\n".encode())
    return raw


def test_input_is_delivered_as_it_arrives(api):
    id = api.new_stream("piecewise")
    made = api.create_one_shot("cat", stream={"stdin": id})
    output = api.follow(made.made["stdoutStreamUrl"])
    with put_open(api, id) as raw:
        for piece in (b"one\n", b"two\n", b"three\n"):
            raw.chunk(piece)
            output.wait_for(piece)
        raw.send(b"0\r\n\r\n")
        assert raw.answer("PUT").status == 200
    assert output.rest() == b"one\ntwo\nthree\n"
    assert made.wait_status("terminated")["exitCode"] == 0


def test_an_unfinished_input_is_answered_when_the_command_ends(api):
    id = api.new_stream("unfinished")
    made = api.create_one_shot("head", "-n", "1", stream={"stdin": id})
    with put_open(api, id) as raw:
        raw.chunk(b"first\n")
        assert raw.answer("PUT").status == 200
    assert made.first().stdout == b"first\n"


def test_an_input_that_nobody_reads_is_answered_when_the_command_ends(api):
    id = api.new_stream("unread")
    made = api.create_one_shot("sh", "-c", waiting_for(), stream={"stdin": id})
    with put_open(api, id) as raw:
        raw.chunk(b"x" * 100000)
        made.release()
        assert raw.answer("PUT").status == 200
    assert made.wait_status("terminated")["exitCode"] == 0


def test_an_input_that_comes_after_the_end_is_answered_at_once(api):
    id = api.new_stream("too late")
    made = api.create_one_shot("true", stream={"stdin": id})
    made.wait_status("terminated")
    assert api.put(f"/stream/{id}", body=chunks(b"anybody?")).status == 200
    with put_open(api, id) as raw:
        raw.chunk(b"anybody?")
        assert raw.answer("PUT").status == 200


def test_an_input_whose_writer_goes_away_does_not_end_the_command(api):
    """A reset is not the end of the input: it ends with the command's own timeout."""
    id = api.new_stream("gone")
    made = api.create_one_shot("sh", "-c", "cat; echo the end", stream={"stdin": id}, timeout={"execution": "1s"})
    output = api.follow(made.made["stdoutStreamUrl"])
    raw = put_open(api, id)
    raw.chunk(b"part")
    output.wait_for(b"part")
    raw.reset()
    state = api.wait_execution(made.execution_id)
    assert (state["status"], state["exitCode"]) in (("timeout", 124), ("completed", 0)), state


def test_without_input_a_command_reads_nothing(api):
    assert Run(api, "wc", "-c").stdout == b"0\n"
    assert Run(api, "wc", "-c", stream={"stdin": "ignore"}).stdout == b"0\n"


def test_a_timeout_also_answers_the_input(api):
    id = api.new_stream("timeout")
    made = api.create_one_shot("cat", stream={"stdin": id}, timeout={"execution": "300ms"})
    with put_open(api, id) as raw:
        raw.chunk(b"x")
        assert raw.answer("PUT").status == 200
    assert made.wait_status("terminated")["exitCode"] == 124


def test_deleting_the_sandbox_answers_the_input(api):
    id = api.new_stream("deleted")
    made = api.create_one_shot("cat", stream={"stdin": id})
    with put_open(api, id) as raw:
        raw.chunk(b"x")
        api.follow(made.made["stdoutStreamUrl"]).wait_for(b"x")
        made.delete()
        assert raw.answer("PUT").status == 200


def test_what_was_told_to_have_ended_is_not_listed_as_alive(server, api):
    """Also when the end is not recorded yet."""
    run = api.create_one_shot("sleep", "1")
    with audit.writing(server) as end:
        run.wait_status("terminated")
        threading.Timer(0.3, end).start()
        assert run.id not in [one["sandboxId"] for one in api.get("/sandbox?live=true&limit=100").data["sandboxes"]]


# ---- refusals ----

@pytest.mark.parametrize("stream", [{"stdin": "stream_none"}, {"stdout": "stream_none"}, {"stderr": "nonsense"}])
def test_an_unknown_stream_is_refused_and_nothing_is_made(api, stream):
    before = api.get("/sandbox?live=true").data["total"]
    answer = api.post("/sandbox", {"command": {"exec": ["true"], "mode": "oneshot"}, "stream": stream})
    check_error(answer, 400, "INVALID_ARGUMENT", "stream")
    assert api.get("/sandbox?live=true").data["total"] == before


@pytest.mark.parametrize("command, where", [
    ({"exec": []}, "command.exec"), ({"mode": "oneshot"}, "command.exec"), ({"exec": "true"}, "command.exec"),
    ({"exec": ["true", 1]}, "command.exec[1]"), ({"exec": ["true"], "mode": "sometimes"}, "command.mode"),
    ({"exec": [""], "mode": "oneshot"}, "command"), ({"exec": ["a\0b"]}, "command.exec[0]"),
    ({"exec": ["true"], "files": [{"path": "x"}]}, "command.files[0].content"),
    ({"exec": ["true"], "files": [{"path": "x", "content": "***"}]}, "command.files[0].content"),
    ("true", "command"), ([], "command"),
])
def test_bad_commands_are_refused_by_field(api, command, where):
    check_error(api.post("/sandbox", {"command": command}), 400, "INVALID_ARGUMENT", where)
