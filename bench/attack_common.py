# SPDX-License-Identifier: Apache-2.0
"""What the attack measurements share: a server of one build, a key holder who works meanwhile, attackers as processes, the table.

A script lists its attacks as functions of a Target that run until they are ended, and calls main(doc, attacks).
"""
import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import pathlib
import resource
import shutil
import signal
import socket
import statistics
import sys
import time

PROJECT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "tests" / "lib"))
import server as servers  # noqa: E402

RUNTIME = "host:latest"
STATUS_A_CREATE = 10  # how often a status is asked for beside each create
PATIENCE = 60         # seconds for one answer


class Target:
    """Where an attack goes: plain values, so that a process can be given one."""

    def __init__(self, port, key, pid):
        self.port, self.key, self.pid = port, key, pid

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def head(self, method, path, length=None, key=None, more=""):
        """The bytes of a request's head."""
        lines = [f"{method} {path} HTTP/1.1", "Host: x"]
        if key:
            lines.append(f"Authorization: Bearer {key}")
        if length is not None:
            lines += [f"Content-Length: {length}", "Content-Type: application/json"]
        return ("\r\n".join(lines) + f"\r\n{more}\r\n").encode()


class KeyHolder:
    """Somebody who works with a key, one request after the other, and notes how long each took."""

    def __init__(self, target, key=None):
        self.target, self.key = target, key or target.key
        self.connection = None
        self.times = {"status": [], "create": []}
        self.failed = {"status": 0, "create": 0}

    def ask(self, method, path, body=None):
        """Status and JSON of an answer; 0 where there was none."""
        headers = {"Authorization": f"Bearer {self.key}"}
        try:
            if not self.connection:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.target.port, timeout=PATIENCE)
            self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = self.connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except (OSError, http.client.HTTPException):
            self.close()
            return 0, None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def measure(self, what, *request):
        before = time.perf_counter()
        status, answer = self.ask(*request)
        self.times[what].append((time.perf_counter() - before) * 1000)
        self.failed[what] += not 200 <= status < 300
        return answer

    def create(self):
        answer = self.measure("create", "POST", "/sandbox", {"runtime": RUNTIME})
        return answer["data"]["sandboxId"] if answer and answer.get("success") else None

    def work(self, sandbox, seconds):
        """Asks for the state of a sandbox, and makes and ends others, for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(STATUS_A_CREATE):
                self.measure("status", "GET", f"/sandbox/status/{sandbox}")
            made = self.create()
            if made:
                self.ask("DELETE", f"/sandbox/{made}")


def at(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def resident_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    return 0


def run_quietly(attack, target):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(KeyboardInterrupt):
        attack(target)


@contextlib.contextmanager
def under_attack(attack, target, lead):
    """While the block runs, so does the attack, in a process of its own, which had `lead` seconds to begin."""
    attacker = multiprocessing.Process(target=run_quietly, args=(attack, target), daemon=True)
    attacker.start()
    try:
        time.sleep(lead)
        yield
    finally:
        attacker.terminate()
        attacker.join()


@contextlib.contextmanager
def running_server(build, work, options=()):
    """A server of this build with a data directory of its own; ended without a trace."""
    shutil.rmtree(work, ignore_errors=True)
    (work / "data" / "runtimes").mkdir(parents=True)
    server = servers.Server(work / "data", options=["--runtime", RUNTIME, *options], burrow=str(build / "src" / "burrow"))
    server.start()
    try:
        yield server
    finally:
        server.abandon()
        shutil.rmtree(work, ignore_errors=True)


def measure_turn(build, work, attack, args):
    """One turn: a fresh server, the attack, a key holder beside it. What the table needs of it."""
    with running_server(build, work, args.option) as server:
        target = Target(server.port, server.key, server.pid)
        holder = KeyHolder(target)
        sandbox = holder.create()
        if not sandbox:
            raise SystemExit("the first sandbox could not be made")
        holder.work(sandbox, 1)
        holder = KeyHolder(target)
        before = resident_mib(server.pid)
        with under_attack(attack or time.sleep, target if attack else 600, args.lead if attack else 0):
            holder.work(sandbox, args.seconds)
            during = resident_mib(server.pid)
        time.sleep(args.after)
        return holder, (before, during, resident_mib(server.pid))


def describe(name, title, turns):
    """A line of the table: medians over the turns."""
    cells = [name, title]
    for what in ("status", "create"):
        cells += [f"{statistics.median(at(holder.times[what], part) for holder, _ in turns):.2f}" for part in (0.5, 0.99)]
        total = sum(len(holder.times[what]) for holder, _ in turns)
        cells.append(f"{sum(holder.failed[what] for holder, _ in turns)} of {total}")
    memory = [statistics.median(sizes[i] for _, sizes in turns) for i in range(3)]
    return "| " + " | ".join([*cells, " → ".join(f"{size:.0f}" for size in memory)]) + " |"


def main(doc, attacks):
    """`attacks`: name → function of a Target, described by its docstring."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="append", metavar="DIR", help="build directory; several are measured turn by turn (default: build)")
    parser.add_argument("--only", default=",".join(["none", *attacks]), help=f"some of: none, {', '.join(attacks)}")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8, help="of each measurement")
    parser.add_argument("--lead", type=float, default=2, help="seconds for which the attack runs before")
    parser.add_argument("--after", type=float, default=5, help="seconds until the memory is looked at again")
    parser.add_argument("--option", action="append", default=[], help="one more option of burrow serve, as --option=--max-connections=99")
    args = parser.parse_args()
    builds = [pathlib.Path(build).resolve() for build in args.build or [PROJECT / "build"]]
    raise_file_limit()
    print("| build | beside | status p50 ms | p99 | failed | create p50 ms | p99 | failed | server MiB before → during → after |\n"
          "|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in args.only.split(","):
        turns = {build: [] for build in builds}
        for turn in range(args.turns):
            for build in builds if turn % 2 == 0 else reversed(builds):
                work = PROJECT / "build" / "bench-data" / f"attack-{os.getpid()}"
                turns[build].append(measure_turn(build, work, attacks.get(name), args))
        for number, build in enumerate(builds):
            print(describe(f"{number + 1} {build.parent.name}/{build.name}", name, turns[build]), flush=True)


def raise_file_limit():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
