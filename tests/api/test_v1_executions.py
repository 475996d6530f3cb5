# SPDX-License-Identifier: Apache-2.0
"""Executions of burrow's own API: start, look, wait, list, stop, and what they write."""
import hashlib
import pathlib
import socket
import struct

import aionis
import pytest

from client import Follower, Raw, check_problem, pages, query, together, until, waiting_for
from records import NDJSON, SSE, Records

TOP = "/api/v1"
MISSING = "exe_" + "0" * 26


def start(api, sandbox, *argv, **fields):
    if argv:
        fields["command"] = list(argv)
    answer = api.post(f"{TOP}/sandboxes/{sandbox.id}/executions", fields)
    assert answer.status == 201, str(answer)
    return answer.json


def start_waiting(api, sandbox, before=":", after=":", name="go", **fields):
    """A script that goes on when the test says so."""
    return start(api, sandbox, script=f"cd /workspace; {before}; {waiting_for(name)}; {after}", **fields)


def go(sandbox, name="go"):
    sandbox.write_all({f"/workspace/{name}": b""})


def get(api, execution, **fields):
    answer = api.get(f"{TOP}/executions/{execution['id']}?{query(**fields)}")
    assert answer.status == 200, str(answer)
    return answer.json


def end(api, execution, **fields):
    ended = get(api, execution, waitMs="60s", **fields)
    assert "endedAt" in ended, ended
    return ended


def output(api, execution, **fields):
    answer = api.get(f"{TOP}/executions/{execution['id']}/output?{query(**fields)}")
    assert answer.status == 200, str(answer)
    return answer


# ---- start, look, wait ----

def test_a_command_is_started_and_waited_for(api, sandbox):
    made = start_waiting(api, sandbox, before="echo on", after="exit 7", env={"A": "b"}, timeoutMs="40s")
    assert (made["kind"], made["state"], made["sandboxId"]) == ("command", "running", sandbox.id)
    assert made["id"].startswith("exe_") and "exitCode" not in made and made["timeoutMs"] == 40000
    assert get(api, made)["state"] == "running" and get(api, made, waitMs=50)["state"] == "running"
    assert sandbox.status()["status"] == "running"
    ended, _ = together(lambda: end(api, made, maxOutputBytes="1Ki"), lambda: go(sandbox))
    assert (ended["state"], ended["exitCode"], ended["stdout"]["text"]) == ("completed", 7, "on\n")
    assert "text" not in get(api, made)["stdout"]


def test_a_job_does_not_make_the_sandbox_busy(api, sandbox):
    job = start_waiting(api, sandbox, background=True)
    assert job["kind"] == "job" and job["id"].startswith("job_") and "timeoutMs" not in job
    assert sandbox.status()["status"] == "idle"
    assert end(api, start(api, sandbox, "true"))["exitCode"] == 0
    assert sandbox.job_state(job["id"])["status"] == "running"  # the vendor's front has the same job
    go(sandbox)
    assert end(api, job)["state"] == "completed"


def test_what_a_vendors_client_started_is_here_too(api, sandbox):
    started = sandbox.execute("sh", "-c", "echo theirs")
    theirs = {"id": started["executionId"]}
    assert end(api, theirs, maxOutputBytes=100)["stdout"]["text"] == "theirs\n"
    assert output(api, theirs).body == b"theirs\n"
    ours = end(api, start(api, sandbox, "echo", "ours"))
    assert api.execution(ours["id"])["exitCode"] == 0
    job = sandbox.job("echo", "job")
    assert end(api, {"id": job["jobId"]})["kind"] == "job"


def test_what_waits_in_a_queue_is_followed_from_its_start(own_server):
    """A run of the other vendor's, before its turn."""
    server = own_server(environment={"SANDBOX_EXECUTOR_MAX_CONCURRENCY": "1", "SANDBOX_ALLOWED_COMMANDS_JSON": '["sh", "echo"]'})
    api, client = server.client, aionis.Aionis(server.port, server.key)
    session = client.session()
    first, second = (client.execute(session, *argv, mode="async")["run"]["run_id"]
                     for argv in (("sh", "-c", waiting_for("/tmp/go")), ("echo", "its turn")))
    waiting = get(api, {"id": second})
    assert waiting["state"] == "queued" and waiting["id"].startswith("exe_") and "stdout" not in waiting
    check_problem(api.get(f"{TOP}/executions/{second}/output"), 409, "conflict")
    with records_of(api, waiting) as records, records_of(api, waiting, **{"from": "now"}, accept=NDJSON) as others:
        assert api.get(f"{TOP}/executions?state=queued").json["items"][0]["id"] == waiting["id"]
        start(api, api.sandbox(get(api, {"id": first})["sandboxId"]), "touch", "/tmp/go")
        for reader in (records, others):
            assert reader.rest()[-1].data["exitCode"] == 0 and reader.output() == b"its turn\n"


def test_many_wait_for_one_end(api, sandbox):
    made = start_waiting(api, sandbox, after="exit 5")
    *ended, _ = together(*[lambda: end(api, made) for _ in range(20)], lambda: go(sandbox))
    assert {entry["exitCode"] for entry in ended} == {5}


def test_files_come_before_it(api, sandbox):
    made = start(api, sandbox, "./run.sh", directory="/workspace",
                 files=[{"path": "/workspace/run.sh", "content": "#!/bin/sh\necho ran\n", "mode": "755"}])
    assert end(api, made, maxOutputBytes=100)["stdout"]["text"] == "ran\n"


def test_the_same_key_starts_it_once(api, sandbox):
    path, headers = f"{TOP}/sandboxes/{sandbox.id}/executions", {"Idempotency-Key": "start-1"}
    first, second = (api.post(path, {"command": ["true"]}, headers=headers) for _ in range(2))
    assert first.status == second.status == 201 and first.json["id"] == second.json["id"]


# ---- lists ----

def test_lists_are_paged_and_chosen_from(api, new):
    sandbox, path = new(), f"{TOP}/sandboxes/{{}}/executions"
    path = path.format(sandbox.id)
    made = [end(api, start(api, sandbox, "sh", "-c", f"exit {number % 2}"))["id"] for number in range(5)]
    job = start_waiting(api, sandbox, background=True)["id"]
    items, count = pages(api, path, 2)
    assert [entry["id"] for entry in items] == [job, *reversed(made)] and count >= 3
    for choice, want in (("state=running", [job]), ("state=active", [job]), ("state=ended", made[::-1]), ("kind=job", [job]),
                         ("kind=command&state=completed", made[::-1]), ("state=failed", [])):
        assert [entry["id"] for entry in api.get(f"{path}?{choice}").json["items"]] == want, choice
    everywhere = [entry["id"] for entry in api.get(f"{TOP}/executions?limit=100").json["items"]]
    assert everywhere[:6] == [job, *reversed(made)]
    assert api.delete(f"{TOP}/executions/{job}?force=true").status == 200


def test_pages_stay_while_others_come(api, new):
    sandbox = new()
    path = f"{TOP}/sandboxes/{sandbox.id}/executions"
    made = [end(api, start(api, sandbox, "true"))["id"] for _ in range(4)]
    first = api.get(f"{path}?limit=2").json
    end(api, start(api, sandbox, "true"))
    second = api.get(f"{path}?limit=2&cursor={first['nextCursor']}").json
    assert [entry["id"] for entry in first["items"] + second["items"]] == made[::-1]


# ---- stop ----

def test_stop_asks_first_and_force_does_not(api, sandbox):
    kind = start_waiting(api, sandbox, before="trap 'echo bye; exit 0' TERM; echo on")
    until(lambda: output(api, kind).body == b"on\n", "it to begin")
    stopped = api.delete(f"{TOP}/executions/{kind['id']}").json
    assert (stopped["state"], stopped["cause"], stopped["exitCode"]) == ("cancelled", "stopped", 137)
    assert stopped["stopReason"] == "stopped" and output(api, kind).body == b"on\nbye\n"
    deaf = start_waiting(api, sandbox, before="trap '' TERM; echo on")
    until(lambda: output(api, deaf).body == b"on\n", "it to begin")
    assert api.delete(f"{TOP}/executions/{deaf['id']}?force=true").json["signal"] == "KILL"
    again = api.delete(f"{TOP}/executions/{deaf['id']}").json
    assert again["state"] == "cancelled"


# ---- output as bytes ----

def test_parts_of_output(api, sandbox):
    made = start_waiting(api, sandbox, before="printf 0123456789; printf err >&2", after="printf end")
    until(lambda: output(api, made).body == b"0123456789", "output")
    part = output(api, made, offset=2, length=3)
    assert part.body == b"234" and part.headers["output-bytes"] == "10" and part.headers["output-complete"] == "false"
    assert output(api, made, stream="stderr").body == b"err" and output(api, made, offset=10).body == b""
    assert output(api, made, **{"from": "now"}).body == b""
    assert api.get(f"{TOP}/executions/{made['id']}/output?offset=11").status == 416
    go(sandbox)
    end(api, made)
    whole = output(api, made)
    assert whole.body == b"0123456789end" and whole.headers["output-complete"] == "true"
    assert whole.headers["content-type"] == "application/octet-stream"
    ranged = api.get(f"{TOP}/executions/{made['id']}/output", headers={"Range": "bytes=-3"})
    assert (ranged.status, ranged.body) == (206, b"end")


def follow_bytes(api, execution, **fields):
    raw = Raw(api.port)
    raw.send(f"GET {TOP}/executions/{execution['id']}/output?{query(follow='true', **fields)} HTTP/1.1\r\nHost: x\r\n"
             f"Authorization: Bearer {api.key}\r\n\r\n".encode())
    response = raw.response()
    assert response.status == 200
    return Follower(raw, response)


def test_bytes_are_followed_from_anywhere(api, sandbox):
    made = start_waiting(api, sandbox, before="printf before", after="printf after; printf bad >&2")
    until(lambda: output(api, made).body == b"before", "output")
    start_, middle, now, errors = (follow_bytes(api, made, **fields) for fields in (
        {}, {"offset": 3}, {"from": "now"}, {"stream": "stderr"}))
    start_.wait_for(b"before")
    go(sandbox)
    assert [reader.rest() for reader in (start_, middle, now, errors)] == [b"beforeafter", b"oreafter", b"after", b"bad"]


# ---- output as records ----

def records_of(api, execution, accept=SSE, headers=None, **fields):
    return Records(api, "GET", f"{TOP}/executions/{execution['id']}/output?{query(**fields)}", accept=accept, headers=headers)


@pytest.mark.parametrize("accept", [SSE, NDJSON])
def test_records_of_both_streams_resume_where_they_were_left(api, sandbox, accept):
    made = start_waiting(api, sandbox, before="printf one; printf two >&2", after="printf three; printf four >&2")
    with records_of(api, made, accept) as first:
        seen = [first.next(), first.next()]
        assert {record.event for record in seen} == {"stdout", "stderr"} and seen[-1].id == "3.3"
    go(sandbox)
    end(api, made)
    with records_of(api, made, accept, {"Last-Event-ID": seen[-1].id}) as second:
        assert second.rest()[-1].event == "exit" and second.seen[-1].id == "8.7"
        assert (second.output(), second.output("stderr")) == (b"three", b"four")
    with records_of(api, made, accept, {"Last-Event-ID": "8.7"}) as third:
        assert [record.event for record in third.rest()] == ["exit"]
    with records_of(api, made, accept) as whole:
        assert (whole.rest()[-1].data["state"], whole.output(), whole.output("stderr")) == ("completed", b"onethree", b"twofour")


def test_records_of_one_stream_or_from_now(api, sandbox):
    made = start_waiting(api, sandbox, before="printf one; printf two >&2", after="printf three; printf four >&2")
    until(lambda: output(api, made, stream="stderr").body == b"two", "output")
    with records_of(api, made, stream="stderr") as one, records_of(api, made, **{"from": "now"}) as now, \
            records_of(api, made, stream="stdout", offset=1) as part:
        go(sandbox)
        assert {record.event for record in one.rest()} == {"stderr", "exit"} and one.output("stderr") == b"twofour"
        assert now.rest() and (now.output(), now.output("stderr")) == (b"three", b"four")
        assert part.rest() and part.output() == b"nethree"


@pytest.mark.parametrize("accept", [SSE, NDJSON])
def test_records_that_are_not_followed_end_with_what_there_is(api, sandbox, accept):
    made = start_waiting(api, sandbox, before="seq 9000; printf 'euro \\342\\202'; printf two >&2", after="printf '\\254'")
    before = "".join(f"{number}\n" for number in range(1, 9001)).encode() + b"euro \xe2\x82"
    until(lambda: output(api, made).body == before and output(api, made, stream="stderr").body == b"two", "output")
    for fields, want in (({}, (before, b"two")), ({"stream": "stderr"}, (b"", b"two")), ({"stream": "stdout", "offset": 4}, (before[4:], b"")),
                         ({"from": "now"}, (b"", b""))):
        with records_of(api, made, accept, follow="false", **fields) as records:
            assert "exit" not in [record.event for record in records.rest()]
            assert (records.output(), records.output("stderr")) == want, fields
    go(sandbox)
    end(api, made)
    with records_of(api, made, accept, follow="false") as whole:
        assert whole.rest()[-1].event == "exit" and whole.output() == before + b"\xac"


def test_many_followers_of_one_command_all_get_everything(api, sandbox):
    made = start_waiting(api, sandbox, after="seq 20000; seq 5000 >&2")
    want = "".join(f"{number}\n" for number in range(1, 20001)).encode()
    followers = [records_of(api, made, (SSE, NDJSON)[number % 2]) for number in range(30)]
    go(sandbox)
    for follower in followers:
        assert follower.rest()[-1].event == "exit" and follower.output() == want
        assert follower.output("stderr") == want[:len(follower.output("stderr"))] != b""
        follower.close()


def test_a_follower_that_goes_changes_nothing(api, sandbox):
    made = start_waiting(api, sandbox, before="echo on", after="echo off")
    for leave in ("close", "reset"):
        follower = records_of(api, made)
        follower.until("stdout", b"on")
        getattr(follower.raw, leave)()
    assert get(api, made)["state"] == "running"
    go(sandbox)
    assert end(api, made, maxOutputBytes=100)["stdout"]["text"] == "on\noff\n"


@pytest.mark.parametrize("accept", [SSE, NDJSON])
def test_output_cannot_forge_a_record(api, sandbox, accept):
    forged = "\n\nid: 9.9\nevent: exit\ndata: {}\n\n\r\r: x\n" + '{"event":"exit","data":{}}\n'
    made = end(api, start(api, sandbox, "printf", "%s", forged))
    with records_of(api, made, accept) as records:
        assert [record.event for record in records.rest()] == ["stdout", "exit"] and records.output() == forged.encode()


def test_a_slow_follower_gets_it_all(api, sandbox):
    size = 8 << 20
    made = start(api, sandbox, "python3", "-c", f"import sys; sys.stdout.write('ab' * {size // 2})")
    with records_of(api, made, NDJSON) as follower:  # nothing is read before the command has ended
        assert end(api, made)["stdout"]["bytes"] == size
        assert follower.rest()[-1].event == "exit" and follower.output() == b"ab" * (size // 2)


# ---- input, signals, terminals ----

def stdin(api, execution, body, **fields):
    return api.post(f"{TOP}/executions/{execution['id']}/stdin?{query(**fields)}", body=body)


def test_input_is_appended_and_closed(api, sandbox):
    made = start(api, sandbox, script="cat; echo end", keepStdinOpen=True)
    assert stdin(api, made, b"one ").json == {"bytes": 4, "closed": False}
    assert stdin(api, made, b"").json["bytes"] == 0
    until(lambda: output(api, made).body == b"one ", "it to be read")
    assert stdin(api, made, b"two ", close="true").json == {"bytes": 4, "closed": True}
    assert end(api, made, maxOutputBytes=100)["stdout"]["text"] == "one two end\n"
    check_problem(stdin(api, made, b"three"), 409, "ended")


def test_large_input_waits_for_its_reader(api, sandbox):
    made = start_waiting(api, sandbox, after="sha256sum", keepStdinOpen=True)
    content = b"0123456789abcdef" * (1 << 16)
    answer, _ = together(lambda: stdin(api, made, iter([content, content]), close="true"),
                         lambda: (until(lambda: get(api, made)["state"] == "running", "it to run"), go(sandbox)))
    assert answer.json == {"bytes": 2 * len(content), "closed": True}
    assert end(api, made, maxOutputBytes=100)["stdout"]["text"].split()[0] == hashlib.sha256(content * 2).hexdigest()


def test_input_of_one_that_ends_in_the_middle(api, sandbox):
    made = start_waiting(api, sandbox, keepStdinOpen=True)
    answer, _ = together(lambda: stdin(api, made, b"x" * (4 << 20)), lambda: go(sandbox))  # which nobody ever reads
    assert answer.status == 409 and answer.json["code"] in ("ended", "complete"), str(answer)


def test_input_survives_a_client_that_goes(api, sandbox):
    made = start(api, sandbox, "cat", keepStdinOpen=True)
    with Raw(api.port) as raw:
        raw.send(f"POST {TOP}/executions/{made['id']}/stdin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n".encode())
        raw.chunk(b"part ")
        until(lambda: output(api, made).body == b"part ", "it to come")
    assert stdin(api, made, b"rest", close="true").status == 200
    assert end(api, made, maxOutputBytes=100)["stdout"]["text"] == "part rest"


def has_connection(port, client_port):
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any([int(end.split(":")[1], 16) for end in line.split()[1:3]] == [port, client_port] for line in lines)


def test_input_that_nobody_reads_goes_with_its_client(api, sandbox):
    made = start_waiting(api, sandbox, keepStdinOpen=True)
    with Raw(api.port) as raw:
        client_port = raw.socket.getsockname()[1]
        raw.send(f"POST {TOP}/executions/{made['id']}/stdin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n"
                 "Content-Length: 100000000\r\n\r\n".encode())
        raw.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):  # all that is kept on the way is full
            while True:
                raw.socket.send(b"x" * (1 << 20))
        assert has_connection(api.port, client_port)
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset: nothing can be sent before the end
    until(lambda: not has_connection(api.port, client_port), "the server to let go of it")
    go(sandbox)
    end(api, made)


def test_what_takes_no_input_says_so(api, sandbox):
    made = start_waiting(api, sandbox)
    check_problem(stdin(api, made, b"x"), 409, "complete")
    go(sandbox)
    end(api, made)


@pytest.mark.parametrize("signal", ["USR1", "SIGUSR1", 10])
def test_signals_by_name_and_number(api, sandbox, signal):
    made = start(api, sandbox, script="trap 'echo got; exit 3' USR1; echo on; while :; do sleep 0.05; done")
    until(lambda: output(api, made).body == b"on\n", "it to begin")
    assert api.post(f"{TOP}/executions/{made['id']}/signal", {"signal": signal}).status == 204
    ended = end(api, made, maxOutputBytes=100)
    assert (ended["state"], ended["exitCode"], ended["stdout"]["text"]) == ("completed", 3, "on\ngot\n")
    check_problem(api.post(f"{TOP}/executions/{made['id']}/signal", {"signal": signal}), 409, "ended")


def test_a_terminal_is_typed_into_and_resized(api, sandbox):
    made = start(api, sandbox, "sh", terminal={"rows": 30, "cols": 100})
    assert made["kind"] == "terminal" and sandbox.status()["status"] == "idle" and "stderr" not in made
    with records_of(api, made) as first:
        stdin(api, made, b"stty size; tty; echo e''nd\n")
        seen = first.until("stdout", b"end") and first.output()
        assert b"30 100" in seen and b"/dev/pts/" in seen
        assert api.post(f"{TOP}/executions/{made['id']}/resize", {"rows": 40, "cols": 120}).status == 204
        stdin(api, made, b"stty size; exit 5\n")
        assert first.rest()[-1].data["exitCode"] == 5 and b"40 120" in first.output()
    items = api.get(f"{TOP}/sandboxes/{sandbox.id}/executions?kind=terminal").json["items"]
    assert [entry["id"] for entry in items] == [made["id"]]


def test_only_terminals_are_resized(api, sandbox):
    made = start_waiting(api, sandbox)
    check_problem(api.post(f"{TOP}/executions/{made['id']}/resize", {"rows": 1, "cols": 1}), 409, "conflict")
    go(sandbox)
    end(api, made)


# ---- a restart in the middle ----

def test_followers_go_on_at_the_next_server(own_server):
    server = own_server()
    api = server.client
    sandbox = api.create()
    made = start_waiting(api, sandbox, before="printf before; printf err >&2", after="printf after; exit 6")
    with records_of(api, made) as first:
        first.until("stderr", b"err")
        while first.output() != b"before":
            first.next()
        last = first.seen[-1].id
    server.kill()
    server.start()
    api = server.client
    sandbox = api.sandbox(sandbox.id)
    with records_of(api, made, headers={"Last-Event-ID": last}) as second:
        go(sandbox)
        assert second.rest()[-1].data["exitCode"] == 6
        assert (second.output(), second.output("stderr")) == (b"after", b"")
    assert output(api, made).body == b"beforeafter"
    assert end(api, made)["exitCode"] == 6


def test_input_goes_on_at_the_next_server(own_server):
    server = own_server()
    sandbox = server.client.create()
    open_ = start(server.client, sandbox, "cat", keepStdinOpen=True)
    whole = start_waiting(server.client, sandbox, after="cat", stdin="all of it", background=True)
    stdin(server.client, open_, b"before ")
    server.kill()
    server.start()
    api, sandbox = server.client, server.client.sandbox(sandbox.id)
    assert stdin(api, open_, b"after", close="true").status == 200
    assert end(api, open_, maxOutputBytes=100)["stdout"]["text"] == "before after"
    go(sandbox)
    ended = end(api, whole, maxOutputBytes=100)
    assert (ended["state"], ended["stdout"]["text"]) == ("completed", "all of it")


# ---- refusals ----

@pytest.mark.parametrize("body, field", [
    ({}, "command"), ({"command": []}, "command"), ({"command": ["true"], "script": "true"}, "script"),
    ({"command": ["cat"], "stdin": "a", "keepStdinOpen": True}, "keepStdinOpen"),
    ({"command": ["cat"], "stdin": "a", "terminal": {}}, "terminal"), ({"command": ["sh"], "terminal": {"rows": 0}}, "terminal.rows"),
    ({"command": ["true"], "background": "yes"}, "background"), ({"command": ["true"], "timeoutMs": "x"}, "timeoutMs"),
])
def test_bodies_that_are_wrong(api, shared, body, field):
    check_problem(api.post(f"{TOP}/sandboxes/{shared.id}/executions", body), 400, "invalid_request", field=field)


@pytest.mark.parametrize("text, field", [
    ("waitMs=x", "waitMs"), ("maxOutputBytes=5Mi", "maxOutputBytes"), ("waitMs=-1", "waitMs"),
])
def test_queries_that_are_wrong(api, shared, text, field):
    made = end(api, start(api, shared, "true"))
    check_problem(api.get(f"{TOP}/executions/{made['id']}?{text}"), 400, "invalid_request", field=field)


def test_output_queries_that_are_wrong(api, shared):
    made = end(api, start(api, shared, "true"))
    path = f"{TOP}/executions/{made['id']}/output"
    for text, field in (("stream=both", "stream"), ("offset=-1", "offset"), ("length=0", "length"), ("from=end", "from"),
                        ("from=now&offset=1", "from"), ("follow=true&length=1", "length")):
        check_problem(api.get(f"{path}?{text}"), 400, "invalid_request", field=field)
    for text, headers, field in (("offset=1", {}, "offset"), ("length=1", {}, "length"), ("", {"Last-Event-ID": "x"}, "Last-Event-ID"),
                                 ("", {"Last-Event-ID": "1.2.3"}, "Last-Event-ID")):
        check_problem(api.get(f"{path}?{text}", headers={"Accept": SSE, **headers}), 400, "invalid_request", field=field)
    check_problem(api.get(path, headers={"Accept": SSE, "Last-Event-ID": "9.9"}), 400, "invalid_request", "stdout")


@pytest.mark.parametrize("path, body, field", [
    ("signal", {}, "signal"), ("signal", {"signal": "NONE"}, "signal"), ("signal", {"signal": 0}, "signal"),
    ("signal", {"signal": 99}, "signal"), ("signal", {"signal": 1.5}, "signal"), ("signal", {"signal": ["INT"]}, "signal"),
    ("resize", {"rows": 1}, "cols"), ("resize", {"rows": 0, "cols": 1}, "rows"), ("resize", {"rows": 1, "cols": 70000}, "cols"),
])
def test_signals_and_sizes_that_are_none(api, shared, path, body, field):
    made = start(api, shared, "sleep", "600", background=True)
    check_problem(api.post(f"{TOP}/executions/{made['id']}/{path}", body), 400, "invalid_request", field=field)
    assert api.delete(f"{TOP}/executions/{made['id']}?force=true").status == 200


def test_what_is_not_there(api, shared):
    for method, path, sent in (("GET", "", {}), ("DELETE", "", {}), ("GET", "/output", {}), ("POST", "/stdin", {"body": b"x"}),
                               ("POST", "/signal", {"json": {"signal": 2}}), ("POST", "/resize", {"json": {"rows": 1, "cols": 1}})):
        for id in (MISSING, "exe_x", "nobody", "job_" + "0" * 26):
            check_problem(api.call(method, f"{TOP}/executions/{id}{path}", **sent), 404, "not_found", "execution")
    for method, json in (("GET", {}), ("POST", {"json": {"command": ["true"]}})):
        check_problem(api.call(method, f"{TOP}/sandboxes/sbx_{'0' * 26}/executions", **json), 404, "not_found", "sandbox")


def test_a_sandbox_that_has_ended_runs_nothing(api, new):
    sandbox = new()
    made = end(api, start(api, sandbox, "echo", "kept"))
    sandbox.delete()
    answer = api.post(f"{TOP}/sandboxes/{sandbox.id}/executions", {"command": ["true"]})
    assert answer.status in (404, 410), str(answer)
    assert get(api, made)["exitCode"] == 0 and output(api, made).body == b"kept\n"


def test_a_busy_sandbox_of_a_vendor_says_so(api, sandbox):
    made = start_waiting(api, sandbox)
    check_problem(api.post(f"{TOP}/sandboxes/{sandbox.id}/executions", {"command": ["true"]}), 409, "busy")
    go(sandbox)
    end(api, made)
