/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/events.c: the numbers of all events, what is forgotten of them, and who is told when. */
#include "base/embedded.h"
#include "fixture.h"
#include "store/store_impl.h"
#include "test.h"

static void put_sandbox(struct store *store, const char *id)
{
    struct sandbox_record record = fixture_sandbox(id);
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &record, &err), err);
}

static struct store *store_with(const char *first, const char *second)
{
    struct store *store = fixture_store();

    put_sandbox(store, first);
    put_sandbox(store, second);
    return store;
}

static int64_t add_at(struct store *store, const char *sandbox, int64_t when)
{
    struct event_record event = fixture_event("v", sandbox);
    struct error err = {0};

    event.created_at = when;
    CHECK_OK(store_event_add(store, &event, &err), err);
    return event.serial;
}

static int64_t add(struct store *store, const char *sandbox)
{
    return add_at(store, sandbox, NOW);
}

static struct event_bounds bounds_of(struct store *store)
{
    struct event_bounds bounds = {0};
    struct error err = {0};

    CHECK_OK(store_event_bounds(store, &bounds, &err), err);
    return bounds;
}

static const struct event_scan everything = {.owner = {.organisation = ORGANISATION},
                                             .scanned = 100};

TEST(all_events_are_numbered_together_in_order_of_their_commits)
{
    struct store *store = store_with("a", "b");
    autoevents found = {0};
    int64_t reached = 0;
    struct error err = {0};

    CHECK_INT(add(store, "a"), 1);
    CHECK_INT(add(store, "b"), 2);
    CHECK_INT(add(store, NULL), 3);
    CHECK_INT(add(store, "a"), 4);
    CHECK_OK(store_event_scan(store, &everything, &found, &reached, &err), err);
    CHECK_INT(found.count, 4);
    CHECK_INT(reached, 4);
    CHECK_INT(found.rows[3].number, 2); // in its sandbox
    CHECK(!found.rows[2].sandbox_id);
    CHECK_INT(found.rows[2].number, 0);
    CHECK_INT(bounds_of(store).last, 4);
}

TEST(a_transaction_that_is_undone_leaves_a_gap_at_most)
{
    struct store *store = store_with("a", "b");
    struct error err = {0};

    {
        autotransaction together = {0};
        CHECK_OK(store_begin(store, STORE_FAST, &together, &err), err);
        (void)add(store, "a");
    }
    int64_t next = add(store, "a");
    CHECK(next >= 1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 1);
    CHECK_INT(add(store, "b"), next + 1);
}

TEST(a_scan_goes_on_from_where_it_was_and_shows_what_its_owner_may_see)
{
    struct store *store = store_with("a", "b");
    struct event_record other = fixture_event("v", NULL);
    struct event_scan scan = everything;
    int64_t reached = 0;
    struct error err = {0};

    other.owner.organisation = "somebody else";
    CHECK_OK(store_event_add(store, &other, &err), err);
    for (int i = 0; i < 5; i++)
        (void)add(store, i % 2 ? "b" : "a");
    scan.scanned = 3;
    autoevents first = {0}, second = {0}, none = {0}, of_b = {0}, rest = {0};
    CHECK_OK(store_event_scan(store, &scan, &first, &reached, &err), err);
    CHECK_INT(first.count, 2); // the first of three is another's
    CHECK_INT(reached, 3);
    scan.after = reached;
    CHECK_OK(store_event_scan(store, &scan, &second, &reached, &err), err);
    CHECK_INT(second.count, 3);
    CHECK_INT(second.rows[0].serial, 4);
    scan.after = reached;
    CHECK_OK(store_event_scan(store, &scan, &none, &reached, &err), err);
    CHECK_INT(none.count, 0);
    CHECK_INT(reached, 6);

    scan = (struct event_scan){.owner = scan.owner, .sandbox_id = "b", .scanned = 1};
    CHECK_OK(store_event_scan(store, &scan, &of_b, &reached, &err), err);
    CHECK_INT(of_b.count, 1);
    CHECK_INT(of_b.rows[0].serial, 3);
    CHECK_INT(reached, 3);
    scan.after = 5;
    CHECK_OK(store_event_scan(store, &scan, &rest, &reached, &err), err);
    CHECK_INT(rest.count, 0);
    CHECK_INT(reached, 6);
}

TEST(old_events_are_forgotten_from_the_first_on_and_their_numbers_stay_taken)
{
    struct store *store = store_with("a", "b");
    int64_t moved = 0;
    struct error err = {0};

    (void)add_at(store, NULL, NOW);
    (void)add_at(store, "a", NOW);
    (void)add_at(store, NULL, NOW + 10);
    CHECK_OK(store_event_purge(store, NOW + 5, 0, 100, &moved, &err), err);
    CHECK_INT(moved, 2);
    CHECK_INT(bounds_of(store).forgotten, 2);
    // One of a sandbox that is known is still in that one's list.
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 2);
    CHECK_OK(store_event_purge(store, NOW + 50, 0, 100, &moved, &err), err);
    CHECK_INT(moved, 1);
    CHECK_INT(add(store, NULL), 4);
}

TEST(events_that_are_too_many_are_forgotten_some_at_a_time)
{
    struct store *store = store_with("a", "b");
    int64_t moved = 0;
    struct error err = {0};

    for (int i = 0; i < 10; i++)
        (void)add(store, NULL);
    CHECK_OK(store_event_purge(store, 0, 4, 5, &moved, &err), err);
    CHECK_INT(moved, 5);
    CHECK_OK(store_event_purge(store, 0, 4, 5, &moved, &err), err);
    CHECK_INT(moved, 1);
    CHECK_OK(store_event_purge(store, 0, 4, 5, &moved, &err), err);
    CHECK_INT(moved, 0);
    CHECK_INT(fixture_number(store, "SELECT min(serial) FROM events"), 7);
}

TEST(after_a_start_of_the_machine_numbers_leave_a_gap)
{
    struct store *store = store_with("a", "b");
    struct error err = {0};

    CHECK_OK(store_event_resume(store, "first", &err), err);
    CHECK_INT(add(store, "a"), 1);
    CHECK_OK(store_event_resume(store, "first", &err), err); // the server, not the machine
    CHECK_INT(add(store, "a"), 2);
    CHECK_OK(store_event_resume(store, "second", &err), err);
    CHECK(add(store, "a") > 1000000);
}

static void count_call(void *data)
{
    (*(int *)data)++;
}

TEST(whoever_waits_for_events_is_told_once_for_each_commit_that_has_some)
{
    struct store *store = store_with("a", "b");
    struct sandbox_record quiet = fixture_sandbox("c");
    struct error err = {0};
    int calls = 0;

    store_on_events(store, count_call, &calls);
    (void)add(store, "a");
    CHECK_INT(calls, 1);
    CHECK_OK(store_sandbox_put(store, &quiet, &err), err);
    CHECK_INT(calls, 1);
    autotransaction together = {0};
    CHECK_OK(store_begin(store, STORE_FAST, &together, &err), err);
    (void)add(store, "a");
    (void)add(store, "b");
    CHECK_INT(calls, 1);
    CHECK_OK(store_commit(&together, &err), err);
    CHECK_INT(calls, 2);
}

/* Those before the one that numbers events. */
static void leave_out_numbering(struct embedded_file *out, size_t most)
{
    size_t n = 0;

    while (store_migrations[n].name && !strstr(store_migrations[n].name, "-events.sql")) {
        CHECK(n + 1 < most);
        out[n] = store_migrations[n];
        n++;
    }
    CHECK(store_migrations[n].name != NULL);
}

TEST(events_of_an_earlier_version_get_numbers_by_their_age)
{
    struct embedded_file earlier[64] = {0};
    struct store *store = NULL;
    struct error err = {0};

    leave_out_numbering(earlier, ARRAY_SIZE(earlier));
    fixture_fresh();
    CHECK_OK(store_open_bare(fixture_directory(), &store, &err), err);
    CHECK_OK(store_migrate(store, earlier, &err), err);
    CHECK_OK(
        store_run_alone(
            store, STORE_FAST,
            "INSERT INTO organisations (id, name, created_at) VALUES ('org1', 'o', 1); "
            "INSERT INTO sandboxes (id, organisation, mode, runtime, memory_bytes, cpu_millicores, "
            "disk_bytes, max_processes, env, has_network, port, idle_timeout_ms, "
            "execution_timeout_ms, paused_timeout_ms, max_executions, on_idle, state, exit_code, "
            "box_slot, active_at, expires_at, execution_count, process_count, cpu_ms, "
            "memory_mib_ms, egress_bytes, counted_cpu_ms, counted_at, created_at, updated_at, "
            "started_at, paused_at, ended_at, deleted_at) VALUES ('s', 'org1', 'one_shot', 'r', 1, "
            "1, 1, 1, '', 0, 0, 0, 0, 0, 1, 'end', 'idle', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, "
            "1, 0, 0, 0); "
            "INSERT INTO events (id, sandbox_id, number, organisation, type, created_at) VALUES "
            "('late', 's', 2, 'org1', 'b', 20), ('early', 's', 1, 'org1', 'a', 10)",
            NULL, 0, NULL, &err),
        err);
    store_free(store);
    store = fixture_open();
    CHECK_INT(fixture_number(store, "SELECT serial FROM events WHERE id = 'early'"), 1);
    CHECK_INT(fixture_number(store, "SELECT serial FROM events WHERE id = 'late'"), 2);
    CHECK_INT(bounds_of(store).last, 2);
    CHECK_INT(bounds_of(store).forgotten, 0);
}
