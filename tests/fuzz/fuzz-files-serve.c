/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: whoever asks PID 1 about files sends any packets. They are answered in a root of their own, in which a link leads
 * everywhere, and nothing outside of it changes. Without the right to change the root nothing is tried.
 */
#include "place.h"

#include "engine/files_wire.h"
#include "init/files_answer.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char canary[] = "outside";

static void *serve(void *data)
{
    const struct files_user who = {.base = "/"};
    int *sock = data;
    char root[sizeof place + 8];

    (void)snprintf(root, sizeof root, "%s/root", place);
    if (unshare(CLONE_FS) == 0 && chroot(root) == 0 && chdir("/") == 0)
        files_serve(*sock, &who);
    else
        closep(sock);
    return NULL;
}

/* Some files, as every input finds them. */
static void plant(void)
{
    struct error ignored;

    (void)place_open();
    (void)fd_remove_tree(place_fd, "root", &ignored);
    if (mkdirat(place_fd, "root", 0755) < 0 || mkdirat(place_fd, "root/d", 0755) < 0)
        abort();
    place_put("outside", canary, sizeof canary);
    place_put("root/f", "inside", 6);
    if (symlinkat("../../../../../outside", place_fd, "root/l") < 0 ||
        symlinkat("../..", place_fd, "root/d/u") < 0)
        abort();
}

static void check_outside(void)
{
    char text[32] = "";
    struct stat info;
    autofd fd = openat(place_fd, "outside", O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &info) < 0 || info.st_mode != (S_IFREG | 0600) || info.st_uid != 0 ||
        read(fd, text, sizeof text) != sizeof canary || strcmp(text, canary) != 0)
        __builtin_trap();
}

/* Reads answers until the server is done, so that it never waits for us. */
static void *read_answers(void *data)
{
    static uint8_t frame[FILES_MAX_FRAME];
    int sock = *(int *)data;
    while (recv(sock, frame, sizeof frame, 0) > 0)
        ;
    return NULL;
}

/* Packets of the input, each behind its length in two bytes. */
static void say_all(int sock, const uint8_t *data, size_t size)
{
    while (size > 2) {
        size_t length = data[0] | (size_t)data[1] << 8;
        if (length > size - 2)
            length = size - 2;
        if (send(sock, data + 2, length, MSG_NOSIGNAL) < 0)
            return;
        data += 2 + length;
        size -= 2 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pthread_t server, reader;
    int pair[2];

    if (geteuid() != 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return 0;
    plant();
    if (pthread_create(&server, NULL, serve, &pair[1]) != 0 ||
        pthread_create(&reader, NULL, read_answers, &pair[0]) != 0)
        abort();
    say_all(pair[0], data, size);
    (void)shutdown(pair[0], SHUT_WR);
    (void)pthread_join(server, NULL);
    (void)pthread_join(reader, NULL);
    (void)close(pair[0]);
    check_outside();
    return 0;
}
