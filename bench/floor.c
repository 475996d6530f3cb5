/* SPDX-License-Identifier: Apache-2.0 */
/* The floor; see floor.h. Read floor_run from top to bottom: each step is one of a sandbox's. */
#include "floor.h"
#include "floor_child.h"

#include "base/fd.h"
#include "base/mem.h"
#include "engine/kernel.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ID_BASE 0x70000000u
#define ID_COUNT 65536u
#define GROUP "burrow-floor"

#ifndef PIDFD_GET_MNT_NAMESPACE
#define PIDFD_GET_MNT_NAMESPACE _IO(0xFF, 3)
#endif

struct knob {
    const char *group; // directory of the hierarchy
    const char *file;
    const char *value;
};

/* The same limits as every row's: see LIMIT_* in bench/run. */
static const struct knob v1_knobs[] = {
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "268435456"},
    {"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "100000"},
    {"/sys/fs/cgroup/pids", "pids.max", "256"},
};
static const struct knob v2_knobs[] = {
    {"/sys/fs/cgroup", "memory.max", "268435456"},
    {"/sys/fs/cgroup", "cpu.max", "100000 100000"},
    {"/sys/fs/cgroup", "pids.max", "256"},
};
#define DISK_BYTES "268435456"
#define DISK_INODES "65536"

struct floor {
    char *root;
    bool has_host_usr;
    bool is_v2;
    int own_net;  // to come back to
    int next_net; // made ready, or -1
    // of the ended run; letting go of mounts waits for the other CPUs, so it is done off the path
    int held_mounts;  // its mount namespace
    int held_layer;   // detached mounts
    int held_scratch; //
    bool has_group;
    unsigned runs;
    char group[64];
};

int floor_new(const char *root, bool has_host_usr, struct floor **out, struct error *err)
{
    autoptr(floor) floor = xnew(struct floor);
    floor->own_net = floor->next_net = floor->held_mounts = -1;
    floor->held_layer = floor->held_scratch = -1;
    floor->root = xstrdup(root);
    floor->has_host_usr = has_host_usr;
    floor->is_v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    floor->own_net = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (floor->own_net < 0)
        return error_sys(err, "open the own network namespace");
    *out = take(floor);
    return 0;
}

void floor_free(struct floor *floor)
{
    if (!floor)
        return;
    floor_clean(floor);
    closep(&floor->own_net);
    closep(&floor->next_net);
    free(floor->root);
    free(floor);
}

static int bring_loopback_up(struct error *err)
{
    autofd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo"};

    request.ifr_flags = IFF_UP;
    if (sock < 0 || ioctl(sock, SIOCSIFFLAGS, &request) < 0)
        return error_sys(err, "bring the loopback up");
    return 0;
}

int floor_fill_network(struct floor *floor, struct error *err)
{
    if (floor->next_net >= 0)
        return 0;
    if (unshare(CLONE_NEWNET) < 0)
        return error_sys(err, "make a network namespace");
    int failed = bring_loopback_up(err);
    if (!failed)
        floor->next_net = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (setns(floor->own_net, CLONE_NEWNET) < 0)
        return error_sys(err, "go back to the own network namespace");
    return failed;
}

static int write_map(pid_t pid, const char *file, struct error *err)
{
    char path[64];
    char map[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    (void)snprintf(map, sizeof map, "0 %u %u", ID_BASE, ID_COUNT);
    return fd_write_knob(AT_FDCWD, path, map, err);
}

/* A user namespace lives as long as its fd; the process that made it is not needed. */
static int make_user_namespace(int *out, struct error *err)
{
    char path[64];
    pid_t pid = floor_clone_sleeper(CLONE_NEWUSER);
    if (pid < 0)
        return error_sys(err, "make a user namespace");
    int failed = write_map(pid, "uid_map", err) < 0 || write_map(pid, "gid_map", err) < 0;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    *out = open(path, O_RDONLY | O_CLOEXEC);
    if (!failed && *out < 0)
        failed = 1, error_sys(err, "open %s", path);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, __WALL);
    return failed ? -1 : 0;
}

static int make_groups(struct floor *floor, struct floor_child *child, struct error *err)
{
    const struct knob *knobs = floor->is_v2 ? v2_knobs : v1_knobs;
    char dir[128];
    char path[256];

    (void)snprintf(floor->group, sizeof floor->group, GROUP "-%d-%u", (int)getpid(), floor->runs++);
    floor->has_group = true;
    for (unsigned i = 0; i < FLOOR_GROUPS; i++) {
        (void)snprintf(dir, sizeof dir, "%s/%s", knobs[i].group, floor->group);
        if (mkdir(dir, 0755) < 0 && errno != EEXIST)
            return error_sys(err, "make control group '%s'", dir);
        (void)snprintf(path, sizeof path, "%s/%s", dir, knobs[i].file);
        if (fd_write_knob(AT_FDCWD, path, knobs[i].value, err) < 0)
            return -1;
        (void)snprintf(path, sizeof path, "%s/%s", dir, floor->is_v2 ? "cgroup.procs" : "tasks");
        if (floor->is_v2 && i > 0)
            continue;
        child->tasks[i] = open(path, O_WRONLY | O_CLOEXEC);
        if (child->tasks[i] < 0)
            return error_sys(err, "open %s", path);
    }
    return 0;
}

void floor_clean(struct floor *floor)
{
    const struct knob *knobs = floor->is_v2 ? v2_knobs : v1_knobs;
    char dir[128];

    closep(&floor->held_mounts);
    closep(&floor->held_layer);
    closep(&floor->held_scratch);
    for (unsigned i = 0; floor->has_group && i < FLOOR_GROUPS; i++) {
        (void)snprintf(dir, sizeof dir, "%s/%s", knobs[i].group, floor->group);
        (void)rmdir(dir); // v2: one directory, gone the first time
    }
    floor->has_group = false;
}

/* A tmpfs of limited size with upper/ and work/ of the box's root. */
static int make_scratch(int *out, struct error *err)
{
    autofd context = sys_fsopen("tmpfs", FSOPEN_CLOEXEC);
    if (context < 0 || sys_fsconfig(context, FSCONFIG_SET_STRING, "size", DISK_BYTES, 0) < 0 ||
        sys_fsconfig(context, FSCONFIG_SET_STRING, "nr_inodes", DISK_INODES, 0) < 0 ||
        sys_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return error_sys(err, "make a tmpfs");
    autofd scratch = sys_fsmount(context, FSMOUNT_CLOEXEC, 0);
    if (scratch < 0)
        return error_sys(err, "mount a tmpfs");
    if (mkdirat(scratch, "upper", 0755) < 0 || mkdirat(scratch, "work", 0755) < 0 ||
        fchownat(scratch, "upper", ID_BASE, ID_BASE, 0) < 0 ||
        fchownat(scratch, "work", ID_BASE, ID_BASE, 0) < 0)
        return error_sys(err, "make upper and work");
    *out = take_fd(scratch);
    return 0;
}

static int open_layer(const char *root, int user_namespace, int *out, struct error *err)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)user_namespace};
    autofd layer = sys_open_tree(AT_FDCWD, root, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (layer < 0)
        return error_sys(err, "open layer '%s'", root);
    if (sys_mount_setattr(layer, "", AT_EMPTY_PATH, &attr) < 0)
        return error_sys(err, "map the ids of layer '%s'", root);
    *out = take_fd(layer);
    return 0;
}

static int make_root(struct floor *floor, int user_namespace, int *out, struct error *err)
{
    if (open_layer(floor->root, user_namespace, &floor->held_layer, err) < 0 ||
        make_scratch(&floor->held_scratch, err) < 0)
        return -1;
    int layer = floor->held_layer;
    int scratch = floor->held_scratch;
    autofd upper = openat(scratch, "upper", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autofd work = openat(scratch, "work", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autofd context = sys_fsopen("overlay", FSOPEN_CLOEXEC);
    if (upper < 0 || work < 0 || context < 0)
        return error_sys(err, "open upper, work and an overlay");
    if (sys_fsconfig(context, FSCONFIG_SET_FD, "lowerdir+", NULL, layer) < 0)
        return error_sys(err, "give the layer to overlay by fd (kernel 6.13)");
    if (sys_fsconfig(context, FSCONFIG_SET_FD, "upperdir", NULL, upper) < 0 ||
        sys_fsconfig(context, FSCONFIG_SET_FD, "workdir", NULL, work) < 0 ||
        sys_fsconfig(context, FSCONFIG_SET_STRING, "redirect_dir", "on", 0) < 0 ||
        sys_fsconfig(context, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0 ||
        sys_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return error_sys(err, "make an overlay");
    *out = sys_fsmount(context, FSMOUNT_CLOEXEC, 0);
    return *out < 0 ? error_sys(err, "mount an overlay") : 0;
}

static int open_usr(struct floor *floor, int *out, struct error *err)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    if (!floor->has_host_usr)
        return 0;
    *out = sys_open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (*out < 0 || sys_mount_setattr(*out, "", AT_EMPTY_PATH, &attr) < 0)
        return error_sys(err, "clone /usr read-only");
    return 0;
}

static int hold_mounts(int pidfd)
{
    return ioctl(pidfd, PIDFD_GET_MNT_NAMESPACE, 0);
}

/* Born in the ready network namespace, where there is one. */
static pid_t start(struct floor *floor, struct floor_child *child, int *pidfd, struct error *err)
{
    bool is_ready = floor->next_net >= 0;
    if (is_ready && setns(floor->next_net, CLONE_NEWNET) < 0)
        return error_sys(err, "enter a network namespace");
    pid_t pid = floor_clone_child(child, is_ready ? 0 : CLONE_NEWNET, pidfd);
    int failed = errno;
    if (is_ready && setns(floor->own_net, CLONE_NEWNET) < 0)
        return error_sys(err, "go back to the own network namespace");
    closep(&floor->next_net);
    if (pid < 0)
        return error_sys_code(err, failed, "start the program");
    return pid;
}

static void close_child(struct floor_child *child)
{
    closep(&child->user_namespace);
    closep(&child->root);
    closep(&child->usr);
    for (unsigned i = 0; i < FLOOR_GROUPS; i++)
        closep(&child->tasks[i]);
}

int floor_run(struct floor *floor, const char *const *argv, int *status, struct error *err)
{
    __attribute__((cleanup(close_child))) struct floor_child child = {
        .argv = argv, .user_namespace = -1, .root = -1, .usr = -1, .tasks = {-1, -1, -1}};
    autofd pidfd = -1;

    if (make_user_namespace(&child.user_namespace, err) < 0 ||
        make_groups(floor, &child, err) < 0 ||
        make_root(floor, child.user_namespace, &child.root, err) < 0 ||
        open_usr(floor, &child.usr, err) < 0)
        return -1;
    pid_t pid = start(floor, &child, &pidfd, err);
    if (pid < 0)
        return -1;
    floor->held_mounts = hold_mounts(pidfd);
    if (waitpid(pid, status, 0) < 0)
        return error_sys(err, "wait for the program");
    if (WIFEXITED(*status) && WEXITSTATUS(*status) >= FLOOR_FAILED)
        return error_sys_code(err, child.failed_errno, "in the child, %s", child.failed_step);
    return 0;
}
