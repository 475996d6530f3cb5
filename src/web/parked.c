/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are answered later. */
#include "web/parked.h"

#include "base/mem.h"

static const char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

void parked_init(struct parked *parked, const struct call *call)
{
    struct body *body = call->request->stream;

    *parked = (struct parked){
        .router = call->router,
        .front = call->front,
        .route = call->route,
        .core = call->core,
        .loop = call_loop(call),
        .workers = call_workers(call),
        .actor = call->actor,
        .response = response_ref(call->response),
        .body = body ? body_ref(body) : NULL,
    };
    parked->actor.tenant = copy(call->actor.tenant);
    parked->actor.scope = copy(call->actor.scope);
    parked->actor.project = copy(call->actor.project);
}

void parked_clear(struct parked *parked)
{
    free((char *)parked->actor.tenant);
    free((char *)parked->actor.scope);
    free((char *)parked->actor.project);
    body_free(parked->body);
    response_free(parked->response);
    *parked = (struct parked){0};
}

struct call parked_call(const struct parked *parked)
{
    return (struct call){
        .router = parked->router,
        .front = parked->front,
        .route = parked->route,
        .settings = parked->front->settings,
        .core = parked->core,
        .response = parked->response,
        .actor = parked->actor,
    };
}

void parked_fail(const struct parked *parked, const struct error *err)
{
    struct call call = parked_call(parked);
    parked->front->on_error(&call, err);
}
