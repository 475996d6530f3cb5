# SPDX-License-Identifier: Apache-2.0
"""Export and import: a snapshot as one file, verified where it arrives."""
import hashlib
import io
import shutil
import subprocess
import tarfile

import pytest
from archives import member, tar_of
from client import ANY, Client, check_problem, nulls, query

BAD_ARCHIVE = ("invalid_request", "damaged", "refused")
UNKNOWN = "snp_" + "0" * 26

pytestmark = pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not installed")


def zstd(data, *words):
    return subprocess.run(["zstd", "-q", "-c", *words], input=data, stdout=subprocess.PIPE, check=True).stdout


def unpacked(archive):
    """Members of an exported snapshot: name to (info, content)."""
    with tarfile.open(fileobj=io.BytesIO(zstd(archive, "-d"))) as tar:
        return {info.name: (info, tar.extractfile(info).read() if info.isreg() else b"") for info in tar}


def packed(members, compress=True):
    plain = tar_of(*members.values(), compress=False)
    return zstd(plain) if compress else plain


def forge(members, name, data):
    """Another content, with its sum."""
    info, _ = members.get(name) or member(name)
    info.size = len(data)
    members[name] = (info, data)
    info, sums = members["SHA256SUMS"]
    lines, own = sums.splitlines(), hashlib.sha256(data).hexdigest().encode() + b"  " + name.encode()
    at = [i for i, line in enumerate(lines) if line.endswith(b"  " + name.encode())] or [len(lines)]
    lines[at[0]:at[0] + 1] = [own]
    sums = b"\n".join([*lines, b""])
    info.size = len(sums)
    members["SHA256SUMS"] = (info, sums)


def export(api, reference, **kwargs):
    return api.get(f"/api/v1/snapshots/{reference}/export", **kwargs)


def export_ok(api, reference):
    answer = export(api, reference)
    assert answer.status == 200, str(answer)
    return answer.body


def bring(api, body, **fields):
    return api.post(f"/api/v1/snapshots/import?{query(**fields)}", body=body, headers={"Content-Type": "application/zstd"})


@pytest.fixture
def taken(api, sandbox, made):
    sandbox.output("""
        mkdir -p tree/deep empty; echo content >tree/file; ln -s file tree/link; ln tree/file tree/hard; chmod 4750 tree/file; chmod 700 tree/deep
        truncate -s 8M sparse; printf 'x' >"new
line"; rm -rf /usr/share/doc; rm -rf /etc/apt; mkdir /etc/apt; echo only >/etc/apt/only; touch -d 2001-02-03 empty""")
    snapshot = api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "moved", "tag": "v1", "description": "d\nd"}).data
    made.append(snapshot["snapshotId"])
    return snapshot


# Holes in files and times of directories do not travel.
TREE = ("cd /home/agentuity; find . ! -type d -printf '%P %y %m %n %s %l %U %G %T@\\n' | sort; find . -type d -printf '%P %m %U %G\\n' | sort;"
        "find /etc/apt; test ! -e /usr/share/doc && echo gone; cat tree/hard")


def bring_ok(api, made, body, **fields):
    answer = bring(api, body, **fields)
    assert answer.status == 201, str(answer)
    made.append(answer.data["id"])
    return api.get(f"/sandbox/snapshots/{made[-1]}").data


# ---- there and back ----

def test_a_snapshot_comes_back_as_it_was(api, new, sandbox, taken, made):
    body = export_ok(api, taken["snapshotId"])
    back = bring_ok(api, made, body, name="arrived")
    assert back["snapshotId"] != taken["snapshotId"] and not nulls(back) and "parentSnapshotId" not in back
    assert (back["name"], back["tag"], back["description"], back["public"]) == ("arrived", "v1", "d\nd", False)
    assert new(snapshot=back["snapshotId"]).output(TREE) == sandbox.output(TREE)
    first, second = (api.get(f"/sandbox/snapshots/{id}").data for id in (taken["snapshotId"], back["snapshotId"]))
    assert first["files"] == second["files"] and first["fileCount"] == second["fileCount"]


def test_the_file_says_what_it_is(api, taken):
    answer = export(api, taken["snapshotId"])
    assert answer.headers["content-type"] == "application/zstd"
    assert answer.headers["content-disposition"].endswith(f'filename="{taken["snapshotId"]}.tar.zst"')
    assert int(answer.headers["content-length"]) == len(answer.body)
    members = unpacked(answer.body)
    names = list(members)
    assert names[0] == "burrow-snapshot" and "SHA256SUMS" in names
    about = members["burrow-snapshot"][1].decode().splitlines()
    assert about[0] == "burrow-snapshot 1" and "name: moved" in about and "tag: v1" in about and "runtime: base:latest" in about
    sums = dict(reversed(line.split("  ", 1)) for line in members["SHA256SUMS"][1].decode().splitlines() if not line.startswith("\\"))
    file = "files/home/agentuity/tree/file"
    assert sums[file] == hashlib.sha256(b"content\n").hexdigest()
    assert all(info.isreg() or info.isdir() or info.issym() or info.islnk() for info, _ in members.values()), "nothing special is in it"


def test_the_same_snapshot_makes_the_same_file(api, taken):
    assert export_ok(api, taken["snapshotId"]) == export_ok(api, "moved%3Av1")


def test_name_tag_and_publicity_can_be_given(api, taken, made):
    body = export_ok(api, taken["snapshotId"])
    seen = bring_ok(api, made, body, name="other", tag="v9", public="true")
    assert (seen["name"], seen["tag"], seen["public"]) == ("other", "v9", True)


def test_a_tag_in_use_is_taken_over(api, taken, made):
    back = bring_ok(api, made, export_ok(api, taken["snapshotId"]))
    assert api.get("/sandbox/snapshots/moved%3Av1").data["snapshotId"] == back["snapshotId"]
    assert "tag" not in api.get(f"/sandbox/snapshots/{taken['snapshotId']}").data


def test_a_chain_arrives_as_one(api, new, taken, made):
    middle = new(snapshot=taken["snapshotId"])
    middle.output("echo second >second; rm -r tree")
    child = api.post(f"/sandbox/{middle.id}/snapshot", {"name": "child"}).data
    made.append(child["snapshotId"])
    back = bring_ok(api, made, export_ok(api, child["snapshotId"]), name="arrived")
    assert new(snapshot=back["snapshotId"]).output("ls") == middle.output("ls")
    assert len(api.get(f"/sandbox/snapshots/lineage?snapshot={back['snapshotId']}").data["lineage"]) == 1


@pytest.mark.parametrize("how", ["gzip", "plain"])
def test_other_compressions_will_do(api, taken, made, how):
    plain = zstd(export_ok(api, taken["snapshotId"]), "-d")
    import gzip
    bring_ok(api, made, gzip.compress(plain) if how == "gzip" else plain, name="again")


def test_to_another_machine(api, own_server, sandbox, taken):
    other = own_server()
    back = bring_ok(other.client, [], export_ok(api, taken["snapshotId"]))
    assert other.client.create(snapshot=back["snapshotId"]).output(TREE) == sandbox.output(TREE)
    other.end()


def test_variables_and_metadata_of_a_build_move_too(api, new, made):
    begun = api.post("/sandbox/snapshots/build", {"runtime": "base:latest", "name": "built", "message": "m"}).data
    made.append(begun["snapshotId"])
    assert api.put(begun["uploadUrl"], tar_of(member("f", b"x")), key=None).status == 200
    final = {"sizeBytes": 1, "fileCount": 1, "files": [], "env": {"WORD": "a\nb"}, "metadata": {"k": "v"}}
    assert api.post(f"/sandbox/snapshots/{begun['snapshotId']}/finalize", final).status == 200
    back = bring_ok(api, made, export_ok(api, begun["snapshotId"]), name="again")
    assert back["userMetadata"] == {"k": "v"} and back["message"] == "m"
    assert new(snapshot=back["snapshotId"]).output('echo "$WORD"') == "a\nb\n"


# ---- what is not there ----

def test_unknown_snapshots(api, taken):
    for reference in (UNKNOWN, "snp_none", "none", "none%3Anone"):
        check_problem(export(api, reference), 404, "not_found", "snapshot")
    check_problem(export(api, taken["snapshotId"], key=None), 401, "unauthorized")
    check_problem(api.post("/api/v1/snapshots/import", body=b"x", key=None), 401, "unauthorized")
    api.delete(f"/sandbox/snapshots/{taken['snapshotId']}")
    check_problem(export(api, taken["snapshotId"]), 404, "not_found", "snapshot")


@pytest.mark.parametrize("fields, where", [({"name": "a b"}, "name"), ({"tag": ".x"}, "tag"), ({"public": "perhaps"}, "public"), ({"force": "x"}, "force")])
def test_bad_parameters(api, taken, fields, where):
    check_problem(bring(api, export_ok(api, taken["snapshotId"]), **fields), 400, "invalid_request", where, field=ANY)


# ---- corrupt ----

def total(api):
    return api.get("/sandbox/snapshots?limit=0").data["total"]


def refused(api, body, *words):
    before = total(api)
    check_problem(bring(api, body, name="bad"), 400, BAD_ARCHIVE, *words)
    assert total(api) == before, "nothing of it is left"


@pytest.mark.parametrize("body", [b"", b"x", b"not an archive\n" * 1000, tar_of(member("files/x", b"x")), tar_of(member("burrow-snapshot", b"nonsense"))])
def test_what_is_no_snapshot(api, body):
    refused(api, body)


@pytest.mark.parametrize("body", [b"", b"not an archive\n" * 1000, tar_of(member("files/x", b"x")), zstd(b"no tar " * 1000)])
def test_what_is_no_export_is_told_so(api, body):
    refused(api, body, "this is no export of a snapshot")


def test_every_cut_is_noticed(api, taken):
    body = export_ok(api, taken["snapshotId"])
    for part in (1, 2, 10, 50, 90, 99):
        refused(api, body[:len(body) * part // 100])


SHOWN = "cd /; find etc home root -printf '%P %y %m %U %l\\n' | sort; find etc home root -type f -readable -exec sha256sum '{}' + | sort"


def test_flipped_bytes_are_noticed_but_for_those_of_times(api, new, made, taken):
    """Names, modes, owners and contents are verified; times of files are not, nor is what fills up the last record."""
    body = export_ok(api, taken["snapshotId"])
    for at in range(20, len(body), max(1, len(body) // 12)):
        flipped = body[:at] + bytes([body[at] ^ 0x55]) + body[at + 1:]
        before = total(api)
        answer = bring(api, flipped, name="bad")
        if answer.status == 201:
            made.append(answer.data["id"])
            assert new(snapshot=made[-1]).output(SHOWN) == new(snapshot=taken["snapshotId"]).output(SHOWN), at
        else:
            check_problem(answer, 400, BAD_ARCHIVE)
            assert total(api) == before, "nothing of it is left"


def test_a_changed_file_is_noticed_and_named(api, taken):
    members = unpacked(export_ok(api, taken["snapshotId"]))
    info, data = members["files/home/agentuity/tree/file"]
    members["files/home/agentuity/tree/file"] = (info, b"forged!\n"[:info.size])
    refused(api, packed(members), "tree/file")


@pytest.mark.parametrize("change", ["missing file", "further file", "missing sums", "missing manifest", "later format", "changed manifest"])
def test_a_forged_archive_is_refused(api, taken, change):
    members = unpacked(export_ok(api, taken["snapshotId"]))
    if change == "missing file":
        del members["files/home/agentuity/tree/file"]
        del members["files/home/agentuity/tree/hard"]
    elif change == "further file":
        members["files/home/agentuity/evil"] = member("files/home/agentuity/evil", b"x")
    elif change == "missing sums":
        del members["SHA256SUMS"]
    elif change == "missing manifest":
        del members["burrow-snapshot"]
    elif change == "later format":
        forge(members, "burrow-snapshot", members["burrow-snapshot"][1].replace(b"burrow-snapshot 1\n", b"burrow-snapshot 9\n"))
    else:
        info, data = members["burrow-snapshot"]
        members["burrow-snapshot"] = (info, data.replace(b"name: moved", b"name: other"))
    refused(api, packed(members))


HOSTILE = {
    "leads up": member("files/../../etc/evil", b"x"),
    "is absolute": member("/etc/evil", b"x"),
    "is a device": member("files/dev/evil", type=tarfile.CHRTYPE, devmajor=1, devminor=1),
    "is a whiteout": member("files/etc/passwd", type=tarfile.CHRTYPE),
    "links to the outside": member("files/hard", type=tarfile.LNKTYPE, linkname="/etc/shadow"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_entry_that(api, taken, kind):
    members = unpacked(export_ok(api, taken["snapshotId"]))
    members["evil"] = HOSTILE[kind]
    refused(api, packed(members))


def test_a_path_through_a_link_goes_nowhere(api, new, taken, made):
    members = unpacked(export_ok(api, taken["snapshotId"]))
    members["door"] = member("files/door", type=tarfile.SYMTYPE, linkname="/etc")
    forge(members, "files/door/evil", b"x")
    answer = bring(api, packed(members), name="bad")
    assert answer.status in (400, 403), str(answer)
    assert new().output("test ! -e /etc/evil && echo clean") == "clean\n"


def test_a_removed_path_that_leads_out_is_refused(api, taken):
    members = unpacked(export_ok(api, taken["snapshotId"]))
    forge(members, "burrow-snapshot", members["burrow-snapshot"][1] + b"removed: ../../etc/passwd\n")
    refused(api, packed(members))


def test_a_runtime_that_is_not_here(api, taken):
    members = unpacked(export_ok(api, taken["snapshotId"]))
    forge(members, "burrow-snapshot", members["burrow-snapshot"][1].replace(b"runtime: base:latest", b"runtime: nonsense:1"))
    answer = bring(api, packed(members), name="bad")
    check_problem(answer, 404, "not_found", "runtime", "nonsense")


def test_another_build_of_the_runtime_needs_force(api, taken, made):
    members = unpacked(export_ok(api, taken["snapshotId"]))
    data = members["burrow-snapshot"][1]
    lines = [b"runtime-hash: " + b"0" * 64 if line.startswith(b"runtime-hash: ") else line for line in data.splitlines()]
    forge(members, "burrow-snapshot", b"\n".join(lines) + b"\n")
    body = packed(members)
    check_problem(bring(api, body, name="forced"), 409, "conflict", "base:latest")
    bring_ok(api, made, body, name="forced", force="1")


# ---- how much ----

MEGA = 1 << 20
SMALL = {"options": ["--disk", "64Mi", "--max-disk", "256Mi"]}


def bomb(api, snapshot, megabytes):
    """A whole archive of zeros, which is small."""
    members = unpacked(export_ok(api, snapshot["snapshotId"]))
    for i in range(0, megabytes, 32):
        forge(members, f"files/zeros-{i}", bytes(32 * MEGA))
    return packed(members)


def test_what_a_larger_disk_had_comes_back(own_server):
    own = own_server(**SMALL)
    sandbox = own.client.create(resources={"disk": "200Mi"})
    sandbox.output("head -c 100M /dev/zero >zeros; truncate -s 90M hole")
    snapshot = own.client.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "large"}).data
    body = export_ok(own.client, snapshot["snapshotId"])
    assert len(body) * 16 < 64 * MEGA, "its size alone would not let it in"
    back = bring_ok(own.client, [], body, name="arrived")
    found = own.client.create(snapshot=back["snapshotId"], resources={"disk": "200Mi"}).output("stat -c %s zeros hole; cmp -n 94371840 zeros hole && echo same")
    assert found == "104857600\n94371840\nsame\n"
    own.end()


def test_more_than_the_largest_disk_is_refused_by_the_name_of_its_setting(own_server, api, taken):
    own = own_server(**SMALL)
    before = own.client.get("/sandbox/snapshots").data["total"]
    answer = bring(own.client, bomb(api, taken, 320), name="bad")
    check_problem(answer, 413, "too_large", "unpacks to more than 268435456 bytes", "--max-disk of 'burrow serve'")
    assert "allow more" in answer.json["remedy"]
    assert own.client.get("/sandbox/snapshots").data["total"] == before
    assert own.client.create().output("echo well") == "well\n"
    own.end()


def test_a_bomb_fills_no_disk(own_server, api, taken):
    own = own_server(options=["--max-disk", "1Gi"])
    answer = bring(own.client, bomb(api, taken, 2560), name="bad")
    check_problem(answer, 413, "too_large", "--max-disk")
    assert own.client.create().output("echo well") == "well\n"
    own.end()


def test_a_key_unpacks_no_more_than_it_may_keep(api, taken):
    key = api.post("/api/v1/keys", {"owner": "small", "quotas": {"diskBytes": "64Mi"}}).json
    small = Client(api.port, key["key"])
    try:
        check_problem(bring(small, bomb(api, taken, 96), name="bad"), 429, "quota_exceeded", "unpacks to more than 67108864 bytes", "--max-disk of 'burrow key'")
    finally:
        api.delete(f"/api/v1/keys/{key['id']}")


def test_an_import_that_breaks_off_leaves_nothing(api, server):
    from client import Raw
    before = total(api)
    with Raw(server.port) as raw:
        raw.send(f"POST /api/v1/snapshots/import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\nContent-Length: 1000000\r\n\r\n".encode() + b"x" * 1000)
        raw.reset()
    assert total(api) == before
