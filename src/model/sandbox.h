/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes in a word: their modes and states, and how to choose among them.
 * Threads: plain values.
 */
#pragma once
#include "model/owner.h"
#include "model/page.h"

#include <stdbool.h>
#include <stdint.h>

enum sandbox_mode {
    SANDBOX_INTERACTIVE, // stays for further commands
    SANDBOX_ONE_SHOT,    // ends with its command
};

enum sandbox_state {
    SANDBOX_CREATING,
    SANDBOX_IDLE,
    SANDBOX_RUNNING, // an execution is in progress
    SANDBOX_PAUSING,
    SANDBOX_PAUSED,
    SANDBOX_RESUMING,
    SANDBOX_STOPPING,
    SANDBOX_ENDED, // from here on ended_at is set
    SANDBOX_FAILED,
    SANDBOX_DELETED, // deleted_at too
    SANDBOX_STATES,
};

/* A set of states: sandbox_in(SANDBOX_IDLE) | sandbox_in(SANDBOX_RUNNING). 0 is any. */
static inline unsigned sandbox_in(enum sandbox_state state)
{
    return 1u << state;
}
#define SANDBOX_ANY ((1u << SANDBOX_STATES) - 1)
#define SANDBOX_OVER ((1u << SANDBOX_ENDED) | (1u << SANDBOX_FAILED) | (1u << SANDBOX_DELETED))
#define SANDBOX_ALIVE (SANDBOX_ANY & ~SANDBOX_OVER)

/* As the store spells it and events tell it; NULL when there is no such state. */
const char *sandbox_state_name(enum sandbox_state state);
extern const char *const sandbox_state_names[]; // by state; ended by NULL

enum sandbox_on_idle {
    SANDBOX_IDLE_ENDS,
    SANDBOX_IDLE_DROPS_BOX, // the files are kept, the next command gets a new box
    SANDBOX_IDLE_PAUSES,    // as if somebody had paused it
};

/* When its time is up. */
enum sandbox_on_expiry {
    SANDBOX_EXPIRY_WAITS,     // it ends when the last command behind that has ended
    SANDBOX_EXPIRY_ENDS,      // it ends, whatever runs in it; a paused one does not
    SANDBOX_EXPIRY_PAUSES,    // it is paused, whatever runs in it
    SANDBOX_EXPIRY_DROPS_BOX, // the same, but its files are all that is kept
};

#define NO_EXIT_CODE (-1)

enum sandbox_sort {
    SANDBOX_BY_CREATED,
    SANDBOX_BY_UPDATED,
    SANDBOX_BY_NAME,
    SANDBOX_BY_STATE,
    SANDBOX_BY_MODE,
    SANDBOX_BY_EXECUTIONS,
};

struct label_selector; // base/label.h

struct sandbox_filter {
    struct owner owner;
    const char *name;
    const char *runtime;
    const char *snapshot;
    const enum sandbox_mode *mode;       // NULL: both
    const struct label_selector *labels; // NULL: any
    unsigned states;                     // 0: all but deleted
    int64_t created_from;                // at or after; 0: from the beginning
    enum sandbox_sort sort;
    bool is_descending;
    struct page page;
};
