/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sql_sqlite.c and sql_sqlite_run.c share.
 * Threads: any but loops; a connection by one at a time.
 */
#pragma once
#include "store/sql.h"

#include "base/lock.h"
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

struct sql_database {
    char *path;
    // Writers of this process queue here instead of polling SQLite's own lock; held from begin to
    // end of a transaction.
    struct lock writer; // held from begin to commit or rollback
    struct lock lock;   // guards what follows
    struct lock_condition has_work;
    bool is_closing;
    int wal_pages;  // in the write-ahead log, as of the last commit that asked for a checkpoint
    bool is_wanted; // a checkpoint
    pthread_t maintenance;
    bool has_maintenance;
};

#define STATEMENTS 128
#define STATEMENT_ARGS 80

struct statement {
    uint64_t used; // when, on the connection's count of runs
    sqlite3_stmt *handle;
    unsigned char index[STATEMENT_ARGS]; // of $1, $2, …: SQLite numbers them by first appearance
    size_t n_args;
};

struct sql {
    struct sql_database *database;
    sqlite3 *handle;
    bool is_writing; // holds database->writer
    bool is_durable; // the transaction in which it is
    uint64_t runs;
    uint64_t hashes[STATEMENTS]; // of the statements' texts
    struct statement statements[STATEMENTS];
};

/*
 * Makes a sentence of what SQLite said last on this connection; `code` is what the call returned,
 * before which errno was set to 0. Returns -1.
 */
int sqlite_error(struct error *err, const struct sql *sql, int code, const char *doing);

/* Runs `text`, of several statements and without rows. */
int sqlite_script(struct sql *sql, const char *text, struct error *err);
