/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/runtime.c. */
#include "core/runtime/runtime.h"

#include "base/fd.h"
#include "base/mem.h"
#include "../core_rig.h"
#include "install/install_names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

static int check(struct runtimes *runtimes, const char *name, struct error *err)
{
    struct runtime_wish wish = {.name = name};
    return runtime_check(runtimes, &wish, NULL, err);
}

TEST(a_runtime_that_is_not_in_the_catalog_is_refused_with_the_way_out)
{
    struct core *core = rig_core();
    static const struct {
        const char *name;
        enum error_reason kind;
        const char *text; // or NULL
    } rows[] = {
        {"base", ERROR_NONE, NULL},
        {"base:latest", ERROR_NONE, NULL},
        {"base:bookworm", ERROR_NONE, NULL},
        {"host:latest", ERROR_NONE, NULL},
        {"node:lts", ERROR_NONE, NULL},
        {"nodejs:lts", ERROR_NONE, NULL},
        {"python", ERROR_NOT_FOUND, "unknown runtime 'python:latest'; did you mean 'python:3.13'?"},
        {"cobol:85", ERROR_NOT_FOUND, "unknown runtime 'cobol:85'; known: "},
        {"base:9", ERROR_NOT_FOUND, "unknown runtime 'base:9'; did you mean 'base:latest'?"},
        {"npm-tool", ERROR_NOT_FOUND,
         "runtime 'npm-tool:latest' is only there to make others with"},
        {"mine:latest", ERROR_NONE, NULL},
        {"mine", ERROR_NONE, NULL},
        {"mine:old", ERROR_NOT_FOUND, "unknown runtime 'mine:old'; did you mean 'mine:latest'?"},
        {"../../etc", ERROR_INVALID, NULL},
        {"", ERROR_INVALID, NULL},
    };
    static const char mine[] = "name: mine\ntags: [latest]\nbuild:\n  kind: host\n";
    char catalog[200];
    struct error err = {0};

    (void)snprintf(catalog, sizeof catalog, "%s/catalog", core->settings.data_dir);
    CHECK_OK(fd_make_dirs(catalog, 0755, &err), err);
    autofd dir_fd = open(catalog, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(fd_replace_file(dir_fd, "mine.yaml", mine, strlen(mine), 0644, &err), err);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        err = (struct error){0};
        CHECK_INT(check(core->runtimes, rows[i].name, &err), rows[i].kind == ERROR_NONE ? 0 : -1);
        CHECK_INT(error_kind(&err), rows[i].kind);
        if (rows[i].kind != ERROR_NONE)
            CHECK_STR(err.noun, "runtime");
        if (rows[i].text)
            CHECK(strncmp(err.text, rows[i].text, strlen(rows[i].text)) == 0);
    }
}

TEST(the_servers_own_choice_is_always_offered)
{
    const char *data_dir = rig_core()->settings.data_dir;
    autoptr(runtimes) tagged = NULL;
    autoptr(runtimes) latest = NULL;
    struct error err = {0};

    CHECK_OK(runtimes_open(data_dir, "own:lts", &tagged, &err), err);
    CHECK_OK(check(tagged, NULL, &err), err);
    CHECK_OK(check(tagged, "own:lts", &err), err);
    CHECK(check(tagged, "own:latest", &err) < 0);
    CHECK_OK(runtimes_open(data_dir, "own:latest", &latest, &err), err);
    CHECK_OK(check(latest, "own", &err), err);
    CHECK_OK(check(latest, "own:latest", &err), err);
}

TEST(an_alias_is_recorded_as_what_it_stands_for_and_needs_are_held_against_what_is_asked)
{
    struct core *core = rig_core();
    struct runtime_wish enough = {.name = "nodejs", .limits.memory_bytes = 1 << 30};
    struct runtime_wish little = {
        .name = "claude-code", .has_network = true, .limits.memory_bytes = 16 << 20};
    struct runtime_wish nothing = {.name = "claude-code", .has_network = true};
    struct runtime_wish apart = {.name = "claude-code"};
    char name[RUNTIME_REFERENCE_TEXT];
    struct error err = {0};

    CHECK_OK(runtime_check(core->runtimes, &enough, name, &err), err);
    CHECK_STR(name, "node:latest");
    CHECK_OK(runtime_check(core->runtimes, &nothing, name, &err), err);
    CHECK_INT(nothing.limits.memory_bytes, 1 << 30);
    CHECK(runtime_check(core->runtimes, &little, name, &err) < 0);
    CHECK_STR(err.noun, "memory");
    CHECK(runtime_check(core->runtimes, &apart, name, &err) < 0);
    CHECK_STR(err.noun, "network");
    CHECK(runtime_check(core->runtimes, &little, name, &err) < 0);
    CHECK_STR(err.text, "memory: the runtime 'claude-code:latest' needs at least 1Gi; ask for "
                        "more, or for nothing");
}

TEST(an_id_is_made_from_the_name_alone)
{
    char one[24], other[24], host[24];

    runtime_id("base", one);
    runtime_id("base:latest", other);
    runtime_id("host:latest", host);
    CHECK_STR(one, other);
    CHECK_STR(one, "rzpz7y4r4y6p4bfq7ehw");
    CHECK(strcmp(one, host) != 0);
}

TEST(runtimes_are_listed_sorted_and_by_page)
{
    struct core *core = rig_core();
    struct page all = {50, 0}, second = {1, 1}, none = {0, 0};
    autoruntimes list = {0}, back = {0}, page = {0}, count = {0};
    struct error err = {0};

    CHECK_OK(runtime_list(core->runtimes, RUNTIME_BY_NAME, false, &all, &list, &err), err);
    CHECK(list.count >= 12);
    CHECK_INT(list.total, list.count);
    CHECK_STR(list.entries[0].name, "amp:latest");
    CHECK_STR(list.entries[1].name, "base:latest");
    CHECK(strstr(list.entries[1].description, "Debian 12"));
    CHECK(!list.entries[1].is_built);
    CHECK_INT(list.entries[1].created_at, 0);
    CHECK_OK(runtime_list(core->runtimes, RUNTIME_BY_NAME, true, &all, &back, &err), err);
    CHECK_STR(back.entries[back.count - 1].name, "amp:latest");
    CHECK_OK(runtime_list(core->runtimes, RUNTIME_BY_CREATED, false, &second, &page, &err), err);
    CHECK_INT(page.count, 1);
    CHECK_INT(page.total, list.total);
    CHECK_STR(page.entries[0].name, "base:latest");
    CHECK_OK(runtime_list(core->runtimes, RUNTIME_BY_CREATED, false, &none, &count, &err), err);
    CHECK_INT(count.count, 0);
    CHECK_INT(count.total, list.total);
    for (size_t i = 0; i < list.count; i++)
        CHECK(strcmp(list.entries[i].name, "npm-tool:latest") != 0);
}

TEST(a_runtime_is_found_by_its_id)
{
    struct core *core = rig_core();
    char id[24], name[RUNTIME_REFERENCE_TEXT];
    struct error err = {0};

    runtime_id("host", id);
    CHECK_OK(runtime_resolve(core->runtimes, id, name, &err), err);
    CHECK_STR(name, "host:latest");
    CHECK(runtime_resolve(core->runtimes, "nothing", name, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_STR(err.noun, "runtime");
}

static void put_list(const char *dir, const char *name, time_t age_s)
{
    const struct timespec times[2] = {{.tv_sec = time(NULL) - age_s},
                                      {.tv_sec = time(NULL) - age_s}};
    autofree char *path = xasprintf("%s/%s", dir, name);
    autofd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_INT(futimens(fd, times), 0);
}

static bool has_list(const char *dir, const char *name)
{
    autofree char *path = xasprintf("%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

TEST(lists_of_names_that_are_too_old_are_swept_and_nothing_else)
{
    struct core *core = rig_core();
    autofree char *dir = xasprintf("%s/runtimes/.names", core->settings.data_dir);
    struct error err = {0};

    install_names_sweep(core->settings.data_dir); // there is none
    CHECK_OK(fd_make_dirs(dir, 0700, &err), err);
    put_list(dir, "0123456789abcdef", 7 * 3600);
    put_list(dir, "fedcba9876543210", 60);
    put_list(dir, ".lock", 7 * 3600);
    install_names_sweep(core->settings.data_dir);
    CHECK(!has_list(dir, "0123456789abcdef"));
    CHECK(has_list(dir, "fedcba9876543210"));
    CHECK(has_list(dir, ".lock"));
}
