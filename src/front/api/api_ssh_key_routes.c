/* SPDX-License-Identifier: Apache-2.0 */
/* The public SSH keys that open sandboxes. */
#include "core/account/ssh_key.h"
#include "core/account/ssh_keys.h"
#include "front/api/api_page.h"

// ---- what is told ----

struct ssh_key_answer {
    const char *fingerprint, *name, *type, *comment, *public_key, *owner, *made_by;
    bool is_in_use;
    int64_t created_at, used_at;
};
#define AT(member) offsetof(struct ssh_key_answer, member)
static const struct answer_field key_fields[] = {
    {"fingerprint", ANSWER_TEXT, AT(fingerprint), .is_needed = true,
     .help = "as ssh-keygen -l shows it; names the key in paths, percent-encoded"},
    {"name", ANSWER_TEXT, AT(name), .help = "as it was given, or its comment"},
    {"kind", ANSWER_TEXT, AT(type), .is_needed = true, .help = "such as ssh-ed25519"},
    {"comment", ANSWER_TEXT, AT(comment)},
    {"publicKey", ANSWER_TEXT, AT(public_key), .is_needed = true,
     .help = "type and base64, as in authorized_keys"},
    {"owner", ANSWER_TEXT, AT(owner),
     .help = "whose it is: a person or a service; not there: nobody's in particular"},
    {"createdBy", ANSWER_ID, AT(made_by), .prefix = KEY_PREFIX,
     .help = "the API key that added it: it opens what that one does, and ends with it"},
    {"inUse", ANSWER_BOOL, AT(is_in_use), .help = "whether it opens anything"},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {"usedAt", ANSWER_TIME, AT(used_at), .help = "to the minute; not there: never"},
    {0},
};
#undef AT
static const struct answer_field list_fields[] = {
    API_LIST_FIELDS(key_fields, struct ssh_key_answer), {0}};
static const struct route_answer key_answers[] = {{200, key_fields}, {0}};
static const struct route_answer added_answers[] = {{201, key_fields}, {200, key_fields}, {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};
static const struct route_answer empty_answers[] = {{204}, {0}};

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

/* Texts are borrowed from the info. */
static struct ssh_key_answer answer_of(const struct ssh_key_info *info)
{
    return (struct ssh_key_answer){
        .fingerprint = info->fingerprint,
        .name = or_null(info->name ? info->name : info->comment),
        .type = info->type,
        .comment = or_null(info->comment),
        .public_key = info->public_key,
        .owner = info->member,
        .made_by = info->key_id,
        .is_in_use = info->is_in_use,
        .created_at = info->created_at,
        .used_at = info->used_at,
    };
}

// ---- what is asked ----

struct add_body {
    const char *public_key, *name;
};
#define AT(member) offsetof(struct add_body, member)
static const struct field add_fields[] = {
    {"publicKey", FIELD_TEXT, AT(public_key), .is_needed = true, .maximum = SSH_KEY_LINE,
     .help = "the line of a .pub file: type, base64, comment"},
    {"name", FIELD_TEXT, AT(name), .minimum = 1, .maximum = SSH_KEY_NAME,
     .help = "what lists call it; not given: its comment. Of a key that is there: its new one"},
    {0},
};
#undef AT

/* POST /api/v1/ssh-keys */
static int add_key(struct call *call, struct error *err)
{
    struct add_body body = {0};
    autoclear(ssh_key_info) info = {0};
    bool is_new = false;

    if (fields_read(call->body, add_fields, &body, err) < 0)
        return -1;
    const struct ssh_key_request request = {.line = body.public_key, .name = body.name};
    if (ssh_key_add(call->core->accounts, &call->actor, &request, &info, &is_new, err) < 0)
        return -1;
    const struct ssh_key_answer answer = answer_of(&info);
    return api_answer(call, is_new ? 201 : 200, key_fields, &answer);
}

static const struct parameter list_parameters[] = {API_PAGE_PARAMETERS, {0}};

/* GET /api/v1/ssh-keys */
static int list_keys(struct call *call, struct error *err)
{
    autoclear(ssh_key_infos) found = {0};
    struct page page;

    if (api_page_read(call, &page, err) < 0 ||
        ssh_key_list(call->core->accounts, &call->actor, &page, &found, err) < 0)
        return -1;
    struct ssh_key_answer *items = call_alloc(call, found.count * sizeof *items);
    for (size_t i = 0; i < found.count; i++)
        items[i] = answer_of(&found.items[i]);
    return api_answer_page(call, list_fields, items, found.count, &found.next);
}

/* GET /api/v1/ssh-keys/{fingerprint} */
static int get_key(struct call *call, struct error *err)
{
    autoclear(ssh_key_info) info = {0};

    if (ssh_key_get(call->core->accounts, &call->actor, call->parameters[0], &info, err) < 0)
        return -1;
    const struct ssh_key_answer answer = answer_of(&info);
    return api_answer(call, 200, key_fields, &answer);
}

/* DELETE /api/v1/ssh-keys/{fingerprint} */
static int remove_key(struct call *call, struct error *err)
{
    const char *fingerprint = call->parameters[0];
    bool found = false;

    if (ssh_key_remove(call->core->accounts, &call->actor, fingerprint, &found, err) < 0)
        return -1;
    return found ? api_answer_empty(call) : error_missing(err, "ssh key", fingerprint);
}

const struct route api_ssh_key_routes[] = {
    {"POST", API_TOP "/ssh-keys", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, add_key,
     .summary = "adds a public SSH key, which then opens the sandboxes of the API key that asks",
     .fields = add_fields, .answers = added_answers, .needs = SCOPE_MANAGE},
    {"GET", API_TOP "/ssh-keys", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_keys,
     .summary = "public SSH keys, oldest first", .query = list_parameters, .answers = list_answers,
     .needs = SCOPE_READ},
    {"GET", API_TOP "/ssh-keys/{fingerprint}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_key,
     .summary = "one of them", .answers = key_answers, .needs = SCOPE_READ},
    {"DELETE", API_TOP "/ssh-keys/{fingerprint}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, remove_key,
     .summary = "removes one: connections that were opened by it end", .answers = empty_answers,
     .needs = SCOPE_MANAGE},
    {0},
};
