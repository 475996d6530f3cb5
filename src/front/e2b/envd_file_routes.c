/* SPDX-License-Identifier: Apache-2.0 */
/* envd: files over plain HTTP, one by one or many in a form. */
#include "base/mem.h"
#include "core/core.h"
#include "core/sandbox/temporary.h"
#include "front/e2b/envd_file.h"
#include "web/client_watch.h"
#include "web/collect.h"
#include "web/multipart.h"
#include "web/packed_body.h"
#include "web/range.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define NOTE_NAME 246 // of a name, with what stands before it in the kernel

/* By the query, for the user that it names. */
static int place_of(struct call *call, const char *path, struct e2b_user *user,
                    struct file_place *out, struct error *err)
{
    const char *name = query_text(call->query, "username");

    for (const char *at = name; at && *at; at++) {
        if (*at == ':' || *at == '/' || *at <= ' ')
            return error_refuse(err, ERROR_UNAUTHORIZED, "user", "there is no such user");
    }
    *out = (struct file_place){0};
    if (envd_enter(call, &out->sandbox_id, err) < 0)
        return -1;
    envd_user(call, out->sandbox_id, name, user);
    out->user = user->box_user;
    return e2b_path(call, user, path, &out->path, err);
}

// ---- download ----

/* What of a file is wanted. */
struct wish {
    const char *range; // the header; NULL: all
    enum range part;
    uint64_t first, length, size;
};

static bool choose_part(void *data, const struct file_info *info, uint64_t *offset,
                        uint64_t *length)
{
    struct wish *wish = data;

    wish->size = wish->length = info->size_bytes;
    wish->first = 0;
    wish->part = range_read(wish->range, wish->size, &wish->first, &wish->length);
    *offset = wish->first;
    *length = wish->length;
    return wish->part != RANGE_OUTSIDE;
}

static bool choose_none(void *data, const struct file_info *info, uint64_t *offset,
                        uint64_t *length)
{
    (void)data;
    (void)info;
    *offset = *length = 0;
    return false;
}

/* GET /files */
static int download(struct call *call, struct error *err)
{
    struct http_header headers[] = {
        {"Content-Type", "application/octet-stream"}, {"Accept-Ranges", "bytes"}, {0}, {0}};
    struct wish wish = {.range = call_header(call, "Range")};
    struct temporary *file = NULL;
    autofileinfo info = {0};
    struct e2b_user user;
    struct file_place place;

    if (place_of(call, query_text(call->query, "path"), &user, &place, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_fetch(call->core->sandboxes, &call->actor, &place,
                   call->request->is_head ? choose_none : choose_part, &wish, &info, &file,
                   err) < 0)
        return envd_file_failed(err);
    if (wish.part == RANGE_OUTSIDE)
        return error_refuse(err, ERROR_RANGE, "range", "the file has %" PRIu64 " bytes", wish.size);
    if (wish.part == RANGE_PART)
        headers[2] = (struct http_header){
            "Content-Range", call_print(call, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, wish.first,
                                        wish.first + wish.length - 1, wish.size)};
    if (file)
        return client_watch_send_file(call, wish.part == RANGE_PART ? 206 : 200, headers, file);
    (void)response_send(call->response, 200, headers, NULL, 0);
    return 0;
}

// ---- upload ----

/* Where a file goes, and which part of what was collected it is. */
struct upload_file {
    char *path;
    uint64_t offset, length;
};

/* A body on its way into the sandbox. */
struct upload {
    struct waiting_call waiting;
    char *sandbox_id, *user, *home;
    char *path;  // that the query names; NULL: each part its own
    char *notes; // metadata; "": none
    // While it comes.
    struct packed_body *packed; // NULL: it is not packed
    struct multipart *form;     // NULL: it is one file
    struct collect *to;         // during a call
    bool is_file;               // the part at hand
    struct upload_file *files;  // in order
    size_t n_files;
    struct arena arena;
};

static void upload_free(struct upload *upload)
{
    if (!upload)
        return;
    free(upload->sandbox_id);
    free(upload->user);
    free(upload->home);
    free(upload->path);
    free(upload->notes);
    packed_body_free(upload->packed);
    multipart_free(upload->form);
    for (size_t i = 0; i < upload->n_files; i++)
        free(upload->files[i].path);
    free(upload->files);
    arena_clear(&upload->arena);
    waiting_call_clear(&upload->waiting);
    free(upload);
}
DEFINE_AUTOPTR(upload)

/* Where a part goes: the path of the query, or its own name with its directories. */
static int add_file(struct upload *upload, const char *filename, uint64_t offset, struct error *err)
{
    struct call call = waiting_call_get(&upload->waiting);
    const struct e2b_user user = {.home = upload->home};
    const char *path;

    call.arena = &upload->arena;
    if (!upload->path && (!filename || !*filename))
        return error_set(err, ERROR_INVALID,
                         "a part 'file' has no file name, and there is no 'path' in the query");
    if (e2b_path(&call, &user, upload->path ? upload->path : filename, &path, err) < 0)
        return -1;
    for (size_t i = 0; i < upload->n_files; i++) {
        if (strcmp(upload->files[i].path, path) == 0)
            return error_set(err, ERROR_INVALID, "two files would be written to '%.200s'", path);
    }
    upload->files = xrealloc(upload->files, upload->n_files + 1, sizeof *upload->files);
    upload->files[upload->n_files++] =
        (struct upload_file){.path = xstrdup(path), .offset = offset};
    return 0;
}

static int on_part(void *data, const struct multipart_part *part, struct error *err)
{
    struct upload *upload = data;

    upload->is_file = strcmp(part->name, "file") == 0;
    return upload->is_file ? add_file(upload, part->filename, collect_size(upload->to), err) : 0;
}

static int on_part_bytes(void *data, const void *bytes, size_t length, struct error *err)
{
    struct upload *upload = data;

    if (!upload->is_file)
        return 0;
    upload->files[upload->n_files - 1].length += length;
    return collect_keep(upload->to, bytes, length, err);
}

static int on_part_end(void *data, struct error *err)
{
    (void)data;
    (void)err;
    return 0;
}

static const struct multipart_events part_events = {on_part, on_part_bytes, on_part_end};

/* What is not packed, or no longer. */
static int take_plain(void *data, const void *bytes, size_t length, struct error *err)
{
    struct upload *upload = data;

    return upload->form ? multipart_feed(upload->form, bytes, length, err)
                        : on_part_bytes(upload, bytes, length, err);
}

static int on_bytes(void *data, struct collect *to, const void *bytes, size_t length,
                    struct error *err)
{
    struct upload *upload = data;

    upload->to = to;
    return upload->packed ? packed_body_feed(upload->packed, bytes, length, err)
                          : take_plain(upload, bytes, length, err);
}

static int on_bytes_end(void *data, struct collect *to, struct error *err)
{
    struct upload *upload = data;

    upload->to = to;
    if ((upload->packed && packed_body_finish(upload->packed, err) < 0) ||
        (upload->form && multipart_finish(upload->form, err) < 0))
        return -1;
    if (upload->n_files == 0)
        return error_set(err, ERROR_INVALID, "the form has no part called 'file'");
    return 0;
}

static const struct collect_decoder decoder = {on_bytes, on_bytes_end};

/* Nothing is written before all of the body has come. */
static int save(struct upload *upload, const struct upload_file *file, int fd, struct error *err)
{
    const struct file_place place = {upload->sandbox_id, upload->user, file->path};
    const struct file_content content = {fd, file->offset, file->length};
    const struct file_change how = {
        .mode = FILE_KEEP, .uid = FILE_KEEP, .gid = FILE_KEEP, .makes_parents = true};
    autofileinfo info = {0};

    if (file_save(upload->waiting.core->sandboxes, &upload->waiting.actor, &place, &how, &content,
                  &info, err) < 0)
        return envd_file_failed(err);
    if (!*upload->notes)
        return 0; // a file that was replaced has none
    return file_set_notes(upload->waiting.core->sandboxes, &upload->waiting.actor, &place,
                          ENVD_NOTES, upload->notes, err);
}

static int save_all(struct upload *upload, int fd, struct error *err)
{
    for (size_t i = 0; i < upload->n_files; i++) {
        if (save(upload, &upload->files[i], fd, err) < 0)
            return -1;
    }
    return 0;
}

static void answer(struct upload *upload)
{
    struct call call = waiting_call_get(&upload->waiting);
    autoreply reply = {0};

    call.arena = &upload->arena;
    reply_init(&reply);
    json_list_begin(&reply.json);
    for (size_t i = 0; i < upload->n_files; i++) {
        const char *path = upload->files[i].path;
        json_map_begin(&reply.json);
        e2b_member_text(&reply.json, "path", path);
        e2b_member_text(&reply.json, "name", strrchr(path, '/') + 1);
        e2b_member_text(&reply.json, "type", "file");
        envd_notes_write(&call, &reply.json, upload->notes);
        json_map_end(&reply.json);
    }
    json_list_end(&reply.json);
    reply_send(&reply, upload->waiting.response, 200);
}

static void on_body(void *data, struct collected *body, const struct error *failure)
{
    autoptr(upload) upload = data;
    struct error err = {0};

    if (failure)
        waiting_call_fail(&upload->waiting, failure);
    else if (save_all(upload, body->fd, &err) < 0)
        waiting_call_fail(&upload->waiting, &err);
    else
        answer(upload);
}

static bool is_type(const char *value, const char *type)
{
    return value && strncasecmp(value, type, strlen(type)) == 0;
}

static char *copy_text(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static int check_upload(struct call *call, bool *is_form, bool *is_packed, struct error *err)
{
    const char *type = call_header(call, "Content-Type");
    const char *coding = call_header(call, "Content-Encoding");

    *is_form = is_type(type, "multipart/form-data");
    *is_packed = coding && strcasecmp(coding, "gzip") == 0;
    if (!*is_form && !is_type(type, "application/octet-stream"))
        return error_set(err, ERROR_INVALID,
                         "the body must be multipart/form-data or application/octet-stream");
    if (coding && !*is_packed && strcasecmp(coding, "identity") != 0)
        return error_set(err, ERROR_INVALID, "Content-Encoding '%.40s' is not read here: use gzip",
                         coding);
    if (!*is_form && !query_text(call->query, "path"))
        return error_set(err, ERROR_INVALID, "path: is needed");
    return 0;
}

/* Of the headers X-Metadata-NAME; what is wrong with one is said. */
static int read_notes(struct call *call, char **out, struct error *err)
{
    static const char prefix[] = "X-Metadata-";
    autobuffer text = {0};

    for (size_t i = 0; i < call->request->header_count; i++) {
        const struct http_header *header = &call->request->headers[i];
        if (strncasecmp(header->name, prefix, sizeof prefix - 1) != 0)
            continue;
        const char *name = header->name + sizeof prefix - 1;
        size_t length = strlen(name);
        if (length == 0 || length > NOTE_NAME || strchr(name, '='))
            return error_set(err, ERROR_INVALID, "%.80s: a name has 1 to %d characters",
                             header->name, NOTE_NAME);
        for (const char *at = header->value; *at; at++) {
            if (*at < ' ' || *at > '~')
                return error_set(err, ERROR_INVALID, "%.80s: must be printable ASCII",
                                 header->name);
        }
        if (buffer_addf(&text, err, "%s%s=%s", text.length ? "\n" : "", name, header->value) < 0)
            return -1;
        for (size_t k = text.length - strlen(header->value) - 1 - length; k < text.length; k++) {
            if (text.data[k] == '=')
                break;
            text.data[k] = (char)tolower((unsigned char)text.data[k]);
        }
    }
    if (text.length >= FILE_NOTES)
        return error_set(err, ERROR_INVALID, "metadata of a file is at most %d bytes in all",
                         FILE_NOTES - 1);
    *out = xstrdup(text.length ? text.data : "");
    return 0;
}

/* POST /files */
static int start_upload(struct call *call, struct error *err)
{
    uint64_t most = (uint64_t)call->core->settings.file_limit_bytes;
    const char *path = query_text(call->query, "path");
    struct e2b_user user;
    struct file_place place;
    bool is_form, is_packed;
    autofree char *notes = NULL;
    autoptr(upload) upload = xnew(struct upload);

    if (check_upload(call, &is_form, &is_packed, err) < 0 || read_notes(call, &notes, err) < 0 ||
        place_of(call, path, &user, &place, err) < 0 ||
        (is_form && multipart_new(call_header(call, "Content-Type"), &part_events, upload,
                                  &upload->form, err) < 0))
        return -1;
    client_watch_start(call);
    waiting_call_init(&upload->waiting, call);
    upload->sandbox_id = xstrdup(place.sandbox_id);
    upload->user = copy_text(place.user);
    upload->home = xstrdup(user.home);
    upload->path = copy_text(path);
    upload->notes = take(notes);
    upload->packed = is_packed ? packed_body_new(most, take_plain, upload) : NULL;
    upload->is_file = !is_form;
    if (upload->is_file && add_file(upload, NULL, 0, err) < 0)
        return -1;
    struct upload *given = take(upload);
    collect_start_decoded(&given->waiting, most, &decoder, on_body, given);
    return 0;
}

const struct route envd_file_routes[] = {
    {"GET", "/files", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, download, "a file's bytes",
     .needs = SCOPE_READ, .is_undescribed = true, .reach = REACH_SANDBOX},
    {"POST", "/files", ROUTE_QUICK, ACCESS_KEY, BODY_STREAM, start_upload, "writes files",
     .needs = SCOPE_RUN, .is_undescribed = true, .reach = REACH_SANDBOX},
    {0},
};
