/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said where the server in a sandbox says nothing: a short page, or JSON for programs that ask for it.
 * Threads: the loop; the preview's.
 */
#pragma once
#include "net/proxy.h"

enum preview_page {
    PREVIEW_NOBODY,    // nothing listens there
    PREVIEW_SLOW,      // no connection in time
    PREVIEW_NO_ANSWER, // closed without an answer
    PREVIEW_MALFORMED, // what it said is no HTTP
    PREVIEW_UNKNOWN,   // no such name, or no such sandbox any more
    PREVIEW_PRIVATE,   // a token is needed
    PREVIEW_CROWDED,   // too many connections
    PREVIEW_ASLEEP,    // the sandbox could not be woken
    PREVIEW_WRONG,     // a host that is not below the domain
    PREVIEW_PAUSED,    // the sandbox is not woken by requests
    PREVIEW_PAGES
};

/* Answers with it. `request` may be NULL; `port` 0: none is told. */
void preview_page_send(struct proxy_client *client, const struct http_request *request,
                       enum preview_page page, unsigned port);
/* The same for what is no request. */
void preview_page_refuse(struct proxy_client *client, int status, const char *text);
