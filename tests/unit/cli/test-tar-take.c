/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/cli/tar_take.c and entry_maker.c: what is made below a directory, and in which order. The hostile names are in fuzz-tar-take.c. */
#include "base/auto.h"
#include "base/buffer.h"
#include "base/fd.h"
#include "cli/tar_take.h"
#include "place.h"
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>

#define BLOCK 512
#define MANY 300u
#define LARGE 100000u

/* A file's bytes are all the same letter. */
static void add(struct buffer *to, char type, const char *name, const char *link, size_t size,
                char letter)
{
    static const char zeros[BLOCK];
    static char content[LARGE];
    char block[BLOCK] = {0};
    struct error err = {0};
    unsigned sum = 8 * ' ';

    memcpy(block, name, strlen(name));
    memcpy(block + 100, "0000644", 8);
    (void)snprintf(block + 124, 12, "%011zo", size);
    block[156] = type;
    memcpy(block + 157, link, strlen(link));
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)block[i];
    (void)snprintf(block + 148, 8, "%06o", sum);
    CHECK(size <= sizeof content);
    memset(content, letter, size);
    CHECK_OK(buffer_add(to, block, BLOCK, &err), err);
    CHECK_OK(buffer_add(to, content, size, &err), err);
    CHECK_OK(buffer_add(to, zeros, (BLOCK - size % BLOCK) % BLOCK, &err), err);
}

static void check_file(const struct place *place, const char *name, size_t size, char letter)
{
    static char got[LARGE + 1];
    autofd fd = openat(place->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_INT(fd_read_full(fd, got, sizeof got), size);
    for (size_t i = 0; i < size; i++)
        CHECK_INT(got[i], letter);
}

static int unpack(const struct place *place, const char *prefix, const struct buffer *archive,
                  struct burrow_error *err)
{
    autoptr(entry_maker) maker = entry_maker_new(place->fd);
    CHECK(entry_maker_enter(maker, prefix));
    struct tar_take *tar = tar_take_new(maker);
    int result = tar_take_bytes(tar, archive->data, archive->length, err);
    if (result == 0)
        result = tar_take_end(tar, err);
    tar_take_free(tar);
    return result;
}

TEST(links_to_files_that_came_just_before_are_made)
{
    autoplace place = place_make();
    autobuffer archive = {0};
    struct burrow_error err = {0};
    struct stat first, second;
    char name[32], other[32];
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "d/f%u", i);
        (void)snprintf(other, sizeof other, "again%u", i);
        add(&archive, '0', name, "", i % 3, (char)('a' + i % 26));
        if (i % 7 == 0)
            add(&archive, '1', other, name, 0, 0);
        if (i % 11 == 0) // in place of the file
            add(&archive, '2', name, "other", 0, 0);
    }
    CHECK_INT(unpack(&place, "", &archive, &err), 0);
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "d/f%u", i);
        (void)snprintf(other, sizeof other, "again%u", i);
        CHECK(fstatat(place.fd, name, &first, AT_SYMLINK_NOFOLLOW) == 0);
        if (i % 11 == 0)
            CHECK(S_ISLNK(first.st_mode));
        else
            check_file(&place, name, i % 3, (char)('a' + i % 26));
        if (i % 7 != 0)
            continue;
        check_file(&place, other, i % 3, (char)('a' + i % 26));
        CHECK(fstatat(place.fd, other, &second, 0) == 0);
        CHECK(i % 11 == 0 || first.st_ino == second.st_ino);
    }
}

TEST(of_a_small_and_a_large_file_of_one_name_the_last_stays)
{
    autoplace place = place_make();
    autobuffer archive = {0};
    struct burrow_error err = {0};
    add(&archive, '0', "grows", "", 3, 'a');
    add(&archive, '0', "grows", "", LARGE, 'b');
    add(&archive, '0', "shrinks", "", LARGE, 'c');
    add(&archive, '0', "shrinks", "", 3, 'd');
    CHECK_INT(unpack(&place, "", &archive, &err), 0);
    check_file(&place, "grows", LARGE, 'b');
    check_file(&place, "shrinks", 3, 'd');
}

TEST(what_is_whole_is_there_after_an_archive_that_is_cut)
{
    autoplace place = place_make();
    autobuffer archive = {0};
    struct burrow_error err = {0};
    add(&archive, '0', "first", "", 3, 'a');
    add(&archive, '0', "second", "", 0, 0);
    add(&archive, '0', "third", "", LARGE, 'b');
    archive.length -= LARGE / 2;
    CHECK_INT(unpack(&place, "", &archive, &err), -1);
    CHECK_INT(err.kind, BURROW_BROKEN);
    check_file(&place, "first", 3, 'a');
    check_file(&place, "second", 0, 0);
    CHECK(faccessat(place.fd, "third", F_OK, 0) < 0);

    archive.length = 0;
    add(&archive, '0', "fourth", "", 3, 'a');
    add(&archive, '0', "fifth", "", 600, 'b');
    archive.length -= BLOCK;
    CHECK_INT(unpack(&place, "", &archive, &err), -1);
    check_file(&place, "fourth", 3, 'a');
    CHECK(faccessat(place.fd, "fifth", F_OK, 0) < 0);
}

TEST(links_that_cannot_be_made_leave_what_is_there)
{
    autoplace place = place_make();
    char target[5000];
    struct burrow_error err = {0};
    struct stat info;
    autobuffer before = {0};
    add(&before, '0', "old", "", 3, 'a');
    CHECK_INT(unpack(&place, "", &before, &err), 0);
    autobuffer itself = {0};
    add(&itself, '1', "old", "old", 0, 0);
    CHECK_INT(unpack(&place, "", &itself, &err), 0);
    check_file(&place, "old", 3, 'a');

    memset(target, 'a', sizeof target - 1);
    target[sizeof target - 1] = '\0';
    autoptr(entry_maker) maker = entry_maker_new(place.fd);
    CHECK_INT(entry_make_link(maker, "old", target, &err), -1);
    check_file(&place, "old", 3, 'a');
    CHECK_INT(entry_make_hard_link(maker, "old", "nothing", &err), -1);
    check_file(&place, "old", 3, 'a');
    CHECK_INT(entry_make_link(maker, "old", "other", &err), 0);
    CHECK(fstatat(place.fd, "old", &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode));
}

TEST(one_that_is_dropped_leaves_the_file_of_another)
{
    autoplace place = place_make();
    struct burrow_error err = {0};
    bool is_taken;
    autoptr(entry_maker) maker = entry_maker_new(place.fd);
    CHECK_INT(entry_begin_file(maker, "f", 0644, LARGE, &is_taken, &err), 0);
    CHECK(is_taken && unlinkat(place.fd, "f", 0) == 0);
    closep(&(int){openat(place.fd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)}); // by somebody else
    entry_drop_file(maker);
    check_file(&place, "f", 0, 0);
}

TEST(all_names_are_below_the_directory_that_was_entered)
{
    autoplace place = place_make();
    autobuffer archive = {0};
    struct burrow_error err = {0};
    char target[16];
    add(&archive, '5', ".", "", 0, 0);
    add(&archive, '0', "./f", "", 3, 'a');
    add(&archive, '1', "g", "f", 0, 0);
    add(&archive, '2', "up", "../../top", 0, 0);   // stays below the first directory
    add(&archive, '2', "out", "../../../x", 0, 0); // does not
    add(&archive, '0', "../beside", "", 3, 'a');   // nor does this
    CHECK_INT(unpack(&place, "a/./b", &archive, &err), 0);
    check_file(&place, "a/b/f", 3, 'a');
    check_file(&place, "a/b/g", 3, 'a');
    CHECK_INT(readlinkat(place.fd, "a/b/up", target, sizeof target), 9);
    CHECK(faccessat(place.fd, "a/b/out", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
    CHECK(faccessat(place.fd, "a/beside", F_OK, 0) < 0);
    autoptr(entry_maker) maker = entry_maker_new(place.fd);
    CHECK(!entry_maker_enter(maker, "a/../.."));
}

TEST(names_that_are_too_long_are_refused_and_not_cut)
{
    autoplace place = place_make();
    autobuffer archive = {0};
    struct burrow_error err = {0};
    struct stat info;
    const size_t length = 5000;
    add(&archive, 'L', "././@LongLink", "", length, 'a');
    for (size_t i = 250; i < length; i += 251)
        archive.data[BLOCK + i] = '/';
    add(&archive, '0', "cut", "", 3, 'b');
    add(&archive, '0', "next", "", 3, 'c');

    autoptr(entry_maker) maker = entry_maker_new(place.fd);
    struct tar_take *tar = tar_take_new(maker);
    CHECK_INT(tar_take_bytes(tar, archive.data, archive.length, &err), 0);
    CHECK_INT(tar_take_end(tar, &err), 0);
    tar_take_free(tar);
    CHECK_INT(entry_maker_refused(maker), 1);
    CHECK_INT(entry_maker_entries(maker), 1);
    check_file(&place, "next", 3, 'c');
    archive.data[BLOCK + 250] = '\0'; // its first part alone
    CHECK(fstatat(place.fd, archive.data + BLOCK, &info, 0) < 0);
}

TEST(what_is_dropped_takes_no_bytes_of_the_next_file)
{
    autoplace place = place_make();
    struct burrow_error err = {0};
    static char bytes[LARGE];
    bool is_taken;
    autoptr(entry_maker) maker = entry_maker_new(place.fd);
    CHECK_INT(entry_begin_file(maker, "small", 0644, 3, &is_taken, &err), 0);
    entry_drop_file(maker);
    CHECK_INT(entry_begin_file(maker, "large", 0644, LARGE, &is_taken, &err), 0);
    memset(bytes, 'a', sizeof bytes);
    CHECK_INT(entry_add_bytes(maker, bytes, LARGE, &err), 0);
    CHECK_INT(entry_end_file(maker, &err), 0);
    check_file(&place, "large", LARGE, 'a');
}
