# SPDX-License-Identifier: Apache-2.0
"""A server whose document is read by tools of others. At the end nothing of it may be left."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import packages  # noqa: E402
import server as servers  # noqa: E402


def pytest_collection_modifyitems(items):
    if reason := servers.why_not():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("openapi") / "data", options=["--max-sandboxes", "40"])
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(scope="session")
def tools():
    """The directory in which the packages are installed, with our scripts beside them, so that their imports are found."""
    here = pathlib.Path(__file__).resolve().parent
    place = packages.install(here, "openapi")
    for script in here.glob("*.mjs"):
        (place / script.name).write_bytes(script.read_bytes())
    return place
