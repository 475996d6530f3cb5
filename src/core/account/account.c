/* SPDX-License-Identifier: Apache-2.0 */
/* Organisations and SSH keys for callers; see account.h. */
#include "core/account/account.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/core_impl.h"
#include "core/account/ssh_key.h"

int account_organisation(struct core *core, const struct actor *actor,
                         struct organisation_record *out, struct error *err)
{
    return store_organisation_get(core->store, actor->organisation, out, err);
}

int account_ssh_key_add(struct core *core, const struct actor *actor, const char *line,
                        struct ssh_key_record *out, bool *is_new, struct error *err)
{
    autosshkey key = {0};

    if (ssh_key_parse(line, &key, err) < 0)
        return -1;
    struct ssh_key_record record = {
        .organisation = actor->organisation,
        .fingerprint = key.fingerprint,
        .type = key.type,
        .comment = key.comment,
        .public_key = key.text,
        .created_at = (int64_t)clock_wall_ms(),
    };
    if (store_ssh_key_put(core->store, &record, is_new, err) < 0)
        return -1;
    *out = (struct ssh_key_record){
        .organisation = xstrdup(record.organisation),
        .fingerprint = xstrdup(record.fingerprint),
        .type = take(key.type),
        .comment = take(key.comment),
        .public_key = take(key.text),
        .created_at = record.created_at,
    };
    return 0;
}

int account_ssh_key_remove(struct core *core, const struct actor *actor, const char *fingerprint,
                           bool *found, struct error *err)
{
    return store_ssh_key_remove(core->store, actor->organisation, fingerprint, found, err);
}

int account_ssh_key_list(struct core *core, const struct actor *actor, const struct page *page,
                         struct ssh_key_list *out, struct error *err)
{
    return store_ssh_key_list(core->store, actor->organisation, page, out, err);
}
