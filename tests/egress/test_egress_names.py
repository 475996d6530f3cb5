# SPDX-License-Identifier: Apache-2.0
"""Names: what resolves, what does not, and that nothing of that leaves."""
import pytest

from conftest import HERE, PATIENCE

REFUSED, NO_NAME = 5, 3


def asked(world, name):
    return world.log(what="dns", name=name)


def test_an_allowed_name_resolves_and_can_be_used(world, box):
    box.allow("allowed.example")
    assert box.ask("dns", "allowed.example")["addresses"] == ["93.184.220.10"]
    assert box.curl("http://allowed.example/x") == (200, "80 allowed.example /x 0\n")


def test_a_box_without_a_policy_resolves_nothing(world, box):
    box.allow("lone.example")
    world.tell(f"remove {box.slot}")
    reply = box.ask("dns", "short.example")
    assert (reply["code"], reply["extended"][0]) == (REFUSED, 18)
    assert not asked(world, "short.example")


@pytest.mark.parametrize("name", ["evilallowed.example", "allowed.example.evil.example", "sub.allowed.example", "example", "wild.example", "awild.example",
                                  "x" * 60 + "." + "y" * 60 + ".tunnel.example"])
def test_names_that_no_rule_allows_are_refused_before_anything_leaves(world, box, name):
    box.allow("allowed.example", "*.wild.example")
    reply = box.ask("dns", name)
    assert reply["code"] == REFUSED and not reply["addresses"]
    assert reply["extended"][0] == 15 and "no rule allows it" in reply["extended"][1]
    refusal = world.refusals(box, kind="dns", name=name)
    assert refusal["tier"] == "default" and refusal["remedy"] == f"allow '{name}' in the sandbox's network policy"
    assert not asked(world, name)


def test_a_wildcard_covers_what_is_below(world, box):
    box.allow("*.wild.example")
    assert box.ask("dns", "a.wild.example")["addresses"] == ["93.184.220.11"]


def test_capitals_come_back_as_they_were_and_do_not_leave(world, box):
    box.allow("allowed.example")
    reply = box.ask("dns", "AlLoWeD.eXaMpLe")
    assert reply["name"] == "AlLoWeD.eXaMpLe." and reply["addresses"] == ["93.184.220.10"]
    assert not asked(world, "AlLoWeD.eXaMpLe")


def test_there_is_no_ipv6_and_no_hint_at_other_protocols(world, box):
    box.allow("lone.example")
    for kind in (28, 64, 65):
        reply = box.ask("dns", "lone.example", kind)
        assert (reply["code"], reply["addresses"]) == (0, [])
    assert not [line for line in asked(world, "lone.example") if line["type"] != 1]


@pytest.mark.parametrize("kind", [16, 15, 33, 12, 255, 10, 2, 6, 252])
def test_other_types_are_refused(world, box, kind):
    box.allow("short.example")
    reply = box.ask("dns", "short.example", kind)
    assert reply["code"] == REFUSED and "only addresses" in reply["extended"][1]
    assert not [line for line in asked(world, "short.example") if line["type"] == kind]


def test_options_of_a_box_do_not_leave(world, box):
    box.allow("target.example")
    assert box.ask("dns", "target.example", 1, None, True, "000a0008" + "11" * 8)["addresses"] == ["93.184.220.11"]  # a cookie, which could carry anything
    assert all(line["options"] == 0 for line in asked(world, "target.example"))


def test_lookups_over_tcp(world, box):
    box.allow("allowed.example", "lone.example")
    first, second, third = box.ask("dns_tcp", ["allowed.example", "evil.example", "lone.example"])
    assert (first["addresses"], second["code"], third["addresses"]) == (["93.184.220.10"], REFUSED, ["93.184.220.11"])


def test_one_box_leaves_lookups_over_tcp_to_others(world, box):
    other = world.box()
    box.allow("allowed.example")
    other.allow("allowed.example")
    hostile = box.start("/usr/bin/python3", HERE / "inside.py", "hold_dns_tcp", "[1200]")
    try:
        assert hostile.stdout.readline() == '"held"\n'
        for asking in (other, box):  # its own newest are served, too
            assert asking.ask("dns_tcp", ["allowed.example"])[0]["addresses"] == ["93.184.220.10"]
        said, _ = hostile.communicate("\n", timeout=PATIENCE)
        assert 0 < int(said) <= 16
    finally:
        hostile.kill()
        hostile.wait()


def test_an_answer_that_is_too_long_comes_over_tcp(world, box):
    box.allow("many.example")
    reply = box.ask("dns", "many.example", 1, None, False)
    assert reply["cut"] and not reply["addresses"]
    assert len(box.ask("dns_tcp", ["many.example"])[0]["addresses"]) == 60
    assert [line for line in asked(world, "many.example") if line["tcp"]]


def test_another_resolver_is_ours_too(world, box):
    box.allow("allowed.example")
    assert box.ask("dns", "allowed.example", 1, "9.9.9.9")["addresses"] == ["93.184.220.10"]
    reply = box.ask("dns", "tunnel.example", 1, "9.9.9.9")
    assert reply["code"] == REFUSED
    assert not asked(world, "tunnel.example")


@pytest.mark.parametrize("name", ["private.example", "meta.example", "loopback.example", "privatealias.example"])
def test_a_name_that_leads_to_a_closed_address_is_not_answered(world, box, name):
    box.allow(name)
    reply = box.ask("dns", name)
    assert (reply["code"], reply["addresses"]) == (REFUSED, [])
    assert world.refusals(box, kind="dns", name=name)["tier"] == "closed"


def test_of_mixed_addresses_only_the_public_ones_are_answered(world, box):
    box.allow("mixed.example")
    assert box.ask("dns", "mixed.example")["addresses"] == ["93.184.220.11"]


def test_an_operator_may_open_a_zone(world, box):
    box.allow("always allow private.example")
    assert box.ask("dns", "private.example")["addresses"] == ["10.20.0.5"]


def test_a_name_may_stand_for_another_unless_a_rule_refuses_that(world, box):
    box.allow("alias.example", "cut.example", "user deny evil.example", "badalias.example", "loop.example")
    assert box.ask("dns", "alias.example")["addresses"] == ["93.184.220.11"]
    assert box.ask("dns", "cut.example")["addresses"] == ["93.184.220.11"]  # the second name is asked for by us
    assert box.ask("dns", "badalias.example")["code"] == REFUSED
    assert world.refusals(box, kind="dns", name="evil.example")["rule"] == "deny evil.example"
    assert not box.ask("dns", "loop.example")["addresses"]


def test_what_a_name_stands_for_is_not_opened_by_its_own_name(world, box):
    box.allow("alias.example")
    box.ask("dns", "alias.example")
    assert box.ask("send_hello", "93.184.220.11", "target.example") == "alert 49"


@pytest.mark.parametrize("name", ["badpointer.example", "garbage.example"])
def test_a_resolver_that_lies_about_names_does_no_harm(world, box, name):
    box.allow(name, "allowed.example")
    assert not box.ask("dns", name)["addresses"]
    assert box.ask("dns", "allowed.example")["addresses"] == ["93.184.220.10"]


def test_a_name_that_does_not_exist_is_told_so(world, box):
    box.allow("missing.example")
    assert box.ask("dns", "missing.example")["code"] == NO_NAME


@pytest.mark.parametrize("raw", [
    "", "00", "1234", "123401000001000000000000", "12340100000100000000000003", "123401000001000000000000c00c00010001",
    "1234010000010000000000003f" + "61" * 70, "123401000002000000000000000001000100000100010001", "12340100000100000000000001ff0000010001",
    "ffffffffffffffffffffffffffffffff", "123428000001000000000000" + "00" * 5,
])
def test_what_is_no_question_does_no_harm(world, box, raw):
    box.allow("allowed.example")
    replies = box.ask("dns_after", raw, "allowed.example")
    assert all(reply["code"] in (1, 4, 5) for reply in replies[:-1])
    assert replies[-1]["addresses"] == ["93.184.220.10"]


def test_a_flood_of_lookups_is_bounded_and_told(world, box):
    box.allow("allowed.example")
    assert box.ask("dns_flood", "nothing.example", 5000) < 5000
    assert world.refusals(box, kind="rate")
    _, lookups, refused, *_ = world.tell(f"counters {box.slot}")[-1].split()
    assert int(lookups) > 400 and int(refused) > 100
    assert not asked(world, "nothing.example")


def test_an_open_box_resolves_what_it_likes(world, box):
    box.open()
    assert box.ask("dns", "evil.example")["addresses"] == ["93.184.220.11"]
    assert box.curl("http://other.example/") == (200, "80 other.example / 0\n")


def test_refusals_are_one_record_and_a_count(world, box):
    box.allow("allowed.example")
    box.ask("dns_flood", "again.example", 5)
    assert world.refusals(box, kind="dns", name="again.example", count=1)
    assert world.refusals(box, kind="dns", name="again.example", count=4)
