# SPDX-License-Identifier: Apache-2.0
"""burrow detach: letting go of a data directory, and what it says when something is in the way."""
import itertools
import os
import pathlib
import shutil
import subprocess
import time

import pytest

COUNT = itertools.count()
TOP = pathlib.Path(__file__).resolve().parents[2]
BURROW = pathlib.Path(os.environ.get("BURROW", TOP / "build/src/burrow"))

pytestmark = [
    pytest.mark.skipif(not BURROW.exists(), reason="burrow is not built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="sandboxes need root"),
]


@pytest.fixture
def data(tmp_path):
    directory = tmp_path / "data"
    yield directory
    subprocess.run([BURROW, "detach", "--end-sandboxes", "--data", directory], capture_output=True, check=False)
    subprocess.run([TOP / "tools/check-leftovers", "--clear", directory], check=True)


def detach(data, *words):
    return subprocess.run([BURROW, "detach", "--data", data, *words], capture_output=True, text=True, timeout=60)


def run(data, *words):
    return subprocess.run([BURROW, "run", "--data", data, "--runtime", "host", "--", *words], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def is_mounted(data):
    return f" {data}/volume " in pathlib.Path("/proc/mounts").read_text()


def pid_of(marker):
    """The process that has this word as its last argument."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cmdline").read_bytes() == b"sleep\0" + marker.encode() + b"\0":
                    return int(entry.name)
            except OSError:
                pass
        time.sleep(0.01)
    raise AssertionError("it was not started")


@pytest.fixture
def sleeper(data):
    marker = f"3141{os.getpid()}{next(COUNT):03}"  # one of its own: the process of the test before may still be ending
    with subprocess.Popen([BURROW, "run", "--data", data, "--runtime", "host", "--", "sleep", marker], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        yield process, pid_of(marker)
        process.kill()


def test_it_lets_go_and_the_next_run_attaches_again(data):
    assert run(data, "true").returncode == 0
    assert is_mounted(data)
    for _ in range(2):
        assert detach(data).returncode == 0
        assert not is_mounted(data)
    assert run(data, "true").returncode == 0


def test_processes_in_the_way_are_named(data, sleeper):
    process, pid = sleeper
    done = detach(data)
    assert done.returncode == 1
    assert done.stderr == (f"burrow: '{data}' has 1 running sandbox: process {pid} ('sleep') of process {process.pid} ('burrow'); "
                           "--end-sandboxes ends them\n")
    assert process.poll() is None


def test_a_process_that_is_called_like_a_command_to_the_terminal_is_told_without_it(data):
    script = "printf '\\033]0;own' > /proc/$$/comm; echo on; read line"
    words = [BURROW, "run", "--data", data, "--runtime", "host", "--", "sh", "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"on\n"
        done = detach(data)
        process.stdin.close()
        assert process.wait(60) == 1
    assert done.returncode == 1 and "('?]0;own')" in done.stderr and "\033" not in done.stderr, done.stderr


def test_sandboxes_can_be_ended(data, sleeper):
    process, _ = sleeper
    done = detach(data, "--end-sandboxes")
    assert (done.returncode, done.stderr) == (0, "")
    assert not is_mounted(data)
    assert process.wait(30) == 125
    assert b"the sandbox ended before the command did" in process.stderr.read()


@pytest.mark.parametrize("is_all", [False, True])
def test_a_volume_whose_file_was_removed_is_let_go_of(data, is_all):
    assert run(data, "true").returncode == 0
    if is_all:
        shutil.rmtree(data, ignore_errors=True)  # what is mounted is emptied, and stays
        assert is_mounted(data)
        refused = run(data, "true")
        assert refused.returncode == 125
        assert f"'burrow detach --data {data}'" in refused.stderr
    else:
        (data / "volume.img").unlink()
    done = detach(data)
    assert (done.returncode, done.stderr) == (0, "")
    assert not is_mounted(data)
    assert run(data, "true").returncode == 0


def test_who_holds_the_volume_is_named(data):
    assert run(data, "true").returncode == 0
    with (data / "volume" / "held").open("w"):
        done = detach(data)
    assert done.returncode == 1
    assert f"process {os.getpid()} (" in done.stderr


def test_nothing_of_a_sandbox_is_mounted_on_a_host_whose_mounts_are_shared(data):
    """As systemd makes them: what is mounted in a sandbox must not come back to where its files are from."""
    script = f"""mount --make-rshared / && {BURROW} run --data {data} --runtime host -- true && cat /proc/self/mountinfo && {BURROW} detach --data {data}"""
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    mounted = [line.split()[4] for line in done.stdout.splitlines()]
    assert [path for path in mounted if path.startswith(f"{data}/")] == [f"{data}/volume"]
    assert done.returncode == 0, done.stderr
