/* SPDX-License-Identifier: Apache-2.0 */
/* What the findings of an attack come to, and the table of attacks itself. */
#include "attack/attack.h"
#include "attack/attacker.h"
#include "test.h"

#include <signal.h>

static struct attack_result judge(enum process_cause cause, int code, int signal, const char *said)
{
    struct attack_result result = {0};
    struct process_exit exit = {.cause = cause, .code = code, .signal = signal};
    attack_judge_inside(&result, &exit, said);
    return result;
}

TEST(an_attacker_without_a_complaint_was_held)
{
    struct attack_result result = judge(CAUSE_EXIT, INSIDE_HELD, 0, "");
    CHECK_INT(result.verdict, ATTACK_HELD);
    CHECK_STR(result.reason, "");
}

TEST(a_complaint_means_open_with_its_lines_as_the_reason)
{
    struct attack_result result = judge(CAUSE_EXIT, INSIDE_OPEN, 0, "mount worked (0)\nso did x\n");
    CHECK_INT(result.verdict, ATTACK_OPEN);
    CHECK_STR(result.reason, "mount worked (0); so did x");
}

TEST(what_an_attacker_says_is_no_command_to_a_terminal)
{
    struct attack_result result = judge(CAUSE_EXIT, INSIDE_OPEN, 0, "found \x1b]0;own\n");
    CHECK_STR(result.reason, "found ?]0;own");
}

TEST(an_attack_that_ends_pid_1_means_open)
{
    CHECK_INT(judge(CAUSE_BOX_ENDED, 0, 0, "").verdict, ATTACK_OPEN);
}

TEST(an_attacker_that_could_not_work_proves_nothing)
{
    CHECK_INT(judge(CAUSE_EXIT, INSIDE_UNKNOWN, 0, "no such attack\n").verdict, ATTACK_UNTRIED);
    CHECK_INT(judge(CAUSE_EXIT, 128 + SIGSEGV, SIGSEGV, "").verdict, ATTACK_UNTRIED);
    CHECK_INT(judge(CAUSE_NOT_FOUND, 127, 0, "").verdict, ATTACK_UNTRIED);
    CHECK_INT(judge(CAUSE_TIMEOUT, 124, 0, "").verdict, ATTACK_UNTRIED);
    CHECK_INT(judge(CAUSE_MEMORY, 137, SIGKILL, "").verdict, ATTACK_UNTRIED);
}

TEST(nothing_to_attack_is_neither_held_nor_open)
{
    struct attack_result result = judge(CAUSE_EXIT, INSIDE_NOT_APPLICABLE, 0, "no such device\n");
    CHECK_INT(result.verdict, ATTACK_NOT_APPLICABLE);
    CHECK_STR(result.reason, "no such device");
}

TEST(of_several_findings_the_worst_stays_with_its_first_reason)
{
    struct attack_result result = {0};
    attack_judge(&result, ATTACK_UNTRIED, "first");
    attack_judge(&result, ATTACK_OPEN, "second %d", 2);
    attack_judge(&result, ATTACK_OPEN, "third");
    attack_judge(&result, ATTACK_HELD, "fourth");
    CHECK_INT(result.verdict, ATTACK_OPEN);
    CHECK_STR(result.reason, "second 2");
}

TEST(a_long_complaint_is_cut)
{
    static char said[5000];
    memset(said, 'x', sizeof said - 1);
    struct attack_result result = judge(CAUSE_EXIT, INSIDE_OPEN, 0, said);
    CHECK(strlen(result.reason) > 100 && strlen(result.reason) < sizeof result.reason);
}

TEST(every_row_of_the_table_is_complete_and_its_name_its_own)
{
    size_t count = 0;
    for (const struct attack *attack = attack_table; attack->name; attack++, count++) {
        CHECK(attack->tried && *attack->tried && attack->threat && attack->run);
        CHECK(attack->remedy && strlen(attack->remedy) > 20);
        CHECK(strspn(attack->name, "abcdefghijklmnopqrstuvwxyz0123456789-") ==
              strlen(attack->name));
        CHECK(*attack_way_name(attack->way));
        for (const struct attack *other = attack_table; other < attack; other++)
            CHECK(strcmp(other->name, attack->name) != 0);
    }
    CHECK(count >= 40);
}
