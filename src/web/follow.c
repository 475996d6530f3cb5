/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Followers. Everything of one is touched on the loop only, but for is_posted: whoever changes the stream posts once, and
 * not again until the loop has looked.
 */
#include "web/follow.h"

#include "base/mem.h"
#include "web/range.h"
#include "web/router.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>

#define SMALL_BYTES                                                                                \
    (16u << 10) // copied: one packet with its head, where a part of a file takes three
#define READ_AHEAD (4u << 20)
#define PIECE_BYTES                                                                                \
    (256u << 10) // at once: what waits for a slow client may go from a terminal's stream meanwhile

struct follow {
    struct loop *loop;
    const struct router *router;
    struct hub *hub;
    struct stream *stream;
    struct response *response;
    struct watch *watch; // while more may come
    uint64_t offset;     // of the next byte to hand over
    atomic_bool is_posted;
    bool is_moved;    // what was asked for first is there no longer
    bool is_finished; // nothing more will be appended
    bool is_over;     // the response has ended
};

#define PLAIN_HEADERS                                                                              \
    {"Content-Type", "application/octet-stream"}, {"Cache-Control", "no-store"},                   \
    {                                                                                              \
        "X-Content-Type-Options", "nosniff"                                                        \
    }
#define N_PLAIN 3
static const struct http_header plain_headers[] = {PLAIN_HEADERS, {0}};
/* What comes bit by bit is to arrive so: nginx would gather it. */
static const struct http_header flow_headers[] = {PLAIN_HEADERS, {"X-Accel-Buffering", "no"}, {0}};

/* Where the body begins, when what was asked for is there no longer. */
static struct http_header offset_header(uint64_t offset, char text[24])
{
    (void)snprintf(text, 24, "%llu", (unsigned long long)offset);
    return (struct http_header){"Output-Offset", text};
}

static void finish(struct follow *follow, bool is_whole)
{
    if (follow->is_finished)
        return;
    follow->is_finished = true;
    response_finish(follow->response, is_whole);
    watch_free(take(follow->watch));
}

/* The bytes themselves while the client keeps up; a part of the file, which waits for nothing, when it does not. */
static enum response_room append(struct follow *follow, uint64_t length)
{
    char bytes[SMALL_BYTES];
    int fd = stream_fd(follow->stream);

    if (length <= sizeof bytes && response_is_drained(follow->response) &&
        pread(fd, bytes, (size_t)length, (off_t)follow->offset) == (ssize_t)length)
        return response_append(follow->response, bytes, (size_t)length);
    return response_append_file(
        follow->response,
        &(struct file_range){.fd = fd, .offset = follow->offset, .length = length});
}

/* Hands over what there is. Behind RESPONSE_FULL, on_room goes on; behind RESPONSE_GONE, on_end comes. */
static void advance(struct follow *follow)
{
    struct stream_progress progress;

    if (follow->is_finished)
        return;
    stream_progress(follow->stream, &progress);
    if (follow->offset < progress.first_bytes)
        follow->offset = progress.first_bytes;
    while (follow->offset < progress.size_bytes) {
        uint64_t left = progress.size_bytes - follow->offset;
        uint64_t length = left < PIECE_BYTES ? left : PIECE_BYTES;
        if (append(follow, length) != RESPONSE_TAKEN)
            return;
        follow->offset += length;
    }
    if (progress.is_complete)
        finish(follow, true);
    else if (follow->router && router_is_draining(follow->router))
        finish(follow, false);
}

static void on_change(void *data)
{
    struct follow *follow = data;

    atomic_store(&follow->is_posted, false);
    if (follow->is_over)
        free(follow);
    else
        advance(follow);
}

/* From the hub, on any thread. */
static void on_hub(void *data)
{
    struct follow *follow = data;

    if (!atomic_exchange(&follow->is_posted, true))
        loop_post(follow->loop, on_change, follow);
}

static void on_room(void *data)
{
    advance(data);
}

/* A client that only closed its sending side loses what has not come yet; others are not kept for its sake. */
static void on_gone(void *data)
{
    finish(data, false);
}

static void on_end(void *data, bool is_delivered)
{
    struct follow *follow = data;

    (void)is_delivered;
    finish(follow, false);
    follow->is_over = true;
    stream_free(follow->stream);
    response_free(follow->response);
    if (!atomic_load(
            &follow->is_posted)) // else that frees it; with the watch gone, none is posted any more
        free(follow);
}

static const struct response_events events = {
    .on_gone = on_gone, .on_room = on_room, .on_end = on_end};

static struct follow *follow_new(const struct follow_request *request)
{
    struct follow *follow = xnew(struct follow);

    *follow = (struct follow){
        .loop = request->loop,
        .router = request->router,
        .hub = request->hub,
        .stream = stream_ref(request->stream),
        .response = response_ref(request->response),
        .offset = request->offset,
    };
    return follow;
}

/* On the loop. */
static void begin(void *data)
{
    struct follow *follow = data;

    char offset[24];
    const struct http_header moved[] = {
        PLAIN_HEADERS, flow_headers[N_PLAIN], offset_header(follow->offset, offset), {0}};

    (void)response_begin(follow->response, 200, follow->is_moved ? moved : flow_headers,
                         RESPONSE_LENGTH_UNKNOWN);
    follow->watch = hub_watch(follow->hub, stream_id(follow->stream), on_hub, follow);
    response_watch(follow->response, &events, follow);
    advance(follow);
}

/* What is there now, and no more. */
struct part {
    int status;
    const struct http_header *headers;
    uint64_t first, length;
};

static void send_part(const struct follow_request *request, const struct part *part)
{
    char bytes[SMALL_BYTES];
    int fd = stream_fd(request->stream);

    // of nothing there may be no file
    if (part->length == 0 ||
        (part->length <= sizeof bytes &&
         pread(fd, bytes, (size_t)part->length, (off_t)part->first) == (ssize_t)part->length)) {
        (void)response_send(request->response, part->status, part->headers, bytes,
                            (size_t)part->length);
        return;
    }
    if (!loop_is_here(request->loop)) // on the loop, it was written recently
        (void)posix_fadvise(fd, (off_t)part->first, READ_AHEAD, POSIX_FADV_WILLNEED);
    struct follow *follow = follow_new(request);
    follow->is_finished = true;
    (void)response_send_file(
        request->response, part->status, part->headers,
        &(struct file_range){.fd = fd, .offset = part->first, .length = part->length});
    response_watch(request->response, &events, follow);
}

static void send_outside(struct response *response, uint64_t size)
{
    char text[48];
    const struct http_header headers[] = {
        {"Content-Type", "application/octet-stream"}, {"Content-Range", text}, {0}};

    (void)snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
    (void)response_send(response, 416, headers, NULL, 0);
}

static void send_range(const struct follow_request *request, const struct stream_progress *progress,
                       uint64_t first, uint64_t length)
{
    char text[96];
    char total[24] = "*";
    const struct http_header headers[] = {
        plain_headers[0], plain_headers[1], plain_headers[2], {"Content-Range", text}, {0}};

    if (progress->is_complete)
        (void)snprintf(total, sizeof total, "%llu", (unsigned long long)progress->size_bytes);
    (void)snprintf(text, sizeof text, "bytes %llu-%llu/%s", (unsigned long long)first,
                   (unsigned long long)(first + length - 1), total);
    send_part(request, &(struct part){206, headers, first, length});
}

/* What there is from the offset on. */
static void send_rest(const struct follow_request *request, const struct stream_progress *progress,
                      bool is_moved)
{
    struct http_header headers[N_PLAIN + FOLLOW_HEADERS + 2] = {PLAIN_HEADERS};
    char offset[24];
    uint64_t rest = progress->size_bytes - request->offset;
    bool is_cut = request->length && request->length < rest;

    size_t n = 0;
    for (; request->headers && request->headers[n].name && n < FOLLOW_HEADERS; n++)
        headers[N_PLAIN + n] = request->headers[n];
    if (is_moved)
        headers[N_PLAIN + n] = offset_header(request->offset, offset);
    send_part(request,
              &(struct part){200, headers, request->offset, is_cut ? request->length : rest});
}

/* If-Range names a version; streams have none, so it never fits. */
static const char *wanted_range(const struct follow_request *request)
{
    if (request->offset || request->length || request->request->is_head ||
        http_request_header(request->request, "If-Range"))
        return NULL;
    return http_request_header(request->request, "Range");
}

static void send_head(struct response *response)
{
    (void)response_begin(response, 200, flow_headers, RESPONSE_LENGTH_UNKNOWN);
    response_finish(response, true);
}

/* A range without what is there no longer; false: nothing of it is. */
static bool cut_range(const struct stream_progress *progress, uint64_t *first, uint64_t *length)
{
    if (*first >= progress->first_bytes)
        return true;
    if (*first + *length <= progress->first_bytes)
        return false;
    *length -= progress->first_bytes - *first;
    *first = progress->first_bytes;
    return true;
}

static void follow_on(const struct follow_request *request, bool is_moved)
{
    struct follow *follow = follow_new(request);

    follow->is_moved = is_moved;
    if (loop_is_here(request->loop))
        begin(follow);
    else
        loop_post(request->loop, begin, follow);
}

void follow_start(const struct follow_request *asked)
{
    struct follow_request request = *asked;
    struct stream_progress progress;
    uint64_t first = 0, length = 0;

    response_vouch(request.response, 0); // who names a stream is no stranger
    stream_progress(request.stream, &progress);
    enum range range = range_read(wanted_range(&request), progress.size_bytes, &first, &length);
    bool is_moved = request.offset < progress.first_bytes;
    if (is_moved)
        request.offset = progress.first_bytes;
    if (range == RANGE_OUTSIDE || request.offset > progress.size_bytes ||
        (range == RANGE_PART && !cut_range(&progress, &first, &length)))
        send_outside(request.response, progress.size_bytes);
    else if (range == RANGE_PART)
        send_range(&request, &progress, first, length);
    else if (progress.is_complete || request.is_now)
        send_rest(&request, &progress, is_moved);
    else if (request.request->is_head)
        send_head(request.response);
    else
        follow_on(&request, is_moved);
}
