/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists and answers of the server by tables: which members are shown, and how. With --json they are printed as they came.
 * Threads: one thread.
 */
#pragma once
#include "cli/invocation.h"
#include "cli/say.h"

enum column_how {
    COLUMN_TEXT,
    COLUMN_AGO,
    COLUMN_SIZE,
    COLUMN_DURATION,
    COLUMN_STATE,
    COLUMN_WORDS,
    COLUMN_TRUTH,
    COLUMN_DAY,   // of a time
    COLUMN_PAIRS, // of a map: "team=blue tier=1"
    COLUMN_JOB, // how a job stands, by its state and exit code; with --json it is the member "status"
};

struct column {
    const char *head; // NULL ends the table; ">" in front: numbers
    const char *path; // of the member: "limits.memoryBytes"
    enum column_how how;
};

/* A page of a list: GET path, its items as a table, or with --json as a list. At most `most` (0: 50). */
int columns_list(struct invocation *invocation, const char *path, uint64_t most,
                 const struct column *columns, struct burrow_error *err);
/* The items of an answer that is there. */
int columns_items(struct invocation *invocation, const struct burrow_value *items,
                  const struct column *columns, struct burrow_error *err);
/* The same of items that were gathered. */
int columns_print(struct invocation *invocation, const struct burrow_value *const *items,
                  size_t count, const struct column *columns, struct burrow_error *err);
/* One thing, a line each. */
int columns_fields(struct invocation *invocation, const struct burrow_value *value,
                   const struct column *columns, struct burrow_error *err);
/* Sends a request and tells its answer by --json, or this sentence. */
int columns_act(struct invocation *invocation, const char *method, const char *path,
                const char *json, const char *sentence, struct burrow_error *err);
/* {"success":true,"id":…} */
int columns_success(const char *id, struct burrow_error *err);
