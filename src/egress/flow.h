/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of a box that the worker reads: judged by its first bytes, dialled to the very address it was meant for, and passed on.
 * Threads: one thread.
 */
#pragma once
#include "egress/http_head.h"
#include "egress/worker.h"

enum flow_state {
    FLOW_READING,  // the first flight
    FLOW_DIALLING, // it is allowed
    FLOW_PROXY,    // the proxy was asked
    FLOW_SENDING,  // the first flight goes out
    FLOW_SPLICING, // what follows is passed by the kernel
    FLOW_RELAY,    // requests are read, each of them (flow_relay.c)
    FLOW_DRAINING, // a refusal was sent; what still comes is thrown away
};

/* One of the two ends. */
struct leg {
    struct watch watch;
    SSL *ssl;              // NULL: as it comes
    struct buffer in;      // read and not yet used
    struct buffer out;     // to be sent
    struct buffer waiting; // to be sent once TLS has agreed
    bool is_eof;           // nothing more comes
    bool is_ending;        // nothing more goes once `out` is sent
    bool is_ended;
};

struct relay;
struct flow {
    enum flow_state state;
    enum egress_refusal_kind kind;
    unsigned slot;
    uint32_t address; // that it was meant for
    uint16_t port;
    char name[POLICY_NAME_LENGTH]; // "": none
    struct leg client, server;
    struct relay *relay;
    bool is_opened; // TLS is read here
    bool is_connected;
    bool is_gone;      // its memory is, soon
    uint64_t serial;   // of what was asked of the supervisor
    uint64_t until_ms; // 0: for ever
    int pipes[2][2];
    size_t in_pipe[2];
    struct flow *next, **link;
};

struct flows {
    struct watch listener, host;
    struct flow *first;
    size_t count;
    struct leaf *leaves;
};

void flow_free(struct worker *worker, struct flow *flow);
void flow_reset(struct worker *worker, struct flow *flow); // and the box sees a reset
/* Whether it may speak with this name; it is recorded where it may not. */
bool flow_judge(struct worker *worker, struct box *box, struct flow *flow, const char *name,
                struct policy_verdict *out);
/* Begins to connect; flow_on_connected follows. False: it cannot be, and the flow is as it was. */
void flow_dial(struct worker *worker, struct flow *flow);
/* Sends a last answer to the box. */
void flow_answer_and_drain(struct worker *worker, struct flow *flow, const void *bytes,
                           size_t length);
/* "HTTP/1.1 403 …" with the words of a verdict. */
size_t flow_write_refusal(unsigned status, const struct policy_verdict *verdict, char *out,
                          size_t size);

// ---- flow_relay.c ----

/* Requests of the box are read from what `flow->client.in` has already. */
void relay_start(struct worker *worker, struct flow *flow);
void relay_step(struct worker *worker, struct flow *flow);
void relay_connected(struct worker *worker, struct flow *flow);
void relay_failed(struct worker *worker, struct flow *flow); // no connection to the server
void relay_free(struct relay *relay);
void relay_on_event(struct worker *worker, struct watch *watch, uint32_t events);

// ---- leg.c ----

#define LEG_ROOM (128u << 10)
void leg_init(struct leg *leg);
void leg_clear(struct worker *worker, struct leg *leg);
/* Reads what is there into `in`; false: broken. */
bool leg_pull(struct leg *leg);
/* Bytes that arrived before TLS was read. */
bool leg_feed(struct leg *leg, const void *bytes, size_t length);
bool leg_put(struct leg *leg, const void *bytes, size_t length);
/* Sends; false: broken. */
bool leg_flush(struct leg *leg);
void leg_used(struct leg *leg, size_t length); // of `in`
