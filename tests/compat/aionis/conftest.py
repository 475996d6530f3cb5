# SPDX-License-Identifier: Apache-2.0
"""One server for all tests of the Aionis routes, which may run a few commands. At the end nothing of it may be left."""
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import aionis as protocol  # noqa: E402
import schema  # noqa: E402
import server as servers  # noqa: E402
from client import Client  # noqa: E402

COMMANDS = ["echo", "sh", "sleep", "cat", "printf", "true", "false", "pwd", "env", "nowhere", "/bin/echo"]
SETTINGS = {"SANDBOX_ALLOWED_COMMANDS_JSON": json.dumps(COMMANDS)}


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
    server = servers.Server(tmp_path_factory.mktemp("aionis") / "data", environment=SETTINGS)
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(autouse=True)
def unharmed(server):
    """No test may end the server. Its sessions go with it."""
    before = len(protocol.Aionis.made)
    yield
    for session in protocol.Aionis.made[before:]:
        server.client.delete(f"/sandbox/{protocol.sandbox_of(session)}")
    del protocol.Aionis.made[before:]
    log = server.log_path
    assert server.is_alive(), f"the server has died:\n{log.read_text(errors='replace')[-8000:]}"


@pytest.fixture(scope="session")
def aionis(server):
    return protocol.Aionis(server.port, server.key)


@pytest.fixture
def session(aionis):
    return aionis.session()


@pytest.fixture(scope="module")
def shared(aionis):
    """A session for tests that leave it as it was."""
    return aionis.session()


@pytest.fixture
def own_server(tmp_path):
    """Servers for tests that kill theirs or need other settings: the server, and a client of it."""
    made = []

    def start(options=(), listen="127.0.0.1:0", **settings):
        server = servers.Server(tmp_path / f"data{len(made)}", environment={**SETTINGS, **settings}, options=options)
        made.append(server)
        server.listen = listen
        server.start()
        return server, protocol.Aionis(server.port, server.key)
    yield start
    for server in made:
        server.abandon()


@pytest.fixture
def refused_start(tmp_path):
    """Starts a server that must not start; what it says."""
    def start(options=(), **settings):
        server = servers.Server(tmp_path / "data", environment={**SETTINGS, **settings}, options=options)
        server.launch()
        assert server.process.wait(servers.PATIENCE) == 2, server.log
        return server.log
    return start
