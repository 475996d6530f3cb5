/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox; see burrow.h. What is larger than the server takes or gives at once goes in parts. */
#include "client/client_impl.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

// A file of so many bytes is not sent before the server's limit is known.
#define ASK_FROM ((uint64_t)16 << 20)
#define USUAL_LIMIT ((uint64_t)1 << 30) // where the server does not tell
#define PART_BYTES ((uint64_t)256 << 20)
#define TAKEN_HERE "the sandbox changed '%.300s' while it was "

/* A key that may not ask has the usual one, and so has a server that does not know the question. */
int burrow_file_limit(struct burrow_client *client, uint64_t *out, struct burrow_error *err)
{
    struct burrow_answer *answer = NULL;

    if (!client->file_limit_bytes) {
        if (burrow_ask(client, "GET", "/system/limits", NULL, &answer, err) < 0 &&
            err->status != 403 && err->status != 404)
            return -1;
        int64_t told = burrow_integer(burrow_get(burrow_answer_value(answer), "fileBytes"), 0);
        client->file_limit_bytes = told > 0 ? (uint64_t)told : USUAL_LIMIT;
        burrow_answer_free(answer);
    }
    *out = client->file_limit_bytes;
    return 0;
}

static int part_size(struct burrow_client *client, uint64_t *out, struct burrow_error *err)
{
    if (burrow_file_limit(client, out, err) < 0)
        return -1;
    *out = *out < PART_BYTES ? *out : PART_BYTES;
    return 0;
}

static void write_path(struct json_writer *json, const char *key, const char *otherwise,
                       const char *path)
{
    bool is_text = utf8_is_valid(path, strlen(path));
    autofree char *base64 = is_text ? NULL : client_base64(path);

    json_key(json, is_text ? key : otherwise);
    json_string(json, is_text ? path : base64);
}

/* More than goes at once. What the sandbox's disk has no room for has none in parts either. */
static bool is_too_large(const struct burrow_error *err)
{
    return err->status == 413 && strcmp(err->code, "disk_full") != 0;
}

// ---- to the sandbox ----

struct sending {
    struct burrow_client *client;
    const struct burrow_transfer *what;
    uint64_t total;   // BURROW_UNTIL_END: not known
    uint64_t sent;    // in the parts before
    uint64_t done;    // all together
    const char *path; // there: of the file, or of one beside it until it is whole
    unsigned mode;
    int64_t uid, gid; // of the file that is replaced; -1: there is none
};

static void on_sent(void *context, uint64_t sent)
{
    struct sending *sending = context;
    const struct burrow_transfer *what = sending->what;

    sending->done = sending->sent + sent;
    if (what->on_progress)
        what->on_progress(what->context, sending->done,
                          sending->total == BURROW_UNTIL_END ? 0 : sending->total);
}

static char *target_of(const struct sending *sending, bool is_more)
{
    autofree char *path =
        burrow_path(is_more ? "/sandboxes/%s/files/append?path=%s" : "/sandboxes/%s/files?path=%s",
                    sending->what->sandbox, sending->path, NULL);
    char rest[80] = "";

    if (!is_more && sending->mode)
        (void)snprintf(rest, sizeof rest, "&mode=%04o", sending->mode & 07777);
    if (!is_more && sending->uid >= 0 && sending->gid >= 0)
        (void)snprintf(rest + strlen(rest), sizeof rest - strlen(rest), "&uid=%lld&gid=%lld",
                       (long long)sending->uid, (long long)sending->gid);
    return xasprintf("%s%s%s", path, rest,
                     !is_more && sending->what->makes_parents ? "&createParents=true" : "");
}

/* The next `length` bytes, as the file or after its end; *size is what it has then. */
static int send_part(struct sending *sending, uint64_t length, bool is_more, uint64_t *size,
                     struct burrow_error *err)
{
    const struct burrow_body body = {.has_fd = true,
                                     .fd = sending->what->fd,
                                     .length = length,
                                     .on_progress = on_sent,
                                     .context = sending};
    autofree char *target = target_of(sending, is_more);
    struct burrow_answer *answer = NULL;

    if (burrow_send(sending->client, is_more ? "POST" : "PUT", target, &body, &answer, err) < 0)
        return -1;
    *size = (uint64_t)burrow_integer(burrow_get(burrow_answer_value(answer), "sizeBytes"), -1);
    burrow_answer_free(answer);
    sending->sent = sending->done;
    return 0;
}

static int send_all_parts(void *context, struct burrow_error *err)
{
    struct sending *sending = context;
    uint64_t size = 0, most;

    if (part_size(sending->client, &most, err) < 0)
        return -1;
    while (sending->sent < sending->total) {
        uint64_t left = sending->total - sending->sent, part = left < most ? left : most;
        if (send_part(sending, part, sending->sent > 0, &size, err) < 0)
            return -1;
        if (size != sending->sent)
            return client_fail(err, BURROW_CONFLICT, TAKEN_HERE "written", sending->what->path);
    }
    return 0;
}

/* What is at the path now: whose it is, and whether a file can be put in its place. A link stays one, so what it leads to is written in place. */
static int look_at_old(struct sending *sending, bool *is_replaced, struct burrow_error *err)
{
    autofree char *target = burrow_path("/sandboxes/%s/files/stat?follow=false&path=%s",
                                        sending->what->sandbox, sending->what->path, NULL);
    struct burrow_answer *answer = NULL;

    *is_replaced = true;
    if (burrow_ask(sending->client, "GET", target, NULL, &answer, err) < 0)
        return err->status == 404 ? 0 : -1;
    const struct burrow_value *file = burrow_answer_value(answer);
    const char *kind = burrow_text(burrow_get(file, "kind"));
    const char *mode = burrow_text(burrow_get(file, "mode"));
    *is_replaced = kind && strcmp(kind, "file") == 0;
    if (*is_replaced) {
        sending->uid = burrow_integer(burrow_get(file, "uid"), -1);
        sending->gid = burrow_integer(burrow_get(file, "gid"), -1);
        if (!sending->mode && mode)
            sending->mode = (unsigned)strtoul(mode, NULL, 8) & 01777; // as where it goes whole
    }
    burrow_answer_free(answer);
    return 0;
}

static char *name_beside(const char *path)
{
    const char *slash = strrchr(path, '/');
    uint64_t number = 0;

    (void)!getrandom(&number, sizeof number, 0);
    return xasprintf("%.*s.burrow-%016llx", slash ? (int)(slash + 1 - path) : 0, path,
                     (unsigned long long)number);
}

static int put_in_place(const struct sending *sending, struct burrow_error *err)
{
    autofree char *target = burrow_path("/sandboxes/%s/files/move", sending->what->sandbox, NULL);
    autobuffer text = {0};
    struct json_writer json;
    struct error error = {0};

    json_writer_init(&json, &text);
    json_map_begin(&json);
    write_path(&json, "path", "pathBase64", sending->path);
    write_path(&json, "to", "toBase64", sending->what->path);
    json_key(&json, "overwrite");
    json_bool(&json, true);
    json_map_end(&json);
    if (json_writer_finish(&json, &error) < 0)
        return client_fail_from(err, BURROW_LOCAL, &error);
    return burrow_ask(sending->client, "POST", target, text.data, NULL, err);
}

#define REMOVE_MS 3000 // until it is left to the sandbox's owner

/* Also after a cancel, since nobody else knows its name; but not for long: the answer's first byte says that it was done or not. */
static void remove_part(const struct sending *sending)
{
    const struct wire_patience before = sending->client->patience;
    autofree char *target =
        burrow_path("/sandboxes/%s/files?path=%s", sending->what->sandbox, sending->path, NULL);
    struct burrow_stream *stream = NULL;
    struct burrow_error ignored;

    sending->client->patience.cancel_fd = -1;
    sending->client->patience.connect_ms = sending->client->patience.idle_ms = REMOVE_MS;
    if (burrow_send_ahead(sending->client, "DELETE", target, NULL, &stream, &ignored) == 0) {
        struct pollfd answer = {.fd = burrow_stream_fd(stream), .events = POLLIN};
        (void)poll(&answer, 1, REMOVE_MS);
        burrow_stream_close(stream);
    }
    sending->client->patience = before;
}

/* The caller knows the file by its own name. */
static void tell_own_name(const struct sending *sending, struct burrow_error *err)
{
    char *at = strstr(err->text, sending->path);

    if (!at)
        return;
    autofree char *text = xasprintf("%.*s%s%s", (int)(at - err->text), err->text,
                                    sending->what->path, at + strlen(sending->path));
    (void)snprintf(err->text, sizeof err->text, "%s", text);
}

/* Beside the file, which is replaced when all of it is there. */
static int send_beside(struct sending *sending,
                       int (*send_parts)(void *context, struct burrow_error *err), void *context,
                       struct burrow_error *err)
{
    autofree char *beside = name_beside(sending->what->path);
    bool is_replaced;

    if (look_at_old(sending, &is_replaced, err) < 0)
        return -1;
    if (!is_replaced)
        return send_parts(context, err);
    sending->path = beside;
    int result = send_parts(context, err);
    if (result == 0)
        result = put_in_place(sending, err);
    if (result < 0) {
        remove_part(sending);
        tell_own_name(sending, err);
    }
    return result;
}

/* What was sent of it in vain is sent again. */
static int begin_again(struct sending *sending, off_t start, struct burrow_error *err)
{
    if (lseek(sending->what->fd, start, SEEK_SET) < 0)
        return client_fail_sys(err, BURROW_LOCAL, "read what is to be sent");
    sending->sent = sending->done = 0;
    return send_beside(sending, send_all_parts, sending, err);
}

// ---- what comes out of a pipe ----

/* At once. It is read before it is sent: a request waits for no pipe, which may pause for longer than the server waits for a body. */
#define AHEAD_BYTES ((size_t)4 << 20)

struct piped {
    struct sending *sending;
    char *ahead;
    size_t n_ahead;
    bool is_over;
};

static void piped_clear(struct piped *piped)
{
    free(piped->ahead);
}

/* Some bytes; 0 at the end; -1 with errno. */
static ssize_t read_piped(struct piped *piped, void *to, size_t size)
{
    struct pollfd fds[] = {{.fd = piped->sending->what->fd, .events = POLLIN},
                           {.fd = piped->sending->client->patience.cancel_fd, .events = POLLIN}};
    ssize_t got;

    do {
        while (poll(fds, 2, -1) < 0) {
            if (errno != EINTR)
                return -1;
        }
        if (fds[1].revents) {
            errno = ECANCELED;
            return -1;
        }
        got = read(fds[0].fd, to, size);
    } while (got < 0 && errno == EINTR);
    piped->is_over = got == 0;
    return got;
}

/* As much as there is room for, or all that is left. */
static int read_ahead(struct piped *piped, struct burrow_error *err)
{
    piped->n_ahead = 0;
    while (!piped->is_over && piped->n_ahead < AHEAD_BYTES) {
        ssize_t got =
            read_piped(piped, piped->ahead + piped->n_ahead, AHEAD_BYTES - piped->n_ahead);
        if (got < 0)
            return client_fail_sys(err, errno == ECANCELED ? BURROW_CANCELLED : BURROW_LOCAL,
                                   "read what is to be sent");
        piped->n_ahead += (size_t)got;
    }
    return 0;
}

/* *size is what the file has then. */
static int send_piece(struct sending *sending, const char *bytes, size_t length, uint64_t *size,
                      struct burrow_error *err)
{
    const struct burrow_body body = {
        .type = "application/octet-stream", .data = bytes, .length = length};
    bool is_more = sending->sent > 0;
    autofree char *target = target_of(sending, is_more);
    struct burrow_answer *answer = NULL;

    if (burrow_send(sending->client, is_more ? "POST" : "PUT", target, &body, &answer, err) < 0)
        return -1;
    *size = (uint64_t)burrow_integer(burrow_get(burrow_answer_value(answer), "sizeBytes"), -1);
    burrow_answer_free(answer);
    on_sent(sending, length);
    sending->sent = sending->done;
    return 0;
}

static int send_piped_parts(void *context, struct burrow_error *err)
{
    struct piped *piped = context;
    struct sending *sending = piped->sending;
    uint64_t most, size = 0;

    if (part_size(sending->client, &most, err) < 0)
        return -1;
    while (piped->n_ahead) {
        for (size_t at = 0; at < piped->n_ahead;) {
            size_t left = piped->n_ahead - at, part = left < most ? left : (size_t)most;
            if (send_piece(sending, piped->ahead + at, part, &size, err) < 0)
                return -1;
            if (size != sending->sent)
                return client_fail(err, BURROW_CONFLICT, TAKEN_HERE "written", sending->what->path);
            at += part;
        }
        if (read_ahead(piped, err) < 0)
            return -1;
    }
    return 0;
}

static int send_pipe(struct sending *sending, struct burrow_error *err)
{
    autoclear(piped) piped = {.sending = sending, .ahead = xcalloc(1, AHEAD_BYTES)};
    uint64_t size;

    if (read_ahead(&piped, err) < 0)
        return -1;
    if (!piped.is_over)
        return send_beside(sending, send_piped_parts, &piped, err);
    if (send_piece(sending, piped.ahead, piped.n_ahead, &size, err) == 0)
        return 0;
    return piped.n_ahead && is_too_large(err) ? send_beside(sending, send_piped_parts, &piped, err)
                                              : -1;
}

static int send_file(struct sending *sending, struct burrow_error *err)
{
    off_t start = lseek(sending->what->fd, 0, SEEK_CUR);
    bool can_seek = sending->total != BURROW_UNTIL_END && start >= 0;
    uint64_t limit = BURROW_UNTIL_END, size;

    if (can_seek && sending->total >= ASK_FROM &&
        burrow_file_limit(sending->client, &limit, err) < 0)
        return -1;
    if (can_seek && sending->total > limit)
        return send_beside(sending, send_all_parts, sending, err);
    if (sending->total == BURROW_UNTIL_END)
        return send_pipe(sending, err);
    if (send_part(sending, sending->total, false, &size, err) == 0)
        return 0;
    return can_seek && sending->total && is_too_large(err) ? begin_again(sending, start, err) : -1;
}

int burrow_file_send(struct burrow_client *client, const struct burrow_transfer *what,
                     uint64_t *bytes, struct burrow_error *err)
{
    struct sending sending = {.client = client,
                              .what = what,
                              .total = BURROW_UNTIL_END,
                              .path = what->path,
                              .mode = what->mode,
                              .uid = -1,
                              .gid = -1};
    struct stat info;
    off_t at;

    if (fstat(what->fd, &info) < 0)
        return client_fail_sys(err, BURROW_LOCAL, "read what is to be sent");
    if (S_ISREG(info.st_mode) && (at = lseek(what->fd, 0, SEEK_CUR)) >= 0)
        sending.total = info.st_size > at ? (uint64_t)(info.st_size - at) : 0;
    if (send_file(&sending, err) < 0)
        return -1;
    if (bytes)
        *bytes = sending.done;
    return 0;
}

int burrow_file_write(struct burrow_client *client, const char *sandbox, const char *path, int fd,
                      unsigned mode, bool makes_parents, struct burrow_error *err)
{
    const struct burrow_transfer what = {
        .sandbox = sandbox, .path = path, .fd = fd, .mode = mode, .makes_parents = makes_parents};

    return burrow_file_send(client, &what, NULL, err);
}

// ---- from the sandbox ----

struct fetching {
    struct burrow_client *client;
    const struct burrow_transfer *what;
    uint64_t total; // 0: not known
    uint64_t done;
    off_t start; // of it in a file that has nothing there yet: zeros become holes; -1: it is none
};

static int refuse_size(const struct fetching *fetching, struct burrow_error *err)
{
    return client_fail(err, BURROW_LIMIT, "'%.300s' is larger than %llu bytes",
                       fetching->what->path, (unsigned long long)fetching->what->most_bytes);
}

static int write_piece(const struct fetching *fetching, const char *bytes, size_t length)
{
    int fd = fetching->what->fd;

    if (fetching->start < 0)
        return fd_write_all(fd, bytes, length);
    uint64_t at = (uint64_t)fetching->start + fetching->done;
    return fd_write_sparse(fd, at, bytes, length) < 0 ? -1 : 0;
}

/* What comes in parts can be of any size, and cost a guest nothing: a file of zeros does not fill the disk here. */
static void look_for_end(struct fetching *fetching)
{
    int fd = fetching->what->fd;
    off_t at = lseek(fd, 0, SEEK_CUR);
    struct stat info;

    if (at >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= at &&
        !(fcntl(fd, F_GETFL) & O_APPEND))
        fetching->start = at;
}

static int set_end(const struct fetching *fetching, struct burrow_error *err)
{
    int fd = fetching->what->fd;
    off_t end = fetching->start + (off_t)fetching->done;

    if (fetching->start >= 0 && (ftruncate(fd, end) < 0 || lseek(fd, end, SEEK_SET) < 0))
        return client_fail_sys(err, BURROW_LOCAL, "write what was read");
    return 0;
}

/* At most `most` bytes of the answer, all there are. */
static int take_bytes(struct fetching *fetching, struct burrow_stream *stream, uint64_t most,
                      struct burrow_error *err)
{
    const struct burrow_transfer *what = fetching->what;
    char bytes[65536];
    ssize_t got;

    while ((got = burrow_stream_read(stream, bytes, sizeof bytes, err)) > 0) {
        if ((uint64_t)got > most)
            return client_fail(err, BURROW_PROTOCOL, "the server sent more than was asked for");
        if (what->most_bytes && (uint64_t)got > what->most_bytes - fetching->done)
            return refuse_size(fetching, err);
        if (write_piece(fetching, bytes, (size_t)got) < 0)
            return client_fail_sys(err, BURROW_LOCAL, "write what was read");
        most -= (uint64_t)got;
        fetching->done += (uint64_t)got;
        if (what->on_progress)
            what->on_progress(what->context, fetching->done, fetching->total);
    }
    return got < 0 ? -1 : 0;
}

static int fetch_part(struct fetching *fetching, const char *headers, uint64_t most,
                      struct burrow_error *err)
{
    autofree char *target = burrow_path("/sandboxes/%s/files?path=%s", fetching->what->sandbox,
                                        fetching->what->path, NULL);
    const struct client_request request = {
        .method = "GET", .path = target, .accept = "*/*", .headers = headers};
    struct burrow_stream *stream = NULL;

    if (client_begin(fetching->client, &request, &stream, err) < 0)
        return -1;
    if (!headers && burrow_stream_length(stream) > 0)
        fetching->total = (uint64_t)burrow_stream_length(stream);
    int result = take_bytes(fetching, stream, most, err);
    burrow_stream_close(stream);
    return result;
}

/* One after the other, all of the version that `etag` names. */
static int fetch_parts(struct fetching *fetching, const char *etag, uint64_t most,
                       struct burrow_error *err)
{
    bool is_named = etag && etag[strcspn(etag, "\r\n")] == '\0';

    while (fetching->done < fetching->total) {
        uint64_t from = fetching->done, left = fetching->total - from;
        uint64_t part = left < most ? left : most;
        autofree char *headers =
            xasprintf("Range: bytes=%llu-%llu\r\n%s%s%s", (unsigned long long)from,
                      (unsigned long long)(from + part - 1), is_named ? "If-Match: " : "",
                      is_named ? etag : "", is_named ? "\r\n" : "");
        int result = fetch_part(fetching, headers, part, err);
        bool is_other =
            result < 0 ? err->status == 412 || err->status == 416 : fetching->done != from + part;
        if (is_other)
            return client_fail(err, BURROW_CONFLICT, TAKEN_HERE "read", fetching->what->path);
        if (result < 0)
            return -1;
    }
    return set_end(fetching, err);
}

static int fetch_in_parts(struct fetching *fetching, struct burrow_error *err)
{
    const struct burrow_transfer *what = fetching->what;
    struct burrow_answer *answer = NULL;
    uint64_t most;

    if (part_size(fetching->client, &most, err) < 0 ||
        burrow_file_stat(fetching->client, what->sandbox, what->path, &answer, err) < 0)
        return -1;
    const struct burrow_value *file = burrow_answer_value(answer);
    int64_t size = burrow_integer(burrow_get(file, "sizeBytes"), -1);
    fetching->total = size > 0 ? (uint64_t)size : 0;
    look_for_end(fetching);
    int result;
    if (size <= 0) // it was too large a moment ago
        result = client_fail(err, size < 0 ? BURROW_PROTOCOL : BURROW_CONFLICT, TAKEN_HERE "read",
                             what->path);
    else if (what->most_bytes && fetching->total > what->most_bytes)
        result = refuse_size(fetching, err);
    else
        result = fetch_parts(fetching, burrow_text(burrow_get(file, "etag")), most, err);
    burrow_answer_free(answer);
    return result;
}

int burrow_file_fetch(struct burrow_client *client, const struct burrow_transfer *what,
                      uint64_t *bytes, struct burrow_error *err)
{
    struct fetching fetching = {.client = client, .what = what, .start = -1};
    int result = fetch_part(&fetching, NULL, UINT64_MAX, err);

    if (result < 0 && is_too_large(err)) // told before the first byte
        result = fetch_in_parts(&fetching, err);
    if (result == 0 && bytes)
        *bytes = fetching.done;
    return result;
}

int burrow_file_read(struct burrow_client *client, const char *sandbox, const char *path, int fd,
                     struct burrow_error *err)
{
    const struct burrow_transfer what = {.sandbox = sandbox, .path = path, .fd = fd};

    return burrow_file_fetch(client, &what, NULL, err);
}

// ---- the rest ----

int burrow_file_stat(struct burrow_client *client, const char *sandbox, const char *path,
                     struct burrow_answer **out, struct burrow_error *err)
{
    autofree char *target = burrow_path("/sandboxes/%s/files/stat?path=%s", sandbox, path, NULL);

    return burrow_ask(client, "GET", target, NULL, out, err);
}

int burrow_file_remove(struct burrow_client *client, const char *sandbox, const char *path,
                       bool is_recursive, struct burrow_error *err)
{
    autofree char *target = burrow_path("/sandboxes/%s/files?path=%s&recursive=%s", sandbox, path,
                                        is_recursive ? "true" : "false", NULL);

    return burrow_ask(client, "DELETE", target, NULL, NULL, err);
}

int burrow_directory_make(struct burrow_client *client, const char *sandbox, const char *path,
                          bool makes_parents, struct burrow_error *err)
{
    autofree char *target = burrow_path("/sandboxes/%s/files/mkdir", sandbox, NULL);
    autobuffer text = {0};
    struct json_writer json;
    struct error error = {0};

    json_writer_init(&json, &text);
    json_map_begin(&json);
    write_path(&json, "path", "pathBase64", path);
    json_key(&json, "createParents");
    json_bool(&json, makes_parents);
    json_map_end(&json);
    if (json_writer_finish(&json, &error) < 0)
        return client_fail_from(err, BURROW_LOCAL, &error);
    return burrow_ask(client, "POST", target, text.data, NULL, err);
}
