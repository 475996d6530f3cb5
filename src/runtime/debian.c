/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes of Debian packages: mmdebstrap makes the root, then it is cleaned and fitted to live in
 * a box. */
#include "base/buffer.h"
#include "base/fd.h"
#include "base/mem.h"
#include "runtime/install_log.h"
#include "runtime/make.h"
#include "runtime/skeleton.h"
#include "runtime/sources.h"
#include "runtime/tool.h"
#include "runtime/tree.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// Texts for people, in hundreds of languages, that nobody reads in a box. Licences stay.
#define SLIM                                                                                       \
    "path-exclude=/usr/share/man/*", "path-exclude=/usr/share/info/*",                             \
        "path-exclude=/usr/share/locale/*", "path-exclude=/usr/share/lintian/*",                   \
        "path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright"

static const char *const dpkg_options[] = {"force-unsafe-io", SLIM};
static const char *const apt_options[] = {
    "APT::Install-Recommends \"false\"",
    "APT::Sandbox::User \"root\"", // a box has no other boundary inside it to guard
    "Acquire::Languages \"none\"",
};

// ---- mmdebstrap ----

struct arguments {
    const char *argv[32];
    size_t count;
    char *made[16]; // those that were put together, to be freed
    size_t n_made;
};

static void arguments_clear(struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->n_made; i++)
        free(arguments->made[i]);
}

static void add_argument(struct arguments *arguments, char *made)
{
    arguments->made[arguments->n_made++] = made;
    arguments->argv[arguments->count++] = made;
}

static char *join_packages(const char **packages)
{
    autobuffer list = {0};
    struct error err;

    (void)buffer_add_text(&list, "--include=", &err);
    for (const char **package = packages; *package; package++)
        (void)buffer_addf(&list, &err, "%s%s", package == packages ? "" : ",", *package);
    return take(list.data);
}

static void put_arguments(struct arguments *arguments, const char *program,
                          const struct making *making)
{
    static const char *const fixed[] = {
        "--verbose",
        "--mode=root",
        "--format=directory",
        "--variant=minbase",
        // the root holds the mounted cache of packages already, and that is to stay as it is
        "--skip=check/empty,essential/unlink,cleanup/apt/cache",
        "--aptopt=Acquire::http::Timeout \"30\"",
    };
    const struct runtime_definition *definition = making->definition;

    arguments->argv[arguments->count++] = program;
    for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
        arguments->argv[arguments->count++] = fixed[i];
    if (definition->is_expiry_ignored)
        arguments->argv[arguments->count++] = "--aptopt=Acquire::Check-Valid-Until \"false\"";
    for (size_t i = 0; i < ARRAY_SIZE(apt_options); i++)
        add_argument(arguments, xasprintf("--aptopt=%s", apt_options[i]));
    for (size_t i = 0; i < ARRAY_SIZE(dpkg_options); i++)
        add_argument(arguments, xasprintf("--dpkgopt=%s", dpkg_options[i]));
    if (definition->packages[0])
        add_argument(arguments, join_packages(definition->packages));
    arguments->argv[arguments->count++] = definition->suite;
    arguments->argv[arguments->count++] = making->root;
    arguments->argv[arguments->count++] = "-";
}

static int bootstrap(struct making *making, const char *program, const char *sources,
                     struct error *err)
{
    static const struct tree_entry place[] = {{"var/cache/apt/archives", S_IFDIR | 0755, NULL},
                                              {0}};
    autofree char *cache = xasprintf("%s/cache/apt", making->options->data_dir);
    autofree char *lock = xasprintf("%s.lock", cache);
    autofree char *archives = xasprintf("%s/%s", making->root, place[0].path);
    __attribute__((cleanup(arguments_clear))) struct arguments arguments = {0};
    struct install_log log = {.making = making};
    autofd lock_fd = -1;

    if (fd_make_dirs(cache, 0755, err) < 0 || tree_write(making->root_fd, place, err) < 0 ||
        making_lock(making->options, lock, &lock_fd, err) < 0)
        return -1;
    progress_start(&log.progress);
    put_arguments(&arguments, program, making);
    struct tool_spec spec = {
        .argv = arguments.argv,
        .input = sources,
        .bind_from = cache,
        .bind_to = archives,
        .log_fd = making->log_fd,
        .cancel_fd = making->options->cancel_fd,
        .on_line = install_log_line,
        .data = &log,
    };
    return tool_run(&spec, err) < 0 ? install_log_explain(&log, err) : 0;
}

// ---- fitting the root ----

static char *join_lines(const char *const *options, size_t count, const char *end)
{
    autobuffer text = {0};
    struct error err;

    for (size_t i = 0; i < count; i++)
        (void)buffer_addf(&text, &err, "%s%s\n", options[i], end);
    return take(text.data);
}

// Keys that the sources name must be there when apt runs inside.
static int copy_keys(int root_fd, const char *sources, struct error *err)
{
    autofd slash_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (slash_fd < 0)
        return error_sys(err, "open '/'");
    for (const char *at = sources; (at = strstr(at, "[signed-by=/"));) {
        at += strlen("[signed-by=/");
        autofree char *path = xstrndup(at, strcspn(at, "]"));
        if (faccessat(root_fd, path, F_OK, 0) < 0 &&
            tree_copy_public(slash_fd, root_fd, path, err) < 0)
            return -1;
    }
    return 0;
}

static int fit(struct making *making, const char *sources, struct error *err)
{
    static const char *const emptied[] = {"var/cache/apt", "var/lib/apt/lists",
                                          "var/cache/ldconfig", "var/cache/debconf"};
    autofree char *apt = join_lines(apt_options, ARRAY_SIZE(apt_options), ";");
    autofree char *dpkg = join_lines(dpkg_options, ARRAY_SIZE(dpkg_options), "");
    const struct tree_entry entries[] = {
        {"var/cache/apt/archives/partial", S_IFDIR | 0755, NULL},
        {"var/lib/apt/lists/partial", S_IFDIR | 0755, NULL},
        {"etc/apt/apt.conf.d/90burrow", S_IFREG | 0644, apt},
        {"etc/dpkg/dpkg.cfg.d/90burrow", S_IFREG | 0644, dpkg},
        {"etc/apt/sources.list", S_IFREG | 0644, sources},
        // Installing a package in a box starts no service.
        {"usr/sbin/policy-rc.d", S_IFREG | 0755, "#!/bin/sh\nexit 101\n"},
        {0},
    };
    int root = making->root_fd;

    for (size_t i = 0; i < ARRAY_SIZE(emptied); i++)
        if (tree_empty(root, emptied[i], err) < 0)
            return -1;
    (void)unlinkat(root, "etc/apt/apt.conf.d/99mmdebstrap", 0);
    (void)unlinkat(root, "etc/dpkg/dpkg.cfg.d/99mmdebstrap", 0);
    if (tree_write(root, entries, err) < 0 || copy_keys(root, sources, err) < 0 ||
        skeleton_add_user(root, err) < 0)
        return -1;
    return skeleton_write(root, err);
}

static int find_sources(const struct making *making, struct buffer *out, struct error *err)
{
    const struct runtime_definition *definition = making->definition;
    const char *mirror = making->options->mirror ? making->options->mirror : definition->mirror;
    const char *const *components = (const char *const *)definition->components;
    struct sources_place place = {0};

    if (mirror)
        return sources_of_mirror(&place, mirror, definition->suite, components, out, err);
    return sources_of_machine(&place, definition->suite, components, out, err);
}

int make_debian(struct making *making, struct error *err)
{
    char program[PATH_MAX];
    autobuffer sources = {0};

    if (tool_find("mmdebstrap", program, sizeof program) < 0)
        return error_set(
            err, ERROR_UNAVAILABLE,
            "mmdebstrap is not installed; run 'apt-get install mmdebstrap', or use the "
            "runtime host:latest");
    if (find_sources(making, &sources, err) < 0)
        return -1;
    if (bootstrap(making, program, sources.data, err) < 0)
        return -1;
    making_tell(making, "fitting it to a sandbox", 860);
    return fit(making, sources.data, err);
}
