/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller may have, and its organisation. */
#include "core/account/quota.h"
#include "front/api/api.h"
#include "front/api/quota_answer.h"

// ---- GET /api/v1/quotas ----

struct state_answer {
    struct quota_answer bounds;
    struct quota used;
};
static const struct answer_field state_fields[] = {
    {"limits", ANSWER_MAP, offsetof(struct state_answer, bounds), .is_needed = true,
     .fields = quota_bound_fields, .help = "what is not there has no bound"},
    {"used", ANSWER_MAP, offsetof(struct state_answer, used), .is_needed = true,
     .fields = quota_used_fields},
    {0},
};
struct quotas_answer {
    struct state_answer key, organisation;
    bool has_key, has_organisation;
};
static const struct answer_field quotas_fields[] = {
    {"key", ANSWER_MAP, offsetof(struct quotas_answer, key), .fields = state_fields,
     .has_offset = offsetof(struct quotas_answer, has_key),
     .help = "of the key that asks; not there: the local socket was used"},
    {"organisation", ANSWER_MAP, offsetof(struct quotas_answer, organisation),
     .fields = state_fields, .has_offset = offsetof(struct quotas_answer, has_organisation),
     .help = "of all its keys together; for keys with the scope organisation"},
    {0},
};
static const struct route_answer quotas_answers[] = {{200, quotas_fields}, {0}};

static struct state_answer state_of(const struct quota_state *state)
{
    return (struct state_answer){quota_answer_of(&state->bounds), state->used};
}

static int get_quotas(struct call *call, struct error *err)
{
    struct quota_state key, organisation;

    if (quota_get(call->core->accounts, &call->actor, &key, &organisation, err) < 0)
        return -1;
    const struct quotas_answer answer = {
        state_of(&key),
        state_of(&organisation),
        *call->actor.key_id != '\0',
        (call->actor.scopes & SCOPE_ORGANISATION) != 0,
    };
    return api_answer(call, 200, quotas_fields, &answer);
}

// ---- /api/v1/organisation ----

struct organisation_answer {
    const char *id, *name;
    struct quota_answer ceilings;
    int64_t created_at;
};
#define AT(member) offsetof(struct organisation_answer, member)
static const struct answer_field organisation_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = ORGANISATION_PREFIX},
    {"name", ANSWER_TEXT, AT(name), .is_needed = true},
    {"quotas", ANSWER_MAP, AT(ceilings), .is_needed = true, .fields = quota_bound_fields,
     .help = "of all its keys together; what is not there has no bound"},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {0},
};
#undef AT
static const struct route_answer organisation_answers[] = {{200, organisation_fields}, {0}};

struct organisation_body {
    const char *name;
    struct quota_body quotas;
};
static const struct field organisation_body_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct organisation_body, name), .minimum = 1, .maximum = 200},
    {"quotas", FIELD_MAP, offsetof(struct organisation_body, quotas), .fields = quota_body_fields},
    {0},
};

static int answer_organisation(struct call *call, const struct organisation_info *info)
{
    const struct organisation_answer answer = {info->id, info->name,
                                               quota_answer_of(&info->ceilings), info->created_at};
    return api_answer(call, 200, organisation_fields, &answer);
}

static int get_organisation(struct call *call, struct error *err)
{
    autoclear(organisation_info) info = {0};

    if (account_organisation(call->core->accounts, &call->actor, &info, err) < 0)
        return -1;
    return answer_organisation(call, &info);
}

/* Whoever is bounded, or sees a part alone, does not set what holds for all. */
static int change_organisation(struct call *call, struct error *err)
{
    struct organisation_body body = {0};
    autoclear(organisation_info) info = {0};
    autoclear(organisation_info) changed = {0};

    if (actor_need(&call->actor, SCOPE_ORGANISATION, err) < 0 ||
        fields_read(call->body, organisation_body_fields, &body, err) < 0 ||
        account_organisation(call->core->accounts, &call->actor, &info, err) < 0)
        return -1;
    struct quota ceilings = info.ceilings;
    quota_body_apply(&body.quotas, &ceilings);
    if (account_change(call->core->accounts, &call->actor, body.name, &ceilings, &changed, err) < 0)
        return -1;
    return answer_organisation(call, &changed);
}

const struct route api_quota_routes[] = {
    {"GET", API_TOP "/quotas", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_quotas,
     .summary = "what the key and its organisation may have, and have", .answers = quotas_answers,
     .needs = SCOPE_READ},
    {"GET", API_TOP "/organisation", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_organisation,
     .summary = "the organisation of the key", .answers = organisation_answers,
     .needs = SCOPE_READ},
    {"PATCH", API_TOP "/organisation", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, change_organisation,
     .summary = "changes its name, and the quotas of all its keys together",
     .fields = organisation_body_fields, .answers = organisation_answers, .needs = SCOPE_ADMIN},
    {0},
};
