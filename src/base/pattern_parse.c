/* SPDX-License-Identifier: Apache-2.0 */
/* Reads patterns into programs; see pattern_impl.h. */
#include "base/pattern_impl.h"

#include <string.h>

#define MAX_NESTING 32
#define MAX_REPEAT 1000

struct parser {
    const char *start, *at;
    struct pattern_program *program;
    struct error *err;
    unsigned depth;
    bool ignores_case;
};

static int wrong(const struct parser *parser, const char *why)
{
    return error_set(parser->err, ERROR_INVALID, "the pattern is wrong at byte %zu: %s",
                     (size_t)(parser->at - parser->start) + 1, why);
}

// ---- making steps ----

static int emit(struct parser *parser, enum pattern_op op, long a, long b)
{
    struct pattern_program *program = parser->program;

    if (program->length == PATTERN_MAX_STEPS)
        return error_set(parser->err, ERROR_INVALID,
                         "the pattern is too large: it repeats too much");
    program->steps[program->length++] =
        (struct pattern_step){.op = (uint8_t)op, .a = (int16_t)a, .b = (int16_t)b};
    return 0;
}

/* Puts a step in front of those from `at` on. */
static int insert(struct parser *parser, size_t at, enum pattern_op op, long a, long b)
{
    struct pattern_program *program = parser->program;

    if (emit(parser, op, a, b) < 0)
        return -1;
    struct pattern_step step = program->steps[program->length - 1];
    memmove(program->steps + at + 1, program->steps + at, (program->length - 1 - at) * sizeof step);
    program->steps[at] = step;
    return 0;
}

static void byte_set_add(struct byte_set *set, unsigned first, unsigned last)
{
    for (unsigned byte = first; byte <= last; byte++)
        set->words[byte / 64] |= (uint64_t)1 << (byte % 64);
}

static void fold_case(struct byte_set *set)
{
    for (unsigned byte = 'a'; byte <= 'z'; byte++) {
        unsigned upper = byte - 'a' + 'A';
        if (byte_set_has(set, (uint8_t)byte) || byte_set_has(set, (uint8_t)upper)) {
            byte_set_add(set, byte, byte);
            byte_set_add(set, upper, upper);
        }
    }
}

static int emit_set(struct parser *parser, const struct byte_set *wanted)
{
    struct pattern_program *program = parser->program;
    struct byte_set set = *wanted;
    size_t i = 0;

    if (parser->ignores_case)
        fold_case(&set);
    while (i < program->n_sets && memcmp(&program->sets[i], &set, sizeof set) != 0)
        i++;
    if (i == PATTERN_MAX_SETS)
        return error_set(parser->err, ERROR_INVALID,
                         "the pattern is too large: it has too many different characters");
    program->sets[i] = set;
    if (i == program->n_sets)
        program->n_sets++;
    return emit(parser, OP_SET, (long)i, 0);
}

static int emit_range(struct parser *parser, unsigned first, unsigned last)
{
    struct byte_set set = {0};

    byte_set_add(&set, first, last);
    return emit_set(parser, &set);
}

/* A character of several bytes, the first of which is first to last; what follows stands at `end`. */
static int emit_long(struct parser *parser, unsigned first, unsigned last, int more)
{
    if (emit_range(parser, first, last) < 0)
        return -1;
    for (; more > 0; more--) {
        if (emit_range(parser, 0x80, 0xbf) < 0)
            return -1;
    }
    return 0;
}

/* One character of the set's ASCII part, or any other: of UTF-8, or a byte that begins none. */
static int emit_wide(struct parser *parser, const struct byte_set *set)
{
    struct byte_set narrow = {{set->words[0], set->words[1], 0, 0}};

    byte_set_add(&narrow, 0x80, 0xc1);
    byte_set_add(&narrow, 0xf5, 0xff);
    // Four ways; each of the first three ends in a jump behind the last.
    if (emit(parser, OP_SPLIT, 1, 3) < 0 || emit_set(parser, &narrow) < 0 ||
        emit(parser, OP_JUMP, 14, 0) < 0)
        return -1;
    if (emit(parser, OP_SPLIT, 1, 4) < 0 || emit_long(parser, 0xc2, 0xdf, 1) < 0 ||
        emit(parser, OP_JUMP, 10, 0) < 0)
        return -1;
    if (emit(parser, OP_SPLIT, 1, 5) < 0 || emit_long(parser, 0xe0, 0xef, 2) < 0 ||
        emit(parser, OP_JUMP, 5, 0) < 0)
        return -1;
    return emit_long(parser, 0xf0, 0xf4, 3);
}

// ---- repeating ----

static int star(struct parser *parser, size_t from)
{
    long length = (long)(parser->program->length - from);

    if (insert(parser, from, OP_SPLIT, 1, length + 2) < 0)
        return -1;
    return emit(parser, OP_JUMP, -(length + 1), 0);
}

static int copy_steps(struct parser *parser, const struct pattern_step *steps, size_t length)
{
    struct pattern_program *program = parser->program;

    if (length > PATTERN_MAX_STEPS - program->length)
        return error_set(parser->err, ERROR_INVALID,
                         "the pattern is too large: it repeats too much");
    memcpy(program->steps + program->length, steps, length * sizeof *steps);
    program->length += length;
    return 0;
}

/* The part from `from` on, `least` times and up to `most` (-1: any number). */
static int repeat(struct parser *parser, size_t from, long least, long most)
{
    struct pattern_step part[PATTERN_MAX_STEPS];
    size_t length = parser->program->length - from;

    memcpy(part, parser->program->steps + from, length * sizeof *part);
    parser->program->length = from;
    for (long i = 0; i < least; i++) {
        if (copy_steps(parser, part, length) < 0)
            return -1;
    }
    if (most < 0) {
        size_t at = parser->program->length;
        return copy_steps(parser, part, length) < 0 ? -1 : star(parser, at);
    }
    for (long left = most - least; left > 0; left--) {
        long behind = left * ((long)length + 1);
        if (behind > PATTERN_MAX_STEPS)
            behind = PATTERN_MAX_STEPS; // too large, as copying will tell
        if (emit(parser, OP_SPLIT, 1, behind) < 0 || copy_steps(parser, part, length) < 0)
            return -1;
    }
    return 0;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static int read_number(struct parser *parser, long *out)
{
    long value = 0;

    for (; is_digit(*parser->at); parser->at++) {
        value = value * 10 + (*parser->at - '0');
        if (value > MAX_REPEAT)
            return wrong(parser, "nothing is repeated more than 1000 times");
    }
    *out = value;
    return 0;
}

/* "{n}", "{n,}" or "{n,m}" */
static int read_counts(struct parser *parser, size_t from)
{
    long least = 0, most = -1;

    parser->at++;
    if (read_number(parser, &least) < 0)
        return -1;
    if (*parser->at != ',') {
        most = least;
    } else {
        parser->at++;
        if (is_digit(*parser->at) && read_number(parser, &most) < 0)
            return -1;
    }
    if (*parser->at != '}')
        return wrong(parser, "'}' is missing after '{'");
    if (most >= 0 && most < least)
        return wrong(parser, "the second number in '{}' is smaller than the first");
    parser->at++;
    return repeat(parser, from, least, most);
}

static bool is_counts(const char *at)
{
    return at[0] == '{' && is_digit(at[1]);
}

static int read_repeats(struct parser *parser, size_t from)
{
    for (;;) {
        char sign = *parser->at;
        if (is_counts(parser->at)) {
            if (read_counts(parser, from) < 0)
                return -1;
            continue;
        }
        if (sign == '\0' || !strchr("*+?", sign))
            return 0;
        parser->at++;
        if (sign == '*' && star(parser, from) < 0)
            return -1;
        if (sign == '+' && repeat(parser, from, 1, -1) < 0)
            return -1;
        long length = (long)(parser->program->length - from);
        if (sign == '?' && insert(parser, from, OP_SPLIT, 1, length + 1) < 0)
            return -1;
    }
}

// ---- characters ----

static const struct {
    const char *name;
    const char *ranges; // pairs of first and last
} classes[] = {
    {"alpha", "azAZ"},    {"digit", "09"},     {"alnum", "azAZ09"}, {"upper", "AZ"},
    {"lower", "az"},      {"space", "\t\r  "}, {"blank", "\t\t  "}, {"punct", "!/:@[`{~"},
    {"xdigit", "09afAF"}, {"print", " ~"},     {"graph", "!~"},     {"cntrl", "\1\037\177\177"},
};

static void add_ranges(struct byte_set *set, const char *ranges)
{
    for (; *ranges; ranges += 2)
        byte_set_add(set, (uint8_t)ranges[0], (uint8_t)ranges[1]);
}

/* "[:name:]" */
static int read_class(struct parser *parser, struct byte_set *set)
{
    const char *name = parser->at + 2, *end = strstr(name, ":]");

    for (size_t i = 0; end && i < sizeof classes / sizeof *classes; i++) {
        if (strlen(classes[i].name) == (size_t)(end - name) &&
            memcmp(classes[i].name, name, (size_t)(end - name)) == 0) {
            add_ranges(set, classes[i].ranges);
            parser->at = end + 2;
            return 0;
        }
    }
    return wrong(parser, "there is no such class of characters");
}

/* \w and the like: true when `letter` is one. Capitals stand for all others. */
static bool escape_set(char letter, struct byte_set *set, bool *is_negated)
{
    switch (letter | 0x20) {
    case 'w':
        add_ranges(set, "azAZ09__");
        break;
    case 's':
        add_ranges(set, "\t\r  ");
        break;
    case 'd':
        add_ranges(set, "09");
        break;
    default:
        return false;
    }
    *is_negated = letter < 'a';
    return true;
}

static char escaped(char letter)
{
    return (char)(letter == 'n' ? '\n' : letter == 't' ? '\t' : letter == 'r' ? '\r' : letter);
}

/* One member of a bracket, which is a byte unless `set` was added to. */
static int read_member(struct parser *parser, struct byte_set *set, int *byte)
{
    struct byte_set named = {0};
    bool is_negated = false;

    *byte = -1;
    if (parser->at[0] == '[' && parser->at[1] == ':')
        return read_class(parser, set);
    if (parser->at[0] == '\\' && parser->at[1]) {
        parser->at++;
        if (escape_set(*parser->at, &named, &is_negated)) {
            for (int i = 0; i < 4; i++)
                set->words[i] |= is_negated ? (i < 2 ? ~named.words[i] : 0) : named.words[i];
            parser->at++;
            return 0;
        }
        *byte = (uint8_t)escaped(*parser->at++);
        return 0;
    }
    *byte = (uint8_t)*parser->at++;
    return 0;
}

static int read_members(struct parser *parser, struct byte_set *set)
{
    for (bool is_first = true; *parser->at != ']' || is_first; is_first = false) {
        int first = -1, last = -1;
        if (*parser->at == '\0')
            return wrong(parser, "']' is missing");
        if (read_member(parser, set, &first) < 0)
            return -1;
        if (first < 0)
            continue;
        last = first;
        if (parser->at[0] == '-' && parser->at[1] && parser->at[1] != ']') {
            parser->at++;
            if (read_member(parser, set, &last) < 0)
                return -1;
        }
        if (first > 0x7f || last > 0x7f)
            return wrong(parser, "write characters that are not ASCII as (x|y), not in brackets");
        if (last < first)
            return wrong(parser, "the range in brackets goes backwards");
        byte_set_add(set, (unsigned)first, (unsigned)last);
    }
    parser->at++;
    return 0;
}

static bool is_any_number(char sign)
{
    return sign == '*' || sign == '+';
}

/* Any character but those of the set. Of any number of them the bytes need not be told apart. */
static int emit_others(struct parser *parser, const struct byte_set *set)
{
    struct byte_set others = {{~set->words[0], ~set->words[1], UINT64_MAX, UINT64_MAX}};

    if (parser->ignores_case) { // what is left out is left out in both cases
        struct byte_set folded = *set;
        fold_case(&folded);
        others.words[1] = ~folded.words[1];
    }
    bool ignores_case = parser->ignores_case;
    parser->ignores_case = false;
    int result =
        is_any_number(*parser->at) ? emit_set(parser, &others) : emit_wide(parser, &others);
    parser->ignores_case = ignores_case;
    return result;
}

static int read_bracket(struct parser *parser, bool is_glob)
{
    struct byte_set set = {0};

    parser->at++;
    bool is_negated = *parser->at == '^' || (is_glob && *parser->at == '!');
    parser->at += is_negated;
    if (read_members(parser, &set) < 0)
        return -1;
    if (is_glob && is_negated)
        byte_set_add(&set, '/', '/');
    if (is_negated)
        byte_set_add(&set, '\n', '\n');
    if (is_glob && !is_negated)
        set.words[0] &= ~((uint64_t)1 << '/');
    return is_negated ? emit_others(parser, &set) : emit_set(parser, &set);
}

static int read_escape(struct parser *parser)
{
    static const char edges[] = "bB<>";
    static const enum pattern_op edge_ops[] = {OP_WORD_EDGE, OP_WORD_INNER, OP_WORD_BEGIN,
                                               OP_WORD_END};
    struct byte_set set = {0};
    bool is_negated = false;
    char letter = parser->at[1];

    if (!letter)
        return wrong(parser, "nothing follows the last '\\'");
    if (is_digit(letter))
        return wrong(parser, "references to groups are not supported");
    parser->at += 2;
    const char *edge = strchr(edges, letter);
    if (edge)
        return emit(parser, edge_ops[edge - edges], 0, 0);
    if (escape_set(letter, &set, &is_negated))
        return is_negated ? emit_others(parser, &set) : emit_set(parser, &set);
    return emit_range(parser, (uint8_t)escaped(letter), (uint8_t)escaped(letter));
}

/* Of UTF-8, all bytes of a character belong to what is repeated. */
static int read_plain(struct parser *parser)
{
    do {
        if (emit_range(parser, (uint8_t)*parser->at, (uint8_t)*parser->at) < 0)
            return -1;
        parser->at++;
    } while (((uint8_t)*parser->at & 0xc0) == 0x80);
    return 0;
}

// ---- expressions ----

static int read_choice(struct parser *parser);

static int read_group(struct parser *parser)
{
    if (++parser->depth > MAX_NESTING)
        return wrong(parser, "groups are nested too deeply");
    parser->at++;
    if (parser->at[0] == '?' && parser->at[1] == ':')
        parser->at += 2;
    if (read_choice(parser) < 0)
        return -1;
    if (*parser->at != ')')
        return wrong(parser, "')' is missing");
    parser->at++;
    parser->depth--;
    return 0;
}

static int read_atom(struct parser *parser)
{
    static const struct byte_set newline = {{(uint64_t)1 << '\n', 0, 0, 0}};

    switch (*parser->at) {
    case '(':
        return read_group(parser);
    case '[':
        return read_bracket(parser, false);
    case '\\':
        return read_escape(parser);
    case '.':
        parser->at++;
        return emit_others(parser, &newline);
    case '^':
        parser->at++;
        return emit(parser, OP_START, 0, 0);
    case '$':
        parser->at++;
        return emit(parser, OP_END, 0, 0);
    case '*':
    case '+':
    case '?':
        return wrong(parser, "there is nothing to repeat");
    default:
        if (is_counts(parser->at))
            return wrong(parser, "there is nothing to repeat");
        return read_plain(parser);
    }
}

static int read_sequence(struct parser *parser)
{
    while (*parser->at && *parser->at != '|' && *parser->at != ')') {
        size_t from = parser->program->length;
        if (read_atom(parser) < 0 || read_repeats(parser, from) < 0)
            return -1;
    }
    return 0;
}

/* One way ends: the next begins here, and a jump goes behind the last. The jumps are a list by their `b` until then. */
static int end_way(struct parser *parser, size_t from, size_t *last_jump)
{
    struct pattern_program *program = parser->program;
    long length = (long)(program->length - from);

    if (insert(parser, from, OP_SPLIT, 1, length + 2) < 0 ||
        emit(parser, OP_JUMP, 0, (long)*last_jump) < 0)
        return -1;
    *last_jump = program->length - 1;
    return 0;
}

static void join_ways(struct parser *parser, size_t last_jump)
{
    struct pattern_program *program = parser->program;

    while (last_jump) {
        struct pattern_step *step = &program->steps[last_jump];
        size_t before = (size_t)step->b;
        step->a = (int16_t)(program->length - last_jump);
        step->b = 0;
        last_jump = before;
    }
}

/* The first step of a program is no jump, so 0 ends the list. */
static int read_choice(struct parser *parser)
{
    size_t from = parser->program->length, last_jump = 0;

    if (read_sequence(parser) < 0)
        return -1;
    while (*parser->at == '|') {
        parser->at++;
        if (end_way(parser, from, &last_jump) < 0)
            return -1;
        from = parser->program->length;
        if (read_sequence(parser) < 0)
            return -1;
    }
    join_ways(parser, last_jump);
    return 0;
}

static int read_expression(struct parser *parser)
{
    if (read_choice(parser) < 0)
        return -1;
    return *parser->at == ')' ? wrong(parser, "')' without a '('") : 0;
}

// ---- globs ----

static const struct byte_set slash = {{(uint64_t)1 << '/', 0, 0, 0}};

static int read_stars(struct parser *parser)
{
    struct byte_set all = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    struct byte_set name = {{~slash.words[0], UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    bool is_part = parser->at == parser->start || parser->at[-1] == '/';
    size_t from = parser->program->length;

    if (parser->at[1] != '*') {
        parser->at++;
        return emit_set(parser, &name) < 0 ? -1 : star(parser, from);
    }
    while (*parser->at == '*')
        parser->at++;
    if (emit_set(parser, &all) < 0 || star(parser, from) < 0)
        return -1;
    if (!is_part || *parser->at != '/')
        return 0;
    // "**/" is also no directory at all
    parser->at++;
    if (emit_range(parser, '/', '/') < 0)
        return -1;
    long length = (long)(parser->program->length - from);
    return insert(parser, from, OP_SPLIT, 1, length + 1);
}

static int read_glob(struct parser *parser);

static int read_braces(struct parser *parser)
{
    size_t from = parser->program->length, last_jump = 0;

    if (++parser->depth > MAX_NESTING)
        return wrong(parser, "braces are nested too deeply");
    parser->at++;
    if (read_glob(parser) < 0)
        return -1;
    while (*parser->at == ',') {
        parser->at++;
        if (end_way(parser, from, &last_jump) < 0)
            return -1;
        from = parser->program->length;
        if (read_glob(parser) < 0)
            return -1;
    }
    if (*parser->at != '}')
        return wrong(parser, "'}' is missing");
    join_ways(parser, last_jump);
    parser->at++;
    parser->depth--;
    return 0;
}

static int read_glob_atom(struct parser *parser)
{
    switch (*parser->at) {
    case '*':
        return read_stars(parser);
    case '?':
        parser->at++;
        return emit_others(parser, &slash);
    case '[':
        return read_bracket(parser, true);
    case '{':
        return read_braces(parser);
    case '\\':
        if (!parser->at[1])
            return wrong(parser, "nothing follows the last '\\'");
        parser->at++;
        return read_plain(parser);
    default:
        return read_plain(parser);
    }
}

/* Up to its end, or to what ends one way within braces. */
static int read_glob(struct parser *parser)
{
    while (*parser->at && (parser->depth == 0 || (*parser->at != ',' && *parser->at != '}'))) {
        if (read_glob_atom(parser) < 0)
            return -1;
    }
    return 0;
}

static int read_fixed(struct parser *parser)
{
    while (*parser->at) {
        if (read_plain(parser) < 0)
            return -1;
    }
    return 0;
}

/* In front of everything: any bytes, then the pattern. For globs it stands there and is not begun with. */
static int emit_search(struct parser *parser)
{
    static const struct byte_set all = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};

    if (emit(parser, OP_SPLIT, PATTERN_SEARCH_STEPS, 1) < 0 || emit_set(parser, &all) < 0)
        return -1;
    return emit(parser, OP_JUMP, -2, 0);
}

int pattern_parse(const char *text, enum pattern_kind kind, bool ignores_case,
                  struct pattern_program *program, struct error *err)
{
    struct parser parser = {text, text, program, err, 0, ignores_case};
    static int (*const readers[])(struct parser *) = {
        [PATTERN_EXPRESSION] = read_expression,
        [PATTERN_FIXED] = read_fixed,
        [PATTERN_GLOB] = read_glob,
    };

    program->length = program->n_sets = 0;
    if (text[0] == '\0')
        return error_set(err, ERROR_INVALID, "the pattern is empty");
    if (strnlen(text, PATTERN_MAX_TEXT + 1) > PATTERN_MAX_TEXT)
        return error_set(err, ERROR_INVALID, "the pattern is longer than %u bytes",
                         PATTERN_MAX_TEXT);
    if (emit_search(&parser) < 0 || readers[kind](&parser) < 0)
        return -1;
    if (kind == PATTERN_GLOB && emit(&parser, OP_END, 0, 0) < 0)
        return -1;
    return emit(&parser, OP_MATCH, 0, 0);
}
