/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of sandboxes; see sandbox_filter.h. */
#include "front/agentuity/sandbox_filter.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/page.h"
#include "front/agentuity/render.h"

#include <string.h>

static const char *const modes[] = {"interactive", "oneshot", NULL}; // as enum sandbox_mode
static const char *const sorts[] = {"created", "updated",         "name", "status",
                                    "mode",    "execution_count", NULL}; // as enum sandbox_sort
_Static_assert(SANDBOX_INTERACTIVE == 0 && SANDBOX_ONE_SHOT == 1, "modes are in order");
_Static_assert(SANDBOX_BY_CREATED == 0 && SANDBOX_BY_EXECUTIONS == 5, "sorts are in order");

const struct parameter sandbox_filter_parameters[] = {
    {"name", PARAMETER_TEXT, NULL, "of exactly this name"},
    {"mode", PARAMETER_WORD, modes, NULL},
    {"projectId", PARAMETER_TEXT, NULL, NULL},
    {"snapshotId", PARAMETER_TEXT, NULL, "started from this snapshot"},
    {"status", PARAMETER_WORD, render_statuses, NULL},
    {"live", PARAMETER_BOOL, NULL, "only those that have not ended, or only those that have"},
    {"deletedOnly", PARAMETER_BOOL, NULL, "only deleted ones, which are not listed otherwise"},
    {"sort", PARAMETER_WORD, sorts, NULL},
    PAGE_DIRECTION_PARAMETER,
    PAGE_LIMIT_PARAMETER,
    PAGE_OFFSET_PARAMETER,
    {0},
};

/* The place of a word that was checked before. */
static unsigned place_of(const char *const *words, const char *word)
{
    unsigned place = 0;

    while (words[place] && strcmp(words[place], word) != 0)
        place++;
    return place;
}

/* All conditions hold at once; 0: no state fulfils them. */
static unsigned states_of(const struct query *query)
{
    unsigned states = query_bool(query, "deletedOnly", false)
                          ? sandbox_in(SANDBOX_DELETED)
                          : SANDBOX_ANY & ~sandbox_in(SANDBOX_DELETED);
    const char *status = query_text(query, "status");

    if (query_text(query, "live"))
        states &= query_bool(query, "live", true) ? SANDBOX_ALIVE : SANDBOX_OVER;
    if (status)
        states &= render_states(status);
    return states;
}

/* The client's "snp_abc" as rows have it; one that is spelled otherwise matches nothing. */
static const char *snapshot_of(const struct query *query)
{
    const char *text = query_text(query, "snapshotId");

    return text ? reference_of(text, SNAPSHOT_PREFIX) : NULL;
}

int sandbox_filter_list(struct call *call, struct sandbox_infos *out, struct error *err)
{
    const char *mode = query_text(call->query, "mode");
    const char *sort = query_text(call->query, "sort");
    enum sandbox_mode wanted = mode ? place_of(modes, mode) : SANDBOX_INTERACTIVE;
    struct sandbox_filter filter = {
        .name = query_text(call->query, "name"),
        .snapshot = snapshot_of(call->query),
        .mode = mode ? &wanted : NULL,
        .states = states_of(call->query),
        .sort = sort ? place_of(sorts, sort) : SANDBOX_BY_CREATED,
        .is_descending = page_is_descending(call->query, true),
    };

    filter.owner.project = query_text(call->query, "projectId");
    if (page_read(call->query, &filter.page, err) < 0)
        return -1;
    return filter.states ? sandbox_list(call->core->sandboxes, &call->actor, &filter, out, err) : 0;
}
