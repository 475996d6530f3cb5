# SPDX-License-Identifier: Apache-2.0
"""Files that are easily lost on the way: through a snapshot, back to a checkpoint, and through export and import."""
import json
import shutil

import pytest
from client import until

# Makes a tree that needs every mark of an overlay, over what the runtime brought too.
MAKE = r"""
import os, shutil
os.chdir("/home/agentuity")
os.makedirs("tree/deep/deeper")
for name in (b"new\nline", b"not-utf8-\xff\xfe", b"tab\there", b"back\\slash", b"-dash", b"space ", "ümläut".encode(), b"n" * 255):
    with open(b"tree/" + name, "wb") as file:
        file.write(name)
os.makedirs(b"tree/dir-\xff\n/in")
open(b"tree/dir-\xff\n/in/file", "w").write("x")
with open("tree/sparse", "wb") as file:
    file.truncate(1 << 30)
    file.seek(300 << 20)
    file.write(b"middle")
with open("tree/first", "w") as file:
    file.write("linked")
os.link("tree/first", "tree/deep/second")
os.link("tree/first", "third")
os.symlink("first", "tree/link")
os.symlink("/nowhere/" + "x" * 3000, "tree/dangling")
os.symlink(b"to-\xff", "tree/odd-link")
os.mkfifo("tree/fifo")
for name, mode in (("set-uid", 0o4755), ("set-gid", 0o2755), ("closed", 0), ("odd", 0o6001)):
    open(f"tree/{name}", "w").write(name)
    os.chmod(f"tree/{name}", mode)
os.mkdir("tree/sticky")
os.chmod("tree/sticky", 0o3777)
os.mkdir("tree/shut")
open("tree/shut/in", "w").write("x")
os.chown("tree/deep/deeper", 1234, 4321)
open("tree/empty", "w")
os.utime("tree/first", ns=(1, 981173106123456789))
os.utime("tree/deep", ns=(1, 10**9))
os.utime("tree/link", ns=(1, 10**9 + 1), follow_symlinks=False)
shutil.rmtree("/usr/share/doc")                                              # a whiteout
shutil.rmtree("/etc/apt"); os.mkdir("/etc/apt"); open("/etc/apt/only", "w")  # an opaque directory
os.rename("/usr/share/perl5", "/usr/share/camel")                            # a redirect in the same directory
os.rename("/usr/share/common-licenses", "/home/agentuity/licenses")          # and to another
os.remove("/etc/issue"); os.mkdir("/etc/issue"); open("/etc/issue/in", "w")  # a directory over a file
shutil.rmtree("/etc/default"); open("/etc/default", "w").write("flat")       # and a file over a directory
os.chmod("tree/shut", 0o100)
"""

# One line a file, as JSON.
TELL = r"""
import hashlib, json, os, stat
def tell(path):
    info = os.lstat(path)
    kind = stat.S_IFMT(info.st_mode)
    content = None
    if kind == stat.S_IFREG:
        with open(path, "rb") as file:
            if info.st_size > (1 << 29):
                file.seek(300 << 20)
            content = hashlib.sha256(file.read(1 << 20)).hexdigest()
    elif kind == stat.S_IFLNK:
        content = os.readlink(path).decode("latin-1")
    is_dir = kind == stat.S_IFDIR
    print(json.dumps([path.decode("latin-1"), oct(info.st_mode), None if is_dir else info.st_nlink, None if is_dir else info.st_size, info.st_uid, info.st_gid,
                      info.st_mtime_ns, content]))
def walk(path):
    tell(path)
    if stat.S_ISDIR(os.lstat(path).st_mode):
        for name in sorted(os.listdir(path)):
            walk(path + b"/" + name)
for top in (b"/home/agentuity", b"/etc", b"/usr/share"):
    walk(top)
"""
BLOCKS = "stat -c %b /home/agentuity/tree/sparse"


def script(sandbox, text):
    ran = sandbox.run("python3", "-c", text)
    assert ran.exit_code == 0, ran
    return ran.stdout.decode()


def tree(sandbox):
    lines = [json.loads(line) for line in script(sandbox, TELL).splitlines()]
    return {line[0]: line[1:] for line in lines}


def differences(one, other):
    return {path: (one.get(path), other.get(path)) for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


@pytest.fixture(scope="module")
def odd(api):
    """A sandbox with such files, what they look like in it, and a snapshot of it."""
    sandbox = api.create(timeout={"idle": "1h"})
    script(sandbox, MAKE)
    snapshot = api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "odd"}).data["snapshotId"]
    yield sandbox, tree(sandbox), snapshot
    api.delete(f"/sandbox/snapshots/{snapshot}")
    sandbox.delete()


def test_through_a_snapshot(new, odd):
    _, before, snapshot = odd
    sandbox = new(snapshot=snapshot)
    assert not differences(before, tree(sandbox))
    assert int(sandbox.output(BLOCKS)) < 1000
    assert sandbox.output("test ! -e /usr/share/doc; ls /etc/apt") == "only\n"


def test_through_a_snapshot_of_a_snapshot(api, new, odd):
    """What the lower one said of directories holds under the upper one."""
    _, before, snapshot = odd
    middle = new(snapshot=snapshot)
    middle.output("cd /home/agentuity; mv tree moved; mkdir -p tree; mv moved/deep tree/deep; rm third; mkdir -p /usr/share/doc; echo back >/usr/share/doc/back; rm -r /etc/apt; mkdir /etc/apt")
    now = tree(middle)
    second = api.post(f"/sandbox/{middle.id}/snapshot", {}).data["snapshotId"]
    try:
        top = new(snapshot=second)
        assert not differences(now, tree(top))
        assert top.output("ls -A /etc/apt /usr/share/doc; cat /home/agentuity/tree/deep/second") == "/etc/apt:\n\n/usr/share/doc:\nback\nlinked"
        assert not differences(before, tree(new(snapshot=snapshot))), "the first is as it was"
    finally:
        api.delete(f"/sandbox/snapshots/{second}")


def test_back_to_a_checkpoint(api, new, odd):
    _, before, snapshot = odd
    sandbox = new(snapshot=snapshot)
    assert api.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "here"}).status == 201
    sandbox.output("cd /home/agentuity; chmod 700 tree/shut; rm -rf tree third /etc/apt; mkdir tree; echo other >tree/first; mkdir -p /usr/share/doc/x")
    assert differences(before, tree(sandbox))
    assert api.post(f"/sandbox/{sandbox.id}/checkpoint/here/restore").status == 200
    assert not differences(before, tree(sandbox))
    assert int(sandbox.output(BLOCKS)) < 1000


@pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not installed")
def test_through_export_and_import(api, new, odd):
    """Pipes do not travel, nor the times of directories that are otherwise the runtime's."""
    _, before, snapshot = odd
    archive = api.get(f"/api/v1/snapshots/{snapshot}/export")
    assert archive.status == 200 and len(archive.body) < 20 << 20
    answer = api.post("/api/v1/snapshots/import", body=archive.body)
    assert answer.status == 201, str(answer)
    try:
        sandbox = new(snapshot=answer.data["id"])
        found = differences({path: seen for path, seen in before.items() if path != "/home/agentuity/tree/fifo"}, tree(sandbox))
        assert set(found) <= {"/etc", "/etc/apt", "/usr/share"} and all(one[:5] == other[:5] for one, other in found.values()), found
        assert int(sandbox.output(BLOCKS)) < 1000
    finally:
        api.delete(f"/sandbox/snapshots/{answer.data['id']}")


def test_extended_attributes(api, new):
    sandbox = new()
    set_them = "import os; os.chdir('/home/agentuity'); open('f', 'w'); os.mkdir('d')\nfor n in 'fd': os.setxattr(n, 'user.note', b'a\\0b')"
    ran = sandbox.run("python3", "-c", set_them)
    if ran.exit_code != 0 and b"[Errno 95]" in ran.stderr:  # EOPNOTSUPP
        pytest.skip("the volume's file system has no attributes of users")
    assert ran.exit_code == 0, ran
    get_them = "import os; os.chdir('/home/agentuity'); print([os.getxattr(n, 'user.note') for n in 'fd'])"
    before = script(sandbox, get_them)
    assert api.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "a"}).status == 201
    snapshot = api.post(f"/sandbox/{sandbox.id}/snapshot", {}).data["snapshotId"]
    script(sandbox, "import os; os.chdir('/home/agentuity'); os.setxattr('f', 'user.note', b'other'); os.removexattr('d', 'user.note')")
    other = new(snapshot=snapshot)
    assert script(other, get_them) == before
    assert api.post(f"/sandbox/{sandbox.id}/checkpoint/a/restore").status == 200
    assert script(sandbox, get_them) == before
    api.delete(f"/sandbox/snapshots/{snapshot}")


@pytest.mark.skipif(not shutil.which("zstd"), reason="zstd is not installed")
def test_a_hundred_thousand_entries(api, new):
    """In many directories and in one, removed in part; through all three ways."""
    sandbox = new()
    script(sandbox, "import os\nos.chdir('/home/agentuity')\nfor d in range(100):\n    os.makedirs(f'many/{d}')\n    for n in range(500):\n"
                    "        open(f'many/{d}/{n}', 'w').write(str(n))\nos.mkdir('one')\nfor n in range(50000):\n    open(f'one/{n}', 'w')")
    count = "find /home/agentuity | wc -l; cat /home/agentuity/many/99/499"
    before = sandbox.output(count)
    assert before == "100103\n499"
    assert api.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "a"}).status == 201
    snapshot = api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "many"}).data["snapshotId"]
    sandbox.output("rm -rf /home/agentuity/one /home/agentuity/many/5*")
    other = new(snapshot=snapshot)
    assert other.output(count) == before
    assert api.get(f"/sandbox/snapshots/{snapshot}").data["fileCount"] == 100000
    assert api.post(f"/sandbox/{sandbox.id}/checkpoint/a/restore").status == 200
    assert sandbox.output(count) == before
    archive = api.get(f"/api/v1/snapshots/{snapshot}/export").body
    back = api.post("/api/v1/snapshots/import", body=archive)
    assert back.status == 201, str(back)
    assert new(snapshot=back.data["id"]).output(count) == before
    for id in (snapshot, back.data["id"]):
        api.delete(f"/sandbox/snapshots/{id}")


def test_taken_while_commands_write(api, new, sandbox):
    """As a power cut would have left it: what was written before what is there is there too, and renamed files are whole."""
    sandbox.job("python3", "-c", "import os\nn = 0\nwhile not os.path.exists('go'):\n    n += 1\n    open('new', 'w').write(f'{n}\\n' * 1000)\n"
                                 "    os.rename('new', f'whole-{n % 7}')\n    open('log', 'a').write(f'{n}\\n')")
    until(lambda: sandbox.read("log").body.startswith(b"1\n"), "it to write")  # the file is there before its first line
    ids = [api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": f"busy-{n}"}).data["snapshotId"] for n in range(5)]
    sandbox.release()
    seen = []
    for id in ids:
        other = new(snapshot=id)
        numbers = other.output("cat log").split()
        assert numbers == [str(n) for n in range(1, len(numbers) + 1)]
        seen.append(len(numbers))
        for name in other.output("ls -d whole-* || :").split():
            lines = other.read(name).body.split()
            assert len(set(lines)) <= 1, f"{name} is of two moments"
        assert api.delete(f"/sandbox/snapshots/{id}").status == 200
    assert seen == sorted(seen) and seen[0] > 0
