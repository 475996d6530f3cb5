/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Things found by their id: a hash table whose entries are embedded in the things. Grows.
 * Threads: one per object.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct id_entry {
    const char *id; // belongs to the thing
    uint64_t hash;
    struct id_entry *next;
};

struct id_table { // all zero is empty
    struct id_entry **buckets;
    size_t n_buckets; // a power of two
    size_t count;
};

uint64_t id_hash(const char *id);

struct id_entry *id_table_find(const struct id_table *table, const char *id, uint64_t hash);
/* The entry's id and hash are set, and no other has that id. */
void id_table_put(struct id_table *table, struct id_entry *entry);
void id_table_remove(struct id_table *table, struct id_entry *entry); // which must be in it
void id_table_clear(struct id_table *table);                          // which must be empty
