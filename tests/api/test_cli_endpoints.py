# SPDX-License-Identifier: Apache-2.0
"""What the vendor's command line asks beside its sandbox calls."""
import base64
import hashlib
import struct

import pytest
from client import check_error

ENTRY = {"id", "name", "description", "status", "region", "createdAt", "orgId", "orgName", "projectId"}


def public_key(comment="me@here", seed=1):
    blob = struct.pack(">I11sI32s", 11, b"ssh-ed25519", 32, hashlib.sha256(bytes([seed])).digest())
    fingerprint = "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return f"ssh-ed25519 {base64.b64encode(blob).decode()} {comment}".strip(), fingerprint


def test_the_user_has_a_name_and_an_organisation(api):
    user = api.get("/cli/auth/user").data
    assert isinstance(user["firstName"], str) and isinstance(user["lastName"], str)
    assert user["organizations"] == api.get("/cli/organization").data


def test_there_is_one_organisation_and_one_region(api):
    [organisation] = api.get("/cli/organization").data
    assert organisation["id"].startswith("org_") and organisation["name"]
    [region] = api.get("/cli/region").data
    assert region["region"] and isinstance(region["description"], str)


def test_sandboxes_in_brief_have_all_members(api, new):
    named = new(name="brief", description="about it", projectId="proj_brief")
    plain = new()
    listed = api.get("/cli/sandbox?limit=100").data
    entries = {entry["id"]: entry for entry in listed["sandboxes"]}
    assert listed["total"] >= 2
    for id in (named.id, plain.id):
        assert set(entries[id]) >= ENTRY
    assert (entries[named.id]["name"], entries[named.id]["description"], entries[named.id]["projectId"]) == \
        ("brief", "about it", "proj_brief")
    assert (entries[plain.id]["name"], entries[plain.id]["description"], entries[plain.id]["projectId"]) == (None, None, None)
    assert entries[plain.id]["region"] == api.get("/cli/region").data[0]["region"]


def test_the_brief_list_is_filtered(api, new):
    sandbox = new(name="filtered", projectId="proj_filtered")
    for query in ("name=filtered", "projectId=proj_filtered", "projectId=proj_filtered&status=idle&mode=interactive&orgId=org_x",
                  "projectId=proj_filtered&limit=1&offset=0&sort=created&direction=desc"):
        assert [entry["id"] for entry in api.get(f"/cli/sandbox?{query}").data["sandboxes"]] == [sandbox.id], query
    assert api.get("/cli/sandbox?projectId=proj_filtered&status=running").data == {"sandboxes": [], "total": 0}


def test_a_sandbox_is_resolved_also_when_it_is_gone(api):
    sandbox = api.create(name="resolve")
    for _ in range(2):
        seen = api.get(f"/cli/sandbox/{sandbox.id}").data
        assert set(seen) >= {"id", "name", "region", "status", "orgId", "projectId"}
        assert (seen["id"], seen["name"], seen["projectId"]) == (sandbox.id, "resolve", None)
        assert seen["region"]
        sandbox.delete()
    assert api.get(f"/cli/sandbox/{sandbox.id}").data["status"] == "deleted"
    check_error(api.get("/cli/sandbox/sbx_none"), 404, "SANDBOX_NOT_FOUND")


def test_projects_are_words(api):
    assert api.get("/cli/project").data == []
    answer = api.get("/cli/project/proj_x?mask=true&includeProjectKeys=false")
    assert answer.status == 404 and answer.json["success"] is False


def test_packages_are_checked_without_a_key(api):
    answer = api.post("/cli/validate/apt-dependencies", {"packages": ["--purge", "a;b"]}, key=None)
    assert answer.data["valid"] == [] and [one["package"] for one in answer.data["invalid"]] == ["--purge", "a;b"]
    assert all(one["error"] and one["searchUrl"] for one in answer.data["invalid"])
    assert api.post("/cli/validate/apt-dependencies", {"packages": []}, key=None).data == {"valid": [], "invalid": []}
    check_error(api.post("/cli/validate/apt-dependencies", {"packages": ["a"] * 101}, key=None), 400, "INVALID_ARGUMENT", "packages", "100")
    check_error(api.post("/cli/validate/apt-dependencies", {"packages": "git"}, key=None), 400, "INVALID_ARGUMENT", "packages")
    check_error(api.post("/cli/validate/apt-dependencies", {}, key=None), 400, "INVALID_ARGUMENT", "packages")


def test_ssh_keys_are_added_listed_and_removed(api):
    line, fingerprint = public_key()
    assert api.post("/cli/auth/ssh-keys", {"publicKey": line}).data == {"fingerprint": fingerprint, "added": True}
    assert api.post("/cli/auth/ssh-keys", {"publicKey": line}).data == {"fingerprint": fingerprint, "added": False}
    [key] = [key for key in api.get("/cli/auth/ssh-keys").data if key["fingerprint"] == fingerprint]
    assert (key["keyType"], key["comment"]) == ("ssh-ed25519", "me@here")
    assert key["publicKey"].split()[:2] == line.split()[:2]
    assert api.delete("/cli/auth/ssh-keys", {"fingerprint": fingerprint}).data == {"removed": True}
    assert api.delete("/cli/auth/ssh-keys", {"fingerprint": fingerprint}).data == {"removed": False}
    assert fingerprint not in [key["fingerprint"] for key in api.get("/cli/auth/ssh-keys").data]


def test_a_key_without_a_comment_has_an_empty_one(api):
    line, fingerprint = public_key(comment="", seed=2)
    api.post("/cli/auth/ssh-keys", {"publicKey": line})
    [key] = [key for key in api.get("/cli/auth/ssh-keys").data if key["fingerprint"] == fingerprint]
    assert key["comment"] == ""
    api.delete("/cli/auth/ssh-keys", {"fingerprint": fingerprint})


@pytest.mark.parametrize("line", ["", "x", "ssh-ed25519", "ssh-ed25519 !!!", "ssh-rsa AAAA", public_key()[0].replace("ed25519", "rsa", 1),
                                  "command=\"x\" " + public_key()[0], public_key()[0] + "\n" + public_key(seed=3)[0], "-----BEGIN KEY-----"])
def test_what_is_no_key_is_refused(api, line):
    check_error(api.post("/cli/auth/ssh-keys", {"publicKey": line}), 400, "INVALID_ARGUMENT")


def test_logging_in_says_what_to_do_instead(api):
    for answer in (api.get("/cli/auth/start", key=None), api.post("/cli/auth/check", {"code": "x"}, key=None),
                   api.get("/cli/auth/setup-token/x", key=None)):
        check_error(answer, 400, "INVALID_ARGUMENT", "burrow key create")
