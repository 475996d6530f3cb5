/* SPDX-License-Identifier: Apache-2.0 */
/* How much streams may take together, and what gives way; see history.h. */
#include "core/stream/history.h"

#include "base/disk.h"

#define DISK_PART 10 // of the disk, where nobody said how much
#define LEAST_BYTES ((uint64_t)256 << 20)

/* Of the limit: one sandbox must not have all of its key's, nor one key all of the server's. */
static const int64_t shares[STREAM_SHARES] = {
    [STREAM_SHARE_SANDBOX] = 4, [STREAM_SHARE_KEY] = 2, [STREAM_SHARE_ALL] = 1};

static int64_t usual_limit(int spool_fd)
{
    struct disk_room room = {0};
    uint64_t part = disk_room(spool_fd, &room) == 0 ? room.total_bytes / DISK_PART : 0;

    return (int64_t)(part > LEAST_BYTES ? part : LEAST_BYTES);
}

int history_open(struct streams *streams, int64_t limit_bytes, struct error *err)
{
    int64_t commands = 0, users = 0;

    if (store_stream_used(streams->store, &commands, &users, err) < 0)
        return -1;
    streams->total_bytes = limit_bytes > 0 ? limit_bytes : usual_limit(streams->spool_fd);
    atomic_init(&streams->commands_bytes, commands);
    atomic_init(&streams->users_bytes, users);
    return 0;
}

void history_count(const struct stream *stream, int64_t bytes)
{
    struct streams *streams = stream->streams;

    (void)atomic_fetch_add(
        stream->record.sandbox_id ? &streams->commands_bytes : &streams->users_bytes, bytes);
}

bool history_is_full(const struct streams *streams)
{
    return atomic_load(&streams->users_bytes) >= streams->total_bytes;
}

bool history_is_over(const struct streams *streams)
{
    return atomic_load(&streams->commands_bytes) > streams->total_bytes;
}

static int erase_expired(struct streams *streams, const struct stream_record *record, int64_t now,
                         unsigned *removed, struct error *err)
{
    autoptr(stream) stream = NULL;

    if (streams_fetch(streams, record->id, &stream, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? 0 : -1; // its user was faster
    if (stream_erase(stream, STREAM_ERASE_EXPIRED, err) == 0) {
        ++*removed;
        if (record->execution_id && streams->on_expired)
            streams->on_expired(streams->expired_data, record->execution_id);
        return 0;
    }
    if (!error_is(err, ERROR_CONFLICT))
        return error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
    struct stream_record later = {
        .id = record->id, .expires_at = now + streams->keep_ms, .updated_at = now};
    return store_stream_update(streams->store, &later, STREAM_PART_EXPIRY, 0, err);
}

static int erase_all(struct streams *streams, const struct stream_list *list, int64_t now,
                     unsigned *removed, struct error *err)
{
    int result = 0;
    struct error here;

    for (size_t i = 0; i < list->count; i++) {
        if (erase_expired(streams, &list->rows[i], now, removed, &here) < 0 && result == 0) {
            *err = here;
            result = -1;
        }
    }
    return result;
}

/* Whose time is up: as their rows say, or by the time that is set now, whatever it was before. */
static int purge_old(struct streams *streams, int64_t now, unsigned limit, unsigned *removed,
                     struct error *err)
{
    int64_t before = now - streams->keep_ms;
    autostreams expired = {0}, outlived = {0}, aged = {0};
    struct error later;

    if (store_stream_list_expired(streams->store, now, limit, &expired, err) < 0 ||
        store_stream_list_outlived(streams->store, before, limit, &outlived, err) < 0 ||
        store_stream_list_aged(streams->store, before, limit, &aged, err) < 0)
        return -1;
    int result = erase_all(streams, &expired, now, removed, err);
    if (erase_all(streams, &outlived, now, removed, result < 0 ? &later : err) < 0)
        result = -1;
    if (erase_all(streams, &aged, now, removed, result < 0 ? &later : err) < 0)
        result = -1;
    return result;
}

/* Looks only where somebody can have more than the share: it reads all streams. */
static int purge_excess(struct streams *streams, int64_t now, unsigned limit, unsigned *removed,
                        struct error *err)
{
    for (unsigned i = 0; i < STREAM_SHARES; i++) {
        int64_t share = streams->total_bytes / shares[i];
        autostreams excess = {0};
        if (atomic_load(&streams->commands_bytes) <= share)
            continue;
        if (store_stream_list_excess(streams->store, i, share, limit, &excess, err) < 0 ||
            erase_all(streams, &excess, now, removed, err) < 0)
            return -1;
    }
    return 0;
}

int history_purge(struct streams *streams, int64_t now, unsigned limit, unsigned *removed,
                  struct error *err)
{
    struct error later;

    int result = purge_old(streams, now, limit, removed, err);
    return purge_excess(streams, now, limit, removed, result < 0 ? &later : err) < 0 ? -1 : result;
}
