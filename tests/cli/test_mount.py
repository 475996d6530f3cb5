# SPDX-License-Identifier: Apache-2.0
"""--mount: directories of the host in sandboxes, here and on a server, and what hostile ones try with them."""
import ctypes
import grp
import os
import pathlib
import pwd
import shutil
import stat
import subprocess
import threading

import pytest

from test_commands import BURROW, Cli, PATIENCE, burrow, pytestmark, server, servers, work  # noqa: F401
from client import until

OWNER = 51234  # nobody's on this machine
SECRET = "what nobody inside may see"


def allow(path, uid=OWNER, gid=OWNER):
    os.chown(path, uid, gid)
    return path


@pytest.fixture
def shared(tmp_path):
    """A user's directory, below one that everybody may pass, beside a secret."""
    tmp_path.chmod(0o755)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text(SECRET)
    directory = tmp_path / "shared"
    directory.mkdir()
    return allow(directory)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """burrow run on this machine."""
    data = tmp_path_factory.mktemp("local") / "data"

    def run(*words, code=0):
        done = subprocess.run([BURROW, "run", "--local", "--data", data, "--runtime", "host:latest", *map(str, words)],
                              capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        assert done.returncode == code, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done
    run.data = data
    yield run
    subprocess.run([BURROW, "detach", "--data", data], check=True)


# ---- here ----

def test_what_the_sandbox_writes_is_the_owners(local, shared):
    (shared / "theirs").write_text("hello\n")
    allow(shared / "theirs").chmod(0o600)
    done = local("--mount", f"{shared}:/made/for/it", "--", "sh", "-c",
                 "cat /made/for/it/theirs; stat -c %u:%g /made/for/it /made/for/it/theirs; mkdir /made/for/it/d; echo new >/made/for/it/d/f")
    assert done.stdout == "hello\n0:0\n0:0\n"
    for name in ("d", "d/f"):
        found = (shared / name).stat()
        assert (found.st_uid, found.st_gid) == (OWNER, OWNER)
    assert (shared / "d/f").read_text() == "new\n"


def test_what_is_others_stays_theirs(local, shared):
    for name, uid in (("roots", 0), ("anothers", OWNER + 1)):
        (shared / name).write_text(SECRET)
        allow(shared / name, uid, uid).chmod(0o600)
    done = local("--mount", f"{shared}:/m", "--", "sh", "-c",
                 "cd /m; for f in roots anothers; do stat -c %u $f; cat $f; echo x >$f; chmod 666 $f; chown 0 $f; done; echo over")
    assert SECRET not in done.stdout + done.stderr and done.stdout.endswith("over\n")
    assert done.stdout.startswith("65534\n")
    assert [(shared / name).read_text() for name in ("roots", "anothers")] == [SECRET, SECRET]
    assert stat.S_IMODE((shared / "roots").stat().st_mode) == 0o600
    # other users of the sandbox write nothing
    local("--user", "1000", "--mount", f"{shared}:/m", "--", "sh", "-c", "! touch /m/mine")
    assert not (shared / "mine").exists()


def test_read_only_is_read_only(local, shared):
    (shared / "f").write_text("as it was")
    allow(shared / "f")
    done = local("--mount", f"{shared}:/m:ro", "--", "sh", "-c",
                 "cat /m/f; mount -o remount,rw /m; mount -o remount,bind,rw /m; umount /m; mount -t tmpfs none /m; echo x >/m/f; "
                 "chmod 777 /m/f; rm /m/f; touch /m/new; ln /m/f /m/link; mv /m/f /m/g; echo over")
    assert done.stdout == "as it wasover\n"
    assert [path.name for path in shared.iterdir()] == ["f"] and (shared / "f").read_text() == "as it was"


def test_devices_and_set_id_bits_mean_nothing_inside(local, shared):
    os.mknod(shared / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    allow(shared / "null")
    shutil.copy("/usr/bin/id", shared / "id")
    allow(shared / "id").chmod(0o6755)
    done = local("--user", "1000", "--mount", f"{shared}:/m", "--", "sh", "-c", "/m/id -u; /m/id -g; cat /m/null && echo opened; true")
    assert done.stdout.split() == ["1000", "1000"]
    local("--mount", f"{shared}:/m", "--", "sh", "-c", "! mknod /m/mine c 1 3 && ! mknod /m/disk b 8 0 && ! cat /m/null")


def test_links_inside_are_the_sandboxs_and_lead_nobody_outside(local, shared):
    (shared / "out").symlink_to(shared.parent / "outside")
    local("--mount", f"{shared}:/m", "--", "sh", "-c",
          f"! cat /m/out/secret && ! cat /m/../outside/secret && ! cat {shared.parent}/outside/secret && ln -s {shared.parent}/outside /m/planted && ln -s / /m/top")
    # what it planted is not followed by who mounts next
    for name, words in (("planted", "symbolic link"), ("top/etc", "symbolic link")):
        done = local("--mount", f"{shared}/{name}:/x:ro", "--", "ls", "/x", code=125)
        assert words in done.stderr and SECRET not in done.stdout


def test_where_it_may_not_be(local, shared, tmp_path):
    for target in ("/proc", "/proc/self", "/dev/shm", "/sys/x", "/", "/a/../proc", "//proc"):
        done = local("--mount", f"{shared}:{target}", "--", "true", code=125)
        assert "--mount" in done.stderr, target
    assert "one cannot lie in the other" in local("--mount", f"{shared}:/a", "--mount", f"{shared}:/a/b", "--", "true", code=125).stderr
    for source, words in ((local.data, "where burrow keeps things"), (local.data.parent, "where burrow keeps things"), ("/", "keeps things"),
                          ("/run/burrow", "keeps things"), (shared / "none", "No such file"), (tmp_path / "outside/secret", "not a directory")):
        assert words in local("--mount", f"{source}:/m:ro", "--", "true", code=125).stderr, source
    assert "is not LOCAL:SANDBOX[:ro]" in local("--mount", shared, "--", "true", code=125).stderr


def test_no_sandbox_writes_as_root(local, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "f").write_text("root's")
    assert "belongs to root" in local("--mount", f"{tmp_path}:/m", "--", "true", code=125).stderr
    assert local("--mount", f"{tmp_path}:/m:ro", "--", "cat", "/m/f").stdout == "root's"
    # nor as its group
    given = tmp_path / "given"
    given.mkdir()
    allow(given, OWNER, 0)
    assert "the group of root" in local("--mount", f"{given}:/m", "--", "true", code=125).stderr


# Every call that gives a file a mode, with bits that make whoever runs it its owner; -1 is "the directory", 0o102 "write, make".
SET_IDS = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
name, at, how = b"%d", -100, (ctypes.c_uint64 * 3)(0o102, 0o4755, 0)
open("plain", "w").close()
fd = os.open("plain", os.O_RDWR)
for i, call in enumerate([(90, b"plain", 0o4755), (91, fd, 0o2755), (268, at, b"plain", 0o6755), (452, at, b"plain", 0o4755, 0), (2, name % 4, 0o102, 0o4755),
                          (85, name % 5, 0o2755), (257, at, name % 6, 0o102, 0o6755), (257, at, b".", 0o20200002, 0o4755), (437, at, name % 8, how, 24),
                          (133, name % 9, 0o104755, 0), (259, at, name % 10, 0o102755, 0)]):
    ctypes.set_errno(0)
    code = libc.syscall(*call)
    print(i, "made it" if code >= 0 else errno.errorcode[ctypes.get_errno()])
os.chmod("plain", 0o755)
os.close(os.open("more", os.O_CREAT | os.O_WRONLY, 0o1777))
"""


def test_no_program_is_left_that_makes_others_its_owner(local, shared):
    done = local("--mount", f"{shared}:/m", "-w", "/m", "--", "python3", "-c", SET_IDS)
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["EPERM"] * 8 + ["ENOSYS"] + ["EPERM"] * 2
    assert sorted(path.name for path in shared.iterdir()) == ["more", "plain"]
    assert not any(path.stat().st_mode & 0o6000 for path in shared.iterdir())
    # elsewhere they stay what they are: packages want them, and they mean nothing inside
    assert local("--", "sh", "-c", "cd /tmp; touch f; chmod 6755 f; stat -c %a f").stdout == "6755\n"


def test_no_sandbox_writes_as_a_group_of_the_system(local, shared):
    """A set-group-id program that it left there would make everybody on the machine a member."""
    os.chown(shared, OWNER, grp.getgrnam("disk").gr_gid)
    refused = local("--mount", f"{shared}:/m", "--", "touch", "/m/f", code=125)
    assert "which is the system's" in refused.stderr and "chgrp" in refused.stderr
    assert local("--mount", f"{shared}:/m:ro", "--", "ls", "/m").stdout == ""
    daemon = pwd.getpwnam("www-data")  # its group is its own
    allow(shared, daemon.pw_uid, daemon.pw_gid)
    local("--mount", f"{shared}:/m", "--", "touch", "/m/f")
    assert (shared / "f").stat().st_gid == daemon.pw_gid


def test_what_is_mounted_below_stays_outside(local, shared):
    (shared / "sub").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", shared / "sub"], check=True)
    try:
        (shared / "sub/secret").write_text(SECRET)
        assert local("--mount", f"{shared}:/m", "--", "ls", "/m", "/m/sub").stdout == "/m:\nsub\n\n/m/sub:\n"
    finally:
        subprocess.run(["umount", shared / "sub"], check=True)


# ---- on a server ----

@pytest.fixture(scope="module")
def allowed(tmp_path_factory):
    top = tmp_path_factory.mktemp("allowed")
    top.chmod(0o755)
    (top / "outside").mkdir()
    (top / "outside/secret").write_text(SECRET)
    (top / "given").mkdir()
    return top / "given"


@pytest.fixture(scope="module")
def host(tmp_path_factory, allowed):
    server = servers.Server(tmp_path_factory.mktemp("mounts") / "data", options=["--runtime", "host:latest", "--mount-allow", f"/nowhere, {allowed}/"])  # noqa: F811
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(scope="module")
def cli(host, tmp_path_factory):
    return Cli(tmp_path_factory.mktemp("mounter"), BURROW_DATA=str(host.data))


def directory(allowed, name):
    path = allowed / name
    path.mkdir()
    return allow(path)


def test_a_server_gives_no_directory_unless_it_was_allowed(burrow, shared):  # noqa: F811
    told = burrow.error("create", "--mount", f"{shared}:/m", code=4)
    assert "--mount-allow" in told and "BURROW_MOUNT_ALLOW" in told
    assert burrow.json("list", "--name", "m") == []


def test_a_sandbox_has_what_was_allowed(cli, allowed):
    path = directory(allowed, "plain")
    made = cli.json("create", "--name", "plain", "--mount", f"{path}:/data", "--mount", f"{path}:/look:ro")
    assert made["mounts"] == [{"source": str(path), "target": "/data", "readOnly": False}, {"source": str(path), "target": "/look", "readOnly": True}]
    cli("exec", "plain", "--", "sh", "-c", "echo from inside >/data/f; ! touch /look/g")
    assert (path / "f").read_text() == "from inside\n" and (path / "f").stat().st_uid == OWNER
    cli("fs", "cp", path / "f", "plain:/data/up")
    assert (path / "up").stat().st_uid == OWNER
    cli("delete", "plain", "--confirm")
    assert (path / "f").exists()


def test_files_written_for_others_get_no_set_id_bits_there(host, cli, allowed):
    path = directory(allowed, "bits")
    made = cli.json("create", "--name", "bits", "--mount", f"{path}:/data")
    place = f"/api/v1/sandboxes/{made['id']}/files"
    assert host.client.put(f"{place}?mode=6755&path=/data/new", b"x", headers={"Content-Type": "application/octet-stream"}).status < 300
    os.chmod(path / "new", 0o6755)
    cli("fs", "cp", path / "new", "bits:/data/copy")
    assert {found.name: oct(found.stat().st_mode)[-4:] for found in path.iterdir()} == {"new": "6755", "copy": "0755"}
    assert host.client.put(f"{place}?mode=6755&path=/data/new", b"x", headers={"Content-Type": "application/octet-stream"}).status < 300
    assert oct((path / "new").stat().st_mode)[-4:] == "0755"
    cli("delete", "bits", "--confirm")


def test_one_run_has_it_too(host, cli, allowed):
    path = directory(allowed, "run")
    (path / "f").write_text("run")
    url = {"BURROW_URL": f"http://127.0.0.1:{host.port}", "BURROW_API_KEY": host.key}
    far = Cli(pathlib.Path(cli.environment["HOME"]) / "far", **url)
    assert far.text("run", "--mount", f"{path}:/m:ro", "--", "cat", "/m/f") == "run"
    assert "not below a directory" in far.error("run", "--mount", "/etc:/m:ro", "--", "true", code=125)


def test_nothing_outside_the_allowed_directory_can_be_named(cli, allowed):
    path = directory(allowed, "tricks")
    (path / "out").symlink_to(allowed.parent / "outside")
    (path / "file").write_text("")
    for source, words in ((allowed.parent / "outside", "not below"), ("/etc", "not below"), (f"{allowed}-not", "not below"), ("/", "not below"),
                          (f"{allowed}/../outside", "without '..'"), (f"{path}/../../outside", "without '..'"), (f"{path}/out", "symbolic link"),
                          (f"{path}/out/", "symbolic link"), (f"{path}/none", "No such file"), (f"{path}/file", "not a directory")):
        told = subprocess.run([BURROW, "create", "--name", "tricked", "--mount", f"{source}:/m:ro"], capture_output=True, text=True, env=cli.environment,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE)
        assert told.returncode not in (0, 1) and words in told.stderr, (source, told.returncode, told.stderr)
    assert cli.json("list", "--name", "tricked", "--all") == []


def test_a_directory_exchanged_for_a_link_meanwhile_leads_nowhere(host, allowed):
    path = directory(allowed, "race")
    real, link = path / "dir", path / "link"
    (real / "deep").mkdir(parents=True)
    (real / "deep/f").write_text("inside")
    (allowed.parent / "outside/deep").mkdir(exist_ok=True)
    (allowed.parent / "outside/deep/f").write_text(SECRET)
    link.symlink_to(allowed.parent / "outside")
    over = threading.Event()
    libc = ctypes.CDLL(None, use_errno=True)

    def exchange():
        while not over.is_set():
            libc.renameat2(-100, os.fsencode(real), -100, os.fsencode(link), 2)
    thread = threading.Thread(target=exchange)
    thread.start()
    seen = set()
    try:
        for _ in range(40):
            answer = host.client.post("/api/v1/run", {"command": ["cat", "/m/f"], "mounts": [{"source": f"{real}/deep", "target": "/m", "readOnly": True}]},
                                      may_fail=True)
            seen.add(answer.json["stdout"]["text"] if answer.status == 200 else "refused")
    finally:
        over.set()
        thread.join()
    assert seen <= {"inside", "refused"}, seen


def test_nothing_that_is_taken_of_a_sandbox_has_it_and_says_so(cli, allowed):
    path = directory(allowed, "taken")
    (path / "f").write_text("on the host")
    cli("create", "--name", "taken", "--mount", f"{path}:/data")
    cli("exec", "taken", "--", "sh", "-c", "echo own >/own; echo more >/data/more")
    left = "left out: /data, a directory of the host"
    assert left in cli("checkpoint", "create", "taken", "before").stderr.decode()
    assert cli.json("checkpoint", "create", "taken", "second")["leftOut"] == ["/data"]
    assert left in cli("diff", "taken").stderr.decode()
    changed = cli.json("diff", "taken")
    assert changed["leftOut"] == ["/data"] and not [item for item in changed["items"] if item["path"].startswith("/data/")]
    assert left in cli("snapshot", "create", "taken", "--name", "took", "--tag", "took").stderr.decode()
    assert cli.text("run", "--snapshot", "took", "--", "sh", "-c", "cat /own; ls /data") == "own\n"
    assert left in cli("fork", "taken", "--name", "forked").stderr.decode()
    assert cli.json("get", "forked")["mounts"] == []
    assert cli.text("exec", "forked", "--", "sh", "-c", "cat /own; ls /data") == "own\n"
    assert "leftOut" not in cli.json("checkpoint", "create", "forked", "c")
    # and going back leaves the host's files as they are
    cli("checkpoint", "restore", "taken", "before")
    assert cli.text("exec", "taken", "--", "cat", "/data/more") == "more\n"
    for name in ("taken", "forked"):
        cli("delete", name, "--confirm")
    cli("snapshot", "delete", "took", "--confirm")


def test_it_stays_over_pauses_and_restarts_or_says_why_not(host, cli, allowed):
    path = directory(allowed, "lasting")
    cli("create", "--name", "frozen", "--idle-timeout", "0", "--mount", f"{path}:/data")
    made = host.client.post("/api/v1/sandboxes", {"name": "dropped", "idleTimeoutMs": 1, "onIdle": "keep_files",
                                                  "mounts": [{"source": str(path), "target": "/deep/data"}]})
    assert made.status == 201
    cli("pause", "frozen")
    assert host.stop() == 0
    host.start()
    cli("resume", "frozen")
    cli("exec", "frozen", "--", "sh", "-c", "echo after >/data/after")
    assert (path / "after").read_text() == "after\n"

    def is_dropped():
        return cli.json("get", "dropped")["state"] == "paused"
    until(is_dropped, "its box to go")
    assert cli.text("exec", "dropped", "--", "cat", "/deep/data/after") == "after\n"
    until(is_dropped, "its box to go")
    cli("delete", "frozen", "--confirm")
    moved = path.with_name("moved")
    path.rename(moved)
    told = until(lambda: refused(cli), "a box that is wanted again")
    assert "its host directory at '/deep/data' is not to be had" in told and str(path) in told
    # a link in its place is not it
    path.symlink_to(allowed.parent / "outside")
    assert "symbolic link" in refused(cli)
    path.unlink()
    moved.rename(path)
    assert cli.text("exec", "dropped", "--", "cat", "/deep/data/after") == "after\n"
    # where it is no longer allowed
    before, host.options[3] = host.options[3], "/nowhere"
    try:
        assert host.stop() == 0
        host.start()
        assert "--mount-allow" in until(lambda: refused(cli), "a box that is wanted again")
    finally:
        host.options[3] = before
        assert host.stop() == 0
        host.start()
    # a link that it made itself where the directory goes is in the way, and is not followed
    cli("exec", "dropped", "--", "sh", "-c", "mv /deep /gone && ln -s /etc /deep")
    assert "no host directory can be at '/deep/data'" in until(lambda: refused(cli), "a box that is wanted again")
    cli("delete", "dropped", "--confirm")


def refused(cli):
    """What is said when nothing can be run in it; empty while its box still lives."""
    done = subprocess.run([BURROW, "exec", "dropped", "--", "true"], capture_output=True, text=True, env=cli.environment,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE)
    return done.stderr if done.returncode else ""
