/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of thread is calling; see thread.h. */
#include "base/thread.h"

#include <sys/prctl.h>

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
