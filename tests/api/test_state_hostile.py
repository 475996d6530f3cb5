# SPDX-License-Identifier: Apache-2.0
"""Attacks on snapshots, checkpoints, builds, imports and diffs by those who may use them, or hold a URL."""
import hashlib
import io
import shutil
import subprocess
import tarfile
from urllib.parse import quote

import pytest
from archives import member, tar_of
from client import check_error, query, together, until

UNKNOWN = "snp_" + "0" * 26
needs_zstd = pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not installed")


@pytest.fixture
def made(api):
    """Ids of snapshots that go with the test."""
    ids = []
    yield ids
    for id in ids:
        assert api.delete(f"/sandbox/snapshots/{id}").status in (200, 404)


def take(api, made, sandbox, **fields):
    answer = api.post(f"/sandbox/{sandbox.id}/snapshot", fields)
    assert answer.status == 201, str(answer)
    made.append(answer.data["snapshotId"])
    return answer.data


def look(api, reference, **kwargs):
    return api.get(f"/sandbox/snapshots/{quote(reference, safe='')}", **kwargs)


def export(api, reference):
    return api.get(f"/sandbox/snapshots/{reference}/export")


def bring(api, body, **fields):
    return api.post(f"/sandbox/snapshots/import?{query(**fields)}", body=body, headers={"Content-Type": "application/zstd"})


def diff(sandbox, **fields):
    return sandbox.client.get(f"/sandbox/{sandbox.id}/diff?{query(**fields)}")


def checkpoint(sandbox, name):
    answer = sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": name})
    assert answer.status == 201, str(answer)
    return answer.data


def restore(sandbox, reference):
    return sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint/{reference}/restore")


def sum_line(name, data):
    return hashlib.sha256(data).hexdigest().encode() + b"  " + name.encode() + b"\n"


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
    check_error(export(api, id), 413, "TOO_LARGE", "snapshot")


def test_files_of_exabytes_are_compared_in_time(endless):
    checkpoint(endless, "before")
    endless.output("printf x | dd of=endless bs=1 seek=1000000000000 conv=notrunc 2>/dev/null; touch -d @1 small")
    found = diff(endless, **{"from": "before", "patch": 1}).data
    assert [entry["path"] for entry in found["entries"]] == ["/home/agentuity/endless"]
    checkpoint(endless, "after")
    endless.output("touch endless")
    assert diff(endless, **{"from": "after"}).data["entries"] == []


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
    check_error(bring(api, archive(sums=b"\n" * (127 << 20))), 400, "INVALID_ARGUMENT")
    check_error(bring(api, archive("burrow-snapshot 1\nname: x\nruntime: base:latest\n" + "\n" * (3 << 20))), 400, "INVALID_ARGUMENT")
    assert peak(server) - before < 600 << 20


def peak(server):
    status = (server.proc / "status" if hasattr(server, "proc") else __import__("pathlib").Path(f"/proc/{server.pid}/status")).read_text()
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
            failed(answer, "INVALID_STATE", "SANDBOX_BUSY")
        if answers[3].status == 201:
            made.append(answers[3].data["snapshotId"])
        assert sandbox.output("cat a") == "x"


def test_a_snapshot_deleted_while_it_is_started_from_listed_and_exported(api, sandbox, made):
    sandbox.output("head -c 3000000 /dev/urandom > big; echo kept > a")
    for _ in range(6):
        id = take(api, made, sandbox, name="goes")["snapshotId"]
        *answers, gone = together(lambda: api.post("/sandbox", {"snapshot": id}), lambda: look(api, id), lambda: export(api, id),
                                  lambda: api.patch(f"/sandbox/snapshots/{id}", {"tag": "x"}), lambda: api.delete(f"/sandbox/snapshots/{id}"))
        assert gone.status == 200, str(gone)
        for answer in answers:
            failed(answer, "SNAPSHOT_NOT_FOUND", "INVALID_STATE")
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
        failed(answer, "CHECKPOINT_NOT_FOUND")


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


@needs_zstd
@pytest.mark.parametrize("metadata", ["[1,2]", '"text"', '{"a":1,"b":"fine"}', "{", "]},{", "null", '{"a":"' + "x" * 60000 + '"}'])
def test_imported_metadata_breaks_no_public_list(api, made, metadata):
    answer = bring(api, archive(lines=[f"metadata: {metadata}"]), public="true")
    assert answer.status == 201, str(answer)
    made.append(answer.data["snapshotId"])
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
