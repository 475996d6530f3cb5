# SPDX-License-Identifier: Apache-2.0
"""The catalog of runtimes."""
import shutil
import subprocess
import uuid

import server as servers
from client import PATIENCE, check_error, nulls, query, until


def test_the_default_runtime_is_there(api):
    data = api.get("/sandbox/runtimes").data
    names = {entry["name"]: entry for entry in data["runtimes"]}
    assert {"base:latest", "host:latest"} <= set(names)
    assert data["total"] == len(data["runtimes"]) >= 2
    for entry in data["runtimes"]:
        assert entry["id"].startswith("srt_") and entry["description"]
        assert isinstance(entry["requirements"]["networkEnabled"], bool)
    assert not nulls(data)
    assert len({entry["id"] for entry in data["runtimes"]}) == len(data["runtimes"])


def test_pages_and_order(api):
    def names(**fields):
        return [entry["name"] for entry in api.get(f"/sandbox/runtimes?{query(**fields)}").data["runtimes"]]
    up = names(sort="name", direction="asc")
    assert up == sorted(up) and names(sort="name", direction="desc") == up[::-1]
    assert names(sort="name", direction="asc", limit=1) == up[:1]
    assert names(sort="name", direction="asc", limit=1, offset=1) == up[1:2]
    assert sorted(names(sort="created")) == sorted(up)
    assert api.get("/sandbox/runtimes?limit=0").data == {"runtimes": [], "total": len(up)}
    assert names(limit=5000) == names()


def test_bad_parameters_are_refused(api):
    for bad in ("limit=x", "offset=-1", "sort=size", "direction=up"):
        check_error(api.get(f"/sandbox/runtimes?{bad}"), 400, "INVALID_ARGUMENT", bad.split("=")[0])


def test_an_organisation_is_accepted(api):
    assert api.get("/sandbox/runtimes?orgId=org_x").data["total"] >= 2


MINE = """name: mine
tags: [latest]
description: of this machine
build:
  kind: host
"""


def test_a_runtime_from_a_file_of_the_machine_is_listed_and_works(server, api, new):
    file = server.data / "catalog" / "mine.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(MINE)
    try:
        found = {entry["name"]: entry for entry in api.get("/sandbox/runtimes").data["runtimes"]}
        assert found["mine:latest"]["description"] == "of this machine"
        for fields in ({"runtime": "mine"}, {"runtime": "mine:latest"}, {"runtimeId": found["mine:latest"]["id"]}):
            sandbox = new(**fields)
            assert sandbox.get()["runtime"]["name"] == "mine:latest"
            sandbox.delete()
    finally:
        file.unlink()
        shutil.rmtree(server.data / "runtimes" / "mine", ignore_errors=True)  # the directory is shared by all suites
    check_error(api.post("/sandbox", {"runtime": "mine"}), 404, "RUNTIME_NOT_FOUND")


def test_a_default_runtime_without_a_tag_is_the_latest(own_server):
    server = own_server(options=["--runtime", "host"])
    for fields in ({}, {"runtime": "host"}, {"runtime": "host:latest"}):
        sandbox = server.client.create(**fields)
        assert sandbox.get()["runtime"]["name"] == "host:latest"
        sandbox.delete()


def test_what_a_runtime_says_of_itself_is_told_in_both_protocols(api):
    node = {entry["name"]: entry for entry in api.get("/sandbox/runtimes?limit=100").data["runtimes"]}
    assert {"base:latest", "bun:1", "node:latest", "node:lts", "python:3.13", "python:3.14", "claude-code:latest", "amp:latest",
            "opencode:latest", "codex:latest", "code-interpreter:latest"} <= set(node)
    lts = node["node:lts"]
    assert lts["brandColor"].startswith("#") and lts["iconUrl"] and lts["url"] and lts["readme"] and "language" in lts["tags"]
    assert lts["requirements"]["memory"] == "256Mi" and lts["requirements"]["networkEnabled"] is False
    assert node["claude-code:latest"]["requirements"]["networkEnabled"] is True
    for reference in ("node:lts", "nodejs:lts", lts["id"]):
        one = api.get(f"/api/v1/runtimes/{reference}").json
        assert (one["name"], one["id"], one["tags"]) == ("node:lts", lts["id"], lts["tags"])
    assert api.get("/api/v1/runtimes/claude-code").json["keys"] == ["ANTHROPIC_API_KEY"]
    assert api.get("/api/v1/runtimes/nothing").status == 404


def test_less_than_a_runtime_needs_is_refused(api):
    check_error(api.post("/sandbox", {"runtime": "node:lts", "resources": {"memory": "64Mi"}}), 400, "INVALID_ARGUMENT", "memory", "256Mi")
    check_error(api.post("/sandbox", {"runtime": "claude-code"}), 400, "INVALID_ARGUMENT", "network")


def test_what_the_default_runtime_needs_counts_too(own_server, tmp_path):
    name = f"needy-{uuid.uuid4().hex[:8]}"  # built beside those of all servers of tests
    (tmp_path / "data0/catalog").mkdir(parents=True)
    (tmp_path / f"data0/catalog/{name}.yaml").write_text(f"name: {name}\nrequirements: {{memory: 300Mi}}\nbuild: {{kind: host}}\n")
    server = own_server(options=["--runtime", name, "--memory", "200Mi"])
    try:
        for fields in ({}, {"runtime": name}):
            check_error(server.client.post("/sandbox", {**fields, "resources": {"memory": "64Mi"}}), 400, "INVALID_ARGUMENT", "memory", "300Mi")
            made = server.client.post("/api/v1/sandboxes", fields)
            assert made.json["limits"]["memoryBytes"] == 300 << 20, str(made)  # what nobody asked about is what it needs
            assert server.client.delete(f"/api/v1/sandboxes/{made.json['id']}").status in (200, 204)
    finally:
        until(lambda: server.client.delete(f"/api/v1/runtimes/{name}").status != 409, "its box to be gone")
        for rest in (server.data / "runtimes").glob(f"*{name}*"):
            rest.unlink()


def test_an_administrator_adds_makes_and_removes_one(server, api, new):
    text = "name: added\ndescription: by HTTP\nbuild: {kind: host}\n"
    made = api.post("/api/v1/runtimes", {"name": "added", "definition": text})
    assert made.status == 201 and made.json["state"] == "not built", str(made)
    try:
        assert api.post("/api/v1/runtimes/added/build").json == {"name": "added:latest", "ready": True}
        sandbox = new(runtime="added")
        refused = api.delete("/api/v1/runtimes/added")
        assert refused.status == 409 and f"is in use by sandbox {sandbox.id.removeprefix('sbx_')};" in refused.json["detail"].replace("sbx_", ""), str(refused)
        sandbox.delete()
    finally:
        until(lambda: api.delete("/api/v1/runtimes/added").status != 409, "its box to be gone")
    assert api.get("/api/v1/runtimes/added").status == 404
    assert not (server.data / "catalog" / "added-latest.yaml").exists()
    for bad in ({"name": "x"}, {"name": "x", "definition": "name: y\nbuild: {kind: host}\n"}, {"name": "../x", "definition": text},
                {"name": "x", "definition": "a: ["}, {"name": "x", "image": 'docker://a"\n'}):
        assert api.post("/api/v1/runtimes", bad).status == 400, bad


def test_a_command_has_the_server_remove_what_waits(own_server):
    """Boxes made ahead hold a runtime that no sandbox has."""
    name = f"waits-{uuid.uuid4().hex[:8]}"  # built beside those of all servers of tests
    server = own_server()
    def remove():
        return subprocess.run([servers.BURROW, "runtime", "remove", name, "--data", server.data], capture_output=True, text=True, timeout=PATIENCE)
    text = f"name: {name}\nbuild: {{kind: host}}\n"
    assert server.client.post("/api/v1/runtimes", {"name": name, "definition": text}).status == 201
    before = server.client.get("/health").json["parked"]
    made = server.client.post("/api/v1/sandboxes", {"runtime": name})
    until(lambda: server.client.get("/health").json["parked"] > before, "a box of it made ahead")
    refused = remove()
    assert refused.returncode == 1 and made.json["id"].removeprefix("sbx_") in refused.stderr, refused.stderr
    assert server.client.delete(f"/api/v1/sandboxes/{made.json['id']}").status in (200, 204)
    done = None
    def is_removed():
        nonlocal done
        done = remove()
        return done.returncode == 0
    until(is_removed, "its box to be gone")
    assert server.client.get(f"/api/v1/runtimes/{name}").status == 404
    for rest in (server.data / "runtimes").glob(f"*{name}*"):
        rest.unlink()


def test_without_a_server_a_removal_names_the_sandbox(own_server):
    """Its box lives on, and who it is stands in the database alone."""
    server = own_server(options=["--parked-one-shot", "0", "--parked-kept", "0"])
    name = f"held-{uuid.uuid4().hex[:8]}"  # built beside those of all servers of tests
    text = f"name: {name}\nbuild: {{kind: host}}\n"
    assert server.client.post("/api/v1/runtimes", {"name": name, "definition": text}).status == 201
    try:
        sandbox = server.client.create(runtime=name)
        server.stop()
        refused = subprocess.run([servers.BURROW, "runtime", "remove", name, "--data", server.data], capture_output=True, text=True)
        assert refused.returncode == 1
        assert refused.stderr == f"burrow: runtime '{name}:latest' is in use by sandbox {sandbox.id.removeprefix('sbx_')}; end it first\n"
        server.start()
        server.client.delete(f"/sandbox/{sandbox.id}")
    finally:
        if server.process.poll() is not None:
            server.start()
        until(lambda: server.client.delete(f"/api/v1/runtimes/{name}").status != 409, "its box to be gone")
    assert not (server.data / "runtimes" / name).exists()
    for rest in (server.data / "runtimes").glob(f"*{name}*"):
        rest.unlink()
