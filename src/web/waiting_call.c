/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are answered later. */
#include "web/waiting_call.h"

#include "web/access.h"
#include "web/client_watch.h"

#include "base/mem.h"

static const char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

void waiting_call_init(struct waiting_call *waiting, const struct call *call)
{
    struct body *body = call->request->stream;

    *waiting = (struct waiting_call){
        .router = call->router,
        .front = call->front,
        .route = call->route,
        .core = call->core,
        .loop = call_loop(call),
        .workers = call_workers(call),
        .owner = call->owner,
        .actor = call->actor,
        .access = call->access,
        .response = response_ref(call->response),
        .watch = client_watch_ref(call->watch),
        .body = body ? body_ref(body) : NULL,
    };
    waiting->actor.tenant = copy(call->actor.tenant);
    waiting->actor.scope = copy(call->actor.scope);
    waiting->actor.project = copy(call->actor.project);
}

void waiting_call_clear(struct waiting_call *waiting)
{
    free((char *)waiting->actor.tenant);
    free((char *)waiting->actor.scope);
    free((char *)waiting->actor.project);
    client_watch_free(waiting->watch);
    body_free(waiting->body);
    response_free(waiting->response);
    *waiting = (struct waiting_call){0};
}

struct call waiting_call_get(const struct waiting_call *waiting)
{
    return (struct call){
        .router = waiting->router,
        .front = waiting->front,
        .route = waiting->route,
        .settings = waiting->front->settings,
        .core = waiting->core,
        .access = waiting->access,
        .response = waiting->response,
        .actor = waiting->actor,
    };
}

void waiting_call_fail(const struct waiting_call *waiting, const struct error *err)
{
    struct call call = waiting_call_get(waiting);

    access_log_failure(call.access, err);
    waiting->front->on_error(&call, err);
}
