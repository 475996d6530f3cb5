/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request with an Idempotency-Key is answered once: its key is claimed before anything is done, its answer is kept, and whoever sends the
 * same again gets that answer byte for byte. What failed is not kept, so that it can be tried again; nor is what is longer than
 * REPLAY_MAXIMUM or comes in pieces. Where the server ends in between, what the core made once is what the next try finds (call_once).
 * Threads: any but loops; what says so, any.
 */
#pragma once
#include "base/lock.h"
#include "core/account/once.h"
#include "net/response.h"
#include "web/call.h"

#define REPLAY_MAXIMUM (64u << 10)
#define REPLAY_DAY_BYTES                                                                           \
    ((uint64_t)1 << 30) // of all answers that are kept in a day; what is more is not kept

/* What was kept today, by all requests of a front. */
struct replay_budget {
    struct lock lock;
    uint64_t since_ms, bytes;
};
void replay_budget_init(struct replay_budget *budget);
void replay_budget_clear(struct replay_budget *budget);
/* Takes so many bytes of this day's; false: there are not so many left. `now_ms` is of the monotonic clock. */
bool replay_budget_take(struct replay_budget *budget, uint64_t now_ms, uint64_t bytes);

/* The claim of one request; goes with its response. */
struct replay {
    struct accounts *accounts;
    struct replay_budget *budget;
    struct actor actor;
    struct once once; // its texts are ours
    bool is_claimed;
};

/*
 * Claims the request's key, where it has one. Returns 1 when the request was answered before and has been answered again. ERROR_PENDING,
 * ERROR_MISMATCH as once_claim has them.
 */
int replay_begin(struct replay *replay, struct replay_budget *budget, struct call *call,
                 struct error *err);

/* Keeps the answer, or frees the key where it is none to keep. */
void replay_end(struct replay *replay, const struct response_answer *answer);
/* There will be no answer to keep: frees the key. */
void replay_give_up(struct replay *replay);
void replay_clear(struct replay *replay); // any thread; frees no key
