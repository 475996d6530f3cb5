# SPDX-License-Identifier: Apache-2.0
"""A create whose answer could not be delivered is ended: nobody knows of it, nobody would ever end it."""
import uuid

import pytest
from client import Raw, base64_of, dump, until, waiting_for


def send_create(api, body):
    raw = Raw(api.port)
    data = dump(body)
    raw.send(b"POST /sandbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
             % (api.key.encode(), len(data), data))
    return raw


def listed(api, name):
    return api.get(f"/sandbox?name={name}&limit=100").data["sandboxes"]


@pytest.mark.parametrize("how", ["reset", "close"])
def test_what_nobody_was_told_of_is_ended(api, how):
    name = f"undelivered-{uuid.uuid4().hex}"
    files = [{"path": f"f{n}", "content": base64_of(b"x" * 20000)} for n in range(200)]  # takes a moment
    for _ in range(10):
        getattr(send_create(api, {"name": name, "files": files}), how)()
    marker = api.create(name=f"{name}-after")  # all were at least begun before it
    marker.delete()

    def all_over():
        return all(entry["status"] in ("terminated", "failed") for entry in listed(api, name))
    until(all_over, "all of them to be ended", 30)
    for entry in listed(api, name):
        events = api.sandbox(entry["sandboxId"]).events()
        assert "undelivered" in str(events[-1]["event"]), events


def test_a_one_shot_run_nobody_knows_of_is_ended(api, server):
    name = f"undelivered-{uuid.uuid4().hex}"
    files = [{"path": f"f{n}", "content": base64_of(b"x" * 20000)} for n in range(200)]
    send_create(api, {"name": name, "files": files, "command": {"exec": ["sleep", "600"], "mode": "oneshot"}}).reset()
    marker = api.create()
    marker.delete()
    until(lambda: all(entry["status"] in ("terminated", "failed") for entry in listed(api, name)), "it to be ended", 30)


def test_a_client_that_half_closes_still_gets_its_answer(api):
    raw = send_create(api, {})
    raw.half_close()
    made = raw.answer("POST").data
    sandbox = api.sandbox(made["sandboxId"])
    raw.close()
    assert sandbox.run("true").exit_code == 0
    sandbox.delete()


def test_what_was_delivered_lives(api):
    raw = send_create(api, {})
    made = raw.answer("POST").data
    raw.reset()
    sandbox = api.sandbox(made["sandboxId"])
    assert sandbox.run("true").exit_code == 0
    sandbox.delete()
