# SPDX-License-Identifier: Apache-2.0
"""Files in a sandbox: written, read, listed, made and removed, always inside it."""
import re
import time

import pytest
from client import base64_of, check_error, files_json, nulls, query, together, until, waiting_for


def mkdir(api, sandbox, path, recursive=False):
    return api.post(f"/fs/mkdir/{sandbox.id}", {"path": path, "recursive": recursive})


def rm(api, sandbox, path):
    return api.post(f"/fs/rm/{sandbox.id}", {"path": path})


def rmdir(api, sandbox, path, recursive=False):
    return api.post(f"/fs/rmdir/{sandbox.id}", {"path": path, "recursive": recursive})


def listing(api, sandbox, path=None):
    return api.get(f"/fs/list/{sandbox.id}" + (f"?{query(path=path)}" if path is not None else ""))


# ---- write and read ----

def test_files_are_written_with_their_parents_and_replaced(sandbox, api):
    wrote = sandbox.write_all({"a": "1", "deep/er/b": "22", "/workspace/c": "333", "/new/root/d": "4"})
    assert wrote.get("data", wrote)["filesWritten"] == 4
    assert sandbox.output("cat a deep/er/b /workspace/c /new/root/d") == "12233" + "34"
    sandbox.write_all({"a": "longer than before"})
    sandbox.write_all({"a": "s"})
    assert sandbox.read("a").body == b"s"


def test_no_files_are_none_written(sandbox):
    wrote = sandbox.write_all({})
    assert wrote.get("data", wrote)["filesWritten"] == 0


@pytest.mark.parametrize("name", ["plain", "with space", "ünïcödé", "new\nline", "-dash", "--help", "quote'\"", "$HOME", "*",
                                  "back\\slash", "a/./b", "a//b", "%41", "+plus", "x" * 255, "emoji😀"])
def test_every_name_is_a_name(sandbox, name):
    sandbox.write_all({name: b"content"})
    assert sandbox.read(name).body == b"content"
    assert sandbox.run("cat", "--", name).stdout == b"content"


def test_bytes_stay_as_they_are(sandbox):
    body = bytes(range(256)) * 1000
    sandbox.write_all({"bytes": body, "empty": b""})
    assert sandbox.read("bytes").body == body
    answer = sandbox.read("empty")
    assert (answer.status, answer.body) == (200, b"")
    assert sandbox.output("wc -c <bytes").strip() == "256000"


def test_thirty_megabytes_in_one_request(sandbox):
    body = bytes(range(256)) * (30 << 12)
    sandbox.write_all({"big": body})
    assert sandbox.read("big").body == body


def test_a_thousand_files_in_one_request(sandbox):
    wrote = sandbox.write_all({f"many/{n % 10}/{n}": str(n) for n in range(1000)})
    assert wrote.get("data", wrote)["filesWritten"] == 1000
    assert sandbox.output("find many -type f | wc -l; cat many/7/997") == "1000\n997"


def test_files_belong_to_the_user_of_the_sandbox(sandbox):
    sandbox.write_all({"mine/x": "1"})
    assert sandbox.output("[ -O mine/x ] && [ -O mine ] && echo more >>mine/x && rm -r mine && echo yes") == "yes\n"


def test_what_a_command_wrote_can_be_read(sandbox):
    sandbox.sh("mkdir out; printf made >out/x; printf tmp >/tmp/t")
    assert sandbox.read("out/x").body == b"made"
    assert sandbox.read("/home/agentuity/out/x").body == b"made"
    assert sandbox.read("./out/../out/x").body == b"made"
    assert sandbox.read("/tmp/t").body == b"tmp"


def test_files_of_the_runtime_can_be_read_and_changed_for_oneself(sandbox, shared):
    assert b"bookworm" in sandbox.read("/etc/os-release").body
    sandbox.sh("echo mine >>/etc/os-release")
    assert sandbox.read("/etc/os-release").body.endswith(b"mine\n")
    assert not shared.read("/etc/os-release").body.endswith(b"mine\n")


def test_file_calls_work_while_a_command_runs(sandbox, api):
    started = sandbox.execute("sh", "-c", f"echo before >seen; {waiting_for()}; cat sent")
    until(lambda: sandbox.read("seen").body == b"before\n", "the command to write")
    sandbox.write_all({"sent": "from outside"})
    assert {entry["path"] for entry in sandbox.list()} >= {"seen", "sent"}
    assert mkdir(api, sandbox, "d").status == 200
    sandbox.release()
    api.wait_execution(started["executionId"])
    assert api.read(started["stdoutStreamUrl"]) == b"from outside"


def test_a_missing_file_is_not_found_and_a_directory_is_no_file(sandbox, api):
    check_error(sandbox.read("nowhere"), 404, "FILE_NOT_FOUND", "nowhere")
    check_error(sandbox.read("nowhere/at/all"), 404, "FILE_NOT_FOUND")
    check_error(sandbox.read("/home"), 400, "INVALID_ARGUMENT")
    check_error(sandbox.read("."), 400, "INVALID_ARGUMENT")


def test_writing_over_a_directory_or_through_a_file_is_refused(sandbox, api):
    sandbox.sh("mkdir d; echo x >f")
    for path in ("d", "f/below", "d/"):
        answer = api.post(f"/fs/{sandbox.id}", {"files": files_json({path: "x"})})
        assert answer.status == 400, f"{path}: {answer}"


# ---- links and special files ----

def test_links_lead_to_places_in_the_sandbox(sandbox, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    sandbox.sh(f"ln -s {secret} out; ln -s /../../../../../etc/hostname up; ln -s /etc/os-release os; ln -s here itself; "
               "echo text >here; ln -s loop1 loop2; ln -s loop2 loop1")
    check_error(sandbox.read("out"), 404, "FILE_NOT_FOUND")
    assert b"bookworm" in sandbox.read("os").body
    assert sandbox.read("itself").body == b"text\n"
    answer = sandbox.read("loop1")
    assert 400 <= answer.status < 500
    sandbox.sh(f"mkdir -p {tmp_path}; echo inside >{secret}")
    assert sandbox.read("out").body == b"inside\n"
    assert secret.read_text() == "of the host"


def test_writing_through_a_link_stays_in_the_sandbox(sandbox, api, tmp_path):
    sandbox.sh(f"ln -s {tmp_path} door; ln -s ../../../../../../..{tmp_path} up")
    for path in (f"{tmp_path}/x", "door/x", "up/x", f"/proc/self/root{tmp_path}/x", "/proc/1/root/tmp/x"):
        api.post(f"/fs/{sandbox.id}", {"files": files_json({path: "escaped"})})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["../../../../../../../../etc/os-release", "/../../../etc/os-release", "../agentuity/../../etc/os-release"])
def test_dots_end_at_the_root_of_the_sandbox(sandbox, path):
    answer = sandbox.read(path)
    assert answer.status == 200 and b"bookworm" in answer.body, str(answer)


@pytest.mark.parametrize("make, path", [
    ("mkfifo pipe", "pipe"), ("true", "/dev/zero"), ("true", "/dev/full"), ("true", "/dev/tty"), ("true", "/proc/kmsg"),
    ("true", "/proc/1/mem"), ("true", "/proc/1/environ"), ("truncate -s 1E sparse || truncate -s 8T sparse", "sparse"),
    ("python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"", "sock"),
])
def test_special_and_endless_files_are_refused_in_time(sandbox, make, path):
    sandbox.sh(make)
    answer = sandbox.read(path)
    assert 400 <= answer.status < 500, str(answer)
    assert sandbox.run("true").exit_code == 0


def test_a_directory_exchanged_with_a_link_leads_nowhere(sandbox, api, tmp_path):
    """All verbs while a command swaps a directory and a link to a place that exists on the host only."""
    canary = tmp_path / "canary"
    canary.write_text("untouched")
    sandbox.write_all({"swap.py": "import ctypes, os\n"
                       "libc = ctypes.CDLL(None, use_errno=True)\n"
                       f"os.mkdir('d'); os.symlink({str(tmp_path)!r}, 'l')\n"
                       "print('on', flush=True)\n"
                       "while not os.path.exists('go'):\n"
                       "    libc.renameat2(-100, b'd', -100, b'l', 2)\n"})
    job = sandbox.job("python3", "swap.py")
    api.follow(job["stdoutStreamUrl"]).wait_for(b"on\n")
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        assert b"untouched" not in sandbox.read("d/canary").body
        api.post(f"/fs/{sandbox.id}", {"files": files_json({"d/canary": "changed", "d/new": "x"})})
        assert b"untouched" not in listing(api, sandbox, "d").body
        mkdir(api, sandbox, "d/dir")
        rm(api, sandbox, "d/canary")
        rmdir(api, sandbox, "d/dir", True)
        assert b"untouched" not in api.get(f"/fs/download/{sandbox.id}?path=d").body
    sandbox.release()
    assert [entry.name for entry in tmp_path.iterdir()] == ["canary"] and canary.read_text() == "untouched"


# ---- list ----

def test_one_level_is_listed_with_everything_about_it(sandbox, api):
    sandbox.sh("mkdir -p top/sub/below; printf 12345 >top/file; chmod 640 top/file; chmod 750 top/sub; ln -s file top/link; "
               "touch -d 2024-05-06T07:08:09Z top/file; printf x >top/.hidden")
    files = {entry["path"]: entry for entry in sandbox.list("top")}
    assert set(files) == {"sub", "file", "link", ".hidden"}
    assert (files["file"]["size"], files["file"]["isDir"], files["file"]["mode"]) == (5, False, "0640")
    assert files["file"]["modTime"].startswith("2024-05-06T07:08:09")
    assert (files["sub"]["isDir"], files["sub"]["mode"]) == (True, "0750")
    assert files["link"]["isSymlink"] is True and files["link"]["linkTarget"] == "file"
    assert not files["file"].get("isSymlink") and "linkTarget" not in files["file"]
    assert not nulls(files)
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", entry["modTime"]) for entry in files.values())


def test_the_working_directory_is_listed_by_default(sandbox):
    sandbox.write_all({"here": "x"})
    assert "here" in {entry["path"] for entry in sandbox.list()}
    assert sandbox.list() == sandbox.list(".") == sandbox.list("/home/agentuity") == sandbox.list("")


def test_the_root_and_an_empty_directory_can_be_listed(sandbox, api):
    assert {"etc", "usr", "home", "tmp"} <= {entry["path"] for entry in sandbox.list("/")}
    mkdir(api, sandbox, "empty")
    assert sandbox.list("empty") == []


def test_what_cannot_be_listed_is_refused(sandbox, api):
    check_error(listing(api, sandbox, "nowhere"), 404, "FILE_NOT_FOUND")
    sandbox.write_all({"file": "x"})
    answer = listing(api, sandbox, "file")
    check_error(answer, 400, "INVALID_ARGUMENT")


def test_five_thousand_entries_are_listed(sandbox):
    sandbox.sh("mkdir many; cd many; seq 1 5000 | xargs touch")
    assert len(sandbox.list("many")) == 5000


# ---- directories ----

def test_directories_are_made(sandbox, api):
    assert mkdir(api, sandbox, "d").json == {"success": True}
    check_error(mkdir(api, sandbox, "d"), 400, "INVALID_ARGUMENT")
    check_error(mkdir(api, sandbox, "no/parent"), 400, "INVALID_ARGUMENT")
    assert mkdir(api, sandbox, "with/all/parents", True).json == {"success": True}
    assert mkdir(api, sandbox, "with/all/parents", True).json == {"success": True}
    sandbox.write_all({"f": "x"})
    check_error(mkdir(api, sandbox, "f", True), 400, "INVALID_ARGUMENT")
    check_error(mkdir(api, sandbox, "f/below", True), 400, "INVALID_ARGUMENT")
    assert sandbox.output("find d with -type d | sort") == "d\nwith\nwith/all\nwith/all/parents\n"


def test_recursive_may_be_left_out(sandbox, api):
    assert api.post(f"/fs/mkdir/{sandbox.id}", {"path": "plain"}).json == {"success": True}
    assert api.post(f"/fs/rmdir/{sandbox.id}", {"path": "plain"}).json["found"] is True


def test_files_are_removed(sandbox, api):
    sandbox.sh("echo x >f; mkdir d; ln -s f l; ln -s d ld")
    assert rm(api, sandbox, "l").json == {"success": True, "found": True}
    assert sandbox.read("f").body == b"x\n"
    assert rm(api, sandbox, "f").json == {"success": True, "found": True}
    assert rm(api, sandbox, "f").json == {"success": True, "found": False}
    assert rm(api, sandbox, "no/such/place").json == {"success": True, "found": False}
    check_error(rm(api, sandbox, "d"), 400, "INVALID_ARGUMENT")
    assert rm(api, sandbox, "ld").json["found"] is True
    assert sandbox.output("ls") == "d\n"


def test_directories_are_removed(sandbox, api):
    sandbox.sh("mkdir -p empty full/deep; echo x >full/deep/f; echo x >file; mkdir kept; ln -s ../kept full/link; echo x >kept/x")
    assert rmdir(api, sandbox, "empty").json == {"success": True, "found": True}
    assert rmdir(api, sandbox, "empty").json == {"success": True, "found": False}
    check_error(rmdir(api, sandbox, "full"), 400, "INVALID_ARGUMENT")
    assert rmdir(api, sandbox, "full", True).json == {"success": True, "found": True}
    assert rmdir(api, sandbox, "full", True).json == {"success": True, "found": False}
    check_error(rmdir(api, sandbox, "file"), 400, "INVALID_ARGUMENT")
    check_error(rmdir(api, sandbox, "file", True), 400, "INVALID_ARGUMENT")
    assert sandbox.output("cat kept/x") == "x\n"


def test_a_removed_root_is_only_the_sandboxes_own(sandbox, api, shared):
    rmdir(api, sandbox, "/usr", True)
    rmdir(api, sandbox, "/", True)
    assert shared.run("true").exit_code == 0


# ---- refusals ----

BAD_PATHS = ["", "nul\0byte", "x" * 5000, "/".join(["d" * 200] * 30), "y" * 256]


@pytest.mark.parametrize("path", BAD_PATHS, ids=["empty", "nul", "long", "deep", "long-name"])
def test_impossible_paths_are_refused_by_every_call(sandbox, api, path):
    answers = [api.post(f"/fs/{sandbox.id}", {"files": files_json({path: "x"})}), mkdir(api, sandbox, path),
               api.post("/sandbox", {"files": files_json({path: "x"})}),
               api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"], "files": files_json({path: "x"})})]
    for answer in answers:
        check_error(answer, 400, "INVALID_ARGUMENT")
    for answer in (sandbox.read(path), rm(api, sandbox, path), rmdir(api, sandbox, path)):
        assert answer.status in (400, 404) or answer.json.get("found") is False, str(answer)
    assert sandbox.status()["status"] == "idle"


@pytest.mark.parametrize("body, where", [
    ({}, "files"), ({"files": {}}, "files"), ({"files": [1]}, "files[0]"), ({"files": [{}]}, "files[0].path"),
    ({"files": [{"path": "x"}]}, "files[0].content"), ({"files": [{"path": "x", "content": 5}]}, "files[0].content"),
    ({"files": [{"path": "x", "content": "not base64!"}]}, "files[0].content"),
    ({"files": [{"path": "x", "content": "YQ"}]}, "files[0].content"),
    ({"files": [{"path": "x", "content": "YQ=="}, {"path": "x", "content": "Y==="}]}, "files[1].content"),
    ({"files": [{"path": ["x"], "content": ""}]}, "files[0].path"),
])
def test_bad_writes_are_refused_by_field_and_write_nothing(sandbox, api, body, where):
    check_error(api.post(f"/fs/{sandbox.id}", body), 400, "INVALID_ARGUMENT", where)
    assert sandbox.list() == []


@pytest.mark.parametrize("verb, body, where", [
    ("mkdir", {}, "path"), ("mkdir", {"path": 1}, "path"), ("mkdir", {"path": "x", "recursive": "yes"}, "recursive"),
    ("rm", {}, "path"), ("rm", {"path": None}, "path"), ("rmdir", {}, "path"), ("rmdir", {"path": "x", "recursive": 1}, "recursive"),
])
def test_bad_changes_are_refused_by_field(shared, api, verb, body, where):
    check_error(api.post(f"/fs/{verb}/{shared.id}", body), 400, "INVALID_ARGUMENT", where)


def test_a_read_needs_a_path(shared, api):
    check_error(api.get(f"/fs/{shared.id}"), 400, "INVALID_ARGUMENT", "path")


def test_files_of_unknown_sandboxes_are_not_found(api):
    for answer in (api.post("/fs/sbx_none", {"files": []}), api.get("/fs/sbx_none?path=x"), api.get("/fs/list/sbx_none"),
                   api.post("/fs/mkdir/sbx_none", {"path": "x"}), api.post("/fs/rm/sbx_none", {"path": "x"}),
                   api.post("/fs/rmdir/sbx_none", {"path": "x"}), api.get("/fs/download/sbx_none?path=."),
                   api.post("/fs/upload/sbx_none?path=.", body=b"x")):
        check_error(answer, 404, "SANDBOX_NOT_FOUND")


def test_a_full_disk_is_said(new, api):
    sandbox = new(resources={"disk": "16Mi"})
    answer = api.post(f"/fs/{sandbox.id}", {"files": [{"path": "big", "content": base64_of(b"x" * (24 << 20))}]})
    assert 400 <= answer.status < 500, str(answer)
    assert rm(api, sandbox, "big").status == 200
    sandbox.write_all({"small": "fits"})
    assert sandbox.read("small").body == b"fits"


def test_twenty_calls_at_once(sandbox, api):
    def work(n):
        sandbox.write_all({f"{n}/x": f"{n}"})
        return sandbox.read(f"{n}/x").body
    assert together(*[lambda n=n: work(n) for n in range(20)]) == [f"{n}".encode() for n in range(20)]
