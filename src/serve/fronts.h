/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fronts of the server: one list, from which all of them are opened and closed.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "serve/config.h"
#include "web/front.h"

/* How one front is made from the settings. */
struct front_entry {
    const struct front *fixed; // one that needs no settings; NULL: `open` makes it
    int (*open)(struct front *front, const struct config *config, struct error *err);
    void (*close)(struct front *front); // also of one that could not be opened; NULL: nothing to do
};

/* All there are, ended by an empty row. The first answers in its words what is nobody's. */
extern const struct front_entry front_entries[];

struct fronts;

/* `config` must stay for as long as they are open. */
int fronts_open(const struct front_entry *entries, const struct config *config, struct fronts **out,
                struct error *err);
void fronts_free(struct fronts *fronts); // no router may use them any more
DEFINE_AUTOPTR(fronts)

/* NULL-terminated, in the order of their entries. */
const struct front *const *fronts_list(const struct fronts *fronts);

/* Asks all of them what they want of the core. */
void fronts_set_defaults(const struct fronts *fronts, struct core_settings *settings);
