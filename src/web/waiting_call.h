/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a call is still needed when its handler has returned without an answer.
 * Threads: one per object.
 */
#pragma once
#include "web/call.h"
#include "net/body.h"

struct waiting_call {
    struct router *router;
    const struct front *front;
    const struct route *route;
    struct core *core;
    struct loop *loop;
    struct workers *workers;
    struct turns_owner owner; // as the call's
    struct actor actor;       // its strings are ours
    struct access *access;    // goes with the response
    struct response *response;
    struct client_watch *watch; // NULL: none
    struct body *body;          // BODY_STREAM, else NULL
};

void waiting_call_init(struct waiting_call *waiting, const struct call *call);
void waiting_call_clear(struct waiting_call *waiting);

/* Answers with the failure, as the front would. Any thread. */
void waiting_call_fail(const struct waiting_call *waiting, const struct error *err);

/* The call again, for answering: it has no request, query, body or arena any more. */
struct call waiting_call_get(const struct waiting_call *waiting);
