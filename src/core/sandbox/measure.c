/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what sandboxes use; see measure.h. */
#include "core/sandbox/measure.h"

#include "base/clock.h"
#include "base/log.h"

#include <string.h>

#define SAMPLE_EVERY_MS 5000
#define MIB (1024.0 * 1024.0)

/*
 * Memory is taken as the mean of both ends of the interval; in the first one, which may have been the whole life of a short
 * command, as the mean of what is there and the most there was.
 */
static int64_t integral(const struct live *live, const struct cgroup_usage *usage, int64_t now)
{
    double before = (double)live->sampled_memory;
    if (live->sampled_memory == 0)
        before = (double)usage->memory_peak_bytes;
    return (int64_t)((before + (double)usage->memory_bytes) / 2 / MIB *
                     (double)(now - live->sampled_at));
}

static int64_t birth_of(struct live *live)
{
    (void)pthread_mutex_lock(&live->lock);
    int64_t when = live->record.started_at ? live->record.started_at : live->record.created_at;
    (void)pthread_mutex_unlock(&live->lock);
    return when;
}

int measure_take(struct live *live, struct measure *out, struct error *err)
{
    struct cgroup_usage usage = {0};
    int64_t now = (int64_t)clock_wall_ms();

    if (box_usage(live->box, &usage, err) < 0)
        return -1;
    if (live->sampled_at == 0)
        live->sampled_at = birth_of(live);
    int64_t cpu_ms = (int64_t)(usage.cpu_usec / 1000);
    *out = (struct measure){
        .more = {.cpu_ms = cpu_ms - live->counted_cpu_ms,
                 .memory_mib_ms = integral(live, &usage, now)},
        .counted_cpu_ms = cpu_ms,
        .now = now,
    };
    live->counted_cpu_ms = cpu_ms;
    live->sampled_memory = usage.memory_bytes;
    live->sampled_at = now;
    return 0;
}

int measure_put(struct live *live, const struct measure *measure, struct error *err)
{
    struct usage_sample sample = {
        .sandbox_id = live->id,
        .more = measure->more,
        .counted_cpu_ms = measure->counted_cpu_ms,
        .now = measure->now,
    };
    return store_usage_add(live->core->store, &sample, err);
}

static void sample(void *data)
{
    struct live *live = data;
    struct measure measure = {0};
    struct error err = {0};

    if (live_try_box(live)) {
        int result = measure_take(live, &measure, &err);
        live_unlock_box(live);
        if (result == 0 && measure_put(live, &measure, &err) < 0)
            log_warn("what a sandbox uses could not be recorded",
                     F("sandbox", (const char *)live->id), F("error", (const char *)err.text));
    }
    live_free(live);
}

void measure_look_after(struct live *live, int64_t now)
{
    struct error ignored = {0};

    if (live->sample_at == 0)
        live->sample_at = now + SAMPLE_EVERY_MS;
    if (live->sample_at > now)
        return;
    live->sample_at = now + SAMPLE_EVERY_MS;
    if (workers_submit(live->core->crew, WORKERS_QUICK, sample, live_ref(live), &ignored) < 0)
        live_free(live); // too busy: the next one covers the time
}
