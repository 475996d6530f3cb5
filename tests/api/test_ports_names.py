# SPDX-License-Identifier: Apache-2.0
"""Exposed ports by name: PORT-ID.DOMAIN and PORT-TOKEN.DOMAIN, told apart by Host on the server's own address."""
import e2b as protocol
import pytest
import server as servers
from client import Raw, check_problem, until
from ports import PORT, WebSocket, own_range, serve

TOP = "/api/v1"
DOMAIN = "preview.example.test"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = servers.Server(tmp_path_factory.mktemp("names") / "data",
                            options=["--preview-domain", DOMAIN, "--port-range", own_range(place=5)],
                            environment={"BURROW_E2B_RUNTIME": "base:latest"})
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


@pytest.fixture(scope="module")
def api(server):
    return server.client


@pytest.fixture(scope="module")
def site(api):
    """A sandbox with a server in it, and the word of its name."""
    sandbox = api.create(network={"port": PORT}, timeout={"idle": "1h"})
    serve(sandbox)
    sandbox.name = f"{PORT}-{sandbox.id.removeprefix('sbx_')}.{DOMAIN}"
    yield sandbox
    sandbox.delete()


def head(host, path="/echo", more=""):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode()


def ask(server, host, path="/echo", more=""):
    with Raw(server.port) as connection:
        connection.send(head(host, path, more))
        return connection.answer()


def expose(sandbox, **fields):
    answer = sandbox.client.post(f"{TOP}/sandboxes/{sandbox.id}/ports", fields)
    assert answer.status == 201, str(answer)
    return answer.json


def headers_of(answer):
    return {name.lower(): value for name, value in answer.json["headers"]}


def test_the_address_is_a_name_below_the_domain(server, api, site):
    url = f"http://{site.name}:0"  # --listen says port 0
    assert site.made["url"] == url and site.get()["url"] == url
    listed = api.get(f"{TOP}/sandboxes/{site.id}/ports").json["items"]
    assert [port["url"] for port in listed] == [url] and "hostPort" not in listed[0]
    for host in (site.name, f"{site.name}:{server.port}", site.name.upper(), site.name + "."):
        answer = ask(server, host)
        assert answer.status == 200 and headers_of(answer)["host"] == f"localhost:{PORT}", str(answer)
        assert headers_of(answer)["x-forwarded-host"] == host


def test_the_api_goes_on_beside_it(server, api, site):
    assert api.get("/health").status == 200
    answer = ask(server, site.name, "/api/v1/sandboxes", f"Authorization: Bearer {server.key}\r\n")
    assert answer.json["path"] == "/api/v1/sandboxes"  # the guest's


def test_a_connection_may_ask_for_both(server, site):
    """As that of a proxy does, which has many clients on one connection."""
    with Raw(server.port) as connection:
        for _ in range(3):
            connection.send(head(site.name))
            assert connection.answer().json["path"] == "/echo"
            connection.send(head(f"127.0.0.1:{server.port}", "/health"))
            assert connection.answer().status == 200
        # Also where both come at once.
        connection.send(head(site.name) + head("127.0.0.1", "/health") + head(site.name, "/hit"))
        assert connection.answer().json["path"] == "/echo"
        assert connection.answer().json["status"]
        assert connection.answer().body.isdigit()


def test_a_head_in_pieces_finds_its_way(server, site):
    with Raw(server.port) as connection:
        for byte in head(site.name):
            connection.send(bytes([byte]))
        assert connection.answer().status == 200


def test_a_websocket_by_name(server, site):
    socket = WebSocket(f"http://127.0.0.1:{server.port}", host=site.name)
    assert socket.response.status == 101 and socket.response.headers["X-Host"] == f"localhost:{PORT}"
    socket.send(b"hello")
    assert socket.receive() == (2, b"hello")
    socket.close()


def hosts_of_nobody(site):
    id = site.id.removeprefix("sbx_")
    return {
        "another port": f"{PORT + 1}-{id}.{DOMAIN}",
        "a port of the machine": f"22-{id}.{DOMAIN}",
        "no port": f"{id}.{DOMAIN}",
        "an unknown id": f"{PORT}-{'0' * 26}.{DOMAIN}",
        "an unknown token": f"{PORT}-{'0' * 32}.{DOMAIN}",
        "the prefix": f"{PORT}-sbx_{id}.{DOMAIN}",
        "two labels": f"x.{PORT}-{id}.{DOMAIN}",
        "a zero in front": f"0{PORT}-{id}.{DOMAIN}",
        "a port that is none": f"99999-{id}.{DOMAIN}",
        "nothing": f"-.{DOMAIN}",
        "a word": f"www.{DOMAIN}",
        "the loopback": f"{PORT}-127.0.0.1.{DOMAIN}",
    }


@pytest.mark.parametrize("which", hosts_of_nobody(type("", (), {"id": "sbx_" + "0" * 26})).keys())
def test_names_of_nobody_lead_nowhere(server, site, which):
    answer = ask(server, hosts_of_nobody(site)[which])
    assert answer.status == 404 and b"no exposed port" in answer.body, str(answer)


def test_a_host_and_a_target_that_differ_are_not_mixed_up(server, site):
    """The target's own name counts; what was taken over for the Host's sake is not given to the API."""
    with Raw(server.port) as connection:
        connection.send(f"GET http://127.0.0.1/health HTTP/1.1\r\nHost: {site.name}\r\n\r\n".encode())
        assert connection.answer().status == 421
    with Raw(server.port) as connection:
        connection.send(f"GET http://{site.name}/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert b"localhost:3000" not in connection.answer().body  # whatever the API says, the guest was not asked


def test_a_token_in_the_name_opens_a_private_port(server, api, new):
    sandbox = new(timeout={"idle": "1h"})
    serve(sandbox)
    made = expose(sandbox, port=PORT, private=True, expiresInMs="1h")
    id = sandbox.id.removeprefix("sbx_")
    assert made["tokenUrl"] == f"http://{PORT}-{made['token']}.{DOMAIN}:0"
    assert ask(server, f"{PORT}-{id}.{DOMAIN}").status == 401
    assert ask(server, f"{PORT}-{made['token']}.{DOMAIN}").status == 200
    assert ask(server, f"{PORT + 1}-{made['token']}.{DOMAIN}").status == 404  # of its own port alone
    assert ask(server, f"{PORT}-{id}.{DOMAIN}", more=f"X-Burrow-Port-Token: {made['token']}\r\n").status == 200
    again = expose(sandbox, port=PORT, private=True, expiresInMs=1)
    assert ask(server, f"{PORT}-{made['token']}.{DOMAIN}").status == 404
    until(lambda: ask(server, f"{PORT}-{again['token']}.{DOMAIN}").status == 404, "the token to expire")


def test_all_ports_by_name(server, api, new):
    sandbox = new(timeout={"idle": "1h"})
    serve(sandbox)
    id = sandbox.id.removeprefix("sbx_")
    made = expose(sandbox, all=True)
    assert made["port"] == 0 and made["url"] == f"http://{{port}}-{id}.{DOMAIN}:0"
    assert ask(server, f"{PORT}-{id}.{DOMAIN}").status == 200
    assert ask(server, f"{PORT + 1}-{id}.{DOMAIN}").status == 502
    with Raw(server.port) as connection:  # the server's connection is of one port
        for port, status in ((PORT, 200), (PORT + 1, 502), (PORT, 200)):
            connection.send(head(f"{port}-{id}.{DOMAIN}"))
            assert connection.answer().status == status
    assert api.delete(f"{TOP}/sandboxes/{sandbox.id}/ports/all").status == 204
    assert ask(server, f"{PORT}-{id}.{DOMAIN}").status == 404
    check_problem(api.delete(f"{TOP}/sandboxes/{sandbox.id}/ports/all"), 404, "not_found")


def test_cookies_are_for_one_name_alone(server, site):
    with Raw(server.port) as connection:
        connection.send(head(site.name, "/cookie", "Connection: close\r\nCookie: mine=1\r\n"))
        cookies = [line for line in connection.all().decode().split("\r\n") if line.lower().startswith("set-cookie:")]
    assert cookies == ["Set-Cookie: a=1; Path=/; HttpOnly", "Set-Cookie: b=2"]
    assert headers_of(ask(server, site.name, more="Cookie: mine=1\r\n"))["cookie"] == "mine=1"


def test_a_sandbox_that_is_gone_is_not_revived(server, api, new):
    sandbox = new(network={"port": PORT})
    name = f"{PORT}-{sandbox.id.removeprefix('sbx_')}.{DOMAIN}"
    assert ask(server, name).status == 502
    sandbox.delete()
    assert ask(server, name).status == 404
    assert api.get(f"/sandbox/{sandbox.id}").status == 404


@pytest.mark.parametrize("setting, text", [("https://apps.example.test", "https://{}.apps.example.test"), ("http://apps.example.test:8443", "http://{}.apps.example.test:8443")])
def test_the_operator_says_how_names_are_reached(own_server, setting, text):
    server = own_server(options=["--preview-domain", setting])
    sandbox = server.client.create(network={"port": PORT}, timeout={"idle": "1h"})
    name = f"{PORT}-{sandbox.id.removeprefix('sbx_')}"
    assert sandbox.made["url"] == text.format(name)
    serve(sandbox)
    told = headers_of(ask(server, f"{name}.apps.example.test"))
    assert told["x-forwarded-proto"] == setting.split(":")[0]
    server.end()


def test_names_of_the_hosts_that_e2bs_clients_make(server, api, site):
    e2b = protocol.E2b(server.port, server.key)
    sandbox = e2b.create(network={"allowPublicTraffic": False}, allow_internet_access=False)
    token = sandbox.told["trafficAccessToken"]
    try:
        assert sandbox.told["domain"].split(":")[0] == DOMAIN
        name = f"{PORT}-{sandbox.id}.{DOMAIN}"
        assert ask(server, name).json["code"] == 403 and ask(server, name.upper()).status == 401
        opened = ask(server, name, more=f"E2b-Traffic-Access-Token: {token}\r\n")
        assert opened.status == 502 and opened.json["sandboxId"] == sandbox.id and opened.json["port"] == PORT
        # envd has a name too; and a sandbox of ours is as before, with a token of theirs or without.
        envd = ask(server, f"49983-{sandbox.id}.{DOMAIN}", "/health", f"X-Access-Token: {sandbox.token}\r\n")
        assert envd.status == 204
        assert ask(server, site.name, more=f"E2b-Traffic-Access-Token: {token}\r\n").status == 200
        assert ask(server, site.name.replace(str(PORT), "4000")).status == 404
    finally:
        sandbox.kill()
