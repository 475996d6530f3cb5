# SPDX-License-Identifier: Apache-2.0
"""burrow runtime, run as people run it. base:latest is built once for all suites, in BURROW_TEST_CACHE."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BURROW = pathlib.Path(os.environ.get("BURROW", TOP / "build/src/burrow"))
CACHE = pathlib.Path(os.environ.get("BURROW_TEST_CACHE", TOP / "build/test-cache"))
DEAD_MIRROR = "http://127.0.0.1:1/debian"

pytestmark = [
    pytest.mark.skipif(not BURROW.exists(), reason="burrow is not built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]
needs_mmdebstrap = pytest.mark.skipif(not shutil.which("mmdebstrap"), reason="mmdebstrap is not installed")


def command(*arguments, data):
    environment = {**os.environ, "BURROW_DATA": str(data)}
    return {"args": [BURROW, *arguments], "env": environment, "text": True}


def runtime(*arguments, data):
    return subprocess.run(**command("runtime", *arguments, data=data), capture_output=True, timeout=600)


def start(*arguments, data):
    return subprocess.Popen(**command(*arguments, data=data), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


@pytest.fixture
def boxes(tmp_path):
    """A data directory in which sandboxes are started; lets go of it afterwards."""
    yield tmp_path
    subprocess.run(**command("detach", data=tmp_path), check=True)


def entries(data):
    return {row["name"]: row for row in json.loads(runtime("list", "--json", data=data).stdout)}


@pytest.mark.parametrize("arguments, sentence", [
    (["biuld"], "burrow: burrow runtime has no command 'biuld'; did you mean 'build'?"),
    (["build"], "burrow: burrow runtime build needs the name of a runtime, such as base:latest"),
    (["build", "base", "host"], "burrow: burrow runtime build does not take 'host': see burrow runtime build --help"),
    (["list", "x"], "burrow: burrow runtime list does not take 'x': see burrow runtime list --help"),
])
def test_wrong_usage_is_one_sentence(tmp_path, arguments, sentence):
    done = runtime(*arguments, data=tmp_path)
    assert (done.returncode, done.stderr) == (2, sentence + "\n")
    assert done.stdout == ""


def test_a_bad_name_is_refused(tmp_path):
    done = runtime("build", "../../etc", data=tmp_path)
    assert done.returncode == 2
    assert "'../../etc' does not name a runtime" in done.stderr


def test_an_unknown_runtime_names_the_known_ones(tmp_path):
    done = runtime("build", "bas", data=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("burrow: unknown runtime 'bas:latest'; did you mean 'base:latest'? known: ")


def test_every_command_has_help():
    assert "commands:" in runtime("--help", data="/nonexistent").stdout
    for name in ["list", "show", "build", "verify", "remove"]:
        done = runtime(name, "--help", data="/nonexistent")
        assert done.returncode == 0
        assert f"burrow runtime {name}" in done.stdout and "examples:" in done.stdout


def test_the_list_says_what_is_built(tmp_path):
    before = entries(tmp_path)
    assert before["base"]["state"] == before["host"]["state"] == "not built"
    assert before["base"]["made"] is None
    assert runtime("build", "host", data=tmp_path).returncode == 0
    after = entries(tmp_path)["host"]
    assert after["state"] == "ready" and after["files"] > 20 and not after["inUse"]
    assert "host:latest              ready" in runtime("list", data=tmp_path).stdout


def test_an_added_file_is_an_added_runtime_and_a_changed_one_outdates(tmp_path):
    (tmp_path / "catalog").mkdir()
    file = tmp_path / "catalog/mine.yaml"
    file.write_text("name: mine\nbuild: {kind: host}\n")
    assert runtime("build", "mine", data=tmp_path).returncode == 0
    assert entries(tmp_path)["mine"]["state"] == "ready"
    file.write_text("name: mine\nbuild: {kind: host}\nenv: {A: b}\n")
    assert entries(tmp_path)["mine"]["state"] == "outdated"
    assert runtime("build", "mine", data=tmp_path).returncode == 0
    assert entries(tmp_path)["mine"]["state"] == "ready"
    assert "A=b" in runtime("show", "mine", data=tmp_path).stdout


def test_a_broken_file_is_told_and_the_rest_works(tmp_path):
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog/broken.yaml").write_text("name: x\n\tbuild: 1\n")
    done = runtime("list", data=tmp_path)
    assert done.returncode == 0 and "host:latest" in done.stdout
    assert "broken.yaml: line 2, column 2: a tab indents this line; use spaces" in done.stderr


def test_building_again_does_nothing_unless_forced(tmp_path):
    assert "is ready" in runtime("build", "host", data=tmp_path).stdout
    first = (tmp_path / "runtimes/host/latest").resolve()
    assert "is already ready" in runtime("build", "host", data=tmp_path).stdout
    assert (tmp_path / "runtimes/host/latest").resolve() == first
    assert runtime("build", "host", "--force", data=tmp_path).returncode == 0
    assert (tmp_path / "runtimes/host/latest").resolve() != first
    assert not first.exists()


def test_json_is_one_value_whatever_is_made(tmp_path):
    for words, unchanged in (([], False), ([], True), (["--force"], False)):
        done = runtime("build", "host", "--json", *words, data=tmp_path)
        told = json.loads(done.stdout)
        assert told["success"] is True and told["name"] == "host:latest" and told["unchanged"] is unchanged and told["files"] > 20 and told["durationMs"] >= 0
        assert bool(done.stderr) != unchanged  # the steps


def test_verify_and_remove(tmp_path):
    assert runtime("verify", "host", data=tmp_path).returncode == 3
    runtime("build", "host", data=tmp_path)
    assert "is as it was built" in runtime("verify", "host", data=tmp_path).stdout
    (tmp_path / "runtimes/host/latest/rootfs/etc/hosts").write_text("changed")
    done = runtime("verify", "host", data=tmp_path)
    assert done.returncode == 1 and "build it again with --force" in done.stderr
    assert runtime("remove", "host", data=tmp_path).returncode == 0
    assert not (tmp_path / "runtimes/host").exists()
    assert runtime("remove", "host", data=tmp_path).stderr == "burrow: runtime 'host:latest' is not built\n"


def test_a_runtime_in_use_by_a_sandbox_is_not_removed(boxes):
    box = start("run", "--runtime", "host:latest", "--", "cat", data=boxes)
    try:
        box.stdin.write("here\n")
        box.stdin.flush()
        assert box.stdout.readline() == "here\n", box.stderr.read()
        assert entries(boxes)["host"]["inUse"]
        done = runtime("remove", "host", data=boxes)
        assert (done.returncode, done.stderr) == (
            1, f"burrow: runtime 'host:latest' is in use by a sandbox of process {box.pid} ('burrow'); end that first\n")
    finally:
        box.communicate()
    assert runtime("remove", "host", data=boxes).returncode == 0


# ---- base:latest ----


def test_what_a_runtime_needs_is_seen_to_without_a_server(boxes):
    (boxes / "catalog").mkdir()
    (boxes / "catalog/needy.yaml").write_text("name: needy\naliases: [greedy]\nrequirements: {memory: 600Mi, cpu: 1500m, disk: 256Mi}\nbuild: {kind: host}\n")
    (boxes / "catalog/online.yaml").write_text("name: online\nrequirements: {network: true}\nbuild: {kind: host}\n")

    def run(*words):
        return subprocess.run(**command("run", *words, "--", "cat", "/proc/meminfo", data=boxes), capture_output=True, timeout=60)
    for words, sentence in ((["needy", "--memory", "64Mi"], "memory: the runtime 'needy:latest' needs at least 600Mi; ask for more, or for nothing"),
                            (["greedy", "--cpu", "1"], "cpu: the runtime 'needy:latest' needs at least 1500m; ask for more, or for nothing"),
                            (["needy", "--disk", "1Mi"], "disk: the runtime 'needy:latest' needs at least 256Mi; ask for more, or for nothing"),
                            (["online"], "network: the runtime 'online:latest' needs it; ask for a sandbox with network")):
        done = run("--runtime", *words)
        assert (done.returncode, done.stdout, done.stderr) == (125, "", f"burrow: {sentence}\n")
    for words, kib in (([], 600 << 10), (["--memory", "700Mi"], 700 << 10)):  # the default is less than it needs
        done = run("--runtime", "needy", *words)
        assert f"{kib} kB" in done.stdout.splitlines()[0], done.stderr
    assert run("--runtime", "needy", "--memory", "0").returncode == 0  # no limit is enough


@needs_mmdebstrap
def test_no_mirror_says_the_way_out_and_what_apt_said(tmp_path):
    done = runtime("build", "base", "--mirror", DEAD_MIRROR, data=tmp_path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("burrow: build runtime 'base:latest': no package mirror can be reached; name a mirror")
    assert "host:latest" in last
    assert any(line.startswith("  | ") for line in done.stderr.splitlines())
    assert {path.name for path in (tmp_path / "runtimes").iterdir()} == {".lock-base", "base-latest.log"}


@needs_mmdebstrap
@pytest.mark.parametrize("option, variable", [(["--data", "here/data"], ""), ([], "./here/data")])
def test_a_data_directory_may_be_named_from_the_current_one(tmp_path, option, variable):
    """Programs that are started, and mounts, know no current directory of ours."""
    data = tmp_path / "here/data"
    (data / "catalog").mkdir(parents=True)
    (data / "catalog/mine.yaml").write_text("name: mine\nbuild: {kind: host}\n")
    environment = {**os.environ, "BURROW_DATA": variable}

    def here(*words):
        return subprocess.run([BURROW, *words], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    try:
        failed = here("runtime", "build", "base", "--mirror", DEAD_MIRROR, *option)
        assert "no package mirror can be reached" in failed.stderr, failed.stderr
        assert here("runtime", "build", "mine", *option).returncode == 0
        done = here("run", "--local", "--runtime", "mine", *option, "--", "/bin/echo", "hello")
        assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    finally:
        assert here("detach", *option).returncode == 0
    assert here("doctor", "--json", *option).returncode in (0, 1)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A data directory in which base:latest is ready, and which no other suite uses meanwhile."""
    data = tmp_path_factory.mktemp("base")
    done = runtime("build", "base", data=CACHE)
    if done.returncode != 0 and "no package mirror can be reached" in done.stderr:
        pytest.skip("no package mirror can be reached")
    assert done.returncode == 0, done.stderr
    (data / "runtimes").mkdir(mode=0o755)
    subprocess.run(["cp", "-a", CACHE / "runtimes" / "base", data / "runtimes"], check=True)
    return data


def wait_for(process, text):
    for line in process.stderr:
        if text in line:
            return
    pytest.fail(f"never said '{text}'")


def wait_until_gone(data):
    """Processes of a build that was killed die soon, and not at once."""
    deadline = time.monotonic() + 60
    while builders(data) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not builders(data)


def builders(data):
    """Processes that work in the data directory, whoever their parent is."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(os.fsencode(data / "runtimes")) for word in words):
            found.append(int(entry.parent.name))
    return found


@needs_mmdebstrap
def test_phases_are_told_and_an_interrupt_leaves_nothing(base):
    build = start("runtime", "build", "base", "--force", data=base)
    wait_for(build, "base:latest: reading package lists")
    build.send_signal(signal.SIGINT)
    _, errors = build.communicate(timeout=60)
    assert build.returncode == 130
    assert errors.endswith("burrow: build runtime 'base:latest': cancelled\n"), errors
    wait_until_gone(base)
    assert not list((base / "runtimes").glob(".building-*"))
    assert str(base) not in pathlib.Path("/proc/self/mounts").read_text()
    assert entries(base)["base"]["state"] == "ready"


@needs_mmdebstrap
def test_a_killed_build_is_cleaned_by_the_next(base):
    build = start("runtime", "build", "base", "--force", data=base)
    wait_for(build, "base:latest: reading package lists")
    build.kill()
    build.communicate()
    wait_until_gone(base)
    assert list((base / "runtimes").glob(".building-*"))
    assert entries(base)["base"]["state"] == "ready"
    assert runtime("build", "base", "--force", "--mirror", DEAD_MIRROR, data=base).returncode == 1
    assert not list((base / "runtimes").glob(".building-*"))


@needs_mmdebstrap
def test_two_builds_at_once_wait_for_each_other(base):
    first = start("runtime", "build", "base", "--force", data=base)
    wait_for(first, "base:latest: reading package lists")
    second = start("runtime", "build", "base", "--force", data=base)
    wait_for(second, "another burrow is building; waiting for it")
    assert "is being built or removed" in runtime("remove", "base", data=base).stderr
    for process in (second, first):
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 128 + signal.SIGTERM


def test_base_is_whole_and_works_in_a_sandbox(base, boxes):
    assert "is as it was built" in runtime("verify", "base:bookworm", data=base).stdout
    (boxes / "runtimes").symlink_to(base / "runtimes")  # what a sandbox needs besides goes with boxes
    script = "python3 -c 'import ssl, venv' && git --version && apt-get check -qq && dpkg --audit && id -un 1000"
    done = subprocess.run(**command("run", "--", "bash", "-c", script, data=boxes), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("git version") and done.stdout.endswith("\nburrow\n")
