/* SPDX-License-Identifier: Apache-2.0 */
/* Makes runtimes, whole or not at all; see build.h. */
#include "runtime/build.h"

#include "base/fd.h"
#include "base/mem.h"
#include "runtime/make.h"
#include "runtime/oci_fetch.h"
#include "runtime/oci_store.h"
#include "runtime/build_dir.h"
#include "runtime/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static const struct {
    int (*make)(struct making *making, struct error *err);
    uint64_t needed_bytes;
    uint64_t needed_inodes;
} kinds[] = {
    [RUNTIME_DEBIAN] = {make_debian, 1200ULL << 20, 50000},
    [RUNTIME_HOST] = {make_host, 32ULL << 20, 4000},
    [RUNTIME_LAYER] = {make_layer, 1000ULL << 20, 30000},
    [RUNTIME_OCI] = {make_oci, 64ULL << 20, 1000},
};

// ---- for makers ----

void making_tell_detail(const struct making *making, const char *phase, const char *detail,
                        unsigned permille)
{
    struct runtime_progress progress = {.phase = phase, .detail = detail, .permille = permille};

    if (making->options->on_progress)
        making->options->on_progress(making->options->data, &progress);
}

void making_tell(const struct making *making, const char *phase, unsigned permille)
{
    making_tell_detail(making, phase, "", permille);
}

void making_note(const struct making *making, const char *note)
{
    (void)dprintf(making->log_fd, "burrow: %s\n", note);
    if (making->options->on_note)
        making->options->on_note(making->options->data, note);
}

void making_bind(struct making *making, const char *host, const char *box)
{
    struct manifest *manifest = making->manifest;

    manifest->binds = xrealloc(manifest->binds, manifest->n_binds + 1, sizeof *manifest->binds);
    manifest->binds[manifest->n_binds++] = (struct manifest_bind){(char *)host, (char *)box};
}

void making_watch(struct making *making, const char *path)
{
    struct manifest *manifest = making->manifest;
    struct manifest_watch watch = {.path = (char *)path};

    manifest_watch_look(path, &watch);
    manifest->watches =
        xrealloc(manifest->watches, manifest->n_watches + 1, sizeof *manifest->watches);
    manifest->watches[manifest->n_watches++] = watch;
}

static bool is_cancelled(const struct runtime_build_options *options, int wait_ms)
{
    struct pollfd cancel = {.fd = options->cancel_fd, .events = POLLIN};
    return poll(&cancel, 1, wait_ms) > 0;
}

int making_lock(const struct runtime_build_options *options, const char *path, int *out_fd,
                struct error *err)
{
    autofd fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    for (bool is_told = false; flock(fd, LOCK_EX | LOCK_NB) < 0;) {
        if (errno != EWOULDBLOCK)
            return error_sys(err, "lock '%s'", path);
        if (!is_told && options->on_wait)
            options->on_wait(options->data);
        is_told = true;
        if (is_cancelled(options, 200))
            return error_set(err, ERROR_GONE, "cancelled");
    }
    *out_fd = take_fd(fd);
    return 0;
}

// ---- steps ----

static int check_space(const struct making *making, const char *dir, struct error *err)
{
    uint64_t bytes = kinds[making->definition->kind].needed_bytes;
    uint64_t inodes = kinds[making->definition->kind].needed_inodes;
    struct statvfs space;

    if (statvfs(dir, &space) < 0)
        return error_sys(err, "look at '%s'", dir);
    uint64_t available = (uint64_t)space.f_bavail * space.f_frsize;
    if (available < bytes)
        return error_refuse(
            err, ERROR_NO_SPACE, "runtime",
            "it needs %llu MiB while it is made and '%s' has %llu MiB left; free some, or "
            "choose another data directory",
            (unsigned long long)bytes >> 20, dir, (unsigned long long)available >> 20);
    if (space.f_files && space.f_favail < inodes)
        return error_refuse(err, ERROR_NO_SPACE, "runtime",
                            "it needs %llu inodes and '%s' has %llu left",
                            (unsigned long long)inodes, dir, (unsigned long long)space.f_favail);
    return 0;
}

static void fill_manifest(struct making *making, char made[32], char dir[RUNTIME_NAME + 32])
{
    const struct runtime_definition *definition = making->definition;
    struct manifest *manifest = making->manifest;
    time_t now = time(NULL);
    uint64_t id = 0;
    struct tm utc;

    (void)strftime(made, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    (void)!getrandom(&id, sizeof id, 0); // only has to differ from the build it replaces
    (void)snprintf(dir, RUNTIME_NAME + 32, ".%s-%016llx", definition->tags[0],
                   (unsigned long long)id);
    manifest->name = definition->name;
    manifest->tag = definition->tags[0];
    manifest->kind = runtime_kind_name(definition->kind);
    manifest->definition = definition->hash;
    manifest->made = made;
    manifest->dir = dir;
    for (const char **word = definition->command; *word; word++) {
        manifest->command =
            xrealloc(manifest->command, manifest->n_command + 1, sizeof *manifest->command);
        manifest->command[manifest->n_command++] = (char *)*word;
    }
    for (const char **pair = definition->env; *pair; pair++) {
        manifest->env = xrealloc(manifest->env, manifest->n_env + 1, sizeof *manifest->env);
        manifest->env[manifest->n_env++] = (char *)*pair;
    }
}

// Measured, written down and on disk: from here on a power cut finds it whole.
static int seal(struct making *making, int work_fd, struct error *err)
{
    struct tree_totals totals;
    autobuffer text = {0};

    making_tell(making, "measuring", 870);
    if (tree_measure(making->root_fd, &totals, err) < 0)
        return -1;
    making->manifest->files = totals.files;
    making->manifest->bytes = totals.bytes;
    making->manifest->digest = totals.digest;
    if (manifest_format(making->manifest, &text, err) < 0 ||
        fd_replace_file(work_fd, "manifest", text.data, text.length, 0600, err) < 0)
        return -1;
    if (making->definition->kind == RUNTIME_HOST)
        return 0; // made in a moment, and anew after each boot
    making_tell(making, "writing to disk", 900);
    return syncfs(work_fd) < 0 ? error_sys(err, "write to disk") : 0;
}

static int make_in(struct making *making, const char *work, const struct build_dir *builds,
                   struct error *err)
{
    char made[32], dir[RUNTIME_NAME + 32];
    autofree char *root = xasprintf("%s/rootfs", work);

    if (fd_make_dirs(root, 0755, err) < 0)
        return -1;
    autofd work_fd = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofd root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (work_fd < 0 || root_fd < 0 || fchmod(root_fd, 0755) < 0)
        return error_sys(err, "open '%s'", root);
    making->root = root;
    making->root_fd = root_fd;
    fill_manifest(making, made, dir);
    if (kinds[making->definition->kind].make(making, err) < 0 || seal(making, work_fd, err) < 0)
        return -1;
    if (is_cancelled(making->options, 0))
        return error_set(err, ERROR_GONE, "cancelled");
    return build_dir_put(builds, work, dir, making->definition->tags, err);
}

static int open_log(const struct making *making, struct error *err)
{
    autofree char *path = runtime_log_path(making->options->data_dir, making->definition);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd < 0 ? error_sys(err, "open '%s'", path) : fd;
}

static char *work_path(const struct build_dir *builds, const struct runtime_definition *definition)
{
    return xasprintf("%s/.building-%s-%s", builds->path, definition->name, definition->tags[0]);
}

static int build_locked(const struct runtime_definition *definition,
                        const struct runtime_build_options *options, const struct build_dir *builds,
                        struct error *err)
{
    autofree char *work = work_path(builds, definition);
    autoptr(manifest) manifest = xnew(struct manifest);
    __attribute__((cleanup(making_clear))) struct making making = {
        .definition = definition, .options = options, .manifest = manifest, .root_fd = -1};

    if (fd_remove_tree(AT_FDCWD, work, err) < 0 || check_space(&making, builds->path, err) < 0)
        return -1;
    autofd log_fd = open_log(&making, err);
    if (log_fd < 0)
        return -1;
    making.log_fd = log_fd;
    int result = make_in(&making, work, builds, err);
    if (result < 0) {
        struct error ignored; // what is left is removed by the next build
        (void)fd_remove_tree(AT_FDCWD, work, &ignored);
    }
    oci_store_free(making.layers);
    return result;
}

// ---- the face ----

char *runtime_log_path(const char *data_dir, const struct runtime_definition *definition)
{
    return xasprintf("%s/runtimes/%s-%s.log", data_dir, definition->name, definition->tags[0]);
}

static bool is_current(const struct runtime_definition *definition, const struct build_dir *builds)
{
    for (const char **tag = definition->tags; *tag; tag++) {
        autoptr(manifest) manifest = NULL;
        autofd fd = -1;
        struct error err;

        if (build_dir_open(builds, *tag, 0, &fd, &manifest, &err) < 0 ||
            manifest->definition != definition->hash || manifest_is_stale(manifest))
            return false;
    }
    return true;
}

// What is ready and unchanged stays as it is, whatever is forced.
static int build_below(const struct runtime_definition *definition,
                       const struct runtime_build_options *options, struct error *err)
{
    struct runtime_build_options plain = *options;

    plain.is_forced = false;
    if (definition->from && runtime_build(definition->from, &plain, NULL, err) < 0)
        return -1;
    return definition->with ? runtime_build(definition->with, &plain, NULL, err) : 0;
}

int runtime_build(const struct runtime_definition *definition,
                  const struct runtime_build_options *options, bool *was_ready, struct error *err)
{
    autoptr(build_dir) builds = build_dir_new(options->data_dir, definition->name);
    autofd lock_fd = -1;
    bool is_ready = !options->is_forced && is_current(definition, builds);
    autosweep swept = {0};

    if (!is_ready) {
        if (build_below(definition, options, err) < 0)
            return -1;
        if (fd_make_dirs(builds->path, 0755, err) < 0 ||
            making_lock(options, builds->lock_path, &lock_fd, err) < 0)
            return error_wrap(err, "build runtime '%s:%s'", definition->name, definition->tags[0]);
        // Whoever had the lock may have built it.
        is_ready = !options->is_forced && is_current(definition, builds);
    }
    if (!is_ready && build_locked(definition, options, builds, err) < 0) {
        oci_store_sweep(options->data_dir, &swept); // layers that were whole before it failed
        if (err->sys == ENOSPC || err->sys == EDQUOT)
            (void)error_restate(err, ERROR_NO_SPACE, "runtime");
        return error_wrap(err, "build runtime '%s:%s'", definition->name, definition->tags[0]);
    }
    if (!is_ready) {
        build_dir_sweep(builds, &swept);
        oci_store_sweep(options->data_dir, &swept); // what only the old one had
    }
    if (was_ready)
        *was_ready = is_ready;
    return 0;
}

/* Those that only images have; a build below is one of its own in the list, and verified by its own name. */
static bool is_unnamed(const char *layer)
{
    return strncmp(layer, OCI_STORE "/", strlen(OCI_STORE "/")) == 0;
}

/* What the layers of a build say of themselves. */
static void add_layers(const struct build_dir *builds, const struct manifest *manifest,
                       struct runtime_status *out)
{
    for (size_t i = 0; i < manifest->n_layers; i++) {
        autofree char *path = xasprintf("%s/%s/manifest", builds->path, manifest->layers[i]);
        autoptr(manifest) layer = NULL;
        autofd fd = -1;
        struct error ignored;
        if (!is_unnamed(manifest->layers[i]) || manifest_open(path, 0, &fd, &layer, &ignored) < 0)
            continue;
        out->files += layer->files;
        out->bytes += layer->bytes;
    }
}

const char *runtime_description(const struct runtime_definition *definition,
                                const struct runtime_status *status)
{
    return *definition->description ? definition->description : status->description;
}

/* By its labels, or where it comes from. */
static void describe_image(const struct runtime_definition *definition,
                           const struct manifest *manifest, struct runtime_status *out)
{
    const char *said = manifest ? manifest->description : NULL;

    if (definition->kind == RUNTIME_OCI)
        (void)snprintf(out->description, sizeof out->description, "%s%.*s",
                       said ? "" : "the image ", said ? RUNTIME_DESCRIPTION : 180,
                       said ? said : definition->image);
}

const char *runtime_state_name(enum runtime_state state)
{
    static const char *const names[] = {
        [RUNTIME_ABSENT] = "not built",  [RUNTIME_BUILDING] = "building", [RUNTIME_READY] = "ready",
        [RUNTIME_OUTDATED] = "outdated", [RUNTIME_DAMAGED] = "damaged",
    };
    return names[state];
}

/* Whether somebody has the lock of its name, which all its tags share, and this one's build has begun: a killed build leaves its directory alone. */
static bool is_being_built(const struct build_dir *builds,
                           const struct runtime_definition *definition)
{
    autofree char *work = work_path(builds, definition);
    autofd fd = open(builds->lock_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    return fd >= 0 && access(work, F_OK) == 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

void runtime_status(const char *data_dir, const struct runtime_definition *definition,
                    struct runtime_status *out)
{
    autoptr(build_dir) builds = build_dir_new(data_dir, definition->name);
    autoptr(manifest) manifest = NULL;
    autofd fd = -1;
    struct error err;

    *out = (struct runtime_status){0};
    describe_image(definition, NULL, out);
    if (build_dir_open(builds, definition->tags[0], 0, &fd, &manifest, &err) < 0) {
        out->state = is_being_built(builds, definition) ? RUNTIME_BUILDING
                     : error_is(&err, ERROR_NOT_FOUND)  ? RUNTIME_ABSENT
                                                        : RUNTIME_DAMAGED;
        return;
    }
    out->state = manifest->definition == definition->hash ? RUNTIME_READY : RUNTIME_OUTDATED;
    out->is_used = flock(fd, LOCK_EX | LOCK_NB) < 0;
    out->files = manifest->files;
    out->bytes = manifest->bytes;
    (void)snprintf(out->made, sizeof out->made, "%s", manifest->made);
    describe_image(definition, manifest, out);
    add_layers(builds, manifest, out);
}

static int compare(const struct manifest *manifest, const struct tree_totals *totals,
                   struct error *err)
{
    if (manifest->files == totals->files && manifest->bytes == totals->bytes &&
        manifest->digest == totals->digest)
        return 0;
    if (manifest->files == totals->files && manifest->bytes == totals->bytes)
        return error_set(
            err, ERROR_CONFLICT,
            "the contents, modes or owners of its files have changed since it was built");
    return error_set(err, ERROR_CONFLICT,
                     "it has %llu files of %llu bytes, and had %llu of %llu when it was built",
                     (unsigned long long)totals->files, (unsigned long long)totals->bytes,
                     (unsigned long long)manifest->files, (unsigned long long)manifest->bytes);
}

static int verify_layer(const struct build_dir *builds, const char *name, struct error *err)
{
    autofree char *path = xasprintf("%s/%s/manifest", builds->path, name);
    autofree char *root = xasprintf("%s/%s/rootfs", builds->path, name);
    autoptr(manifest) manifest = NULL;
    autofd fd = -1;
    struct tree_totals totals;

    if (manifest_open(path, LOCK_SH, &fd, &manifest, err) < 0)
        return -1;
    autofd root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return error_sys(err, "open '%s'", root);
    if (tree_measure(root_fd, &totals, err) < 0 || compare(manifest, &totals, err) < 0)
        return error_wrap(err, "layer '%s'", name);
    return 0;
}

static int verify(const struct build_dir *builds, const char *tag, struct runtime_status *out,
                  struct error *err)
{
    autoptr(manifest) manifest = NULL;
    autofd fd = -1;
    struct tree_totals totals;

    if (build_dir_open(builds, tag, LOCK_SH, &fd, &manifest, err) < 0)
        return -1;
    autofree char *root = xasprintf("%s/%s/%s/rootfs", builds->path, builds->name, manifest->dir);
    autofd root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return error_sys(err, "open '%s'", root);
    if (tree_measure(root_fd, &totals, err) < 0 || compare(manifest, &totals, err) < 0)
        return -1;
    for (size_t i = 0; i < manifest->n_layers; i++)
        if (is_unnamed(manifest->layers[i]) && verify_layer(builds, manifest->layers[i], err) < 0)
            return -1;
    *out = (struct runtime_status){
        .state = RUNTIME_READY, .files = totals.files, .bytes = totals.bytes};
    add_layers(builds, manifest, out);
    (void)snprintf(out->made, sizeof out->made, "%s", manifest->made);
    return 0;
}

int runtime_verify(const char *data_dir, const struct runtime_reference *reference,
                   struct runtime_status *out, struct error *err)
{
    autoptr(build_dir) builds = build_dir_new(data_dir, reference->name);

    if (verify(builds, reference->tag, out, err) == 0)
        return 0;
    if (error_is(err, ERROR_NOT_FOUND))
        return error_set(err, ERROR_NOT_FOUND, "runtime '%s:%s' is not built", reference->name,
                         reference->tag);
    return error_wrap(err, "verify runtime '%s:%s'; build it again with --force", reference->name,
                      reference->tag);
}

int runtime_remove(const char *data_dir, const struct runtime_reference *reference,
                   struct error *err)
{
    autoptr(build_dir) builds = build_dir_new(data_dir, reference->name);
    autosweep swept = {0};

    if (build_dir_remove(builds, reference->tag, err) < 0)
        return -1;
    oci_store_sweep(data_dir, &swept);
    return 0;
}

static void sweep_name(const char *data_dir, const char *name, struct build_sweep *sweep)
{
    autoptr(build_dir) builds = build_dir_new(data_dir, name);
    autofd lock_fd = -1;

    if (!sweep->is_trial) // which stands in nobody's way
        lock_fd = open(builds->lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (sweep->is_trial || (lock_fd >= 0 && flock(lock_fd, LOCK_EX | LOCK_NB) == 0))
        build_dir_sweep(builds, sweep);
}

int runtime_sweep(const char *data_dir, bool is_trial, struct runtime_unused *out,
                  struct error *err)
{
    autofree char *path = xasprintf("%s/runtimes", data_dir);
    autodir names = opendir(path);
    autosweep sweep = {.is_trial = is_trial};
    size_t before;

    *out = (struct runtime_unused){0};
    if (!names)
        return errno == ENOENT ? 0 : error_sys(err, "list '%s'", path);
    do { // what one stood on may go after it
        before = sweep.gone.count;
        rewinddir(names);
        for (struct dirent *entry; (entry = readdir(names));)
            if (entry->d_name[0] != '.' && entry->d_type != DT_REG)
                sweep_name(data_dir, entry->d_name, &sweep);
    } while (sweep.gone.count > before);
    oci_store_sweep(data_dir, &sweep);
    out->count = sweep.gone.count;
    out->bytes = sweep.bytes;
    oci_cache_sweep(data_dir, is_trial, out);
    return 0;
}
