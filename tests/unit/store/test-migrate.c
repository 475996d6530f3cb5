/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/migrate.c: from nothing, from each earlier version, and what must not happen
 * halfway. */
#include "fixture.h"
#include "store/store_impl.h"
#include "test.h"

#include <pthread.h>

#define FILE_OF(name, text)                                                                        \
    {                                                                                              \
        name, text, sizeof text - 1                                                                \
    }

static const struct embedded_file three[] = {
    FILE_OF("0001-a.sql", "CREATE TABLE a (x BIGINT); INSERT INTO a (x) VALUES (1);"),
    FILE_OF("0002-b.sql", "CREATE TABLE b (x BIGINT); INSERT INTO b SELECT x + 1 FROM a;"),
    FILE_OF("0003-c.sql", "ALTER TABLE a ADD COLUMN y BIGINT; UPDATE a SET y = 3;"),
    {0},
};

static struct store *open_bare(void)
{
    static struct store *store; // freed by the next one
    struct error err = {0};

    store_free(store);
    store = NULL;
    CHECK_OK(store_open_bare(fixture_directory(), &store, &err), err);
    return store;
}

TEST(an_empty_database_gets_all_tables)
{
    fixture_fresh();
    struct store *store = fixture_open();
    int64_t count = 0;

    while (store_migrations[count].name)
        count++;
    CHECK(count >= 1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM migrations"), count);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandboxes"), 0);
}

TEST(opening_again_changes_nothing)
{
    fixture_fresh();
    int64_t first = fixture_number(fixture_open(), "SELECT max(applied_at) FROM migrations");
    CHECK_INT(fixture_number(fixture_open(), "SELECT max(applied_at) FROM migrations"), first);
}

TEST(shipped_migrations_are_numbered_without_gaps)
{
    for (int i = 0; store_migrations[i].name; i++) {
        char number[8];
        (void)snprintf(number, sizeof number, "%04d-", i + 1);
        CHECK(strncmp(store_migrations[i].name, number, 5) == 0);
    }
}

TEST(every_earlier_version_comes_up_to_date)
{
    size_t count = 0;
    struct error err = {0};

    while (store_migrations[count].name)
        count++;
    for (size_t have = 0; have <= count; have++) {
        struct embedded_file earlier[64] = {0};
        fixture_fresh();
        memcpy(earlier, store_migrations, have * sizeof *earlier);
        CHECK_OK(store_migrate(open_bare(), earlier, &err), err);
        CHECK_INT(fixture_number(fixture_open(), "SELECT count(*) FROM migrations"), count);
    }
}

TEST(keys_from_before_there_were_scopes_do_what_they_did)
{
    struct embedded_file earlier[64] = {0};
    struct error err = {0};

    for (size_t i = 0; strncmp(store_migrations[i].name, "0011-keys", 9) != 0; i++)
        earlier[i] = store_migrations[i];
    fixture_fresh();
    struct store *store = open_bare();
    CHECK_OK(store_migrate(store, earlier, &err), err);
    CHECK_OK(
        store_run_alone(store, STORE_FAST,
                        "INSERT INTO organisations (id, name, created_at) VALUES ('o', 'o', 1);"
                        "INSERT INTO keys (id, hash, prefix, name, organisation, scopes, "
                        "created_at, used_at, expires_at, revoked_at) "
                        "VALUES ('a', zeroblob(32), 'p', '', 'o', 'admin', 1, 0, 0, 0), "
                        "('b', randomblob(32), 'p', '', 'o', '', 1, 0, 0, 0)",
                        NULL, 0, NULL, &err),
        err);
    store = fixture_open();
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM keys WHERE id = 'a' AND scopes = "
                                    "'read run manage admin organisation' AND member IS NULL"),
              1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM keys WHERE id = 'b' AND scopes = "
                                    "'read run manage organisation' AND max_sandboxes = 0"),
              1);
}

TEST(ssh_keys_from_before_they_were_each_owners_stay)
{
    struct embedded_file earlier[64] = {0};
    struct error err = {0};

    for (size_t i = 0; strncmp(store_migrations[i].name, "0025-ssh-key-owners", 19) != 0; i++)
        earlier[i] = store_migrations[i];
    fixture_fresh();
    struct store *store = open_bare();
    CHECK_OK(store_migrate(store, earlier, &err), err);
    CHECK_OK(
        store_run_alone(store, STORE_FAST,
                        "INSERT INTO organisations (id, name, created_at) VALUES ('o', 'o', 1);"
                        "INSERT INTO ssh_keys (organisation, fingerprint, type, comment, "
                        "public_key, created_at, name, member, key_id, used_at) "
                        "VALUES ('o', 'a', 't', 'c', 'p', 1, 'n', 'alice', 'k', 5), "
                        "('o', 'b', 't', 'c', 'p', 2, NULL, NULL, NULL, 0)",
                        NULL, 0, NULL, &err),
        err);
    store = fixture_open();
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM ssh_keys"), 2);
    CHECK_INT(fixture_number(store,
                             "SELECT count(*) FROM ssh_keys WHERE fingerprint = 'a' AND name = 'n' "
                             "AND member = 'alice' AND key_id = 'k' AND used_at = 5"),
              1);
}

TEST(a_step_at_a_time_gives_what_all_at_once_gives)
{
    struct error err = {0};

    fixture_fresh();
    for (size_t have = 0; have <= 3; have++) {
        struct embedded_file some[4] = {0};
        memcpy(some, three, have * sizeof *some);
        CHECK_OK(store_migrate(open_bare(), some, &err), err);
    }
    struct store *store = open_bare();
    CHECK_INT(fixture_number(store, "SELECT x FROM b"), 2);
    CHECK_INT(fixture_number(store, "SELECT y FROM a"), 3);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM migrations"), 3);
}

TEST(a_migration_that_fails_leaves_nothing_of_itself)
{
    static const struct embedded_file broken[] = {
        FILE_OF("0001-a.sql", "CREATE TABLE a (x BIGINT); INSERT INTO a (x) VALUES (1);"),
        FILE_OF("0002-b.sql", "CREATE TABLE b (x BIGINT); UPDATE a SET x = 9; SELECT nonsense;"),
        {0},
    };
    struct error err = {0};

    fixture_fresh();
    struct store *store = open_bare();
    CHECK(store_migrate(store, broken, &err) < 0);
    CHECK(strstr(err.text, "run migration '0002-b.sql'"));
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM migrations"), 1);
    CHECK_INT(fixture_number(store, "SELECT x FROM a"), 1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sqlite_master WHERE name = 'b'"), 0);
    CHECK_OK(store_migrate(store, three, &err), err); // once it is mended
    CHECK_INT(fixture_number(store, "SELECT x FROM b"), 2);
}

TEST(a_newer_database_is_refused_with_the_way_out)
{
    struct embedded_file older[2] = {three[0]};
    struct error err = {0};

    fixture_fresh();
    CHECK_OK(store_migrate(open_bare(), three, &err), err);
    CHECK(store_migrate(open_bare(), older, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_UNAVAILABLE);
    CHECK(strstr(err.text, "newer burrow") && strstr(err.text, "0002-b.sql"));
}

TEST(a_database_of_another_line_is_refused)
{
    struct embedded_file other[3] = {three[0], FILE_OF("0002-other.sql", "SELECT 1;")};
    struct error err = {0};

    fixture_fresh();
    CHECK_OK(store_migrate(open_bare(), three, &err), err);
    CHECK(store_migrate(open_bare(), other, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK(strstr(err.text, "another version"));
}

static void *open_it(void *data)
{
    struct error err = {0};
    struct store *store = NULL;

    if (store_open(fixture_directory(), &store, &err) < 0)
        (void)snprintf(data, 200, "%s", err.text);
    store_free(store);
    return NULL;
}

TEST(several_that_start_at_once_run_each_migration_once)
{
    pthread_t threads[6];
    char said[6][200] = {0};

    fixture_fresh();
    for (int i = 0; i < 6; i++)
        CHECK(pthread_create(&threads[i], NULL, open_it, said[i]) == 0);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 6; i++)
        CHECK_STR(said[i], "");
    CHECK(fixture_number(fixture_open(), "SELECT count(*) FROM migrations") >= 1);
}
