/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exposed ports as this front is asked for them and tells them.
 * Threads: plain values.
 */
#pragma once
#include "core/port/port.h"
#include "web/answer_table.h"
#include "web/call.h"
#include "web/fields.h"

struct port_body {
    int64_t port;
    bool is_all, is_private;
    const char *protocol;
    int64_t token_ms;
};
extern const struct field port_body_fields[];
int port_body_request(const struct call *call, const struct port_body *body,
                      struct port_request *out, struct error *err);

struct port_answer {
    int64_t port;
    enum port_protocol protocol;
    const char *url, *token, *token_url;
    int64_t host_port, token_expires_at, created_at;
    bool has_host_port, is_private;
};
extern const struct answer_field port_answer_fields[];
/* Goes with the call. */
struct answer_list port_answer_list(struct call *call, const struct port_info *infos, size_t count);
