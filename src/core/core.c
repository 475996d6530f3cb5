/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes the core; see core.h. */
#include "core/core.h"

#include "base/mem.h"
#include "core/snapshot/snapshot_impl.h"
#include "loop/background.h"
#include "core/adopt.h"
#include "core/runtime/images.h"
#include "core/sandbox/monitor.h"
#include "core/snapshot/listing.h"
#include "core/sandbox/sandbox_object.h"
#include "core/sandbox/pool.h"
#include "core/execution/queue.h"
#include "engine/limits.h"
#include "runtime/catalog.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIB ((int64_t)1 << 30)
#define HOUR_MS ((int64_t)3600 * 1000)

const struct core_settings core_settings_default = {
    .data_dir = "/var/lib/burrow",
    .default_runtime = "base:latest",
    .memory_bytes = LIMITS_MEMORY_BYTES,
    .cpu_millicores = LIMITS_CPU_MILLI,
    .disk_bytes = LIMITS_DISK_BYTES,
    .max_processes = LIMITS_PROCESSES,
    .idle_timeout_ms = 10 * 60 * 1000,
    .execution_timeout_ms = 0,
    .output_cap_bytes = LIMITS_OUTPUT_BYTES,
    .stream_limit_bytes = GIB,
    .file_limit_bytes = GIB,
    .keep_ms = 24 * HOUR_MS,
    .max_sandboxes = 2000,
    .queue_at_once = 2,
    .queue_length = 10000,
    .parked_one_shot = 16,
    .parked_kept = 4,
};

#define REAPER_QUEUE 65536
#define LOCK_PATIENCE_MS 5000
#define LOCK_STEP_MS 10

static void copy_settings(struct core *core, const struct core_settings *settings)
{
    core->settings = *settings;
    core->settings.data_dir = xstrdup(settings->data_dir);
    core->settings.default_runtime = runtime_full_name(settings->default_runtime);
    core->settings.parked_directory =
        settings->parked_directory ? xstrdup(settings->parked_directory) : NULL;
    core->settings.archive_program =
        settings->archive_program ? xstrdup(settings->archive_program) : NULL;
    core->settings.fail_step = settings->fail_step ? xstrdup(settings->fail_step) : NULL;
}

/* Whether the one who wrote this into the lock's file is there; one who has not written yet is. */
static bool is_alive(const char *pid)
{
    long number = strtol(pid, NULL, 10);

    return number <= 0 || kill((pid_t)number, 0) == 0 || errno == EPERM;
}

/* A server that was killed may leave a child between clone and exec, which has the lock for a moment longer. */
static int wait_for_lock(int fd, char pid[32])
{
    for (unsigned waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited_ms += LOCK_STEP_MS) {
        ssize_t length = pread(fd, pid, 31, 0);
        pid[length > 0 ? length : 0] = '\0';
        if (waited_ms >= LOCK_PATIENCE_MS || is_alive(pid))
            return -1;
        (void)usleep(LOCK_STEP_MS * 1000);
    }
    return 0;
}

/* One server per data directory; its pid is in the lock's file for whoever comes second. */
static int lock_data_dir(struct core *core, struct error *err)
{
    autofree char *path = xasprintf("%s/server.lock", core->settings.data_dir);
    char pid[32] = "";

    autofd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    if (wait_for_lock(fd, pid) < 0)
        return error_set(err, ERROR_CONFLICT,
                         "another server (pid %s) has the data directory '%s'; stop it, or use "
                         "another with --data",
                         *pid ? pid : "unknown", core->settings.data_dir);
    int length = snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)length, 0) != length)
        return error_sys(err, "write '%s'", path);
    core->lock_fd = take_fd(fd);
    return 0;
}

static int open_parts(struct core *core, struct error *err)
{
    const struct engine_options engine = {.data_dir = core->settings.data_dir,
                                          .is_long_lived = true,
                                          .fail_step = core->settings.fail_step};
    const struct workers_settings reaper = {
        .lane = {[WORKERS_QUICK] = {2, REAPER_QUEUE}, [WORKERS_SLOW] = {2, REAPER_QUEUE}}};

    if (engine_open(&engine, &core->engine, err) < 0) // makes the data directory
        return -1;
    if (lock_data_dir(core, err) < 0 ||
        store_open(core->settings.data_dir, &core->store, err) < 0 ||
        keys_open(core->store, &core->keys, err) < 0)
        return -1;
    core->hub = hub_new();
    core->registry = registry_new();
    core->pool = pool_new(core);
    core->listings = listings_new(core->settings.data_dir);
    if (queue_new(core, &core->queue, err) < 0 ||
        streams_open(core->store, core->hub, &core->settings, &core->streams, err) < 0 ||
        images_open(core->settings.data_dir, &core->images, err) < 0 ||
        workers_new(&reaper, &core->reaper, err) < 0 || background_new(&core->background, err) < 0)
        return -1;
    return monitor_new(core, &core->monitor, err);
}

int core_open(const struct core_settings *settings, struct core **out, struct error *err)
{
    autoptr(core) core = xnew(struct core);

    core->lock_fd = -1;
    (void)pthread_mutex_init(&core->endings.lock, NULL);
    copy_settings(core, settings);
    if (open_parts(core, err) < 0 || adopt_all(core, err) < 0 ||
        monitor_start(core->monitor, err) < 0)
        return -1;
    queue_start(core->queue);
    snapshot_resume_work(core);
    images_prefetch(core->images, core->settings.default_runtime);
    *out = take(core);
    return 0;
}

void core_free(struct core *core)
{
    if (!core)
        return;
    if (core->pool)
        pool_stop(core->pool);
    monitor_stop(core->monitor); // first, since it gives the others work
    queue_stop(core->queue);
    background_stop(core->background);
    workers_free(core->reaper); // finishes what it has begun, so that nothing is left half ended
    pool_free(core->pool);
    queue_free(core->queue);
    background_free(core->background);
    registry_free(core->registry);
    monitor_free(core->monitor); // what was posted to its loop is run here
    streams_free(core->streams);
    listings_free(core->listings);
    images_free(core->images);
    keys_free(core->keys);
    hub_free(core->hub);
    store_free(core->store);
    engine_free(core->engine);
    closep(&core->lock_fd);
    (void)pthread_mutex_destroy(&core->endings.lock);
    free((char *)core->settings.data_dir);
    free((char *)core->settings.default_runtime);
    free((char *)core->settings.parked_directory);
    free((char *)core->settings.archive_program);
    free((char *)core->settings.fail_step);
    free(core);
}

struct hub *core_hub(struct core *core)
{
    return core->hub;
}

struct keys *core_keys(struct core *core)
{
    return core->keys;
}

const struct core_settings *core_settings(const struct core *core)
{
    return &core->settings;
}

void core_health(struct core *core, struct core_health *out)
{
    *out = (struct core_health){
        .sandboxes = registry_count(core->registry),
        .parked = pool_waiting(core->pool),
        .commands = core->n_commands,
        .queued = queue_waiting(core->queue),
        .is_default_runtime_ready = images_is_ready(core->images, core->settings.default_runtime),
    };
}
