/* SPDX-License-Identifier: Apache-2.0 */
/* What burrow-archive may still call; see archive_filter.h. */
#include "archive/archive_filter.h"
#include "base/auto.h"

#include <sys/syscall.h>

// A conversation on fd 0; an fd sent along there is never taken.
#define CONVERSATION                                                                               \
    {SYS_sendmsg, FILTER_FIRST_IS, 0},                                                             \
    {                                                                                              \
        SYS_recvfrom, FILTER_FIRST_IS, 0                                                           \
    }

static const struct filter_rule reading[] = {
    CONVERSATION,
    {SYS_read, FILTER_FIRST_IS, 1},
    {SYS_lseek, FILTER_FIRST_IS, 1},
};
static const struct filter_rule writing[] = {
    CONVERSATION,
    {SYS_write, FILTER_FIRST_IS, 1},
};

const struct filter_rule *archive_filter(bool is_reading, size_t *count)
{
    *count = is_reading ? ARRAY_SIZE(reading) : ARRAY_SIZE(writing);
    return is_reading ? reading : writing;
}
