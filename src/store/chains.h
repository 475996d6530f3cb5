/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of layers that have grown long: which there are, and one layer put in the place of many.
 * Threads: any but loops.
 */
#pragma once
#include "store/checkpoints.h"

/* The layer of this node that was made of these (packed names, top first). ERROR_NOT_FOUND, noun "layer". */
int store_chain_find(struct store *store, const char *merged_of, struct layer_record *out,
                     struct error *err);
void layer_record_clear(struct layer_record *record);
#define autolayer __attribute__((cleanup(layer_record_clear))) struct layer_record

/*
 * In each ready snapshot whose layers end with `merged_of` (packed `names`, top first), layer `name` takes their place, and is what
 * it needs instead of them. *n_changed is how many there were. In the caller's transaction, in which the layer has a row.
 */
int store_chain_replace(struct store *store, const char *name, const char *merged_of,
                        const char *const *names, int64_t *n_changed, struct error *err);

struct chain_list {
    char **ids;
    size_t count;
};
void chain_list_clear(struct chain_list *list);
#define autochains __attribute__((cleanup(chain_list_clear))) struct chain_list

/* Ready snapshots of this node of more layers than these. Not paged. */
int store_chain_list_long(struct store *store, unsigned maximum, struct chain_list *out,
                          struct error *err);
/* Ready snapshots of this node whose files nobody has counted, oldest first; organisation NULL: of all. Not paged. */
int store_chain_list_uncounted(struct store *store, const char *organisation,
                               struct chain_list *out, struct error *err);
