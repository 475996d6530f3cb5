/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/data/json_writer.c. */
#include "base/auto.h"
#include "data/json_writer.h"
#include "test.h"

TEST(an_object_is_written_with_its_commas)
{
    autobuffer to = {0};
    struct json_writer w;
    struct error err = {0};

    json_writer_init(&w, &to);
    json_map_begin(&w);
    json_key(&w, "sandboxId");
    json_string(&w, "sbx_7");
    json_key(&w, "exitCode");
    json_integer(&w, -1);
    json_key(&w, "bytes");
    json_natural(&w, UINT64_MAX);
    json_key(&w, "list");
    json_list_begin(&w);
    json_bool(&w, true);
    json_bool(&w, false);
    json_null(&w);
    json_string(&w, NULL);
    json_list_begin(&w);
    json_list_end(&w);
    json_map_begin(&w);
    json_map_end(&w);
    json_list_end(&w);
    json_key(&w, "odd \"key\"\n");
    json_map_begin(&w);
    json_key(&w, "a");
    json_null(&w);
    json_map_end(&w);
    json_map_end(&w);
    CHECK_OK(json_writer_finish(&w, &err), err);
    CHECK_STR(to.data,
              "{\"sandboxId\":\"sbx_7\",\"exitCode\":-1,\"bytes\":18446744073709551615,"
              "\"list\":[true,false,null,null,[],{}],\"odd \\\"key\\\"\\n\":{\"a\":null}}");
}

TEST(a_list_of_strings_is_a_member_where_there_are_some)
{
    static const char *const some[] = {"a", "b \"c\"", NULL}, *const none[] = {NULL};
    autobuffer to = {0};
    struct json_writer w;
    struct error err = {0};

    json_writer_init(&w, &to);
    json_map_begin(&w);
    json_strings(&w, "some", some);
    json_strings(&w, "none", none);
    json_strings(&w, "null", NULL);
    json_map_end(&w);
    CHECK_OK(json_writer_finish(&w, &err), err);
    CHECK_STR(to.data, "{\"some\":[\"a\",\"b \\\"c\\\"\"]}");
}

TEST(bad_bytes_become_replacement_characters)
{
    autobuffer to = {0};
    struct json_writer w;
    struct error err = {0};

    json_writer_init(&w, &to);
    json_bytes(&w, "ok\0\xff\xe2\x82", 6);
    CHECK_OK(json_writer_finish(&w, &err), err);
    CHECK_STR(to.data, "\"ok\\u0000\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(a_string_in_pieces_reads_as_the_whole_wherever_it_is_cut)
{
    static const char text[] = "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x8c\x8d\xff\xe2\x82z\xf0\x9f\xc3\xc3"
                               "\xbc\xed\xa0\x80\"\\\n\xf0\x9f\x8c";
    size_t length = sizeof text - 1;
    autobuffer whole = {0};
    struct json_writer w;
    struct error err = {0};

    json_writer_init(&w, &whole);
    json_bytes(&w, text, length);
    CHECK_OK(json_writer_finish(&w, &err), err);
    for (size_t first = 0; first <= length; first++) {
        for (size_t second = first; second <= length; second++) {
            autobuffer to = {0};
            json_writer_init(&w, &to);
            json_string_begin(&w);
            json_string_piece(&w, text, first);
            json_string_piece(&w, text + first, second - first);
            json_string_piece(&w, text + second, length - second);
            json_string_end(&w);
            CHECK_OK(json_writer_finish(&w, &err), err);
            CHECK_STR(to.data, whole.data);
        }
    }
    for (size_t size = 1; size < 4; size++) {
        autobuffer to = {0};
        json_writer_init(&w, &to);
        json_string_begin(&w);
        for (size_t at = 0; at < length; at += size)
            json_string_piece(&w, text + at, at + size > length ? length - at : size);
        json_string_end(&w);
        CHECK_OK(json_writer_finish(&w, &err), err);
        CHECK_STR(to.data, whole.data);
    }
}

TEST(the_first_failure_is_told_at_the_end)
{
    autobuffer to = {.maximum = 10};
    struct json_writer w;
    struct error err = {0};

    json_writer_init(&w, &to);
    json_list_begin(&w);
    json_string(&w, "longer than ten");
    json_string(&w, "x");
    json_list_end(&w);
    CHECK(json_writer_finish(&w, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
}
