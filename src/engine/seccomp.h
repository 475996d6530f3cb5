/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter of system calls that every process of a box runs under: loaded once in PID 1,
 * inherited by all. What it lets through is written in seccomp_table.h; the program is made from it
 * by the build. Async-signal-safe, no allocation: fit for a child between clone and exec.
 *
 * clone3 hides its flags behind a pointer where no filter sees them, so guests are told ENOSYS and
 * libc uses clone. PID 1 needs it for CLONE_INTO_CGROUP: it passes the launch's secret as third
 * argument, which the kernel ignores and the filter compares: syscall(SYS_clone3, &args, sizeof
 * args, secret). The secret must be fresh random for each launch and stay in PID 1's memory, which
 * guests cannot read as it is not dumpable. Nor can they read the filter back:
 * PTRACE_SECCOMP_GET_FILTER wants CAP_SYS_ADMIN on the host and a tracer without a filter.
 *
 * Threads: any; seccomp_load is about the calling thread.
 */
#pragma once
#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

enum { SECCOMP_PROGRAM_MAX = 256 };

/* Writes the program (at most SECCOMP_PROGRAM_MAX instructions) and returns its length. Secret 0:
 * no clone3 at all. */
size_t seccomp_program_copy(struct sock_filter *out, uint64_t secret);

/* Puts the calling thread under the filter, for good. no_new_privs must be set. 0, or -1 with
 * errno. */
int seccomp_load(uint64_t secret);
