/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes as this front tells them.
 * Threads: plain values.
 */
#pragma once
#include "core/sandbox/mount_wish.h"
#include "core/sandbox/sandbox_info.h"
#include "web/answer_table.h"

/* What a list has of each, and what of a single one stands beside the rest. */
struct sandbox_entry {
    const char *id, *name, *description, *project, *runtime, *snapshot;
    const char *execution_id, *reason, *error;
    const char *const *labels;
    enum sandbox_mode mode;
    enum sandbox_state state;
    int64_t created_at, updated_at, started_at, paused_at, ended_at, expires_at;
    struct limits limits;
    int64_t idle_timeout_ms, execution_timeout_ms, paused_timeout_ms;
    enum sandbox_on_idle on_idle;
    bool has_exit_code;
    int64_t exit_code, executions;
};

struct sandbox_usage {
    int64_t cpu_ms, memory_byte_seconds, egress_bytes;
};

struct sandbox_answer {
    struct sandbox_entry entry;
    bool is_reached; // of a wait
    const char *metadata, *scopes;
    const char *const *env;
    const char *directory, *user;
    bool has_network;
    struct sandbox_usage used;
    struct answer_list ports; // when it is made
    bool has_ports;
    struct answer_list mounts;
    const char *const *left_out; // of a fork; NULL: nothing
    struct mount_wishes wishes;  // what that is a list of
};

/* Strings are borrowed. */
struct sandbox_entry sandbox_entry_of(const struct sandbox_info *info);
void sandbox_answer_init(struct sandbox_answer *answer, const struct sandbox_info *info);
void sandbox_answer_clear(struct sandbox_answer *answer);

extern const struct answer_field sandbox_entry_fields[];
extern const struct answer_field sandbox_answer_fields[];
extern const struct answer_field sandbox_wait_fields[]; // with "reached"
