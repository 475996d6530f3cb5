# SPDX-License-Identifier: Apache-2.0
"""libburrow as others use it: the example against the static and the shared library, what they export, and https through burrow-tls."""
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import server as servers  # noqa: E402

TOP, BURROW = servers.TOP, servers.BURROW
BUILD = BURROW.parent
REASON = servers.why_not() or (None if (BUILD / "libburrow.so.1").exists() else "libburrow is not built here")
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
PATIENCE = 120


def plain(**more):
    return {**{name: value for name, value in os.environ.items() if not name.startswith("BURROW_")}, **more}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("lib") / "data")
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.mark.parametrize("library", ["libburrow.a", "libburrow.so.1"])
def test_the_example_runs_with_either_library(server, tmp_path, library):
    program = tmp_path / "hello"
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", f"-I{TOP / 'include'}", TOP / "docs/examples/hello.c", BUILD / library, "-o", program], check=True)
    variables = plain(LD_LIBRARY_PATH=str(BUILD), BURROW_URL=f"http://127.0.0.1:{server.port}", BURROW_API_KEY=server.key)
    done = subprocess.run([program, "sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True, env=variables, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    done = subprocess.run([program, "true"], capture_output=True, env={**variables, "BURROW_API_KEY": "wrong"}, timeout=PATIENCE)
    assert done.returncode == 125 and b"key" in done.stderr


@pytest.mark.parametrize("library", ["libburrow.a", "libburrow.so.1"])
def test_every_part_works_as_the_header_says_and_leaks_nothing(server, tmp_path, library):
    program = tmp_path / "tour"
    subprocess.run(["gcc", "-g", "-Wall", "-Wextra", "-Werror", f"-I{TOP / 'include'}", pathlib.Path(__file__).parent / "libburrow_tour.c", BUILD / library, "-o", program], check=True)
    watched = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=all", "--errors-for-leak-kinds=all"] if shutil.which("valgrind") else []
    done = subprocess.run([*watched, program], capture_output=True, text=True, timeout=PATIENCE,
                          env=plain(LD_LIBRARY_PATH=str(BUILD), BURROW_URL=f"http://127.0.0.1:{server.port}", BURROW_API_KEY=server.key))
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stdout + done.stderr


def test_only_the_interface_is_exported():
    shared = subprocess.run(["nm", "-D", "--defined-only", BUILD / "libburrow.so.1"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in shared.splitlines()]
    assert "burrow_run@@BURROW_1" in names
    assert all(name.startswith("burrow_") and name.endswith("@@BURROW_1") for name in names if name != "BURROW_1")
    static = subprocess.run(["nm", "-g", "--defined-only", BUILD / "libburrow.a"], capture_output=True, text=True, check=True).stdout
    assert all(line.split()[-1].startswith("burrow_") for line in static.splitlines() if " " in line and ":" not in line)


class Terminator(threading.Thread):
    """TLS in front of a server."""

    def __init__(self, context, port):
        super().__init__(daemon=True)
        self.context, self.target = context, port
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.start()

    def run(self):
        while True:
            peer, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        try:
            inside = self.context.wrap_socket(peer, server_side=True)
            outside = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            return
        back = threading.Thread(target=self.copy, args=(outside, inside), daemon=True)
        back.start()
        self.copy(inside, outside)

    @staticmethod
    def copy(from_, to):
        try:
            while data := from_.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    place = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", place / "key.pem", "-out", place / "cert.pem", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return place


def test_https_with_a_certificate_that_is_trusted_and_one_that_is_not(server, certificate, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    front = Terminator(context, server.port)
    variables = plain(HOME=str(tmp_path), BURROW_URL=f"https://localhost:{front.port}", BURROW_API_KEY=server.key, BURROW_CA_FILE=str(certificate / "cert.pem"))

    def burrow(*words, **options):
        return subprocess.run([BURROW, *words], capture_output=True, timeout=PATIENCE, env={**variables, **options.pop("env", {})}, **options)
    assert burrow("create", "--name", "tls").returncode == 0
    data = os.urandom(300000)
    done = burrow("exec", "tls", "cat", input=data)
    assert done.returncode == 0 and done.stdout == data
    assert burrow("delete", "tls", stdin=subprocess.DEVNULL).returncode == 0
    assert burrow("list", env={"BURROW_URL": f"https://127.0.0.1:{front.port}"}).returncode == 0
    refused = burrow("list", env={"BURROW_CA_FILE": "/etc/ssl/certs/ca-certificates.crt"})
    assert refused.returncode == 5 and b"certificate" in refused.stderr
    gone = burrow("list", env={"BURROW_URL": "https://127.0.0.1:1"})
    assert gone.returncode == 5 and b"refused" in gone.stderr


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "cut"])
def test_an_answer_without_a_length_is_whole_where_the_server_says_so(certificate, tmp_path, is_closed):
    """It ends with the connection, which anybody on the way can cut; only the server can close it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        with context.wrap_socket(listening.accept()[0], server_side=True) as peer:
            while not peer.recv(65536).endswith(b"\r\n\r\n"):
                pass
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + b'{"items": []}')
            if is_closed:
                peer.unwrap()
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    variables = plain(HOME=str(tmp_path), BURROW_URL=f"https://localhost:{listening.getsockname()[1]}", BURROW_CA_FILE=str(certificate / "cert.pem"))
    done = subprocess.run([BURROW, "list", "--json"], capture_output=True, timeout=PATIENCE, env=variables)
    thread.join(PATIENCE)
    listening.close()
    if is_closed:
        assert (done.returncode, done.stdout) == (0, b"[]\n"), done.stderr
    else:
        assert done.returncode == 5 and b"in the middle of its answer" in done.stderr, (done.stdout, done.stderr)
