# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of burrow's own API: every operation and every refusal."""
import base64
import concurrent.futures
import datetime
import time
import uuid

import pytest

from client import PATIENCE, check_problem, pages, query, until
from records import NDJSON, SSE, Records

TOP = "/api/v1/sandboxes"


class Box:
    """A sandbox; commands in it go over another wire, which knows it by the same id."""

    def __init__(self, api, made):
        self.api, self.made, self.id = api, made, made["id"]
        self.path = f"{TOP}/{self.id}"

    def get(self):
        answer = self.api.get(self.path)
        assert answer.status == 200, str(answer)
        return answer.json

    def change(self, **fields):
        answer = self.api.patch(self.path, fields)
        assert answer.status == 200, str(answer)
        return answer.json

    def fork(self, **fields):
        answer = self.api.post(f"{self.path}/fork", fields)
        assert answer.status == 201, str(answer)
        return Box(self.api, answer.json)

    def wait(self, *states):
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.api.get(f"{self.path}/wait?state={','.join(states)}&waitMs=20s")
            assert answer.status == 200, str(answer)
            if answer.json["reached"]:
                return answer.json
            assert time.monotonic() < deadline, answer

    def output(self, script):
        return self.api.sandbox(self.id).output(script)


@pytest.fixture
def new(api):
    made = []

    def make(**fields):
        answer = api.post(TOP, fields)
        assert answer.status == 201, str(answer)
        made.append(Box(api, answer.json))
        return made[-1]

    yield make
    for box in made:
        api.delete(box.path)


@pytest.fixture(scope="module")
def shared(api):
    """One that no test changes."""
    box = Box(api, api.post(TOP, {}).json)
    yield box
    api.delete(box.path)


@pytest.fixture
def word():
    """A name that nobody else has."""
    return f"n-{uuid.uuid4().hex[:12]}"


# ---- make, look at, delete ----

def test_one_that_asks_for_nothing(shared):
    made = shared.get()
    assert made["state"] == "idle" and made["mode"] == "interactive" and made["labels"] == {} and made["env"] == {}
    assert made["idleTimeoutMs"] == 600_000 and made["onIdle"] == "end" and made["network"] == {"enabled": False}
    assert made["limits"]["memoryBytes"] > 0 and "name" not in made and "expiresAt" not in made
    assert shared.output("id -u; pwd") == "0\n/workspace\n"


def test_everything_that_can_be_asked_for_comes_back(new, api, word):
    asked = {
        "name": word, "description": "what it is for", "labels": {"team": "blue", "tier": ""}, "metadata": {"a": [1, {"b": None}]},
        "env": {"COLOUR": "green", "EMPTY": ""}, "project": "p1", "mode": "interactive", "scopes": ["x", "y"], "runtime": "host:latest",
        "limits": {"memoryBytes": "256Mi", "cpuMillicores": "500m", "diskBytes": 1 << 30, "maxProcesses": 100},
        "idleTimeoutMs": "1h", "executionTimeoutMs": 60_000, "pausedTimeoutMs": "2h", "onIdle": "keep_files",
        "expiresAt": "2099-01-02T03:04:05Z", "network": {"enabled": False},
        "files": [{"path": "a/b.txt", "content": "text"}, {"path": "/etc/c.bin", "contentBase64": "AAEC"}],
    }
    made = new(**asked).get()
    for name in ("name", "description", "labels", "metadata", "env", "project", "mode", "scopes", "runtime", "onIdle", "network"):
        assert made[name] == asked[name], name
    assert made["limits"] == {"memoryBytes": 256 << 20, "cpuMillicores": 500, "diskBytes": 1 << 30, "maxProcesses": 100}
    assert (made["idleTimeoutMs"], made["executionTimeoutMs"], made["pausedTimeoutMs"]) == (3_600_000, 60_000, 7_200_000)
    assert made["expiresAt"].startswith("2099-01-02T03:04:05")
    inside = api.sandbox(made["id"]).output('cat a/b.txt; od -An -tx1 /etc/c.bin; echo "$COLOUR" "$EMPTY."')
    assert inside.split() == ["text", "00", "01", "02", "green", "."]


def test_a_command_is_started_with_it(new, api):
    made = new(command=["sh", "-c", "echo begun; exit 3"], mode="one_shot").made
    assert made["mode"] == "one_shot" and made["executionId"].startswith("exe_")
    ended = Box(api, made).wait("ended")
    assert ended["state"] == "ended" and ended["exitCode"] == 3 and ended["endedAt"] and ended["executions"] == 1


def test_several_commands_run_at_once(new):
    box = new(command=["sleep", "1000"])
    assert box.get()["state"] == "running"
    assert box.output("echo beside") == "beside\n"


def test_delete(new, api):
    box = new()
    assert api.delete(box.path).status == 204
    check_problem(api.get(box.path), 404, "not_found", box.id[4:])
    check_problem(api.delete(box.path), 404, "not_found")
    check_problem(api.patch(box.path, {"description": "x"}), 404, "not_found")
    assert api.get(f"{box.path}/wait").json["state"] == "deleted"


@pytest.mark.parametrize("body, code, field", [
    ({"nome": "x"}, "unknown_field", "nome"),
    ({"limits": {"memory": 1}}, "unknown_field", "limits.memory"),
    ({"files": [{"path": "a", "data": "x"}]}, "unknown_field", "files[0].data"),
    ({"name": "a b"}, "invalid_request", "name"),
    ({"name": ""}, "invalid_request", "name"),
    ({"name": "sbx_x"}, "invalid_request", "name"),
    ({"name": "a" * 129}, "invalid_request", "name"),
    ({"name": None}, "invalid_request", "name"),
    ({"labels": {"a b": "x"}}, "invalid_request", "labels"),
    ({"labels": {"a": "x" * 256}}, "invalid_request", "labels"),
    ({"labels": {"a": 1}}, "invalid_request", "labels.a"),
    ({"labels": {"a": None}}, "invalid_request", "labels.a"),
    ({"labels": {f"l{i}": "" for i in range(65)}}, "invalid_request", "labels"),
    ({"metadata": []}, "invalid_request", "metadata"),
    ({"env": {"A=B": "x"}}, "invalid_request", "env"),
    ({"limits": {"memoryBytes": "1Ki"}}, "invalid_request", "limits.memoryBytes"),
    ({"limits": {"memoryBytes": "900Ti"}}, "invalid_request", "limits.memoryBytes"),
    ({"limits": {"memoryBytes": 0}}, "invalid_request", "limits.memoryBytes"),
    ({"limits": {"cpuMillicores": "x"}}, "invalid_request", "limits.cpuMillicores"),
    ({"idleTimeoutMs": -1}, "invalid_request", "idleTimeoutMs"),
    ({"idleTimeoutMs": "soon"}, "invalid_request", "idleTimeoutMs"),
    ({"onIdle": "sleep"}, "invalid_request", "onIdle"),
    ({"expiresAt": "tomorrow"}, "invalid_request", "expiresAt"),
    ({"expiresAt": "2001-01-01T00:00:00Z"}, "invalid_request", "expiresAt"),
    ({"mode": "one_shot"}, "invalid_request", "command"),
    ({"command": []}, "invalid_request", "command"),
    ({"command": [""]}, "invalid_request", "command"),
    ({"command": ["true"], "script": "true"}, "invalid_request", "script"),
    ({"directory": "here"}, "invalid_request", "directory"),
    ({"runtime": "base", "snapshot": "x"}, "invalid_request", "snapshot"),
    ({"files": [{"path": "a"}]}, "invalid_request", "files"),
    ({"files": [{"path": "a", "content": "x", "contentBase64": ""}]}, "invalid_request", "files"),
    ({"network": {"deny": ["x.example:70000"]}}, "invalid_request", "network.deny"),
    ({"network": {"default": "perhaps"}}, "invalid_request", "network.default"),
])
def test_what_is_refused(api, body, code, field):
    check_problem(api.post(TOP, body), 400, code, field=field)


def test_what_is_not_there(api):
    check_problem(api.post(TOP, {"runtime": "nothing:like-it"}), 404, "not_found", "nothing", field="runtime")
    check_problem(api.post(TOP, {"snapshot": "nothing"}), 404, "not_found", field="snapshot")
    for reference in ("nobody", "sbx_", "sbx_nobody", "sbx_" + "0" * 26, "0" * 26, "%2e%2e", "a" * 300, str(uuid.uuid4())):
        for method, path, body in (("GET", "", None), ("DELETE", "", None), ("PATCH", "", {}), ("GET", "/wait", None), ("POST", "/pause", None),
                                   ("POST", "/resume", None), ("POST", "/fork", {}), ("GET", "/logs", None)):
            answer = api.call(method, f"{TOP}/{reference}{path}", **({"json": body} if body is not None else {}))
            check_problem(answer, 404, "not_found")


def test_a_name_never_stands_in_front_of_an_id(api):
    """A vendor's wire takes any name, also one that looks like the id of somebody else's sandbox; with that, whoever sees both is led astray."""
    looks = str(uuid.uuid4())
    sandbox = api.create(name=looks)
    check_problem(api.get(f"{TOP}/{looks}"), 404, "not_found")
    check_problem(api.post(TOP, {"name": looks}), 400, "invalid_request", field="name")
    sandbox.delete()


# ---- states ----

def test_pause_and_resume(new, api):
    box = new()
    assert api.post("/api/v1/run", {"sandbox": box.id, "command": ["true"]}).status == 200
    assert api.patch(box.path, {"description": "used"}).json["executions"] == 1
    paused = api.post(f"{box.path}/pause").json
    assert (paused["state"], paused["executions"]) == ("paused", 1)
    check_problem(api.post(f"{box.path}/pause"), 409, "conflict", "paused")
    assert box.get()["pausedAt"]
    assert api.post(f"{box.path}/resume").json["state"] == "idle"
    check_problem(api.post(f"{box.path}/resume"), 409, "conflict", "idle")


def test_waiting(new, api):
    box = new()
    assert api.get(f"{box.path}/wait?state=idle").json["reached"] is True
    assert api.get(f"{box.path}/wait?state=paused&waitMs=1").json["reached"] is False
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waits = [pool.submit(api.get, f"{box.path}/wait?state={states}&waitMs=60s") for states in ("paused", "ended,paused", "ended")]
        api.post(f"{box.path}/pause")
        assert [wait.result().json["state"] for wait in waits[:2]] == ["paused", "paused"]
        api.delete(box.path)
        assert waits[2].result().json["state"] == "deleted" and waits[2].result().json["reached"] is True
    check_problem(api.get(f"{box.path}/wait?state=asleep"), 400, "invalid_request", "asleep", field="state")
    check_problem(api.get(f"{box.path}/wait?waitMs=1h"), 400, "invalid_request", field="waitMs")


# ---- what it uses ----

def test_metrics_tell_what_it_uses_at_this_moment(new, api):
    """Not what was written down of it some seconds ago: a processor that is busy shows in every look."""
    box = new()

    def look():
        answer = api.get(f"{box.path}/metrics")
        assert answer.status == 200, str(answer)
        return answer.json
    idle = look()
    assert idle.keys() == {"measuredAt", "cpuMs", "memoryBytes", "diskBytes", "egressBytes"} and idle["egressBytes"] == 0
    box.output("head -c 20000000 /dev/urandom >large; sync")
    until(lambda: look()["diskBytes"] >= idle["diskBytes"] + 20000000, "its files to count")
    assert api.post(f"{box.path}/executions", {"command": ["sh", "-c", "x=$(head -c 30000000 /dev/zero | tr '\\0' x); while :; do :; done"], "background": True}).status == 201
    until(lambda: look()["memoryBytes"] > idle["memoryBytes"] + 30000000, "its memory to count")
    for _ in range(4):
        before = look()["cpuMs"]
        until(lambda: look()["cpuMs"] >= before + 10, "the processor to count")
    assert api.post(f"{box.path}/pause", {}).status == 200
    assert look()["cpuMs"] > 0
    api.delete(box.path)
    check_problem(api.get(f"{box.path}/metrics"), 404, "not_found")


# ---- lists ----

def names(answer):
    assert answer.status == 200, str(answer)
    return [item.get("name") for item in answer.json["items"]]


@pytest.fixture(scope="module")
def fleet(api):
    """Some with labels, all of one project."""
    project = f"fleet-{uuid.uuid4().hex[:8]}"
    made = {}
    for name, labels in {"a": {}, "b": {"team": "blue"}, "c": {"team": "red", "tier": "web"}, "d": {"team": "blue", "note": "x, y"}}.items():
        answer = api.post(TOP, {"name": f"{project}-{name}", "project": project, "labels": labels, "runtime": "host:latest"})
        made[name] = Box(api, answer.json)
    yield project, made
    for box in made.values():
        api.delete(box.path)


@pytest.mark.parametrize("selector, found", [
    ("team=blue", "db"), ("team!=blue", "ca"), ("team", "dcb"), ("!team", "a"), ("team in (blue,red)", "dcb"), ("team notin (blue)", "ca"),
    ("team=blue,!note", "b"), ('note="x, y"', "d"), ("team=green", ""), ("", "dcba"),
])
def test_selectors(api, fleet, selector, found):
    project, _ = fleet
    listed = names(api.get(f"{TOP}?{query(project=project, selector=selector)}"))
    assert listed == [f"{project}-{name}" for name in found]


def test_bad_selectors(api):
    for bad in ("=", "a=b c", "a in", "a,", '"', "a!", ",".join(["a"] * 17), "a in (" + ",".join(["b"] * 33) + ")"):
        check_problem(api.get(f"{TOP}?{query(selector=bad)}"), 400, "invalid_request", "selector", field="selector")


def test_other_filters(api, fleet):
    project, made = fleet
    listing = f"{TOP}?project={project}"
    assert names(api.get(f"{listing}&name={project}-b")) == [f"{project}-b"]
    assert len(names(api.get(f"{listing}&runtime=host:latest"))) == 4 and names(api.get(f"{listing}&runtime=base:latest")) == []
    assert len(names(api.get(f"{listing}&state=idle,running"))) == 4 and names(api.get(f"{listing}&state=ended")) == []
    since = query(**{"from": made["c"].made["createdAt"]})
    assert f"{project}-a" not in names(api.get(f"{listing}&{since}")) or made["a"].made["createdAt"] >= made["c"].made["createdAt"]
    assert f"{project}-d" in names(api.get(f"{listing}&{since}"))
    check_problem(api.get(f"{TOP}?from=then"), 400, "invalid_request", "then", field="from")
    check_problem(api.get(f"{TOP}?state=idle,asleep"), 400, "invalid_request", "asleep", field="state")
    check_problem(api.get(f"{TOP}?stat=idle"), 400, "unknown_field", "did you mean 'state'", field="stat")


def test_a_list_has_no_secrets(api, new, word):
    new(name=word, env={"SECRET": "s"}, metadata={"m": 1})
    item, = api.get(f"{TOP}?name={word}").json["items"]
    assert "env" not in item and "metadata" not in item


def test_pages_under_change(api, fleet):
    project, made = fleet
    listing = f"{TOP}?project={project}"
    items, count = pages(api, listing, 3)
    assert [item["id"] for item in items] == [made[name].id for name in "dcba"] and count == 2
    first = api.get(f"{listing}&limit=2").json
    extra = Box(api, api.post(TOP, {"project": project}).json)  # comes before the place that the cursor marks
    rest = api.get(f"{listing}&limit=2&cursor={first['nextCursor']}").json
    assert [item["id"] for item in first["items"] + rest["items"]] == [made[name].id for name in "dcba"] and "nextCursor" not in rest
    api.delete(extra.path)
    assert [item["id"] for item in api.get(f"{listing}&limit=2&cursor={first['nextCursor']}").json["items"]] == [made[name].id for name in "ba"]


# ---- names ----

def test_a_name_stands_for_the_id(new, api, word):
    box = new(name=word)
    assert api.get(f"{TOP}/{word}").json["id"] == box.id
    assert api.post(f"{TOP}/{word}/pause").json["id"] == box.id
    assert api.post(f"{TOP}/{word}/resume").json["id"] == box.id
    assert api.get(f"{TOP}/{word}/wait?state=idle").json["id"] == box.id
    check_problem(api.post(TOP, {"name": word}), 409, "already_exists", word, field="name")
    other = new()
    check_problem(api.patch(other.path, {"name": word}), 409, "already_exists", word, field="name")
    assert api.patch(f"{TOP}/{word}", {"name": word, "description": "its own"}).status == 200
    assert api.delete(f"{TOP}/{word}").status == 204
    check_problem(api.get(f"{TOP}/{word}"), 404, "not_found")
    assert other.change(name=word)["name"] == word
    assert "name" not in other.change(name=None)
    new(name=word)


def test_vendors_give_names_twice(new, api, word):
    box = new(name=word)
    twin = api.create(name=word)
    check_problem(api.get(f"{TOP}/{word}"), 409, "ambiguous", word, "id")
    assert api.get(box.path).status == 200
    twin.delete()
    assert api.get(f"{TOP}/{word}").json["id"] == box.id
    only = api.create(name=f"{word} with spaces")
    assert api.get(f"{TOP}/{word}%20with%20spaces").json["id"] == only.id
    only.delete()


def test_of_many_who_want_a_name_one_gets_it(api, word):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        bodies = [{"name": word}] * 3 + [{"name": word, "mode": "one_shot", "command": ["sleep", "1000"]}] * 3
        answers = list(pool.map(lambda body: api.post(TOP, body), bodies))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 5
    assert api.delete(f"{TOP}/{word}").status == 204


# ---- change ----

def test_everything_is_changed_at_once(new, word):
    box = new(labels={"a": "1", "b": "2"}, env={"KEPT": "x", "GONE": "y"}, description="old", metadata={"m": 1})
    changed = box.change(name=word, description=None, metadata=None, labels={"b": None, "c": "3"}, env={"GONE": None, "NEW": "z"},
                         limits={"memoryBytes": "128Mi", "maxProcesses": 77}, idleTimeoutMs="2h", executionTimeoutMs=1000, pausedTimeoutMs=0,
                         onIdle="pause", expiresAt="2099-01-01T00:00:00Z")
    assert changed == box.get()
    assert changed["name"] == word and "description" not in changed and "metadata" not in changed
    assert changed["labels"] == {"a": "1", "c": "3"} and changed["env"] == {"KEPT": "x", "NEW": "z"}
    assert changed["limits"]["memoryBytes"] == 128 << 20 and changed["limits"]["maxProcesses"] == 77
    assert changed["limits"]["cpuMillicores"] == box.made["limits"]["cpuMillicores"]
    assert changed["idleTimeoutMs"] == 7_200_000 and changed["executionTimeoutMs"] == 1000 and changed["pausedTimeoutMs"] == 0
    assert changed["onIdle"] == "pause" and changed["expiresAt"].startswith("2099-01-01")
    assert changed["updatedAt"] >= box.made["updatedAt"]
    assert box.output('cat /sys/fs/cgroup/memory.max; echo "$KEPT$GONE$NEW"').split() == [str(128 << 20), "xz"]
    assert "expiresAt" not in box.change(expiresAt=None)
    assert box.change()["labels"] == {"a": "1", "c": "3"}


def test_a_refused_change_changes_nothing(new, api):
    box = new(labels={"a": "1"})
    before = box.get()
    for body, status, code, field in (
            ({"labels": {"b": "2"}, "limits": {"memoryBytes": 1}}, 400, "invalid_request", "limits.memoryBytes"),
            ({"labels": {"b": "2", "c d": "x"}}, 400, "invalid_request", "labels"),
            ({"description": "x", "name": "a b"}, 400, "invalid_request", "name"),
            ({"description": "x", "expiresAt": "2001-01-01T00:00:00Z"}, 400, "invalid_request", "expiresAt"),
            ({"description": "x", "runtime": "base"}, 400, "unknown_field", "runtime"),
            ({"description": "x", "network": {"enabled": True, "allow": ["not a name"]}}, 400, "invalid_request", "network.allow"),
            ({"limits": {"diskBytes": "900Ti"}}, 400, "invalid_request", "limits.diskBytes")):
        check_problem(api.patch(box.path, body), status, code, field=field)
    after = box.get()
    after["usage"] = before["usage"]
    assert after == before


def test_an_ended_one_cannot_be_changed(new, api):
    box = new(command=["true"], mode="one_shot")
    box.wait("ended")
    check_problem(api.patch(box.path, {"description": "x"}), 409, "ended")
    check_problem(api.post(f"{box.path}/pause"), 409, "ended")


def test_a_moved_deadline_is_kept(new):
    box, other = new(), new(idleTimeoutMs=0)
    box.change(idleTimeoutMs=1)
    other.change(expiresAt=(datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)).isoformat())
    assert box.wait("ended")["reason"] == "idle" and other.wait("ended")["reason"] == "expired"


def test_labels_of_others_are_not_seen_by_changes(new, api, word):
    box = new(labels={"team": word})
    assert [item["id"] for item in api.get(f"{TOP}?{query(selector=f'team={word}')}").json["items"]] == [box.id]
    box.change(labels={"team": f"{word}-2"})
    assert api.get(f"{TOP}?{query(selector=f'team={word}')}").json["items"] == []
    assert [item["id"] for item in api.get(f"{TOP}?{query(selector=f'team={word}-2')}").json["items"]] == [box.id]


@pytest.mark.parametrize("behaviour, is_left", [("pause", True), ("keep_files", False)])
def test_what_idleness_does(new, behaviour, is_left):
    box = new(idleTimeoutMs=0, onIdle=behaviour)
    box.output("echo memory >/dev/shm/m; echo file >f")
    box.change(idleTimeoutMs=1)
    assert box.wait("paused")["pausedAt"]
    box.change(idleTimeoutMs=0)
    assert box.output("cat f /dev/shm/m 2>/dev/null; true").split() == (["file", "memory"] if is_left else ["file"])


# ---- fork ----

def test_a_fork_has_everything_but_the_name(new, api, word):
    box = new(name=word, labels={"team": "blue"}, env={"COLOUR": "green"}, description="d", metadata={"m": 1}, limits={"memoryBytes": "200Mi"},
              idleTimeoutMs="3h", onIdle="keep_files", project="p", files=[{"path": "f", "content": "first\n"}])
    fork = api.post(f"{TOP}/{word}/fork", {})
    assert fork.status == 201, str(fork)
    fork = Box(api, fork.json)
    try:
        same = ("labels", "env", "description", "metadata", "limits", "idleTimeoutMs", "onIdle", "project", "runtime", "directory", "mode")
        assert fork.id != box.id and "name" not in fork.made and {name: fork.made[name] for name in same} == {name: box.made[name] for name in same}
        assert fork.output("cat f; echo $COLOUR") == "first\ngreen\n"
        fork.output("echo second >f")
        assert box.output("cat f") == "first\n"
        assert api.delete(box.path).status == 204
        assert fork.output("cat f") == "second\n"  # what both shared stays as long as one needs it
        assert api.get("/sandbox/snapshots").data["snapshots"] == []
    finally:
        api.delete(fork.path)


def test_a_fork_can_be_different(new, api, word):
    box = new(labels={"a": "1", "b": "2"}, env={"A": "1"}, description="d")
    fork = box.fork(name=word, labels={"a": None, "c": "3"}, env={"B": "2"}, description=None, limits={"memoryBytes": "100Mi"}, idleTimeoutMs=0)
    try:
        assert fork.made["name"] == word and fork.made["labels"] == {"b": "2", "c": "3"} and fork.made["env"] == {"A": "1", "B": "2"}
        assert "description" not in fork.made and fork.made["limits"]["memoryBytes"] == 100 << 20 and fork.made["idleTimeoutMs"] == 0
        check_problem(api.post(f"{box.path}/fork", {"name": word}), 409, "already_exists", field="name")
        check_problem(api.post(f"{box.path}/fork", {"limits": {"memoryBytes": "900Ti"}}), 400, "invalid_request", field="limits.memoryBytes")
        check_problem(api.post(f"{box.path}/fork", {"runtime": "base"}), 400, "unknown_field", field="runtime")
    finally:
        api.delete(fork.path)


def test_busy_and_paused_ones_can_be_forked(new, api):
    box = new(command=["sh", "-c", "i=0; while :; do i=$((i+1)); echo $i >count; done"])
    busy = box.fork()
    api.post(f"{box.path}/pause")
    paused = box.fork()
    again = busy.fork()
    try:
        assert box.get()["state"] == "paused" and busy.made["state"] == paused.made["state"] == "idle"
        for fork in (busy, paused, again):
            assert fork.output("cat count | wc -l; ps ax 2>/dev/null | grep -c '[w]hile'; true").split()[0] in ("0", "1")
    finally:
        for fork in (busy, paused, again):
            api.delete(fork.path)


def test_a_fork_is_no_twin(new, api):
    """Files are copied, and nothing that lives: no process, no memory, no random numbers, no way back to the first one."""
    box = new(command=["sh", "-c", "echo secret >/dev/shm/m; exec 3>/tmp/held; sleep 1000"])
    until(lambda: "m" in box.output("ls /dev/shm"), "something in its memory")
    fork = box.fork()
    script = "head -c 16 /dev/urandom | od -An -tx1; ls /dev/shm; cat /proc/[0-9]*/comm | grep -c sleep; true"
    try:
        first, second = box.output(script).split("\n"), fork.output(script).split("\n")
        assert first[0] != second[0] and first[1:3] == ["m", "1"] and second[1] == "0"
        fork.output("rm -rf /tmp/held; echo changed >/workspace/of-the-fork")
        assert box.output("ls /tmp/held; ls /workspace") == "/tmp/held\n"
    finally:
        api.delete(fork.path)


def test_a_fork_is_made_once_for_a_key(new, api, word):
    box = new()
    answers = [api.post(f"{box.path}/fork", {}, headers={"Idempotency-Key": word}) for _ in range(2)]
    assert [answer.status for answer in answers] == [201, 201] and answers[0].json["id"] == answers[1].json["id"]
    api.delete(f"{TOP}/{answers[0].json['id']}")


def test_an_ended_one_cannot_be_forked(new, api):
    box = new(command=["true"], mode="one_shot")
    box.wait("ended")
    check_problem(api.post(f"{box.path}/fork", {}), 409, "ended")


# ---- logs ----

def log(box, **parameters):
    answer = box.api.get(f"{box.path}/logs?{query(**parameters)}")
    assert answer.status == 200, str(answer)
    return answer.json


def told(pages):
    """(command, stream, bytes) as they came, pieces of one stream joined."""
    joined = []
    for piece in (piece for page in pages for piece in page["items"]):
        content = piece["text"].encode() if "text" in piece else base64.b64decode(piece["textBase64"])
        assert len(content) == piece["bytes"]
        if joined and joined[-1][:2] == [piece["executionId"], piece["stream"]]:
            assert piece["offset"] == len(joined[-1][2])
            joined[-1][2] += content
        else:
            joined.append([piece["executionId"], piece["stream"], content])
    return joined


def test_the_log_has_all_commands_in_order(new, api):
    box = new()
    other = api.sandbox(box.id)
    first = other.sh("echo one; echo bad >&2; printf 'ü%.0s' $(seq 100)")
    other.run("true")
    job = other.job("printf", "\\377\\000x")
    other.wait_job(job["jobId"])
    wanted = [[first.started["executionId"], "stdout", "one\n".encode() + "ü".encode() * 100], [first.started["executionId"], "stderr", b"bad\n"],
              [job["jobId"], "stdout", b"\xff\x00x"]]
    whole = log(box)
    assert told([whole]) == wanted and "nextCursor" not in whole
    assert told([log(box, stream="stderr")]) == [wanted[1]]
    pages, cursor = [], None
    while not pages or cursor:
        pages.append(log(box, maxBytes=65, cursor=cursor))
        assert all(piece["bytes"] <= 65 and ("text" in piece or piece["executionId"] == job["jobId"]) for piece in pages[-1]["items"])
        cursor = pages[-1].get("nextCursor")
    assert len(pages) == 4 and told(pages) == wanted
    later = other.sh("echo later")
    assert told([log(box, cursor=whole["endCursor"])]) == [[later.started["executionId"], "stdout", b"later\n"]]
    api.delete(box.path)


def test_the_log_of_a_command_that_runs_goes_on(new, api):
    box = new()
    started = api.sandbox(box.id).execute("sh", "-c", "echo begun; until [ -e go ]; do sleep 0.01; done; echo over; echo done >&2")
    until(lambda: log(box)["items"], "its first line")
    page = log(box)
    assert told([page]) == [[started["executionId"], "stdout", b"begun\n"]] and "nextCursor" not in page
    api.sandbox(box.id).release()
    api.wait_execution(started["executionId"])
    rest = log(box, cursor=page["endCursor"])
    assert [(piece["stream"], piece["text"], piece["offset"]) for piece in rest["items"]] == [("stdout", "over\n", 6), ("stderr", "done\n", 0)]
    assert log(box, cursor=rest["endCursor"])["items"] == []


def follow(box, accept=NDJSON, last=None, **parameters):
    return Records(box.api, "GET", f"{box.path}/logs?{query(**parameters)}", accept=accept, headers={"Last-Event-ID": last} if last else None)


def by_command(records):
    """Bytes by command and stream; what is told again is the same."""
    found = {}
    for record in records:
        if record.event == "end":
            continue
        content = found.setdefault((record.data["executionId"], record.event), b"")
        offset = record.data["offset"]
        assert offset <= len(content), "something was left out"
        assert content[offset:] == record.bytes[:len(content) - offset]
        found[record.data["executionId"], record.event] = content[:offset] + record.bytes
    return found


@pytest.mark.parametrize("accept", [SSE, NDJSON])
def test_a_log_is_followed_until_the_sandbox_has_ended(new, api, accept):
    box = new()
    other = api.sandbox(box.id)
    before = other.sh("echo before")
    with follow(box, accept) as all, follow(box, accept, stream="stderr") as errors:
        assert all.until("stdout").bytes == b"before\n"
        slow = other.job("sh", "-c", "echo slow; until [ -e go ]; do sleep 0.01; done; echo over; echo bad >&2")
        all.until("stdout", b"slow")
        quick = other.sh("echo quick")  # beside one that still runs
        place = all.until("stdout", b"quick").id
        other.release()
        all.until("stderr", b"bad")
        with follow(box, accept, last=place) as again:  # as after a broken connection
            again.until("stderr", b"bad")
            assert b"before" not in again.output() and b"quick" not in again.output() and again.output().endswith(b"over\n")
        api.delete(box.path)
        for follower in (all, errors):
            assert follower.rest()[-1].event == "end" and follower.seen[-1].data == {"state": "deleted"}
    assert by_command(all.seen) == {(before.started["executionId"], "stdout"): b"before\n", (slow["jobId"], "stdout"): b"slow\nover\n",
                                    (slow["jobId"], "stderr"): b"bad\n", (quick.started["executionId"], "stdout"): b"quick\n"}
    assert by_command(errors.seen) == {(slow["jobId"], "stderr"): b"bad\n"}


def test_followers_of_many_who_write_much_get_it_all(new, api):
    box = new()
    other = api.sandbox(box.id)
    jobs = [other.job("sh", "-c", f"head -c 300000 /dev/zero | tr '\\0' {letter}") for letter in "abcdefghijklmnopqrst"]
    followers = [follow(box) for _ in range(3)]
    for job in jobs:
        other.wait_job(job["jobId"])
    box.change(idleTimeoutMs=1)
    for follower in followers:
        assert follower.rest()[-1].data == {"state": "ended"}
        assert by_command(follower.seen) == {(job["jobId"], "stdout"): letter.encode() * 300000 for job, letter in zip(jobs, "abcdefghijklmnopqrst")}
        half = follower.seen[len(follower.seen) // 2]
        follower.close()
        with follow(box, last=half.id) as rest:  # nothing is left out, wherever it begins
            told = by_command(follower.seen[:follower.seen.index(half) + 1] + rest.rest())
            assert told == by_command(follower.seen)


def test_a_follower_that_is_no_good(shared, api):
    for bad in ("x", "-1", "1;", "1;2.3", "1;2.3.4;", "1;2.3.x", "99999999999999999999", "1" + ";1.1.1" * 17):
        answer = api.get(f"{shared.path}/logs", headers={"Accept": NDJSON, "Last-Event-ID": bad})
        check_problem(answer, 400, "invalid_request", field="Last-Event-ID")
    check_problem(api.get(f"{shared.path}/logs?cursor=MQ", headers={"Accept": SSE}), 400, "invalid_request", field="cursor")
    check_problem(api.get(f"{TOP}/sbx_{'0' * 26}/logs", headers={"Accept": SSE}), 404, "not_found")
    for how in ("close", "reset"):
        follower = follow(shared)
        getattr(follower.raw, how)()


def test_a_log_that_is_empty_or_asked_for_wrongly(shared, api):
    assert api.get(f"{shared.path}/logs?cursor=").status == 200
    for bad in ("x", "MQ", "MSAx", "LTEgMC4w"):
        check_problem(api.get(f"{shared.path}/logs?cursor={bad}"), 400, "invalid_request", field="cursor")
    check_problem(api.get(f"{shared.path}/logs?maxBytes=1Gi"), 400, "invalid_request", field="maxBytes")
    check_problem(api.get(f"{shared.path}/logs?stream=stdin"), 400, "invalid_request", field="stream")


# ---- changes that meet ----

def test_a_change_can_be_for_what_was_read(new, api):
    box = new()
    box.output("true")
    box.wait("idle")
    read = api.get(box.path)
    tag = read.headers["etag"]
    assert api.get(box.path).headers["etag"] == tag  # what it uses grows meanwhile
    assert api.get(box.path, headers={"If-None-Match": tag}).status == 304
    changed = api.patch(box.path, {"description": "first"}, headers={"If-Match": tag})
    assert changed.status == 200 and changed.headers["etag"] != tag
    check_problem(api.patch(box.path, {"description": "late"}, headers={"If-Match": tag}), 412, "precondition_failed")
    assert api.get(box.path, headers={"If-None-Match": tag}).json["description"] == "first"
    assert api.patch(box.path, {"description": "any"}, headers={"If-Match": "*"}).status == 200
    assert api.patch(box.path, {"description": "one of"}, headers={"If-Match": f'"x", {api.get(box.path).headers["etag"]}'}).status == 200


def test_of_many_who_change_what_they_read_one_succeeds(new, api):
    box = new()
    for _ in range(3):
        tag = api.get(box.path).headers["etag"]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answers = list(pool.map(lambda i: api.patch(box.path, {"labels": {"who": str(i)}}, headers={"If-Match": tag}), range(6)))
        assert sorted(answer.status for answer in answers) == [200] + [412] * 5
        winner, = (answer.json for answer in answers if answer.status == 200)
        assert box.get()["labels"] == winner["labels"]
