/* SPDX-License-Identifier: Apache-2.0 */
/*
 * %XX in paths and queries.
 * Threads: plain values.
 */
#pragma once
#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Decodes `length` bytes to `out` (as many and a NUL) and returns how long that is. `is_form`: a '+' is a blank. ERROR_INVALID,
 * starting with `what`, for an escape that is none, a NUL, and what is not UTF-8.
 */
int percent_decode(const char *text, size_t length, bool is_form, const char *what, char *out,
                   size_t *out_length, struct error *err);

/* Adds the text with everything escaped that is neither a letter, a digit nor one of "-._~". */
int percent_encode(const char *text, struct buffer *out, struct error *err);
