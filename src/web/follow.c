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

struct follow {
    struct loop *loop;
    const struct router *router;
    struct hub *hub;
    struct stream *stream;
    struct response *response;
    struct watch *watch; // while more may come
    uint64_t offset;     // of the next byte to hand over
    atomic_bool is_posted;
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
    if (follow->offset < progress.size_bytes) {
        if (append(follow, progress.size_bytes - follow->offset) != RESPONSE_TAKEN)
            return;
        follow->offset = progress.size_bytes;
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

    (void)response_begin(follow->response, 200, flow_headers, RESPONSE_LENGTH_UNKNOWN);
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
static void send_rest(const struct follow_request *request, const struct stream_progress *progress)
{
    struct http_header headers[N_PLAIN + FOLLOW_HEADERS + 1] = {PLAIN_HEADERS};
    uint64_t rest = progress->size_bytes - request->offset;
    bool is_cut = request->length && request->length < rest;

    for (size_t i = 0; request->headers && request->headers[i].name && i < FOLLOW_HEADERS; i++)
        headers[N_PLAIN + i] = request->headers[i];
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

void follow_start(const struct follow_request *request)
{
    struct stream_progress progress;
    uint64_t first = 0, length = 0;

    response_vouch(request->response, 0); // who names a stream is no stranger
    stream_progress(request->stream, &progress);
    enum range range = range_read(wanted_range(request), progress.size_bytes, &first, &length);
    if (range == RANGE_OUTSIDE || request->offset > progress.size_bytes)
        send_outside(request->response, progress.size_bytes);
    else if (range == RANGE_PART)
        send_range(request, &progress, first, length);
    else if (progress.is_complete || request->is_now)
        send_rest(request, &progress);
    else if (request->request->is_head)
        send_head(request->response);
    else if (loop_is_here(request->loop))
        begin(follow_new(request));
    else
        loop_post(request->loop, begin, follow_new(request));
}
