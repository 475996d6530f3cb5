# SPDX-License-Identifier: Apache-2.0
"""What all of burrow's own API shares: its document, failures, pages and strictness."""
import pathlib
import re

import pytest

from client import Client, check_problem, pages

METHODS = {"get", "put", "post", "delete", "patch"}


@pytest.fixture(scope="module")
def document(api):
    return api.get("/api/v1/openapi.json", key=None).json


def test_the_server_says_what_it_is(api):
    info = api.get("/api/v1/system/info").json
    assert info["name"] == "burrow" and info["version"] == api.get("/version").json["version"]
    assert info["status"] == "ok" and info["runtimeReady"] is True and info["runtime"].count(":") == 1


def test_each_wire_has_its_own_document(api, document):
    assert all(path.startswith("/api/v1/") for path in document["paths"])
    assert not any(path.startswith("/api/v1/") for path in api.get("/openapi.json").json["paths"])
    assert "/api/v1/runtimes" in document["paths"]


def test_every_operation_says_what_it_answers(document):
    for path, item in document["paths"].items():
        for method in set(item) & METHODS:
            responses = item[method]["responses"]
            fine = [status for status in responses if status.startswith(("1", "2"))]
            assert fine and "2XX" not in fine, f"{method} {path} does not say what it answers"
            for status in ("4XX", "5XX"):
                assert "$ref" in responses[status]["content"]["application/problem+json"]["schema"], f"{method} {path}"


def every(document):
    return [(method, path, item[method]) for path, item in document["paths"].items() for method in set(item) & METHODS]


def test_operations_have_names_and_tags_of_their_own(document):
    names = [operation["operationId"] for _, _, operation in every(document)]
    assert len(set(names)) == len(names) and all(name.isalpha() for name in names)
    listed = [tag["name"] for tag in document["tags"]]
    assert {tag for _, _, operation in every(document) for tag in operation["tags"]} == set(listed) and len(set(listed)) == len(listed)
    assert all(tag["description"] for tag in document["tags"])


def test_what_is_said_of_operations_beside_their_rows_is_said_of_ones_that_there_are(document):
    table = (pathlib.Path(__file__).resolve().parents[2] / "src/front/api/api_document.c").read_text()
    said = re.findall(r'^    \{"([A-Z]+ /[^"]*)", ', table, re.M)
    assert len(said) > 20 and len(set(said)) == len(said)
    there = {f"{method.upper()} {path.removeprefix('/api/v1')}" for method, path, _ in every(document)}
    assert set(said) <= there, set(said) - there


def test_all_codes_are_listed_with_what_they_mean(document):
    problems = document["components"]["x-problems"]
    codes = document["components"]["schemas"]["api-failure"]["properties"]["code"]["enum"]
    assert [problem["code"] for problem in problems] == codes and len(codes) > 30
    assert all(400 <= problem["status"] < 600 and problem["title"] for problem in problems)


def test_each_operation_says_how_it_can_fail(document):
    for method, path, operation in every(document):
        responses = set(operation["responses"])
        assert {"400", "503", "4XX", "5XX"} <= responses, f"{method} {path}"
        assert operation.get("security") == [] or {"401", "403", "429"} <= responses, f"{method} {path}"
        assert method != "post" or {"409", "422"} <= responses, f"{method} {path}"
        assert "{" not in path or "404" in responses, f"{method} {path}"


def test_only_the_document_needs_no_key(api, document):
    for path, item in document["paths"].items():
        for method in set(item) & METHODS:
            if item[method].get("security") == []:
                assert path == "/api/v1/openapi.json"
                continue
            for key in (None, "brw_wrong_wrong_wrong_wrong"):
                answer = api.call(method.upper(), path.replace("{", "").replace("}", ""), key=key)
                check_problem(answer, 401, "unauthorized")
                assert answer.headers["www-authenticate"]


def test_what_is_not_there(api):
    problem = check_problem(api.get("/api/v1/nowhere"), 404, "route_not_found", "/api/v1/nowhere")
    assert problem["type"] == "about:blank" and "openapi.json" in problem["remedy"]
    answer = api.delete("/api/v1/runtimes")
    check_problem(answer, 405, "method_not_allowed", "GET")
    assert "GET" in answer.headers["allow"]


def test_other_methods_are_refused_on_every_path(api, document):
    for path, item in document["paths"].items():
        others = sorted(METHODS - set(item))
        answer = api.call(others[0].upper(), path.replace("{", "").replace("}", ""), body=b"")
        check_problem(answer, 405, "method_not_allowed")
        allowed = set(answer.headers["allow"].lower().split(", "))
        assert allowed - {"head"} == set(item) and ("head" in allowed) == ("get" in item), f"{path}: {answer.headers}"


def test_the_request_id_is_the_clients(api):
    answer = api.get("/api/v1/nowhere", headers={"X-Request-Id": "mine-7"})
    assert check_problem(answer, 404, "route_not_found")["requestId"] == "mine-7"


def test_unknown_parameters_are_refused(api):
    check_problem(api.get("/api/v1/runtimes?limitt=3"), 400, "unknown_field", "did you mean 'limit'", field="limitt")
    check_problem(api.get("/api/v1/system/info?x=1"), 400, "unknown_field", field="x")
    assert api.get("/sandbox/runtimes?limitt=3").status == 200  # vendors' clients send what they like


def test_bad_parameters_are_named(api):
    for bad in ("0", "101", "x", "-1"):
        check_problem(api.get(f"/api/v1/runtimes?limit={bad}"), 400, "invalid_request", field="limit")
    for bad in ("x", "====", "MQ", "a" * 400, "MSA%2B", "%00"):
        answer = api.get(f"/api/v1/runtimes?cursor={bad}")
        assert answer.status == 400 and answer.json["code"] == "invalid_request", str(answer)


def test_pages(api):
    whole = api.get("/api/v1/runtimes").json
    assert "nextCursor" not in whole
    names = [entry["name"] for entry in whole["items"]]
    assert names == sorted(names) and {"base:latest", "host:latest"} <= set(names)
    for limit in range(1, len(names) + 1):
        items, count = pages(api, "/api/v1/runtimes", limit)
        assert items == whole["items"] and count == -(-len(names) // limit)
    assert [entry["id"] for entry in whole["items"]] != []


def test_ids_are_those_of_other_wires(api):
    others = {entry["name"]: entry["id"] for entry in api.get("/sandbox/runtimes").data["runtimes"]}
    assert {entry["name"]: entry["id"] for entry in api.get("/api/v1/runtimes").json["items"]} == others


def test_answers_are_held_against_the_right_document(api):
    """The checker itself: it must be able to fail."""
    checker = Client.on_answer
    good = api.get("/api/v1/runtimes")
    good.body = good.body.replace(b'"items"', b'"itens"')
    with pytest.raises(AssertionError, match="items is missing"):
        checker(api, "GET", "/api/v1/runtimes", good)
    bad = api.get("/api/v1/nowhere")
    bad.body = bad.body.replace(b'"code"', b'"kode"')
    with pytest.raises(AssertionError, match="code is missing"):
        checker(api, "GET", "/api/v1/runtimes", bad)
