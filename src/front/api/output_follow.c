/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as records; see output_follow.h. */
#include "front/api/output_follow.h"

#include "base/mem.h"
#include "core/sandbox/sandbox.h"
#include "front/api/api.h"
#include "front/api/execution_answer.h"
#include "web/output_frames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the records of one follower need. */
struct records {
    char *base_url;
    enum event_format format;
    char sandbox_id[ID_TEXT];
    bool tells_start, has_changes, is_alone, ends_with_client;
    uint64_t told[OUTPUT_SIDES]; // of both sides
};

// ---- records ----

struct piece {
    struct answer_bytes text, base64;
    uint64_t offset;
};
static const struct answer_field piece_fields[] = {
    {"text", ANSWER_BYTES, offsetof(struct piece, text)},
    {"textBase64", ANSWER_BASE64, offsetof(struct piece, base64)},
    {"offset", ANSWER_NATURAL, offsetof(struct piece, offset)},
    {0},
};

static void write_record(const struct records *records, const char *event,
                         const struct answer_field *fields, const void *from, struct buffer *out)
{
    autobuffer data = {0};
    struct json_writer json;
    struct error ignored = {0};
    char id[48];

    (void)snprintf(id, sizeof id, "%" PRIu64 ".%" PRIu64, records->told[OUTPUT_STDOUT],
                   records->told[OUTPUT_STDERR]);
    json_writer_init(&json, &data);
    answer_write(&json, fields, from);
    if (json_writer_finish(&json, &ignored) < 0)
        return; // there is nothing in it that could not be written
    struct event_record record = {id, event, data.data, data.length};
    (void)event_format_add(records->format, &record, out, &ignored);
}

static void write_start(void *data, const struct execution_info *info,
                        const struct output_sides *sides, struct buffer *out)
{
    struct records *records = data;
    autoexecutionanswer answer = {0};

    for (unsigned i = 0; i < OUTPUT_SIDES; i++)
        records->told[i] = sides->at[i].offset;
    if (!records->tells_start)
        return;
    execution_answer_init(&answer, info, records->base_url);
    write_record(records, "started", execution_answer_fields, &answer, out);
}

static bool write_end(void *data, const struct waiting_call *waiting,
                      const struct execution_info *info, bool is_quick, struct buffer *out)
{
    struct records *records = data;
    autoexecutionanswer answer = {0};
    struct core *core = waiting->core;

    if (records->has_changes && is_quick)
        return false;
    execution_answer_init(&answer, info, records->base_url);
    if (records->has_changes)
        execution_answer_compare(&answer, core, &waiting->actor, info);
    if (records->has_changes && records->is_alone) // it is no one-shot sandbox, for its files' sake
        sandbox_end_later(core->sandboxes, info->sandbox_id, "one_shot");
    write_record(records, "exit", execution_answer_fields, &answer, out);
    return true;
}

/*
 * As text up to a character whose rest has not come yet; in base64 what is no text, or has zero bytes, which are six characters each as text. How much
 * of it: 0 when that rest is all there is.
 */
static size_t shape(const char *bytes, size_t length, bool is_last, struct piece *piece)
{
    size_t text = output_text_length(bytes, length);
    bool is_text = text != NO_TEXT && (text > 0 || !is_last);
    size_t told = is_text ? text : length;
    bool has_zero = is_text && memchr(bytes, '\0', text);

    *(is_text && !has_zero ? &piece->text : &piece->base64) = (struct answer_bytes){bytes, told};
    return told;
}

static size_t write_piece(void *data, const struct output_piece *from, struct buffer *out)
{
    struct records *records = data;
    struct piece piece = {.offset = from->sides->at[from->side].offset};
    size_t told = shape(from->bytes, from->length, from->is_last, &piece);

    if (told == 0)
        return 0;
    for (unsigned i = 0; i < OUTPUT_SIDES; i++) // the record's id is of behind it
        records->told[i] = from->sides->at[i].offset + (i == from->side ? told : 0);
    write_record(records, output_side_names[from->side], piece_fields, &piece, out);
    return told;
}

static void write_keep_alive(void *data, struct buffer *out)
{
    struct error ignored = {0};

    (void)event_format_add_keep_alive(((struct records *)data)->format, out, &ignored);
}

static void on_gone(void *data, struct core *core)
{
    const struct records *records = data;

    if (records->ends_with_client)
        sandbox_abandon(core->sandboxes, records->sandbox_id);
}

static void records_free(void *data)
{
    struct records *records = data;

    free(records->base_url);
    free(records);
}

static const struct output_frames frames = {
    .start = write_start,
    .piece = write_piece,
    .end = write_end,
    .keep_alive = write_keep_alive,
    .gone = on_gone,
    .free = records_free,
};

int output_follow_start(struct call *call, const struct output_follow_request *request,
                        struct error *err)
{
    struct records *records = xnew(struct records);
    struct output_frames_request wanted = {.info = request->info,
                                           .frames = &frames,
                                           .data = records,
                                           .headers = event_format_headers(request->format),
                                           .is_now = request->is_now,
                                           .keep_alive_ms = EVENT_KEEP_ALIVE_MS};

    records->base_url = xstrdup(call_base_url(call));
    records->format = request->format;
    records->tells_start = request->tells_start;
    records->has_changes = request->has_changes;
    records->is_alone = request->is_alone;
    records->ends_with_client = request->ends_with_client;
    (void)snprintf(records->sandbox_id, sizeof records->sandbox_id, "%s",
                   request->info->sandbox_id);
    for (unsigned i = 0; i < OUTPUT_SIDES; i++) {
        wanted.is_left_out[i] = request->is_left_out[i];
        wanted.offsets[i] = request->offsets[i];
    }
    return output_frames_start(call, &wanted, err);
}

bool output_follow_read_id(const char *text, uint64_t offsets[OUTPUT_SIDES])
{
    for (unsigned i = 0; i < OUTPUT_SIDES; i++) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        errno = 0;
        offsets[i] = strtoull(text, &end, 10);
        if (errno || *end != (i + 1 < OUTPUT_SIDES ? '.' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}
