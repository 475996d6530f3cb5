/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rest of the core does with streams: gives them to commands and ends them; stream.h is for callers. A stream is in memory,
 * with its file open, while somebody holds a reference: a command's is held until it has ended. A full disk and RLIMIT_FSIZE are
 * errors, as long as the program ignores SIGXFSZ. docs/internals/streams.md.
 * Threads: any but loops; a call that does not block says so: any.
 */
#pragma once
#include "core/stream/stream.h"
#include "store/streams.h"

struct streams_settings {
    const char *data_dir;
    uint64_t limit_bytes; // of a user's own stream
    int64_t keep_ms;      // how long streams are kept that ask for nothing else
    int64_t
        total_bytes; // outputs of commands together, and as much of users' streams; 0: a tenth of the disk
    int64_t most, organisation_most; // streams of users; 0: no limit
};

/* Store and hub must outlive it. */
int streams_open(struct store *store, struct hub *hub, const struct streams_settings *settings,
                 struct streams **out, struct error *err);
void streams_free(struct streams *streams); // all streams must be given up
DEFINE_AUTOPTR(streams)

/* Whose and what a new stream is. */
struct stream_place {
    struct owner owner;
    enum stream_kind kind;
    const char *sandbox_id;
    const char *execution_id;
};

/*
 * Makes the file of a command's output; open, known to readers, but without a row yet. On the path of every run: a file is
 * made, nothing else.
 */
int streams_prepare(struct streams *streams, const struct stream_place *place, struct stream **out,
                    struct error *err);
/* Makes spare files for streams_prepare, until there are enough. False: there were. */
bool streams_make_spares(struct streams *streams);
bool streams_needs_spares(struct streams *streams); // does not block
/* Writes its row, in the caller's transaction. */
int streams_put(struct streams *streams, struct stream *stream, struct error *err);
/* It was never put: readers end, the file goes. Takes the reference. */
void streams_discard(struct streams *streams, struct stream *stream);

/*
 * Takes a user's stream for a command (STREAM_STDIN: it is read; else written), in the caller's transaction or one of its own.
 * Once taken nobody else may write an output; a stdin is still appended to. The same execution may take a stream for both its
 * outputs. It stays the user's: it expires at its own time, not with the sandbox. ERROR_INVALID, noun "stream": unknown, not the
 * actor's, taken, or complete (which is fine for a stdin).
 */
int streams_take(struct streams *streams, const struct actor *actor, const char *id,
                 const struct stream_place *place, struct stream **out, struct error *err);
/* The command was not started, whether the transaction was committed or not: the stream is the user's again. Takes the
 * reference. */
void streams_give_back(struct streams *streams, struct stream *stream);

int stream_write_fd(const struct stream *stream); // what PID 1 is given: O_APPEND; borrowed

/*
 * The command has ended, in two steps and in either order: the row, in the caller's transaction, and the object: no more
 * comes, the hub is told. With the first of them the size is final: what is written to the file afterwards is not part of the stream.
 * Until the row is committed the caller holds the stream. Neither does anything to one that its user has completed or removed, and
 * neither takes the reference.
 */
int streams_put_end(struct streams *streams, struct stream *stream, bool is_truncated, int64_t now,
                    struct error *err);
void streams_end(struct streams *streams, struct stream *stream);
/*
 * Gives up a stream made for a command that has ended and is recorded. A small one stays in memory for a while: whoever waited for the
 * end reads it next. One to which nothing came loses its file. Takes the reference; NULL is fine.
 */
void streams_keep_recent(struct streams *streams, struct stream *stream);
/* It may have grown: tells the hub. Does not block. */
void streams_announce(struct streams *streams, struct stream *stream);

/* After a restart: opens one that was not complete, by its row; without its file, as an empty one. */
int streams_reopen(struct streams *streams, const struct stream_record *record, struct stream **out,
                   struct error *err);

/* Who is told, on the thread that purges, that output of an execution has expired. Set before anything is purged. */
void streams_tell_expired(struct streams *streams,
                          void (*on_expired)(void *data, const char *execution_id), void *data);

/* The disk they are on: looks at it (every second or so); and what is wrong with it, a literal, or NULL: does not block. */
void streams_check_disk(struct streams *streams);
const char *streams_fault(struct streams *streams);

/* Whether outputs of commands take more than they may, so that it is time to purge. Does not block. */
bool streams_is_over(struct streams *streams);
/*
 * Removes outputs that are too many, files and rows whose time is up, and files without a row (written more than an hour ago; some of the spool at a time);
 * about `limit`. Those of sandboxes that have ended go by the time that is set now. Those that a command uses are kept for longer. One that cannot be removed does not keep the others.
 */
int streams_purge(struct streams *streams, int64_t now, unsigned limit, unsigned *removed,
                  struct error *err);
