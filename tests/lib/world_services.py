# SPDX-License-Identifier: Apache-2.0
"""What there is outside of a machine (world.py): names, HTTP, TLS, and a port that says hello. Each request is a line of the log.
A name's addresses have commas between; it may have none.

usage: world_services.py LOG CERTIFICATE NAMES-AS-JSON DNS-ADDRESS [FILES]
"""
import json
import pathlib
import socket
import socketserver
import ssl
import struct
import sys
import threading

LOG, CERTIFICATE, NAMES, DNS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
ALONE = NAMES.get("alone.test")  # where somebody listens who listens nowhere else
FILES = pathlib.Path(sys.argv[5]) if len(sys.argv) > 5 and sys.argv[5] else None
log = open(LOG, "a", buffering=1)
PIECE = b"x" * 1024
SILENT = "0.0.0.0"  # the address of names that nobody ever answers for


def note(*words):
    log.write(" ".join(str(word) for word in words) + "\n")


def answer(query):
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("ascii", "replace"))
        at += 1 + query[at]
    name, (kind, _) = ".".join(labels).lower(), struct.unpack("!HH", query[at + 1:at + 5])
    note("dns", name)
    address = NAMES.get(name)
    found = address.split(",") if address and kind == 1 else []
    head = query[:2] + struct.pack("!HHHHH", 0x8180 if address is not None else 0x8183, 1, len(found), 0, 0)
    records = [b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1 if name == "brief.test" else 60, 4) + socket.inet_aton(one) for one in found]
    return None if address == SILENT else head + query[12:at + 5] + b"".join(records)


class Names(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        if reply := answer(data):
            sock.sendto(reply, self.client_address)


class NamesOverTcp(socketserver.StreamRequestHandler):
    def handle(self):
        length = self.rfile.read(2)
        if len(length) == 2:
            if reply := answer(self.rfile.read(struct.unpack("!H", length)[0])):
                self.wfile.write(struct.pack("!H", len(reply)) + reply)


def file_of(host, path):
    """What a site has there; None for a site that has no files."""
    site = FILES / host.partition(":")[0] if FILES else None
    if not site or not site.is_dir():
        return None
    place = site / path.partition("?")[0].strip("/")
    return place / "index.html" if place.is_dir() else place


class Web(socketserver.StreamRequestHandler):
    """/endless never ends; hosts of FILES have their files; everything else tells who was asked for what, with which Authorization."""
    scheme = "http"

    def handle(self):
        try:
            self.answer()
        except OSError:
            pass

    def answer(self):
        while line := self.rfile.readline(8192):
            method, path = line.decode("latin-1").split()[:2]
            headers = {}
            while (line := self.rfile.readline(8192)).strip():
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.lower()] = value.strip()
            body = self.rfile.read(int(headers.get("content-length", 0)))
            note(self.scheme, self.request.getsockname()[0], headers.get("host", "-"), path)
            if path == "/endless":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
                while True:
                    self.wfile.write(PIECE)
                    threading.Event().wait(0.01)
            file = file_of(headers.get("host", "-"), path)
            if file:
                self.send_file(file, method)
                continue
            text = json.dumps({"host": headers.get("host"), "path": path, "got": len(body), "authorization": headers.get("authorization")}).encode()
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))

    def send_file(self, file, method):
        data = file.read_bytes() if file.is_file() else b""
        type = {".html": "text/html", ".json": "application/json"}.get(file.suffix, "application/octet-stream")
        self.wfile.write(b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
            b"200 OK" if file.is_file() else b"404 Not Found", type.encode(), len(data), b"" if method == "HEAD" else data))


class Hello(socketserver.StreamRequestHandler):
    def handle(self):
        note("hello", self.request.getsockname()[0], self.request.getsockname()[1])
        self.wfile.write(b"hello\n")


class Threads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 64
    context = None

    def get_request(self):
        sock, address = super().get_request()
        if self.context:
            sock.settimeout(20)
            sock = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        return sock, address

    def handle_error(self, *_):
        pass


class SecureWeb(Web):
    scheme = "https"


def main():
    udp = socketserver.ThreadingUDPServer((DNS, 53), Names)
    secure = Threads(("0.0.0.0", 443), SecureWeb)
    secure.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secure.context.load_cert_chain(CERTIFICATE)
    servers = [udp, Threads((DNS, 53), NamesOverTcp), Threads(("0.0.0.0", 80), Web), secure, Threads(("0.0.0.0", 2222), Hello),
               *([Threads((ALONE, 2223), Hello)] if ALONE else [])]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    note("ready")
    threading.Event().wait()


main()
