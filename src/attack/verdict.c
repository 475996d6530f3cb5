/* SPDX-License-Identifier: Apache-2.0 */
/* What the findings of an attack come to; see attack.h. */
#include "attack/attack.h"

#include "attack/attacker.h"
#include "base/quote.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *attack_verdict_name(enum attack_verdict verdict)
{
    static const char *const names[] = {
        [ATTACK_HELD] = "held",
        [ATTACK_NOT_APPLICABLE] = "not-applicable",
        [ATTACK_UNTRIED] = "untried",
        [ATTACK_OPEN] = "open",
    };
    return names[verdict];
}

const char *attack_way_name(enum attack_way way)
{
    static const char *const names[] = {
        [ATTACK_INSIDE] = "inside",
        [ATTACK_BETWEEN] = "between",
        [ATTACK_OUTSIDE] = "outside",
    };
    return names[way];
}

void attack_judge(struct attack_result *result, enum attack_verdict verdict, const char *format,
                  ...)
{
    va_list args;
    if (verdict <= result->verdict)
        return;
    result->verdict = verdict;
    va_start(args, format);
    (void)vsnprintf(result->reason, sizeof result->reason, format, args);
    va_end(args);
}

/* The lines of an attacker as one sentence, without the end of line. */
static void join_lines(const char *output, char *text, size_t size)
{
    size_t used = 0;
    for (; *output && used + 3 < size; output++) {
        if (*output != '\n') {
            text[used++] = *output;
        } else if (output[1]) {
            text[used++] = ';';
            text[used++] = ' ';
        }
    }
    text[used] = '\0';
    quote_scrub(text); // it may repeat names that it found, and comes to a terminal
}

void attack_judge_inside(struct attack_result *result, const struct process_exit *exit,
                         const char *output)
{
    char said[300];
    join_lines(output, said, sizeof said);
    if (exit->cause == CAUSE_BOX_ENDED)
        attack_judge(result, ATTACK_OPEN, "the attack ended the sandbox's own PID 1");
    else if (exit->cause == CAUSE_EXIT && !exit->signal && exit->code == INSIDE_OPEN)
        attack_judge(result, ATTACK_OPEN, "%s", said);
    else if (exit->cause == CAUSE_EXIT && !exit->signal && exit->code == INSIDE_NOT_APPLICABLE)
        attack_judge(result, ATTACK_NOT_APPLICABLE, "%s", said);
    else if (exit->cause != CAUSE_EXIT || exit->signal || exit->code != INSIDE_HELD)
        attack_judge(result, ATTACK_UNTRIED, "the attacker ended with code %d: %s%s", exit->code,
                     exit->text, said);
}
