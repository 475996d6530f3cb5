/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as tables of fields: from one table come the columns of a statement, its parameters,
 * reading a row and freeing what was read. Private to the store.
 * Threads: plain values.
 */
#pragma once
#include "store/sql_query.h"
#include "store/store_impl.h"

enum field_kind {
    FIELD_TEXT,    // const char *; NULL is NULL
    FIELD_NODE,    // likewise; put with NULL, it becomes this node's
    FIELD_STRINGS, // const char *const *, of strings_list; in the column they are packed
    FIELD_NUMBER,  // int64_t
    FIELD_FLAG,    // bool, 0 or 1
    FIELD_NAME,    // an enum, by its names
    FIELD_HASH,    // unsigned char[32]
};

struct field {
    const char *column;
    enum field_kind kind;
    unsigned parts; // updates that write it
    size_t offset;
    const char *const *names; // FIELD_NAME; ended by NULL
};

struct record {
    const char *noun;
    const char *table; // also the plural of its noun in sentences
    size_t size;
    const struct field *fields;
    size_t n_fields;
    size_t id;    // the field that names one in errors
    size_t state; // the field record_update compares
};

#define EVERY_PART (~0u)

/* ERROR_CONFLICT: it is there already. */
int record_insert(struct store_call *call, const struct record *record, const void *object,
                  struct error *err);

/* The same as a call of its own. */
int record_put(struct store *store, enum store_durability durability, const struct record *record,
               const void *object, struct error *err);

/* The one row of "WHERE " + where. ERROR_NOT_FOUND says `id`. */
int record_get(struct store *store, const struct record *record, const char *where,
               const struct sql_value *args, size_t n_args, const char *id, void *out,
               struct error *err);

/* ERROR_NOT_FOUND for a record by its id. Returns -1. */
int record_missing(const struct record *record, const char *id, struct error *err);

/* Writes the fields in `parts` where the stored state is in `from` (0: any); see
 * store_sandbox_update. */
int record_update(struct store *store, enum store_durability durability,
                  const struct record *record, const void *object, unsigned parts, unsigned from,
                  struct error *err);
/* The same in the caller's transaction. */
int record_update_in(struct store_call *call, const struct record *record, const void *object,
                     unsigned parts, unsigned from, struct error *err);

struct record_rows {
    void *rows; // an array of the record's structs
    size_t count;
    int64_t total;
    struct page_mark next; // of a page that is marked
};

/* A list that may be long. */
struct record_listing {
    const struct query *where;
    const struct query *count; // a statement that counts them quicker; NULL: none
    const char *order;
    const char *
        reverse; // the same from the other end: what is nearer to that is read from there; NULL: always from this one
    const struct page
        *page; // may be marked where `order` is by a number, and by an id where that is not enough
    int64_t maximum; // of a page
};
int record_list_long(struct store *store, const struct record *record,
                     const struct record_listing *listing, struct record_rows *out,
                     struct error *err);

/* Of the rows of `where`: how many there are, and those of the page in `order`. */
int record_list(struct store *store, const struct record *record, const struct query *where,
                const char *order, const struct page *page, int64_t maximum,
                struct record_rows *out, struct error *err);
/* All of them, without counting. */
int record_list_all(struct store *store, const struct record *record, const struct query *tail,
                    struct record_rows *out, struct error *err);

/* The same in the caller's transaction; total is left alone. */
int record_select(struct store_call *call, const struct record *record, const struct query *tail,
                  struct record_rows *out, struct error *err);

void record_clear(const struct record *record, void *object);
/* A copy with strings of its own; `to` is written over. */
void record_copy(const struct record *record, const void *from, void *to);
void record_rows_clear(const struct record *record, void *rows, size_t count);

/* An on_row for "SELECT state, count(*)": adds to the numbers at data->counts. */
struct record_counts {
    const struct field *state;
    int64_t *counts;
};
int record_take_count(void *data, const struct sql_value *row, size_t n_columns, struct error *err);
