# SPDX-License-Identifier: Apache-2.0
"""Attacks on snapshots, checkpoints, builds, imports and diffs by those who may use them, or hold a URL."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import tarfile
from urllib.parse import quote

import pytest
from archives import member, tar_of
from client import check_error, check_problem, query, together, until

UNKNOWN = "snp_" + "0" * 26
needs_zstd = pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not installed")


def take(api, made, sandbox, **fields):
    answer = api.post(f"/sandbox/{sandbox.id}/snapshot", fields)
    assert answer.status == 201, str(answer)
    made.append(answer.data["snapshotId"])
    return answer.data


def look(api, reference, **kwargs):
    return api.get(f"/sandbox/snapshots/{quote(reference, safe='')}", **kwargs)


def export(api, reference):
    return api.get(f"/api/v1/snapshots/{reference}/export")


def bring(api, body, **fields):
    return api.post(f"/api/v1/snapshots/import?{query(**fields)}", body=body, headers={"Content-Type": "application/zstd"})


def diff(sandbox, **fields):
    return sandbox.client.get(f"/api/v1/sandboxes/{sandbox.id}/diff?{query(**fields)}")


def checkpoint(sandbox, name):
    answer = sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": name})
    assert answer.status == 201, str(answer)
    return answer.data


def restore(sandbox, reference):
    return sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint/{reference}/restore")


def sum_line(name, data):
    """As sha256sum(1) writes it."""
    plain = os.fsencode(name)
    escaped = plain.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    return (b"\\" if escaped != plain else b"") + hashlib.sha256(data).hexdigest().encode() + b"  " + escaped + b"\n"


def archive(about=None, files=(), sums=None, lines=()):
    """The archive of a snapshot, made by hand: members of files/ as member() gives them."""
    if about is None:
        about = "\n".join(["burrow-snapshot 1", "name: forged", "tag: latest", "runtime: base:latest", *lines, ""])
    about = about if isinstance(about, bytes) else about.encode()
    if sums is None:
        sums = sum_line("burrow-snapshot", about) + b"".join(sum_line(info.name, data) for info, data in files if info.isreg())
    plain = tar_of(member("burrow-snapshot", about), member("SHA256SUMS", sums), *files, compress=False)
    return subprocess.run(["zstd", "-q", "-c"], input=plain, stdout=subprocess.PIPE, check=True).stdout


# ---- files that have no end ----

@pytest.fixture
def endless(sandbox):
    """A sandbox with a file of exabytes that takes no room."""
    sandbox.output("echo small > small; truncate -s 4E endless || truncate -s 15T endless")
    return sandbox


def test_a_file_of_exabytes_is_listed_in_time(api, endless, made):
    id = take(api, made, endless, name="endless")["snapshotId"]
    found = {file["path"]: file for file in look(api, id).data["files"]}
    assert found["home/agentuity/small"]["sha256"] == hashlib.sha256(b"small\n").hexdigest()
    assert found["home/agentuity/endless"]["size"] > 1 << 40


@needs_zstd
def test_a_file_of_exabytes_is_not_exported_and_that_is_said(api, endless, made):
    id = take(api, made, endless, name="endless")["snapshotId"]
    check_problem(export(api, id), 413, "too_large", "snapshot")


def test_files_of_exabytes_are_compared_in_time(endless):
    checkpoint(endless, "before")
    endless.output("printf x | dd of=endless bs=1 seek=1000000000000 conv=notrunc 2>/dev/null; touch -d @1 small")
    found = diff(endless, **{"from": "before", "patch": 1}).data
    assert [entry["path"] for entry in found["items"]] == ["/home/agentuity/endless"]
    checkpoint(endless, "after")
    endless.output("touch endless")
    assert diff(endless, **{"from": "after"}).data["items"] == []


# ---- names that lie ----

def test_a_name_with_a_newline_forges_no_other_entry(api, sandbox, made):
    lie = "0" * 64 + " 755 5 etc-safe"
    sandbox.output(f"printf x > 'a\n{lie}'")
    id = take(api, made, sandbox, name="liar")["snapshotId"]
    first, second = look(api, id).data["files"], look(api, id).data["files"]
    assert first == second
    assert [file["path"] for file in first] == [f"home/agentuity/a\n{lie}"]


# ---- archives of snapshots ----

@needs_zstd
def test_a_list_of_sums_of_nothing_but_newlines_takes_no_memory(api, server):
    before = peak(server)
    check_problem(bring(api, archive(sums=b"\n" * (127 << 20))), 400, ("damaged", "refused"))
    check_problem(bring(api, archive("burrow-snapshot 1\nname: x\nruntime: base:latest\n" + "\n" * (3 << 20))), 400, ("damaged", "refused"))
    assert peak(server) - before < 600 << 20


def peak(server):
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


# ---- two of anything at once ----

ENDED = {"SANDBOX_TERMINATED", "SANDBOX_NOT_FOUND"}


def failed(answer, *codes):
    """It worked, or failed for one of these reasons; the client sees to it that it was none of ours."""
    assert answer.status < 300 or answer.json["code"] in codes, str(answer)
    return answer.status >= 300


def forget(sandbox, name):
    return sandbox.client.delete(f"/sandbox/{sandbox.id}/checkpoint/{name}")


def checkpoints(sandbox):
    return [entry["name"] for entry in sandbox.client.get(f"/sandbox/checkpoints/{sandbox.id}").data["checkpoints"]]


def layers(server):
    volume = next(path for path in (server.data / "volume" / "layers", server.data / "layers") if path.exists())
    return {path.name for path in volume.iterdir()}


def test_a_checkpoint_of_a_sandbox_that_goes_is_not_left_behind(api, server):
    before = layers(server) if (server.data / "volume" / "layers").exists() else set()
    for _ in range(15):
        sandbox = api.create()
        answer, gone = together(lambda: api.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "late"}), sandbox.delete)
        failed(answer, *ENDED)
        assert gone.status == 200, str(gone)
    until(lambda: layers(server) <= before, "the layers to go")


def test_a_snapshot_of_a_sandbox_that_goes_is_whole_or_none(api, new, made):
    for _ in range(10):
        sandbox = api.create()
        sandbox.write(a="kept")
        answer, gone = together(lambda: api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "late"}), sandbox.delete)
        assert gone.status == 200, str(gone)
        if not failed(answer, *ENDED):
            made.append(answer.data["snapshotId"])
            assert new(snapshot=made[-1]).read("a").body == b"kept"


def test_a_checkpoint_restored_while_it_is_removed(sandbox):
    for i in range(6):
        sandbox.write(a=f"{i}")
        checkpoint(sandbox, f"c{i}")
        sandbox.write(a="other")
        answer, gone = together(lambda: restore(sandbox, f"c{i}"), lambda: forget(sandbox, f"c{i}"))
        assert gone.status == 200, str(gone)
        has_failed = failed(answer, "CHECKPOINT_NOT_FOUND")
        assert sandbox.read("a").body == (b"other" if has_failed else b"%d" % i)


def test_restores_at_once_are_one_after_the_other_or_refused(sandbox):
    for name in ("one", "two"):
        sandbox.write(a=name)
        checkpoint(sandbox, name)
    for _ in range(5):
        answers = together(*(lambda name=name: restore(sandbox, name) for name in ("one", "two") * 2))
        assert not all([failed(answer, "INVALID_STATE") for answer in answers])
        assert sandbox.read("a").body in (b"one", b"two")
        assert sandbox.output("cat a") in ("one", "two")


def test_commands_beside_a_restore_end_or_come_after_it(sandbox):
    sandbox.write(a="then")
    checkpoint(sandbox, "then")
    for _ in range(8):
        sandbox.write(a="now")
        answer, *ran = together(lambda: restore(sandbox, "then"),
                                *(lambda: sandbox.client.post(f"/sandbox/{sandbox.id}/execute", {"command": ["cat", "a"]}) for _ in range(3)))
        failed(answer, "INVALID_STATE")
        for command in ran:
            if not failed(command, "INVALID_STATE", "SANDBOX_BUSY", *ENDED):
                sandbox.client.wait_execution(command.data["executionId"])
        if answer.status == 200:
            assert sandbox.read("a").body == b"then"
        assert sandbox.status()["status"] in ("idle", "running")
        assert sandbox.wait_status("idle")
    assert sandbox.output("cat a")


def test_pausing_and_resuming_beside_everything_else(sandbox, api, made):
    sandbox.write(a="x")
    checkpoint(sandbox, "c")
    for i in range(6):
        answers = together(lambda: api.post(f"/sandbox/{sandbox.id}/pause"), lambda: api.post(f"/sandbox/{sandbox.id}/resume"),
                           lambda: restore(sandbox, "c"), lambda: api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": f"s{i}"}),
                           lambda: api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"]}), lambda: diff(sandbox),
                           lambda: api.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": f"d{i}"}))
        for answer in answers:
            failed(answer, "INVALID_STATE", "SANDBOX_BUSY", "conflict", "busy")
        if answers[3].status == 201:
            made.append(answers[3].data["snapshotId"])
        failed(api.post(f"/sandbox/{sandbox.id}/resume"), "INVALID_STATE")
        if answers[4].status < 300:
            api.wait_execution(answers[4].data["executionId"])
        assert sandbox.wait_status("idle")
        assert sandbox.output("cat a") == "x"


def test_a_snapshot_deleted_while_it_is_started_from_listed_and_exported(api, sandbox, made):
    sandbox.output("head -c 3000000 /dev/urandom > big; echo kept > a")
    for _ in range(6):
        id = take(api, made, sandbox, name="goes")["snapshotId"]
        *answers, gone = together(lambda: api.post("/sandbox", {"snapshot": id}), lambda: look(api, id), lambda: export(api, id),
                                  lambda: api.patch(f"/sandbox/snapshots/{id}", {"tag": "x"}), lambda: api.delete(f"/sandbox/snapshots/{id}"))
        assert gone.status == 200, str(gone)
        for answer in answers:
            failed(answer, "SNAPSHOT_NOT_FOUND", "INVALID_STATE", "not_found")
        if answers[0].status < 300:
            started = api.sandbox(answers[0].data["sandboxId"])
            assert started.output("cat a") == "kept\n"
            started.delete()


def test_a_diff_of_a_checkpoint_that_goes(sandbox):
    for i in range(5):
        sandbox.write(a=f"{i}")
        checkpoint(sandbox, f"c{i}")
        sandbox.write(a=f"not {i}")
        answer, gone = together(lambda: diff(sandbox, **{"from": f"c{i}", "patch": 1}), lambda: forget(sandbox, f"c{i}"))
        assert gone.status == 200
        failed(answer, "not_found")


def test_nothing_of_a_deleted_snapshot_is_left(api, server, sandbox, made):
    id = take(api, made, sandbox, name="leaves")["snapshotId"]
    assert look(api, id).status == 200
    assert api.delete(f"/sandbox/snapshots/{id}").status == 200
    assert not [path for path in (server.data / "snapshots").iterdir() if id.removeprefix("snp_") in path.name]


def test_files_beside_a_restore_are_read_or_asked_for_again(sandbox):
    sandbox.write(a="then")
    checkpoint(sandbox, "then")
    for _ in range(6):
        answers = together(lambda: restore(sandbox, "then"), *(lambda: sandbox.read("a") for _ in range(4)))
        assert answers[0].status == 200, str(answers[0])
        for answer in answers[1:]:
            assert answer.status == 200 and answer.body == b"then" or answer.json["code"] == "INVALID_STATE", str(answer)


def test_jobs_beside_a_restore_end_or_come_after_it(sandbox, api):
    checkpoint(sandbox, "then")
    for _ in range(6):
        answer, *jobs = together(lambda: restore(sandbox, "then"),
                                 *(lambda: api.post(f"/sandbox/sandboxes/{sandbox.id}/jobs", {"command": ["sleep", "0.2"]}) for _ in range(3)))
        assert answer.status == 200, str(answer)
        for job in jobs:
            if not failed(job, "INVALID_STATE"):
                sandbox.wait_job(job.data["jobId"])


# ---- builds, and URLs that need no key ----

FINAL = {"sizeBytes": 0, "fileCount": 0, "files": []}


def begin(api, made, **fields):
    answer = api.post("/sandbox/snapshots/build", {"runtime": "base:latest", **fields})
    assert answer.status == 201, str(answer)
    made.append(answer.data["snapshotId"])
    return answer.data


def upload(api, begun, body, **kwargs):
    return api.put(begun["uploadUrl"], body, key=None, headers={"Content-Type": "application/gzip"}, **kwargs)


def finish(api, begun, **fields):
    return api.post(f"/sandbox/snapshots/{begun['snapshotId']}/finalize", {**FINAL, **fields})


def uploads(server, begun):
    folder = server.data / "builds"
    return [path for path in folder.iterdir() if begun["snapshotId"].removeprefix("snp_") in path.name] if folder.exists() else []


def test_the_secret_of_an_upload_is_not_logged_and_long(own_server):
    server = own_server(options=["--log-level", "debug"])
    made = []
    begun = begin(server.client, made)
    secret = begun["uploadUrl"].rpartition("/")[2]
    assert len(secret) >= 26 and secret not in begun["snapshotId"]
    assert upload(server.client, begun, tar_of(member("a", b"a"))).status == 200
    wrong = begun["uploadUrl"].replace(secret, "0" * len(secret))
    check_error(server.client.put(wrong, b"", key=None), 404, "SNAPSHOT_NOT_FOUND")
    assert finish(server.client, begun).status == 200
    assert "upload" in server.log and secret not in server.log
    assert secret not in look(server.client, begun["snapshotId"]).body.decode()
    server.end()


def test_the_url_of_one_build_is_of_no_use_for_another(api, made):
    one, two = begin(api, made, name="one"), begin(api, made, name="two")
    crossed = {"uploadUrl": one["uploadUrl"].replace(one["snapshotId"], two["snapshotId"])}
    check_error(upload(api, crossed, tar_of(member("a", b"a"))), 404, "SNAPSHOT_NOT_FOUND")
    check_error(finish(api, two), 409, "INVALID_STATE", "nothing has been uploaded")


def test_uploads_at_once_leave_one_whole_archive(api, server, new, made):
    for _ in range(3):
        begun = begin(api, made, name="many")
        archives = [tar_of(member("same", bytes([65 + i]) * 400_000)) for i in range(5)]
        for answer in together(*(lambda body=body: upload(api, begun, body) for body in archives)):
            assert answer.status == 200, str(answer)
        assert len(uploads(server, begun)) == 1
        assert finish(api, begun).status == 200
        content = new(snapshot=begun["snapshotId"]).read("same").body
        assert len(content) == 400_000 and len(set(content)) == 1
        assert not uploads(server, begun)


def test_a_build_deleted_while_it_is_uploaded_and_finished_leaves_nothing(api, server, made):
    body = tar_of(member("a", b"a" * 300_000))
    for _ in range(5):
        begun = begin(api, made, name="goes")
        assert upload(api, begun, body).status == 200
        answers = together(lambda: upload(api, begun, body), lambda: finish(api, begun), lambda: api.delete(f"/sandbox/snapshots/{begun['snapshotId']}"))
        for answer in answers:
            failed(answer, "SNAPSHOT_NOT_FOUND", "INVALID_STATE")
        assert answers[2].status == 200, str(answers[2])
        assert not uploads(server, begun)
        check_error(upload(api, begun, body), 404, "SNAPSHOT_NOT_FOUND")
        check_error(finish(api, begun), 404, "SNAPSHOT_NOT_FOUND")


def test_an_announced_build_is_over_after_an_hour(own_server):
    import sqlite3
    server, made = own_server(), []
    begun = begin(server.client, made)
    assert server.stop() == 0
    with sqlite3.connect(server.data / "burrow.db") as database:
        database.execute("UPDATE snapshots SET created_at = created_at - 3600000")
    database.close()
    server.listen = f"127.0.0.1:{server.port}"
    server.start()
    for answer in (upload(server.client, begun, tar_of(member("a", b"a"))), finish(server.client, begun)):
        check_error(answer, 409, "INVALID_STATE", "an hour", "begin another")
    server.end()


def test_an_announced_build_that_nobody_begins_is_gone_after_a_quarter_of_an_hour(own_server):
    import sqlite3
    server, made = own_server(), []
    left, begun = (begin(server.client, made, name=name) for name in ("left", "begun"))
    assert upload(server.client, begun, tar_of(member("a", b"a"))).status == 200
    assert server.stop() == 0
    with sqlite3.connect(server.data / "burrow.db") as database:
        database.execute("UPDATE snapshots SET created_at = created_at - 960000, updated_at = updated_at - 960000")
    database.close()
    server.listen = f"127.0.0.1:{server.port}"
    server.start()
    begin(server.client, made, name="next")  # who comes next is not refused for it
    check_error(finish(server.client, left), 404, "SNAPSHOT_NOT_FOUND")
    assert finish(server.client, begun).status == 200
    server.end()


def test_an_upload_without_an_end_is_cut(own_server):
    server, made = own_server(options=["--file-limit", "1Mi"]), []
    begun = begin(server.client, made)
    check_error(upload(server.client, begun, b"x" * (2 << 20)), 413, "TOO_LARGE")
    assert not uploads(server, begun)
    server.end()


def test_what_a_stranger_says_of_itself_breaks_no_public_list(api, made):
    begun = begin(api, made, name="odd", public=True, git={"branch": 5, "commit": {"deep": [1]}, "repo": "fine", "provider": None})
    assert api.put(f"/sandbox/snapshots/{begun['snapshotId']}/upload", tar_of(member("a", b"a")), headers={"Content-Type": "application/gzip"}).status == 200
    assert finish(api, begun).status == 200
    [seen] = [entry for entry in api.get("/sandbox/snapshots/public?limit=100", key=None).data["snapshots"] if entry["snapshotId"] == begun["snapshotId"]]
    assert seen["git"] == {"repo": "fine"}


def test_what_is_only_kept_cannot_make_lists_too_long(api, made):
    large = {"a": "x" * 70_000}
    check_error(api.post("/sandbox/snapshots/build", {"runtime": "base:latest", "git": large}), 400, "INVALID_ARGUMENT", "git: may be at most 64 KiB")
    check_error(finish(api, begin(api, made), metadata=large), 400, "INVALID_ARGUMENT", "metadata: may be at most 64 KiB")


@needs_zstd
@pytest.mark.parametrize("metadata", ["[1,2]", '"text"', '{"a":1,"b":"fine"}', "{", "]},{", "null", '{"a":"' + "x" * 60000 + '"}'], ids=str.__len__)
def test_imported_metadata_breaks_no_public_list(api, made, metadata):
    answer = bring(api, archive(lines=[f"metadata: {metadata}"]), public="true")
    assert answer.status == 201, str(answer)
    made.append(answer.data["id"])
    [seen] = [entry for entry in api.get("/sandbox/snapshots/public?limit=100", key=None).data["snapshots"] if entry["snapshotId"] == made[-1]]
    assert all(isinstance(value, str) for value in seen.get("userMetadata", {}).values())


# ---- what strangers see ----

PRIVATE = {"user", "sandboxId", "parentSnapshotId"}


def test_the_public_see_nothing_private(api, sandbox, new, made):
    first = take(api, made, sandbox, name="private-parent")
    child = take(api, made, new(snapshot=first["snapshotId"]), name="shown", public=True)
    assert PRIVATE <= set(child)
    page = api.get("/sandbox/snapshots/public?limit=100", key=None).data["snapshots"]
    seen = [entry for entry in page if entry["snapshotId"] == child["snapshotId"]]
    seen.append(api.get(f"/sandbox/snapshots/public/{child['snapshotId']}", key=None).data)
    for entry in seen:
        assert not PRIVATE & set(entry), entry
        assert first["snapshotId"] not in str(entry) and sandbox.id not in str(entry)


@pytest.mark.parametrize("reference", ["@nobody/{name}:latest", "@/{name}:latest", "@nobody/{id}", "@{slug}/", "@{slug}/{name}:", "@{slug}/:latest", ":latest",
                                       "{name}:", "{name}:latest:latest", "@{slug}", "%00", "{name}%00:latest", "../{id}", "{name}:latest/export", "*", "%", "'--"])
def test_references_that_name_nothing(api, sandbox, made, reference):
    snapshot = take(api, made, sandbox, name="named", public=True)
    text = reference.format(name="named", id=snapshot["snapshotId"], slug=snapshot["orgSlug"]).replace("%00", "\0")
    for answer in (look(api, text), api.get(f"/sandbox/snapshots/public/{quote(text, safe='')}", key=None)):
        assert answer.status in (400, 404), str(answer)
    answer = api.post("/sandbox", {"snapshot": text})
    assert answer.status in (400, 404), str(answer)


def test_an_organisation_in_a_reference_is_that_one(api, sandbox, made):
    snapshot = take(api, made, sandbox, name="named", public=True)
    for organisation in (snapshot["orgSlug"], snapshot["org"]["id"], snapshot["org"]["id"].removeprefix("org_")):
        assert look(api, f"@{organisation}/named:latest").data["snapshotId"] == snapshot["snapshotId"]
    check_error(look(api, "@other/named:latest"), 404, "SNAPSHOT_NOT_FOUND")


# ---- guests that forge what layers are made of ----

FORGE = """
import os, stat, errno
def tried(what, fn):
    try:
        fn()
        print(what, "worked")
    except OSError as e:
        print(what, errno.errorcode[e.errno])
os.makedirs("d/below", exist_ok=True)
open("f", "w").write("f")
tried("whiteout", lambda: os.mknod("w", stat.S_IFCHR, os.makedev(0, 0)))
tried("device", lambda: os.mknod("v", stat.S_IFCHR, os.makedev(1, 1)))
for name, value in (("opaque", b"y"), ("redirect", b"/etc"), ("metacopy", b""), ("whiteout", b"y"), ("origin", b"x"), ("upper", b"x")):
    for space in ("trusted", "user", "security"):
        for path in ("d", "f"):
            tried(f"{space}.overlay.{name}", lambda: os.setxattr(path, f"{space}.overlay.{name}", value))
"""
TRY_C = "python3 - <<'END'\n%s\nEND" % FORGE


def test_marks_that_a_guest_forges_mean_nothing(api, sandbox, new, made):
    if sandbox.sh("command -v python3").exit_code == 0:
        told = sandbox.output(TRY_C)
        assert not [line for line in told.splitlines() if line.endswith(" worked") and not line.startswith("user.")], told
    else:
        told = sandbox.output("mknod w c 0 0 2>/dev/null && echo whiteout; mknod v c 1 1 2>/dev/null && echo device; mkdir -p d; echo f >f; echo told")
        assert told == "told\n"
    sandbox.output("mkdir -p d/below; touch .wh.f d/.wh.below d/.wh..wh..opq; ln -s /etc/shadow link; echo x > d/below/x")
    checkpoint(sandbox, "c")
    id = take(api, made, sandbox, name="forged")["snapshotId"]
    names = {file["path"].removeprefix("home/agentuity/") for file in look(api, id).data["files"]}
    assert {"f", ".wh.f", "d/.wh.below", "d/.wh..wh..opq", "d/below/x"} <= names
    other = new(snapshot=id)
    assert other.output("cat f d/below/x; ls -A d; ls / | grep -c '^etc$'") == "fx\n.wh..wh..opq\n.wh.below\nbelow\n1\n".replace("fx", other.output("cat f") + "x")
    told = [entry["path"] for entry in diff(sandbox, **{"from": "c"}).data["items"]]
    assert told == []


def test_a_diff_follows_no_link_and_opens_no_pipe(sandbox):
    sandbox.output("mkfifo pipe; ln -s /etc/shadow link; ln -s ../../../../../../../../etc/passwd up; mkdir sub; echo a > sub/a; printf 'a\\0b' > binary;"
                   "head -c 3000000 /dev/zero | tr '\\0' x > long; mkdir door; echo in > door/in")
    checkpoint(sandbox, "c")
    sandbox.output("rm link up pipe; ln -s /etc/passwd link; mkfifo up; mkfifo pipe; rm -r sub; ln -s /etc sub; printf 'a\\0c' > binary; echo y >> long;"
                   "rm -r door; ln -s /proc/1/root door; cp /etc/passwd copied")
    found = {entry["path"].removeprefix("/home/agentuity/"): entry for entry in diff(sandbox, **{"from": "c", "patch": 1}).data["items"]}
    assert found["binary"]["binary"] is True and "patch" not in found["binary"]
    assert "patch" not in found["long"] and "patch" not in found["link"] and "patch" not in found["sub"] and "patch" not in found["door"]
    assert found["sub"]["after"]["kind"] == "link" and found["sub"]["before"]["kind"] == "directory"
    assert "root:" in found["copied"]["patch"]
    assert all("root:" not in entry.get("patch", "") for path, entry in found.items() if path != "copied")


def test_patches_of_one_text_with_very_many_names_are_made_in_time(sandbox):
    sandbox.output("mkdir n; seq 1 60000 > n/f; i=0; while [ $i -lt 3000 ]; do ln n/f n/$i; i=$((i+1)); done")
    checkpoint(sandbox, "c")
    sandbox.output("rm -r n; mkdir n; seq 60000 -1 1 > n/f; i=0; while [ $i -lt 3000 ]; do ln n/f n/$i; i=$((i+1)); done")
    found = diff(sandbox, **{"from": "c", "patch": 1}).data
    assert found["changed"] + found["added"] + found["removed"] >= 3000


# ---- more archives ----

def entry(name, data=b"", **fields):
    return member(f"files/{name}", data, **fields)


def xattrs(made, **names):
    info, data = made
    info.pax_headers = {f"SCHILY.xattr.{name.replace('__', '.')}": value for name, value in names.items()}
    info.pax_headers.update({f"LIBARCHIVE.xattr.{name.replace('__', '.')}": "eQ==" for name in names})
    return info, data


@needs_zstd
def test_attributes_of_an_import_do_not_come_along(api, new, made):
    marks = {"trusted__overlay__opaque": "y", "user__overlay__opaque": "y", "trusted__overlay__redirect": "/root", "user__overlay__redirect": "/root",
             "security__capability": "\1\0\0\2\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\0\0\0\0", "trusted__overlay__metacopy": ""}
    body = archive(files=[xattrs(entry("etc", type=tarfile.DIRTYPE, mode=0o755), **marks), xattrs(entry("home/agentuity/a", b"a", mode=0o755), **marks)])
    answer = bring(api, body)
    assert answer.status == 201, str(answer)
    made.append(answer.data["id"])
    sandbox = new(snapshot=made[-1])
    assert sandbox.output("test -s /etc/passwd && cat a; (getcap a || getfattr -m - -d a) 2>/dev/null; true") == "a"


@needs_zstd
@pytest.mark.parametrize("files, is_taken", [
    ([entry("a", b"one"), entry("a", b"two")], True),
    ([entry("a", b"one"), entry("a", b"one")], False),
    ([entry("a", b"one"), entry("a", type=tarfile.DIRTYPE), entry("a/b", b"b")], None),
    ([entry("a", type=tarfile.SYMTYPE, linkname="/etc"), entry("a", b"two")], None),
    ([entry("etc", type=tarfile.SYMTYPE, linkname="/tmp"), entry("etc/passwd", b"evil")], False),
    ([entry("proc/sys/kernel/core_pattern", b"|/evil")], None),
    ([entry("proc", type=tarfile.SYMTYPE, linkname="/tmp")], None),
    ([entry("dev/null", b"x")], None),
    ([entry("x" * 256, b"x")], False),
    ([entry("a/" * 2000 + "b", b"x")], None),
    ([entry("a\nb\\c", b"x")], True),
    ([entry("\udcff\udcfe", b"x")], None),
    ([entry("a", type=tarfile.LNKTYPE, linkname="files/etc/passwd")], None),
    ([entry("a", type=tarfile.LNKTYPE, linkname="burrow-snapshot")], False),
    ([entry("a", type=tarfile.LNKTYPE, linkname="files/none")], False),
    ([entry("a", type=tarfile.LNKTYPE, linkname="files/a")], None),
    ([entry("a", b"x", uid=70000)], False),
    ([entry("a", b"x", uid=-5)], None),
    ([entry("a", b"x", mtime=2**62)], None),
    ([entry("a", b"x", mtime=-2**40)], None),
    ([entry("a", b"x", mode=0o7777)], True),
    ([member("SHA256SUMS", b"again")], False),
    ([member("files", type=tarfile.SYMTYPE, linkname="/etc"), entry("evil", b"x")], False),
    ([member("other", b"x")], False),
])
def test_odd_entries_are_taken_or_refused_and_never_our_fault(api, new, made, files, is_taken):
    answer = bring(api, archive(files=files))
    assert answer.status in ((201,) if is_taken else (400, 403) if is_taken is False else (201, 400, 403)), str(answer)
    if answer.status == 201:
        made.append(answer.data["id"])
        sandbox = new(snapshot=made[-1])
        assert sandbox.output("echo well") == "well\n"
        assert look(api, made[-1]).status == 200
    else:
        assert "/tmp/" not in answer.json["detail"] and "/volume" not in answer.json["detail"], str(answer)
    assert new().output("test -s /etc/passwd && test ! -e /etc/evil && echo clean") == "clean\n"


@needs_zstd
@pytest.mark.parametrize("lines, status", [
    (["env: A=1", "env: A=2", "env: B"], 400), (["env: =x"], 400), (["env: " + "A" * 1100000 + "=x"], 400), (["env: A=" + "x" * 100000], 201),
    (["env: A B=x"], 201), (["env: A\\\nB=x"], 201), (["description: " + "x" * 4000], 201), (["description: " + "x" * 5000], 400),
    (["name: second"], 201), (["tag: -bad"], 201), (["removed: /etc"], 400), (["removed: "], 400), (["removed: ."], 400), (["removed: proc"], 400),
    (["removed: none/none"], 201), (["removed: etc/../.."], 400), (["files: 99999999999999999999"], 201), (["unknown: x"], 201),
])
def test_odd_lines_of_a_manifest(api, made, lines, status):
    answer = bring(api, archive(lines=lines))
    assert answer.status == status, str(answer)
    if answer.status == 201:
        made.append(answer.data["id"])


@needs_zstd
@pytest.mark.parametrize("runtime", ["../../etc", "/etc/passwd", "base:latest/../../x", "", "a" * 5000, "base:latest\\\nx"])
def test_a_runtime_that_leads_elsewhere_is_none(api, runtime):
    answer = bring(api, archive(f"burrow-snapshot 1\nname: x\nruntime: {runtime}\n"))
    assert answer.status in (400, 404), str(answer)


@needs_zstd
def test_more_environment_than_fits_is_said_to_be_too_long(api, new, made):
    answer = bring(api, archive(lines=[f"env: A{i}=" + "x" * 60000 for i in range(60)]))
    assert answer.status in (201, 400, 413), str(answer)
    if answer.status == 201:
        made.append(answer.data["id"])
        ran = new(snapshot=made[-1]).run("echo", "well")
        assert ran.exit_code == 0 or "Argument list too long" in ran.state["error"], ran


@needs_zstd
def test_a_million_directories_with_long_names_take_no_memory(api, server):
    before = peak(server)
    prefix = "/".join(["x" * 200] * 15)
    body = archive(files=[entry(f"{prefix}/{i}", type=tarfile.DIRTYPE) for i in range(30000)])
    answer = bring(api, body)
    assert answer.status in (400, 413), str(answer)
    assert peak(server) - before < 500 << 20


# ---- what goes into a snapshot, and what does not ----

def test_a_restore_over_planted_links_follows_none(sandbox):
    sandbox.output("mkdir -p deep/er; echo kept > deep/er/file")
    checkpoint(sandbox, "before")
    sandbox.output("rm -r deep; ln -s /etc deep; rm -rf /opt /srv; ln -s / /opt; ln -s /proc/1/root /srv; rm -rf /mnt; ln -s ../../../../../../.. /mnt")
    checkpoint(sandbox, "planted")
    for name in ("before", "planted", "before"):
        answer = restore(sandbox, name)
        assert answer.status == 200, str(answer)
        assert sandbox.output("test -L deep && echo link || cat deep/er/file") == ("link\n" if name == "planted" else "kept\n")
    sandbox.output("test -s /etc/passwd && test ! -e /etc/er")


@needs_zstd
def test_variables_and_memory_of_a_sandbox_are_not_in_its_snapshot(api, new, made):
    secret = "hush-" + os.urandom(8).hex()
    first = new(env={"TOKEN": secret})
    first.job("sh", "-c", f"V={secret}-memory; while :; do sleep 1; done")
    first.output("true")
    id = take(api, made, first, name="secrets")["snapshotId"]
    body = export(api, id).body
    plain = subprocess.run(["zstd", "-q", "-dc"], input=body, stdout=subprocess.PIPE, check=True).stdout
    assert secret.encode() not in plain and secret not in look(api, id).body.decode()
    second = new(snapshot=id)
    assert second.sh("env | grep TOKEN; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep hush-; ps 2>/dev/null | grep -c '[h]ush-'").stdout.decode().strip() in ("", "0")


def test_two_from_one_snapshot_are_not_twins(api, sandbox, new, made):
    id = take(api, made, sandbox, name="twins")["snapshotId"]
    script = "hostname 2>/dev/null || cat /proc/sys/kernel/hostname; head -c 16 /dev/urandom | od -An -tx1; set -- /proc/[0-9]*; echo $#"
    one, two = new(snapshot=id), new(snapshot=id)
    first, second = one.output(script).splitlines(), two.output(script).splitlines()
    assert first[1] != second[1] and first[2] == second[2]
    one.output("echo mine > shared-name")
    assert two.read("shared-name").status == 404


def test_nothing_of_the_machine_is_changed_by_an_import(api):
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_bytes()
    devices = sorted(os.listdir("/dev"))
    for files in ([entry("proc/sys/kernel/core_pattern", b"|/evil")], [entry("dev/evil", b"x")], [entry("sys/evil", b"x")], [entry("run/burrow-evil", b"x")]):
        if shutil.which("zstd"):
            answer = bring(api, archive(files=files))
            assert answer.status in (201, 400, 403), str(answer)
            if answer.status == 201:
                assert api.delete(f"/sandbox/snapshots/{answer.data['id']}").status == 200
    assert pathlib.Path("/proc/sys/kernel/core_pattern").read_bytes() == pattern
    assert sorted(os.listdir("/dev")) == devices and not os.path.exists("/run/burrow-evil") and not os.path.exists("/sys/evil")


def test_whoever_has_no_key_gets_no_endless_list(api, sandbox, made):
    sandbox.output("mkdir many; cd many; i=0; while [ $i -lt 6000 ]; do : > $i; i=$((i+1)); done")
    snapshot = take(api, made, sandbox, name="many", public=True)
    own = look(api, snapshot["snapshotId"]).data
    assert len(own["files"]) >= 6000 and own["fileCount"] == len(own["files"]) and "filesTruncated" not in own
    seen = api.get(f"/sandbox/snapshots/public/{snapshot['snapshotId']}", key=None).data
    assert seen["filesTruncated"] is True and seen["fileCount"] == own["fileCount"] and seen["files"] == own["files"][:len(seen["files"])]


def test_many_who_ask_for_one_list_leave_workers_to_others(api, sandbox, made):
    sandbox.output("head -c 300000000 /dev/zero > big; i=0; while [ $i -lt 200 ]; do echo $i > f$i; i=$((i+1)); done")
    snapshot = take(api, made, sandbox, name="asked-for", public=True)["snapshotId"]
    path = f"/sandbox/snapshots/public/{snapshot}"
    *answers, other = together(*(lambda: api.get(path, key=None) for _ in range(30)), lambda: api.create())
    other.delete()
    assert {answer.status for answer in answers} <= {200, 429} and 200 in {answer.status for answer in answers}
    assert len({answer.body for answer in answers if answer.status == 200}) == 1
    assert api.get(path, key=None).status == 200
