/* SPDX-License-Identifier: Apache-2.0 */
/* Who sends a request; see auth.h. */
#include "web/auth.h"

#include "base/base64.h"
#include "core/core.h"
#include "web/tokens.h"
#include "web/upgrade.h"

#include <string.h>
#include <strings.h>

/* Behind "Bearer"; NULL when there is none. */
static const char *find_bearer(const struct http_request *request)
{
    static const char scheme[] = "Bearer";
    const char *text = http_request_header(request, "Authorization");

    if (!text || strncasecmp(text, scheme, sizeof scheme - 1) != 0)
        return NULL;
    text += sizeof scheme - 1;
    const char *key = text + strspn(text, " \t");
    return key > text && *key ? key : NULL;
}

/* base64url without padding; NULL: it is none, or too long. */
static const char *decode(const char *text, size_t length, struct auth_room *room)
{
    char padded[AUTH_SECRET];
    size_t bad, size = (length + 3) / 4 * 4;

    if (size >= sizeof padded)
        return NULL;
    for (size_t i = 0; i < size; i++) {
        char c = '=';
        if (i < length)
            c = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
        padded[i] = c;
    }
    ssize_t used = base64_decode(padded, size, room->text, &bad);
    if (used <= 0 || memchr(room->text, 0, (size_t)used))
        return NULL;
    room->text[used] = '\0';
    return room->text;
}

/* Of a WebSocket, whose subprotocols are all a browser's page can say. */
static const char *find_offered(const struct http_request *request, struct auth_room *room)
{
    static const char prefix[] = "burrow.key.";
    const char *at = http_request_header(request, "Sec-WebSocket-Protocol");
    const char *token;
    size_t length, skip = sizeof prefix - 1;

    if (!at || !upgrade_is_asked(request))
        return NULL;
    while ((token = tokens_next(&at, &length))) {
        if (length > skip && strncmp(token, prefix, skip) == 0)
            return decode(token + skip, length - skip, room);
    }
    return NULL;
}

static const char *find_key(const struct http_request *request, struct auth_room *room)
{
    const char *bearer = find_bearer(request);
    const char *key = bearer ? bearer : http_request_header(request, "X-Api-Key");

    return key && *key ? key : find_offered(request, room);
}

/* The kernel says who is at the other end of a Unix socket: root, or whoever runs the server, needs no key. */
static bool is_own(const struct peer *peer)
{
    return peer->is_local && (peer->uid == 0 || peer->uid == geteuid());
}

static bool is_possible(const struct http_request *request)
{
    struct auth_room room;

    return is_own(&request->peer) || find_key(request, &room);
}

static int missing(struct error *err)
{
    return error_refuse(
        err, ERROR_UNAUTHORIZED, "key",
        "this needs a key: send it as 'Authorization: Bearer KEY' or as 'X-Api-Key: KEY'");
}

static int check(struct core *core, const struct http_request *request, struct actor *out,
                 struct error *err)
{
    struct auth_room room;
    const char *key = find_key(request, &room);

    if (key)
        return key_check(core->accounts, key, out, err);
    if (!is_own(&request->peer))
        return missing(err);
    accounts_local_actor(core->accounts, out);
    return 0;
}

static enum key_known check_quick(struct core *core, const struct http_request *request,
                                  struct actor *out)
{
    struct auth_room room;
    const char *key = find_key(request, &room);

    if (key)
        return key_check_quick(core->accounts, key, out);
    if (!is_own(&request->peer))
        return KEY_WRONG;
    accounts_local_actor(core->accounts, out);
    return KEY_VALID;
}

const struct front_auth auth_by_key = {
    .is_possible = is_possible,
    .check = check,
    .check_quick = check_quick,
    .missing = missing,
    .secret = find_key,
    .challenge = "Bearer",
};

/* FNV-1a. 0 for "". */
static uint32_t number_of(const char *id)
{
    uint32_t number = 0;

    for (; id && *id; id++)
        number = (number ^ (unsigned char)*id) * 0x01000193u;
    return number;
}

uint64_t auth_number(const char *key_id, const char *token_id)
{
    return (uint64_t)number_of(key_id) << 32 | number_of(token_id);
}
