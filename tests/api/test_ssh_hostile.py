# SPDX-License-Identifier: Apache-2.0
"""SSH and clients that finish the key exchange and then send what no decent client does (ssh_hostile.py). tests/load/ssh-hostile does it for hours."""
import contextlib
import os
import random
import signal
import socket

import pytest

import ssh_hostile
from client import PATIENCE, until
from ssh import introduced, serving
from ssh_raw import ADJUST, CONFIRMED, DATA, OPEN, Ended, RawSsh, kexinit, number, request, text
from test_ssh import memory_of, processes_of

SEEDS = range(300)
MIB = 1 << 20


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("hostile"), allow="remote-forward,agent", login_time="20s") as server:
        yield server


@pytest.fixture(scope="module")
def ssh(own, tmp_path_factory):
    return introduced(own, tmp_path_factory.mktemp("ssh"))


@pytest.fixture(scope="module")
def box(own):
    sandbox = own.client.create()
    yield sandbox
    sandbox.delete()


@pytest.fixture
def bystander(own, ssh, box):
    """Somebody else is connected all the while; nothing crashes, and nobody is left behind."""
    held = ssh.start(box.id, "echo up; cat")
    assert held.stdout.readline() == b"up\n"
    crashes = own.log.count("burrow-ssh has crashed")
    yield
    assert held.communicate(b"still", timeout=PATIENCE)[0] == b"still"
    assert ssh.run(box.id, "echo next").stdout == b"next\n"
    assert own.log.count("burrow-ssh has crashed") == crashes, own.log
    assert "said what makes no sense" not in own.log
    until(lambda: len(processes_of(own)) <= 2, "all others to be gone")


def test_the_raw_client_is_a_client(ssh, box):
    """What the others rest on: it logs in, runs a command, and exchanges keys again in the middle."""
    connection, channel = ssh_hostile.logged_in(ssh.port, box.id, ssh.key)
    with connection:
        connection.send(request(channel, b"exec", text(b"cat")))
        for piece in (b"one", b"two"):
            connection.send(bytes([DATA]) + number(channel) + text(piece))
            assert connection.expect(DATA)[9:] == piece
            connection.exchange()


def play(ssh, box, where):
    for place, row in ssh_hostile.rows():
        if place == where:
            ssh_hostile.attack(ssh.port, box.id, ssh.key, where, row)


def test_packets_before_login_do_no_harm(bystander, ssh, box):
    play(ssh, box, "before")


def test_packets_in_login_do_no_harm(bystander, ssh, box):
    play(ssh, box, "in")


def test_packets_on_channels_do_no_harm(bystander, ssh, box):
    play(ssh, box, "after")


def test_mutated_packets_do_no_harm(bystander, ssh, box):
    for seed in SEEDS:
        try:
            ssh_hostile.attack_randomly(ssh.port, box.id, ssh.key, seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.parametrize("where", ["before", "after"])
def test_packets_that_lie_about_themselves_end_their_connection(bystander, ssh, box, where):
    for lie in ssh_hostile.FRAMES:
        connection = RawSsh(ssh.port).connect() if where == "before" else ssh_hostile.logged_in(ssh.port, box.id, ssh.key)[0]
        with connection:
            try:
                connection.send(b"\2" + text(b"ignored"), **lie)
                connection.send_bytes(bytes(70000) if "head" in lie else b"")
                connection.send(b"\1" + number(11) + text(b"") * 2)
                connection.socket.shutdown(1)
            except (Ended, OSError):
                pass
            connection.drain()


@pytest.mark.parametrize("packets", [[b"\x34"], [b"\x34", b"\x34"], [b"\6" + text(b"ssh-connection")], [b"\5" + text(b"ssh-connection")], [ssh_hostile.auth(b"none")], [b"\x3c" + text(b"a") * 2]],
                         ids=["success", "twice", "accepted", "service", "none", "key"])
def test_who_has_not_logged_in_opens_nothing(bystander, ssh, box, packets):
    """A message that only a server sends does not make its sender one."""
    with RawSsh(ssh.port).connect() as connection:
        try:
            if packets[0][0] == 0x32:
                connection.ask_service()
            for packet in packets:
                connection.send(packet)
            connection.send(bytes([OPEN]) + text(b"session") + number(0) + number(MIB) + number(32768))
            connection.send(b"\1" + number(11) + text(b"") * 2)
            while True:
                assert connection.receive()[0] != CONFIRMED
        except Ended:
            pass


def test_what_comes_between_the_keys_ends_a_strict_exchange(bystander, ssh):
    """Terrapin: a packet that does not belong there, before there are keys."""
    with RawSsh(ssh.port) as connection:
        connection.greet()
        mine = kexinit()
        connection.send(mine)
        connection.send(b"\2" + text(b"ignored"))
        with pytest.raises(Ended):
            connection.finish_exchange(mine, connection.expect(20))
            connection.ask_service()


def test_data_beyond_the_window_ends_the_connection_and_takes_no_memory(bystander, own, ssh, box):
    """The command does not read, and the client does not care how much it may send."""
    connection, channel = ssh_hostile.logged_in(ssh.port, box.id, ssh.key)
    largest = 0
    with connection:
        connection.send(request(channel, b"exec", text(b"exec sleep 1000")))
        with pytest.raises(Ended):
            for i in range(200 * MIB // 32000):
                connection.send(bytes([DATA]) + number(channel) + text(bytes(32000)))
                if i % 100 == 0:
                    largest = max([largest, *(memory_of(pid) for pid in processes_of(own))])
            connection.expect(1)
    assert largest < 64 * MIB
    ssh.run(box.id, "pkill -x sleep")


def test_a_window_without_end_is_no_memory_without_end(bystander, own, ssh, box):
    """The client opens its window as far as it goes, and never reads: the command waits."""
    connection, channel = ssh_hostile.logged_in(ssh.port, box.id, ssh.key)
    with connection:
        for _ in range(4):
            connection.send(bytes([ADJUST]) + number(channel) + number(0xffffffff))
        connection.send(request(channel, b"exec", text(b"dd if=/dev/zero bs=65536 2>/dev/null & echo $! >/tmp/endless; wait")))

        def written():
            found = ssh.run(box.id, "cat /proc/$(cat /tmp/endless)/io").stdout.decode()
            return int(found.split("wchar: ")[1].split()[0]) if "wchar" in found else 0
        until(lambda: written() > 65536, "the command to begin")
        counts = [written()]
        until(lambda: counts.append(written()) or counts[-1] == counts[-2], "it to wait")
        assert max(memory_of(pid) for pid in processes_of(own)) < 64 * MIB
    ssh.run(box.id, "kill $(cat /tmp/endless)")


CROWD = "for i in $(seq 16); do exec 3<>/dev/tcp/127.0.0.1/{port} || exit 1; done"
READ_AT_ONCE = 65 * 4096  # what burrow-ssh reads of its client before others get their turn
GLOBAL, SUCCEEDED, IGNORE, SO_SNDBUFFORCE = 80, 81, 2, 32


@contextlib.contextmanager
def stopped(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def forward_request(kind, port):
    return bytes([GLOBAL]) + text(kind) + b"\1" + text(b"localhost") + number(port)


def test_a_port_that_is_given_back_while_somebody_is_let_in_by_it(bystander, own, ssh, box):
    """The client is asked to answer for who has come to its port, and what is read of it then says that the port is given back."""
    connection, channel = ssh_hostile.logged_in(ssh.port, box.id, ssh.key)
    with connection:
        connection.send(forward_request(b"tcpip-forward", 0))
        port = int.from_bytes(connection.expect(SUCCEEDED)[1:5], "big")
        connection.socket.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, MIB)
        with stopped(processes_of(own)):
            assert box.run("bash", "-c", CROWD.format(port=port)).exit_code == 0
            for _ in range(READ_AT_ONCE // 4000):
                connection.send(bytes([IGNORE]) + text(bytes(4000)))
            connection.send(forward_request(b"cancel-tcpip-forward", port))
        connection.expect(SUCCEEDED)
        connection.send(request(channel, b"exec", text(b"echo still")))
        assert connection.expect(DATA)[9:] == b"still\n"


def test_a_seed_says_the_same_again():
    assert ssh_hostile.random_row(random.Random(7)) == ssh_hostile.random_row(random.Random(7))
