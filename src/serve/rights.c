/* SPDX-License-Identifier: Apache-2.0 */
/* The capabilities a server keeps; see rights.h. */
#include "serve/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (UINT64_C(1) << (capability))

/*
 * Gone with the rest: loading modules, restarting the machine and changing its kernel, its clock, raw access to memory and
 * devices, raw sockets, tracing the kernel, its log, audit, security policies. A filter of system calls would
 * forbid the same calls, but every box would inherit it and pay for it at each call.
 */
static const uint64_t kept = BIT(CAP_SYS_ADMIN)      // namespaces, mounts, quotas
                             | BIT(CAP_SYS_CHROOT)   // a box's root
                             | BIT(CAP_NET_ADMIN)    // a box's loopback, settings of its network
                             | BIT(CAP_MKNOD)        // its /dev; packages of runtimes
                             | BIT(CAP_SETUID)       // its ids
                             | BIT(CAP_SETGID)       //
                             | BIT(CAP_SETPCAP)      // cutting it down
                             | BIT(CAP_SETFCAP)      // programs with capabilities in runtimes
                             | BIT(CAP_KILL)         // its end
                             | BIT(CAP_SYS_PTRACE)   // its namespaces, by /proc
                             | BIT(CAP_SYS_RESOURCE) // more open files
                             | BIT(CAP_SYS_NICE)     // background threads
                             | BIT(CAP_CHOWN)        // files of every user: layers, runtimes
                             | BIT(CAP_DAC_OVERRIDE) //
                             | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) //
                             | BIT(CAP_NET_BIND_SERVICE) // --listen below 1024
                             | BIT(CAP_AUDIT_WRITE);     // adding users while a runtime is built

static int cut_bounding_set(void)
{
    for (unsigned long capability = 0; capability < 64; capability++) {
        if (!(kept & BIT(capability)) && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
            return errno == EINVAL ? 0 : -1; // past the last one this kernel knows
    }
    return 0;
}

static int cut_own(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, data) < 0)
        return -1;
    for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        data[i].permitted &= (uint32_t)(kept >> 32 * i);
        data[i].effective &= data[i].permitted;
        data[i].inheritable = 0;
    }
    return (int)syscall(SYS_capset, &header, data);
}

int rights_drop(struct error *err)
{
    if (cut_bounding_set() < 0 || cut_own() < 0)
        return error_sys(err, "give up capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_sys(err, "give up gaining privileges");
    return 0;
}
