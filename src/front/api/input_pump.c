/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input by turns: the loop hears of bytes, of room, or of an end, and queues a turn on a worker, which moves what can be moved. Only one of the two has the
 * pump at a time, but for is_posted.
 */
#include "front/api/input_pump.h"

#include "base/mem.h"
#include "core/execution/execution.h"
#include "front/api/api.h"
#include "web/waiting_call.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECE (32u << 10)
#define TURN_BYTES (1u << 20) // then others are let in
#define RETRY_MS 20           // while the queue of the lane is full

struct pump {
    struct waiting_call waiting;
    char id[ID_TEXT];
    bool is_closing;
    struct watch *watch;
    struct loop_timer retry;
    atomic_bool is_posted; // on_change is on its way
    // On the loop:
    bool is_working; // a turn is queued or under way
    bool is_told;    // something changed meanwhile
    bool is_gone;    // nobody waits for the answer
    bool has_ended;  // nothing of it is used by the response any more
    bool is_over;    // nothing but the response and on_change has it any more
    // The turn's:
    char piece[PIECE];
    size_t length, sent; // of the piece
    uint64_t total;
    bool has_more; // it ended for others' sake
    bool is_answered;
};

struct pumped {
    uint64_t bytes;
    bool is_closed;
};
const struct answer_field input_pump_fields[] = {
    {"bytes", ANSWER_NATURAL, offsetof(struct pumped, bytes), .help = "that were taken"},
    {"closed", ANSWER_BOOL, offsetof(struct pumped, is_closed)},
    {0},
};

static void pump_free(struct pump *pump)
{
    waiting_call_clear(&pump->waiting);
    free(pump);
}

// ---- turns, on workers ----

static void fail(struct pump *pump, const struct error *err)
{
    waiting_call_fail(&pump->waiting, err);
    pump->is_answered = true;
}

static void succeed(struct pump *pump)
{
    struct call call = waiting_call_get(&pump->waiting);
    const struct pumped pumped = {pump->total, pump->is_closing};
    struct error err = {0};

    if (pump->is_closing &&
        execution_close_input(call.core->executions, &call.actor, pump->id, &err) < 0) {
        fail(pump, &err);
        return;
    }
    (void)api_answer(&call, 200, input_pump_fields, &pumped);
    pump->is_answered = true;
}

/* Sends what is left of the piece. Whether all of it has gone. */
static bool send_piece(struct pump *pump)
{
    struct core *core = pump->waiting.core;
    struct error err = {0};
    size_t taken = 0;

    // also with nothing to send: it may have ended
    if (execution_write_input(core->executions, &pump->waiting.actor, pump->id,
                              pump->piece + pump->sent, pump->length - pump->sent, &taken,
                              &err) < 0) {
        fail(pump, &err);
        return false;
    }
    pump->sent += taken;
    pump->total += taken;
    return pump->sent == pump->length;
}

/* The next piece of the body. Whether there is one now. */
static bool read_piece(struct pump *pump)
{
    struct error err = {0};
    ssize_t got = body_read(pump->waiting.body, pump->piece, sizeof pump->piece, 0, &err);

    if (got > 0) {
        pump->length = (size_t)got;
        pump->sent = 0;
        return true;
    }
    if (got == 0)
        succeed(pump);
    else if (!error_is(&err, ERROR_TIMEOUT))
        fail(pump, &err);
    return false;
}

static void on_turned(void *data);

static void take_turn(void *data)
{
    struct pump *pump = data;
    uint64_t before = pump->total;

    while (send_piece(pump) && read_piece(pump)) {
        pump->has_more = pump->total - before >= TURN_BYTES;
        if (pump->has_more)
            break;
    }
    loop_post(pump->waiting.loop, on_turned, pump);
}

// ---- the loop ----

static void wake(struct pump *pump)
{
    struct waiting_call *waiting = &pump->waiting;
    struct error ignored = {0};

    if (pump->is_over)
        return;
    pump->is_told = pump->is_working;
    if (pump->is_working)
        return;
    pump->is_working = true;
    pump->has_more = false;
    if (workers_submit_for(waiting->workers, WORKERS_QUICK, &waiting->owner, take_turn, pump,
                           &ignored) == 0)
        return;
    pump->is_working = false;
    loop_timer_set(&pump->retry, RETRY_MS);
}

/* Once nobody has it any more. */
static void free_unused(struct pump *pump)
{
    if (pump->is_over && pump->has_ended && !atomic_load(&pump->is_posted))
        pump_free(pump);
}

static void end(struct pump *pump)
{
    body_watch(pump->waiting.body, NULL, NULL);
    loop_timer_clear(&pump->retry);
    watch_free(take(pump->watch));
    pump->is_over = true;
    free_unused(pump);
}

/* What could be moved was. The rest would be kept for as long as the execution does not read, and so would that of the next who goes. */
static void give_up(struct pump *pump)
{
    struct error err = {0};

    (void)error_set(&err, ERROR_GONE, "the client went away before its input was taken");
    fail(pump, &err);
    end(pump);
}

static void on_turned(void *data)
{
    struct pump *pump = data;

    pump->is_working = false;
    if (pump->is_answered)
        end(pump);
    else if (pump->is_told || pump->has_more)
        wake(pump);
    else if (pump->is_gone)
        give_up(pump);
}

static void on_gone(void *data)
{
    struct pump *pump = data;

    pump->is_gone = true;
    wake(pump); // a last turn
}

static void on_end(void *data, bool is_delivered)
{
    struct pump *pump = data;

    (void)is_delivered;
    pump->has_ended = true;
    free_unused(pump);
}

static const struct response_events events = {.on_gone = on_gone, .on_end = on_end};

static void on_change(void *data)
{
    struct pump *pump = data;

    atomic_store(&pump->is_posted, false);
    wake(pump);
    free_unused(pump);
}

/* From the hub, on any thread: there is room, or it has ended. */
static void on_hub(void *data)
{
    struct pump *pump = data;

    if (!atomic_exchange(&pump->is_posted, true))
        loop_post(pump->waiting.loop, on_change, pump);
}

static void on_wake(void *data)
{
    wake(data);
}

static void begin(void *data)
{
    struct pump *pump = data;

    loop_timer_init(&pump->retry, pump->waiting.loop, on_wake, pump);
    pump->watch = hub_watch(pump->waiting.core->hub, pump->id, on_hub, pump);
    body_watch(pump->waiting.body, on_wake, pump);
    response_watch(pump->waiting.response, &events, pump);
    wake(pump); // it may have ended before it was watched
}

int input_pump_start(struct call *call, const char *id, bool is_closing, struct error *err)
{
    size_t taken = 0;

    if (execution_write_input(call->core->executions, &call->actor, id, "", 0, &taken, err) < 0)
        return -1;
    struct pump *pump = xnew(struct pump);
    waiting_call_init(&pump->waiting, call);
    (void)snprintf(pump->id, sizeof pump->id, "%s", id);
    pump->is_closing = is_closing;
    loop_post(pump->waiting.loop, begin, pump);
    return 0;
}
