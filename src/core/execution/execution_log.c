/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a sandbox; see execution_log.h. */
#include "core/execution/execution_log.h"

#include "base/fd.h"
#include "base/mem.h"
#include "core/execution/execution.h"
#include "core/execution/executions.h"
#include "core/sandbox/sandboxes.h"
#include "core/stream/stream.h"

#include <stdio.h>
#include <string.h>

#define LAST_ID "~" // behind every id

struct reading {
    struct streams *streams;
    struct execution_log *log;
    const enum log_side *side;
    size_t maximum;
};

void execution_log_clear(struct execution_log *log)
{
    free(log->pieces);
    buffer_clear(&log->bytes);
    *log = (struct execution_log){0};
}

static const char *stream_of(const struct execution_info *info, enum log_side side)
{
    bool is_shared = info->stdout_stream && info->stderr_stream &&
                     strcmp(info->stdout_stream, info->stderr_stream) == 0;

    if (side == LOG_STDOUT)
        return info->stdout_stream;
    return is_shared ? NULL : info->stderr_stream;
}

/* Up to three bytes less, where the next one would go on with a character. */
static size_t cut_between(const char *bytes, size_t length)
{
    size_t less = 0;

    while (less < 3 && less < length && ((unsigned char)bytes[length - less] & 0xc0) == 0x80)
        less++;
    return ((unsigned char)bytes[length - less] & 0xc0) == 0x80 ? length : length - less;
}

/* One byte more than has room shows whether a character is cut. */
static size_t read_bytes(struct reading *reading, struct stream *stream, uint64_t offset,
                         uint64_t there, struct error *err)
{
    struct buffer *bytes = &reading->log->bytes;
    size_t room = reading->maximum - bytes->length;
    bool is_cut = there > room;
    size_t wanted = is_cut ? room + 1 : (size_t)there;

    if (buffer_reserve(bytes, wanted, err) < 0)
        return 0;
    char *data = bytes->data + bytes->length;
    ssize_t got = fd_read_full_at(stream_fd(stream), data, wanted, (off_t)offset);
    if (got <= 0)
        return 0;
    size_t length = (size_t)got;
    if (length > room)
        length = room ? cut_between(data, room) : 0;
    buffer_grew(bytes, length);
    return length;
}

static void add_piece(struct execution_log *log, const struct execution_info *info,
                      enum log_side side, uint64_t offset, size_t length)
{
    if (log->count % 16 == 0)
        log->pieces = xrealloc(log->pieces, log->count + 16, sizeof *log->pieces);
    struct log_piece *piece = &log->pieces[log->count++];
    *piece = (struct log_piece){.kind = info->kind,
                                .side = side,
                                .offset = offset,
                                .start = log->bytes.length - length,
                                .length = length,
                                .started_at = info->started_at};
    (void)snprintf(piece->execution_id, sizeof piece->execution_id, "%s", info->id);
}

/* From log->next on. False: there is no room for all of it. */
static bool read_side(struct reading *reading, const struct execution_info *info,
                      enum log_side side)
{
    struct execution_log *log = reading->log;
    uint64_t *offset = &log->next.offsets[side];
    const char *id = stream_of(info, side);
    autoptr(stream) stream = NULL;
    struct stream_progress progress;
    struct error ignored = {0}; // what is no longer kept is passed over

    if (!id || (reading->side && *reading->side != side) ||
        stream_open(reading->streams, id, &stream, &ignored) < 0)
        return true;
    stream_progress(stream, &progress);
    if (*offset < progress.first_bytes)
        *offset = progress.first_bytes;
    if (*offset >= progress.size_bytes)
        return true;
    if (log->count == LOG_PIECES || log->bytes.length >= reading->maximum)
        return false;
    uint64_t there = progress.size_bytes - *offset;
    size_t length = read_bytes(reading, stream, *offset, there, &ignored);
    if (length > 0)
        add_piece(log, info, side, *offset, length);
    *offset += length;
    return length == there;
}

/* False: there is no room for all of it. */
static bool read_execution(struct reading *reading, const struct execution_info *info)
{
    struct log_place *next = &reading->log->next;

    if (next->number != info->number)
        *next = (struct log_place){.number = info->number};
    if (info->kind == EXECUTION_TERMINAL)
        return true;
    return read_side(reading, info, LOG_STDOUT) && read_side(reading, info, LOG_STDERR);
}

/* Those with this number and behind. */
static struct execution_filter filter_from(const char *sandbox_id, int64_t number)
{
    struct execution_filter filter = {
        .sandbox_id = sandbox_id,
        .is_ascending = true,
        .page = {.limit = PAGE_MAX, .is_marked = true, .after = {.at = number - 1}},
    };

    (void)snprintf(filter.page.after.id, sizeof filter.page.after.id, LAST_ID);
    return filter;
}

int execution_log_read(struct executions *executions, const struct actor *actor,
                       const char *sandbox_id, const struct log_place *from,
                       const enum log_side *side, size_t maximum, struct execution_log *out,
                       struct error *err)
{
    const struct execution_filter filter = filter_from(sandbox_id, from->number);
    struct execution_log log = {.next = *from, .bytes.maximum = maximum + 1};
    struct reading reading = {executions->sandboxes->streams, &log, side, maximum};
    autoclear(execution_infos) found = {0};

    if (execution_list(executions, actor, &filter, &found, err) < 0)
        return -1;
    for (size_t i = 0; i < found.count && !log.is_cut; i++)
        log.is_cut = !read_execution(&reading, &found.items[i]);
    if (!log.is_cut && found.next.id[0]) { // more commands than were looked at
        log.next = (struct log_place){.number = found.next.at + 1};
        log.is_cut = true;
    }
    *out = log;
    return 0;
}
