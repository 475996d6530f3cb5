# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of a runtime that is not made yet. It stands on base:latest, and its one package comes from a registry of the test's."""
import shutil
import signal
import subprocess
import threading
import uuid

import pytest

from client import check_error, until
from npm_registry import Registry
from server import BURROW, CACHE


@pytest.fixture(scope="module")
def npm_tool():
    """Debian's npm over base, made once for all suites."""
    subprocess.run([BURROW, "runtime", "build", "npm-tool", "--data", CACHE], check=True, timeout=900, stdout=subprocess.DEVNULL)


@pytest.fixture
def registry():
    registry = Registry()
    registry.add("tiny")
    yield registry
    registry.close()


@pytest.fixture
def place(npm_tool, registry, own_server):
    """A server, and the name of a runtime that nobody has made."""
    server = own_server(options=["--npm-registry", registry.url])
    name = f"tiny-{uuid.uuid4().hex[:8]}"
    (server.data / "catalog").mkdir()
    (server.data / "catalog" / f"{name}.yaml").write_text(
        f"name: {name}\ndescription: d\nbuild:\n  kind: layer\n  from: base:latest\n  with: npm-tool:latest\n  npm: [tiny]\n")
    yield server, name
    registry.may_go.set()
    server.abandon()
    shutil.rmtree(CACHE / "runtimes" / name, ignore_errors=True)
    for rest in (CACHE / "runtimes").glob(f"*{name}*"):
        shutil.rmtree(rest) if rest.is_dir() else rest.unlink()


def status_of(api, sandbox):
    return api.get(f"/sandbox/{sandbox}").data["status"]


def create(api, name, **fields):
    answer = api.post("/sandbox", {"runtime": name, **fields})
    assert answer.status == 201, str(answer)
    return answer.data


def kinds(api, sandbox):
    return [event["type"] for event in api.get(f"/sandbox/sandboxes/{sandbox}/events?limit=100&direction=asc").data["events"]]


def test_it_is_made_once_for_all_who_ask_and_progress_is_told(place, registry):
    server, name = place
    api = server.client
    registry.may_go.clear()
    made = []
    askers = [threading.Thread(target=lambda: made.append(create(api, name))) for _ in range(2)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    until(lambda: registry.downloads, "the package to be asked for")
    assert [one["status"] for one in made] == ["creating"] * 2
    sandboxes = [one["sandboxId"] for one in made]
    assert len(set(sandboxes)) == 2
    assert [status_of(api, one) for one in sandboxes] == ["creating"] * 2
    # Whoever wants one that is ready is told to come again, and is not left with one that nobody knows of.
    before = api.get("/api/v1/sandboxes").json["items"]
    answer = api.post("/api/v1/sandboxes", {"runtime": name}, may_fail=True)
    assert answer.status == 503 and int(answer.headers["retry-after"]) > 0, str(answer)
    assert name in answer.json["detail"] and "is being made" in answer.json["detail"]
    assert len(api.get("/api/v1/sandboxes").json["items"]) == len(before)
    registry.may_go.set()
    for one in sandboxes:
        until(lambda: status_of(api, one) == "idle", "the sandbox to be up")
        assert "lifecycle:progress" in kinds(api, one) and "lifecycle:started" in kinds(api, one)
    assert registry.downloads == ["tiny"]
    started = api.post(f"/sandbox/{sandboxes[0]}/execute", {"command": ["tiny"]}).data
    assert api.wait_execution(started["executionId"])["status"] == "completed"
    assert api.post("/api/v1/sandboxes", {"runtime": name}).status == 201
    for one in sandboxes:
        api.delete(f"/sandbox/{one}")


def test_a_first_command_waits_for_it_and_its_output_can_be_read_from_the_start(place, registry):
    server, name = place
    api = server.client
    registry.may_go.clear()
    made = create(api, name, command={"exec": ["tiny"], "mode": "oneshot"})
    assert made["status"] == "creating" and made["executionId"]
    output = []
    reader = threading.Thread(target=lambda: output.append(api.read(made["stdoutStreamUrl"])))
    reader.start()
    registry.may_go.set()
    reader.join(90)
    assert output and b"tiny 1.0.0" in output[0], output
    assert api.wait_execution(made["executionId"])["status"] == "completed"


def test_one_that_is_deleted_meanwhile_is_gone(place, registry):
    server, name = place
    api = server.client
    registry.may_go.clear()
    sandbox = create(api, name)["sandboxId"]
    until(lambda: registry.downloads, "the package to be asked for")
    assert api.delete(f"/sandbox/{sandbox}").status == 200
    check_error(api.get(f"/sandbox/{sandbox}"), 404, "SANDBOX_NOT_FOUND")


def test_a_package_that_is_not_what_its_registry_says_fails_it(place, registry):
    server, name = place
    api = server.client
    registry.wrong.add("tiny")
    sandbox = create(api, name)["sandboxId"]
    until(lambda: status_of(api, sandbox) == "failed", "the sandbox to fail")
    assert "is not what its registry says it is" in server.log
    assert not (CACHE / "runtimes" / name).exists()
    registry.wrong.clear()  # whoever asks then begins another
    sandbox = create(api, name)["sandboxId"]
    until(lambda: status_of(api, sandbox) == "idle", "the sandbox to be up")


def test_a_registry_that_is_gone_fails_it_with_a_sentence(place, registry):
    server, name = place
    registry.close()
    sandbox = create(server.client, name)["sandboxId"]
    until(lambda: status_of(server.client, sandbox) == "failed", "the sandbox to fail")
    assert "no npm registry can be reached" in server.log
    answer = server.client.post("/api/v1/sandboxes", {"runtime": name}, may_fail=True)
    assert answer.status == 503, str(answer)


def test_a_server_that_was_killed_meanwhile_leaves_nothing_half_made(place, registry):
    server, name = place
    registry.may_go.clear()
    sandbox = create(server.client, name)["sandboxId"]
    until(lambda: registry.downloads, "the package to be asked for")
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    registry.may_go.set()
    server.start()
    assert status_of(server.client, sandbox) == "failed"
    assert not (CACHE / "runtimes" / name).exists()
    sandbox = create(server.client, name)["sandboxId"]
    until(lambda: status_of(server.client, sandbox) == "idle", "the sandbox to be up")
    assert not list((CACHE / "runtimes").glob(f".building-{name}-*"))
