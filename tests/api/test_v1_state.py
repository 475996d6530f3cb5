# SPDX-License-Identifier: Apache-2.0
"""burrow's own API: checkpoints, snapshots and their builds, and the server about itself. Differences, exports and imports have files of their own."""
import pytest
from archives import member, tar_of
from client import check_problem, pages, query

V1 = "/api/v1"
UNKNOWN = "0" * 26


def test_checkpoints_are_made_listed_restored_and_removed(api, sandbox):
    top = f"{V1}/sandboxes/{sandbox.id}/checkpoints"
    sandbox.output("echo one >file")
    first = api.post(top, {"name": "first"})
    assert first.status == 201 and first.json["name"] == "first" and first.json["sandboxId"] == sandbox.id and "parent" not in first.json
    sandbox.output("echo two >file")
    second = api.post(top, {"name": "second"}).json
    assert second["parent"] == "first"
    assert [one["id"] for one in api.get(top).json["items"]] == [first.json["id"], second["id"]]
    assert api.post(f"{top}/first/restore").status == 204
    assert sandbox.output("cat file") == "one\n"
    assert api.post(f"{top}/{second['id']}/restore").status == 204
    assert sandbox.output("cat file") == "two\n"
    assert api.delete(f"{top}/first").status == 204
    assert [one["name"] for one in api.get(top).json["items"]] == ["second"]


def test_bad_checkpoints(api, shared):
    top = f"{V1}/sandboxes/{shared.id}/checkpoints"
    check_problem(api.post(top, {}), 400, "invalid_request", field="name")
    check_problem(api.post(top, {"name": ""}), 400, "invalid_request", field="name")
    check_problem(api.post(top, {"nam": "x"}), 400, "unknown_field", "name", field="nam")
    assert api.post(top, {"name": "taken"}).status == 201
    check_problem(api.post(top, {"name": "taken"}), 409, "already_exists", "taken")
    assert api.delete(f"{top}/taken").status == 204
    for answer in (api.post(f"{top}/taken/restore"), api.delete(f"{top}/taken"), api.delete(f"{top}/ckpt_{UNKNOWN}")):
        check_problem(answer, 404, "not_found", "checkpoint")
    check_problem(api.get(f"{V1}/sandboxes/sbx_{UNKNOWN}/checkpoints"), 404, "not_found", "sandbox")


@pytest.fixture
def snapshot(api, sandbox, made):
    sandbox.output("echo kept >file; chmod 640 file")
    answer = api.post(f"{V1}/sandboxes/{sandbox.id}/snapshots", {"name": "own", "tag": "v1", "description": "d"})
    assert answer.status == 201, str(answer)
    made.append(answer.json["id"])
    return answer.json


def test_a_snapshot_is_told_and_started_from(api, sandbox, snapshot, new):
    assert snapshot["sandboxId"] == sandbox.id and snapshot["state"] == "ready" and not snapshot["public"] and snapshot["tag"] == "v1"
    for reference in (snapshot["id"], "own:v1", "own", "v1"):
        assert api.get(f"{V1}/snapshots/{reference}").json["id"] == snapshot["id"]
    told = api.get(f"{V1}/snapshots/own?files=true").json
    assert {"path": "home/agentuity/file", "sizeBytes": 5, "mode": "0640"}.items() <= {
        one["path"].lstrip("/"): one | {"path": one["path"].lstrip("/")} for one in told["files"]}["home/agentuity/file"].items()
    assert len(told["files"]) == told["fileCount"] and "files" not in api.get(f"{V1}/snapshots/own").json
    assert new(snapshot=snapshot["id"]).output("cat file") == "kept\n"


def test_nobody_takes_a_name_from_one_who_sees_more(api, snapshot, made):
    """The key of this test sees everybody's snapshots; a small one makes a newer one of the same name and tag."""
    key = api.post(f"{V1}/keys", {"owner": "mallory", "scopes": ["read", "run", "manage"]}).json
    small = type(api)(api.port, key["key"])
    box = small.post(f"{V1}/sandboxes", {}).json
    theirs = small.post(f"{V1}/sandboxes/{box['id']}/snapshots", {"name": "own", "tag": "v1"})
    assert theirs.status == 201, str(theirs)
    try:
        for reference in ("own:v1", "own", "v1"):
            assert api.get(f"{V1}/snapshots/{reference}").json["id"] == snapshot["id"]
            assert small.get(f"{V1}/snapshots/{reference}").json["id"] == theirs.json["id"]
        # The hash of a build is its client's word too.
        built = small.post(f"{V1}/snapshots/builds", {"runtime": "base:latest", "name": "mine", "contentHash": "h9"}).json
        assert small.put(built["uploadUrl"], tar_of(member("evil", b""))).status == 204
        assert small.post(f"{V1}/snapshots/{built['id']}/finish", {}).status == 200
        made.append(built["id"])
        begun = api.post(f"{V1}/snapshots/builds", {"runtime": "base:latest", "name": "mine", "contentHash": "h9"})
        assert begun.status == 201 and not begun.json["unchanged"], str(begun)
        made.append(begun.json["id"])
        assert api.delete(f"{V1}/snapshots/{snapshot['id']}").status == 204
        made.remove(snapshot["id"])
        check_problem(api.post(f"{V1}/sandboxes", {"snapshot": "own"}), 404, "not_found", field="snapshot")
        assert api.get(f"{V1}/snapshots/{theirs.json['id']}").status == 200
    finally:
        small.delete(f"{V1}/sandboxes/{box['id']}")
        api.delete(f"{V1}/snapshots/{theirs.json['id']}")
        api.delete(f"{V1}/keys/{key['id']}")


def test_tags_move_and_go(api, sandbox, snapshot, made):
    other = api.post(f"{V1}/sandboxes/{sandbox.id}/snapshots", {"name": "own", "tag": "v2"}).json
    made.append(other["id"])
    assert api.patch(f"{V1}/snapshots/{other['id']}", {"tag": "v1"}).json["tag"] == "v1"
    assert "tag" not in api.get(f"{V1}/snapshots/{snapshot['id']}").json
    assert "tag" not in api.patch(f"{V1}/snapshots/{other['id']}", {"tag": None}).json
    check_problem(api.patch(f"{V1}/snapshots/{other['id']}", {}), 400, "invalid_request", "tag")
    check_problem(api.patch(f"{V1}/snapshots/{other['id']}", {"tag": ""}), 400, "invalid_request", field="tag")
    check_problem(api.patch(f"{V1}/snapshots/{other['id']}", {"tag": 1}), 400, "invalid_request", field="tag")
    check_problem(api.patch(f"{V1}/snapshots/snp_{UNKNOWN}", {"tag": "x"}), 404, "not_found", "snapshot")


def test_lists_of_snapshots(api, sandbox, made):
    ids = [api.post(f"{V1}/sandboxes/{sandbox.id}/snapshots", {"name": f"n{i}", "public": i == 1}).json["id"] for i in range(5)]
    made.extend(ids)
    found, count = pages(api, f"{V1}/snapshots?sandboxId={sandbox.id}", 2)
    assert [one["id"] for one in found] == ids[::-1] and count == 3
    assert [one["id"] for one in api.get(f"{V1}/snapshots?public=true").json["items"] if one["id"] in ids] == [ids[1]]
    check_problem(api.get(f"{V1}/snapshots?public=true&sandboxId={sandbox.id}"), 400, "invalid_request", "sandbox")
    check_problem(api.get(f"{V1}/snapshots?limit=0"), 400, "invalid_request", field="limit")


def test_a_page_goes_on_where_it_ended_while_snapshots_go(api, sandbox, made):
    ids = [api.post(f"{V1}/sandboxes/{sandbox.id}/snapshots", {"name": f"p{i}"}).json["id"] for i in range(4)]
    made.extend(ids)
    first = api.get(f"{V1}/snapshots?{query(sandboxId=sandbox.id, limit=2)}").json
    assert [one["id"] for one in first["items"]] == [ids[3], ids[2]]
    assert api.delete(f"{V1}/snapshots/{ids[2]}").status == 204
    made.append(api.post(f"{V1}/sandboxes/{sandbox.id}/snapshots", {"name": "later"}).json["id"])
    rest = api.get(f"{V1}/snapshots?{query(sandboxId=sandbox.id, limit=2, cursor=first['nextCursor'])}").json
    assert [one["id"] for one in rest["items"]] == [ids[1], ids[0]] and "nextCursor" not in rest


def test_lineage_names_deleted_ones_too(api, snapshot, new, made):
    child = api.post(f"{V1}/sandboxes/{new(snapshot=snapshot['id']).id}/snapshots", {"name": "child"}).json
    made.append(child["id"])
    assert child["parentId"] == snapshot["id"]
    assert api.delete(f"{V1}/snapshots/{snapshot['id']}").status == 204
    line = api.get(f"{V1}/snapshots/child/lineage").json["items"]
    assert [(one["id"], one["state"]) for one in line] == [(child["id"], "ready"), (snapshot["id"], "deleted")]
    assert line[1]["deletedAt"]
    check_problem(api.get(f"{V1}/snapshots/own:v1"), 404, "not_found", "snapshot")


def test_a_snapshot_is_built_of_files(api, new, made):
    begun = api.post(f"{V1}/snapshots/builds", {"runtime": "base:latest", "name": "built", "contentHash": "h1", "git": {"branch": "main"}})
    assert begun.status == 201 and not begun.json["unchanged"], str(begun)
    made.append(begun.json["id"])
    check_problem(api.post(f"{V1}/snapshots/{begun.json['id']}/finish", {}), 409, "conflict", "uploaded")
    assert api.put(begun.json["uploadUrl"], tar_of(member("a/b", b"content"))).status == 204
    check_problem(api.post(f"{V1}/snapshots/{begun.json['id']}/finish", {"directory": "there"}), 400, "invalid_request", "directory")
    check_problem(api.post(f"{V1}/snapshots/{begun.json['id']}/finish", {"env": {"A=B": "x"}}), 400, "invalid_request", "A=B", field="env")
    check_problem(api.post(f"{V1}/snapshots/{begun.json['id']}/finish", {"dependencies": ["a;b"]}), 400, "invalid_request", "dependencies", "a;b")
    check_problem(api.post(f"{V1}/snapshots/{begun.json['id']}/finish", {"packages": ["typescript"]}), 400, "invalid_request", "packages", "neither npm nor bun")
    done = api.post(f"{V1}/snapshots/{begun.json['id']}/finish", {"env": {"WORD": "x"}, "metadata": {"deep": [1, {"a": None}]}})
    assert done.status == 200 and done.json["metadata"] == {"deep": [1, {"a": None}]} and done.json["git"] == {"branch": "main"}, str(done)
    assert new(snapshot=begun.json["id"]).output('cat /workspace/a/b; echo "$WORD"') == "contentx\n"
    again = api.post(f"{V1}/snapshots/builds", {"runtime": "base:latest", "name": "built", "contentHash": "h1"})
    assert again.status == 200 and again.json["unchanged"] and again.json["id"] == begun.json["id"] and "uploadUrl" not in again.json
    check_problem(api.put(begun.json["uploadUrl"], tar_of(member("a", b""))), 409, "conflict")
    check_problem(api.post(f"{V1}/snapshots/builds", {"runtime": "nonsense:1"}), 404, "not_found", "runtime")
    check_problem(api.put(f"{V1}/snapshots/snp_{UNKNOWN}/upload", b""), 404, "not_found", "snapshot")


def test_builds_and_imports_are_told(api, made):
    begun = api.post(f"{V1}/snapshots/builds", {"runtime": "base:latest", "name": "told"}).json
    made.append(begun["id"])
    assert api.put(begun["uploadUrl"], tar_of(member("a", b""))).status == 204
    assert api.post(f"{V1}/snapshots/{begun['id']}/finish", {}).status == 200
    made.append(api.post(f"{V1}/snapshots/import?name=arrived", body=api.get(f"{V1}/snapshots/{begun['id']}/export").body).json["id"])
    events, _ = pages(api, f"{V1}/events?kind=snapshot.created", 100)
    assert {("told", made[-2]), ("arrived", made[-1])} <= {(event["data"]["name"], event["data"]["snapshotId"]) for event in events}


def test_what_the_doctor_finds(api):
    items = {one["name"]: one for one in api.get(f"{V1}/system/doctor").json["items"]}
    assert items["root"]["state"] == "fine" and "fix" not in items["root"] and items["kernel"]["detail"]


def test_our_own_routes_left_the_vendors_paths(api, shared):
    for method, path in (("GET", f"/sandbox/{shared.id}/diff"), ("GET", "/system/df"), ("POST", "/system/prune"), ("GET", "/system/limits"),
                         ("GET", "/sandbox/snapshots/own/export"), ("POST", "/sandbox/snapshots/import")):
        assert api.call(method, path).status in (404, 405), path
        assert path.replace(shared.id, "{id}") not in api.get("/openapi.json").json["paths"]
