/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One POST to /mcp on its way: its messages are answered one after the other, and what takes time is asked of the server itself without keeping a
 * thread. Sends progress while it waits, to clients that take events.
 * Threads: one per object; what says so, the loop.
 */
#pragma once
#include "core/account/mcp_tool.h"
#include "data/json_writer.h"
#include "front/mcp/mcp_message.h"
#include "net/inner_response.h"
#include "web/call.h"

struct mcp_front;
struct exchange;

/* Takes the message apart, and answers now or later. Returns what the handler has to return. */
int exchange_start(struct call *call, struct error *err);

/* Another client's wish, in the same session and with the same key, that the request of this id is given up. */
void exchange_cancel(const struct exchange *from, const struct data_value *id);

// ---- for those who answer a message ----

const struct mcp_message *exchange_message(const struct exchange *exchange);
const struct mcp_terms *exchange_terms(const struct exchange *exchange);
const struct actor *exchange_actor(const struct exchange *exchange);
const struct router *exchange_router(const struct exchange *exchange);
bool exchange_is_given_up(struct exchange *exchange);
/* Memory until the message is answered; zeroed. */
void *exchange_alloc(struct exchange *exchange, size_t size);
char *exchange_print(struct exchange *exchange, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The result is what is written between these; the writer is inside its object. */
struct json_writer *exchange_result_begin(struct exchange *exchange);
void exchange_result_end(struct exchange *exchange);
/* How long and by whom it may be kept: what lists say beside their members. */
void exchange_put_caching(struct exchange *exchange, struct json_writer *json);
/* Answers with a failure of the protocol. */
void exchange_fault(struct exchange *exchange, const struct mcp_fault *fault);
/* A header of the answer, "Mcp-Session-Id". */
void exchange_set_session(struct exchange *exchange, const char *id);

/* A request of /api/v1. Texts are the exchange's. */
struct ask {
    const char *method;
    struct buffer target; // path and query; taken
    struct buffer body;   // taken
    bool is_stream;       // the body is a file's content
    const char *range, *if_match;
    size_t limit; // of the answer; 0: 4 MiB
};
void ask_clear(struct ask *ask);
#define autoask __attribute__((cleanup(ask_clear))) struct ask

/* Asks, and calls back on a worker; the message is not answered before that. */
typedef void (*on_asked)(struct exchange *exchange, void *data, const struct inner_answer *answer);
void exchange_ask(struct exchange *exchange, struct ask *ask, on_asked fn, void *data);

// ---- methods ----

#define MCP_LATER 1
/* 0: answered. MCP_LATER: exchange_ask was called. -1: with the fault. */
typedef int (*mcp_method_fn)(struct exchange *exchange, struct mcp_fault *fault);
struct mcp_method {
    const char *name; // NULL ends a table
    mcp_method_fn fn;
    bool is_modern, is_legacy; // of which revisions
};
extern const struct mcp_method mcp_methods[];
/* What is answered to an answer of exchange_ask: exchange_done says that the message is. */
void exchange_done(struct exchange *exchange);
