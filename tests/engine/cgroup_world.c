/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts of control groups; see cgroup_world.h. */
#include "cgroup_world.h"

#include "base/auto.h"
#include "test.h"

#include <limits.h>

enum { CPU = 1, MEMORY = 2, PIDS = 4, FREEZER = 8, LIMITS = CPU | MEMORY | PIDS };

struct world {
    bool has_v2;
    unsigned v2, v1; // controllers
};

static unsigned controllers_in(char *list, const char *separators)
{
    static const char *const names[] = {"cpu", "memory", "pids", "freezer"};
    unsigned found = 0;
    char *saved = NULL;
    for (char *word = strtok_r(list, separators, &saved); word;
         word = strtok_r(NULL, separators, &saved)) {
        for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
            found |= strcmp(word, names[i]) == 0 ? 1u << i : 0;
    }
    return found;
}

static unsigned v2_controllers(const char *top)
{
    char path[PATH_MAX], line[512] = "";
    (void)snprintf(path, sizeof path, "%s/cgroup.controllers", top);
    autofile file = fopen(path, "re");
    CHECK(file);
    return fgets(line, sizeof line, file) ? controllers_in(line, " \n") : 0;
}

static struct world look(void)
{
    struct world world = {0};
    char line[8192], top[4096], type[64], options[1024];
    autofile file = fopen("/proc/self/mountinfo", "re");

    CHECK(file);
    while (fgets(line, sizeof line, file)) {
        const char *rest = strstr(line, " - cgroup");
        if (!rest || sscanf(line, "%*s %*s %*s %*s %4095s", top) != 1 ||
            sscanf(rest, " - %63s %*s %1023s", type, options) != 2)
            continue;
        if (strcmp(type, "cgroup2") == 0) {
            world.has_v2 = true;
            world.v2 |= v2_controllers(top);
        } else {
            world.v1 |= controllers_in(options, ",\n");
        }
    }
    return world;
}

void need_cgroup_mode(enum cgroup_mode mode)
{
    struct world world = look();
    bool has_v1 = (world.v1 & LIMITS) == LIMITS;
    const bool has[] = {
        [CGROUP_V2] = (world.v2 & LIMITS) == LIMITS,
        [CGROUP_HYBRID] = has_v1 && world.has_v2,
        [CGROUP_V1] = has_v1 && world.v1 & FREEZER,
    };
    if (!has[mode])
        SKIP("this machine has no control groups of mode %s", cgroup_mode_name(mode));
}
