/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded queue of bytes between the loop and one consumer. */
#include "net/body.h"
#include "net/body_impl.h"

#include "base/buffer.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define KEPT_BUFFER (16u << 10) // a quiet stream holds no more

struct body {
    struct loop *loop;
    void (*on_resume)(void *connection);
    void *connection; // loop only; NULL: let go
    atomic_int refs;

    pthread_mutex_t lock; // guards all below
    pthread_cond_t has_news;
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
    pthread_condattr_t attributes;

    body->loop = loop;
    body->on_resume = on_resume;
    body->connection = connection;
    atomic_init(&body->refs, 1);
    (void)pthread_mutex_init(&body->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&body->has_news, &attributes);
    (void)pthread_condattr_destroy(&attributes);
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
    (void)pthread_cond_destroy(&body->has_news);
    (void)pthread_mutex_destroy(&body->lock);
    free(body);
}

static size_t available(const struct body *body)
{
    return body->bytes.length - body->start;
}

static void on_posted(void *data)
{
    struct body *body = data;

    (void)pthread_mutex_lock(&body->lock);
    body->is_posted = false;
    bool is_unseen = body->is_unseen && body->fn;
    if (is_unseen)
        body->is_unseen = false;
    bool has_room = body->is_paused && available(body) <= BODY_BUFFER / 2;
    if (has_room)
        body->is_paused = false;
    void (*fn)(void *) = body->fn;
    void *fn_data = body->data;
    (void)pthread_mutex_unlock(&body->lock);

    if (is_unseen)
        fn(fn_data);
    if (has_room && body->connection)
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
    (void)pthread_cond_signal(&body->has_news);
    if (body->fn)
        post(body);
}

bool body_put(struct body *body, const char *data, size_t length)
{
    struct error err;

    (void)pthread_mutex_lock(&body->lock);
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
    body->is_paused = !has_room;
    (void)pthread_mutex_unlock(&body->lock);
    return has_room;
}

void body_end(struct body *body, enum error_reason reason, const char *text)
{
    body->connection = NULL;
    (void)pthread_mutex_lock(&body->lock);
    if (!body->is_ended) {
        body->is_ended = true;
        body->reason = reason;
        body->text = text;
        announce(body);
    }
    (void)pthread_mutex_unlock(&body->lock);
}

/* With the lock held; false when the time is up. */
static bool wait_for_news(struct body *body, int timeout_ms)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    while (available(body) == 0 && !body->is_ended) {
        if (timeout_ms < 0)
            (void)pthread_cond_wait(&body->has_news, &body->lock);
        else if (timeout_ms == 0 ||
                 pthread_cond_timedwait(&body->has_news, &body->lock, &until) != 0)
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
            body->is_unseen = false; // seen in full: the next byte is news
    }
    if (body->is_paused && available(body) <= BODY_BUFFER / 2)
        post(body);
    return (ssize_t)length;
}

ssize_t body_read(struct body *body, void *data, size_t size, int timeout_ms, struct error *err)
{
    ssize_t result;

    (void)pthread_mutex_lock(&body->lock);
    if (wait_for_news(body, timeout_ms))
        result = take_bytes(body, data, size, err);
    else
        result = error_set(err, ERROR_TIMEOUT, "no more of the body came within %d ms", timeout_ms);
    (void)pthread_mutex_unlock(&body->lock);
    return result;
}

void body_watch(struct body *body, void (*fn)(void *data), void *data)
{
    (void)pthread_mutex_lock(&body->lock);
    body->fn = fn;
    body->data = data;
    if (fn && (available(body) || body->is_ended)) {
        body->is_unseen = true;
        post(body);
    }
    (void)pthread_mutex_unlock(&body->lock);
}
