/* SPDX-License-Identifier: Apache-2.0 */
/* How a run went, in short; see summary.h. */
#include "front/aionis/summary.h"

#include "base/auto.h"
#include "base/mem.h"
#include "data/json.h"
#include "front/aionis/answer.h"

#include <stdlib.h>
#include <string.h>

#define PREVIEW 240 // units
#define STRING_PREVIEW 120
#define LARGE 1024 // units
#define MAX_KEYS 8
#define PRUNED_KEYS 5
#define PRUNED_ITEMS 3
#define PRUNED_DEPTH 2

static void put_squeezed(struct json_writer *json, struct wide_text text, size_t units)
{
    autobuffer squeezed = {0};

    wide_squeeze(text, units, &squeezed);
    json_exact(json, squeezed.data ? squeezed.data : "", squeezed.length);
}

// ---- the result ----

/* By code unit; keys here are ours or ASCII, where bytes say the same. */
static int compare_keys(const void *a, const void *b)
{
    return strcmp((*(const struct data_value *const *)a)->key,
                  (*(const struct data_value *const *)b)->key);
}

/* The caller frees it. */
static const struct data_value **sort_members(const struct data_value *map)
{
    const struct data_value **members = xcalloc(map->count + 1, sizeof *members);
    size_t count = 0;

    for (const struct data_value *member = map->first; member; member = member->next)
        members[count++] = member;
    qsort(members, count, sizeof *members, compare_keys);
    return members;
}

static void prune(struct json_writer *json, const struct data_value *value, unsigned depth);

static void prune_map(struct json_writer *json, const struct data_value *map, unsigned depth)
{
    autofree const struct data_value **members = sort_members(map);

    json_map_begin(json);
    for (size_t i = 0; members[i] && i < PRUNED_KEYS; i++) {
        json_key_exact(json, members[i]->key, members[i]->key_length);
        prune(json, members[i], depth + 1);
    }
    json_map_end(json);
}

static void prune_list(struct json_writer *json, const struct data_value *list, unsigned depth)
{
    size_t count = 0;

    json_list_begin(json);
    for (const struct data_value *item = list->first; item && count < PRUNED_ITEMS;
         item = item->next, count++)
        prune(json, item, depth + 1);
    json_list_end(json);
}

static void put_array_mark(struct json_writer *json, size_t count)
{
    char text[48];

    (void)snprintf(text, sizeof text, "[array(%zu)]", count);
    json_string(json, text);
}

static void prune(struct json_writer *json, const struct data_value *value, unsigned depth)
{
    switch (value->kind) {
    case VALUE_STRING:
        put_squeezed(json, (struct wide_text){value->text, value->length}, STRING_PREVIEW);
        return;
    case VALUE_LIST:
        if (depth >= PRUNED_DEPTH)
            put_array_mark(json, value->count);
        else
            prune_list(json, value, depth);
        return;
    case VALUE_MAP:
        if (depth >= PRUNED_DEPTH)
            json_string(json, "[object]");
        else
            prune_map(json, value, depth);
        return;
    default:
        json_value(json, value);
        return;
    }
}

static void put_preview(struct json_writer *json, const struct data_value *result)
{
    autobuffer text = {0};
    autobuffer clipped = {0};
    struct json_writer pruned;
    struct error ignored = {0};

    json_writer_init(&pruned, &text);
    prune(&pruned, result, 0);
    (void)json_writer_finish(&pruned, &ignored);
    wide_clip((struct wide_text){text.data, text.length}, PREVIEW, &clipped);
    json_exact(json, clipped.data, clipped.length);
}

static void put_keys(struct json_writer *json, const struct data_value *result)
{
    json_list_begin(json);
    if (result) {
        autofree const struct data_value **members = sort_members(result);
        for (size_t i = 0; members[i] && i < MAX_KEYS; i++)
            json_exact(json, members[i]->key, members[i]->key_length);
    }
    json_list_end(json);
}

static void put_result(struct json_writer *json, const struct buffer *text)
{
    autoptr(data_document) document = NULL;
    struct error ignored = {0};

    if (text && json_read("", text->data, text->length, NULL, &document, &ignored) < 0)
        text = NULL;
    const struct data_value *result = text ? document->root : NULL;
    put_text(json, "result_kind", result ? "object" : "none");
    json_key(json, "result_keys");
    put_keys(json, result);
    json_key(json, "result_preview");
    if (result)
        put_preview(json, result);
    else
        json_null(json);
}

// ---- the rest ----

static void put_error(struct json_writer *json, const char *error)
{
    struct wide_text text = {error, error ? strlen(error) : 0};

    json_key(json, "error");
    if (wide_is_blank(text))
        json_null(json);
    else
        put_squeezed(json, text, SIZE_MAX / 2);
}

static void put_signals(struct json_writer *json, const struct summary *summary, size_t output,
                        size_t error)
{
    const struct {
        const char *name;
        bool holds;
    } all[] = {
        {"stderr_present", !wide_is_blank(summary->standard_error)},
        {"nonzero_exit", summary->exit_code != SUMMARY_NO_CODE && summary->exit_code != 0},
        {"execution_error", summary->error && !wide_is_blank((struct wide_text){
                                                  summary->error, strlen(summary->error)})},
        {"output_truncated", summary->is_truncated},
        {"structured_result_object", summary->result != NULL},
        {"stdout_large", output > LARGE},
        {"stderr_large", error > LARGE},
    };

    json_key(json, "signals");
    json_list_begin(json);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        if (all[i].holds)
            json_string(json, all[i].name);
    }
    json_list_end(json);
}

void summary_write(struct json_writer *json, const struct summary *summary)
{
    size_t output = wide_units(summary->standard_output);
    size_t error = wide_units(summary->standard_error);

    json_map_begin(json);
    put_text(json, "summary_version", "tool_result_summary_v1");
    json_key(json, "stdout_preview");
    put_squeezed(json, summary->standard_output, PREVIEW);
    json_key(json, "stderr_preview");
    put_squeezed(json, summary->standard_error, PREVIEW);
    put_integer(json, "stdout_chars", (int64_t)output);
    put_integer(json, "stderr_chars", (int64_t)error);
    put_result(json, summary->result);
    if (summary->exit_code == SUMMARY_NO_CODE)
        put_null(json, "exit_code");
    else
        put_integer(json, "exit_code", summary->exit_code);
    put_error(json, summary->error);
    put_bool(json, "truncated", summary->is_truncated);
    put_signals(json, summary, output, error);
    json_map_end(json);
}
