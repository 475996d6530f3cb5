#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Internet of the tests: a resolver, web servers with and without TLS, and a server of bytes. Says what it was asked in a file, a JSON object a line.

usage: world.py DIRECTORY     (certificates are there: NAME.pem)
"""
import json
import socket
import ssl
import struct
import sys
import threading
import time
from pathlib import Path

DIRECTORY = Path(sys.argv[1])
SHARED, LONE, LAN, METADATA, RESOLVER = "93.184.220.10", "93.184.220.11", "10.20.0.5", "169.254.169.254", "9.9.9.9"
ZONE = {
    "allowed.example": [SHARED], "other.example": [SHARED], "lone.example": [LONE], "secret.example": [LONE], "a.wild.example": [LONE],
    "wild.example": [LONE], "private.example": [LAN], "meta.example": [METADATA], "loopback.example": ["127.0.0.1"],
    "mixed.example": [LONE, LAN], "target.example": [LONE], "evil.example": [LONE], "short.example": [LONE],
    "many.example": [f"93.184.221.{n}" for n in range(1, 61)],
}
ALIASES = {"alias.example": "target.example", "badalias.example": "evil.example", "loop.example": "loop.example",
           "cut.example": "target.example", "privatealias.example": "private.example"}
log_lock = threading.Lock()


def log(**facts):
    with log_lock, open(DIRECTORY / "log", "a") as file:
        file.write(json.dumps(facts) + "\n")


# ---- names ----

def read_name(data, at):
    labels = []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels), at + 1


def write_name(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def record(name, kind, data, ttl=1):
    return write_name(name) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data


def answer(query, is_tcp):
    name, at = read_name(query, 12)
    kind, = struct.unpack("!H", query[at:at + 2])
    has_edns = query[10:12] != b"\0\0"
    extra = query[at + 4:]
    log(what="dns", name=name, type=kind, tcp=is_tcp, options=len(extra) - 11 if has_edns else 0)
    plain = name.lower()
    question = query[12:at + 4]
    if plain == "badpointer.example":  # a name that leads to itself
        return query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + question + b"\xc0" + bytes([12 + len(question)]) + struct.pack("!HHIH", 1, 1, 9, 4) + b"\1\2\3\4"
    if plain == "garbage.example":
        return query[:2] + b"\x81\x80\0\1\xff\xff\0\0\0\0" + question + b"\xff" * 30
    records = []
    if plain in ALIASES:
        target = ALIASES[plain]
        records.append(record(plain, 5, write_name(target)))
        if plain != "cut.example":
            records += [record(target, 1, socket.inet_aton(a)) for a in ZONE.get(target, [])]
    records += [record(plain, 1, socket.inet_aton(a)) for a in ZONE.get(plain, [])]
    code = 0 if records else 3
    is_cut = not is_tcp and len(records) > 20
    head = query[:2] + struct.pack("!HHHHH", 0x8180 | code | (0x200 if is_cut else 0), 1, 0 if is_cut else len(records), 0, 0)
    return head + question + (b"" if is_cut else b"".join(records))


def serve_udp():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((RESOLVER, 53))
    while True:
        query, peer = sock.recvfrom(4096)
        sock.sendto(answer(query, False), peer)


def serve_dns_connection(sock, _):
    length, = struct.unpack("!H", sock.recv(2, socket.MSG_WAITALL))
    reply = answer(sock.recv(length, socket.MSG_WAITALL), True)
    sock.sendall(struct.pack("!H", len(reply)) + reply)


# ---- servers ----

def read_head(stream):
    head = b""
    while b"\r\n\r\n" not in head:
        part = stream.recv(1)
        if not part:
            return None
        head += part
    return head.decode("latin-1")


def read_body(stream, headers):
    if headers.get("transfer-encoding") == "chunked":
        size = 0
        while True:
            line = b""
            while not line.endswith(b"\r\n"):
                line += stream.recv(1)
            count = int(line, 16)
            left = count + 2
            while left:
                left -= len(stream.recv(min(left, 65536)))
            size += count
            if not count:
                return size
    left = size = int(headers.get("content-length", 0))
    while left:
        left -= len(stream.recv(min(left, 65536)))
    return size


def serve_requests(stream, facts):
    while True:
        head = read_head(stream)
        if head is None:
            return
        lines = head.split("\r\n")
        headers = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in lines[1:] if ":" in line}
        path = lines[0].split(" ")[1]
        log(what="request", line=lines[0], headers=headers, **facts)
        if headers.get("upgrade") == "echo":
            stream.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
            while part := stream.recv(65536):
                stream.sendall(part)
            return
        size = read_body(stream, headers)
        if path.startswith("/bytes/"):
            count = int(path.split("/")[2])
            stream.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {count}\r\n\r\n".encode())
            while count:
                count -= stream.send(b"x" * min(count, 65536))
            continue
        if path == "/drip":  # for ever, a line at a time
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            while True:
                stream.sendall(b"data: tick\n\n")
                time.sleep(0.05)
        body = f"{facts['port']} {headers.get('host')} {path} {size}\n".encode()
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def serve_http(sock, address):
    serve_requests(sock, {"port": 80, "address": address})


def make_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DIRECTORY / "allowed.example.pem")
    others = {}
    for path in DIRECTORY.glob("*.example.pem"):
        others[path.stem] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        others[path.stem].load_cert_chain(path)

    def choose(stream, name, _):
        stream.said = name
        if name in others:
            stream.context = others[name]
    context.sni_callback = choose
    return context


def serve_tls(sock, address):
    log(what="tls", address=address)
    with CONTEXT.wrap_socket(sock, server_side=True) as stream:
        serve_requests(stream, {"port": 443, "address": address, "sni": getattr(stream, "said", None)})


def serve_echo(sock, address):
    log(what="echo", address=address)
    sock.sendall(b"hello\n")
    while part := sock.recv(65536):
        sock.sendall(part)


def serve_proxy(sock, address):
    head = read_head(sock)
    log(what="proxy", line=head.split("\r\n")[0])
    host, port = head.split(" ")[1].rsplit(":", 1)
    other = socket.create_connection((host, int(port)))
    sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")

    def pump(a, b):
        try:
            while part := a.recv(65536):
                b.sendall(part)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    thread = threading.Thread(target=pump, args=(other, sock), daemon=True)
    thread.start()
    pump(sock, other)
    thread.join()


def guard(serve, sock, address):
    try:
        with sock:
            serve(sock, address)
    except (OSError, ValueError, struct.error):
        pass


def listen(address, port, serve):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(128)

    def loop():
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=guard, args=(serve, sock, address), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


CONTEXT = make_context()
threading.Thread(target=serve_udp, daemon=True).start()
listen(RESOLVER, 53, serve_dns_connection)
for place in (SHARED, LONE, LAN, METADATA):
    listen(place, 80, serve_http)
    listen(place, 443, serve_tls)
    listen(place, 2222, serve_echo)
listen(RESOLVER, 3128, serve_proxy)
print("ready", flush=True)
threading.Event().wait()
