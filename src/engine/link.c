/* SPDX-License-Identifier: Apache-2.0 */
/* Sends, receives and takes apart the messages of link.h. */
#include "engine/link.h"

#include "engine/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int payload_memfd(const void *payload, uint32_t length)
{
    int fd = memfd_create("link", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const char *at = payload;
    while (fd >= 0 && length > 0) {
        ssize_t wrote = write(fd, at, length);
        if (wrote < 0) {
            int saved = errno;
            (void)close(fd);
            errno = saved;
            return -1;
        }
        at += wrote;
        length -= (uint32_t)wrote;
    }
    if (fd >= 0)
        (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    return fd;
}

static int send_parts(int sock, struct link_header *header, const void *payload, size_t length,
                      const int *fds, unsigned n_fds)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * (LINK_MAX_FDS + 1))];
        struct cmsghdr align;
    } control;
    struct iovec parts[2] = {{header, sizeof *header}, {(void *)payload, length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = length ? 2 : 1};

    if (n_fds > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        memset(control.bytes, 0, message.msg_controllen);
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n_fds);
    }
    for (;;) {
        ssize_t sent = sendmsg(sock, &message, MSG_NOSIGNAL);
        if (sent >= 0)
            return 0;
        if (errno != EINTR)
            return -1;
    }
}

int link_send(int sock, uint16_t type, uint16_t flags, uint32_t process, const void *payload,
              uint32_t length, const int *fds, unsigned n_fds)
{
    struct link_header header = {
        .type = type, .flags = flags, .process = process, .length = length};
    int all[LINK_MAX_FDS + 1];

    if (n_fds > LINK_MAX_FDS || length > LINK_MAX_PAYLOAD) {
        errno = E2BIG;
        return -1;
    }
    if (length <= LINK_MAX_MESSAGE)
        return send_parts(sock, &header, payload, length, fds, n_fds);

    int memory = payload_memfd(payload, length);
    if (memory < 0)
        return -1;
    if (n_fds > 0)
        memcpy(all, fds, sizeof(int) * n_fds);
    all[n_fds] = memory;
    header.flags |= LINK_IN_MEMFD;
    int result = send_parts(sock, &header, NULL, 0, all, n_fds + 1);
    int saved = errno;
    (void)close(memory);
    errno = saved;
    return result;
}

static void take_fds(struct msghdr *message, int *fds, unsigned *count)
{
    *count = 0;
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
        if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof fd);
            if (*count < LINK_MAX_FDS + 1)
                fds[(*count)++] = fd;
            else
                (void)close(fd);
        }
    }
}

/* Maps the payload of a LINK_IN_MEMFD message; only a sealed memfd of the right size will do. */
static bool map_payload(struct link_message *message, int fd)
{
    const int sealed = F_SEAL_SHRINK | F_SEAL_WRITE;
    struct stat info;

    if ((fcntl(fd, F_GET_SEALS) & sealed) != sealed || fstat(fd, &info) < 0 ||
        info.st_size != message->header.length || message->header.length > LINK_MAX_PAYLOAD)
        return false;
    void *mapped = mmap(NULL, message->header.length, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED)
        return false;
    message->mapped = mapped;
    message->payload = mapped;
    return true;
}

static bool accept_message(struct link_message *message, size_t got, const int *fds, unsigned n_fds,
                           const void *buffer)
{
    if (got < sizeof message->header)
        return false;
    memcpy(&message->header, buffer, sizeof message->header);
    bool is_remote = message->header.flags & LINK_IN_MEMFD;
    unsigned kept = n_fds;

    if (message->header.type == 0 || message->header.type >= LINK_TYPES)
        return false;
    if (is_remote) {
        if (n_fds == 0 || got != sizeof message->header || !map_payload(message, fds[n_fds - 1]))
            return false;
        kept--;
    } else {
        if (got - sizeof message->header != message->header.length)
            return false;
        message->payload = (const char *)buffer + sizeof message->header;
    }
    if (kept > LINK_MAX_FDS)
        return false;
    for (unsigned i = 0; i < kept; i++)
        message->fds[i] = fds[i];
    message->n_fds = kept;
    return true;
}

int link_receive(int sock, void *buffer, size_t size, struct link_message *out, int recv_flags)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * (LINK_MAX_FDS + 1))];
        struct cmsghdr align;
    } control;
    struct iovec part = {buffer, size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    int fds[LINK_MAX_FDS + 1];
    unsigned n_fds = 0;
    ssize_t got = 0;

    *out = (struct link_message){0};
    // A peer that died without reading all we sent is told once as a reset; what it sent before is still there.
    bool was_reset = false;
    do {
        was_reset |= got < 0 && errno == ECONNRESET;
        got = recvmsg(sock, &message, recv_flags | MSG_CMSG_CLOEXEC);
    } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && !was_reset)));
    if (got < 0)
        return errno == ECONNRESET ? 0 : -1;
    take_fds(&message, fds, &n_fds);
    if (got == 0 && n_fds == 0)
        return 0;
    bool is_whole = !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
    if (is_whole && accept_message(out, (size_t)got, fds, n_fds, buffer)) {
        if (out->mapped)
            (void)close(fds[n_fds - 1]);
        return 1;
    }
    for (unsigned i = 0; i < n_fds; i++)
        (void)close(fds[i]);
    if (out->mapped)
        (void)munmap(out->mapped, out->header.length);
    *out = (struct link_message){0};
    bool is_short = message.msg_flags & MSG_CTRUNC && (size_t)got >= sizeof out->header;
    if (is_short)
        memcpy(&out->header, buffer, sizeof out->header);
    errno = is_short ? EMFILE : EPROTO;
    return -1;
}

void link_message_clear(struct link_message *message)
{
    for (unsigned i = 0; i < message->n_fds; i++) {
        if (message->fds[i] >= 0)
            (void)close(message->fds[i]);
    }
    if (message->mapped)
        (void)munmap(message->mapped, message->header.length);
    *message = (struct link_message){0};
}

/* Steps over `count` strings; NULL when they do not end before `end`. */
static const char *skip_strings(const char *at, const char *end, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *zero = memchr(at, '\0', (size_t)(end - at));
        if (!zero)
            return NULL;
        at = zero + 1;
    }
    return at;
}

bool link_spawn_parse(const struct link_message *message, struct link_spawn_view *out)
{
    const struct link_spawn *spawn = message->payload;

    if (message->header.type != LINK_SPAWN || message->header.length < sizeof *spawn)
        return false;
    const char *at = (const char *)(spawn + 1);
    const char *end = (const char *)message->payload + message->header.length;
    if (spawn->strings != (size_t)(end - at) || spawn->n_argv == 0)
        return false;
    if (spawn->n_argv > spawn->strings || spawn->n_env > spawn->strings)
        return false;
    out->spawn = spawn;
    out->user = at;
    if (!(out->directory = skip_strings(at, end, 1)) ||
        !(out->argv = skip_strings(out->directory, end, 1)) ||
        !(out->env = skip_strings(out->argv, end, spawn->n_argv)))
        return false;
    const char *last = skip_strings(out->env, end, spawn->n_env);
    return last == end && (unsigned)__builtin_popcount(spawn->fds) == message->n_fds &&
           spawn->fds < (1u << SPAWN_FDS);
}

int link_spawn_take(struct link_message *message, uint32_t bits, enum link_spawn_fd kind)
{
    if (!(bits & (1u << kind)))
        return -1;
    unsigned index = (unsigned)__builtin_popcount(bits & ((1u << kind) - 1));
    int fd = message->fds[index];
    message->fds[index] = -1;
    return fd;
}
