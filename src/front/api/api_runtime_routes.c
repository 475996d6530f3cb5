/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes: what sandboxes can be started from. */
#include "core/runtime/runtime.h"
#include "front/api/api_page.h"

struct runtime_answer {
    const char *id, *name, *description;
    int64_t built_at;
    bool is_built;
};
#define AT(member) offsetof(struct runtime_answer, member)
static const struct answer_field runtime_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = RUNTIME_PREFIX},
    {"name", ANSWER_TEXT, AT(name), .is_needed = true, .help = "with its tag: base:latest"},
    {"description", ANSWER_TEXT, AT(description)},
    {"built", ANSWER_BOOL, AT(is_built), .help = "else it is built when first asked for"},
    {"builtAt", ANSWER_TIME, AT(built_at)},
    {0},
};
#undef AT
static const struct answer_field list_fields[] = {
    API_LIST_FIELDS(runtime_fields, struct runtime_answer), {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};
static const struct parameter list_parameters[] = {API_PAGE_PARAMETERS, {0}};

/* GET /api/v1/runtimes: by their names. */
static int list_runtimes(struct call *call, struct error *err)
{
    struct page page;
    autoruntimes found = {0};

    if (api_page_read(call, &page, err) < 0 ||
        runtime_list(call->core->runtimes, RUNTIME_BY_NAME, false, &page, &found, err) < 0)
        return -1;
    struct runtime_answer *items = call_alloc(call, found.count * sizeof *items);
    for (size_t i = 0; i < found.count; i++) {
        const struct runtime_entry *entry = &found.entries[i];
        items[i] = (struct runtime_answer){entry->id, entry->name, entry->description,
                                           entry->created_at, entry->is_built};
    }
    return api_answer_page(call, list_fields, items, found.count, &found.next);
}

const struct route api_runtime_routes[] = {
    {"GET", API_TOP "/runtimes", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_runtimes,
     .summary = "what sandboxes can be started from, by name", .query = list_parameters,
     .answers = list_answers, .needs = SCOPE_READ},
    {0},
};
