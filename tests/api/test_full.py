# SPDX-License-Identifier: Apache-2.0
"""A full volume: whatever needs room says that there is none and harms nothing; what frees some works, and then everything does."""
import os
import shutil
import subprocess

import audit
import pytest
import server as servers
from archives import member, tar_of
from client import base64_of, check_error, until

MEGA = 1 << 20
FINAL = {"sizeBytes": 0, "fileCount": 0, "files": []}
FILL = """
import os, sys

def take(name, size):
    try:
        with open(name, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
        return True
    except OSError:
        return False

but, n = int(sys.argv[1]), 0
if but:
    assert take("spare", but)
for size in (64 << 20, 16 << 20, 4 << 20, 1 << 20, 1 << 16, 4096):
    while take(f"big-{n}", size):
        n += 1
os.sync()
n = failures = 0
while not but and failures < 30:  # small ones lie where names do, and there is more room for them when earlier ones are on disk
    try:
        with open(f"small-{n}", "wb") as file:
            file.write(b"x" * 1900)
        n += 1
    except OSError:
        os.sync()
        failures += 1
if but:
    os.remove("spare")
os.sync()
"""
NO_ROOM = "no room left on the server's volume"

pytestmark = pytest.mark.skipif(not shutil.which("mkfs.btrfs"), reason="mkfs.btrfs is not installed")


class Small:
    """A server on a volume of 300 MiB."""

    def __init__(self, data):
        self.server = servers.Server(data, options=["--max-disk", "2Gi"])
        image = self.server.data / "volume.img"
        with image.open("wb") as file:
            file.truncate(300 * MEGA)
        subprocess.run(["mkfs.btrfs", "--quiet", "--nodiscard", "--metadata", "single", image], check=True, stdout=subprocess.DEVNULL)
        self.api = self.server.start().client

    def free(self):
        """Bytes. Pruning has what was removed come back at once."""
        assert self.api.post("/api/v1/system/prune", {}).status == 200
        return self.api.get("/api/v1/system/df").data["volume"]["freeBytes"]

    def fill(self, but=0):
        """A sandbox that takes all the room there is for names and for bytes, except so many of these."""
        glutton = self.api.create(resources={"disk": "2Gi"})
        ran = glutton.run("python3", "-c", FILL, str(but))
        assert ran.exit_code == 0, ran
        return glutton

    def empty(self, glutton):
        """On a full volume the answer comes when the room is there."""
        assert glutton.delete().status == 200
        assert self.api.get("/api/v1/system/df").data["volume"]["freeBytes"] > 100 * MEGA


@pytest.fixture(scope="module")
def volume(tmp_path_factory):
    small = Small(tmp_path_factory.mktemp("full") / "data")
    try:
        yield small
        small.server.end()
    finally:
        small.server.abandon()


@pytest.fixture
def small(volume):
    """Afterwards nothing may be there that nobody owns, and all of the room."""
    yield volume
    servers.delete_all(volume.api)
    for snapshot in volume.api.get("/sandbox/snapshots?limit=100").data["snapshots"]:
        assert volume.api.delete(f"/sandbox/snapshots/{snapshot['snapshotId']}").status == 200
    audit.check(volume.server)
    until(lambda: volume.free() > 250 * MEGA, "the space to come back")


def put(sandbox, script):
    """Runs what needs room that is there."""
    assert sandbox.run("sh", "-c", script).exit_code == 0, f"room for '{script}'"


def done_or_refused(answer):
    """Names have room of their own, which may not be full."""
    if answer.status not in (200, 201):
        refused(answer)
    return answer.status in (200, 201)


def refused(answer, *words):
    assert answer.status in (413, 429, 507) and not answer.json.get("success"), str(answer)
    assert any(word in (answer.json.get("detail") or answer.json["message"]) for word in words or (NO_ROOM,)), str(answer)


def checkpoint(sandbox, name):
    return sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": name})


def restore(sandbox, name):
    return sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint/{name}/restore")


def snap(sandbox, **fields):
    return sandbox.client.post(f"/sandbox/{sandbox.id}/snapshot", fields)


def test_snapshots_and_checkpoints(small):
    api = small.api
    sandbox = api.create()
    put(sandbox, "echo one >file && head -c 5000000 /dev/urandom >bulk")
    assert checkpoint(sandbox, "a").status == 201
    id = snap(sandbox, name="kept").data["snapshotId"]
    sandbox.output("echo two >file; rm bulk")
    job = sandbox.job("sleep", "600")["jobId"]
    glutton = small.fill()
    taken, kept = ["a"], ["kept"]
    for number in range(30):
        taken += [f"b{number}"] * done_or_refused(checkpoint(sandbox, f"b{number}"))
        kept += [f"new-{number}"] * done_or_refused(snap(sandbox, name=f"new-{number}"))
    assert [entry["name"] for entry in api.get(f"/sandbox/checkpoints/{sandbox.id}").data["checkpoints"]] == taken
    assert sorted(entry["name"] for entry in api.get("/sandbox/snapshots?limit=100").data["snapshots"]) == sorted(kept)
    assert sandbox.status()["status"] == "idle" and sandbox.job_state(job)["status"] == "running", "it goes on as it was"
    assert sandbox.read("file").body == b"two\n"
    if not done_or_refused(restore(sandbox, "a")):
        assert sandbox.job_state(job)["status"] == "running" and sandbox.read("file").body == b"two\n"
    assert api.get(f"/api/v1/snapshots/{id}/export").status == 200, "reading needs no room"
    small.empty(glutton)
    until(lambda: small.free() and checkpoint(sandbox, "b").status == 201, "room for a name")
    assert snap(sandbox, name="new").status == 201
    assert restore(sandbox, "a").status == 200 and sandbox.output("cat file; stat -c %s bulk") == "one\n5000000\n"
    assert api.create(snapshot=id).output("cat file") == "one\n"


def test_deleting_makes_room(small):
    """Also when there is not even room for a name: layers go on a full volume."""
    api = small.api
    sandbox = api.create()
    for name in ("a", "b"):
        put(sandbox, "head -c 50000000 /dev/urandom >bulk")
        assert checkpoint(sandbox, name).status == 201
    id = snap(sandbox, name="kept").data["snapshotId"]
    sandbox.output("rm bulk")
    small.fill()
    assert api.delete(f"/sandbox/{sandbox.id}/checkpoint/a").status == 200
    until(lambda: small.free() > 30 * MEGA, "the room of one checkpoint")
    assert api.delete(f"/sandbox/{sandbox.id}/checkpoint/b").status == 200
    assert api.delete(f"/sandbox/snapshots/{id}").status == 200
    assert api.post("/api/v1/system/prune", {}).status == 200
    until(lambda: small.free() > 70 * MEGA, "the room of all")
    until(lambda: small.free() and checkpoint(sandbox, "c").status == 201, "room for a name")


def test_a_start_on_a_full_volume(small):
    api = small.api
    sandbox = api.create()
    put(sandbox, "head -c 30000000 /dev/urandom >bulk && echo one >file")
    id = snap(sandbox, name="kept").data["snapshotId"]
    glutton = small.fill()
    small.server.kill()
    assert len(os.listdir(small.server.data / "volume/layers")) == 1
    small.server.start()
    small.api = glutton.client = sandbox.client = api = small.server.client
    assert sandbox.read("file").body == b"one\n"
    small.empty(glutton)
    assert api.create(snapshot=id).output("cat file") == "one\n"


def test_builds(small):
    """Full in the middle; the same build can be finished when there is room."""
    api = small.api
    begun = api.post("/sandbox/snapshots/build", {"runtime": "base:latest", "name": "built"}).data
    bulk = os.urandom(40 * MEGA)
    assert api.put(begun["uploadUrl"], tar_of(member("file", b"built\n"), member("bulk", bulk)), key=None).status == 200
    for but in (25 * MEGA, 0):
        small.fill(but)
        refused(api.post(f"/sandbox/snapshots/{begun['snapshotId']}/finalize", FINAL), "No space left", NO_ROOM)
        assert not api.get("/sandbox/snapshots").data["snapshots"]
    servers.delete_all(api)
    until(lambda: small.free() > 150 * MEGA, "the space to come back")
    answer = api.post(f"/sandbox/snapshots/{begun['snapshotId']}/finalize", FINAL)
    assert answer.status == 200, str(answer)
    assert api.create(snapshot="built").output("cat file; stat -c %s bulk") == f"built\n{40 * MEGA}\n"


@pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not installed")
def test_imports(small):
    api = small.api
    sandbox = api.create()
    put(sandbox, f"echo one >file && head -c {40 * MEGA} /dev/urandom >bulk")
    id = snap(sandbox, name="moved").data["snapshotId"]
    archive = api.get(f"/api/v1/snapshots/{id}/export").body
    assert sandbox.delete().status == api.delete(f"/sandbox/snapshots/{id}").status == 200
    until(lambda: small.free() > 250 * MEGA, "the space to come back")
    for but in (25 * MEGA, 0):
        small.fill(but)
        refused(api.post("/api/v1/snapshots/import", body=archive, may_fail=True), NO_ROOM, "No space left", "unpacks to more than")
        assert not api.get("/sandbox/snapshots").data["snapshots"]
    servers.delete_all(api)
    until(lambda: small.free() > 150 * MEGA, "the space to come back")
    back = api.post("/api/v1/snapshots/import", body=archive)
    assert back.status == 201, str(back)
    assert api.create(snapshot=back.data["id"]).output("cat file; stat -c %s bulk") == f"one\n{40 * MEGA}\n"


def test_sandboxes(small):
    """One that cannot be made is not there; one that is goes on, and makes room itself."""
    api = small.api
    glutton = small.fill()
    made = []
    for _ in range(10):  # some have their files made ahead, the others need room for names
        answer = api.post("/sandbox", {"name": "more"})
        if answer.status == 201:
            made.append(answer.data["sandboxId"])
        else:
            refused(answer, "No space left")
    content = base64_of(os.urandom(1 << 20))
    check_error(api.post(f"/fs/{glutton.id}", {"files": [{"path": "new", "content": content}]}), 429, "CAPACITY", "the server's disk is full")
    assert {entry["sandboxId"] for entry in api.get("/sandbox?name=more&live=true&limit=100").data["sandboxes"]} == set(made)
    assert glutton.output("rm -f big-* small-*; sync; echo freed") == "freed\n"
    until(lambda: small.free() > 100 * MEGA, "the space to come back")
    assert api.create(name="more").output("echo fine") == "fine\n"
