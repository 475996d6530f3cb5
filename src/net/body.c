/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded queue of bytes between the loop and one consumer. */
#include "net/body.h"
#include "net/body_impl.h"

#include "base/buffer.h"
#include "base/mem.h"
#include "base/clock.h"
#include "base/lock.h"

#include <stdatomic.h>
#include <string.h>

#define KEPT_BUFFER (16u << 10) // a quiet stream holds no more

struct body {
    struct loop *loop;
    void (*on_resume)(void *connection);
    void *connection; // loop only; NULL: let go
    atomic_int refs;

    struct lock lock; // guards all below
    struct lock_condition has_changed;
    struct buffer bytes;
    size_t start; // of what was not taken yet
    bool is_ended;
    enum error_reason reason; // of the end
    const char *text;
    bool is_paused; // the connection waits for on_resume
    bool is_posted;
    bool is_unseen; // there is something the watcher was not told of
    void (*fn)(void *data);
    void *data;
};

struct body *body_new(struct loop *loop, void (*on_resume)(void *connection), void *connection)
{
    struct body *body = xnew(struct body);

    body->loop = loop;
    body->on_resume = on_resume;
    body->connection = connection;
    atomic_init(&body->refs, 1);
    lock_init(&body->lock, LOCK_BODY);
    lock_condition_init(&body->has_changed);
    return body;
}

struct body *body_ref(struct body *body)
{
    atomic_fetch_add(&body->refs, 1);
    return body;
}

void body_free(struct body *body)
{
    if (!body || atomic_fetch_sub(&body->refs, 1) != 1)
        return;
    buffer_clear(&body->bytes);
    lock_condition_clear(&body->has_changed);
    lock_clear(&body->lock);
    free(body);
}

static size_t available(const struct body *body)
{
    return body->bytes.length - body->start;
}

/* What is to be called now, without the lock. */
struct call_back {
    void (*fn)(void *data); // or NULL
    void *data;
    bool has_room;
};

static struct call_back take_call_back(struct body *body)
{
    struct call_back due = {0};

    autolock(&body->lock);
    body->is_posted = false;
    if (body->is_unseen && body->fn) {
        body->is_unseen = false;
        due.fn = body->fn;
        due.data = body->data;
    }
    due.has_room = body->is_paused && available(body) <= BODY_BUFFER / 2;
    if (due.has_room)
        body->is_paused = false;
    return due;
}

static void on_posted(void *data)
{
    struct body *body = data;
    struct call_back due = take_call_back(body);

    if (due.fn)
        due.fn(due.data);
    if (due.has_room && body->connection)
        body->on_resume(body->connection);
    body_free(body);
}

static void post(struct body *body)
{
    if (body->is_posted)
        return;
    body->is_posted = true;
    loop_post(body->loop, on_posted, body_ref(body));
}

/* With the lock held: something can be read that could not before. */
static void announce(struct body *body)
{
    body->is_unseen = true;
    lock_condition_wake(&body->has_changed);
    if (body->fn)
        post(body);
}

bool body_put(struct body *body, const char *data, size_t length)
{
    struct error err;

    autolock(&body->lock);
    if (body->start > BODY_BUFFER / 2) {
        memmove(body->bytes.data, body->bytes.data + body->start, available(body));
        body->bytes.length -= body->start;
        body->start = 0;
    }
    bool was_empty = available(body) == 0;
    (void)buffer_add(&body->bytes, data, length, &err); // no maximum: a put is at most one read
    if (was_empty && length)
        announce(body);
    bool has_room = available(body) < BODY_BUFFER;
    body->is_paused |=
        !has_room; // until on_resume: the connection has stopped, although some was taken since
    return has_room;
}

void body_end(struct body *body, enum error_reason reason, const char *text)
{
    body->connection = NULL;
    autolock(&body->lock);
    if (!body->is_ended) {
        body->is_ended = true;
        body->reason = reason;
        body->text = text;
        announce(body);
    }
}

/* With the lock held; false when the time is up. */
static bool wait_for_change(struct body *body, int timeout_ms)
{
    uint64_t until_ms = timeout_ms < 0 ? 0 : clock_monotonic_ms() + (uint64_t)timeout_ms;

    while (available(body) == 0 && !body->is_ended && timeout_ms != 0) {
        if (!lock_condition_wait(&body->has_changed, &body->lock, until_ms))
            break;
    }
    return available(body) > 0 || body->is_ended;
}

/* With the lock held. */
static ssize_t take_bytes(struct body *body, void *data, size_t size, struct error *err)
{
    if (available(body) == 0 && body->reason != ERROR_NONE)
        return error_set(err, body->reason, "%s", body->text);
    size_t length = available(body) < size ? available(body) : size;
    if (length)
        memcpy(data, body->bytes.data + body->start, length);
    body->start += length;
    if (available(body) == 0) {
        body->start = body->bytes.length = 0;
        if (body->bytes.capacity > KEPT_BUFFER)
            buffer_clear(&body->bytes);
        if (!body->is_ended)
            body->is_unseen = false; // seen in full: the next byte is told
    }
    if (body->is_paused && available(body) <= BODY_BUFFER / 2)
        post(body);
    return (ssize_t)length;
}

ssize_t body_read(struct body *body, void *data, size_t size, int timeout_ms, struct error *err)
{
    ssize_t result;

    autolock(&body->lock);
    if (wait_for_change(body, timeout_ms))
        result = take_bytes(body, data, size, err);
    else
        result = error_set(err, ERROR_TIMEOUT, "no more of the body came within %d ms", timeout_ms);
    return result;
}

void body_watch(struct body *body, void (*fn)(void *data), void *data)
{
    autolock(&body->lock);
    body->fn = fn;
    body->data = data;
    if (fn && (available(body) || body->is_ended)) {
        body->is_unseen = true;
        post(body);
    }
}
