/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libssh reads from its client by. It takes 4 KiB at a time, asks poll before each, and has no setting for it; a large upload is half system calls then. So burrow-ssh has a recv and a poll of its own, which the linker gives
 * libssh instead of the C library's: of the client's connection as much is read as there is, and the rest comes from memory. All else they pass on.
 */
#include "ssh/sshd.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define ROOM (128 << 10)
#define INSTEAD_OF(name) __asm__(name) __attribute__((visibility("default")))

ssize_t recv_ahead(int fd, void *out, size_t length, int flags) INSTEAD_OF("recv");
int poll_ahead(struct pollfd *fds, nfds_t count, int timeout_ms) INSTEAD_OF("poll");

/* One connection a program. */
static struct {
    int fd;
    size_t at, length;
    char bytes[ROOM];
} ahead = {.fd = -1};

void sshd_read_ahead(int fd)
{
    ahead.fd = fd;
}

bool sshd_has_ahead(void)
{
    return ahead.length > 0;
}

ssize_t recv_ahead(int fd, void *out, size_t length, int flags)
{
    if (fd != ahead.fd || flags)
        return recvfrom(fd, out, length, flags, NULL, NULL);
    if (!ahead.length) {
        ssize_t got = recvfrom(fd, ahead.bytes, sizeof ahead.bytes, 0, NULL, NULL);
        if (got <= 0)
            return got;
        ahead.at = 0;
        ahead.length = (size_t)got;
    }
    size_t given = length < ahead.length ? length : ahead.length;
    memcpy(out, ahead.bytes + ahead.at, given);
    ahead.at += given;
    ahead.length -= given;
    return (ssize_t)given;
}

int poll_ahead(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    const struct timespec wait = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

    if (ahead.length && count == 1 && fds->fd == ahead.fd && (fds->events & POLLIN)) {
        fds->revents = POLLIN; // whether it takes some is asked when this is read
        return 1;
    }
    return ppoll(fds, count, timeout_ms < 0 ? NULL : &wait, NULL);
}
