# SPDX-License-Identifier: Apache-2.0
"""An npm registry on loopback with packages made by the test: it can hold a download back, and lie about what a package is."""
import base64
import hashlib
import http.server
import io
import json
import tarfile
import threading


def make_package(name, version="1.0.0"):
    """A package with one program of its name, which prints its version."""
    files = {"package.json": json.dumps({"name": name, "version": version, "bin": {name: "run.js"}}),
             "run.js": f"#!/bin/sh\necho {name} {version}\n"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(f"package/{path}")
            info.size, info.mode = len(text), 0o755
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


class Registry:
    def __init__(self):
        self.packages = {}     # name: bytes of its archive
        self.wrong = set()     # names of those that are not what is said of them
        self.downloads = []    # names, in the order in which they were asked for
        self.may_go = threading.Event()
        self.may_go.set()
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                registry.answer(self)

            def log_message(self, *arguments):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, name):
        self.packages[name] = make_package(name)

    def answer(self, request):
        name = request.path.strip("/").split("/")[0]
        data = self.packages.get(name)
        if data is None:
            return self.send(request, 404, b"{}")
        if request.path.endswith(".tgz"):
            self.downloads.append(name)
            self.may_go.wait(120)
            return self.send(request, 200, data)
        digest = hashlib.sha512(b"other" if name in self.wrong else data).digest()
        version = {"name": name, "version": "1.0.0", "bin": {name: "run.js"},
                   "dist": {"tarball": f"{self.url}{name}/-/{name}-1.0.0.tgz", "integrity": "sha512-" + base64.b64encode(digest).decode()}}
        self.send(request, 200, json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode())

    @staticmethod
    def send(request, status, body):
        try:
            request.send_response(status)
            request.send_header("Content-Type", "application/json")
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)
        except OSError:
            pass  # who asked has ended

    def close(self):
        self.may_go.set()
        self.server.shutdown()
        self.server.server_close()
