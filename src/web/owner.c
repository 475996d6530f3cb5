/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn a call takes; see owner.h. */
#include "web/owner.h"

#include "base/id.h"

#include <string.h>
#include <sys/random.h>

uint64_t owner_new_seed(void)
{
    uint64_t seed = 0;

    (void)!getrandom(&seed, sizeof seed, GRND_NONBLOCK); // 0 will do as well
    return seed;
}

/* FNV-1a. Never 0, which is nobody and nothing. */
static uint64_t hash(uint64_t seed, const void *data, size_t length)
{
    const unsigned char *bytes = data;
    uint64_t value = 0xcbf29ce484222325u ^ seed;

    for (size_t i = 0; i < length; i++)
        value = (value ^ bytes[i]) * 0x100000001b3u;
    return value ? value : 1;
}

static uint64_t hash_peer(uint64_t seed, const struct peer *peer)
{
    uint64_t group = peer_group(peer);

    return hash(seed, &group, sizeof group);
}

/* The key that the call has shown, if it was good a moment ago; NULL: none. */
static const char *key_of(const struct call *call, const struct router_settings *settings,
                          struct auth_room *room)
{
    const struct front_auth *auth = call->front->auth ? call->front->auth : &auth_by_key;
    struct actor ignored = {0};

    if (settings->is_open || call->route->access == ACCESS_OPEN ||
        !auth->is_possible(call->request))
        return NULL;
    enum key_known known = auth->check_quick(settings->core, call->request, &ignored);
    return known == KEY_VALID || known == KEY_STALE ? auth->secret(call->request, room) : NULL;
}

/* The sandbox that the path names; NULL: none. */
static const char *sandbox_of(const struct call *call)
{
    const char *prefix = call->front->sandbox_prefix;
    size_t length = prefix ? strlen(prefix) : 0;

    for (unsigned i = 0; length && i < ROUTE_PARAMETERS; i++) {
        const char *parameter = call->parameters[i];
        if (parameter && strncmp(parameter, prefix, length) == 0 && id_is_valid(parameter + length))
            return parameter;
    }
    return NULL;
}

struct turns_owner owner_of_call(const struct call *call, const struct router_settings *settings,
                                 uint64_t seed)
{
    struct auth_room room;
    const char *key = key_of(call, settings, &room), *sandbox = sandbox_of(call);

    return (struct turns_owner){
        .who = key ? hash(seed, key, strlen(key)) : hash_peer(seed, &call->request->peer),
        .what = sandbox ? hash(seed, sandbox, strlen(sandbox)) : 0,
        .is_heavy = call->route->is_heavy,
    };
}
