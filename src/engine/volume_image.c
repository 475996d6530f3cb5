/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <data>/volume.img: a sparse file with btrfs in it. Made under another name and renamed when
 * complete, so under its own name it is always whole. All calls are made under the lock of the data
 * directory.
 */
#include "base/fd.h"
#include "engine/fs_context.h"
#include "engine/loop_device.h"
#include "engine/mkfs.h"
#include "engine/volume_impl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define IMAGE "volume.img"
#define MIB (UINT64_C(1) << 20)
#define MIN_BYTES (256 * MIB)
#define MAX_BYTES (UINT64_C(1) << 40)

bool volume_image_exists(int data_fd)
{
    return faccessat(data_fd, IMAGE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Files of makers that were killed; each has a name of its own, so a mkfs that outlived its burrow
 * hits nobody. */
static void remove_half_made(int data_fd)
{
    int fd = openat(data_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        closep(&fd);
        return; // what it is for fails in a moment, and says why
    }
    while ((entry = readdir(dir))) {
        if (strncmp(entry->d_name, IMAGE ".new-", strlen(IMAGE ".new-")) == 0)
            (void)unlinkat(data_fd, entry->d_name, 0);
    }
}

static int choose_size(int data_fd, const char *data_dir, uint64_t wanted, uint64_t *size,
                       struct error *err)
{
    struct statfs info;
    if (fstatfs(data_fd, &info) < 0)
        return error_sys(err, "measure the disk of '%s'", data_dir);
    uint64_t available = info.f_bavail * (uint64_t)info.f_bsize;
    if (available < MIN_BYTES)
        return error_set(err, ERROR_LIMIT,
                         "a volume needs at least 256 MiB, and %" PRIu64
                         " MiB are free on the disk of '%s': "
                         "free some space, choose another data directory, or use the tmpfs scheme",
                         available / MIB, data_dir);
    if (wanted && wanted < MIN_BYTES)
        return error_set(err, ERROR_INVALID,
                         "a volume of %" PRIu64 " MiB is too small: 256 MiB at least",
                         wanted / MIB);
    uint64_t bytes = wanted ? wanted : available / 10 * 9;
    if (!wanted && bytes < MIN_BYTES)
        bytes = MIN_BYTES;
    if (!wanted && bytes > MAX_BYTES)
        bytes = MAX_BYTES;
    *size = bytes / MIB * MIB;
    return 0;
}

/* On a btrfs host: one copy-on-write below another would only fragment. Elsewhere there is no such
 * flag. */
static void forbid_cow(int fd)
{
    int flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
        return;
    flags |= FS_NOCOW_FL;
    (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

static int fill_image(int data_fd, const char *name, const char *data_dir,
                      const struct volume_options *options, uint64_t size, struct error *err)
{
    char path[4096];
    autofd fd = openat(data_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "create '%s'", name);
    forbid_cow(fd);
    if (ftruncate(fd, (off_t)size) < 0)
        return error_sys(err, "make a sparse file of %" PRIu64 " MiB", size / MIB);
    if (snprintf(path, sizeof path, "%s/%s", data_dir, name) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, "the data directory's name is too long");
    if (mkfs_btrfs(options->mkfs, path, err) < 0)
        return -1;
    if (fsync(fd) < 0)
        return error_sys(err, "write '%s' to the disk", name);
    return 0;
}

static int make_image(int data_fd, const char *data_dir, const struct volume_options *options,
                      struct error *err)
{
    uint64_t size = 0, random = 0;
    char name[64];

    if (choose_size(data_fd, data_dir, options->size_bytes, &size, err) < 0)
        return -1;
    (void)getrandom(&random, sizeof random, 0);
    (void)snprintf(name, sizeof name, IMAGE ".new-%016" PRIx64, random);
    if (fill_image(data_fd, name, data_dir, options, size, err) < 0) {
        (void)unlinkat(data_fd, name, 0);
        return -1;
    }
    if (renameat(data_fd, name, data_fd, IMAGE) < 0 || fsync(data_fd) < 0)
        return error_sys(err, "put '" IMAGE "' in its place");
    return 0;
}

static int mount_device(const struct loop_device *device, int *mount_fd, struct error *err)
{
    const struct fs_option options[] = {
        {"source", device->path},
        {"discard", "async"}, // what is freed inside becomes a hole in the file
        {NULL, NULL},
    };
    if (fs_context_mount("btrfs", options, mount_fd, err) == 0)
        return 0;
    if (err->sys == EINVAL)
        return error_wrap(err,
                          "mount '" IMAGE
                          "' (made by a newer kernel, or damaged; move it away for a new one)");
    return error_wrap(err, "mount '" IMAGE "'");
}

int volume_image_mount(int data_fd, const char *data_dir, const struct volume_options *options,
                       int *mount_fd, struct error *err)
{
    struct loop_device device = {.fd = -1};

    remove_half_made(data_fd);
    if (!volume_image_exists(data_fd) && make_image(data_fd, data_dir, options, err) < 0)
        return -1;
    autofd image = openat(data_fd, IMAGE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (image < 0)
        return error_sys(err, "open '" IMAGE "'");
    if (loop_device_attach(image, &device, err) < 0)
        return -1;
    int result = mount_device(&device, mount_fd, err);
    closep(&device.fd); // the mount holds it from here on; without one it frees itself
    return result;
}
