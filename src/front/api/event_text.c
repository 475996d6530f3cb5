/* SPDX-License-Identifier: Apache-2.0 */
/* Events as JSON; see event_text.h. */
#include "front/api/event_text.h"

#include "base/auto.h"
#include "front/api/api_ids.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FACT_NAME 64
#define EVENT_MAXIMUM (64u << 10) // bytes; one takes a few hundred

/* Facts that are ids of something. */
static const struct {
    const char *fact, *name, *prefix;
} id_facts[] = {
    {"execution", "executionId", EXECUTION_PREFIX},    {"job", "executionId", EXECUTION_PREFIX},
    {"terminal", "executionId", EXECUTION_PREFIX},     {"snapshot", "snapshotId", SNAPSHOT_PREFIX},
    {"checkpoint", "checkpointId", CHECKPOINT_PREFIX}, {"key", "keyId", KEY_PREFIX},
    {"webhook", "webhookId", WEBHOOK_PREFIX},          {"sandbox", "sandboxId", SANDBOX_PREFIX},
};

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

static bool is_number(const char *text)
{
    size_t sign = *text == '-';
    size_t digits = strspn(text + sign, "0123456789");

    return digits > 0 && digits <= 15 && text[digits + sign] == '\0';
}

static bool write_id(struct json_writer *json, const char *name, const char *id)
{
    char text[FACT_NAME + 160];

    for (size_t i = 0; i < ARRAY_SIZE(id_facts); i++) {
        if (strcmp(id_facts[i].fact, name) != 0)
            continue;
        (void)snprintf(text, sizeof text, "%s%s", id_facts[i].prefix, id);
        json_key(json, id_facts[i].name);
        json_string(json, text);
        return true;
    }
    return false;
}

static void write_fact(struct json_writer *json, const char *fact)
{
    char name[FACT_NAME];
    const char *end = strchr(fact, '=');

    if (!end)
        return;
    spell_name(fact, (size_t)(end - fact), name);
    if (write_id(json, name, end + 1))
        return;
    json_key(json, name);
    if (is_number(end + 1))
        json_integer(json, strtoll(end + 1, NULL, 10));
    else
        json_string(json, end + 1);
}

static void write_facts(struct json_writer *json, const void *member)
{
    const char *const *facts = *(const char *const *const *)member;

    json_map_begin(json);
    for (; facts && *facts; facts++)
        write_fact(json, *facts);
    json_map_end(json);
}

#define AT(member) offsetof(struct event_answer, member)
const struct answer_field event_answer_fields[] = {
    {"number", ANSWER_INTEGER, AT(number), .is_needed = true,
     .help = "among all events of the server, in the order in which they happened, with gaps: the "
             "cursor"},
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = EVENT_PREFIX},
    {"kind", ANSWER_TEXT, AT(kind), .is_needed = true,
     .help = "what happened: sandbox.created, execution.ended …"},
    {"sandboxId", ANSWER_ID, AT(sandbox_id), .prefix = SANDBOX_PREFIX,
     .help = "what it happened to, where that is a sandbox or something in one"},
    {"reason", ANSWER_TEXT, AT(reason), .help = "a word for why"},
    {"data", ANSWER_CUSTOM, AT(facts), .is_needed = true, .write = write_facts,
     .help = "facts, by kind: executionId, exitCode, state, snapshotId …"},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {0},
};
#undef AT

void event_answer_fill(struct event_answer *out, const struct event_info *info)
{
    *out = (struct event_answer){
        .info = info,
        .number = info->serial,
        .id = info->id,
        .sandbox_id = info->sandbox_id,
        .reason = info->reason,
        .facts = info->facts,
        .created_at = info->created_at,
    };
    out->kind = event_kind(info, out->spare);
}

int event_text_json(const struct event_info *info, struct buffer *out, struct error *err)
{
    struct json_writer json;
    struct event_answer answer;

    event_answer_fill(&answer, info);
    json_writer_init(&json, out);
    answer_write(&json, event_answer_fields, &answer);
    return json_writer_finish(&json, err);
}

int event_text_record(enum event_format format, const struct event_info *info, struct buffer *out,
                      struct error *err)
{
    autobuffer text = {.maximum = EVENT_MAXIMUM};
    char number[24], spare[EVENT_KIND];

    if (event_text_json(info, &text, err) < 0)
        return -1;
    (void)snprintf(number, sizeof number, "%" PRId64, info->serial);
    const struct event_record record = {
        .id = number,
        .event = event_kind(info, spare),
        .data = text.data,
        .length = text.length,
    };
    return event_format_add(format, &record, out, err);
}

int event_text_place(enum event_format format, int64_t number, struct buffer *out,
                     struct error *err)
{
    return buffer_addf(out, err,
                       format == EVENT_FORMAT_SSE ? ": keep-alive\nid: %" PRId64 "\n\n"
                                                  : "{\"id\":\"%" PRId64
                                                    "\",\"event\":\"keepAlive\"}\n",
                       number);
}
