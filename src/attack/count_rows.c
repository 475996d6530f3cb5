/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks on what the kernel counts for a user or for the whole machine rather than for a box; see rows.h. Where all boxes
 * are one user to the kernel nothing is filled: that would be felt by the machine.
 */
#include "attack/rows.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>

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

/* What the host itself still gets while a box holds all it could get. */
static void check_host(const struct attack *attack, struct attack_result *result)
{
    if (strcmp(attack->subject, "inotify") != 0)
        return;
    autofd fd = inotify_init1(IN_CLOEXEC);
    if (fd < 0)
        attack_judge(result, ATTACK_OPEN, "the machine's root gets none any more");
}

ROW(run_count)
{
    char line[64] = "";
    run_accounts(range, attack, result);
    if (result->verdict != ATTACK_HELD)
        return;
    uint32_t id = START(range, range->a, result, line, "fill", attack->subject, ALL);
    if (id > 0) {
        INSIDE(range, range->b, NULL, result, "take-one", attack->subject);
        INSIDE(range, range->b, RANGE_USER, result, "take-one", attack->subject);
        check_host(attack, result);
    }
    range_stop(range, range->a, id, result);
}

static const struct machine_count {
    const char *subject, *knob;
} machine_counts[] = {
    {"aio", "/proc/sys/fs/aio-max-nr"},
    {"terminals", "/proc/sys/kernel/pty/max"},
};

static const char *find_knob(const char *subject)
{
    for (size_t i = 0; i < sizeof machine_counts / sizeof *machine_counts; i++) {
        if (strcmp(machine_counts[i].subject, subject) == 0)
            return machine_counts[i].knob;
    }
    return "";
}

ROW(run_share)
{
    struct error err = {0};
    uint64_t all = 0;
    char most[24], line[64] = "";
    if (fd_read_knob_number(AT_FDCWD, find_knob(attack->subject), &all, &err) < 0) {
        attack_judge(result, ATTACK_NOT_APPLICABLE, "this kernel does not count them");
        return;
    }
    (void)snprintf(most, sizeof most, "%llu", (unsigned long long)all / SHARE);
    uint32_t id = START(range, range->a, result, line, "fill", attack->subject, most);
    if (id > 0 && strtoull(line, NULL, 10) >= all / SHARE)
        attack_judge(result, ATTACK_OPEN,
                     "one sandbox gets %s of the machine's %llu and is not refused", line,
                     (unsigned long long)all);
    range_stop(range, range->a, id, result);
}
