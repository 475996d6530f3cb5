/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes, as a caller may ask for them. What state follows which is in lifecycle.h. Changes of a sandbox's state are told
 * through the hub under its id. create.h makes them.
 * Threads: any but loops; sandbox_status_quick, sandbox_end_later and sandbox_abandon: any.
 */
#pragma once
#include "core/account/actor.h"
#include "base/error.h"
#include "core/sandbox/sandbox_info.h"

struct sandboxes;

/* ERROR_NOT_FOUND, noun "sandbox"; deleted ones only with with_deleted. */
int sandbox_get(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                bool with_deleted, struct sandbox_info *out, struct error *err);

/* ERROR_NOT_FOUND where the actor's key is not for sandboxes with its labels. Of other keys nothing is looked at. */
int sandbox_check_selected(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                           struct error *err);

/* The id of the one living sandbox that the actor sees and that has this name. ERROR_NOT_FOUND, or ERROR_AMBIGUOUS when several have it; noun "sandbox". */
int sandbox_find_name(struct sandboxes *sandboxes, const struct actor *actor, const char *name,
                      char id[ID_TEXT], struct error *err);

/* What a poll needs. */
struct sandbox_status {
    enum sandbox_state state;
    enum sandbox_mode mode;
    int64_t exit_code; // NO_EXIT_CODE while it has none
    int64_t expires_at;
};
/* Deleted ones too. */
int sandbox_status(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   struct sandbox_status *out, struct error *err);
/* The same from memory alone, without blocking: 1, or 0 where the store would have to be asked. */
int sandbox_status_quick(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                         struct sandbox_status *out);

/* filter->owner is filled in from the actor, but for its project. */
int sandbox_list(struct sandboxes *sandboxes, const struct actor *actor,
                 const struct sandbox_filter *filter, struct sandbox_infos *out, struct error *err);

/* Kills everything in it and makes it deleted; an ended one becomes deleted. Returns when it is certain to go. */
int sandbox_delete(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   struct error *err);

/* Ends it in the background, for this reason (a literal), unless it is over. Never fails, does not block: for loops. */
void sandbox_end_later(struct sandboxes *sandboxes, const char *id, const char *reason);

/* Undoes a create whose answer never reached anybody: ends it, reason "undelivered", unless it has ended by itself. Never
 * fails, does not block: for loops. */
void sandbox_abandon(struct sandboxes *sandboxes, const char *id);

struct env_change {
    const char *name;
    const char *value; // NULL: removed
};
/* For commands started afterwards. out->command.env is what it is then. */
int sandbox_set_env(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                    const struct env_change *changes, size_t n_changes, struct sandbox_info *out,
                    struct error *err);

/*
 * Stops everything in it where it is, in memory, costing no processor; files stay usable. ERROR_STATE, noun "sandbox",
 * unless it is awake. Ends after its paused timeout, if it has one.
 */
int sandbox_pause(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                  struct sandbox_info *out, struct error *err);
/* The same, but its files are all that is kept: what runs in it ends. */
int sandbox_pause_files(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                        struct error *err);
/* Goes on; ERROR_CONFLICT unless it is paused. After a restart of the machine only its files are left, and an event says so. */
int sandbox_resume(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   struct error *err);
