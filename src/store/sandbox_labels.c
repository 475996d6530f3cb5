/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of sandboxes as rows; see sandbox_labels.h. */
#include "store/sandbox_labels.h"

#include <string.h>

static int put_label(struct store_call *call, const char *id, const char *label, struct error *err)
{
    char name[LABEL_NAME_MAX + 1];
    size_t length = strcspn(label, "=");

    if (!label[length] || length >= sizeof name)
        return error_set(err, ERROR_INVALID, "'%.80s' is no label", label);
    memcpy(name, label, length);
    name[length] = '\0';
    struct sql_value args[] = {sql_text(id), sql_text(name), sql_text(label + length + 1)};
    return store_run(call,
                     "INSERT INTO sandbox_labels (sandbox_id, name, value) VALUES ($1, $2, $3)",
                     args, ARRAY_SIZE(args), NULL, NULL, NULL, err);
}

int sandbox_labels_put(struct store_call *call, const char *id, const char *const *labels,
                       struct error *err)
{
    for (; labels && *labels; labels++) {
        if (put_label(call, id, *labels, err) < 0)
            return error_wrap(err, "label sandbox '%s'", id);
    }
    return 0;
}

int sandbox_labels_replace(struct store_call *call, const char *id, const char *const *labels,
                           struct error *err)
{
    struct sql_value arg = sql_text(id);

    if (store_run(call, "DELETE FROM sandbox_labels WHERE sandbox_id = $1", &arg, 1, NULL, NULL,
                  NULL, err) < 0)
        return error_wrap(err, "label sandbox '%s'", id);
    return sandbox_labels_put(call, id, labels, err);
}

/* What has it is looked up by the index of labels; what does not have it, sandbox by sandbox. */
static void where_term(struct query *query, const struct label_term *term)
{
    bool is_wanted = term->match == LABEL_IN || term->match == LABEL_THERE;

    query_where_that(query, is_wanted ? "id IN (SELECT sandbox_id FROM sandbox_labels WHERE "
                                      : "NOT EXISTS (SELECT 1 FROM sandbox_labels WHERE "
                                        "sandbox_labels.sandbox_id = sandboxes.id AND ");
    query_add(query, "sandbox_labels.name = ");
    query_add_value(query, sql_text(term->name));
    for (size_t i = 0; i < term->n_values; i++) {
        query_add(query, i ? ", " : " AND sandbox_labels.value IN (");
        query_add_value(query, sql_text(term->values[i]));
    }
    query_add(query, term->n_values ? "))" : ")");
}

void query_where_labels(struct query *query, const struct label_selector *selector)
{
    for (size_t i = 0; selector && i < selector->count; i++)
        where_term(query, &selector->terms[i]);
}
