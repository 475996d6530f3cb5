/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that asks to become a WebSocket: whether its head says so as RFC 6455 wants it, and whether the page it comes from may.
 * Browsers let any page open a socket to any server and send along what they know of it; only the server can tell whose page it is.
 * Threads: one per object.
 */
#pragma once
#include "web/call.h"

#define UPGRADE_PROTOCOL "burrow.v1" // the one subprotocol that is spoken
#define UPGRADE_ACCEPT 29
#define UPGRADE_HEADERS 4

/* What the 101 says. Not to be moved once filled in. */
struct upgrade {
    char accept[UPGRADE_ACCEPT];
    struct http_header headers[UPGRADE_HEADERS];
};

/*
 * ERROR_UPGRADE (426): it asks for no WebSocket, or for another version. ERROR_INVALID: a malformed one. ERROR_DENIED: it comes from a
 * page of an origin that is neither this server's own (by its Host) nor one of `origins`: with commas between, or NULL.
 */
int upgrade_check(struct call *call, const char *origins, struct upgrade *out, struct error *err);

/* Of one that is kept: its headers are its own. */
void upgrade_copy(struct upgrade *to, const struct upgrade *from);

/* Whether the request asks for a WebSocket at all. */
bool upgrade_is_asked(const struct http_request *request);
