# SPDX-License-Identifier: Apache-2.0
"""Builds: a snapshot made of files, announced, uploaded as an archive and finished; hostile archives build nothing."""
import gzip
import hashlib
import tarfile
from urllib.parse import urlsplit

import pytest
from archives import member, tar_of
from client import check_error, nulls, query, together

FINAL = {"sizeBytes": 0, "fileCount": 0, "files": []}
UNKNOWN = "snp_" + "0" * 26


def begin(api, made=None, **fields):
    answer = api.post("/sandbox/snapshots/build", {"runtime": "base:latest", **fields})
    assert answer.status in (200, 201), str(answer)
    if made is not None and "snapshotId" in answer.data:
        made.append(answer.data["snapshotId"])
    return answer.data


def upload(api, begun, archive, **kwargs):
    kwargs.setdefault("headers", {"Content-Type": "application/gzip"})
    return api.put(begun["uploadUrl"], archive, key=None, **kwargs)


def upload_ok(api, begun, archive):
    answer = upload(api, begun, archive)
    assert answer.status == 200 and answer.data["success"] is True and answer.data["scanned"] is False, str(answer)


def finish(api, begun, **fields):
    return api.post(f"/sandbox/snapshots/{begun['snapshotId']}/finalize", {**FINAL, **fields})


def build(api, made, archive, finals=None, **fields):
    begun = begin(api, made, **fields)
    upload_ok(api, begun, archive)
    answer = finish(api, begun, **(finals or {}))
    assert answer.status == 200, str(answer)
    return answer.data


FILES = tar_of(member("index.js", b"console.log(1)\n"), member("src/", type=tarfile.DIRTYPE, mode=0o755), member("src/a.js", b"a", mode=0o755),
               member("link", type=tarfile.SYMTYPE, linkname="src/a.js"))


# ---- from begin to end ----

def test_a_private_build(api, new, made):
    begun = begin(api, made, name="built", tag="v1", description="d", message="m", contentHash="h1", encrypt=True,
                  git={"branch": "main", "commit": "abc", "repo": "r", "provider": "github", "commitUrl": "https://x"})
    assert set(begun) == {"snapshotId", "uploadUrl"}, "and never a publicKey"
    assert begun["uploadUrl"].startswith(f"{api.url}/") and begun["snapshotId"] in begun["uploadUrl"]
    assert len(urlsplit(begun["uploadUrl"]).path.rsplit("/", 1)[-1]) >= 22, "it cannot be guessed"
    upload_ok(api, begun, FILES)
    files = [{"path": "index.js", "size": 15, "sha256": hashlib.sha256(b"console.log(1)\n").hexdigest(), "contentType": "text/javascript", "mode": 420}]
    answer = finish(api, begun, sizeBytes=16, fileCount=2, files=files, env={"NODE_ENV": "production", "EMPTY": ""}, metadata={"version": "1.0.0"})
    assert answer.status == 200, str(answer)
    seen = answer.data
    assert (seen["snapshotId"], seen["name"], seen["tag"], seen["description"], seen["message"]) == (begun["snapshotId"], "built", "v1", "d", "m")
    assert seen["userMetadata"] == {"version": "1.0.0"} and seen["public"] is False and not nulls(seen)
    assert api.get(f"/sandbox/snapshots/{begun['snapshotId']}").data["fileCount"] == 2
    sandbox = new(snapshot="built:v1")
    assert sandbox.output("pwd; ls; cat src/a.js link; echo; echo $NODE_ENV; test -x src/a.js && stat -c %U index.js") == (
        "/home/agentuity\nindex.js\nlink\nsrc\naa\nproduction\nroot\n")


def test_a_public_build_is_uploaded_by_key(api, made):
    begun = begin(api, made, name="pub", public=True)
    assert "uploadUrl" not in begun
    path = f"/sandbox/snapshots/{begun['snapshotId']}/upload"
    check_error(api.put(path, FILES, key=None), 401, "UNAUTHORIZED")
    answer = api.put(path, FILES, headers={"Content-Type": "application/gzip"})
    assert answer.data["success"] is True and answer.data["scanned"] is False
    assert finish(api, begun).data["public"] is True
    assert begun["snapshotId"] in [entry["snapshotId"] for entry in api.get("/sandbox/snapshots/public?limit=100", key=None).data["snapshots"]]


def test_a_private_one_may_be_uploaded_by_key_too_and_in_chunks(api, made):
    begun = begin(api, made)
    assert api.put(f"/sandbox/snapshots/{begun['snapshotId']}/upload", iter([FILES[:100], FILES[100:]])).status == 200
    assert finish(api, begun).status == 200


def test_a_second_upload_replaces_the_first(api, new, made):
    begun = begin(api, made)
    upload_ok(api, begun, tar_of(member("first", b"1")))
    upload_ok(api, begun, tar_of(member("second", b"2")))
    assert finish(api, begun).status == 200
    assert new(snapshot=begun["snapshotId"]).output("ls") == "second\n"


def test_no_files_but_a_placeholder(api, new, made):
    built = build(api, made, tar_of(member(".placeholder")), {"env": {"ONLY": "env"}})
    assert new(snapshot=built["snapshotId"]).output("echo $ONLY") == "env\n"


def test_a_runtime_by_its_id(api, made):
    id = next(entry["id"] for entry in api.get("/sandbox/runtimes").data["runtimes"] if entry["name"] == "base:latest")
    assert build(api, made, FILES, runtime=id)["runtimeId"] == id


def test_variables_of_a_request_win_over_those_of_the_build(api, new, made):
    built = build(api, made, FILES, {"env": {"A": "built", "B": "built"}})
    sandbox = new(snapshot=built["snapshotId"], env={"B": "asked"})
    assert sandbox.output("echo $A $B") == "built asked\n"
    child = api.post(f"/sandbox/{sandbox.id}/snapshot", {}).data
    made.append(child["snapshotId"])
    assert new(snapshot=child["snapshotId"]).output("echo $A-") == "built-\n", "a snapshot of it has them too"


# ---- unchanged ----

def test_the_same_content_is_not_built_again(api, made):
    built = build(api, made, FILES, name="same", tag="v1", contentHash="hash")
    again = begin(api, made, name="same", tag="v2", contentHash="hash")
    assert again == {"unchanged": True, "existingId": built["snapshotId"], "existingName": "same", "existingTag": "v1"}
    for other in ({"name": "same", "contentHash": "other"}, {"name": "different", "contentHash": "hash"},
                  {"name": "same", "contentHash": "hash", "force": True}, {"name": "same"}):
        assert "snapshotId" in begin(api, made, **other), other
    api.delete(f"/sandbox/snapshots/{built['snapshotId']}")
    assert "snapshotId" in begin(api, made, name="same", contentHash="hash"), "a deleted one does not count"


def test_an_unfinished_build_is_not_the_same_content(api, made):
    begin(api, made, name="half", contentHash="hash")
    assert "snapshotId" in begin(api, made, name="half", contentHash="hash")


def test_a_build_takes_a_tag_over_when_it_is_finished(api, made):
    first = build(api, made, FILES, name="tagged", tag="v1")
    begun = begin(api, made, name="tagged", tag="v1")
    assert api.get("/sandbox/snapshots/tagged%3Av1").data["snapshotId"] == first["snapshotId"]
    upload_ok(api, begun, FILES)
    assert finish(api, begun).status == 200
    assert api.get("/sandbox/snapshots/tagged%3Av1").data["snapshotId"] == begun["snapshotId"]


def test_an_unfinished_build_is_nowhere(api, made):
    begun = begin(api, made, name="unfinished", tag="v1", public=True)
    assert begun["snapshotId"] not in [entry["snapshotId"] for entry in api.get("/sandbox/snapshots?limit=100").data["snapshots"]]
    assert begun["snapshotId"] not in [entry["snapshotId"] for entry in api.get("/sandbox/snapshots/public?limit=100", key=None).data["snapshots"]]
    for reference in (begun["snapshotId"], "unfinished:v1"):
        check_error(api.post("/sandbox", {"snapshot": reference}), 404, "SNAPSHOT_NOT_FOUND")
    check_error(api.get(f"/sandbox/snapshots/public/{begun['snapshotId']}", key=None), 404, "SNAPSHOT_NOT_FOUND")


# ---- the capability ----

def test_only_the_secret_lets_one_upload(api, made):
    begun, other = begin(api, made), begin(api, made)
    path, secret = begun["uploadUrl"].rsplit("/", 1)
    wrong = urlsplit(other["uploadUrl"]).path.rsplit("/", 1)[-1]
    for url in (f"{path}/{wrong}", f"{path}/{secret[:-1]}", f"{path}/{secret}x", f"{path}/%00", path.replace(begun["snapshotId"], UNKNOWN) + f"/{secret}"):
        answer = api.put(url, FILES, key=None)
        assert answer.status in (400, 404), str(answer)
    check_error(api.put(path, FILES, key=None), 401, "UNAUTHORIZED")
    check_error(finish(api, begun), 409, "INVALID_STATE")


def test_the_secret_is_told_once_and_worth_nothing_afterwards(api, made):
    begun = begin(api, made)
    upload_ok(api, begun, FILES)
    assert finish(api, begun).status == 200
    secret = begun["uploadUrl"].rsplit("/", 1)[-1]
    assert secret not in api.get(f"/sandbox/snapshots/{begun['snapshotId']}").body.decode()
    assert upload(api, begun, FILES).status in (404, 409)
    check_error(finish(api, begun), 409, "INVALID_STATE")
    api.delete(f"/sandbox/snapshots/{begun['snapshotId']}")
    assert upload(api, begun, FILES).status in (404, 409)


def test_other_methods_of_the_upload_url(api, made):
    begun = begin(api, made)
    assert api.get(begun["uploadUrl"], key=None).status in (404, 405)
    assert api.post(begun["uploadUrl"], {}, key=None).status in (404, 405)


# ---- bad input ----

@pytest.mark.parametrize("fields, where", [
    ({"runtime": None}, "runtime"), ({"runtime": 1}, "runtime"), ({"name": "a b"}, "name"), ({"name": 1}, "name"), ({"tag": ".x"}, "tag"),
    ({"force": "yes"}, "force"), ({"public": 1}, "public"), ({"git": []}, "git"), ({"contentHash": 1}, "contentHash"),
    ({"description": "d" * 5000}, "description"),
])
def test_bad_beginnings(api, fields, where):
    check_error(api.post("/sandbox/snapshots/build", {"runtime": "base:latest", **fields}), 400, "INVALID_ARGUMENT", where)


def test_a_build_needs_a_runtime_that_is_there(api):
    check_error(api.post("/sandbox/snapshots/build", {}), 400, "INVALID_ARGUMENT", "runtime")
    check_error(api.post("/sandbox/snapshots/build", {"runtime": "nonsense:1"}), 404, "RUNTIME_NOT_FOUND", "nonsense")
    check_error(api.post("/sandbox/snapshots/build", {"runtime": "srt_none"}), 404, "RUNTIME_NOT_FOUND")


@pytest.mark.parametrize("fields, where", [
    ({"sizeBytes": None}, "sizeBytes"), ({"fileCount": -1}, "fileCount"), ({"files": {}}, "files"), ({"files": None}, "files"), ({"env": {"A": 1}}, "env"),
    ({"env": {"A=B": "x"}}, "env"), ({"metadata": {"a": 1}}, "metadata"), ({"metadata": []}, "metadata"),
    ({"dependencies": ["--purge"]}, "dependencies"), ({"packages": ["zod"]}, "packages"), ({"dependencies": "curl"}, "dependencies"),
])
def test_bad_ends_leave_the_build_open(api, made, fields, where):
    begun = begin(api, made)
    upload_ok(api, begun, FILES)
    check_error(finish(api, begun, **fields), 400, "INVALID_ARGUMENT", where)
    assert finish(api, begun).status == 200


@pytest.mark.parametrize("missing", ["sizeBytes", "fileCount", "files"])
def test_what_the_end_needs(api, made, missing):
    begun = begin(api, made)
    body = {name: value for name, value in FINAL.items() if name != missing}
    check_error(api.post(f"/sandbox/snapshots/{begun['snapshotId']}/finalize", body), 400, "INVALID_ARGUMENT", missing)


def test_builds_that_are_not_there(api, made):
    check_error(api.put(f"/sandbox/snapshots/{UNKNOWN}/upload", FILES), 404, "SNAPSHOT_NOT_FOUND")
    check_error(api.put(f"/sandbox/snapshots/{UNKNOWN}/upload/x", FILES, key=None), 404, "SNAPSHOT_NOT_FOUND")
    check_error(api.post(f"/sandbox/snapshots/{UNKNOWN}/finalize", FINAL), 404, "SNAPSHOT_NOT_FOUND")
    begun = begin(api, made)
    check_error(finish(api, begun), 409, "INVALID_STATE", "upload")
    assert api.delete(f"/sandbox/snapshots/{begun['snapshotId']}").status == 200
    assert upload(api, begun, FILES).status in (404, 409)
    assert finish(api, begun).status in (404, 409)


def test_two_ends_at_once_are_one(api, made):
    begun = begin(api, made)
    upload_ok(api, begun, FILES)
    answers = together(lambda: finish(api, begun), lambda: finish(api, begun))
    assert sorted(answer.status for answer in answers) == [200, 409]


def test_a_snapshot_that_was_taken_cannot_be_uploaded_to(api, sandbox, made):
    taken = api.post(f"/sandbox/{sandbox.id}/snapshot", {}).data
    made.append(taken["snapshotId"])
    check_error(api.put(f"/sandbox/snapshots/{taken['snapshotId']}/upload", FILES), 409, "INVALID_STATE")
    check_error(api.post(f"/sandbox/snapshots/{taken['snapshotId']}/finalize", FINAL), 409, "INVALID_STATE")


# ---- archives ----

HOSTILE = {
    "leads up": tar_of(member("ok", b"1"), member("../../etc/evil", b"x")),
    "is absolute": tar_of(member("/etc/evil", b"x")),
    "writes through a link": tar_of(member("out", type=tarfile.SYMTYPE, linkname="/etc"), member("out/evil", b"x")),
    "links to the outside": tar_of(member("hard", type=tarfile.LNKTYPE, linkname="../../etc/passwd")),
    "is a device": tar_of(member("dev", type=tarfile.CHRTYPE, devmajor=1, devminor=3)),
    "is a whiteout": tar_of(member("gone", type=tarfile.CHRTYPE, devmajor=0, devminor=0)),
    "is a pipe": tar_of(member("pipe", type=tarfile.FIFOTYPE)),
    "is cut off": FILES[:len(FILES) // 2],
    "has another sum": FILES[:-8] + b"\0\0\0\0" + FILES[-4:],
    "is empty": b"",
    "is text": b"not an archive at all\n" * 100,
    "is compressed text": gzip.compress(b"not an archive at all\n" * 100),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_archive_that(api, new, made, kind):
    """Builds nothing, or nothing beside the files' place."""
    begun = begin(api, made, name="hostile")
    assert upload(api, begun, HOSTILE[kind]).status in (200, 400)
    answer = finish(api, begun)
    assert answer.status in (200, 400, 403, 409), str(answer)
    if answer.status == 200:
        assert new(snapshot=begun["snapshotId"]).output("ls /etc/evil /home/etc 2>/dev/null; test ! -e /etc/evil && echo clean") == "clean\n"
    else:
        check_error(api.post("/sandbox", {"snapshot": begun["snapshotId"]}), 404, "SNAPSHOT_NOT_FOUND")
    assert new().output("test ! -e /etc/evil && echo clean") == "clean\n"


def test_marks_of_the_overlay_hide_nothing(api, new, made):
    info, data = member("dir/", type=tarfile.DIRTYPE, mode=0o755)
    info.pax_headers = {"SCHILY.xattr.trusted.overlay.opaque": "y", "SCHILY.xattr.user.overlay.opaque": "y",
                        "SCHILY.xattr.trusted.overlay.redirect": "/etc"}
    built = build(api, made, tar_of((info, data), member("dir/file", b"x"), member(".wh.file", b"")))
    assert new(snapshot=built["snapshotId"]).output("ls -A dir; ls / | grep -c etc") == "file\n1\n"


def test_set_id_bits_give_nobody_rights(api, new, made):
    built = build(api, made, tar_of(member("suid", b"x", mode=0o6755)))
    assert new(snapshot=built["snapshotId"]).output("stat -c %a suid") == "755\n"


def test_a_bomb_fills_no_disk(api, new, made):
    bomb = tar_of(*[member(f"zeros-{i}", bytes(64 << 20)) for i in range(40)])  # 2.5 GiB, beyond the disk of a sandbox
    begun = begin(api, made)
    assert upload(api, begun, bomb).status in (200, 400, 413, 429)
    answer = finish(api, begun)
    assert answer.status in (400, 409, 413, 429), str(answer)
    assert api.get("/health", key=None).status == 200
    assert new().output("echo well") == "well\n"


def test_five_thousand_files(api, new, made):
    built = build(api, made, tar_of(*[member(f"d{i % 50}/f{i}", b"%d" % i) for i in range(5000)]))
    assert new(snapshot=built["snapshotId"]).output("find . -type f | wc -l; cat d49/f4999") == "5000\n4999"
    assert api.get(f"/sandbox/snapshots/{built['snapshotId']}").data["fileCount"] == 5000
