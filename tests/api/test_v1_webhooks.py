# SPDX-License-Identifier: Apache-2.0
"""Webhooks: made and changed, told of events in order, signed; tried again, over a restart too; and never where they must not lead."""
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import threading

import pytest

import server as servers
from client import Client, check_problem, until

HOOKS = "/api/v1/webhooks"


class Receiver:
    """Somebody's server: keeps what it is told, and answers what it is asked to."""

    def __init__(self, context=None):
        self.told, self.answers, self.more = [], [], {}
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer.lock:
                    outer.told.append((self.path, dict(self.headers), body))
                    status = outer.answers.pop(0) if outer.answers else 200
                self.send_response(status)
                for name, value in outer.more.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, host="127.0.0.1", scheme="http", path="/hook"):
        return f"{scheme}://{host}:{self.port}{path}"

    def events(self):
        with self.lock:
            return [json.loads(body) for _, _, body in self.told]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module")
def hooked(tmp_path_factory):
    """A server whose operator allows receivers on this machine."""
    server = servers.Server(tmp_path_factory.mktemp("hooked") / "data",
                            options=["--runtime", "host:latest", "--webhook-networks", "127.0.0.1/32", "--webhook-http", "yes"])
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture
def hooks(hooked):
    """Makes webhooks that go with the test."""
    made = []

    def create(url, **fields):
        answer = hooked.client.post(HOOKS, {"url": url, **fields})
        assert answer.status == 201, str(answer)
        made.append(answer.json["id"])
        return answer.json
    yield create
    for id in made:
        assert hooked.client.delete(f"{HOOKS}/{id}").status in (204, 404)


def deliveries(client, hook):
    return client.get(f"{HOOKS}/{hook['id']}/deliveries?limit=100").json["items"]


def test_a_receiver_is_told_of_events_in_order_and_can_prove_who_told_it(hooked, hooks, receiver):
    hook = hooks(receiver.url(), name="mine")
    assert hook["enabled"] and hook["secret"].startswith("whsec_") and hook["kinds"] == []
    sandbox = hooked.client.create()
    sandbox.run("true")
    sandbox.delete()
    until(lambda: any(e["kind"] == "sandbox.deleted" for e in receiver.events()), "all to be told")
    told = receiver.events()
    assert told == hooked.client.get(f"/api/v1/events?after={hook['lastEvent']}&limit=100").json["items"][:len(told)]
    path, headers, body = receiver.told[0]
    parts = dict(part.split("=") for part in headers["Burrow-Signature"].split(","))
    wanted = hmac.new(hook["secret"].encode(), parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert parts["v1"] == wanted and path == "/hook"
    assert headers["Content-Type"] == "application/json" and headers["User-Agent"].startswith("burrow/")
    assert headers["Burrow-Event"] == told[0]["kind"]
    until(lambda: len(deliveries(hooked.client, hook)) >= len(told), "deliveries to be recorded")
    listed = deliveries(hooked.client, hook)
    assert listed[-1]["id"] == headers["Burrow-Delivery"] and listed[-1]["eventNumber"] == told[0]["number"]
    assert all(d["state"] == "delivered" and d["status"] == 200 and d["attempts"] == 1 for d in listed)
    shown = hooked.client.get(f"{HOOKS}/{hook['id']}").json
    assert "secret" not in shown and shown["lastEvent"] >= told[-1]["number"] and shown["name"] == "mine"
    assert [h["id"] for h in hooked.client.get(HOOKS).json["items"]] == [hook["id"]]


def test_a_repeated_request_does_not_tell_the_secret_again(api):
    first, again = [api.post(HOOKS, {"url": "https://example.com/"}, headers={"Idempotency-Key": "make-a-webhook"}).json for _ in range(2)]
    assert again == {**first, "secret": "whsec_" + "*" * 52}
    api.delete(f"{HOOKS}/{first['id']}")


def test_one_owner_leaves_room_for_others(api):
    keys = [api.post("/api/v1/keys", {"owner": owner}).json for owner in ("ann", "ben")]
    ann, ben = [Client(api.port, key["key"]) for key in keys]
    made = [ann.post(HOOKS, {"url": "https://example.com/", "enabled": False}) for _ in range(9)]
    assert [answer.status for answer in made[:8]] == [201] * 8
    check_problem(made[8], made[8].status, "limit_reached", "8")
    made.append(ben.post(HOOKS, {"url": "https://example.com/", "enabled": False}))
    assert made[9].status == 201
    # Whoever ends a key that somebody else has got hold of finds what it leaves behind.
    assert [hook["createdBy"] for hook in api.get(f"{HOOKS}?limit=100").json["items"]].count(keys[0]["id"]) == 8
    for answer in made[:8] + made[9:]:
        api.delete(f"{HOOKS}/{answer.json['id']}")
    for key in keys:
        api.delete(f"/api/v1/keys/{key['id']}")


def test_it_is_told_of_what_it_wants_alone(hooked, hooks, receiver):
    first, second = hooked.client.create(), hooked.client.create()
    hooks(receiver.url(), kinds=["execution.*"], sandboxId=first.id)
    for sandbox in (second, first):
        sandbox.run("true")
        sandbox.delete()
    until(lambda: len(receiver.events()) >= 2, "both")
    hooks(receiver.url(), kinds=["snapshot.*"])
    test = hooks(receiver.url(), kinds=["key.*"])
    number = hooked.client.post(f"{HOOKS}/{test['id']}/test", {}).json["eventNumber"]
    until(lambda: len(receiver.events()) >= 3, "the test")  # told whatever it wants, to nobody else
    assert [e["kind"] for e in receiver.events()] == ["execution.started", "execution.ended", "webhook.test"]
    assert receiver.events()[-1]["number"] == number and receiver.events()[-1]["data"]["webhookId"] == test["id"]
    assert {e.get("sandboxId") for e in receiver.events()[:2]} == {first.id}


def test_it_is_told_of_what_its_maker_may_see(hooked, receiver):
    key = hooked.client.post("/api/v1/keys", {"owner": "hook-alice"}).json
    alice = Client(hooked.port, key["key"])
    hook = alice.post(HOOKS, {"url": receiver.url(), "kinds": ["sandbox.*"]}).json
    hooked.client.create().delete()
    own = alice.create()
    own.delete()
    until(lambda: any(e["kind"] == "sandbox.deleted" for e in receiver.events()), "her own")
    assert {e["sandboxId"] for e in receiver.events()} == {own.id}
    other = Client(hooked.port, hooked.client.post("/api/v1/keys", {"owner": "hook-bob"}).json["key"])
    check_problem(other.get(f"{HOOKS}/{hook['id']}"), 404, "not_found")
    check_problem(other.delete(f"{HOOKS}/{hook['id']}"), 404, "not_found")
    assert other.get(HOOKS).json["items"] == []
    reader = Client(hooked.port, hooked.client.post("/api/v1/keys", {"owner": "hook-carol", "scopes": ["read", "run"]}).json["key"])
    check_problem(reader.post(HOOKS, {"url": receiver.url()}), 403, "missing_scope")
    assert hooked.client.delete(f"{HOOKS}/{hook['id']}").status == 204


def test_what_fails_is_tried_again_and_the_order_stays(hooked, hooks, receiver):
    receiver.answers = [500, 302]
    receiver.more = {"Location": receiver.url(path="/elsewhere")}
    hook = hooks(receiver.url(), kinds=["sandbox.*"])
    hooked.client.create().delete()
    until(lambda: len(receiver.events()) >= 5, "all to be told at last")
    kinds = [e["kind"] for e in receiver.events()]
    assert kinds == ["sandbox.created"] * 3 + ["sandbox.started", "sandbox.deleted"]
    assert {path for path, _, _ in receiver.told} == {"/hook"}, "a redirect was followed"
    assert len({headers["Burrow-Delivery"] for _, headers, _ in receiver.told[:3]}) == 1  # to be told apart from the next
    until(lambda: len(deliveries(hooked.client, hook)) == 3, "deliveries to be recorded")
    assert [d["attempts"] for d in deliveries(hooked.client, hook)] == [1, 1, 3]
    shown = hooked.client.get(f"{HOOKS}/{hook['id']}").json
    assert shown["failures"] == 0 and "failingSince" not in shown


def test_a_receiver_that_wants_no_more_is_told_no_more(hooked, hooks, receiver):
    receiver.answers = [410]
    hook = hooks(receiver.url(), kinds=["sandbox.created"])
    hooked.client.create().delete()
    until(lambda: not hooked.client.get(f"{HOOKS}/{hook['id']}").json["enabled"], "it to be turned off")
    shown = hooked.client.get(f"{HOOKS}/{hook['id']}").json
    assert shown["disabledReason"] == "status 410" and deliveries(hooked.client, hook)[0]["state"] == "failed"
    events = hooked.client.get(f"/api/v1/events?kind=webhook.disabled&after={hook['lastEvent']}").json["items"]
    assert [e["data"]["webhookId"] for e in events] == [hook["id"]]
    check_problem(hooked.client.post(f"{HOOKS}/{hook['id']}/test", {}), 409, "conflict")
    hooked.client.create().delete()
    # Enabled again, it goes on where it was.
    assert "disabledReason" not in hooked.client.patch(f"{HOOKS}/{hook['id']}", {"enabled": True}).json
    until(lambda: len(receiver.events()) >= 3, "the one that failed, and the next")
    numbers = [e["number"] for e in receiver.events()]
    assert numbers[0] == numbers[1] < numbers[2]


def test_nothing_is_lost_when_the_server_is_killed(hooked, hooks, receiver):
    """At least once, in order; here some are told twice, and none is missing."""
    hook = hooks(receiver.url(), kinds=["execution.ended"])
    sandbox = hooked.client.create()
    receiver.answers = [503]
    sandbox.run("true")
    until(lambda: receiver.told, "a first attempt")
    hooked.listen = f"127.0.0.1:{hooked.port}"
    hooked.kill()
    hooked.start()
    for _ in range(5):
        sandbox.run("true")
    wanted = [e["number"] for e in
              hooked.client.get(f"/api/v1/events?kind=execution.ended&sandboxId={sandbox.id}&after={hook['lastEvent']}").json["items"]]
    until(lambda: wanted[-1] in [e["number"] for e in receiver.events()], "the last one")
    told = [e["number"] for e in receiver.events()]
    assert sorted(set(told)) == wanted and told == sorted(told)
    sandbox.delete()


def test_what_cannot_be_a_webhook(hooked, hooks, receiver):
    api = hooked.client
    for url in ("ftp://example.com/", "example.com", "https://", "https:///x", "https://:1/", "https://user:pw@example.com/", "https://a b/",
                "https://example.com/#x", "https://exa\\mple/", "file:///etc/passwd", "http", "https://" + "a" * 2048, "https://exämple/"):
        check_problem(api.post(HOOKS, {"url": url}), 400, "invalid_request", field="url")
    check_problem(api.post(HOOKS, {}), 400, "invalid_request", field="url")
    check_problem(api.post(HOOKS, {"url": receiver.url(), "kinds": ["nothing"]}), 400, "invalid_request", field="kinds")
    check_problem(api.post(HOOKS, {"url": receiver.url(), "kinds": ["*"] * 33}), 400, "invalid_request", field="kinds")
    check_problem(api.post(HOOKS, {"url": receiver.url(), "name": "n" * 129}), 400, "invalid_request", field="name")
    check_problem(api.post(HOOKS, {"url": receiver.url(), "sandboxId": "mine"}), 400, "invalid_request", field="sandboxId")
    check_problem(api.post(HOOKS, {"url": receiver.url(), "uri": "x"}), 400, "unknown_field", field="uri")
    for id in ("whk_nobody", "nobody"):
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/test"), ("GET", "/deliveries")):
            more = {"json": {}} if method in ("PATCH", "POST") else {}
            check_problem(api.call(method, f"{HOOKS}/{id}{path}", **more), 404, "not_found")
    made = [hooks(receiver.url()) for _ in range(32)]
    check_problem(api.post(HOOKS, {"url": receiver.url()}), 429, "limit_reached", "32")
    assert len({hook["id"] for hook in made}) == 32


def test_it_can_be_changed(hooked, hooks, receiver):
    other = Receiver()
    hook = hooks(receiver.url(), kinds=["sandbox.created"], enabled=False)
    hooked.client.create().delete()
    changed = hooked.client.patch(f"{HOOKS}/{hook['id']}", {"url": other.url(path="/new"), "name": "n", "kinds": ["sandbox.deleted"],
                                                             "enabled": True, "newSecret": True}).json
    assert changed["kinds"] == ["sandbox.deleted"] and changed["secret"] != hook["secret"] and changed["name"] == "n"
    until(lambda: other.told, "the one from before it was enabled")
    assert other.told[0][0] == "/new" and other.events()[0]["kind"] == "sandbox.deleted" and not receiver.told
    assert hooked.client.delete(f"{HOOKS}/{hook['id']}").status == 204
    check_problem(hooked.client.get(f"{HOOKS}/{hook['id']}"), 404, "not_found")
    other.close()


def couriers(server):
    """Children of the server that make requests."""
    found = []
    for task in pathlib.Path(f"/proc/{server.pid}/task").iterdir():
        for pid in (task / "children").read_text().split():
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "burrow-courier":
                found.append(int(pid))
    return found


def test_what_makes_the_requests_has_no_rights(hooked, hooks, receiver):
    assert not couriers(hooked)  # nobody has a webhook
    hook = hooks(receiver.url(), kinds=["sandbox.created"])
    hooked.client.post(f"{HOOKS}/{hook['id']}/test", {})
    until(lambda: receiver.told, "the test")
    [pid] = couriers(hooked)
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    assert status["Uid"].split() == status["Gid"].split() == ["65534"] * 4 and status["Groups"].strip() == ""
    assert all(int(status[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")) and status["NoNewPrivs"] == "1"
    assert pathlib.Path(f"/proc/{pid}/environ").read_bytes() == b""
    # It ends: what it was doing is tried again, by another one.
    os.kill(pid, signal.SIGKILL)
    hooked.client.create().delete()
    until(lambda: any(e["kind"] == "sandbox.created" for e in receiver.events()), "the next event")
    assert couriers(hooked) != [pid]
    hooked.client.delete(f"{HOOKS}/{hook['id']}")
    until(lambda: not couriers(hooked), "it to end with the last webhook")


def error_of(client, hook):
    until(lambda: deliveries(client, hook), "an attempt")
    return deliveries(client, hook)[0]["error"]


def test_certificates_are_checked(hooked, hooks, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj",
                    "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key", "-out", tmp_path / "certificate"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    receiver = Receiver(context)
    hook = hooks(receiver.url(scheme="https"))
    hooked.client.post(f"{HOOKS}/{hook['id']}/test", {})
    assert "certificate" in error_of(hooked.client, hook)
    assert not receiver.told
    receiver.close()


def test_an_endless_or_silent_answer_takes_nothing(hooked, hooks):
    """A head without end is a failure; a body without end is not waited for."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

    def answer(text, piece):
        connection, _ = listener.accept()
        connection.recv(65536)
        try:
            connection.sendall(text)
            while True:
                connection.sendall(piece)
        except OSError:
            connection.close()
    hook = hooks(url)
    threading.Thread(target=answer, args=(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"a" * 1000 + b"\r\n"), daemon=True).start()
    hooked.client.post(f"{HOOKS}/{hook['id']}/test", {})
    assert error_of(hooked.client, hook)
    threading.Thread(target=answer, args=(b"HTTP/1.1 200 OK\r\n\r\n", b"b" * 65536), daemon=True).start()
    until(lambda: deliveries(hooked.client, hook)[0]["state"] == "delivered", "the second attempt")
    listener.close()


@pytest.mark.parametrize("url", ["https://127.0.0.1:{}/", "https://localhost:{}/", "https://[::1]:{}/", "https://[::ffff:127.0.0.1]:{}/",
                                 "https://0.0.0.0:{}/", "https://127.1:{}/", "https://2130706433:{}/", "https://0x7f.1:{}/",
                                 "https://169.254.169.254/latest/", "https://[fd00:ec2::254]/", "https://10.0.0.1/"])
def test_nothing_inside_is_ever_connected_to(api, url):
    """A server without the setting. A name is looked at by where it leads, so 'localhost' stands for every name that resolves to here."""
    listener = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    listener.settimeout(0)
    made = api.post(HOOKS, {"url": url.format(listener.getsockname()[1])}).json
    api.post(f"{HOOKS}/{made['id']}/test", {})
    assert "not public" in error_of(api, made)
    assert api.delete(f"{HOOKS}/{made['id']}").status == 204
    with pytest.raises(BlockingIOError):
        listener.accept()
    listener.close()


def test_plain_http_is_refused_unless_it_is_allowed(api):
    check_problem(api.post(HOOKS, {"url": "http://example.com/"}), 400, "invalid_request", "https", field="url")


# ---- what its key may see, at the time ----

@pytest.fixture
def keyed(hooked):
    """Makes keys that end with the test: clients, each with its .info."""
    made = []

    def create(**fields):
        answer = hooked.client.post("/api/v1/keys", fields)
        assert answer.status == 201, str(answer)
        client = Client(hooked.client.port, answer.json["key"])
        client.info = answer.json
        made.append(client)
        return client
    yield create
    for client in made:
        hooked.client.delete(f"/api/v1/keys/{client.info['id']}")


def change_something(client, name):
    """An event of the client's owner that says `name`."""
    sandbox = client.create(name=name)
    sandbox.delete()
    return sandbox.id


def told_of(receiver, id):
    return any(id in json.dumps(event) for event in receiver.events())


def test_a_webhook_ends_with_its_key(hooked, keyed, receiver):
    alice = keyed(owner="alice")
    hook = alice.post(HOOKS, {"url": receiver.url(), "kinds": ["sandbox.*"]}).json
    before = change_something(alice, "before")
    until(lambda: told_of(receiver, before), "the event to be told")
    assert hooked.client.delete(f"/api/v1/keys/{alice.info['id']}").status == 204
    other = keyed(owner="alice")
    witness = Receiver()
    try:
        watcher = other.post(HOOKS, {"url": witness.url(), "kinds": ["sandbox.*"]}).json
        after = change_something(other, "after")
        until(lambda: told_of(witness, after), "the event to be told to another")
        until(lambda: not other.get(f"{HOOKS}/{hook['id']}").json["enabled"], "the webhook to be turned off")
        assert not told_of(receiver, after)
        assert "key" in other.get(f"{HOOKS}/{hook['id']}").json["disabledReason"]
        # Whoever turns it on again stands for it.
        assert other.patch(f"{HOOKS}/{hook['id']}", {"enabled": True}).json["enabled"]
        until(lambda: told_of(receiver, after), "it to go on where it was")
        other.delete(f"{HOOKS}/{watcher['id']}")
    finally:
        witness.close()
        hooked.client.delete(f"{HOOKS}/{hook['id']}")


def test_a_webhook_is_told_what_its_key_may_see_now(hooked, keyed, receiver):
    auditor, bob = keyed(owner="carol", scopes=["read", "run", "manage", "organisation"]), keyed(owner="bob")
    hook = auditor.post(HOOKS, {"url": receiver.url(), "kinds": ["sandbox.*"]}).json
    before = change_something(bob, "before")
    until(lambda: told_of(receiver, before), "bob's event to be told")
    assert hooked.client.patch(f"/api/v1/keys/{auditor.info['id']}", {"scopes": ["read", "run"]}).status == 200
    secret = change_something(bob, "secret")
    own = change_something(auditor, "own")
    until(lambda: told_of(receiver, own), "what is its own to be told")
    assert not told_of(receiver, secret)
    assert hooked.client.patch(f"/api/v1/keys/{auditor.info['id']}", {"scopes": ["run"]}).status == 200
    blind = change_something(auditor, "blind")
    until(lambda: not hooked.client.get(f"{HOOKS}/{hook['id']}").json["enabled"], "the webhook to be turned off")
    assert not told_of(receiver, blind)
    hooked.client.delete(f"{HOOKS}/{hook['id']}")
