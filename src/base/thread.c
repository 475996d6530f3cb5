/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of thread is calling; see thread.h. */
#include "base/thread.h"

#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST_TURN_NS 100000000 // as long as the kernel lets one be

static _Thread_local bool is_in_loop;

void thread_set_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name, 0, 0, 0);
}

void thread_mark_loop(bool is_loop)
{
    is_in_loop = is_loop;
}

bool thread_is_loop(void)
{
    return is_in_loop;
}

/* As sched_setattr(2) has it. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

void thread_give_way(void)
{
    struct attributes attributes = {.size = sizeof attributes};

    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) < 0)
        return;
    attributes.runtime = LONGEST_TURN_NS;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}
