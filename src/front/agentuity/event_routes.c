/* SPDX-License-Identifier: Apache-2.0 */
/* Events: what happened to a sandbox, also after it is gone. */
#include "core/sandbox/sandbox_event.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/page.h"
#include "front/agentuity/render.h"

/* GET /sandbox/sandboxes/{id}/events */
static int list_events(struct call *call, struct error *err)
{
    struct event_filter filter = {.is_descending = page_is_descending(call->query, false)};
    autoclear(event_infos) found = {0};
    autoreply reply = {0};

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &filter.sandbox_id, err) < 0 ||
        page_read(call->query, &filter.page, err) < 0 ||
        event_list(call->core->sandboxes, &call->actor, &filter, &found, err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "events");
    json_list_begin(&reply.json);
    for (size_t i = 0; i < found.count; i++)
        render_event(&reply.json, &found.items[i]);
    json_list_end(&reply.json);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

static const struct parameter list_parameters[] = {
    PAGE_LIMIT_PARAMETER, PAGE_OFFSET_PARAMETER, PAGE_DIRECTION_PARAMETER, {0}};

const struct route agentuity_event_routes[] = {
    {"GET", "/sandbox/sandboxes/{id}/events", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, list_events,
     "what happened to a sandbox, the oldest first", .query = list_parameters,
     .answers = answers_events},
    {0},
};
