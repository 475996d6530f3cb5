# SPDX-License-Identifier: Apache-2.0
"""Connections: the first flight says a name, and that name has to be the address's."""
import json

import pytest

SHARED, LONE, LAN, METADATA = "93.184.220.10", "93.184.220.11", "10.20.0.5", "169.254.169.254"
DENIED = "alert 49"
ECH = "fe0d0004" + "00000000"


def requests(world, **facts):
    return world.log(what="request", **facts)


def test_tls_to_an_allowed_name_passes_untouched(world, box):
    box.allow("allowed.example:443")
    box.ask("dns", "allowed.example")
    said = box.ask("tls", SHARED, "allowed.example", str(world.data / "ca.crt"))
    assert said["answer"].endswith("443 allowed.example / 0\n") and said["issuer"] == "Internet"


def test_two_names_on_one_address_and_only_one_is_open(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    assert box.ask("send_hello", SHARED, "other.example") == DENIED
    refusal = world.refusals(box, kind="tls", name="other.example")
    assert (refusal["address"], refusal["port"]) == (SHARED, "443")
    code, body = box.curl("http://allowed.example/", "-H", "Host: other.example")
    assert code == 403 and "'other.example' port 80 over tcp is refused because no rule allows it" in body
    assert "allow 'other.example:80' in the sandbox's network policy" in body
    assert world.refusals(box, kind="http", name="other.example")
    assert not requests(world, sni="other.example")


def test_a_direct_address_with_an_allowed_name_is_refused(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    assert box.ask("send_hello", LONE, "allowed.example") in (DENIED, "error 111", "error 113", "error 104")
    assert "RESET" in (said := box.ask("raw", LONE, 80, ["GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n"])) or said.startswith(("HTTP/1.1 403", "error"))
    assert not world.log(what="tls", address=LONE) or not requests(world, address=LONE, sni="allowed.example")


@pytest.mark.parametrize("sni", [None, "93.184.220.10", "ALLOWED.EXAMPLE\0.evil", "allowed.example evil", ""])
def test_a_hello_without_a_good_name_is_refused(world, box, sni):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    assert box.ask("send_hello", SHARED, sni) == DENIED


def test_a_hello_may_come_in_pieces(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    assert box.ask("send_hello", SHARED, "allowed.example", 0, "", 1) != DENIED
    assert box.ask("send_hello", SHARED, "other.example", 0, "", 1) == DENIED


def test_a_long_hello_is_read_and_one_without_end_is_not(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    assert box.ask("send_hello", SHARED, "allowed.example", 40000) != DENIED
    assert box.ask("send_hello", SHARED, "other.example", 40000) == DENIED
    assert box.ask("raw", SHARED, 443, ["\x16\x03\x01\x40\x00\x01\xff\xff\xff" + "a" * 100000])[:7] in ("\x15\x03\x03\x00\x02\x02\x31", "error 1", "RESET")


def test_a_hidden_name_is_refused(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    assert box.ask("send_hello", SHARED, "allowed.example", 0, ECH) == DENIED
    assert "ECH" in world.refusals(box, kind="tls", name="allowed.example")["reason"]


HEADS = [
    "GET / HTTP/1.1\r\nHost: allowed.example\r\nHost: other.example\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: other.example\r\nHost: allowed.example\r\n\r\n",
    "GET / HTTP/1.1\nHost: allowed.example\n\n",
    "GET / HTTP/1.1\r\nHost: allowed.example\r\n folded\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : allowed.example\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: allowed.example@other.example\r\n\r\n",
    "GET http://other.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "POST / HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "CONNECT other.example:443 HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: allowed.example\r\nX: \x00\r\n\r\n",
    "SSH-2.0-something\r\n",
    "GET / HTTP/1.1\r\nHost: 93.184.220.11\r\n\r\n",
    "GET / HTTP/1.1\r\nX: " + "a" * 40000,
]


@pytest.mark.parametrize("head", HEADS)
def test_a_request_that_can_be_read_in_two_ways_is_refused(world, box, head):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    before = len(requests(world))
    said = box.ask("raw", SHARED, 80, [head])
    assert said.startswith("HTTP/1.1 403"), said
    assert len(requests(world)) == before


def test_a_second_request_for_another_host_ends_the_connection(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    both = "GET /one HTTP/1.1\r\nHost: allowed.example\r\n\r\nGET /two HTTP/1.1\r\nHost: other.example\r\n\r\n"
    box.ask("raw", SHARED, 80, [both])
    assert world.refusals(box, kind="http", name="other.example")
    assert not [line for line in requests(world) if "/two" in line["line"]]
    body = "POST /three HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /four HTTP/1.1\r\nHost: other.example\r\n\r\n"
    box.ask("raw", SHARED, 80, list(body))
    assert not [line for line in requests(world) if "/four" in line["line"]]


def test_requests_of_one_connection_are_all_answered(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    three = "".join(f"POST /{n} HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 4\r\n\r\nbody" for n in range(3))
    said = box.ask("raw", SHARED, 80, [three], True)
    assert [f"/{n} 4" in said for n in range(3)] == [True] * 3


def test_another_protocol_passes_once_the_server_agrees(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    assert box.ask("upgrade", SHARED, "allowed.example", "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n").endswith(
        "|GET / HTTP/1.1\r\nHost: other.example\r\n\r\n")  # raw bytes by then, for the server that agreed
    # One that does not agree goes on with HTTP, and so does the judgement.
    pipelined = "GET /no HTTP/1.1\r\nHost: allowed.example\r\nUpgrade: nothing\r\n\r\nGET /hidden HTTP/1.1\r\nHost: other.example\r\n\r\n"
    box.ask("raw", SHARED, 80, [pipelined])
    assert not [line for line in requests(world) if "/hidden" in line["line"]]


def test_large_bodies_pass_both_ways(world, box):
    box.allow("allowed.example")
    code, body = box.curl("http://allowed.example/bytes/30000000")
    assert code == 200 and len(body) == 30_000_000
    code, body = box.curl("https://allowed.example/bytes/30000000", "--cacert", str(world.data / "ca.crt"))
    assert code == 200 and len(body) == 30_000_000
    big = world.data / "big"
    big.write_bytes(b"y" * 10_000_000)
    assert box.curl("http://allowed.example/up", "--data-binary", f"@{big}") == (200, "80 allowed.example /up 10000000\n")
    assert box.curl("http://allowed.example/up", "-T", str(big), "-H", "Transfer-Encoding: chunked")[1] == "80 allowed.example /up 10000000\n"
    code, body = box.curl("https://allowed.example/up", "--data-binary", f"@{big}", "--cacert", str(world.data / "ca.crt"))
    assert (code, body) == (200, "443 allowed.example /up 10000000\n")


def test_other_ports_go_by_the_pin(world, box):
    box.allow("allowed.example:2222/tcp")
    assert box.ask("talk", SHARED, 2222, "hi") != "hello\nhi"
    box.ask("dns", "allowed.example")
    assert box.ask("talk", SHARED, 2222, "hi") == "hello\nhi"
    assert box.ask("send_hello", SHARED, "allowed.example") == DENIED  # that port was not allowed
    assert box.ask("talk", LONE, 2222, "hi").startswith("error")
    assert world.refusals(box, kind="connection", address=LONE, port=2222)["protocol"] == "tcp"


def test_quic_is_refused_at_once(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    assert box.ask("udp", SHARED, 443, "quic").startswith("error")


@pytest.mark.parametrize("address", [LAN, METADATA])
@pytest.mark.parametrize("port", [80, 443, 2222])
def test_closed_addresses_stay_closed(world, box, address, port):
    box.allow("*", address, "private.example", default="allow")
    assert box.ask("talk", address, port, "x").startswith("error") or port in (80, 443)
    said = box.ask("raw", address, port, ["GET / HTTP/1.1\r\nHost: private.example\r\n\r\n"])
    assert said.startswith(("error", "HTTP/1.1 403")) or "RESET" in said
    assert not requests(world, address=address)


def test_a_box_that_is_not_known_is_reset(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    world.tell(f"remove {box.slot}")
    assert box.ask("send_hello", SHARED, "allowed.example").startswith("error")


def start_download(world, box, *arguments):
    process = box.start("/usr/bin/python3", __file__.replace("test_egress_flows", "inside"), *arguments)
    assert json.loads(process.stdout.readline()) == "begun"
    return process


def ended(process):
    said, _ = process.communicate(timeout=60)
    return json.loads(said.splitlines()[-1])


@pytest.mark.parametrize("what,arguments", [
    ("hold", [SHARED, 80, "GET /drip HTTP/1.1\r\nHost: allowed.example\r\n\r\n"]),
    ("hold_tls", [SHARED, "allowed.example", "GET /drip HTTP/1.1\r\nHost: allowed.example\r\n\r\n"]),
])
def test_a_policy_that_is_tightened_cuts_what_is_under_way(world, box, what, arguments):
    box.allow("allowed.example", "lone.example")
    box.ask("dns", "allowed.example")
    download = start_download(world, box, what, json.dumps(arguments))
    box.allow("lone.example")
    assert ended(download) in ("error 104", "end")  # which it never does by itself
    assert box.ask("dns", "allowed.example")["code"] == 5
    assert box.ask("send_hello", SHARED, "allowed.example") in (DENIED, "error 104", "error 111")


def test_a_change_leaves_what_is_still_allowed(world, box):
    box.allow("allowed.example", "lone.example")
    box.ask("dns", "allowed.example")
    said = start_download(world, box, "hold_tls", json.dumps([SHARED, "allowed.example", "GET /bytes/40000000 HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n"]))
    box.allow("allowed.example")
    said.kill()
    said.wait()
    assert box.ask("tls", SHARED, "allowed.example")["answer"]  # pinned again, without another lookup


def test_a_failed_change_leaves_the_old_policy(world, box):
    box.allow("allowed.example")
    assert world.tell(f"set {box.slot} /dev/null", may_fail=True)[-1].startswith("error")
    assert box.ask("dns", "allowed.example")["addresses"] == [SHARED]
    assert box.ask("dns", "other.example")["code"] == 5


def test_what_is_observed_passes_and_is_told(world, box):
    box.allow("allowed.example", observe="yes")
    assert box.curl("http://other.example/") == (200, "80 other.example / 0\n")
    assert world.refusals(box, kind="dns", name="other.example", would_deny=1)
    assert world.refusals(box, kind="http", name="other.example", would_deny=1, port=80)
    assert box.curl("http://allowed.example/")[0] == 200
    assert box.ask("dns", "meta.example")["code"] == 5  # closed is closed


def test_names_may_be_refused_where_all_else_is_allowed(world, box):
    box.allow("user deny other.example", default="allow")
    assert box.curl("http://allowed.example/")[0] == 200
    assert box.ask("dns", "other.example")["code"] == 5
    assert box.ask("send_hello", SHARED, "other.example") == DENIED
    assert box.ask("talk", LONE, 2222, "hi") == "hello\nhi"


def test_more_connections_than_a_box_may_have_are_refused(world, box):
    box.allow("allowed.example")
    box.ask("dns", "allowed.example")
    neighbour = world.box()
    neighbour.allow("allowed.example")
    neighbour.ask("dns", "allowed.example")
    storm = box.start("/usr/bin/python3", "-c", f"""
import socket
held = []
for _ in range(600):
    try:
        held.append(socket.create_connection(("{SHARED}", 443), 5))
    except OSError:
        pass
print("held", flush=True)
input()""")
    assert storm.stdout.readline() == "held\n"
    assert world.refusals(box, kind="rate")
    assert neighbour.ask("tls", SHARED, "allowed.example")["answer"]  # nobody else notices
    storm.kill()
    storm.wait()
