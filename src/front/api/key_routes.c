/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: who may what. */
#include "base/clock.h"
#include "core/account/key.h"
#include "front/api/api_page.h"
#include "front/api/quota_answer.h"
#include "web/access.h"

#include <openssl/crypto.h>
#include <string.h>

// ---- what is told ----

struct key_answer {
    const char *id, *key, *prefix, *name, *owner, *made_by, *selector;
    const char *const *scopes, *const *runtimes, *const *network_allow, *const *tools;
    struct quota_answer quotas;
    bool has_network, is_in_use;
    int64_t created_at, used_at, expires_at, revoked_at;
};
#define AT(member) offsetof(struct key_answer, member)
static const struct answer_field key_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = KEY_PREFIX},
    {"key", ANSWER_TEXT, AT(key), .help = "the key itself: told once, when it is made"},
    {"prefix", ANSWER_TEXT, AT(prefix), .is_needed = true, .help = "how the key begins"},
    {"name", ANSWER_TEXT, AT(name)},
    {"owner", ANSWER_TEXT, AT(owner),
     .help = "whose it is: a person or a service; not there: nobody's in particular"},
    {"scopes", ANSWER_TEXTS, AT(scopes), .is_needed = true,
     .help = "read, run, manage, admin; organisation: sees what is anybody's"},
    {"runtimes", ANSWER_TEXTS, AT(runtimes),
     .help = "that it may start sandboxes from; not there: all"},
    {"network", ANSWER_BOOL, AT(has_network), .help = "whether its sandboxes may have one"},
    {"networkAllow", ANSWER_TEXTS, AT(network_allow),
     .help = "rules that their networks may have; not there: any"},
    {"tools", ANSWER_TEXTS, AT(tools),
     .help = "of MCP, that it is for alone; not there: it is for everything"},
    {"selector", ANSWER_TEXT, AT(selector), .help = "labels of the sandboxes it sees"},
    {"quotas", ANSWER_MAP, AT(quotas), .is_needed = true, .fields = quota_bound_fields},
    {"createdBy", ANSWER_ID, AT(made_by), .prefix = KEY_PREFIX, .help = "the key that made it"},
    {"inUse", ANSWER_BOOL, AT(is_in_use), .help = "neither revoked nor expired"},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {"usedAt", ANSWER_TIME, AT(used_at), .help = "to the minute"},
    {"expiresAt", ANSWER_TIME, AT(expires_at)},
    {"revokedAt", ANSWER_TIME, AT(revoked_at)},
    {0},
};
#undef AT
static const struct answer_field list_fields[] = {API_LIST_FIELDS(key_fields, struct key_answer),
                                                  {0}};
static const struct route_answer key_answers[] = {{200, key_fields}, {0}};
static const struct route_answer made_answers[] = {{201, key_fields}, {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};
static const struct route_answer empty_answers[] = {{204}, {0}};

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

/* Texts are borrowed from the info. */
static struct key_answer answer_of(struct call *call, const struct key_info *info)
{
    const char **scopes = call_alloc(call, (SCOPES_MADE + 1) * sizeof *scopes);

    scopes_list(info->scopes, scopes);
    const char **tools = call_alloc(call, (MCP_TOOLS + 1) * sizeof *tools);
    mcp_tools_list(info->tools, tools);
    return (struct key_answer){
        .id = info->id,
        .prefix = info->prefix,
        .name = or_null(info->name),
        .owner = info->member,
        .made_by = info->made_by,
        .selector = info->selector,
        .scopes = scopes,
        .runtimes = info->runtimes,
        .network_allow = info->network_allow,
        .tools = info->tools ? tools : NULL,
        .quotas = quota_answer_of(&info->quota),
        .has_network = !info->has_no_network,
        .is_in_use = key_info_is_in_use(info),
        .created_at = info->created_at,
        .used_at = info->used_at,
        .expires_at = info->expires_at,
        .revoked_at = info->revoked_at,
    };
}

// ---- what is asked ----

struct key_body {
    const char *name, *owner, *selector;
    const char **scopes, **runtimes, **network_allow, **tools;
    struct quota_body quotas;
    int64_t expires_in_ms;
    bool has_network, is_network_set, has_name, has_scopes, has_runtimes, has_selector, has_expiry,
        has_network_allow, has_tools;
};
#define AT(member) offsetof(struct key_body, member)
#define NAME_ROW                                                                                   \
    {                                                                                              \
        "name", FIELD_TEXT, AT(name), .has_offset = AT(has_name), .maximum = 200,                  \
                                      .help = "what lists call it"                                 \
    }
#define SHARED_ROWS                                                                                \
    {"scopes",                                                                                     \
     FIELD_TEXTS,                                                                                  \
     AT(scopes),                                                                                   \
     .has_offset = AT(has_scopes),                                                                 \
     .is_filled = true,                                                                            \
     .minimum = 1,                                                                                 \
     .maximum = 16,                                                                                \
     .help = "of read, run, manage, admin, organisation; none beyond those of the key that asks"}, \
        {"runtimes",                                                                               \
         FIELD_TEXTS,                                                                              \
         AT(runtimes),                                                                             \
         .has_offset = AT(has_runtimes),                                                           \
         .is_filled = true,                                                                        \
         .maximum = 64,                                                                            \
         .help = "that it may start sandboxes from; an empty list is all"},                        \
        {"network", FIELD_BOOL, AT(has_network), .has_offset = AT(is_network_set),                 \
         .help = "whether its sandboxes may have one"},                                            \
        {"networkAllow",                                                                           \
         FIELD_TEXTS,                                                                              \
         AT(network_allow),                                                                        \
         .has_offset = AT(has_network_allow),                                                      \
         .is_filled = true,                                                                        \
         .maximum = 64,                                                                            \
         .help = "rules; each rule that a network of its sandboxes allows must be one of these, "  \
                 "and nothing else may be let through. An empty list is any"},                     \
        {"tools",                                                                                  \
         FIELD_TEXTS,                                                                              \
         AT(tools),                                                                                \
         .has_offset = AT(has_tools),                                                              \
         .is_filled = true,                                                                        \
         .maximum = 32,                                                                            \
         .help = "of MCP: \"run\", \"exec\" …; then it opens POST /mcp and nothing else. An "    \
                 "empty list is everything"},                                                      \
        {"selector",                                                                               \
         FIELD_TEXT,                                                                               \
         AT(selector),                                                                             \
         .has_offset = AT(has_selector),                                                           \
         .maximum = SELECTOR_TEXT - 1,                                                             \
         .help = "labels of the sandboxes it sees: \"team=blue\"; empty is all"},                  \
        {"quotas", FIELD_MAP, AT(quotas), .fields = quota_body_fields},                            \
    {                                                                                              \
        "expiresInMs", FIELD_MS, AT(expires_in_ms), .has_offset = AT(has_expiry),                  \
                                                    .help = "stops working then; 0 is never"       \
    }
static const struct field create_fields[] = {
    NAME_ROW,
    {"owner", FIELD_TEXT, AT(owner), .minimum = 1, .maximum = MEMBER_TEXT - 1,
     .help = "whose it is: a person or a service; not said: the owner of the key that asks"},
    SHARED_ROWS,
    {0},
};
static const struct field change_fields[] = {NAME_ROW, SHARED_ROWS, {0}};
#undef AT

static int64_t expiry_of(const struct key_body *body)
{
    return body->expires_in_ms ? (int64_t)clock_wall_ms() + body->expires_in_ms : 0;
}

static const char *const *list_of(const char **items)
{
    return items && items[0] ? (const char *const *)items : NULL;
}

static const char *const *runtimes_of(const struct key_body *body)
{
    return list_of(body->runtimes);
}

static int read_tools(const struct key_body *body, uint32_t *out, struct error *err)
{
    return mcp_tools_of(list_of(body->tools), out, err) < 0 ? error_field(err, "tools") : 0;
}

static int read_key_body(struct call *call, struct key_body *body, unsigned *scopes,
                         struct error *err)
{
    body->has_network = true;
    if (fields_read(call->body, call->route->fields, body, err) < 0)
        return -1;
    if (body->has_scopes && scopes_of((const char *const *)body->scopes, scopes, err) < 0)
        return error_field(err, "scopes");
    return 0;
}

/* POST /api/v1/keys */
static int create_key(struct call *call, struct error *err)
{
    struct key_body body = {0};
    struct key_request request = {.maker = &call->actor};
    autoclear(key_info) info = {0};
    char text[KEY_TEXT];

    if (read_key_body(call, &body, &request.scopes, err) < 0 ||
        read_tools(&body, &request.tools, err) < 0)
        return -1;
    request.name = body.name;
    request.member = body.owner;
    request.runtimes = runtimes_of(&body);
    request.network_allow = list_of(body.network_allow);
    request.has_no_network = !body.has_network;
    request.selector = or_null(body.selector);
    request.expires_at = expiry_of(&body);
    quota_body_apply(&body.quotas, &request.quota);
    if (key_create(call->core->accounts, &request, text, &info, err) < 0)
        return -1;
    access_set_subject(call->access, KEY_PREFIX, info.id);
    struct key_answer answer = answer_of(call, &info);
    answer.key = text;
    int result = api_answer(call, 201, key_fields, &answer);
    OPENSSL_cleanse(text, sizeof text);
    return result;
}

static const struct parameter list_parameters[] = {API_PAGE_PARAMETERS, {0}};

/* GET /api/v1/keys: oldest first, also those that are revoked or have expired. */
static int list_keys(struct call *call, struct error *err)
{
    autoclear(key_infos) found = {0};
    struct page page;

    if (api_page_read(call, &page, err) < 0 ||
        key_list_own(call->core->accounts, &call->actor, &page, &found, err) < 0)
        return -1;
    struct key_answer *items = call_alloc(call, found.count * sizeof *items);
    for (size_t i = 0; i < found.count; i++)
        items[i] = answer_of(call, &found.items[i]);
    return api_answer_page(call, list_fields, items, found.count, &found.next);
}

static int answer_key(struct call *call, const struct key_info *info)
{
    const struct key_answer answer = answer_of(call, info);
    return api_answer(call, 200, key_fields, &answer);
}

/* GET /api/v1/keys/{key} */
static int get_key(struct call *call, struct error *err)
{
    autoclear(key_info) info = {0};
    const char *id;

    if (call_id(call, 0, KEY_PREFIX, "key", &id, err) < 0 ||
        key_get(call->core->accounts, &call->actor, id, &info, err) < 0)
        return -1;
    return answer_key(call, &info);
}

static struct key_change change_of(const struct key_body *body)
{
    return (struct key_change){
        .has_name = body->has_name,
        .name = body->name,
        .has_scopes = body->has_scopes,
        .has_runtimes = body->has_runtimes,
        .runtimes = runtimes_of(body),
        .has_network = body->is_network_set,
        .has_no_network = !body->has_network,
        .has_selector = body->has_selector,
        .selector = or_null(body->selector),
        .has_network_allow = body->has_network_allow,
        .network_allow = list_of(body->network_allow),
        .has_tools = body->has_tools,
        .has_expiry = body->has_expiry,
        .expires_at = expiry_of(body),
    };
}

/* PATCH /api/v1/keys/{key} */
static int change_key(struct call *call, struct error *err)
{
    struct key_body body = {0};
    autoclear(key_info) info = {0};
    autoclear(key_info) changed = {0};
    unsigned scopes = 0;
    const char *id;

    if (call_id(call, 0, KEY_PREFIX, "key", &id, err) < 0 ||
        read_key_body(call, &body, &scopes, err) < 0 ||
        key_get(call->core->accounts, &call->actor, id, &info, err) < 0)
        return -1;
    struct key_change change = change_of(&body);
    change.scopes = scopes;
    if (read_tools(&body, &change.tools, err) < 0)
        return -1;
    change.has_quota = true;
    change.quota = info.quota;
    quota_body_apply(&body.quotas, &change.quota);
    if (key_change(call->core->accounts, &call->actor, id, &change, &changed, err) < 0)
        return -1;
    return answer_key(call, &changed);
}

/* DELETE /api/v1/keys/{key} */
static int revoke_key(struct call *call, struct error *err)
{
    const char *id;

    if (call_id(call, 0, KEY_PREFIX, "key", &id, err) < 0 ||
        key_revoke_own(call->core->accounts, &call->actor, id, err) < 0)
        return -1;
    return api_answer_empty(call);
}

const struct route api_key_routes[] = {
    {"POST", API_TOP "/keys", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, create_key,
     .summary = "makes a key and tells it, this once", .fields = create_fields,
     .answers = made_answers, .needs = SCOPE_ADMIN},
    {"GET", API_TOP "/keys", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_keys,
     .summary = "keys, oldest first, without their texts", .query = list_parameters,
     .answers = list_answers, .needs = SCOPE_ADMIN},
    {"GET", API_TOP "/keys/{key}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_key,
     .summary = "one key", .answers = key_answers, .needs = SCOPE_ADMIN},
    {"PATCH", API_TOP "/keys/{key}", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, change_key,
     .summary = "changes what a key may do, and for how long", .fields = change_fields,
     .answers = key_answers, .needs = SCOPE_ADMIN},
    {"DELETE", API_TOP "/keys/{key}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, revoke_key,
     .summary = "ends a key at once, and its tokens with it", .answers = empty_answers,
     .needs = SCOPE_ADMIN},
    {0},
};
