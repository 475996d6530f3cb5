/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow-archive pack: records become an archive. Modes, times and links are kept; everything belongs to root in it, unless the format is
 * one that keeps owners.
 */
#include "archive/program.h"
#include "archive/records.h"
#include "base/fd.h"
#include "base/utf8.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>

#define LEVEL "3"               // of compression: most of what 6 saves, in half its time
#define BLOCK_BYTES (128 << 10) // of the archive that are written at once

struct sink {
    bool has_owners;
    uint64_t room;  // bytes that may still be written
    locale_t plain; // of names that are no text
    struct error err;
};

static la_ssize_t on_write(struct archive *archive, void *data, const void *bytes, size_t length)
{
    struct sink *sink = data;
    if (length > sink->room) {
        (void)error_set(&sink->err, ERROR_LIMIT, "the archive gets larger than is allowed");
        return ARCHIVE_FATAL;
    }
    if (fd_write_all(PROGRAM_ARCHIVE, bytes, length) < 0) {
        bool is_too_large = errno == EFBIG; // than confine() allows
        (void)error_sys(&sink->err, "write the archive");
        if (is_too_large)
            (void)error_restate(&sink->err, ERROR_TOO_LARGE, NULL);
        return ARCHIVE_FATAL;
    }
    sink->room -= length;
    return (la_ssize_t)length;
}

static int failed(struct archive *archive, const struct sink *sink, struct error *err)
{
    const char *why = archive_error_string(archive);
    if (sink->err.reason) {
        *err = sink->err;
        return -1;
    }
    return error_set(err, ERROR_SYSTEM, "make the archive: %.300s", why ? why : "unknown");
}

/* Without the time of its making, so that the same files make the same archive. */
static int set_format(struct archive *archive, enum archive_format format)
{
    if (format == ARCHIVE_ZIP) {
        if (archive_write_set_format_zip(archive) != ARCHIVE_OK ||
            archive_write_set_format_option(archive, "zip", "compression", "deflate") != ARCHIVE_OK)
            return -1;
        return archive_write_set_format_option(archive, "zip", "compression-level", LEVEL);
    }
    if (format == ARCHIVE_TAR)
        return archive_write_set_format_pax_restricted(archive);
    if (format == ARCHIVE_TAR_ZSTD ||
        format == ARCHIVE_ZSTD) // the restricted form has no parts of a second
        return archive_write_set_format_pax(archive) == ARCHIVE_OK
                   ? archive_write_add_filter_zstd(archive)
                   : -1;
    if (archive_write_set_format_pax_restricted(archive) != ARCHIVE_OK ||
        archive_write_add_filter_gzip(archive) != ARCHIVE_OK ||
        archive_write_set_filter_option(archive, "gzip", "timestamp", NULL) != ARCHIVE_OK)
        return -1;
    return archive_write_set_filter_option(archive, "gzip", "compression-level", LEVEL);
}

static void describe(struct archive_entry *entry, const struct files_item *item, bool has_owners)
{
    archive_entry_clear(entry);
    archive_entry_copy_pathname(entry, item->path);
    // without their owners, set-id bits are no use outside
    archive_entry_set_mode(entry, has_owners ? item->mode : item->mode & (S_IFMT | 0777));
    archive_entry_set_mtime(entry, item->mtime_ns / 1000000000,
                            has_owners && item->mtime_ns > 0 ? (long)(item->mtime_ns % 1000000000)
                                                             : 0);
    archive_entry_set_size(entry, (la_int64_t)item->size);
    archive_entry_set_uid(entry, has_owners ? item->uid : 0);
    archive_entry_set_gid(entry, has_owners ? item->gid : 0);
    if (item->is_hard_link)
        archive_entry_copy_hardlink(entry, item->target);
    else if (S_ISLNK(item->mode))
        archive_entry_copy_symlink(entry, item->target);
}

/*
 * libarchive marks names in zip files as UTF-8 when the locale has that, whatever they are; some readers then refuse the whole
 * file for one name that is not.
 */
static int write_header(struct archive *archive, struct archive_entry *entry,
                        const struct sink *sink, const char *path)
{
    bool is_text = utf8_is_valid(path, strlen(path));
    locale_t before = is_text ? (locale_t)0 : uselocale(sink->plain);
    int result = archive_write_header(archive, entry);
    if (!is_text)
        (void)uselocale(before);
    return result;
}

static int add_item(struct archive *archive, struct archive_entry *entry, struct sink *sink,
                    const struct files_item *item, struct error *err)
{
    describe(entry, item, sink->has_owners);
    int result = write_header(archive, entry, sink, item->path);
    return result == ARCHIVE_OK || result == ARCHIVE_WARN ? 0 : failed(archive, sink, err);
}

static int add_bytes(struct archive *archive, const struct sink *sink, const uint8_t *bytes,
                     size_t length, struct error *err)
{
    la_ssize_t written = archive_write_data(archive, bytes, length);
    return written == (la_ssize_t)length ? 0 : failed(archive, sink, err);
}

static int make_no_sense(struct error *err)
{
    return error_set(err, ERROR_INVALID, "records for an archive that make no sense");
}

static int take_whole(struct archive *archive, struct archive_entry *entry, struct sink *sink,
                      struct records *records, const struct files_frame *frame, struct error *err)
{
    for (size_t at = 0; at < frame->length;) {
        struct files_item item;
        const uint8_t *content;
        if (!records_take_whole(records, frame, &at, &item, &content))
            return make_no_sense(err);
        if (add_item(archive, entry, sink, &item, err) < 0 ||
            (item.size && add_bytes(archive, sink, content, (size_t)item.size, err) < 0))
            return -1;
    }
    return 0;
}

static int take_frame(struct archive *archive, struct archive_entry *entry, struct sink *sink,
                      struct records *records, const struct files_frame *frame, struct error *err)
{
    struct files_item item;
    if (frame->type == FILES_RECORDS)
        return take_whole(archive, entry, sink, records, frame, err);
    if (frame->type == FILES_ITEM && records_take_item(records, frame, &item))
        return add_item(archive, entry, sink, &item, err);
    if (frame->type == FILES_DATA && records_take_data(records, frame))
        return add_bytes(archive, sink, frame->payload, frame->length, err);
    return make_no_sense(err);
}

static int take_records(struct program *program, struct archive *archive,
                        struct archive_entry *entry, struct sink *sink, struct error *err)
{
    struct records records = {.entries = program->max_entries, .bytes = program->max_bytes};
    struct files_frame frame;
    for (;;) {
        int got = files_frame_receive(PROGRAM_CONVERSATION, program->in, &frame, 0);
        if (got <= 0)
            return error_set(err, ERROR_SYSTEM, "the records of an archive end too early");
        if (records_take_commit(&records, &frame))
            return 0;
        if (take_frame(archive, entry, sink, &records, &frame, err) < 0)
            return -1;
    }
}

int program_pack(struct program *program, struct error *err)
{
    struct sink sink = {.has_owners = program->format == ARCHIVE_TAR_ZSTD,
                        .room = program->max_bytes,
                        .plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    struct archive *archive = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    int result = -1;

    if (!archive || !entry || set_format(archive, program->format) != ARCHIVE_OK ||
        archive_write_set_bytes_per_block(archive, BLOCK_BYTES) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK ||
        archive_write_open(archive, &sink, NULL, on_write, NULL) != ARCHIVE_OK)
        (void)error_set(err, ERROR_SYSTEM, "libarchive does not make this kind of archive");
    else
        result = take_records(program, archive, entry, &sink, err);
    if (result == 0 && archive_write_close(archive) != ARCHIVE_OK)
        result = failed(archive, &sink, err);
    archive_entry_free(entry);
    (void)archive_write_free(archive);
    return result;
}
