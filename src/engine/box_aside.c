/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that leave a box its processor; see box_aside.h. */
#include "engine/box_aside.h"

#include "engine/launch.h"

void box_step_aside(const struct box *box, struct box_aside *aside)
{
    pid_t init =
        box->pid ? box->pid : box->init_pid; // 0: an adopted one that nobody has looked for
    int here = sched_getcpu();
    cpu_set_t bound;
    cpu_set_t others;

    aside->is_moved = false;
    if (init <= 0 || here < 0 || sched_getaffinity(init, sizeof bound, &bound) < 0 ||
        !CPU_ISSET(here, &bound) || sched_getaffinity(0, sizeof aside->before, &aside->before) < 0)
        return;
    CPU_XOR(&others, &aside->before, &bound);
    CPU_AND(&others, &others, &aside->before);
    aside->is_moved = CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0;
}

void box_aside_end(struct box_aside *aside)
{
    if (aside->is_moved)
        (void)sched_setaffinity(0, sizeof aside->before, &aside->before);
    aside->is_moved = false;
}
