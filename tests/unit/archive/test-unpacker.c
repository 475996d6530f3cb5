/* SPDX-License-Identifier: Apache-2.0 */
/* Archives as people make them, unpacked by the real burrow-archive. Needs root. */
#include "archive_fixture.h"
#include "archive/unpacker.h"

#include <sys/stat.h>

#define UNPACKED_WELL(unpacked)                                                                    \
    do {                                                                                           \
        if ((unpacked).result < 0)                                                                 \
            test_fail(__FILE__, __LINE__, "not unpacked: %s", (unpacked).err.text);                \
    } while (0)

static void add_all_types(struct buffer *tar)
{
    struct tar_entry dir = {.name = "./dir/", .type = '5', .mode = 0755};
    struct tar_entry run = {.name = "./dir/run", .mode = 0755, .content = "#!", .length = 2};
    struct tar_entry link = {.name = "./link", .type = '2', .link = "../dir/run", .mode = 0777};
    struct tar_entry hard = {.name = "./hard", .type = '1', .link = "./dir/run", .mode = 0755};
    struct tar_entry self = {.name = "./", .type = '5', .mode = 0700};
    tar_add(tar, &self);
    tar_add(tar, &dir);
    tar_add(tar, &run);
    tar_add(tar, &link);
    tar_add(tar, &hard);
    tar_add_file(tar, "./empty", "");
    tar_end(tar);
}

static const char all_types[] = "040755 dir\n"
                                "100755 dir/run: #!\n"
                                "120777 link -> ../dir/run\n"
                                "100755 hard => dir/run\n"
                                "100644 empty\n";

TEST(a_tar_becomes_records_compressed_or_not)
{
    struct archive_task task = plain_task();
    autobuffer tar = {0};
    add_all_types(&tar);
    for (int is_compressed = 0; is_compressed < 2; is_compressed++) {
        for (task.format = ARCHIVE_ANY; task.format <= ARCHIVE_TAR_GZIP; task.format++) {
            autounpacked out;
            unpack(&task, &tar, &out);
            UNPACKED_WELL(out);
            CHECK_STR(out.text.data, all_types);
            CHECK_INT(out.last_mtime_ns, 1000000000000000000);
        }
        gzip(&tar);
    }
}

TEST(a_zip_becomes_records_with_the_modes_of_its_directory)
{
    struct archive_task task = plain_task();
    autozip zip = {0};
    struct zip_entry entries[] = {
        {.name = "dir/", .mode = 040750},
        {.name = "dir/run", .mode = 0100755, .content = "#!", .length = 2, .is_deflated = true},
        {.name = "link", .mode = 0120777, .content = "../dir/run", .length = 10},
        {.name = "plain", .content = "windows", .length = 7},
        {.name = "streamed",
         .mode = 0100600,
         .content = "later",
         .length = 5,
         .is_deflated = true,
         .has_descriptor = true},
        {.name = "large", .mode = 0100600, .content = "64", .length = 2, .is_zip64 = true},
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        zip_add(&zip, &entries[i]);
    zip_end(&zip);
    for (int is_named = 0; is_named < 2; is_named++) {
        autounpacked out;
        task.format = is_named ? ARCHIVE_ZIP : ARCHIVE_ANY;
        unpack(&task, &zip.bytes, &out);
        UNPACKED_WELL(out);
        CHECK_STR(out.text.data, "040750 dir\n"
                                 "100755 dir/run: #!\n"
                                 "120777 link -> ../dir/run\n"
                                 "100664 plain: windows\n"
                                 "100600 streamed: later\n"
                                 "100600 large: 64\n");
    }
}

/* Parts of 200 characters until it is `length` long. */
static char *long_path(size_t length)
{
    char *path = malloc(length + 1);
    CHECK(path);
    for (size_t i = 0; i < length; i++)
        path[i] = i % 200 == 199 ? '/' : 'n';
    path[length] = '\0';
    return path;
}

TEST(long_names_come_by_pax_and_by_gnu_headers)
{
    struct archive_task task = plain_task();
    char *path = long_path(3010), *want = NULL;
    CHECK(asprintf(&want, "100644 %s: pax\n100644 %s: gnu\n120777 link -> %s\n", path, path, path) >
          0);
    autobuffer tar = {0};
    autounpacked out;
    tar_add_pax(&tar, "path", path, strlen(path));
    tar_add_file(&tar, "short", "pax");
    tar_add_gnu(&tar, 'L', path);
    tar_add_file(&tar, "short", "gnu");
    tar_add_gnu(&tar, 'K', path);
    tar_add(&tar, &(struct tar_entry){.name = "link", .type = '2', .link = "short"});
    tar_end(&tar);
    unpack(&task, &tar, &out);
    UNPACKED_WELL(out);
    CHECK_STR(out.text.data, want);
    free(path);
    free(want);
}

TEST(names_in_any_bytes_stay_as_they_are)
{
    struct archive_task task = plain_task();
    static const char utf8[] = "gr\xc3\xbc\xc3\x9f \xe2\x98\x83", latin[] = "gr\xfc\xdf";
    autobuffer tar = {0};
    autozip zip = {0};
    autounpacked from_tar, from_zip;
    tar_add_file(&tar, utf8, "");
    tar_add_pax(&tar, "path", utf8, strlen(utf8));
    tar_add_file(&tar, "x", "");
    tar_add_file(&tar, latin, "");
    tar_add_file(&tar, "two\nlines", "");
    tar_end(&tar);
    unpack(&task, &tar, &from_tar);
    UNPACKED_WELL(from_tar);
    CHECK_STR(from_tar.text.data, "100644 gr\xc3\xbc\xc3\x9f \xe2\x98\x83\n"
                                  "100644 gr\xc3\xbc\xc3\x9f \xe2\x98\x83\n"
                                  "100644 gr\xfc\xdf\n"
                                  "100644 two\nlines\n");
    zip_add(&zip, &(struct zip_entry){.name = utf8, .mode = 0100644});
    zip_add(&zip, &(struct zip_entry){.name = latin, .mode = 0100644});
    zip_end(&zip);
    unpack(&task, &zip.bytes, &from_zip);
    UNPACKED_WELL(from_zip);
    CHECK_STR(from_zip.text.data, "100644 gr\xc3\xbc\xc3\x9f \xe2\x98\x83\n100644 gr\xfc\xdf\n");
}

TEST(times_and_sizes_of_pax_headers_count)
{
    struct archive_task task = plain_task();
    autobuffer tar = {0};
    autounpacked out;
    tar_add_pax(&tar, "mtime", "1700000000.25", 13);
    tar_add_file(&tar, "a", "content");
    tar_end(&tar);
    unpack(&task, &tar, &out);
    UNPACKED_WELL(out);
    CHECK_INT(out.last_mtime_ns, 1700000000250000000);
}

TEST(empty_archives_are_archives)
{
    struct archive_task task = plain_task();
    autobuffer tar = {0};
    autozip zip = {0};
    autounpacked plain, packed, zipped;
    tar_end(&tar);
    unpack(&task, &tar, &plain);
    UNPACKED_WELL(plain);
    gzip(&tar);
    unpack(&task, &tar, &packed);
    UNPACKED_WELL(packed);
    zip_end(&zip);
    unpack(&task, &zip.bytes, &zipped);
    UNPACKED_WELL(zipped);
    CHECK_INT(plain.records + packed.records + zipped.records, 0);
}

TEST(large_contents_come_whole)
{
    struct archive_task task = plain_task();
    size_t length = 5000001;
    char *content = malloc(length);
    autobuffer tar = {0};
    autounpacked out;
    CHECK(content);
    for (size_t i = 0; i < length; i++)
        content[i] = (char)('a' + i % 26);
    tar_add(&tar, &(struct tar_entry){.name = "big", .content = content, .length = length});
    tar_add_file(&tar, "after", "it");
    tar_end(&tar);
    gzip(&tar);
    unpack(&task, &tar, &out);
    free(content);
    UNPACKED_WELL(out);
    CHECK_INT(out.bytes, length + 2);
    CHECK(strstr(out.text.data, "100644 after: it\n"));
}

TEST(a_hundred_thousand_entries_are_unpacked)
{
    struct archive_task task = plain_task();
    autobuffer tar = {0};
    autounpacked out;
    char name[32];
    task.max_entries = 100000;
    for (int i = 0; i < 100000; i++) {
        (void)snprintf(name, sizeof name, "d%d/f%d", i % 100, i);
        tar_add_file(&tar, name, "x");
    }
    tar_end(&tar);
    gzip(&tar);
    unpack(&task, &tar, &out);
    UNPACKED_WELL(out);
    CHECK_INT(out.records, 100000);
}

TEST(gzip_members_in_a_row_are_one_archive)
{
    struct archive_task task = plain_task();
    autobuffer first = {0}, second = {0};
    autounpacked out;
    struct error err = {0};
    tar_add_file(&first, "a", "1");
    gzip(&first);
    tar_add_file(&second, "b", "2");
    tar_end(&second);
    gzip(&second);
    CHECK_OK(buffer_add(&first, second.data, second.length, &err), err);
    unpack(&task, &first, &out);
    UNPACKED_WELL(out);
    CHECK_STR(out.text.data, "100644 a: 1\n100644 b: 2\n");
}

TEST(a_program_that_is_not_there_is_named)
{
    struct archive_task task = plain_task();
    autobuffer tar = {0};
    autounpacked out;
    task.program = "/nowhere/burrow-archive";
    tar_end(&tar);
    unpack(&task, &tar, &out);
    CHECK_INT(out.result, -1);
    CHECK_INT(error_kind(&out.err), ERROR_UNAVAILABLE);
    CHECK_STR(out.err.text, "start '/nowhere/burrow-archive': No such file or directory");
}
