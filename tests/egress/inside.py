#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a box does, as its own process inside it: prints a JSON value.

usage: inside.py WHAT ARGUMENTS-AS-JSON
"""
import json
import random
import socket
import ssl
import struct
import sys

PATIENCE = 30


def resolver():
    with open("/etc/resolv.conf") as file:
        return file.read().split()[1]


def write_name(name):
    return b"".join(bytes([len(part)]) + part.encode("latin-1") for part in name.split(".") if part) + b"\0"


def query(name, kind=1, edns=True, options=b"", identity=None):
    identity = random.randrange(65536) if identity is None else identity
    extra = b"\0" + struct.pack("!HHIH", 41, 1232, 0, len(options)) + options if edns else b""
    return struct.pack("!HHHHHH", identity, 0x100, 1, 0, 0, 1 if edns else 0) + write_name(name) + struct.pack("!HH", kind, 1) + extra


def read(reply):
    identity, flags, questions, answers, _, more = struct.unpack("!HHHHHH", reply[:12])
    at = 12
    name = b""
    while questions and reply[at]:
        name += reply[at + 1:at + 1 + reply[at]] + b"."
        at += 1 + reply[at]
    at += 5 if questions else 0
    addresses = []
    for _ in range(answers):
        kind, _, ttl, length = struct.unpack("!HHIH", reply[at + 2:at + 12])
        addresses.append(socket.inet_ntoa(reply[at + 12:at + 16]))
        at += 12 + length
    extended = None
    if more:
        length, = struct.unpack("!H", reply[at + 9:at + 11])
        if length:
            extended = [struct.unpack("!H", reply[at + 15:at + 17])[0], reply[at + 17:at + 11 + length].decode()]
    return {"code": flags & 15, "cut": bool(flags & 0x200), "name": name.decode("latin-1"), "addresses": addresses, "extended": extended}


def dns(name, kind=1, server=None, edns=True, options=""):
    """Over UDP."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(PATIENCE)
    sock.sendto(query(name, kind, edns, bytes.fromhex(options)), (server or resolver(), 53))
    return read(sock.recv(4096))


def dns_after(raw, name):
    """Sends these bytes and then a question: all that is answered until that is."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(PATIENCE)
    sock.sendto(bytes.fromhex(raw), (resolver(), 53))
    sock.sendto(query(name, identity=7), (resolver(), 53))
    replies = []
    while not replies or replies[-1][:2] != b"\0\7":
        replies.append(sock.recv(4096))
    return [read(reply) for reply in replies]


def dns_tcp(names, server=None):
    sock = socket.create_connection((server or resolver(), 53), PATIENCE)
    found = []
    for name in names:
        message = query(name)
        sock.sendall(struct.pack("!H", len(message)) + message)
        length, = struct.unpack("!H", sock.recv(2, socket.MSG_WAITALL))
        found.append(read(sock.recv(length, socket.MSG_WAITALL)))
    return found


def hold_dns_tcp(count):
    """So many connections, each with one byte of a question, until they are asked to end; how many of them are still there then."""
    held = []
    for _ in range(count):
        held.append(socket.create_connection((resolver(), 53), PATIENCE))
        held[-1].sendall(b"\0")
    print(json.dumps("held"), flush=True)
    sys.stdin.readline()
    there = 0
    for sock in held:
        sock.setblocking(False)
        try:
            sock.recv(1)
        except BlockingIOError:
            there += 1
        except OSError:
            pass
    return there


def dns_flood(name, count):
    """So many lookups, as many at once as a socket's room has place for; how many were answered."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(0.05)
    got = 0
    for identity in range(count):
        sock.sendto(query(name, identity=identity), (resolver(), 53))
        if identity % 200 != 199 and identity != count - 1:
            continue
        try:
            while True:
                sock.recv(4096)
                got += 1
        except socket.timeout:
            pass
    return got


def address_of(name):
    try:
        return socket.gethostbyname(name)
    except OSError as error:
        return f"error {error}"


def dial(address, port, kind=socket.SOCK_STREAM):
    sock = socket.socket(socket.AF_INET, kind)
    sock.settimeout(PATIENCE)
    sock.connect((address, port))
    return sock


def collect(sock):
    data = b""
    try:
        while part := sock.recv(65536):
            data += part
    except ConnectionResetError:
        return data.decode("latin-1") + "RESET"
    except socket.timeout:
        return data.decode("latin-1") + "TIMEOUT"
    return data.decode("latin-1")


def raw(address, port, parts, shut=False):
    """Sends parts, each in a packet of its own, and tells what came back until the end."""
    try:
        sock = dial(address, port)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            sock.sendall(part.encode("latin-1"))
        if shut:
            sock.shutdown(socket.SHUT_WR)
    except OSError as error:
        return f"error {error.errno}"
    return collect(sock)


def talk(address, port, text):
    """A server that speaks first."""
    try:
        sock = dial(address, port)
        said = sock.recv(6, socket.MSG_WAITALL)
        sock.sendall(text.encode())
        return (said + sock.recv(len(text), socket.MSG_WAITALL)).decode()
    except OSError as error:
        return f"error {error.errno}"


def udp(address, port, text):
    try:
        sock = dial(address, port, socket.SOCK_DGRAM)
        sock.settimeout(3)
        sock.send(text.encode())
        return sock.recv(100).decode()
    except socket.timeout:
        return "TIMEOUT"
    except OSError as error:
        return f"error {error.errno}"


def tls(address, sni, roots=None, request=None, port=443):
    """A handshake with this name, and a request."""
    context = ssl.create_default_context(cafile=roots) if roots else ssl._create_unverified_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        stream = context.wrap_socket(dial(address, port), server_hostname=sni)
    except ssl.SSLError as error:
        return {"error": error.reason or str(error)}
    except OSError as error:
        return {"error": f"error {error.errno}"}
    stream.sendall((request or f"GET / HTTP/1.1\r\nHost: {sni}\r\nConnection: close\r\n\r\n").encode())
    issuer = dict(part[0] for part in stream.getpeercert()["issuer"])["commonName"] if roots else None
    data = b""
    while b"\n" not in data.partition(b"\r\n\r\n")[2]:
        part = stream.recv(65536)
        if not part:
            break
        data += part
    return {"answer": data.decode(), "protocol": stream.selected_alpn_protocol(), "issuer": issuer}


def hello(sni, size=0, extra=b""):
    """A ClientHello as it is: of OpenSSL, with more extensions, so that it is as long as wanted."""
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0"
    extensions = b""
    if sni is not None:
        name = sni.encode("latin-1")
        extensions += struct.pack("!HHHBH", 0, len(name) + 5, len(name) + 3, 0, len(name)) + name
    extensions += extra
    while size > len(extensions):
        extensions += struct.pack("!HH", 0x5a5a, 16000) + bytes(16000)
    body += struct.pack("!H", len(extensions)) + extensions
    message = b"\1" + struct.pack("!I", len(body))[1:] + body
    records = b""
    for at in range(0, len(message), 4000 if size else 16000):
        part = message[at:at + (4000 if size else 16000)]
        records += b"\x16\3\1" + struct.pack("!H", len(part)) + part
    return records


def send_hello(address, sni, size=0, extra="", step=0):
    """What a server or the gateway answers to a ClientHello: "alert N", "server" or what became of it."""
    message = hello(sni, size, bytes.fromhex(extra))
    try:
        sock = dial(address, 443)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(message), step or len(message)):
            sock.sendall(message[at:at + (step or len(message))])
        got = sock.recv(7, socket.MSG_WAITALL)
    except OSError as error:
        return f"error {error.errno}"
    return f"alert {got[6]}" if len(got) == 7 and got[0] == 21 else "server" if got else "closed"


def hold(address, port, request):
    """Begins a download, says "begun", and then how it ended."""
    sock = dial(address, port)
    sock.sendall(request.encode())
    assert sock.recv(10)
    print(json.dumps("begun"), flush=True)
    try:
        while sock.recv(65536):
            pass
        return "end"
    except OSError as error:
        return f"error {error.errno}"


def hold_tls(address, sni, request):
    context = ssl._create_unverified_context()
    stream = context.wrap_socket(dial(address, 443), server_hostname=sni)
    stream.sendall(request.encode())
    assert stream.recv(10)
    print(json.dumps("begun"), flush=True)
    try:
        while stream.recv(65536):
            pass
        return "end"
    except OSError as error:
        return f"error {error.errno}"


def upgrade(address, host, text):
    sock = dial(address, 80)
    sock.sendall(f"GET /ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        part = sock.recv(1)
        if not part:
            return head.decode()
        head += part
    sock.sendall(text.encode())
    return head.decode().split("\r\n")[0] + "|" + sock.recv(len(text), socket.MSG_WAITALL).decode()


print(json.dumps(globals()[sys.argv[1]](*json.loads(sys.argv[2]))))
