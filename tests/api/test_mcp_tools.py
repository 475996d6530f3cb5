# SPDX-License-Identifier: Apache-2.0
"""Tools and resources of POST /mcp: what each does, what it says when it cannot, and that results are as their schemas say."""
import base64
import json

import pytest
import schema

from mcp import LEGACY, MODERN, Mcp

TOOLS = {
    # read-only, destructive, idempotent, open world
    "sandbox_run": "...w", "sandbox_create": "...w", "sandbox_list": "r.i.", "sandbox_get": "r.i.", "sandbox_destroy": ".di.",
    "sandbox_exec": ".d.w", "sandbox_output": "r.i.", "sandbox_stop": ".di.", "sandbox_write_files": ".di.", "sandbox_read_file": "r.i.",
    "sandbox_list_files": "r.i.", "sandbox_edit_file": ".d..", "sandbox_run_code": ".d.w", "sandbox_expose_port": "..iw",
    "sandbox_snapshot": "....", "sandbox_fork": "...w", "sandbox_checkpoint": "....", "sandbox_restore": ".di.", "sandbox_network": ".di.",
}


class Checked(Mcp):
    """Holds every result against the schema that the tool was listed with."""

    def __init__(self, api, version=MODERN):
        super().__init__(api, version)
        self.listed = {tool["name"]: tool for tool in self.ask("tools/list")["tools"]}

    def tool(self, name, /, **arguments):
        result = super().tool(name, **arguments)
        wrong = list(schema.faults(self.listed[name]["outputSchema"], result, {}))
        assert not wrong, (name, wrong, result)
        return result


@pytest.fixture(scope="module")
def mcp(api):
    return Checked(api)


@pytest.fixture
def box(mcp):
    id = mcp.tool("sandbox_create")["id"]
    yield id
    mcp.ask("tools/call", name="sandbox_destroy", arguments={"sandbox": id})


def test_every_tool_says_what_it_takes_returns_and_does(mcp, api):
    assert list(mcp.listed) == list(TOOLS)
    document = api.get("/api/v1/openapi.json").json
    for name, tool in mcp.listed.items():
        hints = tool["annotations"]
        letters = "".join(letter if hints[hint] else "." for letter, hint in
                          zip("rdiw", ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")))
        assert letters == TOOLS[name], name
        for side in ("inputSchema", "outputSchema"):
            assert tool[side]["type"] == "object", (name, side)
        assert tool["inputSchema"]["additionalProperties"] is False and tool["title"] and tool["description"]
    assert not {"sandbox", "keepStdinOpen", "maxOutputBytes"} & set(mcp.listed["sandbox_run"]["inputSchema"]["properties"])
    # the same tables as those of HTTP
    body = document["paths"]["/api/v1/sandboxes"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    if "$ref" in body:
        body = schema.find(document, body["$ref"])
    assert set(mcp.listed["sandbox_create"]["inputSchema"]["properties"]) == set(body["properties"])


def schemas_in(one, place):
    yield place, one
    for name, member in one.get("properties", {}).items():
        yield from schemas_in(member, f"{place}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(one.get(name), dict):
            yield from schemas_in(one[name], f"{place}[{name}]")
    for choice in one.get("anyOf", ()):
        yield from schemas_in(choice, f"{place}|")


def test_schemas_are_what_every_client_can_read(mcp):
    """Some turn them into dialects with one type in one place (or null), lists that say of what, and nothing that may be anything."""
    for name, tool in mcp.listed.items():
        for side in ("inputSchema", "outputSchema"):
            for place, one in schemas_in(tool[side], f"{name}.{side}"):
                kinds = one.get("type", [])
                kinds = [kinds] if isinstance(kinds, str) else [kind for kind in kinds if kind != "null"]
                assert len(kinds) == 1 or "anyOf" in one, (place, one)
                assert one.get("type") != "array" or "items" in one, (place, one)


@pytest.mark.parametrize("version", (MODERN, *LEGACY))
def test_a_one_shot_in_every_revision(api, version):
    mcp = Checked(api, version)
    result = mcp.ask("tools/call", name="sandbox_run", arguments={"script": "echo out; echo err >&2; exit 3"})
    told = result["structuredContent"]
    assert (told["exitCode"], told["cause"], told["running"]) == (3, "exited", False)
    assert told["stdout"] == {"text": "out\n", "bytes": 4, "truncated": False, "omittedBytes": 0, "nextOffset": 4}
    text = result["content"][0]["text"]
    assert text.startswith("out\n[stderr]\nerr\n[exit code 3") and len(result["content"]) == 1
    assert mcp.tool("sandbox_run", command=["cat", "/workspace/a"], files=[{"path": "a", "content": "é"}])["stdout"]["text"] == "é"
    assert mcp.tool("sandbox_run", command=["true"])["exitCode"] == 0


def test_long_output_is_its_beginning_and_its_end_and_the_rest_by_offset(mcp):
    told = mcp.tool("sandbox_run", script="seq 1 20000; printf 'a\\377b' >&2")
    whole = "".join(f"{n}\n" for n in range(1, 20001))
    out = told["stdout"]
    assert out["truncated"] and out["bytes"] == len(whole) and len(out["text"]) < 20000
    assert out["text"].startswith("1\n2\n") and out["text"].endswith("19999\n20000\n") and "sandbox_output" in out["text"]
    assert told["stderr"]["text"] == "a\ufffdb" and not told["stderr"]["truncated"]
    read, offset = "", 0
    while True:
        part = mcp.tool("sandbox_output", execution=told["execution"], offset=offset, maxBytes="64Ki")
        assert part["offset"] == offset and part["bytes"] == len(whole)
        read, offset = read + part["text"], part["nextOffset"]
        if part["complete"]:
            break
        assert str(offset) in part["next"]
    assert read == whole
    assert mcp.tool("sandbox_output", execution=told["execution"], offset=len(whole))["text"] == ""
    short = mcp.tool("sandbox_run", script="head -c 16384 /dev/zero | tr '\\0' x")["stdout"]
    assert short["text"] == "x" * 16384 and not short["truncated"]


def test_a_character_is_not_cut_in_two(mcp):
    told = mcp.tool("sandbox_run", script="printf 'ééé'")
    part = mcp.tool("sandbox_output", execution=told["execution"], maxBytes=3)
    assert (part["text"], part["nextOffset"], part["complete"]) == ("é", 2, False)


def test_a_command_that_takes_longer_is_a_handle(mcp, box):
    told = mcp.tool("sandbox_exec", sandbox=box, script="echo first; while [ ! -e /workspace/go ]; do sleep 0.05; done; echo last; exit 4", waitMs=1500)
    assert told["running"] and told["stdout"]["text"] == "first\n" and told["sandbox"] == box and "sandbox_output" in told["next"]
    part = mcp.tool("sandbox_output", execution=told["execution"])
    assert part["running"] and part["text"] == "first\n" and not part["complete"]
    behind = mcp.tool("sandbox_output", execution=told["execution"], offset=1000)  # what is not there yet was not skipped
    assert (behind["text"], behind["bytes"], behind["offset"], behind["nextOffset"]) == ("", 6, 6, 6) and "offset 6 " in behind["next"]
    assert mcp.tool("sandbox_exec", sandbox=box, command=["touch", "/workspace/go"])["exitCode"] == 0
    part = mcp.tool("sandbox_output", execution=told["execution"], offset=part["nextOffset"], waitMs=60000)
    assert (part["text"], part["exitCode"], part["complete"], part["running"]) == ("last\n", 4, True, False)
    job = mcp.tool("sandbox_exec", sandbox=box, script="sleep 600", background=True, waitMs=0)
    assert job["running"]
    assert mcp.tool("sandbox_stop", execution=job["execution"])["state"] in ("cancelled", "completed", "failed")


def test_causes_of_an_end_come_with_advice(mcp, box):
    told = mcp.tool("sandbox_exec", sandbox=box, script="sleep 60", timeoutMs=200)
    assert told["cause"] == "timeout" and "timeoutMs" in told["next"]
    assert mcp.tool("sandbox_exec", sandbox=box, command=["no-such-program"])["exitCode"] == 127


def test_sandboxes_are_made_listed_and_destroyed(mcp):
    made = mcp.tool("sandbox_create", name="mcp-made", labels={"mcp": "made"}, limits={"memoryBytes": "128Mi"})
    assert made["id"].startswith("sbx_") and made["limits"]["memoryBytes"] == 128 << 20
    listed = mcp.tool("sandbox_list", selector="mcp=made", limit=5)["items"]
    assert [sandbox["id"] for sandbox in listed] == [made["id"]]
    assert mcp.tool("sandbox_get", sandbox="mcp-made")["id"] == made["id"]
    assert mcp.tool("sandbox_destroy", sandbox=made["id"]) == {"done": True}
    mcp.tool("sandbox_run", command=["true"], labels={"mcp": "made"})  # what has ended is no noise in lists, and found when asked for
    assert mcp.tool("sandbox_list", selector="mcp=made")["items"] == []
    ended = mcp.tool("sandbox_list", selector="mcp=made", state="ended")["items"]
    assert ended and not {one["id"] for one in ended} & {entry["uri"].rpartition("/")[2] for entry in mcp.ask("resources/list")["resources"]}
    assert "idle" in mcp.refused("sandbox_list", state="alive")
    text = mcp.refused("sandbox_exec", sandbox=made["id"], script="true")
    assert "What to do" in text and "sandbox_create" in text


def test_files_are_written_read_listed_and_edited(mcp, box):
    content = "héllo\nworld\nworld\n"
    blob = bytes(range(256))
    written = mcp.tool("sandbox_write_files", sandbox=box, files=[
        {"path": "src/deep/a.txt", "content": content}, {"path": "/workspace/b.bin", "contentBase64": base64.b64encode(blob).decode()},
        {"path": "run.sh", "content": "#!/bin/sh\necho ran", "mode": "0755"}, {"path": "empty", "content": ""}])["written"]
    assert [entry["sizeBytes"] for entry in written] == [len(content.encode()), 256, 18, 0]
    assert mcp.tool("sandbox_exec", sandbox=box, command=["./run.sh"])["stdout"]["text"] == "ran\n"
    read = mcp.tool("sandbox_read_file", sandbox=box, path="src/deep/a.txt")
    assert read["text"] == content and read["sizeBytes"] == len(content.encode()) and "nextOffset" not in read
    part = mcp.tool("sandbox_read_file", sandbox=box, path="src/deep/a.txt", maxBytes=2)
    assert (part["text"], part["nextOffset"]) == ("h", 1)
    assert mcp.tool("sandbox_read_file", sandbox=box, path="src/deep/a.txt", offset=1, maxBytes=5)["text"] == "éllo"[:4]
    assert base64.b64decode(mcp.tool("sandbox_read_file", sandbox=box, path="b.bin")["base64"]) == blob
    assert mcp.tool("sandbox_read_file", sandbox=box, path="empty")["text"] == ""
    names = {entry["path"] for entry in mcp.tool("sandbox_list_files", sandbox=box, path="/workspace", recursive=True)["items"]}
    assert {"src/deep/a.txt", "b.bin", "run.sh", "empty"} <= names
    mcp.tool("sandbox_exec", sandbox=box, command=["ln", "-s", "/etc/passwd", "to"])
    link, = (entry for entry in mcp.tool("sandbox_list_files", sandbox=box)["items"] if entry["path"] == "to")
    assert (link["kind"], link["target"]) == ("link", "/etc/passwd") and not {"etag", "diskBytes", "accessedAt"} & set(link)  # no noise
    page = mcp.tool("sandbox_list_files", sandbox=box, limit=2)
    assert len(page["items"]) == 2 and mcp.tool("sandbox_list_files", sandbox=box, limit=2, cursor=page["nextCursor"])["items"][0] not in page["items"]
    edit = dict(sandbox=box, path="src/deep/a.txt")
    assert "2 times" in mcp.refused("sandbox_edit_file", **edit, old="world", new="w")
    assert "not in" in mcp.refused("sandbox_edit_file", **edit, old="wörld", new="w")
    assert "same" in mcp.refused("sandbox_edit_file", **edit, old="w", new="w")
    assert mcp.tool("sandbox_read_file", **edit)["text"] == content  # nothing was changed so far
    assert mcp.tool("sandbox_edit_file", **edit, old="world\n", new="w\n", all=True)["replacements"] == 2
    assert mcp.tool("sandbox_edit_file", **edit, old="héllo\n", new="")["replacements"] == 1
    assert mcp.tool("sandbox_read_file", **edit)["text"] == "w\nw\n"
    assert mcp.tool("sandbox_exec", sandbox=box, script="stat -c %a run.sh; sed -i s/ran/RAN/ run.sh; ./run.sh")["stdout"]["text"] == "755\nRAN\n"


def test_file_refusals_lose_nothing_and_say_what_to_do(mcp, box):
    for tool in ("sandbox_read_file", "sandbox_list_files"):
        text = mcp.refused(tool, sandbox=box, path="/no/such")
        assert "not_found" in text and "sandbox_list_files" in text and "sandbox_create" not in text
    assert "What to do" in mcp.refused("sandbox_read_file", sandbox=box, path="/workspace")
    text = mcp.refused("sandbox_write_files", sandbox=box, files=[{"path": "kept", "content": "1"}, {"path": "/proc/nope/x", "content": "2"}])
    assert "files[1] of 2" in text and mcp.tool("sandbox_read_file", sandbox=box, path="kept")["text"] == "1"
    for file in ({"path": "x"}, {"path": "x", "content": "a", "contentBase64": "YQ=="}, {"path": "x", "contentBase64": "?"}, {"content": "a"}):
        assert "files[0]" in mcp.refused("sandbox_write_files", sandbox=box, files=[file])
    mcp.tool("sandbox_exec", sandbox=box, script="head -c 5000000 /dev/zero > big")
    assert "4 MiB" in mcp.refused("sandbox_edit_file", sandbox=box, path="big", old="a", new="b")


@pytest.mark.parametrize("name, arguments, words", [
    ("sandbox_exec", {}, ["sandbox", "needed"]), ("sandbox_exec", {"sandbox": 7}, ["sandbox", "string"]),
    ("sandbox_exec", {"sandbox": "no-such", "script": "true"}, ["no-such", "sandbox_list"]),
    ("sandbox_get", {"sandbox": "sbx_" + "0" * 26}, ["not_found", "sandbox_create"]),
    ("sandbox_get", {"sandbox": "../keys"}, ["not_found"]), ("sandbox_get", {"sandbox": "a/b?c=d"}, ["not_found"]),
    ("sandbox_run", {}, ["command"]), ("sandbox_run", {"script": "true", "comand": ["x"]}, ["comand", "command"]),
    ("sandbox_run", {"script": "true", "runtime": "no-such:latest"}, ["no-such", "What to do"]),
    ("sandbox_run", {"script": "true", "maxOutputBytes": 9}, ["maxOutputBytes"]), ("sandbox_run", {"script": 7}, ["script", "string"]),
    ("sandbox_run", {"script": "true", "limits": {"memoryBytes": -1}}, ["memoryBytes"]),
    ("sandbox_list", {"limit": 0}, ["limit"]), ("sandbox_list", {"limit": [1]}, ["limit"]), ("sandbox_list", {"nolimit": 1}, ["nolimit"]),
    ("sandbox_output", {"execution": "exe_nope"}, ["not_found"]), ("sandbox_output", {"execution": "../../keys"}, ["not_found"]),
    ("sandbox_output", {"execution": "x", "stream": "stdin"}, ["stream"]), ("sandbox_stop", {"execution": "x"}, ["not_found"]),
    ("sandbox_network", {"sandbox": "x", "action": "drop"}, ["action"]), ("sandbox_network", {"sandbox": "x", "action": "set"}, ["policy"]),
    ("sandbox_network", {"sandbox": "x", "policy": {}}, ["policy"]), ("sandbox_network", {"sandbox": "x", "action": "explain"}, ["host"]),
    ("sandbox_exec", {"sandbox": "x", "script": "true", "waitMs": "1h"}, ["waitMs"]),
    ("sandbox_exec", {"sandbox": "x", "cmd": "ls"}, ["cmd", "command, script", "directory"]),
    ("sandbox_run", {"command": "ls -l"}, ["must be a list", "'script'"]), ("sandbox_create", {"snapshot": "no-such"}, ["snapshot", "sandbox_snapshot"]),
    ("sandbox_output", {"execution": "exe_" + "0" * 26}, ["not_found", "sandbox_exec or sandbox_run"]),
])
def test_arguments_that_cannot_be_are_results_that_say_so(mcp, name, arguments, words):
    text = mcp.refused(name, **arguments)
    assert all(word in text for word in words) and "What to do" in text, text


def test_notebooks_keep_what_they_define_and_cut_what_is_long(mcp, box):
    first = mcp.tool("sandbox_run_code", sandbox=box, code="x = 20\nprint('y' * 100000)\nx + 1")
    assert first["truncated"] and len(first["stdout"]) < 20000 and first["results"][0]["data"]["text/plain"] == "21"
    again = mcp.tool("sandbox_run_code", sandbox=box, context=first["context"], code="x * 2")
    assert again["results"][0]["data"]["text/plain"] == "40" and not again["truncated"]
    assert mcp.tool("sandbox_run_code", sandbox=box, code="1/0")["error"]["name"] == "ZeroDivisionError"


def test_images_come_back_as_images(mcp, box):
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()
    code = f"class Picture:\n    def _repr_mimebundle_(self, **_):\n        return {{'image/png': '{png}', 'text/plain': 'a picture'}}\nPicture()"
    result = mcp.ask("tools/call", name="sandbox_run_code", arguments={"sandbox": box, "code": code})
    text, image = result["content"]
    assert image == {"type": "image", "data": png, "mimeType": "image/png"} and png not in text["text"]
    assert result["structuredContent"]["results"][0]["data"]["text/plain"] == "a picture"


def test_ports_snapshots_forks_and_checkpoints(mcp, box):
    port = mcp.tool("sandbox_expose_port", sandbox=box, port=8080)
    assert port["port"] == 8080 and port["url"].startswith("http")
    mcp.tool("sandbox_write_files", sandbox=box, files=[{"path": "a", "content": "one"}])
    checkpoint = mcp.tool("sandbox_checkpoint", sandbox=box, name="before")
    mcp.tool("sandbox_write_files", sandbox=box, files=[{"path": "a", "content": "two"}])
    fork = mcp.tool("sandbox_fork", sandbox=box)["id"]
    snapshot = mcp.tool("sandbox_snapshot", sandbox=box, name="mcp-test")
    assert mcp.tool("sandbox_restore", sandbox=box, checkpoint=checkpoint["name"]) == {"done": True}
    assert mcp.tool("sandbox_read_file", sandbox=box, path="a")["text"] == "one"
    assert mcp.tool("sandbox_read_file", sandbox=fork, path="a")["text"] == "two"
    assert mcp.tool("sandbox_run", command=["cat", "/workspace/a"], snapshot=snapshot["id"])["stdout"]["text"] == "two"
    mcp.tool("sandbox_destroy", sandbox=fork)
    assert mcp.api.delete(f"/api/v1/snapshots/{snapshot['id']}").status == 204
    text = mcp.refused("sandbox_restore", sandbox=box, checkpoint="no-such")
    assert "not_found" in text and "sandbox_checkpoint" in text


def test_networks_are_told_changed_and_explained(mcp, box):
    assert mcp.tool("sandbox_network", sandbox=box)["network"]["enabled"] is False
    why = mcp.tool("sandbox_network", sandbox=box, action="explain", host="example.com", port=443)["explanation"]
    assert why["allowed"] is False and why["reason"]
    told = mcp.tool("sandbox_network", sandbox=box, action="explain", host="example.com", port=443)["next"]
    assert '"set"' in told and '{"enabled": true, "allow": ["example.com:443"]}' in told
    off = mcp.tool("sandbox_network", sandbox=box, action="set", policy={"allow": ["example.com:443"]})
    assert off["network"]["enabled"] is False and '"enabled": true' in off["next"] and "next" not in mcp.tool("sandbox_network", sandbox=box)
    made = mcp.ask("tools/call", name="sandbox_network", arguments={"sandbox": box, "action": "set", "policy": {"enabled": True, "allow": ["example.com:443"]}})
    if made["isError"]:
        assert "What to do" in made["content"][0]["text"]  # of a machine or a server without networks
        return
    assert made["structuredContent"]["network"]["allow"] == ["example.com:443"]
    assert mcp.tool("sandbox_network", sandbox=box, action="explain", host="example.com", port=443)["explanation"]["allowed"] is True
    why = mcp.tool("sandbox_network", sandbox=box, action="explain", host="example.org", port=443)["explanation"]
    assert why["allowed"] is False and why["remedy"]


@pytest.mark.parametrize("version", (MODERN, LEGACY[0]))
def test_files_and_output_are_resources(api, version, box):
    mcp = Mcp(api, version)
    templates = mcp.ask("resources/templates/list")["resourceTemplates"]
    assert len(templates) == 4 and all(template["uriTemplate"].startswith("burrow://") for template in templates)
    assert f"burrow://sandboxes/{box}" in {entry["uri"] for entry in mcp.ask("resources/list")["resources"]}
    ran = mcp.tool("sandbox_exec", sandbox=box, script="echo out; echo err >&2; mkdir 'a b'; printf 'é' > 'a b/c?d'; printf '\\377' > bin; : > none")

    def read(uri):
        [content] = mcp.ask("resources/read", uri=uri)["contents"]
        assert content["uri"] == uri
        return content
    assert json.loads(read(f"burrow://sandboxes/{box}")["text"])["id"] == box
    assert read(f"burrow://sandboxes/{box}/files/workspace/a%20b/c%3Fd")["text"] == "é"
    assert read(f"burrow://sandboxes/{box}/files/workspace/bin")["blob"] == "/w=="
    assert read(f"burrow://sandboxes/{box}/files/workspace/none")["text"] == ""
    assert read(f"burrow://executions/{ran['execution']}/stdout")["text"] == "out\n"
    assert read(f"burrow://executions/{ran['execution']}/stderr")["text"] == "err\n"
    for uri in ("burrow://sandboxes/no-such", f"burrow://sandboxes/{box}/files/no/such", "burrow://keys/x", "file:///etc/passwd", "",
                "burrow://sandboxes/", f"burrow://sandboxes/{box}/../keys", "burrow://executions/exe_x/stdin", f"burrow://sandboxes/{box}/files/%00"):
        answer = mcp.send(mcp.message("resources/read", uri=uri), headers=None if uri else {**mcp.headers(mcp.message("resources/read")), "Mcp-Name": ""})
        assert answer.json["error"]["code"] == (-32602 if version == MODERN else -32002) or not uri, (uri, answer.json)
        assert not uri or answer.json["error"]["data"] == {"uri": uri}


def test_what_is_cut_of_a_resource_says_so(mcp, box):
    ran = mcp.tool("sandbox_exec", sandbox=box, script="awk 'BEGIN { printf \"x\"; for (i = 0; i < 600000; i++) printf \"é\" }' | tee long")

    def read(uri):
        [content] = mcp.ask("resources/read", uri=uri)["contents"]
        return content
    for uri in (f"burrow://sandboxes/{box}/files/workspace/long", f"burrow://executions/{ran['execution']}/stdout"):
        content = read(uri)  # text, although its first MiB ends within a character
        assert content["text"].startswith("xéé") and "\ufffd" not in content["text"] and 1000000 < len(content["text"].encode()) <= 1 << 20
        assert content["_meta"] == {"burrow/truncated": True, "burrow/sizeBytes": 1200001}
    mcp.tool("sandbox_write_files", sandbox=box, files=[{"path": "short", "content": "é"}])
    assert "_meta" not in read(f"burrow://sandboxes/{box}/files/workspace/short")


def test_pages_of_resources_follow_each_other(mcp):
    assert "resources" in mcp.ask("resources/list")
    answer = mcp.send(mcp.message("resources/list", cursor="nonsense"))
    assert answer.json["error"]["code"] == -32602


def test_a_key_that_only_reads_does_no_more(mcp, box, api):
    made = api.post("/api/v1/keys", {"name": "reader", "scopes": ["read", "organisation"]})
    assert made.status == 201, str(made)
    reader = Mcp(type(api)(api.port, made.json["key"]))
    assert reader.tool("sandbox_get", sandbox=box)["id"] == box
    for name, arguments in (("sandbox_run", {"script": "true"}), ("sandbox_exec", {"sandbox": box, "script": "true"}),
                            ("sandbox_destroy", {"sandbox": box}), ("sandbox_write_files", {"sandbox": box, "files": [{"path": "x", "content": ""}]})):
        text = reader.refused(name, **arguments)
        assert "missing_scope" in text and "ask the person" in text
    assert api.delete(f"/api/v1/keys/{made.json['id']}").status == 204
