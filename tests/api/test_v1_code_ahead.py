# SPDX-License-Identifier: Apache-2.0
"""Interpreters that wait in boxes made ahead: used by the first code of a sandbox, as what it asks for, by nobody else and never twice."""
import json
import os
import pathlib
import socket
import subprocess
import time

import e2b as protocol
import pytest
import server as servers
from client import until

TOP = "/api/v1"
BASE = pathlib.Path(__file__).resolve().parents[2] / "runtimes/base.yaml"
DRIVER = BASE.parents[1] / "src/core/code/drivers/python.py"
# Nobody has taken it: its process has the name it was started with.
WAITING = "grep -lzx 'w[a]iting' /proc/[0-9]*/cmdline 2>/dev/null | wc -l"


@pytest.fixture(scope="module")
def ahead(tmp_path_factory):
    """A server whose default runtime has an interpreter in its spare boxes."""
    data = tmp_path_factory.mktemp("ahead") / "data"
    (data / "catalog").mkdir(parents=True)
    (data / "catalog/base.yaml").write_text(BASE.read_text() + "\ninterpreter: python\n")
    server = servers.Server(data, environment={"BURROW_E2B_RUNTIME": "base:latest"}).start()
    yield server
    server.end()


@pytest.fixture
def new(ahead):
    """A sandbox whose box has one, which is the case once the pool had time to breathe."""
    made = []

    def create(**fields):
        def try_once():
            made.append(ahead.client.create(**fields))
            return made[-1] if made[-1].output(WAITING) == "1\n" else None
        return until(try_once, "a box with an interpreter", 30)
    yield create
    for sandbox in made:
        sandbox.delete()


def run(api, sandbox, code, **fields):
    told = api.post(f"{TOP}/sandboxes/{sandbox.id}/code", {"code": code, **fields})
    assert told.status == 200, str(told)
    assert "error" not in told.json, told.json
    return told.json


def value(told):
    return [one for one in told["results"] if one["main"]][0]["data"]["text/plain"]


PARENT = "import os; open(f'/proc/{os.getpid()}/cmdline').read().split('\\0')[-2]"


def test_the_first_code_has_the_one_that_waited(ahead, new):
    one = new()
    told = run(ahead.client, one, PARENT)
    assert value(told) == "waiting" and told["count"] == 1
    assert one.output(WAITING) == "1\n"  # the same: none is left behind, none was started
    assert value(run(ahead.client, one, "'still ' + str(os.getpid() > 1)")) == "still True"
    other = ahead.client.post(f"{TOP}/sandboxes/{one.id}/contexts", {}).json
    assert value(run(ahead.client, one, PARENT, context=other["id"])) != "waiting"


def test_it_is_what_was_asked_for(ahead, new):
    one = new(env={"COLOUR": "blue", "TZ": "Asia/Tokyo"})
    made = ahead.client.post(f"{TOP}/sandboxes/{one.id}/contexts", {"directory": "/tmp/deep/er"}).json
    assert made["directory"] == "/tmp/deep/er"
    told = run(ahead.client, one, "import os, sys, time\n[os.getcwd(), os.environ['COLOUR'], time.tzname[0], os.environ['HOME'], sys.path[0], os.popen('echo $COLOUR').read()]",
               context=made["id"])
    assert value(told) == "['/tmp/deep/er', 'blue', 'JST', '/home/agentuity', '', 'blue\\n']"
    assert value(run(ahead.client, one, PARENT, context=made["id"])) == "waiting"
    fresh = ahead.client.post(f"{TOP}/sandboxes/{one.id}/contexts", {}).json["id"]  # one that was started for it
    alike = "import os\nsorted((name, value) for name, value in os.environ.items() if name != 'PWD'), os.getcwd(), os.getuid(), os.getgroups(), os.umask(0o22)"
    other = new(env={"COLOUR": "blue", "TZ": "Asia/Tokyo"})
    assert value(run(ahead.client, other, alike)) == value(run(ahead.client, one, alike, context=fresh))


def test_bash_has_it_too(ahead, new):
    one = new()
    assert run(ahead.client, one, "cd /tmp; pwd", language="bash")["stdout"] == "/tmp\n"
    assert one.output(WAITING) == "1\n" and run(ahead.client, one, "pwd", language="bash")["stdout"] == "/tmp\n"


@pytest.mark.parametrize("env", [{"PYTHONHASHSEED": "0"}, {"LC_ALL": "C"}, {"PATH": "/tmp/mine:/usr/bin:/bin"}])
def test_what_only_a_new_process_heeds_gets_a_new_one(ahead, new, env):
    one = new(env=env)
    one.output("mkdir -p /tmp/mine; cp /usr/bin/python3 /tmp/mine/")
    assert value(run(ahead.client, one, PARENT)) != "waiting"
    assert value(run(ahead.client, one, f"os.environ[{next(iter(env))!r}]")) == next(iter(env.values()))


def test_packages_that_came_before_the_first_code_are_seen(ahead, new):
    one = new()
    place = one.output("python3 -c 'import site; print(site.getsitepackages()[0])'").strip()
    one.output(f"mkdir -p {place}; mkdir /tmp/more; echo 'X = 7' > /tmp/more/from_more.py; echo /tmp/more > {place}/more.pth")
    assert value(run(ahead.client, one, "import from_more; from_more.X")) == "7"


@pytest.mark.parametrize("is_late", [False, True])
def test_packages_that_came_while_it_started_are_not_missed(tmp_path, is_late):
    """It has looked for packages, and has not come to the driver's first line: so it must not be taken. The driver alone, in a world of processes of its own."""
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "sitecustomize.py").write_text("print('looked', flush=True)\n")
    until(lambda: time.time() - packages.stat().st_ctime > 1, "it to be older than the interpreter")
    name, env = f"burrow-test-{os.getpid()}-{is_late}", {"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "python3", "-", name, "waiting"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    try:
        assert process.stdout.readline() == b"looked\n"
        if is_late:
            (packages / "late.py").touch()
        process.stdin.write(DRIVER.read_bytes())
        process.stdin.close()
        with socket.socket(socket.AF_UNIX) as door:
            address = ("\0" + name).ljust(108, "\0")
            until(lambda: door.connect_ex(address) == 0, "it to listen")
            fields = {"name": name + "-context", "directory": "/tmp", "env": "\0".join(f"{key}={value}" for key, value in env.items())}
            door.sendall(b"".join(f"{key} {len(value)}\n{value}\n".encode() for key, value in fields.items()) + b"\n")
            assert door.recv(1) == (b"" if is_late else b"y")
    finally:
        process.kill()
        process.wait()


def test_one_that_died_is_not_missed(ahead, new):
    one = new()
    one.output("kill -9 $(grep -lzx 'w[a]iting' /proc/[0-9]*/cmdline | cut -d/ -f3)")
    assert value(run(ahead.client, one, PARENT)) != "waiting"


def test_one_that_is_stopped_is_replaced(ahead, new):
    one = new()
    one.output("kill -STOP $(grep -lzx 'w[a]iting' /proc/[0-9]*/cmdline | cut -d/ -f3)")
    assert value(run(ahead.client, one, PARENT)) != "waiting"
    assert one.output(WAITING) == "0\n"


def test_it_becomes_the_user_that_was_asked_for(ahead):
    """E2B's code is that of `user`: the one that waited as root has nothing of root's left."""
    code = ("import os\nos.system('echo a > /dev/stdout; cat /proc/self/status | grep -E \"^(Uid|Gid|Groups|CapEff)\"')\n"
            "open('/dev/stdout', 'w').write('b\\n')\n"
            "try:\n os.setuid(0)\n print('root again')\nexcept PermissionError:\n print('no way back')\n"
            "try:\n open('/root/x', 'w')\nexcept PermissionError:\n print('closed')\n"
            "[os.getcwd(), os.environ['HOME'], os.getresuid(), os.getresgid(), os.getgroups(), " + PARENT.split("; ")[1] + "]")
    made = []

    def try_once():
        made.append(protocol.E2b(ahead.port, ahead.key).create(timeout=300))
        answer = made[-1].http("POST", "/execute", headers={"E2b-Sandbox-Port": "49999"}, json={"code": code})
        lines = [json.loads(line) for line in answer.body.splitlines()]
        out = "".join(one["text"] for one in lines if one["type"] == "stdout")
        result = next(one["text"] for one in lines if one["type"] == "result")
        assert "no way back" in out and "closed" in out and "b\n" in out and out.startswith("a\n"), out
        assert "Uid:\t1000\t1000\t1000\t1000" in out and "CapEff:\t0000000000000000" in out, out
        assert result.startswith("['/home/user', '/home/user', (1000, 1000, 1000), (1000, 1000, 1000), []"), result
        return "waiting" in result
    try:
        until(try_once, "a sandbox whose interpreter waited", 30)
    finally:
        for sandbox in made:
            sandbox.kill()


def test_nobody_in_the_box_can_have_it(ahead, new):
    """It waits as root: whoever of its own box asks it to be something is not heard."""
    one = new()
    attack = ("import os, socket\nos.setgid(65534)\nos.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(30)\ns.connect('\\0burrow-resident'.ljust(108, '\\0'))\n"
              "try:\n s.sendall(b'name 4\\nmine\\nuser 1\\n0\\n\\n')\n print(repr(s.recv(1)))\nexcept OSError:\n print('closed')\n"
              "t = socket.socket(socket.AF_UNIX)\ntry:\n t.connect('\\0mine'.ljust(108, '\\0'))\n print('taken')\nexcept OSError:\n print('not there')")
    one.write_all({"/tmp/attack.py": attack.encode()})
    said = one.output("python3 /tmp/attack.py")
    assert said.splitlines()[0] in ("b''", "closed") and said.splitlines()[1] == "not there"
    assert value(run(ahead.client, one, PARENT)) == "waiting"


def test_who_takes_its_place_gets_nothing_but_its_own_sandbox(ahead, new):
    """A guest that ends it and listens in its place: the server starts another interpreter, or ends up with the guest's own."""
    one = new()
    code = ("import socket, os\ns = socket.socket(socket.AF_UNIX)\n"
            "while True:\n try:\n  s.bind('\\0burrow-resident'.ljust(108, '\\0'))\n  break\n except OSError: pass\n"
            "s.listen(1)\nopen('/tmp/ready', 'w').close()\nc, _ = s.accept()\nc.recv(65536)\nopen('/tmp/heard', 'w').close()\nc.sendall(b'y')\n")
    one.write_all({"/tmp/play.py": code.encode()})
    one.output("kill -9 $(grep -lzx 'w[a]iting' /proc/[0-9]*/cmdline | cut -d/ -f3); python3 /tmp/play.py >/dev/null 2>&1 & "
                               "while [ ! -e /tmp/ready ]; do sleep 0.05; done")
    assert value(run(ahead.client, one, "6 * 7")) == "42"
    assert one.output("ls /tmp/heard 2>&1 | grep -c No") == "1\n"


def test_a_server_that_starts_again_ends_those_nobody_took(ahead, new):
    taken, waiting = new(), new()
    first = run(ahead.client, taken, "kept = 1\n" + PARENT)
    assert value(first) == "waiting"
    ahead.listen = f"127.0.0.1:{ahead.port}"
    ahead.kill()
    ahead.start()
    again = run(ahead.client, taken, "kept")
    assert value(again) == "1" and again["context"] == first["context"]
    until(lambda: waiting.output(WAITING) == "0\n", "the unknown one to end")
    assert value(run(ahead.client, waiting, "1")) == "1"
