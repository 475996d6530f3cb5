/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor finds on this machine. */
#include "core/findings.h"
#include "front/api/api.h"

static const char *const states[] = {"fine", "degraded", "missing", "unchecked"};

#define AT(member) offsetof(struct finding, member)
static const struct answer_field finding_fields[] = {
    {"name", ANSWER_TEXT, AT(name), .is_needed = true},
    {"purpose", ANSWER_TEXT, AT(purpose), .is_needed = true, .help = "what burrow uses it for"},
    {"state", ANSWER_TEXT, AT(state), .is_needed = true, .words = states,
     .n_words = ARRAY_SIZE(states)},
    {"detail", ANSWER_TEXT, AT(detail), .is_needed = true, .help = "what was found"},
    {"cost", ANSWER_TEXT, AT(cost), .help = "what it costs you"},
    {"fix", ANSWER_TEXT, AT(fix), .help = "what to do about it"},
    {0},
};
#undef AT

static const struct answer_field list_fields[] = {
    {"items", ANSWER_LIST, .is_needed = true, .fields = finding_fields,
     .item_size = sizeof(struct finding)},
    {0},
};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};

/* GET /api/v1/system/doctor */
static int list_findings(struct call *call, struct error *err)
{
    autofindings found = {0};

    if (findings_get(call->core, &call->actor, &found, err) < 0)
        return -1;
    struct answer_list items = {found.items, found.count};
    return api_answer(call, 200, list_fields, &items);
}

const struct route api_finding_routes[] = {
    {"GET", API_TOP "/system/doctor", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, list_findings,
     .summary = "what this machine can do for sandboxes, and what it lacks",
     .answers = list_answers, .needs = SCOPE_ADMIN, .is_heavy = true},
    {0},
};
