/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text as JavaScript counts and cuts it: in UTF-16 code units. Kept as UTF-8 in which halves of surrogate pairs may stand alone, in three
 * bytes (WTF-8).
 * Threads: plain values.
 */
#pragma once
#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

/* Borrowed; no NUL behind it. */
struct wide_text {
    const char *text;
    size_t length; // bytes
};

/* Code units: what JavaScript calls its length. */
size_t wide_units(struct wide_text text);

/* Without the white space at its ends, which is JavaScript's. */
struct wide_text wide_trim(struct wide_text text);
bool wide_is_blank(struct wide_text text);

/*
 * Every run of white space becomes one blank, the ends are trimmed; and what is longer than `units` then becomes one less of them,
 * trimmed at the right, and three dots. The cut may halve a pair.
 */
void wide_squeeze(struct wide_text text, size_t units, struct buffer *out);
/* The cut alone. */
void wide_clip(struct wide_text text, size_t units, struct buffer *out);

/* Bytes as UTF-8: U+FFFD for what is none. */
void wide_decode(const char *bytes, size_t length, struct buffer *out);
/* Halves of pairs become U+FFFD: what is left when JavaScript hands a text to others. */
void wide_well_formed(struct wide_text text, struct buffer *out);
/* The last so many bytes of well-formed text; each byte of a character that is cut by that becomes U+FFFD. */
void wide_tail(struct wide_text text, size_t bytes, struct buffer *out);
/* How many bytes are left of `length` when a character that is cut at their end goes. */
size_t wide_whole(const char *bytes, size_t length);
