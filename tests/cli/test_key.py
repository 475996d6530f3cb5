# SPDX-License-Identifier: Apache-2.0
"""burrow key, run as people run it, on databases of its own; tests/cli/test_serve.py has keys beside a running server."""
import datetime
import json
import os
import pathlib
import re
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BURROW = pathlib.Path(os.environ.get("BURROW", TOP / "build/src/burrow"))

pytestmark = pytest.mark.skipif(not (BURROW.parent / "burrow-server").exists(), reason="burrow-server is not built")


@pytest.fixture
def key(tmp_path):
    """Runs burrow key with these words on a data directory of its own."""
    def run(*words):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("BURROW_")}
        return subprocess.run([BURROW, "key", *words], capture_output=True, text=True, timeout=60,
                              env={**clean, "BURROW_DATA": str(tmp_path / "data")})
    return run


def entries(key, *words):
    return json.loads(key("list", "--json", *words).stdout)


def test_a_made_key_is_alone_on_standard_output(key):
    done = key("create", "--name", "laptop")
    assert done.returncode == 0
    assert re.fullmatch(r"brw_[0-9a-z]{52}\n", done.stdout)
    [entry] = entries(key)
    assert entry["id"] in done.stderr
    assert (entry["name"], entry["admin"], entry["inUse"]) == ("laptop", False, True)
    assert (entry["usedAt"], entry["expiresAt"], entry["revokedAt"]) == (None, None, None)


def test_the_key_itself_is_kept_nowhere(key, tmp_path):
    secret = key("create").stdout.strip()
    listed = key("list").stdout
    assert secret[:12] in listed and secret[:13] not in listed
    for path in (tmp_path / "data").iterdir():
        assert secret[13:].encode() not in path.read_bytes(), path


def test_the_database_is_its_owners_alone(key, tmp_path):
    key("create")
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data/burrow.db").stat().st_mode & 0o777 == 0o600


def test_json_has_the_key_when_it_is_made_and_never_again(key):
    made = json.loads(key("create", "--name", "a", "--admin", "--json").stdout)
    assert made["key"].startswith(made["prefix"])
    assert made["admin"] is True
    [entry] = entries(key)
    assert "key" not in entry
    assert entry == {name: value for name, value in made.items() if name != "key"}


@pytest.mark.parametrize("text, seconds", [("30d", 30 * 86400), ("12h", 12 * 3600), ("1h30m", 5400)])
def test_a_key_expires_after_its_time(key, text, seconds):
    made = json.loads(key("create", "--expires", text, "--json").stdout)
    start, end = (datetime.datetime.fromisoformat(made[name].replace("Z", "+00:00")) for name in ("createdAt", "expiresAt"))
    assert abs((end - start).total_seconds() - seconds) < 5


@pytest.mark.parametrize("text", ["soon", "0", "-1h", "30", "d", "1d12", "99999999d"])
def test_a_time_that_is_none_is_refused(key, text):
    done = key("create", "--expires", text)
    assert done.returncode == 2
    assert done.stderr.startswith("burrow: expires") and done.stdout == ""


def test_an_expired_key_is_listed_only_when_asked_for(key):
    key("create", "--name", "short", "--expires", "1ms")
    key("create", "--name", "long")
    assert [entry["name"] for entry in entries(key)] == ["long"]
    assert [(entry["name"], entry["inUse"]) for entry in entries(key, "--all")] == [("short", False), ("long", True)]
    assert "expired" in key("list", "--all").stdout


def test_a_key_is_revoked_by_its_id_or_beginning(key):
    first, second = (json.loads(key("create", "--json").stdout) for _ in range(2))
    assert key("revoke", first["id"]).returncode == 0
    done = key("revoke", second["prefix"], "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"revoked": second["prefix"]})
    assert entries(key) == []
    assert all(entry["revokedAt"] for entry in entries(key, "--all"))


def test_a_key_is_revoked_by_how_the_api_and_e2bs_clients_spell_it(key):
    usual, hexadecimal, whole = (json.loads(key("create", "--json", *words).stdout) for words in ([], ["--e2b"], ["--e2b"]))
    assert re.fullmatch(r"key_[0-9a-z]{26}", usual["id"]) and usual["id"] in key("list").stdout
    assert key("revoke", "e2b_").returncode == key("revoke", "brw_").returncode == 3, "too little to say which"
    for spelling in (usual["key"][:9], hexadecimal["key"][:12], whole["key"]):
        done = key("revoke", spelling)
        assert done.returncode == 0, done.stderr
    assert entries(key) == []


def test_what_is_not_there_cannot_be_revoked(key):
    made = json.loads(key("create", "--json").stdout)
    assert key("revoke", made["id"]).returncode == 0
    done = key("revoke", made["id"])
    assert (done.returncode, done.stderr) == (1, f"burrow: key '{made['id']}' is revoked already\n")
    done = key("revoke", "brw_nobody")
    assert (done.returncode, done.stderr) == (3, "burrow: there is no key 'brw_nobody' in use\n")


@pytest.mark.parametrize("words, sentence", [
    (["craete"], "burrow key has no command 'craete'; did you mean 'create'?"),
    (["revoke"], "burrow key revoke needs the id or the beginning of a key: see 'burrow key list'"),
    (["create", "x"], "burrow key create does not take 'x': see burrow key create --help"),
    (["create", "--nmae", "x"], "unknown option '--nmae'; did you mean '--name'?"),
])
def test_wrong_usage_is_one_sentence(key, words, sentence):
    done = key(*words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"burrow: {sentence}\n")


@pytest.mark.parametrize("words", [["list"], ["revoke", "brw_x"]])
def test_looking_makes_no_database(key, tmp_path, words):
    done = key(*words)
    assert done.returncode == 3
    assert f"no server has been started with the data directory '{tmp_path}/data' yet" in done.stderr
    assert not (tmp_path / "data").exists()


def test_every_command_has_help(key):
    assert "commands:" in key("--help").stdout
    for name in ["create", "list", "revoke"]:
        done = key(name, "--help")
        assert done.returncode == 0
        assert f"usage: burrow key {name}" in done.stdout and "examples:" in done.stdout
    done = key()
    assert (done.returncode, done.stderr) == (2, key("--help").stdout)


def test_burrow_alone_says_where_it_looked_for_the_server(tmp_path):
    alone = tmp_path / "bin/burrow"
    alone.parent.mkdir()
    alone.write_bytes(BURROW.read_bytes())
    alone.chmod(0o755)
    done = subprocess.run([alone, "key", "list"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"'{alone.parent}'" in done.stderr and "libexec/burrow" in done.stderr
    server = tmp_path / "libexec/burrow/burrow-server"
    server.parent.mkdir(parents=True)
    server.symlink_to(BURROW.parent / "burrow-server")
    assert subprocess.run([alone, "key", "--help"], capture_output=True, timeout=60).returncode == 0


def test_a_key_with_an_owner_scopes_and_quotas(key):
    done = key("create", "--json", "--owner", "alice", "--scopes", "read,run", "--runtimes", "base,host", "--no-network", "--max-sandboxes", "5",
               "--max-memory", "2Gi", "--max-cpu", "1500m", "--max-disk", "10Gi", "--max-processes", "2000", "--max-runs", "100")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert (made["owner"], made["scopes"], made["runtimes"], made["network"], made["admin"]) == ("alice", ["read", "run"], ["base", "host"], False, False)
    assert made["quotas"] == {"sandboxes": 5, "memoryBytes": 2 << 30, "cpuMillicores": 1500, "diskBytes": 10 << 30, "processes": 2000, "runsPerDay": 100}
    listed = key("list").stdout
    assert "alice" in listed and "read run" in listed
    [entry] = [entry for entry in json.loads(key("list", "--json").stdout) if entry["id"] == made["id"]]
    assert entry["owner"] == "alice" and "key" not in entry


def test_without_options_a_key_can_do_everything_but_manage_keys(key):
    made = json.loads(key("create", "--json").stdout)
    assert (made["owner"], made["scopes"], made["quotas"]) == (None, ["read", "run", "manage", "organisation"], {})
    assert json.loads(key("create", "--json", "--admin").stdout)["scopes"] == ["read", "run", "manage", "admin", "organisation"]


def test_scopes_that_make_no_sense(key):
    done = key("create", "--scopes", "fly")
    assert done.returncode == 2 and "there is no scope 'fly'" in done.stderr
    done = key("create", "--scopes", "read")
    assert done.returncode == 2 and "owner" in done.stderr
