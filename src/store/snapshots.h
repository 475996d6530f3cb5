/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: what sandboxes can be started from beside runtimes. All writes but SNAPSHOT_PART_COUNT are durable.
 * Threads: any but loops.
 */
#pragma once
#include "model/snapshot.h"
#include "store/store.h"

struct snapshot_record {
    const char *id;
    struct owner owner;
    const char *key_id;
    const char *node;       // where its layers are, or are being built; put with NULL: this one
    const char *parent_id;  // the snapshot its sandbox was made from
    const char *sandbox_id; // what it was taken of; NULL: built
    bool
        is_step; // what a build had after some of its steps: no user sees it; content_hash says which
    const char *dependencies,
        *packages; // packed strings: over that; NULL: none. SNAPSHOT_PART_CONTENT
    const char *content_hash;
    const char *upload_secret; // of one being built
    const char *git;           // JSON

    // SNAPSHOT_PART_ABOUT
    const char *name;
    const char *tag; // NULL: none
    const char *description;
    const char *message;
    bool is_public;

    // SNAPSHOT_PART_CONTENT
    const char *runtime;  // at the bottom
    const char *layers;   // packed strings, top first
    const char *env;      // packed strings, never NULL
    const char *metadata; // JSON

    // SNAPSHOT_PART_STATE
    enum snapshot_state state;
    const char *error;
    int64_t deleted_at;

    // SNAPSHOT_PART_COUNT
    int64_t size_bytes;
    int64_t file_count; // SNAPSHOT_NOT_COUNTED until somebody has

    int64_t created_at;
    int64_t updated_at; // every update writes it
};

void snapshot_record_clear(struct snapshot_record *record);
#define autosnapshot __attribute__((cleanup(snapshot_record_clear))) struct snapshot_record

enum snapshot_part {
    SNAPSHOT_PART_ABOUT = 1 << 0,
    SNAPSHOT_PART_CONTENT = 1 << 1,
    SNAPSHOT_PART_STATE = 1 << 2,
    SNAPSHOT_PART_COUNT = 1 << 3,
};

int store_snapshot_put(struct store *store, const struct snapshot_record *record,
                       struct error *err);
int store_snapshot_get(struct store *store, const char *id, struct snapshot_record *out,
                       struct error *err);
int store_snapshot_update(struct store *store, const struct snapshot_record *record, unsigned parts,
                          unsigned from, struct error *err);

/* The newest ready one that fits; NULLs match all. ERROR_NOT_FOUND. */
struct snapshot_search {
    struct owner owner; // organisation NULL: public ones of all
    bool is_public_only;
    bool is_own; // without a member: those that are no member's, instead of everybody's
    const char *name;
    const char *tag;
    const char *content_hash;
    bool is_step; // one of those that no user sees, instead of the others
};
int store_snapshot_find(struct store *store, const struct snapshot_search *search,
                        struct snapshot_record *out, struct error *err);
/* Takes the tag from all other ready ones of this name and owner, since a new one has it. */
int store_snapshot_take_tag(struct store *store, const struct snapshot_record *record,
                            struct error *err);

struct snapshot_list {
    struct snapshot_record *rows;
    size_t count;
    int64_t total;
    struct page_mark next; // where the next page begins; see model/page.h
};
void snapshot_list_clear(struct snapshot_list *list);
#define autosnapshots __attribute__((cleanup(snapshot_list_clear))) struct snapshot_list

int store_snapshot_list(struct store *store, const struct snapshot_filter *filter,
                        struct snapshot_list *out, struct error *err);
