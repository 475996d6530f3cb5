# SPDX-License-Identifier: Apache-2.0
"""For tests of exposed ports: sandboxes with a web server in them, and requests to it from outside."""
import http.client
import os
import pathlib
import socket
import urllib.parse

from client import PATIENCE, Answer, Raw, base64_of, until

SOURCE = (pathlib.Path(__file__).parent / "inner_server.py").read_text()
PORT = 3000


def own_range(width=100, place=0):
    """Ports of this machine that no other test run uses, as far as can be told by the process."""
    first = 21000 + (os.getpid() * 7 + place) % 80 * 100
    return f"{first}-{first + width - 1}"


def serve(sandbox, port=PORT, address="127.0.0.1"):
    """Starts the server in a sandbox, beside its other commands; returns when it listens there."""
    sandbox.write_all({"inner_server.py": SOURCE})
    job = sandbox.job("python3", "inner_server.py", str(port), address)
    check = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"
    until(lambda: sandbox.run("python3", "-c", check, address, str(port)).exit_code == 0, "the server in the sandbox to listen")
    return job


def with_server(new, **fields):
    """A sandbox whose port is exposed and has a server behind it."""
    fields.setdefault("network", {"port": PORT})
    fields.setdefault("timeout", {"idle": "1h"})
    sandbox = new(**fields)
    serve(sandbox)
    return sandbox


def place(url):
    parts = urllib.parse.urlsplit(url)
    return parts.hostname, parts.port


def fetch(url, path="/", method="GET", body=None, headers=None, timeout=PATIENCE):
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection(*place(url), timeout=timeout)
    try:
        connection.request(method, path, body=body, headers=headers or {}, encode_chunked=hasattr(body, "__next__"))
        response = connection.getresponse()
        return Answer(response.status, response.getheaders(), response.read())
    finally:
        connection.close()


def raw(url):
    host, port = place(url)
    return Raw(port, host)


def is_reached(url):
    """Whether anybody answers there."""
    try:
        with socket.create_connection(place(url), timeout=PATIENCE) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return connection.recv(1) != b""
    except OSError:
        return False


class WebSocket:
    """A client that sends masked frames."""

    def __init__(self, url, host="x", headers=""):
        self.raw = raw(url)
        self.raw.send(f"GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
                      f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {base64_of(b'0123456789abcdef')}\r\n{headers}\r\n".encode())
        self.response = self.raw.response()

    def send(self, data, opcode=2):
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big") if len(data) < 65536 \
            else b"\xff" + len(data).to_bytes(8, "big")
        self.raw.send(bytes([0x80 | opcode]) + size + b"\0\0\0\0" + data)

    def receive(self):
        head = self.read(2)
        length = head[1]
        if length == 126:
            length = int.from_bytes(self.read(2), "big")
        elif length == 127:
            length = int.from_bytes(self.read(8), "big")
        return head[0] & 15, self.read(length)

    def read(self, length):
        data = b""
        while len(data) < length:
            piece = self.raw.reader.read1(length - len(data))
            assert piece, "the connection ended"
            data += piece
        return data

    def close(self):
        self.raw.close()
