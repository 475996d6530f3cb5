/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes that are alive, and those that ended not long ago, by id. Private to the core.
 * Threads: any; memory work only.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct registry;
struct sandbox;

struct registry *registry_new(void);
void registry_free(struct registry *registry);

/*
 * Adds one that is alive, and counts it for its key and organisation. ERROR_FULL, noun "sandbox", when there are `maximum` already, or
 * `organisation_maximum` (0: any number) of its organisation; ERROR_QUOTA when the actor may have no more. actor NULL: it is there already.
 */
int registry_add(struct registry *registry, struct sandbox *sandbox, const struct actor *actor,
                 unsigned maximum, int64_t organisation_maximum, struct error *err);
/* It is over: no longer counted; found for some time still. is_forgotten: not even that. */
void registry_end(struct registry *registry, struct sandbox *sandbox, bool is_forgotten);
struct sandbox *registry_find(struct registry *registry, const char *id); // a reference, or NULL
unsigned registry_count(const struct registry *registry);                 // alive
/* References to all that it knows; the caller frees each, and the array. */
size_t registry_all(struct registry *registry, struct sandbox ***out);
