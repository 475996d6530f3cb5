# SPDX-License-Identifier: Apache-2.0
"""Tenant, scope and actor: how they are found, what they may be, and that nobody sees what is another's."""
import pytest

from aionis import ROUTES, Refused, check_refused, issues_of

SOME = "00000000-0000-4000-8000-000000000000"
ACTION = {"kind": "command", "argv": ["echo", "hi"]}
BODIES = {"sessions": {}, "execute": {"session_id": SOME, "action": ACTION}, "runs/get": {"run_id": SOME},
          "runs/logs": {"run_id": SOME}, "runs/artifact": {"run_id": SOME}, "runs/cancel": {"run_id": SOME}}


def test_the_defaults_are_default_and_default(aionis):
    answer = aionis.call("sessions")
    assert (answer["tenant_id"], answer["scope"]) == ("default", "default")


@pytest.mark.parametrize("body, header, tenant", [
    ({"tenant_id": "body"}, None, "body"),
    ({"tenant_id": "body"}, "header", "body"),
    ({"tenant_id": "  body "}, "header", "body"),
    ({}, "header", "header"),
    ({}, "  header ", "header"),
    ({"tenant_id": ""}, "header", "header"),
    ({"tenant_id": "   "}, "header", "header"),
    ({"tenant_id": 17}, "header", "header"),
    ({"tenant_id": None}, "header", "header"),
    ({"tenant_id": ["a"]}, "header", "header"),
    ({}, "   ", "default"),
])
def test_the_header_counts_where_the_body_names_no_tenant(aionis, body, header, tenant):
    headers = {"X-Tenant-Id": header} if header is not None else None
    assert aionis.call("sessions", headers=headers, **body)["tenant_id"] == tenant


@pytest.mark.parametrize("tenant", ["a", "A9", "0", "a.b_c-d", "x" * 64])
def test_tenants_that_can_be(aionis, tenant):
    assert aionis.call("sessions", tenant_id=f" {tenant}\t")["tenant_id"] == tenant


@pytest.mark.parametrize("tenant", [".a", "-a", "_a", "a b", "a/b", "é", "x" * 65, "a\n.b"])
def test_tenants_that_cannot_be(aionis, tenant):
    details = check_refused(aionis.post("sessions", {"tenant_id": tenant}), 400, "invalid_tenant_id")
    assert details == {"tenant_id": tenant}


def test_a_blank_tenant_has_no_details(aionis):
    assert check_refused(aionis.post("sessions", {"tenant_id": "  "}), 400, "invalid_tenant_id") is None


@pytest.mark.parametrize("scope", ["a", "a/b c:é", "日本", "x" * 5000, "Tenant:x", "xtenant:"])
def test_scopes_that_can_be(aionis, scope):
    assert aionis.call("sessions", scope=f"  {scope} ")["scope"] == scope


@pytest.mark.parametrize("scope", ["tenant:a", "tenant:", " tenant:b", "  ", "\t"])
def test_scopes_that_cannot_be(aionis, scope):
    assert check_refused(aionis.post("sessions", {"scope": scope}), 400, "invalid_scope") == {"scope": scope.strip()}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("field", ["tenant_id", "scope"])
@pytest.mark.parametrize("value", ["", None, 1, True, [], {}])
def test_names_of_another_type_are_faults_of_the_body(aionis, route, field, value):
    assert issues_of(aionis.post(route, {**BODIES[route], field: value})) == [field]


@pytest.mark.parametrize("route", ["sessions", "execute", "runs/cancel"])
@pytest.mark.parametrize("value", ["", None, 1])
def test_an_actor_is_a_text_where_there_is_one(aionis, route, value):
    assert issues_of(aionis.post(route, {**BODIES[route], "actor": value})) == ["actor"]


def test_an_actor_is_never_said_back(aionis, session):
    assert "somebody" not in str(aionis.call("sessions", actor="somebody"))
    run = aionis.run(session, "echo", "hi", actor="somebody")
    assert "somebody" not in str([run, aionis.artifact(run["run_id"])])


@pytest.mark.parametrize("other", [{"tenant_id": "b", "scope": "s"}, {"tenant_id": "a", "scope": "t"},
                                   {"tenant_id": "b", "scope": "t"}, {}])
def test_another_pair_sees_nothing_and_cannot_tell_why(aionis, other):
    mine, theirs = aionis.of(tenant_id="a", scope="s"), aionis.of(**other)
    session = mine.session()
    run = mine.run(session, "echo", "secret")["run_id"]
    pair = {"tenant_id": "default", "scope": "default", **other}
    for call, id_, name, error in [
            (lambda id_: theirs.execute(id_, "echo", "hi"), session, "session_id", "sandbox_session_not_found"),
            *[(lambda id_, route=route: theirs.call(route, run_id=id_), run, "run_id", "sandbox_run_not_found")
              for route in ROUTES[2:]]]:
        answers = []
        for asked in (id_, SOME):
            with pytest.raises(Refused) as refused:
                call(asked)
            assert (refused.value.status, refused.value.error) == (404, error)
            assert refused.value.details == {name: asked, **pair}
            answers.append(str({**refused.value.payload, "request_id": None}).replace(asked, "ID"))
        assert answers[0] == answers[1]
    assert mine.get(run)["cancel_requested"] is False


def test_the_documents_pair_in_the_header_sees_it(aionis):
    session = aionis.of(tenant_id="a").session()
    assert aionis.call("execute", headers={"X-Tenant-Id": "a"}, session_id=session, mode="sync", action=ACTION)["run"]["exit_code"] == 0
