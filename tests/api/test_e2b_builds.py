# SPDX-License-Identifier: Apache-2.0
"""Templates that are built by steps, by hand: what is refused, hostile uploads, restarts, images, who sees what."""
import contextlib
import gzip
import hashlib
import json
import pathlib
import sqlite3
import subprocess

import pytest

import e2b as protocol
import oci
import server as servers
from client import Client, until
from oci import entry, layer, symlink

HASH = "a" * 64
SHELL = '#!/bin/sh\n[ "$1" = -l ] && shift\nexec /bin/sh "$@"\n'  # busybox is no bash


@pytest.fixture(scope="module", autouse=True)
def tidy(server):
    """The server and its runtimes are others' too: what was built here goes."""
    yield
    client = server.client
    while left := client.get("/api/v1/snapshots?limit=100").json["items"]:
        for one in left:
            assert client.delete(f"/api/v1/snapshots/{one['id']}").status == 204
    for one in client.get("/api/v1/runtimes?limit=100").json["items"]:
        if one["name"].startswith("image-"):
            answer = client.delete(f"/api/v1/runtimes/{one['name']}")
            assert answer.status == 200, str(answer)


@pytest.fixture(scope="module")
def e2b(server):
    return protocol.E2b(server.port, server.key)


def other_key(server, *words):
    """A key that is no administrator's."""
    made = subprocess.run([servers.BURROW, "key", "create", *words, "--data", server.data], check=True, capture_output=True, text=True)
    return made.stdout.strip()


@pytest.fixture(scope="module")
def plain(server):
    return protocol.E2b(server.port, other_key(server, "--e2b"))


def builders(server):
    """Sandboxes in which something is built: in no list of these clients."""
    return [item["sandboxId"].removeprefix("sbx_") for item in server.client.get("/sandbox?live=true&limit=100").data["sandboxes"]]


def announce(e2b, name, **fields):
    answer = e2b.post("/v3/templates", {"name": name, **fields})
    assert answer.status == 202, str(answer)
    return f"/templates/{answer.json['templateID']}/builds/{answer.json['buildID']}"


def run(text, user=None):
    return {"type": "RUN", "args": [text] + ([user] if user else [])}


def begin(e2b, path, *steps, **fields):
    return e2b.post(f"/v2{path}", {"fromTemplate": "base", "steps": list(steps), **fields})


def finish(e2b, path):
    def is_over():
        told = e2b.get(f"{path}/status?logsOffset=0")
        assert told.status == 200, str(told)
        return told.json["status"] in ("ready", "error") and told.json
    return until(is_over, "the build")


def build(e2b, name, *steps, **fields):
    path = announce(e2b, name)
    begun = begin(e2b, path, *steps, **fields)
    assert begun.status == 202 and begun.body == b"", str(begun)
    return finish(e2b, path)


def upload(server, e2b, name, content):
    """As the client does: asks where, and puts it there without a key."""
    hash = hashlib.sha256(content).hexdigest()
    told = e2b.get(f"/templates/{name}/files/{hash}")
    assert told.status == 201 and told.json["present"] is False
    put = Client(server.port, None).put(told.json["url"].split(str(server.port), 1)[1], content, key=None)
    assert put.status == 200, str(put)
    assert e2b.get(f"/templates/{name}/files/{hash}").json["present"] is True
    return hash


def copy(hash, source, to, *more):
    return {"type": "COPY", "args": [source, to, *more], "filesHash": hash}


# ---- bad input ----

@pytest.mark.parametrize("body, word", [
    ({}, "name"), ({"name": ""}, "name"), ({"name": "has space"}, "name"), ({"name": "a" * 200}, "name"), ({"name": "x:"}, "tag"),
    ({"name": "x", "tags": [".dot"]}, "tag"), ({"name": "x", "tags": ["t"] * 30}, "tags"), ({"name": "x", "cpuCount": 0}, "cpuCount"),
    ({"name": "x", "cpuCount": 1000}, "cpu"), ({"name": "x", "memoryMB": 1}, "memoryMB"), ({"name": "x", "memoryMB": "much"}, "memoryMB"),
    ({"name": 5}, "name")])
def test_announcements_that_are_refused(e2b, body, word):
    answer = e2b.post("/v3/templates", body)
    assert answer.status == 400 and answer.json["code"] == 400 and word in answer.json["message"], str(answer)


@pytest.mark.parametrize("body, word", [
    ({}, "fromImage or fromTemplate"), ({"fromTemplate": "base", "fromImage": "debian"}, "either"),
    ({"fromTemplate": "base", "steps": [{"args": ["x"]}]}, "type"), ({"fromTemplate": "base", "steps": [{"type": "BURN"}]}, "steps[0]"),
    ({"fromTemplate": "base", "steps": [run("true"), {"type": "RUN", "args": []}]}, "steps[1]"),
    ({"fromTemplate": "base", "steps": [run("true", "root; rm")]}, "user"),
    ({"fromTemplate": "base", "steps": [{"type": "ENV", "args": ["A"]}]}, "pairs"),
    ({"fromTemplate": "base", "steps": [{"type": "ENV", "args": ["A=B", "C"]}]}, "variable"),
    ({"fromTemplate": "base", "steps": [{"type": "WORKDIR", "args": ["~other/x"]}]}, "steps[0]"),
    ({"fromTemplate": "base", "steps": [{"type": "COPY", "args": ["a", "b"]}]}, "filesHash"),
    ({"fromTemplate": "base", "steps": [copy("../../etc/passwd", "a", "b")]}, "hash"),
    ({"fromTemplate": "base", "steps": [copy("b" * 64, "a", "b")]}, "uploaded"),
    ({"fromTemplate": "base", "steps": [copy(HASH, "a", "b", "user", "rwx")]}, "mode"),
    ({"fromTemplate": "base", "steps": [run("true")] * 201}, "steps"),
    ({"fromImage": "debian:12", "fromImageRegistry": {"type": "registry", "username": "u", "password": "p"}}, "credentials")])
def test_builds_that_are_refused_can_still_be_begun(e2b, body, word):
    path = announce(e2b, "refused")
    answer = e2b.post(f"/v2{path}", body)
    assert answer.status == 400 and word in answer.json["message"], str(answer)
    assert e2b.get(f"{path}/status").json["status"] == "waiting"


def test_a_build_whose_files_are_being_uploaded_is_not_given_up(server, e2b):
    paths = [announce(e2b, name) for name in ("uploading", "forgotten")]
    assert e2b.get(f"/templates/uploading/files/{HASH}").status == 201
    ids = ", ".join(f"'{path.rsplit('/', 1)[1]}'" for path in paths)
    with contextlib.closing(sqlite3.connect(server.data / "burrow.db", isolation_level=None, timeout=60)) as database:
        database.execute(f"UPDATE snapshots SET created_at = created_at - 1200000, updated_at = updated_at - 1200000 WHERE id IN ({ids})")  # 20 minutes
    announce(e2b, "another")  # those that are over are looked for here
    assert [e2b.get(f"{path}/status").status for path in paths] == [200, 404]
    assert begin(e2b, paths[0], run("true")).status == 202
    assert finish(e2b, paths[0])["status"] == "ready"


def test_builds_are_found_by_their_owner_and_begun_once(server, e2b):
    path = announce(e2b, "mine")
    stranger = protocol.E2b(server.port, other_key(server, "--e2b", "--owner", "stranger"))
    for other in (path.replace("mine", "other"), "/templates/mine/builds/nothing", "/templates/mine/builds/" + "0" * 26):
        assert e2b.get(f"{other}/status").status == 404
        assert begin(e2b, other, run("true")).status == 404
    assert stranger.get(f"{path}/status").status == 404
    assert begin(stranger, path, run("true")).status == 404
    assert begin(e2b, path, run("true")).status == 202
    assert begin(e2b, path, run("true")).status == 409
    assert finish(e2b, path)["status"] == "ready"
    assert begin(e2b, path, run("true")).status == 409
    assert stranger.get("/templates/aliases/mine").status == 404
    assert stranger.post("/v2/sandboxes", {"templateID": "mine"}).status == 404
    assert stranger.delete("/templates/mine").status == 404
    assert [item["templateID"] for item in stranger.get("/templates").json] == []
    assert e2b.get("/templates/aliases/mine").status == 200
    for answer in (e2b.get(f"{path}/status?logsOffset=-1"), e2b.get(f"{path}/status?limit=x")):
        assert answer.status == 400
    assert len(e2b.get(f"{path}/status?limit=2").json["logEntries"]) == 2
    assert e2b.get(f"{path}/status?level=error").json["logEntries"] == []
    assert e2b.get(f"{path}/logs").json["logs"]


def test_upload_urls_are_for_one_hash_of_one_owner_for_their_time(server, e2b):
    anybody = Client(server.port, None)
    url = e2b.get(f"/templates/x/files/{HASH}").json["url"].split(str(server.port), 1)[1]
    place, token = url.rsplit("/", 1)
    owner, key, over, until_s, seal = token.split("-")
    for wrong in (url.replace(HASH, "b" * 64), f"{place}/{owner}-{key}-{over}-{int(until_s) + 1}-{seal}", f"{place}/{'0' * 32}-{key}-{over}-{until_s}-{seal}",
                  f"{place}/{owner}-0-{over}-{until_s}-{seal}", f"{place}/{owner}-{'0' * 26}-{over}-{until_s}-{seal}", f"{place}/{owner}-{key}-7-{until_s}-{seal}",
                  f"{place}/{owner}-{key}-{over}-{until_s}-{'0' * 64}", f"{place}/{owner}-{key}-{over}", f"{place}/{owner}", f"{place}/x"):
        assert anybody.put(wrong, b"content", key=None).status == 401, wrong
    for hash in ("A" * 64, "a" * 63, "..%2f..%2fetc", "a" * 65):
        assert e2b.get(f"/templates/x/files/{hash}").status in (400, 404)
    assert e2b.get(f"/templates/x/files/{HASH}").json["present"] is False


# ---- what one may do to another ----

def new_member(server, name, *words):
    """A client with a key of a member's, and what revokes the key."""
    made = json.loads(subprocess.run([servers.BURROW, "key", "create", "--e2b", "--owner", name, *words, "--json", "--data", server.data], check=True,
                                     capture_output=True, text=True).stdout)

    def revoke():
        subprocess.run([servers.BURROW, "key", "revoke", made["id"], "--data", server.data], check=True, capture_output=True)
    return protocol.E2b(server.port, made["key"]), revoke


def upload_url(server, who, hash):
    return who.get(f"/templates/x/files/{hash}").json["url"].split(str(server.port), 1)[1]


def put(server, url, content):
    return Client(server.port, None).put(url, content, key=None)


def file_of(e2b, name, path):
    sandbox = e2b.create(templateID=name)
    told = sandbox.run(f"cat {path}").out["stdout"]
    assert sandbox.kill().status == 204
    return told


def is_kept(told):
    return any("CACHED" in line["message"] for line in told["logEntries"])


def test_nobody_builds_on_steps_of_somebody_else(server, e2b):
    hash = hashlib.sha256(b"poison").hexdigest()
    bob, revoke = new_member(server, "poisoner")
    steps = [copy(hash, "poison", "/srv/poison"), run("cat /srv/poison > /home/user/poison")]
    for who, content in ((bob, "evil"), (e2b, "good")):
        assert put(server, upload_url(server, who, hash), layer(entry("poison", content))).status == 200
        told = build(who, "poison", *steps)
        assert told["status"] == "ready" and not is_kept(told), told
        assert file_of(who, "poison", "/srv/poison /home/user/poison") == content.encode() * 2
    # Steps without files as well: what bob's commands made is bob's.
    for who in (bob, e2b):
        assert not is_kept(build(who, "poison", run("head -c 16 /dev/urandom > /home/user/random")))
    assert is_kept(build(e2b, "poison", *steps))
    # Nor is an upload what its sender calls it, of one owner either.
    assert put(server, upload_url(server, e2b, hash), layer(entry("poison", "other"))).status == 200
    told = build(e2b, "poison", *steps)
    assert told["status"] == "ready" and not is_kept(told), told
    assert file_of(e2b, "poison", "/srv/poison") == b"other"
    revoke()


def test_an_upload_url_replaces_nothing_that_came_after_it(server, e2b):
    hash = hashlib.sha256(b"replaced").hexdigest()
    good, evil = layer(entry("a", "good")), layer(entry("a", "evil"))
    first = upload_url(server, e2b, hash)
    assert put(server, first, good).status == 200
    assert put(server, first, good).status == 200  # sent again, as after a lost answer
    refused = put(server, first, evil)
    assert refused.status == 409 and "hash" in refused.json["message"], str(refused)
    second = upload_url(server, e2b, hash)
    assert put(server, second, layer(entry("a", "newer"))).status == 200
    assert put(server, second, evil).status == 409
    assert build(e2b, "replaced", copy(hash, "a", "/srv/a"))["status"] == "ready"
    assert file_of(e2b, "replaced", "/srv/a") == b"newer"
    assert not [file for file in pathlib.Path(server.data, "recipe-files").iterdir() if file.name.count(".") != 1]


def test_a_member_leaves_builders_to_others_and_its_builds_end_with_its_keys(server, e2b):
    keys = [new_member(server, "greedy") for _ in range(2)]
    client = keys[0][0]
    url = upload_url(server, client, "c" * 64)
    paths, refused = [], 0
    try:
        for i in range(10):
            path = announce(client, f"greedy-{i}")
            answer = begin(keys[i % 2][0], path, run(f"echo begun {i}; sleep 1000"))
            assert answer.status in (202, 429), str(answer)
            refused += answer.status == 429
            paths += [path] if answer.status == 202 else []

        def states():
            return [client.get(f"{path}/status").json["status"] for path in paths]
        assert refused
        until(lambda: states().count("building") == 2, "two of them")
        assert build(e2b, "modest", run("echo modest"))["status"] == "ready"
        assert states().count("building") == 2 and states().count("waiting") == len(paths) - 2
    finally:
        for _, revoke in keys:
            revoke()
    for path in paths:
        told = finish(e2b, path)
        assert told["status"] == "error" and "revoked" in told["reason"]["message"], told
    until(lambda: builders(server) == [], "their sandboxes to end")
    late = put(server, url, layer(entry("a", "late")))
    assert late.status == 401 and "revoked" in late.json["message"], str(late)
    assert not list(pathlib.Path(server.data, "recipe-files").glob("*." + "c" * 64))


def test_a_build_starts_from_no_runtime_that_its_key_is_not_for(server, e2b):
    bound, revoke = new_member(server, "bound", "--runtimes", "base:latest")
    path = announce(bound, "bound")
    refused = bound.post(f"/v2{path}", {"fromTemplate": "node:latest", "steps": []})
    assert refused.status == 403 and "node:latest" in refused.json["message"], str(refused)
    assert bound.get(f"{path}/status").json["status"] == "waiting"
    assert bound.get(f"{path}/status").json["logEntries"] == []  # nothing was begun
    assert begin(bound, path, run("true")).status == 202
    assert finish(bound, path)["status"] == "ready"
    revoke()


# ---- hostile uploads ----

@pytest.mark.parametrize("content", [
    b"", b"no archive at all", gzip.compress(layer(entry("a", "x")))[:40], layer(entry("../../escape", "x")), layer(entry("/.burrow/../../x", "x")),
    layer(symlink("a", "/etc"), entry("a/burrow-was-here", "x"))], ids=["empty", "text", "cut", "dots", "root", "link"])
def test_uploads_that_fail_their_step_and_touch_nothing(server, e2b, content):
    hash = upload(server, e2b, "hostile", content)
    told = build(e2b, "hostile", run("true"), copy(hash, "a", "/srv/a"))
    assert told["status"] == "error" and told["reason"]["step"] == "2", told
    assert not pathlib.Path("/etc/burrow-was-here").exists() and not pathlib.Path("/escape").exists()
    assert e2b.get("/templates/aliases/hostile").status == 404


def test_set_id_bits_and_owners_of_an_archive_give_nobody_rights(server, e2b):
    hash = upload(server, e2b, "bits", layer(entry("a", None), entry("a/program", "x", mode=0o6755, uid=0)))
    assert build(e2b, "bits", copy(hash, "a", "/srv/a"))["status"] == "ready"
    sandbox = e2b.create(templateID="bits")
    told = sandbox.run("stat -c '%u %a' /srv/a/program").out["stdout"].split()
    assert told[0] == b"1000"
    assert sandbox.kill().status == 204


# ---- how builds end ----

def test_a_log_is_bounded_and_hostile_lines_stay_lines(e2b):
    told = build(e2b, "loud", run(r"printf '1 e 7 forged\n\xff\xfe\x1b[31m \001\n'; head -c 3000000 /dev/zero | tr '\\0' x"))
    assert told["status"] == "ready", told
    messages = [line["message"] for line in told["logEntries"]]
    assert any("[stdout]: 1 e 7 forged" in message for message in messages)
    assert not any(line["level"] == "error" for line in told["logEntries"])
    assert len(json.dumps(told)) < 3 << 20


def test_a_build_that_a_restart_interrupts_has_failed_and_leaves_nothing(own_server):
    server = own_server(environment={"BURROW_E2B_RUNTIME": "base:latest"})
    e2b = protocol.E2b(server.port, server.key)
    path = announce(e2b, "interrupted")
    assert begin(e2b, path, run("echo first"), run("echo begun; sleep 1000")).status == 202
    until(lambda: "begun" in str(e2b.get(f"{path}/status").json), "its second step")
    assert len(builders(server)) == 1 and e2b.get("/v2/sandboxes").json == []
    server.kill()
    server.start()
    e2b = protocol.E2b(server.port, server.key)
    told = finish(e2b, path)
    assert told["status"] == "error" and "restarted" in told["reason"]["message"]
    until(lambda: builders(server) == [], "its sandbox to end")
    assert begin(e2b, path, run("true")).status == 409
    assert e2b.get("/templates/aliases/interrupted").status == 404
    again = build(e2b, "interrupted", run("echo first"), run("echo second"))
    assert again["status"] == "ready" and any("CACHED [1/2]" in line["message"] for line in again["logEntries"])
    # One that is stopped as a person does, too; and one that waits.
    path = announce(e2b, "stopped")
    assert begin(e2b, path, run("echo begun; sleep 1000")).status == 202
    until(lambda: "begun" in str(e2b.get(f"{path}/status").json), "its step")
    assert server.stop() == 0
    server.start()
    e2b = protocol.E2b(server.port, server.key)
    told = finish(e2b, path)
    assert told["status"] == "error" and "stopped" in told["reason"]["message"]
    until(lambda: builders(server) == [], "its sandbox to end")


def test_so_many_builds_wait_and_no_more(server, e2b):
    paths, refused = [], None
    for i in range(10):
        path = announce(e2b, f"many-{i}")
        answer = begin(e2b, path, run(f"echo {i}; until [ -e /home/user/go ]; do sleep 0.1; done"))
        if answer.status == 202:
            paths.append(path)
        else:
            refused = refused or answer
    assert 2 <= len(paths) < 10 and refused.status == 429 and refused.json["code"] == 429, str(refused)

    def release():
        for id in builders(server):
            told = e2b.get(f"/sandboxes/{id}")
            if told.status == 200:
                protocol.Sandbox(e2b, told.json).http("POST", "/files?path=/home/user/go", {"Content-Type": "application/octet-stream"}, body=b"")
        return all(e2b.get(f"{path}/status").json["status"] == "ready" for path in paths)
    until(release, "all of them")


def lines_of_code(sandbox, code, **fields):
    answer = sandbox.http("POST", "/execute", headers={"E2b-Sandbox-Port": "49999"}, json={"code": code, **fields})
    assert answer.status == 200, str(answer)
    told = [json.loads(line) for line in answer.body.splitlines()]
    assert not [one for one in told if one["type"] == "error"], told
    return "".join(one["text"] for one in told if one["type"] == "stdout").splitlines()


@pytest.mark.parametrize("user, home, uid", [("root", "/root", "0"), ("other", "/home/other", "1234"), ("user", "/home/user", "1000")])
def test_code_runs_as_the_user_of_its_template(e2b, user, home, uid):
    """With the home and the directory that commands have, whoever makes the context, and also where it is started anew."""
    name = f"code-of-{user}"
    made = run("grep -q ^other: /etc/passwd || { echo other:x:1234:1234::/home/other:/bin/sh >> /etc/passwd; mkdir /home/other; chown 1234:1234 /home/other; }", "root")
    told = build(e2b, name, made, {"type": "USER", "args": [user]}, {"type": "WORKDIR", "args": ["/srv/code"]})
    assert told["status"] == "ready", told
    shell = 'id -u; echo "$HOME"; pwd'
    python = "import os; print(os.getuid(), os.path.expanduser('~'), os.getcwd(), sep='\\n')"
    wanted = [uid, home, "/srv/code"]
    sandbox = e2b.create(templateID=name)
    try:
        assert sandbox.run(shell).out["stdout"].decode().splitlines() == wanted
        assert lines_of_code(sandbox, shell, language="bash") == wanted
        assert lines_of_code(sandbox, python) == wanted
        door = {"E2b-Sandbox-Port": "49999", "X-Access-Token": None}
        context = sandbox.http("POST", "/contexts", headers=door, json={"language": "python"})
        assert (context.status, context.json["cwd"]) == (200, "/srv/code"), str(context)
        id = context.json["id"]
        assert lines_of_code(sandbox, python, context_id=id) == wanted
        assert sandbox.http("POST", f"/contexts/{id}/restart", headers=door).status == 200
        assert lines_of_code(sandbox, python, context_id=id) == wanted
        there = sandbox.http("POST", "/contexts", headers=door, json={"cwd": "sub"})
        assert (there.status, there.json["cwd"]) == (200, f"{home}/sub"), str(there)
    finally:
        sandbox.kill()


def test_what_steps_keep_is_nobodys_snapshot(api, e2b):
    before = {item["id"] for item in api.get("/api/v1/snapshots").json["items"]}
    assert build(e2b, "kept-steps", run("echo kept-1"), run("echo kept-2"))["status"] == "ready"
    after = [item for item in api.get("/api/v1/snapshots").json["items"] if item["id"] not in before]
    assert [item["name"] for item in after] == ["kept-steps"]
    assert all(item["names"] != [] for item in e2b.get("/snapshots").json)
    assert build(e2b, "kept-steps", run("echo kept-1"), run("echo kept-3"))["status"] == "ready"
    names = [item["name"] for item in api.get("/api/v1/snapshots").json["items"]]
    assert names.count("kept-steps") == 1  # the one before has no tag any more
    # What is left when the template goes is enough to build it again.
    assert e2b.delete("/templates/kept-steps").status == 204
    again = build(e2b, "kept-steps", run("echo kept-1"), run("echo kept-3"))
    assert any("CACHED [2/2]" in line["message"] for line in again["logEntries"])
    sandbox = e2b.create(templateID="kept-steps")
    assert sandbox.run("echo fine").out["stdout"] == b"fine\n"
    assert sandbox.kill().status == 204


@pytest.mark.skipif(not oci.BUSYBOX.exists(), reason="busybox-static is not installed")
def test_images_are_for_administrators_until_they_are_runtimes(e2b, plain, tmp_path_factory):
    image = oci.simple(tmp_path_factory.mktemp("image") / "image", layer(entry("bin/bash", SHELL, mode=0o755), entry("srv/of-image", "1")),
                       Env=["PATH=/bin"])
    path = announce(plain, "imaged")
    refused = plain.post(f"/v2{path}", {"fromImage": str(image), "steps": []})
    assert refused.status == 403 and "burrow runtime add" in refused.json["message"], str(refused)
    step = {"type": "RUN", "args": ["cat /srv/of-image > /home/user/copied", "root"]}
    for who in (e2b, plain):
        path = announce(who, "imaged")
        begun = who.post(f"/v2{path}", {"fromImage": str(image), "steps": [step]})
        assert begun.status == 202, str(begun)
        told = finish(who, path)
        assert told["status"] == "ready", told
    path = announce(e2b, "nowhere")
    begun = e2b.post(f"/v2{path}", {"fromImage": "oci:/no/such/image", "steps": []})
    told = finish(e2b, path) if begun.status == 202 else {"status": "error"}
    assert told["status"] == "error"
