/* SPDX-License-Identifier: Apache-2.0 */
/* Where boxes come from; see pool.h. */
#include "core/sandbox/pool.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/sandbox/ending.h"
#include "core/runtime/runtimes.h"
#include "base/strings.h"
#include "engine/park.h"
#include "core/stream/streams.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define AT_A_TIME 4 // launches of one turn of filling
#define CALM_MS 10
#define NETWORKS_AHEAD 16
#define SCRATCHES_AHEAD 16
#define RECYCLED 64 // parts of boxes

enum { PARK_ONE_SHOT, PARK_KEPT, PARKS };

struct pool {
    struct sandboxes *sandboxes;
    pthread_mutex_t lock; // guards the parks' pointers
    struct image *image;  // what the parks are made from
    struct park *parks[PARKS];
    _Atomic bool is_filling; // a turn of filling is queued or under way
    _Atomic bool has_failed; // the last one: told once
    _Atomic bool is_ending;
    _Atomic uint64_t taken_ms; // when somebody last took a box
};

struct pool *pool_new(struct sandboxes *sandboxes)
{
    struct pool *pool = xnew(struct pool);
    pool->sandboxes = sandboxes;
    (void)pthread_mutex_init(&pool->lock, NULL);
    engine_recycle(sandboxes->engine, RECYCLED);
    return pool;
}

static void drop_parks(struct pool *pool)
{
    for (unsigned i = 0; i < PARKS; i++)
        park_free(take(pool->parks[i]));
    image_free(take(pool->image));
}

void pool_stop(struct pool *pool)
{
    pool->is_ending = true;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    drop_parks(pool);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* The box of this request; its layers and binds are borrowed from the image, and the binds from `binds`. */
static struct box_spec describe(const struct runtime_image *image,
                                const struct pool_request *request, const struct box_bind *binds)
{
    return (struct box_spec){
        .layers = (const char *const *)image->layers,
        .n_layers = image->n_layers,
        .binds = binds,
        .n_binds = image->n_binds,
        .hold_fd = image->lock_fd,
        .limits = request->limits,
        .disk = request->disk,
        .owner_loss = BOX_STAY,
        .is_one_shot = request->is_one_shot,
    };
}

static struct box_bind *borrow_binds(const struct runtime_image *image)
{
    struct box_bind *binds = xcalloc(image->n_binds + 1, sizeof *binds);
    for (size_t i = 0; i < image->n_binds; i++)
        binds[i] = (struct box_bind){image->binds[i].host, image->binds[i].box};
    return binds;
}

static int launch(struct pool *pool, const struct runtime_image *image,
                  const struct pool_request *request, struct pooled *out, struct error *err)
{
    autofree struct box_bind *binds = borrow_binds(image);
    struct box_spec spec = describe(image, request, binds);
    autostrings saved = {0};
    char scratch[80] = "";
    char id[ID_TEXT];

    strings_unpack(request->layers, &saved);
    spec.saved = (const char *const *)saved.items;
    spec.n_saved = saved.count;
    if (request->scratch) {
        (void)snprintf(scratch, sizeof scratch, "%s", request->scratch);
        spec.scratch = scratch;
    } else if (!request->is_one_shot) {
        (void)snprintf(scratch, sizeof scratch, POOL_SCRATCH "-%s", id_make(id));
        spec.scratch = scratch;
    }
    if (box_launch(pool->sandboxes->engine, &spec, &out->box, err) < 0)
        return error_wrap(err, "start the sandbox");
    (void)snprintf(out->scratch, sizeof out->scratch, "%s", scratch);
    return 0;
}

/* Files in a box's memory may take half of what it was made with: with less, they alone could fill it for good. */
static bool is_roomy(const struct pool *pool, const struct pool_request *request)
{
    uint64_t wanted = request->limits.memory_bytes;
    uint64_t made_with = (uint64_t)pool->sandboxes->settings->memory_bytes;
    return wanted == 0 || (made_with != 0 && wanted >= made_with);
}

static bool take_parked(struct pool *pool, struct image *image, const struct pool_request *request,
                        struct pooled *out)
{
    (void)pthread_mutex_lock(&pool->lock);
    struct park *park =
        pool->image == image ? pool->parks[request->is_one_shot ? PARK_ONE_SHOT : PARK_KEPT] : NULL;
    out->box = park ? park_take(park, &request->limits, &request->disk) : NULL;
    (void)pthread_mutex_unlock(&pool->lock);
    if (!out->box)
        return false;
    if (!request->is_one_shot)
        (void)snprintf(out->scratch, sizeof out->scratch, "%s", box_scratch(out->box));
    return true;
}

static char **copy_env(char *const *env)
{
    size_t count = 0;
    while (env && env[count])
        count++;
    char **copy = xcalloc(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = xstrdup(env[i]);
    return copy;
}

int pool_take(struct pool *pool, const struct pool_request *request, struct pooled *out,
              struct error *err)
{
    autoptr(image) image = NULL;

    if (image_get(pool->sandboxes->runtimes, request->runtime, &image, err) < 0)
        return -1;
    bool is_common = !request->layers && !request->scratch && is_roomy(pool, request);
    if (!(is_common && take_parked(pool, image, request, out)) &&
        launch(pool, image_runtime(image), request, out, err) < 0)
        return -1;
    out->env = copy_env(image_runtime(image)->env);
    pool->taken_ms = clock_monotonic_ms();
    pool_tick(pool);
    return 0;
}

struct pool_request pool_request_of(const struct sandbox_record *record)
{
    return (struct pool_request){
        .runtime = record->runtime,
        .is_one_shot = record->mode == SANDBOX_ONE_SHOT,
        .limits = {(uint64_t)record->memory_bytes, (uint32_t)record->cpu_millicores,
                   (uint32_t)record->max_processes},
        .disk = {.bytes = (uint64_t)record->disk_bytes},
        .layers = record->layers,
    };
}

int pool_launch_record(struct pool *pool, const struct sandbox_record *record, struct pooled *out,
                       struct error *err)
{
    struct pool_request request = pool_request_of(record);
    request.scratch = record->scratch;
    return pool_take(pool, &request, out, err);
}

static int make_park(struct pool *pool, struct image *image, unsigned which, unsigned count,
                     struct error *err)
{
    const struct core_settings *settings = pool->sandboxes->settings;
    const struct pool_request shape = {
        .is_one_shot = which == PARK_ONE_SHOT,
        .limits = {(uint64_t)settings->memory_bytes, (uint32_t)settings->cpu_millicores,
                   (uint32_t)settings->max_processes},
        .disk = {.bytes = (uint64_t)settings->disk_bytes},
    };
    static const char *const warm_up[] = {"/bin/true", NULL};
    autofree struct box_bind *binds = borrow_binds(image_runtime(image));
    struct box_spec spec = describe(image_runtime(image), &shape, binds);
    const struct park_options options = {
        .spec = &spec,
        .count = count,
        .warm_up = warm_up,
        .directory = settings->parked_directory,
        .scratch_prefix = which == PARK_KEPT ? POOL_SCRATCH : NULL,
    };
    return count ? park_new(pool->sandboxes->engine, &options, &pool->parks[which], err) : 0;
}

/* Parks of the default runtime as it is now. */
static int make_parks(struct pool *pool, struct error *err)
{
    const struct core_settings *settings = pool->sandboxes->settings;
    autoptr(image) image = NULL;

    if (image_get(pool->sandboxes->runtimes, settings->default_runtime, &image, err) < 0)
        return -1;
    if (pool->image == image)
        return 0;
    (void)pthread_mutex_lock(&pool->lock);
    struct park *old[PARKS] = {pool->parks[0], pool->parks[1]};
    struct image *old_image = pool->image;
    pool->parks[PARK_ONE_SHOT] = pool->parks[PARK_KEPT] = NULL;
    pool->image = image_ref(image);
    int result = make_park(pool, image, PARK_ONE_SHOT, settings->parked_one_shot, err);
    if (result == 0)
        result = make_park(pool, image, PARK_KEPT, settings->parked_kept, err);
    (void)pthread_mutex_unlock(&pool->lock);
    park_free(old[0]);
    park_free(old[1]);
    image_free(old_image);
    return result;
}

static bool is_calm(const struct pool *pool)
{
    return clock_monotonic_ms() - pool->taken_ms >= CALM_MS;
}

static int fill_once(struct pool *pool, bool *is_full, struct error *err)
{
    bool is_hurried = !is_calm(pool); // then whoever waits needs the processor more
    unsigned made = 0;

    *is_full = true;
    (void)streams_make_spares(pool->sandboxes->streams);
    if (!runtimes_is_ready(pool->sandboxes->runtimes, pool->sandboxes->settings->default_runtime))
        return 0; // it is being built; the monitor comes by again
    if (make_parks(pool, err) < 0 ||
        engine_fill_networks(pool->sandboxes->engine, NETWORKS_AHEAD, err) < 0 ||
        volume_fill_scratches(engine_volume(pool->sandboxes->engine), SCRATCHES_AHEAD, err) < 0)
        return -1;
    for (unsigned i = 0; i < PARKS; i++) {
        if (pool->parks[i] && park_fill(pool->parks[i], AT_A_TIME, is_hurried, &made, err) < 0)
            return -1;
        if (made > 0)
            *is_full = false;
    }
    return 0;
}

static void fill(void *data)
{
    struct pool *pool = data;
    struct error err = {0};
    bool is_full = true;

    if (fill_once(pool, &is_full, &err) < 0) {
        if (!atomic_exchange(&pool->has_failed, true))
            log_warn("sandboxes could not be made ahead; new ones start slower",
                     F("error", (const char *)err.text));
    } else {
        pool->has_failed = false;
    }
    pool->is_filling = false;
    if (!is_full)
        pool_tick(pool);
}

static bool wants_filling(struct pool *pool)
{
    const struct core_settings *settings = pool->sandboxes->settings;
    unsigned wanted = settings->parked_one_shot + settings->parked_kept;
    return (wanted > 0 && runtimes_is_ready(pool->sandboxes->runtimes, settings->default_runtime) &&
            pool_waiting(pool) < wanted) ||
           streams_needs_spares(pool->sandboxes->streams);
}

/*
 * Launching takes a processor from whoever is being served just now. So the pool is filled when nobody has taken from it for a
 * moment, or when it has run low.
 */
static bool is_good_time(struct pool *pool, unsigned left)
{
    const struct core_settings *settings = pool->sandboxes->settings;
    unsigned wanted = settings->parked_one_shot + settings->parked_kept;
    return (left <= wanted / 4 && !ending_is_behind(pool->sandboxes)) || is_calm(pool);
}

void pool_tick(struct pool *pool)
{
    struct error ignored = {0};

    if (pool->is_ending || !wants_filling(pool) || !is_good_time(pool, pool_waiting(pool)) ||
        atomic_exchange(&pool->is_filling, true))
        return;
    if (workers_submit(pool->sandboxes->reaper, WORKERS_SLOW, fill, pool, &ignored) < 0)
        pool->is_filling = false;
}

unsigned pool_waiting(struct pool *pool)
{
    (void)pthread_mutex_lock(&pool->lock);
    unsigned count = 0;
    for (unsigned i = 0; i < PARKS; i++)
        count += pool->parks[i] ? park_waiting(pool->parks[i]) : 0;
    (void)pthread_mutex_unlock(&pool->lock);
    return count;
}

void pooled_clear(struct pooled *pooled)
{
    for (char **entry = pooled->env; entry && *entry; entry++)
        free(*entry);
    free(pooled->env);
    pooled->env = NULL;
}
