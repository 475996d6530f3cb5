/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: where the bytes of an output or of a user's own stream are kept, and whether more will
 * come.
 * Threads: any but loops.
 */
#pragma once
#include "model/stream.h"
#include "store/store.h"

struct stream_record {
    const char *id;
    const char *sandbox_id;   // NULL: a stream of its own
    const char *execution_id; // likewise
    const char *node;         // in whose spool its file is; put with NULL: this one's
    struct owner owner;
    enum stream_kind kind;
    const char *name;
    const char *metadata; // JSON
    const char *headers;  // JSON
    const char *file;     // in the spool

    // STREAM_PART_STATE
    enum stream_state state;
    int64_t completed_at;
    // STREAM_PART_SIZE
    int64_t size_bytes;
    int64_t dropped_bytes; // of these, the first ones, which are gone
    bool is_truncated;
    // STREAM_PART_EXPIRY
    int64_t expires_at;
    // STREAM_PART_PLACE: given to an execution after it was made
    // (sandbox_id, execution_id, kind)

    int64_t created_at;
    int64_t updated_at; // every update writes it
};
void stream_record_clear(struct stream_record *record);
#define autostream __attribute__((cleanup(stream_record_clear))) struct stream_record

/* ERROR_LIMIT with more than STREAM_LABELS_MAX labels; ERROR_CONFLICT when one comes twice. */
int store_stream_put(struct store *store, const struct stream_record *record,
                     const struct stream_label *labels, size_t n_labels, struct error *err);
int store_stream_get(struct store *store, const char *id, struct stream_record *out,
                     struct error *err);

enum stream_part {
    STREAM_PART_STATE = 1 << 0,
    STREAM_PART_SIZE = 1 << 1,
    STREAM_PART_EXPIRY = 1 << 2,
    STREAM_PART_PLACE = 1 << 3,
};

/* As store_sandbox_update. */
int store_stream_update(struct store *store, const struct stream_record *record, unsigned parts,
                        unsigned from, struct error *err);

/* Remove its file first: what is left of a crash in between is then found again by its row. */
int store_stream_remove(struct store *store, const char *id, struct error *err);

struct stream_list {
    struct stream_record *rows;
    size_t count;
    int64_t total;
    struct page_mark next; // where the next page begins; see model/page.h
};
void stream_list_clear(struct stream_list *list);
#define autostreams __attribute__((cleanup(stream_list_clear))) struct stream_list

int store_stream_list(struct store *store, const struct stream_filter *filter,
                      struct stream_list *out, struct error *err);

/* Up to `limit` of this node whose time was up before `now`, longest first. */
int store_stream_list_expired(struct store *store, int64_t now, int64_t limit,
                              struct stream_list *out, struct error *err);

/* Up to `limit` of sandboxes of this node that ended before `ended_before` and have no time of their own for being kept: what `expires_at` says
 * was worked out from an earlier setting. */
int store_stream_list_outlived(struct store *store, int64_t ended_before, int64_t limit,
                               struct stream_list *out, struct error *err);

/* Up to `limit` of commands that ended before `completed_before`, in sandboxes of this node that live on and have no time of their own. */
int store_stream_list_aged(struct store *store, int64_t completed_before, int64_t limit,
                           struct stream_list *out, struct error *err);

/* What may take so much: output of commands of one sandbox, of all sandboxes made with one key, or of all. */
enum stream_share { STREAM_SHARE_SANDBOX, STREAM_SHARE_KEY, STREAM_SHARE_ALL, STREAM_SHARES };

/* Up to `limit` complete outputs of this node that are too many, oldest first: there are `bytes` or more of newer ones in their share. */
int store_stream_list_excess(struct store *store, enum stream_share share, int64_t bytes,
                             int64_t limit, struct stream_list *out, struct error *err);

/* What outputs of commands take on this node, and streams of users. Of open ones nothing is known. */
int store_stream_used(struct store *store, int64_t *commands_bytes, int64_t *users_bytes,
                      struct error *err);

/* As store_stream_remove; and the execution it is an output of says that it has expired. */
int store_stream_remove_expired(struct store *store, const char *id, struct error *err);

/* Lets all complete streams of a sandbox expire at that time. */
int store_stream_expire(struct store *store, const char *sandbox_id, int64_t expires_at,
                        struct error *err);
