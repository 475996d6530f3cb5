/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of packing record by record; see writer.h. */
#include "archive/writer.h"
#include "archive/archiver.h"
#include "archive/records.h"
#include "base/mem.h"

struct writer {
    struct archiver archiver;
    uint64_t entries, bytes; // that may still come
    uint8_t room[FILES_MAX_FRAME];
};

int writer_open(const struct archive_task *task, int archive_fd, struct writer **out,
                struct error *err)
{
    autoptr(writer) writer = xnew(struct writer);
    writer->archiver.sock = -1;
    writer->entries = task->max_entries;
    writer->bytes = task->max_bytes;
    if (archiver_start(&writer->archiver, "pack", task, archive_fd, err) < 0)
        return -1;
    *out = take(writer);
    return 0;
}

int writer_item(struct writer *writer, const struct files_item *item, struct error *err)
{
    if (!writer->entries || item->size > writer->bytes)
        return error_refuse(err, ERROR_TOO_LARGE, "archive", "more than may be in one archive");
    if (!record_is_good(item) || files_item_size(item) > FILES_MAX_DATA) {
        return error_refuse(err, ERROR_REFUSED, "archive", "'%.300s' cannot be in an archive",
                            item->path);
    }
    writer->entries--;
    writer->bytes -= item->size;
    return archiver_send(&writer->archiver, FILES_ITEM, writer->room,
                         files_item_write(item, writer->room), err);
}

int writer_data(struct writer *writer, const void *bytes, size_t length, struct error *err)
{
    for (const uint8_t *at = bytes; length;) {
        size_t piece = length < FILES_MAX_DATA ? length : FILES_MAX_DATA;
        if (archiver_send(&writer->archiver, FILES_DATA, at, piece, err) < 0)
            return -1;
        at += piece;
        length -= piece;
    }
    return 0;
}

int writer_finish(struct writer *writer, struct error *err)
{
    struct records none = {0};
    struct files_frame frame;
    if (archiver_send(&writer->archiver, FILES_COMMIT, NULL, 0, err) < 0 ||
        archiver_receive(&writer->archiver, &frame, err) < 0)
        return -1;
    return records_take_end(&none, &frame) ? 0 : archiver_lied(err);
}

void writer_free(struct writer *writer)
{
    if (writer)
        archiver_clear(&writer->archiver);
    free(writer);
}
