/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks of one box on another; see rows.h. */
#include "attack/rows.h"

#include <stdio.h>

ROW(run_neighbour_processes)
{
    char first[16];
    (void)snprintf(first, sizeof first, "%d", (int)box_pid(range->b));
    INSIDE(range, range->a, NULL, result, "other-processes", first);
    INSIDE(range, range->a, RANGE_USER, result, "other-processes", first);
    range_check_others(range, result);
}

ROW(run_neighbour_secrets)
{
    INSIDE(range, range->a, NULL, result, "secrets", RANGE_SECRET);
}

ROW(run_neighbour_name)
{
    INSIDE(range, range->a, NULL, result, "host-paths", "attack-b");
}

/* What one leaves in every place that could be shared is not found by the other. */
static void find_left(struct range *range, struct attack_result *result, const char *const *argv)
{
    char line[64] = "";
    uint32_t id = START(range, range->b, NULL, result, line, "leave");
    if (id > 0 && strcmp(line, "left") != 0)
        attack_judge(result, ATTACK_UNTRIED, "%s", line);
    if (id > 0) {
        range_attack(range, range->a, NULL, result, argv);
        range_attack(range, range->a, RANGE_USER, result, argv);
    }
    range_stop(range, range->b, id, result);
}

ROW(run_neighbour_files)
{
    find_left(range, result, (const char *const[]){RANGE_ATTACKER, "find-left", NULL});
}

ROW(run_neighbour_sockets)
{
    find_left(range, result,
              (const char *const[]){RANGE_ATTACKER, "find-sockets", "left-by-a-box", NULL});
}

ROW(run_kill_all)
{
    struct range_outcome outcome;
    struct error err = {0};
    static const char *const argv[] = {RANGE_ATTACKER, "kill-all", NULL};
    // It may well end itself.
    if (range_finish(range, range->a, NULL, argv, &outcome, &err) < 0)
        attack_judge(result, ATTACK_UNTRIED, "%s", err.text);
    else if (outcome.exit.code == 1)
        attack_judge_inside(result, &outcome.exit, outcome.output);
    range_check_others(range, result);
}
