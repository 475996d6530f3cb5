/* SPDX-License-Identifier: Apache-2.0 */
/* What a webhook is told next; see target.h. */
#include "hook/target.h"

#include "core/event/channel.h"
#include "core/event/event_kind.h"

#include <stdio.h>

#define AT_ONCE 64
#define SCANNED 256

void target_clear(struct target *target)
{
    webhook_info_clear(&target->hook);
    *target = (struct target){0};
}

static int choose(struct target *target, const struct event_info *event, target_render render,
                  struct buffer *out, struct error *err)
{
    char spare[EVENT_KIND];

    (void)snprintf(target->event_kind, sizeof target->event_kind, "%s", event_kind(event, spare));
    target->event_number = event->serial;
    return render(event, out, err) < 0 ? -1 : 1;
}

/* And what its key may see now. */
static bool is_wanted(const struct target *target, const struct event_info *event)
{
    return webhook_wants(&target->hook, event) && actor_sees(&target->actor, &event->owner);
}

static int look_in_memory(struct target *target, struct shared_event **events, int count,
                          target_render render, struct buffer *out, struct error *err)
{
    for (int i = 0; i < count; i++) {
        if (is_wanted(target, &events[i]->info))
            return choose(target, &events[i]->info, render, out, err);
        target->place = events[i]->info.serial;
    }
    return 0;
}

/* Some may have been forgotten before they were told. */
static int look_for_losses(struct target *target, struct event_channel *events,
                           struct webhooks *webhooks, struct error *err)
{
    struct event_range range;

    if (event_range(events, &range, err) < 0)
        return -1;
    if (target->place >= range.forgotten)
        return 0;
    target->place = range.forgotten;
    return webhook_pass(webhooks, &target->hook, range.forgotten, true, err);
}

static int look_in_store(struct target *target, struct event_channel *events,
                         struct webhooks *webhooks, target_render render, struct buffer *out,
                         struct error *err)
{
    const struct event_scan scan = {
        .owner = target->hook.owner, .after = target->place, .scanned = SCANNED};
    autoclear(event_infos) found = {0};
    int64_t reached = target->place;

    if (event_scan(events, &scan, &found, &reached, err) < 0)
        return -1;
    int64_t before = target->place;
    if (look_for_losses(target, events, webhooks, err) < 0)
        return -1;
    if (target->place != before)
        return 0;
    for (size_t i = 0; i < found.count; i++) {
        if (is_wanted(target, &found.items[i]))
            return choose(target, &found.items[i], render, out, err);
        target->place = found.items[i].serial;
    }
    target->place = reached;
    return 0;
}

int target_next(struct target *target, struct event_channel *events, struct webhooks *webhooks,
                target_render render, struct buffer *out, bool *is_more, struct error *err)
{
    struct shared_event *shared[AT_ONCE];
    int count = event_channel_next(events, target->place, shared, AT_ONCE);

    *is_more = count < 0 || count == AT_ONCE;
    if (count < 0)
        return look_in_store(target, events, webhooks, render, out, err);
    int result = look_in_memory(target, shared, count, render, out, err);
    for (int i = 0; i < count; i++)
        shared_event_unref(shared[i]);
    return result;
}
