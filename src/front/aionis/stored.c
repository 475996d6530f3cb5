/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept to be said back; see stored.h. */
#include "front/aionis/stored.h"

#include "base/strings.h"
#include "data/json.h"
#include "front/aionis/answer.h"
#include "front/aionis/canonical.h"

#include <stdlib.h>
#include <string.h>

const char *stored_session(struct call *call, const char *profile)
{
    return call_print(call, "{\"profile\":\"%s\"}", profile); // one of two words
}

int stored_metadata(struct call *call, const struct data_value *metadata, const char **out,
                    struct error *err)
{
    autobuffer text = {0};

    *out = "{}";
    if (!metadata)
        return 0;
    if (canonical_write(metadata, &text, err) < 0)
        return -1;
    char *copy = call_alloc(call, text.length + 1);
    memcpy(copy, text.data, text.length);
    *out = copy;
    return 0;
}

const char *stored_run(struct call *call, const struct stored_run *run)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    put_text(&json, "mode", run->mode);
    put_integer(&json, "timeout_ms", run->timeout_ms);
    put_text(&json, "project_id", run->project_id);
    put_text(&json, "planner_run_id", run->planner_run_id);
    put_text(&json, "decision_id", run->decision_id);
    json_key(&json, "argv");
    json_raw(&json, run->argv, strlen(run->argv));
    json_map_end(&json);
    return keep_json(call, &json, &text);
}

/* In the document's memory. */
static const char *print(struct data_document *memory, const struct buffer *text)
{
    char *copy = value_alloc(memory, text->length + 1);

    memcpy(copy, text->data, text->length);
    return copy;
}

static const char *print_value(struct data_document *memory, const struct data_value *value)
{
    autobuffer text = {0};
    struct json_writer json;
    struct error ignored = {0};

    json_writer_init(&json, &text);
    json_value(&json, value);
    return json_writer_finish(&json, &ignored) < 0 ? "[]" : print(memory, &text);
}

/* The command as it was started. */
static const char *print_command(struct data_document *memory, const char *const *argv)
{
    autobuffer text = {0};
    struct json_writer json;
    struct error ignored = {0};

    json_writer_init(&json, &text);
    json_list_begin(&json);
    for (; argv && *argv; argv++)
        json_string(&json, *argv);
    json_list_end(&json);
    return json_writer_finish(&json, &ignored) < 0 ? "[]" : print(memory, &text);
}

static const char *text_of(const struct data_value *map, const char *name)
{
    const struct data_value *value = value_get(map, name);

    return value && value->kind == VALUE_STRING ? value->text : NULL;
}

void stored_run_read(const struct execution_info *info, struct stored_run *out)
{
    const char *asked = info->asked ? info->asked : "{}";
    struct error ignored = {0};

    *out = (struct stored_run){0};
    if (json_read("", asked, strlen(asked), NULL, &out->memory, &ignored) < 0)
        out->memory = data_document_new("");
    const struct data_value *map = out->memory->root;
    const struct data_value *argv = value_get(map, "argv");
    const struct data_value *timeout = value_get(map, "timeout_ms");
    out->mode = text_of(map, "mode");
    if (!out->mode)
        out->mode = "async";
    out->timeout_ms = timeout ? strtoll(timeout->text, NULL, 10) : info->command.timeout_ms;
    out->project_id = text_of(map, "project_id");
    out->planner_run_id = text_of(map, "planner_run_id");
    out->decision_id = text_of(map, "decision_id");
    out->argv =
        argv ? print_value(out->memory, argv) : print_command(out->memory, info->command.argv);
}

void stored_run_clear(struct stored_run *run)
{
    data_document_free(run->memory);
    *run = (struct stored_run){0};
}
