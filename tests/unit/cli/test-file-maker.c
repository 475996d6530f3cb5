/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/cli/file_maker.c: many files, by one thread and by two. */
#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/file_maker.h"
#include "place.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define MANY 2000u
#define DIRECTORIES 40u

static int add(struct file_maker *maker, const char *path, unsigned mode, const char *text,
               struct burrow_error *err)
{
    char *room = NULL;
    if (file_maker_room(maker, path, mode, strlen(text), &room, err) < 0)
        return -1;
    memcpy(room, text, strlen(text));
    file_maker_keep(maker);
    return 0;
}

static void check_text(int directory, const char *path, const char *text)
{
    char got[64] = "";
    autofd fd = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_INT(read(fd, got, sizeof got - 1), strlen(text));
    CHECK_STR(got, text);
}

static unsigned count_names(int directory)
{
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fdopendir(fd);
    unsigned count = 0;
    CHECK(listing);
    while (readdir(listing))
        count++;
    (void)closedir(listing);
    return count - 2;
}

static void make_many(const struct place *place)
{
    autoptr(file_maker) maker = file_maker_new();
    struct burrow_error err = {0};
    char path[64], text[32];
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(path, sizeof path, "d%u", i / (MANY / DIRECTORIES));
        if (i % (MANY / DIRECTORIES) == 0)
            CHECK(mkdirat(place->fd, path, 0700) == 0);
        // each has the descriptor for one file alone: its number is the next one's
        autofd directory = openat(place->fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        file_maker_enter(maker, directory);
        (void)snprintf(path, sizeof path, "d%u/f%u", i / (MANY / DIRECTORIES), i);
        (void)snprintf(text, sizeof text, "%u", i);
        CHECK(add(maker, path, 0640, text, &err) == 0);
    }
    CHECK(file_maker_settle(maker, &err) == 0);
    for (unsigned i = 0; i < MANY; i++) {
        struct stat info;
        (void)snprintf(path, sizeof path, "d%u/f%u", i / (MANY / DIRECTORIES), i);
        (void)snprintf(text, sizeof text, "%u", i);
        check_text(place->fd, path, text);
        CHECK(fstatat(place->fd, path, &info, 0) == 0);
        CHECK_INT(info.st_mode & 07777, 0640);
    }
}

TEST(many_files_in_many_directories_are_made_each_with_its_own_bytes)
{
    autoplace place = place_make();
    make_many(&place);
}

TEST(one_processor_makes_them_too)
{
    autoplace place = place_make();
    cpu_set_t before, one;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    make_many(&place);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST(what_stands_there_is_replaced_and_links_are_not_followed)
{
    autoplace place = place_make();
    autoptr(file_maker) maker = file_maker_new();
    struct burrow_error err = {0};
    char name[32];
    CHECK(mkdirat(place.fd, "in", 0700) == 0);
    CHECK(symlinkat("in/target", place.fd, "victim") == 0);
    autofd in = openat(place.fd, "in", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autofd target = openat(in, "target", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(write(target, "kept", 4) == 4);
    file_maker_enter(maker, in);
    for (unsigned i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof name, "f%u", i);
        if (i % 2)
            CHECK(symlinkat("target", in, name) == 0);
        else
            closep(&(int){openat(in, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)});
        CHECK(add(maker, name, 0600, "new", &err) == 0);
    }
    CHECK(file_maker_settle(maker, &err) == 0);
    for (unsigned i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof name, "f%u", i);
        check_text(in, name, "new");
    }
    check_text(in, "target", "kept");
    CHECK_INT(count_names(in), 301);
}

TEST(one_that_fails_is_named_and_leaves_nothing)
{
    autoplace place = place_make();
    autoptr(file_maker) maker = file_maker_new();
    struct burrow_error err = {0};
    char name[32];
    int result = 0;
    CHECK(mkdirat(place.fd, "f50", 0700) == 0);
    CHECK(mkdirat(place.fd, "f50/taken", 0700) == 0);
    file_maker_enter(maker, place.fd);
    for (unsigned i = 0; i < 300 && result == 0; i++) {
        (void)snprintf(name, sizeof name, "f%u", i);
        result = add(maker, name, 0600, "new", &err);
    }
    if (result == 0)
        result = file_maker_settle(maker, &err);
    CHECK_INT(result, -1);
    CHECK_STR(err.text, "write 'f50': Is a directory");
    struct stat info;
    CHECK(fstatat(place.fd, "f50/taken", &info, 0) == 0);
    file_maker_free(take(maker));
    DIR *listing = fdopendir(openat(place.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (struct dirent *entry; (entry = readdir(listing));)
        CHECK(strncmp(entry->d_name, ".burrow-", 8) != 0);
    (void)closedir(listing);
}

TEST(modes_are_those_that_were_asked_for_whatever_the_mask)
{
    autoplace place = place_make();
    struct burrow_error err = {0};
    struct stat info;
    mode_t before = umask(077);
    autoptr(file_maker) maker = file_maker_new();
    CHECK_INT(umask(before), 077);
    (void)umask(077);
    file_maker_enter(maker, place.fd);
    CHECK(add(maker, "open", 06755, "x", &err) == 0);
    CHECK(add(maker, "shut", 0400, "x", &err) == 0);
    CHECK(file_maker_settle(maker, &err) == 0);
    (void)umask(before);
    CHECK(fstatat(place.fd, "open", &info, 0) == 0);
    CHECK_INT(info.st_mode & 07777, 0755);
    CHECK(fstatat(place.fd, "shut", &info, 0) == 0);
    CHECK_INT(info.st_mode & 07777, 0400);
}

/* Of a directory's own list of rights for new files, by which the mask does not count. */
static bool give_default_rights(int directory)
{
    static const struct {
        uint32_t version;
        struct {
            uint16_t tag, rights;
            uint32_t id;
        } rows[3];
    } list = {2, {{1, 6, UINT32_MAX}, {4, 0, UINT32_MAX}, {32, 0, UINT32_MAX}}};

    return fsetxattr(directory, "system.posix_acl_default", &list, sizeof list, 0) == 0;
}

TEST(modes_are_those_that_were_asked_for_whatever_the_directory_gives)
{
    autoplace place = place_make();
    autofd readable = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!give_default_rights(readable))
        SKIP("the file system of /tmp has no lists of rights");
    struct burrow_error err = {0};
    struct stat info;
    autoptr(file_maker) maker = file_maker_new();
    file_maker_enter(maker, place.fd);
    CHECK(add(maker, "open", 0644, "x", &err) == 0);
    CHECK(file_maker_settle(maker, &err) == 0);
    CHECK(fstatat(place.fd, "open", &info, 0) == 0);
    CHECK_INT(info.st_mode & 07777, 0644);
}

TEST(what_was_not_kept_or_settled_is_not_made)
{
    autoplace place = place_make();
    struct burrow_error err = {0};
    struct file_maker *maker = file_maker_new();
    char *room;
    file_maker_enter(maker, place.fd);
    CHECK(file_maker_room(maker, "half", 0600, 100, &room, &err) == 0);
    CHECK(add(maker, "whole", 0600, "x", &err) == 0);
    CHECK(file_maker_settle(maker, &err) == 0);
    CHECK(add(maker, "later", 0600, "x", &err) == 0);
    file_maker_free(maker);
    CHECK_INT(count_names(place.fd), 1);
    check_text(place.fd, "whole", "x");
}
