/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/cli/terminal.c, and the relay between two terminals: the caller's and the command's. */
#include "base/auto.h"
#include "base/fd.h"
#include "cli/relay.h"
#include "cli/terminal.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A terminal: what a person types into is `master`, what a program holds is `slave`. */
static void open_terminal(int *master, int *slave)
{
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(*master >= 0 && grantpt(*master) == 0 && unlockpt(*master) == 0);
    *slave = open(ptsname(*master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(*slave >= 0);
}

TEST(a_raw_terminal_is_restored_exactly)
{
    autofd master = -1;
    autofd slave = -1;
    struct termios before, raw, after;
    struct error err = {0};

    open_terminal(&master, &slave);
    CHECK(tcgetattr(slave, &before) == 0);
    {
        autoterminal terminal = {0};
        CHECK_OK(terminal_make_raw(&terminal, slave, &err), err);
        CHECK(tcgetattr(slave, &raw) == 0);
        CHECK(!(raw.c_lflag & (ICANON | ECHO | ISIG)));
    }
    CHECK(tcgetattr(slave, &after) == 0);
    CHECK(before.c_lflag == after.c_lflag && before.c_iflag == after.c_iflag &&
          before.c_oflag == after.c_oflag && before.c_cflag == after.c_cflag);
}

TEST(what_is_no_terminal_is_left_alone)
{
    autoterminal terminal = {0};
    struct error err = {0};
    autofd null = open("/dev/null", O_RDWR | O_CLOEXEC);
    uint16_t rows = 0, cols = 0;

    CHECK_OK(terminal_make_raw(&terminal, null, &err), err);
    CHECK(!terminal.is_raw);
    terminal_size(null, &rows, &cols);
    CHECK_INT(rows, 24);
    CHECK_INT(cols, 80);
}

TEST(a_terminal_tells_its_size)
{
    autofd master = -1;
    autofd slave = -1;
    struct winsize size = {.ws_row = 50, .ws_col = 132};
    uint16_t rows = 0, cols = 0;

    open_terminal(&master, &slave);
    CHECK(ioctl(master, TIOCSWINSZ, &size) == 0);
    terminal_size(slave, &rows, &cols);
    CHECK_INT(rows, 50);
    CHECK_INT(cols, 132);
}

static pid_t child;
static int child_status;

static int on_exit_event(void *context, struct error *err)
{
    CHECK(waitpid(child, &child_status, 0) == child);
    return 1;
}

/* A command on a terminal of its own that answers what it reads, until its end of file. */
static int start_on_terminal(int *pidfd)
{
    int master, slave;
    open_terminal(&master, &slave);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        static char line[100];
        ssize_t got;
        (void)setsid();
        (void)ioctl(slave, TIOCSCTTY, 0);
        (void)dup2(slave, 0);
        for (int fd = 3; fd < 64; fd++)
            (void)close(fd); // the pipe whose end of file is waited for is among them
        while ((got = read(0, line, sizeof line)) > 0)
            (void)dprintf(0, "[%.*s]\n", (int)strcspn(line, "\n"), line);
        _exit(got == 0 ? 0 : 3);
    }
    (void)close(slave);
    (void)fcntl(master, F_SETFL, O_NONBLOCK);
    *pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    CHECK(*pidfd >= 0);
    return master;
}

TEST(bytes_go_both_ways_between_terminals_and_stdins_end_is_typed)
{
    struct relay relay;
    struct error err = {0};
    autofd pidfd = -1;
    autofd out = memfd_create("out", 0);
    int source[2];
    char got[1000] = "";

    CHECK(pipe2(source, O_CLOEXEC) == 0);
    CHECK_OK(relay_init(&relay, &err), err);
    int master = start_on_terminal(&pidfd);
    pump_init(&relay.in, source[0], fcntl(master, F_DUPFD_CLOEXEC, 3), "standard input");
    relay.in.owns_to = true;
    relay.in.last_words = "\x04";
    pump_init(&relay.out[0], master, out, "standard output");
    relay.out[0].owns_from = true;
    relay.event_fd = pidfd;
    relay.on_event = on_exit_event;
    CHECK(write(source[1], "hello\n", 6) == 6);
    (void)close(source[1]);
    CHECK_OK(relay_run(&relay, &err), err);
    relay_clear(&relay);
    (void)close(source[0]);
    CHECK_INT(child_status, 0);
    CHECK(pread(out, got, sizeof got - 1, 0) > 0);
    CHECK(strstr(got, "[hello]\r\n") != NULL);
}
