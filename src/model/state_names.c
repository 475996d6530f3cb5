/* SPDX-License-Identifier: Apache-2.0 */
/* The words for the states of sandboxes and executions; see sandbox.h and execution.h. */
#include "model/execution.h"
#include "model/sandbox.h"

#include <stddef.h>

const char *const sandbox_state_names[] = {
    [SANDBOX_CREATING] = "creating",
    [SANDBOX_IDLE] = "idle",
    [SANDBOX_RUNNING] = "running",
    [SANDBOX_PAUSING] = "pausing",
    [SANDBOX_PAUSED] = "paused",
    [SANDBOX_RESUMING] = "resuming",
    [SANDBOX_STOPPING] = "stopping",
    [SANDBOX_ENDED] = "ended",
    [SANDBOX_FAILED] = "failed",
    [SANDBOX_DELETED] = "deleted",
    NULL,
};

const char *const execution_state_names[] = {
    [EXECUTION_QUEUED] = "queued",
    [EXECUTION_RUNNING] = "running",
    [EXECUTION_COMPLETED] = "completed",
    [EXECUTION_FAILED] = "failed",
    [EXECUTION_TIMED_OUT] = "timed_out",
    [EXECUTION_CANCELLED] = "cancelled",
    NULL,
};

const char *sandbox_state_name(enum sandbox_state state)
{
    return (unsigned)state < SANDBOX_STATES ? sandbox_state_names[state] : NULL;
}

const char *execution_state_name(enum execution_state state)
{
    return (unsigned)state < EXECUTION_STATES ? execution_state_names[state] : NULL;
}
