/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes: what sandboxes can be started from. */
#include "core/runtime/runtime.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/page.h"

#include <string.h>

struct requirements_answer {
    const char *memory, *cpu, *disk;
    bool needs_network;
};
#define AT(member) offsetof(struct requirements_answer, member)
static const struct answer_field requirement_fields[] = {
    {"memory", ANSWER_TEXT, AT(memory), .help = "what a sandbox needs at least"},
    {"cpu", ANSWER_TEXT, AT(cpu)},
    {"disk", ANSWER_TEXT, AT(disk)},
    {"networkEnabled", ANSWER_BOOL, AT(needs_network)},
    {0},
};
#undef AT

struct runtime_answer {
    const char *id, *name, *description, *icon, *color, *url, *readme;
    const char *const *tags;
    int64_t created_at;
    struct requirements_answer requirements;
};
#define AT(member) offsetof(struct runtime_answer, member)
static const struct answer_field runtime_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = RUNTIME_PREFIX},
    {"name", ANSWER_TEXT, AT(name), .is_needed = true},
    {"description", ANSWER_TEXT, AT(description)},
    {"iconUrl", ANSWER_TEXT, AT(icon)},
    {"brandColor", ANSWER_TEXT, AT(color)},
    {"url", ANSWER_TEXT, AT(url)},
    {"tags", ANSWER_TEXTS, AT(tags), .help = "what it is for: language, agent"},
    {"readme", ANSWER_TEXT, AT(readme)},
    {"createdAt", ANSWER_TIME, AT(created_at)},
    {"requirements", ANSWER_MAP, AT(requirements), .is_needed = true, .fields = requirement_fields},
    {0},
};
#undef AT

static const char *text_or_none(const char *text)
{
    return *text ? text : NULL;
}

struct runtimes_answer {
    struct answer_list runtimes;
    int64_t total;
};
static const struct answer_field runtimes_fields[] = {
    {"runtimes", ANSWER_LIST, offsetof(struct runtimes_answer, runtimes), .is_needed = true,
     .fields = runtime_fields, .item_size = sizeof(struct runtime_answer)},
    {"total", ANSWER_INTEGER, offsetof(struct runtimes_answer, total), .help = "of all pages"},
    {0},
};
static const struct route_answer answers_runtimes[] = {{200, runtimes_fields, &answers_data}, {0}};

/* GET /sandbox/runtimes */
static int list_runtimes(struct call *call, struct error *err)
{
    const char *sort = query_text(call->query, "sort");
    bool is_by_name = sort && strcmp(sort, "name") == 0;
    struct page page = {0};
    autoruntimes found = {0};

    if (page_read(call->query, &page, err) < 0 ||
        runtime_list(call->core->runtimes, is_by_name ? RUNTIME_BY_NAME : RUNTIME_BY_CREATED,
                     page_is_descending(call->query, true), &page, &found, err) < 0)
        return -1;
    struct runtime_answer *items = call_alloc(call, found.count * sizeof *items);
    for (size_t i = 0; i < found.count; i++) {
        const struct runtime_entry *entry = &found.entries[i];
        items[i] = (struct runtime_answer){
            .id = entry->id,
            .name = entry->name,
            .description = entry->description,
            .icon = entry->icon,
            .color = entry->color,
            .url = entry->url,
            .readme = entry->readme,
            .tags = entry->tags[0] ? entry->tags : NULL,
            .created_at = entry->created_at,
            .requirements = {text_or_none(entry->memory), text_or_none(entry->cpu),
                             text_or_none(entry->disk), entry->needs_network},
        };
    }
    struct runtimes_answer answer = {{items, found.count}, (int64_t)found.total};
    return envelope_answer(call, 200, runtimes_fields, &answer);
}

static const char *const sorts[] = {"created", "name", NULL};
static const struct parameter list_parameters[] = {PAGE_LIMIT_PARAMETER,
                                                   PAGE_OFFSET_PARAMETER,
                                                   {"sort", PARAMETER_WORD, sorts, NULL},
                                                   PAGE_DIRECTION_PARAMETER,
                                                   {0}};

const struct route agentuity_runtime_routes[] = {
    {"GET", "/sandbox/runtimes", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_runtimes,
     "what sandboxes can be started from", .query = list_parameters, .answers = answers_runtimes},
    {0},
};
