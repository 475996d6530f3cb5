# SPDX-License-Identifier: Apache-2.0
"""Images by hand: layers as tars with anything in them, layouts, and a registry on loopback."""
import contextlib
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import time
import urllib.error
import urllib.request

BUSYBOX = pathlib.Path("/bin/busybox")  # busybox-static
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
TOOLS = ["sh", "cat", "ls", "id", "env", "pwd", "stat", "echo", "mkdir", "ln", "rm", "touch", "true", "readlink", "wc", "find", "sleep"]


def entry(name, data=None, *, kind=None, mode=None, uid=0, gid=0, link="", attributes=None, mtime=1000000000, device=(0, 0)):
    """One thing in a tar: a file with data, a directory without; or of another kind of tarfile's."""
    info = tarfile.TarInfo(name)
    if isinstance(data, str):
        data = data.encode()
    info.type = kind or (tarfile.DIRTYPE if data is None else tarfile.REGTYPE)
    info.mode = mode if mode is not None else (0o755 if info.type == tarfile.DIRTYPE else 0o644)
    info.uid, info.gid, info.mtime, info.linkname = uid, gid, mtime, link
    info.size = len(data) if data and info.type == tarfile.REGTYPE else 0
    info.devmajor, info.devminor = device
    info.pax_headers = {f"SCHILY.xattr.{key}": value for key, value in (attributes or {}).items()}
    return info, data


def symlink(name, target):
    return entry(name, kind=tarfile.SYMTYPE, link=target, mode=0o777)


def hard_link(name, target):
    return entry(name, kind=tarfile.LNKTYPE, link=target)


def layer(*entries):
    """A tar, not compressed."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data) if info.size else None)
    return out.getvalue()


def system():
    """Entries of a little system: busybox and users."""
    yield entry("bin")
    yield entry("bin/busybox", BUSYBOX.read_bytes(), mode=0o755)
    for tool in TOOLS:
        yield symlink(f"bin/{tool}", "busybox")
    yield entry("etc")
    yield entry("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nworker:x:4711:4712:worker:/srv:/bin/sh\n")
    yield entry("etc/group", "root:x:0:\nworkers:x:4712:\nothers:x:4800:\n")
    yield entry("srv", uid=4711, gid=4712)


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Layout:
    """An image layout in a directory, built piece by piece."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        (self.path / "blobs/sha256").mkdir(parents=True)
        (self.path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def blob(self, data, media_type, **more):
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        (self.path / "blobs/sha256" / digest(data)[7:]).write_bytes(data)
        return {"mediaType": media_type, "digest": digest(data), "size": len(data), **more}

    def layer(self, data, compression="gzip"):
        packed = {"": lambda: data, "gzip": lambda: gzip.compress(data, 1, mtime=0),
                  "zstd": lambda: subprocess.run(["zstd", "-q", "-1"], input=data, stdout=subprocess.PIPE, check=True).stdout}
        return self.blob(packed[compression](), LAYER + (f"+{compression}" if compression else ""))

    def image(self, layers, compression="gzip", architecture=ARCHITECTURE, **config):
        """A manifest of these layers; what it is named by."""
        text = {"architecture": architecture, "os": "linux", "config": config,
                "rootfs": {"type": "layers", "diff_ids": [digest(data) for data in layers]}}
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": self.blob(text, CONFIG),
                    "layers": [self.layer(data, compression) for data in layers]}
        return self.blob(manifest, MANIFEST)

    def index(self, *manifests):
        text = {"schemaVersion": 2, "mediaType": INDEX, "manifests": list(manifests)}
        (self.path / "index.json").write_text(json.dumps(text))
        return self

    def __str__(self):
        return f"oci:{self.path}"


def simple(path, *layers, compression="gzip", **config):
    layout = Layout(path)
    return layout.index(layout.image([layer(*system()), *layers], compression, **config))


def start_registry(path, users):
    """A registry on a port that was free a moment ago, and its address; None where somebody else was quicker."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = path / "registry.yml"
    config.write_text(f"version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {path}/registry\n  delete:\n    enabled: true\n"
                      f"http:\n  addr: 127.0.0.1:{port}\n")
    if users:
        (path / "htpasswd").write_text(users)
        with open(config, "a", encoding="ascii") as more:
            more.write(f"auth:\n  htpasswd:\n    realm: test\n    path: {path}/htpasswd\n")
    with open(path / "registry.log", "wb") as log:
        server = subprocess.Popen([shutil.which("docker-registry"), "serve", config], stdout=log, stderr=log)
    deadline = time.monotonic() + 60
    while server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/", timeout=10).close()
            return server, f"127.0.0.1:{port}"
        except urllib.error.HTTPError:  # it wants a password
            return server, f"127.0.0.1:{port}"
        except OSError:
            assert time.monotonic() < deadline, (path / "registry.log").read_text()
            time.sleep(0.05)
    return None


@contextlib.contextmanager
def registry(path, users=None):
    """Debian's docker-registry on a free port of loopback; its address. `users` is a text as of htpasswd(1)."""
    started = next(filter(None, (start_registry(path, users) for _ in range(5))), None)
    assert started, (path / "registry.log").read_text()
    server, address = started
    try:
        yield address
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def push(source, target, *words):
    """With skopeo, to a registry on loopback."""
    clear = ["--src-tls-verify=false", "--dest-tls-verify=false"]
    subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", *clear, *words, source, target], check=True,
                   env={**os.environ, "HOME": "/nonexistent"}, timeout=120)


class Liar(http.server.BaseHTTPRequestHandler):
    """A registry of one image that answers `lie` (what is asked for: "registry", "manifest", "config" or "layer", and this handler) before the truth; True: it has answered."""

    def log_message(self, *words):
        pass

    def give(self, data, media_type="application/octet-stream", length=None):
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)
        return True

    def give_without_end(self, media_type="application/octet-stream"):
        """About 16 MiB a second, until nobody listens."""
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.end_headers()
        with contextlib.suppress(OSError):
            while not self.server.is_over.wait(0.004):
                self.wfile.write(b"x" * 65536)
        return True

    def say_no_more(self):
        self.server.is_over.wait()
        return True

    def lead(self, place):
        self.send_response(307)
        self.send_header("Location", place)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return True

    def do_GET(self):
        parts = self.server.parts
        with contextlib.suppress(OSError):
            if self.path == "/v2/":
                return self.server.lie("registry", self) or self.give(b"{}", "application/json")
            what = "manifest" if "/manifests/" in self.path else "config" if digest(parts["config"]) in self.path else "layer"
            return self.server.lie(what, self) or self.give(parts[what], MANIFEST if what == "manifest" else "application/octet-stream")


@contextlib.contextmanager
def liar(lie, **more):
    """The address of an image of such a registry. `more` is for the descriptor of its layer."""
    data = layer(entry("x", "x" * 100000))
    config = json.dumps({"architecture": ARCHITECTURE, "os": "linux", "rootfs": {"type": "layers", "diff_ids": [digest(data)]}}).encode()
    described = {"mediaType": LAYER, "digest": digest(data), "size": len(data), **more}
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": {"mediaType": CONFIG, "digest": digest(config), "size": len(config)}, "layers": [described]}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    server.lie, server.is_over = lie, threading.Event()
    server.parts = {"layer": data, "config": config, "manifest": json.dumps(manifest).encode()}
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"docker://127.0.0.1:{server.server_port}/a/image:latest"
    finally:
        server.is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()
