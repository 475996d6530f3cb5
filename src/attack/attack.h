/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks on burrow's own boxes, as one table: `burrow doctor --attack` runs it on the user's machine, the tests run it on
 * ours, and tests/THREATS.md names its rows. Each row tries the thing for real and does no harm where it succeeds.
 * Threads: one thread; the calls block for milliseconds to seconds, and some fork.
 */
#pragma once
#include "engine/box.h"

#include <stddef.h>

struct range;

/* From good to bad: of several findings the last of these counts. */
enum attack_verdict {
    ATTACK_HELD,
    ATTACK_NOT_APPLICABLE, // this kernel or this configuration has nothing to attack there
    ATTACK_UNTRIED,        // it could not be carried out: nothing is known
    ATTACK_OPEN,
};

enum attack_way {
    ATTACK_INSIDE,  // a process in a box against the kernel, PID 1 and its own walls
    ATTACK_BETWEEN, // one box against another
    ATTACK_OUTSIDE, // a box against the host, or against who works with it from there
};

struct attack_result {
    enum attack_verdict verdict;
    char reason[400]; // of a verdict other than held
};

struct attack {
    const char *name;
    const char *tried;  // in one line
    const char *threat; // its row in tests/THREATS.md
    enum attack_way way;
    void (*run)(struct range *range, const struct attack *attack, struct attack_result *result);
    const char *subject; // for rows that share a function: of what
    const char *remedy;  // where it is open
};

/* All of them, in the order they are best read; a NULL name ends the table. */
extern const struct attack attack_table[];

/* Carries one out. Boxes that it ended or filled are made anew for the next. */
void attack_run(const struct attack *attack, struct range *range, struct attack_result *result);

const char *attack_verdict_name(enum attack_verdict verdict); /* "held", "not-applicable" … */
const char *attack_way_name(enum attack_way way);             /* "inside" … */

/* Adds a finding: the worse verdict stays, and its first reason. */
void attack_judge(struct attack_result *result, enum attack_verdict verdict, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));
/* The same of a burrow-attacker that has ended, by its exit and its output. */
void attack_judge_inside(struct attack_result *result, const struct process_exit *exit,
                         const char *output);
