# SPDX-License-Identifier: Apache-2.0
"""A package is installed in a sandbox from the machine's own sources, by apt-get and by npm; and is not without a network."""
import json
import pathlib
import re
import shutil
import socket
import subprocess
from urllib.parse import urlparse

import pytest

import server as servers
from client import PATIENCE

V1 = "/api/v1"
BUNDLE = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
APT = "apt-get -q update && apt-get -q install -y --no-install-recommends hello && hello"
NPM = "cd /workspace && npm install --no-audit --no-fund --fetch-retries 1 --registry {} --cafile /workspace/ca.crt is-number && node -p 'require(\"is-number\")(5)'"


def debian():
    """Where the runtime's own list of sources leads."""
    listed = (servers.CACHE / "runtimes/base/latest/rootfs/etc/apt/sources.list").read_text()
    return re.search(r"https?://\S+", listed)[0]


def registry():
    done = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True, timeout=PATIENCE)
    return done.stdout.strip()


def why_not(url):
    """Why this machine itself gets nothing from there, or None."""
    place = urlparse(url)
    try:
        socket.create_connection((place.hostname, place.port or {"http": 80, "https": 443}[place.scheme]), 20).close()
    except OSError as reason:
        return f"the machine does not reach {place.hostname}: {reason}"
    return None


def install(tmp_path, runtime, url, script, **files):
    """The command with and without a network; the operator opens the source by its name, since a mirror may be at a private address."""
    server = servers.Server(tmp_path / "data", options=["--runtime", runtime, "--network-allow-always", urlparse(url).hostname])
    try:
        server.start()

        def run(**network):
            body = {"script": script, "timeoutMs": "120s", "network": network,
                    "files": [{"path": f"/workspace/{name}", "content": text} for name, text in files.items()]}
            answer = server.client.post(f"{V1}/run", body, timeout=200)
            assert answer.status == 200, str(answer)
            return answer.json
        ran = run(enabled=True, default="deny")
        assert ran["exitCode"] == 0, json.dumps(ran)
        refused = run(enabled=False)
        assert refused["exitCode"] != 0
        server.end()
        return ran["stdout"]["text"]
    finally:
        server.abandon()


def test_apt_get_installs_with_a_network_and_not_without(tmp_path):
    servers.borrow_runtimes(tmp_path / "first")  # so that it is built
    if reason := why_not(debian()):
        pytest.skip(reason)
    assert "Hello, world!" in install(tmp_path, "base:latest", debian(), APT)


def test_npm_installs_with_a_network_and_not_without(tmp_path):
    if not shutil.which("npm") or not BUNDLE.exists():
        pytest.skip("there is no npm here")
    if reason := why_not(registry()):
        pytest.skip(reason)
    assert "true" in install(tmp_path, "host:latest", registry(), NPM.format(registry()), **{"ca.crt": BUNDLE.read_text()})
