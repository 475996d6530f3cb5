/* SPDX-License-Identifier: Apache-2.0 */
/* The public keys people log in with. */
#include "core/account/ssh_keys.h"
#include "front/agentuity/agentuity_impl.h"

static const struct answer_field key_fields[] = {
    {"fingerprint", ANSWER_TEXT, offsetof(struct ssh_key_info, fingerprint), .is_needed = true},
    {"keyType", ANSWER_TEXT, offsetof(struct ssh_key_info, type), .is_needed = true},
    {"comment", ANSWER_TEXT, offsetof(struct ssh_key_info, comment), .is_needed = true},
    {"publicKey", ANSWER_TEXT, offsetof(struct ssh_key_info, public_key), .is_needed = true},
    {0},
};
static const struct route_answer answers_keys[] = {
    {200, key_fields, &answers_data, .is_list = true}, {0}};

static void write_page(struct json_writer *json, const struct ssh_key_infos *keys)
{
    for (size_t i = 0; i < keys->count; i++) {
        struct ssh_key_info key = keys->items[i];
        key.comment = key.comment ? key.comment : "";
        answer_write(json, key_fields, &key);
    }
}

/* GET /cli/auth/ssh-keys: all of them, page by page. */
static int list_ssh_keys(struct call *call, struct error *err)
{
    struct page page = {.limit = PAGE_MAX};
    autoreply reply = {0};
    bool is_last = false;

    envelope_data(&reply);
    json_list_begin(&reply.json);
    while (!is_last) {
        autoclear(ssh_key_infos) keys = {0};
        if (ssh_key_list(call->core->accounts, &call->actor, &page, &keys, err) < 0)
            return -1;
        write_page(&reply.json, &keys);
        page.offset += (int64_t)keys.count;
        is_last = keys.count < PAGE_MAX;
    }
    json_list_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

struct add_body {
    const char *public_key;
};
static const struct field add_fields[] = {
    {"publicKey", FIELD_TEXT, offsetof(struct add_body, public_key), .is_needed = true,
     .maximum = 16384, .help = "as in authorized_keys: type, base64, comment"},
    {0},
};

struct added {
    const char *fingerprint;
    bool is_new;
};
static const struct answer_field added_fields[] = {
    {"fingerprint", ANSWER_TEXT, offsetof(struct added, fingerprint), .is_needed = true},
    {"added", ANSWER_BOOL, offsetof(struct added, is_new)},
    {0},
};
static const struct route_answer answers_added[] = {{200, added_fields, &answers_data}, {0}};

/* POST /cli/auth/ssh-keys */
static int add_ssh_key(struct call *call, struct error *err)
{
    struct add_body body = {0};
    autoclear(ssh_key_info) key = {0};
    struct added added = {0};

    if (fields_read(call->body, add_fields, &body, err) < 0 ||
        ssh_key_add(call->core->accounts, &call->actor,
                    &(struct ssh_key_request){.line = body.public_key}, &key, &added.is_new,
                    err) < 0)
        return -1;
    added.fingerprint = key.fingerprint;
    return envelope_answer(call, 200, added_fields, &added);
}

struct remove_body {
    const char *fingerprint;
};
static const struct field remove_fields[] = {
    {"fingerprint", FIELD_TEXT, offsetof(struct remove_body, fingerprint), .is_needed = true,
     .maximum = 256},
    {0},
};

static const struct answer_field removed_fields[] = {{"removed", ANSWER_BOOL}, {0}}; // a bool
static const struct route_answer answers_removed[] = {{200, removed_fields, &answers_data}, {0}};

/* DELETE /cli/auth/ssh-keys, with a body */
static int remove_ssh_key(struct call *call, struct error *err)
{
    struct remove_body body = {0};
    bool found = false;

    if (fields_read(call->body, remove_fields, &body, err) < 0 ||
        ssh_key_remove(call->core->accounts, &call->actor, body.fingerprint, &found, err) < 0)
        return -1;
    return envelope_answer(call, 200, removed_fields, &found);
}

const struct route agentuity_ssh_key_routes[] = {
    {"GET", "/cli/auth/ssh-keys", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_ssh_keys,
     "public keys to log in with", .answers = answers_keys},
    {"POST", "/cli/auth/ssh-keys", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, add_ssh_key, "adds one",
     .fields = add_fields, .answers = answers_added, .needs = SCOPE_MANAGE},
    {"DELETE", "/cli/auth/ssh-keys", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, remove_ssh_key,
     "removes one", .fields = remove_fields, .answers = answers_removed, .needs = SCOPE_MANAGE},
    {0},
};
