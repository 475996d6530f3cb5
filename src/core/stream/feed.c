/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the spool to a command's standard input; see feed.h. Bytes are copied rather than spliced, so that no page of the
 * server's files ever gets into a pipe that a guest reads from.
 */
#include "core/stream/feed.h"

#include "base/mem.h"

#include <assert.h>
#include <fcntl.h>
#include <stdatomic.h>

#define PIECE (64u << 10)
#define PIECES 4 // at most, before others get their turn

struct feed {
    struct loop *loop;
    struct hub *hub;
    struct stream *stream; // a reference; NULL once there is nothing more to do
    int pipe_fd;
    uint64_t offset;
    struct loop_watch *ready;
    struct watch *watch;
    atomic_bool is_posted; // on_change will run
};

/* The end of the work, not of the feed: its owner still has it. */
static void finish(struct feed *feed)
{
    watch_free(take(feed->watch));
    loop_watch_free(take(feed->ready));
    closep(&feed->pipe_fd);
    stream_free(take(feed->stream));
}

enum step { STEP_ENDED = -1, STEP_FULL, STEP_MOVED };

static enum step move_piece(struct feed *feed, uint64_t available)
{
    char piece[PIECE];
    ssize_t got, wrote;

    do {
        got = pread(stream_fd(feed->stream), piece, available < PIECE ? available : PIECE,
                    (off_t)feed->offset);
    } while (got < 0 && errno == EINTR);
    if (got <= 0)
        return STEP_ENDED; // a broken disk: the command must not wait for ever
    do {
        wrote = write(feed->pipe_fd, piece, (size_t)got);
    } while (wrote < 0 && errno == EINTR);
    if (wrote < 0)
        return errno == EAGAIN ? STEP_FULL : STEP_ENDED; // EPIPE: nobody reads any more
    feed->offset += (uint64_t)wrote;
    return STEP_MOVED;
}

/* Moves what can be moved and decides what to wait for. */
static void advance(struct feed *feed)
{
    struct stream_progress progress;
    enum step step = STEP_MOVED;

    stream_progress(feed->stream, &progress);
    for (int i = 0; i < PIECES && step == STEP_MOVED && feed->offset < progress.size_bytes; i++)
        step = move_piece(feed, progress.size_bytes - feed->offset);
    bool is_behind = feed->offset < progress.size_bytes;
    if (step == STEP_ENDED || (!is_behind && progress.is_complete))
        finish(feed);
    else // with room in the pipe, the next turn goes on; a reader that goes is always told
        loop_watch_set(feed->ready, LOOP_HANGUP | (is_behind ? LOOP_WRITABLE : 0));
}

static void on_pipe(void *data, unsigned events)
{
    struct feed *feed = data;

    if (events & (LOOP_FAILED | LOOP_HANGUP))
        finish(feed);
    else
        advance(feed);
}

static void on_change(void *data)
{
    struct feed *feed = data;

    atomic_store(&feed->is_posted, false);
    if (feed->stream)
        advance(feed);
}

/* On whatever thread announces the stream; one post stands for any number of them. */
static void on_announce(void *data)
{
    struct feed *feed = data;

    if (!atomic_exchange(&feed->is_posted, true))
        loop_post(feed->loop, on_change, feed);
}

static void start(void *data)
{
    struct feed *feed = data;
    struct error ignored;

    if (loop_watch_new(feed->loop, feed->pipe_fd, on_pipe, feed, &feed->ready, &ignored) < 0) {
        finish(feed); // the command's input ends at once
        return;
    }
    feed->watch = hub_watch(feed->hub, stream_id(feed->stream), on_announce, feed);
    advance(feed);
}

struct feed *feed_new(struct loop *loop, struct hub *hub, struct stream *stream, int pipe_fd)
{
    struct feed *feed = xnew(struct feed);

    feed->loop = loop;
    feed->hub = hub;
    feed->stream = stream_ref(stream);
    feed->pipe_fd = pipe_fd;
    (void)fcntl(pipe_fd, F_SETFL, O_NONBLOCK);
    loop_post(loop, start, feed);
    return feed;
}

static void on_last(void *data)
{
    free(data);
}

static void on_stop(void *data)
{
    struct feed *feed = data;

    finish(feed);
    // Nothing is announced to it any more; what was, has been posted before this.
    loop_post(feed->loop, on_last, feed);
}

void feed_stop(struct feed *feed)
{
    if (feed)
        loop_post(feed->loop, on_stop, feed);
}
