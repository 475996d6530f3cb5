# SPDX-License-Identifier: Apache-2.0
"""burrow mcp: messages on standard input and output, and the files of coding agents."""
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import server as servers  # noqa: E402
from mcp import META, MODERN, meta  # noqa: E402
from test_commands import BURROW, PATIENCE, burrow, end_process, pytestmark, server  # noqa: E402,F401


class Bridge:
    """The program as a client starts it."""

    def __init__(self, *words, **environment):
        self.process = subprocess.Popen([BURROW, "mcp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, **environment})
        self.lines, self.arrived = [], threading.Condition()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            with self.arrived:
                self.lines.append(json.loads(line))  # nothing but messages is ever there
                self.arrived.notify_all()

    def send(self, *messages):
        for message in messages:
            self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def find(self, wanted):
        with self.arrived:
            found = self.arrived.wait_for(lambda: [line for line in self.lines if wanted(line)], PATIENCE)
            assert found, (self.lines, self.process.poll())
            return found[0]

    def answer(self, id):
        return self.find(lambda line: line.get("id") == id and "method" not in line)

    def ask(self, id, method, **params):
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return self.answer(id)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def bridge(burrow):  # noqa: F811
    with Bridge(**burrow.environment) as made:
        yield made


def run(id, script, **more):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "sandbox_run", "arguments": {"script": script}, **more}}


def test_a_legacy_client(bridge):
    hello = bridge.ask(0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
    assert hello["result"]["protocolVersion"] == "2025-06-18"
    bridge.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert len(bridge.ask("list", "tools/list")["result"]["tools"]) == 19
    assert bridge.ask(2, "tools/call", name="sandbox_run", arguments={"script": "echo hi"})["result"]["structuredContent"]["stdout"]["text"] == "hi\n"
    assert bridge.ask(3, "no/such")["error"]["code"] == -32601
    assert bridge.end() == 0 and bridge.process.stderr.read() == b""


def test_the_stateless_revision_gets_its_headers(bridge):
    assert bridge.ask(1, "server/discover", _meta=meta())["result"]["supportedVersions"][0] == MODERN
    ran = bridge.ask(2, "tools/call", name="sandbox_run", arguments={"script": "echo hi"}, _meta=meta())
    assert ran["result"]["resultType"] == "complete" and ran["result"]["structuredContent"]["exitCode"] == 0
    assert bridge.ask(3, "resources/read", uri="burrow://sandboxes/ä b", _meta=meta())["error"]["code"] == -32602
    assert bridge.ask(4, "server/discover", _meta=meta("1900-01-01"))["error"]["code"] == -32022
    assert bridge.ask(5, "tools/list", _meta={META + "protocolVersion": MODERN})["error"]["code"] == -32602


def test_what_is_wrong_is_answered_and_ends_nothing(bridge):
    bridge.send(b"not json\n", b"\n", b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":[]}\n")
    assert bridge.find(lambda line: line["id"] is None)["error"]["code"] == -32700
    assert bridge.answer(7)["error"]["code"] == -32602
    assert bridge.ask(8, "ping")["result"] == {}


def test_a_line_that_is_too_long_is_left_out_and_ends_nothing(bridge):
    bridge.send(run("slow", "sleep 600"), b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":"' + b"x" * (18 << 20) + b'"}}\n')
    assert "16 MiB" in bridge.find(lambda line: line["id"] is None)["error"]["message"]
    assert bridge.ask(6, "ping")["result"] == {}
    assert not [line for line in bridge.lines if line["id"] in (5, "slow")]


def test_several_requests_at_once_and_each_answered_when_it_is_done(bridge):
    bridge.send(run("slow", "sleep 600"), *(run(n, f"echo {n}") for n in range(5)))
    for n in range(5):
        assert bridge.answer(n)["result"]["structuredContent"]["stdout"]["text"] == f"{n}\n"
    assert not [line for line in bridge.lines if line["id"] == "slow"]
    assert bridge.end() == 0


def sandboxes(burrow):  # noqa: F811
    return [one for one in burrow.json("list", "--all", "--selector", "mcp=bridge") if one["state"] not in ("ended", "failed", "terminated")]


def wait_until(fn):
    deadline = time.monotonic() + PATIENCE
    while not fn():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("how", ("cancelled", "end of input", "killed"))
def test_a_one_shot_ends_when_nobody_waits_for_it(bridge, burrow, how):  # noqa: F811
    message = run(9, "sleep 600")
    message["params"]["arguments"]["labels"] = {"mcp": "bridge"}
    bridge.send(message)
    wait_until(lambda: sandboxes(burrow))
    if how == "cancelled":
        bridge.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})
    elif how == "killed":
        bridge.process.kill()
    else:
        assert bridge.end() == 0
    wait_until(lambda: not sandboxes(burrow))
    if how == "cancelled":
        assert bridge.ask(10, "ping")["result"] == {} and not [line for line in bridge.lines if line["id"] == 9]


@pytest.mark.parametrize("end", ("\n", ""))
def test_what_was_asked_before_the_end_of_input_is_answered(burrow, end):  # noqa: F811
    asked = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, run(2, "echo piped")]
    done = burrow("mcp", input="\n".join(map(json.dumps, asked)).encode() + end.encode())
    told = {line["id"]: line["result"] for line in map(json.loads, done.stdout.splitlines())}
    assert told[1] == {} and "piped" in json.dumps(told[2])


def test_progress_reaches_the_client(bridge):
    bridge.send(run(1, "sleep 2.5", _meta={"progressToken": 5}))
    assert bridge.find(lambda line: line.get("method") == "notifications/progress")["params"]["progressToken"] == 5
    assert bridge.answer(1)["result"]["structuredContent"]["exitCode"] == 0


def test_a_key_that_is_none_is_an_answer(burrow, server):  # noqa: F811
    url = f"http://127.0.0.1:{server.port}"
    with Bridge("--url", url, **burrow.environment, BURROW_API_KEY="brw_wrong") as bridge:
        answer = bridge.ask(4, "tools/list")
        assert "key" in answer["error"]["message"]
    with Bridge("--url", url, **burrow.environment, BURROW_API_KEY=server.key) as bridge:
        assert bridge.ask(4, "tools/list")["result"]["tools"]


def test_nothing_else_has_to_run(tmp_path):
    data = tmp_path / "data"
    servers.borrow_runtimes(data)
    environment = {"HOME": str(tmp_path), "BURROW_DATA": str(data), "BURROW_END_WHEN_QUIET": "1h"}
    try:
        with Bridge(**environment) as bridge:
            assert bridge.ask(1, "tools/call", name="sandbox_run", arguments={"script": "echo alone"})["result"]["structuredContent"]["stdout"]["text"] == "alone\n"
            assert bridge.end() == 0 and b"starting a server" in bridge.process.stderr.read()
    finally:
        for pid in re.findall(r"pid=(\d+)", (data / "server.log").read_text()):
            end_process(int(pid))
        subprocess.run([BURROW, "detach", "--data", data, "--end-sandboxes"], timeout=PATIENCE, check=True)


# ---- burrow mcp install ----

def install(home, *words, ok=True, **environment):
    done = subprocess.run([BURROW, "mcp", "install", *words], capture_output=True, text=True, cwd=home, timeout=PATIENCE,
                          env={"HOME": str(home), "PATH": os.environ["PATH"], **environment})
    assert (done.returncode == 0) == ok, done
    return done


FILES = {"claude": (".claude.json", ".mcp.json", "mcpServers"), "cursor": (".cursor/mcp.json", ".cursor/mcp.json", "mcpServers"),
         "vscode": (".config/Code/User/mcp.json", ".vscode/mcp.json", "servers")}


@pytest.mark.parametrize("client", FILES)
def test_json_is_printed_or_merged(tmp_path, client):
    user, project, member = FILES[client]
    printed = json.loads(install(tmp_path, client).stdout)
    entry = printed[member]["burrow"]
    assert entry == {"type": "stdio", "command": os.path.realpath(BURROW), "args": ["mcp"]} and not list(tmp_path.rglob("*.json"))
    file = tmp_path / user
    install(tmp_path, client, "--write")
    assert json.loads(file.read_text()) == printed and file.stat().st_mode & 0o777 == 0o600
    kept = {"z": 1e3, "a": {"é": [1, 2.50, None]}, member: {"other": {"command": "x"}, "burrow": {"command": "old"}}, "tail": "😀"}
    file.write_text(json.dumps(kept))
    file.chmod(0o640)
    install(tmp_path, client, "--write")
    now = json.loads(file.read_text())
    assert now == {**kept, member: {"other": {"command": "x"}, "burrow": entry}} and list(now) == list(kept)
    assert "1000.0" in file.read_text() and file.stat().st_mode & 0o777 == 0o640
    before = file.read_text()
    install(tmp_path, client, "--write")
    assert file.read_text() == before
    install(tmp_path, client, "--project", "--write", "--url", "https://b.example", BURROW_API_KEY="brw_secret")
    text = (tmp_path / project).read_text()
    made = json.loads(text)[member]["burrow"]
    assert made["args"] == ["mcp", "--url", "https://b.example"] and "BURROW_API_KEY" in made["env"]["BURROW_API_KEY"] and "brw_secret" not in text


@pytest.mark.parametrize("content", ("{", "// comment\n{}", "[]", '{"mcpServers": []}', "\xff"))
def test_a_broken_file_is_left_alone(tmp_path, content):
    file = tmp_path / ".mcp.json"
    file.write_text(content, encoding="latin-1")
    done = install(tmp_path, "claude", "--project", "--write", ok=False)
    assert "nothing was written" in done.stderr and "burrow mcp install claude" in done.stderr
    assert file.read_text(encoding="latin-1") == content and len(list(tmp_path.iterdir())) == 1


def test_toml_keeps_what_is_there(tmp_path):
    file = tmp_path / ".codex/config.toml"
    install(tmp_path, "codex", "--write")
    assert file.read_text() == f'[mcp_servers.burrow]\ncommand = "{os.path.realpath(BURROW)}"\nargs = ["mcp"]\n'
    file.write_text('model = "x"\n\n[mcp_servers.burrow]\ncommand = "old"\n[mcp_servers.burrow.env]\nA = "1"\n\n[mcp_servers.other]\ncommand = "y" # kept')
    install(tmp_path, "codex", "--write", "--url", "http://h:1")
    import tomllib
    now = tomllib.loads(file.read_text())
    assert now["model"] == "x" and now["mcp_servers"]["other"] == {"command": "y"} and "# kept" in file.read_text()
    assert now["mcp_servers"]["burrow"] == {"command": os.path.realpath(BURROW), "args": ["mcp", "--url", "http://h:1"], "env_vars": ["BURROW_API_KEY"]}
    file.write_text("[mcp_servers\nx = 1\n")
    assert "nothing was written" in install(tmp_path, "codex", "--write", ok=False).stderr and file.read_text() == "[mcp_servers\nx = 1\n"


@pytest.mark.parametrize("content", (
    '[mcp_servers]\nburrow = { command = "old" }\n', 'mcp_servers.burrow.command = "old"\n', 'mcp_servers = { burrow = { command = "old" } }\n',
    '[mcp_servers]\n  "burrow".command = "old"\n'))
def test_toml_that_would_say_it_twice_is_left_alone(tmp_path, content):
    file = tmp_path / ".codex/config.toml"
    file.parent.mkdir()
    file.write_text(content)
    assert "nothing was written" in install(tmp_path, "codex", "--write", ok=False).stderr and file.read_text() == content


def test_toml_is_read_as_far_as_it_must_be(tmp_path):
    import tomllib
    file = tmp_path / ".codex/config.toml"
    file.parent.mkdir()
    file.write_text('text = """\n[mcp_servers.burrow]\nmcp_servers = 1\n"""\n[ mcp_servers . "burrow" ]\ncommand = "old"\n[ mcp_servers."burrow".env ]\nA = "1"\n'
                    '  [projects."/x"]\ntrust_level = "trusted"\n[mcp_servers.burrowing]\ncommand = "z"\n')
    install(tmp_path, "codex", "--write")
    now = tomllib.loads(file.read_text())
    assert now["text"] == "[mcp_servers.burrow]\nmcp_servers = 1\n" and now["projects"] == {"/x": {"trust_level": "trusted"}}
    assert now["mcp_servers"] == {"burrowing": {"command": "z"}, "burrow": {"command": os.path.realpath(BURROW), "args": ["mcp"]}}


# behind our table, or before it: nothing of it may go or be taken for ours
STRANGE_TOML = (
    '[projects."/home/me/a=b"]\ntrust_level = "trusted"\n', '[mcp_servers.github] # token=env\ncommand = "g"\n', '[[profiles]] # a=b\nx = 1\n[[profiles]]\nx = 2\n',
    "# don't use ''' here, nor \"\"\"\n[a]\nx = 1\n", "[a]\nx = 1 # '''\n[b]\ny = 2\n", '[a]\nx = "\'\'\'"\n[b]\ny = \'"""\'\n[c]\nz = 3\n',
    '[a]\nlist = [\n  ["x", "]"],\n  [ "y" ], # ]\n]\n[b]\ny = 2\n', '[a]\nx = \'\'\'\\\'\'\'\n[b]\ny = \"\"\"a\\\"\"\"\"\"\"\n[c]\nz = 3\n', '[a."b]c"]\nx = 1\n["d=e" . f]\ny = 2\n',
    '[mcp_servers."burrow.x"]\ncommand = "z"\n', '[a]\n"k=v" = 1\n"# no" = "# text"\n[b]\ny = 2\n', "[a]\r\nx = 1\r\n[b] # c=d\r\ny = 2\r\n")


@pytest.mark.parametrize("name", ("[mcp_servers.burrow]", "[mcp_servers.burrow] # x=1", "[mcp_servers.'burrow'] # '''"))
@pytest.mark.parametrize("others", STRANGE_TOML)
def test_toml_of_others_stays_around_our_table(tmp_path, others, name):
    import tomllib
    file = tmp_path / ".codex/config.toml"
    file.parent.mkdir()
    ours = f'{name}\ncommand = "old" # [x]\nargs = [\n  "[not.a.table]",\n]\n'
    for content in (ours + others, others + ours):
        wanted = tomllib.loads(content)
        wanted["mcp_servers"]["burrow"] = {"command": os.path.realpath(BURROW), "args": ["mcp"]}
        file.write_bytes(content.encode())
        install(tmp_path, "codex", "--write")
        assert tomllib.loads(file.read_text()) == wanted, file.read_text()


@pytest.mark.parametrize("content", ('a = [\n', 'a = \"\"\"\nb\n', "a = '''\n[mcp_servers.burrow]\n"))
def test_toml_that_does_not_end_is_left_alone(tmp_path, content):
    file = tmp_path / ".codex/config.toml"
    file.parent.mkdir()
    file.write_text(content)
    assert "nothing was written" in install(tmp_path, "codex", "--write", ok=False).stderr and file.read_text() == content


@pytest.mark.parametrize("client, variable, file", (("claude", "CLAUDE_CONFIG_DIR", ".claude.json"), ("codex", "CODEX_HOME", "config.toml"),
                                                    ("vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json")))
def test_clients_that_were_told_to_look_elsewhere_are_followed(tmp_path, client, variable, file):
    install(tmp_path, client, "--write", **{variable: str(tmp_path / "own")})
    assert "burrow" in (tmp_path / "own" / file).read_text() and [entry.name for entry in tmp_path.iterdir()] == ["own"]
    assert "BURROW_API_KEY" in install(tmp_path, client, "--write", "--url", "http://h:1").stderr


def test_a_link_to_the_file_stays_one(tmp_path):
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / ".claude.json").symlink_to("real.json")
    install(tmp_path, "claude", "--write")
    assert (tmp_path / ".claude.json").is_symlink() and "burrow" in (tmp_path / "real.json").read_text()


def test_mistakes_are_named(tmp_path):
    assert "claude, cursor, vscode or codex" in install(tmp_path, "emacs", ok=False).stderr
    assert "claude, cursor, vscode or codex" in install(tmp_path, ok=False).stderr
    done = subprocess.run([BURROW, "mcp", "uninstall"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "uninstall" in done.stderr
