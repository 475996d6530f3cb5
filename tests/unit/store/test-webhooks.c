/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/webhook_table.c: who is told of events, how far, and the last deliveries. */
#include "fixture.h"
#include "store/webhooks.h"
#include "test.h"

static const char *const kinds[] = {"sandbox.*", NULL};

static struct webhook_record hook_of(const char *id)
{
    return (struct webhook_record){
        .id = id,
        .owner = {.organisation = ORGANISATION},
        .url = "https://example.com/",
        .secret = "s",
        .kinds = kinds,
        .is_enabled = true,
        .event_cursor = 7,
        .created_at = NOW,
        .updated_at = NOW,
    };
}

static struct store *store_with_hook(void)
{
    struct store *store = fixture_store();
    const struct webhook_record record = hook_of("w");
    struct error err = {0};

    CHECK_OK(store_webhook_put(store, &record, &err), err);
    return store;
}

TEST(what_a_user_changes_and_how_far_it_is_are_written_apart)
{
    struct store *store = store_with_hook();
    struct webhook_record record = hook_of("w");
    autowebhook found = {0};
    struct error err = {0};

    record.event_cursor = 9;
    record.attempts = 2;
    record.failing_since = record.next_at = NOW;
    record.url = "not written";
    CHECK_OK(store_webhook_progress(store, &record, &err), err);
    record.url = "https://example.com/new";
    record.name = "n";
    record.event_cursor = 1; // not written
    CHECK_OK(store_webhook_change(store, &record, &err), err);
    CHECK_OK(store_webhook_get(store, "w", &found, &err), err);
    CHECK_STR(found.url, "https://example.com/new");
    CHECK_STR(found.kinds[0], "sandbox.*");
    CHECK_INT(found.event_cursor, 9);
    CHECK_INT(found.attempts, 0); // it is tried at once
    CHECK_STR(found.node, store_node(store));
}

TEST(one_that_was_turned_off_meanwhile_stays_so)
{
    struct store *store = store_with_hook();
    struct webhook_record record = hook_of("w");
    autowebhooks enabled = {0}, none = {0};
    autowebhook found = {0};
    struct error err = {0};

    CHECK_OK(store_webhook_list_enabled(store, &enabled, &err), err);
    CHECK_INT(enabled.count, 1);
    record.is_enabled = false;
    CHECK_OK(store_webhook_change(store, &record, &err), err);
    record.is_enabled = true;
    record.event_cursor = 100;
    CHECK_OK(store_webhook_progress(store, &record, &err), err);
    CHECK_OK(store_webhook_get(store, "w", &found, &err), err);
    CHECK(!found.is_enabled);
    CHECK_INT(found.event_cursor, 7);
    CHECK_OK(store_webhook_list_enabled(store, &none, &err), err);
    CHECK_INT(none.count, 0);
}

static void deliver(struct store *store, int64_t number, enum delivery_state state)
{
    char id[16];
    struct error err = {0};

    (void)snprintf(id, sizeof id, "w-%d", (int)number);
    const struct delivery_record record = {
        .id = id, .webhook_id = "w", .number = number, .event_kind = "k", .state = state};
    CHECK_OK(store_delivery_put(store, &record, 3, &err), err);
}

TEST(the_last_deliveries_are_kept_one_row_each_and_go_with_their_webhook)
{
    struct store *store = store_with_hook();
    const struct page page = {.limit = 100};
    autodeliveries found = {0};
    struct error err = {0};

    for (int i = 1; i <= 5; i++) {
        deliver(store, i, DELIVERY_FAILING);
        deliver(store, i, DELIVERY_DELIVERED);
    }
    CHECK_OK(store_delivery_list(store, "w", &page, &found, &err), err);
    CHECK_INT(found.count, 3);
    CHECK_INT(found.rows[0].number, 5);
    CHECK_INT(found.rows[0].state, DELIVERY_DELIVERED);
    CHECK_OK(store_webhook_remove(store, "w", &err), err);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM webhook_deliveries"), 0);
    CHECK(store_webhook_remove(store, "w", &err) < 0);
    CHECK_STR(err.noun, "webhook");
}

TEST(they_are_counted_and_listed_by_their_owner)
{
    struct store *store = store_with_hook();
    const struct owner owner = {.organisation = ORGANISATION}, nobody = {.organisation = "else"};
    const struct page page = {.limit = 100};
    autowebhooks own = {0}, none = {0};
    struct webhook_counts counts = {0};
    struct error err = {0};

    CHECK_OK(store_webhook_count(store, &nobody, &counts, &err), err);
    CHECK_INT(counts.all, 1);
    CHECK_INT(counts.organisation, 0);
    CHECK_OK(store_webhook_count(store, &owner, &counts, &err), err);
    CHECK_INT(counts.organisation, 1);
    CHECK_INT(counts.member, 0);
    CHECK_OK(store_webhook_list(store, &owner, &page, &own, &err), err);
    CHECK_INT(own.count, 1);
    CHECK_OK(store_webhook_list(store, &nobody, &page, &none, &err), err);
    CHECK_INT(none.count, 0);
}
