/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/stream_table.c: labels, completion, expiry. */
#include "store/streams.h"

#include "base/mem.h"
#include "fixture.h"
#include "test.h"

static void put(struct store *store, const char *id, const char *team, const char *run)
{
    struct stream_record record = fixture_stream(id);
    struct stream_label labels[] = {{"team", team}, {"run", run}};
    struct error err = {0};

    CHECK_OK(store_stream_put(store, &record, labels, ARRAY_SIZE(labels), &err), err);
}

TEST(streams_are_found_by_all_their_labels)
{
    struct store *store = fixture_store();
    struct stream_label wanted[] = {{"team", "a"}, {"run", "1"}};
    struct stream_filter filter = {.labels = wanted, .n_labels = 2, .page = {10, 0}};
    autostreams both = {0}, one = {0}, none = {0};
    struct error err = {0};

    put(store, "x", "a", "1");
    put(store, "y", "a", "2");
    put(store, "z", "b", "1");
    CHECK_OK(store_stream_list(store, &filter, &both, &err), err);
    CHECK_INT(both.total, 1);
    CHECK_STR(both.rows[0].id, "x");
    filter.n_labels = 1;
    filter.is_descending = true;
    CHECK_OK(store_stream_list(store, &filter, &one, &err), err);
    CHECK_INT(one.total, 2);
    CHECK_STR(one.rows[0].id, "y");
    wanted[0].value = "' OR 1=1 --";
    CHECK_OK(store_stream_list(store, &filter, &none, &err), err);
    CHECK_INT(none.total, 0);
}

TEST(labels_have_bounds)
{
    struct store *store = fixture_store();
    struct stream_record record = fixture_stream("x");
    struct stream_label labels[STREAM_LABELS_MAX + 1];
    char names[STREAM_LABELS_MAX + 1][8];
    struct error err = {0};

    for (int i = 0; i <= STREAM_LABELS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "l%d", i);
        labels[i] = (struct stream_label){names[i], ""};
    }
    CHECK(store_stream_put(store, &record, labels, STREAM_LABELS_MAX + 1, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    labels[1].name = "l0";
    CHECK(store_stream_put(store, &record, labels, 2, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM streams"), 0);
    labels[1].name = names[1];
    CHECK_OK(store_stream_put(store, &record, labels, STREAM_LABELS_MAX, &err), err);
    autostreams list = {0};
    struct stream_filter filter = {
        .labels = labels, .n_labels = STREAM_FILTER_LABELS, .page = {1, 0}};
    CHECK_OK(store_stream_list(store, &filter, &list, &err), err);
    CHECK_INT(list.count, 1);
    filter.n_labels++;
    autostreams more = {0};
    CHECK(store_stream_list(store, &filter, &more, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
}

TEST(a_stream_is_completed_once)
{
    struct store *store = fixture_store();
    struct stream_record record = fixture_stream("x");
    autostream got = {0};
    struct error err = {0};

    CHECK_OK(store_stream_put(store, &record, NULL, 0, &err), err);
    record.state = STREAM_COMPLETE;
    record.completed_at = NOW;
    record.size_bytes = 99;
    CHECK_OK(store_stream_update(store, &record, STREAM_PART_STATE | STREAM_PART_SIZE,
                                 stream_in(STREAM_OPEN), &err),
             err);
    CHECK(store_stream_update(store, &record, STREAM_PART_SIZE, stream_in(STREAM_OPEN), &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_STR(err.text, "stream 'x' is complete");
    CHECK_OK(store_stream_get(store, "x", &got, &err), err);
    CHECK_INT(got.size_bytes, 99);
}

TEST(a_stream_can_be_given_to_an_execution)
{
    struct store *store = fixture_store();
    struct sandbox_record sandbox = fixture_sandbox("s");
    struct stream_record record = fixture_stream("x");
    struct stream_filter filter = {.sandbox_id = "s", .page = {1, 0}};
    autostreams list = {0};
    struct error err = {0};

    CHECK_OK(store_stream_put(store, &record, NULL, 0, &err), err);
    record.sandbox_id = "s";
    record.execution_id = "e";
    record.kind = STREAM_STDIN;
    CHECK(store_stream_update(store, &record, STREAM_PART_PLACE, 0, &err) < 0); // no such sandbox
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    CHECK_OK(store_stream_update(store, &record, STREAM_PART_PLACE, 0, &err), err);
    CHECK_OK(store_stream_list(store, &filter, &list, &err), err);
    CHECK_INT(list.rows[0].kind, STREAM_STDIN);
    CHECK_STR(list.rows[0].execution_id, "e");
}

TEST(streams_expire_longest_first_and_go_with_their_labels)
{
    struct store *store = fixture_store();
    struct error err = {0};

    for (int i = 0; i < 5; i++) {
        char id[] = {(char)('a' + i), 0};
        struct stream_record record = fixture_stream(id);
        record.expires_at = i == 4 ? 0 : NOW - i;
        CHECK_OK(store_stream_put(store, &record, &(struct stream_label){"l", "v"}, 1, &err), err);
    }
    autostreams some = {0}, rest = {0};
    CHECK_OK(store_stream_list_expired(store, NOW, 2, &some, &err), err);
    CHECK_INT(some.count, 2);
    CHECK_STR(some.rows[0].id, "d");
    CHECK_STR(some.rows[1].id, "c");
    CHECK_OK(store_stream_remove(store, "d", &err), err);
    CHECK(store_stream_remove(store, "d", &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM stream_labels"), 4);
    CHECK_OK(store_stream_list_expired(store, NOW, 10, &rest, &err), err);
    CHECK_INT(rest.count, 2);
}

TEST(complete_streams_of_a_sandbox_can_be_let_expire_together)
{
    struct store *store = fixture_store();
    struct sandbox_record sandbox = fixture_sandbox("s");
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    for (int i = 0; i < 4; i++) {
        char id[] = {(char)('a' + i), 0};
        struct stream_record record = fixture_stream(id);
        record.sandbox_id = i < 3 ? "s" : NULL;
        record.state = i ? STREAM_COMPLETE : STREAM_OPEN;
        record.completed_at = i ? NOW : 0;
        CHECK_OK(store_stream_put(store, &record, NULL, 0, &err), err);
    }
    CHECK_OK(store_stream_expire(store, "s", NOW, &err), err);
    autostreams expired = {0};
    CHECK_OK(store_stream_list_expired(store, NOW + 1, 10, &expired, &err), err);
    CHECK_INT(expired.count, 2);
}

TEST(streams_of_sandboxes_that_ended_long_ago_are_found_whatever_they_were_to_expire_at)
{
    struct store *store = fixture_store();
    struct error err = {0};

    for (int i = 0; i < 4;
         i++) { // ended now, long ago, long ago with a time of its own, not at all
        char id[] = {(char)('a' + i), 0};
        struct sandbox_record sandbox = fixture_sandbox(id);
        struct stream_record record = fixture_stream(id);
        sandbox.state = i < 3 ? SANDBOX_ENDED : SANDBOX_IDLE;
        sandbox.ended_at = i == 0 ? NOW : i < 3 ? NOW - 1000 : 0;
        sandbox.keep_ms = i == 2 ? 5000 : 0;
        record.sandbox_id = id;
        record.expires_at = NOW + 1000000;
        CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
        CHECK_OK(store_stream_put(store, &record, NULL, 0, &err), err);
    }
    autostreams found = {0};
    CHECK_OK(store_stream_list_outlived(store, NOW - 10, 10, &found, &err), err);
    CHECK_INT(found.count, 1);
    CHECK_STR(found.rows[0].id, "b");
}

/* An output of `bytes` that ended at that time, in sandbox `sandbox`. */
static void put_output(struct store *store, const char *id, const char *sandbox, int64_t bytes,
                       int64_t ended_at)
{
    struct stream_record record = fixture_stream(id);
    struct error err = {0};

    record.sandbox_id = sandbox;
    record.execution_id = "e";
    record.kind = STREAM_STDOUT;
    record.state = STREAM_COMPLETE;
    record.size_bytes = bytes;
    record.completed_at = ended_at;
    CHECK_OK(store_stream_put(store, &record, NULL, 0, &err), err);
}

static struct store *store_with_sandboxes(void)
{
    struct store *store = fixture_store();
    struct error err = {0};

    for (int i = 0; i < 3; i++) { // two of one key
        char id[] = {(char)('A' + i), 0};
        struct sandbox_record sandbox = fixture_sandbox(id);
        sandbox.key_id = i < 2 ? "k1" : "k2";
        CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    }
    return store;
}

TEST(output_that_is_too_much_for_its_share_is_listed_oldest_first)
{
    struct store *store = store_with_sandboxes();
    struct error err = {0};
    int64_t commands = 0, users = 0;

    for (int i = 0; i < 6; i++) {
        char id[] = {(char)('a' + i), 0};
        put_output(store, id, i == 5 ? "C" : i % 2 ? "B" : "A", 100, NOW + i);
    }
    autostreams sandboxes = {0}, keys = {0}, all = {0}, none = {0};
    CHECK_OK(store_stream_list_excess(store, STREAM_SHARE_SANDBOX, 150, 10, &sandboxes, &err), err);
    CHECK_INT(sandboxes.count, 1); // A has a, c, e
    CHECK_STR(sandboxes.rows[0].id, "a");
    CHECK_OK(store_stream_list_excess(store, STREAM_SHARE_KEY, 250, 10, &keys, &err), err);
    CHECK_INT(keys.count, 2); // k1 has a to e
    CHECK_STR(keys.rows[1].id, "b");
    CHECK_OK(store_stream_list_excess(store, STREAM_SHARE_ALL, 1, 10, &all, &err), err);
    CHECK_INT(all.count, 5); // the newest stays
    CHECK_OK(store_stream_list_excess(store, STREAM_SHARE_ALL, 600, 10, &none, &err), err);
    CHECK_INT(none.count, 0);
    CHECK_OK(store_stream_used(store, &commands, &users, &err), err);
    CHECK_INT(commands, 600);
    CHECK_INT(users, 0);
}

TEST(output_of_a_living_sandbox_ages_and_its_execution_says_when_it_is_gone)
{
    struct store *store = store_with_sandboxes();
    struct execution_record execution = fixture_execution("e", "A");
    struct error err = {0};

    CHECK_OK(store_execution_add(store, &execution, &err), err);
    put_output(store, "old", "A", 1, NOW - 100);
    put_output(store, "young", "A", 1, NOW);
    autostreams aged = {0};
    CHECK_OK(store_stream_list_aged(store, NOW - 10, 10, &aged, &err), err);
    CHECK_INT(aged.count, 1);
    CHECK_STR(aged.rows[0].id, "old");
    CHECK_OK(store_stream_remove_expired(store, "old", &err), err);
    autoexecution found = {0};
    CHECK_OK(store_execution_get(store, "e", &found, &err), err);
    CHECK(found.is_output_expired);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM streams"), 1);
}
