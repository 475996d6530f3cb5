# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document, and what it says about the server that serves it."""
import re

import pytest
import schema
from client import check_error

ROUTES = {
    "/sandbox": {"get", "post"}, "/sandbox/{id}": {"get", "delete"}, "/sandbox/status/{id}": {"get"}, "/sandbox/env/{id}": {"patch"},
    "/sandbox/{id}/execute": {"post"}, "/sandbox/execution/{executionId}": {"get"}, "/sandbox/sandboxes/{id}/executions": {"get"},
    "/sandbox/sandboxes/{id}/events": {"get"}, "/sandbox/sandboxes/{id}/jobs": {"get", "post"},
    "/sandbox/sandboxes/{id}/jobs/{jobId}": {"get", "delete"}, "/sandbox/runtimes": {"get"}, "/services/stats/{orgId}": {"get"},
    "/fs/{id}": {"get", "post"}, "/fs/mkdir/{id}": {"post"}, "/fs/rm/{id}": {"post"}, "/fs/rmdir/{id}": {"post"},
    "/fs/list/{id}": {"get"}, "/fs/download/{id}": {"get"}, "/fs/upload/{id}": {"post"}, "/stream": {"post"},
    "/stream/{id}": {"get", "put", "delete"}, "/stream/{id}/append": {"post"}, "/stream/{id}/complete": {"post"},
    "/stream/{id}/info": {"post"}, "/stream/list": {"post"}, "/cli/auth/user": {"get"}, "/cli/organization": {"get"},
    "/cli/region": {"get"}, "/cli/sandbox": {"get"}, "/cli/sandbox/{id}": {"get"}, "/cli/validate/apt-dependencies": {"post"},
    "/cli/auth/ssh-keys": {"get", "post", "delete"}, "/health": {"get"},
}
METHODS = {"get", "post", "put", "patch", "delete", "head", "options"}


@pytest.fixture(scope="module")
def document(api):
    return api.get("/openapi.json").json


def shape(path):
    return re.sub(r"\{\w+\}", "{}", path)


def test_it_is_an_openapi_document(document):
    assert document["openapi"].startswith("3.1")
    assert document["info"]["title"] and document["info"]["version"]


def test_every_route_of_the_protocol_is_described(document):
    described = {shape(path): set(item) & METHODS for path, item in document["paths"].items()}
    for path, methods in ROUTES.items():
        assert methods <= described.get(shape(path), set()), path


def test_every_operation_says_what_it_does(document):
    for path, item in document["paths"].items():
        for method in set(item) & METHODS:
            operation = item[method]
            assert operation["summary"], (method, path)
            assert operation["responses"], (method, path)
            named = set(re.findall(r"\{(\w+)\}", path))
            given = [*operation.get("parameters", []), *item.get("parameters", [])]
            assert named == {parameter["name"] for parameter in given if parameter["in"] == "path"}, (method, path)


def test_names_of_operations_are_their_own(document):
    ids = [operation["operationId"] for item in document["paths"].values() for method, operation in item.items()
           if method in METHODS and "operationId" in operation]
    assert len(set(ids)) == len(ids)


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def follow(document, reference):
    """What a reference leads to; None when it leads nowhere, or out of the document."""
    if not reference.startswith("#/"):
        return None
    target = document
    for part in reference[2:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, dict) or part not in target:
            return None
        target = target[part]
    return target


def lost(document):
    return [reference for reference in references(document) if follow(document, reference) is None]


def test_it_says_where_the_server_is_and_how_keys_are_sent(document):
    assert document["servers"] and all(server["url"] for server in document["servers"])
    schemes = document["components"]["securitySchemes"]
    assert {(scheme["type"], scheme.get("scheme") or scheme.get("name")) for scheme in schemes.values()} == {("http", "bearer"), ("apiKey", "X-Api-Key")}
    assert all(set(need) <= set(schemes) and len(need) == 1 for need in document["security"]) and len(document["security"]) == 2


def test_a_key_works_in_either_header(api):
    assert api.get("/sandbox?limit=1", key=None, headers={"X-Api-Key": api.key}).status == 200


def test_every_operation_says_what_it_answers(document):
    """And how it fails. That answers are so is checked wherever tests ask for one (schema.py)."""
    for path, item in document["paths"].items():
        for method in set(item) & METHODS:
            responses = item[method]["responses"]
            fine = [status for status in responses if status.startswith("2")]
            assert fine and "2XX" not in fine, f"{method} {path} does not say what it answers"
            assert all("content" in responses[status] or status == "204" for status in fine), f"{method} {path}"
            for status in ("4XX", "5XX"):
                assert "$ref" in responses[status]["content"]["application/json"]["schema"], f"{method} {path}"


def test_what_the_document_does_not_say_is_found():
    """The checker itself: it must be able to fail."""
    thing = {"type": "object", "required": ["id"], "properties": {
        "id": {"type": "string"}, "state": {"type": ["string", "null"], "enum": ["on", None]}, "at": {"type": "string", "format": "date-time"},
        "sizes": {"type": "array", "items": {"type": "integer", "minimum": 0}}}}
    good = {"id": "x", "state": None, "at": "2026-01-02T03:04:05.678Z", "sizes": [0, 7]}
    assert not list(schema.faults(thing, good, {}))
    for change in ({"id": 7}, {"state": "off"}, {"at": "today"}, {"sizes": [1, -1]}, {"sizes": [True]}, {"more": 1}):
        assert len(list(schema.faults(thing, {**good, **change}, {}))) == 1, change
    assert list(schema.faults(thing, {}, {})) == ["answer.id is missing"]


def test_references_lead_somewhere(document):
    assert lost(document) == []
    # The document may have no reference at all, so the search is tried on one that leads nowhere, and on one that does.
    broken = {**document, "x-tried": [{"$ref": "#/components/nowhere"}, {"$ref": "elsewhere.json"}, {"$ref": "#/info/title"}]}
    assert lost(broken) == ["#/components/nowhere", "elsewhere.json"]


def test_bodies_are_described_as_they_are_read(document):
    schema = document["paths"]["/sandbox"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    while "$ref" in schema:
        schema = follow(document, schema["$ref"])
    assert {"runtime", "name", "resources", "env", "timeout", "command", "files", "metadata", "scopes"} <= set(schema["properties"])


def test_examples_of_limits_are_ones_that_are_taken(document, api):
    properties = document["paths"]["/sandbox"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    for group in ("resources", "timeout"):
        for name, schema in properties[group]["properties"].items():
            for example in schema.get("examples", []):
                assert re.search(schema["pattern"], example)
                answer = api.post("/sandbox", {group: {name: example}})
                assert answer.status == 201, (name, example, answer.json)
                api.sandbox(answer.data["sandboxId"]).delete()


def is_open(document, operation):
    return operation.get("security", document.get("security")) in ([], [{}], None)


OPEN = {("get", "/"), ("get", "/stream/{}"), ("get", "/{}"), ("get", "/health"), ("get", "/openapi.json"), ("get", "/version"),
        ("post", "/cli/validate/apt-dependencies"), ("get", "/sandbox/snapshots/public"), ("get", "/sandbox/snapshots/public/{}"),
        ("put", "/sandbox/snapshots/{}/upload/{}"), ("get", "/cli/auth/start"), ("post", "/cli/auth/check"),
        ("get", "/cli/auth/setup-token/{}")}


def test_only_what_must_be_is_open(document):
    for path, item in document["paths"].items():
        for method in set(item) & METHODS:
            if is_open(document, item[method]):
                assert (method, shape(path)) in OPEN, f"{method} {path} needs no key"


def test_every_route_that_needs_a_key_asks_for_it(document, api):
    """Whatever is in the document, not only what this file knows."""
    asked = 0
    for path, item in document["paths"].items():
        for method in set(item) & METHODS:
            if (method, shape(path)) in OPEN:
                continue
            target = re.sub(r"\{\w+\}", "stream_x" if "stream" in path or path.startswith("/{") else "sbx_x", path)
            for key in (None, "brw_wrong_wrong_wrong_wrong"):
                answer = api.call(method.upper(), target, key=key)
                assert answer.status == 401 and answer.json["message"], f"{method} {path}: {answer}"
                asked += 1
    assert asked > 50


def test_health_needs_no_key(api):
    answer = api.get("/health", key=None)
    assert answer.status == 200 and answer.json
