/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as they come: bytes, records, and whole ones as a tree; requests whose body is sent beside others. */
#include "client/client_impl.h"

#include "base/auto.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX ((size_t)64 << 20)
#define RECORD_MAX ((size_t)16 << 20)
#define UPLOAD_PIECE ((size_t)64 << 10)
#define PIECES_NOW 64 // without a record, until the caller has his turn again

// ---- streams ----

int burrow_stream_open(struct burrow_client *client, const char *method, const char *path,
                       const char *accept, const struct burrow_body *body,
                       struct burrow_stream **out, struct burrow_error *err)
{
    const struct client_request request = {
        .method = method, .path = path, .accept = accept ? accept : "*/*", .body = body};

    return client_begin(client, &request, out, err);
}

/* A connection whose answer was read to its end serves the next request. */
void burrow_stream_close(struct burrow_stream *stream)
{
    if (!stream)
        return;
    bool is_whole = stream->wire && stream->reader.state == REPLY_DONE && !stream->reader.is_last;
    if (is_whole && !stream->client->idle)
        stream->client->idle = take(stream->wire);
    wire_free(stream->wire);
    reply_reader_clear(&stream->reader);
    buffer_clear(&stream->line);
    data_document_free(stream->document);
    free(stream);
}

/* Until there is a piece of the body: 1, 0 at the end, 2 nothing now, -1. */
static int need_piece(struct burrow_stream *stream, bool is_now, struct burrow_error *err)
{
    while (stream->piece_length == 0) {
        int more = client_read_more(stream, is_now, err);
        if (more != 1)
            return more;
    }
    return 1;
}

ssize_t burrow_stream_read(struct burrow_stream *stream, void *to, size_t size,
                           struct burrow_error *err)
{
    int more = size ? need_piece(stream, false, err) : 0;

    if (more <= 0)
        return more;
    size_t part = stream->piece_length < size ? stream->piece_length : size;
    memcpy(to, stream->piece, part);
    stream->piece += part;
    stream->piece_length -= part;
    return (ssize_t)part;
}

static int read_record(struct burrow_stream *stream, const char *text, size_t length,
                       const struct burrow_value **out, struct burrow_error *err)
{
    const struct json_limits limits = {.bytes = RECORD_MAX, .memory = 4 * RECORD_MAX};
    struct error error = {0};

    data_document_free(stream->document);
    stream->document = NULL;
    if (json_read("a record of the server", text, length, &limits, &stream->document, &error) < 0)
        return client_fail_from(err, BURROW_PROTOCOL, &error);
    *out = (const struct burrow_value *)stream->document->root;
    return 1;
}

/* A line of the stream, from one piece where it is whole there. */
static int next_record(struct burrow_stream *stream, bool is_now, const struct burrow_value **out,
                       struct burrow_error *err)
{
    struct error error = {0};
    unsigned n_pieces = 0;

    stream->line.maximum = RECORD_MAX;
    for (;;) {
        if (is_now && n_pieces++ == PIECES_NOW)
            return 2;
        int more = need_piece(stream, is_now, err);
        if (more != 1)
            return more;
        const char *end = memchr(stream->piece, '\n', stream->piece_length);
        size_t part = end ? (size_t)(end - stream->piece) : stream->piece_length;
        const char *text = stream->piece;
        size_t length = part;
        if (stream->line.length || !end) {
            if (buffer_add(&stream->line, stream->piece, part, &error) < 0)
                return client_fail(err, BURROW_PROTOCOL, "a record of the server is too long");
            text = stream->line.data;
            length = stream->line.length;
        }
        stream->piece += end ? part + 1 : part;
        stream->piece_length -= end ? part + 1 : part;
        if (!end)
            continue;
        bool is_empty = length == 0; // a sign of life
        int result = is_empty ? 0 : read_record(stream, text, length, out, err);
        stream->line.length = 0;
        if (!is_empty)
            return result;
    }
}

int burrow_stream_next(struct burrow_stream *stream, const struct burrow_value **out,
                       struct burrow_error *err)
{
    return next_record(stream, false, out, err);
}

int burrow_stream_next_now(struct burrow_stream *stream, const struct burrow_value **out,
                           struct burrow_error *err)
{
    return next_record(stream, true, out, err);
}

int burrow_stream_fd(const struct burrow_stream *stream)
{
    return stream->wire ? stream->wire->fd : -1;
}

bool burrow_stream_is_ready(struct burrow_stream *stream)
{
    return stream->piece_length > 0 || stream->wire->at < stream->wire->end ||
           stream->reader.state == REPLY_DONE;
}

int64_t burrow_stream_length(const struct burrow_stream *stream)
{
    return stream->reader.has_length ? (int64_t)stream->reader.length : -1;
}

const char *burrow_stream_header(const struct burrow_stream *stream, const char *name)
{
    struct burrow_stream *own = (struct burrow_stream *)stream;

    return reply_reader_header(&stream->reader, name, own->header, sizeof own->header);
}

// ---- whole answers ----

static int read_all(struct burrow_stream *stream, struct buffer *text, struct burrow_error *err)
{
    struct error error = {0};

    if (stream->reader.has_length && stream->reader.length < text->maximum &&
        buffer_reserve(text, (size_t)stream->reader.length, &error) < 0)
        return client_fail_from(err, BURROW_LOCAL, &error);
    for (;;) {
        int more = need_piece(stream, false, err);
        if (more <= 0)
            return more;
        if (buffer_add(text, stream->piece, stream->piece_length, &error) < 0)
            return client_fail(err, BURROW_LIMIT, "the server's answer is longer than 64 MiB");
        stream->piece_length = 0;
    }
}

int burrow_send_ahead(struct burrow_client *client, const char *method, const char *path,
                      const struct burrow_body *body, struct burrow_stream **out,
                      struct burrow_error *err)
{
    const struct client_request request = {.method = method, .path = path, .body = body};

    return client_send(client, &request, out, err);
}

int burrow_finish(struct burrow_stream *stream, struct burrow_answer **out,
                  struct burrow_error *err)
{
    autobuffer text = {.maximum = ANSWER_MAX};
    int result = client_read_head(stream, err);

    if (result == 0)
        result = read_all(stream, &text, err);
    burrow_stream_close(stream);
    if (result == 0 && out)
        result = client_answer_new(&text, out, err);
    return result;
}

int burrow_send(struct burrow_client *client, const char *method, const char *path,
                const struct burrow_body *body, struct burrow_answer **out,
                struct burrow_error *err)
{
    struct burrow_stream *stream = NULL;

    if (burrow_send_ahead(client, method, path, body, &stream, err) < 0)
        return -1;
    return burrow_finish(stream, out, err);
}

int burrow_ask(struct burrow_client *client, const char *method, const char *path, const char *json,
               struct burrow_answer **out, struct burrow_error *err)
{
    const struct burrow_body body = {.data = json, .length = json ? strlen(json) : 0};

    return burrow_send(client, method, path, json ? &body : NULL, out, err);
}

// ---- uploads ----

struct burrow_upload {
    struct burrow_client *client;
    struct wire *wire;
    struct buffer waiting; // to be sent, from `at` on
    size_t at;
    bool is_ended;
};

int burrow_upload_open(struct burrow_client *client, const char *method, const char *path,
                       struct burrow_upload **out, struct burrow_error *err)
{
    static const char more[] = "Content-Type: application/octet-stream\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    struct burrow_upload *upload = xnew(struct burrow_upload);
    struct error error = {0};

    upload->client = client;
    int result = client_connect(client, &upload->wire, err);
    if (result == 0)
        result = client_write_head(client, method, path, NULL, &upload->waiting, err);
    if (result == 0 && buffer_add_text(&upload->waiting, more, &error) < 0)
        result = client_fail_from(err, BURROW_LOCAL, &error);
    if (result < 0) {
        burrow_upload_close(upload);
        return -1;
    }
    *out = upload;
    return 0;
}

/* 1 when nothing waits any more, 0. */
static int flush_upload(struct burrow_upload *upload, struct burrow_error *err)
{
    while (upload->at < upload->waiting.length) {
        ssize_t sent = wire_send_some(upload->wire, upload->waiting.data + upload->at,
                                      upload->waiting.length - upload->at, err);
        if (sent <= 0)
            return (int)sent;
        upload->at += (size_t)sent;
    }
    upload->waiting.length = upload->at = 0;
    return 1;
}

ssize_t burrow_upload_send(struct burrow_upload *upload, const void *data, size_t size,
                           struct burrow_error *err)
{
    size_t part = size < UPLOAD_PIECE ? size : UPLOAD_PIECE;
    struct error error = {0};
    int flushed = flush_upload(upload, err);

    if (flushed <= 0 || part == 0)
        return flushed < 0 ? -1 : 0;
    if (buffer_addf(&upload->waiting, &error, "%zx\r\n", part) < 0 ||
        buffer_add(&upload->waiting, data, part, &error) < 0 ||
        buffer_add_text(&upload->waiting, "\r\n", &error) < 0)
        return client_fail_from(err, BURROW_LOCAL, &error);
    return flush_upload(upload, err) < 0 ? -1 : (ssize_t)part;
}

int burrow_upload_finish(struct burrow_upload *upload, struct burrow_error *err)
{
    struct error error = {0};

    if (!upload->is_ended && buffer_add_text(&upload->waiting, "0\r\n\r\n", &error) < 0)
        return client_fail_from(err, BURROW_LOCAL, &error);
    upload->is_ended = true;
    return flush_upload(upload, err);
}

int burrow_upload_fd(const struct burrow_upload *upload)
{
    return upload->wire->fd;
}

bool burrow_upload_is_full(const struct burrow_upload *upload)
{
    return upload->at < upload->waiting.length;
}

void burrow_upload_close(struct burrow_upload *upload)
{
    if (!upload)
        return;
    wire_free(upload->wire);
    buffer_clear(&upload->waiting);
    free(upload);
}
