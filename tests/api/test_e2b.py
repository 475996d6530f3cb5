# SPDX-License-Identifier: Apache-2.0
"""E2B's control plane and process service, by hand."""
import pytest

import e2b as protocol
from client import until


@pytest.fixture(scope="module")
def e2b(server):
    return protocol.E2b(server.port, server.key)


@pytest.fixture
def new(e2b):
    made = []

    def create(**fields):
        made.append(e2b.create(**fields))
        return made[-1]
    yield create
    for sandbox in made:
        sandbox.kill()


@pytest.fixture(scope="module")
def shared(e2b):
    sandbox = e2b.create(timeout=3600)
    yield sandbox
    sandbox.kill()


def test_a_sandbox_is_made_used_and_ended(e2b, new):
    sandbox = new(metadata={"a": "1"}, envVars={"GREETING": "hello"})
    told = e2b.get(f"/sandboxes/{sandbox.id}").json
    assert told["state"] == "running" and told["metadata"] == {"a": "1"} and told["templateID"] == "base"
    assert told["envdAccessToken"] == sandbox.token
    done = sandbox.run("echo $GREETING; id -u; pwd; echo $HOME $USER; echo oops >&2; exit 3")
    assert done.out["stdout"] == b"hello\n1000\n/home/user\n/home/user user\n" and done.out["stderr"] == b"oops\n"
    assert done.end == {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}
    assert sandbox.http("GET", "/health").status == 204
    assert sandbox.kill().status == 204
    assert sandbox.http("GET", "/health").status == 502
    again = sandbox.kill()
    assert again.status == 404 and again.json["code"] == 404
