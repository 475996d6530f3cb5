/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over what an earlier server left; see adopt.h. */
#include "core/adopt.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strings.h"
#include "base/log_ids.h"
#include "core/execution/execution_end.h"
#include "core/execution/execution_start.h"
#include "core/execution/executions.h"
#include "core/sandbox/registry.h"
#include "core/stream/streams.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/ending.h"
#include "core/sandbox/file_work.h"
#include "core/runtime/runtimes.h"
#include "core/sandbox/monitor.h"
#include "core/layer/layers.h"
#include "core/sandbox/sandbox_event.h"
#include "core/sandbox/sandbox_network.h"
#include "core/sandbox/pool.h"
#include "core/execution/queue.h"
#include "core/snapshot/snapshot_impl.h"
#include "store/idempotency.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define REPORT_MS 5000

struct adoption {
    struct core *core;
    struct sandbox_list sandboxes;
    struct execution_list commands;
    unsigned *slots; // of boxes that live
    size_t n_slots;
    size_t adopted, ended, failed; // sandboxes
    size_t unowned;                // boxes: most were made ahead and never used
};

static void adoption_clear(struct adoption *adoption)
{
    sandbox_list_clear(&adoption->sandboxes);
    execution_list_clear(&adoption->commands);
    free(adoption->slots);
}

static bool has_slot(const struct adoption *adoption, int64_t slot)
{
    for (size_t i = 0; i < adoption->n_slots; i++) {
        if (adoption->slots[i] == slot)
            return true;
    }
    return false;
}

static int reopen(struct sandboxes *sandboxes, const char *id, struct stream **out,
                  struct error *err)
{
    autostream record = {0};

    if (!id)
        return 0;
    if (store_stream_get(sandboxes->store, id, &record, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
    if (record.state == STREAM_COMPLETE)
        return 0;
    return streams_reopen(sandboxes->streams, &record, out, err);
}

static bool is_same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* A command that had not ended, as it is in the store. */
static int revive(struct sandbox *sandbox, const struct execution_record *record, struct error *err)
{
    autoptr(execution) execution = execution_new(record->id);

    execution_record_copy(&execution->record, record);
    execution->number = (uint32_t)record->number;
    execution->is_recorded = execution->is_spawned = true;
    if (reopen(sandbox->sandboxes, record->stdout_stream, &execution->output, err) < 0)
        return -1;
    if (is_same(record->stdout_stream, record->stderr_stream))
        execution->error = execution->output;
    else if (reopen(sandbox->sandboxes, record->stderr_stream, &execution->error, err) < 0)
        return -1;
    // Its pipe went with the earlier server: whatever had not been fed by then never will be.
    if (reopen(sandbox->sandboxes, record->stdin_stream, &execution->input, err) < 0)
        return -1;
    execution->is_input_cut = execution->input != NULL;
    if (record->stop_at)
        execution->kill_ms = (int64_t)clock_monotonic_ms();
    execution_occupy(sandbox, record->kind);
    execution->next = sandbox->executions;
    sandbox->executions = execution_ref(execution);
    executions_add(sandbox->sandboxes->executions, execution);
    sandbox->sandboxes->executions->n_running++;
    return 0;
}

static int revive_commands(struct adoption *adoption, struct sandbox *sandbox, struct error *err)
{
    for (size_t i = 0; i < adoption->commands.count; i++) {
        const struct execution_record *record = &adoption->commands.rows[i];
        if (record->state == EXECUTION_RUNNING && strcmp(record->sandbox_id, sandbox->id) == 0 &&
            revive(sandbox, record, err) < 0)
            return -1;
    }
    return 0;
}

/* What PID 1 says of the processes it knows. */
struct box_report {
    struct process_exit *exits;
    size_t n_exits;
    uint32_t *present; // running or ended
    size_t n_present;
};

static void report_clear(struct box_report *report)
{
    free(report->exits);
    free(report->present);
}

static bool report_has(const struct box_report *report, uint32_t number)
{
    for (size_t i = 0; i < report->n_present; i++) {
        if (report->present[i] == number)
            return true;
    }
    return false;
}

static void report_add(struct box_report *report, const struct box_event *event)
{
    uint32_t number = event->kind == BOX_EVENT_EXIT ? event->exit.id : event->id;

    if (event->kind == BOX_EVENT_EXIT) {
        report->exits = xrealloc(report->exits, report->n_exits + 1, sizeof *report->exits);
        report->exits[report->n_exits++] = event->exit;
    }
    if (report_has(report, number))
        return;
    report->present = xrealloc(report->present, report->n_present + 1, sizeof *report->present);
    report->present[report->n_present++] = number;
}

/* After an adoption PID 1 tells of every process it has. */
static int read_report(struct box *box, struct box_report *report, struct error *err)
{
    struct box_event event = {0};
    unsigned expected = box_process_count(box);

    while (report->n_present < expected) {
        if (box_next(box, &event, REPORT_MS, err) < 0)
            return -1;
        if (event.kind == BOX_EVENT_ENDED || event.kind == BOX_EVENT_NONE)
            return error_set(err, ERROR_GONE, "the sandbox did not tell what runs in it");
        report_add(report, &event);
    }
    return 0;
}

/* Processes that were started but never recorded: nobody was told of them. */
static void end_unknown(struct sandbox *sandbox, const struct box_report *report)
{
    struct error ignored = {0};

    for (size_t i = 0; i < report->n_present; i++) {
        struct execution *execution = sandbox->executions;
        while (execution && execution->number != report->present[i])
            execution = execution->next;
        if (!execution)
            (void)box_signal(sandbox->box, report->present[i], SIGKILL, true, &ignored);
        if (sandbox->last_number < report->present[i])
            sandbox->last_number = report->present[i];
    }
}

/* Commands that are recorded but were never started, or whose box lost them. */
static void end_missing(struct sandbox *sandbox, const struct box_report *report)
{
    for (;;) {
        struct execution *execution = sandbox->executions;
        while (execution && report_has(report, execution->number))
            execution = execution->next;
        if (!execution)
            return;
        struct process_exit exit = {.id = execution->number, .cause = CAUSE_NOT_RUN, .code = 126};
        (void)snprintf(exit.text, sizeof exit.text, "the server stopped before it was started");
        size_t before = sandbox->n_executions + sandbox->n_jobs + sandbox->n_contexts;
        execution_ended(sandbox, &exit);
        if (sandbox->n_executions + sandbox->n_jobs + sandbox->n_contexts == before)
            return; // could not be recorded: the monitor tries again
    }
}

static void set_runtime_env(struct sandbox *sandbox)
{
    autoptr(image) image = NULL;
    struct error ignored = {0};

    if (!runtimes_is_ready(sandbox->sandboxes->runtimes, sandbox->record.runtime) ||
        image_get(sandbox->sandboxes->runtimes, sandbox->record.runtime, &image, &ignored) < 0)
        return; // gone since: commands do without its variables
    sandbox->runtime_env = strings_copy((const char *const *)image_runtime(image)->env);
}

/* It is as its record says: a crash in the middle of a pause, or of what is done while it stands still, may have left it otherwise. */
static void set_asleep_or_awake(struct sandbox *sandbox)
{
    struct error err = {0};
    bool is_paused = sandbox->record.state == SANDBOX_PAUSED;

    if ((is_paused ? box_freeze(sandbox->box, &err) : box_thaw(sandbox->box, &err)) < 0)
        log_warn("a sandbox could not be put to sleep or woken", F_SANDBOX(sandbox->record.id),
                 F("error", (const char *)err.text));
}

/* The kernel has its rules as they were: where burrow-egress cannot be told anew, names are refused and nothing else is lost. */
static void admit(struct sandbox *sandbox)
{
    struct error err = {0};

    if (sandbox_admit(sandbox, false, &err) < 0)
        log_warn("a sandbox's network could not be taken over", F_SANDBOX(sandbox->record.id),
                 F("error", (const char *)err.text));
}

static int take_over(struct adoption *adoption, struct sandbox *sandbox, struct error *err)
{
    __attribute__((cleanup(report_clear))) struct box_report report = {0};
    const struct sandbox_record *record = &sandbox->record;

    if (record->box_slot == SANDBOX_NO_SLOT || !has_slot(adoption, record->box_slot))
        return error_set(err, ERROR_GONE, "its processes are gone");
    if (box_adopt(adoption->core->engine, (unsigned)record->box_slot, record->scratch,
                  &sandbox->box, err) < 0)
        return -1;
    admit(sandbox);
    set_asleep_or_awake(sandbox);
    file_work_restore_cpu(sandbox);
    if (read_report(sandbox->box, &report, err) < 0)
        return -1;
    set_runtime_env(sandbox);
    end_unknown(sandbox, &report);
    box_unprepare(sandbox->box, sandbox_next_number(sandbox));
    end_missing(sandbox, &report);
    for (size_t i = 0; i < report.n_exits; i++)
        execution_ended(sandbox, &report.exits[i]);
    autobox held = sandbox_hold_box(sandbox);
    if (!sandbox->box || sandbox->is_box_over)
        return 0;
    return monitor_watch(adoption->core->sandboxes->monitor, sandbox, err);
}

/* Records say running while nothing runs: a crash between two commits. */
static void settle_state(struct sandbox *sandbox)
{
    if (sandbox->record.state == SANDBOX_RUNNING && sandbox->n_executions == 0)
        sandbox->record.state = SANDBOX_IDLE;
}

static bool has_files(struct core *core, const struct sandbox_record *record)
{
    struct error ignored = {0};
    autofd dir = -1;
    return record->mode != SANDBOX_ONE_SHOT && record->scratch &&
           volume_scratch_open(engine_volume(core->engine), record->scratch, &dir, &ignored) == 0;
}

/* One whose processes went with the machine still has its files; whoever needs a box gives it a new one. */
static int reduce_to_files(struct adoption *adoption, struct sandbox *sandbox, struct error *err)
{
    struct event event = {
        .type = EVENT_PROCESSES_LOST, .reason = "restart", .now = (int64_t)clock_wall_ms()};
    const char *why = "its sandbox lost its processes when the machine restarted";
    struct store *store = adoption->core->store;
    autotransaction together = {0};
    bool is_put;

    autolock(&sandbox->record_lock);
    sandbox->record.box_slot = SANDBOX_NO_SLOT;
    if (sandbox->record.state == SANDBOX_RUNNING)
        sandbox->record.state = SANDBOX_IDLE;
    do
        is_put = store_begin(store, STORE_DURABLE, &together, err) == 0 &&
                 store_sandbox_update(store, &sandbox->record,
                                      SANDBOX_PART_BOX | SANDBOX_PART_STATE, 0, err) == 0 &&
                 execution_put_ends(sandbox, EXECUTION_FAILED, why, event.now, err) == 0 &&
                 event_put(sandbox, &event, err) == 0 && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    if (is_put)
        execution_end_all(sandbox, EXECUTION_FAILED, why, event.now);
    adoption->adopted += is_put;
    return is_put ? 0 : -1;
}

static int adopt_one(struct adoption *adoption, const struct sandbox_record *record,
                     struct error *err)
{
    struct core *core = adoption->core;
    struct error why = {0};
    autoptr(sandbox) sandbox = sandbox_new(core->sandboxes, record);

    sandbox_touch(sandbox);
    if (registry_add(core->sandboxes->registry, sandbox, NULL, UINT32_MAX, 0, err) < 0 ||
        revive_commands(adoption, sandbox, err) < 0)
        return -1;
    if (record->state == SANDBOX_CREATING) {
        ending_abandon(sandbox, true, true, "the server stopped while it was being created");
        adoption->failed++;
        return 0;
    }
    bool is_resting = record->box_slot == SANDBOX_NO_SLOT && !sandbox->executions;
    if ((is_resting && has_files(core, record)) || take_over(adoption, sandbox, &why) == 0) {
        settle_state(sandbox);
        adoption->adopted++;
        return 0;
    }
    log_warn("a sandbox's processes are gone", F_SANDBOX(record->id),
             F("why", (const char *)why.text));
    if (has_files(adoption->core, record))
        return reduce_to_files(adoption, sandbox, err);
    adoption->ended++;
    return ending_run(sandbox, STEP_END, "box_ended", err);
}

static bool is_known_slot(const struct adoption *adoption, unsigned slot)
{
    for (size_t i = 0; i < adoption->sandboxes.count; i++) {
        if (adoption->sandboxes.rows[i].box_slot == slot)
            return true;
    }
    return false;
}

/* Boxes made ahead, and those whose create was never recorded. */
static void end_unowned(struct adoption *adoption)
{
    struct error err = {0};

    for (size_t i = 0; i < adoption->n_slots; i++) {
        autoptr(box) box = NULL;
        if (is_known_slot(adoption, adoption->slots[i]))
            continue;
        if (box_adopt(adoption->core->engine, adoption->slots[i], NULL, &box, &err) < 0 ||
            box_end(box, &err) < 0)
            log_warn("a sandbox that nobody owns could not be ended", F("slot", adoption->slots[i]),
                     F("error", (const char *)err.text));
        else
            adoption->unowned++;
    }
}

static bool is_alive(const struct adoption *adoption, const char *sandbox_id)
{
    for (size_t i = 0; i < adoption->sandboxes.count; i++) {
        if (strcmp(adoption->sandboxes.rows[i].id, sandbox_id) == 0)
            return true;
    }
    return false;
}

/* An output of one that ended unseen: what is there is all of it. */
static int close_stream(struct sandboxes *sandboxes, const char *id, int64_t now, struct error *err)
{
    autoptr(stream) stream = NULL;

    if (reopen(sandboxes, id, &stream, err) < 0)
        return -1;
    if (!stream)
        return 0;
    if (streams_put_end(sandboxes->streams, stream, false, now, err) < 0)
        return -1;
    streams_end(sandboxes->streams, stream);
    return 0;
}

/* One whose sandbox was over before its own end was recorded: it ended with that. */
static int end_orphan(struct sandboxes *sandboxes, struct execution_record *record,
                      struct error *err)
{
    int64_t now = (int64_t)clock_wall_ms();

    record->state = EXECUTION_CANCELLED;
    record->exit.cause = EXECUTION_STOPPED;
    record->exit.code = 128 + SIGKILL;
    record->exit.signal = SIGKILL;
    record->ended_at = record->updated_at = now;
    if (close_stream(sandboxes, record->stdout_stream, now, err) < 0 ||
        close_stream(sandboxes, record->stderr_stream, now, err) < 0 ||
        close_stream(sandboxes, record->stdin_stream, now, err) < 0)
        return -1;
    return store_execution_update(sandboxes->store, record,
                                  EXECUTION_PART_STATE | EXECUTION_PART_RESULT, EXECUTION_OPEN,
                                  err);
}

static int end_orphans(struct adoption *adoption, struct error *err)
{
    for (size_t i = 0; i < adoption->commands.count; i++) {
        struct execution_record *record = &adoption->commands.rows[i];
        if (record->state == EXECUTION_RUNNING && !is_alive(adoption, record->sandbox_id) &&
            end_orphan(adoption->core->sandboxes, record, err) < 0)
            return error_wrap(err, "end execution '%s' of an ended sandbox", record->id);
    }
    return 0;
}

/* Scratches of sandboxes are named after nobody: those of the living ones are owned. */
static bool is_scratch_owned(const char *name, void *data)
{
    const struct adoption *adoption = data;

    if (strncmp(name, POOL_SCRATCH "-", sizeof POOL_SCRATCH) != 0)
        return true;
    for (size_t i = 0; i < adoption->sandboxes.count; i++) {
        if (is_same(adoption->sandboxes.rows[i].scratch, name))
            return true; // one that ended just now has removed its own
    }
    return false;
}

static int sweep(struct adoption *adoption, struct error *err)
{
    int64_t released = 0;

    if (engine_sweep(adoption->core->engine, err) < 0 ||
        volume_sweep(engine_volume(adoption->core->engine), is_scratch_owned, adoption, err) < 0)
        log_warn("traces of dead sandboxes could not be removed",
                 F("error", (const char *)err->text));
    return store_idempotency_release_all(adoption->core->store, &released, err);
}

int adopt_all(struct core *core, struct error *err)
{
    __attribute__((cleanup(adoption_clear))) struct adoption adoption = {.core = core};

    if (store_sandbox_list_alive(core->store, &adoption.sandboxes, err) < 0 ||
        store_execution_list_open(core->store, &adoption.commands, err) < 0 ||
        engine_list_staying(core->engine, &adoption.slots, &adoption.n_slots, err) < 0)
        return error_wrap(err, "look for what is still running");
    for (size_t i = 0; i < adoption.sandboxes.count; i++) {
        if (adopt_one(&adoption, &adoption.sandboxes.rows[i], err) < 0)
            return error_wrap(err, "take over sandbox '%s'", adoption.sandboxes.rows[i].id);
    }
    for (size_t i = 0; i < adoption.commands.count; i++) {
        if (adoption.commands.rows[i].state == EXECUTION_QUEUED)
            queue_adopt(core->executions->queue, &adoption.commands.rows[i]);
    }
    end_unowned(&adoption);
    if (end_orphans(&adoption, err) < 0 || sweep(&adoption, err) < 0 ||
        layers_sweep(core->layers, err) < 0 || snapshot_sweep(core->snapshots, err) < 0)
        return -1;
    if (adoption.adopted + adoption.ended + adoption.failed > 0)
        log_info("took over from an earlier server", F("sandboxes", adoption.adopted),
                 F("ended", adoption.ended), F("failed", adoption.failed),
                 F("unowned", adoption.unowned));
    return 0;
}
