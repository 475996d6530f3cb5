/* SPDX-License-Identifier: Apache-2.0 */
/* What routes answer; see aionis_answers.h. */
#include "front/aionis/aionis_answers.h"

static const struct answer_field identity_fields[] = {
    {"tenant_id", ANSWER_TEXT, .is_needed = true},
    {"scope", ANSWER_TEXT, .is_needed = true},
    {0},
};
static const struct answer_wrap flat = {.members = identity_fields};

const struct answer_field aionis_failure[] = {
    {"status", ANSWER_INTEGER},
    {"error", ANSWER_TEXT, .is_needed = true, .help = "a word for programs"},
    {"message", ANSWER_TEXT, .is_needed = true, .help = "a sentence for people"},
    {"details", ANSWER_JSON},
    {"issues", ANSWER_JSON, .help = "what is wrong with the body, one by one"},
    {"request_id", ANSWER_TEXT, .is_needed = true, .help = "what the log calls the request"},
    {0},
};

const struct route_answer aionis_empty_answers[] = {{200, NULL}, {0}};
const struct route_answer aionis_preflight_answers[] = {{204, NULL}, {0}};

static const struct answer_field session_members[] = {
    {"session_id", ANSWER_TEXT, .is_needed = true},
    {"profile", ANSWER_TEXT, .is_needed = true},
    {"metadata", ANSWER_JSON, .is_needed = true},
    {"expires_at", ANSWER_TIME, .is_nullable = true},
    {"created_at", ANSWER_TIME, .is_needed = true},
    {"updated_at", ANSWER_TIME, .is_needed = true},
    {0},
};
static const struct answer_field session_fields[] = {
    {"session", ANSWER_MAP, .is_needed = true, .fields = session_members},
    {0},
};
const struct route_answer aionis_session_answers[] = {{200, session_fields, &flat}, {0}};

// ---- runs ----

static const char *const statuses[] = {"queued", "running",  "succeeded",
                                       "failed", "canceled", "timeout"};
static const struct answer_field output_fields[] = {
    {"stdout", ANSWER_TEXT, .is_needed = true},
    {"stderr", ANSWER_TEXT, .is_needed = true},
    {"truncated", ANSWER_BOOL},
    {0},
};
static const struct answer_field time_fields[] = {
    {"started_at", ANSWER_TIME, .is_nullable = true},
    {"finished_at", ANSWER_TIME, .is_nullable = true},
    {"created_at", ANSWER_TIME, .is_nullable = true},
    {"updated_at", ANSWER_TIME, .is_nullable = true},
    {0},
};
static const struct answer_field run_members[] = {
    {"run_id", ANSWER_TEXT, .is_needed = true},
    {"session_id", ANSWER_TEXT, .is_needed = true},
    {"project_id", ANSWER_TEXT, .is_nullable = true},
    {"planner_run_id", ANSWER_TEXT, .is_nullable = true},
    {"decision_id", ANSWER_TEXT, .is_nullable = true},
    {"action", ANSWER_JSON, .is_needed = true},
    {"mode", ANSWER_TEXT, .is_needed = true},
    {"status", ANSWER_TEXT, .is_needed = true, .words = statuses,
     .n_words = sizeof statuses / sizeof *statuses},
    {"timeout_ms", ANSWER_INTEGER},
    {"output", ANSWER_MAP, .is_needed = true, .fields = output_fields},
    {"exit_code", ANSWER_INTEGER, .is_nullable = true},
    {"error", ANSWER_TEXT, .is_nullable = true},
    {"cancel_requested", ANSWER_BOOL},
    {"cancel_reason", ANSWER_TEXT, .is_nullable = true},
    {"result", ANSWER_JSON, .is_needed = true},
    {"result_summary", ANSWER_JSON, .is_needed = true},
    {"", ANSWER_BESIDE, .fields = time_fields},
    {0},
};
static const struct answer_field run_fields[] = {
    {"run", ANSWER_MAP, .is_needed = true, .fields = run_members},
    {0},
};
static const struct answer_field execute_fields[] = {
    {"accepted", ANSWER_BOOL},
    {"run", ANSWER_MAP, .is_needed = true, .fields = run_members},
    {0},
};
static const struct answer_field logs_members[] = {
    {"tail_bytes", ANSWER_INTEGER},
    {"", ANSWER_BESIDE, .fields = output_fields},
    {"summary", ANSWER_JSON, .is_needed = true},
    {0},
};
static const struct answer_field logs_fields[] = {
    {"run_id", ANSWER_TEXT, .is_needed = true},
    {"status", ANSWER_TEXT, .is_needed = true},
    {"logs", ANSWER_MAP, .is_needed = true, .fields = logs_members},
    {0},
};
static const struct answer_field artifact_fields[] = {
    {"artifact", ANSWER_JSON, .is_needed = true, .help = "sandbox_run_artifact_v2"},
    {0},
};
static const struct answer_field cancel_fields[] = {
    {"run_id", ANSWER_TEXT, .is_needed = true},
    {"status", ANSWER_TEXT, .is_needed = true},
    {"cancel_requested", ANSWER_BOOL},
    {"cancel_reason", ANSWER_TEXT, .is_nullable = true},
    {0},
};
const struct route_answer aionis_execute_answers[] = {{200, execute_fields, &flat}, {0}};
const struct route_answer aionis_run_answers[] = {{200, run_fields, &flat}, {0}};
const struct route_answer aionis_logs_answers[] = {{200, logs_fields, &flat}, {0}};
const struct route_answer aionis_artifact_answers[] = {{200, artifact_fields, &flat}, {0}};
const struct route_answer aionis_cancel_answers[] = {{200, cancel_fields, &flat}, {0}};
