# SPDX-License-Identifier: Apache-2.0
"""Names: what resolves, what does not, and that nothing of it leaves."""


def test_an_allowed_name_resolves_and_can_be_used(world, box):
    box.allow("allowed.example")
    assert box.ask("dns", "allowed.example")["addresses"] == ["93.184.220.10"]
    code, body = box.curl("http://allowed.example/x")
    assert (code, body) == (200, "80 allowed.example /x 0\n")
