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

/* From the spawn of a program to its end, in microseconds; 0 when it failed. */
static uint64_t spawn_one(char **argv, const posix_spawn_file_actions_t *actions)
{
    pid_t child;
    int status = 0;
    uint64_t since = now_us();
    int failed = posix_spawn(&child, argv[0], actions, NULL, argv, environ);

    if (failed || waitpid(child, &status, 0) < 0 || status != 0) {
        (void)fprintf(stderr, "%s: failed (%s, status %x)\n", argv[0], strerror(failed), status);
        return 0;
    }
    return now_us() - since + 1;
}

/* Two programs turn by turn, so that whatever else the machine does disturbs both: the median of each. */
static int spawn_both(unsigned count, unsigned gap_ms, char **first, char **second)
{
    uint64_t *took = calloc(2 * (size_t)count, sizeof *took);
    posix_spawn_file_actions_t actions;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
    (void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
    for (unsigned i = 0; took && i < 2 * count; i++) {
        uint64_t *one = took + (i % 2 ? count : 0) + i / 2;
        (void)usleep(gap_ms * 1000);
        *one = spawn_one(i % 2 ? second : first, &actions);
        if (!*one)
            return 1;
    }
    if (!took)
        return 1;
    qsort(took, count, sizeof *took, compare);
    qsort(took + count, count, sizeof *took, compare);
    (void)printf("%llu %llu\n", (unsigned long long)took[count / 2],
                 (unsigned long long)took[count + count / 2]);
    free(took);
    return 0;
}

/* The words behind the one that parts two commands, which ends the first; or NULL. */
static char **part(char **words)
{
    for (; *words; words++) {
        if (strcmp(*words, "beside") == 0 && words[1]) {
            *words = NULL;
            return words + 1;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "request") == 0)
        return request(argv[2], argv[3]);
    char **second = argc >= 7 && strcmp(argv[1], "spawn") == 0 ? part(argv + 5) : NULL;
    if (second)
        return spawn_both((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), argv + 4, second);
    (void)fputs("usage: bench-cli request SOCKET TARGET | spawn COUNT GAP-MS PROGRAM [ARGUMENT...] "
                "beside PROGRAM [ARGUMENT...]\n",
                stderr);
    return 2;
}
