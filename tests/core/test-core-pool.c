/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes that a real core makes ahead: of what was asked for lately, within a memory, and of nothing that is gone. Needs root. */
#include "base/clock.h"
#include "core/runtime/runtime.h"
#include "core/runtime/runtimes.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/runtime_users.h"
#include "core/sandbox/sandbox_object.h"
#include "runtime/build.h"
#include "state_fixture.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 60000
#define USUAL 3 // of the fixture: two for one run, one that is kept

/* A runtime of this machine's files: made in a moment, and another than the default. */
static void add_runtime(const char *name)
{
    char text[200];
    struct error err = {0};

    (void)snprintf(text, sizeof text,
                   "name: %s\ntags: [\"1\"]\ndescription: a test's\nbuild:\n  kind: host\n", name);
    char reference[80];
    (void)snprintf(reference, sizeof reference, "%s:1", name);
    CHECK_OK(runtime_put(core->runtimes, &actor, reference, text, NULL, &err), err);
}

static void rebuild(const char *name)
{
    struct runtime_build_options options = {
        .data_dir = core_data_dir, .is_forced = true, .cancel_fd = -1};
    const struct runtime_definition *definition;
    struct runtime_reference reference;
    autoptr(catalog) catalog = NULL;
    struct error err = {0};

    CHECK_OK(runtime_reference_parse(name, &reference, &err), err);
    CHECK_OK(catalog_load(core_data_dir, NULL, &catalog, &err), err);
    CHECK_OK(catalog_find(catalog, &reference, &definition, &err), err);
    CHECK_OK(runtime_build(definition, &options, NULL, &err), err);
}

static void make_of(const char *runtime, const char *home, const char *user, char id[ID_TEXT])
{
    struct sandbox_request request = {
        .mode = SANDBOX_INTERACTIVE,
        .runtime = runtime,
        .home = home,
        .usual = {.directory = home, .user = user, .timeout_ms = SANDBOX_DEFAULT},
        .max_executions = 1,
        .idle_timeout_ms = SANDBOX_DEFAULT,
        .paused_timeout_ms = SANDBOX_DEFAULT,
    };
    autoclear(sandbox_info) made = {0};
    struct error err = {0};

    CHECK_OK(sandbox_create(core, &actor, &request, &made, NULL, &err), err);
    (void)snprintf(id, ID_TEXT, "%s", made.id);
}

static void rest(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void await_waiting(unsigned count)
{
    uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS;

    while (pool_waiting(core->sandboxes->pool) != count && clock_monotonic_ms() < until_ms)
        rest();
    CHECK_INT(pool_waiting(core->sandboxes->pool), count);
}

static unsigned slot_of(const char *id)
{
    struct sandbox *sandbox = registry_find(core->sandboxes->registry, id);
    autosandbox record = {0};

    CHECK(sandbox);
    sandbox_copy(sandbox, &record);
    sandbox_free(sandbox);
    return record.box_slot;
}

struct boxes {
    unsigned *slots;
    size_t count;
};

static struct boxes boxes_of_now(void)
{
    struct boxes boxes = {0};
    struct error err = {0};

    CHECK_OK(engine_list_staying(core->engine, &boxes.slots, &boxes.count, &err), err);
    return boxes;
}

static bool has_slot(const struct boxes *boxes, unsigned slot)
{
    for (size_t i = 0; i < boxes->count; i++)
        if (boxes->slots[i] == slot)
            return true;
    return false;
}

/* Whether its box was there before it was asked for. */
static bool make_and_look(const char *runtime, const char *home, const char *user, char id[ID_TEXT])
{
    struct boxes before = boxes_of_now();

    make_of(runtime, home, user, id);
    bool was_there = has_slot(&before, slot_of(id));
    free(before.slots);
    return was_there;
}

CORE_TEST(the_second_sandbox_of_another_runtime_has_a_box_that_waited)
{
    char first[ID_TEXT], second[ID_TEXT];

    add_runtime("other");
    await_waiting(USUAL);
    CHECK(!make_and_look("other:1", "/home/me", NULL, first));
    await_waiting(USUAL + 1);
    CHECK(make_and_look("other:1", "/home/me", NULL, second));
    CHECK_STR(shell_in(second, "pwd"), "/home/me\n");
    await_waiting(USUAL + 1);
}

CORE_TEST(a_directory_of_a_user_waits_as_its_own)
{
    char first[ID_TEXT], second[ID_TEXT], other[ID_TEXT];

    add_runtime("other");
    await_waiting(USUAL);
    make_of("other:1", "/home/user", "1000:1000", first);
    await_waiting(USUAL + 1);
    CHECK(make_and_look("other:1", "/home/user", "1000:1000", second));
    CHECK_STR(shell_in(second, "touch here && stat -c '%u %g' . here"), "1000 1000\n1000 1000\n");
    await_waiting(USUAL + 1);
    CHECK(!make_and_look("other:1", "/home/me", NULL, other));
    CHECK_STR(shell_in(other, "ls -d /home/user 2>&1 | cut -d: -f1"),
              "ls\n"); // it says that there is none
}

CORE_TEST(a_shape_that_nobody_asks_for_waits_no_longer_and_the_default_does)
{
    char id[ID_TEXT];

    add_runtime("other");
    core->settings.spare_keep_ms = 2000;
    await_waiting(USUAL);
    make_of("other:1", "/home/me", NULL, id);
    await_waiting(USUAL + 1);
    await_waiting(USUAL);
    uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS; // it is ended behind that
    while (count_stray_scratches() > 0 && clock_monotonic_ms() < until_ms)
        rest();
    CHECK_INT(count_stray_scratches(), 0);
}

CORE_TEST(what_waits_holds_no_more_memory_than_it_may)
{
    struct pool *pool = core->sandboxes->pool;
    char id[ID_TEXT];

    add_runtime("other");
    await_waiting(USUAL);
    int64_t most = (int64_t)pool_bytes(pool) + (1 << 19); // less than any box takes
    core->settings.spare_memory_bytes = most;
    make_of("other:1", "/home/me", NULL, id);
    uint64_t until_ms = clock_monotonic_ms() + 1500;
    while (clock_monotonic_ms() < until_ms) {
        CHECK(pool_bytes(pool) <= (uint64_t)most);
        CHECK(pool_waiting(pool) <= USUAL);
        rest();
    }
    CHECK_INT(pool_waiting(pool), USUAL); // the default makes no room for others
    CHECK(!make_and_look("other:1", "/home/me", NULL, id));
    core->settings.spare_memory_bytes = (int64_t)1 << 30;
    make_of("other:1", "/home/me", NULL, id);
    await_waiting(USUAL + 1);
}

struct names {
    char name[32][80];
    unsigned count;
};

static bool add_name(const char *name, void *data)
{
    struct names *names = data;

    if (strncmp(name, POOL_SCRATCH "-", strlen(POOL_SCRATCH "-")) == 0 && names->count < 32)
        (void)snprintf(names->name[names->count++], 80, "%s", name);
    return true;
}

/* Of the scratches of boxes that are kept, or are to be. */
static struct names names_of_now(void)
{
    struct names names = {0};
    struct error err = {0};

    CHECK_OK(volume_sweep(engine_volume(core->engine), add_name, &names, &err), err);
    return names;
}

static bool has_name(const struct names *names, const char *name)
{
    for (unsigned i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0)
            return true;
    return false;
}

static void scratch_of(const char *id, char out[80])
{
    struct sandbox *sandbox = registry_find(core->sandboxes->registry, id);
    autosandbox record = {0};

    CHECK(sandbox);
    sandbox_copy(sandbox, &record);
    (void)snprintf(out, 80, "%s", record.scratch);
    sandbox_free(sandbox);
}

CORE_TEST(what_was_asked_for_longest_ago_makes_room_in_memory)
{
    struct pool *pool = core->sandboxes->pool;
    char id[ID_TEXT], own[80], spare[80] = "";

    add_runtime("one");
    add_runtime("two");
    await_waiting(USUAL);
    const struct names before = names_of_now();
    make_of("one:1", "/home/me", NULL, id);
    scratch_of(id, own);
    await_waiting(USUAL + 1);
    const struct names after = names_of_now();
    for (unsigned i = 0; i < after.count; i++)
        if (!has_name(&before, after.name[i]) && strcmp(after.name[i], own) != 0)
            (void)snprintf(spare, sizeof spare, "%s", after.name[i]);
    CHECK(spare[0]);
    core->settings.spare_memory_bytes = (int64_t)pool_bytes(pool); // it is full now
    make_of("two:1", "/home/me", NULL, id);
    uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS;
    struct names now = names_of_now();
    while (has_name(&now, spare) && clock_monotonic_ms() < until_ms) {
        rest();
        now = names_of_now();
    }
    CHECK(!has_name(&now, spare));
    CHECK(pool_waiting(pool) >= USUAL); // the default made no room
}

static bool is_there(const char *name)
{
    char path[300];

    (void)snprintf(path, sizeof path, "%s/runtimes/%s/1", core_data_dir, name);
    return access(path, F_OK) == 0;
}

CORE_TEST(a_runtime_is_removed_with_what_waits_of_it)
{
    char id[ID_TEXT];
    struct error err = {0};

    add_runtime("other");
    await_waiting(USUAL);
    make_of("other:1", "/home/me", NULL, id);
    await_waiting(USUAL + 1);
    CHECK(runtime_delete_unused(core->sandboxes, &actor, "other:1", &err) < 0);
    CHECK(error_is(&err, ERROR_BUSY));
    CHECK(strstr(err.text, id));
    err = (struct error){0};
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, id, &err), err);
    uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS; // its box ends behind that
    while (runtime_delete_unused(core->sandboxes, &actor, "other:1", &err) < 0 &&
           error_is(&err, ERROR_BUSY) && clock_monotonic_ms() < until_ms)
        rest();
    CHECK(!is_there("other"));
    await_waiting(USUAL);
}

static void read_build(const char *name, char out[200])
{
    char path[300];

    (void)snprintf(path, sizeof path, "%s/runtimes/%s/1", core_data_dir, name);
    ssize_t length = readlink(path, out, 199);
    CHECK(length > 0);
    out[length] = '\0';
}

CORE_TEST(nothing_waits_of_a_build_that_was_replaced)
{
    char id[ID_TEXT], before[200], after[200], path[600];
    struct error err = {0};

    add_runtime("other");
    await_waiting(USUAL);
    make_of("other:1", "/home/me", NULL, id);
    await_waiting(USUAL + 1);
    read_build("other", before);
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, id, &err), err);
    rebuild("other:1");
    read_build("other", after);
    CHECK(strcmp(before, after) != 0);
    CHECK(!make_and_look("other:1", "/home/me", NULL, id)); // none of the old build
    // The old one is let go of: the next build removes it.
    (void)snprintf(path, sizeof path, "%s/runtimes/other/%s", core_data_dir, before);
    uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS;
    while (access(path, F_OK) == 0 && clock_monotonic_ms() < until_ms) {
        struct runtime_unused unused;
        CHECK_OK(runtime_sweep(core_data_dir, false, &unused, &err), err);
        rest();
    }
    CHECK(access(path, F_OK) < 0);
}

/* Without a directory of its own, so that no more than the usual ones wait. */
CORE_TEST(the_default_runtime_waits_as_it_is_now)
{
    struct pool *pool = core->sandboxes->pool;
    char id[ID_TEXT];

    await_waiting(USUAL);
    pool_hold(pool, "none"); // what waits is of the old build
    rebuild("host:latest");
    CHECK(!make_and_look(NULL, NULL, NULL, id));
    pool_resume(pool);
    uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS;
    bool was_there = false;
    while (!was_there && clock_monotonic_ms() < until_ms) {
        await_waiting(USUAL);
        was_there = make_and_look(NULL, NULL, NULL, id);
        rest();
    }
    CHECK(was_there);
}
