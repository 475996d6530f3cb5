/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of JSON (RFC 8259) into the tree of value.h.
 * Lossless: numbers keep their text as written, and a lone surrogate ("\ud800") is kept in its
 * three-byte form, as if it were a character (WTF-8), so that json_writer.h can give both back
 * exactly. Refused, with line and column: what is not UTF-8, a byte order mark, anything behind the
 * value, the same key twice.
 * Threads: plain values.
 */
#pragma once
#include "data/value.h"

struct json_limits {
    size_t bytes;   // of text; 0: JSON_MAX_BYTES
    size_t memory;  // the tree may take; 0: JSON_MAX_MEMORY
    unsigned depth; // of lists and maps in each other; 0: JSON_MAX_DEPTH
    bool
        takes_last; // of a key that is there twice the last value counts, at the place of the first
    /* Asked before the tree takes so many bytes more; false: ERROR_FULL. NULL: it may. */
    bool (*may_take)(void *data, size_t bytes);
    void *data;
};
#define JSON_FREE_MEMORY ((size_t)64 << 10) // for which nobody is asked
#define JSON_MEMORY_STEP ((size_t)256 << 10)
#define JSON_MAX_BYTES ((size_t)16 << 20)
#define JSON_MAX_MEMORY ((size_t)64 << 20)
#define JSON_MAX_DEPTH 64

/*
 * Reads `length` bytes. `name` is put in front of errors ("" for none); `limits` may be NULL.
 * ERROR_LIMIT for more than the limits, ERROR_FULL where may_take said no, ERROR_INVALID for all else.
 */
int json_read(const char *name, const char *text, size_t length, const struct json_limits *limits,
              struct data_document **out, struct error *err);
