/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine of sandboxes: which step leads from which state to which.
 * Pure: it changes the record it is given; who calls writes it to the store.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"
#include "store/sandboxes.h"

enum lifecycle_step {
    STEP_READY,  // its box is up
    STEP_BEGIN,  // an execution begins
    STEP_REST,   // the last execution has ended
    STEP_PAUSE,  // everything in it is being stopped where it is
    STEP_PAUSED, // it is
    STEP_RESUME, // it is being woken; READY or BEGIN follows
    STEP_STOP,   // everything in it is being killed
    STEP_END,    // it is over
    STEP_FAIL,   // it could not be made
    STEP_DELETE,
    LIFECYCLE_STEPS,
};

/* Whether the step can be taken. ERROR_ENDED for a sandbox that is over, else ERROR_STATE. */
int lifecycle_check(const struct sandbox_record *record, enum lifecycle_step step,
                    struct error *err);

/*
 * Takes it: state, reason (copied; the record must own its strings) and the times that go with the state.
 */
int lifecycle_take(struct sandbox_record *record, enum lifecycle_step step, const char *reason,
                   int64_t now, struct error *err);

/* The states from which the step may be taken, as a set: for store_sandbox_update. */
unsigned lifecycle_from(enum lifecycle_step step);
