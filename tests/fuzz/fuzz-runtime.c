/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what runtimes are read from. The first byte chooses: a definition in YAML; a manifest; a name; apt's lists of sources, in
 * either style.
 */
#include "place.h"

#include "base/mem.h"
#include "runtime/catalog.h"
#include "runtime/manifest.h"
#include "runtime/sources.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

/* Read or left out with a sentence. */
static void read_definition(const uint8_t *data, size_t size)
{
    autofree char *etc = xasprintf("%s/etc", place);
    autoptr(catalog) catalog = NULL;
    struct error err = {0};
    const struct runtime_definition *one;
    bool is_there = false;

    place_put("etc/fuzz.yaml", data, size);
    check(catalog_load(place, etc, &catalog, &err) == 0);
    for (size_t i = 0; (one = catalog_at(catalog, i)); i++) {
        struct runtime_reference reference;
        check(*one->name && one->tags[0] && *one->tags[0]);
        autofree char *name = xasprintf("%s:%s", one->name, one->tags[0]);
        check(runtime_reference_parse(name, &reference, &err) == 0);
        for (const char **entry = one->env; entry && *entry; entry++)
            check(strchr(*entry, '=') > *entry);
        is_there |= strncmp(one->file, place, strlen(place)) == 0;
    }
    check(is_there != (catalog_fault_at(catalog, 0) != NULL));
}

/* What was read is written, and read again the same. */
static void read_manifest(const char *text)
{
    autoptr(manifest) first = NULL;
    autoptr(manifest) second = NULL;
    autobuffer once = {.maximum = 1 << 20};
    autobuffer twice = {.maximum = 1 << 20};
    struct error err = {0};

    if (manifest_parse(xstrdup(text), &first, &err) < 0) {
        check(err.text[0]);
        return;
    }
    check(manifest_format(first, &once, &err) == 0 && buffer_add(&once, "", 1, &err) == 0);
    check(manifest_parse(xstrdup(once.data), &second, &err) == 0);
    check(manifest_format(second, &twice, &err) == 0);
    check(strcmp(once.data, twice.data) == 0);
}

static void read_name(const char *text)
{
    struct runtime_reference reference, again;
    struct error err = {0};

    if (runtime_reference_parse(text, &reference, &err) < 0) {
        check(err.text[0]);
        return;
    }
    autofree char *full = runtime_full_name(text);
    check(runtime_reference_parse(full, &again, &err) == 0);
    check(strcmp(again.name, reference.name) == 0 && strcmp(again.tag, reference.tag) == 0);
}

/* Lines that are told are whole: no entry of the machine's smuggles in another. */
static void read_sources(const char *name, const uint8_t *data, size_t size)
{
    static const char *const components[] = {"main", NULL};
    autofree char *apt = xasprintf("%s/apt", place);
    const struct sources_place where = {.apt_dir = apt, .lists_dir = apt};
    autobuffer out = {.maximum = 1 << 20};
    struct error err = {0};

    place_put(name, data, size);
    if (sources_of_machine(&where, "bookworm", components, &out, &err) < 0)
        check(err.text[0]);
    else
        check(out.length && strncmp(out.data, "deb ", 4) == 0 && out.data[out.length - 1] == '\n');
    (void)unlinkat(place_fd, name, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (place_fd < 0) {
        (void)place_open();
        check(mkdirat(place_fd, "etc", 0700) == 0 && mkdirat(place_fd, "apt", 0700) == 0);
        check(mkdirat(place_fd, "apt/sources.list.d", 0700) == 0);
    }
    autofree char *text = xstrndup((const char *)data + 1, size - 1);
    switch (data[0]) {
    case 'd':
        read_definition(data + 1, size - 1);
        break;
    case 'm':
        read_manifest(text);
        break;
    case 'n':
        read_name(text);
        break;
    case 'l':
        read_sources("apt/sources.list", data + 1, size - 1);
        break;
    default:
        read_sources("apt/sources.list.d/fuzz.sources", data + 1, size - 1);
    }
    return 0;
}
