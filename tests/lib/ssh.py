# SPDX-License-Identifier: Apache-2.0
"""Stock clients of SSH, pointed at a server of a test's: one key, known hosts of their own, and no configuration of whoever runs the tests."""
import contextlib
import re
import subprocess

import server as servers
from client import PATIENCE


@contextlib.contextmanager
def serving(directory, options=(), **settings):
    """A server of a test's own that listens for SSH, with these settings of it: tries=3 is BURROW_SSH_TRIES."""
    environment = {f"BURROW_SSH_{name.upper()}": str(value) for name, value in {"listen": "127.0.0.1:0", **settings}.items()}
    server = servers.Server(directory / "data", options=options, environment=environment)
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


def introduced(server, directory):
    """Somebody whose key the server knows."""
    ssh = Ssh(server, directory)
    assert server.client.post("/api/v1/ssh-keys", {"publicKey": ssh.public}).status == 201
    return ssh


def port_of(server):
    """Where the server listens for SSH."""
    return int(re.search(r"listening for SSH address=127\.0\.0\.1:(\d+)", server.log)[1])


def make_key(path, *options):
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-C", "tests", "-f", path, *(options or ("-t", "ed25519"))], check=True, timeout=PATIENCE)
    return path


class Ssh:
    """Runs ssh and its friends as one user, whose key is at `key`."""

    def __init__(self, server, directory):
        self.port, self.directory = port_of(server), directory
        self.key = make_key(directory / "id")
        self.known = directory / "known_hosts"
        keys = server.client.get("/api/v1/ssh").json["hostKeys"]
        self.known.write_text("".join(f"[127.0.0.1]:{self.port} {key}\n" for key in keys))
        self.public = (directory / "id.pub").read_text().strip()

    @property
    def options(self):
        return ["-F", "/dev/null", "-i", str(self.key), "-o", f"UserKnownHostsFile={self.known}", "-o", "GlobalKnownHostsFile=/dev/null",
                "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
                "-o", "ConnectTimeout=60"]

    def words(self, user, *command, options=()):
        return ["ssh", "-p", str(self.port), *self.options, *options, f"{user}@127.0.0.1", *command]

    def run(self, user, *command, options=(), input=b"", timeout=PATIENCE):
        return subprocess.run(self.words(user, *command, options=options), input=input, capture_output=True, timeout=timeout)

    def start(self, user, *command, options=(), **more):
        return subprocess.Popen(self.words(user, *command, options=options), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **more)

    def copy(self, program, *words, options=(), timeout=PATIENCE):
        """scp or sftp."""
        return subprocess.run([program, "-P", str(self.port), *self.options, *options, *words], capture_output=True, timeout=timeout)

    @property
    def command(self):
        """For programs that start ssh by themselves."""
        return " ".join(["ssh", "-p", str(self.port), *self.options])
