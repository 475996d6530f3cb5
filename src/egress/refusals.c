/* SPDX-License-Identifier: Apache-2.0 */
/* Records of what was refused: a bounded number a second of each box, the rest counted; see worker.h. */
#include "base/auto.h"
#include "base/mem.h"
#include "egress/worker.h"

#include <string.h>

#define HELD 256      // kinds of refusals that are being counted
#define QUIET_MS 3000 // one like another is told once in this time, with a count
#define RATE 20
#define BURST 50

/* The last record of something, and how often it happened since. */
struct held {
    struct egress_refusal record;
    uint64_t told_ms;
    uint32_t more;
};
struct refusals {
    struct held held[HELD];
    size_t next;
};

static bool is_same(const struct egress_refusal *a, const struct egress_refusal *b)
{
    return a->slot == b->slot && a->kind == b->kind && a->address == b->address &&
           a->port == b->port && a->protocol == b->protocol && a->generation == b->generation &&
           a->would_deny == b->would_deny && strcmp(a->name, b->name) == 0;
}

static void tell(struct worker *worker, const struct egress_refusal *record)
{
    (void)exchange_send(&worker->supervisor, EGRESS_REFUSAL, 0, record, sizeof *record, -1);
}

static struct held *find_held(struct refusals *refusals, const struct egress_refusal *record)
{
    for (size_t i = 0; i < HELD; i++) {
        if (refusals->held[i].record.count && is_same(&refusals->held[i].record, record))
            return &refusals->held[i];
    }
    return NULL;
}

/* Tells of what was counted about an entry, which is free then. */
static void release(struct worker *worker, struct held *held)
{
    if (held->more) {
        held->record.count = held->more;
        tell(worker, &held->record);
    }
    held->record.count = 0;
    held->more = 0;
}

static void note(struct worker *worker, struct box *box, struct egress_refusal *record)
{
    if (!worker->refusals)
        worker->refusals = xnew(struct refusals);
    struct held *held = find_held(worker->refusals, record);
    if (held) {
        held->more++;
        return;
    }
    held = &worker->refusals->held[worker->refusals->next++ % HELD];
    release(worker, held);
    held->record = *record;
    held->told_ms = worker->now_ms;
    if (bucket_take(&box->records, RATE, BURST))
        tell(worker, record);
    else
        held->more = 1;
}

void refusals_flush(struct worker *worker)
{
    for (size_t i = 0; worker->refusals && i < HELD; i++) {
        struct held *held = &worker->refusals->held[i];
        if (held->record.count && worker->now_ms - held->told_ms >= QUIET_MS)
            release(worker, held);
    }
}

void refuse(struct worker *worker, struct box *box, enum egress_refusal_kind kind,
            const struct policy_question *question, const struct policy_verdict *verdict)
{
    struct egress_refusal record = {
        .slot = box->slot,
        .kind = (uint32_t)kind,
        .generation = box->generation,
        .address = question->address,
        .port = question->port,
        .protocol = (uint16_t)question->protocol,
        .count = 1,
        .would_deny = verdict->would_deny,
        .tier = (uint8_t)verdict->tier,
    };

    if (question->name)
        (void)snprintf(record.name, sizeof record.name, "%s", question->name);
    memcpy(record.rule, verdict->rule, sizeof record.rule);
    memcpy(record.reason, verdict->reason, sizeof record.reason);
    memcpy(record.remedy, verdict->remedy, sizeof record.remedy);
    if (!verdict->is_allowed && kind == EGRESS_DNS)
        box->counters.refused_lookups++;
    else if (!verdict->is_allowed)
        box->counters.refused_connections++;
    note(worker, box, &record);
}

void judge(struct worker *worker, struct box *box, enum egress_refusal_kind kind,
           const struct policy_question *question, struct policy_verdict *out)
{
    policy_decide(&box->policy, question, out);
    if (!out->is_allowed || out->would_deny)
        refuse(worker, box, kind, question, out);
}
