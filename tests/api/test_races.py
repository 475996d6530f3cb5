# SPDX-License-Identifier: Apache-2.0
"""
A guest that exchanges directories, links, files, pipes and sockets all the time, against every route that reads or writes files, and
against checkpoints, snapshots and differences. Nothing of outside is read or written, every answer comes, and an error is one of
the client's own. A few rounds here; for BURROW_RACE_SECONDS seconds each where that is set (tools/check races).
"""
import collections
import io
import os
import secrets
import shutil
import subprocess
import tarfile
import time
import zipfile

import pytest
from archives import member, tar_of
from client import files_json, query

SECONDS = float(os.environ.get("BURROW_RACE_SECONDS", 0))
CLEAR = {200, 201, 400, 403, 404, 409, 413}  # what may be said of files that are something else every moment

SWAP = """
import ctypes, os, socket, sys
outside = sys.argv[1]
exchange = ctypes.CDLL(None).renameat2
os.mkdir("r")
os.chdir("r")
for name in "dpuhz":
    os.mkdir(name)
    open(f"{name}/canary", "w").write("inside")
os.makedirs("a/b/c/d/e")
open("a/b/c/d/e/canary", "w").write("inside")
for name in "fgsk":
    open(name, "w").write("inside")
for name, target in (("d1", outside), ("p1", "/proc/1/root" + outside), ("u1", "../" * 30 + outside[1:]), ("f1", outside + "/canary"), ("k1", "/proc/self/environ")):
    os.symlink(target, name)
os.mkfifo("g1")
socket.socket(socket.AF_UNIX).bind("s1")
open("h1", "w").write("inside")
pairs = [(b"d", b"d1"), (b"p", b"p1"), (b"u", b"u1"), (b"f", b"f1"), (b"g", b"g1"), (b"s", b"s1"), (b"h", b"h1"), (b"k", b"k1"), (b"a/b/c", b"z")]
print("on", flush=True)
turns = 0
while not os.path.exists("../go"):
    turns += 1
    for one, other in pairs:
        exchange(-100, one, -100, other, 2)
print(turns)
"""
PLACES = ("d", "p", "u", "h", "a/b/c", "a/b/c/d/e", "z/d/e")


class Race:
    """One sandbox whose guest exchanges, what lies outside, and what the routes said."""

    def __init__(self, api, new, server, outside):
        self.api, self.sandbox, self.outside, self.data = api, new(), outside, str(server.data)
        self.secret = secrets.token_hex(16).encode()
        (outside / "canary").write_bytes(self.secret)
        self.seen = collections.Counter()
        self.sandbox.write_all({"swap.py": SWAP})
        self.job = self.sandbox.job("python3", "swap.py", str(outside))
        self.output = api.follow(self.job["stdoutStreamUrl"])
        self.output.wait_for(b"on\n")

    def rounds(self, few):
        """So many, or as long as is asked for."""
        deadline = time.monotonic() + SECONDS
        while few > 0 or time.monotonic() < deadline:
            yield
            few -= 1

    def check(self, answer, what):
        assert answer.status in CLEAR, f"{what}: {answer}"
        assert self.secret not in answer.body, f"{what}: {answer}"
        if answer.status >= 300:
            assert answer.json["message"] and self.data not in answer.json["message"], f"{what}: {answer}"
        self.seen[what, answer.status < 300] += 1
        return answer

    def check_archive(self, content):
        for data in content:
            assert self.secret not in data

    def end(self, *worked):
        """The guest has exchanged to the end, these worked at least once, and nothing has changed outside."""
        self.sandbox.release()
        assert int(self.output.rest().split()[-1]) > 0
        self.output.close()
        assert self.sandbox.output("echo well") == "well\n"
        assert [path.name for path in self.outside.iterdir()] == ["canary"]
        assert (self.outside / "canary").read_bytes() == self.secret
        for what in worked:
            assert self.seen[what, True], f"{what} never worked: {self.seen}"


@pytest.fixture
def race(api, new, server, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    return Race(api, new, server, outside)


def unpacked(body):
    """The contents of a tar.gz or a zip; one that was cut because its files changed has fewer."""
    if body[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(body)) as packed:
            return [packed.read(name) for name in packed.namelist()]
    with tarfile.open(fileobj=io.BytesIO(body)) as packed:
        return [packed.extractfile(entry).read() for entry in packed if entry.isreg()]


# ---- files ----

def test_routes_of_single_files_beside_a_guest_that_exchanges_all(race, api):
    base = race.sandbox.id
    for _ in race.rounds(6):
        for place in PLACES:
            race.check(race.sandbox.read(f"r/{place}/canary"), "read")
            race.check(api.post(f"/fs/{base}", {"files": files_json({f"r/{place}/canary": "changed", f"r/{place}/new/x": "x"})}), "write")
            race.check(api.post(f"/fs/mkdir/{base}", {"path": f"r/{place}/m/n", "recursive": True}), "mkdir")
            race.check(api.post(f"/fs/rm/{base}", {"path": f"r/{place}/new/x"}), "rm")
            race.check(api.post(f"/fs/rmdir/{base}", {"path": f"r/{place}/m", "recursive": True}), "rmdir")
        for name in "fgsk":
            race.check(race.sandbox.read(f"r/{name}"), "read")
            race.check(api.post(f"/fs/{base}", {"files": files_json({f"r/{name}": "inside"})}), "write")
    race.end("read", "write", "mkdir", "rm", "rmdir")


def test_routes_of_trees_beside_a_guest_that_exchanges_all(race, api):
    base = race.sandbox.id
    whole = tar_of(*(member(f"{place}/canary", b"unpacked") for place in PLACES), *(member(name, b"unpacked") for name in "fgs"),
                   member("a/b/c/deep/deeper/x", b"unpacked"), member("l", type=tarfile.SYMTYPE, linkname=str(race.outside)))
    for _ in race.rounds(4):
        for place in ("d", "p", "u", "a/b", "."):
            race.check(api.get(f"/fs/list/{base}?{query(path=f'r/{place}')}"), "list")
            for form in ("tar.gz", "zip"):
                answer = race.check(api.get(f"/fs/download/{base}?{query(path=f'r/{place}', format=form)}"), form)
                if answer.status == 200:
                    race.check_archive(unpacked(answer.body))
            race.check(api.post(f"/fs/upload/{base}?{query(path=f'r/{place}')}", body=whole, headers={"Content-Type": "application/gzip"}), "upload")
    race.end("list", "tar.gz", "zip", "upload")


# ---- what is kept ----

def test_checkpoints_and_differences_beside_a_guest_that_exchanges_all(race, api):
    base = race.sandbox.id
    path = f"/sandbox/{base}/checkpoint"
    race.check(api.post(path, {"name": "first"}), "checkpoint")
    for turn, _ in enumerate(race.rounds(3)):
        race.check(api.post(path, {"name": f"c{turn}"}), "checkpoint")
        for start in ("base", "first", f"c{turn}"):
            race.check(api.get(f"/api/v1/sandboxes/{base}/diff?{query(**{'from': start, 'to': 'now', 'patch': 1})}"), "diff")
        race.check(api.get(f"/api/v1/sandboxes/{base}/diff?{query(**{'from': 'first', 'to': f'c{turn}', 'patch': 1})}"), "diff")
        race.check(api.delete(f"{path}/c{turn}"), "forget")
    race.end("checkpoint", "diff", "forget")
    assert race.check(api.post(f"{path}/first/restore"), "restore").status == 200
    assert race.sandbox.output("ls r | wc -l") != "0\n"


def test_snapshots_and_their_archives_beside_a_guest_that_exchanges_all(race, api, new, made):
    for turn, _ in enumerate(race.rounds(2)):
        answer = race.check(api.post(f"/sandbox/{race.sandbox.id}/snapshot", {"name": f"raced{turn}"}), "snapshot")
        made.append(answer.data["snapshotId"])
        race.check(api.get(f"/sandbox/snapshots/{made[-1]}"), "files")
        exported = race.check(api.get(f"/api/v1/snapshots/{made[-1]}/export"), "export")
        if shutil.which("zstd"):
            plain = subprocess.run(["zstd", "-q", "-dc"], input=exported.body, stdout=subprocess.PIPE, check=True).stdout
            assert b"inside" in plain
            race.check_archive([plain])
        started = new(snapshot=made[-1])
        assert race.secret.decode() not in started.output("cat $(find r -type f)")
        started.delete()
        race.check(api.delete(f"/sandbox/snapshots/{made.pop()}"), "delete")
    race.end("snapshot", "files", "export", "delete")
