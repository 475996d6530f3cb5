/* SPDX-License-Identifier: Apache-2.0 */
/* Where boxes come from; see pool.h. */
#include "core/sandbox/pool.h"

#include "base/clock.h"
#include "base/command.h"
#include "base/descriptors.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/sandbox/ending.h"
#include "core/runtime/runtime.h"
#include "core/sandbox/host_mounts.h"
#include "core/runtime/runtimes.h"
#include "base/strings.h"
#include "core/sandbox/shapes.h"
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

#define CHECK_MS 5000 // between looks whether runtimes are still what they were

struct pool {
    struct sandboxes *sandboxes;
    struct workers *filler; // one thread: makes boxes ahead
    struct shapes shapes;
    struct lock lock;             // guards the next
    bool is_filling;              // that is queued or under way, or must not be now
    struct lock_condition filled; // it is not any more
    _Atomic bool has_failed;      // the last one: told once
    _Atomic bool is_ending;
    _Atomic uint64_t taken_ms;   // when somebody last took a box
    _Atomic uint64_t checked_ms; // when runtimes were last looked at
};

int pool_new(struct sandboxes *sandboxes, struct pool **out, struct error *err)
{
    const struct workers_settings filler = {.lane = {[WORKERS_SLOW] = {1, 1, "filler"}}};
    autofree struct pool *pool = xnew(struct pool);

    if (workers_new(&filler, &pool->filler, err) < 0)
        return -1;
    pool->sandboxes = sandboxes;
    shapes_init(&pool->shapes);
    lock_init(&pool->lock, LOCK_POOL);
    lock_condition_init(&pool->filled);
    pool->checked_ms = clock_monotonic_ms();
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
    shapes_clear(&pool->shapes);
    lock_condition_clear(&pool->filled);
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
    autoclear(host_mounts) mounts = {0};
    autostrings saved = {0};
    char scratch[80] = "";
    char id[ID_TEXT];

    strings_unpack(request->layers, &saved);
    spec.saved = (const char *const *)saved.items;
    spec.n_saved = saved.count;
    if (host_mounts_open(pool->sandboxes->settings, request->mounts, &mounts, err) < 0)
        return -1;
    spec.mounts = mounts.mounts;
    spec.n_mounts = mounts.count;
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

static unsigned most_of(const struct pool *pool, bool is_one_shot)
{
    const struct core_settings *settings = pool->sandboxes->settings;
    return is_one_shot ? settings->spare_one_shot : settings->spare_kept;
}

/*
 * The directory is one that a front names, never one that a client does. It is made ahead where it is known whose it is going to be: root's,
 * or a user's by numbers. Whoever names none finds none.
 */
static struct shape_key key_of(struct image *image, const struct pool_request *request)
{
    struct shape_key key = {
        .image = image, .is_one_shot = request->is_one_shot, .has_network = request->has_network};

    if (request->home && (!request->user || command_user_ids(request->user, &key.uid, &key.gid)))
        key.directory = request->home;
    return key;
}

static bool take_from(struct shape *shape, const struct pool_request *request, struct pooled *out)
{
    struct spare_boxes *boxes = shape ? shape->boxes : NULL;

    out->box = boxes ? spare_boxes_take(boxes, &request->limits) : NULL;
    if (!out->box)
        return false;
    if (!request->is_one_shot)
        (void)snprintf(out->scratch, sizeof out->scratch, "%s", box_scratch(out->box));
    return true;
}

/* Of the default runtime one without the directory does too: what is missing is made. */
static bool take_usual(struct pool *pool, const struct shape_key *key,
                       const struct pool_request *request, struct pooled *out)
{
    struct shape_key usual = *key;

    if (!shapes_is_usual(&pool->shapes, key->image))
        return false;
    usual.directory = NULL;
    usual.uid = usual.gid = 0;
    autoptr(shape) shape = shapes_find(&pool->shapes, &usual);
    return take_from(shape, request, out);
}

static bool take_spare(struct pool *pool, struct image *image, const struct pool_request *request,
                       struct pooled *out)
{
    const struct shape_key key = key_of(image, request);
    unsigned most = most_of(pool, request->is_one_shot);

    if (most == 0)
        return false;
    autoptr(shape) shape = shapes_ask(&pool->shapes, &key, most, clock_monotonic_ms());
    if (shape && !shape->boxes)
        pool->checked_ms = 0; // a new one: perhaps since another build was replaced
    return take_from(shape, request, out) || take_usual(pool, &key, request, out);
}

int pool_take(struct pool *pool, const struct pool_request *request, struct pooled *out,
              struct error *err)
{
    autofree char *additions = additions_of(request->dependencies, request->packages);
    autoptr(image) image = NULL;

    if (image_get_with(pool->sandboxes->runtimes, request->runtime, additions, NULL, &image, err) <
        0)
        return -1;
    bool is_common =
        !request->layers && !request->scratch && !request->mounts && is_roomy(pool, request);
    if (!(is_common && take_spare(pool, image, request, out)) &&
        launch(pool, image_runtime(image), request, out, err) < 0)
        return -1;
    out->env = strings_copy((const char *const *)image_runtime(image)->env);
    pool->taken_ms = clock_monotonic_ms();
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
        .mounts = record->mounts,
        .layers = record->layers,
        .home = record->home,
        .user = record->command.user,
    };
}

int pool_launch_record(struct pool *pool, const struct sandbox_record *record, struct pooled *out,
                       struct error *err)
{
    struct pool_request request = pool_request_of(record);
    request.scratch = record->scratch;
    return pool_take(pool, &request, out, err);
}

// ---- making ahead: one thread at a time, which has is_filling ----

/* Whether an interpreter is started ahead in boxes of this shape. */
static bool has_resident(const struct pool *pool, const struct shape *shape)
{
    const struct runtime_image *image = image_runtime(shape->key.image);
    autofree char *name = xasprintf("%s:%s", image->name, image->tag);

    return pool->sandboxes->resident.argv && !shape->key.is_one_shot &&
           runtime_has_interpreter(pool->sandboxes->runtimes, name);
}

/* What they are made from; made itself with the first. */
static int need_boxes(struct pool *pool, struct shape *shape, struct error *err)
{
    static const char *const warm_up[] = {"/bin/true", NULL};
    const struct runtime_image *image = image_runtime(shape->key.image);
    const struct pool_request request = {
        .is_one_shot = shape->key.is_one_shot,
        .has_network = shape->key.has_network,
        .limits = pool->sandboxes->settings->limits,
    };
    autofree struct box_bind *binds = borrow_binds(image);
    const struct box_spec spec = describe(image, &request, binds);
    struct spare_resident resident = pool->sandboxes->resident;
    resident.env = (const char *const *)image->env;
    const struct spare_boxes_options options = {
        .spec = &spec,
        .count = shape->most,
        .warm_up = warm_up,
        .directory = shape->key.directory,
        .uid = shape->key.uid,
        .gid = shape->key.gid,
        .scratch_prefix = shape->key.is_one_shot ? NULL : POOL_SCRATCH,
        .resident = !shape->boxes && has_resident(pool, shape) ? &resident : NULL,
    };
    struct spare_boxes *boxes = NULL;

    if (shape->boxes)
        return 0;
    if (spare_boxes_new(pool->sandboxes->engine, &options, &boxes, err) < 0)
        return -1;
    shape->boxes = boxes;
    return 0;
}

/* The default runtime as it is now has its shapes. Where it is being built, the monitor comes by again. */
static int set_usual(struct pool *pool, struct error *err)
{
    const struct core_settings *settings = pool->sandboxes->settings;
    struct runtimes *runtimes = pool->sandboxes->runtimes;
    autoptr(image) image = NULL;

    if (!runtimes_is_ready(runtimes, settings->default_runtime) ||
        !runtimes_is_built(runtimes, settings->default_runtime))
        return 0;
    if (image_get(runtimes, settings->default_runtime, &image, err) < 0)
        return -1;
    for (unsigned is_one_shot = 0; is_one_shot < 2; is_one_shot++) {
        const struct shape_key key = {.image = image, .is_one_shot = is_one_shot};
        if (most_of(pool, is_one_shot))
            shapes_set_usual(&pool->shapes, &key, most_of(pool, is_one_shot));
    }
    return 0;
}

static bool is_calm(const struct pool *pool)
{
    return clock_monotonic_ms() - pool->taken_ms >= CALM_MS;
}

static uint64_t not_asked_since(const struct pool *pool)
{
    uint64_t now_ms = clock_monotonic_ms();
    uint64_t keep_ms = (uint64_t)pool->sandboxes->settings->spare_keep_ms;
    return now_ms > keep_ms ? now_ms - keep_ms : 0;
}

static bool was_not_asked_for(const struct shape *shape, const void *since_ms)
{
    return !shape->is_usual && shape->asked_ms < *(const uint64_t *)since_ms;
}

static bool is_another_build(const struct shape *shape, const void *runtimes)
{
    return !runtimes_has((struct runtimes *)runtimes, shape->key.image);
}

static bool is_named(const struct shape *shape, const void *name)
{
    return strcmp(image_runtime(shape->key.image)->name, name) == 0;
}

static bool is_this(const struct shape *shape, const void *other)
{
    return shape == other;
}

static void end_shapes(struct pool *pool,
                       bool (*is_over)(const struct shape *shape, const void *data),
                       const void *data)
{
    for (struct shape *shape = NULL; (shape = shapes_remove(&pool->shapes, is_over, data));)
        shape_free(shape);
}

static void measure_again(struct pool *pool)
{
    struct shape *list[SHAPES_MOST];
    unsigned count = shapes_list(&pool->shapes, list);

    for (unsigned i = 0; i < count; i++) {
        if (list[i]->boxes)
            spare_boxes_measure(list[i]->boxes);
        shape_free(list[i]);
    }
}

/* What was rebuilt or removed keeps nobody's boxes, nor do those boxes keep it. */
static void check_shapes(struct pool *pool)
{
    struct runtimes *runtimes = pool->sandboxes->runtimes;
    const char *usual = pool->sandboxes->settings->default_runtime;
    bool was_ready = runtimes_is_ready(runtimes, usual);

    runtimes_forget_old(runtimes);
    end_shapes(pool, is_another_build, runtimes);
    measure_again(pool);
    if (was_ready && !runtimes_is_ready(runtimes, usual) && runtimes_is_built(runtimes, usual))
        runtimes_prefetch(runtimes, usual);
}

static void end_old(struct pool *pool)
{
    uint64_t since_ms = not_asked_since(pool), now_ms = clock_monotonic_ms();

    for (struct shape *shape = NULL; (shape = shapes_next_leaving(&pool->shapes));)
        shape_free(shape);
    end_shapes(pool, was_not_asked_for, &since_ms);
    if (now_ms - pool->checked_ms < CHECK_MS)
        return;
    pool->checked_ms = now_ms;
    check_shapes(pool);
}

/* All of them, the most important first, while they are filled. */
struct filling {
    struct pool *pool;
    struct shape *list[SHAPES_MOST];
    unsigned count;
    bool is_hurried; // whoever waits needs the processor more
    bool is_full;    // nothing was made
};

static void filling_clear(struct filling *filling)
{
    for (unsigned i = 0; i < filling->count; i++)
        shape_free(filling->list[i]);
}

static bool fits(struct pool *pool, uint64_t bytes)
{
    struct shapes_tally tally = shapes_tally(&pool->shapes, 0);
    return tally.bytes + bytes <= (uint64_t)pool->sandboxes->settings->spare_memory_bytes;
}

/* Those from `first` on in the list make room, the last first. */
static bool make_room(struct filling *filling, unsigned first, uint64_t bytes)
{
    for (unsigned at = filling->count; at > first; at--) {
        struct spare_boxes *boxes = filling->list[at - 1]->boxes;
        while (!fits(filling->pool, bytes) && boxes && spare_boxes_drop(boxes))
            ;
    }
    return fits(filling->pool, bytes);
}

static int fill_shape(struct filling *filling, unsigned at, struct error *err)
{
    struct shape *shape = filling->list[at];
    struct shapes *shapes = &filling->pool->shapes;
    unsigned missing = shapes_missing(shapes, shape), made = 1;

    if (missing && need_boxes(filling->pool, shape, err) < 0)
        return -1;
    for (unsigned i = 0; i < missing && i < AT_A_TIME && made > 0; i++) {
        if (!make_room(filling, at + 1, spare_boxes_next_bytes(shape->boxes))) {
            shapes_hold_back(shapes, shape);
            return 0;
        }
        if (spare_boxes_fill(shape->boxes, 1, filling->is_hurried, &made, err) < 0)
            return -1;
        if (made > 0)
            filling->is_full = false;
        (void)make_room(filling, at, 0); // it may be larger than the one before
    }
    return 0;
}

static int fill_shapes(struct pool *pool, bool *is_full, struct error *err)
{
    __attribute__((cleanup(filling_clear))) struct filling filling = {
        .pool = pool, .is_hurried = !is_calm(pool), .is_full = true};

    filling.count = shapes_list(&pool->shapes, filling.list);
    (void)make_room(&filling, 0, 0); // some may have grown
    for (unsigned i = 0; i < filling.count; i++) {
        if (fill_shape(&filling, i, err) == 0)
            continue;
        if (!filling.list[i]->is_usual)
            end_shapes(pool, is_this, filling.list[i]); // until somebody asks for it again
        return -1;
    }
    *is_full = filling.is_full;
    return 0;
}

static int fill_once(struct pool *pool, bool *is_full, struct error *err)
{
    struct engine *engine = pool->sandboxes->engine;

    *is_full = true;
    (void)streams_make_spares(pool->sandboxes->streams);
    end_old(pool);
    if (set_usual(pool, err) < 0)
        return -1;
    if (shapes_is_empty(&pool->shapes))
        return 0;
    if (descriptors_check(err) < 0 || engine_fill_networks(engine, NETWORKS_AHEAD, err) < 0 ||
        volume_fill_scratches(engine_volume(engine), SCRATCHES_AHEAD, err) < 0)
        return -1;
    return fill_shapes(pool, is_full, err);
}

static bool begin_filling(struct pool *pool)
{
    autolock(&pool->lock);
    bool is_free = !pool->is_filling;
    pool->is_filling = true;
    return is_free;
}

static void end_filling(struct pool *pool)
{
    autolock(&pool->lock);
    pool->is_filling = false;
    lock_condition_wake(&pool->filled);
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
    end_filling(pool);
    if (!is_full)
        pool_tick(pool);
}

void pool_hold(struct pool *pool, const char *name)
{
    lock_take(&pool->lock);
    while (pool->is_filling)
        (void)lock_condition_wait(&pool->filled, &pool->lock, 0);
    pool->is_filling = true;
    lock_release(&pool->lock);
    end_shapes(pool, is_named, name);
}

void pool_resume(struct pool *pool)
{
    end_filling(pool);
}

static bool wants_filling(struct pool *pool, const struct shapes_tally *tally)
{
    const struct core_settings *settings = pool->sandboxes->settings;
    bool has_any = settings->spare_one_shot + settings->spare_kept > 0;

    return (has_any && (tally->is_short || tally->is_over ||
                        clock_monotonic_ms() - pool->checked_ms >= CHECK_MS ||
                        (!tally->has_usual && runtimes_is_ready(pool->sandboxes->runtimes,
                                                                settings->default_runtime)))) ||
           streams_needs_spares(pool->sandboxes->streams);
}

/*
 * Launching takes a processor from whoever is being served just now. So the pool is filled when nobody has taken from it for a
 * moment, or when it has run low.
 */
static bool is_good_time(struct pool *pool, const struct shapes_tally *tally)
{
    return (tally->waiting <= tally->wanted / 4 && !ending_is_behind(pool->sandboxes)) ||
           is_calm(pool);
}

void pool_tick(struct pool *pool)
{
    struct error ignored = {0};

    if (pool->is_ending)
        return;
    const struct shapes_tally tally = shapes_tally(&pool->shapes, not_asked_since(pool));
    if (!wants_filling(pool, &tally) || !is_good_time(pool, &tally) || !begin_filling(pool))
        return;
    if (workers_submit(pool->filler, WORKERS_SLOW, fill, pool, &ignored) < 0)
        end_filling(pool);
}

unsigned pool_waiting(struct pool *pool)
{
    return shapes_tally(&pool->shapes, 0).waiting;
}

uint64_t pool_bytes(struct pool *pool)
{
    return shapes_tally(&pool->shapes, 0).bytes;
}

void pooled_clear(struct pooled *pooled)
{
    free((void *)pooled->env);
    pooled->env = NULL;
}
