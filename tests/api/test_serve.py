# SPDX-License-Identifier: Apache-2.0
"""burrow serve and burrow key as a program: starting, settings, keys, refusing, stopping."""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest
import server as servers
from client import PATIENCE, Client, check_error, until

KEY = servers.KEY


def serve(*words, environment=None, timeout=60):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BURROW_")}
    return subprocess.run([servers.BURROW, "serve", *words], capture_output=True, text=True, timeout=timeout,
                          env={**clean, **(environment or {})}, stdin=subprocess.DEVNULL)


def key(data, *words):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BURROW_")}
    verb, *rest = words
    return subprocess.run([servers.BURROW, "key", verb, "--data", data, *rest], capture_output=True, text=True, timeout=60, env=clean)


# ---- refusals ----

def test_listening_to_others_needs_a_key(tmp_path):
    """The key that a first start makes is nobody's yet: without one of the user's own it stays on this machine."""
    done = serve("--listen", "0.0.0.0:0", "--data", tmp_path / "d", environment={"BURROW_API_KEY": ""})
    assert done.returncode != 0
    assert "key" in done.stderr and "0.0.0.0" in done.stderr
    assert KEY not in done.stderr


@pytest.mark.parametrize("short", ["x", "1234567890123456789"])
def test_a_short_key_is_refused(tmp_path, short):
    done = serve("--listen", "127.0.0.1:0", "--data", tmp_path / "d", environment={"BURROW_API_KEY": short})
    assert done.returncode != 0
    assert "20" in done.stderr and short not in done.stderr.replace("20", "")


@pytest.mark.parametrize("words", [["--listen", "nonsense"], ["--listen", "127.0.0.1:99999"], ["--listen", "256.0.0.1:1"], ["--nonsense"],
                                   ["--config", "/nonexistent/burrow.yaml"], ["--data"], ["extra"]])
def test_wrong_usage_is_one_sentence(tmp_path, words):
    done = serve(*words, *(["--data", tmp_path / "d"] if "--data" not in words else []), environment={"BURROW_API_KEY": KEY})
    assert done.returncode != 0
    assert done.stderr.startswith("burrow") and len(done.stderr.strip().splitlines()) <= 2


@pytest.mark.parametrize("value, named", [
    ("nonsense", "network-dns: 'nonsense' is no address"),
    ("192.0.2.53, dns.example", "network-dns: 'dns.example' is no address"),
    ("192.0.2.53:99999", "network-dns: '192.0.2.53:99999' is no address"),
    ("192.0.2.53:5x", "network-dns: '192.0.2.53:5x' is no address"),
    ("[::1", "network-dns: '[::1' is no address"),
    (",", "network-dns names no address"),
    ("192.0.2.1,192.0.2.2,192.0.2.3,192.0.2.4", "more than 3 addresses"),
])
def test_whom_names_are_asked_for_must_be_addresses(tmp_path, value, named):
    """Or sandboxes would find out one by one that nothing resolves."""
    for words, environment in ((["--network-dns", value], {}), ([], {"BURROW_NETWORK_DNS": value})):
        done = serve(*words, "--listen", "127.0.0.1:0", "--data", tmp_path / "d", environment={"BURROW_API_KEY": KEY, **environment})
        assert done.returncode != 0
        assert named in done.stderr and len(done.stderr.strip().splitlines()) <= 2, done.stderr
    done = subprocess.run([servers.BURROW, "run", "--data", tmp_path / "d", "--network", "--network-dns", value, "--", "true"], capture_output=True, text=True)
    assert done.returncode == 2 and named in done.stderr


def test_a_port_in_use_is_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = serve("--listen", f"127.0.0.1:{port}", "--data", tmp_path / "d", environment={"BURROW_API_KEY": KEY})
        subprocess.run([servers.BURROW, "detach", "--data", tmp_path / "d"], check=False)
    assert done.returncode != 0 and str(port) in done.stderr


def test_one_data_directory_has_one_server(server):
    done = serve("--listen", "127.0.0.1:0", "--data", server.data, environment={"BURROW_API_KEY": KEY})
    assert done.returncode != 0
    assert str(server.data) in done.stderr
    assert server.client.get("/health").status == 200


def test_help_names_options_and_variables():
    done = serve("--help")
    assert done.returncode == 0
    for word in ("--listen", "--data", "--config", "BURROW_LISTEN", "BURROW_DATA", "BURROW_API_KEY", "examples:"):
        assert word in done.stdout, word


# ---- settings ----

def test_a_first_start_makes_a_key_and_shows_it_once(own_server):
    server = own_server(key=None)
    [shown] = set(re.findall(r"brw_[A-Za-z0-9]{52}", server.log))
    assert Client(server.port, shown).get("/sandbox").status == 200
    check_error(Client(server.port, KEY).get("/sandbox"), 401, "UNAUTHORIZED")
    assert server.stop() == 0
    for path in server.data.iterdir():
        if path.is_file() and path.name != "volume.img":
            assert shown.encode() not in path.read_bytes()
    server.start()
    assert not re.search(r"brw_[A-Za-z0-9]{52}", server.log)
    assert Client(server.port, shown).get("/sandbox").status == 200
    server.key = shown
    server.end()


def test_a_data_directory_it_makes_is_its_own(tmp_path):
    server = servers.Server(tmp_path / "first", options=["--runtime", "host:latest"])
    server.data = tmp_path / "made"
    try:
        server.start()
        assert server.data.stat().st_mode & 0o777 == 0o700
        assert server.client.create_one_shot("echo", "x").first().stdout == b"x\n"
        server.end()
    finally:
        server.abandon()


def test_settings_come_from_a_file(tmp_path):
    config = tmp_path / "burrow.yaml"
    server = servers.Server(tmp_path / "data")
    config.write_text(f"BURROW_LISTEN: 127.0.0.1:0\nBURROW_DATA: {server.data}\nBURROW_API_KEY: {KEY}\nBURROW_LOG: json\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BURROW_")}
    with server.log_path.open("wb") as log:
        server.process = subprocess.Popen([servers.BURROW, "serve", "--config", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env=clean)
    try:
        until(server.is_listening, "it to listen")
        assert server.client.get("/sandbox").status == 200
        assert all(json.loads(line) for line in server.log.splitlines())
        assert server.stop() == 0
        server.detach()
    finally:
        server.abandon()


@pytest.mark.parametrize("text", ["BURROW_LISTEN: [1, 2]\n", "BURROW_NONSENSE: 1\n", "BURROW_LISTEN: a\nBURROW_LISTEN: b\n", "\tx: y\n", "{",
                                  "BURROW_MEMORY: lots\n"])
def test_a_bad_file_is_refused_with_its_place(tmp_path, text):
    config = tmp_path / "burrow.yaml"
    config.write_text(text)
    done = serve("--config", config, "--data", tmp_path / "d", environment={"BURROW_API_KEY": KEY})
    assert done.returncode != 0 and "burrow.yaml" in done.stderr
    assert not (tmp_path / "d").exists()


def test_limits_come_from_settings(own_server):
    server = own_server(options=["--max-sandboxes", "3", "--output-limit", "64Ki", "--idle-timeout", "1h", "--region", "here", "--memory", "100Mi",
                                 "--public-url", "https://sandboxes.example"])
    made = [server.client.create() for _ in range(3)]
    answer = server.client.post("/sandbox", {})
    check_error(answer, 429, "CAPACITY")
    assert "retry-after" not in answer.headers
    made[0].delete()
    started = server.client.create_one_shot("head", "-c", "200000", "/dev/zero")
    assert started.made["stdoutStreamUrl"].startswith("https://sandboxes.example/stream/stream_")
    state = server.client.wait_execution(started.execution_id)
    assert state["outputTruncated"] is True
    assert len(server.client.read("/stream/" + started.made["stdoutStreamUrl"].rsplit("/", 1)[1])) == 64 << 10
    assert server.client.get("/cli/region").data[0]["region"] == "here"
    assert made[1].run("python3", "-c", "x = bytearray(200 << 20)").exit_code == 137
    server.end()


# ---- the local socket ----

class Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(self.path))


def test_the_local_socket_needs_no_key(server):
    connection = Local(server.data / "burrow.sock")
    connection.request("GET", "/sandbox")
    answer = connection.getresponse()
    assert answer.status == 200
    connection.close()


def test_a_data_directory_with_a_long_name_works(tmp_path, own_server):
    data = tmp_path / ("d" * 100) / ("e" * 60)
    server = servers.Server(data)
    try:
        server.start()
        assert server.client.create_one_shot("echo", "x").first().stdout == b"x\n"
        server.end()
    finally:
        server.abandon()


DYING = """
import fcntl, os, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
file.write(str(os.getpid()))
file.flush()
if os.fork() == 0:  # has the lock for as long as its input is open
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_server_that_is_dying_is_waited_for(tmp_path):
    """It is still there for kill(2), since nobody has collected it, and something of it has the lock."""
    server = servers.Server(tmp_path / "data")
    with subprocess.Popen([sys.executable, "-c", DYING, server.data / "server.lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as dying:
        assert dying.stdout.readline() == b"held\n"
        until(lambda: servers.state_of(pathlib.Path("/proc", str(dying.pid))) == "Z", "it to be dying")
        try:
            server.launch()
            until(lambda: "waiting for a server that is ending" in server.log, server.log)
            dying.stdin.close()
            until(server.is_listening, "the lock to be free")
            until(server.is_healthy, "the server to be healthy")
            server.end()
        finally:
            server.abandon()


def test_a_server_that_lives_is_named_at_once(server):
    second = subprocess.run([servers.BURROW, "serve", "--listen", "127.0.0.1:0", "--data", server.data], capture_output=True, text=True,
                            env={**os.environ, "BURROW_API_KEY": KEY}, timeout=PATIENCE)
    assert second.returncode == 1 and f"another server (pid {server.pid})" in second.stderr
    assert "waiting" not in second.stderr


def test_mistakes_at_the_start_have_a_way_out(server, tmp_path):
    def start(*words):
        return subprocess.run([servers.BURROW, "serve", "--data", tmp_path / "data", *words], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, "BURROW_API_KEY": KEY})
    try:
        taken = start("--listen", f"127.0.0.1:{server.port}")
        assert taken.returncode == 1 and "another program has it: choose another with --listen" in taken.stderr
        assert taken.stderr.count("fewer connections at once") <= 1
        unknown = start("--listen", "127.0.0.1:0", "--runtime", "nosuch")
        assert unknown.returncode == 2 and "nosuch" in unknown.stderr
    finally:
        subprocess.run([servers.BURROW, "detach", "--data", tmp_path / "data"], timeout=PATIENCE, check=True)


# ---- keys ----

def test_keys_are_made_listed_and_revoked_while_the_server_runs(server, api):
    made = key(server.data, "create", "--name", "for tests")
    assert made.returncode == 0, made.stderr
    [text] = re.findall(r"brw_[A-Za-z0-9]{52}", made.stdout)
    assert Client(server.port, text).get("/sandbox").status == 200
    listed = key(server.data, "list")
    assert "for tests" in listed.stdout and text not in listed.stdout
    assert key(server.data, "revoke", text[:12]).returncode == 0
    until(lambda: Client(server.port, text).get("/sandbox").status == 401, "the key to be refused", 10)
    assert key(server.data, "revoke", text[:12]).returncode != 0
    assert key(server.data, "revoke", "brw_nobody").returncode != 0


def test_keys_can_be_made_before_the_first_start(tmp_path):
    made = key(tmp_path / "d", "create", "--name", "early")
    assert made.returncode == 0, made.stderr
    [text] = re.findall(r"brw_[A-Za-z0-9]{52}", made.stdout)
    server = servers.Server(tmp_path / "d", key=None)
    try:
        server.start()
        server.key = text
        assert server.client.get("/sandbox").status == 200
        server.end()
    finally:
        server.abandon()


def test_wrong_usage_of_keys_is_one_sentence(tmp_path):
    for words in (["nonsense"], ["revoke"], ["create", "extra"]):
        done = key(tmp_path / "d", *words)
        assert done.returncode == 2 and done.stderr.startswith("burrow: "), done


# ---- stopping ----

def test_a_stopped_server_leaves_sandboxes_alive_and_finds_them_again(own_server):
    server = own_server()
    sandbox = server.client.create()
    sandbox.write_all({"kept": "yes"})
    started = sandbox.execute("sh", "-c", "echo before; until [ -e go ]; do sleep 0.02; done; echo after; exit 3")
    job = sandbox.job("sleep", "600")
    assert server.stop() == 0
    assert server.box_processes(), "its boxes ended with the server"
    server.start()
    sandbox.client = server.client
    assert sandbox.status()["status"] == "running"
    assert sandbox.job_state(job["jobId"])["status"] == "running"
    sandbox.release()
    state = server.client.wait_execution(started["executionId"])
    assert state["exitCode"] == 3
    assert server.client.read(re.sub(r"^http://[^/]+", "", started["stdoutStreamUrl"])) == b"before\nafter\n"
    assert sandbox.read("kept").body == b"yes"
    server.end()


def detach(server, *words):
    return subprocess.run([servers.BURROW, "detach", "--data", server.data, *words], capture_output=True, text=True, timeout=60)


def test_sandboxes_of_a_stopped_server_can_be_ended_and_keep_their_files(own_server):
    server = own_server(options=["--parked-one-shot", "0", "--parked-kept", "0"])
    busy, paused = server.client.create(), server.client.create()
    for sandbox in (busy, paused):
        sandbox.write_all({"kept": sandbox.id})
    started = busy.execute("sleep", "600")
    assert server.client.post(f"/sandbox/{paused.id}/pause").status < 300
    for words in ([], ["--end-sandboxes"]):  # the server before its sandboxes
        refused = detach(server, *words)
        assert refused.returncode == 1 and "a server has the data directory" in refused.stderr
    assert refused.stderr == f"burrow: a server has the data directory '{server.data}' (process {server.pid}): stop it first\n"
    assert busy.status()["status"] == "running"
    assert server.stop() == 0
    refused = detach(server)
    assert refused.returncode == 1
    assert "running sandboxes: process " in refused.stderr and "('sleep')" in refused.stderr and "control group" not in refused.stderr
    done = detach(server, "--end-sandboxes")
    assert (done.returncode, done.stderr) == (0, "")
    assert not server.left_over()
    server.start()  # as after a power cut
    assert server.client.wait_execution(started["executionId"])["status"] == "failed"
    for sandbox in (busy, paused):
        sandbox.client = server.client
        assert sandbox.read("kept").body == sandbox.id.encode()
    assert busy.sh("cat kept").exit_code == 0
    server.end()


def test_requests_under_way_are_finished_when_it_stops(own_server):
    server = own_server()
    sandbox = server.client.create()
    sandbox.execute("sleep", "600")
    from client import Raw
    with Raw(server.port) as raw:
        raw.send(f"GET /sandbox/status/{sandbox.id}?waitForStatus=idle&waitMs=290000 HTTP/1.1\r\nHost: x\r\n"
                 f"Authorization: Bearer {server.key}\r\n\r\n".encode())
        until(lambda: server.client.get("/health").status == 200, "the poll to be there")
        assert server.stop() == 0
        seen = raw.all()  # its present state, a 503, or nothing: but not for ever
        assert not seen or seen.startswith((b"HTTP/1.1 200", b"HTTP/1.1 503"))
    server.start()
    server.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(own_server, number):
    server = own_server()
    server.process.send_signal(number)
    assert server.process.wait(PATIENCE) == 0
    assert not (server.data / "burrow.sock").exists()
    server.detach()
    assert not servers.until_nothing(server.left_over)


def test_it_tells_systemd_when_it_is_ready(tmp_path):
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(path))
        notify.settimeout(PATIENCE)
        server = servers.Server(tmp_path / "d", environment={"NOTIFY_SOCKET": str(path)})
        try:
            server.start()
            assert b"READY=1" in notify.recv(4096)
            server.process.send_signal(signal.SIGTERM)
            assert b"STOPPING=1" in notify.recv(4096)
            assert server.process.wait(PATIENCE) == 0
            server.detach()
        finally:
            server.abandon()


def test_logs_can_be_json(own_server):
    server = own_server(environment={"BURROW_LOG": "json"})
    lines = [json.loads(line) for line in server.log.splitlines()]
    assert lines and all(isinstance(line, dict) for line in lines)
    server.end()


# ---- rights ----

GIVEN_UP = {"LINUX_IMMUTABLE": 9, "NET_BROADCAST": 11, "NET_RAW": 13, "IPC_LOCK": 14, "IPC_OWNER": 15, "SYS_MODULE": 16, "SYS_RAWIO": 17,
            "SYS_PACCT": 20, "SYS_BOOT": 22, "SYS_TIME": 25, "SYS_TTY_CONFIG": 26, "LEASE": 28, "AUDIT_CONTROL": 30, "MAC_OVERRIDE": 32,
            "MAC_ADMIN": 33, "SYSLOG": 34, "WAKE_ALARM": 35, "BLOCK_SUSPEND": 36, "AUDIT_READ": 37, "PERFMON": 38, "BPF": 39,
            "CHECKPOINT_RESTORE": 40}


def status_of(path):
    return dict(line.split(":\t", 1) for line in path.read_text().splitlines() if ":\t" in line)


def test_a_server_keeps_only_the_rights_that_boxes_need(server):
    """Every thread, so that whoever takes over one gets no more."""
    pid = server.pid
    seen = 0
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        status = status_of(thread / "status")
        for field in ("CapBnd", "CapPrm", "CapEff"):
            has = int(status[field], 16)
            assert [name for name, number in GIVEN_UP.items() if has & 1 << number] == [], (thread, field)
        assert int(status["CapInh"], 16) == 0 and int(status["CapAmb"], 16) == 0
        assert status["NoNewPrivs"].strip() == "1"
        seen += 1
    assert seen > 2
