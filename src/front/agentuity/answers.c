/* SPDX-License-Identifier: Apache-2.0 */
/* What routes answer; see answers.h. Rows without an offset describe what a handler writes by itself. */
#include "front/agentuity/answers.h"

#include "front/agentuity/render.h"

// ---- envelopes ----

static const struct answer_field success_fields[] = {
    {"success", ANSWER_BOOL, .help = "always true"},
    {0},
};
const struct answer_wrap answers_data = {.members = success_fields, .slot = "data"};
const struct answer_wrap answers_flat = {.members = success_fields};

static const struct answer_field execute_fields[] = {
    {"success", ANSWER_BOOL, .help = "always true"},
    {"autoResumed", ANSWER_TRUTH, .help = "it was paused, and was woken for this"},
    {0},
};
static const struct answer_wrap executed = {.members = execute_fields, .slot = "data"};

const struct answer_field answers_failure[] = {
    {"success", ANSWER_BOOL, .help = "always false"},
    {"code", ANSWER_TEXT, .is_needed = true, .help = "a word for programs: SANDBOX_NOT_FOUND"},
    {"message", ANSWER_TEXT, .is_needed = true, .help = "a sentence for people"},
    {"requestId", ANSWER_TEXT, .is_needed = true, .help = "what the log calls the request"},
    {0},
};

const struct route_answer answers_bare[] = {{200, NULL, &answers_flat}, {0}};
const struct route_answer answers_bytes[] = {{200, .content = "application/octet-stream"}, {0}};

// ---- sandboxes and commands ----

static const struct answer_field sandboxes_fields[] = {
    {"sandboxes", ANSWER_LIST, .is_needed = true, .fields = render_entry_fields},
    {"total", ANSWER_INTEGER, .help = "of all pages"},
    {0},
};
static const struct answer_field env_fields[] = {
    {"env", ANSWER_TEXT_MAP, .is_needed = true},
    {0},
};
static const struct answer_field executions_fields[] = {
    {"executions", ANSWER_LIST, .is_needed = true, .fields = render_execution_fields},
    {0},
};
static const struct answer_field jobs_fields[] = {
    {"jobs", ANSWER_LIST, .is_needed = true, .fields = render_job_fields},
    {0},
};
static const struct answer_field events_fields[] = {
    {"events", ANSWER_LIST, .is_needed = true, .fields = render_event_fields},
    {0},
};
const struct route_answer answers_sandbox[] = {{200, render_sandbox_fields, &answers_data}, {0}};
const struct route_answer answers_sandboxes[] = {{200, sandboxes_fields, &answers_data}, {0}};
const struct route_answer answers_state[] = {{200, render_state_fields, &answers_data}, {0}};
const struct route_answer answers_env[] = {{200, env_fields, &answers_data}, {0}};
const struct route_answer answers_paused[] = {{200, render_paused_fields, &answers_flat}, {0}};
const struct route_answer answers_execution[] = {{200, render_execution_fields, &executed}, {0}};
const struct route_answer answers_executions[] = {{200, executions_fields, &answers_data}, {0}};
const struct route_answer answers_job_made[] = {{201, render_job_fields, &answers_data}, {0}};
const struct route_answer answers_job[] = {{200, render_job_fields, &answers_data}, {0}};
const struct route_answer answers_jobs[] = {{200, jobs_fields, &answers_data}, {0}};
const struct route_answer answers_events[] = {{200, events_fields, &answers_data}, {0}};

// ---- checkpoints, snapshots ----

static const struct answer_field checkpoints_fields[] = {
    {"checkpoints", ANSWER_LIST, .is_needed = true, .fields = render_checkpoint_fields},
    {0},
};
static const struct answer_field snapshots_fields[] = {
    {"snapshots", ANSWER_LIST, .is_needed = true, .fields = render_snapshot_fields},
    {"total", ANSWER_INTEGER, .help = "of all pages"},
    {0},
};
static const struct answer_field lineage_fields[] = {
    {"lineage", ANSWER_LIST, .is_needed = true, .fields = render_ancestor_fields},
    {"total", ANSWER_INTEGER},
    {0},
};
const struct route_answer answers_checkpoint[] = {{201, render_checkpoint_fields, &answers_data},
                                                  {0}};
const struct route_answer answers_checkpoints[] = {{200, checkpoints_fields, &answers_data}, {0}};
const struct route_answer answers_snapshot_made[] = {{201, render_snapshot_fields, &answers_data},
                                                     {0}};
const struct route_answer answers_snapshot[] = {{200, render_snapshot_fields, &answers_data}, {0}};
const struct route_answer answers_snapshots[] = {{200, snapshots_fields, &answers_data}, {0}};
const struct route_answer answers_lineage[] = {{200, lineage_fields, &answers_data}, {0}};

// ---- files ----

static const struct answer_field written_fields[] = {
    {"filesWritten", ANSWER_INTEGER},
    {0},
};
static const struct answer_field found_fields[] = {
    {"found", ANSWER_BOOL, .help = "whether there was one"},
    {0},
};
static const struct answer_field file_fields[] = {
    {"path", ANSWER_TEXT, .is_needed = true},
    {"size", ANSWER_INTEGER},
    {"isDir", ANSWER_BOOL},
    {"mode", ANSWER_TEXT, .is_needed = true, .help = "permissions, octal"},
    {"modTime", ANSWER_TIME, .is_needed = true},
    {"isSymlink", ANSWER_TRUTH},
    {"linkTarget", ANSWER_TEXT},
    {0},
};
static const struct answer_field files_fields[] = {
    {"files", ANSWER_LIST, .is_needed = true, .fields = file_fields},
    {0},
};
const struct route_answer answers_written[] = {{200, written_fields, &answers_data}, {0}};
const struct route_answer answers_found[] = {{200, found_fields, &answers_flat}, {0}};
const struct route_answer answers_files[] = {{200, files_fields, &answers_data}, {0}};
