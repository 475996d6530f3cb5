/* SPDX-License-Identifier: Apache-2.0 */
/* The front's part of /health; see health.h. */
#include "front/aionis/health.h"

#include "front/aionis/answer.h"

static void put_server(struct json_writer *json)
{
    put_bool(json, "ok", true);
    json_key(json, "runtime");
    json_map_begin(json);
    put_text(json, "edition", "lite");
    put_text(json, "mode", "local");
    json_map_end(json);
    json_key(json, "storage");
    json_map_begin(json);
    put_text(json, "backend", "lite_sqlite");
    json_map_end(json);
}

static void put_remote(struct json_writer *json)
{
    put_bool(json, "remote_executor_configured", false);
    put_null(json, "remote_executor_timeout_ms");
    put_null(json, "remote_executor_allowlist_count");
    put_null(json, "remote_executor_egress_cidr_count");
    put_null(json, "remote_executor_deny_private_ips");
    put_null(json, "remote_executor_mtls_enabled");
}

static void put_rest(struct json_writer *json, const struct aionis *aionis, bool is_known)
{
    const struct aionis_settings *settings = aionis->settings;

    put_integer(json, "heartbeat_interval_ms", (int64_t)settings->heartbeat_ms);
    put_integer(json, "stale_after_ms", (int64_t)settings->stale_ms);
    put_integer(json, "recovery_poll_interval_ms", (int64_t)settings->recovery_poll_ms);
    json_key(json, "tenant_budget");
    json_map_begin(json);
    put_integer(json, "window_hours", (int64_t)settings->budget_window_ms / 3600000);
    put_integer(json, "tenant_count", is_known ? (int64_t)budgets_tenants(aionis->budgets) : 0);
    json_map_end(json);
    json_key(json, "remote_egress");
    json_map_begin(json);
    put_integer(json, "cidr_count", 0);
    put_bool(json, "deny_private_ips", true);
    json_map_end(json);
    json_key(json, "artifact_object_store");
    json_map_begin(json);
    put_bool(json, "base_uri_configured", settings->object_store != NULL);
    json_map_end(json);
}

void health_write(const struct front *front, struct core *core, bool is_known,
                  struct json_writer *json)
{
    const struct aionis *aionis = front->settings;
    struct core_health health = {0}; // clients want the members; whoever has no key gets no counts

    if (is_known)
        core_health(core, &health);
    put_server(json);
    json_key(json, "sandbox");
    json_map_begin(json);
    put_bool(json, "enabled", aionis->is_enabled);
    put_text(json, "mode", AIONIS_EXECUTOR);
    put_integer(json, "queue_depth", health.queued);
    put_integer(json, "active_runs", health.commands);
    put_integer(json, "max_concurrency", aionis->settings->queue_at_once);
    put_remote(json);
    put_rest(json, aionis, is_known);
    json_map_end(json);
}
