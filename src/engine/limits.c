/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a sandbox; see limits.h. */
#include "engine/limits.h"

#include "base/auto.h"

#include <stddef.h>

static const struct {
    const char *name;
    int64_t minimum;
    const char *text; // the minimum, as people write it
} least[] = {
    {"memory", 4 << 20, "4Mi"},
    {"cpu", 10, "10m"},
    {"disk", 1 << 20, "1Mi"},
};

int limits_check(int64_t memory_bytes, int64_t cpu_milli, int64_t disk_bytes, struct error *err)
{
    const int64_t asked[] = {memory_bytes, cpu_milli, disk_bytes};

    for (size_t i = 0; i < ARRAY_SIZE(least); i++)
        if (asked[i] != 0 && asked[i] < least[i].minimum)
            return error_set(err, ERROR_INVALID, "%s: a sandbox needs at least %s", least[i].name,
                             least[i].text);
    return 0;
}
