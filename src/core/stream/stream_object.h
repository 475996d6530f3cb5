/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream in memory: the one object that all who read or write it share while anybody holds it, found by its id. What it
 * knows beyond the row is how much of the file readers may see. Private to the room; docs/internals/streams.md.
 * Threads: any but loops; streams_find and what needs the lock do not block.
 */
#pragma once
#include "base/id_table.h"
#include "base/lock.h"
#include "core/stream/reserve.h"
#include "core/stream/streams.h"

#include <stdatomic.h>

struct stream {
    struct id_entry entry; // in the table; first
    struct streams *streams;
    atomic_uint references;
    int fd;          // -1 while it is loading, or where the file is missing
    bool is_loading; // this and is_listed are guarded by the lock of its shard
    bool is_listed;  // in the table

    struct lock lock;               // guards all below; the record's id and owner never change
    struct lock_condition appended; // nobody is appending now
    struct stream_record record;    // as in the store, but for state and size; strings are ours
    uint64_t
        size_bytes; // what readers see, unless a command writes: then the file's size counts until it is frozen
    uint64_t dropped_bytes; // likewise: of these, the first ones, which are a hole in the file
    bool is_appending;
    bool is_ending;  // streams_put_end has fixed the size
    unsigned enders; // calls of stream_complete that are fixing it
    bool is_complete;
    bool is_recorded; // its row says that it is complete
    bool is_removed;  // complete, and unknown from now on
};

#define STREAM_SHARDS 16
#define STREAM_SPARES 64
#define STREAM_RECENT 64

/* Streams made ahead with their files, so that starting a command makes none. They are in the table like others, so that the sweep
 * leaves them alone; no reader knows their ids. */
struct stream_spares {
    struct lock lock; // guards the rest
    unsigned count;
    struct stream *streams[STREAM_SPARES];
};

/* Small streams of commands that have just ended: whoever waited for the end reads them next. */
struct stream_recent {
    struct lock lock; // guards the rest
    struct stream *streams[STREAM_RECENT];
    unsigned next;
};

struct streams {
    struct store *store;
    struct hub *hub;
    int spool_fd;
    int void_fd; // in the place of removed files that nothing came to
    struct reserve *reserve;
    uint64_t limit_bytes; // of a user's stream
    int64_t total_bytes;  // history.h: of outputs of commands together; and of users' streams
    _Atomic int64_t commands_bytes, users_bytes;
    void (*on_expired)(void *data, const char *execution_id); // or NULL
    void *expired_data;
    int64_t keep_ms;
    int64_t most, organisation_most; // of users
    int64_t opened_at;
    atomic_uint sweep_place;
    struct stream_spares spares;
    struct stream_recent recent;
    struct stream_shard {
        struct lock lock;             // guards the table
        struct lock_condition loaded; // the loading of one has ended, well or not
        struct id_table table;
    } shards[STREAM_SHARDS];
};

/* A new one with one reference, not in the table. Takes the record's strings and the fd. */
struct stream *stream_new(struct streams *streams, const struct stream_record *record, int fd);

/* The one in memory that is not removed, or NULL. Never waits for the disk. */
struct stream *streams_find(struct streams *streams, const char *id);
/*
 * From memory, or by its row. ERROR_NOT_FOUND, noun "stream". One that is removed, or whose file is missing, is given
 * with is_removed set.
 */
int streams_fetch(struct streams *streams, const char *id, struct stream **out, struct error *err);
/* Puts a new one into the table. */
void streams_add(struct streams *streams, struct stream *stream);

/* "there is no stream 'x'": ERROR_NOT_FOUND, noun "stream"; -1. */
int stream_missing(const char *id, struct error *err);

bool stream_is_removed(struct stream *stream);

/* These with the stream's lock held. */
bool stream_is_frozen(const struct stream *stream);   // its size will not change any more
bool stream_is_commands(const struct stream *stream); // a command writes to it
bool stream_is_busy(const struct stream *stream);     // a command writes to it or reads it
void stream_freeze(
    struct stream *stream); // keeps the size; the caller sets one of the reasons for being frozen

/* No more comes; the hub announces it. Without the lock. */
void stream_finish(struct stream *stream);

/* Why one goes. */
enum stream_erase {
    STREAM_ERASE_UNUSED,  // it never had a row
    STREAM_ERASE_ASKED,   // by its user
    STREAM_ERASE_EXPIRED, // its execution says so from now on
};
/* Marks as removed, removes the file, then the row (unless it never had one). ERROR_BUSY. */
int stream_erase(struct stream *stream, enum stream_erase why, struct error *err);
