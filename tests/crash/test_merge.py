# SPDX-License-Identifier: Apache-2.0
"""kill -9 while a long chain of snapshots is merged: it is the old one or the merged one, whole, and nothing is left of the other."""
import time

import audit
from client import until
from traps import Trap, attempt, needs_strace, start_again

DEEP = 32  # layers under the sandbox: with its own, one more than are left as they are
MANY = 4000
FEW = 100  # for a server whose every call is looked at


def layers(server, snapshot=None):
    """Names on the volume, or of one snapshot."""
    if snapshot is None:
        return {path.name for path in (server.data / "volume/layers").iterdir()}
    (text,), = audit.rows(server, f"SELECT layers FROM snapshots WHERE id = '{snapshot.removeprefix('snp_')}'")
    return text.split()


def is_tidy(server):
    known = {name for name, in audit.rows(server, "SELECT name FROM layers")}
    used = {name for name, in audit.rows(server, "SELECT DISTINCT layer FROM layer_uses")}
    return layers(server) == known == used


def is_made(server):
    return any(name.startswith(".new-") for name in layers(server))


def is_merged(server, snapshot):
    return len(layers(server, snapshot)) <= 32


def snap(sandbox):
    answer = sandbox.client.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "deep"})
    assert answer.status == 201, str(answer)
    return answer.data["snapshotId"]


def make_deep(client, count):
    """A sandbox on a chain of snapshots of snapshots; with many files, merging what lies under it takes a while."""
    sandbox = client.create()
    sandbox.output(f"mkdir many; cd many; for n in $(seq {count}); do echo $n >$n; done")
    for level in range(DEEP):
        below = snap(sandbox)
        sandbox.delete()
        sandbox = client.create(snapshot=below)
        assert client.delete(f"/sandbox/snapshots/{below}").status == 200
        sandbox.output(f"echo {level} >level-{level}; rm -f level-{level - 2}; mv many much; mv much many")
    return sandbox


POINTS = {
    "at once": lambda server, id: True,
    "as it begins": lambda server, id: is_made(server),
    "in the middle": lambda server, id: is_made(server) and not time.sleep(0.05),
    "later": lambda server, id: is_made(server) and not time.sleep(0.2),
    "made": lambda server, id: is_merged(server, id) or len(layers(server)) == DEEP + 2 and not is_made(server),
    "known": lambda server, id: is_merged(server, id),
}


def check(server, deep, count, id, point):
    """Whatever it stands on, it shows the same; soon it is merged, and nothing else is there."""
    deep.client = client = server.client
    wanted = f"{count}\n17\nlevel-{DEEP - 2}\nlevel-{DEEP - 1}\n"
    copy = client.create(snapshot=id)
    assert copy.output("ls many | wc -l; cat many/17; ls -d level*") == wanted, point
    until(lambda: is_merged(server, id), f"it to be merged, after a crash {point}")
    later = client.create(snapshot=id)
    assert later.output("ls many | wc -l; cat many/17; ls -d level*") == wanted, point
    assert client.delete(f"/sandbox/snapshots/{id}").status == 200
    copy.delete()
    later.delete()
    until(lambda: is_tidy(server), f"nothing to be left, after a crash {point}")
    assert len(layers(server)) == DEEP


def test_killed_while_merging(server):
    deep = make_deep(server.client, MANY)
    for point, is_there in POINTS.items():
        id = snap(deep)
        until(lambda: is_there(server, id), point)
        server.kill()
        server.start()
        check(server, deep, MANY, id, point)


@needs_strace
def test_killed_at_calls_that_merging_makes(server):
    deep = make_deep(server.client, FEW)
    for call, number in [("mkdirat", 2), ("syncfs", 1), ("renameat2", 1), ("linkat,symlinkat,mknodat,fsetxattr", 1)]:
        before = {entry["snapshotId"] for entry in server.client.get("/sandbox/snapshots?limit=100").data["snapshots"]}
        trap = Trap(server, call, number)
        attempt(lambda: snap(deep))
        try:
            until(lambda: server.process.poll() is not None, f"the server to die at {call}")
        finally:
            trap.end()
        start_again(server)
        deep.client = server.client
        made = {entry["snapshotId"] for entry in server.client.get("/sandbox/snapshots?limit=100").data["snapshots"]} - before
        check(server, deep, FEW, made.pop() if made else snap(deep), f"at {call}")
