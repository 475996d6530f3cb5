# SPDX-License-Identifier: Apache-2.0
"""
kill -9 of the server in the middle of everything that keeps state: snapshots, checkpoints, pause, builds, export, import, prune. After a
restart there is the old state or the new one, whole, and nothing that nobody owns (audit.py, after each test).
"""
import os
import uuid

import audit
import pytest
from archives import member, tar_of
from client import PATIENCE, until
from server import delete_all
from traps import Trap, attempt, local, needs_strace, start_again

pytestmark = needs_strace
EVERY_CALL = ("ioctl", "pwrite64", "pread64", "fdatasync", "openat", "renameat2", "renameat", "rename", "mkdirat", "unlinkat", "unlink", "clone3", "sendmsg", "recvmsg",
              "write", "pidfd_send_signal", "move_mount", "mount_setattr", "fsconfig", "sendfile", "faccessat2", "flock", "close")
FINAL = {"sizeBytes": 0, "fileCount": 0, "files": []}


def at(*points):
    """The server dies at the Nth call of this kind that one of its threads makes. BURROW_CRASH_POINTS=all looks for other points, for hours."""
    if os.environ.get("BURROW_CRASH_POINTS") == "all":
        points = [(call, number) for call in EVERY_CALL for number in range(1, 9)]
    return pytest.mark.parametrize("call, number", points, ids=[f"{call}-{number}" for call, number in points])


def unused_layers(server):
    return [name for name in os.listdir(server.data / "volume/layers") if name.startswith(".gone")] + audit.rows(
        server, "SELECT name FROM layers WHERE NOT EXISTS (SELECT 1 FROM layer_uses WHERE layer = name)")


def tidied(server, answer):
    """The answer, when what it leaves to be done in the background is done too, or the server gone."""
    until(lambda: server.process.poll() is not None or not unused_layers(server), "layers to go")
    return answer


def killed_at(server, call, number, act):
    """What it answered, or None; afterwards another server is there."""
    trap = Trap(server, call, number)
    answer = attempt(act)
    if answer is None:  # it is gone, or about to
        server.process.wait(PATIENCE)
    has_sprung = trap.end()
    if not has_sprung:
        server.kill()
    start_again(server)
    if answer and answer.status >= 300:  # it has hit a child of the server, which told of it
        assert not has_sprung and answer.status < 500, str(answer)
        return None
    return answer


@pytest.fixture(scope="module")
def whole(crashing):
    yield crashing
    audit.check(crashing)


@pytest.fixture
def server(whole):
    """As for all crashes; but files of streams, which take the server a second, are looked at when all is over."""
    if whole.process.poll() is not None:
        whole.start()
    yield whole
    if whole.process.poll() is not None:
        whole.start()
    delete_all(whole.client)
    for snapshot in snapshots(whole.client):
        assert whole.client.delete(f"/sandbox/snapshots/{snapshot['snapshotId']}").status == 200
    audit.check(whole, but="spool")


def snapshots(client, name=None):
    listed = client.get("/sandbox/snapshots?limit=100").data["snapshots"]
    return [entry for entry in listed if name is None or entry["name"] == name]


def snap(sandbox, **fields):
    answer = sandbox.client.post(f"/sandbox/{sandbox.id}/snapshot", fields)
    assert answer.status == 201, str(answer)
    return answer.data["snapshotId"]


def checkpoint(sandbox, name):
    answer = sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": name})
    assert answer.status == 201, str(answer)
    return answer.data


def checkpoints(sandbox):
    return [entry["name"] for entry in sandbox.client.get(f"/sandbox/checkpoints/{sandbox.id}").data["checkpoints"]]


def with_file(client, text="one"):
    sandbox = client.create()
    sandbox.output(f"echo {text} >file; mkdir -p tree/deep; echo x >tree/deep/x; rm -rf /etc/apt")
    return sandbox


def has_file(client, reference, text="one"):
    sandbox = client.create(snapshot=reference)
    assert sandbox.output("cat file tree/deep/x; test ! -e /etc/apt") == f"{text}\nx\n"
    return sandbox


COUNTING = ("sh", "-c", "n=0; while :; do n=$((n+1)); echo $n >/tmp/count.new; mv /tmp/count.new /tmp/count; sleep 0.02; done")


def ticking(sandbox):
    """A job that counts, in a file, as long as it runs."""
    job = sandbox.job(*COUNTING)["jobId"]
    until(lambda: count(sandbox) > 0, "it to count")
    return job


def is_running(sandbox, job):
    return sandbox.job_state(job)["status"] == "running"


def count(sandbox):
    answer = sandbox.read("/tmp/count")
    return int(answer.body or 0) if answer.status == 200 else 0


def ticks(sandbox):
    before = count(sandbox)
    until(lambda: count(sandbox) > before, "it to go on counting")
    return True


# ---- snapshots ----

@at(("ioctl", 1), ("ioctl", 2), ("pwrite64", 1), ("pwrite64", 3), ("fdatasync", 1))
def test_a_snapshot_is_taken(server, call, number):
    sandbox, name = with_file(server.client), f"s-{uuid.uuid4().hex}"
    job = ticking(sandbox)
    before = snap(sandbox, name=name, tag="v1")
    sandbox.output("echo two >file")
    answer = killed_at(server, call, number, lambda: server.client.post(f"/sandbox/{sandbox.id}/snapshot", {"name": name, "tag": "v1"}))
    client = sandbox.client = server.client
    there = {entry["snapshotId"]: entry.get("tag") for entry in snapshots(client, name)}
    new = set(there) - {before}
    assert before in there and len(new) <= 1
    assert answer is None or new == {answer.data["snapshotId"]}
    assert [id for id, tag in there.items() if tag == "v1"] == (list(new) or [before])
    has_file(client, f"{name}:v1", "two" if new else "one")
    assert is_running(sandbox, job) and ticks(sandbox)


@at(("pwrite64", 1), ("pwrite64", 3), ("fdatasync", 1), ("sendmsg", 1), ("unlink", 1))
def test_a_snapshot_is_deleted(server, call, number):
    sandbox = with_file(server.client)
    id = snap(sandbox, name="going")
    server.client.get(f"/sandbox/snapshots/{id}")  # makes the list of its files
    other = has_file(server.client, id)
    sandbox.delete()
    answer = killed_at(server, call, number, lambda: server.client.delete(f"/sandbox/snapshots/{id}"))
    client = other.client = server.client
    now = client.get(f"/sandbox/snapshots/{id}")
    assert now.status in ((404,) if answer else (200, 404))
    if now.status == 200:
        has_file(client, id)
    assert other.output("cat file") == "one\n"


@at(("pidfd_send_signal", 1), ("unlinkat", 1), ("pwrite64", 1), ("renameat", 1), ("ioctl", 1))
def test_the_last_user_of_a_layer_goes(server, call, number):
    sandbox = with_file(server.client)
    id = snap(sandbox, name="going")
    other = has_file(server.client, id)
    assert sandbox.delete().status == server.client.delete(f"/sandbox/snapshots/{id}").status == 200
    answer = killed_at(server, call, number, lambda: tidied(server, other.delete()))
    other.client = server.client
    status = other.status()["status"]
    assert status == "deleted" or not answer and (status == "terminated" or other.output("cat file") == "one\n"), status


@at(("pwrite64", 1), ("pwrite64", 2), ("fdatasync", 1))
def test_a_tag_moves(server, call, number):
    sandbox = with_file(server.client)
    first, second = snap(sandbox, name="tagged", tag="best"), snap(sandbox, name="tagged", tag="other")
    answer = killed_at(server, call, number, lambda: server.client.patch(f"/sandbox/snapshots/{second}", {"tag": "best"}))
    tags = {entry["snapshotId"]: entry.get("tag") for entry in snapshots(server.client, "tagged")}
    old, new = {first: "best", second: "other"}, {first: None, second: "best"}
    assert tags == new or not answer and tags == old, tags


@at(("pwrite64", 1), ("pwrite64", 3), ("clone3", 1), ("clone3", 2), ("sendmsg", 1), ("renameat2", 1), ("ioctl", 1))
def test_a_sandbox_is_made_from_a_snapshot(server, call, number):
    sandbox, name = with_file(server.client), f"c-{uuid.uuid4().hex}"
    id = snap(sandbox, name="base")
    answer = killed_at(server, call, number, lambda: server.client.post("/sandbox", {"snapshot": id, "name": name}))
    client = server.client
    living = [entry["sandboxId"] for entry in client.get(f"/sandbox?name={name}&live=true").data["sandboxes"]]
    assert len(living) <= 1 and (answer is None or living == [answer.data["sandboxId"]])
    for made in living:
        assert client.sandbox(made).output("cat file") == "one\n"
    assert client.delete(f"/sandbox/snapshots/{id}").status == 200
    for made in living:
        assert client.sandbox(made).output("cat file tree/deep/x") == "one\nx\n"


# ---- checkpoints ----

@at(("ioctl", 1), ("ioctl", 2), ("pwrite64", 1), ("pwrite64", 3), ("fdatasync", 1))
def test_a_checkpoint_is_made(server, call, number):
    sandbox = with_file(server.client)
    checkpoint(sandbox, "a")
    sandbox.output("echo two >file")
    job = ticking(sandbox)
    answer = killed_at(server, call, number, lambda: server.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "b"}))
    client = sandbox.client = server.client
    names = checkpoints(sandbox)
    assert names == ["a", "b"] or not answer and names == ["a"], names
    assert is_running(sandbox, job) and ticks(sandbox)
    for name in names:
        assert client.post(f"/sandbox/{sandbox.id}/checkpoint/{name}/restore").status == 200
        assert sandbox.output("cat file") == ("one\n" if name == "a" else "two\n")


@at(("ioctl", 1), ("ioctl", 2), ("ioctl", 4), ("renameat2", 1), ("pwrite64", 1), ("pwrite64", 3), ("fdatasync", 1), ("pidfd_send_signal", 1),
    ("unlinkat", 1), ("clone3", 1), ("sendmsg", 1))
def test_going_back_to_a_checkpoint(server, call, number):
    """Old: what ran is running, over the files as they were. New: it is over, the files are as then, and that is recorded."""
    sandbox = with_file(server.client)
    checkpoint(sandbox, "a")
    sandbox.output("echo two >file; rm -r tree; echo more >more")
    job, started = ticking(sandbox), sandbox.execute("sleep", "600")
    answer = killed_at(server, call, number, lambda: server.client.post(f"/sandbox/{sandbox.id}/checkpoint/a/restore"))
    client = sandbox.client = server.client
    has_gone = any(event["event"].get("reason") == "restored" for event in sandbox.events())
    assert has_gone or answer is None
    state = client.execution(started["executionId"])
    if has_gone:
        assert state["status"] == "cancelled" and sandbox.job_state(job)["status"] == "cancelled"
        assert sandbox.status()["status"] == "idle"
        assert sandbox.output("ls; cat file") == "file\ntree\none\n"
    else:
        assert sandbox.status()["status"] == state["status"] == "running" and is_running(sandbox, job) and ticks(sandbox)
        assert sandbox.read("file").body == b"two\n" and sandbox.read("more").body == b"more\n"
    assert client.post(f"/sandbox/{sandbox.id}/checkpoint/a/restore").status == 200
    assert sandbox.output("ls; cat file") == "file\ntree\none\n"


@at(("pwrite64", 1), ("pwrite64", 3), ("fdatasync", 1), ("renameat", 1), ("ioctl", 1))
def test_a_checkpoint_is_deleted(server, call, number):
    sandbox = with_file(server.client)
    checkpoint(sandbox, "a")
    sandbox.output("echo two >file")
    checkpoint(sandbox, "b")
    answer = killed_at(server, call, number, lambda: tidied(server, server.client.delete(f"/sandbox/{sandbox.id}/checkpoint/a")))
    client = sandbox.client = server.client
    names = checkpoints(sandbox)
    assert names == ["b"] or not answer and names == ["a", "b"], names
    for name in names:
        assert client.post(f"/sandbox/{sandbox.id}/checkpoint/{name}/restore").status == 200
        assert sandbox.output("cat file") == ("one\n" if name == "a" else "two\n")


# ---- pause and resume ----

def stands_still(sandbox):
    """What is frozen makes no step; a moment is enough to see one that does."""
    before = count(sandbox)
    for _ in range(10):
        sandbox.list()
    return count(sandbox) == before


@at(("write", 1), ("write", 2), ("pwrite64", 1), ("pwrite64", 3), ("fdatasync", 1))
def test_a_sandbox_is_paused(server, call, number):
    sandbox = server.client.create()
    started = sandbox.execute(*COUNTING)
    until(lambda: count(sandbox) > 0, "it to count")
    answer = killed_at(server, call, number, lambda: server.client.post(f"/sandbox/{sandbox.id}/pause"))
    sandbox.client = server.client
    status = sandbox.status()["status"]
    assert status == "suspended" or not answer and status == "running", status
    check_awake_or_not(sandbox, started, status)


@at(("write", 1), ("write", 2), ("pwrite64", 1), ("pwrite64", 3), ("fdatasync", 1))
def test_a_sandbox_is_resumed(server, call, number):
    sandbox = server.client.create()
    started = sandbox.execute(*COUNTING)
    until(lambda: count(sandbox) > 0, "it to count")
    assert server.client.post(f"/sandbox/{sandbox.id}/pause").status == 200
    answer = killed_at(server, call, number, lambda: server.client.post(f"/sandbox/{sandbox.id}/resume"))
    sandbox.client = server.client
    status = sandbox.status()["status"]
    assert status == "running" or not answer and status == "suspended", status
    check_awake_or_not(sandbox, started, status)


def check_awake_or_not(sandbox, started, status):
    assert sandbox.client.execution(started["executionId"])["status"] == "running"
    if status == "suspended":
        assert stands_still(sandbox)
        assert sandbox.client.post(f"/sandbox/{sandbox.id}/resume").status == 200
    assert ticks(sandbox)


# ---- builds, export, import, prune ----

ARCHIVE = tar_of(member("file", b"built\n"), member("bulk", b"x" * 300000))


def begin(client, **fields):
    return client.post("/sandbox/snapshots/build", {"runtime": "base:latest", **fields}).data


def upload(client, begun):
    return client.put(local(begun["uploadUrl"]), ARCHIVE, key=None)


def finish(client, begun):
    return client.post(f"/sandbox/snapshots/{begun['snapshotId']}/finalize", {**FINAL, "env": {"A": "b"}})


def is_built(client, begun):
    sandbox = client.create(snapshot=begun["snapshotId"])
    return sandbox.output("cat file; stat -c %s bulk; echo $A") == "built\n300000\nb\n"


@at(("pwrite64", 1), ("fdatasync", 1))
def test_a_build_is_announced(server, call, number):
    name = f"b-{uuid.uuid4().hex}"
    answer = killed_at(server, call, number, lambda: server.client.post("/sandbox/snapshots/build", {"runtime": "base:latest", "name": name}))
    assert not snapshots(server.client, name)
    begun = answer.data if answer else begin(server.client, name=name)
    assert upload(server.client, begun).status == 200 and finish(server.client, begun).status == 200 and is_built(server.client, begun)


@at(("openat", 1), ("sendfile", 1), ("fdatasync", 1), ("rename", 1), ("sendmsg", 1))
def test_a_build_is_uploaded(server, call, number):
    begun = begin(server.client, name="uploaded")
    answer = killed_at(server, call, number, lambda: upload(server.client, begun))
    done = finish(server.client, begun)
    assert done.status == 200 or not answer and done.status == 409, str(done)
    if done.status != 200:
        assert upload(server.client, begun).status == 200 and finish(server.client, begun).status == 200
    assert is_built(server.client, begun)


@at(("sendmsg", 1), ("clone3", 1), ("pidfd_send_signal", 1), ("ioctl", 1), ("ioctl", 2), ("pwrite64", 1),
    ("fdatasync", 1), ("unlink", 1), ("unlinkat", 1))
def test_a_build_is_finished(server, call, number):
    sandbox = with_file(server.client)
    before = snap(sandbox, name="built", tag="latest")
    begun = begin(server.client, name="built", tag="latest")
    assert upload(server.client, begun).status == 200
    answer = killed_at(server, call, number, lambda: finish(server.client, begun))
    tags = {entry["snapshotId"]: entry.get("tag") for entry in snapshots(server.client, "built")}
    old, new = {before: "latest"}, {before: None, begun["snapshotId"]: "latest"}
    assert tags == new or not answer and tags == old, tags
    if tags == old:
        assert finish(server.client, begun).status == 200
    assert is_built(server.client, begun)
    has_file(server.client, before)


@at(("openat", 3), ("clone3", 1), ("sendmsg", 1), ("pwrite64", 1))
def test_a_snapshot_is_exported(server, call, number):
    id = snap(with_file(server.client), name="exported")
    killed_at(server, call, number, lambda: server.client.get(f"/api/v1/snapshots/{id}/export"))
    assert server.client.get(f"/api/v1/snapshots/{id}/export").status == 200
    has_file(server.client, id)


@at(("clone3", 1), ("sendmsg", 1), ("pidfd_send_signal", 1), ("ioctl", 1), ("ioctl", 2), ("pwrite64", 1),
    ("fdatasync", 1), ("unlinkat", 1))
def test_a_snapshot_is_imported(server, call, number):
    id = snap(with_file(server.client), name="moved", tag="v1")
    archive = server.client.get(f"/api/v1/snapshots/{id}/export").body
    answer = killed_at(server, call, number, lambda: server.client.post("/api/v1/snapshots/import", body=archive))
    tags = {entry["snapshotId"]: entry.get("tag") for entry in snapshots(server.client, "moved")}
    new = set(tags) - {id}
    assert id in tags and len(new) <= 1 and (answer is None or new == {answer.data["id"]})
    assert [one for one, tag in tags.items() if tag == "v1"] == (list(new) or [id])
    has_file(server.client, "moved:v1")
    has_file(server.client, id)


@at(("openat", 1), ("unlinkat", 1), ("sendmsg", 1))
def test_pruning(server, call, number):
    sandbox = with_file(server.client)
    checkpoint(sandbox, "a")
    id = snap(sandbox, name="pruned")
    begun = begin(server.client, name="pruned")
    assert upload(server.client, begun).status == 200
    (server.data / "builds" / "0123456789abcdefghijklmnop").write_bytes(b"x" * 10000)
    killed_at(server, call, number, lambda: server.client.post("/api/v1/system/prune", {}))
    client = sandbox.client = server.client
    assert client.post("/api/v1/system/prune", {}).status == 200
    assert client.post(f"/sandbox/{sandbox.id}/checkpoint/a/restore").status == 200 and sandbox.output("cat file") == "one\n"
    assert finish(client, begun).status == 200 and is_built(client, begun)
    has_file(client, id)
