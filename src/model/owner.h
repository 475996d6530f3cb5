/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose something is.
 * Threads: plain values.
 */
#pragma once
#include <stdlib.h>

/* Organisation is never NULL; the others may be. As a filter, NULL matches all. */
struct owner {
    const char *organisation;
    const char *tenant;
    const char *scope;
    const char *project;
    const char *member; // a person or service of the organisation: whose key made it
};

/* For one that owns its strings. */
static inline void owner_clear(struct owner *owner)
{
    free((char *)owner->organisation);
    free((char *)owner->tenant);
    free((char *)owner->scope);
    free((char *)owner->project);
    free((char *)owner->member);
    *owner = (struct owner){0};
}

/* Moves the strings to the caller. */
static inline struct owner owner_take(struct owner *from)
{
    struct owner taken = *from;

    *from = (struct owner){0};
    return taken;
}
