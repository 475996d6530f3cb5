/* SPDX-License-Identifier: Apache-2.0 */
/* The generated filter, run by an interpreter over every number and the arguments that matter. */
#include "engine/seccomp.h"
#include "engine/seccomp_table.h"
#include "seccomp_program_short.h"
#include "base/auto.h"
#include "test.h"

#include <linux/netlink.h>

#define SECRET UINT64_C(0x8badf00d12345678)

enum {
    NUMBERS = 1024,
    BAD_INSTRUCTION = 0x7abcdef, // no action of ours
};

struct machine {
    const struct sock_filter *code;
    size_t length;
    bool is_run[1024], is_taken[1024], is_passed[1024]; // conditional jumps: taken, not taken
    unsigned steps;                                     // of the last run
};

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
    uint32_t word;
    memcpy(&word, (const char *)data + offset, sizeof word);
    return word;
}

static bool is_true(const struct sock_filter *c, uint32_t a)
{
    return BPF_OP(c->code) == BPF_JEQ ? a == c->k : a >= c->k;
}

static uint32_t run(struct machine *m, const struct seccomp_data *data)
{
    uint32_t a = 0, x = 0;
    m->steps = 0;
    for (size_t at = 0; at < m->length; at++) {
        const struct sock_filter *c = &m->code[at];
        m->is_run[at] = true;
        m->steps++;
        switch (c->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            a = load(data, c->k);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= c->k;
            break;
        case BPF_ALU | BPF_XOR | BPF_K:
            a ^= c->k;
            break;
        case BPF_ALU | BPF_OR | BPF_X:
            a |= x;
            break;
        case BPF_MISC | BPF_TAX:
            x = a;
            break;
        case BPF_JMP | BPF_JA:
            at += c->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
        case BPF_JMP | BPF_JGE | BPF_K:
            *(is_true(c, a) ? &m->is_taken[at] : &m->is_passed[at]) = true;
            at += is_true(c, a) ? c->jt : c->jf;
            break;
        case BPF_RET | BPF_K:
            return c->k;
        default:
            return BAD_INSTRUCTION;
        }
    }
    return BAD_INSTRUCTION;
}

/* What the table says, without any program. */
static uint32_t answer(const struct seccomp_question *ask, const uint64_t *args, uint64_t secret)
{
    uint64_t arg = args[ask->arg];
    if (ask->is_secret)
        return secret && arg == secret ? ask->answers[0].action : ask->otherwise;
    if (ask->is_high)
        arg >>= 32;
    uint32_t value = (uint32_t)arg & (ask->mask ? ask->mask : UINT32_MAX);
    for (const struct seccomp_answer *at = ask->answers; at->action || at->next; at++) {
        if (at->value == value)
            return at->next ? answer(at->next, args, secret) : at->action;
    }
    if (ask->otherwise_ask)
        return answer(ask->otherwise_ask, args, secret);
    return ask->otherwise;
}

static const struct seccomp_rule *find_rule(uint32_t number)
{
    for (size_t i = 0; i < ARRAY_SIZE(seccomp_table); i++) {
        if (seccomp_table[i].number == number)
            return &seccomp_table[i];
    }
    return NULL;
}

static uint32_t expected(const struct seccomp_data *data, uint64_t secret)
{
    uint32_t number = (uint32_t)data->nr;
    if (data->arch != AUDIT_ARCH_X86_64)
        return SECCOMP_RET_KILL_PROCESS;
    if (number >= SECCOMP_X32_NUMBER && number != UINT32_MAX)
        return SECCOMP_RET_KILL_PROCESS;
    const struct seccomp_rule *rule = find_rule(number);
    if (!rule)
        return SECCOMP_ABSENT;
    return rule->ask ? answer(rule->ask, (const uint64_t *)data->args, secret) : rule->action;
}

static void check_call(struct machine *m, uint32_t arch, uint32_t number, const uint64_t *args,
                       uint64_t secret)
{
    struct seccomp_data data = {.nr = (int)number, .arch = arch};
    memcpy(data.args, args, sizeof data.args);
    uint32_t got = run(m, &data), want = expected(&data, secret);
    if (got != want)
        test_fail(__FILE__, __LINE__, "call %u of %#x (%#llx, %#llx, %#llx): %#x, not %#x", number,
                  arch, (unsigned long long)args[0], (unsigned long long)args[1],
                  (unsigned long long)args[2], got, want);
}

/* Every value a question compares with, its neighbours, junk above, single bits, and the secret
 * with a bit off. */
static size_t interesting_values(uint64_t *out)
{
    static const uint64_t compared[] = {0,
                                        AF_UNIX,
                                        AF_INET,
                                        AF_INET6,
                                        AF_NETLINK,
                                        SOCK_PACKET,
                                        SOCK_STREAM | SOCK_CLOEXEC,
                                        SOCK_DGRAM | SOCK_NONBLOCK,
                                        IPPROTO_TCP,
                                        IPPROTO_UDP,
                                        IPPROTO_ICMPV6,
                                        132,
                                        262,
                                        TCP_ULP,
                                        TIOCSTI,
                                        TIOCLINUX,
                                        TIOCSETD,
                                        TIOCCONS,
                                        FIONREAD,
                                        FICLONE,
                                        FICLONERANGE,
                                        FIDEDUPERANGE,
                                        FS_IOC_GETFLAGS,
                                        FS_IOC_SETFLAGS,
                                        FS_IOC_FIEMAP,
                                        FS_IOC_FSGETXATTR,
                                        FS_IOC_FSSETXATTR,
                                        0x5201,
                                        0x8905,
                                        0x8a01,
                                        0xff0b,
                                        PR_SCHED_CORE,
                                        ADDR_NO_RANDOMIZE,
                                        0xffffffff,
                                        SECRET};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(compared); i++) {
        for (int off = -1; off <= 1; off++) {
            out[n++] = compared[i] + (uint64_t)off;
            out[n++] = (compared[i] + (uint64_t)off) | UINT64_C(0xdeadbeef00000000);
        }
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        out[n++] = UINT64_C(1) << bit;
        out[n++] = SECRET ^ UINT64_C(1) << bit;
    }
    return n;
}

static void check_arguments(struct machine *m, uint32_t number, uint64_t secret)
{
    static const uint64_t few[] = {
        0, 1, RLIMIT_CORE, 2, 6, SOCK_RAW, 10, AF_NETLINK | 1ULL << 40, 16, 1ULL << 32};
    uint64_t values[512];
    size_t n = interesting_values(values);
    CHECK(n <= ARRAY_SIZE(values));
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < ARRAY_SIZE(few); j++) {
            for (size_t k = 0; k < ARRAY_SIZE(few); k++) {
                check_call(m, AUDIT_ARCH_X86_64, number, (uint64_t[6]){values[i], few[j], few[k]},
                           secret);
                check_call(m, AUDIT_ARCH_X86_64, number, (uint64_t[6]){few[j], values[i], few[k]},
                           secret);
                check_call(m, AUDIT_ARCH_X86_64, number, (uint64_t[6]){few[j], few[k], values[i]},
                           secret);
                check_call(m, AUDIT_ARCH_X86_64, number,
                           (uint64_t[6]){0, few[j], few[k], values[i]}, secret);
            }
        }
    }
}

static void check_program(struct machine *m, uint64_t secret)
{
    static const uint32_t far[] = {NUMBERS,    4096,       0x3fffffff, 0x40000000, 0x40000027,
                                   0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    static const uint32_t others[] = {AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64, 0, 0xffffffff};
    const uint64_t zero[6] = {0}, ones[6] = {-1ULL, -1ULL, -1ULL, -1ULL, -1ULL, -1ULL};

    for (uint32_t number = 0; number < NUMBERS; number++) {
        check_call(m, AUDIT_ARCH_X86_64, number, zero, secret);
        check_call(m, AUDIT_ARCH_X86_64, number, ones, secret);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
            check_call(m, others[i], number, zero, secret);
        const struct seccomp_rule *rule = find_rule(number);
        if (rule && rule->ask)
            check_arguments(m, number, secret);
    }
    for (size_t i = 0; i < ARRAY_SIZE(far); i++)
        check_call(m, AUDIT_ARCH_X86_64, far[i], zero, secret);
}

static struct machine armed_machine(struct sock_filter *code, uint64_t secret)
{
    struct machine m = {.code = code};
    m.length = seccomp_program_copy(code, secret);
    return m;
}

static uint32_t verdict(uint64_t secret, uint32_t number, uint64_t a, uint64_t b, uint64_t c)
{
    struct sock_filter code[SECCOMP_PROGRAM_MAX];
    struct machine m = armed_machine(code, secret);
    struct seccomp_data data = {
        .nr = (int)number, .arch = AUDIT_ARCH_X86_64, .args = {a, b, c, SECRET, SECRET, SECRET}};
    return run(&m, &data);
}

#define ERRNO(code) (SECCOMP_RET_ERRNO | (code))

TEST(every_number_of_the_kernel_is_in_the_table_once)
{
    for (uint32_t number = 0; number <= SECCOMP_LAST_NUMBER; number++) {
        unsigned times = 0;
        for (size_t i = 0; i < ARRAY_SIZE(seccomp_table); i++)
            times += seccomp_table[i].number == number;
        bool is_gap = number > __NR_uprobe && number < __NR_pidfd_send_signal;
        if (times != (is_gap ? 0 : 1))
            test_fail(__FILE__, __LINE__, "call %u is in the table %u times", number, times);
    }
}

TEST(the_program_says_what_the_table_says)
{
    struct sock_filter code[SECCOMP_PROGRAM_MAX];
    struct machine m = armed_machine(code, SECRET);
    check_program(&m, SECRET);
}

TEST(without_a_secret_it_says_the_same_but_for_clone3)
{
    struct sock_filter code[SECCOMP_PROGRAM_MAX];
    struct machine m = armed_machine(code, 0);
    check_program(&m, 0);
}

TEST(jumps_that_need_detours_lead_to_the_same_verdicts)
{
    struct machine m = {.code = seccomp_program, .length = ARRAY_SIZE(seccomp_program)};
    size_t detours = 0;
    for (size_t i = 0; i < m.length; i++)
        detours += m.code[i].code == (BPF_JMP | BPF_JA);
    CHECK(detours > 0);
    check_program(&m, 0);
}

TEST(every_instruction_and_both_sides_of_every_jump_are_run)
{
    struct sock_filter code[SECCOMP_PROGRAM_MAX];
    struct machine m = armed_machine(code, SECRET);
    check_program(&m, SECRET);
    for (size_t i = 0; i < m.length; i++) {
        bool is_branch = BPF_CLASS(code[i].code) == BPF_JMP && BPF_OP(code[i].code) != BPF_JA;
        if (!m.is_run[i] || (is_branch && !(m.is_taken[i] && m.is_passed[i])))
            test_fail(__FILE__, __LINE__, "instruction %zu: run %d, taken %d, passed %d", i,
                      m.is_run[i], m.is_taken[i], m.is_passed[i]);
    }
}

TEST(the_size_of_the_program_is_printed)
{
    struct sock_filter code[SECCOMP_PROGRAM_MAX];
    struct machine m = armed_machine(code, SECRET);
    unsigned deepest = 0, sum = 0;
    for (int number = 0; number <= SECCOMP_LAST_NUMBER; number++) {
        struct seccomp_data data = {.nr = number, .arch = AUDIT_ARCH_X86_64};
        (void)run(&m, &data);
        deepest = m.steps > deepest ? m.steps : deepest;
        sum += m.steps;
    }
    printf("# %zu instructions; path %.1f on average, %u at most\n", m.length,
           (double)sum / (SECCOMP_LAST_NUMBER + 1), deepest);
    CHECK(m.length <= SECCOMP_PROGRAM_MAX);
}

TEST(what_must_never_be_open_is_refused)
{
    static const uint32_t shut[] = {__NR_mount,
                                    __NR_umount2,
                                    __NR_pivot_root,
                                    __NR_move_mount,
                                    __NR_open_tree,
                                    __NR_fsopen,
                                    __NR_fsconfig,
                                    __NR_fsmount,
                                    __NR_fspick,
                                    __NR_mount_setattr,
                                    __NR_open_tree_attr,
                                    __NR_unshare,
                                    __NR_setns,
                                    __NR_io_uring_setup,
                                    __NR_io_uring_enter,
                                    __NR_io_uring_register,
                                    __NR_bpf,
                                    __NR_userfaultfd,
                                    __NR_keyctl,
                                    __NR_add_key,
                                    __NR_request_key,
                                    __NR_perf_event_open,
                                    __NR_kexec_load,
                                    __NR_kexec_file_load,
                                    __NR_init_module,
                                    __NR_finit_module,
                                    __NR_delete_module,
                                    __NR_reboot,
                                    __NR_swapon,
                                    __NR_swapoff,
                                    __NR_quotactl,
                                    __NR_quotactl_fd,
                                    __NR_acct,
                                    __NR_syslog,
                                    __NR_name_to_handle_at,
                                    __NR_open_by_handle_at,
                                    __NR_kcmp,
                                    __NR_lookup_dcookie,
                                    __NR_memfd_secret,
                                    __NR_fanotify_init,
                                    __NR_settimeofday,
                                    __NR_clock_settime,
                                    __NR_clock_adjtime,
                                    __NR_iopl,
                                    __NR_ioperm,
                                    __NR_sethostname};
    for (size_t i = 0; i < ARRAY_SIZE(shut); i++) {
        if (verdict(SECRET, shut[i], 0, 0, 0) != ERRNO(EPERM))
            test_fail(__FILE__, __LINE__, "call %u is not refused", shut[i]);
    }
    CHECK_INT(verdict(SECRET, 470, 0, 0, 0), ERRNO(ENOSYS));
    CHECK_INT(verdict(SECRET, 400, 0, 0, 0), ERRNO(ENOSYS));
    CHECK_INT(verdict(SECRET, 0x40000000 | __NR_getpid, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
    CHECK_INT(verdict(SECRET, 0xffffffff, 0, 0, 0), ERRNO(ENOSYS));
}

TEST(clone_makes_threads_but_no_namespaces)
{
    static const uint64_t spaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                      CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};
    for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
        CHECK_INT(verdict(SECRET, __NR_clone, spaces[i] | 17, 0, 0), ERRNO(EPERM));
        CHECK_INT(verdict(SECRET, __NR_clone, spaces[i] | CLONE_VM | 1ULL << 63, 0, 0),
                  ERRNO(EPERM));
    }
    CHECK_INT(verdict(SECRET, __NR_clone, 0x3d0f00, 0, 0), SECCOMP_RET_ALLOW);  // pthread_create
    CHECK_INT(verdict(SECRET, __NR_clone, 0x1200011, 0, 0), SECCOMP_RET_ALLOW); // fork
    CHECK_INT(verdict(SECRET, __NR_clone, 0x4111, 0, 0), SECCOMP_RET_ALLOW);    // posix_spawn
}

TEST(clone3_opens_to_the_secret_only)
{
    CHECK_INT(verdict(SECRET, __NR_clone3, 1, 88, SECRET), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_clone3, 1, 88, 0), ERRNO(ENOSYS));
    CHECK_INT(verdict(SECRET, __NR_clone3, 1, 88, (uint32_t)SECRET), ERRNO(ENOSYS));
    CHECK_INT(verdict(SECRET, __NR_clone3, 1, 88, SECRET >> 32 << 32), ERRNO(ENOSYS));
    CHECK_INT(verdict(SECRET, __NR_clone3, SECRET, SECRET, 0), ERRNO(ENOSYS));
    CHECK_INT(verdict(1, __NR_clone3, 1, 88, 1), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(1ULL << 32, __NR_clone3, 1, 88, 1ULL << 32), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(0, __NR_clone3, 1, 88, 0), ERRNO(ENOSYS));
    CHECK_INT(verdict(0, __NR_clone3, 1, 88, SECRET), ERRNO(ENOSYS));
}

TEST(terminal_input_cannot_be_faked_with_junk_in_the_upper_half)
{
    static const uint64_t shut[] = {0x5412, 0x541c, 0x5423, 0x541d};
    for (size_t i = 0; i < ARRAY_SIZE(shut); i++) {
        CHECK_INT(verdict(SECRET, __NR_ioctl, 0, shut[i], 0), ERRNO(EPERM));
        CHECK_INT(verdict(SECRET, __NR_ioctl, 0, shut[i] | 1ULL << 32, 0), ERRNO(EPERM));
        CHECK_INT(verdict(SECRET, __NR_ioctl, 0, shut[i] | 0xffffffffULL << 32, 0), ERRNO(EPERM));
    }
    CHECK_INT(verdict(SECRET, __NR_ioctl, 0, TCGETS, 0), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_ioctl, 0, TIOCGWINSZ, 0), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_ioctl, 0, TIOCSCTTY, 0), SECCOMP_RET_ALLOW);
}

TEST(ioctls_of_volumes_devices_and_namespaces_do_not_reach_them)
{
    static const uint64_t shut[] = {0x5000940e /* BTRFS_IOC_SNAP_CREATE */,
                                    0xd000943c /* BTRFS_IOC_GET_SUBVOL_INFO */,
                                    0xd000943d /* BTRFS_IOC_GET_SUBVOL_ROOTREF */,
                                    0xd000941e /* BTRFS_IOC_DEV_INFO */,
                                    0xc0109414 /* BTRFS_IOC_SPACE_INFO */,
                                    0x9408 /* BTRFS_IOC_SYNC */,
                                    0xc0109411 /* BTRFS_IOC_TREE_SEARCH */,
                                    0xc0c0583b /* FS_IOC_GETFSMAP */,
                                    0x8004587d /* XFS_IOC_GOINGDOWN */,
                                    0xc0045877 /* FIFREEZE */,
                                    0xc0185879 /* FITRIM */,
                                    0x81009431 /* FS_IOC_GETFSLABEL */,
                                    0x80111500 /* FS_IOC_GETFSUUID */,
                                    1 /* FIBMAP */,
                                    0xb702 /* NS_GET_PARENT */,
                                    0x5760 /* IOC_WATCH_QUEUE_SET_SIZE */,
                                    0x4c00 /* LOOP_SET_FD */,
                                    0x1272 /* BLKGETSIZE64 */,
                                    0x4b46 /* KDGKBENT */,
                                    0x400c6615 /* FS_IOC_ADD_ENCRYPTION_KEY */};
    for (size_t i = 0; i < ARRAY_SIZE(shut); i++)
        CHECK_INT(verdict(SECRET, __NR_ioctl, 0, shut[i], 0), ERRNO(ENOTTY));
    CHECK_INT(verdict(SECRET, __NR_ioctl, 0, FS_IOC_FIEMAP, 0), ERRNO(EOPNOTSUPP));
    CHECK_INT(verdict(SECRET, __NR_ioctl, 0, FICLONE, 0), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_ioctl, 0, FS_IOC_GETFLAGS, 0), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_ioctl, 0, 0x8912 /* SIOCGIFCONF */, 0), SECCOMP_RET_ALLOW);
}

TEST(huge_pages_and_core_scheduling_are_the_hosts)
{
    struct seccomp_data data = {.nr = __NR_mmap, .arch = AUDIT_ARCH_X86_64};
    struct sock_filter code[SECCOMP_PROGRAM_MAX];
    struct machine m = armed_machine(code, SECRET);
    data.args[3] = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | UINT64_C(21) << 26;
    CHECK_INT(run(&m, &data), ERRNO(ENOMEM));
    data.args[3] = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    CHECK_INT(run(&m, &data), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_memfd_create, 0, MFD_HUGETLB | MFD_CLOEXEC, 0), ERRNO(ENOMEM));
    CHECK_INT(verdict(SECRET, __NR_memfd_create, 0, MFD_CLOEXEC, 0), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_shmget, 0, 4096, SHM_HUGETLB | 0600), ERRNO(ENOMEM));
    CHECK_INT(verdict(SECRET, __NR_shmget, 0, 4096, 0600), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_prctl, PR_SCHED_CORE, 1, 0), ERRNO(EINVAL));
    CHECK_INT(verdict(SECRET, __NR_prctl, PR_SET_NAME, 0, 0), SECCOMP_RET_ALLOW);
}

TEST(sockets_are_unix_inet_and_route_netlink)
{
    for (uint64_t family = 0; family <= 50; family++) {
        bool is_open = family == 1 || family == 2 || family == 10 || family == 16;
        uint32_t want = is_open ? SECCOMP_RET_ALLOW : ERRNO(EAFNOSUPPORT);
        CHECK_INT(verdict(SECRET, __NR_socket, family, SOCK_DGRAM, 0), want);
        CHECK_INT(verdict(SECRET, __NR_socket, family | 1ULL << 35, SOCK_DGRAM, 0), want);
        CHECK_INT(verdict(SECRET, __NR_socketpair, family, SOCK_STREAM, 0),
                  family == AF_UNIX ? SECCOMP_RET_ALLOW : ERRNO(EAFNOSUPPORT));
    }
    for (uint64_t protocol = 1; protocol < 32; protocol++)
        CHECK_INT(verdict(SECRET, __NR_socket, AF_NETLINK, SOCK_RAW, protocol),
                  ERRNO(EAFNOSUPPORT));
    CHECK_INT(verdict(SECRET, __NR_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE),
              SECCOMP_RET_ALLOW);
}

TEST(inet_sockets_are_tcp_udp_and_ping)
{
    static const uint64_t open[] = {0, 1, 6, 17, 58};
    for (uint64_t type = 0; type < 16; type++) {
        bool is_open = type == SOCK_STREAM || type == SOCK_DGRAM;
        CHECK_INT(verdict(SECRET, __NR_socket, AF_INET, type | SOCK_CLOEXEC, 0),
                  is_open ? SECCOMP_RET_ALLOW : ERRNO(EPERM));
    }
    for (uint64_t protocol = 0; protocol < 300; protocol++) {
        bool is_open = false;
        for (size_t i = 0; i < ARRAY_SIZE(open); i++)
            is_open |= open[i] == protocol;
        CHECK_INT(verdict(SECRET, __NR_socket, AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, protocol),
                  is_open ? SECCOMP_RET_ALLOW : ERRNO(EPROTONOSUPPORT));
    }
    CHECK_INT(verdict(SECRET, __NR_setsockopt, 3, IPPROTO_TCP, TCP_ULP), ERRNO(ENOPROTOOPT));
    CHECK_INT(verdict(SECRET, __NR_setsockopt, 3, IPPROTO_TCP, TCP_NODELAY), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_setsockopt, 3, SOL_SOCKET, TCP_ULP), SECCOMP_RET_ALLOW);
}

static uint32_t prlimit_of(uint64_t pid, uint64_t resource, uint64_t new_limit, uint64_t old_limit)
{
    struct sock_filter code[SECCOMP_PROGRAM_MAX];
    struct machine m = armed_machine(code, SECRET);
    struct seccomp_data data = {.nr = __NR_prlimit64,
                                .arch = AUDIT_ARCH_X86_64,
                                .args = {pid, resource, new_limit, old_limit, SECRET, SECRET}};
    return run(&m, &data);
}

static uint32_t prlimit_verdict(uint64_t resource, uint64_t new_limit, uint64_t old_limit)
{
    return prlimit_of(0, resource, new_limit, old_limit);
}

TEST(limits_and_priorities_of_pid_1_stay)
{
    const uint64_t high = 1ULL << 32, low = 0x1000;
    static const uint32_t calls[] = {__NR_sched_setparam, __NR_sched_setscheduler,
                                     __NR_sched_setaffinity, __NR_sched_setattr};
    for (uint64_t pid = 1; pid < 100; pid++) {
        CHECK_INT(prlimit_of(pid, RLIMIT_NOFILE, low, 0), ERRNO(EPERM));
        CHECK_INT(prlimit_of(pid | high, RLIMIT_CORE, high, low), ERRNO(EPERM));
        CHECK_INT(prlimit_of(pid, RLIMIT_NOFILE, 0, low), SECCOMP_RET_ALLOW);
    }
    CHECK_INT(prlimit_of(0, RLIMIT_NOFILE, low, low), SECCOMP_RET_ALLOW);
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        CHECK_INT(verdict(SECRET, calls[i], 1, 0, 0), ERRNO(EPERM));
        CHECK_INT(verdict(SECRET, calls[i], 1 | high, 0, 0), ERRNO(EPERM));
        CHECK_INT(verdict(SECRET, calls[i], 0, 0, 0), SECCOMP_RET_ALLOW);
        CHECK_INT(verdict(SECRET, calls[i], 2, 1, 1), SECCOMP_RET_ALLOW);
    }
    CHECK_INT(verdict(SECRET, __NR_setpriority, PRIO_PROCESS, 1, 19), ERRNO(EPERM));
    CHECK_INT(verdict(SECRET, __NR_setpriority, PRIO_PROCESS, 0, 19), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_setpriority, PRIO_PROCESS, 7, 19), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_setpriority, PRIO_PGRP, 0, 19), ERRNO(EPERM));
    CHECK_INT(verdict(SECRET, __NR_setpriority, PRIO_USER, 0, 19), ERRNO(EPERM));
    CHECK_INT(verdict(SECRET, __NR_ioprio_set, 1, 1, 0), ERRNO(EPERM));
    CHECK_INT(verdict(SECRET, __NR_ioprio_set, 1, 0, 0), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_ioprio_set, 3, 0, 0), ERRNO(EPERM));
}

TEST(the_core_limit_is_read_but_never_set)
{
    const uint64_t high = 1ULL << 32, low = 0x1000;
    for (uint64_t resource = 0; resource < 16; resource++) {
        bool is_core = resource == RLIMIT_CORE;
        CHECK_INT(verdict(SECRET, __NR_setrlimit, resource, low, 0),
                  is_core ? ERRNO(0) : SECCOMP_RET_ALLOW);
        CHECK_INT(verdict(SECRET, __NR_setrlimit, resource | high, low, 0),
                  is_core ? ERRNO(0) : SECCOMP_RET_ALLOW);
        CHECK_INT(prlimit_verdict(resource, low, 0), is_core ? ERRNO(0) : SECCOMP_RET_ALLOW);
        CHECK_INT(prlimit_verdict(resource | high, high, 0),
                  is_core ? ERRNO(0) : SECCOMP_RET_ALLOW);
        CHECK_INT(prlimit_verdict(resource, low, low), is_core ? ERRNO(EPERM) : SECCOMP_RET_ALLOW);
        CHECK_INT(prlimit_verdict(resource, high, high),
                  is_core ? ERRNO(EPERM) : SECCOMP_RET_ALLOW);
        CHECK_INT(prlimit_verdict(resource, 0, low), SECCOMP_RET_ALLOW);
        CHECK_INT(prlimit_verdict(resource, 0, high), SECCOMP_RET_ALLOW);
        CHECK_INT(prlimit_verdict(resource, 0, 0), SECCOMP_RET_ALLOW);
        CHECK_INT(verdict(SECRET, __NR_getrlimit, resource, low, 0), SECCOMP_RET_ALLOW);
    }
}

TEST(personality_is_asked_or_made_steady_only)
{
    CHECK_INT(verdict(SECRET, __NR_personality, 0, 0, 0), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_personality, 0xffffffff, 0, 0), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_personality, 0x40000, 0, 0), SECCOMP_RET_ALLOW);
    CHECK_INT(verdict(SECRET, __NR_personality, 8, 0, 0), ERRNO(EPERM));        // PER_LINUX32
    CHECK_INT(verdict(SECRET, __NR_personality, 0x100000, 0, 0), ERRNO(EPERM)); // MMAP_PAGE_ZERO
    CHECK_INT(verdict(SECRET, __NR_personality, 0x440000, 0, 0), ERRNO(EPERM)); // READ_IMPLIES_EXEC
    CHECK_INT(verdict(SECRET, __NR_personality, 0x20000, 0, 0), ERRNO(EPERM));  // UNAME26
    CHECK_INT(verdict(SECRET, __NR_personality, 0x40001, 0, 0), ERRNO(EPERM));
}
