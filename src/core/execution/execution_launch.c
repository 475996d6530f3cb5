/* SPDX-License-Identifier: Apache-2.0 */
/* How executions are made ready and started; see execution_launch.h. */
#include "core/execution/execution_launch.h"

#include "base/clock.h"
#include "core/account/ceiling.h"
#include "core/stream/streams.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/sandbox_trust.h"
#include "core/execution/execution_end.h"
#include "core/execution/input_content.h"
#include "base/mem.h"
#include "core/stream/feed.h"
#include "core/sandbox/monitor.h"
#include "base/strings.h"
#include "engine/files.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MAX_TIMEOUT_MS ((int64_t)366 * 24 * 3600 * 1000)
#define TERMINAL_BYTES ((int64_t)8 << 20) // of what it showed, unless asked otherwise
#define USUAL_ROWS 24
#define USUAL_COLS 80

static int check_terminal(const struct execution_request *request, struct error *err)
{
    if (request->has_input + (request->stdin_stream != NULL) + (request->input != NULL) > 1)
        return error_set(err, ERROR_INVALID,
                         "a command has one input: a stream, all of it, or an open one");
    if (request->pipes &&
        (request->has_input || request->stdin_stream || request->input ||
         request->kind == EXECUTION_TERMINAL || request->standard_output.target != OUTPUT_TO_NONE ||
         request->standard_error.target != OUTPUT_TO_NONE))
        return error_set(err, ERROR_INVALID, "a command with pipes has no other input or output");
    if (request->kind != EXECUTION_TERMINAL)
        return 0;
    if (request->stdin_stream || request->input || request->has_timestamps ||
        request->standard_output.target != OUTPUT_TO_NEW)
        return error_set(err, ERROR_INVALID,
                         "a terminal has its own input and output, without timestamps");
    return 0;
}

static int check(const struct sandbox *sandbox, const struct execution_request *request,
                 struct error *err)
{
    if (command_check(&request->command, err) < 0)
        return -1;
    if (request->command.timeout_ms > MAX_TIMEOUT_MS)
        return error_set(err, ERROR_INVALID, "a command's timeout is at most a year");
    if (check_terminal(request, err) < 0)
        return -1;
    return ceiling_check_time("execution-timeout", request->command.timeout_ms,
                              sandbox->sandboxes->settings->ceilings.execution_timeout_ms, err);
}

static int64_t output_cap(const struct execution_request *request,
                          const struct core_settings *settings)
{
    if (request->output_cap_bytes)
        return request->output_cap_bytes;
    return request->kind == EXECUTION_TERMINAL && settings->output_cap_bytes > TERMINAL_BYTES
               ? TERMINAL_BYTES
               : settings->output_cap_bytes;
}

static const char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

/* The record as it will be stored. Its strings are its own. */
static void describe(struct sandbox *sandbox, const struct actor *actor,
                     const struct execution_request *request, struct execution_record *out)
{
    const struct sandbox_record *row = &sandbox->record;
    const struct core_settings *settings = sandbox->sandboxes->settings;
    int64_t now = (int64_t)clock_wall_ms();

    *out = (struct execution_record){
        .sandbox_id = xstrdup(sandbox->id),
        .kind = request->kind,
        .owner = {copy(row->owner.organisation), copy(row->owner.tenant), copy(row->owner.scope),
                  copy(actor->project ? actor->project : row->owner.project),
                  copy(row->owner.member)},
        .key_id = *actor->key_id ? xstrdup(actor->key_id) : NULL,
        .command = command_copy(&request->command),
        .metadata = copy(request->metadata),
        .asked = copy(request->asked),
        .tag = copy(request->tag),
        .output_cap_bytes = output_cap(request, settings),
        .has_timestamps = request->has_timestamps,
        .state = EXECUTION_RUNNING,
        .exit.code = NO_EXIT_CODE,
        .started_at = now,
        .created_at = now,
        .updated_at = now,
    };
    if (out->command.timeout_ms == EXECUTION_DEFAULT && request->kind == EXECUTION_TERMINAL)
        out->command.timeout_ms = 0;
    if (out->command.timeout_ms == EXECUTION_DEFAULT)
        out->command.timeout_ms = row->command.timeout_ms;
    out->command.timeout_ms =
        ceiling_time(out->command.timeout_ms, settings->ceilings.execution_timeout_ms);
}

static int open_output(struct sandbox *sandbox, const struct actor *actor,
                       const struct output_request *request, const struct stream_place *place,
                       struct stream **out, struct error *err)
{
    switch (request->target) {
    case OUTPUT_TO_NONE:
        return 0;
    case OUTPUT_TO_NEW:
        return streams_prepare(sandbox->sandboxes->streams, place, out, err);
    case OUTPUT_TO_STREAM:
        break;
    }
    return streams_take(sandbox->sandboxes->streams, actor, request->stream_id, place, out, err);
}

struct execution_streams execution_take_streams(struct sandbox *sandbox,
                                                struct execution *execution)
{
    autolock(&sandbox->lock);
    struct execution_streams streams = {execution->input, execution->output, execution->error};
    execution->input = execution->output = execution->error = NULL;
    if (streams.error == streams.output)
        streams.error = NULL;
    return streams;
}

static bool is_same_stream(const struct execution_request *request)
{
    return request->standard_output.target == OUTPUT_TO_STREAM &&
           request->standard_error.target == OUTPUT_TO_STREAM &&
           strcmp(request->standard_output.stream_id, request->standard_error.stream_id) == 0;
}

static int open_stdin(struct sandbox *sandbox, const struct actor *actor,
                      const struct execution_request *request, const struct stream_place *place,
                      struct execution *execution, struct error *err)
{
    struct streams *streams = sandbox->sandboxes->streams;

    if (request->stdin_stream)
        return streams_take(streams, actor, request->stdin_stream, place, &execution->input, err);
    if (!request->input)
        return 0;
    int is_longer =
        input_content_pipe(request->input, request->input_length, &execution->input_pipe, err);
    if (is_longer <= 0)
        return is_longer;
    execution->is_input_new = true;
    return input_content_stream(streams, actor, place, request->input, request->input_length,
                                &execution->input, err);
}

static int open_streams(struct sandbox *sandbox, const struct actor *actor,
                        const struct execution_request *request, struct execution *execution,
                        struct error *err)
{
    struct stream_place place = {.owner = execution->record.owner, // which never changes
                                 .sandbox_id = sandbox->id,
                                 .execution_id = execution->id,
                                 .kind = STREAM_STDOUT};

    if (is_same_stream(request))
        place.kind = STREAM_COMBINED;
    if (open_output(sandbox, actor, &request->standard_output, &place, &execution->output, err) < 0)
        return -1;
    place.kind = STREAM_STDERR;
    if (is_same_stream(request))
        execution->error = execution->output;
    else if (request->kind != EXECUTION_TERMINAL &&
             open_output(sandbox, actor, &request->standard_error, &place, &execution->error, err) <
                 0)
        return -1;
    place.kind = STREAM_STDIN;
    return open_stdin(sandbox, actor, request, &place, execution, err);
}

static void name_outputs(const struct execution *execution, struct execution_record *record)
{
    record->stdout_stream = execution->output ? xstrdup(stream_id(execution->output)) : NULL;
    record->stderr_stream = execution->error ? xstrdup(stream_id(execution->error)) : NULL;
}

static void set_number(struct execution *execution, uint32_t number)
{
    autolock(&execution->lock); // one that was queued is known to others
    execution->record.number = execution->number = number;
}

/* The caller holds both locks. */
static void put_into_list(struct sandbox *sandbox, struct execution *execution)
{
    execution->next = sandbox->executions;
    sandbox->executions = execution_ref(execution);
}

static void add_to_list(struct sandbox *sandbox, struct execution *execution)
{
    autolock(&sandbox->record_lock);
    autolock(&sandbox->lock);
    if (execution->number == 0)
        set_number(execution, ++sandbox->last_number);
    put_into_list(sandbox, execution);
}

/* From here on its end is heard, so it is either there or has gone before. */
static int add_resident(struct sandbox *sandbox, struct execution *execution, struct error *err)
{
    autolock(&sandbox->record_lock);
    autolock(&sandbox->lock);
    if (!sandbox->has_resident)
        return error_set(err, ERROR_GONE, "nothing waits in the sandbox");
    sandbox->has_resident = false;
    set_number(execution, SPARE_RESIDENT);
    execution->is_spawned = true;
    put_into_list(sandbox, execution);
    return 0;
}

/* A stream made for the command goes; one of the user's is the user's again. */
static void drop_stream(struct sandbox *sandbox, struct stream *stream, bool is_new)
{
    if (stream && is_new)
        streams_discard(sandbox->sandboxes->streams, stream);
    else if (stream)
        streams_give_back(sandbox->sandboxes->streams, stream);
}

static void drop_streams(struct sandbox *sandbox, struct execution *execution)
{
    struct execution_streams streams = execution_take_streams(sandbox, execution);
    drop_stream(sandbox, streams.error, execution->is_error_new);
    drop_stream(sandbox, streams.output, execution->is_output_new);
    drop_stream(sandbox, streams.input, execution->is_input_new);
}

void execution_uncount(struct sandbox *sandbox, struct execution *execution)
{
    if (execution->is_run_counted)
        quota_unrun(sandbox->sandboxes->accounts, execution->record.key_id,
                    execution->record.owner.organisation);
    execution->is_run_counted = false;
}

int execution_prepare(struct sandbox *sandbox, const struct actor *actor,
                      const struct execution_request *request, struct execution **out,
                      struct error *err)
{
    char id[ID_TEXT];

    if (check(sandbox, request, err) < 0)
        return -1;
    autoptr(execution) execution = execution_new(id_make(id));
    if (!request->is_counted &&
        quota_run(sandbox->sandboxes->accounts, actor, &execution->is_run_counted, err) < 0)
        return -1;
    describe(sandbox, actor, request, &execution->record);
    execution->record.id = xstrdup(id);
    execution->is_output_new = request->standard_output.target == OUTPUT_TO_NEW;
    execution->is_error_new =
        request->standard_error.target == OUTPUT_TO_NEW && request->kind != EXECUTION_TERMINAL;
    execution->has_input = request->has_input;
    execution->pipes = request->pipes;
    execution->program_fd = request->program_fd;
    execution->keeps_children = request->keeps_children;
    execution->rows = request->terminal.rows ? request->terminal.rows : USUAL_ROWS;
    execution->cols = request->terminal.cols ? request->terminal.cols : USUAL_COLS;
    if (open_streams(sandbox, actor, request, execution, err) < 0) {
        drop_streams(sandbox, execution);
        execution_uncount(sandbox, execution);
        return -1;
    }
    name_outputs(execution, &execution->record);
    execution->record.stdin_stream = copy(execution->input ? stream_id(execution->input) : NULL);
    if (!request->hand_over) {
        add_to_list(sandbox, execution);
    } else if (add_resident(sandbox, execution, err) < 0) {
        drop_streams(sandbox, execution);
        execution_uncount(sandbox, execution);
        return -1;
    }
    *out = take(execution);
    return 0;
}

int execution_describe(struct sandbox *sandbox, const struct actor *actor,
                       const struct execution_request *request, struct execution **out,
                       struct error *err)
{
    char id[ID_TEXT];

    if (check(sandbox, request, err) < 0)
        return -1;
    autoptr(execution) execution = execution_new(id_make(id));
    struct execution_record *record = &execution->record;
    if (quota_run(sandbox->sandboxes->accounts, actor, &execution->is_run_counted, err) < 0)
        return -1;
    describe(sandbox, actor, request, record);
    record->id = xstrdup(id);
    record->state = EXECUTION_QUEUED;
    record->started_at = 0;
    record->error = copy(request->refused);
    autolock(&sandbox->lock);
    record->number = execution->number = ++sandbox->last_number;
    *out = take(execution);
    return 0;
}

/* Its record says that it runs, in memory. */
static void begin_queued(struct sandbox *sandbox, struct execution *execution)
{
    autoexecution next = {0};

    autolock(&sandbox->record_lock); // it may be cancelled just now
    execution_copy(execution, &next);
    name_outputs(execution, &next);
    next.state = EXECUTION_RUNNING;
    next.started_at = next.updated_at = (int64_t)clock_wall_ms();
    execution_set(execution, &next);
}

int execution_equip(struct sandbox *sandbox, struct execution *execution, struct error *err)
{
    static const struct execution_request outputs = {.standard_output = {.target = OUTPUT_TO_NEW},
                                                     .standard_error = {.target = OUTPUT_TO_NEW}};

    execution->is_output_new = execution->is_error_new = true;
    if (open_streams(sandbox, NULL, &outputs, execution, err) < 0) {
        drop_streams(sandbox, execution);
        return -1;
    }
    begin_queued(sandbox, execution);
    add_to_list(sandbox, execution);
    return 0;
}

/* Environment: a terminal's kind, the runtime's, HOME, the sandbox's, the command's; later ones win. */
static void gather_env(struct sandbox *sandbox, const struct execution *execution,
                       struct strings *out)
{
    const char *const *runtime = sandbox->runtime_env;
    bool has_terminal = execution->record.kind == EXECUTION_TERMINAL;

    if (has_terminal) {
        strings_add(out, "TERM=xterm-256color");
        strings_merge(out, runtime);
    }
    for (const char *const *entry = runtime; entry && *entry && !has_terminal; entry++)
        strings_add(out, *entry);
    autolock(&sandbox->lock); // the sandbox's can be changed
    if (sandbox->record.home)
        strings_set(out, "HOME", sandbox->record.home);
    sandbox_trust_env(sandbox, out);
    strings_merge(out, sandbox->record.command.env);
    strings_merge(out, execution->record.command.env);
}

/* Nothing of what it reads and writes goes through PID 1 or a spool. */
static void connect_pipes(const struct execution_pipes *pipes, struct process_spec *spec)
{
    spec->output = OUTPUT_PIPE;
    spec->stdin_fd = pipes->input;
    spec->stdout_fd = pipes->output;
    spec->stderr_fd = pipes->error;
}

/* A pipe for its input; the feed fills the other end. */
static int open_input(struct sandbox *sandbox, struct execution *execution, int *read_end,
                      struct error *err)
{
    int ends[2];

    *read_end = take_fd(execution->input_pipe);
    if (!execution->input)
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    *read_end = ends[0];
    execution->feed = feed_new(monitor_loop(sandbox->sandboxes->monitor), sandbox->sandboxes->hub,
                               execution->input, ends[1]);
    return 0;
}

/* What runs, with all that the sandbox says; borrowed from the records and from `env`. */
static struct command command_of(struct sandbox *sandbox, const struct execution *execution,
                                 struct strings *env)
{
    const struct sandbox_record *row = &sandbox->record; // what is read of it never changes
    struct command command = execution->record.command;

    gather_env(sandbox, execution, env);
    command.env = (const char *const *)env->items;
    if (!command.directory)
        command.directory = row->command.directory;
    if (!command.user)
        command.user = row->command.user;
    return command;
}

int execution_take_over(struct sandbox *sandbox, struct execution *execution,
                        const struct execution_request *request, struct error *err)
{
    autostrings env = {0};
    struct command command = command_of(sandbox, execution, &env);

    return request->hand_over(request->hand_over_data, sandbox, &command, err);
}

int execution_spawn(struct sandbox *sandbox, struct execution *execution, struct error *err)
{
    const struct execution_record *record = &execution->record;
    autostrings env = {0};
    autofd input = -1;

    if (open_input(sandbox, execution, &input, err) < 0)
        return -1;
    struct process_spec spec = {
        .id = execution->number,
        .command = command_of(sandbox, execution, &env),
        .output = record->kind == EXECUTION_TERMINAL ? OUTPUT_TTY_SPOOL : OUTPUT_SPOOL,
        .rows = execution->rows,
        .cols = execution->cols,
        .stdin_fd = input,
        .has_input = execution->has_input,
        .stdout_fd = execution->output ? stream_write_fd(execution->output) : -1,
        .stderr_fd = execution->error ? stream_write_fd(execution->error) : -1,
        .has_timestamps = record->has_timestamps,
        .output_cap_bytes = (uint64_t)record->output_cap_bytes,
    };
    spec.program_fd = execution->program_fd;
    spec.keeps_children = execution->keeps_children;
    if (execution->pipes)
        connect_pipes(execution->pipes, &spec);
    autobox held = sandbox_use_box(sandbox, err);
    if (!held)
        return -1;
    execution->is_spawned = box_spawn(sandbox->box, &spec, NULL, err) == 0;
    execution->pipes = NULL; // the caller's
    execution->program_fd = 0;
    if (!execution->is_spawned && error_is(err, ERROR_GONE))
        return error_restate(err, ERROR_ENDED, "sandbox");
    return execution->is_spawned ? 0 : -1;
}

void execution_kill(struct sandbox *sandbox, struct execution *execution)
{
    struct error ignored = {0};

    autobox held = sandbox_use_box(sandbox, &ignored);
    if (held) // else it ends with its sandbox
        (void)box_signal(sandbox->box, execution->number, SIGKILL, true, &ignored);
}

/* It is in the store already. */
static int put_queued(struct sandboxes *sandboxes, struct execution *execution, struct error *err)
{
    if (execution->is_renumbered &&
        store_execution_renumber(sandboxes->store, &execution->record, err) < 0)
        return -1;
    return store_execution_update(sandboxes->store, &execution->record,
                                  EXECUTION_PART_STATE | EXECUTION_PART_STREAMS,
                                  execution_in(EXECUTION_QUEUED), err);
}

int execution_put(struct sandbox *sandbox, struct execution *execution, struct error *err)
{
    struct sandboxes *sandboxes = sandbox->sandboxes;

    if ((execution->is_queued ? put_queued(sandboxes, execution, err)
                              : store_execution_add(sandboxes->store, &execution->record, err)) < 0)
        return -1;
    if (execution->is_input_new && streams_put(sandboxes->streams, execution->input, err) < 0)
        return -1;
    if (execution->is_output_new && streams_put(sandboxes->streams, execution->output, err) < 0)
        return -1;
    return execution->is_error_new ? streams_put(sandboxes->streams, execution->error, err) : 0;
}

/* Whether it was there: its reference is the caller's then. */
static bool remove_from_list(struct sandbox *sandbox, struct execution *execution)
{
    autolock(&sandbox->record_lock);
    autolock(&sandbox->lock);
    struct execution **at = &sandbox->executions;
    while (*at && *at != execution)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = execution->next;
    return true;
}

void execution_abort(struct sandbox *sandbox, struct execution *execution)
{
    if (execution->is_spawned)
        execution_kill(sandbox, execution);
    execution_uncount(sandbox, execution);
    drop_streams(sandbox, execution);
    if (remove_from_list(sandbox, execution))
        execution_free(execution); // the caller has another reference
    if (execution->has_exit) // else it comes when nobody knows it any more, and is collected then
        execution_collect(sandbox, execution->number);
}
