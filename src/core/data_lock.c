/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a data directory; see data_lock.h. */
#include "core/data_lock.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#define PATIENCE_MS 10000
#define STEP_MS 10
#define LOOKS 5     // in a row at which a holder must be alive
#define EXITING 0x4 // PF_EXITING in the flags of /proc/PID/stat
#define PID_TEXT 32

static bool read_proc(long pid, const char *name, char *text, size_t size)
{
    char path[64];
    struct error ignored;

    (void)snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    return fd_read_knob(AT_FDCWD, path, text, size, &ignored) == 0;
}

/* Whether a line of its status has the bit of SIGKILL: it was killed and has not noticed yet. */
static bool is_killed(const char *status, const char *line)
{
    const char *at = strstr(status, line);

    return at && strtoull(at + strlen(line), NULL, 16) & (1ULL << (SIGKILL - 1));
}

/* Neither ended nor about to: kill(2) finds one that is still giving back what it had. */
static bool is_living(long pid)
{
    char stat[1024], status[4096], state = 'X';
    unsigned flags = EXITING;

    if (!read_proc(pid, "stat", stat, sizeof stat) ||
        !read_proc(pid, "status", status, sizeof status))
        return false;
    const char *behind_name = strrchr(stat, ')');
    if (!behind_name || sscanf(behind_name, ") %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
        return true;
    return state != 'Z' && state != 'X' && !(flags & EXITING) && !is_killed(status, "\nSigPnd:") &&
           !is_killed(status, "\nShdPnd:");
}

/* What the holder has written; one that has not written yet lives. */
static bool is_holder_living(int fd, char pid[PID_TEXT])
{
    ssize_t length = pread(fd, pid, PID_TEXT - 1, 0);

    pid[length > 0 ? length : 0] = '\0';
    long number = strtol(pid, NULL, 10);
    return number <= 0 || is_living(number);
}

/* A holder that was killed goes when all it had is given back; and it may leave a child between clone and exec, which has the lock too. */
static int wait_for_lock(int fd, char pid[PID_TEXT])
{
    uint64_t until = clock_monotonic_ms() + PATIENCE_MS;
    unsigned looks = 0;
    bool is_told = false;

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        looks = is_holder_living(fd, pid) ? looks + 1 : 0;
        if (looks >= LOOKS || clock_monotonic_ms() >= until)
            return -1;
        if (looks == 0 && !is_told)
            log_info("waiting for a server that is ending", F("pid", (const char *)pid));
        is_told |= looks == 0;
        (void)usleep(STEP_MS * 1000);
    }
    return 0;
}

int data_lock_take(const char *data_dir, int *out_fd, struct error *err)
{
    autofree char *path = xasprintf("%s/server.lock", data_dir);
    char pid[PID_TEXT] = "";

    autofd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    if (wait_for_lock(fd, pid) < 0)
        return error_set(err, ERROR_CONFLICT,
                         "another server (pid %s) has the data directory '%s'; stop it, or use "
                         "another with --data",
                         *pid ? pid : "unknown", data_dir);
    int length = snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)length, 0) != length)
        return error_sys(err, "write '%s'", path);
    *out_fd = take_fd(fd);
    return 0;
}
