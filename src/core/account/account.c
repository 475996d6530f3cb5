/* SPDX-License-Identifier: Apache-2.0 */
/* Organisations; see account.h. */
#include "core/account/account.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/account/account_impl.h"
#include "core/account/account_info_impl.h"
#include "core/account/quota.h"

#include <stdio.h>
#include <string.h>

// As one: a server and a command line may both be the first.
static int find_or_make(struct accounts *accounts, struct store_transaction *together,
                        struct error *err)
{
    struct page first = {.limit = 1};
    struct organisation_record fresh = {
        .id = accounts->organisation, .name = "default", .created_at = (int64_t)clock_wall_ms()};
    autoorganisations list = {0};

    if (store_begin(accounts->store, STORE_DURABLE, together, err) < 0 ||
        store_organisation_list(accounts->store, &first, &list, err) < 0)
        return -1;
    if (list.count) {
        (void)snprintf(accounts->organisation, ID_TEXT, "%s", list.rows[0].id);
        quotas_set_ceilings(accounts->quotas, &list.rows[0].ceilings);
        return 0; // nothing was written
    }
    (void)id_make(accounts->organisation);
    if (store_organisation_put(accounts->store, &fresh, err) < 0)
        return -1;
    return store_commit(together, err);
}

static int find_organisation(struct accounts *accounts, struct error *err)
{
    autotransaction together = {0};
    int result;

    do
        result = find_or_make(accounts, &together, err);
    while (result < 0 && store_again(&together, err));
    return result;
}

int accounts_open(struct store *store, struct accounts **out, struct error *err)
{
    autoptr(accounts) accounts = xnew(struct accounts);

    accounts->store = store;
    accounts->quotas = quotas_new();
    if (find_organisation(accounts, err) < 0 || key_checks_new(store, &accounts->checks, err) < 0)
        return -1;
    *out = take(accounts);
    return 0;
}

void accounts_free(struct accounts *accounts)
{
    if (!accounts)
        return;
    key_checks_free(accounts->checks);
    quotas_free(accounts->quotas);
    free(accounts);
}

void accounts_set_hub(struct accounts *accounts, struct hub *hub)
{
    accounts->hub = hub;
}

void accounts_local_actor(const struct accounts *accounts, struct actor *out)
{
    *out = (struct actor){.is_admin = true, .scopes = SCOPES_ALL};
    memcpy(out->organisation, accounts->organisation, sizeof out->organisation);
}

int account_organisation(struct accounts *accounts, const struct actor *actor,
                         struct organisation_info *out, struct error *err)
{
    autoorganisation record = {0};

    if (store_organisation_get(accounts->store, actor->organisation, &record, err) < 0)
        return -1;
    organisation_info_take(out, &record);
    return 0;
}

int account_change(struct accounts *accounts, const struct actor *actor, const char *name,
                   const struct quota *ceilings, struct organisation_info *out, struct error *err)
{
    autoorganisation record = {0};

    if (store_organisation_get(accounts->store, actor->organisation, &record, err) < 0)
        return -1;
    struct organisation_record next = record; // borrows what stays
    if (name)
        next.name = name;
    if (ceilings)
        next.ceilings = *ceilings;
    if (store_organisation_change(accounts->store, &next, err) < 0)
        return -1;
    quotas_set_ceilings(accounts->quotas, &next.ceilings);
    return account_organisation(accounts, actor, out, err);
}
