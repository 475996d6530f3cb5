# SPDX-License-Identifier: Apache-2.0
"""A burrow server of a test's own: started on a free port and a data directory, killed, started again, ended without a trace."""
import os
import pathlib
import re
import signal
import subprocess
import time

from client import PATIENCE, Client, until

TOP = pathlib.Path(__file__).resolve().parents[2]
BURROW = pathlib.Path(os.environ.get("BURROW", TOP / "build/src/burrow")).absolute()
CACHE = pathlib.Path(os.environ.get("BURROW_TEST_CACHE", TOP / "build/test-cache")).absolute()
KEY = "brw_tests_0123456789abcdefghijklmnopqrstuvwxyz"
LISTENING = re.compile(r"127\.0\.0\.1:([1-9]\d*)")


def why_not():
    """Why there can be no server here, or None."""
    if not BURROW.exists():
        return "burrow is not built"
    if os.geteuid() != 0:
        return "sandboxes need root"
    return None


def borrow_runtimes(data):
    """base:latest is built once for all suites, in the cache; servers of tests see it through a link."""
    shared = CACHE / "runtimes"
    if not (shared / "base" / "latest").exists():
        subprocess.run([BURROW, "runtime", "build", "base:latest", "--data", CACHE], check=True, timeout=900)
    data.mkdir(parents=True, exist_ok=True)
    (data / "runtimes").symlink_to(shared)


class Server:
    def __init__(self, data, key=KEY, environment=None, options=(), wrapper=(), burrow=BURROW):
        self.data, self.key = pathlib.Path(data), key
        self.environment, self.options, self.wrapper = environment or {}, list(options), list(wrapper)
        self.burrow = burrow
        self.process = None
        self.port = None
        self.listen = "127.0.0.1:0"
        self.starts = 0
        if not (self.data / "runtimes").exists():
            borrow_runtimes(self.data)

    @property
    def log_path(self):
        return self.data.with_name(f"{self.data.name}-log-{self.starts}")

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")

    def launch(self):
        """Starts it without waiting."""
        self.starts += 1
        self.started_at = time.time()
        self.port = None
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BURROW_")}
        if self.key:
            environment["BURROW_API_KEY"] = self.key
        words = [*self.wrapper, self.burrow, "serve", "--listen", self.listen, "--data", self.data, *self.options]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**environment, **self.environment})
        return self

    def start(self):
        self.launch()
        until(self.is_listening, f"the server to listen:\n{self.log}")
        until(self.is_healthy, f"the server to be healthy:\n{self.log}")
        return self

    def is_listening(self):
        assert self.process.poll() is None, f"the server ended with {self.process.returncode}:\n{self.log}"
        found = LISTENING.search(self.log)
        if found:
            self.port = int(found[1])
        return found

    def is_healthy(self):
        try:
            return self.client.get("/health", key=None, may_fail=True).status == 200
        except OSError:
            return False

    @property
    def client(self):
        return Client(self.port, self.key)

    @property
    def pid(self):
        return self.process.pid

    def kill(self):
        """As if it had crashed."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def is_alive(self):
        """False once after it has died, which it may not: it is there again then, at the same address."""
        if self.process.poll() is None:
            return True
        self.listen = f"127.0.0.1:{self.port}"
        self.start()
        return False

    def stop(self):
        """As a person or systemd stops it; boxes live on."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def end(self):
        """Deletes every sandbox, stops, lets go of the data directory, and looks whether anything is left."""
        if self.process.poll() is None:
            delete_all(self.client)
            code = self.stop()
            assert code == 0, f"SIGTERM ended the server with {code}:\n{self.log[-4000:]}"
        self.detach()
        left = until_nothing(self.left_over)
        assert not left, f"left behind: {left}"

    def detach(self):
        """The kernel takes its time with what boxes held."""
        deadline = time.monotonic() + 20
        while True:
            done = subprocess.run([self.burrow, "detach", "--data", self.data], capture_output=True, text=True, timeout=PATIENCE)
            if done.returncode == 0:
                return
            assert time.monotonic() < deadline, done.stderr
            time.sleep(0.1)

    def abandon(self):
        """Whatever state it is in: makes sure that nothing of it stays on the machine."""
        if self.process and self.process.poll() is None:
            self.kill()
        for pid in self.box_processes():
            end_process(pid)
        until_nothing(self.box_processes)
        if self.data.exists():
            self.detach()

    # ---- what the machine holds for it ----

    @property
    def group(self):
        found = os.stat(self.data)
        return f"burrow-{found.st_dev:x}-{found.st_ino:x}"

    def groups(self):
        """Its control groups, one for each tree."""
        found = []
        for folder, names, _ in os.walk("/sys/fs/cgroup"):
            found += [os.path.join(folder, name) for name in names if name == self.group]
            names[:] = [name for name in names if not name.startswith("burrow")]
        return found

    def boxes(self):
        """Names of the boxes that have a control group: in every tree, since the server may keep emptied ones of version 1."""
        trees = [set(next(os.walk(group), ("", [], []))[1]) for group in self.groups()]
        return set.intersection(*trees) if trees else set()

    def box_processes(self):
        """Pids of everything in its control groups."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.group in (entry / "cgroup").read_text() and state_of(entry) != "Z":
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def mounts(self):
        """Mount points below its data directory."""
        lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        points = [line.split()[4] for line in lines]
        return [point for point in points if point.startswith(f"{self.data}/")]

    def left_over(self):
        """What should not be there once it was detached."""
        return [*(f"process {pid}" for pid in self.box_processes()), *(f"group {path}" for path in self.groups()),
                *(f"mount {point}" for point in self.mounts()),
                *(f"directory {path}" for path in pathlib.Path("/run/burrow").glob(self.group))]


def state_of(proc):
    return (proc / "stat").read_text().rpartition(")")[2].split()[0]


def end_process(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def until_nothing(find, seconds=20):
    """What `find` still finds when it had the time to go."""
    deadline = time.monotonic() + seconds
    while (left := find()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def delete_all(client):
    while sandboxes := client.get("/sandbox?live=true&limit=100").data["sandboxes"]:
        for sandbox in sandboxes:
            answer = client.delete(f"/sandbox/{sandbox['sandboxId']}")
            assert answer.status in (200, 404), str(answer)
