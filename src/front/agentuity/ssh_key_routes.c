/* SPDX-License-Identifier: Apache-2.0 */
/* The public keys people log in with. */
#include "core/account/account.h"
#include "front/agentuity/agentuity_impl.h"

static void write_ssh_key(struct json_writer *json, const struct ssh_key_info *info)
{
    json_map_begin(json);
    member_text(json, "fingerprint", info->fingerprint);
    member_text(json, "keyType", info->type);
    member_text(json, "comment", info->comment ? info->comment : "");
    member_text(json, "publicKey", info->public_key);
    json_map_end(json);
}

static void write_page(struct json_writer *json, const struct ssh_key_infos *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        write_ssh_key(json, &keys->items[i]);
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
        if (account_ssh_key_list(call->core->accounts, &call->actor, &page, &keys, err) < 0)
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

/* POST /cli/auth/ssh-keys */
static int add_ssh_key(struct call *call, struct error *err)
{
    struct add_body body = {0};
    autoclear(ssh_key_info) key = {0};
    bool is_new = false;
    autoreply reply = {0};

    if (fields_read(call->body, add_fields, &body, err) < 0 ||
        account_ssh_key_add(call->core->accounts, &call->actor, body.public_key, &key, &is_new,
                            err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    member_text(&reply.json, "fingerprint", key.fingerprint);
    member_bool(&reply.json, "added", is_new);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

struct remove_body {
    const char *fingerprint;
};
static const struct field remove_fields[] = {
    {"fingerprint", FIELD_TEXT, offsetof(struct remove_body, fingerprint), .is_needed = true,
     .maximum = 256},
    {0},
};

/* DELETE /cli/auth/ssh-keys, with a body */
static int remove_ssh_key(struct call *call, struct error *err)
{
    struct remove_body body = {0};
    bool found = false;
    autoreply reply = {0};

    if (fields_read(call->body, remove_fields, &body, err) < 0 ||
        account_ssh_key_remove(call->core->accounts, &call->actor, body.fingerprint, &found, err) <
            0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    member_bool(&reply.json, "removed", found);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

const struct route agentuity_ssh_key_routes[] = {
    {"GET", "/cli/auth/ssh-keys", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_ssh_keys,
     "public keys to log in with", .answers = answers_ssh_keys},
    {"POST", "/cli/auth/ssh-keys", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, add_ssh_key, "adds one",
     .fields = add_fields, .answers = answers_ssh_key_added},
    {"DELETE", "/cli/auth/ssh-keys", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, remove_ssh_key,
     "removes one", .fields = remove_fields, .answers = answers_ssh_key_removed},
    {0},
};
