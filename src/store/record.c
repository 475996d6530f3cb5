/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes records by their tables of fields; see record.h. */
#include "store/record.h"

#include "base/mem.h"
#include "base/strings.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define HASH_LENGTH 32

static const void *place_in(const void *object, const struct field *field)
{
    return (const char *)object + field->offset;
}

static const char *text_in(const void *object, const struct field *field)
{
    return *(const char *const *)place_in(object, field);
}

static bool is_text(const struct field *field)
{
    return field->kind == FIELD_TEXT || field->kind == FIELD_NODE;
}

static const char *const *strings_in(const void *object, const struct field *field)
{
    return *(const char *const *const *)place_in(object, field);
}

/* Lists as their columns hold them, until the statement has been run. */
struct packs {
    char *columns[12];
    size_t count;
};

static void packs_clear(struct packs *packs)
{
    for (size_t i = 0; i < packs->count; i++)
        free(packs->columns[i]);
}
#define autopacks __attribute__((cleanup(packs_clear))) struct packs

static struct sql_value pack(const struct field *field, const void *object, struct packs *packs)
{
    const char *const *strings = strings_in(object, field);

    assert(packs->count < ARRAY_SIZE(packs->columns));
    if (!strings)
        return sql_text(NULL);
    return sql_text(packs->columns[packs->count++] = strings_pack(strings));
}

static const char *id_of(const struct record *record, const void *object)
{
    return text_in(object, &record->fields[record->id]);
}

static struct sql_value value_of(const struct field *field, const void *object, struct packs *packs)
{
    const void *place = place_in(object, field);

    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_NODE:
        return sql_text(*(const char *const *)place);
    case FIELD_STRINGS:
        return pack(field, object, packs);
    case FIELD_NUMBER:
        return sql_number(*(const int64_t *)place);
    case FIELD_FLAG:
        return sql_number(*(const bool *)place);
    case FIELD_NAME:
        return sql_text(field->names[*(const unsigned *)place]);
    case FIELD_HASH:
        break;
    }
    return sql_bytes(place, HASH_LENGTH);
}

static int unreadable(const struct field *field, struct error *err)
{
    return error_set(err, ERROR_SYSTEM,
                     "the database holds something in column '%s' that does not belong there",
                     field->column);
}

static int read_name(const struct field *field, const struct sql_value *value, unsigned *out,
                     struct error *err)
{
    for (unsigned i = 0; value->type == SQL_TEXT && field->names[i]; i++) {
        if (strcmp(field->names[i], value->data) == 0) {
            *out = i;
            return 0;
        }
    }
    return unreadable(field, err);
}

static int read_field(const struct field *field, void *object, const struct sql_value *value,
                      struct error *err)
{
    void *place = (char *)object + field->offset;

    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_NODE:
    case FIELD_STRINGS:
        if (value->type == SQL_NULL)
            return 0;
        if (value->type != SQL_TEXT || memchr(value->data, '\0', value->length))
            return unreadable(field, err);
        if (field->kind == FIELD_STRINGS)
            *(const char *const **)place = strings_list(value->data);
        else
            *(char **)place = xstrndup(value->data, value->length);
        return 0;
    case FIELD_NUMBER:
    case FIELD_FLAG:
        if (value->type != SQL_NUMBER)
            return unreadable(field, err);
        if (field->kind == FIELD_FLAG)
            *(bool *)place = value->number != 0;
        else
            *(int64_t *)place = value->number;
        return 0;
    case FIELD_NAME:
        return read_name(field, value, place, err);
    case FIELD_HASH:
        break;
    }
    if (value->type != SQL_BYTES || value->length != HASH_LENGTH)
        return unreadable(field, err);
    memcpy(place, value->data, HASH_LENGTH);
    return 0;
}

// What was read before a failure is freed.
static int read_row(const struct record *record, void *object, const struct sql_value *row,
                    struct error *err)
{
    memset(object, 0, record->size);
    for (size_t i = 0; i < record->n_fields; i++) {
        if (read_field(&record->fields[i], object, &row[i], err) < 0) {
            record_clear(record, object);
            return error_about(err, record->noun);
        }
    }
    return 0;
}

void record_clear(const struct record *record, void *object)
{
    for (size_t i = 0; i < record->n_fields; i++)
        if (is_text(&record->fields[i]))
            free((char *)text_in(object, &record->fields[i]));
        else if (record->fields[i].kind == FIELD_STRINGS)
            free((void *)strings_in(object, &record->fields[i]));
    memset(object, 0, record->size);
}

void record_copy(const struct record *record, const void *from, void *to)
{
    memcpy(to, from, record->size);
    for (size_t i = 0; i < record->n_fields; i++) {
        const struct field *field = &record->fields[i];
        void *place = (char *)to + field->offset;
        if (is_text(field) && text_in(from, field))
            *(char **)place = xstrdup(text_in(from, field));
        else if (field->kind == FIELD_STRINGS)
            *(const char *const **)place = strings_copy(strings_in(from, field));
    }
}

void record_rows_clear(const struct record *record, void *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        record_clear(record, (char *)rows + i * record->size);
    free(rows);
}

/* All columns, separated by commas. */
static void add_columns(const struct record *record, struct query *query)
{
    for (size_t i = 0; i < record->n_fields; i++) {
        if (i)
            query_add(query, ", ");
        query_add(query, record->fields[i].column);
    }
}

static void start_select(const struct record *record, struct query *query)
{
    query_init(query);
    query_add(query, "SELECT ");
    add_columns(record, query);
    query_add(query, " FROM ");
    query_add(query, record->table);
}

// In the record's words instead of the database's.
static int explain(const struct record *record, const char *id, struct error *err)
{
    if (error_is(err, ERROR_CONFLICT))
        return error_refuse(err, ERROR_EXISTS, record->noun,
                            "%s '%s' is there already, or what it refers to is not", record->noun,
                            id);
    error_wrap(err, "keep %s '%s'", record->noun, id);
    return error_about(err, record->noun);
}

static struct sql_value value_to_insert(const struct store *store, const struct field *field,
                                        const void *object, struct packs *packs)
{
    if (field->kind == FIELD_NODE && !text_in(object, field))
        return sql_text(store_node(store));
    return value_of(field, object, packs);
}

int record_insert(struct store_call *call, const struct record *record, const void *object,
                  struct error *err)
{
    autopacks packs = {0};
    struct query query;

    query_init(&query);
    query_add(&query, "INSERT INTO ");
    query_add(&query, record->table);
    query_add(&query, " (");
    add_columns(record, &query);
    query_add(&query, ") VALUES (");
    for (size_t i = 0; i < record->n_fields; i++) {
        if (i)
            query_add(&query, ", ");
        query_add_value(&query, value_to_insert(call->store, &record->fields[i], object, &packs));
    }
    query_add(&query, ")");
    if (store_run(call, query.text, query.args, query.n_args, NULL, NULL, NULL, err) < 0)
        return explain(record, id_of(record, object), err);
    return 0;
}

static int put_once(struct store_call *call, enum store_durability durability,
                    const struct record *record, const void *object, struct error *err)
{
    if (store_call_begin(call, durability, err) < 0 || record_insert(call, record, object, err) < 0)
        return -1;
    return store_call_done(call, err);
}

int record_put(struct store *store, enum store_durability durability, const struct record *record,
               const void *object, struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = put_once(&call, durability, record, object, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

struct one {
    const struct record *record;
    void *object;
    bool is_found;
};

static int take_one(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct one *one = data;

    assert(!one->is_found);
    if (read_row(one->record, one->object, row, err) < 0)
        return -1;
    one->is_found = true;
    return 0;
}

int record_missing(const struct record *record, const char *id, struct error *err)
{
    return error_refuse(err, ERROR_NOT_FOUND, record->noun, "there is no %s '%s'", record->noun,
                        id);
}

int record_get(struct store *store, const struct record *record, const char *where,
               const struct sql_value *args, size_t n_args, const char *id, void *out,
               struct error *err)
{
    struct one one = {record, out, false};
    struct query query;
    struct sql *sql = NULL;

    start_select(record, &query);
    query_add(&query, " WHERE ");
    query_add(&query, where);
    if (store_connection(store, &sql, err) < 0 ||
        sql_run(sql, query.text, args, n_args, take_one, &one, NULL, err) < 0)
        return error_wrap(err, "look for %s '%s'", record->noun, id);
    return one.is_found ? 0 : record_missing(record, id, err);
}

static void write_update(struct query *query, const struct record *record, const void *object,
                         unsigned parts, unsigned from, struct packs *packs)
{
    const char *comma = " SET ";

    query_init(query);
    query_add(query, "UPDATE ");
    query_add(query, record->table);
    for (size_t i = 0; i < record->n_fields; i++) {
        const struct field *field = &record->fields[i];
        if (!(field->parts & parts))
            continue;
        query_add(query, comma);
        query_add(query, field->column);
        query_add(query, " = ");
        query_add_value(query, value_of(field, object, packs));
        comma = ", ";
    }
    query_where(query, "id =", sql_text(id_of(record, object)));
    query_where_names(query, "state", record->fields[record->state].names, from);
}

static int take_state(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    (void)snprintf(data, 32, "%s", row[0].data ? row[0].data : "");
    return 0;
}

// Nothing was updated: either there is none, or it is in another state.
static int explain_no_update(struct store_call *call, const struct record *record, const char *id,
                             struct error *err)
{
    struct sql_value arg = sql_text(id);
    struct query query;
    char state[32] = "";

    query_init(&query);
    query_add(&query, "SELECT state FROM ");
    query_add(&query, record->table);
    query_add(&query, " WHERE id = $1");
    if (store_run(call, query.text, &arg, 1, take_state, state, NULL, err) < 0)
        return -1;
    if (!*state)
        return record_missing(record, id, err);
    return error_refuse(err, ERROR_STATE, record->noun, "%s '%s' is %s", record->noun, id, state);
}

int record_update_in(struct store_call *call, const struct record *record, const void *object,
                     unsigned parts, unsigned from, struct error *err)
{
    const char *id = id_of(record, object);
    autopacks packs = {0};
    struct query query;
    int64_t changed = 0;

    assert(parts);
    write_update(&query, record, object, parts, from, &packs);
    if (store_run(call, query.text, query.args, query.n_args, NULL, NULL, &changed, err) < 0)
        return error_wrap(err, "update %s '%s'", record->noun, id);
    return changed == 0 ? explain_no_update(call, record, id, err) : 0;
}

static int update_once(struct store_call *call, enum store_durability durability,
                       const struct record *record, const void *object, unsigned parts,
                       unsigned from, struct error *err)
{
    if (store_call_begin(call, durability, err) < 0)
        return error_wrap(err, "update %s '%s'", record->noun, id_of(record, object));
    if (record_update_in(call, record, object, parts, from, err) < 0)
        return -1;
    return store_call_done(call, err);
}

int record_update(struct store *store, enum store_durability durability,
                  const struct record *record, const void *object, unsigned parts, unsigned from,
                  struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = update_once(&call, durability, record, object, parts, from, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

struct growing {
    const struct record *record;
    struct record_rows *rows;
    size_t capacity;
};

static int take_row(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct growing *growing = data;
    struct record_rows *rows = growing->rows;
    size_t size = growing->record->size;

    if (rows->count == growing->capacity) {
        growing->capacity = growing->capacity ? growing->capacity * 2 : 16;
        rows->rows = xrealloc(rows->rows, growing->capacity, size);
    }
    if (read_row(growing->record, (char *)rows->rows + rows->count * size, row, err) < 0)
        return -1;
    rows->count++;
    return 0;
}

static int select_rows(struct store_call *call, const struct record *record,
                       const struct query *query, struct record_rows *out, struct error *err)
{
    struct growing growing = {.record = record, .rows = out};

    if (store_run(call, query->text, query->args, query->n_args, take_row, &growing, NULL, err) ==
        0)
        return 0;
    record_rows_clear(record, out->rows, out->count);
    *out = (struct record_rows){0};
    return -1;
}

// SELECT … FROM table, then the tail with its parameters.
static void finish_select(const struct record *record, const struct query *tail,
                          struct query *query)
{
    start_select(record, query);
    query_add(query, tail->text);
    memcpy(query->args, tail->args, tail->n_args * sizeof *tail->args);
    query->n_args = tail->n_args;
    query->has_where = tail->has_where;
}

static int count_rows(struct store_call *call, const struct record *record,
                      const struct record_listing *listing, int64_t *total, struct error *err)
{
    const struct query *where = listing->where;
    const struct query *count = listing->count;
    struct query query;

    if (count)
        return store_run(call, count->text, count->args, count->n_args, store_take_number, total,
                         NULL, err);
    query_init(&query);
    query_add(&query, "SELECT count(*) FROM ");
    query_add(&query, record->table);
    query_add(&query, where->text);
    return store_run(call, query.text, where->args, where->n_args, store_take_number, total, NULL,
                     err);
}

static void reverse_rows(const struct record *record, struct record_rows *rows)
{
    autofree char *spare = xcalloc(1, record->size);

    for (size_t i = 0; i < rows->count / 2; i++) {
        char *a = (char *)rows->rows + i * record->size;
        char *b = (char *)rows->rows + (rows->count - 1 - i) * record->size;
        memcpy(spare, a, record->size);
        memcpy(a, b, record->size);
        memcpy(b, spare, record->size);
    }
}

/* Rows that are passed over are read too, so the way from the nearer end is taken. */
static int select_page(struct store_call *call, const struct record *record,
                       const struct record_listing *listing, struct record_rows *rows,
                       struct error *err)
{
    const struct page *page = listing->page;
    int64_t maximum = listing->maximum;
    int64_t limit = page->limit < 0 ? 0 : page->limit > maximum ? maximum : page->limit;
    int64_t offset = page->offset < 0 ? 0 : page->offset;
    struct query query;

    if (limit == 0 || offset >= rows->total)
        return 0;
    if (limit > rows->total - offset)
        limit = rows->total - offset;
    int64_t behind = rows->total - offset - limit;
    bool is_reverse = listing->reverse && behind < offset;
    finish_select(record, listing->where, &query);
    query_add(&query, " ORDER BY ");
    query_add(&query, is_reverse ? listing->reverse : listing->order);
    query_add(&query, " LIMIT ");
    query_add_value(&query, sql_number(limit));
    query_add(&query, " OFFSET ");
    query_add_value(&query, sql_number(is_reverse ? behind : offset));
    if (select_rows(call, record, &query, rows, err) < 0)
        return -1;
    if (is_reverse)
        reverse_rows(record, rows);
    return 0;
}

/* "created_at DESC, id DESC" → the fields that a mark in this order is made of. */
struct mark_fields {
    const struct field *at, *id; // id is NULL: the number is enough
    bool is_descending;
};

static const struct field *field_named(const struct record *record, const char *text, size_t length)
{
    for (size_t i = 0; i < record->n_fields; i++) {
        const char *column = record->fields[i].column;
        if (strlen(column) == length && memcmp(column, text, length) == 0)
            return &record->fields[i];
    }
    return NULL;
}

static int find_mark(const struct record *record, const char *order, struct mark_fields *out,
                     struct error *err)
{
    const char *second = strchr(order, ',');

    *out = (struct mark_fields){.at = field_named(record, order, strcspn(order, " ,")),
                                .is_descending = strstr(order, " DESC") != NULL};
    if (second) {
        second += strspn(second, ", ");
        out->id = field_named(record, second, strcspn(second, " "));
    }
    bool is_id = !second || (out->id && out->id->kind == FIELD_TEXT);
    if (out->at && out->at->kind == FIELD_NUMBER && is_id)
        return 0;
    return error_set(err, ERROR_INVALID, "in this order there are no pages by cursor");
}

/* "(created_at, id) < ($4, $5)" */
static void query_where_mark(struct query *query, const struct mark_fields *fields,
                             const struct page_mark *after)
{
    const char *sign = fields->is_descending ? " < " : " > ";

    query_where_that(query, fields->id ? "(" : "");
    query_add(query, fields->at->column);
    if (fields->id) {
        query_add(query, ", ");
        query_add(query, fields->id->column);
        query_add(query, ")");
    }
    query_add(query, sign);
    query_add(query, fields->id ? "(" : "");
    query_add_value(query, sql_number(after->at));
    if (fields->id) {
        query_add(query, ", ");
        query_add_value(query, sql_text(after->id));
        query_add(query, ")");
    }
}

static void set_mark(const struct record *record, const struct mark_fields *fields, const void *row,
                     struct page_mark *out)
{
    const char *base = row;
    const struct field *id = fields->id ? fields->id : &record->fields[record->id];
    const char *text = id->kind == FIELD_TEXT ? *(const char *const *)(base + id->offset) : NULL;

    out->at = *(const int64_t *)(base + fields->at->offset);
    (void)snprintf(out->id, sizeof out->id, "%s", text && *text ? text : "-");
}

/* One row more than is asked for tells whether there is another page. */
static int select_marked(struct store_call *call, const struct record *record,
                         const struct record_listing *listing, struct record_rows *rows,
                         struct error *err)
{
    const struct page *page = listing->page;
    int64_t maximum = listing->maximum;
    int64_t limit = page->limit < 1 ? 1 : page->limit > maximum ? maximum : page->limit;
    struct mark_fields fields;
    struct query query;

    if (find_mark(record, listing->order, &fields, err) < 0)
        return -1;
    finish_select(record, listing->where, &query);
    if (*page->after.id)
        query_where_mark(&query, &fields, &page->after);
    query_add(&query, " ORDER BY ");
    query_add(&query, listing->order);
    query_add(&query, " LIMIT ");
    query_add_value(&query, sql_number(limit + 1));
    if (select_rows(call, record, &query, rows, err) < 0)
        return -1;
    if ((int64_t)rows->count <= limit)
        return 0;
    record_clear(record, (char *)rows->rows + --rows->count * record->size);
    set_mark(record, &fields, (char *)rows->rows + (rows->count - 1) * record->size, &rows->next);
    return 0;
}

static int select_counted(struct store_call *call, const struct record *record,
                          const struct record_listing *listing, struct record_rows *rows,
                          struct error *err)
{
    // Both of one moment, so that the total fits the page.
    return count_rows(call, record, listing, &rows->total, err) < 0
               ? -1
               : select_page(call, record, listing, rows, err);
}

int record_list_long(struct store *store, const struct record *record,
                     const struct record_listing *listing, struct record_rows *out,
                     struct error *err)
{
    autocall call = {.store = store};
    struct record_rows rows = {0};

    if (store_call_read(&call, err) < 0 ||
        (listing->page->is_marked ? select_marked : select_counted)(&call, record, listing, &rows,
                                                                    err) < 0)
        return error_wrap(err, "list %s", record->table);
    store_call_clear(&call); // read only: nothing to commit
    *out = rows;
    return 0;
}

int record_list(struct store *store, const struct record *record, const struct query *where,
                const char *order, const struct page *page, int64_t maximum,
                struct record_rows *out, struct error *err)
{
    const struct record_listing listing = {
        .where = where, .order = order, .page = page, .maximum = maximum};
    return record_list_long(store, record, &listing, out, err);
}

int record_select(struct store_call *call, const struct record *record, const struct query *tail,
                  struct record_rows *out, struct error *err)
{
    struct query query;

    finish_select(record, tail, &query);
    return select_rows(call, record, &query, out, err);
}

int record_list_all(struct store *store, const struct record *record, const struct query *tail,
                    struct record_rows *out, struct error *err)
{
    autocall call = {.store = store};
    struct record_rows rows = {0};

    if (store_call_read(&call, err) < 0 || record_select(&call, record, tail, &rows, err) < 0)
        return error_wrap(err, "list %s", record->table);
    rows.total = (int64_t)rows.count;
    *out = rows;
    return 0;
}

int record_take_count(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct record_counts *counts = data;
    unsigned state = 0;

    if (read_name(counts->state, &row[0], &state, err) < 0)
        return -1;
    counts->counts[state] += row[1].number;
    return 0;
}
