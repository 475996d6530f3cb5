# SPDX-License-Identifier: Apache-2.0
"""The project's own rules about itself, checked by tools/check-*: each finds what it is there for, and nothing of
it is in the tree."""
import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"


def check(name, *words, **kwargs):
    done = subprocess.run([TOP / "tools" / f"check-{name}", *words], capture_output=True, text=True, **kwargs)
    return done.returncode, done.stdout + done.stderr


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# ---- layers ----

def test_an_arrow_that_is_not_in_the_table_is_found(tmp_path):
    write(tmp_path / "base/x.c", '#include "engine/box.h"\n')
    code, said = check("layers", tmp_path)
    assert code == 1 and 'base must not include "engine/box.h"' in said


def test_a_folder_without_a_row_is_found(tmp_path):
    write(tmp_path / "strange/x.c", "")
    code, said = check("layers", tmp_path)
    assert code == 1 and "folder 'strange' has no row in the table" in said


def test_a_row_of_the_store_is_not_seen_by_a_front_through_the_core(tmp_path):
    write(tmp_path / "store/rows.h", "")
    write(tmp_path / "core/inside.h", '#include "store/rows.h"\n')
    write(tmp_path / "core/face.h", '#include "core/inside.h"\n')
    write(tmp_path / "core/face.c", '#include "core/face.h"\n')
    assert check("layers", tmp_path)[0] == 0
    write(tmp_path / "front/x/routes.c", '#include "core/face.h"\n')
    code, said = check("layers", tmp_path)
    assert code == 1 and 'front must not see "store/rows.h", which "core/inside.h" includes' in said


def test_two_files_of_one_name_are_found(tmp_path):
    write(tmp_path / "cli/main.c", "")
    write(tmp_path / "serve/main.c", "")
    write(tmp_path / "core/stream.c", "")
    assert check("layers", tmp_path)[0] == 0
    write(tmp_path / "front/x/stream.c", "")
    code, said = check("layers", tmp_path)
    assert code == 1 and "core/stream.c is called 'stream.c' too" in said


def tables_of_check_layers():
    """ARROWS and ROOMS, as the tool has them."""
    tree = ast.parse((TOP / "tools/check-layers").read_text())
    values = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    return ast.literal_eval(values["ARROWS"]), ast.literal_eval(values["ROOMS"])


def may_use(heading):
    """The table below a heading of ARCHITECTURE.md: who may use whom. What stands in parentheses or behind a semicolon is more about it."""
    table = (TOP / "ARCHITECTURE.md").read_text().split(f"| {heading} | what | may use |\n")[1].split("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[1:]]
    plain = {row[0].strip("`").removeprefix("src/"): re.sub(r"\(.*?\)|;.*", "", row[-1]) for row in rows}
    return {name: set(re.findall(r"\w+", text)) - {"libc", "no", "other"} for name, text in plain.items()}


def test_the_map_shows_the_arrows_that_are_checked():
    arrows, rooms = tables_of_check_layers()
    assert may_use("folder") == arrows
    assert may_use("room") == rooms


# ---- documents ----

@pytest.mark.parametrize("text, fault", [
    ("See `src/base/gone.c`.", "there is no file 'src/base/gone.c'"),
    ("See `gone.h`, `base/x.c`.", "there is no file 'gone.h'"),
    ("See `gone*.c`.", "there is no file 'gone*.c'"),
    ("It calls `x_gone(y)`.", "nothing in the tree is called 'x_gone'"),
    ("```\na ──> x_gone ──> b\n```", "nothing in the tree is called 'x_gone'"),
    ("In `base/x.c: gone`.", "no 'base/x.c' has 'gone'"),
    ("Then `X_GONE`.", "nothing in the tree is called 'X_GONE'"),
    ("[more](docs/gone.md)", "the link 'docs/gone.md' leads nowhere"),
])
def test_a_name_in_a_document_that_is_gone_is_found(tmp_path, text, fault):
    write(tmp_path / "src/base/x.c", "int x_there;\n")
    write(tmp_path / "README.md", "`src/base/x.c`, `base/x.c`, `x.c`, `x*.c`, `cli/NAME.c`: `x_there`, `base/x.c: x_there` and x_gone.\n")
    assert check("docs", tmp_path) == (0, "")
    write(tmp_path / "ARCHITECTURE.md", text + "\n")
    code, said = check("docs", tmp_path)
    assert code == 1 and said == f"{tmp_path}/ARCHITECTURE.md: {fault}\n"


def test_every_launch_step_is_explained():
    steps = set()
    for name in ("launch.c", "enter.c"):
        steps.update(re.findall(r'\{"([a-z]+\.[a-z]+)", \w+', (TOP / "src/engine" / name).read_text()))
    rows = re.findall(r"^\| (`.*?) \|", (TOP / "docs/internals/launch.md").read_text(), re.M)
    assert len(steps) > 20
    assert set(re.findall(r"`([a-z.]+)`", "".join(rows))) == steps


def test_every_fuzz_target_is_built_seeded_and_explained():
    """A parser's target that is not in the list, has no seeds, or is not in the table of parsers is forgotten."""
    folder = TOP / "tests" / "fuzz"
    targets = {path.stem.removeprefix("fuzz-") for path in folder.glob("fuzz-*.c")}
    listed = re.search(r"fuzz_targets = \[(.*?)\]", (TOP / "tests" / "meson.build").read_text(), re.S)[1]
    table = "".join(line for line in (TOP / "docs/internals/fuzzing.md").read_text().splitlines(True) if line.startswith("|"))
    assert targets == set(re.findall(r"'([a-z0-9-]+)'", listed))
    assert targets == {path.name for path in (folder / "seeds").iterdir() if any(path.iterdir())}
    assert targets <= set(re.findall(r"`([a-z0-9-]+)`", table))


def test_every_thread_of_the_server_is_in_the_table_of_threads():
    names = set()
    for path in (TOP / "src").rglob("*.c"):
        if path.is_relative_to(TOP / "src/cli"):
            continue
        text = path.read_text()
        names.update(re.findall(r'thread_set_name\("([^"]+)"\)', text))
        if "workers_new(" in text:
            names.update(re.findall(r'WORKERS_\w+(?:\] = \{|, )[^}";]*, "(\w+)"', text))
    table = (TOP / "ARCHITECTURE.md").read_text().split("| thread | what it does | may wait |\n")[1].split("\n\n")[0]
    told = set(re.findall(r"`([\w -]+?)(?:-N)?`", "".join(row.split(" | ")[0] for row in table.splitlines()[1:])))
    assert told - {"burrow-server"} == names


# ---- words ----

@pytest.mark.parametrize("text, fault", [
    ("int keeper_start(void);", "'keeper' is not used any more: monitor"),
    ("struct live *sandbox;", "'live' is not used any more: sandbox"),
    ("struct lock turn;", "'turn' is not used any more: lock, or round"),
    ("int make_parks(void);", "'parks' is not used any more: spare boxes, or pool"),
])
def test_a_word_that_was_given_up_is_found(tmp_path, text, fault):
    write(tmp_path / "core/x.c", '/* A keeper,\n * and news. */\nint take_turn(bool is_live); // "parks"\nchar *text = "texts";\n')
    assert check("words", tmp_path) == (0, "")
    path = write(tmp_path / "core/y.h", "\n" + text + "\n")
    code, said = check("words", tmp_path)
    assert code == 1 and said == f"{path}:2: {fault}\n"


def test_a_file_named_by_a_word_that_was_given_up_is_found(tmp_path):
    path = write(tmp_path / "engine/park.c", "")
    assert check("words", tmp_path) == (1, f"{path}: 'park' is not used any more: spare boxes, or pool\n")


# ---- format ----

def test_a_file_that_is_formatted_otherwise_is_found(tmp_path):
    shutil.copy(TOP / ".clang-format", tmp_path)
    write(tmp_path / "good.c", "int good;\n")
    assert check("format", tmp_path)[0] == 0
    write(tmp_path / "sub/bad.h", "int  bad ;\n")
    code, said = check("format", tmp_path)
    assert code != 0 and "bad.h:1" in said and "good.c" not in said


def test_nothing_to_format_is_a_mistake(tmp_path):
    code, said = check("format", tmp_path)
    assert code != 0 and "no C file in" in said


# ---- lengths ----

def function(lines):
    return "int f(void)\n{\n" + "    g();\n" * (lines - 1) + "}\n"


def test_a_function_of_more_than_sixty_lines_is_found(tmp_path):
    write(tmp_path / "x.c", function(60))
    assert check("lengths", tmp_path) == (0, "")
    write(tmp_path / "x.c", function(61))
    code, said = check("lengths", tmp_path)
    assert code == 1 and "x.c:2: f has 61 lines" in said


def test_a_file_of_more_than_eight_hundred_lines_is_found(tmp_path):
    write(tmp_path / "x.h", "int x;\n" * 800)
    assert check("lengths", tmp_path) == (0, "")
    write(tmp_path / "x.h", "int x;\n" * 801)
    code, said = check("lengths", tmp_path)
    assert code == 1 and "x.h: 801 lines" in said


def test_a_table_in_a_function_does_not_make_it_long(tmp_path):
    table = "    static const int t[] = {\n" + "        1,\n" * 100 + "    };\n"
    write(tmp_path / "x.c", "int f(void)\n{\n" + table + "    return t[0];\n}\n")
    assert check("lengths", tmp_path) == (0, "")


# ---- headers ----

RULES = ["any", "any but loops", "one per object", "plain values", "the loop", "one thread"]


@pytest.mark.parametrize("rule", RULES)
def test_a_header_that_says_its_threads_is_fine(tmp_path, rule):
    write(tmp_path / "base/x.h", LICENCE + f"/*\n * What it is for.\n * Threads: {rule}.\n */\n#pragma once\n")
    write(tmp_path / "base/y.h", LICENCE + f"/*\n * What it is for.\n *\n * Threads: {rule}; but for one\n * call.\n */\n#pragma once\n")
    assert check("headers", tmp_path) == (0, "")


def test_every_rule_is_explained_to_contributors():
    text = (TOP / "CONTRIBUTING.md").read_text()
    for rule in RULES:
        assert f"| `{rule}` |" in text


@pytest.mark.parametrize("comment, fault", [
    ("/* What it is for. */", "does not say which threads may call"),
    ("/*\n * What it is for. Threads: any.\n */", "does not say which threads may call"),
    ("/*\n * What it is for.\n * Threads: whoever likes.\n */", "which is none of: any, any but loops"),
    ("/*\n * What it is for.\n * Threads: any thread.\n */", "which is none of"),
    ("/*\n * What it is for.\n * Threads: any\n */", "which is none of"),
    ("/*\n * What it is for.\n * Threads: any;\n */", "which is none of"),
    ("/*\n * What it is for.\n * Threads: any.\n * Threads: the loop.\n */", "says twice"),
    ("#pragma once\n/*\n * Threads: any.\n */", "has no comment about what it is for"),
], ids=["silent", "not a line", "unknown", "longer", "no end", "no exception", "twice", "too late"])
def test_a_header_without_its_thread_rule_is_found(tmp_path, comment, fault):
    write(tmp_path / "base/sub/x.h", LICENCE + comment + "\n#pragma once\n")
    code, said = check("headers", tmp_path)
    assert code == 1 and "x.h: " in said and fault in said


# ---- all of them ----

def test_the_tree_keeps_the_rules_that_need_no_build():
    code, said = check("static")
    assert code == 0, said


# ---- commits ----

@pytest.fixture
def repository(tmp_path):
    def git(*words):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", "-C", tmp_path, *identity, *words], capture_output=True, text=True, check=True)

    def commit(message):
        git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", message)
    git("init", "-q", "-b", "main")
    commit("first: begin\n\nWhy.")
    git("tag", "v1")
    commit.git, commit.path = git, tmp_path
    return commit


def test_good_messages_and_merges_are_fine(repository):
    repository("core, front: do this\n\nThe problem. Why this way.")
    repository.git("checkout", "-q", "-b", "side", "v1")
    repository("src/base: do that\n\nWhy.")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge branch 'side'", "side")
    assert check("commits", cwd=repository.path) == (0, "")


@pytest.mark.parametrize("message, fault", [
    ("core: do this", "has no body"),
    ("core: do this\n\n  \n", "has no body"),
    ("did something\n\nWhy.", "does not begin with 'area: do x'"),
    ("wip\n\nWhy.", "is not finished"),
    ("core: wip\n\nWhy.", "is not finished"),
    ("fixup! core: do this\n\nWhy.", "is not finished"),
    ("core: do this.\n\nWhy.", "ends its subject with a full stop"),
    ("core: " + "x" * 70 + "\n\nWhy.", "has 76 characters in its subject"),
    ("", "does not begin with 'area: do x'"),
])
def test_a_bad_message_is_found(repository, message, fault):
    repository(message)
    repository("core: a good one\n\nWhy.")
    code, said = check("commits", cwd=repository.path)
    assert code == 1 and fault in said and "a good one" not in said


def test_only_what_came_after_the_tag_or_the_base_is_read(repository):
    repository("bad")
    base = repository.git("rev-parse", "HEAD").stdout.strip()
    repository("core: a good one\n\nWhy.")
    assert check("commits", cwd=repository.path)[0] == 1
    assert check("commits", base, cwd=repository.path) == (0, "")
    repository.git("tag", "v2")
    assert check("commits", cwd=repository.path) == (0, "")
