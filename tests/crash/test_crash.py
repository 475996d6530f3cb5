# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the server at many points, on one data directory: what was answered is there, what runs is adopted, nothing is left."""
import os
import pathlib
import random
import re
import signal
import threading
import time
import uuid

import audit
import pytest
import server as servers
from client import PATIENCE, Client, Raw, base64_of, together, until, waiting_for
from traps import Trap, attempt, crash, local, needs_strace, start_again

SEED = int(os.environ.get("BURROW_CRASH_SEED", "20260131"))
ROUNDS = int(os.environ.get("BURROW_CRASH_ROUNDS", "4"))


# ---- what runs is adopted ----

def test_a_command_lives_on_with_every_byte_and_its_code(server):
    sandbox = server.client.create()
    started = sandbox.execute("sh", "-c", f"seq 1 50000; seq 1 50000 >&2; {waiting_for()}; seq 50001 100000; exit 7")
    for _ in range(3):
        sandbox.client = crash(server)
        assert sandbox.status()["status"] == "running"
        assert server.client.execution(started["executionId"])["status"] == "running"
    sandbox.release()
    state = server.client.wait_execution(started["executionId"])
    assert (state["status"], state["exitCode"]) == ("completed", 7)
    assert server.client.read(local(started["stdoutStreamUrl"])) == "".join(f"{n}\n" for n in range(1, 100001)).encode()
    assert server.client.read(local(started["stderrStreamUrl"])) == "".join(f"{n}\n" for n in range(1, 50001)).encode()
    assert sandbox.status()["status"] == "idle"
    assert sandbox.run("echo", "usable").stdout == b"usable\n"


def test_a_flood_goes_on_while_there_is_no_server(server):
    """Numbered lines, so that a lost or doubled one would show."""
    sandbox = server.client.create()
    script = "import sys\nn = 0\nimport os\nwhile not os.path.exists('go'):\n    n += 1\n    sys.stdout.write(f'{n}\\n')\n" \
             "    if n % 1000 == 0: sys.stdout.flush(); import time; time.sleep(0.001)\nsys.stdout.flush()\nsys.exit(n % 100)"
    started = sandbox.execute("python3", "-c", script)
    for _ in range(4):
        sandbox.client = crash(server)
    sandbox.release()
    state = server.client.wait_execution(started["executionId"])
    lines = server.client.read(local(started["stdoutStreamUrl"])).decode().splitlines()
    assert lines == [str(n) for n in range(1, len(lines) + 1)]
    assert state["exitCode"] == len(lines) % 100


def test_a_terminal_is_typed_into_by_one_server_after_the_other(server):
    sandbox = server.client.create()
    executions = f"/api/v1/sandboxes/{sandbox.id}/executions"
    script = "stty -echo; echo ready; while read line; do echo got-$line; done; echo done"
    made = server.client.post(executions, {"script": script, "terminal": {"rows": 24, "cols": 80}}).json
    top = f"/api/v1/executions/{made['id']}"
    shown = lambda: server.client.get(f"{top}/output?stream=stdout").body.decode()  # noqa: E731
    until(lambda: "ready" in shown(), "the terminal to be ready")
    for n in range(3):
        server.client.post(f"{top}/stdin", body=f"line{n}\n".encode())
        sandbox.client = crash(server)
    server.client.post(f"{top}/stdin?close=true", body=b"last\n")
    until(lambda: server.client.get(top).json["state"] == "completed", "the terminal to end")
    assert shown() == "ready\r\ngot-line0\r\ngot-line1\r\ngot-line2\r\ngot-last\r\ndone\r\n"


def test_nothing_is_left_of_what_waited_of_another_runtime(server):
    """Made ahead of a runtime that was asked for; the next server ends it, and the runtime can be removed."""
    text = 'name: waits\ntags: ["1"]\nbuild:\n  kind: host\n'
    assert server.client.post("/api/v1/runtimes", {"name": "waits:1", "definition": text}).status in (200, 201)
    waiting = lambda: server.client.get("/health").json["parked"]  # noqa: E731
    until(lambda: waiting() >= 3, "the default's to be made ahead")
    before = waiting()
    sandbox = server.client.create(runtime="waits:1")
    until(lambda: waiting() > before, "one of another runtime to be made ahead")
    old = set(server.box_processes())
    sandbox.client = crash(server)
    assert sandbox.run("echo", "usable").stdout == b"usable\n"
    until(lambda: waiting() == 3, "the default's to be made ahead again")
    audit.check(server)
    sandbox.delete()
    until(lambda: not old & set(server.box_processes()), "boxes of the server before to be gone")
    until(lambda: server.client.delete("/api/v1/runtimes/waits:1").status == 200, "the runtime to be removed")
    assert not (server.data / "runtimes" / "waits").exists()


def test_what_ends_while_there_is_no_server_is_found(server):
    sandbox = server.client.create()
    started = sandbox.execute("sh", "-c", f"{waiting_for('/tmp/go')}; echo ended; exit 9")
    job = sandbox.job("sh", "-c", f"{waiting_for('/tmp/go')}; echo job; exit 8")
    one_shot = server.client.create_one_shot("sh", "-c", "sleep 0.3; echo over; exit 6")
    timed = server.client.create()
    late = timed.execute("sleep", "60", timeout="400ms")
    release = sandbox.job("sh", "-c", "sleep 0.3; touch /tmp/go; sleep 0.1")  # so it ends by itself
    server.kill()
    until(lambda: len(server.box_processes()) == count_inits(server), "all commands to end")
    server.start()
    client = sandbox.client = one_shot.client = timed.client = server.client
    assert client.wait_execution(started["executionId"])["exitCode"] == 9
    assert client.read(local(started["stdoutStreamUrl"])) == b"ended\n"
    ended = sandbox.wait_job(job["jobId"])
    assert (ended["status"], ended["exitCode"]) == ("failed", 8)
    assert sandbox.wait_job(release["jobId"])["status"] == "completed"
    assert one_shot.wait_status("terminated")["exitCode"] == 6
    assert client.read(local(one_shot.made["stdoutStreamUrl"])) == b"over\n"
    state = client.wait_execution(late["executionId"])
    assert (state["status"], state["exitCode"]) == ("timeout", 124)


def count_inits(server):
    """How many of the processes in boxes are PID 1 of theirs."""
    found = 0
    for pid in server.box_processes():
        try:
            with open(f"/proc/{pid}/status") as file:
                found += re.search(r"^NSpid:.*\t1$", file.read(), re.MULTILINE) is not None
        except OSError:
            pass
    return found


def test_jobs_live_on_and_can_be_stopped(server):
    sandbox = server.client.create()
    jobs = [sandbox.job("sh", "-c", f"echo {n}; sleep 600") for n in range(5)]
    for job in jobs:
        server.client.follow(job["stdoutStreamUrl"]).wait_for(b"\n")
    sandbox.client = crash(server)
    assert {sandbox.job_state(job["jobId"])["status"] for job in jobs} == {"running"}
    for job in jobs[:3]:
        assert server.client.delete(f"/sandbox/sandboxes/{sandbox.id}/jobs/{job['jobId']}?force=true").status == 200
    for job in jobs[:3]:
        assert sandbox.wait_job(job["jobId"])["status"] == "cancelled"
        assert server.client.read(local(job["stdoutStreamUrl"])).endswith(b"\n")
    assert {sandbox.job_state(job["jobId"])["status"] for job in jobs[3:]} == {"running"}


def test_a_job_asked_to_stop_before_the_crash_is_stopped(server):
    sandbox = server.client.create()
    job = sandbox.job("sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.1; done")
    server.client.follow(job["stdoutStreamUrl"]).wait_for(b"on\n")
    server.client.delete(f"/sandbox/sandboxes/{sandbox.id}/jobs/{job['jobId']}")
    sandbox.client = crash(server)
    assert sandbox.wait_job(job["jobId"])["status"] == "cancelled"


def test_a_command_whose_input_was_being_fed_is_not_left_hanging(server):
    id = server.client.new_stream("input")
    made = server.client.create_one_shot("sh", "-c", "cat; echo the end", stream={"stdin": id})
    with Raw(server.port) as raw:
        raw.send(f"PUT /stream/{id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        raw.chunk(b"first part\n")
        server.client.follow(made.made["stdoutStreamUrl"]).wait_for(b"first part\n")
        made.client = crash(server)
    state = made.wait_status("terminated")
    assert server.client.read(local(made.made["stdoutStreamUrl"])) == b"first part\nthe end\n"
    execution = server.client.execution(made.execution_id)
    assert execution["status"] == "failed" and "input" in execution["error"]  # it did not get all of it, and that is said
    assert execution["exitCode"] == state["exitCode"] != 0


def test_settings_and_files_of_a_sandbox_stay(server):
    sandbox = server.client.create(name="kept", env={"A": "1"}, metadata={"x": [1]}, timeout={"idle": "1h", "execution": "30s"},
                                   resources={"memory": "128Mi"})
    server.client.patch(f"/sandbox/env/{sandbox.id}", {"env": {"B": "2"}})
    sandbox.write_all({"kept/file": "content"})
    before = sandbox.get()
    sandbox.client = crash(server)
    after = sandbox.get()
    for name in ("name", "metadata", "timeout", "resources", "createdAt", "executions", "status"):
        assert after[name] == before[name], name
    assert sandbox.output("cat kept/file; echo $A$B") == "content12\n"
    assert sandbox.run("python3", "-c", "x = bytearray(300 << 20)").exit_code == 137
    assert [event["type"] for event in sandbox.events()][0] == "create"


def test_an_idle_time_that_passes_without_a_server_is_kept(server):
    brief = server.client.create(timeout={"idle": "1s"})
    server.kill()
    server.start()
    brief.client = server.client
    brief.wait_status("terminated")
    assert "idle" in brief.events()[-1]["event"]["reason"]


def test_streams_of_users_stay(server):
    client = server.client
    id, whole = client.new_stream("mine"), client.new_stream("whole")
    client.post(f"/stream/{id}/append", body=b"before ")
    client.put(f"/stream/{whole}", body=b"x" * 1000000)
    client = crash(server)
    assert client.post(f"/stream/{id}/append", body=b"after").status < 300
    assert client.post(f"/stream/{id}/complete").status < 300
    assert client.read(f"/stream/{id}") == b"before after"
    assert client.read(f"/stream/{whole}") == b"x" * 1000000


# ---- killed at points ----

def test_a_delete_that_was_cut_short_can_be_done_again(server):
    for number in range(4):
        client = server.client
        made = [client.create() for _ in range(4)]
        for sandbox in made:
            sandbox.execute("sleep", "600")
        threads = [threading.Thread(target=attempt, args=(sandbox.delete,)) for sandbox in made]
        for thread in threads:
            thread.start()
        time.sleep(0.002 * number)  # another point each time
        client = crash(server)
        for thread in threads:
            thread.join()
        for sandbox in made:
            sandbox.client = client
            assert sandbox.delete().status in (200, 404)
            assert sandbox.status()["status"] == "deleted"
        audit.check(server)


POINTS = [("pwrite64", 1), ("pwrite64", 2), ("pwrite64", 3), ("pwrite64", 5), ("pwrite64", 8), ("fdatasync", 1), ("fdatasync", 2),
          ("unlinkat", 1), ("rmdir", 1), ("sendmsg", 1), ("sendmsg", 3), ("writev", 1),
          ("kill", 1), ("clone3", 1), ("clone3", 2), ("clone3", 3)]


@needs_strace
@pytest.mark.parametrize("call, number", POINTS, ids=[f"{call}-{number}" for call, number in POINTS])
def test_killed_in_the_middle_of_a_create_an_execute_and_a_delete(server, call, number):
    """Answered: it is there. Not answered: it happened wholly or not at all."""
    client = server.client
    sandbox = client.create()
    name, key = f"point-{uuid.uuid4().hex}", {"Idempotency-Key": str(uuid.uuid4())}
    trap = Trap(server, call, number)
    created = attempt(lambda: client.post("/sandbox", {"name": name}, timeout=20))
    once = attempt(lambda: client.post("/sandbox", {"name": f"{name}-once"}, headers=key, timeout=20))
    executed = attempt(lambda: client.post(f"/sandbox/{sandbox.id}/execute", {"command": ["sh", "-c", "echo x >>ran; echo ran"]}, timeout=20))
    run = attempt(lambda: client.post("/sandbox", {"name": f"{name}-run", "command": {"exec": ["echo", "ran"], "mode": "oneshot"}}, timeout=20))
    deleted = attempt(lambda: client.create(name=f"{name}-deleted").delete())
    if not trap.end():
        server.kill()
    start_again(server)
    client = sandbox.client = server.client
    if created and created.status < 300:
        assert client.sandbox(created.data["sandboxId"]).run("true").exit_code == 0
    again = client.post("/sandbox", {"name": f"{name}-once"}, headers=key)
    assert again.status < 300, str(again)
    if once and once.status < 300:
        assert again.data["sandboxId"] == once.data["sandboxId"]
    living = client.get(f"/sandbox?name={name}-once&live=true").data["sandboxes"]
    assert [entry["sandboxId"] for entry in living] == [again.data["sandboxId"]]
    if executed and executed.status < 300:
        assert client.wait_execution(executed.data["executionId"])["exitCode"] == 0
        assert client.read(local(executed.data["stdoutStreamUrl"])) == b"ran\n"
    count = len(client.get(f"/sandbox/sandboxes/{sandbox.id}/executions").data["executions"])
    until(lambda: sandbox.status()["status"] == "idle", "the sandbox to be idle")
    ran = len(sandbox.read("ran").body.splitlines()) if sandbox.read("ran").status == 200 else 0
    assert ran <= 1 and ran <= count
    if run and run.status < 300:
        assert client.sandbox(run.data["sandboxId"]).wait_status("terminated")["exitCode"] == 0
        assert client.read(local(run.data["stdoutStreamUrl"])) == b"ran\n"
    if deleted and deleted.status < 300:
        assert client.get(f"/sandbox?name={name}-deleted&live=true").data["total"] == 0


@needs_strace
@pytest.mark.parametrize("call, number", [("pwrite64", 1), ("pwrite64", 2), ("writev", 1)])
def test_a_run_with_a_key_is_one_run_wherever_it_is_cut(server, call, number):
    """Sent again to the next server, it is answered with the same run, or with the first that came to be."""
    name, key = f"run-{uuid.uuid4().hex}", {"Idempotency-Key": str(uuid.uuid4())}
    body = {"command": ["sh", "-c", "echo ran; exit 4"], "name": name}
    trap = Trap(server, call, number)
    first = attempt(lambda: server.client.post("/api/v1/run", body, headers=key, timeout=4, may_fail=True))
    if not trap.end():
        server.kill()
    start_again(server)
    again = server.client.post("/api/v1/run", body, headers=key)
    assert again.status == 200 and again.json["exitCode"] == 4 and again.json["stdout"]["text"] == "ran\n", str(again)
    if first and first.status == 200:
        assert again.json["id"] == first.json["id"]
    made = server.client.get(f"/sandbox?name={name}").data["sandboxes"]
    assert [entry["sandboxId"] for entry in made if entry["status"] != "failed"] == [again.json["sandboxId"]]


def test_a_run_that_is_under_way_is_waited_for_at_the_next_server(server):
    name, key = f"run-{uuid.uuid4().hex}", {"Idempotency-Key": str(uuid.uuid4())}
    body = {"script": f"{waiting_for('/tmp/go')}; echo lived; exit 5", "name": name}
    thread = threading.Thread(target=attempt, args=(lambda: server.client.post("/api/v1/run", body, headers=key),))
    thread.start()
    found = until(lambda: server.client.get(f"/sandbox?name={name}&status=running").data["sandboxes"], "it to run")
    client = crash(server)
    thread.join()
    assert client.get(f"/sandbox/status/{found[0]['sandboxId']}").data["status"] == "running"
    again, _ = together(lambda: client.post("/api/v1/run", body, headers=key),
                        lambda: client.sandbox(found[0]["sandboxId"]).release("/tmp/go"))
    assert (again.json["exitCode"], again.json["stdout"]["text"]) == (5, "lived\n")
    assert again.json["sandboxId"] == found[0]["sandboxId"]


@needs_strace
@pytest.mark.parametrize("call, number", [("pwrite64", 1), ("pwrite64", 4), ("pwrite64", 12), ("fdatasync", 1), ("unlinkat", 2), ("rmdir", 1),
                                          ("umount2", 1), ("connect", 1), ("connect", 2)])
def test_killed_while_it_starts_and_takes_over(server, call, number):
    sandbox = server.client.create()
    started = sandbox.execute("sh", "-c", f"{waiting_for()}; echo lived; exit 3")
    job = sandbox.job("sleep", "600")
    server.client.create_one_shot("true")
    server.kill()
    server.wrapper = ["sh", "-c", "kill -STOP $$; exec \"$@\"", "sh"]  # so that the trap is set before it does anything
    try:
        server.launch()
    finally:
        server.wrapper = []
    until(lambda: servers.state_of(pathlib.Path("/proc", str(server.pid))) == "T", "it to wait")
    trap = Trap(server, call, number)
    os.kill(server.pid, signal.SIGCONT)
    until(lambda: server.process.poll() is not None or "listening" in server.log and server.is_listening(), "it to die or to listen")
    if not trap.end():
        server.kill()
    start_again(server)
    client = sandbox.client = server.client
    assert sandbox.status()["status"] == "running"
    assert sandbox.job_state(job["jobId"])["status"] == "running"
    sandbox.release()
    state = client.wait_execution(started["executionId"])
    assert state["exitCode"] == 3 and client.read(local(started["stdoutStreamUrl"])) == b"lived\n"


# ---- killed at any time ----

@pytest.mark.parametrize("round", range(ROUNDS))
def test_killed_in_the_middle_of_everything(server, round):
    """Four clients do what they like until the server dies; then the books must balance."""
    chance = random.Random(SEED + round)
    client = server.client
    books = [Book(client, random.Random(SEED + round * 100 + n)) for n in range(4)]
    threads = [threading.Thread(target=book.work) for book in books]
    for thread in threads:
        thread.start()
    time.sleep(chance.uniform(0.05, 0.8))
    server.kill()
    for thread in threads:
        thread.join()
    server.start()
    for book in books:
        book.check(server.client)
    audit.check(server)


class Book:
    """What one client was told."""

    def __init__(self, client, chance):
        self.client, self.chance = client, chance
        self.alive, self.deleted, self.unsure = {}, set(), set()
        self.executions, self.runs = [], []

    def work(self):
        while True:
            act = self.chance.choice([self.create, self.create, self.execute, self.execute, self.run, self.job, self.delete, self.write])
            if attempt(act) is None:
                return

    def create(self):
        made = self.client.post("/sandbox", {"name": "storm", "files": [{"path": "f", "content": base64_of("x" * self.chance.randrange(9999))}]})
        if made.status < 300:
            self.alive[made.data["sandboxId"]] = {}
        return True

    def pick(self):
        return self.client.sandbox(self.chance.choice(sorted(self.alive))) if self.alive else None

    def execute(self):
        sandbox = self.pick()
        if not sandbox:
            return True
        word = uuid.uuid4().hex
        answer = self.client.post(f"/sandbox/{sandbox.id}/execute", {"command": ["sh", "-c", f"echo {word}; sleep 0.0{self.chance.randrange(9)}; exit 3"]})
        if answer.status < 300:
            self.executions.append((answer.data, word))
        return True

    def run(self):
        word = uuid.uuid4().hex
        made = self.client.post("/sandbox", {"command": {"exec": ["sh", "-c", f"echo {word}; exit 4"], "mode": "oneshot"}})
        if made.status < 300:
            self.runs.append((made.data, word))
        return True

    def job(self):
        sandbox = self.pick()
        if sandbox:
            answer = self.client.post(f"/sandbox/sandboxes/{sandbox.id}/jobs", {"command": ["sleep", "600"]})
            if answer.status < 300:
                self.alive[sandbox.id][answer.data["jobId"]] = True
        return True

    def delete(self):
        sandbox = self.pick()
        if sandbox and len(self.alive) > 3:
            del self.alive[sandbox.id]
            self.unsure.add(sandbox.id)
            if sandbox.delete().status == 200:
                self.unsure.discard(sandbox.id)
                self.deleted.add(sandbox.id)
        return True

    def write(self):
        sandbox = self.pick()
        if sandbox:
            sandbox.write_all({f"w{self.chance.randrange(9)}": "y" * self.chance.randrange(9999)})
        return True

    def check(self, client):
        for id, jobs in self.alive.items():
            sandbox = client.sandbox(id)
            assert sandbox.status()["status"] in ("idle", "running"), sandbox.get("?includeDeleted=true")
            for job in jobs:
                assert sandbox.job_state(job)["status"] == "running"
        for id in self.deleted:
            assert client.sandbox(id).status()["status"] == "deleted"
        for id in self.unsure:
            assert client.sandbox(id).status()["status"] in ("idle", "running", "deleted", "stopping", "terminated")
        gone = self.deleted | self.unsure
        for started, word in self.executions:
            state = client.wait_execution(started["executionId"])
            if state["sandboxId"] in gone:
                assert state["status"] in ("completed", "cancelled", "failed"), state
                continue
            assert (state["status"], state["exitCode"]) == ("completed", 3), state
            assert client.read(local(started["stdoutStreamUrl"])) == f"{word}\n".encode()
        for made, word in self.runs:
            assert client.sandbox(made["sandboxId"]).wait_status("terminated")["exitCode"] == 4
            assert client.read(local(made["stdoutStreamUrl"])) == f"{word}\n".encode()


def test_killed_again_and_again_while_it_starts(server):
    chance = random.Random(SEED)
    sandbox = server.client.create()
    started = sandbox.execute("sh", "-c", f"{waiting_for()}; exit 5")
    for _ in range(8):
        server.kill()
        server.launch()
        time.sleep(chance.uniform(0, 0.15))
    server.kill()
    server.start()
    sandbox.client = server.client
    sandbox.release()
    assert server.client.wait_execution(started["executionId"])["exitCode"] == 5


# ---- the power goes ----

def cut_power(server):
    """As far as boxes can tell: all processes are gone at once."""
    server.kill()
    for pid in server.box_processes():
        servers.end_process(pid)
    until(lambda: not server.box_processes(), "everything to be dead")


def test_a_power_cut_leaves_files_and_records_that_say_so(server):
    client = server.client
    sandbox, other = client.create(name="cut"), client.create()
    sandbox.write_all({"kept/file": "content"})
    started = sandbox.execute("sh", "-c", "echo before; sleep 600")
    job = other.job("sh", "-c", "echo job; sleep 600")
    done = other.run("sh", "-c", "exit 3")
    one_shot = client.create_one_shot("sleep", "600")
    client.follow(started["stdoutStreamUrl"]).wait_for(b"before\n")
    client.follow(job["stdoutStreamUrl"]).wait_for(b"job\n")
    cut_power(server)
    server.start()
    client = sandbox.client = other.client = one_shot.client = server.client
    assert one_shot.wait_status("terminated", "failed")["status"] == "terminated"
    assert one_shot.status()["exitCode"] != 0
    assert one_shot.events()[-1]["type"] == "lifecycle:terminated" and one_shot.events()[-1]["event"]["reason"]
    state = client.wait_execution(started["executionId"])
    assert state["status"] == "failed" and state["exitCode"] != 0 and "restart" in state["error"], state
    assert client.read(local(started["stdoutStreamUrl"])) == b"before\n"
    assert other.job_state(job["jobId"])["status"] == "failed"
    assert client.execution(done.state["executionId"])["exitCode"] == 3
    for kept in (sandbox, other):
        assert kept.status()["status"] == "idle"
        assert kept.events()[-1]["type"] == "processes_lost"
    assert sandbox.read("kept/file").body == b"content"
    assert other.output("echo usable") == "usable\n"
    audit.check(server)


def test_what_runs_again_after_a_power_cut_is_adopted_too(server):
    sandbox = server.client.create()
    cut_power(server)
    server.start()
    sandbox.client = server.client
    started = sandbox.execute("sh", "-c", f"{waiting_for()}; exit 5")
    sandbox.client = crash(server)
    assert server.client.execution(started["executionId"])["status"] == "running"
    sandbox.release()
    assert server.client.wait_execution(started["executionId"])["exitCode"] == 5


def test_a_paused_sandbox_keeps_its_files_through_a_power_cut(server):
    sandbox = server.client.create()
    sandbox.write_all({"file": "content"})
    sandbox.execute("sleep", "600")
    assert server.client.post(f"/sandbox/{sandbox.id}/pause").status == 200
    cut_power(server)
    server.start()
    client = sandbox.client = server.client
    assert sandbox.status()["status"] == "suspended"
    assert sandbox.events()[-1]["type"] == "processes_lost"
    assert sandbox.read("file").body == b"content"
    assert sandbox.status()["status"] == "suspended"
    assert client.post(f"/sandbox/{sandbox.id}/resume").status == 200
    assert sandbox.output("cat file") == "content"


def test_boxes_that_die_alone_are_noticed(server):
    """PID 1 of a sandbox is killed from outside while the server runs."""
    sandbox = server.client.create()
    before = set(server.box_processes())
    started = sandbox.execute("sh", "-c", "echo on; sleep 601")
    server.client.follow(started["stdoutStreamUrl"]).wait_for(b"on\n")
    [sleeper] = until(lambda: [pid for pid in set(server.box_processes()) - before if cmdline(pid) == "sleep\000601\0"], "it to sleep")
    group = box_of(sleeper, server)
    for pid in server.box_processes():
        if box_of(pid, server) == group:
            servers.end_process(pid)
    sandbox.wait_status("terminated", "failed")
    assert server.client.wait_execution(started["executionId"])["exitCode"] != 0
    assert server.client.read(started["stdoutStreamUrl"]) == b"on\n"


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read()
    except OSError:
        return ""


def box_of(pid, server):
    """The name of the box a process is in, from its control groups."""
    try:
        with open(f"/proc/{pid}/cgroup") as file:
            found = re.search(rf"{server.group}/([^/\n]+)", file.read())
    except OSError:
        return None
    return found and found[1]
