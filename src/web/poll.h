/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long-polls: calls that are answered when a change makes a condition true, or when their time is up. One that waits costs memory
 * and no thread. A client that goes away ends its poll and nothing else. Any front may use it; any number may wait for one thing.
 * Threads: any; looks are taken where they say.
 */
#pragma once
#include "web/call.h"

#define POLL_MAX_MS 290000 // a client gives up on an answer that has no head after 300 s

/* What the looks below are given, for as long as they run. */
struct poll {
    struct call *call;    // of a waiting one: what waiting_call_get gives
    const char *id;       // what is waited for, as the hub knows it
    const void *data;     // the kind's own; NULL: none
    const char *base_url; // of a waiting one; use poll_base_url
};

/* call_base_url of the call, also when it waits. */
const char *poll_base_url(const struct poll *poll);

enum poll_look {
    POLL_ANSWERED,
    POLL_WAITS,     // the condition does not hold yet; never when it is the last look
    POLL_ELSEWHERE, // cannot be told without blocking
};

/*
 * How one kind of thing is looked at. Both answer the call themselves. `is_last`: the time is up, what is now is the answer.
 */
struct poll_kind {
    bool is_patient; // the answer is waited for however long it takes, not only for POLL_MAX_MS
    /* On the loop: must not block. NULL: always elsewhere. */
    enum poll_look (*look_quick)(const struct poll *poll, bool is_last);
    /* On a worker. An enum poll_look, or -1: the front answers with the error. */
    int (*look)(const struct poll *poll, bool is_last, struct error *err);
    /* On the loop, at most once: the client is gone while the call waits. True: what is waited for will end because of that, and
     * is still waited for; else this ends the poll. NULL: it does. */
    bool (*on_gone)(const struct poll *poll);
};

/*
 * Looks at once, and lets the call wait where it has to (wait_ms > 0; at most POLL_MAX_MS). Returns what the handler has to
 * return. On the loop only the quick look is taken. `id` and `size` bytes of data are copied.
 */
int poll_call(struct call *call, const struct poll_kind *kind, const char *id, int64_t wait_ms,
              const void *data, size_t size, struct error *err);
