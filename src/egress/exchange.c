/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over a socket; see exchange.h. */
#include "egress/exchange.h"

#include "base/auto.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define WAITING_MAX (64u << 20)
#define HAS_FD 0x80000000u // in a kind

void exchange_init(struct exchange *frames, int sock)
{
    *frames = (struct exchange){.sock = sock};
    buffer_init(&frames->in, 2 * (FRAME_MAX + sizeof(struct frame_head)));
    buffer_init(&frames->out, WAITING_MAX);
}

void exchange_clear(struct exchange *frames)
{
    buffer_clear(&frames->in);
    buffer_clear(&frames->out);
    for (size_t i = 0; i < frames->fd_count; i++)
        closep(&frames->fds[i]);
    frames->fd_count = 0;
}

static ssize_t send_once(struct exchange *frames, const void *data, size_t length, int fd,
                         int flags)
{
    struct iovec part = {(void *)data, length};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    ssize_t sent;
    do
        sent = sendmsg(frames->sock, &message, MSG_NOSIGNAL | flags);
    while (sent < 0 && errno == EINTR);
    return sent;
}

static int wait_for(int fd, short events)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};
    int got;

    do
        got = poll(&poll_fd, 1, -1);
    while (got < 0 && errno == EINTR);
    return got;
}

static int send_all(struct exchange *frames, const char *data, size_t length, int fd)
{
    while (length) {
        ssize_t sent = send_once(frames, data, length, fd, MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN)
            return -1;
        if (sent < 0 && wait_for(frames->sock, POLLOUT) < 0)
            return -1;
        if (sent > 0) {
            fd = -1;
            data += sent;
            length -= (size_t)sent;
        }
    }
    return 0;
}

int exchange_flush(struct exchange *frames)
{
    while (frames->out.length) {
        ssize_t sent = send_once(frames, frames->out.data, frames->out.length, -1, MSG_DONTWAIT);
        if (sent < 0)
            return errno == EAGAIN ? 0 : -1;
        memmove(frames->out.data, frames->out.data + sent, frames->out.length - (size_t)sent);
        frames->out.length -= (size_t)sent;
    }
    return 0;
}

int exchange_send(struct exchange *frames, uint32_t kind, uint64_t serial, const void *data,
                  size_t length, int fd)
{
    const struct frame_head head = {
        .length = (uint32_t)length, .kind = fd < 0 ? kind : kind | HAS_FD, .serial = serial};
    struct error err;

    if (length > FRAME_MAX)
        return -1;
    if (frames->is_quiet && fd < 0) {
        if (buffer_add(&frames->out, &head, sizeof head, &err) < 0 ||
            buffer_add(&frames->out, data, length, &err) < 0)
            return -1;
        return exchange_flush(frames);
    }
    if (send_all(frames, frames->out.data, frames->out.length, -1) < 0)
        return -1;
    frames->out.length = 0;
    if (send_all(frames, (const char *)&head, sizeof head, fd) < 0)
        return -1;
    return send_all(frames, data, length, -1);
}

static void take_fds(struct exchange *frames, struct msghdr *message)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
            if (frames->fd_count < FRAME_FDS)
                frames->fds[frames->fd_count++] = fd;
            else
                closep(&fd);
        }
    }
}

int exchange_read(struct exchange *frames, bool blocks)
{
    struct error err;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * 4)];
    } control;

    if (frames->taken) {
        memmove(frames->in.data, frames->in.data + frames->taken,
                frames->in.length - frames->taken);
        frames->in.length -= frames->taken;
        frames->taken = 0;
    }
    if (buffer_reserve(&frames->in, 65536, &err) < 0)
        return -1;
    struct iovec part = {frames->in.data + frames->in.length, 65535};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;
    do
        got = recvmsg(frames->sock, &message, MSG_CMSG_CLOEXEC | (blocks ? 0 : MSG_DONTWAIT));
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got <= 0)
        return -1;
    take_fds(frames, &message);
    buffer_grew(&frames->in, (size_t)got);
    if (frames->in.length >= sizeof(struct frame_head)) {
        struct frame_head head;
        memcpy(&head, frames->in.data, sizeof head);
        if (head.length > FRAME_MAX)
            return -1;
    }
    return 1;
}

bool exchange_next(struct exchange *frames, struct frame *out)
{
    size_t left = frames->in.length - frames->taken;
    struct frame_head head;

    if (left < sizeof head)
        return false;
    memcpy(&head, frames->in.data + frames->taken, sizeof head);
    if (head.length > FRAME_MAX || left - sizeof head < head.length)
        return false;
    *out = (struct frame){
        .head = head, .data = frames->in.data + frames->taken + sizeof head, .fd = -1};
    frames->taken += sizeof head + head.length;
    if (head.kind & HAS_FD) {
        out->head.kind &= ~HAS_FD;
        if (frames->fd_count) {
            out->fd = frames->fds[0];
            memmove(frames->fds, frames->fds + 1, --frames->fd_count * sizeof *frames->fds);
        }
    }
    return true;
}
