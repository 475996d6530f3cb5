/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/runtime/catalog.c: references, shipped and added definitions, and the sentences for
 * mistakes. */
#include "runtime/catalog.h"

#include "base/fd.h"
#include "base/mem.h"
#include "test.h"

#include <fcntl.h>

static void refuse(const char *text)
{
    struct runtime_reference reference;
    struct error err = {0};

    CHECK(runtime_reference_parse(text, &reference, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(strstr(err.text, "does not name a runtime"));
}

TEST(a_reference_is_a_name_and_perhaps_a_tag)
{
    struct runtime_reference reference;
    struct error err = {0};

    CHECK_OK(runtime_reference_parse("base", &reference, &err), err);
    CHECK_STR(reference.name, "base");
    CHECK_STR(reference.tag, "latest");
    CHECK_OK(runtime_reference_parse("py_3.11-x:3.11-RC1", &reference, &err), err);
    CHECK_STR(reference.name, "py_3.11-x");
    CHECK_STR(reference.tag, "3.11-RC1");
}

TEST(references_that_could_leave_their_directory_are_refused)
{
    refuse("");
    refuse(":latest");
    refuse("base:");
    refuse("..");
    refuse("../etc");
    refuse("base:..");
    refuse("base:.x");
    refuse("base:a/b");
    refuse("Base");
    refuse("base:latest:x");
    refuse("base latest");
    refuse("a23456789012345678901234567890123456789012345678901234567890123456789");
}

// A data directory with files in its catalog, removed with the object.
struct place {
    char dir[64];
};

// Of the test at hand: a failing one does not come to its cleanup, so the next one or the end does
// it.
static struct place current;

__attribute__((destructor)) static void clear_current(void)
{
    struct error err;
    if (*current.dir)
        (void)fd_remove_tree(AT_FDCWD, current.dir, &err);
}

static void place_clear(struct place *place)
{
    struct error err;
    (void)fd_remove_tree(AT_FDCWD, place->dir, &err);
}
#define autoplace __attribute__((cleanup(place_clear))) struct place

static struct place make_place(void)
{
    struct place place = {"/tmp/burrow-catalog-XXXXXX"};
    struct error err = {0};

    clear_current();
    CHECK(mkdtemp(place.dir));
    current = place;
    autofree char *dir = xasprintf("%s/catalog", place.dir);
    CHECK_OK(fd_make_dirs(dir, 0755, &err), err);
    return place;
}

static void put(const struct place *place, const char *name, const char *text)
{
    autofree char *path = xasprintf("%s/catalog/%s", place->dir, name);
    autofd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK(fd_write_all(fd, text, strlen(text)) == 0);
}

static struct catalog *load(const struct place *place)
{
    struct catalog *catalog = NULL;
    struct error err = {0};

    CHECK_OK(catalog_load(place->dir, "/nonexistent", &catalog, &err), err);
    return catalog;
}

static const struct runtime_definition *find(const struct catalog *catalog, const char *text)
{
    const struct runtime_definition *definition = NULL;
    struct runtime_reference reference;
    struct error err = {0};

    CHECK_OK(runtime_reference_parse(text, &reference, &err), err);
    CHECK_OK(catalog_find(catalog, &reference, &definition, &err), err);
    return definition;
}

TEST(the_shipped_definitions_are_there)
{
    autoplace place = make_place();
    autoptr(catalog) catalog = load(&place);
    const struct runtime_definition *base = find(catalog, "base"), *host = find(catalog, "host");

    CHECK_INT(base->kind, RUNTIME_DEBIAN);
    CHECK_STR(base->suite, "bookworm");
    CHECK_STR(base->components[0], "main");
    CHECK(base->mirror == NULL);
    CHECK(base->packages[0]);
    CHECK(strncmp(base->env[0], "PATH=/", 6) == 0);
    CHECK(find(catalog, "base:bookworm") == base);
    CHECK_INT(host->kind, RUNTIME_HOST);
    CHECK(catalog_fault_at(catalog, 0) == NULL);
}

TEST(adding_a_runtime_is_adding_a_file)
{
    autoplace place = make_place();
    put(&place, "node.yaml",
        "name: node\ntags: ['20']\nbuild: {kind: debian, suite: trixie, packages: nodejs}\n");
    put(&place, "ignored.txt", "not: [yaml");
    autoptr(catalog) catalog = load(&place);
    const struct runtime_definition *node = find(catalog, "node:20");

    CHECK_STR(node->packages[0], "nodejs");
    CHECK_STR(node->env[0] ? node->env[0] : "none", "none");
    CHECK(strstr(node->file, "/catalog/node.yaml"));
    CHECK(find(catalog, "node:20") == node);
    put(&place, "more.yaml",
        "name: more\nbuild: {kind: layer, from: 'node:20', npm: ['@a/b@1', 'c-{arch}']}\n");
    put(&place, "loop.yaml", "name: loop\nbuild: {kind: layer, from: 'loop:latest'}\n");
    put(&place, "lost.yaml", "name: lost\nbuild: {kind: layer, from: 'nothing:1'}\n");
    autoptr(catalog) again = load(&place);
    const struct runtime_definition *more = find(again, "more");
    CHECK(more->from == find(again, "node:20"));
    CHECK_STR(more->npm[0], "@a/b@1");
    CHECK(strstr(catalog_fault_at(again, 0), "it stands on 'nothing:1', which is not there"));
    CHECK(strstr(catalog_fault_at(again, 1), "it stands on itself"));
    uint64_t before = more->hash;
    put(&place, "node.yaml",
        "name: node\ntags: ['20']\nbuild: {kind: debian, suite: trixie, packages: [nodejs, x]}\n");
    autoptr(catalog) changed = load(&place);
    CHECK(find(changed, "more")->hash != before);
}

TEST(a_file_says_how_a_runtime_looks_and_what_it_needs)
{
    autoplace place = make_place();
    put(&place, "full.yaml",
        "name: full\naliases: [whole, 'all:1']\nicon: i\ncolor: '#00ff00'\nurl: u\n"
        "categories: [agent]\nkeys: [A_KEY]\nreadme: |\n  text\ncommand: [sh, -c, 'true']\n"
        "requirements: {memory: 1Gi, cpu: 500m, disk: 2Gi, network: true}\nbuild: {kind: host}\n");
    autoptr(catalog) catalog = load(&place);
    const struct runtime_definition *full = find(catalog, "full");

    CHECK(find(catalog, "whole") == full);
    CHECK(find(catalog, "all:1") == full);
    CHECK_STR(full->color, "#00ff00");
    CHECK_STR(full->keys[0], "A_KEY");
    CHECK_STR(full->categories[0], "agent");
    CHECK_STR(full->command[2], "true");
    CHECK_INT(full->requirements.memory_bytes, 1 << 30);
    CHECK_INT(full->requirements.cpu_millicores, 500);
    CHECK(full->requirements.needs_network);
}

TEST(an_own_file_replaces_a_shipped_one)
{
    autoplace place = make_place();
    put(&place, "my-base.yaml", "name: base\nbuild: {kind: debian, suite: trixie}\n");
    autoptr(catalog) catalog = load(&place);

    CHECK_STR(find(catalog, "base")->suite, "trixie");
    size_t count = 0;
    for (size_t i = 0; catalog_at(catalog, i); i++)
        count += strcmp(catalog_at(catalog, i)->name, "base") == 0;
    CHECK_INT(count, 1);
}

TEST(only_what_decides_the_result_changes_the_hash)
{
    autoplace place = make_place();
    put(&place, "a.yaml", "name: a\nbuild: {kind: debian, suite: trixie, packages: [x, y]}\n");
    put(&place, "b.yaml",
        "# why\nname: b\ndescription: d\nbuild:\n  kind: debian\n  suite: trixie\n  packages: [x, "
        "y]\n");
    put(&place, "c.yaml", "name: c\nbuild: {kind: debian, suite: trixie, packages: [x, z]}\n");
    autoptr(catalog) catalog = load(&place);

    CHECK(find(catalog, "a")->hash == find(catalog, "b")->hash);
    CHECK(find(catalog, "a")->hash != find(catalog, "c")->hash);
}

TEST(a_broken_file_is_told_and_the_others_still_count)
{
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"name: x\nbuild: {kind: debian}\n", "build: 'suite' is missing"},
        {"name: x\nbuild: {kind: magic}\n",
         "build.kind: must be debian, host, layer or oci, not 'magic'"},
        {"name: x\ncolor: red\nbuild: {kind: host}\n", "color: must be a colour"},
        {"name: x\nrequirements: {memory: much}\nbuild: {kind: host}\n",
         "requirements.memory: must be a size"},
        {"name: x\nbuild: {kind: layer, from: base, npm: ['x;y']}\n",
         "build.npm: 'x;y' is not a package of npm"},
        {"name: x\naliases: ['../y']\nbuild: {kind: host}\n",
         "aliases: '../y' does not name a runtime"},
        {"name: x\nbuld: {kind: host}\n", "buld: unknown field; did you mean 'build'?"},
        {"name: ../x\nbuild: {kind: host}\n", "name: must be made of lower-case letters"},
        {"name: x\ntags: [a, b/c]\nbuild: {kind: host}\n", "tags: 'b/c' is not a name"},
        {"name: x\nbuild: {kind: debian, suite: s, packages: ['--purge']}\n",
         "build.packages: '--purge' is not a name"},
        {"name: x\nbuild: {kind: host}\nenv: {A: [1]}\n", "env.A: must be a string, not a list"},
        {"- x\n", "must be a map, not a list"},
        {"a: [", "line 1, column 4: this '[' is never closed"},
        {"", "must be a map, not empty"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        autoplace place = make_place();
        put(&place, "x.yaml", cases[i].text);
        autoptr(catalog) catalog = load(&place);
        const char *fault = catalog_fault_at(catalog, 0);

        if (!fault || !strstr(fault, cases[i].fault) || !strstr(fault, "/catalog/x.yaml: "))
            test_fail(__FILE__, __LINE__, "case %zu: %s", i, fault ? fault : "no fault");
        CHECK(find(catalog, "base"));
    }
}

TEST(an_unknown_runtime_gets_the_nearest_and_the_known_ones)
{
    autoplace place = make_place();
    put(&place, "python.yaml",
        "name: python\ntags: ['3']\nbuild: {kind: debian, suite: bookworm}\n");
    autoptr(catalog) catalog = load(&place);
    const struct runtime_definition *definition = NULL;
    struct runtime_reference reference;
    struct error err = {0};

    CHECK_OK(runtime_reference_parse("pyton:3", &reference, &err), err);
    CHECK(catalog_find(catalog, &reference, &definition, &err) < 0);
    CHECK(strstr(err.text, "unknown runtime 'pyton:3'; did you mean 'python:3'? known: "));
    CHECK(strstr(err.text, "base:latest, base:bookworm"));
    CHECK(!strstr(err.text, "npm-tool"));
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_STR(err.noun, "runtime");
    CHECK_OK(runtime_reference_parse("zzz", &reference, &err), err);
    CHECK(catalog_find(catalog, &reference, &definition, &err) < 0);
    CHECK(strstr(err.text, "unknown runtime 'zzz:latest'; known: "));
}
