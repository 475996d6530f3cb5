/* SPDX-License-Identifier: Apache-2.0 */
/* What callers may do with streams: make, find, read, append, complete, remove. */
#include "core/stream/stream.h"

#include "base/clock.h"
#include "base/disk.h"
#include "base/id.h"
#include "core/account/ceiling.h"
#include "core/stream/history.h"
#include "core/stream/spool.h"
#include "core/stream/stream_info_impl.h"
#include "core/stream/stream_object.h"

#include <fcntl.h>
#include <unistd.h>

#define TTL_MAX_MS (100LL * 365 * 24 * 60 * 60 * 1000) // so that times stay numbers

static int make_file(struct streams *streams, const char *id, struct error *err)
{
    int fd = -1;

    if (spool_open_file(streams->spool_fd, id, O_CREAT | O_EXCL, &fd, err) < 0)
        return -1;
    (void)close(fd);
    return 0;
}

static int64_t expiry(struct streams *streams, int64_t now, int64_t ttl_ms)
{
    if (ttl_ms <= 0)
        ttl_ms = streams->keep_ms;
    return now + (ttl_ms < TTL_MAX_MS ? ttl_ms : TTL_MAX_MS);
}

int stream_create(struct streams *streams, const struct actor *actor,
                  const struct stream_request *request, struct stream_info *out, struct error *err)
{
    autostream made = {0};
    int64_t now = (int64_t)clock_wall_ms();
    char id[ID_TEXT], path[SPOOL_PATH];
    struct error ignored;

    struct stream_record record = {
        .id = id_make(id),
        .owner = actor_owner(actor),
        .kind = STREAM_USER,
        .name = request->name ? request->name : "",
        .metadata = request->metadata,
        .headers = request->headers,
        .file = spool_path(id, path),
        .expires_at = expiry(streams, now, request->ttl_ms),
        .created_at = now,
        .updated_at = now,
    };
    if (ceiling_check(streams->store, KEPT_STREAMS, streams->most, streams->organisation_most,
                      &record.owner, err) < 0 ||
        make_file(streams, id, err) < 0)
        return -1;
    if (store_stream_put(streams->store, &record, request->labels, request->n_labels, err) < 0) {
        (void)spool_remove_file(streams->spool_fd, id, &ignored); // else swept later
        return -1;
    }
    if (store_stream_get(streams->store, id, &made, err) < 0)
        return -1;
    stream_info_take(out, &made);
    return 0;
}

/* Rows of open streams know nothing of their sizes. */
static void fill_size(struct streams *streams, struct stream_record *record)
{
    struct stream_progress progress;

    if (record->state != STREAM_OPEN)
        return;
    autoptr(stream) stream = streams_find(streams, record->id);
    if (stream) {
        stream_progress(stream, &progress);
        record->size_bytes = (int64_t)progress.size_bytes;
    } else {
        record->size_bytes = (int64_t)spool_file_size(streams->spool_fd, record->id);
    }
}

int stream_get(struct streams *streams, const struct actor *actor, const char *id,
               struct stream_info *out, struct error *err)
{
    autostream record = {0};

    if (!id_is_valid(id))
        return stream_missing(id, err);
    if (store_stream_get(streams->store, id, &record, err) < 0)
        return -1;
    if (!actor_sees_in(actor, &record.owner, record.sandbox_id))
        return stream_missing(id, err);
    fill_size(streams, &record);
    stream_info_take(out, &record);
    return 0;
}

int stream_list(struct streams *streams, const struct actor *actor,
                const struct stream_filter *filter, struct stream_infos *out, struct error *err)
{
    struct stream_filter own = *filter;
    autostreams found = {0};

    own.owner = actor_filter(actor);
    if (store_stream_list(streams->store, &own, &found, err) < 0)
        return -1;
    for (size_t i = 0; i < found.count; i++)
        fill_size(streams, &found.rows[i]);
    stream_infos_take(out, &found);
    return 0;
}

/* One that the actor may change. */
static int fetch_own(struct streams *streams, const struct actor *actor, const char *id,
                     struct stream **out, struct error *err)
{
    autoptr(stream) stream = NULL;

    if (streams_fetch(streams, id, &stream, err) < 0)
        return -1;
    if (!actor_sees(actor, &stream->record.owner))
        return stream_missing(id, err);
    *out = take(stream);
    return 0;
}

int stream_remove(struct streams *streams, const struct actor *actor, const char *id,
                  struct error *err)
{
    autoptr(stream) stream = NULL;

    if (fetch_own(streams, actor, id, &stream, err) < 0)
        return -1;
    return stream_erase(stream, STREAM_ERASE_ASKED, err);
}

int stream_open(struct streams *streams, const char *id, struct stream **out, struct error *err)
{
    autoptr(stream) stream = NULL;

    if (streams_fetch(streams, id, &stream, err) < 0)
        return -1;
    if (stream_is_removed(stream))
        return stream_missing(id, err);
    *out = take(stream);
    return 0;
}

struct stream *stream_open_quick(struct streams *streams, const char *id)
{
    return streams_find(streams, id);
}

struct stream *stream_open_kept(struct streams *streams, const char *id, bool is_quick)
{
    struct stream *stream = NULL;
    struct error ignored = {0};

    if (is_quick)
        return stream_open_quick(streams, id);
    (void)stream_open(streams, id, &stream, &ignored);
    return stream;
}

static int refuse_complete(const char *id, struct error *err)
{
    return error_refuse(err, ERROR_COMPLETE, "stream",
                        "stream '%s' is complete: nothing can be added to it", id);
}

static int refuse_command(const char *id, struct error *err)
{
    return error_refuse(err, ERROR_BUSY, "stream",
                        "stream '%s' is written by a command, which also ends it", id);
}

/* With the lock held: whether an append of this length may begin. */
static int check_append(const struct stream *stream, size_t length, struct error *err)
{
    const char *id = stream->record.id;
    uint64_t limit = stream->streams->limit_bytes;

    if (stream->is_removed)
        return stream_missing(id, err);
    if (stream_is_commands(stream) && !stream->is_complete)
        return refuse_command(id, err);
    if (stream_is_frozen(stream))
        return refuse_complete(id, err);
    if (limit && (length > limit || stream->size_bytes > limit - length))
        return error_refuse(err, ERROR_LIMIT, "stream",
                            "stream '%s' would become larger than the %llu bytes a stream may have",
                            id, (unsigned long long)limit);
    return 0;
}

static int begin_append(struct stream *stream, size_t length, uint64_t *offset, struct error *err)
{
    autolock(&stream->lock);
    while (stream->is_appending)
        (void)lock_condition_wait(&stream->appended, &stream->lock, 0);
    *offset = stream->size_bytes;
    if (check_append(stream, length, err) < 0)
        return -1;
    stream->is_appending = true;
    return 0;
}

/* Below the floor all room is for recording how things end. */
static int check_room(const struct stream *stream, struct error *err)
{
    if (history_is_full(stream->streams))
        return error_refuse(err, ERROR_FULL, "stream",
                            "append to stream '%s': streams take all the room they may have on "
                            "this server; delete some",
                            stream->record.id);
    return disk_has_room(stream->fd)
               ? 0
               : error_refuse(err, ERROR_NO_SPACE, "stream",
                              "append to stream '%s': the server's disk is full",
                              stream->record.id);
}

static int write_at(struct stream *stream, const char *data, size_t length, uint64_t offset,
                    struct error *err)
{
    while (length > 0) {
        ssize_t wrote = pwrite(stream->fd, data, length, (off_t)offset);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0) {
            error_sys(err, "append to stream '%s'", stream->record.id);
            return spool_failed(err);
        }
        data += wrote;
        length -= (size_t)wrote;
        offset += (size_t)wrote;
    }
    return 0;
}

/* With the lock held. */
static void add(struct stream *stream, size_t length)
{
    stream->size_bytes += length;
    history_count(stream, (int64_t)length);
}

/* Readers see all of it or nothing. It counts for nothing when the stream has ended meanwhile. */
static int end_append(struct stream *stream, size_t length, bool is_written, struct error *err)
{
    int result = is_written ? 0 : -1;

    autolock(&stream->lock);
    uint64_t size = stream->size_bytes;
    if (is_written && stream->is_removed)
        result = stream_missing(stream->record.id, err);
    else if (is_written && stream_is_frozen(stream))
        result = refuse_complete(stream->record.id, err);
    else if (is_written)
        add(stream, length);
    if (result < 0)
        (void)!ftruncate(stream->fd, (off_t)size); // nobody reads that far
    stream->is_appending = false;
    lock_condition_wake(&stream->appended);
    return result;
}

int stream_append(struct streams *streams, const struct actor *actor, const char *id,
                  const void *data, size_t length, struct error *err)
{
    autoptr(stream) stream = NULL;
    uint64_t offset;

    if (fetch_own(streams, actor, id, &stream, err) < 0 ||
        begin_append(stream, length, &offset, err) < 0)
        return -1;
    bool is_written =
        check_room(stream, err) == 0 && write_at(stream, data, length, offset, err) == 0;
    if (end_append(stream, length, is_written, err) < 0)
        return -1;
    hub_announce(streams->hub, id);
    return 0;
}

/* Fixes the size, for as long as the end is being recorded. 1: there is nothing to do. */
static int begin_end(struct stream *stream, struct stream_record *row, struct error *err)
{
    autolock(&stream->lock);
    if (stream->is_removed)
        return stream_missing(stream->record.id, err);
    if (stream->is_complete)
        return 1;
    if (stream_is_commands(stream))
        return refuse_command(stream->record.id, err);
    stream_freeze(stream);
    stream->enders++;
    *row = stream->record;
    row->size_bytes = (int64_t)stream->size_bytes;
    return 0;
}

static void end_end(struct stream *stream, bool is_recorded)
{
    autolock(&stream->lock);
    stream->is_recorded |= is_recorded;
    stream->enders--;
}

static int put_end(struct streams *streams, struct stream_record *row, struct error *err)
{
    row->state = STREAM_COMPLETE;
    row->completed_at = row->updated_at = (int64_t)clock_wall_ms();
    if (store_stream_update(streams->store, row, STREAM_PART_STATE | STREAM_PART_SIZE,
                            stream_in(STREAM_OPEN), err) == 0)
        return 0;
    return error_is(err, ERROR_CONFLICT) ? 0 : -1; // another was faster
}

int stream_complete(struct streams *streams, const struct actor *actor, const char *id,
                    struct error *err)
{
    autoptr(stream) stream = NULL;
    struct stream_record row;

    if (fetch_own(streams, actor, id, &stream, err) < 0)
        return -1;
    int begun = begin_end(stream, &row, err);
    if (begun != 0)
        return begun < 0 ? -1 : 0;
    int result = put_end(streams, &row, err);
    if (result == 0)
        stream_finish(stream);
    end_end(stream, result == 0);
    return result;
}
