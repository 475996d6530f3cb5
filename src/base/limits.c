/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a sandbox; see limits.h. */
#include "base/limits.h"

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

int limits_check(const struct limits *limits, struct error *err)
{
    const int64_t asked[] = {limits->memory_bytes, limits->cpu_millicores, limits->disk_bytes};

    for (size_t i = 0; i < ARRAY_SIZE(least); i++)
        if (asked[i] != 0 && asked[i] < least[i].minimum)
            return error_refuse(err, ERROR_INVALID, least[i].name,
                                "%s: a sandbox needs at least %s", least[i].name, least[i].text);
    return 0;
}

struct limits limits_or_default(const struct limits *asked, const struct limits *usual)
{
    return (struct limits){
        .memory_bytes = asked->memory_bytes ? asked->memory_bytes : usual->memory_bytes,
        .cpu_millicores = asked->cpu_millicores ? asked->cpu_millicores : usual->cpu_millicores,
        .disk_bytes = asked->disk_bytes ? asked->disk_bytes : usual->disk_bytes,
        .max_processes = asked->max_processes ? asked->max_processes : usual->max_processes,
    };
}
