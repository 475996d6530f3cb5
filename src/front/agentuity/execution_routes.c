/* SPDX-License-Identifier: Apache-2.0 */
/* Executions: start a command, wait for it, list them. */
#include "core/execution/execution.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/body_parts.h"
#include "front/agentuity/page.h"
#include "front/agentuity/render.h"
#include "web/poll.h"

struct execute_body {
    const char **command;
    struct field_list files;
    struct duration_field timeout;
    struct stream_body stream;
};
static const struct field execute_fields[] = {
    {"command", FIELD_TEXTS, offsetof(struct execute_body, command), .is_needed = true,
     .help = "program and arguments; no shell"},
    {"files", FIELD_LIST, offsetof(struct execute_body, files), .fields = body_file_fields,
     .item_size = sizeof(struct file_body), .maximum = BODY_FILES_MAX, .help = "written first"},
    {"timeout", FIELD_DURATION, offsetof(struct execute_body, timeout),
     .help = "instead of the sandbox's"},
    {"stream", FIELD_MAP, offsetof(struct execute_body, stream), .fields = body_stream_fields},
    {0},
};

static int fill_request(struct call *call, const struct execute_body *body,
                        struct execution_request *out, struct error *err)
{
    *out = (struct execution_request){
        .kind = EXECUTION_COMMAND,
        .command.argv = (const char *const *)body->command,
        .command.timeout_ms = body->timeout.text ? (int64_t)body->timeout.ms : EXECUTION_DEFAULT,
    };
    body_files(call, &body->files, NULL, &out->files, &out->n_files);
    if (body_check_command(out->command.argv, "command", err) < 0 ||
        body_streams(&body->stream, "stream", out, err) < 0)
        return -1;
    return call_once(call, &out->once, err);
}

static int answer_execution(struct response *response, const struct execution_info *info,
                            const char *base_url, bool was_paused)
{
    autoreply reply = {0};

    envelope_data(&reply);
    render_execution(&reply.json, info, base_url);
    if (was_paused)
        member_bool(&reply.json, "autoResumed", true);
    return envelope_send(&reply, response, 200);
}

/* POST /sandbox/{id}/execute */
static int execute(struct call *call, struct error *err)
{
    struct execute_body body = {0};
    struct execution_request want;
    autoclear(execution_info) info = {0};
    bool was_paused = false;
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        fields_read(call->body, execute_fields, &body, err) < 0 ||
        fill_request(call, &body, &want, err) < 0 ||
        execution_start_awake(call->core->executions, &call->actor, id, &want, &info, &was_paused,
                              err) < 0)
        return -1;
    return answer_execution(call->response, &info, call_base_url(call), was_paused);
}

static const enum execution_kind command_kind = EXECUTION_COMMAND;

static enum poll_look tell_execution(const struct poll *poll, bool is_last,
                                     const struct execution_info *info)
{
    if (!is_last && !execution_info_is_over(info))
        return POLL_WAITS;
    call_about_sandbox(poll->call, SANDBOX_PREFIX, info->sandbox_id);
    answer_execution(poll->call->response, info, poll_base_url(poll), false);
    return POLL_ANSWERED;
}

static int look_at_execution(const struct poll *poll, bool is_last, struct error *err)
{
    autoclear(execution_info) info = {0};

    if (execution_get(poll->call->core->executions, &poll->call->actor, poll->id, &command_kind,
                      &info, err) < 0)
        return -1;
    return tell_execution(poll, is_last, &info);
}

static enum poll_look look_at_execution_quick(const struct poll *poll, bool is_last)
{
    autoclear(execution_info) info = {0};
    struct error err = {0};

    if (execution_get_quick(poll->call->core->executions, &poll->call->actor, poll->id,
                            &command_kind, &info, &err) != 1)
        return POLL_ELSEWHERE;
    return tell_execution(poll, is_last, &info);
}

static const struct poll_kind execution_poll = {.look_quick = look_at_execution_quick,
                                                .look = look_at_execution};

/* GET /sandbox/execution/{executionId} */
static int get_execution(struct call *call, struct error *err)
{
    const char *id;

    if (call_id(call, 0, EXECUTION_PREFIX, "execution", &id, err) < 0)
        return -1;
    return poll_call(call, &execution_poll, id, query_duration_ms(call->query, "wait"), NULL, 0,
                     err);
}

/* GET /sandbox/sandboxes/{id}/executions */
static int list_executions(struct call *call, struct error *err)
{
    struct execution_filter filter = {.kind = &command_kind};
    autoclear(execution_infos) found = {0};
    autoreply reply = {0};

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &filter.sandbox_id, err) < 0 ||
        page_read(call->query, &filter.page, err) < 0 ||
        execution_list(call->core->executions, &call->actor, &filter, &found, err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "executions");
    json_list_begin(&reply.json);
    for (size_t i = 0; i < found.count; i++)
        render_execution(&reply.json, &found.items[i], call_base_url(call));
    json_list_end(&reply.json);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

static const struct parameter get_parameters[] = {
    {"wait", PARAMETER_DURATION, NULL, "answer when it has ended, or after so long"},
    {0},
};
static const struct parameter list_parameters[] = {
    PAGE_LIMIT_PARAMETER, PAGE_OFFSET_PARAMETER, {0}};

const struct route agentuity_execution_routes[] = {
    {"POST", "/sandbox/{id}/execute", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, execute,
     "starts a command; a paused sandbox is woken for it", .fields = execute_fields,
     .answers = answers_execution},
    {"GET", "/sandbox/execution/{executionId}", ROUTE_LOOP, ACCESS_KEY, BODY_NONE, get_execution,
     "a command's state, or its end", .query = get_parameters, .answers = answers_execution},
    {"GET", "/sandbox/sandboxes/{id}/executions", ROUTE_QUICK, ACCESS_KEY, BODY_NONE,
     list_executions, "commands of a sandbox, the newest first", .query = list_parameters,
     .answers = answers_executions},
    {0},
};
