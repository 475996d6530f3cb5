/* SPDX-License-Identifier: Apache-2.0 */
/* Executions and jobs as JSON; see render.h. */
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/render.h"

static const char *const execution_statuses[EXECUTION_STATES] = {
    [EXECUTION_QUEUED] = "queued",       [EXECUTION_RUNNING] = "running",
    [EXECUTION_COMPLETED] = "completed", [EXECUTION_FAILED] = "failed",
    [EXECUTION_TIMED_OUT] = "timeout",   [EXECUTION_CANCELLED] = "cancelled",
};

const char *render_execution_status(enum execution_state state)
{
    return execution_statuses[state];
}

/* A job that ended badly is failed, however that happened. */
static const char *job_status(const struct execution_info *info)
{
    switch (info->state) {
    case EXECUTION_QUEUED:
        return "pending";
    case EXECUTION_RUNNING:
        return "running";
    case EXECUTION_CANCELLED:
        return "cancelled";
    case EXECUTION_COMPLETED:
        return info->exit_code == 0 ? "completed" : "failed";
    default:
        return "failed";
    }
}

/* What stands for a code where the command never gave one: clients take a missing one for 0. */
static int64_t exit_code_of(const struct execution_info *info)
{
    if (info->exit_code >= 0)
        return info->exit_code;
    if (info->signal > 0)
        return 128 + info->signal;
    if (info->cause == EXECUTION_NOT_FOUND)
        return 127;
    if (info->cause == EXECUTION_NOT_RUN)
        return 126;
    if (info->state == EXECUTION_TIMED_OUT)
        return 124;
    return info->state == EXECUTION_CANCELLED ? 137 : 1;
}

void render_stream_urls(struct json_writer *json, const struct execution_info *info,
                        const char *base_url)
{
    member_stream_url(json, "stdoutStreamUrl", base_url, info->stdout_stream);
    member_stream_url(json, "stderrStreamUrl", base_url, info->stderr_stream);
}

/* How it went: members that executions and jobs have in common. */
static void write_outcome(struct json_writer *json, const struct execution_info *info,
                          const char *base_url)
{
    member_texts(json, "command", info->command.argv);
    if (execution_info_is_over(info))
        member_integer(json, "exitCode", exit_code_of(info));
    member_time(json, "startedAt", info->started_at);
    member_time(json, "completedAt", info->ended_at);
    member_text(json, "error", info->error);
    render_stream_urls(json, info, base_url);
}

void render_execution(struct json_writer *json, const struct execution_info *info,
                      const char *base_url)
{
    bool is_over = execution_info_is_over(info);

    json_map_begin(json);
    member_id(json, "executionId", EXECUTION_PREFIX, info->id);
    member_id(json, "sandboxId", SANDBOX_PREFIX, info->sandbox_id);
    member_text(json, "type", "exec");
    member_text(json, "status", render_execution_status(info->state));
    write_outcome(json, info, base_url);
    if (is_over)
        member_integer(json, "durationMs", info->duration_us / 1000);
    if (is_over || info->is_truncated)
        member_bool(json, "outputTruncated", info->is_truncated);
    json_map_end(json);
}

void render_job(struct json_writer *json, const struct execution_info *info, const char *base_url)
{
    json_map_begin(json);
    member_id(json, "jobId", JOB_PREFIX, info->id);
    member_id(json, "sandboxId", SANDBOX_PREFIX, info->sandbox_id);
    member_text(json, "status", job_status(info));
    write_outcome(json, info, base_url);
    json_map_end(json);
}
