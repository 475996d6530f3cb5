/* SPDX-License-Identifier: Apache-2.0 */
/* Loop devices by ioctl; see loop_device.h and loop(4). */
#include "engine/loop_device.h"

#include "base/auto.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

enum { MAX_TRIES = 64, BLOCK_SIZE = 4096 };

static int missing(struct error *err, const char *what)
{
    error_sys(err, "%s", what);
    return error_restate(err, ERROR_UNAVAILABLE, NULL);
}

static bool is_loop_name(const char *name)
{
    if (strncmp(name, "loop", 4) != 0 || !name[4] || strlen(name) > 16)
        return false;
    for (name += 4; *name; name++) {
        if (!isdigit((unsigned char)*name))
            return false;
    }
    return true;
}

/* Once open, a device cannot free itself under us: what it says about its file then stays true. */
static bool has_file(int fd, const struct stat *image)
{
    struct loop_info64 info;
    return ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == image->st_ino &&
           info.lo_device == image->st_dev;
}

int loop_device_find(int image_fd, struct loop_device *out, struct error *err)
{
    struct stat image;
    struct dirent *entry;
    autodir dev = opendir("/dev");

    if (fstat(image_fd, &image) < 0)
        return error_sys(err, "look at the image file");
    if (!dev)
        return missing(err, "list /dev");
    while ((entry = readdir(dev))) {
        if (!is_loop_name(entry->d_name))
            continue;
        autofd fd = openat(dirfd(dev), entry->d_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || !has_file(fd, &image))
            continue;
        out->fd = take_fd(fd);
        (void)snprintf(out->path, sizeof out->path, "/dev/%.16s", entry->d_name);
        return 1;
    }
    return 0;
}

static int configure(int fd, int image_fd)
{
    struct loop_config config = {
        .fd = (unsigned)image_fd,
        .block_size = BLOCK_SIZE,
        .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
    };
    if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
        return 0;
    if (errno != EINVAL)
        return -1;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    return ioctl(fd, LOOP_CONFIGURE, &config);
}

static int attach_free(int control, int image_fd, struct loop_device *out, struct error *err)
{
    for (unsigned tries = 0; tries < MAX_TRIES; tries++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0)
            return missing(err, "find a free loop device");
        (void)snprintf(out->path, sizeof out->path, "/dev/loop%d", number);
        autofd fd = open(out->path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            return missing(err, out->path);
        if (configure(fd, image_fd) == 0) {
            out->fd = take_fd(fd);
            return 0;
        }
        if (errno != EBUSY) // EBUSY: somebody took it in between
            return error_sys(err, "attach the image file to %s", out->path);
    }
    return error_set(err, ERROR_UNAVAILABLE, "no loop device stayed free in %d tries", MAX_TRIES);
}

int loop_device_attach(int image_fd, struct loop_device *out, struct error *err)
{
    int found = loop_device_find(image_fd, out, err);
    if (found != 0)
        return found < 0 ? -1 : 0;
    autofd control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0)
        return missing(err, "open /dev/loop-control");
    return attach_free(control, image_fd, out, err);
}
