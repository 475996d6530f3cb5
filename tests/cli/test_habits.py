# SPDX-License-Identifier: Apache-2.0
"""What somebody types who comes from docker, Agentuity or E2B, and what burrow makes of it."""
import json

import pytest

from test_commands import burrow, pytestmark, server, work  # noqa: F401
from test_live_commands import terminal  # noqa: F401


# ---- try ----

def test_a_failed_command_and_what_is_left_out_are_told_before_the_question(terminal, tmp_path):  # noqa: F811
    directory = tmp_path / "here"
    directory.mkdir()
    (directory / "a").write_text("a\n")
    window = terminal("try", "--dir", directory, "--", "sh", "-c", "echo b >>a; ln -s /etc/passwd away; exit 2")
    shown = window.wait_for("Apply 1 change?")
    before = shown[:shown.index("Apply 1 change?")]
    assert "the command ended with exit code 2" in before and "left out (1)" in before
    window.type("n", "Enter")
    assert window.wait_for("ended with 2").count("left out") == 1


def test_a_change_of_permissions_is_shown(burrow, tmp_path):  # noqa: F811
    directory = tmp_path / "here"
    directory.mkdir()
    (directory / "a").write_text("a\n")
    (directory / "a").chmod(0o644)
    assert "~ a (mode 644, now 755)\n" in burrow.text("try", "--dir", directory, "--discard", "--", "chmod", "755", "a")


# ---- snapshot build ----

def test_an_unchanged_build_has_the_tag_and_the_public_that_it_asks_for(burrow, tmp_path):  # noqa: F811
    (tmp_path / "a").write_text("a\n")
    (tmp_path / "agentuity-snapshot.yaml").write_text("version: 1\nruntime: base:latest\nname: twice\nfiles:\n  - a\n")
    made = burrow.json("snapshot", "build", tmp_path)
    tagged = burrow.json("snapshot", "build", tmp_path, "--tag", "production")
    assert tagged["tag"] == "production" and burrow.json("snapshot", "get", "twice:production")["id"] == tagged["id"]
    assert burrow.json("snapshot", "get", "twice:latest")["id"] == made["id"]
    public = burrow.json("snapshot", "build", tmp_path, "--public", "--confirm")
    assert public["public"] is True
    described = burrow.json("snapshot", "build", tmp_path, "--description", "other")
    assert described["description"] == "other"
    again = burrow.json("snapshot", "build", tmp_path, "--description", "other")
    assert again["unchanged"] is True and again["id"] == described["id"] and again["runtime"] == "base:latest"
    for item in burrow.json("snapshot", "list"):
        if item["name"] == "twice":
            burrow("snapshot", "delete", item["id"], "--confirm")


ONE_BUILD = """version: 1
runtime: base:latest
name: equal
description: one
files: [a]
env: {LITERAL: one, GIVEN: "${GIVEN}"}
metadata: {of: one}
"""


@pytest.fixture
def build(burrow, tmp_path):  # noqa: F811
    (tmp_path / "a").write_text("a\n")
    (tmp_path / "a").chmod(0o644)
    (tmp_path / "agentuity-snapshot.yaml").write_text(ONE_BUILD)

    def run(*words, given="one"):
        return burrow.json("snapshot", "build", tmp_path, "--env", f"GIVEN={given}", *words)
    yield run
    for item in burrow.json("snapshot", "list"):
        if item["name"] == "equal":
            burrow("snapshot", "delete", item["id"], "--confirm")


CHANGES = {
    "runtime": (lambda file: file.write_text(ONE_BUILD.replace("base:latest", "host:latest")), {}, ()),
    "literal variable": (lambda file: file.write_text(ONE_BUILD.replace("LITERAL: one", "LITERAL: two")), {}, ()),
    "variable that is given": (None, {"given": "two"}, ()),
    "description": (lambda file: file.write_text(ONE_BUILD.replace("description: one", "description: two")), {}, ()),
    "description that is given": (None, {}, ("--description", "two")),
    "metadata": (lambda file: file.write_text(ONE_BUILD.replace("of: one", "of: two")), {}, ()),
    "metadata that are given": (None, {}, ("--metadata", "of=two")),
    "content": (lambda file: (file.parent / "a").write_text("b\n"), {}, ()),
    "mode": (lambda file: (file.parent / "a").chmod(0o755), {}, ()),
    "path": (lambda file: ((file.parent / "b").write_text("a\n"), file.write_text(ONE_BUILD.replace("[a]", "[b]"))), {}, ()),
    "tag": (None, {}, ("--tag", "two")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_build_is_unchanged_only_where_all_that_goes_into_it_is_equal(build, tmp_path, what):  # noqa: F811
    change, given, words = CHANGES[what]
    first = build()
    same = build()
    assert same["unchanged"] is True and same["id"] == first["id"]
    if change:
        change(tmp_path / "agentuity-snapshot.yaml")
    second = build(*words, **given)
    assert "unchanged" not in second and second["id"] != first["id"]
    same = build(*words, **given)
    assert same["unchanged"] is True and same["id"] == second["id"]


def test_a_changed_variable_is_in_the_snapshot(build, burrow):  # noqa: F811
    build()
    build(given="two")
    assert burrow.text("run", "--snapshot", "equal", "--", "sh", "-c", "echo $GIVEN $LITERAL") == "two one\n"


def test_a_build_is_not_unchanged_by_one_of_another_tag(build, burrow, tmp_path):  # noqa: F811
    file = tmp_path / "agentuity-snapshot.yaml"
    file.write_text(ONE_BUILD.replace("base:latest", "host:latest"))
    foo = build("--tag", "foo")
    file.write_text(ONE_BUILD)
    plain = build()
    assert plain["id"] != foo["id"] and (plain["runtime"], plain["tag"]) == ("base:latest", "latest")
    back = build("--tag", "foo")
    assert back["id"] != foo["id"] and back["runtime"] == "base:latest"


def test_a_build_whose_tag_went_elsewhere_is_made_again(build, burrow):  # noqa: F811
    first = build()
    second = build(given="two")
    back = build()
    assert "unchanged" not in back and back["id"] not in (first["id"], second["id"])
    assert burrow.json("snapshot", "get", "equal:latest")["id"] == back["id"]
    assert build()["unchanged"] is True


def test_an_unchanged_build_that_is_forced_is_made_again(build):
    assert build()["id"] != build("--force")["id"]


@pytest.mark.parametrize("wrong, right", [("file", "files"), ("enviroment", None), ("dependancies", "dependencies"), ("Runtime", "runtime")])
def test_a_word_that_a_build_file_does_not_have_is_refused_by_its_name(burrow, tmp_path, wrong, right):  # noqa: F811
    (tmp_path / "agentuity-snapshot.yaml").write_text(f"version: 1\nruntime: base:latest\nname: misspelled\n{wrong}:\n  - a\n")
    said = burrow.error("snapshot", "build", tmp_path, code=2)
    assert f"agentuity-snapshot.yaml: {wrong}: unknown field" in said and (not right or f"did you mean '{right}'?" in said), said
    assert "misspelled" not in burrow.text("snapshot", "list")


@pytest.mark.parametrize("text, said", [("- a\n", "must be a map"), ("runtime: base:latest\nfiles: {a: b}\n", "files: must be a list"),
                                        ("runtime: base:latest\nenv: [a]\n", "env: must be a map"), ("runtime: [a]\n", "runtime: must be a string"),
                                        ("runtime: base:latest\nenv: {A: [a]}\n", "env.A: must be a string"), ("name: a\n", "names no runtime"),
                                        ("runtime: base:latest\npublic: maybe\n", "public: must be true or false"),
                                        ("runtime: base:latest\ndir: a/../..\n", "dir: 'a/../..' is not below"), ("runtime: base:latest\ndir: /etc\n", "is not below")])
def test_a_build_file_with_a_value_of_another_kind_is_refused(burrow, tmp_path, text, said):  # noqa: F811
    (tmp_path / "agentuity-snapshot.yaml").write_text(text)
    assert said in burrow.error("snapshot", "build", tmp_path, code=2)


def test_all_words_of_the_format_are_heeded(burrow, tmp_path):  # noqa: F811
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a").write_text("a\n")
    (tmp_path / "b").write_text("b\n")
    (tmp_path / "agentuity-snapshot.json").write_text(json.dumps({
        "$schema": "https://agentuity.dev/schema/cli/v1/agentuity-snapshot.json", "version": 1, "runtime": "base:latest", "name": "worded", "description": "d",
        "dir": "./below", "files": ["**"], "dependencies": [], "packages": [], "env": {"YES": True, "NUMBER": 7, "NOTHING": None}, "metadata": {"k": "v"}, "public": True}))
    made = burrow.json("snapshot", "build", tmp_path, "--confirm")
    try:
        assert made["public"] is True and made["description"] == "d" and made["metadata"] == {"k": "v"}
        assert burrow.text("run", "--snapshot", made["id"], "--", "sh", "-c", "ls; echo $YES $NUMBER $NOTHING.") == "a\ntrue 7 .\n"
    finally:
        burrow("snapshot", "delete", made["id"], "--confirm")


@pytest.mark.parametrize("what, said", [("dependencies", "a;b"), ("packages", "neither npm nor bun")])
def test_packages_of_a_build_file_reach_the_server(burrow, tmp_path, what, said):  # noqa: F811
    (tmp_path / "agentuity-snapshot.yaml").write_text(f"runtime: base:latest\n{what}: ['a;b']\n" if what == "dependencies" else f"runtime: base:latest\n{what}: [typescript]\n")
    assert said in burrow.error("snapshot", "build", tmp_path, code=2)


# ---- network ----

def test_rules_for_a_sandbox_without_a_network_say_that_it_has_none(burrow, work):  # noqa: F811
    told = burrow("network", "policy", work, "--allow", "example.com:443").stderr.decode()
    assert f"burrow network policy {work} --enabled on" in told
    assert burrow("network", "policy", work).stderr == b""
    burrow("network", "policy", work, "--enabled", "off", "--default", "allow")


# ---- several at once ----

def test_delete_goes_on_after_one_that_is_not_there(burrow):  # noqa: F811
    for name in ("first", "last"):
        burrow("create", "--name", name)
    told = burrow("delete", "first", "nope", "last", code=3)
    assert told.stdout.decode().splitlines() == ["deleted sandbox first", "deleted sandbox last"]
    assert b"there is no sandbox 'nope'" in told.stderr
    for name in ("first", "last"):
        assert burrow.error("get", name, code=3)
    burrow("create", "--name", "first")
    told = json.loads(burrow("delete", "first", "nope", "--json", code=3).stdout)
    assert told["error"]["code"] == "not_found" and told["deleted"] == ["first"]


# ---- what to do next ----

@pytest.mark.parametrize("words, code", [(["fs", "ls", "work", "/nope"], 3), (["fs", "rm", "work", "/nope"], 3), (["cp", "work:/nope", "."], 3),
                                         (["fs", "rmdir", "work", "/workspace/full"], 6)])
def test_a_path_is_not_told_of_as_an_id_or_a_state(burrow, work, words, code):  # noqa: F811
    burrow("fs", "mkdir", work, "/workspace/full/of", "-p")
    told = burrow.error(*words, code=code)
    assert "id or name" not in told and "its state" not in told
    assert "path" in told or "'burrow fs" in told or "No such file" in told or "'-r'" in told


# ---- JSON ----

@pytest.mark.parametrize("words, code, word", [
    (["cp", "/nope/file", "work:/"], 1, "local"), (["list", "--nope"], 2, "invalid_request"), (["context", "use", "nope"], 3, "not_found"),
    (["wait", "work", "--state", "paused", "--timeout", "10ms"], 124, "timeout"), (["list", "--url", "http://127.0.0.1:1"], 5, "unreachable"),
    (["run", "--nope"], 2, "invalid_request"), (["run"], 2, "invalid_request"), (["runtime", "show", "nope"], 3, "not_found"),
    (["runtime", "list", "--nope"], 2, "invalid_request"), (["runtime", "remove", "nope"], 3, "not_found"),
    (["key", "revoke", "nope"], 3, "not_found"), (["key", "list", "--nope"], 2, "invalid_request"), (["key", "create", "--scopes", "read"], 2, "invalid_request")])
def test_every_failure_has_a_code_in_its_json(burrow, work, words, code, word):  # noqa: F811
    told = json.loads(burrow(*words, "--json", code=code).stdout)
    assert told["error"]["code"] == word and told["error"]["message"]


# ---- one shape ----

def test_one_thing_has_one_shape_wherever_it_is_told(burrow, work):  # noqa: F811
    made = burrow.json("fork", work, "--name", "shape")
    waited = burrow.json("wait", "shape", "--state", "idle,running")
    listed = next(item for item in burrow.json("list") if item["id"] == made["id"])
    for told in (made, waited, listed, burrow.json("get", "shape")):
        assert told["sandboxId"] == told["id"] and told["status"] == told["state"]
    burrow("delete", "shape")
    made = burrow.json("snapshot", "create", work, "--tag", "shape")
    listed = next(item for item in burrow.json("snapshot", "list") if item["id"] == made["id"])
    for told in (made, listed, burrow.json("snapshot", "get", "shape")):
        assert told["snapshotId"] == told["id"]
    burrow("snapshot", "delete", made["id"], "--confirm")


# ---- words of other tools ----

@pytest.mark.parametrize("words, way", [
    (["stop", "work"], "burrow pause"), (["kill", "work"], "burrow delete"), (["inspect", "work"], "burrow get"), (["images"], "burrow runtime list"),
    (["start", "work"], "burrow resume"), (["shell", "work"], "burrow attach"), (["connect", "work"], "burrow attach"), (["build", "."], "burrow snapshot build"),
    (["spawn"], "burrow create"), (["pull", "x"], "burrow runtime add"), (["commit", "work"], "burrow snapshot create")])
def test_a_command_of_another_tool_is_answered_with_burrows(burrow, words, way):  # noqa: F811
    assert f"'{way}'" in burrow.error(*words, code=2)


@pytest.mark.parametrize("words, way", [(["exec", "-it", "work", "bash"], "burrow attach"), (["exec", "-t", "work", "bash"], "burrow attach"),
                                        (["run", "-it", "--", "bash"], "--tty"), (["run", "--rm", "--", "true"], "leave it out")])
def test_an_option_of_another_tool_is_answered_with_burrows(burrow, work, words, way):  # noqa: F811
    assert way in burrow.error(*words, code=2)


def test_a_missing_word_is_named(burrow):  # noqa: F811
    assert "burrow: SANDBOX is missing: burrow get" in burrow.error("get", code=2)
    assert "burrow: PORT is missing: burrow port create" in burrow.error("port", "create", "work", code=2)


# ---- lists ----

def test_a_list_says_that_there_is_more(burrow, work):  # noqa: F811
    burrow("create", "--name", "second")
    told = burrow("list", "--limit", "1")
    assert len(told.stdout.splitlines()) == 2 and b"--offset 1" in told.stderr, told.stderr
    assert burrow("list", "--limit", "1", "--json").stderr == b""
    assert burrow("list", "--status", "idle", "--limit", "50").stderr == b""
    burrow("delete", "second")
