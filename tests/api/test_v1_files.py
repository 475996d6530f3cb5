# SPDX-License-Identifier: Apache-2.0
"""Files of a sandbox by burrow's own API: every operation, every refusal, conditions under races."""
import base64
import concurrent.futures
import email.utils
import gzip
import io
import pathlib
import shutil
import subprocess
import tarfile
import zipfile
from urllib.parse import urlencode

import pytest

from client import ANY, Raw, check_problem, pages, until


@pytest.fixture(scope="module")
def box(api):
    made = api.create(runtime="base:latest")
    yield Box(api, made)
    made.delete()


class Box:
    """A sandbox, and the routes about its files."""

    def __init__(self, api, sandbox):
        self.api, self.sandbox = api, sandbox
        self.top = f"/api/v1/sandboxes/{sandbox.id}/files"

    def url(self, verb="", **query):
        return f"{self.top}{'/' + verb if verb else ''}?{urlencode(query)}"

    def get(self, path, headers=None, **query):
        return self.api.get(self.url(path=path, **query), headers=headers)

    def put(self, path, body=b"", headers=None, **query):
        return self.api.put(self.url(path=path, **query), body=body, headers=headers)

    def post(self, verb, **body):
        return self.api.post(f"{self.top}/{verb}", body)

    def ask(self, verb, **query):
        return self.api.get(self.url(verb, **query))

    def delete(self, path, headers=None, **query):
        return self.api.call("DELETE", self.url(path=path, **query), headers=headers)

    def sh(self, script):
        ran = self.sandbox.sh(script)
        assert ran.exit_code == 0, ran
        return ran


def fine(answer):
    assert answer.status == 200, str(answer)
    return answer.json


def names(answer):
    return [item["path"] for item in fine(answer)["items"]]


# ---- one file ----

def test_a_file_is_written_and_read(box):
    written = box.put("/tmp/one/a.txt", b"hello world", createParents="true", mode="0640")
    told = fine(written)
    assert told["kind"] == "file" and told["sizeBytes"] == 11 and told["mode"] == "0640" and told["uid"] == 0
    assert told["etag"] == written.headers["etag"]
    read = box.get("/tmp/one/a.txt")
    assert (read.status, read.body) == (200, b"hello world")
    assert read.headers["etag"] == told["etag"] and read.headers["accept-ranges"] == "bytes"
    assert email.utils.parsedate_to_datetime(read.headers["last-modified"])
    stat = fine(box.ask("stat", path="/tmp/one/a.txt"))
    assert stat["etag"] == told["etag"] and stat["path"] == "/tmp/one/a.txt" and stat["modifiedAt"].endswith("Z")
    empty = fine(box.put("/tmp/one/a.txt", b""))
    assert empty["sizeBytes"] == 0 and empty["mode"] == "0640" and empty["etag"] != told["etag"]
    assert box.get("/tmp/one/a.txt").body == b""


def test_paths_are_relative_to_the_sandboxes_directory(box):
    here = box.sandbox.output("pwd").strip()
    here = here.decode() if isinstance(here, bytes) else here
    fine(box.put("rel.txt", b"here"))
    assert box.get(f"{here}/rel.txt").body == b"here"


def test_parts_of_a_file(box):
    box.put("/tmp/range", b"0123456789")
    etag = box.get("/tmp/range").headers["etag"]
    for asked, status, got, told in (
            ("bytes=2-4", 206, b"234", "bytes 2-4/10"), ("bytes=7-", 206, b"789", "bytes 7-9/10"),
            ("bytes=-3", 206, b"789", "bytes 7-9/10"), ("bytes=0-99", 206, b"0123456789", "bytes 0-9/10"),
            ("bytes=1-2,4-5", 200, b"0123456789", None), ("bytes=4-2", 200, b"0123456789", None), ("lines=1-2", 200, b"0123456789", None)):
        answer = box.get("/tmp/range", headers={"Range": asked})
        assert (answer.status, answer.body, answer.headers.get("content-range")) == (status, got, told), asked
    outside = box.get("/tmp/range", headers={"Range": "bytes=10-"})
    check_problem(outside, 416, "range_not_satisfiable", field="Range")
    assert outside.headers["content-range"] == "bytes */10"
    for version, status in ((etag, 206), ('"other"', 200), ("Thu, 01 Jan 1970 00:00:00 GMT", 200)):
        assert box.get("/tmp/range", headers={"Range": "bytes=0-1", "If-Range": version}).status == status, version


def test_more_than_is_read_at_once_is_read_by_parts(box):
    box.sh("truncate -s 1T /tmp/terabyte")
    check_problem(box.get("/tmp/terabyte"), 413, "too_large", "Range", field="path")
    assert box.api.call("HEAD", box.url(path="/tmp/terabyte")).headers["content-length"] == str(1 << 40)
    part = box.get("/tmp/terabyte", headers={"Range": "bytes=-4"})
    assert (part.status, part.body, part.headers["content-range"]) == (206, bytes(4), f"bytes {(1 << 40) - 4}-{(1 << 40) - 1}/{1 << 40}")


def test_only_what_has_changed_is_read(box):
    box.put("/tmp/cond", b"one")
    first = box.get("/tmp/cond")
    etag, modified = first.headers["etag"], first.headers["last-modified"]
    for headers, status in (
            ({"If-None-Match": etag}, 304), ({"If-None-Match": f'"x", W/{etag}'}, 304), ({"If-None-Match": "*"}, 304),
            ({"If-None-Match": '"x"'}, 200), ({"If-Modified-Since": modified}, 304),
            ({"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}, 200), ({"If-Modified-Since": "yesterday"}, 200),
            ({"If-None-Match": '"x"', "If-Modified-Since": modified}, 200), ({"If-Match": etag}, 200)):
        answer = box.get("/tmp/cond", headers=headers)
        assert answer.status == status, headers
        assert answer.headers["etag"] == etag and (answer.body == b"") == (status == 304)
    stat = box.api.get(box.url("stat", path="/tmp/cond"), headers={"If-None-Match": etag})
    assert (stat.status, stat.headers["etag"]) == (304, etag)
    for other in ('"x"', f"W/{etag}"):
        check_problem(box.get("/tmp/cond", headers={"If-Match": other}), 412, "precondition_failed", field="path")


def test_head_has_the_length_and_no_bytes(box):
    box.put("/tmp/head", b"x" * 1234)
    answer = box.api.call("HEAD", box.url(path="/tmp/head"))
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "1234")
    assert answer.headers["etag"] == box.get("/tmp/head").headers["etag"]


def test_what_is_told_of_a_file_begins_with_its_path(box):
    assert fine(box.put("/tmp/told", b"x"))["path"] == "/tmp/told"
    assert fine(box.api.call("POST", box.url("append", path="/tmp/told"), body=b"y"))["path"] == "/tmp/told"
    odd = base64.b64encode(b"/tmp/told\xff").decode()
    assert fine(box.api.put(box.url(pathBase64=odd), body=b"z"))["pathBase64"] == odd


def test_writes_under_conditions(box):
    first = box.put("/tmp/if", b"one", headers={"If-None-Match": "*"})
    assert first.status == 200
    check_problem(box.put("/tmp/if", b"x", headers={"If-None-Match": "*"}), 412, "precondition_failed", "there already", field="path")
    etag = first.headers["etag"]
    second = box.put("/tmp/if", b"two", headers={"If-Match": f'"other", {etag}'})
    assert second.status == 200
    for headers in ({"If-Match": etag}, {"If-Match": f'W/{second.headers["etag"]}'}, {"If-Match": '"$(x)"'}, {"If-None-Match": second.headers["etag"]}):
        check_problem(box.put("/tmp/if", b"three", headers=headers), 412, "precondition_failed", field="path")
    check_problem(box.put("/tmp/missing-if", b"x", headers={"If-Match": "*"}), 412, "precondition_failed", "not there", field="path")
    check_problem(box.put("/tmp/if", b"x", headers={"If-Match": etag, "If-None-Match": "*"}), 400, "invalid_request")
    check_problem(box.put("/tmp/if", b"x", headers={"If-Match": "no quotes"}), 400, "invalid_request")
    assert box.get("/tmp/if").body == b"two"
    check_problem(box.delete("/tmp/if", headers={"If-Match": etag}), 412, "precondition_failed", field="path")
    assert box.delete("/tmp/if", headers={"If-Match": second.headers["etag"]}).status == 204


def test_of_writers_with_the_same_etag_exactly_one_wins(box):
    etag = box.put("/tmp/race", b"start").headers["etag"]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            answers = list(pool.map(lambda n, etag=etag: box.put("/tmp/race", b"%d" % n, headers={"If-Match": etag}), range(4)))
            won = [n for n, answer in enumerate(answers) if answer.status == 200]
            assert len(won) == 1 and sorted(answer.status for answer in answers) == [200, 412, 412, 412], [str(a) for a in answers]
            assert box.get("/tmp/race").body == b"%d" % won[0]
            etag = answers[won[0]].headers["etag"]
    assert not [item for item in names(box.ask("list", path="/tmp")) if item.startswith(".burrow-")]


def test_bytes_are_appended(box):
    for piece in (b"one\n", b"two\n"):
        told = fine(box.api.call("POST", box.url("append", path="/tmp/log"), body=piece))
    assert told["sizeBytes"] == 8 and box.get("/tmp/log").body == b"one\ntwo\n"
    check_problem(box.api.call("POST", box.url("append", path="/tmp/no/log"), body=b"x"), 404, "not_found", field="path")
    check_problem(box.api.call("POST", box.url("append", path="/tmp"), body=b"x"), 409, "conflict", field="path")


def test_owners_and_users(box):
    told = fine(box.put("/tmp/owned", b"x", uid="12", gid="34", mode="600"))
    assert (told["uid"], told["gid"], told["mode"]) == (12, 34, "0600")
    assert fine(box.put("/tmp/owned", b"y"))["uid"] == 12  # stays
    check_problem(box.get("/tmp/owned", user="1000"), 403, "forbidden", field="path")
    assert box.get("/tmp/owned", user="12").body == b"y"
    assert fine(box.put("/tmp/mine", b"x", user="1000:1001"))["gid"] == 1001
    check_problem(box.put("/etc/new", b"x", user="1000"), 403, "forbidden", field="path")
    check_problem(box.get("/tmp/owned", user="nobody-here"), 400, "invalid_request", "nobody-here", field="user")
    check_problem(box.ask("list", path="/tmp", user="a b"), 400, "invalid_request", field="user")


def test_links_are_followed_inside(box):
    box.put("/tmp/l/target", b"inside", createParents="true")
    box.sh("ln -s target /tmp/l/link; ln -s /tmp/l /tmp/l/round; ln -s nowhere /tmp/l/dangling; ln -s self /tmp/l/self; ln -s /proc/1/environ /tmp/l/secret; "
           "ln -s /proc/self/fd/3 /tmp/l/fd")
    assert box.get("/tmp/l/link").body == b"inside"
    link = fine(box.ask("stat", path="/tmp/l/link", follow="false"))
    assert (link["kind"], link["target"]) == ("link", "target") and fine(box.ask("stat", path="/tmp/l/link"))["kind"] == "file"
    fine(box.put("/tmp/l/link", b"through"))
    assert box.get("/tmp/l/target").body == b"through" and fine(box.ask("stat", path="/tmp/l/link", follow="false"))["kind"] == "link"
    check_problem(box.get("/tmp/l/dangling"), 404, "not_found", field="path")
    check_problem(box.get("/tmp/l/self"), 400, "invalid_request", field="path")
    for name in ("secret", "fd"):
        assert box.get(f"/tmp/l/{name}").status in (400, 403, 404)
        assert box.put(f"/tmp/l/{name}", b"x").status in (400, 403, 404)
    assert "round/link" not in names(box.ask("list", path="/tmp/l", recursive="true"))


def test_what_is_no_file(box):
    box.sh("mkdir -p /tmp/odd/dir; echo x > /tmp/odd/dir/f; mkfifo /tmp/odd/fifo")
    check_problem(box.get("/tmp/odd/none"), 404, "not_found", field="path")
    check_problem(box.get("/tmp/odd/dir/f/below"), 404, "not_found", field="path")
    check_problem(box.get("/tmp/odd/dir"), 409, "conflict", "a directory", field="path")
    check_problem(box.get("/tmp/odd/fifo"), 400, "invalid_request", field="path")
    check_problem(box.put("/tmp/odd/dir", b"x"), 409, "conflict", field="path")
    check_problem(box.put("/tmp/odd/fifo", b"x"), 400, "invalid_request", field="path")
    check_problem(box.put("/tmp/odd/no/x", b"x"), 404, "not_found", field="path")
    check_problem(box.get("/proc/1/environ"), 403, "forbidden", "kernel file", field="path")
    check_problem(box.delete("/tmp/odd/dir"), 409, "conflict", field="path")
    check_problem(box.delete("/tmp/odd/none"), 404, "not_found", field="path")
    assert box.delete("/tmp/odd/dir", recursive="true").status == 204
    assert fine(box.ask("stat", path="/tmp/odd/fifo"))["kind"] == "other"


def test_what_cannot_be_asked_for(box, api):
    check_problem(api.get(box.top), 400, "invalid_request", field="path")
    check_problem(box.get("/tmp/" + "x" * 300), 400, "invalid_request", field="path")
    assert api.get(f"{box.top}?path=/tmp/%00").status == 400
    check_problem(box.get("/tmp/x" + "y" * 4200), 400, "invalid_request", field="path")
    for mode in ("9", "01000000", "rw", "17777"):
        check_problem(box.put("/tmp/x", b"", mode=mode), 400, "invalid_request", field="mode")
    check_problem(box.put("/tmp/x", b"", uid="65536"), 400, "invalid_request", field="uid")
    check_problem(box.put("/tmp/x", b"", recursive="true"), 400, "unknown_field", field="recursive")
    for bad in ("%%", "", "AA=="):
        assert box.ask("stat", pathBase64=bad).status == 400
    gone = api.create()
    gone.delete()
    for verb, url in (("GET", "?path=x"), ("PUT", "?path=x"), ("DELETE", "?path=x"), ("GET", "/list"), ("GET", "/grep?pattern=x"), ("PUT", "/archive")):
        for id in (gone.id, "sbx_nothing"):
            answer = api.call(verb, f"/api/v1/sandboxes/{id}/files{url}")
            assert answer.status in (404, 409) and answer.json["code"] in ("not_found", "ended"), str(answer)


def test_names_of_any_bytes(box):
    box.sh(r"mkdir -p /tmp/bytes && cd /tmp/bytes && printf x > \"$(printf 'new\nline')\" && printf y > \"$(printf '\377\376')\"".replace('\\"', '"'))
    items = fine(box.ask("list", path="/tmp/bytes"))["items"]
    assert [item["path"] for item in items] == ["new\nline", "��"] and "pathBase64" not in items[0]
    assert base64.b64decode(items[1]["pathBase64"]) == b"\xff\xfe"
    assert box.get("/tmp/bytes/new\nline").body == b"x"
    odd = base64.b64encode(b"/tmp/bytes/\xff\xfe").decode()
    assert box.api.get(box.url(pathBase64=odd)).body == b"y"
    matches = fine(box.ask("grep", path="/tmp/bytes", pattern="y"))["items"]
    assert base64.b64decode(matches[0]["pathBase64"]) == b"\xff\xfe" and matches[0]["text"] == "y"
    fine(box.post("move", pathBase64=odd, to="/tmp/bytes/plain"))
    assert box.get("/tmp/bytes/plain").body == b"y"


# ---- directories ----

@pytest.fixture(scope="module")
def tree(box):
    box.sh("mkdir -p /tmp/t/a/b /tmp/t/z && cd /tmp/t && echo 'int main;' > a/b/c.c && echo 'no' > a/z.h && echo 'main(' > b.c && ln -s a link && mkfifo pipe && touch a-b")
    return "/tmp/t"


def test_a_directory_is_listed(box, tree):
    assert names(box.ask("list", path=tree)) == ["a", "a-b", "b.c", "link", "pipe", "z"]
    every = names(box.ask("list", path=tree, recursive="true"))
    assert every == ["a", "a/b", "a/b/c.c", "a/z.h", "a-b", "b.c", "link", "pipe", "z"]
    assert names(box.ask("list", path=tree, depth=2)) == ["a", "a/b", "a/z.h", "a-b", "b.c", "link", "pipe", "z"]
    assert names(box.ask("list", path=tree, recursive="true", kind="link,other")) == ["link", "pipe"]
    assert names(box.ask("list", path=tree, recursive="true", kind="directory")) == ["a", "a/b", "z"]
    for limit in (1, 2, 4, 9):
        got, cursor = [], None
        while True:
            page = fine(box.ask("list", path=tree, recursive="true", limit=limit, **({"cursor": cursor} if cursor else {})))
            assert len(page["items"]) <= limit
            got += [item["path"] for item in page["items"]]
            cursor = page.get("nextCursor")
            if not cursor:
                break
        assert got == every
    check_problem(box.ask("list", path=f"{tree}/b.c"), 409, "conflict", field="path")
    check_problem(box.ask("list", path=f"{tree}/none"), 404, "not_found", field="path")
    check_problem(box.ask("list", path=tree, kind="socket"), 400, "invalid_request", field="kind")
    check_problem(box.ask("list", path=tree, cursor="%%"), 400, "invalid_request", field="cursor")
    check_problem(box.ask("list", path=tree, limit=1001), 400, "invalid_request", field="limit")
    assert box.ask("list").status == 200  # the working directory


def test_pages_stay_right_while_files_come_and_go(box):
    box.sh("mkdir /tmp/pages && cd /tmp/pages && for i in $(seq 100 139); do touch f$i; done")
    first = fine(box.ask("list", path="/tmp/pages", limit=10))
    box.sh("cd /tmp/pages && rm f100 f105 f120 && touch e000 f1095 g")
    rest, cursor = [], first["nextCursor"]
    while cursor:
        page = fine(box.ask("list", path="/tmp/pages", limit=10, cursor=cursor))
        rest += [item["path"] for item in page["items"]]
        cursor = page.get("nextCursor")
    assert rest == ["f1095"] + [f"f{i}" for i in range(110, 140) if i != 120] + ["g"]


def test_paths_that_no_request_can_name_end_no_listing(box):
    box.sh("mkdir -p /deep/z && cd /deep && python3 -c 'import os; [(os.mkdir(\"a\" * 200), os.chdir(\"a\" * 200)) for _ in range(40)]'")
    found, _ = pages(box.api, box.url("list", path="/deep", recursive="true"), 8)
    assert found[-1]["path"] == "z", "what is behind was not reached"
    assert 15 < len(found) < 41 and max(len(entry["path"]) for entry in found) <= 4096


def test_files_by_their_names(box, tree):
    for pattern, found in (("**/*.c", ["a/b/c.c", "b.c"]), ("*.{c,h}", ["b.c"]), ("a/**", ["a/b", "a/b/c.c", "a/z.h"]), ("[!a]", ["z"]), ("nothing*", [])):
        assert names(box.ask("glob", path=tree, pattern=pattern)) == found, pattern
    page = fine(box.ask("glob", path=tree, pattern="**/*.c", limit=1))
    assert names(box.ask("glob", path=tree, pattern="**/*.c", cursor=page["nextCursor"])) == ["b.c"]
    check_problem(box.ask("glob", path=tree, pattern="{a"), 400, "invalid_request", "'}' is missing", field="pattern")
    check_problem(box.ask("glob", path=tree), 400, "invalid_request", field="pattern")


def test_lines_by_their_text(box, tree):
    found = fine(box.ask("grep", path=tree, pattern=r"\bmain"))
    assert [(item["path"], item["line"], item["column"], item["text"]) for item in found["items"]] == [("a/b/c.c", 1, 5, "int main;"), ("b.c", 1, 1, "main(")]
    assert found["truncated"] is False and found["searchedBytes"] > 0
    assert [item["path"] for item in fine(box.ask("grep", path=tree, pattern="MAIN(", fixed="true", ignoreCase="true"))["items"]] == ["b.c"]
    assert [item["path"] for item in fine(box.ask("grep", path=tree, pattern="main", include="a/**"))["items"]] == ["a/b/c.c"]
    assert [item["path"] for item in fine(box.ask("grep", path=f"{tree}/b.c", pattern="main"))["items"]] == [""]
    assert fine(box.ask("grep", path=tree, pattern="main", depth=1))["items"][0]["path"] == "b.c"
    cut = fine(box.ask("grep", path=tree, pattern="main", limit=1))
    assert len(cut["items"]) == 1 and cut["truncated"] is True
    check_problem(box.ask("grep", path=tree, pattern="a(b"), 400, "invalid_request", "')' is missing", field="pattern")
    check_problem(box.ask("grep", path=tree), 400, "invalid_request", field="pattern")
    check_problem(box.ask("grep", path=f"{tree}/none", pattern="x"), 404, "not_found", field="path")
    check_problem(box.ask("grep", path=tree, pattern="x", maxLineBytes=10000), 400, "invalid_request", field="maxLineBytes")


def test_a_hostile_pattern_ends(box):
    box.sh("head -c 300000 /dev/zero | tr '\\0' a > /tmp/aaa")
    assert fine(box.ask("grep", path="/tmp/aaa", pattern="(a*)*(a|aa)+$b"))["items"] == []
    check_problem(box.ask("grep", path="/tmp/aaa", pattern="((x{100}){100}){100}"), 400, "invalid_request", "too large", field="pattern")
    long = fine(box.ask("grep", path="/tmp/aaa", pattern="a$", maxLineBytes=100))["items"][0]
    assert long["textTruncated"] is True and len(long["text"]) <= 100


def test_directories_are_made(box):
    told = fine(box.post("mkdir", path="/tmp/made", mode="0700"))
    assert (told["kind"], told["mode"]) == ("directory", "0700")
    check_problem(box.post("mkdir", path="/tmp/made"), 409, "already_exists", field="path")
    fine(box.post("mkdir", path="/tmp/made/x/y", createParents=True))
    fine(box.post("mkdir", path="/tmp/made/x/y", createParents=True))
    fine(box.post("mkdir", path="/", createParents=True))
    check_problem(box.post("mkdir", path="/tmp/no/x/y"), 404, "not_found", field="path")
    box.put("/tmp/made/file", b"")
    check_problem(box.post("mkdir", path="/tmp/made/file/x"), 409, "conflict", field="path")
    check_problem(box.post("mkdir", path="/tmp/made/q", parents=True), 400, "unknown_field", field="parents")
    check_problem(box.post("mkdir"), 400, "invalid_request", field="path")
    check_problem(box.post("mkdir", path="/root/x", user="1000"), 403, "forbidden", field="path")


def test_files_and_directories_move(box):
    box.sh("mkdir -p /tmp/mv/d && echo a > /tmp/mv/a && echo b > /tmp/mv/b")
    check_problem(box.post("move", path="/tmp/mv/a", to="/tmp/mv/b"), 409, "already_exists", field="to")
    assert fine(box.post("move", path="/tmp/mv/a", to="/tmp/mv/b", overwrite=True))["path"] == "/tmp/mv/b"
    assert box.get("/tmp/mv/b").body == b"a\n" and box.get("/tmp/mv/a").status == 404
    fine(box.post("move", path="/tmp/mv/d", to="/tmp/mv/n/e/w", createParents=True))
    check_problem(box.post("move", path="/tmp/mv/none", to="/tmp/mv/x"), 404, "not_found")
    check_problem(box.post("move", path="/tmp/mv/b", to="/tmp/mv/no/x"), 404, "not_found")
    check_problem(box.post("move", path="/tmp/mv/b"), 400, "invalid_request", field="to")
    # what a layer below holds, or another file system: the kernel does not rename it
    box.sh("mkdir /dev/shm/mv && echo z > /dev/shm/mv/z")
    fine(box.post("move", path="/dev/shm/mv", to="/tmp/mv/shm"))
    assert box.get("/tmp/mv/shm/z").body == b"z\n" and box.ask("stat", path="/dev/shm/mv").status == 404
    below = next(name for name in ("/etc/profile.d", "/etc/alternatives", "/usr/share/base-files", "/etc/pam.d") if box.ask("stat", path=name).status == 200)
    before = names(box.ask("list", path=below))
    fine(box.post("move", path=below, to="/tmp/mv/layer"))
    assert names(box.ask("list", path="/tmp/mv/layer")) == before and box.ask("stat", path=below).status == 404


def test_files_and_directories_are_copied(box):
    box.sh("mkdir -p /tmp/cp/d/e && echo a > /tmp/cp/d/a && ln -s a /tmp/cp/d/l && chmod 4755 /tmp/cp/d/a && mkfifo /tmp/cp/d/p && truncate -s 1T /tmp/cp/d/sparse")
    told = fine(box.post("copy", path="/tmp/cp/d", to="/tmp/cp/new"))
    assert told["kind"] == "directory" and told["copiedEntries"] == 5 and told["skippedEntries"] == 1
    assert names(box.ask("list", path="/tmp/cp/new", recursive="true")) == ["a", "e", "l", "sparse"]
    assert fine(box.ask("stat", path="/tmp/cp/new/a"))["mode"] == "0755"
    sparse = fine(box.ask("stat", path="/tmp/cp/new/sparse"))
    assert sparse["sizeBytes"] == 1 << 40 and sparse["diskBytes"] < 1 << 20
    check_problem(box.post("copy", path="/tmp/cp/d", to="/tmp/cp/new"), 409, "already_exists", field="to")
    check_problem(box.post("copy", path="/tmp/cp/d", to="/tmp/cp/d/e/x"), 400, "invalid_request", "into itself")
    check_problem(box.post("copy", path="/tmp/cp/d/a", to="/tmp/cp/new", overwrite=True), 409, "conflict")
    check_problem(box.post("copy", path="/tmp/cp/none", to="/tmp/cp/x"), 404, "not_found")
    fine(box.post("copy", path="/tmp/cp/d/l", to="/tmp/cp/new/a", overwrite=True))
    assert names(box.ask("list", path="/tmp/cp", recursive="true", kind="other")) == ["d/p"]
    assert not [name for name in names(box.ask("list", path="/tmp/cp", recursive="true")) if ".burrow-" in name]


# ---- archives ----

def unpacked(format, body):
    if format == "zip":
        archive = zipfile.ZipFile(io.BytesIO(body))
        return {info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()}
    if format == "tar.zst":
        body = subprocess.run(["zstd", "-dqc"], input=body, stdout=subprocess.PIPE, check=True).stdout
    archive = tarfile.open(fileobj=io.BytesIO(body), mode="r:gz" if format == "tar.gz" else "r:")
    return {member.name: archive.extractfile(member).read() for member in archive.getmembers() if member.isfile()}


@pytest.mark.parametrize("format", ["tar", "tar.gz", "tar.zst", "zip"])
def test_archives_go_out_and_in(box, format):
    if format == "tar.zst" and not shutil.which("zstd"):
        pytest.skip("zstd is not installed")
    box.sh("mkdir -p /tmp/arc/d && echo one > /tmp/arc/a && echo two > /tmp/arc/d/b")
    answer = box.ask("archive", path="/tmp/arc", format=format)
    assert answer.status == 200 and format in answer.headers["content-disposition"], str(answer)
    assert unpacked(format, answer.body) == {"a": b"one\n", "d/b": b"two\n"}
    for place, query in ((f"/tmp/in-{format}", {"format": format}), (f"/tmp/any-{format}", {})):
        assert box.api.put(box.url("archive", path=place, **query), body=answer.body).status == 204
        assert box.get(f"{place}/d/b").body == b"two\n"


@pytest.mark.parametrize("format", ["tar", "tar.gz"])
def test_archives_of_many_files_of_all_sizes(box, format):
    """A plain tar is written while the sandbox tells, any other once it has told all."""
    box.sh("""mkdir -p /tmp/many/empty /tmp/many/d && cd /tmp/many && for i in $(seq 700); do echo $i >d/f$i; done
        head -c 3000000 /dev/urandom >large; head -c 20000 /dev/urandom >middle; truncate -s 5000000 holes; ln -s d/f1 link; printf x >run; chmod 4755 run""")
    answer = box.ask("archive", path="/tmp/many", format=format)
    assert answer.status == 200, str(answer)
    archive = tarfile.open(fileobj=io.BytesIO(answer.body))
    members = {member.name: member for member in archive.getmembers()}
    files = unpacked(format, answer.body)
    assert len(files) == 704 and all(files[f"d/f{i}"] == b"%d\n" % i for i in range(1, 701))
    assert files["holes"] == bytes(5000000)
    assert all(files[name] == box.get(f"/tmp/many/{name}").body for name in ("large", "middle"))
    assert members["empty"].isdir() and members["link"].linkname == "d/f1" and members["run"].mode == 0o755
    box.sh("mkdir -p /tmp/many/none")
    answer = box.ask("archive", path="/tmp/many/none", format=format)
    assert answer.status == 200 and unpacked(format, answer.body) == {}


def test_archives_larger_than_the_limit_are_refused_and_leave_nothing(own_server):
    server = own_server(options=["--file-limit", "1Mi"])
    box = Box(server.client, server.client.create())
    box.sh("mkdir /tmp/much /tmp/headers; cd /tmp/much; for i in $(seq 20); do head -c 100000 /dev/urandom >f$i; done; cd ../headers; for i in $(seq 2500); do : >f$i; done")
    for format in ("tar", "tar.gz"):
        check_problem(box.ask("archive", path="/tmp/much", format=format), 413, "too_large", "larger than 1048576 bytes", field="path")
    check_problem(box.ask("archive", path="/tmp/headers", format="tar"), 413, "too_large", "larger than is allowed", field=ANY)
    assert box.ask("archive", path="/tmp/headers", format="tar.gz").status == 200
    until(lambda: not list_of_archivers(server), "burrow-archive ends with its archive")
    server.end()


def list_of_archivers(server):
    children = pathlib.Path(f"/proc/{server.process.pid}/task").glob("*/children")
    return [pid for child in children for pid in child.read_text().split() if "burrow-archive" in pathlib.Path(f"/proc/{pid}/comm").read_text()]


def test_archives_that_are_none(box):
    for body in (b"", b"not an archive at all", gzip.compress(b"x" * 2000), b"\x28\xb5\x2f\xfd" + b"x" * 100):
        answer = box.api.put(box.url("archive", path="/tmp/bad"), body=body)
        assert answer.status == 400 and answer.json["code"] == "damaged", str(answer)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("../outside")
        info.size = 1
        archive.addfile(info, io.BytesIO(b"x"))
    check_problem(box.api.put(box.url("archive", path="/tmp/bad"), body=out.getvalue()), 400, "refused")
    check_problem(box.ask("archive", path="/tmp/none"), 404, "not_found", field="path")
    check_problem(box.ask("archive", path="/tmp", format="rar"), 400, "invalid_request", field="format")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo("f")
        info.uid = info.gid = 1_000_000  # of a machine elsewhere
        archive.addfile(info, io.BytesIO(b""))
    assert box.api.put(box.url("archive", path="/tmp/uid", user="1000"), body=out.getvalue()).status == 204
    assert fine(box.ask("stat", path="/tmp/uid/f"))["uid"] == 1000


# ---- limits and states ----

def test_a_full_disk_names_the_limit(api):
    small = Box(api, api.create(resources={"disk": "16Mi"}))
    try:
        answer = small.put("/tmp/big", b"\1" * (24 << 20))
        check_problem(answer, 413, "disk_full", "16Mi")
        assert not [name for name in names(small.ask("list", path="/tmp")) if "burrow" in name or name == "big"]
        fine(small.put("/tmp/fits", b"x"))
    finally:
        small.sandbox.delete()


def test_a_guest_that_leaves_no_process_is_named_as_the_reason(api):
    made = api.post("/api/v1/sandboxes", {"limits": {"maxProcesses": 12}}).json
    fill = "import os, sys, time\ntry:\n  while os.fork(): pass\nexcept OSError: print('full', flush=True)\ntime.sleep(1000)"
    filling = api.post(f"/api/v1/sandboxes/{made['id']}/executions", {"command": ["python3", "-c", fill]}).json
    until(lambda: api.get(f"/api/v1/executions/{filling['id']}/output").body == b"full\n", "no process to be left")
    files = f"/api/v1/sandboxes/{made['id']}/files"
    for verb in ("", "/list", "/watch"):
        check_problem(api.get(f"{files}{verb}?path=/etc"), 409, "conflict", "its limit of processes", field="path")
    api.delete(f"/api/v1/sandboxes/{made['id']}")


def test_a_user_that_is_too_long_is_one_that_cannot_be(box):
    check_problem(box.get("/etc/hostname", user="x" * 400), 400, "invalid_request", field="user")


def test_files_of_a_paused_sandbox_stay_usable(api):
    paused = Box(api, api.create())
    try:
        fine(paused.put("/tmp/before", b"x"))
        assert api.post(f"/sandbox/{paused.sandbox.id}/pause").status == 200
        assert paused.get("/tmp/before").body == b"x"
        fine(paused.put("/tmp/during", b"y"))
        assert [item["path"] for item in fine(paused.ask("grep", path="/tmp", pattern="y"))["items"]] == ["during"]
    finally:
        paused.sandbox.delete()


def test_a_client_that_goes_away_gives_its_work_up(box, server):
    """A copy that would go on for long: the client hangs up, and nothing of it stays."""
    box.sh("mkdir -p /tmp/huge && cd /tmp/huge && for i in $(seq 400); do mkdir d$i && touch d$i/a d$i/b d$i/c; done")
    raw = Raw(server.port)
    body = b'{"path": "/tmp/huge", "to": "/tmp/huge2"}'
    raw.send(b"POST %s/copy HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
             % (box.top.encode(), box.api.key.encode(), len(body), body))
    raw.close()
    # either it was done in time or nothing is there; no half-made copy in either case once the box is idle
    found = names(box.ask("list", path="/tmp", kind="directory", limit=1000))
    if "huge2" in found:
        assert len(names(box.ask("list", path="/tmp/huge2", limit=1000))) == 400


def test_a_guest_that_swaps_directories_leads_nothing_astray(box):
    box.sh("mkdir -p /tmp/sw/d && echo inside > /tmp/sw/d/f && ln -s /proc/1 /tmp/sw/evil")
    job = box.sandbox.job("/bin/sh", "-c", "while [ ! -e /tmp/sw-stop ]; do mv /tmp/sw/d /tmp/sw/x; mv /tmp/sw/evil /tmp/sw/d; "
                          "mv /tmp/sw/d /tmp/sw/evil; mv /tmp/sw/x /tmp/sw/d; done")
    try:
        for _ in range(15):
            answer = box.get("/tmp/sw/d/f")
            assert (answer.status == 200 and answer.body == b"inside\n") or answer.status in (400, 403, 404, 409), str(answer)
            found = fine(box.ask("grep", path="/tmp/sw", pattern="."))["items"]
            assert {item["text"] for item in found} <= {"inside", "x"}  # x: what is written below
            assert box.put("/tmp/sw/d/environ", b"x").status in (200, 400, 403, 404, 409)
            box.delete("/tmp/sw/d/environ")
    finally:
        fine(box.put("/tmp/sw-stop", b""))
        box.sandbox.wait_job(job["jobId"] if isinstance(job, dict) else job)
