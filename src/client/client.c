/* SPDX-License-Identifier: Apache-2.0 */
/* The client: where it talks to, and requests from the first byte to the answer's head. */
#include "client/client_impl.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/data_dir.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/utf8.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 10000
#define IDLE_MS 120000
#define PROBLEM_MAX ((size_t)256 << 10)
#define CHUNK ((size_t)256 << 10)
#define CHUNK_HEAD 12

const char *burrow_version(void)
{
    return BURROW_VERSION;
}

// ---- the client ----

static char *copy_or_variable(const char *given, const char *variable)
{
    const char *text = given ? given : variable ? getenv(variable) : NULL;

    return text && *text ? xstrdup(text) : NULL;
}

static char *local_socket(void)
{
    const char *data = getenv("BURROW_DATA");
    char room[PATH_MAX];
    struct error ignored; // what has no absolute name is no address either, which is said of it

    if (!data || !*data)
        data = DATA_DIR_DEFAULT;
    (void)data_dir_resolve(&data, room, &ignored);
    return xasprintf("unix:%s/burrow.sock", data);
}

static bool is_header_text(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 127)
            return false;
    }
    return true;
}

int burrow_open(const struct burrow_options *options, struct burrow_client **out,
                struct burrow_error *err)
{
    static const struct burrow_options none = {0};
    const struct burrow_options *o = options ? options : &none;
    struct burrow_client *client = xnew(struct burrow_client);

    client->url = copy_or_variable(o->url, "BURROW_URL");
    if (!client->url)
        client->url = local_socket();
    client->api_key = copy_or_variable(o->api_key, "BURROW_API_KEY");
    client->tls_program = copy_or_variable(o->tls_program, NULL);
    client->ca_file = copy_or_variable(o->ca_file, "BURROW_CA_FILE");
    client->user_agent =
        o->user_agent ? xstrdup(o->user_agent) : xasprintf("libburrow/%s", BURROW_VERSION);
    client->patience = (struct wire_patience){
        .connect_ms = o->connect_timeout_ms > 0 ? o->connect_timeout_ms : CONNECT_MS,
        .idle_ms = o->timeout_ms ? o->timeout_ms : IDLE_MS,
        .cancel_fd = o->cancel_fd > 0 ? o->cancel_fd : -1,
    };
    int result = wire_target_parse(client->url, &client->target, err);
    if (result == 0 && ((client->api_key && !is_header_text(client->api_key)) ||
                        !is_header_text(client->user_agent)))
        result = client_fail(err, BURROW_INVALID, "the API key has characters that no key has");
    if (result < 0) {
        burrow_close(client);
        return -1;
    }
    *out = client;
    return 0;
}

void burrow_close(struct burrow_client *client)
{
    if (!client)
        return;
    wire_free(client->idle);
    wire_target_clear(&client->target);
    free(client->url);
    free(client->api_key);
    free(client->tls_program);
    free(client->ca_file);
    free(client->user_agent);
    free(client);
}

const char *burrow_url(const struct burrow_client *client)
{
    return client->url;
}

void burrow_set_timeout(struct burrow_client *client, int timeout_ms)
{
    client->patience.idle_ms = timeout_ms ? timeout_ms : IDLE_MS;
}

void burrow_set_cancel_fd(struct burrow_client *client, int cancel_fd)
{
    client->patience.cancel_fd = cancel_fd > 0 ? cancel_fd : -1;
}

int client_connect(struct burrow_client *client, struct wire **out, struct burrow_error *err)
{
    const struct wire_tls tls = {client->tls_program, client->ca_file};
    struct wire *idle = take(client->idle);

    if (idle && wire_is_fresh(idle)) {
        *out = idle;
        return 0;
    }
    wire_free(idle);
    return wire_open(&client->target, &client->patience, &tls, out, err);
}

int burrow_connect(struct burrow_client *client, struct burrow_error *err)
{
    struct wire *wire = NULL;

    if (client_connect(client, &wire, err) < 0)
        return -1;
    client->idle = wire;
    return 0;
}

// ---- paths ----

char *client_base64(const char *text)
{
    const size_t length = strlen(text);
    char *out = xcalloc(1, base64_length(length) + 1);

    base64_encode(text, length, out);
    return out;
}

static void add_encoded(struct buffer *to, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/:,=";
    struct error ignored;

    for (; *text; text++) {
        if (strchr(plain, *text))
            (void)buffer_add(to, text, 1, &ignored);
        else
            (void)buffer_addf(to, &ignored, "%%%02X", (unsigned char)*text);
    }
}

/* "path=" becomes "pathBase64=" for names that are not UTF-8, which the server takes so. */
static char *spell_path(struct buffer *query, const char *text)
{
    static const char name[] = "path=";
    const size_t length = strlen(text), size = sizeof name - 1;
    struct error ignored;

    if (query->length < size || memcmp(query->data + query->length - size, name, size) != 0 ||
        utf8_is_valid(text, length))
        return NULL;
    query->length--;
    (void)buffer_add_text(query, "Base64=", &ignored);
    return client_base64(text);
}

static void add_part(struct buffer *path, const char *text)
{
    bool is_whole = !path->length || path->data[path->length - 1] == '/'; // one part of a path
    autofree char *spelled = spell_path(path, text);
    autobuffer part = {0};
    struct error ignored;

    add_encoded(&part, spelled ? spelled : text);
    for (size_t i = 0; i < part.length; i++) {
        if (part.data[i] == '/' && is_whole)
            (void)buffer_add_text(path, "%2F", &ignored);
        else
            (void)buffer_add(path, part.data + i, 1, &ignored);
    }
}

char *burrow_path(const char *format, ...)
{
    struct buffer path = {0};
    struct error ignored;
    va_list arguments;

    va_start(arguments, format);
    for (const char *at = format; *at; at++) {
        if (at[0] == '%' && at[1] == 's') {
            const char *text = va_arg(arguments, const char *);
            add_part(&path, text ? text : "");
            at++;
        } else {
            (void)buffer_add(&path, at, 1, &ignored);
        }
    }
    va_end(arguments);
    return path.data ? path.data : xstrdup("");
}

// ---- sending ----

int client_write_head(const struct burrow_client *client, const char *method, const char *path,
                      const char *accept, struct buffer *to, struct burrow_error *err)
{
    struct error error = {0};

    if (strpbrk(path, " \t\r\n"))
        return client_fail(err, BURROW_INVALID, "the path '%.200s' must be percent-encoded", path);
    int result = buffer_addf(to, &error,
                             "%s %s/api/v1%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n"
                             "Accept: %s\r\n",
                             method, client->target.base, path, client->target.authority,
                             client->user_agent, accept ? accept : "application/json");
    if (result == 0 && client->api_key)
        result = buffer_addf(to, &error, "Authorization: Bearer %s\r\n", client->api_key);
    return result < 0 ? client_fail_from(err, BURROW_LOCAL, &error) : 0;
}

static int add_body_head(const struct burrow_body *body, struct buffer *to,
                         struct burrow_error *err)
{
    struct error error = {0};
    bool has_length = body->data || (body->has_fd && body->length != BURROW_UNTIL_END);
    const char *type = body->type   ? body->type
                       : body->data ? "application/json"
                                    : "application/octet-stream";
    int result = buffer_addf(to, &error, "Content-Type: %s\r\n", type);

    if (result == 0 && has_length)
        result =
            buffer_addf(to, &error, "Content-Length: %llu\r\n", (unsigned long long)body->length);
    else if (result == 0)
        result = buffer_add_text(to, "Transfer-Encoding: chunked\r\n", &error);
    return result < 0 ? client_fail_from(err, BURROW_LOCAL, &error) : 0;
}

/* The next bytes of a body that is not in memory: how many, 0 at its end, -1 with errno. */
static ssize_t read_body(const struct burrow_body *body, void *to, size_t size)
{
    ssize_t got;

    if (body->read)
        return body->read(body->context, to, size);
    do
        got = read(body->fd, to, size);
    while (got < 0 && errno == EINTR);
    return got;
}

/* A pipe may have nothing for a long time: 1 when it has; 0 where the server answered before all was sent; -1. */
static int wait_for_body(struct burrow_client *client, const struct wire *wire,
                         const struct burrow_body *body, struct burrow_error *err)
{
    struct pollfd fds[] = {{.fd = body->fd, .events = POLLIN},
                           {.fd = client->patience.cancel_fd, .events = POLLIN},
                           {.fd = wire->fd, .events = POLLIN}};

    if (!body->has_fd || body->length != BURROW_UNTIL_END)
        return 1;
    while (poll(fds, 3, -1) < 0) {
        if (errno != EINTR)
            return client_fail_sys(err, BURROW_LOCAL, "wait for what is to be sent");
    }
    if (fds[1].revents)
        return client_fail(err, BURROW_CANCELLED, "interrupted");
    return fds[2].revents ? 0 : 1;
}

static int send_pieces(struct burrow_client *client, struct wire *wire,
                       const struct burrow_body *body, struct burrow_error *err)
{
    bool is_chunked = !body->has_fd || body->length == BURROW_UNTIL_END;
    autofree char *room = malloc(CHUNK_HEAD + CHUNK + 2);
    uint64_t sent = 0;

    if (!room)
        return client_fail_sys(err, BURROW_LOCAL, "send a body");
    char *bytes = room + CHUNK_HEAD;
    for (;;) {
        size_t most =
            !is_chunked && body->length - sent < CHUNK ? (size_t)(body->length - sent) : CHUNK;
        int ready = wait_for_body(client, wire, body, err);
        if (ready <= 0)
            return ready;
        ssize_t got = most ? read_body(body, bytes, most) : 0;
        if (got < 0)
            return client_fail_sys(err, errno == ECANCELED ? BURROW_CANCELLED : BURROW_LOCAL,
                                   "read what is to be sent");
        if (got == 0 && !is_chunked)
            return sent == body->length ? 0
                                        : client_fail(err, BURROW_LOCAL,
                                                      "the file became shorter while it was sent");
        size_t length = (size_t)got;
        const char *from = bytes;
        if (is_chunked) {
            char head[CHUNK_HEAD + 1];
            int digits = snprintf(head, sizeof head, "%zx\r\n", length);
            memcpy(bytes - digits, head, (size_t)digits);
            memcpy(bytes + length, "\r\n", 2);
            from -= digits;
            length += (size_t)digits + 2;
        }
        if (wire_send(wire, &client->patience, from, length, err) < 0)
            return -1;
        sent += (uint64_t)got;
        if (got && body->on_progress)
            body->on_progress(body->context, sent);
        if (got == 0)
            return 0;
    }
}

static int send_request(struct burrow_client *client, struct wire *wire,
                        const struct client_request *request, struct burrow_error *err)
{
    const struct burrow_body *body = request->body;
    struct error error = {0};
    autobuffer head = {0};
    bool has_body = body && (body->data || body->has_fd || body->read);

    if (client_write_head(client, request->method, request->path, request->accept, &head, err) <
            0 ||
        (has_body && add_body_head(body, &head, err) < 0))
        return -1;
    if (!has_body && strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0 &&
        buffer_add_text(&head, "Content-Length: 0\r\n", &error) < 0)
        return client_fail_from(err, BURROW_LOCAL, &error);
    if ((request->headers && buffer_add_text(&head, request->headers, &error) < 0) ||
        buffer_add_text(&head, "\r\n", &error) < 0 ||
        (has_body && body->data && buffer_add(&head, body->data, body->length, &error) < 0))
        return client_fail_from(err, BURROW_LOCAL, &error);
    if (wire_send(wire, &client->patience, head.data, head.length, err) < 0)
        return -1;
    return has_body && !body->data ? send_pieces(client, wire, body, err) : 0;
}

// ---- reading ----

static int fail_reading(struct burrow_error *err, const struct error *error)
{
    return client_fail_from(err, error_is(error, ERROR_GONE) ? BURROW_BROKEN : BURROW_PROTOCOL,
                            error);
}

/* Bytes that are there are taken first; then the connection is read. */
int client_read_more(struct burrow_stream *stream, bool is_now, struct burrow_error *err)
{
    struct wire *wire = stream->wire;
    struct error error = {0};
    size_t used = 0;

    for (;;) {
        if (stream->reader.state == REPLY_DONE)
            return 0;
        if (wire->at < wire->end) {
            if (reply_reader_take(&stream->reader, wire->in + wire->at, wire->end - wire->at, &used,
                                  &stream->piece, &stream->piece_length, &error) < 0)
                return fail_reading(err, &error);
            wire->at += used;
            return 1;
        }
        int got = is_now ? wire_receive_now(wire, err)
                         : wire_receive(wire, &stream->client->patience, err);
        if (got < 0 || got == 2)
            return got;
        if (got == 0 && reply_reader_end(&stream->reader, wire->is_cut, &error) < 0)
            return fail_reading(err, &error);
        if (got == 0)
            return 0;
    }
}

static void copy_text(char *to, size_t size, const struct data_value *map, const char *key)
{
    const struct data_value *value = value_get(map, key);

    if (value && value->kind == VALUE_STRING)
        (void)snprintf(to, size, "%s", value->text);
    quote_scrub(to);
}

static void read_problem(const struct buffer *text, int status, struct burrow_error *err)
{
    autoptr(data_document) document = NULL;
    struct error ignored;

    (void)client_fail(err, client_fail_kind(status), "the server answered with status %d", status);
    err->status = status;
    if (!text->length || json_read("", text->data, text->length, NULL, &document, &ignored) < 0)
        return;
    copy_text(err->text, sizeof err->text, document->root, "detail");
    copy_text(err->code, sizeof err->code, document->root, "code");
    copy_text(err->remedy, sizeof err->remedy, document->root, "remedy");
    copy_text(err->request_id, sizeof err->request_id, document->root, "requestId");
    if (!*err->code && !value_get(document->root, "detail"))
        (void)snprintf(err->text, sizeof err->text,
                       "the server answered with status %d: is it a burrow server?", status);
}

int client_read_problem(struct burrow_stream *stream, struct burrow_error *err)
{
    int status = stream->reader.status;
    autobuffer text = {.maximum = PROBLEM_MAX};
    struct burrow_error ignored;
    struct error full;
    int more;

    do {
        if (stream->piece_length &&
            buffer_add(&text, stream->piece, stream->piece_length, &full) < 0)
            break; // no problem of burrow's is so long
        stream->piece_length = 0;
        more = client_read_more(stream, false, &ignored);
    } while (more == 1);
    read_problem(&text, status, err);
    return -1;
}

int client_read_head(struct burrow_stream *stream, struct burrow_error *err)
{
    while (stream->reader.state == REPLY_HEAD) {
        if (client_read_more(stream, false, err) < 0)
            return -1;
    }
    if (stream->reader.status >= 400)
        return client_read_problem(stream, err);
    if (stream->reader.status >= 300)
        return client_fail(err, BURROW_PROTOCOL,
                           "the server answered with status %d and leads elsewhere: give its own "
                           "address",
                           stream->reader.status);
    return 0;
}

int client_send(struct burrow_client *client, const struct client_request *request,
                struct burrow_stream **out, struct burrow_error *err)
{
    struct burrow_stream *stream = xnew(struct burrow_stream);
    struct burrow_error answer;

    stream->client = client;
    reply_reader_init(&stream->reader, strcmp(request->method, "HEAD") == 0);
    int result = client_connect(client, &stream->wire, err);
    if (result == 0)
        result = send_request(client, stream->wire, request, err);
    // a server that refuses early answers, and then reads no more
    if (result < 0 && stream->wire && err->kind == BURROW_BROKEN &&
        client_read_head(stream, &answer) < 0 && answer.status)
        *err = answer;
    if (result < 0) {
        burrow_stream_close(stream);
        return -1;
    }
    *out = stream;
    return 0;
}

int client_begin(struct burrow_client *client, const struct client_request *request,
                 struct burrow_stream **out, struct burrow_error *err)
{
    struct burrow_stream *stream = NULL;

    if (client_send(client, request, &stream, err) < 0)
        return -1;
    if (client_read_head(stream, err) < 0) {
        burrow_stream_close(stream);
        return -1;
    }
    *out = stream;
    return 0;
}
