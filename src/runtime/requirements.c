/* SPDX-License-Identifier: Apache-2.0 */
/* What runtimes need; see requirements.h. */
#include "runtime/requirements.h"

#include "base/auto.h"
#include "base/size.h"

#include <stdio.h>
#include <string.h>

bool runtime_is_plain(const char *full_name)
{
    static const char *const built_in[] = {"base:latest", "host:latest"};

    for (size_t i = 0; i < ARRAY_SIZE(built_in); i++)
        if (strcmp(built_in[i], full_name) == 0)
            return true;
    return false;
}

static int check(const char *limit, int64_t asked, int64_t needed, const char *spelled,
                 const struct runtime_definition *definition, struct error *err)
{
    if (asked <= 0 || asked >= needed)
        return 0;
    return error_refuse(err, ERROR_INVALID, limit,
                        "%s: the runtime '%s:%s' needs at least %s; ask for more, or for nothing",
                        limit, definition->name, definition->tags[0], spelled);
}

int requirements_check(const struct runtime_definition *definition, const struct limits *asked,
                       bool has_network, struct limits *needed, struct error *err)
{
    const struct runtime_requirements *needs = &definition->requirements;
    const struct limits least = {.memory_bytes = (int64_t)needs->memory_bytes,
                                 .cpu_millicores = needs->cpu_millicores,
                                 .disk_bytes = (int64_t)needs->disk_bytes};
    char memory[SIZE_TEXT], disk[SIZE_TEXT], cpu[SIZE_TEXT];

    (void)snprintf(cpu, sizeof cpu, "%um", needs->cpu_millicores);
    if (check("memory", asked->memory_bytes, least.memory_bytes,
              size_format(needs->memory_bytes, memory), definition, err) < 0 ||
        check("cpu", asked->cpu_millicores, least.cpu_millicores, cpu, definition, err) < 0 ||
        check("disk", asked->disk_bytes, least.disk_bytes, size_format(needs->disk_bytes, disk),
              definition, err) < 0)
        return -1;
    if (needs->needs_network && !has_network)
        return error_refuse(err, ERROR_INVALID, "network",
                            "network: the runtime '%s:%s' needs it; ask for a sandbox with network",
                            definition->name, definition->tags[0]);
    *needed = least;
    return 0;
}

static int64_t at_least(int64_t limit, int64_t needed)
{
    return limit && limit < needed ? needed : limit;
}

struct limits requirements_raise(const struct limits *limits, const struct limits *needed)
{
    struct limits raised = *limits;

    raised.memory_bytes = at_least(limits->memory_bytes, needed->memory_bytes);
    raised.cpu_millicores = at_least(limits->cpu_millicores, needed->cpu_millicores);
    raised.disk_bytes = at_least(limits->disk_bytes, needed->disk_bytes);
    return raised;
}
