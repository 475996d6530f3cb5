/* SPDX-License-Identifier: Apache-2.0 */
/* Letting go of a data directory, and of the boxes in it; see box.h. */
#include "engine/launch.h"

#include "base/fd.h"
#include "base/mem.h"
#include "engine/gateway.h"
#include "engine/occupants.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

enum { END_STEPS = 1000, END_STEP_MS = 10 };

/* A volume whose file is gone can only be unmounted; for the rest memory serves as well. */
static int open_engine(const char *data_dir, struct engine **out, struct error *err)
{
    struct engine_options options = {.data_dir = data_dir};

    if (engine_need_root(err) < 0)
        return -1;
    if (access(data_dir, F_OK) < 0)
        return error_sys(err, "open the data directory '%s'", data_dir);
    if (volume_is_orphan(data_dir))
        options.volume.scheme = VOLUME_TMPFS;
    return engine_open(&options, out, err);
}

static int refuse(struct engine *engine, struct error *err)
{
    char text[500];
    unsigned count = occupants_describe(engine->name, text, sizeof text);

    if (count == 0)
        return 0;
    return error_refuse(err, ERROR_BUSY, "sandbox", "'%.100s' has %u running sandbox%s: %s",
                        engine->data_dir, count, count == 1 ? "" : "es", text);
}

static int release(struct engine *engine, struct error *err)
{
    struct error ignored = {0};

    if (engine_open_places(engine, err) < 0 || engine_sweep(engine, err) < 0 ||
        refuse(engine, err) < 0 || gateway_remove(engine->data_dir, err) < 0 ||
        cgroup_root_remove(engine->cgroups, err) < 0)
        return -1;
    for (size_t i = 0; i < engine->n_other_cgroups; i++)
        cgroup_root_retire(engine->other_cgroups[i], engine->cgroups, 0);
    int run_fd = atomic_exchange(&engine->run_fd, -1);
    closep(&run_fd);
    autofd runs = open(ENGINE_RUN_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (runs >= 0)
        (void)fd_remove_tree(runs, engine->name, &ignored); // sockets of dead boxes
    return 0;
}

int engine_detach(const char *data_dir, struct error *err)
{
    struct engine *engine = NULL;

    if (open_engine(data_dir, &engine, err) < 0)
        return -1;
    int result = release(engine, err);
    engine_free(engine);
    return result < 0 ? -1 : volume_detach(data_dir, err);
}

/* Boxes that were killed; a `burrow run` whose box it was has their slots for a moment longer. */
struct ended {
    unsigned slots[SLOT_COUNT];
    unsigned count;
};

static bool is_kept(const char *name, void *data)
{
    struct ended *ended = data;
    unsigned slot = 0;

    if (!slot_parse(name, &slot) || ended->count == SLOT_COUNT)
        return true;
    ended->slots[ended->count++] = slot;
    return false;
}

static void await_owner(struct engine *engine, unsigned slot)
{
    const struct timespec step = {.tv_nsec = END_STEP_MS * 1000000L};

    for (unsigned i = 0; i < END_STEPS; i++) {
        autofd held = slot_try(engine->slots_fd, slot);
        if (held >= 0 || slot_is_others(engine->slots_fd, slot, engine->own_slots.owner))
            return;
        (void)nanosleep(&step, NULL);
    }
}

int engine_end_boxes(const char *data_dir, struct error *err)
{
    autofree struct ended *ended = xnew(struct ended);
    autoptr(engine) engine = NULL;

    if (open_engine(data_dir, &engine, err) < 0)
        return -1;
    int result = engine_open_places(engine, err);
    if (result == 0)
        result = cgroup_sweep(engine->cgroups, is_kept, ended, err);
    for (size_t i = 0; result == 0 && i < engine->n_other_cgroups; i++)
        result = cgroup_sweep(engine->other_cgroups[i], is_kept, ended, err);
    for (unsigned i = 0; i < ended->count; i++)
        await_owner(engine, ended->slots[i]);
    return result;
}
