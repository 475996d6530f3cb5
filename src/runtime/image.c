/* SPDX-License-Identifier: Apache-2.0 */
/* Opens runtimes for boxes; see image.h. */
#include "runtime/image.h"

#include "base/mem.h"
#include "runtime/build.h"
#include "runtime/manifest.h"
#include "runtime/build_dir.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

void runtime_image_free(struct runtime_image *image)
{
    if (!image)
        return;
    closep(&image->lock_fd);
    for (size_t i = 0; i < image->n_layers; i++)
        free(image->layers[i]);
    free(image->layers);
    free(image->binds);
    free((char *)image->build);
    manifest_free(image->memory);
    free(image);
}

// Takes the manifest and the lock. `build` is where it stands below `top`.
static struct runtime_image *make_image(const char *top, char *build, struct manifest *manifest,
                                        int lock_fd)
{
    struct runtime_image *image = xnew(struct runtime_image);

    image->memory = manifest;
    image->lock_fd = lock_fd;
    image->build = build;
    image->name = (char *)manifest->name;
    image->tag = (char *)manifest->tag;
    image->env = manifest->env;
    image->command = manifest->command;
    image->user = manifest->user;
    image->directory = manifest->directory;
    image->layers = xcalloc(manifest->n_layers + 1, sizeof *image->layers);
    image->layers[image->n_layers++] = xasprintf("%s/%s/rootfs", top, build);
    for (size_t i = 0; i < manifest->n_layers; i++)
        image->layers[image->n_layers++] = xasprintf("%s/%s/rootfs", top, manifest->layers[i]);
    image->binds = xcalloc(manifest->n_binds + 1, sizeof *image->binds);
    for (; image->n_binds < manifest->n_binds; image->n_binds++)
        image->binds[image->n_binds] = (struct runtime_bind){manifest->binds[image->n_binds].host,
                                                             manifest->binds[image->n_binds].box};
    return image;
}

// ERROR_NOT_FOUND when it is not built, or was made from files that have changed since.
static int open_built(const struct build_dir *builds, const char *tag, struct runtime_image **out,
                      struct error *err)
{
    autoptr(manifest) manifest = NULL;
    autofd fd = -1;

    if (build_dir_open(builds, tag, LOCK_SH, &fd, &manifest, err) < 0)
        return -1;
    if (manifest_is_stale(manifest))
        return error_set(err, ERROR_NOT_FOUND, "out of date");
    char *build = xasprintf("%s/%s", builds->name, manifest->dir);
    *out = make_image(builds->path, build, take(manifest), take_fd(fd));
    return 0;
}

// *reference becomes what it is built as, where it was an alias.
static int make_ready(const char *data_dir, struct runtime_reference *reference, struct error *err)
{
    struct runtime_build_options options = {.data_dir = data_dir, .cancel_fd = -1};
    const struct runtime_definition *definition;
    autoptr(catalog) catalog = NULL;

    if (catalog_load(data_dir, NULL, &catalog, err) < 0 ||
        catalog_find(catalog, reference, &definition, err) < 0)
        return -1;
    if (definition->kind == RUNTIME_HOST && runtime_build(definition, &options, NULL, err) < 0)
        return -1;
    bool is_alias = strcmp(definition->name, reference->name) != 0;
    if (is_alias) {
        (void)snprintf(reference->name, sizeof reference->name, "%s", definition->name);
        (void)snprintf(reference->tag, sizeof reference->tag, "%s", definition->tags[0]);
    }
    if (is_alias || definition->kind == RUNTIME_HOST)
        return 0;
    return error_refuse(
        err, ERROR_NOT_BUILT, "runtime",
        "runtime '%s:%s' is not built in the data directory '%.100s' yet; run 'burrow runtime "
        "build %s:%s --data %.100s' once, or use the runtime host:latest",
        reference->name, reference->tag, data_dir, reference->name, reference->tag, data_dir);
}

int runtime_image_open(const char *data_dir, const char *reference, struct runtime_image **out,
                       struct error *err)
{
    struct runtime_reference parsed;

    if (runtime_reference_parse(reference, &parsed, err) < 0)
        return -1;
    autoptr(build_dir) builds = build_dir_new(data_dir, parsed.name);
    if (open_built(builds, parsed.tag, out, err) == 0)
        return 0;
    if (!error_is(err, ERROR_NOT_FOUND))
        return error_wrap(err, "open runtime '%s:%s'", parsed.name, parsed.tag);
    const struct runtime_reference asked = parsed;
    if (make_ready(data_dir, &parsed, err) < 0)
        return -1;
    if (strcmp(asked.name, parsed.name) == 0)
        return open_built(builds, parsed.tag, out, err);
    autofree char *known = xasprintf("%s:%s", parsed.name, parsed.tag);
    return runtime_image_open(data_dir, known, out, err);
}

int runtime_image_open_at(const char *data_dir, const char *build, struct runtime_image **out,
                          struct error *err)
{
    autofree char *top = xasprintf("%s/runtimes", data_dir);
    autofree char *path = xasprintf("%s/%s/manifest", top, build);
    autoptr(manifest) manifest = NULL;
    autofd fd = -1;

    if (manifest_open(path, LOCK_SH, &fd, &manifest, err) < 0)
        return -1;
    *out = make_image(top, xstrdup(build), take(manifest), take_fd(fd));
    return 0;
}

bool runtime_image_is_current(const char *data_dir, const char *reference,
                              const struct runtime_image *image)
{
    const struct manifest *manifest = image->memory;
    struct runtime_reference parsed;
    char path[PATH_MAX], dir[NAME_MAX + 1];
    struct error err;

    if (runtime_reference_parse(reference, &parsed, &err) < 0)
        return false;
    (void)snprintf(path, sizeof path, "%s/runtimes/%s/%s", data_dir, parsed.name, parsed.tag);
    ssize_t length = readlink(path, dir, sizeof dir - 1);
    if (length < 0)
        return false;
    dir[length] = '\0';
    const char *build = manifest->dir;
    if (strcmp(manifest->kind, RUNTIME_PACKAGES) == 0 && manifest->n_layers)
        build = strchr(manifest->layers[0], '/') + 1; // of the runtime that the packages are over
    return strcmp(dir, build) == 0 && !manifest_is_stale(manifest);
}
