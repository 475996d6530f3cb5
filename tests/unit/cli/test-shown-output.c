/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/cli/shown_output.c and escape_sequence.c: queries are left out of what is shown again, and nothing else is, whatever the pieces. */
#include "base/auto.h"
#include "base/buffer.h"
#include "cli/shown_output.h"
#include "test.h"

static void check_bytes(const struct buffer *got, const char *want, size_t length)
{
    CHECK_INT(got->length, length);
    CHECK(length == 0 || memcmp(got->data, want, length) == 0);
}

/* In pieces of every length. */
static void check_again(const char *from, size_t length, const char *want, size_t want_length)
{
    for (size_t piece = 1; piece <= length; piece++) {
        struct shown_output shown = {0};
        autobuffer text = {0};
        for (size_t at = 0; at < length; at += piece)
            shown_output_again(&shown, from + at, at + piece < length ? piece : length - at, &text);
        check_bytes(&text, want, want_length);
    }
}
#define AGAIN(from, want) check_again(from, sizeof(from) - 1, want, sizeof(want) - 1)

static const char *const queries[] = {
    "\033[c",
    "\033[0c",
    "\033[>c",
    "\033[>0c",
    "\033[=c",
    "\033[5n",
    "\033[6n",
    "\033[?6n",
    "\033[?996n",
    "\033[?2026$p",
    "\033[4$p",
    "\033[>q",
    "\033[>0q",
    "\033[14t",
    "\033[18t",
    "\033[14;2t",
    "\033[21t",
    "\033[x",
    "\033[?u",
    "\033[?4m",
    "\033[?2;1S",
    "\033Z",
    "\033]10;?\a",
    "\033]11;?\033\\",
    "\033]4;1;?;2;?\a",
    "\033]52;c;?\a",
    "\033]11;?\xc2\x9c",
    "\033P+q544e\033\\",
    "\033P$qm\033\\",
    "\033P1$q q\033\\",
    "\033_Gi=1,a=q;AAAA\033\\",
    "\xc2\x9b"
    "6n",
    "\xc2\x9d"
    "11;?\a",
    "\x05",
};

TEST(queries_are_left_out_of_what_is_shown_again)
{
    for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
        char text[100];
        int length = snprintf(text, sizeof text, "a%sb", queries[i]);
        check_again(text, (size_t)length, "ab", 2);
    }
}

// What looks like a query and changes something, or nothing at all.
static const char *const others[] = {
    "\033[?25h",
    "\033[?1c",
    "\033[>4;2m",
    "\033[22;0t",
    "\033[8;24;80t",
    "\033[1;31m",
    "\033[!p",
    "\033[2 q",
    "\033[>1u",
    "\033[<u",
    "\033]0;?\a",
    "\033]2;what?\033\\",
    "\033]11;#fff\a",
    "\033]8;;http://a/?b\a",
    "\033Pq#0;2;0;0;0+q\033\\",
    "\033_Ga=T;?\033\\",
    "\033(B",
    "\033=",
    "\033c",
    "\033M",
    "\033[1;24r",
    "\033[2*x",
    "\xc3\x9b"
    "6n",
    "\xc2\xa9"
    "6n",
    "Z[6n",
    "\033[6\033[1m",
    "\033[6\x18n",
    "\r\n\t\a",
    "\033]0;\xc3\x9c\a",
};

TEST(all_else_goes_on_as_it_is)
{
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        char text[100];
        int length = snprintf(text, sizeof text, "a%sb", others[i]);
        check_again(text, (size_t)length, text, (size_t)length);
    }
    AGAIN("a\0b\xff\xfe", "a\0b\xff\xfe");
}

TEST(what_comes_live_is_untouched_and_at_once)
{
    for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
        struct shown_output shown = {0};
        for (size_t at = 0; queries[i][at]; at++) {
            autobuffer text = {0};
            shown_output_live(&shown, queries[i] + at, 1, &text);
            check_bytes(&text, queries[i] + at, 1);
        }
    }
}

TEST(a_sequence_that_ends_live_is_live)
{
    struct shown_output shown = {0};
    autobuffer text = {0};

    shown_output_again(&shown, "a\033[", 3, &text);
    check_bytes(&text, "a", 1);
    shown_output_live(&shown, "6nb", 3, &text);
    check_bytes(&text, "a\033[6nb", 6);
}

TEST(what_is_left_out_does_not_make_a_query_of_what_is_around_it)
{
    AGAIN("\033[6\033[5nn", "\033[6\x18n");
    AGAIN("\033[\0336\033[c6n", "\033[\0336"
                                "6n");
    AGAIN("\033]11;?\033[5n\033[1m", "\033[1m"); // a string that is cut is done by some
}

TEST(a_long_sequence_is_let_through)
{
    enum { LONG = 3 * SHOWN_SEQUENCE };
    static char image[LONG];

    memset(image, '?', sizeof image);
    memcpy(image, "\033Pq", 3);
    memcpy(image + LONG - 4, "\033\\ok", 4);
    struct shown_output shown = {0};
    autobuffer text = {0};
    shown_output_again(&shown, image, sizeof image, &text);
    check_bytes(&text, image, sizeof image);
    shown_output_again(&shown, "\033[6n", 4, &text);
    check_bytes(&text, image, sizeof image);
}

TEST(a_sequence_without_its_end_is_ended_on_leaving)
{
    struct shown_output shown = {0};
    autobuffer text = {0};

    shown_output_again(&shown, "a\033[?104", 7, &text);
    shown_output_leave(&shown, &text);
    check_bytes(&text, "a\033[?104\x18", 8);
    text.length = 0;
    shown_output_live(&shown, "\xc3\xa9", 2, &text);
    text.length = 0;
    shown_output_leave(&shown, &text);
    check_bytes(&text, "", 0);
}
