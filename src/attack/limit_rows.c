/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the limits of a box: it gets no more than it was promised, and others notice nothing; see rows.h. */
#include "attack/rows.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LEAST_CPU 100              // thousandths of a CPU, for the attack on that limit
#define UNHINDERED_USEC 1000000ULL // of CPU time without a pause: there is no limit

struct number {
    char text[24];
};

static struct number number(int64_t value)
{
    struct number made;
    (void)snprintf(made.text, sizeof made.text, "%lld", (long long)value);
    return made;
}

/* Ended for its memory, with or without its whole sandbox, is as good as refused. */
static void eat(struct range *range, struct attack_result *result, const char *const *argv)
{
    struct range_outcome outcome;
    struct error err = {0};
    if (range_finish(range, range->a, NULL, argv, &outcome, &err) < 0) {
        if (error_kind(&err) != ERROR_GONE)
            attack_judge(result, ATTACK_UNTRIED, "%s", err.text);
    } else if (outcome.exit.cause != CAUSE_MEMORY && outcome.exit.cause != CAUSE_BOX_ENDED)
        attack_judge_inside(result, &outcome.exit, outcome.output);
}

ROW(run_memory_limit)
{
    static const char *const ways[] = {"heap", "memfd", "shm"};
    struct number most = number(range->limits.memory_bytes);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        eat(range, result,
            (const char *const[]){RANGE_ATTACKER, "eat-memory", most.text, ways[i], NULL});
    range_check_others(range, result);
}

ROW(run_process_limit)
{
    struct number most = number(range->limits.max_processes);
    char line[200] = "";
    uint32_t id = START(range, range->a, NULL, result, line, "fork-many", most.text);
    if (id > 0 && strcmp(line, "refused") != 0)
        attack_judge(result, ATTACK_OPEN, "%s", line);
    if (id > 0)
        INSIDE(range, range->b, NULL, result, "core-dump"); // which forks
    range_stop(range, range->a, id, result);
    range_check_others(range, result);
}

ROW(run_disk_limit)
{
    struct number most = number(range->limits.disk_bytes);
    INSIDE(range, range->a, NULL, result, "fill-disk", most.text, "plain");
    INSIDE(range, range->a, NULL, result, "fill-disk", most.text, "deleted");
    range_check_others(range, result);
}

ROW(run_open_files)
{
    struct number most = number(RANGE_MAX_FILES);
    INSIDE(range, range->a, NULL, result, "open-many", most.text);
    INSIDE(range, range->a, RANGE_USER, result, "open-many", most.text);
    range_check_others(range, result);
}

/* Held as soon as the kernel says that it made the box wait: no clock is asked. */
static void await_throttling(struct range *range, struct attack_result *result)
{
    struct cgroup_usage first = {0}, now = {0};
    struct error err = {0};
    if (box_usage(range->a, &first, &err) < 0)
        attack_judge(result, ATTACK_UNTRIED, "%s", err.text);
    while (result->verdict == ATTACK_HELD && !range_is_stopped(range)) {
        if (box_usage(range->a, &now, &err) < 0)
            attack_judge(result, ATTACK_UNTRIED, "%s", err.text);
        if (now.throttled_usec > first.throttled_usec)
            return;
        if (now.cpu_usec - first.cpu_usec > UNHINDERED_USEC)
            attack_judge(result, ATTACK_OPEN, "it used %d s of CPU time and was never made to wait",
                         (int)(UNHINDERED_USEC / 1000000));
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

ROW(run_cpu_limit)
{
    struct limits less = range->spec.limits;
    struct error err = {0};
    char line[64] = "";
    if (less.cpu_millicores > 0)
        less.cpu_millicores = LEAST_CPU;
    if (box_set_limits(range->a, &less, &err) < 0)
        attack_judge(result, ATTACK_UNTRIED, "%s", err.text);
    uint32_t id = START(range, range->a, NULL, result, line, "spin");
    if (id > 0)
        await_throttling(range, result);
    range_stop(range, range->a, id, result);
    if (box_set_limits(range->a, &range->spec.limits, &err) < 0)
        attack_judge(result, ATTACK_UNTRIED, "%s", err.text);
}

/* The machine's own bound on memory of such sockets, in MiB; 0: none known. */
static long ceiling_mib(const char *kind)
{
    char path[64], text[64];
    struct error err = {0};
    long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/sys/net/ipv4/%s_mem", kind);
    if (fd_read_knob(AT_FDCWD, path, text, sizeof text, &err) < 0 ||
        sscanf(text, "%*d %*d %ld", &pages) != 1)
        return 0;
    return pages / 256;
}

ROW(run_socket_memory)
{
    struct number most = number(range->limits.memory_bytes);
    struct attack_result found = {0};
    eat(range, &found,
        (const char *const[]){RANGE_ATTACKER, "socket-memory", attack->subject, most.text, NULL});
    long ceiling = found.verdict == ATTACK_OPEN ? ceiling_mib(attack->subject) : 0;
    if (ceiling > 0)
        attack_judge(result, ATTACK_OPEN,
                     "%.200s; the machine's ceiling for all such sockets together is %ld MiB",
                     found.reason, ceiling);
    else if (found.verdict != ATTACK_HELD)
        attack_judge(result, found.verdict, "%s", found.reason);
    range_check_neighbour(range, result);
}
