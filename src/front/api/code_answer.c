/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of code, told; see code_answer.h. */
#include "front/api/code_answer.h"

#include "base/mem.h"
#include "data/json_writer.h"
#include "front/api/api_ids.h"

#include <stdlib.h>
#include <string.h>

static const struct answer_field error_fields[] = {
    {"name", ANSWER_TEXT, .is_needed = true,
     .help = "of the exception; TimeoutError, ContextEnded, OutputLimit and ExitStatus are ours"},
    {"value", ANSWER_TEXT, .is_needed = true, .help = "what it says"},
    {"traceback", ANSWER_TEXT, .is_needed = true, .help = "for people"},
    {0},
};

const struct answer_field code_answer_fields[] = {
    {"context", ANSWER_TEXT, .is_needed = true, .help = "where it ran: to run more there"},
    {"language", ANSWER_TEXT, .is_needed = true},
    {"count", ANSWER_INTEGER, .help = "runs in this context so far; 0: it did not begin"},
    {"stdout", ANSWER_TEXT, .is_needed = true},
    {"stderr", ANSWER_TEXT, .is_needed = true},
    {"results", ANSWER_JSON, .is_needed = true, .is_list = true, .json_type = "object",
     .help = "'data' by media type (text/plain, text/html, image/png as base64 …), "
             "'main' for the value of the last expression, "
             "'chart' and 'table' where it is one"},
    {"error", ANSWER_MAP, .fields = error_fields, .help = "how it failed; none where it did not"},
    {"truncated", ANSWER_BOOL, .is_needed = true,
     .help = "there was more than an answer takes (16 MiB): ask for it as a stream"},
    {0},
};

// ---- one answer ----

#define ERROR_BYTES                                                                                \
    (64u << 10) // of an error, which is told also where there is no room for more output

struct whole {
    struct buffer out, err, results, error, count;
    bool is_truncated;
};

static void whole_free(void *data)
{
    struct whole *whole = data;

    buffer_clear(&whole->out);
    buffer_clear(&whole->err);
    buffer_clear(&whole->results);
    buffer_clear(&whole->error);
    buffer_clear(&whole->count);
    free(whole);
}

static void put_member(struct json_writer *json, const struct data_value *line, const char *name)
{
    const struct data_value *value = value_get(line, name);

    json_key(json, name);
    if (value && value->kind == VALUE_STRING)
        json_value(json, value);
    else
        json_string(json, "");
}

static int keep_error(struct whole *whole, const struct data_value *line, struct error *err)
{
    struct json_writer json;

    if (whole->error.length)
        return 0;
    json_writer_init(&json, &whole->error);
    json_map_begin(&json);
    put_member(&json, line, "name");
    put_member(&json, line, "value");
    put_member(&json, line, "traceback");
    json_map_end(&json);
    return json_writer_finish(&json, err);
}

static int keep_text(struct buffer *to, const struct data_value *line, struct error *err)
{
    const struct data_value *text = value_get(line, "text");

    return text && text->kind == VALUE_STRING ? buffer_add(to, text->text, text->length, err) : 0;
}

static int keep_result(struct buffer *to, const char *text, size_t length, struct error *err)
{
    if (to->length && buffer_add(to, ",", 1, err) < 0)
        return -1;
    return buffer_add(to, text, length, err);
}

static int keep(struct whole *whole, const struct data_value *line, const char *text, size_t length,
                struct error *err)
{
    const char *type = value_get(line, "type")->text;
    const struct data_value *count = value_get(line, "count");

    if (strcmp(type, "stdout") == 0)
        return keep_text(&whole->out, line, err);
    if (strcmp(type, "stderr") == 0)
        return keep_text(&whole->err, line, err);
    if (strcmp(type, "result") == 0)
        return keep_result(&whole->results, text, length, err);
    if (strcmp(type, "error") == 0)
        return keep_error(whole, line, err);
    if (strcmp(type, "started") == 0 && count && count->kind == VALUE_NUMBER &&
        count->length < 16 && strspn(count->text, "0123456789") == count->length &&
        !whole->count.length)
        return buffer_add(&whole->count, count->text, count->length, err);
    return 0;
}

static size_t kept(const struct whole *whole)
{
    return whole->out.length + whole->err.length + whole->results.length + whole->error.length;
}

static int whole_add(void *data, const struct data_value *line, const char *text, size_t length,
                     struct buffer *out, struct error *err)
{
    struct whole *whole = data;

    bool is_short_error =
        length <= ERROR_BYTES && strcmp(value_get(line, "type")->text, "error") == 0;

    (void)out;
    if (kept(whole) + length > CODE_FOLLOW_BYTES / 4 && !is_short_error) {
        whole->is_truncated |= strcmp(value_get(line, "type")->text, "end") != 0;
        return 0;
    }
    return keep(whole, line, text, length, err);
}

static int whole_finish(void *data, const struct context_info *context, struct buffer *out,
                        struct error *err)
{
    struct whole *whole = data;
    struct json_writer json;

    json_writer_init(&json, out);
    json_map_begin(&json);
    json_key(&json, "context");
    json_string_begin(&json);
    json_string_piece(&json, CONTEXT_PREFIX, strlen(CONTEXT_PREFIX));
    json_string_piece(&json, context->id, strlen(context->id));
    json_string_end(&json);
    json_key(&json, "language");
    json_string(&json, code_language_names[context->language]);
    json_key(&json, "count");
    if (whole->count.length)
        json_raw(&json, whole->count.data, whole->count.length);
    else
        json_integer(&json, 0);
    json_key(&json, "stdout");
    json_bytes(&json, whole->out.data ? whole->out.data : "", whole->out.length);
    json_key(&json, "stderr");
    json_bytes(&json, whole->err.data ? whole->err.data : "", whole->err.length);
    json_key(&json, "results");
    json_list_begin(&json);
    if (whole->results.length)
        json_raw(&json, whole->results.data, whole->results.length);
    json_list_end(&json);
    if (whole->error.length) {
        json_key(&json, "error");
        json_raw(&json, whole->error.data, whole->error.length);
    }
    json_key(&json, "truncated");
    json_bool(&json, whole->is_truncated);
    json_map_end(&json);
    return json_writer_finish(&json, err);
}

static const struct code_format whole_format = {
    .is_whole = true, .add = whole_add, .finish = whole_finish, .free = whole_free};

// ---- as it comes ----

static int add_record(enum event_format format, const struct data_value *line, const char *text,
                      size_t length, struct buffer *out, struct error *err)
{
    static const char *const known[] = {"started", "stdout", "stderr", "result",
                                        "error",   "end",    NULL};
    const char *type = value_get(line, "type")->text;

    for (size_t i = 0; known[i]; i++) {
        const struct event_record record = {NULL, known[i], text, length};
        if (strcmp(type, known[i]) == 0)
            return event_format_add(format, &record, out, err);
    }
    return 0; // of a guest that plays the interpreter
}

static int sse_add(void *state, const struct data_value *line, const char *text, size_t length,
                   struct buffer *out, struct error *err)
{
    (void)state;
    return add_record(EVENT_FORMAT_SSE, line, text, length, out, err);
}

static int ndjson_add(void *state, const struct data_value *line, const char *text, size_t length,
                      struct buffer *out, struct error *err)
{
    (void)state;
    return add_record(EVENT_FORMAT_NDJSON, line, text, length, out, err);
}

static int sse_keep(void *state, struct buffer *out, struct error *err)
{
    (void)state;
    return event_format_add_keep_alive(EVENT_FORMAT_SSE, out, err);
}

static int ndjson_keep(void *state, struct buffer *out, struct error *err)
{
    (void)state;
    return event_format_add_keep_alive(EVENT_FORMAT_NDJSON, out, err);
}

static struct code_format sse_format = {.add = sse_add, .keep_alive = sse_keep};
static struct code_format ndjson_format = {.add = ndjson_add, .keep_alive = ndjson_keep};

const struct code_format *code_answer_format(enum event_format format, void **state)
{
    *state = NULL;
    if (format == EVENT_FORMAT_NONE) {
        *state = xnew(struct whole);
        return &whole_format;
    }
    struct code_format *chosen = format == EVENT_FORMAT_SSE ? &sse_format : &ndjson_format;
    chosen->headers = event_format_headers(format);
    return chosen;
}
