/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of clients, honest and not. */
#include "net/websocket_frames.h"

#include "base/auto.h"
#include "test.h"

#include <stdio.h>

static const struct websocket_limits limits = {
    .message_bytes = 1 << 20, .text_bytes = 70000, .fragments = 8};

/* What was told, as text: "B<abc>" a piece that is a whole message. */
struct seen {
    struct buffer text;
    int stop_after; // events; 0: never
};

static bool tell(struct seen *seen, const char *kind, const char *data, size_t length)
{
    struct error err;

    (void)buffer_add_text(&seen->text, kind, &err);
    (void)buffer_add(&seen->text, data, length, &err);
    return !seen->stop_after || --seen->stop_after > 0;
}

static bool on_binary(void *owner, const char *data, size_t length, bool is_first, bool is_last)
{
    struct seen *seen = owner;
    struct error err;

    bool goes_on = tell(seen, is_first ? " B" : "", data, length);
    if (is_last)
        (void)buffer_add_text(&seen->text, ".", &err);
    return goes_on;
}

static bool on_text(void *owner, const char *text, size_t length)
{
    return tell(owner, " T", text, length);
}

static bool on_ping(void *owner, const char *data, size_t length)
{
    return tell(owner, " P", data, length);
}

static bool on_pong(void *owner)
{
    return tell(owner, " O", "", 0);
}

static bool on_close(void *owner, unsigned code)
{
    char text[8];

    return tell(owner, " C", text, (size_t)snprintf(text, sizeof text, "%u", code));
}

static const struct frames_events events = {.on_binary = on_binary,
                                            .on_text = on_text,
                                            .on_ping = on_ping,
                                            .on_pong = on_pong,
                                            .on_close = on_close};

/* Adds a client's frame; `first` has its final bit. */
static void add_frame(struct buffer *to, unsigned first, const char *data, size_t length)
{
    static const uint8_t mask[] = {0x11, 0xfe, 0, 0x80};
    uint8_t head[FRAMES_HEAD];
    struct error err;
    size_t used = frames_head(first & 0x0f, length, head);

    head[0] = (uint8_t)first;
    head[1] |= 0x80;
    (void)buffer_add(to, head, used, &err);
    (void)buffer_add(to, mask, sizeof mask, &err);
    for (size_t i = 0; i < length; i++) {
        char c = (char)(data[i] ^ mask[i % 4]);
        (void)buffer_add(to, &c, 1, &err);
    }
}

/* Feeds it in pieces; the code of the fault, or 0. */
static int feed(const struct buffer *bytes, size_t piece, struct seen *seen)
{
    autobuffer copy = {0};
    struct frames frames;
    struct frames_fault fault = {0};
    struct error err;

    seen->text.length = 0;
    (void)buffer_add(&copy, bytes->data, bytes->length, &err);
    frames_init(&frames, &limits, &events, seen);
    for (size_t at = 0; at < copy.length && !fault.code;) {
        size_t left = copy.length - at;
        ssize_t used = frames_feed(&frames, copy.data + at, left < piece ? left : piece, &fault);
        if (used > 0)
            at += (size_t)used;
    }
    frames_clear(&frames);
    return (int)fault.code;
}

/* However it is cut, it is the same. */
static void check(const struct buffer *bytes, int code, const char *want)
{
    __attribute__((cleanup(buffer_clearp))) struct buffer room = {0};
    struct seen seen = {.text = room};
    static const size_t pieces[] = {1, 2, 3, 7, 1 << 20};

    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        CHECK_INT(feed(bytes, pieces[i], &seen), code);
        CHECK_STR(seen.text.data ? seen.text.data : "", want);
    }
    room = seen.text;
}

TEST(messages_come_out_as_they_went_in)
{
    autobuffer bytes = {0};

    add_frame(&bytes, 0x81, "h\xc3\xa9llo", 6);
    add_frame(&bytes, 0x82, "abc", 3);
    add_frame(&bytes, 0x82, "", 0);
    add_frame(&bytes, 0x81, "", 0);
    check(&bytes, 0, " Th\xc3\xa9llo Babc. B. T");
}

TEST(fragments_make_one_message_and_control_frames_may_stand_between)
{
    autobuffer bytes = {0};

    add_frame(&bytes, 0x01, "h\xc3", 2);
    add_frame(&bytes, 0x89, "ping", 4);
    add_frame(&bytes, 0x00, "", 0);
    add_frame(&bytes, 0x80, "\xa9", 1);
    add_frame(&bytes, 0x02, "ab", 2);
    add_frame(&bytes, 0x8a, "x", 1);
    add_frame(&bytes, 0x80, "c", 1);
    check(&bytes, 0, " Pping Th\xc3\xa9 Bab Oc.");
}

TEST(long_messages_of_all_lengths_are_read)
{
    static const size_t lengths[] = {125, 126, 65535, 65536};
    static char data[65536];

    memset(data, 'x', sizeof data);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        autobuffer bytes = {0}, want = {0};
        struct error err;
        add_frame(&bytes, 0x81, data, lengths[i]);
        (void)buffer_add_text(&want, " T", &err);
        (void)buffer_add(&want, data, lengths[i], &err);
        check(&bytes, 0, want.data);
    }
}

TEST(a_close_tells_its_code)
{
    autobuffer with = {0}, without = {0};

    add_frame(&with, 0x88, "\x03\xe8 done", 7);
    add_frame(&without, 0x88, "", 0);
    check(&with, 0, " C1000");
    check(&without, 0, " C1005");
}

TEST(an_event_that_holds_ends_the_feed_behind_it)
{
    autobuffer bytes = {0};
    struct seen seen = {.stop_after = 1};
    struct frames frames;
    struct frames_fault fault = {0};

    add_frame(&bytes, 0x82, "abc", 3);
    size_t one = bytes.length;
    add_frame(&bytes, 0x82, "def", 3);
    frames_init(&frames, &limits, &events, &seen);
    CHECK_INT(frames_feed(&frames, bytes.data, bytes.length, &fault), (long)one);
    CHECK_STR(seen.text.data, " Babc.");
    CHECK_INT(frames_feed(&frames, bytes.data + one, one, &fault), (long)one);
    CHECK_STR(seen.text.data, " Babc. Bdef.");
    frames_clear(&frames);
    buffer_clear(&seen.text);
}

TEST(frames_that_break_the_rules_are_refused_with_their_code)
{
    static const struct {
        const char *bytes;
        size_t length;
        int code;
    } cases[] = {
        {"\x81\x05hello", 7, WEBSOCKET_PROTOCOL}, // not masked
        {"\xc1\x80"
         "abcd",
         6, WEBSOCKET_PROTOCOL}, // reserved bits: compressed
        {"\x83\x80"
         "abcd",
         6, WEBSOCKET_PROTOCOL}, // opcodes that there are not
        {"\x8b\x80"
         "abcd",
         6, WEBSOCKET_PROTOCOL},
        {"\x80\x80"
         "abcd",
         6, WEBSOCKET_PROTOCOL}, // continues nothing
        {"\x09\x80"
         "abcd",
         6, WEBSOCKET_PROTOCOL}, // half a ping
        {"\x89\xfe\x00\x7e"
         "abcd",
         8, WEBSOCKET_PROTOCOL}, // a long ping
        {"\x82\xfe\x00\x05"
         "abcd",
         8, WEBSOCKET_PROTOCOL}, // 5 as two bytes
        {"\x82\xff\0\0\0\0\0\0\x01\0"
         "abcd",
         14, WEBSOCKET_PROTOCOL},
        {"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff"
         "abcd",
         14, WEBSOCKET_PROTOCOL}, // below zero
        {"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"
         "abcd",
         14, WEBSOCKET_TOO_LARGE},
        {"\x81\xff\0\0\0\0\0\x10\0\0"
         "abcd",
         14, WEBSOCKET_TOO_LARGE},
        {"\x88\x81\0\0\0\0\x03", 7, WEBSOCKET_PROTOCOL},     // half a code
        {"\x88\x82\0\0\0\0\x03\xed", 8, WEBSOCKET_PROTOCOL}, // 1005 is never sent
        {"\x88\x82\0\0\0\0\x00\x07", 8, WEBSOCKET_PROTOCOL},
        {"\x88\x83\0\0\0\0\x03\xe8\xff", 9, WEBSOCKET_NOT_TEXT},
        {"\x81\x82\0\0\0\0\xc3\x28", 8, WEBSOCKET_NOT_TEXT},
        {"\x81\x83\0\0\0\0\xed\xa0\x80", 9, WEBSOCKET_NOT_TEXT}, // a surrogate
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        autobuffer bytes = {0};
        struct error err;
        (void)buffer_add(&bytes, cases[i].bytes, cases[i].length, &err);
        check(&bytes, cases[i].code, "");
    }
}

TEST(a_message_inside_another_one_is_refused)
{
    autobuffer bytes = {0};

    add_frame(&bytes, 0x01, "a", 1);
    add_frame(&bytes, 0x81, "b", 1);
    check(&bytes, WEBSOCKET_PROTOCOL, "");
}

TEST(fragments_without_end_are_refused_by_number_and_by_sum)
{
    autobuffer many = {0}, large = {0};
    static char data[60000];

    memset(data, 'x', sizeof data);
    for (unsigned i = 0; i <= limits.fragments; i++)
        add_frame(&many, i ? 0x00 : 0x01, "", 0);
    check(&many, WEBSOCKET_POLICY, "");
    add_frame(&large, 0x01, data, sizeof data);
    add_frame(&large, 0x00, data, 10001);
    check(&large, WEBSOCKET_TOO_LARGE, "");
}

TEST(nothing_is_read_behind_a_fault)
{
    autobuffer bytes = {0};
    struct seen seen = {0};
    struct frames frames;
    struct frames_fault fault = {0};
    char bad[] = "\x81\x05hello";

    add_frame(&bytes, 0x82, "abc", 3);
    frames_init(&frames, &limits, &events, &seen);
    CHECK_INT(frames_feed(&frames, bad, sizeof bad - 1, &fault), -1);
    CHECK_INT(frames_feed(&frames, bytes.data, bytes.length, &fault), -1);
    CHECK(seen.text.length == 0);
    frames_clear(&frames);
}
