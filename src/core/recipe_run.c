/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps of a recipe in a sandbox; see recipe.h. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/account/key.h"
#include "core/core.h"
#include "core/create.h"
#include "core/recipe_impl.h"
#include "core/runtime/runtimes.h"
#include "core/sandbox/file_access.h"
#include "core/sandbox/sandbox.h"
#include "core/stream/stream.h"

#include <string.h>

#define LOOK_MS 1000 // at least so often it is seen that the server ends
#define SERVICE_MS ((int64_t)300 * 1000)
#define READY_PAUSE_MS 250
#define LINE_ROOM ((size_t)2000)

/* Not at every line of output. */
static int check_key(struct recipe_build *build, struct error *err)
{
    uint64_t now = clock_monotonic_ms();

    if (now < build->key_look_ms)
        return 0;
    build->key_look_ms = now + LOOK_MS;
    if (key_check_again(build->core->accounts, build->actor.key_id, SCOPE_MANAGE, err) < 0)
        return error_wrap(err, "the key of this build");
    return 0;
}

int recipe_check(struct recipe_build *build, struct error *err)
{
    if (atomic_load(&build->recipes->is_stopping))
        return error_set(err, ERROR_CANCELLED, "the server was stopped during the build");
    if (clock_monotonic_ms() >= build->until_ms)
        return error_set(err, ERROR_TIMEOUT, "the build has taken longer than an hour");
    return check_key(build, err);
}

static int64_t time_left_ms(uint64_t until_ms)
{
    uint64_t now = clock_monotonic_ms();
    return until_ms > now ? (int64_t)(until_ms - now) : 1;
}

// ---- waiting ----

static void on_change(void *data)
{
    (void)sem_post(data);
}

static void wait_change(sem_t *changed, int64_t at_most_ms)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += at_most_ms / 1000;
    until.tv_nsec += (at_most_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)sem_clockwait(changed, CLOCK_MONOTONIC, &until);
    while (sem_trywait(changed) == 0)
        ; // one look is enough for all that has changed
}

// ---- what a command writes ----

/* One side of its output on its way into the log. */
struct side {
    const char *name;
    struct stream *stream;
    uint64_t at;
    char line[LINE_ROOM];
    size_t used;
};

static void side_flush(struct recipe_build *build, struct side *side)
{
    if (side->used)
        recipe_log_add(&build->log, RECIPE_INFO, build->step, "[%s]: %.*s", side->name,
                       (int)side->used, side->line);
    side->used = 0;
}

static void side_take(struct recipe_build *build, struct side *side, const char *bytes,
                      size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != '\n' && bytes[i] != '\0')
            side->line[side->used++] = bytes[i];
        if (bytes[i] == '\n' || side->used == sizeof side->line)
            side_flush(build, side);
    }
}

/* All that is there. */
static void side_read(struct recipe_build *build, struct side *side)
{
    struct stream_progress progress;
    char bytes[16384];

    if (!side->stream)
        return;
    stream_progress(side->stream, &progress);
    while (side->at < progress.size_bytes) {
        uint64_t left = progress.size_bytes - side->at;
        ssize_t got = fd_read_full_at(stream_fd(side->stream), bytes,
                                      left < sizeof bytes ? left : sizeof bytes, (off_t)side->at);
        if (got <= 0)
            break;
        side_take(build, side, bytes, (size_t)got);
        side->at += (uint64_t)got;
    }
}

static bool side_is_over(const struct side *side)
{
    struct stream_progress progress;

    if (!side->stream)
        return true;
    stream_progress(side->stream, &progress);
    return progress.is_complete && side->at >= progress.size_bytes;
}

// ---- commands ----

static int start(struct core *core, const struct actor *actor, const char *sandbox_id,
                 const struct command *command, int64_t timeout_ms, struct execution_info *out,
                 struct error *err)
{
    struct execution_request request = {.kind = EXECUTION_JOB, .command = *command};

    request.command.timeout_ms = timeout_ms;
    return execution_start(core->executions, actor, sandbox_id, &request, out, err);
}

static int look(struct core *core, const struct actor *actor, struct execution_info *info,
                struct error *err)
{
    autoclear(execution_info) now = {0};

    if (execution_get(core->executions, actor, info->id, NULL, &now, err) < 0)
        return -1;
    execution_info_clear(info);
    *info = now;
    now = (struct execution_info){0};
    return 0;
}

/* Until it is over and all that it wrote is in the log. */
static int follow(struct recipe_build *build, struct execution_info *info, struct side sides[2],
                  struct error *err)
{
    autoptr(watch) ends = hub_watch(build->core->hub, info->id, on_change, &build->changed);

    for (;;) {
        if (look(build->core, &build->actor, info, err) < 0)
            return -1;
        side_read(build, &sides[0]);
        side_read(build, &sides[1]);
        bool is_over = execution_info_is_over(info);
        if (is_over && side_is_over(&sides[0]) && side_is_over(&sides[1]))
            return 0;
        if (recipe_check(build, err) < 0)
            return -1;
        wait_change(&build->changed, is_over ? 20 : LOOK_MS);
    }
}

static int judge(const struct execution_info *info, struct error *err)
{
    int64_t code = execution_info_exit_code(info);

    if (info->state == EXECUTION_COMPLETED && code == 0)
        return 0;
    if (info->state == EXECUTION_TIMED_OUT)
        return error_set(err, ERROR_TIMEOUT, "the build has taken longer than an hour");
    if (info->error)
        return error_set(err, ERROR_STATE, "the command could not be run: %s", info->error);
    return error_set(err, ERROR_STATE, "the command ended with exit code %lld", (long long)code);
}

static int run_command(struct recipe_build *build, const struct command *command, struct error *err)
{
    autoclear(execution_info) info = {0};
    struct side sides[2] = {{.name = "stdout"}, {.name = "stderr"}};

    if (start(build->core, &build->actor, build->sandbox_id, command, time_left_ms(build->until_ms),
              &info, err) < 0)
        return -1;
    if (info.stdout_stream)
        sides[0].stream = stream_open_kept(build->core->streams, info.stdout_stream, false);
    if (info.stderr_stream)
        sides[1].stream = stream_open_kept(build->core->streams, info.stderr_stream, false);
    autoptr(watch) first = info.stdout_stream ? hub_watch(build->core->hub, info.stdout_stream,
                                                          on_change, &build->changed)
                                              : NULL;
    autoptr(watch) second = info.stderr_stream ? hub_watch(build->core->hub, info.stderr_stream,
                                                           on_change, &build->changed)
                                               : NULL;
    int result = follow(build, &info, sides, err);
    for (size_t i = 0; i < ARRAY_SIZE(sides); i++) {
        side_flush(build, &sides[i]);
        stream_free(sides[i].stream);
    }
    return result < 0 ? -1 : judge(&info, err);
}

// ---- services ----

/* Whether the command of a service has ended, with what; 0: it runs, or has ended well, as one does that leaves its program in the background. */
static int check_service(struct core *core, const struct actor *actor, struct execution_info *info,
                         struct error *err)
{
    if (look(core, actor, info, err) < 0)
        return -1;
    if (!execution_info_is_over(info) || execution_info_exit_code(info) == 0)
        return 0;
    return error_refuse(err, ERROR_STATE, "service",
                        "the start command ended with exit code %lld before it was ready",
                        (long long)execution_info_exit_code(info));
}

/* Runs to its end, at most so long; *is_ready: it has succeeded. */
static int try_ready(struct core *core, const struct actor *actor, const char *sandbox_id,
                     const struct command *command, uint64_t until_ms, sem_t *changed,
                     bool *is_ready, struct error *err)
{
    autoclear(execution_info) info = {0};

    if (start(core, actor, sandbox_id, command, time_left_ms(until_ms), &info, err) < 0)
        return -1;
    autoptr(watch) ends = hub_watch(core->hub, info.id, on_change, changed);
    for (;;) {
        if (look(core, actor, &info, err) < 0)
            return -1;
        if (execution_info_is_over(&info))
            break;
        wait_change(changed, LOOK_MS);
    }
    *is_ready = info.state == EXECUTION_COMPLETED && execution_info_exit_code(&info) == 0;
    return 0;
}

static int wait_ready(struct core *core, const struct actor *actor, const char *sandbox_id,
                      const struct recipe_service *service, uint64_t until_ms,
                      struct execution_info *started, sem_t *changed, struct error *err)
{
    struct command ready = service->around;
    bool is_ready = false;

    ready.argv = service->ready;
    while (service->ready) {
        if (check_service(core, actor, started, err) < 0 ||
            try_ready(core, actor, sandbox_id, &ready, until_ms, changed, &is_ready, err) < 0)
            return -1;
        if (is_ready)
            return 0;
        if (clock_monotonic_ms() >= until_ms)
            return error_refuse(err, ERROR_STATE, "service",
                                "the start command was not ready in time");
        wait_change(changed, READY_PAUSE_MS);
    }
    return check_service(core, actor, started, err);
}

int recipe_serve(struct core *core, const struct actor *actor, const char *sandbox_id,
                 const struct recipe_service *service, int64_t within_ms, char *started,
                 struct error *err)
{
    uint64_t until_ms = clock_monotonic_ms() + (uint64_t)within_ms;
    struct command command = service->around;
    autoclear(execution_info) info = {0};
    sem_t changed;

    command.argv = service->start;
    if (start(core, actor, sandbox_id, &command, 0, &info, err) < 0)
        return -1;
    if (started)
        (void)snprintf(started, ID_TEXT, "%s", info.id);
    (void)sem_init(&changed, 0, 0);
    int result = wait_ready(core, actor, sandbox_id, service, until_ms, &info, &changed, err);
    (void)sem_destroy(&changed);
    return result;
}

// ---- the sandbox ----

static struct sandbox_request describe(const struct recipe_build *build,
                                       const struct network_change *network)
{
    const struct recipe *recipe = &build->recipe;

    return (struct sandbox_request){
        .description = "builds a snapshot",
        .runtime = *build->base ? NULL : recipe->runtime,
        .snapshot = *build->base ? build->base : NULL,
        .home = recipe->home,
        .usual = {.directory = recipe->home, .user = recipe->user},
        .limits = recipe->limits,
        .expires_at = (int64_t)clock_wall_ms() + time_left_ms(build->until_ms),
        .on_expiry = SANDBOX_EXPIRY_ENDS,
        .front_data = recipe->front_data,
        .network = network,
    };
}

/* Where there is none yet. With a network, where this server and this key have any. */
static int need_sandbox(struct recipe_build *build, struct error *err)
{
    const struct network_change open = {.is_whole = true,
                                        .has_enabled = true,
                                        .is_enabled = true,
                                        .has_default = true,
                                        .otherwise = NETWORK_ALLOW};
    struct sandbox_request request = describe(build, &open);
    autoclear(sandbox_info) info = {0};

    if (*build->sandbox_id)
        return 0;
    int result = sandbox_create(build->core, &build->actor, &request, &info, NULL, err);
    if (result < 0 && (error_is(err, ERROR_DENIED) || error_is_about(err, "network") ||
                       error_is_about(err, "network.enabled"))) {
        request.network = NULL;
        *err = (struct error){0};
        result = sandbox_create(build->core, &build->actor, &request, &info, NULL, err);
    }
    if (result < 0)
        return -1;
    (void)snprintf(build->sandbox_id, sizeof build->sandbox_id, "%s", info.id);
    recipe_log_sandbox(&build->log, info.id);
    return 0;
}

// ---- steps ----

static int copy_files(struct recipe_build *build, size_t at, struct error *err)
{
    const struct recipe_step *step = &build->recipe.steps[at];
    char digest[RECIPE_HASH];
    struct core *core = build->core;
    const struct file_place place = {.sandbox_id = build->sandbox_id, .path = RECIPE_UNPACKED};
    const struct command command = {
        .argv = recipe_copy_command(&build->arena, step), .directory = "/", .user = "0:0"};

    autofd archive = recipe_upload_open(build, step, digest, err);
    if (archive < 0)
        return -1;
    if (strcmp(digest, build->uploads[at]) != 0) // it is kept under a key with the other
        return error_set(err, ERROR_CONFLICT, "its files were replaced during the build");
    if (file_unpack_as(core->sandboxes, &build->actor, &place, ARCHIVE_ANY, archive, err) < 0)
        return error_wrap(err, "unpack the upload");
    return run_command(build, &command, err);
}

/* Its start makes files, which stay; the program does not. */
static int run_service(struct recipe_build *build, struct error *err)
{
    struct core *core = build->core;
    int64_t left_ms = time_left_ms(build->until_ms);
    autoclear(execution_info) stopped = {0};
    char started[ID_TEXT] = "";

    if (recipe_serve(core, &build->actor, build->sandbox_id, &build->recipe.service,
                     left_ms < SERVICE_MS ? left_ms : SERVICE_MS, started, err) < 0)
        return -1;
    recipe_log_add(&build->log, RECIPE_INFO, build->step, "the start command is ready");
    return execution_stop(core->executions, &build->actor, started, NULL, true, "the build is over",
                          &stopped, err);
}

static int keep_stage(struct recipe_build *build, size_t at, struct error *err)
{
    const struct snapshot_request request = {.step = build->keys[at]};
    autoclear(snapshot_info) kept = {0};

    if (at < build->recipe.n_steps && build->recipe.steps[at].is_silent)
        return 0;
    if (snapshot_create(build->core->snapshots, &build->actor, build->sandbox_id, &request, &kept,
                        err) < 0)
        return -1;
    (void)snprintf(build->base, sizeof build->base, "%s", kept.id);
    return 0;
}

static const char *label_of(const struct recipe_build *build, size_t at)
{
    return at < build->recipe.n_steps ? build->recipe.steps[at].label : "START";
}

static int run_stage(struct recipe_build *build, size_t at, struct error *err)
{
    const struct recipe *recipe = &build->recipe;

    build->step = at < recipe->n_steps ? (int)at + 1 : RECIPE_STEP_LAST;
    if (recipe_check(build, err) < 0)
        return -1;
    recipe_log_add(&build->log, RECIPE_INFO, build->step, "[%zu/%zu] %s", at + 1, build->n_stages,
                   label_of(build, at));
    if (at < recipe->n_steps && recipe->steps[at].is_silent)
        return 0;
    if (need_sandbox(build, err) < 0)
        return -1;
    if (at == recipe->n_steps)
        return run_service(build, err);
    return recipe->steps[at].command.argv ? run_command(build, &recipe->steps[at].command, err)
                                          : copy_files(build, at, err);
}

/* How many stages are kept from an earlier build; build->base is what there is behind them. */
static size_t find_kept(struct recipe_build *build)
{
    const struct recipe *recipe = &build->recipe;
    size_t most = build->n_stages;

    for (size_t i = recipe->n_steps; i-- > 0;) {
        if (recipe->steps[i].is_forced)
            most = i;
    }
    for (size_t count = most; count > 0; count--) {
        autoclear(snapshot_info) kept = {0};
        struct error ignored = {0};
        if (snapshot_step_find(build->core->snapshots, &build->actor, build->keys[count - 1], &kept,
                               &ignored) < 0)
            continue;
        (void)snprintf(build->base, sizeof build->base, "%s", kept.id);
        return count;
    }
    return 0;
}

static int on_progress(void *data, const char *phase, unsigned percent)
{
    struct recipe_build *build = data;

    (void)percent;
    if (phase)
        recipe_log_add(&build->log, RECIPE_INFO, 0, "[base] %s", phase);
    return atomic_load(&build->recipes->is_stopping) ? -1 : 0;
}

/* Where it starts from a runtime that has to be built first. */
static int open_base(struct recipe_build *build, struct error *err)
{
    const struct image_watch watch = {on_progress, build};
    autoptr(image) image = NULL;

    recipe_log_add(&build->log, RECIPE_INFO, 0, "[base] FROM %s",
                   build->recipe.snapshot ? build->recipe.snapshot : build->recipe.runtime);
    (void)snprintf(build->base, sizeof build->base, "%s",
                   build->recipe.snapshot ? build->recipe.snapshot : "");
    return build->recipe.snapshot ? 0
                                  : image_get_with(build->core->runtimes, build->recipe.runtime,
                                                   NULL, &watch, &image, err);
}

static int complete(struct recipe_build *build, struct error *err)
{
    struct snapshot_outcome outcome = build->recipe.outcome;

    build->step = RECIPE_STEP_LAST;
    if (recipe_check(build, err) < 0)
        return -1;
    outcome.snapshot = *build->base ? build->base : NULL;
    outcome.runtime = build->recipe.runtime;
    return snapshot_build_complete(build->core->snapshots, &build->actor, build->id, &outcome, err);
}

int recipe_run(struct recipe_build *build, struct error *err)
{
    if (recipe_check(build, err) < 0 || open_base(build, err) < 0 ||
        recipe_make_keys(build, err) < 0)
        return -1;
    size_t kept = find_kept(build);
    for (size_t i = 0; i < kept; i++)
        recipe_log_add(&build->log, RECIPE_INFO,
                       i < build->recipe.n_steps ? (int)i + 1 : RECIPE_STEP_LAST,
                       "CACHED [%zu/%zu] %s", i + 1, build->n_stages, label_of(build, i));
    for (size_t i = kept; i < build->n_stages; i++) {
        if (run_stage(build, i, err) < 0 || keep_stage(build, i, err) < 0)
            return -1;
    }
    return complete(build, err);
}
