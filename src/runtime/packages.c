/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes that are packages over another runtime: apt's of the suite below, then npm's, installed in a root made of the layers below and
 * the new one (tool_root.h). So the layer holds what they brought and nothing else.
 */
#include "base/buffer.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/strings.h"
#include "runtime/build_dir.h"
#include "runtime/install_log.h"
#include "runtime/make.h"
#include "runtime/skeleton.h"
#include "runtime/sources.h"
#include "runtime/tool.h"
#include "runtime/tool_root.h"
#include "runtime/tree.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

// What a build stands on, kept from being removed meanwhile.
struct below {
    struct manifest *manifest;
    int lock_fd;
    struct strings layers; // the build itself, and what it stands on
};

static void below_clear(struct below *below)
{
    manifest_free(below->manifest);
    closep(&below->lock_fd);
    strings_clear(&below->layers);
}
#define autobelow __attribute__((cleanup(below_clear))) struct below

static int open_below(const struct making *making, const struct runtime_definition *definition,
                      struct below *out, struct error *err)
{
    autoptr(build_dir) builds = build_dir_new(making->options->data_dir, definition->name);

    if (build_dir_open(builds, definition->tags[0], LOCK_SH, &out->lock_fd, &out->manifest, err) <
        0)
        return error_wrap(err, "open '%s:%s', which it stands on", definition->name,
                          definition->tags[0]);
    if (out->manifest->n_binds)
        return error_set(err, ERROR_INVALID, "nothing can be installed over '%s:%s'",
                         definition->name, definition->tags[0]);
    autofree char *build = xasprintf("%s/%s", definition->name, out->manifest->dir);
    strings_add(&out->layers, build);
    for (size_t i = 0; i < out->manifest->n_layers; i++)
        strings_add(&out->layers, out->manifest->layers[i]);
    return 0;
}

// ---- scripts ----

static const char apt_script[] =
    "set -e\n"
    "export DEBIAN_FRONTEND=noninteractive\n"
    "options=\"-q -y -o Dir::State::lists=/tmp/lists -o Dir::Cache::archives=/tmp/archives"
    " -o Acquire::http::Timeout=30 -o Acquire::Retries=2 -o APT::Keep-Downloaded-Packages=true"
    " -o Dpkg::Use-Pty=0 $APT_MORE\"\n"
    "mkdir -p /tmp/lists/partial /tmp/archives/partial\n"
    "if [ -s /tmp/input/sources.list ]; then\n"
    "  options=\"$options -o Dir::Etc::sourcelist=/tmp/input/sources.list -o "
    "Dir::Etc::sourceparts=-\"\n"
    "fi\n"
    "echo 'I: running apt-get update'\n"
    "apt-get update $options\n"
    "echo 'I: installing remaining packages'\n"
    "apt-get install --no-install-recommends $options \"$@\"\n"
    "rm -rf /var/cache/ldconfig/* /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/*\n";

// Scripts of the packages that the file names are run, those of what they need are not.
static const char npm_script[] =
    "set -e\n"
    "cafile=/etc/ssl/certs/ca-certificates.crt\n"
    "export HOME=/tmp NPM_CONFIG_CACHE=/tmp/npm NPM_CONFIG_UPDATE_NOTIFIER=false\n"
    "export NPM_CONFIG_PREFIX=/usr/local NPM_CONFIG_FETCH_RETRIES=3 NPM_CONFIG_LOGLEVEL=http\n"
    "export NPM_CONFIG_FETCH_RETRY_MINTIMEOUT=1000 NPM_CONFIG_FETCH_RETRY_MAXTIMEOUT=4000\n"
    "if [ -s $cafile ]; then export NPM_CONFIG_CAFILE=$cafile NODE_EXTRA_CA_CERTS=$cafile; fi\n"
    "if [ -s /tmp/input/registry ]; then NPM_CONFIG_REGISTRY=$(cat /tmp/input/registry); export "
    "NPM_CONFIG_REGISTRY; fi\n"
    "echo 'I: downloading npm packages'\n"
    "npm install -g --ignore-scripts --no-audit --no-fund \"$@\"\n"
    "echo 'I: setting npm packages up'\n"
    "for package; do\n"
    "  name=$(printf %s \"$package\" | sed 's/\\(.\\)@.*/\\1/')\n"
    "  cd /usr/local/lib/node_modules/\"$name\"\n"
    "  node -e 'const {execSync} = require(\"child_process\");\n"
    "    const all = JSON.parse(require(\"fs\").readFileSync(\"package.json\")).scripts || {};\n"
    "    for (const name of [\"preinstall\", \"install\", \"postinstall\"])\n"
    "      if (all[name]) execSync(all[name], {stdio: \"inherit\"});'\n"
    "  echo \"Setting up $name\"\n"
    "done\n"
    "cd /\n"
    "mkdir -p /etc/burrow\n"
    "npm config get registry > /etc/burrow/npm-registry\n" // for packages of sandboxes
    "rm -rf /root/.npm /root/.cache\n";

// ---- running them ----

struct step {
    struct making *making;
    const struct below *below;
    const char *script;
    const char **packages;
    const char *work; // the build's directory
};

static const char *machine_name(void)
{
#if defined(__aarch64__)
    return "arm64";
#else
    return "x64";
#endif
}

// "node-linux-{arch}@24" as npm knows it on this machine.
static char *spell_package(const char *package)
{
    const char *hole = strstr(package, "{arch}");

    if (!hole)
        return xstrdup(package);
    return xasprintf("%.*s%s%s", (int)(hole - package), package, machine_name(), hole + 6);
}

static int make_dir_at(const char *top, const char *name, char **out, struct error *err)
{
    *out = xasprintf("%s/%s", top, name);
    return fd_make_dirs(*out, 0755, err);
}

// Whoever is below all of it says which suite packages come from; NULL: an image does.
static const struct runtime_definition *suite_of(const struct runtime_definition *definition)
{
    while (definition && definition->kind == RUNTIME_LAYER)
        definition = definition->from;
    return definition && definition->kind == RUNTIME_DEBIAN ? definition : NULL;
}

static int write_input(const struct making *making, const char *dir, struct error *err)
{
    const struct runtime_definition *suite = suite_of(making->definition);
    const char *registry = making->options->registry ? making->options->registry : "";
    const char *mirror = making->options->mirror ? making->options->mirror
                         : suite                 ? suite->mirror
                                                 : NULL;
    struct sources_place place = {0};
    autobuffer sources = {0};

    if (suite) {
        const char *const *components = (const char *const *)suite->components;
        if ((mirror ? sources_of_mirror(&place, mirror, suite->suite, components, &sources, err)
                    : sources_of_machine(&place, suite->suite, components, &sources, err)) < 0)
            return -1;
    }
    const struct tree_entry entries[] = {
        {"sources.list", S_IFREG | 0644, sources.data ? sources.data : ""},
        {"registry", S_IFREG | 0644, registry},
        {0},
    };
    autofd dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return error_sys(err, "open '%s'", dir);
    return tree_write(dir_fd, entries, err);
}

static void put_arguments(const struct step *step, struct strings *out)
{
    static const char *const shell[] = {"/bin/sh", "-c"};
    const struct runtime_definition *suite = suite_of(step->making->definition);

    for (size_t i = 0; i < ARRAY_SIZE(shell); i++)
        strings_add(out, shell[i]);
    autofree char *script =
        xasprintf("APT_MORE='%s'\n%s",
                  suite && suite->is_expiry_ignored ? "-o Acquire::Check-Valid-Until=false" : "",
                  step->script);
    strings_add(out, script);
    strings_add(out, "install");
    for (const char **package = step->packages; *package; package++) {
        autofree char *name = spell_package(*package);
        strings_add(out, name);
    }
}

static int run_step(const struct step *step, struct error *err)
{
    const struct making *making = step->making;
    autofree char *cache = xasprintf("%s/cache", making->options->data_dir);
    autofree char *top = xasprintf("%s/runtimes", making->options->data_dir);
    autofree char *archives = NULL, *npm = NULL, *work = NULL, *target = NULL, *input = NULL;
    autofree char *lock = xasprintf("%s/apt.lock", cache);
    autostrings arguments = {0};
    autofd lock_fd = -1;

    if (make_dir_at(cache, "apt", &archives, err) < 0 || make_dir_at(cache, "npm", &npm, err) < 0 ||
        make_dir_at(step->work, "work", &work, err) < 0 ||
        make_dir_at(step->work, "target", &target, err) < 0 ||
        make_dir_at(step->work, "input", &input, err) < 0 || write_input(making, input, err) < 0 ||
        making_lock(making->options, lock, &lock_fd, err) < 0)
        return -1;
    struct tool_root root = {
        .directory = top,
        .layers = (const char *const *)step->below->layers.items,
        .n_layers = step->below->layers.count,
        .upper = making->root,
        .work = work,
        .target = target,
        .binds = {{archives, "archives"}, {npm, "npm"}, {input, "input"}},
    };
    struct install_log log = {.making = making};
    put_arguments(step, &arguments);
    const struct tool_spec spec = {
        .argv = (const char *const *)arguments.items,
        .root = &root,
        .log_fd = making->log_fd,
        .cancel_fd = making->options->cancel_fd,
        .on_line = install_log_line,
        .data = &log,
    };
    if (tool_root_prepare(&root, err) < 0)
        return -1;
    progress_start(&log.progress);
    if (tool_run(&spec, err) < 0)
        return install_log_explain(&log, err);
    return 0;
}

// ---- the layer ----

static int add_users(const struct making *making, const struct below *below, struct error *err)
{
    const char **users = making->definition->users;

    if (!*users)
        return 0;
    autofree char *top = xasprintf("%s/runtimes", making->options->data_dir);
    return skeleton_add_users(making->root_fd, top, (const char *const *)below->layers.items,
                              below->layers.count, users, err);
}

static void inherit(struct manifest *manifest, const struct below *below,
                    const struct runtime_definition *definition, struct strings *env)
{
    for (size_t i = 0; i < below->manifest->n_env; i++)
        strings_add(env, below->manifest->env[i]);
    strings_merge(env, (const char *const *)definition->env);
    manifest->layers = xcalloc(below->layers.count + 1, sizeof *manifest->layers);
    for (size_t i = 0; i < below->layers.count; i++)
        manifest->layers[manifest->n_layers++] = below->layers.items[i];
    free(manifest->env);
    manifest->env = xcalloc(env->count + 1, sizeof *manifest->env);
    manifest->n_env = 0;
    for (size_t i = 0; i < env->count; i++)
        manifest->env[manifest->n_env++] = env->items[i];
}

static int install(struct making *making, const struct below *below, struct error *err)
{
    const struct runtime_definition *definition = making->definition;
    autofree char *work = xstrndup(making->root, strlen(making->root) - strlen("/rootfs"));
    autobelow with = {.lock_fd = -1};
    struct step apt = {making, below, apt_script, definition->packages, work};
    struct step npm = {making, below, npm_script, definition->npm, work};

    if (definition->with) {
        if (open_below(making, definition->with, &with, err) < 0)
            return -1;
        npm.below = &with;
    }
    if (definition->packages[0] && run_step(&apt, err) < 0)
        return -1;
    return definition->npm[0] ? run_step(&npm, err) : 0;
}

// What only the installing needed.
static int clean(const struct making *making, struct error *err)
{
    static const char *const gone[] = {"var/cache/apt", "var/lib/apt/lists"};
    autofree char *top = xstrndup(making->root, strlen(making->root) - strlen("/rootfs"));
    autofd work_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
        if (fd_remove_tree(making->root_fd, gone[i], err) < 0)
            return -1;
    if (work_fd < 0 || fd_remove_tree(work_fd, "work", err) < 0 ||
        fd_remove_tree(work_fd, "target", err) < 0 || fd_remove_tree(work_fd, "input", err) < 0)
        return -1;
    return 0;
}

int make_layer(struct making *making, struct error *err)
{
    struct below *below = xnew(struct below);
    autostrings env = {0};

    making->below = below; // until the build is in its place
    below->lock_fd = -1;
    making_tell(making, "starting", 0);
    if (open_below(making, making->definition->from, below, err) < 0 ||
        install(making, below, err) < 0 || clean(making, err) < 0 ||
        add_users(making, below, err) < 0)
        return -1;
    inherit(making->manifest, below, making->definition, &env);
    making->env = env;
    env = (struct strings){0};
    return 0;
}

void making_clear(struct making *making)
{
    if (making->below)
        below_clear(making->below);
    free(making->below);
    strings_clear(&making->env);
}
