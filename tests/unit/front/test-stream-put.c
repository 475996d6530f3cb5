/* SPDX-License-Identifier: Apache-2.0 */
/* Writing streams over HTTP: whole by PUT, in pieces by append, and as the input of a command that may end first. */
#include "base/mem.h"
#include "test.h"
#include "unit/web/stage.h"

static const char chunked[] = "Transfer-Encoding: chunked\r\n";
static const char good[] = "{\"success\":true}";

static struct client *writer_new(struct stage *stage, const char *id)
{
    struct client *client = client_new(stage);

    client_ask(client, "PUT", id, "", chunked);
    return client;
}

static void check_content(struct stage *stage, const char *id, const char *content)
{
    autoptr(client) client = client_new(stage);

    client_ask(client, "GET", id, "", "");
    CHECK_INT(client_head(client), 200);
    CHECK(client_gets_all(client, content));
}

TEST(what_is_put_is_the_whole_stream)
{
    autoptr(stage) stage = stage_new();
    char id[ID_TEXT];

    autoptr(client) client = writer_new(stage, stage_stream(stage, id));
    client_chunk(client, "one ");
    stage_wait_size(stage, id, 4); // as it comes
    CHECK(!stage_is_complete(stage, id));
    client_chunk(client, "two");
    client_chunk(client, "");
    CHECK_INT(client_head(client), 200);
    CHECK(client_gets_all(client, good));
    CHECK(stage_is_complete(stage, id));
    check_content(stage, id, "one two");

    client_ask(client, "PUT", id, "", "Content-Length: 3\r\n");
    client_say(client, "abc");
    CHECK_INT(client_head(client), 409);
}

TEST(an_empty_put_is_an_empty_stream)
{
    autoptr(stage) stage = stage_new();
    autoptr(client) client = client_new(stage);
    char id[ID_TEXT];

    client_ask(client, "PUT", stage_stream(stage, id), "", "Content-Length: 0\r\n");
    CHECK_INT(client_head(client), 200);
    CHECK(client_gets_all(client, good));
    CHECK(stage_is_complete(stage, id));
}

TEST(a_large_put_arrives_as_it_was)
{
    autoptr(stage) stage = stage_new();
    size_t size = 20 << 20;
    autofree char *data = xcalloc(1, size + 1);
    char id[ID_TEXT], lines[64];

    for (size_t i = 0; i < size; i++)
        data[i] = (char)('a' + i % 23);
    autoptr(client) client = client_new(stage);
    (void)snprintf(lines, sizeof lines, "Content-Length: %zu\r\n", size);
    client_ask(client, "PUT", stage_stream(stage, id), "", lines);
    client_send(client, data, size);
    CHECK_INT(client_head(client), 200);
    check_content(stage, id, data);
}

TEST(a_broken_put_leaves_the_stream_open_and_is_not_repeated)
{
    autoptr(stage) stage = stage_new();
    char id[ID_TEXT];

    struct client *broken = writer_new(stage, stage_stream(stage, id));
    client_chunk(broken, "half");
    stage_wait_size(stage, id, 4);
    client_free(broken);

    autoptr(client) client = client_new(stage);
    client_ask(client, "PUT", id, "", "Content-Length: 4\r\n");
    client_say(client, "half");
    CHECK_INT(client_head(client), 409);
    CHECK(client_gets(client, "{\"success\":false,\"code\":\"INVALID_STATE\""));
    CHECK(!stage_is_complete(stage, id));
    CHECK_INT(stage_size(stage, id), 4);
}

TEST(a_put_that_broke_before_its_first_byte_can_be_repeated)
{
    autoptr(stage) stage = stage_new();
    char id[ID_TEXT];

    client_free(writer_new(stage, stage_stream(stage, id)));
    autoptr(client) client = writer_new(stage, id);
    client_chunk(client, "again");
    client_chunk(client, "");
    CHECK_INT(client_head(client), 200);
    check_content(stage, id, "again");
}

TEST(a_put_is_answered_when_the_command_that_reads_it_ends)
{
    autoptr(stage) stage = stage_new();
    char id[ID_TEXT];

    stage_stream(stage, id);
    struct stream *input = stage_take(stage, id);
    autoptr(client) client = writer_new(stage, id);
    client_chunk(client, "some");
    stage_wait_size(stage, id, 4);
    stage_end_command(stage, input);
    CHECK_INT(client_head(client), 200); // though more would have come
    CHECK(client_gets_all(client, good));

    autoptr(client) late = writer_new(stage, id);
    CHECK_INT(client_head(late), 200);
}

TEST(a_put_without_a_byte_is_answered_too_when_the_command_ends)
{
    autoptr(stage) stage = stage_new();
    char id[ID_TEXT];

    stage_stream(stage, id);
    struct stream *input = stage_take(stage, id);
    autoptr(client) client = client_new(stage);
    client_ask(client, "PUT", id, "", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n");
    CHECK_INT(client_head(client), 100);
    stage_end_command(stage, input);
    CHECK_INT(client_head(client), 200);
}

#define WRITERS 100

TEST(open_puts_hold_no_threads)
{
    autoptr(stage) stage = stage_new(); // two slow workers, and four may wait
    struct client *clients[WRITERS];
    char ids[WRITERS][ID_TEXT];

    for (unsigned i = 0; i < WRITERS; i++) {
        clients[i] = writer_new(stage, stage_stream(stage, ids[i]));
        client_chunk(clients[i], "begun ");
    }
    for (unsigned i = 0; i < WRITERS; i++)
        stage_wait_size(stage, ids[i], 6);
    for (unsigned i = WRITERS; i-- > 0;) {
        client_chunk(clients[i], "done");
        client_chunk(clients[i], "");
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        CHECK_INT(client_head(clients[i]), 200);
        client_free(clients[i]);
        check_content(stage, ids[i], "begun done");
    }
}

TEST(malformed_chunks_are_the_clients_mistake)
{
    autoptr(stage) stage = stage_new();
    char id[ID_TEXT];

    autoptr(client) client = writer_new(stage, stage_stream(stage, id));
    client_say(client, "zz\r\nno\r\n");
    CHECK_INT(client_head(client), 400);
    CHECK(!stage_is_complete(stage, id));
}

static int append(struct client *client, const char *id, const char *text)
{
    char lines[64];

    (void)snprintf(lines, sizeof lines, "Content-Length: %zu\r\n", strlen(text));
    client_ask(client, "POST", id, "/append", lines);
    client_say(client, "%s", text);
    client_head(client);
    while (client_read(client, (char[256]){0}, 256) > 0)
        ;
    return client->status;
}

TEST(pieces_are_appended_whole_or_not_at_all)
{
    autoptr(stage) stage = stage_new();
    autoptr(client) client = client_new(stage);
    char id[ID_TEXT];

    CHECK_INT(append(client, stage_stream(stage, id), "one "), 200);
    struct client *broken = client_new(stage);
    client_ask(broken, "POST", id, "/append", chunked);
    client_chunk(broken, "broken ");
    client_free(broken);
    CHECK_INT(append(client, id, "two"), 200);
    CHECK_INT(append(client, id, ""), 200);
    client_ask(client, "POST", id, "/complete", "Content-Length: 0\r\n");
    CHECK_INT(client_head(client), 200);
    CHECK(client_gets_all(client, good));
    CHECK_INT(append(client, id, "three"), 409);
    check_content(stage, id, "one two");
}

TEST(what_a_finished_command_would_have_read_is_dropped)
{
    autoptr(stage) stage = stage_new();
    autoptr(client) client = client_new(stage);
    char id[ID_TEXT];

    stage_stream(stage, id);
    struct stream *input = stage_take(stage, id);
    CHECK_INT(append(client, id, "one"), 200);
    stage_end_command(stage, input);
    CHECK_INT(append(client, id, "two"), 200);
    check_content(stage, id, "one");
}

TEST(a_piece_is_at_most_five_mebibytes)
{
    autoptr(stage) stage = stage_new();
    size_t size = 5 << 20;
    autofree char *data = xcalloc(1, size + 2);
    char id[ID_TEXT];

    memset(data, 'x', size);
    autoptr(client) client = client_new(stage);
    CHECK_INT(append(client, stage_stream(stage, id), data), 200);
    CHECK_INT(stage_size(stage, id), size);
    data[size] = 'x';
    CHECK_INT(append(client, id, data), 413);

    autoptr(client) other = client_new(stage);
    client_ask(other, "POST", id, "/append", chunked);
    client_chunk(other, data);
    client_chunk(other, "");
    CHECK_INT(client_head(other), 413);
    CHECK_INT(stage_size(stage, id), size);
}

static void ask_json(struct client *client, const char *method, const char *path, const char *body)
{
    client_say(client, "%s %s HTTP/1.1\r\nHost: here:80\r\nContent-Length: %zu\r\n\r\n%s", method,
               path, strlen(body), body);
    (void)client_head(client);
}

TEST(streams_are_made_described_listed_and_removed)
{
    autoptr(stage) stage = stage_new();
    autoptr(client) client = client_new(stage);
    char path[64] = "", text[512] = "", id[ID_TEXT] = "";

    ask_json(client, "POST", "/stream", "{\"name\":\"a\",\"metadata\":{\"k\":\"v\"},\"ttl\":null}");
    CHECK_INT(client->status, 200);
    CHECK(client_read(client, text, sizeof text - 1) > 0);
    CHECK(sscanf(text, "{\"id\":\"stream_%26[0-9a-z]\"}", id) == 1);
    ask_json(client, "POST", "/", "{\"name\":\"b\",\"ttl\":5}");
    CHECK_INT(client->status, 200);
    CHECK(client_gets(client, "{\"id\":\"stream_"));
    while (client_read(client, text, sizeof text) > 0)
        ;
    stage_say(stage, id, "12345");

    (void)snprintf(path, sizeof path, "/stream/stream_%s/info", id);
    ask_json(client, "POST", path, "{}");
    CHECK_INT(client->status, 200);
    (void)snprintf(text, sizeof text,
                   "{\"id\":\"stream_%s\",\"name\":\"a\",\"metadata\":{\"k\":\"v\"},\"url\":\"http:"
                   "//here:80/stream/"
                   "stream_%s\",\"size_bytes\":5,\"expires_at\":null}",
                   id, id);
    CHECK(client_gets_all(client, text));

    autofree char *listed = xasprintf("{\"success\":true,\"streams\":[%s],\"total\":1}", text);
    ask_json(client, "POST", "/stream/list", "{\"metadata\":{\"k\":\"v\"}}");
    CHECK(client_gets_all(client, listed));
    ask_json(client, "POST", "/list", "{\"name\":\"a\",\"limit\":1000}");
    CHECK(client_gets_all(client, listed));
    ask_json(client, "POST", "/stream/list", "{\"limit\":0}");
    CHECK(client_gets_all(client, "{\"success\":true,\"streams\":[],\"total\":2}"));

    (void)snprintf(path, sizeof path, "/stream_%s", id);
    ask_json(client, "DELETE", path, "");
    CHECK_INT(client->status, 200);
    CHECK(client_gets_all(client, good));
    ask_json(client, "DELETE", path, "");
    CHECK_INT(client->status, 404);
}

TEST(bad_wishes_are_refused_with_their_field)
{
    static const struct {
        const char *path, *body, *message;
    } rows[] = {
        {"/stream", "{}", "name: "},
        {"/stream", "{\"name\":\"\"}", "name: "},
        {"/stream", "{\"name\":1}", "name: "},
        {"/stream", "{\"name\":\"a\",\"ttl\":-1}", "ttl: "},
        {"/stream", "{\"name\":\"a\",\"metadata\":{\"k\":1}}", "metadata.k: "},
        {"/stream/list", "{\"sort\":\"colour\"}", "sort: "},
        {"/stream/list", "{\"direction\":\"up\"}", "direction: "},
        {"/stream/list", "{\"limit\":-1}", "limit: "},
    };
    autoptr(stage) stage = stage_new();
    autoptr(client) client = client_new(stage);
    char text[1024];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memset(text, 0, sizeof text);
        ask_json(client, "POST", rows[i].path, rows[i].body);
        CHECK_INT(client->status, 400);
        CHECK(client_read(client, text, sizeof text - 1) > 0);
        CHECK(strstr(text, "\"INVALID_ARGUMENT\"") && strstr(text, rows[i].message));
    }
}
