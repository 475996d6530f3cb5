/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's capability set, and cutting a process down to it. */
#include "engine/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (UINT64_C(1) << (capability))

/*
 * Left out, and why: NET_ADMIN, NET_RAW, SYS_ADMIN, SYS_MODULE, BPF, PERFMON open most of the
 * kernel's known holes; SYS_PTRACE would open PID 1 to the box's root; DAC_READ_SEARCH is file
 * handles; MKNOD makes no usable device here; AUDIT_WRITE has no audit socket to write to;
 * SYS_RESOURCE, SYS_NICE, IPC_LOCK would lift limits.
 */
static const uint64_t guest_set =
    BIT(CAP_CHOWN)              // dpkg, tar, npm unpack files of other users
    | BIT(CAP_DAC_OVERRIDE)     // root writes where modes say no, as installers expect
    | BIT(CAP_FOWNER)           // chmod, utimes of files already given away
    | BIT(CAP_FSETID)           // setgid directories and files keep their bit
    | BIT(CAP_SETFCAP)          // packages with file capabilities (ping, mtr)
    | BIT(CAP_SETUID)           // apt's _apt, su, postgres: become another user
    | BIT(CAP_SETGID)           // and group
    | BIT(CAP_SETPCAP)          // daemons that cut themselves down (dbus) fail without; only takes
    | BIT(CAP_KILL)             // root ends its other users' processes
    | BIT(CAP_NET_BIND_SERVICE) // ports below 1024
    | BIT(CAP_SYS_CHROOT);      // dpkg --root, maintainer scripts, sshd

uint64_t capabilities_mask(void)
{
    return guest_set;
}

static int cut_bounding_set(uint64_t set)
{
    for (unsigned long capability = 0; capability < 64; capability++) {
        if (set & BIT(capability))
            continue;
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) {
            if (errno == EINVAL)
                return 0; // past the last one this kernel knows
            return -1;
        }
    }
    return 0;
}

static int set_own(uint64_t set)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
        {.permitted = (uint32_t)set, .effective = (uint32_t)set},
        {.permitted = (uint32_t)(set >> 32), .effective = (uint32_t)(set >> 32)},
    };
    return syscall(SYS_capset, &header, data) == 0 ? 0 : -1;
}

int capabilities_drop(uint64_t also)
{
    // The bounding set first, while CAP_SETPCAP is surely effective.
    if (cut_bounding_set(guest_set | also) < 0)
        return -1;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -1;
    return set_own(guest_set | also);
}
