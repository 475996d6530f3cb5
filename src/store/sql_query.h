/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A statement being written: its text and the parameters it names. Only our own words become text;
 * what a user gave is always a parameter. Private to the store.
 * Threads: one per object.
 */
#pragma once
#include "store/sql.h"
#include "store/store.h"

#define QUERY_TEXT 6144
#define QUERY_ARGS 80

struct query {
    char text[QUERY_TEXT];
    size_t length;
    struct sql_value args[QUERY_ARGS];
    size_t n_args;
    bool has_where;
};

void query_init(struct query *query);
void query_add(struct query *query, const char *text);
/* Adds "$n" for the value. */
void query_add_value(struct query *query, struct sql_value value);

/* Adds "WHERE" or "AND", then "<claim> $n": query_where(query, "created_at >=", …). */
void query_where(struct query *query, const char *claim, struct sql_value value);
/* Adds "WHERE" or "AND", then the claim as it is. */
void query_where_that(struct query *query, const char *claim);
/* Likewise "<column> = $n", unless the text is NULL. */
void query_where_text(struct query *query, const char *column, const char *text);
/* Likewise "node = $n" with this node's identity. */
void query_where_here(struct query *query, const struct store *store);
void query_where_owner(struct query *query, const struct owner *owner);
/* Likewise "<column> IN ('a', 'b')" with the names of the set's bits, unless it is 0. */
void query_where_names(struct query *query, const char *column, const char *const *names,
                       unsigned set);
