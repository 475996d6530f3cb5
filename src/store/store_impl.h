/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the store share and nobody else sees: this thread's connection, and writing
 * through it.
 * Threads: any but loops; a store_call is its thread's.
 */
#pragma once
#include "base/embedded.h"
#include "base/id.h"
#include "store/sql.h"
#include "store/store.h"

/* This thread's connection; made where it has none. Stays the store's. */
int store_connection(struct store *store, struct sql **out, struct error *err);

/*
 * A transaction around one call: does nothing where the thread is in one already, which then takes
 * the call in, and is the one to be run again. Ended by store_call_done, or rolled back by
 * store_call_again and by its cleanup.
 *
 *     autocall call = {.store = store};
 *     int result;
 *     do
 *         result = put(&call, …, err); // store_call_begin, store_run …, store_call_done
 *     while (result < 0 && store_call_again(&call, err));
 */
struct store_call {
    struct store *store;
    struct sql *sql;
    bool is_own;    // a transaction of this call's is open
    bool is_inside; // of one around it
    unsigned attempts;
};
int store_call_begin(struct store_call *call, enum store_durability durability, struct error *err);
int store_call_read(struct store_call *call, struct error *err);
int store_call_done(struct store_call *call, struct error *err);
/* It failed: whether to do it once more, since the reason is ERROR_RETRY. */
bool store_call_again(struct store_call *call, const struct error *err);
void store_call_clear(struct store_call *call);
#define autocall __attribute__((cleanup(store_call_clear))) struct store_call

/* sql_run on the call's connection; a failure marks the transaction around it as beyond commit. */
int store_run(struct store_call *call, const char *text, const struct sql_value *args,
              size_t n_args, sql_on_row on_row, void *data, int64_t *changed, struct error *err);

/* A call of one statement without rows; *changed may be NULL. */
int store_run_alone(struct store *store, enum store_durability durability, const char *text,
                    const struct sql_value *args, size_t n_args, int64_t *changed,
                    struct error *err);

/* An on_row for a single number: data is an int64_t. */
int store_take_number(void *data, const struct sql_value *row, size_t n_columns, struct error *err);

/* The transaction that is open has events in it: whoever is told of them (store_on_events) is, once it is committed. */
void store_has_events(struct store *store);

/* Opens without bringing the tables up to date. */
int store_open_bare(const char *directory, struct store **out, struct error *err);

/* The identity that a data directory was given once; gives it one where it has none. */
int node_read(const char *directory, char id[ID_TEXT], struct error *err);

/*
 * Runs those of `migrations` (NNNN-name.sql in order of number, from 1 without gaps) that have not
 * been run, each in its own durable transaction. ERROR_UNAVAILABLE when the database is of a newer
 * burrow, ERROR_CONFLICT when of another.
 */
int store_migrate(struct store *store, const struct embedded_file *migrations, struct error *err);

extern const struct embedded_file store_migrations[]; // migrations/
