# SPDX-License-Identifier: Apache-2.0
"""Records that a server sends as they come: server-sent events, or lines of JSON."""
import base64
import json

from client import PATIENCE, Raw, dump

SSE, NDJSON = "text/event-stream", "application/x-ndjson"


class Record:
    def __init__(self, id, event, data):
        self.id, self.event, self.data = id, event, data

    @property
    def bytes(self):
        """Of a piece of output."""
        return self.data["text"].encode() if "text" in self.data else base64.b64decode(self.data["textBase64"], validate=True)

    def __repr__(self):
        return f"{self.event}({self.id}): {self.data}"


class Records:
    """One answer of records; the head is there when this returns."""

    def __init__(self, client, method, path, body=None, accept=SSE, headers=None):
        self.raw = Raw(client.port, client.host, timeout=PATIENCE)
        self.accept, self.seen = accept, []
        lines = {"Host": f"{client.host}:{client.port}", "Authorization": f"Bearer {client.key}", "Accept": accept, **(headers or {})}
        data = b"" if body is None else dump(body)
        if body is not None:
            lines |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.raw.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + data)
        self.response = self.raw.response(method)
        self.status = self.response.status

    def line(self):
        line = self.response.readline().decode()
        return line.removesuffix("\n") if line else None

    def next(self):
        """The next record that is no keep-alive; None at the end."""
        found = self.next_line() if self.accept == NDJSON else self.next_event()
        if found:
            self.seen.append(found)
        return found

    def next_line(self):
        while (line := self.line()) is not None:
            record = json.loads(line)
            if record["event"] != "keepAlive":
                return Record(record.get("id"), record["event"], record["data"])
        return None

    def next_event(self):
        fields = {}
        while (line := self.line()) is not None:
            if not line and fields:
                return Record(fields.get("id"), fields["event"], json.loads(fields["data"]))
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        return None

    def until(self, event, text=b""):
        """The first record of this kind from here on with this in it."""
        while record := self.next():
            if record.event == event and (not text or text in record.bytes):
                return record
        raise AssertionError(f"no {event} with {text!r} came: {self.seen}")

    def rest(self):
        while self.next():
            pass
        return self.seen

    def output(self, event="stdout"):
        """All bytes of one stream that came so far."""
        return b"".join(record.bytes for record in self.seen if record.event == event)

    def close(self):
        self.raw.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
