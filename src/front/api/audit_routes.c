/* SPDX-License-Identifier: Apache-2.0 */
/* The record of changes: who, with which key, from where, what, when. */
#include "core/account/audit.h"
#include "front/api/api_page.h"
#include "front/api/api_query.h"

struct audit_answer {
    int64_t number, at, status;
    const char *owner, *key_id, *token_id, *front, *method, *route, *subject, *peer, *request_id;
};
#define AT(member) offsetof(struct audit_answer, member)
static const struct answer_field audit_fields[] = {
    {"number", ANSWER_INTEGER, AT(number), .help = "in the order of the answers"},
    {"createdAt", ANSWER_TIME, AT(at), .is_needed = true},
    {"owner", ANSWER_TEXT, AT(owner), .help = "of the key; not there: nobody in particular"},
    {"keyId", ANSWER_ID, AT(key_id), .prefix = KEY_PREFIX,
     .help = "not there: none was needed, as over the local socket"},
    {"tokenId", ANSWER_ID, AT(token_id), .prefix = TOKEN_PREFIX,
     .help = "of a token, which acts for the key"},
    {"front", ANSWER_TEXT, AT(front), .is_needed = true, .help = "over which protocol"},
    {"method", ANSWER_TEXT, AT(method), .is_needed = true},
    {"route", ANSWER_TEXT, AT(route), .is_needed = true},
    {"subject", ANSWER_TEXT, AT(subject), .help = "what the path names, or what was made"},
    {"peer", ANSWER_TEXT, AT(peer), .help = "from where: the address of the client or its proxy"},
    {"requestId", ANSWER_TEXT, AT(request_id)},
    {"status", ANSWER_INTEGER, AT(status)},
    {0},
};
#undef AT
static const struct answer_field list_fields[] = {
    API_LIST_FIELDS(audit_fields, struct audit_answer), {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};

static const struct parameter list_parameters[] = {
    API_PAGE_PARAMETERS,
    {"from", PARAMETER_TEXT, .help = "at or after this time; RFC 3339"},
    {"to", PARAMETER_TEXT, .help = "before this time; RFC 3339"},
    {"keyId", PARAMETER_TEXT, .help = "by this key"},
    {"subject", PARAMETER_TEXT, .help = "of this, as the entries have it"},
    {"requestId", PARAMETER_TEXT, .help = "with this request id"},
    {"method", PARAMETER_TEXT, .help = "POST, PUT, PATCH or DELETE"},
    {0},
};

/* GET /api/v1/audit: newest first. */
static int list_audit(struct call *call, struct error *err)
{
    struct audit_query query = {
        .key_id = api_query_id(call, "keyId", KEY_PREFIX),
        .subject = query_text(call->query, "subject"),
        .request_id = query_text(call->query, "requestId"),
        .method = query_text(call->query, "method"),
    };
    autoclear(audit_infos) found = {0};

    if (api_page_read(call, &query.page, err) < 0 ||
        api_query_time(call, "from", &query.from, err) < 0 ||
        api_query_time(call, "to", &query.to, err) < 0 ||
        audit_list(call->core->audit, &call->actor, &query, &found, err) < 0)
        return -1;
    struct audit_answer *items = call_alloc(call, found.count * sizeof *items);
    for (size_t i = 0; i < found.count; i++) {
        const struct audit_info *info = &found.items[i];
        items[i] = (struct audit_answer){
            info->number, info->at,     info->status, info->member,  info->key_id, info->token_id,
            info->front,  info->method, info->route,  info->subject, info->peer,   info->request_id,
        };
    }
    return api_answer_page(call, list_fields, items, found.count, &found.next);
}

const struct route api_audit_routes[] = {
    {"GET", API_TOP "/audit", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_audit,
     .summary = "what was changed, by whom and from where, newest first", .query = list_parameters,
     .answers = list_answers, .needs = SCOPE_ADMIN},
    {0},
};
