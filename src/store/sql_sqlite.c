/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite behind sql.h: the file, its connections and their transactions. A thread of its own copies
 * the write-ahead log back into the file, so that no caller's commit pays for that.
 */
#include "store/sql_sqlite.h"

#include "base/disk.h"
#include "base/mem.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "burrow.db"
#define LEAST_BYTES 2             // SQLite takes a shorter file for a new database
#define APPLICATION_ID 0x42757277 // in the file's header: "Burw"
#define BUSY_MS                                                                                    \
    2000 // other processes, such as a key being made, are quick; then the transaction is begun again
#define BUSY_STEP_MS 5
#define MAINTENANCE_PAGES 4000 // 16 MiB of log: copy back
#define LOG_ROOM_BYTES (8 << 20)
#define CROWDED_PAGES 16384 // 64 MiB of log: make readers wait so that it can begin anew

static enum error_reason reason_of(int code, int sys)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return ERROR_NO_SPACE;
    case SQLITE_TOOBIG:
        return ERROR_LIMIT;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return sys == ENOSPC || sys == EDQUOT || sys == EFBIG ? ERROR_NO_SPACE : ERROR_SYSTEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERROR_RETRY;
    case SQLITE_CONSTRAINT:
        return code == SQLITE_CONSTRAINT_CHECK || code == SQLITE_CONSTRAINT_NOTNULL
                   ? ERROR_INVALID
                   : ERROR_CONFLICT;
    default:
        return ERROR_SYSTEM;
    }
}

static const char *way_out(enum error_reason reason, int code)
{
    switch (code & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return "; the file is damaged or is not a database: put back a copy, or stop the "
               "server and run 'burrow repair'";
    case SQLITE_BUSY:
        return "; another process holds it: try again";
    default:
        return reason == ERROR_NO_SPACE ? "; make room on its disk" : "";
    }
}

int sqlite_error(struct error *err, const struct sql *sql, int code, const char *doing)
{
    int last = errno; // SQLite keeps it only on some ways out
    bool is_io = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN;
    int kept = sqlite3_system_errno(sql->handle);
    int sys = is_io ? kept ? kept : last : 0;
    enum error_reason reason = reason_of(code, sys);

    error_set(err, reason, "%s database '%s': %s%s%s%s", doing, sql->database->path,
              sqlite3_errmsg(sql->handle), sys ? ": " : "", sys ? strerror(sys) : "",
              way_out(reason, code));
    err->sys = sys;
    return error_about(err, "database");
}

int sqlite_script(struct sql *sql, const char *text, struct error *err)
{
    errno = 0;
    int code = sqlite3_exec(sql->handle, text, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : sqlite_error(err, sql, code, "use");
}

// After a commit: wakes the maintenance thread each time the log has grown by another MAINTENANCE_PAGES.
static int on_wal(void *data, sqlite3 *handle, const char *name, int pages)
{
    struct sql_database *database = data;

    if (pages < MAINTENANCE_PAGES)
        return SQLITE_OK;
    autolock(&database->lock);
    if (pages < database->wal_pages) // it has begun anew
        database->wal_pages = 0;
    if (pages >= database->wal_pages + MAINTENANCE_PAGES) {
        database->wal_pages = pages;
        database->is_wanted = true;
        lock_condition_wake(&database->has_work);
    }
    return SQLITE_OK;
}

// Waits until there is something to do, and says how many pages; -1 at the end.
static int wait_for_pages(struct sql_database *database)
{
    autolock(&database->lock);
    while (!database->is_wanted && !database->is_closing)
        (void)lock_condition_wait(&database->has_work, &database->lock, 0);
    int pages = database->is_closing ? -1 : database->wal_pages;
    database->is_wanted = false;
    return pages;
}

static void *maintain(void *data)
{
    struct sql *sql = data;

    thread_set_name("store-maint");
    for (;;) {
        int pages = wait_for_pages(sql->database);
        if (pages < 0)
            break;
        int mode = pages < CROWDED_PAGES ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_RESTART;
        // What fails here (a full disk) fails again, with a sentence, in somebody's commit.
        (void)sqlite3_wal_checkpoint_v2(sql->handle, "main", mode, NULL, NULL);
    }
    sql_disconnect(sql);
    return NULL;
}

static int start_maintenance(struct sql_database *database, struct error *err)
{
    struct sql *sql = NULL;
    sigset_t all, before;

    if (sql_connect(database, &sql, err) < 0)
        return -1;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); // signals are the program's
    int code = pthread_create(&database->maintenance, NULL, maintain, sql);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        sql_disconnect(sql);
        return error_sys_code(err, code, "start a thread for database '%s'", database->path);
    }
    database->has_maintenance = true;
    return 0;
}

static int read_number(struct sql *sql, const char *text, int64_t *out, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(sql->handle, text, -1, &statement, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    int failed = code == SQLITE_ROW ? 0 : sqlite_error(err, sql, code, "read");
    (void)sqlite3_finalize(statement);
    return failed;
}

// The file is ours, or empty and becomes so. Tables are looked for first: another one that starts now makes it ours before it makes any.
static int claim_file(struct sql *sql, struct error *err)
{
    int64_t application = 0, tables = 0;

    if (read_number(sql, "SELECT count(*) FROM sqlite_master", &tables, err) < 0 ||
        read_number(sql, "PRAGMA application_id", &application, err) < 0)
        return -1;
    if (application == APPLICATION_ID)
        return 0;
    if (application != 0 || tables != 0)
        return error_set(err, ERROR_INVALID,
                         "'%s' is the database of another program; name another file",
                         sql->database->path);
    char text[64];
    (void)snprintf(text, sizeof text, "PRAGMA application_id = %d", APPLICATION_ID);
    return sqlite_script(sql, text, err);
}

static int check_file(struct sql_database *database, struct error *err)
{
    struct sql *sql = NULL;

    if (sql_connect(database, &sql, err) < 0)
        return -1;
    int failed = claim_file(sql, err);
    sql_disconnect(sql);
    return failed;
}

// SQLite itself would make it readable to others; its log takes over the mode. An existing one is
// not opened here: closing it again would drop the locks of other connections of this process
// (fcntl(2), advisory locks).
static int make_file(const char *place, struct error *err)
{
    autofd fd = open(place, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return error_path(err, "make database '%s'", place);
    return 0;
}

static char *path_of(const char *directory)
{
    return xasprintf("%s/" FILE_NAME, directory);
}

bool sql_exists(const char *directory)
{
    autofree char *path = path_of(directory);
    struct stat info;

    return stat(path, &info) == 0 && (!S_ISREG(info.st_mode) || info.st_size >= LEAST_BYTES);
}

const char *sql_place(const struct sql_database *database)
{
    return database->path;
}

uint64_t sql_disk_bytes(const struct sql_database *database)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    uint64_t bytes = 0;

    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        autofree char *path = xasprintf("%s%s", database->path, endings[i]);
        struct stat info;
        bytes += stat(path, &info) == 0 ? (uint64_t)info.st_blocks * 512 : 0;
    }
    return bytes;
}

/*
 * Room in the log that nobody can take away: on a disk that has run full what ends things is still recorded. Nobody locks this file, so it
 * may be opened and closed. Best effort: a small disk, or one that knows no such room, does without.
 */
static void keep_log_room(const struct sql_database *database)
{
    autofree char *path = xasprintf("%s-wal", database->path);
    autofd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct disk_room room;

    if (fd >= 0 && disk_room(fd, &room) == 0 && room.floor_bytes >= LOG_ROOM_BYTES)
        (void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOG_ROOM_BYTES);
}

int sql_open(const char *directory, struct sql_database **out, struct error *err)
{
    autofree char *path = path_of(directory);

    if (make_file(path, err) < 0)
        return -1;
    struct sql_database *database = xnew(struct sql_database);
    database->path = take(path);
    lock_init(&database->writer, LOCK_STORE_WRITER);
    lock_init(&database->lock, LOCK_STORE);
    lock_condition_init(&database->has_work);
    if (check_file(database, err) < 0 || start_maintenance(database, err) < 0) {
        sql_close(database);
        return -1;
    }
    keep_log_room(database);
    *out = database;
    return 0;
}

static void end_maintenance(struct sql_database *database)
{
    autolock(&database->lock);
    database->is_closing = true;
    lock_condition_wake(&database->has_work);
}

void sql_close(struct sql_database *database)
{
    if (!database)
        return;
    if (database->has_maintenance) {
        end_maintenance(database);
        pthread_join(database->maintenance, NULL);
    }
    lock_condition_clear(&database->has_work);
    lock_clear(&database->lock);
    lock_clear(&database->writer);
    free(database->path);
    free(database);
}

/* While another process turns a new database to this mode, SQLite says "busy" at once, whatever its timeout. */
static int use_wal(struct sql *sql, struct error *err)
{
    for (int waited_ms = 0;; waited_ms += BUSY_STEP_MS) {
        if (sqlite_script(sql, "PRAGMA journal_mode = WAL", err) == 0)
            return 0;
        if ((sqlite3_errcode(sql->handle) & 0xff) != SQLITE_BUSY || waited_ms >= BUSY_MS)
            return -1;
        (void)sqlite3_sleep(BUSY_STEP_MS);
    }
}

int sql_connect(struct sql_database *database, struct sql **out, struct error *err)
{
    struct sql *sql = xnew(struct sql);
    sql->database = database;
    int code = sqlite3_open_v2(database->path, &sql->handle,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK) {
        sqlite_error(err, sql, code, "open");
        sql_disconnect(sql);
        return -1;
    }
    (void)sqlite3_extended_result_codes(sql->handle, 1);
    (void)sqlite3_busy_timeout(sql->handle, BUSY_MS);
    if (use_wal(sql, err) < 0 ||
        sqlite_script(sql,
                      "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; "
                      "PRAGMA trusted_schema = OFF; PRAGMA journal_size_limit = 67108864; "
                      "PRAGMA cache_size = -256",
                      err) < 0) {
        sql_disconnect(sql);
        return -1;
    }
    (void)sqlite3_wal_hook(sql->handle, on_wal, database);
    *out = sql;
    return 0;
}

int sql_connect_writer(struct sql_database *database, struct sql **out, struct error *err)
{
    struct sql *sql = NULL;

    if (sql_connect(database, &sql, err) < 0)
        return -1;
    int result = sqlite_script(sql, "PRAGMA cache_size = -16384", err);
    if (result == 0 &&
        sqlite3_db_readonly(sql->handle, "main") == 1) // SQLite opens it all the same
        result =
            error_set(err, ERROR_UNAVAILABLE,
                      "open database '%s': it may not be written; look at its mode and whether "
                      "its file system is read-only",
                      database->path);
    if (result < 0) {
        sql_disconnect(sql);
        return -1;
    }
    *out = sql;
    return 0;
}

void sql_disconnect(struct sql *sql)
{
    struct error ignored;

    if (!sql)
        return;
    if (sql->handle)
        (void)sql_transaction(sql, SQL_ROLLBACK, &ignored);
    for (size_t i = 0; i < STATEMENTS; i++)
        (void)sqlite3_finalize(sql->statements[i].handle);
    (void)sqlite3_close(sql->handle);
    free(sql);
}

static void let_others_write(struct sql *sql)
{
    bool is_writing = sql->is_writing;

    sql->is_writing = false;
    if (is_writing)
        lock_release(&sql->database->writer);
}

static void roll_back(struct sql *sql)
{
    struct error ignored;

    // Some failures have done it already. It cannot fail in a way that matters: what is not
    // committed is gone at the latest with the connection.
    if (!sqlite3_get_autocommit(sql->handle))
        (void)sql_run(sql, "ROLLBACK", NULL, 0, NULL, NULL, NULL, &ignored);
    let_others_write(sql);
}

static int begin_writing(struct sql *sql, bool is_durable, struct error *err)
{
    (void)lock_take(&sql->database->writer);
    sql->is_writing = true;
    sql->is_durable = is_durable;
    if (sql_run(sql, "BEGIN IMMEDIATE", NULL, 0, NULL, NULL, NULL, err) < 0) {
        let_others_write(sql);
        return -1;
    }
    return 0;
}

// What PRAGMA synchronous = FULL would do inside the commit, done after it and without the connection: others write meanwhile,
// also on this one, and several who wait for the disk wait for the same one.
static int sync_log(struct sql_database *database, struct error *err)
{
    autofree char *path = xasprintf("%s-wal", database->path);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && fdatasync(fd) == 0)
        return 0;
    error_sys(err, "bring database '%s' to the disk", database->path);
    return error_restate(err, ERROR_LOST, "database");
}

static int commit(struct sql *sql, struct error *err)
{
    if (sql_run(sql, "COMMIT", NULL, 0, NULL, NULL, NULL, err) < 0) {
        roll_back(sql);
        return -1;
    }
    struct sql_database *database = sql->database;
    bool is_wanted = sql->is_writing && sql->is_durable;
    let_others_write(sql); // from here on the connection may be another thread's
    return is_wanted ? sync_log(database, err) : 0;
}

int sql_transaction(struct sql *sql, enum sql_step step, struct error *err)
{
    switch (step) {
    case SQL_BEGIN_READ:
        return sql_run(sql, "BEGIN", NULL, 0, NULL, NULL, NULL, err);
    case SQL_BEGIN:
    case SQL_BEGIN_DURABLE:
        return begin_writing(sql, step == SQL_BEGIN_DURABLE, err);
    case SQL_COMMIT:
        return commit(sql, err);
    case SQL_ROLLBACK:
        break;
    }
    roll_back(sql);
    return 0;
}
