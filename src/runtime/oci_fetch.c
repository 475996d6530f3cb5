/* SPDX-License-Identifier: Apache-2.0 */
/* Brings images here and checks them; see oci_fetch.h. */
#include "runtime/oci_fetch.h"

#include "base/buffer.h"
#include "base/fd.h"
#include "base/mem.h"
#include "runtime/oci_skopeo.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAYOUT "oci:"
#define PIECE 262144

// ---- where from ----

int oci_check_source(const char *source, struct error *err)
{
    static const char *const kinds[] = {"docker://", LAYOUT, "oci-archive:", "docker-archive:"};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        size_t length = strlen(kinds[i]);
        bool is_path = i > 0;
        if (strncmp(source, kinds[i], length) != 0)
            continue;
        if (strlen(source) > 2000 || !source[length] || strpbrk(source, " \t\r\n\"'\\"))
            return error_refuse(err, ERROR_INVALID, "image",
                                "'%.200s' names no image; write such as %sNAME", source, kinds[i]);
        if (is_path && source[length] != '/')
            return error_refuse(err, ERROR_INVALID, "image",
                                "'%.200s' needs an absolute path after '%s'", source, kinds[i]);
        return 0;
    }
    return error_refuse(err, ERROR_INVALID, "image",
                        "'%.200s' is no place that an image can come from; write "
                        "docker://REGISTRY/NAME:TAG, oci:DIR, oci-archive:FILE or "
                        "docker-archive:FILE",
                        source);
}

// ---- blobs ----

static char *blob_path(const struct oci_fetched *fetched, const char *hex)
{
    return xasprintf("%s/sha256/%s", fetched->blobs, hex);
}

static int open_regular(const char *path, const char *what, struct error *err)
{
    struct stat info;
    autofd fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENOTDIR))
        return error_set(err, ERROR_NOT_FOUND, "%s: there is no file '%s'", what, path);
    if (fd < 0 || fstat(fd, &info) < 0)
        return error_sys(err, "open '%s'", path);
    if (!S_ISREG(info.st_mode))
        return error_set(err, ERROR_INVALID, "%s: '%s' is no file", what, path);
    return take_fd(fd);
}

/* Reads at most `size` bytes and one; copies them where to_fd is not -1. */
static int hash_file(int fd, int to_fd, uint64_t size, uint64_t *length, char hex[SHA256_TEXT],
                     struct error *err)
{
    autofree char *piece = xcalloc(1, PIECE);
    struct sha256 sha;

    *length = 0;
    sha256_init(&sha);
    while (*length <= size) {
        ssize_t got = fd_read_full(fd, piece, PIECE);
        if (got < 0)
            return error_sys(err, "read a blob");
        if (got == 0)
            break;
        if (to_fd >= 0 && fd_write_all(to_fd, piece, (size_t)got) < 0)
            return error_sys(err, "write a blob");
        sha256_add(&sha, piece, (size_t)got);
        *length += (uint64_t)got;
    }
    sha256_end(&sha, hex);
    return 0;
}

static int compare(const struct oci_descriptor *named, uint64_t length, const char *hex,
                   struct error *err)
{
    if (length == named->size && strcmp(hex, named->hex) == 0)
        return 0;
    if (length != named->size)
        return error_refuse(err, ERROR_DAMAGED, "image",
                            "the blob sha256:%s has %s than the %llu bytes it should have",
                            named->hex, length > named->size ? "more" : "fewer",
                            (unsigned long long)named->size);
    return error_refuse(err, ERROR_DAMAGED, "image",
                        "the blob that should be sha256:%s is sha256:%s: the image is damaged, or "
                        "not what it says",
                        named->hex, hex);
}

int oci_fetched_open(const struct oci_fetched *fetched, const struct oci_descriptor *layer, int *fd,
                     struct error *err)
{
    autofree char *path = blob_path(fetched, layer->hex);
    char hex[SHA256_TEXT];
    uint64_t length;
    autofd blob = open_regular(path, "the image is not whole", err);

    if (blob < 0 || hash_file(blob, -1, layer->size, &length, hex, err) < 0)
        return -1;
    if (compare(layer, length, hex, err) < 0) {
        (void)unlink(path); // or it would be taken for good the next time
        return -1;
    }
    if (lseek(blob, 0, SEEK_SET) < 0)
        return error_sys(err, "read '%s'", path);
    *fd = take_fd(blob);
    return 0;
}

/* A text of an image, compared with its digest and read. */
static int read_text(const struct oci_fetched *fetched, const char *what,
                     const struct oci_descriptor *named, struct data_document **out,
                     struct error *err)
{
    autobuffer text = {.maximum = OCI_MAX_TEXT};
    autofd fd = -1;

    if (named->size > OCI_MAX_TEXT)
        return error_set(err, ERROR_LIMIT, "%s has %llu bytes; %zu is the most", what,
                         (unsigned long long)named->size, OCI_MAX_TEXT);
    if (oci_fetched_open(fetched, named, &fd, err) < 0 || fd_read_buffer(fd, &text, err) < 0)
        return error_wrap(err, "%s", what);
    return oci_read(what, text.data ? text.data : "", text.length, out, err);
}

// ---- a layout in a directory ----

/* "DIR" or "DIR:NAME", where DIR is what is there. */
static void split_layout(const char *place, char dir[PATH_MAX], const char **name)
{
    const char *colon = strrchr(place, ':');
    struct stat info;

    *name = NULL;
    (void)snprintf(dir, PATH_MAX, "%s", place);
    if (!colon || stat(place, &info) == 0)
        return;
    dir[colon - place] = '\0';
    *name = colon + 1;
}

static int copy_blob(const struct oci_fetched *fetched, const char *dir,
                     const struct oci_descriptor *named, struct error *err)
{
    autofree char *from = xasprintf("%s/blobs/sha256/%s", dir, named->hex);
    autofree char *to = blob_path(fetched, named->hex);
    autofree char *part = xasprintf("%s.part-%d", to, (int)getpid());
    char hex[SHA256_TEXT];
    uint64_t length;
    struct stat info;

    if (stat(to, &info) == 0 && (uint64_t)info.st_size == named->size)
        return 0; // compared when it is opened
    autofd in = open_regular(from, "the image is not whole", err);
    if (in < 0)
        return -1;
    (void)unlink(part);
    autofd out = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return error_sys(err, "make '%s'", part);
    int result = hash_file(in, out, named->size, &length, hex, err);
    if (result == 0)
        result = compare(named, length, hex, err);
    if (result == 0 && rename(part, to) < 0)
        result = error_sys(err, "keep '%s'", to);
    if (result < 0)
        (void)unlink(part);
    return result;
}

/* The text `index.json`, which is named by nothing. */
static int read_index(const char *dir, struct data_document **out, struct error *err)
{
    autofree char *path = xasprintf("%s/index.json", dir);
    autobuffer text = {.maximum = OCI_MAX_TEXT};
    autofd fd = open_regular(path, "this is no image layout", err);

    if (fd < 0)
        return -1;
    if (fd_read_buffer(fd, &text, err) < 0)
        return error_wrap(err, "read '%s'", path);
    return oci_read("the index", text.data ? text.data : "", text.length, out, err);
}

/* Down from an index to the manifest for this machine. `from` NULL: the blobs are here. */
static int find_manifest(struct oci_fetched *fetched, const char *dir, const char *from,
                         const char *name, struct error *err)
{
    autoptr(data_document) document = NULL;

    if (read_index(dir, &document, err) < 0)
        return -1;
    for (unsigned depth = 0; oci_is_index(document->root); depth++) {
        if (depth == OCI_MAX_DEPTH)
            return error_refuse(err, ERROR_INVALID, "image",
                                "indexes of the image lead to each other more than %d times",
                                OCI_MAX_DEPTH);
        if (oci_index_choose(document->root, depth ? NULL : name, &fetched->image, err) < 0)
            return -1;
        if (from && copy_blob(fetched, from, &fetched->image, err) < 0)
            return -1;
        // the texts of the entry go with the index
        fetched->image.media_type = fetched->image.os = fetched->image.architecture =
            fetched->image.variant = fetched->image.name = "";
        data_document_free(take(document));
        if (read_text(fetched, "the manifest", &fetched->image, &document, err) < 0)
            return -1;
    }
    fetched->documents[0] = take(document);
    return oci_manifest_read(fetched->documents[0]->root, &fetched->manifest, err);
}

static int read_config(struct oci_fetched *fetched, struct error *err)
{
    if (read_text(fetched, "the image's config", &fetched->manifest.config, &fetched->documents[1],
                  err) < 0)
        return -1;
    return oci_config_read(fetched->documents[1]->root, fetched->manifest.n_layers,
                           &fetched->config, err);
}

static int fetch_layout(const struct making *making, const char *place, struct oci_fetched *out,
                        struct error *err)
{
    char dir[PATH_MAX];
    const char *name;

    split_layout(place, dir, &name);
    making_tell(making, "reading the image", 50);
    if (find_manifest(out, dir, dir, name, err) < 0 ||
        copy_blob(out, dir, &out->manifest.config, err) < 0 || read_config(out, err) < 0)
        return -1;
    for (size_t i = 0; i < out->manifest.n_layers; i++)
        if (copy_blob(out, dir, &out->manifest.layers[i], err) < 0)
            return -1;
    return 0;
}

// ---- all the others ----

static int fetch_by_skopeo(const struct making *making, const char *source, const char *cache,
                           struct oci_fetched *out, struct error *err)
{
    const struct runtime_definition *definition = making->definition;
    autofree char *name = xasprintf("layout-%s-%s", definition->name, definition->tags[0]);
    autofree char *layout = xasprintf("%s/%s", cache, name);
    struct error ignored;

    if (fd_remove_tree(AT_FDCWD, layout, err) < 0)
        return -1;
    int result = skopeo_copy(making, source, layout, out->blobs, err);
    if (result == 0)
        result = find_manifest(out, layout, NULL, NULL, err);
    (void)fd_remove_tree(AT_FDCWD, layout, &ignored);
    return result < 0 ? -1 : read_config(out, err);
}

// ---- the face ----

int oci_fetch(const struct making *making, const char *source, struct oci_fetched *out,
              struct error *err)
{
    autofree char *cache = xasprintf("%s/cache/images", making->options->data_dir);
    autofree char *lock = xasprintf("%s/lock", cache);

    *out = (struct oci_fetched){.lock_fd = -1, .blobs = xasprintf("%s/blobs", cache)};
    autofree char *dir = xasprintf("%s/sha256", out->blobs);
    if (oci_check_source(source, err) < 0 || fd_make_dirs(cache, 0700, err) < 0)
        return -1;
    out->lock_fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out->lock_fd < 0 || flock(out->lock_fd, LOCK_SH) < 0)
        return error_sys(err, "lock '%s'", lock);
    if (fd_make_dirs(dir, 0700, err) < 0)
        return -1;
    if (strncmp(source, LAYOUT, strlen(LAYOUT)) == 0)
        return fetch_layout(making, source + strlen(LAYOUT), out, err);
    return fetch_by_skopeo(making, source, cache, out, err);
}

void oci_fetched_done(struct oci_fetched *fetched)
{
    struct error ignored;

    if (fetched->lock_fd >= 0 && flock(fetched->lock_fd, LOCK_EX | LOCK_NB) == 0)
        (void)fd_remove_tree(AT_FDCWD, fetched->blobs, &ignored);
}

static void count_blobs(int cache_fd, struct runtime_unused *out)
{
    int fd = openat(cache_fd, "blobs/sha256", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autodir list = fd < 0 ? NULL : fdopendir(fd);
    struct stat info;

    if (!list)
        closep(&fd);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (fstatat(dirfd(list), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(info.st_mode))
            continue;
        out->count++;
        out->bytes += (uint64_t)info.st_size;
    }
}

void oci_cache_sweep(const char *data_dir, bool is_trial, struct runtime_unused *out)
{
    autofree char *path = xasprintf("%s/cache/images", data_dir);
    autodir names = opendir(path);
    struct error ignored;

    if (!names)
        return;
    autofd lock_fd = openat(dirfd(names), "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (lock_fd < 0 || flock(lock_fd, LOCK_EX | LOCK_NB) < 0)
        return;
    count_blobs(dirfd(names), out);
    for (struct dirent *entry; !is_trial && (entry = readdir(names));)
        if (strcmp(entry->d_name, "blobs") == 0 || strncmp(entry->d_name, "layout-", 7) == 0)
            (void)fd_remove_tree(dirfd(names), entry->d_name, &ignored);
}

void oci_fetched_clear(struct oci_fetched *fetched)
{
    free(fetched->manifest.layers);
    for (size_t i = 0; i < ARRAY_SIZE(fetched->documents); i++)
        data_document_free(fetched->documents[i]);
    free(fetched->blobs);
    closep(&fetched->lock_fd);
    *fetched = (struct oci_fetched){.lock_fd = -1};
}
