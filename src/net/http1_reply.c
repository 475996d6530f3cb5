/* SPDX-License-Identifier: Apache-2.0 */
/* Heads are gathered whole and read by llhttp in one call, bodies as they come; see http1_reply.h. */
#include "net/http1_reply.h"

#include <string.h>
#include <strings.h>

#define EXTRA_BYTES (16u << 10)

static int on_reason(llhttp_t *parser, const char *at, size_t length)
{
    struct http1_reply *reply = parser->data;

    if (reply->is_reading || !length)
        return 0;
    reply->told.reason = at;
    reply->reason_length = length;
    return 0;
}

/* Pieces point into the head; they are ended once all of it is read. */
static int on_name(llhttp_t *parser, const char *at, size_t length)
{
    struct http1_reply *reply = parser->data;

    if (reply->is_reading) // of a trailer
        return (reply->extra_bytes += length) > EXTRA_BYTES ? HPE_USER : 0;
    if (reply->told.header_count == REPLY_MAX_HEADERS)
        return HPE_USER;
    size_t index = reply->told.header_count++;
    reply->headers[index] = (struct http_header){.name = at, .value = at + length};
    reply->lengths[index] = 0;
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
    struct http1_reply *reply = parser->data;

    if (reply->is_reading)
        return (reply->extra_bytes += length) > EXTRA_BYTES ? HPE_USER : 0;
    if (!reply->told.header_count || !length)
        return 0;
    reply->headers[reply->told.header_count - 1].value = at;
    reply->lengths[reply->told.header_count - 1] = length;
    return 0;
}

static int on_extension(llhttp_t *parser, const char *at, size_t length)
{
    struct http1_reply *reply = parser->data;

    (void)at;
    return (reply->extra_bytes += length) > EXTRA_BYTES ? HPE_USER : 0;
}

static int on_chunk(llhttp_t *parser)
{
    struct http1_reply *reply = parser->data;

    if (parser->content_length > 0)
        reply->extra_bytes = 0;
    return 0;
}

/* The name ends at its colon, the value behind its last character that is no blank. */
static void cut_pieces(struct http1_reply *reply)
{
    if (reply->reason_length)
        ((char *)(uintptr_t)reply->told.reason)[reply->reason_length] = '\0';
    for (size_t i = 0; i < reply->told.header_count; i++) {
        char *name = (char *)(uintptr_t)reply->headers[i].name;
        char *value = (char *)(uintptr_t)reply->headers[i].value;
        size_t length = reply->lengths[i];

        while (length && (value[length - 1] == ' ' || value[length - 1] == '\t'))
            length--;
        name[strcspn(name, ":")] = '\0';
        if (reply->lengths[i])
            value[length] = '\0';
        else
            reply->headers[i].value = "";
    }
}

/* One length, one coding, and no header without a name. */
static bool is_framed_well(const struct http1_reply *reply)
{
    const struct http_header *headers = reply->headers;
    unsigned lengths = 0, codings = 0;
    bool is_chunked = false;

    for (size_t i = 0; i < reply->told.header_count; i++) {
        if (!*headers[i].name)
            return false;
        if (strcasecmp(headers[i].name, "Content-Length") == 0)
            lengths++;
        if (strcasecmp(headers[i].name, "Transfer-Encoding") != 0)
            continue;
        codings++;
        is_chunked = strcasecmp(headers[i].value, "chunked") == 0;
    }
    return lengths + codings <= 1 && (!codings || is_chunked);
}

static int on_headers(llhttp_t *parser)
{
    struct http1_reply *reply = parser->data;
    struct http1_reply_head *told = &reply->told;

    cut_pieces(reply);
    told->status = parser->status_code;
    told->minor = parser->http_minor;
    told->headers = reply->headers;
    told->has_length = (parser->flags & F_CONTENT_LENGTH) != 0;
    told->length = told->has_length ? parser->content_length : 0;
    reply->is_interim = told->status < 200;
    reply->is_upgrade = told->status == 101;
    told->is_bodiless =
        reply->is_to_head || reply->is_interim || told->status == 204 || told->status == 304;
    told->keeps_alive = !reply->is_upgrade && llhttp_should_keep_alive(parser);
    if (parser->http_major != 1 || told->status < 100 || told->status > 999 ||
        !is_framed_well(reply))
        return HPE_USER;
    reply->is_reading = true;
    reply->events->on_head(reply->owner, told);
    return told->is_bodiless ? 1 : 0;
}

static int on_bytes(llhttp_t *parser, const char *at, size_t length)
{
    struct http1_reply *reply = parser->data;

    reply->events->on_body(reply->owner, at, length);
    return 0;
}

static int on_complete(llhttp_t *parser)
{
    ((struct http1_reply *)parser->data)->is_ended = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_status = on_reason,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_headers_complete = on_headers,
    .on_body = on_bytes,
    .on_chunk_header = on_chunk,
    .on_chunk_extension_name = on_extension,
    .on_chunk_extension_value = on_extension,
    .on_message_complete = on_complete,
};

void http1_reply_init(struct http1_reply *reply, const struct http1_reply_events *events,
                      void *owner)
{
    reply->events = events;
    reply->owner = owner;
    buffer_init(&reply->head, REPLY_HEAD_BYTES);
    http1_reply_expect(reply, false);
}

void http1_reply_clear(struct http1_reply *reply)
{
    buffer_clear(&reply->head);
}

static void start_over(struct http1_reply *reply)
{
    reply->is_reading = reply->is_ended = reply->is_upgrade = reply->is_interim = false;
    reply->head.length = reply->scanned = reply->extra_bytes = reply->reason_length = 0;
    reply->told = (struct http1_reply_head){.reason = ""};
    llhttp_init(&reply->parser, HTTP_RESPONSE, &settings);
    reply->parser.data = reply;
}

void http1_reply_expect(struct http1_reply *reply, bool is_to_head)
{
    reply->is_to_head = is_to_head;
    reply->is_dead = false;
    start_over(reply);
}

static ssize_t fail(struct http1_reply *reply)
{
    reply->is_dead = true;
    return REPLY_MALFORMED;
}

static ssize_t execute(struct http1_reply *reply, const char *data, size_t length)
{
    llhttp_errno_t code = llhttp_execute(&reply->parser, data, length);

    if (code == HPE_OK)
        return (ssize_t)length;
    if ((code != HPE_PAUSED && code != HPE_PAUSED_UPGRADE) || !reply->is_ended)
        return fail(reply);
    return llhttp_get_error_pos(&reply->parser) - data;
}

static ssize_t read_head(struct http1_reply *reply)
{
    ssize_t used = execute(reply, reply->head.data, reply->head.length);

    if (used < 0 || !reply->is_reading)
        return fail(reply);
    return used;
}

/* Gathers up to the blank line; how many bytes of these are the head's. */
static ssize_t feed_head(struct http1_reply *reply, const char *data, size_t length)
{
    size_t before = reply->head.length;
    struct error ignored;
    char *end;

    size_t room = REPLY_HEAD_BYTES - before, taken = length < room ? length : room;
    if (taken == 0 || buffer_add(&reply->head, data, taken, &ignored) < 0)
        return fail(reply);
    size_t from = reply->scanned > 3 ? reply->scanned - 3 : 0;
    end = memmem(reply->head.data + from, reply->head.length - from, "\r\n\r\n", 4);
    reply->scanned = reply->head.length;
    if (!end)
        return (ssize_t)taken;
    size_t whole = (size_t)(end + 4 - reply->head.data);
    reply->head.length = whole;
    if (read_head(reply) < 0)
        return REPLY_MALFORMED;
    return (ssize_t)(whole - before);
}

/* Of an answer that is on its way only; the one that counts follows. */
static bool is_to_be_followed(const struct http1_reply *reply)
{
    return reply->is_ended && reply->is_interim && !reply->is_upgrade;
}

ssize_t http1_reply_feed(struct http1_reply *reply, const char *data, size_t length)
{
    size_t used = 0;

    while (!reply->is_dead && !reply->is_ended && used < length) {
        ssize_t step = reply->is_reading ? execute(reply, data + used, length - used)
                                         : feed_head(reply, data + used, length - used);
        if (step < 0)
            return REPLY_MALFORMED;
        used += (size_t)step;
        if (is_to_be_followed(reply))
            start_over(reply);
    }
    if (reply->is_ended)
        reply->events->on_end(reply->owner);
    return reply->is_dead ? REPLY_MALFORMED : (ssize_t)used;
}

bool http1_reply_finish(struct http1_reply *reply)
{
    if (reply->is_dead || !reply->is_reading || reply->is_ended)
        return false;
    if (!llhttp_message_needs_eof(&reply->parser))
        return false;
    reply->is_ended = true;
    reply->events->on_end(reply->owner);
    return true;
}
