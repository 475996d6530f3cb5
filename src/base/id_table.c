/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of embedded entries; see id_table.h. */
#include "base/id_table.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 16

uint64_t id_hash(const char *id)
{
    uint64_t hash = 0xcbf29ce484222325; // FNV-1a
    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * 0x100000001b3;
    return hash ^ (hash >> 32); // the low bits choose buckets, the high ones shards
}

static struct id_entry **bucket_of(const struct id_table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->n_buckets - 1)];
}

struct id_entry *id_table_find(const struct id_table *table, const char *id, uint64_t hash)
{
    if (table->count == 0)
        return NULL;
    for (struct id_entry *entry = *bucket_of(table, hash); entry; entry = entry->next)
        if (entry->hash == hash && strcmp(entry->id, id) == 0)
            return entry;
    return NULL;
}

static void link_entry(struct id_table *table, struct id_entry *entry)
{
    struct id_entry **bucket = bucket_of(table, entry->hash);
    entry->next = *bucket;
    *bucket = entry;
}

static void grow(struct id_table *table)
{
    struct id_table larger = {.n_buckets = table->n_buckets ? table->n_buckets * 2 : FIRST_BUCKETS};

    larger.buckets = xcalloc(larger.n_buckets, sizeof(struct id_entry *));
    for (size_t i = 0; i < table->n_buckets; i++) {
        struct id_entry *next = NULL;
        for (struct id_entry *entry = table->buckets[i]; entry; entry = next) {
            next = entry->next;
            link_entry(&larger, entry);
        }
    }
    free(table->buckets);
    table->buckets = larger.buckets;
    table->n_buckets = larger.n_buckets;
}

void id_table_put(struct id_table *table, struct id_entry *entry)
{
    if (table->count == table->n_buckets)
        grow(table);
    link_entry(table, entry);
    table->count++;
}

void id_table_remove(struct id_table *table, struct id_entry *entry)
{
    struct id_entry **place = bucket_of(table, entry->hash);
    while (*place != entry)
        place = &(*place)->next;
    *place = entry->next;
    table->count--;
}

void id_table_clear(struct id_table *table)
{
    assert(table->count == 0);
    free(table->buckets);
    *table = (struct id_table){0};
}
