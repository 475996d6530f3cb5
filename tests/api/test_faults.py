# SPDX-License-Identifier: Apache-2.0
"""A launch that fails is the server's fault, whatever the kernel said: 500 and a line in the log, nothing left, and the next one works."""
import errno

import aionis
import audit
import pytest
import server as servers
from client import check_error, check_problem

# One that the server takes, one in the child before it has let go of anything, and later ones.
STEPS = ["scratch.make", "root.mount", "init.execute"]
CODES = [errno.EINVAL, errno.ENOENT, errno.EPERM, errno.EMFILE, errno.ENOSPC, errno.EEXIST, errno.EIO]


class Faulty:
    """A server whose launches fail as long as a file says so. It makes none ahead."""

    def __init__(self, data):
        self.file = data.with_name("fail")
        self.server = servers.Server(data, options=["--parked-one-shot", "0", "--parked-kept", "0"],
                                     environment={"BURROW_TEST_FAIL_FILE": str(self.file),
                                                  "SANDBOX_ALLOWED_COMMANDS_JSON": '["echo"]'})
        self.api = self.server.start().client
        self.aionis = aionis.Aionis(self.server.port, self.server.key)

    def fail(self, step, code):
        self.file.write_text(f"{step} {code}")

    def work(self):
        self.file.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    faulty = Faulty(tmp_path_factory.mktemp("faults") / "data")
    try:
        yield faulty
        faulty.server.end()
    finally:
        faulty.server.abandon()


@pytest.fixture
def fault(faulty):
    """Afterwards everything works, and nothing is there that nobody owns."""
    yield faulty
    faulty.work()
    assert faulty.api.create().output("echo fine") == "fine\n"
    servers.delete_all(faulty.api)
    audit.check(faulty.server)


def check_fault(faulty, call, step, code):
    """Whoever asks is told that it was the server; its log says what was being done."""
    said = len(faulty.server.log)
    faulty.fail(step, code)
    answer = call()
    faulty.work()
    check_error(answer, 500, "INTERNAL", step)
    assert step in faulty.server.log[said:] and "request failed" in faulty.server.log[said:], faulty.server.log[said:]


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("step", STEPS)
def test_a_create(fault, step, code):
    check_fault(fault, lambda: fault.api.post("/sandbox", {"name": "never"}, may_fail=True), step, code)
    assert not fault.api.get("/sandbox?name=never&live=true").data["sandboxes"]


@pytest.mark.parametrize("step", STEPS)
def test_a_one_shot(fault, step):
    body = {"command": {"exec": ["echo"], "mode": "oneshot"}}
    check_fault(fault, lambda: fault.api.post("/sandbox", body, may_fail=True), step, errno.ENOENT)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_run_of_the_own_api(fault, accept):
    """No record has come before, so a client that wants records is told by a status too."""
    fault.fail(STEPS[1], errno.ENOENT)
    answer = fault.api.post("/api/v1/run", {"command": ["echo"]}, headers={"Accept": accept}, may_fail=True)
    fault.work()
    check_problem(answer, 500, "internal_error", STEPS[1])


@pytest.mark.parametrize("step", STEPS)
def test_a_start_from_a_snapshot(fault, step):
    sandbox = fault.api.create()
    id = fault.api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "kept"}).data["snapshotId"]
    check_fault(fault, lambda: fault.api.post("/sandbox", {"snapshot": id}, may_fail=True), step, errno.ENOENT)
    assert fault.api.create(snapshot=id).output("echo fine") == "fine\n"
    assert fault.api.delete(f"/sandbox/snapshots/{id}").status == 200


@pytest.mark.parametrize("step", STEPS)
def test_an_execute(fault, step):
    """The first one after going back to a checkpoint needs a box."""
    sandbox = fault.api.create()
    sandbox.output("echo one >file")
    assert fault.api.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "a"}).status == 201
    body = {"command": ["cat", "file"]}
    fault.fail(step, errno.EINVAL)
    assert fault.api.post(f"/sandbox/{sandbox.id}/checkpoint/a/restore").status == 200
    check_fault(fault, lambda: fault.api.post(f"/sandbox/{sandbox.id}/execute", body, may_fail=True), step, errno.EINVAL)
    assert sandbox.output("cat file") == "one\n"


@pytest.mark.parametrize("step", STEPS)
def test_an_aionis_run(fault, step):
    """A session has its sandbox from the start."""
    said = len(fault.server.log)
    fault.fail(step, errno.ENOENT)
    answer = fault.aionis.post("sessions", {})
    fault.work()
    assert (answer.status, answer.json["error"]) == (500, "internal_error") and step in answer.json["message"], str(answer)
    assert step in fault.server.log[said:]


def test_a_full_disk_of_a_sandbox(fault):
    """The limit is named, and nobody is asked to try again."""
    sandbox = fault.api.create(resources={"disk": "16Mi"})
    sandbox.run("sh", "-c", "head -c 64M /dev/urandom >bulk")
    files = {"files": [{"path": f"more-{i}", "content": "QUJD" * 50000} for i in range(20)]}
    check_error(fault.api.post(f"/fs/{sandbox.id}", files), 413, "DISK_FULL", "the sandbox's disk of 16Mi is full")
    check_error(fault.api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["echo"], **files}), 413, "DISK_FULL", "disk of 16Mi is full")
    check_error(fault.api.post("/sandbox", {"resources": {"disk": "1Mi"}, "command": {"exec": ["echo"], "files": files["files"]}}),
                413, "DISK_FULL", "the sandbox's disk of 1Mi is full")
