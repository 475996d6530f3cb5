/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane: making sandboxes, looking at them, their time, pausing, resuming, ending. */
#include "base/clock.h"
#include "base/mem.h"
#include "core/core.h"
#include "core/create.h"
#include "core/runtime/runtime.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/sandbox_modify.h"
#include "core/seal.h"
#include "core/snapshot/snapshot.h"
#include "front/e2b/e2b_build.h"
#include "front/e2b/e2b_impl.h"
#include "front/e2b/e2b_network.h"
#include "front/e2b/e2b_template.h"
#include "web/delivery.h"
#include "web/preview_url.h"

#include <string.h>

#define TIMEOUT_S 300
#define TIMEOUT_V1_S 15
#define TIMEOUT_MOST_S ((int64_t)365 * 24 * 3600)
#define METADATA_MAX ((size_t)1 << 20)

// ---- telling of one ----

bool e2b_is_there(const struct sandbox_info *info)
{
    return !(sandbox_in(info->state) & (SANDBOX_OVER | sandbox_in(SANDBOX_STOPPING)));
}

bool e2b_is_paused(const struct sandbox_info *info)
{
    return info->state == SANDBOX_PAUSED || info->state == SANDBOX_PAUSING;
}

const char *e2b_domain(struct call *call)
{
    const char *domain = e2b_settings_of(call)->domain;

    if (domain && *domain)
        return domain;
    if ((domain = preview_domain(call)))
        return domain;
    const char *url = strstr(call_base_url(call), "://");
    return url ? call_print(call, "%.*s", (int)strcspn(url + 3, "/"), url + 3) : "localhost";
}

void e2b_write_made(struct call *call, struct json_writer *json, const struct sandbox_info *info)
{
    char token[E2B_TOKEN_TEXT], traffic[SEAL_TEXT];
    struct e2b_kept kept;

    e2b_kept_read(call, info, &kept);
    e2b_token_make(call->core, &call->actor, info->id, token);
    json_map_begin(json);
    e2b_member_text(json, "sandboxID", info->id);
    e2b_member_text(json, "templateID", kept.template ? kept.template : info->runtime);
    if (kept.template && kept.is_template_alias)
        e2b_member_text(json, "alias", kept.template);
    e2b_member_text(json, "clientID", "burrow");
    e2b_member_text(json, "envdVersion", E2B_ENVD_VERSION);
    e2b_member_text(json, "envdAccessToken", token);
    json_key(json, "trafficAccessToken");
    if (kept.is_private) {
        seal_make(call->core, E2B_TRAFFIC_PURPOSE, info->id, traffic);
        json_string(json, traffic);
    } else {
        json_null(json);
    }
    e2b_member_text(json, "domain", e2b_domain(call));
    json_map_end(json);
}

int e2b_answer_sandbox(struct call *call, int status, const struct sandbox_info *info)
{
    autoreply reply = {0};

    call_about_sandbox(call, "", info->id);
    reply_init(&reply);
    e2b_write_made(call, &reply.json, info);
    return e2b_answer(call, &reply, status);
}

/* "ID-client" is an old form. */
int e2b_get(struct call *call, struct sandbox_info *out, struct error *err)
{
    const char *asked = call->parameters[0];
    const char *id = call_print(call, "%.*s", (int)strcspn(asked, "-"), asked);
    autoclear(sandbox_info) info = {0};

    if (!id_is_valid(id))
        return error_refuse(err, ERROR_NOT_FOUND, "sandbox", "sandbox '%.64s' not found", asked);
    call_about_sandbox(call, "", id);
    if (sandbox_check_selected(call->core->sandboxes, &call->actor, id, err) < 0 ||
        sandbox_get(call->core->sandboxes, &call->actor, id, false, &info, err) < 0)
        return -1;
    if (!e2b_is_there(&info))
        return error_refuse(err, ERROR_NOT_FOUND, "sandbox", "sandbox '%s' not found", id);
    *out = info;
    info = (struct sandbox_info){0};
    return 0;
}

// ---- create ----

struct create_body {
    const char *template;
    int64_t timeout;
    bool has_timeout;
    struct field_list env, metadata;
    bool pauses, keeps_memory, has_keeps_memory, secure;
    struct {
        bool enabled;
    } resumes;
    bool internet, has_internet;
    struct e2b_network_body network;
    bool has_network;
    const struct data_value *mcp, *iam;
    const struct data_value *volumes;
};
#define AT(member) offsetof(struct create_body, member)
static const struct field resume_fields[] = {
    {"enabled", FIELD_BOOL, 0, .is_nullable = true},
    {0},
};
static const struct field create_fields[] = {
    {"templateID", FIELD_TEXT, AT(template), .is_needed = true, .minimum = 1, .maximum = 256},
    {"timeout", FIELD_INTEGER, AT(timeout), .is_nullable = true, .minimum = 1,
     .maximum = TIMEOUT_MOST_S, .has_offset = AT(has_timeout)},
    {"envVars", FIELD_TEXT_MAP, AT(env)},
    {"metadata", FIELD_TEXT_MAP, AT(metadata)},
    {"autoPause", FIELD_BOOL, AT(pauses), .is_nullable = true},
    {"autoPauseMemory", FIELD_BOOL, AT(keeps_memory), .is_nullable = true,
     .has_offset = AT(has_keeps_memory)},
    {"autoResume", FIELD_MAP, AT(resumes), .is_nullable = true, .fields = resume_fields},
    {"secure", FIELD_BOOL, AT(secure), .is_nullable = true},
    {"allow_internet_access", FIELD_BOOL, AT(internet), .is_nullable = true,
     .has_offset = AT(has_internet)},
    {"network", FIELD_MAP, AT(network), .is_nullable = true, .fields = e2b_network_fields,
     .has_offset = AT(has_network)},
    {"mcp", FIELD_VALUE, AT(mcp), .is_nullable = true},
    {"iam", FIELD_VALUE, AT(iam), .is_nullable = true},
    {"volumeMounts", FIELD_VALUE, AT(volumes), .is_nullable = true},
    {0},
};
#undef AT

static int check_create(const struct create_body *body, struct error *err)
{
    bool drops_memory = body->has_keeps_memory && !body->keeps_memory;

    if (drops_memory && !body->pauses)
        return error_set(err, ERROR_INVALID, "autoPauseMemory: needs autoPause");
    if (drops_memory && body->resumes.enabled)
        return error_set(err, ERROR_INVALID,
                         "autoResume: not together with autoPauseMemory: false");
    if (body->mcp)
        return error_set(err, ERROR_INVALID,
                         "mcp: there is no MCP gateway in sandboxes here; run your MCP servers as "
                         "commands");
    if (body->iam)
        return error_set(err, ERROR_INVALID, "iam: is not offered here; pass secrets as envVars");
    if (body->volumes && body->volumes->count)
        return error_set(err, ERROR_INVALID,
                         "volumeMounts: there are no volumes here; use snapshots to keep files");
    return 0;
}

/* "NAME=VALUE", NULL-terminated. */
static int env_of(struct call *call, const struct field_list *list, const char *const **out,
                  struct error *err)
{
    const struct text_pair *pairs = list->items;
    const char **env = call_alloc(call, (list->count + 1) * sizeof *env);

    for (size_t i = 0; i < list->count; i++) {
        if (!*pairs[i].name || strchr(pairs[i].name, '='))
            return error_set(err, ERROR_INVALID, "envVars: '%.80s' is no name of a variable",
                             pairs[i].name);
        env[i] = call_print(call, "%s=%s", pairs[i].name, pairs[i].value);
    }
    *out = env;
    return 0;
}

static int metadata_of(struct call *call, const struct field_list *list, const char **out,
                       struct error *err)
{
    const struct text_pair *pairs = list->items;
    autobuffer text = {.maximum = METADATA_MAX};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    for (size_t i = 0; i < list->count; i++)
        e2b_member_text(&json, pairs[i].name, pairs[i].value);
    json_map_end(&json);
    if (json_writer_finish(&json, err) < 0)
        return error_wrap(err, "metadata");
    *out = call_print(call, "%s", text.data);
    return 0;
}

#define READY_MS 50000 // for the start command of a template: these clients wait for a minute

/* What runs in sandboxes of a template that was built with a start command. One in which it does not is none. */
static int serve(struct call *call, const struct e2b_about *about, const char *sandbox_id,
                 struct error *err)
{
    const struct recipe_service service = e2b_service(call, about);
    struct error ignored = {0};

    if (!service.start ||
        recipe_serve(call->core, &call->actor, sandbox_id, &service, READY_MS, NULL, err) == 0)
        return 0;
    (void)sandbox_delete(call->core->sandboxes, &call->actor, sandbox_id, &ignored);
    return -1;
}

static int make(struct call *call, int64_t usual_timeout_s, struct error *err)
{
    struct create_body body = {.internet = true};
    struct e2b_template template = {0};
    struct e2b_about about;
    autoclear(sandbox_info) info = {0};
    const char *metadata = NULL;
    const char *const *env = NULL;

    if (fields_read(call->body, create_fields, &body, err) < 0 || check_create(&body, err) < 0 ||
        e2b_template_find(call, body.template, &template, err) < 0 ||
        metadata_of(call, &body.metadata, &metadata, err) < 0 ||
        env_of(call, &body.env, &env, err) < 0)
        return -1;
    int64_t timeout_s = body.has_timeout ? body.timeout : usual_timeout_s;
    e2b_about_read(call, template.metadata, &about);
    const struct e2b_kept kept = {
        .template = template.id,
        .is_template_alias = template.is_alias,
        .resumes = body.resumes.enabled,
        .timeout_s = timeout_s,
        .has_internet = body.has_internet,
        .internet = body.internet,
        .is_private = body.has_network && body.network.has_public && !body.network.is_public,
        .network =
            body.has_network ? e2b_network_keep(call, value_get(call->body, "network")) : NULL,
        .mask_host = body.has_network ? body.network.mask_host : NULL,
        .user = about.user,
        .directory = about.directory,
    };
    const struct port_request all_ports = {.port = PORT_ALL,
                                           .protocol = PORT_HTTP,
                                           .is_private = kept.is_private,
                                           .has_own_secret = true};
    struct port_info exposed; // a token in it is told to nobody: theirs is a seal
    struct sandbox_request request = {
        .metadata = metadata,
        .runtime = template.runtime,
        .snapshot = template.snapshot,
        .home = E2B_HOME,
        .usual = {.env = env, .directory = E2B_HOME, .user = "1000:1000"},
        .limits = e2b_limits(&about),
        .paused_timeout_ms = 0,
        .expires_at = (int64_t)clock_wall_ms() + timeout_s * 1000,
        .on_expiry = !body.pauses                                  ? SANDBOX_EXPIRY_ENDS
                     : body.has_keeps_memory && !body.keeps_memory ? SANDBOX_EXPIRY_DROPS_BOX
                                                                   : SANDBOX_EXPIRY_PAUSES,
        .front_data = e2b_kept_write(call, &kept),
        .ports = &all_ports,
        .n_ports = 1,
        .exposed = &exposed,
    };
    if (e2b_network_ask(call, body.internet, body.has_network ? &body.network : NULL, &request,
                        err) < 0)
        return -1;
    int result = sandbox_create(call->core, &call->actor, &request, &info, NULL, err);
    if (result < 0 && !body.has_network && e2b_network_is_refused(err)) {
        request.network = NULL; // nobody has asked for one: these clients always have it
        *err = (struct error){0};
        result = sandbox_create(call->core, &call->actor, &request, &info, NULL, err);
    }
    if (result < 0)
        return -1;
    if (serve(call, &about, info.id, err) < 0)
        return -1;
    delivery_watch(call, info.id);
    return e2b_answer_sandbox(call, 201, &info);
}

/* POST /v2/sandboxes */
static int create(struct call *call, struct error *err)
{
    return make(call, TIMEOUT_S, err);
}

/* POST /sandboxes */
static int create_v1(struct call *call, struct error *err)
{
    return make(call, TIMEOUT_V1_S, err);
}

// ---- end, time ----

/* DELETE /sandboxes/{id} */
static int kill_sandbox(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};

    if (e2b_get(call, &info, err) < 0 ||
        sandbox_delete(call->core->sandboxes, &call->actor, info.id, err) < 0)
        return -1;
    return e2b_answer_empty(call, 204);
}

static int set_time(struct call *call, const struct sandbox_info *info, int64_t timeout_s,
                    bool only_later, struct error *err)
{
    int64_t expires_at = (int64_t)clock_wall_ms() + timeout_s * 1000;
    struct e2b_kept kept;
    autoclear(sandbox_info) now = {0};

    if (only_later && info->expires_at >= expires_at)
        return 0;
    e2b_kept_read(call, info, &kept);
    kept.timeout_s = timeout_s;
    const struct sandbox_changes changes = {
        .has_expires_at = true,
        .expires_at = expires_at,
        .front_data = info->front_data ? e2b_kept_write(call, &kept) : NULL,
    };
    return sandbox_modify(call->core->sandboxes, &call->actor, info->id, &changes, &now, err);
}

struct time_body {
    int64_t timeout, duration;
    bool has_timeout, has_duration, memory, has_memory;
};
#define AT(member) offsetof(struct time_body, member)
static const struct field timeout_fields[] = {
    {"timeout", FIELD_INTEGER, AT(timeout), .is_needed = true, .minimum = 0,
     .maximum = TIMEOUT_MOST_S},
    {0},
};
static const struct field connect_fields[] = {
    {"timeout", FIELD_INTEGER, AT(timeout), .is_nullable = true, .minimum = 0,
     .maximum = TIMEOUT_MOST_S, .has_offset = AT(has_timeout)},
    {"memory", FIELD_BOOL, AT(memory), .is_nullable = true, .has_offset = AT(has_memory)},
    {0},
};
static const struct field refresh_fields[] = {
    {"duration", FIELD_INTEGER, AT(duration), .is_nullable = true, .minimum = 0,
     .maximum = TIMEOUT_MOST_S, .has_offset = AT(has_duration)},
    {0},
};
static const struct field pause_fields[] = {
    {"memory", FIELD_BOOL, AT(memory), .is_nullable = true, .has_offset = AT(has_memory)},
    {0},
};
#undef AT

static int refuse_paused(const struct sandbox_info *info, struct error *err)
{
    return error_refuse(err, ERROR_NOT_FOUND, "sandbox", "sandbox '%s' is paused: connect to it",
                        info->id);
}

/* At once, where the time is 0. */
static int64_t at_least(int64_t timeout_s)
{
    return timeout_s > 0 ? timeout_s : 1;
}

/* POST /sandboxes/{id}/timeout */
static int set_timeout(struct call *call, struct error *err)
{
    struct time_body body = {0};
    autoclear(sandbox_info) info = {0};

    if (fields_read(call->body, timeout_fields, &body, err) < 0 || e2b_get(call, &info, err) < 0)
        return -1;
    if (e2b_is_paused(&info))
        return refuse_paused(&info, err);
    if (set_time(call, &info, at_least(body.timeout), false, err) < 0)
        return -1;
    return e2b_answer_empty(call, 204);
}

/* POST /sandboxes/{id}/refreshes */
static int refresh(struct call *call, struct error *err)
{
    struct time_body body = {0};
    autoclear(sandbox_info) info = {0};

    if (fields_read(call->body, refresh_fields, &body, err) < 0 || e2b_get(call, &info, err) < 0)
        return -1;
    if (e2b_is_paused(&info))
        return refuse_paused(&info, err);
    if (set_time(call, &info, body.has_duration ? at_least(body.duration) : TIMEOUT_V1_S, true,
                 err) < 0)
        return -1;
    return e2b_answer_empty(call, 204);
}

// ---- pausing, resuming ----

/* POST /sandboxes/{id}/pause */
static int pause_sandbox(struct call *call, struct error *err)
{
    struct time_body body = {0};
    autoclear(sandbox_info) info = {0}, paused = {0};

    if (fields_read(call->body, pause_fields, &body, err) < 0 || e2b_get(call, &info, err) < 0)
        return -1;
    int result = body.has_memory && !body.memory
                     ? sandbox_pause_files(call->core->sandboxes, &call->actor, info.id, err)
                     : sandbox_pause(call->core->sandboxes, &call->actor, info.id, &paused, err);
    return result < 0 ? -1 : e2b_answer_empty(call, 204);
}

/* 201 where it was woken, 200 where it ran already. */
static int wake(struct call *call, const struct time_body *body, bool may_run, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    int64_t timeout_s = body->has_timeout ? at_least(body->timeout) : TIMEOUT_S;

    if (e2b_get(call, &info, err) < 0)
        return -1;
    bool was_paused = e2b_is_paused(&info);
    if (!was_paused && !may_run)
        return error_refuse(err, ERROR_STATE, "sandbox", "sandbox '%s' is running already",
                            info.id);
    if (was_paused ? e2b_wake(call->core, &call->actor, info.id, timeout_s, err) < 0
                   : set_time(call, &info, timeout_s, true, err) < 0)
        return -1;
    return e2b_answer_sandbox(call, was_paused ? 201 : 200, &info);
}

/* POST /v2/sandboxes/{id}/connect */
static int connect_to(struct call *call, struct error *err)
{
    struct time_body body = {0};

    if (fields_read(call->body, connect_fields, &body, err) < 0)
        return -1;
    return wake(call, &body, true, err);
}

/* POST /sandboxes/{id}/resume */
static int resume(struct call *call, struct error *err)
{
    struct time_body body = {0};

    if (fields_read(call->body, connect_fields, &body, err) < 0)
        return -1;
    return wake(call, &body, false, err);
}

#define ROW(method, path, lane, body, handler, summary, scope)                                     \
    {                                                                                              \
        method, path, lane, ACCESS_KEY, body, handler, summary,                                    \
            .needs = scope, .is_undescribed = true, .reach = REACH_COMMON                          \
    }
const struct route e2b_sandbox_routes[] = {
    ROW("POST", "/v2/sandboxes", ROUTE_SLOW, BODY_JSON, create, "makes a sandbox", SCOPE_RUN),
    ROW("POST", "/sandboxes", ROUTE_SLOW, BODY_JSON, create_v1, "makes a sandbox", SCOPE_RUN),
    ROW("DELETE", "/sandboxes/{id}", ROUTE_CONTROL, BODY_NONE, kill_sandbox, "ends it", SCOPE_RUN),
    ROW("POST", "/sandboxes/{id}/timeout", ROUTE_CONTROL, BODY_JSON, set_timeout,
        "sets how long it lives from now on", SCOPE_RUN),
    ROW("POST", "/sandboxes/{id}/refreshes", ROUTE_CONTROL, BODY_JSON, refresh,
        "makes its time longer", SCOPE_RUN),
    ROW("POST", "/sandboxes/{id}/pause", ROUTE_CONTROL, BODY_JSON, pause_sandbox, "pauses it",
        SCOPE_RUN),
    ROW("POST", "/v2/sandboxes/{id}/connect", ROUTE_SLOW, BODY_JSON, connect_to,
        "wakes it if it is paused, and tells how to reach it", SCOPE_RUN),
    ROW("POST", "/sandboxes/{id}/connect", ROUTE_SLOW, BODY_JSON, connect_to,
        "wakes it if it is paused, and tells how to reach it", SCOPE_RUN),
    ROW("POST", "/sandboxes/{id}/resume", ROUTE_SLOW, BODY_JSON, resume, "wakes it", SCOPE_RUN),
    {0},
};
