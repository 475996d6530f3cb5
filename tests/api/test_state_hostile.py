# SPDX-License-Identifier: Apache-2.0
"""Attacks on snapshots, checkpoints, builds, imports and diffs by those who may use them, or hold a URL."""
import hashlib
import io
import shutil
import subprocess
import tarfile
import time
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
