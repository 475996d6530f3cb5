/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox, one at a time: read, write, append, look at, remove. */
#include "base/clock.h"
#include "base/mem.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/temporary.h"
#include "front/api/api_file.h"
#include "web/client_watch.h"
#include "web/collect.h"
#include "web/range.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static uint64_t file_limit(const struct call *call)
{
    return (uint64_t)call->core->settings.file_limit_bytes;
}

// ---- GET /files?path= ----

/* What a client asked for, and what becomes of it. */
struct download {
    const struct call *call;
    int status; // 200, 206, 304, 412 or 416
    uint64_t offset, length;
};

/* Seconds since 1970; -1 for what is no HTTP-date. */
static int64_t read_http_date(const char *text)
{
    struct tm when = {0};
    const char *end = text ? strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &when) : NULL;

    return end && !*end ? (int64_t)timegm(&when) : -1;
}

static bool is_unchanged(const struct call *call, const struct file_info *info)
{
    const char *none = call_header(call, "If-None-Match");

    if (none)
        return api_etag_is_among(none, info->etag, false);
    int64_t since = read_http_date(call_header(call, "If-Modified-Since"));
    return since >= 0 && info->modified_ns / 1000000000 <= since;
}

/* A part is only wanted of the version that the client has the other parts of. */
static bool is_range_meant(const struct call *call, const struct file_info *info)
{
    const char *version = call_header(call, "If-Range");

    if (!version)
        return true;
    if (version[0] == '"')
        return api_etag_is_among(version, info->etag, true);
    return read_http_date(version) == info->modified_ns / 1000000000;
}

static bool choose_part(void *data, const struct file_info *info, uint64_t *offset,
                        uint64_t *length)
{
    struct download *download = data;
    const struct call *call = download->call;
    const char *match = call_header(call, "If-Match"), *range = call_header(call, "Range");
    enum range part = RANGE_NONE;

    *offset = 0;
    *length = info->size_bytes;
    if (range && is_range_meant(call, info))
        part = range_read(range, info->size_bytes, offset, length);
    download->status = match && !api_etag_is_among(match, info->etag, true) ? 412
                       : is_unchanged(call, info)                           ? 304
                       : part == RANGE_OUTSIDE                              ? 416
                       : part == RANGE_PART                                 ? 206
                                                                            : 200;
    download->offset = *offset;
    download->length = *length;
    return download->status < 300 && !call->request->is_head;
}

struct download_headers {
    char etag[FILE_ETAG + 4], modified[CLOCK_HTTP_TEXT], range[80];
    struct http_header list[8];
};

static void add_header(struct download_headers *headers, size_t *count, const char *name,
                       const char *value)
{
    headers->list[(*count)++] = (struct http_header){name, value};
}

static void make_headers(const struct download *download, const struct file_info *info,
                         struct download_headers *out)
{
    size_t count = 0;
    int64_t ms = info->modified_ns > 0 ? info->modified_ns / 1000000 : 0;

    *out = (struct download_headers){0};
    add_header(out, &count, "Content-Type", "application/octet-stream");
    add_header(out, &count, "Cache-Control", "no-cache");
    add_header(out, &count, "Accept-Ranges", "bytes");
    add_header(out, &count, "Last-Modified", clock_format_http((uint64_t)ms, out->modified));
    if (info->etag[0]) {
        (void)snprintf(out->etag, sizeof out->etag, "\"%s\"", info->etag);
        add_header(out, &count, "ETag", out->etag);
    }
    if (download->status == 206) {
        (void)snprintf(out->range, sizeof out->range, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                       download->offset, download->offset + download->length - 1, info->size_bytes);
        add_header(out, &count, "Content-Range", out->range);
    }
}

static int refuse_download(struct call *call, const struct download *download,
                           const struct file_place *place, const struct file_info *info,
                           struct error *err)
{
    char range[48];
    const struct http_header more[] = {{"Content-Range", range}, {0}};

    if (download->status == 412) {
        (void)error_refuse(err, ERROR_PRECONDITION, "file", "'%.300s' is not what it was",
                           place->path);
        return api_file_failed(err);
    }
    (void)error_refuse(err, ERROR_RANGE, "file", "'%.300s' has %" PRIu64 " bytes", place->path,
                       info->size_bytes);
    (void)error_field(err, "Range");
    (void)snprintf(range, sizeof range, "bytes */%" PRIu64, info->size_bytes);
    api_on_error_with(call, err, more);
    return 0;
}

static int read_file(struct call *call, struct error *err)
{
    struct file_place place;
    struct download download = {.call = call};
    struct temporary *file = NULL;
    autofileinfo info = {0};
    struct download_headers headers;

    if (api_file_place(call, NULL, &place, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_fetch(call->core->sandboxes, &call->actor, &place, choose_part, &download, &info,
                   &file, err) < 0)
        return api_file_failed(err);
    if (download.status >= 400)
        return refuse_download(call, &download, &place, &info, err);
    if (file && download.status == 206) // it may have become shorter meanwhile
        download.length = file->size;
    make_headers(&download, &info, &headers);
    if (file)
        return client_watch_send_file(call, download.status, headers.list, file);
    // HEAD has the length of what GET would send; 304 has none
    (void)response_begin(call->response, download.status, headers.list,
                         download.status == 304 ? 0 : download.length);
    response_finish(call->response, true);
    return 0;
}

// ---- PUT /files?path=, POST /files/append ----

/* A file whose content is on its way from the client. */
struct writing {
    struct waiting_call waiting;
    struct file_place place; // its strings are ours
    struct file_change change;
};

static void writing_free(struct writing *writing)
{
    if (!writing)
        return;
    waiting_call_clear(&writing->waiting);
    free((void *)(uintptr_t)writing->place.sandbox_id);
    free((void *)(uintptr_t)writing->place.user);
    free((void *)(uintptr_t)writing->place.path);
    free((void *)(uintptr_t)writing->change.condition);
    free(writing);
}
DEFINE_AUTOPTR(writing)

static void on_content(void *data, struct collected *body, const struct error *failure)
{
    autoptr(writing) writing = data;
    struct waiting_call *waiting = &writing->waiting;
    autofileinfo info = {0};
    autoarena arena = {0};
    const struct file_content content = {.fd = body->fd, .length = body->size};
    struct error err = {0};

    if (!failure && file_save(waiting->core->sandboxes, &waiting->actor, &writing->place,
                              &writing->change, &content, &info, &err) < 0) {
        (void)api_file_failed(&err);
        failure = &err;
    }
    if (failure) {
        waiting_call_fail(waiting, failure);
        return;
    }
    struct call call = waiting_call_get(waiting);
    call.arena = &arena;
    (void)api_answer_file(&call, 200, writing->place.path, &info);
}

static int read_change(struct call *call, bool is_append, struct file_change *out,
                       struct error *err)
{
    struct api_condition condition;

    *out = (struct file_change){
        .makes_parents = query_bool(call->query, "createParents", false),
        .is_append = is_append,
        .uid = (uint32_t)query_integer(call->query, "uid", FILE_KEEP),
        .gid = (uint32_t)query_integer(call->query, "gid", FILE_KEEP),
    };
    if (api_read_mode(query_text(call->query, "mode"), FILE_KEEP, &out->mode, err) < 0 ||
        api_read_condition(call, &condition, err) < 0)
        return -1;
    out->condition = condition.etags;
    out->is_unless = condition.is_unless;
    return 0;
}

static char *copy_text(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

/* Before the content is taken: all that can be known without it. */
static int take_content(struct call *call, bool is_append, struct error *err)
{
    struct file_place place;
    struct file_change change;
    struct sandbox_status status;

    if (api_file_place(call, NULL, &place, err) < 0 ||
        read_change(call, is_append, &change, err) < 0 ||
        sandbox_status(call->core->sandboxes, &call->actor, place.sandbox_id, &status, err) < 0)
        return -1;
    struct writing *writing = xnew(struct writing);
    client_watch_start(call);
    waiting_call_init(&writing->waiting, call);
    writing->place = (struct file_place){copy_text(place.sandbox_id), copy_text(place.user),
                                         copy_text(place.path)};
    writing->change = change;
    writing->change.condition = copy_text(change.condition);
    collect_start(&writing->waiting, file_limit(call), on_content, writing);
    return 0;
}

static int write_file(struct call *call, struct error *err)
{
    return take_content(call, false, err);
}

static int append_file(struct call *call, struct error *err)
{
    return take_content(call, true, err);
}

// ---- DELETE /files?path=, GET /files/stat ----

static int delete_file(struct call *call, struct error *err)
{
    struct file_place place;
    struct api_condition condition;
    bool is_recursive = query_bool(call->query, "recursive", false);

    if (api_file_place(call, NULL, &place, err) < 0 ||
        api_read_condition(call, &condition, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_delete(call->core->sandboxes, &call->actor, &place, is_recursive, condition.etags,
                    condition.is_unless, err) < 0)
        return api_file_failed(err);
    return api_answer_empty(call);
}

static int stat_file(struct call *call, struct error *err)
{
    struct file_place place;
    autofileinfo info = {0};

    if (api_file_place(call, NULL, &place, err) < 0)
        return -1;
    client_watch_start(call);
    if (file_stat(call->core->sandboxes, &call->actor, &place,
                  query_bool(call->query, "follow", true), &info, err) < 0)
        return api_file_failed(err);
    if (!api_etag_is_among(call_header(call, "If-None-Match"), info.etag, false))
        return api_answer_file(call, 200, place.path, &info);
    char etag[FILE_ETAG + 4];
    (void)snprintf(etag, sizeof etag, "\"%s\"", info.etag);
    const struct http_header headers[] = {{"ETag", etag}, {0}};
    (void)response_send(call->response, 304, headers, NULL, 0);
    return 0;
}

// ---- the table ----

static const struct parameter read_query[] = {API_FILE_PARAMETERS, {0}};
static const struct parameter stat_query[] = {
    API_FILE_PARAMETERS,
    {"follow", PARAMETER_BOOL, .help = "what a link leads to, else the link; true when not given"},
    {0},
};
static const struct parameter write_query[] = {
    API_FILE_PARAMETERS,
    {"mode", PARAMETER_TEXT, .help = "\"0644\"; as it is, and 0644 for a new file, if not given"},
    {"uid", PARAMETER_INTEGER, .help = "owner, likewise", .minimum = 0, .maximum = 65535},
    {"gid", PARAMETER_INTEGER, .help = "group, likewise", .minimum = 0, .maximum = 65535},
    {"createParents", PARAMETER_BOOL, .help = "make missing directories"},
    {0},
};
static const struct parameter delete_query[] = {
    API_FILE_PARAMETERS,
    {"recursive", PARAMETER_BOOL, .help = "a directory with all that is in it"},
    {0},
};

static const struct route_answer bytes_answers[] = {
    {200, .content = "application/octet-stream"},
    {206, .content = "application/octet-stream"},
    {304},
    {0},
};
static const struct route_answer file_answers[] = {{200, api_file_fields}, {0}};
static const struct route_answer stat_answers[] = {{200, api_file_fields}, {304}, {0}};
static const struct route_answer empty_answers[] = {{204}, {0}};

const struct route api_file_routes[] = {
    {"GET", API_FILES, ROUTE_SLOW, ACCESS_KEY, BODY_NONE, read_file,
     .summary = "a file's bytes; Range, If-Match, If-None-Match, If-Modified-Since and If-Range "
                "are heeded",
     .query = read_query, .answers = bytes_answers, .needs = SCOPE_READ},
    {"PUT", API_FILES, ROUTE_QUICK, ACCESS_KEY, BODY_STREAM, write_file,
     .summary = "writes a file, all or nothing; If-Match and If-None-Match are heeded",
     .query = write_query, .answers = file_answers, .needs = SCOPE_RUN},
    {"DELETE", API_FILES, ROUTE_SLOW, ACCESS_KEY, BODY_NONE, delete_file,
     .summary = "removes a file or a directory; If-Match is heeded", .query = delete_query,
     .answers = empty_answers, .needs = SCOPE_RUN},
    {"POST", API_FILES "/append", ROUTE_QUICK, ACCESS_KEY, BODY_STREAM, append_file,
     .summary = "writes after the end of a file, which is made where it is missing. Repeated with "
                "its Idempotency-Key after the server broke off, it may be there twice",
     .query = write_query, .answers = file_answers, .needs = SCOPE_RUN},
    {"GET", API_FILES "/stat", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, stat_file,
     .summary = "what is known of a file", .query = stat_query, .answers = stat_answers,
     .needs = SCOPE_READ},
    {0},
};
