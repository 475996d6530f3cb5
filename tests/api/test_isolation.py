# SPDX-License-Identifier: Apache-2.0
"""What code in a sandbox, and callers without the right key, can reach over the API: their own and nothing else."""
import json
import os
import pathlib
import subprocess

import pytest
import server as servers
from client import Client, check_error, check_problem, query, until, waiting_for


# ---- from inside ----

def test_one_sandbox_sees_nothing_of_another(new):
    one, two = new(), new()
    one.write_all({"secret": "of one", "/workspace/secret": "of one", "/tmp/secret": "of one"})
    one.sh("echo one >/dev/shm/secret")
    one.job("sleep", "12345")
    for path in ("secret", "/workspace/secret", "/tmp/secret", "/dev/shm/secret"):
        assert two.read(path).status == 404
    assert "12345" not in two.output("ps -ef; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "of one" not in two.output("grep -rs 'of one' /home /workspace /tmp /dev/shm; true")


def test_the_servers_key_is_nowhere_inside(new, api):
    sandbox = new()
    assert api.key not in sandbox.output("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; true")
    assert "BURROW" not in sandbox.output("env")


def test_no_path_of_the_host_is_shown(new, server):
    shown = new().output("cat /proc/self/mountinfo /proc/self/cgroup /proc/1/mountinfo 2>/dev/null; true")
    assert str(server.data) not in shown and "burrow-" not in shown.replace("burrow-init", "")


def test_the_server_cannot_be_reached_from_inside(new, api):
    script = "import socket, sys\nfor host in sys.argv[2:]:\n    try:\n        socket.create_connection((host, int(sys.argv[1])), 2)\n" \
             "        print('reached', host)\n    except OSError as e:\n        pass\nprint('done')"
    hosts = ["127.0.0.1", "::1", "0.0.0.0", "169.254.169.254", "10.0.0.1"] + subprocess.run(
        ["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    assert new().run("python3", "-c", script, str(api.port), *hosts).stdout == b"done\n"


def test_only_loopback_is_there(new):
    shown = new().run("python3", "-c", "import socket; print(*(name for _, name in socket.if_nameindex()))")
    assert shown.stdout.split() == [b"lo"], shown


def test_killing_everything_ends_nobody_else(new, server, api):
    victim, killer = new(), new()
    job = victim.job("sh", "-c", waiting_for())
    killer.sh("kill -9 -1; kill -9 1")
    assert killer.run("echo", "alive").stdout == b"alive\n"
    victim.release()
    assert victim.wait_job(job["jobId"])["exitCode"] == 0
    assert server.process.poll() is None


def test_the_socket_of_the_server_is_not_for_guests(new, server):
    assert (server.data / "burrow.sock").stat().st_mode & 0o777 == 0o600
    assert new().sh("find / -xdev -name 'burrow.sock' 2>/dev/null | grep .").exit_code == 1


def test_only_the_server_reads_its_records(server, new):
    new().run("echo", "output")
    for path in [server.data / "burrow.db", server.data / "burrow.db-wal", server.data / "burrow.sock", server.data / "server.lock",
                 *(server.data / "spool").rglob("stream*"), *(path for path in (server.data / "spool").rglob("*") if path.is_file())]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_key_is_not_stored_or_logged(server, api):
    api.get("/sandbox", key="brw_a_wrong_key_that_should_not_be_logged")
    assert api.key not in server.log and "should_not_be_logged" not in server.log
    for path in server.data.iterdir():
        if path.is_file() and path.name != "volume.img":
            assert api.key.encode() not in path.read_bytes(), path


def test_values_of_the_environment_and_files_are_not_logged(server, new):
    sandbox = new(env={"SECRET": "hush-hush-value"}, files=[{"path": "x", "content": "aHVzaC1odXNoLWZpbGU="}])
    sandbox.run("echo", "hush-hush-argument")
    assert "hush-hush" not in server.log and "aHVzaC1odXNo" not in server.log


# ---- keys ----

def burrow_key(server, *words):
    verb, *rest = words
    return subprocess.run([servers.BURROW, "key", verb, "--data", server.data, *rest], capture_output=True, text=True, timeout=60)


def make_key(server, name):
    done = burrow_key(server, "create", "--name", name)
    assert done.returncode == 0, done.stderr
    return next(word for word in done.stdout.split() if word.startswith("brw_"))


def test_a_revoked_key_opens_nothing(server, api, new):
    key = make_key(server, "to be revoked")
    mine = Client(api.port, key)
    sandbox = new()
    assert mine.get(f"/sandbox/{sandbox.id}").status == 200  # one organisation
    listed = burrow_key(server, "list")
    assert key not in listed.stdout and key[:8] in listed.stdout
    assert burrow_key(server, "revoke", key[:12]).returncode == 0
    until(lambda: mine.get(f"/sandbox/{sandbox.id}").status == 401, "the key to be forgotten", 10)
    for answer in (mine.get("/sandbox"), mine.post("/sandbox", {}), mine.delete(f"/sandbox/{sandbox.id}")):
        check_error(answer, 401, "UNAUTHORIZED")
    assert sandbox.status()["status"] == "idle"


ROUTES = [
    ("GET", "/sandbox/{id}"), ("GET", "/sandbox/status/{id}"), ("DELETE", "/sandbox/{id}"), ("PATCH", "/sandbox/env/{id}"),
    ("POST", "/sandbox/{id}/execute"), ("GET", "/sandbox/sandboxes/{id}/executions"), ("GET", "/sandbox/sandboxes/{id}/events"),
    ("GET", "/sandbox/sandboxes/{id}/jobs"), ("POST", "/sandbox/sandboxes/{id}/jobs"), ("GET", "/sandbox/sandboxes/{id}/jobs/job_x"),
    ("DELETE", "/sandbox/sandboxes/{id}/jobs/job_x"), ("POST", "/fs/{id}"), ("GET", "/fs/{id}?path=x"), ("POST", "/fs/mkdir/{id}"),
    ("POST", "/fs/rm/{id}"), ("POST", "/fs/rmdir/{id}"), ("GET", "/fs/list/{id}"), ("GET", "/fs/download/{id}?path=."),
    ("POST", "/fs/upload/{id}?path=."), ("GET", "/cli/sandbox/{id}"), ("POST", "/sandbox/{id}/pause"), ("POST", "/sandbox/{id}/resume"),
    ("POST", "/sandbox/{id}/snapshot"), ("POST", "/sandbox/{id}/checkpoint"), ("GET", "/sandbox/checkpoints/{id}"),
    ("POST", "/sandbox/{id}/checkpoint/x/restore"), ("DELETE", "/sandbox/{id}/checkpoint/x"), ("GET", "/api/v1/sandboxes/{id}/diff"),
]
BODIES = {"/checkpoint": {"name": "x"}, "/sandbox/env": {"env": {}}, "/execute": {"command": ["true"]}, "/jobs": {"command": ["true"]}, "/fs/mkdir": {"path": "x"},
          "/fs/rm/": {"path": "x"}, "/fs/rmdir": {"path": "x"}, "/fs/": {"files": []}}


def body_for(path):
    return next((body for part, body in BODIES.items() if part in path), {})


@pytest.mark.parametrize("method, path", ROUTES, ids=[f"{m} {p}" for m, p in ROUTES])
def test_every_route_tells_strangers_nothing(api, shared, method, path):
    """The same answer for what exists and what does not."""
    for key in (None, "brw_stranger_stranger_stranger"):
        seen = {api.call(method, path.format(id=id), body_for(path), key=key, headers={"X-Request-Id": "same"}).body
                for id in (shared.id, "sbx_none")}
        assert len(seen) == 1
        answer = api.call(method, path.format(id=shared.id), body_for(path), key=key)
        if path.startswith("/api/"):
            check_problem(answer, 401, "unauthorized")
        else:
            check_error(answer, 401, "UNAUTHORIZED")
    assert shared.status()["status"] == "idle"


@pytest.mark.parametrize("method, path", ROUTES, ids=[f"{m} {p}" for m, p in ROUTES])
def test_no_route_finds_what_was_destroyed(api, method, path):
    gone = api.create()
    gone.delete()
    answer = api.call(method, path.format(id=gone.id), body_for(path))
    if path.startswith(("/sandbox/status", "/cli/sandbox", "/sandbox/sandboxes", "/sandbox/checkpoints")) and method == "GET" and "jobs/" not in path:
        assert answer.status == 200  # history stays readable
    else:
        assert answer.status == 404, str(answer)
    assert gone.id not in [entry["sandboxId"] for entry in api.get("/sandbox?live=true&limit=100").data["sandboxes"]]


def test_ids_are_long_and_not_in_a_row(api):
    made = [api.create() for _ in range(3)]
    bodies = [sandbox.id.removeprefix("sbx_") for sandbox in made]
    assert all(len(body) >= 20 for body in bodies)
    assert len({body[:10] for body in bodies}) == 3 and len({body[-10:] for body in bodies}) == 3
    for sandbox in made:
        sandbox.delete()


# ---- every state, every verb ----

def test_destroy_works_in_every_state(api):
    idle, running, with_jobs, one_shot, ended = (api.create(), api.create(), api.create(), api.create_one_shot("sleep", "60"),
                                                 api.create_one_shot("true"))
    running.execute("sleep", "60")
    with_jobs.job("sleep", "60")
    ended.wait_status("terminated")
    for sandbox in (idle, running, with_jobs, one_shot, ended):
        assert sandbox.delete().json == {"success": True}
        assert sandbox.status()["status"] == "deleted"
        check_error(sandbox.delete(), 404, "SANDBOX_NOT_FOUND")


def test_everything_of_a_destroyed_sandbox_is_ended(api, server):
    sandbox = api.create()
    marker = "987654321"
    sandbox.job("sh", "-c", f"trap '' TERM HUP INT; setsid sleep {marker} & sleep {marker}")
    sandbox.job("sh", "-c", f"kill -STOP $$; sleep {marker}")
    sandbox.execute("sh", "-c", f"(setsid sh -c 'sleep {marker}' &) ; sleep {marker}")
    until(lambda: len(running(marker)) >= 3, "its processes to run")
    assert sandbox.delete().status == 200
    until(lambda: not running(marker), "all of its processes to end")


def running(marker):
    """Of the whole machine."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (words := (entry / "cmdline").read_bytes()) and b"sleep" in words:
                found.append(entry.name)
        except OSError:
            pass
    return found


def test_renewing_against_the_end_is_one_or_the_other(api):
    for _ in range(3):
        sandbox = api.create(timeout={"idle": "1s"})
        api.create(timeout={"idle": "900ms"}).wait_status("terminated")
        answer = api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["sh", "-c", "echo ran"]})
        if answer.status < 300:
            state = api.wait_execution(answer.data["executionId"])
            assert state["exitCode"] == 0 and api.read(answer.data["stdoutStreamUrl"]) == b"ran\n"
        else:
            check_error(answer, 404, "SANDBOX_TERMINATED")
        sandbox.delete()
