# SPDX-License-Identifier: Apache-2.0
"""One way to name things in burrow's own API: what v1 promises stays, so what is added must be alike."""
import re

import pytest

# Words that programs compare: of code, not of names.
WORD = re.compile(r"[a-z0-9]+([._+-][a-z0-9]+)*")
NAME = re.compile(r"[a-z][a-z0-9]*([A-Z][a-z0-9]*)*")
# Another name for the same that is used already, by what should be used instead.
INSTEAD = {
    "cpuMillis": "cpuMillicores", "madeAt": "createdAt", "madeBy": "createdBy", "ttlMs": "expiresInMs", "entries": "items", "base64": "textBase64",
    "timestamp": "createdAt", "since": "from", "until": "to", "type": "kind", "status": "state", "cwd": "directory", "workdir": "directory",
    "environment": "env", "size": "sizeBytes", "timeout": "timeoutMs", "memory": "memoryBytes", "disk": "diskBytes",
}
# RFC 9457; statuses of HTTP; and what the server is as a whole, as /health tells it.
AS_IT_IS = {("type", "problem"), ("status", "problem"), ("status", "GET /audit"), ("status", "GET /webhooks/{webhook}/deliveries"), ("status", "GET /system/info")}


def members(schema, where):
    """Each name with its schema, however deep."""
    if not isinstance(schema, dict):
        return
    for name, inner in schema.get("properties", {}).items():
        yield name, inner, where
        yield from members(inner, where)
    for key in ("items", "additionalProperties"):
        yield from members(schema.get(key), where)
    for key in ("oneOf", "anyOf", "allOf"):
        for inner in schema.get(key, []):
            yield from members(inner, where)


@pytest.fixture(scope="module")
def named(api):
    document = api.get("/api/v1/openapi.json").json
    found = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method.upper()} {path.removeprefix('/api/v1')}"
            if path.endswith("/openapi.json"):
                continue
            found += [(one["name"], one["schema"], where) for one in operation.get("parameters", []) if one.get("in") == "query"]
            for body in (operation.get("requestBody", {}), *operation["responses"].values()):
                for content in body.get("content", {}).values():
                    found += members(content.get("schema"), where)
    for schema in document["components"]["schemas"].values():
        found += members(schema, "problem")
    assert len(found) > 500
    return found


def test_names_are_camel_case_and_truths_are_plain(named):
    assert sorted({(name, where) for name, _, where in named if not NAME.fullmatch(name)}) == []
    assert sorted({(name, where) for name, _, where in named if re.match(r"(is|has)[A-Z]", name)}) == []


def test_words_are_snake_case(named):
    said = {(word, where) for _, schema, where in named for word in schema.get("enum", []) if isinstance(word, str)}
    assert len(said) > 50
    assert sorted(one for one in said if not WORD.fullmatch(one[0])) == []


def test_one_thing_has_one_name(named):
    wrong = {(name, where, INSTEAD[name]) for name, _, where in named if name in INSTEAD and (name, where) not in AS_IT_IS}
    assert sorted(wrong) == []


def test_times_end_in_at_and_times_alone(named):
    times = {(name, where) for name, schema, where in named if schema.get("format") == "date-time" and not name.endswith("At")}
    assert {name for name, _ in times} <= {"from", "to", "day", "failingSince"}
    assert sorted({(name, where) for name, schema, where in named if name.endswith("At") and "string" not in str(schema.get("type"))}) == []


def test_what_a_sandbox_was_made_of_is_told_by_its_id(api, sandbox):
    taken = api.post(f"/api/v1/sandboxes/{sandbox.id}/snapshots", {"name": "named"}).json
    made = api.post("/api/v1/sandboxes", {"snapshot": "named"}).json
    assert made["snapshotId"] == taken["id"]
    assert api.delete(f"/api/v1/sandboxes/{made['id']}").status == api.delete(f"/api/v1/snapshots/{taken['id']}").status == 204
