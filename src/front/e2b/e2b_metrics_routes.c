/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses: over the control plane, and as envd tells it. */
#include "core/core.h"
#include "core/sandbox/gauge.h"
#include "core/sandbox/sandbox.h"
#include "front/e2b/e2b_impl.h"

#include <stdio.h>

static void member_percent(struct json_writer *json, const char *name, double percent)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%.2f", percent);

    json_key(json, name);
    json_raw(json, text, (size_t)length);
}

static int64_t cpus_of(const struct sandbox_info *info)
{
    int64_t millis = info->limits.cpu_millicores;

    return millis > 1000 ? (millis + 999) / 1000 : 1;
}

static void write_gauge(struct json_writer *json, const struct sandbox_info *info,
                        const struct sandbox_gauge *gauge)
{
    json_map_begin(json);
    e2b_member_time(json, "timestamp", gauge->now);
    e2b_member_number(json, "timestampUnix", gauge->now / 1000);
    e2b_member_number(json, "cpuCount", cpus_of(info));
    member_percent(json, "cpuUsedPct", gauge->cpu_percent);
    e2b_member_number(json, "memUsed", gauge->memory_bytes);
    e2b_member_number(json, "memTotal", info->limits.memory_bytes);
    e2b_member_number(json, "memCache", 0);
    e2b_member_number(json, "diskUsed", gauge->disk_bytes);
    e2b_member_number(json, "diskTotal", info->limits.disk_bytes);
    json_map_end(json);
}

/* GET /sandboxes/{id}/metrics: as it was and is now, where that is in the time asked for. */
static int get_metrics(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    autoclear(sandbox_gauges) past = {0};
    struct sandbox_gauge now;
    autoreply reply = {0};
    int64_t start = query_integer(call->query, "start", 0);
    int64_t end = query_integer(call->query, "end", INT64_MAX);

    if (e2b_get(call, &info, err) < 0 ||
        sandbox_gauges(call->core->sandboxes, &call->actor, info.id, &past, err) < 0 ||
        sandbox_gauge(call->core->sandboxes, &call->actor, info.id, &now, err) < 0)
        return -1;
    reply_init(&reply);
    json_list_begin(&reply.json);
    for (size_t i = 0; i <= past.count; i++) {
        const struct sandbox_gauge *gauge = i < past.count ? &past.items[i] : &now;
        bool is_meant = gauge->now / 1000 >= start && gauge->now / 1000 <= end;
        if (is_meant && (i < past.count || !e2b_is_paused(&info)))
            write_gauge(&reply.json, &info, gauge);
    }
    json_list_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

static const struct parameter metrics_query[] = {
    {"start", PARAMETER_INTEGER},
    {"end", PARAMETER_INTEGER},
    {0},
};

/* GET /metrics of envd */
static int get_envd_metrics(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    struct sandbox_gauge gauge;
    autoreply reply = {0};
    struct json_writer *json = &reply.json;
    const char *id;

    if (envd_enter(call, &id, err) < 0 ||
        sandbox_get(call->core->sandboxes, &call->actor, id, false, &info, err) < 0 ||
        sandbox_gauge(call->core->sandboxes, &call->actor, id, &gauge, err) < 0)
        return -1;
    reply_init(&reply);
    json_map_begin(json);
    e2b_member_number(json, "ts", gauge.now / 1000);
    e2b_member_number(json, "cpu_count", cpus_of(&info));
    member_percent(json, "cpu_used_pct", gauge.cpu_percent);
    e2b_member_number(json, "mem_total", info.limits.memory_bytes);
    e2b_member_number(json, "mem_used", gauge.memory_bytes);
    e2b_member_number(json, "mem_cache", 0);
    e2b_member_number(json, "mem_total_mib", info.limits.memory_bytes >> 20);
    e2b_member_number(json, "mem_used_mib", gauge.memory_bytes >> 20);
    e2b_member_number(json, "disk_used", gauge.disk_bytes);
    e2b_member_number(json, "disk_total", info.limits.disk_bytes);
    json_map_end(json);
    return e2b_answer(call, &reply, 200);
}

const struct route e2b_metrics_routes[] = {
    {"GET", "/sandboxes/{id}/metrics", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, get_metrics,
     "what it uses", .query = metrics_query, .needs = SCOPE_READ, .is_undescribed = true,
     .reach = REACH_COMMON},
    {0},
};
const struct route envd_metrics_routes[] = {
    {"GET", "/metrics", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, get_envd_metrics,
     "what the sandbox uses", .needs = SCOPE_READ, .is_undescribed = true, .reach = REACH_SANDBOX},
    {0},
};
