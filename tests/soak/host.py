# SPDX-License-Identifier: Apache-2.0
"""A server on a small file system of its own, random clients for it, and what the machine holds for it."""
import contextlib
import http.client
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
sys.dont_write_bytecode = True
import server as servers  # noqa: E402
from client import Answer, base64_of, until  # noqa: E402

MEGA = 1 << 20
BROKEN = (OSError, http.client.HTTPException)  # the server died, or was stopped, under the request
DAY = 24 * 3600 * 1000


class Client(threading.Thread):
    """Does random things with sandboxes of its own, and compares what it can."""

    def __init__(self, host, seed):
        super().__init__(daemon=True)
        self.host, self.random = host, random.Random(seed)
        self.sandboxes, self.done, self.wrong = [], 0, []
        self.is_over = False

    def run(self):
        while not self.is_over:
            try:
                self.random.choice([self.make, self.execute, self.execute, self.job, self.files, self.checkpoint, self.snapshot,
                                    self.one_shot, self.pause, self.delete])()
                self.done += 1
            except BROKEN:
                time.sleep(0.05)
            except Refused as refused:
                self.judge(refused.answer)
            except AssertionError as error:
                self.wrong.append(str(error)[:300])

    def judge(self, answer):
        """A refusal is fine; a fault of the server is one unless the day is bad."""
        if answer.status == 500 and not self.host.is_bad_day:
            self.wrong.append(str(answer)[:300])
        time.sleep(0.02)

    def call(self, method, path, *args, **fields):
        answer = self.host.server.client.call(method, path, *args, may_fail=True, timeout=20, **fields)
        if answer.status >= 400:
            raise Refused(answer)
        return answer

    def pick(self):
        return self.random.choice(self.sandboxes) if self.sandboxes else self.make()

    def make(self):
        id = self.call("POST", "/sandbox", {"timeout": {"idle": "10m"}}).data["sandboxId"]
        self.sandboxes.append(id)
        if len(self.sandboxes) > 4:
            self.delete()
        return id

    def delete(self):
        if self.sandboxes:
            id = self.sandboxes.pop(self.random.randrange(len(self.sandboxes)))
            try:
                self.call("DELETE", f"/sandbox/{id}")
            except (Refused, *BROKEN):
                pass  # the end of the run deletes all

    def finish(self, started):
        for _ in range(3):
            state = self.call("GET", f"/sandbox/execution/{started['executionId']}?wait=10s").data
            if state["status"] not in ("queued", "running"):
                return state
        raise TimeoutError

    def check(self, started, expected):
        state = self.finish(started)
        if state["status"] != "completed" or "error" in state:
            return  # its sandbox ended, or output could not be kept; which is told
        path = "/stream/" + started["stdoutStreamUrl"].rsplit("/", 1)[1]
        seen = self.call("GET", path, key=None).body
        assert seen == expected, f"{len(seen)} bytes of {len(expected)}: {state}"

    def execute(self):
        number = self.random.choice([1, 1, 100, 20000])
        started = self.call("POST", f"/sandbox/{self.pick()}/execute", {"command": ["seq", str(number)]}).data
        self.check(started, "".join(f"{n}\n" for n in range(1, number + 1)).encode())

    def one_shot(self):
        self.check(self.call("POST", "/sandbox", {"command": {"exec": ["echo", "once"], "mode": "oneshot"}}).data, b"once\n")

    def job(self):
        self.call("POST", f"/sandbox/sandboxes/{self.pick()}/jobs", {"command": ["sleep", self.random.choice(["0.1", "30"])]})

    def files(self):
        id, content = self.pick(), os.urandom(self.random.choice([10, 5000]))
        self.call("POST", f"/fs/{id}", {"files": [{"path": "file", "content": base64_of(content)}]})
        seen = self.call("GET", f"/fs/{id}?path=file").body
        assert seen == content, "a file is not what was written"

    def checkpoint(self):
        id, name = self.pick(), f"c{self.random.randrange(4)}"
        self.call("POST", f"/sandbox/{id}/checkpoint", {"name": name})
        if self.random.random() < 0.5:
            self.call("POST", f"/sandbox/{id}/checkpoint/{name}/restore")
        else:
            self.call("DELETE", f"/sandbox/{id}/checkpoint/{name}")

    def snapshot(self):
        made = self.call("POST", f"/sandbox/{self.pick()}/snapshot", {"name": "soak"}).data["snapshotId"]
        self.call("DELETE", f"/sandbox/snapshots/{made}")

    def pause(self):
        id = self.pick()
        self.call("POST", f"/sandbox/{id}/pause")
        self.call("POST", f"/sandbox/{id}/resume")


class Refused(Exception):
    def __init__(self, answer: Answer):
        super().__init__(str(answer))
        self.answer = answer


class Host:
    """A file system at `place`, mounted by `mount`, and a server in it."""

    def __init__(self, place, mount, options=()):
        self.place = pathlib.Path(place)
        self.place.mkdir(parents=True)
        mount(self.place)
        self.server = servers.Server(self.place / "data", options=["--keep", "1m", *options])
        self.is_bad_day = False
        self.clients = []

    def begin(self, number, seed):
        self.clients = [Client(self, seed + n) for n in range(number)]
        for client in self.clients:
            client.start()

    def rest(self):
        """All clients stop; how much they did, and what was wrong."""
        for client in self.clients:
            client.is_over = True
        for client in self.clients:
            client.join(90)
        done, wrong = sum(client.done for client in self.clients), [fault for client in self.clients for fault in client.wrong]
        self.clients = []
        return done, wrong

    def clear(self):
        """Everything of users goes; and what is kept of that, as if a day had passed."""
        servers.delete_all(self.server.client)
        while snapshots := self.server.client.get("/sandbox/snapshots?limit=100").data["snapshots"]:
            for snapshot in snapshots:
                self.server.client.delete(f"/sandbox/snapshots/{snapshot['snapshotId']}")
        assert self.server.client.post("/api/v1/system/prune", {}).status == 200

    def forget(self):
        self.server.stop()
        with contextlib.closing(sqlite3.connect(self.server.data / "burrow.db", isolation_level=None)) as database:
            database.execute(f"UPDATE sandboxes SET ended_at = ended_at - {DAY} WHERE ended_at <> 0")
            database.execute(f"UPDATE idempotency SET created_at = created_at - {2 * DAY}")
        self.server.start()
        until(lambda: not any(self.rows().values()), f"rows to be purged: {self.rows()}", 120)

    # ---- what there is ----

    def rows(self):
        """Of deleted snapshots rows stay, for the lineage of others; and so does what was used."""
        with contextlib.closing(sqlite3.connect(f"file:{self.server.data}/burrow.db?mode=ro", uri=True, timeout=20)) as database:
            return {name: database.execute(f"SELECT count(*) FROM {name} WHERE {where}").fetchone()[0] for name, where in (
                ("sandboxes", "1"), ("executions", "1"), ("streams", "1"), ("events", "1"), ("checkpoints", "1"), ("layers", "1"),
                ("layer_uses", "1"), ("idempotency", "1"), ("snapshots", "state <> 'deleted'"))}

    def held(self):
        """By word: what must not grow."""
        fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{self.server.pid}/status").read_text().splitlines() if ":" in line)
        listed = subprocess.run(["btrfs", "subvolume", "list", self.server.data / "volume"], capture_output=True, text=True)
        return {"memory KiB": int(fields["VmRSS"].split()[0]), "descriptors": len(os.listdir(f"/proc/{self.server.pid}/fd")),
                "mounts": len(self.server.mounts()), "groups": len(self.server.boxes()), "subvolumes": len(listed.stdout.splitlines()),
                "rows": sum(self.rows().values()), "spool files": sum(path.is_file() for path in (self.server.data / "spool").rglob("*")),
                "files in tmp": len(list((self.server.data / "tmp").glob("*")))}

    def end(self, unmount):
        self.server.abandon()
        until(lambda: unmount(self.place), "the file system to be free", 60)
