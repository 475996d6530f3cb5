# SPDX-License-Identifier: Apache-2.0
"""What must be true of a server's data directory and of the machine whenever nothing is under way."""
import fcntl
import pathlib
import sqlite3
import time

ALIVE = ("creating", "idle", "running", "pausing", "paused", "resuming", "stopping")
SECONDS = 20
RECYCLED = 64  # sockets that are kept for the next box in their slot, at most


def rows(server, text):
    with sqlite3.connect(f"file:{server.data}/burrow.db?mode=ro", uri=True, timeout=20) as database:
        return database.execute(text).fetchall()


def faults(server):
    """Everything that does not fit together."""
    found = []
    health = server.client.get("/health").json
    alive = rows(server, f"SELECT id, box_slot, state FROM sandboxes WHERE state IN {ALIVE}")
    boxes = {box for box in server.boxes() if is_ours(server, box)}
    parked = health["parked"]
    if len(boxes) != len(alive) + parked:
        lived_in = {box for box in boxes if any(f"{server.group}/{box}" in cgroup for cgroup in cgroups_of(server.box_processes()))}
        found.append(f"{len(boxes)} boxes for {len(alive)} sandboxes and {parked} made ahead: {sorted(boxes)}, "
                     f"without a process: {sorted(boxes - lived_in)}")
    slots = [slot for _, slot, _ in alive if slot >= 0]
    if len(set(slots)) != len(slots):
        found.append(f"two sandboxes share a box: {alive}")
    for id, state in rows(server, "SELECT sandbox_id, state FROM executions WHERE ended_at = 0"):
        if id not in [row[0] for row in alive]:
            found.append(f"a command is {state} in sandbox {id}, which is over")
    for id, sandbox in rows(server, "SELECT id, sandbox_id FROM streams WHERE completed_at = 0 AND sandbox_id IS NOT NULL"):
        if sandbox not in [row[0] for row in alive]:
            found.append(f"stream {id} is open, its sandbox {sandbox} is over")
    known = {row[0].rsplit("/", 1)[-1] for row in rows(server, "SELECT file FROM streams")}
    files = {path.name: mtime(path) for path in (server.data / "spool").rglob("*") if path.is_file()}
    # Files are made ahead; those of an earlier server are nobody's.
    found += [f"spool file {name} has no row" for name in set(files) - known if files[name] < server.started_at]
    found += [f"stream file {name} is missing" for name in known - set(files)]
    sockets = [path for path in pathlib.Path("/run/burrow", server.group).iterdir() if is_ours(server, path.name)]
    if len(sockets) > len(boxes) + RECYCLED:
        found.append(f"{len(sockets)} entries in /run/burrow for {len(boxes)} boxes: {sockets}")
    found += [f"mount {point}" for point in server.mounts() if not point.startswith(f"{server.data}/volume")
              and not point.startswith(f"{server.data}/mounts")]
    scratches = scratch_names(server)
    if len(scratches) > len(boxes):
        found.append(f"{len(scratches)} scratches for {len(boxes)} boxes: {sorted(scratches)}")
    for id in rows(server, "SELECT realm FROM idempotency WHERE state = 'pending'"):
        found.append(f"a request is pending for ever: {id}")
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


def check(server):
    """Gives everything the time to settle, then nothing may be wrong."""
    deadline = time.monotonic() + SECONDS
    while (found := faults(server)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not found, f"{found}\n{''.join(line for line in server.log.splitlines(True) if ' info request' not in line)[-3000:]}"
