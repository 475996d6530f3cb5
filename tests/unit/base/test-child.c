/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of programs that are started (src/base/child.c). */
#include "base/child.h"
#include "base/fd.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a shell that was started says. */
static void said_by(const char *script, char *const *env, char *text, size_t size)
{
    int ends[2], status = -1;
    pid_t pid = 0;

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    autofd reading = ends[0];
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    const struct child child = {"/bin/sh", argv, env, {CHILD_NOTHING, ends[1], CHILD_NOTHING}};
    int code = child_start(&child, &pid);
    close(ends[1]);
    CHECK(code == 0);
    ssize_t got = fd_read_full(reading, text, size - 1);
    text[got > 0 ? got : 0] = '\0';
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

TEST(it_has_three_files_and_what_is_named_of_the_environment)
{
    char *const env[] = {(char *)"ONE=1", NULL};
    char text[256];

    CHECK(setenv("OURS", "2", 1) == 0);
    said_by("cat; echo $ONE.$OURS; echo lost >&2; ls -l /proc/self/fd/0 | grep -c null", env, text,
            sizeof text);
    CHECK_STR(text, "1.\n1\n");
    said_by("echo $OURS.", NULL, text, sizeof text);
    CHECK_STR(text, ".\n");
}

TEST(signals_are_as_they_are_by_default)
{
    sigset_t blocked, before;
    char text[256];

    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGTERM);
    CHECK(sigprocmask(SIG_BLOCK, &blocked, &before) == 0);
    (void)signal(SIGPIPE, SIG_IGN);
    // the lowest 28: those of the C library are its own
    said_by("grep -E '^Sig(Blk|Ign)' /proc/self/status | sed 's/.*\\(.......\\)$/\\1/'", NULL, text,
            sizeof text);
    CHECK_STR(text, "0000000\n0000000\n");
    CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
}

TEST(a_program_that_is_not_there_is_an_error)
{
    char *argv[] = {(char *)"none", NULL};
    const struct child child = {"/none", argv, NULL, {CHILD_NOTHING, CHILD_NOTHING, CHILD_NOTHING}};
    pid_t pid = 0;

    CHECK_INT(child_start(&child, &pid), ENOENT);
}
