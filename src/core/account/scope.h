/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a key may do. Every route names the scope it needs (web/route.h); none contains another.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum key_scope {
    SCOPE_NONE = 0,
    SCOPE_READ = 1 << 0,   // looks at things
    SCOPE_RUN = 1 << 1,    // makes, uses and ends sandboxes; commands and files in them
    SCOPE_MANAGE = 1 << 2, // what outlives sandboxes: snapshots, webhooks, tokens, what is kept
    SCOPE_ADMIN =
        1 << 3, // who may what: keys, quotas, the organisation, the audit record; the machine
    SCOPE_ORGANISATION = 1 << 4, // sees what is anybody's of the organisation; no route needs it
};
#define SCOPES_ALL (SCOPE_READ | SCOPE_RUN | SCOPE_MANAGE | SCOPE_ADMIN | SCOPE_ORGANISATION)
#define SCOPES_USUAL (SCOPE_READ | SCOPE_RUN | SCOPE_MANAGE) // of a key of which nothing was said
#define SCOPES_MADE 5                                        // how many there are

/* Their names in the order of their bits, ended by NULL. */
extern const char *const scope_names[];

/* Of one bit. */
const char *scope_name(enum key_scope scope);

/* A set of these words, ended by NULL. ERROR_INVALID, noun "scope", says which are known. */
int scopes_of(const char *const *words, unsigned *out, struct error *err);

/* "read run", as records have them, and back; words that are not known say nothing. */
#define SCOPES_TEXT 48
const char *scopes_write(unsigned scopes, char text[SCOPES_TEXT]);
unsigned scopes_read(const char *text);

/* The names of those in the set, ended by NULL. */
void scopes_list(unsigned scopes, const char *out[SCOPES_MADE + 1]);
