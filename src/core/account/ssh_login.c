/* SPDX-License-Identifier: Apache-2.0 */
/* Whose an SSH key is; see ssh_login.h. */
#include "core/account/ssh_login.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/account/account_impl.h"
#include "store/keys.h"

#include <stdio.h>
#include <string.h>

#define LOGIN_SCOPES (SCOPE_READ | SCOPE_RUN | SCOPE_ORGANISATION)

static int refuse(struct error *err)
{
    return error_refuse(err, ERROR_NOT_FOUND, "ssh key", "this SSH key opens nothing here");
}

static void act_as_root(const struct accounts *accounts, struct actor *out)
{
    *out = (struct actor){.scopes = LOGIN_SCOPES};
    memcpy(out->organisation, accounts->organisation, sizeof out->organisation);
}

int ssh_key_actor(struct accounts *accounts, const struct ssh_key_record *record, struct actor *out,
                  struct error *err)
{
    autokey maker = {0};

    if (strcmp(record->organisation, accounts->organisation) != 0)
        return refuse(err);
    if (!record->key_id) {
        act_as_root(accounts, out);
        (void)snprintf(out->member, sizeof out->member, "%s", record->member ? record->member : "");
        return 0;
    }
    if (store_key_get(accounts->store, record->key_id, &maker, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? refuse(err) : -1;
    if (!key_actor(accounts, &maker, out) || out->tools) // one for tools alone opens nothing else
        return refuse(err);
    out->scopes &= LOGIN_SCOPES;
    out->is_admin = false;
    return 0;
}

int ssh_login(struct accounts *accounts, const char *fingerprint,
              bool (*on_owner)(void *data, const struct actor *actor), void *data,
              struct error *err)
{
    autosshkeys same = {0};
    bool is_known = false, goes_on = true;

    if (store_ssh_key_list_same(accounts->store, accounts->organisation, fingerprint,
                                SSH_LOGIN_OWNERS, &same, err) < 0)
        return -1;
    for (size_t i = 0; i < same.count && goes_on; i++) {
        struct actor actor;
        if (ssh_key_actor(accounts, &same.rows[i], &actor, err) < 0) {
            if (!error_is(err, ERROR_NOT_FOUND))
                return -1;
            *err = (struct error){0};
        } else if (actor.scopes & SCOPE_RUN) {
            is_known = true;
            goes_on = on_owner(data, &actor);
        }
    }
    return is_known ? 0 : refuse(err);
}

void ssh_login_used(struct accounts *accounts, const struct actor *actor, const char *fingerprint)
{
    const struct owner owner = {.organisation = actor->organisation, .member = actor->member};
    struct error err = {0};

    if (store_ssh_key_used(accounts->store, &owner, fingerprint, (int64_t)clock_wall_ms(), &err) <
        0)
        log_debug("use of an SSH key not recorded", F("error", err.text));
}
