/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of received records; see records.h. */
#include "archive/records.h"

#include <string.h>
#include <sys/stat.h>

bool record_is_good(const struct files_item *item)
{
    mode_t type = item->mode & S_IFMT;
    if (!files_path_is_plain(item->path) || item->mode & ~(S_IFMT | 07777u))
        return false;
    if (item->is_hard_link)
        return type == S_IFREG && item->size == 0 && files_path_is_plain(item->target);
    if (type == S_IFLNK)
        return item->size == 0 && item->target[0];
    return !item->target[0] && (type == S_IFREG || (type == S_IFDIR && item->size == 0));
}

static bool count_item(struct records *records, const struct files_item *item)
{
    if (records->data_left || !records->entries || !record_is_good(item) ||
        item->size > records->bytes)
        return false;
    records->entries--;
    records->bytes -= item->size;
    records->attributes = 0;
    return true;
}

bool records_take_item(struct records *records, const struct files_frame *frame,
                       struct files_item *out)
{
    struct files_item item;
    size_t at = 0;
    if (frame->type != FILES_ITEM || !files_item_next(frame, &at, &item) || at != frame->length ||
        !count_item(records, &item))
        return false;
    records->data_left = item.size;
    *out = item;
    return true;
}

bool records_take_whole(struct records *records, const struct files_frame *frame, size_t *at,
                        struct files_item *out, const uint8_t **content)
{
    return frame->type == FILES_RECORDS && files_record_next(frame, at, out, content) &&
           count_item(records, out);
}

bool records_is_attribute(const char *name)
{
    return strlen(name) < 256 && ((strncmp(name, "user.", 5) == 0 && name[5]) ||
                                  strcmp(name, "security.capability") == 0);
}

bool records_take_attribute(struct records *records, const struct files_frame *frame,
                            const char **name, const void **value, size_t *size)
{
    const uint8_t *nul =
        frame->length ? (const uint8_t *)memchr(frame->payload, 0, frame->length) : NULL;

    if (frame->type != RECORDS_ATTRIBUTE || records->data_left || !nul ||
        frame->length > RECORDS_MAX_ATTRIBUTES - records->attributes)
        return false;
    records->attributes += frame->length;
    *name = (const char *)frame->payload;
    *value = nul + 1;
    *size = frame->length - (size_t)(nul + 1 - frame->payload);
    return records_is_attribute(*name);
}

bool records_take_data(struct records *records, const struct files_frame *frame)
{
    if (frame->type != FILES_DATA || !frame->length || frame->length > records->data_left)
        return false;
    records->data_left -= frame->length;
    return true;
}

bool records_take_end(const struct records *records, const struct files_frame *frame)
{
    struct files_total total;
    return !records->data_left && files_total_parse(frame, &total);
}

bool records_take_commit(const struct records *records, const struct files_frame *frame)
{
    return frame->type == FILES_COMMIT && !frame->length && !records->data_left;
}
