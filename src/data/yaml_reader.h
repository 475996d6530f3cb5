/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the halves of the YAML reader: the structure (yaml.c) and the scalars in it
 * (yaml_scalar.c).
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"
#include "data/value.h"

struct yaml_mark {
    const char *at;
    const char *line_start;
    uint32_t line;
};

struct yaml {
    struct yaml_mark pos; // the text ends with NULs, so that looking one ahead is always fine
    unsigned depth;
    size_t values;
    struct data_document *document;
    struct buffer scratch; // the scalar being read
    struct error *err;
};

/* Where a value goes: the next one of a list, or the member `key` of a map. */
struct yaml_slot {
    struct data_value *parent;
    const char *key;
    size_t key_length;
};

static inline bool yaml_is_space(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool yaml_is_break(char c)
{
    return c == '\n' || c == '\r' || c == '\0';
}

static inline bool yaml_is_blank(char c)
{
    return yaml_is_space(c) || yaml_is_break(c);
}

static inline int yaml_column(const struct yaml *y)
{
    return (int)(y->pos.at - y->pos.line_start);
}

/* Fails with line, column and sentence. Returns -1. */
int yaml_fail(struct yaml *y, struct yaml_mark mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Behind a line break, if there is one here. */
void yaml_next_line(struct yaml *y);
void yaml_skip_space(struct yaml *y);

/* "---" or "..." at the start of a line. */
bool yaml_at_marker(const struct yaml *y);

/* Adds a value that starts at `mark`; -1 past the limits. */
int yaml_add(struct yaml *y, const struct yaml_slot *slot, enum value_kind kind,
             struct yaml_mark mark, struct data_value **out);

/* Each reads one scalar at the position into y->scratch and stops behind it. */
int yaml_read_quoted(struct yaml *y);
int yaml_read_plain(struct yaml *y, bool in_flow, bool one_line, int parent_indent);
int yaml_read_block(struct yaml *y, int parent_indent);

/* Adds y->scratch as a string, or as what a plain scalar means. */
int yaml_add_string(struct yaml *y, const struct yaml_slot *slot, struct yaml_mark mark);
int yaml_add_plain(struct yaml *y, const struct yaml_slot *slot, struct yaml_mark mark);

/* A copy of y->scratch in the document. */
const char *yaml_keep_scratch(struct yaml *y, size_t *length);

/* Fails when the text is not UTF-8 or holds characters that no YAML text may. */
int yaml_check_text(struct yaml *y, const char *text, size_t length);
