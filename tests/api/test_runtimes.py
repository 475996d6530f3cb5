# SPDX-License-Identifier: Apache-2.0
"""The catalog of runtimes."""
from client import check_error, nulls, query


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
