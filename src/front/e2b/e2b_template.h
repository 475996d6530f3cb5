/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: names for what a sandbox starts from. Those that every client expects are one runtime; others are runtimes of the catalog, or
 * snapshots.
 * Threads: any but loops.
 */
#pragma once
#include "front/e2b/e2b_impl.h"

struct e2b_template {
    const char *id;       // as it is told
    bool is_alias;        // a name that every client expects
    const char *runtime;  // or NULL
    const char *snapshot; // an id; or NULL
    const char *metadata; // of that; or NULL
};
/* Texts are the call's. ERROR_NOT_FOUND, noun "template". */
int e2b_template_find(struct call *call, const char *name, struct e2b_template *out,
                      struct error *err);

/* Below which names of sandboxes are; the call's. */
const char *e2b_domain(struct call *call);

/* "ID:default", or "NAME:default" of one with a name: what a snapshot is called; the call's. And back, as snapshot_resolve reads it. */
struct snapshot_info;
const char *e2b_snapshot_name(struct call *call, const struct snapshot_info *info);
int e2b_snapshot_find(struct call *call, const char *name, struct snapshot_info *out,
                      struct error *err);
