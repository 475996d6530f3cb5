/* SPDX-License-Identifier: Apache-2.0 */
/* The box half of a launch: from a child in fresh namespaces to burrow-init; see launch.h and docs/internals/launch.md. */
#include "engine/launch.h"

#include "engine/capabilities.h"
#include "engine/fixtures.h"
#include "engine/kernel.h"
#include "engine/link.h"
#include "engine/raw.h"
#include "engine/seccomp.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* What is opened from here on, and how the last descriptors are arranged, is this child's own. */
static int leave_fds(struct launch *l)
{
    return l->fds_end ? sys_close_range((unsigned)l->fds_end, ~0u, CLOSE_RANGE_UNSHARE) : 0;
}

static int join_cgroups(struct launch *l)
{
    const struct cgroup_entry *entry = &l->entry;
    for (unsigned i = 0; i < entry->n_tasks; i++) {
        if (sys_write(entry->tasks[i], "0", 1) != 1)
            return -1;
    }
    return 0;
}

static int enter_network(struct launch *l)
{
    return setns(l->network_fd, CLONE_NEWNET);
}

/* A mount namespace of its own, nothing in it shared with the host, the working directory at the fixtures' mounts/. */
static int leave_mounts(struct launch *l)
{
    if (l->engine->mount_parent_fd >= 0) {
        if (setns(l->mount_parent_fd, CLONE_NEWNS) < 0)
            return -1;
        return unshare(CLONE_NEWNS | CLONE_NEWCGROUP);
    }
    // The working directory is this child's own; in the copied namespace it is the copy of the same mount.
    if (fchdir(l->engine->fixtures->mounts_fd) < 0 || unshare(CLONE_NEWNS | CLONE_NEWCGROUP) < 0)
        return -1;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* The mount namespace is a copy of the parent that the engine keeps, and no layer is attached in it. */
static bool has_bare_root(const struct launch *l)
{
    return l->engine->mount_parent_fd >= 0 && l->engine->has_layer_fds;
}

/*
 * Overlay keeps its mounter's credentials: the box's root on disk, with all capabilities of ours but the one that
 * ext4 takes as leave to write past a quota.
 */
static int become_mounter(struct launch *l, bool is_mounter)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    uint32_t id = is_mounter ? l->first_id : 0;

    if (syscall(SYS_capget, &header, data) < 0)
        return -1;
    (void)syscall(SYS_setfsgid, id);
    (void)syscall(SYS_setfsuid, id);
    data[0].effective = data[0].permitted;
    data[1].effective = data[1].permitted;
    if (is_mounter)
        data[0].effective &= ~(1u << CAP_SYS_RESOURCE);
    return (int)syscall(SYS_capset, &header, data);
}

/* Gives overlay the layers by path: attached in this mount namespace only. */
static int layers_by_path(struct launch *l, int overlay)
{
    char name[8];
    for (unsigned i = 0; i < l->n_layers; i++) {
        (void)snprintf(name, sizeof name, "l%u", i);
        if (sys_move_mount(l->layers[i], "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
            return -1;
    }
    if (sys_move_mount(l->upper, "", AT_FDCWD, "up", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return -1;

    char lower[LAUNCH_MAX_LAYERS * 5 + 1];
    size_t used = 0;
    for (unsigned i = 0; i < l->n_layers; i++)
        used += (size_t)snprintf(lower + used, sizeof lower - used, "%sl%u", i ? ":" : "", i);
    if (sys_fsconfig(overlay, FSCONFIG_SET_STRING, "lowerdir", lower, 0) < 0 ||
        sys_fsconfig(overlay, FSCONFIG_SET_STRING, "upperdir", "up/upper", 0) < 0)
        return -1;
    return sys_fsconfig(overlay, FSCONFIG_SET_STRING, "workdir", "up/work", 0);
}

static int set_dir(int overlay, const char *key, int base, const char *name)
{
    int fd = sys_openat(base, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    return sys_fsconfig(overlay, FSCONFIG_SET_FD, key, NULL, fd);
}

static int layers_by_fd(struct launch *l, int overlay)
{
    for (unsigned i = 0; i < l->n_layers; i++) {
        if (sys_fsconfig(overlay, FSCONFIG_SET_FD, "lowerdir+", NULL, l->layers[i]) < 0)
            return -1;
    }
    if (set_dir(overlay, "upperdir", l->upper, "upper") < 0)
        return -1;
    return set_dir(overlay, "workdir", l->upper, "work");
}

static int mount_root(struct launch *l)
{
    int overlay = sys_fsopen("overlay", FSOPEN_CLOEXEC);
    if (overlay < 0 || become_mounter(l, true) < 0)
        return -1;
    if ((l->engine->has_layer_fds ? layers_by_fd(l, overlay) : layers_by_path(l, overlay)) < 0)
        return -1;
    // "off" over layers of several file systems means "null" and a line in the kernel's log; older kernels know no "null".
    const char *uuid = l->engine->has_layer_fds ? "null" : "off";
    if (sys_fsconfig(overlay, FSCONFIG_SET_STRING, "redirect_dir", "on", 0) < 0 ||
        sys_fsconfig(overlay, FSCONFIG_SET_STRING, "uuid", uuid, 0) < 0 ||
        // what a box wrote must be whole by itself: it may become a layer
        sys_fsconfig(overlay, FSCONFIG_SET_STRING, "metacopy", "off", 0) < 0 ||
        sys_fsconfig(overlay, FSCONFIG_SET_STRING, "index", "off", 0) < 0)
        return -1;
    if (l->spec->is_one_shot && sys_fsconfig(overlay, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0)
        return -1;
    if (sys_fsconfig(overlay, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    if (become_mounter(l, false) < 0)
        return -1;
    int root = sys_fsmount(overlay, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
    const char *where = has_bare_root(l) ? "/" : "root";
    if (root < 0 || sys_move_mount(root, "", AT_FDCWD, where, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return -1;
    return fchdir(root);
}

/*
 * Over a root with nothing in it the new one just stays: no path leads below a mount on the root of all (choose_mountpoint
 * in fs/namei.c). pivot_root would look at every process of the machine, and taking away what was there waits for all CPUs.
 */
static int leave_root(struct launch *l)
{
    if (has_bare_root(l))
        return chroot(".");
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return -1;
    if (umount2(".", MNT_DETACH) < 0)
        return -1;
    return chdir("/");
}

/* Puts a detached mount on a directory or file of the new root; a link anywhere in its path is refused. */
static int attach(int mount_fd, const char *path, int extra)
{
    int target = sys_openat2(AT_FDCWD, path, (uint64_t)(O_PATH | O_CLOEXEC | O_NOFOLLOW | extra), 0,
                             RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (target < 0)
        return -1;
    int result =
        sys_move_mount(mount_fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    (void)sys_close(target);
    return result;
}

static int attach_binds(struct launch *l)
{
    for (unsigned i = 0; i < l->n_binds; i++) {
        if (attach(l->binds[i], l->spec->binds[i].box, 0) < 0)
            return -1;
    }
    return 0;
}

/* A directory below `at`, made where it is missing. A link is not followed. */
static int enter_directory(int at, const char *name)
{
    const uint64_t flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const uint64_t resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH;
    int fd = sys_openat2(at, name, flags, 0, resolve);

    if (fd >= 0 || errno != ENOENT || syscall(SYS_mkdirat, at, name, 0755) < 0)
        return fd;
    return sys_openat2(at, name, flags, 0, resolve);
}

static int open_target(const char *path)
{
    char name[NAME_MAX + 1];
    int at = sys_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (path += strspn(path, "/"); at >= 0 && *path; path += strspn(path, "/")) {
        size_t length = strcspn(path, "/"); // was checked: host_dir_check_target
        memcpy(name, path, length);
        name[length] = '\0';
        int next = enter_directory(at, name);
        int code = errno;
        (void)sys_close(at);
        errno = code;
        at = next;
        path += length;
    }
    return at;
}

static int attach_host_dir(int mount_fd, const char *path)
{
    int target = open_target(path);
    if (target < 0)
        return -1;
    int result =
        sys_move_mount(mount_fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    (void)sys_close(target);
    return result;
}

/* What is made on the way is root's of the box. */
static int attach_host_dirs(struct launch *l)
{
    if (l->n_mounts == 0)
        return 0;
    mode_t before = umask(022);
    if (become_mounter(l, true) < 0)
        return -1;
    for (l->n_attached = 0; l->n_attached < l->n_mounts; l->n_attached++) {
        if (attach_host_dir(l->mounts[l->n_attached], l->spec->mounts[l->n_attached].box) < 0)
            return -1;
    }
    (void)umask(before);
    return become_mounter(l, false);
}

static int configure(int context, const char *const *options)
{
    for (; *options; options += 2) {
        if (sys_fsconfig(context, FSCONFIG_SET_STRING, options[0], options[1], 0) < 0)
            return -1;
    }
    return sys_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
}

static int new_mount(const char *type, const char *const *options, unsigned attributes)
{
    int context = sys_fsopen(type, FSOPEN_CLOEXEC);
    if (context < 0)
        return -1;
    int fd =
        configure(context, options) < 0 ? -1 : sys_fsmount(context, FSMOUNT_CLOEXEC, attributes);
    int code = errno;
    (void)sys_close(context);
    errno = code;
    return fd;
}

#define PID1_FILES 65536
#define MAX_TERMINALS "64"
#define MAX_SIGNALS 8192 // under way, by user
#define CLOSED (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static int mount_proc(struct launch *l)
{
    static const char *const none[] = {NULL};
    (void)l;
    int proc = new_mount("proc", none, CLOSED);
    if (proc < 0 || attach(proc, "/proc", O_DIRECTORY) < 0)
        return -1;
    (void)sys_close(proc);
    return 0;
}

static int write_setting(int dir, const char *name, const char *text)
{
    int fd = sys_openat(dir, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    bool is_written = sys_write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    (void)sys_close(fd);
    return is_written ? 0 : -1;
}

/*
 * What root in a box cannot do for lack of capabilities over its network, everybody in it may. By the box's own /proc:
 * in a shared one, looking up a setting takes a step for each network there is.
 */
static int open_network(struct launch *l)
{
    int dir = sys_openat(AT_FDCWD, "/proc/sys/net/ipv4", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || write_setting(dir, "ip_unprivileged_port_start", "0") < 0)
        return -1;
    (void)write_setting(dir, "ping_group_range", "0 2147483647");
    if (l->spec
            ->has_network) // the gateway speaks version 4 alone; where there is no other, there is nothing to turn off
        (void)write_setting(dir, "../ipv6/conf/eth0/disable_ipv6", "1");
    (void)sys_close(dir);
    return 0;
}

/* The kernel's count of terminals is the machine's (kernel.pty.max): no box may take more than its part. */
static int mount_terminals(struct launch *l)
{
    uint32_t group = l->first_id + 5; // tty inside
    char gid[16];
    const char *options[] = {"mode",        "0620", "ptmxmode", "0666", "max",
                             MAX_TERMINALS, "gid",  gid,        NULL};

    (void)snprintf(gid, sizeof gid, "%u", group);
    int fd = new_mount("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    if (fd >= 0 || errno != EINVAL || group <= INT32_MAX)
        return fd;
    options[6] =
        NULL; // older kernels read a signed number: there a terminal is its opener's group's
    return new_mount("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

static int mount_dev(struct launch *l)
{
    char size[32] = "50%";
    const char *const shared[] = {"mode", "1777", "size", size, NULL};

    if (attach(l->dev, "/dev", O_DIRECTORY) < 0)
        return -1;
    if (l->spec->limits.memory_bytes) // or what is left there could fill the box for good
        (void)snprintf(size, sizeof size, "%" PRId64, l->spec->limits.memory_bytes / 2);
    int pts = mount_terminals(l);
    if (pts < 0 || attach(pts, "/dev/pts", O_DIRECTORY) < 0)
        return -1;
    int shm = new_mount("tmpfs", shared, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (shm < 0 || attach(shm, "/dev/shm", O_DIRECTORY) < 0)
        return -1;
    (void)sys_close(pts);
    (void)sys_close(shm);
    return 0;
}

static int mount_meminfo(struct launch *l)
{
    if (l->spec->limits.memory_bytes == 0)
        return 0;
    if (l->meminfo >= 0)
        return attach(l->meminfo, "/proc/meminfo", 0);
    return mount("/dev/.meminfo", "/proc/meminfo", NULL, MS_BIND, NULL); // fixtures_make_dev
}

/*
 * Kernel files that tell everybody about the host. What is for the host's root only needs no mask: to the kernel,
 * root of the box is nobody.
 */
static const char *const masked_files[] = {
    "/proc/cmdline",    "/proc/keys",      "/proc/key-users",  "/proc/kallsyms", "/proc/modules",
    "/proc/interrupts", "/proc/diskstats", "/proc/partitions", "/proc/swaps",
    "/proc/locks", // those of open files, which have no process, are told to everybody
};
static const char *const masked_dirs[] = {
    "/proc/acpi",     "/proc/asound", "/proc/scsi", "/proc/bus", // devices
    "/proc/irq",      "/proc/fs",                                // mount options, by device
    "/proc/pressure", // of the host, and everybody may write there
};

static int mask(const char *const *paths, unsigned count, const char *by)
{
    for (unsigned i = 0; i < count; i++) {
        if (mount(by, paths[i], NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
            return -1;
    }
    return 0;
}

static int mask_kernel(struct launch *l)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY | CLOSED};

    (void)l;
    if (mask(masked_files, ARRAY_SIZE(masked_files), "/dev/null") < 0 ||
        mask(masked_dirs, ARRAY_SIZE(masked_dirs), "/dev/.empty") < 0)
        return -1;
    int settings = sys_open_tree(AT_FDCWD, "/proc/sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (settings < 0 || sys_mount_setattr(settings, "", AT_EMPTY_PATH, &read_only) < 0)
        return -1;
    return attach(settings, "/proc/sys", O_DIRECTORY);
}

static int set_hostname(struct launch *l)
{
    return sethostname(l->hostname, strlen(l->hostname));
}

static int lower_limit(int resource, rlim_t value)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return -1;
    if (value < limit.rlim_max)
        limit.rlim_max = value;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(resource, &limit);
}

/* PID 1 holds up to eleven files for each of its processes (init/init.h); what these may open it limits itself. */
static int raise_files(rlim_t max_files)
{
    rlim_t wanted = max_files > PID1_FILES ? max_files : PID1_FILES;
    struct rlimit limit = {wanted, wanted};
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return 0;
    return lower_limit(RLIMIT_NOFILE, wanted);
}

/* A box with less than all CPUs runs on that many, so that programs see how many they have. From the one it is on. */
static int set_cpus(struct launch *l)
{
    cpu_set_t have;
    cpu_set_t wanted;
    unsigned left = l->n_cpus;
    unsigned here = 0;

    if (left == 0)
        return 0;
    CPU_ZERO(&wanted);
    if (sched_getaffinity(0, sizeof have, &have) < 0 || syscall(SYS_getcpu, &here, NULL, NULL) < 0)
        return -1;
    for (unsigned i = 0; i < CPU_SETSIZE && left > 0; i++) {
        unsigned cpu = (here + i) % CPU_SETSIZE;
        if (CPU_ISSET(cpu, &have)) {
            CPU_SET(cpu, &wanted);
            left--;
        }
    }
    return sched_setaffinity(0, sizeof wanted, &wanted);
}

/* A core limit of one byte, not zero, also keeps the host's core_pattern program from being started (core(5)). */
static int set_limits(struct launch *l)
{
    struct rlimit core = {1, 1};
    if (setrlimit(RLIMIT_CORE, &core) < 0 || raise_files(l->max_files) < 0 ||
        lower_limit(RLIMIT_MEMLOCK, 64 << 20) < 0 || lower_limit(RLIMIT_MSGQUEUE, 1 << 20) < 0 ||
        lower_limit(RLIMIT_SIGPENDING, MAX_SIGNALS) < 0)
        return -1;
    l->oom_adj_fd = sys_openat(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (l->oom_adj_fd < 0)
        return -1;
    // A server that the kernel is to spare hands that down: what a guest may go down to is what was written with our rights last.
    if (l->engine->is_spared && sys_write(l->oom_adj_fd, "0", 1) != 1)
        return -1;
    return set_cpus(l);
}

/* Last, so that every namespace but the user namespace is the host's: root inside rules over none of them. */
static int enter_user(struct launch *l)
{
    if (setns(l->userns_fd, CLONE_NEWUSER) < 0)
        return -1;
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_setresuid, 0, 0, 0);
}

static int drop_rights(struct launch *l)
{
    (void)l;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return capabilities_drop(UINT64_C(1) << LINK_INIT_MARK); // PID 1 keeps that from its guests
}

static int filter_calls(struct launch *l)
{
    return seccomp_load(l->secret);
}

/* Moves each fd PID 1 is born with to its number; everything else closes by itself. */
static int arrange_fds(struct launch *l)
{
    int wanted[BOOT_FDS_END] = {
        [BOOT_CONTROL] = l->control_peer, [BOOT_LISTENER] = l->listener_fd,
        [BOOT_SLOT] = l->box->slot_fd,    [BOOT_HOLD] = l->hold_fd,
        [BOOT_OOM] = l->oom_fd,           [BOOT_OOM_ADJ] = l->oom_adj_fd,
    };
    int high[BOOT_FDS_END];

    for (int i = BOOT_CONTROL; i < BOOT_FDS_END; i++)
        high[i] = wanted[i] < 0 ? -1 : fcntl(wanted[i], F_DUPFD_CLOEXEC, 64);
    int init = fcntl(l->init_fd, F_DUPFD_CLOEXEC, 64);
    int null = sys_openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
    if (init < 0 || null < 0)
        return -1;
    for (int i = 0; i < BOOT_CONTROL; i++) {
        if (null != i && sys_dup2(null, i) < 0)
            return -1;
    }
    for (int i = BOOT_CONTROL; i < BOOT_FDS_END; i++) {
        if (high[i] < 0)
            (void)sys_close(i);
        else if (sys_dup2(high[i], i) < 0)
            return -1;
    }
    // Not every fd of whoever uses the engine is close-on-exec.
    if (sys_close_range(BOOT_FDS_END, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        return -1;
    return init;
}

RUNS_IN_CHILD static int execute_init(struct launch *l)
{
    static char *const argv[] = {(char *)"burrow-init", NULL};
    static char *const env[] = {NULL};
    int init = arrange_fds(l);
    if (init < 0)
        return -1;
    return (int)syscall(SYS_execveat, init, "", argv, env, AT_EMPTY_PATH);
}

static const struct {
    const char *name;
    int (*run)(struct launch *launch);
} steps[] = {
    {"fds.leave", leave_fds},         {"cgroup.join", join_cgroups},
    {"network.enter", enter_network}, {"mounts.leave", leave_mounts},
    {"root.mount", mount_root},       {"root.leave", leave_root},
    {"proc.mount", mount_proc},       {"network.open", open_network},
    {"dev.mount", mount_dev},         {"meminfo.mount", mount_meminfo},
    {"binds.mount", attach_binds},    {"mounts.attach", attach_host_dirs},
    {"kernel.mask", mask_kernel},     {"hostname.set", set_hostname},
    {"limits.set", set_limits},       {"user.enter", enter_user},
    {"rights.drop", drop_rights},     {"calls.filter", filter_calls},
    {"init.execute", execute_init},
};

const char *const *launch_enter_steps(void)
{
    static const char *names[ARRAY_SIZE(steps) + 1];
    for (unsigned i = 0; i < ARRAY_SIZE(steps); i++)
        names[i] = steps[i].name;
    return names;
}

RUNS_IN_CHILD void launch_enter(struct launch *l)
{
    for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
        bool is_made_to_fail = launch_step_begins(l, steps[i].name, launch_host_steps + i);
        // Killed here, it says nothing more; of the last step it cannot be told.
        l->failed_errno = EINTR;
        l->failed_step = i + 1 < ARRAY_SIZE(steps) ? steps[i].name : NULL;
        if (is_made_to_fail && l->engine->is_death)
            break;
        errno = is_made_to_fail ? l->fault.code : 0;
        if (is_made_to_fail || steps[i].run(l) < 0) {
            l->failed_errno = errno;
            l->failed_step = steps[i].name;
            break;
        }
    }
    for (;;)
        (void)RAW(SYS_exit_group, 70, 0, 0, 0, 0);
}
