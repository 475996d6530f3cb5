/* SPDX-License-Identifier: Apache-2.0 */
/* Names of signals; see signal_name.h. */
#include "front/api/signal_name.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

int signal_of_name(const char *name)
{
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int number = 1; number < NSIG; number++) {
        const char *known = sigabbrev_np(number);
        if (known && strcmp(known, name) == 0)
            return number;
    }
    return 0;
}
