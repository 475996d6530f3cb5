# SPDX-License-Identifier: Apache-2.0
"""burrow-sftp by pipes: packet by packet, and with OpenSSH's own sftp (sftp -D runs a server's program directly)."""
import os
import shutil
import stat
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

PROGRAM = Path(os.environ["BURROW"]).resolve().parent / "burrow-sftp"
(INIT, VERSION, OPEN, CLOSE, READ, WRITE, LSTAT, FSTAT, SETSTAT, FSETSTAT, OPENDIR, READDIR, REMOVE, MKDIR, RMDIR, REALPATH, STAT, RENAME, READLINK,
 SYMLINK) = range(1, 21)
STATUS, HANDLE, DATA, NAME, ATTRS = range(101, 106)
EXTENDED, EXTENDED_REPLY = 200, 201
OK, EOF, NO_SUCH_FILE, PERMISSION_DENIED, FAILURE, BAD_MESSAGE, _, _, UNSUPPORTED = range(9)
R, W, APPEND, CREATE, TRUNCATE, EXCLUSIVE = 1, 2, 4, 8, 16, 32


def u32(number):
    return struct.pack(">I", number)


def u64(number):
    return struct.pack(">Q", number)


def text(value):
    value = os.fsencode(value) if not isinstance(value, bytes) else value
    return u32(len(value)) + value


class Rest:
    def __init__(self, data):
        self.data = data

    def u32(self):
        return struct.unpack(">I", self.take(4))[0]

    def u64(self):
        return struct.unpack(">Q", self.take(8))[0]

    def text(self):
        return self.take(self.u32())

    def take(self, count):
        assert count <= len(self.data)
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def attrs(self):
        flags = self.u32()
        assert flags == 15
        size, uid, gid, mode, accessed, modified = self.u64(), self.u32(), self.u32(), self.u32(), self.u32(), self.u32()
        return {"size": size, "uid": uid, "gid": gid, "mode": mode, "atime": accessed, "mtime": modified}


class Session:
    """One program; requests are sent and their answers read."""
    def __init__(self, directory, greet=True):
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=directory)
        self.last = 0
        if greet:
            self.send_raw(bytes([INIT]) + u32(3))
            kind, body = self.read_packet()
            rest = Rest(body)
            assert (kind, rest.u32()) == (VERSION, 3)
            self.extensions = {}
            while rest.data:
                name = rest.text().decode()
                self.extensions[name] = rest.text().decode()

    def send_raw(self, packet):
        self.process.stdin.write(u32(len(packet)) + packet)
        self.process.stdin.flush()

    def read_packet(self):
        head = self.process.stdout.read(4)
        assert len(head) == 4, self.process.stderr.read()
        packet = self.process.stdout.read(struct.unpack(">I", head)[0])
        return packet[0], packet[1:]

    def send(self, kind, *parts):
        self.last += 1
        self.send_raw(bytes([kind]) + u32(self.last) + b"".join(parts))
        return self.last

    def read(self, number):
        kind, body = self.read_packet()
        rest = Rest(body)
        assert rest.u32() == number
        return kind, rest

    def ask(self, kind, *parts):
        return self.read(self.send(kind, *parts))

    def status(self, kind, *parts):
        got, rest = self.ask(kind, *parts)
        assert got == STATUS, got
        return rest.u32()

    def handle(self, kind, *parts):
        got, rest = self.ask(kind, *parts)
        assert got == HANDLE, (got, rest.data)
        return text(rest.text())

    def open(self, path, flags, attrs=u32(0)):
        return self.handle(OPEN, text(path), u32(flags), attrs)

    def extended(self, name, *parts):
        return self.ask(EXTENDED, text(name), *parts)

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


@pytest.fixture
def session(tmp_path):
    made = Session(tmp_path)
    yield made
    assert made.end() == 0


def test_it_says_which_version_and_extensions_it_speaks(session):
    assert session.extensions == {"posix-rename@openssh.com": "1", "statvfs@openssh.com": "2", "fstatvfs@openssh.com": "2", "hardlink@openssh.com": "1",
                                  "fsync@openssh.com": "1", "lsetstat@openssh.com": "1", "limits@openssh.com": "1", "expand-path@openssh.com": "1"}
    kind, rest = session.extended("limits@openssh.com")
    assert kind == EXTENDED_REPLY
    packet, reads, writes, handles = (rest.u64() for _ in range(4))
    assert packet == 256 << 10 and reads == writes == packet - 1024 and handles == 1000


def test_files_are_written_and_read_at_any_place(session, tmp_path):
    handle = session.open("file", R | W | CREATE | TRUNCATE, u32(4) + u32(0o640))
    assert session.status(WRITE, handle, u64(0), text(b"hello")) == OK
    assert session.status(WRITE, handle, u64(1 << 20), text(b"\0\xff" * 1000)) == OK
    kind, rest = session.ask(READ, handle, u64(1), u32(3))
    assert (kind, rest.text()) == (DATA, b"ell")
    kind, rest = session.ask(READ, handle, u64(1 << 20), u32(1 << 30))
    assert (kind, rest.text()) == (DATA, b"\0\xff" * 1000)
    assert session.status(READ, handle, u64(2 << 20), u32(10)) == EOF
    assert session.status(READ, handle, u64((1 << 64) - 1), u32(10)) == BAD_MESSAGE
    assert session.status(WRITE, handle, u64((1 << 64) - 1), text(b"x")) == FAILURE
    kind, rest = session.ask(FSTAT, handle)
    attrs = rest.attrs()
    assert (kind, attrs["size"], stat.filemode(attrs["mode"])) == (ATTRS, (1 << 20) + 2000, "-rw-r-----")
    assert session.extended("fsync@openssh.com", handle)[1].u32() == OK
    assert session.status(CLOSE, handle) == OK
    assert session.status(CLOSE, handle) == NO_SUCH_FILE, "a handle is gone once it is closed"
    again = session.open("file", R)
    assert session.status(READ, handle, u64(0), u32(1)) == NO_SUCH_FILE, "nor does it come back with another file"
    assert session.status(CLOSE, again) == OK
    appended = session.open("file", W | APPEND)
    assert session.status(WRITE, appended, u64(0), text(b"end")) == OK
    assert (tmp_path / "file").read_bytes()[-3:] == b"end" and (tmp_path / "file").read_bytes()[:5] == b"hello"
    assert session.status(OPEN, text("file"), u32(W | CREATE | EXCLUSIVE), u32(0)) == FAILURE


def test_the_largest_packets_go_both_ways(session):
    data = os.urandom((256 << 10) - 1024)
    handle = session.open("large", R | W | CREATE)
    assert session.status(WRITE, handle, u64(0), text(data)) == OK
    assert session.ask(READ, handle, u64(0), u32(1 << 31))[1].text() == data


def test_many_requests_at_once_are_answered_in_order(session, tmp_path):
    (tmp_path / "file").write_bytes(bytes(range(256)) * 64)
    handle = session.open("file", R)
    first = session.last + 1
    packets = b""
    for i in range(1000):
        packet = bytes([READ]) + u32(first + i) + handle + u64(i) + u32(16)
        packets += u32(len(packet)) + packet
    session.process.stdin.write(packets)
    session.process.stdin.flush()
    session.last += 1000
    for i in range(1000):
        kind, rest = session.read(first + i)
        assert kind == DATA and rest.text() == bytes((i + j) % 256 for j in range(16))


def test_directories_are_listed_with_lines_as_of_ls(session, tmp_path):
    names = [f"file-{i:04}-{'x' * (i % 240)}" for i in range(1500)] + ["ünï cödé", os.fsdecode(b"bytes\xff")]
    (tmp_path / "d").mkdir()
    for name in names:
        (tmp_path / "d" / name).touch()
    (tmp_path / "d" / "link").symlink_to("nowhere")
    handle, seen, packets = session.handle(OPENDIR, text("d")), {}, 0
    while True:
        kind, rest = session.ask(READDIR, handle)
        if kind == STATUS:
            assert rest.u32() == EOF
            break
        packets += 1
        for _ in range(rest.u32()):
            name, line, attrs = rest.text(), rest.text().decode(errors="surrogateescape"), rest.attrs()
            seen[os.fsdecode(name)] = line, attrs
        assert not rest.data
    assert set(seen) == {*names, ".", "..", "link"} and 1 < packets < 20
    owner = (tmp_path / "d").owner()
    line, attrs = seen["ünï cödé"]
    assert line.startswith("-rw-") and owner in line and line.endswith("ünï cödé") and stat.S_ISREG(attrs["mode"])
    assert seen["link"][0].startswith("lrwxrwxrwx") and stat.S_ISLNK(seen["link"][1]["mode"])
    assert session.status(CLOSE, handle) == OK
    assert session.status(OPENDIR, text("d/link")) == NO_SUCH_FILE
    plain = session.open("d/ünï cödé", R)
    assert session.status(READDIR, plain) == NO_SUCH_FILE


def test_names_change_links_lead_and_things_go(session, tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    assert session.status(RENAME, text("a"), text("b")) == FAILURE and (tmp_path / "b").read_text() == "b"
    assert session.status(RENAME, text("a"), text("c")) == OK
    assert session.extended("posix-rename@openssh.com", text("c"), text("b"))[1].u32() == OK and (tmp_path / "b").read_text() == "a"
    assert session.extended("hardlink@openssh.com", text("b"), text("hard"))[1].u32() == OK and (tmp_path / "hard").stat().st_nlink == 2
    assert session.status(SYMLINK, text("b"), text("soft")) == OK, "the target comes first, as OpenSSH has it"
    assert os.readlink(tmp_path / "soft") == "b"
    kind, rest = session.ask(READLINK, text("soft"))
    assert (kind, rest.u32(), rest.text()) == (NAME, 1, b"b")
    assert session.ask(LSTAT, text("soft"))[1].attrs()["size"] == 1 and stat.S_ISREG(session.ask(STAT, text("soft"))[1].attrs()["mode"])
    assert session.status(MKDIR, text("d"), u32(4) + u32(0o700)) == OK and stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700
    assert session.status(MKDIR, text("d"), u32(0)) == FAILURE
    assert session.status(REMOVE, text("d")) in (FAILURE, PERMISSION_DENIED) and session.status(RMDIR, text("d")) == OK
    assert session.status(REMOVE, text("soft")) == OK and session.status(REMOVE, text("soft")) == NO_SUCH_FILE


def test_attributes_are_set_by_path_and_by_handle(session, tmp_path):
    (tmp_path / "f").write_text("0123456789")
    (tmp_path / "l").symlink_to("f")
    assert session.status(SETSTAT, text("f"), u32(1 | 4 | 8) + u64(4) + u32(0o4755) + u32(1000) + u32(2000)) == OK
    status = (tmp_path / "f").stat()
    assert (status.st_size, stat.S_IMODE(status.st_mode), status.st_atime, status.st_mtime) == (4, 0o4755, 1000, 2000)
    handle = session.open("f", R | W)
    assert session.status(FSETSTAT, handle, u32(1 | 8) + u64(2) + u32(3000) + u32(4000)) == OK
    assert ((tmp_path / "f").stat().st_size, (tmp_path / "f").stat().st_mtime) == (2, 4000)
    assert session.extended("lsetstat@openssh.com", text("l"), u32(8) + u32(5000) + u32(6000))[1].u32() == OK
    assert (tmp_path / "l").lstat().st_mtime == 6000 and (tmp_path / "f").stat().st_mtime == 4000
    assert session.status(SETSTAT, text("f"), u32(2) + u32(os.getuid()) + u32(os.getgid())) == OK
    assert session.status(SETSTAT, text("f"), u32(0x80000000) + u32(1) + text("name") + text("value")) == OK
    assert session.status(SETSTAT, text("none"), u32(4) + u32(0o600)) == NO_SUCH_FILE


def test_paths_are_resolved(session, tmp_path):
    def name(kind, path, extension=None):
        got, rest = session.extended(extension, text(path)) if extension else session.ask(kind, text(path))
        return (rest.u32(), rest.text())[1].decode() if got == NAME else rest.u32()
    top = os.path.realpath(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "l").symlink_to("d")
    assert name(REALPATH, "") == name(REALPATH, ".") == top
    assert name(REALPATH, "l/../d//new/") == f"{top}/d/new" and name(REALPATH, "l") == f"{top}/d" and name(REALPATH, "/none") == "/none" and name(REALPATH, "/") == "/"
    assert name(REALPATH, "none/none") == NO_SUCH_FILE
    home = os.environ["HOME"]
    assert name(None, "~", "expand-path@openssh.com") == os.path.realpath(home) and name(None, "~/x", "expand-path@openssh.com") == f"{os.path.realpath(home)}/x"
    assert name(None, "~root", "expand-path@openssh.com") == "/root" and name(None, "~nobody-like-this/x", "expand-path@openssh.com") == NO_SUCH_FILE
    kind, rest = session.extended("statvfs@openssh.com", text("."))
    numbers = [rest.u64() for _ in range(11)]
    about = os.statvfs(tmp_path)
    assert kind == EXTENDED_REPLY and numbers[1:3] == [about.f_frsize, about.f_blocks] and numbers[10] == about.f_namemax and not rest.data


def test_a_pipe_does_not_hold_it_up(session, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    handle = session.open("fifo", R)
    assert session.status(READ, handle, u64(0), u32(10)) == FAILURE
    assert session.status(OPEN, text("fifo2"), u32(W), u32(0)) == NO_SUCH_FILE
    assert session.status(CLOSE, handle) == OK
    assert session.status(OPEN, text("fifo"), u32(W), u32(0)) == FAILURE, "there is no reader, and nobody waits for one"


def test_handles_are_bounded(session, tmp_path):
    (tmp_path / "f").touch()
    handles = []
    while True:
        kind, rest = session.ask(OPEN, text("f"), u32(R), u32(0))
        if kind != HANDLE:
            assert rest.u32() == FAILURE
            break
        handles.append(text(rest.text()))
    assert 100 <= len(handles) <= 1000
    for handle in handles:
        assert session.status(CLOSE, handle) == OK
    assert session.status(CLOSE, session.open("f", R)) == OK


@pytest.mark.parametrize("handle", [b"", b"\0" * 7, b"\xff" * 8, b"\0" * 8, b"\0" * 300])
def test_made_up_handles_open_nothing(session, handle):
    for kind, more in ((READ, u64(0) + u32(1)), (WRITE, u64(0) + text(b"x")), (CLOSE, b""), (FSTAT, b""), (FSETSTAT, u32(0)), (READDIR, b"")):
        assert session.status(kind, text(handle), more) == NO_SUCH_FILE


def test_what_is_malformed_or_unknown_is_refused_and_the_session_goes_on(session, tmp_path):
    assert session.status(OPEN, u32(100) + b"short") == BAD_MESSAGE
    assert session.status(OPEN, u32(0xffffffff)) == BAD_MESSAGE
    assert session.status(OPEN, text("f")) == BAD_MESSAGE
    assert session.status(STAT, text(b"a\0b")) == BAD_MESSAGE
    assert session.status(STAT, text("x" * 5000)) == BAD_MESSAGE
    assert session.status(SETSTAT, text("f"), u32(0x80000000) + u32(0xffffffff)) == BAD_MESSAGE
    for kind in (0, 2, 21, 99, 101, 199, 201, 255):
        assert session.status(kind, b"anything") == UNSUPPORTED
    assert session.extended("unknown@example.com", b"more")[1].u32() == UNSUPPORTED
    assert session.status(EXTENDED, u32(1000)) == UNSUPPORTED
    assert session.ask(STAT, text(".") + b"behind it")[0] == ATTRS


@pytest.mark.parametrize("data", [u32(0), u32((256 << 10) + 1), b"\xff" * 4, u32(1) + bytes([INIT]), u32(5) + bytes([STAT]) + u32(1),
                                  (u32(5) + bytes([INIT]) + u32(3)) * 2, b"SSH-2.0-no\r\n" * 10], ids=["none", "long", "longest", "cut", "early", "twice", "text"])
def test_who_does_not_speak_the_protocol_is_hung_up_on(tmp_path, data):
    done = subprocess.run([PROGRAM], input=data, capture_output=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stderr) == (1, b"sftp: what came is no SFTP\n")


def test_the_end_of_input_is_its_end(tmp_path):
    done = subprocess.run([PROGRAM], input=u32(5) + bytes([INIT]) + u32(3) + b"\0\0", capture_output=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"") and len(done.stdout) > 9


def test_it_ends_when_nobody_reads_its_answers(tmp_path):
    session = Session(tmp_path)
    session.process.stdout.close()
    try:
        for _ in range(10000):
            session.send(STAT, text("."))
    except BrokenPipeError:
        pass
    assert session.process.wait(60) == 0
    session.process.stderr.close()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
def test_it_may_what_its_user_may_and_no_more():
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        top.chmod(0o755)
        program = top / "burrow-sftp"
        shutil.copy(PROGRAM, program)
        (top / "secret").write_text("secret")
        (top / "secret").chmod(0o600)
        init = u32(5) + bytes([INIT]) + u32(3)
        def packet(kind, *parts):
            body = bytes([kind]) + u32(7) + b"".join(parts)
            return u32(len(body)) + body
        asked = [packet(OPEN, text("secret"), u32(R), u32(0)), packet(REMOVE, text("secret")), packet(SETSTAT, text("secret"), u32(4) + u32(0o777)),
                 packet(MKDIR, text("d"), u32(0)), packet(SETSTAT, text("secret"), u32(2) + u32(65534) + u32(65534))]
        done = subprocess.run([program], input=init + b"".join(asked), capture_output=True, cwd=top, user=65534, group=65534, extra_groups=[], timeout=60)
        rest = Rest(done.stdout)
        rest.text()
        for _ in asked:
            answer = Rest(rest.text())
            assert (answer.take(1)[0], answer.u32(), answer.u32()) == (STATUS, 7, PERMISSION_DENIED)
        assert (top / "secret").read_text() == "secret" and not (top / "d").exists()


# ---- OpenSSH's sftp ----

def sftp(directory, *commands):
    return subprocess.run(["sftp", "-q", "-b", "-", "-D", str(PROGRAM)], input="\n".join(commands), capture_output=True, text=True, cwd=directory, timeout=300)


def test_openssh_moves_trees_both_ways(tmp_path):
    local, far = tmp_path / "local", tmp_path / "far"
    local.mkdir()
    far.mkdir()
    tree = local / "tree" / "deep" / "er"
    tree.mkdir(parents=True)
    (tree / "large").write_bytes(os.urandom(9 << 20))
    (tree / "empty").touch()
    for i in range(300):
        (tree / f"small {i}").write_text(str(i))
    (tree / "small 0").chmod(0o751)
    done = sftp(local, f"put -rp tree {far}/tree", f"get -rp {far}/tree back", f"ls -l {far}/tree/deep/er", f"df {far}")
    assert done.returncode == 0, done
    for place in (far / "tree", local / "back"):
        assert subprocess.run(["diff", "-r", local / "tree", place]).returncode == 0
    assert stat.S_IMODE((far / "tree/deep/er/small 0").stat().st_mode) == 0o751
    assert (far / "tree/deep/er/large").stat().st_mtime == int((tree / "large").stat().st_mtime)
    assert "small 299" in done.stdout and "Avail" in done.stdout


def test_openssh_does_everything_else(tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "again").write_text(Path(__file__).read_text()[:100])
    done = sftp(tmp_path, "pwd", f"cd {tmp_path}", "mkdir d", "rename a d/b", "ln -s d/b soft", "ln d/b hard", "chmod 600 d/b", "ls -la", "rm hard", f"reput {__file__} again",
                "put -f again synced", "rmdir none-such")
    assert done.returncode == 1 and "none-such" in done.stderr, done
    assert os.readlink(tmp_path / "soft") == "d/b" and (tmp_path / "soft").read_text() == "a" and not (tmp_path / "hard").exists()
    assert stat.S_IMODE((tmp_path / "d/b").stat().st_mode) == 0o600 and "soft" in done.stdout
    assert (tmp_path / "again").read_text() == (tmp_path / "synced").read_text() == Path(__file__).read_text()
