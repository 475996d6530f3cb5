# SPDX-License-Identifier: Apache-2.0
"""A host and an Internet in namespaces of the test's own: nothing here reaches the machine's network."""
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BUILD = Path(os.environ["BURROW_EGRESS_DRIVER"]).parents[1]
ADDRESSES = ["93.184.220.10", "93.184.220.11", "10.20.0.5", "169.254.169.254", "9.9.9.9"]
REFUSAL = ["slot", "kind", "name", "address", "port", "protocol", "tier", "rule", "count", "would_deny", "reason", "remedy"]
PATIENCE = 60


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=PATIENCE, **options)


def until(look, what):
    """Waits until it is so; what it says then."""
    deadline = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)
    return found


class Space:
    """A network namespace, held by a process, with a mount namespace of its own."""
    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "-n", "-m", "sleep", "infinity"])
        mine = os.readlink("/proc/self/ns/net")
        until(lambda: os.readlink(f"/proc/{self.holder.pid}/ns/net") != mine and
              Path(f"/proc/{self.holder.pid}/comm").read_text() == "sleep\n", "a namespace")
        self.pid = self.holder.pid

    def command(self, *command):
        return ["nsenter", "-t", str(self.pid), "-n", "-m", *[str(word) for word in command]]

    def run(self, *command):
        return run(*self.command(*command))

    def end(self):
        self.holder.kill()
        self.holder.wait()


class Box:
    """A namespace that has nothing but a wire to the gateway."""
    def __init__(self, world, slot):
        self.world, self.slot = world, slot
        _, pid, self.address = world.tell(f"box {slot}")[-1].split()
        self.pid = int(pid)

    def allow(self, *rules, default="deny", observe="no", secrets=()):
        text = f"policy 1\nmode rules\ndefault {default}\nobserve {observe}\nsecrets {'yes' if secrets else 'no'}\n"
        text += "".join(f"{rule}\n" if rule.split()[0] in ("always", "user", "baseline") else f"user allow {rule}\n" for rule in rules)
        return self.set(text, secrets)

    def open(self):
        return self.set("policy 1\nmode open\ndefault allow\nobserve no\n")

    def set(self, text, secrets=()):
        policy = self.world.data / f"policy-{self.slot}"
        policy.write_text(text)
        hidden = self.world.data / f"secrets-{self.slot}"
        hidden.write_text("".join("\t".join(secret) + "\n" for secret in secrets))
        return self.world.tell(f"set {self.slot} {policy} {hidden}")[-1]

    def start(self, *command, **options):
        return subprocess.Popen(["nsenter", "-t", str(self.pid), "-n", "-m", *[str(word) for word in command]], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.PIPE, **options)

    def ask(self, what, *arguments):
        """Does something inside (inside.py); a JSON value."""
        process = self.start("/usr/bin/python3", HERE / "inside.py", what, json.dumps(arguments))
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        return json.loads(said.splitlines()[-1])

    def curl(self, url, *options):
        process = self.start("curl", "-sS", "--max-time", "30", "-o", "-", "-w", "\n%{http_code}", *options, url)
        said, _ = process.communicate(timeout=PATIENCE)
        body, _, code = said.rpartition("\n")
        return int(code), body


class World:
    def __init__(self, proxy=""):
        self.data = Path(tempfile.mkdtemp(prefix="egress-"))
        self.proxy = proxy
        self.slots = 100
        self.servers = self.driver = None
        self.host, self.internet = Space(), Space()
        try:
            self.prepare()
        except BaseException:
            self.end()
            raise

    def prepare(self):
        self.make_certificates()
        self.connect()
        self.servers = subprocess.Popen(self.internet.command("/usr/bin/python3", HERE / "world.py", self.data), stdout=subprocess.PIPE, text=True)
        assert self.servers.stdout.readline() == "ready\n"
        self.start()

    def make_certificates(self):
        """The Internet's own authority, which the host trusts and boxes need not."""
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650", "-subj", "/CN=Internet",
            "-keyout", self.data / "ca.key", "-out", self.data / "ca.crt")
        for name in ("allowed", "other", "lone", "secret", "evil", "a.wild", "short"):
            name += ".example"
            run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-addext",
                f"subjectAltName=DNS:{name}", "-keyout", self.data / "key", "-out", self.data / "csr")
            run("openssl", "x509", "-req", "-in", self.data / "csr", "-CA", self.data / "ca.crt", "-CAkey", self.data / "ca.key", "-CAcreateserial",
                "-days", "3650", "-copy_extensions", "copy", "-out", self.data / "crt")
            (self.data / f"{name}.pem").write_text((self.data / "crt").read_text() + (self.data / "key").read_text())
        self.host.run("mount", "--bind", self.data / "ca.crt", "/etc/ssl/certs/ca-certificates.crt")

    def connect(self):
        run("ip", "link", "add", "toworld", "netns", self.host.pid, "type", "veth", "peer", "name", "tohost", "netns", self.internet.pid)
        for space, name, address in ((self.host, "toworld", "93.184.216.1/24"), (self.internet, "tohost", "93.184.216.2/24")):
            space.run("ip", "link", "set", "lo", "up")
            space.run("ip", "address", "add", address, "dev", name)
            space.run("ip", "link", "set", name, "up")
        self.host.run("ip", "route", "add", "default", "via", "93.184.216.2")
        for address in ADDRESSES:
            self.internet.run("ip", "address", "add", f"{address}/32", "dev", "lo")

    def start(self):
        self.driver = subprocess.Popen(self.host.command(os.environ["BURROW_EGRESS_DRIVER"], self.data, BUILD / "src/burrow-egress", "9.9.9.9", self.proxy),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first = self.driver.stdout.readline()
        assert first.startswith("ok"), first

    def tell(self, line, may_fail=False):
        self.driver.stdin.write(line + "\n")
        self.driver.stdin.flush()
        said = []
        while not said or not said[-1].startswith(("ok", "error")):
            answer = self.driver.stdout.readline()
            assert answer, f"the driver ended at '{line}'"
            said.append(answer.rstrip("\n"))
        assert may_fail or said[-1].startswith("ok"), said
        return said

    def box(self):
        self.slots += 1
        return Box(self, self.slots)

    def refusals(self, box, **facts):
        """Waits for a refusal with these facts, and returns it."""
        def look():
            for line in self.tell("refusals 50"):
                if line.startswith("refusal\t"):
                    self.seen.append(dict(zip(REFUSAL, line.split("\t")[1:])))
            return [r for r in self.seen if r["slot"] == str(box.slot) and all(r[name] == str(value) for name, value in facts.items())]
        return until(look, f"a refusal of {facts}")[-1]

    seen = []

    def log(self, **facts):
        path = self.data / "log"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in lines if all(line.get(name) == value for name, value in facts.items())]

    def processes(self):
        """The supervisor and the worker of this world."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
                if words[0] != b"burrow-egress":
                    continue
                if words[1] == os.fsencode(self.data):
                    found["supervisor"] = int(path.name)
                elif words[1] == b"--worker":
                    parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
                    found.setdefault("workers", {})[parent] = int(path.name)
            except (OSError, IndexError):
                continue
        return found.get("supervisor"), found.get("workers", {}).get(found.get("supervisor"))

    def end(self):
        try:
            if self.driver and self.driver.poll() is None:
                self.driver.stdin.write("stop\n")
                self.driver.stdin.close()
                self.driver.wait(timeout=PATIENCE)
        finally:
            for process in (self.driver, self.servers):
                if process:
                    process.kill()
                    process.wait()
            self.internet.end()
            self.host.end()
            shutil.rmtree(self.data, ignore_errors=True)


def make(proxy=""):
    if os.geteuid() != 0:
        pytest.skip("needs root: namespaces and a gateway")
    if not shutil.which("nft"):
        pytest.skip("needs nftables")
    return World(proxy)


@pytest.fixture(scope="module")
def world():
    made = make()
    yield made
    made.end()


@pytest.fixture
def box(world):
    return world.box()
