/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A front's routes: one row each, from which dispatch, checks of bodies and parameters, and the OpenAPI document are derived.
 * Threads: plain values; a handler's lane says where it runs.
 */
#pragma once
#include "base/error.h"
#include "core/account/scope.h"
#include "web/answer_table.h"
#include "web/fields.h"
#include "web/query.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct call;

enum route_lane {
    ROUTE_QUICK, // on a worker of the quick lane: milliseconds. With a body of more than 1 MiB, of the slow one
    ROUTE_SLOW, // uploads, downloads, launches that may wait
    ROUTE_LOOP, // tried on the loop first (must not block): CALL_ELSEWHERE moves it to the quick lane, or without a body to
                // that of control. So does a JSON body, and a key that is not in memory
    ROUTE_CONTROL, // ends, stops or looks at a sandbox: in a lane of its own, which no other work can fill
};

enum route_access {
    ACCESS_KEY,  // a valid key, or the local socket
    ACCESS_OPEN, // no key is looked at; what is named in the path is the right
    ACCESS_ANY, // nobody is refused for his key; whoever has shown a good one is told more (call->is_known)
};

/* Who gets to it at all of those that may not have everything. */
enum route_reach {
    REACH_ALL,    // nobody else
    REACH_COMMON, // keys for sandboxes with some labels: it is of no single sandbox
    REACH_SANDBOX, // those, and tokens: it names a sandbox or something in one, and the core sees which
};

enum route_body {
    BODY_NONE,   // whatever comes is read and dropped (at most 1 MiB)
    BODY_JSON,   // call->body; an empty one is an empty map
    BODY_WHOLE,  // call->request->body: JSON that the handler reads itself. A query is passed over
    BODY_STREAM, // call->request->stream, as it comes
};

#define ROUTE_PARAMETERS 4

/* Handled: 0, having answered the call or let it wait (waiting_call.h). -1 with *err: the front answers with its envelope. */
#define CALL_ELSEWHERE 1 // ROUTE_LOOP: not without blocking
#define CALL_AGAIN                                                                                 \
    2 // off the loop: the handler is called once more after call->again_ms, with the call as it is then
typedef int (*route_handler)(struct call *call, struct error *err);

struct route {
    const char *method; // NULL ends a table
    const char *
        pattern; // "/sandbox/{id}/execute"; words win over parameters whatever the order of rows. A segment is one or the other
    enum route_lane lane;
    enum route_access access;
    enum route_body body;
    route_handler handle;
    const char *summary;           // "starts a command"
    const struct field *fields;    // of a JSON body; NULL: not described
    const struct parameter *query; // described and checked before the handler; NULL: none
    uint64_t body_limit;           // in bytes; 0: 64 MiB of JSON, or as long as a stream is
    const struct route_answer
        *answers;         // when all is well, ended by an empty row; NULL: not described
    enum key_scope needs; // of the key, checked before the handler; none said: see route_needs
    bool is_undescribed;  // it is in no document
    enum route_reach reach;
    bool takes_tool_keys; // keys that are for tools of models alone
    bool is_heavy; // keeps a processor busy for long: one at a time for each sandbox, a few in all
};

/* Rows of a table. */
static inline size_t route_count(const struct route *table)
{
    size_t count = 0;
    while (table[count].method)
        count++;
    return count;
}

/* What a key must be allowed to do: what the row says, or else to read with GET and to run with everything else. None where no key is needed. */
static inline enum key_scope route_needs(const struct route *route)
{
    if (route->access != ACCESS_KEY)
        return SCOPE_NONE;
    if (route->needs)
        return route->needs;
    return strcmp(route->method, "GET") == 0 ? SCOPE_READ : SCOPE_RUN;
}
