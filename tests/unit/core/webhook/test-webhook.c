/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/core/webhook: what a webhook is told of, what follows from an attempt, and how long it waits. */
#include "base/clock.h"
#include "base/lock.h"
#include "core/event/channel.h"
#include "core/event/event.h"
#include "core/settings.h"
#include "core/webhook/webhook_delivery.h"
#include "core/webhook/webhook.h"
#include "core/webhook/webhook_url.h"
#include "../../store/fixture.h"
#include "test.h"

#include <string.h>

static struct core_settings settings;
static struct hub *hub;
static struct event_channel *channel;
static struct webhooks *webhooks;
static const struct actor actor = {.organisation = ORGANISATION};
static const struct actor stranger = {.organisation = "somebody else"};

static void open_webhooks(void)
{
    struct store *store = fixture_store();
    struct error err = {0};

    hub = hub_new();
    CHECK_OK(event_channel_open(store, hub, &channel, &err), err);
    webhooks = webhooks_new(&settings, store, NULL, channel);
}

static void close_webhooks(void)
{
    webhooks_free(webhooks);
    event_channel_free(channel);
    hub_free(hub);
}

static void make(struct webhook_info *out)
{
    const struct webhook_request request = {.url = "https://example.com/"};
    struct error err = {0};

    CHECK_OK(webhook_create(webhooks, &actor, &request, out, &err), err);
}

static struct delivery_attempt attempt_of(int64_t number, const char *error, int64_t when)
{
    return (struct delivery_attempt){
        .event_number = number,
        .event_kind = "key.created",
        .is_delivered = !error,
        .status = error ? 0 : 200,
        .error = error,
        .started_at = when,
    };
}

static void settle(struct webhook_info *hook, const struct delivery_attempt *attempt)
{
    struct error err = {0};

    CHECK_OK(webhook_settle(webhooks, hook, attempt, &err), err);
}

TEST(what_was_delivered_and_where_it_is_are_recorded_together)
{
    autoclear(webhook_info) hook = {0}, again = {0};
    autoclear(delivery_infos) deliveries = {0};
    const struct page page = {.limit = 100};
    struct error err = {0};

    open_webhooks();
    make(&hook);
    int64_t now = (int64_t)clock_wall_ms();
    const struct delivery_attempt failed = attempt_of(7, "no", now - 5),
                                  fine = attempt_of(7, NULL, now);
    char first[DELIVERY_ID], second[DELIVERY_ID];
    delivery_id(&hook, first);
    settle(&hook, &failed);
    CHECK_STR(delivery_id(&hook, second), first); // of another attempt, but the same delivery
    CHECK_INT(hook.attempts, 1);
    CHECK(hook.next_at > 0);
    settle(&hook, &fine);
    CHECK(strcmp(delivery_id(&hook, second), first) != 0);
    CHECK_OK(webhook_get(webhooks, &actor, hook.id, &again, &err), err);
    CHECK_INT(again.event_cursor, 7);
    CHECK_INT(again.attempts, 0);
    CHECK_INT(again.next_at, 0);
    CHECK_OK(delivery_list(webhooks, &actor, hook.id, &page, &deliveries, &err), err);
    CHECK_INT(deliveries.count, 1);
    CHECK_INT(deliveries.items[0].attempts, 2);
    CHECK_INT(deliveries.items[0].created_at, now - 5);
    CHECK(deliveries.items[0].error == NULL);
    close_webhooks();
}

TEST(after_a_day_of_failures_it_is_turned_off_with_an_event)
{
    autoclear(webhook_info) hook = {0}, again = {0};
    autoclear(event_infos) events = {0};
    const struct event_scan scan = {.scanned = 10};
    struct error err = {0};
    int64_t reached = 0;

    open_webhooks();
    make(&hook);
    const struct delivery_attempt failed = attempt_of(7, "no", 1000); // in 1970
    settle(&hook, &failed);
    CHECK(!hook.is_enabled);
    CHECK_OK(webhook_get(webhooks, &actor, hook.id, &again, &err), err);
    CHECK(!again.is_enabled);
    CHECK_STR(again.disabled_reason, "nothing could be delivered for a day");
    CHECK_INT(again.event_cursor, 0); // it can go on from there
    CHECK_OK(event_scan(channel, &scan, &events, &reached, &err), err);
    CHECK_INT(events.count, 1);
    CHECK_STR(events.items[0].type, EVENT_WEBHOOK);
    close_webhooks();
}

TEST(a_hundred_deliveries_are_kept)
{
    autoclear(webhook_info) hook = {0};
    autoclear(delivery_infos) deliveries = {0};
    const struct page page = {.limit = 100};
    struct error err = {0};

    open_webhooks();
    make(&hook);
    for (int i = 1; i <= 150; i++) {
        const struct delivery_attempt fine = attempt_of(i, NULL, NOW);
        settle(&hook, &fine);
    }
    CHECK_OK(delivery_list(webhooks, &actor, hook.id, &page, &deliveries, &err), err);
    CHECK_INT(deliveries.count, 100);
    CHECK_INT(deliveries.items[0].event_number, 150);
    CHECK_INT(deliveries.items[99].event_number, 51);
    close_webhooks();
}

TEST(nobody_else_sees_or_changes_it)
{
    autoclear(webhook_info) hook = {0}, other = {0};
    autoclear(webhook_infos) list = {0};
    autoclear(delivery_infos) deliveries = {0};
    const struct webhook_request request = {.url = "https://example.com/mine"};
    const struct page page = {.limit = 100};
    struct error err = {0};
    int64_t number;

    open_webhooks();
    make(&hook);
    CHECK(webhook_get(webhooks, &stranger, hook.id, &other, &err) < 0);
    CHECK(error_is(&err, ERROR_NOT_FOUND));
    CHECK(webhook_change(webhooks, &stranger, hook.id, &request, &other, &err) < 0);
    CHECK(webhook_remove(webhooks, &stranger, hook.id, &err) < 0);
    CHECK(webhook_test(webhooks, &stranger, hook.id, &number, &err) < 0);
    CHECK(delivery_list(webhooks, &stranger, hook.id, &page, &deliveries, &err) < 0);
    CHECK_OK(webhook_list(webhooks, &stranger, &page, &list, &err), err);
    CHECK_INT(list.count, 0);
    close_webhooks();
}

TEST(it_is_told_of_what_its_maker_may_see_and_wants)
{
    const struct webhook_info all = {.id = "w", .owner = {.organisation = "o"}};
    const struct webhook_info tenants = {.id = "w", .owner = {.organisation = "o", .tenant = "t"}};
    const struct webhook_info members = {.id = "w", .owner = {.organisation = "o", .member = "n"}};
    const struct webhook_info some = {.id = "w",
                                      .owner = {.organisation = "o"},
                                      .kinds = (const char *const[]){"execution.*", NULL},
                                      .sandbox_id = "s"};
    struct event_info event = {.type = EVENT_CREATE, .owner = {.organisation = "o"}};

    CHECK(webhook_wants(&all, &event));
    CHECK(!webhook_wants(&tenants, &event));
    CHECK(!webhook_wants(&some, &event));
    event.owner.member = "m";
    CHECK(webhook_wants(&all, &event));
    CHECK(!webhook_wants(&members, &event));
    event.owner.member = "n";
    CHECK(webhook_wants(&members, &event));
    event.owner.tenant = "t";
    CHECK(webhook_wants(&all, &event));
    CHECK(webhook_wants(&tenants, &event));
    event.owner.organisation = "p";
    CHECK(!webhook_wants(&all, &event));
    event = (struct event_info){.type = EVENT_STARTED,
                                .reason = "execution",
                                .sandbox_id = "s",
                                .owner = {.organisation = "o"}};
    CHECK(webhook_wants(&some, &event));
    event.sandbox_id = "r";
    CHECK(!webhook_wants(&some, &event));
    event = (struct event_info){.type = EVENT_WEBHOOK,
                                .reason = "test",
                                .facts = (const char *const[]){"webhook=w", NULL},
                                .owner = {.organisation = "o"}};
    CHECK(webhook_wants(&some, &event));
    event.facts = (const char *const[]){"webhook=v", NULL};
    CHECK(!webhook_wants(&all, &event));
}

TEST(it_waits_twice_as_long_each_time_and_never_longer_than_an_hour)
{
    CHECK_INT(webhook_backoff_ms(1, UINT32_MAX), 1000);
    CHECK_INT(webhook_backoff_ms(1, 0), 500);
    CHECK_INT(webhook_backoff_ms(2, UINT32_MAX), 2000);
    CHECK_INT(webhook_backoff_ms(5, UINT32_MAX), 16000);
    CHECK_INT(webhook_backoff_ms(13, UINT32_MAX), 3600000);
    CHECK_INT(webhook_backoff_ms(100000, UINT32_MAX), 3600000);
    CHECK_INT(webhook_backoff_ms(100000, 0), 1800000);
    CHECK_INT(webhook_backoff_ms(0, 0), 500);
    int64_t middle = webhook_backoff_ms(3, UINT32_MAX / 2);
    CHECK(middle > 2900 && middle < 3100);
}

TEST(urls_are_plain_https_ones)
{
    static const char *const good[] = {"https://example.com", "https://example.com:8443/a?b=c",
                                       "https://[2606:4700::1]/", "https://1.1.1.1/"};
    static const char *const bad[] = {"",
                                      "http://example.com",
                                      "HTTPS://x",
                                      "https://",
                                      "https:///x",
                                      "https://a@b/",
                                      "https://a b/",
                                      "https://a#b",
                                      "https://\xc3\xa4/"};
    struct error err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        CHECK_OK(webhook_url_check(good[i], false, &err), err);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK(webhook_url_check(bad[i], false, &err) < 0);
        CHECK_STR(err.field, "url");
    }
    CHECK_OK(webhook_url_check("http://example.com", true, &err), err);
}
