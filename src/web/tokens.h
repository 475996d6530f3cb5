/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists in a header's value, with commas between: "keep-alive, Upgrade".
 * Threads: plain values.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* The next entry without the blanks around it, and its length; NULL: there is none. `*at` starts as the whole value (NULL: empty). */
const char *tokens_next(const char **at, size_t *length);

/* Whether the word is one of them, in any case. */
bool tokens_have(const char *list, const char *word);
