/* SPDX-License-Identifier: Apache-2.0 */
/* Brings the tables up to date: runs the texts of migrations/ that this database has not seen. */
#include "base/clock.h"
#include "base/mem.h"
#include "store/store_impl.h"

#include <stdlib.h>
#include <string.h>

// What the database has seen.
struct history {
    const struct embedded_file *migrations;
    int64_t count;
};

static int take_row(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct history *history = data;
    const struct embedded_file *known = &history->migrations[history->count];

    if (!known->name)
        return error_set(
            err, ERROR_UNAVAILABLE,
            "it was last used by a newer burrow (it has migration '%s'): install that one",
            row[1].data);
    if (row[0].number != history->count + 1 || strcmp(row[1].data, known->name) != 0)
        return error_set(err, ERROR_CONFLICT,
                         "it has migration '%s' where this burrow has '%s': it belongs to another "
                         "version",
                         row[1].data, known->name);
    history->count++;
    return 0;
}

static int read_history(struct store_call *call, struct history *history, struct error *err)
{
    history->count = 0;
    return store_run(call, "SELECT number, name FROM migrations ORDER BY number", NULL, 0, take_row,
                     history, NULL, err);
}

static int make_history(struct store *store, struct error *err)
{
    return store_run_alone(
        store, STORE_DURABLE,
        "CREATE TABLE IF NOT EXISTS migrations (number BIGINT NOT NULL PRIMARY KEY, "
        "name TEXT NOT NULL, applied_at BIGINT NOT NULL)",
        NULL, 0, NULL, err);
}

// The text with the node's identity in the place of its mark.
static char *fill_in(const char *text, const char *node)
{
    static const char mark[] = "@node@";
    char *filled = xstrdup("");

    for (const char *at; (at = strstr(text, mark)); text = at + sizeof mark - 1) {
        autofree char *before = filled;
        filled = xasprintf("%s%.*s%s", before, (int)(at - text), text, node);
    }
    autofree char *before = filled;
    return xasprintf("%s%s", before, text);
}

// Runs the next one; another process may have been quicker, so it looks again under the lock.
// *is_done: there is none.
static int run_next(struct store_call *call, struct history *history, bool *is_done,
                    struct error *err)
{
    if (store_call_begin(call, STORE_DURABLE, err) < 0 || read_history(call, history, err) < 0)
        return -1;
    const struct embedded_file *next = &history->migrations[history->count];
    *is_done = !next->name;
    if (*is_done)
        return store_call_done(call, err);
    if (atoll(next->name) != history->count + 1)
        return error_set(err, ERROR_SYSTEM, "migration '%s' is not number %lld", next->name,
                         (long long)history->count + 1);
    struct sql_value args[] = {sql_number(history->count + 1), sql_text(next->name),
                               sql_number((int64_t)clock_wall_ms())};
    autofree char *text = fill_in(next->data, store_node(call->store));
    if (store_run(call, text, NULL, 0, NULL, NULL, NULL, err) < 0 ||
        store_run(call, "INSERT INTO migrations (number, name, applied_at) VALUES ($1, $2, $3)",
                  args, ARRAY_SIZE(args), NULL, NULL, NULL, err) < 0)
        return error_wrap(err, "run migration '%s'", next->name);
    return store_call_done(call, err);
}

int store_migrate(struct store *store, const struct embedded_file *migrations, struct error *err)
{
    struct history history = {.migrations = migrations};
    bool is_done = false;
    int result = make_history(store, err);

    while (result == 0 && !is_done) {
        autocall call = {.store = store};
        do
            result = run_next(&call, &history, &is_done, err);
        while (result < 0 && store_call_again(&call, err));
    }
    return result;
}
