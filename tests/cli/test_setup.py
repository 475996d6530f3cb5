# SPDX-License-Identifier: Apache-2.0
"""tools/setup: whatever program the tests start is in a package that it installs, or in every Debian."""
import re
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TESTS = TOP / "tests"

# Programs the tests start by name, and the package of each. What Debian marks as required is on every machine.
PACKAGES = {
    "btrfs": "btrfs-progs",
    "busybox": "busybox-static", "cpio": "cpio", "curl": "curl", "docker-registry": "docker-registry", "skopeo": "skopeo", "podman": "podman", "gcc": "gcc", "mkfs.btrfs": "btrfs-progs", "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs", "mmdebstrap": "mmdebstrap", "node": "nodejs", "npm": "npm", "nm": "binutils", "openssl": "openssl", "patch": "patch", "pkg-config": "pkg-config", "python3": "python3",
    "qemu-system-x86_64": "qemu-system-x86", "readelf": "binutils", "scdoc": "scdoc", "sftp": "openssh-client", "ssh": "openssh-client", "ssh-keygen": "openssh-client", "ssh-add": "openssh-client", "ssh-agent": "openssh-client",
    "rsync": "rsync", "strace": "strace", "valgrind": "valgrind", "strip": "binutils", "zstd": "zstd", "git": "git", "nft": "nftables", "ip": "iproute2",
    "fish": "fish", "zsh": "zsh", "Rscript": "r-base-core",
}
REQUIRED = {"apt-cache", "apt-get", "bash", "cp", "diff", "dpkg-deb", "echo", "fallocate", "hostname", "ldconfig", "ldd", "losetup", "mount", "prlimit", "setpriv", "sh", "stty", "umount", "unshare", "nsenter"}

CALLS = [re.compile(call) for call in (
    r"""(?:subprocess\.\w+|run_quietly)\(\s*\[\s*["']([\w.-]+)["']""",  # Python, by a list
    r"""(?:which|find_tool)\(["']([\w.-]+)["']\)""",
    r"""(?:tool_find|need_program|RUN)\("([\w.-]+)\"""",  # C
    r"""["' ](mkfs\.\w+) """,
)]


def programs_in(text):
    return {name for call in CALLS for name in call.findall(text)}


def programs(under):
    found = {}
    for path in sorted(under.rglob("*")):
        if path.is_file() and (path.suffix in (".py", ".c", ".h") or path.name == "run"):
            for name in programs_in(path.read_text()):
                found.setdefault(name, path.relative_to(TOP))
    return found


def installed(*groups):
    return set(subprocess.run([TOP / "tools/setup", "--list", *groups], capture_output=True, text=True, check=True).stdout.split())


def test_programs_are_found_in_calls():
    assert programs_in('subprocess.run(["patch", "-s"])') == {"patch"}
    assert programs_in('RUN("strace", "-f")') == {"strace"}
    assert programs_in('shutil.which("zstd")') == {"zstd"}


def test_every_program_that_tests_start_is_installed_for_them():
    have = installed("build", "run", "test")
    used = {name: path for name, path in programs(TESTS).items() if "compat/agentuity/cli" not in str(path)}
    assert "patch" in used and "mkfs.xfs" in used
    for name, path in used.items():
        assert name in REQUIRED or PACKAGES.get(name) in have, f"{path} starts '{name}', which tools/setup does not install"


def test_every_program_that_the_long_suites_start_is_installed_for_them():
    have = installed("build", "run", "test", "compat")
    for name, path in programs(TESTS / "compat").items():
        assert name in REQUIRED or PACKAGES.get(name) in have, f"{path} starts '{name}', which tools/setup does not install"


def test_what_the_static_checks_start_is_installed_before_them():
    assert {"clang-format", "git", "python3"} <= installed("build", "run", "test")


def test_an_unknown_group_is_refused():
    done = subprocess.run([TOP / "tools/setup", "--list", "nothing"], capture_output=True, text=True)
    assert done.returncode == 1 and "unknown group 'nothing'" in done.stderr
