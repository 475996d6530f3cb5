/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions in a word: their kinds, states and ends, and how to choose among them.
 * Threads: plain values.
 */
#pragma once
#include "model/owner.h"
#include "model/page.h"

#include <stdbool.h>
#include <stdint.h>

enum execution_kind {
    EXECUTION_COMMAND,
    EXECUTION_JOB,      // outlives its caller, does not make the sandbox busy
    EXECUTION_TERMINAL, // the same with a terminal; what that shows is its stdout
    EXECUTION_CONTEXT, // an interpreter that waits for code; what merely waits does not keep a sandbox from being idle
};

/* The tag of a context that a stranger made (core/account/actor.h); one without a key that has it is no run of anybody's. */
#define EXECUTION_STRANGER "stranger"

/* What people call it. */
static inline const char *execution_kind_noun(enum execution_kind kind)
{
    static const char *const nouns[] = {"execution", "job", "terminal", "context"};

    return nouns[kind];
}
/* Under which name events tell its id: that of jobs has a name of its own. */
static inline const char *execution_id_noun(enum execution_kind kind)
{
    return kind == EXECUTION_JOB ? "job" : "execution";
}

enum execution_state {
    EXECUTION_QUEUED,
    EXECUTION_RUNNING,
    EXECUTION_COMPLETED, // from here on ended_at is set
    EXECUTION_FAILED,
    EXECUTION_TIMED_OUT,
    EXECUTION_CANCELLED,
    EXECUTION_STATES,
};

static inline unsigned execution_in(enum execution_state state)
{
    return 1u << state;
}
#define EXECUTION_OPEN ((1u << EXECUTION_QUEUED) | (1u << EXECUTION_RUNNING))

/* As the store spells it and events tell it; NULL when there is no such state. */
const char *execution_state_name(enum execution_state state);
extern const char *const execution_state_names[]; // by state; ended by NULL

/* Why it ended. */
enum execution_cause {
    EXECUTION_NOT_ENDED,
    EXECUTION_EXITED,
    EXECUTION_TIMEOUT,
    EXECUTION_MEMORY,
    EXECUTION_NOT_FOUND,
    EXECUTION_NOT_RUN,
    EXECUTION_BOX_ENDED,
    EXECUTION_STOPPED,
};

/* How it ended, and what it took. */
struct execution_exit {
    enum execution_cause cause;
    int64_t code;                       // -1 until it has one
    int64_t signal;                     // 0: none
    int64_t stdout_bytes, stderr_bytes; // as produced
    bool is_truncated;                  // not all of that was kept
    int64_t cpu_user_us, cpu_system_us, max_rss_bytes;
    int64_t duration_us;
};

struct execution_filter {
    const char *sandbox_id;
    struct owner owner;
    const enum execution_kind *kind; // NULL: all
    unsigned states;                 // 0: all
    bool is_ascending;               // else newest first
    struct page page;
};

/* How many went how. */
struct execution_outcomes {
    int64_t total;
    int64_t succeeded; // exited with 0
    int64_t timed_out;
    int64_t lost; // their box ended under them
    int64_t cancelled;
    int64_t open;
};
