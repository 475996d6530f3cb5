# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/guide/e2b.md, typed as they are written: a page that has drifted from burrow fails here. Its programs are run by tests/compat/e2b."""
import pathlib
import re
import subprocess

import pytest

import server as servers

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs/guide/e2b.md").read_text()
pytestmark = pytest.mark.skipif(servers.why_not() is not None, reason=str(servers.why_not()))


def fenced():
    """Lines of blocks without a language."""
    return [line for block in re.findall(r"```\n(.*?)```", PAGE, re.S) for line in block.splitlines()]


def test_the_page_has_the_commands_that_are_typed_here():
    assert [line for line in fenced() if line.startswith("$ ")] == ["$ sudo burrow serve", "$ sudo burrow key create --e2b"]
    assert [line.split("=")[0] for line in fenced() if line.startswith("export ")] == ["export E2B_API_URL", "export E2B_SANDBOX_URL", "export E2B_API_KEY"]


def test_they_work(tmp_path):
    server = servers.Server(tmp_path / "data", environment={"BURROW_E2B_RUNTIME": "base:latest"})
    try:
        server.start()
        words = next(line for line in fenced() if "key create" in line).split()[2:]
        made = subprocess.run([servers.BURROW, *words[1:], "--data", server.data], capture_output=True, text=True, timeout=60)
        key = made.stdout.strip()
        assert made.returncode == 0 and re.fullmatch(r"e2b_[0-9a-f]{40,}", key), made.stderr
        answer = server.client.get("/v2/sandboxes", key=None, headers={"X-API-Key": key})
        assert answer.status == 200 and answer.json == []
        server.end()
    finally:
        server.abandon()


def test_options_and_commands_that_it_names_exist():
    for option in re.findall(r"`burrow serve (--[\w-]+)", PAGE):
        assert option in subprocess.run([servers.BURROW, "serve", "--help"], capture_output=True, text=True, timeout=60).stdout
    assert re.findall(r"`burrow runtime add NAME --from", PAGE)
    assert "--from" in subprocess.run([servers.BURROW, "runtime", "add", "--help"], capture_output=True, text=True, timeout=60).stdout
    port = re.search(r"E2B_API_URL=http://127\.0\.0\.1:(\d+)", PAGE)[1]
    assert f"127.0.0.1:{port}" in subprocess.run([servers.BURROW, "serve", "--help"], capture_output=True, text=True, timeout=60).stdout
