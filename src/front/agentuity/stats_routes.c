/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of the organisation's sandboxes: what they do now, and what they have used within a time. */
#include "core/sandbox/statistics.h"
#include "front/agentuity/agentuity_impl.h"
#include "web/instant.h"
#include "front/agentuity/render.h"

#include <string.h>

struct numbers {
    struct statistics now;
    int64_t memory_byte_seconds;
};
#define AT(member) offsetof(struct numbers, member)
static const struct answer_field number_fields[] = {
    {"totalActive", ANSWER_INTEGER, AT(now.active)},
    {"running", ANSWER_INTEGER, AT(now.running)},
    {"idle", ANSWER_INTEGER, AT(now.idle)},
    {"creating", ANSWER_INTEGER, AT(now.creating)},
    {"totalExecutions", ANSWER_INTEGER, AT(now.used.executions)},
    {"totalCpuTimeMs", ANSWER_INTEGER, AT(now.used.cpu_ms)},
    {"totalMemoryByteSec", ANSWER_INTEGER, AT(memory_byte_seconds)},
    {"totalNetworkEgressBytes", ANSWER_INTEGER, AT(now.used.egress_bytes)},
    {0},
};
#undef AT
struct services {
    const struct numbers *sandbox; // NULL: not asked for
};
static const struct answer_field service_fields[] = {
    {"sandbox", ANSWER_MAP_AT, offsetof(struct services, sandbox), .fields = number_fields},
    {0},
};
static const struct answer_field statistics_fields[] = {
    {"services", ANSWER_MAP, .is_needed = true, .fields = service_fields},
    {0},
};
static const struct route_answer answers_statistics[] = {{200, statistics_fields, &answers_data},
                                                         {0}};

static int read_time(const struct query *query, const char *name, int64_t *out, struct error *err)
{
    const char *text = query_text(query, name);

    return text ? instant_parse(text, name, out, err) : 0;
}

/* GET /services/stats/{orgId}: a key's own organisation, whatever is named. */
static int get_statistics(struct call *call, struct error *err)
{
    const char *service = query_text(call->query, "service");
    struct numbers numbers = {0};
    int64_t from = 0, to = 0;

    if (read_time(call->query, "start", &from, err) < 0 ||
        read_time(call->query, "end", &to, err) < 0 ||
        statistics_get(call->core->sandboxes, &call->actor, from, to, &numbers.now, err) < 0)
        return -1;
    numbers.memory_byte_seconds = render_byte_seconds(numbers.now.used.memory_mib_ms);
    bool is_asked = !service || strcmp(service, "sandbox") == 0;
    struct services services = {is_asked ? &numbers : NULL};
    return envelope_answer(call, 200, statistics_fields, &services);
}

static const struct parameter get_parameters[] = {
    {"service", PARAMETER_TEXT, NULL, "'sandbox', the only one there is"},
    {"start", PARAMETER_TEXT, NULL, "count from then on; ISO 8601"},
    {"end", PARAMETER_TEXT, NULL, "and until then"},
    {0},
};

const struct route agentuity_stats_routes[] = {
    {"GET", "/services/stats/{orgId}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_statistics,
     "what the sandboxes do and have used", .query = get_parameters, .answers = answers_statistics},
    {0},
};
