# SPDX-License-Identifier: Apache-2.0
"""The most that can be asked for, on a server with low ceilings: refusals with the figure, and all sandboxes together."""
import os
import pathlib

import pytest
import server as servers
from client import Client, check_error, until

MEBI = 1 << 20
TOGETHER = 384 * MEBI
OPTIONS = {"max-memory": "300Mi", "max-cpu": "1500m", "max-disk": "1Gi", "sandboxes-memory": "384Mi", "sandboxes-processes": "400",
           "organisation-sandboxes": "6", "organisation-streams": "3", "organisation-snapshots": "2", "organisation-checkpoints": "2",
           "max-idle-timeout": "1h", "max-execution-timeout": "1m", "parked-one-shot": "1", "parked-kept": "1"}


@pytest.fixture(scope="module")
def low(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("ceilings") / "data",
                            options=[word for name, value in OPTIONS.items() for word in (f"--{name}", value)])
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture
def own(low):
    """Makes sandboxes there."""
    made = []

    def create(**fields):
        made.append(low.client.create(**fields))
        return made[-1]
    yield create
    for sandbox in made:
        sandbox.delete()


def files_of_all(server, name):
    """The values of a file of the control group that all sandboxes are in, whichever trees have it."""
    paths = [pathlib.Path(group, name) for group in server.groups()]
    return [int(path.read_text()) for path in paths if path.exists()]


@pytest.mark.parametrize(("name", "asked", "most"), [("memory", "301Mi", "300Mi"), ("memory", "500Gi", "300Mi"), ("cpu", "2", "1500m"), ("cpu", "1000", "1500m"),
                                                     ("disk", "900Gi", "1Gi")])
def test_what_cannot_be_had_is_refused_with_the_figure(low, name, asked, most):
    answer = low.client.post("/sandbox", {"resources": {name: asked}})
    check_error(answer, 400, "INVALID_ARGUMENT",
                f"resources.{name} {asked} is more than this server gives one sandbox ({most}): ask for less or raise --max-{name}")


def test_what_is_at_its_ceiling_can_be_had(own):
    sandbox = own(resources={"memory": "300Mi", "cpu": "1500m", "disk": "1Gi"})
    assert sandbox.output("cat /sys/fs/cgroup/memory.max").strip() == str(300 * MEBI)


def test_a_default_comes_down_to_its_ceiling(own):
    assert own().output("cat /sys/fs/cgroup/memory.max").strip() == str(300 * MEBI)


def test_by_default_the_machine_is_the_ceiling(api):
    limits = api.get("/api/v1/system/limits").data
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < limits["sandbox"]["memoryBytes"] < memory
    assert limits["server"]["memoryBytes"] == limits["sandbox"]["memoryBytes"]
    assert limits["sandbox"]["cpuMillicores"] == len(os.sched_getaffinity(0)) * 1000
    for name, asked in {"memory": "500000Gi", "cpu": "1000", "disk": "900000Gi"}.items():
        check_error(api.post("/sandbox", {"resources": {name: asked}}), 400, "INVALID_ARGUMENT", f"{name} {asked} is more than this server gives one sandbox")


def test_ceilings_are_told(low):
    limits = low.client.get("/api/v1/system/limits").data
    assert limits["sandbox"]["memoryBytes"] == 300 * MEBI
    assert limits["sandbox"]["cpuMillicores"] == 1500
    assert limits["sandbox"]["diskBytes"] == 1 << 30
    assert limits["sandbox"]["maxProcesses"] == limits["server"]["maxProcesses"] == 400
    assert limits["server"]["memoryBytes"] == TOGETHER
    assert limits["organisation"] == {"sandboxes": 6, "streams": 3, "snapshots": 2, "checkpoints": 2}
    assert (limits["idleTimeoutMs"], limits["executionTimeoutMs"]) == (3600000, 60000)
    assert "the most that one sandbox can ask for memory=300Mi" in low.log


def test_times_have_ceilings(low, own):
    answer = low.client.post("/sandbox", {"timeout": {"idle": "2h"}})
    check_error(answer, 400, "INVALID_ARGUMENT", "idle-timeout 2h is more than this server gives (1h): ask for less or raise --max-idle-timeout")
    answer = low.client.post("/sandbox", {"timeout": {"execution": "5m"}})
    check_error(answer, 400, "INVALID_ARGUMENT", "execution-timeout 5m is more than this server gives (1m)")
    sandbox = own(timeout={"idle": "0s"})
    answer = low.client.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"], "timeout": "5m"})
    check_error(answer, 400, "INVALID_ARGUMENT", "execution-timeout 5m is more than this server gives (1m)")
    assert sandbox.run("true", timeout="1m").exit_code == 0


def test_an_organisation_has_so_many_sandboxes_and_no_more(low, own):
    for _ in range(6):
        own()
    answer = low.client.post("/sandbox", {})
    check_error(answer, 429, "CAPACITY", "6 sandboxes are alive, which is as many as this server allows one organisation")


def test_an_organisation_has_so_many_streams_and_no_more(low):
    ids = [low.client.new_stream() for _ in range(3)]
    answer = low.client.post("/stream", {"name": "more"})
    assert answer.status == 429 and "3 streams are as many as this server keeps for one organisation: remove some or raise " \
                                    "--organisation-streams" in answer.body.decode()
    assert low.client.delete(f"/stream/{ids[0]}").status < 300
    assert low.client.delete(f"/stream/{low.client.new_stream()}").status < 300
    for id in ids[1:]:
        assert low.client.delete(f"/stream/{id}").status < 300


def test_an_organisation_has_so_many_snapshots_and_checkpoints_and_no_more(low, own):
    sandbox = own()
    made = [low.client.post(f"/sandbox/{sandbox.id}/snapshot", {"name": name}).data["snapshotId"] for name in ("one", "two")]
    full = "2 snapshots are as many as this server keeps for one organisation: remove some or raise --organisation-snapshots"
    check_error(low.client.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "three"}), 429, "SNAPSHOT_LIMIT", full)
    check_error(low.client.post("/sandbox/snapshots/build", {"runtime": "base:latest", "name": "three"}), 429, "SNAPSHOT_LIMIT", full)
    for id in made:
        assert low.client.delete(f"/sandbox/snapshots/{id}").status == 200
    for name in ("one", "two"):
        assert low.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": name}).status < 300
    answer = low.client.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "three"})
    check_error(answer, 429, "CAPACITY", "2 checkpoints are as many as this server keeps for one organisation")


def test_all_sandboxes_together_take_no_more_than_they_may_and_the_server_lives_on(low, own):
    """Each stays below its own limit; together they want twice what there is."""
    hungry = "import time\nx = bytearray(250 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('ate', flush=True)\ntime.sleep(50)"
    sandboxes = [own() for _ in range(3)]
    started = [sandbox.execute("python3", "-c", hungry) for sandbox in sandboxes]

    def ends():
        return [state for one in started if (state := low.client.execution(one["executionId"]))["status"] != "running"]
    killed = until(ends, "the kernel to end one of them")
    assert {state.get("exitCode") for state in killed} == {137}
    most = files_of_all(low, "memory.limit_in_bytes") + files_of_all(low, "memory.max")
    used = files_of_all(low, "memory.max_usage_in_bytes") + files_of_all(low, "memory.peak")
    assert most == [TOGETHER] and max(used) <= TOGETHER
    assert max(files_of_all(low, "pids.max")) == 400
    for sandbox in sandboxes:
        assert sandbox.delete().status in (200, 204)
    assert own().run("echo", "alive").stdout == b"alive\n"
    assert low.is_alive()


# ---- one owner leaves room for others ----

@pytest.fixture
def owners(low):
    """Two members of the organisation."""
    made = [low.client.post("/api/v1/keys", {"owner": owner}).json for owner in ("ann", "ben")]
    yield [Client(low.client.port, key["key"]) for key in made]
    for key in made:
        low.client.delete(f"/api/v1/keys/{key['id']}")


def test_one_owner_has_half_of_all_streams(owners):
    ann, ben = owners
    first = ann.new_stream("first")
    refused = ann.post("/stream", {"name": "second"})
    assert refused.status == 429 and "1 streams are as many as one owner may have here, half of all" in refused.body.decode(), str(refused)
    second = ben.new_stream("second")
    for client, id in ((ann, first), (ben, second)):
        assert client.delete(f"/stream/{id}").status < 300


def test_one_owner_has_half_of_all_snapshots_and_checkpoints(owners, made_snapshots):
    for kind, path, body in (("snapshots", "snapshots", lambda n: {"name": f"half-{n}"}), ("checkpoints", "checkpoints", lambda n: {"name": f"half-{n}"})):
        boxes = [owner.create(resources={"memory": "64Mi", "disk": "64Mi"}) for owner in owners]
        try:
            answers = []
            for owner, box in zip(owners, boxes):
                for number in range(2):
                    answers.append(owner.post(f"/api/v1/sandboxes/{box.id}/{path}", body(number)))
                    if kind == "snapshots" and answers[-1].status == 201:
                        made_snapshots.append(answers[-1].json["id"])
            assert [answer.status for answer in answers] == [201, 429, 201, 429], (kind, [str(answer) for answer in answers])
            assert "half of all" in answers[1].json["detail"]
        finally:
            for box in boxes:
                box.delete()


@pytest.fixture
def made_snapshots(low):
    ids = []
    yield ids
    for id in ids:
        assert low.client.delete(f"/api/v1/snapshots/{id}").status == 204


def test_one_owner_announces_so_many_builds_and_no_more(api):
    keys = [api.post("/api/v1/keys", {"owner": owner}).json for owner in ("ann", "ben")]
    ann, ben = (Client(api.port, key["key"]) for key in keys)
    before, Client.on_answer = Client.on_answer, None
    try:
        answers = [ann.post("/v3/templates", {"name": f"flood-{number}"}) for number in range(18)]
        assert [answer.status for answer in answers] == [202] * 16 + [429] * 2, [str(answer) for answer in answers]
        assert ben.post("/v3/templates", {"name": "flood"}).status == 202
        for client, name in [(ann, f"flood-{number}") for number in range(16)] + [(ben, "flood")]:
            assert client.delete(f"/templates/{name}").status == 204
        assert ann.post("/v3/templates", {"name": "flood"}).status == 202
        ann.delete("/templates/flood")
    finally:
        Client.on_answer = before
        for key in keys:
            api.delete(f"/api/v1/keys/{key['id']}")


def test_builds_of_owners_are_not_counted_for_keys_that_are_nobodys(api):
    keys = [api.post("/api/v1/keys", {"owner": f"owner-{number}"}).json for number in range(4)]
    before, Client.on_answer = Client.on_answer, None
    try:
        for key in keys:
            answers = [Client(api.port, key["key"]).post("/v3/templates", {"name": f"flood-{number}"}) for number in range(16)]
            assert [answer.status for answer in answers] == [202] * 16, [str(answer) for answer in answers]
        own = api.post("/v3/templates", {"name": "nobodys"})
        assert own.status == 202, str(own)
        assert api.delete("/templates/nobodys").status == 204
    finally:
        Client.on_answer = before
        for key in keys:
            for number in range(16):
                Client(api.port, key["key"]).delete(f"/templates/flood-{number}")
            api.delete(f"/api/v1/keys/{key['id']}")


def test_one_sandbox_cannot_ask_for_the_processes_of_all(api):
    limits = api.get("/api/v1/system/limits").json
    together, one = limits["server"]["maxProcesses"], limits["sandbox"]["maxProcesses"]
    assert one == max(together // 8, 512)
    answer = api.post("/api/v1/sandboxes", {"limits": {"maxProcesses": together}})
    assert answer.status == 400 and "--most-processes" in answer.json["detail"], str(answer)
