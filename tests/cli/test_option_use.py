# SPDX-License-Identifier: Apache-2.0
"""Every option of every command is used by a test: found by reading the command lines in the tests' sources, which are lists of words or lines of a shell."""
import ast
import pathlib
import re
import shlex
import subprocess

from test_commands import BURROW, commands

TESTS = pathlib.Path(__file__).resolve().parents[1]
SHARED = {"--url", "--context", "--api-key", "--data", "--org-id", "--json", "--help"}  # of many: one use will do
ELSEWHERE = {("serve",)}  # its options are settings, which are also variables and fields of a file: test_man.py has all of them


def help_of(words):
    return subprocess.run([BURROW, *words, "--help"], capture_output=True, text=True, check=True).stdout


def options_of(text):
    """{"--recursive": "-r" or None}"""
    return {long: letter or None for letter, long in re.findall(r"^ +(?:(-\w), )?(--[\w-]+)", text, re.M)}


def names_of(words, text):
    """All words the last part of a command can be."""
    found = re.search(r"^also called:(.*)", text, re.M)
    return [words[-1], *(found[1].split() if found else [])]


GROUPS = {"files": "fs", "file": "fs", "ckpt": "checkpoint", "rt": "runtime"}
ALSO = {("runtime", "ls"): ("runtime", "list"), ("runtime", "get"): ("runtime", "show"), ("runtime", "info"): ("runtime", "show")}


# Commands that have another one's table, of which a use counts for both.
SAME = {("cp",): [("fs", "cp")], ("ls",): [("list",), ("fs", "ls")], ("execution", "logs"): [("logs",), ("job", "logs")], ("job", "logs"): [("logs",)],
        ("logs",): [("job", "logs")]}
# Files whose helpers put these words in front of what they are given.
IN_FRONT = {"test_run.py": ["run"], "test_run_network.py": ["run"], "test_images.py": ["run"], "test_doctor.py": ["doctor"], "test_key.py": ["key"],
            "test_repair.py": ["repair"], "test_mcp.py": ["mcp"], "test_runtime.py": ["runtime", "build"]}


class Lines(ast.NodeVisitor):
    """Collects command lines as lists of words; what is no constant is "?"."""

    def __init__(self):
        self.found = []

    def word(self, node):
        if isinstance(node, ast.Starred):
            return self.words([node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else []][0])
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return [node.value]
        if isinstance(node, ast.JoinedStr):
            return ["".join(str(part.value) if isinstance(part, ast.Constant) else "?" for part in node.values)]
        return ["?"]

    def words(self, nodes):
        return [word for node in nodes for word in self.word(node)]

    def take(self, nodes):
        words = self.words(nodes)
        if words:
            self.found.append(words)

    def visit_Call(self, node):
        self.take(node.args)
        self.generic_visit(node)

    def visit_List(self, node):
        self.take(node.elts)
        self.generic_visit(node)

    visit_Tuple = visit_List

    def lines(self, text):
        for line in re.findall(r"burrow (?:[^\n|&>#]*)", text):
            try:
                self.found.append(shlex.split(line))
            except ValueError:
                self.found.append(line.split())

    def visit_JoinedStr(self, node):
        self.lines(self.word(node)[0])
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, str):
            self.lines(node.value)


def command_lines():
    found = []
    for folder in ("cli", "api"):
        for file in sorted((TESTS / folder).glob("test_*.py")):
            lines = Lines()
            lines.visit(ast.parse(file.read_text()))
            found += lines.found
            if file.name in IN_FRONT:
                found += [[*IN_FRONT[file.name], *line] for line in lines.found]
    return found


def test_every_option_of_every_command_is_used_by_a_test():
    tables, options = {}, {}
    for words in commands():
        text = help_of(words)
        options[words] = options_of(text)
        for name in names_of(words, text):
            tables[(*words[:-1], name)] = words
    tables.update(ALSO)
    used, anywhere = {words: set() for words in options}, set()
    for line in command_lines():
        named = [word for word in (line[1:] if line[0] == "?" else line) if word not in ("burrow", "cloud", "sandbox", "sb")]
        anywhere |= {word.split("=")[0] for word in named}
        named[:1] = [GROUPS.get(named[0], named[0])] if named else []
        command = next((tables[key] for key in (tuple(named[:2]), tuple(named[:1])) if key in tables), None)
        if command:
            used[command] |= {word.split("=")[0] for word in named}
    missing = []
    for words, rows in options.items():
        if words in ELSEWHERE:
            continue
        for long, letter in rows.items():
            there = anywhere if long in SHARED else used[words].union(*(used[same] for same in SAME.get(words, [])))
            if long not in there and (letter is None or letter not in there):
                missing.append(" ".join([*words, long]))
    assert not missing, f"no test uses: {missing}"
