/* SPDX-License-Identifier: Apache-2.0 */
#include "web/answer_table.h"

#include "base/auto.h"
#include "data/json.h"
#include "test.h"
#include "web/openapi_schema.h"

#include <string.h>

enum colour { RED, GREEN, NO_COLOUR };
static const char *const colours[] = {[RED] = "red", [GREEN] = "green"};

struct part {
    const char *name;
    int64_t size;
};
struct thing {
    const char *id, *name;
    struct answer_joined url;
    enum colour colour;
    bool is_ready, is_old, has_code;
    int64_t code, made_at;
    uint64_t bytes;
    unsigned count;
    const char *const *words;
    const char *metadata, *labels;
    struct part inner, *elsewhere;
    struct answer_list parts;
};

#define AT(member) offsetof(struct thing, member)

static const struct answer_field part_fields[] = {
    {"name", ANSWER_TEXT, offsetof(struct part, name), .is_needed = true},
    {"size", ANSWER_INTEGER, offsetof(struct part, size)},
    {0},
};

static void write_twice(struct json_writer *json, const void *member)
{
    json_integer(json, 2 * *(const int64_t *)member);
}

static const struct answer_field thing_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = "thing_"},
    {"name", ANSWER_TEXT, AT(name), .is_nullable = true},
    {"url", ANSWER_JOINED, AT(url), .prefix = "/things/"},
    {"colour", ANSWER_WORD, AT(colour), .words = colours, .n_words = 2},
    {"ready", ANSWER_BOOL, AT(is_ready)},
    {"old", ANSWER_TRUTH, AT(is_old)},
    {"code", ANSWER_INTEGER, AT(code), .has_offset = AT(has_code)},
    {"twice", ANSWER_CUSTOM, AT(code), .has_offset = AT(has_code), .write = write_twice},
    {"madeAt", ANSWER_TIME, AT(made_at)},
    {"bytes", ANSWER_NATURAL, AT(bytes)},
    {"count", ANSWER_UNSIGNED, AT(count)},
    {"words", ANSWER_TEXTS, AT(words)},
    {"metadata", ANSWER_JSON, AT(metadata)},
    {"labels", ANSWER_TEXT_MAP, AT(labels)},
    {"inner", ANSWER_MAP, AT(inner), .fields = part_fields},
    {"elsewhere", ANSWER_MAP_AT, AT(elsewhere), .fields = part_fields},
    {"parts", ANSWER_LIST, AT(parts), .fields = part_fields, .item_size = sizeof(struct part)},
    {0},
};

static void check_written(const struct answer_field *fields, const void *from, const char *want)
{
    autobuffer text = {0};
    struct json_writer json;
    struct error err = {0};

    json_writer_init(&json, &text);
    answer_write(&json, fields, from);
    CHECK_OK(json_writer_finish(&json, &err), err);
    CHECK_STR(text.data, want);
}

TEST(bytes_are_written_as_text_or_in_base64_whatever_their_length)
{
    static const struct answer_field fields[] = {
        {"text", ANSWER_BYTES, 0},
        {"base64", ANSWER_BASE64, sizeof(struct answer_bytes)},
        {0},
    };
    struct answer_bytes pair[2] = {{"a\0b\n", 4}, {"\xff\0", 2}};
    char many[3073] = {0};

    check_written(fields, pair, "{\"text\":\"a\\u0000b\\n\",\"base64\":\"/wA=\"}");
    check_written(fields, (struct answer_bytes[2]){{"", 0}, {"", 0}},
                  "{\"text\":\"\",\"base64\":\"\"}");
    check_written(fields, (struct answer_bytes[2]){{0}, {0}}, "{}");

    autobuffer text = {0};
    struct json_writer json;
    json_writer_init(&json, &text);
    answer_write(&json, fields, (struct answer_bytes[2]){{0}, {many, sizeof many}});
    CHECK(text.length == strlen("{\"base64\":\"\"}") + 4100); // one text, padded once
    CHECK(strchr(text.data, '=') == text.data + text.length - 4);
}

TEST(all_that_is_there_is_written_in_the_order_of_the_table)
{
    static const char *const words[] = {"a", "b\n", NULL};
    struct part elsewhere = {"far", 9}, parts[] = {{"one", 1}, {"two", 2}};
    struct thing thing = {
        .id = "7",
        .name = "it",
        .url = {"http://here", "7"},
        .colour = GREEN,
        .is_ready = true,
        .is_old = true,
        .has_code = true,
        .code = -3,
        .made_at = 1500,
        .bytes = UINT64_MAX,
        .count = 4,
        .words = words,
        .metadata = "{\"a\": [1.50, null]}",
        .labels = "{\"x\":\"y\",\"z\":7}",
        .inner = {"near", 5},
        .elsewhere = &elsewhere,
        .parts = {parts, 2},
    };

    check_written(thing_fields, &thing,
                  "{\"id\":\"thing_7\",\"name\":\"it\",\"url\":\"http://here/things/7\","
                  "\"colour\":\"green\",\"ready\":true,\"old\":true,\"code\":-3,\"twice\":-6,"
                  "\"madeAt\":\"1970-01-01T00:00:01.500Z\",\"bytes\":18446744073709551615,"
                  "\"count\":4,\"words\":[\"a\",\"b\\n\"],\"metadata\":{\"a\":[1.50,null]},"
                  "\"labels\":{\"x\":\"y\"},\"inner\":{\"name\":\"near\",\"size\":5},"
                  "\"elsewhere\":{\"name\":\"far\",\"size\":9},"
                  "\"parts\":[{\"name\":\"one\",\"size\":1},{\"name\":\"two\",\"size\":2}]}");
}

TEST(what_is_not_there_is_left_out_or_null)
{
    struct thing thing = {.id = "", .colour = NO_COLOUR, .metadata = "no json", .labels = "[1]"};

    check_written(thing_fields, &thing,
                  "{\"name\":null,\"ready\":false,\"bytes\":0,\"count\":0,"
                  "\"inner\":{\"size\":0},\"parts\":[]}");
}

struct pair {
    struct part part, *other;
};
static const struct answer_field pair_fields[] = {
    {"", ANSWER_BESIDE, offsetof(struct pair, part), .fields = part_fields},
    {"", ANSWER_BESIDE_AT, offsetof(struct pair, other), .fields = thing_fields},
    {0},
};

TEST(members_of_a_struct_inside_can_stand_beside_the_others)
{
    struct pair pair = {.part = {"a", 1}};

    check_written(pair_fields, &pair, "{\"name\":\"a\",\"size\":1}");
}

static void check_schema(const struct route_answer *answer, const char *want)
{
    autobuffer text = {0};
    struct json_writer json;
    struct error err = {0};

    json_writer_init(&json, &text);
    openapi_answer(&json, answer);
    CHECK_OK(json_writer_finish(&json, &err), err);
    CHECK_STR(text.data, want);
}

TEST(a_table_is_a_schema)
{
    static const struct answer_field fields[] = {
        {"id", ANSWER_ID, .is_needed = true},
        {"colour", ANSWER_WORD, .words = colours, .n_words = 2},
        {"at", ANSWER_TIME, .is_nullable = true, .help = "when"},
        {"n", ANSWER_NATURAL},
        {"m", ANSWER_INTEGER, .has_offset = 1},
        {0},
    };

    check_schema(&(struct route_answer){200, fields},
                 "{\"type\":\"object\",\"required\":[\"id\",\"at\",\"n\"],\"properties\":{"
                 "\"id\":{\"type\":\"string\"},"
                 "\"colour\":{\"type\":\"string\",\"enum\":[\"red\",\"green\"]},"
                 "\"at\":{\"type\":[\"string\",\"null\"],\"description\":\"when\","
                 "\"format\":\"date-time\"},"
                 "\"n\":{\"type\":\"integer\",\"minimum\":0},\"m\":{\"type\":\"integer\"}}}");
}

TEST(what_stands_around_an_answer_is_in_its_schema)
{
    static const struct answer_field success[] = {{"success", ANSWER_BOOL}, {0}};
    static const struct answer_wrap data = {success, "data"}, flat = {success, NULL};

    check_schema(&(struct route_answer){200, part_fields, &data},
                 "{\"type\":\"object\",\"required\":[\"success\",\"data\"],\"properties\":{"
                 "\"success\":{\"type\":\"boolean\"},\"data\":{\"type\":\"object\",\"required\":["
                 "\"name\",\"size\"],\"properties\":{\"name\":{\"type\":\"string\"},\"size\":{"
                 "\"type\":\"integer\"}}}}}");
    check_schema(
        &(struct route_answer){200, part_fields, &flat},
        "{\"type\":\"object\",\"required\":[\"success\",\"name\",\"size\"],\"properties\":{"
        "\"success\":{\"type\":\"boolean\"},\"name\":{\"type\":\"string\"},\"size\":{"
        "\"type\":\"integer\"}}}");
}
