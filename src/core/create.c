/* SPDX-License-Identifier: Apache-2.0 */
/* How sandboxes are made; see sandbox.h. */
#include "core/sandbox.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/command.h"
#include "core/ending.h"
#include "core/keeper.h"
#include "core/layers.h"
#include "core/lookup.h"
#include "core/merge.h"
#include "core/note.h"
#include "core/once.h"
#include "core/pool.h"
#include "core/runtime.h"
#include "core/snapshot_impl.h"
#include "core/texts.h"
#include "store/checkpoints.h"
#include "engine/files.h"

#include <semaphore.h>
#include <string.h>

#define MIN_MEMORY (4 << 20)
#define MIN_DISK (1 << 20)
#define MIN_CPU 10
#define FILE_TIMEOUT_MS 60000

/* A sandbox on its way. */
struct birth {
    struct core *core;
    const struct actor *actor;
    const struct sandbox_request *request;
    struct snapshot_record snapshot; // what it starts from; id NULL: nothing but its runtime
    struct live *live;
    struct running *running; // of the first command, or NULL
    bool is_known;           // in the registry
    bool is_put;             // has a row
};

/* The row of a sandbox that is kept goes to the disk while its box is launched. */
struct put {
    struct core *core;
    const struct sandbox_record *record;
    sem_t done;
    int result;
    struct error err;
};

static int check_path(const char *path, const char *what, struct error *err)
{
    if (path && (*path != '/' || strstr(path, "/../")))
        return error_set(err, ERROR_INVALID, "%s '%.80s' is not an absolute path", what, path);
    return 0;
}

static int check_limits(const struct sandbox_request *request, struct error *err)
{
    if (request->memory_bytes < 0 || (request->memory_bytes && request->memory_bytes < MIN_MEMORY))
        return error_set(err, ERROR_INVALID, "memory: a sandbox needs at least 4Mi");
    if (request->disk_bytes < 0 || (request->disk_bytes && request->disk_bytes < MIN_DISK))
        return error_set(err, ERROR_INVALID, "disk: a sandbox needs at least 1Mi");
    if (request->cpu_millicores < 0 ||
        (request->cpu_millicores && request->cpu_millicores < MIN_CPU))
        return error_set(err, ERROR_INVALID, "cpu: a sandbox needs at least 10m");
    return 0;
}

static int check(const struct sandbox_request *request, struct error *err)
{
    for (const char *const *entry = request->env; entry && *entry; entry++) {
        if (**entry == '=' || !strchr(*entry, '='))
            return error_set(err, ERROR_INVALID, "environment entry '%.80s' is not NAME=VALUE",
                             *entry);
    }
    if (request->mode == SANDBOX_ONE_SHOT && !request->command)
        return error_set(err, ERROR_INVALID, "a one-shot sandbox needs a command");
    if (check_path(request->home, "home", err) < 0 ||
        check_path(request->working_directory, "working directory", err) < 0)
        return -1;
    return check_limits(request, err);
}

static int64_t either(int64_t wanted, int64_t standard)
{
    return wanted == SANDBOX_DEFAULT ? standard : wanted;
}

/* One name for one thing: "base" is "base:latest". */
static char *name_runtime(const struct birth *birth)
{
    const char *asked = birth->snapshot.id ? birth->snapshot.runtime : birth->request->runtime;
    const char *name = asked ? asked : birth->core->settings.default_runtime;

    return xasprintf("%s%s", name, strchr(name, ':') ? "" : ":latest");
}

/* Texts are borrowed from request and actor, but for those in `own`. */
static struct sandbox_record describe(const struct birth *birth, const char *id, char *own_env,
                                      char *own_command, char *own_runtime)
{
    const struct sandbox_request *request = birth->request;
    const struct core_settings *settings = &birth->core->settings;
    int64_t now = (int64_t)clock_wall_ms();

    return (struct sandbox_record){
        .id = id,
        .owner = actor_owner(birth->actor),
        .key_id = *birth->actor->key_id ? birth->actor->key_id : NULL,
        .name = request->name,
        .description = request->description,
        .metadata = request->metadata,
        .scopes = request->scopes,
        .asked = request->asked,
        .mode = request->mode,
        .runtime = own_runtime,
        .snapshot = birth->snapshot.id,
        .layers = birth->snapshot.layers,
        .command = own_command,
        .max_executions = request->max_executions,
        .box_user = request->box_user,
        .home = request->home,
        .working_directory = request->working_directory,
        .memory_bytes = request->memory_bytes ? request->memory_bytes : settings->memory_bytes,
        .cpu_millicores =
            request->cpu_millicores ? request->cpu_millicores : settings->cpu_millicores,
        .disk_bytes = request->disk_bytes ? request->disk_bytes : settings->disk_bytes,
        .max_processes = request->max_processes ? request->max_processes : settings->max_processes,
        .env = own_env,
        .idle_timeout_ms = either(request->idle_timeout_ms, settings->idle_timeout_ms),
        .execution_timeout_ms =
            either(request->execution_timeout_ms, settings->execution_timeout_ms),
        .paused_timeout_ms = either(request->paused_timeout_ms, 0),
        .on_idle = request->on_idle,
        .expires_at = request->expires_at,
        .keep_ms = request->keep_ms,
        .active_at = now,
        .state = SANDBOX_CREATING,
        .exit_code = NO_EXIT_CODE,
        .box_slot = SANDBOX_NO_SLOT,
        .created_at = now,
        .updated_at = now,
    };
}

/* A snapshot's variables, and over them those asked for. */
static char *merge_env(const char *below, const char *const *over)
{
    autotexts env = {0};

    texts_unpack(below, &env);
    for (const char *const *entry = over; entry && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        autofree char *name = xstrndup(*entry, (size_t)(equals - *entry));
        texts_set(&env, name, equals + 1);
    }
    return texts_pack((const char *const *)env.items);
}

/* As the snapshot has them now: they may have been merged since it was looked up. */
static void set_layers(struct live *live, const char *layers)
{
    (void)pthread_mutex_lock(&live->lock); // the keeper sees it already
    free((char *)live->record.layers);
    live->record.layers = xstrdup(layers);
    (void)pthread_mutex_unlock(&live->lock);
}

static int put_uses(struct birth *birth, struct store_transaction *together, struct error *err)
{
    struct core *core = birth->core;
    autosnapshot now = {0};

    if (store_begin(core->store, STORE_DURABLE, together, err) < 0 ||
        store_snapshot_get(core->store, birth->snapshot.id, &now, err) < 0)
        return -1;
    if (now.state != SNAPSHOT_READY)
        return lookup_missing("snapshot", now.id, err);
    set_layers(birth->live, now.layers);
    if (layers_use(core, now.layers, birth->live->id, err) < 0)
        return -1;
    return store_commit(together, err);
}

/* From here on its layers stay, whatever becomes of the snapshot. */
static int hold_layers(struct birth *birth, struct error *err)
{
    autotransaction together = {0};
    int result;

    if (!birth->snapshot.id)
        return 0;
    if (merge_for_start(birth->core, birth->snapshot.id, birth->snapshot.layers, err) < 0)
        return -1;
    do
        result = put_uses(birth, &together, err);
    while (result < 0 && store_again(&together, err));
    return result;
}

static int conceive(struct birth *birth, struct error *err)
{
    const struct sandbox_request *request = birth->request;
    char id[ID_TEXT];
    autofree char *env = merge_env(birth->snapshot.env, request->env);
    autofree char *command = request->command ? texts_pack(request->command->argv) : NULL;
    autofree char *runtime = name_runtime(birth);

    struct sandbox_record record = describe(birth, id_make(id), env, command, runtime);
    birth->live = live_new(birth->core, &record);
    if (registry_add(birth->core->registry, birth->live, birth->core->settings.max_sandboxes, err) <
        0)
        return -1;
    birth->is_known = true;
    if (hold_layers(birth, err) < 0)
        return -1;
    if (!request->command)
        return 0;
    if (command_prepare(birth->live, birth->actor, request->command, &birth->running, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&birth->live->lock); // the keeper sees it already
    birth->live->n_executions = 1;
    birth->live->record.execution_id = xstrdup(birth->running->id);
    (void)pthread_mutex_unlock(&birth->live->lock);
    return 0;
}

static void put_row(void *data)
{
    struct put *put = data;
    put->result = store_sandbox_put(put->core->store, put->record, &put->err);
    (void)sem_post(&put->done);
}

static void start_put(struct core *core, const struct sandbox_record *record, struct put *put)
{
    struct error full = {0};
    put->core = core;
    put->record = record;
    (void)sem_init(&put->done, 0, 0);
    if (workers_submit(core->crew, WORKERS_QUICK, put_row, put, &full) < 0)
        put_row(put);
}

static int await_put(struct birth *birth, struct put *put, struct error *err)
{
    while (sem_wait(&put->done) < 0)
        ;
    (void)sem_destroy(&put->done);
    birth->is_put = put->result == 0 || store_is_lost(&put->err); // what may be there is buried too
    if (put->result < 0)
        *err = put->err;
    return put->result;
}

static int take_box(struct birth *birth, struct error *err)
{
    struct live *live = birth->live;
    const struct pool_request wanted = pool_request_of(&live->record);
    struct pooled pooled = {0};

    ending_help(birth->core);
    if (pool_take(birth->core->pool, &wanted, &pooled, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&live->box_lock);
    live->box = pooled.box;
    live->runtime_env = pooled.env;
    int result = keeper_watch(birth->core->keeper, live, err);
    if (!birth->running)
        box_prepare(live->box, live_next_number(live));
    live_unlock_box(live);
    (void)pthread_mutex_lock(&live->lock);
    live->record.box_slot = box_slot(pooled.box);
    live->record.scratch = pooled.scratch[0] ? xstrdup(pooled.scratch) : NULL;
    (void)pthread_mutex_unlock(&live->lock);
    return result;
}

/* Box and row, side by side where there is a row to write that early. */
static int make_box(struct birth *birth, struct error *err)
{
    struct put put = {0};
    struct error later = {0};

    if (birth->request->mode == SANDBOX_ONE_SHOT)
        return take_box(birth, err);
    autosandbox early = {0}; // the live one gets its box's fields meanwhile
    sandbox_record_copy(&early, &birth->live->record);
    start_put(birth->core, &early, &put);
    int result = take_box(birth, err);
    if (await_put(birth, &put, &later) < 0 && result == 0) {
        *err = later;
        result = -1;
    }
    return result;
}

static int write_files(int conversation, const struct sandbox_file *files, size_t count,
                       struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (files_write_buffer(conversation, files[i].path, 0644, FILES_PARENTS, files[i].data,
                               files[i].length, err) < 0) {
            error_wrap(err, "write '%.200s'", files[i].path);
            return error_about(err, "file", NULL);
        }
    }
    return 0;
}

static int make_dir(int conversation, const char *path, struct error *err)
{
    return path ? files_mkdir(conversation, path, 0755, FILES_PARENTS, err) : 0;
}

/* Starting a command makes its directory; everything else needs files to be talked about. */
static int furnish(struct birth *birth, struct error *err)
{
    const struct sandbox_request *request = birth->request;
    size_t n_more = request->command ? request->command->n_files : 0;
    autofd conversation = -1;

    if (request->mode == SANDBOX_ONE_SHOT && request->n_files + n_more == 0)
        return 0;
    // From the root, since the working directory may not be there yet.
    if (live_lock_box(birth->live, err) < 0)
        return -1;
    int result = box_files(birth->live->box, request->box_user, "/", &conversation, err);
    live_unlock_box(birth->live);
    if (result < 0 || files_set_timeout(conversation, FILE_TIMEOUT_MS, err) < 0 ||
        make_dir(conversation, request->home, err) < 0 ||
        make_dir(conversation, request->working_directory, err) < 0)
        return -1;
    if (request->n_files + n_more == 0)
        return 0;
    closep(&conversation);
    if (live_files(birth->live, &conversation, err) < 0 ||
        files_set_timeout(conversation, FILE_TIMEOUT_MS, err) < 0 ||
        write_files(conversation, request->files, request->n_files, err) < 0)
        return -1;
    return n_more ? write_files(conversation, request->command->files, n_more, err) : 0;
}

static int put_events(struct birth *birth, int64_t now, struct error *err)
{
    struct note created = {.type = EVENT_CREATE, .now = now};
    struct note started = {.type = EVENT_STARTED, .reason = "created", .now = now};

    note_fact(&created, "runtime", birth->live->record.runtime);
    if (birth->running)
        note_fact(&started, "execution", birth->running->id);
    if (note_put(birth->live, &created, err) < 0)
        return -1;
    return note_put(birth->live, &started, err);
}

static int put_sandbox(struct birth *birth, const struct sandbox_record *next, struct error *err)
{
    struct store *store = birth->core->store;

    if (!birth->is_put)
        return store_sandbox_put(store, next, err);
    return store_sandbox_update(store, next, SANDBOX_PART_LIVING | SANDBOX_PART_BOX,
                                sandbox_in(SANDBOX_CREATING), err);
}

/* Everything that is there becomes a record of that, in one go. The caller has the turn. */
static int put_all(struct birth *birth, struct sandbox_record *next, struct error *err)
{
    struct core *core = birth->core;
    autotransaction together = {0};
    int64_t now = (int64_t)clock_wall_ms();
    bool is_put;

    live_copy(birth->live, next);
    if (lifecycle_take(next, birth->running ? STEP_BEGIN : STEP_READY, NULL, now, err) < 0)
        return -1;
    next->updated_at = next->active_at = now;
    do
        is_put = store_begin(core->store, STORE_FAST, &together, err) == 0 &&
                 put_sandbox(birth, next, err) == 0 && put_events(birth, now, err) == 0 &&
                 (!birth->running || command_put(birth->live, birth->running, err) == 0) &&
                 once_finish(core, birth->actor, birth->request->once, birth->live->id, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

static int record_all(struct birth *birth, struct sandbox_record *out,
                      struct execution_record *first, struct error *err)
{
    autosandbox next = {0};

    (void)pthread_mutex_lock(&birth->live->turn);
    if (put_all(birth, &next, err) < 0) {
        (void)pthread_mutex_unlock(&birth->live->turn);
        return -1;
    }
    birth->is_put = true;
    live_change(birth->live, &next);
    live_touch(birth->live);
    live_copy(birth->live, out);
    if (birth->running && first)
        running_copy(birth->running, first);
    if (birth->running)
        command_recorded(birth->live, birth->running); // gives the turn back
    else
        (void)pthread_mutex_unlock(&birth->live->turn);
    return 0;
}

static int give_birth(struct birth *birth, struct sandbox_record *out,
                      struct execution_record *first, struct error *err)
{
    if (conceive(birth, err) < 0 || make_box(birth, err) < 0 || furnish(birth, err) < 0)
        return -1;
    if (birth->running && command_spawn(birth->live, birth->running, err) < 0)
        return -1;
    return record_all(birth, out, first, err);
}

/* What had got a row stays known as failed; nothing else is left. */
static void bury(struct birth *birth, const struct error *why)
{
    struct live *live = birth->live;
    struct error ignored = {0};

    if (!live)
        return;
    if (birth->running)
        command_abort(live, birth->running);
    ending_bury(live, birth->is_put, birth->is_known, why->text);
    if (birth->snapshot.id && store_layer_release(birth->core->store, live->id, &ignored) == 0)
        layers_tidy(birth->core);
}

static void birth_clear(struct birth *birth)
{
    running_free(birth->running);
    live_free(birth->live);
    snapshot_record_clear(&birth->snapshot);
}

/* The same request was answered before. */
static int recall(struct core *core, const struct actor *actor, const char *id,
                  struct sandbox_record *out, struct execution_record *first, struct error *err)
{
    autosandbox record = {0};

    if (sandbox_get(core, actor, id, true, &record, err) < 0)
        return -1;
    if (first && record.execution_id &&
        execution_get(core, actor, record.execution_id, NULL, first, err) < 0)
        return -1;
    *out = record;
    record = (struct sandbox_record){0};
    return 0;
}

int sandbox_create(struct core *core, const struct actor *actor,
                   const struct sandbox_request *request, struct sandbox_record *out,
                   struct execution_record *first, struct error *err)
{
    __attribute__((cleanup(birth_clear))) struct birth birth = {
        .core = core, .actor = actor, .request = request};
    char earlier[ID_TEXT];
    bool is_new = false;

    if (check(request, err) < 0 ||
        (request->runtime && runtime_check(core, request->runtime, err) < 0) ||
        once_claim(core, actor, request->once, &is_new, earlier, err) < 0)
        return -1;
    if (!is_new)
        return recall(core, actor, earlier, out, first, err);
    if (request->snapshot &&
        snapshot_find_ready(core, actor, request->snapshot, &birth.snapshot, err) < 0) {
        once_release(core, actor, request->once);
        return -1;
    }
    if (give_birth(&birth, out, first, err) == 0)
        return 0;
    bury(&birth, err);
    once_release(core, actor, request->once);
    return -1;
}
