/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of events, from their types and reasons; see event_kind.h. */
#include "core/event/event_kind.h"

#include "base/auto.h"
#include "base/mem.h"
#include "core/event/event.h"

#include <stdio.h>
#include <string.h>

/* The first row that fits; a reason of NULL fits all. */
static const struct {
    const char *type, *reason, *kind;
} rows[] = {
    {EVENT_CREATE, NULL, "sandbox.created"},
    {EVENT_PROGRESS, NULL, "sandbox.progress"},
    {EVENT_STARTED, "created", "sandbox.started"},
    {EVENT_STARTED, "job", "job.started"},
    {EVENT_STARTED, "terminal", "terminal.started"},
    {EVENT_STARTED, "context", "context.started"},
    {EVENT_STARTED, NULL, "execution.started"},
    {EVENT_COMPLETED, "job", "job.ended"},
    {EVENT_COMPLETED, "terminal", "terminal.ended"},
    {EVENT_COMPLETED, "context", "context.ended"},
    {EVENT_COMPLETED, NULL, "execution.ended"},
    {EVENT_FAILED, NULL, "sandbox.failed"},
    {EVENT_TERMINATED, NULL, "sandbox.ended"},
    {EVENT_DESTROY, NULL, "sandbox.deleted"},
    {EVENT_PAUSE, NULL, "sandbox.paused"},
    {EVENT_RESUME, NULL, "sandbox.resumed"},
    {EVENT_LIMITS, NULL, "sandbox.changed"},
    {EVENT_CHANGE, NULL, "sandbox.changed"},
    {EVENT_PROCESSES_LOST, NULL, "sandbox.processes_lost"},
    {EVENT_CHECKPOINT, "restored", "checkpoint.restored"},
    {EVENT_CHECKPOINT, "deleted", "checkpoint.deleted"},
    {EVENT_CHECKPOINT, NULL, "checkpoint.created"},
    {EVENT_SNAPSHOT, "deleted", "snapshot.deleted"},
    {EVENT_SNAPSHOT, NULL, "snapshot.created"},
    {EVENT_NETWORK, "refused", "network.refused"},
    {EVENT_NETWORK, "observed", "network.observed"},
    {EVENT_NETWORK, NULL, "network.changed"},
    {EVENT_KEY, "revoked", "key.revoked"},
    {EVENT_KEY, NULL, "key.created"},
    {EVENT_WEBHOOK, "disabled", "webhook.disabled"},
    {EVENT_WEBHOOK, NULL, "webhook.test"},
};

const char *const event_kinds[] = {
    "sandbox.created",
    "sandbox.progress",
    "sandbox.started",
    "sandbox.changed",
    "sandbox.paused",
    "sandbox.resumed",
    "sandbox.ended",
    "sandbox.failed",
    "sandbox.deleted",
    "sandbox.processes_lost",
    "execution.started",
    "execution.ended",
    "job.started",
    "job.ended",
    "terminal.started",
    "terminal.ended",
    "context.started",
    "context.ended",
    "checkpoint.created",
    "checkpoint.restored",
    "checkpoint.deleted",
    "snapshot.created",
    "snapshot.deleted",
    "network.changed",
    "network.refused",
    "network.observed",
    "key.created",
    "key.revoked",
    "webhook.disabled",
    "webhook.test",
    NULL,
};

const char *event_kind(const struct event_info *info, char spare[EVENT_KIND])
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].type, info->type) == 0 &&
            (!rows[i].reason || (info->reason && strcmp(rows[i].reason, info->reason) == 0)))
            return rows[i].kind;
    }
    (void)snprintf(spare, EVENT_KIND, "sandbox.%s", info->type);
    return spare;
}

bool event_pattern_matches(const char *pattern, const char *kind)
{
    size_t length = strlen(pattern);

    if (strcmp(pattern, "*") == 0)
        return true;
    if (length > 2 && strcmp(pattern + length - 2, ".*") == 0)
        return strncmp(pattern, kind, length - 1) == 0;
    return strcmp(pattern, kind) == 0;
}

bool event_patterns_match(const char *const *patterns, const char *kind)
{
    if (!patterns || !*patterns)
        return true;
    for (; *patterns; patterns++) {
        if (event_pattern_matches(*patterns, kind))
            return true;
    }
    return false;
}

bool event_pattern_is_known(const char *pattern)
{
    for (const char *const *kind = event_kinds; *kind; kind++) {
        if (event_pattern_matches(pattern, *kind))
            return true;
    }
    return false;
}
