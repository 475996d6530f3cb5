# SPDX-License-Identifier: Apache-2.0
"""Whoever has no key: what it sends costs nobody anything, and what ends things works whatever it does."""
import json
import pathlib
import signal
import socket
import subprocess

import server as servers
from client import PATIENCE, Client, Raw, check_error, until

OPEN_ROUTE = "/cli/validate/apt-dependencies"
MIB = 1 << 20


def head(method, path, length=None, key=None, more=""):
    lines = [f"{method} {path} HTTP/1.1", "Host: x"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + f"\r\n{more}\r\n").encode()


def connect(server):
    """Without waiting for it."""
    connection = socket.socket()
    connection.setblocking(False)
    connection.connect_ex(("127.0.0.1", server.port))
    return connection


def create_all(server, made):
    """Sandboxes until one is refused; all of them, and the refusal."""
    while (answer := server.client.post("/sandbox", {}, may_fail=True)).status == 201:
        made.append(answer.data["sandboxId"])
    return made, answer


def memory_kib(server, name):
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0])


def resident_kib(server):
    return memory_kib(server, "VmRSS")


def peak_kib(server):
    return memory_kib(server, "VmHWM")


# ---- bodies ----

def test_bodies_that_were_announced_keep_nobody_out(server, api, shared):
    """664 bytes, which took all memory for bodies until they were given up."""
    crowd = [Raw(server.port).send(head("POST", OPEN_ROUTE, 64 * MIB)) for _ in range(8)]
    crowd += [Raw(server.port).send(head("POST", "/sandbox", 64 * MIB, key="wrong" * 8)) for _ in range(8)]
    try:
        for _ in range(10):
            assert api.post(f"/sandbox/{shared.id}/execute", {"command": ["true"]}).status in (200, 409)
        assert [raw.answer().status for raw in crowd] == [413] * 8 + [401] * 8
    finally:
        for raw in crowd:
            raw.close()


def test_a_key_is_checked_before_the_body_comes(server, api):
    for key, status in ((None, 401), ("wrong" * 8, 401), ("x", 401)):
        for _ in range(2):  # asked of the database, and remembered
            with Raw(server.port) as raw:
                raw.send(head("POST", "/sandbox", 1000, key=key, more="Expect: 100-continue\r\n"))
                assert raw.answer().status == status
    body = json.dumps({"name": "x" * 20000}).encode()
    for _ in range(2):
        with Raw(server.port) as raw:
            raw.send(head("POST", "/stream", len(body), key=server.key, more="Expect: 100-continue\r\n"))
            assert raw.reader.read1(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
            raw.send(body)
            assert raw.answer().status == 400  # the name is too long: it was read


def test_a_body_in_pieces_waits_for_its_key_and_is_whole(server, api):
    """Nothing is read while the key is looked up, and nothing is lost; the connection goes on."""
    body = json.dumps({"name": "pieces", "metadata": {"x": "y" * 50000}}).encode()
    with Raw(server.port) as raw:
        for _ in range(3):
            server.process.send_signal(signal.SIGHUP)  # forgets what it knows of keys
            raw.send(head("POST", "/stream", len(body), key=server.key) + body[:7])
            for start in range(7, len(body), 9001):
                raw.send(body[start:start + 9001])
            answer = raw.answer()
            assert answer.status in (200, 201) and answer.json["id"], str(answer)


def test_open_routes_take_little(server, api):
    small, large = {"packages": ["a" * 60000]}, {"packages": ["a" * 70000]}
    assert api.post(OPEN_ROUTE, small, key=None).status in (200, 400)
    check_error(api.post(OPEN_ROUTE, large, key=None), 413, "TOO_LARGE")
    with Raw(server.port) as raw:
        raw.send(head("POST", OPEN_ROUTE, more="Transfer-Encoding: chunked\r\n"))
        for _ in range(5):
            raw.send_if_open(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
        assert raw.answer().status == 413


def test_memory_for_documents_is_bounded_and_comes_back(own_server):
    server = own_server(options=["--parked-one-shot", "0", "--parked-kept", "0"])
    body = b'{"packages":[' + b",".join([b'"a"'] * (15 * MIB // 4)) + b"]}"
    before = resident_kib(server)
    for key, path, sent, most_mib, refusals in ((None, OPEN_ROUTE, 100000, 64, {413}), (server.key, "/stream", None, 640, {413, 429})):
        crowd = []
        for _ in range(8):
            crowd.append(Raw(server.port))
            crowd[-1].send_if_open(head("POST", path, len(body), key=key) + body[:sent])
        statuses = {raw.answer().status for raw in crowd}
        assert statuses <= refusals, statuses
        for raw in crowd:
            raw.close()
        assert peak_kib(server) - before < most_mib * 1024
    until(lambda: resident_kib(server) - before < 32 * 1024, "the memory to come back")
    server.end()


# ---- connections ----

def test_a_crowd_of_connections_keeps_no_key_holder_out(own_server):
    server = own_server(options=["--max-connections", "64", "--parked-one-shot", "0", "--parked-kept", "0"])
    crowd = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(300)]
    for connection in crowd[::2]:
        connection.sendall(b"GET /sandbox HTTP/1.1\r\nHo")
    sandbox = server.client.create()
    assert sandbox.status()["status"] == "idle"
    for connection in crowd:
        connection.close()
    server.end()


def test_a_crowd_with_one_key_keeps_no_other_out(own_server):
    """Followers and polls are work under way, and wait for as long as they like: past all connections, whoever has most loses the oldest."""
    server = own_server(options=["--max-connections", "64", "--parked-one-shot", "0", "--parked-kept", "0"])
    made = subprocess.run([servers.BURROW, "key", "create", "--data", server.data, "--json"], capture_output=True, text=True, check=True)
    other = Client(server.port, json.loads(made.stdout)["key"])
    stream = server.client.new_stream()
    crowd = [Raw(server.port).send(head("GET", f"/stream/{stream}", key=server.key)) for _ in range(100)]
    crowd += [Raw(server.port).send(head("GET", f"/stream/{stream}")) for _ in range(100)]
    try:
        for _ in range(5):
            assert other.get("/sandbox").status == 200
        assert server.client.post(f"/stream/{stream}/complete").status == 200
    finally:
        for raw in crowd:
            raw.close()
    server.end()


def test_without_descriptors_it_accepts_and_ends_sandboxes(own_server):
    server = own_server(wrapper=["prlimit", "--nofile=256:256"], options=["--parked-one-shot", "0", "--parked-kept", "0"])
    made = []
    crowd = [connect(server) for _ in range(400)]  # leaves some to others, within a moment
    until(lambda: create_all(server, made)[0], "a sandbox beside the crowd")
    for connection in crowd:
        connection.close()
    _, refused = until(lambda: len((filled := create_all(server, made))[0]) >= 5 and filled, "sandboxes without the crowd")
    assert refused.status == 429 and "open files" in refused.json["message"], str(refused)
    crowd = [connect(server) for _ in range(400)]
    assert server.client.delete(f"/sandbox/{made.pop()}").status == 200
    for connection in crowd:
        connection.close()
    for id in made:
        assert server.client.delete(f"/sandbox/{id}").status == 200
    until(lambda: server.client.post("/sandbox", {}).status == 201, "a sandbox to be made again")
    server.end()


# ---- the end ----

def test_it_stops_with_a_word_to_everybody(own_server):
    """A request under way is finished; a follower is let go at once; whoever asks meanwhile is told 503."""
    server = own_server()
    sandbox = server.client.create()
    started = sandbox.execute("sh", "-c", "echo begun; sleep 600")
    url = server.client.execution(started["executionId"])["stdoutStreamUrl"].removeprefix(server.client.url)
    stream = server.client.new_stream()
    with Raw(server.port) as follower, Raw(server.port) as upload, Raw(server.port) as kept:
        follower.send(head("GET", url))
        following = follower.response()
        assert following.read1(100) == b"begun\n"
        upload.send(head("PUT", f"/stream/{stream}", 10, key=server.key) + b"12345")
        assert kept.send(head("GET", "/health", key=server.key)).answer().status == 200
        server.process.send_signal(signal.SIGTERM)
        assert follower.all() == b"\r\n"  # of the chunk, and no last one: the stream has not ended
        with Raw(server.port) as fresh:
            answer = fresh.send(head("GET", "/health")).answer()
        assert (answer.status, answer.headers["retry-after"], answer.headers["connection"]) == (503, "1", "close")
        answer = kept.send(head("POST", "/sandbox", 2, key=server.key) + b"{}").answer()
        assert (answer.status, answer.headers["retry-after"], answer.headers["connection"]) == (503, "1", "close")
        upload.send(b"67890")
        assert upload.answer().status == 200
    assert server.process.wait(PATIENCE) == 0
    server.start()
    assert server.client.read(f"/stream/{stream}") == b"1234567890"
    with Raw(server.port) as follower:
        assert follower.send(head("GET", url + "?offset=6")).response().status == 200
    server.end()


# ---- what is told ----

def test_health_tells_numbers_to_keys_alone(server, api):
    for key in (None, "wrong" * 8):
        told = api.get("/health", key=key)
        assert told.status == 200 and told.json["status"] in ("ok", "degraded")
        assert not {"sandboxes", "parked"} & set(told.json), str(told)
    told = api.get("/health").json
    assert told["sandboxes"] >= 0 and told["parked"] >= 0


def test_health_counts_no_runs_for_strangers(api, new):
    """Clients of one protocol look for these members; without a key there is nothing in them."""
    sandbox = new()
    sandbox.execute("sleep", "60")
    until(lambda: api.get("/health").json["sandbox"]["active_runs"] > 0, "a command to run")
    told = api.get("/health", key=None).json["sandbox"]
    assert (told["queue_depth"], told["active_runs"], told["tenant_budget"]["tenant_count"]) == (0, 0, 0), told
