/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks that change or use up things: files that boxes share, devices, privileges of files, memory, processes, disk. Each
 * that uses something up is told how much it must not get, and stops a little above.
 */
#include "attack/attacker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

/* Through a pipe whose pages are the file's own (CVE-2022-0847): bytes put in behind must not land in the file. */
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

static void write_copy(const char *path)
{
    int copy = open(path, O_RDWR | O_CLOEXEC);
    WORKS(pwrite(copy, "EEEEEEEE", 8, 0));
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
    if (memory != MAP_FAILED)
        memset(memory, 'E', 64);
    WORKS(ftruncate(copy, 100));
    WORKS(chmod(path, 04777));
    WORKS(unlink(path));
    (void)close(copy);
}

static void refuse_writing(const char *path)
{
    REFUSED_AS(open(path, O_RDWR | O_CLOEXEC), EROFS, EACCES);
    REFUSED_AS(truncate(path, 0), EROFS, EACCES);
    REFUSED(chmod(path, 0777), EROFS);
    REFUSED(unlink(path), EROFS);
    REFUSED(setxattr(path, "user.evil", "1", 1, 0), EROFS);
}

/* argv: a file to write to by its name, which goes to the box's own copy, if at all; "-" as first word: it is
 * read-only. */
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
        (is_read_only ? refuse_writing : write_copy)(argv[i]);
        (void)close(fd);
    }
}

/* argv: a file of a layer. A second name of it must be one of the box's own copy. */
static void hard_links(int argc, char **argv)
{
    if (argc < 1)
        return;
    (void)unlink("/tmp/second-name");
    if (link(argv[0], "/tmp/second-name") == 0) {
        int fd = open("/tmp/second-name", O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && write(fd, "EEEEEEEE", 8) != 8)
            complain("its own copy cannot be written: %s", strerror(errno));
        (void)close(fd);
    }
    int held = open(argv[0], O_RDONLY | O_CLOEXEC);
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", held);
    (void)linkat(AT_FDCWD, path, AT_FDCWD, "/tmp/third-name", AT_SYMLINK_FOLLOW);
    REFUSED(link("/proc/1/exe", "/tmp/first-program"), EXDEV);
    REFUSED(link("/dev/null", "/tmp/null"), EXDEV);
}

static void device_nodes(int argc, char **argv)
{
    REFUSED(mknod("/tmp/disk", S_IFBLK | 0666, makedev(254, 0)), EPERM);
    REFUSED(mknod("/tmp/mem", S_IFCHR | 0666, makedev(1, 1)), EPERM);
    REFUSED(mknod("/dev/shm/null", S_IFCHR | 0666, makedev(1, 3)), EPERM);
    REFUSED(mknod("/dev/mem", S_IFCHR | 0666, makedev(1, 1)), EROFS);
    char path[32];
    (void)snprintf(path, sizeof path, "/tmp/fifo-%u", getuid());
    WORKS(mknod(path, S_IFIFO | 0666, 0)); // a pipe is no device
}

/* What only the machine's own root may write into a file. */
static void file_attributes(int argc, char **argv)
{
    (void)mkdir("/tmp/dir", 0755);
    REFUSED(setxattr("/tmp/dir", "trusted.overlay.redirect", "/etc", 4, 0), EPERM);
    REFUSED(setxattr("/tmp/dir", "trusted.overlay.opaque", "y", 1, 0), EPERM);
    REFUSED(setxattr("/tmp/dir", "trusted.evil", "y", 1, 0), EPERM);
    if (getxattr("/tmp/dir", "trusted.overlay.opaque", NULL, 0) >= 0)
        complain("overlay's own attributes can be read");
}

/* Makes a copy of this program that runs as root for whoever starts it, should anybody outside be able to. */
static void plant_setuid(int argc, char **argv)
{
    const char *path = argc > 0 ? argv[0] : "/planted/suid";
    int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat info = {0};
    if (argc == 0) {
        (void)mkdir("/planted", 0777);
        WORKS(chmod("/planted", 0777));
    }
    int out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    WORKS(fstat(in, &info));
    for (off_t at = 0; at < info.st_size;) {
        if (sendfile(out, in, &at, (size_t)(info.st_size - at)) <= 0)
            break;
    }
    WORKS(fchmod(out, 06755));
    (void)close(out);
}

/* argv: names and where each leads, as links for the file server to stumble over. */
static void plant_links(int argc, char **argv)
{
    for (int i = 0; i + 1 < argc; i += 2) {
        (void)rmdir(argv[i]);
        (void)unlink(argv[i]);
        WORKS(symlink(argv[i + 1], argv[i]));
    }
}

/* Special files for the file server to stumble over. */
static void plant_special(int argc, char **argv)
{
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

/* argv: a directory and a link to exchange for ever. */
static void exchange(int argc, char **argv)
{
    if (argc < 2)
        return;
    (void)puts("exchanging");
    (void)fflush(stdout);
    for (;;)
        (void)syscall(SYS_renameat2, AT_FDCWD, argv[0], AT_FDCWD, argv[1], RENAME_EXCHANGE);
}

/* argv: how many processes it must not get. They end with it. */
static void fork_many(int argc, char **argv)
{
    long most = argc > 0 ? atol(argv[0]) : 64, count = 1;
    int ends[2];
    char byte;
    if (pipe(ends) < 0)
        return;
    for (; count < most + 8; count++) {
        pid_t child = fork();
        if (child == 0) {
            (void)close(ends[1]);
            (void)!read(ends[0], &byte, 1); // until the first one ends
            _exit(0);
        }
        if (child < 0)
            break;
    }
    if (count > most)
        complain("%ld processes, and the limit is %ld", count, most);
    say_and_wait(count > most ? "" : "refused");
}

/* argv: how many bytes it must not get, and by which way. */
static void eat_memory(int argc, char **argv)
{
    long most = argc > 0 ? atol(argv[0]) : 1 << 30;
    const char *how = argc > 1 ? argv[1] : "heap";
    static char chunk[1 << 20];
    int fd = -1;
    if (strcmp(how, "memfd") == 0)
        fd = (int)syscall(SYS_memfd_create, "eaten", 0);
    else if (strcmp(how, "shm") == 0)
        fd = open("/dev/shm/eaten", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    (void)unlink("/dev/shm/eaten"); // it goes with its eater
    memset(chunk, 'e', sizeof chunk);
    for (long eaten = 0; eaten <= most + (16 << 20); eaten += (long)sizeof chunk) {
        if (fd < 0) {
            char *more = malloc(sizeof chunk);
            if (!more)
                return;
            memcpy(more, chunk, sizeof chunk);
        } else if (write(fd, chunk, sizeof chunk) < 0) {
            return; // refused
        }
    }
    complain("%ld MiB by %s, and the limit is %ld", (most >> 20) + 16, how, most >> 20);
}

/* argv: how many bytes it must not get, and by which way. What it wrote it removes. */
static void fill_disk(int argc, char **argv)
{
    long most = argc > 0 ? atol(argv[0]) : 1 << 30, count = 0;
    bool is_unlinked = argc > 1 && strcmp(argv[1], "deleted") == 0;
    static char chunk[1 << 20];
    int fd = open("/tmp/fill", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (size_t i = 0; i < sizeof chunk; i++)
        chunk[i] = (char)(i * 2654435761u >> 13);
    if (is_unlinked)
        WORKS(unlink("/tmp/fill"));
    for (; count <= (most >> 20) + 8; count++) {
        memcpy(chunk, &count, sizeof count);
        if (write(fd, chunk, sizeof chunk) != (ssize_t)sizeof chunk || fsync(fd) < 0)
            break;
    }
    (void)unlink("/tmp/fill");
    if (count > (most >> 20) + 8)
        complain("%ld MiB, and the limit is %ld", count, most >> 20);
    else if (count < (most >> 20) / 2)
        complain("only %ld MiB of %ld could be written", count, most >> 20);
}

/* argv: how many files it must not get. */
static void open_many(int argc, char **argv)
{
    long most = argc > 0 ? atol(argv[0]) : 4096, count = 3;
    while (count < most + 8 && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        count++;
    if (count != most)
        complain("%ld files, and the limit is %ld", count, most);
}

static void spin(int argc, char **argv)
{
    for (int i = 0; i < 3; i++) {
        if (fork() == 0)
            break;
    }
    (void)puts("spinning");
    (void)fflush(stdout);
    for (volatile unsigned long i = 0;; i++)
        ;
}

const struct inside_attack inside_use[] = {
    {"storm", storm},
    {"hard-links", hard_links},
    {"device-nodes", device_nodes},
    {"file-attributes", file_attributes},
    {"plant-setuid", plant_setuid},
    {"plant-links", plant_links},
    {"plant-special", plant_special},
    {"exchange", exchange},
    {"fork-many", fork_many},
    {"eat-memory", eat_memory},
    {"fill-disk", fill_disk},
    {"open-many", open_many},
    {"spin", spin},
    {0},
};
