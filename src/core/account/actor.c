/* SPDX-License-Identifier: Apache-2.0 */
/* Who is asking; see actor.h. */
#include "core/account/actor.h"

#include <string.h>

static bool matches(const char *wanted, const char *is)
{
    return !wanted || (is && strcmp(wanted, is) == 0);
}

static bool sees_member(const struct actor *actor, const struct owner *owner)
{
    return (actor->scopes & SCOPE_ORGANISATION) || matches(actor->member, owner->member);
}

bool actor_sees_in(const struct actor *actor, const struct owner *owner, const char *sandbox_id)
{
    return matches(actor->organisation, owner->organisation) &&
           matches(actor->tenant, owner->tenant) && matches(actor->scope, owner->scope) &&
           sees_member(actor, owner) &&
           matches(*actor->sandbox ? actor->sandbox : NULL, sandbox_id);
}

bool actor_sees(const struct actor *actor, const struct owner *owner)
{
    return actor_sees_in(actor, owner, NULL);
}

struct owner actor_owner(const struct actor *actor)
{
    return (struct owner){
        .organisation = actor->organisation,
        .tenant = actor->tenant,
        .scope = actor->scope,
        .project = actor->project,
        .member = *actor->member ? actor->member : NULL,
    };
}

struct owner actor_own(const struct actor *actor)
{
    struct owner owner = actor_owner(actor);
    owner.project = NULL;
    return owner;
}

struct owner actor_filter(const struct actor *actor)
{
    struct owner owner = actor_owner(actor);
    owner.project = NULL;
    owner.member = actor->scopes & SCOPE_ORGANISATION ? NULL : actor->member;
    return owner;
}

int actor_need(const struct actor *actor, enum key_scope scope, struct error *err)
{
    if ((actor->scopes & scope) == scope)
        return 0;
    return error_refuse(err, ERROR_SCOPE, "key", "this needs a key with scope '%s'",
                        scope_name(scope));
}

int actor_refuse_token(const struct actor *actor, const char *what, struct error *err)
{
    if (!*actor->sandbox)
        return 0;
    return error_refuse(err, ERROR_DENIED, "key",
                        "a token is for one sandbox and cannot %s: use a key", what);
}

int actor_need_admin(const struct actor *actor, struct error *err)
{
    if (actor->is_admin && (actor->scopes & SCOPE_ORGANISATION))
        return 0;
    return error_set(err, ERROR_DENIED,
                     "this is for administrators of everything: use a key with the scopes 'admin' "
                     "and 'organisation'");
}
