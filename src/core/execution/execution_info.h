/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of an execution or a job.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "base/command.h"
#include "model/execution.h"

/* Owns what it points to. NULL is what was not given; times are milliseconds since 1970, 0 for never. */
struct execution_info {
    const char *id;
    const char *sandbox_id;
    enum execution_kind kind;
    int64_t number; // its process in the box
    struct owner owner;

    struct command command; // its environment is beside the sandbox's
    const char *metadata;   // JSON, as it was given
    const char *asked;      // JSON: what the front wanted to say back
    const char *tag;        // what its caller calls it
    int64_t output_cap_bytes;
    bool has_timestamps;
    const char *stdin_stream;
    const char *stdout_stream; // a queued one has none yet
    const char *stderr_stream;
    bool is_output_expired; // some of it was kept for as long as it is, and is gone

    enum execution_state state;
    struct execution_exit exit;
    const char *error; // a sentence
    int64_t created_at, updated_at, started_at, ended_at;
    int64_t stop_at; // when it was asked to stop
    const char *stop_reason;
};
void execution_info_clear(struct execution_info *info);

static inline bool execution_info_is_over(const struct execution_info *info)
{
    return info->state >= EXECUTION_COMPLETED;
}

/* The code it ended with; where it gave none, what a shell would say: 128 + its signal, 127 not found, 126 not to be run, 124
 * after a timeout, 137 when it was stopped, else 1. For one that is over. */
int64_t execution_info_exit_code(const struct execution_info *info);

struct execution_infos {
    struct execution_info *items;
    size_t count;
    int64_t total;         // of all pages
    struct page_mark next; // where the next page begins; see model/page.h
};
void execution_infos_clear(struct execution_infos *infos);
