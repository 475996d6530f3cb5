# SPDX-License-Identifier: Apache-2.0
"""E2B's wire by hand: the control plane, envd over HTTP, and the Connect protocol with its envelopes."""
import base64
import http.client
import json
import struct

from client import PATIENCE, Client

ENVD = 49983


class Failed(Exception):
    """An answer that is none, with its code."""
    def __init__(self, code, message, status=200):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status = code, message, status


def envelope(message, flags=0):
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">BI", flags, len(text)) + text


class Stream:
    """Messages of a call as they come; ends with the end-of-stream envelope."""
    def __init__(self, connection, response):
        self.connection, self.response, self.is_over = connection, response, False

    def __iter__(self):
        return self

    def __next__(self):
        if self.is_over:
            raise StopIteration
        flags, length = struct.unpack(">BI", self._exactly(5))
        message = json.loads(self._exactly(length))
        if not flags & 2:
            return message
        self.is_over = True
        assert self.response.read() == b"", "something behind the end of the stream"
        self.connection.close()
        if "error" in message:
            raise Failed(message["error"]["code"], message["error"].get("message", ""))
        raise StopIteration

    def _exactly(self, length):
        data = b""
        while len(data) < length:
            piece = self.response.read(length - len(data))
            assert piece, f"the stream broke off after {data!r}"
            data += piece
        return data

    def close(self):
        self.connection.close()


class Running:
    """A command that is followed."""
    def __init__(self, stream):
        self.stream = stream
        self.out = {"stdout": b"", "stderr": b"", "pty": b""}
        self.end = None
        self.pid = next(stream)["event"]["start"]["pid"]

    def step(self):
        """One event more; None behind the last."""
        for message in self.stream:
            event = message["event"]
            for name, text in event.get("data", {}).items():
                self.out[name] += base64.b64decode(text, validate=True)
            if "end" in event:
                self.end = event["end"]
            return event
        return None

    def wait(self):
        while self.step():
            pass
        return self

    def until(self, text, side="stdout"):
        while text not in self.out[side]:
            assert self.step(), f"it ended before {text!r}: {self.out}"
        return self


class Sandbox:
    def __init__(self, e2b, told):
        self.e2b, self.told = e2b, told
        self.id, self.token = told["sandboxID"], told["envdAccessToken"]

    @property
    def headers(self):
        return {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(ENVD), "X-Access-Token": self.token}

    def http(self, method, path, headers=None, **kwargs):
        """envd's plain HTTP; 502 is an answer here."""
        headers = {**self.headers, **(headers or {})}
        return self.e2b.call(method, path, headers={k: v for k, v in headers.items() if v is not None}, key=None, may_fail=True, **kwargs)

    def unary(self, method, message=None, headers=None, body=None, may_fail=False):
        headers = {**self.headers, "Content-Type": "application/json", "Connect-Protocol-Version": "1", **(headers or {})}
        answer = self.e2b.call("POST", f"/{method}", body=json.dumps(message or {}).encode() if body is None else body,
                               headers={k: v for k, v in headers.items() if v is not None}, key=None, may_fail=True)
        if may_fail:
            return answer
        if answer.status != 200:
            told = answer.json
            raise Failed(told["code"], told.get("message"), answer.status)
        return answer.json

    def stream(self, method, message, headers=None, body=None, timeout_ms=None):
        connection = http.client.HTTPConnection(self.e2b.host, self.e2b.port, timeout=PATIENCE)
        headers = {**self.headers, "Content-Type": "application/connect+json", "Connect-Protocol-Version": "1", **(headers or {})}
        if timeout_ms:
            headers["Connect-Timeout-Ms"] = str(timeout_ms)
        connection.request("POST", f"/{method}", envelope(message) if body is None else body,
                           {k: v for k, v in headers.items() if v is not None})
        response = connection.getresponse()
        if response.status != 200:
            text = response.read()
            connection.close()
            told = json.loads(text)
            raise Failed(told["code"], told.get("message"), response.status)
        assert response.getheader("Content-Type") == "application/connect+json"
        return Stream(connection, response)

    def start(self, command, timeout_ms=None, headers=None, tag=None, pty=None, stdin=None, **process):
        config = {"cmd": "/bin/bash", "args": ["-l", "-c", command], **process} if isinstance(command, str) else {**command, **process}
        message = {"process": config}
        if tag is not None:
            message["tag"] = tag
        if pty is not None:
            message["pty"] = {"size": {"cols": pty[0], "rows": pty[1]}}
        if stdin is not None:
            message["stdin"] = stdin
        return Running(self.stream("process.Process/Start", message, headers=headers, timeout_ms=timeout_ms))

    def run(self, command, **kwargs):
        return self.start(command, **kwargs).wait()

    def connect(self, timeout_ms=None, **selector):
        return Running(self.stream("process.Process/Connect", {"process": selector}, timeout_ms=timeout_ms))

    def send(self, pid, data, kind="stdin"):
        return self.unary("process.Process/SendInput", {"process": {"pid": pid}, "input": {kind: base64.b64encode(data).decode()}})

    def kill(self):
        return self.e2b.delete(f"/sandboxes/{self.id}")


class E2b(Client):
    """The control plane; its answers are in no document of ours."""
    def call(self, method, path, *args, headers=None, key="own", **kwargs):
        headers = dict(headers or {})
        if key == "own":
            headers.setdefault("X-API-KEY", self.key)
        elif key is not None:
            headers["X-API-KEY"] = key
        before, Client.on_answer = Client.on_answer, None
        try:
            return super().call(method, path, *args, headers=headers, key=None, **kwargs)
        finally:
            Client.on_answer = before

    def create(self, version="/v2", **fields):
        answer = self.post(f"{version}/sandboxes", {"templateID": "base", **fields})
        assert answer.status == 201, str(answer)
        return Sandbox(self, answer.json)
