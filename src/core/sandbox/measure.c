/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what sandboxes use; see measure.h. */
#include "core/sandbox/measure.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_ids.h"
#include "core/sandbox/mailbox.h"
#include "core/sandbox/sandbox_box.h"

#include <string.h>

#define SAMPLE_EVERY_MS 5000
#define MIB (1024.0 * 1024.0)

/*
 * Memory is taken as the mean of both ends of the interval; in the first one, which may have been the whole life of a short
 * command, as the mean of what is there and the most there was.
 */
static int64_t integral(const struct sandbox *sandbox, const struct cgroup_usage *usage,
                        int64_t now)
{
    double before = (double)sandbox->sampled_memory;
    if (sandbox->sampled_memory == 0)
        before = (double)usage->memory_peak_bytes;
    return (int64_t)((before + (double)usage->memory_bytes) / 2 / MIB *
                     (double)(now - sandbox->sampled_ms));
}

int measure_take(struct sandbox *sandbox, struct measure *out, struct error *err)
{
    struct cgroup_usage usage = {0};
    int64_t now = (int64_t)clock_monotonic_ms();

    if (box_usage(sandbox->box, &usage, err) < 0)
        return -1;
    if (sandbox->sampled_ms == 0)
        sandbox->sampled_ms = sandbox->created_ms;
    int64_t cpu_ms = (int64_t)(usage.cpu_usec / 1000);
    *out = (struct measure){
        .more = {.cpu_ms = cpu_ms - sandbox->counted_cpu_ms,
                 .memory_mib_ms = integral(sandbox, &usage, now)},
        .counted_cpu_ms = cpu_ms,
        .now = (int64_t)clock_wall_ms(),
    };
    sandbox->counted_cpu_ms = cpu_ms;
    sandbox->sampled_memory = usage.memory_bytes;
    sandbox->sampled_ms = now;
    return 0;
}

int measure_put(struct sandbox *sandbox, const struct measure *measure, struct error *err)
{
    struct usage_sample sample = {
        .sandbox_id = sandbox->id,
        .more = measure->more,
        .counted_cpu_ms = measure->counted_cpu_ms,
        .now = measure->now,
    };
    return store_usage_add(sandbox->sandboxes->store, &sample, err);
}

/* False: it is in use, or gone. The next time covers this one. */
static bool try_measure(struct sandbox *sandbox, struct measure *measure)
{
    struct error ignored = {0};
    autobox held = sandbox_try_box(sandbox);

    return held && measure_take(sandbox, measure, &ignored) == 0;
}

static void sample(struct sandbox *sandbox, void *data)
{
    struct measure measure = {0};
    struct error err = {0};

    (void)data;
    if (try_measure(sandbox, &measure) && measure_put(sandbox, &measure, &err) < 0)
        log_warn("what a sandbox uses could not be recorded", F_SANDBOX(sandbox->id),
                 F("error", (const char *)err.text));
    sandbox->is_sample_posted = false;
}

void measure_tick(struct sandbox *sandbox, int64_t now)
{
    if (sandbox->sample_ms == 0)
        sandbox->sample_ms = now + SAMPLE_EVERY_MS;
    if (sandbox->sample_ms > now)
        return;
    sandbox->sample_ms = now + SAMPLE_EVERY_MS;
    if (!atomic_exchange(&sandbox->is_sample_posted, true))
        mailbox_post(sandbox, sample, NULL);
}
