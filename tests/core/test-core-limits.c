/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a sandbox, changed while it lives: set, seen, recorded, refused, and kept over a restart of the server. */
#include "core_fixture.h"

#include "base/auto.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/sandbox_limits.h"
#include "core/sandbox/sandboxes.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MIB ((int64_t)1 << 20)
#define PATIENCE 6000 // naps

static const struct limits more = {.memory_bytes = 768 * MIB,
                                   .cpu_millicores = 1500,
                                   .disk_bytes = 3072 * MIB,
                                   .max_processes = 600};
static const struct limits less = {.memory_bytes = 128 * MIB,
                                   .cpu_millicores = 500,
                                   .disk_bytes = 256 * MIB,
                                   .max_processes = 100};

/* What a script prints in the sandbox. */
static const char *output_of(const char *sandbox, const char *script)
{
    autoclear(execution_info) started = {0};
    autoclear(execution_info) ended = {0};

    start_in(sandbox, EXECUTION_COMMAND, script, &started);
    await_execution(started.id, &ended);
    CHECK_INT(ended.exit.code, 0);
    return content_of(ended.stdout_stream);
}

static void set(const char *id, const struct limits *limits)
{
    autoclear(sandbox_info) info = {0};
    struct error err = {0};

    CHECK_OK(sandbox_set_limits(core->sandboxes, &actor, id, limits, &info, &err), err);
    CHECK(limits_equal(&info.limits, limits));
}

/* The kernel, programs inside and the record say the same. */
static void check_limits(const char *id, const struct limits *limits)
{
    autoclear(sandbox_info) info = {0};
    struct error err = {0};
    char wanted[128];

    CHECK_OK(sandbox_get(core->sandboxes, &actor, id, false, &info, &err), err);
    CHECK(limits_equal(&info.limits, limits));
    (void)snprintf(wanted, sizeof wanted, "%lld\n%lld\n%lld\n", (long long)limits->memory_bytes,
                   (long long)limits->max_processes, (long long)limits->memory_bytes / 1024);
    CHECK_STR(output_of(id, "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max; "
                            "while read name value unit; do [ $name = MemTotal: ] && echo $value; "
                            "done </proc/meminfo; true"),
              wanted);
}

static struct error refused(const char *id, const struct limits *limits, enum error_reason reason)
{
    autoclear(sandbox_info) info = {0};
    struct error err = {0};

    CHECK(sandbox_set_limits(core->sandboxes, &actor, id, limits, &info, &err) < 0);
    CHECK(error_is(&err, reason));
    return err;
}

CORE_TEST(limits_go_up_and_down_while_a_command_runs_and_stay_over_a_restart)
{
    char id[ID_TEXT];
    autoclear(execution_info) job = {0};
    autoclear(execution_info) ended = {0};

    make_sandbox(id);
    start_in(id, EXECUTION_JOB, "while [ ! -e go ]; do sleep 0.01; done", &job);
    set(id, &more);
    check_limits(id, &more);
    set(id, &less);
    check_limits(id, &less);
    reopen_core();
    check_limits(id, &less);
    set(id, &more);
    check_limits(id, &more);
    reopen_core();
    check_limits(id, &more);
    (void)output_of(id, "touch go");
    await_execution(job.id, &ended);
    CHECK_INT(ended.exit.code, 0);
}

CORE_TEST(what_is_not_asked_for_stays_and_an_event_tells_it_until_the_end)
{
    const struct limits asked = {.memory_bytes = 256 * MIB};
    struct event_filter filter = {.page.limit = 100};
    autoclear(event_infos) events = {0};
    autoclear(sandbox_info) info = {0};
    struct error err = {0};
    char id[ID_TEXT];

    make_sandbox(id);
    filter.sandbox_id = id;
    CHECK_OK(sandbox_set_limits(core->sandboxes, &actor, id, &asked, &info, &err), err);
    CHECK_INT(info.limits.memory_bytes, 256 * MIB);
    CHECK_INT(info.limits.cpu_millicores, 1000);
    CHECK_INT(info.limits.max_processes, 512);
    CHECK_OK(event_list(core->sandboxes, &actor, &filter, &events, &err), err);
    const struct event_info *last = &events.items[events.count - 1];
    CHECK_STR(last->type, EVENT_LIMITS);
    CHECK_STR(last->facts[0], "memory_bytes=268435456");
    CHECK_STR(last->facts[1], "cpu_millicores=1000");
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, id, &err), err);
    autoclear(sandbox_info) none = {0};
    CHECK(sandbox_set_limits(core->sandboxes, &actor, id, &less, &none, &err) < 0);
    CHECK(error_is(&err, ERROR_NOT_FOUND) || error_is(&err, ERROR_GONE));
}

CORE_TEST(what_cannot_be_had_is_refused_and_all_stays_as_it_was)
{
    char id[ID_TEXT];
    autoclear(execution_info) hungry = {0};
    struct error err;

    make_sandbox(id);
    set(id, &more);
    err = refused(id, &(struct limits){.memory_bytes = 500000 * 1024 * MIB}, ERROR_INVALID);
    CHECK(strstr(err.text, "is more than this server gives one sandbox") != NULL);
    CHECK(strstr(err.text, "raise --max-memory") != NULL);
    (void)refused(id, &(struct limits){.memory_bytes = 1}, ERROR_INVALID);
    (void)refused(id, &(struct limits){.cpu_millicores = 1000000}, ERROR_INVALID);

    (void)output_of(id, "head -c 64M /dev/urandom >big");
    err = refused(id, &(struct limits){.disk_bytes = 16 * MIB}, ERROR_STATE);
    CHECK_STR(err.noun, "disk");

    start_in(id, EXECUTION_JOB,
             "head -c 200M /dev/zero >/dev/shm/a && touch full && while :; do sleep 1; done",
             &hungry);
    (void)output_of(id, "while [ ! -e full ]; do sleep 0.01; done");
    err = refused(id, &less, ERROR_STATE);
    CHECK_STR(err.noun, "memory");
    check_limits(id, &more);
    (void)output_of(id, "rm /dev/shm/a big; sync");
    set(id, &less);
    check_limits(id, &less);
}

/* Also one that was made before there was such a ceiling, and one in which nothing happens. */
CORE_TEST(a_sandbox_ends_with_its_longest_life_whatever_runs_in_it)
{
    autoclear(execution_info) job = {0};
    autoclear(sandbox_info) ended = {0};
    struct error err = {0};
    char busy[ID_TEXT], idle[ID_TEXT];

    make_sandbox(busy);
    start_in(busy, EXECUTION_JOB, "while :; do sleep 1; done", &job);
    core->settings.ceilings.lifetime_ms = 100;
    make_sandbox(idle);
    await_state(busy, SANDBOX_ENDED);
    await_state(idle, SANDBOX_ENDED);
    CHECK_OK(sandbox_get(core->sandboxes, &actor, busy, false, &ended, &err), err);
    CHECK_STR(ended.reason, "lifetime");
}

static bool has_box(const char *id)
{
    autoptr(sandbox) sandbox = registry_find(core->sandboxes->registry, id);
    autobox held = sandbox_share_box(sandbox);
    return sandbox->box != NULL;
}

CORE_TEST(a_sandbox_without_a_box_has_the_new_limits_when_it_gets_one)
{
    const struct timespec nap = {.tv_nsec = 10000000};
    struct sandbox_request request = {
        .mode = SANDBOX_INTERACTIVE,
        .home = "/home/me",
        .usual.directory = "/home/me",
        .max_executions = 1,
        .idle_timeout_ms = 50,
        .on_idle = SANDBOX_IDLE_DROPS_BOX,
        .usual.timeout_ms = SANDBOX_DEFAULT,
        .paused_timeout_ms = SANDBOX_DEFAULT,
    };
    autoclear(sandbox_info) made = {0};
    struct error err = {0};

    CHECK_OK(sandbox_create(core, &actor, &request, &made, NULL, &err), err);
    for (unsigned i = 0; has_box(made.id) && i < PATIENCE; i++)
        (void)nanosleep(&nap, NULL);
    CHECK(!has_box(made.id));
    set(made.id, &less);
    CHECK(!has_box(made.id));
    check_limits(made.id, &less);
}
