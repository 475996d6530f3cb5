/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rest of the core does with streams: gives them to commands and ends them. Private to the core; stream.h is for callers.
 * A stream object exists while it is open or somebody reads it. Any thread.
 */
#pragma once
#include "core/core.h"
#include "core/stream.h"

struct streams;

int streams_open(struct store *store, struct hub *hub, const struct core_settings *settings, struct streams **out,
                 struct error *err);
void streams_free(struct streams *streams); // all streams must be given up
DEFINE_AUTOPTR(streams)

/* Whose and what a new stream is. */
struct stream_place {
    struct store_owner owner;
    enum stream_kind kind;
    const char *sandbox_id;
    const char *execution_id;
};

/*
 * Makes the file of a command's output; open, known to readers, but without a row yet. On the path of every run: a file is
 * made, nothing else.
 */
int streams_prepare(struct streams *streams, const struct stream_place *place, struct stream **out, struct error *err);
/* Writes its row, or the place of one that was taken, in the caller's transaction. */
int streams_put(struct streams *streams, struct stream *stream, struct error *err);
/* It was never put: readers end, the file goes. Takes the reference. */
void streams_discard(struct streams *streams, struct stream *stream);

/*
 * Takes a user's open stream for a command (STREAM_STDIN: it is read; else written), in memory: streams_put writes it down, since
 * the sandbox may not be in the store yet. Once taken nobody else may write an output; a stdin is still appended to. ERROR_INVALID, noun "stream": unknown, not
 * the actor's, complete, or taken.
 */
int streams_take(struct streams *streams, const struct actor *actor, const char *id, const struct stream_place *place,
                 struct stream **out, struct error *err);

int stream_write_fd(const struct stream *stream); // what PID 1 is given: O_APPEND; borrowed

/* The command has ended: the row, in the caller's transaction. Then, once that is committed, the object: no more comes, the hub is
 * told. */
int streams_put_end(struct streams *streams, struct stream *stream, bool is_truncated, int64_t now, struct error *err);
void streams_end(struct streams *streams, struct stream *stream);
/* It may have grown: tells the hub. Does not block. */
void streams_news(struct streams *streams, struct stream *stream);

/* After a restart: opens one that was not complete, by its row. */
int streams_reopen(struct streams *streams, const struct stream_record *record, struct stream **out, struct error *err);

/* Removes files and rows whose time is up, and files without a row (made more than an hour ago); at most `limit`. */
int streams_purge(struct streams *streams, int64_t now, unsigned limit, unsigned *removed, struct error *err);
