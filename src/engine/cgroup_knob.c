/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories of control groups, the same on v1 and v2; see cgroup_impl.h. */
#include "engine/cgroup_impl.h"

#include "base/clock.h"
#include "base/buffer.h"
#include "base/fd.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NAME_LENGTH_MAX 128

int cgroup_check_name(const char *name, struct error *err)
{
    size_t length =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    if (length == 0 || name[length] || length > NAME_LENGTH_MAX)
        return error_set(
            err, ERROR_INVALID,
            "'%.64s' cannot name a control group: use at most %d letters, digits, '-' and '_'",
            name, NAME_LENGTH_MAX);
    return 0;
}

void cgroup_pause(unsigned *tries)
{
    unsigned shift = *tries < 6 ? *tries : 6;
    struct timespec pause = {.tv_nsec = 50000L << shift}; // 0.05 to 3.2 ms
    (*tries)++;
    (void)nanosleep(&pause, NULL);
}

static int make_path(char *path, const char *group, const char *knob, struct error *err)
{
    int length = snprintf(path, CGROUP_PATH_MAX, "%s%s%s", group, *group ? "/" : "", knob);
    if (length >= CGROUP_PATH_MAX)
        return error_set(err, ERROR_INVALID, "control group '%.64s' has too long a path", group);
    return 0;
}

int knob_write(int dir_fd, const char *group, const char *knob, const char *text, struct error *err)
{
    char path[CGROUP_PATH_MAX];
    if (make_path(path, group, knob, err) < 0)
        return -1;
    return fd_write_knob(dir_fd, path, text, err);
}

int knob_write_number(int dir_fd, const char *group, const char *knob, uint64_t number,
                      struct error *err)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return knob_write(dir_fd, group, knob, text, err);
}

static int knob_read(int dir_fd, const char *group, const char *knob, char *text, size_t size,
                     struct error *err)
{
    char path[CGROUP_PATH_MAX];
    if (make_path(path, group, knob, err) < 0)
        return -1;
    return fd_read_knob(dir_fd, path, text, size, err);
}

int knob_read_number(int dir_fd, const char *group, const char *knob, uint64_t *out,
                     struct error *err)
{
    char path[CGROUP_PATH_MAX];
    if (make_path(path, group, knob, err) < 0)
        return -1;
    return fd_read_knob_number(dir_fd, path, out, err);
}

uint64_t knob_field(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ')
            return strtoull(line + length, NULL, 10);
    }
    return 0;
}

int knob_read_field(int dir_fd, const char *group, const char *knob, const char *key, uint64_t *out,
                    struct error *err)
{
    char text[4096];
    if (knob_read(dir_fd, group, knob, text, sizeof text, err) < 0)
        return -1;
    *out = knob_field(text, key);
    return 0;
}

bool group_is_gone(const struct error *err)
{
    return err->sys == ENOENT ||
           err->sys == ENODEV; // the latter of a file that was open when the group went
}

bool knob_exists(int dir_fd, const char *group, const char *knob)
{
    char path[CGROUP_PATH_MAX];
    struct error ignored;
    return make_path(path, group, knob, &ignored) == 0 && faccessat(dir_fd, path, F_OK, 0) == 0;
}

int knob_each_pid(int dir_fd, const char *group, const char *knob,
                  void (*on_pid)(pid_t pid, void *data), void *data, struct error *err)
{
    char path[CGROUP_PATH_MAX];
    autobuffer text;
    int count = 0;

    buffer_init(&text, 64 << 20);
    if (make_path(path, group, knob, err) < 0)
        return -1;
    autofd fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open %s", path);
    if (fd_read_buffer(fd, &text, err) < 0)
        return error_wrap(err, "read %s", path);
    for (char *at = text.data; at && isdigit((unsigned char)*at); count++) {
        long pid = strtol(at, &at, 10);
        if (on_pid)
            on_pid((pid_t)pid, data);
        at += *at == '\n';
    }
    return count;
}

int group_each_child(int dir_fd, const char *group,
                     int (*on_child)(int dir_fd, const char *child, void *data, struct error *err),
                     void *data, struct error *err)
{
    char path[CGROUP_PATH_MAX];
    int fd = openat(dir_fd, *group ? group : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : error_sys(err, "open control group '%s'", group);
    autodir dir = fdopendir(fd);
    if (!dir) {
        (void)close(fd);
        return error_sys(err, "list control group '%s'", group);
    }
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry)
            return errno ? error_sys(err, "list control group '%s'", group) : 0;
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        if (make_path(path, group, entry->d_name, err) < 0 || on_child(dir_fd, path, data, err) < 0)
            return -1;
    }
}

static int remove_child(int dir_fd, const char *child, void *deadline_ms, struct error *err)
{
    return group_remove(dir_fd, child, *(int64_t *)deadline_ms, err);
}

int group_remove(int dir_fd, const char *group, int64_t deadline_ms, struct error *err)
{
    for (unsigned tries = 0;; cgroup_pause(&tries)) {
        if (unlinkat(dir_fd, group, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY && errno != ENOTEMPTY)
            return error_sys(err, "remove control group '%s'", group);
        if (group_each_child(dir_fd, group, remove_child, &deadline_ms, err) < 0)
            return -1;
        if (unlinkat(dir_fd, group, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if ((int64_t)clock_monotonic_ms() >= deadline_ms)
            return error_set(err, ERROR_TIMEOUT,
                             "remove control group '%s': a process in it does not die", group);
    }
}
