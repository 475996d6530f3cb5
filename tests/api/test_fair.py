# SPDX-License-Identifier: Apache-2.0
"""One key, however much it asks for, does not keep another from working, nor its own sandbox from being ended."""
import contextlib
import json
import pathlib
import select
import subprocess

import pytest
import server as servers
from archives import member, tar_of
from client import Client, Raw, check_error, query, until

MANY = 12  # more than the server has threads for
SLOW = {"resources": {"cpu": "10m"}, "timeout": {"idle": "1h"}}


@pytest.fixture(scope="module")
def fair(tmp_path_factory):
    """A server with few threads, so that little is needed to ask for more than all of them."""
    server = servers.Server(tmp_path_factory.mktemp("fair") / "data", options=["--slow-workers", "8"])
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(scope="module")
def other(fair):
    """Somebody else, with a key of their own."""
    made = subprocess.run([servers.BURROW, "key", "create", "--data", fair.data, "--json"], capture_output=True, text=True, check=True)
    return Client(fair.port, json.loads(made.stdout)["key"])


@pytest.fixture
def culprit(fair):
    sandbox = fair.client.create(**SLOW)
    yield sandbox
    sandbox.delete()


@pytest.fixture(scope="module")
def archive():
    """Little to send and much to unpack: minutes in a sandbox with a hundredth of a processor."""
    return tar_of(*(member(f"f{n}") for n in range(8000)))


@pytest.fixture
def send(fair):
    """Sends a request of the culprit's and leaves its answer for later."""
    sent = []

    def one(method, path, body=b""):
        raw = Raw(fair.port)
        sent.append(raw)
        raw.send(b"%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
                 % (method.encode(), path.encode(), fair.key.encode(), len(body), body))
        return raw
    yield one
    for raw in sent:
        raw.close()


def upload(send, sandbox, archive):
    return send("POST", f"/fs/upload/{sandbox.id}?path=in&format=tar.gz", archive)


def answered(raws):
    """How many have been answered, or cut off."""
    return len(select.select([raw.socket for raw in raws], [], [], 0)[0])


def unpacking(server):
    """How many archives are being unpacked: each has a process."""
    tasks = pathlib.Path(f"/proc/{server.pid}/task").glob("*/children")
    children = [pid for path in tasks for pid in path.read_text().split()]
    return sum(name_of(pid) == "burrow-archive" for pid in children)


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def works(client):
    """All that somebody else wants."""
    sandbox = client.create()
    assert sandbox.output("echo hello") == "hello\n"
    assert sandbox.read("/etc/hostname").status == 200
    assert sandbox.delete().status == 200


def test_uploads_into_a_slow_sandbox_keep_nobody_else_waiting(fair, other, culprit, archive, send):
    uploads = [upload(send, culprit, archive) for _ in range(MANY)]
    until(lambda: unpacking(fair) >= 2, "two to be unpacked")
    works(other)
    works(fair.client)  # another sandbox of the same key
    assert culprit.get()["sandboxId"] == culprit.id
    assert culprit.events()
    assert answered(uploads) == 0
    assert unpacking(fair) == 2, "one sandbox has more than a quarter of the threads"
    # What ends it does not wait for what it does, and ends that too.
    assert culprit.delete().status == 200
    for one in uploads:
        assert one.answer("POST").status in (404, 409, 410)
    until(lambda: unpacking(fair) == 0, "the unpacking to end")


def test_file_work_ends_when_its_client_has_gone(fair, culprit, archive, send):
    uploads = [upload(send, culprit, archive) for _ in range(MANY)]
    until(lambda: unpacking(fair) >= 2, "two to be unpacked")
    for one in uploads:
        one.close()
    until(lambda: unpacking(fair) == 0, "the unpacking to end")
    assert culprit.status()["status"] in ("idle", "running")


def test_work_on_files_that_takes_too_long_is_given_up(own_server):
    archive = tar_of(*(member(f"f{n}") for n in range(60000)))  # with all that PID 1 is lent, some seconds
    server = own_server(options=["--file-timeout", "1s"])
    sandbox = server.client.create(**SLOW)
    raw = Raw(server.port)
    raw.send(b"POST /fs/upload/%s?path=in&format=tar.gz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
             % (sandbox.id.encode(), server.key.encode(), len(archive), archive))
    check_error(raw.answer("POST"), 504, "TIMEOUT", "took longer than 1 second")
    assert sandbox.status()["status"] == "idle"
    sandbox.delete()
    server.end()


def test_reads_from_a_slow_sandbox_keep_nobody_else_waiting(fair, other, culprit, send):
    culprit.sh("truncate -s 1000000000 large")
    reads = [send("GET", f"/fs/{culprit.id}?{query(path='large')}") for _ in range(MANY)]
    works(other)
    assert answered(reads) == 0
    assert culprit.delete().status == 200


def smallest_cpu(server):
    """Of the limits of all its boxes, as the kernel has them."""
    found = []
    for path in (path for group in server.groups() for name in ("cpu.max", "cpu.cfs_quota_us") for path in pathlib.Path(group).glob(f"*/{name}")):
        with contextlib.suppress(OSError):  # a box that ends
            found.append(path.read_text().split()[0])
    return min(int(limit) for limit in found if limit not in ("max", "-1"))


def test_files_are_read_while_guests_want_all_of_a_small_cpu(fair, culprit):
    """PID 1 comes before them, and has a little more for as long as it takes."""
    culprit.output("true")
    before = smallest_cpu(fair)
    culprit.execute("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do (while :; do :; done) & done; wait")
    for _ in range(10):
        assert culprit.read("/etc/hostname").status == 200
    until(lambda: smallest_cpu(fair) == before, "the limit to be what it was")


def kept(server):
    """Bytes on the disk, of unnamed files that the server has open."""
    total = 0
    for entry in pathlib.Path(f"/proc/{server.pid}/fd").iterdir():
        try:
            if str(entry.readlink()).startswith(f"{server.data}/tmp/"):
                total += entry.stat().st_blocks * 512
        except OSError:
            pass
    return total


def test_a_hole_read_slowly_takes_no_room(fair, send):
    sandbox = fair.client.create(resources={"disk": "64Mi"})
    sandbox.output("truncate -s 300000000 hole; echo end >>hole")
    reads = [send("GET", f"/fs/{sandbox.id}?{query(path='hole')}") for _ in range(4)]
    for one in reads:
        response = one.response()
        assert response.status == 200 and int(response.headers["content-length"]) == 300000004
    assert kept(fair) < 1 << 20
    last = reads[0].reader.read1  # what is sent is what is in the file
    seen, tail = 0, b""
    while seen < 300000004:
        piece = last(1 << 20)
        assert piece, "the answer ended too early"
        seen, tail = seen + len(piece), piece
    assert tail.endswith(b"\0\0end\n")
    sandbox.delete()


def test_slow_readers_have_so_much_room_and_no_more(own_server):
    server = own_server(options=["--temporary-limit", "24Mi", "--temporary-limit-per-key", "16Mi"])
    sandbox = server.client.create()
    sandbox.output("head -c 12000000 /dev/urandom >file; head -c 20000000 /dev/urandom >large")
    path = f"/fs/{sandbox.id}?{query(path='file')}"
    slow = Raw(server.port)
    slow.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n\r\n".encode())
    assert slow.response().status == 200
    check_error(server.client.get(path), 429, "FILE_LIMIT", "try again when some have been read or written")
    assert server.client.create().delete().status == 200
    slow.close()  # its room is free again
    until(lambda: server.client.get(path).status == 200, "room to be free")
    check_error(sandbox.read("large"), 413, "TOO_LARGE", "16Mi")
    sandbox.delete()
    server.end()


def test_differences_of_many_files_are_looked_for_one_at_a_time(fair, other, send):
    sandbox = fair.client.create()
    sandbox.output("mkdir d && cd d && seq 1 30000 | xargs touch")
    asked = [send("GET", f"/api/v1/sandboxes/{sandbox.id}/diff?from=base&to=now&limit=1") for _ in range(MANY)]
    works(other)
    assert answered(asked) < MANY / 2
    answer = asked[0].answer()
    assert answer.status == 200 and answer.data["added"] > 30000, str(answer)
    assert sandbox.delete().status == 200
