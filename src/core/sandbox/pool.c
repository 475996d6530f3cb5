/* SPDX-License-Identifier: Apache-2.0 */
/* Where boxes come from; see pool.h. */
#include "core/sandbox/pool.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/sandbox/ending.h"
#include "core/runtime/runtime.h"
#include "core/runtime/runtimes.h"
#include "base/strings.h"
#include "engine/spare_boxes.h"
#include "install/install.h"
#include "core/stream/streams.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define AT_A_TIME 4 // launches of one filling
#define CALM_MS 10
#define NETWORKS_AHEAD 16
#define SCRATCHES_AHEAD 16
#define ROOM_BYTES ((uint64_t)64 << 20) // with so much left a volume is not full
#define SPARE_BYTES (32 << 20)          // boxes with less memory than this are made for it
#define RECYCLED 64                     // parts of boxes

/* Those with network are made once somebody has asked for one: who never does pays nothing, and needs nothing, for them. */
enum { SPARE_ONE_SHOT, SPARE_KEPT, SPARE_PLAIN, SPARE_WIRED = SPARE_PLAIN, SPARE_KINDS = 4 };

/* Boxes made ahead from one image. Counted, so that nobody holds a lock while it takes one. */
struct spares {
    _Atomic unsigned refs;
    struct image *image;
    struct spare_boxes *of[SPARE_KINDS]; // or NULL
};

struct pool {
    struct sandboxes *sandboxes;
    struct workers *filler;  // one thread: makes boxes ahead
    struct lock lock;        // guards the pointer; held for memory work only
    struct spares *spares;   // of the default runtime as it is now; NULL: none yet
    _Atomic bool is_filling; // filling is queued or under way
    _Atomic bool has_failed; // the last one: told once
    _Atomic bool is_wired;   // those with network are made ahead too
    _Atomic bool is_ending;
    _Atomic uint64_t taken_ms; // when somebody last took a box
};

static void spares_free(struct spares *spares)
{
    if (!spares || --spares->refs > 0)
        return;
    for (unsigned i = 0; i < SPARE_KINDS; i++)
        spare_boxes_free(spares->of[i]);
    image_free(spares->image);
    free(spares);
}
DEFINE_AUTOPTR(spares)

/* Those of now: a reference, or NULL. */
static struct spares *get_spares(struct pool *pool)
{
    autolock(&pool->lock);
    if (pool->spares)
        pool->spares->refs++;
    return pool->spares;
}

/* Gives the earlier ones. */
static struct spares *set_spares(struct pool *pool, struct spares *spares)
{
    autolock(&pool->lock);
    struct spares *before = pool->spares;
    pool->spares = spares;
    return before;
}

int pool_new(struct sandboxes *sandboxes, struct pool **out, struct error *err)
{
    const struct workers_settings filler = {.lane = {[WORKERS_SLOW] = {1, 1, "filler"}}};
    autofree struct pool *pool = xnew(struct pool);

    if (workers_new(&filler, &pool->filler, err) < 0)
        return -1;
    pool->sandboxes = sandboxes;
    lock_init(&pool->lock, LOCK_POOL);
    engine_recycle(sandboxes->engine, RECYCLED);
    *out = take(pool);
    return 0;
}

void pool_stop(struct pool *pool)
{
    pool->is_ending = true;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    pool_stop(pool);
    workers_free(pool->filler);
    spares_free(pool->spares);
    lock_clear(&pool->lock);
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
        .owner_loss = BOX_STAY,
        .is_one_shot = request->is_one_shot,
        .has_network = request->has_network,
    };
}

static struct box_bind *borrow_binds(const struct runtime_image *image)
{
    struct box_bind *binds = xcalloc(image->n_binds + 1, sizeof *binds);
    for (size_t i = 0; i < image->n_binds; i++)
        binds[i] = (struct box_bind){image->binds[i].host, image->binds[i].box};
    return binds;
}

static bool has_room(struct volume *volume)
{
    struct volume_space space = {0};
    struct error ignored = {0};

    return volume_space(volume, &space, &ignored) == 0 && space.free_bytes >= ROOM_BYTES;
}

/* A file system whose removed files are still on their way back may say that it is full while it is not: then once more, behind that. */
static int launch_box(struct engine *engine, const struct box_spec *spec, struct box **out,
                      struct error *err)
{
    struct volume *volume = engine_volume(engine);
    struct error ignored = {0};

    if (box_launch(engine, spec, out, err) == 0)
        return 0;
    if (err->sys != ENOSPC || !has_room(volume))
        return -1;
    (void)volume_settle(volume, &ignored);
    return box_launch(engine, spec, out, err);
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
    if (descriptors_check(err) < 0 ||
        launch_box(pool->sandboxes->engine, &spec, &out->box, err) < 0)
        return -1;
    (void)snprintf(out->scratch, sizeof out->scratch, "%s", scratch);
    return 0;
}

/* One that waits has memory in use already, which might not fit into less than this. */
static bool is_roomy(const struct pool *pool, const struct pool_request *request)
{
    int64_t wanted = request->limits.memory_bytes;
    int64_t made_with = pool->sandboxes->settings->limits.memory_bytes;
    return wanted == 0 || wanted >= SPARE_BYTES || (made_with != 0 && wanted >= made_with);
}

static bool take_spare(struct pool *pool, struct image *image, const struct pool_request *request,
                       struct pooled *out)
{
    autoptr(spares) spares = get_spares(pool);
    unsigned kind = (request->is_one_shot ? SPARE_ONE_SHOT : SPARE_KEPT) +
                    (request->has_network ? SPARE_WIRED : 0);
    struct spare_boxes *boxes = spares && spares->image == image ? spares->of[kind] : NULL;

    out->box = boxes ? spare_boxes_take(boxes, &request->limits) : NULL;
    if (!out->box)
        return false;
    if (!request->is_one_shot)
        (void)snprintf(out->scratch, sizeof out->scratch, "%s", box_scratch(out->box));
    return true;
}

int pool_take(struct pool *pool, const struct pool_request *request, struct pooled *out,
              struct error *err)
{
    autofree char *additions = additions_of(request->dependencies, request->packages);
    autoptr(image) image = NULL;

    if (image_get_with(pool->sandboxes->runtimes, request->runtime, additions, NULL, &image, err) <
        0)
        return -1;
    bool is_common = !request->layers && !request->scratch && is_roomy(pool, request);
    if (!(is_common && take_spare(pool, image, request, out)) &&
        launch(pool, image_runtime(image), request, out, err) < 0)
        return -1;
    out->env = strings_copy((const char *const *)image_runtime(image)->env);
    pool->taken_ms = clock_monotonic_ms();
    if (request->has_network)
        pool->is_wired = true;
    pool_tick(pool);
    return 0;
}

char *additions_of(const char *dependencies, const char *packages)
{
    autofree const char *const *apt = strings_list(dependencies);
    autofree const char *const *npm = strings_list(packages);

    return install_list(apt, npm);
}

struct pool_request pool_request_of(const struct sandbox_record *record)
{
    return (struct pool_request){
        .runtime = record->runtime,
        .is_one_shot = record->mode == SANDBOX_ONE_SHOT,
        .has_network = record->network.is_enabled,
        .limits = record->limits,
        .dependencies = record->dependencies,
        .packages = record->packages,
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

/* Whether an interpreter is started ahead in boxes of this shape. */
static bool has_resident(const struct pool *pool, const char *runtime,
                         const struct pool_request *shape)
{
    return pool->sandboxes->resident.argv && !shape->is_one_shot &&
           runtime_has_interpreter(pool->sandboxes->runtimes, runtime);
}

static int make_boxes(struct pool *pool, struct spares *spares, unsigned which, unsigned count,
                      struct error *err)
{
    const struct core_settings *settings = pool->sandboxes->settings;
    const struct pool_request shape = {
        .is_one_shot = which % SPARE_PLAIN == SPARE_ONE_SHOT,
        .has_network = which >= SPARE_WIRED,
        .limits = settings->limits,
    };
    static const char *const warm_up[] = {"/bin/true", NULL};
    struct spare_resident resident = pool->sandboxes->resident;
    autofree struct box_bind *binds = borrow_binds(image_runtime(spares->image));
    struct box_spec spec = describe(image_runtime(spares->image), &shape, binds);
    const struct spare_boxes_options options = {
        .spec = &spec,
        .count = count,
        .warm_up = warm_up,
        .directory = settings->spare_directory,
        .scratch_prefix = which % SPARE_PLAIN == SPARE_KEPT ? POOL_SCRATCH : NULL,
        .resident = has_resident(pool, settings->default_runtime, &shape) ? &resident : NULL,
    };
    resident.env = (const char *const *)image_runtime(spares->image)->env;
    return count ? spare_boxes_new(pool->sandboxes->engine, &options, &spares->of[which], err) : 0;
}

/* Of the default runtime as it is now; a reference. */
static int make_spares(struct pool *pool, struct spares **out, struct error *err)
{
    const struct core_settings *settings = pool->sandboxes->settings;
    autoptr(image) image = NULL;
    autoptr(spares) spares = get_spares(pool);

    if (image_get(pool->sandboxes->runtimes, settings->default_runtime, &image, err) < 0)
        return -1;
    if (!spares || spares->image != image) {
        spares_free(spares);
        spares = xnew(struct spares);
        spares->refs = 1;
        spares->image = image_ref(image);
        for (unsigned i = 0; i < SPARE_KINDS; i++) {
            bool is_one_shot = i % SPARE_PLAIN == SPARE_ONE_SHOT;
            unsigned count = is_one_shot ? settings->spare_one_shot : settings->spare_kept;
            if (make_boxes(pool, spares, i, count, err) < 0)
                return -1;
        }
        spares->refs++;
        spares_free(set_spares(pool, spares));
    }
    *out = take(spares);
    return 0;
}

static bool is_calm(const struct pool *pool)
{
    return clock_monotonic_ms() - pool->taken_ms >= CALM_MS;
}

static int fill_once(struct pool *pool, bool *is_full, struct error *err)
{
    bool is_hurried = !is_calm(pool); // then whoever waits needs the processor more
    autoptr(spares) spares = NULL;
    unsigned made = 0;

    *is_full = true;
    (void)streams_make_spares(pool->sandboxes->streams);
    if (!runtimes_is_ready(pool->sandboxes->runtimes, pool->sandboxes->settings->default_runtime))
        return 0; // it is being built; the monitor comes by again
    if (descriptors_check(err) < 0)
        return -1;
    if (make_spares(pool, &spares, err) < 0 ||
        engine_fill_networks(pool->sandboxes->engine, NETWORKS_AHEAD, err) < 0 ||
        volume_fill_scratches(engine_volume(pool->sandboxes->engine), SCRATCHES_AHEAD, err) < 0)
        return -1;
    for (unsigned i = 0; i < (pool->is_wired ? SPARE_KINDS : SPARE_PLAIN); i++) {
        if (spares->of[i] &&
            spare_boxes_fill(spares->of[i], AT_A_TIME, is_hurried, &made, err) < 0) {
            if (i >= SPARE_WIRED)
                pool->is_wired = false; // until one is asked for again
            return -1;
        }
        if (made > 0)
            *is_full = false;
    }
    return 0;
}

/* How many are to wait. */
static unsigned wanted_boxes(const struct pool *pool)
{
    const struct core_settings *settings = pool->sandboxes->settings;
    return (settings->spare_one_shot + settings->spare_kept) * (pool->is_wired ? 2 : 1);
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
    unsigned wanted = wanted_boxes(pool);
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
    unsigned wanted = wanted_boxes(pool);
    return (left <= wanted / 4 && !ending_is_behind(pool->sandboxes)) || is_calm(pool);
}

void pool_tick(struct pool *pool)
{
    struct error ignored = {0};

    if (pool->is_ending || !wants_filling(pool) || !is_good_time(pool, pool_waiting(pool)) ||
        atomic_exchange(&pool->is_filling, true))
        return;
    if (workers_submit(pool->filler, WORKERS_SLOW, fill, pool, &ignored) < 0)
        pool->is_filling = false;
}

unsigned pool_waiting(struct pool *pool)
{
    autolock(&pool->lock);
    unsigned count = 0;
    for (unsigned i = 0; pool->spares && i < SPARE_KINDS; i++)
        count += pool->spares->of[i] ? spare_boxes_count(pool->spares->of[i]) : 0;
    return count;
}

void pooled_clear(struct pooled *pooled)
{
    free((void *)pooled->env);
    pooled->env = NULL;
}
