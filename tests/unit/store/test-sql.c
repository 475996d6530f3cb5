/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/store/sql_sqlite.c and sql_sqlite_run.c through sql.h: values, transactions, and
 * files that are not ours. */
#include "store/sql.h"

#include "base/mem.h"
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sql_database *database;
static struct sql *sql;

// A database with one table, closed by the next call or at the end.
static void drop(void)
{
    sql_disconnect(take(sql));
    sql_close(take(database));
}

__attribute__((destructor)) static void drop_at_end(void)
{
    drop();
}

static void fresh(void)
{
    struct error err = {0};

    drop();
    fixture_fresh();
    CHECK_OK(sql_open(fixture_directory(), &database, &err), err);
    CHECK_OK(sql_connect(database, &sql, &err), err);
    CHECK_OK(sql_run(sql,
                     "CREATE TABLE t (a TEXT PRIMARY KEY, b BIGINT, c BYTEA); "
                     "CREATE TABLE u (a TEXT REFERENCES t (a), n BIGINT NOT NULL CHECK (n < 10))",
                     NULL, 0, NULL, NULL, NULL, &err),
             err);
}

struct seen {
    int rows;
    char text[64];
    size_t length;
    int64_t number;
    enum sql_type types[3];
    int stop_after; // 0: never
};

static int see(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct seen *seen = data;

    seen->rows++;
    for (size_t i = 0; i < n_columns && i < 3; i++)
        seen->types[i] = row[i].type;
    if (row[0].data) {
        seen->length = row[0].length;
        memcpy(seen->text, row[0].data, row[0].length < 63 ? row[0].length + 1 : 64);
    }
    if (n_columns > 1)
        seen->number = row[1].number;
    if (seen->stop_after && seen->rows == seen->stop_after)
        return error_set(err, ERROR_INVALID, "enough");
    return 0;
}

static int64_t rows_of(struct sql *connection, const char *table)
{
    struct seen seen = {0};
    struct error err = {0};
    autofree char *text = xasprintf("SELECT 'x', count(*) FROM %s", table);

    CHECK_OK(sql_run(connection, text, NULL, 0, see, &seen, NULL, &err), err);
    return seen.number;
}

TEST(parameters_go_by_their_number_not_by_their_place)
{
    struct sql_value args[] = {sql_number(7), sql_text("seven"), sql_bytes("\0\xff", 2)};
    struct seen seen = {0};
    struct error err = {0};
    int64_t changed = 0;

    fresh();
    CHECK_OK(sql_run(sql, "INSERT INTO t (c, a, b) VALUES ($3, $2, $1)", args, 3, NULL, NULL,
                     &changed, &err),
             err);
    CHECK_INT(changed, 1);
    CHECK_OK(sql_run(sql, "SELECT a, b, c FROM t WHERE b = $2 AND a = $1 AND b = $2",
                     (struct sql_value[]){sql_text("seven"), sql_number(7)}, 2, see, &seen, NULL,
                     &err),
             err);
    CHECK_INT(seen.rows, 1);
    CHECK_STR(seen.text, "seven");
    CHECK_INT(seen.number, 7);
    CHECK_INT(seen.types[2], SQL_BYTES);
}

TEST(values_are_never_read_as_statements)
{
    static const char *const nasty[] = {
        "'; DROP TABLE t; --",
        "\" OR 1=1 --",
        "$1",
        "?1",
        "\\'",
        "x'); DELETE FROM t; --",
        "",
        " ",
        "%",
        "_",
        "NULL",
        "\xf0\x9f\x8f\x9c",
        "\x7f\x01\n\t",
    };
    struct error err = {0};

    fresh();
    for (size_t i = 0; i < ARRAY_SIZE(nasty); i++) {
        struct sql_value args[] = {sql_text(nasty[i]), sql_number((int64_t)i)};
        struct seen seen = {0};
        CHECK_OK(
            sql_run(sql, "INSERT INTO t (a, b) VALUES ($1, $2)", args, 2, NULL, NULL, NULL, &err),
            err);
        CHECK_OK(sql_run(sql, "SELECT a, b FROM t WHERE a = $1", args, 1, see, &seen, NULL, &err),
                 err);
        CHECK_STR(seen.text, nasty[i]);
        CHECK_INT(seen.number, i);
    }
    CHECK_INT(rows_of(sql, "t"), ARRAY_SIZE(nasty));
}

TEST(texts_with_nul_or_broken_utf8_are_refused)
{
    static const struct sql_value bad[] = {
        {SQL_TEXT, 0, "a\0b", 3},         {SQL_TEXT, 0, "\xff", 1},
        {SQL_TEXT, 0, "\xc3", 1},         {SQL_TEXT, 0, "\xc0\x80", 2},
        {SQL_TEXT, 0, "\xed\xa0\x80", 3}, {SQL_TEXT, 0, "fine, then \xe2\x82", 13},
    };
    struct error err = {0};

    fresh();
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK(sql_run(sql, "INSERT INTO t (a) VALUES ($1)", &bad[i], 1, NULL, NULL, NULL, &err) <
              0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
    }
    CHECK_INT(rows_of(sql, "t"), 0);
}

TEST(failures_have_their_kinds)
{
    struct sql_value one = sql_text("one");
    struct error err = {0};

    fresh();
    CHECK_OK(sql_run(sql, "INSERT INTO t (a) VALUES ($1)", &one, 1, NULL, NULL, NULL, &err), err);
    CHECK(sql_run(sql, "INSERT INTO t (a) VALUES ($1)", &one, 1, NULL, NULL, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK(sql_run(sql, "INSERT INTO u (a, n) VALUES ('none', 1)", NULL, 0, NULL, NULL, NULL, &err) <
          0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK(sql_run(sql, "INSERT INTO u (a, n) VALUES ('one', 10)", NULL, 0, NULL, NULL, NULL, &err) <
          0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(sql_run(sql, "INSERT INTO u (a) VALUES ('one')", NULL, 0, NULL, NULL, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(sql_run(sql, "SELEC", NULL, 0, NULL, NULL, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_SYSTEM);
    CHECK(strstr(err.text, fixture_path()));
}

TEST(a_row_that_is_refused_ends_the_statement)
{
    struct seen seen = {.stop_after = 2};
    struct error err = {0};

    fresh();
    CHECK_OK(sql_run(sql, "INSERT INTO t (a) VALUES ('1'), ('2'), ('3')", NULL, 0, NULL, NULL, NULL,
                     &err),
             err);
    CHECK(sql_run(sql, "SELECT a, b FROM t", NULL, 0, see, &seen, NULL, &err) < 0);
    CHECK_STR(err.text, "enough");
    CHECK_INT(seen.rows, 2);
    // and can be run again from the beginning
    seen = (struct seen){0};
    CHECK_OK(sql_run(sql, "SELECT a, b FROM t", NULL, 0, see, &seen, NULL, &err), err);
    CHECK_INT(seen.rows, 3);
}

TEST(more_statements_than_are_kept_prepared_all_work)
{
    struct error err = {0};

    fresh();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 300; i++) {
            struct seen seen = {0};
            autofree char *text = xasprintf("SELECT $1, %d", i);
            struct sql_value arg = sql_text("x");
            CHECK_OK(sql_run(sql, text, &arg, 1, see, &seen, NULL, &err), err);
            CHECK_INT(seen.number, i);
        }
    }
}

TEST(what_is_rolled_back_was_never_there)
{
    struct error err = {0};

    fresh();
    CHECK_OK(sql_transaction(sql, SQL_BEGIN, &err), err);
    CHECK_OK(sql_run(sql, "INSERT INTO t (a) VALUES ('x')", NULL, 0, NULL, NULL, NULL, &err), err);
    CHECK_OK(sql_transaction(sql, SQL_ROLLBACK, &err), err);
    CHECK_OK(sql_transaction(sql, SQL_ROLLBACK, &err), err); // none is open
    CHECK_INT(rows_of(sql, "t"), 0);
    CHECK_OK(sql_transaction(sql, SQL_BEGIN_DURABLE, &err), err);
    CHECK_OK(sql_run(sql, "INSERT INTO t (a) VALUES ('x')", NULL, 0, NULL, NULL, NULL, &err), err);
    CHECK_OK(sql_transaction(sql, SQL_COMMIT, &err), err);
    CHECK_INT(rows_of(sql, "t"), 1);
}

TEST(a_connection_closed_in_a_transaction_lets_others_write)
{
    struct sql *other = NULL;
    struct error err = {0};

    fresh();
    CHECK_OK(sql_connect(database, &other, &err), err);
    CHECK_OK(sql_transaction(other, SQL_BEGIN, &err), err);
    CHECK_OK(sql_run(other, "INSERT INTO t (a) VALUES ('x')", NULL, 0, NULL, NULL, NULL, &err),
             err);
    CHECK_INT(rows_of(sql, "t"), 0); // readers do not wait
    sql_disconnect(other);
    CHECK_OK(sql_transaction(sql, SQL_BEGIN, &err), err);
    CHECK_OK(sql_transaction(sql, SQL_COMMIT, &err), err);
    CHECK_INT(rows_of(sql, "t"), 0);
}

TEST(a_reading_transaction_sees_one_moment)
{
    struct sql *other = NULL;
    struct error err = {0};

    fresh();
    CHECK_OK(sql_connect(database, &other, &err), err);
    CHECK_OK(sql_transaction(sql, SQL_BEGIN_READ, &err), err);
    CHECK_INT(rows_of(sql, "t"), 0);
    CHECK_OK(sql_run(other, "INSERT INTO t (a) VALUES ('x')", NULL, 0, NULL, NULL, NULL, &err),
             err);
    CHECK_INT(rows_of(sql, "t"), 0);
    CHECK_OK(sql_transaction(sql, SQL_COMMIT, &err), err);
    CHECK_INT(rows_of(sql, "t"), 1);
    sql_disconnect(other);
}

// In place of libc's, for SQLite too: counts how often something waits for the disk.
static atomic_int syncs;
__attribute__((visibility("default"))) int fdatasync(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return (int)syscall(SYS_fdatasync, fd);
}
__attribute__((visibility("default"))) int fsync(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return (int)syscall(SYS_fsync, fd);
}

static int syncs_of(enum sql_step begin, enum sql_step end)
{
    struct error err = {0};

    int before = atomic_load(&syncs);
    CHECK_OK(sql_transaction(sql, begin, &err), err);
    CHECK_OK(sql_run(sql, "INSERT INTO t (b) VALUES (1)", NULL, 0, NULL, NULL, NULL, &err), err);
    CHECK_OK(sql_transaction(sql, end, &err), err);
    return atomic_load(&syncs) - before;
}

TEST(durable_transactions_wait_for_the_disk_and_others_do_not)
{
    fresh();
    CHECK(syncs_of(SQL_BEGIN_DURABLE, SQL_COMMIT) >= 1);
    CHECK_INT(syncs_of(SQL_BEGIN, SQL_COMMIT), 0);
    CHECK(syncs_of(SQL_BEGIN_DURABLE, SQL_COMMIT) >= 1);
    CHECK_INT(syncs_of(SQL_BEGIN_DURABLE, SQL_ROLLBACK), 0);
    CHECK_INT(syncs_of(SQL_BEGIN, SQL_COMMIT), 0);
}

TEST(the_file_is_for_its_owner_only)
{
    struct stat status;

    fresh();
    CHECK(stat(fixture_path(), &status) == 0);
    CHECK_INT(status.st_mode & 0777, 0600);
    autofree char *log = xasprintf("%s-wal", fixture_path());
    CHECK(stat(log, &status) == 0);
    CHECK_INT(status.st_mode & 0777, 0600);
}

TEST(the_log_is_copied_back_while_work_goes_on)
{
    struct error err = {0};
    autofree char *filler = xcalloc(1, 4001);
    struct stat status;

    fresh();
    memset(filler, 'x', 4000);
    struct sql_value args[] = {sql_number(0), sql_text(filler)};
    for (int i = 0; i < 40000; i++) { // 160 MiB; it may not all stay in the log
        args[0].number = i % 50;
        CHECK_OK(sql_run(sql,
                         "INSERT INTO t (a, b, c) VALUES (CAST($1 AS TEXT), 1, $2) "
                         "ON CONFLICT (a) DO UPDATE SET c = excluded.c",
                         args, 2, NULL, NULL, NULL, &err),
                 err);
    }
    autofree char *log = xasprintf("%s-wal", fixture_path());
    CHECK(stat(log, &status) == 0);
    CHECK(status.st_size < 128 << 20);
}

static void write_file(const char *text, size_t length)
{
    autofd fd = open(fixture_path(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, text, length) == (ssize_t)length);
}

TEST(a_file_that_is_no_database_is_refused_and_left_alone)
{
    char text[8192], now[8192];
    struct error err = {0};

    drop();
    fixture_fresh();
    memset(text, 'n', sizeof text);
    write_file(text, sizeof text);
    CHECK(sql_open(fixture_directory(), &database, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_SYSTEM);
    CHECK(strstr(err.text, fixture_path()) && strstr(err.text, "damaged or is not a database"));
    autofd fd = open(fixture_path(), O_RDONLY | O_CLOEXEC);
    CHECK(read(fd, now, sizeof now) == sizeof now && memcmp(text, now, sizeof now) == 0);
}

TEST(another_programs_database_is_refused)
{
    sqlite3 *theirs = NULL;
    struct error err = {0};

    drop();
    fixture_fresh();
    CHECK(sqlite3_open(fixture_path(), &theirs) == SQLITE_OK);
    CHECK(sqlite3_exec(theirs, "CREATE TABLE bookmarks (x)", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(theirs);
    CHECK(sql_open(fixture_directory(), &database, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(strstr(err.text, "another program"));
}

TEST(a_damaged_page_is_said_when_it_is_read)
{
    struct error err = {0};
    char junk[4096];

    fresh();
    for (int i = 0; i < 2000; i++)
        CHECK_OK(sql_run(sql, "INSERT INTO t (a) SELECT hex(randomblob(16))", NULL, 0, NULL, NULL,
                         NULL, &err),
                 err);
    drop(); // copies the log back
    memset(junk, 0xa5, sizeof junk);
    autofd fd = open(fixture_path(), O_WRONLY | O_CLOEXEC);
    for (int page = 1; page < 12; page++)
        CHECK(pwrite(fd, junk, sizeof junk, page * 4096) == sizeof junk);
    CHECK_OK(sql_open(fixture_directory(), &database, &err), err); // its first page is whole
    CHECK_OK(sql_connect(database, &sql, &err), err);
    struct seen seen = {0};
    CHECK(sql_run(sql, "SELECT max(a), count(*) FROM t", NULL, 0, see, &seen, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_SYSTEM);
    CHECK(strstr(err.text, "put back a copy"));
}

TEST(a_missing_directory_is_named)
{
    struct error err = {0};

    CHECK(sql_open("/nowhere", &database, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_INT(err.sys, ENOENT);
    CHECK(strstr(err.text, "'/nowhere/burrow.db'"));
}
