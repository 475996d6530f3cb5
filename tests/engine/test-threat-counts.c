/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on what the kernel counts by user or for the whole machine: one box takes all it gets, and neither another box nor
 * the host may miss any. */
#include "threat_fixture.h"

#include <errno.h>
#include <mqueue.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/syscall.h>

/* Starts `hold` of a kind and waits until it has all it gets. */
static void hold(struct box *box, const char *user, const char *kind, const char *enough,
                 int *count, int *code)
{
    const char *argv[] = {"/attacker", "hold", kind, enough, NULL};
    struct error err = {0};
    char text[64] = "";
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    autofd reader = ends[0];
    autofd writer = ends[1];
    struct process_spec spec = {.id = next_id(),
                                .command.argv = argv,
                                .command.directory = "/",
                                .command.user = user,
                                .stdin_fd = -1,
                                .stdout_fd = writer,
                                .stderr_fd = -1};
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
    closep(&writer);
    CHECK(read(reader, text, sizeof text - 1) > 0);
    CHECK(sscanf(text, "%d %d", count, code) == 2);
}

static bool host_has_inotify(void)
{
    autofd fd = inotify_init1(IN_CLOEXEC);
    return fd >= 0;
}

static bool host_has_signals(void)
{
    union sigval value = {0};
    const struct timespec now = {0};
    sigset_t set, before;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGRTMIN);
    (void)sigprocmask(SIG_BLOCK, &set, &before);
    bool is_sent = sigqueue(getpid(), SIGRTMIN, value) == 0;
    (void)sigtimedwait(&set, NULL, &now);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return is_sent;
}

static bool host_has_queues(void)
{
    struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = 8192};
    char name[64];
    (void)snprintf(name, sizeof name, "/burrow-test-%d", (int)getpid());
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600, &attributes);
    bool is_made = queue >= 0;
    if (is_made) {
        (void)mq_close(queue);
        (void)mq_unlink(name);
    }
    return is_made || errno == ENOSYS;
}

static bool host_has_terminals(void)
{
    autofd fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd >= 0;
}

static bool host_has_aio(void)
{
    unsigned long context = 0;
    bool is_made = syscall(SYS_io_setup, 1024, &context) == 0;
    if (is_made)
        (void)syscall(SYS_io_destroy, context);
    return is_made || errno == ENOSYS;
}

static const struct {
    const char *kind;
    int most; // that a box gets
    int code; // with which it ends
    bool (*host_has)(void);
} counts[] = {
    {"inotify", 4096, EMFILE, host_has_inotify},
    {"signals", 8192, EAGAIN, host_has_signals},
    {"queues", 16, EMFILE, host_has_queues},
    {"terminals", 64, ENOSPC, host_has_terminals},
    {"aio", 0, ENOSYS, host_has_aio},
};

static void check_counts(const char *user)
{
    struct box *taker = launch_attacker();
    struct box *other = launch_attacker();
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        int count = 0, code = 0;
        hold(taker, user, counts[i].kind, NULL, &count, &code);
        if (count > counts[i].most || code != counts[i].code)
            test_fail(__FILE__, __LINE__, "%s: %d, then %s", counts[i].kind, count, strerror(code));
        if (!counts[i].host_has())
            test_fail(__FILE__, __LINE__, "%s: none left for the host: %s", counts[i].kind,
                      strerror(errno));
        if (counts[i].most > 0) {
            ATTACK(other, "take", counts[i].kind);
            ATTACK_AS(other, "guest", "take", counts[i].kind);
        }
    }
    check_serves(taker);
}

BOX_TEST(what_the_root_of_one_box_takes_is_missing_to_nobody_else)
{
    check_counts(NULL);
}

BOX_TEST(what_a_user_of_one_box_takes_is_missing_to_nobody_else)
{
    check_counts("guest");
}

NOTHING_IS_LEFT_TEST
