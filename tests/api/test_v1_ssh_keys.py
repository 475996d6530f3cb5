# SPDX-License-Identifier: Apache-2.0
"""Public SSH keys: added by name, listed, removed; whose they are, and what is refused."""
import subprocess
from urllib.parse import quote

import pytest

from client import Client, check_problem, pages

KEYS = "/api/v1/ssh-keys"


def path(fingerprint):
    return f"{KEYS}/{quote(fingerprint, safe='')}"


def listed(client):
    return pages(client, KEYS, 2)[0]


@pytest.fixture
def ssh_key(tmp_path):
    """Makes keys: the line of the .pub file, and the fingerprint as ssh-keygen says it."""
    def make(*options, comment="me@here"):
        file = tmp_path / f"id{len(list(tmp_path.iterdir()))}"
        subprocess.run(["ssh-keygen", "-q", "-N", "", "-C", comment, "-f", file, *(options or ("-t", "ed25519"))], check=True)
        shown = subprocess.run(["ssh-keygen", "-l", "-f", f"{file}.pub"], capture_output=True, text=True, check=True).stdout
        return (tmp_path / f"{file.name}.pub").read_text(), shown.split()[1]
    return make


@pytest.fixture(scope="module")
def people(api):
    made = {name: api.post("/api/v1/keys", {"owner": name}).json for name in ("alice", "bob")}
    yield {name: Client(api.port, info["key"]) for name, info in made.items()}
    for info in made.values():
        api.delete(f"/api/v1/keys/{info['id']}")


@pytest.mark.parametrize("options", [("-t", "ed25519"), ("-t", "ecdsa", "-b", "521"), ("-t", "rsa", "-b", "2048")], ids=lambda options: options[1])
def test_a_key_comes_and_goes(api, ssh_key, options):
    line, fingerprint = ssh_key(*options)
    answer = api.post(KEYS, {"publicKey": line, "name": "laptop"})
    assert answer.status == 201, str(answer)
    key = answer.json
    assert (key["fingerprint"], key["name"], key["comment"], key["kind"]) == (fingerprint, "laptop", "me@here", line.split()[0])
    assert key["publicKey"] == " ".join(line.split()[:2]) and key["inUse"] is True and "usedAt" not in key
    assert api.get(path(fingerprint)).json == key
    assert key in listed(api)
    again = api.post(KEYS, {"publicKey": line})
    assert (again.status, again.json) == (200, key)
    renamed = api.post(KEYS, {"publicKey": line, "name": "desk"})
    assert (renamed.status, renamed.json["name"]) == (200, "desk")
    assert api.delete(path(fingerprint)).status == 204
    for answer in (api.delete(path(fingerprint)), api.get(path(fingerprint))):
        check_problem(answer, 404, "not_found")


def test_a_key_without_a_name_is_called_by_its_comment(api, ssh_key):
    line, fingerprint = ssh_key(comment="work laptop")
    assert api.post(KEYS, {"publicKey": line}).json["name"] == "work laptop"
    api.delete(path(fingerprint))


@pytest.mark.parametrize("options, why", [(("-t", "dsa"), "DSA"), (("-t", "rsa", "-b", "1024"), "less than 2048 bits")], ids=["dsa", "rsa"])
def test_weak_keys_are_refused(api, ssh_key, options, why):
    answer = api.post(KEYS, {"publicKey": ssh_key(*options)[0]})
    check_problem(answer, 400, "invalid_request")
    assert why in answer.json["detail"] and "ssh-keygen -t ed25519" in answer.json["detail"]


def test_certificates_options_and_private_keys_are_refused(api, ssh_key, tmp_path):
    line, _ = ssh_key()
    ssh_key()
    user, authority = sorted(file for file in tmp_path.iterdir() if file.suffix == "")
    subprocess.run(["ssh-keygen", "-q", "-s", authority, "-I", "me", f"{user}.pub"], check=True)
    for text, why in ((next(tmp_path.glob("*-cert.pub")).read_text(), "certificate"), (f'command="ls" {line}', "options"), (user.read_text(), "private key"),
                      (f"{line}\n{line}", "several lines"), ("hello", "must begin with its type")):
        answer = api.post(KEYS, {"publicKey": text})
        check_problem(answer, 400, "invalid_request")
        assert why in answer.json["detail"], str(answer)
        assert "BEGIN" not in answer.json["detail"]


def test_a_key_is_its_owners_and_ends_with_the_api_key_that_added_it(api, people, ssh_key):
    line, fingerprint = ssh_key()
    made = api.post("/api/v1/keys", {"owner": "alice"}).json
    laptop = Client(api.port, made["key"])
    key = laptop.post(KEYS, {"publicKey": line}).json
    assert (key["owner"], key["createdBy"]) == ("alice", made["id"])
    check_problem(people["bob"].get(path(fingerprint)), 404, "not_found")
    check_problem(people["bob"].delete(path(fingerprint)), 404, "not_found")
    assert fingerprint not in [each["fingerprint"] for each in listed(people["bob"])]
    api.delete(f"/api/v1/keys/{made['id']}")
    assert people["alice"].get(path(fingerprint)).json["inUse"] is False
    assert people["alice"].post(KEYS, {"publicKey": line}).status == 201, "one that has ended can be added again"
    assert people["alice"].get(path(fingerprint)).json["inUse"] is True
    assert people["alice"].delete(path(fingerprint)).status == 204


def test_somebody_elses_public_key_can_neither_be_claimed_nor_found_out(api, people, ssh_key):
    """A public key is no secret: adding it takes nothing from whom it is, and is answered as one that nobody has."""
    (hers, fingerprint), (nobodys, other) = ssh_key(), ssh_key()
    made = api.post("/api/v1/keys", {"owner": "alice"}).json
    alice, bob = Client(api.port, made["key"]), people["bob"]
    try:
        assert alice.post(KEYS, {"publicKey": hers, "name": "laptop"}).status == 201
        claimed, fresh = bob.post(KEYS, {"publicKey": hers}), bob.post(KEYS, {"publicKey": nobodys})
        assert claimed.status == fresh.status == 201 and claimed.json.keys() == fresh.json.keys()
        assert claimed.json["owner"] == "bob" and alice.get(path(fingerprint)).json["name"] == "laptop"
        assert bob.delete(path(fingerprint)).status == 204
        assert alice.get(path(fingerprint)).json["inUse"] is True
        # Once her API key has ended, it is still not his to take.
        api.delete(f"/api/v1/keys/{made['id']}")
        assert bob.post(KEYS, {"publicKey": hers}).status == 201
        again = people["alice"].post(KEYS, {"publicKey": hers})
        assert (again.status, again.json["owner"]) == (201, "alice")
        assert {each["owner"] for each in listed(api) if each["fingerprint"] == fingerprint} == {"alice", "bob"}
    finally:
        for who, what in ((bob, fingerprint), (bob, other), (people["alice"], fingerprint)):
            who.delete(path(what))
        api.delete(f"/api/v1/keys/{made['id']}")


def test_both_wires_have_the_same_keys(api, ssh_key):
    line, fingerprint = ssh_key()
    assert api.post("/cli/auth/ssh-keys", {"publicKey": line}).data == {"fingerprint": fingerprint, "added": True}
    assert api.get(path(fingerprint)).json["comment"] == "me@here"
    assert api.delete("/cli/auth/ssh-keys", {"fingerprint": fingerprint}).data == {"removed": True}
    check_problem(api.get(path(fingerprint)), 404, "not_found")
