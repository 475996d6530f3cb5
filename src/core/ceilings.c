/* SPDX-License-Identifier: Apache-2.0 */
/* What sandboxes can have on this machine; see ceilings.h. */
#include "core/ceilings.h"

#include "base/log.h"
#include "base/machine.h"
#include "base/options.h"
#include "core/core.h"
#include "engine/box.h"

#define PROCESSES_SHARE 8                  // of all sandboxes together, so much is one's
#define SERVER_BYTES ((uint64_t)128 << 20) // what the server itself needs at any time

/* What one sandbox may ask for where nobody says otherwise: with all of them, it would leave none to others. */
static int64_t share_of_processes(const struct core_settings *settings)
{
    int64_t share = settings->boxes_processes / PROCESSES_SHARE;
    int64_t least = settings->limits.max_processes;

    if (share < least)
        share = least;
    return share < settings->boxes_processes ? share : settings->boxes_processes;
}

static int settle_limits(struct core *core, struct error *err)
{
    struct core_settings *settings = &core->settings;
    struct limits *most = &settings->ceilings.sandbox;
    const struct limits whole = cgroup_root_machine(engine_cgroups(core->engine));
    struct limits room = machine_leave_room(&whole);
    struct volume_space space = {0};

    if (most->disk_bytes == 0 && volume_space(engine_volume(core->engine), &space, err) < 0)
        return -1;
    if (settings->boxes_memory_bytes == 0)
        settings->boxes_memory_bytes = room.memory_bytes;
    if (settings->boxes_processes == 0)
        settings->boxes_processes = room.max_processes;
    room.memory_bytes = settings->boxes_memory_bytes;
    room.max_processes = share_of_processes(settings);
    room.disk_bytes = (int64_t)space.total_bytes;
    *most = limits_or_default(most, &room);
    settings->limits = limits_lower_to(&settings->limits, most);
    return 0;
}

static void tell(const struct core_settings *settings)
{
    const struct limits *most = &settings->ceilings.sandbox;
    char memory[DURATION_TEXT], cpu[DURATION_TEXT], disk[DURATION_TEXT], all[DURATION_TEXT];

    log_info("the most that one sandbox can ask for",
             F("memory", option_number(OPTION_SIZE, most->memory_bytes, memory)),
             F("cpu", option_number(OPTION_CPU, most->cpu_millicores, cpu)),
             F("disk", option_number(OPTION_SIZE, most->disk_bytes, disk)),
             F("processes", most->max_processes),
             F("all_memory", option_number(OPTION_SIZE, settings->boxes_memory_bytes, all)),
             F("all_processes", settings->boxes_processes));
}

int ceilings_settle(struct core *core, struct error *err)
{
    struct cgroup_root *groups = engine_cgroups(core->engine);

    if (settle_limits(core, err) < 0)
        return -1;
    const struct cgroup_share share = {
        .memory_bytes = core->settings.boxes_memory_bytes,
        .max_processes = core->settings.boxes_processes,
        .cpu_weight = core->settings.boxes_cpu_weight,
    };
    cgroup_root_protect(groups, SERVER_BYTES);
    if (cgroup_root_share(groups, &share, err) < 0) {
        if (!error_is(err, ERROR_STATE))
            return -1;
        log_warn("sandboxes use more memory than they may have together; their limit stays as it "
                 "was until the next start",
                 F("error", (const char *)err->text));
    }
    tell(&core->settings);
    return 0;
}
