/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/cli/last_lines.c: the last lines, in any pieces. */
#include "base/auto.h"
#include "base/mem.h"
#include "cli/last_lines.h"
#include "test.h"

#include <stdlib.h>

static int collect(void *context, unsigned side, const char *data, size_t length)
{
    struct error err = {0};
    CHECK_OK(buffer_addf(context, &err, "%u:%.*s|", side, (int)length, data), err);
    return 0;
}

static void check_given(struct last_lines *lines, const char *wanted)
{
    autobuffer got = {0};
    struct error err = {0};
    CHECK_OK(buffer_add_text(&got, "", &err), err);
    CHECK_INT(last_lines_give(lines, collect, &got), 0);
    CHECK_STR(got.data ? got.data : "", wanted);
}

static void add(struct last_lines *lines, unsigned side, const char *text)
{
    last_lines_add(lines, side, text, strlen(text));
}

TEST(the_last_lines_are_given_in_their_order)
{
    struct last_lines lines = {.most = 3};
    for (int i = 0; i < 500; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d\n", i);
        add(&lines, (unsigned)i % 2, text);
    }
    check_given(&lines, "1:497\n|0:498\n|1:499\n|");
    check_given(&lines, "");
    add(&lines, 0, "again\n");
    check_given(&lines, "0:again\n|");
    last_lines_clear(&lines);
}

TEST(pieces_make_lines_and_one_without_an_end_is_one)
{
    struct last_lines lines = {.most = 2};
    add(&lines, 0, "a");
    add(&lines, 1, "x\ny");
    add(&lines, 0, "b\nc\nd");
    check_given(&lines, "0:d|1:y|");
    last_lines_clear(&lines);
}

TEST(none_are_kept_where_none_are_wanted)
{
    struct last_lines lines = {.most = 0};
    add(&lines, 0, "a\nb");
    check_given(&lines, "");
    last_lines_clear(&lines);
}

TEST(memory_is_bounded_whatever_comes)
{
    struct last_lines lines = {.most = 1000000};
    const size_t size = (size_t)3 << 20;
    char *text = xcalloc(1, size);
    memset(text, 'x', size);
    for (int i = 0; i < 40; i++)
        last_lines_add(&lines, 0, text, size); // one line without an end
    CHECK(lines.bytes <= (size_t)33 << 20 && lines.unended[0].length <= (size_t)1 << 20);
    last_lines_clear(&lines);
    free(text);
}
