/* SPDX-License-Identifier: Apache-2.0 */
/* The filter without set-id bits; see set_ids.h. */
#include "init/set_ids.h"

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

#define SET_IDS (S_ISUID | S_ISGID)
#define MAKES (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) // only then there is a mode

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(test, value, skip) BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), 0, (skip))
#define FAIL(code) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code))
#define PASS BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Each goes on behind itself where it is about another call, with the number still loaded. */
#define MODE_AT(call, mode)                                                                        \
    UNLESS(BPF_JEQ, (call), 4), LOAD(args[mode]), UNLESS(BPF_JSET, SET_IDS, 1), FAIL(EPERM), PASS
#define OPEN_AT(call, flags, mode)                                                                 \
    UNLESS(BPF_JEQ, (call), 6), LOAD(args[flags]), UNLESS(BPF_JSET, MAKES, 3), LOAD(args[mode]),   \
        UNLESS(BPF_JSET, SET_IDS, 1), FAIL(EPERM), PASS

// Modes and flags are 32 bits and less, so the lower halves are all there is (little-endian). Other machines' calls are none of the box's.
static struct sock_filter code[] = {
    LOAD(nr),
#ifdef SYS_chmod
    MODE_AT(SYS_chmod, 1),
    MODE_AT(SYS_creat, 1),
    MODE_AT(SYS_mknod, 1),
    OPEN_AT(SYS_open, 1, 2),
#endif
    MODE_AT(SYS_fchmod, 1),
    MODE_AT(SYS_fchmodat, 2),
    MODE_AT(SYS_fchmodat2, 2),
    MODE_AT(SYS_mknodat, 2),
    OPEN_AT(SYS_openat, 2, 3),
    UNLESS(BPF_JEQ, SYS_openat2, 1),
    FAIL(ENOSYS),
    PASS,
};

const struct sock_fprog set_ids_filter = {.len = ARRAY_SIZE(code), .filter = code};
