/* SPDX-License-Identifier: Apache-2.0 */
/* See busy.h. */
#include "busy.h"

#include "test.h"

#include <sqlite3.h>
#include <stdatomic.h>

static atomic_int next, turn, asked, failed;

static void answer(sqlite3_context *context, int count, sqlite3_value **values)
{
    int number = atomic_fetch_add(&asked, 1) + 1, every = atomic_load(&turn);

    if (number > atomic_load(&next) && (every == 0 || number % every != 0))
        return;
    atomic_fetch_add(&failed, 1);
    sqlite3_result_error(context, "somebody is in the way", -1);
    sqlite3_result_error_code(context, SQLITE_BUSY);
}

static int on_connect(sqlite3 *handle)
{
    return sqlite3_create_function(handle, "is_busy", 0, SQLITE_UTF8 | SQLITE_INNOCUOUS, NULL,
                                   answer, NULL, NULL);
}

// Every connection of the process knows the function.
__attribute__((constructor)) static void prepare(void)
{
    (void)sqlite3_auto_extension((void (*)(void))(void *)on_connect);
}

void busy_watch(const char *database, const char *table)
{
    sqlite3 *handle = NULL;
    char text[200];

    busy_next(0);
    (void)snprintf(text, sizeof text,
                   "CREATE TRIGGER busy_%s BEFORE INSERT ON %s BEGIN SELECT is_busy(); END", table,
                   table);
    CHECK(sqlite3_open(database, &handle) == SQLITE_OK);
    (void)sqlite3_busy_timeout(handle, 60000);
    CHECK(sqlite3_exec(handle, text, NULL, NULL, NULL) == SQLITE_OK);
    (void)sqlite3_close(handle);
}

static void plan(int first, int every)
{
    atomic_store(&asked, 0);
    atomic_store(&failed, 0);
    atomic_store(&turn, every);
    atomic_store(&next, first);
}

void busy_next(int times)
{
    plan(times, 0);
}

void busy_every(int every)
{
    plan(0, every);
}

int busy_asked(void)
{
    return atomic_load(&asked);
}

int busy_failed(void)
{
    return atomic_load(&failed);
}
