/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of images on disk; see oci_store.h. */
#include "runtime/oci_store.h"

#include "base/fd.h"
#include "base/mem.h"
#include "engine/layer_impl.h"
#include "runtime/build_dir.h"
#include "runtime/manifest.h"
#include "runtime/tree.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define FRESH ".new-" // before the name of a layer that is not kept yet
#define ONE "sha256-"
#define MERGED "merged-"
#define GROUP 16 // layers that become one
#define STACK_BYTES ((size_t)8 << 20)

/* A layer that is unpacked and is being measured, beside the unpacking of the next. */
struct measuring {
    bool is_there, has_thread;
    pthread_t thread;
    char name[OCI_LAYER_NAME];
    int dir_fd, files_fd;
    int result;
    struct error err;
};

struct oci_store {
    char *path;  // <data>/runtimes/.layers
    int fd;      // of it
    int lock_fd; //
    char **made; // names that are not kept yet
    int *held;   // manifests
    size_t n_made, n_held;
    struct measuring measuring; // of one at a time
};

static int await_measuring(struct oci_store *store, struct error *err);

static bool is_ours(const char *name)
{
    return strncmp(name, ONE, strlen(ONE)) == 0 || strncmp(name, MERGED, strlen(MERGED)) == 0;
}

// ---- opening ----

/* Calls for each name in the directory. */
static void for_names(int dir_fd, void (*call)(int dir_fd, const char *name, void *data),
                      void *data)
{
    int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir list = copy < 0 ? NULL : fdopendir(copy);

    if (!list)
        closep(&copy);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            call(dir_fd, entry->d_name, data);
}

static void remove_fresh(int dir_fd, const char *name, void *data)
{
    struct error ignored;

    if (strncmp(name, FRESH, strlen(FRESH)) == 0 && is_ours(name + strlen(FRESH)))
        (void)fd_remove_tree(dir_fd, name, &ignored);
}

int oci_store_open(const struct runtime_build_options *options, struct oci_store **out,
                   struct error *err)
{
    autofree char *path = xasprintf("%s/runtimes/" OCI_STORE, options->data_dir);
    autofree char *lock = xasprintf("%s/runtimes/.lock-layers", options->data_dir);
    autofd held = -1;

    if (fd_make_dirs(path, 0700, err) < 0 || making_lock(options, lock, &held, err) < 0)
        return -1;
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    // programs with set-id bits of strangers are in there: nobody else may come near
    if (fd < 0 || fchmod(fd, 0700) < 0)
        return error_sys(err, "open '%s'", path);
    for_names(fd, remove_fresh, NULL); // of one that was killed: we have the lock
    struct oci_store *store = xnew(struct oci_store);
    store->path = take(path);
    store->fd = take_fd(fd);
    store->lock_fd = take_fd(held);
    *out = store;
    return 0;
}

void oci_store_free(struct oci_store *store)
{
    struct error ignored;

    if (!store)
        return;
    (void)await_measuring(store, &ignored);
    for (size_t i = 0; i < store->n_made; i++) {
        autofree char *fresh = xasprintf(FRESH "%s", store->made[i]);
        (void)fd_remove_tree(store->fd, fresh, &ignored);
        free(store->made[i]);
    }
    for (size_t i = 0; i < store->n_held; i++)
        closep(&store->held[i]);
    free(store->made);
    free(store->held);
    free(store->path);
    closep(&store->fd);
    closep(&store->lock_fd);
    free(store);
}

static bool is_made(const struct oci_store *store, const char *name)
{
    for (size_t i = 0; i < store->n_made; i++)
        if (strcmp(store->made[i], name) == 0)
            return true;
    return false;
}

/* Keeps it from being swept, if it is there. */
static bool hold(struct oci_store *store, const char *name)
{
    autofree char *path = xasprintf("%s/%s/manifest", store->path, name);
    autoptr(manifest) manifest = NULL;
    autofd fd = -1;
    struct error ignored;

    if (is_made(store, name))
        return true;
    if (manifest_open(path, LOCK_SH, &fd, &manifest, &ignored) < 0)
        return false;
    store->held = xrealloc(store->held, store->n_held + 1, sizeof *store->held);
    store->held[store->n_held++] = take_fd(fd);
    return true;
}

bool oci_store_has(struct oci_store *store, const char *hex)
{
    char name[OCI_LAYER_NAME];

    (void)snprintf(name, sizeof name, ONE "%s", hex);
    return hold(store, name);
}

// ---- adding ----

/* An empty directory for the files of a layer, open; *dir_fd the one it is in. */
static int begin(struct oci_store *store, const char *name, int *dir_fd, struct error *err)
{
    autofree char *fresh = xasprintf(FRESH "%s", name);
    autofree char *files = xasprintf("%s/rootfs", fresh);

    if (fd_remove_tree(store->fd, fresh, err) < 0)
        return -1;
    store->made = xrealloc(store->made, store->n_made + 1, sizeof *store->made);
    store->made[store->n_made++] = xstrdup(name);
    if (mkdirat(store->fd, fresh, 0700) < 0 || mkdirat(store->fd, files, 0755) < 0)
        return error_sys(err, "make a directory for a layer");
    *dir_fd = openat(store->fd, fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofd fd = openat(store->fd, files, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || *dir_fd < 0 || fchmod(fd, 0755) < 0)
        return error_sys(err, "open a directory for a layer");
    return take_fd(fd);
}

/* What it holds; of a merged one, what it is made of, which stays as long as it does. */
static int write_manifest(int dir_fd, int files_fd, const char *name, char **parts, size_t n_parts,
                          struct error *err)
{
    struct manifest manifest = {.name = "layer",
                                .tag = name,
                                .kind = "oci-layer",
                                .dir = name,
                                .layers = parts,
                                .n_layers = n_parts};
    struct tree_totals totals;
    autobuffer text = {0};
    char made[32];
    struct tm utc;
    time_t now = time(NULL);

    if (tree_measure(files_fd, &totals, err) < 0)
        return -1;
    (void)strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    manifest.made = made;
    manifest.files = totals.files;
    manifest.bytes = totals.bytes;
    manifest.digest = totals.digest;
    if (manifest_format(&manifest, &text, err) < 0)
        return -1;
    autofd fd =
        openat(dir_fd, "manifest", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_all(fd, text.data, text.length) < 0)
        return error_sys(err, "write down what a layer holds");
    return 0;
}

static void *measure(void *data)
{
    struct measuring *measuring = data;

    measuring->result = write_manifest(measuring->dir_fd, measuring->files_fd, measuring->name,
                                       NULL, 0, &measuring->err);
    return NULL;
}

/* Reading all of a layer again takes as long as writing it did: that is done while the next one is unpacked. Takes the descriptors. */
static void start_measuring(struct oci_store *store, const char *name, int dir_fd, int files_fd)
{
    struct measuring *measuring = &store->measuring;
    pthread_attr_t like_main; // a layer may be deep, and some libraries give a thread little

    *measuring = (struct measuring){.is_there = true, .dir_fd = dir_fd, .files_fd = files_fd};
    (void)snprintf(measuring->name, sizeof measuring->name, "%s", name);
    (void)pthread_attr_init(&like_main);
    (void)pthread_attr_setstacksize(&like_main, STACK_BYTES);
    measuring->has_thread = pthread_create(&measuring->thread, &like_main, measure, measuring) == 0;
    (void)pthread_attr_destroy(&like_main);
    if (!measuring->has_thread)
        (void)measure(measuring);
}

static int await_measuring(struct oci_store *store, struct error *err)
{
    struct measuring *measuring = &store->measuring;

    if (!measuring->is_there)
        return 0;
    if (measuring->has_thread)
        (void)pthread_join(measuring->thread, NULL);
    measuring->is_there = false;
    closep(&measuring->dir_fd);
    closep(&measuring->files_fd);
    if (measuring->result == 0)
        return 0;
    *err = measuring->err;
    return error_wrap(err, "measure the layer '%s'", measuring->name);
}

int oci_store_add(struct oci_store *store, const char *hex, int blob_fd,
                  const struct oci_layer_task *task, struct oci_layer_report *report,
                  struct error *err)
{
    char name[OCI_LAYER_NAME];
    autofd dir_fd = -1;

    (void)snprintf(name, sizeof name, ONE "%s", hex);
    autofd files_fd = begin(store, name, &dir_fd, err);
    if (files_fd < 0 || oci_layer_unpack(task, blob_fd, files_fd, report, err) < 0 ||
        await_measuring(store, err) < 0)
        return -1;
    start_measuring(store, name, take_fd(dir_fd), take_fd(files_fd));
    return 0;
}

int oci_store_keep(struct oci_store *store, struct error *err)
{
    if (await_measuring(store, err) < 0)
        return -1;
    // one pass over the file system, for all of them
    if (store->n_made && syncfs(store->fd) < 0)
        return error_sys(err, "write layers to disk");
    while (store->n_made) {
        autofree char *name = store->made[store->n_made - 1];
        autofree char *fresh = xasprintf(FRESH "%s", name);
        struct error ignored;
        (void)fd_remove_tree(store->fd, name, &ignored); // one without a manifest
        if (renameat(store->fd, fresh, store->fd, name) < 0) {
            (void)take(name);
            return error_sys(err, "keep the layer '%s'", store->made[store->n_made - 1]);
        }
        store->n_made--;
        (void)hold(store, name);
    }
    return fsync(store->fd) < 0 ? error_sys(err, "write layers to disk") : 0;
}

int oci_store_read(const struct oci_store *store, const char *name, int *dir_fd, struct error *err)
{
    autofree char *path = xasprintf("%s%s/rootfs", is_made(store, name) ? FRESH : "", name);

    *dir_fd = openat(store->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *dir_fd < 0 ? error_sys(err, "open the layer '%s'", name) : 0;
}

// ---- merging ----

static int merge_into(const struct oci_store *store, char names[][OCI_LAYER_NAME], size_t count,
                      int to_fd, struct error *err)
{
    autofree struct layer_copy *copy = xnew(struct layer_copy);
    int fds[GROUP], result = 0;
    size_t n_fds = 0;

    copy->top_fd = to_fd;
    copy->is_lowest = true;
    for (size_t i = count; i-- > 0 && result == 0;) { // top first
        result = oci_store_read(store, names[i], &fds[n_fds], err);
        n_fds += result == 0;
    }
    if (result == 0)
        result = layer_merge_into(copy, fds, n_fds, to_fd, err);
    layer_copy_clear(copy);
    while (n_fds)
        closep(&fds[--n_fds]);
    return result;
}

/* The first `count` names become one. */
static int merge_lowest(struct oci_store *store, char names[][OCI_LAYER_NAME], size_t count,
                        struct error *err)
{
    char name[OCI_LAYER_NAME] = MERGED, paths[GROUP][OCI_LAYER_PATH];
    char *parts[GROUP];
    struct sha256 sha;

    sha256_init(&sha);
    for (size_t i = 0; i < count; i++) {
        sha256_add(&sha, names[i], strlen(names[i]) + 1);
        (void)snprintf(paths[i], sizeof paths[i], OCI_STORE "/%s", names[i]);
        parts[i] = paths[i];
    }
    sha256_end(&sha, name + strlen(MERGED));
    if (!hold(store, name)) {
        autofd dir_fd = -1;
        autofd files_fd = begin(store, name, &dir_fd, err);
        if (files_fd < 0 || merge_into(store, names, count, files_fd, err) < 0 ||
            write_manifest(dir_fd, files_fd, name, parts, count, err) < 0)
            return error_wrap(err, "make one of %zu layers", count);
    }
    memcpy(names[0], name, OCI_LAYER_NAME);
    return 0;
}

/* Whatever a layer says of a name, its last occurrence says too, over all that lies between; and overlay takes no directory twice. */
static bool comes_again(const struct oci_manifest *manifest, size_t index)
{
    for (size_t i = index + 1; i < manifest->n_layers; i++)
        if (strcmp(manifest->layers[i].hex, manifest->layers[index].hex) == 0)
            return true;
    return false;
}

/* A layer that hides all that lies below it, the root itself. Overlay does not look there. */
static int hides_all(const struct oci_store *store, const char *name, bool *out, struct error *err)
{
    autofd fd = -1;
    char value[2];

    if (oci_store_read(store, name, &fd, err) < 0)
        return -1;
    *out = fgetxattr(fd, LAYER_OPAQUE, value, sizeof value) == 1 && value[0] == 'y';
    return 0;
}

/* The layers that count, lowest first. */
static int list_layers(const struct oci_store *store, const struct oci_manifest *manifest,
                       char all[][OCI_LAYER_NAME], size_t *count, struct error *err)
{
    for (size_t i = 0; i < manifest->n_layers; i++) {
        bool is_first = false;
        char name[OCI_LAYER_NAME];
        (void)snprintf(name, sizeof name, ONE "%s", manifest->layers[i].hex);
        if (hides_all(store, name, &is_first, err) < 0)
            return -1;
        if (is_first)
            *count = 0;
        if (!comes_again(manifest, i))
            memcpy(all[(*count)++], name, sizeof name);
    }
    return 0;
}

int oci_store_merge(struct oci_store *store, const struct oci_manifest *manifest,
                    char names[][OCI_LAYER_NAME], size_t *count, struct error *err)
{
    autofree char(*all)[OCI_LAYER_NAME] = xcalloc(manifest->n_layers + 1, sizeof *all);
    size_t n = 0;

    if (await_measuring(store, err) < 0 || list_layers(store, manifest, all, &n, err) < 0)
        return -1;
    while (n > OCI_KEPT_LAYERS) {
        size_t group = n < GROUP ? n : GROUP;
        if (merge_lowest(store, all, group, err) < 0)
            return -1;
        memmove(all + 1, all + group, (n - group) * sizeof *all);
        n -= group - 1;
    }
    memcpy(names, all, n * sizeof *all);
    *count = n;
    return 0;
}

// ---- sweeping ----

struct sweeping {
    const char *runtimes;
    struct build_sweep *sweep;
};

static void sweep_layer(int dir_fd, const char *name, void *data)
{
    struct sweeping *sweeping = data;

    if (is_ours(name))
        build_sweep_take(sweeping->sweep, sweeping->runtimes, OCI_STORE, dir_fd, name);
}

void oci_store_sweep(const char *data_dir, struct build_sweep *sweep)
{
    autofree char *runtimes = xasprintf("%s/runtimes", data_dir);
    autofree char *path = xasprintf("%s/" OCI_STORE, runtimes);
    autofree char *lock = xasprintf("%s/.lock-layers", runtimes);
    autofd store_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autofd lock_fd = open(lock, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    struct sweeping sweeping = {runtimes, sweep};
    size_t before;

    if (store_fd < 0 || lock_fd < 0 || flock(lock_fd, LOCK_EX | LOCK_NB) < 0)
        return;
    do { // what a merged one was made of may go after it
        before = sweep->gone.count;
        for_names(store_fd, sweep_layer, &sweeping);
    } while (sweep->gone.count > before);
}
