/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many sandboxes there are, by owner and by what became of them, kept in a table of its own that changes with the rows. Private to the store.
 * Threads: any but loops.
 */
#pragma once
#include "store/sandboxes.h"
#include "store/sql_query.h"
#include "store/store_impl.h"

/* What the row of a sandbox counts as. */
#define COUNT_CLASS "CASE WHEN ended_at = 0 THEN 'alive' ELSE state END"

/* In the caller's transaction: one sandbox more, or n, of this class. Its row is there. */
int sandbox_counts_add(struct store_call *call, const char *id, const char *class, int64_t n,
                       struct error *err);
/* In the caller's transaction, before they are removed: those whose ids the query of `ids` selects are gone. */
int sandbox_counts_remove(struct store_call *call, const char *ids, const struct sql_value *args,
                          size_t n_args, struct error *err);
/* The class of a row; "" when there is none. */
int sandbox_counts_class(struct store_call *call, const char *id, char out[16], struct error *err);

/* Writes the statement that tells how many a filter lets through. False: the table does not know. */
bool sandbox_counts_select(const struct sandbox_filter *filter, struct query *out);
