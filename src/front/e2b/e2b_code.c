/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a run as E2B's clients read them; see e2b_code.h. */
#include "front/e2b/e2b_code.h"

#include "base/clock.h"
#include "base/mem.h"
#include "data/json_writer.h"
#include "net/request.h"

#include <string.h>

static const struct http_header headers[] = {{"Content-Type", "application/json"},
                                             {"Cache-Control", "no-cache"},
                                             {"X-Accel-Buffering", "no"},
                                             {0}};

static void put_text(struct json_writer *json, const char *name, const struct data_value *line,
                     const char *from)
{
    const struct data_value *value = value_get(line, from);

    json_key(json, name);
    if (value && value->kind == VALUE_STRING)
        json_value(json, value);
    else
        json_string(json, "");
}

static void put_started(struct json_writer *json, const struct data_value *line)
{
    const struct data_value *count = value_get(line, "count");

    json_key(json, "execution_count");
    if (count && count->kind == VALUE_NUMBER)
        json_value(json, count);
    else
        json_integer(json, 0);
}

static void put_output(struct json_writer *json, const struct data_value *line)
{
    put_text(json, "text", line, "text");
    json_key(json, "timestamp");
    json_integer(json, (int64_t)clock_wall_ms() * 1000000);
}

static void put_error(struct json_writer *json, const struct data_value *line)
{
    put_text(json, "name", line, "name");
    put_text(json, "value", line, "value");
    put_text(json, "traceback", line, "traceback");
}

/* Media types and what they are called there. */
static const struct {
    const char *type, *name;
} media[] = {
    {"text/plain", "text"},        {"text/html", "html"},
    {"text/markdown", "markdown"}, {"image/svg+xml", "svg"},
    {"image/png", "png"},          {"image/jpeg", "jpeg"},
    {"application/pdf", "pdf"},    {"text/latex", "latex"},
    {"application/json", "json"},  {"application/javascript", "javascript"},
};

#define CELLS ((size_t)4 << 20) // of a frame that is told by columns

/* One cell of each row: the next where the row has one. */
static void put_column(struct json_writer *json, const struct data_value **cells, size_t count)
{
    json_list_begin(json);
    for (size_t i = 0; i < count; i++) {
        if (cells[i])
            json_value(json, cells[i]);
        else
            json_null(json);
    }
    json_list_end(json);
}

static void go_on(const struct data_value **cells, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cells[i] = cells[i] ? cells[i]->next : NULL;
}

/* A frame, by columns. */
static void put_table(struct json_writer *json, const struct data_value *table)
{
    const struct data_value *columns = value_get(table, "columns");
    const struct data_value *rows = value_get(table, "data");
    size_t index = 0;

    if (!columns || columns->kind != VALUE_LIST || !rows || rows->kind != VALUE_LIST ||
        (columns->count && rows->count > CELLS / columns->count))
        return;
    autofree const struct data_value **cells = xcalloc(rows->count + 1, sizeof *cells);
    for (const struct data_value *row = rows->first; row; row = row->next)
        cells[index++] = row->kind == VALUE_LIST ? row->first : NULL;
    json_key(json, "data");
    json_map_begin(json);
    for (const struct data_value *column = columns->first; column; column = column->next) {
        if (column->kind == VALUE_STRING || column->kind == VALUE_NUMBER) {
            json_key_exact(json, column->text, column->length);
            put_column(json, cells, index);
        }
        go_on(cells, index);
    }
    json_map_end(json);
}

static void put_result(struct json_writer *json, const struct data_value *line)
{
    const struct data_value *is_main = value_get(line, "main");
    const struct data_value *data = value_get(line, "data");
    const struct data_value *chart = value_get(line, "chart");
    const struct data_value *table = value_get(line, "table");

    json_key(json, "is_main_result");
    json_bool(json, is_main && is_main->kind == VALUE_BOOL && is_main->truth);
    for (size_t i = 0; data && data->kind == VALUE_MAP && i < sizeof media / sizeof media[0]; i++) {
        const struct data_value *one = value_get(data, media[i].type);
        if (one) {
            json_key(json, media[i].name);
            json_value(json, one);
        }
    }
    if (table && table->kind == VALUE_MAP)
        put_table(json, table);
    if (chart && chart->kind == VALUE_MAP) {
        json_key(json, "chart");
        json_value(json, chart);
    }
}

static void put_nothing(struct json_writer *json, const struct data_value *line)
{
    (void)json;
    (void)line;
}

static const struct {
    const char *type, *name;
    void (*put)(struct json_writer *json, const struct data_value *line);
} kinds[] = {
    {"started", "number_of_executions", put_started},
    {"stdout", "stdout", put_output},
    {"stderr", "stderr", put_output},
    {"result", "result", put_result},
    {"error", "error", put_error},
    {"end", "end_of_execution", put_nothing},
};

static int add(void *state, const struct data_value *line, const char *text, size_t length,
               struct buffer *out, struct error *err)
{
    const char *type = value_get(line, "type")->text;
    struct json_writer json;

    (void)state;
    (void)text;
    (void)length;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(type, kinds[i].type) != 0)
            continue;
        json_writer_init(&json, out);
        json_map_begin(&json);
        json_key(&json, "type");
        json_string(&json, kinds[i].name);
        kinds[i].put(&json, line);
        json_map_end(&json);
        if (json_writer_finish(&json, err) < 0)
            return -1;
        return buffer_add(out, "\n", 1, err);
    }
    return 0; // of a guest that plays the interpreter
}

static int keep_alive(void *state, struct buffer *out, struct error *err)
{
    (void)state;
    return buffer_add_text(out, "{\"type\":\"keepalive\"}\n", err);
}

const struct code_format e2b_code_format = {
    .headers = headers, .add = add, .keep_alive = keep_alive};
