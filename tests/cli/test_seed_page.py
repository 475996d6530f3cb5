# SPDX-License-Identifier: Apache-2.0
"""The command lines of the page that the command line was made after, in its order, each run for real by a shell against a server. Names of the Internet
are those of a world of the test's own (lib/world.py): its resolver, its certificate, its packages."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.request
import zipfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import package_sites  # noqa: E402
import server as servers  # noqa: E402
from ports import own_range  # noqa: E402
from test_commands import plain_environment  # noqa: E402
from world import DNS, ONE, TWO, World  # noqa: E402

PATIENCE = 240
REASON = servers.why_not() or next((f"there is no {tool} here" for tool in ("npm", "node", "dpkg-deb", "openssl") if not shutil.which(tool)), None)
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
SITES = {"httpbin.org": ONE, "api.github.com": TWO, "deb.test": ONE, "pypi.test": TWO, "npm.test": TWO}
NUMPY = "class array(list):\n    def mean(self):\n        return sum(self) / len(self)\n"


class Page:
    """Runs lines of the page. Ids in them (sbx_abc123) stand for what `ids` says."""

    def __init__(self, place, server):
        self.place, self.ids, self.key = place, {}, server.key
        (place / "bin").mkdir()
        (place / "bin" / "burrow").symlink_to(servers.BURROW)
        self.environment = plain_environment(place / "home", BURROW_DATA=str(server.data), PATH=f"{place / 'bin'}:{os.environ['PATH']}")

    def run(self, line, code=0):
        for name, id in self.ids.items():
            line = line.replace(name, id)
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=PATIENCE, env=self.environment, cwd=self.place,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == code, (line, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done

    def __call__(self, line, code=0):
        return self.run(line, code).stdout

    def lines(self, text):
        """Several, none of which may fail."""
        return [self(line) for line in text.strip().splitlines()]

    def json(self, line, code=0):
        done = self.run(line, code)
        return json.loads(done.stdout)

    def create(self, options="", name="sbx_abc123"):
        """From here on the page's id means this one."""
        self.ids[name] = self.json(f"burrow cloud sandbox create --json {options}")["sandboxId"]
        return self.ids[name]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    files = tmp_path_factory.mktemp("sites")
    with World(SITES, files) as world:
        servers.borrow_runtimes(tmp_path_factory.mktemp("base"))
        package_sites.make_apt(files / "deb.test", servers.CACHE / "runtimes/base/latest/rootfs", world.certificate, "https://pypi.test/simple/")
        for name, module, source in (("numpy", "numpy", NUMPY), ("pandas", "pandas", ""), ("scikit-learn", "sklearn", "")):
            package_sites.make_wheel(files / "pypi.test", name, module, source)
        package_sites.make_npm(files / "npm.test", "https://npm.test", "zod")
        yield world


@pytest.fixture(scope="module")
def page(world, tmp_path_factory):
    place = tmp_path_factory.mktemp("page")
    server = servers.Server(place / "data", options=["--network-dns", DNS, "--port-range", own_range(place=3)])
    shutil.copy(world.certificate, place / "ca.crt")
    (place / "sources.list").write_text("deb [trusted=yes] http://deb.test/ ./\n")
    try:
        server.start()
        yield Page(place, server)
        server.end()
    finally:
        server.abandon()


@pytest.fixture(scope="module")
def box(page):
    """The sandbox of most lines."""
    page.create("--idle-timeout 0 --name box", name="sbx_box")
    yield page.ids["sbx_box"]
    page("burrow rm sbx_box --confirm")


@pytest.fixture
def here(page, box):
    """sbx_abc123 is that one again, whatever the test before did."""
    page.ids["sbx_abc123"] = box
    return page


@pytest.fixture(scope="module")
def node(page):
    """A sandbox with this machine's npm and node, whose registry is the world's; and a `bun` that runs a file, which node does here."""
    (page.place / "bun").write_text('#!/bin/sh\nshift\nexec node "$@"\n')
    (page.place / "bun").chmod(0o755)
    page.create("--runtime host:latest --idle-timeout 0 --network --port 3000 --name my-api --file /opt/bin/bun:bun --env PATH=/opt/bin:/usr/local/bin:/usr/bin:/bin --file /etc/npm.crt:ca.crt "
                "--env NODE_EXTRA_CA_CERTS=/etc/npm.crt --env npm_config_registry=https://npm.test --env npm_config_cafile=/etc/npm.crt --env npm_config_update_notifier=false", name="sbx_node")
    yield page.ids["sbx_node"]
    page("burrow rm sbx_node --confirm")


TRUST = "--file /workspace/ca.crt:ca.crt --env SSL_CERT_FILE=/workspace/ca.crt"


# ---- quick reference: aliases ----

def test_every_alias_is_the_command(here, box):
    here("burrow cloud sb list")
    for prefix in ("cloud sandbox", "cloud sb", "sandbox", "sb", "cloud", ""):
        assert here.json(f"burrow {prefix} get sbx_abc123 --json")["id"] == box
    for word in ("delete", "rm", "del", "remove", "destroy", "terminate"):
        id = here.create()
        assert id in here(f"burrow cloud sandbox {word} sbx_abc123")
        here("burrow cloud sandbox get sbx_abc123", code=3)
    here.ids["sbx_abc123"] = box
    for fs in ("fs", "files", "file"):
        assert "workspace/" in here(f"burrow cloud sandbox {fs} ls sbx_abc123 /")
    here("burrow cloud sandbox new --name made-by-an-alias")
    snapshot = here.json("burrow cloud sandbox snapshot new made-by-an-alias --tag by-alias --json")["snapshotId"]
    here("burrow cloud sandbox ckpt new made-by-an-alias mark")
    job = here.json("burrow cloud sandbox job new made-by-an-alias --json -- true")["id"]
    for get in ("get", "show", "info"):
        for line, id in (("made-by-an-alias", None), (f"snapshot {snapshot}", snapshot), (f"execution {job}", job), (f"job made-by-an-alias {job}", job),
                         ("runtime base:latest", None)):
            *group, name = line.split(" ", 1)
            told = here.json(f"burrow cloud sandbox {' '.join(group)} {get} {name} --json")
            assert id is None or told["id"] == id, line
    for word in ("list", "ls"):
        for line in ("", "snapshot", "runtime", "rt"):
            assert here.json(f"burrow cloud sandbox {line} {word} --json"), line
        for line in ("checkpoint", "ckpt", "execution", "job"):
            assert here.json(f"burrow cloud sandbox {line} {word} made-by-an-alias --json"), line
    assert here.json("burrow cloud sandbox hibernate made-by-an-alias --json")["status"] == "paused"
    assert here.json("burrow cloud sandbox wake made-by-an-alias --json")["status"] in ("idle", "running")
    here.lines(f"""
        burrow cloud sandbox snapshot rm {snapshot} --confirm
        burrow cloud sandbox rm made-by-an-alias
    """)


# ---- one-shot execution ----

def test_one_shot_execution(page, node):
    assert page('burrow cloud sandbox run -- echo "Hello, World!"') == "Hello, World!\n"
    told = page(f"""burrow cloud sandbox run {TRUST} --network -- python3 -c "import urllib.request; print(urllib.request.urlopen('https://httpbin.org/ip').read())" """)
    assert '"host": "httpbin.org"' in told and '"path": "/ip"' in told
    page.ids["sbx_abc123"] = node
    (page.place / "package.json").write_text(json.dumps({"name": "x", "version": "1.0.0", "scripts": {"build": "echo built $((6*7))"}}))
    page("burrow cloud sandbox fs cp ./package.json sbx_abc123:/workspace/package.json")
    page("burrow cloud sandbox snapshot create sbx_abc123 --tag node-typescript")
    assert "built 42\n" in page("burrow cloud sandbox run --snapshot node-typescript --memory 1Gi -- npm run build")
    assert page("""burrow cloud sandbox run --timeout 10s -- sh -c 'sleep 1 && echo "Done"'""") == "Done\n"
    page("burrow cloud sandbox run --timeout 1s -- sleep 60", code=124)
    # without a network nothing is reached
    page(f"burrow cloud sandbox run {TRUST} -- curl -s https://httpbin.org/ip", code=6)


def test_the_options_of_run(page):
    (page.place / "in.txt").write_text("from a file\n")
    told = page.json("burrow cloud sandbox run --memory 512Mi --cpu 500m --disk 256Mi --timeout 30s --runtime base:latest --env A=1 --env B=2 "
                     "--file /workspace/in.txt:in.txt --scope services:read --scope services:write --project-id proj_abc123 --org-id org_1 "
                     "--json -- sh -c 'cat in.txt; echo $A $B; ulimit -a >&2; exit 5'", code=5)
    assert told["stdout"] == "from a file\n1 2\n" and told["exitCode"] == 5 and told["executionId"] and told["sandboxId"]
    assert page("burrow cloud sandbox run --quiet -- sh -c 'echo out; exit 3'", code=3) == ""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z x\n", page("burrow cloud sandbox run --timestamps -- echo x"))
    runtime = page.json("burrow cloud sandbox runtime get base:latest --json")["id"]
    assert page(f"burrow cloud sandbox run --runtime-id {runtime} -- echo by id") == "by id\n"
    assert "no good" in page.run("burrow cloud sandbox run --dependency 'no good' -- true", code=2).stderr


# ---- interactive sandbox ----

def test_create_says_what_it_made(page, node):
    page.ids["sbx_abc123"] = node
    page("burrow cloud sandbox snapshot create sbx_abc123 --tag python-ml")
    said = page("burrow cloud sandbox create")
    assert re.search(r"created sandbox sbx_\w+ in [\d.]+ ?m?s", said), said
    for line in ("burrow cloud sandbox create --memory 1Gi --cpu 1000m --network", "burrow cloud sandbox create --snapshot python-ml",
                 "burrow cloud sandbox create --project-id proj_abc123"):
        assert "created sandbox sbx_" in page(line)
    said = page("burrow cloud sandbox create --port 3000 --name my-server")
    assert re.search(r"created sandbox sbx_\w+ in", said) and re.search(r"url: http://\S+", said), said
    page("burrow cloud sandbox delete my-server --confirm")
    page(f"burrow snapshot delete {page.json('burrow snapshot get python-ml --json')['id']} --confirm")


def test_the_options_of_create(page):
    (page.place / "in.txt").write_text("from a file\n")
    made = page.json("burrow cloud sandbox create --memory 512Mi --cpu 500m --disk 128Mi --network --idle-timeout 1h --runtime base:latest --name every-option "
                     "--description 'with every option' --port 3001 --env A=1 --env B=2 --file /workspace/in.txt:in.txt --metadata '{\"k\": [1, 2]}' "
                     "--scope one --scope two --project-id proj_abc123 --org-id org_1 --json")
    assert made["limits"]["memoryBytes"] == 512 << 20 and made["limits"]["cpuMillicores"] == 500 and made["limits"]["diskBytes"] == 128 << 20
    assert made["idleTimeoutMs"] == 3600000 and made["name"] == "every-option" and made["description"] == "with every option"
    assert made["scopes"] == ["one", "two"] and made["project"] == "proj_abc123"
    assert made["network"]["enabled"] is True and made["metadata"] == {"k": [1, 2]} and made["url"].startswith("http://")
    assert page("burrow exec every-option -- sh -c 'cat in.txt; echo $A $B'") == "from a file\n1 2\n"
    page("burrow rm every-option")
    runtime = page.json("burrow cloud sandbox runtime get base:latest --json")["id"]
    page(f"burrow create --runtime-id {runtime} --name by-id")
    assert page.json("burrow get by-id --json")["runtime"] == "base:latest"
    page("burrow rm by-id")
    for port in ("0", "80", "1023", "65536"):
        assert "1024 to 65535" in page.run(f"burrow cloud sandbox create --port {port}", code=2).stderr


def test_commands_in_sequence(page, node):
    page.ids["sbx_abc123"] = node
    page("burrow cloud sandbox exec sbx_abc123 -- rm -f package.json")
    assert '"version": "1.0.0"' in page("burrow cloud sandbox exec sbx_abc123 -- npm init -y")
    assert "added 1 package" in page("burrow cloud sandbox exec sbx_abc123 -- npm install zod")
    page("burrow cloud sandbox exec sbx_abc123 -- npm pkg set scripts.build='node_modules/.bin/zod || sh node_modules/zod/run.js'")
    assert "zod 1.0.0\n" in page("burrow cloud sandbox exec sbx_abc123 -- npm run build")
    assert re.fullmatch(r"\S+Z x\n", page("burrow cloud sandbox exec sbx_abc123 --timeout 5m --timestamps -- echo x"))
    assert page("burrow cloud sandbox exec sbx_abc123 --quiet -- echo x") == ""
    page("burrow cloud sandbox exec sbx_abc123 --timeout 100ms -- sleep 60", code=124)


def test_list_and_its_options(page, box):
    page.create("--name my-sandbox --project-id proj_abc123")
    page("burrow cloud sandbox list")
    for line in ("--status idle", "--name my-sandbox", "--project-id proj_abc123", "--sort=created --direction=desc", "--all # Show all sandboxes", "--json",
                 "--mode interactive", "--org-id org_1", "--limit 100 --offset 0", *(f"--sort {field}" for field in ("name", "created", "updated", "status", "mode", "execution_count"))):
        assert "my-sandbox" in page(f"burrow cloud sandbox list {line}"), line
    for status in ("creating", "running", "paused", "stopping", "suspended", "terminated", "failed"):
        assert "my-sandbox" not in page(f"burrow cloud sandbox list --status {status}")
    assert "my-sandbox" not in page("burrow cloud sandbox list --mode oneshot")
    assert [item["name"] for item in page.json("burrow cloud sandbox list --json --limit 1 --name my-sandbox")] == ["my-sandbox"]
    names = [item["createdAt"] for item in page.json("burrow cloud sandbox list --json --sort created --direction asc")]
    assert names == sorted(names) and len(names) >= 2
    for line in ("--status odd", "--sort odd", "--direction odd", "--mode odd", "--limit -1"):
        page(f"burrow cloud sandbox list {line}", code=2)


def test_get_and_delete(page):
    page.create("--memory 256Mi")
    page("burrow cloud sandbox exec sbx_abc123 -- true")
    said = page("burrow cloud sandbox get sbx_abc123")
    assert all(re.search(rf"^{word} ", said, re.M) for word in ("id", "state", "created", "limits", "commands")), said
    page("burrow cloud sandbox delete sbx_abc123")
    page("burrow cloud sandbox delete sbx_abc123", code=3)
    page.create()
    page("burrow cloud sandbox delete sbx_abc123 --confirm # Skip prompt")
    page.create()
    page("burrow cloud sandbox rm sbx_abc123")


def test_pause_and_resume(here):
    here("burrow cloud sandbox pause sbx_abc123")
    assert here.json("burrow get sbx_abc123 --json")["status"] == "paused"
    here("burrow cloud sandbox resume sbx_abc123")
    assert here.json("burrow get sbx_abc123 --json")["status"] in ("idle", "running")


# ---- port mapping ----

def test_a_web_server_is_reached_by_its_url(page, node):
    made = page.json("burrow cloud sandbox create --port 3000 --name my-server --json")
    assert made["sandboxId"].startswith("sbx_") and made["status"] in ("creating", "idle") and made["url"].startswith("http://")
    page.ids["sbx_abc123"] = made["sandboxId"]
    assert made["url"] in page("burrow cloud sandbox get sbx_abc123")
    page("burrow rm sbx_abc123")
    page.ids["sbx_abc123"] = node
    (page.place / "server.js").write_text("require('http').createServer((q, r) => r.end('asked ' + q.url)).listen(3000, () => console.log('ready'));\n")
    page("burrow cloud sandbox fs cp ./server.js sbx_abc123:/home/agentuity/")
    words = ["burrow", "cloud", "sandbox", "exec", node, "--", "bun", "run", "/home/agentuity/server.js"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=page.environment) as serving:
        assert serving.stdout.readline() == b"ready\n"
        url = page.json("burrow cloud sandbox get sbx_abc123 --json")["url"]
        assert page(f"curl -s --max-time 60 {url}/api/health") == "asked /api/health"
        serving.terminate()
        serving.wait(PATIENCE)


# ---- files ----

def test_copying_files(here, box):
    (here.place / "local-file.txt").write_text("local\n")
    (here.place / "config.json").write_text("{}\n")
    (here.place / "file.txt").write_text("x" * 1024)
    (here.place / "src").mkdir(exist_ok=True)
    (here.place / "src" / "a.js").write_text("a\n")
    here("burrow cloud sandbox fs cp ./local-file.txt sbx_abc123:/workspace/file.txt")
    assert here("burrow exec sbx_abc123 -- cat file.txt") == "local\n"
    here("burrow exec sbx_abc123 -- sh -c 'echo \"{}\" > output.json'")
    here("burrow cloud sandbox fs cp sbx_abc123:/workspace/output.json ./output.json")
    assert (here.place / "output.json").read_text() == "{}\n"
    here("burrow cloud sandbox fs cp -r ./src sbx_abc123:/workspace/src")
    assert here("burrow exec sbx_abc123 -- cat /workspace/src/a.js") == "a\n"
    here("burrow cloud sandbox fs cp ./config.json sbx_abc123:/home/agentuity/app/config/settings.json")
    assert here("burrow exec sbx_abc123 -- cat /home/agentuity/app/config/settings.json") == "{}\n"
    assert "--strict" in here.run("burrow cloud sandbox fs cp --strict ./file.txt sbx_abc123:/home/agentuity/must-exist/file.txt", code=3).stderr
    here("burrow exec sbx_abc123 -- test ! -e /home/agentuity/must-exist")
    told = here.json("burrow cloud sandbox fs cp ./file.txt sbx_abc123:/home/agentuity/new/path/file.txt --json")
    assert told == {"source": "./file.txt", "destination": f"{box}:/home/agentuity/new/path/file.txt", "bytesTransferred": 1024, "filesTransferred": 1,
                    "directoriesCreated": ["/home/agentuity/new", "/home/agentuity/new/path"]}
    told = here.json("burrow cloud sandbox fs cp --recursive --timeout 5m ./src sbx_abc123:/home/agentuity/new/nested/src --json")
    assert told["filesTransferred"] == 1 and told["directoriesCreated"][0] == "/home/agentuity/new/nested"


def test_listing_making_and_removing(here):
    here("burrow exec sbx_abc123 -- sh -c 'mkdir -p /workspace/src && touch /workspace/src/b.js /workspace/temp.txt && mkdir -p old cache/deep && touch cache/deep/f'")
    assert "src/" in here("burrow cloud sandbox fs ls sbx_abc123")
    assert "b.js" in here("burrow cloud sandbox fs ls sbx_abc123 /workspace/src")
    for option in ("-l", "--long"):
        assert re.search(r"^drwxr-xr-x .*\d\d:\d\d.* src/?$", here(f"burrow cloud sandbox fs ls sbx_abc123 {option}"), re.M)
    assert "src" in [item["path"] for item in here.json("burrow cloud sandbox fs ls sbx_abc123 --json")]
    here.lines("""
        burrow cloud sandbox fs mkdir sbx_abc123 /workspace/output
        burrow cloud sandbox fs mkdir sbx_abc123 /workspace/data/processed -p
        burrow cloud sandbox fs mkdir sbx_abc123 /workspace/data/again --parents
        burrow cloud sandbox fs rm sbx_abc123 /workspace/temp.txt
        burrow cloud sandbox fs rmdir sbx_abc123 /workspace/old
    """)
    here("burrow cloud sandbox fs mkdir sbx_abc123 /workspace/no/parents", code=3)
    here("burrow cloud sandbox fs rmdir sbx_abc123 /workspace/cache", code=6)
    here("burrow cloud sandbox fs rmdir sbx_abc123 /workspace/cache -r")
    here("burrow cloud sandbox fs rmdir sbx_abc123 /workspace/data --recursive")
    assert set(here("burrow fs ls sbx_abc123").split()) & {"old/", "cache/", "temp.txt", "data/"} == set()


def test_archives(here):
    here("burrow exec sbx_abc123 -- sh -c 'rm -rf /workspace/* && mkdir -p src && echo a > src/a.js && echo r > root.txt'")
    for line in ("burrow cloud sandbox fs download sbx_abc123 ./backup.tar.gz", "burrow cloud sandbox fs download sbx_abc123 ./backup.zip --format zip",
                 "burrow cloud sandbox fs download sbx_abc123 ./src.tar.gz --path /workspace/src", "burrow cloud sandbox fs dl sbx_abc123 ./dl.tar.gz"):
        here(line)
    with tarfile.open(here.place / "backup.tar.gz", "r:gz") as archive:
        assert {"root.txt", "a.js"} <= {pathlib.Path(name).name for name in archive.getnames()}
    with zipfile.ZipFile(here.place / "backup.zip") as archive:
        assert {"root.txt", "a.js"} <= {pathlib.Path(name).name for name in archive.namelist()}
    with tarfile.open(here.place / "src.tar.gz") as archive:
        assert "root.txt" not in {pathlib.Path(name).name for name in archive.getnames()}
    shutil.copy(here.place / "src.tar.gz", here.place / "project.tar.gz")
    shutil.copy(here.place / "backup.zip", here.place / "deps.zip")
    here("burrow cloud sandbox fs upload sbx_abc123 ./project.tar.gz")
    here("burrow cloud sandbox fs upload sbx_abc123 ./deps.zip --path /workspace/node_modules")
    here("burrow cloud sandbox fs ul sbx_abc123 ./deps.zip --path /workspace/by-format --format zip")
    assert here("burrow exec sbx_abc123 -- cat a.js node_modules/root.txt by-format/src/a.js") == "a\nr\na\n"


# ---- snapshots and checkpoints ----

def test_snapshots(here, box, node):
    here("burrow exec sbx_abc123 -- touch something")
    first = here.json("burrow cloud sandbox snapshot create sbx_abc123 --json")
    assert first["tag"] == "latest" and first["snapshotId"].startswith("snp_")
    second = here.json("burrow cloud sandbox snapshot create sbx_abc123 --tag python-ml-v2 --json")
    third = here.json("burrow cloud sandbox snapshot create sbx_abc123 --public --name shown --description 'a snapshot' --org-id org_1 --json")
    assert third["public"] is True and third["name"] == "shown" and third["description"] == "a snapshot"
    made = [one["id"] for one in (first, second, third)]
    for line in ("", "--sandbox sbx_abc123", "--sort=size --direction=desc", "--limit 100 --offset 0", *(f"--sort {field} --direction asc" for field in ("name", "created", "size", "files"))):
        told = [item["id"] for item in here.json(f"burrow cloud sandbox snapshot list {line} --json")]
        assert set(made) <= set(told), line
        assert made[0] in here(f"burrow cloud sandbox snapshot list {line}")
    assert here.json("burrow snapshot list --limit 1 --offset 1 --json")[0]["id"] == here.json("burrow snapshot list --json")[1]["id"]
    other = here.json("burrow snapshot create my-api --tag of-another --json")["id"]  # which has more files
    for field, key in (("created", "createdAt"), ("size", "sizeBytes"), ("files", "fileCount")):
        for direction in ("asc", "desc"):
            found = [item[key] for item in here.json(f"burrow snapshot list --sort {field} --direction {direction} --limit 100 --json")]
            assert found == sorted(found, reverse=direction == "desc") and len(set(found)) > 1, field
    assert not [item for item in here.json("burrow snapshot list --sandbox my-api --json") if item["id"] in made]
    here(f"burrow snapshot delete {other}")
    here("burrow snapshot list --sort odd", code=2)
    here.ids["snp_xyz789"] = first["id"]
    page = here
    page.create(f"--snapshot {first['id']}", name="sbx_def456")
    told = page.json("burrow cloud sandbox snapshot get snp_xyz789 --json")
    assert told["sizeBytes"] >= 0 and told["fileCount"] >= 1 and told["tag"] == "latest"
    said = page("burrow cloud sandbox snapshot get snp_xyz789")
    assert re.search(r"^size ", said, re.M) and re.search(r"^files ", said, re.M) and re.search(r"^tag +latest", said, re.M)
    assert page.ids["sbx_def456"] in said
    page("burrow rm sbx_def456")
    page("burrow cloud sandbox snapshot tag snp_xyz789 latest")
    page("burrow cloud sandbox snapshot tag snp_xyz789 v2.0")
    assert page.json("burrow snapshot get snp_xyz789 --json")["tag"] == "v2.0"
    page("burrow cloud sandbox snapshot tag snp_xyz789 --clear")
    assert page.json("burrow snapshot get snp_xyz789 --json").get("tag") is None
    page("burrow cloud sandbox snapshot delete snp_xyz789")
    page("burrow cloud sandbox snapshot delete snp_xyz789", code=3)
    page.ids["snp_xyz789"] = second["id"]
    page("burrow cloud sandbox snapshot delete snp_xyz789 --confirm")
    page(f"burrow cloud sandbox snapshot delete {third['id']} --confirm")


def test_builds(page, tmp_path):
    (tmp_path / "project" / "src").mkdir(parents=True)
    for name in ("a.js", "src/b.js", "src/b.test.js"):
        (tmp_path / "project" / name).write_text(name)
    build = """
        version: 1
        runtime: base:latest
        name: my-snapshot
        description: My sandbox snapshot
        files:
          - "*.js"
          - src/**
          - "!**/*.test.js" # Exclude test files
        env:
          NODE_ENV: production
          SECRET_KEY: ${API_KEY}
        metadata:
          version: ${VERSION}
          author: team-name
    """
    (tmp_path / "project" / "agentuity-snapshot.yaml").write_text("\n".join(line[8:] for line in build.splitlines()))
    (tmp_path / "project" / "custom-build.yaml").write_text("version: 1\nruntime: base:latest\nfiles:\n  - a.js\n")
    inside = f"cd {shlex.quote(str(tmp_path / 'project'))} && "
    substituted = "--env API_KEY=secret --env VERSION=1.0.0"
    made = page.json(f"{inside} burrow cloud sandbox snapshot build . {substituted} --json")
    assert page("burrow run --snapshot my-snapshot -- sh -c 'find . -type f | sort; echo $NODE_ENV $SECRET_KEY'") == "./a.js\n./src/b.js\nproduction secret\n"
    told = page.json(f"burrow snapshot get {made['id']} --json")
    assert told["metadata"] == {"version": "1.0.0", "author": "team-name"} and told["tag"] == "latest" and told["description"] == "My sandbox snapshot"
    assert page.json(f"{inside} burrow cloud sandbox snapshot build . {substituted} --json")["unchanged"] is True
    forced = page.json(f"{inside} burrow cloud sandbox snapshot build . {substituted} --force --json")
    assert forced["id"] != made["id"]
    page(f"{inside} cd .. && burrow cloud sandbox snapshot build ./project --file custom-build.yaml --tag production")
    named = page.json(f"{inside} burrow cloud sandbox snapshot build . --file custom-build.yaml --name other --description d --metadata a=b --metadata c=d "
                      "--public --confirm --org-id org_1 --json")
    assert named["name"] == "other" and named["description"] == "d" and named["metadata"] == {"a": "b", "c": "d"} and named["public"] is True
    page(f"{inside} burrow cloud sandbox snapshot generate > agentuity-snapshot.yaml")
    page(f"{inside} burrow cloud sandbox snapshot generate --format json > agentuity-snapshot.json")
    template = (tmp_path / "project" / "agentuity-snapshot.yaml").read_text()
    for field in ("version", "runtime", "name", "description", "dependencies", "files", "env", "metadata"):
        assert re.search(rf"^(# )?{field}:", template, re.M), field
    assert re.search(r"^# Optional: Debian packages", template, re.M)
    for name in ("agentuity-snapshot.yaml", "agentuity-snapshot.json"):  # as it is, it can be built
        assert page.json(f"{inside} burrow cloud sandbox snapshot build . --file {name} --force --json")["name"] == "my-snapshot"
    assert json.loads((tmp_path / "project" / "agentuity-snapshot.json").read_text())["version"] == 1
    for one in page.json("burrow snapshot list --limit 100 --json"):
        if one.get("name") in ("my-snapshot", "other") or one.get("tag") == "production":
            page(f"burrow snapshot delete {one['id']} --confirm")


def test_checkpoints(here):
    here("burrow exec sbx_abc123 -- sh -c 'echo one > state'")
    here("burrow cloud sandbox checkpoint create sbx_abc123 my-checkpoint")
    [told] = here.json("burrow cloud sandbox checkpoint list sbx_abc123 --json")
    assert told["name"] == "my-checkpoint"
    here.ids["ckpt_def456"] = told["id"]
    assert "my-checkpoint" in here("burrow cloud sandbox ckpt list sbx_abc123")
    for line in ("burrow cloud sandbox checkpoint restore sbx_abc123 ckpt_def456", "burrow cloud sandbox checkpoint restore sbx_abc123 my-checkpoint"):
        here("burrow exec sbx_abc123 -- sh -c 'echo two > state'")
        here(line)
        assert here("burrow exec sbx_abc123 -- cat state") == "one\n"
    here("burrow cloud sandbox checkpoint delete sbx_abc123 ckpt_def456 --confirm")
    assert here.json("burrow cloud sandbox checkpoint list sbx_abc123 --json") == []


# ---- history ----

def test_executions(here):
    for number in range(6):
        here(f"burrow exec sbx_abc123 -- sh -c 'exit {number}'", code=number)
    assert len(here.json("burrow cloud sandbox execution list sbx_abc123 --json")) >= 6
    last = here.json("burrow cloud sandbox execution list sbx_abc123 --limit 5 --json")
    assert [one["exitCode"] for one in last] == [5, 4, 3, 2, 1]
    told = here.json(f"burrow cloud sandbox execution get {last[0]['id']} --json")
    assert told["command"] == ["sh", "-c", "exit 5"] and told["exitCode"] == 5 and told["durationMs"] >= 0
    assert told["stdout"]["url"] and told["stderr"]["url"]
    said = here(f"burrow cloud sandbox execution get {last[0]['id']}")
    assert re.search(r"^exit code +5$", said, re.M) and "exit 5" in said
    assert all(re.search(line, said, re.M) for line in (r"^took +[\d.]+m?s$", r"^stdout +http://\S+=stdout$", r"^stderr +http://\S+=stderr$")), said


def test_events(page):
    page.create()
    page("burrow pause sbx_abc123 && burrow resume sbx_abc123")
    told = page.json("burrow cloud sandbox events sbx_abc123 --json")
    kinds = [event["kind"] for event in told]
    assert kinds[0] == "sandbox.created" and any("pause" in kind for kind in kinds) and any("resume" in kind for kind in kinds)
    assert page.json("burrow cloud sandbox events sbx_abc123 --reverse --json") == told[::-1]
    assert page.json("burrow cloud sandbox events sbx_abc123 --limit 2 --json") == told[-2:]  # "Limit to last … events"
    assert page.json("burrow cloud sandbox events sbx_abc123 --limit 2 --reverse --json") == told[:-3:-1]
    lines = page("burrow cloud sandbox events sbx_abc123 --limit 10").splitlines()
    assert len(lines) == 1 + min(10, len(told))
    page("burrow rm sbx_abc123")


def test_statistics(page):
    assert page("burrow cloud sandbox stats")
    told = page.json("burrow cloud sandbox stats --start 2026-04-01T00:00:00Z --end 2026-04-22T00:00:00Z --json")
    assert told["items"] == []  # nothing was used then
    page("burrow cloud sandbox run -- true")
    told = page.json("burrow cloud sandbox stats --start 2026-04-01T00:00:00Z --json")
    assert sum(item["runs"] for item in told["items"]) >= 1
    page("burrow cloud sandbox stats --start yesterday-ish", code=2)


# ---- common workflows ----

def test_a_development_environment_and_code_from_its_snapshot(page):
    page.create("--memory 2Gi --network --file /etc/apt/sources.list:sources.list")
    page("burrow cloud sandbox exec sbx_abc123 -- apt-get update")
    page("burrow cloud sandbox exec sbx_abc123 -- apt-get install -y python3 python3-pip")
    assert "Successfully installed" in page("burrow cloud sandbox exec sbx_abc123 -- pip install numpy pandas scikit-learn")
    snapshot = page.json("burrow cloud sandbox snapshot create sbx_abc123 --tag python-ml --json")["id"]
    page("burrow cloud sandbox delete sbx_abc123")
    page.create("--snapshot python-ml", name="sbx_def456")
    (page.place / "analysis.py").write_text("import numpy\nopen('/workspace/output.csv', 'w').write(f'{numpy.array([2, 4]).mean()}\\n')\nprint('analysed')\n")
    page("burrow cloud sandbox fs cp ./analysis.py sbx_def456:/workspace/")
    assert page("burrow cloud sandbox exec sbx_def456 -- python3 /workspace/analysis.py") == "analysed\n"
    page("burrow cloud sandbox fs cp sbx_def456:/workspace/output.csv ./results.csv")
    assert (page.place / "results.csv").read_text() == "3.0\n"
    page("burrow cloud sandbox delete sbx_def456")
    assert page('burrow cloud sandbox run -- python3 -c "print(sum(range(100)))"') == "4950\n"
    assert page('burrow cloud sandbox run --snapshot python-ml -- python3 -c "import numpy; print(numpy.array([1,2,3]).mean())"') == "2.0\n"
    assert '"path": "/zen"' in page(f"burrow cloud sandbox run {TRUST} --network -- curl -s https://api.github.com/zen")
    page(f"burrow snapshot delete {snapshot} --confirm")


def test_json_output(here, box):
    assert box in [one["id"] for one in here.json("burrow cloud sandbox list --json")]
    assert here.json("burrow cloud sandbox get sbx_abc123 --json")["id"] == box
    assert isinstance(here.json("burrow cloud sandbox snapshot list --json"), list)


# ---- runtimes, variables, jobs ----

def test_runtimes(page):
    told = page.json("burrow cloud sandbox runtime list --json")
    assert ("base", "latest") in [(one["name"], one["tags"][0]) for one in told] and all(one["id"].startswith("srt_") for one in told)
    assert "base:latest" in page("burrow cloud sandbox runtime list")
    for line, reverse in (("--sort=name --direction=asc", False), ("--sort=name --direction=desc", True)):
        names = [f"{one['name']}:{one['tags'][0]}" for one in page.json(f"burrow cloud sandbox runtime list {line} --json")]
        assert names == sorted(names, reverse=reverse) and len(names) == len(told), line
    page("burrow cloud sandbox runtime list --sort created")
    assert page.json("burrow cloud sandbox runtime list --limit 2 --offset 1 --json") == told[1:3]
    page("burrow cloud sandbox runtime list --limit 10 --offset 20")
    assert page.json("burrow cloud sandbox rt list --json") == told
    for line in ("--sort odd", "--direction odd"):
        page(f"burrow cloud sandbox runtime list {line}", code=2)


def test_environment_variables(here):
    here("burrow cloud sandbox env sbx_abc123 MY_VAR=value")
    assert here("burrow exec sbx_abc123 -- sh -c 'echo $MY_VAR'") == "value\n"
    here("burrow cloud sandbox env sbx_abc123 VAR1=value1 VAR2=value2")
    assert here.json("burrow cloud sandbox env sbx_abc123 --json")["env"] == {"MY_VAR": "value", "VAR1": "value1", "VAR2": "value2"}
    here("burrow cloud sandbox env sbx_abc123 --delete MY_VAR")
    here("burrow cloud sandbox env sbx_abc123 -d VAR1 -d VAR2")
    assert here.json("burrow cloud sandbox env sbx_abc123 --json")["env"] == {}


def job_state(page, id, states):
    deadline = time.monotonic() + PATIENCE
    while (told := page.json(f"burrow cloud sandbox job get sbx_abc123 {id} --json"))["status"] not in states:
        assert time.monotonic() < deadline, told
    return told


def test_background_jobs(page, node):
    page.ids["sbx_abc123"] = node
    (page.place / "build").write_text("console.log('built'); process.exit(2)\n")
    page("burrow fs cp ./build sbx_abc123:/workspace/build")
    build = page.json("burrow cloud sandbox job create sbx_abc123 --json -- bun run build")
    install = page.json("burrow cloud sandbox job create sbx_abc123 --json -- npm install")
    assert build["status"] in ("pending", "running", "failed")
    told = job_state(page, build["id"], ("failed", "completed"))
    assert told["status"] == "failed" and told["exitCode"] == 2 and told["stdout"]["url"] and told["startedAt"] and told["endedAt"]
    said = page(f"burrow cloud sandbox job get sbx_abc123 {build['id']}")
    assert all(re.search(line, said, re.M) for line in (r"^status +failed$", r"^exit code +2$", r"^started .* ago$|^started +now$", r"^ended ", r"^stdout +http", r"^stderr +http")), said
    assert page(f"curl -s --max-time 60 -H 'Authorization: Bearer {page.key}' '{told['stdout']['url']}'") == "built\n"
    assert job_state(page, install["id"], ("failed", "completed"))["status"] == "completed"
    listed = [one["id"] for one in page.json("burrow cloud sandbox job list sbx_abc123 --json")]
    assert {build["id"], install["id"]} <= set(listed)
    assert len(page.json("burrow cloud sandbox job list sbx_abc123 --limit 1 --json")) == 1
    assert build["id"] in page("burrow cloud sandbox job list sbx_abc123 --limit 10")
    for option in ("", "--force"):
        job = page.json("burrow cloud sandbox job create sbx_abc123 --json -- sleep 1000")
        page.ids["job_xyz789"] = job["id"]
        page(f"burrow cloud sandbox job destroy sbx_abc123 job_xyz789 {option}")
        assert job_state(page, job["id"], ("cancelled", "failed"))["status"] == "cancelled"
        assert "cancelled" in page("burrow cloud sandbox job get sbx_abc123 job_xyz789")
