/* SPDX-License-Identifier: Apache-2.0 */
/* Scratches as btrfs subvolumes with a quota group each, by ioctl; the host's btrfs or ours on a
 * loop device. */
#include "base/fd.h"
#include "engine/volume_impl.h"

#include <endian.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <string.h>
#include <sys/ioctl.h>

// linux 6.7
#define QUOTA_ENABLE_SIMPLE 4
#define STATUS_FLAG_SIMPLE (1ULL << 3)

#define NO_LIMIT UINT64_MAX

/* Looking into btrfs's trees */

/* struct btrfs_ioctl_search_args_v2 with room for what is found. */
struct search {
    struct btrfs_ioctl_search_key key;
    uint64_t room_size;
    unsigned char room[1024];
};

/* The first item with a key in objectid, type, [min_offset, max_offset]: 1 and *item, 0 when there
 * is none. */
static int search_first(int fd, const struct btrfs_ioctl_search_key *key, struct search *search,
                        struct btrfs_ioctl_search_header *header, const void **item)
{
    search->key = *key;
    search->key.max_transid = UINT64_MAX;
    search->key.nr_items = 1;
    search->room_size = sizeof search->room;
    if (ioctl(fd, BTRFS_IOC_TREE_SEARCH_V2, search) < 0)
        return errno == ENOENT ? 0 : -1;
    if (search->key.nr_items == 0)
        return 0;
    memcpy(header, search->room, sizeof *header);
    *item = search->room + sizeof *header;
    return 1;
}

static int search_quota(int fd, uint32_t type, uint64_t min_offset, uint64_t max_offset,
                        struct search *search, struct btrfs_ioctl_search_header *header,
                        const void **item)
{
    const struct btrfs_ioctl_search_key key = {
        .tree_id = BTRFS_QUOTA_TREE_OBJECTID,
        .min_type = type,
        .max_type = type,
        .min_offset = min_offset,
        .max_offset = max_offset,
    };
    return search_first(fd, &key, search, header, item);
}

/* 1 when quotas are on. */
static int read_quota_status(int fd, bool *is_simple)
{
    struct search search;
    struct btrfs_ioctl_search_header header;
    struct btrfs_qgroup_status_item status = {0};
    const void *item = NULL;

    int found = search_quota(fd, BTRFS_QGROUP_STATUS_KEY, 0, 0, &search, &header, &item);
    if (found <= 0)
        return found;
    memcpy(&status, item, header.len < sizeof status ? header.len : sizeof status);
    uint64_t flags = le64toh(status.flags);
    *is_simple = flags & STATUS_FLAG_SIMPLE;
    return (flags & BTRFS_QGROUP_STATUS_FLAG_ON) != 0;
}

static int enable_quota(int fd)
{
    struct btrfs_ioctl_quota_ctl_args args = {.cmd = QUOTA_ENABLE_SIMPLE};
    if (ioctl(fd, BTRFS_IOC_QUOTA_CTL, &args) == 0)
        return 0;
    if (errno != EINVAL && errno != EOPNOTSUPP)
        return -1;
    args.cmd = BTRFS_QUOTA_CTL_ENABLE;
    if (ioctl(fd, BTRFS_IOC_QUOTA_CTL, &args) < 0)
        return -1;
    return ioctl(fd, BTRFS_IOC_QUOTA_RESCAN_WAIT);
}

int volume_btrfs_prepare(struct volume *volume, bool may_enable, struct error *err)
{
    int is_on = read_quota_status(volume->dir_fd, &volume->has_simple_quota);
    if (is_on == 0 && !may_enable)
        return error_set(err, ERROR_UNAVAILABLE,
                         "quotas are off on this btrfs: choose the btrfs scheme to turn them on");
    if (is_on == 0 && enable_quota(volume->dir_fd) < 0)
        return error_sys(err, "turn on btrfs quotas");
    if (is_on == 0)
        is_on = read_quota_status(volume->dir_fd, &volume->has_simple_quota);
    if (is_on < 0)
        return error_sys(err, "read the state of btrfs quotas");
    if (is_on == 0)
        return error_set(err, ERROR_UNAVAILABLE, "btrfs quotas were turned on and are off");
    return 0;
}

/* Scratches */

static int set_limit(int dir_fd, uint64_t bytes, struct error *err)
{
    struct btrfs_ioctl_qgroup_limit_args args = {
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes},
    };
    if (ioctl(dir_fd, BTRFS_IOC_QGROUP_LIMIT, &args) == 0)
        return 0;
    if (errno == ENOTCONN)
        return error_set(err, ERROR_UNAVAILABLE,
                         "btrfs quotas have been turned off: turn them on with "
                         "'btrfs quota enable' on the volume");
    return error_sys(err, "set its limit");
}

static int read_subvolume_id(int dir_fd, uint64_t *id)
{
    struct btrfs_ioctl_ino_lookup_args args = {.objectid = BTRFS_FIRST_FREE_OBJECTID};
    if (ioctl(dir_fd, BTRFS_IOC_INO_LOOKUP, &args) < 0)
        return -1;
    *id = args.treeid;
    return 0;
}

static int make_subvolume(struct volume *volume, const char *name)
{
    struct btrfs_ioctl_vol_args_v2 args = {0};
    (void)snprintf(args.name, sizeof args.name, "%s", name);
    return ioctl(volume->scratch_fd, BTRFS_IOC_SUBVOL_CREATE_V2, &args);
}

static void remove_quota_group(int fd, uint64_t id)
{
    struct btrfs_ioctl_qgroup_create_args args = {.create = 0, .qgroupid = id};
    (void)ioctl(fd, BTRFS_IOC_QGROUP_CREATE, &args); // best effort: the sweep comes back to it
}

static int destroy_subvolume(struct volume *volume, const char *name)
{
    struct btrfs_ioctl_vol_args_v2 args = {0};
    (void)snprintf(args.name, sizeof args.name, "%s", name);
    return ioctl(volume->scratch_fd, BTRFS_IOC_SNAP_DESTROY_V2, &args);
}

static int btrfs_remove(struct volume *volume, const char *name, struct error *err)
{
    struct error ignored;
    autofd dir_fd = -1;
    uint64_t id = 0;

    // simple quota groups are the kernel's to remove, others stay unless told
    if (!volume->has_simple_quota && volume_open_scratch_dir(volume, name, &dir_fd, &ignored) == 0)
        (void)read_subvolume_id(dir_fd, &id);
    if (destroy_subvolume(volume, name) == 0) {
        if (id)
            remove_quota_group(volume->dir_fd, id);
        return 0;
    }
    if (errno == ENOENT)
        return 0;
    if (errno == EINVAL || errno == ENOTDIR) // not a subvolume, so not made by us: a plain tree
        return fd_remove_tree(volume->scratch_fd, name, err);
    return error_sys(err, "destroy the subvolume");
}

static int fill_scratch(struct volume *volume, const char *name, const struct volume_limits *limits,
                        int *dir_fd, struct error *err)
{
    autofd fd = -1;
    if (volume_open_scratch_dir(volume, name, &fd, err) < 0)
        return -1;
    if (limits->bytes && set_limit(fd, limits->bytes, err) < 0)
        return -1;
    if (volume_make_places(fd, err) < 0)
        return -1;
    *dir_fd = take_fd(fd);
    return 0;
}

static int btrfs_create(struct volume *volume, const char *name, const struct volume_limits *limits,
                        int *dir_fd, struct error *err)
{
    struct error ignored;
    int made = make_subvolume(volume, name);
    if (made < 0 && errno == EEXIST) {
        if (btrfs_remove(volume, name, err) < 0)
            return -1;
        made = make_subvolume(volume, name);
    }
    if (made < 0)
        return error_sys(err, "make a subvolume");
    if (fill_scratch(volume, name, limits, dir_fd, err) == 0)
        return 0;
    (void)btrfs_remove(volume, name, &ignored);
    return -1;
}

static int btrfs_limit(struct volume *volume, const char *name, const struct volume_limits *limits,
                       struct error *err)
{
    autofd fd = -1;
    if (volume_open_scratch_dir(volume, name, &fd, err) < 0)
        return -1;
    return set_limit(fd, limits->bytes ? limits->bytes : NO_LIMIT, err);
}

static int btrfs_usage(struct volume *volume, const char *name, bool is_exact, uint64_t *bytes,
                       struct error *err)
{
    struct search search;
    struct btrfs_ioctl_search_header header;
    struct btrfs_qgroup_info_item info;
    const void *item = NULL;
    uint64_t id;
    autofd fd = -1;

    if (volume_open_scratch_dir(volume, name, &fd, err) < 0)
        return -1;
    if (is_exact && ioctl(fd, BTRFS_IOC_SYNC) < 0)
        return error_sys(err, "write it back");
    if (read_subvolume_id(fd, &id) < 0)
        return error_sys(err, "find its subvolume");
    int found = search_quota(fd, BTRFS_QGROUP_INFO_KEY, id, id, &search, &header, &item);
    if (found < 0)
        return error_sys(err, "read its quota group");
    if (found == 0 || header.len < sizeof info) { // made since the last commit
        *bytes = 0;
        return 0;
    }
    memcpy(&info, item, sizeof info);
    *bytes = le64toh(info.rfer);
    return 0;
}

/* Quota groups whose subvolume is gone. Only where the whole file system is ours. */

static bool has_subvolume(int fd, uint64_t id)
{
    struct search search;
    struct btrfs_ioctl_search_header header;
    const void *item;
    const struct btrfs_ioctl_search_key key = {
        .tree_id = BTRFS_ROOT_TREE_OBJECTID,
        .min_objectid = id,
        .max_objectid = id,
        .min_type = BTRFS_ROOT_ITEM_KEY,
        .max_type = BTRFS_ROOT_ITEM_KEY,
        .max_offset = UINT64_MAX,
    };
    // an item longer than the room is there all the same
    return search_first(fd, &key, &search, &header, &item) != 0;
}

static int btrfs_sweep_rest(struct volume *volume, struct error *err)
{
    struct search search;
    struct btrfs_ioctl_search_header header;
    const void *item;
    uint64_t next = BTRFS_FIRST_FREE_OBJECTID;
    const uint64_t last = (1ULL << BTRFS_QGROUP_LEVEL_SHIFT) - 1; // level 0: those of subvolumes

    if (volume->scheme != VOLUME_LOOP_BTRFS)
        return 0;
    for (; next <= last; next = header.offset + 1) {
        int found = search_quota(volume->dir_fd, BTRFS_QGROUP_INFO_KEY, next, last, &search,
                                 &header, &item);
        if (found < 0)
            return error_sys(err, "list quota groups");
        if (found == 0)
            return 0;
        if (!has_subvolume(volume->dir_fd, header.offset))
            remove_quota_group(volume->dir_fd, header.offset);
    }
    return 0;
}

const struct volume_ops volume_btrfs_ops = {
    .create = btrfs_create,
    .open = volume_open_scratch_dir,
    .limit = btrfs_limit,
    .usage = btrfs_usage,
    .remove = btrfs_remove,
    .space = volume_fs_space,
    .list = volume_list_dirs,
    .sweep_rest = btrfs_sweep_rest,
};
