# SPDX-License-Identifier: Apache-2.0
"""What must be true of a server's data directory and of the machine whenever nothing is under way."""
import contextlib
import fcntl
import pathlib
import sqlite3
import time

ALIVE = ("creating", "idle", "running", "pausing", "paused", "resuming", "stopping")
SECONDS = 20
RECYCLED = 64  # sockets that are kept for the next box in their slot, at most


def rows(server, text):
    with contextlib.closing(sqlite3.connect(f"file:{server.data}/burrow.db?mode=ro", uri=True, timeout=20)) as database:
        return database.execute(text).fetchall()


@contextlib.contextmanager
def writing(server):
    """The server records nothing meanwhile, as when its disk is slow: whoever has to wait for a record waits. Gives a function that ends it early."""
    with contextlib.closing(sqlite3.connect(server.data / "burrow.db", isolation_level=None, timeout=20, check_same_thread=False)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield database.rollback


def faults(server):
    """Everything that does not fit together."""
    alive = rows(server, f"SELECT id, box_slot, state, scratch FROM sandboxes WHERE state IN {ALIVE}")
    boxes = {box for box in server.boxes() if is_ours(server, box)}
    return [*faults_of_boxes(server, alive, boxes), *faults_of_commands(server, alive), *faults_of_scratches(server, alive, boxes),
            *faults_of_layers(server), *faults_of_files(server)]


def faults_of_boxes(server, alive, boxes):
    """One that is alive may have no box; whoever uses it gives it one, over its files."""
    found = []
    parked = server.client.get("/health").json["parked"]
    slots = [slot for _, slot, _, _ in alive if slot >= 0]
    if len(set(slots)) != len(slots):
        found.append(f"two sandboxes share a box: {alive}")
    if missing := {str(slot) for slot in slots} - boxes:
        found.append(f"boxes {sorted(missing)} are gone, and their sandboxes do not know: {alive}")
    if len(boxes) != len(slots) + parked:
        lived_in = {box for box in boxes if any(f"{server.group}/{box}" in cgroup for cgroup in cgroups_of(server.box_processes()))}
        found.append(f"{len(boxes)} boxes for {len(slots)} of {len(alive)} sandboxes and {parked} made ahead: {sorted(boxes)}, "
                     f"without a process: {sorted(boxes - lived_in)}")
    sockets = [path for path in pathlib.Path("/run/burrow", server.group).iterdir() if is_ours(server, path.name)]
    if len(sockets) > len(boxes) + RECYCLED:
        found.append(f"{len(sockets)} entries in /run/burrow for {len(boxes)} boxes: {sockets}")
    found += [f"mount {point}" for point in server.mounts() if not point.startswith(f"{server.data}/volume")
              and not point.startswith(f"{server.data}/mounts")]
    return found


def faults_of_commands(server, alive):
    found = []
    ids = {row[0] for row in alive}
    for id, state in rows(server, "SELECT sandbox_id, state FROM executions WHERE ended_at = 0"):
        if id not in ids:
            found.append(f"a command is {state} in sandbox {id}, which is over")
    for id, sandbox in rows(server, "SELECT id, sandbox_id FROM streams WHERE completed_at = 0 AND sandbox_id IS NOT NULL"):
        if sandbox not in ids:
            found.append(f"stream {id} is open, its sandbox {sandbox} is over")
    for id in rows(server, "SELECT realm FROM idempotency WHERE state = 'pending'"):
        found.append(f"a request is pending for ever: {id}")
    return found


def faults_of_scratches(server, alive, boxes):
    """Each is a living sandbox's or of a box: one-shot, or made ahead."""
    there = set(scratch_names(server))
    kept = {scratch for _, _, _, scratch in alive if scratch}
    found = [f"the files of a sandbox are gone: {name}" for name in kept - there]
    found += [f"scratch {name} is nobody's" for name in there if name.startswith("layer-") or name.startswith("run-") and name[4:] not in boxes
              and is_ours(server, name[4:])]
    if len(there - kept) > len(boxes):
        found.append(f"{len(there)} scratches, {len(kept)} of them of sandboxes, for {len(boxes)} boxes: {sorted(there - kept)}")
    return found


def faults_of_layers(server):
    """Directories, rows and users of layers are the same set, and every user is alive and has all of its own."""
    there = {path.name for path in (server.data / "volume/layers").glob("*")}
    known = {row[0] for row in rows(server, "SELECT name FROM layers")}
    uses = set(rows(server, "SELECT layer, user_id FROM layer_uses"))
    used = {layer for layer, _ in uses}
    found = [f"layer {name} has no row" for name in there - known]
    found += [f"layer {name} is not on the volume" for name in known - there]
    found += [f"layer {name} is nobody's" for name in known - used]
    needed = {(row[1], row[0]) for row in rows(server, "SELECT id, layer FROM checkpoints")}
    for id, layers in rows(server, f"SELECT id, layers FROM snapshots WHERE state = 'ready' UNION SELECT id, layers FROM sandboxes WHERE state IN {ALIVE}"):
        needed |= {(layer, id) for layer in (layers or "").splitlines()}
    found += [f"{user} needs layer {layer} and does not hold it" for layer, user in needed - uses]
    found += [f"{user} holds layer {layer} and does not need it" for layer, user in uses - needed]
    orphans = rows(server, f"SELECT id FROM checkpoints WHERE sandbox_id NOT IN (SELECT id FROM sandboxes WHERE state IN {ALIVE})")
    found += [f"checkpoint {id} is of a sandbox that is over" for id, in orphans]
    tags = "SELECT organisation, name, tag FROM snapshots WHERE state = 'ready' AND tag IS NOT NULL GROUP BY 1, 2, 3 HAVING count(*) > 1"
    found += [f"tag {row} is of two snapshots" for row in rows(server, tags)]
    return found


def faults_of_files(server):
    found = []
    known = {row[0].rsplit("/", 1)[-1] for row in rows(server, "SELECT file FROM streams")}
    files = {path.name: mtime(path) for path in (server.data / "spool").rglob("*") if path.is_file()}
    # Files are made ahead; those of an earlier server are nobody's.
    found += [f"spool file {name} has no row" for name in set(files) - known if files[name] < server.started_at]
    # Of a command that printed nothing the row is all there is.
    needed = rows(server, "SELECT file FROM streams WHERE sandbox_id IS NULL OR state <> 'complete' OR size_bytes > 0")
    found += [f"stream file {row[0]} is missing" for row in needed if row[0].rsplit("/", 1)[-1] not in files]
    for folder, state in (("builds", "building"), ("snapshots", "ready")):
        ids = {row[0] for row in rows(server, f"SELECT id FROM snapshots WHERE state = '{state}'")}
        found += [f"{path} belongs to no snapshot" for path in (server.data / folder).glob("*") if path.name not in ids]
    found += [f"{path} is left" for path in (server.data / "tmp").glob("*")]
    return found


def is_ours(server, box):
    """Numbers of boxes are the machine's. What a dead one left is swept when its number is free, which it is not while a box of
    another data directory has it."""
    if any(f"{server.group}/{box}" in cgroup for cgroup in cgroups_of(server.box_processes())):
        return True
    try:
        with open(f"/run/burrow/slots/{box}") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def mtime(path):
    try:
        return path.stat().st_mtime
    except OSError:  # gone since
        return float("inf")


def cgroups_of(pids):
    for pid in pids:
        try:
            yield pathlib.Path(f"/proc/{pid}/cgroup").read_text()
        except OSError:
            pass


def scratch_names(server):
    """Directories on the volume in which boxes keep their files."""
    volume = server.data / "volume"
    return [path.name for folder in volume.iterdir() if folder.is_dir() and folder.name.startswith("scratch") for path in folder.iterdir()]


def check(server, but=None):
    """Gives everything the time to settle, then nothing may be wrong, except what begins with a word."""
    deadline = time.monotonic() + SECONDS
    while (found := [fault for fault in faults(server) if not (but and fault.startswith(but))]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not found, f"{found}\n{''.join(line for line in server.log.splitlines(True) if ' info request' not in line)[-3000:]}"
