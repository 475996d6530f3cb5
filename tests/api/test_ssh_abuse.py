# SPDX-License-Identifier: Apache-2.0
"""SSH and those who mean harm, or die: bounds before login, parsers that crash, a server that is killed in a session. A server of its own, with small bounds."""
import contextlib
import os
import pathlib
import select
import signal
import socket
import subprocess
import time

import pytest

from client import PATIENCE, Client, until
from socket_client import WebSocket
from ssh import Ssh, introduced, make_key, port_of, serving
from test_ssh import Terminal, processes_of, tunnel

STRANGERS = 6
CONNECTIONS = 12


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("abuse"), strangers_per_address=STRANGERS, login_time="5s", tries=3, connections=CONNECTIONS,
                 connections_per_sandbox=4) as server:
        yield server


@pytest.fixture
def ssh(own, tmp_path):
    return introduced(own, tmp_path)


@pytest.fixture
def box(own):
    sandbox = own.client.create()
    yield sandbox
    sandbox.delete()


def knock(ssh):
    """Connects, and hears the banner."""
    there = socket.create_connection(("127.0.0.1", ssh.port), timeout=PATIENCE)
    assert there.recv(4) == b"SSH-"
    return there


def is_hung_up(there):
    there.settimeout(0.05)
    try:
        while there.recv(65536):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


def test_a_crowd_before_login_keeps_nobody_out(ssh, box):
    crowd = [knock(ssh) for _ in range(3 * STRANGERS)]
    assert ssh.run(box.id, "echo in").stdout == b"in\n"
    until(lambda: sum(not is_hung_up(one) for one in crowd) <= STRANGERS, "the oldest to be hung up on")
    for one in crowd:
        one.close()


def test_who_connects_without_end_waits_and_others_do_not(tmp_path):
    """A process costs far more than to connect does: one address gets so many in a second."""
    with serving(tmp_path, rate_per_address=1, login_time="10m") as server, contextlib.ExitStack() as stack:
        ssh = introduced(server, tmp_path)
        box = server.client.create()
        crowd = []
        for _ in range(60):  # a minute's worth
            crowd.append(stack.enter_context(socket.create_connection(("127.0.0.1", ssh.port), timeout=PATIENCE, source_address=("127.0.0.9", 0))))
        assert ssh.run(box.id, "echo in").stdout == b"in\n"

        def served():
            for one in crowd:
                one.setblocking(False)
            return len(select.select(crowd, [], [], 0)[0])
        until(lambda: served() >= 4, "the first ones to be served")
        before = served()
        assert before < 60
        until(lambda: served() > before, "the next one to have its turn")


def test_who_does_not_log_in_in_time_is_hung_up_on(ssh, own):
    slow = knock(ssh)
    slow.sendall(b"SSH-2.0-slow\r\n")
    until(lambda: is_hung_up(slow), "the server to lose patience")
    slow.close()


def test_keys_that_do_not_fit_are_offered_so_often_and_no_more(ssh, box, tmp_path):
    words = []
    for i in range(5):
        words += ["-i", str(make_key(tmp_path / f"wrong{i}"))]
    all_keys = [word for word in ssh.words(box.id, "true", options=words) if word != str(ssh.key)]
    all_keys.remove("-i")
    done = subprocess.run([*all_keys[:1], "-v", *all_keys[1:]], capture_output=True, timeout=PATIENCE)
    assert done.returncode == 255 and done.stderr.count(b"Offering public key") <= 4


def test_refusals_take_the_same_time(ssh, own, box, tmp_path):
    """All are answered a quarter of a second after they were asked for: none is earlier."""
    (tmp_path / "other").mkdir()
    stranger = Ssh(own, tmp_path / "other")
    for who, user in ((stranger, box.id), (ssh, "sbx_00000000000000000000000000"), (ssh, "nobody")):
        began = time.monotonic()
        assert who.run(user, "true").returncode == 255
        assert time.monotonic() - began >= 0.25


def test_one_sandbox_has_so_many_connections(ssh, box):
    held = [ssh.start(box.id, "echo up; cat") for _ in range(4)]
    try:
        for one in held:
            assert one.stdout.readline() == b"up\n"
        assert ssh.run(box.id, "true").returncode == 255
    finally:
        for one in held:
            one.communicate(timeout=PATIENCE)
    until(lambda: ssh.run(box.id, "true").returncode == 0, "a place to be free")


@pytest.fixture
def alice(own, tmp_path):
    """Somebody with a key and a sandbox, and an SSH key."""
    made = own.client.post("/api/v1/keys", {"owner": "alice"}).json
    client = Client(own.port, made["key"])
    (tmp_path / "alice").mkdir()
    ssh = Ssh(own, tmp_path / "alice")
    assert client.post("/api/v1/ssh-keys", {"publicKey": ssh.public}).status == 201
    boxes = [client.create(), client.create()]
    yield client, ssh, boxes
    for one in boxes:
        one.delete()
    own.client.delete(f"/api/v1/keys/{made['id']}")


def test_one_owner_leaves_places_to_others(own, ssh, box, alice, tmp_path):
    """Each sandbox has places of its own; whoever makes many does not get all there are by that."""
    _, hers, boxes = alice
    places = [boxes[0]] * 4 + [boxes[1]] * (CONNECTIONS // 2 - 4)
    held = [hers.start(one.id, "echo up; cat") for one in places]
    try:
        for one in held:
            assert one.stdout.readline() == b"up\n"
        assert hers.run(boxes[1].id, "true").returncode == 255
        assert "SSH: too many connections of one owner" in own.log and "owner=alice" in own.log
        through = tunnel(hers, own, boxes[1], alice[0].key, tmp_path)
        assert hers.run(boxes[1].id, "true", options=through).returncode == 255, "a tunnel is no way around it"
        assert ssh.run(box.id, "echo in").stdout == b"in\n"
        assert ssh.run(box.id, "echo in", options=tunnel(ssh, own, box, own.client.key, tmp_path)).stdout == b"in\n"
    finally:
        for one in held:
            one.communicate(timeout=PATIENCE)
    until(lambda: hers.run(boxes[1].id, "true").returncode == 0, "a place to be free")


def test_tunnels_before_login_keep_nobody_out(own, ssh, box, alice, tmp_path):
    """A tunnel takes a place before it speaks SSH, and is bounded by its owner as others are by their address."""
    client, hers, boxes = alice
    began = time.monotonic()
    waiting = knock(ssh)
    crowd = [WebSocket(own.port, f"/api/v1/sandboxes/{boxes[0].id}/ssh", key=client.key) for _ in range(3 * CONNECTIONS)]
    try:
        assert not is_hung_up(waiting) or time.monotonic() - began >= 5, "tunnels push out tunnels"
        assert ssh.run(box.id, "echo in").stdout == b"in\n"
        assert ssh.run(box.id, "echo in", options=tunnel(ssh, own, box, own.client.key, tmp_path)).stdout == b"in\n"
        until(lambda: sum(not is_hung_up(one.raw.socket) for one in crowd) <= STRANGERS, "the oldest to be hung up on")
    finally:
        waiting.close()
        for one in crowd:
            one.raw.socket.close()


def test_what_crashes_the_parser_costs_one_connection_and_is_logged(ssh, own, box):
    held = ssh.start(box.id, "echo up; cat")
    assert held.stdout.readline() == b"up\n"
    other = ssh.start(box.id, "echo up; cat")
    assert other.stdout.readline() == b"up\n"
    victims = [pid for pid in processes_of(own) if len(os.listdir(f"/proc/{pid}/fd")) > 5]
    assert len(victims) == 2
    os.kill(victims[0], signal.SIGSEGV)
    until(lambda: "burrow-ssh has crashed; only its connection is lost" in own.log, "the crash to be logged")
    until(lambda: held.poll() is not None or other.poll() is not None, "its client to end")
    lost, kept = (held, other) if held.poll() is not None else (other, held)
    assert lost.wait(PATIENCE) == 255
    lost.communicate()
    assert kept.communicate(b"still", timeout=PATIENCE)[0] == b"still"
    assert ssh.run(box.id, "echo next").stdout == b"next\n"


def test_no_process_of_a_connection_is_left(ssh, own, box):
    many = [ssh.start(box.id, "echo up; cat") for _ in range(3)]
    for one in many:
        assert one.stdout.readline() == b"up\n"
        one.kill()
        one.communicate()
    until(lambda: len(processes_of(own)) <= 2, "none but those that wait for the next")


def test_a_killed_server_ends_connections_and_no_terminal(ssh, own, box):
    terminal = Terminal(ssh.words(box.id))
    terminal.type("cd /tmp; echo pid-$((20+3))\n")
    terminal.wait_for("pid-23")
    pids = processes_of(own)
    own.listen = f"127.0.0.1:{own.port}"
    own.kill()
    until(lambda: terminal.is_over(), "ssh to end")
    os.close(terminal.fd)
    until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids), "its processes to end")
    own.start()
    shell = next(one for one in own.client.get(f"/api/v1/sandboxes/{box.id}/executions").json["items"] if one["kind"] == "terminal")
    assert shell["state"] == "running"
    path = f"/api/v1/executions/{shell['id']}"
    assert own.client.post(f"{path}/stdin", body=b"echo again-$PWD; exit 6\n").status == 200
    ended = until(lambda: (now := own.client.get(path).json)["state"] != "running" and now, "the shell to end")
    assert ended["exitCode"] == 6
    # The same host key, so that no client is warned.
    again = Ssh.__new__(Ssh)
    again.__dict__.update(ssh.__dict__)
    again.port = port_of(own)
    again.known.write_text("".join(f"[127.0.0.1]:{again.port} {line.split(' ', 1)[1]}\n" for line in ssh.known.read_text().splitlines()))
    assert again.run(box.id, "echo known").stdout == b"known\n"
