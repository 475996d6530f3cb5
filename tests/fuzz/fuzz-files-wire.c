/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any packet is a well-formed frame about files or refused; what was taken apart lies
 * inside it. */
#include "engine/files_wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A string that was found ends within the packet and is no longer than promised. */
static void check_text(const struct files_frame *frame, const char *text, size_t maximum)
{
    const char *start = (const char *)frame->payload, *end = start + frame->length;
    if (text < start || text >= end || strlen(text) >= maximum || text + strlen(text) >= end)
        __builtin_trap();
}

/* What was read is written again as it was. */
static void check_item(const struct files_frame *frame, const struct files_item *item, size_t from,
                       size_t to)
{
    static uint8_t room[FILES_MAX_FRAME];
    check_text(frame, item->path, FILES_MAX_RECORD_PATH);
    check_text(frame, item->target, item->is_hard_link ? FILES_MAX_RECORD_PATH : FILES_MAX_PATH);
    if (files_item_size(item) != to - from || files_item_write(item, room) != to - from)
        __builtin_trap();
    if (files_path_is_plain(item->path) && (item->path[0] == '/' || strstr(item->path, "/../") ||
                                            strncmp(item->path, "../", 3) == 0 || !item->path[0]))
        __builtin_trap();
}

static void take_items(const struct files_frame *frame)
{
    for (size_t at = 0; at < frame->length;) {
        struct files_item item;
        size_t from = at;
        if (!files_item_next(frame, &at, &item))
            return;
        if (at <= from || at > frame->length)
            __builtin_trap();
        check_item(frame, &item, from, at);
    }
}

static void take_records(const struct files_frame *frame)
{
    const uint8_t *content = NULL, *end = frame->payload + frame->length;
    struct files_item item;

    for (size_t at = 0; at < frame->length;) {
        size_t from = at;
        if (!files_record_next(frame, &at, &item, &content))
            return;
        if (at <= from || at > frame->length || content < frame->payload ||
            item.size > (size_t)(end - content))
            __builtin_trap();
        check_item(frame, &item, from, at - item.size);
    }
}

/* Paths that a server joins to others stay below where they start. */
static void take_events(const struct files_frame *frame)
{
    static uint8_t room[FILES_MAX_FRAME];
    for (size_t at = 0; at < frame->length;) {
        struct files_event event;
        size_t from = at;
        if (!files_event_next(frame, &at, &event))
            return;
        if (at <= from || at > frame->length || (*event.path && !files_path_is_plain(event.path)) ||
            (*event.second && !files_path_is_plain(event.second)))
            __builtin_trap();
        check_text(frame, event.path, FILES_MAX_RECORD_PATH);
        check_text(frame, event.second, FILES_MAX_RECORD_PATH);
        if (files_event_size(&event) != at - from || files_event_write(&event, room) != at - from)
            __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct files_frame frame;
    struct files_request request;
    struct files_total total;
    struct files_match match;
    struct files_failure failure;
    const char *text = NULL;

    if (!files_frame_parse(data, size, &frame))
        return 0;
    if (frame.length != size - sizeof(struct files_header))
        __builtin_trap();
    if (files_request_parse(&frame, &request)) {
        check_text(&frame, request.path, FILES_MAX_PATH);
        check_text(&frame, request.second, FILES_MAX_PATH);
        check_text(&frame, request.third, FILES_MAX_RECORD_PATH);
    }
    if (files_match_parse(&frame, &match)) {
        check_text(&frame, match.path, FILES_MAX_RECORD_PATH);
        if (match.text + match.text_size != (const char *)frame.payload + frame.length)
            __builtin_trap();
    }
    if (files_failure_parse(&frame, &failure, &text))
        check_text(&frame, text, FILES_MAX_TEXT);
    (void)files_total_parse(&frame, &total);
    take_items(&frame);
    take_records(&frame);
    take_events(&frame);
    return 0;
}
