/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks that change or use up things: shared read-only files, devices, privileges of files,
 * memory, processes. */
#include "attacker.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

/* argv: nodes planted in the image. */
static void devices(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        REFUSED(open(argv[i], O_RDONLY | O_CLOEXEC), EACCES);
        REFUSED(open(argv[i], O_RDWR | O_CLOEXEC), EACCES);
        // A copy in the upper layer is no better.
        (void)chmod(argv[i], 0666);
        REFUSED(open(argv[i], O_RDONLY | O_CLOEXEC), EACCES);
    }
}

/* Mount points cannot be taken away under a later launch. */
static void hide_places(int argc, char **argv)
{
    static const char *const points[] = {"/proc", "/dev"};
    for (size_t i = 0; i < COUNT(points); i++) {
        REFUSED(rmdir(points[i]), EBUSY);
        REFUSED(rename(points[i], "/away"), EBUSY);
        REFUSED(syscall(SYS_renameat2, AT_FDCWD, points[i], AT_FDCWD, "/tmp", RENAME_EXCHANGE),
                EBUSY);
    }
    WORKS(rename("/tmp", "/tmp-away"));
    WORKS(symlink("/etc", "/tmp"));
    WORKS(rename("/sys", "/sys-away"));
    WORKS(symlink("/proc/self/fd", "/sys"));
}

static void fork_bomb(int argc, char **argv)
{
    for (;;) {
        if (fork() < 0)
            (void)sched_yield();
    }
}

/* argv: how. Takes memory until it is stopped; past 1 GiB it says so. */
static void eat_memory(int argc, char **argv)
{
    const char *how = argc > 0 ? argv[0] : "heap";
    static char chunk[1 << 20];
    int fd = -1;
    if (strcmp(how, "memfd") == 0)
        fd = (int)syscall(SYS_memfd_create, "eaten", 0);
    else if (strcmp(how, "shm") == 0)
        fd = open("/dev/shm/eaten", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    memset(chunk, 'e', sizeof chunk);
    for (int i = 0; i < 1024; i++) {
        if (fd < 0) {
            char *more = malloc(sizeof chunk);
            if (more)
                memcpy(more, chunk, sizeof chunk);
        } else if (write(fd, chunk, sizeof chunk) < 0) {
            (void)printf("%s\n", strerror(errno));
            exit(3);
        }
    }
    complain("ate it all");
}

/* argv: how. Writes until the disk says no; prints how many MiB and why. */
static void fill_disk(int argc, char **argv)
{
    bool is_unlinked = argc > 0 && strcmp(argv[0], "deleted") == 0;
    bool has_holes = argc > 0 && strcmp(argv[0], "holes") == 0;
    static char chunk[1 << 20];
    int count = 0;
    int fd = open("/workspace/fill", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (size_t i = 0; i < sizeof chunk; i++)
        chunk[i] = (char)(i * 2654435761u >> 13);
    if (is_unlinked)
        WORKS(unlink("/workspace/fill"));
    for (; count < 1024; count++) {
        memcpy(chunk, &count, sizeof count);
        if (write(fd, chunk, sizeof chunk) != (ssize_t)sizeof chunk || fsync(fd) < 0)
            break;
        if (has_holes && count % 2)
            (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            (off_t)count * (1 << 20), 1 << 20);
    }
    (void)printf("%d %s\n", count, strerror(errno));
    if (count == 1024)
        complain("nothing stopped it");
}

/* A tree of processes hard to kill: deaf to TERM, stopped, in sessions of their own, orphaned,
 * holding the output. */
static void hydra(int argc, char **argv)
{
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    for (int i = 0; i < 6; i++) {
        if (fork() != 0)
            continue;
        if (i % 2)
            (void)setsid();
        if (fork() > 0)
            _exit(0); // orphaned
        if (i == 2)
            (void)raise(SIGSTOP);
        for (;;)
            (void)pause();
    }
    (void)puts("alive");
    (void)fflush(stdout);
    for (;;)
        (void)pause();
}

static void flood(int argc, char **argv)
{
    static char chunk[1 << 16];
    long mib = argc > 0 ? atol(argv[0]) : 64;
    memset(chunk, 'y', sizeof chunk);
    for (long i = 0; i < mib * 16; i++) {
        if (write(STDOUT_FILENO, chunk, sizeof chunk) < 0)
            complain("%s", strerror(errno));
    }
}

const struct inside_attack write_attacks[] = {
    {"planted-devices", devices},
    {"hide-places", hide_places},
    {"fork-bomb", fork_bomb},
    {"eat-memory", eat_memory},
    {"fill-disk", fill_disk},
    {"hydra", hydra},
    {"flood", flood},
    {0},
};
