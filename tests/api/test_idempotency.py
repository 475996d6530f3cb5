# SPDX-License-Identifier: Apache-2.0
"""With an Idempotency-Key a create or execute happens once, however often and from how many places it is sent."""
import uuid

import pytest
from client import Raw, check_error, dump, together, until, waiting_for


def key():
    return {"Idempotency-Key": str(uuid.uuid4())}


def named(api, name):
    return api.get(f"/sandbox?name={name}&limit=100").data["sandboxes"]


def test_a_create_sent_again_is_the_same_sandbox(api):
    headers, name = key(), f"once-{uuid.uuid4().hex}"
    answers = [api.post("/sandbox", {"name": name}, headers=headers) for _ in range(3)]
    assert len({answer.data["sandboxId"] for answer in answers}) == 1
    assert len(named(api, name)) == 1
    api.sandbox(answers[0].data["sandboxId"]).delete()


def test_a_create_sent_by_ten_at_once_is_one_sandbox(api):
    headers, name = key(), f"once-{uuid.uuid4().hex}"
    answers = together(*[lambda: api.post("/sandbox", {"name": name}, headers=headers)] * 10)
    assert {answer.status for answer in answers} <= {200, 201, 409}
    ids = {answer.data["sandboxId"] for answer in answers if answer.status < 300}
    assert len(ids) == 1
    [sandbox] = named(api, name)
    api.sandbox(sandbox["sandboxId"]).delete()


def test_other_keys_and_none_make_others(api):
    name = f"many-{uuid.uuid4().hex}"
    for headers in (key(), key(), None, None):
        api.post("/sandbox", {"name": name}, headers=headers)
    assert len(named(api, name)) == 4
    for sandbox in named(api, name):
        api.sandbox(sandbox["sandboxId"]).delete()


def test_the_same_key_with_another_request_is_a_conflict(api):
    headers = key()
    made = api.post("/sandbox", {"name": "first"}, headers=headers).data
    answer = api.post("/sandbox", {"name": "second"}, headers=headers)
    assert answer.status in (400, 409), str(answer)
    assert answer.json["success"] is False and "dempotency" in answer.json["message"]
    api.sandbox(made["sandboxId"]).delete()


def test_a_one_shot_run_sent_again_runs_once(api):
    headers = key()
    body = {"command": {"exec": ["sh", "-c", "echo ran"], "mode": "oneshot"}}
    first, second = (api.post("/sandbox", body, headers=headers).data for _ in range(2))
    assert (first["sandboxId"], first["executionId"]) == (second["sandboxId"], second["executionId"])
    assert first["stdoutStreamUrl"] == second["stdoutStreamUrl"]
    assert api.wait_execution(first["executionId"])["exitCode"] == 0
    third = api.post("/sandbox", body, headers=headers).data  # also when it is long over
    assert third["executionId"] == first["executionId"]


def test_an_execute_sent_again_runs_once(sandbox, api):
    headers = key()
    body = {"command": ["sh", "-c", "echo x >>count"]}
    answers = [api.post(f"/sandbox/{sandbox.id}/execute", body, headers=headers)]
    api.wait_execution(answers[0].data["executionId"])
    answers += [api.post(f"/sandbox/{sandbox.id}/execute", body, headers=headers) for _ in range(3)]
    assert len({answer.data["executionId"] for answer in answers}) == 1
    assert sandbox.output("wc -l <count").strip() == "1"


def test_an_execute_sent_by_ten_at_once_runs_once(sandbox, api):
    headers = key()
    body = {"command": ["sh", "-c", "echo x >>count"]}
    answers = together(*[lambda: api.post(f"/sandbox/{sandbox.id}/execute", body, headers=headers)] * 10)
    ids = {answer.data["executionId"] for answer in answers if answer.status < 300}
    assert len(ids) == 1 and {answer.status for answer in answers} <= {200, 201, 409}
    api.wait_execution(ids.pop())
    assert sandbox.output("wc -l <count").strip() == "1"


def test_the_same_key_in_another_sandbox_is_another_request_and_refused(new, api):
    one, two, headers = new(), new(), key()
    answers = [api.post(f"/sandbox/{sandbox.id}/execute", {"command": ["true"]}, headers=headers) for sandbox in (one, two)]
    assert answers[0].status < 300
    check_error(answers[1], 409, "IDEMPOTENCY_MISMATCH")


def test_a_refused_request_may_be_sent_again(api):
    headers = key()
    check_error(api.post("/sandbox", {"runtimeId": "srt_none"}, headers=headers), 404, "RUNTIME_NOT_FOUND")
    check_error(api.post("/sandbox", {"runtimeId": "srt_none"}, headers=headers), 404, "RUNTIME_NOT_FOUND")


def test_a_create_whose_answer_is_lost_is_found_again(api):
    """The client is gone before the answer; its retry finds what the first one made, alive."""
    headers, name = key(), f"lost-{uuid.uuid4().hex}"
    body = dump({"name": name})
    raw = Raw(api.port)
    raw.send(b"POST /sandbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s"
             % (api.key.encode(), headers["Idempotency-Key"].encode(), len(body), body))
    raw.reset()
    made = until(lambda: (answer := api.call("POST", "/sandbox", body=body, headers=headers)).status < 300 and answer.data,
                 "the retry to be answered")
    assert [sandbox["sandboxId"] for sandbox in named(api, name)] == [made["sandboxId"]]
    sandbox = api.sandbox(made["sandboxId"])
    assert sandbox.status()["status"] == "idle"
    assert sandbox.run("true").exit_code == 0
    sandbox.delete()


@pytest.mark.parametrize("bad", ["x" * 256, ""])
def test_an_impossible_key_is_refused_or_none(api, bad):
    answer = api.post("/sandbox", {}, headers={"Idempotency-Key": bad})
    if bad:
        check_error(answer, 400, "INVALID_ARGUMENT", "dempotency")
    else:
        assert answer.status in (200, 201, 400)
        if answer.status < 300:
            api.sandbox(answer.data["sandboxId"]).delete()
