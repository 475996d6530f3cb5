# SPDX-License-Identifier: Apache-2.0
"""Whole directories in and out as tar.gz and zip; hostile archives go nowhere."""
import gzip
import io
import os
import stat
import struct
import tarfile
import zipfile

import pytest
from archives import member, tar_of
from client import check_error, query

TREE = {"a.txt": b"alpha", "sub/b.bin": bytes(range(256)), "sub/deep/c": b"", "ünï cödé": b"u"}


def zip_of(entries, modes=None):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (modes or {}).get(name, stat.S_IFREG | 0o644) << 16
            archive.writestr(info, data)
    return out.getvalue()


def upload(api, sandbox, body, path="in", format=None, **kwargs):
    return api.post(f"/fs/upload/{sandbox.id}?{query(path=path, format=format)}", body=body,
                    headers={"Content-Type": "application/octet-stream"}, **kwargs)


def download(api, sandbox, path=".", format=None):
    answer = api.get(f"/fs/download/{sandbox.id}?{query(path=path, format=format)}")
    assert answer.status == 200, str(answer)
    return answer.body


def shown(sandbox, path="in"):
    """What is there: content and name of plain files."""
    return sandbox.output(f"cd {path} && find . -type f -exec sha1sum '{{}}' + | sort")


def names_in(sandbox, path="in"):
    return sorted(sandbox.output(f"[ -e {path} ] && cd {path} && find . -mindepth 1 -printf '%P\\n'; true").splitlines())


# ---- there and back ----

@pytest.mark.parametrize("format", ["tar.gz", "zip", None], ids=["tar.gz", "zip", "default"])
def test_a_directory_is_packed_with_names_relative_to_it(sandbox, api, format):
    sandbox.write_all({f"top/{name}": data for name, data in TREE.items()})
    sandbox.sh("mkdir top/empty; chmod 755 top/a.txt; chmod 600 top/sub/b.bin")
    body = download(api, sandbox, "top", format)
    if format == "zip":
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            assert archive.testzip() is None
            seen = {clean(info.filename): archive.read(info) for info in archive.infolist() if not info.is_dir()}
    else:
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
            members = {clean(info.name): info for info in archive.getmembers()}
            seen = {name: archive.extractfile(info).read() for name, info in members.items() if info.isfile()}
            assert members["a.txt"].mode & 0o777 == 0o755 and members["sub/b.bin"].mode & 0o777 == 0o600
            assert members["empty"].isdir()
    assert seen == TREE


def clean(name):
    return name.removeprefix("./").rstrip("/")


def test_links_are_packed_as_links(sandbox, api):
    sandbox.sh("mkdir d; echo x >d/f; ln -s f d/l; ln -s /etc/passwd d/abs; ln d/f d/hard")
    with tarfile.open(fileobj=io.BytesIO(download(api, sandbox, "d")), mode="r:gz") as archive:
        members = {clean(info.name): info for info in archive.getmembers()}
        assert members["l"].issym() and members["l"].linkname == "f"
        assert members["abs"].issym() and members["abs"].linkname == "/etc/passwd"
        assert {archive.extractfile(members[name]).read() for name in ("f", "hard")} == {b"x\n"}
        assert b"root" not in b"".join(archive.extractfile(info).read() for info in members.values() if info.isfile())


def test_special_files_stay_out_of_a_download_and_do_not_stop_it(sandbox, api):
    sandbox.sh("mkdir d; mkfifo d/pipe; echo x >d/f; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('d/s')\"")
    with tarfile.open(fileobj=io.BytesIO(download(api, sandbox, "d", "tar.gz")), mode="r:gz") as archive:
        members = {clean(info.name): info for info in archive.getmembers()}
        assert {name for name, info in members.items() if not info.isdir()} == {"f"}
        assert archive.extractfile(members["f"]).read() == b"x\n"
    with zipfile.ZipFile(io.BytesIO(download(api, sandbox, "d", "zip"))) as archive:
        assert [info.filename for info in archive.infolist() if not info.is_dir()] == ["f"]
        assert archive.read("f") == b"x\n"


@pytest.mark.parametrize("is_told", [True, False], ids=["told its format", "by its first bytes"])
@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_an_archive_is_unpacked(sandbox, api, kind, is_told):
    body = tar_of(*[member(name, data) for name, data in TREE.items()]) if kind == "tar.gz" else zip_of(TREE)
    answer = upload(api, sandbox, body, "in/new/place", kind if is_told else None)
    assert (answer.status, answer.json) == (200, {"success": True})
    for name, data in TREE.items():
        assert sandbox.read(f"in/new/place/{name}").body == data


def test_modes_links_and_directories_are_kept(sandbox, api):
    body = tar_of(member("bin", mode=0o755, type=tarfile.DIRTYPE), member("bin/run", b"#!/bin/sh\necho ran\n", 0o755),
                  member("private", b"x", 0o600), member("link", type=tarfile.SYMTYPE, linkname="bin/run"),
                  member("./dot", b"y"), member("./", type=tarfile.DIRTYPE, mode=0o755))
    assert upload(api, sandbox, body).status == 200
    assert sandbox.output("in/bin/run; stat -c %a in/private in/bin/run; readlink in/link; cat in/dot") == \
        "ran\n600\n755\nbin/run\ny"


def test_what_was_unpacked_belongs_to_the_user(sandbox, api):
    upload(api, sandbox, tar_of(member("d/f", b"x", uid=0, gid=0, uname="root", gname="root")))
    assert sandbox.output("[ -O in/d/f ] && rm -r in && echo mine") == "mine\n"


def test_an_upload_may_come_in_chunks(sandbox, api):
    body = tar_of(member("f", os.urandom(3 << 20)))
    answer = upload(api, sandbox, (body[i:i + 50000] for i in range(0, len(body), 50000)))
    assert answer.status == 200
    assert sandbox.output("wc -c <in/f").strip() == str(3 << 20)


def test_existing_files_are_replaced_and_others_stay(sandbox, api):
    sandbox.write_all({"in/a": "old", "in/b": "stays"})
    assert upload(api, sandbox, tar_of(member("a", b"new"))).status == 200
    assert sandbox.output("cat in/a in/b") == "newstays"


def test_the_working_directory_is_the_default_place(sandbox, api):
    assert upload(api, sandbox, tar_of(member("here", b"x")), path=None).status == 200
    assert sandbox.read("here").body == b"x"
    assert download(api, sandbox, None)[:2] == b"\x1f\x8b"


def test_what_was_downloaded_can_be_uploaded_again(sandbox, api):
    sandbox.write_all({f"top/{name}": data for name, data in TREE.items()})
    for format in ("tar.gz", "zip"):
        assert upload(api, sandbox, download(api, sandbox, "top", format), f"again-{format}", format).status == 200
        assert shown(sandbox, f"again-{format}") == shown(sandbox, "top")


def test_fifty_megabytes_go_both_ways(new, api):
    sandbox = new()
    data = os.urandom(1 << 20) * 50
    assert upload(api, sandbox, tar_of(member("big", data))).status == 200
    with tarfile.open(fileobj=io.BytesIO(download(api, sandbox, "in")), mode="r:gz") as archive:
        [info] = [info for info in archive.getmembers() if info.isfile()]
        assert archive.extractfile(info).read() == data


def test_an_empty_directory_and_an_empty_archive(sandbox, api):
    sandbox.sh("mkdir empty")
    for format in ("tar.gz", "zip"):
        body = download(api, sandbox, "empty", format)
        assert upload(api, sandbox, body, f"from-{format}", format).status == 200
        assert names_in(sandbox, f"from-{format}") == []


# ---- hostile ----

OUTSIDE = {
    "dots": [member("../escaped", b"x")],
    "many dots": [member("a/../../../../../../../../escaped", b"x")],
    "absolute": [member("/home/agentuity/escaped", b"x")],
    "link, then through it": [member("door", type=tarfile.SYMTYPE, linkname="/home/agentuity"), member("door/escaped", b"x")],
    "link up, then through it": [member("door", type=tarfile.SYMTYPE, linkname=".."), member("door/escaped", b"x")],
    "hard link out": [member("hard", type=tarfile.LNKTYPE, linkname="../canary"), member("hard", b"changed")],
    "hard link absolute": [member("hard", type=tarfile.LNKTYPE, linkname="/home/agentuity/canary"), member("hard", b"changed")],
    "link over a file": [member("f", type=tarfile.SYMTYPE, linkname="../canary"), member("f", b"changed")],
    "pax path": [member("plain", b"x", pax_headers={"path": "../escaped"})],
    "pax link": [member("l", type=tarfile.SYMTYPE, linkname="x", pax_headers={"linkpath": "/home/agentuity"}),
                 member("l/escaped", b"x")],
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_nothing_is_unpacked_outside_the_place(sandbox, api, case):
    sandbox.write_all({"canary": "untouched"})
    upload(api, sandbox, tar_of(*OUTSIDE[case]))
    assert sandbox.output("cat canary") == "untouched"
    assert sandbox.sh("[ -e escaped ] || [ -e /escaped ] || [ -e ../escaped ]").exit_code == 1


@pytest.mark.parametrize("name", ["../escaped", "/home/agentuity/escaped", "a/../../escaped", "..\\escaped"])
def test_nothing_is_unzipped_outside_the_place(sandbox, api, name):
    upload(api, sandbox, zip_of({name: b"x"}))
    assert sandbox.sh("[ -e escaped ] || [ -e /escaped ]").exit_code == 1


def test_a_zipped_link_is_not_followed(sandbox, api):
    sandbox.write_all({"canary": "untouched"})
    upload(api, sandbox, zip_of({"door": "/home/agentuity", "door/canary": b"changed", "door/escaped": b"x"},
                                {"door": stat.S_IFLNK | 0o777}))
    assert sandbox.output("cat canary; ls escaped 2>/dev/null; true") == "untouched"


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_not_made(sandbox, api, kind):
    upload(api, sandbox, tar_of(member("special", type=kind, devmajor=1, devminor=3)))
    assert sandbox.sh("[ -c in/special ] || [ -b in/special ] || [ -p in/special ]").exit_code == 1


def test_set_user_id_bits_give_nobody_rights(sandbox, api):
    upload(api, sandbox, tar_of(member("suid", b"#!/bin/sh\nid -u\n", 0o6755)))
    assert sandbox.output("stat -c %a in/suid").strip() == "755"


def test_marks_of_the_overlay_do_not_survive(sandbox, api):
    body = tar_of(member("f", b"x", pax_headers={"SCHILY.xattr.trusted.overlay.redirect": "/etc",
                                                  "SCHILY.xattr.security.capability": "x", "SCHILY.xattr.user.plain": "y"}),
                  member(".wh.f", b""), member(".wh..wh..opq", b""))
    upload(api, sandbox, body)
    marks = sandbox.sh("python3 -c \"import os; print([n for n in os.listxattr('in/f') if not n.startswith('user.')])\"")
    assert marks.stdout == b"[]\n", marks


@pytest.mark.parametrize("name", ["new\nline", "tab\tname", "a" * 255, "ctrl\x01", "-rf", "*", "%2e%2e"])
def test_odd_names_are_names(sandbox, api, name):
    answer = upload(api, sandbox, tar_of(member(name, b"odd")))
    assert answer.status == 200, str(answer)
    assert sandbox.read(f"in/{name}").body == b"odd"


@pytest.mark.parametrize("name", ["a" * 256, "", ".", ".."])
def test_impossible_names_are_refused(sandbox, api, name):
    check_error(upload(api, sandbox, tar_of(member(name, b"x"))), 400, "INVALID_ARGUMENT")
    assert names_in(sandbox) == []


def test_a_path_longer_than_the_kernel_takes_is_unpacked_part_by_part(sandbox, api):
    assert upload(api, sandbox, tar_of(member("/".join(["b" * 200] * 25), b"deep"))).status == 200
    assert sandbox.output("find in -type f -execdir cat '{}' ';'") == "deep"


def test_duplicates_end_with_the_last(sandbox, api):
    assert upload(api, sandbox, tar_of(member("f", b"first"), member("f", b"last"))).status == 200
    assert sandbox.read("in/f").body == b"last"


def test_a_sparse_exabyte_is_refused(sandbox, api):
    header = member("huge", pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "huge",
                                         "GNU.sparse.realsize": str(1 << 60)})
    answer = upload(api, sandbox, tar_of((header[0], b"")))
    check_error(answer, 400, "INVALID_ARGUMENT")
    assert int(sandbox.output("du -sk . | cut -f1")) < 9999
    assert sandbox.run("true").exit_code == 0


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_a_bomb_fills_no_more_than_the_disk_of_the_sandbox(new, api, kind, server):
    sandbox = new(resources={"disk": "32Mi"})
    filler = b"\1" * (300 << 20)  # zeros would become a hole
    body = gzip.compress(tar_of(member("filler", filler), compress=False), 6) if kind == "tar.gz" else zip_of({"filler": filler})
    assert len(body) < 2 << 20
    answer = upload(api, sandbox, body)
    assert 400 <= answer.status < 500, str(answer)
    sandbox.sh("rm -rf in")
    sandbox.write_all({"small": "fits"})


def test_bombs_in_bombs_stay_packed(sandbox, api):
    inner = zip_of({f"{n}": b"\0" * 100000 for n in range(10)})
    assert upload(api, sandbox, zip_of({f"{n}.zip": inner for n in range(10)})).status == 200
    assert len(names_in(sandbox)) == 10


def test_twenty_thousand_entries_are_unpacked(sandbox, api):
    answer = upload(api, sandbox, tar_of(*[member(f"d{n % 100}/{n}") for n in range(20000)]))
    assert answer.status == 200, str(answer)
    assert sandbox.output("find in -type f | wc -l").strip() == "20000"


# ---- refusals ----

@pytest.mark.parametrize("body", [b"", b"x", b"not an archive" * 100, b"\x1f\x8b\x08\x00" + b"\0" * 50, b"PK\x03\x04junk" * 10,
                                  os.urandom(5000), gzip.compress(b"plain text, zipped" * 100), b"\x1f\x8b"],
                         ids=["empty", "x", "text", "gzip head", "zip head", "noise", "gzip of text", "two bytes"])
def test_what_is_no_archive_is_refused(sandbox, api, body):
    for format in (None, "tar.gz", "zip"):
        check_error(upload(api, sandbox, body, format=format), 400, "INVALID_ARGUMENT")


def test_a_damaged_archive_is_refused(sandbox, api):
    whole = tar_of(member("f", os.urandom(200000)))
    check_error(upload(api, sandbox, whole[:len(whole) // 2]), 400, "INVALID_ARGUMENT")
    broken = bytearray(whole)
    broken[len(broken) // 2] ^= 0xff
    check_error(upload(api, sandbox, bytes(broken)), 400, "INVALID_ARGUMENT")
    zipped = zip_of({"f": os.urandom(200000)})
    check_error(upload(api, sandbox, zipped[:1000]), 400, "INVALID_ARGUMENT")


def test_the_wrong_format_is_refused(sandbox, api):
    check_error(upload(api, sandbox, zip_of({"f": b"x"}), format="tar.gz"), 400, "INVALID_ARGUMENT")
    check_error(upload(api, sandbox, tar_of(member("f", b"x")), format="zip"), 400, "INVALID_ARGUMENT")
    check_error(upload(api, sandbox, tar_of(member("f", b"x")), format="rar"), 400, "INVALID_ARGUMENT", "format")
    check_error(api.get(f"/fs/download/{sandbox.id}?path=.&format=rar"), 400, "INVALID_ARGUMENT", "format")


def test_a_missing_directory_is_not_found(sandbox, api):
    check_error(api.get(f"/fs/download/{sandbox.id}?path=nowhere"), 404, "FILE_NOT_FOUND")


def test_a_place_that_is_a_file_is_refused(sandbox, api):
    sandbox.write_all({"f": "x"})
    answer = upload(api, sandbox, tar_of(member("g", b"x")), "f")
    assert answer.status == 400, str(answer)
    assert sandbox.read("f").body == b"x"


def test_an_upload_that_breaks_off_leaves_the_server_well(sandbox, api):
    from client import Raw
    for _ in range(5):
        raw = Raw(api.port)
        raw.send(f"POST /fs/upload/{sandbox.id}?path=in HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n"
                 "Content-Length: 1000000\r\n\r\nsome".encode())
        raw.reset()
    assert sandbox.run("true").exit_code == 0
    assert names_in(sandbox) == []


def test_downloads_of_a_tree_without_end_are_bounded(new, api):
    sandbox = new()
    sandbox.sh("mkdir d; truncate -s 4T d/sparse")
    answer = api.get(f"/fs/download/{sandbox.id}?path=d", timeout=120)
    assert 400 <= answer.status < 500, answer.status
