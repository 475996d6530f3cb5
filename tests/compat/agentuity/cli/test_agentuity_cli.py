# SPDX-License-Identifier: Apache-2.0
"""The stock command line of Agentuity, unmodified, against burrow: each command as a person types it.

Started by ../run, which sets the variables that a user sets; what does not exist yet must fail with a sentence.
"""
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import urllib.request
import zipfile

import pytest

PLACE = pathlib.Path(os.environ.get("BURROW_CLI_PLACE", "/nonexistent"))
BUN = next(PLACE.glob("node_modules/@oven/bun-linux-*/bin/bun"), PLACE / "node_modules/.bin/bun")
CLI = PLACE / "node_modules/@agentuity/cli/bin/cli.ts"

pytestmark = pytest.mark.skipif(not CLI.exists(), reason="the command line is not installed: start ../run cli")


def agentuity(*words, stdin=subprocess.DEVNULL, cwd=None, group=("cloud", "sandbox"), **kwargs):
    if "input" in kwargs:
        stdin = None
    return subprocess.run([BUN, CLI, *group, *words], capture_output=True, timeout=120, cwd=cwd,
                          **({"stdin": stdin} if stdin is not None else {}), **kwargs)


def ok(*words, **kwargs):
    done = agentuity(*words, **kwargs)
    assert done.returncode == 0, done
    return done.stdout.decode()


def as_json(*words, **kwargs):
    end = words.index("--") if "--" in words else len(words)
    return json.loads(ok(*words[:end], "--json", *words[end:], **kwargs))


def create(*words):
    made = as_json("create", *words)
    return made["sandboxId"]


@pytest.fixture(scope="module")
def sandbox():
    id = create("--name", "cli")
    yield id
    agentuity("delete", id, "--confirm")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tree/sub").mkdir(parents=True)
    (tmp_path / "tree/a.txt").write_text("alpha")
    (tmp_path / "tree/sub/b.txt").write_text("beta")
    return tmp_path


# ---- run ----

def test_run_prints_the_output_and_ends_with_the_code():
    done = agentuity("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert done.returncode == 3, done
    assert b"out\n" in done.stdout and b"err\n" in done.stderr


def test_run_sends_its_input():
    done = agentuity("run", "--", "cat", input=b"through the pipe")
    assert done.returncode == 0 and b"through the pipe" in done.stdout, done


def test_run_ends_while_its_input_stays_open():
    read, write = os.pipe()
    try:
        done = agentuity("run", "--", "echo", "done", stdin=read)
        assert done.returncode == 0 and b"done\n" in done.stdout
    finally:
        os.close(read)
        os.close(write)


def test_run_takes_every_option(tmp_path):
    local = tmp_path / "local.txt"
    local.write_text("from here")
    done = agentuity("run", "--runtime", "base:latest", "--name", "all", "--description", "options", "--memory", "256Mi", "--cpu", "500m",
                     "--disk", "1Gi", "--timeout", "30s", "--env", "WORD=set", "--file", f"in/remote.txt:{local}", "--project-id", "proj_cli",
                     "--scope", "services:read", "--", "sh", "-c", "cat in/remote.txt; echo $WORD")
    assert done.returncode == 0, done
    assert b"from hereset\n" in done.stdout


def test_run_with_timestamps_and_quietly():
    assert agentuity("run", "--timestamps", "--", "echo", "stamped").stdout.strip().endswith(b"Z stamped")
    assert b"silent" not in agentuity("run", "--quiet", "--", "echo", "silent").stdout


def test_run_tells_what_is_not_there():
    done = agentuity("run", "--", "no-such-command")
    assert done.returncode == 127
    done = agentuity("run", "--timeout", "300ms", "--", "sleep", "60")
    assert done.returncode == 124
    done = agentuity("run", "--runtime", "nonsense:1", "--", "true")
    assert done.returncode == 1 and b"nonsense" in done.stderr
    done = agentuity("run", "--network", "--", "true")
    assert done.returncode == 0, done.stderr


# ---- sandboxes ----

def test_create_get_list_and_delete():
    id = create("--name", "made-by-cli", "--idle-timeout", "10m", "--paused-timeout", "24h", "--metadata", '{"a":1}', "--memory", "256Mi",
                "--env", "A=b", "--wait", "--project-id", "proj_list")
    seen = as_json("get", id)
    assert (seen["sandboxId"], seen["name"], seen["status"]) == (id, "made-by-cli", "idle")
    assert b"made-by-cli" in agentuity("list", "--project-id", "proj_list").stdout
    assert [entry["id"] if "id" in entry else entry["sandboxId"] for entry in sandboxes(as_json("list", "--name", "made-by-cli", "--all"))] == [id]
    for words in (["--sort", "name", "--direction", "asc"], ["--status", "idle"], ["--mode", "interactive"], ["--limit", "1", "--offset", "0"]):
        ok("list", *words)
    assert agentuity("delete", id, "--confirm").returncode == 0
    assert as_json("get", id)["status"] == "deleted"
    assert agentuity("delete", id, "--confirm").returncode == 1


def sandboxes(listed):
    return listed["sandboxes"] if isinstance(listed, dict) else listed


def test_get_waits_for_a_status(sandbox):
    assert as_json("get", sandbox, "--wait-for-status", "idle", "--wait-ms", "1000")["status"] == "idle"


def test_an_unknown_sandbox_is_an_error_with_a_sentence():
    done = agentuity("get", "sbx_doesnotexist")
    assert done.returncode == 1 and b"not found" in (done.stderr + done.stdout).lower()


# ---- commands ----

def test_exec_prints_the_output_and_ends_with_the_code(sandbox):
    done = agentuity("exec", sandbox, "--", "sh", "-c", "echo out; echo err >&2; exit 4")
    assert done.returncode == 4, done
    assert b"out\n" in done.stdout and b"err\n" in done.stderr


def test_exec_without_output_and_with_options(sandbox):
    assert agentuity("exec", sandbox, "--", "true").returncode == 0
    assert agentuity("exec", sandbox, "--", "false").returncode == 1
    assert agentuity("exec", sandbox, "--timeout", "300ms", "--", "sleep", "60").returncode == 124
    assert agentuity("exec", sandbox, "--timestamps", "--", "echo", "x").stdout.strip().endswith(b"Z x")
    assert b"hush" not in agentuity("exec", sandbox, "--quiet", "--", "echo", "hush").stdout


def test_executions_are_listed_and_shown(sandbox):
    agentuity("exec", sandbox, "--", "true")
    listed = as_json("execution", "list", sandbox, "--limit", "5")
    entries = listed["executions"] if isinstance(listed, dict) else listed
    assert entries
    shown = as_json("execution", "get", entries[0]["executionId"])
    assert shown["executionId"] == entries[0]["executionId"] and shown["status"] == "completed"


def test_env_is_set_and_deleted(sandbox):
    ok("env", sandbox, "CLI_WORD=value", "OTHER=x")
    assert b"value" in agentuity("exec", sandbox, "--", "sh", "-c", "echo $CLI_WORD").stdout
    ok("env", sandbox, "--delete", "CLI_WORD", "-d", "OTHER")
    assert b"value" not in agentuity("exec", sandbox, "--", "sh", "-c", "echo $CLI_WORD").stdout


def test_events_and_statistics(sandbox):
    assert "create" in ok("events", sandbox)
    assert "create" in ok("events", sandbox, "--reverse", "--limit", "100")
    assert as_json("stats")
    ok("stats", "--start", "2024-01-01T00:00:00Z", "--end", "2034-01-01T00:00:00Z")


def test_jobs_from_start_to_end(sandbox):
    job = as_json("job", "create", sandbox, "--", "sh", "-c", "echo started; sleep 600")["jobId"]
    assert job in ok("job", "list", sandbox, "--limit", "10")
    assert as_json("job", "get", sandbox, job)["status"] == "running"
    ok("job", "destroy", sandbox, job, "--force")
    assert "started" in ok("job", "logs", sandbox, job)
    assert as_json("job", "get", sandbox, job)["status"] == "cancelled"


def test_runtimes_are_listed():
    assert "base:latest" in ok("runtime", "list")
    ok("runtime", "list", "--limit", "1", "--offset", "0", "--sort", "name", "--direction", "asc", "--json")


# ---- files ----

def test_fs_makes_lists_and_removes(sandbox):
    ok("fs", "mkdir", sandbox, "made/deep", "-p")
    assert "deep" in ok("fs", "ls", sandbox, "made")
    assert "deep" in ok("fs", "ls", sandbox, "made", "-l")
    ok("fs", "ls", sandbox)
    agentuity("exec", sandbox, "--", "touch", "made/file")
    ok("fs", "rm", sandbox, "made/file")
    ok("fs", "rmdir", sandbox, "made", "-r")
    assert agentuity("fs", "ls", sandbox, "made").returncode == 1


def test_fs_copies_files_and_directories_both_ways(sandbox, folder):
    ok("fs", "cp", str(folder / "tree/a.txt"), f"{sandbox}:copied.txt")
    ok("fs", "cp", f"{sandbox}:copied.txt", str(folder / "back.txt"))
    assert (folder / "back.txt").read_text() == "alpha"
    ok("fs", "cp", "-r", str(folder / "tree"), f"{sandbox}:tree")
    assert b"beta" in agentuity("exec", sandbox, "--", "sh", "-c", "cat $(find tree -name b.txt)").stdout
    ok("fs", "cp", "-r", f"{sandbox}:tree", str(folder / "out"))
    assert [path.read_text() for path in folder.glob("out/**/b.txt")] == ["beta"]
    ok("fs", "cp", "--strict", str(folder / "tree/a.txt"), f"{sandbox}:/workspace/strict.txt")
    assert agentuity("fs", "cp", "--strict", str(folder / "tree/a.txt"), f"{sandbox}:/no/such/place/x.txt").returncode != 0


@pytest.mark.parametrize("format", ["tar.gz", "zip"])
def test_fs_downloads_and_uploads_archives(sandbox, folder, format):
    agentuity("exec", sandbox, "--", "sh", "-c", "mkdir -p arch/sub; echo one >arch/x; echo two >arch/sub/y")
    file = folder / f"arch.{format}"
    ok("fs", "download", sandbox, str(file), "--path", "arch", "--format", format)
    if format == "zip":
        with zipfile.ZipFile(file) as archive:
            assert archive.read("sub/y") == b"two\n"
    else:
        with tarfile.open(file) as archive:
            assert any(name.removeprefix("./") == "sub/y" for name in archive.getnames())
    ok("fs", "upload", sandbox, str(file), "--path", f"again-{format}", "--format", format)
    assert b"two" in agentuity("exec", sandbox, "--", "cat", f"again-{format}/sub/y").stdout


# ---- account ----

def test_whoami_and_ssh_keys(tmp_path):
    assert agentuity("whoami", group=("auth",)).returncode == 0
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "cli-test", "-f", tmp_path / "id"], check=True)
    added = agentuity("ssh", "add", "--file", str(tmp_path / "id.pub"), group=("auth",))
    assert added.returncode == 0, added
    listed = agentuity("ssh", "list", group=("auth",))
    assert b"cli-test" in listed.stdout + listed.stderr
    fingerprint = subprocess.run(["ssh-keygen", "-l", "-f", tmp_path / "id.pub"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert agentuity("ssh", "delete", fingerprint, "--confirm", group=("auth",)).returncode == 0


@pytest.fixture
def with_ssh(tmp_path):
    """A user's key, and a configuration of ssh that says which port it is: the command line names the host alone."""
    request = urllib.request.Request(f"{os.environ['AGENTUITY_API_URL']}/api/v1/ssh", headers={"Authorization": f"Bearer {os.environ['AGENTUITY_CLI_API_KEY']}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        told = json.load(answer)
    port = told["address"].rsplit(":", 1)[1]
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "id"], check=True)
    (tmp_path / "known").write_text("".join(f"[127.0.0.1]:{port} {key}\n" for key in told["hostKeys"]))
    (tmp_path / "ssh_config").write_text(f"Host 127.0.0.1\n  Port {port}\n  IdentityFile {tmp_path}/id\n  IdentitiesOnly yes\n  IdentityAgent none\n"
                                         f"  BatchMode yes\n  UserKnownHostsFile {tmp_path}/known\n  StrictHostKeyChecking yes\n")
    (tmp_path / "bin").mkdir()
    for program in ("ssh", "scp"):  # ~/.ssh/config is of whoever runs the tests, whatever HOME says
        (tmp_path / "bin" / program).write_text(f'#!/bin/sh\nexec {shutil.which(program)} -F {tmp_path}/ssh_config "$@"\n')
        (tmp_path / "bin" / program).chmod(0o755)
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile/production.yaml").write_text("name: production\noverrides:\n  ion_url: https://127.0.0.1\n")
    return {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "AGENTUITY_CONFIG_DIR": str(tmp_path / "profile")}


def test_ssh_as_the_page_shows_it(sandbox, with_ssh, tmp_path):
    def ssh(*words):
        return agentuity("ssh", sandbox, *words, group=("cloud",), env=with_ssh)
    assert ssh("true").returncode == 255, "its key is not known yet"
    assert agentuity("ssh", "add", "--file", str(tmp_path / "id.pub"), group=("auth",), env=with_ssh).returncode == 0
    ok("exec", sandbox, "--", "sh", "-c", "mkdir -p /workspace && echo hello > /workspace/page")
    listed = ssh("ls -la /workspace")
    assert listed.returncode == 0 and b"page" in listed.stdout, listed
    assert ssh("exit 7").returncode == 7
    shown = ssh("--show")
    assert f"ssh {sandbox}@127.0.0.1".encode() in shown.stdout + shown.stderr, shown
    fingerprint = subprocess.run(["ssh-keygen", "-l", "-f", tmp_path / "id.pub"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert agentuity("ssh", "delete", fingerprint, "--confirm", group=("auth",), env=with_ssh).returncode == 0
    assert ssh("true").returncode == 255, "and no longer"


# ---- pause ----

@pytest.mark.parametrize("pause, resume", [("pause", "resume"), ("hibernate", "wake"), ("suspend", "unpause")])
def test_pause_and_resume(sandbox, pause, resume):
    ok(pause, sandbox)
    assert as_json("get", sandbox)["status"] == "suspended"
    assert agentuity(pause, sandbox).returncode == 1
    ok(resume, sandbox)
    assert as_json("get", sandbox)["status"] == "idle"


def test_pause_tells_when_it_ends_and_exec_wakes():
    id = create("--paused-timeout", "24h")
    assert as_json("pause", id)["terminatesAt"]
    assert b"awake" in agentuity("exec", id, "--", "echo", "awake").stdout
    assert as_json("get", id)["status"] == "idle"
    ok("delete", id, "--confirm")


# ---- checkpoints ----

def test_checkpoints(sandbox):
    agentuity("exec", sandbox, "--", "sh", "-c", "echo then >state")
    made = as_json("checkpoint", "create", sandbox, "my-checkpoint")
    assert made["checkpointId"].startswith("ckpt_") and made["name"] == "my-checkpoint"
    assert "my-checkpoint" in ok("checkpoint", "list", sandbox)
    for reference in (made["checkpointId"], "my-checkpoint"):
        agentuity("exec", sandbox, "--", "sh", "-c", "echo now >state")
        ok("ckpt", "restore", sandbox, reference)
        assert b"then" in agentuity("exec", sandbox, "--", "cat", "state").stdout
    done = agentuity("checkpoint", "create", sandbox, "my-checkpoint")
    assert done.returncode == 1 and b"my-checkpoint" in done.stderr + done.stdout
    ok("checkpoint", "delete", sandbox, made["checkpointId"], "--confirm")
    assert agentuity("checkpoint", "restore", sandbox, made["checkpointId"]).returncode == 1


# ---- snapshots ----

def test_snapshots(sandbox):
    agentuity("exec", sandbox, "--", "sh", "-c", "echo kept >kept")
    made = as_json("snapshot", "create", sandbox, "--name", "cli-snap", "--tag", "python-ml-v2", "--description", "d")
    id = made["snapshotId"]
    assert "cli-snap" in ok("snapshot", "list")
    ok("snapshot", "list", "--sandbox", sandbox, "--sort", "size", "--direction", "desc", "--limit", "5", "--offset", "0")
    from_it = create("--snapshot", "python-ml-v2")
    assert b"kept" in agentuity("exec", from_it, "--", "cat", "kept").stdout
    shown = ok("snapshot", "get", id)
    assert id in shown or "cli-snap" in shown
    assert as_json("snapshot", "get", id)["snapshotId"] == id
    ok("snapshot", "tag", id, "v2.0")
    assert as_json("snapshot", "get", id)["tag"] == "v2.0"
    assert b"kept" in agentuity("run", "--snapshot", "cli-snap:v2.0", "--", "cat", "kept").stdout
    ok("snapshot", "tag", id, "--clear")
    assert as_json("get", from_it)["snapshot"]["id"] == id
    ok("snapshot", "delete", id, "--confirm")
    assert agentuity("snapshot", "get", id).returncode == 1
    assert b"kept" in agentuity("exec", from_it, "--", "cat", "kept").stdout, "it lives on"
    ok("delete", from_it, "--confirm")


def test_a_public_snapshot(sandbox):
    id = as_json("snapshot", "create", sandbox, "--public")["snapshotId"]
    assert as_json("snapshot", "get", id)["public"] is True
    ok("snapshot", "delete", id, "--confirm")


def test_a_snapshot_of_what_is_not_there():
    done = agentuity("snapshot", "create", "sbx_doesnotexist")
    assert done.returncode == 1 and b"not found" in (done.stderr + done.stdout).lower()


# ---- builds ----

# The example of the page about the command line, with a runtime that is here and without packages.
BUILD = """\
version: 1
runtime: base:latest
name: my-snapshot
description: My sandbox snapshot
files:
  - "*.js"
  - src/**
  - config/*.json
  - "!**/*.test.js"
  - "!node_modules/**"
env:
  NODE_ENV: production
  API_URL: https://api.example.com
  SECRET_KEY: ${SECRET_KEY}
metadata:
  version: ${VERSION}
  author: team-name
"""


@pytest.fixture
def project(tmp_path):
    for name in ("index.js", "index.test.js", "src/deep/a.txt", "src/b.test.js", "config/c.json", "config/no.yaml", "node_modules/x/y.js", "other.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"content of {name}\n")
    (tmp_path / "agentuity-snapshot.yaml").write_text(BUILD)
    return tmp_path


def run_in(snapshot, script):
    done = agentuity("run", "--snapshot", snapshot, "--", "sh", "-c", script)
    assert done.returncode == 0, done
    return done.stdout.decode()


def test_a_build_file_is_built_and_not_built_again(project):
    words = ("--env", "SECRET_KEY=secret", "--env", "VERSION=1.0.0", "--metadata", "VERSION=1.0.0")
    built = as_json("snapshot", "build", str(project), *words)
    id = built["snapshotId"]
    seen = run_in("my-snapshot:latest", "find . -type f | sort; cat src/deep/a.txt; echo $NODE_ENV $API_URL $SECRET_KEY")
    assert "./config/c.json\n./index.js\n./src/deep/a.txt\ncontent of src/deep/a.txt\nproduction https://api.example.com secret\n" in seen
    shown = as_json("snapshot", "get", id)
    assert (shown["name"], shown["tag"], shown["description"]) == ("my-snapshot", "latest", "My sandbox snapshot")
    assert shown["userMetadata"]["author"] == "team-name" and shown["fileCount"] == 3
    again = as_json("snapshot", "build", str(project), *words)
    assert again.get("unchanged") is True and again["snapshotId"] == id
    forced = as_json("snapshot", "build", str(project), *words, "--force", "--tag", "production")
    assert forced["snapshotId"] != id and forced["tag"] == "production"
    (project / "index.js").write_text("changed\n")
    changed = as_json("snapshot", "build", str(project), *words)
    assert changed["snapshotId"] not in (id, forced["snapshotId"])
    assert "changed" in run_in("my-snapshot:latest", "cat index.js")
    assert "content of index.js" in run_in("my-snapshot:production", "cat index.js")
    for snapshot in (id, forced["snapshotId"], changed["snapshotId"]):
        ok("snapshot", "delete", snapshot, "--confirm")


def test_a_public_build_with_other_names(project):
    (project / "custom.yaml").write_text("version: 1\nruntime: base:latest\nfiles:\n  - other.txt\n")
    built = as_json("snapshot", "build", str(project), "--file", str(project / "custom.yaml"), "--name", "renamed", "--tag", "v9", "--description", "over",
                    "--message", "why", "--public", "--confirm")
    shown = as_json("snapshot", "get", built["snapshotId"])
    assert (shown["name"], shown["tag"], shown["description"], shown["public"]) == ("renamed", "v9", "over", True)
    assert "content of other.txt" in run_in("renamed:v9", "cat other.txt")
    ok("snapshot", "delete", built["snapshotId"], "--confirm")


def test_a_build_without_files_and_one_with_packages(project):
    (project / "empty.yaml").write_text("version: 1\nruntime: base:latest\nname: empty\nenv:\n  ONLY: env\n")
    built = as_json("snapshot", "build", str(project), "--file", str(project / "empty.yaml"))
    assert "env\n" in run_in("empty", "echo $ONLY")
    ok("snapshot", "delete", built["snapshotId"], "--confirm")
    # What is no package of Debian's fails it with its name, or, where no mirror can be reached, with a word about that.
    (project / "packages.yaml").write_text(
        "version: 1\nruntime: base:latest\nname: packages\ndependencies:\n  - no-such-package-of-debian\nfiles:\n  - other.txt\n")
    done = agentuity("snapshot", "build", str(project), "--file", str(project / "packages.yaml"))
    assert done.returncode == 1 and b"package" in done.stderr + done.stdout


def test_a_dry_run_and_a_template(project):
    ok("snapshot", "build", str(project), "--env", "SECRET_KEY=s", "--metadata", "VERSION=1", "--dry-run")
    assert "runtime:" in ok("snapshot", "generate")
    assert json.loads(ok("snapshot", "generate", "--format", "json"))
