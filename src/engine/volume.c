/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, setting up, attaching and detaching the volume of a data directory; see volume.h. */
#include "engine/volume.h"

#include "base/fd.h"
#include "base/mem.h"
#include "engine/fs_context.h"
#include "engine/volume_impl.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#define XFS_MAGIC 0x58465342 // not in linux/magic.h before 6.6

/*
 * A volume that is set up says so in the target of a symbolic link at its top: "loop-btrfs simple".
 * It is made last, so one readlink tells all that volume_open has to know.
 */
#define MARK "scheme"

static const struct {
    const char *name;
    unsigned long magic;
    const struct volume_ops *ops;
} schemes[] = {
    [VOLUME_AUTO] = {"auto", 0, NULL},
    [VOLUME_BTRFS] = {"btrfs", BTRFS_SUPER_MAGIC, &volume_btrfs_ops},
    [VOLUME_XFS] = {"xfs", XFS_MAGIC, &volume_project_ops},
    [VOLUME_EXT4] = {"ext4", EXT4_SUPER_MAGIC, &volume_project_ops},
    [VOLUME_LOOP_BTRFS] = {"loop-btrfs", BTRFS_SUPER_MAGIC, &volume_btrfs_ops},
    [VOLUME_TMPFS] = {"tmpfs", TMPFS_MAGIC, &volume_tmpfs_ops},
};

const char *volume_scheme_name(enum volume_scheme scheme)
{
    return (unsigned)scheme < ARRAY_SIZE(schemes) ? schemes[scheme].name : "unknown";
}

int volume_own_dir(const struct volume *volume)
{
    return volume->scheme == VOLUME_LOOP_BTRFS ? volume->dir_fd : -1;
}

enum volume_scheme volume_scheme(const struct volume *volume)
{
    return volume->scheme;
}

const char *volume_fallback_reason(const struct volume *volume)
{
    return volume->fallback_reason;
}

bool volume_counts_inodes(const struct volume *volume)
{
    return volume->ops->counts_inodes;
}

int volume_space(struct volume *volume, struct volume_space *out, struct error *err)
{
    return volume->ops->space(volume, out, err);
}

static struct volume *volume_new(void)
{
    struct volume *volume = xnew(struct volume);
    volume->dir_fd = volume->scratch_fd = -1;
    volume->spares = 1; // another process may have left one
    return volume;
}

void volume_free(struct volume *volume)
{
    if (!volume)
        return;
    if (volume->ops && volume->ops->clear)
        volume->ops->clear(volume);
    closep(&volume->scratch_fd);
    closep(&volume->dir_fd);
    free(volume->fallback_reason);
    free(volume->data_dir);
    free(volume);
}

static void set_scheme(struct volume *volume, enum volume_scheme scheme)
{
    volume->scheme = scheme;
    volume->ops = schemes[scheme].ops;
}

static bool is_on(int fd, enum volume_scheme scheme)
{
    struct statfs info;
    return fstatfs(fd, &info) == 0 && (unsigned long)info.f_type == schemes[scheme].magic;
}

/* Setting up */

static int write_mark(struct volume *volume, struct error *err)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s%s", volume_scheme_name(volume->scheme),
                   volume->has_simple_quota ? " simple" : "");
    if (symlinkat(text, volume->dir_fd, MARK) < 0 && errno != EEXIST)
        return error_sys(err, "mark the volume as set up");
    return 0;
}

static int open_scratch_top(struct volume *volume, struct error *err)
{
    volume->scratch_fd =
        openat(volume->dir_fd, "scratch", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return volume->scratch_fd < 0 ? error_sys(err, "open the volume's directory 'scratch'") : 0;
}

/* From an empty file system, or directory of one, to a marked volume. Every step may have been done
 * before. */
static int set_up(struct volume *volume, bool may_enable, struct error *err)
{
    if (volume->ops == &volume_btrfs_ops && volume_btrfs_prepare(volume, may_enable, err) < 0)
        return -1;
    if (volume->ops == &volume_project_ops && volume_project_prepare(volume, err) < 0)
        return -1;
    if (mkdirat(volume->dir_fd, "scratch", 0700) < 0 && errno != EEXIST)
        return error_sys(err, "make the volume's directory 'scratch'");
    if (open_scratch_top(volume, err) < 0 || volume_probe_limit(volume, err) < 0)
        return -1;
    return write_mark(volume, err);
}

/* Opening what is set up */

static enum volume_scheme parse_mark(const char *text, bool *is_simple)
{
    size_t length = strcspn(text, " ");
    *is_simple = strcmp(text + length, " simple") == 0;
    for (unsigned scheme = VOLUME_BTRFS; scheme < ARRAY_SIZE(schemes); scheme++) {
        if (strlen(schemes[scheme].name) == length && !strncmp(schemes[scheme].name, text, length))
            return (enum volume_scheme)scheme;
    }
    return VOLUME_AUTO;
}

/* 1 when the directory is marked, 0 when not. */
static int read_mark(int dir_fd, enum volume_scheme *scheme, bool *is_simple)
{
    char text[64];
    ssize_t length = readlinkat(dir_fd, MARK, text, sizeof text - 1);
    if (length < 0)
        return 0;
    text[length] = '\0';
    *scheme = parse_mark(text, is_simple);
    return *scheme != VOLUME_AUTO;
}

static int check_attached(struct volume *volume, const char *data_dir, enum volume_scheme wanted,
                          struct error *err)
{
    struct statfs info;
    if (fstatfs(volume->dir_fd, &info) < 0)
        return error_sys(err, "look at the file system of '%s/volume'", data_dir);
    if ((unsigned long)info.f_type != schemes[volume->scheme].magic)
        return error_set(err, ERROR_CONFLICT,
                         "'%s/volume' is marked as a volume on %s, but is on another file system: "
                         "was it copied? move it away",
                         data_dir, volume_scheme_name(volume->scheme));
    if (info.f_flags & ST_RDONLY)
        return error_set(err, ERROR_UNAVAILABLE,
                         "'%s/volume' is read-only, as after a full or faulty disk: free space, "
                         "end all sandboxes, detach the volume and try again",
                         data_dir);
    if (wanted != VOLUME_AUTO && wanted != volume->scheme)
        return error_set(err, ERROR_CONFLICT, "'%s' has a volume of scheme '%s', not '%s'",
                         data_dir, volume_scheme_name(volume->scheme), volume_scheme_name(wanted));
    if (volume->ops == &volume_project_ops)
        return volume_project_check(volume->dir_fd, volume->scheme, err);
    return 0;
}

/* 1 when it was attached, 0 when there is something to do first. */
static int open_attached(struct volume *volume, const char *data_dir, enum volume_scheme wanted,
                         struct error *err)
{
    enum volume_scheme scheme = VOLUME_AUTO;
    char path[4096];

    if (snprintf(path, sizeof path, "%s/volume", data_dir) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, "the data directory's name is too long");
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return error_sys(err, "open '%s'", path);
    if (read_mark(fd, &scheme, &volume->has_simple_quota) == 0)
        return 0;
    volume->dir_fd = take_fd(fd);
    set_scheme(volume, scheme);
    if (check_attached(volume, data_dir, wanted, err) < 0 || open_scratch_top(volume, err) < 0)
        return -1;
    return 1;
}

/* Attaching, under the lock */

static int lock_data(int data_fd, struct error *err)
{
    autofd fd = openat(data_fd, "volume.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "open 'volume.lock'");
    while (flock(fd, LOCK_EX) < 0) {
        if (errno != EINTR)
            return error_sys(err, "lock 'volume.lock'");
    }
    return take_fd(fd);
}

/* The file system that <data>/volume is on, used as it is. */
static int attach_host(struct volume *volume, int data_fd, enum volume_scheme scheme, bool is_asked,
                       struct error *err)
{
    autofd dir = openat(data_fd, "volume", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return error_sys(err, "open 'volume'");
    if (!is_on(dir, scheme))
        return error_set(err, ERROR_UNAVAILABLE, "the data directory is not on %s",
                         volume_scheme_name(scheme));
    if (schemes[scheme].ops == &volume_project_ops && volume_project_check(dir, scheme, err) < 0)
        return -1;
    bool is_ours = !is_on(data_fd, scheme); // mounted at <data>/volume for nothing else
    volume->dir_fd = take_fd(dir);
    set_scheme(volume, scheme);
    return set_up(volume, is_asked || is_ours, err);
}

static int attach_image(struct volume *volume, int data_fd, const char *data_dir,
                        const struct volume_options *options, struct error *err)
{
    enum volume_scheme marked;
    autofd mount_fd = -1;

    if (volume_image_mount(data_fd, data_dir, options, &mount_fd, err) < 0)
        return -1;
    volume->dir_fd = openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (volume->dir_fd < 0)
        return error_sys(err, "open the mounted volume");
    set_scheme(volume, VOLUME_LOOP_BTRFS);
    bool is_set_up = read_mark(volume->dir_fd, &marked, &volume->has_simple_quota);
    if ((is_set_up ? open_scratch_top(volume, err) : set_up(volume, true, err)) < 0)
        return -1;
    return fs_context_attach(mount_fd, data_fd, "volume", err);
}

static void forget_try(struct volume *volume)
{
    closep(&volume->scratch_fd);
    closep(&volume->dir_fd);
}

static int attach_auto(struct volume *volume, int data_fd, const char *data_dir,
                       const struct volume_options *options, struct error *err)
{
    static const enum volume_scheme host[] = {VOLUME_BTRFS, VOLUME_XFS, VOLUME_EXT4};
    bool has_image = volume_image_exists(data_fd);

    for (size_t i = 0; !has_image && i < ARRAY_SIZE(host); i++) {
        if (attach_host(volume, data_fd, host[i], false, err) == 0)
            return 0;
        forget_try(volume);
        if (!error_is(err, ERROR_UNAVAILABLE))
            return -1;
    }
    if (attach_image(volume, data_fd, data_dir, options, err) == 0)
        return 0;
    // with an image there are scratches somebody may want: no silent change to an empty tmpfs
    if (has_image || volume_image_exists(data_fd) || !error_is(err, ERROR_UNAVAILABLE))
        return -1;
    forget_try(volume);
    volume_tmpfs_init(volume);
    volume->fallback_reason = xstrdup(err->text);
    return 0;
}

static int attach(struct volume *volume, const char *data_dir, const struct volume_options *options,
                  struct error *err)
{
    if (fd_make_dirs(data_dir, 0700, err) < 0)
        return -1;
    autofd data_fd = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (data_fd < 0)
        return error_sys(err, "open");
    autofd lock = lock_data(data_fd, err);
    if (lock < 0)
        return -1;
    int found = open_attached(volume, data_dir, options->scheme, err);
    if (found != 0)
        return found < 0 ? -1 : 0;
    if (volume_image_is_mounted(data_dir)) // and has no mark
        return error_set(err, ERROR_CONFLICT,
                         "the volume that is mounted at '%s/volume' was emptied: let go of it with "
                         "'burrow detach --data %s' first",
                         data_dir, data_dir);
    if (mkdirat(data_fd, "volume", 0700) < 0 && errno != EEXIST)
        return error_sys(err, "make directory 'volume'");
    if (options->scheme == VOLUME_AUTO)
        return attach_auto(volume, data_fd, data_dir, options, err);
    if (options->scheme == VOLUME_LOOP_BTRFS)
        return attach_image(volume, data_fd, data_dir, options, err);
    return attach_host(volume, data_fd, options->scheme, true, err);
}

int volume_open(const char *data_dir, const struct volume_options *options, struct volume **out,
                struct error *err)
{
    const struct volume_options defaults = {0};
    autoptr(volume) volume = volume_new();

    if (!options)
        options = &defaults;
    if ((unsigned)options->scheme >= ARRAY_SIZE(schemes))
        return error_set(err, ERROR_INVALID, "no such volume scheme: %d", (int)options->scheme);
    volume->data_dir = xstrdup(data_dir);
    if (options->scheme == VOLUME_TMPFS) {
        volume_tmpfs_init(volume);
        *out = take(volume);
        return 0;
    }
    int found = open_attached(volume, data_dir, options->scheme, err);
    if (found < 0)
        return -1;
    if (found == 0 && attach(volume, data_dir, options, err) < 0)
        return error_wrap(err, "attach the volume of '%s'", data_dir);
    *out = take(volume);
    return 0;
}

/* Marked as a loop volume; without its file there may be no mark, and the file's name decides. */
static bool is_loop_mounted(int data_fd, const char *data_dir)
{
    enum volume_scheme scheme = VOLUME_AUTO;
    bool is_simple;
    // Not held for longer: it would keep the mount busy.
    autofd dir_fd = openat(data_fd, "volume", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir_fd >= 0 && read_mark(dir_fd, &scheme, &is_simple) != 0 && scheme == VOLUME_LOOP_BTRFS)
        return is_on(dir_fd, scheme);
    return volume_image_is_mounted(data_dir);
}

bool volume_is_orphan(const char *data_dir)
{
    enum volume_scheme scheme = VOLUME_AUTO;
    bool is_simple;
    autofd data_fd = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofd dir_fd = openat(data_fd, "volume", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir_fd < 0 || (volume_image_exists(data_fd) && read_mark(dir_fd, &scheme, &is_simple) &&
                       scheme == VOLUME_LOOP_BTRFS))
        return false;
    return volume_image_is_mounted(data_dir);
}

int volume_detach(const char *data_dir, struct error *err)
{

    autofd data_fd = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (data_fd < 0)
        return errno == ENOENT ? 0 : error_sys(err, "open '%s'", data_dir);
    if (faccessat(data_fd, "volume", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    autofd lock = lock_data(data_fd, err);
    if (lock < 0)
        return error_wrap(err, "detach the volume of '%s'", data_dir);
    if (volume_image_detach(data_fd, data_dir, is_loop_mounted(data_fd, data_dir), err) < 0)
        return error_wrap(err, "detach the volume of '%s'", data_dir);
    return 0;
}
