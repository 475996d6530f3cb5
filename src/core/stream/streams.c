/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of commands, from the file that is made before a launch to the end; and what is removed when its time is up. */
#include "core/stream/streams.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "core/stream/history.h"
#include "core/stream/spool.h"
#include "core/stream/stream_object.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#define RECENT_BYTES (64u << 10)   // one that is removed meanwhile keeps its place on the disk
#define ORPHAN_MS (60 * 60 * 1000) // longer than any launch takes

static const char *const names[] = {
    [STREAM_STDIN] = "stdin",       [STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr",
    [STREAM_COMBINED] = "combined", [STREAM_USER] = "stream",
};

/* What files made now are dated with: behind the clock by up to a tick. */
static int64_t file_clock_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int streams_open(struct store *store, struct hub *hub, const struct streams_settings *settings,
                 struct streams **out, struct error *err)
{
    autoptr(reserve) reserve = NULL;
    int spool_fd = -1;

    if (reserve_open(settings->data_dir, &reserve, err) < 0 ||
        spool_open(settings->data_dir, &spool_fd, err) < 0)
        return error_wrap(err, "open the spool");
    struct streams *streams = xnew(struct streams);
    streams->store = store;
    streams->hub = hub;
    streams->spool_fd = spool_fd;
    streams->reserve = take(reserve);
    streams->void_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    streams->limit_bytes = settings->limit_bytes;
    streams->keep_ms = settings->keep_ms;
    streams->most = settings->most;
    streams->organisation_most = settings->organisation_most;
    streams->opened_at = file_clock_ms();
    lock_init(&streams->spares.lock, LOCK_STREAM_SPARES);
    lock_init(&streams->recent.lock, LOCK_STREAM_RECENT);
    for (size_t i = 0; i < STREAM_SHARDS; i++) {
        lock_init(&streams->shards[i].lock, LOCK_STREAM_TABLE);
        lock_condition_init(&streams->shards[i].loaded);
    }
    if (history_open(streams, settings->total_bytes, err) < 0) {
        streams_free(streams);
        return -1;
    }
    *out = streams;
    return 0;
}

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

/* Its record, all strings of which are its own; it has its id. */
static void describe(struct stream *stream, const struct stream_place *place)
{
    struct stream_record *record = &stream->record;
    char path[SPOOL_PATH];

    autolock(&stream->lock);
    record->sandbox_id = copy(place->sandbox_id);
    record->execution_id = copy(place->execution_id);
    record->owner.organisation = copy(place->owner.organisation);
    record->owner.tenant = copy(place->owner.tenant);
    record->owner.scope = copy(place->owner.scope);
    record->owner.project = copy(place->owner.project);
    record->owner.member = copy(place->owner.member);
    record->kind = place->kind;
    record->name = xstrdup(names[place->kind]);
    record->file = xstrdup(spool_path(record->id, path));
    record->created_at = record->updated_at = (int64_t)clock_wall_ms();
}

/* With a file and in the table, but nobody's yet. */
static int make(struct streams *streams, struct stream **out, struct error *err)
{
    char id[ID_TEXT];
    int fd = -1;

    if (spool_open_file(streams->spool_fd, id_make(id), O_CREAT | O_EXCL | O_APPEND, &fd, err) < 0)
        return -1;
    struct stream_record record = {.id = xstrdup(id), .kind = STREAM_STDOUT};
    *out = stream_new(streams, &record, fd);
    streams_add(streams, *out);
    return 0;
}

static struct stream *take_spare(struct streams *streams)
{
    struct stream_spares *spares = &streams->spares;

    autolock(&spares->lock);
    return spares->count ? spares->streams[--spares->count] : NULL;
}

static unsigned count_spares(struct streams *streams)
{
    autolock(&streams->spares.lock);
    return streams->spares.count;
}

static bool put_spare(struct streams *streams, struct stream *stream)
{
    struct stream_spares *spares = &streams->spares;

    autolock(&spares->lock);
    if (spares->count == STREAM_SPARES)
        return false;
    spares->streams[spares->count++] = stream;
    return true;
}

static bool make_spare(struct streams *streams)
{
    struct error ignored;
    struct stream *stream = NULL;

    if (make(streams, &stream, &ignored) < 0)
        return false; // whoever needs one says why
    if (put_spare(streams, stream))
        return true;
    streams_discard(streams, stream); // another thread was making some too
    return false;
}

bool streams_needs_spares(struct streams *streams)
{
    return count_spares(streams) < STREAM_SPARES / 2;
}

bool streams_make_spares(struct streams *streams)
{
    bool has_made = false;

    for (unsigned i = count_spares(streams); i < STREAM_SPARES && make_spare(streams); i++)
        has_made = true;
    return has_made;
}

int streams_prepare(struct streams *streams, const struct stream_place *place, struct stream **out,
                    struct error *err)
{
    struct stream *stream = take_spare(streams);

    if (!stream && make(streams, &stream, err) < 0)
        return -1;
    describe(stream, place);
    *out = stream;
    return 0;
}

int streams_put(struct streams *streams, struct stream *stream, struct error *err)
{
    // Nobody changes the record of a stream that was just prepared.
    return store_stream_put(streams->store, &stream->record, NULL, 0, err);
}

void streams_discard(struct streams *streams, struct stream *stream)
{
    struct error ignored;

    (void)stream_erase(stream, STREAM_ERASE_UNUSED, &ignored); // else swept later
    stream_free(stream);
}

void streams_free(struct streams *streams)
{
    if (!streams)
        return;
    for (struct stream *stream; (stream = take_spare(streams));)
        streams_discard(streams, stream);
    lock_clear(&streams->spares.lock);
    for (unsigned i = 0; i < STREAM_RECENT; i++)
        stream_free(streams->recent.streams[i]);
    lock_clear(&streams->recent.lock);
    for (size_t i = 0; i < STREAM_SHARDS; i++) {
        id_table_clear(&streams->shards[i].table);
        lock_condition_clear(&streams->shards[i].loaded);
        lock_clear(&streams->shards[i].lock);
    }
    (void)close(streams->spool_fd);
    closep(&streams->void_fd);
    reserve_free(streams->reserve);
    free(streams);
}

void streams_tell_expired(struct streams *streams,
                          void (*on_expired)(void *data, const char *execution_id), void *data)
{
    streams->on_expired = on_expired;
    streams->expired_data = data;
}

void streams_check_disk(struct streams *streams)
{
    reserve_check(streams->reserve);
}

const char *streams_fault(struct streams *streams)
{
    return reserve_fault(streams->reserve);
}

static int unfit(const char *id, const char *why, struct error *err)
{
    return error_refuse(err, ERROR_INVALID, "stream", "stream '%s' %s", id, why);
}

/* What keeps the command from using it, or NULL. With the lock held. */
static const char *fault_of(const struct stream *stream, enum stream_kind kind)
{
    if (stream_is_busy(stream))
        return "is used by another command";
    if (kind == STREAM_STDIN)
        return NULL;
    if (stream_is_frozen(stream))
        return "is complete: a command cannot write to it";
    if (stream->is_appending)
        return "is being appended to: a command cannot write to it";
    return NULL;
}

/* Both with the lock held. */
static void give_to(struct stream *stream, const struct stream_place *place)
{
    struct stream_record *record = &stream->record;

    free((char *)record->execution_id);
    record->execution_id = copy(place->execution_id);
    record->kind = place->kind;
    if (stream_is_commands(stream))
        (void)fcntl(stream->fd, F_SETFL, O_APPEND); // never fails for a file
}

static void give_to_user(struct stream *stream)
{
    stream_freeze(stream); // while it still counts the command's bytes
    give_to(stream, &(struct stream_place){.kind = STREAM_USER});
    (void)fcntl(stream->fd, F_SETFL, 0);
}

/* Whether a command had it; *row is how it is now. */
static bool return_to_user(struct stream *stream, struct stream_record *row)
{
    autolock(&stream->lock);
    bool is_open = stream_is_busy(stream);
    if (is_open)
        give_to_user(stream);
    *row = stream->record;
    return is_open;
}

static bool is_same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Its user completed it a moment ago. */
static bool is_over(const struct error *err)
{
    return error_is(err, ERROR_STATE);
}

enum taking { TAKING_FAILED = -1, TAKING_NEW, TAKING_KNOWN };

static enum taking take_object(struct stream *stream, const struct stream_place *place,
                               struct stream_record *row, struct error *err)
{
    enum taking result = TAKING_NEW;

    autolock(&stream->lock);
    const char *fault = fault_of(stream, place->kind);
    if (place->kind != STREAM_STDIN && stream_is_commands(stream) && !stream_is_frozen(stream) &&
        is_same(stream->record.execution_id, place->execution_id))
        result = TAKING_KNOWN; // its other output
    else if (fault)
        result = unfit(stream->record.id, fault, err);
    else if (stream->is_complete)
        result = TAKING_KNOWN; // nothing about it will change
    else
        give_to(stream, place);
    *row = stream->record;
    return result;
}

static void untake_object(struct stream *stream)
{
    autolock(&stream->lock);
    give_to_user(stream);
}

static int put_place(struct streams *streams, struct stream_record row, struct error *err)
{
    row.updated_at = (int64_t)clock_wall_ms();
    return store_stream_update(streams->store, &row, STREAM_PART_PLACE, stream_in(STREAM_OPEN),
                               err);
}

static int fetch_for(struct streams *streams, const struct actor *actor, const char *id,
                     struct stream **out, struct error *err)
{
    autoptr(stream) stream = NULL;

    if (streams_fetch(streams, id, &stream, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? unfit(id, "does not exist", err) : -1;
    if (stream_is_removed(stream) || !actor_sees(actor, &stream->record.owner))
        return unfit(id, "does not exist", err);
    *out = take(stream);
    return 0;
}

int streams_take(struct streams *streams, const struct actor *actor, const char *id,
                 const struct stream_place *place, struct stream **out, struct error *err)
{
    autoptr(stream) stream = NULL;
    struct stream_record row;

    if (fetch_for(streams, actor, id, &stream, err) < 0)
        return -1;
    enum taking taking = take_object(stream, place, &row, err);
    if (taking == TAKING_FAILED)
        return -1;
    if (taking == TAKING_NEW && put_place(streams, row, err) < 0) {
        untake_object(stream);
        if (place->kind != STREAM_STDIN || !is_over(err))
            return -1;
    }
    *out = take(stream);
    return 0;
}

void streams_give_back(struct streams *streams, struct stream *stream)
{
    struct stream_record row;
    struct error ignored;

    if (return_to_user(stream, &row))
        (void)put_place(streams, row, &ignored); // not written, it is unusable until it expires
    stream_free(stream);
}

/* The row of the end. A user's stream stays readable for as long as a command's own. */
static void describe_end(struct stream *stream, bool is_truncated, int64_t now,
                         struct stream_record *row)
{
    int64_t expires_at = now + stream->streams->keep_ms;

    *row = stream->record;
    row->state = STREAM_COMPLETE;
    row->completed_at = row->updated_at = now;
    row->size_bytes = (int64_t)stream->size_bytes;
    row->dropped_bytes = (int64_t)stream->dropped_bytes;
    row->is_truncated = is_truncated;
    if (row->expires_at != 0 && row->expires_at < expires_at)
        row->expires_at = expires_at;
}

/* Fixes the size. Whether the row says already that it is complete. */
static bool begin_end(struct stream *stream, bool is_truncated, int64_t now,
                      struct stream_record *row)
{
    autolock(&stream->lock);
    stream_freeze(stream);
    stream->is_ending = true;
    describe_end(stream, is_truncated, now, row);
    return stream->is_recorded;
}

int streams_put_end(struct streams *streams, struct stream *stream, bool is_truncated, int64_t now,
                    struct error *err)
{
    unsigned parts = STREAM_PART_STATE | STREAM_PART_SIZE | STREAM_PART_EXPIRY;
    struct stream_record row;

    if (begin_end(stream, is_truncated, now, &row) ||
        store_stream_update(streams->store, &row, parts, stream_in(STREAM_OPEN), err) == 0)
        return 0;
    return is_over(err) || stream_is_removed(stream) ? 0 : -1; // its user was faster
}

void streams_end(struct streams *streams, struct stream *stream)
{
    stream_finish(stream);
}

/*
 * In the place of the oldest one, which is returned; a large or removed one comes back itself. Who removes it marks it under its lock and then
 * looks for it here.
 */
static struct stream *put_recent(struct stream_recent *recent, struct stream *stream)
{
    autolock(&stream->lock);
    if (stream->size_bytes > RECENT_BYTES || stream->is_removed)
        return stream;
    autolock(&recent->lock);
    unsigned place = recent->next++ % STREAM_RECENT;
    struct stream *oldest = recent->streams[place];
    recent->streams[place] = stream;
    return oldest;
}

/* Nothing came, and the row says so: that is all there is to know of it. A stream that a user made has no sandbox. */
static bool is_void(struct stream *stream)
{
    autolock(&stream->lock);
    return stream->record.sandbox_id && stream->is_complete && stream->is_ending &&
           stream->size_bytes == 0 && !stream->is_removed;
}

void streams_keep_recent(struct streams *streams, struct stream *stream)
{
    struct error ignored = {0};

    if (stream && is_void(stream)) { // else it goes with the row
        (void)spool_remove_file(streams->spool_fd, stream->record.id, &ignored);
        (void)dup3(streams->void_fd, stream->fd, O_CLOEXEC); // who reads it meanwhile finds as much
    }
    stream_free(stream ? put_recent(&streams->recent, stream) : NULL);
}

void streams_announce(struct streams *streams, struct stream *stream)
{
    hub_announce(streams->hub, stream->record.id);
}

int streams_reopen(struct streams *streams, const struct stream_record *record, struct stream **out,
                   struct error *err)
{
    int fd = -1;

    // A power cut can take a file that was just made and leave its row.
    if (spool_open_file(streams->spool_fd, record->id, O_CREAT, &fd, err) < 0)
        return -1;
    (void)close(fd);
    return streams_fetch(streams, record->id, out, err);
}

static int is_wanted(void *data, const char *id, struct error *err)
{
    struct streams *streams = data;
    autoptr(stream) stream = streams_find(streams, id);
    autostream record = {0};

    if (stream || store_stream_get(streams->store, id, &record, err) == 0)
        return 1;
    return error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
}

static int sweep(struct streams *streams, int64_t now, unsigned limit, unsigned *removed,
                 struct error *err)
{
    // What an earlier server left without a row will never get one.
    int64_t before = now - ORPHAN_MS > streams->opened_at ? now - ORPHAN_MS : streams->opened_at;
    struct spool_sweep orphans = {before, is_wanted, streams, limit};
    unsigned place = atomic_load(&streams->sweep_place);
    int result = spool_sweep(streams->spool_fd, &orphans, &place, removed, err);

    atomic_store(&streams->sweep_place, place);
    return result;
}

int streams_purge(struct streams *streams, int64_t now, unsigned limit, unsigned *removed,
                  struct error *err)
{
    unsigned count = 0;
    struct error later;

    int result = history_purge(streams, now, limit, &count, err);
    if (sweep(streams, now, limit, &count, result < 0 ? &later : err) < 0)
        result = -1;
    if (result == 0)
        *removed = count;
    return result;
}

bool streams_is_over(struct streams *streams)
{
    return history_is_over(streams);
}
