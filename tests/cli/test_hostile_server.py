# SPDX-License-Identifier: Apache-2.0
"""The command line against a server that means harm: nothing outside the chosen place, nothing that drives the terminal, bounded memory, and Ctrl-C works."""
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import tarfile
import threading
import time

import pytest

from test_commands import BURROW, PATIENCE, commands, entry, http, plain_environment, tar_of, until  # noqa: F401

POISON = "x\x1b]0;owned\x07\x9b31m\x9d0;o\x9c\r\n\x08\x7fy"
MOST_MEMORY = 192 << 20


class Hostile(threading.Thread):
    """Answers each request by what `answer(head)` gives: bytes, or pieces for as long as somebody takes them. Connections end with their answer."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.answer = answer
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.start()

    def run(self):
        try:
            while True:
                threading.Thread(target=self.serve, args=(self.socket.accept()[0],), daemon=True).start()
        except OSError:
            pass

    def serve(self, peer):
        with peer:
            head = b""
            try:
                while b"\r\n\r\n" not in head:
                    data = peer.recv(65536)
                    if not data:
                        return
                    head += data
                answer = self.answer(head)
                for piece in [answer] if isinstance(answer, bytes) else answer:
                    peer.sendall(piece)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):  # what comes late is no reset
                    pass
            except OSError:
                pass


@pytest.fixture
def against(tmp_path):
    """Runs burrow, which may have so much memory and no more, against an answer: the exit code, stdout, stderr."""
    made = []

    def start(answer, *words):
        made.append(Hostile(answer))
        out, error = (tmp_path / "out").open("wb"), (tmp_path / "err").open("wb")
        with out, error:
            return subprocess.Popen(["prlimit", f"--as={MOST_MEMORY}", BURROW, *map(str, words)], stdin=subprocess.DEVNULL, stdout=out, stderr=error, cwd=tmp_path,
                                    env=plain_environment(tmp_path, BURROW_URL=made[-1].url))

    def run(answer, *words, after=None):
        process = start(answer, *words)
        try:
            if after:
                after(process)
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()
        out, error = (tmp_path / "out").read_bytes(), (tmp_path / "err").read_bytes()
        assert process.returncode >= 0 and b"out of memory" not in error, (process.returncode, error)
        return process.returncode, out, error
    yield run
    for one in made:
        one.socket.close()


def stream(*pieces, type="application/x-ndjson"):
    yield f"HTTP/1.1 200 OK\r\nContent-Type: {type}\r\nConnection: close\r\n\r\n".encode()
    for piece in pieces:
        yield from [piece] if isinstance(piece, bytes) else piece


# ---- what drives terminals ----

def poisoned(depth=0):
    """Whatever is asked for, it is a text that no terminal should get."""
    names = ["id", "name", "description", "state", "error", "mode", "runtime", "snapshotId", "url", "env", "kind", "path", "target", "tag", "stream", "type", "reason", "event",
             "title", "detail", "command", "executionId", "sandboxId", "status", "version", "host", "protocol", "fingerprint", "key", "checkpointId", "code", "owner", "language",
             "rule", "address", "message", "createdAt", "startedAt", "at", "day", "modifiedAt", "mode", "uid", "gid", "exitCode", "sizeBytes", "port", "patch", "change", "user", "comment"]
    value = dict.fromkeys(names, POISON)
    if depth < 2:
        inner = poisoned(depth + 1)
        value |= {name: inner for name in ("limits", "network", "sandbox", "execution", "snapshot", "data", "before", "after", "policy", "runtimeInfo")}
        value |= {name: [inner] for name in ("items", "ports", "labels", "tags", "rules", "changes", "allow", "deny", "leftOut", "directoriesCreated", "argv")}
        value["env"] = value["labels"] = {POISON: POISON}
    return value


def is_tame(*texts):
    return all(byte not in text for text in texts for byte in (b"\x1b", b"\x07", b"\x08", b"\r", b"\x7f", "\x9b".encode(), "\x9d".encode(), "\x9c".encode()))


LINES = ["list", "list -q", "ls", "ls box /x -l", "get box", "create", "create -q", "create --name x --port 3000", "delete box", "pause box", "resume box", "fork box", "ps", "ps box", "events box",
         "env box", "env box A=1", "wait box --state idle --timeout 10ms", "wait exe_x --timeout 10ms", "stats", "fs ls box", "fs ls box -l", "fs mkdir box /d", "fs rmdir box /d", "fs rm box /f", "fs cp {file} box:/a",
         "snapshot create box", "snapshot list", "snapshot get x", "snapshot tag x y", "snapshot delete x", "checkpoint create box c", "checkpoint list box", "checkpoint restore box c",
         "checkpoint delete box c", "diff box c", "diff box c --patch", "job create box -- true", "job list box", "job get box job_x", "job destroy box job_x", "execution list box", "execution get exe_x",
         "execution stop exe_x", "network policy box", "network why box 9.9.9.9:443", "network observe box", "port create box 4000", "port list box", "port delete box 4000", "system info", "system df",
         "system prune --dry-run", "runtime list", "runtime show base", "ssh-key list", "ssh-key remove x", "code box 1", "exec box true", "run -- true", "top --json", "snapshot generate", "try --sandbox box --discard -- true"]


@pytest.mark.parametrize("line", LINES)
def test_no_answer_drives_the_terminal(against, tmp_path, line):
    (tmp_path / "file").write_text("x")
    body = json.dumps(poisoned(), ensure_ascii=False).encode()
    words = [word.format(file=tmp_path / "file") for word in line.split()]
    _, out, error = against(lambda head: http(body), *words)
    assert is_tame(error), (out, error)
    assert is_tame(out) or words[0] in ("exec", "run", "code"), (out, error)  # what a command writes goes through as it is
    for status in ("400 No", "404 No", "503 No"):
        _, out, error = against(lambda head, status=status: http(body, status=status), *words)
        assert is_tame(out, error), (status, out, error)


@pytest.mark.parametrize("line", LINES)
def test_no_json_drives_the_terminal_either(against, tmp_path, line):
    """What it says is there all the same, spelled otherwise."""
    (tmp_path / "file").write_text("x")
    body = json.dumps(poisoned(), ensure_ascii=False).encode()
    head, *tail = line.format(file=tmp_path / "file").split(" -- ", 1)
    words = [*head.split(), "--json", *(["--", *tail[0].split()] if tail else [])]
    code, out, error = against(lambda head: http(body), *words)
    assert is_tame(out, error), (out, error)
    if code == 0 and words[:2] not in (["snapshot", "generate"], ["list", "-q"]):
        json.loads(out)


def test_every_command_that_asks_is_tried():
    """A command that is not here prints nothing of the server's, or is one of those below."""
    others = {"attach", "cp", "completion", "context", "detach", "doctor", "key", "logs", "mcp", "repair", "serve", "ssh", "ssh-config", "ssh-proxy", "watch", "fs download", "fs upload", "snapshot build",
              "snapshot export", "snapshot import", "execution logs", "job logs", "runtime build", "runtime add", "runtime verify", "runtime remove", "runtime export", "ssh-key add"}
    tried = {line.split()[0] for line in LINES} | {" ".join(line.split()[:2]) for line in LINES}
    assert {" ".join(words) for words in commands() if " ".join(words) not in tried | others and words[0] not in others} == set()


# ---- what has no end ----

def page(items):
    numbers = itertools.count()
    return lambda head: http(json.dumps({"items": items, "nextCursor": str(next(numbers))}).encode())


@pytest.mark.parametrize("line", ["list", "ls", "ps", "events box", "events box --reverse", "fs ls box", "snapshot list", "job list box", "execution list box", "runtime list", "logs box", "checkpoint list box", "list --sort name"])
def test_a_list_without_end_is_given_up(against, line):
    code, out, error = against(page([]), *line.split())
    assert code != 0 and error.startswith(b"burrow: "), (code, out[:200], error)


def test_a_list_of_what_is_not_wanted_is_given_up(against):
    items = [{"id": f"sbx_{i}", "mode": "interactive", "fill": "x" * 10000} for i in range(100)]
    code, _, error = against(page(items), "list", "--mode", "oneshot")
    assert code != 0 and error.startswith(b"burrow: "), (code, error)


@pytest.mark.parametrize("line", ["events box", "logs box -f", "logs exe_x -f", "watch . box", "exec box true", "fs ls box"])
def test_a_line_without_end_is_given_up(against, line):
    endless = itertools.repeat(b"x" * (1 << 20), 2048)
    code, _, error = against(lambda head: stream(b'{"a":"', endless), *line.split())
    assert code != 0 and error.startswith(b"burrow: "), (code, error)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000, b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n",
                                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n", b"HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n"],
                         ids=["continue", "head", "early", "trailer", "switch"])
def test_an_answer_that_never_begins_or_ends_is_given_up(against, answer):
    last = answer.rsplit(b"\r\n", 2)[-2] + b"\r\n" if b"100 C" not in answer and b"103" not in answer else answer
    code, _, error = against(lambda head: itertools.chain([answer], itertools.repeat(last * 100)), "list")
    assert code == 5 and b"not HTTP" in error, (code, error)


@pytest.mark.parametrize("words", [["cp", "--timeout", "300ms", "box:/x", "f"], ["fs", "cp", "-r", "--timeout", "300ms", "box:/x", "f"]])
def test_a_copy_that_stands_still_is_given_up_in_time(against, tmp_path, words):
    still = threading.Event()

    def pieces():
        yield b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 100000\r\n\r\nbegun"
        still.wait(PATIENCE)
    answer = stat_then(None, "directory" if "-r" in words else "file")
    code, _, error = against(lambda head: answer(head) or pieces(), *words)
    still.set()
    assert code == 124 and error.startswith(b"burrow: "), (code, error)
    assert not (tmp_path / "f").is_file()


def test_what_is_packed_is_not_unpacked(against):
    import gzip
    bomb = gzip.compress(b"[" + b"0," * (32 << 20) + b"0]")
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb
    code, out, error = against(lambda head: answer, "list")
    assert code == 5 and out == b"", (code, error)


@pytest.mark.parametrize("status", ["400 No", "404 No", "500 No"])
def test_a_refusal_without_end_is_given_up(against, status):
    endless = itertools.repeat(b"x" * 60001)
    code, _, error = against(lambda head: itertools.chain([f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n".encode()], endless), "list")
    assert code != 0 and status[:3].encode() in error, (code, error)


def watched(path_answers):
    """Of `watch`: a stream that tells of one file again and again, and an answer for each part of a path."""
    def answer(head):
        if b"/files/watch" in head:
            change = b'{"event":"changed","data":{"path":"f","kind":"file"}}\n'
            return stream(b'{"event":"started","data":{}}\n', (time.sleep(0.3) or change for _ in range(PATIENCE * 3)))
        return next((answer for part, answer in path_answers.items() if part in head), http(b"{}"))
    return answer


def count(pieces, counted):
    for piece in pieces:
        yield piece
        counted.append(len(piece))


def test_a_file_that_is_longer_than_was_said_is_given_up(against, tmp_path):
    """The server's word for its size is not what --limit goes by: it may grow while it is read."""
    counted = []
    told = http(json.dumps({"kind": "file", "mode": "0644", "path": "/f", "sizeBytes": 5, "etag": "x"}).encode())

    def answer(head):
        endless = count(itertools.repeat(b"x" * (1 << 20), 256), counted)
        return watched({b"/archive?": http(bytes(1024), type="application/x-tar"), b"/stat?": told, b"/files?": stream(endless, type="application/octet-stream")})(head)
    (tmp_path / "tree").mkdir()
    code, _, error = against(answer, "watch", "tree", "box", "--limit", "1Mi")
    assert code == 7 and b"--limit" in error, (code, error)
    assert sum(counted) < 64 << 20


def test_directories_without_end_are_given_up(against):
    counted = []

    def headers():
        for number in itertools.count():
            yield entry(f"d{number}/" + "s/" * 40, tarfile.DIRTYPE).tobuf()
    code, _, error = against(lambda head: watched({b"/archive?": stream(count(headers(), counted), type="application/x-tar")})(head), "watch", ".", "box")
    assert code == 7 and b"files" in error, (code, error)
    assert len(counted) < 100000


def test_names_without_end_are_given_up(against):
    """By the archive, whose directories are few, and one by one."""
    deep = "/".join(["d" * 250] * 15)
    archive = (tarfile.TarInfo(f"{deep}/{number}").tobuf(tarfile.GNU_FORMAT) for number in range(99000))
    code, _, error = against(lambda head: watched({b"/archive?": stream(archive, bytes(1024), type="application/x-tar")})(head), "watch", ".", "box")
    assert code == 7 and b"names" in error, (code, error)


def test_one_name_without_end_costs_no_memory(against):
    def answer(head):
        if b"/files/watch" not in head:
            return http(bytes(1024), type="application/x-tar") if b"/archive?" in head else http(b"{}")
        record = b'{"event":"changed","data":{"kind":"file","path":"%d' + b"x" * (1 << 20) + b'"}}\n'
        return stream(b'{"event":"started","data":{}}\n', (record % number for number in range(400)))
    code, _, error = against(answer, "watch", ".", "box", after=lambda process: time.sleep(5) or process.send_signal(signal.SIGINT))
    assert code == 0, (code, error)


# ---- what is cut off, and what is there already ----

def stat_then(answer, kind):
    told = http(json.dumps({"kind": kind, "mode": "0755", "path": "/x", "sizeBytes": 5}).encode())
    return lambda head: told if b"/stat?" in head else answer


def test_a_file_that_is_cut_off_replaces_none(against, tmp_path):
    (tmp_path / "f").write_text("mine")
    for words in (["fs", "cp", "box:/x", "f"], ["fs", "download", "box", "f"], ["snapshot", "export", "snp", "f"]):
        code, _, error = against(stat_then(http(b"half", type="application/octet-stream", length=1 << 40), "file"), *words)
        assert code == 5 and (tmp_path / "f").read_text() == "mine", (words, error)
    assert sorted(path.name for path in tmp_path.iterdir() if "burrow" in path.name) == []


def test_a_tree_that_is_cut_off_replaces_no_file_by_a_part(against, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "old").write_text("mine")
    (tree / "whole").write_text("mine too")
    archive = tar_of(entry("whole", size=3), entry("old", size=100000))[:3 * 512 + 4096]
    code, _, error = against(stat_then(http(archive, type="application/x-tar", length=1 << 30), "directory"), "fs", "cp", "-r", "box:/x/.", tree)
    assert code != 0 and {path.name: path.read_text() for path in tree.iterdir()} == {"old": "mine", "whole": "xxx"}, error
    archive = tar_of(entry("new", size=100000))[:512 + 4096]
    code, _, _ = against(stat_then(http(archive, type="application/x-tar", length=1 << 30), "directory"), "fs", "cp", "-r", "box:/x/.", tree)
    assert code != 0 and sorted(path.name for path in tree.iterdir()) == ["old", "whole"]


def test_links_lead_nowhere_else_by_way_of_each_other(against, tmp_path):
    """Whatever the links mean together, all that is left leads below the directory."""
    tree = tmp_path / "tree"
    archive = tar_of(entry("good", size=3), entry("a/here", tarfile.SYMTYPE, "."), entry("out", tarfile.SYMTYPE, "a/here/../.."), entry("later", tarfile.SYMTYPE, "b/c/../.."),
                     entry("b/c", tarfile.SYMTYPE, "."), entry("p/q/up", tarfile.SYMTYPE, "../../good"), entry("deep", tarfile.LNKTYPE, "p/q/up"), entry("second", tarfile.LNKTYPE, "good"))
    code, _, error = against(stat_then(http(archive, type="application/x-tar"), "directory"), "fs", "cp", "-r", "box:/x/.", tree)
    assert code == 0 and b"3 entries were left out" in error, (code, error)
    paths = {str(path.relative_to(tree)): path for path in tree.rglob("*")}
    assert sorted(paths) == ["a", "a/here", "b", "b/c", "good", "p", "p/q", "p/q/up", "second"]
    assert all(path.resolve().is_relative_to(tree) for path in paths.values())


def listing_of(*items):
    return http(json.dumps({"items": list(items)}).encode())


def too_large_then(list_of, file=b"xxx"):
    """A server whose directories are too large for archives: it is asked for a list of each, and for each file."""
    def answer(head):
        path = head.split(b"path=")[-1].split(b" ")[0].split(b"&")[0].decode()
        if b"/stat?" in head:
            return http(json.dumps({"kind": "directory", "mode": "0755", "path": "/x"}).encode())
        if b"/files/archive?" in head:
            return http(json.dumps({"code": "too_large", "detail": "too large"}).encode(), status="413 Content Too Large", type="application/problem+json")
        return list_of(path) if b"/files/list?" in head else http(file, type="application/octet-stream")
    return answer


def test_a_listing_writes_nowhere_else(against, tmp_path):
    tree = tmp_path / "tree"
    names = ["../out", "/abs", "a/b", ".", "..", "", "a" * 300, "good"]
    items = [{"path": name, "kind": kind, "mode": "0644", "target": "t", "sizeBytes": 3} for name in names for kind in ("file", "directory", "link", "odd")]
    items += [{"path": "up", "kind": "link", "target": ".."}, {"path": "abs", "kind": "link", "target": "/etc/passwd"}, {"path": "set", "kind": "file", "mode": "6755"}]
    code, out, error = against(too_large_then(lambda path: listing_of(*items) if path.endswith("x/.") else listing_of()), "fs", "cp", "-r", "box:/x/.", tree)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["err", "out", "tree"], (out, error)
    assert code != 0 and sorted(path.name for path in tree.iterdir()) == ["good", "set"]  # which cannot be file and directory, and directories come last
    items = [item for item in items if item["path"] != "good" or item["kind"] == "file"]
    code, out, error = against(too_large_then(lambda path: listing_of(*items)), "fs", "cp", "-r", "box:/x/.", tree)
    assert code == 0 and sorted(path.name for path in tree.iterdir()) == ["good", "set"] and (tree / "set").stat().st_mode & 0o7777 == 0o755, error
    assert b"entries were left out" in error


def test_directories_in_each_other_without_end_are_left(against, tmp_path):
    inner = listing_of({"path": "d", "kind": "directory", "mode": "0755"})
    code, _, error = against(too_large_then(lambda path: inner), "fs", "cp", "-r", "box:/x/.", tmp_path / "tree")
    assert code != 0 and b"deep" in error, error


def test_lists_of_directories_in_each_other_are_not_held_together(against, tmp_path):
    page = http(json.dumps({"fill": "x" * (16 << 20), "items": [{"path": "d", "kind": "directory", "mode": "0755"}]}).encode())
    code, _, error = against(too_large_then(lambda path: page if path.count("d") < 30 else listing_of()), "fs", "cp", "-r", "box:/x/.", tmp_path / "tree")
    assert code == 0, error  # in the memory of a few
    assert sum(path.is_dir() for path in (tmp_path / "tree").rglob("*")) == 30


@pytest.mark.parametrize("size", [{}, {"sizeBytes": 0}, {"sizeBytes": -1}, {"sizeBytes": "x"}, {"sizeBytes": None}])
def test_a_file_whose_size_is_not_told_replaces_none(against, tmp_path, size):
    refusal = http(json.dumps({"code": "too_large", "detail": "too large"}).encode(), status="413 Content Too Large", type="application/problem+json")
    (tmp_path / "mine").write_text("mine")

    def answer(head):
        if b"/system/limits" in head:
            return http(b"{}")
        return http(json.dumps({"kind": "file", "mode": "0644", "path": "/x", **size}).encode()) if b"/stat?" in head else refusal
    code, _, error = against(answer, "fs", "cp", "box:/x", tmp_path / "mine")
    assert code != 0 and (tmp_path / "mine").read_text() == "mine", error
    (tmp_path / "empty").write_text("")
    code, _, error = against(answer, "fs", "cp", tmp_path / "empty", "box:/x/y")
    assert code != 0, error


def problem(status, code):
    return http(json.dumps({"code": code, "detail": "refused"}).encode(), status=status, type="application/problem+json")


def test_what_may_not_be_read_is_left_out_and_counted(against, tmp_path):
    names = [{"path": "shut", "kind": "directory", "mode": "0755"}, {"path": "shut too", "kind": "file", "mode": "0644"}, {"path": "good", "kind": "file", "mode": "0644"}]
    plain = too_large_then(lambda path: listing_of(*names))

    def answer(code):
        return lambda head: problem("403 Forbidden", code) if b"shut" in head.split(b"\r\n")[0] else plain(head)
    code, _, error = against(answer("forbidden"), "fs", "cp", "-r", "box:/x/.", tmp_path / "tree")
    assert code == 0 and (tmp_path / "tree/good").read_text() == "xxx" and not (tmp_path / "tree/shut too").exists(), error
    assert b"2 entries were left out" in error
    code, _, error = against(answer("missing_scope"), "fs", "cp", "-r", "box:/x/.", tmp_path / "other")  # which is about all of it
    assert code == 4, error


def test_what_became_something_else_is_left_out_and_counted(against, tmp_path):
    names = [{"path": name, "kind": "file", "mode": "0644"} for name in ("first", "other", "last")]
    plain = too_large_then(lambda path: listing_of(*names))

    def answer(*broken):
        return lambda head: problem("409 Conflict", "conflict") if any(part in head.split(b"\r\n")[0] for part in broken) else plain(head)
    code, _, error = against(answer(b"/files?path=/x/./other"), "fs", "cp", "-r", "box:/x/.", tmp_path / "tree")
    assert code == 0 and sorted(path.name for path in (tmp_path / "tree").iterdir()) == ["first", "last"] and b"1 entry was left out" in error, error
    code, _, error = against(answer(b"/files?path=/x/./other", b"stat?follow=false"), "fs", "cp", "-r", "box:/x/.", tmp_path / "paused")  # nothing is told any more
    assert code == 6, error


@pytest.mark.parametrize("code, sent", [("disk_full", 1), ("too_large", 2)])
def test_a_file_for_a_full_disk_is_sent_once(against, tmp_path, code, sent):
    (tmp_path / "file").write_text("x")
    puts = []

    def answer(head):
        if head.startswith(b"PUT "):
            puts.append(head)
            return problem("413 Content Too Large", code)
        return http(b"{}") if b"/system/limits" in head else http(b"{}", status="404 Not Found")
    exit_code, _, error = against(answer, "fs", "cp", tmp_path / "file", "box:/x/y")
    assert exit_code == 7 and len(puts) == sent, (error, puts)


@pytest.mark.parametrize("status, is_sent", [("503 Service Unavailable", False), ("429 Too Many Requests", False), ("403 Forbidden", True), ("404 Not Found", True)])
def test_a_limit_that_is_not_told_at_the_moment_is_not_guessed(against, tmp_path, status, is_sent):
    (tmp_path / "tree").mkdir()
    puts = []

    def answer(head):
        if head.startswith(b"PUT "):
            puts.append(head)
        return problem(status, "x") if b"/system/limits" in head else problem("404 Not Found", "not_found") if b"/stat?" in head else http(b"{}")
    code, _, error = against(answer, "fs", "cp", "-r", tmp_path / "tree", "box:/x")
    assert (code == 0) == is_sent == bool(puts), (code, error)


def test_a_pipe_that_pauses_keeps_no_request_waiting(tmp_path):
    """A server gives up a body of which nothing comes for long, and what has come out of a pipe cannot be read again."""
    sizes = []

    def answer(head):
        if head.startswith((b"PUT ", b"POST ")) and b"/move" not in head:
            sizes.append(int(re.search(rb"content-length: (\d+)", head.lower())[1]))
            return http(json.dumps({"sizeBytes": sum(sizes)}).encode())
        return http(b"{}") if b"/system/limits" in head or b"/move" in head else http(b"{}", status="404 Not Found")
    hostile = Hostile(answer)
    sending = subprocess.Popen([BURROW, "fs", "cp", "-", "box:/x/y"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env=plain_environment(tmp_path, BURROW_URL=hostile.url))
    sending.stdin.write(bytes(9 << 20))
    sending.stdin.flush()
    until(lambda: sum(sizes) >= 8 << 20, "all but a rest to be there")
    _, error = sending.communicate(b"x")
    hostile.socket.close()
    assert sending.returncode == 0 and sum(sizes) == (9 << 20) + 1, (error, sizes)


@pytest.mark.parametrize("slow", ["hangs", "drips"])
def test_ctrl_c_ends_an_upload_whose_cleaning_up_does_not_end(against, tmp_path, slow):
    (tmp_path / "large").write_bytes(b"x" * 500)
    is_appending = threading.Event()

    def wait(first):
        yield first
        while True:
            time.sleep(0.5)
            yield b"x" if slow == "drips" else b""

    def answer(head):
        if b"/system/limits" in head:
            return http(b'{"fileBytes": 100}')
        if b"/stat?" in head:
            return http(b"{}", status="404 Not Found")
        if head.startswith(b"PUT "):
            sizes = int(next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")).split(b":")[1])
            return http(json.dumps({"sizeBytes": sizes}).encode()) if sizes <= 100 else http(b"{}", status="413 Content Too Large")
        if b"/append?" in head:
            is_appending.set()
        return wait(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" if slow == "drips" else b"")

    def interrupt(process):
        assert is_appending.wait(PATIENCE)
        process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    code, _, error = against(answer, "fs", "cp", tmp_path / "large", "box:/x/y", after=interrupt)
    assert code == 130 and time.monotonic() - begun < PATIENCE / 2, error


def test_parts_of_a_file_are_what_was_asked_for(against, tmp_path):
    """Whatever the server gives for a part: more, less, all of it, or something else, none of it is taken for the file."""
    refusal = http(json.dumps({"code": "too_large", "detail": "too large"}).encode(), status="413 Content Too Large", type="application/problem+json")

    def answer(part, etag='"1"'):
        def of(head):
            if b"/system/limits" in head:
                return http(b'{"fileBytes": 100}')
            if b"/stat?" in head:
                return http(json.dumps({"kind": "file", "mode": "0644", "path": "/x", "sizeBytes": 250, "etag": etag}).encode())
            asked = next((line for line in head.decode().split("\r\n") if line.startswith("Range: bytes=")), None)
            if not asked:
                return refusal
            assert "\r\nEvil" not in head.decode()
            first, last = map(int, asked.split("=")[1].split("-"))
            return http(part(first, last), status="206 Partial Content", type="application/octet-stream")
        return of
    right = bytes(range(250))
    code, out, _ = against(answer(lambda first, last: right[first:last + 1]), "fs", "cp", "box:/x", "-")
    assert code == 0 and out == right
    for wrong in (lambda first, last: right[first:last + 2], lambda first, last: right[first:last], lambda first, last: right, lambda first, last: b""):
        code, _, error = against(answer(wrong), "fs", "cp", "box:/x", tmp_path / "file")
        assert code != 0 and not (tmp_path / "file").exists() and not list(tmp_path.glob("file.*")), error
    code, _, _ = against(answer(lambda first, last: right[first:last + 1], etag='"1"\r\nEvil: 1'), "fs", "cp", "box:/x", tmp_path / "file")
    assert code == 0


def test_a_file_that_may_not_become_so_large_is_told_and_gone(tmp_path):
    archive = tar_of(entry("new", size=300000), entry("old", size=300000))
    hostile = Hostile(stat_then(http(archive, type="application/x-tar"), "directory"))
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "old").write_text("mine")
    done = subprocess.run(["prlimit", "--fsize=100000", BURROW, "fs", "cp", "-r", "box:/x/.", tree], capture_output=True, timeout=PATIENCE,
                          env=plain_environment(tmp_path, BURROW_URL=hostile.url))
    hostile.socket.close()
    assert done.returncode == 1 and b"File too large" in done.stderr and {path.name: path.read_text() for path in tree.iterdir()} == {"old": "mine"}


# ---- words that programs on this machine get ----

@pytest.mark.parametrize("id", ["x\n    ProxyCommand touch {owned}", "-oKnownHostsCommand=/usr/bin/touch {owned}", "", "x y"])
@pytest.mark.parametrize("line", ["ssh-config box", "ssh box true", "ssh --show box true"])
def test_no_id_is_an_option_of_ssh_or_a_line_of_its_configuration(against, tmp_path, line, id):
    body = json.dumps({"id": id.format(owned=tmp_path / "owned"), "hostKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]}).encode()
    code, out, error = against(lambda head: http(body), *line.split())
    assert code in (5, 125) and out == b"" and b"did not tell the sandbox's id" in error, (code, out, error)
    assert not (tmp_path / "owned").exists()


def test_a_server_gets_no_key_of_another(tmp_path):
    heads = []
    servers = [Hostile(lambda head: heads.append(head) or http(b'{"items":[]}')) for _ in range(2)]
    environment = plain_environment(tmp_path, BURROW_URL=servers[0].url, BURROW_API_KEY="of-the-first-0123456789")

    def asked_with_key(*words, **more):
        heads.clear()
        subprocess.run([BURROW, *words], check=True, capture_output=True, timeout=PATIENCE, env={**environment, **more})
        assert len(heads) == 1
        return b"of-the-first" in heads[0]
    subprocess.run([BURROW, "context", "add", "other", servers[1].url], check=True, capture_output=True, env={**environment, "BURROW_API_KEY": ""})
    assert asked_with_key("list") and asked_with_key("list", "--url", servers[0].url)
    assert not asked_with_key("list", "--url", servers[1].url) and not asked_with_key("list", "--context", "other")
    assert asked_with_key("list", "--url", servers[1].url, BURROW_URL="")  # named with no other in sight, it is for that one
    for server in servers:
        server.socket.close()


# ---- Ctrl-C ----

@pytest.mark.parametrize("words", [["fs", "cp", "box:/x", "-"], ["fs", "download", "box", "file"], ["logs", "exe_x", "-f"], ["exec", "box", "true"], ["exec", "--json", "box", "true"],
                                   ["run", "--", "true"], ["code", "box", "1"], ["watch", ".", "box"], ["try", "--discard", "--", "true"]])
def test_ctrl_c_ends_what_comes_without_a_pause(against, words):
    is_begun = threading.Event()

    def pieces():
        record = b'{"event":"x","data":{}}\n' * 4000
        yield b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n"
        for number in itertools.count():
            if number == 50:
                is_begun.set()
            yield record

    def interrupt(process):
        assert is_begun.wait(PATIENCE)
        process.send_signal(signal.SIGINT)
    code, _, error = against(stat_then_or(pieces, is_watched=words[0] == "watch"), *words, after=interrupt)
    assert code == (0 if words[0] == "watch" else 130), (code, error)


def stat_then_or(pieces, is_watched):
    """Where both directories are brought in step, as a watch does after two seconds without a calm moment, the sandbox's is empty."""
    told = http(json.dumps({"kind": "file", "mode": "0644", "path": "/x", "sizeBytes": 1 << 50, "id": "sbx_x"}).encode())
    small = (b"/stat?", b"/mkdir", b"POST /api/v1/sandboxes ", b"PUT ", b"DELETE ")
    empty = http(tar_of(), type="application/x-tar")
    return lambda head: told if any(part in head for part in small) else empty if is_watched and b"/files/archive?" in head else pieces()


@pytest.mark.parametrize("flood", [b"\x82\x05\x01spam", b"\x82\x05\x09spam", b"\x8a\x00"], ids=["output", "unknown", "pongs"])
def test_a_terminal_is_left_whatever_comes(tmp_path, flood):
    """The keys that leave are heard while the other side writes without a pause."""
    def answer(head):
        if b"/attach" in head:
            return itertools.chain([b"HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"], itertools.repeat(flood * 4000))
        return http(b'{"id":"exe_x"}')
    hostile = Hostile(answer)
    ours, theirs = os.openpty()
    process = subprocess.Popen([BURROW, "attach", "box"], stdin=theirs, stdout=theirs, stderr=theirs, env=plain_environment(tmp_path, BURROW_URL=hostile.url))
    try:
        assert os.read(ours, 1)  # it has begun
        reader = threading.Thread(target=drain, args=(ours,), daemon=True)
        reader.start()
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None:  # what is typed before the terminal is raw does not count
            assert time.monotonic() < deadline
            os.write(ours, b"\x10\x11")
            time.sleep(0.2)
    finally:
        process.kill()
        process.wait()
        os.close(theirs)
        hostile.socket.close()
    assert process.returncode == 0


def drain(fd):
    try:
        while os.read(fd, 65536):
            pass
    except OSError:
        pass
