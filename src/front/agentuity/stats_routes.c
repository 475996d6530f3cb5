/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of the organisation's sandboxes: what they do now, and what they have used within a time. */
#include "core/sandbox/statistics.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/instant.h"
#include "front/agentuity/render.h"

#include <string.h>

static void write_sandboxes(struct json_writer *json, const struct statistics *now)
{
    json_key(json, "sandbox");
    json_map_begin(json);
    member_integer(json, "totalActive", now->active);
    member_integer(json, "running", now->running);
    member_integer(json, "idle", now->idle);
    member_integer(json, "creating", now->creating);
    member_integer(json, "totalExecutions", now->used.executions);
    member_integer(json, "totalCpuTimeMs", now->used.cpu_ms);
    member_integer(json, "totalMemoryByteSec", render_byte_seconds(now->used.memory_mib_ms));
    member_integer(json, "totalNetworkEgressBytes", now->used.egress_bytes);
    json_map_end(json);
}

static int read_time(const struct query *query, const char *name, int64_t *out, struct error *err)
{
    const char *text = query_text(query, name);

    return text ? instant_parse(text, name, out, err) : 0;
}

/* GET /services/stats/{orgId}: a key's own organisation, whatever is named. */
static int get_statistics(struct call *call, struct error *err)
{
    const char *service = query_text(call->query, "service");
    struct statistics now = {0};
    int64_t from = 0, to = 0;
    autoreply reply = {0};

    if (read_time(call->query, "start", &from, err) < 0 ||
        read_time(call->query, "end", &to, err) < 0 ||
        statistics_get(call->core->sandboxes, &call->actor, from, to, &now, err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "services");
    json_map_begin(&reply.json);
    if (!service || strcmp(service, "sandbox") == 0)
        write_sandboxes(&reply.json, &now);
    json_map_end(&reply.json);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
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
