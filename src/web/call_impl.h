/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the router keeps with a call and handlers do not see.
 * Threads: one per object.
 */
#pragma once
#include "core/execution/execution.h"
#include "web/call.h"
#include "web/router.h"

struct call_work {
    struct call call; // first: handlers get this
    struct arena arena;
    const struct router_settings *settings;
    struct data_document *body_memory; // of a JSON body
    bool has_actor;
    bool has_met; // front->on_actor was called
    struct loop_timer again;
    unsigned char
        request_hash[32]; // with an Idempotency-Key and a JSON body, which is gone once it was read
};

const struct call_work *call_work_of(const struct call *call);

/* Of what was asked: method, path, query and body. */
void call_hash_request(const struct http_request *request, unsigned char hash[32]);
