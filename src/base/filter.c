/* SPDX-License-Identifier: Apache-2.0 */
/* The program made of a table of allowed system calls; see filter.h. */
#include "base/filter.h"
#include "base/auto.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define MACHINE AUDIT_ARCH_AARCH64
#else
#error "which AUDIT_ARCH is this?"
#endif

static const struct filter_rule common[] = {
    {SYS_brk, FILTER_ALWAYS, 0}, // memory, none of it executable
    {SYS_mmap, FILTER_THIRD_LACKS, PROT_EXEC},
    {SYS_mprotect, FILTER_THIRD_LACKS, PROT_EXEC},
    {SYS_munmap, FILTER_ALWAYS, 0},
    {SYS_mremap, FILTER_ALWAYS, 0},
    {SYS_madvise, FILTER_ALWAYS, 0},
    {SYS_futex, FILTER_ALWAYS, 0},         // locks in libc; there is no other thread
    {SYS_clock_gettime, FILTER_ALWAYS, 0}, // where the kernel's own page does not answer
    {SYS_gettimeofday, FILTER_ALWAYS, 0},
    {SYS_getrandom, FILTER_ALWAYS, 0}, // malloc's tags
    {SYS_rt_sigreturn, FILTER_ALWAYS, 0},
    {SYS_restart_syscall, FILTER_ALWAYS, 0}, // after a stop
    {SYS_exit_group, FILTER_ALWAYS, 0},
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define PER_RULE 5
#define MAX_CODE (5 + PER_RULE * (FILTER_RULES + ARRAY_SIZE(common)))

struct code {
    struct sock_filter list[MAX_CODE];
    unsigned short length;
};

static void add(struct code *code, struct sock_filter instruction)
{
    code->list[code->length++] = instruction;
}

/* Compares one argument. What is not equal goes on with the next rule: for that the number is loaded again. */
static void add_equal(struct code *code, const struct filter_rule *rule, unsigned argument)
{
    add(code,
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) +
                                                                   argument * sizeof(__u64)));
    add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->value, 0, 1));
    add(code, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
    add(code, (struct sock_filter)LOAD(nr));
}

/* The kernel takes fds and protections as 32 bits, so the lower halves are all there is to compare (little-endian). */
static void add_rule(struct code *code, const struct filter_rule *rule)
{
    static const unsigned char body[] = {[FILTER_ALWAYS] = 1,
                                         [FILTER_FIRST_IS] = 4,
                                         [FILTER_SECOND_IS] = 4,
                                         [FILTER_THIRD_LACKS] = 4,
                                         [FILTER_REFUSED] = 1};

    add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->number, 0,
                                           body[rule->condition]));
    switch (rule->condition) {
    case FILTER_FIRST_IS:
        add_equal(code, rule, 0);
        break;
    case FILTER_SECOND_IS:
        add_equal(code, rule, 1);
        break;
    case FILTER_THIRD_LACKS:
        add(code, (struct sock_filter)LOAD(args[2]));
        add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, rule->value, 0, 1));
        add(code, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
        add(code, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
        break;
    case FILTER_REFUSED:
        add(code, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | (rule->value & SECCOMP_RET_DATA)));
        break;
    case FILTER_ALWAYS:
        add(code, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
        break;
    }
}

static void add_rules(struct code *code, const struct filter_rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_rule(code, &rules[i]);
}

int filter_load(const struct filter_rule *rules, size_t count)
{
    struct code code = {.length = 0};

    if (count > FILTER_RULES) {
        errno = E2BIG;
        return -1;
    }
    add(&code, (struct sock_filter)LOAD(arch));
    add(&code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0));
    add(&code, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
    add(&code, (struct sock_filter)LOAD(nr));
    add_rules(&code, rules, count);
    add_rules(&code, common, ARRAY_SIZE(common));
    add(&code, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));

    struct sock_fprog program = {.len = code.length, .filter = code.list};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
