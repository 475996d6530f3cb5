# SPDX-License-Identifier: Apache-2.0
"""What tools of others say of the server's documents, and requests that one of them makes up from the document."""
import json
import os
import subprocess

import pytest

SECONDS = os.environ.get("BURROW_PROPERTY_SECONDS", "4")


@pytest.fixture(scope="module")
def document(server, tmp_path_factory):
    file = tmp_path_factory.mktemp("document") / "openapi.json"
    file.write_bytes(server.client.get("/api/v1/openapi.json", key=None).body)
    return file


def node(place, *words):
    return subprocess.run(["node", *map(str, words)], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("path", ["/api/v1/openapi.json", "/openapi.json"])
def test_two_validators_find_nothing(server, tools, tmp_path, path):
    file = tmp_path / "openapi.json"
    file.write_bytes(server.client.get(path, key=None).body)
    done = node(tools, "validate.mjs", file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_validators_can_find_something(server, tools, document, tmp_path):
    broken = json.loads(document.read_text())
    broken["paths"]["/api/v1/runtimes"]["get"]["responses"]["200"] = {"content": 7}
    file = tmp_path / "broken.json"
    file.write_text(json.dumps(broken))
    done = node(tools, "validate.mjs", file)
    assert done.returncode == 1 and "openapi-schema-validator" in done.stdout and "swagger-parser" in done.stdout, done.stdout + done.stderr


def test_no_request_from_the_document_makes_the_server_fail(server, tools, document):
    """For some seconds; BURROW_PROPERTY_SECONDS says how many."""
    api = server.client
    sandbox = api.create(timeout={"idle": "1h"})
    ran = sandbox.run("echo", "x")
    ids = {"sandbox": [sandbox.id], "execution": [ran.started["executionId"]]}
    done = node(tools, "properties.mjs", document, api.url, api.key, SECONDS, json.dumps(ids))
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert server.is_alive() and api.get("/health", key=None).json["status"] == "ok"
