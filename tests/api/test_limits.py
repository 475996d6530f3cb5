# SPDX-License-Identifier: Apache-2.0
"""Limits of sandboxes: each ends the one who passes it, and leaves the sandbox and its neighbours in use."""
import os
import time

import pytest
from client import until, waiting_for


def test_memory_ends_the_command_and_not_the_sandbox(new):
    sandbox = new(resources={"memory": "64Mi"})
    for _ in range(2):
        ran = sandbox.run("python3", "-c", "x = bytearray(300 << 20)")
        assert ran.exit_code == 137, ran
        assert sandbox.run("echo", "alive").stdout == b"alive\n"


def test_memory_by_files_in_memory_counts_too(new):
    sandbox = new(resources={"memory": "64Mi"})
    ran = sandbox.sh("head -c 300M /dev/zero >/dev/shm/x; echo $?")
    assert ran.exit_code == 137 or ran.stdout.strip() != b"0"
    assert sandbox.sh("rm -f /dev/shm/x; echo alive").stdout == b"alive\n"


def test_memory_taken_by_a_job_ends_the_job(new):
    sandbox = new(resources={"memory": "64Mi"})
    job = sandbox.wait_job(sandbox.job("python3", "-c", "x = bytearray(300 << 20)")["jobId"])
    assert (job["status"], job["exitCode"]) == ("failed", 137)
    assert sandbox.run("true").exit_code == 0


def test_within_the_limit_there_is_memory(new):
    assert new(resources={"memory": "256Mi"}).run("python3", "-c", "x = bytearray(128 << 20)").exit_code == 0


def test_the_disk_is_full_at_its_limit_and_usable_after_cleaning(new):
    sandbox = new(resources={"disk": "16Mi"})
    ran = sandbox.sh("head -c 64M /dev/zero >big")
    assert ran.exit_code != 0 and ran.stderr
    assert int(sandbox.output("rm big; head -c 4M /dev/zero >small; wc -c <small")) == 4 << 20


def test_a_full_disk_of_one_is_not_anothers(new):
    full, other = new(resources={"disk": "16Mi"}), new(resources={"disk": "16Mi"})
    full.sh("head -c 64M /dev/zero >big")
    assert other.sh("head -c 8M /dev/zero >fits").exit_code == 0


def test_a_tenth_of_a_core_is_a_tenth(new):
    script = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
    used = float(new(resources={"cpu": "100m"}).run("python3", "-c", script).stdout)
    assert used < 1.0, f"{used} s of CPU time in 2 s"


def test_processes_are_counted(new, shared):
    sandbox = new()
    script = "import os, signal\nn = 0\ntry:\n    while n < 20000:\n        pid = os.fork()\n        if pid == 0:\n" \
             "            signal.pause()\n        n += 1\nexcept OSError as e:\n    print(n, e.errno)\nos.killpg(0, 9)"
    ran = sandbox.run("setsid", "-w", "python3", "-u", "-c", script)
    count, errno = map(int, ran.stdout.split())
    assert errno == 11 and count < 20000
    assert sandbox.run("echo", "alive").stdout == b"alive\n"
    assert shared.run("true").exit_code == 0


def test_a_fork_bomb_stays_in_its_sandbox(new, shared, api):
    sandbox = new(resources={"memory": "128Mi", "cpu": "200m"})
    started = sandbox.execute("sh", "-c", "b() { b | b & }; b; sleep 60", timeout="2s")
    assert shared.run("echo", "alive").stdout == b"alive\n"
    state = api.wait_execution(started["executionId"])
    assert state["status"] in ("timeout", "completed", "failed")
    until(lambda: sandbox.run("true").exit_code == 0, "the sandbox to be usable again")


def test_a_program_sees_what_it_has_whether_or_not_its_sandbox_was_made_ahead(new, api):
    look = "nproc; awk '/^MemTotal/ { print $2 }' /proc/meminfo; cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max"
    shapes = [{"memory": "1Gi", "cpu": "2"}, {"memory": "96Mi", "cpu": "500m"}, {"memory": "1Gi", "cpu": "2"}, {}]
    for shape in shapes:
        memory = {"1Gi": 1 << 30, "96Mi": 96 << 20}.get(shape.get("memory"), 512 << 20)
        cpus, quota = {"2": (2, "200000 100000"), "500m": (1, "25000 50000")}.get(shape.get("cpu"), (1, "100000 100000"))
        until(lambda: api.get("/health").json["parked"] > 0, "a sandbox made ahead")
        seen = new(resources=shape).sh(look).stdout.decode().splitlines()
        assert seen == [str(min(cpus, os.cpu_count())), str(memory // 1024), str(memory), quota], shape


# ---- time ----

def test_an_idle_sandbox_ends(api):
    sandbox = api.create(timeout={"idle": "2s"})
    began = time.monotonic()
    while (state := sandbox.status())["status"] != "terminated":  # looking is not using
        assert state["status"] in ("idle", "stopping")
        assert time.monotonic() < began + 30, "it does not end"
    assert time.monotonic() >= began + 1.5, "it ended too early"


def test_use_puts_the_end_off(api):
    sandbox = api.create(timeout={"idle": "2s"})
    began = time.monotonic()
    while time.monotonic() < began + 4:
        for use in (lambda: sandbox.run("true"), lambda: sandbox.write_all({"x": "y"}), lambda: sandbox.list(),
                    lambda: api.patch(f"/sandbox/env/{sandbox.id}", {"env": {}})):
            use()
    assert sandbox.status()["status"] == "idle"
    sandbox.delete()


def test_a_running_command_or_job_is_use(api):
    by_command, by_job = (api.create(timeout={"idle": "1s"}) for _ in range(2))
    command = by_command.execute("sh", "-c", f"{waiting_for()}; echo done")
    job = by_job.job("sh", "-c", waiting_for())
    other = api.create(timeout={"idle": "1500ms"})
    other.wait_status("terminated")  # so more than a second has passed
    assert by_command.status()["status"] == "running"
    assert by_job.status()["status"] == "idle" and by_job.job_state(job["jobId"])["status"] == "running"
    by_command.release()
    by_job.release()
    assert api.wait_execution(command["executionId"])["exitCode"] == 0
    by_command.wait_status("terminated")
    by_job.wait_status("terminated")


def test_an_idle_time_of_zero_is_for_ever(api):
    forever = api.create(timeout={"idle": "0s"})
    brief = api.create(timeout={"idle": "1s"})
    brief.wait_status("terminated")
    assert forever.status()["status"] == "idle"
    forever.delete()


def test_what_a_terminated_sandbox_had_is_given_back(api, server):
    made = [api.create(timeout={"idle": "1s"}) for _ in range(5)]
    for sandbox in made:
        sandbox.wait_status("terminated")
    def no_more():
        health = api.get("/health").json
        return len(server.boxes()) <= health["sandboxes"] + health["parked"]
    until(no_more, "boxes to go")
