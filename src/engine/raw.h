/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls without libc, for a child that shares its parent's memory and runs beside it: nothing here touches
 * errno or any other memory of the parent. All return -errno on failure.
 * Threads: any; also a child that shares our memory.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <linux/sched.h>

/* A function that a child runs in its parent's memory: sanitizers would count what it does as the parent thread's. */
#if defined __clang__
#define RUNS_IN_CHILD __attribute__((disable_sanitizer_instrumentation))
#else
#define RUNS_IN_CHILD __attribute__((no_sanitize("thread", "address", "undefined")))
#endif

__attribute__((always_inline)) static inline long raw_call(long number, long a, long b, long c,
                                                           long d, long e)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

#define RAW(number, a, b, c, d, e)                                                                 \
    raw_call((number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))

/* clone3 on a stack of its own: the child calls run(data), which never returns. `secret` is for a seccomp filter only. */
__attribute__((always_inline)) static inline long
raw_clone3(struct clone_args *args, uint64_t secret, void (*run)(void *), void *data)
{
    long result;
    register void *r12 __asm__("r12") = data;
    register void (*r13)(void *) __asm__("r13") = run;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r12, %%rdi\n\t"
                     "call *%%r13\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone3), "D"(args), "S"(sizeof *args), "d"(secret), "r"(r12),
                       "r"(r13)
                     : "rcx", "r11", "memory");
    return result;
}
