/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of a sandbox while it lives: what it is called, its labels and environment, its limits and its deadlines, all in one call.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"
#include "core/network/network_change.h"
#include "core/sandbox/sandbox.h"

struct core_settings;
struct sandbox_record;

/* All zero changes nothing. */
struct sandbox_changes {
    bool has_name, has_description, has_metadata; // whether the next three are said
    const char *name, *description, *metadata;    // NULL: none from now on
    bool
        is_name_unique; // ERROR_EXISTS, noun "name", when another living sandbox of the owner has it
    const struct env_change *labels; // NULL as a value removes; others stay
    size_t n_labels;
    const struct env_change *env; // likewise, for commands started afterwards
    size_t n_env;
    struct limits limits; // 0: stays as it is; see sandbox_limits.h for what is refused
    bool has_idle_timeout, has_execution_timeout, has_paused_timeout, has_expires_at, has_on_idle;
    int64_t idle_timeout_ms, execution_timeout_ms, paused_timeout_ms; // 0: never
    int64_t expires_at;                                               // 0: never
    enum sandbox_on_idle on_idle;
    const struct network_change *network; // NULL: stays as it is; see sandbox_network.h
    const char *front_data;               // NULL: stays as it is
    /* Where not NULL: called with the sandbox as it is while nobody else changes it; -1 with *err refuses. */
    int (*check)(void *data, const struct sandbox_info *now, struct error *err);
    void *check_data;
};

/*
 * Makes all of these changes, or none: in one transaction with an event that names them. New deadlines count from when the sandbox was used last, which is
 * now. *out is what it is then. ERROR_ENDED, noun "sandbox", for one that is over.
 */
int sandbox_modify(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   const struct sandbox_changes *changes, struct sandbox_info *out,
                   struct error *err);

/* The same to a record that owns its strings and is nowhere yet; *parts are those of the store that differ. Private to the core. */
int sandbox_changes_apply(const struct core_settings *settings,
                          const struct sandbox_changes *changes, struct sandbox_record *record,
                          unsigned *parts, struct error *err);

/* What a name may be that stands for an id: "must be …", or NULL. */
const char *sandbox_name_fault(const char *name);
