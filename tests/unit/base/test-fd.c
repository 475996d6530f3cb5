/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of removing trees (src/base/fd.c): nothing is followed, and no depth is too deep. */
#include "base/fd.h"
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int temp_dir(char path[32])
{
    bool has_memory = access("/dev/shm", W_OK) == 0; // making big trees on a disk takes seconds
    (void)snprintf(path, 32, "%s/test-fd-XXXXXX", has_memory ? "/dev/shm" : "/tmp");
    return mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

static void make_file(int dir_fd, const char *name)
{
    autofd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
}

static bool exists(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A chain of directories; every one also has a file and two empty directories. */
static void make_chain(int dir_fd, const char *name, unsigned depth)
{
    autofd at = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
    for (unsigned i = 0; i < depth; i++) {
        CHECK(mkdirat(at, i ? "next" : name, 0700) == 0);
        int below = openat(at, i ? "next" : name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(below >= 0);
        (void)close(at);
        at = below;
        make_file(at, "file");
        CHECK(mkdirat(at, "a-empty", 0700) == 0 && mkdirat(at, "z-empty", 0700) == 0);
    }
}

TEST(a_missing_tree_is_removed_already)
{
    char path[32];
    struct error err = {0};
    autofd dir = temp_dir(path);
    CHECK_OK(fd_remove_tree(dir, "nothing", &err), err);
    CHECK(rmdir(path) == 0);
}

TEST(a_file_or_a_link_is_removed_as_itself)
{
    char path[32];
    struct error err = {0};
    autofd dir = temp_dir(path);
    make_file(dir, "file");
    CHECK(symlinkat("file", dir, "link") == 0);
    CHECK_OK(fd_remove_tree(dir, "link", &err), err);
    CHECK(!exists(dir, "link") && exists(dir, "file"));
    CHECK_OK(fd_remove_tree(dir, "file", &err), err);
    CHECK(rmdir(path) == 0);
}

TEST(links_out_of_a_tree_are_not_followed)
{
    char path[32];
    struct error err = {0};
    autofd dir = temp_dir(path);
    CHECK(mkdirat(dir, "outside", 0700) == 0 && mkdirat(dir, "tree", 0700) == 0);
    make_file(dir, "outside/kept");
    CHECK(symlinkat("../outside", dir, "tree/relative") == 0);
    CHECK(symlinkat("/", dir, "tree/root") == 0);
    CHECK(symlinkat("root", dir, "tree/twice") == 0);
    CHECK(linkat(dir, "outside/kept", dir, "tree/hard", 0) == 0);
    CHECK(mkfifoat(dir, "tree/fifo", 0600) == 0);
    CHECK_OK(fd_remove_tree(dir, "tree", &err), err);
    CHECK(!exists(dir, "tree") && exists(dir, "outside/kept"));
    CHECK_OK(fd_remove_tree(dir, "outside", &err), err);
    CHECK(rmdir(path) == 0);
}

TEST(a_tree_of_ten_thousand_levels_needs_few_files_and_little_stack)
{
    char path[32];
    struct error err = {0};
    struct rlimit before, few;
    autofd dir = temp_dir(path);

    make_chain(dir, "deep", 10000);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    few = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    int result = fd_remove_tree(dir, "deep", &err);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_OK(result, err);
    CHECK(rmdir(path) == 0);
}

TEST(deep_branches_side_by_side_are_all_removed)
{
    char path[32];
    struct error err = {0};
    autofd dir = temp_dir(path);

    CHECK(mkdirat(dir, "tree", 0700) == 0);
    autofd tree = openat(dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 5; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "branch-%u", i);
        make_chain(tree, name, 20 + 20 * i); // some within the open levels, some far beyond
    }
    CHECK_OK(fd_remove_tree(dir, "tree", &err), err);
    CHECK(rmdir(path) == 0);
}

TEST(a_wide_tree_is_removed)
{
    char path[32], name[24];
    struct error err = {0};
    autofd dir = temp_dir(path);

    CHECK(mkdirat(dir, "wide", 0700) == 0);
    autofd wide = openat(dir, "wide", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof name, "f%u", i);
        make_file(wide, name);
        (void)snprintf(name, sizeof name, "d%u", i);
        CHECK(mkdirat(wide, name, 0) == 0);
        if (i % 3 == 0 && geteuid() == 0) {
            (void)snprintf(name, sizeof name, "d%u/x", i);
            make_file(wide, name);
        }
    }
    CHECK_OK(fd_remove_tree(dir, "wide", &err), err);
    CHECK(rmdir(path) == 0);
}

TEST(blocks_of_zeros_are_left_out_and_read_back_as_they_were)
{
    enum { PIECE = 65528, PIECES = 40 }; // no multiple of a block, as what comes from a box
    autofd fd = memfd_create("sparse", MFD_CLOEXEC);
    static char want[PIECE * PIECES], got[PIECE * PIECES];
    ssize_t written = 0;
    struct stat info;

    CHECK(fd >= 0);
    want[0] = 'a';
    want[5000] = 'b';
    want[PIECE + 1] = 'c';
    memset(want + (size_t)30 * PIECE, 'd', PIECE);
    for (size_t i = 0; i < PIECES; i++)
        written += fd_write_sparse(fd, i * PIECE, want + i * PIECE, PIECE);
    CHECK(written >= PIECE + 3 && written < 2 * PIECE);
    CHECK(ftruncate(fd, sizeof want) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    CHECK_INT(fd_read_full(fd, got, sizeof got), sizeof got);
    CHECK(memcmp(got, want, sizeof want) == 0);
    CHECK(fstat(fd, &info) == 0);
    CHECK(info.st_blocks * 512 < 3 * PIECE);
}
