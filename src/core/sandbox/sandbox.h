/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes, as a caller may ask for them. What state follows which is in lifecycle.h. News of a sandbox's state is told
 * through the hub under its id. Calls block; any thread. Policy is data: how many executions at once, what idleness does,
 * user, home and directory come with the request, so no front's habits are in here.
 */
#pragma once
#include "core/account/actor.h"
#include "core/execution/execution.h"
#include "core/sandbox/sandbox_info.h"

struct core;

#define SANDBOX_DEFAULT (-1)

struct sandbox_request {
    const char *name; // and below: NULL where not given
    const char *description;
    const char *metadata; // JSON, not read here; likewise scopes and asked
    const char *scopes;
    const char *asked;
    enum sandbox_mode mode;
    const char *runtime;           // name or name:tag; NULL: the server's
    const char *snapshot;          // an id; its runtime and environment count then. NULL: none
    const char *box_user;          // NULL: root
    const char *home;              // absolute; becomes HOME; made
    const char *working_directory; // absolute; made
    const char *const *env;        // NAME=VALUE, NULL-terminated; or NULL
    int64_t memory_bytes;          // limits: 0 is the server's default
    int64_t cpu_millicores;
    int64_t disk_bytes;
    int64_t max_processes;
    int64_t max_executions;  // at once; 0: any number
    int64_t idle_timeout_ms; // 0: never; SANDBOX_DEFAULT: the server's
    int64_t execution_timeout_ms;
    int64_t paused_timeout_ms;
    enum sandbox_on_idle on_idle;
    int64_t expires_at; // ends then, or when the last command behind that has ended; 0: never
    int64_t
        keep_ms; // how long records of the past are kept; 0: as long as the server keeps those of other sandboxes
    const struct sandbox_file *files;
    size_t n_files;
    const struct execution_request
        *command;            // the first execution; NULL: none. Needed for SANDBOX_ONE_SHOT
    const struct once *once; // or NULL
};

/*
 * Makes a sandbox; returns once it is up, its files are there, its command is started, and all of it is in the database.
 * `first` is filled when there is a command (may be NULL). On failure nothing is left but, where it had got a record, that
 * with state FAILED. ERROR_INVALID; ERROR_NOT_FOUND, noun "runtime"; ERROR_LIMIT, noun "sandbox", reason "full".
 */
int sandbox_create(struct core *core, const struct actor *actor,
                   const struct sandbox_request *request, struct sandbox_info *out,
                   struct execution_info *first, struct error *err);

/* ERROR_NOT_FOUND, noun "sandbox"; deleted ones only with with_deleted. */
int sandbox_get(struct core *core, const struct actor *actor, const char *id, bool with_deleted,
                struct sandbox_info *out, struct error *err);

/* What a poll needs. */
struct sandbox_status {
    enum sandbox_state state;
    enum sandbox_mode mode;
    int64_t exit_code; // NO_EXIT_CODE while it has none
    int64_t expires_at;
};
/* Deleted ones too. */
int sandbox_status(struct core *core, const struct actor *actor, const char *id,
                   struct sandbox_status *out, struct error *err);
/* The same from memory alone, without blocking: 1, or 0 where the store would have to be asked. */
int sandbox_status_quick(struct core *core, const struct actor *actor, const char *id,
                         struct sandbox_status *out);

/* filter->owner is filled in from the actor, but for its project. */
int sandbox_list(struct core *core, const struct actor *actor, const struct sandbox_filter *filter,
                 struct sandbox_infos *out, struct error *err);

/* Kills everything in it and makes it deleted; an ended one becomes deleted. Returns when it is certain to go. */
int sandbox_delete(struct core *core, const struct actor *actor, const char *id, struct error *err);

/* Undoes a create whose answer never reached anybody: ends it, reason "undelivered", unless it has ended by itself. Never
 * fails, does not block: for loops. */
void sandbox_abandon(struct core *core, const char *id);

struct env_change {
    const char *name;
    const char *value; // NULL: removed
};
/* For commands started afterwards. out->command.env is what it is then. */
int sandbox_set_env(struct core *core, const struct actor *actor, const char *id,
                    const struct env_change *changes, size_t n_changes, struct sandbox_info *out,
                    struct error *err);

/*
 * Stops everything in it where it is, in memory, costing no processor; files stay usable. ERROR_CONFLICT, noun "sandbox", reason "state",
 * unless it is awake. Ends after its paused timeout, if it has one.
 */
int sandbox_pause(struct core *core, const struct actor *actor, const char *id,
                  struct sandbox_info *out, struct error *err);
/* Goes on; ERROR_CONFLICT unless it is paused. After a restart of the machine only its files are left, and an event says so. */
int sandbox_resume(struct core *core, const struct actor *actor, const char *id, struct error *err);
