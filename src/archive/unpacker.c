/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of unpacking; see unpacker.h. */
#include "archive/unpacker.h"
#include "archive/archiver.h"
#include "archive/records.h"
#include "base/mem.h"

#include <string.h>

struct unpacker {
    struct archiver archiver;
    struct records records;
    struct files_frame frame; // received last
    size_t used;              // of its bytes, when it is DATA or RECORDS
    const uint8_t *content;   // of a record that came whole: what is not taken yet
    size_t content_left;
    bool is_waiting; // the frame is not looked at yet
    bool is_over;
    bool is_layer;
    struct files_total total;
    struct unpacker_attribute *attributes;
    size_t n_attributes;
    uint8_t *room; // their names and values
    size_t n_room;
};

static int next_frame(struct unpacker *unpacker, struct error *err)
{
    unpacker->used = 0;
    return archiver_receive(&unpacker->archiver, &unpacker->frame, err);
}

int unpacker_open(const struct archive_task *task, int archive_fd, struct unpacker **out,
                  struct error *err)
{
    autoptr(unpacker) unpacker = xnew(struct unpacker);
    unpacker->archiver.sock = -1;
    unpacker->is_layer = task->format == ARCHIVE_LAYER;
    unpacker->records = (struct records){.entries = task->max_entries, .bytes = task->max_bytes};
    if (archiver_start(&unpacker->archiver, "unpack", task, archive_fd, err) < 0 ||
        next_frame(unpacker, err) < 0)
        return -1;
    unpacker->is_waiting = true;
    *out = take(unpacker);
    return 0;
}

/* Frames of attributes up to the record that they belong to. */
static int gather_attributes(struct unpacker *unpacker, struct error *err)
{
    struct unpacker_attribute given;

    unpacker->n_attributes = unpacker->n_room = 0;
    while (unpacker->is_layer && unpacker->frame.type == RECORDS_ATTRIBUTE) {
        if (!records_take_attribute(&unpacker->records, &unpacker->frame, &given.name, &given.value,
                                    &given.size))
            return archiver_lied(err);
        if (!unpacker->room)
            unpacker->room = xcalloc(1, RECORDS_MAX_ATTRIBUTES);
        uint8_t *at = unpacker->room + unpacker->n_room;
        memcpy(at, unpacker->frame.payload, unpacker->frame.length);
        unpacker->n_room += unpacker->frame.length;
        given.name = (const char *)at;
        given.value = at + strlen(given.name) + 1;
        unpacker->attributes = xrealloc(unpacker->attributes, unpacker->n_attributes + 1,
                                        sizeof *unpacker->attributes);
        unpacker->attributes[unpacker->n_attributes++] = given;
        if (next_frame(unpacker, err) < 0)
            return -1;
    }
    return 0;
}

const struct unpacker_attribute *unpacker_attributes(const struct unpacker *unpacker, size_t *count)
{
    *count = unpacker->n_attributes;
    return unpacker->attributes;
}

const struct files_total *unpacker_total(const struct unpacker *unpacker)
{
    return &unpacker->total;
}

static int take_whole(struct unpacker *unpacker, struct files_item *item, struct error *err)
{
    if (!records_take_whole(&unpacker->records, &unpacker->frame, &unpacker->used, item,
                            &unpacker->content))
        return archiver_lied(err);
    unpacker->content_left = item->size;
    return 1;
}

int unpacker_next(void *data, struct files_item *item, struct error *err)
{
    struct unpacker *unpacker = data;
    if (unpacker->is_over)
        return 0;
    if (!unpacker->is_waiting && unpacker->frame.type == FILES_RECORDS &&
        unpacker->used < unpacker->frame.length) {
        unpacker->n_attributes = 0;
        return take_whole(unpacker, item, err);
    }
    if (!unpacker->is_waiting && next_frame(unpacker, err) < 0)
        return -1;
    unpacker->is_waiting = false;
    if (gather_attributes(unpacker, err) < 0)
        return -1;
    unpacker->is_over = records_take_end(&unpacker->records, &unpacker->frame);
    if (unpacker->is_over) {
        (void)files_total_parse(&unpacker->frame, &unpacker->total);
        return 0;
    }
    if (unpacker->frame.type == FILES_RECORDS)
        return take_whole(unpacker, item, err);
    return records_take_item(&unpacker->records, &unpacker->frame, item) ? 1 : archiver_lied(err);
}

static ssize_t fill_from_record(struct unpacker *unpacker, void *bytes, size_t size)
{
    size_t given = unpacker->content_left < size ? unpacker->content_left : size;

    memcpy(bytes, unpacker->content, given);
    unpacker->content += given;
    unpacker->content_left -= given;
    return (ssize_t)given;
}

ssize_t unpacker_fill(void *data, void *bytes, size_t size, struct error *err)
{
    struct unpacker *unpacker = data;
    struct files_frame *frame = &unpacker->frame;
    if (frame->type == FILES_RECORDS)
        return fill_from_record(unpacker, bytes, size);
    if (frame->type != FILES_DATA || unpacker->used == frame->length) {
        if (next_frame(unpacker, err) < 0)
            return -1;
        if (!records_take_data(&unpacker->records, frame))
            return archiver_lied(err);
    }
    size_t left = frame->length - unpacker->used, given = left < size ? left : size;
    memcpy(bytes, frame->payload + unpacker->used, given);
    unpacker->used += given;
    return (ssize_t)given;
}

pid_t unpacker_pid(const struct unpacker *unpacker)
{
    return unpacker->archiver.pid;
}

void unpacker_free(struct unpacker *unpacker)
{
    if (!unpacker)
        return;
    archiver_clear(&unpacker->archiver);
    free(unpacker->attributes);
    free(unpacker->room);
    free(unpacker);
}
