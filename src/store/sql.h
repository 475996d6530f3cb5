/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a database must be able to do, and the only functions that know which one it is: sql_NAME.c
 * fills them in. Texts are written so that SQLite and PostgreSQL both take them, with parameters
 * $1, $2, … Everything blocks.
 * Threads: any but loops; a connection by one at a time.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sql_database; // shared: where the data is
struct sql;          // one connection

enum sql_type {
    SQL_NULL,
    SQL_NUMBER,
    SQL_TEXT, // UTF-8 without NUL
    SQL_BYTES,
};

/* A parameter, or a column of a row. Bytes are borrowed: for the call, or until on_row returns. */
struct sql_value {
    enum sql_type type;
    int64_t number;
    const char *data; // SQL_TEXT is NUL-terminated
    size_t length;
};

enum sql_step {
    SQL_BEGIN_READ,    // sees one moment of the database until its end
    SQL_BEGIN,         // for writing; once committed it survives the death of the process
    SQL_BEGIN_DURABLE, // and a power cut
    SQL_COMMIT,
    SQL_ROLLBACK, // does nothing where none is open
};

/* One row. It must not use the connection. -1 ends the statement, which then fails with `err`. */
typedef int (*sql_on_row)(void *data, const struct sql_value *row, size_t n_columns,
                          struct error *err);

/* Opens (makes) the database of a data directory: for SQLite, a file in it. */
int sql_open(const char *directory, struct sql_database **out, struct error *err);
/* All connections must be closed. */
void sql_close(struct sql_database *database);
/* Whether there is one to open. */
bool sql_exists(const char *directory);
/* Where it is, for sentences. */
const char *sql_place(const struct sql_database *database);
/* What it takes on this machine's disk. */
uint64_t sql_disk_bytes(const struct sql_database *database);

int sql_connect(struct sql_database *database, struct sql **out, struct error *err);
/* The same with room to keep what it has read: for one that all writes go through. Several threads may use it for writing, each from
 * its SQL_BEGIN to its end, during which the others wait. */
int sql_connect_writer(struct sql_database *database, struct sql **out, struct error *err);
/* Rolls an open transaction back. */
void sql_disconnect(struct sql *sql);

/*
 * A transaction for writing is serializable: as if it ran alone. Where another writer is in the way
 * for longer than is worth waiting for, any step but SQL_ROLLBACK, and any sql_run in it, fails with
 * the reason ERROR_RETRY; whoever began it rolls back and may begin again at once. A failed
 * SQL_COMMIT has rolled back, unless its reason is ERROR_LOST: then it may have happened, or, where
 * the disk failed to take a durable one, be gone after a power cut.
 */
int sql_transaction(struct sql *sql, enum sql_step step, struct error *err);

/*
 * Runs one statement, kept prepared for the next time; without parameters `text` may hold several.
 * *changed (may be NULL) is how many rows were inserted, updated or deleted. ERROR_CONFLICT: what
 * must be unique is not, or something still refers to it; ERROR_INVALID: a check of the schema
 * refused it; ERROR_LIMIT: no room on the disk.
 */
int sql_run(struct sql *sql, const char *text, const struct sql_value *args, size_t n_args,
            sql_on_row on_row, void *data, int64_t *changed, struct error *err);

static inline struct sql_value sql_number(int64_t number)
{
    return (struct sql_value){.type = SQL_NUMBER, .number = number};
}

static inline struct sql_value sql_text(const char *text)
{
    return (struct sql_value){.type = text ? SQL_TEXT : SQL_NULL,
                              .data = text,
                              .length = text ? __builtin_strlen(text) : 0};
}

static inline struct sql_value sql_bytes(const void *data, size_t length)
{
    return (struct sql_value){.type = SQL_BYTES, .data = data, .length = length};
}
