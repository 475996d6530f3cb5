# SPDX-License-Identifier: Apache-2.0
"""burrow ssh-key, run for real against a server."""
import subprocess

import pytest

from test_commands import Cli, REASON, server  # noqa: F401 (a fixture)

pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@pytest.fixture
def home(tmp_path):
    (tmp_path / ".ssh").mkdir()
    return tmp_path


@pytest.fixture
def cli(server, home):  # noqa: F811
    return Cli(home, BURROW_DATA=str(server.data))


def make_key(path, *options, comment="me@here"):
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-C", comment, "-f", path, *(options or ("-t", "ed25519"))], check=True)
    return subprocess.run(["ssh-keygen", "-l", "-f", f"{path}.pub"], capture_output=True, text=True, check=True).stdout.split()[1]


def test_the_default_key_comes_and_goes(cli, home):
    rsa = make_key(home / ".ssh/id_rsa", "-t", "rsa", "-b", "2048")
    fingerprint = make_key(home / ".ssh/id_ed25519")
    assert f"{fingerprint} me@here opens your sandboxes" in cli.text("ssh-key", "add"), "Ed25519 goes before RSA"
    [key] = [key for key in cli.json("ssh-key", "list") if key["fingerprint"] == fingerprint]
    assert (key["name"], key["kind"], key["inUse"]) == ("me@here", "ssh-ed25519", True) and "usedAt" not in key
    shown = cli.text("ssh-key", "list")
    assert "LAST USED" in shown and fingerprint in shown and rsa not in shown
    assert f"{fingerprint} is removed" in cli.text("ssh-key", "remove", fingerprint)
    assert fingerprint not in cli.text("ssh-key", "list")
    assert fingerprint[:30] in cli.error("ssh-key", "remove", fingerprint, code=3)


def test_by_file_by_input_and_by_name(cli, home):
    by_file, by_input = make_key(home / "one"), make_key(home / "two")
    assert cli.json("ssh-key", "add", home / "one.pub", "--name", "laptop")["name"] == "laptop"
    assert cli.json("ssh-key", "add", "-", "--name", "laptop", input=(home / "two.pub").read_bytes())["fingerprint"] == by_input
    assert "2 SSH keys are called 'laptop'" in cli.error("ssh-key", "rm", "laptop", code=6)
    assert cli.json("ssh-key", "add", home / "two.pub", "--name", "desk")["name"] == "desk", "added again, it has another name"
    cli("ssh-key", "rm", "laptop")
    assert [key["fingerprint"] for key in cli.json("ssh-key", "ls") if key["fingerprint"] in (by_file, by_input)] == [by_input]
    cli("ssh-key", "rm", "desk")
    assert "there is no SSH key 'desk'" in cli.error("ssh-key", "rm", "desk", code=3)


def test_what_is_no_public_key_is_refused_and_a_private_one_stays_here(cli, home):
    make_key(home / "id")
    said = cli.error("ssh-key", "add", home / "id", code=2)
    assert "is a private key, which stays with you" in said and f"{home}/id.pub" in said
    assert "there is no public key in ~/.ssh" in cli.error("ssh-key", "add", code=3)
    assert "there is no file" in cli.error("ssh-key", "add", home / "none.pub", code=3)
    (home / "text").write_text("hello")
    assert "it must begin with its type" in cli.error("ssh-key", "add", home / "text", code=2)
    assert "no public SSH key" in cli.error("ssh-key", "add", "-", code=2, input=b"")
    make_key(home / "weak", "-t", "rsa", "-b", "1024")
    assert "less than 2048 bits" in cli.error("ssh-key", "add", home / "weak.pub", code=2)
