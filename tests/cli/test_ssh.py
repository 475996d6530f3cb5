# SPDX-License-Identifier: Apache-2.0
"""burrow ssh, ssh-proxy and ssh-config: the machine's own ssh, scp and sftp through the API of a real server that has no port of SSH open."""
import os
import shlex
import socket
import subprocess

import pytest

import test_commands
from test_commands import Cli, PATIENCE, REASON, servers

pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("ssh") / "data")
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("a home")
    (home / ".ssh").mkdir(mode=0o700)
    return home


@pytest.fixture(scope="module")
def burrow(server, home):
    return Cli(home, BURROW_DATA=str(server.data), SSH_AUTH_SOCK="")


@pytest.fixture(scope="module")
def work(burrow):
    made = burrow.json("create", "--name", "work", "--idle-timeout", "0")
    yield made["sandboxId"]
    burrow("delete", "work", "--confirm")


def config(burrow, home, *words):
    """A configuration as the user would have it, in a file of its own: ssh looks for the default one in the real home."""
    path = home / "ssh config"
    path.write_text(burrow.text("ssh-config", *words))
    return path


def stock(burrow, path, program, *words, **options):
    plain = {} if "input" in options else {"stdin": subprocess.DEVNULL}
    return subprocess.run([program, "-F", str(path), *map(str, words)], timeout=PATIENCE, env=burrow.environment,
                          **{**plain, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})


# ---- burrow ssh ----

def test_a_command_runs_with_its_exit_code_and_its_bytes(burrow, work):
    assert burrow.text("ssh", "work", "echo", "hello").strip() == "hello"
    assert burrow.text("ssh", work, "echo 'a  b' | tr a-z A-Z; id -un >&2") == "A  B\n"
    burrow("ssh", "work", "exit 42", code=42)
    data = os.urandom(300_000)
    assert burrow("ssh", "work", "cat", input=data).stdout == data


def test_no_key_but_the_apis_is_needed_and_nothing_is_asked(burrow, work, home):
    assert not list((home / ".ssh").iterdir())
    done = burrow("ssh", "work", "true")
    assert done.stdout == b"" and b"authenticity" not in done.stderr


def test_the_server_is_known_by_the_keys_that_the_api_tells(burrow, work, server):
    said = [word for word in shlex.split(burrow.text("ssh", "work", "--show")) if word.startswith("UserKnownHostsFile")]
    path = said[0].split("=", 1)[1].strip('"')
    keys = server.client.get("/api/v1/ssh").json["hostKeys"]
    with open(path) as file:
        assert file.read() == "".join(f"burrow {key}\n" for key in keys)
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_another_host_key_is_refused(burrow, home, work, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    other = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    (tmp_path / "known").write_text(f"burrow {other}\n")
    text = config(burrow, home).read_text()
    line = next(line for line in text.splitlines() if "UserKnownHostsFile" in line)
    path = tmp_path / "config"
    path.write_text(text.replace(line, f"    UserKnownHostsFile {tmp_path}/known"))
    done = stock(burrow, path, "ssh", "work.burrow", "true")
    assert done.returncode == 255 and b"Host key verification failed" in done.stderr, done


def test_the_command_can_be_shown_and_run_by_hand(burrow, work):
    shown = burrow.text("ssh", "work", "--show", "--", "echo", "one two")
    words = shlex.split(shown)
    assert words[0] == "ssh" and words[-2:] == ["echo", "one two"] and words[words.index("-l") + 1] == work
    assert "BURROW_API_KEY" not in shown
    done = subprocess.run(["sh", "-c", shown], capture_output=True, timeout=PATIENCE, env=burrow.environment, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, b"one two\n"), done


def test_by_address_and_key_and_the_key_is_in_no_argument(burrow, work, server, tmp_path):
    cli = Cli(tmp_path / "home", SSH_AUTH_SOCK="")
    url = f"http://127.0.0.1:{server.port}"
    assert cli.text("ssh", "--url", url, "--api-key", server.key, "work", "echo", "there") == "there\n"
    assert server.key not in cli.text("ssh", "--url", url, "--api-key", server.key, "work", "--show")
    wrong = cli.error("ssh", "--url", url, "--api-key", "brw_" + "x" * 52, "work", "true", code=125)
    assert "key" in wrong and "Permission" not in wrong


def test_what_is_not_there_is_told_before_ssh_starts(burrow):
    assert "no-such-sandbox" in burrow.error("ssh", "no-such-sandbox", "true", code=125)
    assert "no-such-sandbox" in burrow.error("ssh-config", "no-such-sandbox", code=3)


def test_without_ssh_on_the_machine_it_says_what_to_do(burrow, work, home):
    done = subprocess.run([test_commands.BURROW, "ssh", "work", "true"], capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                          env={**burrow.environment, "PATH": str(home)})
    assert done.returncode == 125 and b"install openssh-client" in done.stderr and b"burrow attach" in done.stderr


LISTEN = ('$|=1; $s=IO::Socket::INET->new(LocalAddr=>"127.0.0.1:8765",Listen=>9,ReuseAddr=>1) or die; print "up\\n";'
          'while($c=$s->accept){sysread($c,$b,4096); print $c "HTTP/1.0 200 OK\\r\\n\\r\\ninside\\n"; close $c}')


def test_a_port_is_led_into_the_sandbox(burrow, work):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [test_commands.BURROW, "ssh", "-L", f"127.0.0.1:{port}:localhost:8765", "work", f"exec perl -MIO::Socket::INET -e {shlex.quote(LISTEN)}"]
    leading = subprocess.Popen(words, env=burrow.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert leading.stdout.readline() == b"up\n", leading.stderr.read()
        done = subprocess.run(["curl", "-sf", f"http://127.0.0.1:{port}/"], capture_output=True, timeout=PATIENCE)
        assert done.stdout == b"inside\n", done
    finally:
        leading.kill()
        leading.communicate(timeout=PATIENCE)


# ---- ssh-config ----

def test_plain_ssh_scp_and_sftp_find_sandboxes_by_name(burrow, home, work, tmp_path):
    path = config(burrow, home)
    done = stock(burrow, path, "ssh", "work.burrow", "echo", "plain")
    assert (done.returncode, done.stdout) == (0, b"plain\n"), done
    (tmp_path / "there").write_bytes(os.urandom(200_000))
    for options in ([], ["-O"]):
        done = stock(burrow, path, "scp", *options, tmp_path / "there", "work.burrow:/tmp/there")
        assert done.returncode == 0, done
        done = stock(burrow, path, "scp", *options, f"{work}.burrow:/tmp/there", tmp_path / "back")
        assert done.returncode == 0, done
        assert (tmp_path / "back").read_bytes() == (tmp_path / "there").read_bytes()
        (tmp_path / "back").unlink()
    done = stock(burrow, path, "sftp", "-b", "-", "work.burrow", input=b"ls -l /tmp/there\n")
    assert done.returncode == 0 and b"/tmp/there" in done.stdout, done
    assert stock(burrow, path, "ssh", "none-such.burrow", "true").returncode == 255


def test_a_block_for_one_sandbox_names_it(burrow, home, work):
    text = burrow.text("ssh-config", "work")
    assert text.startswith("Host work.burrow\n") and f"User {work}\n" in text
    path = config(burrow, home, "work")
    assert stock(burrow, path, "ssh", "work.burrow", "exit 7").returncode == 7


def test_one_connection_serves_many_sessions(burrow, home, work, tmp_path):
    path = config(burrow, home)
    shared = ["-o", f"ControlPath={tmp_path}/s", "-o", "ControlMaster=auto", "-o", "ControlPersist=60"]
    try:
        for number in range(3):
            done = stock(burrow, path, "ssh", *shared, "work.burrow", "echo", number, stderr=subprocess.DEVNULL)
            assert (done.returncode, done.stdout) == (0, f"{number}\n".encode()), done
    finally:
        stock(burrow, path, "ssh", *shared, "-O", "exit", "work.burrow")


# ---- ssh-proxy ----

def test_the_proxy_carries_bytes_and_ends_with_either_side(burrow, work):
    done = burrow("ssh-proxy", "work.burrow", input=b"")
    assert done.stdout == b"" or done.stdout.startswith(b"SSH-2.0-")
    proxy = subprocess.Popen([test_commands.BURROW, "ssh-proxy", "work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=burrow.environment)
    assert proxy.stdout.readline().startswith(b"SSH-2.0-")
    proxy.stdin.write(b"this is no SSH\r\n" * 1000)
    try:
        proxy.stdin.flush()
    except BrokenPipeError:
        pass
    assert proxy.wait(PATIENCE) in (0, 5), "the server hangs up on who does not speak SSH"
    for pipe in (proxy.stdin, proxy.stdout, proxy.stderr):
        try:
            pipe.close()
        except BrokenPipeError:
            pass
    assert "no-such" in burrow.error("ssh-proxy", "no-such", code=3)


# ---- lines of the page that the commands are named after ----

def test_the_lines_of_the_seed_page_work(burrow, work):
    burrow("exec", "work", "--", "mkdir", "-p", "/workspace/there")
    assert burrow.text("cloud", "ssh", work, input=b"echo in a shell; exit 3\n", code=3) == "in a shell\n"
    assert "there" in burrow.text("cloud", "ssh", work, "ls -la /workspace")
    assert burrow.text("cloud", "ssh", work, "--show").startswith("ssh ")
