/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of volumes (src/engine/volume.c) on real file systems. Needs root. Everything is made below
 * a directory of its own in BURROW_TEST_DIR (else /var/tmp), and detached and removed after each
 * test, also after a failed one.
 */
#include "base/fd.h"
#include "engine/fs_context.h"
#include "engine/loop_device.h"
#include "engine/volume.h"
#include "test.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#define MIB ((uint64_t)1 << 20)

static char base[128]; // this run's directory
static char data[160]; // the current test's data directory
static char other[160];
static char disk[160]; // where a small file system may be mounted for a data directory

static const struct volume_options loop = {.scheme = VOLUME_LOOP_BTRFS, .size_bytes = 1024 * MIB};

/* A failed CHECK jumps out and leaves fds open: closing all of ours lets go of every volume. */
static void clean(void)
{
    struct error err = {0};
    char inner[200];

    if (!base[0])
        return;
    (void)syscall(SYS_close_range, 3, ~0U, 0);
    (void)snprintf(inner, sizeof inner, "%s/data", disk);
    const char *const places[] = {data, other, inner};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (volume_detach(places[i], &err) < 0)
            printf("# %s\n", err.text);
    }
    (void)umount2(disk, UMOUNT_NOFOLLOW);
    if (fd_remove_tree(AT_FDCWD, base, &err) < 0)
        printf("# %s\n", err.text);
    base[0] = '\0';
}

static void clean_and_end(int number)
{
    clean();
    _exit(128 + number);
}

static void begin(void)
{
    const char *where = getenv("BURROW_TEST_DIR");
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
    (void)snprintf(base, sizeof base, "%s/burrow-test-volume-XXXXXX", where ? where : "/var/tmp");
    CHECK(mkdtemp(base));
    (void)snprintf(data, sizeof data, "%s/data", base);
    (void)snprintf(other, sizeof other, "%s/other", base);
    (void)snprintf(disk, sizeof disk, "%s/disk", base);
    CHECK(mkdir(disk, 0700) == 0);
}

static struct volume *open_volume(const char *where, const struct volume_options *options)
{
    struct volume *volume = NULL;
    struct error err = {0};
    if (volume_open(where, options, &volume, &err) < 0 && err.kind == ERROR_UNAVAILABLE)
        SKIP("%s", err.text);
    if (!volume)
        test_fail(__FILE__, __LINE__, "volume_open failed: %s", err.text);
    return volume;
}

static int make_scratch(struct volume *volume, const char *name, uint64_t bytes, uint64_t inodes)
{
    const struct volume_limits limits = {.bytes = bytes, .inodes = inodes};
    struct error err = {0};
    int dir_fd = -1;
    CHECK_OK(volume_scratch_create(volume, name, &limits, &dir_fd, &err), err);
    CHECK(dir_fd >= 0);
    return dir_fd;
}

static bool exists(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Writes up to `most` bytes to a file that may exist; how many it took, and why it stopped. */
static uint64_t write_file(int dir_fd, const char *name, uint64_t most, int *why)
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
        CHECK_INT(err.kind, ERROR_INVALID);
        CHECK(volume_scratch_open(volume, bad[i], &fd, &err) < 0);
        CHECK_INT(err.kind, ERROR_INVALID);
        CHECK(volume_scratch_limit(volume, bad[i], &limits, &err) < 0);
        CHECK(volume_scratch_usage(volume, bad[i], false, &bytes, &err) < 0);
        CHECK(volume_scratch_remove(volume, bad[i], &err) < 0);
        CHECK_INT(err.kind, ERROR_INVALID);
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
    CHECK_INT(err.kind, ERROR_NOT_FOUND);
    CHECK(volume_scratch_usage(volume, "nobody", false, &bytes, &err) < 0);
    CHECK_INT(err.kind, ERROR_NOT_FOUND);
    CHECK(volume_scratch_limit(volume, "nobody", &limits, &err) < 0);
    CHECK_INT(err.kind, ERROR_NOT_FOUND);
}

static bool owns_even(const char *name, void *seen)
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
    CHECK(symlinkat("/", at, "root") == 0 && symlinkat(base, at, "base") == 0);
    CHECK(mknodat(at, "whiteout", S_IFCHR, makedev(0, 0)) == 0);
    CHECK(mkfifoat(at, "fifo", 0600) == 0);
    CHECK(mkdirat(at, "many", 0) == 0);
    autofd many = openat(at, "many", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof name, "%u", i);
        CHECK(symlinkat("../root", many, name) == 0);
    }
    for (unsigned i = 0; i < 10000; i++) {
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
    CHECK(access(base, F_OK) == 0 && access(disk, F_OK) == 0);
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
    {"rubbish", check_rubbish},   {"space", check_space},
};

static void check_promises(struct volume *volume)
{
    for (size_t i = 0; i < ARRAY_SIZE(promises); i++) {
        printf("# %s: %s\n", volume_scheme_name(volume_scheme(volume)), promises[i].name);
        promises[i].check(volume);
    }
}

/* Loop btrfs */

TEST(a_loop_volume_keeps_every_promise)
{
    begin();
    autoptr(volume) volume = open_volume(data, &loop);
    CHECK_INT(volume_scheme(volume), VOLUME_LOOP_BTRFS);
    CHECK_STR(volume_scheme_name(volume_scheme(volume)), "loop-btrfs");
    CHECK(!volume_fallback_reason(volume) && !volume_counts_inodes(volume));
    check_promises(volume);
}

TEST(a_loop_volume_takes_no_disk_before_it_is_written_to)
{
    begin();
    struct stat info;
    char path[200];
    autoptr(volume) volume = open_volume(data, &loop);
    (void)snprintf(path, sizeof path, "%s/volume.img", data);
    CHECK(stat(path, &info) == 0);
    CHECK_INT(info.st_size, 1024 * MIB);
    CHECK((uint64_t)info.st_blocks * 512 < 128 * MIB);
    CHECK_INT(info.st_mode & 07777, 0600);
}

TEST(opening_again_finds_the_attached_volume)
{
    begin();
    const struct volume_options automatic = {0};
    struct error err = {0};
    autoptr(volume) first = open_volume(data, &loop);
    autofd dir = make_scratch(first, "s1", 16 * MIB, 0);
    autoptr(volume) second = open_volume(data, &automatic);
    CHECK_INT(volume_scheme(second), VOLUME_LOOP_BTRFS);
    autofd opened = -1;
    CHECK_OK(volume_scratch_open(second, "s1", &opened, &err), err);

    const struct volume_options wrong = {.scheme = VOLUME_BTRFS};
    struct volume *none = NULL;
    CHECK(volume_open(data, &wrong, &none, &err) < 0);
    CHECK_INT(err.kind, ERROR_CONFLICT);
    CHECK(none == NULL);
}

TEST(scratches_survive_detaching)
{
    begin();
    struct error err = {0};
    int why;
    struct volume *volume = open_volume(data, &loop);
    int dir = make_scratch(volume, "kept", 16 * MIB, 0);
    CHECK(write_file(dir, "upper/file", MIB, &why) == MIB);
    closep(&dir);
    volume_free(volume);
    CHECK_OK(volume_detach(data, &err), err);
    CHECK_OK(volume_detach(data, &err), err); // again is fine

    char path[200];
    (void)snprintf(path, sizeof path, "%s/volume/scratch", data);
    CHECK(access(path, F_OK) < 0);

    volume = open_volume(data, NULL);
    CHECK_INT(volume_scheme(volume), VOLUME_LOOP_BTRFS);
    CHECK_OK(volume_scratch_open(volume, "kept", &dir, &err), err);
    CHECK(exists(dir, "upper/file"));
    uint64_t wrote = write_file(dir, "upper/more", 32 * MIB, &why); // the limit is still there
    CHECK(why == EDQUOT && wrote < 16 * MIB);
    closep(&dir);
    volume_free(volume);
}

TEST(detaching_frees_the_loop_device)
{
    begin();
    struct error err = {0};
    struct loop_device device = {.fd = -1};
    char path[200];
    volume_free(open_volume(data, &loop));
    (void)snprintf(path, sizeof path, "%s/volume.img", data);
    autofd image = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_INT(loop_device_find(image, &device, &err), 1);
    closep(&device.fd);
    CHECK_OK(volume_detach(data, &err), err);
    CHECK_INT(loop_device_find(image, &device, &err), 0);
}

TEST(detaching_a_busy_volume_says_who_uses_it)
{
    begin();
    struct error err = {0};
    char expected[64];
    autoptr(volume) volume = open_volume(data, &loop);
    CHECK(volume_detach(data, &err) < 0);
    CHECK_INT(err.kind, ERROR_CONFLICT);
    CHECK_STR(err.reason, "busy");
    (void)snprintf(expected, sizeof expected, "process %d (", (int)getpid());
    if (!strstr(err.text, expected))
        test_fail(__FILE__, __LINE__, "not named: %s", err.text);
}

TEST(detaching_what_was_never_attached_is_fine)
{
    begin();
    struct error err = {0};
    CHECK_OK(volume_detach(data, &err), err);
    CHECK(mkdir(data, 0700) == 0);
    CHECK_OK(volume_detach(data, &err), err);
}

TEST(two_volumes_do_not_know_each_other)
{
    begin();
    struct error err = {0};
    autoptr(volume) first = open_volume(data, &loop);
    autoptr(volume) second = open_volume(other, &loop);
    autofd one = make_scratch(first, "s1", 16 * MIB, 0);
    autofd two = make_scratch(second, "s1", 16 * MIB, 0);
    int why;
    CHECK(write_file(one, "upper/file", MIB, &why) == MIB);
    CHECK(!exists(two, "upper/file"));
    CHECK_OK(volume_scratch_remove(second, "s1", &err), err);
    CHECK(exists(one, "upper/file"));
}

/* A child of the concurrency test: waits until the pipe is closed, opens, makes a scratch. */
static int open_in_child(int gate, unsigned number)
{
    char byte, name[16];
    struct error err = {0};
    struct volume *volume = NULL;
    const struct volume_limits limits = {.bytes = 16 * MIB};
    int dir = -1;

    (void)!read(gate, &byte, 1);
    (void)snprintf(name, sizeof name, "child-%u", number);
    if (volume_open(data, &loop, &volume, &err) < 0 ||
        volume_scratch_create(volume, name, &limits, &dir, &err) < 0) {
        printf("# child %u: %s\n", number, err.text);
        (void)fflush(stdout);
        return 1;
    }
    return 0;
}

static unsigned count_mounts(const char *below)
{
    char line[4096];
    unsigned count = 0;
    autofile mounts = fopen("/proc/self/mountinfo", "re");
    while (mounts && fgets(line, sizeof line, mounts))
        count += strstr(line, below) != NULL;
    return count;
}

TEST(eight_processes_at_the_first_start_attach_once)
{
    begin();
    enum { N = 8 };
    pid_t children[N];
    int gate[2], status, dir = -1;
    unsigned failed = 0;
    struct error err = {0};

    CHECK(pipe2(gate, O_CLOEXEC) == 0);
    (void)fflush(stdout);
    for (unsigned i = 0; i < N; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            (void)close(gate[1]);
            _exit(open_in_child(gate[0], i));
        }
    }
    (void)close(gate[1]);
    for (unsigned i = 0; i < N; i++) {
        CHECK(waitpid(children[i], &status, 0) == children[i]);
        failed += status != 0;
    }
    CHECK_INT(failed, 0);
    CHECK_INT(count_mounts(data), 1);
    autoptr(volume) volume = open_volume(data, &loop);
    for (unsigned i = 0; i < N; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "child-%u", i);
        CHECK_OK(volume_scratch_open(volume, name, &dir, &err), err);
        closep(&dir);
    }
}

TEST(a_volume_attached_in_another_mount_namespace_is_shared_not_attached_twice)
{
    begin();
    int ready[2], done[2];
    char byte;
    struct error err = {0};

    CHECK(pipe2(ready, O_CLOEXEC) == 0 && pipe2(done, O_CLOEXEC) == 0);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct volume *volume = NULL;
        (void)close(done[1]);
        if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            volume_open(data, &loop, &volume, &err) < 0)
            _exit(1);
        int dir = make_scratch(volume, "theirs", 16 * MIB, 0);
        (void)!write(ready[1], dir >= 0 ? "x" : "", 1);
        (void)!read(done[0], &byte, 1);
        _exit(0);
    }
    (void)close(ready[1]);
    (void)close(done[0]);
    CHECK_INT(read(ready[0], &byte, 1), 1);
    CHECK_INT(count_mounts(data), 0);
    struct volume *volume = open_volume(data, &loop);
    int dir = -1;
    CHECK_OK(volume_scratch_open(volume, "theirs", &dir, &err), err); // the same file system
    closep(&dir);
    volume_free(volume);
    (void)close(done[1]);
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK_OK(volume_detach(data, &err), err);
}

TEST(a_half_made_image_of_a_killed_process_is_cleared_away)
{
    begin();
    char path[200];
    CHECK(mkdir(data, 0700) == 0);
    (void)snprintf(path, sizeof path, "%s/volume.img.new-0123456789abcdef", data);
    autofd half = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(half >= 0 && ftruncate(half, 300 << 20) == 0);
    autoptr(volume) volume = open_volume(data, &loop);
    CHECK(access(path, F_OK) < 0);
}

TEST(a_process_killed_while_making_the_volume_leaves_nothing_in_the_way)
{
    begin();
    struct error err = {0};
    for (unsigned delay_ms = 1; delay_ms < 200; delay_ms += delay_ms / 3 + 1) {
        (void)fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            struct volume *volume = NULL;
            _exit(volume_open(data, &loop, &volume, &err) < 0);
        }
        struct timespec delay = {.tv_nsec = (long)delay_ms * 1000000};
        (void)nanosleep(&delay, NULL); // whatever step it is in
        (void)kill(child, SIGKILL);
        CHECK(waitpid(child, NULL, 0) == child);
        volume_free(open_volume(data, &loop));
        CHECK_OK(volume_detach(data, &err), err);
        char path[200];
        (void)snprintf(path, sizeof path, "%s/volume.img", data);
        CHECK(unlink(path) == 0);
    }
}

TEST(without_mkfs_the_error_names_the_package_and_auto_comes_to_tmpfs)
{
    begin();
    struct volume_options options = {.scheme = VOLUME_LOOP_BTRFS, .mkfs = "/nowhere/mkfs.btrfs"};
    struct error err = {0};
    struct volume *volume = NULL;

    CHECK(volume_open(data, &options, &volume, &err) < 0);
    CHECK_INT(err.kind, ERROR_UNAVAILABLE);
    CHECK(strstr(err.text, "btrfs-progs") && strstr(err.text, "tmpfs") && !volume);
    options.scheme = VOLUME_AUTO;
    CHECK_OK(volume_open(data, &options, &volume, &err), err);
    if (volume_scheme(volume) != VOLUME_TMPFS)
        SKIP("this directory has quotas of its own");
    CHECK(strstr(volume_fallback_reason(volume), "btrfs-progs"));
    autofd dir = make_scratch(volume, "s1", MIB, 0);
    volume_free(volume);
    volume = open_volume(data, &loop); // and is not stuck there
    CHECK_INT(volume_scheme(volume), VOLUME_LOOP_BTRFS);
    volume_free(volume);
}

TEST(a_failing_mkfs_leaves_no_image)
{
    begin();
    const struct volume_options options = {.scheme = VOLUME_LOOP_BTRFS, .mkfs = "/bin/false"};
    struct error err = {0};
    struct volume *volume = NULL;
    char path[200];
    CHECK(volume_open(data, &options, &volume, &err) < 0);
    CHECK(strstr(err.text, "/bin/false"));
    (void)snprintf(path, sizeof path, "%s/volume", data);
    CHECK(rmdir(path) == 0);
    (void)snprintf(path, sizeof path, "%s/volume.lock", data);
    CHECK(unlink(path) == 0);
    CHECK(rmdir(data) == 0); // nothing else was in it
}

TEST(a_full_disk_is_said_so)
{
    begin();
    const struct volume_options automatic = {0};
    struct error err = {0};
    struct volume *volume = NULL;
    char path[200];
    CHECK(mount("small", disk, "tmpfs", 0, "size=100m") == 0);
    (void)snprintf(path, sizeof path, "%s/data", disk);
    CHECK(volume_open(path, &automatic, &volume, &err) < 0);
    CHECK_INT(err.kind, ERROR_LIMIT);
    CHECK(strstr(err.text, "256 MiB") && strstr(err.text, "free"));
    const struct volume_options tiny = {.scheme = VOLUME_LOOP_BTRFS, .size_bytes = MIB};
    CHECK(volume_open(data, &tiny, &volume, &err) < 0);
    CHECK_INT(err.kind, ERROR_INVALID);
}

TEST(free_space_is_no_more_than_the_disk_behind_has)
{
    begin();
    const struct volume_options huge = {.scheme = VOLUME_LOOP_BTRFS, .size_bytes = 8192 * MIB};
    struct volume_space space;
    struct error err = {0};
    char path[200];
    CHECK(mount("small", disk, "tmpfs", 0, "size=400m") == 0);
    (void)snprintf(path, sizeof path, "%s/data", disk);
    autoptr(volume) volume = open_volume(path, &huge);
    CHECK_OK(volume_space(volume, &space, &err), err);
    CHECK(space.total_bytes >= 7000 * MIB);
    CHECK(space.free_bytes <= 400 * MIB && space.free_bytes > 200 * MIB);
}

TEST(space_given_back_inside_becomes_free_on_the_disk)
{
    begin();
    const struct timespec step = {.tv_nsec = 100000000};
    struct error err = {0};
    struct stat info;
    uint64_t used;
    char path[200];
    int why;
    autoptr(volume) volume = open_volume(data, &loop);
    autofd kept = make_scratch(volume, "kept", 0, 0);
    int dir = make_scratch(volume, "s1", 0, 0);
    CHECK(write_file(dir, "upper/big", 200 * MIB, &why) == 200 * MIB);
    CHECK(syncfs(dir) == 0);
    closep(&dir);
    (void)snprintf(path, sizeof path, "%s/volume.img", data);
    CHECK(stat(path, &info) == 0);
    CHECK((uint64_t)info.st_blocks * 512 >= 200 * MIB);
    CHECK_OK(volume_scratch_remove(volume, "s1", &err), err);
    for (unsigned i = 0; i < 1200;
         i++) { // the kernel's cleaner and its discards come in their own time
        CHECK_OK(volume_scratch_usage(volume, "kept", true, &used, &err), err);
        CHECK(stat(path, &info) == 0);
        if ((uint64_t)info.st_blocks * 512 < 100 * MIB)
            return;
        (void)nanosleep(&step, NULL);
    }
    test_fail(__FILE__, __LINE__, "%llu MiB are still taken",
              (unsigned long long)info.st_blocks * 512 / MIB);
}

TEST(a_marked_directory_that_is_no_volume_is_refused)
{
    begin();
    struct error err = {0};
    struct volume *volume = NULL;
    char path[200];
    (void)snprintf(path, sizeof path, "%s/volume", data);
    CHECK_OK(fd_make_dirs(path, 0700, &err), err);
    (void)snprintf(path, sizeof path, "%s/volume/scheme", data);
    CHECK(symlink("loop-btrfs simple", path) == 0);
    CHECK(volume_open(data, NULL, &volume, &err) < 0);
    CHECK_INT(err.kind, ERROR_CONFLICT);
}

/* tmpfs */

static const struct volume_options in_memory = {.scheme = VOLUME_TMPFS};

TEST(a_tmpfs_volume_keeps_every_promise)
{
    begin();
    autoptr(volume) volume = open_volume(data, &in_memory);
    CHECK_INT(volume_scheme(volume), VOLUME_TMPFS);
    CHECK(volume_counts_inodes(volume));
    check_promises(volume);
    CHECK(access(data, F_OK) < 0); // memory only
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

static void check_inodes(struct volume *volume)
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

TEST(a_tmpfs_scratch_is_limited_in_inodes_too)
{
    begin();
    autoptr(volume) volume = open_volume(data, &in_memory);
    check_inodes(volume);
}

TEST(a_tmpfs_scratch_lives_as_long_as_its_fds)
{
    begin();
    struct error err = {0};
    int why;
    struct volume *volume = open_volume(data, &in_memory);
    autofd dir = make_scratch(volume, "s1", 16 * MIB, 0);
    CHECK(write_file(dir, "upper/file", MIB, &why) == MIB);
    CHECK_OK(volume_scratch_remove(volume, "s1", &err), err);
    volume_free(volume);
    CHECK(exists(dir, "upper/file"));
    CHECK_INT(count_mounts("burrow"), count_mounts(base)); // it is attached nowhere
}

/* Project quota, where this kernel and this machine's tools can make such file systems */

struct project_case {
    enum volume_scheme scheme;
    const char *type;
    const char *mkfs; // prints nothing
};

static const struct project_case ext4_case = {
    VOLUME_EXT4, "ext4",
    "mkfs.ext4 -q -F -O project,quota -E quotatype=prjquota '%s' >/dev/null 2>&1"};
static const struct project_case xfs_case = {VOLUME_XFS, "xfs",
                                             "mkfs.xfs -q -f '%s' >/dev/null 2>&1"};

/* A file system with project quota at `disk`; the image may be given ready-made in
 * BURROW_TEST_IMAGES. */
static void mount_with_quota(const struct project_case *one)
{
    char path[256], command[512];
    struct error err = {0};
    struct loop_device device = {.fd = -1};
    const char *images = getenv("BURROW_TEST_IMAGES");

    (void)snprintf(path, sizeof path, "%s/%s.img", images ? images : base, one->type);
    if (!images) {
        autofd made = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(made >= 0 && ftruncate(made, 400 << 20) == 0);
        (void)snprintf(command, sizeof command, one->mkfs, path);
        if (system(command) != 0)
            SKIP("no mkfs.%s here", one->type);
    }
    autofd image = open(path, O_RDWR | O_CLOEXEC);
    CHECK(image >= 0);
    if (loop_device_attach(image, &device, &err) < 0)
        SKIP("%s", err.text);
    int result = mount(device.path, disk, one->type, 0, "prjquota");
    int why = errno;
    closep(&device.fd);
    if (result < 0)
        SKIP("this kernel does not mount %s with project quota: %s", one->type, strerror(why));
}

static void check_project_scheme(const struct project_case *one)
{
    const struct volume_options automatic = {0};
    const struct volume_options exact = {.scheme = one->scheme};
    struct error err = {0};
    struct volume *volume = NULL;
    char path[200];

    mount_with_quota(one);
    (void)snprintf(path, sizeof path, "%s/data", disk);
    if (volume_open(path, &exact, &volume, &err) < 0 && err.kind == ERROR_UNAVAILABLE)
        SKIP("%s", err.text);
    CHECK_OK(volume ? 0 : -1, err);
    volume_free(volume);
    volume = open_volume(path, &automatic);
    CHECK_INT(volume_scheme(volume), one->scheme);
    CHECK(volume_counts_inodes(volume));
    check_promises(volume);
    check_inodes(volume);
    CHECK_OK(volume_scratch_remove(volume, "s1", &err), err);
    CHECK_OK(volume_sweep(volume, owns_even, &(unsigned){0}, &err), err);
    volume_free(volume);
    CHECK_OK(volume_detach(path, &err), err);
}

TEST(ext4_with_project_quota_keeps_every_promise)
{
    begin();
    check_project_scheme(&ext4_case);
}

TEST(xfs_with_project_quota_keeps_every_promise)
{
    begin();
    check_project_scheme(&xfs_case);
}

TEST(ext4_without_quota_is_refused_with_the_way_to_get_it)
{
    begin();
    struct statfs info;
    struct error err = {0};
    struct volume *volume = NULL;
    const struct volume_options exact = {.scheme = VOLUME_EXT4};
    CHECK(statfs(base, &info) == 0);
    if (info.f_type != 0xEF53)
        SKIP("%s is not on ext4", base);
    if (volume_open(data, &exact, &volume, &err) == 0)
        SKIP("this ext4 has project quota");
    CHECK_INT(err.kind, ERROR_UNAVAILABLE);
    CHECK(strstr(err.text, "prjquota"));
}
