/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes that are there: list, get, status, destroy, environment. */
#include "core/sandbox/sandbox.h"
#include "core/account/account.h"
#include "base/strings.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/body_parts.h"
#include "front/agentuity/render.h"
#include "front/agentuity/sandbox_filter.h"
#include "front/agentuity/snapshot_impl.h"
#include "web/poll.h"
#include "web/preview_url.h"

#include <string.h>

/* Writes one with what belongs to it elsewhere: its first command, whose streams it names, and what it was made from. */
static void write_sandbox(struct json_writer *json, struct call *call, struct sandbox_view *view,
                          bool is_entry)
{
    const char *first_id = view->info->execution_id;
    autoclear(execution_info) first = {0};
    autoclear(snapshot_info) origin = {0};
    autoclear(organisation_info) owner = {0};
    struct snapshot_view origin_view;
    struct port_info port;
    struct error err = {0};

    if (view->info->snapshot && snapshot_look(call->core->snapshots, &call->actor,
                                              view->info->snapshot, &origin, &err) == 0) {
        snapshot_organisation(call, &origin, &owner);
        origin_view = snapshot_view_of(call, &origin, &owner);
        view->snapshot = &origin_view;
    }
    // Without it the URLs of its streams are left out, which is all that can be said of one that is forgotten.
    if (first_id &&
        execution_get(call->core->executions, &call->actor, first_id, NULL, &first, &err) == 0)
        view->first = &first;
    bool has_port = port_first(call->core->ports, view->info->id, &port);
    view->url = has_port ? preview_url(call, &port) : NULL;
    view->port = has_port ? port.port : 0;
    if (is_entry)
        render_sandbox_entry(json, view);
    else
        render_sandbox(json, view);
    view->first = NULL;
    view->snapshot = NULL;
}

static struct sandbox_view
make_view(struct call *call, const struct organisation_info *organisation, const char *base_url)
{
    const struct agentuity_settings *settings = agentuity_settings_of(call);

    return (struct sandbox_view){
        .organisation = organisation,
        .organisation_name = settings->organisation_name,
        .region = settings->region,
        .base_url = base_url,
    };
}

/* GET /sandbox */
static int list_sandboxes(struct call *call, struct error *err)
{
    autoclear(organisation_info) organisation = {0};
    autoclear(sandbox_infos) found = {0};
    autoreply reply = {0};

    if (account_organisation(call->core->accounts, &call->actor, &organisation, err) < 0 ||
        sandbox_filter_list(call, &found, err) < 0)
        return -1;
    struct sandbox_view view = make_view(call, &organisation, call_base_url(call));
    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "sandboxes");
    json_list_begin(&reply.json);
    for (size_t i = 0; i < found.count; i++) {
        view.info = &found.items[i];
        write_sandbox(&reply.json, call, &view, true);
    }
    json_list_end(&reply.json);
    member_integer(&reply.json, "total", found.total);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

/* What a poll waits for. */
struct wanted {
    unsigned states;
    bool with_deleted;
};

/* "idle,terminated" */
static int read_states(const char *text, unsigned *out, struct error *err)
{
    unsigned states = 0;

    while (*text) {
        char word[16];
        size_t length = strcspn(text, ",");
        (void)snprintf(word, sizeof word, "%.*s", (int)length, text);
        unsigned named = length < sizeof word ? render_states(word) : 0;
        if (!named && length > 0)
            return error_set(err, ERROR_INVALID, "waitForStatus: '%.*s' is not a status",
                             (int)(length < 64 ? length : 64), text);
        states |= named;
        text += length + (text[length] == ',');
    }
    *out = states;
    return 0;
}

/* Of the query. Both parameters are needed for a wait: *wait_ms is 0 else. */
static int read_wanted(struct call *call, struct wanted *out, int64_t *wait_ms, struct error *err)
{
    const char *names = query_text(call->query, "waitForStatus");

    *out = (struct wanted){.with_deleted = query_bool(call->query, "includeDeleted", false)};
    *wait_ms = names ? query_integer(call->query, "waitMs", 0) : 0;
    return names ? read_states(names, &out->states, err) : 0;
}

/* Whatever a client waits for, nothing comes after the end. */
static bool is_reached(const struct wanted *wanted, enum sandbox_state state)
{
    return (wanted->states | SANDBOX_OVER) & sandbox_in(state);
}

static int answer_get(const struct poll *poll, const struct sandbox_info *info, struct error *err)
{
    autoclear(organisation_info) organisation = {0};
    autoreply reply = {0};

    if (account_organisation(poll->call->core->accounts, &poll->call->actor, &organisation, err) <
        0)
        return -1;
    struct sandbox_view view = make_view(poll->call, &organisation, poll_base_url(poll));
    view.info = info;
    envelope_data(&reply);
    write_sandbox(&reply.json, poll->call, &view, false);
    envelope_send(&reply, poll->call->response, 200);
    return POLL_ANSWERED;
}

static int look_get(const struct poll *poll, bool is_last, struct error *err)
{
    const struct wanted *wanted = poll->data;
    autoclear(sandbox_info) info = {0};

    if (sandbox_get(poll->call->core->sandboxes, &poll->call->actor, poll->id, wanted->with_deleted,
                    &info, err) < 0)
        return -1;
    return is_last || is_reached(wanted, info.state) ? answer_get(poll, &info, err) : POLL_WAITS;
}

/* Tells only that it is not time yet: the whole of a sandbox is in the store. */
static enum poll_look look_get_quick(const struct poll *poll, bool is_last)
{
    struct sandbox_status status;

    if (is_last || sandbox_status_quick(poll->call->core->sandboxes, &poll->call->actor, poll->id,
                                        &status) != 1)
        return POLL_ELSEWHERE;
    return is_reached(poll->data, status.state) ? POLL_ELSEWHERE : POLL_WAITS;
}

static const struct poll_kind get_kind = {.look_quick = look_get_quick, .look = look_get};

/* GET /sandbox/{id} */
static int get_sandbox(struct call *call, struct error *err)
{
    struct wanted wanted;
    int64_t wait_ms;
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        read_wanted(call, &wanted, &wait_ms, err) < 0)
        return -1;
    return poll_call(call, &get_kind, id, wait_ms, &wanted, sizeof wanted, err);
}

static enum poll_look tell_status(const struct poll *poll, bool is_last,
                                  const struct sandbox_status *status)
{
    autoreply reply = {0};

    if (!is_last && !is_reached(poll->data, status->state))
        return POLL_WAITS;
    int64_t exit_code = status->mode == SANDBOX_ONE_SHOT
                            ? render_exit_code(status->mode, status->state, status->exit_code)
                            : NO_EXIT_CODE;
    envelope_data(&reply);
    render_state(&reply.json, poll->id, status->state, exit_code);
    envelope_send(&reply, poll->call->response, 200);
    return POLL_ANSWERED;
}

static int look_status(const struct poll *poll, bool is_last, struct error *err)
{
    struct sandbox_status status;

    if (sandbox_status(poll->call->core->sandboxes, &poll->call->actor, poll->id, &status, err) < 0)
        return -1;
    return tell_status(poll, is_last, &status);
}

static enum poll_look look_status_quick(const struct poll *poll, bool is_last)
{
    struct sandbox_status status;

    if (sandbox_status_quick(poll->call->core->sandboxes, &poll->call->actor, poll->id, &status) !=
        1)
        return POLL_ELSEWHERE;
    return tell_status(poll, is_last, &status);
}

static const struct poll_kind status_kind = {.look_quick = look_status_quick, .look = look_status};

/* GET /sandbox/status/{id} */
static int get_status(struct call *call, struct error *err)
{
    struct wanted wanted;
    int64_t wait_ms;
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        read_wanted(call, &wanted, &wait_ms, err) < 0)
        return -1;
    return poll_call(call, &status_kind, id, wait_ms, &wanted, sizeof wanted, err);
}

/* DELETE /sandbox/{id} */
static int destroy_sandbox(struct call *call, struct error *err)
{
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        sandbox_delete(call->core->sandboxes, &call->actor, id, err) < 0)
        return -1;
    return envelope_bare(call);
}

struct env_body {
    struct field_list env;
};
static const struct field env_fields[] = {
    {"env", FIELD_TEXT_MAP, offsetof(struct env_body, env), .is_needed = true, .is_nullable = true,
     .help = "a value of null removes the variable"},
    {0},
};

static int read_changes(struct call *call, const struct field_list *pairs, struct env_change **out,
                        struct error *err)
{
    const struct text_pair *pair = pairs->items;
    struct env_change *changes = call_alloc(call, (pairs->count + 1) * sizeof *changes);

    for (size_t i = 0; i < pairs->count; i++) {
        if (body_check_variable(pair[i].name, err) < 0)
            return -1;
        changes[i] = (struct env_change){.name = pair[i].name, .value = pair[i].value};
    }
    *out = changes;
    return 0;
}

/* {"NAME":"value"} of NAME=value */
static void write_env(struct json_writer *json, const char *const *env)
{
    json_map_begin(json);
    for (; env && *env; env++) {
        const char *end = strchr(*env, '=');
        if (!end)
            continue;
        json_key_exact(json, *env, (size_t)(end - *env));
        json_string(json, end + 1);
    }
    json_map_end(json);
}

/* PATCH /sandbox/env/{id} */
static int set_env(struct call *call, struct error *err)
{
    struct env_body body = {0};
    struct env_change *changes;
    autoclear(sandbox_info) info = {0};
    autoreply reply = {0};
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        fields_read(call->body, env_fields, &body, err) < 0 ||
        read_changes(call, &body.env, &changes, err) < 0 ||
        sandbox_set_env(call->core->sandboxes, &call->actor, id, changes, body.env.count, &info,
                        err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "env");
    write_env(&reply.json, info.command.env);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

#define WAIT_PARAMETERS                                                                            \
    {"waitForStatus", PARAMETER_TEXT, NULL,                                                        \
     "wait until the status is one of these, separated by commas"},                                \
    {                                                                                              \
        "waitMs", PARAMETER_INTEGER, NULL, "for at most so long"                                   \
    }

static const struct parameter status_parameters[] = {WAIT_PARAMETERS, {0}};
static const struct parameter get_parameters[] = {
    {"includeDeleted", PARAMETER_BOOL, NULL, "a deleted one is not found otherwise"},
    WAIT_PARAMETERS,
    {0}};

const struct route agentuity_sandbox_routes[] = {
    {"GET", "/sandbox", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_sandboxes, "sandboxes",
     .query = sandbox_filter_parameters, .answers = answers_sandboxes},
    {"GET", "/sandbox/{id}", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, get_sandbox,
     "everything about a sandbox", .query = get_parameters, .answers = answers_sandbox},
    {"GET", "/sandbox/status/{id}", ROUTE_LOOP, ACCESS_KEY, BODY_NONE, get_status,
     "a sandbox's state and exit code", .query = status_parameters, .answers = answers_state},
    {"DELETE", "/sandbox/{id}", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, destroy_sandbox,
     "ends everything in a sandbox and deletes it", .answers = answers_bare},
    {"PATCH", "/sandbox/env/{id}", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, set_env,
     "changes the environment of commands started afterwards", .fields = env_fields,
     .answers = answers_env},
    {0},
};
