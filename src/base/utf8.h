/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8, one character at a time.
 * Threads: plain values.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" // U+FFFD
#define UTF8_MAX 4

/*
 * How many bytes the well-formed character at the start of `text` takes; 0 when there is none (also
 * for surrogates, overlong forms and a character cut off by `length`).
 */
size_t utf8_length(const char *text, size_t length);

/* Whether all of it is well-formed. */
bool utf8_is_valid(const char *text, size_t length);

/* How many bytes of an ill-formed start one U+FFFD stands for (Unicode's "maximal subpart"), at
 * least 1. */
size_t utf8_skip(const char *text, size_t length);

/* Whether `text` is the beginning of a well-formed character whose rest has not come yet. */
bool utf8_is_partial(const char *text, size_t length);

/* Writes the character, and also lone surrogates as three bytes (WTF-8); the number of bytes. */
size_t utf8_encode(uint32_t code, char out[UTF8_MAX]);
