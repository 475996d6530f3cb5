/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the wall clock: they end no sandbox, and let none live for ever. */
#include "core_fixture.h"

#include "base/clock.h"
#include "core/sandbox/file.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DAY_S ((int64_t)24 * 3600)
#define MINUTE_MS 60000

static _Atomic int64_t step_s;

/* The C library's own, but that the wall clock can be moved, for this program alone. */
int clock_gettime(clockid_t which, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, which, now);
    if (which == CLOCK_REALTIME)
        now->tv_sec += step_s;
    return result;
}

static void make(struct sandbox_request request, struct sandbox_info *out)
{
    struct error err = {0};

    request.mode = SANDBOX_INTERACTIVE;
    request.usual.directory = "/home/me";
    CHECK_OK(sandbox_create(core, &actor, &request, out, NULL, &err), err);
}

static enum sandbox_state state_of(const char *id)
{
    struct sandbox_status status;
    struct error err = {0};

    CHECK_OK(sandbox_status(core->sandboxes, &actor, id, &status, &err), err);
    return status.state;
}

/* All deadlines have been looked at since it was called: one that begins now has passed. */
static void await_deadline_of(const char *probe)
{
    const struct sandbox_file file = {.path = "used", .data = "", .length = 0};
    size_t written = 0;
    struct error err = {0};

    CHECK_OK(file_write(core->sandboxes, &actor, probe, &file, 1, &written, &err), err);
    await_state(probe, SANDBOX_ENDED);
}

CORE_TEST(a_step_forward_ends_nothing)
{
    autoclear(sandbox_info) idle = {0}, paused = {0}, expiring = {0}, as_paused = {0}, probe = {0};
    struct error err = {0};

    step_s = 0;
    make((struct sandbox_request){.idle_timeout_ms = 10 * MINUTE_MS}, &idle);
    make((struct sandbox_request){.paused_timeout_ms = 10 * MINUTE_MS}, &paused);
    make((struct sandbox_request){.expires_at = (int64_t)clock_wall_ms() + 10 * MINUTE_MS},
         &expiring);
    CHECK_OK(sandbox_pause(core->sandboxes, &actor, paused.id, &as_paused, &err), err);
    make((struct sandbox_request){.idle_timeout_ms = 3000}, &probe);
    step_s = DAY_S;
    await_deadline_of(probe.id);
    CHECK_INT(state_of(idle.id), SANDBOX_IDLE);
    CHECK_INT(state_of(paused.id), SANDBOX_PAUSED);
    CHECK_INT(state_of(expiring.id), SANDBOX_IDLE);
}

CORE_TEST(a_step_back_lets_nothing_live_for_ever)
{
    autoclear(sandbox_info) idle = {0}, paused = {0}, expiring = {0}, busy = {0}, as_paused = {0};
    autoclear(execution_info) stubborn = {0}, stopped = {0}, end = {0};
    struct error err = {0};

    step_s = 0;
    make((struct sandbox_request){0}, &busy);
    start_in(busy.id, EXECUTION_COMMAND, "trap '' TERM; while :; do sleep 0.1; done", &stubborn);
    make((struct sandbox_request){.idle_timeout_ms = 2000}, &idle);
    make((struct sandbox_request){.paused_timeout_ms = 2000}, &paused);
    make((struct sandbox_request){.expires_at = (int64_t)clock_wall_ms() + 2000}, &expiring);
    CHECK_OK(sandbox_pause(core->sandboxes, &actor, paused.id, &as_paused, &err), err);
    CHECK_OK(
        execution_stop(core->executions, &actor, stubborn.id, NULL, false, NULL, &stopped, &err),
        err);
    step_s = -DAY_S;
    await_state(idle.id, SANDBOX_ENDED);
    await_state(paused.id, SANDBOX_ENDED);
    await_state(expiring.id, SANDBOX_ENDED);
    await_execution(stubborn.id, &end);
    CHECK_INT(end.state, EXECUTION_CANCELLED);
}

CORE_TEST(deadlines_are_worked_out_again_after_a_restart)
{
    autoclear(sandbox_info) past = {0}, future = {0}, paused = {0}, as_paused = {0};
    struct error err = {0};

    step_s = 0;
    make((struct sandbox_request){.expires_at = (int64_t)clock_wall_ms() + 20 * MINUTE_MS}, &past);
    make((struct sandbox_request){.expires_at = (int64_t)clock_wall_ms() + 30 * MINUTE_MS},
         &future);
    make((struct sandbox_request){.paused_timeout_ms = 20 * MINUTE_MS}, &paused);
    CHECK_OK(sandbox_pause(core->sandboxes, &actor, paused.id, &as_paused, &err), err);
    core_free(core);
    core = NULL;
    step_s = 25 * 60; // which is what the wall clock says has passed meanwhile
    open_core_again();
    await_state(past.id, SANDBOX_ENDED);
    await_state(paused.id, SANDBOX_ENDED);
    CHECK_INT(state_of(future.id), SANDBOX_IDLE);
}
