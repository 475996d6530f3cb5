/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of volumes (src/engine/volume.c): the one on a loop device, attached, shared, killed and
 * detached. Needs root. */
#include "engine/volume_fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

TEST(a_loop_volume_keeps_every_promise)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &loop);
    CHECK_INT(volume_scheme(volume), VOLUME_LOOP_BTRFS);
    CHECK_STR(volume_scheme_name(volume_scheme(volume)), "loop-btrfs");
    CHECK(!volume_fallback_reason(volume) && !volume_counts_inodes(volume));
    check_promises(volume);
}

TEST(a_loop_volume_takes_no_disk_before_it_is_written_to)
{
    fresh_places();
    struct stat info;
    char path[200];
    autoptr(volume) volume = open_volume(places.data, &loop);
    (void)snprintf(path, sizeof path, "%s/volume.img", places.data);
    CHECK(stat(path, &info) == 0);
    CHECK_INT(info.st_size, 1024 * MIB);
    CHECK((uint64_t)info.st_blocks * 512 < 128 * MIB);
    CHECK_INT(info.st_mode & 07777, 0600);
}

/* Small nodes are quicker, and what a program expects of a file system fits into them. */
TEST(a_loop_volume_has_small_nodes_and_room_for_the_longest_link_and_for_a_large_attribute)
{
    fresh_places();
    struct btrfs_ioctl_fs_info_args info = {0};
    char target[PATH_MAX], back[PATH_MAX], value[4096];
    autoptr(volume) volume = open_volume(places.data, &loop);
    autofd dir = make_scratch(volume, "s1", 16 * MIB, 0);

    CHECK(ioctl(dir, BTRFS_IOC_FS_INFO, &info) == 0);
    CHECK_INT(info.nodesize, 8192);
    memset(target, 'a', sizeof target);
    target[sizeof target - 1] = '\0';
    CHECK(symlinkat(target, dir, "upper/link") == 0);
    CHECK_INT(readlinkat(dir, "upper/link", back, sizeof back), PATH_MAX - 1);
    autofd file = openat(dir, "upper/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    memset(value, 'v', sizeof value);
    CHECK(fsetxattr(file, "user.large", value, sizeof value, 0) == 0);
}

TEST(opening_again_finds_the_attached_volume)
{
    fresh_places();
    const struct volume_options automatic = {0};
    struct error err = {0};
    autoptr(volume) first = open_volume(places.data, &loop);
    autofd dir = make_scratch(first, "s1", 16 * MIB, 0);
    autoptr(volume) second = open_volume(places.data, &automatic);
    CHECK_INT(volume_scheme(second), VOLUME_LOOP_BTRFS);
    autofd opened = -1;
    CHECK_OK(volume_scratch_open(second, "s1", &opened, &err), err);

    const struct volume_options wrong = {.scheme = VOLUME_BTRFS};
    struct volume *none = NULL;
    CHECK(volume_open(places.data, &wrong, &none, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK(none == NULL);
}

TEST(scratches_survive_detaching)
{
    fresh_places();
    struct error err = {0};
    int why;
    struct volume *volume = open_volume(places.data, &loop);
    int dir = make_scratch(volume, "kept", 16 * MIB, 0);
    CHECK(write_file(dir, "upper/file", MIB, &why) == MIB);
    closep(&dir);
    volume_free(volume);
    CHECK_OK(volume_detach(places.data, &err), err);
    CHECK_OK(volume_detach(places.data, &err), err); // again is fine

    char path[200];
    (void)snprintf(path, sizeof path, "%s/volume/scratch", places.data);
    CHECK(access(path, F_OK) < 0);

    volume = open_volume(places.data, NULL);
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
    fresh_places();
    struct error err = {0};
    struct loop_device device = {.fd = -1};
    char path[200];
    volume_free(open_volume(places.data, &loop));
    (void)snprintf(path, sizeof path, "%s/volume.img", places.data);
    autofd image = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_INT(loop_device_find(image, &device, &err), 1);
    closep(&device.fd);
    CHECK_OK(volume_detach(places.data, &err), err);
    CHECK_INT(loop_device_find(image, &device, &err), 0);
}

TEST(detaching_a_busy_volume_says_who_uses_it)
{
    fresh_places();
    struct error err = {0};
    char expected[64];
    autoptr(volume) volume = open_volume(places.data, &loop);
    CHECK(volume_detach(places.data, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_INT(err.reason, ERROR_BUSY);
    (void)snprintf(expected, sizeof expected, "process %d (", (int)getpid());
    if (!strstr(err.text, expected))
        test_fail(__FILE__, __LINE__, "not named: %s", err.text);
}

TEST(detaching_what_was_never_attached_is_fine)
{
    fresh_places();
    struct error err = {0};
    CHECK_OK(volume_detach(places.data, &err), err);
    CHECK(mkdir(places.data, 0700) == 0);
    CHECK_OK(volume_detach(places.data, &err), err);
}

TEST(two_volumes_do_not_know_each_other)
{
    fresh_places();
    struct error err = {0};
    autoptr(volume) first = open_volume(places.data, &loop);
    autoptr(volume) second = open_volume(places.other, &loop);
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
    if (volume_open(places.data, &loop, &volume, &err) < 0 ||
        volume_scratch_create(volume, name, &limits, &dir, &err) < 0) {
        printf("# child %u: %s\n", number, err.text);
        (void)fflush(stdout);
        return 1;
    }
    return 0;
}

TEST(eight_processes_at_the_first_start_attach_once)
{
    fresh_places();
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
    CHECK_INT(count_mounts(places.data), 1);
    autoptr(volume) volume = open_volume(places.data, &loop);
    for (unsigned i = 0; i < N; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "child-%u", i);
        CHECK_OK(volume_scratch_open(volume, name, &dir, &err), err);
        closep(&dir);
    }
}

TEST(a_volume_attached_in_another_mount_namespace_is_shared_not_attached_twice)
{
    fresh_places();
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
            volume_open(places.data, &loop, &volume, &err) < 0)
            _exit(1);
        int dir = make_scratch(volume, "theirs", 16 * MIB, 0);
        (void)!write(ready[1], dir >= 0 ? "x" : "", 1);
        (void)!read(done[0], &byte, 1);
        _exit(0);
    }
    (void)close(ready[1]);
    (void)close(done[0]);
    CHECK_INT(read(ready[0], &byte, 1), 1);
    CHECK_INT(count_mounts(places.data), 0);
    struct volume *volume = open_volume(places.data, &loop);
    int dir = -1;
    CHECK_OK(volume_scratch_open(volume, "theirs", &dir, &err), err); // the same file system
    closep(&dir);
    volume_free(volume);
    (void)close(done[1]);
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK_OK(volume_detach(places.data, &err), err);
}

TEST(a_half_made_image_of_a_killed_process_is_cleared_away)
{
    fresh_places();
    char path[200];
    CHECK(mkdir(places.data, 0700) == 0);
    (void)snprintf(path, sizeof path, "%s/volume.img.new-0123456789abcdef", places.data);
    autofd half = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(half >= 0 && ftruncate(half, 300 << 20) == 0);
    autoptr(volume) volume = open_volume(places.data, &loop);
    CHECK(access(path, F_OK) < 0);
}

TEST(a_process_killed_while_making_the_volume_leaves_nothing_in_the_way)
{
    fresh_places();
    struct error err = {0};
    for (unsigned delay_ms = 1; delay_ms < 200; delay_ms += delay_ms / 3 + 1) {
        (void)fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            struct volume *volume = NULL;
            _exit(volume_open(places.data, &loop, &volume, &err) < 0);
        }
        struct timespec delay = {.tv_nsec = (long)delay_ms * 1000000};
        (void)nanosleep(&delay, NULL); // whatever step it is in
        (void)kill(child, SIGKILL);
        CHECK(waitpid(child, NULL, 0) == child);
        volume_free(open_volume(places.data, &loop));
        CHECK_OK(volume_detach(places.data, &err), err);
        char path[200];
        (void)snprintf(path, sizeof path, "%s/volume.img", places.data);
        CHECK(unlink(path) == 0);
    }
}

TEST(without_mkfs_the_error_names_the_package_and_auto_comes_to_tmpfs)
{
    fresh_places();
    struct volume_options options = {.scheme = VOLUME_LOOP_BTRFS, .mkfs = "/nowhere/mkfs.btrfs"};
    struct error err = {0};
    struct volume *volume = NULL;

    CHECK(volume_open(places.data, &options, &volume, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_UNAVAILABLE);
    CHECK(strstr(err.text, "btrfs-progs") && strstr(err.text, "tmpfs") && !volume);
    options.scheme = VOLUME_AUTO;
    CHECK_OK(volume_open(places.data, &options, &volume, &err), err);
    if (volume_scheme(volume) != VOLUME_TMPFS)
        SKIP("this directory has quotas of its own");
    CHECK(strstr(volume_fallback_reason(volume), "btrfs-progs"));
    autofd dir = make_scratch(volume, "s1", MIB, 0);
    volume_free(volume);
    volume = open_volume(places.data, &loop); // and is not stuck there
    CHECK_INT(volume_scheme(volume), VOLUME_LOOP_BTRFS);
    volume_free(volume);
}

TEST(a_failing_mkfs_leaves_no_image)
{
    fresh_places();
    const struct volume_options options = {.scheme = VOLUME_LOOP_BTRFS, .mkfs = "/bin/false"};
    struct error err = {0};
    struct volume *volume = NULL;
    char path[200];
    CHECK(volume_open(places.data, &options, &volume, &err) < 0);
    CHECK(strstr(err.text, "/bin/false"));
    (void)snprintf(path, sizeof path, "%s/volume", places.data);
    CHECK(rmdir(path) == 0);
    (void)snprintf(path, sizeof path, "%s/volume.lock", places.data);
    CHECK(unlink(path) == 0);
    CHECK(rmdir(places.data) == 0); // nothing else was in it
}

TEST(a_full_disk_is_said_so)
{
    fresh_places();
    const struct volume_options automatic = {0};
    struct error err = {0};
    struct volume *volume = NULL;
    char path[200];
    CHECK(mount("small", places.disk, "tmpfs", 0, "size=100m") == 0);
    (void)snprintf(path, sizeof path, "%s/data", places.disk);
    CHECK(volume_open(path, &automatic, &volume, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK(strstr(err.text, "256 MiB") && strstr(err.text, "free"));
    const struct volume_options tiny = {.scheme = VOLUME_LOOP_BTRFS, .size_bytes = MIB};
    CHECK(volume_open(places.data, &tiny, &volume, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
}

TEST(free_space_is_no_more_than_the_disk_behind_has)
{
    fresh_places();
    const struct volume_options huge = {.scheme = VOLUME_LOOP_BTRFS, .size_bytes = 8192 * MIB};
    struct volume_space space;
    struct error err = {0};
    char path[200];
    CHECK(mount("small", places.disk, "tmpfs", 0, "size=400m") == 0);
    (void)snprintf(path, sizeof path, "%s/data", places.disk);
    autoptr(volume) volume = open_volume(path, &huge);
    CHECK_OK(volume_space(volume, &space, &err), err);
    CHECK(space.total_bytes >= 7000 * MIB);
    CHECK(space.free_bytes <= 400 * MIB && space.free_bytes > 200 * MIB);
}

TEST(space_given_back_inside_becomes_free_on_the_disk)
{
    fresh_places();
    const struct timespec step = {.tv_nsec = 100000000};
    struct error err = {0};
    struct stat info;
    uint64_t used;
    char path[200];
    int why;
    autoptr(volume) volume = open_volume(places.data, &loop);
    autofd kept = make_scratch(volume, "kept", 0, 0);
    int dir = make_scratch(volume, "s1", 0, 0);
    CHECK(write_file(dir, "upper/big", 200 * MIB, &why) == 200 * MIB);
    CHECK(syncfs(dir) == 0);
    closep(&dir);
    (void)snprintf(path, sizeof path, "%s/volume.img", places.data);
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
    fresh_places();
    struct error err = {0};
    struct volume *volume = NULL;
    char path[200];
    (void)snprintf(path, sizeof path, "%s/volume", places.data);
    CHECK_OK(fd_make_dirs(path, 0700, &err), err);
    (void)snprintf(path, sizeof path, "%s/volume/scheme", places.data);
    CHECK(symlink("loop-btrfs simple", path) == 0);
    CHECK(volume_open(places.data, NULL, &volume, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
}

TEST(spare_scratches_are_taken_and_limited_like_others)
{
    fresh_places();
    struct error err = {0};
    char path[200];
    int why;
    autoptr(volume) volume = open_volume(places.data, &loop);
    CHECK_OK(volume_fill_scratches(volume, 3, &err), err);
    CHECK_OK(volume_fill_scratches(volume, 3, &err), err);
    (void)snprintf(path, sizeof path, "%s/volume/spare/2", places.data);
    CHECK(access(path, F_OK) == 0);
    autofd one = make_scratch(volume, "s1", 16 * MIB, 0);
    CHECK(access(path, F_OK) < 0);
    CHECK(write_file(one, "upper/big", 32 * MIB, &why) < 16 * MIB);
    CHECK_INT(why, EDQUOT);
    autofd again = make_scratch(volume, "s1", 16 * MIB, 0);
    CHECK(!exists(again, "upper/big") && exists(again, "upper") && exists(again, "work"));
    autofd two = make_scratch(volume, "s2", 16 * MIB, 0);
    autofd three = make_scratch(volume, "s3", 16 * MIB, 0); // none is left: made anew
    CHECK(exists(three, "upper") && exists(three, "work"));

    autoptr(volume) elsewhere = open_volume(places.data, &loop);
    CHECK_OK(volume_fill_scratches(elsewhere, 1, &err), err);
    (void)snprintf(path, sizeof path, "%s/volume/spare/0", places.data);
    autofd four = make_scratch(volume, "s4", 16 * MIB, 0); // another's spare
    CHECK(access(path, F_OK) < 0);
}

/* Quota groups of subvolumes, as 'btrfs qgroup show' would list them. */
static unsigned count_quota_groups(int fd)
{
    static struct {
        struct btrfs_ioctl_search_key key;
        uint64_t size;
        unsigned char room[65536];
    } search;

    search.key = (struct btrfs_ioctl_search_key){
        .tree_id = BTRFS_QUOTA_TREE_OBJECTID,
        .min_type = BTRFS_QGROUP_INFO_KEY,
        .max_type = BTRFS_QGROUP_INFO_KEY,
        .max_offset = UINT64_MAX,
        .max_transid = UINT64_MAX,
        .nr_items = 4096,
    };
    search.size = sizeof search.room;
    CHECK(ioctl(fd, BTRFS_IOC_TREE_SEARCH_V2, &search) == 0);
    return search.key.nr_items;
}

TEST(quota_groups_of_removed_scratches_go)
{
    fresh_places();
    const struct timespec step = {.tv_nsec = 50000000};
    struct error err = {0};
    uint64_t used;
    char name[16];
    autoptr(volume) volume = open_volume(places.data, &loop);
    for (unsigned i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof name, "s%u", i);
        int fd = make_scratch(volume, name, 16 * MIB, 0);
        closep(&fd);
        CHECK_OK(volume_scratch_remove(volume, name, &err), err);
    }
    autofd kept = make_scratch(volume, "kept", 16 * MIB, 0);
    unsigned left = 0;
    for (unsigned i = 0; i < 400; i++) { // the kernel's cleaner comes in its own time
        CHECK_OK(volume_scratch_usage(volume, "kept", true, &used, &err), err);
        left = count_quota_groups(kept);
        if (left <= 4)
            break;
        CHECK_OK(volume_sweep(volume, owns_all, NULL, &err), err);
        (void)nanosleep(&step, NULL);
    }
    CHECK(left <= 4);
}
