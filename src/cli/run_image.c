/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of `burrow run`; see run_image.h. */
#include "cli/run_image.h"

#include "base/mem.h"
#include "cli/build_view.h"
#include "install/install.h"
#include "runtime/catalog.h"
#include "runtime/requirements.h"

#include <stdio.h>
#include <stdlib.h>

static int build(const struct run_options *options, int *signal, struct error *err)
{
    const struct build_view view = {.data_dir = options->data_dir,
                                    .mirror = getenv("BURROW_DEBIAN_MIRROR"),
                                    .registry = getenv("BURROW_NPM_REGISTRY"),
                                    .is_result_hidden = true};
    const struct runtime_definition *definition;
    struct runtime_reference reference;
    autoptr(catalog) catalog = NULL;

    if (runtime_reference_parse(options->runtime, &reference, err) < 0 ||
        catalog_load(options->data_dir, NULL, &catalog, err) < 0 ||
        catalog_find(catalog, &reference, &definition, err) < 0)
        return -1;
    return build_view_run(&view, definition, signal, err);
}

int run_image_check(struct run_options *options, struct error *err)
{
    const struct runtime_definition *definition;
    struct runtime_reference reference;
    autoptr(catalog) catalog = NULL;
    struct error ignored;
    struct limits needed;

    if (runtime_is_plain(options->runtime))
        return 0;
    if (runtime_reference_parse(options->runtime, &reference, err) < 0 ||
        catalog_load_named(options->data_dir, reference.name, &catalog, err) < 0)
        return -1;
    if (catalog_find(catalog, &reference, &definition, &ignored) < 0)
        return 0; // one that is built may be older than the catalog; else opening it says so
    if (requirements_check(definition, &options->asked, options->has_network, &needed, err) < 0)
        return -1;
    options->limits = requirements_raise(&options->limits, &needed);
    return 0;
}

int run_image_open(const struct run_options *options, struct runtime_image **out, int *signal,
                   struct error *err)
{
    *signal = 0;
    if (runtime_image_open(options->data_dir, options->runtime, out, err) == 0)
        return 0;
    if (!error_is(err, ERROR_NOT_BUILT))
        return -1;
    *err = (struct error){0};
    if (build(options, signal, err) < 0)
        return -1;
    return runtime_image_open(options->data_dir, options->runtime, out, err);
}

static int on_progress(void *data, const char *phase, unsigned percent)
{
    const struct run_options *options = data;

    if (phase && !options->is_quiet && !options->is_json)
        (void)fprintf(stderr, "%s: %s\n", options->runtime, phase);
    return 0;
}

static const char *const *end_list(const struct option_list *list)
{
    const char **items = xcalloc(list->count + 1, sizeof *items);

    for (size_t i = 0; i < list->count; i++)
        items[i] = list->items[i];
    return items;
}

int run_image_install(const struct run_options *options, struct engine *engine,
                      struct runtime_image **image, struct error *err)
{
    autofree const char *const *dependencies = end_list(&options->dependencies);
    autofree const char *const *packages = end_list(&options->packages);
    const struct install_options how = {.data_dir = options->data_dir,
                                        .registry = getenv("BURROW_NPM_REGISTRY"),
                                        .cancel_fd = -1,
                                        .on_progress = on_progress,
                                        .data = (void *)options};
    struct runtime_image *with = NULL;

    if (install_check(dependencies, packages, err) < 0)
        return -1;
    autofree char *list = install_list(dependencies, packages);
    if (!list)
        return 0;
    if (install_open(engine, *image, list, &how, &with, err) < 0)
        return -1;
    runtime_image_free(*image);
    *image = with;
    return 0;
}
