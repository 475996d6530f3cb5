/* SPDX-License-Identifier: Apache-2.0 */
/* What src/store/store.h promises of transactions that somebody is in the way of, or whose outcome nobody knows. */
#include "base/mem.h"
#include "busy.h"
#include "fixture.h"
#include "store/sql.h"
#include "test.h"

#include <sqlite3.h>
#include <stdio.h>

static struct store *watched_store(void)
{
    struct sandbox_record sandbox = fixture_sandbox("s");
    struct store *store = fixture_store();
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
    busy_watch(fixture_path(), "events");
    return store;
}

TEST(a_call_is_done_again_while_somebody_is_in_the_way)
{
    struct store *store = watched_store();
    struct event_record event = fixture_event("v", "s");
    struct error err = {0};

    busy_next(STORE_ATTEMPTS - 1);
    CHECK_OK(store_event_add(store, &event, &err), err);
    CHECK_INT(busy_failed(), STORE_ATTEMPTS - 1);
    CHECK_INT(event.number, 1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 1);
    CHECK_INT(fixture_number(store, "SELECT event_count FROM sandboxes"), 1);
}

TEST(it_is_not_done_again_for_ever)
{
    struct store *store = watched_store();
    struct event_record event = fixture_event("v", "s");
    struct error err = {0};

    busy_next(1000);
    CHECK(store_event_add(store, &event, &err) < 0);
    CHECK_INT(busy_asked(), STORE_ATTEMPTS);
    CHECK(store_is_retry(&err) && !store_is_lost(&err));
    CHECK_INT(error_kind(&err), ERROR_UNAVAILABLE);
    CHECK_INT(event.number, 0);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 0);
    CHECK_INT(fixture_number(store, "SELECT event_count FROM sandboxes"), 0);
}

struct body {
    int runs;
    bool is_put;
    struct error err;
};

// A sandbox and an event of it, as one.
static struct body put_both(struct store *store)
{
    struct sandbox_record sandbox = fixture_sandbox("t");
    struct event_record event = fixture_event("v", "t");
    struct body body = {0};
    autotransaction together = {0};

    do {
        body.runs++;
        body.is_put = store_begin(store, STORE_FAST, &together, &body.err) == 0 &&
                      store_sandbox_put(store, &sandbox, &body.err) == 0 &&
                      store_event_add(store, &event, &body.err) == 0 &&
                      store_commit(&together, &body.err) == 0;
    } while (!body.is_put && store_again(&together, &body.err));
    return body;
}

TEST(a_transaction_is_run_again_as_a_whole)
{
    struct store *store = watched_store();

    busy_next(2);
    struct body body = put_both(store);
    CHECK_OK(body.is_put ? 0 : -1, body.err);
    CHECK_INT(body.runs, 3);
    CHECK_INT(busy_asked(), 3); // a call in it does not try by itself
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandboxes WHERE id = 't'"), 1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 1);
}

TEST(a_transaction_that_never_succeeds_leaves_nothing)
{
    struct store *store = watched_store();

    busy_next(1000);
    struct body body = put_both(store);
    CHECK(!body.is_put && store_is_retry(&body.err));
    CHECK_INT(body.runs, STORE_ATTEMPTS);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandboxes WHERE id = 't'"), 0);
}

TEST(a_refusal_is_not_tried_again)
{
    struct store *store = watched_store();
    struct body first = put_both(store), again = put_both(store);

    CHECK(first.is_put && !again.is_put);
    CHECK_INT(error_kind(&again.err), ERROR_CONFLICT);
    CHECK_INT(again.runs, 1);
}

TEST(a_commit_behind_a_step_that_was_in_the_way_says_so)
{
    struct store *store = watched_store();
    struct event_record event = fixture_event("v", "s");
    autotransaction together = {0};
    struct error err = {0};

    busy_next(1);
    CHECK_OK(store_begin(store, STORE_FAST, &together, &err), err);
    CHECK(store_event_add(store, &event, &err) < 0);
    err = (struct error){0};
    CHECK(store_commit(&together, &err) < 0);
    CHECK(store_is_retry(&err));
    CHECK(store_again(&together, &err));
}

TEST(another_process_with_the_database_is_in_the_way_until_it_is_done)
{
    struct sql_database *database = NULL;
    struct sql *sql = NULL;
    sqlite3 *theirs = NULL;
    struct error err = {0};

    fixture_store();
    CHECK(sqlite3_open(fixture_path(), &theirs) == SQLITE_OK);
    CHECK(sqlite3_exec(theirs, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    CHECK_OK(sql_open(fixture_directory(), &database, &err), err);
    CHECK_OK(sql_connect(database, &sql, &err), err);
    CHECK(sql_transaction(sql, SQL_BEGIN, &err) < 0);
    CHECK(store_is_retry(&err));
    CHECK_INT(error_kind(&err), ERROR_UNAVAILABLE);
    CHECK(sqlite3_exec(theirs, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK);
    CHECK_OK(sql_transaction(sql, SQL_BEGIN, &err), err);
    CHECK_OK(sql_transaction(sql, SQL_COMMIT, &err), err);
    sql_disconnect(sql);
    sql_close(database);
    (void)sqlite3_close(theirs);
}

TEST(an_outcome_nobody_knows_is_lost_and_not_repeated)
{
    struct organisation_record organisation = {"org2", "Them", NOW};
    struct store *store = fixture_store();
    autofree char *log = xasprintf("%s-wal", fixture_path()), *away = xasprintf("%s-away", log);
    struct error err = {0};

    CHECK(rename(log, away) == 0); // what is committed cannot be brought to the disk
    CHECK(store_organisation_put(store, &organisation, &err) < 0);
    CHECK(store_is_lost(&err) && !store_is_retry(&err));
    CHECK(rename(away, log) == 0);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM organisations WHERE id = 'org2'"), 1);
}
