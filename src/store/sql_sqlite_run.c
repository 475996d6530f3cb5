/* SPDX-License-Identifier: Apache-2.0 */
/* Running statements on a SQLite connection, each kept prepared for the next time. */
#include "store/sql_sqlite.h"

#include "base/utf8.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define COLUMNS 80

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

// SQLite numbers $2 … $1 by first appearance: keeps where each one is.
static void index_parameters(struct statement *statement)
{
    int count = sqlite3_bind_parameter_count(statement->handle);

    assert(count <= STATEMENT_ARGS);
    statement->n_args = (size_t)count;
    for (int i = 1; i <= count; i++) {
        int number = atoi(sqlite3_bind_parameter_name(statement->handle, i) + 1);
        assert(number >= 1 && number <= count); // without gaps
        statement->index[number - 1] = (unsigned char)i;
    }
}

static int prepare(struct sql *sql, struct statement *statement, const char *text,
                   struct error *err)
{
    (void)sqlite3_finalize(statement->handle);
    *statement = (struct statement){0};
    errno = 0;
    int code = sqlite3_prepare_v3(sql->handle, text, -1, SQLITE_PREPARE_PERSISTENT,
                                  &statement->handle, NULL);
    if (code != SQLITE_OK)
        return sqlite_error(err, sql, code, "prepare a statement of");
    index_parameters(statement);
    return 0;
}

static struct statement *find_statement(struct sql *sql, uint64_t hash, const char *text)
{
    for (size_t i = 0; i < STATEMENTS; i++) {
        struct statement *statement = &sql->statements[i];
        if (sql->hashes[i] == hash && statement->handle &&
            strcmp(sqlite3_sql(statement->handle), text) == 0)
            return statement;
    }
    return NULL;
}

static size_t oldest_statement(const struct sql *sql)
{
    size_t oldest = 0;

    for (size_t i = 1; i < STATEMENTS; i++)
        if (sql->statements[i].used < sql->statements[oldest].used)
            oldest = i;
    return oldest;
}

// The statement prepared for `text`; a new one takes the place of the one not used for longest.
static int get_statement(struct sql *sql, const char *text, struct statement **out,
                         struct error *err)
{
    uint64_t hash = hash_of(text);
    struct statement *statement = find_statement(sql, hash, text);

    if (!statement) {
        size_t place = oldest_statement(sql);
        statement = &sql->statements[place];
        sql->hashes[place] = hash;
        if (prepare(sql, statement, text, err) < 0)
            return -1;
    }
    statement->used = ++sql->runs;
    *out = statement;
    return 0;
}

static bool is_clean_text(const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        unsigned char byte = (unsigned char)text[i];
        if (byte > 0 && byte < 0x80) {
            i++;
            continue;
        }
        size_t taken = byte ? utf8_length(text + i, length - i) : 0;
        if (!taken)
            return false;
        i += taken;
    }
    return true;
}

static int bind(struct sql *sql, struct statement *statement, size_t number,
                const struct sql_value *value, struct error *err)
{
    int index = statement->index[number], code = SQLITE_OK;

    switch (value->type) {
    case SQL_NULL:
        code = sqlite3_bind_null(statement->handle, index);
        break;
    case SQL_NUMBER:
        code = sqlite3_bind_int64(statement->handle, index, value->number);
        break;
    case SQL_TEXT:
        if (!is_clean_text(value->data, value->length))
            return error_set(err, ERROR_INVALID, "a text is not UTF-8, or holds a NUL");
        code = sqlite3_bind_text64(statement->handle, index, value->data, value->length,
                                   SQLITE_STATIC, SQLITE_UTF8);
        break;
    case SQL_BYTES:
        code = sqlite3_bind_blob64(statement->handle, index, value->data, value->length,
                                   SQLITE_STATIC);
        break;
    }
    return code == SQLITE_OK ? 0 : sqlite_error(err, sql, code, "bind a value for");
}

static struct sql_value column(sqlite3_stmt *handle, int index)
{
    switch (sqlite3_column_type(handle, index)) {
    case SQLITE_INTEGER:
        return sql_number(sqlite3_column_int64(handle, index));
    case SQLITE_TEXT: {
        const char *text = (const char *)sqlite3_column_text(handle, index);
        return (struct sql_value){.type = SQL_TEXT,
                                  .data = text ? text : "",
                                  .length = (size_t)sqlite3_column_bytes(handle, index)};
    }
    case SQLITE_BLOB: {
        const void *data = sqlite3_column_blob(handle, index);
        return sql_bytes(data ? data : "", (size_t)sqlite3_column_bytes(handle, index));
    }
    default:
        return (struct sql_value){.type = SQL_NULL};
    }
}

static int give_row(sqlite3_stmt *handle, sql_on_row on_row, void *data, struct error *err)
{
    struct sql_value row[COLUMNS];
    int count = sqlite3_column_count(handle);

    assert(count <= COLUMNS);
    for (int i = 0; i < count; i++)
        row[i] = column(handle, i);
    return on_row(data, row, (size_t)count, err);
}

static int step_through(struct sql *sql, sqlite3_stmt *handle, sql_on_row on_row, void *data,
                        struct error *err)
{
    int code;

    errno = 0;
    while ((code = sqlite3_step(handle)) == SQLITE_ROW)
        if (on_row && give_row(handle, on_row, data, err) < 0)
            return -1;
    return code == SQLITE_DONE ? 0 : sqlite_error(err, sql, code, "use");
}

int sql_run(struct sql *sql, const char *text, const struct sql_value *args, size_t n_args,
            sql_on_row on_row, void *data, int64_t *changed, struct error *err)
{
    struct statement *statement = NULL;

    if (n_args == 0 && strchr(text, ';'))
        return sqlite_script(sql, text, err);
    if (get_statement(sql, text, &statement, err) < 0)
        return -1;
    assert(n_args == statement->n_args);
    int failed = 0;
    for (size_t i = 0; i < n_args && !failed; i++)
        failed = bind(sql, statement, i, &args[i], err);
    if (!failed)
        failed = step_through(sql, statement->handle, on_row, data, err);
    if (!failed && changed)
        *changed = sqlite3_changes64(sql->handle);
    (void)sqlite3_reset(statement->handle); // its failure is the step's, said already
    (void)sqlite3_clear_bindings(statement->handle);
    return failed;
}
