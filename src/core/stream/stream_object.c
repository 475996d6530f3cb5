/* SPDX-License-Identifier: Apache-2.0 */
/* Streams in memory; see stream_object.h. */
#include "core/stream/stream_object.h"

#include "base/disk.h"
#include "base/id.h"
#include "base/mem.h"
#include "core/stream/history.h"
#include "core/stream/spool.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static struct stream_shard *shard_of(struct streams *streams, uint64_t hash)
{
    return &streams->shards[(hash >> 48) % STREAM_SHARDS];
}

struct stream *stream_new(struct streams *streams, const struct stream_record *record, int fd)
{
    struct stream *stream = xnew(struct stream);

    stream->streams = streams;
    stream->record = *record;
    stream->entry = (struct id_entry){.id = record->id, .hash = id_hash(record->id)};
    stream->fd = fd;
    atomic_init(&stream->references, 1);
    lock_init(&stream->lock, LOCK_STREAM);
    lock_condition_init(&stream->appended);
    return stream;
}

/* Both with the shard's lock held. */
static void list(struct stream_shard *shard, struct stream *stream)
{
    id_table_put(&shard->table, &stream->entry);
    stream->is_listed = true;
}

static void unlist(struct stream_shard *shard, struct stream *stream)
{
    if (stream->is_listed)
        id_table_remove(&shard->table, &stream->entry);
    stream->is_listed = false;
}

static void destroy(struct stream *stream)
{
    closep(&stream->fd);
    stream_record_clear(&stream->record);
    lock_condition_clear(&stream->appended);
    lock_clear(&stream->lock);
    free(stream);
}

struct stream *stream_ref(struct stream *stream)
{
    (void)atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
    return stream;
}

/* Gives up what is perhaps the last reference: if it is, nobody may find the stream in the table any more. */
static bool drop_last(struct stream *stream)
{
    struct stream_shard *shard = shard_of(stream->streams, stream->entry.hash);

    autolock(&shard->lock);
    bool is_last = atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel) == 1;
    if (is_last)
        unlist(shard, stream);
    return is_last;
}

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    unsigned count = atomic_load_explicit(&stream->references, memory_order_relaxed);
    while (count > 1)
        if (atomic_compare_exchange_weak_explicit(&stream->references, &count, count - 1,
                                                  memory_order_release, memory_order_relaxed))
            return;
    if (drop_last(stream))
        destroy(stream);
}

int stream_missing(const char *id, struct error *err)
{
    return error_missing(err, "stream", id);
}

bool stream_is_removed(struct stream *stream)
{
    autolock(&stream->lock);
    return stream->is_removed;
}

/* A reference, or NULL. */
static struct stream *find_loaded(struct streams *streams, const char *id)
{
    uint64_t hash = id_hash(id);
    struct stream_shard *shard = shard_of(streams, hash);

    autolock(&shard->lock);
    struct stream *stream = (struct stream *)id_table_find(&shard->table, id, hash);
    return stream && !stream->is_loading ? stream_ref(stream) : NULL;
}

struct stream *streams_find(struct streams *streams, const char *id)
{
    autoptr(stream) stream = find_loaded(streams, id);

    return stream && !stream_is_removed(stream) ? take(stream) : NULL;
}

void streams_add(struct streams *streams, struct stream *stream)
{
    struct stream_shard *shard = shard_of(streams, stream->entry.hash);

    autolock(&shard->lock);
    list(shard, stream);
}

/*
 * A row is read by one thread at a time, with the object already in the table: whoever wants to change that row needs the
 * object, so what is read stays true.
 */
static struct stream *find_or_claim(struct streams *streams, const char *id, bool *is_claimed)
{
    uint64_t hash = id_hash(id);
    struct stream_shard *shard = shard_of(streams, hash);
    struct stream *stream;

    *is_claimed = false;
    autolock(&shard->lock);
    while ((stream = (struct stream *)id_table_find(&shard->table, id, hash)) && stream->is_loading)
        (void)lock_condition_wait(&shard->loaded, &shard->lock, 0);
    if (stream)
        return stream_ref(stream);
    stream = stream_new(streams, &(struct stream_record){.id = xstrdup(id)}, -1);
    stream->is_loading = *is_claimed = true;
    list(shard, stream);
    return stream;
}

/* Those who wait for it then find it, or no longer find it and try for themselves. */
static void end_loading(struct stream *stream, bool is_loaded)
{
    struct stream_shard *shard = shard_of(stream->streams, stream->entry.hash);

    autolock(&shard->lock);
    stream->is_loading = false;
    if (!is_loaded)
        unlist(shard, stream);
    lock_condition_wake(&shard->loaded);
}

static int open_file(struct stream *stream, struct error *err)
{
    struct stream_record *record = &stream->record;
    int flags = stream_is_commands(stream) && record->state == STREAM_OPEN ? O_APPEND : 0;

    if (spool_open_file(stream->streams->spool_fd, record->id, flags, &stream->fd, err) == 0)
        return 0;
    if (err->sys != ENOENT)
        return -1;
    if (record->sandbox_id && record->state == STREAM_COMPLETE && record->size_bytes == 0)
        return 0; // a command's that printed nothing: streams_keep_recent
    stream->is_removed = stream->is_complete = true;
    return 0;
}

static uint64_t file_size(const struct stream *stream)
{
    struct stat status;
    return fstat(stream->fd, &status) < 0 ? 0 : (uint64_t)status.st_size;
}

static int load(struct stream *stream, struct error *err)
{
    struct stream_record record = {0};

    if (store_stream_get(stream->streams->store, stream->record.id, &record, err) < 0)
        return -1;
    free((char *)record.id); // the entry's is the same
    record.id = stream->record.id;
    stream->record = record;
    if (open_file(stream, err) < 0)
        return -1;
    if (stream->is_removed)
        return 0;
    stream->size_bytes = file_size(stream);
    stream->is_complete = stream->is_recorded = record.state == STREAM_COMPLETE;
    // What came after the end is not part of it; what a power cut took is not there.
    if (stream->is_complete && (uint64_t)record.size_bytes < stream->size_bytes)
        stream->size_bytes = (uint64_t)record.size_bytes;
    if (record.dropped_bytes > 0 && (uint64_t)record.dropped_bytes < stream->size_bytes)
        stream->dropped_bytes = (uint64_t)record.dropped_bytes;
    return 0;
}

int streams_fetch(struct streams *streams, const char *id, struct stream **out, struct error *err)
{
    bool is_claimed;

    if (!id_is_valid(id))
        return stream_missing(id, err);
    autoptr(stream) stream = find_or_claim(streams, id, &is_claimed);
    int result = is_claimed ? load(stream, err) : 0;
    if (is_claimed)
        end_loading(stream, result == 0);
    if (result < 0)
        return -1;
    *out = take(stream);
    return 0;
}

const char *stream_id(const struct stream *stream)
{
    return stream->record.id;
}

int stream_fd(const struct stream *stream)
{
    return stream->fd;
}

int stream_write_fd(const struct stream *stream)
{
    return stream->fd;
}

bool stream_is_frozen(const struct stream *stream)
{
    return stream->is_complete || stream->is_ending || stream->enders > 0;
}

bool stream_is_commands(const struct stream *stream)
{
    enum stream_kind kind = stream->record.kind;
    return kind == STREAM_STDOUT || kind == STREAM_STDERR || kind == STREAM_COMBINED;
}

bool stream_is_busy(const struct stream *stream)
{
    return stream->record.kind != STREAM_USER && !stream->is_complete;
}

static uint64_t size_now(const struct stream *stream)
{
    bool is_growing = stream_is_commands(stream) && !stream_is_frozen(stream);
    return is_growing ? file_size(stream) : stream->size_bytes;
}

static uint64_t dropped_now(const struct stream *stream, uint64_t size)
{
    bool is_growing = stream_is_commands(stream) && !stream_is_frozen(stream);
    return is_growing && stream->fd >= 0 ? disk_hole_end(stream->fd, size) : stream->dropped_bytes;
}

void stream_freeze(struct stream *stream)
{
    uint64_t size = size_now(stream);

    stream->dropped_bytes = dropped_now(stream, size);
    stream->size_bytes = size;
}

void stream_progress(struct stream *stream, struct stream_progress *out)
{
    autolock(&stream->lock);
    uint64_t size = size_now(stream);
    uint64_t dropped = dropped_now(stream, size);
    uint64_t first = dropped > 0 ? dropped + DISK_HOLE : 0; // away from what goes next

    *out = (struct stream_progress){size, first < size ? first : size, stream->is_complete};
}

/* What it takes on the disk. */
static int64_t kept_bytes(const struct stream *stream)
{
    return (int64_t)(stream->size_bytes - stream->dropped_bytes);
}

static void complete(struct stream *stream)
{
    autolock(&stream->lock);
    stream_freeze(stream);
    if (!stream->is_complete && stream_is_commands(stream))
        history_count(stream, kept_bytes(stream));
    stream->is_complete = true;
}

void stream_finish(struct stream *stream)
{
    complete(stream);
    hub_announce(stream->streams->hub, stream->record.id);
}

/* False: a command uses it. */
static bool mark_removed(struct stream *stream, enum stream_erase why)
{
    autolock(&stream->lock);
    if (why != STREAM_ERASE_UNUSED && stream_is_busy(stream))
        return false;
    stream_freeze(stream);
    if (why != STREAM_ERASE_UNUSED && !stream->is_removed)
        history_count(stream, -kept_bytes(stream));
    stream->is_complete = stream->is_removed = true;
    return true;
}

static bool take_recent(struct stream_recent *recent, const struct stream *stream)
{
    autolock(&recent->lock);
    for (unsigned i = 0; i < STREAM_RECENT; i++) {
        if (recent->streams[i] != stream)
            continue;
        recent->streams[i] = NULL;
        return true;
    }
    return false;
}

int stream_erase(struct stream *stream, enum stream_erase why, struct error *err)
{
    struct streams *streams = stream->streams;
    const char *id = stream->record.id;

    if (!mark_removed(stream, why))
        return error_refuse(err, ERROR_BUSY, "stream", "stream '%s' is used by a command", id);
    hub_announce(streams->hub, id);
    if (take_recent(&streams->recent, stream)) // its room comes back when nobody has it open
        stream_free(stream);                   // the caller has a reference of its own
    if (spool_remove_file(streams->spool_fd, id, err) < 0)
        return -1;
    if (why == STREAM_ERASE_EXPIRED)
        return store_stream_remove_expired(streams->store, id, err);
    return why == STREAM_ERASE_ASKED ? store_stream_remove(streams->store, id, err) : 0;
}
