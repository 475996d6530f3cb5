/* SPDX-License-Identifier: Apache-2.0 */
/* Runs mkfs.btrfs; see mkfs.h. */
#include "engine/mkfs.h"

#include "base/auto.h"
#include "base/child.h"
#include "base/fd.h"
#include "base/quote.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

static const char *const places[] = {
    "/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs",           "/usr/bin/mkfs.btrfs",
    "/bin/mkfs.btrfs",      "/usr/local/sbin/mkfs.btrfs",
};

static const char *find_program(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (access(places[i], X_OK) == 0)
            return places[i];
    }
    return "mkfs.btrfs";
}

/* Starts it with its errors going to `errors` and nothing else; 0 or an errno. */
static int spawn(const char *program, const char *path, int errors, pid_t *pid)
{
    // metadata once: below it is a file system that has its own ways to guard a file. Nodes of half the usual size: making many
    // small files takes a quarter less, since less is moved about and each reserves less of a limit until the disk has it; the
    // longest link still fits into one
    char *const argv[] = {(char *)"mkfs.btrfs", (char *)"--quiet", (char *)"--nodiscard",
                          (char *)"--metadata", (char *)"single",  (char *)"--nodesize",
                          (char *)"8192",       (char *)"--label", (char *)"burrow",
                          (char *)"--",         (char *)path,      NULL};
    char *const env[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)"LC_ALL=C", NULL};
    const struct child child = {program, argv, env, {CHILD_NOTHING, CHILD_NOTHING, errors}};

    return child_start(&child, pid);
}

/* The first line, with nothing in it that a terminal would act on. */
static void read_complaint(int fd, char *text, size_t size)
{
    char rest[256];
    ssize_t got = fd_read_full(fd, text, size - 1);
    text[got > 0 ? got : 0] = '\0';
    while (fd_read_full(fd, rest, sizeof rest) > 0)
        ; // or it would block on a full pipe
    text[strcspn(text, "\n")] = '\0';
    quote_scrub(text);
}

static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return status;
}

int mkfs_btrfs(const char *program, const char *path, struct error *err)
{
    char complaint[300];
    int ends[2];
    pid_t pid;

    if (!program)
        program = find_program();
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    autofd reading = ends[0];
    autofd writing = ends[1];
    int code = spawn(program, path, writing, &pid);
    if (code == ENOENT)
        return error_set(
            err, ERROR_UNAVAILABLE,
            "'%s' is not installed: install the package btrfs-progs, or use the tmpfs scheme",
            program);
    if (code)
        return error_sys_code(err, code, "run '%s'", program);
    closep(&writing);
    read_complaint(reading, complaint, sizeof complaint);
    int status = wait_for(pid);
    if (status == 0)
        return 0;
    return error_set(err, ERROR_SYSTEM, "'%s' failed on '%s': %s", program, path,
                     complaint[0] ? complaint : "it said nothing");
}
