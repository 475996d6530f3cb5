/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that take all they can get of one thing; see guest.h. */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1u << 20)

static char *take_memory(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; memory != MAP_FAILED && i < bytes; i += 4096)
        memory[i] = 1;
    return memory == MAP_FAILED ? NULL : memory;
}

static int run_eat(int argc, char **argv)
{
    for (int i = 0; i < atoi(argv[1]); i++) {
        if (!take_memory(MIB))
            return 1;
    }
    say("ate");
    if (argc > 2)
        pause_for_ever();
    return 0;
}

/* A child eats; the parent tells how it ended and ends well itself. */
static int run_feed(int argc, char **argv)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(run_eat(argc, argv));
    (void)waitpid(child, &status, 0);
    say("child ended by signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return 0;
}

static int run_share(int argc, char **argv)
{
    size_t bytes = (size_t)atoi(argv[1]) * MIB;
    int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
    char *memory = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
    if (memory == (void *)-1)
        return errno;
    for (size_t i = 0; i < bytes; i += 4096)
        memory[i] = 1;
    say("shared");
    return 0;
}

/* `fill FILE MIB [deleted]`: writes until that much or an error; tells how much and the errno. */
static int run_fill(int argc, char **argv)
{
    static char data[65536];
    uint64_t left = strtoull(argv[2], NULL, 10) * MIB;
    uint64_t done = 0;
    int code = 0;
    int fd = open(argv[1], O_RDWR | O_CREAT, 0644);

    if (fd < 0) {
        say("open %d", errno);
        return 1;
    }
    if (argc > 3)
        (void)unlink(argv[1]);
    memset(data, 'x', sizeof data);
    for (uint64_t salt = 0; done < left && code == 0; salt++) {
        memcpy(data, &salt, sizeof salt);
        ssize_t wrote = write(fd, data, sizeof data);
        if (wrote < 0)
            code = errno;
        else
            done += (uint64_t)wrote;
    }
    if (fsync(fd) < 0 && code == 0)
        code = errno;
    say("%llu %d", (unsigned long long)done, code);
    if (argc > 3)
        pause_for_ever();
    return 0;
}

/* Reads a file to its end. */
static int run_digest(int argc, char **argv)
{
    static char data[65536];
    unsigned long long total = 0;
    int fd = open(argv[1], O_RDONLY);
    for (ssize_t got; (got = read(fd, data, sizeof data)) > 0;)
        total += (unsigned long long)got;
    say("%llu", total);
    return 0;
}

static int run_make_files(int argc, char **argv)
{
    for (int i = 0; i < atoi(argv[2]); i++) {
        char path[256];
        (void)snprintf(path, sizeof path, "%s%d", argv[1], i);
        int fd = open(path, O_WRONLY | O_CREAT, 0644);
        if (fd < 0) {
            say("%d %d", i, errno);
            return 0;
        }
        (void)close(fd);
    }
    say("%s 0", argv[2]);
    return 0;
}

static int run_open_many(int argc, char **argv)
{
    int last = 0;
    for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;)
        last = fd;
    say("%d %d", last + 1, errno);
    return 0;
}

/* Uses that much CPU time of its own. */
static int run_spin(int argc, char **argv)
{
    clock_t end = clock() + (clock_t)atoi(argv[1]) * (CLOCKS_PER_SEC / 1000);
    say("ready");
    while (clock() < end)
        ;
    return 0;
}

/* Children that wait, until no more can be had; tells how many. */
static int run_fork_all(int argc, char **argv)
{
    int count = 0;
    for (;;) {
        pid_t child = fork();
        if (child == 0)
            pause_for_ever();
        if (child < 0)
            break;
        count++;
    }
    say("%d %d", count, errno);
    if (argc > 1)
        pause_for_ever();
    return 0;
}

/* `bomb [KIB]`: every process forks for ever, and takes that much memory first. */
static int run_bomb(int argc, char **argv)
{
    size_t bytes = argc > 1 ? (size_t)atoi(argv[1]) * 1024 : 0;
    for (int i = 1; i < 32; i++)
        (void)signal(i, SIG_IGN);
    say("ready");
    for (;;) {
        if (fork() == 0 && bytes)
            (void)take_memory(bytes);
    }
    return 0;
}

/* COUNT orphans that end at once: PID 1 inherits every one. */
static int run_orphans(int argc, char **argv)
{
    for (int left = atoi(argv[1]); left > 0;) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 50; i++) {
                pid_t orphan = fork();
                if (orphan == 0)
                    _exit(7);
                if (orphan < 0)
                    i--; // the limit: until PID 1 has made room
            }
            _exit(0);
        }
        if (child < 0)
            continue;
        (void)waitpid(child, NULL, 0);
        left -= 50;
    }
    say("done");
    return 0;
}

const struct command hungry_commands[] = {
    {"eat", run_eat, "MIB [stay]"},
    {"feed", run_feed, "MIB: a child eats"},
    {"share", run_share, "MIB of System V memory that outlives us"},
    {"fill", run_fill, "FILE MIB [deleted]"},
    {"digest", run_digest, "FILE"},
    {"make-files", run_make_files, "PREFIX COUNT"},
    {"open-many", run_open_many, ""},
    {"spin", run_spin, "CPU-MS"},
    {"fork-all", run_fork_all, "[stay]"},
    {"bomb", run_bomb, "[KIB]"},
    {"orphans", run_orphans, "COUNT"},
    {0},
};
