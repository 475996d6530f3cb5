/* SPDX-License-Identifier: Apache-2.0 */
/* The scalars of YAML: plain, quoted, literal and folded text, and what a plain one means. */
#include "base/mem.h"
#include "base/utf8.h"
#include "data/yaml_reader.h"

#include <string.h>

// ---- characters ----

static uint32_t code_of(const char *at, size_t length)
{
    uint32_t code = (unsigned char)at[0] & (length == 1 ? 0x7fU : 0x7fU >> length);

    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)at[i] & 0x3f);
    return code;
}

static bool is_allowed(uint32_t code, unsigned char next)
{
    if (code == '\r')
        return next == '\n';
    if (code < 0x20)
        return code == '\n' || code == '\t';
    return code != 0x7f && (code < 0x80 || code >= 0xa0) && code != 0xfeff && code != 0xfffe &&
           code != 0xffff;
}

int yaml_check_text(struct yaml *y, const char *text, size_t length)
{
    struct yaml_mark mark = {.at = text, .line_start = text, .line = 1};

    while (length > 0) {
        size_t step = utf8_length(mark.at, length);
        uint32_t code = code_of(mark.at, step);
        if (step == 0)
            return yaml_fail(y, mark, "not UTF-8 text; save the file as UTF-8");
        if (!is_allowed(code, length > 1 ? (unsigned char)mark.at[1] : 0))
            return yaml_fail(y, mark,
                             "the character U+%04X may not stand here; write it as an escape in "
                             "double quotes",
                             code);
        mark.at += step;
        length -= step;
        if (code == '\n') {
            mark.line_start = mark.at;
            mark.line++;
        }
    }
    return 0;
}

// ---- the scratch text ----

// The scratch has no maximum of its own: the whole text was bounded before.
static void add(struct yaml *y, const char *data, size_t length)
{
    (void)buffer_add(&y->scratch, data, length, y->err);
}

static void add_repeated(struct yaml *y, char c, size_t count)
{
    while (count-- > 0)
        add(y, &c, 1);
}

static void start_scratch(struct yaml *y)
{
    y->scratch.length = 0;
    add(y, "", 0);
}

const char *yaml_keep_scratch(struct yaml *y, size_t *length)
{
    char *copy = value_alloc(y->document, y->scratch.length + 1);

    memcpy(copy, y->scratch.data, y->scratch.length);
    *length = y->scratch.length;
    return copy;
}

// Line breaks in plain and quoted text: one is a space, n more are n line breaks.
static void add_fold(struct yaml *y, size_t breaks)
{
    if (breaks == 1)
        add(y, " ", 1);
    else
        add_repeated(y, '\n', breaks - 1);
}

// Over the end of this line and blank ones, to the first text after them; how many breaks that
// were.
static size_t skip_breaks(struct yaml *y)
{
    size_t breaks = 0;

    yaml_skip_space(y);
    while (*y->pos.at && yaml_is_break(*y->pos.at)) {
        yaml_next_line(y);
        breaks++;
        yaml_skip_space(y);
    }
    return breaks;
}

static void trim_scratch(struct yaml *y, size_t keep)
{
    while (y->scratch.length > keep && yaml_is_space(y->scratch.data[y->scratch.length - 1]))
        y->scratch.length--;
    y->scratch.data[y->scratch.length] = '\0';
}

// ---- quoted ----

static int read_hex(struct yaml *y, size_t digits, uint32_t *out)
{
    uint32_t code = 0;

    for (size_t i = 0; i < digits; i++, y->pos.at++) {
        char c = *y->pos.at;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return yaml_fail(y, y->pos, "this escape needs %zu hexadecimal digits", digits);
        code = code << 4 | (uint32_t)digit;
    }
    *out = code;
    return 0;
}

// \x41, \u263a, \U0001f600; a pair of \u surrogates, as JSON writes them, is one character.
static int read_code_escape(struct yaml *y, size_t digits, struct yaml_mark mark)
{
    uint32_t code = 0, low = 0;
    char bytes[UTF8_MAX];

    if (read_hex(y, digits, &code) < 0)
        return -1;
    if (code >= 0xd800 && code <= 0xdbff && y->pos.at[0] == '\\' && y->pos.at[1] == 'u') {
        y->pos.at += 2;
        if (read_hex(y, 4, &low) < 0)
            return -1;
        if (low >= 0xdc00 && low <= 0xdfff)
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return yaml_fail(y, mark, "this escape is not a character");
    add(y, bytes, utf8_encode(code, bytes));
    return 0;
}

static int read_escape(struct yaml *y)
{
    static const struct {
        char letter;
        const char *text;
    } escapes[] = {
        {'a', "\a"},           {'b', "\b"},       {'t', "\t"},       {'\t', "\t"},
        {'n', "\n"},           {'v', "\v"},       {'f', "\f"},       {'r', "\r"},
        {'e', "\33"},          {' ', " "},        {'"', "\""},       {'/', "/"},
        {'\\', "\\"},          {'N', "\xc2\x85"}, {'_', "\xc2\xa0"}, {'L', "\xe2\x80\xa8"},
        {'P', "\xe2\x80\xa9"},
    };
    struct yaml_mark mark = y->pos;
    char letter = y->pos.at[1];

    y->pos.at += letter ? 2 : 1;
    if (letter == 'x' || letter == 'u' || letter == 'U')
        return read_code_escape(y, letter == 'x' ? 2 : letter == 'u' ? 4 : 8, mark);
    if (letter == '0') {
        add(y, "", 1);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(escapes); i++)
        if (escapes[i].letter == letter) {
            add(y, escapes[i].text, strlen(escapes[i].text));
            return 0;
        }
    return yaml_fail(y, mark, "unknown escape; write '\\\\' for a backslash, or use single quotes");
}

// A break inside quotes; `keep` is how much of the scratch must not be trimmed.
static int fold_quoted(struct yaml *y, size_t keep, bool is_escaped)
{
    if (!is_escaped)
        trim_scratch(y, keep);
    size_t breaks = skip_breaks(y);
    if (yaml_at_marker(y))
        return yaml_fail(y, y->pos, "a document marker inside quotes; close the quotes first");
    if (!is_escaped)
        add_fold(y, breaks);
    else
        add_repeated(y, '\n', breaks - 1);
    return 0;
}

int yaml_read_quoted(struct yaml *y)
{
    struct yaml_mark start = y->pos;
    char quote = *y->pos.at++;
    size_t keep = 0;

    start_scratch(y);
    for (;;) {
        char c = *y->pos.at, next = c ? y->pos.at[1] : '\0';

        if (c == '\0')
            return yaml_fail(y, start, "this quote is never closed");
        if (c == quote && quote == '\'' && next == '\'') {
            add(y, "'", 1);
            y->pos.at += 2;
        } else if (c == quote) {
            y->pos.at++;
            return 0;
        } else if (quote == '"' && c == '\\') {
            bool at_end = next && yaml_is_break(next);
            y->pos.at += at_end;
            if ((at_end ? fold_quoted(y, keep, true) : read_escape(y)) < 0)
                return -1;
            keep = y->scratch.length;
        } else if (yaml_is_break(c)) {
            if (fold_quoted(y, keep, false) < 0)
                return -1;
            keep = y->scratch.length;
        } else {
            add(y, y->pos.at++, 1);
        }
    }
}

// ---- plain ----

static bool ends_plain(const char *at, bool in_flow, bool after_space)
{
    char next = at[0] ? at[1] : '\0';

    if (yaml_is_break(at[0]) || (at[0] == '#' && after_space))
        return true;
    if (at[0] == ':' && (yaml_is_blank(next) || (in_flow && strchr(",[]{}", next))))
        return true;
    return in_flow && strchr(",[]{}", at[0]);
}

static void read_plain_line(struct yaml *y, bool in_flow)
{
    const char *start = y->pos.at, *stop = start;

    while (!ends_plain(y->pos.at, in_flow, y->pos.at > start && yaml_is_space(y->pos.at[-1]))) {
        if (!yaml_is_space(*y->pos.at))
            stop = y->pos.at + 1;
        y->pos.at++;
    }
    add(y, start, (size_t)(stop - start));
}

int yaml_read_plain(struct yaml *y, bool in_flow, bool one_line, int parent_indent)
{
    start_scratch(y);
    for (;;) {
        read_plain_line(y, in_flow);
        if (one_line || *y->pos.at == '\0' || !yaml_is_break(*y->pos.at))
            return 0;
        struct yaml_mark before = y->pos;
        size_t breaks = skip_breaks(y);
        bool goes_on = (in_flow || yaml_column(y) > parent_indent) && !yaml_at_marker(y) &&
                       !ends_plain(y->pos.at, in_flow, true);
        if (!goes_on) {
            y->pos = before;
            return 0;
        }
        if (!in_flow && *y->pos.at == '-' && yaml_is_blank(y->pos.at[1]))
            return yaml_fail(y, y->pos, "a '- ' item under a value; take one of them away");
        if (memchr(y->pos.line_start, '\t', (size_t)yaml_column(y)))
            return yaml_fail(y, y->pos, "a tab indents this line; use spaces");
        add_fold(y, breaks);
    }
}

// ---- literal and folded ----

struct block_style {
    bool is_folded;
    char chomp; // '-' no last break, '+' all of them, else one
    int indent; // column of the text; -1: that of its first line
};

static int read_block_header(struct yaml *y, int parent_indent, struct block_style *style)
{
    *style = (struct block_style){.is_folded = *y->pos.at++ == '>', .indent = -1};
    for (; !yaml_is_blank(*y->pos.at); y->pos.at++) {
        char c = *y->pos.at;
        if ((c == '-' || c == '+') && !style->chomp)
            style->chomp = c;
        else if (c >= '1' && c <= '9' && style->indent < 0)
            style->indent = parent_indent + (c - '0');
        else
            return yaml_fail(y, y->pos, "the text of '|' and '>' starts on the next line");
    }
    yaml_skip_space(y);
    if (*y->pos.at == '#')
        while (!yaml_is_break(*y->pos.at))
            y->pos.at++;
    if (!yaml_is_break(*y->pos.at))
        return yaml_fail(y, y->pos, "the text of '|' and '>' starts on the next line");
    yaml_next_line(y);
    return 0;
}

// The indentation of the first line with text; blank ones above it must not be longer.
static int find_block_indent(struct yaml *y, int parent_indent, int *out)
{
    struct yaml_mark before = y->pos;
    int longest = 0;

    for (;;) {
        while (*y->pos.at == ' ')
            y->pos.at++;
        if (*y->pos.at == '\0' || !yaml_is_break(*y->pos.at))
            break;
        if (yaml_column(y) > longest)
            longest = yaml_column(y);
        yaml_next_line(y);
    }
    int column = yaml_column(y);
    if (*y->pos.at == '\0' && column > longest)
        longest = column;
    if (*y->pos.at == '\t' && column <= parent_indent)
        return yaml_fail(y, y->pos, "a tab indents this line; use spaces");
    bool is_empty = *y->pos.at == '\0' || column <= parent_indent || yaml_at_marker(y);
    if (!is_empty && longest > column)
        return yaml_fail(y, y->pos, "a blank line above is indented more than this first line");
    *out = is_empty ? (longest > parent_indent ? longest : parent_indent + 1) : column;
    y->pos = before;
    return 0;
}

// Moves to the text of the next line of the block. False at the block's end, with the position
// before that line.
static bool next_block_line(struct yaml *y, int indent, size_t *blank)
{
    for (*blank = 0;; ++*blank) {
        struct yaml_mark before = y->pos;
        while (*y->pos.at == ' ' && yaml_column(y) < indent)
            y->pos.at++;
        if (*y->pos.at == '\0')
            return false;
        if (yaml_is_break(*y->pos.at)) {
            yaml_next_line(y);
            continue;
        }
        if (yaml_column(y) < indent || yaml_at_marker(y)) {
            y->pos = before;
            return false;
        }
        return true;
    }
}

static void add_block_breaks(struct yaml *y, bool is_folded, bool is_first, size_t blank)
{
    if (is_first)
        add_repeated(y, '\n', blank);
    else if (is_folded)
        add_fold(y, blank + 1);
    else
        add_repeated(y, '\n', blank + 1);
}

int yaml_read_block(struct yaml *y, int parent_indent)
{
    struct block_style style;
    bool is_first = true, was_indented = false, has_break = false;
    size_t blank = 0;

    if (parent_indent < 0)
        parent_indent = 0; // at the left edge it would be told apart from comments by nothing
    if (read_block_header(y, parent_indent, &style) < 0)
        return -1;
    start_scratch(y);
    if (style.indent < 0 && find_block_indent(y, parent_indent, &style.indent) < 0)
        return -1;
    while (next_block_line(y, style.indent, &blank)) {
        bool is_indented = yaml_is_space(*y->pos.at);
        const char *start = y->pos.at;

        add_block_breaks(y, style.is_folded && !is_indented && !was_indented, is_first, blank);
        while (!yaml_is_break(*y->pos.at))
            y->pos.at++;
        add(y, start, (size_t)(y->pos.at - start));
        has_break = *y->pos.at != '\0';
        yaml_next_line(y);
        is_first = false;
        was_indented = is_indented;
    }
    if (style.chomp == '+')
        add_repeated(y, '\n', blank + has_break);
    else if (style.chomp == 0 && has_break)
        add(y, "\n", 1);
    return 0;
}

// ---- meaning ----

static const char *skip_digits(const char *at)
{
    while (*at >= '0' && *at <= '9')
        at++;
    return at;
}

// As JSON writes numbers, so that every reader agrees on the value.
static bool is_number(const char *text)
{
    const char *at = text + (*text == '-'), *digits = at;

    at = skip_digits(at);
    if (at == digits || (*digits == '0' && at > digits + 1))
        return false;
    if (*at == '.') {
        digits = ++at;
        at = skip_digits(at);
        if (at == digits)
            return false;
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        digits = at;
        at = skip_digits(at);
        if (at == digits)
            return false;
    }
    return *at == '\0';
}

// A number to some readers of YAML and something else to others: 0777, 0x1f, 0o17, +1, .5, 5.,
// 1_000, .inf, .nan
static bool is_unclear_number(const char *text)
{
    const char *at = text + (*text == '-' || *text == '+');

    if (strcasecmp(at, ".inf") == 0 || strcasecmp(text, ".nan") == 0)
        return true;
    if (at[0] == '0' && strchr("xob", at[1]) && at[1])
        return at[2] && at[2 + strspn(at + 2, "0123456789abcdefABCDEF_")] == '\0';
    const char *first = at + (*at == '.');
    if (*first < '0' || *first > '9')
        return false;
    at += strspn(at, "0123456789_");
    at += *at == '.';
    at = skip_digits(at);
    if ((*at == 'e' || *at == 'E') && at[1])
        at = skip_digits(at + (at[1] == '+' || at[1] == '-' ? 2 : 1));
    return *at == '\0';
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static int add_text(struct yaml *y, const struct yaml_slot *slot, enum value_kind kind,
                    struct yaml_mark mark)
{
    struct data_value *value;

    if (yaml_add(y, slot, kind, mark, &value) < 0)
        return -1;
    value->text = yaml_keep_scratch(y, &value->length);
    return 0;
}

int yaml_add_string(struct yaml *y, const struct yaml_slot *slot, struct yaml_mark mark)
{
    return add_text(y, slot, VALUE_STRING, mark);
}

int yaml_add_plain(struct yaml *y, const struct yaml_slot *slot, struct yaml_mark mark)
{
    static const char *const nulls[] = {"null", "Null", "NULL", "~", NULL};
    static const char *const truths[] = {"true", "True", "TRUE", NULL};
    static const char *const lies[] = {"false", "False", "FALSE", NULL};
    const char *text = y->scratch.data;
    struct data_value *value;

    if (is_one_of(text, nulls))
        return yaml_add(y, slot, VALUE_NULL, mark, &value);
    if (is_one_of(text, truths) || is_one_of(text, lies)) {
        if (yaml_add(y, slot, VALUE_BOOL, mark, &value) < 0)
            return -1;
        value->truth = is_one_of(text, truths);
        return 0;
    }
    if (is_number(text))
        return add_text(y, slot, VALUE_NUMBER, mark);
    if (is_unclear_number(text))
        return yaml_fail(y, mark,
                         "'%.40s' is read differently by different programs; write a plain decimal "
                         "number, or put it in quotes",
                         text);
    return add_text(y, slot, VALUE_STRING, mark);
}
