/* SPDX-License-Identifier: Apache-2.0 */
/* The structure of a YAML document: lists and maps, by indentation and in brackets. */
#include "data/yaml.h"

#include "base/fd.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "data/yaml_reader.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int read_content(struct yaml *y, const struct yaml_slot *slot, int parent_indent,
                        bool same_line);
static int read_flow(struct yaml *y, const struct yaml_slot *slot);

// ---- position ----

int yaml_fail(struct yaml *y, struct yaml_mark mark, const char *format, ...)
{
    const char *name = y->document->name;
    unsigned column = 1;
    char text[400];
    va_list args;

    for (const char *at = mark.line_start; at < mark.at; at++)
        column += ((unsigned char)*at & 0xc0) != 0x80;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    quote_scrub(text); // whatever the file holds
    return error_set(y->err, ERROR_INVALID, "%s%sline %u, column %u: %s", name, *name ? ": " : "",
                     mark.line, column, text);
}

void yaml_skip_space(struct yaml *y)
{
    while (yaml_is_space(*y->pos.at))
        y->pos.at++;
}

void yaml_next_line(struct yaml *y)
{
    y->pos.at += *y->pos.at == '\r';
    if (*y->pos.at != '\n')
        return;
    y->pos.at++;
    y->pos.line_start = y->pos.at;
    y->pos.line++;
}

bool yaml_at_marker(const struct yaml *y)
{
    const char *at = y->pos.at;
    return at == y->pos.line_start && (strncmp(at, "---", 3) == 0 || strncmp(at, "...", 3) == 0) &&
           yaml_is_blank(at[3]);
}

static bool may_start_comment(const struct yaml *y)
{
    return y->pos.at == y->pos.line_start || yaml_is_space(y->pos.at[-1]);
}

static void skip_comment(struct yaml *y)
{
    if (*y->pos.at == '#' && may_start_comment(y))
        while (!yaml_is_break(*y->pos.at))
            y->pos.at++;
}

// To the next thing that is neither blank nor comment, here or on a later line.
static int skip_to_token(struct yaml *y)
{
    for (;;) {
        yaml_skip_space(y);
        skip_comment(y);
        if (*y->pos.at == '\0')
            return 0;
        if (yaml_is_break(*y->pos.at)) {
            yaml_next_line(y);
            continue;
        }
        const char *start = y->pos.line_start;
        size_t spaces = strspn(start, " ");
        if (start[spaces] == '\t' && start + spaces + strspn(start + spaces, " \t") == y->pos.at)
            return yaml_fail(y, y->pos, "a tab indents this line; use spaces");
        return 0;
    }
}

// The column of the token here; -1 at the end of the document.
static int token_indent(const struct yaml *y)
{
    return *y->pos.at == '\0' || yaml_at_marker(y) ? -1 : yaml_column(y);
}

static bool at_line_end(struct yaml *y)
{
    yaml_skip_space(y);
    return yaml_is_break(*y->pos.at) || (*y->pos.at == '#' && may_start_comment(y));
}

static int expect_line_end(struct yaml *y)
{
    if (at_line_end(y))
        return 0;
    if (*y->pos.at == ':')
        return yaml_fail(y, y->pos, "a second ': ' on this line; put the value in quotes");
    return yaml_fail(y, y->pos, "unexpected '%.*s' after the value; put the value in quotes",
                     (int)utf8_length(y->pos.at, UTF8_MAX), y->pos.at);
}

// ---- limits ----

int yaml_add(struct yaml *y, const struct yaml_slot *slot, enum value_kind kind,
             struct yaml_mark mark, struct data_value **out)
{
    if (++y->values > YAML_MAX_VALUES)
        return yaml_fail(y, y->pos, "more than %d values; split the file", YAML_MAX_VALUES);
    *out = value_add(y->document, slot->parent, kind, slot->key, slot->key_length);
    (*out)->line = mark.line;
    (*out)->column = (uint32_t)(mark.at - mark.line_start) + 1;
    return 0;
}

static int enter(struct yaml *y, const struct yaml_slot *slot, enum value_kind kind,
                 struct data_value **out)
{
    if (++y->depth > YAML_MAX_DEPTH)
        return yaml_fail(y, y->pos, "more than %d levels of lists and maps; flatten it",
                         YAML_MAX_DEPTH);
    return yaml_add(y, slot, kind, y->pos, out);
}

static int add_null(struct yaml *y, const struct yaml_slot *slot)
{
    struct data_value *value;
    return yaml_add(y, slot, VALUE_NULL, y->pos, &value);
}

// ---- what may not start a value ----

static int check_start(struct yaml *y, bool in_flow)
{
    static const struct {
        char start;
        const char *sentence;
    } refused[] = {
        {'&', "anchors ('&') are not supported; write the value out where it is needed"},
        {'*', "aliases ('*') are not supported; write the value out, or put it in quotes"},
        {'!', "tags ('!') are not supported; leave the tag away, or put the value in quotes"},
        {'%', "a value cannot start with '%'; put it in quotes"},
        {'@', "a value cannot start with '@'; put it in quotes"},
        {'`', "a value cannot start with '`'; put it in quotes"},
        {',', "a value is missing before ','"},
        {']', "this ']' closes nothing; put the value in quotes if it belongs to it"},
        {'}', "this '}' closes nothing; put the value in quotes if it belongs to it"},
        {'#', "a comment needs a space before its '#'"},
    };
    char c = *y->pos.at, next = c ? y->pos.at[1] : '\0';

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
        if (c == refused[i].start)
            return yaml_fail(y, y->pos, "%s", refused[i].sentence);
    if (c == '?' && yaml_is_blank(next))
        return yaml_fail(y, y->pos, "complex keys ('? ') are not supported; use 'key: value'");
    if (c == ':' && yaml_is_blank(next))
        return yaml_fail(y, y->pos, "a key is missing before ':'");
    if (in_flow && (c == '|' || c == '>'))
        return yaml_fail(y, y->pos, "'%c' texts cannot stand in brackets; use double quotes", c);
    if (in_flow && c == '-' && (yaml_is_blank(next) || strchr(",[]{}", next)))
        return yaml_fail(y, y->pos, "a '- ' item cannot stand in brackets; leave the '-' away");
    return 0;
}

// ---- keys ----

// Behind the quoted text that starts at `at`, on this line; NULL when it does not end there.
static const char *find_quote_end(const char *at)
{
    char quote = *at++;

    for (; !yaml_is_break(*at); at++) {
        if (quote == '"' && *at == '\\' && !yaml_is_break(at[1]))
            at++;
        else if (*at == quote && quote == '\'' && at[1] == quote)
            at++;
        else if (*at == quote)
            return at + 1;
    }
    return NULL;
}

// Is there "key:" here, all on this line?
static bool is_key(const struct yaml *y)
{
    const char *at = y->pos.at;

    if (*at == '"' || *at == '\'') {
        at = find_quote_end(at);
        if (!at)
            return false;
        at += strspn(at, " \t");
        return *at == ':' && yaml_is_blank(at[1]);
    }
    for (; !yaml_is_break(*at); at++) {
        if (*at == ':' && yaml_is_blank(at[1]))
            return true;
        if (*at == '#' && at > y->pos.at && yaml_is_space(at[-1]))
            return false;
    }
    return false;
}

// The key here becomes the slot for its value in `map`; the position is behind the ':'.
static int read_key(struct yaml *y, struct data_value *map, bool in_flow, struct yaml_slot *slot)
{
    struct yaml_mark start = y->pos;
    bool is_quoted = *start.at == '"' || *start.at == '\'';

    if (check_start(y, in_flow) < 0)
        return -1;
    if (*start.at == '[' || *start.at == '{')
        return yaml_fail(y, start, "a list or map cannot be a key; put the key in quotes");
    if ((is_quoted ? yaml_read_quoted(y) : yaml_read_plain(y, in_flow, true, -1)) < 0)
        return -1;
    if (!is_quoted && strcmp(y->scratch.data, "<<") == 0)
        return yaml_fail(y, start, "merge keys ('<<') are not supported; write the fields out");
    if (memchr(y->scratch.data, 0, y->scratch.length))
        return yaml_fail(y, start, "a key cannot hold a NUL character");
    *slot = (struct yaml_slot){.parent = map};
    slot->key = yaml_keep_scratch(y, &slot->key_length);
    if (value_get(map, slot->key))
        return yaml_fail(y, start, "the key '%.60s' is there twice; keep one", slot->key);
    if (map->count >= YAML_MAX_KEYS)
        return yaml_fail(y, start, "more than %d keys in one map; split it", YAML_MAX_KEYS);
    yaml_skip_space(y);
    if (*y->pos.at != ':')
        return yaml_fail(y, y->pos, "a ':' is missing after the key '%.60s'", slot->key);
    y->pos.at++;
    return 0;
}

// ---- lists and maps in brackets ----

static int skip_in_flow(struct yaml *y, struct yaml_mark open)
{
    if (skip_to_token(y) < 0)
        return -1;
    if (token_indent(y) < 0)
        return yaml_fail(y, open, "this '%c' is never closed", *open.at);
    return 0;
}

// After an item: over ',' to the next one, or behind the closing bracket (`*is_done`).
static int end_flow_item(struct yaml *y, struct yaml_mark open, bool *is_done)
{
    char close = *open.at == '[' ? ']' : '}';

    if (skip_in_flow(y, open) < 0)
        return -1;
    *is_done = *y->pos.at == close;
    if (*y->pos.at == ':')
        return yaml_fail(y, y->pos, "a ':' in a list; write {key: value}, or put it in quotes");
    if (*y->pos.at != ',' && !*is_done)
        return yaml_fail(y, y->pos, "a ',' or '%c' is missing here", close);
    y->pos.at++;
    return 0;
}

static int read_flow_member(struct yaml *y, struct data_value *map, struct yaml_mark open)
{
    bool is_quoted = *y->pos.at == '"' || *y->pos.at == '\'';
    struct yaml_slot slot;

    if (read_key(y, map, true, &slot) < 0)
        return -1;
    if (!is_quoted && !yaml_is_blank(*y->pos.at) && !strchr(",[]{}", *y->pos.at))
        return yaml_fail(y, y->pos, "a space is missing after ':'");
    if (skip_in_flow(y, open) < 0)
        return -1;
    if (*y->pos.at == ',' || *y->pos.at == '}')
        return add_null(y, &slot);
    return read_flow(y, &slot);
}

static int read_flow_collection(struct yaml *y, const struct yaml_slot *slot)
{
    struct yaml_mark open = y->pos;
    bool is_list = *open.at == '[', is_done = false;
    struct data_value *collection;

    if (enter(y, slot, is_list ? VALUE_LIST : VALUE_MAP, &collection) < 0)
        return -1;
    struct yaml_slot item = {.parent = collection};
    for (y->pos.at++; !is_done;) {
        if (skip_in_flow(y, open) < 0)
            return -1;
        if (*y->pos.at == (is_list ? ']' : '}')) {
            y->pos.at++;
            break;
        }
        if ((is_list ? read_flow(y, &item) : read_flow_member(y, collection, open)) < 0 ||
            end_flow_item(y, open, &is_done) < 0)
            return -1;
    }
    y->depth--;
    return 0;
}

static int read_flow(struct yaml *y, const struct yaml_slot *slot)
{
    struct yaml_mark start = y->pos;

    if (check_start(y, true) < 0)
        return -1;
    if (*start.at == '[' || *start.at == '{')
        return read_flow_collection(y, slot);
    if (*start.at == '"' || *start.at == '\'')
        return yaml_read_quoted(y) < 0 ? -1 : yaml_add_string(y, slot, start);
    return yaml_read_plain(y, true, false, -1) < 0 ? -1 : yaml_add_plain(y, slot, start);
}

// ---- lists and maps by indentation ----

static bool at_dash(const struct yaml *y)
{
    return *y->pos.at == '-' && yaml_is_blank(y->pos.at[1]);
}

// The value behind "key:" or "- ", on this line or indented below it. A list may stand right under
// its key.
static int read_block_value(struct yaml *y, const struct yaml_slot *slot, int indent)
{
    bool same_line = !at_line_end(y);

    if (!same_line && skip_to_token(y) < 0)
        return -1;
    int column = token_indent(y);
    bool is_under_key = slot->key && column == indent && at_dash(y);
    if (column <= indent && !is_under_key)
        return add_null(y, slot);
    return read_content(y, slot, is_under_key ? indent - 1 : indent, same_line);
}

// After an item at `indent`: is there another one at the same column?
static int next_item(struct yaml *y, int indent, bool *is_more)
{
    if (skip_to_token(y) < 0)
        return -1;
    int column = token_indent(y);
    if (column > indent)
        return yaml_fail(y, y->pos,
                         "indented deeper than the line it belongs to; line it up with column %d",
                         indent + 1);
    *is_more = column == indent;
    return 0;
}

static int read_block_list(struct yaml *y, const struct yaml_slot *slot, int indent)
{
    struct data_value *list;
    bool is_more = true;

    if (enter(y, slot, VALUE_LIST, &list) < 0)
        return -1;
    struct yaml_slot item = {.parent = list};
    while (is_more && at_dash(y)) {
        y->pos.at++;
        size_t spaces = strspn(y->pos.at, " ");
        if (y->pos.at[spaces] == '\t')
            return yaml_fail(y, y->pos, "a tab after '-'; use a space");
        if (read_block_value(y, &item, indent) < 0 || next_item(y, indent, &is_more) < 0)
            return -1;
    }
    y->depth--;
    return 0;
}

static int read_block_map(struct yaml *y, const struct yaml_slot *slot, int indent)
{
    struct data_value *map;
    bool is_more = true;

    if (enter(y, slot, VALUE_MAP, &map) < 0)
        return -1;
    while (is_more) {
        struct yaml_slot member;

        if (at_dash(y))
            return yaml_fail(y, y->pos, "a '- ' item where a key belongs; indent it under its key");
        if (check_start(y, false) < 0)
            return -1;
        if (!is_key(y))
            return yaml_fail(y, y->pos, "a 'key: value' belongs here");
        if (read_key(y, map, false, &member) < 0 || read_block_value(y, &member, indent) < 0 ||
            next_item(y, indent, &is_more) < 0)
            return -1;
    }
    y->depth--;
    return 0;
}

static int read_scalar(struct yaml *y, const struct yaml_slot *slot, int parent_indent)
{
    struct yaml_mark start = y->pos;
    bool is_quoted = *start.at == '"' || *start.at == '\'';

    if (*start.at == '|' || *start.at == '>')
        return yaml_read_block(y, parent_indent) < 0 ? -1 : yaml_add_string(y, slot, start);
    if ((is_quoted ? yaml_read_quoted(y) : yaml_read_plain(y, false, false, parent_indent)) < 0)
        return -1;
    if ((is_quoted ? yaml_add_string(y, slot, start) : yaml_add_plain(y, slot, start)) < 0)
        return -1;
    return expect_line_end(y);
}

static int read_content(struct yaml *y, const struct yaml_slot *slot, int parent_indent,
                        bool same_line)
{
    bool behind_key = same_line && slot->key;

    if (check_start(y, false) < 0)
        return -1;
    if (at_dash(y)) {
        if (behind_key)
            return yaml_fail(y, y->pos, "a list starts on the line below its key");
        return read_block_list(y, slot, yaml_column(y));
    }
    if (*y->pos.at == '[' || *y->pos.at == '{')
        return read_flow_collection(y, slot) < 0 ? -1 : expect_line_end(y);
    if (*y->pos.at != '|' && *y->pos.at != '>' && is_key(y)) {
        if (behind_key)
            return yaml_fail(y, y->pos, "a second ': ' on this line; put the value in quotes");
        return read_block_map(y, slot, yaml_column(y));
    }
    return read_scalar(y, slot, parent_indent);
}

// ---- documents ----

static int read_document(struct yaml *y)
{
    struct yaml_slot root = {0};

    if (skip_to_token(y) < 0)
        return -1;
    if (*y->pos.at == '%' && yaml_column(y) == 0)
        return yaml_fail(y, y->pos, "directives ('%%') are not supported; remove the line");
    if (yaml_at_marker(y) && *y->pos.at == '-')
        y->pos.at += 3;
    if (read_block_value(y, &root, -1) < 0 || skip_to_token(y) < 0)
        return -1;
    if (yaml_at_marker(y) && *y->pos.at == '.') {
        y->pos.at += 3;
        if (expect_line_end(y) < 0 || skip_to_token(y) < 0)
            return -1;
    }
    if (yaml_at_marker(y))
        return yaml_fail(y, y->pos, "a second document; keep one per file");
    if (*y->pos.at)
        return yaml_fail(y, y->pos, "unexpected text; line it up with what it belongs to");
    return 0;
}

int yaml_read(const char *name, const char *text, size_t length, struct data_document **out,
              struct error *err)
{
    autoptr(data_document) document = data_document_new(name);
    struct yaml y = {.document = document, .err = err};

    if (length > YAML_MAX_BYTES)
        return error_set(err, ERROR_LIMIT, "%s: more than %d bytes of YAML", name, YAML_MAX_BYTES);
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        length -= 3;
    }
    if (yaml_check_text(&y, text, length) < 0)
        return -1;
    char *copy = value_alloc(document, length + 4);
    if (length)
        memcpy(copy, text, length);
    y.pos = (struct yaml_mark){.at = copy, .line_start = copy, .line = 1};
    int result = read_document(&y);
    buffer_clear(&y.scratch);
    if (result < 0)
        return -1;
    *out = take(document);
    return 0;
}

int yaml_read_file(const char *path, struct data_document **out, struct error *err)
{
    autobuffer text = {.maximum = YAML_MAX_BYTES};
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_path(err, "open '%s'", path);
    if (fd_read_buffer(fd, &text, err) < 0)
        return error_wrap(err, "read '%s'", path);
    return yaml_read(path, text.data ? text.data : "", text.length, out, err);
}
