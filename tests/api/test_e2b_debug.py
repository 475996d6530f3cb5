# SPDX-License-Identifier: Apache-2.0
"""E2B's debug mode: one sandbox on loopback without a token, by a setting alone."""
import contextlib
import os
import pathlib
import re
import subprocess

import pytest

import e2b as protocol
import server as servers

FIXED = {"E2b-Sandbox-Id": "debug_sandbox_id", "E2b-Sandbox-Port": "49983"}  # what newer clients send


class Debug(protocol.Sandbox):
    """What a client in debug mode has: no id, no token."""
    def __init__(self, port, headers=None):
        super().__init__(protocol.E2b(port, None), {"sandboxID": "debug_sandbox_id", "envdAccessToken": None})
        self.sent = headers or {}

    @property
    def headers(self):
        return self.sent


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("debug") / "data", environment={"BURROW_E2B_RUNTIME": "base:latest"},
                            options=["--e2b-debug", "127.0.0.1:0,127.0.0.1:0"])
    server.start()
    yield server
    server.end()


def doors(machine):
    return [int(port) for port in re.findall(r"debug mode.*127\.0\.0\.1:(\d+)", machine.log)]


@pytest.fixture
def debug(machine):
    return Debug(doors(machine)[0])


@pytest.mark.parametrize("headers", [None, FIXED], ids=["2.5.0", "newer"])
def test_clients_without_a_token_share_one_sandbox(machine, debug, headers):
    client = Debug(doors(machine)[0], headers)
    assert client.http("GET", "/health").status == 204
    done = client.run("pwd; id -u; echo kept > note")
    assert done.out["stdout"] == b"/home/user\n1000\n" and done.end["exitCode"] == 0
    assert client.http("GET", "/files?path=note").body == b"kept\n"
    upload = client.http("POST", "/files?path=/home/user/up", headers={"Content-Type": "application/octet-stream"}, body=b"x" * 300000)
    assert upload.status == 200, str(upload)
    assert Debug(doors(machine)[1]).run("wc -c < up").out["stdout"] == b"300000\n"
    names = [item.get("name") for item in machine.client.get("/api/v1/sandboxes").json["items"]]
    assert names == ["e2b-debug"]


def test_code_runs_there(machine, debug):
    made = Debug(doors(machine)[1]).http("POST", "/contexts", json={"language": "bash"})
    assert made.status == 200, str(made)
    ran = debug.http("POST", "/execute", json={"code": "echo $((40+2))", "context_id": made.json["id"]})
    assert ran.status == 200 and b"42" in ran.body, str(ran)


def test_it_is_made_again_when_it_is_gone(machine, debug):
    debug.run("echo old > /home/user/old")
    machine.client.delete("/api/v1/sandboxes/" + machine.client.get("/api/v1/sandboxes").json["items"][0]["id"])
    assert debug.run("ls /home/user/old").end["exitCode"] == 2


def test_a_restart_finds_the_same_one(machine):
    Debug(doors(machine)[0]).run("echo same > mark")
    machine.stop()
    machine.start()
    assert Debug(doors(machine)[0]).run("cat mark").out["stdout"] == b"same\n"


@pytest.mark.parametrize("method, path", [
    ("GET", "/sandboxes"), ("POST", "/v2/sandboxes"), ("GET", "/api/v1/sandboxes"), ("POST", "/api/v1/sandboxes"), ("GET", "/metrics/x"),
    ("POST", "/mcp"), ("GET", "/templates"), ("GET", "/sandbox/x"), ("GET", "/api/v1/keys")])
def test_nothing_else_is_to_be_had_there(machine, method, path):
    client = protocol.E2b(doors(machine)[0], machine.key)
    for headers in {}, {"Authorization": f"Bearer {machine.key}"}:
        assert client.call(method, path, headers=headers, may_fail=True).status in (404, 405)


def test_other_sandboxes_are_not_reached_from_there(machine):
    e2b = protocol.E2b(machine.port, machine.key)
    other = e2b.create(timeout=600)
    try:
        other.run("echo secret > /home/user/secret")
        door = doors(machine)[0]
        for headers in other.headers, {**other.headers, "X-Access-Token": None}, {"X-Access-Token": other.token}:
            client = Debug(door, {k: v for k, v in headers.items() if v})
            assert client.http("GET", "/files?path=/home/user/secret").status == 404
    finally:
        other.kill()


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Host": "evil.example:49983"}, {"Host": "localhost.evil.example"},
                                     {"Host": "127.0.0.1.evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"},
                                     {"Sec-Fetch-Site": "cross-site"}])
def test_web_pages_are_refused(machine, debug, headers):
    answer = debug.http("POST", "/files?path=/home/user/planted", headers={"Content-Type": "application/octet-stream", **headers}, body=b"x")
    assert answer.status == 403, str(answer)
    assert debug.http("GET", "/files?path=/home/user/planted").status == 404


@pytest.mark.parametrize("host", ["localhost:49983", "127.0.0.1:49983", "localhost:49999", "[::1]:49983", "49983-debug_sandbox_id.localhost"])
@pytest.mark.parametrize("headers", [{}, FIXED], ids=["bare", "fixed"])
def test_no_host_opens_a_sandbox_at_the_other_listeners(machine, debug, host, headers):
    debug.run("echo private > /home/user/private")
    client = Debug(machine.port, {**headers, "Host": host})
    answer = client.http("GET", "/files?path=/home/user/private")
    assert answer.status in (401, 502) and b"private\n" not in answer.body, str(answer)
    own = machine.client.get("/api/v1/sandboxes").json["items"][0]["id"]
    named = Debug(machine.port, {"E2b-Sandbox-Id": own.removeprefix("sbx_"), "E2b-Sandbox-Port": "49983", "Host": host})
    assert named.http("GET", "/files?path=/home/user/private").status in (401, 502)
    start = client.unary("process.Process/List", may_fail=True)
    assert start.status in (401, 404, 502), str(start)


def listened(pid):
    """Ports that the process itself listens on, as the kernel knows them."""
    held = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            held.add(os.readlink(entry))
    rows = [line.split() for name in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]]
    return {int(row[1].rsplit(":", 1)[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in held}


def test_without_the_setting_nothing_listens(machine, server):
    assert set(doors(machine)) <= listened(machine.pid)
    ports = listened(server.pid)
    assert server.port in ports and not ports & {49983, 49999}
    assert "debug mode" not in server.log


@pytest.mark.parametrize("address", ["0.0.0.0:49983", ":49983", "192.0.2.1:49983", "[::]:49983", "yes", "127.0.0.1:70000", "127.0.0.1:0,0.0.0.0:0"])
def test_only_loopback_is_taken(tmp_path, address):
    done = subprocess.run([servers.BURROW, "serve", "--listen", "127.0.0.1:0", "--data", tmp_path / "data", "--e2b-debug", address],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "loopback" in done.stderr, done.stderr
    assert not (tmp_path / "data").exists()
