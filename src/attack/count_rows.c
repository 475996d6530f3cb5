/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks on what the kernel counts for a user or for the whole machine rather than for a box; see rows.h. Where all boxes
 * are one user to the kernel nothing is filled: that would be felt by the machine.
 */
#include "attack/rows.h"

#include "base/fd.h"

#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#define ASK_OWNER _IO(0xb7, 0x4) // NS_GET_OWNER_UID: whom the kernel charges for a user namespace
#define ALL "1000000"            // more than any user may have
#define SHARE 4                  // a box that gets this part of the machine's gets too much

static int ask_owner(struct box *box, uid_t *out)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)box_pid(box));
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -1 : ioctl(fd, ASK_OWNER, out);
}

ROW(run_accounts)
{
    uid_t a = 0, b = 0;
    if (ask_owner(range->a, &a) < 0 || ask_owner(range->b, &b) < 0)
        attack_judge(result, ATTACK_UNTRIED, "the kernel does not say whom it charges");
    else if (a == 0 || b == 0)
        attack_judge(result, ATTACK_OPEN,
                     "the kernel charges what a sandbox takes to this machine's root");
    else if (a == b)
        attack_judge(result, ATTACK_OPEN, "the kernel charges two sandboxes to one account");
}

static bool host_has_inotify(void)
{
    autofd fd = inotify_init1(IN_CLOEXEC);
    return fd >= 0;
}

static bool host_has_signals(void)
{
    const struct timespec now = {0};
    sigset_t set, before;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGRTMIN);
    (void)sigprocmask(SIG_BLOCK, &set, &before);
    bool is_sent = sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0;
    (void)sigtimedwait(&set, NULL, &now);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return is_sent;
}

static bool host_has_queues(void)
{
    struct mq_attr size = {.mq_maxmsg = 10, .mq_msgsize = 1024};
    char name[64];
    (void)snprintf(name, sizeof name, "/burrow-attack-%d", (int)getpid());
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600, &size);
    if (queue == (mqd_t)-1)
        return errno == ENOSYS;
    (void)mq_close(queue);
    (void)mq_unlink(name);
    return true;
}

static bool host_has_terminals(void)
{
    autofd fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd >= 0;
}

static bool host_has_aio(void)
{
    unsigned long context = 0;
    if (syscall(SYS_io_setup, 1, &context) < 0)
        return errno == ENOSYS;
    (void)syscall(SYS_io_destroy, context);
    return true;
}

/* What is counted, and how the host itself finds out that it gets none any more. */
static const struct counted {
    const char *subject;
    bool (*host_has)(void);
    const char *knob; // how many the whole machine has; NULL: counted for each user
} counted[] = {
    {"inotify", host_has_inotify, NULL},
    {"signals", host_has_signals, NULL},
    {"queues", host_has_queues, NULL},
    {"terminals", host_has_terminals, "/proc/sys/kernel/pty/max"},
    {"aio", host_has_aio, "/proc/sys/fs/aio-max-nr"},
};

static const struct counted *find_counted(const char *subject)
{
    const struct counted *found = counted;
    while (strcmp(found->subject, subject) != 0)
        found++;
    return found;
}

/* A box takes as many as it gets, up to `most`; meanwhile the host gets one. How many it took. */
static uint64_t fill(struct range *range, const struct attack *attack, const char *user,
                     const char *most, struct attack_result *result)
{
    char line[64] = "";
    uint32_t id = START(range, range->a, user, result, line, "fill", attack->subject, most);
    if (id > 0 && !find_counted(attack->subject)->host_has())
        attack_judge(result, ATTACK_OPEN, "a sandbox took %s, and the host gets none any more",
                     line);
    if (id > 0 && strcmp(line, "0") != 0) {
        INSIDE(range, range->b, NULL, result, "take-one", attack->subject);
        INSIDE(range, range->b, RANGE_USER, result, "take-one", attack->subject);
    }
    range_stop(range, range->a, id, result);
    return strtoull(line, NULL, 10);
}

ROW(run_count)
{
    run_accounts(range, attack, result);
    if (result->verdict != ATTACK_HELD)
        return;
    (void)fill(range, attack, NULL, ALL, result);
    (void)fill(range, attack, RANGE_USER, ALL, result);
}

ROW(run_share)
{
    static const char *const users[] = {NULL, RANGE_USER};
    struct error err = {0};
    uint64_t all = 0;
    char most[24];
    if (fd_read_knob_number(AT_FDCWD, find_counted(attack->subject)->knob, &all, &err) < 0) {
        attack_judge(result, ATTACK_NOT_APPLICABLE, "this kernel does not count them");
        return;
    }
    (void)snprintf(most, sizeof most, "%llu", (unsigned long long)all / SHARE);
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        if (fill(range, attack, users[i], most, result) >= all / SHARE)
            attack_judge(result, ATTACK_OPEN,
                         "one sandbox gets %s of the machine's %llu and is not refused", most,
                         (unsigned long long)all);
    }
}
