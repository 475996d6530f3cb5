/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of sandboxes that are there; create.c makes them. See sandbox.h. */
#include "core/sandbox/sandbox.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/sandbox/ending.h"
#include "core/sandbox/sandbox_object.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/measure.h"
#include "core/sandbox/sandbox_event.h"
#include "core/sandbox/sandbox_info_impl.h"
#include "base/strings.h"
#include "engine/files.h"
#include "core/sandbox/registry.h"

#include <string.h>
#include <stdlib.h>

#define ENV_MAX (256u << 10)

int sandbox_get(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                bool with_deleted, struct sandbox_info *out, struct error *err)
{
    autosandbox record = {0};

    lookup_settle(sandboxes, id);
    if (lookup_record(sandboxes, actor, id, &record, err) < 0)
        return -1;
    if (record.state == SANDBOX_DELETED && !with_deleted)
        return error_missing(err, "sandbox", id);
    autoptr(sandbox) sandbox = registry_find(sandboxes->registry, id);
    if (sandbox && sandbox_is_in(sandbox, sandbox_in(SANDBOX_STOPPING)) &&
        !(sandbox_in(record.state) & SANDBOX_OVER))
        record.state = SANDBOX_STOPPING; // never written down
    if (sandbox && sandbox->is_registered)
        record.memory_mib_ms += measure_pending(sandbox, 0, 0);
    sandbox_info_take(out, &record);
    return 0;
}

int sandbox_status_quick(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                         struct sandbox_status *out)
{
    autoptr(sandbox) sandbox = registry_find(sandboxes->registry, id);

    if (!sandbox || !actor_sees_in(actor, &sandbox->record.owner, id))
        return 0;
    autolock(&sandbox->lock);
    *out = (struct sandbox_status){sandbox->record.state, sandbox->record.mode,
                                   sandbox->record.exit_code, sandbox->record.expires_at};
    return 1;
}

int sandbox_status(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   struct sandbox_status *out, struct error *err)
{
    autosandbox record = {0};

    if (sandbox_status_quick(sandboxes, actor, id, out) == 1)
        return 0;
    if (lookup_record(sandboxes, actor, id, &record, err) < 0)
        return -1;
    *out = (struct sandbox_status){record.state, record.mode, record.exit_code, record.expires_at};
    return 0;
}

int sandbox_list(struct sandboxes *sandboxes, const struct actor *actor,
                 const struct sandbox_filter *filter, struct sandbox_infos *out, struct error *err)
{
    struct sandbox_filter own = *filter;
    autosandboxes found = {0};

    own.owner = actor_filter(actor);
    own.owner.project = filter->owner.project;
    if (store_sandbox_list(sandboxes->store, &own, &found, err) < 0)
        return -1;
    sandbox_infos_take(out, &found);
    return 0;
}

/*
 * One that has ended: only the record is left. Or one that could not be made, when the disk was too full to record even that: whoever makes
 * one has it in memory first.
 */
static int delete_record(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                         struct error *err)
{
    struct event event = {
        .type = EVENT_DESTROY, .reason = "deleted", .now = (int64_t)clock_wall_ms()};
    autosandbox record = {0};
    autotransaction together = {0};
    bool is_put;

    if (lookup_record(sandboxes, actor, id, &record, err) < 0)
        return -1;
    if (record.state == SANDBOX_DELETED)
        return error_missing(err, "sandbox", id);
    if (lifecycle_take(&record, STEP_DELETE, "deleted", event.now, err) < 0)
        return -1;
    record.updated_at = event.now;
    record.box_slot = SANDBOX_NO_SLOT;
    do
        is_put =
            store_begin(sandboxes->store, STORE_FAST, &together, err) == 0 &&
            store_sandbox_update(sandboxes->store, &record, SANDBOX_PART_STATE | SANDBOX_PART_BOX,
                                 SANDBOX_OVER | sandbox_in(SANDBOX_CREATING), err) == 0 &&
            event_write(sandboxes->store, record.id, &record.owner, &event, err) == 0 &&
            store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

int sandbox_delete(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   struct error *err)
{
    autoptr(sandbox) sandbox = registry_find(sandboxes->registry, id);

    if (!sandbox)
        return delete_record(sandboxes, actor, id, err);
    if (!actor_sees_in(actor, &sandbox->record.owner, id))
        return error_missing(err, "sandbox", id);
    if (sandbox_await_calm(sandbox, err) < 0 ||
        ending_run(sandbox, STEP_DELETE, "deleted", err) < 0)
        return error_is(err, ERROR_GONE) ? error_missing(err, "sandbox", id) : -1;
    return 0;
}

void sandbox_abandon(struct sandboxes *sandboxes, const char *id)
{
    autoptr(sandbox) sandbox = registry_find(sandboxes->registry, id);
    if (sandbox && !sandbox_is_over(sandbox))
        ending_start(sandbox, "undelivered");
}

static int change_env(const char *const *before, const struct env_change *changes, size_t n_changes,
                      const char *const **out, struct error *err)
{
    autostrings env = {0};

    for (; before && *before; before++)
        strings_add(&env, *before);
    for (size_t i = 0; i < n_changes; i++) {
        if (!*changes[i].name || strchr(changes[i].name, '='))
            return error_set(err, ERROR_INVALID, "'%.80s' cannot be the name of a variable",
                             changes[i].name);
        strings_set(&env, changes[i].name, changes[i].value);
    }
    autofree char *packed = strings_pack((const char *const *)env.items);
    if (strlen(packed) > ENV_MAX)
        return error_set(err, ERROR_INVALID, "the environment is at most %u KiB", ENV_MAX >> 10);
    *out = strings_list(packed);
    return 0;
}

static void show_env(struct sandbox *sandbox, const char *const *env)
{
    autolock(&sandbox->lock);
    free((void *)sandbox->record.command.env);
    sandbox->record.command.env = strings_copy(env);
}

static int put_env(struct sandbox *sandbox, const struct env_change *changes, size_t n_changes,
                   struct sandbox_info *out, struct error *err)
{
    autosandbox next = {0};
    const char *const *env = NULL;

    autolock(&sandbox->record_lock);
    sandbox_copy(sandbox, &next);
    if (change_env(next.command.env, changes, n_changes, &env, err) < 0)
        return -1;
    free((void *)next.command.env);
    next.command.env = env;
    next.updated_at = (int64_t)clock_wall_ms();
    if (store_sandbox_update(sandbox->sandboxes->store, &next, SANDBOX_PART_ENV, SANDBOX_ALIVE,
                             err) < 0)
        return -1;
    show_env(sandbox, env);
    sandbox_info_take(out, &next);
    return 0;
}

int sandbox_set_env(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                    const struct env_change *changes, size_t n_changes, struct sandbox_info *out,
                    struct error *err)
{
    autoptr(sandbox) sandbox = NULL;

    if (lookup_sandbox(sandboxes, actor, id, &sandbox, err) < 0)
        return -1;
    sandbox_touch(sandbox);
    return put_env(sandbox, changes, n_changes, out, err);
}
