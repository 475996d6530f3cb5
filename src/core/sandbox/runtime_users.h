/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes runtimes that no sandbox has.
 * Threads: any but loops.
 */
#pragma once
#include "base/error.h"

struct actor;
struct sandboxes;
struct store;

/* runtime_delete of this one ("name:tag"), with the boxes made ahead from it. ERROR_BUSY names the sandboxes that have it. */
int runtime_delete_unused(struct sandboxes *sandboxes, const struct actor *actor,
                          const char *runtime, struct error *err);

/* Without a server: says in an ERROR_BUSY that is about this runtime which sandboxes have it, where the records of any say so. Returns -1. */
int runtime_name_recorded(struct store *store, const char *runtime, struct error *err);
