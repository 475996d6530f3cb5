/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed in a sandbox's files between two moments. */
#include "front/api/api.h"
#include "front/api/difference_answer.h"
#include "front/api/mount_body.h"
#include "web/reference.h"
#include "web/client_watch.h"

#define ENTRIES 10000      // when no limit is given
#define ENTRIES_MAX 100000 // and at the most
#define PATCH_BYTES ((size_t)16 << 20)

// ---- GET /api/v1/sandboxes/{sandbox}/diff ----

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
    const char *id;

    client_watch_start(call);
    if (api_sandbox(call, 0, &id, err) < 0 ||
        difference_get(call->core->snapshots, &call->actor, id, &want, &found, err) < 0)
        return -1;
    struct difference_answer answer = {from ? from : want.from, to ? to : want.to};
    answer.left_out = mount_targets(call, id);
    difference_answer_init(&answer, call->arena, &found);
    return api_answer(call, 200, difference_answer_fields, &answer);
}

static const struct route_answer answers[] = {{200, difference_answer_fields}, {0}};
static const struct parameter get_parameters[] = {
    {"from", PARAMETER_TEXT, NULL,
     "id or name of a checkpoint; or 'base', what the sandbox was started from, as when not given"},
    {"to", PARAMETER_TEXT, NULL, "id or name of a checkpoint; or 'now', as when not given"},
    {"patch", PARAMETER_BOOL, NULL, "with the differences of text files"},
    {"limit", PARAMETER_INTEGER, NULL, "at most so many; 10000 when not given", 0, ENTRIES_MAX},
    {0},
};

const struct route api_difference_routes[] = {
    {"GET", API_TOP "/sandboxes/{sandbox}/diff", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, get_difference,
     .summary = "files that were added, changed or removed between two moments",
     .query = get_parameters, .answers = answers, .needs = SCOPE_READ, .is_heavy = true},
    {0},
};
