# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: named moments of one sandbox's files, to go back to."""
import pytest
from client import check_error, nulls, query, together, until, waiting_for


def checkpoint(sandbox, name="one"):
    answer = sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": name})
    assert answer.status == 201, str(answer)
    return answer.data


def listed(sandbox):
    return sandbox.client.get(f"/sandbox/checkpoints/{sandbox.id}").data["checkpoints"]


def restore(sandbox, reference):
    return sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint/{reference}/restore")


def restore_ok(sandbox, reference):
    answer = restore(sandbox, reference)
    assert answer.status == 200 and answer.json == {"success": True}, str(answer)


def remove(sandbox, reference):
    return sandbox.client.delete(f"/sandbox/{sandbox.id}/checkpoint/{reference}")


# ---- the answers ----

def test_the_object(sandbox):
    made = checkpoint(sandbox, "before-upgrade")
    assert made["id"].startswith("ckpt_") and made["name"] == "before-upgrade" and made["parent"] == ""
    assert made["createdAt"].endswith("Z") and not nulls(made)
    assert listed(sandbox) == [made]


def test_each_names_the_one_before_it(sandbox):
    assert listed(sandbox) == []
    for name in ("a", "b", "c"):
        checkpoint(sandbox, name)
    assert [(entry["name"], entry["parent"]) for entry in listed(sandbox)] == [("a", ""), ("b", "a"), ("c", "b")]


@pytest.mark.parametrize("name", ["x", "with space", "ümläut", "a.b-c_d", "%41", "ckpt_x", "n" * 128])
def test_names_that_are_fine(sandbox, name):
    made = checkpoint(sandbox, name)
    assert made["name"] == name
    from urllib.parse import quote
    restore_ok(sandbox, quote(name))
    assert remove(sandbox, quote(name)).status == 200


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": None}, {"name": 1}, {"name": "a/b"}, {"name": "n" * 5000}, {"name": "a\0b"}])
def test_names_that_are_not(sandbox, body):
    check_error(sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint", body), 400, "INVALID_ARGUMENT", "name")
    assert listed(sandbox) == []


def test_a_name_is_taken_once(sandbox):
    checkpoint(sandbox)
    check_error(sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "one"}), 409, "CHECKPOINT_EXISTS", "one")
    assert len(listed(sandbox)) == 1
    answers = together(*[lambda: sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "two"})] * 4)
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409]


def test_the_same_name_in_two_sandboxes(new):
    first, second = new(), new()
    one, other = checkpoint(first), checkpoint(second)
    assert one["id"] != other["id"]
    check_error(restore(first, other["id"]), 404, "CHECKPOINT_NOT_FOUND")
    check_error(remove(second, one["id"]), 404, "CHECKPOINT_NOT_FOUND")


# ---- going back ----

@pytest.mark.parametrize("by", ["id", "name"])
def test_files_are_exactly_as_then(sandbox, by):
    sandbox.output("""
        mkdir -p tree/deep empty; echo old >tree/file; echo stays >tree/deep/stays; ln -s file tree/link; ln tree/file tree/hard
        chmod 750 tree/deep; printf '#!/bin/sh\\necho ran' >run; chmod +x run; truncate -s 1M sparse; mkfifo pipe; echo x >/etc/added; rm /etc/motd || :""")
    tree = "cd /home/agentuity; find . -printf '%P %y %m %n %s %l %T@\\n' | sort; ls /etc | sort; cat tree/file; ./run"
    before = sandbox.output(tree)
    made = checkpoint(sandbox)
    sandbox.output("echo new >tree/file; rm -r tree/deep empty; mv tree other; echo more >extra; chmod -x run; rm pipe /etc/added; touch /etc/late")
    assert sandbox.output("ls") != before
    restore_ok(sandbox, made[by])
    assert sandbox.output(tree) == before


def test_a_file_that_replaced_a_directory_and_back(sandbox):
    sandbox.output("mkdir thing; echo in >thing/in; echo file >other")
    checkpoint(sandbox)
    sandbox.output("rm -r thing; echo flat >thing; rm other; mkdir -p other/deep")
    checkpoint(sandbox, "two")
    restore_ok(sandbox, "one")
    assert sandbox.output("cat thing/in other") == "in\nfile\n"
    restore_ok(sandbox, "two")
    assert sandbox.output("cat thing; ls other") == "flat\ndeep\n"


def test_what_the_runtime_brought_comes_back_and_goes_again(sandbox):
    checkpoint(sandbox, "fresh")
    sandbox.output("rm -rf /usr/share/doc /etc/hostname; echo mine >/etc/passwd.new")
    checkpoint(sandbox, "stripped")
    restore_ok(sandbox, "fresh")
    assert sandbox.output("test -d /usr/share && test ! -e /etc/passwd.new && echo fresh") == "fresh\n"
    restore_ok(sandbox, "stripped")
    assert sandbox.output("test ! -e /usr/share/doc && cat /etc/passwd.new") == "mine\n"


def test_later_checkpoints_stay_and_one_can_go_forward_again(sandbox):
    for name in ("a", "b", "c"):
        sandbox.output(f"echo {name} >file")
        checkpoint(sandbox, name)
    for name in ("a", "c", "b", "a"):
        restore_ok(sandbox, name)
        assert sandbox.output("cat file") == f"{name}\n"
    assert [entry["name"] for entry in listed(sandbox)] == ["a", "b", "c"]


def test_the_parent_of_one_made_after_going_back(sandbox):
    checkpoint(sandbox, "a")
    checkpoint(sandbox, "b")
    restore_ok(sandbox, "a")
    assert checkpoint(sandbox, "c")["parent"] in ("a", "b")
    assert [entry["name"] for entry in listed(sandbox)] == ["a", "b", "c"]


def test_everything_that_runs_ends(sandbox):
    checkpoint(sandbox)
    started = sandbox.execute("sh", "-c", "echo begun; sleep 600")
    job = sandbox.job("sleep", "600")
    restore_ok(sandbox, "one")
    ended = sandbox.client.wait_execution(started["executionId"])
    assert ended["status"] in ("cancelled", "failed") and ended["exitCode"] != 0
    assert sandbox.wait_job(job["jobId"])["status"] in ("cancelled", "failed")
    assert sandbox.client.read(started["stdoutStreamUrl"]) in (b"begun\n", b"")
    assert sandbox.wait_status("idle")["status"] == "idle"
    assert sandbox.output("ps ax | grep -c '[s]leep 600' || :").strip() == "0"


def test_a_sandbox_is_usable_after_it(sandbox):
    sandbox.client.patch(f"/sandbox/env/{sandbox.id}", {"env": {"WORD": "kept"}})
    checkpoint(sandbox)
    restore_ok(sandbox, "one")
    assert sandbox.output("echo $WORD; pwd") == "kept\n/home/agentuity\n"
    sandbox.write(more="x")
    assert sandbox.read("more").body == b"x"
    assert sandbox.get()["status"] == "idle"


def test_taken_while_a_command_runs(sandbox):
    started = sandbox.execute("sh", "-c", f"echo one >file; touch ready; {waiting_for()}; echo two >file")
    until(lambda: sandbox.read("ready").status == 200, "the command to write")
    checkpoint(sandbox)
    sandbox.release()
    sandbox.client.wait_execution(started["executionId"])
    assert sandbox.output("cat file") == "two\n"
    restore_ok(sandbox, "one")
    assert sandbox.output("cat file") == "one\n"


def test_many_small_files_come_back(sandbox):
    sandbox.output("mkdir many; cd many; seq 2000 | xargs -I{} sh -c 'echo {} >{}'")
    checkpoint(sandbox)
    sandbox.output("rm -r many")
    restore_ok(sandbox, "one")
    assert sandbox.output("ls many | wc -l; cat many/1999") == "2000\n1999\n"


# ---- removing ----

def test_removed_is_gone(sandbox):
    first, second = checkpoint(sandbox, "a"), checkpoint(sandbox, "b")
    answer = remove(sandbox, "a")
    assert answer.status == 200 and answer.json == {"success": True}
    assert [entry["id"] for entry in listed(sandbox)] == [second["id"]]
    for reference in ("a", first["id"]):
        check_error(restore(sandbox, reference), 404, "CHECKPOINT_NOT_FOUND")
        check_error(remove(sandbox, reference), 404, "CHECKPOINT_NOT_FOUND")
    restore_ok(sandbox, second["id"])
    assert checkpoint(sandbox, "a")["id"] != first["id"], "the name is free again"


def test_what_was_restored_lives_on_when_its_checkpoint_goes(sandbox):
    sandbox.output("echo then >file")
    checkpoint(sandbox)
    sandbox.output("echo now >file")
    restore_ok(sandbox, "one")
    assert remove(sandbox, "one").status == 200
    assert sandbox.output("cat file") == "then\n"


# ---- states ----

def test_nothing_but_listing_on_a_paused_sandbox(sandbox):
    made = checkpoint(sandbox)
    assert sandbox.client.post(f"/sandbox/{sandbox.id}/pause").status == 200
    check_error(sandbox.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "two"}), 409, "INVALID_STATE")
    check_error(restore(sandbox, "one"), 409, "INVALID_STATE")
    check_error(remove(sandbox, "one"), 409, "INVALID_STATE")
    assert listed(sandbox) == [made]
    assert sandbox.client.post(f"/sandbox/{sandbox.id}/resume").status == 200
    assert listed(sandbox) == [made]
    restore_ok(sandbox, "one")


def test_unknown_sandboxes_and_checkpoints(api, shared):
    for call in (lambda id: api.post(f"/sandbox/{id}/checkpoint", {"name": "x"}), lambda id: api.get(f"/sandbox/checkpoints/{id}"),
                 lambda id: api.post(f"/sandbox/{id}/checkpoint/x/restore"), lambda id: api.delete(f"/sandbox/{id}/checkpoint/x")):
        check_error(call("sbx_none"), 404, "SANDBOX_NOT_FOUND")
    for reference in ("none", "ckpt_none", "ckpt_" + "0" * 26):
        check_error(restore(shared, reference), 404, "CHECKPOINT_NOT_FOUND")
        check_error(remove(shared, reference), 404, "CHECKPOINT_NOT_FOUND")
    check_error(api.get(f"/sandbox/checkpoints/{shared.id}", key=None), 401, "UNAUTHORIZED")


def test_destroyed_and_ended_sandboxes(api):
    deleted = api.create()
    checkpoint(deleted)
    deleted.delete()
    check_error(api.post(f"/sandbox/{deleted.id}/checkpoint", {"name": "x"}), 404, "SANDBOX_NOT_FOUND")
    check_error(restore(deleted, "one"), 404, "SANDBOX_NOT_FOUND")
    ended = api.create_one_shot("true")
    ended.wait_status("terminated")
    check_error(api.post(f"/sandbox/{ended.id}/checkpoint", {"name": "x"}), 404, "SANDBOX_TERMINATED")


def test_events_tell_of_it(sandbox):
    checkpoint(sandbox)
    restore_ok(sandbox, "one")
    reasons = [event["event"].get("reason") for event in sandbox.events() if "checkpoint" in event["type"]]
    assert reasons == ["created", "restored"]


# ---- the server's end ----

@pytest.mark.parametrize("how", ["stop", "kill"])
def test_they_survive_a_restart(own_server, how):
    server = own_server()
    sandbox = server.client.create(timeout={"idle": "1h"})
    sandbox.output("echo then >file")
    made = checkpoint(sandbox)
    sandbox.output("echo now >file")
    getattr(server, how)()
    server.start()
    sandbox = server.client.sandbox(sandbox.id)
    assert listed(sandbox) == [made]
    restore_ok(sandbox, made["id"])
    assert sandbox.output("cat file") == "then\n"
    server.end()
