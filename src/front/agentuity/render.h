/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core tells, as the clients want to read it. Pure: values in, JSON out. Each writes one object.
 * Threads: one per object.
 */
#pragma once
#include "core/execution/execution.h"
#include "core/account/account.h"
#include "core/snapshot/checkpoint.h"
#include "core/event/event.h"
#include "core/event/event_info.h"
#include "core/execution/execution_info.h"
#include "core/sandbox/sandbox.h"
#include "core/snapshot/snapshot.h"
#include "data/json_writer.h"
#include "web/answer_table.h"

/* The protocol's word for a state. */
const char *render_status(enum sandbox_state state);
/* The states that are called so; 0: no such word. */
unsigned render_states(const char *status);
/* All words, NULL-terminated. */
extern const char *const render_statuses[];

/*
 * The exit code that may be told of a sandbox, or NO_EXIT_CODE. A one-shot one has it as soon as, and only when, it has
 * ended; clients take a missing one for 0, so there always is one then.
 */
int64_t render_exit_code(enum sandbox_mode mode, enum sandbox_state state, int64_t exit_code);

/* A snapshot, and whose it is. */
struct snapshot_view {
    const struct snapshot_info *info;
    const struct organisation_info *organisation; // its owner; or NULL
    const char *organisation_name;                // instead of the record's; or NULL
    const struct snapshot_files *files;           // NULL: not told
    bool is_own; // of who asks: what only its organisation may know is told
};
void render_snapshot(struct json_writer *json, const struct snapshot_view *view);
/* What of it a list of ancestors says. */
void render_ancestor(struct json_writer *json, const struct snapshot_view *view);
/* What a sandbox says of the one it was made from. */
void render_origin(struct json_writer *json, const struct snapshot_view *view);

struct sandbox_view {
    const struct sandbox_info *info;
    const struct snapshot_view *snapshot; // what it was made from; NULL: not known, or a runtime
    const struct execution_info *first;   // its first execution; NULL: none
    const struct organisation_info *organisation;
    const char *organisation_name; // instead of the record's; or NULL
    const char *region;
    const char *base_url;
    const char *url; // of its exposed port, which is
    int64_t port;    // this one; 0: it has none
};
void render_sandbox_entry(struct json_writer *json, const struct sandbox_view *view); // of a list
void render_sandbox(struct json_writer *json, const struct sandbox_view *view);

/* An organisation, for render_organisation_fields; `name` instead of its own, or NULL. */
struct named {
    const char *id, *name;
};
struct named render_organisation(const struct organisation_info *info, const char *name);

/* In the words for executions; see render_job for those for jobs. */
const char *render_execution_status(enum execution_state state);
void render_execution(struct json_writer *json, const struct execution_info *info,
                      const char *base_url);
void render_job(struct json_writer *json, const struct execution_info *info, const char *base_url);

/* What the answer to pausing says. Members, not an object. */
void render_paused(struct json_writer *json, const struct sandbox_info *info);

void render_checkpoint(struct json_writer *json, const struct checkpoint_info *info);

/* The key that something was made with, for render_user_fields. */
struct named render_user(const char *key_id);

void render_event(struct json_writer *json, const struct event_info *info);

/* MiB × ms as bytes × seconds. */
int64_t render_byte_seconds(int64_t mib_ms);

/* A sandbox's state, and how it ended where exit_code is not NO_EXIT_CODE. */
void render_state(struct json_writer *json, const char *id, enum sandbox_state state,
                  int64_t exit_code);

/* What these write, for the rows of routes. */
extern const struct answer_field render_sandbox_fields[], render_entry_fields[],
    render_paused_fields[], render_state_fields[], render_organisation_fields[],
    render_user_fields[], render_execution_fields[], render_job_fields[], render_snapshot_fields[],
    render_ancestor_fields[], render_origin_fields[], render_checkpoint_fields[],
    render_event_fields[];
