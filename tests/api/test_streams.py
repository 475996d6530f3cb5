# SPDX-License-Identifier: Apache-2.0
"""Streams of the users' own: made, written, read live and again, listed, removed, below both mount points."""
import http.client
import time
import re

import pytest
from client import Raw, check_error, nulls, together, until

MOUNTS = ["/stream", ""]


@pytest.fixture(params=MOUNTS, ids=["stream", "root"])
def mount(request):
    return request.param


def create(api, mount="/stream", **fields):
    answer = api.post(mount or "/", {"name": "test", **fields})
    assert answer.status in (200, 201), str(answer)
    assert set(answer.json) >= {"id"} and "success" not in answer.json and "data" not in answer.json
    return answer.json["id"]


def pieces(*parts):
    yield from parts


# ---- writing and reading ----

def test_a_stream_is_put_and_read(api, mount):
    id = create(api, mount)
    assert re.fullmatch(r"stream_[A-Za-z0-9]{22,}", id)
    assert api.put(f"{mount}/{id}", body=pieces(b"one ", b"two")).status == 200
    for suffix in ("", "?v=2", "?follow=true", "?v=2&follow=true"):
        assert api.read(f"{mount}/{id}{suffix}") == b"one two"


def test_both_mount_points_are_one_place(api):
    id = create(api, "/stream")
    api.put(f"/{id}", body=b"x")
    assert api.read(f"/stream/{id}") == b"x"


def test_a_stream_is_appended_to_and_completed(api, mount):
    id = create(api, mount)
    for part in (b"a", b"", b"bc"):
        assert api.post(f"{mount}/{id}/append", body=part).status < 300
    assert api.post(f"{mount}/{id}/complete", headers={"X-Compress": "gzip"}).status < 300
    assert api.read(f"{mount}/{id}") == b"abc"
    assert api.post(f"{mount}/{id}/complete").status < 300  # again is no error


def test_a_reader_sees_the_header_before_there_is_data(api, mount):
    id = create(api, mount)
    reader = api.follow(f"{mount}/{id}")
    api.post(f"{mount}/{id}/append", body=b"first")
    assert reader.wait_for(b"first") == b"first"
    api.post(f"{mount}/{id}/append", body=b" second")
    assert reader.wait_for(b"second") == b"first second"
    api.post(f"{mount}/{id}/complete")
    assert reader.rest() == b"first second"


def test_every_reader_gets_everything(api):
    id = create(api)
    api.post(f"/stream/{id}/append", body=b"before ")
    readers = [api.follow(f"/stream/{id}") for _ in range(20)]
    readers[0].wait_for(b"before ")
    api.post(f"/stream/{id}/append", body=b"after")
    api.post(f"/stream/{id}/complete")
    assert {reader.rest() for reader in readers} == {b"before after"}


def test_an_empty_stream_is_empty(api):
    id = create(api)
    assert api.put(f"/stream/{id}", body=b"").status == 200
    assert api.read(f"/stream/{id}") == b""


def test_all_bytes_stay_as_they_are(api):
    id = create(api)
    body = bytes(range(256)) * 10000
    api.put(f"/stream/{id}", body=body)
    assert api.read(f"/stream/{id}") == body


def test_reading_needs_no_key_and_writing_does(api, mount):
    id = create(api, mount)
    for answer in (api.post(mount or "/", {"name": "x"}, key=None), api.put(f"{mount}/{id}", body=b"x", key=None),
                   api.post(f"{mount}/{id}/append", body=b"x", key=None), api.post(f"{mount}/{id}/complete", key=None),
                   api.post(f"{mount}/{id}/info", {}, key=None), api.post(f"{mount}/list", {}, key=None),
                   api.delete(f"{mount}/{id}", key=None)):
        check_error(answer, 401, "UNAUTHORIZED")
    api.put(f"{mount}/{id}", body=b"kept")
    assert api.get(f"{mount}/{id}", key=None).body == b"kept"
    assert api.get(f"{mount}/{id}", key="wrong" * 10).body == b"kept"  # a key is not even looked at


def test_a_reader_that_goes_away_is_forgotten(api, server):
    id = create(api)
    for _ in range(50):
        api.follow(f"/stream/{id}").raw.reset()
    api.post(f"/stream/{id}/append", body=b"x")
    api.post(f"/stream/{id}/complete")
    assert api.read(f"/stream/{id}") == b"x"


def test_a_part_can_be_asked_for(api):
    id = create(api)
    api.put(f"/stream/{id}", body=b"0123456789")
    for wanted, status, body in [("bytes=3-5", 206, b"345"), ("bytes=7-", 206, b"789"), ("bytes=-2", 206, b"89"),
                                 ("bytes=0-999", 206, b"0123456789"), ("bytes=10-", 416, None), ("nonsense", 200, b"0123456789")]:
        answer = api.get(f"/stream/{id}", headers={"Range": wanted}, key=None)
        assert answer.status == status, (wanted, str(answer))
        assert body is None or answer.body == body


def test_reading_can_begin_at_an_offset(api):
    id = create(api)
    api.put(f"/stream/{id}", body=b"0123456789")
    assert api.read(f"/stream/{id}?offset=4") == b"456789"
    assert api.read(f"/stream/{id}?offset=0") == b"0123456789"
    answer = api.get(f"/stream/{id}?offset=11", key=None)
    assert answer.status == 416, str(answer)
    for bad in ("x", "-1", "99999999999999999999999"):
        check_error(api.get(f"/stream/{id}?offset={bad}"), 400, "INVALID_ARGUMENT", "offset")


def test_a_head_has_no_body(api):
    id = create(api)
    api.put(f"/stream/{id}", body=b"0123456789")
    with Raw(api.port, timeout=20) as raw:
        raw.send(f"HEAD /stream/{id} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert b"200" in (seen := raw.all()).split(b"\r\n")[0] and seen.endswith(b"\r\n\r\n")


# ---- what is known of it ----

def test_info_tells_what_there_is(api, mount):
    id = create(api, mount, name="logs", metadata={"kind": "test", "who": "me"})
    api.put(f"{mount}/{id}", body=b"12345")
    info = api.post(f"{mount}/{id}/info", {}).json
    assert (info["id"], info["name"], info["metadata"], info["size_bytes"]) == \
        (id, "logs", {"kind": "test", "who": "me"}, 5)
    assert info["url"].startswith(api.url) and info["url"].endswith(id)
    assert "expires_at" in info and "success" not in info


def test_lists_are_newest_first_and_filtered(api):
    ids = []
    for n, name in enumerate(["b", "a", "b"]):
        ids.append(create(api, name=name, metadata={"suite": "lists", "n": str(n)}))
        time.sleep(0.002)  # times are told in milliseconds
    listed = api.post("/stream/list", {"metadata": {"suite": "lists"}}).json
    assert listed["success"] is True and listed["total"] == 3
    assert [stream["id"] for stream in listed["streams"]] == ids[::-1]
    assert all({"id", "name", "metadata", "url", "size_bytes"} <= set(stream) for stream in listed["streams"])
    listed = api.post("/stream/list", {"metadata": {"suite": "lists"}, "name": "b", "limit": 1}).json
    assert ([stream["id"] for stream in listed["streams"]], listed["total"]) == ([ids[2]], 2)
    listed = api.post("/stream/list", {"metadata": {"suite": "lists", "n": "1"}}).json
    assert [stream["id"] for stream in listed["streams"]] == [ids[1]]
    listed = api.post("/stream/list", {"metadata": {"suite": "lists"}, "limit": 2, "offset": 2}).json
    assert ([stream["id"] for stream in listed["streams"]], listed["total"]) == ([ids[0]], 3)
    assert api.post("/stream/list", {"metadata": {"suite": "nobody"}}).json["streams"] == []


def test_a_stream_that_is_removed_is_gone(api, mount):
    id = create(api, mount)
    api.put(f"{mount}/{id}", body=b"x")
    assert api.delete(f"{mount}/{id}").status < 300
    for answer in (api.get(f"{mount}/{id}", key=None), api.delete(f"{mount}/{id}"), api.post(f"{mount}/{id}/info", {}),
                   api.put(f"{mount}/{id}", body=b"y"), api.post(f"{mount}/{id}/append", body=b"y")):
        check_error(answer, 404, "STREAM_NOT_FOUND")


def test_removing_a_stream_ends_its_readers(api):
    id = create(api)
    api.post(f"/stream/{id}/append", body=b"x")
    reader = api.follow(f"/stream/{id}")
    reader.wait_for(b"x")
    api.delete(f"/stream/{id}")
    try:
        reader.rest()
    except (http.client.IncompleteRead, ConnectionResetError):  # cut short or ended: either tells the reader; out of time does not
        pass


def test_a_time_to_live_is_said_back(api):
    id = create(api, ttl=3600)
    assert re.match(r"\d{4}-\d\d-\d\dT", str(api.post(f"/stream/{id}/info", {}).json["expires_at"]))


# ---- refusals ----

def test_unknown_streams_are_not_found(api, mount):
    for id in ("stream_none", "stream_", "stream_" + "a" * 300):
        check_error(api.get(f"{mount}/{id}", key=None), 404, "STREAM_NOT_FOUND")
        check_error(api.post(f"{mount}/{id}/append", body=b"x"), 404, "STREAM_NOT_FOUND")
        check_error(api.put(f"{mount}/{id}", body=b"x"), 404, "STREAM_NOT_FOUND")


@pytest.mark.parametrize("body, where", [({}, "name"), ({"name": 1}, "name"), ({"name": "x", "metadata": []}, "metadata"),
                                         ({"name": "x", "metadata": {"a": 1}}, "metadata.a"), ({"name": "x", "ttl": "long"}, "ttl")])
def test_bad_streams_are_refused_by_field(api, body, where):
    check_error(api.post("/stream", body), 400, "INVALID_ARGUMENT", where)


def test_a_complete_stream_takes_no_more(api):
    id = create(api)
    api.put(f"/stream/{id}", body=b"whole")
    for answer in (api.post(f"/stream/{id}/append", body=b"x"),):
        assert 400 <= answer.status < 500, str(answer)
    assert api.read(f"/stream/{id}") == b"whole"


def test_an_append_has_a_limit(api):
    id = create(api)
    assert api.post(f"/stream/{id}/append", body=b"x" * (5 << 20)).status < 300
    answer = api.post(f"/stream/{id}/append", body=b"x" * ((5 << 20) + 1))
    assert answer.status == 413, str(answer)
    api.post(f"/stream/{id}/complete")
    assert len(api.read(f"/stream/{id}")) == 5 << 20


def test_other_paths_at_the_root_are_no_streams(api):
    for path in ("/nonsense", "/streams", "/stream_/x/y", "/boxes"):
        answer = api.get(path)
        assert answer.status == 404 and answer.json["success"] is False


def test_appends_at_once_are_all_there(api):
    id = create(api)
    lines = [f"{n:06d}\n".encode() * 50 for n in range(40)]
    together(*[lambda some=some: [api.post(f"/stream/{id}/append", body=line) for line in some]
               for some in (lines[:10], lines[10:20], lines[20:30], lines[30:])])
    api.post(f"/stream/{id}/complete")
    body = api.read(f"/stream/{id}")
    assert sorted(body[i:i + 350] for i in range(0, len(body), 350)) == sorted(lines)


def test_streams_of_a_command_cannot_be_written_or_removed_meanwhile(api, sandbox):
    started = sandbox.execute("sh", "-c", "echo mine; until [ -e go ]; do sleep 0.02; done")
    id = started["stdoutStreamUrl"].rsplit("/", 1)[1]
    for answer in (api.post(f"/stream/{id}/append", body=b"x"), api.put(f"/stream/{id}", body=b"x"), api.delete(f"/stream/{id}")):
        assert 400 <= answer.status < 500, str(answer)
    sandbox.release()
    api.wait_execution(started["executionId"])
    assert api.read(started["stdoutStreamUrl"]) == b"mine\n"
