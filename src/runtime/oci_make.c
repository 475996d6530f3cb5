/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes of images: their layers, unpacked and shared, below a small root of their own that has what every box needs. */
#include "runtime/make.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/quote.h"
#include "engine/layer_impl.h"
#include "runtime/oci_fetch.h"
#include "runtime/oci_store.h"
#include "runtime/oci_user.h"
#include "runtime/tree.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define MAX_BYTES ((uint64_t)256 << 30) // of a layer's files
#define MAX_ENTRIES 4000000
#define SPARE_BYTES ((uint64_t)64 << 20) // that a layer leaves on the disk
#define SPARE_INODES 256

static const char *const places[] = {"", "../libexec/burrow/"};

/* Next to this program, as it is built; or where it is installed. */
static int find_archiver(char path[PATH_MAX], struct error *err)
{
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

    if (length < 0)
        return error_sys(err, "find the directory of this program");
    own[length] = '\0';
    *(strrchr(own, '/') + 1) = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        (void)snprintf(path, PATH_MAX, "%.3000s%sburrow-archive", own, places[i]);
        if (access(path, X_OK) == 0)
            return 0;
    }
    return error_set(err, ERROR_UNAVAILABLE,
                     "burrow-archive is neither in '%.300s' nor in '%.300s../libexec/burrow'; "
                     "install burrow as a whole",
                     own, own);
}

// ---- layers ----

/* No layer may fill the disk. */
static int bound(const struct making *making, struct oci_layer_task *task, struct error *err)
{
    struct statvfs space;

    if (fstatvfs(making->root_fd, &space) < 0)
        return error_sys(err, "look at '%s'", making->root);
    uint64_t available = (uint64_t)space.f_bavail * space.f_frsize;
    available = available > SPARE_BYTES ? available - SPARE_BYTES : 0;
    task->max_bytes = available < MAX_BYTES ? available : MAX_BYTES;
    uint64_t inodes = space.f_favail > SPARE_INODES ? space.f_favail - SPARE_INODES : 0;
    task->max_entries = space.f_files && inodes < MAX_ENTRIES ? inodes : MAX_ENTRIES;
    return 0;
}

static int unpack_layers(const struct making *making, const struct oci_fetched *fetched,
                         struct oci_store *store, struct oci_layer_report *report,
                         struct error *err)
{
    size_t count = fetched->manifest.n_layers;
    char program[PATH_MAX], detail[64];
    struct oci_layer_task task = {.program = program, .cancel_fd = making->options->cancel_fd};

    if (find_archiver(program, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct oci_descriptor *layer = &fetched->manifest.layers[i];
        autofd fd = -1;
        if (oci_store_has(store, layer->hex))
            continue;
        (void)snprintf(detail, sizeof detail, "%zu of %zu", i + 1, count);
        making_tell_detail(making, "unpacking layers", detail, (unsigned)(420 + 380 * i / count));
        if (bound(making, &task, err) < 0 || oci_fetched_open(fetched, layer, &fd, err) < 0 ||
            oci_store_add(store, layer->hex, fd, &task, report, err) < 0)
            return error_wrap(err, "layer %zu of %zu", i + 1, count);
    }
    return 0;
}

// ---- what every box needs ----

static const struct tree_entry needed[] = {
    {"etc/hosts", S_IFREG | 0644,
     "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"},
    {"etc/hostname", S_IFREG | 0644, "burrow\n"},
    {"etc/resolv.conf", S_IFREG | 0644, "nameserver 127.0.0.1\n"},
};

/* Over the image's own, which are empty, or of the machine it was made on. Where its etc is no directory, it has to do without. */
static int add_needed(const struct making *making, const struct layer_dir *root, struct error *err)
{
    const struct tree_entry *end = needed + ARRAY_SIZE(needed);
    struct layer_entry etc;

    if (layer_lookup(root, root, "etc", &etc, err) < 0)
        return -1;
    struct tree_entry place = {"etc", S_IFDIR | 0755, NULL, 0};
    bool is_there = etc.kind == ENTRY_DIR, is_other = etc.kind == ENTRY_FILE;
    struct stat info = etc.info;
    layer_entry_clear(&etc);
    if (is_other)
        return 0;
    for (const struct tree_entry *entry = needed; entry < end; entry++) {
        const struct tree_entry entries[] = {place, *entry, {0}};
        if (tree_write(making->root_fd, entries, err) < 0)
            return -1;
    }
    if (is_there && (fchownat(making->root_fd, "etc", info.st_uid, info.st_gid, 0) < 0 ||
                     fchmodat(making->root_fd, "etc", info.st_mode & 07777, 0) < 0))
        return error_sys(err, "set the mode of 'etc'");
    return 0;
}

#define MAX_USERS ((size_t)4 << 20) // bytes of passwd or group

/* A file of the image's etc, as its layers show it; "" where there is none, or one that nobody could mean. */
static int read_etc(const struct layer_dir *root, const char *name, struct buffer *out,
                    struct error *err)
{
    struct layer_entry etc, entry = {.parent_fd = -1};
    int result = layer_lookup(root, root, "etc", &etc, err);

    if (result < 0)
        return -1;
    buffer_init(out, MAX_USERS);
    if (etc.kind == ENTRY_DIR)
        result = layer_lookup(root, &etc.dir, name, &entry, err);
    if (result == 0 && entry.kind == ENTRY_FILE && S_ISREG(entry.info.st_mode)) {
        autofd fd = openat(entry.parent_fd, entry.name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        struct error ignored;
        if (fd >= 0 && fd_read_buffer(fd, out, &ignored) < 0)
            buffer_clear(out);
    }
    layer_entry_clear(&entry);
    layer_entry_clear(&etc);
    return result;
}

/* A name that is in no file stays one: whoever runs a command as that is told so. */
static int resolve_user(const struct layer_dir *root, const char *user, char out[OCI_USER_TEXT],
                        struct error *err)
{
    autobuffer passwd = {0};
    autobuffer group = {0};

    if (!user)
        return 0;
    if (read_etc(root, "passwd", &passwd, err) < 0 || read_etc(root, "group", &group, err) < 0)
        return -1;
    if (!oci_user_resolve(user, passwd.data ? passwd.data : "", group.data ? group.data : "", out))
        out[0] = '\0';
    return 0;
}

static int fit(const struct making *making, const struct oci_store *store,
               char names[][OCI_LAYER_NAME], size_t count, const char *user,
               char ids[OCI_USER_TEXT], struct error *err)
{
    int fds[OCI_KEPT_LAYERS], result = 0;
    struct layer_dir root = {0};
    size_t n_fds = 0;

    for (size_t i = count; i-- > 0 && result == 0;) { // top first
        result = oci_store_read(store, names[i], &fds[n_fds], err);
        n_fds += result == 0;
    }
    if (result == 0)
        result = layer_dir_root(fds, n_fds, &root, err);
    if (result == 0)
        result = add_needed(making, &root, err);
    if (result == 0)
        result = resolve_user(&root, user, ids, err);
    layer_dir_clear(&root);
    while (n_fds)
        closep(&fds[--n_fds]);
    return result;
}

// ---- what it says of itself ----

/* The manifest's strings are freed with its text: all of ours become part of that. */
struct words {
    char *text;
    size_t used;
};

static size_t measure(const char **list)
{
    size_t bytes = 0;

    for (; list && *list; list++)
        bytes += strlen(*list) + 1;
    return bytes;
}

static char *keep(struct words *words, const char *text)
{
    char *kept = words->text + words->used;

    memcpy(kept, text, strlen(text) + 1);
    words->used += strlen(text) + 1;
    return kept;
}

static void add(struct words *words, char ***list, size_t *count, const char *text)
{
    *list = xrealloc(*list, *count + 2, sizeof **list);
    (*list)[(*count)++] = keep(words, text);
    (*list)[*count] = NULL;
}

static bool is_set(const struct manifest *manifest, const char *pair)
{
    size_t length = strcspn(pair, "=") + 1;

    for (size_t i = 0; i < manifest->n_env; i++)
        if (strncmp(manifest->env[i], pair, length) == 0)
            return true;
    return false;
}

/* What the catalog's file says goes before what the image says. */
static void describe(struct making *making, const struct oci_config *config,
                     char names[][OCI_LAYER_NAME], size_t count)
{
    struct manifest *manifest = making->manifest;
    bool has_command = manifest->n_command > 0;
    const char **lists[] = {has_command ? NULL : config->entrypoint,
                            has_command ? NULL : config->command};
    struct words words = {
        .text = xcalloc(1, measure(config->env) + measure(lists[0]) + measure(lists[1]) +
                               strlen(config->user ? config->user : "") + 1 +
                               strlen(config->directory ? config->directory : "") + 1 +
                               strlen(config->description) + 1 + count * OCI_LAYER_PATH)};

    manifest->text = words.text;
    for (const char **pair = config->env; pair && *pair; pair++)
        if (!is_set(manifest, *pair))
            add(&words, &manifest->env, &manifest->n_env, *pair);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        for (const char **word = lists[i]; word && *word; word++)
            add(&words, &manifest->command, &manifest->n_command, *word);
    if (config->user)
        manifest->user = keep(&words, config->user);
    if (config->directory)
        manifest->directory = keep(&words, config->directory);
    if (*config->description)
        manifest->description = keep(&words, config->description);
    for (size_t i = count; i-- > 0;) { // top first
        char path[OCI_LAYER_PATH];
        (void)snprintf(path, sizeof path, OCI_STORE "/%s", names[i]);
        add(&words, &manifest->layers, &manifest->n_layers, path);
    }
}

static void tell_left_out(const struct making *making, const struct oci_layer_report *report)
{
    char note[160];

    if (report->left_out)
        (void)snprintf(note, sizeof note,
                       "left out %llu device node%s or pipe%s, which no sandbox has from an image",
                       (unsigned long long)report->left_out, report->left_out == 1 ? "" : "s",
                       report->left_out == 1 ? "" : "s");
    if (report->left_out)
        making_note(making, note);
    if (report->has_strangers)
        making_note(making, "files of owners beyond 65535, which no sandbox has, are nobody's");
}

// ---- all of it ----

static int make_from(struct making *making, struct oci_fetched *fetched, struct oci_store *store,
                     struct error *err)
{
    char names[OCI_KEPT_LAYERS][OCI_LAYER_NAME];
    struct oci_layer_report report = {0};
    char ids[OCI_USER_TEXT] = "";
    size_t count = 0;

    if (unpack_layers(making, fetched, store, &report, err) < 0)
        return -1;
    if (fetched->manifest.n_layers > OCI_KEPT_LAYERS)
        making_tell(making, "merging layers", 800);
    if (oci_store_merge(store, &fetched->manifest, names, &count, err) < 0 ||
        fit(making, store, names, count, fetched->config.user, ids, err) < 0)
        return -1;
    making_tell(making, "writing layers to disk", 840);
    if (oci_store_keep(store, err) < 0)
        return -1;
    if (ids[0])
        fetched->config.user = ids; // copied
    describe(making, &fetched->config, names, count);
    tell_left_out(making, &report);
    return 0;
}

int make_oci(struct making *making, struct error *err)
{
    struct oci_fetched fetched = {.lock_fd = -1};
    struct oci_store *store = NULL;
    int result = oci_fetch(making, making->definition->image, &fetched, err);

    if (result == 0)
        result = oci_store_open(making->options, &store, err);
    if (result == 0)
        result = make_from(making, &fetched, store, err);
    if (result == 0)
        oci_fetched_done(&fetched);
    else
        quote_scrub(err->text); // whatever the image calls its things
    oci_fetched_clear(&fetched);
    making->layers = store; // held until the build is in its place
    return result;
}
