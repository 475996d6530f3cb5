# SPDX-License-Identifier: Apache-2.0
"""A web server for inside a sandbox, with a way to be awkward for each path. Tests send this file there and run it: inner_server.py PORT [ADDRESS]."""
import base64
import hashlib
import http.server
import json
import socket
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, body, status=200, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunks(self):
        """The body, piece by piece."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            piece = self.rfile.read(min(left, 1 << 16))
            left -= len(piece)
            yield piece

    def do_any(self):
        path = self.path.split("?")[0]
        getattr(self, "path_" + (path.strip("/").replace("-", "_") or "echo"), self.path_echo)()

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = do_any

    def path_echo(self):
        body = b"".join(self.chunks())
        told = {"method": self.command, "path": self.path, "headers": list(self.headers.items()), "body": body.decode("latin-1"),
                "peer": self.client_address[1]}
        self.send(json.dumps(told).encode(), headers=[("Content-Type", "application/json")])

    def path_count(self):
        digest, total = hashlib.sha256(), 0
        for piece in self.chunks():
            digest.update(piece)
            total += len(piece)
        self.send(json.dumps({"bytes": total, "sha256": digest.hexdigest()}).encode())

    def path_big(self):
        """So many bytes, all the same; ?bytes=N"""
        left = int(self.path.split("=")[1])
        self.send_response(200)
        self.send_header("Content-Length", str(left))
        self.end_headers()
        block = b"b" * (1 << 16)
        while left:
            left -= self.wfile.write(block[:left])

    def path_chunked(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in (b"one", b"two" * 5000, b"three"):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\nX-Trailer: dropped\r\n\r\n")

    def path_until_close(self):
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end")

    def path_sse(self):
        """An event, then the next when the client has shown by /go that it has seen the first."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        self.wfile.write(b"data: first\n\n")
        while not Handler.is_gone_on:
            time.sleep(0.01)
        self.wfile.write(b"data: second\n\n")

    is_gone_on = False

    def path_go(self):
        Handler.is_gone_on = True
        self.send(b"ok")

    hits = 0

    def path_hit(self):
        Handler.hits += 1
        self.send(str(Handler.hits).encode())

    def path_cookie(self):
        self.send(b"ok", headers=[("Set-Cookie", "a=1; Path=/; Domain=.example.com; HttpOnly"), ("Set-Cookie", "b=2")])

    def path_hop(self):
        self.send(b"ok", headers=[("Connection", "X-Hop"), ("X-Hop", "1"), ("X-Stays", "1"), ("Keep-Alive", "timeout=9")])

    def path_early(self):
        """Answers before the body has come, and closes."""
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 413 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")

    # what is no answer, or more than one
    def raw(self, data):
        self.close_connection = True
        self.wfile.write(data)

    def path_silent(self):
        self.close_connection = True

    def path_garbage(self):
        self.raw(b"\x16\x03\x01 this is not HTTP\r\n\r\n")

    def path_two_lengths(self):
        self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")

    def path_endless_head(self):
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 1000 + b"\r\n")
            for _ in range(1000):
                self.wfile.write(b"X: " + b"y" * 1000 + b"\r\n")
        except OSError:
            self.close_connection = True

    def path_cut(self):
        self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")

    def path_second_answer(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")

    def path_unasked_upgrade(self):
        self.raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")

    def path_hints(self):
        self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        self.send(b"ok")

    def path_ws(self):
        """Echoes frames until one that closes."""
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Host: %s\r\nSec-WebSocket-Accept: %s\r\n\r\n"
                         % (self.headers["Host"].encode(), base64.b64encode(hashlib.sha1(key.encode()).digest())))
        while True:
            head = self.rfile.read(2)
            if len(head) < 2:
                return
            opcode, length = head[0] & 15, head[1] & 127
            if length == 126:
                length = int.from_bytes(self.rfile.read(2), "big")
            elif length == 127:
                length = int.from_bytes(self.rfile.read(8), "big")
            mask = self.rfile.read(4)
            data = self.rfile.read(length)
            data = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (length // 4 + 1))[:length], "big")).to_bytes(length, "big") if length else b""
            size = bytes([length]) if length < 126 else b"\x7e" + length.to_bytes(2, "big") if length < 65536 else b"\x7f" + length.to_bytes(8, "big")
            self.wfile.write(bytes([0x80 | opcode]) + size + data)
            if opcode == 8:
                return


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address, handler):
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def handle_error(self, *_):
        pass


if __name__ == "__main__":
    Server((sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
