/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots that are built from files: announced, uploaded as an archive, finished. */
#include "base/mem.h"
#include "core/runtime/runtime.h"
#include "front/api/api_body.h"
#include "front/api/api_snapshot.h"
#include "web/collect.h"
#include "web/reference.h"

#include <string.h>

// ---- POST /api/v1/snapshots/builds ----

struct begin_body {
    const char *runtime, *name, *tag, *description, *message, *content_hash;
    bool is_forced, is_public;
    const struct data_value *git;
};
#define AT(member) offsetof(struct begin_body, member)
static const struct field begin_fields[] = {
    {"runtime", FIELD_TEXT, AT(runtime), .is_needed = true, .minimum = 1,
     .help = "name or id of what lies below"},
    {"name", FIELD_TEXT, AT(name), .maximum = 128},
    {"tag", FIELD_TEXT, AT(tag), .maximum = 128},
    {"description", FIELD_TEXT, AT(description), .maximum = 4096},
    {"message", FIELD_TEXT, AT(message), .maximum = 4096},
    {"contentHash", FIELD_TEXT, AT(content_hash), .maximum = 256,
     .help = "of all that goes into it: one of the same name with the same hash is not built "
             "again"},
    {"force", FIELD_BOOL, AT(is_forced), .help = "built all the same"},
    {"public", FIELD_BOOL, AT(is_public)},
    {"git", FIELD_OBJECT, AT(git), .help = "kept and given back; at most 64 KiB"},
    {0},
};
#undef AT

struct begun {
    const char *id, *name, *tag, *upload_url;
    bool is_unchanged;
};
#define AT(member) offsetof(struct begun, member)
static const struct answer_field begun_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = SNAPSHOT_PREFIX},
    {"name", ANSWER_TEXT, AT(name)},
    {"tag", ANSWER_TEXT, AT(tag)},
    {"unchanged", ANSWER_BOOL, AT(is_unchanged),
     .help =
         "one of this name has the same contentHash: it is this one, and there is nothing to do"},
    {"uploadUrl", ANSWER_TEXT, AT(upload_url), .help = "where its files are to be put"},
    {0},
};
#undef AT
static const struct route_answer begun_answers[] = {{200, begun_fields}, {201, begun_fields}, {0}};

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

static int answer_begun(struct call *call, const struct snapshot_info *info, bool is_unchanged)
{
    struct begun begun = {
        .id = info->id, .name = info->name, .tag = info->tag, .is_unchanged = is_unchanged};

    if (!is_unchanged)
        begun.upload_url = call_print(call, "%s" API_TOP "/snapshots/" SNAPSHOT_PREFIX "%s/upload",
                                      call_base_url(call), info->id);
    return api_answer(call, is_unchanged ? 200 : 201, begun_fields, &begun);
}

static int begin_build(struct call *call, struct error *err)
{
    struct begin_body body = {0};
    struct snapshot_build build = {0};
    autoclear(snapshot_info) info = {0};
    bool is_unchanged = false;

    if (fields_read(call->body, begin_fields, &body, err) < 0)
        return -1;
    build = (struct snapshot_build){
        .name = body.name,
        .tag = body.tag,
        .description = body.description,
        .message = body.message,
        .content_hash = body.content_hash,
        .is_forced = body.is_forced,
        .is_public = body.is_public,
    };
    if (read_runtime(call, body.runtime, &build.runtime, err) < 0 ||
        api_json_text(call, "git", body.git, &build.git, err) < 0 ||
        snapshot_build_begin(call->core->snapshots, &call->actor, &build, &is_unchanged, &info,
                             err) < 0)
        return -1;
    return answer_begun(call, &info, is_unchanged);
}

// ---- PUT /api/v1/snapshots/{snapshot}/upload ----

struct upload {
    struct waiting_call waiting;
    char id[ID_TEXT];
};

static void upload_free(struct upload *upload)
{
    if (!upload)
        return;
    waiting_call_clear(&upload->waiting);
    free(upload);
}
DEFINE_AUTOPTR(upload)

static void on_collected_files(void *data, struct collected *body, const struct error *failure)
{
    autoptr(upload) upload = data;
    struct waiting_call *waiting = &upload->waiting;
    struct error err = {0};

    if (!failure && snapshot_build_upload(waiting->core->snapshots, &waiting->actor, upload->id,
                                          NULL, body->fd, &err) < 0)
        failure = &err;
    if (failure) {
        waiting_call_fail(waiting, failure);
        return;
    }
    struct call call = waiting_call_get(waiting);
    (void)api_answer_empty(&call);
}

/* Nothing is taken from whoever may not upload. */
static int take_upload(struct call *call, struct error *err)
{
    const char *id;

    if (call_id(call, 0, SNAPSHOT_PREFIX, "snapshot", &id, err) < 0 ||
        snapshot_build_check(call->core->snapshots, &call->actor, id, NULL, err) < 0)
        return -1;
    struct upload *upload = xnew(struct upload);
    waiting_call_init(&upload->waiting, call);
    (void)snprintf(upload->id, sizeof upload->id, "%s", id);
    collect_start(&upload->waiting, (uint64_t)call->core->settings.file_limit_bytes,
                  on_collected_files, upload);
    return 0;
}

// ---- POST /api/v1/snapshots/{snapshot}/finish ----

struct finish_body {
    const char *directory;
    const char **dependencies, **packages;
    struct field_list env;
    const struct data_value *metadata;
};
#define AT(member) offsetof(struct finish_body, member)
static const struct field finish_fields[] = {
    {"directory", FIELD_TEXT, AT(directory), .minimum = 1, .maximum = 4096,
     .help = "where the archive's files go; /workspace when not given"},
    {"dependencies", FIELD_TEXTS, AT(dependencies), .maximum = 256,
     .help = "apt packages that are installed over its runtime first"},
    {"packages", FIELD_TEXTS, AT(packages), .maximum = 256,
     .help = "packages that npm or bun installs globally first, where the runtime has one"},
    {"env", FIELD_TEXT_MAP, AT(env), .help = "of all commands in sandboxes made from it"},
    {"metadata", FIELD_OBJECT, AT(metadata), .help = "kept and given back; at most 64 KiB"},
    {0},
};
#undef AT

static int finish_build(struct call *call, struct error *err)
{
    struct finish_body body = {.directory = API_DIRECTORY};
    struct snapshot_content content = {0};
    autoclear(snapshot_info) info = {0};
    const char *id;

    if (call_id(call, 0, SNAPSHOT_PREFIX, "snapshot", &id, err) < 0 ||
        fields_read(call->body, finish_fields, &body, err) < 0)
        return -1;
    if (body.directory[0] != '/')
        return error_set(err, ERROR_INVALID, "directory: must be absolute");
    content.directory = body.directory;
    content.dependencies = (const char *const *)body.dependencies;
    content.packages = (const char *const *)body.packages;
    if (api_env(call, "env", &body.env, &content.env, err) < 0 ||
        api_json_text(call, "metadata", body.metadata, &content.metadata, err) < 0 ||
        snapshot_build_finish(call->core->snapshots, &call->actor, id, &content, &info, err) < 0)
        return -1;
    return api_snapshot_answer(call, 200, &info);
}

static const struct route_answer empty_answers[] = {{204, NULL}, {0}};

const struct route api_build_routes[] = {
    {"POST", API_TOP "/snapshots/builds", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, begin_build,
     .summary = "announces a snapshot that is made of files", .fields = begin_fields,
     .answers = begun_answers, .needs = SCOPE_MANAGE},
    {"PUT", API_TOP "/snapshots/{snapshot}/upload", ROUTE_QUICK, ACCESS_KEY, BODY_STREAM,
     take_upload, .summary = "the files of an announced snapshot, as a tar.gz",
     .answers = empty_answers, .needs = SCOPE_MANAGE},
    {"POST", API_TOP "/snapshots/{snapshot}/finish", ROUTE_SLOW, ACCESS_KEY, BODY_JSON,
     finish_build, .summary = "makes the snapshot of what was uploaded", .fields = finish_fields,
     .answers = api_snapshot_answers, .needs = SCOPE_MANAGE},
    {0},
};
