/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of packing record by record; see writer.h. */
#include "archive/writer.h"
#include "archive/archiver.h"
#include "archive/records.h"
#include "base/mem.h"

#include <string.h>

struct writer {
    struct archiver archiver;
    uint64_t entries, most_entries; // given, and allowed
    uint64_t bytes;                 // that may still come
    uint64_t left;                  // of the content of the record given last
    uint8_t *content;         // where that goes, in `room`; NULL: it goes in frames of its own
    struct files_batch batch; // small records that wait for each other
    uint8_t room[FILES_MAX_FRAME];
};

int writer_open(const struct archive_task *task, int archive_fd, struct writer **out,
                struct error *err)
{
    autoptr(writer) writer = xnew(struct writer);
    writer->archiver.sock = -1;
    writer->most_entries = task->max_entries;
    writer->bytes = task->max_bytes;
    writer->batch.room = writer->room;
    if (archiver_start(&writer->archiver, "pack", task, archive_fd, err) < 0)
        return -1;
    *out = take(writer);
    return 0;
}

static int send_batch(struct writer *writer, struct error *err)
{
    size_t length = writer->batch.length;

    writer->batch.length = 0;
    return length ? archiver_send(&writer->archiver, FILES_RECORDS, writer->room, length, err) : 0;
}

/* What was given last is whole. */
static int check_whole(const struct writer *writer, struct error *err)
{
    return writer->left
               ? error_set(err, ERROR_SYSTEM, "less came of a file than it was said to have")
               : 0;
}

static int check_item(const struct writer *writer, const struct files_item *item, struct error *err)
{
    if (writer->entries == writer->most_entries)
        return error_refuse(err, ERROR_TOO_LARGE, "archive", "more than %llu files for one archive",
                            (unsigned long long)writer->most_entries);
    if (item->size > writer->bytes)
        return error_refuse(err, ERROR_TOO_LARGE, "archive", "more than may be in one archive");
    if (!record_is_good(item) || files_item_size(item) > FILES_MAX_DATA) {
        return error_refuse(err, ERROR_REFUSED, "archive", "'%.300s' cannot be in an archive",
                            item->path);
    }
    return 0;
}

int writer_item(struct writer *writer, const struct files_item *item, struct error *err)
{
    if (check_whole(writer, err) < 0 || check_item(writer, item, err) < 0)
        return -1;
    bool is_small = files_batch_takes(item);
    if (!(is_small && files_batch_has_room(&writer->batch, item)) && send_batch(writer, err) < 0)
        return -1;
    writer->entries++;
    writer->bytes -= item->size;
    writer->left = item->size;
    writer->content = NULL;
    if (!is_small)
        return archiver_send(&writer->archiver, FILES_ITEM, writer->room,
                             files_item_write(item, writer->room), err);
    writer->content = files_batch_begin(&writer->batch, item);
    files_batch_keep(&writer->batch, item);
    return 0;
}

static int send_data(struct writer *writer, const uint8_t *at, size_t length, struct error *err)
{
    while (length) {
        size_t piece = length < FILES_MAX_DATA ? length : FILES_MAX_DATA;
        if (archiver_send(&writer->archiver, FILES_DATA, at, piece, err) < 0)
            return -1;
        at += piece;
        length -= piece;
    }
    return 0;
}

int writer_data(struct writer *writer, const void *bytes, size_t length, struct error *err)
{
    if (length > writer->left)
        return error_set(err, ERROR_SYSTEM, "more came of a file than it was said to have");
    writer->left -= length;
    if (!writer->content)
        return send_data(writer, bytes, length, err);
    memcpy(writer->content, bytes, length);
    writer->content += length;
    return 0;
}

int writer_finish(struct writer *writer, struct error *err)
{
    struct records none = {0};
    struct files_frame frame;
    if (check_whole(writer, err) < 0 || send_batch(writer, err) < 0 ||
        archiver_send(&writer->archiver, FILES_COMMIT, NULL, 0, err) < 0 ||
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
