/* SPDX-License-Identifier: Apache-2.0 */
/* Lines are checked before llhttp sees them; it reads heads whole, then bodies as they come.
 * Trailers it never sees. */
#include "net/http1.h"

#include "base/mem.h"
#include "net/http1_head.h"

#include <string.h>

#define MAX_BLANK_LINES 4        // in front of a request line
#define MAX_EXTENSION_BYTES 1024 // of a chunk
#define MAX_TRAILER_BYTES 8192
#define REQUEST_LINE_REST 40 // method, blanks and version beside the target

static int fail(struct http1 *http, int status, const char *text)
{
    http->fault = (struct http1_fault){.status = status, .text = text};
    return -1;
}

enum scanned { SCAN_MORE, SCAN_BLANK, SCAN_END, SCAN_BAD };

/* A line's end was seen. A blank line ends the head, unless it stands before the request line. */
static enum scanned end_line(struct http1 *http)
{
    http->has_cr = false;
    if (http->line_length == 0)
        return http->part == HTTP1_HEAD && http->lines == 0 ? SCAN_BLANK : SCAN_END;
    http->lines++;
    http->line_length = 0;
    return SCAN_MORE;
}

static bool is_line_too_long(const struct http1 *http)
{
    return http->part == HTTP1_HEAD && http->lines == 0 &&
           http->line_length > http->limits->target_bytes + REQUEST_LINE_REST;
}

/* One line, or what there is of it. *used grows by what was looked at. */
static enum scanned scan_line(struct http1 *http, const char *data, size_t length, size_t *used)
{
    const char *at = data + *used;
    const char *end = data + length;

    if (http->has_cr) {
        if (*at != '\n')
            return SCAN_BAD;
        ++*used;
        return end_line(http);
    }
    if (http->line_length == 0 && http->lines > 0 && (*at == ' ' || *at == '\t' || *at == ':'))
        return SCAN_BAD; // folded, or without a name
    const char *lf = memchr(at, '\n', (size_t)(end - at));
    const char *cr = memchr(at, '\r', (size_t)((lf ? lf : end) - at));
    const char *stop = cr ? cr : end;
    if ((lf && lf != stop + 1) || (!lf && cr && cr + 1 != end))
        return SCAN_BAD; // an LF without its CR, or a CR without its LF
    http->line_length += (unsigned)(stop - at);
    if (is_line_too_long(http)) {
        (void)fail(http, 414, "the request target is too long");
        return SCAN_BAD;
    }
    *used = (size_t)((lf ? lf + 1 : end) - data);
    if (lf)
        return end_line(http);
    http->has_cr = cr != NULL;
    return SCAN_MORE;
}

static enum scanned scan_lines(struct http1 *http, const char *data, size_t length, size_t *used)
{
    enum scanned result = SCAN_MORE;

    while (result == SCAN_MORE && *used < length)
        result = scan_line(http, data, length, used);
    if (result == SCAN_BAD && !http->fault.status)
        (void)fail(http, 400, "lines end with CR LF, headers have names and are not folded");
    return result;
}

static int on_target(llhttp_t *parser, const char *at, size_t length)
{
    struct http1_head *head = ((struct http1 *)parser->data)->reading;

    if (!head)
        return 0;
    head->target = (struct http1_piece){.at = head->text + (at - head->text), .length = length};
    return 0;
}

static int on_name(llhttp_t *parser, const char *at, size_t length)
{
    struct http1 *http = parser->data;
    struct http1_head *head = http->reading;

    if (!head)
        return 0;
    if (head->count == http->limits->headers || head->count == HTTP1_MAX_HEADERS) {
        (void)fail(http, 431, "there are too many headers");
        return HPE_USER;
    }
    char *name = head->text + (at - head->text);
    head->names[head->count] = (struct http1_piece){.at = name, .length = length};
    // An empty value is not told: it stands as the end of the name's line.
    head->values[head->count++] = (struct http1_piece){.at = name + length, .length = 0};
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
    struct http1_head *head = ((struct http1 *)parser->data)->reading;

    if (head && head->count && length)
        head->values[head->count - 1] =
            (struct http1_piece){.at = head->text + (at - head->text), .length = length};
    return 0;
}

static int on_headers(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

static int on_bytes(llhttp_t *parser, const char *at, size_t length)
{
    struct http1 *http = parser->data;
    return http->events->on_body(http->owner, at, length, &http->fault) < 0 ? HPE_USER : 0;
}

static int on_extension(llhttp_t *parser, const char *at, size_t length)
{
    struct http1 *http = parser->data;

    (void)at;
    http->line_bytes += (unsigned)length;
    if (http->line_bytes <= MAX_EXTENSION_BYTES)
        return 0;
    (void)fail(http, 400, "a chunk's extensions are too long");
    return HPE_USER;
}

static int on_chunk(llhttp_t *parser)
{
    struct http1 *http = parser->data;

    http->line_bytes = 0;
    if (parser->content_length > 0)
        return 0;
    http->part = HTTP1_TRAILER;
    http->lines = http->line_length = 0;
    http->has_cr = false;
    return HPE_PAUSED;
}

static int on_complete(llhttp_t *parser)
{
    ((struct http1 *)parser->data)->is_ended = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_target,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_headers_complete = on_headers,
    .on_body = on_bytes,
    .on_chunk_extension_name = on_extension,
    .on_chunk_extension_value = on_extension,
    .on_chunk_header = on_chunk,
    .on_message_complete = on_complete,
};

void http1_init(struct http1 *http, const struct http1_limits *limits,
                const struct http1_events *events, void *owner)
{
    *http = (struct http1){.limits = limits, .events = events, .owner = owner};
    buffer_init(&http->head, limits->head_bytes);
}

void http1_clear(struct http1 *http)
{
    buffer_clear(&http->head);
}

static void start_over(struct http1 *http)
{
    http->part = HTTP1_START;
    http->lines = http->line_length = http->line_bytes = 0;
    http->has_cr = false;
}

static void end_request(struct http1 *http)
{
    start_over(http);
    http->is_ended = true;
    http->events->on_end(http->owner);
}

/* Runs llhttp over the whole head. */
static struct http_request *read_head(struct http1 *http)
{
    struct http1_piece names[HTTP1_MAX_HEADERS];
    struct http1_piece values[HTTP1_MAX_HEADERS];
    struct http1_head head = {
        .text = http->head.data, .length = http->head.length, .names = names, .values = values};

    http->head.data = NULL;
    buffer_clear(&http->head);
    buffer_init(&http->head, http->limits->head_bytes);
    llhttp_init(&http->parser, HTTP_REQUEST, &settings);
    http->parser.data = http;
    http->reading = &head;
    llhttp_errno_t code = llhttp_execute(&http->parser, head.text, head.length);
    http->reading = NULL;

    struct http_request *request = NULL;
    if (code == HPE_PAUSED)
        request = http1_head_request(&head, &http->parser, http->limits, &http->fault);
    else if (code != HPE_USER)
        http1_head_fault(&head, code, &http->fault);
    free(head.text);
    return request;
}

/* `rest`: bytes behind it that came with it. */
static int finish_head(struct http1 *http, size_t rest)
{
    struct http_request *request = read_head(http);
    if (!request)
        return -1;
    request->body_here = rest;
    bool has_body = request->has_body;
    http->line_bytes = 0;
    http->part = HTTP1_BODY;
    int status = http->events->on_head(http->owner, request, &http->fault);
    if (status < 0)
        return -1;
    http->is_held = status == HTTP1_HOLD && has_body;
    if (!has_body) {
        end_request(http);
        return 0;
    }
    http->parser.upgrade = 0; // whoever offers one with a body sends the body first
    llhttp_resume(&http->parser);
    return 0;
}

static int feed_head(struct http1 *http, const char *data, size_t length, size_t *used)
{
    struct error err;
    size_t end = 0;

    http->part = HTTP1_HEAD;
    enum scanned result = scan_lines(http, data, length, &end);
    if (result == SCAN_BAD)
        return -1;
    *used += end;
    if (result == SCAN_BLANK) {
        http->head.length = 0;
        return ++http->line_bytes > MAX_BLANK_LINES ? fail(http, 400, "the request line is missing")
                                                    : 0;
    }
    if (buffer_add(&http->head, data, end, &err) < 0)
        return fail(http, 431, "the headers are too large");
    if (result != SCAN_END)
        return 0;
    http->is_left = http->events->is_elsewhere &&
                    http->events->is_elsewhere(http->owner, http->head.data, http->head.length);
    return http->is_left ? 0 : finish_head(http, length - end);
}

static int feed_body(struct http1 *http, const char *data, size_t length, size_t *used)
{
    llhttp_errno_t code = llhttp_execute(&http->parser, data, length);

    if (code == HPE_OK) {
        *used += length;
        return 0;
    }
    if (code == HPE_USER)
        return -1;
    if (code != HPE_PAUSED)
        return fail(http, 400, "a chunk of the body is malformed");
    *used += (size_t)(llhttp_get_error_pos(&http->parser) - data);
    if (http->is_ended)
        end_request(http);
    return 0;
}

static int feed_trailer(struct http1 *http, const char *data, size_t length, size_t *used)
{
    size_t end = 0;
    enum scanned result = scan_lines(http, data, length, &end);

    if (result == SCAN_BAD)
        return -1;
    *used += end;
    http->line_bytes += (unsigned)end;
    if (http->line_bytes > MAX_TRAILER_BYTES)
        return fail(http, 431, "the trailers are too large");
    if (result == SCAN_END)
        end_request(http);
    return 0;
}

ssize_t http1_feed(struct http1 *http, const char *data, size_t length, struct http1_fault *fault)
{
    size_t used = 0;
    int status = http->part == HTTP1_DEAD ? -1 : 0;

    http->is_ended = http->is_held = false;
    while (status == 0 && used < length && !http->is_ended && !http->is_held && !http->is_left) {
        if (http->part == HTTP1_BODY)
            status = feed_body(http, data + used, length - used, &used);
        else if (http->part == HTTP1_TRAILER)
            status = feed_trailer(http, data + used, length - used, &used);
        else
            status = feed_head(http, data + used, length - used, &used);
    }
    if (status == 0)
        return (ssize_t)used;
    http->part = HTTP1_DEAD;
    *fault = http->fault;
    return -1;
}
