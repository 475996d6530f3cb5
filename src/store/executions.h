/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions and jobs: commands a user ran, how they ended and what they took.
 * Threads: any but loops.
 */
#pragma once
#include "base/command.h"
#include "model/execution.h"
#include "store/store.h"

struct execution_record {
    const char *id;
    const char *sandbox_id;
    const char *node; // that runs it; put with NULL: this one
    enum execution_kind kind;
    int64_t number; // its process in the box; 0: store_execution_add gives the next one
    struct owner owner;
    const char *key_id; // by which it was run

    // As asked for, never changed.
    struct command command; // its env is beside the sandbox's
    const char *metadata;   // JSON
    const char *asked;      // JSON: what a front says back
    const char *tag;        // what its caller calls it
    int64_t output_cap_bytes;
    bool has_timestamps;
    const char *stdin_stream; // NULL: none
    // EXECUTION_PART_STREAMS: a queued one has none yet
    const char *stdout_stream;
    const char *stderr_stream;

    bool is_output_expired; // some of it is no longer there; store_stream_remove_expired sets it
    // EXECUTION_PART_STATE; of the exit its cause, code and signal
    enum execution_state state;
    struct execution_exit exit; // what it took is EXECUTION_PART_RESULT
    const char *error;
    int64_t started_at, ended_at;
    // EXECUTION_PART_STOP
    int64_t stop_at; // when it was asked to stop
    const char *stop_reason;

    int64_t created_at;
    int64_t updated_at; // every update writes it
};
void execution_record_clear(struct execution_record *record);
/* A copy with strings of its own; `to` is written over. */
void execution_record_copy(struct execution_record *to, const struct execution_record *from);
#define autoexecution __attribute__((cleanup(execution_record_clear))) struct execution_record

/*
 * Gives the record a number where it has none, and counts it in its sandbox. ERROR_NOT_FOUND, noun "sandbox",
 * without one; ERROR_CONFLICT when the id is taken.
 */
int store_execution_add(struct store *store, struct execution_record *record, struct error *err);
int store_execution_get(struct store *store, const char *id, struct execution_record *out,
                        struct error *err);

enum execution_part {
    EXECUTION_PART_STATE = 1 << 0,
    EXECUTION_PART_STOP = 1 << 1,
    EXECUTION_PART_RESULT = 1 << 2,
    EXECUTION_PART_STREAMS = 1 << 3,
};

/* One that was queued gets record->number, which no other of its sandbox has had. */
int store_execution_renumber(struct store *store, const struct execution_record *record,
                             struct error *err);

/* As store_sandbox_update. */
int store_execution_update(struct store *store, const struct execution_record *record,
                           unsigned parts, unsigned from, struct error *err);

struct execution_list {
    struct execution_record *rows;
    size_t count;
    int64_t total;
    struct page_mark next; // where the next page begins; see model/page.h
};
void execution_list_clear(struct execution_list *list);
#define autoexecutions __attribute__((cleanup(execution_list_clear))) struct execution_list

int store_execution_list(struct store *store, const struct execution_filter *filter,
                         struct execution_list *out, struct error *err);

/* All of this node that had not ended, oldest first. Not paged. */
int store_execution_list_open(struct store *store, struct execution_list *out, struct error *err);

/* How those of the owner went that were made at or after `since`. */
int store_execution_outcomes(struct store *store, const struct owner *owner, int64_t since,
                             struct execution_outcomes *out, struct error *err);

/*
 * Of sandboxes of this node that are alive and have a time of their own for keeping (sandbox_record.keep_ms): forgets up to `limit` that ended
 * longer ago. Their streams expire first, and those whose streams are still there are left for later.
 */
int store_execution_purge(struct store *store, int64_t now, int64_t limit, int64_t *removed,
                          struct error *err);
