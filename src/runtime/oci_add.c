/* SPDX-License-Identifier: Apache-2.0 */
/* Images as files of the catalog; see oci_add.h. */
#include "runtime/oci_add.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "runtime/oci_fetch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *file_name(const char *name, const char *tag)
{
    return xasprintf("%s-%s.yaml", name, tag);
}

/* A source has neither quotes nor backslashes: oci_check_source. */
static char *make_text(const char *name, const char *tag, const char *source)
{
    return xasprintf("# made by burrow runtime add\nname: \"%s\"\ntags: [\"%s\"]\n"
                     "build:\n  kind: oci\n  image: \"%s\"\n",
                     name, tag, source);
}

static bool is_added(const char *data_dir, const struct runtime_definition *definition)
{
    autofree char *dir = xasprintf("%s/catalog/", data_dir);
    return definition->kind == RUNTIME_OCI && strncmp(definition->file, dir, strlen(dir)) == 0;
}

static int check_free(const char *data_dir, const struct runtime_reference *reference,
                      struct error *err)
{
    const struct runtime_definition *old = NULL;
    autoptr(catalog) catalog = NULL;
    struct error missing;

    if (catalog_load(data_dir, NULL, &catalog, err) < 0)
        return -1;
    if (catalog_find(catalog, reference, &old, &missing) < 0 || is_added(data_dir, old))
        return 0;
    return error_refuse(err, ERROR_EXISTS, "runtime",
                        "there is a runtime '%s:%s' already, defined in '%.200s'; choose another "
                        "name or tag",
                        reference->name, reference->tag, old->file);
}

/* A directory that holds nothing but the file, read as if it were the machine's catalog. */
static int read_alone(const char *dir, const struct runtime_reference *reference,
                      const char *source, struct catalog **catalog,
                      const struct runtime_definition **definition, struct error *err)
{
    autofree char *text = make_text(reference->name, reference->tag, source);
    autofree char *name = file_name(reference->name, reference->tag);
    autofd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "open '%s'", dir);
    if (fd_replace_file(fd, name, text, strlen(text), 0644, err) < 0 ||
        catalog_load(dir, dir, catalog, err) < 0)
        return -1;
    if (catalog_fault_at(*catalog, 0))
        return error_set(err, ERROR_INVALID, "%s", catalog_fault_at(*catalog, 0));
    return catalog_find(*catalog, reference, definition, err);
}

int oci_define(const char *data_dir, const struct runtime_reference *reference, const char *source,
               struct catalog **catalog, const struct runtime_definition **definition,
               struct error *err)
{
    autofree char *cache = xasprintf("%s/cache/images", data_dir);
    autofree char *dir = xasprintf("%s/define-%d", cache, (int)getpid());
    struct error ignored;

    if (oci_check_source(source, err) < 0 || check_free(data_dir, reference, err) < 0 ||
        fd_make_dirs(cache, 0700, err) < 0 || fd_remove_tree(AT_FDCWD, dir, err) < 0 ||
        fd_make_dirs(dir, 0700, err) < 0)
        return -1;
    int result = read_alone(dir, reference, source, catalog, definition, err);
    (void)fd_remove_tree(AT_FDCWD, dir, &ignored);
    return result;
}

int oci_keep_definition(const char *data_dir, const struct runtime_definition *definition,
                        struct error *err)
{
    autofree char *dir = xasprintf("%s/catalog", data_dir);
    autofree char *text = make_text(definition->name, definition->tags[0], definition->image);
    autofree char *name = file_name(definition->name, definition->tags[0]);

    if (fd_make_dirs(dir, 0755, err) < 0)
        return -1;
    autofd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open '%s'", dir);
    return fd_replace_file(fd, name, text, strlen(text), 0644, err);
}

int runtime_add(const struct runtime_reference *reference, const char *source,
                const struct runtime_build_options *options, struct error *err)
{
    struct runtime_build_options forced = *options;
    const struct runtime_definition *definition;
    autoptr(catalog) catalog = NULL;

    forced.is_forced = true;
    if (oci_define(options->data_dir, reference, source, &catalog, &definition, err) < 0 ||
        runtime_build(definition, &forced, NULL, err) < 0)
        return -1;
    return oci_keep_definition(options->data_dir, definition, err);
}

int runtime_forget(const char *data_dir, const struct runtime_definition *definition,
                   struct error *err)
{
    if (!is_added(data_dir, definition) || unlink(definition->file) == 0 || errno == ENOENT)
        return 0;
    return error_sys(err, "remove '%s'", definition->file);
}
