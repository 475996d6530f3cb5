/* SPDX-License-Identifier: Apache-2.0 */
/* A damaged database made whole again; see sql_salvage.h. */
#include "store/sql_salvage.h"

#include "base/fd.h"
#include "base/mem.h"
#include "store/store_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DATABASE "burrow.db"
#define PLACE                                                                                      \
    "repair.tmp" // in the data directory: the new one is made in it, and a copy of the old one read
#define COPY "old.db"
#define FARTHEST ((int64_t)1 << 48) // rows that are looked for behind a hole

static void closep_sqlite(sqlite3 **handle)
{
    (void)sqlite3_close(*handle);
}
#define autosqlite __attribute__((cleanup(closep_sqlite))) sqlite3
static void finalizep(sqlite3_stmt **statement)
{
    (void)sqlite3_finalize(*statement);
}
#define autostatement __attribute__((cleanup(finalizep))) sqlite3_stmt

static int failed(sqlite3 *handle, const char *doing, struct error *err)
{
    return error_set(err, ERROR_SYSTEM, "%s: %s", doing, sqlite3_errmsg(handle));
}

static int open_file(const char *path, sqlite3 **out, struct error *err)
{
    if (sqlite3_open_v2(path, out, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        return failed(*out, "open the database", err);
    return 0;
}

static int run(sqlite3 *handle, const char *text, struct error *err)
{
    return sqlite3_exec(handle, text, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                     : failed(handle, text, err);
}

/* The first value of the first row, in *out; "" where there is none. SQLite's code where it fails. */
static int read_text(sqlite3 *handle, const char *text, char *out, size_t size)
{
    autostatement *statement = NULL;
    int code = sqlite3_prepare_v2(handle, text, -1, &statement, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    const char *value = code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    (void)snprintf(out, size, "%s", value ? value : "");
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

// ---- the copy that is read ----

static int copy_file(int from_dir, const char *from, int to_dir, const char *to, struct error *err)
{
    autofd source = openat(from_dir, from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (source < 0 && errno == ENOENT)
        return 0;
    autofd target = openat(to_dir, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    char chunk[65536];
    ssize_t got;

    if (source < 0 || target < 0)
        return error_sys(err, "copy '%s'", from);
    while ((got = read(source, chunk, sizeof chunk)) > 0)
        if (fd_write_all(target, chunk, (size_t)got) < 0)
            return error_sys(err, "copy '%s'", from);
    return got < 0 ? error_sys(err, "read '%s'", from) : 0;
}

/* Of the file and its log; opening the file itself would already change it. */
static int make_copy(int data_fd, int *out_fd, struct error *err)
{
    if (fd_remove_tree(data_fd, PLACE, err) < 0)
        return -1;
    if (mkdirat(data_fd, PLACE, 0700) < 0)
        return error_sys(err, "make directory '" PLACE "'");
    autofd place = openat(data_fd, PLACE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place < 0)
        return error_sys(err, "open directory '" PLACE "'");
    if (copy_file(data_fd, DATABASE, place, COPY, err) < 0 ||
        copy_file(data_fd, DATABASE "-wal", place, COPY "-wal", err) < 0)
        return -1;
    *out_fd = take_fd(place);
    return 0;
}

/* Whether it is whole; what is wrong else. */
static bool is_whole(sqlite3 *old, char *fault, size_t size)
{
    char foreign[64];

    int code = read_text(old, "PRAGMA integrity_check(1)", fault, size);
    if (code != SQLITE_OK)
        (void)snprintf(fault, size, "%s", sqlite3_errmsg(old));
    if (code != SQLITE_OK || strcmp(fault, "ok") != 0)
        return false;
    if (read_text(old, "SELECT \"table\" FROM pragma_foreign_key_check", foreign, sizeof foreign) !=
            SQLITE_OK ||
        !*foreign)
        return true;
    (void)snprintf(fault, size, "rows of table '%s' belong to nothing", foreign);
    return false;
}

// ---- from the old one to the new one ----

/* The columns that both have, with commas between; and as many question marks. */
static void list_columns(sqlite3 *old, sqlite3 *fresh, const char *table, char names[2048],
                         char marks[512])
{
    autofree char *text = xasprintf("SELECT name FROM pragma_table_info('%s')", table);
    autostatement *statement = NULL;

    *names = *marks = '\0';
    if (sqlite3_prepare_v2(fresh, text, -1, &statement, NULL) != SQLITE_OK)
        return;
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        autofree char *probe =
            xasprintf("SELECT name FROM pragma_table_info('%s') WHERE name = '%s'", table, name);
        char known[80];
        if (read_text(old, probe, known, sizeof known) != SQLITE_OK || !*known)
            continue;
        (void)snprintf(names + strlen(names), 2048 - strlen(names), ", \"%s\"", name);
        (void)snprintf(marks + strlen(marks), 512 - strlen(marks), "%s?", *marks ? ", " : "");
    }
}

/* Copies the rows behind *row, which moves on. SQLITE_DONE at the end of the table. */
static int copy_rows(sqlite3_stmt *from, sqlite3_stmt *to, int64_t *row,
                     struct salvage_table *table)
{
    int code;

    (void)sqlite3_reset(from);
    (void)sqlite3_bind_int64(from, 1, *row);
    while ((code = sqlite3_step(from)) == SQLITE_ROW) {
        *row = sqlite3_column_int64(from, 0);
        (void)sqlite3_reset(to);
        for (int i = 1; i < sqlite3_column_count(from); i++)
            (void)sqlite3_bind_value(to, i, sqlite3_column_value(from, i));
        sqlite3 *fresh = sqlite3_db_handle(to);
        if (sqlite3_step(to) == SQLITE_DONE && sqlite3_changes(fresh) == 1)
            table->kept++;
        else
            table->is_cut = true;
    }
    return code;
}

/* All that can be read: behind a place that cannot it goes on, in ever larger steps. */
static int copy_table(sqlite3 *old, sqlite3 *fresh, struct salvage_table *table, struct error *err)
{
    char names[2048], marks[512];
    autostatement *from = NULL, *to = NULL;
    int64_t row = INT64_MIN / 2;

    list_columns(old, fresh, table->name, names, marks);
    table->is_cut = !*names;
    if (!*names)
        return 0;
    autofree char *select =
        xasprintf("SELECT rowid%s FROM \"%s\" NOT INDEXED WHERE rowid > ?1 ORDER BY rowid", names,
                  table->name);
    autofree char *insert =
        xasprintf("INSERT OR IGNORE INTO \"%s\" (%s) VALUES (%s)", table->name, names + 2, marks);
    if (sqlite3_prepare_v2(fresh, insert, -1, &to, NULL) != SQLITE_OK)
        return failed(fresh, insert, err);
    if (sqlite3_prepare_v2(old, select, -1, &from, NULL) != SQLITE_OK) {
        table->is_cut = true;
        return 0;
    }
    bool is_done = copy_rows(from, to, &row, table) == SQLITE_DONE;
    row = row < 0 ? 0 : row; // rows are counted from 1
    for (int64_t step = 1; !is_done && step < FARTHEST;) {
        int64_t behind = row + step, last = behind;
        table->is_cut = true;
        is_done = copy_rows(from, to, &last, table) == SQLITE_DONE;
        if (last > behind)
            row = last;
        step = last > behind ? 1 : 2 * step;
    }
    return 0;
}

static int list_tables(sqlite3 *fresh, struct salvage *out, struct error *err)
{
    autostatement *statement = NULL;

    if (sqlite3_prepare_v2(
            fresh,
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> "
            "'migrations' AND name <> 'sandbox_counts' AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
            -1, &statement, NULL) != SQLITE_OK)
        return failed(fresh, "list the tables", err);
    while (out->n_tables < SALVAGE_TABLES && sqlite3_step(statement) == SQLITE_ROW)
        (void)snprintf(out->tables[out->n_tables++].name, sizeof out->tables[0].name, "%s",
                       (const char *)sqlite3_column_text(statement, 0));
    return 0;
}

/* Rows whose parent was not to be read go too. */
static int drop_orphans(sqlite3 *fresh, struct salvage *out, struct error *err)
{
    char table[64], row[32];

    for (;;) {
        if (read_text(fresh, "SELECT \"table\" FROM pragma_foreign_key_check", table,
                      sizeof table) != SQLITE_OK ||
            read_text(fresh, "SELECT rowid FROM pragma_foreign_key_check", row, sizeof row) !=
                SQLITE_OK)
            return failed(fresh, "look for rows that belong to nothing", err);
        if (!*table)
            return 0;
        autofree char *text = xasprintf("DELETE FROM \"%s\" WHERE rowid = %s", table, row);
        if (run(fresh, text, err) < 0)
            return -1;
        for (unsigned i = 0; i < out->n_tables; i++) {
            if (strcmp(out->tables[i].name, table) != 0)
                continue;
            out->tables[i].kept--;
            out->tables[i].is_cut = true;
        }
    }
}

// As migrations/0005-counts.sql does: of what is there now.
#define COUNT_SANDBOXES                                                                            \
    "INSERT INTO sandbox_counts (organisation, tenant, scope, project, member, class, n) SELECT "  \
    "organisation, coalesce(tenant, ''), coalesce(scope, ''), coalesce(project, ''), "             \
    "coalesce(member, ''), CASE WHEN ended_at = 0 THEN 'alive' ELSE state END, count(*) "          \
    "FROM sandboxes GROUP BY 1, 2, 3, 4, 5, 6"

// A new database counts from 0, and its row wins over the old one. Which numbers of lost events were told nobody knows: none of them comes again, and
// whoever was behind the last that is left is told that some may be missing.
#define NUMBER_EVENTS                                                                              \
    "UPDATE event_numbers SET forgotten = (SELECT coalesce(max(serial), 0) FROM events); "         \
    "UPDATE event_numbers SET last = forgotten + 1000000; "                                        \
    "UPDATE sandboxes SET event_count = max(event_count, (SELECT coalesce(max(number), 0) FROM "   \
    "events WHERE events.sandbox_id = sandboxes.id))"

static int copy_all(sqlite3 *old, const char *path, struct salvage *out, struct error *err)
{
    autosqlite *fresh = NULL;

    if (open_file(path, &fresh, err) < 0 ||
        run(fresh, "PRAGMA foreign_keys = OFF; BEGIN", err) < 0 || list_tables(fresh, out, err) < 0)
        return -1;
    for (unsigned i = 0; i < out->n_tables; i++)
        if (copy_table(old, fresh, &out->tables[i], err) < 0)
            return error_wrap(err, "copy table '%s'", out->tables[i].name);
    if (drop_orphans(fresh, out, err) < 0 || run(fresh, COUNT_SANDBOXES, err) < 0 ||
        run(fresh, NUMBER_EVENTS, err) < 0)
        return -1;
    return run(fresh, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)", err);
}

/* An empty database of this version. */
static int make_fresh(const char *place, struct error *err)
{
    autoptr(store) store = NULL;

    return store_open(place, &store, err);
}

// ---- putting it in place ----

static int put_in_place(int data_fd, struct salvage *out, struct error *err)
{
    static const char *const endings[] = {"-wal", "-shm", ""};
    time_t now = time(NULL);
    struct tm parts;
    char stamp[32];

    (void)gmtime_r(&now, &parts);
    (void)strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &parts);
    (void)snprintf(out->kept_as, sizeof out->kept_as, DATABASE ".damaged-%s", stamp);
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        autofree char *from = xasprintf(DATABASE "%s", endings[i]);
        autofree char *to = xasprintf("%s%s", out->kept_as, endings[i]);
        if (renameat(data_fd, from, data_fd, to) < 0 && errno != ENOENT)
            return error_sys(err, "put '%s' aside", from);
    }
    if (renameat(data_fd, PLACE "/" DATABASE, data_fd, DATABASE) < 0 || fsync(data_fd) < 0)
        return error_sys(err, "put the new database in its place");
    return 0;
}

static int rebuild(const char *directory, int data_fd, sqlite3 *old, bool is_trial,
                   struct salvage *out, struct error *err)
{
    autofree char *place = xasprintf("%s/" PLACE, directory);
    autofree char *path = xasprintf("%s/" DATABASE, place);

    out->state = SALVAGE_DAMAGED;
    (void)run(old, "PRAGMA writable_schema = ON",
              err); // reads on where the file is shorter than it says
    if (make_fresh(place, err) < 0 || copy_all(old, path, out, err) < 0)
        return error_wrap(err, "make a new database");
    return is_trial ? 0 : put_in_place(data_fd, out, err);
}

static int look_at(const char *directory, int data_fd, bool is_trial, struct salvage *out,
                   struct error *err)
{
    autofree char *copy = xasprintf("%s/" PLACE "/" COPY, directory);
    autofd place = -1;
    autosqlite *old = NULL;

    if (make_copy(data_fd, &place, err) < 0 || open_file(copy, &old, err) < 0)
        return -1;
    if (is_whole(old, out->fault, sizeof out->fault))
        return 0;
    return rebuild(directory, data_fd, old, is_trial, out, err);
}

int salvage_run(const char *directory, bool is_trial, struct salvage *out, struct error *err)
{
    struct error ignored;
    autofd data_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *out = (struct salvage){.state = SALVAGE_WHOLE};
    if (data_fd < 0)
        return error_path(err, "open the data directory '%s'", directory);
    if (!store_exists(directory)) {
        out->state = SALVAGE_MISSING;
        return 0;
    }
    int result = look_at(directory, data_fd, is_trial, out, err);
    (void)fd_remove_tree(data_fd, PLACE, &ignored); // else the next one does
    return result;
}
