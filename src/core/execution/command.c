/* SPDX-License-Identifier: Apache-2.0 */
/* How commands are prepared and started; see command.h. command_end.c has the rest of their way. */
#include "core/execution/command.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/stream/feed.h"
#include "core/sandbox/keeper.h"
#include "base/strings.h"
#include "engine/files.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MAX_TIMEOUT_MS ((int64_t)366 * 24 * 3600 * 1000)

static int check(const struct execution_request *request, struct error *err)
{
    if (!request->argv || !request->argv[0] || !*request->argv[0])
        return error_set(err, ERROR_INVALID, "the command is empty");
    for (const char *const *entry = request->env; entry && *entry; entry++) {
        if (**entry == '=' || !strchr(*entry, '='))
            return error_set(err, ERROR_INVALID, "environment entry '%.80s' is not NAME=VALUE",
                             *entry);
    }
    if (request->timeout_ms > MAX_TIMEOUT_MS)
        return error_set(err, ERROR_INVALID, "a command's timeout is at most a year");
    return 0;
}

static const char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

/* The record as it will be stored. Its texts are its own. */
static void describe(struct live *live, const struct actor *actor,
                     const struct execution_request *request, struct execution_record *out)
{
    const struct sandbox_record *sandbox = &live->record;
    const struct core_settings *settings = &live->core->settings;
    int64_t now = (int64_t)clock_wall_ms();

    *out = (struct execution_record){
        .sandbox_id = xstrdup(live->id),
        .kind = request->kind,
        .owner = {copy(sandbox->owner.organisation), copy(sandbox->owner.tenant),
                  copy(sandbox->owner.scope),
                  copy(actor->project ? actor->project : sandbox->owner.project)},
        .command = texts_pack(request->argv),
        .env = request->env && request->env[0] ? texts_pack(request->env) : NULL,
        .box_user = copy(request->box_user),
        .working_directory = copy(request->working_directory),
        .metadata = copy(request->metadata),
        .asked = copy(request->asked),
        .timeout_ms = request->timeout_ms == EXECUTION_DEFAULT ? sandbox->execution_timeout_ms
                                                               : request->timeout_ms,
        .output_cap_bytes =
            request->output_cap_bytes ? request->output_cap_bytes : settings->output_cap_bytes,
        .has_timestamps = request->has_timestamps,
        .state = EXECUTION_RUNNING,
        .exit_code = NO_EXIT_CODE,
        .started_at = now,
        .created_at = now,
        .updated_at = now,
    };
}

static int open_output(struct live *live, const struct actor *actor,
                       const struct output_request *request, const struct stream_place *place,
                       struct stream **out, struct error *err)
{
    switch (request->target) {
    case OUTPUT_TO_NONE:
        return 0;
    case OUTPUT_TO_NEW:
        return streams_prepare(live->core->streams, place, out, err);
    case OUTPUT_TO_STREAM:
        break;
    }
    return streams_take(live->core->streams, actor, request->stream_id, place, out, err);
}

struct command_streams command_take_streams(struct live *live, struct running *running)
{
    (void)pthread_mutex_lock(&live->lock);
    struct command_streams streams = {running->input, running->output, running->error};
    running->input = running->output = running->error = NULL;
    (void)pthread_mutex_unlock(&live->lock);
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

static int open_streams(struct live *live, const struct actor *actor,
                        const struct execution_request *request, struct running *running,
                        struct error *err)
{
    struct stream_place place = {.owner = running->record.owner, // which never changes
                                 .sandbox_id = live->id,
                                 .execution_id = running->id,
                                 .kind = STREAM_STDOUT};

    if (is_same_stream(request))
        place.kind = STREAM_COMBINED;
    if (open_output(live, actor, &request->standard_output, &place, &running->output, err) < 0)
        return -1;
    place.kind = STREAM_STDERR;
    if (is_same_stream(request))
        running->error = running->output;
    else if (open_output(live, actor, &request->standard_error, &place, &running->error, err) < 0)
        return -1;
    place.kind = STREAM_STDIN;
    return request->stdin_stream ? streams_take(live->core->streams, actor, request->stdin_stream,
                                                &place, &running->input, err)
                                 : 0;
}

static void name_outputs(const struct running *running, struct execution_record *record)
{
    record->stdout_stream = running->output ? xstrdup(stream_id(running->output)) : NULL;
    record->stderr_stream = running->error ? xstrdup(stream_id(running->error)) : NULL;
}

static void add_to_list(struct live *live, struct running *running)
{
    (void)pthread_mutex_lock(&live->turn);
    (void)pthread_mutex_lock(&live->lock);
    if (running->number == 0) {
        running->number = ++live->last_number;
        (void)pthread_mutex_lock(&running->lock); // one that was queued is known to others
        running->record.number = running->number;
        (void)pthread_mutex_unlock(&running->lock);
    }
    running->next = live->commands;
    live->commands = running_ref(running);
    (void)pthread_mutex_unlock(&live->lock);
    (void)pthread_mutex_unlock(&live->turn);
}

/* A stream made for the command goes; one of the user's is the user's again. */
static void drop_stream(struct live *live, struct stream *stream, bool is_new)
{
    if (stream && is_new)
        streams_discard(live->core->streams, stream);
    else if (stream)
        streams_give_back(live->core->streams, stream);
}

static void drop_streams(struct live *live, struct running *running)
{
    struct command_streams streams = command_take_streams(live, running);
    drop_stream(live, streams.error, running->is_error_new);
    drop_stream(live, streams.output, running->is_output_new);
    drop_stream(live, streams.input, false);
}

int command_prepare(struct live *live, const struct actor *actor,
                    const struct execution_request *request, struct running **out,
                    struct error *err)
{
    char id[ID_TEXT];

    if (check(request, err) < 0)
        return -1;
    autoptr(running) running = running_new(id_make(id));
    describe(live, actor, request, &running->record);
    running->record.id = xstrdup(id);
    running->is_output_new = request->standard_output.target == OUTPUT_TO_NEW;
    running->is_error_new = request->standard_error.target == OUTPUT_TO_NEW;
    if (open_streams(live, actor, request, running, err) < 0) {
        drop_streams(live, running);
        return -1;
    }
    name_outputs(running, &running->record);
    running->record.stdin_stream = copy(request->stdin_stream);
    add_to_list(live, running);
    *out = take(running);
    return 0;
}

int command_describe(struct live *live, const struct actor *actor,
                     const struct execution_request *request, struct running **out,
                     struct error *err)
{
    char id[ID_TEXT];

    if (check(request, err) < 0)
        return -1;
    struct running *running = running_new(id_make(id));
    struct execution_record *record = &running->record;
    describe(live, actor, request, record);
    record->id = xstrdup(id);
    record->state = EXECUTION_QUEUED;
    record->started_at = 0;
    record->error = copy(request->refused);
    (void)pthread_mutex_lock(&live->lock);
    record->number = running->number = ++live->last_number;
    (void)pthread_mutex_unlock(&live->lock);
    *out = running;
    return 0;
}

/* Its record says that it runs, in memory. */
static void begin_queued(struct live *live, struct running *running)
{
    autoexecution next = {0};

    (void)pthread_mutex_lock(&live->turn); // it may be cancelled just now
    running_copy(running, &next);
    name_outputs(running, &next);
    next.state = EXECUTION_RUNNING;
    next.started_at = next.updated_at = (int64_t)clock_wall_ms();
    running_set(running, &next);
    (void)pthread_mutex_unlock(&live->turn);
}

int command_equip(struct live *live, struct running *running, struct error *err)
{
    static const struct execution_request outputs = {.standard_output = {.target = OUTPUT_TO_NEW},
                                                     .standard_error = {.target = OUTPUT_TO_NEW}};

    running->is_output_new = running->is_error_new = true;
    if (open_streams(live, NULL, &outputs, running, err) < 0) {
        drop_streams(live, running);
        return -1;
    }
    begin_queued(live, running);
    add_to_list(live, running);
    return 0;
}

/* Environment: the runtime's, HOME, the sandbox's, the command's; later ones win. */
static void gather_env(struct live *live, const struct running *running, struct texts *out)
{
    autotexts own = {0};
    autotexts more = {0};

    for (char **entry = live->runtime_env; entry && *entry; entry++)
        texts_add(out, *entry);
    (void)pthread_mutex_lock(&live->lock);
    if (live->record.home)
        texts_set(out, "HOME", live->record.home);
    texts_unpack(live->record.env, &own);
    (void)pthread_mutex_unlock(&live->lock);
    texts_unpack(running->record.env, &more);
    for (size_t i = 0; i < own.count + more.count; i++) {
        char *entry = i < own.count ? own.items[i] : more.items[i - own.count];
        char *equals = strchr(entry, '=');
        *equals = '\0';
        texts_set(out, entry, equals + 1);
        *equals = '=';
    }
}

/* A pipe for its input; the feed fills the other end. */
static int open_input(struct live *live, struct running *running, int *read_end, struct error *err)
{
    int ends[2];
    if (!running->input)
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    *read_end = ends[0];
    running->feed =
        feed_new(keeper_loop(live->core->keeper), live->core->hub, running->input, ends[1]);
    return 0;
}

int command_spawn(struct live *live, struct running *running, struct error *err)
{
    const struct execution_record *record = &running->record;
    const struct sandbox_record *sandbox = &live->record; // what is read of it never changes
    autotexts argv = {0};
    autotexts env = {0};
    autofd input = -1;

    texts_unpack(record->command, &argv);
    gather_env(live, running, &env);
    if (open_input(live, running, &input, err) < 0)
        return -1;
    struct process_spec spec = {
        .id = running->number,
        .argv = (const char *const *)argv.items,
        .env = (const char *const *)env.items,
        .cwd = record->working_directory ? record->working_directory : sandbox->working_directory,
        .user = record->box_user ? record->box_user : sandbox->box_user,
        .output = OUTPUT_SPOOL,
        .stdin_fd = input,
        .stdout_fd = running->output ? stream_write_fd(running->output) : -1,
        .stderr_fd = running->error ? stream_write_fd(running->error) : -1,
        .has_timestamps = record->has_timestamps,
        .output_cap_bytes = (uint64_t)record->output_cap_bytes,
        .timeout_ms = (uint64_t)record->timeout_ms,
    };
    if (live_lock_box(live, err) < 0)
        return -1;
    int result = box_spawn(live->box, &spec, NULL, err);
    live_unlock_box(live);
    running->is_spawned = result == 0;
    if (result < 0 && err->kind == ERROR_GONE)
        return error_about(err, "sandbox", "ended");
    return result;
}

void command_kill(struct live *live, struct running *running)
{
    struct error ignored = {0};

    if (live_lock_box(live, &ignored) < 0)
        return; // it ends with its sandbox
    (void)box_signal(live->box, running->number, SIGKILL, true, &ignored);
    live_unlock_box(live);
}

/* It is in the store already. */
static int put_queued(struct core *core, struct running *running, struct error *err)
{
    if (running->is_renumbered && store_execution_renumber(core->store, &running->record, err) < 0)
        return -1;
    return store_execution_update(core->store, &running->record,
                                  EXECUTION_PART_STATE | EXECUTION_PART_STREAMS,
                                  execution_in(EXECUTION_QUEUED), err);
}

int command_put(struct live *live, struct running *running, struct error *err)
{
    struct core *core = live->core;

    if ((running->is_queued ? put_queued(core, running, err)
                            : store_execution_add(core->store, &running->record, err)) < 0)
        return -1;
    if (running->is_output_new && streams_put(core->streams, running->output, err) < 0)
        return -1;
    return running->is_error_new ? streams_put(core->streams, running->error, err) : 0;
}

static void remove_from_list(struct live *live, struct running *running)
{
    bool was_there = false;

    (void)pthread_mutex_lock(&live->turn);
    (void)pthread_mutex_lock(&live->lock);
    struct running **at = &live->commands;
    while (*at && *at != running)
        at = &(*at)->next;
    if (*at) {
        *at = running->next;
        was_there = true;
    }
    (void)pthread_mutex_unlock(&live->lock);
    (void)pthread_mutex_unlock(&live->turn);
    if (was_there)
        running_free(running);
}

void command_abort(struct live *live, struct running *running)
{
    if (running->is_spawned)
        command_kill(live, running);
    drop_streams(live, running);
    remove_from_list(live, running);
    if (running->has_exit) // else it comes when nobody knows it any more, and is collected then
        command_collect(live, running->number);
}
