/* SPDX-License-Identifier: Apache-2.0 */
/* Pausing sandboxes and waking them. */
#include "core/sandbox/sandbox.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/render.h"

/* POST /sandbox/{id}/pause */
static int pause_sandbox(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    autoreply reply = {0};
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        sandbox_pause(call->core->sandboxes, &call->actor, id, &info, err) < 0)
        return -1;
    envelope_flat(&reply);
    render_paused(&reply.json, &info);
    return envelope_send(&reply, call->response, 200);
}

/* POST /sandbox/{id}/resume */
static int resume_sandbox(struct call *call, struct error *err)
{
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        sandbox_resume(call->core->sandboxes, &call->actor, id, err) < 0)
        return -1;
    return envelope_bare(call);
}

const struct route agentuity_pause_routes[] = {
    {"POST", "/sandbox/{id}/pause", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, pause_sandbox,
     "stops everything in a sandbox where it is", .answers = answers_paused},
    {"POST", "/sandbox/{id}/resume", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, resume_sandbox,
     "lets a paused sandbox go on", .answers = answers_bare},
    {0},
};
