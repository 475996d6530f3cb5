/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of strings (argv, environments, facts of an event), and the same packed into one text for the store: each item ends with a
 * newline; newlines and backslashes in items are escaped by a backslash.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stddef.h>

struct strings {
    char **items; // NULL-terminated
    size_t count;
};

/* `items` is NULL-terminated, or NULL for none. The caller frees the text. */
char *strings_pack(const char *const *items);

/* Packed NULL is an empty list. */
void strings_unpack(const char *packed, struct strings *out);
void strings_clear(struct strings *strings);
/* The same as a NULL-terminated list in one allocation, to be read only; NULL for packed NULL. One free() gives it back. */
const char *const *strings_list(const char *packed);
/* A copy of a NULL-terminated list, likewise in one allocation; NULL for NULL. */
const char *const *strings_copy(const char *const *items);
#define autostrings __attribute__((cleanup(strings_clear))) struct strings

void strings_add(struct strings *strings, const char *item); // a copy

/* For lists of "NAME=VALUE": sets, replaces or (value NULL) removes. */
void strings_set(struct strings *strings, const char *name, const char *value);
/* Sets each of these pairs, NULL-terminated (or NULL for none), over those that are there. */
void strings_merge(struct strings *strings, const char *const *pairs);
/* ERROR_INVALID when one of these, NULL-terminated (or NULL for none), is not NAME=VALUE. */
int strings_check_env(const char *const *env, struct error *err);
