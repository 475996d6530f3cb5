/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/cli/relay.c and src/cli/pump.c: real pipes, real child processes on both sides. */
#include "base/auto.h"
#include "base/fd.h"
#include "cli/relay.h"
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MIB ((size_t)1 << 20)
#define PERIOD ((size_t)1048573) // a prime: a byte lost or doubled shifts all that follows

static char pattern[2 * PERIOD];

__attribute__((constructor)) static void make_pattern(void)
{
    uint64_t state = 88172645463325252ULL;
    for (size_t i = 0; i < PERIOD; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        pattern[i] = pattern[i + PERIOD] = (char)state;
    }
}

/* Writes `total` bytes of the pattern in pieces of up to `piece`; for child processes. */
static void write_pattern(int fd, size_t total, size_t piece)
{
    for (size_t at = 0; at < total;) {
        size_t length = total - at < piece ? total - at : piece;
        if (fd_write_all(fd, pattern + at % PERIOD, length) < 0)
            _exit(3);
        at += length;
    }
}

/* Reads to the end; true when it is exactly `total` bytes of the pattern. */
static bool read_pattern(int fd, size_t total, size_t piece)
{
    static char got[PERIOD];
    size_t at = 0;
    ssize_t length;
    while ((length = read(fd, got, piece)) > 0) {
        if (memcmp(got, pattern + at % PERIOD, (size_t)length) != 0)
            return false;
        at += (size_t)length;
    }
    return length == 0 && at == total;
}

/* Without the fd that a test lends its child on purpose. */
static void close_from(int first)
{
    for (int fd = first; fd < 64; fd++)
        (void)close(fd);
}

/* ---- a command behind a relay ---- */

struct command {
    struct relay relay;
    int in[2], out[2], err[2]; // the command's pipes; the relay has in[1], out[0], err[0]
    pid_t pid;
    int pidfd;
    int status;
    int signals; // how many on_signal saw
};

static int on_exit_event(void *context, struct error *err)
{
    struct command *command = context;
    if (waitpid(command->pid, &command->status, 0) != command->pid)
        return error_sys(err, "waitpid");
    command->pid = 0;
    return 1;
}

static int on_signal(void *context, int signal, struct error *err)
{
    struct command *command = context;
    command->signals++;
    return kill(command->pid, signal) < 0 ? error_sys(err, "kill") : 0;
}

static void command_prepare(struct command *command)
{
    struct error err = {0};

    *command = (struct command){.pidfd = -1};
    CHECK_OK(relay_init(&command->relay, &err), err);
    CHECK(pipe2(command->in, O_CLOEXEC) == 0 && pipe2(command->out, O_CLOEXEC) == 0 &&
          pipe2(command->err, O_CLOEXEC) == 0);
    (void)fcntl(command->in[1], F_SETFL, O_NONBLOCK);
    (void)fcntl(command->out[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(command->err[0], F_SETFL, O_NONBLOCK);
}

/* 0 in the child, whose stdin, stdout and stderr are the pipes; it has to _exit. */
static pid_t command_fork(struct command *command)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGPIPE, SIG_DFL);
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)dup2(command->in[0], 0);
        (void)dup2(command->out[1], 1);
        (void)dup2(command->err[1], 2);
        close_from(3);
        return 0;
    }
    command->pid = pid;
    command->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    CHECK(command->pidfd >= 0);
    closep(&command->in[0]);
    closep(&command->out[1]);
    closep(&command->err[1]);
    return pid;
}

/* The caller's side: stdin from `in` (-1: none), output to `out` and `err` (-1: the command's is
 * closed). */
static void command_connect(struct command *command, int in, int out, int err)
{
    struct relay *relay = &command->relay;
    if (in >= 0) {
        pump_init(&relay->in, in, command->in[1], "standard input");
        relay->in.owns_to = true;
    } else {
        (void)close(command->in[1]);
    }
    pump_init(&relay->out[0], command->out[0], out, "standard output");
    pump_init(&relay->out[1], command->err[0], err, "standard error");
    relay->out[0].owns_from = relay->out[1].owns_from = true;
    relay->event_fd = command->pidfd;
    relay->on_event = on_exit_event;
    relay->on_signal = on_signal;
    relay->context = command;
}

static void command_relay(struct command *command)
{
    struct error err = {0};
    CHECK_OK(relay_run(&command->relay, &err), err);
}

static void command_clear(struct command *command)
{
    relay_clear(&command->relay);
    closep(&command->pidfd);
}

/* A process on the caller's side that reads the pattern; its exit says whether all of it came. */
static pid_t start_reader(int from, size_t total, size_t piece)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)dup2(from, 0);
        close_from(3); // a write end kept here would hold up somebody's end of file
        _exit(read_pattern(0, total, piece) ? 0 : 1);
    }
    return pid;
}

static int exit_of(pid_t pid)
{
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Output of `total` bytes to a pipe, written and read in pieces of these sizes. */
static void relay_to_pipe(size_t total, size_t written, size_t read_size, int pipe_flags)
{
    struct command command;
    int sink[2];

    command_prepare(&command);
    CHECK(pipe2(sink, O_CLOEXEC) == 0);
    (void)fcntl(sink[1], F_SETFL, pipe_flags);
    pid_t reader = start_reader(sink[0], total, read_size);
    (void)close(sink[0]);
    if (command_fork(&command) == 0) {
        write_pattern(1, total, written);
        _exit(7);
    }
    command_connect(&command, -1, sink[1], -1);
    command_relay(&command);
    CHECK_INT(fcntl(sink[1], F_GETFL) & O_NONBLOCK, pipe_flags & O_NONBLOCK);
    CHECK_INT(command.relay.out[0].bytes, total);
    command_clear(&command);
    (void)close(sink[1]);
    CHECK_INT(WEXITSTATUS(command.status), 7);
    CHECK_INT(exit_of(reader), 0);
}

TEST(a_quarter_of_a_gibibyte_goes_through_a_pipe_byte_for_byte)
{
    relay_to_pipe(256 * MIB, 64 << 10, MIB / 2, 0);
}

TEST(a_slow_reader_loses_nothing)
{
    relay_to_pipe(4 * MIB, 64 << 10, 777, 0);
}

TEST(small_odd_writes_arrive_whole)
{
    relay_to_pipe(3 * MIB, 13, 64 << 10, 0);
}

TEST(a_pipe_that_others_made_non_blocking_loses_nothing)
{
    relay_to_pipe(8 * MIB, 64 << 10, 4096, O_NONBLOCK);
}

/* Output of 8 MiB to a file opened so. */
static void relay_to_file(int flags)
{
    struct command command;
    char path[] = "/tmp/burrow-test-relay.XXXXXX";
    autofd file = mkostemp(path, O_CLOEXEC | flags);
    CHECK(file >= 0);
    (void)unlink(path);
    command_prepare(&command);
    if (command_fork(&command) == 0) {
        write_pattern(1, 8 * MIB, 100000);
        _exit(0);
    }
    command_connect(&command, -1, file, -1);
    command_relay(&command);
    command_clear(&command);
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    CHECK(read_pattern(file, 8 * MIB, 65536));
}

TEST(a_file_gets_every_byte)
{
    relay_to_file(0);
}

TEST(a_file_opened_for_appending_gets_every_byte)
{
    relay_to_file(O_APPEND);
}

TEST(a_socket_gets_every_byte)
{
    struct command command;
    int ends[2];

    command_prepare(&command);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    pid_t reader = start_reader(ends[0], 16 * MIB, 10000);
    (void)close(ends[0]);
    if (command_fork(&command) == 0) {
        write_pattern(1, 16 * MIB, 65536);
        _exit(0);
    }
    command_connect(&command, -1, ends[1], -1);
    command_relay(&command);
    command_clear(&command);
    (void)close(ends[1]);
    CHECK_INT(exit_of(reader), 0);
}

TEST(stdout_and_stderr_stay_apart)
{
    struct command command;
    int out[2], err[2];

    command_prepare(&command);
    CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
    pid_t out_reader = start_reader(out[0], 4 * MIB, 5000);
    (void)close(out[0]);
    pid_t err_reader = start_reader(err[0], 2 * MIB, 300);
    (void)close(err[0]);
    if (command_fork(&command) == 0) {
        if (fork() == 0) {
            write_pattern(2, 2 * MIB, 999);
            _exit(0);
        }
        write_pattern(1, 4 * MIB, 4096);
        (void)wait(NULL);
        _exit(0);
    }
    command_connect(&command, -1, out[1], err[1]);
    command_relay(&command);
    command_clear(&command);
    (void)close(out[1]);
    (void)close(err[1]);
    CHECK_INT(exit_of(out_reader), 0);
    CHECK_INT(exit_of(err_reader), 0);
}

TEST(a_command_whose_reader_has_gone_meets_a_broken_pipe)
{
    struct command command;
    int sink[2];

    command_prepare(&command);
    CHECK(pipe2(sink, O_CLOEXEC) == 0);
    (void)close(sink[0]);
    if (command_fork(&command) == 0) {
        for (;;)
            write_pattern(1, MIB, 65536);
    }
    command_connect(&command, -1, sink[1], -1);
    command_relay(&command);
    command_clear(&command);
    (void)close(sink[1]);
    CHECK(WIFSIGNALED(command.status));
    CHECK_INT(WTERMSIG(command.status), SIGPIPE);
}

TEST(a_full_disk_is_told)
{
    struct command command;
    struct error err = {0};
    autofd full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CHECK(full >= 0);
    command_prepare(&command);
    if (command_fork(&command) == 0) {
        for (;;)
            write_pattern(1, MIB, 65536);
    }
    command_connect(&command, -1, full, -1);
    CHECK(relay_run(&command.relay, &err) < 0);
    CHECK_STR(err.text, "relay standard output: No space left on device");
    command_clear(&command);
    CHECK_INT(WTERMSIG(command.status), SIGPIPE);
}

/* `total` bytes go in from `source` and come back out through a command that copies. */
static void relay_echo(int source, size_t total)
{
    struct command command;
    int sink[2];

    command_prepare(&command);
    CHECK(pipe2(sink, O_CLOEXEC) == 0);
    pid_t reader = start_reader(sink[0], total, 65536);
    (void)close(sink[0]);
    if (command_fork(&command) == 0) {
        static char piece[65536];
        ssize_t got;
        while ((got = read(0, piece, sizeof piece)) > 0) {
            if (fd_write_all(1, piece, (size_t)got) < 0)
                _exit(3);
        }
        _exit(got == 0 ? 0 : 4);
    }
    command_connect(&command, source, sink[1], -1);
    command_relay(&command);
    command_clear(&command);
    (void)close(sink[1]);
    CHECK_INT(command.status, 0);
    CHECK_INT(exit_of(reader), 0);
}

TEST(stdin_from_a_pipe_reaches_the_command_and_ends)
{
    int source[2];
    CHECK(pipe2(source, O_CLOEXEC) == 0);
    pid_t writer = fork();
    if (writer == 0) {
        (void)close(source[0]);
        write_pattern(source[1], 64 * MIB, 50000);
        _exit(0);
    }
    (void)close(source[1]);
    relay_echo(source[0], 64 * MIB);
    CHECK_INT(fcntl(source[0], F_GETFL) & O_NONBLOCK, 0);
    (void)close(source[0]);
    CHECK_INT(exit_of(writer), 0);
}

TEST(stdin_from_a_file_reaches_the_command_and_ends)
{
    autofd file = memfd_create("stdin", MFD_CLOEXEC);
    CHECK(file >= 0);
    write_pattern(file, 20 * MIB, MIB / 2);
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    relay_echo(file, 20 * MIB);
}

TEST(stdin_from_a_socket_reaches_the_command_and_ends)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    pid_t writer = fork();
    if (writer == 0) {
        (void)close(ends[0]);
        write_pattern(ends[1], 4 * MIB, 50000);
        _exit(0);
    }
    (void)close(ends[1]);
    relay_echo(ends[0], 4 * MIB);
    (void)close(ends[0]);
    CHECK_INT(exit_of(writer), 0);
}

TEST(a_command_that_never_reads_its_stdin_still_ends)
{
    struct command command;
    int source[2];

    CHECK(pipe2(source, O_CLOEXEC) == 0); // stays open and full
    (void)fcntl(source[1], F_SETFL, O_NONBLOCK);
    while (write(source[1], pattern, 65536) > 0)
        continue;
    command_prepare(&command);
    if (command_fork(&command) == 0)
        _exit(9);
    command_connect(&command, source[0], -1, -1);
    command_relay(&command);
    command_clear(&command);
    (void)close(source[0]);
    (void)close(source[1]);
    CHECK_INT(WEXITSTATUS(command.status), 9);
}

TEST(a_command_ends_though_its_stdin_stays_silent)
{
    struct command command;
    int source[2];

    CHECK(pipe2(source, O_CLOEXEC) == 0);
    command_prepare(&command);
    if (command_fork(&command) == 0)
        _exit(0);
    command_connect(&command, source[0], -1, -1);
    command_relay(&command);
    command_clear(&command);
    (void)close(source[0]);
    (void)close(source[1]);
    CHECK_INT(command.status, 0);
}

TEST(a_child_that_keeps_writing_does_not_hold_up_the_end)
{
    struct command command;
    int sink[2], pids[2];
    pid_t grandchild = 0;

    CHECK(pipe2(sink, O_CLOEXEC) == 0 && pipe2(pids, O_CLOEXEC) == 0);
    pid_t reader = fork();
    if (reader == 0) {
        static char got[65536];
        (void)close(sink[1]);
        while (read(sink[0], got, sizeof got) > 0)
            continue;
        _exit(0);
    }
    (void)close(sink[0]);
    command_prepare(&command);
    (void)fcntl(pids[1], F_SETFD, 0);
    int report = fcntl(pids[1], F_DUPFD, 100);
    if (command_fork(&command) == 0) {
        pid_t forked = fork();
        if (forked == 0) {
            for (;;)
                write_pattern(1, MIB, 65536);
        }
        _exit(write(report, &forked, sizeof forked) == sizeof forked ? 5 : 6);
    }
    command_connect(&command, -1, sink[1], -1);
    command_relay(&command);
    command_clear(&command);
    (void)close(sink[1]);
    CHECK(read(pids[0], &grandchild, sizeof grandchild) == sizeof grandchild);
    (void)kill(grandchild, SIGKILL); // it met a broken pipe already
    (void)close(report);
    (void)close(pids[0]);
    (void)close(pids[1]);
    CHECK_INT(WEXITSTATUS(command.status), 5);
    CHECK_INT(exit_of(reader), 0);
}

/* Runs a command that writes `pieces`, each only after the relay took the one before. */
static void relay_pieces(struct command *command, const char *const *pieces, int out)
{
    if (command_fork(command) == 0) {
        for (; *pieces; pieces++) {
            int waiting = 1;
            if (fd_write_all(1, *pieces, strlen(*pieces)) < 0)
                _exit(3);
            while (ioctl(1, FIONREAD, &waiting) == 0 && waiting > 0)
                (void)sched_yield();
        }
        _exit(0);
    }
    command_connect(command, -1, out, -1);
}

TEST(timestamps_begin_each_line_however_it_was_cut)
{
    static const char *const pieces[] = {"one\ntw", "o", "\n", "\nlast", NULL};
    static const char *const lines[] = {"one\n", "two\n", "\n", "last"};
    struct command command;
    autofd file = memfd_create("out", MFD_CLOEXEC);
    char got[1000] = "";

    command_prepare(&command);
    relay_pieces(&command, pieces, file);
    command.relay.out[0].shape = PUMP_STAMPED;
    command_relay(&command);
    command_clear(&command);
    CHECK(pread(file, got, sizeof got - 1, 0) > 0);
    const char *at = got;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        CHECK(strlen(at) >= 25 && at[10] == 'T' && at[19] == '.' && at[23] == 'Z' && at[24] == ' ');
        at += 25;
        CHECK(strncmp(at, lines[i], strlen(lines[i])) == 0);
        at += strlen(lines[i]);
    }
    CHECK_STR(at, "");
}

TEST(captured_output_is_bounded_and_the_rest_only_counted)
{
    struct command command;

    command_prepare(&command);
    if (command_fork(&command) == 0) {
        write_pattern(1, 5 * MIB, 65536);
        _exit(fd_write_all(2, "a\0b\xff", 4) < 0);
    }
    command_connect(&command, -1, -1, -1);
    for (int i = 0; i < 2; i++) {
        command.relay.out[i].shape = PUMP_CAPTURED;
        command.relay.out[i].cap_bytes = MIB;
    }
    command_relay(&command);
    struct pump *out = &command.relay.out[0], *err = &command.relay.out[1];
    CHECK_INT(command.status, 0);
    CHECK_INT(out->bytes, 5 * MIB);
    CHECK(out->is_truncated && !err->is_truncated);
    CHECK_INT(out->held.length, MIB);
    CHECK(memcmp(out->held.data, pattern, MIB) == 0);
    CHECK_INT(err->held.length, 4);
    CHECK(memcmp(err->held.data, "a\0b\xff", 4) == 0);
    command_clear(&command);
}

TEST(past_its_cap_output_is_dropped_and_the_command_goes_on)
{
    struct command command;
    int sink[2];

    command_prepare(&command);
    CHECK(pipe2(sink, O_CLOEXEC) == 0); // nobody reads until the command has ended
    if (command_fork(&command) == 0) {
        write_pattern(1, 5 * MIB, 65536);
        _exit(0);
    }
    command_connect(&command, -1, sink[1], -1);
    command.relay.out[0].cap_bytes = 1000;
    command_relay(&command);
    CHECK(command.relay.out[0].is_truncated);
    CHECK_INT(command.relay.out[0].bytes, 5 * MIB);
    command_clear(&command);
    (void)close(sink[1]);
    CHECK_INT(command.status, 0);
    CHECK(read_pattern(sink[0], 1000, 65536));
    (void)close(sink[0]);
}

TEST(exactly_the_cap_is_not_truncated)
{
    struct command command;
    autofd file = memfd_create("out", MFD_CLOEXEC);

    command_prepare(&command);
    if (command_fork(&command) == 0) {
        write_pattern(1, 1000, 1000);
        _exit(0);
    }
    command_connect(&command, -1, file, -1);
    command.relay.out[0].cap_bytes = 1000;
    command_relay(&command);
    CHECK(!command.relay.out[0].is_truncated);
    command_clear(&command);
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    CHECK(read_pattern(file, 1000, 65536));
}

TEST(signals_reach_the_command)
{
    static const int sent[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < ARRAY_SIZE(sent); i++) {
        struct command command;
        command_prepare(&command);
        if (command_fork(&command) == 0) {
            for (;;)
                (void)pause();
        }
        command_connect(&command, -1, -1, -1);
        (void)kill(getpid(), sent[i]);
        command_relay(&command);
        command_clear(&command);
        CHECK_INT(command.signals, 1);
        CHECK(WIFSIGNALED(command.status));
        CHECK_INT(WTERMSIG(command.status), sent[i]);
    }
}

TEST(an_ignored_signal_stays_ignored)
{
    struct command command;
    (void)signal(SIGHUP, SIG_IGN);
    command_prepare(&command);
    if (command_fork(&command) == 0)
        _exit(0);
    command_connect(&command, -1, -1, -1);
    (void)kill(getpid(), SIGHUP);
    command_relay(&command);
    command_clear(&command);
    (void)signal(SIGHUP, SIG_DFL);
    CHECK_INT(command.signals, 0);
    CHECK_INT(command.status, 0);
}

TEST(a_signal_after_the_end_drops_what_nobody_reads)
{
    struct command command;
    int sink[2];

    CHECK(pipe2(sink, O_CLOEXEC) == 0); // never read
    command_prepare(&command);
    (void)fcntl(command.out[1], F_SETPIPE_SZ, MIB);
    if (command_fork(&command) == 0) {
        write_pattern(1, MIB / 2, 65536);
        (void)kill(getppid(), SIGWINCH);
        _exit(0);
    }
    command_connect(&command, -1, sink[1], -1);
    pid_t killer = fork();
    if (killer == 0) {
        // the command's end, as seen from outside: its pipe has no writer any more
        struct pollfd out = {.fd = command.out[0]};
        while (!(out.revents & POLLHUP))
            (void)poll(&out, 1, -1);
        for (;;) { // before the relay saw the end the signal goes nowhere, so again
            (void)kill(getppid(), SIGTERM);
            (void)poll(NULL, 0, 5);
        }
    }
    command.relay.on_signal = NULL;
    command_relay(&command);
    (void)kill(killer, SIGKILL);
    (void)waitpid(killer, NULL, 0);
    sigset_t pending; // one may have come since
    (void)signal(SIGTERM, SIG_IGN);
    command_clear(&command);
    (void)signal(SIGTERM, SIG_DFL);
    (void)sigpending(&pending);
    CHECK(!sigismember(&pending, SIGTERM));
    (void)close(sink[0]);
    (void)close(sink[1]);
    CHECK_INT(command.status, 0);
}

TEST(the_relay_leaves_signals_and_fds_as_they_were)
{
    sigset_t before, after;
    struct command command;
    int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)close(lowest);
    (void)sigprocmask(SIG_SETMASK, NULL, &before);
    command_prepare(&command);
    if (command_fork(&command) == 0)
        _exit(0);
    command_connect(&command, -1, 1, 2);
    command_relay(&command);
    command_clear(&command);
    (void)sigprocmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < 32; signal++)
        CHECK_INT(sigismember(&after, signal), sigismember(&before, signal));
    int again = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(again);
    CHECK_INT(again, lowest);
}
