/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of file systems: overlay, idmapped mounts, disk limits, space. Mounts are made in
 * namespaces that end with the probe. */
#include "engine/probe_impl.h"

#include "base/auto.h"
#include "engine/kernel.h"

#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/magic.h>
#include <linux/quota.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#define GIB (1ULL << 30)
#define LEAST_SPACE (256ULL << 20)
#define GOOD_SPACE (5 * GIB)
#define MS_PRIVATE_FLAG (1 << 18)

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef PRJQUOTA
#define PRJQUOTA 2
#endif

/* The kernel's QCMD, without its overflow. */
#define PROJECT_QUOTA(command) ((unsigned)(command) << SUBCMDSHIFT | PRJQUOTA)

static const char no_boxes[] = "sandboxes cannot be started";

static int mount_type(const char *type)
{
    autofd context = sys_fsopen(type, FSOPEN_CLOEXEC);
    if (context < 0 || sys_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return sys_fsmount(context, FSMOUNT_CLOEXEC, 0);
}

void probe_filesystem(const struct probe *probe, const struct probe_context *context,
                      struct probe_result *result)
{
    autofd mount = mount_type(probe->subject);
    if (mount >= 0)
        probe_fine(result, "mounts");
    else
        probe_say(result, PROBE_MISSING, no_boxes,
                  errno == ENODEV ? "use a kernel that has this file system"
                                  : "run burrow on the machine itself, not in a container",
                  "mount %s: %s", probe->subject, strerror(errno));
}

/* A private mount namespace with a tmpfs as working directory, and lower/, upper/, work/, merged/
 * in it. */
static int enter_scratch(void)
{
    struct mount_attr private = {.propagation = MS_PRIVATE_FLAG};
    if (unshare(CLONE_NEWNS) < 0 || sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private) < 0)
        return -1;
    autofd tmpfs = mount_type("tmpfs");
    if (tmpfs < 0 || sys_move_mount(tmpfs, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
        fchdir(tmpfs) < 0)
        return -1;
    if (mkdir("lower", 0755) < 0 || mkdir("lower/old", 0755) < 0 || mkdir("upper", 0755) < 0 ||
        mkdir("work", 0755) < 0 || mkdir("merged", 0755) < 0)
        return -1;
    return 0;
}

static bool set_text(int context, const char *key, const char *value)
{
    return sys_fsconfig(context, FSCONFIG_SET_STRING, key, value, 0) == 0;
}

static int mount_overlay(int context)
{
    if (sys_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return sys_fsmount(context, FSMOUNT_CLOEXEC, 0);
}

static void try_overlay(const struct probe *probe, const struct probe_context *context,
                        struct probe_result *result)
{
    autofd overlay = enter_scratch() < 0 ? -1 : sys_fsopen("overlay", FSOPEN_CLOEXEC);
    if (overlay < 0) {
        probe_say(result, PROBE_MISSING, no_boxes,
                  "load the module (modprobe overlay), or use a kernel that has it", "overlay: %s",
                  strerror(errno));
        return;
    }
    bool has_redirect = set_text(overlay, "redirect_dir", "on");
    bool has_volatile = sys_fsconfig(overlay, FSCONFIG_SET_FLAG, "volatile", NULL, 0) == 0;
    autofd root = -1;
    if (set_text(overlay, "lowerdir", "lower") && set_text(overlay, "upperdir", "upper") &&
        set_text(overlay, "workdir", "work"))
        root = mount_overlay(overlay);
    if (root < 0)
        probe_say(result, PROBE_MISSING, no_boxes, "use a kernel of 6.1 or newer",
                  "mount an overlay: %s", strerror(errno));
    else if (!has_redirect || renameat(root, "old", root, "new") < 0)
        probe_say(result, PROBE_DEGRADED,
                  "in a sandbox, directories of the runtime cannot be renamed ('Invalid "
                  "cross-device link')",
                  "use a kernel whose overlay has redirect_dir", "mounts, without redirect_dir");
    else if (!has_volatile)
        probe_say(result, PROBE_DEGRADED, "one-shot runs wait for the disk when they call fsync",
                  "use a kernel of 5.10 or newer", "mounts, without volatile");
    else
        probe_fine(result, "mounts; redirect_dir and volatile work");
}

void probe_overlay(const struct probe *probe, const struct probe_context *context,
                   struct probe_result *result)
{
    probe_in_child(try_overlay, probe, context, result);
}

static void try_overlay_fd(const struct probe *probe, const struct probe_context *context,
                           struct probe_result *result)
{
    autofd overlay = enter_scratch() < 0 ? -1 : sys_fsopen("overlay", FSOPEN_CLOEXEC);
    autofd lower = sys_open_tree(AT_FDCWD, "lower", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    autofd upper = open("upper", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autofd work = open("work", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autofd root = -1;

    if (overlay >= 0 && sys_fsconfig(overlay, FSCONFIG_SET_FD, "lowerdir+", NULL, lower) == 0 &&
        sys_fsconfig(overlay, FSCONFIG_SET_FD, "upperdir", NULL, upper) == 0 &&
        sys_fsconfig(overlay, FSCONFIG_SET_FD, "workdir", NULL, work) == 0)
        root = mount_overlay(overlay);
    if (root >= 0)
        probe_fine(result, "layers by fd");
    else
        probe_say(result, PROBE_DEGRADED,
                  "layers are attached at a private place first: a launch takes a little longer",
                  "use kernel 6.13 or newer", "lowerdir+ by fd: %s", strerror(errno));
}

void probe_overlay_fd(const struct probe *probe, const struct probe_context *context,
                      struct probe_result *result)
{
    probe_in_child(try_overlay_fd, probe, context, result);
}

void probe_idmapped_mounts(const struct probe *probe, const struct probe_context *context,
                           struct probe_result *result)
{
    struct error err = {0};
    autofd users = probe_user_namespace(&err);
    autofd data = probe_open_data(context);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)users};

    if (users < 0) {
        probe_say(result, PROBE_MISSING, no_boxes, "see id-maps", "%s", err.text);
        return;
    }
    autofd tree = sys_open_tree(data, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (tree >= 0 && sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attr) == 0)
        probe_fine(result, "the data directory's file system can");
    else
        probe_say(result, PROBE_MISSING, no_boxes,
                  "put the data directory on ext4, XFS or btrfs: burrow --data DIR",
                  "map the ids of '%s': %s", context->data_dir, strerror(errno));
}

static bool has_xfs_quota(int fd)
{
    struct fs_quota_stat status = {.qs_version = FS_QSTAT_VERSION};
    if (syscall(SYS_quotactl_fd, fd, PROJECT_QUOTA(Q_XGETQSTAT), 0, &status) < 0)
        return false;
    return status.qs_flags & FS_QUOTA_PDQ_ENFD;
}

static bool has_ext4_quota(int fd)
{
    uint32_t format = 0;
    return syscall(SYS_quotactl_fd, fd, PROJECT_QUOTA(Q_GETFMT), 0, &format) == 0;
}

/* The scheme the disk of the data directory gives by itself; NULL for none. */
static const char *native_scheme(int data)
{
    struct statfs info;
    autofd fd = openat(data, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstatfs(fd, &info) < 0)
        return NULL;
    switch ((unsigned long)info.f_type) {
    case BTRFS_SUPER_MAGIC:
        return "btrfs";
    case XFS_SUPER_MAGIC:
        return has_xfs_quota(fd) ? "xfs with project quota" : NULL;
    case EXT4_SUPER_MAGIC:
        return has_ext4_quota(fd) ? "ext4 with project quota" : NULL;
    default:
        return NULL;
    }
}

/* The file system attached at <data>/volume; NULL when there is none. */
static const char *attached_scheme(const struct probe_context *context)
{
    char path[4096];
    struct stat above;
    struct stat at;
    struct statfs info;

    if (snprintf(path, sizeof path, "%s/volume", context->data_dir) >= (int)sizeof path ||
        stat(context->data_dir, &above) < 0 || stat(path, &at) < 0 || statfs(path, &info) < 0 ||
        above.st_dev == at.st_dev)
        return NULL;
    return info.f_type == BTRFS_SUPER_MAGIC ? "btrfs" : "a file system of its own";
}

/* What keeps a btrfs in a file from being used; NULL when nothing does. */
static const char *no_loop_volume(void)
{
    autofd context = sys_fsopen("btrfs", FSOPEN_CLOEXEC);
    autofd control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (context < 0)
        return "this kernel has no btrfs";
    if (control < 0)
        return "there are no loop devices";
    return probe_has_program("mkfs.btrfs") ? NULL : "mkfs.btrfs is not installed";
}

void probe_quota(const struct probe *probe, const struct probe_context *context,
                 struct probe_result *result)
{
    autofd data = probe_open_data(context);
    const char *attached = attached_scheme(context);
    const char *native = native_scheme(data);
    const char *reason = no_loop_volume();

    if (attached)
        probe_fine(result, "a volume is attached: %s", attached);
    else if (native)
        probe_fine(result, "the disk's own: %s", native);
    else if (!reason)
        probe_fine(result, "by a btrfs in a file, made at the first run");
    else
        probe_say(result, PROBE_DEGRADED,
                  "what sandboxes write is kept in memory (tmpfs) and lost when the machine stops",
                  "apt install btrfs-progs, or put the data directory on btrfs: burrow --data DIR",
                  "in memory only: %s", reason);
}

void probe_loop(const struct probe *probe, const struct probe_context *context,
                struct probe_result *result)
{
    autofd control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control >= 0)
        probe_fine(result, "there");
    else
        probe_say(
            result, PROBE_DEGRADED,
            "unless the data directory's disk has quotas, what sandboxes write is kept in memory",
            "modprobe loop, or give the container around burrow the loop devices",
            "open /dev/loop-control: %s", strerror(errno));
}

void probe_mkfs(const struct probe *probe, const struct probe_context *context,
                struct probe_result *result)
{
    if (probe_has_program("mkfs.btrfs"))
        probe_fine(result, "installed");
    else
        probe_say(
            result, PROBE_DEGRADED,
            "unless the data directory's disk has quotas, what sandboxes write is kept in memory",
            "apt install btrfs-progs", "not installed");
}

void probe_space(const struct probe *probe, const struct probe_context *context,
                 struct probe_result *result)
{
    struct statvfs info = {0};
    autofd data = probe_open_data(context);

    if (data < 0 || fstatvfs(data, &info) < 0) {
        probe_say(result, PROBE_MISSING, no_boxes, "choose another one: burrow --data DIR",
                  "look at '%s': %s", context->data_dir, strerror(errno));
        return;
    }
    unsigned long long bytes = (unsigned long long)info.f_bavail * info.f_frsize;
    bool has_inodes = info.f_files == 0 || info.f_favail > 50000;
    double gib = (double)bytes / (double)GIB;
    if (bytes < LEAST_SPACE)
        probe_say(result, PROBE_MISSING, "there is no room for a volume",
                  "make room, or choose another disk: burrow --data DIR", "%.1f GiB free for '%s'",
                  gib, context->data_dir);
    else if (bytes < GOOD_SPACE || !has_inodes)
        probe_say(result, PROBE_DEGRADED,
                  "runtimes may not fit, and sandboxes have little to write on",
                  "make room, or choose another disk: burrow --data DIR",
                  "%.1f GiB and %llu files free for '%s'", gib, (unsigned long long)info.f_favail,
                  context->data_dir);
    else
        probe_fine(result, "%.1f GiB for '%s'", gib, context->data_dir);
}
