/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes as images; see oci_export.h. */
#include "runtime/oci_export.h"

#include "archive/records.h"
#include "base/fd.h"
#include "base/mem.h"
#include "engine/layer_impl.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#define LAYOUT "oci:"
#define MAX_ATTRIBUTES 64

struct exporting {
    struct oci_writer *writer;
    struct layer_links links;
    char path[16384]; // of what is at hand, below the layer
};

// ---- attributes ----

struct attributes {
    struct oci_attribute list[MAX_ATTRIBUTES];
    size_t count;
    char names[65536];
    uint8_t values[65536];
};

/* Those that an image may bring. What goes away meanwhile, or is too much, is left out. */
static void read_attributes(int fd, struct attributes *out)
{
    ssize_t length = flistxattr(fd, out->names, sizeof out->names);
    size_t used = 0;

    out->count = 0;
    for (ssize_t at = 0; at < length && out->count < MAX_ATTRIBUTES;
         at += (ssize_t)strlen(out->names + at) + 1) {
        const char *name = out->names + at;
        ssize_t size = records_is_attribute(name)
                           ? fgetxattr(fd, name, out->values + used, sizeof out->values - used)
                           : -1;
        if (size < 0)
            continue;
        out->list[out->count++] = (struct oci_attribute){name, out->values + used, (size_t)size};
        used += (size_t)size;
    }
}

static bool is_opaque(int fd)
{
    char value[2];
    return fgetxattr(fd, LAYER_OPAQUE, value, sizeof value) == 1 && value[0] == 'y';
}

// ---- entries ----

static struct files_item describe(const struct exporting *e, const struct stat *info)
{
    return (struct files_item){
        .path = e->path,
        .target = "",
        .mode = info->st_mode,
        .uid = info->st_uid,
        .gid = info->st_gid,
        .size = S_ISREG(info->st_mode) ? (uint64_t)info->st_size : 0,
        .mtime_ns = (int64_t)info->st_mtim.tv_sec * 1000000000,
        .links = 1,
    };
}

static int put_file(struct exporting *e, int dir_fd, const char *name, const struct stat *info,
                    struct error *err)
{
    struct files_item item = describe(e, info);
    autofree struct attributes *attributes = NULL;
    autofd fd = -1;

    if (info->st_nlink > 1) {
        const char *first = layer_links_meet(&e->links, info, e->path);
        if (first) {
            item.is_hard_link = true;
            item.target = first;
            item.size = 0;
            return oci_writer_entry(e->writer, &item, NULL, 0, err);
        }
    }
    fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open '%s' of a layer", e->path);
    attributes = xnew(struct attributes);
    read_attributes(fd, attributes);
    if (oci_writer_entry(e->writer, &item, attributes->list, attributes->count, err) < 0)
        return -1;
    return oci_writer_content(e->writer, fd, item.size, err);
}

static int put_link(struct exporting *e, int dir_fd, const char *name, const struct stat *info,
                    struct error *err)
{
    struct files_item item = describe(e, info);
    char target[PATH_MAX];
    ssize_t length = readlinkat(dir_fd, name, target, sizeof target - 1);

    if (length < 0)
        return error_sys(err, "read the link '%s' of a layer", e->path);
    target[length] = '\0';
    item.target = target;
    return oci_writer_entry(e->writer, &item, NULL, 0, err);
}

static int put_dir(struct exporting *e, int fd, unsigned depth, struct error *err);

static int put_subdir(struct exporting *e, int dir_fd, const char *name, const struct stat *info,
                      unsigned depth, struct error *err)
{
    struct files_item item = describe(e, info);
    autofd fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "open '%s' of a layer", e->path);
    if (fgetxattr(fd, LAYER_REDIRECT, NULL, 0) >= 0)
        return error_set(err, ERROR_INVALID,
                         "'%.300s' is a renamed directory of a layer below, which an image cannot "
                         "say",
                         e->path);
    if (depth >= LAYER_MAX_DEPTH)
        return error_set(err, ERROR_LIMIT, "directories are nested too deep");
    if (oci_writer_entry(e->writer, &item, NULL, 0, err) < 0 ||
        (is_opaque(fd) && oci_writer_hide_all(e->writer, e->path, err) < 0))
        return -1;
    return put_dir(e, fd, depth + 1, err);
}

static int put_name(struct exporting *e, int fd, const char *name, unsigned depth,
                    struct error *err)
{
    struct stat info;

    if (fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, "look at '%s' of a layer", e->path);
    if (layer_is_whiteout(&info))
        return oci_writer_hide(e->writer, e->path, err);
    if (S_ISDIR(info.st_mode))
        return put_subdir(e, fd, name, &info, depth, err);
    if (S_ISREG(info.st_mode))
        return put_file(e, fd, name, &info, err);
    return S_ISLNK(info.st_mode) ? put_link(e, fd, name, &info, err) : 0;
}

static int put_dir(struct exporting *e, int fd, unsigned depth, struct error *err)
{
    struct layer_names names = {0};
    size_t length = strlen(e->path);
    int result = layer_names_read(&names, fd, err);

    layer_names_sort(&names);
    for (size_t i = 0; result == 0 && i < names.count; i++) {
        size_t more = strlen(names.names[i]);
        if (length + more + 2 > sizeof e->path) {
            result = error_set(err, ERROR_LIMIT, "directories are nested too deep");
            break;
        }
        (void)snprintf(e->path + length, sizeof e->path - length, "%s%s", length ? "/" : "",
                       names.names[i]);
        result = put_name(e, fd, names.names[i], depth, err);
        e->path[length] = '\0';
    }
    layer_names_clear(&names);
    return result;
}

static int put_layer(struct oci_writer *writer, const char *path, struct error *err)
{
    autofree struct exporting *e = xnew(struct exporting);
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    e->writer = writer;
    int result = oci_writer_begin_layer(writer, err);
    if (result == 0)
        result = put_dir(e, fd, 0, err);
    if (result == 0)
        result = oci_writer_end_layer(writer, err);
    layer_links_clear(&e->links);
    return result;
}

// ---- the face ----

int oci_export_layers(struct oci_writer *writer, const struct runtime_image *image,
                      struct error *err)
{
    if (image->n_binds)
        return error_refuse(err, ERROR_INVALID, "runtime",
                            "the runtime '%s:%s' shows directories of this machine, which do not "
                            "travel",
                            image->name, image->tag);
    for (size_t i = image->n_layers; i-- > 0;)
        if (put_layer(writer, image->layers[i], err) < 0)
            return -1;
    return 0;
}

static int write_to(const struct runtime_image *image, const char *dir, struct error *err)
{
    const struct oci_writer_config config = {
        .name = image->tag,
        .env = (const char *const *)image->env,
        .command = (const char *const *)image->command,
        .user = image->user,
        .directory = image->directory,
        .created_s = (int64_t)time(NULL),
    };
    autoptr(oci_writer) writer = NULL;

    if (oci_writer_open_dir(dir, &writer, err) < 0)
        return -1;
    if (oci_export_layers(writer, image, err) == 0 && oci_writer_finish(writer, &config, err) == 0)
        return 0;
    struct error ignored;
    autofd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    static const char *const parts[] = {"blobs", "oci-layout", "index.json"};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        (void)fd_remove_tree(fd, parts[i], &ignored);
    return -1;
}

int runtime_export(const char *data_dir, const char *reference, const char *target,
                   struct error *err)
{
    autoptr(runtime_image) image = NULL;

    if (strncmp(target, LAYOUT, strlen(LAYOUT)) != 0 || target[strlen(LAYOUT)] != '/')
        return error_set(err, ERROR_INVALID, "'%.200s' is no place for an image; write oci:DIR",
                         target);
    if (runtime_image_open(data_dir, reference, &image, err) < 0)
        return -1;
    if (write_to(image, target + strlen(LAYOUT), err) < 0)
        return error_wrap(err, "export runtime '%s:%s'", image->name, image->tag);
    return 0;
}
