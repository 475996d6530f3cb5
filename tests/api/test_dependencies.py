# SPDX-License-Identifier: Apache-2.0
"""Packages that a sandbox asks for: really installed, from the machine's own mirror, in a box that reaches nothing else."""
import fcntl
import os
import pathlib
import shutil
import subprocess
import threading
import time
import uuid

import pytest

import oci
from archives import member, tar_of
from client import check_error, until
from server import BURROW, CACHE, borrow_runtimes


@pytest.fixture(scope="module", autouse=True)
def clean():
    yield
    for layer in (CACHE / "runtimes" / ".layers").glob("*dep-*"):
        shutil.rmtree(layer) if layer.is_dir() else layer.unlink()


@pytest.fixture(scope="module")
def mirror():
    """Skips where no mirror can be reached, and no other server can say why."""
    done = subprocess.run(["apt-get", "update", "-q", "-o", "Dir::State::lists=/tmp/burrow-no-lists", "--print-uris"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this machine has no apt sources")


def has_no_mirror(said):
    """By what is said where the machine's mirror does not answer; anything else is a failure."""
    return any(words in said for words in ("no package mirror", "is not known", "Temporary failure"))


def made(server, **fields):
    """A sandbox that is up, or has failed."""
    answer = server.client.post("/sandbox", fields)
    assert answer.status == 201, str(answer)
    sandbox = server.client.sandbox(answer.data["sandboxId"])
    until(lambda: sandbox.get()["status"] != "creating", "the packages to be installed", seconds=180)
    return sandbox, answer.data["status"]


def test_apt_packages_are_there_once_installed_and_the_second_time_at_once(server, mirror):
    first, status = made(server, dependencies=["figlet"])
    if "no package mirror" in server.log or "is not known" in server.log:
        pytest.skip("no mirror can be reached")
    assert status == "creating"
    assert first.get()["status"] == "idle", server.log
    assert first.get()["dependencies"] == ["figlet"]
    assert first.run("figlet", "x").exit_code == 0
    second, status = made(server, dependencies=["figlet"])
    assert status == "idle", "installed again"
    assert second.run("figlet", "y").exit_code == 0
    # A sandbox of a snapshot of it has them too.
    snapshot = server.client.post(f"/sandbox/{second.id}/snapshot", {"name": "with-figlet"}).data["snapshotId"]
    third, _ = made(server, snapshot=snapshot)
    assert third.run("figlet", "z").exit_code == 0
    # And `burrow run`, without a server, finds what was installed for one.
    done = subprocess.run([BURROW, "run", "--data", server.data, "--dependency", "figlet", "--", "figlet", "w"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    for sandbox in (first, second, third):
        sandbox.delete()
    server.client.delete(f"/sandbox/snapshots/{snapshot}")


def test_the_command_line_waits_until_they_are_there(server, mirror):
    words = ["--url", f"http://127.0.0.1:{server.port}", "--api-key", server.key, "--dependency"]

    def burrow(*line):
        return subprocess.run([BURROW, *line], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    first = burrow("run", *words, "hello", "--", "hello")
    if "no package mirror" in server.log or "is not known" in server.log or "could not be installed" in first.stderr:
        pytest.skip("no mirror can be reached")
    assert (first.returncode, first.stdout) == (0, "Hello, world!\n") and "is being made" in first.stderr, first.stderr
    again = burrow("run", *words, "hello", "--", "hello")
    assert (again.returncode, again.stdout, again.stderr) == (0, "Hello, world!\n", "")
    assert burrow("create", *words, "hello", "--name", "with-hello").returncode == 0
    assert burrow("delete", *words[:4], "with-hello").returncode == 0
    failed = burrow("run", *words, "no-such-package-at-all", "--", "true")
    assert failed.returncode == 2 and "no-such-package-at-all" in failed.stderr, failed.stderr


def test_a_package_that_does_not_exist_fails_it_by_its_name(server, mirror):
    sandbox, status = made(server, dependencies=["no-such-package-of-debian"])
    assert (status, sandbox.get()["status"]) == ("creating", "failed")
    assert "no-such-package-of-debian" in server.log


@pytest.mark.parametrize("fields, words", [
    ({"dependencies": ["--purge"]}, ["dependencies", "--purge"]),
    ({"dependencies": ["a;b"]}, ["dependencies", "a;b"]),
    ({"dependencies": ["x"] * 101}, ["dependencies", "100"]),
    ({"packages": ["../x"], "runtime": "node:lts"}, ["packages", "../x"]),
    ({"packages": ["typescript"]}, ["packages", "neither npm nor bun", "node:lts", "bun:1"]),
    ({"packages": ["typescript"], "runtime": "base:latest"}, ["packages", "neither npm nor bun"]),
])
def test_what_cannot_be_is_refused_with_a_sentence(api, fields, words):
    check_error(api.post("/sandbox", fields), 400, "INVALID_ARGUMENT", *words)


def test_a_build_of_a_snapshot_has_its_packages(server, api, mirror):
    begun = api.post("/sandbox/snapshots/build", {"runtime": "base:latest", "name": "built-with-packages"}).data
    api.put(begun["uploadUrl"], tar_of(member("a.txt", b"a")), key=None, headers={"Content-Type": "application/gzip"})
    end = f"/sandbox/snapshots/{begun['snapshotId']}/finalize"
    final = {"sizeBytes": 1, "fileCount": 1, "files": []}
    try:
        answer = api.post(end, {**final, "dependencies": ["figlet"]}, may_fail=True)
        if answer.status != 200 and ("is not known" in str(answer.json) or "could not be installed" in str(answer.json)):
            pytest.skip("no mirror can be reached")
        assert answer.status == 200, str(answer)
        sandbox, _ = made(server, snapshot=begun["snapshotId"])
        assert sandbox.run("figlet", "x").exit_code == 0
        assert sandbox.run("cat", "a.txt").exit_code == 0
        sandbox.delete()
    finally:
        api.delete(f"/sandbox/snapshots/{begun['snapshotId']}")


# ---- packages that nobody uses ----

def old_layer():
    """One that was used last a year ago, like those that installing leaves."""
    layer = CACHE / "runtimes" / ".layers" / f"dep-{uuid.uuid4().hex}"
    (layer / "rootfs").mkdir(parents=True)
    manifest = (CACHE / "runtimes" / "base" / "latest" / "manifest").read_text()
    (layer / "manifest").write_text(manifest)
    year_ago = time.time() - 365 * 24 * 3600
    os.utime(layer / "manifest", (year_ago, year_ago))
    return layer


def test_what_nobody_used_goes_by_itself_and_what_a_box_has_stays(own_server):
    kept, gone = old_layer(), old_layer()
    with open(kept / "manifest") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        server = own_server()
        until(lambda: not gone.exists(), "the server to remove it", seconds=180)
        assert kept.exists(), "a box has it"
    server.end()
    shutil.rmtree(kept, ignore_errors=True)


def test_a_trial_of_pruning_counts_them(api):
    def is_counted():
        """The server itself may be quicker: then again."""
        layer = old_layer()
        freed = api.post("/api/v1/system/prune", {"dryRun": True}).data["freed"]["runtimes"]
        return layer.exists() and freed["count"] >= 1 and freed["bytes"] > 0
    until(is_counted, "a trial to count it")
    layer = old_layer()
    assert api.post("/api/v1/system/prune", {}).status == 200
    until(lambda: not layer.exists(), "it to be gone")


def test_the_other_wire_says_to_come_again_until_they_are_there(server, api, mirror):
    refused = api.post("/api/v1/sandboxes", {"dependencies": ["--purge"]})
    assert refused.status == 400 and "--purge" in refused.json["detail"], str(refused)
    answers = []

    def is_over():
        answers.append(api.post("/api/v1/sandboxes", {"dependencies": ["figlet"]}, may_fail=True))
        return answers[-1].status != 503
    until(is_over, "the packages to be installed", seconds=180)
    if answers[-1].status != 201 and "is not known" in str(answers[-1].json):
        pytest.skip("no mirror can be reached")
    assert answers[-1].status == 201, str(answers[-1])
    sandbox = api.sandbox(answers[-1].json["id"])
    assert sandbox.run("figlet", "x").exit_code == 0
    sandbox.delete()


def test_names_are_looked_up_in_the_mirrors_lists(server, api, mirror):
    wanted = ["git", "no-such-package-of-debian", "figlet:amd64", "curl=1.2", "awk"]
    answers = []

    def is_told():
        """Where another server of the suite is just asking, or the mirror does not answer, all pass."""
        answers.append(api.post("/cli/validate/apt-dependencies", {"packages": wanted}, key=None).data)
        return answers[-1]["invalid"] or "is not known" in server.log or "could not be installed" in server.log
    until(is_told, "the names to be looked up", seconds=180)
    if not answers[-1]["invalid"]:
        pytest.skip("no mirror can be reached")
    assert [one["package"] for one in answers[-1]["invalid"]] == ["no-such-package-of-debian"]
    assert answers[-1]["valid"] == ["git", "figlet:amd64", "curl=1.2", "awk"]
    assert "no such package" in answers[-1]["invalid"][0]["error"]


# ---- npm ----

@pytest.fixture
def with_npm(own_server):
    """A server, and a runtime with Debian's npm: the lightest that there is."""
    server = own_server()
    name = f"with-npm-{uuid.uuid4().hex[:8]}"
    subprocess.run([BURROW, "runtime", "build", "npm-tool", "--data", CACHE], check=True, timeout=900, stdout=subprocess.DEVNULL)
    (server.data / "catalog").mkdir(exist_ok=True)
    (server.data / "catalog" / f"{name}.yaml").write_text(
        f"name: {name}\ndescription: d\nbuild:\n  kind: layer\n  from: npm-tool:latest\n  npm: [\"is-number@7.0.0\"]\n")
    yield server, name
    server.end()
    for rest in (CACHE / "runtimes").glob(f"*{name}*"):
        shutil.rmtree(rest) if rest.is_dir() else rest.unlink()


def test_an_npm_package_is_there_once_installed(with_npm):
    server, name = with_npm
    sandbox, status = made(server, runtime=name, packages=["nanoid@3.3.7"])
    if sandbox.get()["status"] == "failed" and any(word in server.log for word in ("is not known", "ENOTFOUND", "ETIMEDOUT", "ECONN", "EAI_AGAIN")):
        pytest.skip("npm's registry cannot be reached")
    assert (status, sandbox.get()["status"]) == ("creating", "idle"), server.log
    assert sandbox.get()["packages"] == ["nanoid@3.3.7"]
    done = sandbox.run("nanoid", "--size", "12")
    assert done.exit_code == 0, done
    sandbox.delete()
    failed, _ = made(server, runtime=name, packages=["no-such-package-of-npm-at-all"])
    assert failed.get()["status"] == "failed" and "no-such-package-of-npm-at-all" in server.log


def test_a_mirror_that_is_gone_is_said_and_no_package_is_blamed(tmp_path):
    """In a network without a way out, as of a machine whose mirror does not answer."""
    data, name = tmp_path / "data", f"a{uuid.uuid4().hex[:8]}"  # a list that nobody has installed
    borrow_runtimes(data)
    before = {path for path in (CACHE / "runtimes" / ".layers").glob("*dep-*") if path.is_dir()}
    try:
        done = subprocess.run(["unshare", "-n", BURROW, "run", "--local", "--data", data, "--dependency", name, "--", "true"],
                              capture_output=True, text=True, timeout=180)
        assert done.returncode not in (0, 127), done.stderr
        said = done.stderr.splitlines()[-1]
        assert "Unable to locate package" not in said and name not in said, said
        assert "where packages come from, is not known" in said or "could not be installed: E: " in said, said
        assert {path for path in (CACHE / "runtimes" / ".layers").glob("*dep-*") if path.is_dir()} == before
        plain = subprocess.run([BURROW, "run", "--local", "--data", data, "--", "echo", "usable"], capture_output=True, text=True, timeout=180)
        assert plain.stdout == "usable\n", plain.stderr
    finally:
        subprocess.run([BURROW, "detach", "--data", data], check=False)


class Cramped:
    """A data directory in which layers of packages, or the volume that they are installed on, have little room."""

    def __init__(self, data, kind):
        self.data, self.layers = data, data / "runtimes/.layers"
        self.layers.mkdir(parents=True)
        (data / "runtimes/base").symlink_to(CACHE / "runtimes/base")
        self.is_mounted = kind == "layers"
        if self.is_mounted:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", self.layers], check=True)
        else:
            self.make_volume(130)

    def make_volume(self, mebibytes):
        image = self.data / "volume.img"
        image.unlink(missing_ok=True)
        with image.open("wb") as file:
            file.truncate(mebibytes << 20)
        subprocess.run(["mkfs.btrfs", "--quiet", "--nodiscard", "--metadata", "single", image], check=True, stdout=subprocess.DEVNULL)

    def kept(self):
        return {path.name for path in self.layers.iterdir() if not path.name.startswith(".lock")}

    def relieve(self):
        """There is room again. Of a volume: another, while nobody has it."""
        if self.is_mounted:
            subprocess.run(["umount", self.layers], check=True)
            self.is_mounted = False
        else:
            subprocess.run([BURROW, "detach", "--data", self.data], check=True)
            self.make_volume(4096)

    def end(self):
        if self.is_mounted:
            subprocess.run(["umount", "-l", self.layers], check=True)
        subprocess.run([BURROW, "detach", "--data", self.data], check=False)


@pytest.mark.skipif(not shutil.which("mkfs.btrfs"), reason="mkfs.btrfs is not installed")
@pytest.mark.parametrize("how", ["prune", "install"])
def test_what_a_killed_install_left_goes(tmp_path, own_server, mirror, how):
    """Its box ends with it; what that had written, a gigabyte perhaps, would stay until somebody wants the same list."""
    place = Cramped(tmp_path / "data0", "volume")
    place.make_volume(2048)
    words = [BURROW, "run", "--local", "--data", place.data, "--dependency"]
    try:
        killed = subprocess.Popen([*words, "figlet", "--", "true"], stderr=subprocess.PIPE, text=True)
        said = []
        while not said or "installing packages" not in said[-1]:
            said.append(killed.stderr.readline())
            if not said[-1] and has_no_mirror("".join(said)):
                pytest.skip("no mirror can be reached")
            assert said[-1], "".join(said)
        killed.kill()
        killed.communicate()
        left = list((place.data / "volume/scratch").glob("install-*"))
        assert len(left) == 1
        (place.layers / left[0].name.replace("install-", ".new-dep-")).mkdir()
        if how == "prune":
            server = own_server()
            assert server.client.post("/api/v1/system/prune", {}).status == 200
            assert not left[0].exists() and not place.kept()
            server.end()
        else:
            done = subprocess.run([*words, "hello", "--", "hello"], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            assert not left[0].exists() and len(place.kept()) == 1
    finally:
        place.end()


SAID = {"layers": "keep packages in", "volume": "the volume has no room left to install packages"}


@pytest.fixture(params=[kind if kind == "layers" or shutil.which("mkfs.btrfs") else
                        pytest.param(kind, marks=pytest.mark.skip(reason="mkfs.btrfs is not installed")) for kind in SAID])
def cramped(request, tmp_path):
    place = Cramped(tmp_path / "data0", request.param)
    place.said = SAID[request.param]
    yield place
    place.end()


def test_a_full_disk_is_the_machines_fault_and_leaves_nothing_of_packages(cramped, mirror):
    words = [BURROW, "run", "--local", "--data", cramped.data, "--dependency", "figlet", "--", "figlet", "x"]
    failed = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if has_no_mirror(failed.stderr):
        pytest.skip("no mirror can be reached")
    assert failed.returncode == 125 and cramped.said in failed.stderr and "No space left" in failed.stderr, failed.stderr
    assert not cramped.kept()
    cramped.relieve()
    again = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0, again.stderr
    assert len(cramped.kept()) == 1


def test_a_server_whose_disk_is_full_says_so_and_works_once_there_is_room(cramped, own_server, mirror):
    server = own_server(options=["--parked-one-shot", "0", "--parked-kept", "0"])
    sandbox, status = made(server, dependencies=["figlet"])
    if has_no_mirror(server.log):
        pytest.skip("no mirror can be reached")
    assert (status, sandbox.get()["status"]) == ("creating", "failed") and cramped.said in server.log, server.log
    assert not cramped.kept()

    def answer():
        got = server.client.post("/api/v1/sandboxes", {"dependencies": ["figlet"]}, may_fail=True)
        return got.status != 503 and got
    told = until(answer, "the packages to fail", seconds=180)
    assert (told.status, told.json["code"]) == (507, "no_space"), str(told)
    assert not cramped.kept()
    plain = server.client.create()
    assert plain.run("echo", "usable").exit_code == 0
    plain.delete()
    server.stop()
    cramped.relieve()
    server.start()
    sandbox, _ = made(server, dependencies=["figlet"])
    assert sandbox.run("figlet", "x").exit_code == 0
    sandbox.delete()


needs_apt_image = pytest.mark.skipif(not (oci.BUSYBOX.exists() and shutil.which("mkfs.btrfs")), reason="busybox-static or mkfs.btrfs is not installed")


def add_apt(place, image, script):
    """An image whose `apt-get install` is this script; the words of `burrow run` that ask for a package of it."""
    script = f"#!/bin/sh\n[ $1 = update ] && exit\n{script}\n"
    tools = [oci.symlink(f"bin/{tool}", "busybox") for tool in ("cp", "fallocate")]
    oci.simple(image, oci.layer(oci.entry("tmp", mode=0o1777), oci.entry("usr"), oci.entry("usr/bin"), oci.entry("usr/bin/apt-get", script, mode=0o755),
                                *tools, oci.entry("etc"), oci.entry("etc/apt"), oci.entry("etc/apt/sources.list", "deb http://192.0.2.1/ any main\n")))
    subprocess.run([BURROW, "runtime", "add", "apt", "--from", f"oci:{image}", "--data", place.data], check=True, capture_output=True)
    return [BURROW, "run", "--local", "--data", place.data, "--runtime", "apt", "--dependency"]


FORETOLD = "echo \"E: You don't have enough free space in /var/cache/apt/archives/.\"; exit 100"  # before it writes anything
FILLED = "i=0; while fallocate -l 128M /tmp/$i 2>/dev/null; do i=$((i+1)); done; echo 'E: write (28: No space left on device)'; exit 100"
VOLUMES, LIMIT = "the volume has no room left to install packages: E: ", "packages: what they need does not fit into 8 GiB: E: "


@needs_apt_image
@pytest.mark.parametrize("script", [FORETOLD, FILLED], ids=["foretold", "filled"])
@pytest.mark.parametrize("mebibytes, said", [(1024, VOLUMES), (16384, LIMIT)], ids=["volume", "box"])
def test_whose_room_it_was_is_said(tmp_path, script, mebibytes, said):
    if shutil.disk_usage(tmp_path).free < 10 << 30:
        pytest.skip("the disk has less than 10 GiB left")
    place = Cramped(tmp_path / "data", "volume")
    place.make_volume(mebibytes)
    try:
        run = add_apt(place, tmp_path / "image", script)
        done = subprocess.run([*run, "x", "--", "/bin/true"], capture_output=True, text=True, timeout=300)
        assert done.returncode == 125 and said in done.stderr, (done.returncode, done.stderr)
        assert not [name for name in place.kept() if "dep-" in name]
    finally:
        place.end()


@needs_apt_image
def test_locks_of_installs_go_and_never_from_under_somebody(tmp_path):
    place = Cramped(tmp_path / "data", "volume")
    place.make_volume(1024)

    def locks():
        return [path.name for path in place.layers.glob(".lock-dep-*")]
    try:
        run = add_apt(place, tmp_path / "image", "for word; do last=$word; done; [ $last = good ]; exit")
        (place.layers / f".lock-dep-{'0' * 32}").touch()  # of one that was killed
        assert subprocess.run([*run, "bad", "--", "/bin/true"], capture_output=True, check=False).returncode == 125 and not locks()
        subprocess.run([*run, "good", "--", "/bin/true"], check=True, capture_output=True)
        assert not locks()
        layer, = place.layers.glob("dep-*")
        shutil.rmtree(layer)
        # Who waits for a lock whose file goes takes the next by that name, which another may have before him.
        lock = place.layers / f".lock-{layer.name}"
        with lock.open("w") as first, open(tmp_path / "next", "w") as second:
            fcntl.flock(first, fcntl.LOCK_EX)
            fcntl.flock(second, fcntl.LOCK_EX)
            waiting = subprocess.Popen([*run, "good", "--", "/bin/true"], stderr=subprocess.DEVNULL)

            def has_open(file):
                assert waiting.poll() is None, "it has not waited"
                fds = pathlib.Path(f"/proc/{waiting.pid}/fd")
                return any(os.path.samestat(fd.stat(), os.fstat(file.fileno())) for fd in fds.iterdir() if os.path.exists(fd))
            try:
                until(lambda: has_open(first), "it to wait for the first lock")
                os.rename(tmp_path / "next", lock)
                fcntl.flock(first, fcntl.LOCK_UN)
                until(lambda: has_open(second), "it to wait for the next lock")
                assert not layer.exists() and lock.exists()
                fcntl.flock(second, fcntl.LOCK_UN)
                assert waiting.wait(300) == 0
            finally:
                waiting.kill()
                waiting.wait()
        assert layer.exists() and not locks()
    finally:
        place.end()


def test_two_who_ask_for_the_same_list_at_once_have_it_installed_once(own_server, mirror):
    server = own_server()
    sandboxes, problems = [], []

    def ask():
        try:
            sandboxes.append(made(server, dependencies=["toilet"])[0])
        except AssertionError as problem:
            problems.append(problem)
    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert not problems, problems
    if "no package mirror" in server.log:
        pytest.skip("no mirror can be reached")
    for sandbox in sandboxes:
        assert sandbox.run("toilet", "x").exit_code == 0
    kept = [path for path in (CACHE / "runtimes" / ".layers").glob("dep-*") if (path / "rootfs/usr/bin").is_dir()
            and any(entry.name.startswith("toilet") for entry in (path / "rootfs/usr/bin").iterdir())]
    assert len(kept) == 1, kept
