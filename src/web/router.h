/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests find their route: match the path, check the key, read the body, run the handler where it belongs, answer its
 * failure in the front's words. Sits between net's http_server and the fronts.
 * Threads: the loop; what says so, any.
 */
#pragma once
#include "core/core.h"
#include "web/call.h"
#include "web/waiting_call.h"
#include "net/http_server.h"

struct preview_names;

struct router_settings {
    struct core *core;       // NULL: none; then is_open
    struct loop *loop;       // of the http server
    struct workers *workers; // for handlers
    const struct front *const
        *fronts; // NULL-terminated; routes of all are one space, the first match by words wins
    const char *public_url;               // or NULL
    const char *local_url;                // over TCP, for who came by the local socket; NULL or ""
    const struct preview_names *previews; // how exposed ports are called (web/preview.h); or NULL
    bool is_open;                         // no key is asked for (tests only; never beyond loopback)
};

struct router;

/* Fails on two rows for one thing, and on patterns that are none. */
int router_new(const struct router_settings *settings, struct router **out, struct error *err);
void router_free(struct router *router); // no call may be under way
DEFINE_AUTOPTR(router)

/* For http_server_new, with the router as owner. */
extern const struct http_handler router_handler;

/* From now on new calls get 503 (ERROR_RESTARTING) and their connection is closed. Any thread. */
void router_drain(struct router *router); // long-polls are answered with what is
bool router_is_draining(const struct router *router);
/* How many calls are with workers now. */
size_t router_running(const struct router *router);

/*
 * Runs a request that the program makes of itself (net/inner_response.h) as if whoever waits had sent it: route, scopes, quotas, rates, record of
 * changes and all. Only its key is not looked at again. It must have an X-Request-Id. Takes request and response. Any thread.
 */
void router_run_inner(const struct waiting_call *whose, struct http_request *request,
                      struct response *response);
/* The row of a pattern, of fronts that have neither hosts nor a claim of their own; NULL: there is none. Any thread. */
const struct route *router_find(const struct router *router, const char *method,
                                const char *pattern);

/* NULL-terminated. */
const struct front *const *router_fronts(const struct router *router);

/* The OpenAPI 3.1 document of the front where it has one of its own, else of all others (`front` may be NULL), as JSON; the router's. The file is for answers, so that those who ask for it and do not read
 * it cost no memory. */
const char *router_openapi(const struct router *router, const struct front *front, size_t *length);
int router_openapi_file(const struct router *router, const struct front *front);
