/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/cli/screen_modes.c: what a program switched on is switched off, and nothing else. */
#include "base/auto.h"
#include "base/buffer.h"
#include "cli/shown_output.h"
#include "test.h"

/* What undoes it, in pieces of one byte, live and shown again. */
static void check_undone(const char *from, const char *want)
{
    for (unsigned is_live = 0; is_live < 2; is_live++) {
        struct shown_output shown = {0};
        autobuffer text = {0};
        for (size_t at = 0; from[at]; at++)
            (is_live ? shown_output_live : shown_output_again)(&shown, from + at, 1, &text);
        text.length = 0;
        shown_output_leave(&shown, &text);
        CHECK_STR(text.data && text.length ? text.data : "", want);
    }
}

TEST(modes_that_are_on_are_switched_off)
{
    check_undone("\033[?1049h\033[?25l\033[?1h\033=", "\033>\033[?1l\033[?25h\033[?1049l");
    check_undone("\033[?1000;1006h\033[?2004h", "\033[?1000l\033[?1006l\033[?2004l");
    check_undone("\033[?47h", "\033[?47l");
    check_undone("\033[?1047h\033[?1002h\033[?1003h\033[?1004h\033[?1005h\033[?1015h",
                 "\033[?1002l\033[?1003l\033[?1004l\033[?1005l\033[?1015l\033[?1047l");
    check_undone("\033[?2031h\033[?2048h\033[?69h", "\033[?2031l\033[?2048l\033[?69l");
    check_undone("\xc2\x9b?1049h", "\033[?1049l");
    check_undone("\033[>4;2m\033[>1u\033[>1u\033[3 q", "\033[>4m\033[<2u\033[0 q");
}

TEST(where_and_how_characters_are_put_is_as_usual_again)
{
    check_undone("\0337\033[0;23r\0338", "\0337\033[r\0338"); // as apt has it, for its last line
    check_undone("\033(0lqk", "\033(B");
    check_undone("\033[4h", "\033[4l");
    check_undone("\033[?1049h\033[2;9r", "\033[?1049l\0337\033[r\0338");
}

TEST(keys_are_as_usual_on_either_screen)
{
    check_undone("\033[=5u", "\033[=0u");
    check_undone("\033[>1u\033[?1049h", "\033[?1049l\033[<1u");
    check_undone("\033[?1049h\033[>1u\033[>1u", "\033[<2u\033[?1049l");
    check_undone("\033[>1u\033[?1049h\033[>1u\033[<u", "\033[?1049l\033[<1u");
    check_undone("\033[?1049h\033[>1u\033[?1049l", "");
}

TEST(what_is_as_usual_is_left_alone)
{
    check_undone("", "");
    check_undone("plain text\r\n", "");
    check_undone("\033[?1049h\033[?25l\033[?1h\033=\033[?1049l\033[?25h\033[?1l\033>", "");
    check_undone("\033[?1049l\033[?25h\033[?7h", "");
    check_undone("\033[?1049h\033[1;31m\033[?25l\033c", "");
    check_undone("\033[>4;2m\033[>4m\033[>1u\033[<u\033[2 q\033[0 q", "");
    check_undone("\033[2;9r\033[r\033(0\033(B\033[4h\033[4l\033[=1u\033[=0u", "");
    check_undone("\033[?9999h\033[20h\033[?1049$p", "");
}

TEST(styles_are_ended_where_one_is_on)
{
    check_undone("\033[1m", "\033[m");
    check_undone("\033[31mred\033[0m", "");
    check_undone("\033[31;1mred\033[m", "");
    check_undone("\033[31;42mred\033[39;49m", "");
    check_undone("\033[31;42mred\033[39m", "\033[m");
    check_undone("\033[38;5;0m", "\033[m");
    check_undone("\033[38;2;0;0;0m\033[39m", "");
    check_undone("\033[38:5:0m", "\033[m");
    check_undone("\033[0;4:3m\033[24m", "");
}
