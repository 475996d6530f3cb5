/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of texts (argv, environments, facts of an event) as one text for the store: each item ends with a
 * newline; newlines and backslashes in items are escaped by a backslash.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stddef.h>

struct texts {
    char **items; // NULL-terminated
    size_t count;
};

/* `items` is NULL-terminated, or NULL for none. The caller frees the text. */
char *texts_pack(const char *const *items);

/* Packed NULL is an empty list. */
void texts_unpack(const char *packed, struct texts *out);
void texts_clear(struct texts *texts);
#define autotexts __attribute__((cleanup(texts_clear))) struct texts

void texts_add(struct texts *texts, const char *item); // a copy

/* For lists of "NAME=VALUE": sets, replaces or (value NULL) removes. */
void texts_set(struct texts *texts, const char *name, const char *value);
const char *texts_get(const struct texts *texts, const char *name); // NULL: not there
