/* SPDX-License-Identifier: Apache-2.0 */
/* Writes images; see oci_writer.h. */
#include "runtime/oci_writer.h"

#include "base/buffer.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "data/json_writer.h"
#include "runtime/oci_image.h"
#include "runtime/oci_tar.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROOM 262144
#define LAYER_TYPE "application/vnd.oci.image.layer.v1.tar"
#define CONFIG_TYPE "application/vnd.oci.image.config.v1+json"
#define MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define INDEX_TYPE "application/vnd.oci.image.index.v1+json"
#define LAYOUT_TEXT "{\"imageLayoutVersion\":\"1.0.0\"}"

struct blob {
    char hex[SHA256_TEXT];
    uint64_t size;
};

struct oci_writer {
    int dir_fd; // a layout in a directory; -1: in a tar
    int fd;     // of the blob under way; of the tar
    uint64_t maximum;
    uint64_t at;    // end of the tar
    uint64_t start; // of the blob under way, there
    struct sha256 sha;
    uint64_t size; // of the blob so far
    struct blob *layers;
    size_t n_layers;
    size_t used;
    uint8_t room[ROOM];
};

// ---- opening ----

static struct oci_writer *make_writer(int dir_fd, int fd, uint64_t maximum)
{
    struct oci_writer *writer = xnew(struct oci_writer);

    writer->dir_fd = dir_fd;
    writer->fd = fd;
    writer->maximum = maximum;
    return writer;
}

static bool is_empty(const char *path)
{
    autodir dir = opendir(path);
    unsigned names = 0;

    while (dir && readdir(dir))
        names++;
    return names <= 2;
}

int oci_writer_open_dir(const char *path, struct oci_writer **out, struct error *err)
{
    autofree char *blobs = xasprintf("%s/blobs/sha256", path);

    if (!is_empty(path))
        return error_set(err, ERROR_EXISTS, "'%s' is there already and not empty", path);
    if (fd_make_dirs(blobs, 0755, err) < 0)
        return -1;
    autofd dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return error_sys(err, "open '%s'", path);
    *out = make_writer(take_fd(dir_fd), -1, UINT64_MAX);
    return 0;
}

struct oci_writer *oci_writer_new(int fd, uint64_t maximum)
{
    return make_writer(-1, fd, maximum);
}

void oci_writer_free(struct oci_writer *writer)
{
    if (!writer)
        return;
    if (writer->dir_fd >= 0)
        closep(&writer->fd);
    closep(&writer->dir_fd);
    free(writer->layers);
    free(writer);
}

// ---- blobs ----

static int write_failed(struct error *err)
{
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG
               ? error_set(err, ERROR_NO_SPACE, "the disk is full: write the image")
               : error_sys(err, "write the image");
}

static int flush(struct oci_writer *writer, struct error *err)
{
    if (writer->used && fd_write_all(writer->fd, writer->room, writer->used) < 0)
        return write_failed(err);
    sha256_add(&writer->sha, writer->room, writer->used);
    writer->used = 0;
    return 0;
}

static int add(void *data, const void *bytes, size_t length, struct error *err)
{
    struct oci_writer *writer = data;

    if (length > writer->maximum - writer->at - writer->size)
        return error_set(err, ERROR_LIMIT, "the image gets larger than %llu bytes",
                         (unsigned long long)writer->maximum);
    writer->size += length;
    while (length) {
        size_t part = ROOM - writer->used < length ? ROOM - writer->used : length;
        memcpy(writer->room + writer->used, bytes, part);
        writer->used += part;
        bytes = (const uint8_t *)bytes + part;
        length -= part;
        if (writer->used == ROOM && flush(writer, err) < 0)
            return -1;
    }
    return 0;
}

static int begin_blob(struct oci_writer *writer, struct error *err)
{
    sha256_init(&writer->sha);
    writer->size = writer->used = 0;
    if (writer->dir_fd < 0) { // its head is written when all is known that it says
        writer->start = writer->at;
        if (writer->maximum - writer->at < 4 * OCI_TAR_BLOCK)
            return error_set(err, ERROR_LIMIT, "the image gets too large");
        writer->at += OCI_TAR_BLOCK;
        return lseek(writer->fd, (off_t)writer->at, SEEK_SET) < 0 ? write_failed(err) : 0;
    }
    closep(&writer->fd);
    (void)unlinkat(writer->dir_fd, "blobs/sha256/.part", 0);
    writer->fd = openat(writer->dir_fd, "blobs/sha256/.part",
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return writer->fd < 0 ? error_sys(err, "make a blob") : 0;
}

/* The head of what was written in the tar, and up to a whole block behind it. */
static int close_entry(struct oci_writer *writer, const char *name, struct error *err)
{
    const struct files_item item = {
        .path = name, .target = "", .mode = S_IFREG | 0644, .size = writer->size};
    uint8_t head[OCI_TAR_BLOCK];

    oci_tar_head(&item, head);
    if (pwrite(writer->fd, head, sizeof head, (off_t)writer->start) != sizeof head)
        return write_failed(err);
    writer->at += (writer->size + OCI_TAR_BLOCK - 1) / OCI_TAR_BLOCK * OCI_TAR_BLOCK;
    writer->size = 0;
    return ftruncate(writer->fd, (off_t)writer->at) < 0 ? write_failed(err) : 0;
}

static int end_blob(struct oci_writer *writer, struct blob *out, struct error *err)
{
    char path[100];

    if (flush(writer, err) < 0)
        return -1;
    sha256_end(&writer->sha, out->hex);
    out->size = writer->size;
    (void)snprintf(path, sizeof path, "blobs/sha256/%s", out->hex);
    if (writer->dir_fd < 0)
        return close_entry(writer, path, err);
    writer->size = 0;
    if (fsync(writer->fd) < 0 ||
        renameat(writer->dir_fd, "blobs/sha256/.part", writer->dir_fd, path) < 0)
        return write_failed(err);
    return 0;
}

static int put_blob(struct oci_writer *writer, const struct buffer *text, struct blob *out,
                    struct error *err)
{
    if (begin_blob(writer, err) < 0 || add(writer, text->data, text->length, err) < 0)
        return -1;
    return end_blob(writer, out, err);
}

/* A file of the layout that has a name of its own. */
static int put_file(struct oci_writer *writer, const char *name, const char *text, size_t length,
                    struct error *err)
{
    if (writer->dir_fd >= 0)
        return fd_replace_file(writer->dir_fd, name, text, length, 0644, err);
    if (begin_blob(writer, err) < 0 || add(writer, text, length, err) < 0 || flush(writer, err) < 0)
        return -1;
    return close_entry(writer, name, err);
}

// ---- layers ----

int oci_writer_begin_layer(struct oci_writer *writer, struct error *err)
{
    return begin_blob(writer, err);
}

int oci_writer_entry(struct oci_writer *writer, const struct files_item *item,
                     const struct oci_attribute *attributes, size_t n_attributes, struct error *err)
{
    return oci_tar_entry(item, attributes, n_attributes, add, writer, err);
}

int oci_writer_content(struct oci_writer *writer, int fd, uint64_t size, struct error *err)
{
    static const uint8_t zeros[OCI_TAR_BLOCK];
    size_t rest = (size_t)(size % OCI_TAR_BLOCK);
    char piece[65536];

    for (uint64_t left = size; left;) {
        ssize_t got = fd_read_full(fd, piece, left < sizeof piece ? (size_t)left : sizeof piece);
        if (got <= 0)
            return error_sys_code(err, got < 0 ? errno : EIO, "read a file of the image");
        if (add(writer, piece, (size_t)got, err) < 0)
            return -1;
        left -= (uint64_t)got;
    }
    return rest ? add(writer, zeros, OCI_TAR_BLOCK - rest, err) : 0;
}

static int put_marker(struct oci_writer *writer, const char *path, struct error *err)
{
    const struct files_item item = {.path = path, .target = "", .mode = S_IFREG | 0644};
    return oci_writer_entry(writer, &item, NULL, 0, err);
}

int oci_writer_hide(struct oci_writer *writer, const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    autofree char *marker = xasprintf("%.*s.wh.%s", (int)(name - path), path, name);

    return put_marker(writer, marker, err);
}

int oci_writer_hide_all(struct oci_writer *writer, const char *directory, struct error *err)
{
    autofree char *marker = xasprintf("%s%s.wh..wh..opq", directory, *directory ? "/" : "");
    return put_marker(writer, marker, err);
}

int oci_writer_end_layer(struct oci_writer *writer, struct error *err)
{
    static const uint8_t zeros[2 * OCI_TAR_BLOCK];

    writer->layers = xrealloc(writer->layers, writer->n_layers + 1, sizeof *writer->layers);
    if (add(writer, zeros, sizeof zeros, err) < 0 ||
        end_blob(writer, &writer->layers[writer->n_layers], err) < 0)
        return -1;
    writer->n_layers++;
    return 0;
}

// ---- texts ----

static void write_pair(struct json_writer *json, const char *key, const char *text)
{
    if (!text)
        return;
    json_key(json, key);
    json_string(json, text);
}

static void write_descriptor(struct json_writer *json, const char *type, const struct blob *blob,
                             const char *name)
{
    char digest[SHA256_TEXT + 8];

    (void)snprintf(digest, sizeof digest, "sha256:%s", blob->hex);
    json_map_begin(json);
    write_pair(json, "mediaType", type);
    write_pair(json, "digest", digest);
    json_key(json, "size");
    json_natural(json, blob->size);
    if (name) {
        json_key(json, "annotations");
        json_map_begin(json);
        write_pair(json, "org.opencontainers.image.ref.name", name);
        json_map_end(json);
    }
    json_map_end(json);
}

static int write_config(const struct oci_writer *writer, const struct oci_writer_config *config,
                        struct buffer *out, struct error *err)
{
    struct json_writer json;
    char created[32], digest[SHA256_TEXT + 8];
    time_t seconds = (time_t)config->created_s;
    struct tm utc;

    (void)strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    json_writer_init(&json, out);
    json_map_begin(&json);
    write_pair(&json, "created", created);
    write_pair(&json, "architecture", oci_architecture());
    write_pair(&json, "os", "linux");
    json_key(&json, "config");
    json_map_begin(&json);
    json_strings(&json, "Env", config->env);
    json_strings(&json, "Cmd", config->command);
    write_pair(&json, "User", config->user);
    write_pair(&json, "WorkingDir", config->directory);
    json_map_end(&json);
    json_key(&json, "rootfs");
    json_map_begin(&json);
    write_pair(&json, "type", "layers");
    json_key(&json, "diff_ids"); // of what is inside: they are not compressed
    json_list_begin(&json);
    for (size_t i = 0; i < writer->n_layers; i++) {
        (void)snprintf(digest, sizeof digest, "sha256:%s", writer->layers[i].hex);
        json_string(&json, digest);
    }
    json_list_end(&json);
    json_map_end(&json);
    json_map_end(&json);
    return json_writer_finish(&json, err);
}

static int write_manifest(const struct oci_writer *writer, const struct blob *config,
                          struct buffer *out, struct error *err)
{
    struct json_writer json;

    json_writer_init(&json, out);
    json_map_begin(&json);
    json_key(&json, "schemaVersion");
    json_natural(&json, 2);
    write_pair(&json, "mediaType", MANIFEST_TYPE);
    json_key(&json, "config");
    write_descriptor(&json, CONFIG_TYPE, config, NULL);
    json_key(&json, "layers");
    json_list_begin(&json);
    for (size_t i = 0; i < writer->n_layers; i++)
        write_descriptor(&json, LAYER_TYPE, &writer->layers[i], NULL);
    json_list_end(&json);
    json_map_end(&json);
    return json_writer_finish(&json, err);
}

static int write_index(const struct blob *manifest, const char *name, struct buffer *out,
                       struct error *err)
{
    struct json_writer json;

    json_writer_init(&json, out);
    json_map_begin(&json);
    json_key(&json, "schemaVersion");
    json_natural(&json, 2);
    write_pair(&json, "mediaType", INDEX_TYPE);
    json_key(&json, "manifests");
    json_list_begin(&json);
    write_descriptor(&json, MANIFEST_TYPE, manifest, name);
    json_list_end(&json);
    json_map_end(&json);
    return json_writer_finish(&json, err);
}

/* A tar ends with two blocks of zeros. */
static int end_tar(struct oci_writer *writer, struct error *err)
{
    if (writer->dir_fd >= 0)
        return 0;
    return ftruncate(writer->fd, (off_t)(writer->at + 2 * OCI_TAR_BLOCK)) < 0 ? write_failed(err)
                                                                              : 0;
}

int oci_writer_finish(struct oci_writer *writer, const struct oci_writer_config *config,
                      struct error *err)
{
    autobuffer about = {0};
    autobuffer manifest = {0};
    autobuffer index = {0};
    struct blob about_blob, manifest_blob;

    if (write_config(writer, config, &about, err) < 0 ||
        put_blob(writer, &about, &about_blob, err) < 0 ||
        write_manifest(writer, &about_blob, &manifest, err) < 0 ||
        put_blob(writer, &manifest, &manifest_blob, err) < 0 ||
        write_index(&manifest_blob, config->name, &index, err) < 0 ||
        put_file(writer, "oci-layout", LAYOUT_TEXT, strlen(LAYOUT_TEXT), err) < 0 ||
        put_file(writer, "index.json", index.data, index.length, err) < 0)
        return -1;
    return end_tar(writer, err);
}
