/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of volumes share; see volume_fixture.h. */
#include "engine/volume_fixture.h"

#include "engine/fs_context.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

struct volume_places places;
const struct volume_options loop = {.scheme = VOLUME_LOOP_BTRFS, .size_bytes = 1024 * MIB};

/* A failed CHECK jumps out and leaves fds open: closing all of ours lets go of every volume. */
static void clean(void)
{
    struct error err = {0};
    char inner[200];

    if (!places.base[0])
        return;
    (void)syscall(SYS_close_range, 3, ~0U, 0);
    (void)snprintf(inner, sizeof inner, "%s/merged", places.base);
    (void)umount2(inner, UMOUNT_NOFOLLOW);
    (void)snprintf(inner, sizeof inner, "%s/up", places.base);
    (void)umount2(inner, UMOUNT_NOFOLLOW);
    (void)snprintf(inner, sizeof inner, "%s/data", places.disk);
    const char *const volumes[] = {places.data, places.other, inner};
    for (size_t i = 0; i < ARRAY_SIZE(volumes); i++) {
        if (volume_detach(volumes[i], &err) < 0)
            printf("# %s\n", err.text);
    }
    (void)umount2(places.disk, UMOUNT_NOFOLLOW);
    if (fd_remove_tree(AT_FDCWD, places.base, &err) < 0)
        printf("# %s\n", err.text);
    places.base[0] = '\0';
}

static void clean_and_end(int number)
{
    clean();
    _exit(128 + number);
}

void fresh_places(void)
{
    const char *asked = getenv("BURROW_TEST_DIR");
    const char *where = asked ? asked : access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
    static bool is_prepared;

    if (geteuid() != 0)
        SKIP("needs root");
    if (!is_prepared) {
        (void)atexit(clean);
        (void)signal(SIGTERM, clean_and_end);
        (void)signal(SIGINT, clean_and_end);
        is_prepared = true;
    }
    clean();
    (void)snprintf(places.base, sizeof places.base, "%s/burrow-test-volume-XXXXXX", where);
    CHECK(mkdtemp(places.base));
    (void)snprintf(places.data, sizeof places.data, "%s/data", places.base);
    (void)snprintf(places.other, sizeof places.other, "%s/other", places.base);
    (void)snprintf(places.disk, sizeof places.disk, "%s/disk", places.base);
    CHECK(mkdir(places.disk, 0700) == 0);
}

void need_loop_devices(void)
{
    if (access("/dev/loop-control", F_OK) < 0)
        SKIP("this machine has no loop devices");
}

void need_program(const char *name)
{
    char test[256];
    (void)snprintf(test, sizeof test, "command -v %s >/dev/null 2>&1", name);
    if (system(test) != 0)
        SKIP("%s is not installed", name);
}

struct volume *open_volume(const char *where, const struct volume_options *options)
{
    struct volume *volume = NULL;
    struct error err = {0};
    if (options && options->scheme == VOLUME_LOOP_BTRFS)
        need_loop_devices();
    CHECK_OK(volume_open(where, options, &volume, &err), err);
    return volume;
}

int make_scratch(struct volume *volume, const char *name, uint64_t bytes, uint64_t inodes)
{
    const struct volume_limits limits = {.bytes = bytes, .inodes = inodes};
    struct error err = {0};
    int dir_fd = -1;
    CHECK_OK(volume_scratch_create(volume, name, &limits, &dir_fd, &err), err);
    CHECK(dir_fd >= 0);
    return dir_fd;
}

bool exists(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

uint64_t write_file(int dir_fd, const char *name, uint64_t most, int *why)
{
    static char chunk[64 << 10];
    uint64_t wrote = 0;
    autofd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    *why = fd < 0 ? errno : 0;
    memset(chunk, 'x', sizeof chunk);
    while (fd >= 0 && wrote < most) {
        ssize_t got = write(fd, chunk, sizeof chunk);
        if (got < 0) {
            *why = errno;
            break;
        }
        wrote += (uint64_t)got;
    }
    return wrote;
}

/* ext4 lets whoever has CAP_SYS_RESOURCE pass a limit, so the tests do without, as overlays are
 * mounted. */
static void drop_sys_resource(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    CHECK(syscall(SYS_capget, &header, sets) == 0);
    sets[0].effective &= ~(1U << CAP_SYS_RESOURCE);
    CHECK(syscall(SYS_capset, &header, sets) == 0);
}

/* What every scheme promises. */
static void check_limits(struct volume *volume)
{
    struct error err = {0};
    uint64_t used = 0;
    int why = 0;

    drop_sys_resource();
    autofd dir = make_scratch(volume, "s1", 32 * MIB, 0);
    autofd neighbour = make_scratch(volume, "s2", 32 * MIB, 0);
    uint64_t wrote = write_file(dir, "upper/big", 64 * MIB, &why);
    CHECK(why == EDQUOT || why == ENOSPC);
    CHECK(wrote <= 32 * MIB && wrote >= 30 * MIB);
    CHECK(write_file(neighbour, "upper/small", MIB, &why) == MIB);

    CHECK_OK(volume_scratch_usage(volume, "s1", true, &used, &err), err);
    CHECK(used >= 30 * MIB && used <= 32 * MIB);
    CHECK_OK(volume_scratch_usage(volume, "s2", true, &used, &err), err);
    CHECK(used >= MIB && used < 2 * MIB);

    CHECK(unlinkat(dir, "upper/big", 0) == 0);
    wrote = write_file(dir, "upper/again", 20 * MIB, &why);
    CHECK_INT(why, 0);
    CHECK(wrote == 20 * MIB);

    const struct volume_limits wider = {.bytes = 64 * MIB};
    CHECK_OK(volume_scratch_limit(volume, "s1", &wider, &err), err);
    wrote = write_file(dir, "upper/more", 64 * MIB, &why);
    CHECK(why == EDQUOT || why == ENOSPC);
    CHECK(wrote >= 40 * MIB && wrote <= 44 * MIB);

    CHECK_OK(volume_scratch_remove(volume, "s1", &err), err);
    CHECK_OK(volume_scratch_remove(volume, "s2", &err), err);
}

static void check_names(struct volume *volume)
{
    static const char *const bad[] = {
        "",    ".",
        "..",  "a/b",
        "a b", "../s1",
        "a\n", "ä",
        "a_b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    const struct volume_limits limits = {0};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct error err = {0};
        uint64_t bytes;
        int fd = -1;
        CHECK(volume_scratch_create(volume, bad[i], &limits, &fd, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK(volume_scratch_open(volume, bad[i], &fd, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK(volume_scratch_limit(volume, bad[i], &limits, &err) < 0);
        CHECK(volume_scratch_usage(volume, bad[i], false, &bytes, &err) < 0);
        CHECK(volume_scratch_remove(volume, bad[i], &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK_INT(fd, -1);
    }
    struct error err = {0};
    autofd fd = make_scratch(volume, bad[9] + 1, 0, 0); // 64 letters are fine
    CHECK_OK(volume_scratch_remove(volume, bad[9] + 1, &err), err);
}

static void check_places(struct volume *volume)
{
    struct stat info;
    mode_t mask = umask(077);
    autofd dir = make_scratch(volume, "s1", 16 * MIB, 0);
    (void)umask(mask);
    CHECK(fstatat(dir, "upper", &info, 0) == 0);
    CHECK_INT(info.st_mode & 07777, 0755);
    CHECK(info.st_uid == 0 && info.st_gid == 0);
    CHECK(fstatat(dir, "work", &info, 0) == 0);
    CHECK(renameat(dir, "work", dir, "upper/work") == 0); // one file system, one subvolume
}

static void check_recreate(struct volume *volume)
{
    struct error err = {0};
    int why;
    autofd first = make_scratch(volume, "s1", 16 * MIB, 0);
    CHECK(write_file(first, "upper/left", MIB, &why) == MIB);
    autofd second = make_scratch(volume, "s1", 16 * MIB, 0);
    CHECK(!exists(second, "upper/left") && exists(second, "work"));
    autofd opened = -1;
    CHECK_OK(volume_scratch_open(volume, "s1", &opened, &err), err);
    CHECK(exists(opened, "upper"));
}

static void check_missing(struct volume *volume)
{
    const struct volume_limits limits = {.bytes = MIB};
    struct error err = {0};
    uint64_t bytes;
    int fd = -1;
    CHECK_OK(volume_scratch_remove(volume, "nobody", &err), err);
    CHECK(volume_scratch_open(volume, "nobody", &fd, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(volume_scratch_usage(volume, "nobody", false, &bytes, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(volume_scratch_limit(volume, "nobody", &limits, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
}

bool owns_even(const char *name, void *seen)
{
    ++*(unsigned *)seen;
    return (name[1] - '0') % 2 == 0;
}

static void check_sweep(struct volume *volume)
{
    struct error err = {0};
    unsigned seen = 0;
    int fd = -1;
    for (char name[] = "s0"; name[1] <= '5'; name[1]++) {
        fd = make_scratch(volume, name, 16 * MIB, 0);
        closep(&fd);
    }
    CHECK_OK(volume_sweep(volume, owns_even, &seen, &err), err);
    CHECK_INT(seen, 6);
    for (char name[] = "s0"; name[1] <= '5'; name[1]++) {
        bool is_there = volume_scratch_open(volume, name, &fd, &err) == 0;
        CHECK_INT(is_there, (name[1] - '0') % 2 == 0);
        closep(&fd);
    }
}

/* What a guest may leave: depth, numbers, links, whiteouts, odd modes. */
static void fill_with_rubbish(int dir_fd)
{
    char name[24];
    autofd at = openat(dir_fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(symlinkat("/", at, "root") == 0 && symlinkat(places.base, at, "base") == 0);
    CHECK(mknodat(at, "whiteout", S_IFCHR, makedev(0, 0)) == 0);
    CHECK(mkfifoat(at, "fifo", 0600) == 0);
    CHECK(mkdirat(at, "many", 0) == 0);
    autofd many = openat(at, "many", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "%u", i);
        CHECK(symlinkat("../root", many, name) == 0);
    }
    for (unsigned i = 0; i < 3000; i++) {
        CHECK(mkdirat(at, "deep", 0700) == 0);
        int below = openat(at, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(below >= 0);
        (void)close(at);
        at = below;
    }
}

static void check_rubbish(struct volume *volume)
{
    struct error err = {0};
    int fd = make_scratch(volume, "s1", 0, 0);
    fill_with_rubbish(fd);
    closep(&fd);
    CHECK_OK(volume_scratch_remove(volume, "s1", &err), err);
    CHECK(volume_scratch_open(volume, "s1", &fd, &err) < 0);
    CHECK(access(places.base, F_OK) == 0 && access(places.disk, F_OK) == 0);
}

/* As a box sees it: what is written to the overlay is written with its mounter's rights. */
static void check_overlay(struct volume *volume)
{
    char merged[200], up[200], options[600];
    struct error err = {0};
    int why = 0;

    drop_sys_resource();
    (void)snprintf(merged, sizeof merged, "%s/merged", places.base);
    (void)snprintf(up, sizeof up, "%s/up", places.base);
    CHECK(mkdir(merged, 0700) == 0 || errno == EEXIST);
    CHECK(mkdir(up, 0700) == 0 || errno == EEXIST);
    autofd dir = make_scratch(volume, "s1", 16 * MIB, 0);
    if (volume_scheme(volume) == VOLUME_TMPFS)
        CHECK_OK(fs_context_attach(dir, AT_FDCWD, up, &err), err);
    else
        (void)snprintf(up, sizeof up, "/proc/self/fd/%d", dir);
    (void)snprintf(options, sizeof options, "lowerdir=/etc,upperdir=%s/upper,workdir=%s/work", up,
                   up);
    CHECK(mount("overlay", merged, "overlay", MS_NODEV | MS_NOSUID, options) == 0);
    autofd top = open(merged, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t wrote = write_file(top, "big", 32 * MIB, &why);
    CHECK(why == EDQUOT || why == ENOSPC);
    CHECK(wrote <= 16 * MIB && wrote >= 14 * MIB);
    CHECK(unlinkat(top, "big", 0) == 0 && unlinkat(top, "passwd", 0) == 0);
    CHECK(write_file(top, "again", MIB, &why) == MIB);
    closep(&top);
    CHECK(umount2(merged, UMOUNT_NOFOLLOW) == 0);
    closep(&dir);
    CHECK_OK(volume_scratch_remove(volume, "s1", &err), err);
    (void)umount2(up, UMOUNT_NOFOLLOW);
}

static void check_space(struct volume *volume)
{
    struct volume_space space = {0};
    struct error err = {0};
    CHECK_OK(volume_space(volume, &space, &err), err);
    CHECK(space.total_bytes > 0 && space.free_bytes > 0);
    CHECK(space.free_bytes <= space.total_bytes);
}

static const struct {
    const char *name;
    void (*check)(struct volume *volume);
} promises[] = {
    {"limits", check_limits},     {"names", check_names},     {"places", check_places},
    {"recreate", check_recreate}, {"missing", check_missing}, {"sweep", check_sweep},
    {"overlay", check_overlay},   {"rubbish", check_rubbish}, {"space", check_space},
};

void check_promises(struct volume *volume)
{
    for (size_t i = 0; i < ARRAY_SIZE(promises); i++) {
        printf("# %s: %s\n", volume_scheme_name(volume_scheme(volume)), promises[i].name);
        promises[i].check(volume);
    }
}

static unsigned make_files(int dir_fd, unsigned most, int *why)
{
    char name[32];
    for (unsigned i = 0; i < most; i++) {
        (void)snprintf(name, sizeof name, "upper/f%u", i);
        autofd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        *why = errno;
        if (fd < 0)
            return i;
    }
    return most;
}

void check_inodes(struct volume *volume)
{
    const struct volume_limits wider = {.bytes = 64 * MIB, .inodes = 2000};
    struct error err = {0};
    int why = 0;
    drop_sys_resource();
    autofd dir = make_scratch(volume, "s1", 64 * MIB, 1000);
    unsigned made = make_files(dir, 3000, &why);
    CHECK(why == ENOSPC || why == EDQUOT);
    CHECK(made >= 1000 && made <= 1010);
    CHECK_OK(volume_scratch_limit(volume, "s1", &wider, &err), err);
    CHECK(unlinkat(dir, "upper/f0", 0) == 0 && mkdirat(dir, "upper/again", 0700) == 0);
    CHECK(mkdirat(dir, "upper/more", 0700) == 0);
}

bool owns_all(const char *name, void *unused)
{
    (void)name;
    (void)unused;
    return true;
}

unsigned count_mounts(const char *text)
{
    char line[4096];
    unsigned count = 0;
    autofile mounts = fopen("/proc/self/mountinfo", "re");
    while (mounts && fgets(line, sizeof line, mounts))
        count += strstr(line, text) != NULL;
    return count;
}

/* Project quota */

const struct project_case ext4_case = {
    VOLUME_EXT4, "ext4",
    "mkfs.ext4 -q -F -b 4096 -O project,quota -E quotatype=prjquota '%s' >/dev/null 2>&1"};
const struct project_case xfs_case = {VOLUME_XFS, "xfs",
                                      "mkfs.xfs -q -f -s size=4096 '%s' >/dev/null 2>&1"};

void mount_with_quota(const struct project_case *one)
{
    char path[256], command[512];
    struct error err = {0};
    struct loop_device device = {.fd = -1};
    const char *images = getenv("BURROW_TEST_IMAGES");

    (void)snprintf(path, sizeof path, "%s/%s.img", images ? images : places.base, one->type);
    if (!images) {
        autofd made = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(made >= 0 && ftruncate(made, 400 << 20) == 0);
        (void)snprintf(command, sizeof command, "mkfs.%s", one->type);
        need_program(command);
        (void)snprintf(command, sizeof command, one->mkfs, path);
        CHECK(system(command) == 0);
    }
    autofd image = open(path, O_RDWR | O_CLOEXEC);
    CHECK(image >= 0);
    need_loop_devices();
    CHECK_OK(loop_device_attach(image, &device, &err), err);
    int result = mount(device.path, places.disk, one->type, 0, "prjquota");
    int why = errno;
    closep(&device.fd);
    if (result < 0 && (why == EINVAL || why == ENODEV)) // a kernel without quotas, or without it
        SKIP("this kernel does not mount %s with project quota", one->type);
    if (result < 0)
        test_fail(__FILE__, __LINE__, "mount %s: %s", one->type, strerror(why));
}
