/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes by id or name, and what those of this front have in common; see api.h. */
#include "base/thread.h"
#include "core/create.h"
#include "core/sandbox/sandbox.h"
#include "front/api/api.h"
#include "front/api/api_body.h"
#include "web/reference.h"

#include <string.h>

/* Aionis' clients know theirs as UUIDs, which are ids also where somebody has given one to another sandbox as its name. */
static int find(struct call *call, const char *text, char id[ID_TEXT], struct error *err)
{
    if (id_from_uuid(text, id))
        return 0;
    return sandbox_find_name(call->core->sandboxes, &call->actor, text, id, err);
}

/* A token is for one sandbox; of others the core would say the same. A key may be for sandboxes with some labels. */
static int check_seen(const struct call *call, const char *id, struct error *err)
{
    const char *only = call->actor.sandbox;

    if (*only && strcmp(only, id) != 0)
        return error_missing(err, "sandbox", id);
    return sandbox_check_selected(call->core->sandboxes, &call->actor, id, err);
}

int api_sandbox_of(struct call *call, const char *text, const char **id, struct error *err)
{
    char *found;

    *id = "";
    if (!text || strlen(text) > API_NAME_MAX)
        return error_refuse(err, ERROR_NOT_FOUND, "sandbox", "there is no sandbox '%.80s'",
                            text ? text : "");
    if (reference_is_id(text, SANDBOX_PREFIX)) {
        *id = text + strlen(SANDBOX_PREFIX);
        return check_seen(call, *id, err);
    }
    if (thread_is_loop())
        return CALL_ELSEWHERE;
    found = call_alloc(call, ID_TEXT);
    if (find(call, text, found, err) < 0)
        return -1;
    if (check_seen(call, found, err) < 0) // whose id a name does not tell
        return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "sandbox", text) : -1;
    *id = found;
    call_about_sandbox(call, SANDBOX_PREFIX, found);
    return 0;
}

int api_sandbox(struct call *call, unsigned index, const char **id, struct error *err)
{
    return api_sandbox_of(call, call->parameters[index], id, err);
}

void api_sandbox_defaults(struct sandbox_request *request)
{
    request->else_directory = API_DIRECTORY;
    request->usual.timeout_ms = SANDBOX_DEFAULT;
    request->idle_timeout_ms = SANDBOX_DEFAULT;
    request->paused_timeout_ms = SANDBOX_DEFAULT;
    request->on_idle = SANDBOX_IDLE_ENDS;
    request->max_executions = 0;
}
