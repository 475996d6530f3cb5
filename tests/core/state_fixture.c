/* SPDX-License-Identifier: Apache-2.0 */
/* See state_fixture.h. */
#include "state_fixture.h"

#include "base/clock.h"
#include "core/core.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/sandboxes.h"
#include "core/stream/streams.h"
#include "engine/box.h"
#include "store/store.h"
#include "engine/layer.h"

#include <time.h>

#define PATIENCE_MS 60000

const char *shell_in(const char *sandbox, const char *script)
{
    autoclear(execution_info) started = {0};
    autoclear(execution_info) end = {0};

    start_in(sandbox, EXECUTION_COMMAND, script, &started);
    await_execution(started.id, &end);
    if (end.exit.code != 0)
        test_fail(__FILE__, __LINE__, "'%s' ends with %lld: %s", script, (long long)end.exit.code,
                  content_of(end.stderr_stream));
    await_state(sandbox, SANDBOX_IDLE);
    return content_of(end.stdout_stream);
}

void keep_snapshot(const char *sandbox, const char *name, char id[ID_TEXT])
{
    const struct snapshot_request request = {.name = name};
    autoclear(snapshot_info) record = {0};
    struct error err = {0};

    CHECK_OK(snapshot_create(core->snapshots, &actor, sandbox, &request, &record, &err), err);
    (void)snprintf(id, ID_TEXT, "%s", record.id);
}

void keep_checkpoint(const char *sandbox, const char *name)
{
    autoclear(checkpoint_info) record = {0};
    struct error err = {0};
    CHECK_OK(checkpoint_create(core->snapshots, &actor, sandbox, name, &record, &err), err);
}

void make_sandbox_from(const char *snapshot, char id[ID_TEXT])
{
    struct sandbox_request request = {
        .mode = SANDBOX_INTERACTIVE,
        .snapshot = snapshot,
        .home = "/home/me",
        .usual.directory = "/home/me",
        .max_executions = 1,
        .idle_timeout_ms = SANDBOX_DEFAULT,
        .usual.timeout_ms = SANDBOX_DEFAULT,
        .paused_timeout_ms = SANDBOX_DEFAULT,
    };
    autoclear(sandbox_info) made = {0};
    struct error err = {0};

    CHECK_OK(sandbox_create(core, &actor, &request, &made, NULL, &err), err);
    (void)snprintf(id, ID_TEXT, "%s", made.id);
}

static bool count_one(const char *name, void *data)
{
    (void)name;
    ++*(unsigned *)data;
    return true;
}

unsigned count_layers(void)
{
    unsigned count = 0;
    struct error err = {0};
    CHECK_OK(layer_sweep(engine_volume(core->engine), count_one, &count, &err), err);
    return count;
}

static bool count_box(const char *name, void *data)
{
    *(unsigned *)data += strncmp(name, "box-", 4) == 0;
    return true;
}

/* What waits in the pool has one too: it is ended first, which takes a moment, and made again later. */
unsigned count_stray_scratches(void)
{
    struct pool *pool = core->sandboxes->pool;
    uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS;
    struct core_health health;
    unsigned count = 0;
    struct error err = {0};

    core_health(core, &health);
    pool_hold(pool, "host");
    do {
        count = 0;
        CHECK_OK(volume_sweep(engine_volume(core->engine), count_box, &count, &err), err);
        if (count > health.sandboxes)
            (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    } while (count > health.sandboxes && clock_monotonic_ms() < until_ms);
    pool_resume(pool);
    return count > health.sandboxes ? count - health.sandboxes : 0;
}
