/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sandbox a request is for, and who may send it: by headers, by the host's first label, by the sandbox's token, or by a signature.
 * Threads: any; nothing blocks.
 */
#pragma once
#include "base/id.h"
#include "net/request.h"
#include "web/auth.h"

#define E2B_ENVD_PORT 49983
#define E2B_CODE_PORT 49999
#define E2B_TOKEN_TEXT 117 // ids of a sandbox and of a key, and 64 digits

struct core;

/* Where it goes. */
struct e2b_target {
    char id[ID_TEXT]; // "": nothing names the sandbox but a signature
    unsigned port;
    bool is_wrong; // what names it cannot be read
};
enum e2b_way { E2B_BY_NOTHING, E2B_BY_HEADER, E2B_BY_HOST };
/* By the two headers or the host alone; any may be NULL. */
enum e2b_way e2b_target_find(const char *id, const char *port, const char *host,
                             struct e2b_target *out);
/* By any of them, or by a token. */
void e2b_target_read(const struct http_request *request, struct e2b_target *out);

/* Whether the request is for a sandbox at all. On the loop. */
bool e2b_target_claims(const struct http_request *request);

/*
 * What opens envd of a sandbox, for this actor, who has SCOPE_RUN: the same each time, and worth what its key may do. And what opens the sandbox's other ports, where they
 * are not for everybody.
 */
void e2b_token_make(struct core *core, const struct actor *actor, const char *sandbox_id,
                    char out[E2B_TOKEN_TEXT]);
#define E2B_TRAFFIC_PURPOSE "e2b-traffic"

/* Keys of the control plane, in either spelling; and what opens envd. */
extern const struct front_auth e2b_key_auth;
extern const struct front_auth e2b_token_auth;
