/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: short-lived secrets that open one sandbox. */
#include "core/token.h"
#include "front/api/api_page.h"

#include <openssl/crypto.h>

struct token_answer {
    const char *id, *token, *prefix, *name, *sandbox_id, *made_by;
    const char *const *scopes;
    int64_t created_at, used_at, expires_at;
};
#define AT(member) offsetof(struct token_answer, member)
static const struct answer_field token_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = TOKEN_PREFIX},
    {"token", ANSWER_TEXT, AT(token), .help = "the token itself: told once, when it is made"},
    {"prefix", ANSWER_TEXT, AT(prefix), .is_needed = true, .help = "how it begins"},
    {"name", ANSWER_TEXT, AT(name)},
    {"sandboxId", ANSWER_ID, AT(sandbox_id), .is_needed = true, .prefix = SANDBOX_PREFIX,
     .help = "the one sandbox it opens"},
    {"scopes", ANSWER_TEXTS, AT(scopes), .is_needed = true},
    {"createdBy", ANSWER_ID, AT(made_by), .prefix = KEY_PREFIX,
     .help = "the key it acts for, and ends with"},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {"usedAt", ANSWER_TIME, AT(used_at), .help = "to the minute"},
    {"expiresAt", ANSWER_TIME, AT(expires_at), .is_needed = true},
    {0},
};
#undef AT
static const struct answer_field list_fields[] = {
    API_LIST_FIELDS(token_fields, struct token_answer), {0}};
static const struct route_answer made_answers[] = {{201, token_fields}, {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};
static const struct route_answer empty_answers[] = {{204}, {0}};

struct token_body {
    const char *name;
    const char **scopes;
    int64_t ttl_ms;
};
#define AT(member) offsetof(struct token_body, member)
static const struct field token_body_fields[] = {
    {"name", FIELD_TEXT, AT(name), .maximum = 200, .help = "what lists call it"},
    {"scopes", FIELD_TEXTS, AT(scopes), .is_filled = true, .minimum = 1, .maximum = 8,
     .help = "of read, run and manage; not said: read and run"},
    {"expiresInMs", FIELD_MS, AT(ttl_ms), .minimum = 1000, .maximum = TOKEN_MOST_MS,
     .help = "how long it works: one hour when not said, a day at most"},
    {0},
};
#undef AT

static struct token_answer answer_of(struct call *call, const struct key_info *info)
{
    const char **scopes = call_alloc(call, (SCOPES_MADE + 1) * sizeof *scopes);

    scopes_list(info->scopes, scopes);
    return (struct token_answer){
        .id = info->id,
        .prefix = info->prefix,
        .name = info->name && *info->name ? info->name : NULL,
        .sandbox_id = info->sandbox_id,
        .made_by = info->made_by,
        .scopes = scopes,
        .created_at = info->created_at,
        .used_at = info->used_at,
        .expires_at = info->expires_at,
    };
}

/* POST /api/v1/sandboxes/{sandbox}/tokens */
static int create_token(struct call *call, struct error *err)
{
    struct token_body body = {0};
    struct token_request request = {0};
    autoclear(key_info) info = {0};
    char text[KEY_TEXT];

    if (api_sandbox(call, 0, &request.sandbox_id, err) < 0 ||
        fields_read(call->body, token_body_fields, &body, err) < 0)
        return -1;
    if (body.scopes && scopes_of((const char *const *)body.scopes, &request.scopes, err) < 0)
        return error_field(err, "scopes");
    request.name = body.name;
    request.ttl_ms = body.ttl_ms;
    if (token_create(call->core, &call->actor, &request, text, &info, err) < 0)
        return -1;
    struct token_answer answer = answer_of(call, &info);
    answer.token = text;
    int result = api_answer(call, 201, token_fields, &answer);
    OPENSSL_cleanse(text, sizeof text);
    return result;
}

static const struct parameter list_parameters[] = {API_PAGE_PARAMETERS, {0}};

/* GET /api/v1/sandboxes/{sandbox}/tokens */
static int list_tokens(struct call *call, struct error *err)
{
    autoclear(key_infos) found = {0};
    struct page page;
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 || api_page_read(call, &page, err) < 0 ||
        token_list(call->core, &call->actor, id, &page, &found, err) < 0)
        return -1;
    struct token_answer *items = call_alloc(call, found.count * sizeof *items);
    for (size_t i = 0; i < found.count; i++)
        items[i] = answer_of(call, &found.items[i]);
    return api_answer_page(call, list_fields, items, found.count, &found.next);
}

/* DELETE /api/v1/sandboxes/{sandbox}/tokens/{token} */
static int revoke_token(struct call *call, struct error *err)
{
    const char *id, *token;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        call_id(call, 1, TOKEN_PREFIX, "token", &token, err) < 0 ||
        token_revoke(call->core, &call->actor, id, token, err) < 0)
        return -1;
    return api_answer_empty(call);
}

const struct route api_token_routes[] = {
    {"POST", API_TOP "/sandboxes/{sandbox}/tokens", ROUTE_QUICK, ACCESS_KEY, BODY_JSON,
     create_token, .summary = "makes a secret that opens this sandbox alone, for some time",
     .fields = token_body_fields, .answers = made_answers, .needs = SCOPE_MANAGE},
    {"GET", API_TOP "/sandboxes/{sandbox}/tokens", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_tokens,
     .summary = "its tokens that are in use, oldest first", .query = list_parameters,
     .answers = list_answers, .needs = SCOPE_MANAGE},
    {"DELETE", API_TOP "/sandboxes/{sandbox}/tokens/{token}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE,
     revoke_token, .summary = "ends a token at once", .answers = empty_answers,
     .needs = SCOPE_MANAGE},
    {0},
};
