/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text between quotes, so that it can be read back and never breaks the line it is in.
 * Threads: plain values.
 */
#pragma once
#include "base/buffer.h"

/* A JSON string with its quotes, without a control character. What is not UTF-8 becomes U+FFFD. */
int quote_json(struct buffer *to, const char *text, size_t length, struct error *err);

/* The inside only, for a string that comes in pieces (cut between characters). */
int quote_json_part(struct buffer *to, const char *text, size_t length, struct error *err);

/* As quote_json_part, but exactly: lone surrogates, in their three-byte form, come out as \ud800 ... \udfff, and DEL and U+0080 to
 * U+009F as they are. */
int quote_json_exact(struct buffer *to, const char *text, size_t length, struct error *err);

/*
 * Control characters in a text of somebody else's become '?', and so do those that change the order of what is read, and what is not UTF-8: it stays
 * one line, and no terminal acts on it.
 */
void quote_scrub(char *text);
