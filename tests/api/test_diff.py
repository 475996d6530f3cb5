# SPDX-License-Identifier: Apache-2.0
"""Differences: which files were added, changed, removed between two moments of a sandbox."""
import pytest
from client import check_problem, nulls, query

HOME = "/home/agentuity"


def diff(sandbox, **fields):
    answer = sandbox.client.get(f"/api/v1/sandboxes/{sandbox.id}/diff?{query(**fields)}")
    assert answer.status == 200, str(answer)
    assert not nulls(answer.data)
    return answer.data


def brief(found):
    """Below the working directory, as sorted (change, name)."""
    return sorted((entry["change"], entry["path"].removeprefix(f"{HOME}/")) for entry in found["items"] if entry["path"].startswith(f"{HOME}/"))


def entry(found, path):
    [one] = [entry for entry in found["items"] if entry["path"] == (path if path.startswith("/") else f"{HOME}/{path}")]
    return one


def checkpoint(sandbox, name):
    answer = sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": name})
    assert answer.status == 201, str(answer)
    return answer.data


def test_a_fresh_sandbox_differs_in_nothing_that_is_its_own(sandbox):
    assert brief(diff(sandbox)) == []


def test_between_the_base_and_now(sandbox):
    sandbox.output("echo x >added; mkdir dir; echo y >dir/in; ln -s added link; echo changed >>/etc/profile; rm -r /usr/share/doc")
    found = diff(sandbox)
    assert (found["from"], found["to"]) == ("base", "now")
    assert brief(found) == [("added", "added"), ("added", "dir"), ("added", "dir/in"), ("added", "link")]
    assert entry(found, "/etc/profile")["change"] == "changed"
    assert entry(found, "/usr/share/doc")["change"] == "removed"
    assert entry(found, "added")["after"] == {"kind": "file", "mode": "0644", "sizeBytes": 2} and "before" not in entry(found, "added")
    assert entry(found, "link")["after"]["kind"] == "link" and entry(found, "dir")["after"]["kind"] == "directory"
    assert "after" not in entry(found, "/usr/share/doc") and entry(found, "/usr/share/doc")["before"]["kind"] == "directory"
    assert [found["added"], found["changed"], found["removed"]] == [
        sum(entry["change"] == change for entry in found["items"]) for change in ("added", "changed", "removed")]
    paths = [entry["path"] for entry in found["items"]]
    assert paths == sorted(paths) and found["truncated"] is False
    assert diff(sandbox, **{"from": "base", "to": "now"})["items"] == found["items"]


@pytest.mark.parametrize("by", ["name", "id"])
def test_between_two_checkpoints(sandbox, by):
    sandbox.output("echo 1 >stays; echo 1 >changes; echo 1 >goes; mkdir tree; echo 1 >tree/x")
    first = checkpoint(sandbox, "first")
    sandbox.output("echo 22 >changes; rm goes; echo 2 >comes; mv tree renamed")
    second = checkpoint(sandbox, "second")
    sandbox.output("echo later >later")
    found = diff(sandbox, **{"from": first[by], "to": second[by]})
    assert found["from"] == first[by] and found["to"] == second[by]
    assert brief(found) == [("added", "comes"), ("added", "renamed"), ("added", "renamed/x"), ("changed", "changes"), ("removed", "goes"),
                            ("removed", "tree")]
    changed = entry(found, "changes")
    assert (changed["before"]["sizeBytes"], changed["after"]["sizeBytes"]) == (2, 3)


def test_the_other_way_round(sandbox):
    checkpoint(sandbox, "empty")
    sandbox.output("echo x >file")
    checkpoint(sandbox, "full")
    assert brief(diff(sandbox, **{"from": "empty", "to": "full"})) == [("added", "file")]
    assert brief(diff(sandbox, **{"from": "full", "to": "empty"})) == [("removed", "file")]
    assert brief(diff(sandbox, **{"from": "now", "to": "empty"})) == [("removed", "file")]
    for moment in ("empty", "full", "now", "base"):
        assert diff(sandbox, **{"from": moment, "to": moment})["items"] == []


def test_since_a_checkpoint(sandbox):
    sandbox.output("echo 1 >a; echo 1 >b")
    checkpoint(sandbox, "then")
    sandbox.output("echo 2 >>a; rm b; echo 1 >c")
    assert brief(diff(sandbox, **{"from": "then"})) == [("added", "c"), ("changed", "a"), ("removed", "b")]


def test_after_going_back(sandbox):
    sandbox.output("echo 1 >a")
    checkpoint(sandbox, "then")
    sandbox.output("rm a; echo 1 >b")
    checkpoint(sandbox, "later")
    assert sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint/then/restore").status == 200
    assert brief(diff(sandbox, **{"from": "then"})) == []
    assert brief(diff(sandbox, **{"from": "later"})) == [("added", "a"), ("removed", "b")]


def test_modes_types_and_touches(sandbox):
    sandbox.output("echo x >mode; echo x >type; echo x >touched; echo x >rewritten; mkdir replaced; echo x >replaced/in")
    checkpoint(sandbox, "then")
    sandbox.output("chmod 600 mode; rm type; mkdir type; touch touched; echo x >rewritten; rm -r replaced; mkdir replaced; echo y >replaced/other")
    found = diff(sandbox, **{"from": "then"})
    assert ("changed", "mode") in brief(found) and entry(found, "mode")["after"]["mode"] == "0600"
    assert entry(found, "type")["before"]["kind"] == "file" and entry(found, "type")["after"]["kind"] == "directory"
    assert not [line for line in brief(found) if line[1] in ("touched", "rewritten")], "what has the same content has not changed"
    assert ("removed", "replaced/in") in brief(found) and ("added", "replaced/other") in brief(found)


def test_in_a_sandbox_from_a_snapshot_the_base_is_the_snapshot(api, new, sandbox):
    sandbox.write(kept="k")
    snapshot = api.post(f"/sandbox/{sandbox.id}/snapshot", {}).data["snapshotId"]
    other = new(snapshot=snapshot)
    assert brief(diff(other)) == []
    other.output("rm kept; echo n >new")
    assert brief(diff(other)) == [("added", "new"), ("removed", "kept")]
    api.delete(f"/sandbox/snapshots/{snapshot}")
    assert brief(diff(other)) == [("added", "new"), ("removed", "kept")], "also when it is deleted"


def test_while_it_is_paused_and_while_a_command_runs(sandbox):
    sandbox.write(file="x")
    sandbox.execute("sleep", "600")
    assert ("added", "file") in brief(diff(sandbox))
    assert sandbox.client.post(f"/sandbox/{sandbox.id}/pause").status == 200
    assert ("added", "file") in brief(diff(sandbox))
    assert sandbox.status()["status"] == "suspended"


# ---- patches ----

def test_patches_of_texts(sandbox):
    sandbox.output("seq 20 >numbers; printf 'no newline' >end; head -c 1000 /dev/urandom >binary; printf 'old\\n' >goes")
    checkpoint(sandbox, "then")
    sandbox.output("sed -i s/^10$/ten/ numbers; printf 'no newline at all' >end; head -c 1000 /dev/urandom >binary; rm goes; printf 'new\\n' >comes; chmod 600 goes 2>/dev/null || :")
    found = diff(sandbox, **{"from": "then", "patch": "1"})
    patch = entry(found, "numbers")["patch"]
    assert patch.splitlines()[:2] == [f"--- a{HOME}/numbers", f"+++ b{HOME}/numbers"]
    assert "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n" in patch
    assert entry(found, "end")["patch"].endswith("-no newline\n\\ No newline at end of file\n+no newline at all\n\\ No newline at end of file\n")
    assert entry(found, "binary")["binary"] is True and "patch" not in entry(found, "binary")
    assert "+new\n" in entry(found, "comes")["patch"] and "-old\n" in entry(found, "goes")["patch"]
    assert all("patch" not in entry for entry in diff(sandbox, **{"from": "then"})["items"])


def test_a_patch_can_be_applied(sandbox, tmp_path):
    import subprocess
    before = "".join(f"line {i}\n" for i in range(300))
    sandbox.write(text=before)
    checkpoint(sandbox, "then")
    after = before.replace("line 7\n", "").replace("line 100\n", "another\nand one\n").replace("line 299\n", "last")
    sandbox.write(text=after)
    patch = entry(diff(sandbox, **{"from": "then", "patch": "true"}), "text")["patch"]
    (tmp_path / "text").write_text(before)
    subprocess.run(["patch", "-s", str(tmp_path / "text")], input=patch, text=True, check=True)
    assert (tmp_path / "text").read_text() == after


def test_a_text_that_is_very_large_has_no_patch_but_is_told(sandbox):
    sandbox.output("yes line | head -c 40000000 >big")
    checkpoint(sandbox, "then")
    sandbox.output("echo more >>big; echo small >small")
    found = diff(sandbox, **{"from": "then", "patch": "1"})
    assert entry(found, "big")["change"] == "changed" and "patch" not in entry(found, "big")
    assert "+small\n" in entry(found, "small")["patch"]


# ---- many, and limits ----

def test_many_are_counted_and_cut(sandbox):
    checkpoint(sandbox, "then")
    sandbox.output("mkdir many; cd many; seq 1000 | xargs touch")
    found = diff(sandbox, **{"from": "then"})
    assert found["added"] >= 1001 and found["truncated"] is False
    cut = diff(sandbox, **{"from": "then", "limit": 10})
    assert len(cut["items"]) == 10 and cut["truncated"] is True and cut["added"] == found["added"]
    assert cut["items"] == found["items"][:10]
    assert diff(sandbox, **{"from": "then", "limit": 0})["items"] == []


def test_odd_names_are_told(sandbox):
    sandbox.output("printf x >\"new\nline\"; printf x >'sp ace'; printf x >ünï")
    assert {name for _, name in brief(diff(sandbox))} == {"new\nline", "sp ace", "ünï"}


def test_bad_questions(api, sandbox, shared):
    for name in ("none", "ckpt_none", "ckpt_" + "0" * 26):
        check_problem(api.get(f"/api/v1/sandboxes/{shared.id}/diff?from={name}"), 404, "not_found")
        check_problem(api.get(f"/api/v1/sandboxes/{shared.id}/diff?to={name}"), 404, "not_found")
    for bad in ("limit=x", "limit=-1", "patch=perhaps", "limit=99999999"):
        check_problem(api.get(f"/api/v1/sandboxes/{shared.id}/diff?{bad}"), 400, "invalid_request", field=bad.split("=")[0])
    check_problem(api.get("/api/v1/sandboxes/sbx_none/diff"), 404, "not_found")
    check_problem(api.get(f"/api/v1/sandboxes/{shared.id}/diff", key=None), 401, "unauthorized")
    made = checkpoint(sandbox, "gone")
    assert api.delete(f"/sandbox/{sandbox.id}/checkpoint/gone").status == 200
    for name in ("gone", made["id"]):
        check_problem(api.get(f"/api/v1/sandboxes/{sandbox.id}/diff?from={name}"), 404, "not_found")


def test_of_destroyed_and_ended_sandboxes(api):
    deleted = api.create()
    deleted.delete()
    check_problem(api.get(f"/api/v1/sandboxes/{deleted.id}/diff"), 404, "not_found")
    ended = api.create_one_shot("true")
    ended.wait_status("terminated")
    check_problem(api.get(f"/api/v1/sandboxes/{ended.id}/diff"), 409, "ended")
