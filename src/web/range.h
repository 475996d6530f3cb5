/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Range header (RFC 9110, 14.2), as far as one part of bytes is asked for.
 * Threads: plain values.
 */
#pragma once
#include <stdint.h>

enum range {
    RANGE_NONE,    // none, several, or nothing that can be read: the whole is meant
    RANGE_PART,    // a part that is there
    RANGE_OUTSIDE, // nothing of it is there
};

/* Of something `size` bytes long. `text` may be NULL. Fills *first and *length for RANGE_PART only; the length is not 0. */
enum range range_read(const char *text, uint64_t size, uint64_t *first, uint64_t *length);
