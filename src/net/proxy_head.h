/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads as they are passed on: made anew from what was read, so that nothing that two parsers could read differently gets through. What is
 * between two hops stays there; Host is the one the server in the sandbox expects.
 * Threads: the loop.
 */
#pragma once
#include "net/http1_reply.h"
#include "net/proxy.h"
#include "net/proxy_end.h"
#include "net/request.h"

/* Whether it asks for another protocol, such as a WebSocket. */
const char *proxy_head_upgrade(const struct http_request *request);

void proxy_head_write_request(struct proxy_end *to, const struct http_request *request,
                              const struct proxy_target *target);

enum proxy_framing { PROXY_NO_BODY, PROXY_LENGTH, PROXY_CHUNKS, PROXY_UNTIL_CLOSE };
struct proxy_reply_manner {
    enum proxy_framing framing;
    bool is_last;    // the connection closes behind it
    bool is_upgrade; // 101
    bool is_old;     // the client speaks HTTP/1.0
    unsigned cookie_port;
};
void proxy_head_write_reply(struct proxy_end *to, const struct http1_reply_head *head,
                            const struct proxy_reply_manner *manner);
