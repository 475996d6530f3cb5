/* SPDX-License-Identifier: Apache-2.0 */
/* What programs have made of a terminal; see screen_modes.h. */
#include "cli/screen_modes.h"

#include "base/auto.h"

#define PUSHED_MOST 32 // terminals keep fewer

/* In the order they are undone in: the main screen last, so that what is said next stands there. */
static const struct {
    unsigned number;
    bool is_usual;
} private_modes[] = {
    {1, false},    // application cursor keys
    {5, false},    // reverse video
    {6, false},    // origin
    {7, true},     // wraps long lines
    {25, true},    // shows the cursor
    {9, false},    // the mouse: X10's clicks
    {1000, false}, // clicks
    {1002, false}, // and drags
    {1003, false}, // and moves
    {1004, false}, // focus
    {1005, false}, // the mouse in UTF-8
    {1006, false}, // in SGR's way
    {1015, false}, // in urxvt's
    {1016, false}, // in pixels
    {2004, false}, // pastes are bracketed
    {2026, false}, // draws nothing until it is over
    {2031, false}, // tells when colours are chosen
    {2048, false}, // tells its size
    {69, false},   // margins left and right
    {47, false},   // the alternate screen
    {1047, false}, {1049, false},
};
#define ALTERNATE_SCREENS 3 // at the end of them

/* From and to: numbers that begin a style; `end`: the one that ends it. */
static const struct {
    unsigned from, to, end;
} styles[] = {
    {1, 2, 22},   {3, 3, 23},     {4, 4, 24},   {21, 21, 24}, {5, 6, 25},
    {7, 7, 27},   {8, 8, 28},     {9, 9, 29},   {30, 38, 39}, {90, 97, 39},
    {40, 48, 49}, {100, 107, 49}, {53, 53, 55}, {58, 58, 59},
};

static void take_private(struct screen_modes *modes, const struct escape_sequence *sequence)
{
    unsigned numbers[ESCAPE_NUMBERS];
    size_t count = escape_sequence_numbers(sequence, numbers);

    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < ARRAY_SIZE(private_modes); i++) {
            if (private_modes[i].number != numbers[n])
                continue;
            if ((sequence->final == 'h') != private_modes[i].is_usual)
                modes->changed |= 1u << i;
            else
                modes->changed &= ~(1u << i);
        }
    }
}

static void take_style(struct screen_modes *modes, unsigned number)
{
    if (number == 0)
        modes->styles = 0;
    for (size_t i = 0; i < ARRAY_SIZE(styles); i++) {
        if (number >= styles[i].from && number <= styles[i].to)
            modes->styles |= UINT64_C(1) << styles[i].end;
        else if (number == styles[i].end)
            modes->styles &= ~(UINT64_C(1) << styles[i].end);
    }
}

static void take_styles(struct screen_modes *modes, const struct escape_sequence *sequence)
{
    unsigned numbers[ESCAPE_NUMBERS];
    size_t count = escape_sequence_numbers(sequence, numbers);

    for (size_t i = 0; i < count; i++) {
        take_style(modes, numbers[i]);
        bool is_colour = numbers[i] == 38 || numbers[i] == 48 || numbers[i] == 58;
        if (is_colour && i + 1 < count && (numbers[i + 1] == 5 || numbers[i + 1] == 2))
            i += numbers[i + 1] == 5 ? 2 : 4; // an index, or red, green and blue
    }
}

static bool is_alternate(const struct screen_modes *modes)
{
    return modes->changed >> (ARRAY_SIZE(private_modes) - ALTERNATE_SCREENS);
}

/* Kitty's keyboard: each screen has a stack of its own. */
static void take_keys(struct screen_modes *modes, const struct escape_sequence *sequence)
{
    unsigned numbers[ESCAPE_NUMBERS], *n_pushed = &modes->n_pushed[is_alternate(modes)];

    (void)escape_sequence_numbers(sequence, numbers);
    unsigned popped = numbers[0] ? numbers[0] : 1;
    if (sequence->prefix == '=' && !is_alternate(modes))
        modes->has_keys = numbers[0] != 0;
    if (sequence->prefix == '=')
        return;
    if (sequence->prefix == '>')
        *n_pushed += *n_pushed < PUSHED_MOST;
    else
        *n_pushed -= popped < *n_pushed ? popped : *n_pushed;
}

static void take_control(struct screen_modes *modes, const struct escape_sequence *sequence)
{
    char prefix = sequence->prefix, final = sequence->final;
    unsigned numbers[ESCAPE_NUMBERS];

    (void)escape_sequence_numbers(sequence, numbers);
    if (sequence->intermediate == ' ' && final == 'q' && !prefix)
        modes->has_cursor_shape = numbers[0] != 0;
    if (sequence->intermediate)
        return;
    if (prefix == '?' && (final == 'h' || final == 'l'))
        take_private(modes, sequence);
    else if (!prefix && final == 'm')
        take_styles(modes, sequence);
    else if (prefix == '>' && final == 'm' && numbers[0] == 4)
        modes->has_modified_keys = memchr(sequence->text, ';', sequence->length) &&
                                   sequence->text[sequence->length - 1] > '0';
    else if ((prefix == '>' || prefix == '<' || prefix == '=') && final == 'u')
        take_keys(modes, sequence);
    else if (!prefix && final == 'r')
        modes->has_margins = sequence->length > 0;
    else if (!prefix && (final == 'h' || final == 'l') && numbers[0] == 4)
        modes->inserts = final == 'h';
}

void screen_modes_take(struct screen_modes *modes, const struct escape_sequence *sequence)
{
    if (sequence->kind == ESCAPE_CONTROL)
        take_control(modes, sequence);
    if (sequence->kind == ESCAPE_PLAIN && sequence->intermediate == '(')
        modes->has_charset = sequence->final != 'B';
    if (sequence->kind != ESCAPE_PLAIN || sequence->intermediate)
        return;
    if (sequence->final == '=' || sequence->final == '>')
        modes->has_keypad = sequence->final == '=';
    else if (sequence->final == 'c') // a reset of all
        *modes = (struct screen_modes){0};
}

static void undo_pushes(unsigned count, struct buffer *to)
{
    struct error ignored; // it has no maximum

    if (count)
        (void)buffer_addf(to, &ignored, "\033[<%uu", count);
}

void screen_modes_undo(struct screen_modes *modes, struct buffer *to)
{
    bool is_there = is_alternate(modes);
    struct error ignored; // it has no maximum

    if (modes->has_modified_keys)
        (void)buffer_add_text(to, "\033[>4m", &ignored);
    undo_pushes(modes->n_pushed[is_there], to);
    if (modes->has_keypad)
        (void)buffer_add_text(to, "\033>", &ignored);
    if (modes->has_cursor_shape)
        (void)buffer_add_text(to, "\033[0 q", &ignored);
    if (modes->has_charset)
        (void)buffer_add_text(to, "\033(B", &ignored);
    if (modes->inserts)
        (void)buffer_add_text(to, "\033[4l", &ignored);
    if (modes->styles)
        (void)buffer_add_text(to, "\033[m", &ignored);
    for (size_t i = 0; i < ARRAY_SIZE(private_modes); i++) {
        if (modes->changed & 1u << i)
            (void)buffer_addf(to, &ignored, "\033[?%u%c", private_modes[i].number,
                              private_modes[i].is_usual ? 'h' : 'l');
    }
    if (is_there)
        undo_pushes(modes->n_pushed[0], to);
    if (modes->has_keys)
        (void)buffer_add_text(to, "\033[=0u", &ignored);
    if (modes->has_margins) // which moves the cursor
        (void)buffer_add_text(to, "\0337\033[r\0338", &ignored);
    *modes = (struct screen_modes){0};
}
