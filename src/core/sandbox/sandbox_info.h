/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of a sandbox.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "base/command.h"
#include "base/limits.h"
#include "model/network.h"
#include "model/sandbox.h"
#include "model/usage.h"

/* Owns what it points to. NULL is what was not given; times are milliseconds since 1970, 0 for never. */
struct sandbox_info {
    const char *id;
    struct owner owner;
    const char *key_id; // by which it was made
    const char *name;
    const char *description;
    const char *metadata; // JSON, as it was given; likewise scopes
    const char *scopes;
    const char *dependencies, *packages; // packed strings: over its runtime; NULL: none
    const char *mounts;                  // packed: mount_wish.h; NULL: none
    const char *const *labels;           // "name=value", NULL-terminated
    const char *asked;                   // JSON: what the front wanted to say back
    const char *front_data;              // JSON: what a front keeps with it
    enum sandbox_mode mode;
    const char *runtime;
    const char *snapshot;   // the id of what it was made from
    struct command command; // argv of its first one; the rest is what every command starts with
    const char *home;
    const char *execution_id; // of its first command
    int64_t max_executions;   // at once; 0: any number
    struct limits limits;
    struct network_wish network; // without secrets
    int64_t network_generation;
    int64_t network_refused; // how often it was refused a way

    int64_t idle_timeout_ms; // timeouts of 0: never
    int64_t paused_timeout_ms;
    enum sandbox_on_idle on_idle;
    int64_t expires_at;
    enum sandbox_on_expiry on_expiry;
    int64_t keep_ms; // how long records of the past are kept; 0: the server's

    enum sandbox_state state;
    const char *reason; // a word: why it is in this state
    const char *error;  // a sentence, of a failed one
    int64_t exit_code;  // NO_EXIT_CODE until it has one
    int64_t created_at, updated_at, started_at, paused_at, ended_at, deleted_at;
    struct usage_total used; // without jobs
};
void sandbox_info_clear(struct sandbox_info *info);

struct sandbox_infos {
    struct sandbox_info *items;
    size_t count;
    int64_t total;         // of all pages
    struct page_mark next; // where the next page begins; see model/page.h
};
void sandbox_infos_clear(struct sandbox_infos *infos);
