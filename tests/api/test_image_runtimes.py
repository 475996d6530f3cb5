# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of images, and their snapshots as images: added, run, changed, snapshotted, exported, added again, run by podman."""
import fcntl
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import threading

import pytest

import oci
import server as servers
from client import check_problem, until
from oci import entry, layer

pytestmark = pytest.mark.skipif(not oci.BUSYBOX.exists(), reason="busybox-static is not installed")
PODMAN = {name: shutil.which(name) for name in ("podman", "runc")}  # Debian's, where there is one


def burrow(data, *words):
    done = subprocess.run([servers.BURROW, *words, "--data", data], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A server whose data directory has a runtime of an image, and no other."""
    top = tmp_path_factory.mktemp("images")
    data = top / "data"
    data.mkdir()
    second = layer(entry("srv", uid=4711, gid=4712), entry("srv/first", "1", uid=4711, gid=4712), entry("gone", "x"),
                   entry("kept", "k"), entry("etc/old", "x"))
    image = oci.simple(top / "image", second,
                       Env=["COLOUR=blue", "PATH=/bin"], User="worker", WorkingDir="/srv", Cmd=["/bin/cat", "/srv/first"],
                       Labels={"org.opencontainers.image.description": "little tools"})
    burrow(data, "runtime", "add", "little", "--from", str(image))
    server = servers.Server(data, options=["--runtime", "little:latest"])
    server.top = top
    try:
        yield server.start()
        server.end()
    finally:
        server.abandon()


def run(api, script, **fields):
    answer = api.post("/api/v1/run", {"command": ["/bin/sh", "-c", script], **fields})
    assert answer.status == 200, str(answer)
    assert answer.json["exitCode"] == 0, answer.json
    return answer.json["stdout"]["text"]


@pytest.fixture(scope="module")
def snapshot(place):
    """Of a sandbox of the image, with files added, changed and removed."""
    api = place.client
    made = api.post("/api/v1/sandboxes", {"runtime": "little", "env": {"SIZE": "large"}})
    assert made.status == 201, str(made)
    id = made.json["id"]
    run(api, "echo 2 >/srv/second; echo changed >/srv/first; mkdir -p /srv/tree/deep; ln -s second /srv/link; ln /srv/second /srv/hard",
        sandbox=id)
    run(api, "rm /gone; rm /etc/old; echo other >/kept", sandbox=id, user="root")
    taken = api.post(f"/api/v1/sandboxes/{id}/snapshots", {"name": "changed"})
    assert taken.status == 201, str(taken)
    yield taken.json["id"]
    assert api.delete(f"/api/v1/sandboxes/{id}").status in (200, 204)


STATE = "id -u; pwd; echo $COLOUR; cat first second hard link /kept; ls -d tree/deep; ls /gone /etc/old 2>/dev/null; stat -c %h second"
EXPECTED = ["4711", "/srv", "blue", "changed", "2", "2", "2", "other", "tree/deep", "2"]


@pytest.fixture(scope="module")
def exported(place, snapshot):
    answer = place.client.get(f"/api/v1/snapshots/{snapshot}/export?format=oci")
    assert answer.status == 200, str(answer)
    assert answer.headers["content-type"] == "application/x-tar"
    assert answer.headers["content-disposition"].endswith('.oci.tar"')
    path = place.top / "exported.tar"
    path.write_bytes(answer.body)
    return path


def test_a_sandbox_is_as_the_image_says(place):
    api = place.client
    assert run(api, "id -u; id -g; pwd; echo $COLOUR; cat first", runtime="little").split() == ["4711", "4712", "/srv", "blue", "1"]
    assert run(api, "id -u; pwd", runtime="little", user="root", directory="/etc").split() == ["0", "/etc"]


def test_an_image_in_the_catalog_is_made_when_it_is_asked_for(place):
    """By the server itself, with the rights it has kept: whiteouts and owners are made, too."""
    image = oci.simple(place.top / "later", layer(entry("old", "x")), layer(entry(".wh.old", ""), entry("mine", "m", uid=4711)))
    (place.data / "catalog/later.yaml").write_text(f'name: later\nbuild:\n  kind: oci\n  image: "{image}"\n')

    def answer():
        command = ["/bin/sh", "-c", "stat -c %u /mine; ls -d /old"]
        got = place.client.post("/api/v1/run", {"runtime": "later", "command": command}, may_fail=True)
        assert got.status in (200, 503), str(got)  # 503: it is being made
        return got.status == 200 and got
    described = {entry["name"]: entry["description"] for entry in place.client.get("/sandbox/runtimes?limit=100").data["runtimes"]}
    assert described["little:latest"] == "little tools" and described["later:latest"] == f"the image {image}"[:190]
    assert place.client.get("/api/v1/runtimes/little").json["description"] == "little tools"
    ran = until(answer, "the image to be made").json
    assert (ran["stdout"]["text"], ran["exitCode"]) == ("4711\n", 1), ran


@pytest.mark.skipif(not shutil.which("skopeo"), reason="skopeo is not installed")
def test_an_image_that_is_being_made_is_listed_so(place):
    """By the server that makes it, and by a burrow beside it; it is made when its registry goes on."""
    api, going_on = place.client, threading.Event()

    def pause(what, handler):
        return what == "manifest" and not going_on.wait(servers.PATIENCE)

    def states():
        told = api.get("/api/v1/runtimes/paused").json
        listed = {row["name"]: row for row in api.get("/api/v1/runtimes?limit=100").json["items"]}["paused:latest"]
        beside = {row["name"]: row["state"] for row in json.loads(burrow(place.data, "runtime", "list", "--json"))}["paused"]
        assert told["built"] == listed["built"] == (told["state"] == "ready")
        return {told["state"], listed["state"], beside}
    with oci.liar(pause) as image:
        (place.data / "catalog/paused.yaml").write_text(f'name: paused\nbuild:\n  kind: oci\n  image: "{image}"\n')
        assert states() == {"not built"}
        assert api.post("/api/v1/run", {"runtime": "paused", "command": ["/x"]}, may_fail=True).status == 503
        until(lambda: states() == {"building"}, "it to be listed as being built")
        check_problem(api.delete("/api/v1/runtimes/paused", may_fail=True), 409, "conflict")
        going_on.set()
        until(lambda: states() == {"ready"}, "the image to be made")
    until(lambda: api.delete("/api/v1/runtimes/paused").status != 409, "its boxes to be gone")


def test_layers_that_no_runtime_has_are_counted_and_pruned(place):
    """A build that was killed when its layers were whole, and one that failed when some had come."""
    api, layers = place.client, place.data / "runtimes/.layers"
    before = {path.name for path in layers.iterdir()}
    burrow(place.data, "runtime", "add", "orphan", "--from", str(oci.simple(place.top / "orphan", layer(entry("big", b"x" * 3000000)))))
    orphan = next(path for path in layers.iterdir() if path.name not in before)
    orphan.rename(place.top / "kept")  # what fails now sweeps
    shutil.rmtree(place.data / "runtimes/orphan")
    (place.data / "catalog/orphan-latest.yaml").unlink()
    broken = oci.simple(place.top / "broken", layer(entry("whole", os.urandom(2000000))), layer(entry("y", "y")))
    blobs = sorted(broken.path.glob("blobs/sha256/*"), key=lambda path: path.stat().st_mtime)
    next(blob for blob in blobs if 100 < blob.stat().st_size < 300 and blob.read_bytes()[:2] == b"\x1f\x8b").write_bytes(b"z")
    assert subprocess.run([servers.BURROW, "runtime", "add", "broken", "--data", place.data, "--from", str(broken)], capture_output=True).returncode
    cached = place.data / "cache/images/blobs/sha256"
    assert sum(path.stat().st_size for path in cached.iterdir()) > 2000000
    (place.top / "kept").rename(orphan)

    def unused(freed):
        return freed["unused"]["bytes"]
    assert unused(api.get("/api/v1/system/df").json["parts"]) > 5000000
    for trial in (True, False):
        freed = api.post("/api/v1/system/prune", {"dryRun": trial}).json["freed"]
        assert unused(freed) > 5000000, freed
    assert {path.name for path in layers.iterdir()} == before and not cached.exists()
    assert run(api, "cat first", runtime="little") == "1"


def test_a_trial_counts_what_goes_one_after_the_other(place):
    """A build that was used when another took its place, its merged layer, and what that was made of."""
    api, layers = place.client, place.data / "runtimes/.layers"
    assert api.post("/api/v1/system/prune", {}).status == 200
    before = {path.name for path in layers.iterdir()}
    layout = oci.Layout(place.top / "many")
    words = ["runtime", "add", "many", "--from"]
    burrow(place.data, *words, str(layout.index(layout.image([layer(entry(f"n{i}", os.urandom(100000))) for i in range(17)]))))
    old = (place.data / "runtimes/many/latest").resolve()
    with (old / "manifest").open("rb") as used:
        fcntl.flock(used, fcntl.LOCK_SH)  # as its boxes have it
        burrow(place.data, *words, str(oci.simple(place.top / "fewer")))
        assert old.exists() and any(path.name.startswith("merged-") for path in layers.iterdir())
        assert api.get("/api/v1/system/df").json["parts"]["unused"]["bytes"] == 0
    told = [api.get("/api/v1/system/df").json["parts"]["unused"]]
    told += [api.post("/api/v1/system/prune", {"dryRun": trial}).json["freed"]["unused"] for trial in (True, True, False)]
    assert told[0]["bytes"] > 3300000 and all(one == told[-1] for one in told), told
    assert not old.exists() and api.get("/api/v1/system/df").json["parts"]["unused"]["bytes"] == 0
    burrow(place.data, "runtime", "remove", "many")
    assert {path.name for path in layers.iterdir()} == before


def test_an_exported_snapshot_is_an_image(exported):
    with tarfile.open(exported) as tar:
        names = tar.getnames()
        index = json.load(tar.extractfile("index.json"))
        read = {name: tar.extractfile(name).read() for name in names if name.startswith("blobs/")}
    assert all(oci.digest(data)[7:] == name.rsplit("/", 1)[1] for name, data in read.items()), "each blob is what it is called"
    manifest = json.loads(read["blobs/sha256/" + index["manifests"][0]["digest"][7:]])
    assert len(manifest["layers"]) == 4  # two of the image, what every box needs, what the snapshot changed
    with tarfile.open(fileobj=io.BytesIO(read["blobs/sha256/" + manifest["layers"][-1]["digest"][7:]])) as tar:
        changes = {info.name: info for info in tar}
    assert {".wh.gone", "etc/.wh.old", "kept", "srv/first", "srv/second"} <= set(changes)
    assert changes["srv/second"].uid == 4711 or changes["srv/hard"].uid == 4711
    assert {changes[name].type for name in ("srv/second", "srv/hard")} == {tarfile.REGTYPE, tarfile.LNKTYPE}


def test_what_was_exported_comes_back(place, exported):
    directory = place.top / "unpacked"
    with tarfile.open(exported) as tar:
        tar.extractall(directory)
    burrow(place.data, "runtime", "add", "back", "--from", f"oci:{directory}")
    assert run(place.client, "echo $SIZE; " + STATE, runtime="back").split() == EXPECTED
    again = place.top / "again"
    burrow(place.data, "runtime", "export", "back", f"oci:{again}")
    burrow(place.data, "runtime", "add", "twice", "--from", f"oci:{again}")
    assert run(place.client, STATE, runtime="twice").split() == EXPECTED
    for name in ("back", "twice"):
        shown = json.loads(burrow(place.data, "runtime", "show", name, "--json"))
        assert shown["state"] == "ready"


@pytest.mark.skipif(not all(PODMAN.values()), reason="podman and runc are not installed")
def test_podman_runs_what_was_exported(place, exported):
    short = pathlib.Path(tempfile.mkdtemp(prefix="bp", dir="/tmp"))  # podman takes 50 characters
    words = [PODMAN["podman"], "--root", place.top / "podman", "--runroot", short, "--runtime", PODMAN["runc"]]
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--network", "none"]
    try:
        done = subprocess.run([*words, "run", "--rm", *limits, f"oci-archive:{exported}", "/bin/sh", "-c", STATE],
                              capture_output=True, text=True, timeout=300)
        if done.returncode and "OCI runtime" in done.stderr:
            pytest.skip(f"podman starts nothing here: {done.stderr[-200:]}")
        assert done.stdout.split() == EXPECTED, done.stderr
    finally:
        subprocess.run([*words, "rmi", "-af"], capture_output=True, timeout=300)
        subprocess.run(["umount", "-l", place.top / "podman/overlay"], capture_output=True)
        shutil.rmtree(short, ignore_errors=True)


def test_a_view_of_the_machine_is_not_exported(api, new, made):
    sandbox = new(runtime="host:latest")
    taken = api.post(f"/sandbox/{sandbox.id}/snapshot", {"name": "hosted"}).data
    made.append(taken["snapshotId"])
    answer = api.get(f"/api/v1/snapshots/{taken['snapshotId']}/export?format=oci")
    check_problem(answer, 400, "invalid_request", "shows directories of this machine")


def test_formats_have_names(place, snapshot):
    check_problem(place.client.get(f"/api/v1/snapshots/{snapshot}/export?format=zip"), 400, "invalid_request", "snapshot' or 'oci", field="format")
