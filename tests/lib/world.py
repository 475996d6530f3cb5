# SPDX-License-Identifier: Apache-2.0
"""A world of a test's own: a machine that a server runs on, and what it can reach, as two network namespaces with one wire between. Nothing leaves them."""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from client import PATIENCE, until

CLONE_NEWNET = 0x40000000
DNS, ONE, TWO, THREE = "93.184.216.53", "93.184.216.34", "93.184.216.35", "93.184.216.36"
LAN, METADATA, MACHINE = "192.168.77.2", "169.254.169.254", "93.184.216.1"
# Two names on one address, one elsewhere; a name that leads into the LAN.
NAMES = {"good.test": ONE, "evil.test": ONE, "other.test": TWO, "api.wild.test": THREE, "wild.test": THREE, "inside.test": LAN, "brief.test": TWO}
SERVICES = pathlib.Path(__file__).with_name("world_services.py")
libc = ctypes.CDLL(None, use_errno=True)


def enter(path):
    with open(path) as place:
        if libc.setns(place.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"enter {path}")


def run(*words):
    subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE)


class World:
    """`with World() as world:` is inside the machine; whoever is started there is too. `more` are names besides; what `files` has below a host's name is what
    the web servers answer for it."""

    def __init__(self, more=None, files=None):
        self.names, self.files = {**NAMES, **(more or {})}, files
        self.machine, self.outside = (f"bw{os.getpid()}{side}" for side in "mo")
        self.folder = tempfile.TemporaryDirectory()
        self.services = None

    def __enter__(self):
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        for name in (self.machine, self.outside):
            run("ip", "netns", "add", name)
        run("ip", "-n", self.machine, "link", "add", "up0", "type", "veth", "peer", "name", "in0", "netns", self.outside)
        for name, link, addresses in ((self.machine, "up0", (f"{MACHINE}/24", "192.168.77.1/24")),
                                      (self.outside, "in0", (*(f"{one}/24" for one in (DNS, ONE, TWO, THREE, LAN)), f"{METADATA}/32"))):
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", link, "up")
            for address in addresses:
                run("ip", "-n", name, "addr", "add", address, "dev", link)
        run("ip", "-n", self.machine, "route", "add", "default", "via", ONE)
        run("ip", "-n", self.machine, "route", "add", f"{METADATA}/32", "dev", "up0")
        self.log = pathlib.Path(self.folder.name) / "log"
        self.log.touch()
        cert = pathlib.Path(self.folder.name) / "cert.pem"
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", cert, "-out", f"{cert}.crt", "-days", "2", "-subj", "/CN=test",
            "-addext", "subjectAltName=" + ",".join(f"DNS:{name}" for name in self.names))
        self.certificate = pathlib.Path(f"{cert}.crt")
        cert.write_text(cert.read_text() + pathlib.Path(f"{cert}.crt").read_text())
        enter(f"/run/netns/{self.outside}")
        try:
            self.services = subprocess.Popen([sys.executable, SERVICES, self.log, cert, json.dumps(self.names), DNS, self.files or ""],
                                             stdin=subprocess.DEVNULL)
        finally:
            enter(f"/run/netns/{self.machine}")
        until(lambda: "ready" in self.log.read_text(), "the services of the world")

    def seen(self):
        """What the services were asked, as words: [["dns", "good.test"], ["http", "93.184.216.34", "good.test", "/"], …]"""
        return [line.split() for line in self.log.read_text().splitlines()]

    def __exit__(self, *_):
        libc.setns(self.home, CLONE_NEWNET)
        os.close(self.home)
        if self.services:
            self.services.kill()
            self.services.wait(PATIENCE)
        for name in (self.machine, self.outside):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=PATIENCE)
        self.folder.cleanup()
