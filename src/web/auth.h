/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sends a request. A front has its own way to tell (struct front_auth), or the common one: by a key, or by being this
 * machine's own over the local socket.
 * Threads: any; `check` blocks for the database.
 */
#pragma once
#include "core/account/actor.h"
#include "core/account/key.h"
#include "net/request.h"

/* Where a secret is decoded to. */
#define AUTH_SECRET 512
struct auth_room {
    char text[AUTH_SECRET];
};

struct core;

/* One way to tell who is asking. `core` is NULL in a server that has none. */
struct front_auth {
    /* Whether it can be anybody at all, by the head alone: whoever cannot is refused before the body is read. On the loop. */
    bool (*is_possible)(const struct http_request *request);
    /* ERROR_UNAUTHORIZED. Blocks as key_check does. */
    int (*check)(struct core *core, const struct http_request *request, struct actor *out,
                 struct error *err);
    /* The same without blocking: KEY_UNKNOWN when it cannot be said that way. On the loop. */
    enum key_known (*check_quick)(struct core *core, const struct http_request *request,
                                  struct actor *out);
    /* The failure of a request that cannot be anybody's. Returns -1. */
    int (*missing)(struct error *err);
    /* The secret that was sent, of which the log tells the beginning; NULL: none. `room` is for one that has to be decoded. */
    const char *(*secret)(const struct http_request *request, struct auth_room *room);
    const char *challenge; // WWW-Authenticate of a 401; NULL: none
};

/* "Authorization: Bearer KEY", "X-Api-Key: KEY", or root and whoever runs the server over the local socket. Browsers can send neither
 * header with a WebSocket: there, a subprotocol "burrow.key.KEY" says it, KEY being in base64url. */
extern const struct front_auth auth_by_key;

/*
 * The number by which net knows who has shown a key: that of the key in its upper half, of the token (0: none) in the lower one. 0 for nobody's.
 * ended keys take their connections with them by it (http_server_end_key).
 */
#define AUTH_NUMBER_KEY 0xffffffff00000000u
#define AUTH_NUMBER_ALL 0xffffffffffffffffu
uint64_t auth_number(const char *key_id, const char *token_id);
