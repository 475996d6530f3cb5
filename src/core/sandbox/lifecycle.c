/* SPDX-License-Identifier: Apache-2.0 */
/* The table of states and steps; see lifecycle.h. */
#include "core/sandbox/lifecycle.h"

#include "base/auto.h"

#include <stdlib.h>
#include <string.h>

#define NO SANDBOX_STATES // the step cannot be taken

static const enum sandbox_state table[SANDBOX_STATES][LIFECYCLE_STEPS] = {
    // clang-format off
    //                    READY            BEGIN            REST             PAUSE            PAUSED           RESUME           STOP             END              FAIL             DELETE
    [SANDBOX_CREATING]  = {SANDBOX_IDLE, SANDBOX_RUNNING, NO, NO, NO, NO, SANDBOX_STOPPING, SANDBOX_ENDED, SANDBOX_FAILED, SANDBOX_DELETED},
    [SANDBOX_IDLE]      = {NO, SANDBOX_RUNNING, SANDBOX_IDLE, SANDBOX_PAUSING, NO, NO, SANDBOX_STOPPING, SANDBOX_ENDED, NO, SANDBOX_DELETED},
    [SANDBOX_RUNNING]   = {NO, SANDBOX_RUNNING, SANDBOX_IDLE, SANDBOX_PAUSING, NO, NO, SANDBOX_STOPPING, SANDBOX_ENDED, NO, SANDBOX_DELETED},
    [SANDBOX_PAUSING]   = {SANDBOX_IDLE, SANDBOX_RUNNING, NO, NO, SANDBOX_PAUSED, NO, SANDBOX_STOPPING, SANDBOX_ENDED, NO, SANDBOX_DELETED},
    [SANDBOX_PAUSED]    = {NO, NO, NO, NO, NO, SANDBOX_RESUMING, SANDBOX_STOPPING, SANDBOX_ENDED, NO, SANDBOX_DELETED},
    [SANDBOX_RESUMING]  = {SANDBOX_IDLE, SANDBOX_RUNNING, NO, NO, SANDBOX_PAUSED, NO, SANDBOX_STOPPING, SANDBOX_ENDED, NO, SANDBOX_DELETED},
    [SANDBOX_STOPPING]  = {NO, NO, NO, NO, NO, NO, NO, SANDBOX_ENDED, NO, SANDBOX_DELETED},
    [SANDBOX_ENDED]     = {NO, NO, NO, NO, NO, NO, NO, NO, NO, SANDBOX_DELETED},
    [SANDBOX_FAILED]    = {NO, NO, NO, NO, NO, NO, NO, NO, NO, SANDBOX_DELETED},
    [SANDBOX_DELETED]   = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO},
    // clang-format on
};

static const char *const doing[LIFECYCLE_STEPS] = {
    [STEP_READY] = "become ready", [STEP_BEGIN] = "run a command",
    [STEP_REST] = "rest",          [STEP_PAUSE] = "be paused",
    [STEP_PAUSED] = "be paused",   [STEP_RESUME] = "be resumed",
    [STEP_STOP] = "be stopped",    [STEP_END] = "end",
    [STEP_FAIL] = "fail",          [STEP_DELETE] = "be deleted",
};

int lifecycle_check(const struct sandbox_record *record, enum lifecycle_step step,
                    struct error *err)
{
    if (table[record->state][step] != NO)
        return 0;
    if (sandbox_in(record->state) & SANDBOX_OVER)
        return error_refuse(err, ERROR_ENDED, "sandbox", "the sandbox has ended%s%s",
                            record->reason ? ": " : "", record->reason ? record->reason : "");
    return error_refuse(err, ERROR_STATE, "sandbox", "a sandbox that is %s cannot %s",
                        sandbox_state_name(record->state), doing[step]);
}

static void set_reason(struct sandbox_record *record, const char *reason)
{
    if (record->reason == reason)
        return;
    free((char *)record->reason);
    record->reason = reason ? strdup(reason) : NULL;
}

int lifecycle_take(struct sandbox_record *record, enum lifecycle_step step, const char *reason,
                   int64_t now, struct error *err)
{
    if (lifecycle_check(record, step, err) < 0)
        return -1;
    enum sandbox_state next = table[record->state][step];
    if (record->started_at == 0 && (next == SANDBOX_IDLE || next == SANDBOX_RUNNING))
        record->started_at = now;
    if (record->ended_at == 0 && (sandbox_in(next) & SANDBOX_OVER))
        record->ended_at = now;
    if (next == SANDBOX_PAUSED && record->state == SANDBOX_PAUSING)
        record->paused_at = now;
    if (next == SANDBOX_IDLE || next == SANDBOX_RUNNING)
        record->paused_at = 0;
    if (next == SANDBOX_DELETED)
        record->deleted_at = now;
    if (next != SANDBOX_DELETED || !(sandbox_in(record->state) & SANDBOX_OVER))
        set_reason(record, reason); // why it ended stays known when it is deleted later
    record->state = next;
    return 0;
}

unsigned lifecycle_from(enum lifecycle_step step)
{
    unsigned set = 0;
    for (unsigned state = 0; state < SANDBOX_STATES; state++)
        set |= table[state][step] == NO ? 0 : 1u << state;
    return set;
}
