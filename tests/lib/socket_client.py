# SPDX-License-Identifier: Apache-2.0
"""A small WebSocket client (RFC 6455) for tests, of the standard library alone; also for rude ones."""
import base64
import hashlib
import json
import os
import struct

from client import Raw

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The answer was not 101."""

    def __init__(self, status, headers, body):
        super().__init__(f"{status} {body[:500]!r}")
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


def frame(opcode, data, is_final=True, is_masked=True, bits=0):
    head = bytes([(0x80 if is_final else 0) | bits | opcode])
    mask = 0x80 if is_masked else 0
    if len(data) < 126:
        head += bytes([mask | len(data)])
    elif len(data) < 65536:
        head += bytes([mask | 126]) + struct.pack(">H", len(data))
    else:
        head += bytes([mask | 127]) + struct.pack(">Q", len(data))
    if not is_masked:
        return head + data
    key = os.urandom(4)
    pad = (key * (len(data) // 4 + 1))[:len(data)]
    return head + key + (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(len(data), "big")


class WebSocket:
    """Connects at once. Refused: the server said something else than 101."""

    def __init__(self, port, path, key=None, headers=None, protocols=None, origin=None, host="127.0.0.1"):
        self.raw = Raw(port, host)
        nonce = base64.b64encode(os.urandom(16)).decode()
        lines = {"Host": f"{host}:{port}", "Connection": "Upgrade", "Upgrade": "websocket",
                 "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": nonce}
        if key:
            lines["Authorization"] = f"Bearer {key}"
        if protocols:
            lines["Sec-WebSocket-Protocol"] = ", ".join(protocols)
        if origin:
            lines["Origin"] = origin
        lines.update(headers or {})
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
        self.raw.send(f"GET {path} HTTP/1.1\r\n{text}\r\n".encode())
        self.file = self.raw.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        while line := self.file.readline().strip():
            name, value = line.decode().split(":", 1)
            self.headers[name.lower()] = value.strip()
        if self.status != 101:
            raise Refused(self.status, self.headers, self.file.read(int(self.headers.get("content-length", 0))))
        wanted = hashlib.sha1((nonce + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        assert self.headers["sec-websocket-accept"] == base64.b64encode(wanted).decode()
        assert self.headers["connection"].lower() == "upgrade" and self.headers["upgrade"].lower() == "websocket"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.raw.close()

    def send(self, data):
        """Text or bytes."""
        is_text = isinstance(data, str)
        self.raw.send(frame(TEXT if is_text else BINARY, data.encode() if is_text else data))

    def send_json(self, **fields):
        self.send(json.dumps(fields))

    def send_frame(self, *args, **kwargs):
        self.raw.send(frame(*args, **kwargs))

    def frame(self):
        """The next one: opcode and payload. None: the connection has ended."""
        head = self.file.read(2)
        if len(head) < 2:
            return None
        assert head[0] & 0x70 == 0 and head[0] & 0x80 and not head[1] & 0x80, head
        length = head[1]
        if length == 126:
            length = struct.unpack(">H", self.file.read(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self.file.read(8))[0]
        data = self.file.read(length)
        assert len(data) == length
        return head[0] & 15, data

    def message(self):
        """The next message: a text as str, else bytes; a close as its code. Pings are answered."""
        while True:
            got = self.frame()
            if got is None:
                return None
            opcode, data = got
            if opcode == PING:
                self.send_frame(PONG, data)
            elif opcode == CLOSE:
                self.reason = data[2:].decode()
                return struct.unpack(">H", data[:2])[0]
            elif opcode == TEXT:
                return data.decode()
            elif opcode == BINARY:
                return data

    def close(self, code=1000):
        self.send_frame(CLOSE, struct.pack(">H", code))
