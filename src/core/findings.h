/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `burrow doctor` finds on this machine, for callers of the server. The probes want a process with one thread, so they run in one of
 * their own: the server's program once more, as `burrow-server probes`, with the rights that the server has.
 * Threads: any but loops.
 */
#pragma once
#include "base/error.h"
#include "base/strings.h"
#include "core/account/actor.h"

struct core;

struct finding {
    const char *name, *purpose;
    const char *state;      // "fine", "degraded", "missing", "unchecked"
    const char *detail;     // what was found
    const char *cost, *fix; // NULL when fine
};
struct findings {
    struct finding *items;
    size_t count;
    struct strings strings; // what the items point into
};
void findings_clear(struct findings *findings);
#define autofindings __attribute__((cleanup(findings_clear))) struct findings

/* Takes about a tenth of a second, and 20 at the most. ERROR_DENIED unless the actor is an admin. */
int findings_get(struct core *core, const struct actor *actor, struct findings *out,
                 struct error *err);

/* The other end: what the process of their own does. Its exit code. */
int findings_print(const char *data_dir, int fd);
