/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks; see webhook.h. */
#include "core/webhook/webhook.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "core/event/channel.h"
#include "core/event/event.h"
#include "core/event/event_kind.h"
#include "core/webhook/webhook_impl.h"
#include "core/webhook/webhook_url.h"

#include <string.h>

struct webhooks *webhooks_new(const struct core_settings *settings, struct store *store,
                              struct accounts *accounts, struct event_channel *events)
{
    struct webhooks *webhooks = xnew(struct webhooks);

    webhooks->settings = settings;
    webhooks->store = store;
    webhooks->accounts = accounts;
    webhooks->events = events;
    lock_init(&webhooks->lock, LOCK_WEBHOOKS);
    return webhooks;
}

void webhooks_free(struct webhooks *webhooks)
{
    if (!webhooks)
        return;
    lock_clear(&webhooks->lock);
    free(webhooks);
}

void webhooks_changed(struct webhooks *webhooks)
{
    atomic_fetch_add(&webhooks->changes, 1);
    autolock(&webhooks->lock);
    if (webhooks->on_change)
        webhooks->on_change(webhooks->on_change_data);
}

// ---- what is wanted ----

static int check_kinds(const char *const *kinds, struct error *err)
{
    size_t count = 0;

    for (; kinds && *kinds; kinds++) {
        if (++count > WEBHOOK_KINDS)
            (void)error_refuse(err, ERROR_INVALID, "webhook", "kinds: at most %d", WEBHOOK_KINDS);
        else if (event_pattern_is_known(*kinds))
            continue;
        else
            (void)error_refuse(err, ERROR_INVALID, "webhook",
                               "kinds: no event is called '%.60s': sandbox.created, "
                               "execution.ended, snapshot.* …",
                               *kinds);
        return error_field(err, "kinds");
    }
    return 0;
}

static int check(const struct webhooks *webhooks, const struct webhook_request *request,
                 struct error *err)
{
    if (request->name && (strlen(request->name) > WEBHOOK_NAME ||
                          !utf8_is_valid(request->name, strlen(request->name)))) {
        (void)error_refuse(err, ERROR_INVALID, "webhook", "name: at most %d bytes", WEBHOOK_NAME);
        return error_field(err, "name");
    }
    if (request->url &&
        webhook_url_check(request->url, webhooks->settings->is_webhook_http_allowed, err) < 0)
        return -1;
    return check_kinds(request->kinds, err);
}

static int refuse_more(int64_t count, int64_t most, struct error *err)
{
    return error_refuse(err, ERROR_FULL, "webhook",
                        "there are %lld webhooks already, and may be %lld: remove one",
                        (long long)count, (long long)most);
}

/* One owner leaves room for others. */
static int check_room(struct webhooks *webhooks, const struct owner *owner, struct error *err)
{
    struct webhook_counts counts = {0};

    if (store_webhook_count(webhooks->store, owner, &counts, err) < 0)
        return -1;
    if (counts.member >= WEBHOOKS_OF_OWNER)
        return refuse_more(counts.member, WEBHOOKS_OF_OWNER, err);
    if (counts.organisation >= WEBHOOKS_OF_ORGANISATION)
        return refuse_more(counts.organisation, WEBHOOKS_OF_ORGANISATION, err);
    return counts.all < WEBHOOKS_OF_ALL ? 0 : refuse_more(counts.all, WEBHOOKS_OF_ALL, err);
}

static void make_secret(char secret[sizeof WEBHOOK_SECRET_PREFIX + WEBHOOK_SECRET_LETTERS])
{
    memcpy(secret, WEBHOOK_SECRET_PREFIX, sizeof WEBHOOK_SECRET_PREFIX);
    id_make_letters(secret + sizeof WEBHOOK_SECRET_PREFIX - 1, WEBHOOK_SECRET_LETTERS);
}

static const char *none_if_empty(const char *text)
{
    return text && *text ? text : NULL;
}

// ---- for fronts ----

int webhook_create(struct webhooks *webhooks, const struct actor *actor,
                   const struct webhook_request *request, struct webhook_info *out,
                   struct error *err)
{
    char id[ID_TEXT], secret[sizeof WEBHOOK_SECRET_PREFIX + WEBHOOK_SECRET_LETTERS];
    int64_t now = (int64_t)clock_wall_ms();
    struct event_range range;
    autowebhook stored = {0};

    const struct owner owner = actor_filter(actor);

    if (check(webhooks, request, err) < 0 || check_room(webhooks, &owner, err) < 0 ||
        event_range(webhooks->events, &range, err) < 0)
        return -1;
    make_secret(secret);
    const struct webhook_record record = {
        .id = id_make(id),
        .owner = owner,
        .key_id = none_if_empty(actor->key_id),
        .name = request->name,
        .url = request->url,
        .secret = secret,
        .kinds = request->kinds ? request->kinds : (const char *const[]){NULL},
        .sandbox_id = none_if_empty(request->sandbox_id),
        .is_enabled = !request->is_enabled || *request->is_enabled,
        .event_cursor = range.last,
        .created_at = now,
        .updated_at = now,
    };
    if (store_webhook_put(webhooks->store, &record, err) < 0 ||
        store_webhook_get(webhooks->store, id, &stored, err) < 0)
        return -1;
    webhook_info_take(out, &stored);
    webhooks_changed(webhooks);
    return 0;
}

int webhook_list(struct webhooks *webhooks, const struct actor *actor, const struct page *page,
                 struct webhook_infos *out, struct error *err)
{
    const struct owner owner = actor_filter(actor);
    autowebhooks found = {0};

    if (store_webhook_list(webhooks->store, &owner, page, &found, err) < 0)
        return -1;
    *out = (struct webhook_infos){.items = xcalloc(found.count + 1, sizeof *out->items),
                                  .count = found.count,
                                  .next = found.next};
    for (size_t i = 0; i < found.count; i++)
        webhook_info_take(&out->items[i], &found.rows[i]);
    return 0;
}

static int find(struct webhooks *webhooks, const struct actor *actor, const char *id,
                struct webhook_record *out, struct error *err)
{
    autowebhook record = {0};

    if (store_webhook_get(webhooks->store, id, &record, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "webhook", id) : -1;
    if (!actor_sees(actor, &record.owner))
        return error_missing(err, "webhook", id);
    *out = record;
    record = (struct webhook_record){0};
    return 0;
}

int webhook_get(struct webhooks *webhooks, const struct actor *actor, const char *id,
                struct webhook_info *out, struct error *err)
{
    autowebhook record = {0};

    if (find(webhooks, actor, id, &record, err) < 0)
        return -1;
    webhook_info_take(out, &record);
    return 0;
}

int webhook_change(struct webhooks *webhooks, const struct actor *actor, const char *id,
                   const struct webhook_request *request, struct webhook_info *out,
                   struct error *err)
{
    char secret[sizeof WEBHOOK_SECRET_PREFIX + WEBHOOK_SECRET_LETTERS];
    autowebhook record = {0};

    if (find(webhooks, actor, id, &record, err) < 0 || check(webhooks, request, err) < 0)
        return -1;
    struct webhook_record next = record; // strings are borrowed
    next.name = request->name ? none_if_empty(request->name) : record.name;
    next.url = request->url ? request->url : record.url;
    next.kinds = request->kinds ? request->kinds : record.kinds;
    next.sandbox_id = request->sandbox_id ? none_if_empty(request->sandbox_id) : record.sandbox_id;
    next.is_enabled = request->is_enabled ? *request->is_enabled : record.is_enabled;
    next.updated_at = (int64_t)clock_wall_ms();
    if (next.is_enabled && !record.is_enabled)
        next.key_id = none_if_empty(actor->key_id);
    if (request->is_secret_new) {
        make_secret(secret);
        next.secret = secret;
    }
    if (store_webhook_change(webhooks->store, &next, err) < 0)
        return -1;
    webhooks_changed(webhooks);
    return webhook_get(webhooks, actor, id, out, err);
}

int webhook_remove(struct webhooks *webhooks, const struct actor *actor, const char *id,
                   struct error *err)
{
    autowebhook record = {0};

    if (find(webhooks, actor, id, &record, err) < 0 ||
        store_webhook_remove(webhooks->store, id, err) < 0)
        return -1;
    webhooks_changed(webhooks);
    return 0;
}

int webhook_test(struct webhooks *webhooks, const struct actor *actor, const char *id,
                 int64_t *event_number, struct error *err)
{
    struct event event = {.type = EVENT_WEBHOOK, .reason = "test", .now = (int64_t)clock_wall_ms()};
    autowebhook record = {0};

    if (find(webhooks, actor, id, &record, err) < 0)
        return -1;
    if (!record.is_enabled)
        return error_refuse(err, ERROR_STATE, "webhook", "the webhook is not enabled");
    event_fact(&event, "webhook", id);
    return event_write_numbered(webhooks->store, NULL, &record.owner, &event, event_number, err);
}

int delivery_list(struct webhooks *webhooks, const struct actor *actor, const char *id,
                  const struct page *page, struct delivery_infos *out, struct error *err)
{
    autowebhook record = {0};
    autodeliveries found = {0};

    if (find(webhooks, actor, id, &record, err) < 0 ||
        store_delivery_list(webhooks->store, id, page, &found, err) < 0)
        return -1;
    delivery_infos_take(out, &found);
    return 0;
}
