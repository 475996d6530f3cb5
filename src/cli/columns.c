/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and answers by tables; see columns.h. */
#include "cli/columns.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/sandbox_options.h"

#include <stdlib.h>
#include <string.h>

#define HEADS 12

static char *join_words(const struct burrow_value *list)
{
    autobuffer text = {0};
    struct error ignored;

    for (const struct burrow_value *each = burrow_first(list); each; each = burrow_next(each)) {
        const char *word = burrow_text(each);
        (void)buffer_addf(&text, &ignored, "%s%s", text.length ? " " : "", word ? word : "");
    }
    return xstrdup(text.data ? text.data : "");
}

/* pending, running, completed (with 0), failed or cancelled. */
static const char *job_status(const struct burrow_value *job)
{
    const char *state = value_text(job, "state");

    if (strcmp(state, "queued") == 0)
        return "pending";
    if (strcmp(state, "completed") == 0 && burrow_integer(burrow_get(job, "exitCode"), 0) != 0)
        return "failed";
    return strcmp(state, "timed_out") == 0 ? "failed" : state;
}

static void put_item(struct json_writer *json, const struct burrow_value *item,
                     const struct column *columns)
{
    while (columns->head && columns->how != COLUMN_JOB)
        columns++;
    if (burrow_value_kind(item) != BURROW_MAP) {
        say_put(json, NULL, item);
        return;
    }
    json_map_begin(json);
    if (columns->head)
        say_put_text(json, "status", job_status(item));
    say_put_members(json, item);
    json_map_end(json);
}

static char *join_pairs(const struct burrow_value *map)
{
    autobuffer text = {0};
    struct error ignored;

    (void)buffer_add_text(&text, "", &ignored);
    for (const struct burrow_value *each = burrow_first(map); each; each = burrow_next(each))
        (void)buffer_addf(&text, &ignored, "%s%s=%s", text.length ? " " : "", burrow_key(each),
                          burrow_text(each) ? burrow_text(each) : "");
    return xstrdup(text.data ? text.data : "");
}

/* The text of a cell, which the caller frees. */
static char *cell_text(const struct burrow_value *item, const struct column *column)
{
    const struct burrow_value *value = burrow_get(item, column->path);
    char text[SAY_TEXT];

    if (!value)
        return xstrdup("");
    switch (column->how) {
    case COLUMN_AGO:
        return xstrdup(say_ago(burrow_text(value), text));
    case COLUMN_SIZE:
        return xstrdup(say_size(burrow_integer(value, 0), text));
    case COLUMN_DURATION:
        return xstrdup(say_duration(burrow_integer(value, 0), text));
    case COLUMN_WORDS:
        return join_words(value);
    case COLUMN_JOB:
        return xstrdup(job_status(item));
    case COLUMN_DAY:
        return xasprintf("%.10s", burrow_text(value) ? burrow_text(value) : "");
    case COLUMN_PAIRS:
        return join_pairs(value);
    case COLUMN_TRUTH:
        return xstrdup(burrow_truth(value) ? "yes" : "no");
    default:
        return xstrdup(burrow_text(value) ? burrow_text(value) : "");
    }
}

static void init_table(struct table *table, const struct column *columns)
{
    const char *heads[HEADS + 1] = {0};

    for (unsigned i = 0; columns[i].head && i < HEADS; i++)
        heads[i] = columns[i].head;
    table_init(table, heads);
}

static void add_row(struct table *table, const struct burrow_value *item,
                    const struct column *columns)
{
    for (; columns->head; columns++) {
        autofree char *text = cell_text(item, columns);
        if (strlen(text) > 60 && columns->how == COLUMN_WORDS)
            memcpy(text + 57, "...", 4);
        table_add_colour(table, text,
                         columns->how == COLUMN_STATE || columns->how == COLUMN_JOB
                             ? say_state_colour(text)
                             : SAY_PLAIN);
    }
}

int columns_items(struct invocation *invocation, const struct burrow_value *items,
                  const struct column *columns, struct burrow_error *err)
{
    struct table table;

    if (invocation->is_json)
        return say_value(items, err);
    init_table(&table, columns);
    for (const struct burrow_value *each = burrow_first(items); each; each = burrow_next(each))
        add_row(&table, each, columns);
    table_print(&table, stdout);
    table_clear(&table);
    return 0;
}

int columns_print(struct invocation *invocation, const struct burrow_value *const *items,
                  size_t count, const struct column *columns, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;
    struct table table;

    if (invocation->is_json) {
        json_writer_init(&json, &text);
        json_list_begin(&json);
        for (size_t i = 0; i < count; i++)
            put_item(&json, items[i], columns);
        json_list_end(&json);
        return say_written(&json, &text, err);
    }
    init_table(&table, columns);
    for (size_t i = 0; i < count; i++)
        add_row(&table, items[i], columns);
    table_print(&table, stdout);
    table_clear(&table);
    return 0;
}

struct gathering {
    struct invocation *invocation;
    const struct column *columns;
    struct table table;
    struct json_writer json;
    uint64_t skip;
};

static int on_item(void *context, const struct burrow_value *item, struct burrow_error *err)
{
    struct gathering *gathering = context;

    if (gathering->skip) {
        gathering->skip--;
        return 0;
    }
    if (gathering->invocation->is_json)
        say_put(&gathering->json, NULL, item);
    else
        add_row(&gathering->table, item, gathering->columns);
    return 0;
}

int columns_list(struct invocation *invocation, const char *path, uint64_t most,
                 const struct column *columns, struct burrow_error *err)
{
    struct gathering gathering = {.invocation = invocation, .columns = columns};
    autobuffer text = {0};
    uint64_t offset = invocation->offset > 0 ? (uint64_t)invocation->offset : 0;

    gathering.skip = offset;
    init_table(&gathering.table, columns);
    json_writer_init(&gathering.json, &text);
    json_list_begin(&gathering.json);
    int result = burrow_list(invocation->client, path, offset + (most ? most : 50), on_item,
                             &gathering, err);
    json_list_end(&gathering.json);
    if (result == 0 && invocation->is_json)
        result = say_written(&gathering.json, &text, err);
    else if (result == 0)
        table_print(&gathering.table, stdout);
    table_clear(&gathering.table);
    return result;
}

int columns_fields(struct invocation *invocation, const struct burrow_value *value,
                   const struct column *columns, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    if (invocation->is_json) {
        json_writer_init(&json, &text);
        put_item(&json, value, columns);
        return say_written(&json, &text, err);
    }
    for (; columns->head; columns++) {
        autofree char *shown = cell_text(value, columns);
        say_field(columns->head, shown);
    }
    return 0;
}

int columns_success(const char *id, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    json_key(&json, "success");
    json_bool(&json, true);
    say_put_text(&json, "id", id);
    json_map_end(&json);
    return say_written(&json, &text, err);
}

int columns_act(struct invocation *invocation, const char *method, const char *path,
                const char *json, const char *sentence, struct burrow_error *err)
{
    autoanswer answer = NULL;

    if (burrow_ask(invocation->client, method, path, json, &answer, err) < 0)
        return -1;
    if (!invocation->is_json) {
        autofree char *clean = say_clean(sentence);
        say_done("%s", clean);
        say_left_out(burrow_answer_value(answer));
        return 0;
    }
    const struct burrow_value *value = burrow_answer_value(answer);
    return value ? say_value(value, err) : columns_success(invocation_operand(invocation, 0), err);
}
