/* SPDX-License-Identifier: Apache-2.0 */
/* See fixture.h. */
#include "fixture.h"

#include "store/store_impl.h"
#include "test.h"

#include <ftw.h>
#include <sqlite3.h>
#include <unistd.h>

// Of the test at hand.
static char directory[128], path[160];
static struct store *current;

static int note_statement(unsigned what, void *log, void *statement, void *text)
{
    if (strncmp(text, "--", 2) != 0) // inside of another one
        (void)fprintf(log, "%s\n", (const char *)text);
    (void)fflush(log);
    return 0;
}

static int on_connect(sqlite3 *handle)
{
    static FILE *log;

    log = log ? log : fopen(getenv("BURROW_SQL_LOG"), "ae");
    return log ? sqlite3_trace_v2(handle, SQLITE_TRACE_STMT, note_statement, log) : SQLITE_CANTOPEN;
}

// For tools/check-sql: every statement, a line each.
__attribute__((constructor)) static void log_statements(void)
{
    if (getenv("BURROW_SQL_LOG"))
        (void)sqlite3_auto_extension((void (*)(void))(void *)on_connect);
}

static int remove_one(const char *name, const struct stat *status, int flag, struct FTW *walk)
{
    return remove(name);
}

void fixture_close(void)
{
    store_free(current);
    current = NULL;
}

__attribute__((destructor)) static void clear(void)
{
    fixture_close();
    if (*directory)
        (void)nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    *directory = '\0';
}

const char *fixture_fresh(void)
{
    const char *place = getenv("TMPDIR");

    clear();
    (void)snprintf(directory, sizeof directory, "%s/burrow-store-XXXXXX", place ? place : "/tmp");
    CHECK(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/burrow.db", directory);
    return directory;
}

const char *fixture_directory(void)
{
    return directory;
}

const char *fixture_path(void)
{
    return path;
}

struct store *fixture_open(void)
{
    struct error err = {0};

    fixture_close();
    CHECK_OK(store_open(directory, &current, &err), err);
    return current;
}

struct store *fixture_store(void)
{
    struct organisation_record organisation = {ORGANISATION, "Us", NOW};
    struct error err = {0};

    fixture_fresh();
    CHECK_OK(store_organisation_put(fixture_open(), &organisation, &err), err);
    return current;
}

struct sandbox_record fixture_sandbox(const char *id)
{
    static const char *const no_env[] = {NULL};

    return (struct sandbox_record){
        .id = id,
        .owner.organisation = ORGANISATION,
        .runtime = "base:latest",
        .command.env = no_env,
        .exit_code = NO_EXIT_CODE,
        .box_slot = SANDBOX_NO_SLOT,
        .created_at = NOW,
        .updated_at = NOW,
    };
}

struct execution_record fixture_execution(const char *id, const char *sandbox_id)
{
    static const char *const argv[] = {"true", NULL};

    return (struct execution_record){
        .id = id,
        .sandbox_id = sandbox_id,
        .owner.organisation = ORGANISATION,
        .command.argv = argv,
        .exit.code = NO_EXIT_CODE,
        .created_at = NOW,
        .updated_at = NOW,
    };
}

struct stream_record fixture_stream(const char *id)
{
    return (struct stream_record){
        .id = id,
        .owner.organisation = ORGANISATION,
        .kind = STREAM_USER,
        .name = id,
        .file = id,
        .created_at = NOW,
        .updated_at = NOW,
    };
}

struct event_record fixture_event(const char *id, const char *sandbox_id)
{
    return (struct event_record){
        .id = id,
        .sandbox_id = sandbox_id,
        .owner.organisation = ORGANISATION,
        .type = "created",
        .created_at = NOW,
    };
}

int64_t fixture_number(struct store *store, const char *text)
{
    struct error err = {0};
    struct sql *sql = NULL;
    int64_t number = -1;

    CHECK_OK(store_connection(store, &sql, &err), err);
    CHECK_OK(sql_run(sql, text, NULL, 0, store_take_number, &number, NULL, &err), err);
    return number;
}
