# SPDX-License-Identifier: Apache-2.0
"""Attaching to executions: input, output and orders over one WebSocket, and pages that must not."""
import base64
import json

import pytest
import websocket  # somebody else's client

import server as servers
from client import PATIENCE, check_problem, until, waiting_for
from socket_client import BINARY, TEXT, Refused, WebSocket

TOP = "/api/v1"
MISSING = "exe_" + "0" * 26


def start(api, sandbox, *argv, **fields):
    if argv:
        fields["command"] = list(argv)
    answer = api.post(f"{TOP}/sandboxes/{sandbox.id}/executions", fields)
    assert answer.status == 201, str(answer)
    return answer.json


class Attached(WebSocket):
    """Keeps what came: output by channel, texts as objects."""

    def __init__(self, api, execution, query="", key=True, **kwargs):
        super().__init__(api.port, f"{TOP}/executions/{execution['id']}/attach{query}", key=api.key if key else None, **kwargs)
        self.output = {1: b"", 2: b""}
        self.texts = []
        self.code = None

    def step(self):
        got = self.message()
        if isinstance(got, str):
            self.texts.append(json.loads(got))
        elif isinstance(got, bytes):
            assert len(got) > 1, got
            self.output[got[0]] += got[1:]
        else:
            assert self.code is None, "it goes on behind its end"
            self.code = got
        return got

    def read_until(self, text, channel=1):
        while text not in self.output[channel]:
            assert self.step() is not None and self.code is None, (self.output, self.texts, self.code)
        return self

    def read_text(self, kind):
        while not (found := [text for text in self.texts if text["type"] == kind]):
            assert self.step() is not None and self.code is None, (self.output, self.texts, self.code)
        return found[-1]

    def read_all(self):
        while self.code is None and self.step() is not None:
            pass
        return self

    def type(self, data):
        self.send(b"\0" + data)
        return self


def test_both_directions_of_a_command(api, sandbox):
    made = start(api, sandbox, "sh", "-c", "cat; echo end >&2; exit 3", keepStdinOpen=True)
    with Attached(api, made) as cat:
        started = cat.read_text("started")
        assert (started["id"], started["state"], started["offsets"], started["sizes"]) == (made["id"], "running", {"stdout": 0, "stderr": 0}, {"stdout": 0, "stderr": 0})
        cat.type(b"hello\n").read_until(b"hello\n")
        cat.type(b"\xff\0raw").read_until(b"\xff\0raw")
        cat.send_json(type="close_stdin")
        cat.read_all()
        end = cat.texts[-1]
        assert (end["type"], end["exitCode"], end["cause"], cat.output[2]) == ("exit", 3, "exited", b"end\n")
        assert end["offsets"] == {"stdout": 11, "stderr": 4} and cat.code == 1000
    with Attached(api, made) as again:
        started = again.read_text("started")
        assert (started["offsets"], started["sizes"]) == ({"stdout": 0, "stderr": 0}, {"stdout": 11, "stderr": 4})
    assert api.get(f"{TOP}/executions/{made['id']}/output").body == b"hello\n\xff\0raw"


def test_a_terminal_with_two_clients_each_from_where_it_likes(api, sandbox):
    made = start(api, sandbox, "sh", terminal={"rows": 30, "cols": 100})
    with Attached(api, made) as one:
        one.type(b"echo fir''st\n").read_until(b"first")
        with Attached(api, made) as two, Attached(api, made, "?from=now") as three:
            two.read_until(b"first")
            one.type(b"echo sec''ond\n")
            for client in (one, two, three):
                client.read_until(b"second")
            assert b"first" not in three.output[1]
            three.send_json(type="resize", rows=11, cols=22)
            three.type(b"stty size\n")
            two.read_until(b"11 22")
            seen = len(two.output[1])
        with Attached(api, made, f"?from={seen}") as later:  # goes on where the second left off
            later.type(b"echo thi''rd\n").read_until(b"third")
            assert b"second" not in later.output[1]
        assert sandbox.status()["status"] == "idle"
        one.type(b"exit 5\n").read_all()
        assert one.texts[-1]["exitCode"] == 5 and one.code == 1000
        assert one.output[2] == b"" and later.output[1] in one.output[1]


def test_signals_and_what_is_no_order(api, sandbox):
    made = start(api, sandbox, script="trap 'echo caught; exit 9' INT; echo on; while :; do sleep 0.05; done")
    with Attached(api, made) as client:
        client.read_until(b"on\n")
        for text, code in (("{", "invalid_request"), ("[]", "invalid_request"), ('{"type":"dance"}', "invalid_request"),
                           ('{"type":"signal","signal":"NONE"}', "invalid_request"), ('{"type":"resize","rows":0,"cols":1}', "invalid_request"),
                           ('{"type":"signal","signal":"INT","colour":1}', "unknown_field"),
                           ('{"type":"resize","rows":10,"cols":10}', "conflict")):
            client.texts.clear()
            client.send(text)
            assert client.read_text("error")["code"] == code, text
        client.texts.clear()
        client.type(b"nobody reads this")  # it was started without an input
        assert client.read_text("error")["code"] == "complete"
        client.send_json(type="signal", signal="SIGINT")
        client.read_all()
        assert client.output[1] == b"on\ncaught\n" and client.texts[-1]["exitCode"] == 9


def test_one_that_has_ended_is_told_from_its_start(api, sandbox):
    made = start(api, sandbox, "sh", "-c", "echo out; echo err >&2")
    until(lambda: "endedAt" in api.get(f"{TOP}/executions/{made['id']}?waitMs=60s").json, "it to end")
    with Attached(api, made) as client:
        client.read_all()
        assert client.output == {1: b"out\n", 2: b"err\n"} and client.texts[-1]["type"] == "exit"
    with Attached(api, made, "?from=2.1") as client:
        client.read_all()
        assert client.output == {1: b"t\n", 2: b"rr\n"} and client.code == 1000


def test_much_output_and_a_client_that_is_behind(api, sandbox):
    made = start(api, sandbox, script="head -c 30000000 /dev/zero | tr '\\0' x; echo; echo end")
    with Attached(api, made) as slow, Attached(api, made) as fast:
        fast.read_all()
        assert len(fast.output[1]) == 30000005
        slow.read_all()
        assert slow.output[1] == fast.output[1] and slow.code == 1000


def test_input_that_nobody_takes_is_not_read_and_none_of_it_is_lost(api, sandbox):
    size = 64 << 20  # far more than the kernel keeps for both ends
    made = start(api, sandbox, script=f"cd /workspace; {waiting_for('go')}; wc -c", keepStdinOpen=True)
    with Attached(api, made) as client:
        client.read_text("started")
        client.raw.socket.settimeout(0.5)
        piece, sent = b"\0" + b"y" * 65535, 0
        with pytest.raises(TimeoutError):  # stops long before all of it: what is on its way is bounded
            while sent < size:
                client.send(piece)
                sent += 65535
        assert sent < size
    # The message that was cut with the connection is of no use; the rest was taken as far as it was read.
    with Attached(api, made, "?from=now") as client:
        sandbox.write_all({"/workspace/go": b""})
        client.send_json(type="close_stdin")
        client.read_all()
        assert 0 < int(client.output[1]) <= sent and client.texts[-1]["exitCode"] == 0


def test_a_page_says_its_key_as_a_subprotocol(api, server, sandbox):
    made = start(api, sandbox, "echo", "hi")
    key = base64.urlsafe_b64encode(api.key.encode()).decode().rstrip("=")
    with Attached(api, made, key=False, protocols=["burrow.v1", f"burrow.key.{key}"], origin=f"http://127.0.0.1:{api.port}") as client:
        assert client.headers["sec-websocket-protocol"] == "burrow.v1"
        assert client.read_all().output[1] == b"hi\n"
    wrong = base64.urlsafe_b64encode(b"brw_" + b"x" * 52).decode().rstrip("=")
    for protocols in (["burrow.v1"], ["burrow.v1", f"burrow.key.{wrong}"], ["burrow.v1", "burrow.key.!"]):
        with pytest.raises(Refused) as refused:
            Attached(api, made, key=False, protocols=protocols)
        assert refused.value.status == 401
    with pytest.raises(Refused) as refused:  # never in the URL
        Attached(api, made, f"?key={api.key}", key=False)
    assert refused.value.status == 401
    assert key not in server.log_path.read_text() and api.key not in server.log_path.read_text()


def test_a_page_of_another_origin_is_refused(api):
    """Whatever key a page has got hold of, and whether there is such an execution or not."""
    for origin in ("https://evil.example", "http://127.0.0.1", "http://127.0.0.1.evil.example", "null", "file://"):
        with pytest.raises(Refused) as refused:
            Attached(api, {"id": MISSING}, origin=origin)
        assert refused.value.status == 403 and refused.value.json["code"] == "origin_not_allowed", origin


def test_pages_that_the_operator_names_may(tmp_path):
    server = servers.Server(tmp_path / "data", options=("--api-origins", "https://good.example"))
    try:
        api = server.start().client
        with pytest.raises(Refused) as refused:
            Attached(api, {"id": MISSING}, origin="https://evil.example")
        assert refused.value.status == 403
        with pytest.raises(Refused) as refused:
            Attached(api, {"id": MISSING}, origin="https://good.example")
        assert refused.value.status == 404
        sandbox = api.create()
        made = start(api, sandbox, "sh", terminal={})
        with Attached(api, made) as client:
            client.type(b"echo o''n\n").read_until(b"on")
            server.stop()  # a client learns that it may come back
            client.read_all()
            assert client.code == 1001
        api = server.start().client
        with Attached(api, made) as client:  # and it is all there
            client.read_until(b"on")
            client.type(b"echo aga''in\n").read_until(b"again")
        server.end()
    finally:
        server.abandon()


def test_what_is_no_websocket_is_refused(api, shared):
    made = start(api, shared, "true")
    answer = api.get(f"{TOP}/executions/{made['id']}/attach")
    check_problem(answer, 426, "upgrade_required")
    assert answer.headers["upgrade"] == "websocket"
    with pytest.raises(Refused) as refused:
        Attached(api, made, headers={"Sec-WebSocket-Version": "8"})
    assert refused.value.status == 426 and refused.value.headers["sec-websocket-version"] == "13"
    for query, status in (("?from=never", 400), ("?from=1.2.3", 400), ("?from=99999", 400), ("?since=1", 400)):
        with pytest.raises(Refused) as refused:
            Attached(api, made, query)
        assert refused.value.status == status, query
    for id in (MISSING, "exe_x", "nonsense"):
        with pytest.raises(Refused) as refused:
            Attached(api, {"id": id})
        assert refused.value.status == 404


def test_a_key_that_is_revoked_takes_its_sockets_along(api, sandbox):
    made = start(api, sandbox, "cat", keepStdinOpen=True)
    other = api.post(f"{TOP}/keys", {"name": "short", "scopes": ["run", "organisation"]}).json
    reader = api.post(f"{TOP}/keys", {"name": "reader", "scopes": ["read", "organisation"]}).json
    with Attached(api, made, key=False, headers={"Authorization": f"Bearer {other['key']}"}) as theirs, Attached(api, made) as ours:
        theirs.type(b"in\n").read_until(b"in\n")
        assert api.delete(f"{TOP}/keys/{other['id']}").status == 204
        theirs.read_all()
        ours.type(b"still\n").read_until(b"still\n")
        assert b"still" not in theirs.output[1]
    with pytest.raises(Refused) as refused:  # who may only look cannot type
        Attached(api, made, key=False, headers={"Authorization": f"Bearer {reader['key']}"})
    assert refused.value.status == 403 and refused.value.json["code"] == "missing_scope"
    assert api.delete(f"{TOP}/keys/{reader['id']}").status == 204


def test_somebody_elses_client_is_at_home(api, sandbox):
    made = start(api, sandbox, "sh", "-c", "head -c 300000 /dev/zero; cat", keepStdinOpen=True)
    key = base64.urlsafe_b64encode(api.key.encode()).decode().rstrip("=")
    client = websocket.create_connection(f"ws://127.0.0.1:{api.port}{TOP}/executions/{made['id']}/attach", timeout=PATIENCE,
                                         subprotocols=["burrow.v1", f"burrow.key.{key}"], origin=f"http://127.0.0.1:{api.port}")
    assert client.getsubprotocol() == "burrow.v1" and json.loads(client.recv())["type"] == "started"
    client.ping("are you there")
    seen = b""
    while len(seen) < 300000:
        seen += client.recv()[1:]
    for text in ("h\u00e9llo", "x" * 70000):  # lengths of one, two and eight bytes
        client.send_binary(b"\0" + text.encode())
        back = b""
        while len(back) < len(text.encode()):
            back += client.recv()[1:]
        assert back == text.encode()
    client.send(json.dumps({"type": "close_stdin"}))
    assert json.loads(client.recv())["exitCode"] == 0
    assert client.recv_data() == (websocket.ABNF.OPCODE_CLOSE, b"\x03\xe8it has ended")
    client.close()
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        websocket.create_connection(f"ws://127.0.0.1:{api.port}{TOP}/executions/{made['id']}/attach", origin="https://evil.example")
    assert refused.value.status_code in (401, 403)


def test_rude_clients_are_closed_with_a_code(api, sandbox):
    made = start(api, sandbox, "cat", keepStdinOpen=True)

    def rude(*args, **kwargs):
        with Attached(api, made, "?from=now") as client:
            client.send_frame(*args, **kwargs)
            return client.read_all().code
    assert rude(TEXT, b"{}", is_masked=False) == 1002
    assert rude(TEXT, b"\xc3\x28") == 1007
    assert rude(BINARY, b"\1no channel of a client") == 1008
    assert rude(BINARY, b"") == 1008
    assert rude(TEXT, b" " * 5000) == 1009
    assert rude(BINARY, b"x", bits=0x40) == 1002
    assert rude(3, b"x") == 1002
    with Attached(api, made, "?from=now") as client:  # and the others are left alone
        client.type(b"fine\n").read_until(b"fine\n")
        client.close()
        assert client.read_all().code == 1000
    assert api.delete(f"{TOP}/executions/{made['id']}").status == 200
