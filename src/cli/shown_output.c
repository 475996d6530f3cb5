/* SPDX-License-Identifier: Apache-2.0 */
/* Output on its way to the caller's terminal; see shown_output.h. */
#include "cli/shown_output.h"

#define ENQUIRY 0x05 // a terminal may answer it with a word of its owner's
#define BELL 0x07
#define CANCEL 0x18 // ends a sequence, as SUBSTITUTE does
#define SUBSTITUTE 0x1a
#define ESCAPE 0x1b
#define C1_LEAD 0xc2
#define C1_END 0x9c

enum state {
    STATE_TEXT,
    STATE_LEAD,          // of a C1 control in UTF-8, or of another character
    STATE_ESCAPE,        // behind ESC
    STATE_CONTROL,       // behind ESC[
    STATE_STRING,        // behind ESC] and the like
    STATE_STRING_ESCAPE, // behind an ESC there, which is not kept yet
};

static void put(const struct shown_output *shown, const char *bytes, size_t length,
                struct buffer *to)
{
    struct error ignored; // it has no maximum

    if (shown->is_again)
        (void)buffer_add(to, bytes, length, &ignored);
}

static void let_through(struct shown_output *shown, struct buffer *to)
{
    if (shown->is_held)
        put(shown, shown->sequence, shown->length, to);
    shown->is_held = false;
}

static void keep(struct shown_output *shown, unsigned char byte, struct buffer *to)
{
    if (shown->length == SHOWN_SEQUENCE) {
        let_through(shown, to);
        shown->is_long = true;
    } else {
        shown->sequence[shown->length++] = (char)byte;
    }
    if (!shown->is_held)
        put(shown, (const char *)&byte, 1, to);
}

static void begin(struct shown_output *shown, unsigned char byte, struct buffer *to)
{
    shown->state = byte == ESCAPE ? STATE_ESCAPE : STATE_LEAD;
    shown->kind = ESCAPE_PLAIN;
    shown->is_held = shown->is_again;
    shown->is_long = false;
    shown->length = 0;
    keep(shown, byte, to);
}

static bool is_held_query(const struct shown_output *shown)
{
    struct escape_sequence sequence;

    if (!shown->is_held || shown->length < 2)
        return false;
    escape_sequence_read(shown->sequence, shown->length, &sequence);
    return escape_sequence_is_query(&sequence);
}

static void end_sequence(struct shown_output *shown, struct buffer *to)
{
    static const char cancel = CANCEL;
    struct escape_sequence sequence;

    if (is_held_query(shown)) {
        if (shown->is_cut) // else what follows would be taken for the rest of that
            put(shown, &cancel, 1, to);
    } else {
        let_through(shown, to);
        escape_sequence_read(shown->sequence, shown->length, &sequence);
        if (!shown->is_long)
            screen_modes_take(&shown->modes, &sequence);
    }
    shown->is_cut = shown->is_held = false;
    shown->state = STATE_TEXT;
}

/* An ESC ends it before it was whole. Some terminals do what a string says all the same. */
static void cut_sequence(struct shown_output *shown, struct buffer *to)
{
    if (!escape_kind_is_string(shown->kind) || !is_held_query(shown)) {
        let_through(shown, to);
        shown->is_cut = true;
    }
    begin(shown, ESCAPE, to);
}

/* `byte` as it stands behind ESC. */
static void introduce(struct shown_output *shown, char byte, struct buffer *to)
{
    shown->kind = escape_kind_of(byte);
    if (shown->kind == ESCAPE_PLAIN)
        end_sequence(shown, to);
    else
        shown->state = shown->kind == ESCAPE_CONTROL ? STATE_CONTROL : STATE_STRING;
}

static void take_text(struct shown_output *shown, unsigned char byte, struct buffer *to)
{
    if (byte == ESCAPE || byte == C1_LEAD) {
        begin(shown, byte, to);
        return;
    }
    put(shown, (const char *)&byte, 1, to);
    shown->is_cut = false;
}

static void take_lead(struct shown_output *shown, unsigned char byte, struct buffer *to)
{
    if (byte >= 0x80 && byte <= 0x9f) {
        keep(shown, byte, to);
        introduce(shown, (char)(byte - 0x40), to);
        return;
    }
    let_through(shown, to);
    shown->state = STATE_TEXT;
    shown->is_cut = true;
    take_text(shown, byte, to);
}

static void take_escape(struct shown_output *shown, unsigned char byte, struct buffer *to)
{
    keep(shown, byte, to);
    if (byte == CANCEL || byte == SUBSTITUTE)
        end_sequence(shown, to);
    else if (byte >= '0' && shown->length == 2)
        introduce(shown, (char)byte, to);
    else if (byte >= '0')
        end_sequence(shown, to);
}

static void take_control(struct shown_output *shown, unsigned char byte, struct buffer *to)
{
    keep(shown, byte, to);
    if (byte == CANCEL || byte == SUBSTITUTE || (byte >= '@' && byte <= '~'))
        end_sequence(shown, to);
}

static void take_string(struct shown_output *shown, unsigned char byte, struct buffer *to)
{
    bool is_end = byte == C1_END && (unsigned char)shown->before == C1_LEAD;

    if (byte == ESCAPE) {
        shown->state = STATE_STRING_ESCAPE;
        return;
    }
    keep(shown, byte, to);
    if (is_end || byte == CANCEL || byte == SUBSTITUTE ||
        (byte == BELL && shown->kind == ESCAPE_SYSTEM))
        end_sequence(shown, to);
}

static void take_string_escape(struct shown_output *shown, unsigned char byte, struct buffer *to)
{
    if (byte == '\\') {
        keep(shown, ESCAPE, to);
        keep(shown, byte, to);
        end_sequence(shown, to);
        return;
    }
    cut_sequence(shown, to);
    if (byte == ESCAPE)
        cut_sequence(shown, to);
    else
        take_escape(shown, byte, to);
}

static void take(struct shown_output *shown, unsigned char byte, struct buffer *to)
{
    static void (*const takers[])(struct shown_output *, unsigned char, struct buffer *) = {
        [STATE_TEXT] = take_text,     [STATE_LEAD] = take_lead,
        [STATE_ESCAPE] = take_escape, [STATE_CONTROL] = take_control,
        [STATE_STRING] = take_string, [STATE_STRING_ESCAPE] = take_string_escape,
    };

    if (byte == ENQUIRY && shown->is_again)
        return;
    if (byte == ESCAPE && (shown->state == STATE_ESCAPE || shown->state == STATE_CONTROL))
        cut_sequence(shown, to);
    else
        takers[shown->state](shown, byte, to);
    shown->before = (char)byte;
}

/* What is held will not be known for what it is. */
static void flush(struct shown_output *shown, struct buffer *to)
{
    static const char escape = ESCAPE;

    let_through(shown, to);
    if (shown->state == STATE_STRING_ESCAPE)
        put(shown, &escape, 1, to);
    shown->is_again = false;
}

void shown_output_again(struct shown_output *shown, const char *data, size_t length,
                        struct buffer *to)
{
    shown->is_again = true;
    for (size_t i = 0; i < length; i++)
        take(shown, (unsigned char)data[i], to);
}

void shown_output_live(struct shown_output *shown, const char *data, size_t length,
                       struct buffer *to)
{
    struct error ignored; // it has no maximum

    flush(shown, to);
    (void)buffer_add(to, data, length, &ignored);
    for (size_t i = 0; i < length; i++)
        take(shown, (unsigned char)data[i], to);
}

void shown_output_leave(struct shown_output *shown, struct buffer *to)
{
    static const char cancel = CANCEL;
    struct error ignored; // it has no maximum

    flush(shown, to);
    if (shown->state != STATE_TEXT && shown->state != STATE_LEAD)
        (void)buffer_add(to, &cancel, 1, &ignored);
    screen_modes_undo(&shown->modes, to);
    shown->state = STATE_TEXT;
}
