# SPDX-License-Identifier: Apache-2.0
"""Ways to kill a server at a chosen point, and to start it again."""
import re
import shutil
import signal
import subprocess
import time

import pytest
from client import until

needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


def crash(server):
    server.kill()
    server.start()
    return server.client


def local(url):
    """A stream's path: the port is another one after a restart."""
    return re.sub(r"^http://[^/]+", "", url)


def attempt(fn):
    """Its result, or None when the server went away."""
    try:
        return fn()
    except (OSError, EOFError) as error:
        del error
    except Exception as error:  # http.client's own, all of them for a connection that ended
        if type(error).__module__ != "http.client":
            raise
    return None


class Trap:
    """Kills the server at its Nth call of this kind from now on."""

    def __init__(self, server, call, number):
        self.server = server
        words = ["strace", "-f", "-p", str(server.pid), "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}", "-o", "/dev/null"]
        self.tracer = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        line = self.tracer.stderr.readline()
        assert "attached" in line, line

    def end(self):
        """Whether it has sprung; the server is dead then, else the trap is gone."""
        sprung = self.server.process.poll() is not None
        # A tracer waits for what it cannot detach from: the dying. Without it the kernel lets go of all.
        self.tracer.send_signal(signal.SIGKILL if sprung else signal.SIGINT)
        try:
            self.tracer.wait(10)
        except subprocess.TimeoutExpired:
            self.tracer.kill()
            self.tracer.wait()
        self.tracer.stderr.close()
        if not sprung:
            # Detaching may lose against the injection.
            try:
                self.server.process.wait(0.05)
                sprung = True
            except subprocess.TimeoutExpired:
                pass
        return sprung


def start_again(server):
    """A child that the tracer held between clone and exec has the lock of the data directory for a moment longer."""
    deadline = time.monotonic() + 10
    while True:
        server.launch()
        until(lambda: server.process.poll() is not None or "listening" in server.log, "it to listen or to end")
        if server.process.poll() is None:
            break
        assert "another server" in server.log and time.monotonic() < deadline, server.log
    until(server.is_listening, "it to listen")
    until(server.is_healthy, "it to be healthy")
