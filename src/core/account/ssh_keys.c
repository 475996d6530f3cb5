/* SPDX-License-Identifier: Apache-2.0 */
/* Public SSH keys of people: added, listed, removed; see ssh_keys.h. */
#include "core/account/ssh_keys.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/account/account_impl.h"
#include "core/account/account_info_impl.h"
#include "core/account/ssh_key.h"
#include "core/event/hub.h"
#include "store/keys.h"

#include <string.h>

static void announce(const struct accounts *accounts)
{
    if (accounts->hub)
        hub_announce(accounts->hub, SSH_KEYS_CHANGED);
}

static struct owner owner_of(const struct ssh_key_record *record)
{
    return (struct owner){.organisation = record->organisation, .member = record->member};
}

static int check_name(const char *name, struct error *err)
{
    const size_t length = name ? strlen(name) : 0;

    if (length > SSH_KEY_NAME)
        return error_refuse(err, ERROR_INVALID, "ssh key",
                            "the name of an SSH key has at most %d bytes", SSH_KEY_NAME);
    for (size_t at = 0, step; at < length; at += step) {
        step = utf8_length(name + at, length - at);
        if (!step || (unsigned char)name[at] < ' ' || name[at] == 0x7f)
            return error_refuse(
                err, ERROR_INVALID, "ssh key",
                "the name of an SSH key is one line of UTF-8 without control characters");
    }
    return 0;
}

static int check_room(struct accounts *accounts, const struct ssh_key_record *record,
                      struct error *err)
{
    const struct owner owner = owner_of(record);
    const int64_t most = record->member ? SSH_KEYS_OF_MEMBER : SSH_KEYS_OF_ALL;
    struct page one = {.limit = 1};
    autosshkeys found = {0};

    if (store_ssh_key_list(accounts->store, &owner, &one, &found, err) < 0)
        return -1;
    if (found.total < most)
        return 0;
    return error_refuse(err, ERROR_FULL, "ssh key",
                        "there are %lld SSH keys, as many as there may be; remove one first",
                        (long long)found.total);
}

// One that its owner has: whether it is to be replaced, or stays, by another name perhaps.
static int settle_known(struct accounts *accounts, const struct ssh_key_record *known,
                        const char *name, bool *is_replaced, struct error *err)
{
    const struct owner owner = owner_of(known);
    struct actor ignored;
    bool is_gone = false;

    *is_replaced = false;
    if (ssh_key_actor(accounts, known, &ignored, err) < 0) {
        if (!error_is(err, ERROR_NOT_FOUND))
            return -1;
        *err = (struct error){0};
        *is_replaced = true; // its API key has ended, and it with that one
        return store_ssh_key_remove(accounts->store, &owner, known->fingerprint, &is_gone, err);
    }
    return name ? store_ssh_key_rename(accounts->store, &owner, known->fingerprint, name, err) : 0;
}

/* Lists go on behind a time and a fingerprint, so no two owners have one key since the same time. */
static int choose_time(struct accounts *accounts, struct ssh_key_record *record, struct error *err)
{
    autosshkeys same = {0};

    if (store_ssh_key_list_same(accounts->store, record->organisation, record->fingerprint,
                                PAGE_MAX, &same, err) < 0)
        return -1;
    for (int64_t i = 0; i < (int64_t)same.count; i++) {
        if (same.rows[i].created_at >= record->created_at)
            record->created_at = same.rows[i].created_at + 1;
    }
    return 0;
}

// In a transaction. What others have is nothing to this one, and is not told.
static int put(struct accounts *accounts, const struct ssh_key_record *record, bool *is_new,
               struct error *err)
{
    const struct owner owner = owner_of(record);
    autosshkeyrecord known = {0};

    *is_new = true;
    if (store_ssh_key_get(accounts->store, &owner, record->fingerprint, &known, err) < 0) {
        if (!error_is(err, ERROR_NOT_FOUND))
            return -1;
        *err = (struct error){0};
    } else if (settle_known(accounts, &known, record->name, is_new, err) < 0)
        return -1;
    if (!*is_new)
        return 0;
    struct ssh_key_record fresh = *record;
    if (check_room(accounts, record, err) < 0 || choose_time(accounts, &fresh, err) < 0)
        return -1;
    return store_ssh_key_put(accounts->store, &fresh, err);
}

static int put_once(struct accounts *accounts, const struct ssh_key_record *record, bool *is_new,
                    struct error *err)
{
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(accounts->store, STORE_DURABLE, &together, err) == 0 &&
                 put(accounts, record, is_new, err) == 0 && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

int ssh_key_add(struct accounts *accounts, const struct actor *actor,
                const struct ssh_key_request *request, struct ssh_key_info *out, bool *is_new,
                struct error *err)
{
    autosshkey key = {0};

    if (actor_refuse_token(actor, "add an SSH key", err) < 0 ||
        ssh_key_parse(request->line, &key, err) < 0 || check_name(request->name, err) < 0)
        return -1;
    const struct ssh_key_record record = {
        .organisation = actor->organisation,
        .fingerprint = key.fingerprint,
        .type = key.type,
        .comment = key.comment,
        .public_key = key.text,
        .name = request->name && *request->name ? request->name : NULL,
        .member = *actor->member ? actor->member : NULL,
        .key_id = *actor->key_id ? actor->key_id : NULL,
        .created_at = (int64_t)clock_wall_ms(),
    };
    if (put_once(accounts, &record, is_new, err) < 0)
        return -1;
    announce(accounts);
    return ssh_key_get(accounts, actor, key.fingerprint, out, err);
}

// Whether it opens anything.
static int look_at_use(struct accounts *accounts, struct ssh_key_info *info, struct error *err)
{
    const struct ssh_key_record record = {.organisation = accounts->organisation,
                                          .key_id = info->key_id};
    struct actor actor;

    if (ssh_key_actor(accounts, &record, &actor, err) < 0) {
        if (!error_is(err, ERROR_NOT_FOUND))
            return -1;
        *err = (struct error){0};
        return 0;
    }
    info->is_in_use = (actor.scopes & SCOPE_RUN) != 0;
    return 0;
}

// Its own, or where it sees those of others and has none itself, the oldest of theirs.
static int get_own(struct accounts *accounts, const struct actor *actor, const char *fingerprint,
                   struct ssh_key_record *out, struct error *err)
{
    const struct owner own = {.organisation = actor->organisation, .member = actor->member};
    autosshkeys same = {0};

    if (store_ssh_key_get(accounts->store, &own, fingerprint, out, err) == 0)
        return 0;
    if (!error_is(err, ERROR_NOT_FOUND) || !(actor->scopes & SCOPE_ORGANISATION))
        return -1;
    *err = (struct error){0};
    if (store_ssh_key_list_same(accounts->store, actor->organisation, fingerprint, 1, &same, err) <
        0)
        return -1;
    if (!same.count)
        return error_missing(err, "ssh key", fingerprint);
    *out = same.rows[0];
    same.rows[0] = (struct ssh_key_record){0};
    return 0;
}

int ssh_key_remove(struct accounts *accounts, const struct actor *actor, const char *fingerprint,
                   bool *found, struct error *err)
{
    autosshkeyrecord record = {0};

    *found = false;
    if (actor_refuse_token(actor, "remove an SSH key", err) < 0)
        return -1;
    if (get_own(accounts, actor, fingerprint, &record, err) < 0) {
        if (!error_is(err, ERROR_NOT_FOUND))
            return -1;
        *err = (struct error){0};
        return 0;
    }
    const struct owner owner = owner_of(&record);
    if (store_ssh_key_remove(accounts->store, &owner, fingerprint, found, err) < 0)
        return -1;
    announce(accounts);
    return 0;
}

int ssh_key_get(struct accounts *accounts, const struct actor *actor, const char *fingerprint,
                struct ssh_key_info *out, struct error *err)
{
    autosshkeyrecord record = {0};

    if (actor_refuse_token(actor, "look at SSH keys", err) < 0 ||
        get_own(accounts, actor, fingerprint, &record, err) < 0)
        return -1;
    ssh_key_info_take(out, &record);
    return look_at_use(accounts, out, err);
}

int ssh_key_list(struct accounts *accounts, const struct actor *actor, const struct page *page,
                 struct ssh_key_infos *out, struct error *err)
{
    const struct owner owner = actor_filter(actor);
    autosshkeys found = {0};

    if (actor_refuse_token(actor, "look at SSH keys", err) < 0 ||
        store_ssh_key_list(accounts->store, &owner, page, &found, err) < 0)
        return -1;
    ssh_key_infos_take(out, &found);
    for (size_t i = 0; i < out->count; i++)
        if (look_at_use(accounts, &out->items[i], err) < 0)
            return -1;
    return 0;
}
