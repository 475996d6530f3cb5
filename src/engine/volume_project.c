/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scratches as directories of the host's XFS or ext4, each a quota project of its own.
 *
 * Project ids are a resource of the whole file system, which others use too. Ours lie in one range;
 * the id of a scratch is looked for from a hash of its name on. The link <volume>/projects/<id> ->
 * <scratch> claims an id atomically; an id that has usage or limits without a claim of ours is
 * somebody else's and left alone. A claim is made after its scratch's directory and removed after
 * it, so a claim without a directory is free for the sweep. Claims change under a lock on their
 * directory.
 */
#include "base/fd.h"
#include "engine/volume_impl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

#define FIRST_ID 0x42000000U
#define N_IDS 0x01000000U
enum { MAX_TRIES = 4096, BASIC_BLOCK = 512 };

// the scratch's own: its top, upper, work, and what overlay makes in work
#define OWN_INODES 8

/* The kernel's quota calls; the XFS ones serve ext4 as well. */

static int project_quota(int fd, unsigned command, uint32_t id, void *data)
{
    return (int)syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), id, data);
}

int volume_project_check(int dir_fd, enum volume_scheme scheme, struct error *err)
{
    const unsigned needed = FS_QUOTA_PDQ_ACCT | FS_QUOTA_PDQ_ENFD;
    struct fs_quota_statv state = {.qs_version = FS_QSTATV_VERSION1};

    if (project_quota(dir_fd, Q_XGETQSTATV, 0, &state) == 0 && (state.qs_flags & needed) == needed)
        return 0;
    if (scheme == VOLUME_XFS)
        return error_set(err, ERROR_UNAVAILABLE,
                         "project quota is off on this XFS: mount it with the option 'prjquota'");
    return error_set(err, ERROR_UNAVAILABLE,
                     "project quota is off on this ext4: 'tune2fs -O project,quota -Q prjquota' on "
                     "the unmounted "
                     "device, then mount it with the option 'prjquota'");
}

static int set_limits(int fd, uint32_t id, const struct volume_limits *limits, struct error *err)
{
    struct fs_disk_quota quota = {
        .d_version = FS_DQUOT_VERSION,
        .d_flags = FS_PROJ_QUOTA,
        .d_fieldmask = FS_DQ_BHARD | FS_DQ_BSOFT | FS_DQ_IHARD | FS_DQ_ISOFT,
        .d_id = id,
        .d_blk_hardlimit = (limits->bytes + BASIC_BLOCK - 1) / BASIC_BLOCK,
        .d_ino_hardlimit = limits->inodes ? limits->inodes + OWN_INODES : 0,
    };
    if (project_quota(fd, Q_XSETQLIM, id, &quota) < 0)
        return error_sys(err, "set the limit of project %" PRIu32, id);
    return 0;
}

static int read_quota(int fd, uint32_t id, struct fs_disk_quota *out)
{
    *out = (struct fs_disk_quota){.d_version = FS_DQUOT_VERSION};
    if (project_quota(fd, Q_XGETQUOTA, id, out) == 0)
        return 0;
    return errno == ENOENT || errno == ESRCH ? 0 : -1; // never seen: all zero
}

/* Ids */

/* Locked until it is closed. */
static int lock_projects(struct volume *volume, struct error *err)
{
    autofd fd = openat(volume->dir_fd, "projects", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open the volume's directory 'projects'");
    while (flock(fd, LOCK_EX) < 0) {
        if (errno != EINTR)
            return error_sys(err, "lock the volume's directory 'projects'");
    }
    return take_fd(fd);
}

static void claim_name(uint32_t id, char text[16])
{
    (void)snprintf(text, 16, "%08" PRIx32, id);
}

static uint32_t hash(uint64_t salt, const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ salt; // FNV-1a
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return (uint32_t)(hash >> 32);
}

/* 1 when the id is now ours, 0 when it is taken. */
static int claim_id(int projects_fd, uint32_t id, const char *scratch, struct error *err)
{
    struct fs_disk_quota quota;
    char claim[16];

    claim_name(id, claim);
    if (symlinkat(scratch, projects_fd, claim) < 0)
        return errno == EEXIST ? 0 : error_sys(err, "claim a project id");
    if (read_quota(projects_fd, id, &quota) < 0) {
        error_sys(err, "read the quota of project %" PRIu32, id);
        (void)unlinkat(projects_fd, claim, 0);
        return -1;
    }
    if (!quota.d_bcount && !quota.d_icount && !quota.d_blk_hardlimit && !quota.d_ino_hardlimit)
        return 1;
    (void)unlinkat(projects_fd, claim, 0);
    return 0;
}

/* A free id, with the scratch's limits already set: so nobody takes it for free any more. */
static int find_id(struct volume *volume, const char *scratch, const struct volume_limits *limits,
                   uint32_t *out, struct error *err)
{
    struct stat info;
    autofd projects = lock_projects(volume, err);
    if (projects < 0)
        return -1;
    if (fstat(projects, &info) < 0)
        return error_sys(err, "look at the volume's directory 'projects'");
    uint32_t start = hash(info.st_ino, scratch); // volumes of one file system differ by it
    for (uint32_t i = 0; i < MAX_TRIES; i++) {
        uint32_t id = FIRST_ID + (start + i) % N_IDS;
        int claimed = claim_id(projects, id, scratch, err);
        if (claimed == 0)
            continue;
        if (claimed < 0)
            return -1;
        *out = id;
        return set_limits(projects, id, limits, err);
    }
    return error_set(err, ERROR_LIMIT, "no free project id in %d tries", MAX_TRIES);
}

static void release_claim(int projects, uint32_t id)
{
    const struct volume_limits none = {0};
    struct error ignored;
    char claim[16];

    claim_name(id, claim);
    (void)set_limits(projects, id, &none, &ignored);
    (void)unlinkat(projects, claim, 0);
}

/* Best effort, the sweep comes back to it. An id that is not the scratch's any more is left alone.
 */
static void release_id(struct volume *volume, uint32_t id, const char *scratch)
{
    struct error ignored;
    char claim[16], owner[80];
    autofd projects = lock_projects(volume, &ignored);

    if (projects < 0)
        return;
    claim_name(id, claim);
    ssize_t length = readlinkat(projects, claim, owner, sizeof owner - 1);
    owner[length < 0 ? 0 : length] = '\0';
    if (strcmp(owner, scratch) == 0)
        release_claim(projects, id);
}

static bool is_ours(uint32_t id)
{
    return id >= FIRST_ID && id - FIRST_ID < N_IDS;
}

/* 0: none of ours. */
static uint32_t read_id(int dir_fd)
{
    struct fsxattr attributes;
    if (ioctl(dir_fd, FS_IOC_FSGETXATTR, &attributes) < 0 || !is_ours(attributes.fsx_projid))
        return 0;
    return attributes.fsx_projid;
}

/* Everything made in the directory from now on belongs to the project. */
static int write_id(int dir_fd, uint32_t id, struct error *err)
{
    struct fsxattr attributes;
    if (ioctl(dir_fd, FS_IOC_FSGETXATTR, &attributes) < 0)
        return error_sys(err, "read its project id");
    attributes.fsx_projid = id;
    attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
    if (ioctl(dir_fd, FS_IOC_FSSETXATTR, &attributes) < 0)
        return error_sys(err, "set its project id");
    return 0;
}

/* Scratches */

int volume_project_prepare(struct volume *volume, struct error *err)
{
    static const char *const names[] = {"projects", "trash"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (mkdirat(volume->dir_fd, names[i], 0700) < 0 && errno != EEXIST)
            return error_sys(err, "make the volume's directory '%s'", names[i]);
    }
    return 0;
}

/* Into the trash by one rename, so the name is free at once and a half-removed tree is nobody's. */
static int move_to_trash(struct volume *volume, const char *name, char trash[32])
{
    uint64_t random = 0;
    (void)getrandom(&random, sizeof random, 0);
    (void)snprintf(trash, 32, "trash/%016" PRIx64, random);
    return renameat(volume->scratch_fd, name, volume->dir_fd, trash);
}

static int empty_trash(struct volume *volume, const char *trash, struct error *err)
{
    autofd fd = openat(volume->dir_fd, "trash", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open the volume's directory 'trash'");
    return fd_remove_tree(fd, trash, err);
}

static int project_remove(struct volume *volume, const char *name, struct error *err)
{
    char trash[32];
    uint32_t id = 0;
    autofd dir = openat(volume->scratch_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir >= 0)
        id = read_id(dir);
    closep(&dir);
    if (move_to_trash(volume, name, trash) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "move it to the trash");
    int result = empty_trash(volume, strchr(trash, '/') + 1, err);
    if (id && result == 0)
        release_id(volume, id, name);
    return result;
}

static int make_dir(struct volume *volume, const char *name, struct error *err)
{
    if (mkdirat(volume->scratch_fd, name, 0700) == 0)
        return 0;
    if (errno != EEXIST)
        return error_sys(err, "make its directory");
    if (project_remove(volume, name, err) < 0)
        return -1;
    return mkdirat(volume->scratch_fd, name, 0700) < 0 ? error_sys(err, "make its directory") : 0;
}

static int project_create(struct volume *volume, const char *name,
                          const struct volume_limits *limits, int *dir_fd, struct error *err)
{
    struct error ignored;
    uint32_t id = 0;
    autofd dir = -1;

    if (make_dir(volume, name, err) < 0)
        return -1;
    if (volume_open_scratch_dir(volume, name, &dir, err) == 0 &&
        find_id(volume, name, limits, &id, err) == 0 && write_id(dir, id, err) == 0 &&
        volume_make_places(dir, err) == 0) {
        *dir_fd = take_fd(dir);
        return 0;
    }
    (void)project_remove(volume, name, &ignored);
    if (id)
        release_id(volume, id, name);
    return -1;
}

static int find_project(struct volume *volume, const char *name, int *dir_fd, uint32_t *id,
                        struct error *err)
{
    autofd dir = -1;
    if (volume_open_scratch_dir(volume, name, &dir, err) < 0)
        return -1;
    *id = read_id(dir);
    if (!*id)
        return error_set(err, ERROR_CONFLICT, "it has no project id: it was not made completely");
    *dir_fd = take_fd(dir);
    return 0;
}

static int project_limit(struct volume *volume, const char *name,
                         const struct volume_limits *limits, struct error *err)
{
    uint32_t id;
    autofd dir = -1;
    if (find_project(volume, name, &dir, &id, err) < 0)
        return -1;
    return set_limits(dir, id, limits, err);
}

static int project_usage(struct volume *volume, const char *name, bool is_exact, uint64_t *bytes,
                         struct error *err)
{
    struct fs_disk_quota quota;
    uint32_t id;
    autofd dir = -1;

    if (find_project(volume, name, &dir, &id, err) < 0)
        return -1;
    if (is_exact && syncfs(dir) < 0)
        return error_sys(err, "write it back");
    if (read_quota(dir, id, &quota) < 0)
        return error_sys(err, "read the quota of project %" PRIu32, id);
    *bytes = quota.d_bcount * BASIC_BLOCK;
    return 0;
}

/* Moves the claims of two scratches that have changed places. What a crash leaves is put right by the sweep. */
static int move_claim(int projects, uint32_t id, const char *scratch)
{
    char claim[16], fresh[24];
    claim_name(id, claim);
    (void)snprintf(fresh, sizeof fresh, "new-%s", claim);
    (void)unlinkat(projects, fresh, 0);
    if (symlinkat(scratch, projects, fresh) < 0)
        return -1;
    return renameat(projects, fresh, projects, claim);
}

static int project_replace(struct volume *volume, const char *from, const char *to,
                           struct error *err)
{
    struct error ignored;
    autofd old = -1, new = -1;
    uint32_t old_id = 0, new_id;

    if (find_project(volume, from, &new, &new_id, err) < 0)
        return -1;
    if (volume_open_scratch_dir(volume, to, &old, &ignored) == 0)
        old_id = read_id(old);
    autofd projects = lock_projects(volume, err);
    if (projects < 0)
        return -1;
    if (syscall(SYS_renameat2, volume->scratch_fd, from, volume->scratch_fd, to,
                old < 0 ? RENAME_NOREPLACE : RENAME_EXCHANGE) < 0)
        return error_sys(err, "put it in its place");
    if (move_claim(projects, new_id, to) < 0 || (old_id && move_claim(projects, old_id, from) < 0))
        return error_sys(err, "move its project id");
    if (fsync(volume->scratch_fd) < 0)
        return error_sys(err, "write to the disk");
    closep(&projects); // removing takes it again
    closep(&old);
    if (old_id)
        (void)project_remove(volume, from, &ignored); // swept at the latest
    return 0;
}

/* The scratch that has the project id, when a claim names another: it was killed while two changed places. */
static bool find_owner(struct volume *volume, uint32_t id, char owner[80])
{
    struct volume_names names = {0};
    struct error ignored;
    bool is_found = false;

    if (volume_list_dirs(volume, &names, &ignored) < 0)
        return true; // cannot be told: the claim stays
    for (size_t i = 0; i < names.count && !is_found; i++) {
        autofd dir = -1;
        if (volume_open_scratch_dir(volume, names.names[i], &dir, &ignored) < 0)
            continue;
        is_found = read_id(dir) == id;
        if (is_found)
            (void)snprintf(owner, 80, "%s", names.names[i]);
    }
    volume_names_clear(&names);
    return is_found;
}

/* Frees the claim when its scratch is gone. */
static void sweep_claim(struct volume *volume, int projects, const char *claim)
{
    char *end = NULL;
    char scratch[80];
    unsigned long id = strtoul(claim, &end, 16);
    ssize_t length = readlinkat(projects, claim, scratch, sizeof scratch - 1);

    if (length < 0 || *end || id > UINT32_MAX || !is_ours((uint32_t)id))
        return;
    scratch[length] = '\0';
    autofd dir =
        openat(volume->scratch_fd, scratch, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    uint32_t real = dir < 0 ? 0 : read_id(dir);
    bool is_gone = dir < 0 && errno == ENOENT;
    if (!is_gone && (!real || real == id)) // no id yet: it is being made
        return;
    scratch[0] = '\0';
    if (!find_owner(volume, (uint32_t)id, scratch))
        release_claim(projects, (uint32_t)id);
    else if (scratch[0])
        (void)move_claim(projects, (uint32_t)id, scratch);
}

static int sweep_claims(struct volume *volume, struct error *err)
{
    struct dirent *entry;
    int fd = lock_projects(volume, err);
    if (fd < 0)
        return -1;
    autodir claims = fdopendir(fd);
    if (!claims) {
        error_sys(err, "list the volume's directory 'projects'");
        closep(&fd);
        return -1;
    }
    while ((entry = readdir(claims))) {
        if (entry->d_name[0] != '.')
            sweep_claim(volume, fd, entry->d_name);
    }
    return 0;
}

static int sweep_trash(struct volume *volume, struct error *err)
{
    struct dirent *entry;
    int fd = openat(volume->dir_fd, "trash", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autodir trash = fd < 0 ? NULL : fdopendir(fd);
    if (!trash) {
        error_sys(err, "list the volume's directory 'trash'");
        closep(&fd);
        return -1;
    }
    while ((entry = readdir(trash))) {
        if (entry->d_name[0] != '.' && fd_remove_tree(fd, entry->d_name, err) < 0)
            return -1;
    }
    return 0;
}

static int project_sweep_rest(struct volume *volume, struct error *err)
{
    return sweep_trash(volume, err) < 0 ? -1 : sweep_claims(volume, err);
}

const struct volume_ops volume_project_ops = {
    .counts_inodes = true,
    .create = project_create,
    .open = volume_open_scratch_dir,
    .limit = project_limit,
    .usage = project_usage,
    .remove = project_remove,
    .space = volume_fs_space,
    .list = volume_list_dirs,
    .sweep_rest = project_sweep_rest,
    .replace = project_replace,
};
