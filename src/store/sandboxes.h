/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes: what a user owns, with everything asked for, the state it is in and what it has used.
 * Threads: any but loops.
 */
#pragma once
#include "base/command.h"
#include "base/id.h"
#include "base/limits.h"
#include "model/network.h"
#include "model/sandbox.h"
#include "store/store.h"

#define SANDBOX_NO_SLOT (-1)

struct sandbox_record {
    const char *id;
    struct owner owner;
    const char *key_id; // by which it was made
    const char *node;   // that has its box and files; put with NULL: this one

    // As asked for. SANDBOX_PART_ABOUT
    const char *name;
    const char *description;
    const char *metadata;      // JSON
    const char *const *labels; // "name=value", NULL-terminated, or NULL. SANDBOX_PART_LABELS
    // As asked for, never changed.
    const char *scopes;       // JSON
    const char *dependencies; // packed strings: apt packages over its runtime; NULL: none
    const char *packages;     // likewise of npm
    const char *mounts;       // packed strings: directories of the host; NULL: none
    // SANDBOX_PART_ASKED
    const char *asked; // JSON: what a front says back word for word (sizes, durations)
    // SANDBOX_PART_FRONT
    const char *front_data; // JSON: what a front keeps with it
    // Never changed.
    enum sandbox_mode mode;
    const char *runtime;
    const char *snapshot;
    const char *
        layers; // packed strings, top first: what lies between its own files and the runtime; NULL: nothing
    /* argv of its first one; the rest is what every command starts with: env (SANDBOX_PART_ENV, never NULL), timeout (_DEADLINES). */
    struct command command;
    const char *execution_id; // the first execution
    int64_t max_executions;   // at once; 0: any number
    const char *home;

    // SANDBOX_PART_LIMITS; 0: none
    struct limits limits;
    // SANDBOX_PART_NETWORK
    struct network_wish network;
    int64_t network_generation; // how often it was changed
    int64_t port;               // 0: none; nobody writes it yet

    // SANDBOX_PART_DEADLINES; timeouts of 0: never
    int64_t idle_timeout_ms;
    int64_t paused_timeout_ms;
    enum sandbox_on_idle on_idle;
    int64_t active_at;  // when it was last used
    int64_t expires_at; // fixed end of its time
    enum sandbox_on_expiry on_expiry;
    int64_t
        keep_ms; // how long its records and streams are kept once they are of the past; 0: the server's

    // SANDBOX_PART_STATE
    enum sandbox_state state;
    const char *reason; // a word: why it is in this state
    const char *error;  // a sentence, of a failed one
    int64_t exit_code;  // NO_EXIT_CODE until it has one
    int64_t started_at, paused_at, ended_at, deleted_at;
    // SANDBOX_PART_BOX
    int64_t box_slot;    // SANDBOX_NO_SLOT: has no box
    const char *scratch; // where its files are

    // Counted by store_execution_add, store_event_add and store_usage_add; updates leave them alone.
    int64_t execution_count; // executions, without jobs
    int64_t process_count;   // executions and jobs
    int64_t event_count;     // the number of the last event
    int64_t cpu_ms;
    int64_t memory_mib_ms; // MiB × ms: the integral of memory in use over time
    int64_t egress_bytes;
    int64_t network_refused;      // counted by store_network_note
    int64_t counted_cpu_ms;       // how much of its present box's own counter is in cpu_ms
    int64_t counted_egress_bytes; // likewise in egress_bytes
    int64_t counted_at;

    int64_t created_at;
    int64_t updated_at; // every update writes it
};
void sandbox_record_clear(struct sandbox_record *record);
/* A copy with strings of its own; `to` is written over. */
void sandbox_record_copy(struct sandbox_record *to, const struct sandbox_record *from);
#define autosandbox __attribute__((cleanup(sandbox_record_clear))) struct sandbox_record

/* Durable, unless it is one-shot. ERROR_CONFLICT when the id is taken. */
int store_sandbox_put(struct store *store, const struct sandbox_record *record, struct error *err);
int store_sandbox_get(struct store *store, const char *id, struct sandbox_record *out,
                      struct error *err);

/* Groups of fields that are written together. */
enum sandbox_part {
    SANDBOX_PART_STATE = 1 << 0,
    SANDBOX_PART_BOX = 1 << 1,
    SANDBOX_PART_DEADLINES = 1 << 2,
    SANDBOX_PART_ENV = 1 << 3,
    SANDBOX_PART_LIMITS = 1 << 4,
    SANDBOX_PART_NETWORK = 1 << 5,
    SANDBOX_PART_ABOUT = 1 << 6,
    // The state of one that lives before and after: STATE without the times of its end, whose indexes would be written too.
    SANDBOX_PART_LIVING = 1 << 7,
    SANDBOX_PART_LABELS = 1 << 8,
    SANDBOX_PART_ASKED = 1 << 9,
    SANDBOX_PART_FRONT = 1 << 12,
};

/*
 * Writes `parts` of the record, if the stored one is in one of the states `from` (0: any).
 * ERROR_STATE else; nothing is written then.
 */
int store_sandbox_update(struct store *store, const struct sandbox_record *record, unsigned parts,
                         unsigned from, struct error *err);

/* ERROR_EXISTS, noun "name", when another living sandbox of the owner (project or not) has the record's name. In the caller's transaction, so that it is
 * still true when what it writes next is there. */
int store_sandbox_check_name(struct store *store, const struct sandbox_record *record,
                             struct error *err);

/* Which living sandbox of the owner's has this name. ERROR_NOT_FOUND; ERROR_AMBIGUOUS when several have. An owner without a member: of anybody's. */
int store_sandbox_find_name(struct store *store, const struct owner *owner, const char *name,
                            char id[ID_TEXT], struct error *err);
/* The same, but an owner without a member has what is nobody's alone. */
int store_sandbox_find_own_name(struct store *store, const struct owner *owner, const char *name,
                                char id[ID_TEXT], struct error *err);

struct sandbox_list {
    struct sandbox_record *rows;
    size_t count;
    int64_t total;         // of all pages
    struct page_mark next; // where the next page begins; see model/page.h
};
void sandbox_list_clear(struct sandbox_list *list);
#define autosandboxes __attribute__((cleanup(sandbox_list_clear))) struct sandbox_list

int store_sandbox_list(struct store *store, const struct sandbox_filter *filter,
                       struct sandbox_list *out, struct error *err);

/* All of this node that had not ended, oldest first: what a server that starts must look for. Not paged. */
int store_sandbox_list_alive(struct store *store, struct sandbox_list *out, struct error *err);

/* How many of the owner's there are in each state. */
int store_sandbox_count(struct store *store, const struct owner *owner,
                        int64_t counts[SANDBOX_STATES], struct error *err);

/*
 * Forgets up to `limit` sandboxes of this node that ended longer ago than they are kept (keep_ms where a record says nothing else), with
 * their executions and events. Those whose streams are still kept are left for later. *removed is how many went.
 */
int store_sandbox_purge(struct store *store, int64_t now, int64_t keep_ms, int64_t limit,
                        int64_t *removed, struct error *err);
