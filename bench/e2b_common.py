# SPDX-License-Identifier: Apache-2.0
"""What bench/e2b and bench/code share: a server whose default runtime has Python started ahead, and the stock clients, timed."""
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "tests" / "lib"))
os.environ.setdefault("BURROW_TEST_CACHE", str(PROJECT / "build/test-cache"))
import packages  # noqa: E402
import server as servers  # noqa: E402


def start_server(build, place, parked):
    """Of base:latest, in whose spare boxes an interpreter waits, as in those of code-interpreter:latest."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "data/catalog").mkdir(parents=True)
    text = (PROJECT / "runtimes/base.yaml").read_text()
    (place / "data/catalog/base.yaml").write_text(text + "\ninterpreter: python\n")
    return servers.Server(place / "data", environment={"BURROW_E2B_RUNTIME": "base:latest"}, options=["--parked-kept", str(parked)],
                          burrow=build.resolve() / "src/burrow").start()


def environment(server, place):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("E2B_", "BURROW_", "AGENTUITY_"))}
    url = f"http://127.0.0.1:{server.port}"
    key = subprocess.run([server.burrow, "key", "create", "--e2b", "--data", server.data], check=True, capture_output=True, text=True).stdout.strip()
    (place / "home").mkdir(exist_ok=True)
    return {**clean, "HOME": str(place / "home"), "E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": key,
            "AGENTUITY_TRANSPORT_URL": url, "AGENTUITY_STREAM_URL": f"{url}/stream", "AGENTUITY_SDK_KEY": server.key}


def time_client(source, name, env, what, rounds, gap, *more):
    """Medians in milliseconds, by row."""
    place = packages.install(PROJECT / "tests/compat" / source, name)
    shutil.copy(PROJECT / "bench/e2b.mjs", place / "bench.mjs")  # next to node_modules, where its imports are found
    done = subprocess.run(["node", "bench.mjs", what, str(rounds), str(gap), *map(str, more)], cwd=place, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{what}: the client failed:\n{done.stderr[-3000:]}")
    rows = {}
    for line in done.stdout.splitlines():
        row, ns = line.split("\t")
        rows.setdefault(row, []).append(int(ns) / 1e6)
    return {row: statistics.median(times) for row, times in rows.items()}


def table(rows):
    print("| row | measured | target | met |\n|---|---:|---:|---|")
    for name, measured, target, is_met in rows:
        print(f"| {name} | {measured} | {target} | {'' if is_met is None else 'yes' if is_met else 'no'} |")
