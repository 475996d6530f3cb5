/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes the core; see core.h. */
#include "core/core.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/account/audit.h"
#include "core/adopt.h"
#include "core/ceilings.h"
#include "core/code/code.h"
#include "core/data_lock.h"
#include "core/recipe.h"
#include "core/repair.h"
#include "core/seal.h"
#include "core/event/channel.h"
#include "core/execution/executions.h"
#include "core/execution/queue.h"
#include "core/network/outlet.h"
#include "install/install.h"
#include "core/port/port.h"
#include "core/runtime/runtimes.h"
#include "core/sandbox/monitor.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandboxes.h"
#include "core/sandbox/temporary.h"
#include "core/snapshot/snapshot_impl.h"
#include "core/stream/streams.h"
#include "core/webhook/webhook.h"
#include "loop/background.h"
#include "runtime/catalog.h"
#include "core/layer/layers.h"

#define RECORDERS 4 // threads
#define REAPERS 2
#define MAKERS 8 // they wait for the most part
#define MAKERS_QUEUE 256
#define REMOVERS 2

/* Where the strings of these settings are. */
static const char **network_strings(struct network_settings *network, size_t i)
{
    const char **const strings[] = {
        &network->addresses,    &network->uplink,      &network->dns,     &network->proxy,
        &network->allow_always, &network->deny_always, &network->baseline};

    return i < ARRAY_SIZE(strings) ? strings[i] : NULL;
}

static void copy_network(struct network_settings *network)
{
    for (size_t i = 0; network_strings(network, i); i++) {
        const char **text = network_strings(network, i);
        *text = *text && **text ? xstrdup(*text) : NULL;
    }
}

static void free_network(struct network_settings *network)
{
    for (size_t i = 0; network_strings(network, i); i++)
        free((char *)*network_strings(network, i));
}

static void copy_settings(struct core *core, const struct core_settings *settings)
{
    core->settings = *settings;
    core->settings.data_dir = xstrdup(settings->data_dir);
    core->settings.default_runtime = runtime_full_name(settings->default_runtime);
    core->settings.archive_program =
        settings->archive_program ? xstrdup(settings->archive_program) : NULL;
    core->settings.mount_allow =
        settings->mount_allow && *settings->mount_allow ? xstrdup(settings->mount_allow) : NULL;
    core->settings.webhook_networks =
        settings->webhook_networks ? xstrdup(settings->webhook_networks) : NULL;
    core->settings.debian_mirror =
        settings->debian_mirror ? xstrdup(settings->debian_mirror) : NULL;
    core->settings.npm_registry = settings->npm_registry ? xstrdup(settings->npm_registry) : NULL;
    copy_network(&core->settings.network);
    core->settings.fail_file = settings->fail_file ? xstrdup(settings->fail_file) : NULL;
}

static int open_streams(struct core *core, struct error *err)
{
    const struct streams_settings settings = {
        .data_dir = core->settings.data_dir,
        .limit_bytes = (uint64_t)core->settings.stream_limit_bytes,
        .total_bytes = core->settings.spool_limit_bytes,
        .keep_ms = core->settings.keep_ms,
        .most = core->settings.ceilings.total.streams,
        .organisation_most = core->settings.ceilings.organisation.streams,
    };
    return streams_open(core->store, core->hub, &settings, &core->streams, err);
}

static void open_snapshots(struct core *core)
{
    const struct snapshots parts = {
        .settings = &core->settings,
        .store = core->store,
        .volume = engine_volume(core->engine),
        .runtimes = core->runtimes,
        .layers = core->layers,
        .accounts = core->accounts,
        .sandboxes = core->sandboxes,
        .background = core->background,
    };
    core->snapshots = snapshots_new(&parts);
}

/* Without bounds: there is at most one piece of work for each sandbox, layer or tree. */
static int start_workers(struct core *core, struct error *err)
{
    const struct workers_settings recorders = {
        .lane = {[WORKERS_SLOW] = {RECORDERS, WORKERS_UNBOUNDED, "recorder", .gives_way = true}}};
    const struct workers_settings reaper = {
        .lane = {[WORKERS_SLOW] = {REAPERS, WORKERS_UNBOUNDED, "reaper"}}};
    const struct workers_settings remover = {
        .lane = {[WORKERS_SLOW] = {REMOVERS, WORKERS_UNBOUNDED, "remover"}}};
    const struct workers_settings makers = {
        .lane = {[WORKERS_SLOW] = {MAKERS, MAKERS_QUEUE, "maker"}}};

    if (workers_new(&recorders, &core->recorders, err) < 0 ||
        workers_new(&reaper, &core->reaper, err) < 0 ||
        workers_new(&makers, &core->makers, err) < 0)
        return -1;
    return workers_new(&remover, &core->remover, err);
}

/* Packages over a runtime, in a box of the engine's. On a thread of the runtimes. */
static int install(void *data, const struct runtime_image *image, const char *additions,
                   int cancel_fd, const struct image_watch *watch, struct runtime_image **out,
                   struct error *err)
{
    const struct core *core = data;
    const struct install_options options = {
        .data_dir = core->settings.data_dir,
        .registry = core->settings.npm_registry,
        .cancel_fd = cancel_fd,
        .on_progress = watch->on_progress,
        .data = watch->data,
    };
    return install_open(core->engine, image, additions, &options, out, err);
}

static int open_rooms(struct core *core, struct error *err)
{
    core->hub = hub_new();
    core->temporaries = temporaries_new(&core->settings);
    if (event_channel_open(core->store, core->hub, &core->events, err) < 0 ||
        accounts_open(core->store, &core->accounts, err) < 0 ||
        audit_open(core->settings.data_dir, core->store, &core->audit, err) < 0 ||
        open_streams(core, err) < 0 ||
        runtimes_open(core->settings.data_dir, core->settings.default_runtime, &core->runtimes,
                      err) < 0 ||
        start_workers(core, err) < 0 || background_new(&core->background, err) < 0)
        return -1;
    accounts_set_hub(core->accounts, core->hub);
    runtimes_set_installer(core->runtimes, &(struct image_installer){install, core});
    runtimes_set_places(core->runtimes, core->settings.debian_mirror, core->settings.npm_registry,
                        core->settings.image_timeout_ms);
    core->layers = layers_new(core->store, engine_volume(core->engine), core->remover);
    core->outlets = outlets_new(&core->settings, core->engine);
    const struct sandboxes parts = {
        .settings = &core->settings,
        .store = core->store,
        .engine = core->engine,
        .hub = core->hub,
        .accounts = core->accounts,
        .streams = core->streams,
        .runtimes = core->runtimes,
        .layers = core->layers,
        .temporaries = core->temporaries,
        .outlets = core->outlets,
        .recorders = core->recorders,
        .reaper = core->reaper,
        .remover = core->remover,
    };
    if (sandboxes_open(&parts, &core->sandboxes, err) < 0)
        return -1;
    open_snapshots(core);
    core->webhooks = webhooks_new(&core->settings, core->store, core->accounts, core->events);
    if (executions_open(core->sandboxes, &core->executions, err) < 0)
        return -1;
    core->contexts = contexts_new(core->executions);
    return 0;
}

static int open_data(struct core *core, struct error *err)
{
    const struct engine_options engine = {.data_dir = core->settings.data_dir,
                                          .network_addresses = core->settings.network.addresses,
                                          .network_uplink = core->settings.network.uplink,
                                          .is_long_lived = true,
                                          .fail_file = core->settings.fail_file};

    if (engine_open(&engine, &core->engine, err) < 0) // makes the data directory
        return -1;
    if (data_lock_take(core->settings.data_dir, core->settings.is_stand_in, &core->lock_fd, err) <
            0 ||
        ceilings_settle(core, err) < 0 || repair_check(core->settings.data_dir, err) < 0)
        return -1;
    return store_open(core->settings.data_dir, &core->store, err) < 0 ||
                   event_resume(core->store, err) < 0
               ? -1
               : 0;
}

int core_open(const struct core_settings *settings, struct core **out, struct error *err)
{
    autoptr(core) core = xnew(struct core);

    core->lock_fd = -1;
    copy_settings(core, settings);
    core->opened_at = (int64_t)clock_wall_ms();
    if (open_data(core, err) < 0 || seal_open(core, err) < 0 || open_rooms(core, err) < 0 ||
        adopt_all(core, err) < 0 ||
        ports_open(&core->settings, core->sandboxes, &core->ports, err) < 0 ||
        monitor_start(core->sandboxes->monitor, err) < 0 ||
        recipes_open(core, &core->recipes, err) < 0)
        return -1;
    queue_start(core->executions->queue);
    snapshot_resume_work(core->snapshots);
    runtimes_prefetch(core->runtimes, core->settings.default_runtime);
    *out = take(core);
    return 0;
}

/* Ends what works by itself, in an order in which nobody gives work to one that has ended. */
static void stop_rooms(struct core *core)
{
    recipes_stop(core->recipes); // they use all the others
    if (core->runtimes)
        runtimes_stop(core->runtimes); // whoever waits for one waits no longer
    workers_free(core->makers);
    if (core->sandboxes) {
        pool_stop(core->sandboxes->pool);
        monitor_stop(core->sandboxes->monitor); // first, since it gives the others work
    }
    if (core->outlets)
        outlets_stop(core->outlets);
    if (core->executions)
        queue_stop(core->executions->queue);
    background_stop(core->background);
    // Each finishes what it was given, so that nothing is left half ended; and gives work only to those below.
    workers_free(core->recorders);
    if (core->sandboxes)
        monitor_end_work(core->sandboxes->monitor);
    workers_free(core->reaper);
    workers_free(core->remover);
}

void core_free(struct core *core)
{
    if (!core)
        return;
    stop_rooms(core);
    recipes_free(core->recipes);
    ports_free(core->ports);
    executions_free(core->executions);
    background_free(core->background);
    contexts_free(core->contexts);
    sandboxes_free(core->sandboxes);
    outlets_free(core->outlets);
    streams_free(core->streams);
    snapshots_free(core->snapshots);
    layers_free(core->layers);
    runtimes_free(core->runtimes);
    audit_free(core->audit);
    accounts_free(core->accounts);
    temporaries_free(core->temporaries);
    webhooks_free(core->webhooks);
    event_channel_free(core->events);
    hub_free(core->hub);
    store_free(core->store);
    engine_free(core->engine);
    closep(&core->lock_fd);
    free((char *)core->settings.data_dir);
    free((char *)core->settings.default_runtime);
    free((char *)core->settings.archive_program);
    free((char *)core->settings.mount_allow);
    free((char *)core->settings.webhook_networks);
    free((char *)core->settings.debian_mirror);
    free((char *)core->settings.npm_registry);
    free_network(&core->settings.network);
    free((char *)core->settings.fail_file);
    free(core);
}

void core_health(struct core *core, struct core_health *out)
{
    *out = (struct core_health){
        .sandboxes = registry_count(core->sandboxes->registry),
        .spares = pool_waiting(core->sandboxes->pool),
        .spare_bytes = (int64_t)pool_bytes(core->sandboxes->pool),
        .commands = core->executions->n_running,
        .queued = queue_waiting(core->executions->queue),
        .is_default_runtime_ready =
            runtimes_is_ready(core->runtimes, core->settings.default_runtime),
        .fault = streams_fault(core->streams),
    };
}
