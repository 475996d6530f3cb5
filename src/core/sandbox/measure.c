/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what sandboxes use; see measure.h. */
#include "core/sandbox/measure.h"

#include "base/clock.h"
#include "base/log.h"
#include "model/log_ids.h"
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
                     (double)(now - sandbox->sampled_at));
}

static int64_t birth_of(struct sandbox *sandbox)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    int64_t when =
        sandbox->record.started_at ? sandbox->record.started_at : sandbox->record.created_at;
    (void)pthread_mutex_unlock(&sandbox->lock);
    return when;
}

int measure_take(struct sandbox *sandbox, struct measure *out, struct error *err)
{
    struct cgroup_usage usage = {0};
    int64_t now = (int64_t)clock_wall_ms();

    if (box_usage(sandbox->box, &usage, err) < 0)
        return -1;
    if (sandbox->sampled_at == 0)
        sandbox->sampled_at = birth_of(sandbox);
    int64_t cpu_ms = (int64_t)(usage.cpu_usec / 1000);
    *out = (struct measure){
        .more = {.cpu_ms = cpu_ms - sandbox->counted_cpu_ms,
                 .memory_mib_ms = integral(sandbox, &usage, now)},
        .counted_cpu_ms = cpu_ms,
        .now = now,
    };
    sandbox->counted_cpu_ms = cpu_ms;
    sandbox->sampled_memory = usage.memory_bytes;
    sandbox->sampled_at = now;
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

static void sample(void *data)
{
    struct sandbox *sandbox = data;
    struct measure measure = {0};
    struct error err = {0};

    if (sandbox_try_box(sandbox)) {
        int result = measure_take(sandbox, &measure, &err);
        sandbox_unlock_box(sandbox);
        if (result == 0 && measure_put(sandbox, &measure, &err) < 0)
            log_warn("what a sandbox uses could not be recorded", F_SANDBOX(sandbox->id),
                     F("error", (const char *)err.text));
    }
    sandbox_free(sandbox);
}

void measure_tick(struct sandbox *sandbox, int64_t now)
{
    struct error ignored = {0};

    if (sandbox->sample_at == 0)
        sandbox->sample_at = now + SAMPLE_EVERY_MS;
    if (sandbox->sample_at > now)
        return;
    sandbox->sample_at = now + SAMPLE_EVERY_MS;
    if (workers_submit(sandbox->sandboxes->reaper, WORKERS_QUICK, sample, sandbox_ref(sandbox),
                       &ignored) < 0)
        sandbox_free(sandbox); // too busy: the next one covers the time
}
