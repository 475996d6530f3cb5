/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the store, gives every thread its connection, and holds transactions; see store.h. */
#include "store/store_impl.h"

#include "base/id.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/lock.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

// A thread's own; reached through the store's key, and by the list for those that outlive the
// store.
struct connection {
    struct store *store;
    struct sql *sql; // for reading; NULL until it is needed
    bool is_open;    // a transaction of the caller, on the store's writer
    bool is_in_call; // one of a single call, likewise
    bool is_broken;  // in which something has failed
    enum error_reason broken_by;
    struct connection *next, **link;
};

struct store {
    struct sql_database *database;
    // All writes go through one connection, a transaction at a time: one that alone writes keeps its pages and statements,
    // where a connection to each thread would read them again after every commit of another.
    struct sql *writer;
    bool has_events; // in the transaction that is open: whoever writes has it
    void (*on_events)(void *data);
    void *on_events_data;
    char node[ID_TEXT];
    pthread_key_t key;
    struct lock lock; // guards the list
    struct connection *connections;
};

static void connection_free(struct connection *connection)
{
    sql_disconnect(connection->sql);
    free(connection);
}

static void unlink_connection(struct store *store, struct connection *connection)
{
    autolock(&store->lock);
    *connection->link = connection->next;
    if (connection->next)
        connection->next->link = connection->link;
}

static void link_connection(struct store *store, struct connection *connection)
{
    autolock(&store->lock);
    connection->next = store->connections;
    connection->link = &store->connections;
    if (connection->next)
        connection->next->link = &connection->next;
    store->connections = connection;
}

// The thread ends.
static void on_thread_end(void *data)
{
    struct connection *connection = data;
    struct store *store = connection->store;

    unlink_connection(store, connection);
    connection_free(connection);
}

int store_open_bare(const char *directory, struct store **out, struct error *err)
{
    struct sql_database *database = NULL;
    char node[ID_TEXT];

    if (node_read(directory, node, err) < 0 || sql_open(directory, &database, err) < 0)
        return -1;
    struct sql *writer = NULL;
    if (sql_connect_writer(database, &writer, err) < 0) {
        sql_close(database);
        return -1;
    }
    struct store *store = xnew(struct store);
    store->database = database;
    store->writer = writer;
    memcpy(store->node, node, sizeof node);
    lock_init(&store->lock, LOCK_STORE);
    int code = pthread_key_create(&store->key, on_thread_end);
    if (code != 0) {
        lock_clear(&store->lock);
        sql_disconnect(writer);
        sql_close(database);
        free(store);
        return error_sys_code(err, code, "open the store in '%s': no more thread keys", directory);
    }
    *out = store;
    return 0;
}

int store_open(const char *directory, struct store **out, struct error *err)
{
    autoptr(store) store = NULL;

    if (store_open_bare(directory, &store, err) < 0)
        return -1;
    if (store_migrate(store, store_migrations, err) < 0)
        return error_wrap(err, "bring database '%s' up to date", sql_place(store->database));
    *out = take(store);
    return 0;
}

bool store_exists(const char *directory)
{
    return sql_exists(directory);
}

uint64_t store_disk_bytes(const struct store *store)
{
    return sql_disk_bytes(store->database);
}

const char *store_node(const struct store *store)
{
    return store->node;
}

void store_free(struct store *store)
{
    if (!store)
        return;
    (void)pthread_key_delete(store->key); // no on_thread_end from here on
    while (store->connections) {
        struct connection *connection = store->connections;
        store->connections = connection->next;
        connection_free(connection);
    }
    sql_disconnect(store->writer);
    sql_close(store->database);
    lock_clear(&store->lock);
    free(store);
}

static int get_connection(struct store *store, struct connection **out, struct error *err)
{
    struct connection *connection = pthread_getspecific(store->key);

    assert(!thread_is_loop()); // every call comes by here, and may wait for the disk
    if (connection) {
        *out = connection;
        return 0;
    }
    connection = xnew(struct connection);
    connection->store = store;
    int code = pthread_setspecific(store->key, connection);
    if (code != 0) {
        connection_free(connection);
        return error_sys_code(err, code, "keep a connection for this thread");
    }
    link_connection(store, connection);
    *out = connection;
    return 0;
}

/* Where this thread reads now: in its transaction, or on a connection of its own. */
static int get_reader(struct store *store, struct connection *connection, struct sql **out,
                      struct error *err)
{
    if (connection->is_open || connection->is_in_call) {
        *out = store->writer;
        return 0;
    }
    if (!connection->sql && sql_connect(store->database, &connection->sql, err) < 0)
        return -1;
    *out = connection->sql;
    return 0;
}

int store_connection(struct store *store, struct sql **out, struct error *err)
{
    struct connection *connection = NULL;

    if (get_connection(store, &connection, err) < 0)
        return -1;
    return get_reader(store, connection, out, err);
}

bool store_is_retry(const struct error *err)
{
    return error_is(err, ERROR_RETRY);
}

bool store_is_lost(const struct error *err)
{
    return error_is(err, ERROR_LOST);
}

// The only place that decides on it.
static bool is_worth_another(unsigned *attempts, const struct error *err)
{
    return store_is_retry(err) && ++*attempts < STORE_ATTEMPTS;
}

static enum sql_step begin_of(enum store_durability durability)
{
    return durability == STORE_DURABLE ? SQL_BEGIN_DURABLE : SQL_BEGIN;
}

void store_on_events(struct store *store, void (*fn)(void *data), void *data)
{
    store->on_events_data = data;
    store->on_events = fn;
}

void store_has_events(struct store *store)
{
    store->has_events = true;
}

/* The caller writes; behind it, it does not any more. */
static int end_writing(struct store *store, enum sql_step step, struct error *err)
{
    bool has_events = store->has_events;

    store->has_events = false;
    int result = sql_transaction(store->writer, step, err);
    if (has_events && store->on_events) // also when nobody knows what became of it
        store->on_events(store->on_events_data);
    return result;
}

int store_begin(struct store *store, enum store_durability durability,
                struct store_transaction *out, struct error *err)
{
    struct connection *connection = NULL;

    if (get_connection(store, &connection, err) < 0)
        return -1;
    assert(!connection->is_open); // one at a time
    if (sql_transaction(store->writer, begin_of(durability), err) < 0)
        return -1;
    connection->is_open = true;
    connection->is_broken = false;
    connection->broken_by = ERROR_NONE;
    out->store = store;
    return 0;
}

bool store_again(struct store_transaction *transaction, const struct error *err)
{
    store_rollback(transaction);
    return is_worth_another(&transaction->attempts, err);
}

int store_commit(struct store_transaction *transaction, struct error *err)
{
    struct connection *connection = pthread_getspecific(transaction->store->key);

    assert(connection && connection->is_open);
    if (connection->is_broken) {
        bool is_worth_it = connection->broken_by == ERROR_RETRY;
        store_rollback(transaction);
        return error_set(err, is_worth_it ? ERROR_RETRY : ERROR_CONFLICT,
                         "a step of the transaction has failed, so all of it is undone");
    }
    struct store *store = transaction->store;
    connection->is_open = false;
    transaction->store = NULL;
    return end_writing(store, SQL_COMMIT, err);
}

void store_rollback(struct store_transaction *transaction)
{
    struct error ignored;

    if (!transaction->store)
        return;
    struct connection *connection = pthread_getspecific(transaction->store->key);
    assert(connection && connection->is_open);
    struct store *store = transaction->store;
    connection->is_open = false;
    transaction->store = NULL;
    (void)end_writing(store, SQL_ROLLBACK, &ignored);
}

int store_call_begin(struct store_call *call, enum store_durability durability, struct error *err)
{
    struct store *store = call->store;
    struct connection *connection = NULL;

    if (get_connection(store, &connection, err) < 0)
        return -1;
    call->is_inside = connection->is_open;
    if (!call->is_inside && sql_transaction(store->writer, begin_of(durability), err) < 0)
        return -1;
    call->sql = store->writer;
    call->is_own = connection->is_in_call = !call->is_inside;
    return 0;
}

int store_call_read(struct store_call *call, struct error *err)
{
    struct store *store = call->store;
    struct connection *connection = NULL;

    if (get_connection(store, &connection, err) < 0 ||
        get_reader(store, connection, &call->sql, err) < 0)
        return -1;
    call->is_inside = connection->is_open;
    if (!call->is_inside && sql_transaction(call->sql, SQL_BEGIN_READ, err) < 0)
        return -1;
    call->is_own = !call->is_inside;
    return 0;
}

static void end_call(struct store_call *call)
{
    struct connection *connection = pthread_getspecific(call->store->key);

    if (call->is_own)
        connection->is_in_call = false;
    call->is_own = false;
}

static int end_transaction(struct store_call *call, enum sql_step step, struct error *err)
{
    return call->sql == call->store->writer ? end_writing(call->store, step, err)
                                            : sql_transaction(call->sql, step, err);
}

int store_call_done(struct store_call *call, struct error *err)
{
    bool is_own = call->is_own;

    end_call(call);
    return is_own ? end_transaction(call, SQL_COMMIT, err) : 0;
}

bool store_call_again(struct store_call *call, const struct error *err)
{
    store_call_clear(call);
    return !call->is_inside && is_worth_another(&call->attempts, err);
}

void store_call_clear(struct store_call *call)
{
    struct error ignored;

    if (!call->is_own)
        return;
    end_call(call);
    (void)end_transaction(call, SQL_ROLLBACK, &ignored);
}

int store_run(struct store_call *call, const char *text, const struct sql_value *args,
              size_t n_args, sql_on_row on_row, void *data, int64_t *changed, struct error *err)
{
    if (sql_run(call->sql, text, args, n_args, on_row, data, changed, err) == 0)
        return 0;
    struct connection *connection = pthread_getspecific(call->store->key);
    if (!connection->is_broken)
        connection->broken_by = err->reason;
    connection->is_broken = true;
    return -1;
}

int store_run_alone(struct store *store, enum store_durability durability, const char *text,
                    const struct sql_value *args, size_t n_args, int64_t *changed,
                    struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = store_call_begin(&call, durability, err) < 0 ||
                         store_run(&call, text, args, n_args, NULL, NULL, changed, err) < 0 ||
                         store_call_done(&call, err) < 0
                     ? -1
                     : 0;
    while (result < 0 && store_call_again(&call, err));
    return result;
}

int store_take_number(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    *(int64_t *)data = row[0].number;
    return 0;
}
