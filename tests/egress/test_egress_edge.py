# SPDX-License-Identifier: Apache-2.0
"""Services of the host, secrets at the edge, and what happens when a part of it dies."""
import os
import signal
import subprocess

import pytest
from conftest import make, until

SHARED, LONE = "93.184.220.10", "93.184.220.11"
VALUE = "Bearer top-secret-value-1234567890"


# ---- the host ----

@pytest.fixture(scope="module")
def service(world):
    """On the host's loopback, as a model server on a laptop would be."""
    code = "import socket\ns=socket.create_server(('127.0.0.1',11434))\nprint('ready',flush=True)\nwhile True:\n c,_=s.accept()\n c.sendall(b'hello\\n')\n c.sendall(c.recv(100))\n c.close()"
    process = subprocess.Popen(world.host.command("/usr/bin/python3", "-c", code), stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()


def test_a_service_of_the_host_is_closed_unless_an_operator_opens_it(world, box, service):
    box.allow("host:11434", "*", default="allow")
    reply = box.ask("dns", "host.burrow")
    assert (reply["code"], reply["addresses"]) == (5, [])
    gateway = box.start("sh", "-c", "sed -n 's/nameserver //p' /etc/resolv.conf").communicate()[0].strip()
    assert box.ask("talk", gateway, 11434, "x").startswith("error")
    refusal = world.refusals(box, kind="host", port=11434)
    assert refusal["tier"] == "closed" and "only the operator" in refusal["remedy"]


@pytest.mark.parametrize("name", ["host.burrow", "host.docker.internal", "HOST.burrow"])
def test_an_opened_service_of_the_host_is_reached_by_every_alias(world, box, service, name):
    box.allow("always allow localhost:11434")
    address = box.ask("address_of", name)
    assert box.ask("talk", address, 11434, "hi") == "hello\nhi"
    assert box.ask("talk", address, 22, "hi").startswith("error")
    assert world.refusals(box, kind="host", port=22)


# ---- secrets ----

def with_secret(world, box, placeholder="", rules=("secret.example", "allowed.example", "lone.example")):
    box.allow(*rules, secrets=[("secret.example", "Authorization", VALUE, placeholder)])
    trusted = world.data / "trusted.crt"
    world.tell(f"certificate {trusted}")
    return str(trusted)


def test_the_header_is_added_for_its_host_and_for_no_other(world, box):
    trusted = with_secret(world, box)
    code, body = box.curl("https://secret.example/api", "--cacert", trusted, "-H", "Authorization: mine", "-H", "X-Other: kept")
    assert (code, body) == (200, "443 secret.example /api 0\n")
    seen = world.log(what="request", sni="secret.example")[-1]["headers"]
    assert seen["authorization"] == VALUE and seen["x-other"] == "kept"
    assert box.curl("https://allowed.example/api", "--cacert", str(world.data / "ca.crt"))[0] == 200  # not opened: the host's own certificate
    assert box.curl("http://secret.example/plain")[0] == 200
    assert not [line for line in world.log(what="request") if line.get("sni") != "secret.example" and VALUE in str(line)]


def test_what_is_opened_speaks_http_1_and_names_one_host(world, box):
    trusted = with_secret(world, box)
    box.ask("dns", "secret.example")
    said = box.ask("tls", LONE, "secret.example", trusted)
    assert said["protocol"] == "http/1.1" and said["issuer"].startswith("burrow egress")
    said = box.ask("tls", LONE, "secret.example", trusted, "GET / HTTP/1.1\r\nHost: lone.example\r\nConnection: close\r\n\r\n")
    assert said["answer"].startswith("HTTP/1.1 403") and "TLS was opened for" in said["answer"]
    said = box.ask("tls", LONE, "secret.example", trusted, "TRACE / HTTP/1.1\r\nHost: secret.example\r\nConnection: close\r\n\r\n")
    assert said["answer"].startswith("HTTP/1.1 403")


def test_bodies_stream_both_ways_through_an_opened_host(world, box):
    trusted = with_secret(world, box)
    big = world.data / "big"
    big.write_bytes(b"z" * 10_000_000)
    assert box.curl("https://secret.example/up", "--cacert", trusted, "--data-binary", f"@{big}")[1] == "443 secret.example /up 10000000\n"
    assert box.curl("https://secret.example/up", "--cacert", trusted, "-T", str(big), "-H", "Transfer-Encoding: chunked")[1] == "443 secret.example /up 10000000\n"
    code, body = box.curl("https://secret.example/bytes/20000000", "--cacert", trusted)
    assert code == 200 and len(body) == 20_000_000
    stream = box.start("curl", "-sSN", "--cacert", trusted, "https://secret.example/drip")
    assert [stream.stdout.readline() for _ in range(5)] == ["data: tick\n", "\n", "data: tick\n", "\n", "data: tick\n"]  # as they come
    stream.kill()
    stream.wait()


def test_a_placeholder_is_replaced_in_its_header_and_refused_elsewhere(world, box):
    trusted = with_secret(world, box, "PLACEHOLDER-77")
    assert box.curl("https://secret.example/", "--cacert", trusted, "-H", "Authorization: PLACEHOLDER-77")[0] == 200
    assert world.log(what="request", sni="secret.example")[-1]["headers"]["authorization"] == VALUE
    for url, *options in (["http://allowed.example/"], ["https://secret.example/?q=PLACEHOLDER-77"], ["https://secret.example/", "-H", "X-Copy: PLACEHOLDER-77"],
                          ["http://secret.example/"]):
        header = options or ["-H", "Authorization: PLACEHOLDER-77"]
        code, body = box.curl(url, "--cacert", trusted, *header)
        assert code == 403 and "was sent elsewhere" in body, url
    assert world.refusals(box, kind="secret", name="allowed.example")
    assert not [line for line in world.log(what="request") if "PLACEHOLDER" in str(line)]


def test_another_box_gets_nothing_of_it(world, box):
    with_secret(world, box)
    other = world.box()
    other.allow("secret.example")
    assert other.curl("https://secret.example/other", "--cacert", str(world.data / "ca.crt"))[0] == 200
    assert "authorization" not in [line for line in world.log(what="request", sni="secret.example") if "/other" in line["line"]][-1]["headers"]


def test_a_host_that_cannot_prove_itself_gets_nothing(world, box):
    box.allow("target.example", secrets=[("target.example", "Authorization", VALUE, "")])  # it has a certificate for other names alone
    trusted = world.data / "trusted.crt"
    world.tell(f"certificate {trusted}")
    code, body = box.curl("https://target.example/", "--cacert", str(trusted))
    assert code == 502 and "is not trusted" in body
    assert not [line for line in world.log(what="request") if VALUE in str(line) and line.get("sni") == "target.example"]


def test_the_key_of_the_authority_is_the_owners_alone_and_values_stay_in_memory(world, box):
    with_secret(world, box)
    assert os.stat(world.data / "egress.key").st_mode & 0o777 == 0o600
    for path in world.data.iterdir():
        if path.is_file() and not path.name.startswith(("secrets-", "log")):
            assert VALUE.encode() not in path.read_bytes(), path
    for pid in world.processes():
        assert VALUE.encode() not in open(f"/proc/{pid}/cmdline", "rb").read() + open(f"/proc/{pid}/environ", "rb").read()


def test_the_worker_has_no_rights(world):
    supervisor, worker = world.processes()
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{worker}/status").read().splitlines() if ":\t" in line)
    assert status["Uid"].split() == ["65534"] * 4 and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert os.listdir(f"/proc/{worker}/root") == []
    for pid in (supervisor, worker):
        assert [line.split()[4:6] for line in open(f"/proc/{pid}/limits") if line.startswith("Max core")] == [["0", "0"]]
    assert os.readlink(f"/proc/{worker}/ns/net") != os.readlink(f"/proc/{supervisor}/ns/net")


# ---- ends ----

def test_a_worker_that_dies_is_started_again_with_all_policies(world, box):
    box.allow("allowed.example")
    assert box.curl("http://allowed.example/")[0] == 200
    _, worker = world.processes()
    os.kill(worker, signal.SIGKILL)
    until(lambda: world.processes()[1] not in (None, worker), "another worker")
    assert box.ask("dns", "allowed.example")["addresses"] == [SHARED]
    assert box.ask("dns", "other.example")["code"] == 5
    assert box.curl("http://allowed.example/")[0] == 200


def test_a_supervisor_that_dies_closes_everything_and_is_started_again(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    supervisor, worker = world.processes()
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: world.processes() == (None, None) and not os.path.exists(f"/proc/{worker}"), "both to be gone")
    assert box.ask("send_hello", SHARED, "allowed.example").startswith(("error", "closed"))  # nobody reads it: nothing passes
    assert world.tell("refusals 1000")[-1] == "ok gone"
    world.tell("restore")
    assert world.processes()[0] not in (None, supervisor)
    assert box.ask("dns", "allowed.example")["addresses"] == [SHARED]
    assert box.ask("dns", "other.example")["code"] == 5


def test_a_change_starts_it_again_too(world, box):
    box.allow("allowed.example")
    supervisor, _ = world.processes()
    os.kill(supervisor, signal.SIGKILL)
    box.allow("lone.example")
    assert box.ask("dns", "lone.example")["addresses"] == [LONE]


def test_it_outlives_the_server_and_knows_the_next_one(world, box):
    box.allow("allowed.example")
    before = world.processes()
    # The boxes of this test live with the driver, so that a second one stands for the next server.
    other = subprocess.run(world.host.command(os.environ["BURROW_EGRESS_DRIVER"], world.data, "/nowhere/burrow-egress", "9.9.9.9", ""),
                           input=f"counters {box.slot}\n", capture_output=True, text=True, timeout=60)
    assert other.stdout.splitlines()[0].startswith("ok"), other.stdout
    assert world.processes() == before and before[0]
    assert box.ask("dns", "allowed.example")["addresses"] == [SHARED]


# ---- a proxy ----

def test_connections_go_through_the_proxy_of_the_operator():
    world = make("http://9.9.9.9:3128")
    try:
        box = world.box()
        box.allow("allowed.example")
        assert box.curl("http://allowed.example/p") == (200, "80 allowed.example /p 0\n")
        assert box.curl("https://allowed.example/p", "--cacert", str(world.data / "ca.crt")) == (200, "443 allowed.example /p 0\n")
        assert {line["line"] for line in world.log(what="proxy")} == {f"CONNECT {SHARED}:80 HTTP/1.1", f"CONNECT {SHARED}:443 HTTP/1.1"}
        assert box.curl("http://allowed.example/", "-H", "Host: other.example")[0] == 403
    finally:
        world.end()
