/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what sandboxes use; see measure.h. */
#include "core/sandbox/measure.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_ids.h"
#include "core/sandbox/mailbox.h"
#include "core/sandbox/sandbox_box.h"
#include "core/network/outlet.h"

#include <string.h>

#define FIRST_SAMPLE_MS 1000
#define SAMPLE_EVERY_MS 5000
#define RECORD_EVERY_MS 60000 // what changes little
#define LITTLE_CPU_MS 10
#define LITTLE_EGRESS 4096 // bytes
#define MIB (1024.0 * 1024.0)

static int64_t mib_ms(double bytes, int64_t ms)
{
    return (int64_t)(bytes / MIB * (double)ms);
}

/*
 * Memory is taken as the mean of both ends of the interval; in the first one, which may have been the whole life of a short
 * command, as the mean of what is there and the most there was.
 */
static int64_t integral(const struct sandbox *sandbox, const struct cgroup_usage *usage,
                        int64_t now)
{
    double before = (double)sandbox->sampled_memory;
    if (sandbox->sampled_memory == 0) // an earlier server has measured it before, or nobody
        before = (double)(sandbox->record.counted_at > 0 ? usage->memory_bytes
                                                         : usage->memory_peak_bytes);
    return mib_ms((before + (double)usage->memory_bytes) / 2, now - sandbox->sampled_ms);
}

/* Of the box so far; where it cannot be read, what was read last. */
static int64_t egress_bytes(struct sandbox *sandbox)
{
    struct error ignored = {0};
    int64_t bytes = sandbox->counted_egress_bytes;

    if (outlet_is_there(sandbox->sandboxes->outlets, box_slot(sandbox->box)))
        (void)outlet_bytes(sandbox->sandboxes->outlets, box_slot(sandbox->box), &bytes, &ignored);
    if (bytes < sandbox->counted_egress_bytes) // its network was closed meanwhile: it counts anew
        sandbox->counted_egress_bytes = 0;
    return bytes;
}

static void take_usage(struct sandbox *sandbox, const struct cgroup_usage *usage,
                       struct measure *out)
{
    int64_t now = (int64_t)clock_monotonic_ms();
    int64_t cpu_ms = (int64_t)(usage->cpu_usec / 1000);
    int64_t egress = egress_bytes(sandbox);

    if (sandbox->sampled_ms == 0)
        sandbox->sampled_ms = sandbox->created_ms;
    int64_t wall = (int64_t)clock_wall_ms();
    *out = (struct measure){
        .more = {.cpu_ms = cpu_ms - sandbox->counted_cpu_ms,
                 .memory_mib_ms = integral(sandbox, usage, now),
                 .egress_bytes = egress - sandbox->counted_egress_bytes},
        .counted_cpu_ms = cpu_ms,
        .counted_egress_bytes = egress,
        .since = wall - (now - sandbox->sampled_ms),
        .now = wall,
    };
    sandbox->counted_cpu_ms = cpu_ms;
    sandbox->counted_egress_bytes = egress;
    sandbox->sampled_memory = usage->memory_bytes;
    sandbox->sampled_ms = now;
}

int measure_take(struct sandbox *sandbox, struct measure *out, struct error *err)
{
    struct cgroup_usage usage = {0};

    if (box_usage(sandbox->box, &usage, err) < 0)
        return -1;
    take_usage(sandbox, &usage, out);
    return 0;
}

int measure_put(struct sandbox *sandbox, const struct measure *measure, struct error *err)
{
    struct usage_sample sample = {
        .sandbox_id = sandbox->id,
        .more = measure->more,
        .counted_cpu_ms = measure->counted_cpu_ms,
        .counted_egress_bytes = measure->counted_egress_bytes,
        .since = measure->since,
        .now = measure->now,
        .disk_bytes = measure->disk_bytes,
    };
    return store_usage_add(sandbox->sandboxes->store, &sample, err);
}

int64_t measure_pending(const struct sandbox *sandbox, int64_t from, int64_t to)
{
    int64_t now = (int64_t)clock_monotonic_ms();
    int64_t wall = (int64_t)clock_wall_ms();
    int64_t begin = sandbox->sampled_ms;
    int64_t end = to > 0 && to < wall ? now - (wall - to) : now;

    if (begin < now - (wall - from))
        begin = now - (wall - from);
    return sandbox->sampled_ms > 0 && begin < end
               ? mib_ms((double)sandbox->sampled_memory, end - begin)
               : 0;
}

/* Nothing runs in it but PID 1, or what does stands still: until it is used again, there is nothing to measure. */
static bool is_still(struct sandbox *sandbox, const struct cgroup_usage *usage)
{
    return usage->procs <= 1 || sandbox_is_in(sandbox, sandbox_in(SANDBOX_PAUSED));
}

/* What is not recorded now is in the next measure. */
static bool is_worth_recording(struct sandbox *sandbox, const struct cgroup_usage *usage,
                               bool is_last)
{
    int64_t cpu_ms = (int64_t)(usage->cpu_usec / 1000) - sandbox->counted_cpu_ms;
    double grown = (double)usage->memory_bytes - (double)sandbox->sampled_memory;
    int64_t age = (int64_t)clock_monotonic_ms() - sandbox->sampled_ms;

    int64_t egress = egress_bytes(sandbox) - sandbox->counted_egress_bytes;

    return sandbox->sampled_memory == 0 || egress >= (is_last ? 1 : LITTLE_EGRESS) || grown > MIB ||
           grown < -MIB || cpu_ms >= (is_last ? 1 : LITTLE_CPU_MS) ||
           (!is_last && age >= RECORD_EVERY_MS);
}

static bool has_no_slot(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    return sandbox->record.box_slot == SANDBOX_NO_SLOT;
}

/* False: there is nothing to be recorded, for now: it is in use, or gone, or little has happened. *seen: what it uses, where that could be looked at. */
static bool try_measure(struct sandbox *sandbox, struct measure *measure, struct gauge_sample *seen)
{
    struct cgroup_usage usage = {0};
    struct error ignored = {0};
    unsigned noticed = sandbox->n_noticed;
    autobox held = sandbox_try_box(sandbox);

    if (!held && has_no_slot(sandbox))
        sandbox->n_measured = noticed;
    if (!held)
        return false;
    box_settle(sandbox->box);
    if (box_usage(sandbox->box, &usage, &ignored) < 0)
        return false;
    *seen = (struct gauge_sample){.at = (int64_t)clock_wall_ms(),
                                  .cpu_us = (int64_t)usage.cpu_usec,
                                  .memory_bytes = (int64_t)usage.memory_bytes};
    bool is_last = is_still(sandbox, &usage);
    if (is_last)
        sandbox->n_measured = noticed;
    if (!is_worth_recording(sandbox, &usage, is_last))
        return false;
    take_usage(sandbox, &usage, measure);
    return true;
}

/* What its own files take now; 0: not known. */
static int64_t measure_disk(struct sandbox *sandbox)
{
    autofree char *scratch = sandbox_scratch(sandbox);
    struct error ignored = {0};
    uint64_t bytes = 0;

    if (!scratch || volume_scratch_usage(engine_volume(sandbox->sandboxes->engine), scratch, false,
                                         &bytes, &ignored) < 0)
        return 0;
    return (int64_t)bytes;
}

static void sample(struct sandbox *sandbox, void *data)
{
    struct measure measure = {0};
    struct gauge_sample seen = {0};
    struct error err = {0};

    (void)data;
    bool is_worth_it = try_measure(sandbox, &measure, &seen);
    if (is_worth_it)
        seen.disk_bytes = measure.disk_bytes = measure_disk(sandbox);
    if (seen.at)
        gauge_history_add(sandbox->sandboxes->histories, &sandbox->history, &seen);
    if (is_worth_it && measure_put(sandbox, &measure, &err) < 0)
        log_warn("what a sandbox uses could not be recorded", F_SANDBOX(sandbox->id),
                 F("error", (const char *)err.text));
    sandbox->is_sample_posted = false;
}

bool measure_is_done(const struct sandbox *sandbox)
{
    return sandbox->n_measured == sandbox->n_noticed;
}

void measure_tick(struct sandbox *sandbox, int64_t now)
{
    if (measure_is_done(sandbox)) {
        sandbox->sample_ms = 0;
        return;
    }
    if (sandbox->sample_ms == 0)
        sandbox->sample_ms = now + FIRST_SAMPLE_MS;
    if (sandbox->sample_ms > now)
        return;
    sandbox->sample_ms = now + SAMPLE_EVERY_MS;
    if (!atomic_exchange(&sandbox->is_sample_posted, true))
        mailbox_post(sandbox, sample, NULL);
}
