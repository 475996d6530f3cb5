/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/sandbox_table.c: states, lists and forgetting; and of transactions in
 * src/store/store.c. */
#include "base/mem.h"
#include "fixture.h"
#include "test.h"

static void put(struct store *store, const struct sandbox_record *record)
{
    struct error err = {0};
    CHECK_OK(store_sandbox_put(store, record, &err), err);
}

// Brings a sandbox, in whatever state, into one that is over.
static void end(struct store *store, const char *id, enum sandbox_state state, int64_t at)
{
    struct sandbox_record record = fixture_sandbox(id);
    struct error err = {0};

    record.state = state;
    record.ended_at = at;
    record.deleted_at = state == SANDBOX_DELETED ? at : 0;
    CHECK_OK(store_sandbox_update(store, &record, SANDBOX_PART_STATE, 0, &err), err);
}

TEST(an_unknown_sandbox_is_not_found)
{
    struct store *store = fixture_store();
    autosandbox got = {0};
    struct error err = {0};

    CHECK(store_sandbox_get(store, "nobody's", &got, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_STR(err.noun, "sandbox");
    CHECK_STR(err.text, "there is no sandbox 'nobody's'");
    CHECK(got.id == NULL);
}

TEST(an_id_is_given_once)
{
    struct store *store = fixture_store();
    struct sandbox_record record = fixture_sandbox("s");
    struct error err = {0};

    put(store, &record);
    CHECK(store_sandbox_put(store, &record, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_STR(err.noun, "sandbox");
    CHECK_INT(err.reason, ERROR_EXISTS);
}

TEST(a_state_changes_only_from_where_it_was_expected)
{
    struct store *store = fixture_store();
    struct sandbox_record record = fixture_sandbox("s");
    autosandbox got = {0};
    struct error err = {0};

    put(store, &record);
    record.state = SANDBOX_IDLE;
    record.started_at = NOW + 1;
    record.updated_at = NOW + 1;
    CHECK_OK(store_sandbox_update(store, &record, SANDBOX_PART_STATE, sandbox_in(SANDBOX_CREATING),
                                  &err),
             err);
    record.state = SANDBOX_RUNNING;
    record.updated_at = NOW + 2;
    CHECK(store_sandbox_update(store, &record, SANDBOX_PART_STATE,
                               sandbox_in(SANDBOX_CREATING) | sandbox_in(SANDBOX_PAUSED),
                               &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_INT(err.reason, ERROR_STATE);
    CHECK_STR(err.text, "sandbox 's' is idle");
    CHECK_OK(store_sandbox_get(store, "s", &got, &err), err);
    CHECK_INT(got.state, SANDBOX_IDLE);
    CHECK_INT(got.updated_at, NOW + 1);
}

TEST(an_update_writes_its_parts_and_nothing_else)
{
    struct store *store = fixture_store();
    struct sandbox_record record = fixture_sandbox("s");
    struct execution_record execution = fixture_execution("e", "s");
    autosandbox got = {0};
    struct error err = {0};

    record.name = "first";
    put(store, &record);
    CHECK_OK(store_execution_add(store, &execution, &err), err);
    record.name = "second";
    record.command.env = (const char *const[]){"A=1", NULL};
    record.box_slot = 5;
    record.execution_count = 100; // counted elsewhere
    CHECK_OK(store_sandbox_update(store, &record, SANDBOX_PART_ENV | SANDBOX_PART_BOX, 0, &err),
             err);
    CHECK_OK(store_sandbox_get(store, "s", &got, &err), err);
    CHECK_STR(got.name, "first");
    CHECK_STR(got.command.env[0], "A=1");
    CHECK(!got.command.env[1]);
    CHECK_INT(got.box_slot, 5);
    CHECK_INT(got.execution_count, 1);
}

TEST(updating_an_unknown_sandbox_is_not_found)
{
    struct store *store = fixture_store();
    struct sandbox_record record = fixture_sandbox("s");
    struct error err = {0};

    CHECK(store_sandbox_update(store, &record, SANDBOX_PART_STATE, 0, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_STR(err.noun, "sandbox");
}

TEST(a_state_that_is_over_must_say_when)
{
    struct store *store = fixture_store();
    struct sandbox_record record = fixture_sandbox("s");
    struct error err = {0};

    put(store, &record);
    record.state = SANDBOX_ENDED;
    CHECK(store_sandbox_update(store, &record, SANDBOX_PART_STATE, 0, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    record.ended_at = NOW;
    record.state = SANDBOX_IDLE;
    CHECK(store_sandbox_update(store, &record, SANDBOX_PART_STATE, 0, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
}

// Thirty sandboxes: times in groups of three, every fifth without a name, names twice.
static struct store *thirty(void)
{
    struct store *store = fixture_store();

    for (int i = 0; i < 30; i++) {
        autofree char *id = xasprintf("s%02d", i), *name = xasprintf("n%d", i % 10);
        struct sandbox_record record = fixture_sandbox(id);
        record.name = i % 5 ? name : NULL;
        record.created_at = NOW + i / 3;
        record.updated_at = NOW - i / 3;
        record.mode = i % 2 ? SANDBOX_ONE_SHOT : SANDBOX_INTERACTIVE;
        record.owner.organisation = i < 25 ? ORGANISATION : "other";
        record.owner.project = i % 4 ? NULL : "p";
        record.owner.tenant = i % 3 ? NULL : "t";
        record.owner.scope = i % 6 ? NULL : "c";
        record.runtime = i % 7 ? "base:latest" : "host:latest";
        record.snapshot = i == 9 ? "snap" : NULL;
        put(store, &record);
    }
    end(store, "s01", SANDBOX_DELETED, NOW);
    end(store, "s02", SANDBOX_ENDED, NOW);
    end(store, "s03", SANDBOX_FAILED, NOW);
    return store;
}

static int64_t total(struct store *store, struct sandbox_filter filter)
{
    autosandboxes list = {0};
    struct error err = {0};

    CHECK_OK(store_sandbox_list(store, &filter, &list, &err), err);
    CHECK_INT(list.count, 0);
    CHECK(list.rows == NULL);
    return list.total;
}

TEST(filters_match_exactly_and_together)
{
    struct store *store = thirty();
    enum sandbox_mode one_shot = SANDBOX_ONE_SHOT;

    CHECK_INT(total(store, (struct sandbox_filter){0}), 29); // not the deleted one
    CHECK_INT(total(store, (struct sandbox_filter){.owner.organisation = ORGANISATION}), 24);
    CHECK_INT(total(store, (struct sandbox_filter){.owner.organisation = "org"}), 0);
    CHECK_INT(total(store, (struct sandbox_filter){.owner.project = "p"}), 8);
    CHECK_INT(total(store, (struct sandbox_filter){.owner = {.tenant = "t", .scope = "c"}}), 5);
    CHECK_INT(total(store, (struct sandbox_filter){.name = "n3"}), 3);
    CHECK_INT(total(store, (struct sandbox_filter){.name = "n%"}), 0);
    CHECK_INT(total(store, (struct sandbox_filter){.name = "n3' OR '1'='1"}), 0);
    CHECK_INT(total(store, (struct sandbox_filter){.name = "N3"}), 0);
    CHECK_INT(total(store, (struct sandbox_filter){.mode = &one_shot}), 14);
    CHECK_INT(total(store, (struct sandbox_filter){.mode = &one_shot, .owner.project = "p"}), 0);
    CHECK_INT(total(store, (struct sandbox_filter){.runtime = "host:latest"}), 5);
    CHECK_INT(total(store, (struct sandbox_filter){.snapshot = "snap"}), 1);
    CHECK_INT(total(store, (struct sandbox_filter){.created_from = NOW + 9}), 3);
}

TEST(states_are_a_filter_too)
{
    struct store *store = thirty();

    CHECK_INT(total(store, (struct sandbox_filter){.states = SANDBOX_ALIVE}), 27);
    CHECK_INT(total(store, (struct sandbox_filter){.states = SANDBOX_OVER}), 3);
    CHECK_INT(total(store, (struct sandbox_filter){.states = SANDBOX_ANY}), 30);
    CHECK_INT(total(store, (struct sandbox_filter){.states = sandbox_in(SANDBOX_DELETED)}), 1);
    CHECK_INT(total(store, (struct sandbox_filter){.states = sandbox_in(SANDBOX_ENDED)}), 1);
    CHECK_INT(total(store, (struct sandbox_filter){.states = sandbox_in(SANDBOX_PAUSED)}), 0);
}

// All pages of a list hold each sandbox once, and in order.
static void walk(struct store *store, enum sandbox_sort sort, bool is_descending, int64_t limit)
{
    char seen[30] = {0};
    autosandbox last = {0};
    struct error err = {0};

    for (int64_t offset = 0; offset < 30; offset += limit) {
        struct sandbox_filter filter = {.sort = sort,
                                        .is_descending = is_descending,
                                        .states = SANDBOX_ANY,
                                        .page = {limit, offset}};
        autosandboxes list = {0};
        CHECK_OK(store_sandbox_list(store, &filter, &list, &err), err);
        CHECK_INT(list.total, 30);
        CHECK_INT(list.count, offset + limit <= 30 ? limit : 30 - offset);
        for (size_t i = 0; i < list.count; i++) {
            int number = atoi(list.rows[i].id + 1);
            CHECK(!seen[number]++);
            if (sort == SANDBOX_BY_CREATED && (offset || i))
                CHECK(is_descending ? list.rows[i].created_at <= last.created_at
                                    : list.rows[i].created_at >= last.created_at);
            if (sort == SANDBOX_BY_NAME && (offset || i)) {
                int order =
                    strcmp(list.rows[i].name ? list.rows[i].name : "", last.name ? last.name : "");
                CHECK(is_descending ? order <= 0 : order >= 0);
            }
            sandbox_record_clear(&last);
            last.created_at = list.rows[i].created_at;
            last.name = list.rows[i].name ? xstrdup(list.rows[i].name) : NULL;
        }
    }
}

TEST(pages_hold_everything_once_whatever_the_order)
{
    struct store *store = thirty();

    for (int sort = SANDBOX_BY_CREATED; sort <= SANDBOX_BY_EXECUTIONS; sort++) {
        for (int64_t limit = 1; limit < 40; limit += 6) {
            walk(store, (enum sandbox_sort)sort, false, limit);
            walk(store, (enum sandbox_sort)sort, true, limit);
        }
    }
}

static void walk_by_marks(struct store *store, bool is_descending, int64_t limit)
{
    struct sandbox_filter filter = {.is_descending = is_descending,
                                    .states = SANDBOX_ANY,
                                    .page = {.limit = limit, .is_marked = true}};
    char seen[30] = {0};
    int64_t last = is_descending ? INT64_MAX : 0;
    unsigned total = 0;

    do {
        autosandboxes list = {0};
        struct error err = {0};
        CHECK_OK(store_sandbox_list(store, &filter, &list, &err), err);
        CHECK(list.count > 0 && (int64_t)list.count <= limit && list.total == 0);
        for (size_t i = 0; i < list.count; i++, total++) {
            CHECK(!seen[atoi(list.rows[i].id + 1)]++);
            CHECK(is_descending ? list.rows[i].created_at <= last
                                : list.rows[i].created_at >= last);
            last = list.rows[i].created_at;
        }
        filter.page.after = list.next;
    } while (*filter.page.after.id);
    CHECK_INT(total, 30);
}

TEST(pages_by_marks_hold_everything_once)
{
    struct store *store = thirty();

    for (int64_t limit = 1; limit < 40; limit += 6) {
        walk_by_marks(store, false, limit);
        walk_by_marks(store, true, limit);
    }
    walk_by_marks(store, true, 30);
}

TEST(a_mark_stays_where_it_is_while_others_come)
{
    struct store *store = thirty();
    struct sandbox_filter filter = {
        .is_descending = true, .states = SANDBOX_ANY, .page = {.limit = 7, .is_marked = true}};
    autosandboxes first = {0}, second = {0};
    struct error err = {0};

    CHECK_OK(store_sandbox_list(store, &filter, &first, &err), err);
    struct sandbox_record late = fixture_sandbox("s99");
    late.mode = SANDBOX_ONE_SHOT;
    late.created_at = first.rows[0].created_at + 1000;
    put(store, &late);
    filter.page.after = first.next;
    CHECK_OK(store_sandbox_list(store, &filter, &second, &err), err);
    for (size_t i = 0; i < first.count; i++) {
        for (size_t k = 0; k < second.count; k++)
            CHECK(strcmp(first.rows[i].id, second.rows[k].id) != 0);
    }
    for (size_t k = 0; k < second.count; k++)
        CHECK(strcmp(second.rows[k].id, "s99") != 0);
}

TEST(there_are_no_marks_in_an_order_of_names)
{
    struct sandbox_filter filter = {.sort = SANDBOX_BY_NAME,
                                    .page = {.limit = 7, .is_marked = true}};
    autosandboxes list = {0};
    struct error err = {0};

    CHECK(store_sandbox_list(thirty(), &filter, &list, &err) < 0);
    CHECK_INT(err.reason, ERROR_INVALID);
}

TEST(pages_have_bounds)
{
    struct store *store = fixture_store();
    autosandboxes list = {0};
    struct error err = {0};

    for (int i = 0; i < 120; i++) {
        autofree char *id = xasprintf("s%03d", i);
        struct sandbox_record record = fixture_sandbox(id);
        record.mode = SANDBOX_ONE_SHOT;
        put(store, &record);
    }
    struct sandbox_filter filter = {.page = {INT64_MAX, 0}};
    CHECK_OK(store_sandbox_list(store, &filter, &list, &err), err);
    CHECK_INT(list.count, PAGE_MAX);
    CHECK_INT(list.total, 120);
    sandbox_list_clear(&list);
    filter.page = (struct page){-5, -5};
    CHECK_OK(store_sandbox_list(store, &filter, &list, &err), err);
    CHECK_INT(list.count, 0);
    CHECK_INT(list.total, 120);
    filter.page = (struct page){10, INT64_MAX};
    CHECK_OK(store_sandbox_list(store, &filter, &list, &err), err);
    CHECK_INT(list.count, 0);
    CHECK_INT(list.total, 120);
}

TEST(those_alive_are_found_again_after_a_restart)
{
    autosandboxes list = {0};
    struct error err = {0};

    thirty();
    CHECK_OK(store_sandbox_list_alive(fixture_open(), &list, &err), err);
    CHECK_INT(list.count, 27);
    for (size_t i = 0; i < list.count; i++) {
        CHECK(sandbox_in(list.rows[i].state) & SANDBOX_ALIVE);
        CHECK(i == 0 || list.rows[i].created_at >= list.rows[i - 1].created_at);
    }
}

TEST(sandboxes_are_counted_by_state)
{
    struct store *store = thirty();
    struct owner owner = {.organisation = ORGANISATION};
    int64_t counts[SANDBOX_STATES];
    struct error err = {0};

    CHECK_OK(store_sandbox_count(store, &owner, counts, &err), err);
    CHECK_INT(counts[SANDBOX_CREATING], 22);
    CHECK_INT(counts[SANDBOX_ENDED], 1);
    CHECK_INT(counts[SANDBOX_FAILED], 1);
    CHECK_INT(counts[SANDBOX_DELETED], 1);
    CHECK_INT(counts[SANDBOX_IDLE], 0);
}

static int64_t total_of(struct store *store, struct sandbox_filter filter)
{
    autosandboxes list = {0};
    struct error err = {0};

    CHECK_OK(store_sandbox_list(store, &filter, &list, &err), err);
    return list.total;
}

/* What is counted ahead is what is there; the time makes the store count the rows themselves. */
static void check_totals(struct store *store)
{
    const unsigned states[] = {0,
                               SANDBOX_ALIVE,
                               SANDBOX_OVER,
                               SANDBOX_ANY,
                               SANDBOX_ANY & ~sandbox_in(SANDBOX_DELETED),
                               sandbox_in(SANDBOX_DELETED),
                               sandbox_in(SANDBOX_IDLE),
                               SANDBOX_ALIVE | sandbox_in(SANDBOX_FAILED)};
    static const struct owner owners[] = {
        {.organisation = ORGANISATION},
        {.organisation = ORGANISATION, .project = "p"},
        {.organisation = ORGANISATION, .tenant = "t", .scope = "s"},
        {.organisation = "nobody"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(states) * ARRAY_SIZE(owners); i++) {
        struct sandbox_filter filter = {.owner = owners[i / ARRAY_SIZE(states)],
                                        .states = states[i % ARRAY_SIZE(states)]};
        int64_t total = total_of(store, filter);
        filter.created_from = 1;
        CHECK_INT(total, total_of(store, filter));
    }
}

TEST(totals_that_are_counted_ahead_are_those_of_the_rows)
{
    struct store *store = fixture_store();
    struct error err = {0};
    int64_t removed = 0;
    char id[8];

    for (int i = 0; i < 12; i++) {
        (void)snprintf(id, sizeof id, "s%d", i);
        struct sandbox_record record = fixture_sandbox(id);
        record.owner.project = i % 3 ? "p" : NULL;
        record.owner.tenant = i % 4 ? NULL : "t";
        record.owner.scope = i % 4 ? NULL : "s";
        put(store, &record);
        check_totals(store);
        if (i % 2)
            continue;
        record.state = i % 4 ? SANDBOX_FAILED : SANDBOX_ENDED;
        record.ended_at = NOW;
        CHECK_OK(store_sandbox_update(store, &record, SANDBOX_PART_STATE, 0, &err), err);
        CHECK_OK(store_sandbox_update(store, &record, SANDBOX_PART_STATE, 0, &err), err);
        CHECK(store_sandbox_update(store, &record, SANDBOX_PART_STATE, SANDBOX_ALIVE, &err) < 0);
        if (i % 3 == 0) {
            record.state = SANDBOX_DELETED;
            record.deleted_at = NOW;
            CHECK_OK(store_sandbox_update(store, &record, SANDBOX_PART_STATE, 0, &err), err);
        }
        check_totals(store);
    }
    CHECK_OK(store_sandbox_purge(store, NOW + 1, 0, 3, &removed, &err), err);
    CHECK_INT(removed, 3);
    check_totals(store);
}

TEST(old_ones_are_forgotten_once_their_streams_are_gone)
{
    struct store *store = thirty();
    struct execution_record execution = fixture_execution("e", "s02");
    struct event_record event = fixture_event("v", "s02");
    struct stream_record stream = fixture_stream("o");
    int64_t removed = -1;
    struct error err = {0};

    CHECK_OK(store_execution_add(store, &execution, &err), err);
    CHECK_OK(store_event_add(store, &event, &err), err);
    stream.sandbox_id = "s02";
    CHECK_OK(store_stream_put(store, &stream, NULL, 0, &err), err);

    CHECK_OK(store_sandbox_purge(store, NOW, 0, 100, &removed, &err), err);
    CHECK_INT(removed, 0); // not old enough
    CHECK_OK(store_sandbox_purge(store, NOW + 1, 0, 1, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK_OK(store_sandbox_purge(store, NOW + 1, 0, 100, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM executions"), 1);
    CHECK_OK(store_stream_remove(store, "o", &err), err);
    CHECK_OK(store_sandbox_purge(store, NOW + 1, 0, 100, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandboxes"), 27);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM executions"), 0);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 1); // for those who follow
    CHECK_OK(store_event_purge(store, NOW + 1, 0, 100, &removed, &err), err);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 0);
}

TEST(a_transaction_is_all_or_nothing)
{
    struct store *store = fixture_store();
    struct sandbox_record record = fixture_sandbox("s");
    struct event_record event = fixture_event("v", "s");
    struct error err = {0};

    {
        autotransaction together = {0};
        CHECK_OK(store_begin(store, STORE_DURABLE, &together, &err), err);
        put(store, &record);
        CHECK_OK(store_event_add(store, &event, &err), err);
        CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 1);
    } // left without commit
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandboxes"), 0);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 0);

    autotransaction together = {0};
    CHECK_OK(store_begin(store, STORE_FAST, &together, &err), err);
    put(store, &record);
    CHECK_OK(store_event_add(store, &event, &err), err);
    CHECK_OK(store_commit(&together, &err), err);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 1);
}

TEST(not_found_and_a_wrong_state_leave_a_transaction_usable)
{
    struct store *store = fixture_store();
    struct sandbox_record record = fixture_sandbox("s"), none = fixture_sandbox("none");
    autotransaction together = {0};
    struct error err = {0};

    CHECK_OK(store_begin(store, STORE_FAST, &together, &err), err);
    put(store, &record);
    CHECK(store_sandbox_update(store, &none, SANDBOX_PART_BOX, 0, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(store_sandbox_update(store, &record, SANDBOX_PART_BOX, sandbox_in(SANDBOX_PAUSED), &err) <
          0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_OK(store_commit(&together, &err), err);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandboxes"), 1);
}

TEST(a_transaction_in_which_something_failed_is_not_committed)
{
    struct store *store = fixture_store();
    struct sandbox_record record = fixture_sandbox("s"), other = fixture_sandbox("other");
    autotransaction together = {0};
    struct error err = {0};

    put(store, &record);
    CHECK_OK(store_begin(store, STORE_FAST, &together, &err), err);
    put(store, &other);
    CHECK(store_sandbox_put(store, &record, &err) < 0); // there already
    CHECK(store_commit(&together, &err) < 0);
    CHECK(strstr(err.text, "all of it is undone"));
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandboxes"), 1);
    put(store, &other); // and the thread can go on
}

TEST(lists_inside_a_transaction_see_what_it_has_done)
{
    struct store *store = fixture_store();
    struct sandbox_record record = fixture_sandbox("s");
    autotransaction together = {0};
    struct error err = {0};

    CHECK_OK(store_begin(store, STORE_FAST, &together, &err), err);
    put(store, &record);
    CHECK_INT(total(store, (struct sandbox_filter){0}), 1);
    put(store, &(struct sandbox_record){.id = "t",
                                        .owner.organisation = "o",
                                        .runtime = "r",
                                        .command.env = (const char *const[]){NULL}});
    CHECK_OK(store_commit(&together, &err), err);
    CHECK_INT(total(store, (struct sandbox_filter){0}), 2);
}
