/* SPDX-License-Identifier: Apache-2.0 */
#include "web/representation.h"

#include "base/mem.h"
#include "test.h"

#include <string.h>
#include <zlib.h>

TEST(gzip_is_taken_where_it_is_named_and_not_refused)
{
    static const char *const yes[] = {"gzip", "GZIP",        "deflate, gzip", "gzip;q=0.1",
                                      "*",    "br;q=1,gzip", "gzip ; q=1",    NULL};
    static const char *const no[] = {"",    "identity", "x-gzip", "gzip;q=0", "gzip;q=0.000",
                                     "gzi", "*;q=0",    "gzipp",  NULL};

    for (size_t i = 0; yes[i]; i++)
        CHECK(representation_takes_gzip(yes[i]));
    for (size_t i = 0; no[i]; i++)
        CHECK(!representation_takes_gzip(no[i]));
    CHECK(!representation_takes_gzip(NULL));
}

TEST(a_tag_is_found_in_a_list)
{
    static const char *const yes[] = {"\"abc\"",      "\"x\", \"abc\"", "W/\"abc\"", "*",
                                      "\"abc-gzip\"", " ,\"abc\" ,",    NULL};
    static const char *const no[] = {"",           "abc",   "\"ab\"", "\"abcd\"",
                                     "\"abc-br\"", "\"abc", "**",     NULL};

    for (size_t i = 0; yes[i]; i++)
        CHECK(representation_has_tag(yes[i], "\"abc\""));
    for (size_t i = 0; no[i]; i++)
        CHECK(!representation_has_tag(no[i], "\"abc\""));
}

static const struct http_header json_type[] = {{"Content-Type", "application/json"}, {0}};

static const char *header_of(const struct response_answer *answer, const char *name)
{
    for (const struct http_header *h = answer->headers; h && h->name; h++) {
        if (strcmp(h->name, name) == 0)
            return h->value;
    }
    return NULL;
}

static void begin(struct representation *representation, const char *method, const char *encoding,
                  const char *tags)
{
    struct http_header headers[] = {{"Accept-Encoding", encoding ? encoding : ""},
                                    {"If-None-Match", tags ? tags : ""}};
    struct http_request request = {
        .method = method, .headers = headers, .header_count = tags ? 2 : 1};

    representation_init(representation, &request);
}

TEST(a_long_answer_is_compressed_and_can_be_unpacked)
{
    struct representation representation;
    char body[5000], back[sizeof body];
    struct response_answer answer = {200, json_type, body, sizeof body, NULL};

    memset(body, 'x', sizeof body);
    begin(&representation, "GET", "gzip", NULL);
    representation_apply(&representation, &answer);
    CHECK_STR(header_of(&answer, "Content-Encoding"), "gzip");
    CHECK_STR(header_of(&answer, "Vary"), "Accept-Encoding");
    CHECK(strstr(header_of(&answer, "ETag"), "-gzip\""));
    CHECK(answer.length < 200);
    z_stream stream = {.next_in = (unsigned char *)answer.owned,
                       .avail_in = (unsigned)answer.length,
                       .next_out = (unsigned char *)back,
                       .avail_out = sizeof back};
    CHECK_INT(inflateInit2(&stream, 31), Z_OK);
    CHECK_INT(inflate(&stream, Z_FINISH), Z_STREAM_END);
    CHECK(stream.total_out == sizeof body && memcmp(body, back, sizeof body) == 0);
    (void)inflateEnd(&stream);
    free(answer.owned);
    representation_clear(&representation);
}

TEST(what_does_not_get_shorter_is_sent_as_it_is)
{
    struct representation representation;
    unsigned char body[2000];
    struct response_answer answer = {200, json_type, body, sizeof body, NULL};
    uint32_t number = 1;

    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (unsigned char)((number = number * 1664525 + 1013904223) >> 24);
    begin(&representation, "GET", "gzip", NULL);
    representation_apply(&representation, &answer);
    CHECK(!answer.owned && answer.length == sizeof body);
    CHECK(!header_of(&answer, "Content-Encoding") && header_of(&answer, "ETag"));
    representation_clear(&representation);
}

TEST(an_answer_that_the_client_has_is_not_sent)
{
    struct representation first, second;
    struct response_answer answer = {200, json_type, "{}", 2, NULL}, again = answer;

    begin(&first, "GET", NULL, NULL);
    representation_apply(&first, &answer);
    CHECK_INT(answer.status, 200);
    begin(&second, "GET", NULL, header_of(&answer, "ETag"));
    representation_apply(&second, &again);
    CHECK_INT(again.status, 304);
    CHECK_INT(again.length, 0);
    CHECK_STR(header_of(&again, "ETag"), header_of(&answer, "ETag"));
    representation_clear(&first);
    representation_clear(&second);
}

TEST(others_are_left_alone)
{
    static const struct http_header bytes_type[] = {{"Content-Type", "application/octet-stream"},
                                                    {0}};
    struct representation representation;
    struct response_answer bytes = {200, bytes_type, "x", 1, NULL},
                           failed = {404, json_type, "{}", 2, NULL},
                           made = {201, json_type, "{}", 2, NULL};

    begin(&representation, "POST", "gzip", "*");
    representation_apply(&representation, &bytes);
    CHECK(bytes.headers == bytes_type);
    representation_apply(&representation, &failed);
    CHECK(failed.headers == json_type && failed.status == 404);
    representation_apply(&representation, &made);
    CHECK(made.status == 201 && !header_of(&made, "ETag"));
    representation_clear(&representation);
}
