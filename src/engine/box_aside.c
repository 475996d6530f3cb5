/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that leave a box its processor; see box_aside.h. */
#include "engine/box_aside.h"

#include "engine/pid_one.h"

#include <string.h>

bool box_processors(const struct box *box, cpu_set_t *out)
{
    pid_t init = pid_one_known(box); // looking for it takes longer than it saves

    return init > 0 && sched_getaffinity(init, sizeof *out, out) == 0;
}

/*
 * A thread that has chosen none runs wherever its control group lets it, also when that changes. Naming those it has now would be a choice, which the
 * kernel keeps, and hands on to boxes. Whether it has made one shows when it asks for all: that takes nothing from it.
 */
static void read_choice(const cpu_set_t *now, cpu_set_t *choice)
{
    cpu_set_t allowed;

    memset(choice, 0xff, sizeof *choice);
    if (sched_setaffinity(0, sizeof *choice, choice) < 0 ||
        sched_getaffinity(0, sizeof allowed, &allowed) < 0 || !CPU_EQUAL(&allowed, now))
        *choice = *now;
}

void box_step_aside(const cpu_set_t *bound, struct box_aside *aside)
{
    int here = sched_getcpu();
    cpu_set_t now;
    cpu_set_t others;

    aside->is_moved = false;
    if (here < 0 || !CPU_ISSET(here, bound) || sched_getaffinity(0, sizeof now, &now) < 0)
        return;
    CPU_XOR(&others, &now, bound);
    CPU_AND(&others, &others, &now);
    if (CPU_COUNT(&others) == 0)
        return;
    read_choice(&now, &aside->after);
    aside->is_moved = true;
    if (sched_setaffinity(0, sizeof others, &others) < 0)
        box_aside_end(aside);
}

void box_aside_end(struct box_aside *aside)
{
    if (aside->is_moved)
        (void)sched_setaffinity(0, sizeof aside->after, &aside->after);
    aside->is_moved = false;
}
