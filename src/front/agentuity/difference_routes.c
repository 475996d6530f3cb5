/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed in a sandbox's files between two moments. */
#include "core/snapshot/difference.h"
#include "web/client_watch.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/render.h"

#define ENTRIES 10000      // when no limit is given
#define ENTRIES_MAX 100000 // and at the most
#define PATCH_BYTES ((size_t)16 << 20)

/* GET /sandbox/{id}/diff */
static int get_difference(struct call *call, struct error *err)
{
    const char *from = query_text(call->query, "from");
    const char *to = query_text(call->query, "to");
    struct difference_request want = {
        .from = from ? reference_of(from, CHECKPOINT_PREFIX) : DIFFERENCE_BASE,
        .to = to ? reference_of(to, CHECKPOINT_PREFIX) : DIFFERENCE_NOW,
        .has_patches = query_bool(call->query, "patch", false),
        .max_entries = (size_t)query_integer(call->query, "limit", ENTRIES),
        .max_patch_bytes = PATCH_BYTES,
    };
    autodifference found = {0};
    autoreply reply = {0};
    const char *id;

    client_watch_start(call);
    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        difference_get(call->core->snapshots, &call->actor, id, &want, &found, err) < 0)
        return -1;
    envelope_data(&reply);
    render_difference(&reply.json, from ? from : want.from, to ? to : want.to, &found);
    return envelope_send(&reply, call->response, 200);
}

static const struct parameter get_parameters[] = {
    {"from", PARAMETER_TEXT, NULL,
     "id or name of a checkpoint; or 'base', what the sandbox was started from, as when not given"},
    {"to", PARAMETER_TEXT, NULL, "id or name of a checkpoint; or 'now', as when not given"},
    {"patch", PARAMETER_BOOL, NULL, "with the differences of text files"},
    {"limit", PARAMETER_INTEGER, NULL, "at most so many; 10000 when not given", 0, ENTRIES_MAX},
    {0},
};

const struct route agentuity_difference_routes[] = {
    {"GET", "/sandbox/{id}/diff", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, get_difference,
     "files that were added, changed or removed between two moments", .query = get_parameters,
     .answers = answers_difference, .is_heavy = true},
    {0},
};
