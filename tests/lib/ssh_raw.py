# SPDX-License-Identifier: Apache-2.0
"""A client of SSH that does as it is told: it exchanges keys and logs in as others do (curve25519-sha256, aes128-gcm@openssh.com, ssh-ed25519), and sends any bytes as a packet."""
import hashlib
import socket
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

PATIENCE = 20
BANNER = b"SSH-2.0-raw"
KEXINIT, NEWKEYS, ECDH_INIT, ECDH_REPLY = 20, 21, 30, 31
SUCCESS, FAILURE, PK_OK = 52, 51, 60
OPEN, CONFIRMED, REFUSED, ADJUST, DATA, EXTENDED, EOF, CLOSE, REQUEST = 90, 91, 92, 93, 94, 95, 96, 97, 98
NAMES = (b"curve25519-sha256", b"ssh-ed25519,ecdsa-sha2-nistp256", *(b"aes128-gcm@openssh.com",) * 2, *(b"hmac-sha2-256",) * 2, *(b"none",) * 2, b"", b"")


class Ended(Exception):
    """The server has hung up."""


def text(data):
    return struct.pack("!I", len(data)) + data


def mpint(data):
    data = data.lstrip(b"\0")
    return text(b"\0" + data if data and data[0] & 0x80 else data)


def number(value):
    return struct.pack("!I", value)


def kexinit(names=NAMES, is_strict=True):
    exchanges = names[0] + (b",kex-strict-c-v00@openssh.com" if is_strict else b"")
    return bytes([KEXINIT]) + b"c" * 16 + b"".join(text(one) for one in (exchanges, *names[1:])) + bytes(5)


class Direction:
    """Keys of one of the two ways."""

    def __init__(self, key, nonce):
        self.cipher, self.fixed, self.count = AESGCM(key), nonce[:4], int.from_bytes(nonce[4:12], "big")

    def nonce(self):
        self.count += 1
        return self.fixed + struct.pack("!Q", (self.count - 1) & (1 << 64) - 1)


class RawSsh:
    def __init__(self, port, is_strict=True):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_strict, self.ours, self.theirs, self.session, self.pending = is_strict, None, None, None, b""
        self.next_channel = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    # ---- packets ----

    def send_bytes(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Ended from error

    def frame(self, payload, padding=None):
        block = 16 if self.ours else 8
        fixed = 1 if self.ours else 5
        if padding is None:
            padding = block - (fixed + len(payload)) % block
            padding += block if padding < 4 else 0
        return number(1 + len(payload) + padding), bytes([padding & 255]) + payload + bytes(padding)

    def send(self, payload, padding=None, head=None):
        """`head` lies about the length; the rest is as it should be."""
        length, body = self.frame(payload, padding)
        length = head or length
        if self.ours:
            body = self.ours.cipher.encrypt(self.ours.nonce(), body, length)
        self.send_bytes(length + body)

    def receive_bytes(self, count):
        got = b""
        while len(got) < count:
            try:
                piece = self.socket.recv(count - len(got))
            except TimeoutError:
                raise
            except OSError as error:
                raise Ended from error
            if not piece:
                raise Ended
            got += piece
        return got

    def receive(self):
        head = self.receive_bytes(4)
        length = int.from_bytes(head, "big")
        assert length <= 1 << 20
        if not self.theirs:
            body = self.receive_bytes(length)
        else:
            try:
                body = self.theirs.cipher.decrypt(self.theirs.nonce(), self.receive_bytes(length + 16), head)
            except InvalidTag as error:
                raise AssertionError("what the server sent was not encrypted as agreed") from error
        return body[1:len(body) - body[0]]

    def expect(self, *kinds):
        """The next packet of these; others are passed over."""
        while True:
            payload = self.receive()
            if payload[0] in kinds:
                return payload
            if payload[0] == 1:
                raise Ended

    def drain(self):
        """Reads until the server hangs up."""
        self.socket.settimeout(PATIENCE)
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            raise
        except OSError:
            pass

    # ---- as others do ----

    def greet(self):
        self.send_bytes(BANNER + b"\r\n")
        line = b""
        while not line.endswith(b"\n"):
            line += self.receive_bytes(1)
        self.server = line.strip()

    def exchange(self):
        """Keys, for the first time or again."""
        mine = kexinit(is_strict=self.is_strict)
        self.send(mine)
        self.finish_exchange(mine, self.expect(KEXINIT))

    def finish_exchange(self, mine, theirs):
        private = X25519PrivateKey.generate()
        public = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.send(bytes([ECDH_INIT]) + text(public))
        reply = self.expect(ECDH_REPLY)[1:]
        host_key, rest = take(reply)
        point, _ = take(rest)
        secret = mpint(private.exchange(X25519PublicKey.from_public_bytes(point)))
        digest = hashlib.sha256(b"".join(text(one) for one in (BANNER, self.server, mine, theirs, host_key, public, point)) + secret).digest()
        self.session = self.session or digest

        def key(letter, length):
            return hashlib.sha256(secret + digest + letter + self.session).digest()[:length]
        self.send(bytes([NEWKEYS]))
        self.ours = Direction(key(b"C", 16), key(b"A", 12))
        self.expect(NEWKEYS)
        self.theirs = Direction(key(b"D", 16), key(b"B", 12))

    def connect(self):
        self.greet()
        self.exchange()
        return self

    def ask_service(self):
        self.send(b"\5" + text(b"ssh-userauth"))
        self.expect(6)

    def login_request(self, user, key):
        public = text(b"ssh-ed25519") + text(key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw))
        request = b"\x32" + text(user) + text(b"ssh-connection") + text(b"publickey") + b"\1" + text(b"ssh-ed25519") + text(public)
        return request + text(text(b"ssh-ed25519") + text(key.sign(text(self.session) + request)))

    def login(self, user, path):
        self.ask_service()
        key = serialization.load_ssh_private_key(path.read_bytes(), None)
        self.send(self.login_request(user.encode(), key))
        self.expect(SUCCESS)
        return self

    def open(self, kind=b"session", window=1 << 20, packet=32768, more=b""):
        """The server's number of a channel; ours counts from 0."""
        self.send(bytes([OPEN]) + text(kind) + number(self.next_channel) + number(window) + number(packet) + more)
        self.next_channel += 1
        answer = self.expect(CONFIRMED, REFUSED)
        return int.from_bytes(answer[5:9], "big") if answer[0] == CONFIRMED else None


def take(data):
    length = int.from_bytes(data[:4], "big")
    return data[4:4 + length], data[4 + length:]


def request(channel, kind, more=b"", wants_reply=True):
    return bytes([REQUEST]) + number(channel) + text(kind) + bytes([wants_reply]) + more
