/* SPDX-License-Identifier: Apache-2.0 */
/* The filter in the kernel: attacks get the promised error or end, and ordinary programs run. */
#include "engine/seccomp.h"
#include "engine/seccomp_table.h"
#include "base/auto.h"
#include "test.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECRET UINT64_C(0x0123456789abcdef)

enum { LOAD_FAILED = 99 };

/* In a child of its own: no core file, no controlling terminal, the filter loaded. */
static void enter_filter(uint64_t secret)
{
    struct rlimit none = {0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)setsid();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_load(secret) < 0)
        _exit(LOAD_FAILED);
}

static int wait_for(pid_t child)
{
    int status = -1;
    CHECK_INT(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == LOAD_FAILED)
        test_fail(__FILE__, __LINE__, "the filter could not be loaded");
    return status;
}

/* Makes the call under the filter: its errno, 0 when it worked, or minus the signal that ended the
 * child. */
static int outcome(long number, long a, long b, long c, long d)
{
    pid_t child = fork();
    if (child == 0) {
        enter_filter(SECRET);
        long result = syscall(number, a, b, c, d, 0L, 0L);
        _exit(result == -1 ? errno : 0);
    }
    int status = wait_for(child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(it_needs_no_new_privs_or_rights)
{
    pid_t child = fork();
    if (child == 0) {
        if (setresuid(65534, 65534, 65534) < 0 && errno != EPERM)
            _exit(1);
        int result = seccomp_load(SECRET);
        _exit(result == -1 && errno == EACCES ? 0 : 2);
    }
    CHECK_INT(wait_for(child), 0);
}

TEST(namespaces_are_refused)
{
    static const long spaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                  CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
        CHECK_INT(outcome(SYS_unshare, spaces[i], 0, 0, 0), EPERM);
        CHECK_INT(outcome(SYS_clone, spaces[i] | SIGCHLD, 0, 0, 0), EPERM);
        CHECK_INT(outcome(SYS_clone, spaces[i] | SIGCHLD | 1L << 40, 0, 0, 0), EPERM);
    }
    CHECK_INT(outcome(SYS_setns, 0, CLONE_NEWUSER, 0, 0), EPERM);
}

/* clone3 for a user namespace, the third argument as given; the child it makes ends at once. */
static int try_clone3(uint64_t loaded, uint64_t given)
{
    pid_t child = fork();
    if (child == 0) {
        struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
        enter_filter(loaded);
        long pid = syscall(SYS_clone3, &args, sizeof args, given);
        if (pid == 0)
            _exit(0);
        int code = pid < 0 ? errno : 0;
        while (pid > 0 && waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
            ;
        _exit(code);
    }
    return WEXITSTATUS(wait_for(child));
}

TEST(clone3_wants_the_secret)
{
    CHECK(try_clone3(SECRET, SECRET) != ENOSYS);
    CHECK_INT(try_clone3(SECRET, SECRET ^ 1), ENOSYS);
    CHECK_INT(try_clone3(SECRET, SECRET ^ 1ULL << 63), ENOSYS);
    CHECK_INT(try_clone3(SECRET, 0), ENOSYS);
    CHECK_INT(try_clone3(0, 0), ENOSYS);
}

TEST(every_call_that_is_shut_says_so)
{
    pid_t child = fork();
    if (child == 0) {
        enter_filter(SECRET);
        for (long number = 0; number < 1024; number++) {
            uint32_t action = SECCOMP_ABSENT;
            for (size_t i = 0; i < ARRAY_SIZE(seccomp_table); i++) {
                if (seccomp_table[i].number == number)
                    action = seccomp_table[i].ask ? SECCOMP_RET_ALLOW : seccomp_table[i].action;
            }
            // Newer kernels ask no filter about the probes' traps, and end who calls them from
            // elsewhere.
            bool is_trap = number == __NR_uretprobe || number == __NR_uprobe;
            if (action == SECCOMP_RET_ALLOW || is_trap)
                continue;
            errno = 0;
            long result = syscall(number, 0L, 0L, 0L, 0L, 0L, 0L);
            if (result != -1 || errno != (int)(action & SECCOMP_RET_DATA)) {
                dprintf(STDERR_FILENO, "call %ld: %ld, errno %d\n", number, result, errno);
                _exit(1);
            }
        }
        _exit(0);
    }
    CHECK_INT(wait_for(child), 0);
}

TEST(the_traps_of_probes_are_of_no_use)
{
    static const long traps[] = {__NR_uretprobe, __NR_uprobe};
    for (size_t i = 0; i < ARRAY_SIZE(traps); i++) {
        int got = outcome(traps[i], 0, 0, 0, 0);
        CHECK(got == ENOSYS || got == -SIGILL || got == ENXIO);
    }
}

TEST(attacks_by_name_are_refused)
{
    CHECK_INT(outcome(SYS_io_uring_setup, 1, 0, 0, 0), EPERM);
    CHECK_INT(outcome(SYS_bpf, 0, 0, 0, 0), EPERM);
    CHECK_INT(outcome(SYS_keyctl, 0, -3, 0, 0), EPERM);
    CHECK_INT(outcome(SYS_userfaultfd, 1, 0, 0, 0), EPERM);
    CHECK_INT(outcome(SYS_perf_event_open, 0, 0, -1, -1), EPERM);
    CHECK_INT(outcome(SYS_mount, (long)"none", (long)"/mnt", (long)"tmpfs", 0), EPERM);
    CHECK_INT(outcome(SYS_fsopen, (long)"tmpfs", 0, 0, 0), EPERM);
    CHECK_INT(outcome(SYS_open_tree, AT_FDCWD, (long)"/", 1, 0), EPERM);
    CHECK_INT(outcome(SYS_personality, 0x0400000, 0, 0, 0), EPERM);
    CHECK_INT(outcome(SYS_personality, 0xffffffff, 0, 0, 0), 0);
    CHECK_INT(outcome(1000, 0, 0, 0, 0), ENOSYS);
}

TEST(only_four_socket_families_open)
{
    for (long family = 0; family <= 50; family++) {
        bool is_open =
            family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
        int got = outcome(SYS_socket, family, SOCK_DGRAM, 0, 0);
        if (is_open ? got != 0 && !(family == AF_INET6 && got == EAFNOSUPPORT)
                    : got != EAFNOSUPPORT)
            test_fail(__FILE__, __LINE__, "socket family %ld gives %d", family, got);
    }
    CHECK_INT(outcome(SYS_socket, AF_NETLINK, SOCK_RAW, 9, 0), EAFNOSUPPORT);  // audit
    CHECK_INT(outcome(SYS_socket, AF_NETLINK, SOCK_RAW, 12, 0), EAFNOSUPPORT); // netfilter
    CHECK_INT(outcome(SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP, 0), EPERM);
    CHECK_INT(outcome(SYS_socket, AF_INET, SOCK_PACKET, 0x300, 0), EPERM);
    CHECK_INT(outcome(SYS_socket, AF_INET, SOCK_STREAM, 262, 0), EPROTONOSUPPORT); // MPTCP
}

TEST(terminal_input_cannot_be_faked)
{
    int master = -1, slave = -1;
    CHECK(openpty(&master, &slave, NULL, NULL, NULL) == 0);
    static const char letter = 'x';
    int plain = outcome(SYS_ioctl, slave, TIOCSTI, (long)&letter, 0);
    int junk = outcome(SYS_ioctl, slave, TIOCSTI | 1L << 32, (long)&letter, 0);
    int more_junk = outcome(SYS_ioctl, slave, (long)(TIOCLINUX | 0xdeadbeefUL << 32), 0, 0);
    struct winsize size;
    int harmless = outcome(SYS_ioctl, slave, TIOCGWINSZ, (long)&size, 0);
    (void)close(master);
    (void)close(slave);
    CHECK_INT(plain, EPERM);
    CHECK_INT(junk, EPERM);
    CHECK_INT(more_junk, EPERM);
    CHECK_INT(harmless, 0);
}

TEST(setting_the_core_limit_changes_nothing)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit one = {1, 1}, none = {0}, now = {7, 7};
        (void)setrlimit(RLIMIT_CORE, &one);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_load(SECRET) < 0)
            _exit(LOAD_FAILED);
        if (setrlimit(RLIMIT_CORE, &none) != 0 || syscall(SYS_setrlimit, RLIMIT_CORE, &none) != 0 ||
            syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL) != 0)
            _exit(1);
        if (prlimit(0, RLIMIT_CORE, &none, &now) != -1 || errno != EPERM || now.rlim_cur != 7)
            _exit(2);
        if (getrlimit(RLIMIT_CORE, &now) != 0 || now.rlim_cur != 1 || now.rlim_max != 1)
            _exit(3);
        _exit(0);
    }
    CHECK_INT(wait_for(child), 0);
}

static long call_32bit_getpid(void)
{
    long result = 20; // getpid's number there
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "cc", "r8", "r9", "r10", "r11");
    return result;
}

static int outcome_32bit(bool is_filtered)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0};
        (void)setrlimit(RLIMIT_CORE, &none);
        if (is_filtered)
            enter_filter(SECRET);
        _exit(call_32bit_getpid() == getpid() ? 0 : 1);
    }
    int status = wait_for(child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(a_32_bit_call_ends_the_process)
{
    if (outcome_32bit(false) != 0)
        SKIP("this kernel has no 32-bit calls");
    CHECK_INT(outcome_32bit(true), -SIGSYS);
}

TEST(an_x32_call_ends_the_process)
{
    CHECK_INT(outcome(0x40000000L | SYS_getpid, 0, 0, 0, 0), -SIGSYS);
    CHECK_INT(outcome(0x40000000L | 512, 0, 0, 0, 0), -SIGSYS);
}

/* A tracer sets the number to -1 to skip a call (strace --inject); that must not look like x32. */
TEST(a_tracer_may_skip_a_call)
{
    pid_t child = fork();
    if (child == 0) {
        enter_filter(SECRET);
        (void)ptrace(PTRACE_TRACEME, 0, 0, 0);
        (void)raise(SIGSTOP);
        _exit(syscall(SYS_getppid) == -1 && errno == ENOSYS ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    bool is_done = false;
    while (!is_done && ptrace(PTRACE_SYSCALL, child, 0, 0) == 0) {
        struct user_regs_struct regs;
        CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        CHECK(ptrace(PTRACE_GETREGS, child, 0, &regs) == 0);
        if (regs.orig_rax == SYS_getppid) {
            regs.orig_rax = (unsigned long long)-1;
            CHECK(ptrace(PTRACE_SETREGS, child, 0, &regs) == 0);
            is_done = true;
        }
    }
    CHECK(ptrace(PTRACE_DETACH, child, 0, 0) == 0);
    CHECK_INT(wait_for(child), 0);
}

/* Runs a program under the filter, its output thrown away; the exit code, or minus the signal. */
static int run_program(const char *const *argv)
{
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
        enter_filter(SECRET);
        (void)execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    int status = wait_for(child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

#define RUN(...) run_program((const char *const[]){__VA_ARGS__, NULL})

static void need_program(const char *name)
{
    char test[256];
    (void)snprintf(test, sizeof test, "command -v %s >/dev/null 2>&1", name);
    if (system(test) != 0)
        SKIP("%s is not installed", name);
}

TEST(true_runs)
{
    CHECK_INT(RUN("/bin/true"), 0);
    CHECK_INT(RUN("/bin/false"), 1);
}

TEST(bash_runs_pipes_jobs_and_substitutions)
{
    need_program("bash");
    CHECK_INT(RUN("bash", "-c",
                  "set -e -o pipefail; seq 1000 | sort -n | tail -1 | grep -q 1000;"
                  "sleep 0 & wait $!; test \"$(diff <(echo a) <(echo a); echo $?)\" = 0;"
                  "ls -lR /etc >/dev/null 2>&1; stat / >/dev/null; nproc >/dev/null"),
              0);
}

TEST(python_runs_threads_processes_and_sockets)
{
    need_program("python3");
    CHECK_INT(RUN("python3", "-c",
                  "import threading, subprocess, socket, multiprocessing, asyncio, tempfile, os, "
                  "mmap, select\n"
                  "t = [threading.Thread(target=sum, args=(range(1000),)) for _ in range(8)]\n"
                  "[x.start() for x in t]; [x.join() for x in t]\n"
                  "assert subprocess.run(['echo', 'hi'], capture_output=True).stdout == b'hi\\n'\n"
                  "s = socket.create_server(('127.0.0.1', 0))\n"
                  "c = socket.create_connection(s.getsockname()); c.send(b'x')\n"
                  "assert s.accept()[0].recv(1) == b'x'\n"
                  "asyncio.run(asyncio.sleep(0))\n"
                  "p = multiprocessing.Process(target=print); p.start(); p.join(); assert "
                  "p.exitcode == 0\n"
                  "a, b = socket.socketpair(); m = mmap.mmap(-1, 4096); socket.if_nameindex()\n"
                  "with tempfile.TemporaryDirectory() as d: os.mkfifo(d + '/f'); os.chown(d, "
                  "os.getuid(), -1)\n"),
              0);
}

TEST(node_runs)
{
    need_program("node");
    CHECK_INT(RUN("node", "-e",
                  "const {Worker} = require('worker_threads');"
                  "require('fs').readdirSync('/');"
                  "require('child_process').execFileSync('true');"
                  "new Worker('1', {eval: true}).on('exit', c => process.exit(c))"),
              0);
}

TEST(a_compiler_runs)
{
    need_program("gcc");
    CHECK_INT(RUN("bash", "-c", "echo 'int main(void){return 0;}' | gcc -x c - -o /dev/null"), 0);
}

TEST(a_tracer_runs)
{
    need_program("strace");
    CHECK_INT(RUN("strace", "-f", "-o", "/dev/null", "/bin/true"), 0);
}

static int compare_numbers(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double microseconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

TEST(the_time_to_load_is_printed)
{
    enum { ROUNDS = 200 };
    double *took = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(took != MAP_FAILED);
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            double start = microseconds();
            int result = seccomp_load(SECRET);
            took[i] = microseconds() - start;
            _exit(result < 0 ? LOAD_FAILED : 0);
        }
        CHECK_INT(wait_for(child), 0);
    }
    qsort(took, ROUNDS, sizeof *took, compare_numbers);
    printf("# load: p50 %.1f us, min %.1f us\n", took[ROUNDS / 2], took[0]);
    (void)munmap(took, 4096);
}
