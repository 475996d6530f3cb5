/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes changed while they live, and their names: in one go or not at all, and kept over a restart of the server. */
#include "core_fixture.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/label.h"
#include "core/sandbox/sandbox_modify.h"

#define MIB ((int64_t)1 << 20)
#define HOUR_MS ((int64_t)3600 * 1000)

static int create_named(const char *name, enum sandbox_mode mode, struct sandbox_info *out,
                        struct error *err)
{
    const char *const argv[] = {"/bin/true", NULL};
    const struct execution_request command = {.command = {.argv = argv}};
    const struct sandbox_request request = {
        .name = name,
        .is_name_unique = true,
        .mode = mode,
        .usual.directory = "/workspace",
        .command = mode == SANDBOX_ONE_SHOT ? &command : NULL,
        .labels = (const char *const[]){"team=blue", "tier=web", NULL},
    };
    return sandbox_create(core, &actor, &request, out, NULL, err);
}

static void get(const char *id, struct sandbox_info *out)
{
    struct error err = {0};
    CHECK_OK(sandbox_get(core->sandboxes, &actor, id, false, out, &err), err);
}

static void modify(const char *id, struct sandbox_changes changes)
{
    autoclear(sandbox_info) info = {0};
    struct error err = {0};
    CHECK_OK(sandbox_modify(core->sandboxes, &actor, id, &changes, &info, &err), err);
}

static void check_all(const char *id, int64_t expires_at)
{
    autoclear(sandbox_info) info = {0};

    get(id, &info);
    CHECK_STR(info.name, "second");
    CHECK_STR(info.description, "what it is for");
    CHECK_STR(info.metadata, "{\"a\":1}");
    CHECK_STR(labels_get(info.labels, "team"), "red");
    CHECK(labels_get(info.labels, "tier") == NULL);
    CHECK_STR(info.command.env[0], "COLOUR=green");
    CHECK_INT(info.limits.memory_bytes, 256 * MIB);
    CHECK_INT(info.idle_timeout_ms, 2 * HOUR_MS);
    CHECK_INT(info.command.timeout_ms, 60000);
    CHECK_INT(info.paused_timeout_ms, 3 * HOUR_MS);
    CHECK_INT(info.expires_at, expires_at);
    CHECK_INT(info.on_idle, SANDBOX_IDLE_DROPS_BOX);
}

CORE_TEST(everything_is_changed_in_one_call_and_stays_over_a_restart)
{
    const struct env_change labels[] = {{"team", "red"}, {"tier", NULL}};
    const struct env_change env[] = {{"COLOUR", "green"}, {"NEVER", NULL}};
    int64_t expires_at = (int64_t)clock_wall_ms() + HOUR_MS;
    struct event_filter filter = {.page.limit = 100};
    autoclear(sandbox_info) info = {0}, hurried = {0};
    autoclear(event_infos) events = {0};
    struct error err = {0};

    CHECK_OK(create_named("first", SANDBOX_INTERACTIVE, &info, &err), err);
    CHECK_STR(labels_get(info.labels, "tier"), "web");
    modify(info.id, (struct sandbox_changes){
                        .has_name = true,
                        .name = "second",
                        .has_description = true,
                        .description = "what it is for",
                        .has_metadata = true,
                        .metadata = "{\"a\":1}",
                        .labels = labels,
                        .n_labels = 2,
                        .env = env,
                        .n_env = 2,
                        .limits.memory_bytes = 256 * MIB,
                        .has_idle_timeout = true,
                        .idle_timeout_ms = 2 * HOUR_MS,
                        .has_execution_timeout = true,
                        .execution_timeout_ms = 60000,
                        .has_paused_timeout = true,
                        .paused_timeout_ms = 3 * HOUR_MS,
                        .has_expires_at = true,
                        .expires_at = expires_at,
                        .has_on_idle = true,
                        .on_idle = SANDBOX_IDLE_DROPS_BOX,
                    });
    check_all(info.id, expires_at);
    CHECK_OK(create_named("hurried", SANDBOX_INTERACTIVE, &hurried, &err), err);
    CHECK_INT(hurried.idle_timeout_ms, 0);
    modify(hurried.id, (struct sandbox_changes){.has_idle_timeout = true, .idle_timeout_ms = 1});
    reopen_core();
    check_all(info.id, expires_at);
    await_state(hurried.id, SANDBOX_ENDED);
    filter.sandbox_id = info.id;
    CHECK_OK(event_list(core->sandboxes, &actor, &filter, &events, &err), err);
    CHECK(events.count >= 4);
    CHECK_STR(events.items[events.count - 2].type, EVENT_CHANGE);
    CHECK_STR(events.items[events.count - 2].facts[0],
              "changed=name,description,metadata,idle_timeout,execution_timeout,paused_timeout,"
              "expires_at,on_idle,labels,env");
    CHECK_STR(events.items[events.count - 1].type, EVENT_LIMITS);
}

static int refuse(void *data, const struct sandbox_info *now, struct error *err)
{
    CHECK_STR(now->name, data);
    return error_set(err, ERROR_DIFFERS, "not this one");
}

CORE_TEST(a_change_that_is_refused_changes_nothing)
{
    struct sandbox_changes unwanted = {
        .has_name = true, .name = "other", .check = refuse, .check_data = "mine"};
    const struct env_change bad_env = {"A=B", "x"};
    const struct env_change bad_label = {"a b", "x"};
    struct sandbox_changes all = {.has_description = true,
                                  .description = "new",
                                  .limits.memory_bytes = 256 * MIB,
                                  .has_name = true,
                                  .name = "taken",
                                  .is_name_unique = true};
    struct sandbox_changes past = {.has_expires_at = true, .expires_at = 1};
    struct sandbox_changes env = {.env = &bad_env, .n_env = 1};
    struct sandbox_changes label = {.labels = &bad_label, .n_labels = 1};
    struct sandbox_changes large = {.limits.memory_bytes = INT64_MAX};
    autoclear(sandbox_info) info = {0}, other = {0}, after = {0}, out = {0};
    struct error err = {0};

    CHECK_OK(create_named("mine", SANDBOX_INTERACTIVE, &info, &err), err);
    CHECK_OK(create_named("taken", SANDBOX_INTERACTIVE, &other, &err), err);
    CHECK(sandbox_modify(core->sandboxes, &actor, info.id, &all, &out, &err) < 0);
    CHECK_INT(err.reason, ERROR_EXISTS);
    CHECK_STR(err.noun, "name");
    all.name = "no name";
    CHECK(sandbox_modify(core->sandboxes, &actor, info.id, &all, &out, &err) < 0);
    CHECK_INT(err.reason, ERROR_INVALID);
    CHECK(sandbox_modify(core->sandboxes, &actor, info.id, &past, &out, &err) < 0);
    CHECK_STR(err.text, "expiresAt: must be to come");
    CHECK(sandbox_modify(core->sandboxes, &actor, info.id, &env, &out, &err) < 0);
    CHECK(sandbox_modify(core->sandboxes, &actor, info.id, &label, &out, &err) < 0);
    CHECK_STR(err.noun, "labels");
    CHECK(sandbox_modify(core->sandboxes, &actor, info.id, &large, &out, &err) < 0);
    CHECK(sandbox_modify(core->sandboxes, &actor, info.id, &unwanted, &out, &err) < 0);
    CHECK_INT(err.reason, ERROR_DIFFERS);
    get(info.id, &after);
    CHECK_STR(after.name, "mine");
    CHECK(after.description == NULL);
    CHECK_INT(after.limits.memory_bytes, info.limits.memory_bytes);
    CHECK_INT(after.updated_at, info.updated_at);
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, other.id, &err), err);
    CHECK(sandbox_modify(core->sandboxes, &actor, other.id, &past, &out, &err) < 0);
    CHECK(error_is(&err, ERROR_NOT_FOUND));
}
