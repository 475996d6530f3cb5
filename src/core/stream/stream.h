/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: append-only bytes with any number of readers. Each is a file in the spool (docs/internals/streams.md) and a
 * row in the store. Output of a command is appended by PID 1 of its box; everything else by stream_append. The hub announces a
 * stream, by its id, when it has grown or ended.
 * Threads: any but loops; a call that does not block says so: any.
 */
#pragma once
#include "core/account/actor.h"
#include "core/event/hub.h"
#include "core/stream/stream_info.h"

#include <stdbool.h>
#include <stdint.h>

struct streams; // streams.h
struct stream;  // one that somebody reads or writes; shared, counted

struct stream_request {
    const char *name;
    const char *metadata; // JSON, not read here; or NULL
    const char *headers;  // likewise
    const struct stream_label *labels;
    size_t n_labels;
    int64_t ttl_ms; // 0: as long as such streams are kept
};

int stream_create(struct streams *streams, const struct actor *actor,
                  const struct stream_request *request, struct stream_info *out, struct error *err);
int stream_get(struct streams *streams, const struct actor *actor, const char *id,
               struct stream_info *out, struct error *err);
/* Sizes are those of now, but the order by size takes open streams as empty. */
int stream_list(struct streams *streams, const struct actor *actor,
                const struct stream_filter *filter, struct stream_infos *out, struct error *err);
/* Ends readers; the file goes. ERROR_BUSY while a command writes to it or reads it. */
int stream_remove(struct streams *streams, const struct actor *actor, const char *id,
                  struct error *err);

/* Opens for reading. Whoever knows the id may. ERROR_NOT_FOUND, noun "stream". */
int stream_open(struct streams *streams, const char *id, struct stream **out, struct error *err);
/* The same from memory alone, without blocking; NULL where the store would have to be asked. */
struct stream *stream_open_quick(struct streams *streams, const char *id);
/* One of the two; NULL also where it has expired. */
struct stream *stream_open_kept(struct streams *streams, const char *id, bool is_quick);
struct stream *stream_ref(struct stream *stream);
void stream_free(struct stream *stream); // gives up one reference
DEFINE_AUTOPTR(stream)

/* None of these blocks. */
const char *stream_id(const struct stream *stream);
int stream_fd(
    const struct stream *stream); // for reading at offsets; valid as long as the stream is held
struct stream_progress {
    uint64_t size_bytes; // readable now
    uint64_t
        first_bytes; // all before this offset is gone: 0, but for a terminal that has shown more than is kept of it
    bool is_complete; // no more will come. Complete and size are of one moment
};
void stream_progress(struct stream *stream, struct stream_progress *out);

/*
 * Appends, one caller after the other; readers see all of it or nothing. Whoever appends several times should hold the stream
 * (stream_open) meanwhile: it saves looking it up each time. ERROR_COMPLETE when the stream has ended (a command that read it is
 * done: for the writer that is success). ERROR_LIMIT past the stream's or the disk's limit. ERROR_CONFLICT when a command
 * writes to it.
 */
int stream_append(struct streams *streams, const struct actor *actor, const char *id,
                  const void *data, size_t length, struct error *err);
/* Again is no error. */
int stream_complete(struct streams *streams, const struct actor *actor, const char *id,
                    struct error *err);
