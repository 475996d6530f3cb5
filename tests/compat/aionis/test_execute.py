# SPDX-License-Identifier: Apache-2.0
"""Runs: how they are asked for, what they do, how they end."""
import time

import pytest

from aionis import TIME, UUID, Refused, issues_of
from client import together, until

RUN = ["run_id", "session_id", "project_id", "planner_run_id", "decision_id", "action", "mode", "status", "timeout_ms", "output", "exit_code",
       "error", "cancel_requested", "cancel_reason", "result", "result_summary", "started_at", "finished_at", "created_at", "updated_at"]
SUMMARY = ["summary_version", "stdout_preview", "stderr_preview", "stdout_chars", "stderr_chars", "result_kind", "result_keys",
           "result_preview", "exit_code", "error", "truncated", "signals"]
SOME = "00000000-0000-4000-8000-000000000000"


def body_of(**fields):
    return {"session_id": SOME, "action": {"kind": "command", "argv": ["echo"]}, **fields}


# ---- fields ----

@pytest.mark.parametrize("field, value", [
    ("project_id", ""), ("project_id", "x" * 129), ("project_id", "\U0001f30d" * 65), ("project_id", None), ("project_id", 1),
    ("session_id", "x"), ("session_id", ""), ("session_id", None), ("session_id", 1), ("session_id", SOME[:-1]), ("session_id", SOME + "0"),
    ("session_id", SOME.replace("-", "")), ("session_id", "g" + SOME[1:]), ("session_id", f" {SOME}"),
    ("planner_run_id", ""), ("planner_run_id", None), ("planner_run_id", 1),
    ("decision_id", ""), ("decision_id", "x"), ("decision_id", None),
    ("mode", ""), ("mode", "SYNC"), ("mode", None), ("mode", True),
    ("timeout_ms", 0), ("timeout_ms", -1), ("timeout_ms", 600001), ("timeout_ms", 1.5), ("timeout_ms", "100"), ("timeout_ms", None),
    ("action", None), ("action", []), ("action", "echo"), ("metadata", None), ("metadata", []), ("metadata", ""),
])
def test_limits_of_fields(aionis, field, value):
    assert issues_of(aionis.post("execute", body_of(**{field: value}))) == [field]


@pytest.mark.parametrize("action, paths", [
    ({}, ["action.kind", "action.argv"]),
    ({"kind": "shell", "argv": ["a"]}, ["action.kind"]),
    ({"kind": "command"}, ["action.argv"]),
    ({"kind": "command", "argv": []}, ["action.argv"]),
    ({"kind": "command", "argv": "echo"}, ["action.argv"]),
    ({"kind": "command", "argv": ["a"] * 65}, ["action.argv"]),
    ({"kind": "command", "argv": ["a", ""]}, ["action.argv.1"]),
    ({"kind": "command", "argv": ["", "a", 1, None]}, ["action.argv.0", "action.argv.2", "action.argv.3"]),
])
def test_limits_of_actions(aionis, action, paths):
    assert issues_of(aionis.post("execute", body_of(action=action))) == paths


def test_a_nul_in_an_argument_is_a_fault_of_the_body(aionis, shared):
    """The vendor's server says 500 and leaves a run that never ends."""
    answer = aionis.post("execute", body_of(session_id=shared, action={"kind": "command", "argv": ["echo", "a", "b\0c"]}))
    assert issues_of(answer) == ["action.argv.2"]


@pytest.mark.parametrize("fields, expected", [
    ({}, (None, None, None)),
    ({"project_id": " p ", "planner_run_id": " q ", "decision_id": SOME}, ("p", "q", SOME)),
    ({"project_id": "x" * 128, "planner_run_id": "y" * 9999, "decision_id": SOME.upper()}, ("x" * 128, "y" * 9999, SOME.upper())),
    ({"project_id": "  ", "planner_run_id": "\t"}, (None, None, None)),
    ({"project_id": "\U0001f30d" * 64}, ("\U0001f30d" * 64, None, None)),
])
def test_links_are_kept_and_said_back(aionis, shared, fields, expected):
    run = aionis.run(shared, "echo", **fields)
    for record in (run, aionis.get(run["run_id"]), aionis.artifact(run["run_id"])):
        assert (record["project_id"], record["planner_run_id"], record["decision_id"]) == expected


@pytest.mark.parametrize("asked, applied", [(None, 15000), (1, 100), (99, 100), (100, 100), (101, 101), (600000, 600000), (5000.0, 5000)])
def test_a_timeout_is_at_least_a_tenth_of_a_second(aionis, shared, asked, applied):
    assert aionis.run(shared, "echo", **({"timeout_ms": asked} if asked else {}))["timeout_ms"] == applied


def test_sixty_four_arguments(aionis, shared):
    words = [str(i) for i in range(63)]
    assert aionis.run(shared, "echo", *words)["output"]["stdout"] == " ".join(words) + "\n"


# ---- the record ----

def test_what_a_sync_run_says(aionis, shared):
    answer = aionis.execute(shared, "echo", "hi")
    assert list(answer) == ["tenant_id", "scope", "accepted", "run"] and answer["accepted"] is False
    run = answer["run"]
    assert list(run) == RUN and list(run["result_summary"]) == SUMMARY
    assert UUID.fullmatch(run["run_id"]) and run["session_id"] == shared
    assert run["action"] == {"kind": "command", "argv": ["echo", "hi"]}
    assert (run["mode"], run["status"], run["exit_code"], run["error"]) == ("sync", "succeeded", 0, None)
    assert run["output"] == {"stdout": "hi\n", "stderr": "", "truncated": False}
    assert (run["cancel_requested"], run["cancel_reason"]) == (False, None)
    assert list(run["result"].items()) == [("executor", "local_process"), ("command", "echo"), ("argv", ["echo", "hi"]), ("signal", None),
                                           ("timed_out", False), ("canceled", False)]
    assert run["result_summary"] == {
        "summary_version": "tool_result_summary_v1", "stdout_preview": "hi", "stderr_preview": "", "stdout_chars": 3, "stderr_chars": 0,
        "result_kind": "object", "result_keys": ["argv", "canceled", "command", "executor", "signal", "timed_out"],
        "result_preview": '{"argv":["echo","hi"],"canceled":false,"command":"echo","executor":"local_process","signal":null}',
        "exit_code": 0, "error": None, "truncated": False, "signals": ["structured_result_object"]}
    times = [run[name] for name in ("created_at", "started_at", "finished_at", "updated_at")]
    assert all(TIME.fullmatch(when) for when in times) and times == sorted(times)
    assert aionis.get(run["run_id"]) == run


def test_async_is_the_default_and_answers_as_queued(aionis, shared):
    answer = aionis.call("execute", session_id=shared, action={"kind": "command", "argv": ["echo", "hi"]})
    run = answer["run"]
    assert answer["accepted"] is True and list(run) == RUN
    assert (run["mode"], run["status"], run["exit_code"], run["error"], run["result"]) == ("async", "queued", None, None, {})
    assert (run["started_at"], run["finished_at"]) == (None, None) and run["created_at"] == run["updated_at"]
    assert run["output"] == {"stdout": "", "stderr": "", "truncated": False}
    assert (run["result_summary"]["result_kind"], run["result_summary"]["result_preview"]) == ("object", "{}")
    assert run["result_summary"]["signals"] == ["structured_result_object"]
    ended = aionis.wait(run["run_id"])
    assert (ended["status"], ended["mode"], ended["output"]["stdout"]) == ("succeeded", "async", "hi\n")
    assert ended["run_id"] == run["run_id"] and ended["created_at"] == run["created_at"]


@pytest.mark.parametrize("argv, status, code, error, result", [
    (["sh", "-c", "exit 0"], "succeeded", 0, None, {"signal": None}),
    (["sh", "-c", "exit 3"], "failed", 3, "non_zero_exit_code:3", {"signal": None}),
    (["sh", "-c", "exit 255"], "failed", 255, "non_zero_exit_code:255", {"signal": None}),
    (["sh", "-c", "exit 137"], "failed", 137, "non_zero_exit_code:137", {"signal": None}),
    (["sh", "-c", "kill -TERM $$"], "failed", None, "non_zero_exit_code:null", {"signal": "SIGTERM"}),
    (["sh", "-c", "kill -9 $$"], "failed", None, "non_zero_exit_code:null", {"signal": "SIGKILL"}),
    (["nowhere"], "failed", -2, "spawn nowhere ENOENT", {"signal": None}),
    (["ls"], "failed", None, "sandbox_command_not_allowed", None),
    (["/usr/bin/echo"], "failed", None, "sandbox_command_not_allowed", None),
    (["ECHO"], "failed", None, "sandbox_command_not_allowed", None),
    (["  "], "failed", None, "invalid_command_name", None),
])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_how_runs_end(aionis, shared, mode, argv, status, code, error, result):
    run = aionis.execute(shared, *argv, mode=mode)["run"]
    run = aionis.wait(run["run_id"])
    assert (run["status"], run["exit_code"], run["error"]) == (status, code, error)
    assert run["action"]["argv"] == argv
    if error == "invalid_command_name":
        assert run["result"] == {"executor": "local_process"}
    elif result is None:
        assert run["result"] == {"executor": "local_process", "command": argv[0].strip()}
    else:
        assert run["result"] == {"executor": "local_process", "command": argv[0], "argv": argv, "timed_out": False, "canceled": False, **result}
    signals = run["result_summary"]["signals"]
    assert ("nonzero_exit" in signals) == (code not in (None, 0)) and ("execution_error" in signals) == (error is not None)
    assert run["started_at"] and run["finished_at"] and run["result_summary"]["error"] == error


def test_the_program_is_trimmed_and_the_rest_is_not(aionis, shared):
    run = aionis.run(shared, "  echo\t", " a ", "b ")
    assert run["output"]["stdout"] == " a  b \n"
    assert run["action"]["argv"] == ["  echo\t", " a ", "b "] == run["result"]["argv"]
    assert run["result"]["command"] == "echo"


def test_there_is_no_shell_between(aionis, shared):
    assert aionis.run(shared, "echo", "$HOME", "*", ";ls", "`id`")["output"]["stdout"] == "$HOME * ;ls `id`\n"


def test_standard_input_is_empty(aionis, shared):
    run = aionis.run(shared, "cat")
    assert (run["status"], run["output"]["stdout"]) == ("succeeded", "")


def test_a_path_may_be_allowed(aionis, shared):
    assert aionis.run(shared, "/bin/echo", "hi")["output"]["stdout"] == "hi\n"


def test_the_environment_is_not_the_servers(aionis, shared):
    names = {line.split("=")[0] for line in aionis.run(shared, "env")["output"]["stdout"].splitlines()}
    assert "PATH" in names and not [name for name in names if name.startswith(("BURROW", "SANDBOX", "LITE"))]


def test_there_is_no_network(aionis, shared):
    devices, routes = (aionis.sh(shared, f"cat /proc/net/{name}")["output"]["stdout"].splitlines() for name in ("dev", "route"))
    assert len(devices) == 3 and devices[2].split(":")[0].strip() == "lo"
    assert len(routes) == 1


# ---- timeouts ----

def test_a_timeout(aionis, shared):
    run = aionis.sh(shared, "echo before; sleep 30", timeout_ms=300)
    assert (run["status"], run["exit_code"], run["error"], run["timeout_ms"]) == ("timeout", None, "execution_timeout", 300)
    assert run["result"] == {"executor": "local_process", "command": "sh", "argv": ["sh", "-c", "echo before; sleep 30"], "signal": "SIGKILL",
                             "timed_out": True, "canceled": False}
    assert run["output"]["stdout"] == "before\n"
    assert run["result_summary"]["signals"] == ["execution_error", "structured_result_object"]


@pytest.mark.parametrize("script", ["sleep 60 & sleep 60", "(setsid sleep 60 &) ; sleep 60", "trap '' TERM INT HUP; sleep 60 & wait"])
def test_a_timeout_ends_all_that_was_started(aionis, session, script):
    """The vendor's server kills the direct child alone, and waits for the others."""
    before = time.monotonic()
    assert aionis.sh(session, script, timeout_ms=300)["status"] == "timeout"
    assert time.monotonic() - before < 20
    assert no_sleepers(aionis, session)


def no_sleepers(aionis, session):
    count = "n=0; for p in /proc/[0-9]*; do [ \"$(cat $p/comm 2>/dev/null)\" = sleep ] && n=$((n+1)); done; echo $n"
    return until(lambda: aionis.sh(session, count)["output"]["stdout"] == "0\n", "what was started to be gone")


def test_a_run_ends_with_its_process_although_a_child_holds_its_output(aionis, session):
    """The vendor's server waits for the child."""
    before = time.monotonic()
    run = aionis.sh(session, "sleep 60 & echo hi")
    assert (run["status"], run["output"]["stdout"]) == ("succeeded", "hi\n")
    assert time.monotonic() - before < 30


# ---- output ----

def test_both_streams(aionis, shared):
    run = aionis.sh(shared, "echo out; echo err >&2")
    assert run["output"] == {"stdout": "out\n", "stderr": "err\n", "truncated": False}
    assert run["result_summary"]["signals"] == ["stderr_present", "structured_result_object"]


@pytest.mark.parametrize("count, truncated", [(65535, False), (65536, False), (65537, True), (1 << 20, True)])
def test_the_first_bytes_are_kept(aionis, shared, count, truncated):
    run = aionis.sh(shared, f"printf start; head -c {count - 5} /dev/zero | tr '\\0' x")
    assert run["status"] == "succeeded"
    assert run["output"]["truncated"] is truncated
    kept = run["output"]["stdout"]
    assert kept.startswith("startx") and len(kept) == min(count, 65536)
    assert ("output_truncated" in run["result_summary"]["signals"]) == truncated
    assert "stdout_large" in run["result_summary"]["signals"]


def test_each_stream_has_its_own_cap(aionis, shared):
    run = aionis.sh(shared, "head -c 65536 /dev/zero | tr '\\0' x; head -c 70000 /dev/zero | tr '\\0' y >&2")
    assert (len(run["output"]["stdout"]), len(run["output"]["stderr"]), run["output"]["truncated"]) == (65536, 65536, True)


@pytest.mark.parametrize("before", range(65530, 65537))
def test_the_cap_never_cuts_a_character(aionis, shared, before):
    """The vendor's server leaves U+FFFD and two bytes too many."""
    run = aionis.sh(shared, f"head -c {before} /dev/zero | tr '\\0' x; printf '\\360\\237\\214\\215\\303\\251yyyyyyyyy'")
    kept = run["output"]["stdout"]
    whole = "x" * before + "\U0001f30d\u00e9yyyyyyyyy"
    assert run["output"]["truncated"] is True
    assert whole.startswith(kept) and 65536 - 3 <= len(kept.encode()) <= 65536


def test_a_character_that_comes_in_pieces(aionis, shared):
    """The vendor's server makes two U+FFFD of it."""
    run = aionis.sh(shared, "for b in 360 237 214 215 303; do printf \"\\\\$b\"; sleep 0.1; done; printf '\\251'")
    assert run["output"]["stdout"] == "\U0001f30d\u00e9"


def test_a_nul_in_the_output_is_kept(aionis, shared):
    """The vendor's server loses what comes behind it."""
    run = aionis.sh(shared, "printf 'a\\0b\\0\\0c'")
    assert run["output"]["stdout"] == "a\0b\0\0c"
    assert aionis.get(run["run_id"])["output"]["stdout"] == "a\0b\0\0c" == aionis.logs(run["run_id"])["stdout"]
    assert run["result_summary"]["stdout_chars"] == 6


@pytest.mark.parametrize("octal, text", [("\\377", "\ufffd"), ("a\\303", "a\ufffd"), ("\\303(", "\ufffd("), ("\\355\\240\\200", "\ufffd\ufffd\ufffd")])
def test_what_is_no_utf8(aionis, shared, octal, text):
    assert aionis.sh(shared, f"printf '{octal}'")["output"]["stdout"] == text


# ---- summaries ----

@pytest.mark.parametrize("octal, preview, chars", [
    ("  a \\t\\n b  ", "a b", 10),
    ("\\302\\240a\\343\\200\\200b\\357\\273\\277", "a b", 5),
    ("\\360\\237\\214\\215", "\U0001f30d", 2),
    ("\\342\\200\\213", "\u200b", 1),
    ("\\n\\n", "", 2),
])
def test_previews_squeeze_white_space(aionis, shared, octal, preview, chars):
    summary = aionis.sh(shared, f"printf '{octal}'")["result_summary"]
    assert (summary["stdout_preview"], summary["stdout_chars"]) == (preview, chars)


@pytest.mark.parametrize("script, preview", [
    ("head -c 240 /dev/zero | tr '\\0' x", "x" * 240),
    ("head -c 241 /dev/zero | tr '\\0' x", "x" * 239 + "..."),
    ("head -c 9999 /dev/zero | tr '\\0' x", "x" * 239 + "..."),
    ("head -c 237 /dev/zero | tr '\\0' x; printf ' yyyyyyy'", "x" * 237 + " y..."),
    ("head -c 238 /dev/zero | tr '\\0' x; printf ' yyyyyyy'", "x" * 238 + "..."),
    ("head -c 238 /dev/zero | tr '\\0' x; printf '\\360\\237\\214\\215'", "x" * 238 + "\U0001f30d"),
    ("head -c 238 /dev/zero | tr '\\0' x; printf '\\360\\237\\214\\215z'", "x" * 238 + "\ud83c..."),
    ("head -c 237 /dev/zero | tr '\\0' x; printf '\\360\\237\\214\\215zz'", "x" * 237 + "\U0001f30d..."),
])
def test_previews_are_clipped_by_units(aionis, shared, script, preview):
    assert aionis.sh(shared, script)["result_summary"]["stdout_preview"] == preview


def test_a_preview_of_the_result_is_pruned(aionis, shared):
    run = aionis.run(shared, "echo", "a  b\n", "x" * 200, "third", "fourth")
    expected = '{"argv":["echo","a b","' + "x" * 119 + '..."],"canceled":false,"command":"echo","executor":"local_process","signal":null}'
    expected = expected if len(expected) <= 240 else expected[:239].rstrip() + "..."
    assert run["result_summary"]["result_preview"] == expected


def test_what_is_large_is_said(aionis, shared):
    run = aionis.sh(shared, "head -c 1025 /dev/zero | tr '\\0' x; head -c 1024 /dev/zero | tr '\\0' x >&2; exit 1")
    assert run["result_summary"]["signals"] == ["stderr_present", "nonzero_exit", "execution_error", "structured_result_object", "stdout_large"]


def test_half_of_a_pair_in_an_argument(aionis, shared):
    body = b'{"session_id":"%s","mode":"sync","action":{"kind":"command","argv":["echo","\\ud83d","a\\udf0d"]}}' % shared.encode()
    answer = aionis.post("execute", body=body, headers={"Content-Type": "application/json"})
    assert b'"argv":["echo","\\ud83d","a\\udf0d"]' in answer.body
    assert answer.json["run"]["output"]["stdout"] == "\ufffd a\ufffd\n"


# ---- many ----

def test_there_is_no_idempotency(aionis, shared):
    first, second = (aionis.execute(shared, "echo", "same")["run"] for _ in range(2))
    assert first["run_id"] != second["run_id"]


def test_many_sync_runs_at_once(aionis):
    sessions = [aionis.session() for _ in range(4)]
    runs = together(*[lambda i=i: aionis.run(sessions[i % 4], "echo", str(i)) for i in range(32)])
    assert [run["output"]["stdout"] for run in runs] == [f"{i}\n" for i in range(32)]
    assert len({run["run_id"] for run in runs}) == 32


def test_a_sync_run_goes_on_without_its_client(aionis, session):
    with pytest.raises(TimeoutError):
        aionis.http.post("/v1/memory/sandbox/execute", {"session_id": session, "mode": "sync", "action": {
            "kind": "command", "argv": ["sh", "-c", "until [ -e go ]; do sleep 0.02; done; echo done > result"]}}, timeout=0.5)
    aionis.sh(session, "touch go")
    until(lambda: aionis.sh(session, "cat result")["output"]["stdout"] == "done\n", "the run to end")


def test_nothing_is_left_of_what_a_session_may_use(aionis, session):
    """Limits are the sandbox's: a run that wants too much dies, the session lives."""
    run = aionis.sh(session, "x=a; while true; do x=$x$x; done", timeout_ms=60000)
    assert run["status"] == "failed"
    assert aionis.run(session, "echo", "alive")["output"]["stdout"] == "alive\n"


def test_unknown_runs(aionis):
    for route in ("runs/get", "runs/logs", "runs/artifact", "runs/cancel"):
        for run in (SOME, "ffffffff-ffff-ffff-ffff-ffffffffffff"):
            with pytest.raises(Refused) as refused:
                aionis.call(route, run_id=run)
            assert (refused.value.status, refused.value.error) == (404, "sandbox_run_not_found")
            assert refused.value.details == {"run_id": run, "tenant_id": "default", "scope": "default"}


def test_a_runs_id_in_capitals_is_another_one(aionis, shared):
    run = aionis.run(shared, "echo")["run_id"]
    with pytest.raises(Refused) as refused:
        aionis.get(run.upper())
    assert refused.value.status == 404
