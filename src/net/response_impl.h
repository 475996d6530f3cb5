/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a connection does with the response it is to send.
 * Threads: the loop.
 */
#pragma once
#include "loop/loop.h"
#include "net/output.h"
#include "net/response.h"

struct response_link {
    /* Something was added, finished, cut or given a deadline. */
    void (*on_change)(void *connection);
    /* From now on everything that is read is put into the body that is returned, a reference. */
    struct body *(*on_upgrade)(void *connection);
};

/* With one reference for the connection, which does not count as somebody who could still answer.
 */
struct response *response_new(struct loop *loop, const struct response_link *link,
                              void *connection);

/* How the answer has to look; set before anybody else has the response. */
void response_set_request(struct response *response, const struct http_request *request);

struct response_changes {
    struct segment *head; // of the answer, to be followed by a Connection line; taken by the caller
    bool is_finished;     // nothing more will come
    bool is_cut;          // the client must not take it for complete
    bool is_waiting;      // no answer yet
    bool is_abandoned;    // and nobody is left to go on with it
    bool ends_by_close;   // no length and no chunks
    bool is_vouched;      // somebody knows the client
    uint64_t who;         // as which key; 0: as one of those that have none
    uint64_t deadline_ms; // 0: no new one
};

/* Moves what was added to `to`, behind the head, which is not in it. */
void response_collect(struct response *response, struct output *to,
                      struct response_changes *changes);

/* The request that was given back by response_decide, now the caller's, with its plan; NULL: none was. */
struct http_request *response_take_decision(struct response *response, struct http_plan *plan);

/* How much of it still waits in the connection. May call on_room. */
void response_set_waiting(struct response *response, const struct output *output);

void response_call_deadline(struct response *response);
void response_set_gone(struct response *response);

/* The connection lets go of it. */
void response_end(struct response *response, bool is_delivered);
