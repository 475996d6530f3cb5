/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For calls whose work is long and of no use to anybody but their client: when it goes away, or the connection is cut because the server
 * stops, the work is told (actor.cancel). And for files that an answer is sent from: they go when it has been sent, or cut.
 * A client that closes its sending side counts as gone, since it cannot be told from one that is.
 * Threads: any.
 */
#pragma once
#include "web/call.h"

/* From now on call->actor.cancel is set when the client goes. Once for a call, by its handler; nobody else may watch its response. */
void client_watch_start(struct call *call);

/* Another reference, for a call that waits; NULL stays NULL. */
struct client_watch *client_watch_ref(struct client_watch *watch);
void client_watch_free(struct client_watch *watch); // one reference
DEFINE_AUTOPTR(client_watch)

struct temporary; // core/sandbox/temporary.h

/* The whole answer is this file, which is taken, and of which the client sees no more than its size. For a call that is watched. */
int client_watch_send_file(struct call *call, int status, const struct http_header *headers,
                           struct temporary *file);
