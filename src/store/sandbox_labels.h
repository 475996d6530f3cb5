/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of sandboxes as rows, which lists are narrowed by. Private to the store.
 * Threads: any but loops; a store_call is its thread's.
 */
#pragma once
#include "base/label.h"
#include "store/sql_query.h"
#include "store/store_impl.h"

/* Writes them ("name=value", NULL-terminated, or NULL) for a sandbox that has none. */
int sandbox_labels_put(struct store_call *call, const char *id, const char *const *labels,
                       struct error *err);
/* The same in the place of those it has. */
int sandbox_labels_replace(struct store_call *call, const char *id, const char *const *labels,
                           struct error *err);

/* Narrows a query of sandboxes to those that are chosen; NULL: all are. */
void query_where_labels(struct query *query, const struct label_selector *selector);
