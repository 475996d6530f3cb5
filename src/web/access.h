/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The access log: one line for each request, when its answer has ended, whatever became of it. Also what the request is called,
 * which every answer says in X-Request-Id. Never told: paths (the id of a stream is the right to read it), keys, queries, bodies.
 * Threads: the loop; what says so, any.
 */
#pragma once
#include "web/front.h"
#include "web/request_id.h"
#include "net/response.h"

struct audit; // core/account/audit.h
struct call;

struct access; // lives as long as its response

/* Looks on from now on. `request` is NULL where what came was none. */
struct access *access_begin(struct request_ids *ids, const struct http_request *request,
                            struct response *response);

/* Once the route is known: its pattern, the beginning of the key, and the sandbox where the path names one. */
void access_set_route(struct access *access, const struct front *front, const struct route *route,
                      const char *const *parameters, const struct http_request *request);

/* Once it is known who asks, and before the handler: what is answered well, unless with a GET that only reads, is recorded there. `audit` NULL: not. */
void access_set_audit(struct access *access, struct audit *audit, const struct call *call);
/* What the call has made or changed, for that record, where its path does not say. Before it is answered. */
void access_set_subject(struct access *access, const char *prefix, const char *id);

/* One more header for the answer, in place of one of the same name that was given here; borrowed until the answer has begun. At most
 * ACCESS_HEADERS; what is more is dropped. */
#define ACCESS_HEADERS 10
void access_set_header(struct access *access, struct response *response, const char *name,
                       const char *value);

/* Which sandbox it is about, where only the handler knows: `prefix` and `id` as the client sees them. The first one counts. Any
 * thread. */
void access_set_sandbox(struct access *access, const char *prefix, const char *id);

/* A failure: a fault of the machine as an error, with who asked for what; a refusal, which the line of the request tells too, for
 * debugging. Any thread. */
void access_log_failure(const struct access *access, const struct error *err);

/* Any thread. */
const char *access_request_id(const struct access *access);
