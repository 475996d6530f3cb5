/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers a user knows by name: a file of JSON, $XDG_CONFIG_HOME/burrow/contexts.json, readable by the user alone since keys are in it.
 * Threads: one thread.
 */
#pragma once
#include "burrow.h"

#include <stdbool.h>

/* The directory of what burrow keeps for a user; NULL where there is no home. The caller frees it. */
char *contexts_dir(void);

struct context {
    char *name, *url, *key; // owned; key NULL: none
    bool is_current;
};
void context_clear(struct context *context);
#define autocontext __attribute__((cleanup(context_clear))) struct context

/*
 * The one with this name; NULL: $BURROW_CONTEXT, else the current one. 1; 0 where none was named and none is current; -1 where a name is not
 * known, or the file cannot be read.
 */
int contexts_find(const char *name, struct context *out, struct burrow_error *err);
