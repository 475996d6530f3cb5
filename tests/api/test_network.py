# SPDX-License-Identifier: Apache-2.0
"""The network of sandboxes, through the product from end to end, in a world of the test's own (world.py): what is open, what is closed, and who says so."""
import contextlib
import json
import os
import pathlib
import signal

import pytest

import server as servers
from client import check_problem, query, until
from ssh import Ssh
from world import DNS, LAN, MACHINE, METADATA, ONE, TWO, World

V1 = "/api/v1"
FETCH = "curl -sS -m 20 -o /dev/null -w '%{http_code}' "


@pytest.fixture(scope="module")
def world():
    with World() as world:
        yield world


@pytest.fixture(scope="module")
def net(world, tmp_path_factory):
    """A server on the machine of the world."""
    with machine(tmp_path_factory.mktemp("net") / "data") as server:
        yield server


@contextlib.contextmanager
def machine(data, *options, **kwargs):
    server = servers.Server(data, options=["--runtime", "host:latest", "--network-dns", DNS, "--parked-one-shot", "0", "--parked-kept", "0", *options],
                            **kwargs)
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


class Box:
    """A sandbox, by burrow's own API."""

    def __init__(self, server, **fields):
        self.server = server
        answer = server.client.post(f"{V1}/sandboxes", fields)
        assert answer.status == 201, str(answer)
        self.made = answer.json
        self.path = f"{V1}/sandboxes/{self.made['id']}"

    @property
    def api(self):
        return self.server.client

    def sh(self, script):
        answer = self.api.post(f"{V1}/run", {"sandbox": self.made["id"], "script": script, "timeoutMs": "50s"})
        assert answer.status == 200, str(answer)
        return {**answer.json, "stdout": answer.json["stdout"]["text"]}

    def code(self, url, *more):
        """The status of a GET from inside; None where there was no answer at all."""
        ran = self.sh(FETCH + " ".join(more) + f" '{url}'")
        return int(ran["stdout"]) if ran["exitCode"] == 0 else None

    def connects(self, host, port):
        return self.sh(f"timeout 20 bash -c 'exec 3<>/dev/tcp/{host}/{port} && head -1 <&3'")["stdout"] == "hello\n"

    def network(self):
        return self.api.get(f"{self.path}/network").json

    def put(self, **fields):
        return self.api.call("PUT", f"{self.path}/network", json=fields)

    def patch(self, **fields):
        return self.api.patch(f"{self.path}/network", fields)

    def why(self, host, port=None, **more):
        fields = {"host": host, **({} if port is None else {"port": port}), **more}
        answer = self.api.get(f"{self.path}/network/why?{query(**fields)}")
        assert answer.status == 200, str(answer)
        return answer.json

    def events(self, kind):
        found = self.api.get(f"{V1}/events?{query(kind=kind, limit=100)}").json["items"]
        return [one for one in found if one.get("sandboxId") == self.made["id"]]

    def delete(self):
        self.api.delete(self.path)


@pytest.fixture
def new(net):
    made = []

    def make(**network):
        made.append(Box(net, **({"network": network} if network else {})))
        return made[-1]
    yield make
    for box in made:
        box.delete()


# ---- off, on ----

def test_off_stays_off(new, world):
    box = new()
    assert box.made["network"] == {"enabled": False}
    before = len(world.seen())
    assert box.sh("ls /sys/class/net; cat /proc/net/dev | grep -c :")["stdout"].split()[-1] == "1"
    assert box.code("http://good.test/") is None and box.code(f"http://{ONE}/") is None and box.code(f"http://{MACHINE}:{box.server.port}/health") is None
    assert box.sh("getent hosts good.test")["exitCode"] != 0
    assert world.seen()[before:] == []
    assert box.why("good.test", 443)["allowed"] is False and box.network()["active"] is False


def test_on_is_the_way_out_and_closed_is_closed(new, net):
    box, neighbour = new(enabled=True), new(enabled=True)
    assert box.made["network"]["enabled"] is True
    assert box.code("http://good.test/") == 200 and box.code("https://other.test/", "-k") == 200
    assert box.connects("good.test", 2222) and box.connects(TWO, 2222)
    address = neighbour.sh("hostname -I || ip -4 -o addr")["stdout"].split()[0]
    job = neighbour.api.post(f"{neighbour.path}/executions", {"command": ["python3", "-m", "http.server", "8000"]}).json
    until(lambda: neighbour.code("http://127.0.0.1:8000/") == 200, "a server in the neighbour")
    for host, port in ((LAN, 80), (METADATA, 80), (MACHINE, net.port), ("192.168.77.1", net.port), (address, 8000), ("inside.test", 80)):
        assert box.code(f"http://{host}:{port}/") is None, f"{host} is open"
    for host, port in ((LAN, 80), (METADATA, 80)):
        assert box.why(host, port)["allowed"] is False and box.why(host, port)["remedy"]
    box.api.delete(f"{V1}/executions/{job['id']}")


def test_what_leaves_is_counted(new):
    box = new(enabled=True)
    assert box.sh("head -c 300000 /dev/zero | curl -sS -m 30 --data-binary @- http://good.test/")["exitCode"] == 0
    until(lambda: box.api.get(box.path).json["usage"]["egressBytes"] >= 300000, "its bytes to be counted")
    assert box.network()["egressBytes"] >= 300000


# ---- by name ----

def test_a_name_opens_itself_alone(new, world):
    box = new(allow=["good.test", "*.wild.test:80"])
    assert (box.network()["default"], box.network()["enabled"]) == ("deny", True)
    before = len(world.seen())
    assert box.code("http://good.test/") == 200 and box.code("https://good.test/", "-k") == 200
    assert box.code("http://api.wild.test/") == 200
    assert box.code("http://evil.test/") is None and box.code("http://wild.test/") is None
    # The same address under another name, no name, another port, another resolver.
    assert box.code(f"http://{ONE}/", "-H 'Host: evil.test'") in (None, 403)
    assert box.code("https://evil.test/", "-k", f"--resolve evil.test:443:{ONE}") is None
    assert box.code(f"http://{TWO}/") in (None, 403) and not box.connects(TWO, 2222)
    assert box.sh(f"getent hosts other.test; python3 - <<'X'\nimport socket\ns=socket.socket(2,2);s.settimeout(3)\n"
                  f"s.sendto(bytes.fromhex('00010100000100000000000004')+b'evil'+b'\\x04test\\0\\0\\1\\0\\1',('{TWO}',53))\n"
                  "print(s.recv(500)[3]&15)\nX")["stdout"].strip() in ("", "5")
    asked = world.seen()[before:]
    assert {line[1] for line in asked if line[0] == "dns"} <= {"good.test", "api.wild.test"}
    assert {line[2] for line in asked if line[0] in ("http", "https")} == {"good.test", "api.wild.test"}


@pytest.mark.parametrize("rules", [{"allow": ["good.test:80", "other.test"], "deny": ["evil.test"]}, {"deny": [f"{TWO}/32", "evil.test"]},
                                   {"allow": [f"{ONE}:80/tcp"]}, {"default": "deny"}])
def test_why_is_what_happens(new, rules):
    box = new(enabled=True, **rules)
    for host, port in (("good.test", 80), ("evil.test", 80), ("other.test", 80), (ONE, 80), (TWO, 80), (LAN, 80)):
        happens = box.code(f"http://{host}:{port}/") == 200
        told = box.why(host, port)
        if host in ("good.test", "other.test") and rules.get("allow") == [f"{ONE}:80/tcp"]:
            continue  # by an address alone no name is resolved; the address it would have is not known here
        if host == "other.test" and "deny" in rules and rules["deny"][0].startswith(TWO):
            continue  # likewise
        assert told["allowed"] is happens, f"{host}:{port}: {told}"
        assert told["allowed"] or told["remedy"], told


# ---- changes ----

def test_a_change_in_the_middle_of_a_download_cuts_it(new):
    box = new(allow=["good.test", "other.test"])
    jobs = [box.api.post(f"{box.path}/executions", {"command": ["curl", "-sS", "-m", "300", url, "-o", f"/tmp/{name}"]}).json
            for name, url in (("kept", "http://good.test/endless"), ("cut", "http://other.test/endless"))]
    for name in ("kept", "cut"):
        until(lambda: int(box.sh(f"stat -c %s /tmp/{name} || echo 0")["stdout"]) > 4096, f"the download {name}")
    answer = box.put(allow=["good.test"])
    assert answer.status == 200 and answer.json["generation"] == 1 and answer.json["active"] is True, str(answer)
    ended = until(lambda: (found := box.api.get(f"{V1}/executions/{jobs[1]['id']}").json)["state"] not in ("running", "queued") and found, "the cut one to end")
    assert ended["exitCode"] != 0
    assert box.code("http://other.test/") is None and box.code("http://good.test/") == 200
    assert box.events("network.changed")
    box.api.delete(f"{V1}/executions/{jobs[0]['id']}")


def test_a_download_goes_on_when_its_address_is_no_longer_known(new, world):
    """An answer is good for a second here (world_services.py); flows that began with it end when they want to."""
    box = new(allow=["brief.test"])
    job = box.api.post(f"{box.path}/executions", {"command": ["curl", "-sS", "-m", "300", "http://brief.test/endless", "-o", "/tmp/brief"]}).json

    def size():
        return int(box.sh("stat -c %s /tmp/brief || echo 0")["stdout"])
    until(lambda: size() > 4096, "the download")
    asked = world.seen().count(["dns", "brief.test"])
    until(lambda: box.code("http://brief.test/") == 200 and world.seen().count(["dns", "brief.test"]) > asked, "the name to be asked for anew")
    before = size()
    until(lambda: size() > before + 4096, "the download to go on")
    assert box.api.get(f"{V1}/executions/{job['id']}").json["state"] == "running"
    box.api.delete(f"{V1}/executions/{job['id']}")


def test_a_rate_holds_what_leaves(new):
    """A bound from one side alone is safe on a busy machine: so many bytes cannot have left in so short a time."""
    send = "head -c 3000000 /dev/zero | curl -sS -m 100 -o /dev/null -w '%{time_total}' --data-binary @- http://good.test/"
    box = new(allow=["good.test"], rateBytes="1Mi")
    held = float(box.sh(send)["stdout"])
    assert held > 1.5, "3 MB left in less than they may at 1 MiB a second, with a second's worth at once"


def test_a_refused_change_leaves_what_was(new):
    box = new(allow=["good.test"])
    for fields, field in (({"allow": ["not a name"]}, "allow"), ({"deny": ["x.test:99999"]}, "deny"), ({"default": "maybe"}, "default"),
                          ({"secrets": [{"host": "*.x", "header": "A", "value": "b"}]}, "secrets"),
                          ({"secrets": [{"host": "x.test", "header": "Host", "value": "b"}]}, "secrets"),
                          ({"secrets": [{"host": "x.test", "header": "A", "value": "env:HOME"}]}, "secrets")):
        check_problem(box.put(**fields), 400, "invalid_request", field=servers_field(field, box.put(**fields)))
    assert box.network()["allow"] == ["good.test"] and box.network()["generation"] == 0
    assert box.code("http://good.test/") == 200 and box.code("http://other.test/") is None


def servers_field(field, answer):
    """The field of the problem, which begins with the one that is meant: allow[0] of allow."""
    assert answer.json.get("field", "").split("[")[0].split(".")[0] == field, str(answer)
    return answer.json["field"]


def test_it_can_be_closed_and_opened_again(new):
    box = new(allow=["good.test"])
    assert box.patch(enabled=False).json["enabled"] is False and box.code("http://good.test/") is None
    assert box.patch(enabled=True).json["allow"] == ["good.test"] and box.code("http://good.test/") == 200


def test_one_made_without_gets_a_network_while_it_lives(world, tmp_path):
    with machine(tmp_path / "data") as server:
        box = Box(server)
        box.sh("echo kept > /tmp/kept; sleep 1000 >/dev/null 2>&1 &")
        assert box.patch(enabled=False).json["enabled"] is False and box.code(f"http://{ONE}/") is None
        answer = box.patch(enabled=True, allow=["good.test"], rateBytes="8Mi")
        assert answer.status == 200 and answer.json["enabled"] is True and answer.json["active"] is True, str(answer)
        assert box.code("http://good.test/") == 200 and box.code("http://evil.test/") is None and box.code(f"http://{LAN}/") != 200
        assert box.sh("cat /tmp/kept; cat /proc/sys/net/ipv6/conf/eth0/disable_ipv6 || echo 1")["stdout"] == "kept\n1\n"
        server.kill()
        server.start()
        assert box.code("http://good.test/") == 200 and box.code("http://evil.test/") is None
        # Closed, and the server that knew of its interface is gone: it gets another.
        assert box.patch(enabled=False).json["enabled"] is False
        server.kill()
        server.start()
        assert box.code("http://good.test/") is None
        assert box.patch(enabled=True).status == 200 and box.code("http://good.test/") == 200
        box.delete()


def test_a_fork_has_the_policy_and_no_secrets(new, net):
    box = new(allow=["good.test"], secrets=[{"host": "good.test", "header": "Authorization", "value": "Bearer of-the-first"}])
    forked = net.client.post(f"{box.path}/fork", {})
    assert forked.status == 201, str(forked)
    network = net.client.get(f"{V1}/sandboxes/{forked.json['id']}/network").json
    assert network["allow"] == ["good.test"] and network["secrets"] == []
    net.client.delete(f"{V1}/sandboxes/{forked.json['id']}")


# ---- what is told ----

def test_a_refusal_is_an_event_with_its_remedy(new):
    box = new(allow=["good.test"])
    for _ in range(3):
        assert box.code("http://evil.test/") is None
    told = until(lambda: [one for one in box.events("network.refused") if one["data"].get("host") == "evil.test"], "the event")
    assert len(told) == 1 and told[0]["data"]["remedy"] and told[0]["data"]["protocol"], told
    until(lambda: box.network()["refused"] > 0, "it to be counted")
    refused = box.api.get(f"{box.path}/network/observed").json["refused"]
    assert "evil.test" in [one["host"] for one in refused]


def test_what_was_observed_becomes_a_policy(new):
    box = new(observe=True)
    assert box.network()["observe"] is True and box.network()["default"] == "deny"
    assert box.code("http://good.test/") == 200 and box.connects("other.test", 2222)
    assert box.why("good.test", 80) | {"allowed": True, "wouldDeny": True} == box.why("good.test", 80)

    def seen():
        found = box.api.get(f"{box.path}/network/observed").json
        hosts = {one["host"] for one in found["items"]}
        return {"good.test", "other.test"} <= hosts and found
    ready = until(seen, "both to be noted")
    answer = box.put(**ready["policy"])
    assert answer.status == 200 and answer.json["observe"] is False, str(answer)
    assert box.code("http://good.test/") == 200 and box.connects("other.test", 2222)
    assert box.code("http://evil.test/") is None


# ---- secrets ----

def test_a_secret_is_never_told(new, net):
    value = "Bearer never-to-be-seen-by-anybody"
    box = new(allow=["good.test"], secrets=[{"host": "good.test", "header": "Authorization", "value": value}])
    told = box.network()
    assert told["secrets"] == [{"host": "good.test", "header": "Authorization"}]
    assert "never-to-be-seen" not in str(told) + str(box.api.get(box.path).json)
    looked = "{ env; cat /proc/*/environ /proc/*/cmdline /etc/* /etc/burrow/* 2>/dev/null; } | grep -a 'never-t[o]-be-seen'"
    assert box.sh(looked)["exitCode"] == 1
    for place, _, names in os.walk(net.data):
        if "/runtimes" in place or "/volume" in place:
            continue
        for name in names:
            file = pathlib.Path(place, name)
            if file.is_file() and not file.is_symlink() and file.stat().st_size < 1 << 26:
                assert b"never-to-be-seen" not in file.read_bytes(), file
    assert "never-to-be-seen" not in net.log
    assert (net.data / "network.key").stat().st_mode & 0o777 == 0o600


def test_a_secret_goes_to_its_host_and_nowhere_else(world, tmp_path):
    value = "Bearer on-the-way-alone"
    with machine(tmp_path / "data", environment={"SSL_CERT_FILE": str(world.certificate)}) as server:
        box = Box(server, network={"allow": ["good.test", "other.test"], "secrets": [{"host": "good.test", "header": "Authorization", "value": value}]})

        def told(url, *more):
            ran = box.sh(" ".join(["curl -sS -m 30", *more, url]))
            assert ran["exitCode"] == 0, ran
            return json.loads(ran["stdout"])
        assert told("https://good.test/x") == {"host": "good.test", "path": "/x", "got": 0, "authorization": value}
        assert told("https://good.test/up", "-H 'Authorization: mine'", "--data-binary abc") == {"host": "good.test", "path": "/up", "got": 3, "authorization": value}
        assert told("http://good.test/")["authorization"] is None  # not over plain HTTP
        assert told("https://other.test/", "-k")["authorization"] is None  # TLS is not opened: its own certificate, which nobody here trusts
        assert box.sh("curl -sS -m 30 https://other.test/")["exitCode"] == 60
        answer = box.put(allow=["good.test"], secrets=[])
        assert answer.status == 200 and told("https://good.test/", "-k")["authorization"] is None
        box.delete()


# ---- restarts ----

def egress_of(server):
    """The processes of burrow-egress for this data directory."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"burrow-egress") and any(str(server.data).encode() in word for word in words):
                found.append(int(place.name))
    return found


def test_kills_of_every_part_open_nothing_and_lose_nothing(world, tmp_path):
    with machine(tmp_path / "data") as server:
        box = Box(server, network={"allow": ["good.test"]})
        assert box.code("http://good.test/") == 200
        killed = egress_of(server)
        assert killed
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        assert box.code("http://evil.test/") is None
        until(lambda: box.code("http://good.test/") == 200, "burrow-egress to be there again")
        assert box.code("http://evil.test/") is None and set(egress_of(server)).isdisjoint(killed)
        # A guest's loop goes on while the server is dead, under the same policy.
        box.api.post(f"{box.path}/executions", {"script": "while sleep 0.2; do for n in good evil; do "
                                                f"{FETCH} http://$n.test/ >> /tmp/$n 2>/dev/null; done; done"})
        assert box.put(allow=["good.test", "other.test"]).status == 200
        server.kill()
        for pid in egress_of(server):
            os.kill(pid, signal.SIGKILL)
        server.start()
        assert box.network()["generation"] == 1 and box.network()["active"] is True
        until(lambda: box.code("http://other.test/") == 200, "its network after the restart")
        assert box.code("http://evil.test/") is None
        until(lambda: "200" in box.sh("cat /tmp/good")["stdout"], "the guest's own loop to get through")
        assert "200" not in box.sh("cat /tmp/evil || true")["stdout"]
        assert box.patch(rateBytes="1Mi").json["rateBytes"] == 1 << 20 and box.code("http://good.test/") == 200
        assert box.put(default="deny").status == 200 and box.code("http://good.test/") is None
        box.delete()


# ---- operators ----

def test_the_operators_rules_are_around_the_owners(world, tmp_path):
    with machine(tmp_path / "data", "--network-allow-always", f"{LAN}:80", "--network-deny-always", "other.test, 93.184.216.35",
                 "--network-baseline", "deny evil.test") as server:
        box = Box(server, network={"allow": ["good.test", "other.test"]})
        assert box.code(f"http://{LAN}/") == 200 and box.code("http://good.test/") == 200
        assert box.code("http://other.test/") is None and box.code("http://evil.test/") is None
        assert box.network()["operator"]["allowAlways"] == f"{LAN}:80"
        assert box.why("other.test", 80)["tier"] != box.why("good.test", 80)["tier"]
        box.delete()


def test_an_operator_may_give_none(net, own_server):
    server = own_server(options=["--network", "no"])
    check_problem(server.client.post(f"{V1}/sandboxes", {"network": {"enabled": True}}), 403, "forbidden", "operator", field="network.enabled")
    key = server.client.post(f"{V1}/keys", {"owner": "x", "scopes": ["read", "run"], "network": False}).json
    check_problem(net.client.post(f"{V1}/sandboxes", {"network": {"allow": [""]}}), 400, "invalid_request", field="network.allow[0]")
    assert key["network"] is False


def test_sandboxes_made_ahead_get_their_own_policy(world, tmp_path):
    """From the second on they wait with an interface, and nothing goes through it until they are admitted."""
    server = servers.Server(tmp_path / "data", options=["--runtime", "host:latest", "--network-dns", DNS, "--parked-one-shot", "0", "--parked-kept", "2"])
    try:
        server.start()
        parked = 2
        for name, other in (("good", "other"), ("other", "good"), ("good", "other")):
            until(lambda: server.client.get("/health").json["parked"] >= parked, "sandboxes to be made ahead")
            parked = 4  # two of each kind, once somebody has asked for a network
            box = Box(server, network={"allow": [f"{name}.test"]})
            assert box.code(f"http://{name}.test/") == 200 and box.code(f"http://{other}.test/") is None
            off = Box(server)
            assert off.code(f"http://{ONE}/") is None and off.sh("grep -c : /proc/net/dev")["stdout"].strip() == "1"
            box.delete()
            off.delete()
        server.end()
    finally:
        server.abandon()


def test_agentuitys_wire_has_the_word_for_it(net):
    made = net.client.create(network={"enabled": True})
    assert made.get()["networkEnabled"] is True
    assert made.output("curl -sS -m 20 -o /dev/null -w '%{http_code}' http://good.test/") == "200"
    listed = [one for one in net.client.get("/sandbox").data["sandboxes"] if one["sandboxId"] == made.id]
    assert listed[0]["networkEnabled"] is True
    until(lambda: made.get().get("networkEgressBytes", 0) > 0, "its bytes to be counted")
    made.delete()


def test_a_run_of_its_own_has_its_own_network(net):
    ran = net.client.post(f"{V1}/run", {"script": FETCH + "http://good.test/; " + FETCH + "http://evil.test/", "network": {"allow": ["good.test"]}}).json
    assert ran["stdout"]["text"].startswith("200") and ran["exitCode"] != 0


# ---- by SSH ----

def test_forwards_of_ssh_go_where_the_sandbox_may(world, tmp_path):
    """Out of the sandbox by its own network, and nowhere that it could not go itself."""
    with machine(tmp_path / "data", environment={"BURROW_SSH_LISTEN": "127.0.0.1:0"}) as server:
        ssh = Ssh(server, tmp_path)
        assert server.client.post(f"{V1}/ssh-keys", {"publicKey": ssh.public}).status == 201
        boxes = [Box(server, network={"enabled": True, "allow": [f"{ONE}:80"], "default": "deny"}), Box(server)]

        def fetched(box, address):
            done = ssh.run(box.made["id"], options=("-W", f"{address}:80"), input=b"GET / HTTP/1.0\r\n\r\n")
            return done.stdout[:5]
        assert fetched(boxes[0], ONE) == b"HTTP/"
        for box, address in ((boxes[0], TWO), (boxes[0], METADATA), (boxes[0], "www.example.com"), (boxes[1], ONE)):
            assert fetched(box, address) == b""
        for box in boxes:
            box.delete()
