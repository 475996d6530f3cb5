# SPDX-License-Identifier: Apache-2.0
"""Sites that packages are installed from, as folders of files that a web server shows: an apt repository, an index for pip, a registry for npm.
What is in them was made by the test."""
import base64
import hashlib
import json
import shutil
import subprocess
import zipfile

from npm_registry import make_package

PIP_FILES = ("usr/bin/pip", "usr/bin/pip3", "usr/lib/python3/dist-packages/pip")


def make_apt(site, root, certificate, index_url):
    """A newer python3-pip: the pip of the file system `root`, set to trust the certificate and to look for packages at index_url."""
    tree = site.with_name(f"{site.name}-package")
    for name in PIP_FILES:
        source, place = root / name, tree / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, place, symlinks=True) if source.is_dir() else shutil.copy2(source, place)
    (tree / "etc").mkdir()
    shutil.copy(certificate, tree / "etc/pip.crt")
    (tree / "etc/pip.conf").write_text(f"[global]\nindex-url = {index_url}\ncert = /etc/pip.crt\nbreak-system-packages = true\nroot-user-action = ignore\n")
    (tree / "DEBIAN").mkdir()
    control = "Package: python3-pip\nVersion: 99.0\nArchitecture: all\nMaintainer: a test <test@example.org>\nDescription: pip of a test\n"
    (tree / "DEBIAN/control").write_text(control)
    site.mkdir(parents=True)
    subprocess.run(["dpkg-deb", "-Zgzip", "-z1", "--build", "--root-owner-group", tree, site / "pip.deb"], check=True, capture_output=True)
    data = (site / "pip.deb").read_bytes()
    (site / "Packages").write_text(f"{control}Filename: ./pip.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n")
    shutil.rmtree(tree)


def make_wheel(site, name, module, source):
    """name 1.0 with one module."""
    folder = site / "simple" / name
    folder.mkdir(parents=True)
    wheel = f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    with zipfile.ZipFile(folder / wheel, "w") as archive:
        archive.writestr(f"{module}.py", source)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    (folder / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{wheel}">{wheel}</a></body></html>')


def make_npm(site, url, name):
    data = make_package(name)
    (site / name / "-").mkdir(parents=True)
    (site / name / "-" / f"{name}-1.0.0.tgz").write_bytes(data)
    version = {"name": name, "version": "1.0.0", "dist": {"tarball": f"{url}/{name}/-/{name}-1.0.0.tgz",
                                                           "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}}
    (site / name / "index.html").write_text(json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))
