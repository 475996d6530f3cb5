/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are programs started by posix_spawn, and the floor. */
#include "bench.h"
#include "floor.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "engine/kernel.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

static const char *const program[] = {"/bin/true", NULL};

pid_t bench_spawn(char **argv, int stdin_fd, int stdout_fd, struct error *err)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, stdin_fd, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, stdout_fd, 1);
    int failed = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return error_sys_code(err, failed, "start '%s'", argv[0]);
    return pid;
}

int bench_reap(pid_t pid, const char *name, struct error *err)
{
    int status = 0;
    if (waitpid(pid, &status, 0) < 0)
        return error_sys(err, "wait for '%s'", name);
    if (WIFSIGNALED(status))
        return error_set(err, ERROR_SYSTEM, "'%s' ended by signal %d", name, WTERMSIG(status));
    if (WEXITSTATUS(status))
        return error_set(err, ERROR_SYSTEM, "'%s' ended with %d", name, WEXITSTATUS(status));
    return 0;
}

struct spawn_row {
    char *line; // name and argv point into it
    int null;
    int own_mounts;  // -1 for rows that stay where they are
    int less_mounts; // a mount namespace without the v2 tree
};

static int spawn_prepare(struct row *row, struct error *err)
{
    struct spawn_row *own = row->data;
    if (own->less_mounts >= 0 && setns(own->less_mounts, CLONE_NEWNS) < 0)
        return error_sys(err, "enter a mount namespace");
    return 0;
}

static int spawn_run(struct row *row, struct error *err)
{
    struct spawn_row *own = row->data;
    pid_t pid = bench_spawn(row->argv, own->null, own->null, err);
    return pid < 0 ? -1 : bench_reap(pid, row->name, err);
}

static int spawn_settle(struct row *row, struct error *err)
{
    struct spawn_row *own = row->data;
    if (own->own_mounts >= 0 && setns(own->own_mounts, CLONE_NEWNS) < 0)
        return error_sys(err, "go back to the own mount namespace");
    return 0;
}

static void spawn_clear(struct row *row)
{
    struct spawn_row *own = row->data;
    closep(&own->null);
    closep(&own->own_mounts);
    closep(&own->less_mounts);
    free(own->line);
    free(own);
    free(row->argv);
}

/* crun refuses to start where a v2 tree with controllers stands beside v1: show it a machine
 * without. */
static int hide_unified(struct spawn_row *own, struct error *err)
{
    struct mount_attr private = {.propagation = 1 << 18}; // MS_PRIVATE
    own->own_mounts = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (own->own_mounts < 0 || unshare(CLONE_NEWNS) < 0)
        return error_sys(err, "make a mount namespace");
    int failed = sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private);
    if (!failed)
        failed = (int)syscall(SYS_umount2, "/sys/fs/cgroup/unified", 0);
    if (failed)
        error_sys(err, "hide /sys/fs/cgroup/unified");
    own->less_mounts = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (setns(own->own_mounts, CLONE_NEWNS) < 0)
        return error_sys(err, "go back to the own mount namespace");
    return failed;
}

char **peer_split(char *line, const char **name)
{
    size_t count = 0;
    char **argv = NULL;

    *name = strsep(&line, "\t");
    do {
        argv = xrealloc(argv, count + 1, sizeof *argv);
        argv[count] = strsep(&line, "\t");
    } while (argv[count++]);
    return argv;
}

static int add_peer(struct rows *rows, const char *line, int null, struct error *err)
{
    const char *name = NULL;
    struct spawn_row *own = xnew(struct spawn_row);
    *own = (struct spawn_row){.line = xstrdup(line), .own_mounts = -1, .less_mounts = -1};
    own->null = fcntl(null, F_DUPFD_CLOEXEC, 3);
    char **argv = peer_split(own->line, &name);
    struct row *row = rows_add(rows, name);
    row->prepare = spawn_prepare;
    row->run = spawn_run;
    row->settle = spawn_settle;
    row->clear = spawn_clear;
    row->argv = argv;
    row->data = own;
    if (!argv[0] || strcmp(argv[0], PEER_NO_UNIFIED) != 0)
        return 0;
    for (; *argv; argv++)
        argv[0] = argv[1];
    return hide_unified(own, err);
}

int peers_add(struct rows *rows, const char *path, struct error *err)
{
    autobuffer text;
    buffer_init(&text, 1 << 20);
    if (!path)
        return error_set(err, ERROR_INVALID, "--peers is needed");
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    autofd null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0 || null < 0)
        return error_sys(err, "open '%s'", path);
    if (fd_read_buffer(fd, &text, err) < 0)
        return -1;
    char *rest = text.data;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        if (*line && add_peer(rows, line, null, err) < 0)
            return -1;
    }
    return 0;
}

static int floor_row_prepare(struct row *row, struct error *err)
{
    return floor_fill_network(row->data, err);
}

static int floor_row_run(struct row *row, struct error *err)
{
    int status = 0;
    if (floor_run(row->data, program, &status, err) < 0)
        return -1;
    return status ? error_set(err, ERROR_SYSTEM, "the program ended with %d", status) : 0;
}

static int floor_row_settle(struct row *row, struct error *err)
{
    floor_clean(row->data);
    return 0;
}

static void floor_row_clear(struct row *row)
{
    floor_free(row->data);
}

int floor_add(struct rows *rows, const struct bench *bench, struct error *err)
{
    struct floor *floor = NULL;
    if (!bench->root)
        return 0;
    if (floor_new(bench->root, bench->has_host_usr, &floor, err) < 0)
        return error_wrap(err, "floor");
    struct row *row = rows_add(rows, "floor");
    row->prepare = floor_row_prepare;
    row->run = floor_row_run;
    row->settle = floor_row_settle;
    row->clear = floor_row_clear;
    row->data = floor;
    return 0;
}
