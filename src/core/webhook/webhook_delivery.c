/* SPDX-License-Identifier: Apache-2.0 */
/* What webhooks are told, and what becomes of it; see webhook_delivery.h. */
#include "core/webhook/webhook_delivery.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "core/account/key.h"
#include "core/event/event.h"
#include "core/event/event_kind.h"
#include "core/webhook/webhook_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_MS 1000
#define LONGEST_MS ((int64_t)3600 * 1000)
#define DOUBLINGS 12 // until it is longer than the longest
#define GAVE_UP "nothing could be delivered for a day"
#define KEY_ENDED "its key was revoked or has expired"
#define KEY_BLIND "its key may not read all events of its owner any more"

int webhooks_enabled(struct webhooks *webhooks, struct webhook_infos *out, unsigned *version,
                     struct error *err)
{
    autowebhooks found = {0};

    *version = atomic_load(&webhooks->changes);
    if (store_webhook_list_enabled(webhooks->store, &found, err) < 0)
        return -1;
    *out = (struct webhook_infos){.items = xcalloc(found.count + 1, sizeof *out->items),
                                  .count = found.count};
    for (size_t i = 0; i < found.count; i++)
        webhook_info_take(&out->items[i], &found.rows[i]);
    return 0;
}

unsigned webhooks_version(struct webhooks *webhooks)
{
    return atomic_load(&webhooks->changes);
}

void webhooks_on_change(struct webhooks *webhooks, void (*fn)(void *data), void *data)
{
    autolock(&webhooks->lock);
    webhooks->on_change = fn;
    webhooks->on_change_data = data;
}

// ---- which ----

static bool is_same_or_any(const char *wanted, const char *is)
{
    return !wanted || (is && strcmp(wanted, is) == 0);
}

static bool may_see(const struct owner *filter, const struct owner *owner)
{
    return is_same_or_any(filter->organisation, owner->organisation) &&
           is_same_or_any(filter->tenant, owner->tenant) &&
           is_same_or_any(filter->scope, owner->scope) &&
           is_same_or_any(filter->member, owner->member);
}

static bool is_test_of(const struct webhook_info *hook, const struct event_info *event)
{
    static const char name[] = "webhook=";

    for (const char *const *fact = event->facts; fact && *fact; fact++) {
        if (strncmp(*fact, name, sizeof name - 1) == 0)
            return strcmp(*fact + sizeof name - 1, hook->id) == 0;
    }
    return false;
}

bool webhook_wants(const struct webhook_info *hook, const struct event_info *event)
{
    char spare[EVENT_KIND];
    const char *kind = event_kind(event, spare);

    if (!may_see(&hook->owner, &event->owner))
        return false;
    if (strcmp(kind, "webhook.test") == 0)
        return is_test_of(hook, event);
    return is_same_or_any(hook->sandbox_id, event->sandbox_id) &&
           event_patterns_match(hook->kinds, kind);
}

// ---- what became of it ----

int64_t webhook_backoff_ms(int64_t attempts, uint32_t chance)
{
    int64_t doublings = attempts < 1 ? 0 : attempts > DOUBLINGS ? DOUBLINGS : attempts - 1;
    int64_t longest = FIRST_MS << doublings;

    if (longest > LONGEST_MS)
        longest = LONGEST_MS;
    return longest / 2 + (int64_t)((uint64_t)(longest / 2) * chance / UINT32_MAX);
}

const char *delivery_id(const struct webhook_info *hook, char text[DELIVERY_ID])
{
    (void)snprintf(text, DELIVERY_ID, "%s-%" PRId64, hook->id, hook->delivery_count + 1);
    return text;
}

static uint32_t any_chance(void)
{
    uint32_t chance = 0;

    (void)getrandom(&chance, sizeof chance, 0);
    return chance;
}

static enum delivery_state judge(struct webhook_info *next, const struct delivery_attempt *attempt,
                                 int64_t now)
{
    next->attempts++;
    if (attempt->is_delivered) {
        next->event_cursor = attempt->event_number;
        next->delivery_count++;
        next->attempts = next->failing_since = next->next_at = 0;
        return DELIVERY_DELIVERED;
    }
    if (!next->failing_since)
        next->failing_since = attempt->started_at;
    next->next_at = now + webhook_backoff_ms(next->attempts, any_chance());
    if (!attempt->is_final && now - next->failing_since < WEBHOOK_GIVE_UP_MS)
        return DELIVERY_FAILING;
    next->is_enabled = false;
    return DELIVERY_FAILED;
}

static struct webhook_record progress_of(const struct webhook_info *hook, const char *reason)
{
    return (struct webhook_record){
        .id = hook->id,
        .event_cursor = hook->event_cursor,
        .attempts = hook->attempts,
        .failing_since = hook->failing_since,
        .next_at = hook->next_at,
        .delivery_count = hook->delivery_count,
        .is_enabled = hook->is_enabled,
        .disabled_reason = hook->is_enabled ? NULL : reason,
    };
}

static int put_disabled(struct webhooks *webhooks, const struct webhook_info *hook,
                        const char *reason, int64_t now, struct error *err)
{
    struct event event = {.type = EVENT_WEBHOOK, .reason = "disabled", .now = now};

    if (hook->is_enabled)
        return 0;
    event_fact(&event, "webhook", hook->id);
    event_fact(&event, "error", reason);
    return event_write(webhooks->store, NULL, &hook->owner, &event, err);
}

static int put_all(struct webhooks *webhooks, const struct webhook_info *next,
                   const struct delivery_record *delivery, const char *reason, struct error *err)
{
    const struct webhook_record progress = progress_of(next, reason);
    struct store *store = webhooks->store;
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(store, STORE_FAST, &together, err) == 0 &&
                 store_webhook_progress(store, &progress, err) == 0 &&
                 store_delivery_put(store, delivery, DELIVERIES_KEPT, err) == 0 &&
                 put_disabled(webhooks, next, reason, delivery->updated_at, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

static int turn_off(struct webhooks *webhooks, struct webhook_info *hook, const char *reason,
                    struct error *err)
{
    struct webhook_info next = *hook; // strings are borrowed
    struct store *store = webhooks->store;
    int64_t now = (int64_t)clock_wall_ms();
    autotransaction together = {0};
    bool is_put;

    next.is_enabled = false;
    const struct webhook_record progress = progress_of(&next, reason);
    do
        is_put = store_begin(store, STORE_FAST, &together, err) == 0 &&
                 store_webhook_progress(store, &progress, err) == 0 &&
                 put_disabled(webhooks, &next, reason, now, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    if (!is_put)
        return error_wrap(err, "turn off webhook '%s'", hook->id);
    hook->is_enabled = false;
    return 0;
}

int webhook_admit(struct webhooks *webhooks, struct webhook_info *hook, struct actor *out,
                  bool *is_off, struct error *err)
{
    const char *key_id = hook->key_id ? hook->key_id : "";

    *is_off = false;
    if (key_check_id(webhooks->accounts, key_id, out, err) < 0) {
        if (!error_is(err, ERROR_UNAUTHORIZED))
            return -1;
        *err = (struct error){0};
        *is_off = true;
        return turn_off(webhooks, hook, KEY_ENDED, err);
    }
    // Which labels the sandbox of an event has is not known here.
    *is_off = !(out->scopes & SCOPE_READ) || *out->selector || out->tools;
    return *is_off ? turn_off(webhooks, hook, KEY_BLIND, err) : 0;
}

int webhook_settle(struct webhooks *webhooks, struct webhook_info *hook,
                   const struct delivery_attempt *attempt, struct error *err)
{
    struct webhook_info next = *hook; // strings are borrowed
    int64_t now = (int64_t)clock_wall_ms();
    char id[DELIVERY_ID];
    enum delivery_state state = judge(&next, attempt, now);
    const struct delivery_record delivery = {
        .id = delivery_id(hook, id),
        .webhook_id = hook->id,
        .number = hook->delivery_count + 1,
        .event_serial = attempt->event_number,
        .event_kind = attempt->event_kind,
        .state = state,
        .status = attempt->status,
        .attempts = hook->attempts + 1,
        .error = attempt->error,
        .duration_ms = attempt->duration_ms,
        .created_at = hook->failing_since ? hook->failing_since : attempt->started_at,
        .updated_at = now,
    };
    const char *reason = attempt->is_final ? attempt->error : GAVE_UP;

    if (put_all(webhooks, &next, &delivery, reason, err) < 0)
        return error_wrap(err, "record a delivery to webhook '%s'", hook->id);
    *hook = next;
    return 0;
}

int webhook_pass(struct webhooks *webhooks, struct webhook_info *hook, int64_t cursor, bool is_lost,
                 struct error *err)
{
    struct webhook_info next = *hook;
    int64_t now = (int64_t)clock_wall_ms();
    char id[DELIVERY_ID], text[128];
    const struct delivery_record lost = {
        .id = delivery_id(hook, id),
        .webhook_id = hook->id,
        .number = hook->delivery_count + 1,
        .event_serial = cursor,
        .event_kind = "*",
        .state = DELIVERY_FAILED,
        .error = text,
        .created_at = now,
        .updated_at = now,
    };

    (void)snprintf(text, sizeof text,
                   "events %" PRId64 " to %" PRId64 " were forgotten before they could be told",
                   hook->event_cursor + 1, cursor);
    next.event_cursor = cursor;
    next.delivery_count += is_lost;
    const struct webhook_record progress = progress_of(&next, NULL);
    if ((is_lost ? put_all(webhooks, &next, &lost, NULL, err)
                 : store_webhook_progress(webhooks->store, &progress, err)) < 0)
        return error_wrap(err, "record where webhook '%s' is", hook->id);
    *hook = next;
    return 0;
}
