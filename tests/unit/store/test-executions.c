/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/execution_table.c, events.c and usage.c: what happens in a sandbox, in order, and
 * what it adds up to. */
#include "store/executions.h"

#include "base/mem.h"
#include "fixture.h"
#include "store/usage_days.h"
#include "store/usage.h"
#include "store/store_impl.h"
#include "test.h"

#include <pthread.h>

static struct store *store_with_sandbox(void)
{
    struct store *store = fixture_store();
    struct sandbox_record sandbox = fixture_sandbox("s");
    struct error err = {0};

    sandbox.owner.project = "p";
    CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    return store;
}

static void add(struct store *store, const char *id, enum execution_kind kind)
{
    struct execution_record record = fixture_execution(id, "s");
    struct error err = {0};

    record.kind = kind;
    CHECK_OK(store_execution_add(store, &record, &err), err);
    CHECK(record.number > 0);
}

TEST(processes_of_a_sandbox_are_numbered_and_counted)
{
    struct store *store = store_with_sandbox();
    struct execution_record record = fixture_execution("e3", "s");
    autosandbox sandbox = {0};
    struct error err = {0};

    add(store, "e1", EXECUTION_COMMAND);
    add(store, "j2", EXECUTION_JOB);
    CHECK_OK(store_execution_add(store, &record, &err), err);
    CHECK_INT(record.number, 3);
    CHECK_OK(store_sandbox_get(store, "s", &sandbox, &err), err);
    CHECK_INT(sandbox.execution_count, 2);
    CHECK_INT(sandbox.process_count, 3);
}

TEST(one_that_was_queued_gets_another_number_and_nobody_gets_that_again)
{
    struct store *store = store_with_sandbox();
    struct execution_record queued = fixture_execution("q", "s");
    struct execution_record next = fixture_execution("n", "s");
    autoexecution stored = {0};
    struct error err = {0};

    queued.state = EXECUTION_QUEUED;
    next.state = EXECUTION_RUNNING;
    CHECK_OK(store_execution_add(store, &queued, &err), err);
    queued.number = 7;
    CHECK_OK(store_execution_renumber(store, &queued, &err), err);
    CHECK_OK(store_execution_get(store, "q", &stored, &err), err);
    CHECK_INT(stored.number, 7);
    CHECK_OK(store_execution_add(store, &next, &err), err);
    CHECK_INT(next.number, 8);
    next.number = 9; // it is not queued
    CHECK_OK(store_execution_renumber(store, &next, &err), err);
    execution_record_clear(&stored);
    CHECK_OK(store_execution_get(store, "n", &stored, &err), err);
    CHECK_INT(stored.number, 8);
}

TEST(an_execution_needs_its_sandbox_and_an_id_of_its_own)
{
    struct store *store = store_with_sandbox();
    struct execution_record record = fixture_execution("e", "nobody");
    struct error err = {0};

    CHECK(store_execution_add(store, &record, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_STR(err.noun, "sandbox");
    add(store, "e", EXECUTION_COMMAND);
    record.sandbox_id = "s";
    CHECK(store_execution_add(store, &record, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_STR(err.noun, "execution");
    CHECK_INT(record.number, 0);
    CHECK_INT(fixture_number(store, "SELECT process_count FROM sandboxes"), 1); // not counted
}

TEST(an_execution_ends_once)
{
    struct store *store = store_with_sandbox();
    struct execution_record record = fixture_execution("e", "s");
    autoexecution got = {0};
    struct error err = {0};

    CHECK_OK(store_execution_add(store, &record, &err), err);
    record.state = EXECUTION_COMPLETED;
    record.exit.cause = EXECUTION_EXITED;
    record.exit.code = 3;
    record.ended_at = NOW + 5;
    record.exit.stdout_bytes = 12;
    record.exit.is_truncated = true;
    CHECK_OK(store_execution_update(store, &record, EXECUTION_PART_STATE | EXECUTION_PART_RESULT,
                                    EXECUTION_OPEN, &err),
             err);
    record.state = EXECUTION_CANCELLED;
    CHECK(store_execution_update(store, &record, EXECUTION_PART_STATE, EXECUTION_OPEN, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_STR(err.text, "execution 'e' is completed");
    CHECK_OK(store_execution_get(store, "e", &got, &err), err);
    CHECK_INT(got.exit.code, 3);
    CHECK_INT(got.exit.stdout_bytes, 12);
    CHECK(got.exit.is_truncated);
}

TEST(executions_and_jobs_are_listed_apart_newest_first)
{
    struct store *store = store_with_sandbox();
    enum execution_kind job = EXECUTION_JOB, command = EXECUTION_COMMAND;
    struct error err = {0};

    for (int i = 0; i < 12; i++) {
        autofree char *id = xasprintf("x%02d", 20 - i); // all of the same millisecond
        add(store, id, i % 3 ? EXECUTION_COMMAND : EXECUTION_JOB);
    }
    autoexecutions jobs = {0}, commands = {0}, oldest = {0};
    struct execution_filter filter = {.sandbox_id = "s", .kind = &job, .page = {50, 0}};
    CHECK_OK(store_execution_list(store, &filter, &jobs, &err), err);
    CHECK_INT(jobs.total, 4);
    CHECK_STR(jobs.rows[0].id, "x11");
    CHECK_STR(jobs.rows[3].id, "x20");
    filter.kind = &command;
    filter.page = (struct page){3, 6};
    CHECK_OK(store_execution_list(store, &filter, &commands, &err), err);
    CHECK_INT(commands.total, 8);
    CHECK_INT(commands.count, 2);
    filter = (struct execution_filter){.sandbox_id = "s", .is_ascending = true, .page = {1, 0}};
    CHECK_OK(store_execution_list(store, &filter, &oldest, &err), err);
    CHECK_STR(oldest.rows[0].id, "x20");
    CHECK_INT(oldest.total, 12);
}

TEST(executions_are_listed_by_marks)
{
    struct store *store = store_with_sandbox();
    struct error err = {0};

    for (int i = 0; i < 12; i++) {
        autofree char *id = xasprintf("x%02d", 20 - i); // all of the same millisecond
        add(store, id, EXECUTION_COMMAND);
    }
    for (int is_one = 0; is_one < 2; is_one++) {
        struct execution_filter filter = {.sandbox_id = is_one ? "s" : NULL,
                                          .page = {.limit = 5, .is_marked = true}};
        size_t counts[4] = {0}, n = 0;
        do {
            autoexecutions list = {0};
            CHECK_OK(store_execution_list(store, &filter, &list, &err), err);
            if (n == 0)
                CHECK_STR(list.rows[0].id, is_one ? "x09" : "x20");
            counts[n++] = list.count;
            filter.page.after = list.next;
        } while (*filter.page.after.id && n < 4);
        CHECK(n == 3 && counts[0] == 5 && counts[1] == 5 && counts[2] == 2);
    }
}

TEST(those_that_had_not_ended_are_found_again)
{
    struct store *store = store_with_sandbox();
    struct execution_record ended = fixture_execution("b", "s");
    autoexecutions open = {0};
    struct error err = {0};

    add(store, "a", EXECUTION_COMMAND);
    CHECK_OK(store_execution_add(store, &ended, &err), err);
    add(store, "c", EXECUTION_JOB);
    ended.state = EXECUTION_FAILED;
    ended.ended_at = NOW;
    CHECK_OK(store_execution_update(store, &ended, EXECUTION_PART_STATE, 0, &err), err);
    CHECK_OK(store_execution_list_open(fixture_open(), &open, &err), err);
    CHECK_INT(open.count, 2);
    CHECK_STR(open.rows[0].id, "a");
    CHECK_STR(open.rows[1].id, "c");
}

TEST(executions_are_counted_by_owner_time_and_state)
{
    struct store *store = store_with_sandbox();
    struct owner owner = {.organisation = ORGANISATION, .tenant = "t"};
    struct execution_outcomes counts;
    struct error err = {0};

    for (int i = 0; i < 10; i++) {
        autofree char *id = xasprintf("e%d", i);
        struct execution_record record = fixture_execution(id, "s");
        record.owner.tenant = i < 8 ? "t" : "u";
        record.created_at = NOW + i;
        record.state = i % 2 ? EXECUTION_TIMED_OUT : EXECUTION_RUNNING;
        record.ended_at = i % 2 ? NOW : 0;
        CHECK_OK(store_execution_add(store, &record, &err), err);
    }
    CHECK_OK(store_execution_outcomes(store, &owner, NOW + 3, &counts, &err), err);
    CHECK_INT(counts.timed_out, 3);
    CHECK_INT(counts.open, 2);
    CHECK_INT(counts.total, 5);
}

TEST(the_number_of_an_event_is_never_given_again)
{
    struct store *store = store_with_sandbox();
    struct event_record first = fixture_event("v1", "s"), second = fixture_event("v2", "s");
    struct error err = {0};

    CHECK_OK(store_event_add(store, &first, &err), err);
    CHECK_OK(store_run_alone(store, STORE_FAST, "DELETE FROM events", NULL, 0, NULL, &err), err);
    CHECK_OK(store_event_add(store, &second, &err), err);
    CHECK_INT(first.number, 1);
    CHECK_INT(second.number, 2);
}

TEST(events_keep_the_order_in_which_they_happened)
{
    struct store *store = store_with_sandbox();
    struct event_filter filter = {.sandbox_id = "s", .page = {100, 0}};
    autoevents all = {0}, last = {0}, after = {0};
    struct error err = {0};

    for (int i = 0; i < 7; i++) {
        autofree char *id = xasprintf("v%d", 9 - i); // ids say nothing about order
        struct event_record event = fixture_event(id, "s");
        event.created_at = NOW - i; // nor does a clock that is set back
        event.detail = "{\"a\":1}";
        CHECK_OK(store_event_add(store, &event, &err), err);
        CHECK_INT(event.number, i + 1);
    }
    CHECK_OK(store_event_list(store, &filter, &all, &err), err);
    CHECK_INT(all.count, 7);
    for (int i = 0; i < 7; i++)
        CHECK_INT(all.rows[i].number, i + 1);
    CHECK_STR(all.rows[0].detail, "{\"a\":1}");
    filter.is_descending = true;
    filter.page.limit = 2;
    CHECK_OK(store_event_list(store, &filter, &last, &err), err);
    CHECK_INT(last.rows[0].number, 7);
    CHECK_INT(last.total, 7);
    filter = (struct event_filter){.sandbox_id = "s", .after = 5, .page = {100, 0}};
    CHECK_OK(store_event_list(store, &filter, &after, &err), err);
    CHECK_INT(after.count, 2);
    CHECK_INT(after.rows[0].number, 6);
}

TEST(an_event_needs_its_sandbox)
{
    struct store *store = store_with_sandbox();
    struct event_record event = fixture_event("v", "nobody");
    struct error err = {0};

    CHECK(store_event_add(store, &event, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_STR(err.noun, "sandbox");
}

TEST(usage_of_a_long_time_is_spread_over_its_hours)
{
    struct store *store = fixture_store();
    struct sandbox_record sandbox = fixture_sandbox("s1");
    const int64_t hour = (int64_t)3600 * 1000;
    struct usage_sample sample = {.sandbox_id = "s1",
                                  .more = {.cpu_ms = 7, .memory_mib_ms = 4000},
                                  .since = NOW,
                                  .now = NOW + 3 * hour};
    struct owner owner = sandbox.owner;
    struct usage_total total;
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    CHECK_OK(store_usage_add(store, &sample, &err), err);
    CHECK_OK(store_usage_sum(store, &owner, 0, 0, &total, &err), err);
    CHECK_INT(total.memory_mib_ms, 4000);
    CHECK_OK(store_usage_sum(store, &owner, NOW + 61000, NOW + 2 * hour + 61000, &total, &err),
             err);
    CHECK_INT(total.memory_mib_ms, 2000);
    CHECK_INT(total.cpu_ms, 0);
    sample = (struct usage_sample){.sandbox_id = "s1",
                                   .more.memory_mib_ms = 10,
                                   .since = NOW + 9 * hour,
                                   .now = NOW + 8 * hour};
    CHECK_OK(store_usage_add(store, &sample, &err), err); // the clock went back
    CHECK_OK(store_usage_sum(store, &owner, 0, 0, &total, &err), err);
    CHECK_INT(total.memory_mib_ms, 4010);
}

TEST(usage_adds_up_in_the_sandbox_and_for_its_organisation)
{
    struct store *store = store_with_sandbox();
    struct usage_sample sample = {
        "s", {.cpu_ms = 10, .memory_mib_ms = 500, .egress_bytes = 7}, 10, NOW};
    struct owner owner = {.organisation = ORGANISATION};
    autosandbox sandbox = {0};
    struct usage_total total;
    struct error err = {0};

    CHECK_OK(store_usage_add(store, &sample, &err), err);
    sample.now = NOW + 61000;
    sample.counted_cpu_ms = 20;
    CHECK_OK(store_usage_add(store, &sample, &err), err);
    CHECK_OK(store_usage_add(store, &sample, &err), err);
    CHECK_OK(store_sandbox_get(store, "s", &sandbox, &err), err);
    CHECK_INT(sandbox.cpu_ms, 30);
    CHECK_INT(sandbox.memory_mib_ms, 1500);
    CHECK_INT(sandbox.egress_bytes, 21);
    CHECK_INT(sandbox.counted_cpu_ms, 20);
    CHECK_INT(sandbox.counted_at, NOW + 61000);

    CHECK_OK(store_usage_sum(store, &owner, 0, 0, &total, &err), err);
    CHECK_INT(total.cpu_ms, 30);
    CHECK_OK(store_usage_sum(store, &owner, NOW + 61000, 0, &total, &err), err);
    CHECK_INT(total.cpu_ms, 20);
    CHECK_OK(store_usage_sum(store, &owner, 0, NOW + 1, &total, &err), err);
    CHECK_INT(total.memory_mib_ms, 500);
    owner.project = "p";
    CHECK_OK(store_usage_sum(store, &owner, 0, 0, &total, &err), err);
    CHECK_INT(total.egress_bytes, 21);
    owner.project = "q";
    CHECK_OK(store_usage_sum(store, &owner, 0, 0, &total, &err), err);
    CHECK_INT(total.egress_bytes, 0);
}

TEST(usage_counts_executions_and_outlives_sandboxes)
{
    struct store *store = store_with_sandbox();
    struct owner owner = {.organisation = ORGANISATION};
    struct sandbox_record ended = fixture_sandbox("s");
    struct usage_total total;
    int64_t removed = 0;
    struct error err = {0};

    add(store, "e1", EXECUTION_COMMAND);
    add(store, "e2", EXECUTION_COMMAND);
    add(store, "j1", EXECUTION_JOB);
    ended.state = SANDBOX_ENDED;
    ended.ended_at = NOW;
    CHECK_OK(store_sandbox_update(store, &ended, SANDBOX_PART_STATE, 0, &err), err);
    CHECK_OK(store_sandbox_purge(store, NOW + 1, 0, 1, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK_OK(store_usage_sum(store, &owner, 0, 0, &total, &err), err);
    CHECK_INT(total.executions, 2);
    CHECK_OK(store_usage_purge(store, NOW + 60000, &removed, &err), err);
    CHECK_INT(removed, 1);
}

TEST(usage_of_an_unknown_sandbox_is_not_found)
{
    struct store *store = store_with_sandbox();
    struct usage_sample sample = {.sandbox_id = "nobody", .now = NOW};
    struct error err = {0};

    CHECK(store_usage_add(store, &sample, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_STR(err.noun, "sandbox");
}

static void end(struct store *store, const char *id, enum execution_state state,
                enum execution_cause cause, int64_t exit_code)
{
    struct execution_record record = fixture_execution(id, "s");
    struct error err = {0};

    add(store, id, EXECUTION_COMMAND);
    record.state = state;
    record.exit.cause = cause;
    record.exit.code = exit_code;
    record.ended_at = NOW + 10;
    CHECK_OK(store_execution_update(store, &record, EXECUTION_PART_STATE, 0, &err), err);
}

TEST(outcomes_are_told_apart)
{
    struct store *store = store_with_sandbox();
    struct owner owner = {.organisation = ORGANISATION};
    struct execution_outcomes outcomes;
    struct error err = {0};

    end(store, "e1", EXECUTION_COMPLETED, EXECUTION_EXITED, 0);
    end(store, "e2", EXECUTION_COMPLETED, EXECUTION_EXITED, 0);
    end(store, "e3", EXECUTION_COMPLETED, EXECUTION_EXITED, 3);
    end(store, "e4", EXECUTION_TIMED_OUT, EXECUTION_TIMEOUT, 124);
    end(store, "e5", EXECUTION_FAILED, EXECUTION_BOX_ENDED, 137);
    end(store, "e6", EXECUTION_FAILED, EXECUTION_NOT_RUN, -1);
    end(store, "e7", EXECUTION_CANCELLED, EXECUTION_STOPPED, 137);
    add(store, "e8", EXECUTION_COMMAND);
    CHECK_OK(store_execution_outcomes(store, &owner, NOW, &outcomes, &err), err);
    CHECK_INT(outcomes.total, 8);
    CHECK_INT(outcomes.succeeded, 2);
    CHECK_INT(outcomes.timed_out, 1);
    CHECK_INT(outcomes.lost, 1);
    CHECK_INT(outcomes.cancelled, 1);
    CHECK_INT(outcomes.open, 1);
    CHECK_OK(store_execution_outcomes(store, &owner, NOW + 1, &outcomes, &err), err);
    CHECK_INT(outcomes.total, 0);
    owner.tenant = "somebody";
    CHECK_OK(store_execution_outcomes(store, &owner, 0, &outcomes, &err), err);
    CHECK_INT(outcomes.total, 0);
}

static void put_sandbox_that_keeps(struct store *store, int64_t keep_ms)
{
    struct sandbox_record sandbox = fixture_sandbox("s");
    struct error err = {0};

    sandbox.keep_ms = keep_ms;
    CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
}

static void name_output(struct store *store, const char *id, const char *stream)
{
    struct execution_record record = fixture_execution(id, "s");
    struct error err = {0};

    record.stdout_stream = stream;
    CHECK_OK(store_execution_update(store, &record, EXECUTION_PART_STREAMS, 0, &err), err);
}

static void tell(struct store *store, const char *id, const char *type, int64_t when)
{
    struct event_record event = fixture_event(id, "s");
    struct error err = {0};

    event.type = type;
    event.created_at = when;
    CHECK_OK(store_event_add(store, &event, &err), err);
}

TEST(the_past_of_a_sandbox_that_lives_goes_when_it_is_old)
{
    struct store *store = fixture_store();
    struct stream_record stream = fixture_stream("t");
    autostream expiring = {0};
    int64_t removed = -1;
    struct error err = {0};

    put_sandbox_that_keeps(store, 1000);
    end(store, "old", EXECUTION_COMPLETED, EXECUTION_EXITED, 0);
    name_output(store, "old", "t");
    add(store, "open", EXECUTION_COMMAND);
    tell(store, "v1", "created", NOW);
    tell(store, "v2", "started", NOW);
    tell(store, "v3", "completed", NOW + 10);
    tell(store, "v4", "started", NOW + 11);
    stream.sandbox_id = "s";
    stream.execution_id = "old";
    stream.kind = STREAM_STDOUT;
    stream.state = STREAM_COMPLETE;
    stream.completed_at = NOW + 10;
    stream.expires_at = 0;
    CHECK_OK(store_stream_put(store, &stream, NULL, 0, &err), err);

    CHECK_OK(store_event_purge(store, NOW + 11, 0, 100, &removed, &err), err);
    CHECK_OK(store_execution_purge(store, NOW + 1010, 10, &removed, &err), err);
    CHECK_INT(removed, 0);
    // First its stream expires, then it goes.
    CHECK_OK(store_execution_purge(store, NOW + 1011, 10, &removed, &err), err);
    CHECK_INT(removed, 0);
    CHECK_OK(store_stream_get(store, "t", &expiring, &err), err);
    CHECK_INT(expiring.expires_at, NOW + 1011);
    CHECK_OK(store_stream_remove(store, "t", &err), err);
    CHECK_OK(store_execution_purge(store, NOW + 1011, 10, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM executions"), 1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 2);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events WHERE type = 'created'"), 1);
}

TEST(so_many_at_once_are_forgotten_the_oldest_first)
{
    struct store *store = fixture_store();
    int64_t removed = -1;
    struct error err = {0};

    put_sandbox_that_keeps(store, 1000);
    for (int i = 0; i < 5; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "e%d", i);
        end(store, id, EXECUTION_COMPLETED, EXECUTION_EXITED, 0);
    }
    CHECK_OK(store_execution_purge(store, NOW + 1011, 3, &removed, &err), err);
    CHECK_INT(removed, 3);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM executions WHERE number > 3"), 2);
    CHECK_OK(store_execution_purge(store, NOW + 1011, 3, &removed, &err), err);
    CHECK_INT(removed, 2);
    CHECK_INT(fixture_number(store, "SELECT process_count FROM sandboxes"), 5);
}

static void *purge_nothing(void *store)
{
    int64_t removed = -1;
    struct error err = {0};

    CHECK_OK(store_execution_purge(store, NOW + 1010, 10, &removed, &err), err);
    CHECK_INT(removed, 0);
    return NULL;
}

TEST(looking_for_what_is_old_needs_no_right_to_write)
{
    struct store *store = fixture_store();
    struct error err = {0};
    pthread_t other;

    put_sandbox_that_keeps(store, 1000);
    end(store, "young", EXECUTION_COMPLETED, EXECUTION_EXITED, 0);
    autotransaction ours = {0};
    CHECK_OK(store_begin(store, STORE_FAST, &ours, &err), err);
    add(store, "more", EXECUTION_COMMAND);
    CHECK_INT(pthread_create(&other, NULL, purge_nothing, store), 0);
    (void)pthread_join(other, NULL);
    CHECK_OK(store_commit(&ours, &err), err);
}

TEST(the_past_of_a_sandbox_that_says_nothing_stays_as_long_as_it_lives)
{
    struct store *store = fixture_store();
    int64_t removed = -1;
    struct error err = {0};

    put_sandbox_that_keeps(store, 0);
    end(store, "old", EXECUTION_COMPLETED, EXECUTION_EXITED, 0);
    CHECK_OK(store_execution_purge(store, NOW * 2, 10, &removed, &err), err);
    CHECK_INT(removed, 0);
}

TEST(an_ended_sandbox_is_kept_for_its_own_time)
{
    struct store *store = fixture_store();
    struct sandbox_record ended = fixture_sandbox("s");
    int64_t removed = -1;
    struct error err = {0};

    put_sandbox_that_keeps(store, 1000);
    ended.state = SANDBOX_ENDED;
    ended.ended_at = NOW;
    CHECK_OK(store_sandbox_update(store, &ended, SANDBOX_PART_STATE, 0, &err), err);
    CHECK_OK(store_sandbox_purge(store, NOW + 1000, 1, 10, &removed, &err), err);
    CHECK_INT(removed, 0);
    CHECK_OK(store_sandbox_purge(store, NOW + 1001, 1, 10, &removed, &err), err);
    CHECK_INT(removed, 1);
}

TEST(days_are_added_up_when_they_are_old_and_forgotten_later)
{
    const int64_t day = 86400000;
    struct store *store = fixture_store();
    struct usage_filter filter = {.owner = {.organisation = ORGANISATION},
                                  .to = 100 * day,
                                  .by = USAGE_BY_SANDBOX,
                                  .limit = 10};
    autousages before = {0}, after = {0}, days = {0};
    int64_t changed = 0, runs = 0;
    struct error err = {0};

    CHECK_OK(store_run_alone(
                 store, STORE_FAST,
                 "DELETE FROM usage_days; INSERT INTO usage_days (organisation, day_at, "
                 "sandbox_id, key_id, "
                 "labels, member, runs, cpu_ms, memory_mib_ms, disk_bytes, egress_bytes) VALUES "
                 "('" ORGANISATION "', 0, 's1', 'k', '', '', 1, 1, 1, 1, 0), "
                 "('" ORGANISATION "', 864000000, 's1', 'k', '', '', 1, 10, 1, 5, 0), "
                 "('" ORGANISATION "', 864000000, 's2', 'k', '', '', 2, 20, 1, 7, 0), "
                 "('" ORGANISATION "', 1728000000, 's3', 'k', '', '', 4, 40, 1, 9, 0)",
                 NULL, 0, NULL, &err),
             err);
    CHECK_OK(store_usage_list(store, &filter, &before, &err), err);
    CHECK_INT(before.count, 3);
    CHECK_OK(store_usage_merge(store, 15 * day, day, &changed, &err), err);
    CHECK_OK(store_usage_list(store, &filter, &after, &err), err);
    CHECK_INT(after.count,
              2); // the first day is forgotten, and of the second nobody knows whose it was
    CHECK_STR(after.rows[0].id, "s3");
    CHECK_STR(after.rows[1].id, "");
    CHECK_INT(after.rows[1].used.executions, 3);
    CHECK_INT(after.rows[1].used.cpu_ms, 30);
    CHECK_INT(after.rows[1].disk_bytes, 7);
    CHECK_OK(store_usage_merge(store, 15 * day, day, &changed, &err), err);
    CHECK_INT(changed, 0);
    filter.by = USAGE_BY_DAY;
    CHECK_OK(store_usage_list(store, &filter, &days, &err), err);
    CHECK_INT(days.count, 2);
    CHECK_OK(store_usage_runs(store, ORGANISATION, "k", 20 * day, &runs, &err), err);
    CHECK_INT(runs, 4);
}

static int64_t runs_of_all(struct store *store)
{
    int64_t runs = -1;
    struct error err = {0};

    CHECK_OK(store_usage_runs(store, ORGANISATION, NULL, NOW - NOW % 86400000, &runs, &err), err);
    return runs;
}

/* Whether it is a run of the organisation's, while it runs and after. */
static void check_counts(struct execution_record record, bool is_counted)
{
    struct store *store = store_with_sandbox();
    struct error err = {0};

    record.started_at = NOW;
    CHECK_OK(store_execution_add(store, &record, &err), err);
    CHECK_INT(runs_of_all(store), is_counted);
    record.state = EXECUTION_COMPLETED;
    record.ended_at = NOW + 5;
    CHECK_OK(store_execution_update(store, &record, EXECUTION_PART_STATE, EXECUTION_OPEN, &err),
             err);
    CHECK_INT(runs_of_all(store), is_counted);
}

TEST(a_context_of_a_stranger_is_no_run_of_the_organisation)
{
    struct execution_record record = fixture_execution("e", "s");

    record.key_id = NULL;
    record.tag = EXECUTION_STRANGER;
    check_counts(record, true); // a command that its caller calls so
    record.kind = EXECUTION_CONTEXT;
    check_counts(record, false);
    record.tag = NULL;
    check_counts(record, true);
    record.tag = EXECUTION_STRANGER;
    record.key_id = "k";
    check_counts(record, true); // somebody with a key has started it anew
}
