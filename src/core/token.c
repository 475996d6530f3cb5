/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of one sandbox; see token.h. */
#include "core/token.h"

#include "base/clock.h"
#include "core/account/account_impl.h"
#include "core/account/account_info_impl.h"
#include "core/core.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_object.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#define POSSIBLE (SCOPE_READ | SCOPE_RUN | SCOPE_MANAGE)
#define SHOWN 12
#define NAME_MAXIMUM 200

static int check(const struct actor *actor, const struct token_request *request, unsigned scopes,
                 struct error *err)
{
    if (actor_refuse_token(actor, "make or end tokens", err) < 0)
        return -1;
    if (scopes & ~(unsigned)POSSIBLE)
        return error_refuse(err, ERROR_INVALID, "scope",
                            "a token has the scopes read, run and manage at most");
    if (scopes & ~actor->scopes)
        return error_refuse(err, ERROR_DENIED, "key",
                            "your key has not the scope '%s' and cannot give it to a token",
                            scope_name(scopes & ~actor->scopes));
    if (!scopes)
        return error_refuse(err, ERROR_DENIED, "key", "your key has no scope to give to a token");
    if (request->ttl_ms < 0 || request->ttl_ms > TOKEN_MOST_MS)
        return error_refuse(err, ERROR_INVALID, "token", "a token lives for 24 hours at most");
    if (request->name && strlen(request->name) > NAME_MAXIMUM)
        return error_refuse(err, ERROR_INVALID, "token", "a name has at most %d bytes",
                            NAME_MAXIMUM);
    return 0;
}

static int check_room(struct core *core, const char *sandbox_id, int64_t now, struct error *err)
{
    const struct page none = {.limit = 0};
    autokeys found = {0};

    if (store_token_list(core->store, sandbox_id, now, &none, &found, err) < 0)
        return -1;
    if (found.total < TOKENS_OF_SANDBOX)
        return 0;
    return error_refuse(err, ERROR_FULL, "token",
                        "a sandbox has at most %d tokens at once: revoke some, or let them expire",
                        TOKENS_OF_SANDBOX);
}

static int put(struct core *core, const struct actor *actor, const struct token_request *request,
               unsigned scopes, const char *text, struct key_info *out, struct error *err)
{
    char id[ID_TEXT], prefix[SHOWN + 1], words[SCOPES_TEXT];
    int64_t now = (int64_t)clock_wall_ms();
    autokey kept = {0};
    struct key_record record = {
        .id = id_make(id),
        .prefix = prefix,
        .name = request->name ? request->name : "",
        .organisation = core->accounts->organisation,
        .member = *actor->member ? actor->member : NULL,
        .made_by = *actor->key_id ? actor->key_id : NULL,
        .sandbox_id = request->sandbox_id,
        .scopes = scopes_write(scopes, words),
        .created_at = now,
        .expires_at = now + (request->ttl_ms ? request->ttl_ms : TOKEN_USUAL_MS),
    };

    (void)snprintf(prefix, sizeof prefix, "%.*s", SHOWN, text);
    key_hash(core->accounts, text, record.hash);
    if (check_room(core, request->sandbox_id, now, err) < 0 ||
        store_key_put(core->store, &record, err) < 0 ||
        store_key_get(core->store, id, &kept, err) < 0)
        return -1;
    key_info_take(out, &kept);
    return 0;
}

int token_create(struct core *core, const struct actor *actor, const struct token_request *request,
                 char *text, struct key_info *out, struct error *err)
{
    unsigned scopes = request->scopes ? request->scopes : actor->scopes & (SCOPE_READ | SCOPE_RUN);
    autoptr(sandbox) sandbox = NULL;
    char made[KEY_TEXT];

    if (check(actor, request, scopes, err) < 0 ||
        lookup_sandbox(core->sandboxes, actor, request->sandbox_id, &sandbox, err) < 0)
        return -1;
    key_make_text("brt_", made);
    int result = put(core, actor, request, scopes, made, out, err);
    if (result == 0)
        memcpy(text, made, sizeof made);
    OPENSSL_cleanse(made, sizeof made);
    key_forget_checks(core->accounts);
    return result;
}

int token_list(struct core *core, const struct actor *actor, const char *sandbox_id,
               const struct page *page, struct key_infos *out, struct error *err)
{
    autosandbox record = {0};
    autokeys found = {0};

    if (lookup_record(core->sandboxes, actor, sandbox_id, &record, err) < 0 ||
        store_token_list(core->store, sandbox_id, (int64_t)clock_wall_ms(), page, &found, err) < 0)
        return -1;
    key_infos_take(out, &found);
    return 0;
}

int token_revoke(struct core *core, const struct actor *actor, const char *sandbox_id,
                 const char *token_id, struct error *err)
{
    autosandbox record = {0};
    autokey token = {0};

    if (actor_refuse_token(actor, "make or end tokens", err) < 0 ||
        lookup_record(core->sandboxes, actor, sandbox_id, &record, err) < 0 ||
        store_key_get(core->store, token_id, &token, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) && error_is_about(err, "key")
                   ? error_missing(err, "token", token_id)
                   : -1;
    if (!token.sandbox_id || strcmp(token.sandbox_id, sandbox_id) != 0)
        return error_missing(err, "token", token_id);
    return key_revoke(core->accounts, token_id, err);
}
