/* SPDX-License-Identifier: Apache-2.0 */
/* Records as bundles; see artifact.h. */
#include "front/aionis/artifact.h"

#include "base/clock.h"
#include "base/id.h"
#include "front/aionis/answer.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

/* One object of the bundle: made once, sent and hashed as the same text. */
enum part { PART_ACTION, PART_OUTPUT, PART_RESULT, PART_SUMMARY, PART_METADATA, PART_RUN, PARTS };

struct bundle {
    const struct run_view *view;
    const struct artifact_options *options;
    struct buffer parts[PARTS]; // without data: left out
};

static const char *const names[PARTS] = {
    [PART_ACTION] = "action.json",     [PART_OUTPUT] = "output.json",
    [PART_RESULT] = "result.json",     [PART_SUMMARY] = "summary.json",
    [PART_METADATA] = "metadata.json", [PART_RUN] = "run.json",
};

static void bundle_clear(struct bundle *bundle)
{
    for (size_t i = 0; i < PARTS; i++)
        buffer_clear(&bundle->parts[i]);
}

// ---- the parts ----

static void write_output(struct json_writer *json, const struct run_view *view, int64_t tail_bytes)
{
    json_map_begin(json);
    put_integer(json, "tail_bytes", tail_bytes);
    run_write_tails(json, view, (size_t)tail_bytes);
    put_bool(json, "truncated", view->is_truncated);
    json_map_end(json);
}

/* From "project_id" to "timeout_ms"; `actor` adds whose it is. */
static void put_about(struct json_writer *json, const struct run_view *view,
                      const struct actor *actor)
{
    put_text(json, "project_id", view->stored.project_id);
    if (actor) {
        put_text(json, "tenant_id", actor->tenant);
        put_text(json, "scope", actor->scope);
    }
    put_text(json, "planner_run_id", view->stored.planner_run_id);
    put_text(json, "decision_id", view->stored.decision_id);
    put_text(json, "mode", view->stored.mode);
    put_text(json, "status", view->status);
    put_integer(json, "timeout_ms", view->stored.timeout_ms);
}

static void put_part(struct json_writer *json, const char *name, const struct buffer *part)
{
    if (!part->data)
        return;
    json_key(json, name);
    json_raw(json, part->data, part->length);
}

static void write_run(struct json_writer *json, const struct bundle *bundle)
{
    const struct run_view *view = bundle->view;

    json_map_begin(json);
    put_id(json, "run_id", view->info->id);
    put_id(json, "session_id", view->info->sandbox_id);
    put_about(json, view, bundle->options->actor);
    run_write_exit_code(json, view);
    put_text(json, "error", view->error);
    put_part(json, "result_summary", &bundle->parts[PART_SUMMARY]);
    run_write_times(json, view);
    json_map_end(json);
}

static void write_part(struct bundle *bundle, enum part part)
{
    const struct run_view *view = bundle->view;
    const char *metadata = view->info->metadata ? view->info->metadata : "{}";
    struct json_writer json;
    struct error ignored = {0};

    json_writer_init(&json, &bundle->parts[part]);
    if (part == PART_ACTION)
        run_write_action(&json, view);
    else if (part == PART_OUTPUT)
        write_output(&json, view, bundle->options->tail_bytes);
    else if (part == PART_RESULT)
        json_raw(&json, view->result.data, view->result.length);
    else if (part == PART_SUMMARY)
        run_write_summary(&json, view);
    else if (part == PART_METADATA)
        json_raw(&json, metadata, strlen(metadata));
    else
        write_run(&json, bundle);
    (void)json_writer_finish(&json, &ignored);
}

static void make_parts(struct bundle *bundle)
{
    const struct artifact_options *options = bundle->options;
    const bool wanted[PARTS] = {
        [PART_ACTION] = options->has_action,     [PART_OUTPUT] = options->has_output,
        [PART_RESULT] = options->has_result,     [PART_SUMMARY] = true,
        [PART_METADATA] = options->has_metadata, [PART_RUN] = true,
    };

    for (size_t i = 0; i < PARTS; i++) {
        if (wanted[i])
            write_part(bundle, (enum part)i);
    }
}

// ---- the bundle ----

/* encodeURIComponent */
static void add_encoded(struct buffer *out, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'()";
    struct error ignored = {0};

    for (; *text; text++) {
        if (strchr(plain, *text))
            (void)buffer_add(out, text, 1, &ignored);
        else
            (void)buffer_addf(out, &ignored, "%%%02X", (unsigned char)*text);
    }
}

static void add_prefix(struct buffer *out, const struct bundle *bundle)
{
    char uuid[ID_UUID_TEXT];
    struct error ignored = {0};

    (void)buffer_add_text(out, "sandbox/", &ignored);
    add_encoded(out, bundle->options->actor->tenant);
    (void)buffer_add_text(out, "/", &ignored);
    add_encoded(out, bundle->options->actor->scope);
    (void)buffer_addf(out, &ignored, "/%s", id_to_uuid(bundle->view->info->id, uuid));
}

static void put_hash(struct json_writer *json, const struct buffer *text)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    char hex[2 * EVP_MAX_MD_SIZE + 1] = "";
    unsigned length = 0;

    (void)EVP_Digest(text->data, text->length, hash, &length, EVP_sha256(), NULL);
    for (unsigned i = 0; i < length; i++)
        (void)snprintf(hex + (size_t)2 * i, 3, "%02x", hash[i]);
    put_text(json, "sha256", hex);
}

/* As it was configured, trimmed; NULL text: it was not. */
static struct wide_text base_of(const struct bundle *bundle)
{
    const char *base = bundle->view->settings->object_store;

    return wide_trim((struct wide_text){base, base ? strlen(base) : 0});
}

static void put_base(struct json_writer *json, struct wide_text base)
{
    json_key(json, "object_store_base_uri");
    if (base.text)
        json_exact(json, base.text, base.length);
    else
        json_null(json);
}

static void put_uri(struct json_writer *json, struct wide_text base, const struct buffer *prefix,
                    const char *name)
{
    autobuffer uri = {0};
    struct error ignored = {0};

    while (base.length > 0 && base.text[base.length - 1] == '/')
        base.length--;
    if (base.text)
        (void)buffer_addf(&uri, &ignored, "%.*s/%s/%s", (int)base.length, base.text, prefix->data,
                          name);
    put_text(json, "uri", uri.data);
}

static void put_object(struct json_writer *json, const struct bundle *bundle, enum part part,
                       const struct buffer *prefix)
{
    const struct buffer *text = &bundle->parts[part];

    json_map_begin(json);
    put_text(json, "name", names[part]);
    put_text(json, "media_type", "application/json");
    put_integer(json, "bytes", (int64_t)text->length);
    put_hash(json, text);
    put_uri(json, base_of(bundle), prefix, names[part]);
    if (bundle->options->is_inline)
        put_part(json, "inline", text);
    json_map_end(json);
}

static void put_bundle(struct json_writer *json, const struct bundle *bundle)
{
    autobuffer prefix = {0};

    add_prefix(&prefix, bundle);
    json_key(json, "bundle");
    json_map_begin(json);
    put_text(json, "manifest_version", "sandbox_artifact_bundle_manifest_v1");
    put_base(json, base_of(bundle));
    put_text(json, "object_prefix", prefix.data);
    put_time(json, "generated_at", (int64_t)clock_wall_ms());
    json_key(json, "objects");
    json_list_begin(json);
    for (size_t i = 0; i < PARTS; i++) {
        if (bundle->parts[i].data)
            put_object(json, bundle, (enum part)i, &prefix);
    }
    json_list_end(json);
    json_map_end(json);
}

static void put_address(struct json_writer *json, const struct bundle *bundle)
{
    const struct actor *actor = bundle->options->actor;
    autobuffer uri = {0};
    char uuid[ID_UUID_TEXT];
    struct error ignored = {0};

    (void)buffer_addf(&uri, &ignored, "aionis://%s/%s/sandbox_run/%s", actor->tenant, actor->scope,
                      id_to_uuid(bundle->view->info->id, uuid));
    put_text(json, "uri", uri.data);
}

void artifact_write(struct json_writer *json, const struct run_view *view,
                    const struct artifact_options *options)
{
    __attribute__((cleanup(bundle_clear))) struct bundle bundle = {.view = view,
                                                                   .options = options};

    make_parts(&bundle);
    json_map_begin(json);
    put_text(json, "artifact_version", "sandbox_run_artifact_v2");
    put_id(json, "run_id", view->info->id);
    put_id(json, "session_id", view->info->sandbox_id);
    put_address(json, &bundle);
    put_about(json, view, NULL);
    put_part(json, "action", &bundle.parts[PART_ACTION]);
    put_part(json, "output", &bundle.parts[PART_OUTPUT]);
    put_part(json, "summary", &bundle.parts[PART_SUMMARY]);
    run_write_exit_code(json, view);
    put_text(json, "error", view->error);
    put_part(json, "result", &bundle.parts[PART_RESULT]);
    put_part(json, "metadata", &bundle.parts[PART_METADATA]);
    put_bundle(json, &bundle);
    run_write_times(json, view);
    json_map_end(json);
}
