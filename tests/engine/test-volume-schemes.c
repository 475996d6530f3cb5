/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of volumes on other file systems: btrfs of the host, tmpfs, project quota on ext4 and XFS.
 * Needs root. */
#include "engine/volume_fixture.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

/* btrfs that is there already */

static void mount_btrfs(const char *where)
{
    char path[200], command[512];
    struct error err = {0};
    struct loop_device device = {.fd = -1};

    (void)snprintf(path, sizeof path, "%s/btrfs.img", places.base);
    autofd image = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(image >= 0 && ftruncate(image, 1024 * MIB) == 0);
    (void)snprintf(command, sizeof command, "mkfs.btrfs -q '%s' >/dev/null 2>&1", path);
    need_program("mkfs.btrfs");
    CHECK(system(command) == 0);
    need_loop_devices();
    CHECK_OK(loop_device_attach(image, &device, &err), err);
    CHECK(mount(device.path, where, "btrfs", 0, NULL) == 0);
    closep(&device.fd);
}

TEST(quotas_of_somebody_elses_btrfs_are_turned_on_only_when_asked)
{
    fresh_places();
    const struct volume_options asked = {.scheme = VOLUME_BTRFS};
    struct error err = {0};
    char path[200];
    mount_btrfs(places.disk);
    (void)snprintf(path, sizeof path, "%s/data", places.disk);
    struct volume *volume = open_volume(path, &(struct volume_options){.size_bytes = 512 * MIB});
    CHECK_INT(volume_scheme(volume), VOLUME_LOOP_BTRFS); // a file on that btrfs
    volume_free(volume);
    CHECK_OK(volume_detach(path, &err), err);

    (void)snprintf(path, sizeof path, "%s/asked", places.disk);
    volume = open_volume(path, &asked);
    CHECK_INT(volume_scheme(volume), VOLUME_BTRFS);
    check_promises(volume);
    volume_free(volume);
    CHECK_OK(volume_detach(path, &err), err); // nothing of ours to detach

    (void)snprintf(path, sizeof path, "%s/later", places.disk); // now they are on
    volume = open_volume(path, NULL);
    CHECK_INT(volume_scheme(volume), VOLUME_BTRFS);
    volume_free(volume);
}

TEST(a_btrfs_mounted_for_the_volume_is_taken_and_never_unmounted)
{
    fresh_places();
    struct error err = {0};
    char path[200];
    (void)snprintf(path, sizeof path, "%s/volume", places.data);
    CHECK_OK(fd_make_dirs(path, 0700, &err), err);
    mount_btrfs(path);
    struct volume *volume = NULL;
    int result = volume_open(places.data, NULL, &volume, &err);
    bool is_right = result == 0 && volume_scheme(volume) == VOLUME_BTRFS;
    volume_free(volume);
    struct error later = {0};
    int detached = volume_detach(places.data, &later);
    int unmounted = umount2(path, UMOUNT_NOFOLLOW); // it is still there
    CHECK_OK(result, err);
    CHECK_OK(detached, later);
    CHECK(is_right && unmounted == 0);
}

/* tmpfs */

static const struct volume_options in_memory = {.scheme = VOLUME_TMPFS};

TEST(a_tmpfs_volume_keeps_every_promise)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &in_memory);
    CHECK_INT(volume_scheme(volume), VOLUME_TMPFS);
    CHECK(volume_counts_inodes(volume));
    check_promises(volume);
    CHECK(access(places.data, F_OK) < 0); // memory only
}

TEST(a_tmpfs_scratch_is_limited_in_inodes_too)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &in_memory);
    check_inodes(volume);
}

TEST(a_tmpfs_scratch_lives_as_long_as_its_fds)
{
    fresh_places();
    struct error err = {0};
    int why;
    struct volume *volume = open_volume(places.data, &in_memory);
    autofd dir = make_scratch(volume, "s1", 16 * MIB, 0);
    CHECK(write_file(dir, "upper/file", MIB, &why) == MIB);
    CHECK_OK(volume_scratch_remove(volume, "s1", &err), err);
    volume_free(volume);
    CHECK(exists(dir, "upper/file"));
    CHECK_INT(count_mounts(" - tmpfs burrow "), 0); // it is attached nowhere
}

/* Project quota, where this kernel and this machine's tools can make such file systems */

static void check_project_scheme(const struct project_case *one)
{
    const struct volume_options automatic = {0};
    const struct volume_options exact = {.scheme = one->scheme};
    struct error err = {0};
    struct volume *volume = NULL;
    char path[200];

    mount_with_quota(one);
    (void)snprintf(path, sizeof path, "%s/data", places.disk);
    CHECK_OK(volume_open(path, &exact, &volume, &err), err);
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
    fresh_places();
    check_project_scheme(&ext4_case);
}

TEST(xfs_with_project_quota_keeps_every_promise)
{
    fresh_places();
    check_project_scheme(&xfs_case);
}

TEST(ext4_without_quota_is_refused_with_the_way_to_get_it)
{
    fresh_places();
    struct statfs info;
    struct error err = {0};
    struct volume *volume = NULL;
    const struct volume_options exact = {.scheme = VOLUME_EXT4};
    CHECK(statfs(places.base, &info) == 0);
    if (info.f_type != 0xEF53)
        SKIP("%s is not on ext4", places.base);
    if (volume_open(places.data, &exact, &volume, &err) == 0)
        SKIP("this ext4 has project quota");
    CHECK_INT(error_kind(&err), ERROR_UNAVAILABLE);
    CHECK(strstr(err.text, "prjquota"));
}
