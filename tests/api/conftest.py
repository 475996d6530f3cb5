# SPDX-License-Identifier: Apache-2.0
"""One server for all tests of the API, on a data directory of its own. At the end nothing of it may be left."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import schema  # noqa: E402
import server as servers  # noqa: E402
from client import Client  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def checked_answers():
    """Every answer of the whole suite is as the server's own document says."""
    Client.on_answer = schema.Checker()
    yield
    Client.on_answer = None


def pytest_collection_modifyitems(items):
    if reason := servers.why_not():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("api") / "data", environment={"BURROW_E2B_RUNTIME": "base:latest", "BURROW_SSH_LISTEN": "127.0.0.1:0"})
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(autouse=True)
def unharmed(server):
    """No test may end the server; if one does, the next ones meet another."""
    yield
    log = server.log_path
    assert server.is_alive(), f"the server has died:\n{log.read_text(errors='replace')[-8000:]}"


@pytest.fixture(scope="session")
def api(server):
    return server.client


@pytest.fixture
def made(api):
    """Ids of snapshots that go with the test."""
    ids = []
    yield ids
    for id in ids:
        assert api.delete(f"/sandbox/snapshots/{id}").status in (200, 404)


@pytest.fixture
def new(api):
    """Makes sandboxes that go with the test."""
    made = []

    def create(**fields):
        made.append(api.create(**fields))
        return made[-1]
    yield create
    for sandbox in made:
        sandbox.delete()


@pytest.fixture
def sandbox(new):
    return new()


@pytest.fixture(scope="module")
def shared(api):
    """A sandbox for tests that leave it as it was."""
    sandbox = api.create(timeout={"idle": "1h"})
    yield sandbox
    sandbox.delete()


@pytest.fixture
def own_server(tmp_path):
    """Servers for tests that kill theirs or need other settings."""
    made = []

    def start(**kwargs):
        made.append(servers.Server(tmp_path / f"data{len(made)}", **kwargs))
        return made[-1].start()
    yield start
    for server in made:
        server.abandon()
