# SPDX-License-Identifier: Apache-2.0
"""Packets that no decent client sends, in a working encryption: a list of those that somebody thought of, and as many mutated ones as are asked for, by a seed."""
import random

from ssh_raw import ADJUST, CLOSE, CONFIRMED, DATA, ECDH_INIT, EOF, EXTENDED, NEWKEYS, OPEN, REFUSED, REQUEST, Ended, RawSsh, kexinit, number, request, text

BIG, MOST = b"x" * 30000, 0xffffffff
PTY = text(b"xterm") + number(80) + number(24) + number(0) * 2 + text(b"\0")
DIRECT = text(b"localhost") + number(9) + text(b"127.0.0.1") + number(1)


def auth(method, more=b"", user=b"x", service=b"ssh-connection"):
    return b"\x32" + text(user) + text(service) + text(method) + more


def key_request(algorithm, blob, signature=None):
    return auth(b"publickey", bytes([signature is not None]) + text(algorithm) + text(blob) + (text(signature) if signature is not None else b""))


ED25519 = text(b"ssh-ed25519") + text(b"k" * 32)
RSA = text(b"ssh-rsa") + text(b"\1\0\1") + text(b"\0" + b"\xff" * 256)
ECDSA = text(b"ecdsa-sha2-nistp256") + text(b"nistp256") + text(b"\4" + b"\1" * 64)
SK = text(b"sk-ssh-ed25519@openssh.com") + text(b"k" * 32) + text(b"ssh:")

# Each is a row of packets on one connection that has exchanged keys.
BEFORE_LOGIN = [
    [b"\x34"], [b"\x3c" + text(b"ssh-ed25519")], [b"\x34", b"\x5a" + text(b"session") + number(0) + number(MOST) * 2],
    [bytes([OPEN]) + text(b"session") + number(0) + number(1 << 20) + number(32768)], [bytes([DATA]) + number(0) + text(BIG)], [request(0, b"exec", text(b"id"))],
    [b"\x50" + text(b"tcpip-forward") + b"\1" + text(b"") + number(0)], [b"\5" + text(b"ssh-connection")], [b"\5" + text(BIG)], [b"\5" + number(MOST)], [b"\5"],
    [b"\6" + text(b"ssh-userauth")], [b"\2" + number(MOST)], [b"\4\1" + number(MOST) * 2], [b"\3" + number(MOST)], [b"\1"], [b"\1" + number(MOST) * 3], [b""], [b"\0"], [b"\xff" * 100],
    [b"\x33" + text(b"publickey") + b"\0"], [b"\x35" + text(BIG) + text(b"")], [b"\7" + number(MOST) + text(b"server-sig-algs") + text(b"x")], [b"\x15"], [bytes([ECDH_INIT]) + text(b"")],
]
IN_LOGIN = [
    [auth(b"none")] * 20, [auth(b"none", user=BIG)], [auth(b"none", user=b"")], [auth(b"none", user=b"a\0b")], [auth(b"none", service=b"ssh-userauth")], [auth(b"password", b"\0" + text(BIG))] * 3,
    [auth(b"password", b"\1" + text(b"a") + text(b"b"))], [auth(b"keyboard-interactive", text(b"") + text(BIG))], [b"\x3d" + number(MOST)], [b"\x3d" + number(3) + text(b"a")],
    [auth(b"hostbased", text(b"ssh-rsa") + text(RSA) + text(b"h") + text(b"u") + text(b"s"))], [auth(b"gssapi-with-mic", number(1) + text(b"\6\x09" + b"o" * 9))],
    [auth(b"gssapi-with-mic", number(MOST))], [b"\x3d" + text(b"token")], [b"\x3f"], [b"\x42" + text(b"mic")],
    [key_request(b"ssh-ed25519", ED25519, text(b"ssh-ed25519") + text(b"s" * 64))] * 3, [key_request(b"ssh-ed25519", ED25519, text(b"ssh-ed25519") + text(b"s" * 1000))],
    [key_request(b"ssh-ed25519", ED25519, b"")], [key_request(b"ssh-ed25519", b"")], [key_request(b"ssh-ed25519", RSA)], [key_request(b"rsa-sha2-256", RSA, text(b"ssh-dss") + text(b"s" * 256))],
    [key_request(b"rsa-sha2-256", text(b"ssh-rsa") + text(b"") + text(b""))], [key_request(b"rsa-sha2-512", text(b"ssh-rsa") + text(b"\xff" * 8000) * 2, text(b"rsa-sha2-512") + text(b"s"))],
    [key_request(b"ecdsa-sha2-nistp256", ECDSA)], [key_request(b"ecdsa-sha2-nistp256", ECDSA[:-30])], [key_request(b"ecdsa-sha2-nistp521", ECDSA.replace(b"nistp256", b"nistp521"))],
    [key_request(b"sk-ssh-ed25519@openssh.com", SK, text(b"sk-ssh-ed25519@openssh.com") + text(b"s" * 64) + b"\1" + number(7))],
    [key_request(b"sk-ssh-ed25519@openssh.com", SK, text(b"sk-ssh-ed25519@openssh.com") + text(b"s" * 64))],
    [key_request(b"ssh-ed25519-cert-v01@openssh.com", text(b"ssh-ed25519-cert-v01@openssh.com") + text(BIG))], [key_request(b"ssh-dss", text(b"ssh-dss") + text(b"p") * 4)],
    [auth(b"publickey")], [auth(b"publickey", b"\1")], [auth(b"publickey", b"\1" + number(MOST))], [auth(BIG)], [b"\x32"], [b"\x32" + number(MOST)],
    [key_request(b"ssh-ed25519", ED25519), bytes([OPEN]) + text(b"session") + number(0) + number(9) * 2],
]
# `c` is a channel that is open.
ON_CHANNELS = [
    lambda c: [bytes([DATA]) + number(c) + text(b"x")], lambda c: [bytes([DATA]) + number(c + 1000) + text(b"x")], lambda c: [bytes([DATA]) + number(MOST) + text(BIG)],
    lambda c: [bytes([DATA]) + number(c) + number(MOST) + b"x"], lambda c: [bytes([DATA]) + number(c)], lambda c: [bytes([DATA])],
    lambda c: [bytes([EXTENDED]) + number(c) + number(kind) + text(BIG) for kind in (0, 1, 2, MOST)], lambda c: [bytes([EXTENDED]) + number(c) + number(1) + number(MOST)],
    lambda c: [bytes([ADJUST]) + number(c) + number(MOST)] * 4, lambda c: [bytes([ADJUST]) + number(7777) + number(1)], lambda c: [bytes([ADJUST]) + number(c)],
    lambda c: [bytes([CLOSE]) + number(c)] * 3, lambda c: [bytes([EOF]) + number(c)] * 3 + [bytes([DATA]) + number(c) + text(b"late")],
    lambda c: [bytes([CLOSE]) + number(c), bytes([DATA]) + number(c) + text(b"late"), request(c, b"exec", text(b"id")), bytes([ADJUST]) + number(c) + number(1)],
    lambda c: [bytes([CLOSE]) + number(4242), bytes([EOF]) + number(MOST), bytes([CLOSE])],
    lambda c: [bytes([CONFIRMED]) + number(c) + number(1) + number(MOST) * 2] * 2, lambda c: [bytes([CONFIRMED]) + number(99) * 4], lambda c: [bytes([REFUSED]) + number(c) + number(1) + text(b"") * 2],
    lambda c: [b"\x63" + number(c), b"\x64" + number(c), b"\x63" + number(MOST)], lambda c: [b"\x51", b"\x52", b"\x51" + number(7)],
    lambda c: [request(c, b"exec", text(b"cat")), request(c, b"exec", text(b"id")), request(c, b"shell"), request(c, b"pty-req", PTY), request(c, b"subsystem", text(b"sftp"))],
    lambda c: [request(c, b"exec", text(b"x" * 60000))], lambda c: [request(c, b"exec", number(MOST))], lambda c: [request(c, b"exec")], lambda c: [request(c, b"exec", text(b"a\0b"))],
    lambda c: [request(c, b"pty-req", PTY[:-9])], lambda c: [request(c, b"pty-req", text(BIG) + number(MOST) * 4 + text(BIG))], lambda c: [request(c, b"pty-req", PTY)] * 3 + [request(c, b"shell")],
    lambda c: [request(c, b"window-change", number(MOST) * 4), request(c, b"pty-req", PTY), request(c, b"window-change", number(0) * 4), request(c, b"window-change")],
    lambda c: [request(c, b"env", text(b"LC_%d" % i) + text(b"v")) for i in range(100)], lambda c: [request(c, b"env", text(b"LC_X") + text(BIG))], lambda c: [request(c, b"env", text(b"LC_A\0B") + text(b"a\0b"))],
    lambda c: [request(c, b"env", text(b"")), request(c, b"env")], lambda c: [request(c, b"signal", text(b"KILL")), request(c, b"signal"), request(c, b"signal", text(BIG))],
    lambda c: [request(c, b"exec", text(b"cat")), *[request(c, b"signal", text(b"TERM"))] * 50], lambda c: [request(c, b"exit-status", number(7)), request(c, b"exit-signal", text(b"KILL") + b"\0" + text(b"") * 2)],
    lambda c: [request(c, b"x11-req", b"\0" + text(b"MIT") + text(b"00") + number(0)), request(c, b"x11-req")], lambda c: [request(c, b"auth-agent-req@openssh.com")] * 3 + [request(c, b"shell")],
    lambda c: [request(c, b"subsystem", text(BIG)), request(c, b"subsystem", text(b"sftp\0x")), request(c, b"subsystem")], lambda c: [request(c, BIG)], lambda c: [request(c, b"")],
    lambda c: [request(c + 55, b"exec", text(b"id")), request(MOST, b"shell")], lambda c: [bytes([REQUEST]) + number(c)], lambda c: [bytes([REQUEST])],
    lambda c: [bytes([OPEN]) + text(b"session") + number(i) + number(0) * 2 for i in range(100)], lambda c: [bytes([OPEN]) + text(b"session") + number(1)] * 2, lambda c: [bytes([OPEN]) + text(BIG) + number(1) * 3],
    lambda c: [bytes([OPEN]) + text(b"direct-tcpip") + number(1) + number(MOST) * 2 + more for more in (b"", DIRECT[:-2], DIRECT, text(BIG) + number(80) + text(b"") + number(0), text(b"localhost") + number(MOST) + text(b"") + number(0))],
    lambda c: [bytes([OPEN]) + text(kind) + number(1) + number(9) * 2 + DIRECT for kind in (b"forwarded-tcpip", b"x11", b"auth-agent@openssh.com", b"direct-streamlocal@openssh.com", b"tun@openssh.com")],
    lambda c: [b"\x50" + text(kind) + b"\1" + text(b"") + number(70000) for kind in (b"tcpip-forward", b"cancel-tcpip-forward", b"streamlocal-forward@openssh.com", b"keepalive@openssh.com", b"hostkeys-prove-00@openssh.com", BIG)],
    lambda c: [b"\x50" + text(b"tcpip-forward") + b"\1", b"\x50" + text(b"tcpip-forward"), b"\x50" + number(MOST), b"\x50"], lambda c: [b"\x32" + text(b"x") * 3, b"\5" + text(b"ssh-userauth"), b"\x34"],
    lambda c: [b"\x50" + text(b"no-more-sessions@openssh.com") + b"\0", bytes([OPEN]) + text(b"session") + number(5) + number(9) * 2],
    lambda c: [kexinit(), bytes([DATA]) + number(c) + text(b"while keys are exchanged")], lambda c: [kexinit(), kexinit()], lambda c: [bytes([NEWKEYS])], lambda c: [kexinit(), bytes([NEWKEYS])],
    lambda c: [kexinit(), bytes([ECDH_INIT]) + text(bytes(32))], lambda c: [kexinit(), bytes([ECDH_INIT]) + text(b"p" * 31)], lambda c: [kexinit(), bytes([ECDH_INIT]) + text(b"p" * 5000)], lambda c: [kexinit(), bytes([ECDH_INIT])],
    lambda c: [kexinit((b"",) * 10)], lambda c: [kexinit((b"," * 20000,) * 1 + (b"a",) * 9)], lambda c: [kexinit((b"none",) * 10)], lambda c: [kexinit()[:40]], lambda c: [kexinit()[:-1]],
]
# Of a packet itself: what stands for its length, its padding.
FRAMES = [{"head": number(value)} for value in (0, 1, 5, 15, 17, 40000, 262144, 0x7fffffff, MOST)] + [{"padding": 0}, {"padding": 3}, {"padding": 255}, {"padding": 254}]
TEMPLATES = [b"\x50" + text(b"tcpip-forward") + b"\1" + text(b"localhost") + number(0), bytes([OPEN]) + text(b"direct-tcpip") + number(3) + number(1 << 20) + number(32768) + DIRECT,
             bytes([OPEN]) + text(b"session") + number(2) + number(1 << 20) + number(32768), kexinit(), auth(b"publickey", b"\1" + text(b"ssh-ed25519") + text(ED25519) + text(text(b"ssh-ed25519") + text(b"s" * 64)))]


def mutated(chance, packet):
    packet = bytearray(packet)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(packet) + 1)
        what = chance.randrange(6)
        if what == 0 and packet:
            packet[at % len(packet)] ^= 1 << chance.randrange(8)
        elif what == 1:
            del packet[at:]
        elif what == 2:
            packet[at:at] = chance.randbytes(chance.randrange(1, 64))
        elif what == 3:
            packet[at:at + 4] = number(chance.choice((0, 1, 0x7fffffff, 0x80000000, MOST, len(packet), chance.randrange(1 << 32))))
        elif what == 4:
            packet[at:at] = packet[:chance.randrange(len(packet) + 1)]
        else:
            packet[:1] = bytes([chance.randrange(256)])
    return bytes(packet[:32000])


def plain(row):
    return row if isinstance(row, list) else row(0)


def play(connection, packets):
    """Sends them all, or as many as the server takes, and reads what it has to say."""
    try:
        for packet in packets:
            connection.send(packet)
        connection.send(b"\1" + number(11) + text(b"") * 2)
        connection.drain()
    except Ended:
        pass


def logged_in(port, user, key):
    connection = RawSsh(port).connect().login(user, key)
    return connection, connection.open()


def rows():
    """(where, packets) of the list: before login, in login, on a channel."""
    yield from (("before", row) for row in BEFORE_LOGIN)
    yield from (("in", row) for row in IN_LOGIN)
    yield from (("after", row) for row in ON_CHANNELS)


def attack(port, user, key, where, row):
    """One connection: `row` is a list of packets, or a function of a channel's number that gives one."""
    if where == "after":
        connection, channel = logged_in(port, user, key)
        packets = row(channel) if callable(row) else row
    else:
        connection, packets = RawSsh(port).connect(), row
        if where == "in":
            connection.ask_service()
    with connection:
        play(connection, packets)


def random_row(chance):
    """(where, packets): some as they should be, some mutated."""
    corpus = TEMPLATES + [packet for _, row in rows() for packet in plain(row) if len(packet) < 5000]
    packets = [chance.choice(corpus) for _ in range(chance.randrange(1, 25))]
    return chance.choice(("before", "in", "after", "after")), [mutated(chance, packet) if chance.random() < 0.7 else packet for packet in packets]


def attack_randomly(port, user, key, seed):
    where, packets = random_row(random.Random(seed))
    attack(port, user, key, where, packets)
