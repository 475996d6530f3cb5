# SPDX-License-Identifier: Apache-2.0
"""The commands that talk to a server, run for real against one."""
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import server as servers  # noqa: E402
from client import until  # noqa: E402

BURROW = servers.BURROW
PATIENCE = 120
REASON = servers.why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def plain_environment(home, **more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BURROW_")}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), **more}


class Cli:
    """burrow with a server's data directory, a home of its own, and no terminal."""

    def __init__(self, home, **more):
        home.mkdir(parents=True, exist_ok=True)
        self.environment = plain_environment(home, **more)

    def __call__(self, *words, code=0, input=None, **options):
        done = subprocess.run([BURROW, *map(str, words)], capture_output=True, timeout=PATIENCE, env=self.environment,
                              **({"stdin": subprocess.DEVNULL} if input is None else {"input": input}), **options)
        assert done.returncode == code, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done

    def text(self, *words, **options):
        return self(*words, **options).stdout.decode()

    def error(self, *words, code, **options):
        return self(*words, code=code, **options).stderr.decode()

    def json(self, *words, **options):
        at = words.index("--") if "--" in words else len(words)
        return json.loads(self.text(*words[:at], "--json", *words[at:], **options))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("cli") / "data")
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(scope="module")
def burrow(server, tmp_path_factory):
    return Cli(tmp_path_factory.mktemp("home"), BURROW_DATA=str(server.data))


@pytest.fixture(scope="module")
def work(burrow):
    burrow("create", "--name", "work", "--idle-timeout", "0")
    yield "work"
    burrow("delete", "work", "--confirm")


# ---- sandboxes ----

def test_a_sandbox_is_made_listed_told_of_and_deleted(burrow):
    made = burrow.json("create", "--name", "one", "--memory", "256Mi", "--cpu", "500m", "--disk", "64Mi", "--max-processes", "64",
                       "--env", "A=1", "--description", "for a test", "--label", "team=red", "--label", "team=blue", "--metadata", '{"x": [1]}',
                       "--scope", "s", "--project-id", "p1", "--workdir", "/srv", "--idle-timeout", "1h", "--on-idle", "pause",
                       "--runtime", "base:latest")
    assert made["sandboxId"].startswith("sbx_") and made["status"] == "idle"
    assert made["limits"] == {"memoryBytes": 256 << 20, "cpuMillicores": 500, "diskBytes": 64 << 20, "maxProcesses": 64}
    assert made["idleTimeoutMs"] == 3600000 and made["metadata"] == {"x": [1]} and made["onIdle"] == "pause"
    for words in (["cloud", "sandbox", "list"], ["sandbox", "ls"], ["sb", "list"], ["list", "--name", "one"],
                  ["list", "--status", "idle"], ["list", "--selector", "team=blue"], ["list", "--project-id", "p1"],
                  ["list", "--mode", "interactive", "--all", "--limit", "100", "--offset", "0"],
                  ["list", "--sort=name", "--direction=asc"]):
        assert "one" in [item.get("name") for item in burrow.json(*words)], words
    assert burrow.json("list", "--name", "none") == []
    table = burrow.text("list").splitlines()
    assert table[0].split() == ["ID", "NAME", "STATE", "RUNTIME", "CREATED", "COMMANDS"]
    assert burrow.text("list", "--quiet", "--name", "one").strip() == made["id"]
    for word in ("get", "show", "info"):
        assert burrow.json(word, "one")["id"] == made["id"]
    shown = burrow.text("get", "one")
    assert "256 MiB memory" in shown and "A=1" in shown
    assert re.search(r"^uses +[\d.]+ [KM]iB memory, [\d.]+ [KM]?i?B disk; [\d.]+m?s of processors, 0 B sent so far$", shown, re.M), shown
    assert re.search(r"^created +(now|[\d.]+m?s ago)$", shown, re.M), shown
    assert burrow.json("pause", "one")["state"] == "paused"
    assert burrow.json("wake", "one")["state"] in ("idle", "running")
    assert burrow.json("rm", "one") == {"success": True, "sandboxId": "one"}
    assert "there is no sandbox 'one'" in burrow.error("get", "one", code=3)
    for words in (["get"], ["exec"], ["fs", "ls"]):  # ids as they were given
        said = burrow.error(*words, made["id"], *(["true"] if words == ["exec"] else []), code=125 if words == ["exec"] else 3)
        assert f"'{made['id']}'" in said, said


def test_lists_have_orders_pages_and_filters(burrow, work):
    """Made in one order, named in another, used by a third."""
    made = {}
    for name, project, commands in (("b-second", "p1", 2), ("c-third", "p2", 0), ("a-first", "p1", 1)):
        made[name] = burrow.text("create", "--name", name, "--project-id", project, "--label", "list=own", "--on-idle", "pause", "--quiet").strip()
        for _ in range(commands):
            burrow("exec", name, "--", "true")

    def names(*words):
        return [item["name"] for item in burrow.json("list", "--selector", "list=own", *words)]
    assert names() == ["a-first", "c-third", "b-second"] == names("--sort=created", "--direction=desc")
    assert names("--limit", "2") == ["a-first", "c-third"] and names("--limit", "1", "--offset", "1") == ["c-third"] and names("--offset", "3") == []
    for field, order in (("name", ["a-first", "b-second", "c-third"]), ("created", ["b-second", "c-third", "a-first"]),
                         ("execution_count", ["c-third", "a-first", "b-second"])):
        assert names("--sort", field, "--direction", "asc") == order and names("--sort", field) == order[::-1], field
    assert names("--sort", "name", "--direction", "asc", "--limit", "1", "--offset", "2") == ["c-third"]
    burrow("pause", "b-second")
    assert names("--sort", "status", "--direction", "desc")[0] == "b-second" == names("--sort", "updated")[0]
    assert names("--project-id", "p2") == ["c-third"] and len(names("--project-id", "p2", "--all")) == 3
    assert names("--status", "paused") == ["b-second"] == names("--status", "suspended")
    burrow("delete", *made)


def test_tables_are_aligned(burrow, work):
    burrow("create", "--name", "a-name-that-is-rather-long", "--idle-timeout", "0")
    head, *rows = burrow.text("list").splitlines()
    ends = [found.end() for found in re.finditer(r"\S+", head)]
    starts = [found.start() for found in re.finditer(r"\S+", head)]
    assert len(rows) >= 2
    for row in rows:
        for start in starts[:-1]:
            assert row[start] != " " and row[max(start - 2, 0):start].strip() == "", (head, row)
        assert len(row) == ends[-1] and row[-1].isdigit(), row  # numbers end where their head does
    burrow("delete", "a-name-that-is-rather-long")


def test_env_events_wait_and_fork(burrow, work):
    assert burrow.json("env", work, "VAR1=value1", "VAR2=value2")["env"] == {"VAR1": "value1", "VAR2": "value2"}
    assert burrow.text("exec", work, "--", "sh", "-c", "echo $VAR1") == "value1\n"
    # what is said twice is as it was said last
    assert burrow.json("env", work, "VAR3=a", "VAR3=b", "VAR4=c", "-d", "VAR4", "-d", "VAR4")["env"] == {"VAR1": "value1", "VAR2": "value2", "VAR3": "b"}
    burrow("env", work, "-d", "VAR3")
    for words in (["run"], ["run", "--local", "--runtime", "base:latest"]):
        assert burrow.text(*words, "--env", "VAR1=mine", "--env", "VAR1=last", "--", "sh", "-c", "echo $VAR1") == "last\n"
    assert burrow.text("exec", work, "--env", "VAR1=mine", "--env", "VAR1=last", "--", "sh", "-c", "echo $VAR1") == "last\n"
    assert burrow.json("env", work, "-d", "VAR1", "--delete", "VAR2")["env"] == {}
    assert "KEY=VALUE" in burrow.error("env", work, "WRONG", code=2)
    events = burrow.json("events", work)
    assert events[0]["kind"] == "sandbox.created"
    assert burrow.json("events", work, "--reverse", "--limit", "1")[0]["number"] > events[0]["number"]
    assert events[-1]["kind"] in burrow.text("events", work, "--limit", "1")
    assert burrow.json("wait", work, "--state", "idle,running", "--timeout", "10s")["reached"] is True
    assert "still" in burrow.error("wait", work, "--state", "paused", "--timeout", "10ms", code=124)
    burrow("exec", work, "--", "sh", "-c", "echo forked > /workspace/forked")
    burrow("fork", work, "--name", "try")
    assert burrow.text("exec", "try", "--", "cat", "/workspace/forked") == "forked\n"
    burrow("destroy", "try")


# ---- commands ----

def test_exec_has_output_input_and_the_exit_code(burrow, work):
    done = burrow("cloud", "sandbox", "exec", work, "--", "sh", "-c", "echo out; echo err >&2; exit 3", code=3)
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")
    assert burrow.text("exec", work, "tr", "a-z", "A-Z", input=b"hello") == "HELLO"
    told = burrow.json("exec", work, "--timeout", "30s", "--", "sh", "-c", "echo out; exit 4", code=4)
    assert told["exitCode"] == 4 and told["stdout"] == "out\n" and told["cause"] == "exit"
    assert burrow.text("exec", work, "--quiet", "--", "echo", "x") == ""
    assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z x\n$", burrow.text("exec", work, "--timestamps", "--", "echo", "x"))
    assert burrow.text("exec", work, "-e", "X=5", "-w", "/tmp", "-u", "root", "--", "sh", "-c", "echo $X; pwd") == "5\n/tmp\n"
    burrow("exec", work, "--timeout", "100ms", "--", "sleep", "60", code=124)
    burrow("exec", work, "--", "no-such-program", code=127)
    assert "there is no sandbox" in burrow.error("exec", "nope", "--", "true", code=125)
    assert "needs a command" in burrow.error("exec", work, code=2)


@pytest.mark.parametrize("words", [["exec", "work"], ["run"]])
def test_input_and_output_go_on_as_they_come(burrow, work, words):
    """Also where no line ends."""
    with subprocess.Popen([BURROW, *words, "--", "sh", "-c", "printf ready; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=burrow.environment) as process:
        assert os.read(process.stdout.fileno(), 100) == b"ready"
        for piece in (b"one", b"two\n"):
            process.stdin.write(piece)
            process.stdin.flush()
            assert os.read(process.stdout.fileno(), 100) == piece
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_bytes_go_through_as_they_are(burrow, work):
    data = os.urandom(1 << 20)
    assert burrow("exec", work, "cat", input=data).stdout == data


def test_input_from_a_file_goes_with_the_request_and_a_large_one_beside_it(burrow, work, tmp_path):
    for size in (0, 1000, 300000):
        file = tmp_path / "input"
        file.write_bytes(b"x" * size)
        with file.open("rb") as opened:
            done = subprocess.run([BURROW, "exec", work, "wc", "-c"], stdin=opened, capture_output=True, timeout=PATIENCE, env=burrow.environment)
        assert done.stdout.split() == [str(size).encode()]


def test_who_does_not_read_its_input_is_not_waited_for(burrow, work):
    with subprocess.Popen([BURROW, "exec", work, "true"], stdin=subprocess.PIPE, env=burrow.environment) as process:
        assert process.wait(PATIENCE) == 0  # its input is still open


def test_a_broken_pipe_ends_the_command_without_a_word(burrow, work):
    done = subprocess.run(["bash", "-c", '"$0" exec work -- yes | head -1; echo ${PIPESTATUS[0]}', BURROW], capture_output=True,
                          timeout=PATIENCE, env=burrow.environment, stdin=subprocess.DEVNULL)
    assert done.stdout == b"y\n141\n" and done.stderr == b""


def test_ctrl_c_is_handed_on(burrow, work):
    script = "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.1; done"
    with subprocess.Popen([BURROW, "exec", work, "--", "bash", "-c", script], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          env=burrow.environment) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == b"caught\n"
        assert process.wait(PATIENCE) == 7


def test_executions_jobs_and_logs(burrow, work):
    burrow("exec", work, "--", "echo", "in the log")
    first = burrow.json("execution", "list", work, "--limit", "1")[0]
    assert first["command"] == ["echo", "in the log"]
    assert burrow.json("execution", "show", first["id"])["exitCode"] == 0
    assert burrow.text("logs", first["id"]) == "in the log\n"
    assert b"in the log\n" in burrow("logs", work).stdout
    job = burrow.json("job", "create", work, "--", "sh", "-c", "echo begun; sleep 300")
    assert job["kind"] == "job"
    assert job["id"] in [item["id"] for item in burrow.json("job", "ls", work, "--limit", "10")]
    assert job["id"] in [item["id"] for item in burrow.json("ps", work)]
    assert burrow.json("job", "get", work, job["id"])["state"] == "running"
    with subprocess.Popen([BURROW, "job", "logs", work, job["id"], "-f"], stdout=subprocess.PIPE, env=burrow.environment) as follower:
        assert follower.stdout.readline() == b"begun\n"
        burrow("job", "destroy", work, job["id"], "--force")
        assert follower.wait(PATIENCE) == 0
    assert burrow.json("job", "info", work, job["id"])["state"] == "cancelled"
    burrow("wait", job["id"], code=burrow.json("execution", "get", job["id"])["exitCode"])


def test_addresses_that_are_told_over_the_local_socket_are_ones_to_ask(burrow, server, work):
    job = burrow.json("job", "create", work, "--", "sh", "-c", "echo out; echo err >&2")["id"]
    burrow("wait", job)
    for words in (["job", "get", work, job], ["execution", "get", job]):
        told = burrow.json(*words)
        assert told["stdout"]["url"] in burrow.text(*words)
        for side, written in (("stdout", b"out\n"), ("stderr", b"err\n")):
            asked = urllib.request.Request(told[side]["url"], headers={"Authorization": f"Bearer {server.key}"})
            assert urllib.request.urlopen(asked, timeout=PATIENCE).read() == written


def test_a_job_is_of_the_sandbox_that_is_named_with_it(burrow, work):
    id = burrow.json("get", work)["id"]
    job = burrow.json("job", "create", work, "--", "sleep", "1000")["id"]
    other = burrow.json("create", "--name", "other")["id"]
    for word in ("get", "logs", "destroy"):
        for wrong in ("other", other, "nobody", "sbx_nobody"):
            assert f"'{wrong}'" in burrow.error("job", word, wrong, job, code=3)
        assert "'job_nothing'" in burrow.error("job", word, work, "job_nothing", code=3)
    assert burrow.json("job", "get", id, job)["state"] == "running"
    burrow("job", "destroy", work, job)
    burrow("delete", "other")


def test_a_job_is_asked_to_end_unless_it_is_forced(burrow, work):
    script = "trap 'echo asked; exit 5' TERM; echo begun; while :; do sleep 0.05; done"
    for option, written, code in (([], b"begun\nasked\n", 5), (["--force"], b"begun\n", 137)):
        job = burrow.json("job", "create", work, "--", "sh", "-c", script)["id"]
        until(lambda: burrow("logs", job).stdout == b"begun\n", "it to have begun")
        burrow("job", "destroy", work, job, *option)
        burrow("wait", job, code=code)
        assert burrow("logs", job).stdout == written and burrow.json("job", "get", work, job)["status"] == "cancelled"


def test_logs_follow_a_sandbox(burrow, work):
    with subprocess.Popen([BURROW, "logs", work, "-f"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=burrow.environment) as follower:
        lines = iter(follower.stdout.readline, b"")
        for said in (b"first of two\n", b"second of two\n"):
            burrow("exec", work, "--", "echo", said.decode().strip())
            assert said in lines
        follower.send_signal(signal.SIGINT)
        assert follower.wait(PATIENCE) == 130


def test_logs_are_whole_as_one_value_too(burrow):
    burrow("create", "--name", "chatty", "--idle-timeout", "0")
    burrow("exec", "chatty", "--quiet", "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x")
    assert sum(len(piece["text"]) for piece in burrow.json("logs", "chatty")) == 3000000 == len(burrow.text("logs", "chatty"))
    burrow("exec", "chatty", "--", "mkfifo", "/workspace/go")
    job = burrow.json("job", "create", "chatty", "--", "sh", "-c", "read x < /workspace/go; echo at the end")
    with subprocess.Popen([BURROW, "job", "logs", "chatty", job["id"], "-f", "--json"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=burrow.environment) as follower:
        burrow("exec", "chatty", "--", "sh", "-c", "echo >/workspace/go")
        told = json.loads(follower.stdout.read())
        assert follower.wait(PATIENCE) == 0 and told["exitCode"] == 0 and told["stdout"]["text"] == "at the end\n"
    assert "leave one out" in burrow.error("logs", "chatty", "-f", "--json", code=2)
    burrow("delete", "chatty", "--confirm")


# ---- files ----

def test_fs_copies_and_tells_which_directories_it_made(burrow, work, tmp_path):
    (tmp_path / "file.txt").write_text("content\n")
    told = burrow.json("fs", "cp", tmp_path / "file.txt", f"{work}:/workspace/new/path/file.txt")
    assert told == {"source": str(tmp_path / "file.txt"), "destination": f"{work}:/workspace/new/path/file.txt", "bytesTransferred": 8,
                    "filesTransferred": 1, "directoriesCreated": ["/workspace/new", "/workspace/new/path"]}
    burrow("cp", tmp_path / "file.txt", f"{work}:/workspace/new/")
    burrow("files", "cp", f"{work}:/workspace/new/file.txt", tmp_path / "back.txt")
    assert (tmp_path / "back.txt").read_text() == "content\n"
    assert burrow.text("file", "cp", f"{work}:/workspace/new/file.txt", "-") == "content\n"
    assert "--strict" in burrow.error("fs", "cp", "--strict", tmp_path / "file.txt", f"{work}:/must/exist/file.txt", code=3)
    assert "with -r" in burrow.error("fs", "cp", tmp_path, f"{work}:/workspace", code=2)
    assert "SANDBOX:PATH" in burrow.error("fs", "cp", "a", "b", code=2)
    burrow("fs", "cp", f"{work}:/nothing/there", tmp_path, code=3)


def test_fs_copies_trees(burrow, work, tmp_path):
    tree = tmp_path / "tree"
    (tree / ("d" * 120) / "deep").mkdir(parents=True)
    (tree / ("d" * 120) / "deep" / "file").write_bytes(b"1" * 70000)
    (tree / "empty").touch()
    (tree / "link").symlink_to("empty")
    (tree / "run").write_text("#!/bin/sh\necho ran\n")
    (tree / "run").chmod(0o755)
    burrow("fs", "cp", "-r", tree, f"{work}:/workspace/copied")
    assert burrow.text("exec", work, "--", "/workspace/copied/run") == "ran\n"
    burrow("fs", "cp", "-r", f"{work}:/workspace/copied", tmp_path / "back")
    assert subprocess.run(["diff", "-r", tree, tmp_path / "back"]).returncode == 0
    assert os.readlink(tmp_path / "back" / "link") == "empty"


def test_fs_copies_trees_of_several_parts(burrow, work, tmp_path):
    """One mebibyte first, four with the next, and so on: the last file of a part, and one larger than a part, are whole."""
    tree = tmp_path / "tree"
    sizes = [1, 511, 512, 513, 40000, 300000, 1 << 20, 3 << 20]
    for number in range(60):
        path = tree / f"d{number % 7}" / f"e{number % 3}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(64) * (sizes[number % len(sizes)] // 64) + b"x" * (sizes[number % len(sizes)] % 64))
    told = burrow.json("fs", "cp", "-r", tree, f"{work}:/workspace/parts")
    assert told["filesTransferred"] == 60 and told["bytesTransferred"] == sum(path.stat().st_size for path in tree.rglob("f*"))
    burrow("fs", "cp", "-r", f"{work}:/workspace/parts", tmp_path / "back")
    assert subprocess.run(["diff", "-r", tree, tmp_path / "back"]).returncode == 0


def test_a_part_that_does_not_fit_is_told(burrow, tmp_path):
    """The first part lands, one of the next does not: no success, the sandbox's limit in the sentence, and what landed stays."""
    sandbox = burrow.json("create", "--disk", "32Mi", "--idle-timeout", "10m")["sandboxId"]
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(48):
        (tree / f"f{number}").write_bytes(os.urandom(1 << 20))
    assert "disk" in burrow.error("fs", "cp", "-r", tree, f"{sandbox}:/tmp/parts", code=7)
    assert burrow.text("exec", sandbox, "--", "sh", "-c", "ls /tmp/parts | head -n 1 | cut -c1") == "f\n"
    burrow("delete", sandbox, "--confirm")


def test_fs_lists_makes_and_removes(burrow, work):
    burrow("fs", "mkdir", work, "/workspace/data/processed", "-p")
    burrow("exec", work, "--", "touch", "/workspace/data/processed/f")
    assert burrow.text("fs", "ls", work, "/workspace/data") == "processed/\n" == burrow.text("ls", work, "/workspace/data")
    assert burrow.text("ls", f"{work}:/workspace/data") == "processed/\n" == burrow.text("fs", "ls", f"{work}:/workspace/data")
    assert burrow.text("ls", "-l", work, "/workspace/data").startswith("drwxr-xr-x") and work in burrow.text("ls")
    assert burrow.text("ls", work, "/etc/passwd") == "/etc/passwd\n"  # as ls has it
    assert re.fullmatch(r"-rw-r--r-- .* [\d.]+ \w+  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  /etc/passwd\n", burrow.text("ls", "-l", f"{work}:/etc/passwd"))
    assert [item["path"] for item in burrow.json("ls", work, "/etc/passwd")] == ["/etc/passwd"]
    assert [item["path"] for item in burrow.json("ls", work, "/workspace/data", "-r")] == ["processed", "processed/f"]
    assert [item["path"] for item in burrow.json("fs", "list", work, "/workspace/data", "-r")] == ["processed", "processed/f"]
    assert burrow.text("fs", "ls", work, "/workspace/data", "-l").startswith("drwxr-xr-x")
    burrow("fs", "rmdir", work, "/workspace/data", code=6)
    assert "rmdir" in burrow.error("fs", "rm", work, "/workspace/data", code=2)
    burrow("fs", "rm", work, "/workspace/data/processed/f")
    burrow("fs", "rmdir", work, "/workspace/data", "-r")
    assert burrow.json("fs", "ls", work, "/workspace/data", code=3)["error"]["code"]


def test_fs_archives(burrow, work, tmp_path):
    burrow("exec", work, "--", "sh", "-c", "mkdir -p /srv/a; echo x > /srv/a/x")
    for name, words in (("a.tar.gz", []), ("b", ["--format", "tar"]), ("c.zip", [])):
        burrow("fs", "dl", work, tmp_path / name, "--path", "/srv/a", *words)
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        assert "x" in [pathlib.Path(name).name for name in archive.getnames()]
    burrow("fs", "ul", work, tmp_path / "c.zip", "--path", "/srv/from-zip")
    burrow("fs", "upload", work, tmp_path / "b", "--path", "/srv/from-tar", "--format", "tar")
    assert burrow.text("exec", work, "--", "cat", "/srv/from-zip/x", "/srv/from-tar/x") == "x\nx\n"


def test_a_full_local_disk_is_told_and_leaves_nothing(burrow, work, tmp_path):
    burrow("exec", work, "--", "sh", "-c", "head -c 3000000 /dev/zero > /srv/large")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
    try:
        for words in (["fs", "cp", f"{work}:/srv/large", small / "f"], ["fs", "cp", "-r", f"{work}:/srv", small / "tree"]):
            assert "No space left" in burrow.error(*words, code=1)
        assert not (small / "f").exists() and not list(small.glob("*.burrow-*"))
    finally:
        subprocess.run(["umount", small], check=True)


# ---- what a hostile sandbox sends ----

def test_links_and_names_lead_nowhere_else(burrow, work, tmp_path):
    burrow("exec", work, "--", "sh", "-c", "mkdir -p /bad/d && cd /bad && ln -s /etc out && ln -s ../../up up && ln -s d inner && echo x > d/f")
    burrow("fs", "cp", "-r", f"{work}:/bad", tmp_path / "got")
    assert sorted(path.name for path in (tmp_path / "got").iterdir()) == ["d", "inner"]
    # a link that is there already is not followed either
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "d").symlink_to(tmp_path / "elsewhere")
    done = subprocess.run([BURROW, "fs", "cp", "-r", f"{work}:/bad/.", tmp_path / "trap"], capture_output=True, env=burrow.environment, timeout=PATIENCE)
    assert done.returncode == 1 and list((tmp_path / "elsewhere").iterdir()) == []


def test_names_cannot_drive_the_terminal(burrow, work):
    burrow("exec", work, "--", "sh", "-c", r"mkdir -p /esc && cd /esc && touch \"$(printf 'a\033]0;x\007b')\"")
    listed = burrow("fs", "ls", work, "/esc", "-l").stdout
    assert b"\x1b" not in listed and b"\x07" not in listed and b"a?]0;x?b" in listed


class Fake(threading.Thread):
    """Answers every connection with the same bytes, which need not be HTTP."""

    def __init__(self, answer, holds=False):
        super().__init__(daemon=True)
        self.answer, self.holds = answer, holds
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.start()

    def run(self):
        try:
            while True:
                peer, _ = self.socket.accept()
                with peer:
                    peer.recv(65536)
                    try:
                        peer.sendall(self.answer)
                    except OSError:
                        pass
        except OSError:
            pass


def http(body, status="200 OK", type="application/json", length=None):
    return f"HTTP/1.1 {status}\r\nContent-Type: {type}\r\nContent-Length: {len(body) if length is None else length}\r\nConnection: close\r\n\r\n".encode() + body


def tar_of(*entries):
    import io
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for entry in entries:
            archive.addfile(entry, io.BytesIO(b"x" * entry.size))
    return out.getvalue()


def entry(name, type=tarfile.REGTYPE, link="", size=0, mode=0o6755):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode = type, link, size if type == tarfile.REGTYPE else 0, mode
    return info


def test_a_name_whose_sandbox_has_ended_says_so(burrow):
    for _ in range(2):
        made = burrow.json("create", "--name", "short", "--idle-timeout", "1s")["id"]
        until(lambda: burrow.json("get", made)["state"] == "ended", "it to end")
    assert f"sandbox 'short' has ended; the last of this name was sandbox '{made}'" in burrow.error("exec", "short", "true", code=125)
    shown = burrow.text("get", made)
    assert re.search(r"^ended +(now|\S+ ago)$", shown, re.M) and re.search(r"^reason +idle$", shown, re.M), shown


def test_nobody_waits_for_a_state_of_what_has_ended(burrow):
    made = burrow.json("create", "--name", "over", "--idle-timeout", "0")["id"]
    with subprocess.Popen([BURROW, "wait", made, "--state", "paused"], stderr=subprocess.PIPE, env=burrow.environment) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
        burrow("delete", "over")
        try:
            assert waiting.wait(PATIENCE) == 3 and f"'{made}' has ended" in waiting.stderr.read().decode()
        finally:
            waiting.kill()
    for words in ([], ["--timeout", "1h"]):
        assert "has ended" in burrow.error("wait", made, "--state", "idle,running", *words, code=3)
    assert burrow.json("wait", made)["reached"] is True


def test_the_last_lines_of_what_was_written(burrow):
    burrow("create", "--name", "talks", "--idle-timeout", "0")
    burrow("exec", "talks", "--", "sh", "-c", "seq 1000; printf 'o\\000\\377dd'")
    job = burrow.json("job", "create", "talks", "--", "sh", "-c", "seq 20; echo err >&2; while [ ! -e go ]; do sleep 0.05; done; echo more; echo end")["id"]
    until(lambda: burrow("logs", job).stderr == b"err\n", "it to have written")
    done = burrow("logs", job, "--tail", "3")
    assert done.stdout + done.stderr in (b"19\n20\nerr\n", b"18\n19\n20\n")
    assert burrow("logs", job, "--tail", "0").stdout == b"" and burrow("logs", "talks", "-n", "0").stdout == b""
    assert burrow("job", "logs", "talks", job, "--tail", "100").stdout == b"".join(b"%d\n" % n for n in range(1, 21))
    done = burrow("logs", "talks", "--tail", "25")
    assert done.stdout.endswith(b"999\n1000\no\0\xffdd" + b"".join(b"%d\n" % n for n in range(1, 21))) and done.stdout.startswith((b"997", b"998")) and done.stderr == b"err\n"
    assert "--tail" in burrow.error("logs", "talks", "--tail", "3", "--json", code=2)
    for words in ([job], ["talks"]):  # what is new comes behind it, and nothing is lost between
        following = subprocess.Popen([BURROW, "logs", *words, "-f", "--tail", "2"], env=burrow.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            begun = [following.stdout.readline() for _ in range(2)]
            assert set(begun) <= {b"19\n", b"20\n", b"err\n"}, begun
            if words == [job]:
                continue
            burrow("exec", "talks", "touch", "go")
            assert [following.stdout.readline() for _ in range(2)] == [b"more\n", b"end\n"]
        finally:
            following.kill()
            following.communicate()
    burrow("rm", "talks")


def test_remedies_name_the_option(burrow, work):
    assert "'-p'" in burrow.error("fs", "mkdir", work, "/tmp/no/such/parents", code=3)
    burrow("fs", "mkdir", "-p", work, "/tmp/full/inner")
    assert "'-r'" in burrow.error("fs", "rmdir", work, "/tmp/full", code=6)
    assert "burrow runtime list" in burrow.error("create", "--runtime", "nosuch", code=3)


def test_absolute_paths_need_no_working_directory(burrow):
    burrow("create", "--name", "bare")
    burrow("fs", "rmdir", "-r", "bare", "/workspace")
    assert "Not a directory" not in burrow.text("fs", "ls", "bare", "/etc/passwd")
    burrow("fs", "cp", "/etc/hostname", "bare:/tmp/there")
    assert burrow("fs", "cp", "bare:/tmp/there", "-").stdout
    assert "'/workspace'" in burrow.error("fs", "ls", "bare", "below", code=3)
    burrow("rm", "bare")


def test_standard_output_is_no_directory(burrow, work, tmp_path):
    burrow("exec", work, "--", "sh", "-c", "mkdir -p /tmp/out/d && echo x >/tmp/out/f")
    assert "burrow fs download" in burrow.error("fs", "cp", "-r", f"{work}:/tmp/out", "-", code=2, cwd=tmp_path)
    (tmp_path / "-").mkdir()
    assert burrow("fs", "cp", f"{work}:/tmp/out/f", "-", cwd=tmp_path).stdout == b"x\n"
    assert not list((tmp_path / "-").iterdir())


def test_standard_output_has_one_value_or_a_file(burrow, work):
    burrow("exec", work, "--", "sh", "-c", "mkdir -p /tmp/one && echo x >/tmp/one/f")
    snapshot = burrow.json("snapshot", "create", work, "--tag", "to-stdout")["id"]
    for words in (["fs", "cp", f"{work}:/tmp/one/f", "-"], ["fs", "download", work, "-", "--path", "/tmp/one"], ["snapshot", "export", snapshot, "-"]):
        assert burrow(*words).stdout
        assert "--json" in burrow.json(*words, code=2)["error"]["message"]
    burrow("snapshot", "delete", snapshot)


def test_local_directories_are_made_as_those_of_the_sandbox(burrow, work, tmp_path):
    burrow("exec", work, "--", "sh", "-c", "mkdir -p -m 700 /tmp/modes/shut && mkdir -m 555 /tmp/modes/read && echo x >/tmp/modes/read/f")
    burrow("fs", "cp", f"{work}:/tmp/modes/read/f", tmp_path / "new/deep/f")
    assert (tmp_path / "new/deep/f").read_text() == "x\n"
    assert "--strict" in burrow.error("fs", "cp", "--strict", f"{work}:/tmp/modes/read/f", tmp_path / "other/f", code=3)
    burrow("fs", "cp", "-r", f"{work}:/tmp/modes", tmp_path / "a/b/modes")
    assert (tmp_path / "a/b/modes/shut").stat().st_mode & 0o777 == 0o700 and (tmp_path / "a/b/modes/read").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "a/b/modes/read/f").read_text() == "x\n"
    burrow("fs", "cp", "-r", f"{work}:/tmp/modes/shut", tmp_path / "private")
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o700
    (tmp_path / "mine").mkdir(mode=0o755)
    burrow("fs", "cp", "-r", f"{work}:/tmp/modes/shut/.", tmp_path / "mine")
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o755


def test_an_archive_of_a_hostile_server_stays_in_its_place(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    archive = tar_of(entry("../outside/a", size=1), entry("/abs", size=1), entry("l", tarfile.SYMTYPE, str(outside)), entry("l/through", size=1),
                     entry("h", tarfile.LNKTYPE, "../../etc/passwd"), entry("dev", tarfile.CHRTYPE), entry("ok/../../x", size=1), entry("good", size=3))
    stat = json.dumps({"kind": "directory", "mode": "0755", "path": "/x"}).encode()
    answers = [http(stat), http(archive, type="application/x-tar")]

    class Two(Fake):
        def run(self):
            try:
                while True:
                    peer, _ = self.socket.accept()
                    with peer:
                        asked = peer.recv(65536)
                        peer.sendall(answers[1] if b"/archive" in asked else answers[0])
            except OSError:
                pass
    burrow = Cli(tmp_path / "home", BURROW_URL=Two(b"").url)
    burrow("fs", "cp", "-r", "box:/x", tmp_path / "in")
    assert list(outside.iterdir()) == [] and not (tmp_path / "x").exists()
    assert sorted(str(path.relative_to(tmp_path / "in")) for path in (tmp_path / "in").rglob("*")) == ["abs", "good", "l", "l/through"]
    assert (tmp_path / "in" / "l").is_dir() and not (tmp_path / "in" / "l").is_symlink()
    assert (tmp_path / "in" / "good").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("answer, words", [
    (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", "in the middle"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}", "no number"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk"),
    (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70000, "64 KiB"),
    (b"", "without an answer"),
    (http(b"not json"), "answer"),
    (http(b"{}", status="302 Found"), "elsewhere"),
    (http(b"<html>", status="502 Bad Gateway", type="text/html"), "502"),
])
def test_what_is_no_server_is_told_by_a_sentence(tmp_path, answer, words):
    done = subprocess.run([BURROW, "list"], capture_output=True, timeout=PATIENCE, env=plain_environment(tmp_path, BURROW_URL=Fake(answer).url))
    assert done.returncode in (1, 5) and words.encode() in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) <= 3


def test_a_server_that_is_gone_in_the_middle(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("gone") / "data")
    try:
        server.start()
        burrow = Cli(tmp_path_factory.mktemp("gone-home"), BURROW_DATA=str(server.data))
        burrow("create", "--name", "g")
        with subprocess.Popen([BURROW, "exec", "g", "--", "sh", "-c", "echo begun; sleep 300"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, env=burrow.environment) as process:
            assert process.stdout.readline() == b"begun\n"
            rest = [subprocess.Popen([BURROW, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=burrow.environment)
                    for words in (["logs", "g", "-f"], ["cp", "-", "g:/half"])]
            assert rest[0].stdout.readline() == b"begun\n"
            rest[1].stdin.write(b"x" * 200000)
            rest[1].stdin.flush()
            server.kill()
            assert process.wait(PATIENCE) == 125
            told = process.stderr.read()
            assert b"closed the connection" in told and b"'burrow ps'" in told
            for other in rest:
                _, said = other.communicate(b"y" * 2000000, timeout=PATIENCE)
                assert other.returncode == 5 and said.startswith(b"burrow: "), (other.args, other.returncode, said)
        server.start()
        burrow("delete", "g")
        server.end()
    finally:
        server.abandon()


# ---- snapshots ----

def test_snapshots_checkpoints_and_diff(burrow, work, tmp_path):
    burrow("exec", work, "--", "sh", "-c", "echo v1 > /workspace/version")
    made = burrow.json("snapshot", "create", work, "--name", "cli", "--tag", "v1", "--description", "d", "--public")
    assert made["snapshotId"].startswith("snp_") and made["public"] is True
    assert made["id"] in [item["id"] for item in burrow.json("snapshot", "ls", "--sandbox", work, "--limit", "5", "--offset", "0")]
    assert burrow.json("snapshot", "list", "--sort=size", "--direction=desc")
    assert burrow.json("snapshot", "show", "cli:v1")["id"] == made["id"]
    assert burrow.json("snapshot", "tag", made["id"], "v2")["tag"] == "v2"
    burrow("snapshot", "tag", made["id"], "--clear")
    burrow("snapshot", "tag", made["id"], code=2)
    burrow("snapshot", "export", made["id"], tmp_path / "s.tar.zst")
    burrow("snapshot", "delete", made["id"], "--confirm")
    again = burrow.json("snapshot", "import", tmp_path / "s.tar.zst", "--name", "cli", "--tag", "v3")
    burrow("create", "--snapshot", "cli:v3", "--name", "from")
    assert burrow.text("exec", "from", "--", "cat", "/workspace/version") == "v1\n"
    burrow("delete", "from")
    burrow("snapshot", "rm", again["id"], "--confirm")
    burrow("checkpoint", "create", work, "before")
    burrow("exec", work, "--", "sh", "-c", "echo v2 > /workspace/version")
    told = burrow.json("diff", work, "before", "--patch")
    assert [item["path"] for item in told["items"]] == ["/workspace/version"] and "+v2" in told["items"][0]["patch"]
    assert "~ /workspace/version" in burrow.text("diff", work, "--from", "before")
    assert [item["name"] for item in burrow.json("ckpt", "list", work)] == ["before"]
    burrow("checkpoint", "restore", work, "before")
    assert burrow.text("exec", work, "--", "cat", "/workspace/version") == "v1\n"
    burrow("checkpoint", "delete", work, "before", "--confirm")


def test_the_server_can_be_asked_about_itself(burrow, work):
    assert burrow.json("system", "info")["name"] == "burrow"
    assert "runtimes" in burrow.json("system", "df")["parts"]
    assert burrow.json("system", "prune", "--dry-run")["dryRun"] is True and burrow.json("system", "prune", "--confirm")["dryRun"] is False
    assert burrow.json("stats", "--by", "sandbox", "--start", "2026-01-01T00:00:00Z")["by"] == "sandbox"
    burrow("exec", work, "--", "true")
    assert burrow.text("stats").split()[:4] == ["DAY", "RUNS", "CPU", "DISK"]
    for by, head in (("sandbox", "SANDBOX"), ("key", "KEY"), ("label", "LABELS")):
        assert burrow.text("stats", "--by", by).split()[0] == head
    assert re.search(r"\d{4}-\d\d-\d\d  ", burrow.text("stats"))
    assert burrow.json("network", "policy", work)["enabled"] is False
    for words in (["system", "info"], ["system", "df"], ["system", "prune", "-n"], ["stats"], ["network", "policy", work]):
        assert burrow.text(*words).strip()


def test_where_a_sandbox_may_connect_to(burrow):
    burrow("create", "--name", "netted", "--idle-timeout", "0", "--allow", "9.9.9.0/24:443", "--deny", "9.9.9.9")
    try:
        told = burrow.json("network", "policy", "netted")
        assert told["enabled"] is True and told["allow"] == ["9.9.9.0/24:443"] and told["deny"] == ["9.9.9.9"] and told["default"] == "deny"
        assert burrow.json("network", "why", "netted", "9.9.9.1:443")["allowed"] is True
        assert "protocol" in burrow.error("network", "why", "netted", "9.9.9.1:443/nothing", code=2)
        refused = burrow.json("network", "why", "netted", "9.9.9.9:443")
        assert refused["allowed"] is False and refused["rule"]
        shown = burrow.text("network", "why", "netted", "9.9.9.9:443")
        assert re.search(r"^allowed +no$", shown, re.M) and refused["reason"] in shown
        for where in ("9.9.9.9:https", ":443", "9.9.9.9/tcp:4"):
            assert "is not HOST, HOST:PORT" in burrow.error("network", "why", "netted", where, code=2)
        assert "on or off" in burrow.error("network", "policy", "netted", "--enabled", "yes", code=2)
        changed = burrow.json("network", "policy", "netted", "--allow", "9.9.8.1", "--default", "allow", "--observe", "on")
        assert changed["allow"] == ["9.9.8.1"] and changed["deny"] == ["9.9.9.9"] and changed["observe"] is True and changed["default"] == "allow"
        assert burrow.json("network", "policy", "netted", "--enabled", "off", "--observe", "off")["enabled"] is False
        assert "9.9.8.1" in burrow.text("network", "policy", "netted")
        seen = burrow.json("network", "observe", "netted")
        assert seen["items"] == [] and seen["refused"] == [] and "policy" in seen
        assert burrow.text("network", "observed", "netted").startswith("Refused: nothing\n")
    finally:
        burrow("delete", "netted", "--confirm")


def test_where_a_sandbox_wanted_to_go_is_listed(burrow):
    burrow("create", "--name", "curious", "--idle-timeout", "0", "--allow", "9.9.9.0/24:443")
    try:
        burrow("exec", "curious", "--", "bash", "-c", "trap '' PIPE; (echo >/dev/tcp/9.9.8.1/4321) 2>&-; true")
        servers.until(lambda: burrow.json("network", "observe", "curious")["refused"], "the refusal to be on record")
        [seen] = burrow.json("network", "observe", "curious")["refused"]
        assert (seen["host"], seen["port"], seen["protocol"]) == ("9.9.8.1", 4321, "tcp") and seen["attempts"] >= 1
        head, *rows = burrow.text("network", "observe", "curious").split("Let through")[0].splitlines()
        assert head == "Refused:" and rows[0].split()[:4] == ["HOST", "PORT", "PROTOCOL", "ATTEMPTS"] and rows[1].split()[:3] == ["9.9.8.1", "4321", "tcp"]
    finally:
        burrow("delete", "curious", "--confirm")


def test_ports_are_exposed_listed_and_shut(burrow):
    burrow("create", "--name", "ported", "--idle-timeout", "0", "--port", "3000")
    try:
        assert [item["port"] for item in burrow.json("port", "list", "ported")] == [3000]
        made = burrow.json("port", "create", "ported", "4000", "--private", "--expires", "1h", "--protocol", "http")
        assert made["port"] == 4000 and made["private"] is True and made["token"] and made["protocol"] == "http" and made["tokenExpiresAt"]
        table = burrow.text("port", "ls", "ported")
        assert re.search(r"^ *4000 +http +yes ", table, re.M) and made["token"] not in table
        assert "is shut" in burrow.text("port", "rm", "ported", "4000")
        assert burrow.json("port", "delete", "ported", "3000")["success"] is True
        assert burrow.json("port", "list", "ported") == []
        for words in (["port", "create", "ported", "80"], ["port", "create", "ported", "3000x"], ["create", "--port", "80"]):
            assert "1024 to 65535" in burrow.error(*words, code=2)
        assert burrow.error("port", "delete", "ported", "3000", code=3)
    finally:
        burrow("delete", "ported", "--confirm")


def test_runtimes_of_a_server(burrow, server, tmp_path):
    there = Cli(tmp_path / "home", BURROW_DATA=str(tmp_path / "nothing"), BURROW_URL=f"http://127.0.0.1:{server.port}", BURROW_API_KEY=server.key)
    told = there.json("runtime", "list")
    base = next(item for item in told if item["name"] == "base:latest")
    assert base["id"].startswith("srt_") and base["state"] == "ready" and len(told) > 2
    assert there.json("rt", "ls", "--limit", "1", "--offset", "1") == told[1:2]
    assert there.json("runtime", "show", "base:latest")["id"] == there.json("runtime", "get", base["id"])["id"] == base["id"]
    assert base["id"] in there.text("runtime", "list") and "base:latest" in there.text("runtime", "info", "base:latest")
    assert "nothing-such" in there.error("runtime", "show", "nothing-such", code=3)
    here = burrow.json("runtime", "list", "--limit", "1")
    assert len(here) == 1 and "definedIn" in here[0]
    assert "definedIn" in there.json("runtime", "list", "--data", tmp_path / "other")[0]
    assert "no server at 127.0.0.1:1" in burrow.error("runtime", "list", "--url", "http://127.0.0.1:1", code=5)


def test_packages_are_asked_of_the_server(burrow):
    for option in ("--dependency", "--package"):
        assert "no good; name" in burrow.error("create", option, "no good; name", code=2)


# ---- which server ----

def test_contexts_urls_and_keys(server, tmp_path):
    url = f"http://127.0.0.1:{server.port}"
    burrow = Cli(tmp_path / "home", BURROW_DATA=str(tmp_path / "nowhere"))
    here = burrow.json("list", "--url", url, "--api-key", server.key)
    assert "next: set BURROW_API_KEY" in burrow.error("list", "--url", url, code=4)
    burrow("context", "add", "down", "http://127.0.0.1:1")
    assert "no server at 127.0.0.1:1: Connection refused\nburrow: next: is it running?" in burrow.error("list", code=5)
    burrow("context", "create", "up", url, "--api-key", server.key)
    assert burrow.json("list", "--context", "up") == here
    burrow("context", "use", "up")
    assert burrow.json("list") == here
    assert {item["name"]: item["current"] for item in burrow.json("context", "ls")} == {"down": False, "up": True}
    kept = tmp_path / "home" / "config" / "burrow" / "contexts.json"
    assert kept.stat().st_mode & 0o777 == 0o600 and server.key not in burrow.text("context", "list")
    # a key that is said comes before the one that is kept
    assert burrow.error("list", "--api-key", "not-the-key-of-this-server", code=4)
    burrow("context", "create", "stale", url, "--api-key", "not-the-key-of-this-server")
    assert burrow.json("list", "--context", "stale", "--api-key", server.key) == here
    # a run goes there too, and nothing makes it one of this machine
    assert burrow.json("run", "--", "echo", "there")["executionId"].startswith("exe_")
    burrow("context", "use", "down")
    for words in ([], ["--tty"], ["--mount", f"{tmp_path}:/m:ro"]):
        assert "no server at 127.0.0.1:1" in burrow.error("run", *words, "--", "true", code=125), words
    assert "for a run on this machine" in burrow.error("run", "--output-limit", "10", "--", "true", code=2)
    burrow("context", "delete", "up")
    assert "there is no context 'up'" in burrow.error("list", "--context", "up", code=3)
    assert "is no address" in burrow.error("list", "--url", "ftp://x", code=2)
    kept.write_text("{")
    assert "contexts.json" in burrow.error("list", code=1)


def test_contexts_that_are_added_at_once_are_all_kept(tmp_path):
    burrow = Cli(tmp_path / "home", BURROW_DATA=str(tmp_path / "nowhere"))
    names = [f"c{number}" for number in range(40)]
    adding = [subprocess.Popen([BURROW, "context", "add", name, "http://127.0.0.1:1"], env=burrow.environment, stdout=subprocess.DEVNULL) for name in names]
    assert [one.wait(PATIENCE) for one in adding] == [0] * len(names)
    assert sorted(item["name"] for item in burrow.json("context", "ls")) == sorted(names)


def test_which_server_is_asked_first(tmp_path):
    """Each place has another address where nobody is."""
    plain = Cli(tmp_path / "home", BURROW_DATA=str(tmp_path / "nowhere"))
    for port in (2, 4, 5):
        plain("context", "add", f"at-{port}", f"http://127.0.0.1:{port}")
    plain("context", "use", "at-5")
    words, variables = [], {}
    for port, more_words, more_variables in ((5, [], {}), (4, [], {"BURROW_CONTEXT": "at-4"}), (3, [], {"BURROW_URL": "http://127.0.0.1:3"}),
                                             (2, ["--context", "at-2"], {}), (1, ["--url", "http://127.0.0.1:1"], {})):
        words, variables = words + more_words, {**variables, **more_variables}
        asked = Cli(tmp_path / "home", BURROW_DATA=str(tmp_path / "nowhere"), **variables)
        assert f"no server at 127.0.0.1:{port}" in asked.error("list", *words, code=5), (words, variables)
        assert f"no server at 127.0.0.1:{port}" in asked.error("run", *words, "--", "true", code=125), (words, variables)


def test_another_server_is_not_switched_to_by_itself(tmp_path, server):
    plain = Cli(tmp_path / "home", BURROW_DATA=str(server.data))
    assert "in use" in plain.text("context", "add", "first", "http://127.0.0.1:2")
    assert "no server at 127.0.0.1:2" in plain.error("list", code=5)
    plain("list", "--context", "local")
    plain("context", "use", "local")
    assert "in use" not in plain.text("context", "add", "second", "http://127.0.0.1:3")
    plain("list")
    plain("context", "use", "second")
    assert "commands go to the context 'second'" in plain("key", "list", "--data", server.data).stderr.decode()
    assert "commands go to BURROW_URL" in Cli(tmp_path / "home", BURROW_URL="http://127.0.0.1:4")("key", "list", "--data", server.data).stderr.decode()


def end_process(pid):
    """Asks one that is no child of ours to end, and waits until it has: it holds its data directory until then."""
    handle = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        assert select.select([handle], [], [], PATIENCE)[0], f"process {pid} does not end"
    finally:
        os.close(handle)


def end_background_servers(data):
    """Also those that lost the race for the data directory: one of them may take it when the winner has gone."""
    def is_one(entry):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return words[0] == b"burrow-server" and str(data).encode() in words
    while found := [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit() and is_one(entry)]:
        for pid in found:
            try:
                end_process(pid)
            except ProcessLookupError:
                pass


def test_a_server_is_started_in_the_background_and_ends_by_itself(tmp_path):
    data = tmp_path / "data"
    servers.borrow_runtimes(data)
    burrow = Cli(tmp_path / "home", BURROW_DATA=str(data), BURROW_END_WHEN_QUIET="1h")
    first = burrow("list")
    assert b"starting a server in the background" in first.stderr
    assert burrow("list").stderr == b""
    found = re.findall(r"pid=(\d+)", (data / "server.log").read_text())
    try:
        assert found, (data / "server.log").read_text()
        words = pathlib.Path(f"/proc/{found[0]}/cmdline").read_text().split("\0")
        assert words[words.index("--end-when-quiet") + 1] == "10m"  # what that does: test_a_quiet_server_ends
    finally:
        for pid in found:
            end_process(int(pid))
        subprocess.run([BURROW, "detach", "--data", data, "--end-sandboxes"], timeout=PATIENCE, check=True)


@pytest.mark.parametrize("owner, mode, words", [(65534, 0o700, "belongs to user 65534"), (0, 0o777, "may be changed by others"), (0, 0o1777, "may be changed by others")])
def test_a_data_directory_that_others_may_change_is_not_used(tmp_path, owner, mode, words):
    """Neither what lies there is believed, nor who listens there."""
    data = tmp_path / "data"
    data.mkdir()
    planted = socket.socket(socket.AF_UNIX)
    planted.bind(str(data / "burrow.sock"))
    planted.listen()
    planted.setblocking(False)
    os.chown(data, owner, -1)
    data.chmod(mode)
    burrow = Cli(tmp_path / "home", BURROW_DATA=str(data))
    for line in ("create", "list", "run -- true", "run --local -- true", "serve --listen 127.0.0.1:0", "key create --name x"):
        done = subprocess.run([BURROW, *line.split()], capture_output=True, timeout=PATIENCE, env=burrow.environment)
        assert done.returncode not in (0, 101) and words in done.stderr.decode(), (line, done.stderr)
    with pytest.raises(BlockingIOError):
        planted.accept()
    assert [path.name for path in data.iterdir()] == ["burrow.sock"]


def test_a_server_in_the_background_gives_way_and_leaves_keys_alone(tmp_path):
    """It has the data directory when the operator's server comes, as after a crash of that one."""
    server = servers.Server(tmp_path / "data", key=None)
    burrow = Cli(tmp_path / "home", BURROW_DATA=str(server.data), BURROW_API_KEY="of-a-client-0123456789abcdef")
    try:
        made = burrow.json("create", "--name", "kept", "--idle-timeout", "0")
        assert json.loads(subprocess.run([BURROW, "key", "list", "--data", server.data, "--json"], capture_output=True, check=True).stdout) == []
        server.start()
        assert "asking the server that a command started to stop" in server.log
        [server.key] = re.findall(r"brw_[A-Za-z0-9]{52}", server.log)
        assert server.client.get(f"/sandbox/{made['id']}").data["status"] == "idle"
        assert burrow("exec", "kept", "--", "echo", "lives").stdout == b"lives\n"
        second = subprocess.run([BURROW, "serve", "--listen", "127.0.0.1:0", "--data", server.data, "--stand-in", "yes"], capture_output=True,
                                text=True, timeout=PATIENCE)
        assert second.returncode == 1 and f"another server (pid {server.pid})" in second.stderr
        server.end()
    finally:
        end_background_servers(server.data)
        server.abandon()


def test_commands_that_come_at_once_share_the_server_that_one_of_them_starts(tmp_path):
    server = servers.Server(tmp_path / "data")
    burrow = Cli(tmp_path / "home", BURROW_DATA=str(server.data))
    try:
        started = [subprocess.Popen([BURROW, "list"], env=burrow.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True) for _ in range(6)]
        told = [each.communicate(timeout=PATIENCE)[0] for each in started]
        assert [each.returncode for each in started] == [0] * 6, told
    finally:
        end_background_servers(server.data)
        server.detach()


def test_a_quiet_server_ends(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("quiet") / "data", options=["--end-when-quiet", "100ms"])
    try:
        server.launch()
        assert server.process.wait(PATIENCE) == 0 and "signal=quiet" in server.log
        server.options = ["--end-when-quiet", "3s"]
        server.start()
        burrow = Cli(tmp_path_factory.mktemp("quiet-home"), BURROW_DATA=str(server.data))
        burrow("create", "--name", "kept", "--idle-timeout", "0")
        with pytest.raises(subprocess.TimeoutExpired):  # as long as there is a sandbox
            server.process.wait(8)
        burrow("delete", "kept")
        assert server.process.wait(PATIENCE) == 0 and "signal=quiet" in server.log
    finally:
        server.abandon()


# ---- words ----

def test_misspelled_words_get_a_suggestion(burrow):
    assert "did you mean 'list'" in burrow.error("lst", code=2)
    assert "did you mean 'fs mkdir'" in burrow.error("fs", "mkdri", code=2)
    assert "did you mean '--status'" in burrow.error("list", "--statu", "x", code=2)
    assert "does not take 'extra'" in burrow.error("list", "extra", code=2)
    assert "SANDBOX is missing: burrow get SANDBOX" in burrow.error("get", code=2)


def commands():
    """Every command there is, from the help of burrow and of its groups."""
    def listed(*words):
        text = subprocess.run([BURROW, *words, "--help"], capture_output=True, text=True, check=True).stdout
        block = re.split(r"(?i)\ncommands:\n", text)[1].split("\n\n")[0]
        return re.findall(r"^  (\S+)", block, re.M)
    found = []
    for name in listed():
        text = subprocess.run([BURROW, name, "--help"], capture_output=True, text=True, check=True).stdout
        found += [(name, each) for each in listed(name)] if re.search(r"(?i)\ncommands:\n", text) else [(name,)]
    return found


def test_every_command_has_help_with_examples():
    all_commands = commands()
    assert len(all_commands) > 40
    for words in all_commands:
        text = subprocess.run([BURROW, *words, "--help"], capture_output=True, text=True, check=True).stdout
        assert "examples:" in text and "$ " in text, words
        assert text == subprocess.run([BURROW, "help", *words], capture_output=True, text=True).stdout or words[0] in ("key", "runtime"), words


def test_shells_complete_what_the_server_has(burrow, work):
    sandbox = burrow.json("get", work)["id"]
    def offered(*words):
        return [line.split("\t")[0] for line in burrow.text("complete", *words).splitlines()]
    assert {work, sandbox} <= set(offered("exec", "")) and offered("get", "wor") == [work]
    assert offered("fs", "ls", sandbox[:-1]) == [sandbox] and work not in offered("fs", "ls", "work", "")
    assert work in offered("delete", "other", "wo") and "base:latest" in offered("create", "--runtime", "ba")
    assert offered("create", "--runtime=base:l") == ["--runtime=base:latest"]
    # what is in the sandbox of the line; and all of what may stand at a place
    burrow("checkpoint", "create", work, "marked")
    snapshot = burrow.json("snapshot", "create", work, "--name", "offered", "--tag", "v9")["id"]
    job = burrow.json("job", "create", work, "--", "true")["id"]
    for words in (["checkpoint", "restore", work, ""], ["ckpt", "delete", work, "--confirm", "mar"], ["diff", work, ""], ["diff", work, "marked", ""], ["diff", work, "--from", ""]):
        assert "marked" in offered(*words), words
    assert job in offered("job", "logs", work, "") and job in offered("sb", "job", "get", work, job[:-2])
    assert {snapshot, "offered", "v9"} <= set(offered("snapshot", "get", "")) and offered("run", "--snapshot", "offe") == ["offered"]
    for command in ("wait", "logs", "attach"):
        assert {work, job} <= set(offered(command, "")), command
    assert offered("checkpoint", "restore", "nobody", "") == []
    burrow("checkpoint", "delete", work, "marked", "--confirm")
    burrow("snapshot", "delete", snapshot, "--confirm")


def test_living_sandboxes_are_shown_however_many_have_ended_since(burrow, work):
    ended = [burrow.json("run", "--", "true")["sandboxId"] for _ in range(101)]
    named = burrow.json("create", "--name", "over-and-done")["id"]
    burrow("delete", named)
    assert work in [one["name"] for one in burrow.json("top")]
    offered = [line.split("\t")[0] for line in burrow.text("complete", "events", "").splitlines()]
    assert work in offered and ended[-1] in offered and named in offered and "over-and-done" not in offered


# ---- run through a server ----

def test_run_goes_to_the_local_server_and_never_starts_one(burrow, server, tmp_path):
    (tmp_path / "in").write_text("file\n")
    before = burrow.json("system", "info")
    done = burrow("cloud", "sandbox", "run", "--memory", "128Mi", "--env", "A=5", "--file", f"/workspace/in:{tmp_path / 'in'}", "--",
                  "sh", "-c", "cat in; echo $A; exit 4", code=4)
    assert done.stdout == b"file\n5\n"
    assert burrow.text("run", "--", "tr", "a-z", "A-Z", input=b"piped") == "PIPED"
    told = burrow.json("run", "--timeout", "30s", "--", "echo", "x")
    assert told["stdout"] == "x\n" and told["exitCode"] == 0 and told["executionId"].startswith("exe_")
    burrow("run", "--timeout", "100ms", "--", "sleep", "60", code=124)
    assert burrow.text("run", "--quiet", "--", "echo", "x") == ""
    assert before["name"] == "burrow"
    alone = Cli(tmp_path / "home", BURROW_DATA=str(tmp_path / "none"))
    assert "needs a server" in alone.error("run", "--snapshot", "x", "--", "true", code=2)
    assert "for a run here" in burrow.error("run", "--local", "--snapshot", "x", "--", "true", code=2)
    assert "for a run on this machine" in burrow.error("run", "--url", f"http://127.0.0.1:{server.port}", "--network-rate", "1Mi", "--", "true", code=2)
    assert not (tmp_path / "none" / "burrow.sock").exists()
    burrow("run", "--url", "http://127.0.0.1:1", "--", "true", code=125)


RUNS = {
    "its own code": (["sh", "-c", "echo out; echo err >&2; exit 3"], [], 3),
    "a signal": (["sh", "-c", "kill -9 $$"], [], 137),
    "no such command": (["no-such-program"], [], 127),
    "time": (["sleep", "60"], ["--timeout", "200ms"], 124),
    "memory": (["python3", "-c", "x = bytearray(300 << 20)"], ["--memory", "64Mi"], 137),
    "disk": (["sh", "-c", "head -c 100000000 /dev/zero 2>&- > big"], ["--disk", "16Mi"], 1),
    "processes": (["sh", "-c", "for i in $(seq 30); do sleep 0.1 2>&- & done 2>&-; wait; exit 5"], ["--max-processes", "8"], None),
}


@pytest.mark.parametrize("what", RUNS)
def test_a_run_tells_the_same_here_and_on_a_server(server, tmp_path, what):
    """Both with the same words, so that a server which happens to be there changes nothing."""
    command, options, code = RUNS[what]
    def run(*how):
        words = [BURROW, "run", *how, "--runtime", "base:latest", *options, "--", *command]
        return subprocess.run(words, capture_output=True, text=True, env=plain_environment(tmp_path, BURROW_DATA=str(server.data)),
                              stdin=subprocess.DEVNULL, timeout=PATIENCE)
    here, there = run("--local"), run()
    assert (here.returncode, here.stdout) == (there.returncode, there.stdout) and here.returncode != 0
    assert code is None or here.returncode == code
    own = [line for line in here.stderr.splitlines() if line.startswith("burrow: ")]
    assert own == [line for line in there.stderr.splitlines() if line.startswith("burrow: ")]
    assert len(own) == (0 if what in ("its own code", "a signal") else 1), own
    here, there = json.loads(run("--local", "--json").stdout), json.loads(run("--json").stdout)
    assert there.pop("executionId").startswith("exe_")
    assert here.keys() == there.keys()
    assert there["resources"].keys() == {"cpuUserMs", "cpuSystemMs", "maxRssBytes"} <= here["resources"].keys()
    for told in (here, there):
        for name in ("sandboxId", "durationMs", "resources", "stderr"):
            told.pop(name)
    assert here == there


@pytest.mark.parametrize("where", [[], ["--local"]])
def test_a_run_that_ignores_sigterm_is_killed(server, tmp_path, where):
    process = subprocess.Popen([BURROW, "run", *where, "--", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"],
                               env=plain_environment(tmp_path, BURROW_DATA=str(server.data)), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE)
    with process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 137


def test_a_run_belongs_to_its_project(burrow):
    told = burrow.json("run", "--project-id", "proj_runs", "--scope", "one", "--scope", "two", "--", "true")
    [listed] = burrow.json("list", "--project-id", "proj_runs", "--mode", "oneshot")
    assert listed["id"] == told["sandboxId"] and listed["project"] == "proj_runs"
    assert burrow.json("get", told["sandboxId"])["scopes"] == ["one", "two"]


def test_a_run_from_a_snapshot(burrow, work):
    burrow("exec", work, "--", "sh", "-c", "echo kept > /workspace/kept")
    made = burrow.json("snapshot", "create", work, "--tag", "run-me")
    assert burrow.text("run", "--snapshot", "run-me", "--", "cat", "/workspace/kept") == "kept\n"
    burrow("snapshot", "delete", made["id"], "--confirm")


def test_a_snapshot_that_is_deleted_by_its_name_is_told_by_its_id_too(burrow, work):
    first, second, third = (burrow.json("snapshot", "create", work, "--name", "named", "--tag", tag)["id"] for tag in ("one", "two", "three"))
    assert burrow.text("snapshot", "delete", "named:one", "--confirm") == f"deleted snapshot named:one ({first})\n"
    assert burrow.json("snapshot", "delete", "two", "--confirm") == {"success": True, "id": second}
    assert burrow.text("snapshot", "delete", third, "--confirm") == f"deleted snapshot {third}\n"
    burrow.error("snapshot", "delete", "named:one", "--confirm", code=3)


def test_a_snapshot_is_built_from_a_file_that_says_what_is_in_it(burrow, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.js").write_text("a\n")
    (tmp_path / "src" / "a.test.js").write_text("t\n")
    (tmp_path / "left-out").write_text("x\n")
    assert "snapshot generate" in burrow.error("snapshot", "build", tmp_path, code=3)
    (tmp_path / "agentuity-snapshot.yaml").write_text('version: 1\nruntime: base:latest\nname: built\nfiles:\n  - src/**\n  - "!**/*.test.js"\nenv:\n  KEY: ${KEY}\n')
    assert "--env KEY" in burrow.error("snapshot", "build", tmp_path, "--tag", "other", code=2)
    (tmp_path / "agentuity-snapshot.yaml").open("a").write("metadata:\n  a: of the file\n  c: d\n")
    made = burrow.json("snapshot", "build", tmp_path, "--env", "KEY=value", "--tag", "t1", "--metadata", "a=b", "--description", "d")
    assert burrow.json("snapshot", "get", made["id"])["metadata"] == {"a": "b", "c": "d"}
    done = burrow.text("run", "--snapshot", "built:t1", "--", "sh", "-c", "echo $KEY; find . -type f")
    assert done == "value\n./src/a.js\n"
    same = burrow.json("snapshot", "build", tmp_path, "--env", "KEY=value", "--tag", "t1", "--metadata", "a=b", "--description", "d")
    assert same["unchanged"] is True and same["id"] == made["id"]
    burrow("snapshot", "delete", made["id"], "--confirm")
    assert burrow.text("snapshot", "generate").startswith("#")
    assert json.loads(burrow.text("snapshot", "generate", "--format", "json"))["version"] == 1
