# SPDX-License-Identifier: Apache-2.0
"""Statistics: what sandboxes do now, and what they have used."""
from client import check_error, until, waiting_for

NUMBERS = {"totalActive", "running", "idle", "creating", "totalExecutions", "totalCpuTimeMs", "totalMemoryByteSec",
           "totalNetworkEgressBytes"}


def statistics(api, query="?service=sandbox"):
    org = api.get("/cli/organization").data[0]["id"]
    return api.get(f"/services/stats/{org}{query}", headers={"x-agentuity-orgid": org}).data["services"]


def test_all_numbers_are_there(api):
    seen = statistics(api)["sandbox"]
    assert set(seen) == NUMBERS
    assert all(isinstance(value, (int, float)) and value >= 0 for value in seen.values())


def test_sandboxes_and_executions_are_counted(api, new):
    before = statistics(api)["sandbox"]
    one, two = new(), new()
    two.execute("sh", "-c", waiting_for())
    now = statistics(api)["sandbox"]
    assert now["totalActive"] == before["totalActive"] + 2
    assert now["running"] == before["running"] + 1
    assert now["idle"] == before["idle"] + 1
    one.run("true")
    until(lambda: statistics(api)["sandbox"]["totalExecutions"] >= before["totalExecutions"] + 2, "executions to be counted")
    two.release()


def test_what_was_used_is_real(api, new):
    before = statistics(api)["sandbox"]
    sandbox = new()
    sandbox.run("python3", "-c", "import time\nx = bytearray(64 << 20)\nwhile time.process_time() < 0.5: pass")
    after = until(lambda: (now := statistics(api)["sandbox"])["totalCpuTimeMs"] >= before["totalCpuTimeMs"] + 400 and now,
                  "CPU time to be counted")
    assert after["totalMemoryByteSec"] > before["totalMemoryByteSec"]


def test_a_time_that_is_over_has_nothing(api):
    seen = statistics(api, "?service=sandbox&start=2001-01-01T00:00:00Z&end=2001-01-02T00:00:00Z")["sandbox"]
    assert (seen["totalExecutions"], seen["totalCpuTimeMs"], seen["totalMemoryByteSec"]) == (0, 0, 0)


def test_a_service_that_is_not_there_is_left_out(api):
    assert "sandbox" not in statistics(api, "?service=keyvalue")
    assert "sandbox" in statistics(api, "")


def test_times_that_are_none_are_refused(api):
    for bad in ("start=yesterday", "end=2026-13-45T00:00:00Z", "start=1"):
        check_error(api.get(f"/services/stats/org_x?service=sandbox&{bad}"), 400, "INVALID_ARGUMENT", bad.split("=")[0])
