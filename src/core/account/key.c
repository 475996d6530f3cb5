/* SPDX-License-Identifier: Apache-2.0 */
/* API keys: made, listed, changed, revoked; see key.h. */
#include "core/account/key.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/account/account_impl.h"
#include "core/event/event.h"
#include "core/account/account_info_impl.h"
#include "core/account/key_bounds.h"
#include "core/account/quota.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MADE KEY_SHOWN // of a made key: "brw_" and 40 of its 260 bits
#define SHOWN_CHOSEN 4

// ---- making ----

#define KEY_LETTERS 52 // 260 random bits

void key_make_text(const char prefix[5], char text[KEY_TEXT])
{
    memcpy(text, prefix, 5);
    id_make_letters(text + 4, KEY_LETTERS);
}

size_t key_shown(const char *text)
{
    size_t length = strlen(text);

    if (length == 4 + KEY_LETTERS &&
        (strncmp(text, "brw_", 4) == 0 || strncmp(text, "brt_", 4) == 0))
        return SHOWN_MADE;
    return length >= KEY_MINIMUM ? SHOWN_CHOSEN : 0;
}

int key_check_chosen(const char *text, struct error *err)
{
    size_t length = strlen(text);

    if (length < KEY_MINIMUM)
        error_set(
            err, ERROR_INVALID,
            "a key of %zu characters can be guessed; choose at least %d, or let burrow make one",
            length, KEY_MINIMUM);
    else if (length > KEY_MAXIMUM)
        error_set(err, ERROR_INVALID, "a key has at most %d characters", KEY_MAXIMUM);
    else {
        for (const char *at = text; *at; at++)
            if (*at <= ' ' || *at > '~')
                return error_refuse(
                    err, ERROR_INVALID, "key",
                    "a key is made of printable ASCII characters without spaces; character "
                    "%zu is none",
                    (size_t)(at - text) + 1);
        return 0;
    }
    return error_about(err, "key");
}

// The chosen key is known already: fine, unless it is not to be used any more.
static int take_known(struct accounts *accounts, const unsigned char hash[KEY_HASH],
                      struct key_record *out, struct error *err)
{
    autokey known = {0};

    if (store_key_find(accounts->store, hash, &known, err) < 0)
        return -1;
    if (known.revoked_at || (known.expires_at && known.expires_at <= (int64_t)clock_wall_ms()))
        return error_refuse(err, ERROR_STATE, "key", "key '%s' has %s; choose another one",
                            known.prefix, known.revoked_at ? "been revoked" : "expired");
    *out = known;
    known = (struct key_record){0};
    return 0;
}

static int put_event(struct accounts *accounts, const struct key_record *record, const char *reason,
                     int64_t now, struct error *err)
{
    const struct owner owner = {.organisation = record->organisation, .member = record->member};
    struct event event = {.type = EVENT_KEY, .reason = reason, .now = now};

    event_fact(&event, "key", record->id);
    event_fact(&event, "name", record->name);
    return event_write(accounts->store, NULL, &owner, &event, err);
}

static int put_new(struct accounts *accounts, const struct key_record *record, struct error *err)
{
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(accounts->store, STORE_DURABLE, &together, err) == 0 &&
                 store_key_put(accounts->store, record, err) == 0 &&
                 put_event(accounts, record, "created", record->created_at, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

static int put_revoked(struct accounts *accounts, const char *id, struct error *err)
{
    int64_t now = (int64_t)clock_wall_ms();
    autotransaction together = {0};
    autokey record = {0};
    bool is_put;

    if (store_key_get(accounts->store, id, &record, err) < 0)
        return -1;
    do
        is_put = store_begin(accounts->store, STORE_DURABLE, &together, err) == 0 &&
                 store_key_revoke(accounts->store, id, now, err) == 0 &&
                 put_event(accounts, &record, "revoked", now, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

// What was just made, or was there already.
static int put_key(struct accounts *accounts, const struct key_record *record, bool is_chosen,
                   struct key_info *out, struct error *err)
{
    autokey kept = {0};

    int result = put_new(accounts, record, err);
    if (result < 0 && error_is(err, ERROR_CONFLICT) && is_chosen)
        result = take_known(accounts, record->hash, &kept, err);
    else if (result == 0)
        result = store_key_get(accounts->store, record->id, &kept, err);
    if (result == 0)
        key_info_take(out, &kept);
    key_forget_checks(accounts);
    return result;
}

int key_create(struct accounts *accounts, const struct key_request *request, char *text,
               struct key_info *out, struct error *err)
{
    char made[KEY_TEXT], id[ID_TEXT], prefix[SHOWN_MADE + 1], scopes[SCOPES_TEXT];
    char tools[MCP_TOOLS_TEXT];
    struct key_record record = {
        .id = id_make(id),
        .prefix = prefix,
        .organisation = accounts->organisation,
        .scopes = scopes,
        .created_at = (int64_t)clock_wall_ms(),
    };

    if ((request->text && key_check_chosen(request->text, err) < 0) ||
        key_bounds_settle(accounts, request, &record, scopes, tools, err) < 0)
        return -1;
    key_make_text("brw_", made);
    const char *key = request->text ? request->text : made;
    (void)snprintf(prefix, sizeof prefix, "%.*s", request->text ? SHOWN_CHOSEN : SHOWN_MADE, key);
    key_hash(accounts, key, record.hash);
    int result = put_key(accounts, &record, request->text != NULL, out, err);
    if (result == 0 && !request->text)
        memcpy(text, made, sizeof made);
    OPENSSL_cleanse(made, sizeof made);
    return result;
}

// ---- revoking, listing ----

#define GIVEN_LEAST 8 // characters of a key that say which one is meant, beside what lists show

/* Whether a key that lists show so may be the one that begins so. */
static bool is_shown_as(const char *shown, const char *given)
{
    size_t length = strlen(given) < strlen(shown) ? strlen(given) : strlen(shown);

    return strcmp(shown, given) == 0 ||
           (length >= GIVEN_LEAST && strncmp(shown, given, length) == 0);
}

// The id of the one key that can still be used and is shown so.
static int find_shown(struct accounts *accounts, const char *prefix, char id[ID_TEXT],
                      struct error *err)
{
    struct page page = {.limit = PAGE_MAX};
    unsigned found = 0;

    for (;; page.offset += page.limit) {
        autokeys list = {0};
        if (store_key_list(accounts->store, accounts->organisation, &page, &list, err) < 0)
            return -1;
        for (size_t i = 0; i < list.count; i++)
            if (is_shown_as(list.rows[i].prefix, prefix) && !list.rows[i].revoked_at && !found++)
                (void)snprintf(id, ID_TEXT, "%s", list.rows[i].id);
        if (page.offset + (int64_t)list.count >= list.total)
            break;
    }
    if (found == 1)
        return 0;
    if (found)
        return error_refuse(err, ERROR_AMBIGUOUS, "key",
                            "%u keys begin with '%.60s'; name one by its id", found, prefix);
    return error_refuse(err, ERROR_NOT_FOUND, "key", "there is no key '%.60s' in use", prefix);
}

int key_revoke(struct accounts *accounts, const char *id, struct error *err)
{
    char shown[ID_TEXT];

    if (!id_is_valid(id)) {
        if (find_shown(accounts, id, shown, err) < 0)
            return -1;
        id = shown;
    }
    if (put_revoked(accounts, id, err) < 0)
        return -1;
    key_forget_checks(accounts);
    key_look_for_ended(accounts);
    return 0;
}

int key_list(struct accounts *accounts, const struct page *page, struct key_infos *out,
             struct error *err)
{
    autokeys found = {0};

    if (store_key_list(accounts->store, accounts->organisation, page, &found, err) < 0)
        return -1;
    key_infos_take(out, &found);
    return 0;
}

// ---- for one that asks ----

static bool sees_key(const struct actor *actor, const struct key_record *key)
{
    const struct owner owner = {.organisation = key->organisation, .member = key->member};
    return actor_sees(actor, &owner) && !key->sandbox_id;
}

static int get_own(struct accounts *accounts, const struct actor *actor, const char *id,
                   struct key_record *out, struct error *err)
{
    autokey key = {0};

    if (store_key_get(accounts->store, id, &key, err) < 0)
        return -1;
    if (!sees_key(actor, &key))
        return error_missing(err, "key", id);
    *out = key;
    key = (struct key_record){0};
    return 0;
}

int key_get(struct accounts *accounts, const struct actor *actor, const char *id,
            struct key_info *out, struct error *err)
{
    autokey key = {0};

    if (get_own(accounts, actor, id, &key, err) < 0)
        return -1;
    key_info_take(out, &key);
    return 0;
}

int key_list_own(struct accounts *accounts, const struct actor *actor, const struct page *page,
                 struct key_infos *out, struct error *err)
{
    const struct owner owner = actor_filter(actor);
    autokeys found = {0};

    if (store_key_list_of(accounts->store, &owner, page, &found, err) < 0)
        return -1;
    key_infos_take(out, &found);
    return 0;
}

int key_revoke_own(struct accounts *accounts, const struct actor *actor, const char *id,
                   struct error *err)
{
    autokey key = {0};

    if (get_own(accounts, actor, id, &key, err) < 0)
        return -1;
    return key_revoke(accounts, id, err);
}

/* What it may see less of now, it may be following; what it may no longer make, a request that began before may be about to. */
static bool may_be_less(const struct key_change *change, const struct key_record *before,
                        const struct key_record *after)
{
    return change->has_selector || change->has_tools || change->has_runtimes ||
           change->has_network || change->has_network_allow ||
           quota_is_less(&after->quota, &before->quota) ||
           (scopes_read(before->scopes) & ~scopes_read(after->scopes));
}

int key_change(struct accounts *accounts, const struct actor *actor, const char *id,
               const struct key_change *change, struct key_info *out, struct error *err)
{
    char scopes[SCOPES_TEXT], tools[MCP_TOOLS_TEXT];
    autokey key = {0};

    if (get_own(accounts, actor, id, &key, err) < 0)
        return -1;
    struct key_record next = key; // borrows what stays
    if (key_bounds_change(accounts, actor, change, &next, scopes, tools, err) < 0 ||
        store_key_change(accounts->store, &next, err) < 0)
        return -1;
    key_forget_checks(accounts);
    if (may_be_less(change, &key, &next))
        key_cut_off(accounts, id);
    return key_get(accounts, actor, id, out, err);
}
