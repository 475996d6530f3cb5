/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox: /fs. Paths are relative to its working directory, or absolute in it. */
#include "base/clock.h"
#include "base/mem.h"
#include "core/sandbox/file.h"
#include "core/sandbox/sandbox.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/body_parts.h"
#include "web/client_watch.h"
#include "web/collect.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LIST_MAX 100000
#define PATH_MAX_BYTES 4095

static int sandbox_id_of(const struct call *call, const char **out, struct error *err)
{
    return call_id(call, 0, SANDBOX_PREFIX, "sandbox", out, err);
}

static uint64_t file_limit(const struct call *call)
{
    return (uint64_t)call->core->settings.file_limit_bytes;
}

/* Here, what stands in the way is the caller's mistake and not a state to wait for. Returns -1. */
static int refuse_file(struct error *err)
{
    if (error_is(err, ERROR_CONFLICT) && error_is_about(err, "file"))
        return error_restate(err, ERROR_INVALID, "file");
    return -1;
}

static const char *path_or_here(const struct call *call)
{
    const char *path = query_text(call->query, "path");
    return path ? path : ".";
}

struct write_body {
    struct field_list files; // of struct file_body
};

static const struct field write_fields[] = {
    {"files", FIELD_LIST, offsetof(struct write_body, files), .is_needed = true,
     .fields = body_file_fields, .item_size = sizeof(struct file_body), .maximum = BODY_FILES_MAX},
    {0},
};

/* POST /fs/{id} */
static int put_files(struct call *call, struct error *err)
{
    struct write_body body = {0};
    const struct sandbox_file *files = NULL;
    const char *id = NULL;
    size_t count = 0, written = 0;

    if (sandbox_id_of(call, &id, err) < 0 || fields_read(call->body, write_fields, &body, err) < 0)
        return -1;
    body_files(call, &body.files, NULL, &files, &count);
    for (size_t i = 0; i < count; i++) {
        if (!files[i].path[0])
            return error_set(err, ERROR_INVALID, "files[%zu].path: must not be empty", i);
    }
    client_watch_start(call);
    if (file_write(call->core->sandboxes, &call->actor, id, files, count, &written, err) < 0)
        return refuse_file(err);

    autoreply reply = {0};
    envelope_data(&reply);
    json_map_begin(&reply.json);
    member_integer(&reply.json, "filesWritten", (int64_t)written);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

static const struct http_header bytes_headers[] = {
    {"Content-Type", "application/octet-stream"},
    {"Cache-Control", "no-store"},
    {"X-Content-Type-Options", "nosniff"},
    {0},
};

/* GET /fs/{id} */
static int read_file(struct call *call, struct error *err)
{
    const char *id = NULL;
    const char *path = query_text(call->query, "path");
    struct temporary *file = NULL;

    if (sandbox_id_of(call, &id, err) < 0)
        return -1;
    if (!path)
        return error_set(err, ERROR_INVALID, "path: is needed");
    client_watch_start(call);
    if (file_read(call->core->sandboxes, &call->actor, id, path, file_limit(call), &file, err) < 0)
        return refuse_file(err);
    return client_watch_send_file(call, 200, bytes_headers, file);
}

struct path_body {
    const char *path;
    bool is_recursive;
};

static const struct field path_fields[] = {
    {"path", FIELD_TEXT, offsetof(struct path_body, path), .is_needed = true,
     .maximum = PATH_MAX_BYTES},
    {0},
};
static const struct field tree_fields[] = {
    {"path", FIELD_TEXT, offsetof(struct path_body, path), .is_needed = true,
     .maximum = PATH_MAX_BYTES},
    {"recursive", FIELD_BOOL, offsetof(struct path_body, is_recursive), .is_nullable = true},
    {0},
};

static int read_path(struct call *call, const struct field *fields, struct path_body *body,
                     struct error *err)
{
    if (fields_read(call->body, fields, body, err) < 0)
        return -1;
    return body->path[0] ? 0 : error_set(err, ERROR_INVALID, "path: must not be empty");
}

/* POST /fs/mkdir/{id} */
static int make_directory(struct call *call, struct error *err)
{
    struct path_body body = {0};
    const char *id = NULL;

    if (sandbox_id_of(call, &id, err) < 0 || read_path(call, tree_fields, &body, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_mkdir(call->core->sandboxes, &call->actor, id, body.path, body.is_recursive, err) <
        0) {
        if (error_is(err, ERROR_NOT_FOUND) && error_is_about(err, "file"))
            return error_restate(err, ERROR_INVALID,
                                 "file"); // its parent: what was asked for was never there
        return refuse_file(err);
    }
    return envelope_bare(call);
}

static int remove_at(struct call *call, const char *path, enum file_removal removal,
                     struct error *err)
{
    const char *id = NULL;
    bool is_found = false;

    if (sandbox_id_of(call, &id, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_remove(call->core->sandboxes, &call->actor, id, path, removal, &is_found, err) < 0)
        return refuse_file(err);
    autoreply reply = {0};
    envelope_flat(&reply);
    member_bool(&reply.json, "found", is_found);
    return envelope_send(&reply, call->response, 200);
}

/* POST /fs/rm/{id} */
static int remove_file(struct call *call, struct error *err)
{
    struct path_body body = {0};

    if (read_path(call, path_fields, &body, err) < 0)
        return -1;
    return remove_at(call, body.path, FILE_REMOVE_FILE, err);
}

/* POST /fs/rmdir/{id} */
static int remove_directory(struct call *call, struct error *err)
{
    struct path_body body = {0};

    if (read_path(call, tree_fields, &body, err) < 0)
        return -1;
    return remove_at(call, body.path, body.is_recursive ? FILE_REMOVE_TREE : FILE_REMOVE_DIRECTORY,
                     err);
}

static void write_file_entry(struct json_writer *json, const struct file_entry *entry)
{
    char mode[8];

    (void)snprintf(mode, sizeof mode, "%04o", entry->mode & 07777);
    json_map_begin(json);
    member_text(json, "path", entry->path);
    member_integer(json, "size", (int64_t)entry->size);
    member_bool(json, "isDir", S_ISDIR(entry->mode));
    member_text(json, "mode", mode);
    json_key(json, "modTime");
    char text[CLOCK_TEXT];
    json_string(json, clock_format((uint64_t)(entry->mtime_ms > 0 ? entry->mtime_ms : 0), text));
    if (S_ISLNK(entry->mode)) {
        member_bool(json, "isSymlink", true);
        member_text(json, "linkTarget", entry->target);
    }
    json_map_end(json);
}

/* GET /fs/list/{id} */
static int list_files(struct call *call, struct error *err)
{
    const char *id = NULL;
    autofiles files = {0};

    if (sandbox_id_of(call, &id, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_list(call->core->sandboxes, &call->actor, id, path_or_here(call), LIST_MAX, &files,
                  err) < 0)
        return refuse_file(err);

    autoreply reply = {0};
    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "files");
    json_list_begin(&reply.json);
    for (size_t i = 0; i < files.count; i++)
        write_file_entry(&reply.json, &files.entries[i]);
    json_list_end(&reply.json);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

static const char *const format_words[] = {"tar.gz", "zip", NULL};

static enum archive_format format_of(const struct call *call)
{
    const char *word = query_text(call->query, "format");

    if (!word)
        return ARCHIVE_ANY;
    return strcmp(word, "zip") == 0 ? ARCHIVE_ZIP : ARCHIVE_TAR_GZIP;
}

static const struct http_header tar_headers[] = {
    {"Content-Type", "application/gzip"},
    {"Content-Disposition", "attachment; filename=\"files.tar.gz\""},
    {"Cache-Control", "no-store"},
    {0},
};
static const struct http_header zip_headers[] = {
    {"Content-Type", "application/zip"},
    {"Content-Disposition", "attachment; filename=\"files.zip\""},
    {"Cache-Control", "no-store"},
    {0},
};

/* GET /fs/download/{id} */
static int download(struct call *call, struct error *err)
{
    const char *id = NULL;
    bool is_zip = format_of(call) == ARCHIVE_ZIP;
    struct temporary *file = NULL;

    if (sandbox_id_of(call, &id, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_pack(call->core->sandboxes, &call->actor, id, path_or_here(call),
                  is_zip ? ARCHIVE_ZIP : ARCHIVE_TAR_GZIP, &file, err) < 0)
        return refuse_file(err);
    return client_watch_send_file(call, 200, is_zip ? zip_headers : tar_headers, file);
}

struct upload {
    struct waiting_call waiting;
    char sandbox_id[ID_TEXT];
    char *path;
    enum archive_format format;
};

static void upload_free(struct upload *upload)
{
    if (!upload)
        return;
    waiting_call_clear(&upload->waiting);
    free(upload->path);
    free(upload);
}
DEFINE_AUTOPTR(upload)

static void on_upload_collected(void *data, struct collected *body, const struct error *failure)
{
    autoptr(upload) upload = data;
    struct waiting_call *waiting = &upload->waiting;
    struct error err = {0};

    if (!failure && file_unpack(waiting->core->sandboxes, &waiting->actor, upload->sandbox_id,
                                upload->path, upload->format, body->fd, &err) < 0) {
        (void)refuse_file(&err);
        failure = &err;
    }
    if (failure) {
        waiting_call_fail(waiting, failure);
        return;
    }
    struct call call = waiting_call_get(waiting);
    (void)envelope_bare(&call);
}

/* POST /fs/upload/{id} */
static int upload(struct call *call, struct error *err)
{
    const char *id = NULL;
    struct sandbox_status status;

    if (sandbox_id_of(call, &id, err) < 0 ||
        sandbox_status(call->core->sandboxes, &call->actor, id, &status, err) < 0)
        return -1; // before its archive is taken
    struct upload *upload = xnew(struct upload);
    client_watch_start(call);
    waiting_call_init(&upload->waiting, call);
    (void)snprintf(upload->sandbox_id, sizeof upload->sandbox_id, "%s", id);
    upload->path = xstrdup(path_or_here(call));
    upload->format = format_of(call);
    collect_start(&upload->waiting, file_limit(call), on_upload_collected, upload);
    return 0;
}

static const struct parameter path_query[] = {
    {"path", PARAMETER_TEXT, NULL, "in the sandbox"},
    {0},
};
static const struct parameter archive_query[] = {
    {"path", PARAMETER_TEXT, NULL, "in the sandbox; its working directory when absent"},
    {"format", PARAMETER_WORD, format_words, "of the archive"},
    {0},
};

const struct route agentuity_file_routes[] = {
    {"POST", "/fs/{id}", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, put_files, "writes files", write_fields,
     .answers = answers_written},
    {"GET", "/fs/{id}", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, read_file, "reads a file", NULL,
     path_query, .answers = answers_bytes},
    {"POST", "/fs/mkdir/{id}", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, make_directory,
     "makes a directory", tree_fields, .answers = answers_bare},
    {"POST", "/fs/rm/{id}", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, remove_file, "removes a file",
     path_fields, .answers = answers_found},
    {"POST", "/fs/rmdir/{id}", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, remove_directory,
     "removes a directory", tree_fields, .answers = answers_found},
    {"GET", "/fs/list/{id}", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, list_files, "lists a directory",
     NULL, path_query, .answers = answers_files},
    {"GET", "/fs/download/{id}", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, download,
     "a directory as an archive", NULL, archive_query, .answers = answers_bytes},
    {"POST", "/fs/upload/{id}", ROUTE_QUICK, ACCESS_KEY, BODY_STREAM, upload, "unpacks an archive",
     NULL, archive_query, .answers = answers_bare},
    {0},
};
