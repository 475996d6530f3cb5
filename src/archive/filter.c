/* SPDX-License-Identifier: Apache-2.0 */
/* A table of allowed system calls and the program made of it; see filter.h. */
#include "archive/filter.h"
#include "base/auto.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define MACHINE AUDIT_ARCH_AARCH64
#else
#error "which AUDIT_ARCH is this?"
#endif

enum condition {
    ALWAYS,
    FIRST_IS,    // argument 0 equals `value`
    THIRD_LACKS, // argument 2 has no bit of `value`
};

struct rule {
    unsigned number;
    enum condition condition;
    unsigned value;
};

static const struct rule common[] = {
    {SYS_sendmsg, FIRST_IS, 0}, // the conversation; an fd sent along is never taken there
    {SYS_recvfrom, FIRST_IS, 0},
    {SYS_brk, ALWAYS, 0}, // memory, none of it executable
    {SYS_mmap, THIRD_LACKS, PROT_EXEC},
    {SYS_mprotect, THIRD_LACKS, PROT_EXEC},
    {SYS_munmap, ALWAYS, 0},
    {SYS_mremap, ALWAYS, 0},
    {SYS_madvise, ALWAYS, 0},
    {SYS_futex, ALWAYS, 0},         // locks in libc; there is no other thread
    {SYS_clock_gettime, ALWAYS, 0}, // where the kernel's own page does not answer
    {SYS_gettimeofday, ALWAYS, 0},
    {SYS_getrandom, ALWAYS, 0}, // malloc's tags
    {SYS_rt_sigreturn, ALWAYS, 0},
    {SYS_restart_syscall, ALWAYS, 0}, // after a stop
    {SYS_exit_group, ALWAYS, 0},
};
static const struct rule reading[] = {
    {SYS_read, FIRST_IS, 1},
    {SYS_lseek, FIRST_IS, 1},
};
static const struct rule writing[] = {
    {SYS_write, FIRST_IS, 1},
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define MAX_CODE 160

struct code {
    struct sock_filter list[MAX_CODE];
    unsigned short length;
};

static void add(struct code *code, struct sock_filter instruction)
{
    code->list[code->length++] = instruction;
}

/* The kernel takes fds and protections as 32 bits, so the lower halves are all there is to compare (little-endian). */
static void add_rule(struct code *code, const struct rule *rule)
{
    static const unsigned char body[] = {[ALWAYS] = 1, [FIRST_IS] = 4, [THIRD_LACKS] = 4};
    add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->number, 0,
                                           body[rule->condition]));
    if (rule->condition == FIRST_IS) {
        add(code, (struct sock_filter)LOAD(args[0]));
        add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->value, 1, 0));
        add(code, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
    }
    if (rule->condition == THIRD_LACKS) {
        add(code, (struct sock_filter)LOAD(args[2]));
        add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, rule->value, 0, 1));
        add(code, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
    }
    add(code, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
}

static void add_rules(struct code *code, const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_rule(code, &rules[i]);
}

_Static_assert(5 + 5 * (ARRAY_SIZE(common) + ARRAY_SIZE(reading) + ARRAY_SIZE(writing)) < MAX_CODE,
               "room for all rules");

int filter_load(bool is_reading)
{
    struct code code = {.length = 0};
    add(&code, (struct sock_filter)LOAD(arch));
    add(&code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0));
    add(&code, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
    add(&code, (struct sock_filter)LOAD(nr));
    add_rules(&code, common, ARRAY_SIZE(common));
    if (is_reading)
        add_rules(&code, reading, ARRAY_SIZE(reading));
    else
        add_rules(&code, writing, ARRAY_SIZE(writing));
    add(&code, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));

    struct sock_fprog program = {.len = code.length, .filter = code.list};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
