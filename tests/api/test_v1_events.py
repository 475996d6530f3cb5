# SPDX-License-Identifier: Apache-2.0
"""Events of all sandboxes: as a list, as they happen, from any place; over restarts, and behind what is forgotten."""
import concurrent.futures
import json
import threading

import pytest

import server as servers
from client import Client, PATIENCE, Raw, check_problem, until

SSE, NDJSON = "text/event-stream", "application/x-ndjson"


class Events:
    """Follows events; reads one at a time."""

    def __init__(self, client, query="", headers=None, accept=SSE, path="/api/v1/events"):
        self.raw = Raw(client.port, client.host)
        lines = {"Authorization": f"Bearer {client.key}", "Accept": accept, "Host": "burrow", **(headers or {})}
        self.raw.send("\r\n".join([f"GET {path}?{query} HTTP/1.1", *(f"{n}: {v}" for n, v in lines.items()), "", ""]).encode())
        self.response = self.raw.response()
        self.status, self.accept, self.rest = self.response.status, accept, b""
        self.content = self.response.getheader("Content-Type")

    def block(self):
        """The next record as text; None at the end."""
        mark = b"\n\n" if self.accept == SSE else b"\n"
        while mark not in self.rest:
            try:
                piece = self.response.read1(65536)
            except (OSError, ValueError, AssertionError) as failure:
                assert not isinstance(failure, TimeoutError), "nothing came"
                return None
            except Exception:  # http.client's words for an answer that was cut
                return None
            if not piece:
                return None
            self.rest += piece
        block, _, self.rest = self.rest.partition(mark)
        return block.decode()

    def next(self):
        """The next event: its number as the stream's id has it, and the event."""
        while (block := self.block()) is not None:
            if self.accept == SSE:
                fields = dict(line.split(": ", 1) for line in block.split("\n"))
                if "data" not in fields:
                    continue
                event, id, kind = json.loads(fields["data"]), fields["id"], fields["event"]
            else:
                record = json.loads(block)
                if "data" not in record:
                    continue
                event, id, kind = record["data"], record["id"], record["event"]
            assert int(id) == event["number"] and kind == event["kind"]
            return event
        return None

    def until(self, wanted):
        """All up to the first that is wanted."""
        seen = []
        while True:
            event = self.next()
            assert event, f"the stream ended: {seen[-3:]}"
            seen.append(event)
            if wanted(event):
                return seen

    def close(self):
        self.raw.close()


def listed(client, query="", after=None):
    """All pages from a place on."""
    events, cursor = [], None
    while True:
        place = f"cursor={cursor}" if cursor else f"after={after}" if after is not None else ""
        page = client.get(f"/api/v1/events?limit=100&{place}&{query}").json
        events += page["items"]
        cursor = page.get("nextCursor")
        if not cursor:
            return events


def numbers(events):
    return [event["number"] for event in events]


def last_number(client):
    events = listed(client)
    return events[-1]["number"] if events else 0


def kinds_of(events, sandbox):
    return [event["kind"] for event in events if event.get("sandboxId") == sandbox.id]


def run(client, sandbox):
    """A command to its end, and to the record of it, which comes a moment later."""
    ran = sandbox.run("true")
    assert ran.exit_code == 0
    until(lambda: ran.started["executionId"] in [event["data"]["executionId"] for event in listed(client, f"sandboxId={sandbox.id}&kind=execution.ended")],
          "the end to be recorded")


def test_what_happens_to_a_sandbox_is_listed_in_order(api, new):
    before = last_number(api)
    sandbox = new()
    run(api, sandbox)
    sandbox.delete()
    until(lambda: "sandbox.deleted" in kinds_of(listed(api, after=before), sandbox), "the end")
    events = [event for event in listed(api, after=before) if event.get("sandboxId") == sandbox.id]
    assert [event["kind"] for event in events] == ["sandbox.created", "sandbox.started", "execution.started", "execution.ended",
                                                   "sandbox.deleted"]
    assert numbers(events) == sorted(set(numbers(events))) and events[0]["number"] > before
    ended = events[3]
    assert ended["data"]["exitCode"] == 0 and ended["data"]["executionId"].startswith("exe_") and ended["data"]["state"] == "completed"
    assert ended["id"].startswith("evt_") and ended["createdAt"].endswith("Z")
    of_it = api.get(f"/api/v1/sandboxes/{sandbox.id}/events").json["items"]
    assert of_it == events
    assert listed(api, f"sandboxId={sandbox.id}") == events


def test_snapshots_checkpoints_and_keys_are_told_too(api, new):
    before = last_number(api)
    sandbox = new()
    snapshot = api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "told"}).data["snapshotId"]
    assert api.delete(f"/sandbox/snapshots/{snapshot}").status == 200
    assert api.post(f"/sandbox/{sandbox.id}/checkpoint", {"name": "one"}).status in (200, 201)
    assert api.delete(f"/sandbox/{sandbox.id}/checkpoint/one").status in (200, 204)
    key = api.post("/api/v1/keys", {"name": "told"})
    assert key.status == 201, str(key)
    assert api.delete(f"/api/v1/keys/{key.json['id']}").status == 204
    events = [e for e in listed(api, "kind=snapshot.*,checkpoint.*,key.*", after=before)]
    assert [e["kind"] for e in events] == ["snapshot.created", "snapshot.deleted", "checkpoint.created", "checkpoint.deleted", "key.created",
                                           "key.revoked"]
    assert events[1]["data"]["snapshotId"] == snapshot and "sandboxId" not in events[1] and events[2]["sandboxId"] == sandbox.id
    assert events[4]["data"]["keyId"] == key.json["id"]


def test_a_list_comes_in_pages_while_more_happens(api, new):
    sandbox = new()
    for _ in range(3):
        run(api, sandbox)
    first = api.get(f"/api/v1/events?sandboxId={sandbox.id}&limit=3").json
    assert len(first["items"]) == 3
    run(api, sandbox)
    rest, cursor = [], first["nextCursor"]
    while cursor:
        page = api.get(f"/api/v1/events?sandboxId={sandbox.id}&limit=3&cursor={cursor}").json
        rest += page["items"]
        cursor = page.get("nextCursor")
    together = numbers(first["items"] + rest)
    assert len(together) == len(set(together)) == 10 and together == sorted(together)


def test_kinds_are_chosen_by_name_or_by_what_they_are_about(api, new):
    sandbox = new()
    run(api, sandbox)

    def kinds(query):
        return {event["kind"] for event in listed(api, f"sandboxId={sandbox.id}&{query}")}
    assert kinds("kind=execution.ended") == {"execution.ended"}
    assert kinds("kind=sandbox.*") == {"sandbox.created", "sandbox.started"}
    assert kinds("kind=execution.started,sandbox.created") == {"execution.started", "sandbox.created"}
    assert kinds("kind=snapshot.*") == set()
    for kind in ("nothing", "sandbox.", "sandbox.create", ",".join(["sandbox.*"] * 33), "sand*"):
        check_problem(api.get(f"/api/v1/events?kind={kind}"), 400, "invalid_request", field="kind")


def test_places_that_cannot_be(api):
    beyond = last_number(api) + 10_000_000
    check_problem(api.get(f"/api/v1/events?after={beyond}"), 400, "invalid_request", str(beyond), field="after")
    for bad in ("-1", "x", "1.5"):
        assert api.get(f"/api/v1/events?after={bad}").status == 400
    for bad in ("-1", "x", "+1", " ", "9" * 30, str(beyond)):
        assert api.get("/api/v1/events", headers={"Last-Event-ID": bad}).status == (400 if bad.strip() else 200)
    check_problem(api.get("/api/v1/events?cursor=rubbish"), 400, "invalid_request", field="cursor")
    check_problem(api.get("/api/v1/events?sandboxId=rubbish"), 400, "invalid_request", field="sandboxId")
    check_problem(api.get("/api/v1/events?sandboxes=x"), 400, "unknown_field", field="sandboxes")
    check_problem(api.get("/api/v1/sandboxes/sbx_nobody/events"), 404, "not_found")


@pytest.mark.parametrize("accept", [SSE, NDJSON])
def test_events_come_as_they_happen(api, new, accept):
    follower = Events(api, accept=accept)
    assert follower.status == 200 and follower.content == accept
    sandbox = new()
    sandbox.run("true")
    seen = follower.until(lambda e: e["kind"] == "execution.ended" and e["sandboxId"] == sandbox.id)
    assert kinds_of(seen, sandbox) == ["sandbox.created", "sandbox.started", "execution.started", "execution.ended"]
    assert numbers(seen) == sorted(set(numbers(seen)))
    assert seen[-1] == listed(api, f"sandboxId={sandbox.id}")[-1]  # the same words everywhere
    follower.close()


def test_a_follower_goes_on_from_where_it_was(api, new):
    sandbox = new()
    run(api, sandbox)
    all_of_it = listed(api, f"sandboxId={sandbox.id}")
    # Last-Event-ID is newer than what the address says.
    follower = Events(api, f"sandboxId={sandbox.id}&after={all_of_it[0]['number'] - 1}", {"Last-Event-ID": all_of_it[1]["number"]})
    assert [follower.next() for _ in range(2)] == all_of_it[2:]
    sandbox.run("true")
    later = follower.until(lambda e: e["kind"] == "execution.ended")
    follower.close()
    assert all_of_it[2:] + later == listed(api, f"sandboxId={sandbox.id}", after=all_of_it[1]["number"])
    of_one = Events(api, "kind=execution.*&after=0", path=f"/api/v1/sandboxes/{sandbox.id}/events")
    assert [of_one.next()["kind"] for _ in range(4)] == ["execution.started", "execution.ended"] * 2
    of_one.close()


def test_a_key_is_told_of_what_it_may_see(api):
    """By list, by stream and by sandbox: of one's own, and of nobody else's."""
    made = {owner: api.post("/api/v1/keys", {"owner": owner}).json for owner in ("event-alice", "event-bob")}
    alice, bob = (Client(api.port, key["key"]) for key in made.values())
    before = last_number(api)
    followers = [Events(client, f"after={before}") for client in (alice, bob, api)]
    boxes = [alice.create(), bob.create()]
    ids = [box.id for box in boxes]
    for box in boxes:
        box.run("true")
        box.delete()
    seen = [follower.until(lambda e: e["kind"] == "sandbox.deleted" and e["sandboxId"] in wanted)
            for follower, wanted in zip(followers, ([ids[0]], [ids[1]], [ids[1]]))]
    assert {e.get("sandboxId") for e in seen[0]} == {ids[0]} and {e.get("sandboxId") for e in seen[1]} == {ids[1]}
    assert {e.get("sandboxId") for e in seen[2]} >= set(ids)
    assert listed(alice, after=before) == seen[0]
    assert listed(alice, f"sandboxId={ids[1]}", after=before) == []
    check_problem(alice.get(f"/api/v1/sandboxes/{ids[1]}/events"), 404, "not_found")
    # Behind the memory, too: the store's filter is the same.
    again = Events(alice, f"after={before}&kind=sandbox.deleted")
    assert again.next()["sandboxId"] == ids[0]
    # And for as long as it is a key.
    for key in made.values():
        assert api.delete(f"/api/v1/keys/{key['id']}").status == 204
    while (last := followers[0].next()) is not None:
        assert last["kind"] == "key.revoked"
    assert again.next() is None
    for follower in (*followers, again):
        follower.close()


def test_many_followers_of_a_flood_miss_nothing_and_slow_ones_neither(api):
    before = last_number(api)
    followers = [Events(api, f"after={before}", accept=NDJSON if i % 2 else SSE) for i in range(20)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: api.create_one_shot("true"), range(60)))
    until(lambda: sum(e["kind"] == "sandbox.ended" for e in listed(api, after=before)) >= 60, "all to end")
    wanted = listed(api, after=before)
    assert len(wanted) >= 4 * 60
    for follower in followers:  # until now nobody has read anything
        seen = follower.until(lambda e: e["number"] == wanted[-1]["number"])
        assert seen == wanted
        follower.close()


def test_nothing_is_lost_or_told_twice_when_the_server_is_killed(tmp_path):
    server = servers.Server(tmp_path / "data", options=["--runtime", "host:latest"])
    server.start()
    server.listen = f"127.0.0.1:{server.port}"
    seen, is_over = [], threading.Event()

    def follow():
        while not is_over.is_set():
            try:
                follower = Events(server.client, "after=0", {"Last-Event-ID": seen[-1]["number"]} if seen else None)
            except Exception:  # it is down
                is_over.wait(0.05)
                continue
            while (event := follower.next()) is not None:
                seen.append(event)
                if event["kind"] == "snapshot.created":
                    return
            follower.close()

    def make():
        while not is_over.is_set():
            try:
                server.client.create_one_shot("true")
            except Exception:
                is_over.wait(0.05)
    try:
        threads = [threading.Thread(target=target) for target in (follow, make, make)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            some = len(seen)
            until(lambda: len(seen) > some + 10, "events to come")
            server.kill()
            server.start()
        is_over.set()
        for thread in threads[1:]:
            thread.join(PATIENCE)
        is_over.clear()
        sandbox = server.client.create()
        assert server.client.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "the-end"}).status in (200, 201)
        threads[0].join(PATIENCE)
        if not threads[0].is_alive() and seen[-1]["kind"] != "snapshot.created":  # it had given up meanwhile
            follow()
        wanted = listed(server.client, after=0)
        assert seen == wanted[:len(seen)] and seen[-1]["kind"] == "snapshot.created"
        server.end()
    finally:
        is_over.set()
        server.abandon()


def test_a_place_that_is_forgotten_says_what_there_is(tmp_path):
    server = servers.Server(tmp_path / "data", options=["--runtime", "host:latest"])
    try:
        api = server.start().client
        sandbox = api.create()
        for _ in range(10):
            sandbox.run("true")
        events = listed(api)
        server.stop()
        server.options += ["--max-events", "5"]
        api = server.start().client
        until(lambda: api.get("/api/v1/events?after=0").status == 410, "events to be forgotten")
        until(lambda: len(listed(api)) <= 5, "all of them")
        problem = check_problem(api.get(f"/api/v1/events?after={events[3]['number']}"), 410, "cursor_expired")
        assert problem["oldest"] == listed(api)[0]["number"] > events[3]["number"]
        follower = Events(api, f"after={events[3]['number']}")
        assert follower.status == 410 and follower.content == "application/problem+json"
        follower.close()
        going_on = Events(api, f"after={problem['oldest'] - 1}")
        assert going_on.next()["number"] == problem["oldest"]
        going_on.close()
        # Its own list is complete for as long as it is known.
        of_it = [event for event in events if event.get("sandboxId") == sandbox.id]
        assert api.get(f"/api/v1/sandboxes/{sandbox.id}/events?limit=100").json["items"][:len(of_it)] == of_it
        server.end()
    finally:
        server.abandon()
