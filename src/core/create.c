/* SPDX-License-Identifier: Apache-2.0 */
/* How sandboxes are made; see create.h. */
#include "core/create.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/label.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/create_impl.h"
#include "core/fork_files.h"
#include "core/event/hub.h"
#include "core/execution/execution_info_impl.h"
#include "core/execution/execution_end.h"
#include "core/execution/execution_launch.h"
#include "core/execution/executions.h"
#include "core/sandbox/mailbox.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/sandbox_modify.h"
#include "core/sandbox/ending.h"
#include "core/sandbox/host_mounts.h"
#include "core/sandbox/monitor.h"
#include "core/layer/layers.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_info_impl.h"
#include "core/snapshot/merge.h"
#include "core/sandbox/sandbox_event.h"
#include "core/sandbox/sandbox_network.h"
#include "core/network/network_wish.h"
#include "core/network/outlet.h"
#include "core/account/ceiling.h"
#include "core/account/key.h"
#include "core/account/once.h"
#include "core/sandbox/pool.h"
#include "core/runtime/runtime.h"
#include "core/runtime/runtimes.h"
#include "core/snapshot/snapshot_impl.h"
#include "base/strings.h"
#include "store/checkpoints.h"
#include "install/install.h"
#include "runtime/catalog.h"
#include "runtime/requirements.h"

#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

/* The row of a sandbox that is kept goes to the disk while its box is launched. */
struct put {
    const struct sandbox_record *record;
    bool is_name_unique;
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

static int check(const struct core *core, const struct sandbox_request *request, struct error *err)
{
    const struct ceilings *most = &core->settings.ceilings;
    const char *fault =
        request->is_name_unique && request->name ? sandbox_name_fault(request->name) : NULL;

    if (fault)
        return error_refuse(err, ERROR_INVALID, "name", "name: %s", fault);
    if (strings_check_env(request->usual.env, err) < 0 || labels_check(request->labels, err) < 0)
        return -1;
    if (request->mode == SANDBOX_ONE_SHOT && !request->command)
        return error_set(err, ERROR_INVALID, "a one-shot sandbox needs a command");
    if (check_path(request->home, "home", err) < 0 ||
        check_path(request->usual.directory, "working directory", err) < 0)
        return -1;
    if (limits_check(&request->limits, err) < 0 ||
        limits_check_most(&request->limits, &most->sandbox, "this server", true, err) < 0 ||
        ceiling_check_time("idle-timeout", request->idle_timeout_ms, most->idle_timeout_ms, err) <
            0 ||
        host_mounts_check(&core->settings, request->mounts, request->n_mounts, err) < 0)
        return -1;
    for (size_t i = 0; i < request->n_ports; i++) {
        if (port_check(&request->ports[i], err) < 0)
            return -1;
    }
    return ceiling_check_time("execution-timeout", request->usual.timeout_ms,
                              most->execution_timeout_ms, err);
}

static int64_t either(int64_t wanted, int64_t standard)
{
    return wanted == SANDBOX_DEFAULT ? standard : wanted;
}

/* When it ends at the latest; 0: never. */
static int64_t last_moment(const struct creation *creation, int64_t now)
{
    int64_t asked = creation->request->expires_at;
    int64_t lifetime_ms = creation->core->settings.ceilings.lifetime_ms;

    if (lifetime_ms == 0)
        return asked;
    return asked != 0 && asked < now + lifetime_ms ? asked : now + lifetime_ms;
}

static char *name_runtime(const struct creation *creation)
{
    const char *asked = creation->snapshot.id ? creation->snapshot.runtime
                        : *creation->runtime  ? creation->runtime
                                              : NULL;
    const char *name = asked ? asked : creation->core->settings.default_runtime;

    return runtime_full_name(name);
}

/* What nothing was said about is at least what its runtime needs. */
static struct limits limits_of(const struct creation *creation)
{
    const struct limits limits =
        limits_or_default(&creation->request->limits, &creation->core->settings.limits);

    return requirements_raise(&limits, &creation->needed);
}

/* Strings are borrowed. */
static struct sandbox_record describe(const struct creation *creation, const char *id,
                                      const struct strings *env, const char *runtime)
{
    const struct sandbox_request *request = creation->request;
    const struct core_settings *settings = &creation->core->settings;
    int64_t now = (int64_t)clock_wall_ms();

    return (struct sandbox_record){
        .id = id,
        .owner = actor_owner(creation->actor),
        .key_id = *creation->actor->key_id ? creation->actor->key_id : NULL,
        .name = request->name,
        .description = request->description,
        .metadata = request->metadata,
        .scopes = request->scopes,
        .asked = request->asked,
        .labels = request->labels,
        .mode = request->mode,
        .runtime = runtime,
        .dependencies = creation->dependencies,
        .packages = creation->packages,
        .mounts = creation->mounts,
        .snapshot = request->fork_of ? creation->fork.snapshot : creation->snapshot.id,
        .layers = request->fork_of ? creation->fork.layers : creation->snapshot.layers,
        .command = {.argv = request->command ? request->command->command.argv : NULL,
                    .env = (const char *const *)env->items,
                    .directory = request->usual.directory,
                    .user = request->usual.user,
                    .timeout_ms = ceiling_time(
                        either(request->usual.timeout_ms, settings->execution_timeout_ms),
                        settings->ceilings.execution_timeout_ms)},
        .max_executions = request->max_executions,
        .home = request->home,
        .limits = limits_of(creation),
        .network = creation->network,
        .idle_timeout_ms = ceiling_time(either(request->idle_timeout_ms, settings->idle_timeout_ms),
                                        settings->ceilings.idle_timeout_ms),
        .paused_timeout_ms = either(request->paused_timeout_ms, 0),
        .on_idle = request->on_idle,
        .expires_at = last_moment(creation, now),
        .on_expiry = request->on_expiry,
        .front_data = request->front_data,
        .keep_ms = request->keep_ms,
        .active_at = now,
        .state = SANDBOX_CREATING,
        .exit_code = NO_EXIT_CODE,
        .box_slot = SANDBOX_NO_SLOT,
        .created_at = now,
        .updated_at = now,
    };
}

/* As the snapshot has them now: they may have been merged since it was looked up. */
static void set_layers(struct sandbox *sandbox, const char *layers)
{
    autolock(&sandbox->lock); // the monitor sees it already
    free((char *)sandbox->record.layers);
    sandbox->record.layers = xstrdup(layers);
}

static int put_uses(struct creation *creation, struct store_transaction *together,
                    struct error *err)
{
    struct core *core = creation->core;
    autosnapshot now = {0};

    if (store_begin(core->store, STORE_DURABLE, together, err) < 0 ||
        store_snapshot_get(core->store, creation->snapshot.id, &now, err) < 0)
        return -1;
    if (now.state != SNAPSHOT_READY)
        return error_missing(err, "snapshot", now.id);
    set_layers(creation->sandbox, now.layers);
    if (layers_use(core->layers, now.layers, creation->sandbox->id, err) < 0)
        return -1;
    return store_commit(together, err);
}

/* From here on its layers stay, whatever becomes of the snapshot. */
static int hold_layers(struct creation *creation, struct error *err)
{
    autotransaction together = {0};
    int result;

    if (creation->request->fork_of)
        return fork_files_hold(&creation->fork, creation->sandbox->id, err);
    if (!creation->snapshot.id)
        return 0;
    if (merge_for_start(creation->core->snapshots, creation->snapshot.id, creation->snapshot.layers,
                        err) < 0)
        return -1;
    do
        result = put_uses(creation, &together, err);
    while (result < 0 && store_again(&together, err));
    return result;
}

/* Their addresses are told in the answer, which may come before there is a box. */
static int expose(struct creation *creation, struct error *err)
{
    const struct sandbox_request *request = creation->request;

    for (size_t i = 0; i < request->n_ports; i++) {
        if (port_expose_new(creation->core->ports, creation->actor, creation->sandbox->id,
                            &request->ports[i], &request->exposed[i], err) < 0)
            return -1;
    }
    return 0;
}

/* Before it gets a box; asked again when it is written. */
static int check_name(struct creation *creation, const struct sandbox_record *record,
                      struct error *err)
{
    if (!creation->request->is_name_unique || !record->name)
        return 0;
    lookup_settle_named(creation->core->sandboxes, &record->owner, record->name);
    return store_sandbox_check_name(creation->core->store, record, err);
}

int creation_reserve(struct creation *creation, struct error *err)
{
    const struct sandbox_request *request = creation->request;
    char id[ID_TEXT];
    autostrings env = {0}; // the snapshot's, and over them those asked for
    autofree char *runtime = name_runtime(creation);

    strings_unpack(creation->snapshot.env, &env);
    strings_merge(&env, request->usual.env);
    if (descriptors_check(err) < 0)
        return -1;
    const struct key_wish wish = {.runtime = runtime,
                                  .labels = request->labels,
                                  .network = &creation->network,
                                  .is_open = network_default_allows(&creation->network)};
    if (key_rules_check(creation->core->accounts, creation->actor, &wish, err) < 0)
        return -1;
    struct sandbox_record record = describe(creation, id_make(id), &env, runtime);
    if (check_name(creation, &record, err) < 0)
        return -1;
    creation->sandbox = sandbox_new(creation->core->sandboxes, &record);
    if (registry_add(creation->core->sandboxes->registry, creation->sandbox, creation->actor,
                     creation->core->settings.max_sandboxes,
                     creation->core->settings.ceilings.organisation.sandboxes, err) < 0)
        return -1;
    creation->is_known = true;
    if (expose(creation, err) < 0 || hold_layers(creation, err) < 0)
        return -1;
    if (!request->command)
        return 0;
    if (execution_prepare(creation->sandbox, creation->actor, request->command,
                          &creation->execution, err) < 0)
        return -1;
    autolock(&creation->sandbox->lock); // the monitor sees it already
    creation->sandbox->n_executions = 1;
    creation->sandbox->record.execution_id = xstrdup(creation->execution->id);
    return 0;
}

/* With a name that nobody else has, from here on. */
static int put_named(struct store *store, const struct sandbox_record *record, struct error *err)
{
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(store, STORE_DURABLE, &together, err) == 0 &&
                 store_sandbox_check_name(store, record, err) == 0 &&
                 store_sandbox_put(store, record, err) == 0 && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

static void put_row(struct sandbox *sandbox, void *data)
{
    struct store *store = sandbox->sandboxes->store;
    struct put *put = data;

    put->result = put->is_name_unique ? put_named(store, put->record, &put->err)
                                      : store_sandbox_put(store, put->record, &put->err);
    (void)sem_post(&put->done);
}

static void start_put(struct sandbox *sandbox, const struct sandbox_record *record, struct put *put)
{
    put->record = record;
    (void)sem_init(&put->done, 0, 0);
    mailbox_post(sandbox, put_row, put);
}

static int await_put(struct creation *creation, struct put *put, struct error *err)
{
    while (sem_wait(&put->done) < 0)
        ;
    (void)sem_destroy(&put->done);
    creation->is_put =
        put->result == 0 || store_is_lost(&put->err); // what may be there is abandoned too
    if (put->result < 0)
        *err = put->err;
    return put->result;
}

/* Listens to it from here on. */
static int set_box(struct creation *creation, struct pooled *pooled, struct error *err)
{
    struct sandbox *sandbox = creation->sandbox;
    autobox held = sandbox_hold_box(sandbox);

    sandbox->box = pooled->box;
    sandbox->runtime_env = pooled->env;
    sandbox->has_resident = box_has_resident(pooled->box);
    if (sandbox_admit(sandbox, true, err) < 0)
        return -1;
    if (!creation->execution)
        box_prepare(sandbox->box, sandbox_next_number(sandbox));
    return monitor_watch(sandbox->sandboxes->monitor, sandbox, err);
}

int creation_take_box(struct creation *creation, struct error *err)
{
    struct sandbox *sandbox = creation->sandbox;
    const struct pool_request wanted = pool_request_of(&sandbox->record);
    struct pooled pooled = {0};

    ending_help(creation->core->sandboxes);
    if (pool_take(creation->core->sandboxes->pool, &wanted, &pooled, err) < 0)
        return -1;
    int result = set_box(creation, &pooled, err);
    autolock(&sandbox->lock);
    sandbox->record.box_slot = box_slot(pooled.box);
    sandbox->record.scratch = pooled.scratch[0] ? xstrdup(pooled.scratch) : NULL;
    return result;
}

/* Box and row, side by side where there is a row to write that early: of one that is kept, or has a name that nobody else may have. */
static int make_box(struct creation *creation, struct error *err)
{
    const struct sandbox_request *request = creation->request;
    struct put put = {.is_name_unique = request->is_name_unique && request->name};
    struct error later = {0};

    if (request->mode == SANDBOX_ONE_SHOT && !put.is_name_unique)
        return creation_take_box(creation, err);
    autosandbox early = {0}; // the live one gets its box's fields meanwhile
    sandbox_record_copy(&early, &creation->sandbox->record);
    start_put(creation->sandbox, &early, &put);
    int result = creation_take_box(creation, err);
    if (await_put(creation, &put, &later) < 0 && result == 0) {
        *err = later;
        result = -1;
    }
    return result;
}

static int put_events(struct creation *creation, int64_t now, struct error *err)
{
    struct event created = {.type = EVENT_CREATE, .now = now};
    struct event started = {.type = EVENT_STARTED, .reason = "created", .now = now};

    event_fact(&created, "runtime", creation->sandbox->record.runtime);
    event_fact(&created, "fork_of", creation->request->fork_of);
    if (creation->execution)
        event_fact(&started, "execution", creation->execution->id);
    if (event_put(creation->sandbox, &created, err) < 0)
        return -1;
    return event_put(creation->sandbox, &started, err);
}

static int put_sandbox(struct creation *creation, const struct sandbox_record *next,
                       struct error *err)
{
    struct store *store = creation->core->store;

    if (!creation->is_put)
        return store_sandbox_put(store, next, err);
    return store_sandbox_update(store, next, SANDBOX_PART_LIVING | SANDBOX_PART_BOX,
                                sandbox_in(SANDBOX_CREATING), err);
}

/* Everything that is there becomes a record of that, in one go. The caller holds record_lock. */
static int put_all(struct creation *creation, struct sandbox_record *next, struct error *err)
{
    struct core *core = creation->core;
    autotransaction together = {0};
    int64_t now = (int64_t)clock_wall_ms();
    bool is_put;

    const struct once *once = creation->request->once;
    struct sandbox *sandbox = creation->sandbox;

    sandbox_copy(sandbox, next);
    if (lifecycle_take(next, creation->execution ? STEP_BEGIN : STEP_READY, NULL, now, err) < 0)
        return -1;
    next->updated_at = next->active_at = now;
    do
        is_put = store_begin(core->store, STORE_FAST, &together, err) == 0 &&
                 put_sandbox(creation, next, err) == 0 && put_events(creation, now, err) == 0 &&
                 (!creation->execution || execution_put(sandbox, creation->execution, err) == 0) &&
                 once_finish(core->accounts, creation->actor, once, sandbox->id, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

static int record_all(struct creation *creation, struct sandbox_info *out,
                      struct execution_info *first, struct error *err)
{
    autosandbox next = {0};
    autoexecution started = {0};

    autolock(&creation->sandbox->record_lock);
    if (put_all(creation, &next, err) < 0)
        return -1;
    creation->is_put = true;
    sandbox_show(creation->sandbox, &next); // it has neither reason nor error, before and after
    sandbox_touch(creation->sandbox);
    if (creation->execution && first)
        execution_copy(creation->execution, &started);
    if (creation->execution)
        execution_recorded(creation->sandbox, creation->execution);
    sandbox_info_take(out, &next);
    if (creation->execution && first)
        execution_info_take(first, &started);
    return 0;
}

/* Once there is a box. */
int creation_finish(struct creation *creation, struct sandbox_info *out,
                    struct execution_info *first, struct error *err)
{
    if (creation_populate(creation, err) < 0)
        return -1;
    if (creation->execution && execution_spawn(creation->sandbox, creation->execution, err) < 0)
        return -1;
    if (record_all(creation, out, first, err) < 0)
        return -1;
    if (creation->execution)
        execution_end_early(creation->sandbox, creation->execution);
    return 0;
}

static int create(struct creation *creation, struct sandbox_info *out, struct execution_info *first,
                  struct error *err)
{
    if (creation_reserve(creation, err) < 0 || make_box(creation, err) < 0)
        return -1;
    return creation_finish(creation, out, first, err);
}

/* What had got a row stays known as failed; nothing else is left. */
void creation_abandon(struct creation *creation, const struct error *why)
{
    struct sandbox *sandbox = creation->sandbox;
    struct error ignored = {0};

    if (!sandbox)
        return;
    if (creation->execution)
        execution_abort(sandbox, creation->execution);
    ending_abandon(sandbox, creation->is_put, creation->is_known, why->text);
    if ((creation->snapshot.id || creation->fork.is_held) &&
        store_layer_release(creation->core->store, sandbox->id, &ignored) == 0)
        layers_remove_unused_later(creation->core->layers);
}

void creation_clear(struct creation *creation)
{
    execution_free(creation->execution);
    sandbox_free(creation->sandbox);
    snapshot_record_clear(&creation->snapshot);
    fork_files_clear(&creation->fork);
    network_wish_clear(&creation->network);
    free(creation->dependencies);
    free(creation->packages);
    free(creation->mounts);
}

/* The row, and that this is the answer to the request: whoever sends it again gets the same. */
int creation_put_early(struct creation *creation, struct error *err)
{
    struct sandbox *sandbox = creation->sandbox;
    struct put put = {.is_name_unique =
                          creation->request->is_name_unique && creation->request->name};
    struct core *core = creation->core;
    autotransaction together = {0};
    autosandbox early = {0};
    bool is_put;

    sandbox_copy(sandbox, &early);
    start_put(sandbox, &early, &put);
    if (await_put(creation, &put, err) < 0)
        return -1;
    do
        is_put = store_begin(core->store, STORE_FAST, &together, err) == 0 &&
                 once_finish(core->accounts, creation->actor, creation->request->once, sandbox->id,
                             err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

static int refuse_unbuilt(const char *runtime, const char *state, struct error *err)
{
    return error_refuse(err, ERROR_NOT_BUILT, "runtime",
                        "runtime '%s' is being made (%s); try again in a moment", runtime, state);
}

/* As its runtime is: now, later, or not yet. */
static int create_when_built(struct creation *creation, struct sandbox_info *out,
                             struct execution_info *first, struct error *err)
{
    autofree char *runtime = name_runtime(creation);
    char state[IMAGE_STATE] = "";
    bool is_ready = true;

    autofree char *additions = additions_of(creation->dependencies, creation->packages);
    if (image_begin(creation->core->runtimes, runtime, additions, &is_ready, state, err) < 0)
        return -1;
    if (is_ready)
        return create(creation, out, first, err);
    if (creation->request->when_unbuilt == CREATE_GO_ON)
        return create_later(creation, out, first, err);
    return refuse_unbuilt(runtime, state, err);
}

/* The same request was answered before. */
static int recall(struct core *core, const struct actor *actor, const char *id,
                  struct sandbox_info *out, struct execution_info *first, struct error *err)
{
    autoclear(sandbox_info) info = {0};

    if (sandbox_get(core->sandboxes, actor, id, true, &info, err) < 0)
        return -1;
    if (first && info.execution_id &&
        execution_get(core->executions, actor, info.execution_id, NULL, first, err) < 0)
        return -1;
    *out = info;
    info = (struct sandbox_info){0};
    return 0;
}

/* Beside those that its origin has. */
static char *join_lists(const char *packed, const char *const *more)
{
    autostrings all = {0};

    strings_unpack(packed, &all);
    for (; more && *more; more++)
        strings_add(&all, *more);
    return all.count ? strings_pack((const char *const *)all.items) : NULL;
}

static void add_packages(struct creation *creation, const char *dependencies, const char *packages)
{
    creation->dependencies = join_lists(dependencies, creation->request->dependencies);
    creation->packages = join_lists(packages, creation->request->packages);
}

/* What lies below its own files, where that is more than its runtime. */
static int find_origin(struct creation *creation, struct error *err)
{
    const struct sandbox_request *request = creation->request;
    struct core *core = creation->core;

    if (request->fork_of) {
        add_packages(creation, NULL, NULL);
        return fork_files_take(&creation->fork, core, creation->actor, request->fork_of, err);
    }
    if (request->snapshot && snapshot_find_ready(core->snapshots, creation->actor,
                                                 request->snapshot, &creation->snapshot, err) < 0)
        return -1;
    add_packages(creation, creation->snapshot.dependencies, creation->snapshot.packages);
    return 0;
}

/* Secrets are not inherited. */
static int want_network(struct creation *creation, struct error *err)
{
    const struct sandbox_request *request = creation->request;
    struct network_change change =
        request->network ? *request->network : (struct network_change){0};

    if (request->network_like)
        network_wish_copy(&creation->network, request->network_like);
    else if (!change.has_enabled && network_change_says(&change))
        change.has_enabled = change.is_enabled = true; // whoever names a host wants to get there
    if ((request->network_like || request->network) &&
        network_wish_change(&creation->core->settings, &change, &creation->network, err) < 0)
        return -1;
    return creation->network.is_enabled ? outlets_ready(creation->core->sandboxes->outlets, err)
                                        : 0;
}

static int check_runtime(struct creation *creation, struct error *err)
{
    const struct sandbox_request *request = creation->request;
    struct runtime_wish wish = {.name = request->runtime,
                                .has_packages = request->packages && request->packages[0],
                                .has_network = creation->network.is_enabled,
                                .limits = request->limits};

    if (install_check(request->dependencies, request->packages, err) < 0)
        return -1;
    if (!wish.name && (wish.has_packages || !(request->snapshot || request->fork_of)))
        wish.name = creation->core->settings.default_runtime;
    if (!wish.name)
        return 0;
    if (runtime_check(creation->core->runtimes, &wish, creation->runtime, err) < 0)
        return -1;
    creation->needed = wish.limits;
    return limits_check_most(&creation->needed, &creation->core->settings.ceilings.sandbox,
                             "this server", true, err);
}

/* What a sandbox is told by its runtime where nobody asked: an image has a user and a directory of its own. */
struct defaults {
    struct image
        *open; // one of these, or none where it is not built yet: that is not waited for here
    struct runtime_image *built;
};

static void defaults_clear(struct defaults *defaults)
{
    image_free(defaults->open);
    runtime_image_free(defaults->built);
}

static void take_defaults(const struct creation *creation, struct sandbox_request *own,
                          struct defaults *defaults)
{
    struct runtimes *runtimes = creation->core->runtimes;
    autofree char *name = name_runtime(creation);
    const struct runtime_image *runtime = NULL;
    struct error ignored = {0};

    if (runtimes_is_ready(runtimes, name)) {
        if (image_get(runtimes, name, &defaults->open, &ignored) == 0)
            runtime = image_runtime(defaults->open);
    } else if (runtime_image_open(runtimes_data_dir(runtimes), name, &defaults->built, &ignored) ==
               0) {
        runtime = defaults->built;
    }
    if (runtime && !own->usual.user)
        own->usual.user = runtime->user;
    if (runtime && !own->usual.directory)
        own->usual.directory = runtime->directory;
    if (!own->usual.directory)
        own->usual.directory = own->else_directory;
}

int sandbox_create(struct core *core, const struct actor *actor,
                   const struct sandbox_request *request, struct sandbox_info *out,
                   struct execution_info *first, struct error *err)
{
    __attribute__((cleanup(creation_clear))) struct creation creation = {
        .core = core, .actor = actor, .request = request};
    char earlier[ID_TEXT];
    bool is_new = false;

    if (check(core, request, err) < 0 || want_network(&creation, err) < 0 ||
        actor_refuse_token(actor, "make sandboxes", err) < 0 || check_runtime(&creation, err) < 0 ||
        once_claim(core->accounts, actor, request->once, &is_new, earlier, err) < 0)
        return -1;
    creation.mounts = mount_wishes_pack(request->mounts, request->n_mounts);
    if (!is_new)
        return recall(core, actor, earlier, out, first, err);
    if (find_origin(&creation, err) < 0) {
        once_release(core->accounts, actor, request->once);
        return -1;
    }
    struct sandbox_request own = *request;
    autoclear(defaults) defaults = {0};
    take_defaults(&creation, &own, &defaults);
    creation.request = &own;
    if (create_when_built(&creation, out, first, err) == 0)
        return 0;
    creation_abandon(&creation, err);
    once_release(core->accounts, actor, request->once);
    return -1;
}
