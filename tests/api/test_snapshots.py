# SPDX-License-Identifier: Apache-2.0
"""Snapshots: a sandbox's files under a name, to start others from."""
import hashlib
from urllib.parse import quote

import pytest
from client import check_error, nulls, query, together, until, waiting_for

UNKNOWN = "snp_" + "0" * 26


@pytest.fixture
def snap(api):
    """Takes snapshots that go with the test."""
    made = []

    def take(sandbox, **fields):
        answer = api.post(f"/sandbox/{sandbox.id}/snapshot", fields)
        assert answer.status == 201, str(answer)
        made.append(answer.data["snapshotId"])
        return answer.data
    yield take
    for id in made:
        answer = api.delete(f"/sandbox/snapshots/{id}")
        assert answer.status in (200, 404), str(answer)


def get(api, reference):
    return api.get(f"/sandbox/snapshots/{quote(reference, safe='')}")


def listed(api, **fields):
    return api.get(f"/sandbox/snapshots?{query(**fields)}").data


def ids(page):
    return [entry["snapshotId"] for entry in page["snapshots"]]


# ---- the object ----

def test_the_object(api, sandbox, snap):
    sandbox.write_all({"a.txt": b"alpha", "sub/run.sh": b"#!/bin/sh\n"})
    sandbox.output("chmod 755 sub/run.sh")
    made = snap(sandbox, name="object", description="what it is", tag="v1", public=False)
    assert made["snapshotId"].startswith("snp_") and made["createdAt"].endswith("Z")
    assert (made["name"], made["tag"], made["description"], made["public"]) == ("object", "v1", "what it is", False)
    assert made["fullName"] == "object:v1" and "parentSnapshotId" not in made
    assert made["runtimeId"] == sandbox.get()["runtime"]["id"]
    assert made["user"]["id"].startswith("user_") and made["org"]["id"].startswith("org_") and made["org"]["name"]
    assert isinstance(made["sizeBytes"], int) and isinstance(made["fileCount"], int)
    assert not nulls(made) and "files" not in made and "publicKey" not in made and "uploadUrl" not in made
    seen = get(api, made["snapshotId"]).data
    assert seen["fileCount"] == 2 and seen["sizeBytes"] > 0
    files = {entry["path"].removeprefix("/").removeprefix("home/agentuity/"): entry for entry in seen["files"]}
    assert set(files) == {"a.txt", "sub/run.sh"} and not nulls(seen)
    assert files["a.txt"] == {**files["a.txt"], "size": 5, "sha256": hashlib.sha256(b"alpha").hexdigest(), "contentType": "text/plain"}
    assert files["sub/run.sh"]["mode"] == 0o755


def test_files_are_counted_in_whatever_shows_them_first(api, new, snap):
    few, many, none = new(), new(), new()
    few.output("for n in 1 2 3; do echo $n >$n; done; ln 1 link; ln -s 1 symbolic; mkdir d; mkfifo pipe; rm /etc/hosts")
    many.output("mkdir many; cd many; for n in $(seq 5000); do echo $n >$n; done")
    made = {sandbox: snap(sandbox, name="counted")["snapshotId"] for sandbox in (none, many, few)}
    wanted = {made[few]: 4, made[many]: 5000, made[none]: 0}
    seen = {entry["snapshotId"]: entry["fileCount"] for entry in listed(api, limit=100)["snapshots"]}
    assert {id: seen[id] for id in wanted} == wanted
    later = snap(new(snapshot=made[many]), name="counted")["snapshotId"]  # what lies below counts
    order = [id for id in ids(listed(api, sort="files", direction="desc", limit=100)) if id in {*wanted, later}]
    assert set(order[:2]) == {made[many], later} and order[2:] == [made[few], made[none]]
    for id, count in {**wanted, later: 5000}.items():
        shown = get(api, id).data
        assert shown["fileCount"] == count == len(shown["files"])
    assert get(api, made[few]).data["sizeBytes"] < get(api, made[many]).data["sizeBytes"]


def test_a_small_snapshot_is_counted_when_it_is_made(sandbox, snap):
    sandbox.write_all({"a": b"1", "b/c": b"2"})
    assert snap(sandbox)["fileCount"] == 2


def test_an_empty_body_gets_a_name_and_the_tag_latest(api, sandbox, snap):
    made = snap(sandbox)
    assert made["name"] and made["tag"] == "latest" and made["public"] is False and "description" not in made
    other = api.post(f"/sandbox/{sandbox.id}/snapshot", headers={"Content-Type": "application/json"})
    assert other.status == 201, str(other)
    assert other.data["name"] != made["name"]
    api.delete(f"/sandbox/snapshots/{other.data['snapshotId']}")


def test_nulls_count_as_absent(sandbox, snap):
    assert snap(sandbox, name=None, description=None, tag=None, public=None)["tag"] == "latest"


@pytest.mark.parametrize("field, value", [
    ("name", ""), ("name", "a b"), ("name", "a/b"), ("name", "a:b"), ("name", "a.b"), ("name", "ü"), ("name", "n" * 200), ("name", 1),
    ("tag", ""), ("tag", ".x"), ("tag", "-x"), ("tag", "a b"), ("tag", "a:b"), ("tag", "t" * 129), ("tag", 1),
    ("public", "yes"), ("description", 1),
])
def test_bad_fields_are_refused(api, shared, field, value):
    before = listed(api)["total"]
    check_error(api.post(f"/sandbox/{shared.id}/snapshot", {field: value}), 400, "INVALID_ARGUMENT", field)
    assert listed(api)["total"] == before


@pytest.mark.parametrize("tag", ["v1.0", "1", "_x", "t" * 128, "a-b.c_d"])
def test_tags_that_are_fine(sandbox, snap, tag):
    assert snap(sandbox, name="fine", tag=tag)["tag"] == tag


def test_sent_twice_with_one_key_it_is_taken_once(api, sandbox):
    headers = {"Idempotency-Key": f"snap-{sandbox.id}"}
    first, second = (api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "once"}, headers=headers).data for _ in range(2))
    assert first["snapshotId"] == second["snapshotId"]
    assert listed(api, sandboxId=sandbox.id)["total"] == 1
    api.delete(f"/sandbox/snapshots/{first['snapshotId']}")


# ---- what can be taken ----

def test_of_unknown_destroyed_and_ended_sandboxes(api):
    check_error(api.post("/sandbox/sbx_none/snapshot", {}), 404, "SANDBOX_NOT_FOUND")
    check_error(api.post("/sandbox/sbx_none/snapshot", {}, key=None), 401, "UNAUTHORIZED")
    deleted = api.create()
    deleted.delete()
    check_error(api.post(f"/sandbox/{deleted.id}/snapshot", {}), 404, "SANDBOX_NOT_FOUND")
    ended = api.create_one_shot("true")
    ended.wait_status("terminated")
    check_error(api.post(f"/sandbox/{ended.id}/snapshot", {}), 404, "SANDBOX_TERMINATED")


def test_while_a_command_runs(api, new, sandbox, snap):
    started = sandbox.execute("sh", "-c", f"echo one >file; touch ready; {waiting_for()}; echo two >file")
    until(lambda: sandbox.read("ready").status == 200, "the command to write")
    made = snap(sandbox)
    sandbox.release()
    sandbox.client.wait_execution(started["executionId"])
    assert sandbox.output("cat file") == "two\n"
    assert new(snapshot=made["snapshotId"]).output("cat file") == "one\n"


def test_of_a_paused_sandbox(new, sandbox, snap):
    sandbox.write(kept="yes")
    assert sandbox.client.post(f"/sandbox/{sandbox.id}/pause").status == 200
    made = snap(sandbox)
    assert sandbox.status()["status"] == "suspended"
    assert new(snapshot=made["snapshotId"]).output("cat kept") == "yes"


def test_all_kinds_of_files_come_along(new, sandbox, snap):
    sandbox.output("""
        mkdir -p tree/deep "sp ace" empty; echo old >tree/file; ln -s file tree/link; ln -s /nowhere dangling; ln tree/file hard
        chmod 4755 tree/file; chmod 700 tree/deep; truncate -s 64M sparse; printf x | dd of=sparse bs=1 seek=33554432 conv=notrunc 2>/dev/null
        printf 'a\\nb' >"new
line"; mv tree renamed; rm -rf /usr/share/doc; rm /etc/hostname || :; mkdir -p /opt/mine; echo o >/opt/mine/o
        rm -rf /etc/apt; mkdir /etc/apt; echo only >/etc/apt/only; touch -d 2001-02-03 empty""")
    tree = ("cd /home/agentuity; find . -printf '%P %y %m %n %s %l %U %G %T@\\n' | sort; find /etc/apt /opt | sort; test ! -e /usr/share/doc && echo gone;"
            "stat -c %h renamed/file; du sparse | cut -f1; sha1sum sparse hard")
    before = sandbox.output(tree)
    other = new(snapshot=snap(sandbox)["snapshotId"])
    assert other.output(tree) == before


# ---- starting from one ----

@pytest.fixture
def base(sandbox, snap):
    sandbox.write_all({"kept.txt": b"kept"})
    sandbox.output("echo dropped >/etc/extra")
    return snap(sandbox, name=f"base-{sandbox.id[4:12]}", tag="t1")


@pytest.mark.parametrize("how", ["id", "name:tag", "name", "@org/name:tag"])
def test_references(api, new, base, how):
    reference = {"id": base["snapshotId"], "name:tag": f"{base['name']}:t1", "name": base["name"],
                 "@org/name:tag": f"@{base['org']['slug']}/{base['name']}:t1"}[how]
    sandbox = new(snapshot=reference)
    assert sandbox.output("cat kept.txt /etc/extra") == "keptdropped\n"
    seen = sandbox.get()
    assert seen["snapshot"] == {"id": base["snapshotId"], "name": base["name"], "tag": "t1", "fullName": f"{base['name']}:t1",
                                "public": False, "user": base["user"]}
    assert seen["runtime"]["id"] == base["runtimeId"]
    [entry] = api.get(f"/sandbox?snapshotId={base['snapshotId']}").data["sandboxes"]
    assert entry["sandboxId"] == sandbox.id and entry["snapshot"] == seen["snapshot"]


def test_a_tag_alone_means_the_newest_with_it(new, sandbox, snap):
    tag = f"only-{sandbox.id[4:12]}"
    for word in ("first", "second"):
        sandbox.write(word=word)
        snap(sandbox, name=f"{word}-{sandbox.id[4:12]}", tag=tag)
    assert new(snapshot=tag).output("cat word") == "second"


def test_a_name_alone_means_the_newest_of_it(new, sandbox, snap):
    name = f"n-{sandbox.id[4:12]}"
    for word in ("first", "second"):
        sandbox.write(word=word)
        snap(sandbox, name=name, tag=word)
    assert new(snapshot=name).output("cat word") == "second"
    assert new(snapshot=f"{name}:first").output("cat word") == "first"


@pytest.mark.parametrize("fields", [{"runtime": "base:latest"}, {"runtimeId": "srt_x"}])
def test_a_snapshot_and_a_runtime_exclude_each_other(api, base, fields):
    check_error(api.post("/sandbox", {"snapshot": base["snapshotId"], **fields}), 400, "INVALID_ARGUMENT", "snapshot")


@pytest.mark.parametrize("reference", [UNKNOWN, "snp_none", "no-such-name", "no-such:tag", "@no/such:tag", "a b", "x" * 3000])
def test_unknown_references(api, reference):
    check_error(api.post("/sandbox", {"snapshot": reference}), 404, "SNAPSHOT_NOT_FOUND")
    check_error(api.post("/sandbox", {"snapshot": reference, "command": {"exec": ["true"], "mode": "oneshot"}}), 404, "SNAPSHOT_NOT_FOUND")


def test_an_empty_reference_is_bad(api):
    check_error(api.post("/sandbox", {"snapshot": ""}), 400, "INVALID_ARGUMENT", "snapshot")


def test_a_run_from_a_snapshot(api, base):
    ran = api.create_one_shot("cat", "kept.txt", snapshot=base["snapshotId"])
    assert ran.first().stdout == b"kept"
    assert ran.wait_status("terminated")["exitCode"] == 0


def test_two_from_one_never_see_each_other(api, new, base, sandbox):
    first, second = new(snapshot=base["snapshotId"]), new(snapshot=base["snapshotId"])
    first.output("echo first >mine; rm kept.txt; echo changed >/etc/extra")
    assert second.output("ls; cat /etc/extra") == "kept.txt\ndropped\n"
    second.output("echo second >kept.txt")
    assert first.output("ls") == "mine\n"
    assert sandbox.output("cat kept.txt /etc/extra") == "keptdropped\n"
    assert new(snapshot=base["snapshotId"]).output("cat kept.txt; ls") == "keptkept.txt\n"


def test_files_variables_and_limits_of_the_request_come_on_top(new, base):
    sandbox = new(snapshot=base["snapshotId"], env={"WORD": "x"}, files=[{"path": "kept.txt", "content": "b3Zlcg=="}], resources={"memory": "256Mi"})
    assert sandbox.output("cat kept.txt; echo $WORD") == "overx\n"
    assert sandbox.get()["resources"] == {"memory": "256Mi"}


def test_sandboxes_live_on_when_it_is_deleted(api, new, base):
    sandbox = new(snapshot=base["snapshotId"])
    sandbox.write(own="o")
    answer = api.delete(f"/sandbox/snapshots/{base['snapshotId']}")
    assert answer.status == 200 and answer.json == {"success": True}
    assert sandbox.output("cat kept.txt own; rm kept.txt; ls") == "kepto" + "own\n"
    assert sandbox.get()["snapshot"]["id"] == base["snapshotId"]
    assert api.get(f"/sandbox?snapshotId={base['snapshotId']}").data["total"] == 1
    check_error(api.post("/sandbox", {"snapshot": base["snapshotId"]}), 404, "SNAPSHOT_NOT_FOUND")
    assert sandbox.client.post(f"/sandbox/{sandbox.id}/pause").status == 200
    assert sandbox.output("cat own") == "o", "paused, woken, and still there"


def test_a_snapshot_of_a_snapshot_lives_on_when_the_first_is_deleted(api, new, base, snap):
    middle = new(snapshot=base["snapshotId"])
    middle.output("echo second >second; rm kept.txt")
    made = snap(middle, name="second")
    assert made["parentSnapshotId"] == base["snapshotId"]
    assert api.delete(f"/sandbox/snapshots/{base['snapshotId']}").status == 200
    middle.delete()
    assert new(snapshot=made["snapshotId"]).output("ls; cat /etc/extra") == "second\ndropped\n"


def test_a_chain_of_twelve(api, new, sandbox, snap):
    reference = None
    for i in range(12):
        link = new(snapshot=reference) if reference else sandbox
        link.output(f"echo {i} >file-{i}; echo {i} >last; rm -f file-{i - 3}")
        reference = snap(link, name=f"link-{i}")["snapshotId"]
    assert new(snapshot=reference).output("cat last; ls").split() == ["11", "file-10", "file-11", "file-9", "last"]
    assert len(api.get(f"/sandbox/snapshots/lineage?snapshot={reference}").data["lineage"]) == 12


def test_checkpoints_of_a_sandbox_from_a_snapshot(new, base):
    sandbox = new(snapshot=base["snapshotId"])
    assert sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "fresh"}).status == 201
    sandbox.output("rm kept.txt; echo x >y")
    assert sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint/fresh/restore").status == 200
    assert sandbox.output("cat kept.txt; ls") == "keptkept.txt\n"


# ---- get ----

def test_get_by_reference(api, base):
    for reference in (base["snapshotId"], f"{base['name']}:t1", base["name"]):
        assert get(api, reference).data["snapshotId"] == base["snapshotId"]


def test_get_of_what_is_not_there(api, base):
    for reference in (UNKNOWN, "snp_none", "none", "none:none"):
        check_error(get(api, reference), 404, "SNAPSHOT_NOT_FOUND")
    assert api.delete(f"/sandbox/snapshots/{base['snapshotId']}").status == 200
    check_error(get(api, base["snapshotId"]), 404, "SNAPSHOT_NOT_FOUND")
    check_error(api.delete(f"/sandbox/snapshots/{base['snapshotId']}"), 404, "SNAPSHOT_NOT_FOUND")
    check_error(api.delete(f"/sandbox/snapshots/{UNKNOWN}"), 404, "SNAPSHOT_NOT_FOUND")
    check_error(get(api, f"{base['name']}:t1"), 404, "SNAPSHOT_NOT_FOUND")


def test_files_of_a_snapshot_of_a_snapshot_are_all_of_them(api, new, base, snap):
    middle = new(snapshot=base["snapshotId"])
    middle.output("echo second >second; rm /etc/extra")
    seen = get(api, snap(middle)["snapshotId"]).data
    names = {entry["path"].rsplit("/", 1)[-1] for entry in seen["files"]}
    assert names == {"kept.txt", "second"} and seen["fileCount"] == 2


# ---- lists ----

def test_lists_filters_pages_and_totals(api, new, snap):
    first, second = new(), new()
    made = [snap(first, name=f"l-{i}") for i in range(3)] + [snap(second, name="l-x")]
    page = listed(api, sandboxId=first.id)
    assert ids(page) == [entry["snapshotId"] for entry in made[2::-1]] and page["total"] == 3
    assert ids(listed(api, sandboxId=first.id, limit=1, offset=1)) == [made[1]["snapshotId"]]
    assert listed(api, sandboxId=first.id, limit=1)["total"] == 3
    assert listed(api, sandboxId=first.id, limit=0) == {"snapshots": [], "total": 3}
    assert ids(listed(api, sandboxId=first.id, offset=3)) == []
    assert ids(listed(api, sandboxId=second.id, limit=1000)) == [made[3]["snapshotId"]]
    assert listed(api, sandboxId="sbx_none") == {"snapshots": [], "total": 0}
    assert set(ids(listed(api, limit=100))) >= {entry["snapshotId"] for entry in made}
    assert not nulls(page)


def test_lists_are_sorted(api, new, snap):
    sandbox = new()
    sizes = {"b": 3000, "a": 1000, "c": 2000}
    for name, count in sizes.items():
        sandbox.output(f"rm -rf d; mkdir d; head -c {count}00 /dev/urandom >d/big; cd d; seq {count // 500} | xargs touch")
        get(api, snap(sandbox, name=f"s-{name}")["snapshotId"])  # waits until it is counted
    names = lambda **fields: [entry["name"][2:] for entry in listed(api, sandboxId=sandbox.id, **fields)["snapshots"]]
    assert names() == names(sort="created") == names(sort="created", direction="desc") == ["c", "a", "b"]
    assert names(sort="created", direction="asc") == ["b", "a", "c"]
    assert names(sort="name", direction="asc") == ["a", "b", "c"]
    assert names(sort="files", direction="desc") == ["b", "c", "a"]
    assert names(sort="files", direction="asc") == ["a", "c", "b"]
    assert names(sort="size", direction="asc") == ["a", "c", "b"]


@pytest.mark.parametrize("bad", ["limit=x", "limit=-1", "offset=-1", "offset=x", "sort=updated", "direction=up"])
def test_bad_parameters(api, bad):
    check_error(api.get(f"/sandbox/snapshots?{bad}"), 400, "INVALID_ARGUMENT", bad.split("=")[0])
    check_error(api.get(f"/sandbox/snapshots/public?{bad}", key=None), 400, "INVALID_ARGUMENT", bad.split("=")[0])


def test_a_key_is_needed(api, base):
    id = base["snapshotId"]
    for answer in (api.get("/sandbox/snapshots", key=None), api.get(f"/sandbox/snapshots/{id}", key=None),
                   api.patch(f"/sandbox/snapshots/{id}", {"tag": "x"}, key=None), api.delete(f"/sandbox/snapshots/{id}", key=None),
                   api.get(f"/sandbox/snapshots/lineage?snapshot={id}", key=None), api.post("/sandbox/snapshots/build", {}, key=None),
                   api.post(f"/sandbox/snapshots/{id}/finalize", {}, key=None), api.put(f"/sandbox/snapshots/{id}/upload", key=None)):
        check_error(answer, 401, "UNAUTHORIZED")


# ---- tags ----

def test_a_tag_is_set_changed_and_cleared(api, base):
    path = f"/sandbox/snapshots/{base['snapshotId']}"
    changed = api.patch(path, {"tag": "v1.0"}).data
    assert changed["tag"] == "v1.0" and changed["fullName"] == f"{base['name']}:v1.0" and changed["snapshotId"] == base["snapshotId"]
    cleared = api.patch(path, {"tag": None}).data
    assert "tag" not in cleared and cleared["fullName"] == base["name"] and not nulls(cleared)
    check_error(get(api, f"{base['name']}:v1.0"), 404, "SNAPSHOT_NOT_FOUND")
    assert get(api, base["name"]).data["snapshotId"] == base["snapshotId"]


@pytest.mark.parametrize("body", [{}, {"tag": ""}, {"tag": 1}, {"tag": ".x"}, {"tag": "a b"}, {"tag": ["x"]}, {"tag": "a\0b"}, {"tag": "t" * 129}])
def test_bad_tags(api, base, body):
    check_error(api.patch(f"/sandbox/snapshots/{base['snapshotId']}", body), 400, "INVALID_ARGUMENT", "tag")
    assert get(api, base["snapshotId"]).data["tag"] == "t1"


def test_tagging_what_is_not_there(api, base):
    check_error(api.patch(f"/sandbox/snapshots/{UNKNOWN}", {"tag": "x"}), 404, "SNAPSHOT_NOT_FOUND")
    api.delete(f"/sandbox/snapshots/{base['snapshotId']}")
    check_error(api.patch(f"/sandbox/snapshots/{base['snapshotId']}", {"tag": "x"}), 404, "SNAPSHOT_NOT_FOUND")


def test_a_tag_in_use_is_taken_over(api, sandbox, snap):
    name = f"over-{sandbox.id[4:12]}"
    first = snap(sandbox, name=name, tag="v1")
    second = snap(sandbox, name=name, tag="v1")
    assert "tag" not in get(api, first["snapshotId"]).data
    assert get(api, f"{name}:v1").data["snapshotId"] == second["snapshotId"]
    api.patch(f"/sandbox/snapshots/{first['snapshotId']}", {"tag": "v1"})
    assert get(api, f"{name}:v1").data["snapshotId"] == first["snapshotId"]
    assert "tag" not in get(api, second["snapshotId"]).data


def test_the_same_tag_of_another_name_stays(api, sandbox, snap):
    first = snap(sandbox, name="one-name", tag="v1")
    snap(sandbox, name="other-name", tag="v1")
    assert get(api, first["snapshotId"]).data["tag"] == "v1"


def test_many_take_one_tag_and_one_has_it(api, sandbox, snap):
    name = f"race-{sandbox.id[4:12]}"
    together(*[lambda: snap(sandbox, name=name, tag="v1")] * 5)
    tags = [entry.get("tag") for entry in listed(api, sandboxId=sandbox.id)["snapshots"]]
    assert sorted(tags, key=str) == [None] * 4 + ["v1"]


# ---- lineage ----

def test_the_lineage_goes_up_to_the_root(api, new, sandbox, snap):
    chain = [snap(sandbox, name="root", tag="r")]
    for i in range(3):
        chain.append(snap(new(snapshot=chain[-1]["snapshotId"]), name=f"child-{i}", tag="c"))
    leaf = chain[-1]
    path = f"/sandbox/snapshots/lineage?snapshot={leaf['snapshotId']}"
    found = api.get(path).data
    assert [entry["snapshotId"] for entry in found["lineage"]] == [entry["snapshotId"] for entry in chain[::-1]]
    assert found["total"] == 4 and not nulls(found)
    assert all(isinstance(entry["public"], bool) and entry["createdAt"] and entry["name"] for entry in found["lineage"])
    assert [entry.get("parentSnapshotId") for entry in found["lineage"]] == [entry["snapshotId"] for entry in chain[-2::-1]] + [None]
    for other in ("snapshot=child-2%3Ac", "name=child-2&tag=c", "name=child-2", "snapshot=child-2"):
        assert api.get(f"/sandbox/snapshots/lineage?{other}").data == found
    assert len(api.get(f"{path}&limit=2").data["lineage"]) == 2
    assert api.get(f"{path}&limit=0").data["lineage"] == []
    assert api.delete(f"/sandbox/snapshots/{chain[1]['snapshotId']}").status == 200
    entries = api.get(path).data["lineage"]
    assert [entry.get("deleted", False) for entry in entries] == [False, False, True, False]
    assert [entry["snapshotId"] for entry in entries] == [entry["snapshotId"] for entry in chain[::-1]]


def test_bad_lineages(api):
    check_error(api.get("/sandbox/snapshots/lineage"), 400, "INVALID_ARGUMENT", "snapshot")
    check_error(api.get("/sandbox/snapshots/lineage?tag=x"), 400, "INVALID_ARGUMENT", "snapshot")
    check_error(api.get("/sandbox/snapshots/lineage?snapshot=x&limit=x"), 400, "INVALID_ARGUMENT", "limit")
    for reference in (UNKNOWN, "none", "none:none"):
        check_error(api.get(f"/sandbox/snapshots/lineage?snapshot={reference}"), 404, "SNAPSHOT_NOT_FOUND")


# ---- public ones ----

def test_public_ones_are_for_everybody(api, new, sandbox, snap):
    private = snap(sandbox, name="hidden", tag="v1")
    public = snap(sandbox, name="shown", tag="v1", public=True)
    page = api.get("/sandbox/snapshots/public?limit=100", key=None).data
    assert public["snapshotId"] in ids(page) and private["snapshotId"] not in ids(page)
    assert api.get("/sandbox/snapshots/public", key="nonsense").status == 200
    assert public["fullName"] == f"@{public['orgSlug']}/shown:v1" and public["orgName"]
    for reference in (public["snapshotId"], "shown:v1", public["fullName"]):
        seen = api.get(f"/sandbox/snapshots/public/{quote(reference, safe='')}", key=None).data
        assert seen["snapshotId"] == public["snapshotId"] and seen["public"] is True and "files" in seen
        assert not nulls(seen)
    for reference in (private["snapshotId"], "hidden:v1", "hidden", UNKNOWN, "none"):
        check_error(api.get(f"/sandbox/snapshots/public/{quote(reference, safe='')}", key=None), 404, "SNAPSHOT_NOT_FOUND")
    block = new(snapshot=public["fullName"]).get()["snapshot"]
    assert block["public"] is True and block["org"]["id"] == public["org"]["id"] and "user" not in block
    assert api.delete(f"/sandbox/snapshots/{public['snapshotId']}").status == 200
    check_error(api.get(f"/sandbox/snapshots/public/{public['snapshotId']}", key=None), 404, "SNAPSHOT_NOT_FOUND")


def test_public_pages(api, sandbox, snap):
    made = [snap(sandbox, name=f"p-{i}", public=True)["snapshotId"] for i in range(3)]
    total = api.get("/sandbox/snapshots/public?limit=0", key=None).data["total"]
    assert total >= 3
    assert ids(api.get("/sandbox/snapshots/public?limit=2", key=None).data) == made[:0:-1]
    assert ids(api.get("/sandbox/snapshots/public?limit=1&offset=2", key=None).data) == made[:1]


# ---- space ----

def test_a_disk_limit_holds_over_a_snapshot(new, sandbox, snap):
    sandbox.output("head -c 20000000 /dev/urandom >big")
    other = new(snapshot=snap(sandbox)["snapshotId"], resources={"disk": "64Mi"})
    assert other.output("stat -c %s big") == "20000000\n"
    ran = other.sh("head -c 200000000 /dev/zero >more")
    assert ran.exit_code != 0 and (b"space" in ran.stderr or b"quota" in ran.stderr.lower()), ran
    assert other.output("rm more; echo well") == "well\n"


# ---- the server's end ----

@pytest.mark.parametrize("how", ["stop", "kill"])
def test_snapshots_and_what_was_made_from_them_survive_a_restart(own_server, how):
    server = own_server()
    sandbox = server.client.create(timeout={"idle": "1h"})
    sandbox.write(kept="yes")
    made = server.client.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "kept", "tag": "v1"}).data
    other = server.client.create(snapshot="kept:v1", timeout={"idle": "1h"})
    other.write(own="o")
    getattr(server, how)()
    server.start()
    client = server.client
    assert get(client, "kept:v1").data["snapshotId"] == made["snapshotId"]
    assert client.sandbox(other.id).output("cat kept own") == "yeso"
    assert client.create(snapshot=made["snapshotId"]).output("cat kept") == "yes"
    server.end()
