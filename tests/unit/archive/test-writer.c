/* SPDX-License-Identifier: Apache-2.0 */
/* Archives written record by record by the real burrow-archive, and read back by it. Needs root. */
#include "archive/writer.h"
#include "archive_fixture.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MANY 500

static struct writer *open_writer(const struct archive_task *task, int fd)
{
    struct writer *writer = NULL;
    struct error err = {0};

    CHECK_OK(writer_open(task, fd, &writer, &err), err);
    return writer;
}

static int give(struct writer *writer, const char *path, const char *text, struct error *err)
{
    size_t length = strlen(text);
    const struct files_item item = {
        .path = path, .target = "", .mode = S_IFREG | 0644, .size = length};

    return writer_item(writer, &item, err) < 0 ? -1 : writer_data(writer, text, length, err);
}

static void read_back(const struct archive_task *task, int fd, struct unpacked *out)
{
    autobuffer archive = {0};
    struct error err = {0};

    CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
    CHECK_OK(fd_read_buffer(fd, &archive, &err), err);
    unpack(task, &archive, out);
}

static size_t length_of(unsigned number)
{
    return number % 97 == 5 ? 150000 : number % 30 == 1 ? 20000 + number : number % 3;
}

TEST(small_and_large_files_come_in_the_order_in_which_they_were_given)
{
    struct archive_task task = plain_task();
    autobuffer none = {0}, wanted = {0};
    autofd fd = file_of(&none);
    autounpacked out;
    struct error err = {0};
    static char text[150001];
    uint64_t bytes = 0;
    task.format = ARCHIVE_TAR;
    task.max_entries = MANY;
    autoptr(writer) writer = open_writer(&task, fd);

    for (unsigned i = MANY; i-- > 0;) {
        size_t length = length_of(i);
        char name[20];
        (void)snprintf(name, sizeof name, "f%u", i);
        memset(text, 'a' + (int)(i % 26), length);
        text[length] = '\0';
        CHECK_OK(give(writer, name, text, &err), err);
        CHECK_OK(buffer_addf(&wanted, &err, "100644 %s%s%.*s\n", name, length ? ": " : "",
                             UNPACKED_SHOWN, text),
                 err);
        bytes += length;
    }
    CHECK_OK(writer_finish(writer, &err), err);
    read_back(&task, fd, &out);
    CHECK_OK(out.result, out.err);
    CHECK_INT(out.records, MANY);
    CHECK_INT(out.bytes, bytes);
    CHECK_STR(out.text.data, wanted.data);
}

TEST(a_file_whose_bytes_are_not_as_many_as_was_said_is_no_archive)
{
    static const size_t sizes[] = {10, 100000}; // one that waits for others, one that does not
    struct archive_task task = plain_task();
    task.format = ARCHIVE_TAR;

    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        autobuffer none = {0};
        autofd fd = file_of(&none);
        struct error err = {0};
        autoptr(writer) writer = open_writer(&task, fd);
        const struct files_item item = {
            .path = "f", .target = "", .mode = S_IFREG | 0644, .size = sizes[i]};
        autofree char *bytes = xcalloc(1, sizes[i] + 1);

        CHECK_OK(writer_item(writer, &item, &err), err);
        CHECK(writer_data(writer, bytes, sizes[i] + 1, &err) < 0);
        CHECK_OK(writer_data(writer, bytes, sizes[i] - 1, &err), err);
        CHECK(writer_item(writer, &item, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_SYSTEM);
        CHECK(writer_finish(writer, &err) < 0);
    }
}

TEST(more_files_and_bytes_than_allowed_are_refused)
{
    struct archive_task task = plain_task();
    autobuffer none = {0};
    autofd fd = file_of(&none);
    struct error err = {0};
    task.format = ARCHIVE_TAR;
    task.max_entries = 2;
    task.max_bytes = 30;
    autoptr(writer) writer = open_writer(&task, fd);

    CHECK_OK(give(writer, "a", "0123456789", &err), err);
    CHECK(give(writer, "b", "0123456789012345678901234567890", &err) < 0);
    CHECK_STR(err.text, "more than may be in one archive");
    CHECK_OK(give(writer, "b", "0123456789", &err), err);
    CHECK(give(writer, "c", "", &err) < 0);
    CHECK_STR(err.text, "more than 2 files for one archive");
    CHECK_STR(err.noun, "archive");
    CHECK(writer_finish(writer, &err) < 0); // its headers alone are more
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK_STR(err.noun, "archive");
}

TEST(nothing_makes_an_empty_archive)
{
    struct archive_task task = plain_task();
    autobuffer none = {0};
    autofd fd = file_of(&none);
    autounpacked out;
    struct error err = {0};
    task.format = ARCHIVE_TAR;
    autoptr(writer) writer = open_writer(&task, fd);

    CHECK_OK(writer_finish(writer, &err), err);
    read_back(&task, fd, &out);
    CHECK_OK(out.result, out.err);
    CHECK_INT(out.records, 0);
}

TEST(a_program_that_gives_up_no_rights_is_told_of_once_it_is_spoken_to)
{
    struct archive_task task = plain_task();
    autobuffer none = {0};
    autofd fd = file_of(&none);
    struct error err = {0};
    task.program = "/bin/true";
    task.format = ARCHIVE_TAR;
    autoptr(writer) writer = open_writer(&task, fd);

    CHECK(writer_finish(writer, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_UNAVAILABLE);
    CHECK(strstr(err.text, "make burrow-archive give up its rights"));
}
