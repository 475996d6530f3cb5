/* SPDX-License-Identifier: Apache-2.0 */
/* What was used: by day, sandbox, key or label. */
#include "base/clock.h"
#include "base/strings.h"
#include "core/core.h"
#include "core/sandbox/usage_report.h"
#include "front/api/api.h"
#include "front/api/api_query.h"

#include <string.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)
#define USUAL_DAYS 30
#define ENTRIES 1000 // at most

static const char *const groups[] = {
    [USAGE_BY_DAY] = "day",
    [USAGE_BY_SANDBOX] = "sandbox",
    [USAGE_BY_KEY] = "key",
    [USAGE_BY_LABEL] = "label",
    NULL,
};

struct usage_answer {
    int64_t day_at;
    const char *sandbox_id, *key_id;
    const char *const *labels; // NULL: not asked for
    int64_t runs, cpu_ms, memory_byte_seconds, disk_bytes, egress_bytes;
    bool has_disk;
};

#define AT(member) offsetof(struct usage_answer, member)
static const struct answer_field usage_fields[] = {
    {"day", ANSWER_TIME, AT(day_at), .is_needed = true,
     .help = "the day, or the first one on which it used something"},
    {"sandboxId", ANSWER_ID, AT(sandbox_id), .prefix = SANDBOX_PREFIX,
     .help = "by sandbox; not there: all that are no longer told apart"},
    {"keyId", ANSWER_ID, AT(key_id), .prefix = KEY_PREFIX,
     .help = "by key; not there: what was used without one"},
    {"labels", ANSWER_PAIRS, AT(labels), .help = "by label: of the sandboxes that used it"},
    {"runs", ANSWER_INTEGER, AT(runs), .help = "commands that have ended"},
    {"cpuMs", ANSWER_INTEGER, AT(cpu_ms), .help = "of all processors together"},
    {"memoryByteSeconds", ANSWER_INTEGER, AT(memory_byte_seconds),
     .help = "memory in use, over time"},
    {"egressBytes", ANSWER_INTEGER, AT(egress_bytes), .help = "that left sandboxes"},
    {"diskBytes", ANSWER_INTEGER, AT(disk_bytes), .has_offset = AT(has_disk),
     .help = "the most that files of one sandbox took when that was looked at; not there: it never "
             "was"},
    {0},
};
#undef AT
struct report_answer {
    int64_t from, to;
    const char *by;
    struct answer_list items;
    bool is_cut;
};
#define AT(member) offsetof(struct report_answer, member)
static const struct answer_field report_fields[] = {
    {"from", ANSWER_TIME, AT(from), .is_needed = true},
    {"to", ANSWER_TIME, AT(to), .is_needed = true},
    {"by", ANSWER_TEXT, AT(by), .is_needed = true},
    {"items", ANSWER_LIST, AT(items), .is_needed = true, .fields = usage_fields,
     .item_size = sizeof(struct usage_answer),
     .help = "days in their order, all others by CPU time, the most first"},
    {"truncated", ANSWER_BOOL, AT(is_cut), .help = "there are more: only the first 1000 are told"},
    {0},
};
#undef AT
static const struct route_answer report_answers[] = {{200, report_fields}, {0}};

static const struct parameter report_parameters[] = {
    {"by", PARAMETER_WORD, groups, "what it is told by; day when not given"},
    {"from", PARAMETER_TEXT,
     .help = "from that day on (UTC), RFC 3339; 30 days ago when not given"},
    {"to", PARAMETER_TEXT, .help = "before this time, RFC 3339; now when not given"},
    {"sandboxId", PARAMETER_TEXT, .help = "of this sandbox alone"},
    {"keyId", PARAMETER_TEXT, .help = "of this key alone"},
    {0},
};

static int read_usage_query(struct call *call, struct usage_query *query, struct error *err)
{
    const char *by = query_text(call->query, "by");

    *query = (struct usage_query){
        .to = (int64_t)clock_wall_ms(),
        .sandbox_id = api_query_id(call, "sandboxId", SANDBOX_PREFIX),
        .key_id = api_query_id(call, "keyId", KEY_PREFIX),
        .limit = ENTRIES + 1,
    };
    for (unsigned i = 0; by && groups[i]; i++)
        if (strcmp(by, groups[i]) == 0)
            query->by = i;
    if (api_query_time(call, "to", &query->to, err) < 0)
        return -1;
    query->from = query->to - USUAL_DAYS * DAY_MS;
    return api_query_time(call, "from", &query->from, err);
}

/* Of a text as the store has it. Goes with the call. */
static const char *const *labels_of(struct call *call, const char *packed)
{
    autostrings labels = {0};

    strings_unpack(packed, &labels);
    const char **list = call_alloc(call, (labels.count + 1) * sizeof *list);
    for (size_t i = 0; i < labels.count; i++)
        list[i] = call_print(call, "%s", labels.items[i]);
    return list;
}

static struct usage_answer answer_of(struct call *call, const struct usage_group_total *total,
                                     enum usage_group by)
{
    return (struct usage_answer){
        .day_at = total->day_at,
        .sandbox_id = by == USAGE_BY_SANDBOX ? total->id : NULL,
        .key_id = by == USAGE_BY_KEY ? total->id : NULL,
        .labels = by == USAGE_BY_LABEL ? labels_of(call, total->id) : NULL,
        .runs = total->used.executions,
        .cpu_ms = total->used.cpu_ms,
        .memory_byte_seconds = usage_byte_seconds(total->used.memory_mib_ms),
        .egress_bytes = total->used.egress_bytes,
        .disk_bytes = total->disk_bytes,
        .has_disk = total->disk_bytes != 0,
    };
}

/* GET /api/v1/usage */
static int get_usage(struct call *call, struct error *err)
{
    autoclear(usage_infos) found = {0};
    struct usage_query query;

    if (read_usage_query(call, &query, err) < 0 ||
        usage_report(call->core->sandboxes, &call->actor, &query, &found, err) < 0)
        return -1;
    size_t count = found.count > ENTRIES ? ENTRIES : found.count;
    struct usage_answer *items = call_alloc(call, count * sizeof *items);
    for (size_t i = 0; i < count; i++)
        items[i] = answer_of(call, &found.items[i], query.by);
    const struct report_answer answer = {
        .from = query.from - query.from % DAY_MS,
        .to = query.to,
        .by = groups[query.by],
        .items = {items, count},
        .is_cut = found.count > count,
    };
    return api_answer(call, 200, report_fields, &answer);
}

const struct route api_usage_routes[] = {
    {"GET", API_TOP "/usage", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_usage,
     .summary = "what was used, by day, sandbox, key or label", .query = report_parameters,
     .answers = report_answers, .needs = SCOPE_READ},
    {0},
};
