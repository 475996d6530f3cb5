# SPDX-License-Identifier: Apache-2.0
"""Archives whose parts contradict each other, made byte by byte: what one reader sees and another does not. Each is taken for what burrow
sees in it or refused with a clear sentence; none leads out, takes long, or is a fault of the server's."""
import hashlib
import io
import shutil
import struct
import subprocess
import zipfile

import pytest
from archives import member, tar_of
from client import query

ABOUT = "burrow-snapshot 1\nname: forged\ntag: latest\nruntime: base:latest\n"
TAKEN, REFUSED = {201}, {400, 403, 413}
needs_zstd = pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not installed")


def bring(api, body):
    return api.post("/api/v1/snapshots/import", body=body, headers={"Content-Type": "application/zstd"})


# ---- tar ----

def sum_line(name, data):
    return f"{hashlib.sha256(data).hexdigest()}  {name}\n".encode()


def pad(data):
    return data + b"\0" * (-len(data) % 512)


def header(name, size, kind, target=b""):
    block = bytearray(512)
    for at, field in ((0, name), (100, b"0000644"), (108, b"0000000"), (116, b"0000000"), (124, b"%011o" % size), (136, b"00000000000"),
                      (148, b" " * 8), (156, kind), (157, target), (257, b"ustar\00000")):
        block[at:at + len(field)] = field
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def extended(kind=b"x", **fields):
    lines = b""
    for name, value in fields.items():
        rest = b" %s=%s\n" % (name.replace("__", ".").encode(), value if isinstance(value, bytes) else value.encode())
        length = len(rest) + len(str(len(rest) + len(str(len(rest)))))
        lines += b"%d%s" % (length, rest)
    return header(b"pax", len(lines), kind) + pad(lines)


def file(name=b"files/a", data=b"", said=None):
    return header(name, len(data) if said is None else said, b"0") + pad(data)


def snapshot(raw, *known, about=ABOUT):
    """An archive with these bytes behind what it must begin with; known are names and contents that have their sums."""
    sums = sum_line("burrow-snapshot", about.encode()) + b"".join(sum_line(name, data) for name, data in known)
    start = tar_of(member("burrow-snapshot", about.encode()), member("SHA256SUMS", sums), compress=False).rstrip(b"\0")
    return pad(start) + raw + b"\0" * 1024


def zstd(plain, *options):
    return subprocess.run(["zstd", "-q", "-c", *options], input=plain, stdout=subprocess.PIPE, check=True).stdout


A = ("files/a", b"")
TARS = {
    "a size in the extended header": (snapshot(extended(size="1024") + file(data=b"A" * 1024, said=1), ("files/a", b"A" * 1024)), TAKEN),
    "a size below nothing": (snapshot(extended(size="-5") + file(data=b"A")), REFUSED),
    "a size beyond all": (snapshot(extended(size=str(1 << 63)) + file(data=b"A")), REFUSED),
    "a length of a line that lies": (snapshot(header(b"pax", 30, b"x") + pad(b"9999999 path=files/x\n") + file()), REFUSED),
    "a path for all that follow": (snapshot(extended(b"g", path="files/../../evil") + file()), REFUSED),
    "a NUL in a path": (snapshot(extended(path=b"files/a\0/../../b") + file(), A), TAKEN | REFUSED),
    "a header of megabytes": (snapshot(extended(comment="c" * (3 << 20)) + file(), A), REFUSED),
    "headers without an end": (snapshot(extended(comment="c") * 50_000 + file(), A), REFUSED),
    "long names without an end": (snapshot((header(b"n", 4, b"L") + pad(b"name")) * 50_000 + file(), A), REFUSED),
    "a sparse file of exabytes": (snapshot(extended(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__name="files/s",
                                                    GNU__sparse__realsize=str(1 << 62)) + file(b"files/s", pad(b"1\n0\n1\n"))), REFUSED),
    "a sparse file that is called otherwise": (snapshot(extended(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__name="../../x",
                                                                 GNU__sparse__realsize="10") + file(b"files/s", pad(b"1\n0\n10\n"))), REFUSED),
    "a hard link with content": (snapshot(file(data=b"x") + header(b"files/h", 1, b"1", b"files/a") + pad(b"x"), ("files/a", b"x")), REFUSED),
    "a hard link through a link": (snapshot(header(b"files/s", 0, b"2", b"/etc") + header(b"files/h", 0, b"1", b"files/s/passwd")), REFUSED),
    "a hard link to a link": (snapshot(header(b"files/s", 0, b"2", b"/etc/shadow") + header(b"files/h", 0, b"1", b"files/s")), REFUSED),
    "a part of another volume": (snapshot(header(b"files/t", 0, b"M")), REFUSED),
    "lines that end as elsewhere": (snapshot(b"", about=ABOUT.replace("\n", "\r\n")), REFUSED),
    "a mark of byte order": (snapshot(b"", about="\ufeff" + ABOUT), REFUSED),
}


def check_clear(answer, expected):
    assert answer.status in expected, str(answer)
    if answer.status >= 300:
        message = answer.json.get("detail") or answer.json["message"]
        assert message.isprintable() and "/volume" not in message and "/tmp/" not in message, str(answer)


@needs_zstd
@pytest.mark.parametrize("what", TARS)
def test_an_import_with(api, made, what):
    plain, expected = TARS[what]
    answer = bring(api, zstd(plain))
    if answer.status == 201:
        made.append(answer.data["id"])
    check_clear(answer, expected)


@needs_zstd
def test_frames_of_zstd_are_read_in_bounds(api, made):
    whole = snapshot(file(), A)
    skipped = struct.pack("<II", 0x184D2A50, 8) + b"skipped!"
    for body, expected in ((zstd(whole[:700]) + zstd(whole[700:]), TAKEN), (skipped + zstd(whole), TAKEN), (zstd(zstd(whole)), TAKEN | REFUSED),
                           (zstd(whole + b"\0" * (1 << 20), "--ultra", "-22", "--long=31"), REFUSED), (zstd(whole)[:-9], REFUSED),
                           (zstd(b""), REFUSED)):
        answer = bring(api, body)
        if answer.status == 201:
            made.append(answer.data["id"])
        check_clear(answer, expected)


# ---- zip ----

def zipped(*items):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, mode in items:
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.external_attr = mode << 16
            archive.writestr(info, data)
    return out.getvalue()


def changed(archive, first=(), directory=()):
    """With other bytes at these places of the first entry's own header, and of its row in the directory at the end."""
    out = bytearray(archive)
    start = out.index(b"PK\1\2")
    for base, edits in ((0, first), (start, directory)):
        for at, data in edits:
            out[base + at:base + at + len(data)] = data
    return bytes(out)


ONE = zipped(("file.txt", b"hello" * 20, 0o100644))
ZIPS = {
    "another name in the directory": changed(ONE, (), [(46, b"../x.txt")]),
    "another name in the entry": changed(ONE, [(30, b"../x.txt")]),
    "names with a NUL": changed(ONE, [(30, b"a\0/../x\0")], [(46, b"a\0/../x\0")]),
    "another size in the directory": changed(ONE, (), [(24, struct.pack("<I", 5))]),
    "a size of gigabytes": changed(ONE, (), [(20, struct.pack("<I", 0x7fffffff)), (24, struct.pack("<I", 0xfffffffe))]),
    "an entry outside of the file": changed(ONE, (), [(42, struct.pack("<I", 0xfffffff0))]),
    "an encrypted entry": changed(ONE, [(6, b"\1\0")], [(8, b"\1\0")]),
    "an unknown method": changed(ONE, [(8, b"\x63\0")], [(10, b"\x63\0")]),
    "more entries than there are": ONE[:-14] + struct.pack("<HH", 60000, 60000) + ONE[-10:],
    "a second end in its comment": ONE[:-2] + struct.pack("<H", 22) + b"PK\5\6" + b"\0" * 18,
    "a link of megabytes": zipped(("l", b"t" * (20 << 20), 0o120777)),
    "a link and a file below it": zipped(("l", b"/etc", 0o120777), ("l/evil", b"x", 0o100644)),
    "a device": zipped(("p", b"", 0o020644)),
    "backslashes": zipped(("a\\..\\..\\evil", b"", 0o100644)),
    "a file and one below it": zipped(("d", b"x", 0o100644), ("d/x", b"y", 0o100644)),
}


@pytest.mark.parametrize("what", ZIPS)
def test_an_upload_of_a_zip_with(api, shared, what):
    where = f"up{list(ZIPS).index(what)}"
    assert api.post(f"/fs/mkdir/{shared.id}", {"path": where}).status == 200
    answer = api.post(f"/fs/upload/{shared.id}?{query(path=where)}", body=ZIPS[what], headers={"Content-Type": "application/zip"})
    check_clear(answer, {200} | REFUSED)
    assert shared.output(f"find {where} ! -type d ! -type f ! -type l; find /etc /home /root /tmp -name evil -o -name x.txt") == ""
