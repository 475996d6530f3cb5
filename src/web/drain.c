/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies taken by turns: the loop hears that there is something and queues a turn, the turn takes what is there and goes back to
 * the loop. Only one of the two has the drain at a time.
 */
#include "web/drain.h"

#include "base/mem.h"

#include <stdlib.h>

#define PIECE_BYTES (64u << 10)
#define TURN_BYTES (4u << 20) // then others are let in
#define SLOW_BYTES_A_SECOND 16384
#define RETRY_MS 20 // while the queue of the lane is full; the client is not read from meanwhile

struct drain {
    struct drain_request to;
    struct loop_timer timer;
    bool is_working; // loop only: a turn is queued or under way
    bool is_late;    // nothing came for too long
    uint64_t rested_ms,
        waited_ms; // since when the client is waited for; and how long it was in all
    uint64_t bytes;
};

static void on_over(void *data)
{
    struct drain *drain = data;

    body_watch(drain->to.body, NULL, NULL);
    loop_timer_clear(&drain->timer);
    body_free(drain->to.body);
    free(drain);
}

static void on_body(void *data);

/* A turn is done: waits for what comes next, or has come meanwhile. */
static void on_rest(void *data)
{
    struct drain *drain = data;

    drain->is_working = false;
    drain->rested_ms = loop_now_ms(drain->to.loop);
    if (drain->to.patience_ms)
        loop_timer_set(&drain->timer, drain->to.patience_ms);
    body_watch(drain->to.body, on_body, drain);
}

static void end(struct drain *drain, const struct error *err)
{
    drain->to.sink->on_end(drain->to.data, err);
    loop_post(drain->to.loop, on_over, drain);
}

/* A byte now and then is not enough: what the client was waited for counts, not what it waited for here. */
static bool is_too_slow(const struct drain *drain)
{
    uint64_t allowed_ms = drain->to.patience_ms + drain->bytes * 1000 / SLOW_BYTES_A_SECOND;

    return drain->to.patience_ms && drain->waited_ms > allowed_ms;
}

static void take_turn(void *data)
{
    struct drain *drain = data;
    char piece[PIECE_BYTES];
    struct error err = {0};
    ssize_t length = 1;

    for (size_t taken = 0; taken < TURN_BYTES; taken += (size_t)length) {
        length = body_read(drain->to.body, piece, sizeof piece, 0, &err);
        if (length < 0 && error_is(&err, ERROR_TIMEOUT))
            break;
        if (length <= 0) {
            if (error_is(&err, ERROR_LIMIT))
                (void)error_restate(&err, ERROR_TOO_LARGE, NULL);
            end(drain, length < 0 ? &err : NULL);
            return;
        }
        drain->is_late = false;
        drain->bytes += (uint64_t)length;
        if (drain->to.sink->on_bytes(drain->to.data, piece, (size_t)length, &err) < 0) {
            end(drain, &err);
            return;
        }
    }
    if (drain->is_late) {
        (void)error_set(&err, ERROR_INVALID, "nothing of the body came for %llu seconds",
                        (unsigned long long)drain->to.patience_ms / 1000);
        end(drain, &err);
        return;
    }
    if (is_too_slow(drain)) {
        (void)error_set(&err, ERROR_SLOW, "the body came too slowly: %d KiB a second are needed",
                        SLOW_BYTES_A_SECOND >> 10);
        end(drain, &err);
        return;
    }
    loop_post(drain->to.loop, on_rest, drain);
}

static void queue_turn(struct drain *drain)
{
    struct error err;

    drain->is_working = true;
    if (workers_submit_for(drain->to.workers, WORKERS_SLOW, &drain->to.owner, take_turn, drain,
                           &err) < 0)
        loop_timer_set(&drain->timer, RETRY_MS);
}

static void on_time(void *data)
{
    struct drain *drain = data;

    drain->is_late |= !drain->is_working;
    queue_turn(drain);
}

static void on_body(void *data)
{
    struct drain *drain = data;

    if (drain->is_working)
        return;
    loop_timer_clear(&drain->timer);
    drain->waited_ms += loop_now_ms(drain->to.loop) - drain->rested_ms;
    queue_turn(drain);
}

void drain_start(const struct drain_request *request)
{
    struct drain *drain = xnew(struct drain);

    drain->to = *request;
    (void)body_ref(drain->to.body);
    loop_timer_init(&drain->timer, request->loop, on_time, drain);
    loop_post(request->loop, on_rest, drain);
}
