/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Connect protocol with JSON: one message for one, or envelopes of a stream. An envelope is a byte of flags, four of length, and JSON.
 * Threads: any.
 */
#pragma once
#include "base/buffer.h"
#include "data/json_writer.h"
#include "web/call.h"
#include "web/fields.h"
#include "web/reply.h"

/* Codes of the protocol, as far as they are used. */
enum rpc_code {
    RPC_OK,
    RPC_CANCELED,
    RPC_UNKNOWN,
    RPC_INVALID_ARGUMENT,
    RPC_DEADLINE_EXCEEDED,
    RPC_NOT_FOUND,
    RPC_ALREADY_EXISTS,
    RPC_PERMISSION_DENIED,
    RPC_RESOURCE_EXHAUSTED,
    RPC_FAILED_PRECONDITION,
    RPC_UNIMPLEMENTED,
    RPC_INTERNAL,
    RPC_UNAVAILABLE,
    RPC_UNAUTHENTICATED,
    RPC_CODES
};
enum rpc_code rpc_code_of(const struct error *err);

/* Of a call of one of the services. */
bool rpc_is_service(const struct call *call);
void rpc_on_error(struct call *call, const struct error *err);
/* Answers with a failure; returns 0. */
int rpc_fail(struct call *call, enum rpc_code code, const char *message);

/* The message, by a table; its texts are the document's, which is the caller's also after a failure. ERROR_MEDIA_TYPE; ERROR_INVALID for what is no
 * envelope or no JSON, or has members of other types. */
int rpc_read(struct call *call, const struct field *fields, void *into,
             struct data_document **document, struct error *err);

/* The one envelope of a request's body; text is in `bytes`. ERROR_INVALID. */
int rpc_envelope_read(const char *bytes, size_t length, const char **text, size_t *text_length,
                      struct error *err);

/* A unary answer: rpc_answer ends it. */
int rpc_answer(struct call *call, struct reply *reply);
int rpc_answer_nothing(struct call *call); // {}

/* Adds an envelope: rpc_envelope_begin gives the place that rpc_envelope_end is told. */
#define RPC_END_OF_STREAM 2
size_t rpc_envelope_begin(struct buffer *out);
void rpc_envelope_end(struct buffer *out, size_t begun, unsigned char flags);
/* Whole ones: of a text; and the last one of a stream, with an error unless it is RPC_OK. */
void rpc_envelope_add(struct buffer *out, const char *json);
void rpc_envelope_add_end(struct buffer *out, enum rpc_code code, const char *message);

extern const struct http_header rpc_stream_headers[];

/* What the call may take, from its headers: 0 is no deadline. */
int64_t rpc_deadline_ms(const struct call *call);
int64_t rpc_keep_alive_ms(const struct call *call);
