# SPDX-License-Identifier: Apache-2.0
"""Snapshots of snapshots of snapshots, and many checkpoints: however many there are, everything is as with one."""
import hashlib
import sqlite3

from client import query, until

LONG = 40


def layers_of(server, id):
    with sqlite3.connect(f"file:{server.data}/burrow.db?mode=ro", uri=True, timeout=20) as database:
        return database.execute("SELECT layers FROM snapshots WHERE id = ?", [id.removeprefix("snp_")]).fetchone()[0].split()


def diff(sandbox, start, end):
    answer = sandbox.client.get(f"/api/v1/sandboxes/{sandbox.id}/diff?{query(**{'from': start, 'to': end})}").data
    return {entry["path"]: entry["change"] for entry in answer["items"]}


def test_a_long_chain_is_merged_and_nobody_notices(server, api, new):
    made, sandbox = [], new()
    try:
        for level in range(LONG):
            sandbox.output(f"echo {level} >level-{level}; echo {level} >last; rm -f level-{level - 3}")
            answer = api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": f"level-{level}"})
            assert answer.status == 201, str(answer)
            made.append(answer.data["snapshotId"])
            if level < LONG - 1:
                sandbox.delete()
                sandbox = new(snapshot=made[-1])
        until(lambda: len(layers_of(server, made[-1])) <= 32, "the chain to be merged")
        wanted = {"last": str(LONG - 1), **{f"level-{n}": str(n) for n in range(LONG - 3, LONG)}}
        seen = api.get(f"/sandbox/snapshots/{made[-1]}").data
        assert seen["fileCount"] == len(wanted)
        assert {entry["path"].rsplit("/", 1)[-1]: entry["sha256"] for entry in seen["files"]} == \
               {name: hashlib.sha256(f"{text}\n".encode()).hexdigest() for name, text in wanted.items()}
        copy = new(snapshot=made[-1])
        assert copy.output("cat last; ls") == sandbox.output("cat last; ls") == f"{LONG - 1}\n" + "".join(f"{name}\n" for name in sorted(wanted))
        assert new(snapshot=made[20]).output("ls") == "last\nlevel-18\nlevel-19\nlevel-20\n"
        lineage = api.get(f"/sandbox/snapshots/lineage?snapshot={made[-1]}&limit=100").data["lineage"]
        assert [entry["snapshotId"] for entry in lineage] == made[::-1]
        moved = api.post("/api/v1/snapshots/import?name=moved", body=api.get(f"/api/v1/snapshots/{made[-1]}/export").body,
                         headers={"Content-Type": "application/octet-stream"})
        assert moved.status == 201, str(moved)
        made.append(moved.data["id"])
        assert new(snapshot=made[-1]).output("cat last; ls") == copy.output("cat last; ls")
        copy.output("rm last")
        assert diff(copy, "base", "now") == {"/home/agentuity/last": "removed"}
    finally:
        for id in made:
            api.delete(f"/sandbox/snapshots/{id}")


def test_a_hundred_checkpoints_lie_side_by_side(api, sandbox):
    """Each holds all that the sandbox has written, so none is below another."""
    for number in range(100):
        sandbox.write_all({"number": str(number).encode()})
        answer = api.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": f"number-{number}"})
        assert answer.status == 201, str(answer)
    for number in (0, 99, 50):
        assert api.post(f"/sandbox/{sandbox.id}/checkpoint/number-{number}/restore").status == 200
        assert sandbox.output("cat number") == str(number)
    assert diff(sandbox, "number-0", "number-99") == {"/home/agentuity/number": "changed"}
