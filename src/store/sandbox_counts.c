/* SPDX-License-Identifier: Apache-2.0 */
/* Counted sandboxes; see sandbox_counts.h. */
#include "store/sandbox_counts.h"

#include <string.h>

#define OWNER                                                                                      \
    "organisation, coalesce(tenant, ''), coalesce(scope, ''), coalesce(project, ''), "             \
    "coalesce(member, '')"
#define ADD_TO                                                                                     \
    "INSERT INTO sandbox_counts (organisation, tenant, scope, project, member, class, n) "
#define OR_CHANGE                                                                                  \
    " ON CONFLICT (organisation, tenant, scope, project, member, class) DO UPDATE SET "            \
    "n = sandbox_counts.n + excluded.n"

int sandbox_counts_add(struct store_call *call, const char *id, const char *class, int64_t n,
                       struct error *err)
{
    struct sql_value args[] = {sql_text(id), sql_text(class), sql_number(n)};

    if (store_run(call,
                  ADD_TO
                  "SELECT " OWNER
                  ", CAST($2 AS TEXT), CAST($3 AS BIGINT) FROM sandboxes WHERE id = $1" OR_CHANGE,
                  args, ARRAY_SIZE(args), NULL, NULL, NULL, err) < 0)
        return error_wrap(err, "count sandbox '%s'", id);
    return 0;
}

int sandbox_counts_remove(struct store_call *call, const char *ids, const struct sql_value *args,
                          size_t n_args, struct error *err)
{
    struct query query;

    query_init(&query);
    query_add(&query,
              ADD_TO "SELECT " OWNER ", " COUNT_CLASS ", -count(*) FROM sandboxes WHERE id IN (");
    query_add(&query, ids);
    query_add(&query, ") GROUP BY 1, 2, 3, 4, 5, 6" OR_CHANGE);
    return store_run(call, query.text, args, n_args, NULL, NULL, NULL, err);
}

static int take_class(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    (void)n_columns;
    (void)err;
    (void)snprintf(data, 16, "%s", row[0].data);
    return 0;
}

int sandbox_counts_class(struct store_call *call, const char *id, char out[16], struct error *err)
{
    struct sql_value arg = sql_text(id);

    out[0] = '\0';
    return store_run(call, "SELECT " COUNT_CLASS " FROM sandboxes WHERE id = $1", &arg, 1,
                     take_class, out, NULL, err);
}

bool sandbox_counts_select(const struct sandbox_filter *filter, struct query *out)
{
    static const char *const alive[] = {"alive", NULL};
    unsigned states = filter->states
                          ? filter->states
                          : (SANDBOX_ALIVE | SANDBOX_OVER) & ~sandbox_in(SANDBOX_DELETED);
    unsigned living = states & SANDBOX_ALIVE;
    unsigned over = states & SANDBOX_OVER;

    if (filter->name || filter->runtime || filter->snapshot || filter->mode || filter->labels ||
        filter->created_from || (living != 0 && living != SANDBOX_ALIVE))
        return false;
    query_init(out);
    query_add(out, "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM sandbox_counts");
    query_where_owner(out, &filter->owner);
    if (!over || !living) {
        query_where_names(out, "class", over ? sandbox_state_names : alive, over ? over : 1);
        return true;
    }
    // all that live, and some of the others: those that are not asked for are left out
    unsigned rest = SANDBOX_OVER & ~over;
    query_where_that(out, "class NOT IN ('-'");
    for (unsigned i = 0; i < SANDBOX_STATES; i++) {
        if (!(rest & sandbox_in(i)))
            continue;
        query_add(out, ", '");
        query_add(out, sandbox_state_names[i]);
        query_add(out, "'");
    }
    query_add(out, ")");
    return true;
}
