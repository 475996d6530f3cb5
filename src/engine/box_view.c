/* SPDX-License-Identifier: Apache-2.0 */
/* What programs of a living box take for the machine; see box_view.h. */
#include "engine/box_view.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/size.h"
#include "engine/fixtures.h"
#include "engine/kernel.h"
#include "engine/launch.h"
#include "engine/pid_one.h"
#include "engine/raw.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <linux/stat.h>
#include <sys/wait.h>

#define CHANGER_STACK 65536
#define AFFINITY_ROUNDS 10 // for what is forked meanwhile
#define SHOWN (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static int open_init(struct box *box, pid_t *pid, int *pidfd, struct error *err)
{
    if (pid_one_find(box, pid, err) < 0)
        return -1;
    *pidfd = *pid > 0 ? sys_pidfd_open(*pid) : -1;
    if (*pidfd >= 0 && pid_one_lives(box))
        return 0;
    closep(pidfd);
    return error_refuse(err, ERROR_ENDED, "box", "the sandbox has ended");
}

// ---- mounts ----

struct change {
    int pidfd;
    int sys;     // a detached mount
    int meminfo; // the same; -1: it is .meminfo in the former, or there is none
    bool has_memory;
    char shared[32]; // option of /dev/shm
    const char *failed_step;
    int failed_errno;
};

/* The directory or file at this path; -1 where a guest has put a link there, or nothing. */
RUNS_IN_CHILD static int open_place(const char *path, bool *is_mounted)
{
    struct statx info;
    int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC | O_NOFOLLOW, 0,
                         RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (fd < 0)
        return -1;
    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, 0, &info) < 0) {
        (void)sys_close(fd);
        return -1;
    }
    *is_mounted = info.stx_attributes & STATX_ATTR_MOUNT_ROOT;
    return fd;
}

/* Takes away what an earlier change, or the launch, has mounted at a path that no guest can change while it is mounted on. */
RUNS_IN_CHILD static bool clear_place(const char *path)
{
    bool is_mounted = false;
    int fd = open_place(path, &is_mounted);

    if (fd < 0)
        return false;
    (void)sys_close(fd);
    return !is_mounted || umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
}

RUNS_IN_CHILD static int put_at(int mount_fd, const char *path)
{
    bool is_mounted = false;
    int place = open_place(path, &is_mounted);

    if (place < 0)
        return -1;
    int result =
        sys_move_mount(mount_fd, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    (void)sys_close(place);
    return result;
}

RUNS_IN_CHILD static int enter_mounts(struct change *change)
{
    return setns(change->pidfd, CLONE_NEWNS);
}

RUNS_IN_CHILD static int size_shared(struct change *change)
{
    return mount(NULL, "/dev/shm", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, change->shared);
}

RUNS_IN_CHILD static int clear_meminfo(struct change *change)
{
    (void)change;
    return clear_place("/proc/meminfo") ? 0 : -1;
}

/* By the file of the new /sys where that is in memory: before a guest's own link could be in its way. */
RUNS_IN_CHILD static int put_sys(struct change *change)
{
    if (change->meminfo >= 0 || !change->has_memory) {
        if (clear_place("/sys"))
            (void)put_at(change->sys, "/sys");
        return 0;
    }
    if (put_at(change->sys, "/proc/fs") < 0 ||
        mount("/proc/fs/.meminfo", "/proc/meminfo", NULL, MS_BIND, NULL) < 0)
        return -1;
    if (clear_place("/sys") && put_at(change->sys, "/sys") == 0)
        return 0;
    return umount2("/proc/fs", MNT_DETACH | UMOUNT_NOFOLLOW);
}

RUNS_IN_CHILD static int put_meminfo(struct change *change)
{
    return change->meminfo < 0 ? 0 : put_at(change->meminfo, "/proc/meminfo");
}

#define SIZE_SHARED "resize /dev/shm"
static const struct {
    const char *name;
    int (*run)(struct change *change);
} steps[] = {
    {"enter its mounts", enter_mounts},     {SIZE_SHARED, size_shared},
    {"clear /proc/meminfo", clear_meminfo}, {"put /sys", put_sys},
    {"put /proc/meminfo", put_meminfo},
};

/* In a child that shares memory and fds: what is mounted there is not for this process's own namespace. */
RUNS_IN_CHILD static void change_mounts(void *data)
{
    struct change *change = data;

    for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
        errno = 0;
        if (steps[i].run(change) < 0) {
            change->failed_errno = errno;
            change->failed_step = steps[i].name;
            break;
        }
    }
    for (;;)
        (void)RAW(SYS_exit, 0, 0, 0, 0, 0);
}

static int run_changer(struct change *change, struct error *err)
{
    autofree char *stack = xcalloc(1, CHANGER_STACK);
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_VFORK | CLONE_FILES,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = CHANGER_STACK,
    };
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t child = (pid_t)raw_clone3(&args, 0, change_mounts, change);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return error_sys_code(err, -child, "start the changer of mounts");
    while (waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    return 0;
}

static int clone_shown(int dir_fd, const char *path, int *out, struct error *err)
{
    struct mount_attr attr = {.attr_set = SHOWN, .propagation = MS_PRIVATE};
    autofd fd = sys_open_tree(dir_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (fd < 0 || sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
        return error_sys(err, "show '%s'", path);
    *out = take_fd(fd);
    return 0;
}

/* A mount of the fixtures would tell their path where they share a file system with the host: there it is made in memory, and so
 * is one that too few boxes have for it to be kept. */
static int make_mounts(struct engine *engine, const struct limits *limits, int *sys, int *meminfo,
                       struct error *err)
{
    autofd view = -1;

    if (volume_own_dir(engine->volume) < 0 ||
        fixtures_shared_view(engine->fixtures, limits, engine->n_cpus, &view, err) < 0)
        return fixtures_make_sys(limits, engine->n_cpus, sys, err);
    if (clone_shown(view, "root/sys", sys, err) < 0)
        return -1;
    return limits->memory_bytes ? clone_shown(view, "meminfo", meminfo, err) : 0;
}

static int explain(const struct change *change, const struct limits *limits, struct error *err)
{
    char text[SIZE_TEXT];

    if (change->failed_errno == ESRCH)
        return error_refuse(err, ERROR_ENDED, "box", "the sandbox has ended");
    if (strcmp(change->failed_step, SIZE_SHARED) == 0 && change->failed_errno == EINVAL)
        return error_refuse(err, ERROR_STATE, "memory",
                            "memory: files in /dev/shm take more than %s, half of it; remove some "
                            "first",
                            size_format((uint64_t)limits->memory_bytes / 2, text));
    return error_sys_code(err, change->failed_errno, "show a sandbox its limits: %s",
                          change->failed_step);
}

static int set_mounts(struct box *box, const struct limits *limits, int pidfd, struct error *err)
{
    autofd sys = -1;
    autofd meminfo = -1;
    struct change change = {.pidfd = pidfd, .has_memory = limits->memory_bytes != 0};

    if (make_mounts(box->engine, limits, &sys, &meminfo, err) < 0)
        return -1;
    change.sys = sys;
    change.meminfo = meminfo;
    if (limits->memory_bytes)
        (void)snprintf(change.shared, sizeof change.shared, "size=%" PRId64,
                       limits->memory_bytes / 2);
    else
        (void)snprintf(change.shared, sizeof change.shared, "size=50%%");
    if (run_changer(&change, err) < 0)
        return -1;
    return change.failed_step ? explain(&change, limits, err) : 0;
}

// ---- processors ----

struct affinity {
    cpu_set_t before, wanted; // of the box
    unsigned n_changed;
};

/* As many as are shown; those it has first, so that little moves. */
static void choose_cpus(const cpu_set_t *have, const cpu_set_t *before, unsigned count,
                        cpu_set_t *out)
{
    CPU_ZERO(out);
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < CPU_SETSIZE && (unsigned)CPU_COUNT(out) < count; i++) {
            if (CPU_ISSET(i, have) && (pass == 1 || CPU_ISSET(i, before)))
                CPU_SET(i, out);
        }
    }
}

/* A thread that has chosen processors itself keeps those of them that are left. */
static void move_thread(pid_t tid, struct affinity *affinity)
{
    cpu_set_t now;
    cpu_set_t next;

    if (sched_getaffinity(tid, sizeof now, &now) < 0)
        return; // it has ended
    CPU_AND(&next, &now, &affinity->wanted);
    if (CPU_EQUAL(&now, &affinity->before) || CPU_COUNT(&next) == 0)
        next = affinity->wanted;
    if (!CPU_EQUAL(&now, &next) && sched_setaffinity(tid, sizeof next, &next) == 0)
        affinity->n_changed++;
}

static void move_process(pid_t pid, void *data)
{
    char path[48];

    if (pid <= 1)
        return;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    autodir dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] != '.')
            move_thread((pid_t)strtol(entry->d_name, NULL, 10), data);
    }
}

static int set_cpus(struct box *box, const struct limits *limits, pid_t init, struct error *err)
{
    struct affinity affinity = {.n_changed = 1};
    cpu_set_t have;

    if (sched_getaffinity(0, sizeof have, &have) < 0 ||
        sched_getaffinity(init, sizeof affinity.before, &affinity.before) < 0)
        return error_sys(err, "see which processors a sandbox has");
    choose_cpus(&have, &affinity.before, fixtures_cpus(limits, (unsigned)CPU_COUNT(&have)),
                &affinity.wanted);
    if (CPU_EQUAL(&affinity.wanted, &affinity.before))
        return 0;
    for (unsigned i = 0; i < AFFINITY_ROUNDS && affinity.n_changed > 0; i++) {
        affinity.n_changed = 0;
        if (cgroup_each_process(box->cgroup, move_process, &affinity, err) < 0)
            return -1;
    }
    return 0;
}

// ---- all of it ----

static bool is_seen(const struct box *box, const struct limits *limits)
{
    return box->is_seen_known && box->seen.memory_bytes == limits->memory_bytes &&
           box->seen.cpu_millicores == limits->cpu_millicores &&
           box->seen.max_processes == limits->max_processes;
}

int box_view_set(struct box *box, const struct limits *limits, struct error *err)
{
    autofd pidfd = -1;
    pid_t init = 0;

    if (is_seen(box, limits))
        return 0;
    box->is_seen_known = false;
    if (open_init(box, &init, &pidfd, err) < 0 || set_mounts(box, limits, pidfd, err) < 0 ||
        set_cpus(box, limits, init, err) < 0)
        return -1;
    box->seen = *limits;
    box->is_seen_known = true;
    return 0;
}
