/* SPDX-License-Identifier: Apache-2.0 */
/* The honest question to a quota: does it stop a write? Asked once, when a volume is set up. */
#include "base/auto.h"
#include "engine/volume_impl.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>

enum { PROBE_LIMIT = 4 << 20, PROBE_WRITE = 16 << 20 };

/*
 * Takes CAP_SYS_RESOURCE out of this thread's effective set, since ext4 lets whoever has it write
 * past any limit. What was there before goes to *saved, for set_capabilities.
 */
static int drop_sys_resource(struct __user_cap_data_struct saved[2])
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct less[2];

    if (syscall(SYS_capget, &header, saved) < 0)
        return -1;
    less[0] = saved[0];
    less[1] = saved[1];
    less[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective &= ~(unsigned)CAP_TO_MASK(CAP_SYS_RESOURCE);
    return (int)syscall(SYS_capset, &header, less);
}

static int set_capabilities(const struct __user_cap_data_struct saved[2])
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return (int)syscall(SYS_capset, &header, saved);
}

/* The errno that ended the writing, 0 when nothing did. */
static int write_past_limit(int dir_fd)
{
    static const char zeros[64 << 10];
    autofd fd = openat(dir_fd, "upper/probe", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    for (size_t wrote = 0; wrote < PROBE_WRITE; wrote += sizeof zeros) {
        if (write(fd, zeros, sizeof zeros) < 0)
            return errno;
    }
    return fsync(fd) < 0 ? errno : 0;
}

int volume_probe_limit(struct volume *volume, struct error *err)
{
    const struct volume_limits limits = {.bytes = PROBE_LIMIT};
    struct __user_cap_data_struct saved[2] = {0};
    struct error ignored;
    autofd dir_fd = -1;

    if (volume_scratch_create(volume, "probe", &limits, &dir_fd, err) < 0)
        return -1;
    int code = drop_sys_resource(saved) < 0 ? errno : write_past_limit(dir_fd);
    (void)set_capabilities(saved); // cannot fail: no more than was permitted
    (void)volume_scratch_remove(volume, "probe", &ignored);
    if (code == EDQUOT || code == ENOSPC)
        return 0;
    if (code)
        return error_sys_code(err, code, "try the disk limit of %s",
                              volume_scheme_name(volume->scheme));
    return error_set(
        err, ERROR_UNAVAILABLE,
        "%s takes a disk limit and then lets a write pass it: its quota is not enforced",
        volume_scheme_name(volume->scheme));
}
