/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of executions and jobs; see execution.h. */
#include "core/execution/execution.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/registry.h"
#include "core/execution/executions.h"
#include "core/execution/execution_info_impl.h"
#include "core/execution/execution_start.h"
#include "core/execution/execution_launch.h"

#include "base/clock.h"
#include "core/sandbox/ending.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_event.h"
#include "core/account/once.h"
#include "core/execution/queue.h"
#include "engine/files.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define STOP_PATIENCE_MS 5000
#define KILL_AGAIN_MS 500 // should the first have been lost

static const char *noun_of(const enum execution_kind *kind)
{
    return kind ? execution_kind_noun(*kind) : "execution";
}

static int check_waiting(const struct execution_request *request, struct error *err)
{
    if (request->n_files || request->stdin_stream || request->input || request->has_input ||
        request->once || request->kind == EXECUTION_TERMINAL ||
        request->standard_output.target != OUTPUT_TO_NEW ||
        request->standard_error.target != OUTPUT_TO_NEW)
        return error_set(
            err, ERROR_INVALID,
            "a command that waits has no files, input, terminal or streams of the user's");
    return 0;
}

/* What may not run has a record all the same. */
static int record_refusal(struct sandbox *sandbox, const struct actor *actor,
                          const struct execution_request *request, struct execution_record *out,
                          struct error *err)
{
    autoptr(execution) execution = NULL;
    struct event event = {
        .type = EVENT_COMPLETED, .reason = "execution", .now = (int64_t)clock_wall_ms()};
    autotransaction together = {0};
    bool is_put;

    if (check_waiting(request, err) < 0 ||
        execution_describe(sandbox, actor, request, &execution, err) < 0)
        return -1;
    struct execution_record *record = &execution->record;
    record->state = EXECUTION_FAILED;
    record->exit.cause = EXECUTION_NOT_RUN;
    record->started_at = record->ended_at = record->updated_at = event.now;
    event_fact(&event, "execution", execution->id);
    event_fact(&event, "state", execution_state_name(record->state));
    do {
        record->number = 0; // the store gives it one
        is_put = store_begin(sandbox->sandboxes->store, STORE_FAST, &together, err) == 0 &&
                 store_execution_add(sandbox->sandboxes->store, record, err) == 0 &&
                 event_put(sandbox, &event, err) == 0 && store_commit(&together, err) == 0;
    } while (!is_put && store_again(&together, err));
    if (!is_put)
        return -1;
    execution_copy(execution, out);
    return 0;
}

static int start_command(struct executions *executions, const struct actor *actor,
                         const char *sandbox_id, const struct execution_request *request,
                         struct execution_record *out, bool *was_paused, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;

    if (lookup_sandbox(executions->sandboxes, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    if (request->refused)
        return record_refusal(sandbox, actor, request, out, err);
    return execution_start_in(sandbox, actor, request, out, was_paused, err);
}

int execution_start(struct executions *executions, const struct actor *actor,
                    const char *sandbox_id, const struct execution_request *request,
                    struct execution_info *out, struct error *err)
{
    bool was_paused = false;
    return execution_start_awake(executions, actor, sandbox_id, request, out, &was_paused, err);
}

int execution_start_awake(struct executions *executions, const struct actor *actor,
                          const char *sandbox_id, const struct execution_request *request,
                          struct execution_info *out, bool *was_paused, struct error *err)
{
    autoexecution record = {0};
    char earlier[ID_TEXT];
    bool is_new = false;

    *was_paused = false;

    if (once_claim(executions->sandboxes->accounts, actor, request->once, &is_new, earlier, err) <
        0)
        return -1;
    if (!is_new)
        return execution_get(executions, actor, earlier, &request->kind, out, err);
    if (start_command(executions, actor, sandbox_id, request, &record, was_paused, err) < 0) {
        once_release(executions->sandboxes->accounts, actor, request->once);
        return -1;
    }
    execution_info_take(out, &record);
    return 0;
}

/* The caller has a place in the sandbox and one in the queue for it. */
static int record_queued(struct sandbox *sandbox, const struct actor *actor,
                         const struct execution_request *request, struct execution_record *out,
                         struct error *err)
{
    struct executions *executions = sandbox->sandboxes->executions;
    autoptr(execution) execution = NULL;

    if (execution_describe(sandbox, actor, request, &execution, err) < 0)
        return -1;
    if (store_execution_add(executions->sandboxes->store, &execution->record, err) < 0) {
        execution_uncount(sandbox, execution);
        return -1;
    }
    execution->is_queued = true;
    execution_copy(execution, out);
    executions_add(executions, execution);
    queue_add(executions->queue, execution);
    return 0;
}

int execution_enqueue(struct executions *executions, const struct actor *actor,
                      const char *sandbox_id, const struct execution_request *request,
                      struct execution_info *out, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    autoexecution record = {0};
    bool was_paused = false;
    uint64_t restore_count;

    if (check_waiting(request, err) < 0 ||
        lookup_sandbox(executions->sandboxes, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    sandbox_touch(sandbox); // before its state is looked at: see sandbox_rest
    if (queue_reserve(executions->queue, err) < 0)
        return -1;
    if (execution_enter(sandbox, request->kind, &restore_count, &was_paused, err) < 0) {
        queue_give_back(executions->queue);
        return -1;
    }
    if (record_queued(sandbox, actor, request, &record, err) == 0) {
        execution_info_take(out, &record);
        return 0;
    }
    execution_leave(sandbox, request->kind);
    queue_give_back(executions->queue);
    return -1;
}

static bool is_visible(const struct execution_record *record, const struct actor *actor,
                       const enum execution_kind *kind)
{
    return actor_sees_in(actor, &record->owner, record->sandbox_id) &&
           (!kind || *kind == record->kind);
}

static bool copy_visible(struct execution *execution, const struct actor *actor,
                         const enum execution_kind *kind, struct execution_record *out)
{
    autolock(&execution->lock);
    if (!is_visible(&execution->record, actor, kind))
        return false;
    execution_record_copy(out, &execution->record);
    return true;
}

/* As execution_get_quick. */
static int find_quick(struct executions *executions, const struct actor *actor, const char *id,
                      const enum execution_kind *kind, struct execution_record *out,
                      struct error *err)
{
    autoptr(execution) execution = executions_find(executions, id);

    if (!execution)
        return 0;
    return copy_visible(execution, actor, kind, out) ? 1 : error_missing(err, noun_of(kind), id);
}

int execution_get_quick(struct executions *executions, const struct actor *actor, const char *id,
                        const enum execution_kind *kind, struct execution_info *out,
                        struct error *err)
{
    autoexecution record = {0};
    int known = find_quick(executions, actor, id, kind, &record, err);

    if (known == 1)
        execution_info_take(out, &record);
    return known;
}

/* As execution_get. */
static int find_execution(struct executions *executions, const struct actor *actor, const char *id,
                          const enum execution_kind *kind, struct execution_record *out,
                          struct error *err)
{
    autoexecution record = {0};

    int known = find_quick(executions, actor, id, kind, out, err);
    if (known != 0)
        return known == 1 ? 0 : -1;
    if (store_execution_get(executions->sandboxes->store, id, &record, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, noun_of(kind), id) : -1;
    if (!is_visible(&record, actor, kind))
        return error_missing(err, noun_of(kind), id);
    *out = record;
    record = (struct execution_record){0};
    return 0;
}

int execution_get(struct executions *executions, const struct actor *actor, const char *id,
                  const enum execution_kind *kind, struct execution_info *out, struct error *err)
{
    autoexecution record = {0};

    if (find_execution(executions, actor, id, kind, &record, err) < 0)
        return -1;
    execution_info_take(out, &record);
    return 0;
}

/* One page, from which the one that is meant is taken; -1 in *chosen: it is not there. */
static void choose(const struct execution_infos *list, const struct execution_selector *selector,
                   ssize_t *chosen)
{
    *chosen = -1;
    for (size_t i = 0; i < list->count; i++) {
        const struct execution_info *info = &list->items[i];
        if (selector->number ? info->number != selector->number
                             : !info->tag || strcmp(info->tag, selector->tag) != 0)
            continue;
        if (!execution_info_is_over(info)) {
            *chosen = (ssize_t)i;
            return;
        }
        if (*chosen < 0)
            *chosen = (ssize_t)i;
    }
}

int execution_find(struct executions *executions, const struct actor *actor, const char *sandbox_id,
                   const struct execution_selector *selector, struct execution_info *out,
                   struct error *err)
{
    struct execution_filter filter = {.sandbox_id = sandbox_id, .page = {.limit = PAGE_MAX}};
    autoclear(execution_infos) list = {0};
    ssize_t chosen;

    if (selector->number) { // they are listed in this order
        filter.is_ascending = true;
        filter.page =
            (struct page){.limit = 1,
                          .is_marked = true,
                          .after = {.at = selector->number - 1, .id = "~"}}; // behind every id
    }
    if (execution_list(executions, actor, &filter, &list, err) < 0)
        return -1;
    choose(&list, selector, &chosen);
    if (chosen < 0)
        return error_refuse(err, ERROR_NOT_FOUND, "execution",
                            "there is no such command in the sandbox");
    *out = list.items[chosen];
    list.items[chosen] = (struct execution_info){0};
    return 0;
}

static bool has_ended(struct executions *executions, const char *id)
{
    autoptr(execution) execution = executions_find(executions, id);

    if (!execution)
        return false;
    autolock(&execution->lock);
    return execution_is_over(&execution->record);
}

/* Lets the store come up with ends of these that were told. True: there were some. */
static bool settle_listed(struct executions *executions, const struct execution_list *list)
{
    bool is_any = false;

    for (size_t i = 0; i < list->count; i++) {
        const struct execution_record *row = &list->rows[i];
        if (execution_is_over(row) || !has_ended(executions, row->id))
            continue;
        lookup_settle(executions->sandboxes, row->sandbox_id);
        is_any = true;
    }
    return is_any;
}

int execution_list(struct executions *executions, const struct actor *actor,
                   const struct execution_filter *filter, struct execution_infos *out,
                   struct error *err)
{
    struct execution_filter own = *filter;
    autoexecutions found = {0};
    autosandbox row = {0};

    if (filter->sandbox_id)
        lookup_settle(executions->sandboxes, filter->sandbox_id);
    if (filter->sandbox_id &&
        lookup_record(executions->sandboxes, actor, filter->sandbox_id, &row, err) < 0)
        return -1;
    own.owner = actor_filter(actor);
    own.owner.project = filter->owner.project;
    if (store_execution_list(executions->sandboxes->store, &own, &found, err) < 0)
        return -1;
    if (settle_listed(executions, &found)) {
        execution_list_clear(&found);
        if (store_execution_list(executions->sandboxes->store, &own, &found, err) < 0)
            return -1;
    }
    execution_infos_take(out, &found);
    return 0;
}

/* That somebody asked for it is written down first: whatever happens then, it was cancelled. The caller holds record_lock. */
static int put_stop(struct sandbox *sandbox, struct execution *execution, const char *reason,
                    struct error *err)
{
    struct execution_record next = execution->record;

    next.stop_at = next.updated_at = (int64_t)clock_wall_ms();
    next.stop_reason = reason;
    if (store_execution_update(sandbox->sandboxes->store, &next, EXECUTION_PART_STOP,
                               EXECUTION_OPEN, err) < 0)
        return -1;
    autolock(&execution->lock);
    execution->record.stop_at = next.stop_at;
    free((char *)execution->record.stop_reason);
    execution->record.stop_reason = reason ? strdup(reason) : NULL;
    return 0;
}

static int record_stop(struct sandbox *sandbox, struct execution *execution, const char *reason,
                       bool *is_started, struct error *err)
{
    autolock(&sandbox->record_lock);
    if (!execution_is_over(&execution->record) && !execution->record.stop_at &&
        put_stop(sandbox, execution, reason, err) < 0)
        return -1;
    *is_started = execution->is_recorded && !execution_is_over(&execution->record);
    return 0;
}

static int stop_running(struct sandbox *sandbox, struct execution *execution, bool is_forced,
                        const char *reason, struct error *err)
{
    bool is_started = false;

    if (record_stop(sandbox, execution, reason, &is_started, err) < 0)
        return -1;
    if (!is_started)
        return 0; // one that is just being started is killed by whoever starts it
    if (!is_forced && execution->kill_ms == 0)
        execution->kill_ms = (int64_t)clock_monotonic_ms() + STOP_PATIENCE_MS;
    autobox held = sandbox_use_box(sandbox, err);
    if (!held)
        return 0; // it ends with its sandbox
    // A shell at a terminal ignores SIGTERM; that its terminal hangs up it does not.
    int gentle = execution->record.kind == EXECUTION_TERMINAL ? SIGHUP : SIGTERM;
    return box_signal(sandbox->box, execution->number, is_forced ? SIGKILL : gentle, is_forced,
                      err);
}

int execution_stop(struct executions *executions, const struct actor *actor, const char *id,
                   const enum execution_kind *kind, bool is_forced, const char *reason,
                   struct execution_info *out, struct error *err)
{
    autoexecution record = {0};

    if (find_execution(executions, actor, id, kind, &record, err) < 0)
        return -1;
    autoptr(sandbox) sandbox = registry_find(executions->sandboxes->registry, record.sandbox_id);
    autoptr(execution) execution = executions_find(executions, id);
    bool was_waiting = execution && queue_remove(executions->queue, execution);
    int result = 0;
    if (sandbox && execution && !execution_is_over(&record))
        result = stop_running(sandbox, execution, is_forced, reason, err);
    if (was_waiting)
        queue_end(executions->queue, execution, EXECUTION_CANCELLED, NULL);
    return result < 0 ? -1 : execution_get(executions, actor, id, kind, out, err);
}

/* That somebody asked for its end, whatever its state. Where it is in memory the caller holds record_lock. */
static int put_mark(struct executions *executions, struct execution *execution,
                    const struct execution_record *record, const char *reason, struct error *err)
{
    struct execution_record next = *record; // strings are borrowed

    next.updated_at = (int64_t)clock_wall_ms();
    if (next.stop_at == 0)
        next.stop_at = next.updated_at;
    if (reason)
        next.stop_reason = reason;
    if (store_execution_update(executions->sandboxes->store, &next, EXECUTION_PART_STOP, 0, err) <
        0)
        return -1;
    if (execution)
        execution_set(execution, &next);
    return 0;
}

static int record_mark(struct sandbox *sandbox, struct execution *execution, const char *reason,
                       bool *is_started, struct error *err)
{
    autolock(&sandbox->record_lock);
    *is_started = execution->is_recorded && !execution_is_over(&execution->record);
    return put_mark(sandbox->sandboxes->executions, execution, &execution->record, reason, err);
}

/* In memory, and its sandbox too. */
static int cancel_known(struct sandbox *sandbox, struct execution *execution, const char *reason,
                        struct error *err)
{
    bool is_started = false;

    if (record_mark(sandbox, execution, reason, &is_started, err) < 0)
        return -1;
    if (!is_started)
        return 0; // one that is just being started is killed by whoever starts it
    execution->kill_ms = (int64_t)clock_monotonic_ms() + KILL_AGAIN_MS;
    execution_kill(sandbox, execution);
    return 0;
}

int execution_cancel(struct executions *executions, const struct actor *actor, const char *id,
                     const char *reason, struct execution_info *out, struct error *err)
{
    autoexecution record = {0};
    int result;

    if (find_execution(executions, actor, id, NULL, &record, err) < 0)
        return -1;
    autoptr(sandbox) sandbox = registry_find(executions->sandboxes->registry, record.sandbox_id);
    autoptr(execution) execution = executions_find(executions, id);
    bool was_waiting = execution && queue_remove(executions->queue, execution);
    if (sandbox && execution)
        result = cancel_known(sandbox, execution, reason, err);
    else
        result = put_mark(executions, execution, &record, reason, err);
    if (was_waiting)
        queue_end(executions->queue, execution, EXECUTION_CANCELLED, NULL);
    return result < 0 ? -1 : execution_get(executions, actor, id, NULL, out, err);
}

int execution_count(struct executions *executions, const struct actor *actor, int64_t since,
                    struct execution_outcomes *out, struct error *err)
{
    struct store *store = executions->sandboxes->store;
    struct execution_filter open = {
        .owner = actor_filter(actor), .states = EXECUTION_OPEN, .page.limit = PAGE_MAX};
    autoexecutions found = {0};

    open.owner.scope = NULL;
    if (store_execution_list(store, &open, &found, err) < 0)
        return -1;
    (void)settle_listed(executions, &found);
    return store_execution_outcomes(store, &open.owner, since, out, err);
}
