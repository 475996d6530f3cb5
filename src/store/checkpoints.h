/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints of a sandbox, and which layers are needed by whom. All writes are durable.
 * Threads: any but loops.
 */
#pragma once
#include "store/store.h"

struct checkpoint_record {
    const char *id;
    const char *sandbox_id;
    const char *name;   // no two of a sandbox have the same
    const char *parent; // name of the one before it, or ""
    const char *layer;
    int64_t size_bytes;
    int64_t created_at;
};

void checkpoint_record_clear(struct checkpoint_record *record);
#define autocheckpoint __attribute__((cleanup(checkpoint_record_clear))) struct checkpoint_record

struct checkpoint_list {
    struct checkpoint_record *rows;
    size_t count;
};
void checkpoint_list_clear(struct checkpoint_list *list);
#define autocheckpoints __attribute__((cleanup(checkpoint_list_clear))) struct checkpoint_list

/* ERROR_CONFLICT, noun "checkpoint", when the name is taken. */
int store_checkpoint_put(struct store *store, const struct checkpoint_record *record,
                         struct error *err);
/* Of all of a sandbox: their layers are not needed by them any more, and they are gone. */
int store_checkpoint_remove_all(struct store *store, const char *sandbox_id, struct error *err);
/* By id or by name. ERROR_NOT_FOUND, noun "checkpoint". */
int store_checkpoint_get(struct store *store, const char *sandbox_id, const char *reference,
                         struct checkpoint_record *out, struct error *err);
int store_checkpoint_remove(struct store *store, const char *id, struct error *err);
/* Oldest first; sandbox_id NULL: of all. Not paged. */
int store_checkpoint_list(struct store *store, const char *sandbox_id, struct checkpoint_list *out,
                          struct error *err);

struct layer_record {
    const char *name;
    const char *node; // on whose volume it is; put with NULL: this one's
    const char
        *merged_of; // packed names of those it was made of, top first; NULL: what a sandbox wrote
    int64_t size_bytes;
    int64_t created_at;
};
/* A layer that is there from now on. */
int store_layer_put(struct store *store, const struct layer_record *record, struct error *err);
/* `user` (an id) needs it; again is no error. */
int store_layer_use(struct store *store, const char *name, const char *user, struct error *err);
/* `user` needs no layer any more. */
int store_layer_release(struct store *store, const char *user, struct error *err);
/* After a restart, of this node's layers: those who are no more (ended sandboxes, deleted snapshots, removed checkpoints) need nothing. */
int store_layer_forget_users(struct store *store, struct error *err);
/* ERROR_CONFLICT while somebody needs it; ERROR_NOT_FOUND when another has removed it. */
int store_layer_remove(struct store *store, const char *name, struct error *err);

struct layer_list {
    struct layer_record *rows;
    size_t count;
};
void layer_list_clear(struct layer_list *list);
#define autolayers __attribute__((cleanup(layer_list_clear))) struct layer_list
/* This node's that nobody needs, or all. Not paged. */
int store_layer_list(struct store *store, bool is_unused_only, struct layer_list *out,
                     struct error *err);
