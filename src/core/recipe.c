/* SPDX-License-Identifier: Apache-2.0 */
/* Builds by steps: which there are, who is next, how they end; see recipe.h. */
#include "core/recipe.h"

#include "base/clock.h"
#include "base/id_table.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/account/key.h"
#include "core/core.h"
#include "core/recipe_impl.h"
#include "core/sandbox/sandbox.h"

#include <string.h>

#define RUNNING_PER_WHO 2
#define WAITING_PER_WHO 4
#define LOG_KEEP_MS ((int64_t)30 * 24 * 3600 * 1000)

// ---- one build ----

static void recipe_build_free(struct recipe_build *build)
{
    if (!build)
        return;
    recipe_log_close(&build->log);
    arena_clear(&build->arena);
    (void)sem_destroy(&build->changed);
    free(build);
}
DEFINE_AUTOPTR(recipe_build)

static void list_add(struct recipe_build *build)
{
    autolock(&build->recipes->lock);
    build->next = build->recipes->builds;
    build->recipes->builds = build;
}

static void list_remove(struct recipe_build *build)
{
    autolock(&build->recipes->lock);
    struct recipe_build **at = &build->recipes->builds;

    while (*at && *at != build)
        at = &(*at)->next;
    if (*at)
        *at = build->next;
}

static void mark_running(struct recipe_build *build)
{
    autolock(&build->recipes->lock);
    build->is_running = true;
}

/* Whether it is under way, and running. */
static bool find_state(struct recipes *recipes, const char *id, bool *is_running)
{
    autolock(&recipes->lock);
    const struct recipe_build *build = recipes->builds;

    while (build && strcmp(build->id, id) != 0)
        build = build->next;
    *is_running = build && build->is_running;
    return build;
}

static void fail(struct recipe_build *build, const struct error *why)
{
    struct error err = {0};

    recipe_log_add(&build->log, RECIPE_ERROR, build->step, "%s", why->text);
    if (snapshot_build_fail(build->core->snapshots, build->id, why->text, NULL, &err) < 0)
        log_warn("a build that failed is not recorded", F("id", (const char *)build->id),
                 F("error", (const char *)err.text));
}

/* On a worker. */
static void run(void *data)
{
    autoptr(recipe_build) build = data;
    struct error err = {0}, ignored = {0};

    mark_running(build);
    build->until_ms = clock_monotonic_ms() + RECIPE_BUILD_MS;
    if (recipe_run(build, &err) < 0)
        fail(build, &err);
    else
        recipe_log_add(&build->log, RECIPE_INFO, RECIPE_STEP_LAST, "the build is ready");
    if (*build->sandbox_id)
        (void)sandbox_delete(build->core->sandboxes, &build->actor, build->sandbox_id,
                             &ignored); // else it ends with its time
    snapshot_steps_prune(build->core->snapshots, &build->actor);
    list_remove(build);
}

// ---- starting one ----

static int check_steps(struct core *core, const struct actor *actor, const struct recipe *recipe,
                       struct error *err)
{
    char owner[RECIPE_OWNER];

    if (recipe->n_steps > RECIPE_STEPS_MOST)
        return error_set(err, ERROR_INVALID, "steps: at most %d, not %zu", RECIPE_STEPS_MOST,
                         recipe->n_steps);
    recipe_upload_owner(actor, owner);
    for (size_t i = 0; i < recipe->n_steps; i++) {
        const struct recipe_step *step = &recipe->steps[i];
        if (step->command.argv || step->is_silent)
            continue;
        if (recipe_upload_check(step->upload, err) < 0)
            return error_wrap(err, "steps[%zu]", i);
        if (!recipe_upload_is_there(core, owner, step->upload, NULL))
            return error_set(err, ERROR_INVALID, "steps[%zu]: its files have not been uploaded", i);
    }
    return 0;
}

/* Before anything is made of it: a runtime may have to be built first. */
static int check_base(struct core *core, const struct actor *actor, const struct recipe *recipe,
                      struct error *err)
{
    const struct key_wish wish = {.runtime = recipe->runtime};

    return recipe->snapshot ? 0 : key_rules_check(core->accounts, actor, &wish, err);
}

/* Whose turn it takes: a member's, however many keys it has. */
static struct turns_owner turn_of(const struct actor *actor)
{
    char owner[RECIPE_OWNER];

    recipe_upload_owner(actor, owner);
    return (struct turns_owner){.who = id_hash(*actor->member   ? owner
                                               : *actor->key_id ? actor->key_id
                                                                : "-")};
}

static void forget_old(struct core *core);

int recipe_start(struct core *core, const struct actor *actor, const char *id,
                 const struct recipe *recipe, struct error *err)
{
    const struct turns_owner owner = turn_of(actor);

    if (snapshot_build_check(core->snapshots, actor, id, NULL, err) < 0 ||
        check_base(core, actor, recipe, err) < 0 || check_steps(core, actor, recipe, err) < 0)
        return -1;
    forget_old(core);
    autoptr(recipe_build) build = xnew(struct recipe_build);
    build->log.fd = -1;
    (void)sem_init(&build->changed, 0, 0);
    build->recipes = core->recipes;
    build->core = core;
    (void)snprintf(build->id, sizeof build->id, "%s", id);
    if (recipe_log_create(core->settings.data_dir, id, &build->log, err) < 0)
        return -1;
    recipe_copy_into(build, recipe, actor);
    list_add(build);
    if (workers_submit_for(core->recipes->workers, WORKERS_SLOW, &owner, run, build, err) < 0) {
        list_remove(build);
        recipe_log_remove(core->settings.data_dir, id); // it may be begun again
        return error_refuse(err, ERROR_FULL, "build",
                            "as many builds wait as there may be; try again when one is over");
    }
    (void)take(build);
    return 0;
}

// ---- telling of one ----

void recipe_status_clear(struct recipe_status *status)
{
    free(status->error);
    free(status->name);
    *status = (struct recipe_status){0};
}

int recipe_status(struct core *core, const struct actor *actor, const char *id,
                  struct recipe_status *out, struct error *err)
{
    autoclear(snapshot_info) info = {0};
    bool is_running = false;

    bool is_under_way = find_state(core->recipes, id, &is_running);
    if (!id_is_valid(id))
        return error_missing(err, "snapshot", id);
    if (snapshot_look(core->snapshots, actor, id, &info, err) < 0)
        return -1;
    if (info.state == SNAPSHOT_DELETED)
        return error_missing(err, "snapshot", id);
    *out = (struct recipe_status){.name = xstrdup(info.name)};
    if (info.state == SNAPSHOT_READY)
        out->state = RECIPE_READY;
    else if (info.state == SNAPSHOT_BUILDING)
        out->state = is_under_way && is_running ? RECIPE_RUNNING : RECIPE_WAITING;
    else
        out->state = RECIPE_FAILED;
    if (out->state == RECIPE_FAILED) {
        out->error = xstrdup(info.error ? info.error : "the build has failed");
        out->step = recipe_log_failed_step(core->settings.data_dir, id);
    }
    return 0;
}

// ---- all of them ----

static void forget_log(void *data, const char *id)
{
    const struct core *core = data;
    recipe_log_remove(core->settings.data_dir, id);
}

static void forget_old(struct core *core)
{
    struct error ignored = {0};

    (void)recipe_logs_each(core->settings.data_dir, (int64_t)clock_wall_ms() - LOG_KEEP_MS,
                           forget_log, core, &ignored);
    recipe_uploads_prune(core);
}

/* One that an earlier server began: if it was not over, it is now. */
static void end_interrupted(void *data, const char *id)
{
    static const char why[] = "the server was restarted during the build";
    struct core *core = data;
    struct recipe_log log = {.fd = -1};
    char sandbox_id[ID_TEXT];
    struct error err = {0};
    bool has_changed;

    if (snapshot_build_fail(core->snapshots, id, why, &has_changed, &err) < 0 || !has_changed)
        return;
    recipe_log_find_sandbox(core->settings.data_dir, id, sandbox_id);
    if (*sandbox_id)
        sandbox_end_later(core->sandboxes, sandbox_id, "build interrupted");
    if (recipe_log_open(core->settings.data_dir, id, &log, &err) == 0)
        recipe_log_add(&log, RECIPE_ERROR, 0, "%s", why);
    recipe_log_close(&log);
}

int recipes_open(struct core *core, struct recipes **out, struct error *err)
{
    const struct workers_settings settings = {
        .lane = {[WORKERS_SLOW] = {RECIPE_BUILDS_AT_ONCE, RECIPE_BUILDS_WAITING, "builder",
                                   .per_who = RUNNING_PER_WHO, .queue_per_who = WAITING_PER_WHO}}};
    struct recipes *recipes = xnew(struct recipes);

    recipes->core = core;
    lock_init(&recipes->lock, LOCK_RECIPES);
    if (recipe_logs_each(core->settings.data_dir, INT64_MAX, end_interrupted, core, err) < 0 ||
        workers_new(&settings, &recipes->workers, err) < 0) {
        recipes_free(recipes);
        return -1;
    }
    forget_old(core);
    *out = recipes;
    return 0;
}

void recipes_stop(struct recipes *recipes)
{
    if (!recipes)
        return;
    atomic_store(&recipes->is_stopping, true);
    if (recipes->workers)
        workers_stop(recipes->workers);
}

void recipes_free(struct recipes *recipes)
{
    if (!recipes)
        return;
    workers_free(recipes->workers);
    lock_clear(&recipes->lock);
    free(recipes);
}
