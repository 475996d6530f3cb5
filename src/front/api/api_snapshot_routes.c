/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: taken of sandboxes, listed, tagged, deleted. Builds are in api_build_routes.c, export and import in transfer_routes.c. */
#include "front/api/api_page.h"
#include "front/api/api_snapshot.h"
#include "front/api/mount_body.h"
#include "web/reference.h"

#include <string.h>

// ---- how one is told ----

static const char *const states[] = {
    [SNAPSHOT_BUILDING] = "building",
    [SNAPSHOT_READY] = "ready",
    [SNAPSHOT_FAILED] = "failed",
    [SNAPSHOT_DELETED] = "deleted",
};

struct file_answer {
    const char *path, *sha256;
    char mode_text[8];
    const char *mode;
    uint64_t size;
};
#define AT(member) offsetof(struct file_answer, member)
static const struct answer_field file_fields[] = {
    {"path", ANSWER_TEXT, AT(path), .is_needed = true},
    {"sizeBytes", ANSWER_NATURAL, AT(size)},
    {"mode", ANSWER_TEXT, AT(mode), .is_needed = true, .help = "permissions, octal"},
    {"sha256", ANSWER_ID, AT(sha256), .prefix = "",
     .help = "not of files with more holes than can be read in time"},
    {0},
};
#undef AT

struct snapshot_answer {
    const char *id, *parent, *sandbox, *organisation, *runtime, *name, *tag, *description, *message,
        *metadata, *git, *error;
    enum snapshot_state state;
    bool is_public, is_counted, has_files, is_cut;
    int64_t size_bytes, file_count, created_at, deleted_at;
    struct answer_list files;
};
#define AT(member) offsetof(struct snapshot_answer, member)
#define SNAPSHOT_ROWS                                                                              \
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = SNAPSHOT_PREFIX},                       \
        {"name", ANSWER_TEXT, AT(name)}, {"tag", ANSWER_TEXT, AT(tag)},                            \
        {"state",           ANSWER_WORD,     AT(state),                                            \
         .is_needed = true, .words = states, .n_words = ARRAY_SIZE(states)},                       \
        {"runtime", ANSWER_TEXT, AT(runtime), .help = "at the bottom"},                            \
        {"sandboxId", ANSWER_ID, AT(sandbox), .prefix = SANDBOX_PREFIX,                            \
         .help = "what it was taken of"},                                                          \
        {"parentId", ANSWER_ID, AT(parent), .prefix = SNAPSHOT_PREFIX,                             \
         .help = "the snapshot that its sandbox was made from"},                                   \
        {"organisationId", ANSWER_ID, AT(organisation), .prefix = ORGANISATION_PREFIX},            \
        {"public", ANSWER_BOOL, AT(is_public)}, {"description", ANSWER_TEXT, AT(description)},     \
        {"message", ANSWER_TEXT, AT(message)},                                                     \
        {"metadata", ANSWER_JSON, AT(metadata), .json_type = "object"},                            \
        {"git", ANSWER_JSON, AT(git), .json_type = "object"}, {"error", ANSWER_TEXT, AT(error)},   \
        {"sizeBytes", ANSWER_INTEGER, AT(size_bytes)},                                             \
        {"fileCount", ANSWER_INTEGER, AT(file_count), .has_offset = AT(is_counted),                \
         .help = "not there until they are counted"},                                              \
        {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},                             \
    {                                                                                              \
        "deletedAt", ANSWER_TIME, AT(deleted_at)                                                   \
    }
const struct answer_field api_snapshot_fields[] = {SNAPSHOT_ROWS, {0}};
static const struct answer_field whole_fields[] = {
    SNAPSHOT_ROWS,
    {"files", ANSWER_LIST, AT(files), .has_offset = AT(has_files), .fields = file_fields,
     .item_size = sizeof(struct file_answer), .help = "where ?files=true asked for them"},
    {"filesTruncated", ANSWER_TRUTH, AT(is_cut), .help = "there are more than are listed"},
    {0},
};
#undef AT
const struct route_answer api_snapshot_answers[] = {{200, api_snapshot_fields}, {0}};
const struct route_answer api_snapshot_made_answers[] = {{201, api_snapshot_fields}, {0}};

struct made_answer {
    struct snapshot_answer snapshot;
    const char *const *left_out;
};
static const struct answer_field made_fields[] = {
    {"", ANSWER_BESIDE, offsetof(struct made_answer, snapshot), .fields = api_snapshot_fields},
    {"leftOut", ANSWER_TEXTS, offsetof(struct made_answer, left_out), .help = MOUNT_LEFT_OUT_HELP},
    {0},
};
static const struct route_answer made_answers[] = {{201, made_fields}, {0}};
static const struct route_answer whole_answers[] = {{200, whole_fields}, {0}};

/* What is nobody's business stays with its organisation: of a public one of others neither the sandbox nor the parent is told. */
static struct snapshot_answer answer_of(const struct call *call, const struct snapshot_info *info)
{
    bool is_own = actor_sees(&call->actor, &info->owner);

    return (struct snapshot_answer){
        .id = info->id,
        .parent = is_own ? info->parent_id : NULL,
        .sandbox = is_own ? info->sandbox_id : NULL,
        .organisation = info->owner.organisation,
        .runtime = info->runtime,
        .name = info->name,
        .tag = info->tag,
        .description = info->description,
        .message = info->message,
        .metadata = info->metadata,
        .git = info->git,
        .error = is_own ? info->error : NULL,
        .state = info->state,
        .is_public = info->is_public,
        .is_counted = info->file_count >= 0,
        .size_bytes = info->size_bytes > 0 ? info->size_bytes : 0,
        .file_count = info->file_count,
        .created_at = info->created_at,
        .deleted_at = info->deleted_at,
    };
}

int api_snapshot_answer(struct call *call, int status, const struct snapshot_info *info)
{
    struct snapshot_answer answer = answer_of(call, info);

    return api_answer(call, status, api_snapshot_fields, &answer);
}

int api_snapshot(struct call *call, const char **id, struct error *err)
{
    const char *text = call->parameters[0];
    autoclear(snapshot_info) info = {0};

    if (reference_is_id(text, SNAPSHOT_PREFIX)) {
        *id = reference_of(text, SNAPSHOT_PREFIX);
        return 0;
    }
    if (snapshot_resolve(call->core->snapshots, &call->actor,
                         reference_of_snapshot(call, text, SNAPSHOT_PREFIX, ORGANISATION_PREFIX),
                         &info, err) < 0)
        return -1;
    *id = call_print(call, "%s", info.id);
    return 0;
}

// ---- POST /api/v1/sandboxes/{sandbox}/snapshots ----

struct make_body {
    const char *name, *tag, *description;
    bool is_public;
};
#define AT(member) offsetof(struct make_body, member)
static const struct field make_fields[] = {
    {"name", FIELD_TEXT, AT(name), .maximum = 128,
     .help = "letters, digits, '_' and '-'; made up when absent"},
    {"tag", FIELD_TEXT, AT(tag), .maximum = 128,
     .help = "'latest' when absent; one in use is taken over"},
    {"description", FIELD_TEXT, AT(description), .maximum = 4096},
    {"public", FIELD_BOOL, AT(is_public),
     .help = "listed and started from without belonging to the organisation"},
    {0},
};
#undef AT

static int make_snapshot(struct call *call, struct error *err)
{
    struct make_body body = {0};
    struct snapshot_request want = {0};
    autoclear(snapshot_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 || fields_read(call->body, make_fields, &body, err) < 0)
        return -1;
    want = (struct snapshot_request){.name = body.name,
                                     .tag = body.tag,
                                     .description = body.description,
                                     .is_public = body.is_public};
    if (call_once(call, &want.once, err) < 0 ||
        snapshot_create(call->core->snapshots, &call->actor, id, &want, &info, err) < 0)
        return -1;
    const struct made_answer answer = {answer_of(call, &info), mount_targets(call, id)};
    return api_answer(call, 201, made_fields, &answer);
}

// ---- GET /api/v1/snapshots ----

static const struct answer_field list_fields[] = {
    API_LIST_FIELDS(api_snapshot_fields, struct snapshot_answer), {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};
static const struct parameter list_parameters[] = {
    API_PAGE_PARAMETERS,
    {"sandboxId", PARAMETER_TEXT, .help = "taken of the sandbox with this id"},
    {"public", PARAMETER_BOOL, .help = "public ones, of all organisations"},
    {0},
};

static int answer_list(struct call *call, const struct snapshot_infos *found)
{
    struct snapshot_answer *items = call_alloc(call, (found->count + 1) * sizeof *items);

    for (size_t i = 0; i < found->count; i++)
        items[i] = answer_of(call, &found->items[i]);
    return api_answer_page(call, list_fields, items, found->count, &found->next);
}

static int list_snapshots(struct call *call, struct error *err)
{
    const char *sandbox = query_text(call->query, "sandboxId");
    bool is_public = query_bool(call->query, "public", false);
    struct snapshot_filter filter = {
        .sandbox_id = sandbox ? reference_of(sandbox, SANDBOX_PREFIX) : NULL,
        .is_public_only = is_public,
        .sort = SNAPSHOT_BY_CREATED,
        .is_descending = true,
    };
    autoclear(snapshot_infos) found = {0};

    if (is_public && sandbox)
        return error_set(err, ERROR_INVALID, "sandboxId: not together with public");
    if (api_page_read(call, &filter.page, err) < 0 ||
        snapshot_list(call->core->snapshots, is_public ? NULL : &call->actor, &filter, &found,
                      err) < 0)
        return -1;
    return answer_list(call, &found);
}

// ---- GET /api/v1/snapshots/{snapshot} ----

#define FILES_BYTES ((size_t)48 << 20)       // of an answer; more are left out
#define OTHERS_FILES_BYTES ((size_t)1 << 20) // of a public one of others
#define FILE_OVERHEAD 192                    // of one, beside its path

static void add_files(struct call *call, const struct snapshot_files *files, size_t most_bytes,
                      struct snapshot_answer *answer)
{
    struct file_answer *items = call_alloc(call, (files->count + 1) * sizeof *items);
    size_t taken = 0, i = 0;

    for (; i < files->count && taken < most_bytes; i++) {
        const struct snapshot_file *file = &files->files[i];
        items[i] =
            (struct file_answer){.path = file->path, .sha256 = file->sha256, .size = file->size};
        (void)snprintf(items[i].mode_text, sizeof items[i].mode_text, "%04o", file->mode & 07777);
        items[i].mode = items[i].mode_text;
        taken += strlen(file->path) * 2 + FILE_OVERHEAD;
    }
    answer->files = (struct answer_list){items, i};
    answer->has_files = true;
    answer->is_cut = i < files->count || files->is_cut;
}

static int get_snapshot(struct call *call, struct error *err)
{
    __attribute__((cleanup(snapshot_files_clear))) struct snapshot_files files = {0};
    autoclear(snapshot_info) info = {0};
    const char *id;

    if (api_snapshot(call, &id, err) < 0 ||
        snapshot_get(call->core->snapshots, &call->actor, id, &info, err) < 0)
        return -1;
    struct snapshot_answer answer = answer_of(call, &info);
    if (query_bool(call->query, "files", false)) {
        if (snapshot_files(call->core->snapshots, &info, &files, err) < 0)
            return -1;
        add_files(call, &files,
                  actor_sees(&call->actor, &info.owner) ? FILES_BYTES : OTHERS_FILES_BYTES,
                  &answer);
    }
    return api_answer(call, 200, whole_fields, &answer);
}

static const struct parameter get_parameters[] = {
    {"files", PARAMETER_BOOL, .help = "with the list of its files, their sums and modes"},
    {0},
};

// ---- PATCH, DELETE /api/v1/snapshots/{snapshot} ----

struct change_body {
    const char *tag;
};
static const struct field change_fields[] = {
    {"tag", FIELD_TEXT, offsetof(struct change_body, tag), .is_nullable = true, .minimum = 1,
     .maximum = 128, .help = "null takes it away; one in use is taken over"},
    {0},
};

static int change_snapshot(struct call *call, struct error *err)
{
    struct change_body body = {0};
    autoclear(snapshot_info) info = {0};
    const char *id;

    if (api_snapshot(call, &id, err) < 0 || fields_read(call->body, change_fields, &body, err) < 0)
        return -1;
    if (!value_get(call->body, "tag"))
        return error_set(err, ERROR_INVALID, "tag: is needed; null takes it away");
    if (snapshot_set_tag(call->core->snapshots, &call->actor, id, body.tag, &info, err) < 0)
        return -1;
    return api_snapshot_answer(call, 200, &info);
}

static int delete_snapshot(struct call *call, struct error *err)
{
    const char *id;

    if (api_snapshot(call, &id, err) < 0 ||
        snapshot_delete(call->core->snapshots, &call->actor, id, err) < 0)
        return -1;
    return api_answer_empty(call);
}

static const struct route_answer empty_answers[] = {{204, NULL}, {0}};

// ---- GET /api/v1/snapshots/{snapshot}/lineage ----

#define LINEAGE_MAX 1000

static const struct answer_field lineage_fields[] = {
    {"items", ANSWER_LIST, .is_needed = true, .fields = api_snapshot_fields,
     .item_size = sizeof(struct snapshot_answer)},
    {0},
};
static const struct route_answer lineage_answers[] = {{200, lineage_fields}, {0}};

static int list_lineage(struct call *call, struct error *err)
{
    autoclear(snapshot_infos) found = {0};
    const char *id;

    if (api_snapshot(call, &id, err) < 0 ||
        snapshot_lineage(call->core->snapshots, &call->actor, id, LINEAGE_MAX, &found, err) < 0)
        return -1;
    struct snapshot_answer *items = call_alloc(call, (found.count + 1) * sizeof *items);
    for (size_t i = 0; i < found.count; i++)
        items[i] = answer_of(call, &found.items[i]);
    struct answer_list list = {items, found.count};
    return api_answer(call, 200, lineage_fields, &list);
}

#define SNAPSHOT API_TOP "/snapshots/{snapshot}"
const struct route api_snapshot_routes[] = {
    {"POST", API_TOP "/sandboxes/{sandbox}/snapshots", ROUTE_SLOW, ACCESS_KEY, BODY_JSON,
     make_snapshot, .summary = "keeps a sandbox's files to start others from",
     .fields = make_fields, .answers = made_answers, .needs = SCOPE_MANAGE},
    {"GET", API_TOP "/snapshots", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, list_snapshots,
     .summary = "snapshots, the newest first", .query = list_parameters, .answers = list_answers,
     .needs = SCOPE_READ},
    {"GET", SNAPSHOT, ROUTE_SLOW, ACCESS_KEY, BODY_NONE, get_snapshot,
     .summary = "a snapshot, by id, name:tag, tag or name", .query = get_parameters,
     .answers = whole_answers, .needs = SCOPE_READ},
    {"PATCH", SNAPSHOT, ROUTE_QUICK, ACCESS_KEY, BODY_JSON, change_snapshot,
     .summary = "gives a snapshot a tag or takes it away", .fields = change_fields,
     .answers = api_snapshot_answers, .needs = SCOPE_MANAGE},
    {"DELETE", SNAPSHOT, ROUTE_SLOW, ACCESS_KEY, BODY_NONE, delete_snapshot,
     .summary = "deletes a snapshot; sandboxes made from it live on", .answers = empty_answers,
     .needs = SCOPE_MANAGE},
    {"GET", SNAPSHOT "/lineage", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_lineage,
     .summary = "a snapshot and what it was made from, up to the root; deleted ones too",
     .answers = lineage_answers, .needs = SCOPE_READ},
    {0},
};
