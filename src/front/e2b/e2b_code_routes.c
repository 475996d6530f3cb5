/* SPDX-License-Identifier: Apache-2.0 */
/* Port 49999 of a sandbox: contexts and runs of code, over those of the core. */
#include "core/code/code.h"
#include "core/core.h"
#include "core/port/port.h"
#include "core/sandbox/sandbox.h"
#include "core/seal.h"
#include "front/e2b/e2b_code.h"
#include "front/e2b/e2b_impl.h"
#include "web/access.h"
#include "web/fields.h"

#include <stdlib.h>
#include <string.h>

// ---- who ----

static int gone(struct error *err)
{
    return error_refuse(err, ERROR_ENDED, "sandbox", "The sandbox was not found");
}

/* All ports of a sandbox that these clients made lead to whoever asks. */
static bool is_public(struct call *call, const char *sandbox_id)
{
    autofree char *theirs = seal_front_data(call->core, sandbox_id);
    autoptr(exposed) exposed = exposed_find(call->core->ports, sandbox_id, E2B_CODE_PORT);
    struct port_info info = {0};

    if (!theirs || !exposed)
        return false;
    exposed_tell(call->core->ports, exposed, &info);
    return info.port == PORT_ALL && !info.is_private;
}

static bool has_traffic_token(struct call *call, const char *sandbox_id)
{
    const char *token = call_header(call, "E2b-Traffic-Access-Token");

    return token && seal_is(call->core, E2B_TRAFFIC_PURPOSE, sandbox_id, token);
}

/*
 * The clients send no token with calls about contexts, as if those were a server on a port of the sandbox. So whoever may reach such a server may send them too, as a
 * stranger: sees what strangers have made, and has no key's quota.
 */
static int enter_as_stranger(struct call *call, struct error *err)
{
    struct e2b_target target;

    e2b_target_read(call->request, &target);
    if (!target.id[0] || !seal_is_alive(call->core, target.id, NULL))
        return gone(err);
    if (!is_public(call, target.id) && !has_traffic_token(call, target.id))
        return error_refuse(err, ERROR_DENIED, "token",
                            "the sandbox's ports are private: send its envdAccessToken as "
                            "'X-Access-Token', or its trafficAccessToken as "
                            "'E2b-Traffic-Access-Token'");
    if (!seal_stranger(call->core, target.id, &call->actor))
        return gone(err);
    access_set_audit(call->access, call->core->audit, call);
    return 0;
}

static int enter_open(struct call *call, enum key_scope scope, const char **id, struct error *err)
{
    bool is_key = call->is_known && !call->actor.tools && (call->actor.scopes & scope);

    if (!e2b_of(call)->is_debug && !is_key && enter_as_stranger(call, err) < 0)
        return -1;
    return envd_enter(call, id, err);
}

// ---- contexts ----

struct context_body {
    const char *language, *directory;
};
static const struct field context_fields[] = {
    {"language", FIELD_TEXT, offsetof(struct context_body, language), .is_nullable = true},
    {"cwd", FIELD_TEXT, offsetof(struct context_body, directory), .is_nullable = true},
    {0},
};

static int find_language(const char *text, enum code_language *out, struct error *err)
{
    *out = CODE_PYTHON;
    if (!text || !*text || code_language_find(text, out))
        return 0;
    return error_set(err, ERROR_INVALID,
                     "there is no language '%.32s'; there are " CODE_LANGUAGE_LIST, text);
}

/* Who code runs as, with a home and a directory as commands have: whom the template says. */
struct code_user {
    const char *user, *directory;
    const char *const *env; // NULL: the sandbox's
};

static int find_user(struct call *call, const char *sandbox_id, const char *directory,
                     struct code_user *out, struct error *err)
{
    const struct field_list none = {0};
    autoclear(sandbox_info) info = {0};
    struct e2b_user usual, user;

    e2b_user_find(call, NULL, &usual);
    envd_user(call, sandbox_id, NULL, &user);
    *out = (struct code_user){.user = e2b_box_user(&user)};
    if (e2b_path(call, &user, directory, &out->directory, err) < 0)
        return -1;
    if (strcmp(user.name, usual.name) == 0)
        return 0; // whose home is the sandbox's
    if (sandbox_get(call->core->sandboxes, &call->actor, sandbox_id, false, &info, err) < 0)
        return -1;
    out->env = e2b_user_env(call, &info, &user, &none);
    return 0;
}

static void write_context(struct json_writer *json, const struct context_info *info)
{
    json_map_begin(json);
    e2b_member_text(json, "id", info->id);
    e2b_member_text(json, "language", code_language_names[info->language]);
    e2b_member_text(json, "cwd", info->directory ? info->directory : E2B_HOME);
    json_map_end(json);
}

/* POST /contexts */
static int make_context(struct call *call, struct error *err)
{
    struct context_body body = {0};
    struct context_request want = {0};
    struct code_user user;
    autoclear(context_info) info = {0};
    autoreply reply = {0};
    const char *id;

    if (fields_read(call->body, context_fields, &body, err) < 0 ||
        find_language(body.language, &want.language, err) < 0 ||
        enter_open(call, SCOPE_RUN, &id, err) < 0 ||
        find_user(call, id, body.directory, &user, err) < 0)
        return -1;
    want.user = user.user;
    want.directory = user.directory;
    want.env = user.env;
    if (context_create(call->core->contexts, &call->actor, id, &want, &info, err) < 0)
        return -1;
    reply_init(&reply);
    write_context(&reply.json, &info);
    return e2b_answer(call, &reply, 200);
}

/* GET /contexts */
static int list_contexts(struct call *call, struct error *err)
{
    autoclear(context_infos) found = {0};
    autoreply reply = {0};
    const char *id;

    if (enter_open(call, SCOPE_READ, &id, err) < 0 ||
        context_list(call->core->contexts, &call->actor, id, &found, err) < 0)
        return -1;
    reply_init(&reply);
    json_list_begin(&reply.json);
    for (size_t i = 0; i < found.count; i++)
        write_context(&reply.json, &found.items[i]);
    json_list_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

static int answer_null(struct call *call)
{
    autoreply reply = {0};

    reply_init(&reply);
    json_null(&reply.json);
    return e2b_answer(call, &reply, 200);
}

/* POST /contexts/{id}/restart */
static int restart(struct call *call, struct error *err)
{
    const char *id;

    if (enter_open(call, SCOPE_RUN, &id, err) < 0 ||
        context_restart(call->core->contexts, &call->actor, id, call->parameters[0], err) < 0)
        return -1;
    return answer_null(call);
}

/* DELETE /contexts/{id} */
static int forget(struct call *call, struct error *err)
{
    const char *id;

    if (enter_open(call, SCOPE_RUN, &id, err) < 0 ||
        context_remove(call->core->contexts, &call->actor, id, call->parameters[0], err) < 0)
        return -1;
    return answer_null(call);
}

// ---- runs ----

struct run_body {
    const char *code, *context, *language;
    struct field_list env;
};
static const struct field run_fields[] = {
    {"code", FIELD_TEXT, offsetof(struct run_body, code), .is_needed = true,
     .maximum = CODE_LENGTH},
    {"context_id", FIELD_TEXT, offsetof(struct run_body, context), .is_nullable = true},
    {"language", FIELD_TEXT, offsetof(struct run_body, language), .is_nullable = true},
    {"env_vars", FIELD_TEXT_MAP, offsetof(struct run_body, env), .is_nullable = true},
    {0},
};

static const char *const *pairs_of(struct call *call, const struct field_list *list)
{
    const struct text_pair *items = list->items;
    const char **pairs = call_alloc(call, (list->count + 1) * sizeof *pairs);

    for (size_t i = 0; i < list->count; i++)
        pairs[i] = call_print(call, "%s=%s", items[i].name, items[i].value);
    return pairs;
}

/* The language is not in the sandbox. As a run that failed, since of other answers these clients show the status alone. */
static int answer_missing(struct call *call, const struct error *err)
{
    static const struct http_header headers[] = {{"Content-Type", "application/json"}, {0}};
    autoreply reply = {0};
    struct error ignored = {0};

    reply_init(&reply);
    json_map_begin(&reply.json);
    e2b_member_text(&reply.json, "type", "error");
    e2b_member_text(&reply.json, "name", "NotInstalled");
    e2b_member_text(&reply.json, "value", err->text);
    e2b_member_text(&reply.json, "traceback", err->text);
    json_map_end(&reply.json);
    if (json_writer_finish(&reply.json, &ignored) == 0)
        (void)buffer_add_text(&reply.text, "\n{\"type\":\"end_of_execution\"}\n", &ignored);
    (void)response_send(call->response, 200, headers, reply.text.data, reply.text.length);
    return 0;
}

/* POST /execute */
static int execute(struct call *call, struct error *err)
{
    struct run_body body = {0};
    struct code_request want = {0};
    struct code_user user;
    struct code_run run;
    const char *id;

    if (fields_read(call->body, run_fields, &body, err) < 0 ||
        find_language(body.language, &want.language, err) < 0)
        return -1;
    if (body.context && body.language)
        return error_set(err, ERROR_INVALID, "Only one of context_id or language can be provided");
    want.code = body.code;
    want.length = strlen(body.code);
    want.context_id = body.context;
    want.env = pairs_of(call, &body.env);
    if (strings_check_env(want.env, err) < 0 || envd_enter(call, &id, err) < 0 ||
        find_user(call, id, NULL, &user, err) < 0)
        return -1;
    want.user = user.user;
    want.directory = user.directory;
    want.context_env = user.env;
    if (code_start(call->core->contexts, &call->actor, id, &want, &run, err) < 0)
        return error_is(err, ERROR_INVALID) && error_is_about(err, "context")
                   ? answer_missing(call, err)
                   : -1;
    code_follow_start(call, &run, 0, &e2b_code_format, NULL);
    return 0;
}

/* GET /health */
static int health(struct call *call, struct error *err)
{
    autoreply reply = {0};
    struct e2b_target target;

    e2b_target_read(call->request, &target);
    if (!target.id[0] || !seal_is_alive(call->core, target.id, NULL))
        return gone(err);
    reply_init(&reply);
    json_string(&reply.json, "OK");
    return e2b_answer(call, &reply, 200);
}

const struct route e2b_code_routes[] = {
    {"POST", "/execute", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, execute, "runs code",
     .needs = SCOPE_RUN, .is_undescribed = true, .reach = REACH_SANDBOX},
    {"POST", "/contexts", ROUTE_SLOW, ACCESS_ANY, BODY_JSON, make_context, "makes a context",
     .is_undescribed = true},
    {"GET", "/contexts", ROUTE_QUICK, ACCESS_ANY, BODY_NONE, list_contexts, "all contexts",
     .is_undescribed = true},
    {"POST", "/contexts/{id}/restart", ROUTE_SLOW, ACCESS_ANY, BODY_NONE, restart,
     "a new interpreter for a context", .is_undescribed = true},
    {"DELETE", "/contexts/{id}", ROUTE_SLOW, ACCESS_ANY, BODY_NONE, forget, "ends a context",
     .is_undescribed = true},
    {"GET", "/health", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, health, "whether the sandbox is there",
     .is_undescribed = true},
    {0},
};
