# SPDX-License-Identifier: Apache-2.0
"""A client of the Aionis sandbox routes, of the same shape as the vendor's: memory.sandbox.sessions.create(...) and so on."""
import json
import re
import uuid

from client import MISSING, Client, until

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
TOP = "/v1/memory/sandbox/"
LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
PATIENT = 600000  # ms: a run that waits for the test, however slow the machine is
ROUTES = ["sessions", "execute", "runs/get", "runs/logs", "runs/artifact", "runs/cancel"]


class Refused(Exception):
    """What the vendor's SDK throws for anything but 2xx."""

    def __init__(self, answer):
        super().__init__(str(answer))
        self.status, self.payload, self.answer = answer.status, answer.json, answer
        self.error, self.details = self.payload["error"], self.payload.get("details")


class Aionis:
    made = []  # sessions, of all clients

    def __init__(self, port, key, **identity):
        self.http, self.identity = Client(port, key), identity

    def of(self, **identity):
        """The same server for another tenant or scope."""
        return Aionis(self.http.port, self.http.key, **identity)

    def post(self, route, json=MISSING, **kwargs):
        """One call as it is; every answer has the protocol's headers."""
        answer = self.http.post(TOP + route, json, may_fail=True, **kwargs)
        assert answer.headers["content-type"] == "application/json; charset=utf-8", str(answer)
        assert answer.headers["x-request-id"], str(answer)
        return answer

    def call(self, route, headers=None, **body):
        answer = self.post(route, {**self.identity, **body}, headers=headers)
        if answer.status != 200:
            check_envelope(answer)
            raise Refused(answer)
        assert list(answer.json)[:2] == ["tenant_id", "scope"], str(answer)
        if route == "sessions":
            self.made.append(answer.json["session"]["session_id"])
        return answer.json

    def session(self, **body):
        return self.call("sessions", **body)["session"]["session_id"]

    def execute(self, session, *argv, mode="sync", **body):
        return self.call("execute", session_id=session, mode=mode, action={"kind": "command", "argv": list(argv)}, **body)

    def run(self, session, *argv, **body):
        """A sync run's record."""
        return self.execute(session, *argv, **body)["run"]

    def sh(self, session, script, **body):
        return self.run(session, "sh", "-c", script, **body)

    def start(self, session, *argv, **body):
        """An async run's id."""
        return self.execute(session, *argv, mode="async", **body)["run"]["run_id"]

    def get(self, run):
        return self.call("runs/get", run_id=run)["run"]

    def logs(self, run, **body):
        return self.call("runs/logs", run_id=run, **body)["logs"]

    def artifact(self, run, **body):
        return self.call("runs/artifact", run_id=run, **body)["artifact"]

    def cancel(self, run, **body):
        return self.call("runs/cancel", run_id=run, **body)

    def wait(self, run, *statuses):
        """Its record once it has ended, or has one of these states."""
        def is_there():
            record = self.get(run)
            return record if record["status"] in (statuses or ("succeeded", "failed", "timeout", "canceled")) else None
        return until(is_there, f"run {run} to be {statuses or 'over'}")

    def health(self):
        return self.http.get("/health").json["sandbox"]


def sandbox_of(session):
    """The same identity as the other protocol spells it."""
    number, letters = int(session.replace("-", ""), 16), ""
    for _ in range(26):
        letters = LETTERS[number & 31] + letters
        number >>= 5
    return f"sbx_{letters}"


def session_of(sandbox):
    number = 0
    for letter in sandbox.removeprefix("sbx_"):
        number = number * 32 + LETTERS.index(letter)
    return str(uuid.UUID(int=number))


def check_envelope(answer):
    body = answer.json
    assert body["status"] == answer.status and isinstance(body["error"], str) and isinstance(body["message"], str), str(answer)
    assert not set(body) - {"status", "error", "message", "details", "issues", "request_id"}, str(answer)
    assert body["request_id"] == answer.headers["x-request-id"], str(answer)
    assert ("issues" in body) == (body["error"] == "invalid_request"), str(answer)
    if "issues" in body:
        assert body["details"] == {"contract": "error_v1", "issues": body["issues"]}, str(answer)
        assert all(set(issue) == {"path", "message"} and issue["message"] for issue in body["issues"]), str(answer)


def check_refused(answer, status, error):
    check_envelope(answer)
    assert (answer.status, answer.json["error"]) == (status, error), str(answer)
    return answer.json.get("details")


def issues_of(answer):
    """The paths of what is wrong, in order."""
    check_refused(answer, 400, "invalid_request")
    return [issue["path"] for issue in answer.json["issues"]]


def stringify(value):
    """JSON.stringify, for what Python and JavaScript write alike."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
