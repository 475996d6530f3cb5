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
static const char *job_status(const struct execution_record *record)
{
    switch (record->state) {
    case EXECUTION_QUEUED:
        return "pending";
    case EXECUTION_RUNNING:
        return "running";
    case EXECUTION_CANCELLED:
        return "cancelled";
    case EXECUTION_COMPLETED:
        return record->exit_code == 0 ? "completed" : "failed";
    default:
        return "failed";
    }
}

/* What stands for a code where the command never gave one: clients take a missing one for 0. */
static int64_t code_of(const struct execution_record *record)
{
    if (record->exit_code >= 0)
        return record->exit_code;
    if (record->signal > 0)
        return 128 + record->signal;
    if (record->cause == EXECUTION_NOT_FOUND)
        return 127;
    if (record->cause == EXECUTION_NOT_RUN)
        return 126;
    if (record->state == EXECUTION_TIMED_OUT)
        return 124;
    return record->state == EXECUTION_CANCELLED ? 137 : 1;
}

void render_stream_urls(struct json_writer *json, const struct execution_record *record,
                        const char *base_url)
{
    member_stream_url(json, "stdoutStreamUrl", base_url, record->stdout_stream);
    member_stream_url(json, "stderrStreamUrl", base_url, record->stderr_stream);
}

/* How it went: members that executions and jobs have in common. */
static void write_outcome(struct json_writer *json, const struct execution_record *record,
                          const char *base_url)
{
    member_texts(json, "command", record->command);
    if (execution_is_over(record))
        member_integer(json, "exitCode", code_of(record));
    member_time(json, "startedAt", record->started_at);
    member_time(json, "completedAt", record->ended_at);
    member_text(json, "error", record->error);
    render_stream_urls(json, record, base_url);
}

void render_execution(struct json_writer *json, const struct execution_record *record,
                      const char *base_url)
{
    bool is_over = execution_is_over(record);

    json_map_begin(json);
    member_id(json, "executionId", EXECUTION_PREFIX, record->id);
    member_id(json, "sandboxId", SANDBOX_PREFIX, record->sandbox_id);
    member_text(json, "type", "exec");
    member_text(json, "status", render_execution_status(record->state));
    write_outcome(json, record, base_url);
    if (is_over)
        member_integer(json, "durationMs", record->duration_us / 1000);
    if (is_over || record->is_truncated)
        member_bool(json, "outputTruncated", record->is_truncated);
    json_map_end(json);
}

void render_job(struct json_writer *json, const struct execution_record *record,
                const char *base_url)
{
    json_map_begin(json);
    member_id(json, "jobId", JOB_PREFIX, record->id);
    member_id(json, "sandboxId", SANDBOX_PREFIX, record->sandbox_id);
    member_text(json, "status", job_status(record));
    write_outcome(json, record, base_url);
    json_map_end(json);
}
