/* SPDX-License-Identifier: Apache-2.0 */
/* Who is asking; see actor.h. */
#include "core/account/actor.h"

#include <string.h>

static bool matches(const char *wanted, const char *is)
{
    return !wanted || (is && strcmp(wanted, is) == 0);
}

bool actor_sees(const struct actor *actor, const struct owner *owner)
{
    return matches(actor->organisation, owner->organisation) &&
           matches(actor->tenant, owner->tenant) && matches(actor->scope, owner->scope);
}

struct owner actor_owner(const struct actor *actor)
{
    return (struct owner){
        .organisation = actor->organisation,
        .tenant = actor->tenant,
        .scope = actor->scope,
        .project = actor->project,
    };
}

struct owner actor_filter(const struct actor *actor)
{
    struct owner owner = actor_owner(actor);
    owner.project = NULL;
    return owner;
}

int actor_need_admin(const struct actor *actor, struct error *err)
{
    return actor->is_admin ? 0
                           : error_set(err, ERROR_DENIED,
                                       "this is for administrators; use an administrator's key");
}
