# SPDX-License-Identifier: Apache-2.0
"""make install: whoever has built the programs needs to build nothing else."""
import json
import os
import pathlib
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BURROW = pathlib.Path(os.environ.get("BURROW", TOP / "build/src/burrow")).absolute()
BUILD = BURROW.parents[1]

pytestmark = pytest.mark.skipif(not (BUILD / "build.ninja").exists(), reason="this is no build directory")


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=TOP).stdout


def ninja(tool, *words):
    return [line.strip().removeprefix("| ") for line in output("ninja", "-C", BUILD, "-t", tool, *words).splitlines()]


def test_the_programs_are_built_without_tests_and_benchmarks():
    sources = [name.removeprefix("../") for name in ninja("inputs", "programs")]
    assert "src/cli/main.c" in sources
    assert not [name for name in sources if name.startswith(("tests/", "bench/"))]


def test_everything_that_is_installed_belongs_to_the_programs():
    wanted = json.loads(output("meson", "introspect", "--installed", BUILD))
    made = {str(pathlib.Path(path).relative_to(BUILD)) for path in wanted if path.startswith(f"{BUILD}/")}
    assert {"src/burrow", "packaging/burrow-server", "packaging/burrow-archive", "packaging/burrow-courier", "packaging/burrow-egress", "packaging/burrow-ssh"} <= made
    # These two are written when the build is configured.
    assert made - set(ninja("query", "programs")) <= {"packaging/burrow.service", "packaging/libburrow.pc"}


def test_make_install_builds_the_programs_and_no_more():
    said = output("make", "-n", "install", f"BUILD={BUILD}").splitlines()
    assert said == [f"ninja -C {BUILD} programs", f"meson install -C {BUILD} --no-rebuild"]
