/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks from inside a plain box on the kernel and on what it shows of the host. */
#include "threat_fixture.h"

#include <fnmatch.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/utsname.h>
#include <sys/wait.h>

extern const char golden_blob_start[] __attribute__((visibility("hidden")));

/* CVE-2017-5226, CVE-2019-10063, CVE-2023-28100. */
BOX_TEST(terminal_input_cannot_be_faked_in_a_box)
{
    static const char *const argv[] = {"/attacker", "terminal", NULL};
    struct box *box = launch_attacker();
    struct threat_command command = {.directory = "/", .argv = argv, .output = OUTPUT_TTY};
    struct outcome outcome = run_command(box, &command);
    CHECK_STR(outcome.output, "");
    CHECK_INT(outcome.exit.code, 0);
    command.user = "guest";
    outcome = run_command(box, &command);
    CHECK_STR(outcome.output, "");
    CHECK_INT(outcome.exit.code, 0);
}

BOX_TEST(a_crash_is_told_by_its_signal)
{
    struct box *box = launch_attacker();
    struct outcome outcome = RUN(box, "/attacker", "crash");
    CHECK_INT(outcome.exit.signal, SIGSEGV);
    CHECK_INT(outcome.exit.code, 128 + SIGSEGV);
}

static void write_core_pattern(const char *text)
{
    autofd fd = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* A process of the host crashes; its core goes where core_pattern says. */
static void crash_outside(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit core = {RLIM_INFINITY, RLIM_INFINITY};
        (void)setrlimit(RLIMIT_CORE, &core);
        (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); // launches have taken it away
        (void)raise(SIGSEGV);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* The whole machine's setting: changed only where the machine is the test's own. */
BOX_TEST(a_crash_does_not_reach_the_hosts_core_handler)
{
    char before[256], pattern[200], text[300], seen_text[256] = "";
    struct error err = {0};
    if (!is_in_vm())
        SKIP("core_pattern is changed in the virtual machine only");
    CHECK_OK(fd_read_knob(AT_FDCWD, "/proc/sys/kernel/core_pattern", before, sizeof before, &err),
             err);
    const char *seen = place("core-seen");
    const char *script = place("core-handler");
    (void)snprintf(text, sizeof text, "#!/bin/sh\necho $1 >> %s\n", seen);
    put_file(AT_FDCWD, script, text, 0755);
    (void)snprintf(pattern, sizeof pattern, "|%s %%e", script);
    struct box *box = launch_attacker();
    write_core_pattern(pattern);
    struct outcome first = RUN(box, "/attacker", "crash");
    struct outcome second = RUN_AS(box, "guest", "/attacker", "core-dump");
    crash_outside();
    write_core_pattern(before);
    AWAIT(fd_read_knob(AT_FDCWD, seen, seen_text, sizeof seen_text, &err) == 0 && *seen_text);
    CHECK_INT(first.exit.signal, SIGSEGV);
    CHECK_INT(second.exit.code, 0);
    CHECK(!strstr(seen_text, "attacker"));
    CHECK(!strchr(seen_text, '\n')); // one crash: the host's own
}

/* Stops it where it waits in a call. */
static void stop_in_a_call(pid_t pid, struct user_regs_struct *registers)
{
    int status = 0;

    CHECK(ptrace(PTRACE_SEIZE, pid, 0, 0) == 0);
    for (;;) {
        CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
        CHECK(waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status));
        CHECK(ptrace(PTRACE_GETREGS, pid, 0, registers) == 0);
        if ((long)registers->orig_rax >= 0)
            return;
        CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0); // it was at work
    }
}

/* Makes PID 1 open its memory to debuggers, as the host's own debugger can: one more call behind the one that it waits in. */
static void open_memory(pid_t pid)
{
    struct user_regs_struct before, now;
    int status = 0;

    stop_in_a_call(pid, &before);
    now = before;
    now.rip -= 2; // the instruction that made the call
    now.rax = SYS_prctl;
    now.orig_rax = (unsigned long long)-1; // else the kernel would do that one again
    now.rdi = PR_SET_DUMPABLE;
    now.rsi = 1;
    CHECK(ptrace(PTRACE_SETREGS, pid, 0, &now) == 0);
    for (unsigned i = 0; i < 16 && now.rip != before.rip; i++) { // a stop may come before the step
        CHECK(ptrace(PTRACE_SINGLESTEP, pid, 0, 0) == 0);
        CHECK(waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status));
        CHECK(ptrace(PTRACE_GETREGS, pid, 0, &now) == 0);
    }
    CHECK_INT((long)now.rax, 0);
    CHECK(ptrace(PTRACE_SETREGS, pid, 0, &before) == 0 && ptrace(PTRACE_DETACH, pid, 0, 0) == 0);
}

/* What fs.suid_dumpable=1 does for a moment whenever a process is started. */
BOX_TEST(pid_1_cannot_be_traced_while_its_memory_is_open)
{
    static const char *const argv[] = {"/attacker", "first-open", NULL};
    struct box *box = launch_attacker();
    struct error err = {0};
    char text[4096] = "";
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    autofd reader = ends[0];
    autofd writer = ends[1];
    struct process_spec spec = {.id = next_id(),
                                .command.argv = argv,
                                .command.directory = "/",
                                .stdin_fd = -1,
                                .stdout_fd = writer,
                                .stderr_fd = writer};
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
    closep(&writer);
    CHECK(read(reader, text, sizeof text - 1) ==
          (ssize_t)strlen("waiting\n")); // starting it closed the memory
    open_memory(box_pid(box));
    ssize_t got = read(reader, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    CHECK_STR(text, "");
    check_serves(box);
}

/* With this setting whoever changes its user becomes readable, and PID 1 does that for every
 * process it starts. */
BOX_TEST(pid_1_stays_unreadable_where_the_host_dumps_everything)
{
    struct error err = {0};
    if (!is_in_vm())
        SKIP("fs.suid_dumpable is changed in the virtual machine only");
    CHECK_OK(fd_write_knob(AT_FDCWD, "/proc/sys/fs/suid_dumpable", "1", &err), err);
    struct box *box = launch_attacker();
    int conv = -1;
    CHECK_OK(box_files(box, "guest", "/", &conv, &err), err);
    autofd talk = conv;
    CHECK_OK(files_stat(talk, "/", false, NULL, NULL, &err), err);
    struct outcome user = RUN_AS(box, "guest", "/attacker", "pid1-read");
    struct outcome root = RUN(box, "/attacker", "pid1-read");
    struct outcome reach = RUN(box, "/attacker", "pid1-trace");
    CHECK_OK(fd_write_knob(AT_FDCWD, "/proc/sys/fs/suid_dumpable", "0", &err), err);
    CHECK_STR(user.output, "");
    CHECK_STR(root.output, "");
    CHECK_STR(reach.output, "");
}

/* What looks like a control group is a copy: writing to it changes the box's own file and no limit.
 */
BOX_TEST(limits_that_a_guest_sees_are_not_the_limits)
{
    struct box_spec spec = spec_with(NULL);
    spec.limits = (struct limits){.memory_bytes = 64 << 20, .max_processes = 32};
    struct box *box = launch(&spec);
    struct outcome outcome = RUN(box, "/attacker", "cat", "/sys/fs/cgroup/memory.max");
    CHECK_STR(outcome.output, "67108864\n");
    ATTACK(box, "storm", "/sys/fs/cgroup/memory.max");
    outcome = RUN(box, "/attacker", "eat-memory", "heap");
    CHECK_INT(outcome.exit.cause, CAUSE_MEMORY);
}

static void check_absent(const char *text, const char *secret, const char *where)
{
    if (*secret && strstr(text, secret))
        test_fail(__FILE__, __LINE__, "'%s' is in %s: %.600s", secret, where, text);
}

static void check_shows_nothing(struct box *box)
{
    static const char *const files[] = {"/proc/self/mountinfo",
                                        "/proc/self/mounts",
                                        "/proc/mounts",
                                        "/proc/self/mountstats",
                                        "/proc/1/mountinfo",
                                        "/proc/self/cgroup",
                                        "/proc/1/cgroup",
                                        "/proc/1/cmdline",
                                        "/proc/swaps",
                                        "/proc/cmdline",
                                        "/proc/sys/kernel/hostname",
                                        "/proc/self/environ",
                                        "/proc/net/unix",
                                        "/proc/locks"};
    struct utsname host;
    const char *home = getenv("HOME");
    char own[256] = "";
    CHECK(uname(&host) == 0);
    (void)!readlink("/proc/self/cwd", own, sizeof own - 1);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        struct outcome outcome = RUN(box, "/attacker", "cat", files[i]);
        CHECK_INT(outcome.exit.code, 0);
        check_absent(outcome.output, "burrow-test-", files[i]);
        check_absent(outcome.output, "/var/tmp", files[i]);
        check_absent(outcome.output, strlen(own) > 1 ? own : "", files[i]);
        if (strlen(host.nodename) > 3 && strcmp(host.nodename, "(none)") != 0)
            check_absent(outcome.output, host.nodename, files[i]);
        if (home && strlen(home) > 5 && strcmp(files[i], "/proc/self/environ") != 0)
            check_absent(outcome.output, home, files[i]);
        if (strstr(files[i], "cgroup"))
            check_absent(outcome.output, "..", files[i]);
    }
}

static bool is_golden(const char *path)
{
    char list[16384];
    CHECK(strlen(golden_blob_start) < sizeof list);
    (void)strcpy(list, golden_blob_start);
    char *rest = list;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *word = strsep(&line, " \t#");
        if (*word && fnmatch(word, path, 0) == 0)
            return true;
    }
    return false;
}

static void check_golden(struct box *box, const char *user)
{
    struct outcome outcome = RUN_AS(box, user, "/attacker", "readable");
    unsigned strange = 0;
    CHECK_INT(outcome.exit.code, 0);
    CHECK(strstr(outcome.output, "/proc/self/status\n"));
    char *rest = outcome.output;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (*line && !is_golden(line)) {
            if (strange++ < 20)
                printf("# readable: %s\n", line);
        }
    }
    if (strange > 0)
        test_fail(__FILE__, __LINE__,
                  "%u kernel files are readable that golden-proc.txt does not name", strange);
}

BOX_TEST(no_path_or_name_of_the_host_is_shown)
{
    check_shows_nothing(launch_attacker());
    engine = open_engine(&(struct engine_options){.is_long_lived = true});
    check_shows_nothing(launch_attacker());
}

/* Engines that stay launch from a mount namespace they keep, whose root lies below the box's. */
BOX_TEST(no_way_up_leads_out_of_the_root)
{
    ATTACK(launch_attacker(), "climb");
    engine = open_engine(&(struct engine_options){.is_long_lived = true});
    struct box *box = launch_attacker();
    ATTACK(box, "climb");
    ATTACK(box, "user-namespace");
    ATTACK(box, "mount");
    ATTACK(box, "mount-table");
    check_golden(box, NULL);
}

BOX_TEST(only_known_kernel_files_are_readable)
{
    struct box_spec spec = spec_with(NULL);
    check_golden(launch_attacker(), "guest");
    check_golden(launch_attacker(), NULL);
    spec.limits = (struct limits){.memory_bytes = 64 << 20, .cpu_millicores = 500};
    check_golden(launch(&spec), NULL);
}

NOTHING_IS_LEFT_TEST
