# SPDX-License-Identifier: Apache-2.0
"""Checks answers against the server's own OpenAPI document: the subset of JSON Schema that it is written in, and no more.

Stricter than a client should be: a member that the document does not name is a fault, unless it says that there may be others.
"""
import gzip
import http.client
import json
import re

TYPES = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}
KNOWN = {"type", "description", "enum", "format", "minimum", "items", "additionalProperties", "required", "properties", "$ref"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def is_of(value, name):
    if name in ("integer", "number"):
        return isinstance(value, int if name == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def faults(schema, value, document, path="answer"):
    """What is wrong with it, one sentence each."""
    if "$ref" in schema:
        schema = find(document, schema["$ref"])
    assert not set(schema) - KNOWN, f"words of JSON Schema that this checker does not know: {set(schema) - KNOWN}"
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_of(value, name) for name in names):
        yield f"{path} must be {' or '.join(names)}, not {value!r}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path} is {value!r}, none of {schema['enum']}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{path} is {value}, less than {schema['minimum']}"
    if schema.get("format") == "date-time" and value is not None and not TIME.fullmatch(value):
        yield f"{path} is no time: {value!r}"
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from faults(schema["items"], item, document, f"{path}[{index}]")
    if isinstance(value, dict) and ("properties" in schema or "additionalProperties" in schema):
        yield from member_faults(schema, value, document, path)


def member_faults(schema, value, document, path):
    for name in schema.get("required", []):
        if name not in value:
            yield f"{path}.{name} is missing"
    others = schema.get("additionalProperties", False)
    for name, member in value.items():
        if name in schema.get("properties", {}):
            yield from faults(schema["properties"][name], member, document, f"{path}.{name}")
        elif others is False:
            yield f"{path}.{name} is not described"
        elif others is not True:
            yield from faults(others, member, document, f"{path}.{name}")


def find(document, reference):
    target = document
    for part in reference.removeprefix("#/").split("/"):
        target = target[part]
    return target


class Document:
    def __init__(self, document):
        self.document = document
        shapes = [(path, [segment.startswith("{") for segment in path.split("/")]) for path in document["paths"]]
        self.paths = [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path) for path, _ in sorted(shapes, key=lambda shape: shape[1])]

    def operation(self, method, path):
        """Of a request; None: it has no route. Words win over parameters."""
        path = "/" + path.partition("?")[0].lstrip("/")
        for pattern, name in self.paths:
            if pattern.fullmatch(path) and method.lower() in self.document["paths"][name]:
                return self.document["paths"][name][method.lower()]
        return None

    def check(self, method, path, answer):
        operation = self.operation(method, path)
        content = answer.headers.get("content-type", "").partition(";")[0]
        if path == "/mcp":
            return  # messages of a protocol, which describes itself
        if not operation or content not in ("application/json", "application/problem+json"):
            return
        described = operation["responses"]
        found = described.get(str(answer.status), described.get(f"{answer.status // 100}XX"))
        if found and "$ref" in found:
            found = find(self.document, found["$ref"])
        assert found or answer.status >= 300, f"{method} {path}: status {answer.status} is not described"
        schema = (found or {}).get("content", {}).get(content, {}).get("schema")
        if schema is not None:
            body = gzip.decompress(answer.body) if answer.headers.get("content-encoding") == "gzip" else answer.body
            wrong = list(faults(schema, json.loads(body), self.document))
            assert not wrong, f"{method} {path} is not as the document says: {wrong}: {answer}"


class Checker:
    """For Client.on_answer: each server's document is read once."""

    def __init__(self):
        self.documents = {}

    def document(self, client, path):
        """That of burrow's own API, or that of all others."""
        where = "/api/v1/openapi.json" if path.lstrip("/").startswith("api/v1/") else "/openapi.json"
        if (client.url, where) not in self.documents:
            connection = http.client.HTTPConnection(client.host, client.port, timeout=60)
            try:
                connection.request("GET", where)
                self.documents[client.url, where] = Document(json.loads(connection.getresponse().read()))
            finally:
                connection.close()
        return self.documents[client.url, where]

    def __call__(self, client, method, path, answer):
        if answer.status == 503 or method == "HEAD":
            return  # it is on its way out; nothing to look at
        self.document(client, path).check(method, path, answer)
