/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of sandboxes that are there; create.c makes them. See sandbox.h. */
#include "core/sandbox/sandbox.h"

#include "base/clock.h"
#include "base/label.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/sandbox/ending.h"
#include "core/sandbox/sandbox_object.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/measure.h"
#include "core/sandbox/sandbox_event.h"
#include "core/sandbox/sandbox_info_impl.h"
#include "core/sandbox/sandbox_modify.h"
#include "base/strings.h"
#include "engine/files.h"
#include "core/sandbox/registry.h"

#include <stdlib.h>
#include <string.h>

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

/* Whether what the store says of it is what everybody was told. */
static bool is_living(struct sandboxes *sandboxes, const char *id)
{
    autoptr(sandbox) sandbox = sandboxes->registry ? registry_find(sandboxes->registry, id) : NULL;
    return !sandbox || !sandbox_is_over(sandbox);
}

/* A token is told of its own sandbox alone, also where others are called the same. */
static int find_own(struct sandboxes *sandboxes, const struct actor *token, const char *name,
                    char id[ID_TEXT], struct error *err)
{
    autosandbox record = {0};

    if (lookup_record(sandboxes, token, token->sandbox, &record, err) < 0 || record.ended_at != 0 ||
        !record.name || strcmp(record.name, name) != 0)
        return error_missing(err, "sandbox", name);
    memcpy(id, token->sandbox, ID_TEXT);
    return 0;
}

int sandbox_check_selected(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                           struct error *err)
{
    autosandbox record = {0};

    if (!*actor->selector)
        return 0;
    if (lookup_record(sandboxes, actor, id, &record, err) < 0)
        return -1;
    return actor_selects(actor, record.labels) ? 0 : error_missing(err, "sandbox", id);
}

/* One's own comes before those of others, who choose their names too. */
static int find_seen(struct sandboxes *sandboxes, const struct actor *actor, const char *name,
                     char id[ID_TEXT], struct error *err)
{
    const struct owner own = actor_owner(actor), seen = actor_filter(actor);
    struct error missing = {0};

    if (store_sandbox_find_own_name(sandboxes->store, &own, name, id, &missing) == 0)
        return 0;
    if (!error_is(&missing, ERROR_NOT_FOUND)) {
        *err = missing;
        return -1;
    }
    return store_sandbox_find_name(sandboxes->store, &seen, name, id, err);
}

/* There is none alive; of those that were, the last is told. */
static int tell_ended(struct sandboxes *sandboxes, const struct actor *actor, const char *name,
                      struct error *err)
{
    struct sandbox_filter filter = {.owner = actor_filter(actor),
                                    .name = name,
                                    .states = SANDBOX_OVER,
                                    .is_descending = true,
                                    .page.limit = 1};
    autosandboxes found = {0};
    struct error ignored = {0};

    if (store_sandbox_list(sandboxes->store, &filter, &found, &ignored) == 0 && found.count == 1 &&
        found.rows[0].state != SANDBOX_DELETED && actor_selects(actor, found.rows[0].labels))
        return error_refuse(err, ERROR_NOT_FOUND, "sandbox",
                            "sandbox '%s' has ended; the last of this name was sandbox '%s'", name,
                            found.rows[0].id);
    return -1;
}

int sandbox_find_name(struct sandboxes *sandboxes, const struct actor *actor, const char *name,
                      char id[ID_TEXT], struct error *err)
{
    const struct owner seen = actor_filter(actor);

    if (*actor->sandbox)
        return find_own(sandboxes, actor, name, id, err);
    int result = find_seen(sandboxes, actor, name, id, err);
    if (result == 0 && is_living(sandboxes, id))
        return 0;
    if (result == 0 || error_is(err, ERROR_AMBIGUOUS)) {
        lookup_settle_named(sandboxes, &seen, name);
        result = find_seen(sandboxes, actor, name, id, err);
    }
    return result < 0 && error_is(err, ERROR_NOT_FOUND) ? tell_ended(sandboxes, actor, name, err)
                                                        : result;
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

/* What both choose. Borrows their texts. */
static struct label_selector join(const struct label_selector *a, const struct label_selector *b)
{
    size_t more = b ? b->count : 0;
    struct label_selector both = {.terms = xcalloc(a->count + more + 1, sizeof *both.terms),
                                  .count = a->count + more};

    memcpy(both.terms, a->terms, a->count * sizeof *both.terms);
    if (more)
        memcpy(both.terms + a->count, b->terms, more * sizeof *both.terms);
    return both;
}

/* Lets the store come up with ends of these that were told. True: there were some. */
static bool settle_listed(struct sandboxes *sandboxes, const struct sandbox_list *list)
{
    bool is_any = false;

    for (size_t i = 0; i < list->count; i++) {
        const struct sandbox_record *row = &list->rows[i];
        if (sandbox_in(row->state) & SANDBOX_OVER || is_living(sandboxes, row->id))
            continue;
        lookup_settle(sandboxes, row->id);
        is_any = true;
    }
    return is_any;
}

int sandbox_list(struct sandboxes *sandboxes, const struct actor *actor,
                 const struct sandbox_filter *filter, struct sandbox_infos *out, struct error *err)
{
    struct sandbox_filter own = *filter;
    autosandboxes found = {0};
    autoselector selector = {0};
    autoselector both = {0};

    own.owner = actor_filter(actor);
    own.owner.project = filter->owner.project;
    if (*actor->selector && label_selector_parse(actor->selector, &selector, err) < 0)
        return -1;
    if (*actor->selector) {
        both = join(&selector, filter->labels);
        own.labels = &both;
    }
    if (store_sandbox_list(sandboxes->store, &own, &found, err) < 0)
        return -1;
    if (settle_listed(sandboxes, &found)) {
        sandbox_list_clear(&found);
        if (store_sandbox_list(sandboxes->store, &own, &found, err) < 0)
            return -1;
    }
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
    bool was_creating = sandbox_is_in(sandbox, sandbox_in(SANDBOX_CREATING));
    sandbox->is_unwanted = was_creating; // one that waits for its runtime waits no longer
    if (sandbox_await_calm(sandbox, err) < 0)
        return -1;
    if (was_creating && sandbox_is_over(sandbox))
        return delete_record(sandboxes, actor, id, err);
    if (ending_run(sandbox, STEP_DELETE, "deleted", err) < 0)
        return error_is(err, ERROR_GONE) ? error_missing(err, "sandbox", id) : -1;
    return 0;
}

void sandbox_end_later(struct sandboxes *sandboxes, const char *id, const char *reason)
{
    autoptr(sandbox) sandbox = registry_find(sandboxes->registry, id);
    if (sandbox && !sandbox_is_over(sandbox))
        ending_start(sandbox, reason);
}

void sandbox_abandon(struct sandboxes *sandboxes, const char *id)
{
    sandbox_end_later(sandboxes, id, "undelivered");
}

int sandbox_set_env(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                    const struct env_change *changes, size_t n_changes, struct sandbox_info *out,
                    struct error *err)
{
    const struct sandbox_changes all = {.env = changes, .n_env = n_changes};
    return sandbox_modify(sandboxes, actor, id, &all, out, err);
}
