/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/core/event/channel.c and event_kind.c: what readers of all events get, from the memory and from the store. */
#include "base/lock.h"
#include "core/event/channel.h"
#include "core/event/event.h"
#include "core/event/event_kind.h"
#include "../../store/fixture.h"
#include "test.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 60000

static struct hub *hub;
static struct event_channel *channel;
static atomic_uint announced;

static void on_announced(void *data)
{
    atomic_fetch_add(&announced, 1);
}

static struct store *open_channel(void)
{
    struct store *store = fixture_store();
    struct error err = {0};

    hub = hub_new();
    CHECK_OK(event_channel_open(store, hub, &channel, &err), err);
    return store;
}

static void close_channel(void)
{
    event_channel_free(channel);
    hub_free(hub);
}

static int64_t add(struct store *store)
{
    const struct event event = {.type = EVENT_KEY, .now = NOW};
    const struct owner owner = {.organisation = ORGANISATION};
    int64_t serial = 0;
    struct error err = {0};

    CHECK_OK(event_write_numbered(store, NULL, &owner, &event, &serial, &err), err);
    return serial;
}

/* All in the memory above a place, once there are so many. Returns the last. */
static int64_t expect(int64_t after, int count)
{
    struct shared_event *events[16];
    int got = 0;

    for (int i = 0; i < PATIENCE_MS; i++) {
        got = event_channel_next(channel, after, events, 16);
        if (got >= count)
            break;
        for (int k = 0; k < got; k++)
            shared_event_unref(events[k]);
        usleep(1000);
    }
    CHECK_INT(got, count);
    for (int i = 0; i < got; i++) {
        CHECK(events[i]->info.serial > after);
        after = events[i]->info.serial;
        shared_event_unref(events[i]);
    }
    return after;
}

static void wait_until_warm(struct store *store)
{
    struct event_range range;
    struct shared_event *none[1];
    struct error err = {0};

    // What is written now comes, or it is behind what it begins with: then it is warm.
    CHECK_OK(event_range(channel, &range, &err), err);
    int64_t first = add(store);
    for (int i = 0; i < PATIENCE_MS; i++) {
        int got = event_channel_next(channel, first - 1, none, 1);
        if (got > 0)
            shared_event_unref(none[0]);
        if (got != 0)
            return;
        usleep(1000);
    }
    CHECK(false);
}

TEST(readers_get_what_is_written_in_order_and_each_from_its_own_place)
{
    struct store *store = open_channel();
    struct watch *watch = hub_watch(hub, EVENT_CHANNEL_ID, on_announced, NULL);

    event_channel_join(channel);
    wait_until_warm(store);
    int64_t first = add(store);
    for (int i = 0; i < 4; i++)
        (void)add(store);
    CHECK_INT(expect(first - 1, 5), first + 4);
    CHECK_INT(expect(first + 1, 3), first + 4);
    CHECK_INT(expect(first + 4, 0), first + 4);
    CHECK(atomic_load(&announced) > 0);
    event_channel_leave(channel);
    watch_free(watch);
    close_channel();
}

TEST(a_reader_that_is_behind_what_is_in_memory_is_told_so)
{
    struct store *store = open_channel();
    struct shared_event *none[1];
    autoclear(event_infos) found = {0};
    struct error err = {0};
    int64_t reached = 0;

    for (int i = 0; i < 3; i++)
        (void)add(store); // nobody has joined
    event_channel_join(channel);
    wait_until_warm(store);
    CHECK_INT(event_channel_next(channel, 0, none, 1), -1);
    const struct event_scan scan = {.scanned = 2};
    CHECK_OK(event_scan(channel, &scan, &found, &reached, &err), err);
    CHECK_INT(found.count, 2);
    CHECK_INT(reached, 2);
    event_channel_leave(channel);
    close_channel();
}

TEST(the_memory_has_an_end)
{
    struct store *store = open_channel();
    struct shared_event *one[1];
    struct error err = {0};

    event_channel_join(channel);
    wait_until_warm(store);
    int64_t first = add(store);
    for (int i = 0; i < 50; i++) { // in few transactions
        autotransaction together = {0};
        CHECK_OK(store_begin(store, STORE_FAST, &together, &err), err);
        for (int k = 0; k < 100; k++)
            (void)add(store);
        CHECK_OK(store_commit(&together, &err), err);
    }
    int64_t last = expect(first + 4999, 1);
    CHECK_INT(last, first + 5000);
    CHECK_INT(event_channel_next(channel, first, one, 1), -1); // 2,048 at most
    event_channel_leave(channel);
    close_channel();
}

TEST(kinds_are_named_after_what_they_happen_to)
{
    static const struct {
        const char *type, *reason, *kind;
    } rows[] = {
        {EVENT_CREATE, NULL, "sandbox.created"},
        {EVENT_STARTED, "created", "sandbox.started"},
        {EVENT_STARTED, "execution", "execution.started"},
        {EVENT_COMPLETED, "job", "job.ended"},
        {EVENT_COMPLETED, "terminal", "terminal.ended"},
        {EVENT_TERMINATED, "idle", "sandbox.ended"},
        {EVENT_CHECKPOINT, "restored", "checkpoint.restored"},
        {EVENT_SNAPSHOT, "deleted", "snapshot.deleted"},
        {EVENT_WEBHOOK, "disabled", "webhook.disabled"},
        {"something new", NULL, "sandbox.something new"},
    };
    char spare[EVENT_KIND];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct event_info info = {.type = rows[i].type, .reason = rows[i].reason};
        CHECK_STR(event_kind(&info, spare), rows[i].kind);
        if (i + 1 < ARRAY_SIZE(rows))
            CHECK(event_pattern_is_known(rows[i].kind));
    }
}

TEST(patterns_match_a_kind_all_of_a_thing_or_everything)
{
    CHECK(event_pattern_matches("*", "sandbox.created"));
    CHECK(event_pattern_matches("sandbox.*", "sandbox.created"));
    CHECK(!event_pattern_matches("sandbox.*", "sandboxes.created"));
    CHECK(event_pattern_matches("sandbox.created", "sandbox.created"));
    CHECK(!event_pattern_matches("sandbox.create", "sandbox.created"));
    CHECK(!event_pattern_matches("sand*", "sandbox.created"));
    CHECK(!event_pattern_matches(".*", "sandbox.created"));
    CHECK(!event_pattern_is_known(""));
    CHECK(!event_pattern_is_known("nothing.*"));
    CHECK(event_patterns_match(NULL, "any"));
    CHECK(event_patterns_match((const char *const[]){NULL}, "any"));
    CHECK(!event_patterns_match((const char *const[]){"a.b", NULL}, "any"));
}
