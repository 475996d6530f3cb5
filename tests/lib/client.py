# SPDX-License-Identifier: Apache-2.0
"""A small HTTP client for tests: one connection a request, every answer kept whole; and raw sockets for rude ones."""
import base64
import concurrent.futures
import http.client
import io
import json
import socket
import threading
import time
import urllib.parse

PATIENCE = 60  # seconds: nothing that a test waits for takes as long
MISSING = object()
ANY = object()


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    @property
    def json(self):
        assert self.headers.get("content-type", "").startswith(("application/json", "application/problem+json")), f"not JSON: {self}"
        return json.loads(self.body)

    @property
    def data(self):
        """The payload of a success: in its envelope, or all of it where the API has none."""
        told = self.json
        assert 200 <= self.status < 300 and told.get("success", True) is True, str(self)
        return told["data"] if "success" in told else told

    def __str__(self):
        return f"{self.status} {self.body[:2000]!r}"


class Client:
    """Speaks to one server with one key. A 5xx is a failed test wherever it happens, unless it is asked for."""

    on_answer = None  # is given each answer: schema.Checker where they are checked

    def __init__(self, port, key, host="127.0.0.1"):
        self.host, self.port, self.key = host, port, key
        self.url = f"http://{host}:{port}"

    def call(self, method, path, json=MISSING, body=None, headers=None, key=MISSING, timeout=PATIENCE, may_fail=False):
        headers = dict(headers or {})
        key = self.key if key is MISSING else key
        if key is not None:
            headers.setdefault("Authorization", f"Bearer {key}")
        if json is not MISSING:
            body = dump(json)
            headers.setdefault("Content-Type", "application/json")
        if path.startswith("http://"):
            path = path.removeprefix(self.url)
            assert path.startswith("/"), f"not a URL of this server: {path}"
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers, encode_chunked=hasattr(body, "__next__"))
            response = connection.getresponse()
            answer = Answer(response.status, response.getheaders(), response.read())
        finally:
            connection.close()
        assert may_fail or answer.status < 500, f"{method} {path}: {answer}"
        if Client.on_answer:
            Client.on_answer(self, method, path, answer)
        return answer

    def get(self, path, **kwargs):
        return self.call("GET", path, **kwargs)

    def post(self, path, json=MISSING, **kwargs):
        return self.call("POST", path, json, **kwargs)

    def put(self, path, body=b"", **kwargs):
        return self.call("PUT", path, body=body, **kwargs)

    def patch(self, path, json=MISSING, **kwargs):
        return self.call("PATCH", path, json, **kwargs)

    def delete(self, path, json=MISSING, **kwargs):
        return self.call("DELETE", path, json, **kwargs)

    # ---- sandboxes ----

    def create(self, headers=None, **fields):
        return Sandbox(self, self.post("/sandbox", fields, headers=headers).data)

    def create_one_shot(self, *argv, **fields):
        fields.setdefault("command", {"exec": list(argv), "mode": "oneshot"})
        return Sandbox(self, self.post("/sandbox", fields).data)

    def sandbox(self, id):
        return Sandbox(self, {"sandboxId": id})

    def execution(self, id, wait=None):
        return self.get(f"/sandbox/execution/{id}" + (f"?wait={wait}" if wait else "")).data

    def wait_execution(self, id):
        """Its state when it has ended."""
        deadline = time.monotonic() + PATIENCE
        while True:
            state = self.execution(id, wait="30s")
            if state["status"] not in ("queued", "running"):
                return state
            assert time.monotonic() < deadline, f"execution {id} does not end: {state}"

    def read(self, url):
        """All of a stream, once it is complete. Needs no key."""
        answer = self.get(url, key=None)
        assert answer.status == 200, str(answer)
        return answer.body

    def new_stream(self, name="test", **fields):
        answer = self.post("/stream", {"name": name, **fields})
        assert answer.status in (200, 201), str(answer)
        return answer.json["id"]

    def follow(self, url):
        """A stream as it comes; the header is there when this returns."""
        path = url.removeprefix(self.url)
        raw = Raw(self.port, self.host)
        raw.send(f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n\r\n".encode())
        response = raw.response()
        assert response.status == 200, response.status
        return Follower(raw, response)


class Sandbox:
    def __init__(self, client, made):
        self.client, self.made, self.id = client, made, made["sandboxId"]
        self.execution_id = made.get("executionId")

    def get(self, query=""):
        return self.client.get(f"/sandbox/{self.id}{query}").data

    def status(self, wait_for=None, wait_ms=None):
        query = f"?waitForStatus={wait_for}&waitMs={wait_ms or 30000}" if wait_for else ""
        return self.client.get(f"/sandbox/status/{self.id}{query}").data

    def wait_status(self, *statuses):
        deadline = time.monotonic() + PATIENCE
        while (state := self.status("%2C".join(statuses)))["status"] not in statuses:
            assert time.monotonic() < deadline, f"{self.id} does not become {statuses}: {state}"
        return state

    def delete(self):
        return self.client.delete(f"/sandbox/{self.id}")

    def execute(self, *argv, **fields):
        return self.client.post(f"/sandbox/{self.id}/execute", {"command": list(argv), **fields}).data

    def run(self, *argv, **fields):
        """Executes to the end."""
        return Ran(self.client, self.execute(*argv, **fields))

    def sh(self, script, **fields):
        return self.run("sh", "-c", script, **fields)

    def output(self, script):
        """Of a shell script that must succeed."""
        ran = self.sh(script)
        assert ran.exit_code == 0, ran
        return ran.stdout.decode()

    def first(self):
        """The initial command, to its end."""
        return Ran(self.client, self.made)

    def job(self, *argv, **fields):
        return self.client.post(f"/sandbox/sandboxes/{self.id}/jobs", {"command": list(argv), **fields}).data

    def job_state(self, job_id):
        return self.client.get(f"/sandbox/sandboxes/{self.id}/jobs/{job_id}").data

    def wait_job(self, job_id):
        return until(lambda: ended(self.job_state(job_id)), f"job {job_id} to end")

    def events(self, query=""):
        return self.client.get(f"/sandbox/sandboxes/{self.id}/events{query}").data["events"]

    def write(self, **files):
        """path=content, or as a dict."""
        return self.write_all(files)

    def write_all(self, files):
        answer = self.client.post(f"/fs/{self.id}", {"files": files_json(files)})
        assert answer.status == 200, str(answer)
        return answer.json

    def read(self, path):
        return self.client.get(f"/fs/{self.id}?{query(path=path)}")

    def release(self, name="go"):
        """Lets a command end that is waiting_for() this file."""
        self.write_all({name: b""})

    def list(self, path=None):
        return self.client.get(f"/fs/list/{self.id}" + (f"?{query(path=path)}" if path is not None else "")).data["files"]


class Ran:
    """A command that has ended, and what it wrote."""

    def __init__(self, client, started):
        self.started = started
        self.state = client.wait_execution(started["executionId"])
        self.status, self.exit_code = self.state["status"], self.state.get("exitCode")
        self.stdout, self.stderr = (client.read(started[name]) if name in started else None
                                    for name in ("stdoutStreamUrl", "stderrStreamUrl"))

    def __repr__(self):
        return f"{self.state} stdout={self.stdout!r} stderr={self.stderr!r}"


class Follower:
    """Reads a chunked body piece by piece."""

    def __init__(self, raw, response):
        self.raw, self.response, self.seen = raw, response, b""

    def wait_for(self, text):
        """Until this has come."""
        while text not in self.seen:
            piece = self.response.read1(65536)
            assert piece, f"the stream ended before {text!r}: {self.seen[-200:]!r}"
            self.seen += piece
        return self.seen

    def rest(self):
        self.seen += self.response.read()
        return self.seen

    def close(self):
        self.raw.close()


class Reader(io.BufferedReader):
    """What http.client reads one answer from; not closed with it, since the next one may be in its buffer."""

    def makefile(self, _mode):
        return self

    def close(self):
        pass


class Raw:
    """A connection that may be used wrongly."""

    def __init__(self, port, host="127.0.0.1", timeout=PATIENCE):
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.reader = Reader(self.socket.makefile("rb", buffering=0))

    def send(self, data):
        self.socket.sendall(data)
        return self

    def send_if_open(self, data):
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def response(self, method="GET"):
        """The next answer's head; the body can be read from it."""
        response = http.client.HTTPResponse(self.reader, method=method)
        response.begin()
        return response

    def answer(self, method="GET"):
        response = self.response(method)
        return Answer(response.status, response.getheaders(), response.read())

    def all(self):
        """Everything until the other side closes, or resets."""
        seen = b""
        try:
            while piece := self.reader.read1(65536):
                seen += piece
        except ConnectionResetError:
            pass
        return seen

    def chunk(self, data):
        return self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        """Gone without a word."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()

    def close(self):
        self.reader.raw.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def dump(value):
    return json.dumps(value).encode()


def query(**fields):
    return urllib.parse.urlencode({name: value for name, value in fields.items() if value is not None})


def base64_of(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


def files_json(files):
    return [{"path": path, "content": base64_of(content)} for path, content in files.items()]


def waiting_for(name="go"):
    """Words of a shell script that waits for a file which the test writes."""
    return f"until [ -e {name} ]; do sleep 0.02; done"


def ended(job):
    return job if job["status"] not in ("pending", "running") else None


def until(fn, what, seconds=PATIENCE):
    """What fn returns once it is true."""
    deadline = time.monotonic() + seconds
    while not (value := fn()):
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.01)
    return value


def together(*fns):
    """Runs them at once, each on a thread; their results in order."""
    gate = threading.Barrier(len(fns))

    def run(fn):
        gate.wait()
        return fn()
    with concurrent.futures.ThreadPoolExecutor(len(fns)) as pool:
        return [future.result(PATIENCE * 2) for future in [pool.submit(run, fn) for fn in fns]]


def nulls(value, path=""):
    """Where there is a null."""
    if value is None:
        return [path]
    if isinstance(value, dict):
        return [found for name, item in value.items() for found in nulls(item, f"{path}.{name}")]
    if isinstance(value, list):
        return [found for i, item in enumerate(value) for found in nulls(item, f"{path}[{i}]")]
    return []


def check_error(answer, status, code, *words):
    """The envelope of a failure; `words` are in its message."""
    assert answer.status == status, str(answer)
    assert answer.json["success"] is False, str(answer)
    assert answer.json["code"] == code, str(answer)
    assert isinstance(answer.json["message"], str) and answer.json["message"], str(answer)
    assert "error" not in answer.json, str(answer)
    for word in words:
        assert word in answer.json["message"], f"{word!r} is not in {answer.json['message']!r}"


def check_problem(answer, status, code, *words, field=None):
    """A failure of burrow's own API; `words` are in its detail. One of several codes where `code` is a tuple; any field where it is ANY."""
    assert answer.status == status, str(answer)
    assert answer.headers["content-type"] == "application/problem+json", answer.headers
    problem = answer.json
    assert problem["status"] == status and problem["code"] in (code if isinstance(code, tuple) else (code,)), str(answer)
    assert problem["title"] and problem["detail"] and problem["requestId"] == answer.headers["x-request-id"], str(answer)
    assert field is ANY or problem.get("field") == field, str(answer)
    for word in words:
        assert word in problem["detail"], f"{word!r} is not in {problem['detail']!r}"
    return problem


def pages(client, path, limit):
    """All items of a list of the own API, page by page; also how many pages that were."""
    items, count, cursor = [], 0, None
    while True:
        answer = client.get(f"{path}{'&' if '?' in path else '?'}{query(limit=limit, cursor=cursor)}")
        assert answer.status == 200, str(answer)
        items += answer.json["items"]
        count += 1
        cursor = answer.json.get("nextCursor")
        if cursor is None:
            return items, count
