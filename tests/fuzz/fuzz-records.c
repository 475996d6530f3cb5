/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any frames as records of an archive; what is taken keeps to what was agreed on. */
#include "archive/records.h"

#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_ENTRIES 8
#define MAX_BYTES 4096

struct seen {
    uint64_t items, bytes, announced;
};

static void check_item(struct seen *seen, const struct files_item *item)
{
    mode_t type = item->mode & S_IFMT;
    if (seen->bytes != seen->announced || ++seen->items > MAX_ENTRIES)
        __builtin_trap();
    if (!files_path_is_plain(item->path) || strstr(item->path, "//") || item->path[0] == '/')
        __builtin_trap();
    if (type != S_IFREG && type != S_IFDIR && type != S_IFLNK)
        __builtin_trap();
    if (item->is_hard_link && !files_path_is_plain(item->target))
        __builtin_trap();
    seen->announced += item->size;
    if (seen->announced > MAX_BYTES)
        __builtin_trap();
}

/* Whole records; false when one is refused. */
static bool take_whole(struct records *records, struct seen *seen, const struct files_frame *frame)
{
    const uint8_t *content = NULL, *end = frame->payload + frame->length;
    struct files_item item;

    for (size_t at = 0; at < frame->length;) {
        if (!records_take_whole(records, frame, &at, &item, &content))
            return false;
        if (content < frame->payload || item.size > (size_t)(end - content))
            __builtin_trap();
        check_item(seen, &item);
        seen->bytes += item.size;
    }
    return true;
}

/* False when a frame is refused or ends the stream. */
static bool take(struct records *records, struct seen *seen, const struct files_frame *frame)
{
    struct files_item item;
    bool is_over = records_take_end(records, frame) || records_take_commit(records, frame);
    if (is_over && seen->bytes != seen->announced)
        __builtin_trap();
    if (is_over)
        return false;
    if (frame->type == FILES_RECORDS)
        return take_whole(records, seen, frame);
    if (records_take_item(records, frame, &item)) {
        check_item(seen, &item);
        return true;
    }
    if (!records_take_data(records, frame))
        return false;
    seen->bytes += frame->length;
    if (seen->bytes > seen->announced)
        __builtin_trap();
    return true;
}

/* Packets, each behind its length in two bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct records records = {.entries = MAX_ENTRIES, .bytes = MAX_BYTES};
    struct seen seen = {0};
    while (size > 2) {
        struct files_frame frame;
        size_t length = data[0] | (size_t)data[1] << 8;
        if (length > size - 2)
            length = size - 2;
        if (!files_frame_parse(data + 2, length, &frame) || !take(&records, &seen, &frame))
            return 0;
        data += 2 + length;
        size -= 2 + length;
    }
    return 0;
}
