# SPDX-License-Identifier: Apache-2.0
"""What merely exists costs nothing: descriptors of the server, records in its database, files in its data directory."""
import os

from client import until

COUNT = 6


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
