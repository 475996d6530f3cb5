/* SPDX-License-Identifier: Apache-2.0 */
/* Before burrow-archive gives up its rights: lets the C library and libarchive load what they would otherwise load while they work. */
#include "archive/program.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <stdlib.h>
#include <time.h>

#define ROOM 32768

static bool write_one(struct archive *archive, char *room, size_t *used)
{
    struct archive_entry *entry = archive_entry_new();
    bool is_good = entry && archive_write_open_memory(archive, room, ROOM, used) == ARCHIVE_OK;
    if (is_good) {
        archive_entry_set_pathname(entry, "w\xc3\xa4rmer"); // one that has to be converted
        archive_entry_set_mode(entry, 0100644);
        archive_entry_set_size(entry, 1);
        is_good = archive_write_header(archive, entry) == ARCHIVE_OK &&
                  archive_write_data(archive, "x", 1) == 1 &&
                  archive_write_close(archive) == ARCHIVE_OK;
    }
    archive_entry_free(entry);
    return is_good;
}

static bool read_one(struct archive *archive, const char *bytes, size_t length)
{
    struct archive_entry *entry = NULL;
    char byte;
    return archive_read_support_format_tar(archive) == ARCHIVE_OK &&
           archive_read_support_format_zip_seekable(archive) == ARCHIVE_OK &&
           archive_read_open_memory(archive, bytes, length) == ARCHIVE_OK &&
           archive_read_next_header(archive, &entry) == ARCHIVE_OK &&
           archive_entry_pathname(entry) && archive_read_data(archive, &byte, 1) == 1;
}

static bool warm(int (*set_format)(struct archive *))
{
    char room[ROOM];
    size_t used = 0;
    struct archive *writer = archive_write_new(), *reader = archive_read_new();
    bool is_good = writer && reader && set_format(writer) == ARCHIVE_OK &&
                   write_one(writer, room, &used) && read_one(reader, room, used);
    (void)archive_write_free(writer);
    (void)archive_read_free(reader);
    return is_good;
}

int program_warm_up(struct error *err)
{
    // times in zip files have no zone; a text that names the offset keeps libc from looking for a file each time
    if (setenv("TZ", "UTC0", 1) < 0 || !setlocale(LC_CTYPE, "C.UTF-8"))
        return error_set(err, ERROR_SYSTEM, "there is no locale 'C.UTF-8' here");
    tzset();
    if (!warm(archive_write_set_format_pax_restricted) || !warm(archive_write_set_format_zip))
        return error_set(err, ERROR_SYSTEM, "libarchive does not work with tar and zip here");
    return 0;
}
