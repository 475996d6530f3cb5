/* SPDX-License-Identifier: Apache-2.0 */
/* Escape sequences taken apart; see escape_sequence.h. */
#include "cli/escape_sequence.h"

#include "base/auto.h"

#include <string.h>

#define BELL 0x07
#define C1_LEAD 0xc2   // of U+0080 to U+00BF in UTF-8
#define C1_TO_FINAL 64 // U+009B is ESC and 0x5b
#define NUMBER_MOST 1000000u

enum escape_kind escape_kind_of(char byte)
{
    return byte && strchr("[]P_^X", byte) ? (enum escape_kind)byte : ESCAPE_PLAIN;
}

bool escape_kind_is_string(enum escape_kind kind)
{
    return kind != ESCAPE_PLAIN && kind != ESCAPE_CONTROL;
}

static void read_string(const char *bytes, size_t length, struct escape_sequence *out)
{
    bool has_bell = length > 2 && bytes[length - 1] == BELL;
    bool has_end = length > 3 && (memcmp(bytes + length - 2, "\x1b\\", 2) == 0 ||
                                  memcmp(bytes + length - 2, "\xc2\x9c", 2) == 0);

    out->text = bytes + 2;
    out->length = length - 2 - (has_end ? 2 : has_bell ? 1 : 0);
}

static void read_control(const char *bytes, size_t length, struct escape_sequence *out)
{
    size_t from = 2, to = length - 1;

    out->final = length > 2 ? bytes[to] : '\0';
    if (from < to && bytes[from] >= '<' && bytes[from] <= '?')
        out->prefix = bytes[from++];
    if (from < to && bytes[to - 1] >= ' ' && bytes[to - 1] <= '/')
        out->intermediate = bytes[--to];
    out->text = bytes + from;
    out->length = from < to ? to - from : 0;
}

void escape_sequence_read(const char *bytes, size_t length, struct escape_sequence *out)
{
    char second = bytes[1];

    if ((unsigned char)bytes[0] == C1_LEAD)
        second = (char)((unsigned char)second - C1_TO_FINAL);
    *out = (struct escape_sequence){.kind = escape_kind_of(second), .text = bytes + length};
    if (out->kind == ESCAPE_CONTROL) {
        read_control(bytes, length, out);
    } else if (escape_kind_is_string(out->kind)) {
        read_string(bytes, length, out);
    } else {
        out->final = length > 2 ? bytes[length - 1] : second;
        out->intermediate = length > 2 ? bytes[length - 2] : '\0';
    }
}

size_t escape_sequence_numbers(const struct escape_sequence *sequence,
                               unsigned numbers[ESCAPE_NUMBERS])
{
    size_t count = 1;
    bool is_detail = false;

    numbers[0] = 0;
    for (size_t i = 0; i < sequence->length; i++) {
        char byte = sequence->text[i];
        if (byte == ';' && count == ESCAPE_NUMBERS)
            break;
        if (byte == ';') {
            numbers[count++] = 0;
            is_detail = false;
        } else if (byte == ':') {
            is_detail = true;
        } else if (byte >= '0' && byte <= '9' && !is_detail && numbers[count - 1] < NUMBER_MOST) {
            numbers[count - 1] = numbers[count - 1] * 10 + (unsigned)(byte - '0');
        }
    }
    return count;
}

// ---- queries ----

static const struct {
    char prefix, intermediate, final;
} control_queries[] = {
    {0, 0, 'c'},                    // DA1: what it is
    {'>', 0, 'c'},                  // DA2
    {'=', 0, 'c'},                  // DA3
    {0, 0, 'n'},                    // DSR: 5 how it is, 6 where the cursor is
    {'?', 0, 'n'},                  // DSR of DEC
    {0, '$', 'p'},                  // DECRQM: whether a mode is on
    {'?', '$', 'p'}, {'>', 0, 'q'}, // XTVERSION
    {0, 0, 'x'},                    // DECREQTPARM
    {'?', 0, 'u'},                  // which keys kitty's protocol reports
    {'?', 0, 'm'},                  // XTQMODKEYS
    {'?', 0, 'S'},                  // XTSMGRAPHICS
    {0, '#', 'R'},                  // XTREPORTCOLORS
    {0, '&', 'u'},                  // DECRQUPSS
    {0, '$', 'u'},                  // DECRQTSR
    {0, '$', 'w'},                  // DECRQPSR
    {0, '*', 'y'},                  // DECRQCRA
    {0, '"', 'v'},                  // DECRQDE
    {0, '\'', '|'},                 // DECRQLP
};

/* Of a window: its state, place, sizes and titles. The others change it. */
static bool is_window_query(const struct escape_sequence *sequence)
{
    static const unsigned reports[] = {11, 13, 14, 15, 16, 18, 19, 20, 21};
    unsigned numbers[ESCAPE_NUMBERS];

    (void)escape_sequence_numbers(sequence, numbers);
    for (size_t i = 0; i < ARRAY_SIZE(reports); i++) {
        if (numbers[0] == reports[i])
            return true;
    }
    return false;
}

static bool is_control_query(const struct escape_sequence *sequence)
{
    for (size_t i = 0; i < ARRAY_SIZE(control_queries); i++) {
        if (control_queries[i].prefix == sequence->prefix &&
            control_queries[i].intermediate == sequence->intermediate &&
            control_queries[i].final == sequence->final)
            return true;
    }
    return !sequence->prefix && !sequence->intermediate && sequence->final == 't' &&
           is_window_query(sequence);
}

/* Colours, the font and the clipboard are asked for with a '?' in the place of a value. A title may be one. */
static bool is_system_query(const struct escape_sequence *sequence)
{
    static const unsigned with_values[] = {4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 50, 52};
    const char *end = sequence->text + sequence->length;
    unsigned numbers[ESCAPE_NUMBERS];
    bool has_value = false, is_asked = false;

    (void)escape_sequence_numbers(sequence, numbers);
    for (size_t i = 0; i < ARRAY_SIZE(with_values); i++)
        has_value |= numbers[0] == with_values[i];
    for (const char *at = sequence->text; at + 1 < end; at++)
        is_asked |= at[0] == ';' && at[1] == '?' && (at + 2 == end || at[2] == ';');
    return has_value && is_asked;
}

/* XTGETTCAP and DECRQSS, behind numbers that do not matter. */
static bool is_device_query(const struct escape_sequence *sequence)
{
    size_t at = 0;

    while (at < sequence->length && strchr("0123456789;", sequence->text[at]))
        at++;
    return sequence->length - at >= 2 &&
           (memcmp(sequence->text + at, "+q", 2) == 0 || memcmp(sequence->text + at, "$q", 2) == 0);
}

/* Kitty's images: whether they are understood. */
static bool is_program_query(const struct escape_sequence *sequence)
{
    const char *end = memchr(sequence->text, ';', sequence->length);
    size_t length = end ? (size_t)(end - sequence->text) : sequence->length;

    return length > 0 && sequence->text[0] == 'G' && memmem(sequence->text, length, "a=q", 3);
}

bool escape_sequence_is_query(const struct escape_sequence *sequence)
{
    switch (sequence->kind) {
    case ESCAPE_CONTROL:
        return is_control_query(sequence);
    case ESCAPE_SYSTEM:
        return is_system_query(sequence);
    case ESCAPE_DEVICE:
        return is_device_query(sequence);
    case ESCAPE_PROGRAM:
        return is_program_query(sequence);
    case ESCAPE_PLAIN:
        return sequence->final == 'Z' && !sequence->intermediate; // DECID
    default:
        return false;
    }
}
