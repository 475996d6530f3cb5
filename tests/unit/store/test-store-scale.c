/* SPDX-License-Identifier: Apache-2.0 */
/* A hundred thousand sandboxes: lists use their indexes. Times are printed for people; none
 * decides. */
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "fixture.h"
#include "store/store_impl.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

#define ROWS 100000
#define SAMPLES 1000

static char ids[ROWS][ID_TEXT];

static struct store *filled(void)
{
    struct store *store = fixture_store();
    struct error err = {0};
    uint64_t start = clock_monotonic_us();

    for (int i = 0; i < ROWS;) {
        autotransaction together = {0};
        CHECK_OK(store_begin(store, STORE_FAST, &together, &err), err);
        for (int stop = i + 1000; i < stop; i++) {
            struct sandbox_record record = fixture_sandbox(id_make(ids[i]));
            record.created_at = NOW + i;
            record.state = i % 100 ? SANDBOX_ENDED : SANDBOX_IDLE;
            record.ended_at = i % 100 ? NOW + i : 0;
            record.metadata = "{\"purpose\":\"a row of a usual size\",\"n\":1}";
            CHECK_OK(store_sandbox_put(store, &record, &err), err);
        }
        CHECK_OK(store_commit(&together, &err), err);
    }
    printf("# %d rows in %.1f s\n", ROWS, (double)(clock_monotonic_us() - start) / 1e6);
    return store;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *what, uint64_t *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, compare);
    printf("# %s: p50 %llu us, p99 %llu us\n", what, (unsigned long long)samples[count / 2],
           (unsigned long long)samples[count * 99 / 100]);
}

static void time_list(struct store *store, const char *what, struct sandbox_filter filter,
                      int64_t total)
{
    uint64_t samples[21];
    struct error err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        autosandboxes list = {0};
        uint64_t start = clock_monotonic_us();
        CHECK_OK(store_sandbox_list(store, &filter, &list, &err), err);
        samples[i] = clock_monotonic_us() - start;
        CHECK_INT(list.total, total);
    }
    report(what, samples, ARRAY_SIZE(samples));
}

struct plan {
    char text[1024];
};

static int take_plan(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct plan *plan = data;
    size_t used = strlen(plan->text);

    (void)snprintf(plan->text + used, sizeof plan->text - used, "%s; ", row[3].data);
    return 0;
}

static void check_plan(struct store *store, const char *text, const char *index)
{
    autofree char *explain = xasprintf("EXPLAIN QUERY PLAN %s", text);
    struct plan plan = {""};
    struct sql *sql = NULL;
    struct error err = {0};

    CHECK_OK(store_connection(store, &sql, &err), err);
    CHECK_OK(sql_run(sql, explain, NULL, 0, take_plan, &plan, NULL, &err), err);
    if (!strstr(plan.text, index) || strstr(plan.text, "TEMP B-TREE"))
        test_fail(__FILE__, __LINE__, "%s does: %s", text, plan.text);
}

TEST(a_hundred_thousand_rows_are_listed_by_index)
{
    struct store *store = filled();
    struct sandbox_filter newest = {
        .owner.organisation = ORGANISATION, .is_descending = true, .page = {50, 0}};
    struct sandbox_filter deep = newest, alive = newest, named = newest;

    deep.page.offset = ROWS - 50;
    alive.states = SANDBOX_ALIVE;
    named.sort = SANDBOX_BY_NAME;
    time_list(store, "list the newest 50", newest, ROWS);
    time_list(store, "list the oldest 50 by offset", deep, ROWS);
    time_list(store, "list 50 alive", alive, ROWS / 100);
    time_list(store, "list 50 by name", named, ROWS);
    check_plan(store,
               "SELECT * FROM sandboxes WHERE organisation = 'o' AND deleted_at = 0 "
               "ORDER BY created_at DESC, id DESC LIMIT 50",
               "INDEX sandboxes_by_organisation");
    check_plan(store,
               "SELECT sum(n) FROM sandbox_counts WHERE organisation = 'o' AND class = 'ended'",
               "INDEX sqlite_autoindex_sandbox_counts_1 (organisation=?)");
    check_plan(store,
               "SELECT * FROM sandboxes WHERE organisation = 'o' AND ended_at = 0 AND state IN "
               "('idle', 'paused') ORDER BY created_at DESC, id DESC LIMIT 50",
               "INDEX sandboxes_alive");
    check_plan(store,
               "SELECT * FROM sandboxes WHERE organisation = 'o' AND ended_at = 0 "
               "ORDER BY created_at DESC, id DESC LIMIT 50",
               "INDEX sandboxes_alive");
    check_plan(store, "SELECT * FROM sandboxes WHERE ended_at = 0", "INDEX sandboxes_alive");
    check_plan(store,
               "SELECT id FROM sandboxes WHERE organisation = 'o' AND ended_at = 0 AND "
               "name IS NOT NULL AND name = 'n' LIMIT 2",
               "INDEX sandboxes_by_name");
    check_plan(store,
               "SELECT count(*) FROM sandboxes WHERE organisation = 'o' AND deleted_at = 0 AND "
               "id IN (SELECT sandbox_id FROM sandbox_labels WHERE sandbox_labels.name = 'n' AND "
               "sandbox_labels.value IN ('v', 'w'))",
               "INDEX sandbox_labels_by_name");
    check_plan(store, "SELECT * FROM executions WHERE ended_at = 0 ORDER BY created_at, id",
               "INDEX executions_open");
    check_plan(store,
               "SELECT * FROM executions WHERE sandbox_id = 's' AND kind = 'job' "
               "ORDER BY number DESC LIMIT 50",
               "INDEX sqlite_autoindex_executions");
    check_plan(store,
               "SELECT * FROM streams WHERE expires_at <> 0 AND expires_at < 5 "
               "ORDER BY expires_at, id LIMIT 10",
               "INDEX streams_expiring");
}

TEST(one_row_at_a_time)
{
    struct store *store = fixture_store();
    uint64_t samples[SAMPLES];
    struct error err = {0};

    for (int is_durable = 0; is_durable < 2; is_durable++) {
        for (int i = 0; i < SAMPLES; i++) {
            struct sandbox_record record = fixture_sandbox(id_make(ids[i]));
            record.mode = is_durable ? SANDBOX_INTERACTIVE : SANDBOX_ONE_SHOT;
            uint64_t start = clock_monotonic_us();
            CHECK_OK(store_sandbox_put(store, &record, &err), err);
            samples[i] = clock_monotonic_us() - start;
        }
        report(is_durable ? "durable write" : "fast write", samples, SAMPLES);
    }
    for (int i = 0; i < SAMPLES; i++) {
        struct sandbox_record record = fixture_sandbox(ids[i]);
        uint64_t start = clock_monotonic_us();
        CHECK_OK(store_sandbox_update(store, &record, SANDBOX_PART_STATE, 0, &err), err);
        samples[i] = clock_monotonic_us() - start;
    }
    report("change of state", samples, SAMPLES);
    for (int i = 0; i < SAMPLES; i++) {
        autosandbox got = {0};
        uint64_t start = clock_monotonic_us();
        CHECK_OK(store_sandbox_get(store, ids[i], &got, &err), err);
        samples[i] = clock_monotonic_us() - start;
    }
    report("read by id", samples, SAMPLES);
}

struct crowd {
    struct store *store;
    atomic_bool *is_over;
    int writes;
    bool has_failed;
};

static void *write_durably(void *data)
{
    struct crowd *crowd = data;
    struct error err = {0};
    char id[ID_TEXT];

    while (!atomic_load(crowd->is_over) && !crowd->has_failed) {
        struct sandbox_record record = fixture_sandbox(id_make(id));
        crowd->has_failed = store_sandbox_put(crowd->store, &record, &err) < 0;
        crowd->writes++;
    }
    return NULL;
}

TEST(quick_writes_beside_durable_ones)
{
    struct store *store = fixture_store();
    struct crowd crowd[4];
    pthread_t threads[ARRAY_SIZE(crowd)];
    atomic_bool is_over = false;
    uint64_t samples[SAMPLES];
    struct error err = {0};
    int writes = 0;

    for (size_t i = 0; i < ARRAY_SIZE(crowd); i++) {
        crowd[i] = (struct crowd){store, &is_over, 0, false};
        CHECK(pthread_create(&threads[i], NULL, write_durably, &crowd[i]) == 0);
    }
    uint64_t begin = clock_monotonic_us();
    for (int i = 0; i < SAMPLES; i++) {
        struct sandbox_record record = fixture_sandbox(id_make(ids[i]));
        record.mode = SANDBOX_ONE_SHOT;
        uint64_t start = clock_monotonic_us();
        CHECK_OK(store_sandbox_put(store, &record, &err), err);
        samples[i] = clock_monotonic_us() - start;
    }
    uint64_t took = clock_monotonic_us() - begin;
    atomic_store(&is_over, true);
    for (size_t i = 0; i < ARRAY_SIZE(crowd); i++) {
        pthread_join(threads[i], NULL);
        CHECK(!crowd[i].has_failed);
        writes += crowd[i].writes;
    }
    report("fast write beside four durable writers", samples, SAMPLES);
    printf("# durable writes meanwhile: %.0f/s\n", writes * 1e6 / (double)took);
}
