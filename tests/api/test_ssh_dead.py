# SPDX-License-Identifier: Apache-2.0
"""Clients of SSH whose machine is gone without a word, in a world of the test's own (world.py): nobody tells the server that they will not come back."""
import re
import subprocess

import pytest

from client import PATIENCE, until
from ssh import introduced
from test_network import Box, machine
from test_ssh import processes_of
from world import MACHINE, World, run


@pytest.fixture(scope="module")
def world():
    with World() as world:
        yield world


@pytest.fixture(scope="module")
def net(world, tmp_path_factory):
    settings = {"BURROW_SSH_LISTEN": f"127.0.0.1:0,{MACHINE}:0", "BURROW_SSH_DEAD_AFTER": "3s"}
    with machine(tmp_path_factory.mktemp("dead") / "data", environment=settings) as server:
        yield server


def words_from_outside(world, net, ssh, user, command):
    port = re.search(rf"listening for SSH address={re.escape(MACHINE)}:(\d+)", net.log)[1]
    alias = ("-o", f"HostKeyAlias=[127.0.0.1]:{ssh.port}")
    return ["ip", "netns", "exec", world.outside, "ssh", "-p", port, *ssh.options, *alias, f"{user}@{MACHINE}", command]


@pytest.mark.parametrize("command", ["exec cat", "while :; do echo more; sleep 0.1; done"], ids=["idle", "busy"])
def test_a_client_whose_machine_is_gone_is_hung_up_on(world, net, tmp_path, command):
    ssh = introduced(net, tmp_path)
    box = Box(net)
    user = box.made["id"]
    near = ssh.start(user, "echo up; cat")
    far = subprocess.Popen(words_from_outside(world, net, ssh, user, f"echo up; {command}"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert near.stdout.readline() == far.stdout.readline() == b"up\n"
        closed = net.log.count("SSH connection closed")
        run("ip", "-n", world.outside, "link", "set", "in0", "down")
        until(lambda: net.log.count("SSH connection closed") > closed, "the server to find out")
        until(lambda: len(processes_of(net)) == 3, "its process to end")  # two wait for the next
        assert far.poll() is None, "it has heard nothing of it"
        assert near.communicate(b"still", timeout=PATIENCE)[0] == b"still", "others, who say nothing either, are not hung up on"
    finally:
        run("ip", "-n", world.outside, "link", "set", "in0", "up")
        for one in (near, far):
            one.kill()
            one.communicate()
        box.delete()
