/* SPDX-License-Identifier: Apache-2.0 */
/* Records what sandboxes were refused: counters for all of it, events for what is new; see sandbox_network.h. */
#include "core/sandbox/network_refusal.h"

#include "base/clock.h"
#include "base/id_table.h"
#include "base/log.h"
#include "base/log_ids.h"
#include "base/mem.h"
#include "core/event/hub.h"
#include "core/network/outlet.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_event.h"
#include "core/sandbox/sandbox_network.h"
#include "core/sandbox/sandbox_object.h"
#include "store/network_seen.h"

#include <stdio.h>
#include <string.h>

#define AGAIN_MS 60000  // the same is told again
#define PER_MINUTE 20   // events of one sandbox
#define REMEMBERED 1024 // what was told lately, of all sandboxes

/* What was told lately, by a hash; the thread's alone. */
struct told {
    uint32_t hash;
    uint64_t until_ms;
};
struct budget {
    uint32_t sandbox; // a hash of its id
    uint64_t since_ms;
    unsigned count;
};
static uint32_t mix(uint32_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return (hash ^ 0xff) * 16777619u;
}

struct refusals {
    struct sandboxes *sandboxes;
    struct told told[REMEMBERED];
    struct budget budgets[REMEMBERED];
};

/* Two that share a place displace each other: then one is told once more. */
static bool is_new(struct refusals *refusals, const struct outlet_refusal *refusal)
{
    uint32_t id = mix(2166136261u, refusal->sandbox_id);
    uint32_t hash = mix(mix(id, refusal->host), refusal->protocol) + (uint32_t)refusal->port +
                    (refusal->is_refused ? 0x10000u : 0);
    struct told *told = &refusals->told[hash % REMEMBERED];
    struct budget *budget = &refusals->budgets[id % REMEMBERED];
    uint64_t now = clock_monotonic_ms();

    if (told->hash == hash && now < told->until_ms)
        return false;
    if (budget->sandbox != id || now - budget->since_ms >= AGAIN_MS)
        *budget = (struct budget){.sandbox = id, .since_ms = now};
    if (budget->count++ >= PER_MINUTE)
        return false;
    *told = (struct told){hash, now + AGAIN_MS};
    return true;
}

static int tell(struct sandbox *sandbox, const struct outlet_refusal *refusal, int64_t now,
                struct error *err)
{
    struct event event = {
        .type = EVENT_NETWORK, .reason = refusal->is_refused ? "refused" : "observed", .now = now};

    event_fact(&event, "host", refusal->host);
    if (refusal->port)
        event_number(&event, "port", refusal->port);
    event_fact(&event, "protocol", refusal->protocol);
    event_fact(&event, "rule", *refusal->rule ? refusal->rule : NULL);
    event_fact(&event, "tier", *refusal->tier ? refusal->tier : NULL);
    event_fact(&event, "remedy", *refusal->remedy ? refusal->remedy : NULL);
    return event_put(sandbox, &event, err);
}

static int put(struct refusals *refusals, struct sandbox *sandbox,
               const struct outlet_refusal *refusal, bool is_told, struct error *err)
{
    const struct network_seen seen = {
        .sandbox_id = sandbox->id,
        .host = refusal->host,
        .port = refusal->port,
        .protocol = refusal->protocol,
        .is_refused = refusal->is_refused,
        .rule = *refusal->rule ? refusal->rule : NULL,
        .attempts = refusal->attempts > 0 ? refusal->attempts : 1,
        .last_at = (int64_t)clock_wall_ms(),
    };
    struct store *store = refusals->sandboxes->store;
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(store, STORE_FAST, &together, err) == 0 &&
                 store_network_note(store, &seen, err) == 0 &&
                 (!is_told || tell(sandbox, refusal, seen.last_at, err) == 0) &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* A one-shot sandbox has its row once its command runs: what came before that is not lost. */
static void on_refusal(void *data, const struct outlet_refusal *refusal)
{
    struct refusals *refusals = data;
    autoptr(sandbox) sandbox = registry_find(refusals->sandboxes->registry, refusal->sandbox_id);
    struct error err = {0};

    if (!sandbox)
        return;
    (void)sandbox_await_calm(sandbox, &err);
    if (put(refusals, sandbox, refusal, is_new(refusals, refusal), &err) < 0) {
        log_warn("what a sandbox was refused could not be recorded", F_SANDBOX(sandbox->id),
                 F("error", (const char *)err.text));
        return;
    }
    autolock(&sandbox->lock);
    if (refusal->is_refused)
        sandbox->record.network_refused += refusal->attempts > 0 ? refusal->attempts : 1;
}

struct refusals *refusals_new(struct sandboxes *sandboxes)
{
    struct refusals *refusals = xnew(struct refusals);

    refusals->sandboxes = sandboxes;
    outlets_on_refusal(sandboxes->outlets, on_refusal, refusals);
    return refusals;
}

void refusals_free(struct refusals *refusals)
{
    free(refusals);
}
