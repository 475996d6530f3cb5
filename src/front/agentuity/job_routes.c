/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: commands in the background, any number beside an execution. */
#include "core/execution/execution.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/body_parts.h"
#include "front/agentuity/page.h"
#include "front/agentuity/render.h"
#include "web/poll.h"

#include <string.h>

static const enum execution_kind job_kind = EXECUTION_JOB;

struct job_body {
    const char **command;
    struct stream_body streams;
};
static const struct field job_fields[] = {
    {"command", FIELD_TEXTS, offsetof(struct job_body, command), .is_needed = true,
     .help = "program and arguments; no shell"},
    {"streams", FIELD_MAP, offsetof(struct job_body, streams), .fields = body_job_stream_fields},
    {0},
};

static int answer_job(struct response *response, int status, const struct execution_info *info,
                      const char *base_url)
{
    autoreply reply = {0};

    envelope_data(&reply);
    render_job(&reply.json, info, base_url);
    return envelope_send(&reply, response, status);
}

/* POST /sandbox/sandboxes/{id}/jobs */
static int create_job(struct call *call, struct error *err)
{
    struct job_body body = {0};
    struct execution_request want = {
        .kind = EXECUTION_JOB}; // without a time limit: the sandbox's is for executions
    autoclear(execution_info) info = {0};
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        fields_read(call->body, job_fields, &body, err) < 0)
        return -1;
    want.command.argv = (const char *const *)body.command;
    if (body_check_command(want.command.argv, "command", err) < 0 ||
        body_streams(&body.streams, "streams", &want, err) < 0 ||
        call_once(call, &want.once, err) < 0 ||
        execution_start(call->core->executions, &call->actor, id, &want, &info, err) < 0)
        return -1;
    return answer_job(call->response, 201, &info, call_base_url(call));
}

/* GET /sandbox/sandboxes/{id}/jobs */
static int list_jobs(struct call *call, struct error *err)
{
    struct execution_filter filter = {.kind = &job_kind};
    autoclear(execution_infos) found = {0};
    autoreply reply = {0};

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &filter.sandbox_id, err) < 0 ||
        page_read(call->query, &filter.page, err) < 0 ||
        execution_list(call->core->executions, &call->actor, &filter, &found, err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "jobs");
    json_list_begin(&reply.json);
    for (size_t i = 0; i < found.count; i++)
        render_job(&reply.json, &found.items[i], call_base_url(call));
    json_list_end(&reply.json);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

/* The job of the path, which must be of the sandbox of the path. */
static int find_job(struct call *call, struct execution_info *out, struct error *err)
{
    autoclear(execution_info) info = {0};
    const char *sandbox, *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &sandbox, err) < 0 ||
        call_id(call, 1, JOB_PREFIX, "job", &id, err) < 0 ||
        execution_get(call->core->executions, &call->actor, id, &job_kind, &info, err) < 0)
        return -1;
    if (strcmp(info.sandbox_id, sandbox) != 0)
        return error_refuse(err, ERROR_NOT_FOUND, "job",
                            "job '" JOB_PREFIX "%s' not found in sandbox '" SANDBOX_PREFIX "%s'",
                            id, sandbox);
    *out = info;
    info = (struct execution_info){0};
    return 0;
}

/* GET /sandbox/sandboxes/{id}/jobs/{jobId} */
static int get_job(struct call *call, struct error *err)
{
    autoclear(execution_info) info = {0};

    if (find_job(call, &info, err) < 0)
        return -1;
    return answer_job(call->response, 200, &info, call_base_url(call));
}

static enum poll_look tell_job(const struct poll *poll, bool is_last,
                               const struct execution_info *info)
{
    if (!is_last && !execution_info_is_over(info))
        return POLL_WAITS;
    answer_job(poll->call->response, 200, info, poll_base_url(poll));
    return POLL_ANSWERED;
}

static int look_at_job(const struct poll *poll, bool is_last, struct error *err)
{
    autoclear(execution_info) info = {0};

    if (execution_get(poll->call->core->executions, &poll->call->actor, poll->id, &job_kind, &info,
                      err) < 0)
        return -1;
    return tell_job(poll, is_last, &info);
}

static enum poll_look look_at_job_quick(const struct poll *poll, bool is_last)
{
    autoclear(execution_info) info = {0};
    struct error err = {0};

    if (execution_get_quick(poll->call->core->executions, &poll->call->actor, poll->id, &job_kind,
                            &info, &err) != 1)
        return POLL_ELSEWHERE;
    return tell_job(poll, is_last, &info);
}

static const struct poll_kind job_poll = {.look_quick = look_at_job_quick, .look = look_at_job};

#define STOP_MS 15000 // longer than a job that does not want to go is given

/* DELETE /sandbox/sandboxes/{id}/jobs/{jobId}: the answer is the job as it ended. */
static int stop(struct call *call, struct error *err)
{
    bool is_forced = query_bool(call->query, "force", false);
    autoclear(execution_info) info = {0}, stopped = {0};

    if (find_job(call, &info, err) < 0 ||
        execution_stop(call->core->executions, &call->actor, info.id, &job_kind, is_forced,
                       "stopped", &stopped, err) < 0)
        return -1;
    return poll_call(call, &job_poll, info.id, STOP_MS, NULL, 0, err);
}

static const struct parameter list_parameters[] = {
    PAGE_LIMIT_PARAMETER, PAGE_OFFSET_PARAMETER, {0}};
static const struct parameter stop_parameters[] = {
    {"force", PARAMETER_BOOL, NULL, "kill it at once instead of asking it to end first"},
    {0},
};

const struct route agentuity_job_routes[] = {
    {"POST", "/sandbox/sandboxes/{id}/jobs", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, create_job,
     "starts a command in the background", .fields = job_fields, .answers = answers_job_made},
    {"GET", "/sandbox/sandboxes/{id}/jobs", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_jobs,
     "jobs of a sandbox, the newest first", .query = list_parameters, .answers = answers_jobs},
    {"GET", "/sandbox/sandboxes/{id}/jobs/{jobId}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_job,
     "a job's state", .answers = answers_job},
    {"DELETE", "/sandbox/sandboxes/{id}/jobs/{jobId}", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, stop,
     "ends a job", .query = stop_parameters, .answers = answers_job},
    {0},
};
