# SPDX-License-Identifier: Apache-2.0
"""Servers that are killed; see test_crash.py."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import server as servers  # noqa: E402


def pytest_collection_modifyitems(items):
    if reason := servers.why_not():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def crashing(tmp_path_factory):
    """One data directory for all tests, so that each meets what the crashes before it left."""
    server = servers.Server(tmp_path_factory.mktemp("crash") / "data", options=["--parked-one-shot", "2", "--parked-kept", "1"])
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture
def server(crashing):
    """Running when the test begins; and afterwards nothing may be there that nobody owns."""
    if crashing.process.poll() is not None:
        crashing.start()
    yield crashing
    if crashing.process.poll() is not None:
        crashing.start()
    servers.delete_all(crashing.client)
    import audit
    audit.check(crashing)
