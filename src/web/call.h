/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request on its way through a front: who asks, what for, and the way to answer. A handler answers once (reply.h), or lets the call wait:
 * takes a reference of its own to the response (response_ref) and answers later from anywhere. When the handler returns, the call,
 * its request, its arena and its own reference to the response go: whoever waits copies what it needs.
 * Threads: one per object; a call is its handler's.
 */
#pragma once
#include "base/arena.h"
#include "core/account/actor.h"
#include "core/core.h"
#include "data/value.h"
#include "web/front.h"
#include "loop/loop.h"
#include "loop/workers.h"
#include "net/request.h"
#include "net/response.h"

struct access;       // web/access.h
struct once;         // core/execution.h
struct client_watch; // web/client_watch.h
struct router;

struct call {
    struct router *router;
    const struct front *front;
    const struct route *route; // NULL: none was found
    void *settings;            // of the front
    struct core *core;
    struct http_request *
        request; // NULL: what came was none, see front->on_error. Its body is gone once call->body was read
    struct access *access; // what the log will say of it; see call_request_id, call_about_sandbox
    struct response *response; // a reference of the call's; reply_* use it
    struct actor actor;        // all zero with ACCESS_OPEN
    bool is_inner; // the server makes it of itself, for somebody else's protocol (router_run_inner)
    bool is_known; // a good key was shown, or the local socket is used; not with ACCESS_OPEN
    const char *parameters
        [ROUTE_PARAMETERS]; // of the path, in order, decoded, without NUL or '/' unless given as %2F
    struct query *query;
    struct data_value *body;    // BODY_JSON: a map
    struct arena *arena;        // what goes with the call; see call_alloc
    unsigned tries;             // how often the handler was called before; see CALL_AGAIN
    int64_t again_ms;           // what it leaves there
    struct turns_owner owner;   // whose turn it takes in a lane
    struct client_watch *watch; // of the client, by client_watch_start; NULL: none
    void *front_data; // what the front keeps with the call, from its first try on; NULL then
};

void *call_alloc(struct call *call, size_t size); // zeroed; goes with the call
char *call_print(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A path parameter without the prefix that the front renders ids with: "sbx_abc" → "abc". ERROR_NOT_FOUND, noun as given, when it is
 * spelled otherwise (so an impossible id is just unknown). */
int call_id(const struct call *call, unsigned index, const char *prefix, const char *noun,
            const char **out, struct error *err);

/* "http://host:port" under which the client reached us, or the configured public URL; without a slash at the end. */
const char *call_base_url(struct call *call);

/* The header, or NULL. */
const char *call_header(const struct call *call, const char *name);

/* Counts memory that is made of the request's body among that of all bodies: for json_limits.may_take, `data` being the call. False:
 * there is none now. */
bool call_may_take(void *data, size_t bytes);

/* What the request is called: in X-Request-Id of its answer, in the log, and in whatever a failure says. */
const char *call_request_id(const struct call *call);

/* Which sandbox the call is about, for the log, where its path does not say. Before it is answered. */
void call_about_sandbox(const struct call *call, const char *prefix, const char *id);

/* For calls that wait: where to post to, and where blocking work goes. */
struct loop *call_loop(const struct call *call);
struct workers *call_workers(const struct call *call);

/*
 * The Idempotency-Key of the request as the core wants it, its hash being of method, path, query and body (not of one that is
 * streamed); NULL when there is none. ERROR_INVALID for one of more than 255 bytes.
 */
int call_once(struct call *call, const struct once **out, struct error *err);
