# SPDX-License-Identifier: Apache-2.0
"""Packages that a sandbox asks for: really installed, from the machine's own mirror, in a box that reaches nothing else."""
import shutil
import subprocess

import pytest

from client import check_error, until
from server import BURROW, CACHE


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
