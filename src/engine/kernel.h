/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel calls and constants newer than the C libraries and headers of Debian 12. Thin, async-signal-safe.
 * Threads: any; also a child that shares our memory.
 */
#pragma once
#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif
#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

static inline int sys_open_tree(int dir_fd, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dir_fd, path, flags);
}

static inline int sys_move_mount(int from_fd, const char *from, int to_fd, const char *to,
                                 unsigned flags)
{
    return (int)syscall(SYS_move_mount, from_fd, from, to_fd, to, flags);
}

static inline int sys_mount_setattr(int dir_fd, const char *path, unsigned flags,
                                    struct mount_attr *attr)
{
    return (int)syscall(SYS_mount_setattr, dir_fd, path, flags, attr, sizeof *attr);
}

static inline int sys_fsopen(const char *type, unsigned flags)
{
    return (int)syscall(SYS_fsopen, type, flags);
}

static inline int sys_fsconfig(int fd, unsigned command, const char *key, const void *value,
                               int aux)
{
    return (int)syscall(SYS_fsconfig, fd, command, key, value, aux);
}

static inline int sys_fsmount(int fd, unsigned flags, unsigned attributes)
{
    return (int)syscall(SYS_fsmount, fd, flags, attributes);
}

static inline int sys_openat2(int dir_fd, const char *path, uint64_t flags, uint64_t mode,
                              uint64_t resolve)
{
    struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};
    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
}

static inline int sys_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int sys_pidfd_getfd(int pidfd, int fd)
{
    return (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
}

static inline int sys_pidfd_send_signal(int pidfd, int signal)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

static inline int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

/*
 * For a child that shares its parent's memory but has fds of its own: what wraps libc's calls (sanitizers do) would
 * take them for the parent's.
 */
static inline int sys_openat(int dir_fd, const char *path, int flags)
{
    return (int)syscall(SYS_openat, dir_fd, path, flags, 0);
}

static inline int sys_close(int fd)
{
    return (int)syscall(SYS_close, fd);
}

static inline ssize_t sys_write(int fd, const void *data, size_t length)
{
    return syscall(SYS_write, fd, data, length);
}

static inline int sys_dup2(int fd, int wanted)
{
    return (int)syscall(SYS_dup2, fd, wanted);
}

/*
 * clone3 with CLONE_VM | CLONE_VFORK and no stack of its own: the child goes on in the caller's frame while the
 * caller is suspended, so it must never return from the function that inlined this. Returns -errno.
 */
__attribute__((always_inline)) static inline long sys_clone3_vfork(struct clone_args *args)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_clone3), "D"(args), "S"(sizeof *args), "d"(0L)
                     : "rcx", "r11", "memory");
    return result;
}
