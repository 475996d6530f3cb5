/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots and checkpoints as JSON; see render.h. */
#include "core/runtime/runtime.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/content_type.h"
#include "front/agentuity/render.h"

#include <string.h>

#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* What an organisation is called in references: its name, where that can be a part of one. */
static const char *slug_of(const struct organisation_info *organisation)
{
    const char *name = organisation->name;

    return name && *name && name[strspn(name, LETTERS_AND_DIGITS "_-")] == '\0' ? name
                                                                                : organisation->id;
}

static void add_piece(struct json_writer *json, const char *text)
{
    json_string_piece(json, text, strlen(text));
}

/* "name:tag", and "@organisation/name:tag" of a public one: under which it can be asked for. */
static void write_full_name(struct json_writer *json, const struct snapshot_view *view)
{
    const struct snapshot_info *info = view->info;

    if (!info->name)
        return;
    json_key(json, "fullName");
    json_string_begin(json);
    if (info->is_public && view->organisation) {
        add_piece(json, "@");
        add_piece(json, slug_of(view->organisation));
        add_piece(json, "/");
    }
    add_piece(json, info->name);
    if (info->tag) {
        add_piece(json, ":");
        add_piece(json, info->tag);
    }
    json_string_end(json);
}

static const char *organisation_name(const struct snapshot_view *view)
{
    return view->organisation_name ? view->organisation_name : view->organisation->name;
}

static void write_organisation(struct json_writer *json, const struct snapshot_view *view)
{
    json_key(json, "org");
    json_map_begin(json);
    member_id(json, "id", ORGANISATION_PREFIX, view->organisation->id);
    member_text(json, "name", organisation_name(view));
    member_text(json, "slug", slug_of(view->organisation));
    json_map_end(json);
}

static void write_user(struct json_writer *json, const struct snapshot_info *info)
{
    json_key(json, "user");
    render_user(json, info->key_id);
}

static void write_snapshot_runtime(struct json_writer *json, const char *name)
{
    char id[24];

    if (!name)
        return;
    runtime_id(name, id);
    member_id(json, "runtimeId", RUNTIME_PREFIX, id);
}

/* Rather than no answer at all, an answer without the last of very many files; fileCount counts all. */
#define FILES_BYTES ((size_t)48 << 20)
#define PUBLIC_FILES_BYTES                                                                         \
    ((size_t)1 << 20)     // whoever has no key shall not make the server hold much
#define FILE_OVERHEAD 192 // of one, beside its path

static void write_file(struct json_writer *json, const struct snapshot_file *file)
{
    json_map_begin(json);
    member_text(json, "path", file->path);
    member_integer(json, "size", (int64_t)file->size);
    member_text(json, "sha256", file->sha256);
    member_text(json, "contentType", content_type_of(file->path));
    member_integer(json, "mode", file->mode & 07777);
    json_map_end(json);
}

static void write_snapshot_files(struct json_writer *json, const struct snapshot_files *files,
                                 size_t maximum)
{
    size_t taken = 0, i = 0;

    json_key(json, "files");
    json_list_begin(json);
    for (; i < files->count && taken < maximum; i++) {
        write_file(json, &files->files[i]);
        taken += strlen(files->files[i].path) * 2 + FILE_OVERHEAD;
    }
    json_list_end(json);
    if (i < files->count || files->is_cut)
        member_bool(json, "filesTruncated", true);
}

/* Until somebody has counted, as create and lists do not: none. */
static int64_t counted(int64_t number)
{
    return number > 0 ? number : 0;
}

static void write_snapshot_names(struct json_writer *json, const struct snapshot_view *view)
{
    const struct snapshot_info *info = view->info;

    member_text(json, "name", info->name ? info->name : "");
    member_text(json, "tag", info->tag);
    write_full_name(json, view);
    member_text(json, "message", info->message);
    member_bool(json, "public", info->is_public);
    if (view->is_own)
        member_id(json, "parentSnapshotId", SNAPSHOT_PREFIX, info->parent_id);
    member_time(json, "createdAt", info->created_at);
    if (view->organisation)
        write_organisation(json, view);
    if (view->is_own)
        write_user(json, info);
}

void render_snapshot(struct json_writer *json, const struct snapshot_view *view)
{
    const struct snapshot_info *info = view->info;

    json_map_begin(json);
    member_id(json, "snapshotId", SNAPSHOT_PREFIX, info->id);
    write_snapshot_names(json, view);
    member_text(json, "description", info->description);
    member_integer(json, "sizeBytes", counted(info->size_bytes));
    member_integer(json, "fileCount", counted(info->file_count));
    write_snapshot_runtime(json, info->runtime);
    if (view->is_own)
        member_id(json, "sandboxId", SANDBOX_PREFIX, info->sandbox_id);
    if (info->is_public && view->organisation) {
        member_text(json, "orgName", organisation_name(view));
        member_text(json, "orgSlug", slug_of(view->organisation));
    }
    member_text_map(json, "userMetadata", info->metadata);
    member_text_map(json, "git", info->git);
    if (view->files)
        write_snapshot_files(json, view->files, view->is_own ? FILES_BYTES : PUBLIC_FILES_BYTES);
    json_map_end(json);
}

void render_ancestor(struct json_writer *json, const struct snapshot_view *view)
{
    json_map_begin(json);
    member_id(json, "snapshotId", SNAPSHOT_PREFIX, view->info->id);
    write_snapshot_names(json, view);
    if (view->info->state == SNAPSHOT_DELETED)
        member_bool(json, "deleted", true);
    json_map_end(json);
}

void render_origin(struct json_writer *json, const struct snapshot_view *view)
{
    const struct snapshot_info *info = view->info;
    bool is_public = info->is_public && view->organisation;

    json_map_begin(json);
    member_id(json, "id", SNAPSHOT_PREFIX, info->id);
    member_text(json, "name", info->name);
    member_text(json, "tag", info->tag);
    write_full_name(json, view);
    member_bool(json, "public", is_public);
    if (is_public)
        write_organisation(json, view);
    else
        write_user(json, info);
    json_map_end(json);
}

struct checkpoint_answer {
    const char *id, *name, *parent;
    int64_t created_at, size_bytes;
};
const struct answer_field render_checkpoint_fields[] = {
    {"id", ANSWER_ID, offsetof(struct checkpoint_answer, id), .is_needed = true,
     .prefix = CHECKPOINT_PREFIX},
    {"name", ANSWER_TEXT, offsetof(struct checkpoint_answer, name), .is_needed = true},
    {"createdAt", ANSWER_TIME, offsetof(struct checkpoint_answer, created_at), .is_needed = true},
    {"parent", ANSWER_TEXT, offsetof(struct checkpoint_answer, parent), .is_needed = true,
     .help = "the name of the one before; empty: none"},
    {"sizeBytes", ANSWER_INTEGER, offsetof(struct checkpoint_answer, size_bytes)},
    {0},
};

void render_checkpoint(struct json_writer *json, const struct checkpoint_info *info)
{
    struct checkpoint_answer answer = {
        .id = info->id,
        .name = info->name,
        .parent = info->parent ? info->parent : "",
        .created_at = info->created_at,
        .size_bytes = counted(info->size_bytes),
    };

    answer_write(json, render_checkpoint_fields, &answer);
}

// ---- what the functions above write, described: what is told of a snapshot depends on who asks ----

static const struct answer_field organisation_fields[] = {
    {"id", ANSWER_ID, .is_needed = true},
    {"name", ANSWER_TEXT, .is_needed = true},
    {"slug", ANSWER_TEXT, .is_needed = true, .help = "as in references"},
    {0},
};
static const struct answer_field file_fields[] = {
    {"path", ANSWER_TEXT, .is_needed = true},
    {"size", ANSWER_INTEGER},
    {"sha256", ANSWER_TEXT, .is_needed = true},
    {"contentType", ANSWER_TEXT, .is_needed = true},
    {"mode", ANSWER_INTEGER, .help = "permissions"},
    {0},
};
static const struct answer_field name_fields[] = {
    {"snapshotId", ANSWER_ID, .is_needed = true},
    {"name", ANSWER_TEXT, .is_needed = true},
    {"tag", ANSWER_TEXT},
    {"fullName", ANSWER_TEXT, .help = "under which it can be asked for"},
    {"message", ANSWER_TEXT},
    {"public", ANSWER_BOOL},
    {"parentSnapshotId", ANSWER_ID},
    {"createdAt", ANSWER_TIME, .is_needed = true},
    {"org", ANSWER_MAP, .fields = organisation_fields},
    {"user", ANSWER_MAP, .fields = render_user_fields},
    {0},
};
const struct answer_field render_snapshot_fields[] = {
    {"", ANSWER_BESIDE, .fields = name_fields},
    {"description", ANSWER_TEXT},
    {"sizeBytes", ANSWER_INTEGER},
    {"fileCount", ANSWER_INTEGER},
    {"runtimeId", ANSWER_ID},
    {"sandboxId", ANSWER_ID, .help = "that it was taken of"},
    {"orgName", ANSWER_TEXT},
    {"orgSlug", ANSWER_TEXT},
    {"userMetadata", ANSWER_TEXT_MAP},
    {"git", ANSWER_TEXT_MAP},
    {"files", ANSWER_CUSTOM, .fields = file_fields, .is_list = true, .help = "of a single one"},
    {"filesTruncated", ANSWER_TRUTH, .help = "there are more than are listed"},
    {0},
};
const struct answer_field render_ancestor_fields[] = {
    {"", ANSWER_BESIDE, .fields = name_fields},
    {"deleted", ANSWER_TRUTH},
    {0},
};
const struct answer_field render_origin_fields[] = {
    {"id", ANSWER_ID, .is_needed = true},
    {"name", ANSWER_TEXT},
    {"tag", ANSWER_TEXT},
    {"fullName", ANSWER_TEXT},
    {"public", ANSWER_BOOL},
    {"org", ANSWER_MAP, .fields = organisation_fields},
    {"user", ANSWER_MAP, .fields = render_user_fields},
    {0},
};
