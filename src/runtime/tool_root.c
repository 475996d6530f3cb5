/* SPDX-License-Identifier: Apache-2.0 */
/* Roots for programs that install packages; see tool_root.h. */
#include "runtime/tool_root.h"

#include "base/auto.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define BIT(capability) (UINT64_C(1) << (capability))

// What packages need to put their files in place, with owners, modes and capabilities of their own.
static const uint64_t kept =
    BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_SETUID) |
    BIT(CAP_SETGID) | BIT(CAP_SETFCAP) | BIT(CAP_KILL) | BIT(CAP_SYS_CHROOT) | BIT(CAP_AUDIT_WRITE);

int tool_root_prepare(struct tool_root *root, struct error *err)
{
    size_t size = sizeof root->options;
    size_t used = (size_t)snprintf(root->options, size, "lowerdir=");

    for (size_t i = 0; i < root->n_layers && used < size; i++)
        used += (size_t)snprintf(root->options + used, size - used, "%s%s/rootfs", i ? ":" : "",
                                 root->layers[i]);
    if (used < size)
        used += (size_t)snprintf(root->options + used, size - used,
                                 ",upperdir=%s,workdir=%s,redirect_dir=off,metacopy=off,index=off",
                                 root->upper, root->work);
    if (used >= size)
        return error_set(err, ERROR_LIMIT, "%zu layers are more than can be built on",
                         root->n_layers);
    return 0;
}

static int open_inside(int root_fd, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
}

// Onto an entry that is there and is no link; -1 when there is none.
static int mount_at(int root_fd, const char *path, const char *source, const char *type,
                    unsigned long flags, const char *options)
{
    char place[64];
    int fd = open_inside(root_fd, path);

    if (fd < 0)
        return -1;
    (void)snprintf(place, sizeof place, "/proc/self/fd/%d", fd);
    int result = mount(source, place, type, flags, options);
    (void)close(fd);
    return result;
}

// Shows a file of the machine for reading, where both have it.
static void show_file(int root_fd, const char *path)
{
    char source[64];

    (void)snprintf(source, sizeof source, "/%s", path);
    if (access(source, R_OK) == 0 && mount_at(root_fd, path, source, NULL, MS_BIND, NULL) == 0)
        (void)mount_at(root_fd, path, NULL, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID,
                       NULL);
}

static int make_devices(int root_fd)
{
    static const char *const names[] = {"null", "zero", "full", "random", "urandom"};
    char path[32], source[32];

    if (mount_at(root_fd, "dev", "tmpfs", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k") < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        (void)snprintf(path, sizeof path, "dev/%s", names[i]);
        (void)snprintf(source, sizeof source, "/dev/%s", names[i]);
        int fd = openat(root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0)
            return -1;
        (void)close(fd);
        if (mount_at(root_fd, path, source, NULL, MS_BIND, NULL) < 0)
            return -1;
    }
    return symlinkat("/proc/self/fd", root_fd, "dev/fd");
}

static const char *add_mounts(const struct tool_root *root, int root_fd)
{
    const unsigned long plain = MS_NOSUID | MS_NODEV;

    // Only what is about processes: as uid 0 it could else change settings of the kernel.
    if (mount_at(root_fd, "proc", "proc", "proc", plain | MS_NOEXEC, "subset=pid") < 0)
        return "mount /proc";
    if (make_devices(root_fd) < 0)
        return "mount /dev";
    if (mount_at(root_fd, "tmp", "tmpfs", "tmpfs", plain, "mode=01777") < 0 ||
        mount_at(root_fd, "run", "tmpfs", "tmpfs", plain, "mode=0755") < 0)
        return "mount /tmp and /run";
    for (size_t i = 0; i < TOOL_ROOT_BINDS && root->binds[i].from; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "tmp/%s", root->binds[i].name);
        if (mkdirat(root_fd, path, 0755) < 0 ||
            mount_at(root_fd, path, root->binds[i].from, NULL, MS_BIND, NULL) < 0)
            return root->binds[i].from;
    }
    show_file(root_fd, "etc/resolv.conf");
    show_file(root_fd, "etc/hosts");
    show_file(root_fd, "etc/ssl/certs/ca-certificates.crt");
    return NULL;
}

static int drop_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    for (unsigned long capability = 0; capability < 64; capability++)
        if (!(kept & BIT(capability)) && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
            break; // past the last one this kernel knows
    if (syscall(SYS_capget, &header, data) < 0)
        return -1;
    for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        data[i].permitted &= (uint32_t)(kept >> 32 * i);
        data[i].effective = data[i].permitted;
        data[i].inheritable = 0;
    }
    return (int)syscall(SYS_capset, &header, data);
}

const char *tool_root_enter(const struct tool_root *root)
{
    if (chdir(root->directory) < 0 ||
        mount("overlay", root->target, "overlay", MS_NODEV, root->options) < 0)
        return "mount an overlay of the layers";
    int root_fd = open(root->target, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return "open the new root";
    const char *fault = add_mounts(root, root_fd);
    if (fault)
        return fault;
    if (fchdir(root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
        umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return "change the root";
    (void)close(root_fd);
    return drop_rights() < 0 ? "drop rights" : NULL;
}
