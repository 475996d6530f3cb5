/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making sandboxes. Policy is data: how many executions at once, what idleness does, user, home and directory come with the
 * request, so no front's habits are in here.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"
#include "core/execution/execution.h"
#include "core/network/network_change.h"
#include "core/port/port.h"
#include "core/sandbox/mount_wish.h"
#include "core/sandbox/sandbox_info.h"

struct core;

#define SANDBOX_DEFAULT (-1)

struct sandbox_request {
    const char *name; // and below: NULL where not given
    const char *description;
    const char *metadata; // JSON, not read here; likewise scopes and asked
    const char *scopes;
    const char *asked;
    const char *const *labels; // "name=value", NULL-terminated
    bool is_name_unique; // ERROR_EXISTS, noun "name", when a living sandbox of the owner has it
    enum sandbox_mode mode;
    const char *runtime;             // name or name:tag; NULL: the server's
    const char *const *dependencies; // apt packages over the runtime, NULL-terminated; NULL: none
    const char *const *packages;     // npm's, likewise
    const char *snapshot;            // an id; its runtime and environment count then. NULL: none
    const char *fork_of; // an id: starts with the files of this one, see fork.h; NULL: none
    const char *home;    // absolute; becomes HOME; made
    /* What its commands start with, but for argv. The directory is made; timeout_ms may be SANDBOX_DEFAULT. */
    struct command usual;
    const char *else_directory; // where neither that nor the runtime, as an image does, says one
    struct limits limits;       // 0 is the server's default
    int64_t max_executions;     // at once; 0: any number
    int64_t idle_timeout_ms;    // 0: never; SANDBOX_DEFAULT: the server's
    int64_t paused_timeout_ms;
    enum sandbox_on_idle on_idle;
    int64_t expires_at; // when its time is up; 0: never
    enum sandbox_on_expiry on_expiry;
    const char *front_data; // JSON, not read here: what a front keeps with it; NULL: nothing
    int64_t
        keep_ms; // how long records of the past are kept; 0: as long as the server keeps those of other sandboxes
    const struct sandbox_file *files;
    size_t n_files;
    const struct execution_request
        *command; // the first execution; NULL: none. Needed for SANDBOX_ONE_SHOT
    const struct network_wish
        *network_like;                    // as another one has it, without its secrets; NULL: none
    const struct network_change *network; // over that; NULL: nothing
    const struct once *once;              // or NULL
    /* When its runtime has to be built first, which takes minutes. */
    enum {
        CREATE_TRY_AGAIN, // ERROR_NOT_BUILT, and the building goes on: for callers that want one that is ready
        CREATE_GO_ON, // it is there as SANDBOX_CREATING, and becomes ready or fails
    } when_unbuilt;
    const struct port_request *ports; // that are reached from outside
    size_t n_ports;
    const struct mount_wish *mounts; // directories of the host; a fork gets none
    size_t n_mounts;
    struct port_info *exposed; // what became of each, told to the caller; NULL where n_ports is 0
};

/*
 * Makes a sandbox; returns once it is up (but see when_unbuilt), its files are there, its command is started, and all of it is in the database.
 * `first` is filled when there is a command (may be NULL). On failure nothing is left but, where it had got a record, that
 * with state FAILED. ERROR_INVALID; ERROR_NOT_FOUND, noun "runtime"; ERROR_FULL, noun "sandbox".
 */
int sandbox_create(struct core *core, const struct actor *actor,
                   const struct sandbox_request *request, struct sandbox_info *out,
                   struct execution_info *first, struct error *err);
