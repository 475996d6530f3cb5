/* SPDX-License-Identifier: Apache-2.0 */
/* envd: files over plain HTTP, one by one or many in a form. */
#include "base/fd.h"
#include "base/mem.h"
#include "base/strings.h"
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

#define PIECE (64u << 10)
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

/* A body on its way into the sandbox. */
struct upload {
    struct waiting_call waiting;
    char *sandbox_id, *user, *home;
    char *path;  // that the query names; NULL: each part its own
    char *type;  // the whole Content-Type
    char *notes; // metadata; "": none
    bool is_form, is_packed;
    struct strings paths; // where the files go, in order
    // While it is gone through.
    bool is_checking;          // the first time, in which nothing is written
    size_t n_files;            // so far
    bool is_file;              // the part at hand
    struct temporary *content; // of that
    struct arena arena;
};

static void upload_free(struct upload *upload)
{
    free(upload->sandbox_id);
    free(upload->user);
    free(upload->home);
    free(upload->path);
    free(upload->type);
    free(upload->notes);
    strings_clear(&upload->paths);
    temporary_free(upload->content);
    arena_clear(&upload->arena);
    waiting_call_clear(&upload->waiting);
    free(upload);
}

static int save(struct upload *upload, const char *path, int fd, struct error *err)
{
    const struct file_place place = {upload->sandbox_id, upload->user, path};
    const struct file_change how = {
        .mode = FILE_KEEP, .uid = FILE_KEEP, .gid = FILE_KEEP, .makes_parents = true};
    autofileinfo info = {0};

    if (file_save(upload->waiting.core->sandboxes, &upload->waiting.actor, &place, &how, fd, &info,
                  err) < 0)
        return envd_file_failed(err);
    if (!*upload->notes)
        return 0; // a file that was replaced has none
    return file_set_notes(upload->waiting.core->sandboxes, &upload->waiting.actor, &place,
                          ENVD_NOTES, upload->notes, err);
}

/* Where a part goes: the path of the query, or its own name with its directories. */
static int add_path(struct upload *upload, const char *filename, struct error *err)
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
    for (size_t i = 0; i < upload->paths.count; i++) {
        if (strcmp(upload->paths.items[i], path) == 0)
            return error_set(err, ERROR_INVALID, "two files would be written to '%.200s'", path);
    }
    strings_add(&upload->paths, path);
    return 0;
}

static int on_part(void *data, const struct multipart_part *part, struct error *err)
{
    struct upload *upload = data;

    upload->is_file = strcmp(part->name, "file") == 0;
    if (!upload->is_file)
        return 0;
    if (upload->is_checking)
        return add_path(upload, part->filename, err);
    return temporary_new(upload->waiting.core->temporaries, &upload->waiting.actor,
                         &upload->content, err);
}

static int on_bytes(void *data, const void *bytes, size_t length, struct error *err)
{
    struct upload *upload = data;

    return upload->content ? temporary_write(upload->content, bytes, length, err) : 0;
}

static int on_part_end(void *data, struct error *err)
{
    struct upload *upload = data;

    if (!upload->content)
        return 0;
    if (upload->n_files >= upload->paths.count)
        return error_set(err, ERROR_INVALID, "the body is not what it was");
    int result = temporary_finish(upload->content, err);
    if (result == 0)
        result = save(upload, upload->paths.items[upload->n_files++], upload->content->fd, err);
    temporary_free(take(upload->content));
    return result;
}

static const struct multipart_events part_events = {on_part, on_bytes, on_part_end};

static int feed_form(void *data, const void *bytes, size_t length, struct error *err)
{
    return multipart_feed(data, bytes, length, err);
}

/* All of the body, unpacked, to fn. */
static int read_body(struct upload *upload, int fd, packed_body_bytes fn, void *data,
                     struct error *err)
{
    const uint64_t most = (uint64_t)upload->waiting.core->settings.file_limit_bytes;
    autoptr(packed_body) packed_body = upload->is_packed ? packed_body_new(most, fn, data) : NULL;
    autofree char *piece = xcalloc(1, PIECE);
    off_t offset = 0;
    ssize_t got;

    while ((got = pread(fd, piece, PIECE, offset)) > 0) {
        offset += got;
        if ((packed_body ? packed_body_feed(packed_body, piece, (size_t)got, err)
                         : fn(data, piece, (size_t)got, err)) < 0)
            return -1;
    }
    if (got < 0)
        return error_sys(err, "read the body");
    return packed_body ? packed_body_finish(packed_body, err) : 0;
}

static int go_through(struct upload *upload, int fd, bool is_checking, struct error *err)
{
    autoptr(multipart) form = NULL;

    upload->is_checking = is_checking;
    if (multipart_new(upload->type, &part_events, upload, &form, err) < 0 ||
        read_body(upload, fd, feed_form, form, err) < 0)
        return -1;
    return multipart_finish(form, err);
}

static int save_form(struct upload *upload, int fd, struct error *err)
{
    if (go_through(upload, fd, true, err) < 0)
        return -1;
    if (upload->paths.count == 0)
        return error_set(err, ERROR_INVALID, "the form has no part called 'file'");
    return go_through(upload, fd, false, err);
}

static int save_bytes(struct upload *upload, int fd, struct error *err)
{
    if (add_path(upload, NULL, err) < 0)
        return -1;
    if (!upload->is_packed)
        return save(upload, upload->paths.items[0], fd, err);
    if (temporary_new(upload->waiting.core->temporaries, &upload->waiting.actor, &upload->content,
                      err) < 0 ||
        read_body(upload, fd, on_bytes, upload, err) < 0 ||
        temporary_finish(upload->content, err) < 0)
        return -1;
    return save(upload, upload->paths.items[0], upload->content->fd, err);
}

static void answer(struct upload *upload)
{
    struct call call = waiting_call_get(&upload->waiting);
    autoreply reply = {0};

    call.arena = &upload->arena;
    reply_init(&reply);
    json_list_begin(&reply.json);
    for (size_t i = 0; i < upload->paths.count; i++) {
        const char *path = upload->paths.items[i];
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
    struct upload *upload = data;
    struct error err = {0};

    if (failure)
        waiting_call_fail(&upload->waiting, failure);
    else if ((upload->is_form ? save_form : save_bytes)(upload, body->fd, &err) < 0)
        waiting_call_fail(&upload->waiting, &err);
    else
        answer(upload);
    upload_free(upload);
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
    const char *path = query_text(call->query, "path");
    struct e2b_user user;
    struct file_place place;
    bool is_form, is_packed;
    autofree char *notes = NULL;

    if (check_upload(call, &is_form, &is_packed, err) < 0 || read_notes(call, &notes, err) < 0 ||
        place_of(call, path, &user, &place, err) < 0)
        return -1;
    struct upload *upload = xnew(struct upload);
    client_watch_start(call);
    waiting_call_init(&upload->waiting, call);
    upload->sandbox_id = xstrdup(place.sandbox_id);
    upload->user = copy_text(place.user);
    upload->home = xstrdup(user.home);
    upload->path = copy_text(path);
    upload->type = xstrdup(call_header(call, "Content-Type"));
    upload->notes = take(notes);
    upload->is_form = is_form;
    upload->is_packed = is_packed;
    collect_start(&upload->waiting, (uint64_t)call->core->settings.file_limit_bytes, on_body,
                  upload);
    return 0;
}

const struct route envd_file_routes[] = {
    {"GET", "/files", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, download, "a file's bytes",
     .needs = SCOPE_READ, .is_undescribed = true, .reach = REACH_SANDBOX},
    {"POST", "/files", ROUTE_QUICK, ACCESS_KEY, BODY_STREAM, start_upload, "writes files",
     .needs = SCOPE_RUN, .is_undescribed = true, .reach = REACH_SANDBOX},
    {0},
};
