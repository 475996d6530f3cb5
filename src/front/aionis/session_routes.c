/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: sandboxes in which any number of commands run, one after the other or at once. */
#include "base/id.h"
#include "base/clock.h"
#include "core/create.h"
#include "core/sandbox/sandbox.h"
#include "front/aionis/aionis_request.h"
#include "front/aionis/stored.h"

#include <string.h>

struct session_body {
    struct identity_body identity; // first
    const char *actor;
    const char *profile;
    int64_t ttl_s;
    const struct data_value *metadata;
};
static const char *const profiles[] = {"default", "restricted", NULL};
static const struct field session_fields[] = {
    IDENTITY_FIELDS(struct session_body),
    ACTOR_FIELD(struct session_body),
    {"profile", FIELD_TEXT, offsetof(struct session_body, profile), .words = profiles,
     .help = "a label"},
    {"ttl_seconds", FIELD_INTEGER, offsetof(struct session_body, ttl_s), .minimum = 1,
     .maximum = 604800, .help = "ends after that; default: never"},
    {"metadata", FIELD_OBJECT, offsetof(struct session_body, metadata)},
    {0},
};

static int answer_session(struct call *call, const struct sandbox_info *info, const char *profile,
                          const char *metadata)
{
    char uuid[ID_UUID_TEXT];
    autoreply reply = {0};

    call_about_sandbox(call, "", id_to_uuid(info->id, uuid));
    answer_begin(&reply, &call->actor);
    json_key(&reply.json, "session");
    json_map_begin(&reply.json);
    put_id(&reply.json, "session_id", info->id);
    put_text(&reply.json, "profile", profile);
    json_key(&reply.json, "metadata");
    json_raw(&reply.json, metadata, strlen(metadata));
    put_time(&reply.json, "expires_at", info->expires_at);
    put_time(&reply.json, "created_at", info->created_at);
    put_time(&reply.json, "updated_at", info->created_at);
    json_map_end(&reply.json);
    return answer_send(&reply, call->response, &call_state(call)->head);
}

static void fill_session(struct call *call, const struct session_body *body, const char *profile,
                         struct sandbox_request *out)
{
    const struct aionis_settings *settings = aionis_of(call)->settings;

    *out = (struct sandbox_request){
        .asked = stored_session(call, profile),
        .mode = SANDBOX_INTERACTIVE,
        .home = settings->directory,
        .usual.directory = settings->directory,
        .max_executions = 0,
        .idle_timeout_ms = SANDBOX_DEFAULT, // then only its files are left, until it is used again
        .usual.timeout_ms = 0,
        .paused_timeout_ms = (int64_t)settings->keep_ms,
        .on_idle = SANDBOX_IDLE_DROPS_BOX,
        .expires_at = body->ttl_s ? (int64_t)clock_wall_ms() + body->ttl_s * 1000 : 0,
        .keep_ms = (int64_t)settings->keep_ms,
    };
}

/* POST /v1/memory/sandbox/sessions */
static int create_session(struct call *call, struct error *err)
{
    struct session_body body = {0};
    struct sandbox_request want;
    autorequest request = {0};
    autoclear(sandbox_info) info = {0};

    int status = request_open(call, RATE_WRITE, &request, err);
    if (status != 0)
        return status;
    if (request_read(call, &request, session_fields, &body, err) < 0)
        return -1;
    const char *profile = body.profile ? body.profile : "default";
    fill_session(call, &body, profile, &want);
    if (stored_metadata(call, body.metadata, &want.metadata, err) < 0 ||
        sandbox_create(call->core, &call->actor, &want, &info, NULL, err) < 0)
        return -1;
    return answer_session(call, &info, profile, want.metadata);
}

const struct route aionis_session_routes[] = {
    {"POST", "/v1/memory/sandbox/sessions", ROUTE_SLOW, ACCESS_KEY, BODY_WHOLE, create_session,
     "makes a session", .fields = session_fields, .answers = aionis_session_answers,
     .body_limit = AIONIS_BODY_MAX},
    {0},
};
