/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the server and burrow-ssh; see ssh_wire.h. Both compile this file. */
#include "ssh/ssh_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
    char bytes[CMSG_SPACE(sizeof(int) * SSH_WIRE_FDS)];
    struct cmsghdr align;
};

// ---- what fits ----

static bool is_ended(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static bool check_login(const void *payload)
{
    struct ssh_wire_login login;

    memcpy(&login, payload, sizeof login);
    return is_ended(login.user, sizeof login.user);
}

static bool check_start(const char *payload, size_t length)
{
    struct ssh_wire_start start;
    const char *at = payload + sizeof start, *end = payload + length;

    memcpy(&start, payload, sizeof start);
    if (start.program >= SSH_WIRE_PROGRAMS || start.n_strings < 2 ||
        start.n_strings > SSH_WIRE_STRINGS)
        return false;
    for (uint32_t i = 0; i < start.n_strings; i++) {
        const char *stop = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        if (!stop)
            return false;
        at = stop + 1;
    }
    return at == end;
}

static bool check_begin(const void *payload, size_t length)
{
    struct ssh_wire_begin begin;

    memcpy(&begin, payload, sizeof begin);
    return begin.keys[0] < length && begin.keys[1] < length &&
           sizeof begin + begin.keys[0] + begin.keys[1] == length;
}

static bool check_exit(const void *payload)
{
    struct ssh_wire_exit end;

    memcpy(&end, payload, sizeof end);
    return is_ended(end.text, sizeof end.text);
}

bool ssh_wire_check(const struct ssh_wire_header *header, const void *payload)
{
    static const struct {
        size_t least, most;
    } sizes[SSH_WIRE_TYPES] = {
        [SSH_WIRE_BEGIN] = {sizeof(struct ssh_wire_begin), SSH_WIRE_PAYLOAD},
        [SSH_WIRE_REFUSED] = {0, 1024},
        [SSH_WIRE_GREW] = {sizeof(struct ssh_wire_grown), sizeof(struct ssh_wire_grown)},
        [SSH_WIRE_EXITED] = {sizeof(struct ssh_wire_exit), sizeof(struct ssh_wire_exit)},
        [SSH_WIRE_LOGIN] = {sizeof(struct ssh_wire_login), sizeof(struct ssh_wire_login)},
        [SSH_WIRE_START] = {sizeof(struct ssh_wire_start), SSH_WIRE_PAYLOAD},
        [SSH_WIRE_INPUT_IS] = {1, SSH_WIRE_INPUT},
        [SSH_WIRE_RESIZE] = {sizeof(struct ssh_wire_size), sizeof(struct ssh_wire_size)},
        [SSH_WIRE_CONNECT] = {1, 255},
    };

    if (header->type == 0 || header->type >= SSH_WIRE_TYPES ||
        header->length < sizes[header->type].least || header->length > sizes[header->type].most)
        return false;
    switch (header->type) {
    case SSH_WIRE_BEGIN:
        return check_begin(payload, header->length);
    case SSH_WIRE_LOGIN:
        return check_login(payload);
    case SSH_WIRE_START:
        return check_start(payload, header->length);
    case SSH_WIRE_EXITED:
        return check_exit(payload);
    case SSH_WIRE_CONNECT:
        return !is_ended(payload, header->length);
    default:
        return true;
    }
}

void ssh_wire_strings(const struct ssh_wire_message *message, const char *out[SSH_WIRE_STRINGS + 1])
{
    struct ssh_wire_start start;
    const char *at = message->payload + sizeof start;

    memcpy(&start, message->payload, sizeof start);
    for (uint32_t i = 0; i < start.n_strings; i++, at += strlen(at) + 1)
        out[i] = at;
    out[start.n_strings] = NULL;
}

// ---- sending and receiving ----

int ssh_wire_send(int sock, const struct ssh_wire_header *header, const void *payload,
                  const int *fds, unsigned n_fds)
{
    struct iovec parts[] = {{(void *)header, sizeof *header}, {(void *)payload, header->length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = header->length ? 2 : 1};
    union control control = {0};
    ssize_t sent;

    if (n_fds) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n_fds);
    }
    do
        sent = sendmsg(sock, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -1 : 0;
}

static void take_fds(struct msghdr *message, struct ssh_wire_message *out)
{
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
        if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof fd, sizeof fd);
            if (out->n_fds < SSH_WIRE_FDS)
                out->fds[out->n_fds++] = fd;
            else
                (void)close(fd);
        }
    }
}

int ssh_wire_receive(int sock, struct ssh_wire_message *out, int flags)
{
    struct iovec parts[] = {{&out->header, sizeof out->header}, {out->payload, SSH_WIRE_PAYLOAD}};
    union control control;
    struct msghdr message = {.msg_iov = parts,
                             .msg_iovlen = 2,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;

    out->n_fds = 0;
    do
        got = recvmsg(sock, &message, flags | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == ECONNRESET ? 0 : -1;
    take_fds(&message, out);
    if (got == 0 && out->n_fds == 0)
        return 0;
    size_t length = (size_t)got - sizeof out->header;
    if (!(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && (size_t)got >= sizeof out->header &&
        out->header.length == length && ssh_wire_check(&out->header, out->payload)) {
        out->payload[length] = '\0';
        return 1;
    }
    ssh_wire_message_clear(out);
    errno = EPROTO;
    return -1;
}

void ssh_wire_message_clear(struct ssh_wire_message *message)
{
    for (unsigned i = 0; i < message->n_fds; i++) {
        if (message->fds[i] >= 0)
            (void)close(message->fds[i]);
    }
    message->n_fds = 0;
}

int ssh_wire_take(struct ssh_wire_message *message, unsigned index)
{
    if (index >= message->n_fds)
        return -1;
    int fd = message->fds[index];
    message->fds[index] = -1;
    return fd;
}
