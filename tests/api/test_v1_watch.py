# SPDX-License-Identifier: Apache-2.0
"""Watching directories of sandboxes: what comes, changes, moves and goes, as records."""
import time

import pytest

from client import PATIENCE, Raw, check_problem, query, until
from records import NDJSON, SSE, Records

TOP = "/api/v1"
MISSING = "sbx_" + "0" * 26


def watch_path(sandbox, **fields):
    return f"{TOP}/sandboxes/{sandbox.id}/files/watch?{query(**fields)}"


class Watch(Records):
    """The first record has come when this returns: nothing that happens from now on is missed."""

    def __init__(self, api, sandbox, accept=SSE, **fields):
        self.deadline = time.monotonic() + PATIENCE
        super().__init__(api, "GET", watch_path(sandbox, **fields), accept=accept)
        assert self.status == 200, self.response.read()
        assert self.next().event == "started"

    def line(self):
        assert time.monotonic() < self.deadline, f"nothing more behind {self.seen}"  # keep-alives come all the time
        return super().line()

    def until(self, event, **data):
        """The next record of this kind and with these members."""
        self.deadline = time.monotonic() + PATIENCE
        while True:
            record = self.next()
            assert record, f"no {event} {data} in {self.seen}"
            if record.event == event and data.items() <= record.data.items():
                return record

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.raw.close()


def run(api, sandbox, script):
    answer = api.post(f"{TOP}/sandboxes/{sandbox.id}/executions", {"script": script})
    assert answer.status == 201, str(answer)
    ended = api.get(f"{TOP}/executions/{answer.json['id']}?waitMs=60s").json
    assert ended.get("exitCode") == 0, ended


@pytest.mark.parametrize("accept", [SSE, NDJSON])
def test_what_happens_in_a_directory_is_told(api, sandbox, accept):
    run(api, sandbox, "mkdir -p /tmp/w/sub && echo 1 >/tmp/w/old")
    with Watch(api, sandbox, accept, path="/tmp/w") as watch:
        assert watch.response.headers["Content-Type"].startswith(accept)
        run(api, sandbox, "cd /tmp/w && echo 1 >new && echo 2 >>old && chmod 600 old && mv old older && rm new && mkdir dir && echo x >sub/unseen")
        assert watch.until("created").data == {"path": "new", "kind": "file"}
        watch.until("changed", path="old")
        assert watch.until("changed", path="old", attributes=True)
        assert watch.until("moved").data == {"from": "old", "to": "older", "kind": "file"}
        watch.until("removed", path="new")
        watch.until("created", path="dir", kind="directory")
        api.delete(f"{TOP}/sandboxes/{sandbox.id}")
        last = watch.until("ended")
        assert last.data["reason"] == "ended" and watch.next() is None
        assert not [record for record in watch.seen if "sub" in str(record.data)]


def test_directories_below_are_followed_also_when_they_move(api, sandbox):
    with Watch(api, sandbox, path="/tmp", recursive="true") as watch:
        run(api, sandbox, "cd /tmp && mkdir -p a/b && echo 1 >a/b/c")
        watch.until("created", path="a", kind="directory")
        watch.until("created", path="a/b/c")
        run(api, sandbox, "cd /tmp && mv a z && echo 2 >z/b/d")
        watch.until("moved", to="z")
        watch.until("created", path="z/b/d")
    with Watch(api, sandbox, path="/tmp/z", recursive="true") as watch:
        run(api, sandbox, "rm -r /tmp/z")
        assert watch.until("ended").data["reason"] == "not_found" and watch.next() is None


def test_names_that_are_no_text_and_other_users(api, sandbox):
    with Watch(api, sandbox, path="/tmp") as watch:
        run(api, sandbox, "cd /tmp && : >$(printf 'a\\377')")
        assert watch.until("created").data["pathBase64"] == "Yf8="
    run(api, sandbox, "mkdir -m 700 /tmp/private")
    refused = api.get(watch_path(sandbox, path="/tmp/private", user="nobody"))
    check_problem(refused, 403, "forbidden", field="path")


def test_files_that_are_written_through_the_api_are_told_too(api, sandbox):
    with Watch(api, sandbox) as watch:  # where commands start
        sandbox.write_all({"hello.txt": b"hello"})
        watch.until("created", path="hello.txt")


def test_watching_keeps_no_sandbox_from_becoming_idle_and_leaves_nothing(api, sandbox):
    watches = [Watch(api, sandbox, path="/tmp") for _ in range(8)]
    assert sandbox.status()["status"] == "idle"
    check_problem(api.get(watch_path(sandbox, path="/tmp")), 429, "limit_reached", field="path")
    for watch in watches:
        watch.raw.close()

    def has_room():
        raw = Raw(api.port, api.host)
        raw.send(f"GET {watch_path(sandbox, path='/tmp')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n\r\n".encode())
        status = raw.response().status
        raw.close()
        return status == 200
    until(has_room, "room for one more")


def test_what_cannot_be_watched_is_refused(api, sandbox):
    check_problem(api.get(watch_path(sandbox, path="/nowhere")), 404, "not_found", field="path")
    check_problem(api.get(watch_path(sandbox, path="/etc/passwd")), 409, "conflict", field="path")
    assert api.get(watch_path(sandbox, path="/proc/1")).status in (400, 403, 404)
    check_problem(api.get(f"{TOP}/sandboxes/{MISSING}/files/watch?path=/tmp"), 404, "not_found")
    check_problem(api.get(watch_path(sandbox, path="/tmp", depth="3")), 400, "unknown_field", field="depth")
    assert api.get(watch_path(sandbox, path="/tmp"), key=None).status == 401
