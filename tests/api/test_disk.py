# SPDX-License-Identifier: Apache-2.0
"""The disk of the data directory runs full: what could not be kept is told, what ends things works, and room brings everything back."""
import concurrent.futures
import os
import shutil
import signal
import subprocess
import time

import audit
import pytest
import server as servers
from client import until

MEGA = 1 << 20
VOLUME = 260 * MEGA


class Host:
    """A small file system with a data directory on it, whose volume has all of its room from the start."""

    def __init__(self, place, options="size=400m"):
        self.place = place
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
        self.server = servers.Server(place / "data")

    def start(self):
        image = self.server.data / "volume.img"
        subprocess.run(["fallocate", "--length", str(VOLUME), image], check=True)
        subprocess.run(["mkfs.btrfs", "--quiet", "--nodiscard", "--metadata", "single", image], check=True, stdout=subprocess.DEVNULL)
        self.api = self.server.start().client
        return self

    def fill(self):
        """Somebody else takes all there is."""
        left = os.statvfs(self.place)
        with (self.place / "filler").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, left.f_bavail * left.f_frsize)
        until(lambda: self.health()["status"] == "degraded", "the server to say that its disk is full")

    def empty(self):
        (self.place / "filler").unlink()
        until(lambda: self.health()["status"] == "ok", "the server to see the room")

    def health(self):
        return self.api.get("/health", key=None).json

    def end(self):
        self.server.abandon()
        until(lambda: subprocess.run(["umount", self.place], stderr=subprocess.DEVNULL).returncode == 0, "the file system to be free")


@pytest.fixture
def host(tmp_path, request):
    host = Host(tmp_path / "host", getattr(request, "param", "size=400m"))
    try:
        yield host.start()
        host.server.end()
    finally:
        host.end()


def test_a_full_disk(host):
    api = host.api
    sandbox, other, third = api.create(), api.create(), api.create()
    assert host.health()["status"] == "ok" and "reason" not in host.health()
    host.fill()
    assert "disk of the data directory is full" in host.health()["reason"]
    assert "disk of the data directory is full" in host.server.log
    ran = sandbox.sh("head -c 100004 /dev/zero")
    assert ran.exit_code == 0 and ran.stdout != bytes(100004)
    assert ran.state["outputTruncated"] is True
    assert "output could not be kept" in ran.state["error"], "it is not told as plain success"
    told = [event for event in sandbox.events() if "completed" in event["type"]][-1]
    assert "output could not be kept" in str(told), told
    # What ends things, and what is needed to mend it.
    assert api.post(f"/sandbox/{other.id}/pause").status == 200
    assert other.delete().status == 200 and other.status()["status"] == "deleted"
    assert third.delete().status == 200
    assert sandbox.sh("true").exit_code == 0
    host.empty()
    assert "there is room on the disk again" in host.server.log
    ran = sandbox.sh("head -c 100004 /dev/zero")
    assert ran.stdout == bytes(100004) and ran.state["outputTruncated"] is False and "error" not in ran.state
    audit.check(host.server)


@pytest.mark.parametrize("host", ["size=400m,nr_inodes=3000"], indirect=True)
def test_no_inodes(host):
    api = host.api
    sandbox, other = api.create(), api.create()
    folder = host.place / "many"
    folder.mkdir()
    with pytest.raises(OSError):
        for number in range(10000):
            (folder / str(number)).touch()
    until(lambda: "no inodes" in host.health().get("reason", ""), "the server to say so")
    answers = [api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"]}) for _ in range(50)]  # some have their files made ahead
    assert {answer.status for answer in answers} <= {200, 409, 429}, "busy, or no room, and no fault"
    assert api.post(f"/sandbox/{other.id}/pause").status == 200
    assert other.delete().status == 200
    shutil.rmtree(folder)
    until(lambda: host.health()["status"] == "ok", "the server to see the room")
    until(lambda: sandbox.status()["status"] == "idle", "the last command to end")
    assert sandbox.sh("echo fine").stdout == b"fine\n"
    audit.check(host.server)


def test_a_stopped_server_goes_on(host):
    """Under load: what was asked meanwhile is answered, and no deadline of others has passed for it."""
    api = host.api
    sandbox = api.create(timeout={"idle": "10m"})
    job = sandbox.job("sh", "-c", "seq 1 20000; sleep 600")["jobId"]
    host.server.process.send_signal(signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(lambda: api.create_one_shot("echo", "x").first().stdout) for _ in range(8)]
        time.sleep(1)  # for them to wait at a server that does not answer
        host.server.process.send_signal(signal.SIGCONT)
        assert [future.result(120) for future in asked] == [b"x\n"] * 8
    assert sandbox.job_state(job)["status"] == "running" and sandbox.status()["status"] == "idle"
    audit.check(host.server)
