/* SPDX-License-Identifier: Apache-2.0 */
/* The strict JSON reader: recursive descent, bounded by the depth limit; see json.h. */
#include "data/json.h"

#include "base/hex.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct reader {
    const char *name;
    const char *at;
    const char *end;
    const char *line_start;
    uint32_t line;
    unsigned depth;
    struct json_limits limits;
    size_t granted; // bytes that the tree may take without asking
    struct data_document *document;
    struct error *err;
};

static int fail_at(struct reader *r, const char *at, enum error_reason kind, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

static int fail_at(struct reader *r, const char *at, enum error_reason kind, const char *format,
                   ...)
{
    char text[200];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(r->err, kind, "%s%sline %u, column %zu: %s", r->name, *r->name ? ": " : "",
                     r->line, (size_t)(at - r->line_start) + 1, text);
}

#define FAIL(r, ...) fail_at(r, (r)->at, ERROR_INVALID, __VA_ARGS__)

/* Line ends appear only between tokens: inside strings they must be escaped. */
static void skip_space(struct reader *r)
{
    for (; r->at < r->end; r->at++) {
        if (*r->at == '\n') {
            r->line++;
            r->line_start = r->at + 1;
        } else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r') {
            return;
        }
    }
}

/* The next character without taking it; -1 at the end. */
static int peek(const struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static int fail_unexpected(struct reader *r, const char *wanted)
{
    int c = peek(r);
    if (c < 0)
        return FAIL(r, "the text ends where %s should be", wanted);
    if (c > ' ' && c < 0x7f)
        return FAIL(r, "'%c' stands where %s should be", c, wanted);
    return FAIL(r, "byte 0x%02x stands where %s should be", c, wanted);
}

static struct data_value *add_value(struct reader *r, struct data_value *parent,
                                    enum value_kind kind, const struct data_value *key)
{
    struct data_value *value =
        value_add(r->document, parent, kind, key ? key->text : NULL, key ? key->length : 0);
    value->line = r->line;
    value->column = (uint32_t)(r->at - r->line_start) + 1;
    return value;
}

/* ---- strings ---- */

/* Four hex digits at `at`; -1 if they are not there. */
static long hex4(const struct reader *r, const char *at)
{
    long code = 0;

    if (r->end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

/* At the 'u' of an escape. A pair of surrogates is one character, a lone one is kept. */
static int read_unicode(struct reader *r, char **to)
{
    long code = hex4(r, r->at + 1);

    if (code < 0)
        return FAIL(r, "'\\u' needs four hexadecimal digits");
    r->at += 5;
    if (code >= 0xd800 && code <= 0xdbff && r->end - r->at >= 6 && r->at[0] == '\\' &&
        r->at[1] == 'u') {
        long low = hex4(r, r->at + 2);
        if (low >= 0xdc00 && low <= 0xdfff) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            r->at += 6;
        }
    }
    *to += utf8_encode((uint32_t)code, *to);
    return 0;
}

/* Behind a backslash. */
static int read_escape(struct reader *r, char **to)
{
    static const char names[] = "\"\\/bfnrt";
    static const char letters[] = "\"\\/\b\f\n\r\t";
    int c = peek(r);
    const char *found = c > 0 ? strchr(names, c) : NULL;

    if (c == 'u')
        return read_unicode(r, to);
    if (!found)
        return fail_unexpected(r, "one of \" \\ / b f n r t u after '\\'");
    *(*to)++ = letters[found - names];
    r->at++;
    return 0;
}

/* One character of a string that is neither its end nor plain ASCII. */
static int read_character(struct reader *r, char **to)
{
    unsigned char c = (unsigned char)*r->at;

    if (c == '\\') {
        r->at++;
        return read_escape(r, to);
    }
    if (c < 0x20)
        return FAIL(r, "byte 0x%02x must be escaped in a string", c);
    size_t size = utf8_length(r->at, (size_t)(r->end - r->at));
    if (size == 0)
        return FAIL(r, "byte 0x%02x in a string is not UTF-8", c);
    memcpy(*to, r->at, size);
    *to += size;
    r->at += size;
    return 0;
}

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* The closing quote of the string that begins at `at`, or the end: no string is longer unescaped
 * than written. */
static size_t written_length(const struct reader *r)
{
    const char *at = r->at;
    while (at < r->end && *at != '"')
        at += *at == '\\' && r->end - at > 1 ? 2 : 1;
    return (size_t)(at - r->at);
}

/* One without escapes, and in ASCII, as most are: the bytes up to its closing quote. False: it is another. */
static bool read_plain_text(struct reader *r, struct data_value *value)
{
    const char *from = r->at + 1, *at = from;

    while (at < r->end && is_plain(*at))
        at++;
    if (at == r->end || *at != '"')
        return false;
    size_t length = (size_t)(at - from);
    char *text = value_alloc(r->document, length + 1);
    memcpy(text, from, length);
    text[length] = '\0';
    r->at = at + 1;
    value->text = text;
    value->length = length;
    return true;
}

/* At the opening quote; fills text and length. */
static int read_text(struct reader *r, struct data_value *value)
{
    if (read_plain_text(r, value))
        return 0;
    const char *opening = r->at++;
    char *text = value_alloc(r->document, written_length(r) + 1);
    char *to = text;

    for (;;) {
        const char *from = r->at;
        while (r->at < r->end && is_plain(*r->at))
            r->at++;
        memcpy(to, from, (size_t)(r->at - from));
        to += r->at - from;
        if (r->at == r->end)
            return fail_at(r, opening, ERROR_INVALID, "this string has no end");
        if (*r->at == '"')
            break;
        if (read_character(r, &to) < 0)
            return -1;
    }
    r->at++;
    *to = '\0';
    value->text = text;
    value->length = (size_t)(to - text);
    return 0;
}

/* ---- numbers and words ---- */

static bool skip_digits(struct reader *r)
{
    const char *from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > from;
}

static int read_number(struct reader *r, struct data_value *value)
{
    const char *from = r->at;

    if (*r->at == '-')
        r->at++;
    if (peek(r) == '0')
        r->at++;
    else if (!skip_digits(r))
        return fail_unexpected(r, "a digit");
    if (peek(r) == '.') {
        r->at++;
        if (!skip_digits(r))
            return fail_unexpected(r, "a digit");
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        if (peek(r) == '+' || peek(r) == '-')
            r->at++;
        if (!skip_digits(r))
            return fail_unexpected(r, "a digit");
    }
    value->length = (size_t)(r->at - from);
    char *text = value_alloc(r->document, value->length + 1);
    memcpy(text, from, value->length);
    value->text = text;
    return 0;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

/* ---- lists and maps ---- */

static int read_value(struct reader *r, struct data_value *parent, const struct data_value *key);

static int enter(struct reader *r)
{
    if (r->depth == r->limits.depth)
        return fail_at(r, r->at, ERROR_LIMIT, "more than %u lists and maps in each other",
                       r->limits.depth);
    r->depth++;
    r->at++;
    skip_space(r);
    return 0;
}

static void leave(struct reader *r)
{
    r->depth--;
    r->at++;
}

static int read_list(struct reader *r, struct data_value *list)
{
    if (enter(r) < 0)
        return -1;
    while (peek(r) != ']') {
        if (list->count) {
            if (peek(r) != ',')
                return fail_unexpected(r, "',' or ']'");
            r->at++;
            skip_space(r);
        }
        if (read_value(r, list, NULL) < 0)
            return -1;
        skip_space(r);
    }
    leave(r);
    return 0;
}

#define FEW_KEYS 32

struct placed {
    struct data_value *member;
    size_t place;
};

static int compare_names(const struct data_value *left, const struct data_value *right)
{
    size_t shorter = left->key_length < right->key_length ? left->key_length : right->key_length;
    int order = memcmp(left->key, right->key, shorter);

    if (order)
        return order;
    return (left->key_length > right->key_length) - (left->key_length < right->key_length);
}

static int compare_keys(const void *a, const void *b)
{
    const struct placed *left = a;
    const struct placed *right = b;
    int order = compare_names(left->member, right->member);

    return order ? order : (left->place > right->place) - (left->place < right->place);
}

/* Links the members again that are left. */
static void relink(struct data_value *map, struct data_value *const *members, size_t count)
{
    struct data_value **at = &map->first;

    map->count = 0;
    map->last = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!members[i])
            continue;
        *at = map->last = members[i];
        at = &members[i]->next;
        map->count++;
    }
    *at = NULL;
}

static void keep_last(struct data_value *map, const struct placed *sorted, size_t count)
{
    autofree struct data_value **members = xcalloc(count, sizeof *members);

    for (size_t i = 0; i < count; i++) {
        size_t first = i;
        while (i + 1 < count && compare_names(sorted[i].member, sorted[i + 1].member) == 0)
            i++;
        members[sorted[first].place] = sorted[i].member;
    }
    relink(map, members, count);
}

static bool is_each_there_once(const struct data_value *map)
{
    for (const struct data_value *member = map->first; member; member = member->next) {
        for (const struct data_value *other = member->next; other; other = other->next) {
            if (other->key_length == member->key_length &&
                memcmp(other->key, member->key, member->key_length) == 0)
                return false;
        }
    }
    return true;
}

/* Sorts them where they are many, so that a body of a hundred thousand keys takes no quadratic time. */
static int check_keys(struct reader *r, struct data_value *map)
{
    if (map->count <= FEW_KEYS && is_each_there_once(map))
        return 0;
    autofree struct placed *sorted = xcalloc(map->count, sizeof *sorted);
    size_t count = 0;
    for (struct data_value *member = map->first; member; member = member->next, count++)
        sorted[count] = (struct placed){member, count};
    qsort(sorted, count, sizeof *sorted, compare_keys);
    for (size_t i = 1; i < count; i++) {
        if (compare_names(sorted[i - 1].member, sorted[i].member) != 0)
            continue;
        if (r->limits.takes_last) {
            keep_last(map, sorted, count);
            return 0;
        }
        return error_set(r->err, ERROR_INVALID,
                         "%s%sline %u, column %u: the key '%.80s' is there twice", r->name,
                         *r->name ? ": " : "", map->line, map->column, sorted[i].member->key);
    }
    return 0;
}

static int read_member(struct reader *r, struct data_value *map)
{
    struct data_value key = {0};

    if (peek(r) != '"')
        return fail_unexpected(r, "a key in quotes");
    if (read_text(r, &key) < 0)
        return -1;
    skip_space(r);
    if (peek(r) != ':')
        return fail_unexpected(r, "':'");
    r->at++;
    skip_space(r);
    return read_value(r, map, &key);
}

static int read_map(struct reader *r, struct data_value *map)
{
    if (enter(r) < 0)
        return -1;
    while (peek(r) != '}') {
        if (map->count) {
            if (peek(r) != ',')
                return fail_unexpected(r, "',' or '}'");
            r->at++;
            skip_space(r);
        }
        if (read_member(r, map) < 0)
            return -1;
        skip_space(r);
    }
    leave(r);
    return check_keys(r, map);
}

static int check_memory(struct reader *r)
{
    size_t used = r->document->arena.used;

    if (used > r->limits.memory)
        return fail_at(r, r->at, ERROR_LIMIT, "too many values to keep in %zu bytes",
                       r->limits.memory);
    size_t steps = (used - r->granted) / JSON_MEMORY_STEP + 1;
    if (r->limits.may_take && !r->limits.may_take(r->limits.data, steps * JSON_MEMORY_STEP))
        return fail_at(r, r->at, ERROR_FULL, "there is no memory for all its values now");
    r->granted += steps * JSON_MEMORY_STEP;
    if (r->granted > r->limits.memory)
        r->granted = r->limits.memory;
    return 0;
}

static int read_value(struct reader *r, struct data_value *parent, const struct data_value *key)
{
    if (r->document->arena.used > r->granted && check_memory(r) < 0)
        return -1;
    switch (peek(r)) {
    case '{':
        return read_map(r, add_value(r, parent, VALUE_MAP, key));
    case '[':
        return read_list(r, add_value(r, parent, VALUE_LIST, key));
    case '"':
        return read_text(r, add_value(r, parent, VALUE_STRING, key));
    case '-':
    case '0' ... '9':
        return read_number(r, add_value(r, parent, VALUE_NUMBER, key));
    }
    struct data_value *value = add_value(r, parent, VALUE_NULL, key);
    if (take_word(r, "null"))
        return 0;
    value->kind = VALUE_BOOL;
    value->truth = take_word(r, "true");
    if (value->truth || take_word(r, "false"))
        return 0;
    return fail_unexpected(r, "a value");
}

static int read_document(struct reader *r)
{
    skip_space(r);
    if (read_value(r, NULL, NULL) < 0)
        return -1;
    skip_space(r);
    if (r->at < r->end)
        return fail_unexpected(r, "the end");
    return 0;
}

int json_read(const char *name, const char *text, size_t length, const struct json_limits *limits,
              struct data_document **out, struct error *err)
{
    struct reader r = {
        .name = name,
        .at = text,
        .end = text + length,
        .line_start = text,
        .line = 1,
        .err = err,
    };

    if (limits)
        r.limits = *limits;
    r.limits.bytes = r.limits.bytes ? r.limits.bytes : JSON_MAX_BYTES;
    r.limits.memory = r.limits.memory ? r.limits.memory : JSON_MAX_MEMORY;
    r.limits.depth = r.limits.depth ? r.limits.depth : JSON_MAX_DEPTH;
    r.granted = r.limits.memory < JSON_FREE_MEMORY ? r.limits.memory : JSON_FREE_MEMORY;
    if (length > r.limits.bytes)
        return error_set(err, ERROR_LIMIT, "%s%smore than %zu bytes of JSON", name,
                         *name ? ": " : "", r.limits.bytes);
    autoptr(data_document) document = data_document_new(name);
    r.document = document;
    if (read_document(&r) < 0)
        return -1;
    *out = take(document);
    return 0;
}
