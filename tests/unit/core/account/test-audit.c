/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/account/audit.c: the ring, what a crash leaves in it, and who sees what. */
#include "core/account/audit.h"

#include "../core_rig.h"
#include "base/clock.h"
#include "store/audit_table.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static struct audit *open_audit(struct store *store)
{
    struct audit *audit = NULL;
    struct error err = {0};

    CHECK_OK(audit_open(fixture_directory(), store, &audit, &err), err);
    return audit;
}

static void add(struct audit *audit, const char *member, const char *request)
{
    const struct audit_entry entry = {
        .organisation = ORGANISATION,
        .member = member,
        .key_id = "key1",
        .front = "api",
        .method = "POST",
        .route = "/api/v1/things",
        .request_id = request,
        .status = 201,
    };
    audit_add(audit, &entry);
}

static size_t count(struct audit *audit, const struct actor *actor)
{
    const struct audit_query query = {.page = {.limit = 100, .is_marked = true}};
    autoclear(audit_infos) found = {0};
    struct error err = {0};

    CHECK_OK(audit_list(audit, actor, &query, &found, &err), err);
    return found.count;
}

TEST(what_was_added_is_told_newest_first_to_whom_it_belongs)
{
    const struct audit_query query = {.page = {.limit = 100, .is_marked = true}};
    struct actor all = rig_actor();
    struct actor alice = {.organisation = ORGANISATION, .member = "alice", .scopes = SCOPE_ADMIN};
    autoclear(audit_infos) found = {0};
    struct error err = {0};

    fixture_fresh();
    autoptr(audit) audit = open_audit(fixture_store());
    add(audit, "alice", "one");
    add(audit, "bob", "two");
    add(audit, NULL, "three");
    CHECK_OK(audit_list(audit, &all, &query, &found, &err), err);
    CHECK_INT(found.count, 3);
    CHECK_STR(found.items[0].request_id, "three");
    CHECK(!found.items[0].member && !found.items[0].token_id && !found.items[0].subject);
    CHECK_STR(found.items[2].member, "alice");
    CHECK_INT(found.items[2].number + 2, found.items[0].number);
    CHECK_INT(count(audit, &alice), 1);
}

TEST(texts_that_are_too_long_are_cut_between_characters)
{
    const struct audit_query query = {.page = {.limit = 1, .is_marked = true}};
    struct actor all = rig_actor();
    autoclear(audit_infos) found = {0};
    struct error err = {0};
    char text[200];

    fixture_fresh();
    autoptr(audit) audit = open_audit(fixture_store());
    memset(text, 'a', sizeof text);
    memcpy(text + 69, "\xc3\xa4\xc3\xa4", 4);
    text[199] = '\0';
    add(audit, NULL, text);
    CHECK_OK(audit_list(audit, &all, &query, &found, &err), err);
    CHECK_INT(strlen(found.items[0].request_id), 71);
}

TEST(what_a_server_left_in_the_ring_is_taken_over_once)
{
    struct actor all = rig_actor();
    struct store *store;
    static char copy[4 << 20];
    size_t length;
    char path[256];

    fixture_fresh();
    store = fixture_store();
    (void)snprintf(path, sizeof path, "%s/audit.ring", fixture_directory());
    {
        autoptr(audit) audit = open_audit(store);
        for (int i = 0; i < 10; i++)
            add(audit, "alice", "before");
        // As the file is before the writer has come to it, and as a crash between commit and tail leaves it: told once either way.
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        length = (size_t)read(fd, copy, sizeof copy);
        CHECK(length > 0 && length < sizeof copy);
        (void)close(fd);
        CHECK_INT(count(audit, &all), 10);
    }
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(write(fd, copy, length) == (ssize_t)length);
    (void)close(fd);
    autoptr(audit) again = open_audit(store);
    add(again, "alice", "after");
    CHECK_INT(count(again, &all), 11);
}

TEST(a_ring_of_another_kind_is_begun_anew_behind_what_is_known)
{
    struct actor all = rig_actor();
    struct store *store;
    char path[256];

    fixture_fresh();
    store = fixture_store();
    (void)snprintf(path, sizeof path, "%s/audit.ring", fixture_directory());
    {
        autoptr(audit) audit = open_audit(store);
        add(audit, NULL, "one");
    }
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(write(fd, "damaged!", 8) == 8);
    (void)close(fd);
    autoptr(audit) again = open_audit(store);
    add(again, NULL, "two");
    CHECK_INT(count(again, &all), 2);
}

TEST(adding_does_not_wait_and_is_bounded)
{
    struct actor all = rig_actor();

    fixture_fresh();
    autoptr(audit) audit = open_audit(fixture_store());
    uint64_t before = clock_monotonic_us();
    for (int i = 0; i < 20000; i++) // more than there is room for
        add(audit, "alice", "many");
    uint64_t took = clock_monotonic_us() - before;
    CHECK(count(audit, &all) == 100);
    printf("# %.2f us each\n", (double)took / 20000);
}

/* Of many that come quickly none waits until the writer looks again: the ring would be full first. */
TEST(a_batch_that_is_there_is_written_at_once)
{
    enum { BATCH = 256, BATCHES = 200 };
    int64_t last = 0;
    struct error err = {0};

    fixture_fresh();
    struct store *store = fixture_store();
    autoptr(audit) audit = open_audit(store);
    uint64_t deadline = clock_monotonic_ms() + 30000; // with a look for each it would take 40 s
    for (int i = 1; i <= BATCHES; i++) {
        for (int k = 0; k < BATCH; k++)
            add(audit, "alice", "many");
        while (last < (int64_t)i * BATCH && clock_monotonic_ms() < deadline) {
            CHECK_OK(store_audit_last(store, &last, &err), err);
            (void)sched_yield();
        }
    }
    CHECK_INT(last, BATCHES * BATCH);
}
