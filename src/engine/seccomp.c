/* SPDX-License-Identifier: Apache-2.0 */
/* Arms the generated filter with the launch's secret and loads it. */
#include "engine/seccomp.h"

#include "base/auto.h"
#include "seccomp_program.h"

#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(ARRAY_SIZE(seccomp_program) <= SECCOMP_PROGRAM_MAX, "raise SECCOMP_PROGRAM_MAX");

size_t seccomp_program_copy(struct sock_filter *out, uint64_t secret)
{
    memcpy(out, seccomp_program, sizeof seccomp_program);
    if (secret) {
        out[SECCOMP_SECRET_LOW].k = (uint32_t)secret;
        out[SECCOMP_SECRET_HIGH].k = (uint32_t)(secret >> 32);
        out[SECCOMP_SECRET_JUMP].jt = SECCOMP_SECRET_MATCH;
    }
    return ARRAY_SIZE(seccomp_program);
}

int seccomp_load(uint64_t secret)
{
    struct sock_filter code[SECCOMP_PROGRAM_MAX];
    struct sock_fprog program = {.filter = code};
    program.len = (unsigned short)seccomp_program_copy(code, secret);
    // The raw call: neither libc wraps it, and prctl would cost the same.
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : -1;
}
