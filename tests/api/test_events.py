# SPDX-License-Identifier: Apache-2.0
"""Events: what happened to a sandbox, in order, with reasons, readable after it is gone."""
import pytest
from client import check_error, nulls, until


def types(sandbox, query=""):
    return [event["type"] for event in sandbox.events(query)]


def test_the_first_event_is_the_creation(sandbox):
    events = sandbox.events()
    assert events[0]["type"] == "create"
    assert all(set(event) >= {"eventId", "sandboxId", "type", "event", "createdAt"} for event in events)
    assert all(event["eventId"].startswith("evt_") and event["sandboxId"] == sandbox.id for event in events)
    assert all(isinstance(event["event"], dict) for event in events)
    assert not nulls(events)
    assert "lifecycle:started" in types(sandbox)


def test_the_end_of_a_command_is_told_with_its_code(sandbox):
    sandbox.sh("exit 5")
    [event] = [event for event in sandbox.events() if event["type"] == "lifecycle:completed"]
    assert event["event"]["exitCode"] == 5


def test_a_one_shot_run_is_told_to_its_end(api):
    sandbox = api.create_one_shot("true")
    sandbox.wait_status("terminated")
    assert types(sandbox)[0] == "create"
    assert types(sandbox)[-1] == "lifecycle:terminated"
    assert sandbox.events()[-1]["event"]["reason"]


def test_an_idle_sandbox_tells_why_it_ended(api):
    sandbox = api.create(timeout={"idle": "1s"})
    assert sandbox.wait_status("terminated")["status"] == "terminated"
    event = sandbox.events()[-1]
    assert event["type"] == "lifecycle:terminated" and "idle" in event["event"]["reason"]
    sandbox.delete()
    assert types(sandbox)[-1] == "destroy"


def test_events_outlive_the_sandbox(api):
    sandbox = api.create()
    sandbox.delete()
    assert types(sandbox)[0] == "create" and types(sandbox)[-1] == "destroy"


def test_both_directions_and_pages(sandbox):
    for _ in range(3):
        sandbox.run("true")
    events = sandbox.events()
    assert [event["createdAt"] for event in events] == sorted(event["createdAt"] for event in events)
    assert sandbox.events("?direction=asc") == events
    assert sandbox.events("?direction=desc") == events[::-1]
    assert sandbox.events("?limit=2") == events[:2]
    assert sandbox.events("?limit=2&direction=desc") == events[:-3:-1]
    assert sandbox.events("?limit=0") == []


def test_bad_parameters_and_unknown_sandboxes(api, sandbox):
    for bad in ("limit=x", "direction=sideways", "limit=-1"):
        check_error(api.get(f"/sandbox/sandboxes/{sandbox.id}/events?{bad}"), 400, "INVALID_ARGUMENT", bad.split("=")[0])
    check_error(api.get("/sandbox/sandboxes/sbx_none/events"), 404, "SANDBOX_NOT_FOUND")


def test_a_thousand_events_come_in_pages(api):
    sandbox = api.create()
    for _ in range(60):
        sandbox.run("true")
    assert len(sandbox.events()) == 50
    assert 60 < len(sandbox.events("?limit=1000")) <= 100
    sandbox.delete()
