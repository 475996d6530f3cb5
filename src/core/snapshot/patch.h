/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference of two texts as diff -u writes it, for patch(1) and git apply.
 * Threads: any; does not block.
 */
#pragma once
#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

#define PATCH_MAX_BYTES ((size_t)1 << 20) // of each text
#define PATCH_MAX_LINES 65536u            // likewise

struct patch_text {
    const char *bytes;
    size_t length;
    bool is_missing; // there was, or is, no such file
};

bool patch_is_text(const struct patch_text *text);

/*
 * Adds the patch; nothing where the two are equal. `path` is absolute. The shortest one for up to some thousand changed lines, beyond that
 * perhaps a longer one that does the same. ERROR_LIMIT when a text is too large, or the buffer full: then it may hold a part.
 */
int patch_make(const char *path, const struct patch_text *before, const struct patch_text *after,
               struct buffer *out, struct error *err);
