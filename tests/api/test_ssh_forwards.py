# SPDX-License-Identifier: Apache-2.0
"""Forwards of SSH beyond the sandbox's own ports: names and addresses outside, by its network, in a world of the test's own (world.py)."""
import re
import select

import pytest

from client import PATIENCE, until
from ssh import introduced
from test_network import Box, machine
from test_ssh import connected, free_port
from world import METADATA, ONE, TWO, World

GET = b"GET / HTTP/1.0\r\nHost: good.test\r\n\r\n"
SEVERAL, SILENT, EMPTY, LOOPBACK = "several.test", "silent.test", "six.test", "loop.test"
MORE = {SEVERAL: f"{ONE},{TWO}", SILENT: "0.0.0.0", EMPTY: "", LOOPBACK: "127.0.0.1", "alone.test": TWO, "meta.test": METADATA}


@pytest.fixture(scope="module")
def world():
    with World(more=MORE) as world:
        yield world


@pytest.fixture(scope="module")
def net(world, tmp_path_factory):
    with machine(tmp_path_factory.mktemp("forwards") / "data", environment={"BURROW_SSH_LISTEN": "127.0.0.1:0"}) as server:
        yield server


@pytest.fixture(scope="module")
def ssh(net, tmp_path_factory):
    return introduced(net, tmp_path_factory.mktemp("ssh"))


@pytest.fixture(scope="module")
def boxes(net):
    """By what they may reach."""
    made = {"named": Box(net, network={"enabled": True, "allow": ["good.test", f"{SEVERAL}:2223", SILENT, EMPTY, LOOPBACK, "inside.test", "meta.test"],
                                       "default": "deny"}),
            "none": Box(net)}
    yield {name: box.made["id"] for name, box in made.items()}
    for box in made.values():
        box.delete()


def through(ssh, user, host, port=80, sent=GET):
    """What comes back through ssh -W, and why nothing did."""
    done = ssh.run(user, options=("-v", "-W", f"{host}:{port}"), input=sent)
    why = re.findall(rb"Remote: burrow: ([^\r\n]*)", done.stderr)
    return done.stdout, why[-1].decode() if why else None


def test_names_lead_where_the_sandboxs_rules_let_them(ssh, boxes, world):
    answer, why = through(ssh, boxes["named"], "good.test")
    assert answer.startswith(b"HTTP/1.1 200") and why is None
    assert through(ssh, boxes["named"], "GOOD.test.")[0].startswith(b"HTTP/1.1 200")
    answer, why = through(ssh, boxes["named"], "other.test")
    assert (answer, why) == (b"", "the sandbox's network does not allow 'other.test'; 'burrow network why' says more")
    assert ["dns", "other.test"] not in world.seen(), "nothing of it leaves"


def test_a_name_opens_no_other_name_at_its_address(ssh, boxes):
    """good.test and evil.test are one address: what was resolved for one is not open for the other."""
    answer, _ = through(ssh, boxes["named"], "good.test", sent=GET.replace(b"good", b"evil"))
    assert b"403" in answer.splitlines()[0]


@pytest.mark.parametrize("name", ["inside.test", "meta.test", LOOPBACK])
def test_a_name_that_leads_inside_leads_nowhere(ssh, boxes, name):
    answer, why = through(ssh, boxes["named"], name)
    assert (answer, why) == (b"", f"the sandbox's network does not allow '{name}'; 'burrow network why' says more")


def test_without_a_network_no_name_is_asked_for(ssh, boxes, world):
    before = len(world.seen())
    answer, why = through(ssh, boxes["none"], "good.test")
    assert (answer, why) == (b"", "the sandbox has no network; set one with 'burrow network policy'")
    assert through(ssh, boxes["none"], ONE)[0] == b""
    assert len(world.seen()) == before


def test_the_next_address_of_a_name_is_tried(ssh, boxes):
    assert through(ssh, boxes["named"], SEVERAL, 2223, b"")[0] == b"hello\n"


@pytest.mark.parametrize("name, why", [(EMPTY, "the name has no address that may be reached"), ("x" * 64 + ".test", "that is neither an address nor a name"),
                                       ("a." * 126 + "test", "that is neither an address nor a name"), ("a b.test", "that is neither an address nor a name"),
                                       ("1.2.3", "that is neither an address nor a name"), ("none.good.test", "not allow")])
def test_what_is_no_name_or_has_no_address_is_refused(ssh, boxes, name, why):
    answer, said = through(ssh, boxes["named"], name)
    assert answer == b"" and why in said


def test_names_of_the_sandbox_itself_are_its_loopback(ssh, boxes):
    server = ssh.start(boxes["none"], "exec perl -MIO::Socket::INET -e '$s=IO::Socket::INET->new(LocalAddr=>\"127.0.0.1:7003\",Listen=>9) or die;"
                                      "$|=1; print \"up\\n\"; while($c=$s->accept){print $c \"own\\n\"; close $c}'")
    try:
        assert server.stdout.readline() == b"up\n"
        for name in ("localhost", "LOCALHOST", "localhost.", "burrow", "127.8.7.6"):
            assert through(ssh, boxes["none"], name, 7003, b"")[0] == b"own\n", name
        assert ssh.run(boxes["none"], "hostname").stdout == b"burrow\n"
    finally:
        server.kill()
        server.communicate()


def ask(port, name, target):
    """By SOCKS, of an ssh -D."""
    there = connected(port)
    there.sendall(b"\5\1\0" + b"\5\1\0\3" + bytes([len(name)]) + name.encode() + target.to_bytes(2, "big"))
    return there


def socks(port, name, target):
    there, got = ask(port, name, target), b""
    while len(got) < 12 and (piece := there.recv(12 - len(got))):  # once the channel is open
        got += piece
    assert got[:4] == b"\5\0\5\0"
    return there


def fetched(there):
    there.sendall(GET)
    got = b""
    while not got.endswith(b"}") and (piece := there.recv(4096)):
        got += piece
    return b"HTTP/1.1 200" in got


def test_a_slow_name_keeps_nobody_waiting(ssh, boxes):
    """Nobody answers for one name for seconds; meanwhile the same connection carries others."""
    proxy = free_port()
    tunnel = ssh.start(boxes["named"], "echo up; cat", options=("-D", str(proxy)))

    def is_waiting(one):
        return not select.select([one], [], [], 0)[0]

    def is_carried():
        slow = [socks(proxy, SILENT, 80) for _ in range(4)]
        for i in range(20):
            tunnel.stdin.write(b"%d\n" % i)
            tunnel.stdin.flush()
            assert tunnel.stdout.readline() == b"%d\n" % i
        with socks(proxy, "good.test", 80) as there:
            assert fetched(there)
        was_first = all(map(is_waiting, slow))  # they are still asked for
        for one in slow:
            one.settimeout(PATIENCE)
            assert one.recv(100) == b""
            one.close()
        return was_first
    try:
        assert tunnel.stdout.readline() == b"up\n"
        until(is_carried, "others to be carried meanwhile, however slow the machine is")
    finally:
        tunnel.kill()
        tunnel.communicate()


def test_who_goes_while_a_name_is_asked_for_leaves_nothing(ssh, boxes):
    proxy = free_port()
    tunnel = ssh.start(boxes["named"], "echo up; cat", options=("-D", str(proxy)))
    try:
        assert tunnel.stdout.readline() == b"up\n"
        for _ in range(40):  # more than a connection has channels
            ask(proxy, SILENT, 80).close()

        def answered():
            with ask(proxy, "good.test", 80) as there:
                return fetched(there)
        until(answered, "channels to be free again")
    finally:
        tunnel.kill()
        tunnel.communicate()
