/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots and checkpoints as JSON; see render.h. */
#include "base/mem.h"
#include "core/runtime/runtime.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/content_type.h"
#include "front/agentuity/render.h"

#include <stdlib.h>
#include <string.h>

#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* What an organisation is called in references: its name, where that can be a part of one. */
static const char *slug_of(const struct organisation_info *organisation)
{
    const char *name = organisation->name;

    return name && *name && name[strspn(name, LETTERS_AND_DIGITS "_-")] == '\0' ? name
                                                                                : organisation->id;
}

/* "name:tag", and "@organisation/name:tag" of a public one: under which it can be asked for. Owned by the caller; NULL: no name. */
static char *full_name_of(const struct snapshot_view *view)
{
    const struct snapshot_info *info = view->info;
    bool is_told = info->is_public && view->organisation;

    if (!info->name)
        return NULL;
    return xasprintf("%s%s%s%s%s%s", is_told ? "@" : "", is_told ? slug_of(view->organisation) : "",
                     is_told ? "/" : "", info->name, info->tag ? ":" : "",
                     info->tag ? info->tag : "");
}

// ---- what all say of it ----

struct owner_answer {
    const char *id, *name, *slug;
};
static const struct answer_field owner_fields[] = {
    {"id", ANSWER_ID, offsetof(struct owner_answer, id), .is_needed = true,
     .prefix = ORGANISATION_PREFIX},
    {"name", ANSWER_TEXT, offsetof(struct owner_answer, name), .is_needed = true},
    {"slug", ANSWER_TEXT, offsetof(struct owner_answer, slug), .is_needed = true,
     .help = "as in references"},
    {0},
};

struct names {
    const char *id, *name, *tag, *message, *parent;
    char *full_name; // owned
    bool is_public, has_owner, has_user, is_deleted;
    int64_t created_at;
    struct owner_answer owner;
    struct named user;
};
#define AT(member) offsetof(struct names, member)
static const struct answer_field name_fields[] = {
    {"snapshotId", ANSWER_ID, AT(id), .is_needed = true, .prefix = SNAPSHOT_PREFIX},
    {"name", ANSWER_TEXT, AT(name), .is_needed = true},
    {"tag", ANSWER_TEXT, AT(tag)},
    {"fullName", ANSWER_TEXT, AT(full_name), .help = "under which it can be asked for"},
    {"message", ANSWER_TEXT, AT(message)},
    {"public", ANSWER_BOOL, AT(is_public)},
    {"parentSnapshotId", ANSWER_ID, AT(parent), .prefix = SNAPSHOT_PREFIX},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {"org", ANSWER_MAP, AT(owner), .has_offset = AT(has_owner), .fields = owner_fields},
    {"user", ANSWER_MAP, AT(user), .has_offset = AT(has_user), .fields = render_user_fields},
    {0},
};
const struct answer_field render_ancestor_fields[] = {
    {"", ANSWER_BESIDE, .fields = name_fields},
    {"deleted", ANSWER_TRUTH, AT(is_deleted)},
    {0},
};
const struct answer_field render_origin_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = SNAPSHOT_PREFIX},
    {"name", ANSWER_TEXT, AT(name)},
    {"tag", ANSWER_TEXT, AT(tag)},
    {"fullName", ANSWER_TEXT, AT(full_name)},
    {"public", ANSWER_BOOL, AT(is_public)},
    {"org", ANSWER_MAP, AT(owner), .has_offset = AT(has_owner), .fields = owner_fields},
    {"user", ANSWER_MAP, AT(user), .has_offset = AT(has_user), .fields = render_user_fields},
    {0},
};
#undef AT

static void names_clear(struct names *names)
{
    free(names->full_name);
}
#define autonames __attribute__((cleanup(names_clear))) struct names

static struct names names_of(const struct snapshot_view *view)
{
    const struct snapshot_info *info = view->info;
    const struct organisation_info *owner = view->organisation;
    struct names names = {
        .id = info->id,
        .name = info->name ? info->name : "",
        .tag = info->tag,
        .message = info->message,
        .parent = view->is_own ? info->parent_id : NULL,
        .full_name = full_name_of(view),
        .is_public = info->is_public,
        .has_owner = owner != NULL,
        .has_user = view->is_own,
        .is_deleted = info->state == SNAPSHOT_DELETED,
        .created_at = info->created_at,
        .user = render_user(info->key_id),
    };

    if (owner)
        names.owner = (struct owner_answer){
            owner->id, view->organisation_name ? view->organisation_name : owner->name,
            slug_of(owner)};
    return names;
}

void render_ancestor(struct json_writer *json, const struct snapshot_view *view)
{
    autonames names = names_of(view);

    answer_write(json, render_ancestor_fields, &names);
}

void render_origin(struct json_writer *json, const struct snapshot_view *view)
{
    autonames names = names_of(view);

    names.name = view->info->name;
    names.is_public = names.has_owner = view->info->is_public && view->organisation;
    names.has_user = !names.is_public;
    answer_write(json, render_origin_fields, &names);
}

// ---- its files ----

/* Rather than no answer at all, an answer without the last of very many files; fileCount counts all. */
#define FILES_BYTES ((size_t)48 << 20)
#define PUBLIC_FILES_BYTES                                                                         \
    ((size_t)1 << 20)     // whoever has no key shall not make the server hold much
#define FILE_OVERHEAD 192 // of one, beside its path

struct file_answer {
    const char *path, *sha256, *content_type;
    int64_t size, mode;
};
static const struct answer_field file_fields[] = {
    {"path", ANSWER_TEXT, offsetof(struct file_answer, path), .is_needed = true},
    {"size", ANSWER_INTEGER, offsetof(struct file_answer, size)},
    {"sha256", ANSWER_TEXT, offsetof(struct file_answer, sha256), .is_needed = true},
    {"contentType", ANSWER_TEXT, offsetof(struct file_answer, content_type), .is_needed = true},
    {"mode", ANSWER_INTEGER, offsetof(struct file_answer, mode), .help = "permissions"},
    {0},
};

/* How many of them are told. */
static size_t measure_files(const struct snapshot_files *files, size_t maximum)
{
    size_t taken = 0, i = 0;

    for (; i < files->count && taken < maximum; i++)
        taken += strlen(files->files[i].path) * 2 + FILE_OVERHEAD;
    return i;
}

/* A struct answer_list of struct snapshot_file. */
static void write_files(struct json_writer *json, const void *member)
{
    const struct answer_list *list = member;
    const struct snapshot_file *file = list->items, *end = file + list->count;

    json_list_begin(json);
    for (; file < end; file++) {
        struct file_answer answer = {file->path, file->sha256, content_type_of(file->path),
                                     (int64_t)file->size, file->mode & 07777};
        answer_write(json, file_fields, &answer);
    }
    json_list_end(json);
}

// ---- all of it ----

/* Until somebody has counted, as create and lists do not: none. */
static int64_t counted(int64_t number)
{
    return number > 0 ? number : 0;
}

struct snapshot_answer {
    struct names names;
    const char *description, *runtime, *sandbox, *owner_name, *owner_slug, *metadata, *git;
    int64_t size_bytes, file_count;
    struct answer_list files; // of struct snapshot_file
    bool has_files, is_cut;
};
#define AT(member) offsetof(struct snapshot_answer, member)
const struct answer_field render_snapshot_fields[] = {
    {"", ANSWER_BESIDE, AT(names), .fields = name_fields},
    {"description", ANSWER_TEXT, AT(description)},
    {"sizeBytes", ANSWER_INTEGER, AT(size_bytes)},
    {"fileCount", ANSWER_INTEGER, AT(file_count)},
    {"runtimeId", ANSWER_ID, AT(runtime), .prefix = RUNTIME_PREFIX},
    {"sandboxId", ANSWER_ID, AT(sandbox), .prefix = SANDBOX_PREFIX, .help = "that it was taken of"},
    {"orgName", ANSWER_TEXT, AT(owner_name)},
    {"orgSlug", ANSWER_TEXT, AT(owner_slug)},
    {"userMetadata", ANSWER_TEXT_MAP, AT(metadata)},
    {"git", ANSWER_TEXT_MAP, AT(git)},
    {"files", ANSWER_CUSTOM, AT(files), .has_offset = AT(has_files), .write = write_files,
     .fields = file_fields, .is_list = true, .help = "of a single one"},
    {"filesTruncated", ANSWER_TRUTH, AT(is_cut), .help = "there are more than are listed"},
    {0},
};
#undef AT

void render_snapshot(struct json_writer *json, const struct snapshot_view *view)
{
    const struct snapshot_info *info = view->info;
    const struct snapshot_files *files = view->files;
    autonames names = names_of(view);
    bool is_told = info->is_public && view->organisation;
    char runtime[24] = "";
    struct snapshot_answer answer = {
        .names = names,
        .description = info->description,
        .runtime = runtime,
        .sandbox = view->is_own ? info->sandbox_id : NULL,
        .owner_name = is_told ? names.owner.name : NULL,
        .owner_slug = is_told ? names.owner.slug : NULL,
        .metadata = info->metadata,
        .git = info->git,
        .size_bytes = counted(info->size_bytes),
        .file_count = counted(info->file_count),
        .has_files = files != NULL,
    };

    if (info->runtime)
        runtime_id(info->runtime, runtime);
    if (files) {
        size_t shown = measure_files(files, view->is_own ? FILES_BYTES : PUBLIC_FILES_BYTES);
        answer.files = (struct answer_list){files->files, shown};
        answer.is_cut = shown < files->count || files->is_cut;
    }
    answer_write(json, render_snapshot_fields, &answer);
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
