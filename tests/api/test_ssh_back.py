# SPDX-License-Identifier: Apache-2.0
"""What a sandbox may ask the client of SSH for, where the operator allows it: ports that the client answers for (-R), and its agent (-A). A server of its own."""
import contextlib
import os
import re
import select
import shutil
import socket
import socketserver
import subprocess
import threading

import pytest

from client import PATIENCE, until
from ssh import introduced, make_key, serving
from test_ssh import Terminal, memory_of, process_of, processes_of

CONNECT = "timeout 20 bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo hi >&3 && head -1 <&3'"


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("back"), ["--runtime", "host:latest"], allow="remote-forward,agent") as server:
        yield server


@pytest.fixture
def ssh(own, tmp_path):
    return introduced(own, tmp_path)


@pytest.fixture
def box(own):
    sandbox = own.client.create()
    yield sandbox
    sandbox.delete()


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b"client got " + line)


@pytest.fixture
def local():
    """A server of the client's: its port."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


class Master:
    """A connection that stays, for others to share."""

    def __init__(self, ssh, box, place, *options):
        self.ssh, self.box = ssh, box
        self.control = ("-o", f"ControlPath={place}/c")
        self.process = ssh.start(box.id, options=(*self.control, "-M", "-N", *options))
        until(lambda: (place / "c").exists(), "the master to log in")

    def run(self, command, **more):
        return self.ssh.run(self.box.id, command, options=self.control, **more)

    def order(self, what, *options):
        return self.ssh.run(self.box.id, options=(*self.control, "-O", what, *options))

    def end(self):
        self.process.terminate()
        return self.process.communicate(timeout=PATIENCE)[1]


@pytest.fixture
def master(ssh, box, tmp_path):
    masters = []

    def make(*options):
        masters.append(Master(ssh, box, tmp_path, *options))
        return masters[-1]
    yield make
    for one in masters:
        if one.process.poll() is None:
            one.end()


def forward(master, local, port=0):
    """The port in the sandbox."""
    done = master.order("forward", "-R", f"{port}:127.0.0.1:{local}")
    assert done.returncode == 0, done
    return int(done.stdout) if port == 0 else port


# ---- ports ----

def test_a_port_of_the_sandbox_leads_to_the_client_and_goes_with_the_connection(own, ssh, box, local, master):
    connection = master()
    port = forward(connection, local)
    reach = CONNECT.format(port=port)
    assert ssh.run(box.id, reach).stdout == b"client got hi\n"
    other = own.client.create()
    assert ssh.run(other.id, reach).stdout == b"", "it is of one sandbox"
    other.delete()
    with socket.socket() as outside:
        assert outside.connect_ex(("127.0.0.1", port)) != 0, "and not of this machine"
    connection.end()
    until(lambda: ssh.run(box.id, reach).stdout == b"", "the port to be closed")


def test_a_port_can_be_given_back(ssh, box, local, master):
    connection = master()
    forward(connection, local, 7105)
    assert ssh.run(box.id, CONNECT.format(port=7105)).stdout == b"client got hi\n"
    assert connection.order("cancel", "-R", f"7105:127.0.0.1:{local}").returncode == 0
    assert ssh.run(box.id, CONNECT.format(port=7105)).stdout == b""
    assert connection.run("echo still").stdout == b"still\n"
    forward(connection, local, 7105)
    assert ssh.run(box.id, CONNECT.format(port=7105)).stdout == b"client got hi\n"


def test_much_passes_through_it_both_ways(ssh, box, master):
    data = os.urandom(8 << 20)
    with socket.create_server(("127.0.0.1", 0)) as there:
        def answer():
            peer, _ = there.accept()
            got = b""
            while len(got) < len(data) and (piece := peer.recv(1 << 20)):
                got += piece
            peer.sendall(got[::-1])
            peer.close()
        server = threading.Thread(target=answer, daemon=True)
        server.start()
        port = forward(master(), there.getsockname()[1])
        done = ssh.run(box.id, f"exec perl -MIO::Socket::INET -e '$s=IO::Socket::INET->new(\"127.0.0.1:{port}\") or die; local $/; print $s <STDIN>; print <$s>'",
                       input=data)
        assert done.stdout == data[::-1], done.stderr
        server.join(PATIENCE)


@pytest.mark.parametrize("port, why", [(80, b"ports of a sandbox that can be listened on are 1024 to 65535"), (7101, b"somebody in the sandbox listens on port 7101 already")])
def test_ports_that_cannot_be_had_are_refused_with_the_reason(ssh, box, port, why):
    taken = ssh.start(box.id, "exec perl -MIO::Socket::INET -e '$s=IO::Socket::INET->new(LocalAddr=>\"127.0.0.1:7101\",Listen=>1) or die; $|=1; print \"up\\n\"; <STDIN>'")
    try:
        assert taken.stdout.readline() == b"up\n"
        done = ssh.run(box.id, "true", options=("-v", "-o", "ExitOnForwardFailure=yes", "-R", f"{port}:127.0.0.1:1"))
        assert done.returncode == 255 and b"Remote: burrow: " + why in done.stderr
    finally:
        taken.communicate(timeout=PATIENCE)


def test_a_connection_listens_on_so_many_ports(ssh, box):
    def ports(count):
        words = [word for i in range(count) for word in ("-R", f"{7110 + i}:127.0.0.1:1")]
        return ssh.run(box.id, "true", options=("-o", "ExitOnForwardFailure=yes", *words)).returncode
    assert (ports(8), ports(9)) == (0, 255)


FLOOD = """use IO::Socket::INET; $SIG{PIPE} = 'IGNORE'; $| = 1;
for (1..100) { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]", Timeout => 5) or last }
for (1..1000) { my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]", Timeout => 2) or last; push @held, $s; $s->blocking(0); syswrite($s, "x" x 65536); }
print scalar(@held), "\\n"; <STDIN>;"""


def test_who_connects_again_and_again_and_never_reads_costs_its_own_connection_alone(own, ssh, box, local, master):
    connection = master()
    port = forward(connection, local)
    flood = ssh.start(box.id, f"exec perl -e '{FLOOD.replace(chr(39), chr(34))}' {port}")
    try:
        held = int(flood.stdout.readline())
        assert held < 200, "so many wait in the kernel, and so many are let in"
        for i in range(8):  # half of the channels are the client's own
            assert connection.run(f"echo {i}").stdout == b"%d\n" % i
        assert max(memory_of(pid) for pid in processes_of(own)) < 100_000 * 1024
        assert ssh.run(box.id, "echo others").stdout == b"others\n"
    finally:
        flood.communicate(timeout=PATIENCE)
    until(lambda: ssh.run(box.id, CONNECT.format(port=port)).stdout == b"client got hi\n", "there to be room again")


# ---- the agent ----

@pytest.fixture
def agent(tmp_path):
    """An agent of the client's, with one key: its environment and the fingerprint."""
    path = tmp_path / "agent.sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    environment = {**os.environ, "SSH_AUTH_SOCK": str(path)}
    until(path.exists, "the agent")
    key = make_key(tmp_path / "agents")
    subprocess.run(["ssh-add", "-q", key], env=environment, check=True, capture_output=True, timeout=PATIENCE)
    fingerprint = subprocess.run(["ssh-keygen", "-l", "-f", key], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout.split()[1]
    yield environment, fingerprint, key
    process.terminate()
    process.wait(PATIENCE)


def words_with_agent(ssh, box, agent, *command, options=()):
    """-A, with the agent for that alone: it logs in by its own key."""
    words = ssh.words(box.id, *command, options=("-A", *options))
    words[words.index("IdentityAgent=none")] = "ForwardAgent=" + agent[0]["SSH_AUTH_SOCK"]
    return [word for word in words if word != "-A"]


def with_agent(ssh, box, agent, *command, **more):
    return subprocess.run(words_with_agent(ssh, box, agent, *command), env=agent[0], capture_output=True, timeout=PATIENCE, **more)


def test_programs_in_the_sandbox_use_the_clients_agent(ssh, box, agent):
    done = with_agent(ssh, box, agent, "ssh-add -l")
    assert agent[1].encode() in done.stdout, done
    # A signature by the key that never was in the sandbox.
    public = agent[2].with_suffix(".pub").read_text()
    done = with_agent(ssh, box, agent, f"cd /tmp && echo '{public.strip()}' >it.pub && echo signed >it && ssh-keygen -q -Y sign -f it.pub -n file it && cat it.sig")
    assert done.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"), done
    (agent[2].parent / "it.sig").write_bytes(done.stdout)
    checked = subprocess.run(["ssh-keygen", "-Y", "check-novalidate", "-n", "file", "-s", agent[2].parent / "it.sig"], input=b"signed\n",
                             capture_output=True, timeout=PATIENCE)
    assert checked.returncode == 0 and agent[1].encode() in checked.stdout


def test_the_agents_socket_is_the_users_alone_and_goes_with_the_session(ssh, box, agent):
    done = with_agent(ssh, box, agent, "d=$(dirname $SSH_AUTH_SOCK); echo $SSH_AUTH_SOCK; stat -c '%a %U' $d $SSH_AUTH_SOCK; id -un")
    path, directory, sock, user = done.stdout.decode().split("\n")[:4]
    assert re.fullmatch(r"/tmp/ssh-[A-Za-z0-9]{6}/agent", path)
    assert directory == f"700 {user}" and sock.endswith(f"00 {user}")
    until(lambda: ssh.run(box.id, f"ls -d {os.path.dirname(path)}").returncode != 0, "the directory to go")


def test_a_shell_has_the_agent_too(ssh, box, agent):
    os.environ["SSH_AUTH_SOCK"], before = agent[0]["SSH_AUTH_SOCK"], os.environ.get("SSH_AUTH_SOCK")
    terminal = Terminal(words_with_agent(ssh, box, agent))
    os.environ.pop("SSH_AUTH_SOCK") if before is None else os.environ.update(SSH_AUTH_SOCK=before)
    terminal.type("ssh-add -l; exit\n")
    terminal.wait_for(agent[1])
    assert terminal.wait() == 0


def test_an_agents_socket_goes_when_its_connection_is_cut(ssh, own, box, agent):
    held = subprocess.Popen(words_with_agent(ssh, box, agent, "echo $SSH_AUTH_SOCK; cat"), env=agent[0], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    path = held.stdout.readline().decode().strip()
    assert ssh.run(box.id, f"test -S {path}").returncode == 0
    held.kill()
    held.communicate()
    until(lambda: ssh.run(box.id, f"ls -d {os.path.dirname(path)}").returncode != 0, "the directory to go")


def test_who_floods_the_agents_socket_costs_its_own_connection_alone(ssh, box, agent):
    script = ("use IO::Socket::UNIX; for (1..500) { my $s = IO::Socket::UNIX->new(Peer => $ENV{SSH_AUTH_SOCK}, Timeout => 1) or last; $s->blocking(0); syswrite($s, \"x\" x 65536); push @h, $s } "
              "print scalar(@h), \"\\n\"")
    done = with_agent(ssh, box, agent, f"perl -e '{script}'; echo next")
    held, after = done.stdout.split()
    assert int(held) < 200 and after == b"next", done
    assert agent[1].encode() in with_agent(ssh, box, agent, "ssh-add -l").stdout


# What a guest can do to the program that gave the agent's socket its path, and holds it too.
GRAB = """for (glob '/proc/[0-9]*/cmdline') { open my $f, '<', $_ or next; next if (<$f> // '') !~ /^agent-socket/; my ($pid) = /([0-9]+)/;
my $fd = syscall(438, syscall(434, $pid + 0, 0), 0, 0); print $fd < 0 ? 'denied' : 'grabbed', "\\n"; next if $fd < 0; open my $s, '+<&=', $fd; %s }"""
SHUT_DOWN, MADE_TO_WAIT = GRAB % "shutdown($s, 2)", GRAB % "fcntl($s, 4, 0)"


def processor_time(pid):
    return int(open(f"/proc/{pid}/schedstat").read().split()[0])


@pytest.mark.parametrize("attack", [SHUT_DOWN, MADE_TO_WAIT], ids=["shut-down", "made-to-wait"])
def test_who_grabs_the_agents_socket_neither_stops_nor_wakes_the_connection(own, ssh, box, agent, attack):
    held = subprocess.Popen(words_with_agent(ssh, box, agent, "echo $SSH_CONNECTION; ssh-add -l; cat"), env=agent[0], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        pid = process_of(own, ssh, held.stdout.readline().decode())
        assert agent[1].encode() in held.stdout.readline()
        assert ssh.run(box.id, f"perl -e '{attack.replace(chr(39), chr(34))}'").stdout == b"denied\n"
        held.stdin.write(b"still\n")
        held.stdin.flush()
        assert select.select([held.stdout], [], [], PATIENCE)[0] and held.stdout.readline() == b"still\n"

        def is_asleep():
            before = processor_time(pid)
            return ssh.run(box.id, "true").returncode == 0 and processor_time(pid) == before
        until(is_asleep, "it to wait for its client")
    finally:
        held.kill()
        held.communicate()
    until(lambda: not os.path.exists(f"/proc/{pid}"), "its process to end")


def agents(own, sandbox):
    return [one for one in own.client.get(f"/api/v1/sandboxes/{sandbox.id}/executions").json["items"] if one["command"] == ["agent-socket"]]


def first_process(own, ssh, sandbox):
    """PID 1 of it, by its number outside."""
    held = ssh.start(sandbox.id, f"echo up {sandbox.id}; read")
    assert held.stdout.readline()
    parents = {}
    for pid in own.box_processes():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # gone meanwhile
            if f"up {sandbox.id}" in open(f"/proc/{pid}/cmdline").read():
                parents[pid] = int(re.search(r"PPid:\s+(\d+)", open(f"/proc/{pid}/status").read())[1])
    held.communicate(timeout=PATIENCE)
    return next(parent for parent in parents.values() if parent not in parents)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_an_agents_socket_that_is_never_made_keeps_nobody_waiting(own, ssh, box, agent):
    """Of two sandboxes, more sessions wait for their agents than there are workers: the program that makes these is stopped, as whoever is in the sandbox may do to it."""
    other, third = own.client.create(), own.client.create()
    firsts = [word for one in (box, other) for word in ("-p", str(first_process(own, ssh, one)))]
    guest = subprocess.Popen(["strace", "-qq", "-f", "-e", "trace=bind", "-e", "inject=bind:signal=STOP", "-o", "/dev/null", *firsts])
    stuck, before = [], own.log.count("an agent could not be forwarded")
    try:
        until(lambda: all(f"TracerPid:\t{guest.pid}\n" in open(f"/proc/{pid}/status").read() for pid in firsts[1::2]), "strace to be there")
        for one in (box, other):
            stuck += [subprocess.Popen(words_with_agent(ssh, one, agent, "true"), env=agent[0], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(6)]
        until(lambda: all(len(agents(own, one)) >= 4 for one in (box, other)), "them to wait")
        assert ssh.run(third.id, "echo in").stdout == b"in\n"
        assert own.log.count("an agent could not be forwarded") == before, "it has not waited for them"
        assert all(one.poll() is None for one in stuck)
    finally:
        guest.terminate()
        guest.wait(PATIENCE)
        for one in stuck:
            one.kill()
            one.communicate()
        other.delete()
        third.delete()


def test_nobody_gets_an_agent_that_was_not_asked_for(ssh, box, agent):
    done = subprocess.run(ssh.words(box.id, "echo agent=$SSH_AUTH_SOCK; ls -d /tmp/ssh-*"), env=agent[0], capture_output=True, timeout=PATIENCE)
    assert done.stdout == b"agent=\n", done


def test_a_killed_server_leaves_no_agents_socket(ssh, own, box, agent):
    held = subprocess.Popen(words_with_agent(ssh, box, agent, "echo $SSH_AUTH_SOCK; cat"), env=agent[0], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    path = held.stdout.readline().decode().strip()
    assert box.sh(f"test -S {path}").exit_code == 0
    own.listen = f"127.0.0.1:{own.port}"
    own.kill()
    held.communicate(timeout=PATIENCE)
    own.start()
    until(lambda: box.sh(f"ls -d {os.path.dirname(path)}").exit_code != 0, "the directory to go")


# ---- the setting ----

def test_what_cannot_be_allowed_is_told(own, tmp_path):
    done = subprocess.run([own.burrow, "serve", "--data", tmp_path, "--ssh-allow", "agent,x11"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode != 0 and "ssh-allow 'x11' is not known: write remote-forward, agent or both" in done.stderr
