# SPDX-License-Identifier: Apache-2.0
"""burrow runtime add: images built here by hand become runtimes; hostile ones harm nobody."""
import base64
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BURROW = pathlib.Path(os.environ.get("BURROW", TOP / "build/src/burrow"))
sys.path.insert(0, str(TOP / "tests/lib"))
import oci  # noqa: E402
from oci import entry, hard_link, layer, symlink, system  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not BURROW.exists(), reason="burrow is not built"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(not oci.BUSYBOX.exists(), reason="busybox-static is not installed"),
]
needs_registry = pytest.mark.skipif(not (shutil.which("skopeo") and shutil.which("docker-registry")),
                                    reason="skopeo or docker-registry is not installed")


FAILS = -1  # with 1 or 2, by whose fault it is


class Data:
    """A data directory, and burrow over it."""

    def __init__(self, path):
        self.path = path

    def start(self, *arguments, **more):
        environment = {**os.environ, "BURROW_DATA": str(self.path), **more}
        return subprocess.Popen([BURROW, *arguments], env=environment, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __call__(self, *arguments, code=0, **more):
        started = self.start(*arguments, **more)
        out, err = started.communicate(timeout=300)
        codes = (1, 2) if code == FAILS else (code,)
        assert started.returncode in codes, (started.returncode, out, err)
        return out if code == 0 else err

    def add(self, name, source, **more):
        return self("runtime", "add", name, "--from", str(source), **more)

    def sh(self, runtime, script, **more):
        return self("run", "--runtime", runtime, "-u", "root", "--", "/bin/sh", "-c", script, **more)

    def names(self):
        return {row["name"] for row in json.loads(self("runtime", "list", "--json"))}

    def layers(self):
        place = self.path / "runtimes/.layers"
        return {name.name for name in place.iterdir()} if place.exists() else set()

    def is_clean(self):
        """Nothing of an image is left: no runtime, no layer, no half of one."""
        left = [path for path in self.path.rglob("*") if not path.is_dir() and not path.name.startswith((".lock", "lock"))
                and path.suffix != ".log" and self.path / "cache" not in path.parents]
        return not left and not self.layers()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One for all tests that start boxes: attaching a volume takes its time."""
    data = Data(tmp_path_factory.mktemp("data"))
    yield data
    data("detach")


@pytest.fixture
def data(tmp_path):
    """For tests without boxes."""
    return Data(tmp_path / "data")


# ---- an image, from its layout to a box ----

def test_an_image_runs_as_it_says(shared, tmp_path):
    image = oci.simple(tmp_path / "image", Env=["COLOUR=blue", "PATH=/bin"], User="worker:others", WorkingDir="/srv/work",
                       Entrypoint=["/bin/sh", "-c", "id -u; id -g; pwd; echo $COLOUR $0 $1"], Cmd=["one", "two words"])
    shared.add("says:v1", image)
    assert shared("run", "--runtime", "says:v1").splitlines() == ["4711", "4800", "/srv/work", "blue one two words"]
    assert shared("run", "--runtime", "says:v1", "-u", "0", "-w", "/etc", "-e", "COLOUR=red", "--", "sh", "-c",
                  "id -u; pwd; echo $COLOUR").split() == ["0", "/etc", "red"]
    shown = json.loads(shared("runtime", "show", "says:v1", "--json"))
    assert (shown["kind"], shown["image"], shown["state"]) == ("oci", str(image), "ready")
    assert shown["sizeBytes"] > oci.BUSYBOX.stat().st_size
    assert "is as it was built" in shared("runtime", "verify", "says:v1")
    shared("runtime", "remove", "says:v1")
    assert "says" not in shared.names()


DESCRIPTION, TITLE = "org.opencontainers.image.description", "org.opencontainers.image.title"


@pytest.mark.parametrize("labels, told", [
    ({DESCRIPTION: "little tools", TITLE: "other"}, "little tools"),
    ({TITLE: "tools"}, "tools"),
    ({DESCRIPTION: "", TITLE: "tools"}, "tools"),
    ({DESCRIPTION: "two\nlines\x1b[31m\x9b"}, "two?lines?[31m??"),
    ({DESCRIPTION: "ä" * 5000}, "ä" * 100),
    ({DESCRIPTION: "x" * (1 << 20)}, "x" * 200),
    ({DESCRIPTION: 7, TITLE: ["x"]}, None),
    ({DESCRIPTION: "\n\n"}, None),
    (["x"], None),
    (None, None),
])
def test_an_image_is_described_by_its_labels(data, tmp_path, labels, told):
    image = oci.simple(tmp_path / "image", Labels=labels)
    data.add("told", image)
    wanted = told or f"the image {image}"[:190]
    assert json.loads(data("runtime", "show", "told", "--json"))["description"] == wanted
    assert {row["name"]: row for row in json.loads(data("runtime", "list", "--json"))}["told"]["description"] == wanted
    assert wanted in data("runtime", "list") and wanted in data("runtime", "show", "told")
    (data.path / "catalog/told-latest.yaml").write_text(f"name: told\ndescription: by its file\nbuild: {{kind: oci, image: \"{image}\"}}\n")
    assert json.loads(data("runtime", "show", "told", "--json"))["description"] == "by its file"


def test_an_image_without_a_command_says_so(shared, tmp_path):
    shared.add("mute", oci.simple(tmp_path / "image"))
    assert "run needs a command" in shared("run", "--runtime", "mute", code=FAILS)
    shared("runtime", "remove", "mute")


@pytest.mark.parametrize("compression", ["", "gzip", "zstd"])
def test_layers_lie_over_each_other(shared, tmp_path, compression):
    lower = layer(*system(), entry("gone"), entry("gone/deep"), entry("gone/deep/file", "x"), entry("kept"),
                  entry("kept/old", "old"), entry("cleared"), entry("cleared/a", "a"), entry("cleared/b", "b"),
                  entry("file", "lower"), entry("dir"), entry("dir/inside", "x"), entry("again"), entry("again/old", "x"),
                  entry("swapped", "a file"))
    upper = layer(entry(".wh.gone", ""), entry("kept/new", "new"), entry("cleared"), entry("cleared/.wh..wh..opq", ""),
                  entry("cleared/c", "c"), entry("file", "upper"), entry("dir", "now a file"), entry(".wh.again", ""),
                  entry("again"), entry("again/new", "x"), entry("swapped"), entry("swapped/in", "x"))
    third = layer(entry(".wh.kept", ""), entry("implied/by/its/name", "x"))
    layout = oci.Layout(tmp_path / "image")
    shared.add("stacked", layout.index(layout.image([lower, upper, third], compression)))
    found = shared.sh("stacked", "cd /; ls -d gone kept 2>/dev/null; ls cleared again swapped; cat file dir; ls implied/by/its")
    shared("runtime", "remove", "stacked")
    assert found.split() == ["again:", "new", "cleared:", "c", "swapped:", "in", "uppernow", "a", "filename"]


def test_what_files_are_is_kept(shared, tmp_path):
    top = layer(entry("data"), entry("data/one", "same", mode=0o640, uid=4711, gid=4712), hard_link("data/two", "data/one"),
                entry("data/tool", "#!/bin/sh\necho ran\n", mode=0o4755), symlink("data/out", "/etc/passwd"),
                symlink("data/up", "../../../../etc/group"), entry("data/noted", "x", attributes={"user.note": "hello"}),
                entry("data/far", "x", uid=1000660000), entry("dev/zero", kind=tarfile.CHRTYPE, device=(1, 5)),
                entry("data/disk", kind=tarfile.BLKTYPE, device=(8, 0)), entry("data/pipe", kind=tarfile.FIFOTYPE))
    done = shared.start("runtime", "add", "facts", "--from", str(oci.simple(tmp_path / "image", top)))
    out, err = done.communicate(timeout=300)
    assert done.returncode == 0, err
    assert "left out 3 device nodes or pipes" in err and "owners beyond 65535" in err
    lines = shared.sh("facts", "cd /data; stat -c '%n %a %u %g %h' one two tool far; ls; readlink out; readlink up").splitlines()
    assert lines == ["one 640 4711 4712 2", "two 640 4711 4712 2", "tool 4755 0 0 1", "far 644 65534 0 1",
                     "far", "noted", "one", "out", "tool", "two", "up", "/etc/passwd", "../../../../etc/group"]
    noted = next((shared.path / "runtimes/.layers").glob("*/rootfs/data/noted"))
    assert os.getxattr(noted, "user.note") == b"hello"
    assert stat.S_IMODE((shared.path / "runtimes/.layers").stat().st_mode) == 0o700
    shared("runtime", "remove", "facts")


def test_layers_are_shared_and_go_with_the_last(data, tmp_path):
    data.add("first", oci.simple(tmp_path / "first", layer(entry("first", "1"))))
    before = data.layers()
    data.add("second", oci.simple(tmp_path / "second", layer(entry("second", "2"))))
    assert before < data.layers() and len(data.layers()) == 3
    data("runtime", "remove", "first")
    assert len(data.layers()) == 2
    assert data.names() & {"first", "second"} == {"second"}
    data("runtime", "remove", "second")
    assert data.is_clean()


def test_an_image_is_made_anew(shared, tmp_path):
    shared.add("moving", oci.simple(tmp_path / "one", layer(entry("version", "one"))))
    shared.add("moving", oci.simple(tmp_path / "two", layer(entry("version", "two"))))
    assert shared.sh("moving", "cat /version") == "two"
    shared("runtime", "remove", "moving")


def test_names_of_others_are_not_taken(data, tmp_path):
    assert "there is a runtime 'host:latest' already" in data.add("host", oci.simple(tmp_path / "image"), code=FAILS)


def test_damage_is_found(data, tmp_path):
    data.add("whole", oci.simple(tmp_path / "image", layer(entry("file", "contents"))))
    next((data.path / "runtimes/.layers").glob("*/rootfs/file")).write_text("contenTs")
    assert "have changed since it was built" in data("runtime", "verify", "whole", code=FAILS)


def test_a_layer_that_comes_twice_counts_once(shared, tmp_path):
    empty, again = layer(), layer(entry("file", "again"), entry("d"), entry("d/again", "x"), entry(".wh.other", ""))
    layers = [layer(*system(), entry("other", "x")), empty, again, layer(entry("file", "between"), entry("d/.wh.again", "")),
              empty, again, empty]
    layout = oci.Layout(tmp_path / "image")
    shared.add("twice", layout.index(layout.image(layers)))
    assert shared.sh("twice", "cat /file; ls /d; ls /other 2>/dev/null || echo gone").split() == ["againagain", "gone"]
    shared("runtime", "remove", "twice")


def test_a_layer_may_hide_all_below_it(shared, tmp_path):
    layers = [layer(*system(), entry("below", "x")), layer(*system(), entry(".wh..wh..opq", ""), entry("above", "x"))]
    layout = oci.Layout(tmp_path / "image")
    shared.add("bare", layout.index(layout.image(layers)))
    assert shared.sh("bare", "cd /; ls -d above below 2>/dev/null || true") == "above\n"
    shared("runtime", "remove", "bare")


# ---- many layers ----

@pytest.mark.parametrize("count", [16, 17, 60])
def test_many_layers_become_few(shared, tmp_path, count):
    """Sixteen are taken as they are: making one of them would copy every file."""
    layers = [layer(*system())]
    for i in range(1, count):
        layers.append(layer(entry(f"n/{i}", str(i)), entry("last", str(i)), entry(f"n/.wh.{i - 3}", "")))
    layout = oci.Layout(tmp_path / "image")
    shared.add("many", layout.index(layout.image(layers)))
    manifest = next((shared.path / "runtimes/many").glob(".latest-*/manifest")).read_text()
    used = sum(line.startswith("layer ") for line in manifest.splitlines())
    assert used == {16: 16, 17: 2, 60: 15}[count]
    left = shared.sh("many", "cat /last; echo; ls /n").split()
    assert left[0] == str(count - 1)
    assert sorted(map(int, left[1:])) == [count - 3, count - 2, count - 1]
    assert "is as it was built" in shared("runtime", "verify", "many")
    shared("runtime", "remove", "many")
    assert not [name for name in shared.layers() if name.startswith("merged-")]


# ---- indexes, digests ----

def other():
    return "arm64" if oci.ARCHITECTURE == "amd64" else "amd64"


def here(named, **more):
    return {**named, "platform": {"os": "linux", "architecture": oci.ARCHITECTURE, **more}}


def test_an_index_for_many_machines(shared, tmp_path):
    layout = oci.Layout(tmp_path / "image")
    wrong = layout.image([layer(*system(), entry("mine", "no"))], architecture=other())
    right = layout.image([layer(*system(), entry("mine", "yes"))])
    note = layout.blob({"schemaVersion": 2}, oci.MANIFEST, platform={"os": "unknown", "architecture": "unknown"})
    inner = {"schemaVersion": 2, "manifests": [note, {**wrong, "platform": {"os": "linux", "architecture": other()}}, here(right)]}
    layout.index(layout.blob(inner, oci.INDEX))
    shared.add("arch", layout)
    assert shared.sh("arch", "cat /mine") == "yes"
    shared("runtime", "remove", "arch")


def test_an_image_of_another_machine_is_refused(data, tmp_path):
    layout = oci.Layout(tmp_path / "image")
    layout.index(layout.image([layer(entry("x", "x"))], architecture=other()))
    assert f"the image is for linux/{other()}, and this machine is linux/{oci.ARCHITECTURE}" in data.add("arch", layout, code=FAILS)
    assert data.is_clean()


def test_one_of_several_by_its_name(shared, tmp_path):
    layout = oci.Layout(tmp_path / "image")
    named = [{**layout.image([layer(*system(), entry("which", name))]), "annotations": {"org.opencontainers.image.ref.name": name}}
             for name in ("blue", "red")]
    layout.index(*named)
    shared.add("named", f"{layout}:red")
    assert shared.sh("named", "cat /which") == "red"
    assert "name one of: blue, red" in shared.add("named2", layout, code=FAILS)
    assert "the index has no image 'green'" in shared.add("named2", f"{layout}:green", code=FAILS)
    shared("runtime", "remove", "named")


def broken_layer(layout):
    named = layout.image([layer(entry("x", "x"))])
    manifest = json.loads((layout.path / "blobs/sha256" / named["digest"][7:]).read_text())
    blob = layout.path / "blobs/sha256" / manifest["layers"][0]["digest"][7:]
    bytes_ = bytearray(blob.read_bytes())
    bytes_[-10] ^= 1
    blob.write_bytes(bytes_)
    return named, "the image is damaged, or not what it says"


def long_layer(layout):
    named = layout.image([layer(entry("x", "x"))])
    manifest = json.loads((layout.path / "blobs/sha256" / named["digest"][7:]).read_text())
    with open(layout.path / "blobs/sha256" / manifest["layers"][0]["digest"][7:], "ab") as blob:
        blob.write(b"more")
    return named, "has more than the"


def missing_layer(layout):
    named = layout.image([layer(entry("x", "x"))])
    manifest = json.loads((layout.path / "blobs/sha256" / named["digest"][7:]).read_text())
    (layout.path / "blobs/sha256" / manifest["layers"][0]["digest"][7:]).unlink()
    return named, "the image is not whole"


def linked_blob(layout):
    named = layout.image([layer(entry("x", "x"))])
    blob = layout.path / "blobs/sha256" / named["digest"][7:]
    blob.rename(layout.path / "elsewhere")
    blob.symlink_to(layout.path / "elsewhere")
    return named, "the image is not whole"


def deep_index(layout):
    named = layout.image([layer(entry("x", "x"))])
    for _ in range(40):
        named = layout.blob({"schemaVersion": 2, "manifests": [named]}, oci.INDEX)
    return named, "indexes of the image lead to each other more than 4 times"


def odd_digest(layout):
    return {"mediaType": oci.MANIFEST, "digest": "sha256:../../../../etc/passwd", "size": 1}, "64 hexadecimal digits"


def huge_text(layout):
    return {**layout.blob(b" " * (5 << 20), oci.MANIFEST)}, "is the most"


def no_image(layout):
    text = {"schemaVersion": 2, "config": layout.blob({}, "application/x"), "layers": [layout.blob(b"x", "application/x-chart")]}
    return layout.blob(text, oci.MANIFEST), "this is not an image of files"


def many_layers(layout):
    text = {"schemaVersion": 2, "config": layout.blob({}, oci.CONFIG), "layers": [layout.blob(b"x", oci.LAYER)] * 600}
    return layout.blob(text, oci.MANIFEST), "the image has 600 layers; 512 is the most"


def lying_config(layout):
    named = layout.blob({"rootfs": {"diff_ids": ["sha256:" + "0" * 64] * 3}}, oci.CONFIG)
    return layout.blob({"schemaVersion": 2, "config": named, "layers": []}, oci.MANIFEST), "about 3 layers"


def odd_directory(layout):
    return layout.image([], WorkingDir="../../etc"), "is not an absolute path"


def odd_env(layout):
    return layout.image([], Env=["no pair"]), "is not NAME=VALUE"


def nested_text(layout):
    return layout.blob(b"[" * 100000, oci.MANIFEST), "the manifest"


@pytest.mark.parametrize("make", [broken_layer, long_layer, missing_layer, linked_blob, deep_index, odd_digest, huge_text, no_image,
                                  many_layers, lying_config, odd_directory, odd_env, nested_text])
def test_what_is_not_as_named_is_refused(data, tmp_path, make):
    layout = oci.Layout(tmp_path / "image")
    named, sentence = make(layout)
    layout.index(named)
    assert sentence in data.add("bad", layout, code=FAILS)
    assert data.is_clean()


@pytest.mark.parametrize("source, sentence", [
    ("ftp://x", "is no place that an image can come from"),
    ("docker://", "names no image"),
    ("oci:/nowhere", "this is no image layout"),
])
def test_wrong_places_are_one_sentence(data, source, sentence):
    assert sentence in data.add("bad", source, code=FAILS)
    assert data.is_clean()


# ---- hostile configs ----

TRICK = "\nbind /etc\t/srv"  # a line of the manifest that shows a directory of the host
LONG = "x" * (1 << 20)
REFUSED = {
    "directory-line": ({"WorkingDir": "/srv" + TRICK}, "has control characters in it"),
    "directory-escape": ({"WorkingDir": "/srv/\x1b[31m"}, "has control characters in it"),
    "directory-relative": ({"WorkingDir": "srv"}, "is not an absolute path"),
    "directory-long": ({"WorkingDir": "/" + LONG}, "is not an absolute path"),
    "directory-list": ({"WorkingDir": ["/srv"]}, "WorkingDir"),
    "user-line": ({"User": "worker" + TRICK}, "is nobody's name"),
    "user-escape": ({"User": "\x1b]0;x\a"}, "is nobody's name"),
    "user-upper-escape": ({"User": "a b\x9b31m"}, "is nobody's name"),
    "user-path": ({"User": "../../root"}, "is nobody's name"),
    "user-long": ({"User": LONG}, "is nobody's name"),
    "user-list": ({"User": ["root"]}, "User"),
    "env-long": ({"Env": ["A=" + LONG]}, "environment is too long"),
    "env-many": ({"Env": [f"A{i}=" for i in range(5000)]}, "environment is too long"),
    "env-no-name": ({"Env": ["=x"]}, "is not NAME=VALUE"),
    "env-map": ({"Env": {"A": "x"}}, "Env"),
    "env-lines": ({"Env": ["A=" + "\n" * 30000]}, "when they are written down"),
    "entrypoint-long": ({"Entrypoint": [LONG]}, "entry point is too long"),
    "entrypoint-map": ({"Entrypoint": {"/bin/sh": "x"}}, "Entrypoint"),
    "command-long": ({"Cmd": ["x"] * 5000}, "command is too long"),
    "command-nested": ({"Cmd": [["x"]]}, "Cmd"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_hostile_config_is_refused(data, tmp_path, kind):
    config, sentence = REFUSED[kind]
    said = data.add("hostile", oci.simple(tmp_path / "image", **config), code=FAILS)
    assert sentence in said and len(said) < 2000
    assert all(c.isprintable() or c == "\n" for c in said), "no terminal acts on what an image says"
    assert data.is_clean()


def test_no_word_of_an_image_shows_it_the_host(shared, tmp_path):
    """Lines of the manifest say what of the host a box sees; words of an image with line breaks stay words."""
    words = [f"A{TRICK}=1", f"B=2{TRICK}", f"C=%0A{TRICK}"]
    image = oci.simple(tmp_path / "image", Env=["PATH=/bin", *words], Cmd=["/bin/env", TRICK[1:] + TRICK], Labels={"x" + TRICK: TRICK})
    shared.add("trick", image)
    manifest = next((shared.path / "runtimes/trick").glob(".latest-*/manifest")).read_text()
    assert "\nbind" not in manifest
    assert shared.sh("trick", "ls /srv") == ""
    found = shared("run", "--runtime", "trick", "--", "/bin/env")
    assert all(word in found for word in words)
    shared("runtime", "remove", "trick")


@pytest.mark.parametrize("user", ["stranger", "99999", "4294967296", "4294967295", "-1", "0x0", "65536:0", "0:65536", ":0", "worker:", "worker:strangers", "root:0:0", "٠"])
def test_a_user_that_cannot_be_is_told_when_it_is_needed(shared, tmp_path, user):
    """And never is root by mistake."""
    shared.add("whose", oci.simple(tmp_path / "image", User=user))
    started = shared.start("run", "--runtime", "whose", "--", "/bin/id", "-u")
    out, err = started.communicate(timeout=60)
    assert started.returncode != 0 or out != "0\n", user
    assert started.returncode == 0 or len(err.splitlines()) == 1, err
    assert shared.sh("whose", "id -u") == "0\n"
    shared("runtime", "remove", "whose")


PASSWD = {
    "link-out": [symlink("etc/passwd", "/../../../../../../etc/passwd"), symlink("etc/group", "/proc/1/environ")],
    "link-loop": [symlink("etc/passwd", "passwd")],
    "directory": [entry("etc/passwd"), entry("etc/group")],
    "pipe": [entry("etc/passwd", kind=tarfile.FIFOTYPE)],
    "device": [entry("etc/passwd", kind=tarfile.CHRTYPE, device=(1, 5))],
    "huge": [entry("etc/passwd", b"x" * (64 << 20))],
    "lines": [entry("etc/passwd", "worker:" * 100000 + "\n" * 100000 + "worker:x:0\nworker\n:::\n" + "worker:x:99999999999999999999:0\n")],
    "etc-link": [symlink("etc", "/../../../../etc")],
    "etc-file": [entry("etc", "x")],
}


@pytest.mark.parametrize("kind", PASSWD)
def test_user_files_that_are_traps_lead_nowhere(shared, tmp_path, kind):
    layout = oci.Layout(tmp_path / "image")
    lower = [(info, contents) for info, contents in system() if not info.name.startswith("etc")]
    layout.index(layout.image([layer(*lower), layer(*PASSWD[kind])], User="worker"))
    shared.add("trap", layout)
    manifest = next((shared.path / "runtimes/trap").glob(".latest-*/manifest")).read_text()
    assert "user worker" in manifest.splitlines(), "no number comes from such a file"
    started = shared.start("run", "--runtime", "trap", "--", "/bin/id", "-u")
    out, err = started.communicate(timeout=60)
    assert started.returncode != 0 and out == "", (out, err)
    assert shared("run", "--runtime", "trap", "-u", "0", "--", "/bin/id", "-u") == "0\n"
    shared("runtime", "remove", "trap")


# ---- hostile layers ----

BOMB = 1 << 33


def bomb():
    """A tar that says it holds 8 GiB of zeros, of which there are few."""
    info, _ = entry("bomb", "x")
    info.size = BOMB
    return info.tobuf(tarfile.PAX_FORMAT) + b"\0" * 4096


HOSTILE = {
    "dots": (layer(entry("../../../../../../escaped", "x")), "would lead out"),
    "dots-inside": (layer(entry("a/../../../escaped", "x")), "would lead out"),
    "hidden-dots": (layer(entry("a"), entry("a/.wh...", "")), "hides what cannot be hidden"),
    "hidden-dot": (layer(entry("a/.wh..", "")), "hides what cannot be hidden"),
    "hidden-nothing": (layer(entry(".wh.", "")), "hides what cannot be hidden"),
    "absolute": (layer(entry("/escaped", "x"), entry("/tmp/escaped", "x")), None),
    "link-out": (layer(symlink("out", "/tmp"), entry("out/escaped", "x"), symlink("up", "../../../../../../tmp"),
                       entry("up/escaped2", "x")), None),
    "link-swapped": (layer(entry("a"), entry("a/b", "x"), symlink("a", "/etc"), entry("a/escaped", "x")), None),
    "link-proc": (layer(symlink("p", "/proc/self/root/tmp"), entry("p/escaped", "x")), None),
    "link-loop": (layer(symlink("l", "l"), entry("l/escaped", "x")), "ymbolic link"),
    "hard-link-out": (layer(hard_link("passwd", "../../../../etc/passwd")), "would lead out"),
    "hard-link-absolute": (layer(hard_link("passwd", "/etc/passwd")), "a hard link to what is not in the layer"),
    "hard-link-through": (layer(symlink("e", "/etc"), hard_link("passwd", "e/passwd")), "a hard link to what is not in the layer"),
    "hard-link-to-hidden": (layer(entry(".wh.h", ""), hard_link("x", "h")), "a hard link to what is not in the layer"),
    "hard-link-to-dir": (layer(entry("d"), hard_link("x", "d")), "is a hard link to a directory"),
    "hard-link-itself": (layer(entry("x", "x"), hard_link("x", "x")), None),
    "hidden-through": (layer(symlink("e", "/tmp"), entry("e/.wh.victim", "")), None),
    "opaque-through": (layer(symlink("e", "/tmp"), entry("e/.wh..wh..opq", "")), None),
    "overlay-marks": (layer(entry("d", attributes={"trusted.overlay.redirect": "/etc", "trusted.overlay.opaque": "y",
                                                   "security.selinux": "x", "user.overlay.redirect": "/etc"})), None),
    "whiteout-device": (layer(entry("etc", kind=tarfile.CHRTYPE, device=(0, 0))), None),
    "twice": (layer(*[entry("same", str(i)) for i in range(2000)]), None),
    "back-and-forth": (layer(*[e for i in range(300) for e in (entry("t"), entry(f"t/{i}", "x"), entry("t", "file"))]), None),
    "whiteouts-of-nothing": (layer(*[entry(f"none/{i}/.wh.there", "") for i in range(1000)]), None),
    "deep": (layer(entry("/".join("d" * 1 for _ in range(1000)), "x")), "has too long a name"),
    "long": (layer(entry("n" * 300, "x")), "has too long a name"),
    "file-as-dir": (layer(entry("f", "x"), entry("f/escaped", "x")), None),
    "bomb": (bomb(), "more than"),
    "garbage": (b"this is no tar at all" * 100, "neither a tar nor a zip"),
    "cut-off": (layer(entry("x", "x" * 100000))[:50000], "damaged"),
    "odd-names": (layer(entry("new\nline", "x"), entry("bell\a", "x"), entry("\x1b[31m", "x")), None),
    "empty": (layer(), None),
}


@pytest.fixture
def victim():
    """Files that no layer may reach."""
    places = [pathlib.Path(p) for p in ("/escaped", "/tmp/escaped", "/tmp/escaped2", "/etc/escaped")]
    guarded = pathlib.Path("/tmp/victim")
    guarded.write_text("mine")
    before = (pathlib.Path("/etc/passwd").stat().st_nlink, os.listxattr("/tmp"))
    yield guarded
    assert not [place for place in places if place.exists()]
    assert guarded.read_text() == "mine"
    assert (pathlib.Path("/etc/passwd").stat().st_nlink, os.listxattr("/tmp")) == before
    guarded.unlink()


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_layer_harms_nobody(data, tmp_path, victim, kind):
    contents, sentence = HOSTILE[kind]
    layout = oci.Layout(tmp_path / "image")
    layout.index(layout.image([contents]))
    if kind == "bomb":  # as much room as this machine has is bounded by a small file system
        data.path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", data.path], check=True)
    try:
        if sentence:
            assert sentence in data.add("hostile", layout, code=FAILS)
            assert data.is_clean()
        else:
            started = data.start("runtime", "add", "hostile", "--from", str(layout))
            out, err = started.communicate(timeout=300)
            assert started.returncode in (0, 1, 2), (out, err)
            for path in data.path.rglob("*"):
                if not path.is_symlink() and not path.is_dir():
                    assert stat.S_ISREG(path.lstat().st_mode) or path.lstat().st_rdev == 0
                if not path.is_symlink():
                    assert "trusted.overlay.redirect" not in os.listxattr(path)
            if started.returncode:
                assert data.is_clean()
    finally:
        if kind == "bomb":
            subprocess.run(["umount", data.path], check=True)


def test_a_bomb_of_entries_is_bounded_by_inodes(data, tmp_path, victim):
    contents = layer(*[entry(f"n{i}", "") for i in range(20000)])
    layout = oci.Layout(tmp_path / "image")
    layout.index(layout.image([contents]))
    data.path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512m,nr_inodes=6000", "tmpfs", data.path], check=True)
    try:
        assert "entries" in data.add("many", layout, code=FAILS)
        assert data.is_clean()
    finally:
        subprocess.run(["umount", data.path], check=True)


# ---- interruptions ----

def test_what_was_killed_leaves_nothing_and_goes_on(data, tmp_path):
    image = oci.simple(tmp_path / "image", *[layer(entry(f"big{i}", os.urandom(4 << 20))) for i in range(6)])
    started = data.start("runtime", "add", "cut", "--from", str(image))
    for line in started.stderr:  # its layers are being unpacked
        if "unpacking" in line:
            break
    started.kill()
    started.communicate(timeout=60)
    assert "cut" not in data.names() and not (data.path / "catalog").exists()
    data.add("cut", image)
    assert "cut" in data.names()
    assert not [name for name in data.layers() if name.startswith(".new")]
    assert not list((data.path / "cache/images").glob("blobs/sha256/*"))
    data("runtime", "remove", "cut")
    assert data.is_clean()


def test_ctrl_c_leaves_nothing(data, tmp_path):
    image = oci.simple(tmp_path / "image", *[layer(entry(f"big{i}", os.urandom(8 << 20))) for i in range(6)])
    started = data.start("runtime", "add", "cut", "--from", str(image))
    for line in started.stderr:
        if "unpacking" in line:
            break
    started.terminate()
    out, err = started.communicate(timeout=60)
    assert started.returncode in (143, 0), (out, err)  # 0: it was quicker
    if started.returncode:
        assert data.is_clean()


@needs_registry
def test_one_that_is_being_built_is_listed_so(data):
    """Its name's lock says so, not what a killed build has left."""
    (data.path / "catalog").mkdir(parents=True)

    def listed(name):
        told = {row["name"]: row["state"] for row in json.loads(data("runtime", "list", "--json"))}[name]
        assert [line.split(None, 1)[1].startswith(told) for line in data("runtime", "list").splitlines() if line.startswith(f"{name}:")] == [True]
        assert json.loads(data("runtime", "show", name, "--json"))["state"] == told
        return told
    with oci.liar(about("manifest", lambda h: h.say_no_more())) as image:
        for name in ("slow", "other"):
            (data.path / f"catalog/{name}.yaml").write_text(f'name: {name}\nbuild:\n  kind: oci\n  image: "{image}"\n')
        assert listed("slow") == "not built"
        started = data.start("runtime", "build", "slow")
        assert any("asking for the image" in line for line in started.stderr)
        assert (listed("slow"), listed("other")) == ("building", "not built")
        assert "is being built" in data("runtime", "remove", "slow", code=FAILS)
        started.kill()
        started.communicate(timeout=60)
        assert (data.path / "runtimes/.building-slow-latest").exists()
        assert listed("slow") == "not built"


def test_two_at_once(data, tmp_path):
    image = oci.simple(tmp_path / "image", layer(entry("x", os.urandom(1 << 20))))
    started = [data.start("runtime", "add", name, "--from", str(image)) for name in ("a", "b", "a")]
    for one in started:
        out, err = one.communicate(timeout=300)
        assert one.returncode == 0, (out, err)
    assert len(data.layers()) == 2
    for name in ("a", "b"):
        data("runtime", "verify", name)
        data("runtime", "remove", name)
    assert data.is_clean()


# ---- registries ----

@needs_registry
def test_from_a_registry(shared, tmp_path):
    image = oci.simple(tmp_path / "image", layer(entry("hello", "from a registry")), Entrypoint=["/bin/cat", "/hello"])
    with oci.registry(tmp_path) as address:
        oci.push(str(image), f"docker://{address}/team/hello:v1")
        shared.add("pulled", f"docker://{address}/team/hello:v1")
        assert shared("run", "--runtime", "pulled") == "from a registry"
        assert "manifest unknown" in shared.add("none", f"docker://{address}/team/hello:v2", code=FAILS)
        oci.push(f"docker://{address}/team/hello:v1", f"docker-archive:{tmp_path}/saved.tar:hello:v1")
    assert "connection refused" in shared.add("none", f"docker://{address}/team/hello:v1", code=FAILS)
    shared.add("saved", f"docker-archive:{tmp_path}/saved.tar")
    assert shared("run", "--runtime", "saved") == "from a registry"
    for name in ("pulled", "saved"):
        shared("runtime", "remove", name)


# The word "secret", as bcrypt has it at its least cost.
WORKER = "worker:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n"


@needs_registry
def test_passwords_come_from_the_usual_file(data, tmp_path):
    image = oci.simple(tmp_path / "image")
    auth = tmp_path / "auth.json"
    home = tmp_path / "home/.docker"
    home.mkdir(parents=True)
    with oci.registry(tmp_path, WORKER) as address:
        reference = f"docker://{address}/closed:latest"
        oci.push(str(image), reference, "--dest-creds", "worker:secret")
        known = json.dumps({"auths": {address: {"auth": base64.b64encode(b"worker:secret").decode()}}})
        nobody = {"HOME": "/nonexistent", "XDG_RUNTIME_DIR": "/nonexistent", "REGISTRY_AUTH_FILE": ""}
        assert "unauthorized" in data.add("closed", reference, code=FAILS, **nobody)
        assert data.is_clean()
        auth.write_text(known)
        data.add("closed", reference, **{**nobody, "REGISTRY_AUTH_FILE": str(auth)})
        (home / "config.json").write_text(known)
        data.add("closed", reference, **{**nobody, "HOME": str(home.parent)})
        auth.write_text(known.replace(base64.b64encode(b"worker:secret").decode(), base64.b64encode(b"worker:guess").decode()))
        assert "unauthorized" in data.add("other", reference, code=FAILS, **{**nobody, "REGISTRY_AUTH_FILE": str(auth)})
    assert data.names() >= {"closed"} and "other" not in data.names()
    for log in (data.path / "runtimes").glob("*.log"):
        assert "secret" not in log.read_text(), "a password is in no log"


@needs_registry
def test_a_registry_that_goes_leaves_nothing_and_what_came_stays(data, tmp_path):
    """Layers that came whole are not fetched again."""
    image = oci.simple(tmp_path / "image", *[layer(entry(f"big{i}", os.urandom(1 << 20))) for i in range(4)])
    with oci.registry(tmp_path) as address:
        reference = f"docker://{address}/cut:latest"
        oci.push(str(image), reference)
        blobs = sorted((tmp_path / "registry").rglob("blobs/sha256/*/*/data"), key=lambda path: path.stat().st_size)
        broken = blobs[-1].read_bytes()
        blobs[-1].write_bytes(broken[:1000])  # of one layer only a part is served
        data.add("cut", reference, code=FAILS)
        assert data.is_clean()
        blobs[-1].write_bytes(bytes(len(broken)))  # another content
        data.add("cut", reference, code=FAILS)
        assert data.is_clean()
        blobs[-1].write_bytes(broken)
        data.add("cut", reference)
    assert "is as it was built" in data("runtime", "verify", "cut")
    assert not list((data.path / "cache/images").glob("blobs/sha256/*"))


def about(which, answer):
    """A lie about one thing, and the truth about all others."""
    return lambda what, handler: what == which and answer(handler)


FOREIGN = {"mediaType": "application/vnd.oci.image.layer.nondistributable.v1.tar", "urls": ["http://127.0.0.1:1/x", "file:///etc/passwd"]}
LIES = {
    "manifest-huge": (about("manifest", lambda h: h.give(b'{"a": "' + b"x" * (100 << 20) + b'"}', oci.MANIFEST)), "maximum allowed size"),
    "manifest-endless": (about("manifest", lambda h: h.give_without_end(oci.MANIFEST)), "maximum allowed size"),
    "manifest-page": (about("manifest", lambda h: h.give(b"<html>\x1b[31m", oci.MANIFEST)), "invalid character"),
    "manifest-elsewhere": (about("manifest", lambda h: h.lead("file:///etc/passwd")), "unsupported protocol scheme"),
    "config-endless": (about("config", lambda h: h.give_without_end()), "maximum allowed size"),
    "config-other": (about("config", lambda h: h.give(b"{}")), "igest"),
    "layer-other": (about("layer", lambda h: h.give(b"y" * len(h.server.parts["layer"]))), "igest did not match"),
    "layer-short": (about("layer", lambda h: h.give(b"y")), "igest did not match"),
    "layer-long": (about("layer", lambda h: h.give(h.server.parts["layer"] + b"y")), "igest did not match"),
    "layer-cut-off": (about("layer", lambda h: h.give(b"y", length=100000)), "unexpected EOF"),
    "layer-elsewhere": (about("layer", lambda h: h.lead("file:///etc/passwd")), "unsupported protocol scheme"),
    "layer-in-circles": (about("layer", lambda h: h.lead(h.path)), "redirects"),
    "layer-endless": (about("layer", lambda h: h.give_without_end()), "is nearly full; the rest is left to others"),
    "size-less": (lambda what, h: False, "more than the 1 bytes", {"size": 1}),
    "size-more": (lambda what, h: False, "fewer than the", {"size": 1 << 40}),
    "size-negative": (lambda what, h: False, "size", {"size": -5}),
    "foreign": (lambda what, h: False, "is not whole", FOREIGN),
}


@needs_registry
@pytest.mark.parametrize("kind", LIES)
def test_a_registry_that_lies_gains_nothing(data, kind):
    lie, sentence, *more = LIES[kind]
    data.path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", data.path], check=True)
    try:
        with oci.liar(lie, **(more[0] if more else {})) as image:
            said = data.add("lie", image, code=FAILS)
        assert sentence in said and all(c.isprintable() or c == "\n" for c in said), said
        assert data.is_clean()
        assert shutil.disk_usage(data.path).used < 1 << 20, "nothing of it is kept"
        with oci.liar(lambda what, handler: False) as image:
            data.add("truth", image)
    finally:
        subprocess.run(["umount", data.path], check=True)


STALLS = {
    "registry": about("registry", lambda h: h.say_no_more()),
    "manifest": about("manifest", lambda h: h.say_no_more()),
    "config": about("config", lambda h: h.give(b"{", length=1000) and h.say_no_more()),
    "layer": about("layer", lambda h: h.give(b"y" * 5000, length=100000) and h.say_no_more()),
}


@needs_registry
@pytest.mark.parametrize("what", STALLS)
def test_a_registry_that_says_no_more_is_given_up(data, what):
    with oci.liar(STALLS[what]) as image:
        said = data("runtime", "add", "stalled", "--from", image, "--image-timeout", "1s", code=FAILS)
        address = image.split("/")[2]
        assert f"the registry '{address}' has sent nothing for 1s" in said and "--image-timeout" in said, said
    assert data.is_clean() and not list((data.path / "cache/images").glob("layout-*"))
    assert not [path for path in (data.path / "cache/images").rglob("*") if path.is_file() and path.stat().st_size == 5000], "half of a layer"
    with oci.liar(lambda what, handler: False) as image:
        data.add("stalled", image)


@needs_registry
def test_a_build_gives_such_a_registry_up_too(data):
    (data.path / "catalog").mkdir(parents=True)
    with oci.liar(STALLS["layer"]) as image:
        (data.path / "catalog/stalled.yaml").write_text(f'name: stalled\nbuild:\n  kind: oci\n  image: "{image}"\n')
        assert "has sent nothing for 1s" in data("runtime", "build", "stalled", "--image-timeout", "1s", code=FAILS)
    (data.path / "catalog/stalled.yaml").unlink()
    assert data.is_clean()


def test_a_full_disk_is_said_and_leaves_nothing(data, tmp_path):
    image = oci.simple(tmp_path / "image", layer(entry("big", os.urandom(8 << 20))), layer(entry("big2", os.urandom(40 << 20))))
    data.path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=110m", "tmpfs", data.path], check=True)
    try:
        said = data.add("full", image, code=FAILS)
        assert "more than" in said or "full" in said or "No space" in said
        assert data.is_clean()
    finally:
        subprocess.run(["umount", data.path], check=True)


@pytest.mark.parametrize("words, sentence", [
    (["runtime", "add", "x"], "burrow runtime add needs an image"),
    (["runtime", "export", "x"], "burrow runtime export needs a place after the name: oci:DIR"),
    (["runtime", "export", "host", "oci:/tmp/x", "y"], "does not take 'y'"),
    (["runtime", "export", "host", "/tmp/x"], "is no place for an image"),
    (["runtime", "export", "host", "oci:/tmp/burrow-not-there"], "shows directories of this machine"),
])
def test_wrong_words_are_one_sentence(data, words, sentence):
    assert sentence in data(*words, code=FAILS)
    shutil.rmtree("/tmp/burrow-not-there", ignore_errors=True)
