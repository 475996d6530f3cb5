/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets with bytes that wait for them; see proxy_end.h. */
#include "net/proxy_end.h"

#include "base/auto.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define SMALL 8192       // is gathered with what comes next
#define KEPT (64u << 10) // of memory, once nothing waits
#define FIRST (4u << 10)

int proxy_end_open(struct proxy_end *end, struct loop *loop, int fd, on_ready fn, void *data,
                   struct error *err)
{
    *end = (struct proxy_end){.fd = fd, .moved_ms = loop_now_ms(loop)};
    return loop_watch_new(loop, fd, fn, data, &end->watch, err);
}

int proxy_end_release(struct proxy_end *end)
{
    int fd = end->fd;

    loop_watch_free(end->watch);
    free(end->data);
    *end = (struct proxy_end){.fd = -1};
    return fd;
}

void proxy_end_close(struct proxy_end *end)
{
    int fd = end->watch || end->fd > 0 ? proxy_end_release(end) : -1;

    if (fd >= 0)
        (void)close(fd);
}

void proxy_end_reset(struct proxy_end *end)
{
    struct linger reset = {.l_onoff = 1};

    if (end->fd >= 0)
        (void)setsockopt(end->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

size_t proxy_end_waiting(const struct proxy_end *end)
{
    return end->end - end->start;
}

static void make_room(struct proxy_end *end, size_t length)
{
    size_t waiting = proxy_end_waiting(end);

    if (end->capacity - end->end >= length)
        return;
    if (end->start)
        memmove(end->data, end->data + end->start, waiting);
    end->start = 0;
    end->end = waiting;
    if (end->capacity - waiting >= length)
        return;
    size_t capacity = end->capacity ? end->capacity : FIRST;
    while (capacity - waiting < length)
        capacity *= 2;
    end->data = xrealloc(end->data, capacity, 1);
    end->capacity = capacity;
}

void proxy_end_add(struct proxy_end *end, const char *data, size_t length)
{
    if (end->is_broken || length == 0)
        return;
    make_room(end, length);
    memcpy(end->data + end->end, data, length);
    end->end += length;
}

void proxy_end_add_text(struct proxy_end *end, const char *text)
{
    proxy_end_add(end, text, strlen(text));
}

/* How much was taken. */
static size_t send_parts(struct proxy_end *end, struct iovec *parts, size_t count)
{
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};

    if (end->fd < 0)
        return 0;
    ssize_t sent = sendmsg(end->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
        return (size_t)sent;
    if (errno != EAGAIN && errno != EINTR) {
        end->is_broken = true;
        end->code = errno;
        end->start = end->end = 0;
    }
    return 0;
}

static size_t leave(struct proxy_end *end, size_t sent)
{
    size_t waiting = proxy_end_waiting(end), mine = sent < waiting ? sent : waiting;

    end->start += mine;
    if (end->start == end->end) {
        end->start = end->end = 0;
        if (end->capacity > KEPT) {
            free(take(end->data));
            end->capacity = 0;
        }
    }
    return sent - mine;
}

void proxy_end_write(struct proxy_end *end, const char *data, size_t length)
{
    struct iovec parts[2];
    size_t count = 0;

    if (length < SMALL || end->is_broken) {
        proxy_end_add(end, data, length);
        return;
    }
    if (proxy_end_waiting(end))
        parts[count++] = (struct iovec){end->data + end->start, proxy_end_waiting(end)};
    parts[count++] = (struct iovec){(void *)(uintptr_t)data, length};
    size_t taken = leave(end, send_parts(end, parts, count));
    proxy_end_add(end, data + taken, length - taken);
}

void proxy_end_flush(struct proxy_end *end)
{
    struct iovec part = {end->data + end->start, proxy_end_waiting(end)};

    if (part.iov_len && !end->is_broken)
        (void)leave(end, send_parts(end, &part, 1));
    if (end->is_shut && !proxy_end_waiting(end) && end->fd >= 0)
        (void)shutdown(end->fd, SHUT_WR);
}

void proxy_end_shut(struct proxy_end *end)
{
    end->is_shut = true;
    proxy_end_flush(end);
}

ssize_t proxy_end_read(struct proxy_end *end, char *scratch, size_t size)
{
    ssize_t length;

    do
        length = recv(end->fd, scratch, size, MSG_DONTWAIT);
    while (length < 0 && errno == EINTR);
    if (length == 0)
        end->is_over = true;
    return length;
}
