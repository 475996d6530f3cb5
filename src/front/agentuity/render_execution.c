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
        return info->exit.code == 0 ? "completed" : "failed";
    default:
        return "failed";
    }
}

// ---- tables ----

struct stream_urls {
    struct answer_joined standard_output, standard_error;
};
static const struct answer_field url_fields[] = {
    {"stdoutStreamUrl", ANSWER_JOINED, offsetof(struct stream_urls, standard_output),
     .prefix = "/stream/" STREAM_PREFIX, .help = "where its output can be read"},
    {"stderrStreamUrl", ANSWER_JOINED, offsetof(struct stream_urls, standard_error),
     .prefix = "/stream/" STREAM_PREFIX},
    {0},
};

static struct stream_urls urls_of(const struct execution_info *info, const char *base_url)
{
    return (struct stream_urls){
        .standard_output = {base_url, info->stdout_stream},
        .standard_error = {base_url, info->stderr_stream},
    };
}

/* How it went: what executions and jobs have in common. */
struct outcome {
    const char *const *command;
    bool is_over;
    int64_t exit_code, started_at, ended_at;
    const char *error;
    struct stream_urls urls;
};
static const struct answer_field outcome_fields[] = {
    {"command", ANSWER_TEXTS, offsetof(struct outcome, command)},
    {"exitCode", ANSWER_INTEGER, offsetof(struct outcome, exit_code),
     .has_offset = offsetof(struct outcome, is_over), .help = "once it has ended, however"},
    {"startedAt", ANSWER_TIME, offsetof(struct outcome, started_at)},
    {"completedAt", ANSWER_TIME, offsetof(struct outcome, ended_at)},
    {"error", ANSWER_TEXT, offsetof(struct outcome, error), .help = "why it could not run"},
    {"", ANSWER_BESIDE, offsetof(struct outcome, urls), .fields = url_fields},
    {0},
};

static struct outcome outcome_of(const struct execution_info *info, const char *base_url)
{
    return (struct outcome){
        .command = info->command.argv,
        .is_over = execution_info_is_over(info),
        .exit_code = execution_info_exit_code(info), // clients take a missing one for 0
        .started_at = info->started_at,
        .ended_at = info->ended_at,
        .error = info->error,
        .urls = urls_of(info, base_url),
    };
}

struct execution_answer {
    const char *id, *sandbox_id, *type;
    enum execution_state state;
    struct outcome outcome;
    int64_t duration_ms;
    bool is_truncated, tells_truncated, is_expired;
};
static const char *const execution_type = "exec";
const struct answer_field render_execution_fields[] = {
    {"executionId", ANSWER_ID, offsetof(struct execution_answer, id), .is_needed = true,
     .prefix = EXECUTION_PREFIX},
    {"sandboxId", ANSWER_ID, offsetof(struct execution_answer, sandbox_id),
     .prefix = SANDBOX_PREFIX},
    {"type", ANSWER_TEXT, offsetof(struct execution_answer, type), .is_needed = true,
     .words = &execution_type, .n_words = 1},
    {"status", ANSWER_WORD, offsetof(struct execution_answer, state), .is_needed = true,
     .words = execution_statuses, .n_words = EXECUTION_STATES},
    {"", ANSWER_BESIDE, offsetof(struct execution_answer, outcome), .fields = outcome_fields},
    {"durationMs", ANSWER_INTEGER, offsetof(struct execution_answer, duration_ms),
     .has_offset = offsetof(struct execution_answer, outcome.is_over)},
    {"outputTruncated", ANSWER_BOOL, offsetof(struct execution_answer, is_truncated),
     .has_offset = offsetof(struct execution_answer, tells_truncated),
     .help = "whether output was dropped"},
    {"outputExpired", ANSWER_BOOL, offsetof(struct execution_answer, is_expired),
     .has_offset = offsetof(struct execution_answer, is_expired),
     .help = "output was kept for as long as it is, or gave way to newer one: it is gone"},
    {0},
};

void render_execution(struct json_writer *json, const struct execution_info *info,
                      const char *base_url)
{
    struct execution_answer answer = {
        .id = info->id,
        .sandbox_id = info->sandbox_id,
        .type = execution_type,
        .state = info->state,
        .outcome = outcome_of(info, base_url),
        .duration_ms = info->exit.duration_us / 1000,
        .is_truncated = info->exit.is_truncated,
        .is_expired = info->is_output_expired,
        .tells_truncated = execution_info_is_over(info) || info->exit.is_truncated,
    };

    answer_write(json, render_execution_fields, &answer);
}

struct job_answer {
    const char *id, *sandbox_id, *status;
    struct outcome outcome;
};
static const char *const job_statuses[] = {"pending", "running", "completed", "failed",
                                           "cancelled"};
const struct answer_field render_job_fields[] = {
    {"jobId", ANSWER_ID, offsetof(struct job_answer, id), .is_needed = true, .prefix = JOB_PREFIX},
    {"sandboxId", ANSWER_ID, offsetof(struct job_answer, sandbox_id), .prefix = SANDBOX_PREFIX},
    {"status", ANSWER_TEXT, offsetof(struct job_answer, status), .is_needed = true,
     .words = job_statuses, .n_words = ARRAY_SIZE(job_statuses)},
    {"", ANSWER_BESIDE, offsetof(struct job_answer, outcome), .fields = outcome_fields},
    {0},
};

void render_job(struct json_writer *json, const struct execution_info *info, const char *base_url)
{
    struct job_answer answer = {
        .id = info->id,
        .sandbox_id = info->sandbox_id,
        .status = job_status(info),
        .outcome = outcome_of(info, base_url),
    };

    answer_write(json, render_job_fields, &answer);
}
