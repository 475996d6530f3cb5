/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a sandbox, changed while it lives; see sandbox_limits.h. */
#include "core/sandbox/sandbox_limits.h"

#include "base/clock.h"
#include "base/size.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/sandbox_event.h"
#include "core/sandbox/sandbox_info_impl.h"

static struct volume *volume_of(struct sandbox *sandbox)
{
    return engine_volume(sandbox->sandboxes->engine);
}

/* The kernel would let it be over its limit: every later write fails then, also those that make room. */
static int check_disk(struct sandbox *sandbox, const char *scratch, int64_t bytes,
                      struct error *err)
{
    char used_text[SIZE_TEXT];
    char text[SIZE_TEXT];
    uint64_t used = 0;

    if (volume_scratch_usage(volume_of(sandbox), scratch, true, &used, err) < 0)
        return -1;
    if (used <= (uint64_t)bytes)
        return 0;
    return error_refuse(err, ERROR_STATE, "disk",
                        "disk: the files of the sandbox take %s, more than %s: remove some first",
                        size_format(used, used_text), size_format((uint64_t)bytes, text));
}

/* Its box, or where it has none the files it will get one for. The caller holds the box. */
static int apply(struct sandbox *sandbox, const struct limits *limits, struct error *err)
{
    const struct volume_limits disk = {.bytes = (uint64_t)limits->disk_bytes};

    if (sandbox->box && !sandbox->is_box_over)
        return box_set_limits(sandbox->box, limits, err);
    autofree char *scratch = sandbox_scratch(sandbox);
    return scratch ? volume_scratch_limit(volume_of(sandbox), scratch, &disk, err) : 0;
}

static int check_use(struct sandbox *sandbox, const struct limits *before,
                     const struct limits *wanted, struct error *err)
{
    bool is_lower = wanted->disk_bytes != 0 &&
                    (before->disk_bytes == 0 || wanted->disk_bytes < before->disk_bytes);
    autofree char *scratch = sandbox_scratch(sandbox);

    if (!is_lower)
        return 0;
    if (scratch)
        return check_disk(sandbox, scratch, wanted->disk_bytes, err);
    return sandbox->box ? check_disk(sandbox, box_scratch(sandbox->box), wanted->disk_bytes, err)
                        : 0;
}

static void add_facts(struct event *event, const struct limits *limits)
{
    event_number(event, "memory_bytes", limits->memory_bytes);
    event_number(event, "cpu_millicores", limits->cpu_millicores);
    event_number(event, "disk_bytes", limits->disk_bytes);
    event_number(event, "processes", limits->max_processes);
}

static int put(struct sandbox *sandbox, const struct sandbox_record *next, struct error *err)
{
    struct event event = {.type = EVENT_LIMITS, .reason = "changed", .now = next->updated_at};
    struct store *store = sandbox->sandboxes->store;
    autotransaction together = {0};
    bool is_put;

    add_facts(&event, &next->limits);
    do
        is_put = store_begin(store, STORE_DURABLE, &together, err) == 0 &&
                 store_sandbox_update(store, next, SANDBOX_PART_LIMITS, SANDBOX_ALIVE, err) == 0 &&
                 event_put(sandbox, &event, err) == 0 && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* The caller holds the box. */
static int record(struct sandbox *sandbox, const struct limits *limits, struct sandbox_info *out,
                  struct error *err)
{
    autosandbox next = {0};

    autolock(&sandbox->record_lock);
    sandbox_copy(sandbox, &next);
    next.limits = *limits;
    next.updated_at = (int64_t)clock_wall_ms();
    if (put(sandbox, &next, err) < 0)
        return -1;
    {
        autolock(&sandbox->lock);
        sandbox->record.limits = *limits;
    }
    sandbox_info_take(out, &next);
    return 0;
}

static int change(struct sandbox *sandbox, const struct actor *actor, const struct limits *asked,
                  struct sandbox_info *out, struct error *err)
{
    struct error ignored = {0};
    autobox held = sandbox_hold_box(sandbox);

    if (sandbox_is_in(sandbox, SANDBOX_ENDING) || sandbox_is_over(sandbox))
        return sandbox_refuse_ending(err);
    const struct limits before = sandbox->record.limits; // changed by those who hold the box alone
    const struct limits wanted = limits_or_default(asked, &before);
    if (check_use(sandbox, &before, &wanted, err) < 0 ||
        quota_change(sandbox->sandboxes->accounts, actor, &sandbox->share, &wanted, err) < 0)
        return -1;
    if (apply(sandbox, &wanted, err) == 0 && record(sandbox, &wanted, out, err) == 0)
        return 0;
    (void)apply(sandbox, &before, &ignored); // there was room for it until now
    (void)quota_change(sandbox->sandboxes->accounts, NULL, &sandbox->share, &before, &ignored);
    return -1;
}

int sandbox_set_limits(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                       const struct limits *asked, struct sandbox_info *out, struct error *err)
{
    const struct limits *most = &sandboxes->settings->ceilings.sandbox;
    autoptr(sandbox) sandbox = NULL;

    if (limits_check(asked, err) < 0 ||
        limits_check_most(asked, most, "this server", true, err) < 0 ||
        lookup_sandbox(sandboxes, actor, id, &sandbox, err) < 0)
        return -1;
    sandbox_touch(sandbox);
    return change(sandbox, actor, asked, out, err);
}
