/* SPDX-License-Identifier: Apache-2.0 */
/* Reading streams over HTTP: replayed, live, in parts, slowly and by many. */
#include "base/disk.h"
#include "base/mem.h"
#include "test.h"
#include "unit/web/stage.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

static struct client *reader_new(struct stage *stage, const char *id)
{
    struct client *client = client_new(stage);

    client_ask(client, "GET", id, "", "");
    CHECK_INT(client_head(client), 200);
    return client;
}

TEST(a_reader_gets_what_is_there_and_then_what_comes)
{
    autoptr(stage) stage = stage_new();
    char id[ID_TEXT];

    stage_say(stage, stage_stream(stage, id), "before ");
    autoptr(client) client = reader_new(stage, id);
    CHECK(client->is_chunked);
    CHECK(client_gets(client, "before "));
    stage_say(stage, id, "then ");
    CHECK(client_gets(client, "then "));
    stage_say(stage, id, "last");
    stage_complete(stage, id);
    CHECK(client_gets_all(client, "last"));

    client_ask(client, "GET", id, "?v=2&follow=true", ""); // over the same connection
    CHECK_INT(client_head(client), 200);
    CHECK(client->has_length);
    CHECK(client_gets_all(client, "before then last"));
}

TEST(the_head_comes_before_any_byte)
{
    autoptr(stage) stage = stage_new();
    char id[ID_TEXT], value[64];

    autoptr(client) client = reader_new(stage, stage_stream(stage, id));
    CHECK(client->is_chunked);
    CHECK_STR(client_header(client, "Content-Type", value, sizeof value),
              "application/octet-stream");
    CHECK_STR(client_header(client, "Cache-Control", value, sizeof value), "no-store");
    CHECK_STR(client_header(client, "X-Accel-Buffering", value, sizeof value), "no");
    stage_complete(stage, id);
    CHECK(client_gets_all(client, ""));
}

TEST(a_large_stream_is_the_same_at_once_and_live)
{
    autoptr(stage) stage = stage_new();
    size_t size = 3 << 20;
    autofree char *data = xcalloc(1, size + 1);
    char id[ID_TEXT];

    for (size_t i = 0; i < size; i++)
        data[i] = (char)('a' + i % 23);
    autoptr(client) live = reader_new(stage, stage_stream(stage, id));
    for (size_t done = 0, part = 1; done < size; done += part, part = part * 3 % 300007) {
        part = part < size - done ? part : size - done;
        stage_append(stage, id, data + done, part);
    }
    stage_complete(stage, id);
    CHECK(client_gets_all(live, data));
    autoptr(client) late = reader_new(stage, id);
    CHECK_INT(late->left, size);
    CHECK(client_gets_all(late, data));
}

TEST(removing_a_stream_ends_its_readers)
{
    autoptr(stage) stage = stage_new();
    struct error err = {0};
    char id[ID_TEXT];

    stage_say(stage, stage_stream(stage, id), "some");
    autoptr(client) client = reader_new(stage, id);
    CHECK(client_gets(client, "some"));
    CHECK_OK(stream_remove(stage->core.streams, &stage->actor, id, &err), err);
    CHECK(client_gets_all(client, ""));
    client_ask(client, "GET", id, "", "");
    CHECK_INT(client_head(client), 404);
    CHECK(client_gets(client, "{\"success\":false,\"code\":\"STREAM_NOT_FOUND\""));
}

TEST(a_reader_may_begin_anywhere)
{
    autoptr(stage) stage = stage_new();
    autoptr(client) client = client_new(stage);
    char id[ID_TEXT];

    stage_say(stage, stage_stream(stage, id), "0123456789");
    client_ask(client, "GET", id, "?offset=11", "");
    CHECK_INT(client_head(client), 416);
    CHECK(client_gets_all(client, ""));
    client_ask(client, "GET", id, "?offset=-1", "");
    CHECK_INT(client_head(client), 400);
    while (client_read(client, (char[64]){0}, 64) > 0)
        ;
    client_ask(client, "GET", id, "?offset=7", "");
    CHECK_INT(client_head(client), 200);
    CHECK(client_gets(client, "789"));
    stage_say(stage, id, "ab");
    stage_complete(stage, id);
    CHECK(client_gets_all(client, "ab"));
    client_ask(client, "GET", id, "?offset=10", "");
    CHECK_INT(client_head(client), 200);
    CHECK(client_gets_all(client, "ab"));
    client_ask(client, "GET", id, "?offset=12", "");
    CHECK_INT(client_head(client), 200);
    CHECK(client_gets_all(client, ""));
}

/* The output of a terminal of which only the last part is kept; what is there begins with "begin". */
static struct stream *stage_terminal(struct stage *stage, char id[ID_TEXT])
{
    struct stream_place place = {.owner = actor_owner(&stage->actor), .kind = STREAM_STDOUT};
    struct stream *stream = NULL;
    struct error err = {0};
    autofree char *data = xcalloc(1, 4 * DISK_HOLE);

    CHECK_OK(streams_prepare(stage->core.streams, &place, &stream, &err), err);
    (void)snprintf(id, ID_TEXT, "%s", stream_id(stream));
    memset(data, 'o', 4 * DISK_HOLE);
    memcpy(data + 3 * DISK_HOLE, "begin", 5);
    int fd = stream_write_fd(stream);
    CHECK_INT(write(fd, data, 3 * DISK_HOLE + 5), 3 * DISK_HOLE + 5);
    CHECK_INT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * DISK_HOLE), 0);
    return stream;
}

TEST(what_a_terminal_has_no_longer_is_left_out)
{
    autoptr(stage) stage = stage_new();
    autoptr(client) client = client_new(stage);
    char id[ID_TEXT], value[64];
    struct stream *stream = stage_terminal(stage, id);

    client_ask(client, "GET", id, "", "");
    CHECK_INT(client_head(client), 200);
    CHECK_STR(client_header(client, "Output-Offset", value, sizeof value), "3145728");
    CHECK(client_gets(client, "begin"));
    CHECK_INT(write(stream_write_fd(stream), "more", 4), 4);
    streams_announce(stage->core.streams, stream);
    CHECK(client_gets(client, "more"));
    streams_end(stage->core.streams, stream);
    CHECK(client_gets_all(client, ""));
    client_ask(client, "GET", id, "?offset=7", ""); // complete
    CHECK_INT(client_head(client), 200);
    CHECK_STR(client_header(client, "Output-Offset", value, sizeof value), "3145728");
    CHECK(client_gets_all(client, "beginmore"));
    client_ask(client, "GET", id, "?offset=3145733", "");
    CHECK_INT(client_head(client), 200);
    CHECK(client_header(client, "Output-Offset", value, sizeof value) == NULL);
    CHECK(client_gets_all(client, "more"));
    client_ask(client, "GET", id, "", "Range: bytes=10-3145729\r\n");
    CHECK_INT(client_head(client), 206);
    CHECK_STR(client_header(client, "Content-Range", value, sizeof value),
              "bytes 3145728-3145729/3145737");
    CHECK(client_gets_all(client, "be"));
    client_ask(client, "GET", id, "", "Range: bytes=10-20\r\n");
    CHECK_INT(client_head(client), 416);
    CHECK(client_gets_all(client, ""));
    streams_discard(stage->core.streams, stream);
}

static void check_range(struct client *client, const char *id, const char *lines, int status,
                        const char *range, const char *content)
{
    char value[64];

    client_ask(client, "GET", id, "", lines);
    CHECK_INT(client_head(client), status);
    if (range)
        CHECK_STR(client_header(client, "Content-Range", value, sizeof value), range);
    else
        CHECK(!client_header(client, "Content-Range", value, sizeof value));
    CHECK(client_gets_all(client, content));
}

TEST(a_range_is_of_what_is_there_now)
{
    autoptr(stage) stage = stage_new();
    autoptr(client) client = client_new(stage);
    char id[ID_TEXT];

    stage_say(stage, stage_stream(stage, id), "0123456789");
    check_range(client, id, "Range: bytes=4-\r\n", 206, "bytes 4-9/*", "456789");
    check_range(client, id, "Range: bytes=10-\r\n", 416, "bytes */10", "");
    stage_complete(stage, id);
    check_range(client, id, "Range: bytes=4-\r\n", 206, "bytes 4-9/10", "456789");
    check_range(client, id, "Range: bytes=2-3\r\n", 206, "bytes 2-3/10", "23");
    check_range(client, id, "Range: bytes=-1\r\n", 206, "bytes 9-9/10", "9");
    check_range(client, id, "Range: bytes=99-\r\n", 416, "bytes */10", "");
    check_range(client, id, "Range: bytes=0-1,3-4\r\n", 200, NULL, "0123456789");
    check_range(client, id, "Range: bytes=4-\r\nIf-Range: \"x\"\r\n", 200, NULL, "0123456789");
}

TEST(a_head_request_gets_no_bytes_and_does_not_wait)
{
    autoptr(stage) stage = stage_new();
    autoptr(client) client = client_new(stage);
    char id[ID_TEXT];

    stage_say(stage, stage_stream(stage, id), "0123456789");
    client_ask(client, "HEAD", id, "", "");
    CHECK_INT(client_head(client), 200);
    CHECK(client->is_chunked);
    stage_complete(stage, id);
    client_ask(client, "HEAD", id, "", "");
    CHECK_INT(client_head(client), 200);
    CHECK_INT(client->left, 10);
    client_ask(client, "GET", id, "", "");
    CHECK_INT(client_head(client), 200);
    CHECK(client_gets_all(client, "0123456789"));
}

TEST(streams_are_at_the_root_too_and_nothing_else_is)
{
    autoptr(stage) stage = stage_new();
    autoptr(client) client = client_new(stage);
    char id[ID_TEXT];

    stage_say(stage, stage_stream(stage, id), "here");
    stage_complete(stage, id);
    client_say(client, "GET /stream_%s HTTP/1.1\r\nHost: here\r\n\r\n", id);
    CHECK_INT(client_head(client), 200);
    CHECK(client_gets_all(client, "here"));
    client_say(client, "GET /nothing HTTP/1.1\r\nHost: here\r\nX-Request-Id: mine\r\n\r\n");
    CHECK_INT(client_head(client), 404);
    CHECK(client_gets_all(client,
                          "{\"success\":false,\"code\":\"ROUTE_NOT_FOUND\",\"message\":\"there is "
                          "nothing at '/nothing'\",\"requestId\":\"mine\"}"));
    client_say(client, "GET /stream/stream_unknown HTTP/1.1\r\nHost: here\r\n\r\n");
    CHECK_INT(client_head(client), 404);
}

TEST(a_reader_that_leaves_is_forgotten)
{
    autoptr(stage) stage = stage_new();
    char id[ID_TEXT];

    stage_say(stage, stage_stream(stage, id), "some");
    for (unsigned i = 0; i < 20; i++) {
        struct client *client = reader_new(stage, id);
        CHECK(client_gets(client, "some"));
        client_free(client);
    }
    autoptr(client) half = reader_new(stage, id);
    CHECK(client_gets(half, "some"));
    CHECK(shutdown(half->fd, SHUT_WR) == 0);
    CHECK_INT(client_read(half, (char[8]){0}, 8), -1); // cut: it cannot be told from one that left
    stage_say(stage, id, "more");
    stage_complete(stage, id);
}

#define FLOOD_MIB 96

TEST(a_slow_reader_holds_up_nobody_and_costs_no_memory)
{
    autoptr(stage) stage = stage_new();
    autofree char *piece = xcalloc(1, 1 << 20);
    char id[ID_TEXT], got[4096];
    uint64_t quick_bytes = 0, slow_bytes = 0;
    ssize_t length;

    memset(piece, 'x', 1 << 20);
    autoptr(client) slow = reader_new(stage, stage_stream(stage, id));
    autoptr(client) quick = reader_new(stage, id);
    stage_append(stage, id, piece, 1 << 20);
    size_t before = memory_kib();
    for (unsigned i = 1; i < FLOOD_MIB; i++) {
        stage_append(stage, id, piece, (1 << 20) - 100);
        stage_append(stage, id, piece, 100); // small ones must not pile up either
    }
    stage_complete(stage, id);
    while ((length = client_read(quick, got, sizeof got)) > 0)
        quick_bytes += (uint64_t)length;
    CHECK_INT(length, 0);
    CHECK_INT(quick_bytes, (uint64_t)FLOOD_MIB << 20);
    CHECK(memory_kib() < before + (16u << 10));
    while ((length = client_read(slow, got, sizeof got)) > 0)
        slow_bytes += (uint64_t)length;
    CHECK_INT(length, 0);
    CHECK_INT(slow_bytes, quick_bytes);
}

#define READERS 2000

TEST(two_thousand_readers_of_one_stream)
{
    struct rlimit files;
    autoptr(stage) stage = stage_new();
    autofree struct client **clients = xcalloc(READERS, sizeof *clients);
    char id[ID_TEXT];

    (void)getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_max < 2 * READERS + 100)
        SKIP("needs %d open files", 2 * READERS + 100);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    stage_say(stage, stage_stream(stage, id), "first ");
    size_t before = memory_kib();
    for (unsigned i = 0; i < READERS; i++)
        clients[i] = reader_new(stage, id);
    size_t clients_kib = READERS * sizeof(struct client) / 1024, now = memory_kib();
    size_t used = now > before + clients_kib ? now - before - clients_kib : 0;
    printf("# %zu bytes a reader, connection and all\n", used * 1024 / READERS);
    CHECK(MEMORY_IS_KEPT || used * 1024 / READERS < 4096);
    for (unsigned turn = 0; turn < 5; turn++)
        stage_say(stage, id, "again ");
    for (unsigned i = 0; i < READERS; i++)
        CHECK(client_gets(clients[i], "first again again again again again "));
    stage_complete(stage, id);
    for (unsigned i = 0; i < READERS; i++) {
        CHECK(client_gets_all(clients[i], ""));
        client_free(clients[i]);
    }
}
