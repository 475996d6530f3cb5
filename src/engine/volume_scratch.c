/* SPDX-License-Identifier: Apache-2.0 */
/* Scratches: the calls of volume.h, and what the schemes do alike. */
#include "base/fd.h"
#include "base/mem.h"
#include "engine/volume_impl.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define MAX_NAME 64
#define TIGHT_PART 8 // of the volume

bool volume_is_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
    return length > 0 && length <= MAX_NAME && name[length] == '\0';
}

static int check_name(const char *name, struct error *err)
{
    if (volume_is_name(name))
        return 0;
    return error_set(err, ERROR_INVALID,
                     "a scratch is named by 1 to %d letters, digits and '-', not '%.80s'", MAX_NAME,
                     name);
}

int volume_scratch_create(struct volume *volume, const char *name,
                          const struct volume_limits *limits, int *dir_fd, struct error *err)
{
    if (check_name(name, err) < 0)
        return -1;
    if (volume->ops->create(volume, name, limits, dir_fd, err) == 0)
        return 0;
    if (err->sys == ENOSPC || err->sys == EDQUOT)
        (void)error_restate(err, ERROR_NO_SPACE, "volume");
    return error_wrap(err, "make scratch '%s'", name);
}

int volume_scratch_open(struct volume *volume, const char *name, int *dir_fd, struct error *err)
{
    return check_name(name, err) < 0 ? -1 : volume->ops->open(volume, name, dir_fd, err);
}

int volume_scratch_limit(struct volume *volume, const char *name,
                         const struct volume_limits *limits, struct error *err)
{
    if (check_name(name, err) < 0)
        return -1;
    if (volume->ops->limit(volume, name, limits, err) < 0)
        return error_wrap(err, "limit scratch '%s'", name);
    return 0;
}

int volume_scratch_usage(struct volume *volume, const char *name, bool is_exact, uint64_t *bytes,
                         struct error *err)
{
    if (check_name(name, err) < 0)
        return -1;
    if (volume->ops->usage(volume, name, is_exact, bytes, err) < 0)
        return error_wrap(err, "measure scratch '%s'", name);
    return 0;
}

int volume_scratch_remove(struct volume *volume, const char *name, struct error *err)
{
    if (check_name(name, err) < 0)
        return -1;
    if (volume->ops->remove(volume, name, err) < 0)
        return error_wrap(err, "remove scratch '%s'", name);
    return 0;
}

int volume_settle(struct volume *volume, struct error *err)
{
    return volume->ops->settle ? volume->ops->settle(volume, err) : 0;
}

bool volume_is_tight(struct volume *volume)
{
    struct volume_space space = {0};
    struct error ignored;

    return volume->ops->settle && volume_space(volume, &space, &ignored) == 0 &&
           space.free_bytes < space.total_bytes / TIGHT_PART;
}

int volume_fill_scratches(struct volume *volume, unsigned count, struct error *err)
{
    if (!volume->ops->fill || volume->ops->fill(volume, count, err) == 0)
        return 0;
    return error_wrap(err, "make spare scratches");
}

int volume_sweep(struct volume *volume, bool (*is_owned)(const char *name, void *data), void *data,
                 struct error *err)
{
    struct volume_names names = {0};
    struct error later;
    int result = 0;

    if (volume->ops->list(volume, &names, err) < 0)
        return error_wrap(err, "sweep the volume");
    for (size_t i = 0; i < names.count; i++) {
        if (is_owned(names.names[i], data))
            continue;
        if (volume_scratch_remove(volume, names.names[i], result < 0 ? &later : err) < 0)
            result = -1;
    }
    volume_names_clear(&names);
    if (volume->ops->sweep_rest && volume->ops->sweep_rest(volume, result < 0 ? &later : err) < 0)
        result = -1;
    return result < 0 ? error_wrap(err, "sweep the volume") : 0;
}

void volume_names_add(struct volume_names *names, const char *name)
{
    names->names = xrealloc(names->names, names->count + 1, sizeof *names->names);
    names->names[names->count++] = xstrdup(name);
}

void volume_names_clear(struct volume_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct volume_names){0};
}

int volume_make_places(int dir_fd, struct error *err)
{
    struct stat info;
    if (mkdirat(dir_fd, "upper", 0755) < 0 || mkdirat(dir_fd, "work", 0700) < 0)
        return error_sys(err, "make its directories");
    // the umask may have taken bits away, and a box whose top is 0700 serves nobody but its root
    if (fstatat(dir_fd, "upper", &info, AT_SYMLINK_NOFOLLOW) < 0 ||
        ((info.st_mode & 07777) != 0755 && fchmodat(dir_fd, "upper", 0755, 0) < 0))
        return error_sys(err, "open its directory 'upper' for everybody");
    return 0;
}

int volume_open_scratch_dir(struct volume *volume, const char *name, int *dir_fd, struct error *err)
{
    int fd = openat(volume->scratch_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return error_set(err, ERROR_NOT_FOUND, "there is no scratch '%s'", name);
    if (fd < 0)
        return error_sys(err, "open scratch '%s'", name);
    *dir_fd = fd;
    return 0;
}

int volume_list_dirs(struct volume *volume, struct volume_names *out, struct error *err)
{
    int fd = openat(volume->scratch_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        error_sys(err, "list the scratches");
        closep(&fd);
        return -1;
    }
    errno = 0;
    while ((entry = readdir(dir))) {
        if (volume_is_name(entry->d_name))
            volume_names_add(out, entry->d_name);
        errno = 0;
    }
    if (!errno)
        return 0;
    error_sys(err, "list the scratches");
    volume_names_clear(out);
    return -1;
}

int volume_fs_space(struct volume *volume, struct volume_space *out, struct error *err)
{
    struct statfs info;
    if (fstatfs(volume->dir_fd, &info) < 0)
        return error_sys(err, "measure the volume");
    uint64_t block = (uint64_t)info.f_bsize;
    struct volume_space space = {info.f_blocks * block, info.f_bavail * block};

    if (volume->scheme == VOLUME_LOOP_BTRFS) {
        autofd data_fd = openat(volume->dir_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (data_fd < 0 || fstatfs(data_fd, &info) < 0)
            return error_sys(err, "measure the disk behind the volume");
        uint64_t behind = info.f_bavail * (uint64_t)info.f_bsize;
        if (behind < space.free_bytes)
            space.free_bytes = behind;
    }
    *out = space;
    return 0;
}
