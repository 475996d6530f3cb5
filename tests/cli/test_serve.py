# SPDX-License-Identifier: Apache-2.0
"""burrow serve as a process: starting, keys, signals, the service manager. What it serves is for tests/api."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import stat
import subprocess
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BURROW = pathlib.Path(os.environ.get("BURROW", TOP / "build/src/burrow"))
KEY = "a-key-of-the-tests-0123456789"
PATIENCE = 60

pytestmark = [
    pytest.mark.skipif(not (BURROW.parent / "burrow-server").exists(), reason="burrow-server is not built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="sandboxes need root"),
]


def environment(**more):
    return {**{name: value for name, value in os.environ.items() if not name.startswith("BURROW_")}, **more}


class Server:
    """One server process; logs are JSON, so that they can be asked."""

    def __init__(self, data, *words, **variables):
        self.data, self.out = data, data.with_name(f"out-{time.monotonic_ns()}")
        self.words = [BURROW, "serve", "--data", data, "--runtime", "host:latest", "--parked-one-shot", "0", "--parked-kept", "0",
                      "--listen", "127.0.0.1:0", "--log", "json", *words]
        self.variables = variables

    def __enter__(self):
        self.logs = self.out.with_suffix(".log")
        with self.out.open("wb") as out, self.logs.open("wb") as logs:
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=out, stderr=logs,
                                            env=environment(**self.variables))
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def lines(self):
        text = self.logs.read_text()
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines() if line.startswith("{")]

    def find(self, message, **fields):
        for line in self.lines():
            if line["message"] == message and all(line.get(name) == value for name, value in fields.items()):
                return line
        assert self.process.poll() is None or message.startswith("stop"), self.logs.read_text()
        return None

    def failure(self):
        """Why it did not start: its one line, which is JSON as all others would be."""
        [line] = [json.loads(line) for line in self.logs.read_text().splitlines()]
        assert (line["level"], line["message"]) == ("error", "the server cannot run")
        return line["error"]

    def ready(self):
        wait_until(lambda: self.find("ready"), "the server to be ready")
        return self

    @property
    def port(self):
        [address] = [line["address"] for line in self.lines() if line["message"] == "listening" and "address" in line]
        return int(address.rpartition(":")[2])

    def status(self, key=None, path="/sandbox"):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request("GET", path, headers={"Authorization": f"Bearer {key}"} if key else {})
            return connection.getresponse().status

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def wait_until(is_true, what, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Where data directories are made; all are let go of at the end."""
    directory = tmp_path_factory.mktemp("serve")
    yield directory
    for data in directory.iterdir():
        if data.is_dir():
            subprocess.run([BURROW, "detach", "--data", data], capture_output=True, check=False)
    subprocess.run([TOP / "tools/check-leftovers", "--clear", directory], check=True)


@pytest.fixture(scope="module")
def data(directory):
    """One for tests that do not mind what was there before: attaching a volume takes a second."""
    return directory / "shared"


def key(data, *words):
    return subprocess.run([BURROW, "key", *words], capture_output=True, text=True, timeout=PATIENCE, env=environment(BURROW_DATA=str(data)))


# ---- keys ----

def test_the_first_start_prints_a_key_once(directory):
    data = directory / "first"
    with Server(data) as server:
        server.ready()
        [text] = re.findall(r"^ +(brw_[0-9a-z]{52})$", server.out.read_text(), re.M)
        assert text not in server.logs.read_text()
        assert (server.status(text), server.status(), server.status("brw_wrong")) == (200, 401, 401)
        assert server.stop() == 0
    with Server(data) as server:
        server.ready()
        assert server.out.read_text() == ""
        assert server.status(text) == 200
        assert server.stop() == 0
    [entry] = json.loads(key(data, "list", "--json").stdout)
    assert (entry["name"], entry["admin"]) == ("first", True)
    assert entry["usedAt"]


def test_a_start_that_fails_makes_no_key(directory):
    data = directory / "taken"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Server(data, "--listen", f"127.0.0.1:{port}") as server:
            assert server.process.wait(PATIENCE) == 1
            assert str(port) in server.logs.read_text()
            assert server.out.read_text() == ""
    with Server(data) as server:
        server.ready()
        [text] = re.findall(r"^ +(brw_[0-9a-z]{52})$", server.out.read_text(), re.M)
        assert server.status(text) == 200
    assert len(key(data, "list").stdout.splitlines()) == 2  # with the head


def test_a_runtime_that_nobody_knows_is_refused_at_the_start(directory):
    data = directory / "typo"
    with Server(data, "--runtime", "bsae") as server:
        assert server.process.wait(PATIENCE) == 2
        failure = server.failure()
        assert failure.startswith("--runtime: unknown runtime 'bsae:latest'; did you mean 'base:latest'? known: ")
        assert {"base:latest", "base:bookworm", "host:latest", "node:lts"} <= set(failure.split("known: ")[1].split(", "))
    assert not data.exists()


def test_it_listens_on_localhost(data):
    with Server(data, "--listen", "localhost:0", BURROW_API_KEY=KEY) as server:
        server.ready()
        assert server.status(KEY) == 200


def test_a_key_of_the_environment_takes_the_place_of_the_one_before(directory):
    data = directory / "rotated"
    with Server(data, BURROW_API_KEY=KEY) as server:
        server.ready()
        assert server.out.read_text() == ""
        assert server.status(KEY) == 200
        assert server.stop() == 0
    with Server(data, BURROW_API_KEY=KEY + "-second") as server:
        server.ready()
        assert (server.status(KEY), server.status(KEY + "-second")) == (401, 200)
        assert server.stop() == 0
    with Server(data, BURROW_API_KEY=KEY) as server:  # revoked is revoked
        assert server.process.wait(PATIENCE) == 1
        assert "BURROW_API_KEY: key 'a-ke' has been revoked; choose another one" in server.logs.read_text()
        assert KEY not in server.logs.read_text()


def test_a_key_made_meanwhile_works_at_once_and_a_revoked_one_not_for_long(data):
    with Server(data, BURROW_API_KEY=KEY) as server:
        server.ready()
        made = json.loads(key(data, "create", "--name", "beside", "--json").stdout)
        assert server.status(made["key"]) == 200
        assert key(data, "revoke", made["id"]).returncode == 0
        asked = revoked = time.monotonic()
        while server.status(made["key"]) == 200:
            assert asked < revoked + 1.5, "still let in"  # a second, and the time of asking
            asked = time.monotonic()
        assert server.stop() == 0


def test_without_a_key_it_stays_on_this_machine(directory):
    data = directory / "closed"
    with Server(data, "--listen", "127.0.0.1:0,0.0.0.0:0") as server:
        assert server.process.wait(PATIENCE) == 1
        assert server.failure() == (
            "will not listen on '0.0.0.0:0', which others can reach, without a key: set BURROW_API_KEY, or make one with "
            "'burrow key create', or listen on 127.0.0.1")
    assert not data.exists()
    text = key(data, "create").stdout.strip()
    with Server(data, "--listen", "0.0.0.0:0") as server:
        server.ready()
        assert server.status(text) == 200
        assert server.stop() == 0


@pytest.mark.parametrize("text", ["nineteen-characters", "with a space in its middle"])
def test_a_bad_key_is_refused_before_anything_is_made(directory, text):
    data = directory / "bad-key"
    with Server(data, BURROW_API_KEY=text) as server:
        assert server.process.wait(PATIENCE) == 2
        assert server.failure().startswith("BURROW_API_KEY: a key ")
        assert text not in server.logs.read_text()
    assert not data.exists()


# ---- the local socket ----

def ask_locally(path, uid=0):
    """The status over the socket, asked by a process of this user; an errno's name when it is not let in."""
    code = ("import http.client, socket, sys, os, errno\n"
            f"os.setgroups([]); os.setgid({uid}); os.setuid({uid})\n"
            "c = http.client.HTTPConnection('x')\n"
            "c.sock = socket.socket(socket.AF_UNIX)\n"
            "try:\n    c.sock.connect(sys.argv[1])\n"
            "except OSError as e:\n    print(errno.errorcode[e.errno]); sys.exit()\n"
            "c.request('GET', '/sandbox'); print(c.getresponse().status)")
    return subprocess.run(["/usr/bin/python3", "-c", code, path], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout.strip()


def test_the_local_socket_is_for_root_without_a_key(data):
    with Server(data, BURROW_API_KEY=KEY) as server:
        server.ready()
        path = data / "burrow.sock"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert ask_locally(path) == "200"
        assert ask_locally(path, uid=65534) == "EACCES"
        for folder in [data, *data.parents[:-1]]:  # somebody opens the doors: the kernel still says who comes
            mode = stat.S_IMODE(folder.stat().st_mode)
            if not mode & 0o001:
                folder.chmod(mode | 0o001)
        path.chmod(0o666)
        assert ask_locally(path, uid=65534) == "401"
        data.chmod(0o700)
        assert server.stop() == 0
    assert not path.exists()


def test_a_second_server_is_told_who_has_the_directory(data):
    with Server(data, BURROW_API_KEY=KEY) as server:
        server.ready()
        with Server(data, BURROW_API_KEY=KEY + "-other") as second:
            assert second.process.wait(PATIENCE) == 1
            assert str(server.process.pid) in second.logs.read_text() and str(data) in second.logs.read_text()
        assert server.status(KEY) == 200  # and has changed nothing
        assert ask_locally(data / "burrow.sock") == "200"
        assert server.stop() == 0


# ---- the process ----

def test_it_has_as_many_files_as_it_may_and_survives_closed_pipes(data):
    with Server(data, BURROW_API_KEY=KEY) as server:
        server.ready()
        soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        assert soft == hard
        ignored = int(re.search(r"^SigIgn:\s+(\w+)", pathlib.Path(f"/proc/{server.process.pid}/status").read_text(), re.M)[1], 16)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            assert ignored >> (number - 1) & 1
        assert server.stop() == 0


def test_it_survives_kill_and_takes_its_socket_back(data):
    with Server(data, BURROW_API_KEY=KEY) as server:
        server.ready()
        server.process.kill()
    assert (data / "burrow.sock").exists()
    with Server(data, BURROW_API_KEY=KEY) as server:
        server.ready()
        assert ask_locally(data / "burrow.sock") == "200"
        assert server.stop(signal.SIGINT) == 0
        assert server.find("stopped")


def test_a_second_signal_stops_it_at_once(data):
    with Server(data, BURROW_API_KEY=KEY) as server:
        server.ready()
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as slow:
            slow.sendall(b"POST /sandbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + KEY.encode() +
                         b"\r\nContent-Length: 100\r\n\r\n{")  # a request under way, for which it waits
            wait_until(lambda: server.status(path="/health") == 200, "the next request to be answered")
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: server.find("stopping"), "the stop to begin")
            assert server.stop(signal.SIGTERM) == 1
        assert server.find("stopping at once")


def test_a_long_data_directory_has_its_socket(directory):
    data = directory / ("long-" * 30)
    with Server(data, BURROW_API_KEY=KEY) as server:
        server.ready()
        with open_directory(data) as here:
            assert ask_through(here) == 200
        assert server.stop() == 0
    assert not (data / "burrow.sock").exists()


@contextlib.contextmanager
def open_directory(path):
    fd = os.open(path, os.O_PATH)
    try:
        yield fd
    finally:
        os.close(fd)


def ask_through(fd):
    with contextlib.closing(http.client.HTTPConnection("x", timeout=PATIENCE)) as connection:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(f"/proc/self/fd/{fd}/burrow.sock")
        connection.request("GET", "/sandbox")
        return connection.getresponse().status


# ---- the service manager ----

@pytest.mark.parametrize("is_abstract", [False, True])
def test_it_tells_the_service_manager_how_it_goes(data, tmp_path, is_abstract):
    config = tmp_path / "burrow.yaml"
    config.write_text("BURROW_LOG_LEVEL: info\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = f"\0burrow-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
        manager.bind(name)
        manager.settimeout(PATIENCE)
        with Server(data, "--config", config, BURROW_API_KEY=KEY, NOTIFY_SOCKET=name.replace("\0", "@")) as server:
            assert manager.recv(4096) == b"READY=1"
            assert server.status(KEY) == 200
            config.write_text("BURROW_LOG_LEVEL: debug\n")
            server.process.send_signal(signal.SIGHUP)
            assert re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=\d+", manager.recv(4096))
            assert manager.recv(4096) == b"READY=1"
            assert server.find("settings read again", logLevel="debug")
            config.write_text("BURROW_LOG_LEVL: debug\n")
            server.process.send_signal(signal.SIGHUP)
            assert manager.recv(4096).startswith(b"RELOADING=1")
            assert manager.recv(4096) == b"READY=1"
            assert "did you mean 'BURROW_LOG_LEVEL'?" in server.find("settings not read again")["error"]
            assert server.status(KEY) == 200
            server.process.send_signal(signal.SIGTERM)
            assert manager.recv(4096) == b"STOPPING=1"
            assert server.process.wait(PATIENCE) == 0
