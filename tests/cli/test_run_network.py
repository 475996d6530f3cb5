#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""burrow run with a network: in a host and an Internet that are namespaces of the test's own."""
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TOP = Path(__file__).parents[2]
PATIENCE = 60
FIRST, SECOND, LAN, RESOLVER = "93.184.220.10", "93.184.220.11", "10.20.0.5", "9.9.9.9"
ZONE = {"allowed.example": FIRST, "deep.allowed.example": SECOND, "other.example": SECOND, "shared.example": FIRST, "private.example": LAN}


# ---- the Internet: this file again, as a program ----

def answer_name(query):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    question = query[12:at + 5]
    address = ZONE.get(".".join(labels).lower()) if query[at + 1:at + 3] == b"\0\1" else None
    records = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(address) if address else b""
    return query[:2] + struct.pack("!HHHHH", 0x8180 | (0 if address else 3), 1, 1 if address else 0, 0, 0) + question + records


def serve_names():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((RESOLVER, 53))
    while True:
        query, peer = sock.recvfrom(2048)
        sock.sendto(answer_name(query), peer)


def serve_bytes(listener):
    while True:
        peer, _ = listener.accept()
        peer.settimeout(PATIENCE)
        try:
            request = peer.recv(4096)
            said = b"world " + peer.getsockname()[0].encode()
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(said), said) if request.startswith(b"GET") else said)
        except OSError:
            pass
        peer.close()


def serve_world():
    threading.Thread(target=serve_names, daemon=True).start()
    for port in (80, 8080):
        listener = socket.create_server(("0.0.0.0", port))
        threading.Thread(target=serve_bytes, args=[listener], daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    serve_world()

import pytest

BURROW = os.environ["BURROW"]


class World:
    def __init__(self):
        self.data = Path(tempfile.mkdtemp(prefix="burrow-run-network-", dir="/var/tmp"))
        self.holders = [subprocess.Popen(["unshare", "-n", "sleep", "infinity"]) for _ in range(2)]
        mine = os.readlink("/proc/self/ns/net")
        deadline = time.monotonic() + PATIENCE
        while any(os.readlink(f"/proc/{holder.pid}/ns/net") == mine for holder in self.holders):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        host, internet = (holder.pid for holder in self.holders)
        subprocess.run(["ip", "link", "add", "toworld", "netns", str(host), "type", "veth", "peer", "name", "tohost", "netns", str(internet)], check=True)
        for pid, name, address in ((host, "toworld", "93.184.216.1/24"), (internet, "tohost", "93.184.216.2/24")):
            self.inside(pid, "ip", "link", "set", "lo", "up")
            self.inside(pid, "ip", "address", "add", address, "dev", name)
            self.inside(pid, "ip", "link", "set", name, "up")
        self.inside(host, "ip", "route", "add", "default", "via", "93.184.216.2")
        for address in (FIRST, SECOND, LAN, RESOLVER):
            self.inside(internet, "ip", "address", "add", f"{address}/32", "dev", "lo")
        self.server = subprocess.Popen(["nsenter", "-t", str(internet), "-n", sys.executable, __file__], stdout=subprocess.PIPE, text=True)
        assert self.server.stdout.readline() == "ready\n"

    @staticmethod
    def inside(pid, *command):
        subprocess.run(["nsenter", "-t", str(pid), "-n", *command], check=True, capture_output=True, timeout=PATIENCE)

    def burrow(self, *words):
        return subprocess.run(["nsenter", "-t", str(self.holders[0].pid), "-n", BURROW, *words, ], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, "BURROW_DATA": str(self.data), "BURROW_NETWORK_DNS": RESOLVER})

    def run(self, *words):
        options, _, command = " ".join(words).partition("-- ")
        return self.burrow("run", "--runtime", "host:latest", *options.split(), "--", "sh", "-c", command)

    def end(self):
        self.burrow("detach", "--end-sandboxes")
        left = subprocess.run(["nsenter", "-t", str(self.holders[0].pid), "-n", "sh", "-c", "nft list tables; ip -o link | grep burrow"],
                              capture_output=True, text=True, timeout=PATIENCE).stdout
        for process in (self.server, *self.holders):
            process.kill()
            process.wait()
        subprocess.run([TOP / "tools/check-leftovers", "--clear", self.data], check=True)
        return left


@pytest.fixture(scope="module")
def world():
    if os.geteuid() != 0:
        pytest.skip("sandboxes need root")
    made = World()
    yield made
    made.end()


def fetch(name, port=80):
    return f"curl -sS --max-time 30 http://{name}:{port}/"


def test_nothing_resolves_without_a_network(world):
    assert world.run("-- " + fetch("allowed.example")).returncode == 6  # curl: could not resolve
    assert world.run("-- " + fetch(FIRST)).returncode == 7


def test_with_a_network_names_resolve_and_answer(world):
    done = world.run("--network -- " + fetch("allowed.example"))
    assert (done.stdout, done.returncode) == (f"world {FIRST}", 0), done.stderr
    assert world.run("--network -- " + fetch("private.example")).returncode != 0
    assert world.run("--network -- " + fetch(LAN)).returncode == 7


def test_what_is_allowed_and_no_more(world):
    done = world.run("--allow allowed.example -- " + fetch("allowed.example"))
    assert done.stdout == f"world {FIRST}", done.stderr
    assert world.run("--allow allowed.example -- " + fetch("other.example")).returncode == 6
    assert world.run("--allow allowed.example -- " + fetch("deep.allowed.example")).returncode == 6
    assert "no rule allows it" in world.run("--allow allowed.example -- " + fetch(SECOND)).stdout  # a 403 that says why
    assert world.run("--allow allowed.example -- " + fetch(SECOND, 8080)).returncode == 7
    assert world.run("--allow *.allowed.example:80 -- " + fetch("deep.allowed.example")).stdout == f"world {SECOND}"
    assert world.run("--allow *.allowed.example:80 -- " + fetch("deep.allowed.example", 8080)).returncode == 7
    assert world.run(f"--allow {SECOND}:8080/tcp -- " + fetch(SECOND, 8080)).stdout == f"world {SECOND}"
    assert world.run(f"--allow {SECOND}:8080/tcp -- " + fetch(SECOND)).returncode == 7


def test_a_name_of_the_same_address_is_not_allowed_with_it(world):
    command = f"curl -sS --max-time 30 http://allowed.example/ && curl -s -o /dev/null -w %{{http_code}} -H 'Host: shared.example' http://allowed.example/"
    assert world.run("--allow allowed.example -- " + command).stdout == f"world {FIRST}403"


def test_what_is_denied_is_whatever_else_is_allowed(world):
    assert world.run(f"--deny {SECOND} -- " + fetch(FIRST)).stdout == f"world {FIRST}"
    assert world.run(f"--deny {SECOND} -- " + fetch(SECOND)).returncode == 7
    assert world.run("--allow *.example --deny other.example -- " + fetch("other.example")).returncode == 6


def test_a_private_address_is_opened_by_its_own_rule(world):
    assert world.run(f"--allow {LAN}:80 -- " + fetch(LAN)).stdout == f"world {LAN}"


@pytest.mark.parametrize("rule", ["nothing at all", "*", "a.*.example", "9.9.9.9:99999", "-", "exa_mple..com"])
def test_a_rule_that_is_none_is_refused_by_a_sentence(world, rule):
    if rule == "*":
        assert world.burrow("run", "--runtime", "host:latest", "--allow", rule, "--", "true").returncode in (0, 2)
        return
    done = world.burrow("run", "--runtime", "host:latest", f"--allow={rule}", "--", "true")
    assert done.returncode == 125 or done.returncode == 2
    assert rule in done.stderr


def test_a_rate_is_taken(world):
    done = world.run("--network --network-rate 10Mi -- " + fetch("allowed.example"))
    assert done.stdout == f"world {FIRST}", done.stderr


def test_detach_gives_everything_back():
    if os.geteuid() != 0:
        pytest.skip("sandboxes need root")
    world = World()
    try:
        said = world.run("--network -- " + fetch("allowed.example")).stdout
    finally:
        left = world.end()
    assert (said, left) == (f"world {FIRST}", "")
    assert not [name for name in os.listdir("/proc") if name.isdigit() and str(world.data) in read_command(name)]


def read_command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
