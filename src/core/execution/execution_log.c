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
    const struct log_request *request;
    struct execution_log *log;
};

void execution_log_clear(struct execution_log *log)
{
    free(log->pieces);
    free(log->open);
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
    size_t room = reading->request->maximum - bytes->length;
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

    if (!id || (reading->request->side && *reading->request->side != side) ||
        stream_open(reading->streams, id, &stream, &ignored) < 0)
        return true;
    stream_progress(stream, &progress);
    if (*offset < progress.first_bytes)
        *offset = progress.first_bytes;
    if (*offset >= progress.size_bytes)
        return true;
    if (log->count == LOG_PIECES || log->bytes.length >= reading->request->maximum)
        return false;
    uint64_t there = progress.size_bytes - *offset;
    size_t length = read_bytes(reading, stream, *offset, there, &ignored);
    if (length > 0)
        add_piece(log, info, side, *offset, length);
    *offset += length;
    return length == there;
}

static void add_open(struct execution_log *log, const struct execution_info *info)
{
    log->open = xrealloc(log->open, log->n_open + 1, sizeof *log->open);
    struct log_open *open = &log->open[log->n_open++];
    *open = (struct log_open){.place = log->next};
    for (unsigned side = 0; side < LOG_SIDES; side++) {
        const char *id = stream_of(info, side);
        (void)snprintf(open->streams[side], ID_TEXT, "%s", id ? id : "");
    }
}

/* False: there is no room for all of it. */
static bool read_execution(struct reading *reading, const struct execution_info *info)
{
    struct execution_log *log = reading->log;

    if (log->next.number != info->number)
        log->next = (struct log_place){.number = info->number};
    if (info->kind == EXECUTION_TERMINAL)
        return true;
    if (!read_side(reading, info, LOG_STDOUT) || !read_side(reading, info, LOG_STDERR))
        return false;
    if (!execution_info_is_over(info))
        add_open(log, info);
    return true;
}

/* Those with this number and behind. */
static struct execution_filter filter_of(const struct log_request *request)
{
    struct execution_filter filter = {
        .sandbox_id = request->sandbox_id,
        .is_ascending = true,
        .page = {.limit = request->is_one ? 1 : PAGE_MAX,
                 .is_marked = true,
                 .after = {.at = request->from.number - 1}},
    };

    (void)snprintf(filter.page.after.id, sizeof filter.page.after.id, LAST_ID);
    return filter;
}

/* All of these, or until there is no room. Whether all were read. */
static bool read_all(struct reading *reading, const struct execution_infos *found)
{
    const struct log_request *request = reading->request;
    struct execution_log *log = reading->log;

    for (size_t i = 0; i < found->count; i++) {
        if (request->is_one && found->items[i].number != request->from.number)
            return false; // it is not there any more
        if (request->max_open && log->n_open == request->max_open)
            return false;
        log->is_cut = !read_execution(reading, &found->items[i]);
        log->unread = found->items[i].number + !log->is_cut;
        if (log->is_cut)
            return false;
    }
    return true;
}

int execution_log_read(struct executions *executions, const struct actor *actor,
                       const struct log_request *request, struct execution_log *out,
                       struct error *err)
{
    const struct execution_filter filter = filter_of(request);
    struct execution_log log = {.next = request->from,
                                .unread = request->from.number,
                                .bytes.maximum = request->maximum + 1};
    struct reading reading = {executions->sandboxes->streams, request, &log};
    autoclear(execution_infos) found = {0};

    if (execution_list(executions, actor, &filter, &found, err) < 0)
        return -1;
    if (read_all(&reading, &found) && found.next.id[0] && !request->is_one) {
        log.next = (struct log_place){.number = found.next.at + 1}; // more than were looked at
        log.is_cut = true;
    }
    *out = log;
    return 0;
}
