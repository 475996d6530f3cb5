# SPDX-License-Identifier: Apache-2.0
"""POST /api/v1/run: one call that runs a command and answers with how it ended."""
import base64
import hashlib
import http.client
import json
import re
import shlex
import subprocess

import pytest
import server as servers

from client import ANY, PATIENCE, Raw, base64_of, check_problem, dump, together, until, waiting_for
from records import NDJSON, SSE, Records

RUN = "/api/v1/run"
MIB = 1 << 20


def run(api, *argv, headers=None, **fields):
    if argv:
        fields["command"] = list(argv)
    answer = api.post(RUN, fields, headers=headers)
    assert answer.status == 200, str(answer)
    return answer.json


def script(api, text, **fields):
    return run(api, script=text, **fields)


# ---- how it ends ----

def test_one_call_has_it_all(api):
    ran = run(api, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (ran["state"], ran["exitCode"], ran["cause"]) == ("completed", 3, "exited")
    assert ran["command"] == ["sh", "-c", "echo out; echo err >&2; exit 3"] and ran["kind"] == "command"
    out, err = ran["stdout"], ran["stderr"]
    assert (out["text"], out["bytes"], out["truncated"]) == ("out\n", 4, False)
    assert err["text"] == "err\n" and "textBase64" not in err
    assert ran["durationMs"] >= 0 and ran["resources"]["maxMemoryBytes"] > 0 and ran["resources"]["cpuUserUs"] >= 0
    assert ran["id"].startswith("exe_") and ran["sandboxId"].startswith("sbx_")
    assert "signal" not in ran and "error" not in ran and "filesChanged" not in ran
    assert ran["createdAt"] <= ran["startedAt"] <= ran["endedAt"]
    assert api.get(out["url"]).body == b"out\n" and api.get(err["url"]).body == b"err\n"
    assert api.get(f"/sandbox/{ran['sandboxId']}").data["status"] == "terminated"


def test_it_runs_as_root_in_the_workspace(api):
    assert script(api, "pwd; id -u; echo $HOME")["stdout"]["text"] == "/workspace\n0\n/root\n"


@pytest.mark.parametrize("fields, state, code, cause", [
    ({"command": ["no-such-command"]}, "failed", 127, "not_found"),
    ({"command": ["/etc/passwd"]}, "failed", 126, "not_run"),
    ({"script": "kill -SEGV $$"}, "completed", 139, "exited"),
    ({"script": "echo before; sleep 60", "timeoutMs": 300}, "timed_out", 124, "timeout"),
    ({"command": ["python3", "-c", "x = bytearray(300 << 20)"], "limits": {"memoryBytes": "64Mi"}}, "completed", 137, "memory"),
])
def test_other_ends(api, fields, state, code, cause):
    ran = run(api, **fields)
    assert (ran["state"], ran["exitCode"], ran["cause"]) == (state, code, cause), ran
    if cause == "not_found":
        assert "no-such-command" in ran["error"]
    if code == 139:
        assert ran["signal"] == "SEGV"
    if cause == "timeout":
        assert ran["stdout"]["text"] == "before\n" and ran["timeoutMs"] == 300


def test_the_example_of_the_readme_works(api, server):
    """Its line for curl, with this server and its key."""
    text = (servers.TOP / "README.md").read_text()
    line = re.search(r"^\$ (curl .*/api/v1/run .*)$", text, re.M)[1]
    line = line.replace("brw_…", server.key).replace("http://127.0.0.1:4747", api.url)
    said = json.loads(subprocess.run(["curl", *shlex.split(line)[1:], "-s"], check=True, capture_output=True, timeout=PATIENCE).stdout)
    assert (said["exitCode"], said["stdout"]["text"]) == (0, "Linux\n")


# ---- what it is given ----

def test_files_environment_directory_and_user(api):
    ran = script(api, "pwd; id -u; cat ../one /abs/two; ./three; echo $WORD; stat -c %a three", directory="/work/here", user="1000",
                 env={"WORD": "four"}, timeoutMs="30s",
                 files=[{"path": "/work/one", "content": "1\n"},
                        {"path": "/abs/two", "contentBase64": base64_of(b"2\n")},
                        {"path": "/work/here/three", "content": "#!/bin/sh\necho 3\n", "mode": "0755"}])
    assert ran["stdout"]["text"] == "/work/here\n1000\n1\n2\n3\nfour\n755\n", ran
    assert (ran["directory"], ran["user"], ran["timeoutMs"]) == ("/work/here", "1000", 30000)


@pytest.mark.parametrize("size", [0, 5, 65536, 65537, 3 * MIB])
def test_its_input_is_all_there(api, sandbox, size):
    """What a pipe holds, and what goes through a stream."""
    content = bytes(number % 251 for number in range(251)) * (size // 251 + 1)
    for place in ({}, {"sandbox": sandbox.id}):
        ran = run(api, "sha256sum", stdinBase64=base64_of(content[:size]), **place)
        assert ran["stdout"]["text"].split()[0] == hashlib.sha256(content[:size]).hexdigest()


def test_input_as_text_and_none(api):
    assert run(api, "cat", stdin="grüße\n")["stdout"]["text"] == "grüße\n"
    assert run(api, "cat")["stdout"]["bytes"] == 0
    assert run(api, "true", stdin="x" * MIB)["exitCode"] == 0  # that nobody reads it is no failure


def test_limits_hold_and_text_and_numbers_mean_the_same(api):
    for memory, cpu in ((64 * MIB, 500), ("64Mi", "500m")):
        ran = script(api, "cat /sys/fs/cgroup/memory.max 2>/dev/null || grep MemTotal /proc/meminfo",
                     limits={"memoryBytes": memory, "cpuMillicores": cpu, "diskBytes": "64Mi", "maxProcesses": 64})
        seen = api.get(f"/sandbox/{ran['sandboxId']}").data["resources"]
        assert seen["memory"] == "64Mi" and seen["cpu"] == "500m", seen


def test_a_name_is_the_sandboxes(api):
    ran = run(api, "true", name="named-by-a-run")
    assert api.get(f"/sandbox/{ran['sandboxId']}").data["name"] == "named-by-a-run"


def test_in_a_sandbox_that_is_there(api, sandbox):
    first = script(api, "echo kept > /workspace/file; pwd", sandbox=sandbox.id)
    assert first["sandboxId"] == sandbox.id and first["exitCode"] == 0
    assert script(api, "cat /workspace/file", sandbox=sandbox.id)["stdout"]["text"] == "kept\n"
    assert sandbox.status()["status"] == "idle"
    listed = api.get(f"/sandbox/sandboxes/{sandbox.id}/executions").data["executions"]
    assert first["id"] in [entry["executionId"] for entry in listed]


def test_from_a_snapshot(api, sandbox, made):
    assert script(api, "echo in the snapshot > /workspace/file", sandbox=sandbox.id)["exitCode"] == 0
    made.append(api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "for-runs"}).data["snapshotId"])
    for reference in (made[0], "for-runs"):
        assert script(api, "cat /workspace/file", snapshot=reference)["stdout"]["text"] == "in the snapshot\n"


def test_which_files_were_changed(api, server, sandbox):
    for _ in range(12):  # in sandboxes made ahead and in others
        assert script(api, "true", filesChanged=True)["filesChanged"]["items"] == []
    ran = script(api, "mkdir d; echo 1 > d/new; echo >> /etc/hostname.new; rm /etc/issue", filesChanged=True)
    changes = ran["filesChanged"]
    found = {entry["path"]: entry["change"] for entry in changes["items"]}
    assert found["/workspace/d/new"] == "added" and found["/etc/issue"] == "removed", found
    assert changes["added"] >= 3 and changes["removed"] == 1 and changes["truncated"] is False
    until(lambda: api.get(f"/sandbox/{ran['sandboxId']}").data["status"] == "terminated", "its sandbox to end")
    assert api.get(ran["stdout"]["url"]).status == 200

    many = script(api, "mkdir m; cd m; seq 1500 | xargs touch", filesChanged=True)["filesChanged"]
    assert many["truncated"] is True and len(many["items"]) == 1000 and many["added"] > 1500
    inside = script(api, "echo > /workspace/x", sandbox=sandbox.id, filesChanged=True)
    assert "/workspace/x" in [entry["path"] for entry in inside["filesChanged"]["items"]]
    assert sandbox.status()["status"] == "idle"


# ---- output ----

def test_bytes_that_are_no_text_come_in_base64(api):
    ran = run(api, "python3", "-c", "import os; os.write(1, bytes(range(256))); os.write(2, 'naïve \\0 ü'.encode())")
    assert "text" not in ran["stdout"] and base64.b64decode(ran["stdout"]["textBase64"]) == bytes(range(256))
    assert "text" not in ran["stdout"] and ran["stderr"]["text"] == "naïve \0 ü"


def test_an_answer_carries_so_much_and_says_where_the_rest_is(api):
    size = 3 * MIB + 1
    ran = run(api, "python3", "-c", f"import sys; sys.stdout.write('abc' * {MIB} + 'd')")
    out = ran["stdout"]
    assert (len(out["text"]), out["bytes"], out["truncated"]) == (MIB, size, True)
    rest = api.get(f"{out['url']}&offset={MIB}")
    assert rest.headers["output-bytes"] == str(size) and rest.headers["output-complete"] == "true"
    assert out["text"].encode() + rest.body == b"abc" * MIB + b"d"
    small = run(api, "echo", "äöü", maxOutputBytes=3)["stdout"]
    assert (small["text"], small["bytes"], small["truncated"]) == ("ä", 7, True)  # no half characters
    none = run(api, "echo", "x", maxOutputBytes=0)["stdout"]
    assert (none["text"], none["bytes"], none["truncated"]) == ("", 2, True)
    whole = run(api, "python3", "-c", f"import sys; sys.stdout.write('abc' * {MIB} + 'd')", maxOutputBytes="4Mi")["stdout"]
    assert len(whole["text"]) == size and whole["truncated"] is False


def test_many_at_once(api):
    def some(thread):
        for number in range(5):
            assert run(api, "echo", f"{thread}-{number}")["stdout"]["text"] == f"{thread}-{number}\n"
        return True
    assert all(together(*[lambda thread=thread: some(thread) for thread in range(8)]))


# ---- as it happens ----

@pytest.mark.parametrize("accept", [SSE, NDJSON])
def test_records_come_as_it_happens(api, accept):
    text = "printf 'ä'; echo err >&2; cd /workspace; " + waiting_for() + "; printf '\\377'; exit 4"
    with Records(api, "POST", RUN, {"script": text}, accept) as records:
        assert records.status == 200 and records.response.getheader("Content-Type").startswith(accept)
        assert records.response.getheader("X-Accel-Buffering") == "no"
        started = records.next()
        assert started.event == "started" and started.data["state"] == "running"
        first = {records.next().event, records.next().event}
        assert first == {"stdout", "stderr"} and records.output() == "ä".encode()
        api.sandbox(started.data["sandboxId"]).write_all({"/workspace/go": b""})
        *_, last, end = records.rest()
        assert last.event == "stdout" and last.data == {"textBase64": "/w==", "offset": 2}
        assert end.event == "exit" and end.data["exitCode"] == 4 and end.id == "3.4"
        assert end.data["id"] == started.data["id"] and end.data["stdout"]["bytes"] == 3 and "text" not in end.data["stdout"]


def test_the_document_has_all_types_of_the_answer(api):
    document = api.get("/api/v1/openapi.json").json
    assert set(document["paths"][RUN]["post"]["responses"]["200"]["content"]) == {"application/json", SSE, NDJSON}


def test_a_character_is_never_cut_in_records(api):
    text = "printf '\\303'; sleep 0.2; printf '\\244'; printf '\\342\\202'"
    with Records(api, "POST", RUN, {"script": text}) as records:
        pieces = [record for record in records.rest() if record.event == "stdout"]
    assert pieces[0].data["text"] == "ä" and pieces[-1].bytes.endswith(b"\xe2\x82") and "textBase64" in pieces[-1].data


def test_zero_bytes_come_in_base64(api):
    """As text each would be six characters."""
    text = "printf 'a\\303\\244'; sleep 0.2; printf 'b\\000\\303'; sleep 0.2; printf '\\244'"
    with Records(api, "POST", RUN, {"script": text}) as records:
        pieces = [record.data for record in records.rest() if record.event == "stdout"]
    assert pieces == [{"text": "aä", "offset": 0}, {"textBase64": base64.b64encode(b"b\0").decode(), "offset": 3}, {"text": "ä", "offset": 5}]


def test_large_output_is_all_there_in_records(api):
    text = "import os\nfor i in range(200): os.write(1, bytes([i]) * 20000); os.write(2, b'x' * 10000)"
    with Records(api, "POST", RUN, {"command": ["python3", "-c", text]}, NDJSON) as records:
        end = records.rest()[-1]
        assert end.event == "exit" and end.data["exitCode"] == 0
        want = b"".join(bytes([i]) * 20000 for i in range(200))
        assert hashlib.sha256(records.output()).digest() == hashlib.sha256(want).digest()
        assert records.output("stderr") == b"x" * 2000000


def test_changed_files_are_in_the_last_record(api):
    with Records(api, "POST", RUN, {"script": "echo > new", "filesChanged": True}) as records:
        end = records.rest()[-1]
    assert "/workspace/new" in [entry["path"] for entry in end.data["filesChanged"]["items"]]
    until(lambda: api.get(f"/sandbox/{end.data['sandboxId']}").data["status"] == "terminated", "its sandbox to end")


# ---- clients that go ----

def send(api, body, headers=""):
    raw = Raw(api.port)
    data = dump(body)
    raw.send(f"POST {RUN} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n{headers}Content-Length: {len(data)}\r\n\r\n".encode()
             + data)
    return raw


def find(api, name):
    entries = [entry for entry in api.get(f"/sandbox?name={name}&limit=100").data["sandboxes"] if entry.get("name") == name]
    return entries[0] if entries else None


@pytest.mark.parametrize("leave", ["close", "reset"])
@pytest.mark.parametrize("accept", ["application/json", SSE])
def test_a_client_that_goes_ends_what_was_for_it_alone(api, leave, accept):
    name = f"left-{leave}-{accept[-4:]}"
    raw = send(api, {"script": "sleep 600", "name": name}, f"Accept: {accept}\r\n")
    until(lambda: find(api, name), "it to run")
    getattr(raw, leave)()
    until(lambda: find(api, name)["status"] == "terminated", "it to end")


def test_what_runs_in_a_kept_sandbox_goes_on_without_its_client(api, sandbox):
    raw = send(api, {"script": f"cd /workspace; {waiting_for()}; echo done", "sandbox": sandbox.id})
    path = f"/api/v1/sandboxes/{sandbox.id}/executions"
    running = until(lambda: api.get(f"{path}?state=running").json["items"], "it to run")
    raw.close()
    sandbox.write_all({"/workspace/go": b""})
    ended = api.get(f"/api/v1/executions/{running[0]['id']}?waitMs=60s&maxOutputBytes=100").json
    assert (ended["state"], ended["stdout"]["text"]) == ("completed", "done\n")


def test_a_server_that_stops_says_where_it_goes_on(own_server):
    server = own_server()
    raw = send(server.client, {"script": f"{waiting_for('/tmp/go')}; echo over", "name": "waited-for"})
    with Records(server.client, "POST", RUN, {"script": f"echo on; {waiting_for('/tmp/go')}; echo over"}) as records:
        started = records.next().data
        records.until("stdout", b"on")
        until(lambda: find(server.client, "waited-for"), "it to run")
        server.stop()
        try:
            records.rest()
        except http.client.IncompleteRead:
            pass  # cut, so that it cannot be taken for the end
        assert records.seen[-1].event == "stdout"
    problem = check_problem(raw.answer("POST"), 503, "restarting", "goes on as execution")
    raw.close()
    server.start()
    api = server.client
    for id in (started["id"], re.search(r"exe_\w+", problem["detail"])[0]):
        running = api.get(f"/api/v1/executions/{id}").json
        api.sandbox(running["sandboxId"]).write_all({"/tmp/go": b""})
        ended = api.get(f"/api/v1/executions/{id}?waitMs=1m&maxOutputBytes=100").json
        assert ended["exitCode"] == 0 and ended["stdout"]["text"].endswith("over\n")


# ---- once ----

def test_the_same_key_runs_it_once(api, sandbox):
    for number, place in enumerate(({}, {"sandbox": sandbox.id})):
        headers = {"Idempotency-Key": f"run-{number}"}
        first, second = (run(api, "sh", "-c", "date +%N", headers=headers, **place) for _ in range(2))
        assert first == second
        check_problem(api.post(RUN, {"command": ["true"], **place}, headers=headers), 422, "idempotency_mismatch")


# ---- refusals ----

@pytest.mark.parametrize("body, field, word", [
    ({}, "command", "script"),
    ({"command": []}, "command", "at least"),
    ({"command": [""]}, "command", "program"),
    ({"command": "ls"}, "command", "list"),
    ({"command": ["true"], "script": "true"}, "script", "command"),
    ({"command": ["true"], "directory": "relative"}, "directory", "absolute"),
    ({"command": ["true"], "env": {"A=B": "c"}}, "env", "="),
    ({"command": ["true"], "timeoutMs": -1}, "timeoutMs", ""),
    ({"command": ["true"], "timeoutMs": "soon"}, "timeoutMs", ""),
    ({"command": ["true"], "files": [{"path": "x"}]}, "files", "content"),
    ({"command": ["true"], "files": [{"path": "x", "content": "a", "contentBase64": "YQ=="}]}, "files", "content"),
    ({"command": ["true"], "files": [{"path": "x", "contentBase64": "?"}]}, "files[0].contentBase64", "base64"),
    ({"command": ["true"], "files": [{"path": "x", "content": "a", "mode": "rwx"}]}, "files[0].mode", "octal"),
    ({"command": ["cat"], "stdin": "a", "stdinBase64": "YQ=="}, "stdinBase64", "stdin"),
    ({"command": ["true"], "network": {"allow": ["not a name"]}}, "network.allow", ""),
    ({"command": ["true"], "sandbox": "sbx_x", "network": {"enabled": True}}, "network", "its own"),
    ({"command": ["true"], "runtime": "base", "snapshot": "x"}, "snapshot", "runtime"),
    ({"command": ["true"], "sandbox": "sbx_x", "runtime": "base"}, "runtime", "its own"),
    ({"command": ["true"], "sandbox": "sbx_x", "labels": {"a": "b"}}, "labels", "its own"),
    ({"command": ["true"], "sandbox": "sbx_x", "project": "p"}, "project", "its own"),
    ({"command": ["true"], "sandbox": "sbx_x", "scopes": ["s"]}, "scopes", "its own"),
    ({"command": ["true"], "labels": {"a b": "c"}}, "labels", ""),
    ({"command": ["true"], "sandbox": "sbx_x", "limits": {"memoryBytes": "1Gi"}}, "limits", "its own"),
    ({"command": ["true"], "maxOutputBytes": "5Mi"}, "maxOutputBytes", ""),
    ({"command": ["true"], "limits": {"memoryBytes": "1Ki"}}, "limits.memoryBytes", "4Mi"),
])
def test_what_is_wrong_is_named(api, body, field, word):
    check_problem(api.post(RUN, body), 400, "invalid_request", word, field=field)


def test_misspelled_members_are_refused(api):
    check_problem(api.post(RUN, {"comand": ["true"]}), 400, "unknown_field", "did you mean 'command'", field="comand")
    check_problem(api.post(RUN, {"script": "true", "limits": {"memory": 1}}), 400, "unknown_field", field="limits.memory")


def test_what_is_not_there(api):
    missing = "sbx_" + "0" * 26
    for body, noun in (({"sandbox": missing}, "sandbox"), ({"sandbox": "nobody"}, "sandbox"),
                       ({"runtime": "none:such"}, "runtime"), ({"snapshot": "none"}, "snapshot")):
        check_problem(api.post(RUN, {"command": ["true"], **body}), 404, "not_found", noun, field=ANY)
