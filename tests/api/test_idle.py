# SPDX-License-Identifier: Apache-2.0
"""What merely exists costs nothing: descriptors of the server, records in its database, files in its data directory."""
import os
import pathlib
import re

from client import until

COUNT = 24  # so that what is kept for all of them (connections of threads to the database, streams read lately, spare networks) does not matter


def descriptors(server):
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def steady(server):
    """How many descriptors it has once spare boxes and the like are made: the same several times in a row."""
    seen = []

    def is_steady():
        seen.append(descriptors(server))
        return len(seen) > 10 and len(set(seen[-10:])) == 1
    until(is_steady, "the number of descriptors to stay")
    return seen[-1]


def test_an_idle_sandbox_takes_two_descriptors_at_most(own_server):
    server = own_server()
    api = server.client
    api.create().run("true")  # what is made once is made
    before = steady(server)
    boxes = [api.create(timeout={"idle": "1h"}) for _ in range(COUNT)]
    bound = before + 2 * COUNT
    until(lambda: descriptors(server) <= bound, f"{COUNT} sandboxes that were never used to take {2 * COUNT} descriptors")
    for box in boxes[:2]:
        box.run("true")
    assert api.post(f"/sandbox/{boxes[2].id}/pause").status == 200
    until(lambda: descriptors(server) <= bound, "used and paused ones to take no more")

    server.kill()
    server.start()
    until(lambda: descriptors(server) <= bound, "adopted ones to take no more")
    server.end()


def files_of(server):
    return {path.name for path in (server.data / "spool").glob("??/*")}


def test_a_command_that_prints_nothing_leaves_no_file(own_server):
    server = own_server()
    api = server.client
    sandbox = api.create(timeout={"idle": "1h"})
    silent = sandbox.run("true")
    loud = sandbox.sh("echo out; echo err >&2")
    paths = ["/" + silent.started[f"{name}StreamUrl"].split("/", 3)[3] for name in ("stdout", "stderr")]
    ids = [path.rsplit("/", 1)[-1].rsplit("_", 1)[-1] for path in paths]
    until(lambda: not files_of(server) & set(ids), "the files of what printed nothing to go")
    assert loud.stdout == b"out\n" and loud.stderr == b"err\n"

    server.kill()  # nothing of it is in memory
    server.start()
    assert not files_of(server) & set(ids)
    for path in paths:
        assert server.client.read(path) == b""
    server.end()


def test_the_server_says_how_many_sandboxes_its_limits_allow(own_server):
    server = own_server(wrapper=["prlimit", "--nofile=900:900"], options=["--max-sandboxes", "5000", "--parked-one-shot", "0", "--parked-kept", "0"])
    told = re.search(r"sandboxes that the machine allows.* sandboxes=(\d+) limitedBy=openFiles .*places=16384", server.log)
    assert told and 100 < int(told[1]) < 900, server.log
    assert re.search(r"warn --max-sandboxes is out of reach asked=5000 .*remedy=", server.log), server.log


def test_a_limit_of_open_files_is_raised(own_server):
    server = own_server(wrapper=["prlimit", "--nofile=1024:8192"])
    limits = pathlib.Path(f"/proc/{server.pid}/limits").read_text()
    assert int(re.search(r"Max open files\s+(\d+)", limits)[1]) >= 8192
    assert "out of reach" not in server.log
