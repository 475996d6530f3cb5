/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots that are built from files: announced, uploaded as an archive, finished. */
#include "base/mem.h"
#include "core/runtime/runtime.h"
#include "core/snapshot/snapshot.h"
#include "front/agentuity/body_parts.h"
#include "front/agentuity/snapshot_impl.h"
#include "web/collect.h"

#include <string.h>

struct begin_body {
    const char *runtime, *name, *tag, *description, *message, *content_hash;
    bool is_forced, is_encrypted, is_public;
    const struct data_value *git;
};
static const struct field begin_fields[] = {
    {"runtime", FIELD_TEXT, offsetof(struct begin_body, runtime), .is_needed = true,
     .help = "name or id of what lies below"},
    {"name", FIELD_TEXT, offsetof(struct begin_body, name), .is_nullable = true, .maximum = 128},
    {"tag", FIELD_TEXT, offsetof(struct begin_body, tag), .is_nullable = true, .maximum = 128},
    {"description", FIELD_TEXT, offsetof(struct begin_body, description), .is_nullable = true,
     .maximum = 4096},
    {"message", FIELD_TEXT, offsetof(struct begin_body, message), .is_nullable = true,
     .maximum = 4096},
    {"contentHash", FIELD_TEXT, offsetof(struct begin_body, content_hash), .is_nullable = true,
     .maximum = 256, .help = "one of the same name with the same hash is not built again"},
    {"force", FIELD_BOOL, offsetof(struct begin_body, is_forced), .is_nullable = true,
     .help = "built all the same"},
    {"encrypt", FIELD_BOOL, offsetof(struct begin_body, is_encrypted), .is_nullable = true,
     .help = "archives are taken as they are"},
    {"public", FIELD_BOOL, offsetof(struct begin_body, is_public), .is_nullable = true},
    {"git", FIELD_OBJECT, offsetof(struct begin_body, git), .is_nullable = true,
     .help = "kept and given back"},
    {0},
};

#define KEPT_MAX                                                                                   \
    ((size_t)64 << 10) // of what is only kept to be given back: a list gives back a hundred

/* Ends what was written and keeps it with the call. */
static int keep_text(struct call *call, const char *name, struct json_writer *json,
                     const char **out, struct error *err)
{
    if (json_writer_finish(json, err) < 0)
        return error_set(err, ERROR_INVALID, "%s: may be at most 64 KiB", name);
    *out = call_print(call, "%s", json->to->data);
    return 0;
}

static int keep_value(struct call *call, const char *name, const struct data_value *value,
                      const char **out, struct error *err)
{
    autobuffer text = {.maximum = KEPT_MAX};
    struct json_writer json;

    if (!value)
        return 0;
    json_writer_init(&json, &text);
    json_value(&json, value);
    return keep_text(call, name, &json, out, err);
}

static int keep_pairs(struct call *call, const char *name, const struct field_list *pairs,
                      const char **out, struct error *err)
{
    const struct text_pair *pair = pairs->items;
    autobuffer text = {.maximum = KEPT_MAX};
    struct json_writer json;

    if (!pairs->count)
        return 0;
    json_writer_init(&json, &text);
    json_map_begin(&json);
    for (size_t i = 0; i < pairs->count; i++)
        member_text(&json, pair[i].name, pair[i].value);
    json_map_end(&json);
    return keep_text(call, name, &json, out, err);
}

static int read_runtime(struct call *call, const char *text, const char **out, struct error *err)
{
    const size_t length = strlen(RUNTIME_PREFIX);

    *out = text;
    if (strncmp(text, RUNTIME_PREFIX, length) != 0)
        return 0;
    char *name = call_alloc(call, RUNTIME_REFERENCE_TEXT);
    *out = name;
    return runtime_resolve(call->core->runtimes, text + length, name, err);
}

struct begun {
    const char *id, *upload_url;
};
static const struct answer_field begun_fields[] = {
    {"snapshotId", ANSWER_ID, offsetof(struct begun, id), .is_needed = true,
     .prefix = SNAPSHOT_PREFIX},
    {"uploadUrl", ANSWER_TEXT, offsetof(struct begun, upload_url),
     .help = "where its files are to be put"},
    {0},
};
struct unchanged {
    bool is_unchanged;
    const char *id, *name, *tag;
};
static const struct answer_field unchanged_fields[] = {
    {"unchanged", ANSWER_TRUTH, .is_needed = true},
    {"existingId", ANSWER_ID, offsetof(struct unchanged, id), .is_needed = true,
     .prefix = SNAPSHOT_PREFIX},
    {"existingName", ANSWER_TEXT, offsetof(struct unchanged, name)},
    {"existingTag", ANSWER_TEXT, offsetof(struct unchanged, tag)},
    {0},
};
static const struct route_answer answers_build[] = {
    {200, unchanged_fields, &answers_data}, {201, begun_fields, &answers_data}, {0}};

/* Who holds the URL may upload: it goes out once, and only for a build that nobody else has to see. */
static int answer_begun(struct call *call, const struct snapshot_info *info)
{
    struct begun begun = {info->id, NULL};

    if (!info->is_public && info->upload_secret)
        begun.upload_url = call_print(call, "%s/sandbox/snapshots/" SNAPSHOT_PREFIX "%s/upload/%s",
                                      call_base_url(call), info->id, info->upload_secret);
    return envelope_answer(call, 201, begun_fields, &begun);
}

static int fill_build(struct call *call, const struct begin_body *body, struct snapshot_build *out,
                      struct error *err)
{
    *out = (struct snapshot_build){
        .name = body->name,
        .tag = body->tag,
        .description = body->description,
        .message = body->message,
        .content_hash = body->content_hash,
        .is_forced = body->is_forced,
        .is_public = body->is_public,
    };
    if (read_runtime(call, body->runtime, &out->runtime, err) < 0)
        return -1;
    return keep_value(call, "git", body->git, &out->git, err);
}

/* POST /sandbox/snapshots/build */
static int begin_build(struct call *call, struct error *err)
{
    struct begin_body body = {0};
    struct snapshot_build build;
    autoclear(snapshot_info) info = {0};
    bool is_unchanged = false;

    if (fields_read(call->body, begin_fields, &body, err) < 0 ||
        fill_build(call, &body, &build, err) < 0 ||
        snapshot_build_begin(call->core->snapshots, &call->actor, &build, &is_unchanged, &info,
                             err) < 0)
        return -1;
    struct unchanged unchanged = {true, info.id, info.name, info.tag};
    return is_unchanged ? envelope_answer(call, 200, unchanged_fields, &unchanged)
                        : answer_begun(call, &info);
}

struct upload {
    struct waiting_call waiting;
    char id[ID_TEXT];
    char *secret; // NULL: by key
};

static void upload_free(struct upload *upload)
{
    if (!upload)
        return;
    waiting_call_clear(&upload->waiting);
    free(upload->secret);
    free(upload);
}
DEFINE_AUTOPTR(upload)

struct uploaded {
    bool has_succeeded, is_scanned;
};
static const struct answer_field upload_fields[] = {
    {"success", ANSWER_BOOL, offsetof(struct uploaded, has_succeeded)},
    {"scanned", ANSWER_BOOL, offsetof(struct uploaded, is_scanned),
     .help = "always false: nothing is looked for"},
    {0},
};
static const struct route_answer answers_upload[] = {{200, upload_fields, &answers_data}, {0}};

static void answer_upload(struct response *response)
{
    struct uploaded uploaded = {.has_succeeded = true};
    autoreply reply = {0};

    envelope_data(&reply);
    answer_write(&reply.json, upload_fields, &uploaded);
    (void)envelope_send(&reply, response, 200);
}

static void on_collected_archive(void *data, struct collected *body, const struct error *failure)
{
    autoptr(upload) upload = data;
    struct waiting_call *waiting = &upload->waiting;
    struct error err = {0};

    if (!failure &&
        snapshot_build_upload(waiting->core->snapshots, upload->secret ? NULL : &waiting->actor,
                              upload->id, upload->secret, body->fd, &err) < 0)
        failure = &err;
    if (failure)
        waiting_call_fail(waiting, failure);
    else
        answer_upload(waiting->response);
}

/* Nothing is taken from whoever may not upload. */
static int take_upload(struct call *call, const char *secret, struct error *err)
{
    const char *id;

    if (snapshot_id_of(call, &id, err) < 0 ||
        snapshot_build_check(call->core->snapshots, secret ? NULL : &call->actor, id, secret, err) <
            0)
        return -1;
    struct upload *upload = xnew(struct upload);
    waiting_call_init(&upload->waiting, call);
    (void)snprintf(upload->id, sizeof upload->id, "%s", id);
    upload->secret = secret ? xstrdup(secret) : NULL;
    collect_start(&upload->waiting, (uint64_t)call->core->settings.file_limit_bytes,
                  on_collected_archive, upload);
    return 0;
}

/* PUT /sandbox/snapshots/{snapshotId}/upload */
static int upload_by_key(struct call *call, struct error *err)
{
    return take_upload(call, NULL, err);
}

/* PUT /sandbox/snapshots/{snapshotId}/upload/{secret} */
static int upload_by_secret(struct call *call, struct error *err)
{
    return take_upload(call, call->parameters[1], err);
}

struct finish_body {
    int64_t size_bytes, file_count;
    const struct data_value *files;
    const char **dependencies, **packages;
    struct field_list env;
    struct field_list metadata;
};
static const struct field finish_fields[] = {
    {"sizeBytes", FIELD_INTEGER, offsetof(struct finish_body, size_bytes), .is_needed = true,
     .minimum = 0, .maximum = INT64_MAX, .help = "of the files, as the client counts"},
    {"fileCount", FIELD_INTEGER, offsetof(struct finish_body, file_count), .is_needed = true,
     .minimum = 0, .maximum = INT64_MAX},
    {"files", FIELD_VALUE, offsetof(struct finish_body, files), .is_needed = true,
     .help = "what the client packed; the archive counts"},
    {"dependencies", FIELD_TEXTS, offsetof(struct finish_body, dependencies), .is_nullable = true,
     .help = "apt packages that are installed first"},
    {"packages", FIELD_TEXTS, offsetof(struct finish_body, packages), .is_nullable = true,
     .help = "packages that npm or bun installs globally first"},
    {"env", FIELD_TEXT_MAP, offsetof(struct finish_body, env),
     .help = "of all commands in sandboxes made from it"},
    {"metadata", FIELD_TEXT_MAP, offsetof(struct finish_body, metadata),
     .help = "kept and given back"},
    {0},
};

static int check_files(const struct finish_body *body, struct error *err)
{
    if (body->files->kind != VALUE_LIST)
        return error_set(err, ERROR_INVALID, "files: must be a list, not %s",
                         value_kind_name(body->files->kind));
    return 0;
}

/* POST /sandbox/snapshots/{snapshotId}/finalize */
static int finish_build(struct call *call, struct error *err)
{
    struct finish_body body = {0};
    struct snapshot_content content = {.directory = AGENTUITY_HOME};
    autoclear(snapshot_info) info = {0};
    const char *id;

    if (snapshot_id_of(call, &id, err) < 0 ||
        fields_read(call->body, finish_fields, &body, err) < 0 || check_files(&body, err) < 0 ||
        body_env(call, &body.env, &content.env, err) < 0 ||
        keep_pairs(call, "metadata", &body.metadata, &content.metadata, err) < 0)
        return -1;
    content.dependencies = (const char *const *)body.dependencies;
    content.packages = (const char *const *)body.packages;
    if (snapshot_build_finish(call->core->snapshots, &call->actor, id, &content, &info, err) < 0)
        return -1;
    return snapshot_answer(call, 200, &info);
}

const struct route agentuity_snapshot_build_routes[] = {
    {"POST", "/sandbox/snapshots/build", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, begin_build,
     "announces a snapshot that is made of files", .fields = begin_fields, .answers = answers_build,
     .needs = SCOPE_MANAGE},
    {"PUT", "/sandbox/snapshots/{snapshotId}/upload", ROUTE_QUICK, ACCESS_KEY, BODY_STREAM,
     upload_by_key, "the files of an announced snapshot, as a tar.gz", .answers = answers_upload,
     .needs = SCOPE_MANAGE},
    {"PUT", "/sandbox/snapshots/{snapshotId}/upload/{secret}", ROUTE_QUICK, ACCESS_OPEN,
     BODY_STREAM, upload_by_secret, "the same by whoever was given this URL",
     .answers = answers_upload},
    {"POST", "/sandbox/snapshots/{snapshotId}/finalize", ROUTE_SLOW, ACCESS_KEY, BODY_JSON,
     finish_build, "makes the snapshot of what was uploaded", .fields = finish_fields,
     .answers = answers_snapshot, .needs = SCOPE_MANAGE},
    {0},
};
