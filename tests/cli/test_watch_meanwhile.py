# SPDX-License-Identifier: Apache-2.0
"""burrow watch against a server that says what happens when: what changes while both sides are brought in step is lost on neither."""
import hashlib
import io
import json
import queue
import signal
import subprocess
import tarfile
import time
import urllib.parse

import pytest

from test_commands import BURROW, PATIENCE, http, plain_environment
from test_hostile_server import Hostile
from client import until


class Sandbox:
    """One directory with files in it, and what a test does when it is asked for something."""

    def __init__(self, here, **files):
        self.here, self.files = here, {name: text.encode() for name, text in files.items()}
        self.events, self.asked, self.streams = queue.Queue(), [], []
        self.on_archive = self.on_put = lambda *about: None

    def tell(self, event, **data):
        self.events.put(json.dumps({"event": event, "data": data}).encode() + b"\n")

    def count(self, what):
        return sum(what == asked for asked in self.asked)

    def records(self):
        yield b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n"
        yield b'{"event": "started", "data": {}}\n'
        while True:
            yield self.events.get()

    def archive(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for name, data in self.files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return http(out.getvalue(), type="application/x-tar")

    def told(self, name):
        data = self.files[name]
        return http(json.dumps({"path": name, "kind": "file", "mode": "0644", "sizeBytes": len(data), "etag": hashlib.sha256(data).hexdigest()}).encode())

    def __call__(self, head):
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        route, _, query = target.partition("?")
        what, path = route.rsplit("/", 1)[1], urllib.parse.parse_qs(query).get("path", [""])[0]
        name = path.removeprefix("/w/")
        self.asked.append(f"{method} {what}")
        if what == "limits":
            return http(b'{"fileBytes": 1000000000}')
        if what == "watch":
            return self.streams.pop(0) if self.streams else self.records()
        if what == "archive":
            return self.on_archive() or self.archive()
        if method == "POST":
            return http(b"{}")
        if method == "PUT":
            self.files[name] = (self.here / name).read_bytes()
            answer = self.told(name)
            self.on_put(name)
            return answer
        if name not in self.files:
            return http(b'{"code": "not_found", "detail": "there is no such file"}', status="404 Not Found", type="application/problem+json")
        if method == "DELETE":
            del self.files[name]
            return http(b"{}")
        return self.told(name) if what == "stat" else http(self.files[name], type="application/octet-stream")


@pytest.fixture
def start(tmp_path):
    here, made = tmp_path / "here", []
    here.mkdir()

    def start(sandbox, *words):
        made.append(Hostile(sandbox))
        with (tmp_path / "log").open("wb") as log:
            made.append(subprocess.Popen([BURROW, "watch", here, "box:/w", *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                         env=plain_environment(tmp_path, BURROW_URL=made[0].url)))
        return made[1]
    start.here, start.log = here, (tmp_path / "log").read_text
    yield start
    made[1].kill()
    made[1].wait()
    made[0].socket.close()


def end(process):
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0


def test_what_changes_here_meanwhile_is_not_written_over(start):
    here = start.here
    (here / "z").write_text("1")
    sandbox = Sandbox(here, z="1")
    process = start(sandbox)
    until(lambda: sandbox.count("GET archive") == 1, "both to be compared")

    def change_there():
        sandbox.files["z"] = b"theirs"
        (here / "a").write_text("new")  # goes there before z comes here

    def change_here(name):
        if name == "a":
            (here / "z").write_text("mine")
    sandbox.on_archive, sandbox.on_put = change_there, change_here
    sandbox.tell("created", path="d", kind="directory")
    until(lambda: sandbox.files["z"] == b"mine" or "← z" in start.log(), "z to be brought in step")
    assert (here / "z").read_text() == "mine" and (here / "z.sandbox-conflict").read_text() == "theirs", start.log()
    end(process)


def test_what_changes_there_meanwhile_is_not_written_over(start):
    here = start.here
    for name in ("a", "z"):
        (here / name).write_text("1")
    sandbox = Sandbox(here, a="1", z="1")
    process = start(sandbox)
    until(lambda: sandbox.count("GET archive") == 1, "both to be compared")

    def change_there(name):
        if name == "a":
            sandbox.files["z"] = b"theirs"
    sandbox.on_put = change_there
    for name in ("a", "z"):
        (here / name).write_text("mine")
    until(lambda: "→ z" in start.log(), "z to be brought in step")
    assert (here / "z.sandbox-conflict").exists() and (here / "z.sandbox-conflict").read_text() == "theirs", start.log()
    assert sandbox.files["z"] == b"mine" and (here / "z").read_text() == "mine"
    end(process)


def test_what_is_left_out_is_not_looked_into(start):
    """However deep it is, and whatever happens in it there."""
    here = start.here
    (here / "/".join(["deep"] + ["d"] * 600)).mkdir(parents=True)
    sandbox = Sandbox(here, f="1")
    process = start(sandbox, "-i", "deep", "-i", "modules")
    until(lambda: process.poll() is not None or (here / "f").exists(), "what is there to come")
    for number in range(3):
        sandbox.tell("created", path=f"modules/{number}", kind="directory")
        sandbox.tell("moved", **{"from": f"modules/{number}", "to": f"deep/{number}", "kind": "directory"})
    sandbox.files["g"] = b"2"
    sandbox.tell("created", path="g", kind="file")
    until(lambda: process.poll() is not None or (here / "g").exists(), "what is beside it to come")
    assert process.poll() is None, start.log()
    assert sandbox.count("GET archive") == 1
    end(process)


def test_a_server_that_cannot_now_is_asked_again_after_a_while(start):
    sandbox, at = Sandbox(start.here), []

    def refuse():
        at.append(time.monotonic())
        return http(b'{"code": "restarting", "detail": "not now"}', status="503 Service Unavailable", type="application/problem+json") if len(at) < 4 else None
    sandbox.on_archive = refuse
    process = start(sandbox)
    until(lambda: len(at) == 4, "it to be asked again")
    assert at[3] - at[0] >= 2.9
    end(process)


def test_a_stream_that_ends_at_once_is_opened_again(start):
    sandbox = Sandbox(start.here, f="1")
    sandbox.streams.append(http(b"", type="application/x-ndjson"))
    process = start(sandbox)
    until(lambda: process.poll() is not None or (start.here / "f").exists(), "what is there to come")
    assert process.poll() is None and "the server ended the connection; trying again" in start.log(), start.log()
    end(process)


def test_what_takes_the_place_of_a_file_counts_once(start):
    sandbox = Sandbox(start.here, f="1" * 600)
    process = start(sandbox, "--limit", "1000")
    for text in ("2" * 600, "3" * 900, "4" * 1001):
        until(lambda: process.poll() is not None or (start.here / "f").exists() and (start.here / "f").read_bytes() == sandbox.files["f"], "it to come")
        assert process.poll() is None, start.log()
        sandbox.files["f"] = text.encode()
        sandbox.tell("changed", path="f", kind="file")
    assert process.wait(PATIENCE) == 7 and "--limit" in start.log()
