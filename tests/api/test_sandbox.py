# SPDX-License-Identifier: Apache-2.0
"""Sandboxes: made with every option, listed, looked at, changed and destroyed."""
import re

import pytest
from client import base64_of, check_error, files_json, nulls, query, together, until

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
EVERYTHING = {
    "name": "every option",
    "description": "a sandbox with all that can be asked for",
    "projectId": "proj_every",
    "runtime": "base:latest",
    "resources": {"memory": "256Mi", "cpu": "500m", "disk": "1Gi"},
    "env": {"COLOUR": "blue", "EMPTY": "", "LINES": "one\ntwo", "GREEK": "αβγ"},
    "network": {"enabled": False},
    "timeout": {"idle": "10m", "execution": "1h30m", "paused": "24h"},
    "files": [{"path": "a/deep/file.txt", "content": base64_of("hello")}, {"path": "/workspace/x", "content": ""}],
    "metadata": {"team": "red", "nested": {"list": [1, None, 2.5, True], "empty": {}}},
    "scopes": ["services:read", "services:write"],
    "dependencies": [],
    "packages": [],
    "stream": {},
}


# ---- create ----

def test_an_empty_request_makes_an_idle_sandbox(api):
    answer = api.post("/sandbox", {})
    assert answer.status in (200, 201)
    assert re.fullmatch(r"sbx_[A-Za-z0-9]{20,}", answer.data["sandboxId"])
    assert answer.data["status"] == "idle"
    assert "executionId" not in answer.data and "stdoutStreamUrl" not in answer.data and "url" not in answer.data
    assert not nulls(answer.json)
    assert api.sandbox(answer.data["sandboxId"]).delete().status == 200


def test_no_body_at_all_is_an_empty_request(api):
    answer = api.post("/sandbox", headers={"Content-Type": "application/json", "Content-Length": "0"})
    assert answer.data["status"] == "idle"
    api.sandbox(answer.data["sandboxId"]).delete()


def test_every_option_is_said_back(new):
    sandbox = new(**EVERYTHING)
    seen = sandbox.get()
    for name in ("name", "description", "resources", "metadata", "timeout", "scopes"):
        assert seen[name] == EVERYTHING[name], name
    assert seen["sandboxId"] == sandbox.id
    assert seen["status"] == "idle"
    assert seen["mode"] == "interactive"
    assert seen["executions"] == 0
    assert seen["networkEnabled"] is False
    assert seen["runtime"]["name"] == "base:latest" and seen["runtime"]["id"].startswith("srt_")
    assert seen["region"]
    assert seen["org"]["id"] and seen["org"]["name"]
    assert TIME.fullmatch(seen["createdAt"])
    assert nulls({**seen, "metadata": 0}) == []
    assert "exitCode" not in seen and "snapshot" not in seen and "url" not in seen and "networkPort" not in seen


def test_files_given_at_creation_are_there(new):
    sandbox = new(**EVERYTHING)
    assert sandbox.read("a/deep/file.txt").body == b"hello"
    assert sandbox.output("cat /home/agentuity/a/deep/file.txt; wc -c </workspace/x") == "hello0\n"


def test_environment_given_at_creation_is_there(new):
    sandbox = new(**EVERYTHING)
    shown = sandbox.run("env", "-0").stdout.decode().split("\0")
    for name, value in EVERYTHING["env"].items():
        assert f"{name}={value}" in shown


def test_numbers_and_odd_spellings_come_back_word_for_word(new):
    asked = {"resources": {"memory": "0.25Gi", "cpu": "0.5", "disk": "1G"}, "timeout": {"idle": "90s", "execution": "1.5s"}}
    seen = new(**asked).get()
    assert seen["resources"] == asked["resources"]
    assert {name: seen["timeout"][name] for name in ("idle", "execution")} == asked["timeout"]


@pytest.mark.parametrize("resources", [
    {"memory": "134217728"}, {"memory": "128M"}, {"memory": "131072Ki"}, {"cpu": "1"}, {"cpu": "100m"}, {"disk": "64Mi"},
])
def test_every_grammar_of_resources_is_understood(new, resources):
    assert new(resources=resources).run("true").exit_code == 0


@pytest.mark.parametrize("idle", ["0", "0s", "1h", "1h30m", "10m0s", "90000ms", "1.5h", "3600000000us", "3600000000µs", "3600000000000ns"])
def test_every_grammar_of_durations_is_understood(new, idle):
    assert new(timeout={"idle": idle}).run("true").exit_code == 0


def test_a_runtime_is_found_by_its_id_and_by_its_name(api, new):
    runtimes = {entry["name"]: entry["id"] for entry in api.get("/sandbox/runtimes").data["runtimes"]}
    for fields in ({"runtimeId": runtimes["base:latest"]}, {"runtime": "base:latest"}, {"runtime": "base"}, {}):
        seen = new(**fields).get()["runtime"]
        assert (seen["id"], seen["name"]) == (runtimes["base:latest"], "base:latest")


def test_the_machines_own_runtime_works(new):
    assert new(runtime="host:latest").run("sh", "-c", "echo hi").stdout == b"hi\n"


def test_where_commands_run_is_as_the_clients_expect(shared):
    shown = shared.output("pwd; echo $HOME; command -v bash; touch /workspace/w /tmp/t x; test -n \"$PATH\"; id -u >/dev/null")
    assert shown.splitlines() == ["/home/agentuity", "/home/agentuity", "/usr/bin/bash"]


def test_an_interactive_command_is_the_first_execution(new, api):
    sandbox = new(command={"exec": ["sh", "-c", "echo out; echo err >&2; exit 4"], "mode": "interactive"})
    ran = sandbox.first()
    assert (ran.status, ran.exit_code, ran.stdout, ran.stderr) == ("completed", 4, b"out\n", b"err\n")
    sandbox.wait_status("idle")
    seen = sandbox.get()
    assert (seen["status"], seen["mode"], seen["executions"]) == ("idle", "interactive", 1)
    assert seen["command"]["exec"] == ["sh", "-c", "echo out; echo err >&2; exit 4"]
    assert "exitCode" not in sandbox.status()
    assert sandbox.run("true").exit_code == 0


def test_files_of_the_sandbox_and_of_its_command_are_both_written(new):
    sandbox = new(files=files_json({"one": "1"}),
                  command={"exec": ["cat", "one", "two"], "mode": "interactive", "files": files_json({"two": "2"})})
    assert sandbox.first().stdout == b"12"


def test_a_hundred_sandboxes_have_different_ids(api):
    made = together(*[lambda: [api.create() for _ in range(10)] for _ in range(10)])
    ids = [sandbox.id for some in made for sandbox in some]
    assert len(set(ids)) == 100
    for some in made:
        for sandbox in some:
            assert sandbox.delete().status == 200


@pytest.mark.parametrize("name", ["nonsense", "base:nonsense", "npm-tool:latest"])
def test_a_runtime_that_is_not_there_is_named(api, name):
    answer = api.post("/sandbox", {"runtime": name})
    assert answer.status in (400, 404), str(answer)
    assert answer.json["code"] in ("RUNTIME_NOT_FOUND", "INVALID_ARGUMENT")
    assert name in answer.json["message"]
    assert "base:latest" in answer.json["message"] or name.startswith("npm-tool"), "the way out is not said"


def test_an_unknown_runtime_id_is_not_found(api):
    check_error(api.post("/sandbox", {"runtimeId": "srt_nonsense"}), 404, "RUNTIME_NOT_FOUND")


# ---- list ----

@pytest.fixture(scope="module")
def family(api):
    """Five sandboxes of a project of their own, in this order."""
    made = []
    for number, name in enumerate(["delta", "alpha", "echo", "bravo", "charlie"]):
        sandbox = api.create(name=name, projectId="proj_family")
        for _ in range(number % 3):
            sandbox.run("true")
        made.append(sandbox)
    made.append(api.create_one_shot("true", name="over", projectId="proj_family"))
    made[-1].wait_status("terminated")
    made.append(api.create(name="gone", projectId="proj_family"))
    made[-1].delete()
    yield made
    for sandbox in made[:-1]:
        sandbox.delete()


def names(api, **fields):
    data = api.get("/sandbox?" + query(projectId="proj_family", **fields)).data
    return [entry["name"] for entry in data["sandboxes"]]


def test_the_list_is_newest_first_and_without_deleted_ones(api, family):
    assert names(api) == ["over", "charlie", "bravo", "echo", "alpha", "delta"]


def test_entries_of_the_list_have_what_the_client_needs(api, family):
    data = api.get("/sandbox?projectId=proj_family").data
    assert data["total"] == 6
    for entry in data["sandboxes"]:
        assert set(entry["org"]) >= {"id", "name"}
        assert isinstance(entry["executions"], int)
        assert TIME.fullmatch(entry["createdAt"])
        assert entry["mode"] in ("oneshot", "interactive")
        assert not nulls(entry)
        assert not {"metadata", "resources", "exitCode"} & set(entry)


@pytest.mark.parametrize("sort, want", [
    ("name", ["alpha", "bravo", "charlie", "delta", "echo", "over"]),
    ("created", ["delta", "alpha", "echo", "bravo", "charlie", "over"]),
])
def test_the_list_is_sorted_both_ways(api, family, sort, want):
    assert names(api, sort=sort, direction="asc") == want
    assert names(api, sort=sort, direction="desc") == want[::-1]


@pytest.mark.parametrize("sort, field", [("status", "status"), ("mode", "mode"), ("execution_count", "executions"),
                                         ("updated", None)])
def test_the_list_is_sorted_by_every_field(api, family, sort, field):
    for direction in ("asc", "desc"):
        entries = api.get("/sandbox?" + query(projectId="proj_family", sort=sort, direction=direction)).data["sandboxes"]
        assert len(entries) == 6
        if field:
            # The order of words is the store's own; equal ones stand together.
            values = [entry[field] for entry in entries]
            assert [value for i, value in enumerate(values) if i == 0 or values[i - 1] != value] == \
                list(dict.fromkeys(values))
        if field == "executions":
            assert values == sorted(values, reverse=direction == "desc")


def test_pages_follow_each_other(api, family):
    assert names(api, limit=2) == ["over", "charlie"]
    assert names(api, limit=2, offset=2) == ["bravo", "echo"]
    assert names(api, limit=2, offset=5) == ["delta"]
    assert names(api, offset=100) == []
    for page in ({"limit": 2}, {"limit": 0}, {"offset": 100}, {"limit": 1000}):
        assert api.get("/sandbox?" + query(projectId="proj_family", **page)).data["total"] == 6


def test_a_limit_of_nothing_is_an_empty_page(api, family):
    assert names(api, limit=0) == []


def test_filters_are_exact_and_combine(api, family):
    assert names(api, name="alpha") == ["alpha"]
    assert names(api, name="alph") == []
    assert names(api, mode="oneshot") == ["over"]
    assert names(api, mode="interactive", sort="name", direction="asc") == ["alpha", "bravo", "charlie", "delta", "echo"]
    assert names(api, status="terminated") == ["over"]
    assert names(api, status="idle", name="echo") == ["echo"]
    assert names(api, status="idle", name="over") == []
    assert names(api, live="true", sort="name", direction="asc") == ["alpha", "bravo", "charlie", "delta", "echo"]
    assert names(api, live="false") == ["over"]
    assert names(api, deletedOnly="true") == ["gone"]
    assert names(api, snapshotId="snp_none") == []
    assert api.get("/sandbox?projectId=proj_nobody").data == {"sandboxes": [], "total": 0}


def test_a_running_sandbox_is_listed_as_running(api, new):
    sandbox = new(projectId="proj_running")
    sandbox.execute("sleep", "60")
    entries = api.get("/sandbox?projectId=proj_running&status=running").data["sandboxes"]
    assert [entry["sandboxId"] for entry in entries] == [sandbox.id]


@pytest.mark.parametrize("bad", ["limit=x", "limit=-1", "offset=x", "offset=-1", "limit=1e3", "sort=colour", "direction=up",
                                 "status=asleep", "mode=both", "live=maybe", "limit=99999999999999999999"])
def test_bad_parameters_of_lists_are_refused_by_name(api, bad):
    check_error(api.get(f"/sandbox?{bad}"), 400, "INVALID_ARGUMENT", bad.split("=")[0])


def test_a_list_never_holds_more_than_a_hundred(api):
    made = together(*[lambda: [api.create_one_shot("true", projectId="proj_many") for _ in range(26)] for _ in range(4)])
    assert sum(len(some) for some in made) == 104
    data = api.get("/sandbox?projectId=proj_many&limit=1000").data
    assert (len(data["sandboxes"]), data["total"]) == (100, 104)
    assert len(api.get("/sandbox?projectId=proj_many").data["sandboxes"]) == 50


# ---- get, status ----

def test_an_organisation_in_the_request_changes_nothing(api, shared):
    assert api.get(f"/sandbox/{shared.id}?orgId=org_whatever").data["sandboxId"] == shared.id
    assert api.get(f"/sandbox/{shared.id}", headers={"x-agentuity-orgid": "org_whatever"}).data["sandboxId"] == shared.id


def test_slashes_before_the_path_count_as_one(api, shared):
    """Clients glue a base that ends with one to a path; a redirect would lose the bodies that they stream."""
    assert api.get(f"//sandbox/{shared.id}").data["sandboxId"] == shared.id
    assert api.get(f"////sandbox/status/{shared.id}").data["sandboxId"] == shared.id


def test_an_unknown_sandbox_is_not_found(api):
    for id in ("sbx_doesnotexist", "sbx_", "nonsense", "sbx_" + "a" * 500, "sbx_%41%2F", "exe_abc"):
        check_error(api.get(f"/sandbox/{id}"), 404, "SANDBOX_NOT_FOUND")
        check_error(api.get(f"/sandbox/status/{id}"), 404, "SANDBOX_NOT_FOUND")
        check_error(api.delete(f"/sandbox/{id}"), 404, "SANDBOX_NOT_FOUND")


def test_a_deleted_sandbox_is_seen_only_on_request(api):
    sandbox = api.create(name="to be deleted")
    answer = sandbox.delete()
    assert (answer.status, answer.json) == (200, {"success": True})
    check_error(api.get(f"/sandbox/{sandbox.id}"), 404, "SANDBOX_NOT_FOUND")
    assert sandbox.get("?includeDeleted=true")["status"] == "deleted"
    assert sandbox.status()["status"] == "deleted"
    check_error(sandbox.delete(), 404, "SANDBOX_NOT_FOUND")


def test_deleting_an_ended_sandbox_makes_it_deleted(api):
    sandbox = api.create_one_shot("true")
    sandbox.wait_status("terminated")
    assert sandbox.delete().json == {"success": True}
    assert sandbox.status()["status"] == "deleted"
    check_error(sandbox.delete(), 404, "SANDBOX_NOT_FOUND")


def test_a_body_in_a_delete_or_get_does_no_harm(api):
    sandbox = api.create()
    assert api.call("GET", f"/sandbox/{sandbox.id}", {"x": 1}).status == 200
    assert api.delete(f"/sandbox/{sandbox.id}", {"x": 1}).status == 200


def test_two_deletes_at_once_both_get_an_answer(api):
    sandbox = api.create()
    sandbox.execute("sleep", "60")
    statuses = sorted(answer.status for answer in together(*[sandbox.delete] * 4))
    assert statuses[0] == 200 and set(statuses) <= {200, 404}
    assert sandbox.status()["status"] == "deleted"


def test_a_wait_for_a_state_that_holds_is_answered_at_once(shared):
    assert shared.status("idle", 290000)["status"] == "idle"
    assert shared.get("?waitForStatus=running%2Cidle&waitMs=290000")["status"] == "idle"


def test_a_wait_ends_when_its_time_is_up(shared):
    assert shared.status("terminated", 50)["status"] == "idle"
    assert shared.get("?waitForStatus=terminated&waitMs=50")["status"] == "idle"


def test_half_of_a_wait_is_none(api, shared):
    for path in (f"/sandbox/status/{shared.id}", f"/sandbox/{shared.id}"):
        assert api.get(f"{path}?waitForStatus=terminated", timeout=20).data["status"] == "idle"
        assert api.get(f"{path}?waitMs=290000", timeout=20).data["status"] == "idle"


def test_a_wait_for_the_impossible_ends_with_the_sandbox(api):
    sandbox = api.create()
    sandbox.execute("sh", "-c", "echo on; sleep 60")
    paths = [f"/sandbox/status/{sandbox.id}?waitForStatus=failed&waitMs=290000",
             f"/sandbox/{sandbox.id}?waitForStatus=idle&waitMs=290000&includeDeleted=true"]
    *answers, gone = together(*[lambda path=path: api.get(path) for path in paths], sandbox.delete)
    assert gone.status == 200
    assert [answer.data["status"] for answer in answers] == ["deleted", "deleted"]


@pytest.mark.parametrize("bad", ["waitMs=x&waitForStatus=idle", "waitMs=1&waitForStatus=asleep"])
def test_bad_waits_are_refused(api, shared, bad):
    answer = api.get(f"/sandbox/status/{shared.id}?{bad}")
    check_error(answer, 400, "INVALID_ARGUMENT", "wait")


def test_time_and_memory_used_are_counted(new, api):
    sandbox = new()
    sandbox.run("python3", "-c", "import time\nwhile time.process_time() < 0.3: pass")
    seen = until(lambda: (seen := sandbox.get()).get("cpuTimeMs", 0) >= 200 and seen, "CPU time to be counted")
    assert seen["cpuTimeMs"] < 60000
    assert seen["memoryByteSec"] > 0


# ---- environment ----

def test_variables_are_set_changed_and_removed(new, api):
    sandbox = new(env={"KEPT": "1", "CHANGED": "old", "GONE": "x"})
    answer = api.patch(f"/sandbox/env/{sandbox.id}", {"env": {"CHANGED": "new", "GONE": None, "ADDED": "y z", "NEVER": None}})
    assert answer.data["env"] == {"KEPT": "1", "CHANGED": "new", "ADDED": "y z"}
    assert sandbox.output("echo $KEPT-$CHANGED-$GONE-$ADDED") == "1-new--y z\n"
    assert api.patch(f"/sandbox/env/{sandbox.id}", {"env": {}}).data["env"] == answer.data["env"]


def test_a_running_command_keeps_its_environment(new, api):
    sandbox = new(env={"WORD": "before"})
    started = sandbox.execute("sh", "-c", "until [ -e go ]; do sleep 0.02; done; echo $WORD")
    api.patch(f"/sandbox/env/{sandbox.id}", {"env": {"WORD": "after"}})
    sandbox.release()
    api.wait_execution(started["executionId"])
    assert api.read(started["stdoutStreamUrl"]) == b"before\n"
    assert sandbox.output("echo $WORD") == "after\n"


def test_jobs_get_the_environment_too(new, api):
    sandbox = new()
    api.patch(f"/sandbox/env/{sandbox.id}", {"env": {"WORD": "job"}})
    job = sandbox.job("sh", "-c", "echo $WORD")
    sandbox.wait_job(job["jobId"])
    assert api.read(job["stdoutStreamUrl"]) == b"job\n"


@pytest.mark.parametrize("env, where", [
    ({"A=B": "x"}, "env"), ({"": "x"}, "env"), ({"A": 1}, "env.A"), ({"A": "nul\0"}, "env"), ({"N\0L": "x"}, "env"),
    ([], "env"), ("A=B", "env"),
])
def test_bad_variables_are_refused(api, shared, env, where):
    check_error(api.patch(f"/sandbox/env/{shared.id}", {"env": env}), 400, "INVALID_ARGUMENT", where)
    if not (isinstance(env, dict) and None in env.values()):
        check_error(api.post("/sandbox", {"env": env}), 400, "INVALID_ARGUMENT", where)


def test_the_environment_of_a_missing_or_ended_sandbox_cannot_change(api):
    check_error(api.patch("/sandbox/env/sbx_none", {"env": {}}), 404, "SANDBOX_NOT_FOUND")
    sandbox = api.create_one_shot("true")
    sandbox.wait_status("terminated")
    check_error(api.patch(f"/sandbox/env/{sandbox.id}", {"env": {"A": "b"}}), 404, "SANDBOX_TERMINATED")


def test_variables_are_needed_in_the_body(api, shared):
    check_error(api.patch(f"/sandbox/env/{shared.id}", {}), 400, "INVALID_ARGUMENT", "env")
