# SPDX-License-Identifier: Apache-2.0
"""SSH into sandboxes with stock clients: commands, terminals, files, forwards."""
import contextlib
import hashlib
import json
import os
import pathlib
import pty
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

import pytest

from client import PATIENCE, Client, until
import ssh_hostile
from ssh import Ssh, make_key
from ssh_raw import DATA, REQUEST, number, request, text

MIB = 1 << 20
LIB = pathlib.Path(__file__).resolve().parents[1] / "lib"


@pytest.fixture(scope="module")
def ssh(server, api, tmp_path_factory):
    ssh = Ssh(server, tmp_path_factory.mktemp("ssh"))
    made = api.post("/api/v1/ssh-keys", {"publicKey": ssh.public, "name": "tests"})
    assert made.status == 201, made
    yield ssh
    forget(api, made.json["fingerprint"])


def forget(api, fingerprint):
    assert api.delete(f"/api/v1/ssh-keys/{urllib.parse.quote(fingerprint, safe='')}").status in (200, 204)


def executions(api, sandbox):
    return api.get(f"/api/v1/sandboxes/{sandbox.id}/executions").json["items"]


# ---- commands ----

@pytest.mark.parametrize("code", [0, 1, 7, 126, 255])
def test_a_commands_exit_code_is_the_clients(ssh, shared, code):
    done = ssh.run(shared.id, f"echo out; echo err >&2; exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, b"out\n", b"err\n")


def test_a_signal_ends_the_client_as_with_sshd(ssh, shared):
    done = ssh.run(shared.id, "kill -TERM $$", options=("-v",))
    assert done.returncode == 255
    assert b"exit-signal" in done.stderr


def test_a_signal_of_the_client_reaches_the_command(ssh, shared):
    """Stock clients send none; libraries do."""
    connection, channel = ssh_hostile.logged_in(ssh.port, shared.id, ssh.key)
    with connection:
        connection.send(request(channel, b"exec", text(b"trap 'echo got it; exit 5' USR1; echo up; while :; do sleep 0.1; done")))
        assert connection.expect(DATA)[9:] == b"up\n"
        connection.send(request(channel, b"signal", text(b"USR1"), wants_reply=False))
        assert connection.expect(DATA)[9:] == b"got it\n"
        assert connection.expect(REQUEST)[5:] == text(b"exit-status") + b"\0" + number(5)


def test_a_command_that_is_not_there_is_127(ssh, shared):
    assert ssh.run(shared.id, "no-such-command").returncode == 127


def test_the_name_of_a_sandbox_is_a_user_too(ssh, api):
    made = api.post("/api/v1/sandboxes", {"name": "ssh-by-name"}).json
    try:
        assert ssh.run("ssh-by-name", "echo here").stdout == b"here\n"
    finally:
        api.delete(f"/api/v1/sandboxes/{made['id']}")


def test_input_ends_where_the_clients_ends(ssh, shared):
    assert ssh.run(shared.id, "wc -c; echo done", input=b"x" * 1000).stdout == b"1000\ndone\n"
    assert ssh.run(shared.id, "cat", input=b"").stdout == b""


def test_bytes_of_every_kind_pass_both_ways(ssh, shared):
    every = bytes(range(256)) * 4096
    assert ssh.run(shared.id, "cat", input=every).stdout == every


def test_much_passes_both_ways_at_once(ssh, shared):
    """256 MiB there, and as much back while it goes: nobody waits for the other."""
    size = 128 * MIB
    command = f"head -c {size} /dev/zero | tr '\\0' 'b' & sha256sum >&2; wait"
    process = ssh.start(shared.id, command)
    chunk = random.Random(1).randbytes(MIB)
    sent, got = hashlib.sha256(), hashlib.sha256()
    def send():
        for _ in range(size // MIB):
            process.stdin.write(chunk)
            sent.update(chunk)
        process.stdin.close()
    writer = threading.Thread(target=send)
    writer.start()
    total = 0
    while piece := process.stdout.read1(MIB):
        got.update(piece)
        total += len(piece)
    writer.join(PATIENCE)
    errors = process.stderr.read()
    assert process.wait(PATIENCE) == 0, errors
    assert total == size and got.hexdigest() == hashlib.sha256(b"b" * size).hexdigest()
    assert errors.decode().split()[0] == sent.hexdigest()


def test_a_reader_that_does_not_read_stops_the_writer(ssh, shared):
    """What nobody reads stays in the sandbox: the command waits, and no memory grows."""
    process = ssh.start(shared.id, "dd if=/dev/zero bs=65536 2>/dev/null & echo $! >/tmp/writer; wait")
    try:
        def written():
            found = ssh.run(shared.id, "cat /proc/$(cat /tmp/writer)/io").stdout.decode()
            return int(found.split("wchar: ")[1].split()[0]) if "wchar" in found else 0
        until(lambda: written() > 65536, "the writer to begin")
        counts = [written()]
        until(lambda: counts.append(written()) or counts[-1] == counts[-2], "the writer to stop")
        assert counts[-1] < 64 * MIB
    finally:
        process.kill()
        process.communicate()
        ssh.run(shared.id, "kill $(cat /tmp/writer)")


def test_a_slow_reader_holds_up_the_client(ssh, server, shared):
    """What the command has not read yet stays with the client: however much it is, little of it is in memory here."""
    size = 64 * MIB
    command = f"perl -e '$left = {size}; while ($left > 0) {{ $got = sysread(STDIN, $b, $left < 16384 ? $left : 16384) or die; $left -= $got; select(undef, undef, undef, 0.0002) }}'; echo done; cat"
    process = ssh.start(shared.id, command)
    try:
        for _ in range(size // MIB):
            process.stdin.write(bytes(MIB))
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n"
        assert 0 < max(memory_of(pid, "VmHWM") for pid in processes_of(server)) < 32 * MIB
    finally:
        process.kill()
        process.communicate()


def test_variables_come_by_an_allow_list(ssh, shared):
    environment = {**os.environ, "LC_TEST": "yes", "LD_PRELOAD_X": "no", "GIT_PROTOCOL": "version=2"}
    words = ssh.words(shared.id, "env", options=("-o", "SendEnv=LC_TEST LD_PRELOAD_X GIT_PROTOCOL", "-o", "SetEnv=PATH=/evil"))
    shown = subprocess.run(words, env=environment, capture_output=True, timeout=PATIENCE).stdout.decode().splitlines()
    assert "LC_TEST=yes" in shown and "GIT_PROTOCOL=version=2" in shown
    assert not [line for line in shown if line.startswith(("LD_PRELOAD_X", "PATH=/evil"))]
    assert [line for line in shown if line.startswith("SSH_CONNECTION=127.0.0.1 ")]


def test_a_command_is_an_execution_with_events(ssh, api, sandbox):
    assert ssh.run(sandbox.id, "exit 3").returncode == 3
    found = until(lambda: [one for one in executions(api, sandbox) if one["state"] not in ("running", "queued")], "its end to be recorded")
    assert found[0]["exitCode"] == 3 and found[0]["kind"] == "job"


def test_a_connection_is_use_of_the_sandbox(ssh, api, tmp_path):
    """One that is connected to, and does nothing, outlives one that was made since and is left alone."""
    held = api.create(timeout={"idle": "30s"})  # a connection is told of every ten
    connection = ssh.start(held.id, options=("-o", f"ControlPath={tmp_path}/c", "-M", "-N"))
    try:
        until(lambda: (tmp_path / "c").exists(), "it to log in")
        alone = api.create(timeout={"idle": "30s"})
        until(lambda: api.get(f"/api/v1/sandboxes/{alone.id}").json.get("state") not in ("idle", "running", "creating"), "a sandbox to end", seconds=2 * PATIENCE)
        assert connection.poll() is None and ssh.run(held.id, "echo alive").stdout == b"alive\n"
    finally:
        connection.kill()
        connection.communicate()
        held.delete()


def test_a_key_tells_when_it_was_used(ssh, api, shared, server, tmp_path):
    other = Ssh(server, tmp_path)
    fingerprint = api.post("/api/v1/ssh-keys", {"publicKey": other.public}).json["fingerprint"]

    def used():
        return next(one for one in api.get("/api/v1/ssh-keys").json["items"] if one["fingerprint"] == fingerprint).get("usedAt")
    assert not used()
    assert other.run(shared.id, "true").returncode == 0
    until(used, "its use to be recorded")
    forget(api, fingerprint)


def test_a_paused_sandbox_is_woken(ssh, api, sandbox):
    assert api.post(f"/api/v1/sandboxes/{sandbox.id}/pause").status == 200
    assert ssh.run(sandbox.id, "echo awake").stdout == b"awake\n"


def test_several_channels_share_a_connection(ssh, shared, tmp_path):
    control = ("-o", f"ControlPath={tmp_path}/c")
    master = ssh.start(shared.id, options=(*control, "-M", "-N"))
    try:
        until(lambda: (tmp_path / "c").exists(), "the master to log in")
        many = [ssh.start(shared.id, f"cat; exit {i}", options=control) for i in range(8)]
        for i, one in enumerate(many):
            assert one.communicate(b"%d" % i, timeout=PATIENCE)[0] == b"%d" % i
            assert one.returncode == i
    finally:
        master.terminate()
        master.communicate(timeout=PATIENCE)


# ---- terminals ----

class Terminal:
    """ssh with a terminal of its own, as a person has it."""

    def __init__(self, words, rows=30, cols=100):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execvp(words[0], words)
        self.resize(rows, cols)
        self.shown = b""

    def resize(self, rows, cols):
        import fcntl
        import struct
        import termios
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, text, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while text.encode() not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if select.select([self.fd], [], [], 1)[0]:
                try:
                    piece = os.read(self.fd, 65536)
                except OSError:
                    piece = b""
                assert piece or text.encode() in self.shown, self.shown
                self.shown += piece
        seen, _, self.shown = self.shown.partition(text.encode())
        return seen

    def look(self, seconds):
        """What it shows within so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if select.select([self.fd], [], [], 0.1)[0]:
                self.shown += os.read(self.fd, 65536)
        return self.shown

    def end(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.close(self.fd)
        return os.waitpid(self.pid, 0)[1]

    def wait(self):
        until(lambda: self.is_over(), "ssh to end")
        os.close(self.fd)
        return os.waitstatus_to_exitcode(self.status)

    def is_over(self):
        if select.select([self.fd], [], [], 0)[0]:
            try:
                self.shown += os.read(self.fd, 65536)
            except OSError:
                pass
        pid, self.status = os.waitpid(self.pid, os.WNOHANG)
        return pid == self.pid


def test_a_shell_has_a_terminal_that_can_be_resized(ssh, shared):
    terminal = Terminal(ssh.words(shared.id))
    terminal.type("stty size; echo $TERM-$((40+2))\n")
    assert b"30 100" in terminal.wait_for("xterm-256color-42")
    terminal.resize(11, 55)
    os.kill(terminal.pid, signal.SIGWINCH)

    def resized():
        terminal.type("echo size $(stty size) $((1+1))end\n")
        return b"size 11 55" in terminal.wait_for("2end")
    until(resized, "the terminal's new size")
    terminal.type("echo sleeps$((1+1)); sleep 1000; echo woken$((2+1))\n")
    terminal.wait_for("sleeps2")

    def interrupted():
        terminal.type("\x03")
        terminal.type("echo back$((1+0))\n")
        return b"back1" in terminal.look(2)
    until(interrupted, "Ctrl-C to end the command")
    terminal.type("exit $((4+1))\n")
    assert terminal.wait() == 5


def test_a_terminal_lives_on_when_its_connection_dies(ssh, api, sandbox):
    terminal = Terminal(ssh.words(sandbox.id))
    terminal.type("echo the-$((6*7)); cd /tmp\n")
    terminal.wait_for("the-42")
    terminal.end()
    shell = next(one for one in executions(api, sandbox) if one["kind"] == "terminal")
    assert shell["state"] == "running"
    assert api.post(f"/api/v1/executions/{shell['id']}/stdin", body=b"echo again-$PWD\nexit 9\n").status == 200
    ended = until(lambda: (now := api.get(f"/api/v1/executions/{shell['id']}").json)["state"] != "running" and now, "the shell to end")
    assert ended["exitCode"] == 9
    assert b"again-/tmp" in api.get(f"/api/v1/executions/{shell['id']}/output").body


# ---- forwards ----

def listen_in(ssh, user, port):
    """A server of the sandbox's that answers what it gets, in capitals."""
    return ssh.start(user, f"exec perl -MIO::Socket::INET -e '$s=IO::Socket::INET->new(LocalAddr=>\"127.0.0.1:{port}\",Listen=>9,ReuseAddr=>1) or die;"
                              "print \"ready\\n\"; $|=1; while($c=$s->accept){next if fork; while(<$c>){print $c uc $_} exit}'")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connected(port):
    try:
        return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    except OSError:
        return None


def test_ports_of_the_sandbox_are_forwarded(ssh, sandbox):
    server = listen_in(ssh, sandbox.id, 7001)
    local, proxy = free_port(), free_port()
    tunnel = ssh.start(sandbox.id, options=("-N", "-L", f"{local}:localhost:7001", "-D", str(proxy)))
    try:
        def answered():
            with connected(local) or socket.socket() as there:
                try:
                    there.sendall(b"hello\n")
                    return there.recv(100) == b"HELLO\n"
                except OSError:
                    return False
        until(answered, "the server in the sandbox")
        with connected(proxy) as there:
            there.sendall(b"\5\1\0")
            assert there.recv(2) == b"\5\0"
            there.sendall(b"\5\1\0\1\x7f\0\0\1" + (7001).to_bytes(2, "big"))
            assert there.recv(10)[1] == 0
            there.sendall(b"by socks\n")
            assert there.recv(100) == b"BY SOCKS\n"
    finally:
        for one in (tunnel, server):
            one.terminate()
            one.communicate(timeout=PATIENCE)


def test_a_port_that_nobody_listens_on_is_refused_and_nothing_else_ends(ssh, shared):
    local = free_port()
    tunnel = ssh.start(shared.id, "echo up; cat", options=("-L", f"{local}:localhost:7099"))
    try:
        assert tunnel.stdout.readline() == b"up\n"
        with connected(local) as there:
            assert there.recv(10) == b""
        tunnel.stdin.write(b"still\n")
        tunnel.stdin.flush()
        assert tunnel.stdout.readline() == b"still\n"
    finally:
        tunnel.terminate()
        assert b"open failed" in tunnel.communicate(timeout=PATIENCE)[1]


def test_remote_forwards_and_agents_are_refused(ssh, shared, tmp_path):
    done = ssh.run(shared.id, "true", options=("-v", "-R", "0:localhost:1", "-o", "ExitOnForwardFailure=yes"))
    assert done.returncode == 255 and b"remote port forwarding failed" in done.stderr
    assert b"Remote: burrow: remote forwarding (-R) is off on this server; its operator may allow it by --ssh-allow remote-forward" in done.stderr
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(tmp_path / "agent"))
        agent.listen()
        threading.Thread(target=lambda: [agent.accept()[0].close() for _ in range(8)], daemon=True).start()  # an agent that knows nothing
        words = ssh.words(shared.id, "echo agent=$SSH_AUTH_SOCK", options=("-v",))
        words[words.index("IdentityAgent=none")] = f"ForwardAgent={tmp_path}/agent"
        done = subprocess.run(words, env={**os.environ, "SSH_AUTH_SOCK": f"{tmp_path}/agent"}, capture_output=True, timeout=PATIENCE)
    assert done.stdout == b"agent=\n"
    assert b"Remote: burrow: agent forwarding (-A) is off on this server; its operator may allow it by --ssh-allow agent" in done.stderr


# ---- other programs ----

def test_an_editors_sequence(ssh, sandbox):
    """What VS Code does: a script by standard input of bash, between markers, which leaves a server behind; then a dynamic forward to it."""
    script = (b"echo 'start-1234'\n"
              b"unset DISPLAY\n"
              b"uname -s; echo platform-done\n"
              b"perl -MIO::Socket::INET -e '$s=IO::Socket::INET->new(LocalAddr=>\"127.0.0.1:7002\",Listen=>9) or die; open STDOUT,\">/dev/null\";"
              b"while($c=$s->accept){print $c \"editor\\n\"; close $c}' </dev/null >/dev/null 2>&1 &\n"
              b"disown; echo 'end-1234'\nexit 0\n")
    done = ssh.run(sandbox.id, "bash", options=("-T",), input=script)
    assert done.returncode == 0 and done.stdout == b"start-1234\nLinux\nplatform-done\nend-1234\n", done
    proxy = free_port()
    tunnel = ssh.start(sandbox.id, "cat", options=("-T", "-D", str(proxy)))
    try:
        def greeted():
            with connected(proxy) or socket.socket() as there:
                try:
                    there.sendall(b"\5\1\0\5\1\0\3\x09127.0.0.1" + (7002).to_bytes(2, "big"))
                    got = b""
                    while piece := there.recv(100):
                        got += piece
                    return got.endswith(b"editor\n")
                except OSError:
                    return False
        until(greeted, "the editor's server")
    finally:
        tunnel.terminate()
        tunnel.communicate(timeout=PATIENCE)


def test_scp_and_sftp_copy_both_ways(ssh, shared, tmp_path):
    place, data = f"{shared.id}@127.0.0.1", os.urandom(3 * MIB)
    (tmp_path / "tree/deep").mkdir(parents=True)
    (tmp_path / "tree/deep/a file").write_bytes(data)
    done = ssh.copy("scp", "-r", tmp_path / "tree", f"{place}:/tmp/copied")
    assert done.returncode == 0, done.stderr
    assert ssh.run(shared.id, "sha256sum </tmp/copied/deep/a\\ file").stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert ssh.copy("scp", "-r", f"{place}:/tmp/copied", tmp_path / "back").returncode == 0
    assert (tmp_path / "back/deep/a file").read_bytes() == data
    (tmp_path / "batch").write_text("cd /tmp\nmkdir sftp-made\nput batch sftp-made/it\nrename sftp-made/it sftp-made/that\nls -l sftp-made\n"
                                    "get sftp-made/that fetched\n")
    done = subprocess.run(["sftp", "-P", str(ssh.port), *ssh.options, "-b", "batch", place], cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "fetched").read_bytes() == (tmp_path / "batch").read_bytes()
    assert ssh.copy("scp", f"{place}:/no/such", tmp_path / "x").returncode != 0


@pytest.fixture
def tools(new):
    """A sandbox with this machine's own programs."""
    return new(runtime="host:latest")


def test_rsync_git_and_the_old_scp_run_what_the_sandbox_has(ssh, tools, tmp_path):
    environment = {**os.environ, "GIT_SSH_COMMAND": ssh.command, "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(tmp_path)}
    place = f"{tools.id}@127.0.0.1"

    def run(*words):
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout
    (tmp_path / "work").mkdir()
    (tmp_path / "work/file").write_bytes(os.urandom(MIB))
    run("git", "init", "-q", "-b", "main", "work")
    run("git", "-C", "work", "-c", "user.name=t", "-c", "user.email=t@t", "add", "file")
    run("git", "-C", "work", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "one")
    assert ssh.run(tools.id, "git init -q --bare -b main /tmp/repository").returncode == 0
    run("git", "-C", "work", "push", "-q", f"ssh://{place}/tmp/repository", "main")
    run("git", "clone", "-q", f"ssh://{place}/tmp/repository", "cloned")
    assert (tmp_path / "cloned/file").read_bytes() == (tmp_path / "work/file").read_bytes()
    run("rsync", "-a", "-e", ssh.command, "work/", f"{place}:/tmp/synced")
    run("rsync", "-a", "-e", ssh.command, f"{place}:/tmp/synced/", "back")
    assert (tmp_path / "back/file").read_bytes() == (tmp_path / "work/file").read_bytes()
    assert ssh.copy("scp", "-O", tmp_path / "work/file", f"{place}:/tmp/old").returncode == 0
    assert ssh.run(tools.id, "cmp /tmp/old /tmp/synced/file").returncode == 0


# ---- through the API ----

def tunnel(ssh, server, sandbox, key, tmp_path):
    """A ProxyCommand in a few lines: standard input and output are a WebSocket."""
    script = tmp_path / "proxy.py"
    script.write_text(f"""
import os, sys, threading
sys.path.insert(0, {str(LIB)!r})
from socket_client import WebSocket
socket = WebSocket({server.port}, "/api/v1/sandboxes/{sandbox.id}/ssh", key={key!r})
def send():
    while data := os.read(0, 65536):
        socket.send(data)
    os._exit(0)
threading.Thread(target=send, daemon=True).start()
while isinstance(got := socket.message(), bytes):
    os.write(1, got) and sys.stdout.flush()
""")
    return ("-o", f"ProxyCommand=/usr/bin/python3 {script}", "-o", f"HostKeyAlias=[127.0.0.1]:{ssh.port}", "-o", "PubkeyAuthentication=no")


def test_a_tunnel_through_the_api_needs_no_key_of_ssh(ssh, server, api, shared, tmp_path):
    options = tunnel(ssh, server, shared, api.key, tmp_path)
    data = os.urandom(4 * MIB)
    done = ssh.run("whoever", "cat; exit 4", options=options, input=data)
    assert done.returncode == 4 and done.stdout == data, done.stderr


def test_a_tunnel_opens_its_own_sandbox_alone(ssh, server, api, shared, new, tmp_path):
    other = new()
    assert ssh.run(shared.id, "echo shared >/tmp/whose").returncode == 0
    done = ssh.run(other.id, "cat /tmp/whose", options=tunnel(ssh, server, shared, api.key, tmp_path))
    assert done.stdout == b"shared\n"
    read_only = api.post("/api/v1/keys", {"name": "reader", "scopes": ["read", "organisation"]}).json
    done = ssh.run(shared.id, "true", options=tunnel(ssh, server, shared, read_only["key"], tmp_path))
    assert done.returncode == 255
    api.delete(f"/api/v1/keys/{read_only['id']}")


# ---- who may ----

def refused(done):
    """As the client tells it, without what differs from one connection to the next."""
    return done.returncode, done.stderr.replace(b"\r", b"").splitlines()[-1].split(b":", 1)[1]


def test_wrong_key_unknown_sandbox_and_ended_sandbox_look_alike(ssh, server, api, new, shared, tmp_path):
    gone = new()
    gone.delete()
    stranger = Ssh(server, tmp_path)
    answers = [refused(stranger.run(shared.id, "true")), refused(ssh.run("sbx_00000000000000000000000000", "true")),
               refused(ssh.run("nobody-is-called-so", "true")), refused(ssh.run(gone.id, "true")), refused(ssh.run("x" * 300, "true")),
               refused(ssh.run("root", "true"))]
    assert answers == [(255, b" Permission denied (publickey).")] * len(answers)


def test_no_password_is_asked_for(ssh, shared):
    done = ssh.run(shared.id, "true", options=("-o", "PubkeyAuthentication=no", "-o", "PreferredAuthentications=password,keyboard-interactive,none", "-v"))
    assert done.returncode == 255 and b"can continue: publickey\r\n" in done.stderr


def test_somebody_elses_sandbox_is_not_there(server, api, shared, tmp_path):
    made = api.post("/api/v1/keys", {"owner": "ssh-carol"}).json
    carol = Client(api.port, made["key"])
    other = Ssh(server, tmp_path)
    assert carol.post("/api/v1/ssh-keys", {"publicKey": other.public}).status == 201
    mine = carol.post("/api/v1/sandboxes", {}).json
    try:
        assert other.run(mine["id"], "echo mine").stdout == b"mine\n"
        assert refused(other.run(shared.id, "true"))[1] == b" Permission denied (publickey)."
        # A connection does not outlive the API key that its SSH key came by.
        held = other.start(mine["id"], "echo up; cat")
        assert held.stdout.readline() == b"up\n"
    finally:
        carol.delete(f"/api/v1/sandboxes/{mine['id']}")
        api.delete(f"/api/v1/keys/{made['id']}")
    assert held.wait(PATIENCE) == 255
    held.communicate()


def test_a_connection_ends_with_its_sandbox(ssh, new):
    sandbox = new()
    held = ssh.start(sandbox.id, "echo up; cat")
    assert held.stdout.readline() == b"up\n"
    sandbox.delete()
    assert held.wait(PATIENCE) != 0
    held.communicate()


def test_a_connection_ends_with_its_key(server, api, shared, tmp_path):
    other = Ssh(server, tmp_path)
    fingerprint = api.post("/api/v1/ssh-keys", {"publicKey": other.public}).json["fingerprint"]
    held = other.start(shared.id, "echo up; cat")
    assert held.stdout.readline() == b"up\n"
    forget(api, fingerprint)
    assert held.wait(PATIENCE) == 255
    held.communicate()
    assert refused(other.run(shared.id, "true"))[1] == b" Permission denied (publickey)."


@pytest.fixture
def lent(server, api, tmp_path):
    """An API key that sees everybody's sandboxes, and an SSH key that it added."""
    made = api.post("/api/v1/keys", {"owner": "ssh-lent", "scopes": ["read", "run", "manage", "organisation"]}).json
    other = Ssh(server, tmp_path)
    assert Client(api.port, made["key"]).post("/api/v1/ssh-keys", {"publicKey": other.public}).status == 201
    yield other, made["id"]
    api.delete(f"/api/v1/keys/{made['id']}")


@pytest.mark.parametrize("change", [{"scopes": ["read", "run", "manage"]}, {"selector": "team=x"}, {"scopes": ["read", "organisation"]}, {"tools": ["sandbox_run"]}],
                         ids=["organisation", "selector", "run", "tools"])
def test_a_connection_does_not_outlive_what_its_key_may_see(api, shared, lent, tmp_path, change):
    """Somebody keeps a connection at hand, for new commands when the key has been narrowed."""
    other, key_id = lent
    control = ("-o", f"ControlPath={tmp_path}/c")
    master = other.start(shared.id, options=(*control, "-M", "-N"))
    try:
        until(lambda: (tmp_path / "c").exists(), "the master to log in")
        assert other.run(shared.id, "echo in", options=control).stdout == b"in\n"
        assert api.patch(f"/api/v1/keys/{key_id}", change).status == 200
        assert master.wait(PATIENCE) == 255
    finally:
        master.kill()
        master.communicate(timeout=PATIENCE)
    assert refused(other.run(shared.id, "true"))[1] == b" Permission denied (publickey)."


def test_a_connection_stays_when_its_key_still_opens_the_sandbox(api, shared, lent):
    other, key_id = lent
    held = other.start(shared.id, "echo up; cat")
    try:
        assert held.stdout.readline() == b"up\n"
        assert api.patch(f"/api/v1/keys/{key_id}", {"scopes": ["read", "run", "organisation"]}).status == 200
        assert other.run(shared.id, "echo again").stdout == b"again\n"
        assert held.communicate(b"still", timeout=PATIENCE)[0] == b"still"
    finally:
        held.kill()
        held.communicate()


def test_an_api_key_for_tools_opens_nothing(server, api, shared, tmp_path):
    """Such a key is for an agent's tools alone: neither does it add SSH keys, nor open one that it added when it was more."""
    made = api.post("/api/v1/keys", {"owner": "ssh-tools", "scopes": ["read", "run", "manage", "organisation"]}).json
    other = Ssh(server, tmp_path)
    try:
        agent = Client(api.port, made["key"])
        assert agent.post("/api/v1/ssh-keys", {"publicKey": other.public}).status == 201
        assert other.run(shared.id, "echo in").stdout == b"in\n"
        assert api.patch(f"/api/v1/keys/{made['id']}", {"tools": ["sandbox_run"]}).status == 200
        assert refused(other.run(shared.id, "true"))[1] == b" Permission denied (publickey)."
        assert agent.post("/api/v1/ssh-keys", {"publicKey": make_key(tmp_path / "next").with_suffix(".pub").read_text()}).status == 403
        assert other.run(shared.id, "true", options=tunnel(other, server, shared, made["key"], tmp_path)).returncode == 255
    finally:
        api.delete(f"/api/v1/keys/{made['id']}")


def test_who_adds_anothers_public_key_gets_nobody_into_his_sandbox(server, api, tmp_path):
    """Mallory adds the victim's public key first, and calls a sandbox as the victim calls hers."""
    made = {name: api.post("/api/v1/keys", {"owner": f"ssh-{name}"}).json for name in ("mallory", "victim")}
    mallory, victim = (Client(api.port, made[name]["key"]) for name in ("mallory", "victim"))
    other = Ssh(server, tmp_path)
    boxes = []
    try:
        for who in (mallory, victim):
            assert who.post("/api/v1/ssh-keys", {"publicKey": other.public}).status == 201
        boxes.append((mallory, mallory.post("/api/v1/sandboxes", {"name": "ssh-lure"}).json["id"]))
        assert refused(other.run("ssh-lure", "true"))[1] == b" Permission denied (publickey).", "a name the victim has not"
        boxes.append((victim, victim.post("/api/v1/sandboxes", {"name": "ssh-lure"}).json["id"]))
        assert refused(other.run("ssh-lure", "true"))[1] == b" Permission denied (publickey).", "a name that both have"
        assert "several owners have added this key" in server.log
        assert other.run(boxes[1][1], "echo hers").stdout == b"hers\n"
        # What mallory does with his own does not end what she has open.
        held = other.start(boxes[1][1], "echo up; cat")
        assert held.stdout.readline() == b"up\n"
        forget(mallory, mallory.get("/api/v1/ssh-keys").json["items"][0]["fingerprint"])
        until(lambda: other.run("ssh-lure", "echo hers").stdout == b"hers\n", "the name to be hers alone")
        assert held.communicate(b"still", timeout=PATIENCE)[0] == b"still"
    finally:
        for who, box in boxes:
            who.delete(f"/api/v1/sandboxes/{box}")
        for one in made.values():
            api.delete(f"/api/v1/keys/{one['id']}")


@pytest.mark.parametrize("options", [("-t", "ecdsa", "-b", "256"), ("-t", "rsa", "-b", "3072")], ids=lambda options: options[1])
def test_keys_of_other_kinds_open_too(server, api, shared, tmp_path, options):
    other = Ssh(server, tmp_path)
    other.key = make_key(tmp_path / "other", *options)
    fingerprint = api.post("/api/v1/ssh-keys", {"publicKey": (tmp_path / "other.pub").read_text()}).json["fingerprint"]
    assert other.run(shared.id, "echo in").stdout == b"in\n"
    forget(api, fingerprint)


@pytest.mark.parametrize("option", ["KexAlgorithms=diffie-hellman-group16-sha512", "Ciphers=aes128-cbc", "MACs=hmac-sha1", "HostKeyAlgorithms=ssh-rsa",
                                    "PubkeyAcceptedAlgorithms=ssh-rsa"])
def test_old_algorithms_are_not_spoken(ssh, shared, option):
    more = ("-o", "Ciphers=aes128-ctr") if option.startswith("MACs") else ()
    done = ssh.run(shared.id, "true", options=("-o", option, *more))
    assert done.returncode == 255


@pytest.mark.parametrize("cipher", ["chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com", "aes256-ctr"])
def test_new_ones_are(ssh, shared, cipher):
    data = os.urandom(MIB)
    assert ssh.run(shared.id, "cat", input=data, options=("-c", cipher, "-o", "RekeyLimit=100K")).stdout == data


# ---- many, and rude ones ----

def test_thirty_at_once(ssh, shared):
    many = [ssh.start(shared.id, f"cat; exit {i}") for i in range(30)]
    for i, one in enumerate(many):
        assert one.communicate(b"%d" % i, timeout=PATIENCE)[0] == b"%d" % i
        assert one.returncode == i


def test_rude_bytes_cost_their_own_connection_alone(ssh, server, shared):
    """Garbage, half a banner, a banner of any length, packets with lengths that lie, everything cut off anywhere."""
    random.seed(7)
    held = ssh.start(shared.id, "echo up; cat")
    assert held.stdout.readline() == b"up\n"
    banner = b"SSH-2.0-rude\r\n"
    lies = [banner + size.to_bytes(4, "big") + bytes(12) for size in (0, 1, 4, 35001, 1 << 20, 0x7fffffff, 0xffffffff)]
    kexinit = b"\x14" + bytes(16) + b"".join((len(x)).to_bytes(4, "big") + x for x in [b"curve25519-sha256", b"ssh-ed25519"] + [b"none"] * 8) + bytes(5)
    packets = [banner + (len(kexinit) + 5).to_bytes(4, "big") + b"\4" + kexinit + bytes(4)]
    packets += [packets[0][:cut] for cut in range(0, len(packets[0]), 17)]
    for sent in [b"", b"\0" * 4096, b"GET / HTTP/1.1\r\n\r\n", b"SSH-", b"SSH-1.5-old\r\n", b"SSH-2.0-" + b"x" * 100000, *lies, *packets,
                 *(banner + random.randbytes(random.randrange(1, 3000)) for _ in range(20)), *(random.randbytes(500) for _ in range(20))]:
        with socket.create_connection(("127.0.0.1", ssh.port), timeout=PATIENCE) as rude:
            try:
                rude.sendall(sent)
                rude.shutdown(socket.SHUT_WR)
                while rude.recv(65536):
                    pass
            except OSError:
                pass
    assert held.communicate(b"still here", timeout=PATIENCE)[0] == b"still here"
    assert ssh.run(shared.id, "echo next").stdout == b"next\n"
    assert "burrow-ssh has crashed" not in server.log


def processes_of(server):
    """All burrow-ssh of this server."""
    pids = []
    for thread in pathlib.Path(f"/proc/{server.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            pids += map(int, (thread / "children").read_text().split())
    return [pid for pid in pids if name_of(pid) == "burrow-ssh"]


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


def memory_of(pid, what="VmRSS"):
    """In bytes; 0: it has just gone."""
    try:
        found = re.search(rf"{what}:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())
    except (FileNotFoundError, ProcessLookupError):
        found = None
    return int(found[1]) * 1024 if found else 0


def process_of(server, ssh, told):
    """The burrow-ssh of a connection, by its $SSH_CONNECTION."""
    ends = f":{ssh.port:04X}", f":{int(told.split()[1]):04X}"
    rows = [line.split() for line in open("/proc/net/tcp")]
    socket = f"socket:[{next(row[9] for row in rows if (row[1][-5:], row[2][-5:]) == ends)}]"
    return next(pid for pid in processes_of(server) if any(os.readlink(one) == socket for one in pathlib.Path(f"/proc/{pid}/fd").iterdir()))


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_what_a_client_sends_is_read_in_large_pieces(ssh, server, shared, tmp_path):
    """libssh asks for 4 KiB; the linker gives it a recv of ours (sshd_socket.c)."""
    held = ssh.start(shared.id, "echo $SSH_CONNECTION; exec cat >/dev/null")
    pid = process_of(server, ssh, held.stdout.readline().decode())
    tracer = subprocess.Popen(["strace", "-qq", "-e", "trace=recvfrom", "-o", tmp_path / "calls", "-p", str(pid)])
    until(lambda: f"TracerPid:\t{tracer.pid}\n" in open(f"/proc/{pid}/status").read(), "strace to be there")
    held.communicate(bytes(4 * MIB), timeout=PATIENCE)
    tracer.wait(PATIENCE)
    assert set(re.findall(r", (\d+), 0, NULL, NULL\)", (tmp_path / "calls").read_text())) == {str(128 << 10)}


def test_the_process_of_a_connection_has_no_rights(ssh, server, shared):
    held = ssh.start(shared.id, "echo up; cat")
    assert held.stdout.readline() == b"up\n"
    pids = processes_of(server)
    assert len(pids) >= 2  # this one's, and those that wait for the next
    for pid in pids:
        def ready():
            status = open(f"/proc/{pid}/status").read()
            return "Seccomp:\t2" in status and status
        status = until(ready, "it to give up its rights")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert fields["Uid"].split() == ["65534"] * 4 and fields["Gid"].split() == ["65534"] * 4 and not fields["Groups"].strip()
        assert {int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        assert fields["NoNewPrivs"] == "1"
        assert os.listdir(f"/proc/{pid}/root/") == []
        for space in ("net", "mnt", "ipc", "uts", "user"):
            assert os.readlink(f"/proc/{pid}/ns/{space}") != os.readlink(f"/proc/self/ns/{space}")
        limits = open(f"/proc/{pid}/limits").read()
        assert "Max processes             0 " in limits and "Max file size             0 " in limits
    held.communicate()


def test_the_host_key_stays_and_is_roots_alone(server, api):
    told = api.get("/api/v1/ssh").json
    place = server.data / "ssh"
    assert (place.stat().st_mode & 0o777, (place / "host_ed25519_key").stat().st_mode & 0o777) == (0o700, 0o600)
    shown = subprocess.run(["ssh-keygen", "-l", "-f", place / "host_ed25519_key.pub"], capture_output=True, text=True).stdout
    assert shown.split()[1] == told["fingerprints"][0] and told["fingerprints"][0] in server.log
    shown = subprocess.run([server.burrow, "doctor", "--json", "--data", server.data], capture_output=True, text=True, timeout=PATIENCE).stdout
    probe = next(one for one in json.loads(shown) if one["name"] == "ssh-host-key")
    assert (probe["state"], probe["detail"]) == ("fine", told["fingerprints"][0])
    assert told["address"].startswith("127.0.0.1:")
