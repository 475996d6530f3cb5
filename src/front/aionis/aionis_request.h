/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every call goes through, in the protocol's order: its body is read as JSON; an admin's token, where one is needed; the tenant's
 * header; the rate; then, with the handler's table, the fields; then tenant and scope.
 * Threads: any; one per call.
 */
#pragma once
#include "front/aionis/answer.h"

/* Begins every handler's body: fields of its struct. */
struct identity_body {
    const char *tenant, *scope;
};
#define IDENTITY_FIELDS(type)                                                                      \
    {"tenant_id",                                                                                  \
     FIELD_TEXT,                                                                                   \
     offsetof(type, identity.tenant),                                                              \
     .minimum = 1,                                                                                 \
     .maximum = AIONIS_BODY_MAX,                                                                   \
     .help = "whose it is; letters, digits, '.', '_', '-'"},                                       \
    {                                                                                              \
        "scope", FIELD_TEXT, offsetof(type, identity.scope),                                       \
            .minimum = 1, .maximum = AIONIS_BODY_MAX, .help = "what of the tenant's"               \
    }
#define ACTOR_FIELD(type)                                                                          \
    {                                                                                              \
        "actor", FIELD_TEXT, offsetof(type, actor), .minimum = 1, .maximum = AIONIS_BODY_MAX,      \
                                                    .help = "who asks; not kept"                   \
    }
#define RUN_FIELD(type)                                                                            \
    {                                                                                              \
        "run_id", FIELD_TEXT, offsetof(type, run_id), .is_needed = true,                           \
                                                      .check = request_check_uuid                  \
    }

struct request {
    struct data_document *document; // of the body; NULL: there was none, or it was no JSON
    struct data_value *body;        // NULL: likewise
};
void request_clear(struct request *request);
#define autorequest __attribute__((cleanup(request_clear))) struct request

/* Up to the rate limit. 0, -1, or CALL_AGAIN. */
int request_open(struct call *call, enum rate_class class, struct request *out, struct error *err);

/* The fields, and whose it is: call->actor is complete then. `into` begins with a struct identity_body. */
int request_read(struct call *call, const struct request *request, const struct field *fields,
                 void *into, struct error *err);

/* The tenant that the call will be of unless its body is refused; and other strings of the body, where they are such: NULL else. */
const char *request_tenant(struct call *call, const struct request *request);
const char *request_text(struct call *call, const struct request *request, const char *name);

/* Checks of fields. */
const char *request_check_uuid(const char *text);
const char *request_check_project(const char *text);
const char *request_check_reason(const char *text);

/* Trimmed already. */
bool request_is_tenant(const char *text);
bool request_is_scope(const char *text);

/* Without white space at its ends, in the call's memory; NULL for what is blank or NULL. */
const char *request_trim(struct call *call, const char *text);
