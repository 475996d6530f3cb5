/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/log.c. */
#include "base/auto.h"
#include "base/log.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>

static int sink = -1;
static char lines[64 << 10];

static void log_to_pipe(enum log_level level, enum log_format format)
{
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    (void)fcntl(ends[1], F_SETPIPE_SZ, 64 << 10);
    log_configure(level, format, ends[1]);
    sink = ends[0];
    // the writing end stays open until the process ends
}

/* All that was logged, with the time (24 characters) of the first line replaced. */
static const char *logged(void)
{
    ssize_t got = read(sink, lines, sizeof lines - 1);
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT, STDERR_FILENO);
    (void)close(sink);
    lines[got > 0 ? got : 0] = '\0';
    char *time = lines[0] == '{' ? lines + strlen("{\"time\":\"") : lines;
    if (got > 33)
        memcpy(time, "2026-01-02T03:04:05.678Z", 24);
    return lines;
}

TEST(a_text_line_has_time_level_message_and_fields)
{
    size_t size = 12;
    bool is_warm = true;
    const char *nothing = NULL;
    log_to_pipe(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_info("sandbox started", F("id", "sbx_7"), F("ms", size), F("code", -1), F("warm", is_warm),
             F("why", "two words"), F("owner", nothing));
    CHECK_STR(logged(), "2026-01-02T03:04:05.678Z info sandbox started id=sbx_7 ms=12 code=-1 "
                        "warm=true why=\"two words\" owner=null\n");
}

TEST(an_id_is_told_with_its_prefix)
{
    log_to_pipe(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    log_info("ended", log_field_id("sandbox", "sbx_", "7\""));
    CHECK_STR(logged(), "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"info\","
                        "\"message\":\"ended\",\"sandbox\":\"sbx_7\\\"\"}\n");
    log_to_pipe(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_info("ended", log_field_id("sandbox", "sbx_", "7"));
    CHECK_STR(logged(), "2026-01-02T03:04:05.678Z info ended sandbox=sbx_7\n");
}

TEST(a_json_line_is_one_object)
{
    log_to_pipe(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    log_error("no \"room\"", F("left", 0x8000000000000000ULL), F("path", "/a\nb"));
    CHECK_STR(logged(), "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"error\","
                        "\"message\":\"no \\\"room\\\"\",\"left\":9223372036854775808,"
                        "\"path\":\"/a\\nb\"}\n");
}

TEST(a_field_cannot_forge_a_line)
{
    log_to_pipe(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_warn("odd\nname", F("name", "x\n2026-01-02T03:04:05.678Z error forged"), F("empty", ""));
    CHECK_STR(logged(), "2026-01-02T03:04:05.678Z warn odd\\nname "
                        "name=\"x\\n2026-01-02T03:04:05.678Z error forged\" empty=\"\"\n");
}

TEST(lines_above_the_level_are_dropped)
{
    log_to_pipe(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
    log_info("not seen");
    log_debug("nor this", F("id", 1));
    CHECK_STR(logged(), "");
    CHECK(log_is_on(LOG_LEVEL_INFO) && !log_is_on(LOG_LEVEL_DEBUG));
}

TEST(a_field_that_is_too_long_is_left_out_and_the_line_stays_whole)
{
    static char longer[40000];
    memset(longer, 'x', sizeof longer - 1);
    log_to_pipe(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    log_info("large", F("id", 1), F("body", longer));
    CHECK_STR(logged(), "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"info\","
                        "\"message\":\"large\",\"id\":1}\n");
}

TEST(level_names_are_read)
{
    enum log_level level = LOG_LEVEL_INFO;
    CHECK_INT(log_level_parse("debug", &level), 0);
    CHECK_INT(level, LOG_LEVEL_DEBUG);
    CHECK_INT(log_level_parse("loud", &level), -1);
}

static const char *read_all(void)
{
    static char text[4 << 20];
    size_t used = 0;
    ssize_t got;

    while ((got = read(sink, text + used, sizeof text - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    return text;
}

TEST(queued_lines_are_written_in_order_and_all_of_them_before_the_end)
{
    char want[32];

    log_to_pipe(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_writer_start();
    for (int i = 0; i < 100; i++)
        log_info_later("line", F("number", i));
    log_writer_stop();
    const char *at = read_all();
    for (int i = 0; i < 100; i++) {
        (void)snprintf(want, sizeof want, "line number=%d\n", i);
        at = strstr(at, want);
        CHECK(at);
    }
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT, STDERR_FILENO);
    (void)close(sink);
}

TEST(whoever_queues_lines_does_not_wait_for_a_reader_and_what_is_dropped_is_told)
{
    static char wide[512];
    int ends[2];

    memset(wide, 'x', sizeof wide - 1);
    CHECK(pipe2(ends, O_CLOEXEC) == 0); // it blocks, and nobody reads yet
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT, ends[1]);
    log_writer_start();
    for (int i = 0; i < 5000; i++)
        log_info_later("wide", F("text", wide));
    sink = ends[0];
    static char all[4 << 20];
    size_t used = 0;
    while (!strstr(all, "log lines dropped count=")) { // it may come in two pieces
        ssize_t got = read(sink, all + used, sizeof all - 1 - used);
        CHECK(got > 0);
        used += (size_t)got;
    }
    // More may wait behind that line, for a reader who is gone now.
    (void)signal(SIGPIPE, SIG_IGN);
    (void)close(sink);
    log_writer_stop();
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT, STDERR_FILENO);
    (void)close(ends[1]);
}
