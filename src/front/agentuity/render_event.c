/* SPDX-License-Identifier: Apache-2.0 */
/* Events as JSON; see render.h. */
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/render.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *type;
    const char *name;
} types[] = {
    {EVENT_CREATE, "create"},
    {EVENT_DESTROY, "destroy"},
    {EVENT_PAUSE, "pause"},
    {EVENT_RESUME, "resume"},
    {EVENT_PROGRESS, "lifecycle:progress"},
    {EVENT_STARTED, "lifecycle:started"},
    {EVENT_COMPLETED, "lifecycle:completed"},
    {EVENT_FAILED, "lifecycle:failed"},
    {EVENT_TERMINATED, "lifecycle:terminated"},
};

static const char *type_name(const char *type)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (strcmp(types[i].type, type) == 0)
            return types[i].name;
    }
    return type;
}

#define FACT_NAME 64

/* "exit_code" → "exitCode" */
static void spell_name(const char *name, size_t length, char out[FACT_NAME])
{
    size_t used = 0;
    bool is_word_start = false;

    for (size_t i = 0; i < length && used < FACT_NAME - 1; i++) {
        if (name[i] == '_') {
            is_word_start = true;
            continue;
        }
        out[used++] = is_word_start ? (char)toupper((unsigned char)name[i]) : name[i];
        is_word_start = false;
    }
    out[used] = '\0';
}

/* Facts that are ids of something. */
static const struct {
    const char *fact;
    const char *name;
    const char *prefix;
} id_facts[] = {
    {"execution", "executionId", EXECUTION_PREFIX},
    {"job", "jobId", JOB_PREFIX},
    {"snapshot", "snapshotId", SNAPSHOT_PREFIX},
    {"checkpoint", "checkpointId", CHECKPOINT_PREFIX},
};

/* How a command ended, in the words for executions. */
static void write_status(struct json_writer *json, const char *state)
{
    for (unsigned i = 0; i < EXECUTION_STATES; i++) {
        if (strcmp(execution_state_name(i), state) == 0)
            member_text(json, "status", render_execution_status(i));
    }
}

static bool is_number(const char *text)
{
    size_t digits = strspn(text + (*text == '-'), "0123456789");

    return digits > 0 && digits <= 15 && text[digits + (*text == '-')] == '\0';
}

static void write_fact(struct json_writer *json, const char *fact)
{
    char name[FACT_NAME];
    const char *end = strchr(fact, '=');

    if (!end)
        return;
    spell_name(fact, (size_t)(end - fact), name);
    for (size_t i = 0; i < ARRAY_SIZE(id_facts); i++) {
        if (strcmp(id_facts[i].fact, name) == 0) {
            member_id(json, id_facts[i].name, id_facts[i].prefix, end + 1);
            return;
        }
    }
    if (strcmp(name, "state") == 0)
        write_status(json, end + 1);
    else if (is_number(end + 1))
        member_integer(json, name, strtoll(end + 1, NULL, 10));
    else
        member_text(json, name, end + 1);
}

void render_event(struct json_writer *json, const struct event_info *info)
{
    json_map_begin(json);
    member_id(json, "eventId", EVENT_PREFIX, info->id);
    member_id(json, "sandboxId", SANDBOX_PREFIX, info->sandbox_id);
    member_text(json, "type", type_name(info->type));
    json_key(json, "event");
    json_map_begin(json);
    member_text(json, "reason", info->reason);
    for (const char *const *fact = info->facts; fact && *fact; fact++)
        write_fact(json, *fact);
    json_map_end(json);
    member_time(json, "createdAt", info->created_at);
    json_map_end(json);
}

/* The facts of an event are as many as there are kinds of it. */
const struct answer_field render_event_fields[] = {
    {"eventId", ANSWER_ID, .is_needed = true},     {"sandboxId", ANSWER_ID, .is_needed = true},
    {"type", ANSWER_TEXT, .is_needed = true},      {"event", ANSWER_JSON, .is_needed = true},
    {"createdAt", ANSWER_TIME, .is_needed = true}, {0},
};
