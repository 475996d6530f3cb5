# SPDX-License-Identifier: Apache-2.0
"""Every example of the document is sent for real, to every operation there is, and taken."""
import io
import re
import tarfile
from urllib.parse import quote

from client import query

V1 = "/api/v1"
EXAMPLE_ID = "0123456789abcdefghjkmnpqrs"
# What does not end by itself: tests of their own ask for these.
STREAMS = {"attachExecution", "openSshTunnel", "watchFiles"}
# The webhook of the example is not enabled, so that no test speaks to strangers.
REFUSED = {"testWebhook": 409}
# What ends or changes things for all others comes last, in this order.
LAST = ["moveFile", "deleteFile", "restoreSandboxCheckpoint", "pauseSandbox", "resumeSandbox", "stopExecution", "deleteSandboxContext", "deleteSandboxCheckpoint", "deleteSandboxToken",
        "deleteSnapshot", "deleteRuntime", "deleteWebhook", "deleteSshKey", "deleteKey", "deleteSandbox"]


def archive():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("packed.txt")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    return out.getvalue()


def operations(document):
    """In the order in which they are asked for."""
    every = [(operation["operationId"], method.upper(), path, operation) for path, item in document["paths"].items() for method, operation in item.items()]
    return sorted(every, key=lambda entry: LAST.index(entry[0]) if entry[0] in LAST else -1)


def example_of(operation):
    content = operation.get("requestBody", {}).get("content", {})
    return content.get("application/json", {}).get("example")


def make_world(api, document):
    """Things for the parameters of paths, made by examples where there are any."""
    def make(path, fields=None, **ids):
        operation = document["paths"][V1 + path]["post"]
        answer = api.post(V1 + path.format(**ids), example_of(operation) if fields is None else fields)
        assert answer.status == 201, f"{path}: {answer}"
        return answer.json["id"] if "id" in answer.json else quote(answer.json["fingerprint"], safe="")
    example = example_of(document["paths"][f"{V1}/sandboxes"]["post"])
    sandbox = make("/sandboxes", {**example, "name": "first"})
    return {
        "sandbox": sandbox,
        "execution": make("/sandboxes/{sandbox}/executions", {"command": ["cat"], "terminal": {"rows": 24, "cols": 80}}, sandbox=sandbox),
        "snapshot": make("/sandboxes/{sandbox}/snapshots", {"name": "first", "tag": "first"}, sandbox=sandbox),
        "context": make("/sandboxes/{sandbox}/contexts", sandbox=sandbox),
        "checkpoint": make("/sandboxes/{sandbox}/checkpoints", {"name": "first"}, sandbox=sandbox),
        "runtime": make("/runtimes"),
        "key": make("/keys"),
        "fingerprint": make("/ssh-keys"),
        "token": make("/sandboxes/{sandbox}/tokens", sandbox=sandbox),
        "webhook": make("/webhooks"),
        "port": "3000",
    }


def check_get(api, target, answer):
    """What every GET can do: HEAD says the same without a body, and JSON has a tag."""
    head = api.call("HEAD", target)
    assert (head.status, head.body) == (answer.status, b"") and head.headers["content-type"] == answer.headers["content-type"], f"HEAD {target}: {head}"
    if answer.headers["content-type"] == "application/json" and not target.endswith("openapi.json"):
        assert answer.headers["etag"].startswith('"') and "etag" in head.headers, f"{target}: {answer.headers}"


def send(api, world, entry, exported):
    name, method, path, operation = entry
    parameters = [parameter for parameter in operation["parameters"] if "$ref" not in parameter]
    for parameter in parameters:
        if parameter["in"] == "path":
            is_named = EXAMPLE_ID in parameter["example"] or parameter["name"] in ("port", "fingerprint")
            assert parameter["description"] and is_named, f"{name}: {parameter}"
    target = re.sub(r"\{(\w+)\}", lambda match: world[match[1]], path)
    asked = {parameter["name"]: str(parameter["example"]).lower() if isinstance(parameter["example"], bool) else parameter["example"]
             for parameter in parameters if parameter["in"] == "query" and "example" in parameter}
    target += f"?{query(**asked)}" if asked else ""
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        return api.call(method, target, example_of(operation))
    answer = api.call(method, target, body=exported if name == "importSnapshot" else archive() if content else None)
    if method == "GET" and answer.status == 200:
        check_get(api, target, answer)
    return answer


def test_every_operation_with_a_json_body_has_an_example(api):
    document = api.get(f"{V1}/openapi.json", key=None).json
    missing = [name for name, _, _, operation in operations(document)
               if "application/json" in operation.get("requestBody", {}).get("content", {}) and example_of(operation) is None]
    assert missing == [], f"examples are in src/front/api/api_document.c: {missing}"


def test_every_example_is_taken(own_server):
    server = own_server()
    api = server.client
    document = api.get(f"{V1}/openapi.json", key=None).json
    world = make_world(api, document)
    refused, exported = [], None
    for entry in operations(document):
        name = entry[0]
        if name in STREAMS:
            continue
        place = dict(world)
        if name in ("uploadSnapshotFiles", "finishSnapshotBuild"):
            place["snapshot"] = world["build"]
        answer = send(api, place, entry, exported)
        if name == "createSnapshotBuild" and answer.status < 300:
            world["build"] = answer.json["id"]
        if name == "exportSnapshot":
            exported = answer.body
        if answer.status != REFUSED.get(name, answer.status if 200 <= answer.status < 300 else None):
            refused.append(f"{name}: {answer}")
    assert refused == [], "\n".join(refused)
    server.end()
