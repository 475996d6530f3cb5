/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a data directory; see data_lock.h. */
#include "core/data_lock.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/kernel.h"

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
#define HOLDER_TEXT 32
#define STAND_IN " stand-in" // behind the number
#define STAND_IN_MS 45000    // longer than a server takes that does not want to stop

struct holder {
    long pid; // 0: unknown
    bool is_stand_in;
    char text[HOLDER_TEXT]; // its number
};

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

/* What the holder has written; one that has not written yet has no number. */
static struct holder read_holder(int fd)
{
    struct holder holder = {0};
    ssize_t length = pread(fd, holder.text, sizeof holder.text - 1, 0);

    holder.text[length > 0 ? length : 0] = '\0';
    char *end = holder.text;
    holder.pid = strtol(holder.text, &end, 10);
    holder.is_stand_in = holder.pid > 1 && strcmp(end, STAND_IN) == 0;
    *end = '\0';
    return holder;
}

/* By a handle that is made before the lock is looked at again: its number cannot have become somebody else's in between. */
static bool ask_to_stop(int fd, const struct holder *holder)
{
    autofd process = sys_pidfd_open((pid_t)holder->pid);

    if (process < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return false; // it is going; the caller has the lock, or tries again
    if (read_holder(fd).pid != holder->pid || sys_pidfd_send_signal(process, SIGTERM) < 0)
        return false;
    log_info("asking the server that a command started to stop", F("pid", (int64_t)holder->pid));
    return true;
}

/*
 * A holder that was killed goes when all it had is given back; and it may leave a child between clone and exec, which has the lock too. A
 * stand-in goes when it was asked to; another may have come in its place.
 */
static int wait_for_lock(int fd, bool is_stand_in, struct holder *holder)
{
    uint64_t now = clock_monotonic_ms(), until = now + PATIENCE_MS;
    unsigned looks = 0;
    bool is_told = false;
    long asked = 0;

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        *holder = read_holder(fd);
        bool is_ending = holder->pid > 0 && !is_living(holder->pid);
        if (!is_stand_in && !is_ending && holder->is_stand_in && asked != holder->pid &&
            ask_to_stop(fd, holder)) {
            asked = holder->pid;
            until = now + STAND_IN_MS;
        }
        looks = is_ending || (asked && asked == holder->pid) ? 0 : looks + 1;
        if (looks >= LOOKS || clock_monotonic_ms() >= until)
            return -1;
        if (is_ending && !is_told)
            log_info("waiting for a server that is ending", F("pid", (const char *)holder->text));
        is_told |= is_ending;
        (void)usleep(STEP_MS * 1000);
    }
    return 0;
}

int data_lock_take(const char *data_dir, bool is_stand_in, int *out_fd, struct error *err)
{
    autofree char *path = xasprintf("%s/server.lock", data_dir);
    struct holder holder = {0};
    char text[HOLDER_TEXT];

    autofd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    if (wait_for_lock(fd, is_stand_in, &holder) < 0)
        return error_set(err, ERROR_CONFLICT,
                         "another server (pid %s) has the data directory '%s'; stop it, or use "
                         "another with --data",
                         *holder.text ? holder.text : "unknown", data_dir);
    int length = snprintf(text, sizeof text, "%d%s", (int)getpid(), is_stand_in ? STAND_IN : "");
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)length, 0) != length)
        return error_sys(err, "write '%s'", path);
    *out_fd = take_fd(fd);
    return 0;
}
