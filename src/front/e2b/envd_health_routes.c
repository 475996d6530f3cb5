/* SPDX-License-Identifier: Apache-2.0 */
/* envd: whether the sandbox is there, and its environment. */
#include "core/core.h"
#include "core/sandbox/sandbox.h"
#include "core/seal.h"
#include "front/e2b/e2b_impl.h"

#include <string.h>

/* GET /health: anybody may ask; one that is paused is not there. */
static int health(struct call *call, struct error *err)
{
    const unsigned awake = sandbox_in(SANDBOX_IDLE) | sandbox_in(SANDBOX_RUNNING) |
                           sandbox_in(SANDBOX_CREATING) | sandbox_in(SANDBOX_RESUMING);
    struct e2b_target target;
    enum sandbox_state state;

    e2b_target_read(call->request, &target);
    if (!target.id[0] || !seal_is_alive(call->core, target.id, &state) ||
        !(sandbox_in(state) & awake))
        return error_refuse(err, ERROR_ENDED, "sandbox", "The sandbox was not found");
    return e2b_answer_empty(call, 204);
}

/* GET /envs */
static int get_env(struct call *call, struct error *err)
{
    autoclear(sandbox_info) info = {0};
    autoreply reply = {0};
    const char *id;

    if (envd_enter(call, &id, err) < 0 ||
        sandbox_get(call->core->sandboxes, &call->actor, id, false, &info, err) < 0)
        return -1;
    reply_init(&reply);
    json_map_begin(&reply.json);
    for (const char *const *entry = info.command.env; entry && *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        e2b_member_text(&reply.json, call_print(call, "%.*s", (int)length, *entry),
                        *entry + length + ((*entry)[length] == '='));
    }
    json_map_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

const struct route envd_health_routes[] = {
    {"GET", "/health", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, health, "whether the sandbox is there",
     .is_undescribed = true},
    {"GET", "/envs", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_env, "variables of all commands",
     .needs = SCOPE_READ, .is_undescribed = true, .reach = REACH_SANDBOX},
    {0},
};
