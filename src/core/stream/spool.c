/* SPDX-License-Identifier: Apache-2.0 */
/* The files of streams; see spool.h. */
#include "core/stream/spool.h"

#include "base/auto.h"
#include "base/fd.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

// What ids are made of (base/id.h).
static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz";
#define LETTERS (sizeof letters - 1)
#define FOLDERS (LETTERS * LETTERS)

#define SWEEP_FILES 1024 // looked at in one go

static const char *folder_name(unsigned index, char name[3])
{
    name[0] = letters[index / LETTERS];
    name[1] = letters[index % LETTERS];
    name[2] = '\0';
    return name;
}

/*
 * Has ext4 spread the directories over the disk (chattr(1), attribute T). All of them in one block group share its inodes, and an
 * ext4 without a journal walks over each that was freed in the last minutes before it takes one: where files come and go that
 * makes a new file cost half a millisecond instead of 10 µs.
 */
static void spread_folders(int spool_fd)
{
    int flags = 0;

    if (ioctl(spool_fd, FS_IOC_GETFLAGS, &flags) < 0 || flags & FS_TOPDIR_FL)
        return;
    flags |= FS_TOPDIR_FL;
    (void)ioctl(spool_fd, FS_IOC_SETFLAGS, &flags); // others do not know it and need it not
}

int spool_open(const char *data_dir, int *out_fd, struct error *err)
{
    char path[4096];

    if (snprintf(path, sizeof path, "%s/spool", data_dir) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, "the path of the data directory is too long");
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_sys(err, "make directory '%s'", path);
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open directory '%s'", path);
    spread_folders(fd);
    *out_fd = take_fd(fd);
    return 0;
}

const char *spool_path(const char *id, char path[SPOOL_PATH])
{
    (void)snprintf(path, SPOOL_PATH, "%.2s/%s", id, id);
    return path;
}

int spool_open_file(int spool_fd, const char *id, int flags, int *out_fd, struct error *err)
{
    char path[SPOOL_PATH], folder[] = {id[0], id[1], '\0'};

    flags |= O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    int fd = openat(spool_fd, spool_path(id, path), flags, 0600);
    // Its directory is made with the first file in it: making all at once would take a while.
    if (fd < 0 && errno == ENOENT && flags & O_CREAT) {
        (void)mkdirat(spool_fd, folder, 0700); // or the next call says why not
        fd = openat(spool_fd, path, flags, 0600);
    }
    if (fd < 0) {
        error_sys(err, "%s the file of stream '%s'", flags & O_CREAT ? "make" : "open", id);
        return error_about(err, "stream");
    }
    *out_fd = fd;
    return 0;
}

uint64_t spool_file_size(int spool_fd, const char *id)
{
    char path[SPOOL_PATH];
    struct stat status;

    if (fstatat(spool_fd, spool_path(id, path), &status, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    return (uint64_t)status.st_size;
}

int spool_remove_file(int spool_fd, const char *id, struct error *err)
{
    char path[SPOOL_PATH];

    if (unlinkat(spool_fd, spool_path(id, path), 0) < 0 && errno != ENOENT) {
        error_sys(err, "remove the file of stream '%s'", id);
        return error_about(err, "stream");
    }
    return 0;
}

static bool is_old(int folder_fd, const char *name, int64_t before_ms)
{
    struct stat status;

    if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(status.st_mode))
        return false;
    return status.st_mtim.tv_sec * 1000LL + status.st_mtim.tv_nsec / 1000000 < before_ms;
}

/* Of one folder; *looked counts the files. */
static int sweep_folder(int spool_fd, const char *name, const struct spool_sweep *sweep,
                        unsigned *looked, unsigned *removed, struct error *err)
{
    autofd fd = openat(spool_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return 0; // there never was a file in it
    autodir folder = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *file;

    if (!folder)
        return error_sys(err, "list directory 'spool/%s'", name);
    int folder_fd = take_fd(fd); // the stream's now
    while (*removed < sweep->limit && (file = readdir(folder))) {
        if (*file->d_name == '.')
            continue;
        ++*looked;
        if (!id_is_valid(file->d_name) || !is_old(folder_fd, file->d_name, sweep->before_ms))
            continue;
        int is_wanted = sweep->is_wanted(sweep->data, file->d_name, err);
        if (is_wanted < 0)
            return -1;
        if (!is_wanted && unlinkat(folder_fd, file->d_name, 0) == 0)
            ++*removed;
    }
    return 0;
}

int spool_sweep(int spool_fd, const struct spool_sweep *sweep, unsigned *place, unsigned *removed,
                struct error *err)
{
    unsigned looked = 0;
    char name[3];

    for (unsigned i = 0; i < FOLDERS && looked < SWEEP_FILES && *removed < sweep->limit; i++) {
        if (sweep_folder(spool_fd, folder_name(*place % FOLDERS, name), sweep, &looked, removed,
                         err) < 0)
            return error_wrap(err, "look for streams that nobody knows");
        if (*removed < sweep->limit) // else there may be more in this one
            *place = (*place + 1) % FOLDERS;
    }
    return 0;
}
