/* SPDX-License-Identifier: Apache-2.0 */
/* Writes statements; see sql_query.h. */
#include "store/sql_query.h"

#include <assert.h>
#include <string.h>

// The arguments are left as they are: n_args says which count.
void query_init(struct query *query)
{
    query->text[0] = '\0';
    query->length = 0;
    query->n_args = 0;
    query->has_where = false;
}

void query_add(struct query *query, const char *text)
{
    size_t length = strlen(text);

    assert(query->length + length < sizeof query->text); // our own words
    memcpy(query->text + query->length, text, length + 1);
    query->length += length;
}

void query_add_value(struct query *query, struct sql_value value)
{
    char number[] = "$00";

    assert(query->n_args < QUERY_ARGS && QUERY_ARGS < 100);
    query->args[query->n_args++] = value;
    if (query->n_args < 10) {
        number[1] = (char)('0' + query->n_args);
        number[2] = '\0';
    } else {
        number[1] = (char)('0' + query->n_args / 10);
        number[2] = (char)('0' + query->n_args % 10);
    }
    query_add(query, number);
}

void query_where_that(struct query *query, const char *claim)
{
    query_add(query, query->has_where ? " AND " : " WHERE ");
    query_add(query, claim);
    query->has_where = true;
}

void query_where(struct query *query, const char *claim, struct sql_value value)
{
    query_where_that(query, claim);
    query_add(query, " ");
    query_add_value(query, value);
}

void query_where_text(struct query *query, const char *column, const char *text)
{
    if (!text)
        return;
    query_where_that(query, column);
    query_add(query, " = ");
    query_add_value(query, sql_text(text));
}

void query_where_here(struct query *query, const struct store *store)
{
    query_where_text(query, "node", store_node(store));
}

void query_where_owner(struct query *query, const struct owner *owner)
{
    query_where_text(query, "organisation", owner->organisation);
    query_where_text(query, "tenant", owner->tenant);
    query_where_text(query, "scope", owner->scope);
    query_where_text(query, "project", owner->project);
    query_where_text(query, "member", owner->member);
}

void query_where_names(struct query *query, const char *column, const char *const *names,
                       unsigned set)
{
    const char *comma = "";

    if (!set)
        return;
    query_where_that(query, column);
    query_add(query, " IN (");
    for (unsigned i = 0; names[i]; i++) {
        if (!(set & (1u << i)))
            continue;
        query_add(query, comma);
        query_add(query, "'");
        query_add(query, names[i]);
        query_add(query, "'");
        comma = ", ";
    }
    assert(*comma); // the set holds something there is
    query_add(query, ")");
}
