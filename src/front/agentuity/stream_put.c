/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PUT of a stream's whole content, which is most often the standard input of a command: for as long as the client likes, without
 * a thread while nothing comes. Answered when the body ends, or as soon as the stream is complete because the command
 * that reads it has ended: the client waits for that (8.5 of the protocol).
 *
 * A client that goes away in the middle leaves the stream open: what came stays, and a command that reads it sees no end. Since
 * the content is always sent as a whole, it cannot be tried again once something was taken.
 */
#include "base/mem.h"
#include "core/stream/stream.h"
#include "front/agentuity/stream_impl.h"
#include "web/drain.h"
#include "web/waiting_call.h"

#include <stdatomic.h>
#include <string.h>

struct put {
    struct waiting_call waiting;
    char id[ID_TEXT];
    struct stream *stream;
    struct watch *watch;
    atomic_bool is_posted; // on_news is on its way
    bool is_over;          // loop only: nothing but on_news has it any more
};

static void put_free(struct put *put)
{
    if (!put)
        return;
    watch_free(put->watch);
    stream_free(put->stream);
    waiting_call_clear(&put->waiting);
    free(put);
}
DEFINE_AUTOPTR(put)

static void succeed(const struct put *put)
{
    struct call call = waiting_call_get(&put->waiting);
    (void)envelope_bare(&call);
}

static void on_change(void *data)
{
    struct put *put = data;
    struct stream_progress progress;

    atomic_store(&put->is_posted, false);
    if (put->is_over) {
        put_free(put);
        return;
    }
    stream_progress(put->stream, &progress);
    if (progress.is_complete)
        succeed(put); // that ends the body, and so the drain
}

/* From the hub, on any thread. */
static void on_hub(void *data)
{
    struct put *put = data;

    if (!atomic_exchange(&put->is_posted, true))
        loop_post(put->waiting.loop, on_change, put);
}

static void on_over(void *data)
{
    struct put *put = data;

    watch_free(take(put->watch));
    put->is_over = true;
    if (!atomic_load(&put->is_posted))
        put_free(put);
}

static int on_bytes(void *data, const void *bytes, size_t length, struct error *err)
{
    struct put *put = data;
    return stream_append(put->waiting.core->streams, &put->waiting.actor, put->id, bytes, length,
                         err);
}

static void on_end(void *data, const struct error *failure)
{
    struct put *put = data;
    struct error err = {0};

    if (!failure &&
        stream_complete(put->waiting.core->streams, &put->waiting.actor, put->id, &err) < 0)
        failure = &err;
    if (!failure || error_is(failure, ERROR_COMPLETE))
        succeed(put);
    else
        waiting_call_fail(&put->waiting, failure);
    loop_post(put->waiting.loop, on_over, put);
}

static const struct drain_sink sink = {.on_bytes = on_bytes, .on_end = on_end};

/* Whether it takes a whole content; *is_done when it needs none any more. */
static int check(struct call *call, const char *id, struct stream *stream, bool *is_done,
                 struct error *err)
{
    autoclear(stream_info) info = {0};
    struct stream_progress progress;

    if (stream_get(call->core->streams, &call->actor, id, &info, err) < 0)
        return -1;
    stream_progress(stream, &progress);
    *is_done = progress.is_complete && info.kind == STREAM_STDIN;
    if (*is_done)
        return 0;
    if (progress.is_complete)
        return error_refuse(err, ERROR_COMPLETE, "stream",
                            "stream '" STREAM_PREFIX "%s' is complete", id);
    if (progress.size_bytes > 0) {
        return error_refuse(
            err, ERROR_STATE, "stream",
            "stream '" STREAM_PREFIX "%s' has content already; append to it, or make another", id);
    }
    return 0;
}

int stream_put(struct call *call, struct error *err)
{
    const char *id = NULL;
    bool is_done = false;
    autoptr(put) put = xnew(struct put);

    if (stream_id_of(call, &id, err) < 0 ||
        stream_open(call->core->streams, id, &put->stream, err) < 0 ||
        check(call, id, put->stream, &is_done, err) < 0)
        return -1;
    if (is_done)
        return envelope_bare(call);
    waiting_call_init(&put->waiting, call);
    (void)snprintf(put->id, sizeof put->id, "%s", id);
    put->watch = hub_watch(call->core->hub, id, on_hub, put);
    on_hub(put); // it may have become complete before it was watched
    struct drain_request request = {
        .loop = put->waiting.loop,
        .workers = put->waiting.workers,
        .owner = put->waiting.owner,
        .body = put->waiting.body,
        .sink = &sink,
        .data = put,
    };
    (void)take(put);
    drain_start(&request);
    return 0;
}
