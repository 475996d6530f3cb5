/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/cli compares the command line with: one request over a Unix socket, and programs spawned one after the other with gaps. */
#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static uint64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* One GET, its answer thrown away: the least a client can do. */
static int request(const char *path, const char *target)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char text[65536];
    ssize_t got = 0;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        perror("connect");
        return 1;
    }
    int length =
        snprintf(text, sizeof text,
                 "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target);
    if (write(fd, text, (size_t)length) != length)
        return 1;
    while ((got = read(fd, text, sizeof text)) > 0)
        continue;
    return got < 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The median time of a program from its spawn to its end, in microseconds. */
static int spawn_many(unsigned count, unsigned gap_ms, char **argv)
{
    uint64_t *took = calloc(count, sizeof *took);
    posix_spawn_file_actions_t actions;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
    (void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
    for (unsigned i = 0; took && i < count; i++) {
        pid_t child;
        int status = 0;
        (void)usleep(gap_ms * 1000);
        uint64_t since = now_us();
        int failed = posix_spawn(&child, argv[0], &actions, NULL, argv, environ);
        if (failed || waitpid(child, &status, 0) < 0 || status != 0) {
            (void)fprintf(stderr, "%s: failed (%s, status %x)\n", argv[0], strerror(failed),
                          status);
            return 1;
        }
        took[i] = now_us() - since;
    }
    if (!took)
        return 1;
    qsort(took, count, sizeof *took, compare);
    (void)printf("%llu\n", (unsigned long long)took[count / 2]);
    free(took);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "request") == 0)
        return request(argv[2], argv[3]);
    if (argc >= 5 && strcmp(argv[1], "spawn") == 0)
        return spawn_many((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), argv + 4);
    (void)fputs(
        "usage: bench-cli request SOCKET TARGET | spawn COUNT GAP-MS PROGRAM [ARGUMENT...]\n",
        stderr);
    return 2;
}
