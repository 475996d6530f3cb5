/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses now; see gauge.h. */
#include "core/sandbox/gauge.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/network/outlet.h"
#include "core/sandbox/gauge_history.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_box.h"
#include "engine/box.h"
#include "engine/volume.h"

#include <stdlib.h>
#include <time.h>

#define MOMENT_MS 20

/* False: it has no box now. */
static bool look(struct sandbox *sandbox, struct sandbox_gauge *out)
{
    struct outlets *outlets = sandbox->sandboxes->outlets;
    struct cgroup_usage usage = {0};
    struct error ignored = {0};
    autobox held = sandbox_share_box(sandbox);

    if (!sandbox->box || box_usage(sandbox->box, &usage, &ignored) < 0)
        return false;
    out->cpu_us = (int64_t)usage.cpu_usec;
    out->memory_bytes = (int64_t)usage.memory_bytes;
    unsigned slot = box_slot(sandbox->box);
    if (outlet_is_there(outlets, slot))
        (void)outlet_bytes(outlets, slot, &out->egress_bytes, &ignored);
    return true;
}

static int64_t disk_of(struct sandbox *sandbox)
{
    autofree char *scratch = sandbox_scratch(sandbox);
    struct error ignored = {0};
    uint64_t bytes = 0;

    if (scratch)
        (void)volume_scratch_usage(engine_volume(sandbox->sandboxes->engine), scratch, false,
                                   &bytes, &ignored);
    return (int64_t)bytes;
}

int sandbox_gauge_once(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                       struct sandbox_gauge *out, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;

    if (lookup_sandbox(sandboxes, actor, id, &sandbox, err) < 0)
        return -1;
    *out = (struct sandbox_gauge){.disk_bytes = disk_of(sandbox)};
    (void)look(sandbox, out);
    out->now = (int64_t)clock_wall_ms();
    return 0;
}

int sandbox_gauge(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                  struct sandbox_gauge *out, struct error *err)
{
    const struct timespec moment = {.tv_nsec = MOMENT_MS * 1000000};
    struct sandbox_gauge before = {0};
    autoptr(sandbox) sandbox = NULL;

    if (lookup_sandbox(sandboxes, actor, id, &sandbox, err) < 0)
        return -1;
    *out = (struct sandbox_gauge){.disk_bytes = disk_of(sandbox)};
    uint64_t since_us = clock_monotonic_us();
    if (look(sandbox, &before)) {
        (void)nanosleep(&moment, NULL);
        if (look(sandbox, out)) {
            double us = (double)(clock_monotonic_us() - since_us);
            out->cpu_percent = 100.0 * (double)(out->cpu_us - before.cpu_us) / us;
        }
    }
    out->now = (int64_t)clock_wall_ms();
    return 0;
}

void sandbox_gauges_clear(struct sandbox_gauges *gauges)
{
    free(gauges->items);
    *gauges = (struct sandbox_gauges){0};
}

/* With a box that was made anew the counter begins at 0 again. */
static double percent_since(const struct gauge_sample *before, const struct gauge_sample *now)
{
    int64_t ms = now->at - before->at, us = now->cpu_us - before->cpu_us;

    return ms > 0 && us > 0 ? (double)us / 10.0 / (double)ms : 0;
}

int sandbox_gauges(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   struct sandbox_gauges *out, struct error *err)
{
    autofree struct gauge_sample *samples = NULL;
    autoptr(sandbox) sandbox = NULL;

    if (lookup_sandbox(sandboxes, actor, id, &sandbox, err) < 0)
        return -1;
    size_t count = gauge_history_copy(sandboxes->histories, &sandbox->history, &samples);
    *out = (struct sandbox_gauges){.items = xcalloc(count + 1, sizeof *out->items), .count = count};
    for (size_t i = 0; i < count; i++) {
        const struct gauge_sample *at = &samples[i];
        out->items[i] = (struct sandbox_gauge){
            .now = at->at,
            .cpu_us = at->cpu_us,
            .cpu_percent = i ? percent_since(&samples[i - 1], at) : 0,
            .memory_bytes = at->memory_bytes,
            .disk_bytes = at->disk_bytes,
        };
    }
    return 0;
}
