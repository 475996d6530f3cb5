# SPDX-License-Identifier: Apache-2.0
"""Coding agents and the protocol's inspector, unmodified: they read what `burrow mcp install` writes, start burrow, and find its tools.

Without any account, in a home of their own. The packages are those of the lock file, installed once below BURROW_COMPAT_DIR.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "lib"))
import packages  # noqa: E402
import server as servers  # noqa: E402
from client import until  # noqa: E402

pytestmark = pytest.mark.skipif(servers.why_not() is not None, reason=servers.why_not() or "")
PATIENCE = 120
TOOLS = 19


@pytest.fixture(scope="module")
def place():
    return packages.install(HERE, "mcp-agents") / "node_modules"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = servers.Server(tmp_path_factory.mktemp("agents") / "data").start()
    try:
        yield started
        started.end()
    finally:
        started.abandon()


@pytest.fixture
def home(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path


@pytest.fixture
def run(home):
    """A command in the project. Whatever it wants of the Internet, it finds nobody."""
    def start(*words, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("BURROW_", "CLAUDE", "CODEX"))}
        nowhere = {name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}
        quiet = {"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        done = subprocess.run(words, cwd=home / "project", capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False,
                              env={**clean, **nowhere, **quiet, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "HOME": str(home), **environment})
        assert done.returncode == 0, done
        return done.stdout
    return start


@pytest.fixture
def install(run):
    return lambda *words, **environment: run(servers.BURROW, "mcp", "install", *words, "--write", **environment)


def url(server):
    return f"http://127.0.0.1:{server.port}"


# ---- Claude Code ----

@pytest.fixture
def claude(place, run):
    return lambda *words, **environment: run(next(place.glob("@anthropic-ai/claude-code-linux-*/claude")), "mcp", *words, **environment)


def check_connected(text, name="burrow"):
    line, = (line for line in text.splitlines() if line.startswith(f"{name}: "))
    assert line.endswith("Connected") and "Failed" not in line, text


def test_claude_starts_burrow_and_burrow_a_server(claude, install, home):
    data = home / "data"
    servers.borrow_runtimes(data)
    install("claude", "--data", str(data))
    try:
        check_connected(claude("list"))
        assert "User config" in claude("get", "burrow")
    finally:
        for pid in re.findall(r"pid=(\d+)", (data / "server.log").read_text()):
            servers.end_process(int(pid))
            until(lambda: not pathlib.Path("/proc", pid).exists(), "the server ended")
        subprocess.run([servers.BURROW, "detach", "--data", data, "--end-sandboxes"], timeout=PATIENCE, check=True)


def test_claude_reads_the_file_of_a_project(claude, install, home, server):
    project = {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["burrow"]}
    (home / ".claude.json").write_text(json.dumps({"projects": {str(home / "project"): project}}))
    install("claude", "--project", "--url", url(server), BURROW_API_KEY=server.key)
    check_connected(claude("list", BURROW_API_KEY=server.key))
    assert "Project config" in claude("get", "burrow", BURROW_API_KEY=server.key)
    assert server.key not in (home / "project/.mcp.json").read_text()


def test_claude_over_http_as_the_guide_has_it(claude, home, server):
    claude("add", "--transport", "http", "burrow", f"{url(server)}/mcp", "--header", f"Authorization: Bearer {server.key}")
    check_connected(claude("list"))
    claude("remove", "burrow")
    claude("add", "--transport", "http", "burrow", f"{url(server)}/mcp", "--header", "Authorization: Bearer brw_wrong")
    assert not claude("list").rstrip().endswith("Connected")


# ---- Codex ----

@pytest.fixture
def codex(place):
    return next(place.glob("@openai/codex-linux-*/vendor/*/bin/codex"))


@pytest.fixture
def codex_tools(codex, home, server):
    """What its own server for editors says of each MCP server after having started it: the tools it found."""
    def ask():
        clean = {name: value for name, value in os.environ.items() if not name.startswith("BURROW_")}
        with subprocess.Popen([codex, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=home / "project",
                              env={**clean, "HOME": str(home), "BURROW_API_KEY": server.key, "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}) as process:
            timer = threading.Timer(PATIENCE, process.kill)
            timer.start()
            for message in ({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "compat", "title": "compat", "version": "1"}}},
                            {"method": "initialized"}, {"id": 2, "method": "mcpServerStatus/list", "params": {}}):
                process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            found = next(answer for answer in map(json.loads, process.stdout) if answer.get("id") == 2)
            timer.cancel()
            process.kill()
        return {one["name"]: sorted(one["tools"]) for one in found["result"]["data"]}
    return ask


def test_codex_reads_its_file_and_finds_the_tools(run, install, codex, codex_tools, home, server):
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text('model = "x"\n\n[mcp_servers.other]\ncommand = "false"\n')
    install("codex", "--url", url(server), BURROW_API_KEY=server.key)
    listed = {one["name"]: one for one in json.loads(run(codex, "mcp", "list", "--json"))}
    assert listed["burrow"]["enabled"] and listed["burrow"]["transport"]["args"] == ["mcp", "--url", url(server)]
    assert listed["burrow"]["transport"]["env_vars"] == ["BURROW_API_KEY"] and listed["other"]["transport"]["command"] == "false"
    assert "enabled: true" in run(codex, "mcp", "get", "burrow")
    assert len(codex_tools()["burrow"]) == TOOLS


def test_codex_over_http_as_the_guide_has_it(run, codex, codex_tools, server):
    run(codex, "mcp", "add", "burrow", "--url", f"{url(server)}/mcp", "--bearer-token-env-var", "BURROW_API_KEY")
    assert len(codex_tools()["burrow"]) == TOOLS


# ---- the inspector ----

@pytest.fixture(params=("http", "stdio"))
def inspect(request, place, run, server):
    node = packages.node(22)
    target = ([f"{url(server)}/mcp", "--header", f"Authorization: Bearer {server.key}"] if request.param == "http"
              else [servers.BURROW, "mcp", "--data", server.data])
    return lambda *words: json.loads(run(node, place / ".bin/mcp-inspector", "--cli", *target, *words))


def call(inspect, name, *pairs):
    result = inspect("--method", "tools/call", "--tool-name", name, *(word for pair in pairs for word in ("--tool-arg", pair)))
    assert not result["isError"], result
    return result["structuredContent"]


def test_the_inspector(inspect):
    assert len(inspect("--method", "tools/list", "--strict")["tools"]) == TOOLS
    box = call(inspect, "sandbox_create")["id"]
    assert call(inspect, "sandbox_exec", f"sandbox={box}", "script=echo hi | tee a")["stdout"]["text"] == "hi\n"
    assert f"burrow://sandboxes/{box}" in {one["uri"] for one in inspect("--method", "resources/list")["resources"]}
    content, = inspect("--method", "resources/read", "--uri", f"burrow://sandboxes/{box}/files/workspace/a")["contents"]
    assert content["text"] == "hi\n"
    assert len(inspect("--method", "resources/templates/list")["resourceTemplates"]) == 4
    assert call(inspect, "sandbox_destroy", f"sandbox={box}") == {"done": True}
