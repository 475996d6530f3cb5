/* SPDX-License-Identifier: Apache-2.0 */
/* Runs are started: at once and waited for, or when their turn comes. */
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/execution/execution.h"
#include "core/sandbox/sandbox.h"
#include "front/aionis/refused.h"
#include "front/aionis/aionis_request.h"
#include "front/aionis/run_view.h"
#include "web/poll.h"

#include <string.h>

#define TIMEOUT_FLOOR_MS 100
#define ARGV_MAX 64
#define WAIT_MS ((int64_t)24 * 3600 * 1000) // longer than any run takes
#define BUDGET_AGAIN_MS 5
#define BUDGET_TRIES 400 // of waiting for others to be recorded

struct action_body {
    const char *kind;
    const char **argv;
    const struct data_value *sent; // the same as it came
};
struct execute_body {
    struct identity_body identity; // first
    const char *project_id;
    const char *actor;
    const char *session_id;
    const char *planner_run_id;
    const char *decision_id;
    const char *mode;
    int64_t timeout_ms;
    struct action_body action;
    const struct data_value *metadata;
};
static const char *const modes[] = {"async", "sync", NULL};
static const char *const kinds[] = {"command", NULL};
static const struct field action_fields[] = {
    {"kind", FIELD_TEXT, offsetof(struct action_body, kind), .is_needed = true, .words = kinds},
    {"argv", FIELD_TEXTS, offsetof(struct action_body, argv), .is_needed = true, .minimum = 1,
     .maximum = ARGV_MAX, .is_filled = true, .is_exact = true,
     .help = "program and arguments; no shell"},
    {0},
};
static const struct field execute_fields[] = {
    IDENTITY_FIELDS(struct execute_body),
    {"project_id", FIELD_TEXT, offsetof(struct execute_body, project_id), .minimum = 1,
     .check = request_check_project, .help = "at most 128 characters"},
    ACTOR_FIELD(struct execute_body),
    {"session_id", FIELD_TEXT, offsetof(struct execute_body, session_id), .is_needed = true,
     .check = request_check_uuid},
    {"planner_run_id", FIELD_TEXT, offsetof(struct execute_body, planner_run_id), .minimum = 1,
     .maximum = AIONIS_BODY_MAX, .help = "kept and given back"},
    {"decision_id", FIELD_TEXT, offsetof(struct execute_body, decision_id),
     .check = request_check_uuid, .help = "kept and given back"},
    {"mode", FIELD_TEXT, offsetof(struct execute_body, mode), .words = modes,
     .help = "sync: the answer is the end of it; default async"},
    {"timeout_ms", FIELD_INTEGER, offsetof(struct execute_body, timeout_ms), .minimum = 1,
     .maximum = 600000},
    {"action", FIELD_MAP, offsetof(struct execute_body, action), .is_needed = true,
     .fields = action_fields},
    {"metadata", FIELD_OBJECT, offsetof(struct execute_body, metadata),
     .help = "kept and given back"},
    {0},
};

// ---- budgets ----

static int refuse_budget(struct call *call, const struct request *request,
                         const struct budget *budget, const struct budget_excess *excess,
                         struct error *err)
{
    const struct aionis_settings *settings = aionis_of(call)->settings;
    const char *scope = request_text(call, request, "scope");
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    put_text(&json, "tenant_id", request_tenant(call, request));
    put_text(&json, "project_id", request_text(call, request, "project_id"));
    put_text(&json, "metric", excess->metric);
    put_integer(&json, "used", excess->used);
    put_integer(&json, "cap", excess->cap);
    put_integer(&json, "window_hours", (int64_t)settings->budget_window_ms / 3600000);
    put_text(&json, "scope", scope ? scope : settings->scope);
    put_null(&json, "scope_filter");
    put_null(&json, "project_filter");
    put_text(&json, "policy_source",
             budget->is_default ? "env_global_default" : "env_tenant_default");
    json_map_end(&json);
    const struct refusal refusal = {
        .status = 429,
        .code = call_print(call, "sandbox_tenant_budget_%s_cap_exceeded", excess->code),
        .details = keep_json(call, &json, &text),
        .retry_after_s = 60,
    };
    return refuse(call, &refusal, err, "the tenant's budget is used up: %lld of %lld %s",
                  (long long)excess->used, (long long)excess->cap, excess->metric);
}

/* It cannot be told whether it may run: then it may not. */
static int fail_budget(struct call *call, const char *tenant, struct error *err)
{
    struct error why = *err;
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    put_text(&json, "tenant_id", tenant);
    put_text(&json, "table", "executions");
    json_map_end(&json);
    const struct refusal refusal = {.status = 503,
                                    .code = "sandbox_budget_unavailable",
                                    .details = keep_json(call, &json, &text)};
    log_error("a budget could not be checked", F("tenant", tenant),
              F("error", (const char *)why.text));
    return refuse(call, &refusal, err, "what the tenant has used of its budget cannot be told now");
}

/* A place among the tenant's runs that are about to be recorded. */
struct entrance {
    struct budgets *budgets; // NULL: none was taken
    const char *tenant;
};

static void entrance_clear(struct entrance *entrance)
{
    if (entrance->budgets)
        budgets_leave(entrance->budgets, entrance->tenant);
}
#define autoentrance __attribute__((cleanup(entrance_clear))) struct entrance

/*
 * Whoever entered before is either recorded by now, and counted below, or may yet be: then the last run of a budget may be
 * theirs, and it is looked at again.
 */
static int check_budget(struct call *call, const struct request *request, struct entrance *entrance,
                        struct error *err)
{
    struct aionis *aionis = aionis_of(call);
    const char *tenant = request_tenant(call, request);
    const struct budget *budget = budgets_find(aionis->budgets, tenant);
    struct execution_outcomes outcomes = {0};
    struct budget_excess excess;

    if (!budget)
        return 0;
    *entrance = (struct entrance){aionis->budgets, tenant};
    int64_t before = budgets_enter(aionis->budgets, tenant);
    struct actor actor = call->actor;
    actor.tenant = tenant;
    if (execution_count(call->core->executions, &actor,
                        (int64_t)(clock_wall_ms() - aionis->settings->budget_window_ms), &outcomes,
                        err) < 0)
        return fail_budget(call, tenant, err);
    if (budget_is_used_up(budget, &outcomes, &excess))
        return refuse_budget(call, request, budget, &excess, err);
    outcomes.total += before;
    if (!budget_is_used_up(budget, &outcomes, &excess))
        return 0;
    if (call->tries > BUDGET_TRIES)
        return refuse_budget(call, request, budget, &excess, err);
    call->again_ms = BUDGET_AGAIN_MS;
    return CALL_AGAIN;
}

// ---- the session ----

static int no_session(struct call *call, const char *uuid, struct error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    put_text(&json, "session_id", uuid);
    put_text(&json, "tenant_id", call->actor.tenant);
    put_text(&json, "scope", call->actor.scope);
    json_map_end(&json);
    const struct refusal refusal = {.status = 404,
                                    .code = "sandbox_session_not_found",
                                    .details = keep_json(call, &json, &text)};
    return refuse(call, &refusal, err, "there is no session '%s'", uuid);
}

static int expired(struct call *call, const char *uuid, int64_t expires_at, struct error *err)
{
    char when[CLOCK_TEXT];
    const struct refusal refusal = {
        .status = 409,
        .code = "sandbox_session_expired",
        .details = call_print(call, "{\"session_id\":\"%s\",\"expires_at\":\"%s\"}", uuid,
                              clock_format((uint64_t)expires_at, when)),
    };
    return refuse(call, &refusal, err, "session '%s' expired at %s", uuid, when);
}

/* Its id as the core knows it, if it is there and its time is not up. */
static int find_session(struct call *call, const char *uuid, char id[ID_TEXT], struct error *err)
{
    struct sandbox_status status;

    if (!id_from_uuid(uuid, id))
        return no_session(call, uuid, err);
    if (sandbox_status(call->core->sandboxes, &call->actor, id, &status, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? no_session(call, uuid, err) : -1;
    if (status.state == SANDBOX_DELETED || status.state == SANDBOX_FAILED)
        return no_session(call, uuid, err);
    if (status.expires_at && status.expires_at <= (int64_t)clock_wall_ms())
        return expired(call, uuid, status.expires_at, err);
    return status.state == SANDBOX_ENDED ? no_session(call, uuid, err) : 0;
}

// ---- the run ----

static const char *print_argv(struct call *call, const struct data_value *argv)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_value(&json, argv);
    return keep_json(call, &json, &text);
}

/* As the operating system takes it: halves of surrogate pairs become U+FFFD, and the program's name is trimmed. */
static const char **real_argv(struct call *call, const char **argv)
{
    size_t count = 0;

    while (argv[count])
        count++;
    const char **real = call_alloc(call, (count + 1) * sizeof *real);
    for (size_t i = 0; i < count; i++) {
        autobuffer text = {0};
        wide_well_formed((struct wide_text){argv[i], strlen(argv[i])}, &text);
        real[i] = call_print(call, "%s", text.data);
    }
    const char *name = request_trim(call, real[0]);
    if (name)
        real[0] = name;
    return real;
}

static const char *refusal_of(const struct call *call, const char *name)
{
    if (wide_is_blank((struct wide_text){name, strlen(name)}))
        return REFUSED_NAME;
    return commands_allow(&aionis_of(call)->commands, name) ? NULL : REFUSED_COMMAND;
}

static int fill_execution(struct call *call, const struct execute_body *body,
                          struct execution_request *out, struct error *err)
{
    const struct aionis_settings *settings = aionis_of(call)->settings;
    int64_t asked_ms = body->timeout_ms && body->timeout_ms < TIMEOUT_FLOOR_MS ? TIMEOUT_FLOOR_MS
                                                                               : body->timeout_ms;
    int64_t timeout_ms = asked_ms ? asked_ms : (int64_t)settings->timeout_ms;
    const char **argv = real_argv(call, body->action.argv);
    const struct stored_run stored = {
        .mode = body->mode ? body->mode : "async",
        .timeout_ms = timeout_ms,
        .project_id = request_trim(call, body->project_id),
        .planner_run_id = request_trim(call, body->planner_run_id),
        .decision_id = body->decision_id,
        .argv = print_argv(call, body->action.sent),
    };

    *out = (struct execution_request){
        .kind = EXECUTION_COMMAND,
        .command.argv = (const char *const *)argv,
        .command.timeout_ms = timeout_ms < TIMEOUT_FLOOR_MS ? TIMEOUT_FLOOR_MS : timeout_ms,
        .output_cap_bytes = (int64_t)settings->output_bytes,
        .asked = stored_run(call, &stored),
        .refused = refusal_of(call, argv[0]),
    };
    call->actor.project = stored.project_id;
    return stored_metadata(call, body->metadata, &out->metadata, err);
}

static bool answer_run(struct call *call, const struct answer_head *head,
                       const struct execution_info *info, bool is_accepted, bool is_quick)
{
    autorun view;
    autoreply reply = {0};

    if (!run_view_init(&view, call->core, aionis_of(call)->settings, info, is_quick))
        return false;
    answer_begin(&reply, &call->actor);
    put_bool(&reply.json, "accepted", is_accepted);
    json_key(&reply.json, "run");
    run_write(&reply.json, &view);
    answer_send(&reply, call->response, head);
    return true;
}

// ---- waiting for its end ----

static int tell_run(const struct poll *poll, bool is_last, const struct execution_info *info,
                    bool is_quick)
{
    struct call call = *poll->call;

    if (!is_last && !execution_info_is_over(info))
        return POLL_WAITS;
    call.settings = (void *)(uintptr_t)call.front->settings; // of a waiting one
    return answer_run(&call, poll->data, info, false, is_quick) ? POLL_ANSWERED : POLL_ELSEWHERE;
}

static int look_at_run(const struct poll *poll, bool is_last, struct error *err)
{
    autoclear(execution_info) info = {0};

    if (execution_get(poll->call->core->executions, &poll->call->actor, poll->id, NULL, &info,
                      err) < 0)
        return -1;
    return tell_run(poll, is_last, &info, false);
}

static enum poll_look look_at_run_quick(const struct poll *poll, bool is_last)
{
    autoclear(execution_info) info = {0};
    struct error ignored = {0};

    if (execution_get_quick(poll->call->core->executions, &poll->call->actor, poll->id, NULL, &info,
                            &ignored) != 1)
        return POLL_ELSEWHERE;
    return (enum poll_look)tell_run(poll, is_last, &info, true);
}

static const struct poll_kind run_poll = {
    .is_patient = true, .look_quick = look_at_run_quick, .look = look_at_run};

// ---- the route ----

/* Sync runs are outside the queue; the machine has an end all the same. */
static int check_room(struct call *call, struct error *err)
{
    const struct refusal refusal = {
        .status = 429, .code = "sandbox_sync_capacity_exceeded", .retry_after_s = 1};
    int64_t maximum = aionis_of(call)->settings->max_sync;
    struct core_health health;

    core_health(call->core, &health);
    if (health.commands < maximum)
        return 0;
    return refuse(call, &refusal, err,
                  "%u runs are under way, and no more than %lld may be; try again shortly",
                  health.commands, (long long)maximum);
}

/* The session may end just when the run is to start. */
static int fail_start(struct call *call, const char *uuid, struct error *err)
{
    char id[ID_TEXT];
    struct error why = *err;

    if (!error_is(err, ERROR_GONE) && !error_is(err, ERROR_NOT_FOUND))
        return -1;
    if (find_session(call, uuid, id, err) < 0)
        return -1;
    *err = why;
    return no_session(call, uuid, err);
}

static int run_now(struct call *call, const char *uuid, const char *id,
                   const struct execution_request *want, struct error *err)
{
    const struct answer_head *head = &call_state(call)->head;
    autoclear(execution_info) info = {0};

    if (check_room(call, err) < 0)
        return -1;
    if (execution_start(call->core->executions, &call->actor, id, want, &info, err) < 0)
        return fail_start(call, uuid, err);
    if (execution_info_is_over(&info)) {
        (void)answer_run(call, head, &info, false, false);
        return 0;
    }
    return poll_call(call, &run_poll, info.id, WAIT_MS, head, sizeof *head, err);
}

static int run_later(struct call *call, const char *uuid, const char *id,
                     const struct execution_request *want, struct error *err)
{
    autoclear(execution_info) info = {0};

    if (execution_enqueue(call->core->executions, &call->actor, id, want, &info, err) < 0)
        return fail_start(call, uuid, err);
    (void)answer_run(call, &call_state(call)->head, &info, true, false);
    return 0;
}

/* POST /v1/memory/sandbox/execute */
static int execute(struct call *call, struct error *err)
{
    struct execute_body body = {0};
    struct execution_request want;
    autorequest request = {0};
    autoentrance entrance = {0};
    char id[ID_TEXT];

    int status = request_open(call, RATE_WRITE, &request, err);
    if (status == 0)
        status = check_budget(call, &request, &entrance, err);
    if (status != 0)
        return status;
    if (request_read(call, &request, execute_fields, &body, err) < 0 ||
        find_session(call, body.session_id, id, err) < 0)
        return -1;
    body.action.sent = value_get(value_get(request.body, "action"), "argv");
    if (fill_execution(call, &body, &want, err) < 0)
        return -1;
    bool is_sync = body.mode && strcmp(body.mode, "sync") == 0;
    call_about_sandbox(call, "", body.session_id);
    return (is_sync ? run_now : run_later)(call, body.session_id, id, &want, err);
}

const struct route aionis_execute_routes[] = {
    {"POST", "/v1/memory/sandbox/execute", ROUTE_SLOW, ACCESS_KEY, BODY_WHOLE, execute,
     "runs a command", .fields = execute_fields, .answers = aionis_execute_answers,
     .body_limit = AIONIS_BODY_MAX},
    {0},
};
