/* SPDX-License-Identifier: Apache-2.0 */
/* What the file server does when asked nicely: every verb, as the engine speaks them. */
#include "file_rig.h"

#include <dirent.h>
#include <limits.h>

TEST(a_file_is_read_whole_and_in_parts)
{
    RIG(rig);
    struct error err = {0};
    struct files_item item = {0};
    struct files_total total = {0};
    autogathered whole = {0}, part = {0}, behind = {0};
    put_file(rig.fd, "a", "hello world", 0640);

    CHECK_OK(files_read(rig.conv, "a", 0, 1000, &item, gather_data, &whole, &total, &err), err);
    CHECK_STR(whole.bytes.data, "hello world");
    CHECK_INT(item.size, 11);
    CHECK_INT(item.mode, S_IFREG | 0640);
    CHECK(!total.is_truncated);
    CHECK_OK(files_read(rig.conv, "a", 6, 3, NULL, gather_data, &part, &total, &err), err);
    CHECK_STR(part.bytes.data, "wor");
    CHECK(total.is_truncated);
    CHECK_OK(files_read(rig.conv, "a", 99, 3, NULL, gather_data, &behind, &total, &err), err);
    CHECK_INT(behind.data, 0);
    CHECK(!total.is_truncated);
}

TEST(exactly_as_much_as_the_file_holds_is_not_truncated)
{
    RIG(rig);
    struct error err = {0};
    struct files_total total = {0};
    autogathered got = {0};
    put_file(rig.fd, "a", "12345", 0600);

    CHECK_OK(files_read(rig.conv, "a", 0, 5, NULL, gather_data, &got, &total, &err), err);
    CHECK(!total.is_truncated);
    CHECK_INT(total.bytes, 5);
    CHECK_OK(files_read(rig.conv, "a", 0, 0, NULL, gather_data, &got, &total, &err), err);
    CHECK(total.is_truncated);
    CHECK_INT(got.data, 5);
}

TEST(a_missing_file_is_named_in_the_error)
{
    RIG(rig);
    struct error err = {0};
    autogathered got = {0};

    CHECK(files_read(rig.conv, "no/such", 0, 9, NULL, gather_data, &got, NULL, &err) < 0);
    CHECK_STR(err.text, "open 'no/such': No such file or directory");
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_INT(err.sys, ENOENT);
}

TEST(a_new_file_has_the_mode_asked_for_and_its_parents)
{
    RIG(rig);
    struct error err = {0};

    CHECK(files_write_buffer(rig.conv, "x/y/z", 0666, 0, "abc", 3, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_OK(files_write_buffer(rig.conv, "x/y/z", 0666, FILES_PARENTS, "abc", 3, &err), err);
    CHECK_STR(get_file(rig.fd, "x/y/z"), "abc");
    CHECK_INT(mode_of(rig.fd, "x/y/z"), S_IFREG | 0666);
    CHECK_INT(mode_of(rig.fd, "x/y"), S_IFDIR | 0755);
}

TEST(an_existing_file_is_written_in_place)
{
    RIG(rig);
    struct error err = {0};
    put_file(rig.fd, "a", "a long old text", 0751);
    CHECK(linkat(rig.fd, "a", rig.fd, "twin", 0) == 0);
    CHECK(symlinkat("a", rig.fd, "link") == 0);

    CHECK_OK(files_write_buffer(rig.conv, "link", 0600, 0, "new", 3, &err), err);
    CHECK_STR(get_file(rig.fd, "twin"), "new");
    CHECK_INT(mode_of(rig.fd, "a"), S_IFREG | 0751);
    CHECK(S_ISLNK(mode_of(rig.fd, "link")));
    CHECK(files_write_buffer(rig.conv, "a", 0600, FILES_EXCLUSIVE, "x", 1, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_STR(get_file(rig.fd, "a"), "new");
}

TEST(writing_through_a_link_to_nothing_makes_the_file_it_names)
{
    RIG(rig);
    struct error err = {0};
    CHECK(symlinkat("later", rig.fd, "link") == 0);
    CHECK_OK(files_write_buffer(rig.conv, "link", 0600, 0, "new", 3, &err), err);
    CHECK_STR(get_file(rig.fd, "later"), "new");
}

TEST(large_files_travel_both_ways)
{
    RIG(rig);
    struct error err = {0};
    struct files_total total = {0};
    size_t size = 5 * 1000 * 1000 + 3;
    autofree char *data = malloc(size), *back = malloc(size);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    CHECK_OK(files_write_buffer(rig.conv, "big", 0600, 0, data, size, &err), err);
    autofd out = openat(rig.fd, "copy", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_OK(files_read_to_fd(rig.conv, "big", 0, UINT64_MAX, out, NULL, &total, &err), err);
    CHECK_INT(total.bytes, size);
    CHECK(lseek(out, 0, SEEK_SET) == 0);
    CHECK_INT(fd_read_full(out, back, size), size);
    CHECK(memcmp(data, back, size) == 0);
}

static ssize_t fill_then_fail(void *data, void *bytes, size_t size, struct error *err)
{
    int *calls = data;
    memset(bytes, 'x', 10);
    return (*calls)++ ? error_set(err, ERROR_INVALID, "the caller went away") : 10;
}

TEST(a_write_given_up_takes_a_new_file_back)
{
    RIG(rig);
    struct error err = {0};
    int calls = 0;
    CHECK(files_write(rig.conv, "new", 0600, 0, fill_then_fail, &calls, &err) < 0);
    CHECK_STR(err.text, "the caller went away");
    CHECK(!is_there(rig.fd, "new"));
    // and the conversation goes on
    CHECK_OK(files_write_buffer(rig.conv, "new", 0600, 0, "", 0, &err), err);
    CHECK(is_there(rig.fd, "new"));
}

TEST(a_conversation_cut_off_takes_a_new_file_back)
{
    RIG(rig);
    const char path[] = "new";
    struct files_request_wire request = {
        .mode = 0600, .path_size = sizeof path, .second_size = 1, .third_size = 1};
    struct iovec parts[] = {
        {&request, sizeof request}, {(void *)path, sizeof path}, {(void *)"", 1}, {(void *)"", 1}};
    struct iovec data = {(void *)"abc", 3};
    CHECK(files_frame_send(rig.conv, FILES_WRITE, 0, parts, 4) == 0);
    CHECK(files_frame_send(rig.conv, FILES_DATA, 0, &data, 1) == 0);
    rig_stop(&rig);
    CHECK(!is_there(rig.fd, "new"));
}

static ssize_t fill_for_ever(void *data, void *bytes, size_t size, struct error *err)
{
    int *calls = data;
    if (++*calls > 100000)
        return error_set(err, ERROR_TIMEOUT, "nobody stopped it");
    memset(bytes, 0, size);
    return (ssize_t)size;
}

TEST(a_refused_write_stops_the_sender_early)
{
    RIG(rig);
    struct error err = {0};
    int calls = 0;
    CHECK(files_write(rig.conv, "no/such", 0600, 0, fill_for_ever, &calls, &err) < 0);
    CHECK_STR(err.text, "open 'no/such': No such file or directory");
    CHECK_OK(files_mkdir(rig.conv, "no", 0700, 0, &err), err);
}

TEST(a_directory_is_listed_with_what_its_entries_are)
{
    RIG(rig);
    struct error err = {0};
    struct files_total total = {0};
    autogathered got = {0}, deep = {0}, few = {0};
    CHECK(mkdirat(rig.fd, "d", 0700) == 0);
    put_file(rig.fd, "d/a", "12345", 0640);
    CHECK(symlinkat("a/../b", rig.fd, "d/l") == 0);
    CHECK(mkdirat(rig.fd, "d/s", 0711) == 0);
    put_file(rig.fd, "d/s/b", "", 0600);

    CHECK_OK(files_list(rig.conv, "d", false, 100, gather_item, &got, &total, &err), err);
    CHECK_INT(got.items, 3);
    CHECK(strstr(got.names.data, "a 100640\n") != NULL);
    CHECK(strstr(got.names.data, "l 120777 a/../b\n") != NULL);
    CHECK(strstr(got.names.data, "s 40711\n") != NULL);
    CHECK_OK(files_list(rig.conv, "d", true, 100, gather_item, &deep, &total, &err), err);
    CHECK_INT(deep.items, 4);
    CHECK(strstr(deep.names.data, "s/b 100600\n") != NULL);
    CHECK_OK(files_list(rig.conv, "d", true, 2, gather_item, &few, &total, &err), err);
    CHECK_INT(few.items, 2);
    CHECK(total.is_truncated);
    CHECK(files_list(rig.conv, "d/a", false, 9, gather_item, &few, NULL, &err) < 0);
    CHECK_STR(err.text, "open 'd/a': Not a directory");
}

TEST(a_link_is_looked_at_itself_or_followed)
{
    RIG(rig);
    struct error err = {0};
    struct files_item item = {0};
    char target[FILES_MAX_PATH];
    put_file(rig.fd, "a", "12345", 0640);
    CHECK(symlinkat("a", rig.fd, "l") == 0);

    CHECK_OK(files_stat(rig.conv, "l", false, &item, target, &err), err);
    CHECK(S_ISLNK(item.mode));
    CHECK_STR(target, "a");
    CHECK_OK(files_stat(rig.conv, "l", true, &item, target, &err), err);
    CHECK_INT(item.size, 5);
    CHECK_STR(target, "");
    CHECK(files_stat(rig.conv, "missing", true, &item, NULL, &err) < 0);
    CHECK_STR(err.text, "look at 'missing': No such file or directory");
}

TEST(directories_are_made_once_or_as_often_as_liked)
{
    RIG(rig);
    struct error err = {0};
    CHECK_OK(files_mkdir(rig.conv, "d", 01777, FILES_EXCLUSIVE, &err), err);
    CHECK_INT(mode_of(rig.fd, "d"), S_IFDIR | 01777);
    CHECK_OK(files_mkdir(rig.conv, "d/", 0700, 0, &err), err);
    CHECK(files_mkdir(rig.conv, "d", 0700, FILES_EXCLUSIVE, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK(files_mkdir(rig.conv, "a/b/c", 0700, 0, &err) < 0);
    CHECK_OK(files_mkdir(rig.conv, "a/b/../c//d/", 0700, FILES_PARENTS, &err), err);
    CHECK(is_there(rig.fd, "a/c/d"));
    put_file(rig.fd, "file", "", 0600);
    CHECK(files_mkdir(rig.conv, "file", 0700, 0, &err) < 0);
    CHECK_STR(err.text, "make directory 'file': File exists");
    CHECK(files_mkdir(rig.conv, "file/x", 0700, FILES_PARENTS, &err) < 0);
}

TEST(files_and_trees_are_removed)
{
    RIG(rig);
    struct error err = {0};
    CHECK_OK(files_mkdir(rig.conv, "a/b/c", 0700, FILES_PARENTS, &err), err);
    put_file(rig.fd, "a/b/f", "", 0);
    put_file(rig.fd, "f", "", 0);
    CHECK(symlinkat("a", rig.fd, "l") == 0);

    CHECK_OK(files_remove(rig.conv, "f", 0, &err), err);
    CHECK_OK(files_remove(rig.conv, "l", FILES_RECURSIVE, &err), err);
    CHECK(is_there(rig.fd, "a/b/f"));
    CHECK(files_remove(rig.conv, "a", 0, &err) < 0);
    CHECK_STR(err.text, "remove 'a': Directory not empty");
    CHECK_OK(files_remove(rig.conv, "a/b/c", 0, &err), err);
    CHECK_OK(files_remove(rig.conv, "a/", FILES_RECURSIVE, &err), err);
    CHECK(!is_there(rig.fd, "a"));
    CHECK(files_remove(rig.conv, "a", FILES_RECURSIVE, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_OK(files_remove(rig.conv, "a", FILES_MISSING_OK, &err), err);
    CHECK_OK(files_remove(rig.conv, "no/way", FILES_MISSING_OK, &err), err);
    CHECK(files_remove(rig.conv, "/", FILES_RECURSIVE, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(files_remove(rig.conv, "..", FILES_RECURSIVE, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
}

TEST(files_are_renamed_over_others_unless_told_not_to)
{
    RIG(rig);
    struct error err = {0};
    put_file(rig.fd, "a", "A", 0600);
    put_file(rig.fd, "b", "B", 0600);
    CHECK(files_rename(rig.conv, "a", "b", FILES_EXCLUSIVE, &err) < 0);
    CHECK_STR(err.text, "rename 'a' to 'b': File exists");
    CHECK_OK(files_rename(rig.conv, "a", "b", 0, &err), err);
    CHECK_STR(get_file(rig.fd, "b"), "A");
    CHECK_OK(files_rename(rig.conv, "b", "x/y/z", FILES_PARENTS, &err), err);
    CHECK_STR(get_file(rig.fd, "x/y/z"), "A");
    CHECK(files_rename(rig.conv, "b", "c", 0, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
}

TEST(modes_change_also_of_files_nobody_may_open)
{
    RIG(rig);
    struct error err = {0};
    put_file(rig.fd, "a", "A", 0);
    CHECK(symlinkat("a", rig.fd, "l") == 0);
    CHECK_OK(files_chmod(rig.conv, "l", 0640, &err), err);
    CHECK_INT(mode_of(rig.fd, "a"), S_IFREG | 0640);
    CHECK(files_chmod(rig.conv, "b", 0640, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
}

TEST(owners_change_for_root_and_only_within_the_box)
{
    RIG(rig);
    struct error err = {0};
    struct stat info;
    put_file(rig.fd, "a", "A", 0600);
    CHECK(files_chown(rig.conv, "a", 65536, 0, 0, &err) < 0);
    CHECK_STR(err.text, "a sandbox has users and groups 0 to 65535");
    if (geteuid() != 0)
        SKIP("needs root");
    CHECK_OK(files_chown(rig.conv, "a", 1000, FILES_KEEP_ID, 0, &err), err);
    CHECK(fstatat(rig.fd, "a", &info, 0) == 0);
    CHECK_INT(info.st_uid, 1000);
    CHECK_INT(info.st_gid, 0);
}

TEST(an_export_gives_directories_files_and_links)
{
    RIG(rig);
    struct error err = {0};
    struct files_total total = {0};
    autogathered got = {0}, one = {0};
    CHECK_OK(files_mkdir(rig.conv, "t/d", 0750, FILES_PARENTS, &err), err);
    put_file(rig.fd, "t/d/f", "contents", 0640);
    CHECK(symlinkat("d/f", rig.fd, "t/l") == 0);
    CHECK(mkfifoat(rig.fd, "t/fifo", 0600) == 0);

    CHECK_OK(files_export(rig.conv, "t", 100, gather_item, gather_data, &got, &total, &err), err);
    CHECK_INT(got.items, 3);
    CHECK(strstr(got.names.data, "d 40750\nd/f 100640\n") != NULL);
    CHECK(strstr(got.names.data, "l 120777 d/f\n") != NULL);
    CHECK_STR(got.bytes.data, "contents");
    CHECK_INT(total.skipped, 1);
    CHECK_OK(files_export(rig.conv, "t/d/f", 100, gather_item, gather_data, &one, &total, &err),
             err);
    CHECK_STR(one.names.data, "f 100640\n");
    CHECK(files_export(rig.conv, "t", 7, gather_item, gather_data, &one, &total, &err) < 0);
    CHECK_STR(err.text, "'d/f' makes the export larger than 7 bytes");
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
}

#define MANY 3000

/* A file's number tells its length: most are small, some take frames of their own. */
static size_t length_of(unsigned number)
{
    return number % 500 == 7 ? 200000 + number : number % 50 == 3 ? 30000 : number % 5;
}

struct checked {
    unsigned files, number; // the one whose bytes come
    uint64_t left, bytes;
};

static int check_item(void *data, const struct files_item *item, struct error *err)
{
    struct checked *checked = data;
    CHECK_INT(checked->left, 0);
    if (!S_ISREG(item->mode))
        return 0;
    CHECK(sscanf(item->path, "d%*u/f%u", &checked->number) == 1);
    CHECK_INT(item->size, length_of(checked->number));
    checked->left = item->size;
    checked->files++;
    return 0;
}

static int check_data(void *data, const void *bytes, size_t length, struct error *err)
{
    struct checked *checked = data;
    for (size_t i = 0; i < length; i++)
        CHECK(((const uint8_t *)bytes)[i] == (uint8_t)checked->number);
    CHECK(length <= checked->left);
    checked->left -= length;
    checked->bytes += length;
    return 0;
}

TEST(an_export_of_small_and_large_files_gives_each_its_own_bytes)
{
    RIG(rig);
    struct error err = {0};
    struct files_total total = {0};
    struct checked checked = {0};
    static char bytes[300000];
    uint64_t all = 0;
    char name[40];
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "t/d%u", i % 7);
        if (i < 7)
            CHECK_OK(files_mkdir(rig.conv, name, 0755, FILES_PARENTS, &err), err);
        (void)snprintf(name, sizeof name, "t/d%u/f%u", i % 7, i);
        autofd fd = openat(rig.fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        memset(bytes, (int)(uint8_t)i, length_of(i));
        CHECK_INT(write(fd, bytes, length_of(i)), length_of(i));
        all += length_of(i);
    }
    CHECK_OK(files_export(rig.conv, "t", 1 << 30, check_item, check_data, &checked, &total, &err),
             err);
    CHECK_INT(checked.files, MANY);
    CHECK_INT(checked.bytes, all);
    CHECK_INT(checked.left, 0);
    CHECK_INT(total.items, MANY + 7);
    CHECK_INT(total.bytes, all);
}

TEST(an_import_makes_what_the_records_say)
{
    RIG(rig);
    struct error err = {0};
    struct stat info;
    static const struct record records[] = {
        {"d", S_IFDIR | 0500, NULL},
        {"d/f", S_IFREG | 06755, "contents", .mtime_ns = 1234567890123456789},
        {"deep/er/g", S_IFREG | 0600, ""},
        {"d/l", S_IFLNK | 0777, "/etc/passwd"},
        {"h", S_IFREG | 0600, "d/f", .is_hard_link = true},
        {"d/f2", S_IFREG | 0600, "first"},
        {"d/f2", S_IFREG | 0600, "again"},
    };
    CHECK(IMPORT(rig, "into/this", 0, records, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_OK(IMPORT(rig, "into/this", FILES_PARENTS, records, &err), err);
    autofd dir = openat(rig.fd, "into/this", O_PATH | O_CLOEXEC);
    CHECK_STR(get_file(dir, "d/f"), "contents");
    CHECK_STR(get_file(dir, "d/f2"), "again");
    CHECK_STR(get_file(dir, "deep/er/g"), "");
    CHECK_INT(mode_of(dir, "d"), S_IFDIR | 0700);
    CHECK_INT(mode_of(dir, "d/f"), S_IFREG | 0755);
    CHECK(S_ISLNK(mode_of(dir, "d/l")));
    CHECK(fstatat(dir, "h", &info, 0) == 0);
    CHECK_INT(info.st_nlink, 2);
    CHECK_INT(info.st_mtim.tv_sec, 1234567890);
    CHECK_INT(info.st_mtim.tv_nsec, 123456789);
}

/* Files of all sizes, each full of its own letter; the record `bad` cannot be had. */
struct sizes {
    unsigned next, count, bad;
    char path[16];
    size_t left;
};

static size_t size_of(unsigned number)
{
    static const size_t sizes[] = {0, 1, 700, 16384, 16385, 65536, 200000};
    return sizes[number % ARRAY_SIZE(sizes)];
}

static int sizes_next(void *data, struct files_item *item, struct error *err)
{
    struct sizes *sizes = data;
    if (sizes->next == sizes->count)
        return 0;
    if (sizes->next == sizes->bad)
        return error_set(err, ERROR_INVALID, "no more of this");
    (void)snprintf(sizes->path, sizeof sizes->path, "f%u", sizes->next);
    sizes->left = size_of(sizes->next);
    *item = (struct files_item){
        .path = sizes->path, .target = "", .mode = S_IFREG | 0622, .size = sizes->left};
    sizes->next++;
    return 1;
}

static ssize_t sizes_fill(void *data, void *bytes, size_t size, struct error *err)
{
    struct sizes *sizes = data;
    size_t part = sizes->left < size ? sizes->left : size;
    if (part > 5000)
        part = 5000; // less than is asked for
    memset(bytes, 'a' + (int)(sizes->next % 26), part);
    sizes->left -= part;
    return (ssize_t)part;
}

static void check_sizes(int dir, unsigned count)
{
    char path[16];
    struct stat info;

    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "f%u", i);
        autofd fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0 && fstat(fd, &info) == 0);
        CHECK_INT(info.st_size, size_of(i));
        CHECK_INT(info.st_mode, S_IFREG | 0622);
        char last = 0;
        if (info.st_size) {
            CHECK(pread(fd, &last, 1, info.st_size - 1) == 1);
            CHECK_INT(last, 'a' + (int)((i + 1) % 26));
        }
    }
}

TEST(small_and_large_files_of_an_import_arrive_whole)
{
    RIG(rig);
    struct error err = {0};
    struct files_total total = {0};
    struct sizes sizes = {.count = 400, .bad = UINT_MAX};

    CHECK_OK(files_import(rig.conv, ".", 0, sizes_next, sizes_fill, &sizes, &total, &err), err);
    CHECK_INT(total.items, 400);
    check_sizes(rig.fd, 400);
}

TEST(what_came_before_a_record_that_cannot_be_had_stays)
{
    RIG(rig);
    struct error err = {0};
    struct sizes sizes = {.count = 10, .bad = 4}; // three small ones wait for company then

    CHECK(files_import(rig.conv, ".", 0, sizes_next, sizes_fill, &sizes, NULL, &err) < 0);
    CHECK_STR(err.text, "no more of this");
    check_sizes(rig.fd, 4);
    CHECK(faccessat(rig.fd, "f4", F_OK, 0) < 0);
    CHECK_OK(files_stat(rig.conv, ".", true, NULL, NULL, &err), err);
}

static unsigned count_names(int dir)
{
    DIR *listing = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    unsigned count = 0;
    CHECK(listing);
    while (readdir(listing))
        count++;
    (void)closedir(listing);
    return count - 2;
}

/* An import that has begun with a half of the file `path`. */
static void begin_half(const struct rig *rig, const char *path)
{
    static uint8_t room[FILES_MAX_FRAME];
    const struct files_item item = {.path = path, .target = "", .mode = S_IFREG | 0600, .size = 6};
    struct files_request_wire request = {.path_size = 2, .second_size = 1, .third_size = 1};
    struct iovec ask[] = {
        {&request, sizeof request}, {(void *)".", 2}, {(void *)"", 1}, {(void *)"", 1}};
    struct iovec record = {room, files_item_write(&item, room)}, data = {(void *)"abc", 3};
    CHECK(files_frame_send(rig->conv, FILES_IMPORT, 0, ask, 4) == 0);
    CHECK(files_frame_send(rig->conv, FILES_ITEM, 0, &record, 1) == 0);
    CHECK(files_frame_send(rig->conv, FILES_DATA, 0, &data, 1) == 0);
}

TEST(a_file_of_an_import_that_is_cut_off_leaves_what_there_was)
{
    static uint8_t room[FILES_MAX_FRAME];
    static const char *const paths[] = {"old", "new"};
    struct files_frame frame;
    RIG(rig);
    put_file(rig.fd, "old", "as it was", 0600);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        begin_half(&rig, paths[i]);
        CHECK(files_frame_send(rig.conv, FILES_ABORT, 0, NULL, 0) == 0);
        CHECK_INT(files_frame_receive(rig.conv, room, &frame, 0), 1);
        CHECK_INT(frame.type, FILES_ERROR);
        CHECK_STR(get_file(rig.fd, "old"), "as it was");
        CHECK_INT(count_names(rig.fd), 1);
    }
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        begin_half(&rig, paths[i]);
        rig_stop(&rig);
        CHECK_STR(get_file(rig.fd, "old"), "as it was");
        CHECK_INT(count_names(rig.fd), 1);
        rig_start(&rig);
    }
}

TEST(what_was_exported_can_be_imported)
{
    RIG(rig);
    struct error err = {0};
    struct files_total total = {0};
    autogathered first = {0}, second = {0};
    static const struct record records[] = {
        {"a", S_IFDIR | 0755, NULL},
        {"a/f", S_IFREG | 0644, "same"},
        {"a/l", S_IFLNK | 0777, "f"},
    };
    CHECK_OK(IMPORT(rig, "x", FILES_PARENTS, records, &err), err);
    CHECK_OK(IMPORT(rig, "x", FILES_PARENTS, records, &err), err); // over itself
    CHECK_OK(files_export(rig.conv, "x", 99, gather_item, gather_data, &first, &total, &err), err);
    CHECK_OK(files_export(rig.conv, "x", 99, gather_item, gather_data, &second, &total, &err), err);
    CHECK_STR(first.names.data, second.names.data);
    CHECK_INT(total.items, 3);
    CHECK_INT(total.bytes, 4);
}

TEST(owners_in_records_count_only_when_asked_for)
{
    if (geteuid() != 0)
        SKIP("needs root");
    RIG(rig);
    struct error err = {0};
    struct stat info;
    static const struct record records[] = {{"f", S_IFREG | 0600, "x", .uid = 1000, .gid = 1001}};
    static const struct record outside[] = {{"g", S_IFREG | 0600, "x", .uid = 70000}};
    CHECK_OK(IMPORT(rig, ".", 0, records, &err), err);
    CHECK(fstatat(rig.fd, "f", &info, 0) == 0);
    CHECK_INT(info.st_uid, 0);
    CHECK_OK(IMPORT(rig, ".", FILES_OWNERS, records, &err), err);
    CHECK(fstatat(rig.fd, "f", &info, 0) == 0);
    CHECK_INT(info.st_uid, 1000);
    CHECK_INT(info.st_gid, 1001);
    CHECK(IMPORT(rig, ".", FILES_OWNERS, outside, &err) < 0);
    CHECK_STR(err.text, "'g' belongs to 70000:0; a sandbox has 0 to 65535");
}

TEST(everything_is_done_as_the_user)
{
    if (geteuid() != 0)
        SKIP("needs root");
    autorig rig = rig_make();
    struct error err = {0};
    struct stat info;
    static const uint32_t groups[] = {2000};
    autogathered got = {0};
    put_file(rig.fd, "secret", "root's", 0600);
    put_file(rig.fd, "shared", "group's", 0640);
    CHECK(fchownat(rig.fd, "shared", 0, 2000, 0) == 0);
    CHECK(mkdirat(rig.fd, "own", 0700) == 0 && fchownat(rig.fd, "own", 1000, 1001, 0) == 0);
    rig.who = (struct files_user){.uid = 1000, .gid = 1001, .groups = groups, .n_groups = 1};
    rig_start(&rig);

    CHECK(files_read(rig.conv, "secret", 0, 99, NULL, gather_data, &got, NULL, &err) < 0);
    CHECK_STR(err.text, "open 'secret': Permission denied");
    CHECK_INT(error_kind(&err), ERROR_DENIED);
    CHECK_OK(files_read(rig.conv, "shared", 0, 99, NULL, gather_data, &got, NULL, &err), err);
    CHECK_STR(got.bytes.data, "group's");
    CHECK(files_write_buffer(rig.conv, "new", 0600, 0, "x", 1, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_DENIED);
    CHECK(files_chown(rig.conv, "own", 0, 0, 0, &err) < 0);
    CHECK_OK(files_write_buffer(rig.conv, "own/a/f", 0600, FILES_PARENTS, "x", 1, &err), err);
    CHECK(fstatat(rig.fd, "own/a/f", &info, 0) == 0);
    CHECK_INT(info.st_uid, 1000);
    CHECK_INT(info.st_gid, 1001);
    CHECK(fstatat(rig.fd, "own/a", &info, 0) == 0);
    CHECK_INT(info.st_uid, 1000);
    // the thread's rights are its own
    put_file(rig.fd, "by-root", "x", 0600);
    CHECK(fstatat(rig.fd, "by-root", &info, 0) == 0);
    CHECK_INT(info.st_uid, 0);
}

TEST(a_base_that_is_missing_is_said_for_each_request_that_needs_it)
{
    autorig rig = rig_make();
    struct error err = {0};
    rig_start(&rig);
    rig_stop(&rig);
    CHECK(rmdir(rig.dir) == 0);
    rig_start(&rig);
    CHECK(files_mkdir(rig.conv, "y", 0700, 0, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(files_rename(rig.conv, "/tmp", "y", 0, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_OK(files_stat(rig.conv, "/tmp", true, NULL, NULL, &err), err);
    CHECK(files_write_buffer(rig.conv, "x", 0600, 0, "abc", 3, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
}

TEST(paths_of_any_bytes_work_and_too_long_ones_are_refused)
{
    RIG(rig);
    struct error err = {0};
    char path[5000];
    CHECK_OK(files_write_buffer(rig.conv, "a \n\x80'\xff", 0600, 0, "x", 1, &err), err);
    CHECK(is_there(rig.fd, "a \n\x80'\xff"));
    CHECK(files_remove(rig.conv, "\033[2Jx", 0, &err) < 0);
    CHECK_STR(err.text, "remove '?[2Jx': No such file or directory");
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    CHECK(files_remove(rig.conv, path, 0, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    path[300] = '\0';
    CHECK(files_remove(rig.conv, path, 0, &err) < 0);
    CHECK_INT(err.sys, ENAMETOOLONG);
    CHECK(files_remove(rig.conv, "", 0, &err) < 0);
    CHECK_STR(err.text, "a path in the sandbox is empty");
}

static void *refuse(void *data)
{
    files_refuse(*(int *)data, "no user 'nobody' in the sandbox's /etc/passwd");
    return NULL;
}

TEST(a_refused_conversation_says_why_to_each_request)
{
    struct error err = {0};
    pthread_t thread;
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(pthread_create(&thread, NULL, refuse, &pair[1]) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(files_mkdir(pair[0], "x", 0700, 0, &err) < 0);
        CHECK_STR(err.text, "no user 'nobody' in the sandbox's /etc/passwd");
        CHECK(files_write_buffer(pair[0], "x", 0700, 0, "x", 1, &err) < 0);
    }
    (void)close(pair[0]);
    (void)pthread_join(thread, NULL);
}
