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
    size_t used;              // of its bytes, when it is DATA
    bool is_waiting;          // the frame is not looked at yet
    bool is_over;
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
    unpacker->records = (struct records){.entries = task->max_entries, .bytes = task->max_bytes};
    if (archiver_start(&unpacker->archiver, "unpack", task, archive_fd, err) < 0 ||
        next_frame(unpacker, err) < 0)
        return -1;
    unpacker->is_waiting = true;
    *out = take(unpacker);
    return 0;
}

int unpacker_next(void *data, struct files_item *item, struct error *err)
{
    struct unpacker *unpacker = data;
    if (unpacker->is_over)
        return 0;
    if (!unpacker->is_waiting && next_frame(unpacker, err) < 0)
        return -1;
    unpacker->is_waiting = false;
    unpacker->is_over = records_take_end(&unpacker->records, &unpacker->frame);
    if (unpacker->is_over)
        return 0;
    return records_take_item(&unpacker->records, &unpacker->frame, item) ? 1 : archiver_lied(err);
}

ssize_t unpacker_fill(void *data, void *bytes, size_t size, struct error *err)
{
    struct unpacker *unpacker = data;
    struct files_frame *frame = &unpacker->frame;
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
    if (unpacker)
        archiver_clear(&unpacker->archiver);
    free(unpacker);
}
