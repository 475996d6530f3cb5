/* SPDX-License-Identifier: Apache-2.0 */
/* Scratches as btrfs subvolumes with a quota group each, by ioctl; the host's btrfs or ours on a
 * loop device. */
#include "base/fd.h"
#include "engine/volume_impl.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SETTLE_STEPS 200
#define SETTLE_STEP_US 10000

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

/*
 * Bytes a scratch got from a layer. With simple quotas they are charged to whoever wrote them, so the scratch bears their
 * number itself.
 */
#define BASE_ATTRIBUTE "trusted.burrow.base"

static uint64_t read_base(int dir_fd)
{
    char text[24];
    ssize_t length = fgetxattr(dir_fd, BASE_ATTRIBUTE, text, sizeof text - 1);
    if (length < 0)
        return 0;
    text[length] = '\0';
    return strtoull(text, NULL, 10);
}

static int write_base(int dir_fd, uint64_t bytes, struct error *err)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%" PRIu64, bytes);
    if (fsetxattr(dir_fd, BASE_ATTRIBUTE, text, (size_t)length, 0) < 0)
        return error_sys(err, "note what it starts with");
    return 0;
}

/* What is left of a limit beside the base; enough, always, to remove things. */
static int set_limit_over_base(int dir_fd, uint64_t bytes, struct error *err)
{
    const uint64_t least = 1 << 20;
    uint64_t base = read_base(dir_fd);
    return set_limit(dir_fd, bytes > base + least ? bytes - base : least, err);
}

static int read_subvolume_id(int dir_fd, uint64_t *id)
{
    struct btrfs_ioctl_ino_lookup_args args = {.objectid = BTRFS_FIRST_FREE_OBJECTID};
    if (ioctl(dir_fd, BTRFS_IOC_INO_LOOKUP, &args) < 0)
        return -1;
    *id = args.treeid;
    return 0;
}

static int make_subvolume(int parent_fd, const char *name)
{
    struct btrfs_ioctl_vol_args_v2 args = {0};
    (void)snprintf(args.name, sizeof args.name, "%s", name);
    return ioctl(parent_fd, BTRFS_IOC_SUBVOL_CREATE_V2, &args);
}

static void remove_quota_group(int fd, uint64_t id)
{
    struct btrfs_ioctl_qgroup_create_args args = {.create = 0, .qgroupid = id};
    (void)ioctl(fd, BTRFS_IOC_QGROUP_CREATE, &args); // best effort: the sweep comes back to it
}

static int destroy_subvolume(int parent_fd, const char *name)
{
    struct btrfs_ioctl_vol_args_v2 args = {0};
    (void)snprintf(args.name, sizeof args.name, "%s", name);
    return ioctl(parent_fd, BTRFS_IOC_SNAP_DESTROY_V2, &args);
}

static int btrfs_remove(struct volume *volume, const char *name, struct error *err)
{
    struct error ignored;
    autofd dir_fd = -1;
    uint64_t id = 0;

    // simple quota groups are the kernel's to remove, others stay unless told
    if (!volume->has_simple_quota && volume_open_scratch_dir(volume, name, &dir_fd, &ignored) == 0)
        (void)read_subvolume_id(dir_fd, &id);
    if (destroy_subvolume(volume->scratch_fd, name) == 0) {
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

/* Spare scratches stand complete as spare/0, spare/1, …; a rename takes one, whichever process made
 * it. */
enum { MAX_SPARES = 64 };

static int rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, RENAME_NOREPLACE);
}

static int make_spare(int spare_fd, const char *slot, struct error *err)
{
    uint64_t random = 0;
    char name[32];

    (void)getrandom(&random, sizeof random, 0);
    (void)snprintf(name, sizeof name, "new-%016" PRIx64, random);
    if (make_subvolume(spare_fd, name) < 0)
        return error_sys(err, "make a subvolume");
    autofd fd = openat(spare_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? error_sys(err, "open a subvolume") : volume_make_places(fd, err);
    if (result < 0 && err->sys == ENOENT) // a sweep took it for something left over
        return 0;
    if (result == 0 && rename_new(spare_fd, name, spare_fd, slot) == 0)
        return 0;
    // another process or thread filled the slot, or swept this for something left over: just as well
    if (result == 0 && errno != EEXIST && errno != ENOENT)
        result = error_sys(err, "put a spare scratch in its place");
    (void)destroy_subvolume(spare_fd, name);
    return result;
}

static int open_spares(struct volume *volume)
{
    return openat(volume->dir_fd, "spare", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int btrfs_fill(struct volume *volume, unsigned count, struct error *err)
{
    char slot[16];

    if (mkdirat(volume->dir_fd, "spare", 0700) < 0 && errno != EEXIST)
        return error_sys(err, "make the volume's directory 'spare'");
    autofd spare_fd = open_spares(volume);
    if (spare_fd < 0)
        return error_sys(err, "open the volume's directory 'spare'");
    if (count > MAX_SPARES)
        count = MAX_SPARES;
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(slot, sizeof slot, "%u", i);
        if (faccessat(spare_fd, slot, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
            make_spare(spare_fd, slot, err) < 0)
            return -1;
    }
    if (volume->spares < count)
        volume->spares = count;
    return 0;
}

/* 0 when a spare is now the scratch; -1 with errno, ENOENT when there is none. */
static int take_spare(struct volume *volume, const char *name)
{
    char slot[24];

    for (unsigned i = volume->spares; i-- > 0;) {
        (void)snprintf(slot, sizeof slot, "spare/%u", i);
        if (rename_new(volume->dir_fd, slot, volume->scratch_fd, name) == 0) {
            volume->spares = i ? i : 1;
            return 0;
        }
        if (errno != ENOENT)
            return -1;
    }
    volume->spares = 1;
    errno = ENOENT;
    return -1;
}

static int take_or_make(struct volume *volume, const char *name, bool *is_spare)
{
    *is_spare = take_spare(volume, name) == 0;
    if (*is_spare)
        return 0;
    return errno == ENOENT ? make_subvolume(volume->scratch_fd, name) : -1;
}

static int open_limited(struct volume *volume, const char *name, const struct volume_limits *limits,
                        bool is_spare, int *dir_fd, struct error *err)
{
    autofd fd = -1;
    if (volume_open_scratch_dir(volume, name, &fd, err) < 0)
        return -1;
    if (limits->bytes && set_limit(fd, limits->bytes, err) < 0)
        return -1;
    if (!is_spare && volume_make_places(fd, err) < 0)
        return -1;
    *dir_fd = take_fd(fd);
    return 0;
}

static int btrfs_create(struct volume *volume, const char *name, const struct volume_limits *limits,
                        int *dir_fd, struct error *err)
{
    struct error ignored;
    bool is_spare;

    int made = take_or_make(volume, name, &is_spare);
    if (made < 0 && errno == EEXIST) {
        if (btrfs_remove(volume, name, err) < 0)
            return -1;
        made = take_or_make(volume, name, &is_spare);
    }
    if (made < 0)
        return error_sys(err, "make a subvolume");
    if (open_limited(volume, name, limits, is_spare, dir_fd, err) == 0)
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
    if (!limits->bytes)
        return set_limit(fd, NO_LIMIT, err);
    return set_limit_over_base(fd, limits->bytes, err);
}

static int read_usage(int fd, uint64_t *bytes, struct error *err)
{
    struct search search;
    struct btrfs_ioctl_search_header header;
    struct btrfs_qgroup_info_item info;
    const void *item = NULL;
    uint64_t id;

    if (read_subvolume_id(fd, &id) < 0)
        return error_sys(err, "find its subvolume");
    int found = search_quota(fd, BTRFS_QGROUP_INFO_KEY, id, id, &search, &header, &item);
    if (found < 0)
        return error_sys(err, "read its quota group");
    *bytes = read_base(fd);
    if (found == 0 || header.len < sizeof info) // made since the last commit
        return 0;
    memcpy(&info, item, sizeof info);
    *bytes += le64toh(info.rfer);
    return 0;
}

static int btrfs_usage(struct volume *volume, const char *name, bool is_exact, uint64_t *bytes,
                       struct error *err)
{
    autofd fd = -1;
    if (volume_open_scratch_dir(volume, name, &fd, err) < 0)
        return -1;
    if (is_exact && ioctl(fd, BTRFS_IOC_SYNC) < 0)
        return error_sys(err, "write it back");
    return read_usage(fd, bytes, err);
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

/* The first quota group of a subvolume that does not exist, from *id on up to `last`: 1, or 0 when
 * there is none. */
static int find_orphan(int fd, uint64_t *id, uint64_t last)
{
    struct search search;
    struct btrfs_ioctl_search_header header;
    const void *item;

    for (; *id <= last; *id = header.offset + 1) {
        int found = search_quota(fd, BTRFS_QGROUP_INFO_KEY, *id, last, &search, &header, &item);
        if (found <= 0)
            return found;
        *id = header.offset;
        if (!has_subvolume(fd, *id))
            return 1;
    }
    return 0;
}

/*
 * A subvolume that is just being made has its quota group first. So what looks orphaned is looked
 * at again after a commit, which waits for whoever is making one; ids only grow.
 */
static int sweep_quota_groups(struct volume *volume, struct error *err)
{
    const uint64_t end = (1ULL << BTRFS_QGROUP_LEVEL_SHIFT) - 1; // level 0: those of subvolumes
    uint64_t id = BTRFS_FIRST_FREE_OBJECTID, last = 0;
    int found;

    if (volume->scheme != VOLUME_LOOP_BTRFS)
        return 0;
    while ((found = find_orphan(volume->dir_fd, &id, end)) > 0)
        last = id++;
    if (found < 0 || (last && ioctl(volume->dir_fd, BTRFS_IOC_SYNC) < 0))
        return error_sys(err, "list quota groups");
    id = BTRFS_FIRST_FREE_OBJECTID;
    while (find_orphan(volume->dir_fd, &id, last) > 0)
        remove_quota_group(volume->dir_fd, id++);
    return 0;
}

/* Spares that were never finished. One that is being finished right now is only made once more. */
static int sweep_spares(struct volume *volume, struct error *err)
{
    struct dirent *entry;
    int fd = open_spares(volume);
    if (fd < 0 && errno == ENOENT)
        return 0;
    autodir dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        error_sys(err, "list the spare scratches");
        closep(&fd);
        return -1;
    }
    while ((entry = readdir(dir))) {
        if (strncmp(entry->d_name, "new-", 4) == 0)
            (void)destroy_subvolume(fd, entry->d_name);
    }
    return 0;
}

static int btrfs_sweep_rest(struct volume *volume, struct error *err)
{
    return sweep_spares(volume, err) < 0 ? -1 : sweep_quota_groups(volume, err);
}

/* Destroyed subvolumes whose blocks the kernel has not freed yet: it notes them in the tree of roots. */
static bool has_dead_subvolumes(int fd)
{
    struct search search;
    struct btrfs_ioctl_search_header header;
    const void *item;
    const struct btrfs_ioctl_search_key key = {
        .tree_id = BTRFS_ROOT_TREE_OBJECTID,
        .min_objectid = BTRFS_ORPHAN_OBJECTID,
        .max_objectid = BTRFS_ORPHAN_OBJECTID,
        .min_type = BTRFS_ORPHAN_ITEM_KEY,
        .max_type = BTRFS_ORPHAN_ITEM_KEY,
        .max_offset = UINT64_MAX,
    };
    return search_first(fd, &key, &search, &header, &item) > 0;
}

/*
 * Unlike the other ways to the disk this one wakes whoever frees destroyed subvolumes. What that has freed can be used after one more
 * commit. One that somebody still has open is not waited for any longer.
 */
static int btrfs_settle(struct volume *volume, struct error *err)
{
    int result = ioctl(volume->dir_fd, BTRFS_IOC_SYNC);

    for (int i = 0; result == 0 && i < SETTLE_STEPS && has_dead_subvolumes(volume->dir_fd); i++)
        (void)usleep(SETTLE_STEP_US);
    if (result == 0)
        result = ioctl(volume->dir_fd, BTRFS_IOC_SYNC);
    return result < 0 ? error_sys(err, "write to the disk") : 0;
}

/* Names on disk: without writing back anybody's data, as BTRFS_IOC_SYNC would. */
static int commit(int fd, struct error *err)
{
    uint64_t transaction = 0;
    if (ioctl(fd, BTRFS_IOC_START_SYNC, &transaction) < 0 ||
        ioctl(fd, BTRFS_IOC_WAIT_SYNC, &transaction) < 0)
        return error_sys(err, "write to the disk");
    return 0;
}

static int btrfs_replace(struct volume *volume, const char *from, const char *to, struct error *err)
{
    struct error ignored;
    bool is_new = rename_new(volume->scratch_fd, from, volume->scratch_fd, to) == 0;
    if (!is_new && (errno != EEXIST || syscall(SYS_renameat2, volume->scratch_fd, from,
                                               volume->scratch_fd, to, RENAME_EXCHANGE) < 0))
        return error_sys(err, "put it in its place");
    if (commit(volume->dir_fd, err) < 0) {
        (void)syscall(SYS_renameat2, volume->scratch_fd, to, volume->scratch_fd, from,
                      is_new ? RENAME_NOREPLACE : RENAME_EXCHANGE);
        return -1;
    }
    if (!is_new)
        (void)btrfs_remove(volume, from, &ignored); // swept at the latest
    return 0;
}

/* Layers: subvolumes that cannot be written to. The kernel makes one whole, under its name and on disk, or not at all. */

static int snapshot(int from_fd, int parent_fd, const char *name, bool is_read_only)
{
    struct btrfs_ioctl_vol_args_v2 args = {
        .fd = from_fd,
        .flags = is_read_only ? BTRFS_SUBVOL_RDONLY : 0,
    };
    (void)snprintf(args.name, sizeof args.name, "%s", name);
    return ioctl(parent_fd, BTRFS_IOC_SNAP_CREATE_V2, &args);
}

static int open_subvolume(int parent_fd, const char *name)
{
    return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int save_layer(struct volume *volume, const char *scratch, int layers_fd, const char *name,
                      uint64_t *bytes, struct error *err)
{
    autofd from = -1;
    if (volume_open_scratch_dir(volume, scratch, &from, err) < 0)
        return -1;
    if (snapshot(from, layers_fd, name, true) < 0) {
        if (errno == EEXIST)
            return error_set(err, ERROR_CONFLICT, "there is a layer '%s' already", name);
        return error_sys(err, "take a snapshot of the subvolume");
    }
    // just counted: a snapshot commits. Simple quotas charge what it holds to the scratch.
    autofd layer = open_subvolume(layers_fd, name);
    struct error ignored;
    if (read_usage(volume->has_simple_quota ? from : layer, bytes, &ignored) < 0)
        *bytes = 0;
    return 0;
}

/* The scratch's own: what overlay left in its work directory is nobody's. */
static int prepare_branch(struct volume *volume, int fd, uint64_t layer_bytes,
                          const struct volume_limits *limits, struct error *err)
{
    if (volume->has_simple_quota && write_base(fd, layer_bytes, err) < 0)
        return -1;
    if (limits->bytes && set_limit_over_base(fd, limits->bytes, err) < 0)
        return -1;
    if (fd_remove_tree(fd, "work", err) < 0)
        return -1;
    return mkdirat(fd, "work", 0700) < 0 ? error_sys(err, "make its directories") : 0;
}

static int branch_layer(struct volume *volume, int layers_fd, const char *name,
                        uint64_t layer_bytes, const char *scratch,
                        const struct volume_limits *limits, struct error *err)
{
    struct error ignored;
    autofd from = open_subvolume(layers_fd, name);
    if (from < 0)
        return error_sys(err, "open layer '%s'", name);
    if (snapshot(from, volume->scratch_fd, scratch, false) < 0)
        return error_sys(err, "take a snapshot of the subvolume");
    autofd fd = -1;
    if (volume_open_scratch_dir(volume, scratch, &fd, err) == 0 &&
        prepare_branch(volume, fd, layer_bytes, limits, err) == 0)
        return 0;
    (void)btrfs_remove(volume, scratch, &ignored);
    return -1;
}

static int make_layer(int layers_fd, const char *name, struct error *err)
{
    return make_subvolume(layers_fd, name) < 0 ? error_sys(err, "make a subvolume") : 0;
}

static int seal_layer(int layers_fd, const char *name, struct error *err)
{
    uint64_t flags = BTRFS_SUBVOL_RDONLY;
    autofd fd = open_subvolume(layers_fd, name);
    if (fd < 0 || ioctl(fd, BTRFS_IOC_SUBVOL_SETFLAGS, &flags) < 0)
        return error_sys(err, "make it read-only");
    return 0;
}

static int remove_layer(struct volume *volume, int layers_fd, const char *name, struct error *err)
{
    uint64_t id = 0;
    autofd fd = volume->has_simple_quota ? -1 : open_subvolume(layers_fd, name);

    if (fd >= 0)
        (void)read_subvolume_id(fd, &id);
    closep(&fd);
    if (destroy_subvolume(layers_fd, name) < 0) {
        if (errno == EINVAL || errno == ENOTDIR)
            return fd_remove_tree(layers_fd, name, err);
        return errno == ENOENT ? 0 : error_sys(err, "destroy the subvolume");
    }
    if (id)
        remove_quota_group(volume->dir_fd, id);
    return 0;
}

static int64_t made_at(int fd)
{
    struct btrfs_ioctl_get_subvol_info_args info;
    if (ioctl(fd, BTRFS_IOC_GET_SUBVOL_INFO, &info) < 0)
        return 0;
    return (int64_t)info.otime.sec * 1000000000 + info.otime.nsec;
}

static const struct volume_layer_ops layer_ops = {
    .save = save_layer,
    .branch = branch_layer,
    .make = make_layer,
    .seal = seal_layer,
    .remove = remove_layer,
    .made_at = made_at,
};

const struct volume_ops volume_btrfs_ops = {
    .create = btrfs_create,
    .open = volume_open_scratch_dir,
    .limit = btrfs_limit,
    .usage = btrfs_usage,
    .remove = btrfs_remove,
    .space = volume_fs_space,
    .list = volume_list_dirs,
    .fill = btrfs_fill,
    .sweep_rest = btrfs_sweep_rest,
    .settle = btrfs_settle,
    .replace = btrfs_replace,
    .layers = &layer_ops,
};
