/* SPDX-License-Identifier: Apache-2.0 */
#include "front/api/difference_answer.h"

#include "base/buffer.h"
#include "test.h"

#include <string.h>
#include <sys/stat.h>

static void write_difference(struct json_writer *json, const struct difference *difference)
{
    autoarena arena = {0};
    struct difference_answer answer = {.from = "base", .to = "now"};

    difference_answer_init(&answer, &arena, difference);
    answer_write(json, difference_answer_fields, &answer);
}

#define CHECK_JSON(write, want)                                                                    \
    do {                                                                                           \
        autobuffer text = {0};                                                                     \
        struct json_writer writer;                                                                 \
        struct json_writer *json = &writer;                                                        \
        struct error err = {0};                                                                    \
        json_writer_init(json, &text);                                                             \
        write;                                                                                     \
        CHECK_OK(json_writer_finish(json, &err), err);                                             \
        CHECK_STR(text.data, want);                                                                \
    } while (0)

TEST(a_difference_counts_what_it_leaves_out)
{
    struct difference_entry entries[] = {
        {.kind = DIFFERENCE_ADDED,
         .path = "/a",
         .after = {S_IFREG | 0644, 2},
         .patch = "+x\n",
         .patch_length = 3},
        {.kind = DIFFERENCE_CHANGED,
         .path = "/b",
         .before = {S_IFREG | 0600, 1},
         .after = {S_IFLNK | 0777, 9},
         .is_binary = true},
        {.kind = DIFFERENCE_REMOVED, .path = "/c", .before = {S_IFDIR | 0755, 0}},
    };
    struct difference difference = {.entries = entries, .count = 3, .totals = {1, 1, 1}};

    CHECK_JSON(write_difference(json, &difference),
               "{\"from\":\"base\",\"to\":\"now\",\"added\":1,\"changed\":1,\"removed\":1,"
               "\"items\":[{\"path\":\"/a\",\"change\":\"added\",\"after\":{\"kind\":\"file\","
               "\"mode\":\"0644\",\"sizeBytes\":2},\"patch\":\"+x\\n\"},"
               "{\"path\":\"/b\",\"change\":\"changed\",\"before\":{\"kind\":\"file\",\"mode\":"
               "\"0600\",\"sizeBytes\":1},\"after\":{\"kind\":\"link\",\"mode\":\"0777\"},"
               "\"binary\":true},{\"path\":\"/c\",\"change\":\"removed\",\"before\":{\"kind\":"
               "\"directory\",\"mode\":\"0755\"}}],\"truncated\":false}");
    difference.count = 1;
    difference.totals[DIFFERENCE_REMOVED] = 5;
    autobuffer text = {0};
    struct json_writer json;
    json_writer_init(&json, &text);
    write_difference(&json, &difference);
    CHECK(strstr(text.data, "\"removed\":5"));
    CHECK(strstr(text.data, "\"truncated\":true"));
}
