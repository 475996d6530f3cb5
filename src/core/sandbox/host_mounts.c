/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories of the host sandboxes get; see host_mounts.h. */
#include "core/sandbox/host_mounts.h"

#include "base/mem.h"
#include "base/path.h"
#include "engine/host_dir.h"

#include <fcntl.h>
#include <string.h>

_Static_assert(MOUNT_WISHES_MAX == BOX_MAX_MOUNTS, "both are the same limit");

#define SETTING "--mount-allow (BURROW_MOUNT_ALLOW)"

/* The next of the operator's directories, without slashes at its end; NULL behind the last. The caller frees. */
static char *next_allowed(const char **list)
{
    *list += strspn(*list, ", ");
    size_t length = strcspn(*list, ",");
    const char *text = *list;

    *list += length;
    while (length > 0 && (text[length - 1] == ' ' || (length > 1 && text[length - 1] == '/')))
        length--;
    return length ? xstrndup(text, length) : NULL;
}

/* The part of `source` below the directory: "" for itself, NULL where it is elsewhere. */
static const char *below(const char *directory, const char *source)
{
    size_t length = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

    if (strncmp(source, directory, length) != 0 || (source[length] && source[length] != '/'))
        return NULL;
    return source + length + strspn(source + length, "/");
}

static int open_below(const char *directory, const char *source, int *out, struct error *err)
{
    autofd root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return error_path(err, "open the allowed directory '%.300s'", directory);
    const char *rest = below(directory, source);
    return host_dir_open(root, *rest ? rest : ".", source, out, err);
}

static int refuse(const struct core_settings *settings, const char *source, struct error *err)
{
    if (!settings->mount_allow)
        return error_refuse(
            err, ERROR_DENIED, "mounts",
            "mounts: this server gives sandboxes no directories of its machine; its "
            "operator allows some with " SETTING);
    return error_refuse(err, ERROR_DENIED, "mounts",
                        "mounts: '%.300s' is not below a directory that this server's operator has "
                        "allowed with " SETTING,
                        source);
}

/* The first allowed directory that it is below decides. */
static int open_source(const struct core_settings *settings, const char *source, int *out,
                       struct error *err)
{
    for (const char *list = settings->mount_allow ? settings->mount_allow : ""; *list;) {
        autofree char *directory = next_allowed(&list);
        if (!directory || !below(directory, source))
            continue;
        if (open_below(directory, source, out, err) < 0) {
            (void)error_about(err, "mounts");
            return error_wrap(err, "mounts");
        }
        return 0;
    }
    return refuse(settings, source, err);
}

/* Texts alone. ".." is refused by the kernel too, where it leads out; here so that a path means one directory. */
static int check_source(const char *source, struct error *err)
{
    if (path_check_absolute(source, strlen(source), "mounts: the source", err) < 0)
        return error_about(err, "mounts");
    for (const char *at = source; *at; at += strcspn(at, "/")) {
        at += strspn(at, "/");
        if (strcspn(at, "/") == 2 && strncmp(at, "..", 2) == 0)
            return error_refuse(err, ERROR_INVALID, "mounts",
                                "mounts: the source '%.300s' must be a path without '..'", source);
    }
    return 0;
}

int host_mounts_check(const struct core_settings *settings, const struct mount_wish *wishes,
                      size_t count, struct error *err)
{
    if (count > MOUNT_WISHES_MAX)
        return error_refuse(err, ERROR_INVALID, "mounts", "mounts: at most %d", MOUNT_WISHES_MAX);
    for (size_t i = 0; i < count; i++) {
        autofd fd = -1;
        if (check_source(wishes[i].source, err) < 0)
            return -1;
        if (host_dir_check_target(wishes[i].target, err) < 0) {
            (void)error_about(err, "mounts");
            return error_wrap(err, "mounts");
        }
        if (open_source(settings, wishes[i].source, &fd, err) < 0)
            return -1;
    }
    return 0;
}

int host_mounts_open(const struct core_settings *settings, const char *packed,
                     struct host_mounts *out, struct error *err)
{
    mount_wishes_unpack(packed, &out->wishes);
    for (size_t i = 0; i < out->wishes.count; i++) {
        const struct mount_wish *wish = &out->wishes.items[i];
        int fd = -1;
        if (open_source(settings, wish->source, &fd, err) < 0) {
            // it was there once: the machine, and not what was asked for, is in the way
            (void)error_restate(err, error_is(err, ERROR_DENIED) ? ERROR_DENIED : ERROR_UNAVAILABLE,
                                "mounts");
            return error_wrap(err, "its host directory at '%.200s' is not to be had", wish->target);
        }
        out->mounts[out->count++] = (struct box_mount){fd, wish->target, wish->is_read_only};
    }
    return 0;
}

void host_mounts_clear(struct host_mounts *mounts)
{
    for (size_t i = 0; i < mounts->count; i++)
        closep(&mounts->mounts[i].fd);
    mounts->count = 0;
    mount_wishes_clear(&mounts->wishes);
}
