/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer of JSON, piece by piece: compact, always valid, commas and quotes by itself.
 * Failures stick: the calls return nothing, and json_writer_finish tells. Text that is not UTF-8
 * gets U+FFFD in place of the bad bytes.
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"
#include "data/value.h"

#include <stdbool.h>
#include <stdint.h>

#define JSON_WRITER_DEPTH 128

struct json_writer {
    struct buffer *to;
    unsigned depth;
    bool is_map[JSON_WRITER_DEPTH];
    bool has_items[JSON_WRITER_DEPTH];
    bool is_after_key;
    char rest[4]; // of a character that a piece of string was cut in
    size_t n_rest;
    struct error error;
};

/* Adds to `to`, whose maximum holds. */
void json_writer_init(struct json_writer *writer, struct buffer *to);
/* The first failure, if there was one. All maps and lists must be ended. */
int json_writer_finish(struct json_writer *writer, struct error *err);

void json_map_begin(struct json_writer *writer);
void json_map_end(struct json_writer *writer);
void json_list_begin(struct json_writer *writer);
void json_list_end(struct json_writer *writer);

/* The name of the next value of a map. */
void json_key(struct json_writer *writer, const char *key);
/* The same with lone surrogates and NULs; see json_exact. */
void json_key_exact(struct json_writer *writer, const char *key, size_t length);

void json_null(struct json_writer *writer);
void json_bool(struct json_writer *writer, bool truth);
void json_integer(struct json_writer *writer, int64_t number);
void json_natural(struct json_writer *writer, uint64_t number);
void json_string(struct json_writer *writer, const char *text); // NULL is null
void json_bytes(struct json_writer *writer, const char *text, size_t length);

/* A member of a map that is a list of strings, of which the last is followed by NULL; nothing where there are none, or for NULL. */
void json_strings(struct json_writer *writer, const char *key, const char *const *strings);

/* A string in pieces, which may be cut anywhere, also within a character. */
void json_string_begin(struct json_writer *writer);
void json_string_piece(struct json_writer *writer, const char *text, size_t length);
void json_string_end(struct json_writer *writer);

/* A string whose lone surrogates, in their three-byte form, become escapes. */
void json_exact(struct json_writer *writer, const char *text, size_t length);

/* A value that is JSON already. */
void json_raw(struct json_writer *writer, const char *text, size_t length);

/* A tree as it was read: numbers as written, lone surrogates as escapes. */
void json_value(struct json_writer *writer, const struct data_value *value);
