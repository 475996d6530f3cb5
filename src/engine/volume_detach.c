/* SPDX-License-Identifier: Apache-2.0 */
/* Unmounting the loop volume, and saying who is in the way when it cannot be done. */
#include "base/auto.h"
#include "base/fd.h"
#include "engine/loop_device.h"
#include "engine/volume_impl.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>

#define IMAGE "volume.img"

enum { MAX_NAMED = 3, WAIT_STEPS = 100, WAIT_STEP_MS = 10 };

static bool is_below(const char *path, const char *top)
{
    size_t length = strlen(top);
    return strncmp(path, top, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static bool link_leads_below(int dir_fd, const char *name, const char *top)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(dir_fd, name, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    return is_below(target, top);
}

static bool has_open_file(int proc_fd, const char *top)
{
    int fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        closep(&fd);
        return false;
    }
    while ((entry = readdir(dir))) {
        if (link_leads_below(dirfd(dir), entry->d_name, top))
            return true;
    }
    return false;
}

static bool is_user(int proc_fd, const char *top)
{
    return link_leads_below(proc_fd, "cwd", top) || link_leads_below(proc_fd, "root", top) ||
           link_leads_below(proc_fd, "exe", top) || has_open_file(proc_fd, top);
}

static void add_user(char *text, size_t size, int proc_fd, const char *pid)
{
    struct error ignored;
    char command[32] = "?";
    size_t used = strlen(text);

    (void)fd_read_knob(proc_fd, "comm", command, sizeof command, &ignored);
    (void)snprintf(text + used, size - used, "%sprocess %.10s ('%.16s')", used ? ", " : "", pid,
                   command);
}

/* Processes with files or a place below `top`, at most MAX_NAMED of them, as text; empty when none
 * is seen. */
static void name_users(const char *top, char *text, size_t size)
{
    struct dirent *entry;
    unsigned named = 0;
    autodir proc = opendir("/proc");

    text[0] = '\0';
    while (proc && named < MAX_NAMED && (entry = readdir(proc))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        autofd fd = openat(dirfd(proc), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || !is_user(fd, top))
            continue;
        add_user(text, size, fd, entry->d_name);
        named++;
    }
}

static int report_busy(const char *path, struct error *err)
{
    char top[PATH_MAX];
    char users[320];

    name_users(realpath(path, top) ? top : path, users, sizeof users);
    return error_refuse(err, ERROR_BUSY, "volume", "'%s' is in use by %s", path,
                        users[0] ? users
                                 : "another mount or a process that cannot be seen from here");
}

static int unmount(const char *data_dir, struct error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/volume", data_dir) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, "the data directory's name is too long");
    if (umount2(path, UMOUNT_NOFOLLOW) == 0)
        return 0;
    return errno == EBUSY ? report_busy(path, err) : error_sys(err, "unmount '%s'", path);
}

/* "/dev/loop4" → whether its file is, or was, called volume.img. */
static bool is_image_device(const char *device)
{
    char path[64], file[PATH_MAX];
    struct error ignored;

    if (strncmp(device, "/dev/loop", 9) != 0)
        return false;
    (void)snprintf(path, sizeof path, "/sys/block/%.16s/loop/backing_file", device + 5);
    if (fd_read_knob(AT_FDCWD, path, file, sizeof file, &ignored) < 0)
        return false;
    const char *name = strrchr(file, '/');
    return name && strncmp(name + 1, IMAGE, strlen(IMAGE)) == 0 &&
           (name[1 + strlen(IMAGE)] == '\0' || name[1 + strlen(IMAGE)] == ' '); // " (deleted)"
}

bool volume_image_is_mounted(const char *data_dir)
{
    char top[PATH_MAX], line[2 * PATH_MAX];
    struct mntent entry;
    bool is_mounted = false;

    if (!realpath(data_dir, top) || strlen(top) + sizeof "/volume" > sizeof top)
        return false;
    strcat(top, "/volume");
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    while (mounts && getmntent_r(mounts, &entry, line, sizeof line))
        if (strcmp(entry.mnt_dir, top) == 0)
            is_mounted = strcmp(entry.mnt_type, "btrfs") == 0 && is_image_device(entry.mnt_fsname);
    if (mounts)
        (void)endmntent(mounts);
    return is_mounted;
}

/*
 * The device goes with its last user, usually our unmount itself. A program that looks at every
 * block device (udev) may hold it a moment longer; a box, or a mount in another mount namespace, as
 * long as it lives.
 */
static int wait_for_device(int image_fd, struct error *err)
{
    const struct timespec step = {.tv_nsec = WAIT_STEP_MS * 1000000L};
    struct loop_device device = {.fd = -1};

    for (unsigned i = 0; i < WAIT_STEPS; i++) {
        int found = loop_device_find(image_fd, &device, err);
        if (found <= 0)
            return found;
        closep(&device.fd);
        (void)nanosleep(&step, NULL);
    }
    return error_refuse(
        err, ERROR_BUSY, "volume",
        "it is not mounted here any more, but %s still serves a sandbox or another mount "
        "namespace and "
        "goes when that ends",
        device.path);
}

int volume_image_detach(int data_fd, const char *data_dir, bool is_mounted, struct error *err)
{
    autofd image = openat(data_fd, IMAGE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (image < 0 && errno != ENOENT)
        return error_sys(err, "open '" IMAGE "'");
    if (is_mounted && unmount(data_dir, err) < 0)
        return -1;
    return image < 0 ? 0 : wait_for_device(image, err);
}
