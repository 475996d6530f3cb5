# SPDX-License-Identifier: Apache-2.0
"""Files and directories larger than the server takes or gives in one request (--file-limit): `fs cp` both ways, `try`, `watch`, libburrow."""
import hashlib
import os
import random
import signal
import subprocess

import pytest

from test_commands import BURROW, PATIENCE, Cli, pytestmark, servers  # noqa: F401
from client import until  # noqa: E402 isort: skip (found by test_commands)

MIB = 1 << 20
LIMIT = MIB


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("size") / "data", options=["--file-limit", "1Mi"])
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(scope="module")
def burrow(server, tmp_path_factory):
    cli = Cli(tmp_path_factory.mktemp("home"), BURROW_DATA=str(server.data))
    cli("create", "--name", "work", "--idle-timeout", "0")
    return cli


def write(path, size, seed=1):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(random.Random(seed).randbytes(size))
    return path


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digest_there(burrow, path):
    return burrow.text("exec", "work", "sha256sum", path).split()[0]


def names_there(burrow, path):
    return sorted(burrow.text("exec", "work", "ls", "-A", path).split())


@pytest.mark.parametrize("size", (LIMIT - 1, LIMIT, LIMIT + 1, 3 * LIMIT + 17))
def test_a_file_of_any_size_there_and_back(burrow, tmp_path, size):
    local = write(tmp_path / "file", size, seed=size)
    local.chmod(0o750)
    told = burrow.json("fs", "cp", local, "work:/workspace/any/deep/file")
    assert told["bytesTransferred"] == size
    assert digest_there(burrow, "any/deep/file") == digest(local) and names_there(burrow, "any/deep") == ["file"]
    assert burrow.text("exec", "work", "stat", "-c", "%a", "any/deep/file") == "750\n"
    told = burrow.json("fs", "cp", "work:/workspace/any/deep/file", tmp_path / "back")
    assert told["bytesTransferred"] == size and digest(tmp_path / "back") == digest(local)
    assert (tmp_path / "back").stat().st_mode & 0o777 == 0o750 and sorted(path.name for path in tmp_path.iterdir()) == ["back", "file"]
    assert burrow("fs", "cp", "work:/workspace/any/deep/file", "-").stdout == local.read_bytes()
    burrow("exec", "work", "rm", "-r", "any")


def test_a_file_of_holes_fills_no_disk_here(burrow, tmp_path):
    burrow("exec", "work", "sh", "-c", "truncate -s 200M holes; printf end >>holes; truncate -s 300M holes")
    burrow("fs", "cp", "work:/workspace/holes", tmp_path / "one")
    burrow("fs", "cp", "-r", "work:/workspace", tmp_path / "all")
    for copy in (tmp_path / "one", tmp_path / "all/holes"):
        info = copy.stat()
        assert info.st_size == 300 * MIB and info.st_blocks * 512 < 2 * MIB
        with copy.open("rb") as file:
            assert not any(file.read(200 * MIB)) and file.read(4) == b"end\0"
    with (tmp_path / "behind").open("wb") as out:  # where something stands already, zeros are written
        out.write(b"begin")
        out.flush()
        subprocess.run([BURROW, "fs", "cp", "work:/workspace/holes", "-"], stdout=out, check=True, env=burrow.environment, timeout=PATIENCE)
    assert (tmp_path / "behind").stat().st_size == 300 * MIB + 5
    burrow("exec", "work", "rm", "holes")


def test_what_is_replaced_keeps_its_owner_and_a_link_stays_a_link(burrow, tmp_path):
    local = write(tmp_path / "file", 2 * LIMIT)
    burrow("exec", "work", "sh", "-c", "echo old >owned; chown 33:44 owned; echo old >led-to; ln -s led-to link")
    burrow("fs", "cp", local, "work:/workspace/owned")
    assert burrow.text("exec", "work", "stat", "-c", "%u:%g", "owned") == "33:44\n" and digest_there(burrow, "owned") == digest(local)
    burrow("fs", "cp", local, "work:/workspace/link")
    assert burrow.text("exec", "work", "readlink", "link") == "led-to\n" and digest_there(burrow, "led-to") == digest(local)
    burrow("exec", "work", "rm", "owned", "led-to", "link")


def test_what_cannot_be_sent_whole_leaves_what_was_there(burrow, tmp_path):
    # the disk of the sandbox is full in the middle
    burrow("create", "--name", "little", "--disk", "8Mi", "--idle-timeout", "0")
    burrow("exec", "little", "sh", "-c", "mkdir d; echo old >d/file")
    local = write(tmp_path / "file", 20 * LIMIT)
    said = burrow.error("fs", "cp", local, "little:/workspace/d/file", code=7)
    assert "disk" in said and "'/workspace/d/file'" in said, said
    assert burrow.text("exec", "little", "sh", "-c", "cat d/file; ls -A d") == "old\nfile\n"
    burrow("rm", "little", "--confirm")
    # Ctrl-C in the middle
    local.write_bytes(b"")
    os.truncate(local, 2 << 30)
    burrow("exec", "work", "sh", "-c", "mkdir c; echo old >c/file")
    sending = subprocess.Popen([BURROW, "fs", "cp", local, "work:/workspace/c/file"], env=burrow.environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: len(names_there(burrow, "c")) == 2, "the first part to come")
    sending.send_signal(signal.SIGINT)
    assert sending.wait(PATIENCE) == 130
    assert burrow.text("exec", "work", "sh", "-c", "cat c/file; ls -A c; rm -r c") == "old\nfile\n"


def test_a_tree_that_finds_the_disk_full_leaves_what_was_there(burrow, tmp_path):
    write(tmp_path / "tree/file", LIMIT // 3)
    burrow("create", "--name", "full", "--disk", "8Mi", "--idle-timeout", "0")
    burrow("exec", "full", "sh", "-c", "mkdir d; echo old >d/file; head -c 20M /dev/urandom >d/all", code=1)
    assert "disk" in burrow.error("fs", "cp", "-r", f"{tmp_path}/tree/.", "full:/workspace/d", code=7)
    assert burrow.text("exec", "full", "sh", "-c", "cat d/file; ls -A d") == "old\nall\nfile\n"
    burrow("rm", "full", "--confirm")


@pytest.mark.parametrize("size", (0, 5, LIMIT - 1, LIMIT, LIMIT + 1, 3 * LIMIT, 3 * LIMIT + 17))
def test_what_comes_out_of_a_pipe_has_any_size(burrow, tmp_path, size):
    local = write(tmp_path / "file", size, seed=size)
    burrow("exec", "work", "sh", "-c", "mkdir p; echo old >p/file; chown 33:44 p/file")
    for _ in range(2):
        told = subprocess.run(f"cat {local} | {BURROW} fs cp - work:/workspace/p/file", shell=True, capture_output=True, check=True, env=burrow.environment, timeout=PATIENCE)
        assert b"copied 1 file" in told.stdout
        assert digest_there(burrow, "p/file") == digest(local) and names_there(burrow, "p") == ["file"]
    assert burrow.text("exec", "work", "stat", "-c", "%u:%g", "p/file") == "33:44\n"
    burrow("exec", "work", "rm", "-r", "p")


def test_a_pipe_says_nothing_of_modes(burrow):
    burrow("exec", "work", "sh", "-c", "mkdir m; touch m/run m/large; chmod 4755 m/run m/large")
    for name, size, mode in (("run", 5, "755"), ("large", 2 * LIMIT, "755"), ("new", 5, "644"), ("new and large", 2 * LIMIT, "644")):
        burrow("fs", "cp", "-", f"work:/workspace/m/{name}", input=b"x" * size)
        assert burrow.text("exec", "work", "stat", "-c", "%a %s", f"m/{name}") == f"{mode} {size}\n"
    burrow("exec", "work", "rm", "-r", "m")


def test_a_pipe_that_is_left_leaves_what_was_there(burrow):
    burrow("exec", "work", "sh", "-c", "mkdir p; echo old >p/file")
    sending = subprocess.Popen([BURROW, "fs", "cp", "-", "work:/workspace/p/file"], env=burrow.environment, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    sending.stdin.write(b"x" * 5 * LIMIT)
    sending.stdin.flush()
    until(lambda: len(names_there(burrow, "p")) == 2, "the first part to come")
    sending.send_signal(signal.SIGINT)
    assert sending.wait(PATIENCE) == 130
    sending.stdin.close()
    assert burrow.text("exec", "work", "sh", "-c", "cat p/file; ls -A p; rm -r p") == "old\nfile\n"


def test_archives_too_large_for_a_request_name_the_way_out(burrow, tree, tmp_path):
    burrow("fs", "cp", "-r", tree, "work:/workspace/tree")
    for words in (["download", "work", tmp_path / "a.tar", "--path", "/workspace/tree"], ["upload", "work", tree / "large", "--format", "tar"]):
        said = burrow.error("fs", *words, code=7)
        assert "burrow fs cp -r" in said and "--file-limit" in said
    burrow("exec", "work", "rm", "-r", "tree")


def test_a_file_that_changes_meanwhile_is_told(burrow, tmp_path):
    # so sparse that all parts are quick, and so large that they are many
    burrow("exec", "work", "truncate", "-s", "512M", "changes")
    burrow("job", "create", "work", "--", "sh", "-c", "while echo x >>changes; do sleep 0.01; done")
    said = burrow.error("fs", "cp", "work:/workspace/changes", tmp_path / "copy", code=6)
    assert "changed '/workspace/changes' while it was read" in said and not list(tmp_path.iterdir())
    for job in burrow.json("job", "list", "work"):
        burrow("job", "destroy", "work", job["id"], "--force")
    burrow("exec", "work", "rm", "changes")


@pytest.fixture
def tree(tmp_path):
    """No part of it is too large for a request but all of it together, and some files are."""
    top = tmp_path / "tree"
    for number in range(40):
        write(top / f"many/f{number}", 100000, seed=number)
    write(top / "large", 5 * LIMIT // 2, seed=100)
    write(top / "a/b/large too", LIMIT + 1, seed=101)
    write(top / "a/b/half", LIMIT // 2 + 1, seed=102)
    write(top / "a/small", 3, seed=103)
    (top / "a/b/empty").mkdir()
    (top / "a/b/empty").chmod(0o750)
    (top / "many").chmod(0o700)
    (top / "a/b/up").symlink_to("../../large")
    (top / "a/b/run.sh").write_text("#!/bin/sh\n")
    (top / "a/b/run.sh").chmod(0o755)
    return top


def snapshot(top):
    return {str(path.relative_to(top)): ("link", os.readlink(path)) if path.is_symlink() else ("directory", path.stat().st_mode & 0o777) if path.is_dir()
            else ("file", path.stat().st_mode & 0o777, digest(path)) for path in sorted(top.rglob("*"))}


def test_a_tree_of_any_size_there_and_back(burrow, tree, tmp_path):
    told = burrow.json("fs", "cp", "-r", tree, "work:/workspace/tree")
    assert told["filesTransferred"] == 46 and told["bytesTransferred"] == sum(path.stat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    told = burrow.json("fs", "cp", "-r", "work:/workspace/tree", tmp_path / "back")
    assert told["filesTransferred"] == 46 and "skipped" not in told
    assert snapshot(tmp_path / "back") == snapshot(tree)
    odd = os.fsdecode(b"a\377 b\n")
    burrow("exec", "work", "sh", "-c", r"""odd=$(printf 'a\377 b\nx'); odd=${odd%x}; mkdir "tree/$odd"; cp tree/large "tree/$odd/$odd"; ln -s "$odd" "tree/$odd/link" """)
    burrow("fs", "cp", "-r", "work:/workspace/tree", tmp_path / "odd")
    assert digest(tmp_path / "odd" / odd / odd) == digest(tree / "large") and os.readlink(tmp_path / "odd" / odd / "link") == odd
    burrow("fs", "cp", tree / "large", f"work:/workspace/tree/{odd}/new {odd}")  # in parts, put in place at the end
    burrow("fs", "cp", f"work:/workspace/tree/{odd}/new {odd}", tmp_path / "new")
    assert digest(tmp_path / "new") == digest(tree / "large")
    burrow("fs", "rm", "-r", "work", f"/workspace/tree/{odd}")
    burrow("exec", "work", "sh", "-c", "mkfifo tree/a/pipe; ln -s /etc tree/a/out; ln -s ../../.. tree/a/above")
    told = burrow("fs", "cp", "-r", "work:/workspace/tree", tmp_path / "again")
    assert b"3 entries were left out" in told.stderr and snapshot(tmp_path / "again") == snapshot(tree)
    burrow("exec", "work", "rm", "-r", "tree")


def test_a_copy_to_try_in_may_have_any_size(burrow, tree):
    before = snapshot(tree)
    told = burrow.json("try", "--dir", tree, "--apply", "--", "sh", "-c", "test $(cat large 'a/b/large too' | wc -c) = 3670017; echo more >>large; rm 'a/b/large too'; head -c 3000000 /dev/zero >made")
    assert sorted(item["path"] for item in told["changes"]) == ["a/b/large too", "large", "made"]
    after = snapshot(tree)
    assert (tree / "large").stat().st_size == 5 * LIMIT // 2 + 5 and (tree / "made").stat().st_size == 3000000
    assert {path: what for path, what in after.items() if path not in ("large", "made")} == {path: what for path, what in before.items() if path not in ("large", "a/b/large too")}
    assert "--limit" in burrow.error("try", "--dir", tree, "--limit", "4Mi", "--apply", "--", "true", code=125)


def test_a_fork_may_change_files_of_any_size(burrow):
    burrow("exec", "work", "sh", "-c", "head -c 3000000 /dev/zero >forked")
    burrow("try", "--sandbox", "work", "--apply", "--", "sh", "-c", "echo more >>forked")
    assert burrow.text("exec", "work", "sh", "-c", "wc -c <forked; tail -n 1 forked | tail -c 5; rm forked") == "3000005\nmore\n"


def test_directories_of_any_size_are_kept_in_step(burrow, tree):
    burrow("exec", "work", "sh", "-c", "mkdir -p step; head -c 3000000 /dev/urandom >step/theirs")
    watching = subprocess.Popen([BURROW, "watch", tree, "work:/workspace/step"], env=burrow.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        until(lambda: (tree / "theirs").exists() and digest(tree / "theirs") == digest_there(burrow, "step/theirs"), "theirs to come")
        until(lambda: "large" in names_there(burrow, "step") and digest_there(burrow, "step/large") == digest(tree / "large"), "ours to go")
        write(tree / "large", 2 * LIMIT, seed=200)
        until(lambda: digest_there(burrow, "step/large") == digest(tree / "large"), "the change to go")
    finally:
        watching.send_signal(signal.SIGINT)
        _, error = watching.communicate(timeout=PATIENCE)
    assert watching.returncode == 0, error
    burrow("exec", "work", "rm", "-r", "step")
