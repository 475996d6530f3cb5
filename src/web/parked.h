/* SPDX-License-Identifier: Apache-2.0 */
/* What of a call is still needed when its handler has returned without an answer. */
#pragma once
#include "web/call.h"
#include "net/body.h"

struct parked {
    struct router *router;
    const struct front *front;
    const struct route *route;
    struct core *core;
    struct loop *loop;
    struct workers *workers;
    struct actor actor; // its texts are ours
    struct response *response;
    struct body *body; // BODY_STREAM, else NULL
};

void parked_init(struct parked *parked, const struct call *call);
void parked_clear(struct parked *parked);

/* Answers with the failure, as the front would. Any thread. */
void parked_fail(const struct parked *parked, const struct error *err);

/* The call again, for answering: it has no request, query, body or memory any more. */
struct call parked_call(const struct parked *parked);
