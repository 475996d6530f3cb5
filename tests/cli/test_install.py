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


# ---- what is installed ----

@pytest.fixture(scope="module")
def root(tmp_path_factory):
    if not (BUILD / "packaging" / "libburrow.pc").exists() or not (BUILD / "src" / "libburrow.so.1").exists():
        pytest.skip("libburrow is not built here")
    root = tmp_path_factory.mktemp("root")
    output("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root)
    return root


def found(root, pattern):
    [path] = root.rglob(pattern)
    return path


@pytest.mark.parametrize("is_static", [False, True])
def test_the_example_is_built_by_what_pkg_config_says(root, tmp_path, is_static):
    variables = {**os.environ, "PKG_CONFIG_PATH": str(found(root, "libburrow.pc").parent), "PKG_CONFIG_SYSROOT_DIR": str(root)}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libburrow"], capture_output=True, text=True, check=True, env=variables).stdout.split()
    flags = ["-l:libburrow.a" if is_static and flag == "-lburrow" else flag for flag in flags]
    program = tmp_path / "hello"
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", TOP / "docs/examples/hello.c", *flags, "-o", program], check=True)
    where = {**os.environ, "BURROW_URL": "http://127.0.0.1:1", "LD_LIBRARY_PATH": "" if is_static else str(found(root, "libburrow.so.1").parent)}
    done = subprocess.run([program, "true"], capture_output=True, text=True, env=where, timeout=60)
    assert done.returncode == 125 and "127.0.0.1:1" in done.stderr


def test_the_header_stands_alone(root, tmp_path):
    (tmp_path / "a.c").write_text("#include <burrow.h>\nint main(void) { burrow_close(0); return 0; }\n")
    header = f"-I{found(root, 'burrow.h').parent}"
    subprocess.run(["gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", header, "-fsyntax-only", tmp_path / "a.c"], check=True)
    subprocess.run(["gcc", "-std=c11", "-pedantic", "-Wall", "-Werror", header, "-fsyntax-only", tmp_path / "a.c"], check=True)


def test_the_installed_program_pages_and_completions_are_whole(root):
    program = found(root, "bin/burrow")
    assert subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.startswith("burrow ")
    pages = {path.name for path in root.rglob("man1/*.1")}
    assert {"burrow.1", "burrow-run.1", "burrow-commands.1", "burrow-serve.1"} <= pages
    for path in root.rglob("man1/*.1"):
        assert path.read_text().lstrip().startswith((".", "'")), path
    bash = found(root, "bash-completion/completions/burrow")
    subprocess.run(["bash", "-n", bash], check=True)
    assert bash.read_text() == output(program, "completion", "bash")
    assert found(root, "site-functions/_burrow").read_text() == output(program, "completion", "zsh")
    assert found(root, "vendor_completions.d/burrow.fish").read_text() == output(program, "completion", "fish")
    helpers = {path.name for path in root.rglob("libexec/burrow/*")}
    assert {"burrow-server", "burrow-archive", "burrow-egress", "burrow-tls"} <= helpers
